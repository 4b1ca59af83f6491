//! The caller's side: starts workers, sends them requests, and replaces them when they end.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shef_verify::rego::{Evaluate, MAX_TIME};
use shef_verify::{PolicyError, Rego, RegoError};
use signal_hook::consts::{SIGABRT, SIGSEGV, SIGXCPU};

use crate::frame::{ALLOW, BAD, Channel, DENY, EVALUATE, FAILED, LAST, LOAD, READY, TIME, UNKNOWN};
use crate::{MEMORY, MODE, PATIENCE};

/// After this many consecutive evaluations that exceeded a limit, a policy is suspended for
/// [`PAUSE`], and again after each further one.
const STRIKES: u32 = 3;

/// See [`STRIKES`].
const PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of policies whose strikes are remembered.
const REMEMBERED: usize = 1024;

/// Workers of one executable, as many as there are concurrent requests. Each handles one request at
/// a time.
pub struct Workers {
    program: PathBuf,
    idle: Mutex<Vec<Worker>>,
    strikes: Mutex<HashMap<String, Strikes>>,
}

#[derive(Clone, Copy)]
struct Strikes {
    times: u32,
    last: Instant,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").field("program", &self.program).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Workers {
    /// Workers of the running executable, even if its file has been replaced since.
    fn default() -> Self {
        Self::new("/proc/self/exe")
    }
}

impl Workers {
    /// Workers of the executable `program`, whose `main` calls [`crate::serve`] first. No worker is
    /// started yet.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), idle: Mutex::default(), strikes: Mutex::default() }
    }

    /// Parses a policy and keeps it loaded in a worker.
    ///
    /// # Errors
    /// It is not a policy, or exceeds a limit while it is parsed.
    pub fn check(&self, policy: &Rego) -> Result<(), PolicyError> {
        match self.with_worker(policy, |worker| worker.load(policy)) {
            Ok(loaded) => loaded,
            Err(error) => Err(PolicyError::Rego { text: format!("{error} ({})", error.code()) }),
        }
    }

    /// Ends workers that have been idle for this long.
    pub fn retire(&self, unused: Duration) {
        let (kept, retired) = std::mem::take(&mut *lock(&self.idle))
            .into_iter()
            .partition(|worker| worker.used.elapsed() < unused);
        let kept: Vec<Worker> = kept;
        lock(&self.idle).extend(kept);
        // Drop them here, outside the lock.
        drop::<Vec<Worker>>(retired);
    }

    /// Process ids of idle workers.
    #[must_use]
    pub fn ids(&self) -> Vec<u32> {
        lock(&self.idle).iter().map(|worker| worker.child.id()).collect()
    }

    /// Sends a request about a policy to a worker, unless the policy is suspended. Counts exceeded
    /// limits.
    fn with_worker<T>(
        &self,
        policy: &Rego,
        ask: impl FnOnce(&mut Worker) -> Result<T, Gone>,
    ) -> Result<T, RegoError>
    where
        T: WorkerAnswer,
    {
        self.admit(policy)?;
        let mut worker = self.worker()?;
        let answer = ask(&mut worker);
        let limit = match answer {
            Ok(answer) => {
                if !worker.leaving {
                    worker.used = Instant::now();
                    lock(&self.idle).push(worker);
                }
                match answer.passed_limit() {
                    Some(true) => RegoError::Time,
                    Some(false) => {
                        lock(&self.strikes).remove(policy.id());
                        return Ok(answer);
                    }
                    None => return Ok(answer),
                }
            }
            Err(gone) => worker.end(gone),
        };
        self.strike(policy);
        Err(limit)
    }

    fn worker(&self) -> Result<Worker, RegoError> {
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut worker) = idle else { return Worker::start(&self.program) };
            if matches!(worker.child.try_wait(), Ok(None)) {
                return Ok(worker);
            }
        }
    }

    fn admit(&self, policy: &Rego) -> Result<(), RegoError> {
        let Some(&Strikes { times, last }) = lock(&self.strikes).get(policy.id()) else {
            return Ok(());
        };
        match PAUSE.checked_sub(last.elapsed()) {
            Some(left) if times >= STRIKES => {
                Err(RegoError::Refused { times, seconds: left.as_secs() + 1 })
            }
            _ => Ok(()),
        }
    }

    fn strike(&self, policy: &Rego) {
        let mut strikes = lock(&self.strikes);
        if strikes.len() >= REMEMBERED {
            strikes.retain(|_, known| known.last.elapsed() < PAUSE);
        }
        let known = strikes
            .entry(policy.id().to_owned())
            .or_insert(Strikes { times: 0, last: Instant::now() });
        *known = Strikes { times: known.times + 1, last: Instant::now() };
    }
}

impl Evaluate for Workers {
    fn evaluate(&self, policy: &Rego, input: &str) -> Result<bool, RegoError> {
        self.with_worker(policy, |worker| worker.evaluate(policy, input))?
    }
}

/// The outcome of a request.
trait WorkerAnswer {
    /// Whether an evaluation ended at a limit of the engine; `None` if there was no evaluation.
    fn passed_limit(&self) -> Option<bool>;
}

impl WorkerAnswer for Result<bool, RegoError> {
    fn passed_limit(&self) -> Option<bool> {
        Some(matches!(self, Err(RegoError::Time)))
    }
}

impl WorkerAnswer for Result<(), PolicyError> {
    fn passed_limit(&self) -> Option<bool> {
        None
    }
}

/// The worker did not answer.
struct Gone {
    late: bool,
}

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        Self { late: error.kind() == io::ErrorKind::TimedOut }
    }
}

/// A process and the pipes to it. It is killed on drop.
struct Worker {
    child: Child,
    channel: Channel,
    used: Instant,
    /// It ends after its last answer.
    leaving: bool,
}

impl Worker {
    fn start(program: &PathBuf) -> Result<Self, RegoError> {
        let failed = |why: String| RegoError::Unavailable {
            text: format!("{} {MODE}: {why}", program.display()),
        };
        let spawn = || {
            let (questions, asks) = io::pipe()?;
            let (answers, answer) = io::pipe()?;
            let [asks, answers] = [OwnedFd::from(asks), OwnedFd::from(answers)].map(File::from);
            let channel = Channel::with_patience(answers, asks, PATIENCE)?;
            let mut command = Command::new(program);
            command.arg(MODE).env_clear().current_dir("/");
            let child = command.stdin(questions).stdout(answer).stderr(Stdio::null()).spawn()?;
            Ok(Self { child, channel, used: Instant::now(), leaving: false })
        };
        let mut worker = spawn().map_err(|error: io::Error| failed(error.to_string()))?;
        match worker.channel.receive() {
            Ok(Some((READY, _))) => Ok(worker),
            _ => Err(failed(
                worker
                    .kill()
                    .map_or_else(|| "it cannot be waited for".into(), |status| status.to_string()),
            )),
        }
    }

    fn load(&mut self, policy: &Rego) -> Result<Result<(), PolicyError>, Gone> {
        match self.ask(LOAD, &[policy.text()])? {
            (READY, _) => Ok(Ok(())),
            (BAD, text) => Ok(Err(PolicyError::Rego { text: text.into() })),
            _ => Err(Gone { late: false }),
        }
    }

    fn evaluate(&mut self, policy: &Rego, input: &str) -> Result<Result<bool, RegoError>, Gone> {
        let parts = [policy.id(), "\n", input];
        for again in [true, false] {
            match self.ask(EVALUATE, &parts)? {
                (ALLOW, _) => return Ok(Ok(true)),
                (DENY, _) => return Ok(Ok(false)),
                (TIME, _) => return Ok(Err(RegoError::Time)),
                (FAILED, text) => return Ok(Err(RegoError::Failed { text: text.into() })),
                (UNKNOWN, _) if again => {
                    if let Err(error) = self.load(policy)? {
                        return Ok(Err(RegoError::Failed { text: error.to_string() }));
                    }
                }
                _ => break,
            }
        }
        Err(Gone { late: false })
    }

    fn ask(&mut self, kind: u8, parts: &[&str]) -> Result<(u8, &str), Gone> {
        self.channel.send(kind, parts)?;
        let (kind, text) = self.channel.receive()?.ok_or(Gone { late: false })?;
        self.leaving = kind & LAST != 0;
        Ok((kind & !LAST, text))
    }

    fn kill(&mut self) -> Option<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// Ends it, and returns why it gave no answer.
    fn end(mut self, gone: Gone) -> RegoError {
        let text = match self.status(gone.late) {
            None => format!("no answer within {} s", PATIENCE.as_secs()),
            Some(status) => match status.signal() {
                Some(SIGABRT) => format!("more than {} MiB of memory", MEMORY >> 20),
                Some(SIGSEGV) => "too deep a recursion".into(),
                Some(SIGXCPU) => {
                    format!("one step of it took longer than {} ms", MAX_TIME.as_millis())
                }
                _ => status.to_string(),
            },
        };
        RegoError::Ended { text }
    }

    /// Its exit status, if it ended. A closed pipe means that it is about to.
    fn status(&mut self, late: bool) -> Option<ExitStatus> {
        for _ in 0..if late { 1 } else { 100 } {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Ok(status) => return status,
                Err(_) => break,
            }
        }
        None
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
