//! How all programs of the project print, fail and end: output, errors, exit statuses, interrupts,
//! and the commands that every program has.
//!
//! Every command computes a serialisable value; module [`output`] prints it as text or JSON.
//! [`applied`] lets a command ask a running program which content of a file is in force.

#[cfg(target_os = "linux")]
pub mod applied;
pub mod codes;
pub mod error;
pub mod exit;
mod explain;
pub mod file;
pub mod folder;
mod generated;
pub mod hex;
pub mod interrupt;
pub mod log;
pub mod output;
pub mod program;
pub mod shell;

pub use error::CliError;
pub use exit::Exit;
pub use log::Log;
pub use output::Output;
pub use program::Common;
