//! The protocol between an owner's program and an agent, `tls://HOST:PORT/DEVICE`: messages and
//! their bytes.
//!
//! One connection carries one session with one card. A frame is `length u32 | kind u8 | body`,
//! big-endian, at most [`MAX_FRAME`] bytes after the length. The owner's program says
//! [`ToAgent::Hello`], then [`ToAgent::Open`] (or [`ToAgent::List`]), then requests with rising
//! numbers. The agent carries them out in order and answers each once; until the owner's program
//! says that it has an answer (`acked`), the agent keeps it. After a lost connection the session is
//! resumed by its token, and requests whose answers were lost are sent again: those that were
//! carried out are answered from what was kept, none is carried out twice. At most [`WINDOW`]
//! requests are without acknowledged answer, which bounds the memory of both sides and is the
//! back-pressure of bulk transfers, which are runs of requests of at most [`MAX_BULK`] bytes.
//!
//! TLS keeps strangers away from the card. Nothing here is trusted with data: what is carried is
//! sealed, and what comes back is checked by the roles of crate `shef`. The decoder refuses
//! everything that is not exactly a message of this version.
//!
//! The document of the protocol is `docs/reference/agent-protocol.md`.

mod bytes;
pub mod codes;
pub(crate) mod error;
mod message;

pub use bytes::{Frames, WireError};
pub use message::{Answer, DeviceState, Listed, Op, ToAgent, ToOwner, Token};

/// First version of the protocol that this program speaks.
pub const VERSION_MIN: u16 = 1;
/// Last version of the protocol that this program speaks.
pub const VERSION_MAX: u16 = 1;
/// The protocol's name in TLS (ALPN).
pub const ALPN: &[u8] = b"shef-agent/1";
/// First bytes of the first message.
pub const MAGIC: [u8; 8] = *b"SHEFAGNT";
/// Most bytes that a bulk request or its answer carries.
pub const MAX_BULK: usize = 256 * 1024;
/// Most bytes of a frame after its length.
pub const MAX_FRAME: usize = MAX_BULK + 64;
/// Most requests whose answers are not acknowledged.
pub const WINDOW: usize = 16;
/// Most accesses of one register batch.
pub const MAX_OPS: usize = 8192;
/// Most bytes of a text for people.
pub const MAX_TEXT: usize = 2048;
/// Most devices of one agent.
pub const MAX_DEVICES: usize = 256;

/// The first bytes of `text` that fit a message, at a character's border.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
