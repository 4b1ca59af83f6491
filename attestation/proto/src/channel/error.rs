//! What can go wrong on the owner's side of the channel.

use super::{ShieldStatement, status};
use crate::code::Code;

/// Codes of [`ChannelError`].
pub const CODES: &[Code] = &[
    Code {
        id: "SHEF-PRO-250",
        summary: "an answer of the register channel is not authentic",
        help: "The answer was changed, replayed, or belongs to another request or session. Nothing is concluded from it; the same request may be sent again.",
    },
    Code {
        id: "SHEF-PRO-251",
        summary: "the register channel waits for an answer",
        help: "One request is on its way. Deliver its answer, or send the same 88 bytes again.",
    },
    Code { id: "SHEF-PRO-252", summary: "no request is on its way", help: "An answer came that nobody asked for. It is not looked at." },
    Code { id: "SHEF-PRO-253", summary: "the register channel is exhausted or closed", help: "Open a new session." },
    Code {
        id: "SHEF-PRO-254",
        summary: "the Shield answered with an error",
        help: "1: unknown operation or bad argument. 2: the accelerator's register answered with an error. 3: the Shield has stopped after a fault. 4: a fault stopped the operation. Read the statement.",
    },
    Code {
        id: "SHEF-PRO-255",
        summary: "an authentic answer has impossible content",
        help: "The Shield does not run this configuration, or is of another version.",
    },
    Code {
        id: "SHEF-PRO-256",
        summary: "a fault made the Shield end the session by itself",
        help: "on_fault is \"halt\": the Shield told of the fault in its last message and erased all keys. No result opens. Begin a new session.",
    },
];

/// What can go wrong on the owner's side of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The answer does not open, or is not the answer to this request.
    #[error("answer to request {seq} is not authentic: whether the request ran is unknown")]
    NotAuthentic {
        /// number of the request
        seq: u64,
    },
    /// A request is under way.
    #[error("request {seq} is under way")]
    Busy {
        /// its number
        seq: u64,
    },
    /// No request is under way.
    #[error("no request is under way")]
    Idle,
    /// Closed, or no numbers left.
    #[error("the register channel is closed")]
    Closed,
    /// The Shield answered with a status other than done.
    #[error("shield answered request {seq} with status {status}: {}", status::text(*status))]
    Status {
        /// number of the request
        seq: u64,
        /// the status
        status: u16,
    },
    /// Content that no Shield of this configuration sends.
    #[error("answer to request {seq} is impossible: {what}")]
    Impossible {
        /// number of the request
        seq: u64,
        /// what is wrong
        what: &'static str,
    },
    /// The Shield has ended the session by itself after a fault.
    #[error(
        "the shield ended the session after a fault: {} in region {}, chunk {:#x}, version {}",
        .last.fault_kind.name(), .last.fault_region, .last.fault_chunk, .last.fault_version
    )]
    Halted {
        /// its last words
        last: ShieldStatement,
        /// the request that this was the answer to was run before
        ran: bool,
    },
}

impl ChannelError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAuthentic { .. } => "SHEF-PRO-250",
            Self::Busy { .. } => "SHEF-PRO-251",
            Self::Idle => "SHEF-PRO-252",
            Self::Closed => "SHEF-PRO-253",
            Self::Status { .. } => "SHEF-PRO-254",
            Self::Impossible { .. } => "SHEF-PRO-255",
            Self::Halted { .. } => "SHEF-PRO-256",
        }
    }
}
