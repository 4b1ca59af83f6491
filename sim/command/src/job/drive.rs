//! Runs a job on an accelerator, without or behind a Shield.

use std::time::{Duration, Instant};

use shef::{Keyed, SdkError, Session};
use shef_card::check::{Checked, DoneRegister};
use shef_card::progress::{Progress, StallWatch};
use shef_card::{BareCard, CardProbe};
use shef_console::CliError;
use shef_lab::probe::card;
use shef_project::Done;
use shef_proto::channel::{ChannelError, status};
use shef_seal::OpenPolicy;

use super::case::{Case, Results, Subject};
use super::failure::{Failure, Kind};

/// Reports of the checker that a failure prints.
const SHOWN: usize = 4;
/// Cycles between two reads of a status register without a Shield.
const POLL: u64 = 64;
/// Looks at the ports in the number of cycles that a job may be without progress.
const LOOKS: u64 = 16;
/// Waits between two reads behind a Shield, where a read is a sealed request.
const WAITS: u32 = 16;

/// An accelerator.
pub trait Target {
    /// Writes a register.
    fn write(&mut self, offset: u32, value: u32) -> Result<(), Failure>;
    /// Reads a register.
    fn read(&mut self, offset: u32) -> Result<u32, Failure>;
    /// Lets time pass.
    fn wait(&mut self) -> Result<(), Failure>;
    /// Cycles so far.
    fn cycles(&self) -> u64;
    /// The bursts at its ports, and who waits for whom.
    fn progress(&self) -> Option<Progress>;
}

/// The register that shows the end of a job, for the checker.
pub fn done_register(done: Done) -> DoneRegister {
    // A register's offset has 16 bits.
    DoneRegister { offset: done.offset as u16, mask: done.mask, value: done.value }
}

/// Writes registers and start, and waits for the end. Returns the cycles from the start on.
///
/// # Errors
/// Refused accesses, and a job without progress or of too many seconds.
pub fn run(
    target: &mut impl Target,
    subject: Subject<'_>,
    writes: &[(u32, u32)],
) -> Result<u64, Failure> {
    let Subject { job, config, registers, .. } = subject;
    let refused = |what| Failure::new(Kind::Error, what);
    let (start, done) = job.ends().map_err(refused)?;
    let value = start.value.number(config).map_err(refused)?;
    for (offset, value) in writes {
        target.write(*offset, *value)?;
    }
    target.write(start.offset, value)?;
    let (begin, since) = (target.cycles(), Instant::now());
    let (mut stalls, mut look) = (StallWatch::new(job.stall_cycles), begin);
    loop {
        let status = target.read(done.offset)?;
        let now = target.cycles();
        if status & done.mask == done.value {
            return Ok(now - begin);
        }
        let looks = now >= look;
        if looks {
            look = now + job.stall_cycles / LOOKS;
        }
        let progress = if looks { target.progress() } else { None };
        let limit = if progress.is_some_and(|progress| stalls.is_stalled(&progress, status)) {
            Some(format!("it makes no progress for {} cycles", job.stall_cycles))
        } else if since.elapsed() >= Duration::from_secs(job.seconds) {
            Some(format!("{} seconds are over", job.seconds))
        } else {
            None
        };
        if let Some(limit) = limit {
            let message = format!(
                "the job does not end: {} is {status:#x} after {} cycles, and {limit}",
                registers.name(done.offset),
                now - begin
            );
            let progress = target.progress().map(|progress| progress.to_string());
            let details =
                progress.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
            return Err(Failure::new(Kind::Limit, message).with_details(details));
        }
        target.wait()?;
    }
}

/// The failure of broken rules, if there are any.
///
/// # Errors
/// The failure.
pub fn obeys(checked: Checked) -> Result<(), Failure> {
    let Some(first) = checked.reports.first() else { return Ok(()) };
    let rest = checked.reports.iter().skip(1);
    let mut details: Vec<String> = rest.take(SHOWN - 1).map(ToString::to_string).collect();
    let more = checked.reports.len() as u64 - 1 - details.len() as u64 + checked.lost;
    if more > 0 {
        details.push(format!("and {more} more"));
    }
    let failure = Failure::new(Kind::Rule, first.to_string()).at(first.cycle);
    let mut failure = failure.with_details(details);
    failure.found.rule.clone_from(&first.rule);
    failure.found.rules = checked.reports;
    Err(failure)
}

impl Target for BareCard {
    fn write(&mut self, offset: u32, value: u32) -> Result<(), Failure> {
        Ok(self.reg_write(offset, value).map_err(card)?)
    }

    fn read(&mut self, offset: u32) -> Result<u32, Failure> {
        Ok(self.reg_read(offset).map_err(card)?)
    }

    fn wait(&mut self) -> Result<(), Failure> {
        self.step(POLL);
        Ok(())
    }

    fn cycles(&self) -> u64 {
        Self::cycles(self)
    }

    fn progress(&self) -> Option<Progress> {
        Some(Self::progress(self))
    }
}

/// Runs the job without a Shield. Returns its cycles, unless it does not end, with what its registers
/// and regions have then.
///
/// # Errors
/// Refused accesses.
pub fn bare(
    bare: &mut BareCard,
    case: &Case<'_>,
) -> Result<(Result<u64, Failure>, Results), Failure> {
    let (Subject { job, config, .. }, writes) = (case.subject, case.writes()?);
    let base = |name: &str| config.region_by_name(name).map_or(0, |region| region.base);
    for (name, data) in &case.inputs {
        bare.mem_write(base(name), data);
    }
    let ran = run(bare, case.subject, &writes);
    let mut results = Results::default();
    if ran.is_ok() {
        for offset in &job.reads {
            results.registers.insert(*offset, bare.reg_read(*offset).map_err(card)?);
        }
    }
    for output in &job.outputs {
        let mut bytes = vec![0; output.bytes as usize];
        bare.mem_read(base(&output.region), &mut bytes);
        results.regions.insert(output.region.clone(), bytes);
    }
    Ok((ran, results))
}

/// A session, and the card that it is on.
pub struct Shielded<'s, 'h> {
    /// The session.
    pub session: &'s mut Session<'h, Keyed>,
    /// The card.
    pub card: &'s CardProbe,
}

/// The error of a request; if the Shield has stopped, the reason.
fn why(session: &mut Session<'_, Keyed>, error: SdkError) -> Failure {
    if let SdkError::Channel(ChannelError::Status {
        status: status::STOPPED | status::FAULT, ..
    }) = error
        && let Ok(statement) = session.statement()
    {
        let shield = statement.shield();
        return SdkError::Faulted {
            kind: shield.fault_kind,
            region: shield.fault_region,
            chunk: shield.fault_chunk,
            version: shield.fault_version,
            count: shield.faults,
        }
        .into();
    }
    error.into()
}

impl Target for Shielded<'_, '_> {
    fn write(&mut self, offset: u32, value: u32) -> Result<(), Failure> {
        self.session.write_register(offset, value).map_err(|e| why(self.session, e))
    }

    fn read(&mut self, offset: u32) -> Result<u32, Failure> {
        self.session.read_register(offset).map_err(|e| why(self.session, e))
    }

    fn wait(&mut self) -> Result<(), Failure> {
        for _ in 0..WAITS {
            self.session.host().device().wait_hint().map_err(CliError::from)?;
        }
        Ok(())
    }

    fn cycles(&self) -> u64 {
        self.card.cycles().unwrap_or_default()
    }

    fn progress(&self) -> Option<Progress> {
        self.card.progress().ok()
    }
}

impl Shielded<'_, '_> {
    /// Seals and uploads inputs.
    ///
    /// # Errors
    /// Session errors.
    pub fn upload(&mut self, inputs: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        for (region, data) in inputs {
            let buffer = self.session.input(region)?;
            self.session.upload(&buffer, data)?;
        }
        Ok(())
    }

    /// The registers that the job reads, by offset.
    ///
    /// # Errors
    /// Session errors.
    pub fn reads(&mut self, case: &Case<'_>) -> Result<Vec<(u32, u32)>, Failure> {
        let reads = case.subject.job.reads.iter();
        reads.map(|offset| Ok((*offset, self.read(*offset)?))).collect()
    }

    /// Runs the job, and opens its results. Returns them with the cycles.
    ///
    /// # Errors
    /// As [`run`], and results that the owner does not accept.
    pub fn job(
        &mut self,
        case: &Case<'_>,
        writes: &[(u32, u32)],
    ) -> Result<(Results, u64), Failure> {
        let cycles = run(self, case.subject, writes)?;
        let registers = self.reads(case)?.into_iter().collect();
        let flushed = self.session.flush();
        flushed.map_err(|e| why(self.session, e))?;
        let statement = self.session.statement()?;
        let mut results = Results { registers, ..Results::default() };
        for output in &case.subject.job.outputs {
            let buffer = self.session.output(&output.region)?;
            let len = output.bytes as usize;
            let opened = self.session.open(&buffer, &statement, len, OpenPolicy::default())?;
            results.regions.insert(output.region.clone(), opened.data.to_vec());
        }
        if case.subject.job.outputs.is_empty() {
            // Nothing was opened, so nothing has looked at the statement.
            let shield = statement.shield();
            if shield.stopped || shield.faults != 0 || shield.refusals != 0 {
                let what = format!(
                    "the Shield reports {} faults and {} refused accesses",
                    shield.faults, shield.refusals
                );
                return Err(Failure::new(Kind::Error, what));
            }
        }
        Ok((results, cycles))
    }
}
