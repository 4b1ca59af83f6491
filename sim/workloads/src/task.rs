//! A workload, and one run of its accelerator.

use crate::WorkloadError;

/// How much a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// The size at which the evaluation is judged, if it takes less than a minute of simulation;
    /// otherwise a part of it that is long enough for the ratio.
    Quick,
    /// The size at which the evaluation is judged.
    Full,
    /// A few thousand cycles: for tests of the reference and of the accelerator.
    Small,
}

/// What is written to a register before the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u32),
    /// The lower half of the address of a region.
    Address(&'static str),
    /// The upper half of it.
    AddressHigh(&'static str),
    /// The lower half of the address of this byte of a region that does not cross 4 GiB.
    Offset(&'static str, u32),
}

/// One run of an accelerator, and what it must answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// What is computed, in a few words: `"8 MiB"`, `"512 x 512"`.
    pub shape: String,
    /// Registers to write before the start, in this order: names of `shef.toml`.
    pub registers: Vec<(&'static str, Value)>,
    /// Bytes of `input` regions, from their start.
    pub inputs: Vec<(&'static str, Vec<u8>)>,
    /// Expected bytes of `output` regions, from their start.
    pub outputs: Vec<(&'static str, Vec<u8>)>,
    /// Expected values of registers after the run.
    pub reads: Vec<(&'static str, u32)>,
    /// What else people want to know of the data or the result, as `("accuracy", "0.97")`.
    pub facts: Vec<(&'static str, String)>,
}

/// Which Shield a workload runs behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// `shield.toml`: what we recommend.
    Ours,
    /// `paper.toml`: the paper's layout, with at most four engine sets.
    Paper,
}

/// What ShEF's paper says of a workload: time behind its Shield divided by the time without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paper {
    /// Of its fastest Shield; `None` if the paper does not say.
    pub best: Option<f64>,
    /// Of its slowest Shield.
    pub worst: Option<f64>,
    /// Table or figure, and its Shield.
    pub source: &'static str,
}

/// A workload.
pub trait Workload: Sync {
    /// Its name, which is that of its folder in `shell-rtl/accel`.
    fn name(&self) -> &'static str;

    /// What it computes, in one line.
    fn about(&self) -> &'static str;

    /// What the paper says of it; `None` if it is not in the paper.
    fn paper(&self) -> Option<Paper>;

    /// The run of this scale on the data of the evaluation, with its results by the CPU reference.
    ///
    /// # Errors
    /// Data that are missing or damaged.
    fn task(&self, scale: Scale) -> Result<Task, WorkloadError>;
}
