//! Test bench of the Shield: one bench interface over the RTL and the functional model, the owner's
//! side of a session, seeded traffic, and a reference model that predicts every response and every
//! sealed byte.
//!
//! The bench plays every party around the Shield: host (registers), kernel (seed), owner (keys,
//! sealing) and accelerator (bursts). Keys are derived from seeds, so runs are reproducible.
#![forbid(unsafe_code)]

pub mod attack;
mod bench;
mod campaign;
pub mod dma;
mod error;
pub mod f2;
mod host;
mod oracle;
mod owner;
pub mod throughput;
mod traffic;

pub use bench::{Bench, ModelBench, RtlBench, Watched, built, design};
pub use campaign::{Report, campaign, random_config};
pub use error::BenchError;
pub use oracle::Oracle;
pub use owner::Owner;
pub use traffic::{Op, Outcome, Phase, Reference, SealedChunk, Traffic};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = BenchError::CODES;

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, BenchError>;
