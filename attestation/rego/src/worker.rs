//! The worker: drops its privileges, then handles requests.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use shef_verify::rego::{MAX_BYTES, MAX_TIME, Program};
use shef_verify::{PolicyError, Rego, RegoError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::frame::{ALLOW, BAD, Channel, DENY, EVALUATE, FAILED, LAST, LOAD, READY, TIME, UNKNOWN};
use crate::{MEMORY, MODE, PATIENCE};

/// After an evaluation of this duration the worker is replaced, so that its fragmented memory does
/// not affect other policies.
const HARD: Duration = Duration::from_millis(100);

/// Less processor time than this in an evaluation that ended at [`MAX_TIME`] means that other work
/// kept it waiting.
const STARVED: Duration = MAX_TIME.saturating_mul(9).checked_div(10).expect("10 is not 0");

/// Wall-clock limit for an evaluation that was kept waiting: together with the first attempt less
/// than the caller's patience.
const BUSY: Duration = MAX_TIME.saturating_mul(3);

const _: () = assert!(BUSY.as_millis() + MAX_TIME.as_millis() < PATIENCE.as_millis());

/// Validity of a grant of CPU time.
const GRANT: Duration = Duration::from_millis(500);

/// Maximum number of bytes in an answer's text.
const MAX_TEXT: usize = 1024;

/// Runs the worker if this process was started as one, and returns its exit code. Must be called
/// first in `main`.
#[must_use]
pub fn serve() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != MODE || args.next().is_some() {
        return None;
    }
    Some(match life() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "a worker for policies in Rego, which shef and shef-verifierd start: {error}"
            );
            ExitCode::FAILURE
        }
    })
}

fn life() -> io::Result<()> {
    let [questions, answers] =
        [io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?]
            .map(File::from);
    if !(questions.metadata()?.file_type().is_fifo() && answers.metadata()?.file_type().is_fifo()) {
        return Err(io::Error::other(
            "standard input and output are not its pipes: it is nothing to start by hand",
        ));
    }
    let mut channel = Channel::new(questions, answers);
    let mut clock = Clock::new()?;
    confine()?;
    clock.grant()?;
    let mut programs = Programs::default();
    channel.send(READY, &[])?;
    while let Some((kind, body)) = channel.receive()? {
        clock.renew()?;
        let start = Instant::now();
        let (kind, text) = match kind {
            LOAD => programs
                .load(body)
                .map_or_else(|error| (BAD, reason(error)), |()| (READY, String::new())),
            EVALUATE => match body.split_once('\n').map(|(id, input)| programs.evaluate(id, input))
            {
                Some(Some(Ok(true))) => (ALLOW, String::new()),
                Some(Some(Ok(false))) => (DENY, String::new()),
                Some(Some(Err(RegoError::Time))) => (TIME, String::new()),
                Some(Some(Err(error))) => (FAILED, error.to_string()),
                Some(None) => (UNKNOWN, String::new()),
                None => return Err(io::ErrorKind::InvalidData.into()),
            },
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let last = if kind != READY && start.elapsed() > HARD { LAST } else { 0 };
        channel.send(kind | last, &[&text[..text.floor_char_boundary(MAX_TEXT)]])?;
        if last != 0 {
            break;
        }
    }
    Ok(())
}

fn reason(error: PolicyError) -> String {
    match error {
        PolicyError::Rego { text } => text,
        other => other.to_string(),
    }
}

/// Drops everything that a policy does not need. The worker ends when its requests do. It therefore
/// ignores signals to the whole process group or unit, during which the service still answers open
/// requests.
fn confine() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // Serving others has priority over policies. If the system refuses, priorities are equal.
    let _ = nice(5);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let size = status.lines().find_map(|line| {
        line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    let size = size.ok_or_else(|| io::Error::other("/proc/self/status has no VmSize"))?;
    let limits = [
        (Resource::As, size * 1024 + MEMORY),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nproc, 0),
        (Resource::Nofile, 0),
    ];
    for (resource, most) in limits {
        let most = getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

/// CPU time limit of this process, renewed for each request, so that an endless step ends even if
/// no caller waits for it.
struct Clock {
    stat: File,
    granted: Instant,
}

impl Clock {
    fn new() -> io::Result<Self> {
        Ok(Self { stat: File::open("/proc/self/stat")?, granted: Instant::now() })
    }

    fn renew(&mut self) -> io::Result<()> {
        if self.granted.elapsed() < GRANT { Ok(()) } else { self.grant() }
    }

    fn grant(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1024];
        let read = self.stat.read_at(&mut bytes, 0)?;
        let text = String::from_utf8_lossy(&bytes[..read]);
        // Fields 14 and 15, in hundredths of a second; the name of the program, in parentheses, may
        // contain spaces.
        let fields =
            text.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        let used = fields
            .map(|field| field.parse::<u64>().map_err(io::Error::other))
            .sum::<io::Result<u64>>()?;
        let most = Duration::from_millis(used * 10) + MAX_TIME + GRANT;
        let most = most.as_secs() + 1;
        self.granted = Instant::now();
        let maximum = getrlimit(Resource::Cpu).maximum;
        let current = Some(maximum.map_or(most, |hard| hard.min(most)));
        Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
    }
}

/// The result of `work`, and its processor time.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let before = now();
    let result = work();
    (result, now().saturating_sub(before))
}

/// Parsed policies, most recently used last. Their total length is limited to that of one policy,
/// to leave memory for evaluation.
#[derive(Default)]
struct Programs(Vec<(Rego, Program)>);

impl Programs {
    fn load(&mut self, text: &str) -> Result<(), PolicyError> {
        let policy = Rego::new(text)?;
        let program = policy.compile()?;
        self.0.retain(|(known, _)| known.id() != policy.id());
        let mut room = MAX_BYTES.saturating_sub(text.len());
        let fits = self.0.iter().rev().take_while(|(known, _)| {
            let fits = known.text().len() <= room;
            room = room.saturating_sub(known.text().len());
            fits
        });
        let fits = fits.count();
        self.0.drain(..self.0.len() - fits);
        self.0.push((policy, program));
        Ok(())
    }

    /// `None` if the policy is not loaded. A policy that failed is dropped and must be loaded again.
    fn evaluate(&mut self, id: &str, input: &str) -> Option<Result<bool, RegoError>> {
        let at = self.0.iter().rposition(|(policy, _)| policy.id() == id)?;
        let (policy, program) = &mut self.0[at];
        let (mut answer, used) = timed(|| program.evaluate(input));
        if answer == Err(RegoError::Time) && used < STARVED {
            // The machine was busy: try again, with the same processor time and more wall-clock
            // time.
            let (again, used) = timed(|| match policy.compile() {
                Ok(fresh) => {
                    *program = fresh;
                    program.evaluate_within(input, BUSY)
                }
                Err(error) => Err(RegoError::Failed { text: reason(error) }),
            });
            answer = if used > MAX_TIME { Err(RegoError::Time) } else { again };
        }
        if answer.is_err() {
            self.0.remove(at);
        } else {
            self.0[at..].rotate_left(1);
        }
        Some(answer)
    }
}
