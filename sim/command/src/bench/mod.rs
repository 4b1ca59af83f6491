//! `shef bench`: the cycles of a job at the accelerator, without a Shield and behind it, at several
//! latencies of the memory.

mod error;
mod hint;
mod report;

use std::path::PathBuf;
use std::time::Instant;

use shef_card::Design;
use shef_card::measure::EXACT;
use shef_console::file::{self, Outputs};
use shef_console::{CliError, Output, hex};
use shef_flags::WaveArgs;
use shef_lab::probe::card;
use shef_project::{Job, Jobs, Test};

use crate::job::case::{Case, Results, Subject};
use crate::job::failure::Failure;
use crate::job::measure::{Measurement, Ran, Shown};
use crate::job::python;
use crate::job::rig;
pub use error::BenchError;
use report::{HEADS, Pair, Report, Run};

/// Latencies of the memory, in cycles, without `--latency`.
const LATENCIES: [u64; 4] = [10, 40, 100, 200];
/// Maximum of a latency.
const MAX_LATENCY: u64 = 100_000;

/// Flags of `shef bench`.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// Folder of the project
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Job of shef.toml, [jobs.NAME]; by default the first by name
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Cycles from a read request of the memory to its first beat; may be repeated [default: 10, 40,
    /// 100 and 200]
    #[arg(long = "latency", value_name = "CYCLES")]
    latencies: Vec<u64>,
    /// Seed of the job's random inputs
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Of the run behind the Shield, with one --latency
    #[command(flatten)]
    waves: WaveArgs,
}

fn value(what: String) -> CliError {
    BenchError::Value { what }.into()
}

fn failed(job: &str, run: &str, failure: &Failure) -> CliError {
    let what = format!("{run}: {}", failure.lines().join("\n"));
    BenchError::Failed { job: job.to_owned(), what }.into()
}

impl BenchArgs {
    fn latencies(&self) -> Result<Vec<u64>, CliError> {
        let given = if self.latencies.is_empty() { &LATENCIES[..] } else { &self.latencies };
        let mut latencies: Vec<u64> = Vec::new();
        for latency in given {
            if !(1..=MAX_LATENCY).contains(latency) {
                let what =
                    format!("expected a latency of 1 to {MAX_LATENCY} cycles, found {latency}");
                return Err(value(what));
            }
            if !latencies.contains(latency) {
                latencies.push(*latency);
            }
        }
        Ok(latencies)
    }

    fn job<'j>(&self, jobs: &'j Jobs) -> Result<(&'j String, &'j Job), CliError> {
        let names: Vec<&str> = jobs.jobs.keys().map(String::as_str).collect();
        let found = match &self.job {
            None => jobs.jobs.first_key_value(),
            Some(name) => jobs.jobs.get_key_value(name),
        };
        found.ok_or_else(|| {
            value(match &self.job {
                Some(name) if !names.is_empty() => {
                    format!(
                        "there is no job {name:?}: the jobs of shef.toml are {}",
                        names.join(", ")
                    )
                }
                _ => format!("{} has no [jobs.NAME] in shef.toml", self.dir.display()),
            })
        })
    }
}

/// A job, with everything that its runs need.
struct Bench<'p> {
    design: &'p Design,
    name: &'p str,
    measurement: Measurement<'p>,
}

impl<'p> Bench<'p> {
    /// Reads the data of a job, and calls the models of the tests that have it. Returns these tests
    /// too.
    fn new(
        design: &'p Design,
        jobs: &'p Jobs,
        (name, job): (&'p String, &'p Job),
        plain: &'p Test,
        seed: u64,
    ) -> Result<(Self, Vec<String>), CliError> {
        job.ends().map_err(|what| value(format!("job {name}: {what}")))?;
        let (registers, config) = (&jobs.registers, design.config());
        let case = |name, test| Case::new(Subject { name, test, job, registers, config }, seed);
        let mut own = case(name, plain)?;
        let mut tests = Vec::new();
        for (test_name, test) in jobs.tests.iter().filter(|(_, test)| test.job == *name) {
            let mut cases = [case(test_name, test)?];
            if let Some(model) = &test.model {
                let added = python::add(model, &mut cases)?;
                added.map_err(|failure| failed(name, &format!("test {test_name}"), &failure))?;
            }
            let [case] = cases;
            own.expected.extend(case.expected);
            tests.push(test_name.clone());
        }
        let measurement = Measurement::new(own, EXACT).map_err(|failure| value(failure.message))?;
        Ok((Self { design, name, measurement }, tests))
    }

    fn failed(&self, shield: &'static str, latency: u64, failure: &Failure) -> CliError {
        failed(self.name, &format!("{shield}, latency {latency}"), failure)
    }

    /// Whether two runs have the same results.
    fn equal(&self, one: &Results, other: &Results) -> Result<(), Failure> {
        let mut case = self.measurement.case.clone();
        case.expected = vec![("the first run".to_owned(), one.clone())];
        case.compare(other)
    }
}

/// Runs the command.
///
/// # Errors
/// A job that fails or has wrong results, a design that does not build, unknown jobs and latencies
/// out of range.
pub fn run(output: &Output, args: &BenchArgs) -> Result<(), CliError> {
    let begin = Instant::now();
    let latencies = args.latencies()?;
    let design = Design::project(&args.dir).map_err(card)?;
    let jobs = Jobs::read(&args.dir, design.config()).map_err(card)?;
    let wave = args.waves.wave.as_deref();
    design.kept(&jobs, wave.into_iter()).for_each(file::is_input);
    if let Some(wave) = wave {
        if latencies.len() != 1 {
            let n = latencies.len();
            return Err(value(format!("--wave is for one run: expected one --latency, found {n}")));
        }
        Outputs::new([])?.elsewhere(wave)?;
    }
    let base = rig::waves(&args.waves);
    let job = args.job(&jobs)?;
    let plain = Test { job: job.0.clone(), expect: Vec::new(), model: None, seeds: 1 };
    let (bench, tests) = Bench::new(&design, &jobs, job, &plain, args.seed)?;
    output.line(format_args!(
        "{}, design {}, job {}",
        output.heading(design.name()),
        hex::encode(&design.digest()[..4]),
        bench.name
    ))?;
    for head in HEADS {
        output.line(head)?;
    }
    let spinner = output.spinner("bench");
    let mut first: Option<Results> = None;
    let mut pairs: Vec<Pair> = Vec::new();
    for latency in latencies {
        let mut both = Vec::new();
        for shield in ["bare", "shielded"] {
            spinner.message(format!("latency {latency}, {shield}"));
            let mut say = |text: &str| spinner.message(text);
            let (design, one) = (bench.design, &bench.measurement);
            let ran = match shield {
                "bare" => one.bare(design, latency, &mut say)?,
                _ => one.shielded(design, &base, latency, &mut Shown::default(), &mut say)?,
            };
            let ran = ran.map_err(|failure| bench.failed(shield, latency, &failure))?;
            let Ran { results, measured } = ran;
            let one = first.get_or_insert_with(|| results.clone());
            let equal = bench.equal(one, &results);
            equal.map_err(|failure| bench.failed(shield, latency, &failure))?;
            both.push(Run::new(&measured, design.config()));
        }
        let [bare, shielded] = <[Run; 2]>::try_from(both)
            .map_err(|_| CliError::internal("a run is missing".to_owned()))?;
        let mut pair = Pair::new(latency, bare, shielded);
        pair.hints = hint::hints(design.config(), &pair);
        for row in pair.rows() {
            output.line(row)?;
        }
        pairs.push(pair);
    }
    drop(spinner);
    for pair in &pairs {
        for hint in &pair.hints {
            output.line(format_args!("hint: latency {}: {hint}", pair.latency))?;
        }
    }
    match tests.as_slice() {
        [] => output.line("no test has this job: all runs had the same results")?,
        tests => output.line(format_args!("all results are those of {}", tests.join(", ")))?,
    }
    let report = Report {
        project: design.name().to_owned(),
        design_digest: hex::encode(&design.digest()),
        job: bench.name.to_owned(),
        seed: args.seed,
        tests,
        latencies: pairs,
        ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    output.document(&report)
}
