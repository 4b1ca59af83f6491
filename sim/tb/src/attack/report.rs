//! The report of a run, or of several slices of one.

use super::trial::Verdict;
use super::{Kind, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The owner's commands that are part of acts.
pub(super) const COMMANDS: [&str; 5] = ["flush", "invalidate", "epoch", "close", "abort"];
/// Number of failures reported in full.
const TOLD: usize = 20;

/// Attempts of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// Name of the kind.
    pub kind: String,
    /// Attempts.
    pub n: u64,
    /// Detected by the Shield, the owner or the channel.
    pub detected: u64,
    /// Simulated cycles.
    pub cycles: u64,
}

/// Attempts whose act was made in a state of the Shield.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InState {
    /// Name of the state.
    pub state: String,
    /// Attempts.
    pub n: u64,
}

/// Commands of the owner that were part of an act.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfCommand {
    /// Name of the command.
    pub command: String,
    /// Number of commands.
    pub n: u64,
}

/// Attempts of one seed that were run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Seed.
    pub seed: u64,
    /// Number of the first attempt.
    pub from: u64,
    /// Attempts.
    pub n: u64,
}

/// An attempt with a wrong outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Number of the attempt.
    pub attempt: u64,
    /// Kind of act.
    pub kind: String,
    /// Configuration.
    pub configuration: String,
    /// Description of the act and of what went wrong.
    pub text: String,
    /// Command that runs it again with waves.
    pub again: String,
    /// Waves of the attempt, run again from its snapshot.
    pub waves: Option<String>,
}

/// A configuration that was attacked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Attempts on it.
    pub n: u64,
    /// Digest of the design's sources.
    pub design: String,
}

/// Outcome of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Attempts.
    pub n: u64,
    /// Seed (of the first slice).
    pub seed: u64,
    /// Attempts that delivered a word other than the one written.
    pub delivered_wrong: u64,
    /// Attempts in which a forged message ran or a wrong result opened.
    pub accepted_wrong: u64,
    /// Attempts in which an honest transaction did not succeed.
    pub refused_wrong: u64,
    /// Attempts in which an answer never came.
    pub hangs: u64,
    /// By kind, in the order of [`Kind::ALL`].
    pub by_kind: Vec<Count>,
    /// The module that was attacked, from the design that was built.
    #[serde(default)]
    pub top: String,
    /// By the state in which the act was made, in the order of [`State::ALL`].
    #[serde(default)]
    pub by_state: Vec<InState>,
    /// Attempts in which a session ended, the accelerator was reset and another session was keyed.
    #[serde(default)]
    pub spanning_sessions: u64,
    /// The owner's commands while bursts ran or memory failed.
    #[serde(default)]
    pub by_command: Vec<OfCommand>,
    /// Number of transactions.
    pub transactions: u64,
    /// Number of honest transactions that had to succeed.
    pub honest: u64,
    /// Configurations by name.
    pub configurations: BTreeMap<String, Target>,
    /// The slices that were run.
    pub slices: Vec<Slice>,
    /// The first 20 failures.
    pub failures: Vec<Failure>,
    /// Processor seconds of the attempts, without building and keying.
    pub seconds: f64,
    /// Attempts per second of one core.
    pub attempts_per_second: f64,
}

impl Report {
    /// An empty report.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let by_kind =
            Kind::ALL.iter().map(|k| Count { kind: k.name().into(), ..Count::default() }).collect();
        let by_state =
            State::ALL.iter().map(|s| InState { state: s.name().into(), n: 0 }).collect();
        let by_command =
            COMMANDS.iter().map(|c| OfCommand { command: (*c).into(), n: 0 }).collect();
        Self { seed, by_kind, by_state, by_command, ..Self::default() }
    }

    /// Whether the run passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        let zero =
            self.delivered_wrong + self.accepted_wrong + self.refused_wrong + self.hangs == 0;
        zero && self.failures.is_empty() && self.honest * 3 >= self.transactions
    }

    /// Adds an attempt and returns what is wrong with it.
    pub(super) fn count(&mut self, kind: Kind, v: &Verdict, cycles: u64) -> Option<String> {
        self.n += 1;
        let c = &mut self.by_kind[kind as usize];
        c.n += 1;
        c.detected += u64::from(v.detected);
        c.cycles += cycles;
        self.by_state[v.state as usize].n += 1;
        self.spanning_sessions += u64::from(v.spanning);
        for c in &mut self.by_command {
            c.n += v.commands.iter().filter(|name| **name == c.command).count() as u64;
        }
        self.transactions += v.transactions;
        self.honest += v.honest;
        self.delivered_wrong += u64::from(!v.delivered_wrong.is_empty());
        self.accepted_wrong += u64::from(!v.accepted_wrong.is_empty());
        self.refused_wrong += u64::from(!v.refused_wrong.is_empty());
        self.hangs += u64::from(!v.hangs.is_empty());
        let mut wrong: Vec<String> =
            v.wrong().map(|(name, what)| format!("{name}: {what}")).collect();
        if wrong.is_empty() && kind.must_be_noticed() && !v.detected {
            wrong.push("not noticed".into());
        }
        (!wrong.is_empty()).then(|| format!("{}\n  {}", v.act, wrong.join("\n  ")))
    }

    /// Adds a failure to the report.
    pub(super) fn fail(&mut self, f: Failure) {
        if self.failures.len() < TOLD {
            self.failures.push(f);
        }
    }

    /// Adds the report of another run.
    ///
    /// # Errors
    /// If both contain the same attempt, or the designs differ.
    pub fn add(&mut self, other: &Self) -> Result<(), String> {
        if self.top.is_empty() {
            self.top.clone_from(&other.top);
        }
        // A part without attempts has built no design.
        if other.n > 0 && self.top != other.top {
            return Err(format!("attempts on {} and on {}", self.top, other.top));
        }
        for s in &other.slices {
            let both =
                |t: &&Slice| t.seed == s.seed && t.from < s.from + s.n && s.from < t.from + t.n;
            if let Some(t) = self.slices.iter().find(both) {
                return Err(format!(
                    "attempts {}..{} and {}..{} of seed {} overlap",
                    t.from,
                    t.from + t.n,
                    s.from,
                    s.from + s.n,
                    s.seed
                ));
            }
        }
        for (name, t) in &other.configurations {
            let mine = self
                .configurations
                .entry(name.clone())
                .or_insert_with(|| Target { n: 0, design: t.design.clone() });
            if mine.design != t.design {
                return Err(format!(
                    "configuration {name} is of another design: {} and {}",
                    mine.design, t.design
                ));
            }
            mine.n += t.n;
        }
        for c in &other.by_kind {
            match self.by_kind.iter_mut().find(|m| m.kind == c.kind) {
                Some(m) => {
                    (m.n, m.detected, m.cycles) =
                        (m.n + c.n, m.detected + c.detected, m.cycles + c.cycles);
                }
                None => self.by_kind.push(c.clone()),
            }
        }
        for c in &other.by_state {
            match self.by_state.iter_mut().find(|m| m.state == c.state) {
                Some(m) => m.n += c.n,
                None => self.by_state.push(c.clone()),
            }
        }
        for c in &other.by_command {
            match self.by_command.iter_mut().find(|m| m.command == c.command) {
                Some(m) => m.n += c.n,
                None => self.by_command.push(c.clone()),
            }
        }
        self.merge(other);
        self.slices.extend(other.slices.iter().cloned());
        self.slices.sort();
        Ok(())
    }

    /// Adds the sums of another part of the same run.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.n, other.n),
            (&mut self.delivered_wrong, other.delivered_wrong),
            (&mut self.accepted_wrong, other.accepted_wrong),
            (&mut self.refused_wrong, other.refused_wrong),
            (&mut self.hangs, other.hangs),
            (&mut self.transactions, other.transactions),
            (&mut self.honest, other.honest),
            (&mut self.spanning_sessions, other.spanning_sessions),
        ] {
            *mine += theirs;
        }
        self.seconds += other.seconds;
        self.attempts_per_second = self.n as f64 / self.seconds.max(1e-9);
        other.failures.iter().for_each(|f| self.fail(f.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(seed: u64, from: u64, n: u64) -> Report {
        let mut r = Report {
            n,
            honest: n,
            transactions: n,
            slices: vec![Slice { seed, from, n }],
            ..Report::new(seed)
        };
        r.by_kind[0].n = n;
        r.by_kind[0].detected = n;
        (r.by_state[2].n, r.spanning_sessions, r.top) = (n, n / 50, "core".into());
        r.configurations.insert("one".into(), Target { n, design: "d".into() });
        r
    }

    #[test]
    fn slices_add_up() {
        let mut sum = slice(1, 0, 100);
        sum.add(&slice(1, 100, 50)).unwrap_or_else(|e| panic!("{e}"));
        sum.add(&slice(2, 0, 7)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            (sum.n, sum.by_kind[0].n, sum.by_kind[0].detected, sum.configurations["one"].n),
            (157, 157, 157, 157)
        );
        assert_eq!((sum.by_state[2].n, sum.spanning_sessions, sum.top.as_str()), (157, 3, "core"));
        assert_eq!(sum.slices.len(), 3);
        assert!(sum.passed());
    }

    #[test]
    fn attempts_count_once_and_for_one_design() {
        let mut sum = slice(1, 0, 100);
        assert!(sum.add(&slice(1, 99, 50)).is_err_and(|e| e.contains("overlap")));
        let mut other = slice(1, 100, 50);
        other.configurations.insert("one".into(), Target { n: 50, design: "another".into() });
        assert!(sum.add(&other).is_err_and(|e| e.contains("another design")));
        let other = Report { top: "shield".into(), ..slice(1, 100, 50) };
        assert!(sum.add(&other).is_err_and(|e| e.contains("on core and on shield")));
    }
}
