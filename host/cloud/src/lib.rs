//! From the sources of a custom logic to its image on an AWS F2 instance: what `shef cloud` does
//! around AWS's own programs.
//!
//! | module | what it does |
//! |---|---|
//! | [`tools`] | the programs of others: exact arguments, the source of each, a time limit |
//! | [`run`] | runs one of them, without a shell |
//! | [`hdk`] | the user's copy of AWS's hardware development kit, and its port list |
//! | [`place`] | folders in memory, for the secret of an image |
//! | [`logic`] | the folder of a custom logic, as the kit's scripts expect it |
//! | [`build`] | synthesis and implementation, judged by the files that they leave |
//! | [`scan`] | looks for the secret in every file |
//! | [`tarball`], [`afi`] | the tarball with its manifest, and the image (AFI) that AWS makes from it |
//! | [`lock`] | the one file that names source, firmware, checkpoint, image and reference values |
//! | [`slot`], [`metrics`] | loads and clears a slot, and reads its counters |
//! | [`bind`] | the card behind VFIO |
//! | [`doctor`] | everything that must be right before any of this |
//!
//! Nothing here prints. Steps report to a [`Watch`].
#![forbid(unsafe_code)]

pub mod afi;
pub mod bind;
pub mod build;
pub mod doctor;
mod error;
pub mod hdk;
pub mod lock;
pub mod logic;
pub mod metrics;
pub mod place;
pub mod run;
pub mod scan;
pub mod slot;
pub mod tarball;
pub mod tools;

pub use error::{AfiFailure, CloudError, SlotFailure};

/// A thing that a command would do, for a dry run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Runs this command line.
    Run(String),
    /// Runs it, but only in this case.
    If {
        /// The case, which a program before it shows.
        case: &'static str,
        /// The command line.
        run: String,
    },
    /// Makes this change.
    Change(String),
}

impl From<tools::Call> for Step {
    fn from(call: tools::Call) -> Self {
        Self::Run(call.line())
    }
}

impl tools::Call {
    /// This call, in a case only.
    fn only_if(self, case: &'static str) -> Step {
        Step::If { case, run: self.line() }
    }
}

/// Receives a line for each step that takes time.
pub type Watch<'a> = &'a mut dyn FnMut(&str);

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] =
    &shef_proto::code::join::<
        { shef_proto::code::count(&[CloudError::CODES, error::AFI_CODES, error::SLOT_CODES]) },
    >(&[CloudError::CODES, error::AFI_CODES, error::SLOT_CODES]);
