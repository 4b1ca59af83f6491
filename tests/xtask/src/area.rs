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

use crate::lint;
use crate::process::{self, Failure, say};
use crate::{root, tools};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

const TABLE: &str = "shell-rtl/area.toml";
const TOP: &str = "shef_shield";
/// Contains the DMA engine, whose blocks have separate rows.
const ENGINE_TOP: &str = "shef_dma_core";
const ENGINE: &str = "shell-rtl/rtl/dma";
/// The Security Kernel's subsystem; its processor counts in the row `shef_kernel_core`.
const KERNEL_TOP: &str = "shef_kernel";
const ROM: &str = "shef_kernel_rom_pkg";
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

const VARIANTS: &[Variant] = &[
    Variant {
        row: "shef_aes_stage, S-boxes in RAM",
        block: "shef_aes_stage",
        accelerator: "digits",
        more: "-G SboxRam=1",
        sbox_ram: false,
    },
    Variant {
        row: "shef_set, S-boxes in RAM",
        block: "shef_set",
        accelerator: "digits",
        more: "",
        sbox_ram: true,
    },
    Variant {
        row: "shef_shield, S-boxes in RAM",
        block: TOP,
        accelerator: "digits",
        more: "",
        sbox_ram: true,
    },
    Variant {
        row: "shef_shield, no memory",
        block: TOP,
        accelerator: "hotp",
        more: "",
        sbox_ram: false,
    },
];
/// Blocks missing from the default Shield, measured with their default parameters.
const MORE: &[&str] = &[
    "shef_acc_gate",
    "shef_sweep",
    "shef_tree",
    "shef_cache",
    "shef_counters",
    "shef_turn",
    "shef_skid",
    "shef_no_memory",
    "shef_aes_sbox_ram",
];
/// Blocks without a row: they hold the user's accelerator, or are empty because the measured
/// designs have no `tree` regions.
const NO_ROW: &[&str] = &["shef_core", ENGINE_TOP, "shef_tree_ahead", "shef_system"];
/// Blocks whose Fmax is measured.
const CRITICAL: &[&str] = &[
    "shef_aes_stage",
    "shef_ghash",
    "shef_lookup",
    "shef_tags",
    "shef_split",
    "shef_seal",
    "shef_tree",
    "shef_gcm_iter",
    "shef_p256",
    "shef_hmac",
    "shef_seq",
    "shef_dma_align",
    "shef_dma_reader",
    "shef_dma_work",
    "shef_kernel_core",
];
/// A figure that is worse by more than this many percent is a failure.
const TOLERANCE: f64 = 5.0;
/// Differences of up to this many cells are noise of the mapper.
const NOISE: f64 = 32.0;
/// Folders whose rows the normal test compares with their sources.
const WATCHED: &[&str] = &[
    "shell-rtl/rtl/crypto",
    "shell-rtl/rtl/shield",
    "shell-rtl/rtl/core",
    ENGINE,
    lint::KERNEL,
    lint::SYSTEM,
];
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
    fn add(&mut self, o: &Self) {
        self.lut += o.lut;
        self.ff += o.ff;
        self.lutram += o.lutram;
        self.ramb36 += o.ramb36;
        self.uram += o.uram;
        self.dsp += o.dsp;
    }

    fn figures(&self) -> [(&'static str, f64); 6] {
        let n = |x: u64| x as f64;
        [
            ("LUT", n(self.lut)),
            ("FF", n(self.ff)),
            ("LUTRAM", n(self.lutram)),
            ("RAMB36", self.ramb36),
            ("URAM", n(self.uram)),
            ("DSP", n(self.dsp)),
        ]
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
    #[serde(default)]
    block: Vec<Block>,
}

/// The command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let sources = Sources::load(lint::ACCELERATORS[0])?;
    let kernel_sources = Sources::kernel()?;
    let old = load()?;
    let known = |b: &String| {
        sources.files.contains_key(b)
            || kernel_sources.files.contains_key(b)
            || VARIANTS.iter().any(|v| v.row == b)
    };
    let unknown: Vec<&String> = args.blocks.iter().filter(|b| !known(b)).collect();
    if !unknown.is_empty() {
        return Err(Failure::failed(format!("no module {unknown:?} under shell-rtl/rtl")));
    }
    let yosys = tools::ensure_yosys(&root(), &say)?;
    let more: String = MORE
        .iter()
        .filter(|m| sources.files.contains_key(**m))
        .map(|m| format!(" --top {m}"))
        .collect();
    let shield = Design::elaborate(&yosys, &sources, TOP, &more)?;
    let engine = Design::elaborate(&yosys, &sources, ENGINE_TOP, "")?;
    let joint = " --top shef_system_gate --top shef_system_life --top shef_cfg_fixed";
    let kernel = Design::elaborate(&yosys, &kernel_sources, KERNEL_TOP, joint)?;
    let of_engine =
        |name: &str| sources.files.get(name).is_some_and(|(path, _)| path.starts_with(ENGINE));
    let of_kernel = |name: &str| {
        kernel_sources
            .files
            .get(name)
            .is_some_and(|(path, _)| name.starts_with("shef_") && in_kernel(path))
    };
    let rows = shield.names(TOP).into_iter();
    let rows = rows
        .chain(engine.names("shef_dma").into_iter().filter(|n| of_engine(n) && n != ENGINE_TOP));
    let rows = rows.chain(kernel.names(KERNEL_TOP).into_iter().filter(|n| of_kernel(n)));
    let mut table = Table::default();
    let mut worse = Vec::new();
    for name in rows.chain(VARIANTS.iter().map(|v| v.row.to_owned())) {
        let (design, sources) = if of_engine(&name) {
            (&engine, &sources)
        } else if of_kernel(&name) {
            (&kernel, &kernel_sources)
        } else {
            (&shield, &sources)
        };
        let variant = VARIANTS.iter().find(|v| v.row == name);
        let before = old.block.iter().find(|b| b.name == name);
        let digest = variant.map_or_else(|| Ok(sources.digest(&name)), Variant::digest)?;
        let chosen = args.blocks.is_empty() || args.blocks.contains(&name);
        let stale = args.again || before.is_none_or(|b| b.sources != digest);
        if !chosen || !stale {
            table.block.extend(before.cloned());
            continue;
        }
        let mut new = match variant {
            None => design.block(&yosys, &name, digest)?,
            Some(v) => {
                let top = if v.sbox_ram { TOP } else { v.block };
                let other = Design::elaborate(&yosys, &v.sources()?, top, v.more)?;
                Block { name: name.clone(), ..other.block(&yosys, v.block, digest)? }
            }
        };
        new.ecp5_mhz = before.and_then(|b| b.ecp5_mhz);
        if CRITICAL.contains(&name.as_str()) && !args.no_fmax {
            new.ecp5_mhz = Some(design.fmax(&yosys, &name)?);
        }
        let complaints = before.map(|b| complaints(b, &new)).unwrap_or_default();
        if complaints.is_empty() || args.accept {
            table.block.push(new);
        } else {
            table.block.extend(before.cloned());
        }
        worse.extend(complaints);
        // Finished rows are kept, even if the command is stopped.
        let done: BTreeSet<&str> = table.block.iter().map(|b| b.name.as_str()).collect();
        let rest = old.block.iter().filter(|b| !done.contains(b.name.as_str())).cloned();
        save(&Table { block: table.block.iter().cloned().chain(rest).collect() })?;
    }
    save(&table)?;
    print(&table, args.json);
    if worse.is_empty() || args.accept {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{}\n`cargo xtask area --accept` if this increase is intended",
        worse.join("\n")
    )))
}

fn in_kernel(path: &Path) -> bool {
    path.starts_with(lint::KERNEL) || path.starts_with(lint::SYSTEM)
}

/// Every watched row of the table matches the current sources.
pub fn fresh() -> Result<(), Failure> {
    let sources = Sources::load(lint::ACCELERATORS[0])?;
    let kernel = Sources::kernel()?;
    let table = load()?;
    // A table with a row for the whole Shield has a row for each of its blocks.
    let complete = table.block.iter().any(|b| b.name == TOP);
    let mut stale = Vec::new();
    let of_kernel = kernel
        .files
        .iter()
        .filter(|(_, (path, _))| in_kernel(path))
        .map(|(name, (path, _))| (&kernel, name, path));
    for (sources, name, path) in
        sources.files.iter().map(|(name, (path, _))| (&sources, name, path)).chain(of_kernel)
    {
        if !name.starts_with("shef_")
            || name.ends_with("_pkg")
            || NO_ROW.contains(&name.as_str())
            || !WATCHED.iter().any(|w| path.starts_with(w))
            || sources.leaves_watched(name)
        {
            continue;
        }
        match table.block.iter().find(|b| b.name == *name) {
            Some(b) if b.sources == sources.digest(name) => {}
            Some(_) => stale.push(format!("{name}: its sources changed")),
            None if complete => stale.push(format!("{name}: not in the table")),
            None => {}
        }
    }
    for v in VARIANTS {
        let digest = v.digest()?;
        if table.block.iter().any(|b| b.name == v.row && b.sources != digest) {
            stale.push(format!("{}: its sources changed", v.row));
        }
    }
    if stale.is_empty() {
        Ok(())
    } else {
        Err(Failure::failed(format!(
            "{TABLE} is stale; run `cargo xtask area`\n{}",
            stale.join("\n")
        )))
    }
}

fn load() -> Result<Table, Failure> {
    let path = root().join(TABLE);
    if !path.exists() {
        return Ok(Table::default());
    }
    let text =
        std::fs::read_to_string(&path).map_err(|e| Failure::failed(format!("{TABLE}: {e}")))?;
    toml::from_str(&text).map_err(|e| Failure::failed(format!("{TABLE}: {e}")))
}

fn save(table: &Table) -> Result<(), Failure> {
    let mut text = String::from(
        "# Written by `cargo xtask area`. Size on UltraScale+ by yosys (each module alone, its sub-blocks as black boxes, summed up), Fmax by nextpnr-ecp5\n# before routing, to compare with. `whole` is the largest instance with all that is inside, `own` are all instances without their sub-blocks.\n",
    );
    let line = |s: &Size| {
        format!(
            "{{ lut = {}, ff = {}, lutram = {}, ramb36 = {:.1}, uram = {}, dsp = {} }}",
            s.lut, s.ff, s.lutram, s.ramb36, s.uram, s.dsp
        )
    };
    for b in &table.block {
        let _ = write!(
            text,
            "\n[[block]]\nname = \"{}\"\nsources = \"{}\"\ninstances = {}\n",
            b.name, b.sources, b.instances
        );
        if let Some(mhz) = b.ecp5_mhz {
            let _ = writeln!(text, "ecp5_mhz = {mhz:.1}");
        }
        let _ = writeln!(text, "whole = {}\nown = {}", line(&b.whole), line(&b.own));
    }
    std::fs::write(root().join(TABLE), text).map_err(|e| Failure::failed(format!("{TABLE}: {e}")))
}

/// The sums whose blocks are all in the table.
fn sums(table: &Table) -> Vec<(&'static Sum, Size)> {
    let mut all = Vec::new();
    for sum in SUMS {
        let blocks: Vec<&Block> =
            sum.blocks.iter().filter_map(|n| table.block.iter().find(|b| b.name == *n)).collect();
        if blocks.len() == sum.blocks.len() {
            let mut size = Size::default();
            blocks.iter().for_each(|b| size.add(&b.whole));
            all.push((sum, size));
        }
    }
    all
}

fn print(table: &Table, json: bool) {
    let sums = sums(table);
    if json {
        let sums: Vec<_> =
            sums.iter().map(|(sum, size)| serde_json::json!({ "name": sum.name, "size": size, "wanted_lut": sum.lut })).collect();
        println!("{}", serde_json::json!({ "rows": table.block, "sums": sums }));
        return;
    }
    println!(
        "{:<30} {:>4} {:>8} {:>8} {:>7} {:>7} {:>5} {:>5} {:>9} {:>8}",
        "block", "n", "LUT", "FF", "LUTRAM", "RAMB36", "URAM", "DSP", "own LUT", "ECP5 MHz"
    );
    for b in &table.block {
        let w = &b.whole;
        let mhz = b.ecp5_mhz.map(|m| format!("{m:.1}")).unwrap_or_default();
        println!(
            "{:<30} {:>4} {:>8} {:>8} {:>7} {:>7.1} {:>5} {:>5} {:>9} {mhz:>8}",
            b.name, b.instances, w.lut, w.ff, w.lutram, w.ramb36, w.uram, w.dsp, b.own.lut
        );
    }
    for (sum, w) in sums {
        println!(
            "{:<35} {:>8} {:>8} {:>7} {:>7.1} {:>5} {:>5}   LUT wanted: at most {}",
            sum.name, w.lut, w.ff, w.lutram, w.ramb36, w.uram, w.dsp, sum.lut
        );
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
    fn sources(&self) -> Result<Sources, Failure> {
        let mut sources = Sources::load(self.accelerator)?;
        if self.sbox_ram {
            sources.put_sboxes_into_ram()?;
        }
        Ok(sources)
    }

    fn digest(&self) -> Result<String, Failure> {
        Ok(self.sources()?.digest(self.block))
    }
}

/// The RTL as text.
struct Sources {
    /// Path and text by module or package name.
    files: BTreeMap<String, (PathBuf, String)>,
    order: Vec<PathBuf>,
    /// Arguments of the front end, and sources that are not ours.
    more: String,
}

impl Sources {
    fn load(accelerator: &str) -> Result<Self, Failure> {
        Self::read(lint::shipped(accelerator)?, String::new())
    }

    /// The Security Kernel's subsystem, and what joins it to a design.
    fn kernel() -> Result<Self, Failure> {
        let mut order = lint::kernel()?;
        order.extend(
            lint::sources(&[lint::SYSTEM])?.into_iter().filter(|p| !p.ends_with("shef_system.sv")),
        );
        Self::read(order, lint::processor(&tools::ensure_ibex(&root(), &say)?))
    }

    fn read(order: Vec<PathBuf>, more: String) -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for path in &order {
            let text = std::fs::read_to_string(root().join(path))
                .map_err(|e| Failure::failed(format!("{}: {e}", path.display())))?;
            let name =
                path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            files.insert(name, (path.clone(), text));
        }
        Ok(Self { files, order, more })
    }

    /// The configuration with the other kind of S-boxes, in a separate file.
    fn put_sboxes_into_ram(&mut self) -> Result<(), Failure> {
        let (old, new) = ("SBOX_RAM = 1'b0;", "SBOX_RAM = 1'b1;");
        let found = self.files.get_mut("shef_cfg_pkg").filter(|(_, text)| text.contains(old));
        let Some((path, text)) = found else {
            return Err(Failure::failed(format!("no `{old}` in shef_cfg_pkg")));
        };
        let other = PathBuf::from("target/area/shef_cfg_pkg.sv");
        *text = text.replace(old, new);
        let to = root().join(&other);
        std::fs::create_dir_all(root().join("target/area"))
            .map_err(|e| Failure::failed(format!("target/area: {e}")))?;
        std::fs::write(&to, &*text)
            .map_err(|e| Failure::failed(format!("{}: {e}", to.display())))?;
        self.order.iter_mut().filter(|p| *p == path).for_each(|p| p.clone_from(&other));
        *path = other;
        Ok(())
    }

    /// `name` and all modules and packages that it uses, directly or not.
    fn closure(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut todo = vec![name];
        while let Some(n) = todo.pop() {
            let Some((key, (_, text))) = self.files.get_key_value(n) else { continue };
            if !found.insert(key.as_str()) {
                continue;
            }
            todo.extend(
                code(text)
                    .flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_'))
                    .filter(|w| w.starts_with("shef_")),
            );
        }
        found
    }

    /// Digest of the code of a block and all below it; comments, line breaks and the boot ROM's program
    /// do not count.
    fn digest(&self, name: &str) -> String {
        let mut hash = Sha256::new();
        for n in self.closure(name).into_iter().filter(|n| *n != ROM) {
            hash.update(n);
            for word in code(&self.files[n].1).flat_map(str::split_whitespace) {
                hash.update([0]);
                hash.update(word);
            }
        }
        hex::encode(&hash.finalize()[..16])
    }

    /// Whether the block uses a block of a folder that is not watched.
    fn leaves_watched(&self, name: &str) -> bool {
        self.closure(name).iter().any(|n| {
            !n.ends_with("_pkg") && !WATCHED.iter().any(|w| self.files[*n].0.starts_with(w))
        })
    }
}

/// The lines of a source without their comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or_default())
}

/// One elaborated module.
struct Module {
    /// RTLIL from `module` to `end`.
    text: String,
    /// Name and count of the modules inside.
    children: BTreeMap<String, u64>,
    /// Digest of the text without what differs between equal modules.
    content: String,
}

struct Design {
    modules: BTreeMap<String, Module>,
    /// Instances of each module in the default Shield.
    instances: BTreeMap<String, u64>,
}

/// Name of the source module of an elaborated one.
fn base(name: &str) -> &str {
    name.split('$').next().unwrap_or(name)
}

impl Design {
    /// `top` and all modules below it; `more` are further arguments of the front end.
    fn elaborate(yosys: &Path, sources: &Sources, top: &str, more: &str) -> Result<Self, Failure> {
        let folder = root().join("target/area");
        std::fs::create_dir_all(&folder)
            .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
        let files: Vec<String> = sources.order.iter().map(|p| p.display().to_string()).collect();
        let script = format!(
            "read_slang -j 1 --allow-use-before-declare --best-effort-hierarchy {} {} --top {top} {more}; opt_clean; write_rtlil target/area/design.il",
            files.join(" "),
            sources.more
        );
        process::run(
            tools::yosys_command(yosys).current_dir(root()).args(["-q", "-p", &script]),
            "yosys (read_slang)",
        )?;
        let text = std::fs::read_to_string(folder.join("design.il"))
            .map_err(|e| Failure::failed(format!("target/area/design.il: {e}")))?;
        Ok(Self::parse(&text, top))
    }

    fn parse(text: &str, top: &str) -> Self {
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut current: Option<(String, String)> = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("module \\") {
                current = Some((name.to_owned(), String::new()));
            }
            if let Some((name, body)) = &mut current {
                body.push_str(line);
                body.push('\n');
                if line == "end" {
                    texts.insert(std::mem::take(name), std::mem::take(body));
                    current = None;
                }
            }
        }
        let mut modules = BTreeMap::new();
        for (name, text) in &texts {
            let mut children = BTreeMap::new();
            for line in text.lines() {
                let kind =
                    line.trim_start().strip_prefix("cell \\").and_then(|r| r.split(' ').next());
                if let Some(kind) = kind.filter(|k| texts.contains_key(*k)) {
                    *children.entry(kind.to_owned()).or_insert(0) += 1;
                }
            }
            let content = content(text);
            modules.insert(name.clone(), Module { text: text.clone(), children, content });
        }
        let mut design = Self { modules, instances: BTreeMap::new() };
        let mut count = BTreeMap::new();
        design.count(top, 1, &mut count);
        design.instances = count;
        design
    }

    fn count(&self, name: &str, n: u64, into: &mut BTreeMap<String, u64>) {
        *into.entry(name.to_owned()).or_insert(0) += n;
        if let Some(m) = self.modules.get(name) {
            for (child, k) in &m.children {
                self.count(child, n * k, into);
            }
        }
    }

    /// Source modules, `whole` as the last one.
    fn names(&self, whole: &str) -> Vec<String> {
        let mut names: BTreeSet<&str> = self.modules.keys().map(|m| base(m)).collect();
        names.remove(whole);
        names.into_iter().map(str::to_owned).chain([whole.to_owned()]).collect()
    }

    fn block(&self, yosys: &Path, name: &str, digest: String) -> Result<Block, Failure> {
        let mut block = Block {
            name: name.into(),
            sources: digest,
            instances: 0,
            ecp5_mhz: None,
            whole: Size::default(),
            own: Size::default(),
        };
        for m in self.modules.keys().filter(|m| base(m) == name) {
            let whole = self.whole(yosys, m)?;
            if whole.lut + whole.ff >= block.whole.lut + block.whole.ff {
                block.whole = whole;
            }
            let n = self.instances.get(m).copied().unwrap_or(0);
            block.instances += n;
            let own = self.unit(yosys, m)?;
            for _ in 0..n {
                block.own.add(&own);
            }
        }
        Ok(block)
    }

    fn whole(&self, yosys: &Path, name: &str) -> Result<Size, Failure> {
        let mut size = self.unit(yosys, name)?;
        for (child, n) in &self.modules[name].children {
            let inside = self.whole(yosys, child)?;
            for _ in 0..*n {
                size.add(&inside);
            }
        }
        Ok(size)
    }

    /// Synthesizes one module alone.
    fn unit(&self, yosys: &Path, name: &str) -> Result<Size, Failure> {
        let m = &self.modules[name];
        let folder = root().join("target/area/units");
        let kept = folder.join(format!("{}.json", m.content));
        if let Ok(text) = std::fs::read_to_string(&kept)
            && let Ok(size) = serde_json::from_str(&text)
        {
            return Ok(size);
        }
        std::fs::create_dir_all(&folder)
            .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
        let start = Instant::now();
        let mut il = String::new();
        for child in m.children.keys() {
            let _ = writeln!(il, "attribute \\blackbox 1\nmodule \\{child}");
            for line in self.modules[child].text.lines() {
                let port = line.trim_start();
                if port.starts_with("wire ")
                    && port.split(' ').any(|w| w == "input" || w == "output" || w == "inout")
                {
                    let _ = writeln!(il, "{line}");
                }
            }
            il.push_str("end\n");
        }
        il.push_str(&m.text);
        let path = "target/area/unit.il";
        std::fs::write(root().join(path), il)
            .map_err(|e| Failure::failed(format!("{path}: {e}")))?;
        let report = "target/area/unit.json";
        let script = format!(
            "read_rtlil {path}; hierarchy -top {name}; synth_xilinx -family xcup -top {name} -noiopad -noclkbuf; tee -o {report} stat -json {name}"
        );
        process::run(
            tools::yosys_command(yosys).current_dir(root()).args(["-q", "-p", &script]),
            name,
        )?;
        let text = std::fs::read_to_string(root().join(report))
            .map_err(|e| Failure::failed(format!("{report}: {e}")))?;
        let size = size(name, &text, &m.children)?;
        let text = serde_json::to_string(&size).unwrap_or_default();
        std::fs::write(&kept, text)
            .map_err(|e| Failure::failed(format!("{}: {e}", kept.display())))?;
        say(&format!(
            "{name}: {} LUT, {} FF without its sub-blocks, {} s",
            size.lut,
            size.ff,
            start.elapsed().as_secs()
        ));
        Ok(size)
    }

    /// Fmax of the block's largest instance, flattened.
    fn fmax(&self, yosys: &Path, name: &str) -> Result<f64, Failure> {
        let nextpnr = tools::ensure_nextpnr(&root(), yosys, &say)?;
        let mut best: Option<(&String, Size)> = None;
        for m in self.modules.keys().filter(|m| base(m) == name) {
            let whole = self.whole(yosys, m)?;
            if best.as_ref().is_none_or(|(_, b)| whole.lut > b.lut) {
                best = Some((m, whole));
            }
        }
        let Some((top, _)) = best else {
            return Err(Failure::failed(format!("{name}: not elaborated")));
        };
        let mut inside = BTreeMap::new();
        self.count(top, 1, &mut inside);
        let mut il: String = inside.keys().map(|m| self.modules[m].text.as_str()).collect();
        il.push_str(&registered(top, &self.modules[top].text));
        let start = Instant::now();
        let (path, netlist, report) =
            ("target/area/fmax.il", "target/area/fmax.json", "target/area/fmax-report.json");
        std::fs::write(root().join(path), il)
            .map_err(|e| Failure::failed(format!("{path}: {e}")))?;
        let script = format!(
            "read_rtlil {path}; hierarchy -top fmax; flatten; synth_ecp5 -top fmax -json {netlist}"
        );
        process::run(
            tools::yosys_command(yosys).current_dir(root()).args(["-q", "-p", &script]),
            name,
        )?;
        let mut c = tools::nextpnr_command(&nextpnr, yosys);
        c.current_dir(root()).args([
            "--85k",
            "--speed",
            "8",
            "--package",
            "CABGA756",
            "--freq",
            "250",
            "--seed",
            "1",
            "--json",
            netlist,
        ]);
        c.args(["--timing-allow-fail", "--out-of-context", "--no-route", "--report", report]);
        let out = c.output().map_err(|e| Failure::failed(format!("nextpnr-ecp5: {e}")))?;
        let text = String::from_utf8_lossy(&out.stderr).into_owned()
            + &String::from_utf8_lossy(&out.stdout);
        let _ = std::fs::write(root().join(format!("target/area/{name}-fmax.log")), &text);
        let mhz = text
            .lines()
            .rev()
            .find(|l| l.contains("Max frequency for clock"))
            .and_then(|l| l.rsplit("': ").next()?.split(' ').next()?.parse().ok())
            .ok_or_else(|| {
                Failure::failed(format!(
                    "{name}: nextpnr-ecp5 names no frequency; see target/area/{name}-fmax.log"
                ))
            })?;
        say(&format!("{name}: {mhz} MHz (ECP5 before routing), {} s", start.elapsed().as_secs()));
        Ok(mhz)
    }
}

/// A module `fmax` around `top` with a register at every input and output, so that the paths to and
/// from the ports count, too.
fn registered(top: &str, text: &str) -> String {
    let mut head = String::new();
    let mut cells = String::new();
    let mut ports = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(&"wire"), Some(name)) = (words.first(), words.last()) else { continue };
        let input = words.contains(&"input");
        if !input && !words.contains(&"output") {
            continue;
        }
        let width = words
            .iter()
            .position(|w| *w == "width")
            .and_then(|at| words.get(at + 1))
            .unwrap_or(&"1");
        let _ = writeln!(head, "{line}");
        if *name == "\\clk_i" {
            let _ = writeln!(ports, "    connect {name} {name}");
            continue;
        }
        let inner = format!("{name}_inside");
        let (d, q) = if input { (*name, inner.as_str()) } else { (inner.as_str(), *name) };
        let _ = writeln!(head, "  wire width {width} {inner}");
        let _ = writeln!(ports, "    connect {name} {inner}");
        let _ = writeln!(
            cells,
            "  cell $dff {name}_register\n    parameter \\CLK_POLARITY 1\n    parameter \\WIDTH {width}\n    connect \\CLK \\clk_i\n    connect \\D {d}\n    connect \\Q {q}\n  end"
        );
    }
    format!("module \\fmax\n{head}{cells}  cell \\{top} \\block\n{ports}  end\nend\n")
}

/// Width of a constant of at most 32 bits.
fn small_constant(word: &str) -> Option<&str> {
    let (width, bits) = word.split_once('\'')?;
    let small = width.parse::<u32>().is_ok_and(|w| w <= 32)
        && bits.trim_end().bytes().all(|b| b"01xz".contains(&b));
    small.then_some(width)
}

/// Digest of a module's RTLIL. Two modules that differ only in their own name, in generated names
/// and in constants of at most 32 bits, such as the number of a stage, have the same digest: their
/// sizes agree to within a few cells.
fn content(text: &str) -> String {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut hash = Sha256::new();
    for line in text.lines().skip(1).filter(|l| !l.trim_start().starts_with("attribute ")) {
        for word in line.split_inclusive([' ', '[', ']', '{', '}']) {
            // A generated name: `$` followed by another `$`, a `\` or a digit. Cell types such as
            // `$mux` do not match.
            let generated = word.strip_prefix('$').is_some_and(|r| {
                r.contains(['$', '\\']) || r.starts_with(|c: char| c.is_ascii_digit())
            });
            if generated {
                let next = names.len();
                let n = *names.entry(word.trim_end().to_owned()).or_insert(next);
                hash.update(format!("#{n} "));
            } else {
                hash.update(small_constant(word).unwrap_or(word));
            }
        }
        hash.update("\n");
    }
    hex::encode(&hash.finalize()[..16])
}

fn size(name: &str, report: &str, children: &BTreeMap<String, u64>) -> Result<Size, Failure> {
    let start = report
        .find('{')
        .ok_or_else(|| Failure::failed(format!("{name}: no JSON in the report")))?;
    let value: serde_json::Value = serde_json::from_str(&report[start..])
        .map_err(|e| Failure::failed(format!("{name}: {e}")))?;
    let modules = value["modules"]
        .as_object()
        .ok_or_else(|| Failure::failed(format!("{name}: no module in the report")))?;
    let found = modules
        .iter()
        .find(|(k, _)| k.trim_start_matches('\\') == name)
        .map(|(_, m)| &m["num_cells_by_type"]);
    let cells: BTreeMap<String, u64> = found
        .and_then(|m| m.as_object())
        .map(|m| {
            m.iter()
                .filter_map(|(k, v)| Some((k.trim_start_matches('\\').to_owned(), v.as_u64()?)))
                .collect()
        })
        .unwrap_or_default();
    let sum = |test: &dyn Fn(&str) -> bool| {
        cells.iter().filter(|(k, _)| test(k)).map(|(_, v)| v).sum::<u64>()
    };
    let known = |k: &str| {
        [
            "LUT",
            "FD",
            "MUXF",
            "CARRY",
            "DSP48",
            "RAMB",
            "RAM",
            "URAM",
            "SRL",
            "INV",
            "BUF",
            "$scopeinfo",
            "GND",
            "VCC",
        ]
        .iter()
        .any(|p| k.starts_with(p))
    };
    let strange: Vec<&String> =
        cells.keys().filter(|k| !known(k) && !children.contains_key(*k)).collect();
    if !strange.is_empty() {
        return Err(Failure::failed(format!("{name}: cells that are not mapped: {strange:?}")));
    }
    Ok(Size {
        lut: sum(&|k| k.starts_with("LUT")),
        ff: sum(&|k| k.starts_with("FD")),
        lutram: sum(&|k| k.starts_with("RAM") && !k.starts_with("RAMB")),
        ramb36: sum(&|k| k.starts_with("RAMB36")) as f64
            + sum(&|k| k.starts_with("RAMB18")) as f64 / 2.0,
        uram: sum(&|k| k.starts_with("URAM")),
        dsp: sum(&|k| k.starts_with("DSP48")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lut: u64, mhz: Option<f64>) -> Block {
        let whole = Size { lut, ..Size::default() };
        Block {
            name: "b".into(),
            sources: String::new(),
            instances: 1,
            ecp5_mhz: mhz,
            whole,
            own: whole,
        }
    }

    #[test]
    fn more_than_five_percent_is_told_with_both_numbers() {
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

    #[test]
    fn equal_modules_have_equal_content() {
        let a = "module \\m$a\n  wire width 2 $auto$x.cc:1$5\n  cell $mux $auto$x.cc:1$6\n    connect \\A $auto$x.cc:1$5 [1:0]\nend\n";
        let b = "module \\m$b\n  wire width 2 $auto$y.cc:3$15\n  cell $mux $auto$y.cc:1$16\n    connect \\A $auto$y.cc:3$15 [1:0]\nend\n";
        let c = "module \\m$c\n  wire width 2 $auto$y.cc:3$15\n  cell $and $auto$y.cc:1$16\n    connect \\A $auto$y.cc:3$15 [1:0]\nend\n";
        assert_eq!(content(a), content(b));
        assert_ne!(content(a), content(c));
        assert_eq!(content("m\n  connect \\A 4'0011\n"), content("m\n  connect \\A 4'0100\n"));
        assert_ne!(content("m\n  connect \\A 4'0011\n"), content("m\n  connect \\A 5'00011\n"));
    }

    #[test]
    fn a_change_anywhere_below_changes_the_digest() {
        let file = |text: &str| (PathBuf::from("x.sv"), text.to_owned());
        let mut s = Sources { files: BTreeMap::new(), order: Vec::new(), more: String::new() };
        s.files.insert("shef_a".into(), file("shef_b i_b ();"));
        s.files.insert("shef_b".into(), file("import shef_pkg::*;"));
        s.files.insert("shef_pkg".into(), file("1"));
        let before = s.digest("shef_a");
        s.files.insert("shef_pkg".into(), file("2"));
        assert_ne!(before, s.digest("shef_a"));
        s.files.insert("shef_pkg".into(), file("// one\n  1"));
        assert_eq!(before, s.digest("shef_a"));
    }
}
