//! What a session leaves for the next one: the same second session after two first sessions that
//! differ in a secret only. Nothing of the second session may differ.

use shef_card::{Design, RtlOptions, Traced};
use shef_console::CliError;
use shef_lab::probe::card;
use shef_project::Value;
use shef_proto::config::{Mode, Region};

use super::outcome::Passed;
use crate::job::case::{Case, Results};
use crate::job::drive::{Shielded, Target};
use crate::job::failure::{Failure, Kind};
use crate::job::rig::{Rig, steady};

/// Changes the seed of a case to that of another secret.
const OTHER: u64 = 0x5ec2_e7da_7a00_0001;
/// Bytes written at once.
const BLOCK: usize = 1 << 16;
/// Bytes of the space of registers.
const REGISTERS: u32 = 1 << 16;

/// The first session's secret, by case: its own data, their complement, which differs in every bit,
/// and other data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Own,
    Complement,
    Other,
}

/// The data of a first session.
struct Secret {
    inputs: Vec<(String, Vec<u8>)>,
    writes: Vec<(u32, u32)>,
}

impl Secret {
    /// The inputs of the case, or others of the same sizes. `numbers` says that the values of
    /// registers are a secret, too; those that hold addresses stay.
    fn new(case: &Case<'_>, which: Which, numbers: bool) -> Result<Self, Failure> {
        let (mut inputs, mut writes) = (case.inputs.clone(), case.writes()?);
        let change = |name: &str, data: &mut [u8]| match which {
            Which::Own => {}
            Which::Complement => data.iter_mut().for_each(|byte| *byte = !*byte),
            Which::Other => {
                data.copy_from_slice(&shef_project::random(case.seed ^ OTHER, name, data.len()));
            }
        };
        inputs.iter_mut().for_each(|(region, data)| change(region, data));
        let all = case.subject.job.registers.iter().zip(&mut writes);
        for (write, (offset, value)) in all {
            if numbers && matches!(write.value, Value::Number(_)) {
                let mut bytes = value.to_le_bytes();
                change(&format!("register {offset:#x}"), &mut bytes);
                *value = u32::from_le_bytes(bytes);
            }
        }
        Ok(Self { inputs, writes })
    }
}

/// What can be seen of the second session.
struct Seen {
    /// Registers with their values, as text, at the start and at the end.
    registers: Vec<(String, String)>,
    results: Result<Results, Failure>,
    traced: Traced,
    /// Cycles from the start of the job to its end.
    job: u64,
    /// Cycle of its end.
    cycle: u64,
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
    if let Err(failure) = unshielded::compare(design, case, base, progress)? {
        return Ok(Err(failure));
    }
    let mut seen = Vec::new();
    for which in [Which::Own, Which::Complement] {
        // A job without inputs has its secret in registers.
        let secret = match Secret::new(case, which, case.inputs.is_empty()) {
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

/// Blocks of zeros for a region, with their addresses.
fn zeros(region: &Region) -> impl Iterator<Item = (u64, Vec<u8>)> {
    let end = region.base + region.size;
    let len = move |at: u64| (end - at).min(BLOCK as u64) as usize;
    (region.base..end).step_by(BLOCK).map(move |at| (at, vec![0; len(at)]))
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
        for (at, zeros) in zeros(region) {
            host.device().mem_write(at, &zeros).map_err(CliError::from)?;
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
    let job = ran.as_ref().map_or(0, |(_, cycles)| *cycles);
    let results = ran.map(|(results, _)| results);
    let cycle = probe.cycles().unwrap_or_default();
    Ok(Seen { registers, results, traced, job, cycle })
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
        // Without an end there is nothing to compare.
        (Err(one), Err(other)) if one.message == other.message => return Err(one.clone()),
        (one, other) => {
            let text = |results: &Result<Results, Failure>| match results {
                Ok(_) => "a result".to_owned(),
                Err(failure) => failure.message.clone(),
            };
            return Err(differs("the job's end", &text(one), &text(other)));
        }
    }
    same(&one.traced, &two.traced)?;
    let jobs = (one.job, two.job);
    if jobs.0 != jobs.1 {
        let [one, other] = [jobs.0, jobs.1].map(|cycles| format!("{cycles} cycles"));
        return Err(differs("the duration of its job", &one, &other));
    }
    Ok(())
}

fn same(one: &Traced, two: &Traced) -> Result<(), Failure> {
    if one == two {
        return Ok(());
    }
    let at = one.events.iter().zip(&two.events).position(|(one, other)| one != other);
    let event = |traced: &Traced| match at.and_then(|at| traced.events.get(at)) {
        Some(event) => event.to_string(),
        None => format!("the last of {} events", traced.count),
    };
    Err(differs("an access to memory or the interrupt", &event(one), &event(two)))
}

/// The same without a Shield, where every register is read in a moment and the end of a job is seen in
/// a few cycles. No session's inputs or results are in memory when the second session begins.
mod unshielded {
    use shef_card::BareCard;
    use shef_card::progress::Progress;

    use super::*;
    use crate::job::drive::{Target, run};

    /// An accelerator that is polled as often as its registers answer.
    struct Polled(BareCard);

    impl Target for Polled {
        fn write(&mut self, offset: u32, value: u32) -> Result<(), Failure> {
            Target::write(&mut self.0, offset, value)
        }

        fn read(&mut self, offset: u32) -> Result<u32, Failure> {
            Target::read(&mut self.0, offset)
        }

        fn wait(&mut self) -> Result<(), Failure> {
            Ok(())
        }

        fn cycles(&self) -> u64 {
            Target::cycles(&self.0)
        }

        fn progress(&self) -> Option<Progress> {
            Target::progress(&self.0)
        }
    }

    struct Seen {
        /// All registers after the first session; `None` for one that refuses.
        registers: Vec<Option<u32>>,
        /// Cycles of the second session's job, or why it does not end.
        job: Result<u64, Failure>,
        traced: Traced,
        cycle: u64,
    }

    fn sessions(
        mut card: Polled,
        case: &Case<'_>,
        first: Secret,
        starts: bool,
    ) -> Result<Seen, Failure> {
        let config = case.subject.config;
        let load = |card: &mut Polled, inputs: &[(String, Vec<u8>)]| {
            for region in config.regions() {
                for (at, zeros) in zeros(region) {
                    card.0.mem_write(at, &zeros);
                }
            }
            for (name, data) in inputs {
                let base = config.region_by_name(name).map_or(0, |region| region.base);
                card.0.mem_write(base, data);
            }
        };
        load(&mut card, &first.inputs);
        if starts {
            // Whether the job ends with other data does not matter here.
            let _ = run(&mut card, case.subject, &first.writes);
        } else {
            for (offset, value) in &first.writes {
                card.write(*offset, *value)?;
            }
        }
        card.0.next_session().map_err(super::card)?;
        let registers = (0..REGISTERS).step_by(4).map(|offset| card.read(offset).ok()).collect();
        load(&mut card, &case.inputs);
        card.0.trace();
        let job = run(&mut card, case.subject, &case.writes()?);
        let traced = card.0.traced();
        Ok(Seen { registers, job, traced, cycle: Target::cycles(&card) })
    }

    fn differ(one: &Seen, two: &Seen, case: &Case<'_>) -> Result<(), Failure> {
        if let Some(at) = one.registers.iter().zip(&two.registers).position(|(one, two)| one != two)
        {
            let text = |seen: &Seen| match seen.registers[at] {
                Some(value) => format!("{value:#x}"),
                None => "refused".to_owned(),
            };
            let name = case.subject.registers.name(4 * at as u32);
            return Err(differs(&format!("register {name} at the start"), &text(one), &text(two)));
        }
        same(&one.traced, &two.traced)?;
        match (&one.job, &two.job) {
            (Ok(one), Ok(two)) if one == two => Ok(()),
            // The phase without a Shield reports it.
            (Err(_), Err(_)) => Ok(()),
            (one, two) => {
                let text = |job: &Result<u64, Failure>| match job {
                    Ok(cycles) => format!("{cycles} cycles"),
                    Err(failure) => failure.message.clone(),
                };
                Err(differs("the duration of its job without a Shield", &text(one), &text(two)))
            }
        }
    }

    /// Compares second sessions after first ones with different data; and after first ones that only
    /// write different numbers to registers.
    pub fn compare(
        design: &Design,
        case: &Case<'_>,
        base: &RtlOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Result<(), Failure>, CliError> {
        let pairs = [
            (true, vec![Which::Own, Which::Complement, Which::Other]),
            (false, vec![Which::Own, Which::Complement]),
        ];
        for (starts, secrets) in pairs {
            let mut before: Option<Seen> = None;
            for which in secrets {
                let card = BareCard::new(design, &steady(base, case.seed), progress)
                    .map_err(super::card)?;
                let secret = Secret::new(case, which, !starts || case.inputs.is_empty());
                let seen = secret.and_then(|secret| sessions(Polled(card), case, secret, starts));
                let seen = match seen {
                    Ok(seen) => seen,
                    Err(failure) => return Ok(Err(failure)),
                };
                if let Some(one) = &before
                    && let Err(failure) = differ(one, &seen, case)
                {
                    return Ok(Err(failure.at(seen.cycle)));
                }
                before = Some(seen);
            }
        }
        Ok(Ok(()))
    }
}
