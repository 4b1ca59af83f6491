//! `cargo xtask area`: the size of each block on UltraScale+ as estimated by yosys, and relative
//! Fmax of the critical ones.
//!
//! The Shield of the digits accelerator is elaborated once with its hierarchy kept. Each distinct
//! module is synthesized alone, with its submodules as black boxes. The result is cached by
//! content; the size of a block is the sum over its hierarchy. Nothing is optimized across module
//! boundaries, so the sums are slightly high, and every step is short. The Shield without card
//! memory has its own row, as do the Shield, its engine set and an AES round with S-boxes in block
//! RAM. The DMA engine is elaborated as used next to that Shield, the Security Kernel's subsystem
//! with its processor and with what joins it to a design. Fmax is measured on the flattened block
//! with nextpnr-ecp5, without routing and with a register at each port: it is for comparison, not a
//! figure for UltraScale+ (which is 2.2 to 2.5 times faster).
//!
//! `shell-rtl/area.toml` keeps the figures with the digest of each block's sources. The normal test
//! fails on a stale digest.

mod design;
mod sources;

use crate::process::{Context, Result, ensure};
use crate::{lint, root, tools};
use design::Design;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use sources::{ENGINE, Sources, in_kernel};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const TABLE: &str = "shell-rtl/area.toml";
const TOP: &str = "shef_shield";
/// Contains the DMA engine, whose blocks have separate rows.
const ENGINE_TOP: &str = "shef_dma_core";
/// The Security Kernel's subsystem; its processor counts in the row `shef_kernel_core`.
const KERNEL_TOP: &str = "shef_kernel";

/// A separate row for a block as it is in another Shield or with another parameter.
struct Variant {
    row: &'static str,
    block: &'static str,
    accelerator: &'static str,
    /// Arguments of the front end.
    more: &'static str,
    /// The Shield with its S-boxes in block RAM, as `[synthesis] sbox = "ram"` makes it.
    sbox_ram: bool,
}

const DIGITS: Variant =
    Variant { row: "", block: TOP, accelerator: "digits", more: "", sbox_ram: false };
const VARIANTS: &[Variant] = &[
    Variant {
        row: "shef_aes_stage, S-boxes in RAM",
        block: "shef_aes_stage",
        more: "-G SboxRam=1",
        ..DIGITS
    },
    Variant { row: "shef_set, S-boxes in RAM", block: "shef_set", sbox_ram: true, ..DIGITS },
    Variant { row: "shef_shield, S-boxes in RAM", sbox_ram: true, ..DIGITS },
    Variant { row: "shef_shield, no memory", accelerator: "hotp", ..DIGITS },
];
/// Blocks missing from the default Shield, measured with their default parameters.
const MORE: &str = "\
     shef_acc_gate shef_sweep shef_tree shef_cache shef_counters shef_turn shef_skid \
     shef_no_memory shef_aes_sbox_ram";
/// Blocks without a row: they hold the user's accelerator, or are empty because the measured
/// designs have no `tree` regions.
const NO_ROW: &[&str] = &["shef_core", ENGINE_TOP, "shef_tree_ahead", "shef_system"];
/// Blocks whose Fmax is measured.
const CRITICAL: &str = "\
     shef_aes_stage shef_ghash shef_lookup shef_tags shef_split shef_seal shef_tree shef_gcm_iter \
     shef_p256 shef_hmac shef_seq shef_dma_align shef_dma_reader shef_dma_work shef_kernel_core";
/// A figure that is worse by more than this many percent is a failure.
const TOLERANCE: f64 = 5.0;
/// Differences of up to this many cells are noise of the mapper.
const NOISE: f64 = 32.0;
/// The sum of several blocks.
struct Sum {
    name: &'static str,
    blocks: &'static [&'static str],
    /// Upper limit.
    lut: u64,
}

/// A second engine set also needs a demultiplexer before it, which a Shield with one set lacks: no
/// sum includes it.
const SUMS: &[Sum] = &[
    Sum { name: "engine set, four lanes", blocks: &["shef_set"], lut: 85_000 },
    Sum { name: "Shield, one engine set", blocks: &[TOP], lut: 140_000 },
    Sum { name: "Shield, two engine sets", blocks: &[TOP, "shef_set"], lut: 190_000 },
    Sum {
        name: "the same, S-boxes in RAM",
        blocks: &["shef_shield, S-boxes in RAM", "shef_set, S-boxes in RAM"],
        lut: 140_000,
    },
    Sum { name: "Shield, no card memory", blocks: &["shef_shield, no memory"], lut: 20_000 },
    Sum { name: "Security Kernel", blocks: &[KERNEL_TOP], lut: 15_000 },
];

#[derive(clap::Args)]
pub struct Args {
    /// Only these blocks
    blocks: Vec<String>,
    /// Also fresh rows
    #[arg(long)]
    again: bool,
    /// Write the table even if a figure got worse
    #[arg(long)]
    accept: bool,
    /// Leave Fmax as it is
    #[arg(long)]
    no_fmax: bool,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// Cells of one block.
#[derive(Clone, Copy, Default, Serialize, Deserialize, PartialEq)]
struct Size {
    lut: u64,
    ff: u64,
    lutram: u64,
    ramb36: f64,
    uram: u64,
    dsp: u64,
}

impl Size {
    /// Adds `n` times this size.
    fn add(&mut self, n: u64, o: &Self) {
        self.lut += n * o.lut;
        self.ff += n * o.ff;
        self.lutram += n * o.lutram;
        self.ramb36 += n as f64 * o.ramb36;
        self.uram += n * o.uram;
        self.dsp += n * o.dsp;
    }

    fn figures(&self) -> [(&'static str, f64); 6] {
        let whole = [("LUT", self.lut), ("FF", self.ff), ("LUTRAM", self.lutram)];
        let [lut, ff, lutram] = whole.map(|(name, n)| (name, n as f64));
        let (uram, dsp) = (self.uram as f64, self.dsp as f64);
        [lut, ff, lutram, ("RAMB36", self.ramb36), ("URAM", uram), ("DSP", dsp)]
    }

    /// The columns of the printed table.
    fn columns(&self) -> String {
        let Self { lut, ff, lutram, ramb36, uram, dsp } = self;
        format!("{lut:>8} {ff:>8} {lutram:>7} {ramb36:>7.1} {uram:>5} {dsp:>5}")
    }

    /// The size as TOML.
    fn toml(&self) -> String {
        let Self { lut, ff, lutram, ramb36, uram, dsp } = self;
        format!(
            "{{ lut = {lut}, ff = {ff}, lutram = {lutram}, ramb36 = {ramb36:.1}, uram = {uram}, \
             dsp = {dsp} }}"
        )
    }
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    name: String,
    /// Digest of the block's sources and all they use.
    sources: String,
    /// In the default Shield, or in the DMA engine beside it; 0: not part of it, and synthesised
    /// with its default parameters.
    instances: u64,
    /// Relative Fmax in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ecp5_mhz: Option<f64>,
    /// The largest instance with all that is inside.
    whole: Size,
    /// All instances without their sub-blocks: this column sums to the Shield.
    own: Size,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    block: Vec<Block>,
}

impl Table {
    fn row(&self, name: &str) -> Option<&Block> {
        self.block.iter().find(|block| block.name == name)
    }
}

/// The measured designs.
struct Designs {
    shield_sources: Sources,
    kernel_sources: Sources,
    shield: Design,
    engine: Design,
    kernel: Design,
}

impl Designs {
    fn elaborate(shield_sources: Sources, kernel_sources: Sources) -> Result<Self> {
        let yosys = tools::yosys()?;
        let more: String = MORE.split_whitespace().map(|m| format!(" --top {m}")).collect();
        let joint = " --top shef_system_gate --top shef_system_life --top shef_cfg_fixed";
        Ok(Self {
            shield: Design::elaborate(&yosys, &shield_sources, TOP, &more)?,
            engine: Design::elaborate(&yosys, &shield_sources, ENGINE_TOP, "")?,
            kernel: Design::elaborate(&yosys, &kernel_sources, KERNEL_TOP, joint)?,
            shield_sources,
            kernel_sources,
        })
    }

    fn of_engine(&self, name: &str) -> bool {
        let file = self.shield_sources.files.get(name);
        file.is_some_and(|(path, _)| path.starts_with(ENGINE))
    }

    fn of_kernel(&self, name: &str) -> bool {
        let file = self.kernel_sources.files.get(name);
        name.starts_with("shef_") && file.is_some_and(|(path, _)| in_kernel(path))
    }

    /// Names of all rows, in the order of the table.
    fn rows(&self) -> impl Iterator<Item = String> {
        let engine = self.engine.names("shef_dma").into_iter();
        let engine = engine.filter(|name| self.of_engine(name) && name != ENGINE_TOP);
        let kernel = self.kernel.names(KERNEL_TOP).into_iter();
        let kernel = kernel.filter(|name| self.of_kernel(name));
        let variants = VARIANTS.iter().map(|variant| variant.row.to_owned());
        self.shield.names(TOP).into_iter().chain(engine).chain(kernel).chain(variants)
    }

    /// The design that contains a block, and its sources.
    fn of(&self, name: &str) -> (&Design, &Sources) {
        if self.of_engine(name) {
            (&self.engine, &self.shield_sources)
        } else if self.of_kernel(name) {
            (&self.kernel, &self.kernel_sources)
        } else {
            (&self.shield, &self.shield_sources)
        }
    }

    /// Measures a row, unless it is up to date.
    fn measured(&self, name: &str, before: Option<&Block>, args: &Args) -> Result<Option<Block>> {
        let (design, sources) = self.of(name);
        let variant = VARIANTS.iter().find(|v| v.row == name);
        let digest = variant.map_or_else(|| Ok(sources.digest(name)), Variant::digest)?;
        let chosen = args.blocks.is_empty() || args.blocks.iter().any(|block| block == name);
        if !chosen || !args.again && before.is_some_and(|b| b.sources == digest) {
            return Ok(None);
        }
        let mut new = match variant {
            None => design.block(name, digest)?,
            Some(v) => {
                let top = if v.sbox_ram { TOP } else { v.block };
                let other = Design::elaborate(&design.yosys, &v.sources()?, top, v.more)?;
                Block { name: name.to_owned(), ..other.block(v.block, digest)? }
            }
        };
        new.ecp5_mhz = before.and_then(|b| b.ecp5_mhz);
        if CRITICAL.split_whitespace().any(|critical| critical == name) && !args.no_fmax {
            new.ecp5_mhz = Some(design.fmax(name)?);
        }
        Ok(Some(new))
    }
}

/// The command.
pub fn run(args: &Args) -> Result<()> {
    let (sources, kernel_sources) = (Sources::load(lint::ACCELERATORS[0])?, Sources::kernel()?);
    let unknown = args.blocks.iter().filter(|block| {
        !sources.files.contains_key(*block)
            && !kernel_sources.files.contains_key(*block)
            && VARIANTS.iter().all(|variant| variant.row != **block)
    });
    let unknown: Vec<&String> = unknown.collect();
    ensure!(unknown.is_empty(), "no module {unknown:?} under shell-rtl/rtl");
    let old = load()?;
    let designs = Designs::elaborate(sources, kernel_sources)?;
    let mut table = Table::default();
    let mut worse = Vec::new();
    for name in designs.rows() {
        let before = old.row(&name);
        let Some(new) = designs.measured(&name, before, args)? else {
            table.block.extend(before.cloned());
            continue;
        };
        let complaints = before.map(|b| complaints(b, &new)).unwrap_or_default();
        let keep = complaints.is_empty() || args.accept;
        table.block.extend(if keep { Some(new) } else { before.cloned() });
        worse.extend(complaints);
        // Finished rows are saved, even if the command is stopped.
        let done: BTreeSet<&str> = table.block.iter().map(|b| b.name.as_str()).collect();
        let rest = old.block.iter().filter(|b| !done.contains(b.name.as_str())).cloned();
        save(&Table { block: table.block.iter().cloned().chain(rest).collect() })?;
    }
    save(&table)?;
    print(&table, args.json);
    ensure!(
        worse.is_empty() || args.accept,
        "{}\n`cargo xtask area --accept` if this increase is intended",
        worse.join("\n")
    );
    Ok(())
}

/// The watched rows of the table that do not match the current sources, as a message.
pub fn stale() -> Result<Option<String>> {
    let (shield, kernel) = (Sources::load(lint::ACCELERATORS[0])?, Sources::kernel()?);
    let table = load()?;
    // A table with a row for the whole Shield has a row for each of its blocks.
    let complete = table.row(TOP).is_some();
    let blocks = shield.watched(|_| true).map(|name| (&shield, name));
    let blocks = blocks.chain(kernel.watched(in_kernel).map(|name| (&kernel, name)));
    let mut stale = Vec::new();
    for (sources, name) in blocks.filter(|(_, name)| !NO_ROW.contains(name)) {
        match table.row(name) {
            Some(block) if block.sources == sources.digest(name) => {}
            Some(_) => stale.push(format!("{name}: its sources changed")),
            None if complete => stale.push(format!("{name}: not in the table")),
            None => {}
        }
    }
    for variant in VARIANTS {
        let digest = variant.digest()?;
        if table.row(variant.row).is_some_and(|block| block.sources != digest) {
            stale.push(format!("{}: its sources changed", variant.row));
        }
    }
    let message = format!("{TABLE} is stale; run `cargo xtask area`\n{}", stale.join("\n"));
    Ok((!stale.is_empty()).then_some(message))
}

fn load() -> Result<Table> {
    toml::from_str(&fs::read_to_string(root().join(TABLE))?).context(TABLE)
}

fn save(table: &Table) -> Result<()> {
    let mut text = String::from(
        "# Written by `cargo xtask area`. Size on UltraScale+ by yosys (each module alone, its sub-blocks as black boxes, summed up), Fmax by nextpnr-ecp5\n# before routing, to compare with. `whole` is the largest instance with all that is inside, `own` are all instances without their sub-blocks.\n",
    );
    for Block { name, sources, instances, ecp5_mhz, whole, own } in &table.block {
        let _ = writeln!(
            text,
            "\n[[block]]\nname = \"{name}\"\nsources = \"{sources}\"\ninstances = {instances}"
        );
        if let Some(mhz) = ecp5_mhz {
            let _ = writeln!(text, "ecp5_mhz = {mhz:.1}");
        }
        let _ = writeln!(text, "whole = {}\nown = {}", whole.toml(), own.toml());
    }
    Ok(fs::write(root().join(TABLE), text)?)
}

/// The sums whose blocks are all in the table.
fn sums(table: &Table) -> Vec<(&'static Sum, Size)> {
    let sum = |sum: &'static Sum| {
        let mut size = Size::default();
        for name in sum.blocks {
            size.add(1, &table.row(name)?.whole);
        }
        Some((sum, size))
    };
    SUMS.iter().filter_map(sum).collect()
}

fn print(table: &Table, json: bool) {
    let sums = sums(table);
    if json {
        let sum = |(sum, size): &(&Sum, Size)| serde_json::json!({ "name": sum.name, "size": size, "wanted_lut": sum.lut });
        let sums: Vec<_> = sums.iter().map(sum).collect();
        println!("{}", serde_json::json!({ "rows": table.block, "sums": sums }));
        return;
    }
    println!(
        "{:<30} {:>4} {:>8} {:>8} {:>7} {:>7} {:>5} {:>5} {:>9} {:>8}",
        "block", "n", "LUT", "FF", "LUTRAM", "RAMB36", "URAM", "DSP", "own LUT", "ECP5 MHz"
    );
    for Block { name, instances, ecp5_mhz, whole, own, .. } in &table.block {
        let mhz = ecp5_mhz.map(|mhz| format!("{mhz:.1}")).unwrap_or_default();
        println!("{name:<30} {instances:>4} {} {:>9} {mhz:>8}", whole.columns(), own.lut);
    }
    for (Sum { name, lut, .. }, size) in sums {
        println!("{name:<35} {}   LUT wanted: at most {lut}", size.columns());
    }
}

fn complaints(old: &Block, new: &Block) -> Vec<String> {
    let mut all = Vec::new();
    for ((what, o), (_, n)) in old.whole.figures().into_iter().zip(new.whole.figures()) {
        let noise = if what == "LUT" || what == "FF" { NOISE } else { 0.0 };
        if n > o * (1.0 + TOLERANCE / 100.0) && n - o > noise {
            all.push(format!("{}: {what} {o} -> {n}", old.name));
        }
    }
    if let (Some(o), Some(n)) = (old.ecp5_mhz, new.ecp5_mhz)
        && n < o * (1.0 - TOLERANCE / 100.0)
    {
        all.push(format!("{}: {o:.1} MHz -> {n:.1} MHz", old.name));
    }
    all
}

impl Variant {
    fn sources(&self) -> Result<Sources> {
        let mut sources = Sources::load(self.accelerator)?;
        if self.sbox_ram {
            sources.put_sboxes_into_ram()?;
        }
        Ok(sources)
    }

    fn digest(&self) -> Result<String> {
        Ok(self.sources()?.digest(self.block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lut: u64, mhz: Option<f64>) -> Block {
        let whole = Size { lut, ..Size::default() };
        let (name, sources) = ("b".into(), String::new());
        Block { name, sources, instances: 1, ecp5_mhz: mhz, whole, own: whole }
    }

    #[test]
    fn more_than_five_percent_is_reported_with_both_numbers() {
        assert!(complaints(&block(1000, None), &block(1050, None)).is_empty());
        assert_eq!(complaints(&block(1000, None), &block(1051, None)), ["b: LUT 1000 -> 1051"]);
        assert!(complaints(&block(100, None), &block(130, None)).is_empty());
        assert_eq!(
            complaints(&block(1, Some(100.0)), &block(1, Some(94.9))),
            ["b: 100.0 MHz -> 94.9 MHz"]
        );
    }

    #[test]
    fn sums_are_made_of_whole_blocks_and_left_out_while_one_is_missing() {
        let named = |name: &str, lut| Block { name: name.into(), ..block(lut, None) };
        let mut table = Table { block: vec![named("shef_set", 70)] };
        let luts = |t: &Table| sums(t).iter().map(|(_, size)| size.lut).collect::<Vec<_>>();
        assert_eq!(luts(&table), [70]);
        table.block.push(named(TOP, 100));
        assert_eq!(luts(&table), [70, 100, 170]);
    }
}
