//! Projects: which files make the design of an accelerator, and what its digest covers.
//!
//! A [`SourceSet`] names a top module and the places of its sources, and reads and measures them.
//! A [`Design`] is a Shield around an accelerator, with its digest and the payload of its image;
//! [`Design::project`] reads that of a user's folder, which has a `shef.toml` or follows the names
//! of files. Neither needs a simulator.
#![forbid(unsafe_code)]

mod alone;
mod design;
mod error;
mod file;
mod frontend;
mod job;
mod list;
mod ports;
mod program;
mod random;
mod root;
mod set;
mod sources;
mod verilog;

pub use alone::{Part, alone};
pub use design::{ACCELERATOR, Design, TARGET, digits_config};
pub use error::Error;
pub use file::is_name;
pub use frontend::{Elaborated, yosys};
pub use job::{
    Data, Done, Expect, Input, Job, Jobs, Model, Names, OutputFile, Refused, Registers, Test,
    Value, Write,
};
pub use program::Program;
pub use random::random;
pub use root::{ibex, repo_root};
pub use set::{Listed, SourceSet};
pub use sources::{
    F2_TOP, Measured, Source, preprocessed, reaches_outside, rtl_sources, stem, sv_files,
};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = Error::CODES;

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// The rules for sources, as text: a design that was built under other rules is built again.
pub const RULES: &str =
    concat!(include_str!("set.rs"), include_str!("sources.rs"), include_str!("verilog.rs"));
