//! `shef shield check|generate|digest|estimate|show`: one `shield.toml`, without a device.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use shef_gen::estimate::{Basis, Estimate, Figures};
use shef_gen::shield::{LATENCY, Shield, Warning, c_header, parse, rust, systemverilog};
use shef_proto::config::{Config, MAX_REGIONS, Region};

use crate::verify::read;
use shef_console::CliError;
use shef_console::Output;
use shef_console::file::Outputs;
use shef_console::hex;
use shef_console::output::count;

/// Maximum size of a `shield.toml`.
const MAX_TOML: u64 = 1 << 20;

#[derive(Subcommand)]
pub enum ShieldCommand {
    /// Check a shield.toml: errors and warnings point at line and column
    Check(Source),
    /// Write the SystemVerilog package and the Rust and C constants into a folder
    Generate {
        #[command(flatten)]
        source: Source,
        /// Output folder; created if missing
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Print the configuration digest, as in evidence
    Digest(Source),
    /// Estimate area, bytes per cycle, memory, and the lifetime of counters and keys
    Estimate {
        #[command(flatten)]
        source: Source,
        /// Clock in MHz
        #[arg(long, value_name = "MHZ", default_value_t = 250.0)]
        clock_mhz: f64,
        /// Memory latency in cycles
        #[arg(long, value_name = "CYCLES", default_value_t = LATENCY)]
        latency: u64,
    },
    /// Print the resolved configuration and the map of card memory
    Show(Source),
}

/// Location of the configuration.
#[derive(Args)]
pub struct Source {
    /// shield.toml, or the folder that contains it
    #[arg(value_name = "FILE", default_value = "shield.toml")]
    file: PathBuf,
}

impl Source {
    fn path(&self) -> PathBuf {
        if self.file.is_dir() { self.file.join("shield.toml") } else { self.file.clone() }
    }

    /// Reads and checks the file; prints warnings.
    fn shield(&self, output: &Output) -> Result<Shield, CliError> {
        let path = self.path();
        let bytes = read(&path, MAX_TOML).map_err(|mut error| {
            if self.file.is_dir() && !path.exists() {
                error
                    .message
                    .push_str("; expected the folder of a design, with a file shield.toml in it");
            }
            error
        })?;
        let text = String::from_utf8(bytes).map_err(|e| {
            CliError::new(
                "SHEF-CLI-016",
                format!(
                    "{}: not UTF-8 text at byte {}",
                    path.display(),
                    e.utf8_error().valid_up_to()
                ),
            )
        })?;
        let shield =
            parse(&text).map_err(|e| CliError::new(e.code(), format!("{}:{e}", path.display())))?;
        if !output.json() {
            shield
                .warnings
                .iter()
                .for_each(|w| output.warn(format_args!("{}:{w}", path.display())));
        }
        Ok(shield)
    }
}

#[derive(Serialize)]
struct Warned<'a> {
    line: usize,
    column: usize,
    message: &'a str,
}

fn warned(warnings: &[Warning]) -> Vec<Warned<'_>> {
    warnings
        .iter()
        .map(|w| Warned { line: w.place.line, column: w.place.column, message: &w.message })
        .collect()
}

/// Runs the command.
///
/// # Errors
/// SHEF-GEN-010 and SHEF-GEN-011 with the position, and file errors.
pub fn run(output: &Output, command: &ShieldCommand) -> Result<(), CliError> {
    match command {
        ShieldCommand::Check(source) => check(output, source),
        ShieldCommand::Generate { source, out } => generate(output, source, out),
        ShieldCommand::Digest(source) => {
            let digest = hex::encode(&source.shield(output)?.config.digest());
            output.line(&digest)?;
            output.document(&serde_json::json!({ "config_digest": digest }))
        }
        ShieldCommand::Estimate { source, clock_mhz, latency } => {
            estimate(output, source, *clock_mhz, *latency)
        }
        ShieldCommand::Show(source) => show(output, source),
    }
}

fn check(output: &Output, source: &Source) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Checked<'a> {
        file: String,
        config_digest: String,
        regions: usize,
        warnings: Vec<Warned<'a>>,
    }
    let shield = source.shield(output)?;
    let checked = Checked {
        file: source.path().display().to_string(),
        config_digest: hex::encode(&shield.config.digest()),
        regions: shield.config.regions().len(),
        warnings: warned(&shield.warnings),
    };
    output.line(format_args!(
        "{}: {}, {}, {}, {}",
        checked.file,
        output.good("in order"),
        count(checked.regions, "region"),
        count(shield.config.sets().len(), "engine set"),
        count(checked.warnings.len(), "warning")
    ))?;
    output.document(&checked)
}

fn generate(output: &Output, source: &Source, out: &Path) -> Result<(), CliError> {
    let Shield { config, synthesis, .. } = source.shield(output)?;
    std::fs::create_dir_all(out).map_err(|e| CliError::write_file(out, &e))?;
    let mut outputs = Outputs::new([])?;
    let mut written = Vec::new();
    for (name, content) in [
        ("shef_cfg_pkg.sv", systemverilog(&config, synthesis)),
        ("shef_config.rs", rust(&config)),
        ("shef_config.h", c_header(&config)),
    ] {
        let path = out.join(name);
        let slot = outputs.file(&path)?;
        outputs.fill(slot, content)?;
        written.push(path.display().to_string());
    }
    outputs.place()?;
    written.iter().try_for_each(|path| output.line(format_args!("wrote {path}")))?;
    output.document(
        &serde_json::json!({ "config_digest": hex::encode(&config.digest()), "files": written }),
    )
}

fn estimate(
    output: &Output,
    source: &Source,
    clock_mhz: f64,
    latency: u64,
) -> Result<(), CliError> {
    if !(1.0..=10_000.0).contains(&clock_mhz) {
        return Err(CliError::new(
            "SHEF-CLI-001",
            format!("--clock-mhz is from 1 to 10000, found {clock_mhz}"),
        ));
    }
    if !(1..=100_000).contains(&latency) {
        return Err(CliError::new(
            "SHEF-CLI-001",
            format!("--latency is from 1 to 100000, found {latency}"),
        ));
    }
    let Shield { config, synthesis, .. } = source.shield(output)?;
    let e = Estimate::new(&config, synthesis, &figures()?, clock_mhz, latency);
    output.line(output.heading("area (UltraScale+)"))?;
    output.line(format_args!(
        "{:<5} {:<34} {:>8} {:>8} {:>8} {:>6} {:>5}  basis",
        "set", "block", "LUT", "FF", "RAMB36", "URAM", "DSP"
    ))?;
    for b in &e.blocks {
        let set = b.set.map_or_else(|| "-".to_owned(), |s| s.to_string());
        let basis = if b.basis == Basis::Measured { "measured" } else { "estimate" };
        let a = &b.area;
        output.line(format_args!(
            "{set:<5} {:<34} {:>8} {:>8} {:>8.1} {:>6} {:>5}  {basis}",
            b.name, a.lut, a.ff, a.ramb36, a.uram, a.dsp
        ))?;
    }
    let t = &e.total;
    output.line(format_args!(
        "{:<5} {:<34} {:>8} {:>8} {:>8.1} {:>6} {:>5}  estimate",
        "", "sum", t.lut, t.ff, t.ramb36, t.uram, t.dsp
    ))?;
    if !config.has_memory() {
        return output.document(&e);
    }
    output.line("")?;
    output.line(output.heading(&format!(
        "regions (estimates: bytes per cycle at memory latency {latency}, times at {clock_mhz} MHz)"
    )))?;
    output.line(format_args!(
        "{:<16} {:<8} {:>8} {:>9} {:>11} {:>10} {:>10} {:>6} {:>9} {:>9}",
        "region",
        "mode",
        "seq read",
        "seq write",
        "random read",
        "tags",
        "nodes",
        "bus",
        "counter",
        "key"
    ))?;
    for r in &e.regions {
        output.line(format_args!(
            "{:<16} {:<8} {:>8.1} {:>9} {:>11.1} {:>10} {:>10} {:>5.1}% {:>9} {:>9}",
            r.name,
            r.mode,
            r.sequential_read,
            r.sequential_write.map_or_else(|| "-".to_owned(), |w| format!("{w:.1}")),
            r.random_read,
            size(r.tag_bytes),
            size(r.node_bytes),
            r.bus_percent,
            r.counter_seconds.map_or_else(|| "-".to_owned(), time),
            r.key_seconds.map_or_else(|| "-".to_owned(), time),
        ))?;
    }
    output.line("")?;
    output.line("random read: 64 bytes, 32 outstanding, not on chip. tags, nodes: bytes of card memory. bus: beats for tags and nodes beside 100 of data.")?;
    output.line("counter: until one chunk that is rewritten without pause is refused. key: until the region's key has sealed 2^48 blocks at full load.")?;
    output.document(&e)
}

/// The measured blocks of the table that this program was built with.
fn figures() -> Result<Figures, CliError> {
    Figures::shipped().map_err(CliError::internal)
}

/// A number of bytes, human-readable.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "-".to_owned(),
        b if b.is_multiple_of(1 << 30) => format!("{} GiB", b >> 30),
        b if b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// A number of seconds, human-readable.
fn time(seconds: f64) -> String {
    const UNITS: &[(f64, &str)] =
        &[(31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    let (unit, name) =
        UNITS.iter().copied().find(|(unit, _)| seconds >= *unit).unwrap_or((1.0, "s"));
    format!("{:.1} {name}", seconds / unit)
}

/// A range of card memory.
#[derive(Serialize)]
struct Range {
    start: u64,
    /// One past the last byte; absent for the free rest.
    end: Option<u64>,
    what: &'static str,
    region: Option<String>,
}

/// Data, tags, nodes and the free space between them, by address.
fn memory_map(config: &Config) -> Vec<Range> {
    let used = |start: u64, len: u64, what, r: &Region| Range {
        start,
        end: Some(start + len),
        what,
        region: Some(r.name.clone()),
    };
    let mut used: Vec<Range> = config
        .regions()
        .iter()
        .flat_map(|r| {
            let tags = r.mode.has_tags().then(|| used(r.tag_base, r.tag_size(), "tags", r));
            let nodes = r.node_base.map(|base| used(base, r.node_size(), "nodes", r));
            [Some(used(r.base, r.size, "data", r)), tags, nodes].into_iter().flatten()
        })
        .collect();
    used.sort_by_key(|r| r.start);
    let mut map = Vec::new();
    let mut at = 0;
    for range in used {
        if range.start > at {
            map.push(Range { start: at, end: Some(range.start), what: "free", region: None });
        }
        at = range.end.unwrap_or(at);
        map.push(range);
    }
    map.push(Range { start: at, end: None, what: "free", region: None });
    map
}

#[derive(Serialize)]
struct ShownRegion<'a> {
    id: u8,
    name: &'a str,
    mode: &'static str,
    base: u64,
    size: u64,
    chunk: u32,
    key_bits: u16,
    set: u8,
    port: u8,
    tag_base: Option<u64>,
    node_base: Option<u64>,
    tree_levels: u32,
    prefetch: u8,
    counter_bits: Option<u8>,
}

#[derive(Serialize)]
struct ShownSet {
    lanes: u8,
    big_lines: u16,
    small_lines: u16,
    ring_beats: u16,
    acc: u8,
    port: u8,
    cache_bytes: u32,
    cache_line: u16,
}

#[derive(Serialize)]
struct Shown<'a> {
    config_digest: String,
    suite: u16,
    on_fault: &'static str,
    memory_ports: u8,
    accelerator_ports: u8,
    sbox: &'static str,
    sets: Vec<ShownSet>,
    regions: Vec<ShownRegion<'a>>,
    memory: Vec<Range>,
    warnings: Vec<Warned<'a>>,
}

impl<'a> Shown<'a> {
    fn new(shield: &'a Shield) -> Self {
        let config = &shield.config;
        let region = |r: &'_ Region| (r.mode.has_tags().then_some(r.tag_base), r.tree_levels());
        Self {
            config_digest: hex::encode(&config.digest()),
            suite: config.suite(),
            on_fault: config.on_fault().name(),
            memory_ports: config.ports(),
            accelerator_ports: config.accelerator_ports(),
            sbox: shield.synthesis.sbox.name(),
            sets: config
                .sets()
                .iter()
                .enumerate()
                .map(|(i, s)| ShownSet {
                    lanes: s.lanes,
                    big_lines: s.big_lines,
                    small_lines: s.small_lines,
                    ring_beats: s.ring_beats,
                    acc: s.acc,
                    port: config.set_port(i),
                    cache_bytes: s.cache_bytes,
                    cache_line: s.cache_line,
                })
                .collect(),
            regions: config
                .regions()
                .iter()
                .map(|r| {
                    let (tag_base, tree_levels) = region(r);
                    ShownRegion {
                        id: r.id,
                        name: &r.name,
                        mode: r.mode.name(),
                        base: r.base,
                        size: r.size,
                        chunk: r.chunk,
                        key_bits: r.key_bits,
                        set: r.set,
                        port: r.port,
                        tag_base,
                        node_base: r.node_base,
                        tree_levels,
                        prefetch: r.prefetch,
                        counter_bits: r.counter_bits,
                    }
                })
                .collect(),
            memory: memory_map(config),
            warnings: warned(&shield.warnings),
        }
    }

    fn print_sets(&self, output: &Output) -> Result<(), CliError> {
        for (i, s) in self.sets.iter().enumerate() {
            let mut line = format!(
                "engine set {i}    {}, {} big and {}, read ring of {}, accelerator port {}, memory port {}",
                count(s.lanes, "AES lane"),
                s.big_lines,
                count(s.small_lines, "small line"),
                count(s.ring_beats, "beat"),
                s.acc,
                s.port
            );
            if s.cache_bytes > 0 {
                let _ = write!(
                    line,
                    ", cache of {} in lines of {} B",
                    size(s.cache_bytes.into()),
                    s.cache_line
                );
            }
            output.line(line)?;
        }
        Ok(())
    }

    fn print_regions(&self, output: &Output) -> Result<(), CliError> {
        output
            .line(output.heading(&format!("regions ({} of {MAX_REGIONS})", self.regions.len())))?;
        output.line(format_args!(
            "{:>2} {:<16} {:<8} {:>10} {:>7} {:>4} {:>4} {:>9}",
            "", "name", "mode", "size", "chunk", "key", "set", "prefetch"
        ))?;
        for r in &self.regions {
            let mut line = format!(
                "{:>2} {:<16} {:<8} {:>10} {:>7} {:>4} {:>4} {:>9}",
                r.id,
                r.name,
                r.mode,
                size(r.size),
                r.chunk,
                r.key_bits,
                r.set,
                r.prefetch
            );
            if let Some(bits) = r.counter_bits {
                let _ = write!(line, "  {bits}-bit counters");
            }
            if r.tree_levels > 0 {
                let _ = write!(line, "  {} tree levels in memory", r.tree_levels);
            }
            output.line(line)?;
        }
        Ok(())
    }

    fn print_memory(&self, output: &Output) -> Result<(), CliError> {
        output.line(output.heading("card memory"))?;
        for range in &self.memory {
            let end = range.end.map_or_else(|| " ".repeat(18), |end| format!("{:#018x}", end - 1));
            let len = range.end.map_or_else(String::new, |end| size(end - range.start));
            output.line(
                format_args!(
                    "{:#018x} .. {end} {len:>10}  {:<6}{}",
                    range.start,
                    range.what,
                    range.region.as_deref().unwrap_or("")
                )
                .to_string()
                .trim_end(),
            )?;
        }
        Ok(())
    }
}

fn show(output: &Output, source: &Source) -> Result<(), CliError> {
    let shield = source.shield(output)?;
    let shown = Shown::new(&shield);
    output.line(format_args!("config digest   {}", shown.config_digest))?;
    output.line(format_args!(
        "on a fault      {}",
        match shown.on_fault {
            "region" => "the faulty region stops",
            "halt" => "everything stops, and the session is closed",
            _ => "everything stops",
        }
    ))?;
    if !shield.config.has_memory() {
        output
            .line("card memory     none: no region, all goes over the sealed register channel")?;
        return output.document(&shown);
    }
    output.line(format_args!(
        "ports           {} to memory, {} to the accelerator",
        shown.memory_ports, shown.accelerator_ports
    ))?;
    output.line(format_args!(
        "S-boxes         in {}",
        if shown.sbox == "ram" { "block RAM" } else { "LUTs" }
    ))?;
    shown.print_sets(output)?;
    output.line("")?;
    shown.print_regions(output)?;
    output.line("")?;
    shown.print_memory(output)?;
    output.document(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_for_people() {
        assert_eq!(
            [size(0), size(100), size(4096), size(3 << 20), size(1 << 31)],
            ["-", "100 B", "4 KiB", "3 MiB", "2 GiB"]
        );
        assert_eq!(
            [time(0.5), time(90.0), time(17_600.0), time(281_475.0), time(1e9)],
            ["0.5 s", "1.5 min", "4.9 h", "3.3 days", "31.7 years"]
        );
    }

    #[test]
    fn the_map_has_no_holes() {
        let text = "[[region]]\nname = \"a\"\nmode = \"tree\"\nbase = 0x10000\nsize = \"64 KiB\"\ntag_base = 0x8000\n";
        let map = memory_map(&parse(text).unwrap().config);
        let whats: Vec<(&str, u64)> = map.iter().map(|r| (r.what, r.start)).collect();
        assert_eq!(
            whats,
            [
                ("free", 0),
                ("tags", 0x8000),
                ("free", 0x9000),
                ("data", 0x10000),
                ("nodes", 0x20000),
                ("free", 0x21000)
            ]
        );
        assert!(
            map.windows(2).all(|w| w[0].end == Some(w[1].start))
                && map.last().unwrap().end.is_none()
        );
    }
}
