//! What a session leaves for the next one: the same second session after two first sessions that
//! differ in a secret only. Nothing of the second session may differ.

use shef_card::{Design, RtlOptions, Traced};
use shef_console::CliError;
use shef_lab::probe::card;
use shef_project::Value;
use shef_proto::config::Mode;

use super::case::{Case, Results};
use super::drive::{Shielded, Target};
use super::failure::{Failure, Kind};
use super::outcome::Passed;
use super::rig::{Rig, steady};

/// Changes the seed of a case to that of another secret.
const OTHER: u64 = 0x5ec2_e7da_7a00_0001;
/// Bytes written at once.
const BLOCK: usize = 1 << 16;

/// The data of a first session.
struct Secret {
    inputs: Vec<(String, Vec<u8>)>,
    writes: Vec<(u32, u32)>,
}

/// What can be seen of the second session.
struct Seen {
    /// Registers with their values, as text, at the start and at the end.
    registers: Vec<(String, String)>,
    results: Result<Results, String>,
    traced: Traced,
    /// Cycle of its end.
    cycle: u64,
}

/// The inputs of the case, or others of the same sizes. Without inputs, the values of registers are
/// the secret.
fn secret(case: &Case<'_>, other: bool) -> Result<Secret, Failure> {
    let (mut inputs, mut writes) = (case.inputs.clone(), case.writes()?);
    if other {
        for (region, data) in &mut inputs {
            *data = shef_project::random(case.seed ^ OTHER, region, data.len());
        }
        if inputs.is_empty() {
            let numbers = case.subject.job.registers.iter().zip(&mut writes);
            let numbers = numbers.filter(|(write, _)| matches!(write.value, Value::Number(_)));
            for (write, (_, value)) in numbers {
                let name = format!("register {:#x}", write.offset);
                let bytes = shef_project::random(case.seed ^ OTHER, &name, 4);
                *value = bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
            }
        }
    }
    Ok(Secret { inputs, writes })
}

/// Runs the phase.
///
/// # Errors
/// As [`super::phases::run`].
pub fn run(
    design: &Design,
    case: &Case<'_>,
    base: &RtlOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<Result<Passed, Failure>, CliError> {
    let mut seen = Vec::new();
    for other in [false, true] {
        let secret = match secret(case, other) {
            Ok(secret) => secret,
            Err(failure) => return Ok(Err(failure)),
        };
        let mut rig = Rig::new(design, steady(base, case.seed), case.seed, progress)?;
        match sessions(&mut rig, case, &secret) {
            Ok(one) => seen.push(one),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    let [one, two] = seen.as_slice() else { return Ok(Ok(Passed::default())) };
    let found = compare(one, two).map_err(|failure| {
        let right =
            |seen: &Seen| seen.results.as_ref().is_ok_and(|results| case.compare(results).is_ok());
        failure.at(two.cycle).with_results(right(one) && right(two))
    });
    Ok(found.map(|()| Passed::default()))
}

/// A first session with a secret, and the second one.
fn sessions(rig: &mut Rig, case: &Case<'_>, secret: &Secret) -> Result<Seen, Failure> {
    let Rig { world, host, card: probe, .. } = rig;
    let mut session = world.session(host)?;
    let mut shielded = Shielded { session: &mut session, card: probe };
    shielded.upload(&secret.inputs)?;
    // Whether the job ends with other data does not matter here.
    let _ = shielded.job(case, &secret.writes);
    session.close()?;
    // What is unprotected is no secret of the card's.
    let unprotected = case.subject.config.regions().iter().filter(|r| r.mode == Mode::Bypass);
    for region in unprotected {
        for at in (region.base..region.base + region.size).step_by(BLOCK) {
            let len = (region.base + region.size - at).min(BLOCK as u64) as usize;
            host.device().mem_write(at, &vec![0; len]).map_err(CliError::from)?;
        }
    }
    world.ready(host)?;
    let mut session = world.keyed(host)?;
    probe.trace().map_err(card)?;
    let mut shielded = Shielded { session: &mut session, card: probe };
    let mut registers = named(&mut shielded, case, "at the start");
    shielded.upload(&case.inputs)?;
    let ran = shielded.job(case, &case.writes()?);
    registers.extend(named(&mut shielded, case, "at the end"));
    // The last lines of the Shield's chunks are written back here.
    let closed = session.close();
    let traced = probe.traced();
    closed?;
    let results = ran.map(|(results, _)| results).map_err(|failure| failure.message);
    let cycle = probe.cycles().unwrap_or_default();
    Ok(Seen { registers, results, traced, cycle })
}

/// All registers with a name, and the others of the job.
fn named(shielded: &mut Shielded<'_, '_>, case: &Case<'_>, when: &str) -> Vec<(String, String)> {
    let subject = case.subject;
    let mut offsets: Vec<u32> = subject.registers.iter().map(|(_, offset)| offset).collect();
    offsets.extend(&subject.job.reads);
    offsets.extend(subject.job.done.map(|done| done.offset));
    offsets.sort_unstable();
    offsets.dedup();
    let read = |offset| {
        let value = match shielded.read(offset) {
            Ok(value) => format!("{value:#x}"),
            Err(failure) => failure.code.unwrap_or(failure.message),
        };
        (format!("register {} {when}", subject.registers.name(offset)), value)
    };
    offsets.into_iter().map(read).collect()
}

fn differs(what: &str, one: &str, other: &str) -> Failure {
    Failure::new(
        Kind::Residue,
        format!(
            "the second session depends on a secret of the first: {what} is {one}, and {other} after another secret"
        ),
    )
}

fn compare(one: &Seen, two: &Seen) -> Result<(), Failure> {
    for ((what, one), (_, other)) in one.registers.iter().zip(&two.registers) {
        if one != other {
            return Err(differs(what, one, other));
        }
    }
    match (&one.results, &two.results) {
        (Ok(one), Ok(other)) => {
            for (region, bytes) in &one.regions {
                let others = &other.regions[region];
                let at = bytes.iter().zip(others).position(|(one, other)| one != other);
                if let Some(at) = at {
                    let what = format!("offset {at:#x} of region {region}");
                    let [one, other] = [bytes[at], others[at]].map(|byte| format!("{byte:#04x}"));
                    return Err(differs(&what, &one, &other));
                }
            }
        }
        (Err(one), Err(other)) if one == other => {}
        (one, other) => {
            let text = |results: &Result<Results, String>| match results {
                Ok(_) => "a result".to_owned(),
                Err(what) => what.clone(),
            };
            return Err(differs("the job's end", &text(one), &text(other)));
        }
    }
    let (one, two) = (&one.traced, &two.traced);
    if one != two {
        let at = one.events.iter().zip(&two.events).position(|(one, other)| one != other);
        let event = |traced: &Traced| match at.and_then(|at| traced.events.get(at)) {
            Some(event) => event.to_string(),
            None => format!("the last of {} accesses", traced.count),
        };
        return Err(differs("an access to memory", &event(one), &event(two)));
    }
    Ok(())
}
