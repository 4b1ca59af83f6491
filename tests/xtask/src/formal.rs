//! `cargo xtask formal`: the proofs of `shell-rtl/formal`, by yosys, sby and z3.
//!
//! `proofs.toml` lists the proofs with their sources and depth. Each proof has three kinds of tasks:
//! `prove` (k-induction, or a bound), `cover` (every cover point of the bench is reached, so its
//! assumptions are satisfiable), and one task per mutant: a copy of the RTL with one edit, for which
//! the property must fail, so that no proof is vacuous. A successful task is not run again until one
//! of its sources changes.

use crate::process::{self, Context, Result, anyhow, bail, ensure, output, say};
use crate::{files, mutants, root, tools};
use fs_err as fs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
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
    /// The bench has several clocks, each a free input.
    #[serde(default)]
    clocks: bool,
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
struct Cached {
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
pub fn run(args: &Args) -> Result<()> {
    check(args, &|line| if args.json { eprintln!("{line}") } else { println!("{line}") })
}

/// For the normal test the quick proofs; for the full test all proofs with all mutants.
pub fn prove(quick: bool, line: &Line<'_>) -> Result<()> {
    check(&Args { filter: String::new(), quick, again: false, json: false }, line)
}

fn check(args: &Args, line: &Line<'_>) -> Result<()> {
    let prover = tools::prover()?;
    let manifest = manifest()?;
    let filter = &args.filter;
    let chosen = |p: &&Proof| p.name.contains(filter) && (p.quick || !args.quick);
    let chosen: Vec<&Proof> = manifest.proof.iter().filter(chosen).collect();
    let help = format!("{FOLDER}/proofs.toml lists them");
    ensure!(!chosen.is_empty(), "no proof has '{filter}' in its name; {help}");
    let start = Instant::now();
    line(&format!(
        "{:<14} {:<34} {:<10} {:>5} {:<8} {:>7}",
        "proof", "task", "method", "depth", "result", "s"
    ));
    let mut work = Vec::new();
    for p in chosen {
        let tasks = tasks(p)?.into_iter().filter(|task| !args.quick || task.method != "mutant");
        work.extend(tasks.map(|task| (p, task)));
    }
    let rows = all(&prover, &work, args.again, line)?;
    let bad = rows.iter().filter(|row| !row.ok).map(|row| {
        let log = folder(row.proof, &row.task).join("logfile.txt");
        format!("{} {}: {}; see {}", row.proof, row.task, row.outcome, log.display())
    });
    let bad: Vec<String> = bad.collect();
    let seconds = start.elapsed().as_secs();
    line(&format!("{} tasks, {} failed, {seconds} s", rows.len(), bad.len()));
    if args.json {
        println!("{}", serde_json::json!({ "rows": rows, "seconds": seconds }));
    }
    ensure!(bad.is_empty(), "{}", bad.join("\n"));
    Ok(())
}

/// Runs the tasks on as many threads as there are cores. Rows are in the order of completion.
fn all<'a>(
    prover: &tools::Prover,
    work: &'a [(&'a Proof, Task)],
    again: bool,
    line: &Line<'_>,
) -> Result<Vec<Row<'a>>> {
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let worker = || -> Result<()> {
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
        threads
            .into_iter()
            .try_for_each(|t| t.join().unwrap_or_else(|_| Err(anyhow!("a proof did not complete"))))
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

fn tasks(p: &Proof) -> Result<Vec<Task>> {
    let rtl = PACKAGES.iter().map(|s| (*s).to_owned()).chain(p.rtl.iter().cloned());
    let benches = p.with.iter().cloned().chain([format!("{}.sv", p.name)]);
    let mut sources = Vec::new();
    for path in
        rtl.map(|f| Path::new(RTL).join(f)).chain(benches.map(|f| Path::new(FOLDER).join(f)))
    {
        sources.push((files::name(&path), fs::read_to_string(root().join(path))?));
    }
    let bench = sources.last().map(|(_, text)| text.as_str()).unwrap_or_default();
    let complete = bench.contains("cover (") && !p.mutant.is_empty() && !p.claim.is_empty();
    ensure!(complete, "{}: a proof needs a claim, a cover point and a mutant", p.name);
    let (mode, method) = match p.method {
        Method::Induction => ("prove", "induction"),
        Method::Bound => ("bmc", "bound"),
    };
    let task = |name: &str, mode, method, depth| Task {
        name: name.to_owned(),
        mode,
        method,
        depth,
        want: if method == "mutant" { "FAIL" } else { "PASS" },
        sources: sources.clone(),
    };
    let mut all =
        vec![task("prove", mode, method, p.depth), task("cover", "cover", "cover", p.cover)];
    for m in &p.mutant {
        let mut mutant = task(&m.name, "bmc", "mutant", m.depth);
        let text = mutant.source(p, &m.file)?;
        let found = text.matches(&m.find).count();
        ensure!(
            found == 1,
            "{}: the text of mutant {} stands {found} times in {}, expected once; fix \
             {FOLDER}/proofs.toml",
            p.name,
            m.name,
            m.file
        );
        *text = text.replacen(&m.find, &m.replace, 1);
        all.push(mutant);
    }
    // Mutants from the list of places.
    let depth = p.mutant.iter().map(|m| m.depth).max().unwrap_or(p.depth);
    for (name, path, text) in mutants::of_proof(&p.name)? {
        let mut mutant = task(&name, "bmc", "mutant", depth);
        *mutant.source(p, &path)? = text;
        all.push(mutant);
    }
    Ok(all)
}

impl Task {
    /// The text of the source that a mutant changes.
    fn source(&mut self, p: &Proof, path: &str) -> Result<&mut String> {
        let file = files::name(Path::new(path));
        let Some((_, text)) = self.sources.iter_mut().find(|(name, _)| *name == file) else {
            let mutant = &self.name;
            bail!("{}: mutant {mutant} changes {path}, which the proof does not read", p.name);
        };
        Ok(text)
    }

    /// sby's file for it.
    fn config(&self, p: &Proof) -> String {
        let (top, clocks) = (&p.name, if p.clocks { "multiclock on\n" } else { "" });
        let names: Vec<&str> = self.sources.iter().map(|(name, _)| name.as_str()).collect();
        let Self { mode, depth, .. } = self;
        format!(
            "[options]\nmode {mode}\ndepth {depth}\n{clocks}[engines]\nsmtbmc --nomem z3\n[script]\n\
             read_slang -j 1 --no-synthesis-define --top {top} {}\nprep -top {top}\n[files]\nin/{}\n",
            names.join(" "),
            names.join("\nin/")
        )
    }
}

fn folder(proof: &str, task: &str) -> PathBuf {
    process::target_dir().join("formal").join(proof).join(task)
}

fn one<'a>(prover: &tools::Prover, p: &'a Proof, task: &Task, again: bool) -> Result<Row<'a>> {
    let config = task.config(p);
    let mut hash = Sha256::new();
    let texts = task.sources.iter().map(|(_, text)| text);
    for part in [&config, &prover.version].into_iter().chain(texts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let cache = process::cache_dir().join("formal").join(hex::encode(hash.finalize()));
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
        && let Ok(text) = fs::read_to_string(&cache)
        && let Ok(cached) = serde_json::from_str::<Cached>(&text)
    {
        return Ok(row(cached.outcome, cached.seconds, true));
    }

    let work = folder(&p.name, &task.name);
    files::fresh(&work)?;
    fs::create_dir(work.join("in"))?;
    for (name, text) in &task.sources {
        fs::write(work.join("in").join(name), text)?;
    }
    fs::write(work.join("task.sby"), config)?;
    // One process at a time: first the base case, then the induction step.
    let mut sby = prover.sby();
    let args = ["-j", "1", "-f", "-d", "run", "task.sby"];
    let log = output(sby.current_dir(&work).args(args))?.all();
    fs::write(work.join("logfile.txt"), &log)?;
    let status = fs::read_to_string(work.join("run/status")).unwrap_or_default();
    let mut words = status.split_whitespace();
    let status = words.next().unwrap_or("ERROR");
    let seconds = words.nth(1).and_then(|s| s.parse().ok()).unwrap_or_default();
    let outcome = match (status == task.want, task.method, status) {
        (true, "mutant", _) => "caught",
        (true, ..) => "ok",
        (false, "mutant", "PASS") => "SURVIVED",
        (false, _, other) => other,
    };
    if outcome == "ERROR" {
        let lines = log.lines().filter(|l| l.contains("error") || l.contains("ERROR"));
        lines.take(5).for_each(say);
    }
    if status == task.want {
        let text = serde_json::json!(Cached { outcome: outcome.into(), seconds }).to_string();
        files::update(&cache, text.as_bytes())?;
    }
    Ok(row(outcome.into(), seconds, false))
}

fn manifest() -> Result<Manifest> {
    let text = fs::read_to_string(root().join(FOLDER).join("proofs.toml"))?;
    toml::from_str(&text).with_context(|| format!("{FOLDER}/proofs.toml"))
}

/// The mutants of all proofs: proof, name, file below `rtl`, and the text to replace.
#[cfg(test)]
pub fn mutants() -> Result<Vec<(String, String, String, String)>> {
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
        let text = fs::read_to_string(root().join(FOLDER).join("README.md")).expect("README");
        for p in &manifest.proof {
            for form in [format!("\n| `{}` |", p.name), format!("\n- `{}`: ", p.name)] {
                assert!(text.contains(&form), "{FOLDER}/README.md has no line {:?}", form.trim());
            }
        }
    }
}
