//! Parallel steps: as many lanes as there are cores, longest step first.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Outcome of a step.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Tests or tasks that passed. A step without separate tests counts as one.
    pub passed: u32,
    /// Tests or tasks that failed.
    pub failed: u32,
    /// Text for the user: all of a failure, at most one line of a success.
    pub text: String,
    /// The step passed before on the same content, and was not run again.
    pub cached: bool,
    /// Why it could not run here, with a command that helps.
    pub skipped: Option<String>,
}

impl Outcome {
    /// One check that passed.
    pub fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    /// One check that failed.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { failed: 1, text: text.into(), ..Self::default() }
    }

    /// A check that cannot run here.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self { skipped: Some(why.into()), ..Self::default() }
    }

    /// Whether nothing failed.
    pub fn ok(&self) -> bool {
        self.failed == 0
    }
}

/// Something to run.
pub struct Step<'a> {
    /// Unique in a run.
    pub name: String,
    /// Recorded duration in seconds; only decides the order.
    pub expected: u64,
    /// Names of the steps that must pass first.
    pub after: Vec<String>,
    /// The work. It may add further steps.
    pub work: Box<dyn FnOnce(&Lanes<'a>) -> Outcome + Send + 'a>,
}

/// A finished step.
#[derive(Debug)]
pub struct Done {
    /// Its name.
    pub name: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// Wall-clock time.
    pub took: Duration,
}

#[derive(Default)]
struct State<'a> {
    waiting: Vec<Step<'a>>,
    running: usize,
    passed: BTreeSet<String>,
    skipped: BTreeSet<String>,
    done: Vec<Done>,
}

impl State<'_> {
    /// The outcome of a step that cannot run: skipped if its predecessors were.
    fn without_its_predecessors(&mut self, step: &Step<'_>) -> Outcome {
        let missing = step.after.iter().filter(|name| !self.passed.contains(*name));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        let text = format!("needs '{}', which did not pass", missing.join("', '"));
        if missing.iter().all(|name| self.skipped.contains(*name)) {
            self.skipped.insert(step.name.clone());
            Outcome::skipped(text)
        } else {
            Outcome::failed(text)
        }
    }
}

/// The lanes of a run.
pub struct Lanes<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
}

impl<'a> Lanes<'a> {
    /// Empty lanes.
    pub fn new() -> Self {
        Self { state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    fn locked(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a step; a running step may do so, too.
    pub fn add(&self, step: Step<'a>) {
        self.locked().waiting.push(step);
        self.changed.notify_all();
    }

    /// Runs everything in `lanes` threads; calls `report` for each step as it ends, one at a time.
    pub fn run(self, lanes: usize, report: &(dyn Fn(&Done) + Sync)) -> Vec<Done> {
        std::thread::scope(|scope| {
            for _ in 0..lanes.max(1) {
                scope.spawn(|| self.lane(report));
            }
        });
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).done
    }

    fn lane(&self, report: &(dyn Fn(&Done) + Sync)) {
        let mut state = self.locked();
        loop {
            let Some(step) = next(&mut state) else {
                if state.running == 0 {
                    // A step whose predecessor failed or does not exist never runs.
                    for step in std::mem::take(&mut state.waiting) {
                        let outcome = state.without_its_predecessors(&step);
                        let done = Done { name: step.name, outcome, took: Duration::ZERO };
                        report(&done);
                        state.done.push(done);
                    }
                    self.changed.notify_all();
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.running += 1;
            drop(state);
            let start = Instant::now();
            // A panic is a failure of its step; without this, the other lanes would wait for it for
            // ever.
            let outcome = catch_unwind(AssertUnwindSafe(|| (step.work)(self)))
                .unwrap_or_else(|_| Outcome::failed("it panicked"));
            let done = Done { name: step.name, outcome, took: start.elapsed() };
            state = self.locked();
            report(&done);
            // A step that depends on a skipped step cannot run either, but is no failure: it is
            // reported as skipped.
            if done.outcome.ok() && done.outcome.skipped.is_none() {
                state.passed.insert(done.name.clone());
            } else if done.outcome.ok() {
                state.skipped.insert(done.name.clone());
            }
            state.done.push(done);
            state.running -= 1;
            self.changed.notify_all();
        }
    }
}

/// The longest step that is ready.
fn next<'a>(state: &mut State<'a>) -> Option<Step<'a>> {
    let ready = |s: &Step<'_>| s.after.iter().all(|name| state.passed.contains(name));
    let (at, _) = state
        .waiting
        .iter()
        .enumerate()
        .filter(|(_, s)| ready(s))
        .max_by_key(|(at, s)| (s.expected, usize::MAX - at))?;
    Some(state.waiting.remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step<'a>(
        name: &str,
        expected: u64,
        after: Option<&str>,
        outcome: fn() -> Outcome,
    ) -> Step<'a> {
        Step {
            name: name.into(),
            expected,
            after: after.map(str::to_owned).into_iter().collect(),
            work: Box::new(move |_| outcome()),
        }
    }

    fn names(done: &[Done]) -> Vec<&str> {
        done.iter().map(|d| d.name.as_str()).collect()
    }

    #[test]
    fn the_longest_goes_first_and_dependants_wait() {
        let lanes = Lanes::new();
        lanes.add(step("short", 1, None, Outcome::passed));
        lanes.add(step("dependant", 99, Some("short"), Outcome::passed));
        lanes.add(step("long", 9, None, Outcome::passed));
        assert_eq!(names(&lanes.run(1, &|_| ())), ["long", "short", "dependant"]);
    }

    #[test]
    fn dependants_of_a_failed_step_fail_and_the_rest_goes_on() {
        let lanes = Lanes::new();
        lanes.add(step("broken", 5, None, || Outcome::failed("no")));
        lanes.add(step("dependant", 4, Some("broken"), Outcome::passed));
        lanes.add(step("other", 3, None, Outcome::passed));
        let done = lanes.run(2, &|_| ());
        let ok: Vec<_> = done.iter().filter(|d| d.outcome.ok()).map(|d| d.name.as_str()).collect();
        assert_eq!((ok, done.len()), (vec!["other"], 3));
    }

    #[test]
    fn a_step_adds_steps() {
        let lanes = Lanes::new();
        let work = |lanes: &Lanes<'_>| {
            lanes.add(step("tests", 1, None, Outcome::passed));
            Outcome::passed()
        };
        lanes.add(Step {
            name: "build".into(),
            expected: 1,
            after: Vec::new(),
            work: Box::new(work),
        });
        // In one lane: in two, the added step may end first.
        assert_eq!(names(&lanes.run(1, &|_| ())), ["build", "tests"]);
    }
}
