//! One session: keyed, used for the job, closed, with a close record of the Security Kernel.

use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use shef::ports::Progress;
use shef::seal::OpenPolicy;
use shef::{Cancel, Host, Keyed, SdkError, Session, SystemEntropy, Until};
use shef_console::{CliError, interrupt};
use shef_project::{Done, Job, Registers, Write};
use shef_proto::config::Config;
use shef_proto::load::first_epochs;

use super::data::Input;
use super::parties::{Loaded, Parties};
use super::steps::Steps;

/// A job with the numbers of its registers.
pub struct Plan<'a> {
    job: &'a Job,
    inputs: &'a [Input],
    /// Writes before the start.
    writes: Vec<(u32, u32)>,
    start: (u32, u32),
    done: (u32, Until),
}

impl<'a> Plan<'a> {
    /// Of a job that has a start and an end.
    ///
    /// # Errors
    /// SHEF-CLI-001 names the missing start or end.
    pub fn new(job: &'a Job, config: &Config, inputs: &'a [Input]) -> Result<Self, CliError> {
        let wrong = |what| CliError::new("SHEF-CLI-001", what);
        let number = |write: &Write| Ok((write.offset, write.value.number(config)?));
        let (start, Done { offset, mask, value }) = job.ends().map_err(wrong)?;
        let writes = job.registers.iter().map(number).collect::<Result<_, _>>().map_err(wrong)?;
        let start = number(start).map_err(wrong)?;
        Ok(Self { job, inputs, writes, start, done: (offset, Until::Equal { mask, value }) })
    }
}

/// The results of a session.
pub struct Ran {
    /// Bytes of each output of the job.
    pub outputs: Vec<Vec<u8>>,
    /// Values of the registers that the job reads.
    pub reads: Vec<u32>,
    /// From the first register write to the flushed results.
    pub elapsed: Duration,
    /// Cycles of the device in that time, if it counts them.
    pub cycles: Option<u64>,
    /// The appraisal of the Shield.
    pub appraisal: String,
    /// Transcript hash of the session.
    pub transcript: [u8; 32],
}

impl Ran {
    /// The first result of another session that is not equal.
    pub fn differs(&self, other: &Self, job: &Job, registers: &Registers) -> Option<String> {
        let outputs = job.outputs.iter().zip(self.outputs.iter().zip(&other.outputs));
        for (output, (one, two)) in outputs {
            if let Some(at) = one.iter().zip(two).position(|(one, two)| one != two) {
                return Some(format!(
                    "byte {at} of {} is {:#04x}, and was {:#04x}",
                    output.region, two[at], one[at]
                ));
            }
        }
        let reads = job.reads.iter().zip(self.reads.iter().zip(&other.reads));
        let mut reads = reads.filter(|(_, (one, two))| one != two);
        reads.next().map(|(offset, (one, two))| {
            format!("register {} is {two:#010x}, and was {one:#010x}", registers.name(*offset))
        })
    }
}

/// While this exists, an interrupt ends the work of the session and waits for the session's end. A
/// second one does not wait.
struct Closes {
    cancel: Cancel,
    _hook: interrupt::Hook,
    _open: Sender<()>,
}

impl Closes {
    fn new() -> Self {
        let (cancel, (open, closed)) = (Cancel::default(), mpsc::channel());
        let cancels = cancel.clone();
        let hook = interrupt::first(move || {
            cancels.cancel();
            // Ends with an error when the sender is dropped.
            let _ = closed.recv();
        });
        Self { cancel, _hook: hook, _open: open }
    }
}

/// A job that was not done in time, or made no progress.
pub struct Late {
    /// The register of the job's end.
    pub offset: u32,
    /// Its last value.
    pub value: u32,
    /// The limit that it reached.
    pub limit: Limit,
    /// The bursts at the accelerator's ports, if the device reports them.
    pub progress: Option<Progress>,
}

/// The limit of a job.
pub enum Limit {
    /// Time since the start.
    Time(Duration),
    /// Cycles without progress.
    Stall(u64),
}

/// How a session ended.
pub enum Ended {
    /// With results.
    Done(Ran),
    /// Without: the accelerator was not done.
    Late(Late),
}

/// Runs the job in a new session, which is closed in any case: the Shield erases its keys.
///
/// # Errors
/// Those of appraisal, session and results.
pub fn run(
    host: &mut Host,
    plan: &Plan<'_>,
    parties: &Parties,
    image: &Loaded,
    steps: &Steps<'_>,
) -> Result<Ended, CliError> {
    let mut entropy = SystemEntropy::new()?;
    steps.begin("attesting the Shield");
    let session = parties.attest(Session::connect(host)?, image, &mut entropy)?;
    let appraisal = session.appraised().to_string();
    let epochs = first_epochs(image.expect.config(), 1);
    let closes = Closes::new();
    let mut session = session.key("owner", &epochs, &mut entropy)?;
    let transcript = session.transcript();
    let reports = session.host().device().progress().is_some();
    let patience = session.patience();
    patience.cancel = closes.cancel.clone();
    patience.most = Duration::from_secs(plan.job.seconds);
    patience.stall_cycles = reports.then_some(plan.job.stall_cycles);
    let worked = work(&mut session, plan, steps);
    steps.begin("closing the session");
    match worked {
        Ok(ran) => {
            let closed = session.close()?;
            closed.verify_record(&host.close_record()?)?;
            Ok(Ended::Done(Ran { appraisal, transcript, ..ran }))
        }
        Err(error) => {
            let late = match error {
                SdkError::NotFinished { addr, last, after } => {
                    let (limit, progress) =
                        (Limit::Time(after), session.host().device().progress());
                    Ok(Ended::Late(Late { offset: addr, value: last, limit, progress }))
                }
                SdkError::Stalled { addr, last, cycles, progress } => {
                    let (limit, progress) = (Limit::Stall(cycles), Some(*progress));
                    Ok(Ended::Late(Late { offset: addr, value: last, limit, progress }))
                }
                error => Err(error.into()),
            };
            // Without a flush: there is no result. The first error counts.
            let _ = session.abort();
            late
        }
    }
}

/// The session between its keys and its end.
fn work(
    session: &mut Session<'_, Keyed>,
    plan: &Plan<'_>,
    steps: &Steps<'_>,
) -> Result<Ran, SdkError> {
    for input in plan.inputs {
        let (buffer, len) = (session.input(&input.region)?, input.bytes.len() as u64);
        let mut watch = steps.transfer("sealing", &input.region);
        session.upload_from(&buffer, &input.bytes[..], len, &mut watch)?;
    }
    steps.begin("waiting for the accelerator");
    let (begun, cycles) = (Instant::now(), session.host().cycles());
    let statement = session.run(&plan.writes, plan.start, plan.done)?;
    let elapsed = begun.elapsed();
    let cycles = session.host().cycles().zip(cycles).map(|(end, begin)| end.saturating_sub(begin));
    let policy = OpenPolicy::default();
    session.check(&statement, policy)?;
    let reads = plan.job.reads.iter().map(|offset| session.read_register(*offset));
    let reads = reads.collect::<Result<_, _>>()?;
    let mut outputs = Vec::new();
    for output in &plan.job.outputs {
        let (buffer, bytes) = (session.output(&output.region)?, output.bytes);
        let mut watch = steps.transfer("opening", &output.region);
        let (data, _) =
            session.open_to(&buffer, &statement, bytes, policy, Vec::new(), &mut watch)?;
        outputs.push(data);
    }
    let (appraisal, transcript) = Default::default();
    Ok(Ran { outputs, reads, elapsed, cycles, appraisal, transcript })
}
