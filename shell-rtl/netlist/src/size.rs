//! An estimate of the LUTs of a custom logic.
//!
//! Modules of this project have rows in `shell-rtl/area.toml`, measured by synthesis. All others are
//! estimated from the cells of the netlist. The user's accelerator and the memory controller do not
//! count.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::cell::Kind;
use crate::rtlil::{Cell, Netlist};
use crate::{Check, DEVICE_LUTS, Design, Finding, LARGEST_SHARE, check as checked};

/// The module of the accelerator, which does not count.
const ACCELERATOR: &str = "shef_accel";
const TABLE: &str = include_str!("../../area.toml");

#[derive(Deserialize)]
struct Table {
    block: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    name: String,
    instances: u64,
    whole: Size,
    own: Size,
}

#[derive(Deserialize)]
struct Size {
    lut: u64,
}

/// The same for a custom logic without a measured module.
const WITHOUT_ROWS: f64 = 0.3;

/// LUTs of a cell without a row, roughly: what synthesis makes of its bits.
fn luts(netlist: &Netlist<'_>, cell: &Cell<'_>) -> f64 {
    let width = |pin: &str| f64::from(u32::try_from(netlist.pin(cell, pin).len()).unwrap_or(0));
    match cell.kind {
        // Two-input functions share a LUT with their neighbours.
        "$and" | "$or" | "$xor" | "$xnor" => 0.4 * width("Y"),
        "$mux" => 0.5 * width("Y"),
        "$pmux" => 0.5 * width("B"),
        "$bmux" => 0.34 * width("A"),
        "$demux" => 0.5 * width("Y"),
        "$bwmux" | "$add" | "$sub" | "$neg" => width("Y"),
        "$eq" | "$ne" | "$eqx" | "$nex" => width("A").max(width("B")) / 3.0,
        "$lt" | "$le" | "$gt" | "$ge" => width("A").max(width("B")) / 2.0,
        "$logic_and" | "$logic_or" => 0.5,
        "$reduce_and" | "$reduce_or" | "$reduce_bool" | "$reduce_xor" | "$reduce_xnor" => {
            width("A") / 5.0
        }
        "$shl" | "$shr" | "$sshl" | "$sshr" => 0.5 * width("Y") * width("B").min(8.0),
        "$shift" | "$shiftx" => 0.34 * width("A"),
        // Distributed memory: 64 words a LUT for each bit.
        "$memrd_v2" if Kind::of(cell) == Kind::Read => width("DATA") * words(cell) / 64.0,
        _ => 0.0,
    }
}

/// Words of a small memory; a large one is block RAM.
fn words(cell: &Cell<'_>) -> f64 {
    let bits = cell.number("ABITS").min(12);
    if bits > 9 { 0.0 } else { f64::from(1_u32 << bits).max(32.0) }
}

/// LUTs after synthesis for one of the netlist: the median of the measured modules. Synthesis
/// absorbs enables and resets into registers, and folds constants.
fn scale(table: &Table, cells: &BTreeMap<&str, f64>) -> f64 {
    let large = |row: &&Block| cells.get(row.name.as_str()).is_some_and(|cells| *cells > 500.0);
    let rows = table.block.iter().filter(|row| row.own.lut > 0).filter(large);
    let mut ratios: Vec<f64> =
        rows.map(|row| row.own.lut as f64 / cells[row.name.as_str()]).collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(WITHOUT_ROWS)
}

/// The check, and the estimate.
pub(crate) fn check(design: &Design<'_>) -> (u64, Check) {
    let table: Table = toml::from_str(TABLE).unwrap_or(Table { block: Vec::new() });
    let stem = |src: &str| {
        let place = design.elaborated.place(src);
        place.map(|(path, _)| shef_project::stem(path)).unwrap_or_default()
    };
    // Instances of the modules with a row, by the names of their wires.
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    let mut instances: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for wire in &design.netlist.wires {
        if wire.path.is_empty() || wire.src.is_empty() {
            continue;
        }
        let file = wire.src.split(':').next().unwrap_or_default();
        let module = files.entry(file).or_insert_with(|| stem(wire.src));
        if let Some(instance) = instance(wire.path) {
            match instances.get_mut(module) {
                Some(own) => drop(own.insert(instance)),
                None => drop(instances.insert(module.clone(), [instance].into())),
            }
        }
    }
    // The user's accelerator: everything whose instances are all inside of it.
    let accelerators = instances.get(ACCELERATOR).cloned().unwrap_or_default();
    let inside = |module: &str| {
        instances.get(module).is_some_and(|all| {
            all.iter().all(|path| accelerators.iter().any(|own| path.starts_with(own)))
        })
    };
    let mut sum = 0.0;
    let mut measured: BTreeSet<&str> = BTreeSet::new();
    for row in &table.block {
        let Some(found) = instances.get(&row.name) else { continue };
        measured.insert(&row.name);
        // A block that the default design lacks has its sub-blocks in `whole`, few of them.
        let one = match row.instances {
            0 => row.whole.lut as f64,
            n => row.own.lut as f64 / n as f64,
        };
        sum += one * found.len() as f64;
    }
    let rows = sum;
    // Cells of each module, as the netlist has them.
    let mut cells: BTreeMap<&str, f64> = BTreeMap::new();
    for cell in &design.netlist.cells {
        let file = cell.src.split(':').next().unwrap_or_default();
        if let Some(module) = files.get(file) {
            *cells.entry(module).or_default() += luts(design.netlist, cell);
        }
    }
    let scale = scale(&table, &cells);
    for (module, cells) in cells {
        // A package's functions count in the rows of the modules that call them, and the processor
        // in that of the subsystem.
        let counted = measured.contains(module)
            || module.ends_with("_pkg")
            || module.starts_with("ibex_")
            || module.starts_with("prim_")
            || inside(module);
        if !counted {
            sum += scale * cells;
        }
    }
    let share = sum / f64::from(DEVICE_LUTS);
    let mut findings = Vec::new();
    if share > LARGEST_SHARE {
        let what = format!(
            "{sum:.0} LUT are {:.1} % of a VU47P: expected at most {:.0} %",
            share * 100.0,
            LARGEST_SHARE * 100.0
        );
        findings.push(Finding { place: String::new(), what });
    }
    let looked =
        format!("{sum:.0} LUT, {:.1} % of a VU47P, {rows:.0} of them by synthesis", share * 100.0);
    (sum as u64, checked("size", "SHEF-NET-116", looked, findings))
}

/// The instance that contains a wire, without generate blocks and functions inside it.
fn instance(path: &str) -> Option<&str> {
    let mut end = None;
    let mut at = 0;
    for part in path.split(' ') {
        let after = at + part.len();
        if part.starts_with("u_") || part.ends_with("_i") {
            end = Some(after);
        }
        at = after + 1;
    }
    // The last part is the wire itself.
    end.filter(|end| *end < path.len()).map(|end| &path[..end])
}
