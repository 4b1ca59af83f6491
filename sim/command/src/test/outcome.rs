//! What a phase of a test found.

use super::attacks::Attacked;

/// What a phase found with one seed.
#[derive(Debug, Default)]
pub struct Passed {
    /// Cycles of the job, from its start on.
    pub cycles: Option<u64>,
    /// The attacks, each with its outcome.
    pub attacks: Vec<Attacked>,
}
