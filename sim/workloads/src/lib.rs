//! The workloads of the evaluation. Each is an accelerator in `shell-rtl/accel`, and here its host
//! side: the data, the registers, and a reference that computes on the CPU what the accelerator must
//! answer.
//!
//! A workload turns its data into [`Task`]s. A task is one run of the accelerator: it says which bytes
//! go to which regions, which registers are written, and which bytes and values come back. It knows
//! nothing of cards and Shields, so that the same task runs without a Shield and behind any.

pub mod affine;
pub mod bitcoin;
pub mod conv;
pub mod digits;
mod error;
pub mod ingest;
pub mod lenet;
pub mod matmul;
pub mod oram;
pub mod random;
pub mod storage;
mod task;
pub mod vecadd;

pub use error::WorkloadError;
pub use task::{Layout, Paper, Scale, Task, Value, Workload};

/// All workloads, in the order of the tables.
pub const WORKLOADS: &[&dyn Workload] = &[
    &vecadd::VecAdd,
    &matmul::MatMul,
    &conv::Conv,
    &digits::Digits,
    &affine::Affine,
    &lenet::LeNet,
    &bitcoin::Bitcoin,
    &storage::Storage,
    &oram::Oram,
    &ingest::Ingest,
];

/// The workload with this name.
///
/// # Errors
/// SHEF-WRK-001 if there is no such workload.
pub fn find(name: &str) -> Result<&'static dyn Workload, WorkloadError> {
    let found = WORKLOADS.iter().find(|workload| workload.name() == name);
    found.copied().ok_or_else(|| WorkloadError::Unknown {
        name: name.to_owned(),
        known: WORKLOADS.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", "),
    })
}

/// A file of `tests/data`.
fn data_file(name: &str) -> std::path::PathBuf {
    std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data")).join(name)
}
