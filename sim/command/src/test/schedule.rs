//! The order of a run's steps, for workers side by side: which one is next, and which ones do not run.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::phases::Shell;

/// A phase of a test with a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index of the phase in the plan.
    pub phase: usize,
    /// Index of the case.
    pub case: usize,
}

/// What the schedule knows of a phase.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    /// The simulation that it needs.
    pub shell: Shell,
    /// The phase that must pass before this one begins.
    pub after: Option<usize>,
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Builds a simulation; [`Schedule::built`] follows.
    Build(Shell),
    /// Runs a step; [`Schedule::over`] follows.
    Run(Step),
    /// Nothing: the step's phase failed with another seed, or the phase before it failed.
    /// [`Schedule::over`] follows.
    Skip(Step),
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Step>,
    /// Each simulation that is built, or being built, and whether it is.
    shells: Vec<(Shell, bool)>,
    /// Of each phase, the steps that are not over, and whether one failed.
    phases: Vec<(usize, bool)>,
    stopped: bool,
}

/// Hands out the steps of a run. A phase begins when the phase before it has passed; one simulation is
/// built at a time. So a design that does not build ends the run at once, and a job that fails without
/// a Shield costs no build of one.
pub struct Schedule {
    planned: Vec<Planned>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Schedule {
    /// Of these phases, with all steps in the order in which they are preferred.
    pub fn new(planned: Vec<Planned>, steps: Vec<Step>) -> Self {
        let mut phases = vec![(0, false); planned.len()];
        steps.iter().for_each(|step| phases[step.phase].0 += 1);
        let state = State { waiting: steps.into(), phases, ..State::default() };
        Self { planned, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Steps of a phase that are not over.
    pub fn left(&self, phase: usize) -> usize {
        self.lock().phases[phase].0
    }

    /// Waits for the next thing to do; `None` when there is nothing left to begin.
    pub fn next(&self) -> Option<Next> {
        let mut state = self.lock();
        while !state.stopped && !state.waiting.is_empty() {
            if let Some(next) = self.ready(&mut state) {
                return Some(next);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn ready(&self, state: &mut State) -> Option<Next> {
        for at in 0..state.waiting.len() {
            let step = state.waiting[at];
            let Planned { shell, after } = self.planned[step.phase];
            let before = after.map_or((0, false), |phase| state.phases[phase]);
            if before.0 > 0 {
                continue;
            }
            if before.1 || state.phases[step.phase].1 {
                state.waiting.remove(at);
                return Some(Next::Skip(step));
            }
            match state.shells.iter().find(|(one, _)| *one == shell) {
                Some((_, true)) => {
                    state.waiting.remove(at);
                    return Some(Next::Run(step));
                }
                None if state.shells.iter().all(|(_, built)| *built) => {
                    state.shells.push((shell, false));
                    return Some(Next::Build(shell));
                }
                _ => {}
            }
        }
        None
    }

    /// A simulation is built.
    pub fn built(&self, shell: Shell) {
        let mut state = self.lock();
        state
            .shells
            .iter_mut()
            .filter(|(one, _)| *one == shell)
            .for_each(|(_, built)| *built = true);
        self.changed.notify_all();
    }

    /// A step is over.
    pub fn over(&self, step: Step, failed: bool) {
        let mut state = self.lock();
        let (left, any) = &mut state.phases[step.phase];
        *left -= 1;
        *any |= failed;
        self.changed.notify_all();
    }

    /// Nothing begins any more.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bare phase with two seeds, and one behind a Shield.
    fn two(after: Option<usize>) -> Schedule {
        let planned = vec![
            Planned { shell: Shell::Bare, after: None },
            Planned { shell: Shell::Shielded, after },
        ];
        let step = |phase, case| Step { phase, case };
        Schedule::new(planned, vec![step(0, 0), step(0, 1), step(1, 0)])
    }

    fn step(next: Option<Next>) -> Step {
        let Some(Next::Run(step)) = next else { panic!("{next:?}") };
        step
    }

    #[test]
    fn a_shield_is_built_for_a_job_that_passed_without_one() {
        let all = two(Some(0));
        assert_eq!(all.next(), Some(Next::Build(Shell::Bare)));
        all.built(Shell::Bare);
        let (one, two) = (step(all.next()), step(all.next()));
        all.over(one, false);
        std::thread::scope(|scope| {
            // It waits for the second seed.
            let waits = scope.spawn(|| all.next());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waits.is_finished());
            all.over(two, false);
            assert_eq!(waits.join().unwrap(), Some(Next::Build(Shell::Shielded)));
        });
        all.built(Shell::Shielded);
        assert_eq!(step(all.next()).phase, 1);
        assert_eq!(all.next(), None);
    }

    #[test]
    fn after_a_failure_nothing_is_built_unless_the_phases_are_independent() {
        for (after, next) in [
            (Some(0), Next::Skip(Step { phase: 1, case: 0 })),
            (None, Next::Build(Shell::Shielded)),
        ] {
            let all = two(after);
            all.next();
            all.built(Shell::Bare);
            let one = step(all.next());
            all.over(one, true);
            let two = Step { phase: 0, case: 1 };
            assert_eq!(all.next(), Some(Next::Skip(two)), "its phase failed");
            all.over(two, false);
            assert_eq!(all.next(), Some(next));
        }
    }

    #[test]
    fn the_end_of_a_run_waits_for_no_build() {
        let all = two(None);
        assert_eq!(all.next(), Some(Next::Build(Shell::Bare)));
        std::thread::scope(|scope| {
            // The other simulation is not built beside this one.
            let waits = scope.spawn(|| all.next());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waits.is_finished());
            all.stop();
            assert_eq!(waits.join().unwrap(), None);
        });
    }
}
