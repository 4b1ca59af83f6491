//! `cargo xtask formal`: the proofs of `shell-rtl/formal`, by yosys, sby and z3.
//!
//! `proofs.toml` lists the proofs with their sources and depth. Each proof has three kinds of tasks: `prove` (k-induction, or a bound), `cover` (every cover point of the bench is reached, so its assumptions are satisfiable), and one task per mutant: a copy of the RTL with one edit, for which the property must fail, so that no proof is vacuous. A successful task is not run again until one of its sources changes.

use crate::process::{self, Failure, say};
use crate::{mutants, root, tools};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

const FOLDER: &str = "shell-rtl/formal";
const RTL: &str = "shell-rtl/rtl";
/// Read before the RTL of every proof.
const PACKAGES: &[&str] = &["pkg/shef_pkg.sv", "shield/shef_set_pkg.sv"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    proof: Vec<Proof>,
}

#[derive(Clone, Copy, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Method {
    /// k-induction: holds in all reachable states.
    Induction,
    /// No counterexample within `depth` cycles of reset.
    Bound,
}

/// One bench.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    /// Name of the bench: `NAME.sv` with the top module `NAME`.
    name: String,
    /// What is proven, in one line.
    claim: String,
    /// Sources below `shell-rtl/rtl`, in reading order; the packages are added automatically.
    rtl: Vec<String>,
    /// Further benches of this folder, read before `NAME.sv`.
    #[serde(default)]
    with: Vec<String>,
    method: Method,
    depth: u32,
    /// Cycles within which every cover point is reached.
    cover: u32,
    /// Part of the normal test.
    #[serde(default)]
    quick: bool,
    mutant: Vec<Mutant>,
}

/// A copy of the RTL with one edit, in which the proof must fail.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    /// Below `shell-rtl/rtl`.
    file: String,
    /// The text to replace; occurs in the file exactly once.
    find: String,
    replace: String,
    /// Cycles within which the proof must fail.
    depth: u32,
}

#[derive(Serialize)]
struct Row<'a> {
    proof: &'a str,
    task: String,
    method: &'static str,
    depth: u32,
    outcome: String,
    ok: bool,
    /// Processor time, as reported by sby.
    seconds: f64,
    cached: bool,
}

/// The cached result of a successful task.
#[derive(Serialize, Deserialize)]
struct Kept {
    outcome: String,
    /// Processor time.
    seconds: f64,
}

#[derive(clap::Args)]
pub struct Args {
    /// Only proofs whose name contains this
    #[arg(default_value = "")]
    filter: String,
    /// Only the quick proofs, without mutants, as in the normal test
    #[arg(long)]
    quick: bool,
    /// Also run tasks that succeeded before
    #[arg(long)]
    again: bool,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// The command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let prover = tools::ensure_prover(&root(), &say)?;
    check(&prover, args, &|line| if args.json { eprintln!("{line}") } else { println!("{line}") })
}

/// The quick proofs, for the normal test; the full test tries their mutants.
pub fn quick(prover: &tools::Prover, line: &Line<'_>) -> Result<(), Failure> {
    check(prover, &Args { filter: String::new(), quick: true, again: false, json: false }, line)
}

/// All proofs with all mutants, for the full test.
pub fn all_of_them(prover: &tools::Prover, line: &Line<'_>) -> Result<(), Failure> {
    check(prover, &Args { filter: String::new(), quick: false, again: false, json: false }, line)
}

fn check(prover: &tools::Prover, args: &Args, line: &Line<'_>) -> Result<(), Failure> {
    let manifest = manifest()?;
    let chosen: Vec<&Proof> = manifest
        .proof
        .iter()
        .filter(|p| p.name.contains(&args.filter) && (p.quick || !args.quick))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::failed(format!(
            "no proof has '{}' in its name; {FOLDER}/proofs.toml lists them",
            args.filter
        )));
    }
    let start = Instant::now();
    line(&format!(
        "{:<14} {:<34} {:<10} {:>5} {:<8} {:>7}",
        "proof", "task", "method", "depth", "result", "s"
    ));
    let mut work = Vec::new();
    for p in chosen {
        work.extend(
            tasks(p)?
                .into_iter()
                .filter(|task| !args.quick || task.method != "mutant")
                .map(|task| (p, task)),
        );
    }
    let rows = all(prover, &work, args.again, line)?;
    let bad: Vec<String> = rows
        .iter()
        .filter(|r| !r.ok)
        .map(|r| {
            format!(
                "{} {}: {}; see {}",
                r.proof,
                r.task,
                r.outcome,
                folder(r.proof, &r.task).join("logfile.txt").display()
            )
        })
        .collect();
    line(&format!("{} tasks, {} failed, {} s", rows.len(), bad.len(), start.elapsed().as_secs()));
    if args.json {
        println!("{}", serde_json::json!({ "rows": rows, "seconds": start.elapsed().as_secs() }));
    }
    if bad.is_empty() { Ok(()) } else { Err(Failure::failed(bad.join("\n"))) }
}

/// Runs the tasks on as many threads as there are cores. Rows are in the order of completion.
fn all<'a>(
    prover: &tools::Prover,
    work: &'a [(&'a Proof, Task)],
    again: bool,
    line: &Line<'_>,
) -> Result<Vec<Row<'a>>, Failure> {
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || -> Result<(), Failure> {
        while let Some((p, task)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = one(prover, p, task, again)?;
            let seconds = if row.cached { "kept".into() } else { format!("{:.1}", row.seconds) };
            line(&format!(
                "{:<14} {:<34} {:<10} {:>5} {:<8} {seconds:>7}",
                row.proof, row.task, row.method, row.depth, row.outcome
            ));
            rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..cores).map(|_| s.spawn(worker)).collect();
        threads.into_iter().try_for_each(|t| {
            t.join().unwrap_or_else(|_| Err(Failure::failed("a proof did not complete")))
        })
    })?;
    Ok(rows.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Prints one line; the tasks' threads share it.
type Line<'a> = dyn Fn(&str) + Sync + 'a;

/// One run of sby.
struct Task {
    name: String,
    mode: &'static str,
    method: &'static str,
    depth: u32,
    /// The expected result of sby.
    want: &'static str,
    /// Name and text of each source, in reading order.
    sources: Vec<(String, String)>,
}

fn tasks(p: &Proof) -> Result<Vec<Task>, Failure> {
    let rtl = PACKAGES.iter().map(|s| (*s).to_owned()).chain(p.rtl.iter().cloned());
    let benches = p.with.iter().cloned().chain([format!("{}.sv", p.name)]);
    let paths: Vec<PathBuf> = rtl
        .map(|f| root().join(RTL).join(f))
        .chain(benches.map(|f| root().join(FOLDER).join(f)))
        .collect();
    let mut sources = Vec::new();
    for path in &paths {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        sources.push((name, process::read(path)?));
    }
    let bench = sources.last().map(|(_, text)| text.as_str()).unwrap_or_default();
    if !bench.contains("cover (") || p.mutant.is_empty() || p.claim.is_empty() {
        return Err(Failure::failed(format!(
            "{}: a proof needs a claim, a cover point and a mutant",
            p.name
        )));
    }
    let (mode, method) = match p.method {
        Method::Induction => ("prove", "induction"),
        Method::Bound => ("bmc", "bound"),
    };
    let mut all = vec![
        Task {
            name: "prove".into(),
            mode,
            method,
            depth: p.depth,
            want: "PASS",
            sources: sources.clone(),
        },
        Task {
            name: "cover".into(),
            mode: "cover",
            method: "cover",
            depth: p.cover,
            want: "PASS",
            sources: sources.clone(),
        },
    ];
    for m in &p.mutant {
        let mut sources = sources.clone();
        let file = Path::new(&m.file)
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some((_, text)) = sources.iter_mut().find(|(n, _)| *n == file) else {
            return Err(Failure::failed(format!(
                "{}: mutant {} changes {}, which the proof does not read",
                p.name, m.name, m.file
            )));
        };
        let found = text.matches(&m.find).count();
        if found != 1 {
            let why = format!(
                "{}: the text of mutant {} stands {found} times in {}, expected once",
                p.name, m.name, m.file
            );
            return Err(Failure::failed(format!("{why}; fix {FOLDER}/proofs.toml")));
        }
        *text = text.replacen(&m.find, &m.replace, 1);
        all.push(Task {
            name: m.name.clone(),
            mode: "bmc",
            method: "mutant",
            depth: m.depth,
            want: "FAIL",
            sources,
        });
    }
    // Mutants from the list of places.
    let depth = p.mutant.iter().map(|m| m.depth).max().unwrap_or(p.depth);
    for (name, path, text) in mutants::of_proof(&p.name)? {
        let mut sources = sources.clone();
        let file = Path::new(&path)
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some((_, of)) = sources.iter_mut().find(|(n, _)| *n == file) else {
            return Err(Failure::failed(format!(
                "{}: place {name} is in {path}, which the proof does not read",
                p.name
            )));
        };
        *of = text;
        all.push(Task { name, mode: "bmc", method: "mutant", depth, want: "FAIL", sources });
    }
    Ok(all)
}

fn folder(proof: &str, task: &str) -> PathBuf {
    process::target_dir().join("formal").join(proof).join(task)
}

fn one<'a>(
    prover: &tools::Prover,
    p: &'a Proof,
    task: &Task,
    again: bool,
) -> Result<Row<'a>, Failure> {
    let mut config = format!(
        "[options]\nmode {}\ndepth {}\n[engines]\nsmtbmc --nomem z3\n[script]\nread_slang -j 1 --no-synthesis-define --top {}",
        task.mode, task.depth, p.name
    );
    for (name, _) in &task.sources {
        let _ = write!(config, " {name}");
    }
    let _ = write!(config, "\nprep -top {}\n[files]\n", p.name);
    for (name, _) in &task.sources {
        let _ = writeln!(config, "in/{name}");
    }

    let mut hash = Sha256::new();
    for part in
        [&config, &prover.version].into_iter().chain(task.sources.iter().map(|(_, text)| text))
    {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let kept = process::cache_dir().join("formal").join(hex::encode(hash.finalize()));
    let row = |outcome: String, seconds, cached| Row {
        proof: &p.name,
        task: task.name.clone(),
        method: task.method,
        depth: task.depth,
        ok: outcome == "ok" || outcome == "caught",
        outcome,
        seconds,
        cached,
    };
    if !again
        && let Ok(text) = std::fs::read_to_string(&kept)
        && let Ok(k) = serde_json::from_str::<Kept>(&text)
    {
        return Ok(row(k.outcome, k.seconds, true));
    }

    let work = folder(&p.name, &task.name);
    let fail = |e: std::io::Error| Failure::failed(format!("{}: {e}", work.display()));
    if work.exists() {
        std::fs::remove_dir_all(&work).map_err(fail)?;
    }
    std::fs::create_dir_all(work.join("in")).map_err(fail)?;
    for (name, text) in &task.sources {
        std::fs::write(work.join("in").join(name), text).map_err(fail)?;
    }
    std::fs::write(work.join("task.sby"), config).map_err(fail)?;
    // One process at a time: first the base case, then the induction step.
    let out = prover
        .sby()
        .current_dir(&work)
        .args(["-j", "1", "-f", "-d", "run", "task.sby"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Failure::failed(format!("sby: {e}")))?;
    let mut log = out.stdout;
    log.extend(out.stderr);
    std::fs::write(work.join("logfile.txt"), &log).map_err(fail)?;
    let status = std::fs::read_to_string(work.join("run/status")).unwrap_or_default();
    let mut words = status.split_whitespace();
    let status = words.next().unwrap_or("ERROR");
    let seconds = words.nth(1).and_then(|s| s.parse().ok()).unwrap_or_default();
    let outcome = match (status == task.want, task.method, status) {
        (true, "mutant", _) => "caught".into(),
        (true, ..) => "ok".into(),
        (false, "mutant", "PASS") => "SURVIVED".into(),
        (false, _, "ERROR") => {
            let text = String::from_utf8_lossy(&log);
            for l in text.lines().filter(|l| l.contains("error") || l.contains("ERROR")).take(5) {
                say(l);
            }
            "ERROR".into()
        }
        (false, _, other) => other.to_owned(),
    };
    if status == task.want {
        let text = serde_json::json!(Kept { outcome: outcome.clone(), seconds }).to_string();
        std::fs::create_dir_all(kept.with_file_name("")).map_err(fail)?;
        std::fs::write(&kept, text).map_err(fail)?;
    }
    Ok(row(outcome, seconds, false))
}

fn manifest() -> Result<Manifest, Failure> {
    let path = root().join(FOLDER).join("proofs.toml");
    toml::from_str(&process::read(&path)?)
        .map_err(|e| Failure::failed(format!("{}: {e}", path.display())))
}

/// The mutants of all proofs: proof, name, file below `rtl`, and the text to replace.
#[cfg(test)]
pub fn mutants() -> Result<Vec<(String, String, String, String)>, Failure> {
    let of = |p: Proof| p.mutant.into_iter().map(move |m| (p.name.clone(), m.name, m.file, m.find));
    Ok(manifest()?.proof.into_iter().flat_map(of).collect())
}

/// Names of all proofs.
#[cfg(test)]
pub fn names() -> Vec<String> {
    manifest().expect("manifest").proof.into_iter().map(|proof| proof.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_still_finds_its_text() {
        let manifest = manifest().expect("manifest");
        for p in &manifest.proof {
            let all = tasks(p).expect("tasks");
            let places = mutants::of_proof(&p.name).expect("places").len();
            assert!(all.len() == p.mutant.len() + places + 2, "{}", p.name);
        }
    }

    #[test]
    fn the_readme_tells_of_every_proof() {
        let manifest = manifest().expect("manifest");
        let text = process::read(&root().join(FOLDER).join("README.md")).expect("README");
        for p in &manifest.proof {
            for form in [format!("\n| `{}` |", p.name), format!("\n- `{}`: ", p.name)] {
                assert!(text.contains(&form), "{FOLDER}/README.md has no line {:?}", form.trim());
            }
        }
    }
}
