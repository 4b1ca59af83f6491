//! `cargo xtask area`: size of each block on UltraScale+ as yosys estimates it, without black boxes.

use crate::lint;
use crate::process::{self, Failure, say};
use crate::{root, tools};
use serde::Serialize;
use std::collections::BTreeMap;

/// Blocks that are synthesised where none is named, each as a top of its own; `shef_set` and `shef_shield` take more than half an hour and are done by name.
const BLOCKS: &[&str] = &["shef_p256", "shef_hmac", "shef_gcm_iter", "shef_seq", "shef_aes_stage", "shef_ghash"];

#[derive(Serialize)]
struct Row {
    block: String,
    lut: u64,
    ff: u64,
    dsp: u64,
    ramb36: f64,
    uram: u64,
    lutram: u64,
    black_boxes: Vec<String>,
}

/// Synthesises `blocks` (all where empty) and prints a table or JSON.
pub fn run(json: bool, blocks: &[String]) -> Result<(), Failure> {
    let yosys = tools::ensure_yosys(&root(), &say)?;
    let sources = lint::shipped()?;
    let files: Vec<String> = sources.iter().map(|p| p.display().to_string()).collect();
    let wanted: Vec<&str> = if blocks.is_empty() { BLOCKS.to_vec() } else { blocks.iter().map(String::as_str).collect() };
    let folder = "target/area";
    std::fs::create_dir_all(root().join(folder)).map_err(|e| Failure::failed(format!("{folder}: {e}")))?;
    let mut rows = Vec::new();
    for block in wanted {
        say(&format!("synthesising {block}"));
        let report = format!("{folder}/{block}.json");
        let script = format!(
            "read_slang -j 1 {} --top {block}; synth_xilinx -family xcup -top {block} -flatten -noiopad -noclkbuf; tee -o {report} stat -json",
            files.join(" ")
        );
        let mut c = tools::yosys_command(&yosys);
        process::run(c.current_dir(root()).args(["-q", "-p", &script]), block)?;
        let text = std::fs::read_to_string(root().join(&report)).map_err(|e| Failure::failed(format!("{report}: {e}")))?;
        rows.push(row(block, &text)?);
    }
    if json {
        println!("{}", serde_json::json!({ "rows": rows }));
    } else {
        println!("{:<16} {:>8} {:>8} {:>6} {:>8} {:>6} {:>8}  black boxes", "block", "LUT", "FF", "DSP", "RAMB36", "URAM", "LUTRAM");
        for r in &rows {
            println!(
                "{:<16} {:>8} {:>8} {:>6} {:>8} {:>6} {:>8}  {}",
                r.block,
                r.lut,
                r.ff,
                r.dsp,
                r.ramb36,
                r.uram,
                r.lutram,
                if r.black_boxes.is_empty() { "none".into() } else { r.black_boxes.join(" ") }
            );
        }
    }
    if rows.iter().any(|r| !r.black_boxes.is_empty()) {
        return Err(Failure::failed("a block holds cells that yosys does not know"));
    }
    Ok(())
}

fn row(block: &str, report: &str) -> Result<Row, Failure> {
    let start = report.find('{').ok_or_else(|| Failure::failed(format!("{block}: no JSON in the report")))?;
    let value: serde_json::Value = serde_json::from_str(&report[start..]).map_err(|e| Failure::failed(format!("{block}: {e}")))?;
    let cells: BTreeMap<String, u64> = value["design"]["num_cells_by_type"]
        .as_object()
        .map(|m| m.iter().filter_map(|(k, v)| Some((k.clone(), v.as_u64()?))).collect())
        .unwrap_or_default();
    let sum = |test: &dyn Fn(&str) -> bool| cells.iter().filter(|(k, _)| test(k)).map(|(_, v)| v).sum::<u64>();
    let known = |k: &str| {
        ["LUT", "FD", "MUXF", "CARRY", "DSP48", "RAMB", "RAM", "URAM", "SRL", "INV", "BUF", "$scopeinfo", "GND", "VCC"]
            .iter()
            .any(|p| k.starts_with(p))
    };
    let lutram = |k: &str| k.starts_with("RAM") && !k.starts_with("RAMB");
    Ok(Row {
        block: block.into(),
        lut: sum(&|k| k.starts_with("LUT")),
        ff: sum(&|k| k.starts_with("FD")),
        dsp: sum(&|k| k.starts_with("DSP48")),
        ramb36: sum(&|k| k.starts_with("RAMB36")) as f64 + sum(&|k| k.starts_with("RAMB18")) as f64 / 2.0,
        uram: sum(&|k| k.starts_with("URAM")),
        lutram: sum(&lutram),
        black_boxes: cells.keys().filter(|k| !known(k)).cloned().collect(),
    })
}
