//! Rego policies, evaluated in separate processes.
//!
//! A policy is untrusted code, and the engine bounds neither memory nor time within a single step.
//! Policies therefore run in a worker: the caller's own executable, restarted in the mode [`MODE`].
//! The worker first drops everything that a policy does not need (memory beyond [`MEMORY`], CPU
//! time, files, processes) and then answers over a pipe. A worker that exceeds a limit dies; that
//! evaluation is denied, and the next one gets another worker.
//!
//! A program that uses [`Workers`] calls [`serve`] first in its `main`.
#![forbid(unsafe_code)]

mod frame;
mod worker;
mod workers;

use std::time::Duration;

pub use worker::serve;
pub use workers::Workers;

/// The argument that makes an executable a worker.
pub const MODE: &str = "rego-worker";

/// Maximum address space of a worker beyond its initial size, in bytes.
pub const MEMORY: u64 = 64 << 20;

/// Maximum wall-clock time between request and answer; a worker that takes longer is killed.
/// Evaluations end at `MAX_TIME`, and a single step after some seconds of CPU time.
pub const PATIENCE: Duration = Duration::from_secs(5);
