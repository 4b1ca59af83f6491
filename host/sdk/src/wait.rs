//! Waits: their time limit, their progress, and their cancellation.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{Progress, SdkError};

/// Cancels an operation: a transfer after a piece, a wait for the accelerator after a read, a
/// request to a verifier service at once. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends a transfer: see [`crate::Watch`].
    pub fn watch(&self, _: Progress) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

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
