//! Elaborated designs, and the synthesis of their modules.

use super::sources::Sources;
use super::{Block, Size};
use crate::process::{self, Context, Result, ensure, output, say};
use crate::{files, root, tools};
use fs_err as fs;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// One elaborated module.
struct Module {
    /// RTLIL from `module` to `end`.
    text: String,
    /// Name and count of the modules inside.
    children: BTreeMap<String, u64>,
    /// Digest of the text without what differs between equal modules.
    content: String,
}

pub struct Design {
    pub yosys: PathBuf,
    modules: BTreeMap<String, Module>,
    /// Instances of each module in the default Shield.
    instances: BTreeMap<String, u64>,
}

/// Name of the source module of an elaborated one.
fn base(name: &str) -> &str {
    name.split('$').next().unwrap_or(name)
}

/// Runs yosys in the root; its files are below `target/area`.
fn synthesize(yosys: &Path, name: &str, script: &str) -> Result<()> {
    let mut command = tools::yosys_command(yosys);
    process::run(command.current_dir(root()).args(["-q", "-p", script]), name)
}

impl Design {
    /// `top` and all modules below it; `more` are further arguments of the front end.
    pub fn elaborate(yosys: &Path, sources: &Sources, top: &str, more: &str) -> Result<Self> {
        let path = "target/area/design.il";
        fs::create_dir_all(root().join("target/area"))?;
        let script = format!(
            "read_slang -j 1 --allow-use-before-declare --best-effort-hierarchy{} --top {top} \
             {more}; opt_clean; write_rtlil {path}",
            sources.arguments()
        );
        synthesize(yosys, "yosys (read_slang)", &script)?;
        Ok(Self::parse(yosys, &fs::read_to_string(root().join(path))?, top))
    }

    fn parse(yosys: &Path, text: &str, top: &str) -> Self {
        let bodies =
            text.split("\nmodule \\").skip(1).filter_map(|body| body.split_once("\nend\n"));
        let texts: BTreeMap<&str, String> = bodies
            .map(|(body, _)| {
                let name = body.lines().next().unwrap_or_default();
                (name, format!("module \\{body}\nend\n"))
            })
            .collect();
        let module = |text: &String| {
            let mut children = BTreeMap::new();
            for cell in text.lines().filter_map(|l| l.trim_start().strip_prefix("cell \\")) {
                let kind = cell.split(' ').next().unwrap_or_default();
                if texts.contains_key(kind) {
                    *children.entry(kind.to_owned()).or_insert(0) += 1;
                }
            }
            Module { text: text.clone(), children, content: content(text) }
        };
        let modules = texts.iter().map(|(name, text)| ((*name).to_owned(), module(text))).collect();
        let mut design = Self { yosys: yosys.to_owned(), modules, instances: BTreeMap::new() };
        design.instances = design.count(top);
        design
    }

    /// Instances of each module in a module, itself included.
    fn count(&self, name: &str) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::from([(name.to_owned(), 1)]);
        for (child, n) in self.modules.get(name).into_iter().flat_map(|m| &m.children) {
            for (inside, count) in self.count(child) {
                *all.entry(inside).or_insert(0) += n * count;
            }
        }
        all
    }

    /// Source modules, `whole` as the last one.
    pub fn names(&self, whole: &str) -> Vec<String> {
        let mut names: BTreeSet<&str> = self.modules.keys().map(|m| base(m)).collect();
        names.remove(whole);
        names.into_iter().chain([whole]).map(str::to_owned).collect()
    }

    /// The elaborated modules of a source module, each with its size.
    fn sizes(&self, name: &str) -> Result<Vec<(&str, Size)>> {
        let modules = self.modules.keys().filter(|module| base(module) == name);
        modules.map(|module| Ok((module.as_str(), self.whole(module)?))).collect()
    }

    /// The figures of a source module.
    pub fn block(&self, name: &str, digest: String) -> Result<Block> {
        let (mut instances, mut largest, mut own) = (0, Size::default(), Size::default());
        for (module, whole) in self.sizes(name)? {
            if whole.lut + whole.ff >= largest.lut + largest.ff {
                largest = whole;
            }
            let n = self.instances.get(module).copied().unwrap_or(0);
            instances += n;
            own.add(n, &self.unit(module)?);
        }
        let (name, sources) = (name.into(), digest);
        Ok(Block { name, sources, instances, ecp5_mhz: None, whole: largest, own })
    }

    /// A module with all that it contains.
    fn whole(&self, name: &str) -> Result<Size> {
        let mut size = self.unit(name)?;
        for (child, n) in &self.modules[name].children {
            size.add(*n, &self.whole(child)?);
        }
        Ok(size)
    }

    /// Synthesizes one module alone.
    fn unit(&self, name: &str) -> Result<Size> {
        let m = &self.modules[name];
        let cache = root().join("target/area/units").join(format!("{}.json", m.content));
        if let Ok(text) = fs::read_to_string(&cache)
            && let Ok(size) = serde_json::from_str(&text)
        {
            return Ok(size);
        }
        let start = Instant::now();
        let mut il = String::new();
        for child in m.children.keys() {
            let ports = ports(&self.modules[child].text).map(|port| format!("{}\n", port.line));
            let ports: String = ports.collect();
            let _ = write!(il, "attribute \\blackbox 1\nmodule \\{child}\n{ports}end\n");
        }
        il.push_str(&m.text);
        let (path, report) = ("target/area/unit.il", "target/area/unit.json");
        fs::write(root().join(path), il)?;
        let script = format!(
            "read_rtlil {path}; hierarchy -top {name}; synth_xilinx -family xcup -top {name} \
             -noiopad -noclkbuf; tee -o {report} stat -json {name}"
        );
        synthesize(&self.yosys, name, &script)?;
        let size = size(name, &fs::read_to_string(root().join(report))?, &m.children)?;
        files::update(&cache, serde_json::to_string(&size)?.as_bytes())?;
        let (Size { lut, ff, .. }, seconds) = (size, start.elapsed().as_secs());
        say(&format!("{name}: {lut} LUT, {ff} FF without its sub-blocks, {seconds} s"));
        Ok(size)
    }

    /// Fmax of the block's largest instance, flattened.
    pub fn fmax(&self, name: &str) -> Result<f64> {
        let nextpnr = tools::nextpnr(&self.yosys)?;
        let mut sizes = self.sizes(name)?;
        // The first of the largest.
        sizes.sort_by_key(|(_, size)| std::cmp::Reverse(size.lut));
        let (top, _) = sizes.first().with_context(|| format!("{name}: not elaborated"))?;
        let inside = self.count(top);
        let mut il: String = inside.keys().map(|m| self.modules[m].text.as_str()).collect();
        il.push_str(&registered(top, &self.modules[*top].text));
        let start = Instant::now();
        let (path, netlist) = ("target/area/fmax.il", "target/area/fmax.json");
        fs::write(root().join(path), il)?;
        let script = format!(
            "read_rtlil {path}; hierarchy -top fmax; flatten; synth_ecp5 -top fmax -json {netlist}"
        );
        synthesize(&self.yosys, name, &script)?;
        let mut c = tools::nextpnr_command(&nextpnr, &self.yosys);
        c.current_dir(root()).args("--85k --speed 8 --package CABGA756 --freq 250".split(' '));
        c.args("--seed 1 --timing-allow-fail --out-of-context --no-route".split(' '));
        let out = output(c.args(["--json", netlist]))?;
        let log = format!("target/area/{name}-fmax.log");
        let text = out.stderr + &out.stdout;
        fs::write(root().join(&log), &text)?;
        let line = text.lines().rev().find(|l| l.contains("Max frequency for clock"));
        let mhz = line.and_then(|l| l.rsplit("': ").next()?.split(' ').next()?.parse().ok());
        let mhz =
            mhz.with_context(|| format!("{name}: nextpnr-ecp5 names no frequency; see {log}"))?;
        say(&format!("{name}: {mhz} MHz (ECP5 before routing), {} s", start.elapsed().as_secs()));
        Ok(mhz)
    }
}

/// A port in the RTLIL of a module.
struct Port<'a> {
    line: &'a str,
    name: &'a str,
    width: &'a str,
    input: bool,
}

/// The ports of a module.
fn ports(text: &str) -> impl Iterator<Item = Port<'_>> {
    text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |word| words.contains(&word);
        let port =
            words.first() == Some(&"wire") && (has("input") || has("output") || has("inout"));
        let width = words.iter().skip_while(|word| **word != "width").nth(1).unwrap_or(&"1");
        let name = words.last().filter(|_| port)?;
        Some(Port { line, name, width, input: has("input") })
    })
}

/// A module `fmax` around `top` with a register at every input and output, so that the paths to and
/// from the ports count, too.
fn registered(top: &str, text: &str) -> String {
    let (mut head, mut cells, mut connections) = (String::new(), String::new(), String::new());
    for Port { line, name, width, input } in ports(text) {
        let _ = writeln!(head, "{line}");
        if name == "\\clk_i" {
            let _ = writeln!(connections, "    connect {name} {name}");
            continue;
        }
        let inner = format!("{name}_inside");
        let (d, q) = if input { (name, inner.as_str()) } else { (inner.as_str(), name) };
        let _ = writeln!(head, "  wire width {width} {inner}");
        let _ = writeln!(connections, "    connect {name} {inner}");
        let _ = writeln!(
            cells,
            "  cell $dff {name}_register\n    parameter \\CLK_POLARITY 1\n    parameter \\WIDTH \
             {width}\n    connect \\CLK \\clk_i\n    connect \\D {d}\n    connect \\Q {q}\n  end"
        );
    }
    format!("module \\fmax\n{head}{cells}  cell \\{top} \\block\n{connections}  end\nend\n")
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

/// Cells of a module in yosys' report.
fn size(name: &str, report: &str, children: &BTreeMap<String, u64>) -> Result<Size> {
    const KNOWN: &str = "LUT FD MUXF CARRY DSP48 RAMB RAM URAM SRL INV BUF $scopeinfo GND VCC";
    let start = report.find('{').with_context(|| format!("{name}: no JSON in the report"))?;
    let report: Value = serde_json::from_str(&report[start..]).context(name.to_owned())?;
    let modules = report["modules"].as_object();
    let mut modules = modules.with_context(|| format!("{name}: no module in the report"))?.iter();
    let cells = modules.find(|(module, _)| module.trim_start_matches('\\') == name);
    let cells = cells.and_then(|(_, module)| module["num_cells_by_type"].as_object());
    let cells: BTreeMap<&str, u64> = cells
        .into_iter()
        .flatten()
        .filter_map(|(kind, n)| Some((kind.trim_start_matches('\\'), n.as_u64()?)))
        .collect();
    let known = |cell: &str| KNOWN.split_whitespace().any(|kind| cell.starts_with(kind));
    let strange = cells.keys().filter(|cell| !known(cell) && !children.contains_key(**cell));
    let strange: Vec<_> = strange.collect();
    ensure!(strange.is_empty(), "{name}: cells that are not mapped: {strange:?}");
    let sum = |kind: &str| -> u64 {
        cells.iter().filter(|(cell, _)| cell.starts_with(kind)).map(|(_, n)| n).sum()
    };
    Ok(Size {
        lut: sum("LUT"),
        ff: sum("FD"),
        lutram: sum("RAM") - sum("RAMB"),
        ramb36: sum("RAMB36") as f64 + sum("RAMB18") as f64 / 2.0,
        uram: sum("URAM"),
        dsp: sum("DSP48"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
