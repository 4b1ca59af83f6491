//! `shield.toml`: the description of a Shield, checked with messages that point at the line, and
//! converted to the resolved configuration, the SystemVerilog package `shef_cfg_pkg` and constants
//! for host programs.
//!
//! The file's keys are in `docs/reference/shield-config.md`.

use core::fmt::Write as _;
use core::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Unexpected, Visitor};
use shef_proto::config::{
    Config, ConfigError, Field, MAX_REGIONS, MAX_SETS, Mode, OnFault, PAGE, Region, Set,
};
use toml::Spanned;

/// A place in a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line itself.
    pub text: String,
    /// Characters to mark, at least 1.
    pub width: usize,
}

impl Place {
    /// The place of a span in a text.
    pub fn of(source: &str, span: Range<usize>) -> Self {
        let start = span.start.min(source.len());
        let line_start = source[..start].rfind('\n').map_or(0, |n| n + 1);
        let text = source[line_start..].lines().next().unwrap_or("").to_string();
        let column = source[line_start..start].chars().count() + 1;
        let end = span.end.clamp(start, line_start + text.len().max(start - line_start));
        Self {
            line: source[..start].matches('\n').count() + 1,
            column,
            width: source[start..end].chars().count().max(1),
            text,
        }
    }

    /// A message with the line, marked at this place.
    pub fn render(&self, message: &str) -> String {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let indent: String = self
            .text
            .chars()
            .take(self.column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        format!(
            "{}:{}: {message}\n{margin} |\n{number} | {}\n{margin} | {indent}{}",
            self.line,
            self.column,
            self.text,
            "^".repeat(self.width)
        )
    }
}

shef_proto::coded! {
    /// An error in a `shield.toml`.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ShieldError {
        /// Not TOML, unknown key, wrong type.
        #[error("{}", place.render(message))]
        Parse {
            /// position
            place: Place,
            /// message
            message: String,
        } = "SHEF-GEN-010": "shield.toml is not TOML, or has an unknown key or a value of the wrong type",
            "The message points at line and column. docs/reference/shield-config.md lists all keys.",
        /// A rule is broken.
        #[error("{}", place.render(message))]
        Rule {
            /// position
            place: Place,
            /// message
            message: String,
        } = "SHEF-GEN-011": "shield.toml describes an impossible Shield",
            "The message points at line and column and names the rule. docs/reference/shield-config.md lists all rules.",
    }
}

impl ShieldError {
    /// Position in the file.
    pub fn place(&self) -> &Place {
        match self {
            Self::Parse { place, .. } | Self::Rule { place, .. } => place,
        }
    }

    /// The message, without the position.
    pub fn message(&self) -> &str {
        match self {
            Self::Parse { message, .. } | Self::Rule { message, .. } => message,
        }
    }
}

/// A remark for the developer on a valid `shield.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Position in the file.
    pub place: Place,
    /// The message.
    pub message: String,
}

impl core::fmt::Display for Warning {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.place.render(&self.message))
    }
}

/// A number: an integer, or a string with a unit (`"4 KiB"`, `"1 MiB"`) or in hexadecimal beyond
/// 2^63.
#[derive(Clone, Copy)]
struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Number;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("a number, or a string such as \"4 KiB\"")
            }
            fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<Number, E> {
                Ok(Number(v))
            }
            fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<Number, E> {
                u64::try_from(v)
                    .map(Number)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(v), &self))
            }
            fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Number, E> {
                number(v).map(Number).ok_or_else(|| E::invalid_value(Unexpected::Str(v), &self))
            }
        }
        d.deserialize_any(V)
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x") {
        let digits: String = hex.chars().filter(|&c| c != '_').collect();
        return if digits.starts_with('+') { None } else { u64::from_str_radix(&digits, 16).ok() };
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let digits: String = text[..split].chars().filter(|&c| c != '_').collect();
    let unit: u64 = match text[split..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn mode<'de, D: Deserializer<'de>>(d: D) -> Result<Spanned<Mode>, D::Error> {
    let name = Spanned::<String>::deserialize(d)?;
    let span = name.span();
    // An error made here has no span; the caller's span is that of the value.
    let mode = Mode::from_name(name.get_ref()).ok_or_else(|| {
        D::Error::custom(format!(
            "unknown mode \"{}\", expected input, output, counted, tree or bypass",
            name.get_ref()
        ))
    })?;
    Ok(Spanned::new(span, mode))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    suite: Option<Spanned<Number>>,
    on_fault: Option<Spanned<String>>,
    #[serde(default)]
    synthesis: SynthesisTable,
    #[serde(default)]
    memory: Memory,
    #[serde(default)]
    set: Vec<Spanned<SetTable>>,
    #[serde(default)]
    region: Vec<Spanned<RegionTable>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Memory {
    ports: Option<Spanned<Number>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct SynthesisTable {
    sbox: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetTable {
    lanes: Option<Spanned<Number>>,
    big_lines: Option<Spanned<Number>>,
    small_lines: Option<Spanned<Number>>,
    ring_beats: Option<Spanned<Number>>,
    acc: Option<Spanned<Number>>,
    cache: Option<Spanned<Number>>,
    cache_line: Option<Spanned<Number>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionTable {
    name: Spanned<String>,
    #[serde(deserialize_with = "mode")]
    mode: Spanned<Mode>,
    base: Spanned<Number>,
    size: Spanned<Number>,
    chunk: Option<Spanned<Number>>,
    key: Option<Spanned<Number>>,
    port: Option<Spanned<Number>>,
    set: Option<Spanned<Number>>,
    tag_base: Option<Spanned<Number>>,
    node_base: Option<Spanned<Number>>,
    prefetch: Option<Spanned<Number>>,
    counter: Option<Spanned<Number>>,
}

/// Implementation of the S-boxes of an engine set's AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sbox {
    /// LUTs.
    #[default]
    Lut,
    /// Block RAM.
    Ram,
}

impl Sbox {
    /// The name in `shield.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lut => "lut",
            Self::Ram => "ram",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Lut, Self::Ram].into_iter().find(|s| s.name() == name)
    }
}

/// Build options of the Shield. They are invisible outside the chip, so they are not part of the
/// configuration and its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synthesis {
    /// S-boxes of the engine sets.
    pub sbox: Sbox,
}

/// A checked Shield.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shield {
    /// The resolved configuration.
    pub config: Config,
    /// Its build options.
    pub synthesis: Synthesis,
    /// Remarks for the developer: regions without protection, too few lines for the speed of the
    /// bus, unused ports.
    pub warnings: Vec<Warning>,
}

/// Reads and checks the text of a `shield.toml`.
///
/// # Errors
/// The first error, with its position.
pub fn parse(source: &str) -> Result<Shield, ShieldError> {
    let place = |span: Range<usize>| Place::of(source, span);
    let file: File = toml::from_str(source).map_err(|e| ShieldError::Parse {
        place: place(e.span().unwrap_or(0..0)),
        message: e.message().lines().collect::<Vec<_>>().join("; "),
    })?;
    fn broken<T>(place: Place, message: String) -> Result<T, ShieldError> {
        Err(ShieldError::Rule { place, message })
    }

    if let Some(suite) = &file.suite
        && suite.get_ref().0 != 1
    {
        return broken(
            place(suite.span()),
            format!("unknown suite {}, this generator knows suite 1", suite.get_ref().0),
        );
    }
    let on_fault = match &file.on_fault {
        None => OnFault::Shield,
        Some(s) => OnFault::from_name(s.get_ref()).map_or_else(
            || {
                let what = "expected shield, region or halt";
                broken(place(s.span()), format!("unknown fault policy \"{}\", {what}", s.get_ref()))
            },
            Ok,
        )?,
    };
    let sbox = match &file.synthesis.sbox {
        None => Sbox::default(),
        Some(s) => Sbox::from_name(s.get_ref()).map_or_else(
            || {
                let what = "expected lut or ram";
                broken(
                    place(s.span()),
                    format!("unknown kind of S-box \"{}\", {what}", s.get_ref()),
                )
            },
            Ok,
        )?,
    };
    // If nothing needs card memory, there is no card memory, and nothing that serves it.
    let has_memory =
        !file.region.is_empty() || !file.set.is_empty() || number_or(&file.memory.ports, 0u8) != 0;
    let ports = u8_of(&file.memory.ports, has_memory);
    let sets = sets(&file, has_memory);
    let mut regions = Vec::new();
    for (i, r) in file.region.iter().enumerate() {
        let table = r.get_ref();
        if let (false, Some(tags)) = (table.mode.get_ref().has_tags(), &table.tag_base) {
            return broken(place(tags.span()), "a bypass region has no tags".to_string());
        }
        regions.push(region(i, table));
    }
    place_areas(&file, &mut regions);
    match Config::new(on_fault, ports, sets, regions) {
        Ok(config) => {
            let warnings = warnings(&file, &config)
                .into_iter()
                .map(|(span, message)| Warning { place: place(span), message })
                .collect();
            Ok(Shield { config, synthesis: Synthesis { sbox }, warnings })
        }
        Err(e) => {
            let (span, message) = locate(&file, &e);
            broken(place(span), message)
        }
    }
}

/// A number, or a default. The fields are narrow: a value that does not fit breaks a rule in any case,
/// so the largest value replaces it and the rule names the limit.
fn number_or(n: &Option<Spanned<Number>>, default: impl Into<u64>) -> u64 {
    n.as_ref().map_or(default.into(), |n| n.get_ref().0)
}

fn u8_of(n: &Option<Spanned<Number>>, default: impl Into<u64>) -> u8 {
    u8::try_from(number_or(n, default)).unwrap_or(u8::MAX)
}

fn u16_of(n: &Option<Spanned<Number>>, default: impl Into<u64>) -> u16 {
    u16::try_from(number_or(n, default)).unwrap_or(u16::MAX)
}

fn u32_of(n: &Option<Spanned<Number>>, default: impl Into<u64>) -> u32 {
    u32::try_from(number_or(n, default)).unwrap_or(u32::MAX)
}

/// The engine sets: those of the file, or one that serves all regions.
fn sets(file: &File, has_memory: bool) -> Vec<Set> {
    let default = Set::default();
    let sets = file.set.iter().enumerate().map(|(i, s)| {
        let s = s.get_ref();
        let small_lines = number_or(&s.small_lines, default.small_lines);
        Set {
            lanes: u8_of(&s.lanes, default.lanes),
            big_lines: u16_of(&s.big_lines, default_big_lines(file, i, small_lines)),
            small_lines: u16_of(&s.small_lines, default.small_lines),
            ring_beats: u16_of(&s.ring_beats, default.ring_beats),
            acc: u8_of(&s.acc, default.acc),
            cache_bytes: u32_of(&s.cache, default.cache_bytes),
            cache_line: u16_of(&s.cache_line, default.cache_line),
        }
    });
    let mut sets: Vec<Set> = sets.collect();
    if sets.is_empty() && has_memory {
        let big_lines = default_big_lines(file, 0, default.small_lines.into());
        sets.push(Set { big_lines: u16::try_from(big_lines).unwrap_or(u16::MAX), ..default });
    }
    sets
}

/// Region number `i`.
fn region(i: usize, t: &RegionTable) -> Region {
    let (mode, plain) = (*t.mode.get_ref(), Region::default());
    Region {
        id: u8::try_from(i).unwrap_or(u8::MAX),
        name: t.name.get_ref().clone(),
        mode,
        base: t.base.get_ref().0,
        size: t.size.get_ref().0,
        chunk: u32_of(&t.chunk, plain.chunk),
        key_bits: u16_of(&t.key, plain.key_bits),
        port: u8_of(&t.port, 0u8),
        set: u8_of(&t.set, 0u8),
        tag_base: number_or(&t.tag_base, 0u8),
        node_base: t.node_base.as_ref().map(|n| n.get_ref().0),
        prefetch: u8_of(&t.prefetch, 0u8),
        counter_bits: match (&t.counter, mode) {
            (Some(n), _) => Some(u8::try_from(n.get_ref().0).unwrap_or(u8::MAX)),
            (None, Mode::Counted) => Some(36),
            (None, _) => None,
        },
    }
}

/// Default `big_lines` of a set: 8, or 16 if it writes chunks of 1 KiB with their own versions. A
/// line holds one chunk from its first write until memory has it, and the bus's speed needs some 16
/// KiB in flight.
fn default_big_lines(file: &File, set: usize, small_lines: u64) -> u64 {
    let usual = u64::from(Set::default().big_lines);
    let short = file.region.iter().map(Spanned::get_ref).any(|r| {
        let here = r.set.as_ref().map_or(0, |n| n.get_ref().0) == set as u64;
        here && matches!(r.mode.get_ref(), Mode::Counted | Mode::Tree)
            && r.chunk.as_ref().is_some_and(|n| n.get_ref().0 == 1024)
    });
    if short { (2 * usual).min(64u64.saturating_sub(small_lines)).max(usual) } else { usual }
}

/// Memory latency in cycles that the buffers of a set are checked against.
pub const LATENCY: u64 = 40;

/// Lines that a stream of chunks of `chunk` bytes needs at a memory latency of `latency` cycles.
pub fn lines_needed(chunk: u32, latency: u64) -> u64 {
    2 + (latency + 13).div_ceil(u64::from(chunk) / 64)
}

fn warnings(file: &File, config: &Config) -> Vec<(Range<usize>, String)> {
    let mut out = Vec::new();
    for (r, t) in config.regions().iter().zip(&file.region) {
        let t = t.get_ref();
        if r.mode == Mode::Bypass {
            out.push((
                t.mode.span(),
                format!(
                    "region \"{}\" is not protected: card memory sees and can change it",
                    r.name
                ),
            ));
            continue;
        }
        let set = &config.sets()[usize::from(r.set)];
        let span = t.chunk.as_ref().map_or_else(|| t.name.span(), Spanned::span);
        let (name, lines) = if r.is_big() {
            ("big_lines", set.big_lines)
        } else {
            ("small_lines", set.small_lines)
        };
        let needed = lines_needed(r.chunk, LATENCY);
        if set.cache_bytes == 0 && u64::from(lines) < needed {
            let message = format!(
                "region \"{}\" will not stream at the speed of the bus: {} B chunks need {needed} {name} at a memory latency of {LATENCY} cycles, engine set {} has {lines}",
                r.name, r.chunk, r.set
            );
            out.push((span.clone(), message));
        }
        let beats = (LATENCY + 2 * u64::from(r.chunk) / 64).next_power_of_two();
        if u64::from(set.ring_beats) < beats {
            let message = format!(
                "region \"{}\" will not stream at the speed of the bus: {} B chunks need ring_beats of {beats} at a memory latency of {LATENCY} cycles, engine set {} has {}",
                r.name, r.chunk, r.set, set.ring_beats
            );
            out.push((span, message));
        }
    }
    for port in 0..config.ports() {
        if config.regions().iter().all(|r| r.port != port) {
            let span = file.memory.ports.as_ref().map_or(0..0, Spanned::span);
            out.push((span, format!("memory port {port} is used by no region")));
        }
    }
    out
}

/// Places tags of regions without `tag_base`, in order of the regions, and after them nodes of
/// `tree` regions without `node_base`, behind the highest range of the file.
fn place_areas(file: &File, regions: &mut [Region]) {
    // A region that breaks a rule is refused later; here it only must not overflow.
    let sound = |r: &Region| {
        r.chunk.is_power_of_two()
            && (64..=4096).contains(&r.chunk)
            && r.size.checked_mul(2).is_some()
    };
    let tags = |r: &Region| if sound(r) { r.tag_size() } else { 0 };
    let nodes = |r: &Region| if sound(r) { r.node_size() } else { 0 };
    let mut end = 0u64;
    for (r, t) in regions.iter().zip(&file.region) {
        let given = [
            Some((r.base, r.size)),
            t.get_ref().tag_base.as_ref().map(|_| (r.tag_base, tags(r))),
            r.node_base.map(|base| (base, nodes(r))),
        ];
        // A separate rule refuses a range past the last address.
        end = given
            .into_iter()
            .flatten()
            .filter_map(|(base, len)| base.checked_add(len))
            .fold(end, u64::max);
    }
    let mut next = |len: u64| {
        let base = end.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX - (PAGE - 1));
        end = base.saturating_add(len);
        base
    };
    for (r, t) in regions.iter_mut().zip(&file.region) {
        if r.mode.has_tags() && t.get_ref().tag_base.is_none() {
            r.tag_base = next(tags(r));
        }
    }
    for r in regions.iter_mut().filter(|r| r.mode == Mode::Tree && r.node_base.is_none()) {
        r.node_base = Some(next(nodes(r)));
    }
}

/// Position in the file of an error of the configuration.
fn locate(file: &File, e: &ConfigError) -> (Range<usize>, String) {
    let of = |n: &Option<Spanned<Number>>| n.as_ref().map(Spanned::span);
    let region = |i: usize, field: Field| -> Range<usize> {
        let Some(r) = file.region.get(i) else { return 0..0 };
        let t = r.get_ref();
        let span = match field {
            Field::Name => Some(t.name.span()),
            Field::Mode => Some(t.mode.span()),
            Field::Base => Some(t.base.span()),
            Field::Size => Some(t.size.span()),
            Field::Chunk => of(&t.chunk),
            Field::Key => of(&t.key),
            Field::Port => of(&t.port),
            Field::Set => of(&t.set),
            Field::TagBase => of(&t.tag_base),
            Field::NodeBase => of(&t.node_base),
            Field::Prefetch => of(&t.prefetch),
            Field::Counter => of(&t.counter),
            _ => None,
        };
        span.unwrap_or_else(|| r.span())
    };
    let set = |i: usize, field: Field| -> Range<usize> {
        let Some(s) = file.set.get(i) else { return 0..0 };
        let t = s.get_ref();
        let span = match field {
            Field::Lanes => of(&t.lanes),
            Field::BigLines => of(&t.big_lines),
            Field::SmallLines => of(&t.small_lines),
            Field::RingBeats => of(&t.ring_beats),
            Field::Acc => of(&t.acc),
            Field::Cache => of(&t.cache),
            Field::CacheLine => of(&t.cache_line).or_else(|| of(&t.cache)),
            _ => None,
        };
        span.unwrap_or_else(|| s.span())
    };
    let span = match e {
        ConfigError::Region { region: i, field, .. }
        | ConfigError::Overlap { region: i, field, .. } => region(*i, *field),
        ConfigError::Set { set: i, field, .. } => set(*i, *field),
        ConfigError::Rule { field: Field::Ports, .. } => of(&file.memory.ports).unwrap_or(0..0),
        ConfigError::Rule { field: Field::Sets, .. } => {
            file.set.get(MAX_SETS).map_or(0..0, Spanned::span)
        }
        // Too many, or no region although the file needs memory.
        ConfigError::Rule { field: Field::Regions, .. } => {
            let asks = || file.set.first().map(Spanned::span).or(of(&file.memory.ports));
            file.region.get(MAX_REGIONS).map(Spanned::span).or_else(asks).unwrap_or(0..0)
        }
        _ => 0..0,
    };
    (span, e.to_string())
}

/// The SystemVerilog package `shef_cfg_pkg`.
pub fn systemverilog(config: &Config, synthesis: Synthesis) -> String {
    let mut s = String::new();
    let n = config.regions().len();
    let digest: String = config.digest().iter().map(|b| format!("{b:02x}")).collect();
    let sets: Vec<String> =
        (0..config.sets().len()).rev().map(|i| set_literal(config, i)).collect();
    // No vector has a width of 0: without memory the port arrays have one port, which is tied off,
    // and the lists have one unused entry.
    let list = |items: String| if config.has_memory() { items } else { "'0".to_owned() };
    let width =
        |what: &str| if config.has_memory() { format!("N_{what}-1") } else { "0".to_owned() };
    let _ = write!(
        s,
        "// Configuration of the Shield, generated from shield.toml by `shef shield generate`; do not edit.\n\
         `default_nettype none\n\
         // A package offers more than one design uses.\n\
         /* verilator lint_off UNUSEDPARAM */\n\
         package shef_cfg_pkg;\n\n\
         \x20 localparam int unsigned N_PORTS = {};\n\
         \x20 localparam int unsigned N_SETS = {};\n\
         \x20 localparam int unsigned N_ACC = {};\n\
         \x20 localparam shef_pkg::on_fault_e ON_FAULT = shef_pkg::ON_FAULT_{};\n\n\
         \x20 // SHA-256 of the configuration's deterministic CBOR; byte 0 in [255:248]\n\
         \x20 localparam logic [255:0] CONFIG_DIGEST = 256'h{digest};\n\n\
         \x20 // S-boxes of the engine sets in block RAM; no part of the configuration\n\
         \x20 localparam bit SBOX_RAM = 1'b{};\n\n\
         \x20 localparam int unsigned N_REGIONS = {n};\n\n\
         \x20 // SETS[i] is engine set i\n\
         \x20 localparam shef_pkg::set_cfg_t [{}:0] SETS = {};\n",
        config.ports().max(1),
        config.sets().len(),
        config.accelerator_ports().max(1),
        config.on_fault().name().to_uppercase(),
        u8::from(synthesis.sbox == Sbox::Ram),
        width("SETS"),
        list(format!("{{\n{}\n  }}", sets.join(",\n"))),
    );
    config.regions().iter().for_each(|region| s.push_str(&region_literal(region)));
    let regions: Vec<String> = (0..n).rev().map(|i| format!("REGION_{i}")).collect();
    let _ = write!(
        s,
        "\n  // REGIONS[i] is region i\n  localparam shef_pkg::region_cfg_t [{}:0] REGIONS = {};\n\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n`default_nettype wire\n",
        width("REGIONS"),
        list(format!("{{{}}}", regions.join(", ")))
    );
    s
}

fn set_literal(config: &Config, i: usize) -> String {
    let c = &config.sets()[i];
    format!(
        "    shef_pkg::set_cfg_t'{{\n\
         \x20     lanes: 8'd{},\n\
         \x20     big_lines: 16'd{},\n\
         \x20     small_lines: 16'd{},\n\
         \x20     ring_beats: 16'd{},\n\
         \x20     acc: 2'd{},\n\
         \x20     port: 2'd{},\n\
         \x20     cache_bytes: 32'd{},\n\
         \x20     cache_line: 13'd{}\n\
         \x20   }}",
        c.lanes,
        c.big_lines,
        c.small_lines,
        c.ring_beats,
        c.acc,
        config.set_port(i),
        c.cache_bytes,
        c.cache_line
    )
}

fn region_literal(r: &Region) -> String {
    format!(
        "\n  // {}: {} KiB in chunks of {} B\n\
             \x20 localparam shef_pkg::region_cfg_t REGION_{} = '{{\n\
             \x20   id: 8'd{},\n\
             \x20   mode: shef_pkg::MODE_{},\n\
             \x20   base: 64'h{},\n\
             \x20   size: 64'h{},\n\
             \x20   tag_base: 64'h{},\n\
             \x20   chunk_log2: 4'd{},\n\
             \x20   key256: 1'b{},\n\
             \x20   set: 2'd{},\n\
             \x20   node_base: 64'h{},\n\
             \x20   prefetch: 4'd{},\n\
             \x20   wide_counter: 1'b{}\n\
             \x20 }};\n",
        r.name,
        r.size / 1024,
        r.chunk,
        r.id,
        r.id,
        r.mode.name().to_uppercase(),
        hex64(r.base),
        hex64(r.size),
        hex64(r.tag_base),
        r.chunk_log2(),
        u8::from(r.key_bits == 256),
        r.set,
        hex64(r.node_base.unwrap_or(0)),
        r.prefetch,
        u8::from(r.counter_bits == Some(48)),
    )
}

fn hex64(n: u64) -> String {
    let h = format!("{n:016x}");
    format!("{}_{}_{}_{}", &h[..4], &h[4..8], &h[8..12], &h[12..])
}

/// Constants for host programs: region numbers, addresses and sizes, the configuration's CBOR and
/// digest.
pub fn rust(config: &Config) -> String {
    let mut s = String::from(
        "// Constants of the Shield, generated from shield.toml by `shef shield generate`; do not edit.\n\n",
    );
    let bytes = |b: &[u8]| -> String {
        b.chunks(16)
            .map(|row| {
                format!(
                    "    {},\n",
                    row.iter().map(|x| format!("0x{x:02x}")).collect::<Vec<_>>().join(", ")
                )
            })
            .collect()
    };
    let _ = write!(
        s,
        "/// SHA-256 of the configuration.\npub const CONFIG_DIGEST: [u8; 32] = [\n{}];\n\n",
        bytes(&config.digest())
    );
    let _ = write!(
        s,
        "/// The configuration as deterministic CBOR.\npub const CONFIG: &[u8] = &[\n{}];\n",
        bytes(&config.to_cbor())
    );
    for r in config.regions() {
        let name = r.name.to_uppercase().replace('-', "_");
        let _ = write!(
            s,
            "\n/// Region `{0}` ({1}).\npub mod {2} {{\n\
             \x20   /// Number.\n    pub const ID: u8 = {3};\n\
             \x20   /// First byte.\n    pub const BASE: u64 = 0x{4:x};\n\
             \x20   /// Bytes.\n    pub const SIZE: u64 = 0x{5:x};\n\
             \x20   /// Bytes of a chunk.\n    pub const CHUNK: u32 = {6};\n\
             }}\n",
            r.name,
            r.mode.name(),
            format_args!("region_{}", name.to_lowercase()),
            r.id,
            r.base,
            r.size,
            r.chunk
        );
    }
    s
}

/// The same for programs in C.
pub fn c_header(config: &Config) -> String {
    let bytes = |b: &[u8]| -> String {
        b.chunks(16)
            .map(|row| {
                format!(
                    "    {},\n",
                    row.iter().map(|x| format!("0x{x:02x}")).collect::<Vec<_>>().join(", ")
                )
            })
            .collect()
    };
    let mut s = String::from(
        "/* Constants of the Shield, generated from shield.toml by `shef shield generate`; do not edit. */\n\
         #ifndef SHEF_CONFIG_H\n#define SHEF_CONFIG_H\n\n#include <stdint.h>\n\n",
    );
    let _ = write!(
        s,
        "/* SHA-256 of the configuration */\nstatic const uint8_t shef_config_digest[32] = {{\n{}}};\n",
        bytes(&config.digest())
    );
    for r in config.regions() {
        let name = r.name.to_uppercase().replace('-', "_");
        let _ = write!(
            s,
            "\n/* region {} ({}) */\n\
             #define SHEF_REGION_{name}_ID {}\n\
             #define SHEF_REGION_{name}_BASE UINT64_C(0x{:x})\n\
             #define SHEF_REGION_{name}_SIZE UINT64_C(0x{:x})\n\
             #define SHEF_REGION_{name}_CHUNK {}\n",
            r.name,
            r.mode.name(),
            r.id,
            r.base,
            r.size,
            r.chunk
        );
    }
    s.push_str("\n#endif\n");
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[[region]]
name = "a"
mode = "input"
base = 0x0
size = "64 KiB"

[[region]]
name = "b"
mode = "output"
base = 0x10000
size = "8 KiB"
chunk = 512
key = 128
"#;

    fn fails(text: &str) -> ShieldError {
        parse(text).expect_err("should be refused")
    }

    #[test]
    fn defaults_are_resolved_and_tags_are_placed_after_the_highest_range() {
        let c = parse(GOOD).unwrap().config;
        let r = c.regions();
        assert_eq!((r[0].chunk, r[0].key_bits, r[0].tag_base), (4096, 256, 0x12000));
        assert_eq!((r[1].chunk, r[1].key_bits, r[1].tag_base), (512, 128, 0x13000));
        assert_eq!((c.ports(), c.sets()), (1, &[Set::default()][..]));
        assert_eq!(Config::from_cbor(&c.to_cbor()).unwrap(), c);
    }

    #[test]
    fn a_set_that_writes_chunks_of_1_kib_has_twice_the_lines() {
        let lines = |text: &str| {
            parse(text).unwrap().config.sets().iter().map(|s| s.big_lines).collect::<Vec<_>>()
        };
        let with = |chunk: u32, mode: &str, set: u32| {
            format!(
                "{GOOD}[[region]]\nname = \"c\"\nmode = \"{mode}\"\nbase = 0x20000\nsize = 0x2000\nchunk = {chunk}\nset = {set}\n"
            )
        };
        assert_eq!(lines(&with(1024, "counted", 0)), [16]);
        assert_eq!(lines(&with(1024, "output", 0)), [8]);
        assert_eq!(lines(&with(2048, "counted", 0)), [8]);
        let two = |head: &str| lines(&format!("[[set]]\n[[set]]\n{head}{}", with(1024, "tree", 1)));
        assert_eq!(two(""), [8, 16]);
        assert_eq!(two("big_lines = 5\n"), [8, 5]);
        assert_eq!(two("small_lines = 52\n"), [8, 12]);
    }

    #[test]
    fn without_a_region_there_is_no_memory() {
        for text in ["", "suite = 1\n", "[memory]\nports = 0\n"] {
            let shield = parse(text).unwrap();
            assert_eq!(
                (shield.config.ports(), shield.config.sets(), shield.config.regions()),
                (0, &[][..], &[][..]),
                "{text}"
            );
            assert_eq!(shield.warnings, []);
            let package = systemverilog(&shield.config, shield.synthesis);
            for line in [
                "N_PORTS = 1;",
                "N_SETS = 0;",
                "N_ACC = 1;",
                "N_REGIONS = 0;",
                "set_cfg_t [0:0] SETS = '0;",
                "region_cfg_t [0:0] REGIONS = '0;",
            ] {
                assert!(package.contains(line), "{line}\n{package}");
            }
        }
    }

    /// Build options that are invisible outside the chip are not measured.
    #[test]
    fn the_kind_of_s_box_is_no_part_of_the_configuration() {
        let [none, lut, ram] =
            ["", "[synthesis]\nsbox = \"lut\"\n", "[synthesis]\nsbox = \"ram\"\n"]
                .map(|head| parse(&format!("{head}{GOOD}")).unwrap());
        assert_eq!(none, lut);
        assert_eq!((lut.synthesis.sbox, ram.synthesis.sbox), (Sbox::Lut, Sbox::Ram));
        assert_eq!((&lut.config, lut.config.digest()), (&ram.config, ram.config.digest()));
        let packages = [&lut, &ram].map(|s| systemverilog(&s.config, s.synthesis));
        assert_eq!(packages[0].replace("SBOX_RAM = 1'b0;", "SBOX_RAM = 1'b1;"), packages[1]);
        assert_ne!(packages[0], packages[1]);
    }

    #[test]
    fn nodes_are_placed_after_all_tags() {
        let text = GOOD
            .replace("mode = \"input\"", "mode = \"tree\"")
            .replace("mode = \"output\"", "mode = \"counted\"");
        let c = parse(&text).unwrap().config;
        let r = c.regions();
        assert_eq!(
            (r[0].tag_base, r[1].tag_base, r[0].node_base, r[1].node_base),
            (0x12000, 0x13000, Some(0x14000), None)
        );
        assert_eq!((r[0].counter_bits, r[1].counter_bits), (None, Some(36)));
        let given =
            parse(&text.replace("size = \"64 KiB\"", "size = \"64 KiB\"\nnode_base = 0x40000"))
                .unwrap()
                .config;
        assert_eq!(
            (given.regions()[0].node_base, given.regions()[0].tag_base),
            (Some(0x40000), 0x41000)
        );
    }

    #[test]
    fn warnings_point_at_what_is_meant() {
        let of = |text: &str| -> Vec<(usize, usize, String)> {
            parse(text)
                .unwrap()
                .warnings
                .into_iter()
                .map(|w| (w.place.line, w.place.column, w.message))
                .collect()
        };
        assert_eq!(of(GOOD), []);
        let found = of(&format!(
            "[memory]\nports = 2\n{}\n[[set]]\nbig_lines = 3\nsmall_lines = 8\nring_beats = 128\n",
            GOOD.replace("chunk = 512\nkey = 128", "chunk = 512")
        ));
        let starts: Vec<(usize, usize, &str)> =
            found.iter().map(|(l, c, m)| (*l, *c, m.split(':').next_back().unwrap())).collect();
        assert_eq!(
            starts,
            [
                (
                    5,
                    8,
                    " 4096 B chunks need ring_beats of 256 at a memory latency of 40 cycles, engine set 0 has 128"
                ),
                (
                    15,
                    9,
                    " 512 B chunks need 9 small_lines at a memory latency of 40 cycles, engine set 0 has 8"
                ),
                (2, 9, "memory port 1 is used by no region"),
            ]
        );
        let found = of(&GOOD.replace("mode = \"output\"", "mode = \"bypass\""));
        assert_eq!(
            found,
            [(
                10,
                8,
                "region \"b\" is not protected: card memory sees and can change it".to_string()
            )]
        );
    }

    #[test]
    fn errors_point_at_line_and_column() {
        let cases = [
            (GOOD.replace("size = \"8 KiB\"", "size = \"8 KB\""), 12, 8, "SHEF-GEN-010"),
            (GOOD.replace("chunk = 512", "chunks = 512"), 13, 1, "SHEF-GEN-010"),
            (GOOD.replace("mode = \"output\"", "mode = \"out\""), 10, 8, "SHEF-GEN-010"),
            (GOOD.replace("base = 0x10000", "base = 0xf000"), 11, 8, "SHEF-GEN-011"),
            (GOOD.replace("base = 0x10000", "base = 0x10040"), 11, 8, "SHEF-GEN-011"),
            (GOOD.replace("key = 128", "key = 192"), 14, 7, "SHEF-GEN-011"),
            (GOOD.replace("key = 128", "key = 128\ntag_base = 0x1000"), 15, 12, "SHEF-GEN-011"),
            (GOOD.replace("chunk = 512", "chunk = 500"), 13, 9, "SHEF-GEN-011"),
            (GOOD.replace("name = \"b\"", "name = \"a\""), 9, 8, "SHEF-GEN-011"),
            (format!("on_fault = \"stop\"\n{GOOD}"), 1, 12, "SHEF-GEN-011"),
            (format!("suite = 2\n{GOOD}"), 1, 9, "SHEF-GEN-011"),
            (format!("[synthesis]\nsbox = \"rom\"\n{GOOD}"), 2, 8, "SHEF-GEN-011"),
            (format!("[synthesis]\nbox = \"ram\"\n{GOOD}"), 2, 1, "SHEF-GEN-010"),
            (format!("{GOOD}\n[[set]]\nlanes = 3\n"), 17, 9, "SHEF-GEN-011"),
            ("\n[[set]]\n".to_owned(), 2, 1, "SHEF-GEN-011"),
            ("[memory]\nports = 2\n".to_owned(), 2, 9, "SHEF-GEN-011"),
        ];
        for (text, line, column, code) in cases {
            let e = fails(&text);
            assert_eq!(
                (e.place().line, e.place().column, e.code()),
                (line, column, code),
                "{e}\n{text}"
            );
        }
    }

    #[test]
    fn messages_show_the_line() {
        let e = fails(&GOOD.replace("base = 0x10000", "base = 0xf000"));
        assert_eq!(
            e.to_string(),
            "11:8: data of region 1 (b) 0xf000..0x11000 overlaps data of region 0 (a) 0x0..0x10000\n   |\n11 | base = 0xf000\n   |        ^^^^^^"
        );
    }

    #[test]
    fn numbers_with_units() {
        assert_eq!(number("4 KiB"), Some(4096));
        assert_eq!(number("0xffff_ffff_ffff_f000"), Some(0xffff_ffff_ffff_f000));
        for bad in
            ["", "KiB", "4 kb", "-1", "0x", "0x+1", "99999999999999999999", "17179869184 TiB"]
        {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_code_is_listed_once() {
        for (i, c) in ShieldError::CODES.iter().enumerate() {
            assert!(ShieldError::CODES[..i].iter().all(|o| o.id != c.id));
        }
    }
}
