//! Waits for the accelerator: their time limit, their progress, and their end.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::SdkError;
use crate::progress::Cancel;

/// Progress of a wait for the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// The polled register.
    pub addr: u32,
    /// Its value.
    pub last: u32,
    /// Time since the wait began.
    pub elapsed: Duration,
}

/// Receives each read while the accelerator works; breaks to end the wait.
pub type WaitWatch = dyn FnMut(Waited) -> ControlFlow<()> + Send;

/// Time limit and cancellation of a session's waits for its accelerator: [`crate::Session::run`],
/// [`crate::Session::finish`], [`crate::Session::wait_register`] and rings. Ending a wait stops
/// nothing on the card: the job goes on, and can be waited for again.
pub struct Patience {
    /// Time limit of a wait. The default is an hour.
    pub most: Duration,
    /// Cancels waits, and transfers too. A [`crate::Worker`] replaces it while it works for a
    /// future.
    pub cancel: Cancel,
    /// Receives the progress of waits.
    pub watch: Option<Box<WaitWatch>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self { most: Duration::from_secs(3600), cancel: Cancel::default(), watch: None }
    }
}

impl Patience {
    /// Checks whether the wait for register `addr`, which began at `since`, continues.
    pub(crate) fn goes_on(&mut self, since: Instant, addr: u32, last: u32) -> Result<(), SdkError> {
        let after = since.elapsed();
        let told = self.watch.as_mut().map_or(ControlFlow::Continue(()), |watch| {
            watch(Waited { addr, last, elapsed: after })
        });
        if self.cancel.is_cancelled() || told.is_break() {
            return Err(SdkError::WaitEnded { addr, last, after });
        }
        if after >= self.most {
            return Err(SdkError::NotFinished { addr, last, after });
        }
        Ok(())
    }
}
