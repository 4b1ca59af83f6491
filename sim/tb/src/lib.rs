//! Test bench of the Shield: one bench interface over the RTL and the functional model, the owner's
//! side of a session, seeded traffic, and a reference that says what every answer and every sealed
//! byte must be.
//!
//! The bench plays everybody around the Shield at once: host (registers), kernel (seed), owner
//! (keys, sealing) and accelerator (bursts). Keys come from seeds, so that a run repeats.
#![forbid(unsafe_code)]

pub mod attack;
mod bench;
mod campaign;
mod host;
mod oracle;
mod owner;
pub mod throughput;
mod traffic;

pub use bench::{Bench, BenchError, CODES, ModelBench, RtlBench, Watched, design};
pub use campaign::{Report, campaign, random_config};
pub use oracle::Oracle;
pub use owner::Owner;
pub use traffic::{Op, Outcome, Phase, Reference, SealedChunk, Traffic};

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, BenchError>;
