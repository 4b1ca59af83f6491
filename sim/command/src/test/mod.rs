//! `shef test`: the tests of a project. Each test runs its job without a Shield, behind it, under
//! attack, and after another session.

mod attacks;
mod error;
mod outcome;
mod phases;
mod report;
mod residue;
mod schedule;
mod watch;
mod waves;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use shef_card::{Design, RtlOptions};
use shef_console::file::{self, Outputs};
use shef_console::output::count;
use shef_console::{CliError, Exit, Output, hex, shell};
use shef_flags::WaveArgs;
use shef_project::Jobs;

use crate::job::case::{Case, Subject};
use crate::job::failure::Failure;
use crate::job::{python, rig};

pub use error::TestError;
use outcome::Passed;
use phases::Phase;
use report::{PhaseReport, Report};
use schedule::{Next, Planned, Schedule, Step};

/// Seeds of a phase behind the Shield.
const SHIELDED_SEEDS: u64 = 1;
/// Time between two looks at the files of a project.
const LOOK: Duration = Duration::from_millis(300);

/// Flags of `shef test`.
#[derive(clap::Args)]
pub struct TestArgs {
    /// Folder of the project
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Run tests whose names contain this text
    #[arg(short = 'k', value_name = "FILTER")]
    filter: Option<String>,
    /// Phases run side by side; by default one for each processor
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The first seed; without --seeds, the only one
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Number of seeds in every phase
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// Run one phase only
    #[arg(long, value_enum, value_name = "PHASE")]
    only: Option<Phase>,
    /// Run the other phases of a test whose bare job failed
    #[arg(long)]
    no_fail_fast: bool,
    /// Write the results to this file, in JUnit's format
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    waves: WaveArgs,
    /// Run again when a file of the project changes, until the program is interrupted
    #[arg(long, conflicts_with = "wave")]
    watch: bool,
}

/// Runs the command.
///
/// # Errors
/// No test ran, a test failed, a design that does not build, and errors of the file system.
pub fn run(output: &Output, args: &TestArgs) -> Result<Exit, CliError> {
    if !args.watch {
        let report = test(output, args)?;
        return verdict(&report).map(|()| Exit::Done);
    }
    if output.json() {
        let what = "--watch prints more than one document: leave --json";
        return Err(CliError::new("SHEF-CLI-001", what));
    }
    // The report, if it is in the folder, is written by every run.
    let report = args.junit.as_deref();
    loop {
        let files = watch::files(&args.dir, report);
        if let Err(error) = test(output, args).and_then(|report| verdict(&report)) {
            output.error(&error);
        }
        output.line("waiting for a change")?;
        while watch::files(&args.dir, report) == files {
            output.wait(LOOK);
            if output.is_closed() {
                return Ok(Exit::Done);
            }
        }
        output.line("")?;
    }
}

/// The error of tests that failed.
fn verdict(report: &Report) -> Result<(), CliError> {
    let ran = report.phases.iter().filter(|phase| phase.skipped.is_none());
    let (all, failed) = (ran.clone().count(), ran.filter(|phase| !phase.passed));
    let failed: Vec<&PhaseReport> = failed.collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        failed.iter().map(|phase| format!("{} {}", phase.test, phase.phase.name())).collect();
    let (failed, names) = (failed.len(), names.join(", "));
    Err(TestError::Failed { failed, all, names }.into())
}

/// The project, whose files are inputs of the command.
fn project(args: &TestArgs) -> Result<(Design, Jobs), CliError> {
    let design = Design::project(&args.dir).map_err(shef_lab::probe::card)?;
    let jobs = Jobs::read(&args.dir, design.config()).map_err(shef_lab::probe::card)?;
    let outputs = [&args.junit, &args.waves.wave].into_iter().flatten();
    design.kept(&jobs, outputs.map(PathBuf::as_path)).for_each(file::is_input);
    Ok((design, jobs))
}

/// Runs the tests once, prints their results and writes them to a file. If they do not run, that file
/// is removed: it would show the results of an earlier run.
fn test(output: &Output, args: &TestArgs) -> Result<Report, CliError> {
    let read = project(args);
    let mut outputs = Outputs::new([])?;
    let junit = args.junit.as_deref().map(|path| outputs.file(path)).transpose()?;
    args.waves.wave.as_deref().map_or(Ok(()), |wave| outputs.elsewhere(wave))?;
    let report = read.and_then(|(design, jobs)| tests(output, args, &design, &jobs));
    let written = match (&report, junit) {
        (Ok(report), Some(slot)) => outputs.fill(slot, report::junit(report)),
        _ => Ok(()),
    };
    let placed = written.and_then(|()| outputs.place());
    let report = report?;
    placed?;
    output.document(&report)?;
    Ok(report)
}

fn tests(
    output: &Output,
    args: &TestArgs,
    design: &Design,
    jobs: &Jobs,
) -> Result<Report, CliError> {
    let begin = Instant::now();
    let subjects = selected(jobs, design, args)?;
    output.line(format_args!(
        "{}, design {}",
        output.heading(design.name()),
        hex::encode(&design.digest()[..4])
    ))?;
    let plan = Plan::new(&subjects, args)?;
    let base = rig::waves(&args.waves);
    let runs: usize = plan.phases.iter().map(|(_, cases)| cases.len()).sum();
    if base.wave.is_some() && runs != 1 {
        let what = format!(
            "--wave is for one run, and these flags select {runs}: expected -k TEST, --only PHASE and \
             --seed S"
        );
        return Err(CliError::new("SHEF-CLI-001", what));
    }
    let phases = plan.run(output, args, design, &base)?;
    let report = Report {
        project: design.name().to_owned(),
        design_digest: hex::encode(&design.digest()),
        passed: phases.iter().all(|phase| phase.passed),
        phases,
        ms: ms(begin.elapsed()),
    };
    let passed = report.phases.iter().filter(|phase| phase.passed).count();
    let skipped = match report.phases.iter().filter(|phase| phase.skipped.is_some()).count() {
        0 => String::new(),
        skipped => format!(", {skipped} not run"),
    };
    output.line(format_args!(
        "{passed} of {} of {} passed{skipped}; {:.1} s",
        count(report.phases.len() as u64, "phase"),
        count(subjects.len() as u64, "test"),
        begin.elapsed().as_secs_f64()
    ))?;
    Ok(report)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The tests that the flags select.
fn selected<'p>(
    jobs: &'p Jobs,
    design: &'p Design,
    args: &TestArgs,
) -> Result<Vec<Subject<'p>>, CliError> {
    let filter = args.filter.as_deref().unwrap_or_default();
    let tests = jobs.tests.iter().filter(|(name, _)| name.contains(filter));
    let subject = |(name, test): (&'p String, &'p shef_project::Test)| {
        let (registers, config) = (&jobs.registers, design.config());
        let job = jobs.jobs.get(&test.job)?;
        Some(Subject { name, test, job, registers, config })
    };
    let subjects: Vec<Subject<'p>> = tests.filter_map(subject).collect();
    if subjects.is_empty() {
        let names: Vec<&str> = jobs.tests.keys().map(String::as_str).collect();
        let what = if names.is_empty() {
            format!("{} has no [tests.NAME] in shef.toml", args.dir.display())
        } else {
            format!("no test has {filter:?} in its name; there are {}", names.join(", "))
        };
        return Err(TestError::NoTest { what }.into());
    }
    Ok(subjects)
}

/// Everything that runs.
struct Plan<'p> {
    /// All tests with all seeds.
    cases: Vec<Case<'p>>,
    /// Phases of all tests, with the cases of each.
    phases: Vec<(Phase, Vec<usize>)>,
    /// Tests whose model failed.
    failed: BTreeMap<&'p str, Failure>,
}

/// The result of a step, unless it could not be tried.
type Tried = Result<Result<Passed, Failure>, CliError>;

/// What a worker says.
enum Event {
    /// A long step of a build begins.
    Builds(String),
    /// The design does not build.
    Broken(CliError),
    /// A step is over; without a result if it did not run.
    Over { step: Step, result: Option<Tried>, time: Duration },
}

/// The state of a phase while its seeds run.
#[derive(Default)]
struct Progress {
    /// From the beginning of its first step to the end of its last one.
    since: Option<Instant>,
    time: Duration,
    seeds: Vec<u64>,
    passed: Option<(u64, Passed)>,
    /// The lowest seed that failed.
    failed: Option<(u64, Failure)>,
}

/// Keeps the value of the lowest seed.
fn of_lowest<T>(kept: &mut Option<(u64, T)>, seed: u64, value: T) {
    if kept.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
        *kept = Some((seed, value));
    }
}

impl<'p> Plan<'p> {
    /// Reads data, and calls the models.
    fn new(subjects: &[Subject<'p>], args: &TestArgs) -> Result<Self, CliError> {
        let mut plan = Self { cases: Vec::new(), phases: Vec::new(), failed: BTreeMap::new() };
        for subject in subjects {
            let first = args.seed.unwrap_or(1);
            let only = args.seed.map(|_| 1);
            let seeds = args.seeds.or(only).unwrap_or_else(|| subject.test.seeds.into());
            let from = plan.cases.len();
            for seed in (0..seeds).map(|k| first.wrapping_add(k)) {
                plan.cases.push(Case::new(*subject, seed)?);
            }
            if let Some(model) = &subject.test.model
                && let Err(failure) = python::add(model, &mut plan.cases[from..])?
            {
                plan.failed.insert(subject.name, failure);
            }
            for phase in Phase::ALL.into_iter().filter(|one| args.only.is_none_or(|it| it == *one))
            {
                let no_memory = subject.job.inputs.is_empty() && subject.job.outputs.is_empty();
                if phase == Phase::Attacks && no_memory {
                    continue;
                }
                let count = match phase {
                    Phase::Bare => seeds,
                    _ => args.seeds.unwrap_or(SHIELDED_SEEDS).min(seeds),
                };
                let cases = (from..plan.cases.len()).take(count as usize).collect();
                plan.phases.push((phase, cases));
            }
        }
        if plan.phases.is_empty() {
            let what = "the selected tests have nothing in card memory to attack".to_owned();
            return Err(TestError::NoTest { what }.into());
        }
        Ok(plan)
    }

    /// The phase without a Shield of the same test.
    fn bare_of(&self, phase: usize) -> Option<usize> {
        let test = |phase: usize| self.cases[self.phases[phase].1[0]].subject.name;
        (0..phase).find(|one| self.phases[*one].0 == Phase::Bare && test(*one) == test(phase))
    }

    /// The steps of all tests whose model did not fail, with those without a Shield first.
    fn schedule(&self, no_fail_fast: bool) -> Schedule {
        let mut steps: Vec<Step> = Vec::new();
        for (phase, (_, cases)) in self.phases.iter().enumerate() {
            if !self.failed.contains_key(self.cases[cases[0]].subject.name) {
                steps.extend(cases.iter().map(|case| Step { phase, case: *case }));
            }
        }
        steps.sort_by_key(|step| self.phases[step.phase].0);
        let planned = self.phases.iter().enumerate().map(|(number, (phase, _))| {
            let after = self.bare_of(number).filter(|_| !no_fail_fast);
            Planned { shell: phase.shell(), after }
        });
        Schedule::new(planned.collect(), steps)
    }

    /// Runs steps until nothing is left to begin.
    fn work(
        &self,
        (design, base): (&Design, &RtlOptions),
        schedule: &Schedule,
        to: &mpsc::Sender<Event>,
    ) {
        let mut say = |text: &str| drop(to.send(Event::Builds(text.to_owned())));
        while let Some(next) = schedule.next() {
            let begin = Instant::now();
            let (step, result) = match next {
                Next::Build(shell) => {
                    if let Err(error) = phases::build(shell, design, base, &mut say) {
                        schedule.stop();
                        let _ = to.send(Event::Broken(error));
                        return;
                    }
                    schedule.built(shell);
                    continue;
                }
                Next::Skip(step) => (step, None),
                Next::Run(step) => {
                    let (phase, case) = (self.phases[step.phase].0, &self.cases[step.case]);
                    (step, Some(phases::run(phase, design, case, base, &mut say)))
                }
            };
            let failed = matches!(result, Some(Ok(Err(_))));
            if let Some(Err(_)) = result {
                schedule.stop();
            }
            let _ = to.send(Event::Over { step, result, time: begin.elapsed() });
            schedule.over(step, failed);
        }
    }

    /// Runs all steps, and prints each phase when it is over.
    fn run(
        &self,
        output: &Output,
        args: &TestArgs,
        design: &Design,
        base: &RtlOptions,
    ) -> Result<Vec<PhaseReport>, CliError> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = args.jobs.map_or(processors, usize::from);
        let schedule = self.schedule(args.no_fail_fast);
        let mut progress: Vec<Progress> = Vec::new();
        progress.resize_with(self.phases.len(), Progress::default);
        let mut reports: Vec<Option<PhaseReport>> = Vec::new();
        reports.resize_with(self.phases.len(), || None);
        // Tests whose model failed do not run: their first phase has the failure.
        for number in 0..self.phases.len() {
            let case = &self.cases[self.phases[number].1[0]];
            if let Some(failure) = self.failed.get(case.subject.name) {
                let first = self.bare_of(number).is_none();
                progress[number].failed = first.then(|| (case.seed, failure.clone()));
                let state = std::mem::take(&mut progress[number]);
                let report = self.report(number, state, "the model failed", &args.dir);
                print(output, &report)?;
                reports[number] = Some(report);
            }
        }
        let mut left: Vec<usize> = (0..self.phases.len()).map(|n| schedule.left(n)).collect();
        let (to, from) = mpsc::channel::<Event>();
        let spinner = output.spinner("tests");
        let error = std::thread::scope(|scope| {
            for _ in 0..workers {
                let (to, schedule) = (to.clone(), &schedule);
                scope.spawn(move || self.work((design, base), schedule, &to));
            }
            drop(to);
            for event in from {
                let (step, result, time) = match event {
                    Event::Builds(text) => {
                        spinner.message(&text);
                        continue;
                    }
                    Event::Broken(error) => return Some(error),
                    Event::Over { step, result, time } => (step, result, time),
                };
                let seed = self.cases[step.case].seed;
                let state = &mut progress[step.phase];
                let now = Instant::now();
                let begin = now.checked_sub(time).unwrap_or(now);
                let since = state.since.map_or(begin, |since| since.min(begin));
                (state.since, state.time) = (Some(since), now - since);
                state.seeds.extend(result.as_ref().map(|_| seed));
                match result {
                    None => {}
                    Some(Err(error)) => return Some(error),
                    Some(Ok(Ok(passed))) => of_lowest(&mut state.passed, seed, passed),
                    Some(Ok(Err(failure))) => of_lowest(&mut state.failed, seed, failure),
                }
                left[step.phase] -= 1;
                if left[step.phase] == 0 {
                    let why = "its bare job failed, and --no-fail-fast is not given";
                    let mut report = self.report(step.phase, std::mem::take(state), why, &args.dir);
                    if base.wave.is_none() {
                        self.keep_waves(design, &mut report, &mut |text| spinner.message(text));
                    }
                    if let Err(error) = print(output, &report) {
                        schedule.stop();
                        return Some(error);
                    }
                    reports[step.phase] = Some(report);
                }
            }
            None
        });
        drop(spinner);
        match error {
            Some(error) => Err(error),
            None => Ok(reports.into_iter().flatten().collect()),
        }
    }

    /// Keeps waves of a seed that failed without a Shield.
    fn keep_waves(&self, design: &Design, report: &mut PhaseReport, say: &mut dyn FnMut(&str)) {
        let cycle = report.failure.as_ref().and_then(|failure| failure.found.cycle);
        let case = self
            .cases
            .iter()
            .find(|case| case.subject.name == report.test && Some(case.seed) == report.seed);
        if let (Phase::Bare, Some(cycle), Some(case)) = (report.phase, cycle, case) {
            match waves::keep(design, case, cycle, say) {
                Ok(kept) => report.wave = Some(kept),
                Err(error) => report.no_wave = Some(error.message),
            }
        }
    }

    /// The report of a phase; `why` it did not run, if it did not.
    fn report(&self, number: usize, state: Progress, why: &str, dir: &Path) -> PhaseReport {
        let (phase, cases) = &self.phases[number];
        let test = self.cases[cases[0]].subject.name;
        let mut seeds = state.seeds;
        seeds.sort_unstable();
        let (cycles, attacks) =
            state.passed.map(|(_, passed)| (passed.cycles, passed.attacks)).unwrap_or_default();
        let (seed, failure) = state.failed.map_or((None, None), |(seed, f)| (Some(seed), Some(f)));
        let replay = seed.map(|seed| {
            let dir = shell::word(dir);
            // A name may look like a flag.
            let k = if test.starts_with('-') { "-k=" } else { "-k " };
            format!("shef test {dir} {k}{test} --seed {seed} --only {}", phase.name())
        });
        PhaseReport {
            test: test.to_owned(),
            phase: *phase,
            passed: failure.is_none() && !seeds.is_empty(),
            skipped: (failure.is_none() && seeds.is_empty()).then(|| why.to_owned()),
            seeds,
            cycles,
            attacks,
            ms: ms(state.time),
            seed,
            failure,
            replay,
            wave: None,
            no_wave: None,
        }
    }
}

/// Prints a phase.
fn print(output: &Output, report: &PhaseReport) -> Result<(), CliError> {
    if let Some(why) = &report.skipped {
        let (test, phase) = (&report.test, report.phase.name());
        return output.line(format_args!("skip {test:<16} {phase:<9} not run: {why}"));
    }
    let mark = if report.passed { output.good("ok  ") } else { output.bad("FAIL") };
    let seeds = match report.seeds.as_slice() {
        [] => String::new(),
        [seed] => format!("seed {seed}"),
        seeds => count(seeds.len() as u64, "seed"),
    };
    let mut notes = Vec::new();
    if let (Some(cycles), true) = (report.cycles, report.passed) {
        notes.push(count(cycles, "cycle"));
    }
    if !report.attacks.is_empty() {
        let refused = report.attacks.iter().filter(|attack| attack.code.is_some()).count();
        notes
            .push(format!("{refused} of {} refused", count(report.attacks.len() as u64, "attack")));
        let unread = report.attacks.len() - refused;
        if unread > 0 {
            notes.push(format!("{unread} changed what the job does not read"));
        }
    }
    let seed = report.seed.map(|seed| format!("seed {seed}"));
    output.line(format_args!(
        "{mark} {:<16} {:<9} {:<8} {:>6.1} s  {}",
        report.test,
        report.phase.name(),
        seed.unwrap_or(seeds),
        report.ms as f64 / 1000.0,
        notes.join(", ")
    ))?;
    for attack in &report.attacks {
        let code = attack.code.as_deref().unwrap_or("not read");
        output.detail(format_args!("     {} on {}: {code}", attack.attack, attack.region));
    }
    let lines = report.failure.iter().flat_map(Failure::lines);
    for line in lines.chain(report.replay.iter().map(|replay| format!("again: {replay}"))) {
        output.line(format_args!("     {line}"))?;
    }
    if let Some(waves::Kept { file, from, failed }) = &report.wave {
        let end = match failed {
            Some(cycle) => format!("to the failure at cycle {cycle}"),
            None => "on; this run, with waves, did not fail".to_owned(),
        };
        output.line(format_args!("     waves: {file}, from cycle {from} {end}"))?;
    }
    if let Some(why) = &report.no_wave {
        output.line(format_args!("     no waves: {why}"))?;
    }
    Ok(())
}
