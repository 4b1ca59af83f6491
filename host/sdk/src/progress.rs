//! Progress of long operations, and how to cancel them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes already in card memory, or fetched from it.
    pub done: u64,
    /// Total bytes.
    pub total: u64,
}

/// Receives the progress of a transfer, before it and after each piece; breaks to end it with
/// [`SdkError::Cancelled`](crate::SdkError::Cancelled).
pub type Watch<'w> = dyn FnMut(Progress) -> ControlFlow<()> + 'w;

/// Ignores progress and lets every transfer continue.
pub fn unwatched(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

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

    /// Ends a transfer: see [`Watch`].
    pub fn watch(&self, _: Progress) -> ControlFlow<()> {
        if self.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
