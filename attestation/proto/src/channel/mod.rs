//! The sealed register channel: 88-byte messages in both directions, both endpoints, and the
//! statement.
//!
//! The format is in `docs/reference/register-channel.md`.

mod cipher;
mod error;
mod fault;
mod message;
mod owner;
mod shield;
mod statement;
mod statistics;

pub use error::ChannelError;
pub use fault::{FaultKind, RefusalKind};
pub use message::{
    HALT, MESSAGE_LEN, Op, PAYLOAD_LEN, PLAINTEXT_LEN, Sealed, ShieldAnswer, ShieldRequest, status,
};
pub use owner::{OwnerChannel, TRIES};
pub use shield::{Received, ShieldChannel};
pub use statement::{MAP_BITS, RegionStatement, ShieldStatement, State, Statement, WrittenMap};
pub use statistics::{COUNTERS, Counter, Statistics};
