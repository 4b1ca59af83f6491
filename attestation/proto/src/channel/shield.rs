//! The Shield's end of the channel.

use alloc::boxed::Box;

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::cipher::Direction;
use super::{HALT, MESSAGE_LEN, PAYLOAD_LEN, Sealed, ShieldAnswer, ShieldRequest, status};
use crate::load::SessionKeys;

/// The Shield's reaction to a message.
#[derive(Debug)]
pub enum Received {
    /// The next request: run it, then call [`ShieldChannel::answer`].
    Run(ShieldRequest),
    /// The last request again: resend this stored answer.
    Repeat(Box<Sealed>),
    /// Anything else: nothing changes.
    Refused,
}

/// The Shield's end.
pub struct ShieldChannel {
    rx: Direction,
    tx: Direction,
    seq: u64,
    last: Sealed,
    stored: Option<Sealed>,
    running: bool,
}

impl ShieldChannel {
    /// The channel of a session.
    pub fn new(keys: &SessionKeys) -> Self {
        Self {
            rx: Direction::new(keys.to_shield()),
            tx: Direction::new(keys.to_owner()),
            seq: 0,
            last: [0; MESSAGE_LEN],
            stored: None,
            running: false,
        }
    }

    /// Number of the last request that ran or is running.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Processes a message.
    pub fn receive(&mut self, sealed: &Sealed) -> Received {
        if self.running {
            return Received::Refused;
        }
        if let Some(stored) = &self.stored
            && bool::from(self.last[..].ct_eq(&sealed[..]))
        {
            return Received::Repeat(Box::new(*stored));
        }
        let next = self.seq.checked_add(1);
        match self.rx.open(sealed) {
            Some((seq, plaintext)) if Some(seq) == next => {
                self.seq = seq;
                self.last = *sealed;
                self.stored = None;
                self.running = true;
                Received::Run(ShieldRequest::from_bytes(&plaintext))
            }
            _ => Received::Refused,
        }
    }

    /// Seals the message by which a Shield ends the session on its own, numbered after the last
    /// request. `payload` is the last statement. It must be the last message.
    pub fn halt(&self, payload: [u8; PAYLOAD_LEN]) -> Sealed {
        let answer =
            ShieldAnswer { op: HALT, region: 0, status: status::DONE, addr: 0, value: 0, payload };
        self.tx.seal(self.seq.wrapping_add(1), &answer.to_bytes())
    }

    /// Seals and stores the answer to the running request.
    pub fn answer(&mut self, answer: &ShieldAnswer) -> Sealed {
        let mut plaintext = answer.to_bytes();
        let sealed = self.tx.seal(self.seq, &plaintext);
        plaintext.zeroize();
        self.stored = Some(sealed);
        self.running = false;
        sealed
    }
}
