//! The phases of a test: without a Shield, and behind it.

use serde::Serialize;
use shef_card::{BareCard, Design, RtlOptions};
use shef_console::CliError;
use shef_lab::probe::card;

use super::outcome::Passed;
use super::{attacks, residue};
use crate::job::case::Case;
use crate::job::drive::{self, Shielded, obeys};
use crate::job::failure::Failure;
use crate::job::rig::{self, Rig, timing};

/// A phase of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The accelerator without a Shield, with many timings of its memory
    Bare,
    /// Behind the Shield, from attestation to the close record
    Shielded,
    /// Attacks on its regions in card memory
    Attacks,
    /// What a session leaves for the next one
    Residue,
}

impl Phase {
    /// All phases, in their order.
    pub const ALL: [Self; 4] = [Self::Bare, Self::Shielded, Self::Attacks, Self::Residue];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Shielded => "shielded",
            Self::Attacks => "attacks",
            Self::Residue => "residue",
        }
    }

    /// The simulation that it needs.
    pub fn shell(self) -> Shell {
        match self {
            Self::Bare => Shell::Bare,
            Self::Shielded | Self::Attacks | Self::Residue => Shell::Shielded,
        }
    }
}

/// A simulation of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// Without a Shield.
    Bare,
    /// The card.
    Shielded,
}

/// Builds a simulation, or takes it from the cache.
///
/// # Errors
/// A design that does not build.
pub fn build(
    shell: Shell,
    design: &Design,
    base: &RtlOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<(), CliError> {
    // All seeds share a build.
    let timing = timing(base, 0);
    match shell {
        Shell::Bare => BareCard::build(design, &timing, progress).map_err(card),
        Shell::Shielded => rig::options(design, timing).build(progress).map_err(card),
    }
}

/// Runs a phase of a test with one seed, with the waves of `base`.
///
/// # Errors
/// Errors that prevent it from being tried. The inner error is that of
/// the test.
pub fn run(
    phase: Phase,
    design: &Design,
    case: &Case<'_>,
    base: &RtlOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Result<Passed, Failure>, CliError> {
    match phase {
        Phase::Bare => {
            let made = BareCard::new(design, &timing(base, case.seed), progress).map_err(card)?;
            Ok(bare(made, case))
        }
        Phase::Shielded => {
            let mut rig = Rig::new(design, timing(base, case.seed), case.seed, progress)?;
            Ok(shielded(&mut rig, case))
        }
        Phase::Attacks => {
            let mut rig = Rig::new(design, timing(base, case.seed), case.seed, progress)?;
            Ok(attacks::all(&mut rig, case).map(|attacks| Passed { attacks, cycles: None }))
        }
        Phase::Residue => residue::run(design, case, base, progress),
    }
}

fn done(case: &Case<'_>) -> Option<shef_card::check::DoneRegister> {
    case.subject.job.done.map(drive::done_register)
}

/// The accelerator's result, without a Shield.
fn bare(mut card: BareCard, case: &Case<'_>) -> Result<Passed, Failure> {
    bare_job(&mut card, case).map_err(|failure| failure.at(card.cycles()))
}

fn bare_job(bare: &mut BareCard, case: &Case<'_>) -> Result<Passed, Failure> {
    bare.check(done(case)).map_err(card)?;
    let (ran, results) = drive::bare(bare, case)?;
    let compared = case.compare(&results);
    // A broken rule comes first: it may be the cause of all else.
    let right = ran.is_ok() && compared.is_ok();
    obeys(bare.checked()).map_err(|failure| failure.with_results(right))?;
    let cycles = ran?;
    compared?;
    Ok(Passed { cycles: Some(cycles), ..Passed::default() })
}

/// A whole session.
fn shielded(rig: &mut Rig, case: &Case<'_>) -> Result<Passed, Failure> {
    let result = session(rig, case);
    result.map_err(|failure| failure.at(rig.card.cycles().unwrap_or_default()))
}

fn session(rig: &mut Rig, case: &Case<'_>) -> Result<Passed, Failure> {
    let Rig { world, host, card: probe, .. } = rig;
    probe.check(done(case)).map_err(card)?;
    let mut session = world.session(host)?;
    let mut shielded = Shielded { session: &mut session, card: probe };
    shielded.upload(&case.inputs)?;
    let ran = shielded.job(case, &case.writes()?);
    let compared = ran.as_ref().map(|(results, _)| case.compare(results));
    let right = matches!(compared, Ok(Ok(())));
    obeys(probe.checked()).map_err(|failure| failure.with_results(right))?;
    let (results, cycles) = ran?;
    let closed = session.close()?;
    closed.verify_record(&host.close_record()?)?;
    obeys(probe.checked())?;
    case.compare(&results)?;
    Ok(Passed { cycles: Some(cycles), ..Passed::default() })
}
