//! `cargo xtask test`: all tests of the project that take a quarter of an hour in total, and with `--full` also longer ones.
//!
//! Steps run in parallel, longest first. A step that passed on the same content is not run again.

mod binaries;
mod full;
mod kept;
mod lanes;
mod light;
mod sizes;

use crate::process::{self, Failure, say};
use crate::{area, compat, formal, lint, root, tools};
use binaries::{Built, Which};
use kept::{Kept, Tree};
use lanes::{Done, Lanes, Outcome, Step};
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
    kept: bool,
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
    kept: Kept,
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
pub fn run(args: &Args) -> Result<(), Failure> {
    let (start, since) = (Instant::now(), SystemTime::now());
    let line = |text: &str| if args.json { eprintln!("{text}") } else { println!("{text}") };
    let plan = Plan {
        full: args.full,
        only: args.only.clone(),
        kept: Kept::open(args.again),
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
    let done = lanes.run(cores, &|done| line(&told(done)));

    let mut report = Report {
        passed: done.iter().map(|d| d.outcome.passed).sum(),
        failed: done.iter().map(|d| d.outcome.failed).sum(),
        skipped: done
            .iter()
            .filter_map(|d| Some(format!("{}: {}", d.name, d.outcome.skipped.as_ref()?)))
            .collect(),
        steps: done.iter().map(row).collect(),
        seconds: start.elapsed().as_secs(),
        commit: plan.kept.commit().to_owned(),
    };
    if args.no_skip || std::env::var_os("CI").is_some() {
        report.failed += u32::try_from(report.skipped.len()).unwrap_or(u32::MAX);
    }
    let designs = designs_since(since);
    let ran = |d: &&Done| !d.outcome.kept && d.outcome.skipped.is_none();
    let times: Vec<(String, f64)> =
        done.iter().filter(ran).map(|d| (d.name.clone(), d.took.as_secs_f64())).collect();
    if args.full {
        line(&table(&report));
        let path = process::target_dir().join("full.json");
        let text = serde_json::to_string_pretty(&report).unwrap_or_default();
        std::fs::write(&path, text)
            .map_err(|e| Failure::failed(format!("{}: {e}", path.display())))?;
    } else {
        // The work left for cargo depends on earlier builds, which CI does not have.
        let ci = std::env::var_os("CI").is_some();
        let held: Vec<_> = times.iter().filter(|(name, _)| ci || name != BUILD).cloned().collect();
        for grown in sizes::grown(&plan.expected, &held) {
            line(&format!("warning: {grown}; `cargo xtask test --record` if that is the price"));
        }
    }
    if args.record {
        sizes::record(&times)?;
    }
    // A word that selects nothing is a mistake, unless its step would come from a build that
    // failed.
    let built = done.iter().any(|d| d.name == BUILD && d.outcome.ok());
    for word in
        args.only.iter().filter(|word| built && !done.iter().any(|d| d.name.contains(*word)))
    {
        line(&format!(
            "FAILED  no step has {word:?} in its name; docs/test-run.md lists those of the normal run"
        ));
        report.failed += 1;
    }
    let again = done.iter().filter(|d| d.outcome.kept).count();
    if again > 0 {
        line(&format!(
            "{again} steps were not run: they passed on the same content (--again runs them)"
        ));
    }
    for s in &report.skipped {
        line(&format!("skipped: {s}"));
    }
    report.steps.extend(designs);
    line(&format!("time: {} s", report.seconds));
    line(&format!(
        "{} passed, {} failed, {} skipped",
        report.passed,
        report.failed,
        report.skipped.len()
    ));
    if args.json {
        println!("{}", serde_json::json!(report));
    }
    if report.failed == 0 && report.passed > 0 { Ok(()) } else { Err(Failure::Exit(1)) }
}

/// The build, the longest step before any result.
fn building() -> Result<Built, Failure> {
    say("building and linting the workspace; in a fresh clone that is some minutes");
    build()
}

/// One line, followed by all errors.
fn told(d: &Done) -> String {
    let (o, seconds) = (&d.outcome, d.took.as_secs());
    match (&o.skipped, o.ok(), o.kept) {
        (Some(why), ..) => format!("skipped {}: {why}", d.name),
        (_, true, true) => format!("kept    {} (passed {})", d.name, o.text),
        (_, true, false) if o.passed > 1 => {
            format!("ok      {} ({} passed, {seconds} s)", d.name, o.passed)
        }
        (_, true, false) if !o.text.is_empty() => {
            format!("{}\nwarning {} ({seconds} s)", o.text, d.name)
        }
        (_, true, false) => format!("ok      {} ({seconds} s)", d.name),
        (_, false, _) => {
            format!("{}\nFAILED  {} ({} failed, {seconds} s)", o.text, d.name, o.failed)
        }
    }
}

fn row(d: &Done) -> Row {
    // A resolution of a tenth of a second.
    let seconds = (d.took.as_secs_f64() * 10.0).round() / 10.0;
    Row {
        name: d.name.clone(),
        ok: d.outcome.ok() && d.outcome.skipped.is_none(),
        seconds,
        kept: d.outcome.kept,
    }
}

fn table(report: &Report) -> String {
    let width = report.steps.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
    let state = |s: &Row| match (s.ok, s.kept) {
        (false, _) => "not passed",
        (true, true) => "kept",
        (true, false) => "ok",
    };
    let rows: Vec<String> = report
        .steps
        .iter()
        .map(|s| format!("{:<width$} {:>10} {:>8.1} s", s.name, state(s), s.seconds))
        .collect();
    rows.join("\n")
}

/// The Verilated designs that were built since `since`.
fn designs_since(since: SystemTime) -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir(process::cache_dir().join("verilated")) else {
        return Vec::new();
    };
    let one = |folder: PathBuf| {
        let record = folder.join("build.json");
        let new = record.metadata().and_then(|m| m.modified()).is_ok_and(|at| at >= since);
        let value: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(record).ok().filter(|_| new)?).ok()?;
        let ms = value["verilator_ms"].as_f64()? + value["cxx_ms"].as_f64()?;
        let name = format!(
            "Verilator build: {} ({})",
            value["design"].as_str()?,
            value["profile"].as_str()?
        );
        Some(Row { name, ok: true, seconds: (ms / 100.0).round() / 10.0, kept: false })
    };
    let mut rows: Vec<Row> = entries.flatten().filter_map(|e| one(e.path())).collect();
    rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    rows
}

/// The outcome of a check that passes or fails as a whole.
fn checked(result: Result<(), Failure>) -> Outcome {
    match result {
        Ok(()) => Outcome::passed(),
        Err(Failure::Message { message, .. }) => Outcome::failed(message),
        Err(Failure::Exit(code)) => {
            Outcome::failed(format!("exit status {code}; its messages are above"))
        }
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
        let (key, title) = (kept::key(name, &[&inputs]), name.to_owned());
        self.add(lanes, name, after, move |_| binaries::once(&self.kept, &key, &title, work));
    }

    fn verilator(&self) -> &PathBuf {
        static NONE: OnceLock<PathBuf> = OnceLock::new();
        // The steps that need it wait for the step that sets it.
        self.verilator.get().unwrap_or_else(|| NONE.get_or_init(PathBuf::new))
    }

    /// Tools and packages.
    fn set_up<'a>(&'a self, lanes: &Lanes<'a>) {
        self.add(lanes, VERILATOR, &[], |_| {
            let found = tools::ensure_verilator(&root(), &say)
                .and_then(|path| tools::ensure_ibex(&root(), &say).map(|_| path));
            checked(found.map_err(Failure::from).map(|path| {
                let _ = self.verilator.set(path);
            }))
        });
        self.add(lanes, PACKAGES, &[], |lanes| {
            let chromium: (_, _, fn() -> bool) =
                ("chromium", "the operator's page in a browser", tools::has_chromium);
            let mut wanted = vec![
                ("liblz4-dev zlib1g-dev", "wave files", tools::has_trace_libraries as fn() -> bool),
                ("postgresql", "the verifier service on PostgreSQL", tools::has_postgres),
            ];
            let (packages, what) = compat::PACKAGES;
            wanted.extend(
                [chromium, (packages, what, tools::has_openssl)].into_iter().filter(|_| self.full),
            );
            for (packages, what, there) in wanted {
                if let Err(command) = tools::debian_packages(packages, what, there) {
                    // Its tests skip missing tools; this line reports them.
                    self.add(lanes, what, &[], move |_| {
                        Outcome::skipped(format!("run `{command}`"))
                    });
                }
            }
            Outcome::passed()
        });
        self.add(lanes, PROVER, &[], |_| {
            match tools::ensure_yosys(&root(), &say)
                .and_then(|_| tools::ensure_prover(&root(), &say))
            {
                Ok(_) => Outcome::passed(),
                Err(e) => Outcome::skipped(e.to_string()),
            }
        });
    }

    /// Steps that need the RTL only.
    fn rtl<'a>(&'a self, lanes: &Lanes<'a>) {
        let rtl = self
            .tree
            .digest(|path| path.starts_with("shell-rtl/") || path.starts_with("tests/xtask/src/"));
        self.add(lanes, "module table, nothing faked", &[], |_| {
            checked(lint::table().and_then(|()| lint::nothing_faked()).and_then(|()| lint::names()))
        });
        self.add(lanes, "comments in plain English", &[], |_| {
            checked(crate::words::check(self.tree.paths()))
        });
        self.add(lanes, "area table", &[], |_| match (area::fresh(), self.full) {
            // An update takes an hour of synthesis: it is due at the end of a piece of work, not at
            // each change.
            (Err(Failure::Message { message, .. }), false) => {
                Outcome { text: message, ..Outcome::passed() }
            }
            (result, _) => checked(result),
        });
        self.add_once(lanes, "RTL lint", &[VERILATOR], rtl.clone(), || {
            checked(lint::verilator(self.verilator()))
        });
        self.add_once(lanes, "RTL elaborates in a second front end", &[PROVER], rtl, || {
            checked(
                tools::ensure_yosys(&root(), &say)
                    .map_err(Failure::from)
                    .and_then(|yosys| lint::yosys(&yosys)),
            )
        });
        if !self.full {
            self.add(lanes, "quick proofs", &[PROVER], |_| {
                checked(
                    tools::ensure_prover(&root(), &say)
                        .map_err(Failure::from)
                        .and_then(|prover| formal::quick(&prover, &|_| ())),
                )
            });
        }
    }

    /// The cargo builds, and the steps that need them.
    fn rust<'a>(&'a self, lanes: &Lanes<'a>) {
        self.add(lanes, "formatting, other lock files", &[], |_| {
            // The example and the third-party clients have separate workspaces.
            const EXAMPLE: &str = "examples/vecadd/Cargo.toml";
            const COMPAT: &str = "tests/compat/Cargo.toml";
            let run = |args: &[&str], what: &str| process::run(&mut process::cargo(args), what);
            let fmt = run(&["fmt", "--all", "--check"], "cargo fmt; run `cargo fmt --all`")
                .and_then(|()| {
                    run(&["fmt", "--check", "--manifest-path", EXAMPLE], "cargo fmt of the example")
                })
                .and_then(|()| {
                    run(&["fmt", "--check", "--manifest-path", COMPAT], "cargo fmt of tests/compat")
                });
            let lock = |manifest: &str| {
                let help = format!(
                    "cargo update; run `cargo update --workspace --manifest-path {manifest}`"
                );
                run(
                    &["update", "--quiet", "--workspace", "--locked", "--manifest-path", manifest],
                    &help,
                )
            };
            checked(fmt.and_then(|()| lock(EXAMPLE)).and_then(|()| lock(COMPAT)))
        });
        self.add(lanes, BUILD, &[], |lanes| match building() {
            Ok(built) => {
                let outcome = built.outcome();
                let built = self.built.get_or_init(|| built);
                if outcome.ok() {
                    self.tests(lanes, built);
                }
                outcome
            }
            Err(e) => checked(Err(e)),
        });
        self.add(lanes, "generated files are up to date", &[BUILD], |_| {
            checked(crate::pictures::run(&root(), true).and_then(|()| {
                process::run(
                    &mut crate::generator("check")?,
                    "shef-gen check; run `cargo xtask generate`",
                )
            }))
        });
    }

    /// The test programs.
    fn tests<'a>(&'a self, lanes: &Lanes<'a>, built: &'a Built) {
        let rest = binaries::Rest::of(&self.tree);
        for binary in &built.binaries {
            let (key, name) =
                (binary.key(&Which::Normal, &rest), format!("tests: {}", binary.name()));
            let title = name.clone();
            self.add(lanes, &name, &[BUILD, VERILATOR, PACKAGES], move |_| {
                binaries::once(&self.kept, &key, &title, || {
                    binary.run(&Which::Normal, self.verilator())
                })
            });
        }
        // After the build: both need the target folder exclusively.
        let sources = self
            .tree
            .digest(|p| p.ends_with(".rs") || p.ends_with("Cargo.toml") || p == "Cargo.lock");
        self.add_once(lanes, "light builds", &[BUILD], sources, light::run);
        self.add_once(
            lanes,
            "examples in the documentation",
            &[BUILD],
            self.tree.digest(|p| p.ends_with(".rs")),
            binaries::doctests,
        );
        if self.full {
            full::steps(self, lanes, built);
        }
    }
}
