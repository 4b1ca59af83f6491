//! Prints the throughput of the Shield: `shield_throughput [--json] [WORD...]`; with words, only
//! the rows that contain all of them.

use shef_tb::throughput::{Row, measure};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let all = words.len();
    words.retain(|w| w != "--json");
    let json = words.len() < all;
    // In the program's folder: generated packages belong to the build products.
    let program = std::env::current_exe().unwrap_or_default();
    let dir = program.parent().unwrap_or(Path::new(".")).join("shield_throughput_rtl");
    let rows = match measure(&dir, &words, &mut |line| eprintln!("{line}")) {
        Ok(rows) => rows,
        Err(e) => {
            eprintln!("error[{}]: {e}", e.code());
            return ExitCode::FAILURE;
        }
    };
    if rows.is_empty() {
        eprintln!("error: no row holds all of {words:?}");
        return ExitCode::from(2);
    }
    if json {
        println!("{}", serde_json::json!({ "rows": rows }));
    } else {
        table(&rows);
    }
    ExitCode::SUCCESS
}

fn table(rows: &[Row]) {
    println!(
        "{:<12} {:<12} {:>5} {:>4} {:>7} {:>5} {:>7} {:>11} {:>8} {:>8} {:>7} {:>7} {:>6}",
        "access",
        "mode",
        "chunk",
        "key",
        "engines",
        "ports",
        "latency",
        "outstanding",
        "bytes",
        "cycles",
        "B/cycle",
        "bare",
        "ratio"
    );
    for r in rows {
        println!(
            "{:<12} {:<12} {:>5} {:>4} {:>7} {:>5} {:>7} {:>11} {:>8} {:>8} {:>7.2} {:>7.2} {:>6.3}",
            r.name.name(),
            r.region_mode,
            r.chunk,
            r.key_bits,
            format!("{} x{}", r.sets, r.engines),
            r.ports,
            r.memory_latency,
            format!("{} x {}", r.outstanding, r.burst),
            r.bytes,
            r.cycles,
            r.bytes_per_cycle,
            r.bytes as f64 / r.bare_cycles as f64,
            r.ratio
        );
    }
}
