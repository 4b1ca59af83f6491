//! The protocol between an owner's program and an agent, `tls://HOST:PORT/DEVICE`: messages and
//! their encoding.
//!
//! One connection carries one session with one card. A frame is `length u32 | kind u8 | body`,
//! big-endian, with at most [`MAX_FRAME`] bytes after the length. The owner's program sends
//! [`ToAgent::Hello`], then [`ToAgent::Open`] (or [`ToAgent::List`]), then requests with rising
//! numbers. The agent carries them out in order and answers each once. It keeps each answer until
//! the owner's program acknowledges it (`acked`). After a lost connection the program resumes the
//! session with its token and resends requests whose answers were lost: the agent answers completed
//! requests from the kept answers and carries out no request twice. At most [`WINDOW`] requests may
//! lack an acknowledged answer, which bounds the memory of both sides and provides the
//! back-pressure of bulk transfers. These are runs of requests of at most [`MAX_BULK`] bytes.
//!
//! TLS keeps strangers away from the card. Nothing here is trusted with data: the traffic is
//! sealed, and the roles of crate `shef` check the answers. The decoder rejects anything that is
//! not exactly one message of this version.
//!
//! The protocol is documented in `docs/reference/agent-protocol.md`.

mod bytes;
pub mod codes;
pub(crate) mod error;
mod message;

pub use bytes::{Frames, WireError};
pub use message::{DeviceAnswer, DeviceOp, DeviceState, Listed, ToAgent, ToOwner, Token};

/// First version of the protocol that this program supports.
pub const VERSION_MIN: u16 = 1;
/// Last version of the protocol that this program supports.
pub const VERSION_MAX: u16 = 1;
/// The protocol's name in TLS (ALPN).
pub const ALPN: &[u8] = b"shef-agent/1";
/// First bytes of the first message.
pub const MAGIC: [u8; 8] = *b"SHEFAGNT";
/// Most bytes of data in a bulk request or its answer.
pub const MAX_BULK: usize = 256 * 1024;
/// Most bytes of a frame after its length.
pub const MAX_FRAME: usize = MAX_BULK + 64;
/// Most requests without an acknowledged answer.
pub const WINDOW: usize = 16;
/// Most accesses of one register batch.
pub const MAX_OPS: usize = 8192;
/// Most bytes of a text for people.
pub const MAX_TEXT: usize = 2048;
/// Most devices of one agent.
pub const MAX_DEVICES: usize = 256;

/// The longest prefix of `text` that fits into a message, at a character boundary.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
