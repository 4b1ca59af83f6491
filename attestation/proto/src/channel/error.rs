//! Errors of the owner's side of the channel.

use super::{ShieldStatement, status};

crate::coded! {
    /// Errors of the owner's side of the channel.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ChannelError {
        /// The answer does not open, or belongs to another request.
        #[error("answer to request {seq} is not authentic: whether the request ran is unknown")]
        NotAuthentic {
            /// number of the request
            seq: u64,
        } = "SHEF-PRO-250": "an answer of the register channel is not authentic",
            "The answer was changed, replayed, or belongs to another request or session. Nothing is concluded from it; the same request \
             may be sent again.",
        /// A request is in flight.
        #[error("request {seq} is under way")]
        Busy {
            /// its number
            seq: u64,
        } = "SHEF-PRO-251": "the register channel waits for an answer",
            "One request is on its way. Deliver its answer, or send the same 88 bytes again.",
        /// No request is in flight.
        #[error("no request is under way")]
        Idle = "SHEF-PRO-252": "no request is on its way", "An answer came that nobody asked for. It is not looked at.",
        /// Closed, or no request numbers left.
        #[error("the register channel is closed")]
        Closed = "SHEF-PRO-253": "the register channel is exhausted or closed", "Open a new session.",
        /// The Shield answered with a status other than done.
        #[error("shield answered request {seq} with status {status}: {}", status::text(*status))]
        Status {
            /// number of the request
            seq: u64,
            /// the status
            status: u16,
        } = "SHEF-PRO-254": "the Shield answered with an error",
            "1: unknown operation or bad argument. 2: the accelerator's register answered with an error. 3: the Shield has stopped after a \
             fault. 4: a fault stopped the operation. Read the statement.",
        /// Content that no Shield of this configuration sends.
        #[error("answer to request {seq} is impossible: {what}")]
        Impossible {
            /// number of the request
            seq: u64,
            /// the problem
            what: &'static str,
        } = "SHEF-PRO-255": "an authentic answer has impossible content",
            "The Shield does not run this configuration, or is of another version.",
        /// The Shield has ended the session on its own after a fault.
        #[error(
            "the shield ended the session after a fault: {} in region {}, chunk {:#x}, version {}",
            .last.fault_kind.name(), .last.fault_region, .last.fault_chunk, .last.fault_version
        )]
        Halted {
            /// its last statement
            last: ShieldStatement,
            /// whether the request that it answers had run
            ran: bool,
        } = "SHEF-PRO-256": "a fault made the Shield end the session by itself",
            "on_fault is \"halt\": the Shield told of the fault in its last message and erased all keys. No result opens. Begin a new \
             session.",
        /// This process is a fork of the one that made the channel's keys.
        #[error("process {made} made the keys of the channel, and this is process {found}")]
        Forked {
            /// process that made the keys
            made: u32,
            /// this process
            found: u32,
        } = "SHEF-PRO-257": "a copy of a process uses the register channel",
            "A copy made by fork has the same keys and numbers, and would seal other data under them. Attest in the new process.",
    }
}
