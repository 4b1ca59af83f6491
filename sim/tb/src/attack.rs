//! A hostile bus and host against the Shield: one hostile act on one legitimate transaction at a time, followed to its
//! outcome.
//!
//! Every configuration is keyed once by a real Load Key and brought through two epochs of honest traffic; that state is
//! kept ([`shef_rtl::Sim::save`]) and put back before each attempt, so that attempts do not depend on one another and any
//! of them can be run again alone.

mod session;
mod trial;

use crate::Result;
use session::Session;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use trial::{Trial, Verdict};

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bits are inverted.
    Flip,
    /// Two pieces change places.
    Swap,
    /// An older piece comes again.
    Replay,
    /// A piece is made of two.
    Splice,
    /// A piece or a part is zero.
    Zero,
    /// The end of a piece or of a burst is missing, or never comes.
    Truncate,
    /// Slow answers, within the Shield's patience.
    Delay,
    /// Answers overtake one another, are under another id, come twice or unasked.
    Reorder,
    /// Memory answers with errors.
    Error,
    /// Memory does not answer.
    Silence,
    /// Reset or wipe while bursts run.
    Reset,
    /// Registers are written and read at random while bursts run.
    Flood,
}

impl Kind {
    /// All of them, in the order of reports; attempt `i` is of kind `i` modulo 12.
    pub const ALL: [Self; 12] = [
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
    ];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["flip", "swap", "replay", "splice", "zero", "truncate", "delay", "reorder", "error", "silence", "reset", "flood"][self as usize]
    }

    /// Whether each of them must be noticed.
    #[must_use]
    pub fn forgery(self) -> bool {
        (self as usize) < 5
    }
}

/// The configurations, by name.
pub const CONFIGURATIONS: [(&str, &str); 4] = [
    ("lanes4", include_str!("../configs/lanes4.toml")),
    ("lanes2", include_str!("../configs/lanes2.toml")),
    ("lanes1", include_str!("../configs/lanes1.toml")),
    ("narrow", include_str!("../configs/narrow.toml")),
];

/// What is to be run.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Attempts.
    pub n: u64,
    /// Seed of everything.
    pub seed: u64,
    /// First attempt: slices of one seed add up.
    pub first: u64,
    /// Only this attempt.
    pub only: Option<u64>,
    /// At most this many configurations; 0: all.
    pub configurations: usize,
}

/// Attempts of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Attempts.
    pub n: u64,
    /// Noticed by Shield, owner or channel.
    pub detected: u64,
}

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Attempts.
    pub n: u64,
    /// Seed.
    pub seed: u64,
    /// Attempts in which a word was delivered that is not what was written.
    pub delivered_wrong: u64,
    /// Attempts in which a forged message ran or a wrong result opened.
    pub accepted_wrong: u64,
    /// Attempts in which an honest transaction did not succeed.
    pub refused_wrong: u64,
    /// Attempts in which an answer never came.
    pub hangs: u64,
    /// By kind, in the order of [`Kind::ALL`].
    pub kinds: [Count; 12],
    /// Transactions.
    pub transactions: u64,
    /// Honest ones among them that had to succeed.
    pub honest: u64,
    /// Simulated cycles of the attempts.
    pub cycles: u64,
    /// Configurations.
    pub configurations: Vec<&'static str>,
    /// What went wrong (the first 20), with the command that repeats it.
    pub failures: Vec<String>,
    /// Time of the attempts, without building and keying.
    pub time: Duration,
}

impl Report {
    /// Whether all is as it must be.
    #[must_use]
    pub fn passed(&self) -> bool {
        let zero = self.delivered_wrong + self.accepted_wrong + self.refused_wrong + self.hangs == 0;
        zero && self.failures.is_empty() && self.honest * 3 >= self.transactions
    }

    /// One JSON document.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn json(&self) -> String {
        let kinds: Vec<String> = Kind::ALL
            .iter()
            .zip(&self.kinds)
            .map(|(k, c)| format!("{{\"kind\":\"{}\",\"n\":{},\"detected\":{}}}", k.name(), c.n, c.detected))
            .collect();
        let mut s = String::new();
        let _ = write!(
            s,
            "{{\"n\":{},\"seed\":{},\"delivered_wrong\":{},\"accepted_wrong\":{},\"refused_wrong\":{},\"hangs\":{},\"by_kind\":[{}],",
            self.n,
            self.seed,
            self.delivered_wrong,
            self.accepted_wrong,
            self.refused_wrong,
            self.hangs,
            kinds.join(",")
        );
        let names: Vec<String> = self.configurations.iter().map(|n| format!("\"{n}\"")).collect();
        let _ = write!(
            s,
            "\"transactions\":{},\"honest\":{},\"cycles\":{},\"configurations\":[{}],\"seconds\":{:.1},\"attempts_per_second\":{:.1}}}",
            self.transactions,
            self.honest,
            self.cycles,
            names.join(","),
            self.time.as_secs_f64(),
            self.n as f64 / self.time.as_secs_f64().max(1e-9)
        );
        s
    }

    fn add(&mut self, kind: Kind, v: &Verdict, name: &str, index: u64, again: &str) {
        self.n += 1;
        let c = &mut self.kinds[kind as usize];
        c.n += 1;
        c.detected += u64::from(v.detected);
        self.transactions += v.transactions;
        self.honest += v.honest;
        self.delivered_wrong += u64::from(!v.delivered_wrong.is_empty());
        self.accepted_wrong += u64::from(!v.accepted_wrong.is_empty());
        self.refused_wrong += u64::from(!v.refused_wrong.is_empty());
        self.hangs += u64::from(!v.hangs.is_empty());
        if v.clean() && (v.detected || !kind.forgery()) {
            return;
        }
        let mut text = format!("attempt {index}, {}, configuration {name}: {}", kind.name(), v.act);
        for (what, list) in [
            ("delivered wrong", &v.delivered_wrong),
            ("accepted wrong", &v.accepted_wrong),
            ("refused wrong", &v.refused_wrong),
            ("hang", &v.hangs),
        ] {
            for l in list {
                let _ = write!(text, "\n  {what}: {l}");
            }
        }
        if v.clean() {
            text.push_str("\n  not detected");
        }
        let _ = write!(text, "\n  again, with waves: {again}");
        if self.failures.len() < 20 {
            self.failures.push(text);
        }
    }
}

/// Seed of one attempt.
fn seed_of(seed: u64, index: u64) -> u64 {
    (seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(23).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ index
}

/// Runs a plan; `dir` takes generated packages, `progress` gets lines for a person.
///
/// # Errors
/// When a Shield cannot be built or keyed at all.
pub fn run(plan: &Plan, dir: &Path, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    let count = if plan.configurations == 0 { CONFIGURATIONS.len() } else { plan.configurations.min(CONFIGURATIONS.len()) };
    let of = |index: u64| (index / Kind::ALL.len() as u64 % count as u64) as usize;
    let (first, end) = plan.only.map_or((plan.first, plan.first + plan.n), |i| (i, i + 1));
    let mut report = Report { seed: plan.seed, ..Report::default() };
    let mut sessions: Vec<Option<Session>> = (0..count).map(|_| None).collect();
    let mut told = Instant::now();
    for index in first..end {
        let at = of(index);
        let (name, toml) = CONFIGURATIONS[at];
        if sessions[at].is_none() {
            sessions[at] = Some(Session::open(name, toml, dir, plan.seed ^ at as u64, progress)?);
            report.configurations.push(name);
        }
        let Some(s) = &mut sessions[at] else { continue };
        let kind = Kind::ALL[(index % Kind::ALL.len() as u64) as usize];
        let again = format!("SHEF_WAVES=target/waves cargo xtask attack --n {} --seed {} --only {index}", plan.n, plan.seed);
        if plan.only.is_some()
            && let Some(file) = s.waves(index)?
        {
            progress(&format!("waves: {}", file.display()));
        }
        let start = Instant::now();
        let cycles = trial::cycles(&s.card);
        let v = Trial::new(s, kind, seed_of(plan.seed, index))?.run(index);
        report.cycles += trial::cycles(&s.card) - cycles;
        report.time += start.elapsed();
        if plan.only.is_some() {
            progress(&format!("{index}: {} on {name}: {}; detected {}", kind.name(), v.act, v.detected));
        }
        let before = report.failures.len();
        report.add(kind, &v, name, index, &again);
        if let Some(f) = report.failures.get(before) {
            progress(f);
        }
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            progress(&format!("{} attempts in {:.0} s", report.n, report.time.as_secs_f64()));
        }
    }
    Ok(report)
}
