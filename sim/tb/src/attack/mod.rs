//! A hostile bus and host against the Shield: one hostile act on one legitimate transaction at a
//! time, followed to its outcome.
//!
//! The bench takes the accelerator's place in `shef_core`. Every configuration is keyed once with a
//! real Load Key and runs two rounds of honest traffic. Snapshots of that state, and of those after
//! reset, before the Load Key and after the session, are saved ([`shef_rtl::Sim::save`]) and
//! restored before each attempt. Attempts are therefore independent, and each can be rerun alone.
//! One attempt in 75 continues into a new session.

mod directed;
mod flood;
mod layout;
mod recorded;
mod report;
mod session;
mod trial;

pub use report::{Count, Failure, InState, OfCommand, Report, Slice, Target};

use crate::{BenchError, Result, RtlBench, campaign};
use session::{Make, Session};
use shef_rtl::agent::Rng;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use trial::{Trial, Verdict};

/// The kind of hostile act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bits are inverted.
    Flip,
    /// Two pieces are swapped.
    Swap,
    /// An older piece is replayed.
    Replay,
    /// A piece is spliced from two.
    Splice,
    /// A piece or a part is zero.
    Zero,
    /// The end of a piece or of a burst is missing, or never comes.
    Truncate,
    /// Slow responses, within the Shield's time-out.
    Delay,
    /// Responses overtake each other, carry the wrong id, are duplicated or unsolicited; messages
    /// arrive in the wrong order.
    Reorder,
    /// Memory answers with errors.
    Error,
    /// Memory does not answer.
    Silence,
    /// Reset, wipe or the end of the session while bursts run.
    Reset,
    /// Registers are written and read at random while bursts run, or there are many illegal bursts.
    Flood,
    /// Bytes of an unprotected region are changed. This is not detected, but nothing else may
    /// change.
    Public,
}

impl Kind {
    /// All variants, in the order of reports.
    pub const ALL: [Self; 13] = [
        Self::Flip,
        Self::Swap,
        Self::Replay,
        Self::Splice,
        Self::Zero,
        Self::Truncate,
        Self::Delay,
        Self::Reorder,
        Self::Error,
        Self::Silence,
        Self::Reset,
        Self::Flood,
        Self::Public,
    ];
    /// Number of kinds that exist in every configuration. Attempt `i` is of kind `i` modulo this,
    /// or occasionally [`Kind::Public`].
    const EVERYWHERE: u64 = 12;

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 13] = [
            "flip", "swap", "replay", "splice", "zero", "truncate", "delay", "reorder", "error",
            "silence", "reset", "flood", "public",
        ];
        NAMES[self as usize]
    }

    /// Whether every act of this kind must be detected.
    #[must_use]
    pub fn must_be_noticed(self) -> bool {
        !matches!(self, Self::Delay | Self::Reorder | Self::Flood | Self::Public)
    }
}

/// The state of the Shield at the time of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// After reset or wipe, before a seed.
    Empty,
    /// With a key pair, before a Load Key.
    Fresh,
    /// In a session.
    Keyed,
    /// After a session.
    Closed,
}

impl State {
    /// All variants, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Empty, Self::Fresh, Self::Keyed, Self::Closed];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["empty", "fresh", "keyed", "closed"][self as usize]
    }

    /// The state for an attempt: one in sixteen for each state without a session, whatever the
    /// kinds and configurations of a run. An attempt that continues into another session mostly has
    /// one before it.
    fn of(seed: u64, index: u64, at: u64, count: u64) -> Self {
        let (kind, round) = (index % Kind::EVERYWHERE, index / Kind::EVERYWHERE / count);
        match (7 * kind + 5 * at + round) % 16 {
            _ if goes_on(seed, index) && !index.is_multiple_of(8) => Self::Keyed,
            0 => Self::Empty,
            5 => Self::Fresh,
            10 => Self::Closed,
            _ => Self::Keyed,
        }
    }
}

/// Whether an attempt continues into a session that it keys: one in 75, spread evenly. Such a
/// session takes as long as a hundred attempts.
fn goes_on(seed: u64, index: u64) -> bool {
    index.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed_of(seed, 0)) < u64::MAX / 75
}

/// The configurations, by name.
pub const CONFIGURATIONS: &[(&str, &str)] = &[
    ("lanes4", include_str!("../../configs/lanes4.toml")),
    ("lanes2", include_str!("../../configs/lanes2.toml")),
    ("lanes1", include_str!("../../configs/lanes1.toml")),
    ("narrow", include_str!("../../configs/narrow.toml")),
    ("halt1", include_str!("../../configs/halt1.toml")),
    ("counted4", include_str!("../../configs/counted4.toml")),
    ("bypass2", include_str!("../../configs/bypass2.toml")),
    ("sets2", include_str!("../../configs/sets2.toml")),
    ("sets4", include_str!("../../configs/sets4.toml")),
    ("tree4", include_str!("../../configs/tree4.toml")),
    ("tree1", include_str!("../../configs/tree1.toml")),
    ("cache4", include_str!("../../configs/cache4.toml")),
    ("prefetch4", include_str!("../../configs/prefetch4.toml")),
    ("counted1", include_str!("../../configs/counted1.toml")),
    ("edge", include_str!("../../configs/edge.toml")),
];

/// The configurations for coverage: three designs that have every mode at every chunk size, all
/// lane counts and all fault policies.
pub const COVERAGE: &[(&str, &str)] = &[
    ("cover1", include_str!("../../configs/cover1.toml")),
    ("cover2", include_str!("../../configs/cover2.toml")),
    ("cover3", include_str!("../../configs/cover3.toml")),
];

/// Random operations on each coverage design, in addition to the attempts.
const COVERAGE_OPERATIONS: u64 = 2_000;

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Number of attempts.
    pub n: u64,
    /// Seed of the run.
    pub seed: u64,
    /// First attempt. Reports of slices with the same seed add up.
    pub from: u64,
    /// Only this attempt, with waves.
    pub only: Option<u64>,
    /// Names of configurations; empty for all. They determine the contents of attempt `i`.
    pub configurations: Vec<String>,
    /// Number of threads, each with its own instances.
    pub jobs: usize,
    /// Stop at the first failure.
    pub stop: bool,
    /// Write no waves of failures: for runs that are meant to fail.
    pub no_waves: bool,
    /// Compile designs for a short run.
    pub quick: bool,
    /// Run on the configurations of [`COVERAGE`], with random operations after the attempts, and
    /// write coverage to `coverage/*.dat` in the run's folder.
    pub coverage: bool,
}

impl Plan {
    /// The command that reruns an attempt.
    fn again(&self, index: u64) -> String {
        let names: String =
            self.configurations.iter().map(|c| format!(" --configuration {c}")).collect();
        format!("cargo xtask attack --seed {} --only {index}{names}", self.seed)
    }
}

/// Seed of one attempt.
fn seed_of(seed: u64, index: u64) -> u64 {
    (seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .rotate_left(23)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        ^ index
}

/// A configuration in a run.
struct Field<'a> {
    name: &'static str,
    toml: &'static str,
    /// Its index among the configurations of the run, and their number.
    at: (u64, u64),
    plan: &'a Plan,
    dir: &'a Path,
    progress: &'a (dyn Fn(&str) + Sync),
    /// Set to stop the run.
    over: &'a AtomicBool,
}

impl Field<'_> {
    fn open(&self, waves: bool) -> Result<Session> {
        let seed = self.name.bytes().fold(self.plan.seed, |n, b| n.rotate_left(9) ^ u64::from(b));
        let make = Make { waves, quick: self.plan.quick, coverage: self.plan.coverage };
        Session::open(self.name, self.toml, self.dir, seed, make, self.progress)
    }

    fn attempt(&self, s: &mut Session, index: u64) -> Result<(Kind, Verdict)> {
        let mut rng = Rng::new(seed_of(self.plan.seed, index));
        let public = rng.one_in(Kind::EVERYWHERE) && s.config.bypass_regions().next().is_some();
        let kind =
            if public { Kind::Public } else { Kind::ALL[(index % Kind::EVERYWHERE) as usize] };
        let state = State::of(self.plan.seed, index, self.at.0, self.at.1);
        Ok((kind, Trial::new(s, kind, state, goes_on(self.plan.seed, index), rng)?.run()))
    }

    /// Runs the attempts on this configuration.
    fn run(&self) -> Result<Report> {
        let mut report = Report::new(self.plan.seed);
        let (from, end) =
            self.plan.only.map_or((self.plan.from, self.plan.from + self.plan.n), |i| (i, i + 1));
        let mut mine =
            (from..end).filter(|i| i / Kind::EVERYWHERE % self.at.1 == self.at.0).peekable();
        if mine.peek().is_none() || self.over.load(Ordering::Relaxed) {
            return Ok(report);
        }
        let mut s = self.open(false)?;
        let mut first_failure = None;
        let (start, mut told) = (processor_time(), Instant::now());
        for index in mine {
            if self.over.load(Ordering::Relaxed) {
                break;
            }
            let before = s.bench.core().cycles();
            let (kind, v) = self.attempt(&mut s, index)?;
            if let Some(text) = report.count(kind, &v, s.bench.core().cycles() - before) {
                (self.progress)(&format!(
                    "attempt {index}, {}, configuration {}: {text}",
                    kind.name(),
                    self.name
                ));
                first_failure.get_or_insert(index);
                self.over.fetch_or(self.plan.stop, Ordering::Relaxed);
                report.fail(Failure {
                    attempt: index,
                    kind: kind.name().into(),
                    configuration: self.name.into(),
                    text,
                    again: self.plan.again(index),
                    waves: None,
                });
            } else if self.plan.only.is_some() {
                (self.progress)(&format!(
                    "attempt {index}, {} on {}: {}; noticed {}",
                    kind.name(),
                    self.name,
                    v.act,
                    v.detected
                ));
            }
            if told.elapsed() > Duration::from_secs(60) {
                told = Instant::now();
                (self.progress)(&format!(
                    "{}: {} attempts in {} s",
                    self.name,
                    report.n,
                    (processor_time() - start).as_secs()
                ));
            }
        }
        report.seconds = (processor_time() - start).as_secs_f64();
        report.top.clone_from(&s.top);
        let design = hex(&s.bench.core().design_digest());
        report.configurations.insert(self.name.into(), Target { n: report.n, design });
        if self.plan.coverage {
            self.cover(&mut s)?;
        }
        drop(s);
        if let Some(index) = first_failure.or(self.plan.only)
            && !self.plan.no_waves
        {
            let waves = self.waves(index);
            (self.progress)(&match &waves {
                Ok(file) => format!("waves of attempt {index}: {}", file.display()),
                Err(e) => format!("no waves of attempt {index}: {e}"),
            });
            if let (Ok(file), Some(f)) = (waves, report.failures.first_mut()) {
                f.waves = Some(file.display().to_string());
            }
        }
        Ok(report)
    }

    /// Writes the coverage of the attempts and the directed sequence, and that of random operations
    /// in a separate session.
    fn cover(&self, s: &mut Session) -> Result<()> {
        let folder = self.dir.join("coverage");
        std::fs::create_dir_all(&folder)
            .map_err(|e| BenchError::File(format!("{}: {e}", folder.display())))?;
        let file = |what: &str| folder.join(format!("{}-{what}.dat", self.name));
        directed::run(s)?;
        s.bench.core().sim().write_coverage(&file("attack"))?;
        let library = s.bench.core().sim().library().clone();
        let mut bench = RtlBench::new(&library, &s.config, Some(self.plan.seed))?;
        (self.progress)(&format!("{}: random operations", self.name));
        campaign(&mut bench, &s.config, self.plan.seed, COVERAGE_OPERATIONS)?;
        bench.core().sim().write_coverage(&file("operations"))?;
        Ok(())
    }

    /// Reruns an attempt from the same snapshot, in a design that writes waves.
    fn waves(&self, index: u64) -> Result<PathBuf> {
        let mut s = self.open(true)?;
        let folder = self.dir.join("waves");
        std::fs::create_dir_all(&folder)
            .map_err(|e| BenchError::File(format!("{}: {e}", folder.display())))?;
        let file = folder.join(format!("{}-{}-{index}.fst", self.name, self.plan.seed));
        s.bench.core().sim().trace_start(&file)?;
        let (_, v) = self.attempt(&mut s, index)?;
        s.bench.core().sim().trace_stop();
        if v.wrong().next().is_none() {
            (self.progress)(&format!(
                "attempt {index} goes well when it is run again: {}; noticed {}",
                v.act, v.detected
            ));
        }
        Ok(file)
    }
}

/// CPU time of this thread, or wall-clock time if Linux does not report it.
fn processor_time() -> Duration {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ran =
        text.and_then(|t| t.split_whitespace().next()?.parse().ok()).map(Duration::from_nanos);
    ran.unwrap_or_else(|| FIRST.get_or_init(Instant::now).elapsed())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Runs a plan. Generated packages and waves go to `dir`, lines for a person to `progress`.
///
/// # Errors
/// If a Shield cannot be built or keyed, or a configuration is unknown.
pub fn run(plan: &Plan, dir: &Path, progress: &(dyn Fn(&str) + Sync)) -> Result<Report> {
    let all = if plan.coverage { COVERAGE } else { CONFIGURATIONS };
    let mut chosen = Vec::new();
    for name in &plan.configurations {
        let one = all.iter().find(|(n, _)| n == name);
        chosen.push(*one.ok_or_else(|| {
            BenchError::File(format!("no configuration {name}; there are {}", names(all)))
        })?);
    }
    if chosen.is_empty() {
        chosen = all.to_vec();
    }
    let count = chosen.len() as u64;
    let over = AtomicBool::new(false);
    let fields: Vec<Field<'_>> = (0..count)
        .zip(chosen)
        .map(|(at, (name, toml))| Field {
            name,
            toml,
            at: (at, count),
            plan,
            dir,
            progress,
            over: &over,
        })
        .collect();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Result<Report>>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.clamp(1, fields.len()) {
            scope.spawn(|| {
                while let Some(f) = fields.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let r = f.run();
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(r);
                }
            });
        }
    });
    let mut sum = Report::new(plan.seed);
    for r in results.into_inner().unwrap_or_else(PoisonError::into_inner) {
        sum.add(&r?).map_err(BenchError::File)?;
    }
    sum.failures.sort_by_key(|f| f.attempt);
    sum.slices = vec![Slice { seed: plan.seed, from: plan.only.unwrap_or(plan.from), n: sum.n }];
    Ok(sum)
}

fn names(all: &[(&str, &str)]) -> String {
    all.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{CONFIGURATIONS, Kind, State, goes_on};

    #[test]
    fn every_state_has_its_share_and_so_have_second_sessions() {
        for count in [1, 3, CONFIGURATIONS.len() as u64] {
            for (seed, n) in [(1, 1000), (9, 1000), (20_261_123, 20_000)] {
                let state = |i: u64| State::of(seed, i, i / Kind::EVERYWHERE % count, count);
                for s in State::ALL {
                    let mine = (0..n).filter(|i| state(*i) == s).count() as u64;
                    assert!(mine * 20 >= n, "{count} configurations, {n} attempts, {s:?}: {mine}");
                }
                let spanning = (0..n)
                    .filter(|i| goes_on(seed, *i) && state(*i) == State::Keyed)
                    .count() as u64;
                assert!(
                    spanning * 100 >= n && spanning * 70 <= n,
                    "{count} configurations, {n} attempts: {spanning}"
                );
            }
        }
    }
}
