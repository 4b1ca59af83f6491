//! Every attack, on cards side by side.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use shef::Host;
use shef_card::{CardOptions, Engine, RtlOptions};
use shef_console::CliError;
use shef_console::output::Output;
use shef_lab::attacks::{Attack, Lab, Target};
use shef_lab::data::Dataset;
use shef_lab::probe::Probe;
use shef_lab::world::{Cards, Plan, World};

use super::report::AttackResult;
use super::settings::{DemoArgs, Settings};
use super::steps::ms;

/// Rows of the small jobs that attacks run.
const SMALL: (usize, usize) = (64, 32);
/// Default seed of the memory's stalls during attacks.
const STALLS: u64 = 1;

/// Attacks run with random stalls of the memory, each on the card as the previous attack left it.
fn stalled(cards: &Cards) -> Cards {
    match cards {
        Cards::Made(CardOptions { engine: Engine::Rtl(rtl), design, .. }) => {
            let stalls = Some(rtl.stalls.unwrap_or(STALLS));
            // What an attack does to the memory breaks rules of the protocol.
            let rtl = RtlOptions { stalls, check: false, wave: None, ..rtl.clone() };
            Cards::Made(CardOptions::new(Engine::Rtl(rtl), design.clone()))
        }
        other => other.clone(),
    }
}

/// Runs the selected attacks and prints their results.
///
/// # Errors
/// Errors that prevent an attack from being tried.
pub fn all(
    output: &Output,
    args: &DemoArgs,
    settings: &Settings,
    dir: &Path,
) -> Result<Vec<AttackResult>, CliError> {
    if settings.attacks.is_empty() {
        return Ok(Vec::new());
    }
    output.line("")?;
    output.line(output.heading("attacks"))?;
    let cards = stalled(&settings.cards);
    let workers = match &cards {
        Cards::Made(CardOptions { engine: Engine::Rtl(_), .. }) => {
            std::thread::available_parallelism().map_or(1, usize::from).min(args.cards.max(1))
        }
        _ => 1,
    };
    let spinner = output.spinner(format!("{} attacks", settings.attacks.len()));
    let trials = Trials {
        attacks: &settings.attacks,
        train: settings.train.head(SMALL.0),
        query: settings.query.head(SMALL.1),
        next: AtomicUsize::new(0),
        results: Mutex::new(settings.attacks.iter().map(|_| None).collect()),
    };
    let failures: Vec<CliError> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|worker| {
                let name = format!("attacks-{worker}");
                let (cards, service) = (cards.clone(), settings.service.clone());
                let plan = Plan { cards, seed: args.seed, name: name.clone(), service };
                let (dir, trials) = (dir.join(name), &trials);
                scope.spawn(move || trials.work(&dir, plan))
            })
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| {
                worker.join().unwrap_or_else(|_| Err(CliError::internal("a worker stopped"))).err()
            })
            .collect()
    });
    drop(spinner);
    if let Some(error) = failures.into_iter().next() {
        return Err(error);
    }
    let results = trials.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let results: Vec<AttackResult> = results.into_iter().flatten().collect();
    print(output, &results)?;
    Ok(results)
}

/// Attacks that workers take one after the other, and their results.
struct Trials<'a> {
    attacks: &'a [&'static Attack],
    train: Dataset,
    query: Dataset,
    next: AtomicUsize,
    results: Mutex<Vec<Option<AttackResult>>>,
}

impl Trials<'_> {
    /// Runs attacks on one card until none is left.
    fn work(&self, dir: &Path, plan: Plan) -> Result<(), CliError> {
        let mut world = World::new(dir, plan)?;
        let (mut host, probe) = world.card(&mut |_| {})?;
        loop {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(attack) = self.attacks.get(at) else { return Ok(()) };
            let result = self.one(attack, &mut world, &mut host, &probe);
            self.results.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(result);
        }
    }

    fn one(
        &self,
        attack: &Attack,
        world: &mut World,
        host: &mut Host,
        probe: &Probe,
    ) -> AttackResult {
        let (train, query) = (&self.train, &self.query);
        let begin = Instant::now();
        let from = probe.cycles();
        probe.tap().honest();
        let ready = match attack.target {
            Target::Session => world.ready(host),
            Target::Load | Target::Boot => host.reset(),
        };
        let outcome = ready.map_err(CliError::from).and_then(|()| {
            probe.unwatch()?;
            let outcome = (attack.run)(&mut Lab { world, host, probe, train, query })?;
            Ok((outcome, probe.words_delivered()?))
        });
        let (detected, words_delivered, code, detail) = match outcome {
            Ok((outcome, words)) => (outcome.detected, words, outcome.code, outcome.detail),
            // An error that an attack does not expect is not a detection.
            Err(error) => {
                (false, probe.words_delivered().unwrap_or(0), error.code.to_string(), error.message)
            }
        };
        AttackResult {
            name: attack.name,
            title: attack.title,
            detected,
            words_delivered,
            code,
            detail,
            ms: ms(begin),
            cycles: from.zip(probe.cycles()).map(|(from, to)| to - from),
        }
    }
}

/// Prints a line for each attack.
fn print(output: &Output, results: &[AttackResult]) -> Result<(), CliError> {
    for result in results {
        let mark = if result.detected && result.words_delivered == 0 {
            output.good("refused")
        } else {
            output.bad("FAILED ")
        };
        output.line(format_args!(
            "{mark} {:<27} {:<13} {} words  {:>5} ms  {}",
            result.name, result.code, result.words_delivered, result.ms, result.title
        ))?;
        output.detail(format_args!("        {}", result.detail));
    }
    output.line("")
}
