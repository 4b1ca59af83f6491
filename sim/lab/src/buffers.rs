//! The buffers of a job of the digits accelerator.

use shef::{InputBuffer, OutputBuffer};

/// The buffers of a job.
pub struct Buffers {
    /// Training rows and labels.
    pub train: InputBuffer,
    /// Queries.
    pub query: InputBuffer,
    /// Results.
    pub result: OutputBuffer,
}
