//! `cargo xtask test`: all tests of the project that take a quarter of an hour in total, and with
//! `--full` also longer ones.
//!
//! Steps run in parallel, longest first. A step that passed on the same content is not run again.

mod binaries;
mod full;
mod lanes;
mod light;
mod passes;
mod sizes;

use crate::process::{self, Failure, Result, say};
use crate::{
    area, compat, debian, deployment, firmware, formal, lint, root, tools, torture, words,
};
use binaries::{Built, Rest, Which};
use fs_err as fs;
use lanes::{Done, Lanes, Outcome, Step};
use passes::{Passes, Tree};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

pub use binaries::{Binary, build};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Also run longer tests (docs/test-run.md lists them). Can be interrupted: steps that passed
    /// on the same content are not run again
    #[arg(long)]
    full: bool,
    /// Also run steps that passed before on the same content
    #[arg(long)]
    again: bool,
    /// Treat a missing optional tool as a failure, as in CI
    #[arg(long)]
    no_skip: bool,
    /// One JSON document on stdout; everything else on stderr
    #[arg(long)]
    json: bool,
    /// Write the duration of each step into docs/test-run.md
    #[arg(long)]
    record: bool,
    /// Only steps whose name contains one of these words (`shef-rtl/gcm`, `proofs`), after set-up
    /// and build
    only: Vec<String>,
}

/// One step in the report.
#[derive(Serialize)]
struct Row {
    name: String,
    ok: bool,
    seconds: f64,
    #[serde(rename = "kept")]
    cached: bool,
}

/// The report.
#[derive(Serialize)]
struct Report {
    passed: u32,
    failed: u32,
    skipped: Vec<String>,
    steps: Vec<Row>,
    seconds: u64,
    commit: String,
}

/// State shared by all steps.
pub struct Plan {
    full: bool,
    only: Vec<String>,
    passes: Passes,
    tree: Tree,
    expected: BTreeMap<String, u64>,
    verilator: OnceLock<PathBuf>,
    built: OnceLock<Built>,
}

/// Names of steps that others depend on.
const BUILD: &str = "build and lint";
const PACKAGES: &str = "set-up: Debian packages";
const VERILATOR: &str = "set-up: Verilator";
const PROVER: &str = "set-up: yosys and z3";

/// The command.
pub fn run(args: &Args) -> Result<()> {
    let (start, since) = (Instant::now(), SystemTime::now());
    let line = |text: &str| if args.json { eprintln!("{text}") } else { println!("{text}") };
    let plan = Plan {
        full: args.full,
        only: args.only.clone(),
        passes: Passes::open(args.again),
        tree: Tree::read()?,
        expected: sizes::load(),
        verilator: OnceLock::new(),
        built: OnceLock::new(),
    };
    let lanes = Lanes::new();
    plan.set_up(&lanes);
    plan.rtl(&lanes);
    plan.rust(&lanes);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let done = lanes.run(cores, &|done| line(&result(done)));

    let mut report = Report::of(&done, start.elapsed().as_secs(), plan.passes.commit());
    if args.no_skip || std::env::var_os("CI").is_some() {
        report.failed += u32::try_from(report.skipped.len()).unwrap_or(u32::MAX);
    }
    let designs = designs_since(since);
    durations(args, &plan, &done, &line)?;
    if args.full {
        line(&table(&report));
        let path = process::target_dir().join("full.json");
        fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    // A word that selects nothing is a mistake, unless its step would come from a build that
    // failed.
    let built = done.iter().any(|d| d.name == BUILD && d.outcome.ok());
    let selects = |word: &String| done.iter().any(|d| d.name.contains(word));
    for word in args.only.iter().filter(|word| built && !selects(word)) {
        let help = "docs/test-run.md lists those of the normal run";
        line(&format!("FAILED  no step has {word:?} in its name; {help}"));
        report.failed += 1;
    }
    let again = done.iter().filter(|d| d.outcome.cached).count();
    if again > 0 {
        line(&format!(
            "{again} steps were not run: they passed on the same content (--again runs them)"
        ));
    }
    report.skipped.iter().for_each(|skipped| line(&format!("skipped: {skipped}")));
    report.steps.extend(designs);
    let Report { passed, failed, seconds, .. } = report;
    line(&format!("time: {seconds} s"));
    line(&format!("{passed} passed, {failed} failed, {} skipped", report.skipped.len()));
    if args.json {
        println!("{}", serde_json::json!(report));
    }
    if failed == 0 && passed > 0 { Ok(()) } else { Err(Failure::exit(1)) }
}

/// Reports steps that take longer than recorded, and records the durations with `--record`.
fn durations(args: &Args, plan: &Plan, done: &[Done], line: &dyn Fn(&str)) -> Result<()> {
    let ran = done.iter().filter(|d| !d.outcome.cached && d.outcome.skipped.is_none());
    let times: Vec<(String, f64)> = ran.map(|d| (d.name.clone(), d.took.as_secs_f64())).collect();
    if !args.full {
        // The work left for cargo depends on earlier builds, which CI does not have.
        let ci = std::env::var_os("CI").is_some();
        let judged: Vec<_> =
            times.iter().filter(|(name, _)| ci || name != BUILD).cloned().collect();
        for grown in sizes::grown(&plan.expected, &judged) {
            line(&format!("warning: {grown}; `cargo xtask test --record` if that is the price"));
        }
    }
    if args.record { sizes::record(&times) } else { Ok(()) }
}

impl Report {
    fn of(done: &[Done], seconds: u64, commit: &str) -> Self {
        let skipped = |d: &Done| Some(format!("{}: {}", d.name, d.outcome.skipped.as_ref()?));
        Self {
            passed: done.iter().map(|d| d.outcome.passed).sum(),
            failed: done.iter().map(|d| d.outcome.failed).sum(),
            skipped: done.iter().filter_map(skipped).collect(),
            steps: done.iter().map(row).collect(),
            seconds,
            commit: commit.to_owned(),
        }
    }
}

/// One line, followed by all errors.
fn result(Done { name, outcome: o, took }: &Done) -> String {
    let (seconds, Outcome { passed, failed, text, .. }) = (took.as_secs(), o);
    match (&o.skipped, o.ok(), o.cached) {
        (Some(why), ..) => format!("skipped {name}: {why}"),
        (_, true, true) => format!("kept    {name} (passed {text})"),
        (_, true, false) if *passed > 1 => format!("ok      {name} ({passed} passed, {seconds} s)"),
        (_, true, false) if !text.is_empty() => format!("{text}\nwarning {name} ({seconds} s)"),
        (_, true, false) => format!("ok      {name} ({seconds} s)"),
        (_, false, _) => format!("{text}\nFAILED  {name} ({failed} failed, {seconds} s)"),
    }
}

fn row(Done { name, outcome, took }: &Done) -> Row {
    // A resolution of a tenth of a second.
    let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
    let ok = outcome.ok() && outcome.skipped.is_none();
    Row { name: name.clone(), ok, seconds, cached: outcome.cached }
}

fn table(report: &Report) -> String {
    let width = report.steps.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let row = |Row { name, ok, seconds, cached }: &Row| {
        let state = match (ok, cached) {
            (false, _) => "not passed",
            (true, true) => "kept",
            (true, false) => "ok",
        };
        format!("{name:<width$} {state:>10} {seconds:>8.1} s")
    };
    report.steps.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// The Verilated designs that were built since `since`.
fn designs_since(since: SystemTime) -> Vec<Row> {
    let one = |folder: PathBuf| {
        let record = folder.join("build.json");
        let new = record.metadata().and_then(|m| m.modified()).is_ok_and(|at| at >= since);
        let text = fs::read_to_string(record).ok().filter(|_| new)?;
        let value: serde_json::Value = serde_json::from_str(&text).ok()?;
        let ms = value["verilator_ms"].as_f64()? + value["cxx_ms"].as_f64()?;
        let (design, profile) = (value["design"].as_str()?, value["profile"].as_str()?);
        let name = format!("Verilator build: {design} ({profile})");
        Some(Row { name, ok: true, seconds: (ms / 100.0).round() / 10.0, cached: false })
    };
    let entries = fs::read_dir(process::cache_dir().join("verilated"));
    let mut rows: Vec<Row> =
        entries.into_iter().flatten().flatten().filter_map(|e| one(e.path())).collect();
    rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    rows
}

/// The outcome of a check that passes or fails as a whole.
fn checked(result: Result<()>) -> Outcome {
    result.map_or_else(|e| Outcome::failed(format!("{e:#}")), |()| Outcome::passed())
}

/// The same for a check that this machine may not be able to run.
fn checked_if_possible(result: Result<()>) -> Outcome {
    match result {
        Err(e) if Failure::code(&e) == 3 => Outcome::skipped(format!("{e:#}")),
        result => checked(result),
    }
}

impl Plan {
    fn add<'a>(
        &'a self,
        lanes: &Lanes<'a>,
        name: &str,
        after: &[&str],
        work: impl FnOnce(&Lanes<'a>) -> Outcome + Send + 'a,
    ) {
        let needed = [BUILD, PACKAGES, VERILATOR, PROVER].contains(&name);
        if !needed && !self.only.is_empty() && !self.only.iter().any(|word| name.contains(word)) {
            return;
        }
        let expected = sizes::expected(&self.expected, name);
        lanes.add(Step {
            name: name.into(),
            expected,
            after: after.iter().map(|s| (*s).to_owned()).collect(),
            work: Box::new(work),
        });
    }

    /// The same, unless it passed on this content; `inputs` is the digest of everything that
    /// decides it.
    fn add_once<'a>(
        &'a self,
        lanes: &Lanes<'a>,
        name: &str,
        after: &[&str],
        inputs: String,
        work: impl FnOnce() -> Outcome + Send + 'a,
    ) {
        self.add_keyed(lanes, name, after, passes::key(name, &[&inputs]), work);
    }

    /// The same with a key for the cache of passed steps.
    fn add_keyed<'a>(
        &'a self,
        lanes: &Lanes<'a>,
        name: &str,
        after: &[&str],
        key: String,
        work: impl FnOnce() -> Outcome + Send + 'a,
    ) {
        let title = name.to_owned();
        self.add(lanes, name, after, move |_| self.passes.once(&key, &title, work));
    }

    fn verilator(&self) -> &PathBuf {
        static NONE: OnceLock<PathBuf> = OnceLock::new();
        // The steps that need it wait for the step that sets it.
        self.verilator.get().unwrap_or_else(|| NONE.get_or_init(PathBuf::new))
    }

    /// Tools and packages.
    fn set_up<'a>(&'a self, lanes: &Lanes<'a>) {
        self.add(lanes, VERILATOR, &[], |_| {
            let set = tools::verilator().and_then(|path| {
                let _ = self.verilator.set(path);
                tools::ibex()?;
                // The tests of projects have models.
                tools::numpy()
            });
            checked(set.map(drop))
        });
        self.add(lanes, PACKAGES, &[], |lanes| {
            type Packages = (&'static str, &'static str, fn() -> bool);
            let (openssl, clients) = compat::PACKAGES;
            let short: [Packages; 4] = [
                ("liblz4-dev zlib1g-dev", "wave files", debian::has_trace_libraries),
                (torture::PACKAGES, "the verifier service on PostgreSQL", debian::has_postgres),
                ("minisign", "signatures of the hashes", debian::has_minisign),
                ("softhsm2 opensc", "keys in a token of PKCS #11", debian::has_softhsm),
            ];
            let full: [Packages; 2] = [
                ("chromium", "the operator's page in a browser", debian::has_chromium),
                (openssl, clients, debian::has_openssl),
            ];
            for (packages, what, there) in
                short.into_iter().chain(full.into_iter().filter(|_| self.full))
            {
                if let Err(command) = debian::install(packages, what, there) {
                    // Its tests skip missing tools; this line reports them.
                    let missing = Outcome::skipped(format!("run `{command}`"));
                    self.add(lanes, what, &[], |_| missing);
                }
            }
            Outcome::passed()
        });
        self.add(lanes, PROVER, &[], |_| {
            let set = tools::yosys().and_then(|_| tools::prover());
            set.map_or_else(|e| Outcome::skipped(format!("{e:#}")), |_| Outcome::passed())
        });
    }

    /// Steps that need the RTL only.
    fn rtl<'a>(&'a self, lanes: &Lanes<'a>) {
        let of_rtl =
            |path: &str| ["shell-rtl/", "tests/xtask/src/"].iter().any(|of| path.starts_with(of));
        let rtl = self.tree.digest(of_rtl);
        self.add(lanes, "module table, nothing faked", &[], |_| {
            checked(lint::table().and_then(|()| lint::nothing_faked()).and_then(|()| lint::names()))
        });
        self.add(lanes, "comments in plain English", &[], |_| {
            checked(words::check(self.tree.paths()))
        });
        self.add(lanes, "imports without circles", &[], |_| {
            checked(crate::rooms::check(self.tree.paths()))
        });
        let rules = self.tree.digest(|path| {
            path.starts_with(deployment::SERVICE) && path.contains("/prometheus-rules")
        });
        self.add_once(lanes, "alert rules", &[], rules, || checked(deployment::rules()));
        self.add(lanes, "area table", &[], |_| match area::stale() {
            // An update takes an hour of synthesis: it is due at the end of a piece of work, not at
            // each change.
            Ok(Some(stale)) if !self.full => Outcome { text: stale, ..Outcome::passed() },
            Ok(Some(stale)) => Outcome::failed(stale),
            result => checked(result.map(drop)),
        });
        self.add_once(lanes, "RTL lint", &[VERILATOR], rtl.clone(), || {
            checked(lint::verilator(self.verilator()))
        });
        self.add_once(lanes, "RTL elaborates in a second front end", &[PROVER], rtl, || {
            checked(tools::yosys().and_then(|yosys| lint::yosys(&yosys)))
        });
        if !self.full {
            self.add(lanes, "quick proofs", &[PROVER], |_| checked(formal::prove(true, &|_| ())));
        }
        // The image is measured: evidence names what these sources give, and nothing else.
        let inputs = self.tree.digest(|path| {
            path.starts_with("attestation/")
                || path.starts_with("Cargo.")
                || path.ends_with("_rom_pkg.sv")
        });
        let name = if self.full { "firmware rebuilt in two folders" } else { "firmware rebuilt" };
        self.add_once(lanes, name, &[], inputs, || {
            checked_if_possible(firmware::check(self.full).map(drop))
        });
    }

    /// The cargo builds, and the steps that need them.
    fn rust<'a>(&'a self, lanes: &Lanes<'a>) {
        self.add(lanes, "formatting, other lock files", &[], |_| {
            let run = |args: &str, what: &str| process::run(&mut process::cargo(args), what);
            let mut checks = run("fmt --all --check", "cargo fmt; run `cargo fmt --all`");
            // The example and the third-party clients have separate workspaces.
            for manifest in ["examples/vecadd/Cargo.toml", "tests/compat/Cargo.toml"] {
                let fmt = format!("fmt --check --manifest-path {manifest}");
                let lock =
                    format!("update --quiet --workspace --locked --manifest-path {manifest}");
                let help = format!(
                    "cargo update; run `cargo update --workspace --manifest-path {manifest}`"
                );
                checks = checks.and_then(|()| run(&fmt, &format!("cargo fmt of {manifest}")));
                checks = checks.and_then(|()| run(&lock, &help));
            }
            checked(checks)
        });
        self.add(lanes, BUILD, &[], |lanes| {
            say("building and linting the workspace; in a fresh clone that is some minutes");
            let built = match build() {
                Ok(built) => self.built.get_or_init(|| built),
                Err(e) => return checked(Err(e)),
            };
            let outcome = built.outcome();
            if outcome.ok() {
                self.tests(lanes, built);
            }
            outcome
        });
        self.add(lanes, "generated files are up to date", &[BUILD], |_| {
            let help = "shef-gen check; run `cargo xtask generate`";
            let pictures = crate::pictures::run(&root(), true);
            let others = || process::run(&mut crate::generator("check")?, help);
            checked(pictures.and_then(|()| others()))
        });
    }

    /// The test programs.
    fn tests<'a>(&'a self, lanes: &Lanes<'a>, built: &'a Built) {
        let rest = Rest::of(&self.tree);
        for binary in &built.binaries {
            let name = format!("tests: {}", binary.name());
            let key = binary.key(&Which::Normal, &rest);
            self.add_keyed(lanes, &name, &[BUILD, VERILATOR, PACKAGES], key, move || {
                binary.run(&Which::Normal, self.verilator())
            });
        }
        // After the build: both need the target folder exclusively.
        let rust = |path: &str| path.ends_with(".rs");
        let manifest = |path: &str| path.ends_with("Cargo.toml") || path == "Cargo.lock";
        let sources = self.tree.digest(|path| rust(path) || manifest(path));
        self.add_once(lanes, "light builds", &[BUILD], sources, light::run);
        let sources = self.tree.digest(rust);
        let doctests = binaries::doctests;
        self.add_once(lanes, "examples in the documentation", &[BUILD], sources, doctests);
        if self.full {
            full::steps(self, lanes, built);
        }
    }
}
