//! `cargo xtask coverage`: lines of the Shield's RTL and named cover points reached by the hostile
//! bench and random operations, and lines of the Security Kernel's RTL reached by its tests.
//!
//! The bench runs on instrumented designs (`shef-attack --coverage`) and writes Verilator's
//! records; so do the tests of the Security Kernel's subsystem and of the system ([`UNITS`]), which
//! count only for their own folders ([`OF_UNITS`]). A line is covered if every block on it ran in
//! some instance of its module. The command fails if an uncovered line has no reason in
//! `shell-rtl/coverage.toml`, or a covered line has one. The result is written to
//! `docs/coverage.md`.

use crate::process::{self, Context, Result, anyhow, ensure, output, say};
use crate::{files, lint, root, tools};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;

const RTL: &str = "shell-rtl/rtl";
const REASONS: &str = "shell-rtl/coverage.toml";
const TABLE: &str = "docs/coverage.md";
/// Test programs of the RTL around the Shield.
const UNITS: [&str; 4] =
    ["shef-rtl/kernel", "shef-rtl/kernel_isolated", "shef-rtl/noise", "shef-rtl/system"];
/// The RTL that they cover.
const OF_UNITS: [&str; 2] = ["shell-rtl/rtl/kernel/", "shell-rtl/rtl/system/"];
/// Blocks with an index in the path of a cover point: the name, the text before the index's meaning,
/// and its meanings, such as modes by their number in `region_mode_e`.
const INDICES: [(&str, &str, &str); 6] = [
    ("g_mode", "", "none, input, output, counted, tree, bypass"),
    ("g_policy", "on_fault ", "shield:, region:, halt:"),
    ("g_fault", "fault ", "none, tag, bus, time-out, protocol, node, internal"),
    (
        "g_refusal",
        "refusal ",
        "none, range, burst, read-only, second write, epoch zero, exhausted, not keyed, not written",
    ),
    ("g_command", "command ", "flush, invalidate, epoch"),
    ("g_ahead", "fetched ahead ", "taken, used, failed"),
];

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Attempts of the hostile bench, over three designs
    #[arg(long, default_value_t = 1500)]
    n: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only read the records of the last run again
    #[arg(long)]
    keep: bool,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reasons {
    #[serde(default)]
    line: Vec<LineReason>,
    #[serde(default)]
    point: Vec<Reason>,
    #[serde(default)]
    module: Vec<Reason>,
}

/// Why lines are not reached.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineReason {
    /// File name.
    file: String,
    /// The text of the first line of each block, without surrounding blanks; a block is a sequence
    /// of lines that always run together.
    #[serde(default)]
    text: Vec<String>,
    /// Functions whose lines are all excused.
    #[serde(default)]
    function: Vec<String>,
    why: String,
}

/// Why points are not reached, or why no design contains a module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    #[serde(alias = "point", alias = "module")]
    names: Vec<String>,
    why: String,
}

/// One counter of Verilator's record.
struct Counter {
    file: String,
    place: String,
    page: String,
    comment: String,
    lines: BTreeSet<u32>,
    at: (u32, u32),
    hits: u64,
}

#[derive(Serialize)]
struct Module {
    file: String,
    lines: usize,
    covered: usize,
    explained: usize,
}

#[derive(Serialize)]
struct Missing {
    place: String,
    text: String,
    why: Option<String>,
}

#[derive(Serialize, Default)]
struct Report {
    modules: Vec<Module>,
    points: BTreeMap<String, bool>,
    missing: Vec<Missing>,
    stale: Vec<String>,
}

/// Runs the bench and judges its coverage.
pub fn run(args: &Args) -> Result<()> {
    let folder = process::target_dir().join("coverage");
    let (bench_records, unit_records) = (folder.join("coverage"), folder.join("units"));
    if !args.keep {
        files::remove(&bench_records)?;
        bench(args, &folder)?;
        files::fresh(&unit_records)?;
        units(&unit_records)?;
    }
    let mut counters = records(&bench_records)?;
    counters.extend(records(&unit_records)?.into_iter().filter(of_a_unit));
    let reasons = toml::from_str(&fs::read_to_string(root().join(REASONS))?).context(REASONS)?;
    let report = judge(&counters, &reasons)?;
    fs::write(root().join(TABLE), markdown(&report, args))?;
    if args.json {
        println!("{}", serde_json::json!(report));
    } else {
        println!("{}; {TABLE}", report.total());
    }
    let open = report.missing.iter().filter(|m| m.why.is_none());
    let open: Vec<String> = open.map(|m| format!("{}: {}", m.place, m.text)).collect();
    let mut complaints = Vec::new();
    for (what, found) in [
        (format!("not covered, and no reason in {REASONS}:"), &open),
        (format!("reasons in {REASONS} for what is covered or not there:"), &report.stale),
    ] {
        if !found.is_empty() {
            complaints.push(format!("{what}\n{}", found.join("\n")));
        }
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

/// All counters of the records in a folder.
fn records(folder: &Path) -> Result<Vec<Counter>> {
    let mut counters = Vec::new();
    for path in files::below(folder)? {
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        for line in text.lines().filter(|l| l.starts_with("C ")) {
            let path = path.display();
            let parsed = counter(line);
            counters.push(
                parsed.with_context(|| format!("{path}: not a record of Verilator's: {line:?}"))?,
            );
        }
    }
    Ok(counters)
}

/// Whether a counter of a unit test counts: only the bench covers the Shield's lines.
fn of_a_unit(c: &Counter) -> bool {
    !c.page.starts_with("v_user") && OF_UNITS.iter().any(|folder| c.file.contains(folder))
}

fn units(records: &Path) -> Result<()> {
    let built = crate::test::build()?;
    ensure!(built.outcome().ok(), built.outcome().text);
    let (verilator, ibex) = (tools::verilator()?, tools::ibex()?);
    for name in UNITS {
        say(&format!("coverage of {name}"));
        let binary = built.binaries.iter().find(|b| b.name() == name);
        let binary =
            binary.with_context(|| format!("there is no test program {name}; fix coverage.rs"))?;
        let mut c = binary.command(&verilator);
        c.env("SHEF_COVERAGE", records).env("SHEF_IBEX", &ibex);
        c.env("SHEF_CACHE", process::cache_dir());
        // Tests that look into snapshots fail in instrumented designs; the test run judges them.
        let out = output(&mut c)?;
        ensure!(out.stdout.contains("test result:"), "{name}: {}", out.stderr);
    }
    Ok(())
}

fn bench(args: &Args, folder: &Path) -> Result<()> {
    let mut c = process::built("shef-attack")?;
    c.args(["--coverage", "--quick", "--no-waves", "--json", "--jobs", "2", "--dir"]).arg(folder);
    c.args(["--n", &args.n.to_string(), "--seed", &args.seed.to_string()]);
    c.env("SHEF_VERILATOR", tools::verilator()?);
    let out = output(c.stderr(Stdio::inherit()))?;
    ensure!(out.status.success(), "the bench found a failure; its messages are above");
    Ok(())
}

/// Parses one line of a record: `C '<pairs of key and value>' <hits>`; 1 stands before a key, 2
/// before a value.
fn counter(line: &str) -> Option<Counter> {
    let (pairs, hits) = line.strip_prefix("C '")?.rsplit_once("' ")?;
    let map: BTreeMap<&str, &str> = pairs
        .split('\u{1}')
        .filter(|p| !p.is_empty())
        .filter_map(|p| p.split_once('\u{2}'))
        .collect();
    let value = |key: &str| map.get(key).copied().unwrap_or_default();
    let mut lines = BTreeSet::new();
    for part in value("S").split(',').filter(|p| !p.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        lines.extend(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?);
    }
    Some(Counter {
        file: value("f").to_owned(),
        place: value("h").to_owned(),
        page: value("page").to_owned(),
        comment: value("o").to_owned(),
        lines,
        at: (value("l").parse().ok()?, value("n").parse().ok()?),
        hits: hits.trim().parse().ok()?,
    })
}

/// File, place and kind of a block: the same in every instance and every configuration.
type Block<'a> = (&'a str, (u32, u32), &'a str);

/// The blocks of a file: the lines of each, and whether it ran.
type Blocks<'a> = Vec<(&'a BTreeSet<u32>, bool)>;

fn judge(counters: &[Counter], reasons: &Reasons) -> Result<Report> {
    // The block's lines, and its hits.
    let mut blocks: BTreeMap<Block<'_>, (&BTreeSet<u32>, u64)> = BTreeMap::new();
    let mut points: BTreeMap<String, bool> = BTreeMap::new();
    let mut enums = BTreeMap::new();
    for c in counters {
        if c.page.starts_with("v_user") {
            *points.entry(point(c, &mut enums)?).or_default() |= c.hits > 0;
        } else if c.comment.starts_with("cond_") {
            // The arms of `?:` are values, not lines.
        } else if let Some(at) = c.file.find(RTL) {
            blocks.entry((&c.file[at..], c.at, &c.comment)).or_insert((&c.lines, 0)).1 += c.hits;
        }
    }
    let mut files: BTreeMap<&str, Blocks<'_>> = BTreeMap::new();
    for ((file, ..), (lines, hits)) in &blocks {
        files.entry(file).or_default().push((lines, *hits > 0));
    }
    let mut report = Report::default();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (file, blocks) in &files {
        report.add_file(file, blocks, reasons, &mut used)?;
    }
    for (name, _) in points.iter().filter(|(_, hit)| !**hit) {
        report.add_missing("point", name, why(&reasons.point, name));
        used.insert(name.clone());
    }
    for path in lint::sources(&[RTL])? {
        let name = files::stem(&path);
        if name.ends_with("_pkg") || files.keys().any(|f| Path::new(f) == path) {
            continue;
        }
        report.add_missing("module", &name, why(&reasons.module, &name));
        used.insert(name);
    }
    let of_line = |r: &LineReason| {
        let texts = r.text.iter().chain(&r.function);
        texts.map(|text| format!("{}: {text}", r.file)).collect::<Vec<_>>()
    };
    let all = reasons.line.iter().flat_map(of_line);
    let others = reasons.point.iter().chain(&reasons.module);
    let all = all.chain(others.flat_map(|reason| reason.names.clone()));
    report.stale = all.filter(|reason| !used.contains(reason)).collect();
    report.points = points;
    Ok(report)
}

/// The reason for a point or a module.
fn why<'a>(reasons: &'a [Reason], name: &String) -> Option<&'a String> {
    reasons.iter().find(|reason| reason.names.contains(name)).map(|reason| &reason.why)
}

impl Report {
    fn add_missing(&mut self, place: &str, text: &str, why: Option<&String>) {
        let (place, text) = (place.to_owned(), text.to_owned());
        self.missing.push(Missing { place, text, why: why.cloned() });
    }

    /// Adds a file with its blocks; `used` collects the blocks that need a reason.
    fn add_file(
        &mut self,
        file: &str,
        blocks: &Blocks<'_>,
        reasons: &Reasons,
        used: &mut BTreeSet<String>,
    ) -> Result<()> {
        let text = fs::read_to_string(root().join(file))?;
        let text: Vec<&str> = text.lines().collect();
        let line = |l: u32| text.get(l as usize - 1).map(|t| t.trim()).unwrap_or_default();
        let name = files::name(Path::new(file));
        // `None` for a covered line, else the reason, if every block on the line that was not run
        // has one.
        let mut lines: BTreeMap<u32, Option<Option<&String>>> = BTreeMap::new();
        for (block, run) in blocks {
            let Some(first) = block.first() else { continue };
            let mut open = None;
            if !run {
                let head = line(*first);
                let function = function_at(&text, *first as usize);
                let named = |r: &&LineReason| {
                    let in_function = |f| r.function.iter().any(|name| name == f);
                    r.file == name
                        && (r.text.iter().any(|t| t == head) || function.is_some_and(in_function))
                };
                open = Some(reasons.line.iter().find(named).map(|r| &r.why));
                used.insert(format!("{name}: {head}"));
                used.extend(function.map(|f| format!("{name}: {f}")));
            }
            for l in *block {
                let at = lines.entry(*l).or_default();
                *at = match (*at, open) {
                    (Some(one), Some(other)) => Some(one.and(other)),
                    (one, other) => one.or(other),
                };
            }
        }
        let open = || lines.iter().filter_map(|(l, open)| open.map(|why| (*l, why)));
        for (l, why) in open() {
            self.add_missing(&format!("{name}:{l}"), line(l), why);
        }
        let explained = open().filter(|(_, why)| why.is_some()).count();
        let covered = lines.len() - open().count();
        self.modules.push(Module { file: name, lines: lines.len(), covered, explained });
        Ok(())
    }

    /// All figures in one line.
    fn total(&self) -> String {
        let sum = |figure: fn(&Module) -> usize| self.modules.iter().map(figure).sum::<usize>();
        let (covered, lines) = (sum(|m| m.covered), sum(|m| m.lines));
        let hit = self.points.values().filter(|hit| **hit).count();
        format!("{covered} of {lines} lines, {hit} of {} points", self.points.len())
    }
}

/// The function that contains a line (counted from 1).
fn function_at<'a>(text: &[&'a str], line: usize) -> Option<&'a str> {
    let begin = text.iter().take(line).rposition(|t| t.trim_start().starts_with("function "))?;
    let over =
        text.iter().take(line.saturating_sub(1)).skip(begin).any(|t| t.contains("endfunction"));
    let head = text.get(begin)?.split('(').next()?;
    (!over).then(|| head.split_whitespace().last())?
}

/// The name of a cover point, from its path: `...cover__MODULE__WHAT.g_NAME[i]...`.
fn point(c: &Counter, enums: &mut BTreeMap<String, Vec<String>>) -> Result<String> {
    let odd = || {
        let place = &c.place;
        anyhow!("a cover point is named {place}, expected cover__MODULE__WHAT; fix sim/tb/cover")
    };
    let place = c.place.replace("__BRA__", "[").replace("__KET__", "]").replace("__DOT__", ".");
    let (_, rest) = place.split_once("cover__").ok_or_else(odd)?;
    let mut parts = rest.split('.');
    let (module, what) = parts.next().and_then(|p| p.split_once("__")).ok_or_else(odd)?;
    let mut words = Vec::new();
    for part in parts {
        let Some((block, index)) = part.strip_suffix(']').and_then(|p| p.split_once('[')) else {
            continue;
        };
        let index: usize = index.parse().map_err(|_| odd())?;
        let word = match block {
            "g_state" => {
                let key = format!("{module}.{what}");
                if !enums.contains_key(&key) {
                    enums.insert(key.clone(), states(module, what)?);
                }
                enums.get(&key).and_then(|states| states.get(index).cloned())
            }
            "g_chunk" => Some((1u32 << index).to_string()),
            _ => INDICES.iter().find(|(name, ..)| *name == block).and_then(|(_, before, names)| {
                names.split(", ").nth(index).map(|name| format!("{before}{name}"))
            }),
        };
        words.push(word.ok_or_else(odd)?);
    }
    if c.comment != "seen" {
        words.push(c.comment.clone());
    }
    let words = words.join(" ");
    Ok(if place.contains("g_state") { format!("{module} {what} {words}") } else { words })
}

/// Names of an enumeration's values, in order, from the module's source.
fn states(module: &str, name: &str) -> Result<Vec<String>> {
    let found = lint::sources(&[RTL])?.into_iter().find(|path| files::stem(path) == module);
    let path = found.with_context(|| format!("no source of {module}; fix sim/tb/cover"))?;
    let text = fs::read_to_string(root().join(&path))?;
    let none = || anyhow!("{}: no enumeration {name}; fix sim/tb/cover", path.display());
    let end = text.find(&format!("}} {name};")).ok_or_else(none)?;
    let start = text[..end].rfind('{').ok_or_else(none)?;
    let body: String =
        text[start + 1..end].lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
    Ok(body.split(',').map(|v| v.split('=').next().unwrap_or_default().trim().to_owned()).collect())
}

fn markdown(report: &Report, args: &Args) -> String {
    let units = UNITS.map(|name| format!("`{name}`")).join(", ");
    let (total, n, seed) = (report.total(), args.n, args.seed);
    let mut text = format!(
        "# Coverage of the RTL\n\nWritten by `cargo xtask coverage --n {n} --seed {seed}`: attempts of the hostile bench, a directed sequence for what they do not reach \
         (registers, the ends of a session) and 2,000 random operations, on each of three designs (`sim/tb/configs/cover*.toml`). Together the designs \
         cover every mode at every chunk size, 1, 2 and 4 lanes, S-boxes in LUTs and in block RAM, prefetch, a chunk cache and, each with a counter \
         tree, all fault policies. A line is covered if every block on it ran in some instance of its module. The unit benches of `sim/rtl/tests` and \
         the proofs are not counted, but for `rtl/kernel` and `rtl/system`: their lines are those that the tests {units} reach.\n\n{total}. What is missing has a reason in \
         `{REASONS}`, or the command fails.\n\n## Lines\n\n| module | lines | covered | not, for a reason |\n|---|---:|---:|---:|\n",
    );
    for m in &report.modules {
        let Module { file, lines, covered, explained } = m;
        let module = file.trim_end_matches(".sv");
        let _ = writeln!(text, "| `{module}` | {lines} | {covered} | {explained} |");
    }
    text.push_str("\n## Points\n\n| point | reached |\n|---|---|\n");
    for (name, hit) in &report.points {
        let _ = writeln!(text, "| {name} | {} |", if *hit { "yes" } else { "no" });
    }
    text.push_str("\n## Not covered\n\n| where | what | why |\n|---|---|---|\n");
    for m in &report.missing {
        let what = m.text.replace('|', "\\|");
        let why = m.why.as_deref().unwrap_or("**no reason given**");
        let _ = writeln!(text, "| {} | `{what}` | {why} |", m.place);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter with this page, comment and place.
    fn counted(file: &str, line: u32, rest: &[(&str, &str)], hits: u32) -> Counter {
        let line = line.to_string();
        let pairs = [("f", file), ("l", &line), ("n", "3")];
        let pairs = pairs.iter().chain(rest).map(|(key, value)| format!("\u{1}{key}\u{2}{value}"));
        counter(&format!("C '{}' {hits}", pairs.collect::<String>())).expect("a record")
    }

    fn record(file: &str, line: u32, lines: &str, hits: u32) -> Counter {
        let rest = [("page", "v_line/m"), ("o", "block"), ("S", lines), ("h", ".t")];
        counted(file, line, &rest, hits)
    }

    /// The uncovered lines of one module, each with its reason.
    fn open(report: &Report) -> Vec<(&str, Option<&str>)> {
        let lines = report.missing.iter().filter(|m| m.place.starts_with("shef_skid"));
        lines.map(|m| (m.place.as_str(), m.why.as_deref())).collect()
    }

    #[test]
    fn a_line_without_a_reason_is_reported() -> Result<()> {
        let file = "/x/shell-rtl/rtl/shield/shef_skid.sv";
        let none = Reasons { line: Vec::new(), point: Vec::new(), module: Vec::new() };
        let report = judge(&[record(file, 5, "5-6", 0), record(file, 9, "9", 2)], &none)?;
        assert_eq!(open(&report), [("shef_skid.sv:5", None), ("shef_skid.sv:6", None)]);
        assert_eq!((report.modules[0].lines, report.modules[0].covered), (3, 1));
        assert!(report.missing.iter().all(|m| m.why.is_none()));
        // Run in another instance.
        let report = judge(&[record(file, 5, "5-6", 0), record(file, 5, "5-6", 1)], &none)?;
        assert_eq!(report.modules[0].covered, 2);
        // A reason applies to the block that begins with it, and to no other block on its lines.
        let text = fs::read_to_string(root().join("shell-rtl/rtl/shield/shef_skid.sv"))?;
        let head = text.lines().nth(4).expect("a line").trim();
        let reason = LineReason {
            file: "shef_skid.sv".into(),
            text: vec![head.into()],
            function: Vec::new(),
            why: "x".into(),
        };
        let some = Reasons { line: vec![reason], ..none };
        let blocks = [record(file, 5, "5-7", 0), record(file, 6, "6", 0), record(file, 9, "9", 1)];
        let report = judge(&blocks, &some)?;
        let whys: Vec<_> = open(&report).into_iter().map(|(_, why)| why).collect();
        assert_eq!((whys, report.modules[0].explained), (vec![Some("x"), None, Some("x")], 2));
        Ok(())
    }

    #[test]
    fn a_reason_for_what_is_covered_is_stale() {
        let reasons: Reasons =
            toml::from_str("[[point]]\npoint = [\"gone\"]\nwhy = \"x\"\n").expect("reasons");
        assert_eq!(judge(&[], &reasons).expect("a report").stale, ["gone"]);
    }

    #[test]
    fn points_have_their_names() {
        let mut enums = BTreeMap::new();
        let mut name = |place: &str, comment: &str| {
            let place = format!("top.{place}");
            let rest = [("page", "v_user/m"), ("o", comment), ("h", place.as_str())];
            point(&counted("x.sv", 1, &rest, 1), &mut enums).map_err(|e| e.to_string())
        };
        let set = "t.u_set.cover__shef_set__set";
        for (place, comment, expected) in [
            (
                "t.u_shield.cover__shef_shield__wipe_state_e.g_state__BRA__2__KET____DOT__seen",
                "seen",
                "shef_shield wipe_state_e W_RUN",
            ),
            (&format!("{set}.g_mode[3].g_chunk[9].g_w.written"), "written", "counted 512 written"),
            (&format!("{set}.g_policy[1].g_fault[2].seen"), "seen", "on_fault region: fault bus"),
            (&format!("{set}.g_refusal[8].seen"), "seen", "refusal not written"),
        ] {
            assert_eq!(name(place, comment).as_deref(), Ok(expected));
        }
        let joined = name("t.u_shield.*__KET____DOT__seen", "seen");
        assert!(joined.is_err(), "instances that were put together");
    }

    #[test]
    fn every_state_machine_has_all_its_states() -> Result<()> {
        let text = fs::read_to_string(root().join("sim/tb/cover/shef_cover.sv"))?;
        let mut seen = 0;
        for line in text.lines().filter_map(|l| l.strip_prefix("`SHEF_STATES(")) {
            let words: Vec<&str> = line.trim_end_matches(')').split(", ").collect();
            let [module, name, count, _] = words[..] else { panic!("{line}") };
            assert_eq!(states(module, name)?.len().to_string(), count, "{module} {name}");
            seen += 1;
        }
        assert!(seen > 15);
        assert_eq!(states("shef_set_ctl", "wipe_e")?, ["W_RUN", "W_CLEAR", "W_DONE"]);
        assert_eq!(states("shef_tree_walk", "state_e")?.len(), 7);
        Ok(())
    }

    #[test]
    fn lines_of_a_function() {
        let text = ["a", "  function automatic int f(", "x", "endfunction", "b"];
        let found = [1, 2, 3, 4, 5].map(|line| function_at(&text, line));
        assert_eq!(found, [None, Some("f"), Some("f"), Some("f"), None]);
    }
}
