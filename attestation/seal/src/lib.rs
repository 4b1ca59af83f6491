//! The sealed-memory format: chunks, versions, tags.
//!
//! The format is in `docs/reference/sealed-memory.md`. A [`Sealer`] fills an `input` region and
//! cannot seal a chunk twice in an epoch. An [`Opener`] opens an `output` region and requires a
//! statement of the same session. [`ChunkCipher`] and [`NodeCipher`] are the bare format, for a
//! Shield.
#![cfg_attr(not(feature = "parallel"), no_std)]
extern crate alloc;

mod chunks;
mod cipher;
mod error;
mod gcm;
mod opener;
mod plain;
#[cfg(all(test, target_os = "linux", feature = "aws-lc"))]
mod residue;
mod sealer;

#[cfg(feature = "parallel")]
pub use chunks::processors;
pub use cipher::{ChunkCipher, NODE_LEN, NodeCipher, chunk_iv, node_iv};
pub use error::SealError;
pub use gcm::ChunkTag;
pub use opener::{OpenPolicy, Opened, Opener};
pub use plain::Plain;
pub use sealer::{Portion, SealedRun, Sealer, Spent};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = SealError::CODES;
