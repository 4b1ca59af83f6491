//! `cargo xtask coverage`: lines of the Shield's RTL and named cover points reached by the hostile
//! bench and random operations, and lines of the Security Kernel's RTL reached by its tests.
//!
//! The bench runs on instrumented designs (`shef-attack --coverage`) and writes Verilator's
//! records; so do the tests of the Security Kernel's subsystem and of the system ([`UNITS`]), which
//! count only for their own folders ([`OF_UNITS`]). A line is covered if every block on it ran in
//! some instance of its module. The command fails if an uncovered line has no reason in
//! `shell-rtl/coverage.toml`, or a covered line has one. The result is written to
//! `docs/coverage.md`.

use crate::process::{self, Failure, say};
use crate::{root, tools};
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
/// Modes by their number in `region_mode_e`, and so on: the meaning of the index in the path of a
/// cover point.
const MODES: &[&str] = &["none", "input", "output", "counted", "tree", "bypass"];
const POLICIES: &[&str] = &["shield", "region", "halt"];
const FAULTS: &[&str] = &["none", "tag", "bus", "time-out", "protocol", "node", "internal"];
const REFUSALS: &[&str] = &[
    "none",
    "range",
    "burst",
    "read-only",
    "second write",
    "epoch zero",
    "exhausted",
    "not keyed",
    "not written",
];
const COMMANDS: &[&str] = &["flush", "invalidate", "epoch"];
const AHEAD: &[&str] = &["taken", "used", "failed"];

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
    point: Vec<PointReason>,
    #[serde(default)]
    module: Vec<ModuleReason>,
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

/// Why points are not reached.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointReason {
    point: Vec<String>,
    why: String,
}

/// Why no design contains a module.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModuleReason {
    module: Vec<String>,
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
pub fn run(args: &Args) -> Result<(), Failure> {
    let folder = process::target_dir().join("coverage");
    if !args.keep {
        bench(args, &folder)?;
        units(&folder.join(UNIT_RECORDS))?;
    }
    let mut counters = records(&folder.join("coverage"))?;
    counters.extend(records(&folder.join(UNIT_RECORDS))?.into_iter().filter(of_a_unit));
    let path = root().join(REASONS);
    let reasons: Reasons =
        toml::from_str(&process::read(&path)?).map_err(|e| Failure::at(&path, &e))?;
    let report = judge(&counters, &reasons)?;
    let open: Vec<String> = report
        .missing
        .iter()
        .filter(|m| m.why.is_none())
        .map(|m| format!("{}: {}", m.place, m.text))
        .collect();
    let table = root().join(TABLE);
    std::fs::write(&table, markdown(&report, args)).map_err(|e| Failure::at(&table, &e))?;
    if args.json {
        println!("{}", serde_json::json!(report));
    } else {
        let (lines, covered) =
            report.modules.iter().fold((0, 0), |a, m| (a.0 + m.lines, a.1 + m.covered));
        let hit = report.points.values().filter(|h| **h).count();
        println!("{covered} of {lines} lines, {hit} of {} points; {TABLE}", report.points.len());
    }
    if open.is_empty() && report.stale.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    if !open.is_empty() {
        let _ = write!(text, "not covered, and no reason in {REASONS}:\n{}\n", open.join("\n"));
    }
    if !report.stale.is_empty() {
        let _ = write!(
            text,
            "reasons in {REASONS} for what is covered or not there:\n{}",
            report.stale.join("\n")
        );
    }
    Err(Failure::failed(text.trim_end().to_owned()))
}

/// Folder for the records of the unit tests.
const UNIT_RECORDS: &str = "units";

/// All counters of the records in a folder.
fn records(folder: &Path) -> Result<Vec<Counter>, Failure> {
    let mut counters = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| Failure::at(folder, &e))? {
        let path = entry.map_err(|e| Failure::at(folder, &e))?.path();
        let text =
            String::from_utf8_lossy(&std::fs::read(&path).map_err(|e| Failure::at(&path, &e))?)
                .into_owned();
        for line in text.lines().filter(|l| l.starts_with("C ")) {
            counters.push(counter(line).ok_or_else(|| {
                Failure::failed(format!(
                    "{}: not a record of Verilator's: {line:?}",
                    path.display()
                ))
            })?);
        }
    }
    Ok(counters)
}

/// Whether a counter of a unit test counts: only the bench covers the Shield's lines.
fn of_a_unit(c: &Counter) -> bool {
    !c.page.starts_with("v_user") && OF_UNITS.iter().any(|folder| c.file.contains(folder))
}

fn units(records: &Path) -> Result<(), Failure> {
    if records.exists() {
        std::fs::remove_dir_all(records).map_err(|e| Failure::at(records, &e))?;
    }
    std::fs::create_dir_all(records).map_err(|e| Failure::at(records, &e))?;
    let built = crate::test::build()?;
    if !built.outcome().ok() {
        return Err(Failure::failed(built.outcome().text));
    }
    let verilator = tools::ensure_verilator(&root(), &say)?;
    let ibex = tools::ensure_ibex(&root(), &say)?;
    for name in UNITS {
        say(&format!("coverage of {name}"));
        let binary = built.binaries.iter().find(|b| b.name() == name);
        let binary = binary.ok_or_else(|| {
            Failure::failed(format!("there is no test program {name}; fix coverage.rs"))
        })?;
        let mut c = binary.command(&verilator);
        c.env("SHEF_COVERAGE", records)
            .env("SHEF_IBEX", &ibex)
            .env("SHEF_CACHE", process::cache_dir())
            .stdin(Stdio::null());
        // Tests that look into snapshots fail in instrumented designs; the test run judges them.
        let out = c.output().map_err(|e| Failure::failed(format!("{name}: {e}")))?;
        if !String::from_utf8_lossy(&out.stdout).contains("test result:") {
            return Err(Failure::failed(format!(
                "{name}: {}",
                String::from_utf8_lossy(&out.stderr)
            )));
        }
    }
    Ok(())
}

fn bench(args: &Args, folder: &Path) -> Result<(), Failure> {
    let records = folder.join("coverage");
    if records.exists() {
        std::fs::remove_dir_all(&records).map_err(|e| Failure::at(&records, &e))?;
    }
    let verilator = tools::ensure_verilator(&root(), &say)?;
    let mut c = process::built("shef-attack")?;
    c.env("SHEF_VERILATOR", verilator)
        .args(["--coverage", "--quick", "--no-waves", "--json", "--jobs", "2", "--dir"])
        .arg(folder);
    c.args(["--n", &args.n.to_string(), "--seed", &args.seed.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let out = c.output().map_err(|e| Failure::failed(format!("shef-attack: {e}")))?;
    if out.status.success() {
        Ok(())
    } else {
        Err(Failure::failed("the bench found a failure; its messages are above"))
    }
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

fn judge(counters: &[Counter], reasons: &Reasons) -> Result<Report, Failure> {
    // the block's lines, and its hits
    let mut blocks: BTreeMap<Block<'_>, (&BTreeSet<u32>, u64)> = BTreeMap::new();
    let mut points: BTreeMap<String, bool> = BTreeMap::new();
    let mut enums = BTreeMap::new();
    for c in counters {
        if c.page.starts_with("v_user") {
            *points.entry(point(c, &mut enums)?).or_default() |= c.hits > 0;
        } else if c.comment.starts_with("cond_") {
            // the arms of `?:` are values, not lines
        } else if let Some(at) = c.file.find(RTL) {
            blocks.entry((&c.file[at..], c.at, &c.comment)).or_insert((&c.lines, 0)).1 += c.hits;
        }
    }
    let mut files: BTreeMap<&str, Vec<(&BTreeSet<u32>, bool)>> = BTreeMap::new();
    for ((file, ..), (lines, hits)) in &blocks {
        files.entry(file).or_default().push((lines, *hits > 0));
    }
    let mut report = Report::default();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for (file, blocks) in &files {
        let text = process::read(&root().join(file))?;
        let text: Vec<&str> = text.lines().collect();
        let line = |l: u32| text.get(l as usize - 1).map(|t| t.trim()).unwrap_or_default();
        let name = file.rsplit('/').next().unwrap_or_default();
        // `None` for a covered line, else the reason, if every block on the line that was not run
        // has one
        let mut lines: BTreeMap<u32, Option<Option<&str>>> = BTreeMap::new();
        for (block, run) in blocks {
            let Some(first) = block.first() else { continue };
            let mut open = None;
            if !run {
                let head = line(*first);
                let function = function_at(&text, *first as usize);
                let named = |r: &&LineReason| {
                    r.text.iter().any(|t| t == head)
                        || function.is_some_and(|f| r.function.iter().any(|n| n == f))
                };
                open = Some(
                    reasons
                        .line
                        .iter()
                        .filter(|r| r.file == name)
                        .find(named)
                        .map(|r| r.why.as_str()),
                );
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
        let open = lines.iter().filter_map(|(l, open)| open.map(|why| (*l, why)));
        let missing: Vec<Missing> = open
            .map(|(l, why)| Missing {
                place: format!("{name}:{l}"),
                text: line(l).to_owned(),
                why: why.map(str::to_owned),
            })
            .collect();
        let explained = missing.iter().filter(|m| m.why.is_some()).count();
        report.modules.push(Module {
            file: name.to_owned(),
            lines: lines.len(),
            covered: lines.len() - missing.len(),
            explained,
        });
        report.missing.extend(missing);
    }
    for (name, _) in points.iter().filter(|(_, hit)| !**hit) {
        let reason = reasons.point.iter().find(|r| r.point.contains(name));
        used.insert(name.clone());
        report.missing.push(Missing {
            place: "point".into(),
            text: name.clone(),
            why: reason.map(|r| r.why.clone()),
        });
    }
    for path in crate::lint::sources(&[RTL])? {
        let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if name.ends_with("_pkg") || files.keys().any(|f| Path::new(f) == path) {
            continue;
        }
        let reason = reasons.module.iter().find(|r| r.module.contains(&name));
        used.insert(name.clone());
        report.missing.push(Missing {
            place: "module".into(),
            text: name,
            why: reason.map(|r| r.why.clone()),
        });
    }
    let lines = reasons
        .line
        .iter()
        .flat_map(|r| r.text.iter().chain(&r.function).map(|t| format!("{}: {t}", r.file)));
    let others = reasons
        .point
        .iter()
        .flat_map(|r| r.point.clone())
        .chain(reasons.module.iter().flat_map(|r| r.module.clone()));
    report.stale = lines.chain(others).filter(|r| !used.contains(r)).collect();
    report.points = points;
    Ok(report)
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
fn point(c: &Counter, enums: &mut BTreeMap<String, Vec<String>>) -> Result<String, Failure> {
    let odd = || {
        Failure::failed(format!(
            "a cover point is named {}, expected cover__MODULE__WHAT; fix sim/tb/cover",
            c.place
        ))
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
        let name = |names: &[&str]| names.get(index).map(|n| (*n).to_owned());
        let word = match block {
            "g_state" => {
                let key = format!("{module}.{what}");
                if !enums.contains_key(&key) {
                    enums.insert(key.clone(), states(module, what)?);
                }
                enums.get(&key).and_then(|s| s.get(index).cloned())
            }
            "g_mode" => name(MODES),
            "g_chunk" => Some((1u32 << index).to_string()),
            "g_policy" => name(POLICIES).map(|p| format!("on_fault {p}:")),
            "g_fault" => name(FAULTS).map(|f| format!("fault {f}")),
            "g_refusal" => name(REFUSALS).map(|r| format!("refusal {r}")),
            "g_command" => name(COMMANDS).map(|r| format!("command {r}")),
            "g_ahead" => name(AHEAD).map(|a| format!("fetched ahead {a}")),
            _ => None,
        };
        words.push(word.ok_or_else(odd)?);
    }
    let states = place.contains("g_state");
    if !matches!(c.comment.as_str(), "seen") {
        words.push(c.comment.clone());
    }
    Ok(if states { format!("{module} {what} {}", words.join(" ")) } else { words.join(" ") })
}

/// Names of an enumeration's values, in order, from the module's source.
fn states(module: &str, name: &str) -> Result<Vec<String>, Failure> {
    let found = crate::lint::sources(&[RTL])?
        .into_iter()
        .find(|p| p.file_stem().is_some_and(|s| s == module));
    let path =
        found.ok_or_else(|| Failure::failed(format!("no source of {module}; fix sim/tb/cover")))?;
    let text = process::read(&root().join(&path))?;
    let none =
        || Failure::failed(format!("{}: no enumeration {name}; fix sim/tb/cover", path.display()));
    let end = text.find(&format!("}} {name};")).ok_or_else(none)?;
    let start = text[..end].rfind('{').ok_or_else(none)?;
    let body: String =
        text[start + 1..end].lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
    Ok(body.split(',').map(|v| v.split('=').next().unwrap_or_default().trim().to_owned()).collect())
}

fn markdown(report: &Report, args: &Args) -> String {
    let (lines, covered) =
        report.modules.iter().fold((0, 0), |a, m| (a.0 + m.lines, a.1 + m.covered));
    let hit = report.points.values().filter(|h| **h).count();
    let mut text = format!(
        "# Coverage of the RTL\n\nWritten by `cargo xtask coverage --n {} --seed {}`: attempts of the hostile bench, a directed sequence for what they do not reach \
         (registers, the ends of a session) and 2,000 random operations, on each of three designs (`sim/tb/configs/cover*.toml`). Together the designs \
         cover every mode at every chunk size, 1, 2 and 4 lanes, S-boxes in LUTs and in block RAM, prefetch, a chunk cache and, each with a counter \
         tree, all fault policies. A line is covered if every block on it ran in some instance of its module. The unit benches of `sim/rtl/tests` and \
         the proofs are not counted, but for `rtl/kernel` and `rtl/system`: their lines are those that the tests {} reach.\n\n{covered} of {lines} lines, {hit} of {} points. What is missing has a reason in \
         `{REASONS}`, or the command fails.\n\n## Lines\n\n| module | lines | covered | not, for a reason |\n|---|---:|---:|---:|\n",
        args.n,
        args.seed,
        UNITS.map(|name| format!("`{name}`")).join(", "),
        report.points.len()
    );
    for m in &report.modules {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            m.file.trim_end_matches(".sv"),
            m.lines,
            m.covered,
            m.explained
        );
    }
    text.push_str("\n## Points\n\n| point | reached |\n|---|---|\n");
    for (name, hit) in &report.points {
        let _ = writeln!(text, "| {name} | {} |", if *hit { "yes" } else { "no" });
    }
    text.push_str("\n## Not covered\n\n| where | what | why |\n|---|---|---|\n");
    for m in &report.missing {
        let what = m.text.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| {} | `{what}` | {} |",
            m.place,
            m.why.as_deref().unwrap_or("**no reason given**")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(file: &str, line: u32, lines: &str, hits: u32) -> Counter {
        let text = format!(
            "C '\u{1}f\u{2}{file}\u{1}l\u{2}{line}\u{1}n\u{2}3\u{1}page\u{2}v_line/m\u{1}o\u{2}block\u{1}S\u{2}{lines}\u{1}h\u{2}.t' {hits}"
        );
        counter(&text).expect("a record")
    }

    #[test]
    fn a_line_without_a_reason_is_told() {
        let file = "/x/shell-rtl/rtl/shield/shef_skid.sv";
        let none = Reasons { line: Vec::new(), point: Vec::new(), module: Vec::new() };
        let report =
            judge(&[record(file, 5, "5-6", 0), record(file, 9, "9", 2)], &none).expect("a report");
        let open: Vec<&str> = report
            .missing
            .iter()
            .filter(|m| m.place.starts_with("shef_skid"))
            .map(|m| m.place.as_str())
            .collect();
        assert_eq!(open, ["shef_skid.sv:5", "shef_skid.sv:6"]);
        assert!(
            (report.modules[0].lines, report.modules[0].covered) == (3, 1)
                && report.missing.iter().all(|m| m.why.is_none())
        );
        // run in another instance
        let report = judge(&[record(file, 5, "5-6", 0), record(file, 5, "5-6", 1)], &none)
            .expect("a report");
        assert_eq!(report.modules[0].covered, 2);
        // a reason applies to the block that begins with it, and to no other block on its lines
        let text =
            process::read(&root().join("shell-rtl/rtl/shield/shef_skid.sv")).expect("source");
        let head = text.lines().nth(4).expect("a line").trim();
        let one = LineReason {
            file: "shef_skid.sv".into(),
            text: vec![head.into()],
            function: Vec::new(),
            why: "x".into(),
        };
        let some = Reasons { line: vec![one], point: Vec::new(), module: Vec::new() };
        let report = judge(
            &[record(file, 5, "5-7", 0), record(file, 6, "6", 0), record(file, 9, "9", 1)],
            &some,
        )
        .expect("a report");
        let whys: Vec<bool> = report
            .missing
            .iter()
            .filter(|m| m.place.starts_with("shef_skid"))
            .map(|m| m.why.is_some())
            .collect();
        assert_eq!((whys, report.modules[0].explained), (vec![true, false, true], 2));
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
            let text = format!(
                "C '\u{1}f\u{2}x.sv\u{1}l\u{2}1\u{1}n\u{2}1\u{1}page\u{2}v_user/m\u{1}o\u{2}{comment}\u{1}h\u{2}top.{place}' 1"
            );
            point(&counter(&text).expect("a record"), &mut enums).map_err(|e| format!("{e:?}"))
        };
        let mangled =
            "t.u_shield.cover__shef_shield__wipe_state_e.g_state__BRA__2__KET____DOT__seen";
        assert_eq!(name(mangled, "seen").as_deref(), Ok("shef_shield wipe_state_e W_RUN"));
        let set = "t.u_set.cover__shef_set__set";
        assert_eq!(
            name(&format!("{set}.g_mode[3].g_chunk[9].g_w.written"), "written").as_deref(),
            Ok("counted 512 written")
        );
        assert_eq!(
            name(&format!("{set}.g_policy[1].g_fault[2].seen"), "seen").as_deref(),
            Ok("on_fault region: fault bus")
        );
        assert_eq!(
            name(&format!("{set}.g_refusal[8].seen"), "seen").as_deref(),
            Ok("refusal not written")
        );
        assert!(
            name("t.u_shield.*__KET____DOT__seen", "seen").is_err(),
            "instances that were put together"
        );
    }

    #[test]
    fn every_state_machine_has_all_its_states() {
        let text = process::read(&root().join("sim/tb/cover/shef_cover.sv")).expect("cover points");
        let mut seen = 0;
        for line in text.lines().filter_map(|l| l.strip_prefix("`SHEF_STATES(")) {
            let words: Vec<&str> = line.trim_end_matches(')').split(", ").collect();
            let [module, name, count, _] = words[..] else { panic!("{line}") };
            assert_eq!(
                states(module, name).expect("states").len().to_string(),
                count,
                "{module} {name}"
            );
            seen += 1;
        }
        assert!(seen > 15);
    }

    #[test]
    fn lines_of_a_function() {
        let text = ["a", "  function automatic int f(", "x", "endfunction", "b"];
        assert_eq!(
            [1, 2, 3, 4, 5].map(|l| function_at(&text, l)),
            [None, Some("f"), Some("f"), Some("f"), None]
        );
    }

    #[test]
    fn states_have_their_names() {
        assert_eq!(
            states("shef_set_ctl", "wipe_e").expect("states"),
            ["W_RUN", "W_CLEAR", "W_DONE"]
        );
        assert_eq!(states("shef_tree_walk", "state_e").expect("states").len(), 7);
    }
}
