//! Policies in Rego, evaluated in processes of their own.
//!
//! A policy is a program of whoever wrote it, and its engine allocates and computes inside one step
//! as much as the policy wants. So it runs in a worker: the caller's own executable, started again
//! in the mode [`MODE`], which first takes from itself what a policy does not need (memory beyond
//! [`MEMORY`], processor time, files, processes) and then answers over a pipe. A worker that passes
//! a limit dies; that one evaluation is denied, and the next one gets another worker.
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

/// Most bytes of address space that a worker takes beyond what it starts with.
pub const MEMORY: u64 = 64 << 20;

/// Most time between question and answer, by the wall clock: what holds a worker for longer ends
/// it. Steps end at `MAX_TIME`, and a single step after some seconds of processor time.
pub const PATIENCE: Duration = Duration::from_secs(5);
