//! Outgoing frames to an owner: as many as the protocol needs, and no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shef_remote::wire::{ToOwner, WINDOW};
use tokio::sync::{Notify, mpsc};

/// Encoded bytes of a message; shared with the answers that a session keeps.
pub(crate) type Frame = Arc<Vec<u8>>;

/// Most frames in the queue: the answers of a window, welcome, opening, progress and refusal.
const ROOM: usize = WINDOW + 4;

/// Sends to an owner over one connection.
#[derive(Clone)]
pub(crate) struct Outbox {
    frames: mpsc::Sender<(u64, Frame)>,
    begun: Arc<AtomicU64>,
    over: Arc<Notify>,
}

/// The other end of an [`Outbox`].
pub(crate) struct Frames {
    frames: mpsc::Receiver<(u64, Frame)>,
    begun: Arc<AtomicU64>,
}

impl Outbox {
    pub(crate) fn new() -> (Self, Frames) {
        let (sender, frames) = mpsc::channel(ROOM);
        let begun = Arc::new(AtomicU64::new(0));
        (
            Self { frames: sender, begun: Arc::clone(&begun), over: Arc::default() },
            Frames { frames, begun },
        )
    }

    /// Sends the answer to request `id`. If the queue is full, the peer breaks the protocol or is
    /// gone: the connection ends.
    pub(crate) fn answer(&self, id: u64, frame: Frame) -> bool {
        let sent = self.frames.try_send((id, frame)).is_ok();
        if !sent {
            self.end();
        }
        sent
    }

    /// Sends a message that is not an answer.
    pub(crate) fn say(&self, message: &ToOwner) -> bool {
        self.answer(0, Arc::new(message.encode()))
    }

    /// Whether the queue is empty: only then does the owner get a progress message.
    pub(crate) fn is_idle(&self) -> bool {
        self.frames.capacity() == self.frames.max_capacity()
    }

    /// Number of the last request whose answer has begun to leave: the owner has no later answer.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.frames.is_closed()
    }

    /// Ends the connection at once.
    pub(crate) fn end(&self) {
        self.over.notify_one();
    }

    /// Waits until the connection is to end.
    pub(crate) async fn over(&self) {
        self.over.notified().await;
    }
}

impl Frames {
    /// The next frame; `None` when every [`Outbox`] is gone.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let (id, frame) = self.frames.recv().await?;
        self.begun.fetch_max(id, Ordering::SeqCst);
        Some(frame)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
