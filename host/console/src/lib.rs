//! Code that the project's commands share: output, errors, exit statuses and interrupts, and the
//! flags for agents and verifier services.
//!
//! Every command computes a serialisable value; module [`output`] prints it as text or JSON.

pub mod codes;
pub mod error;
pub mod exit;
pub mod explain;
pub mod file;
pub mod folder;
pub mod generated;
pub mod hex;
pub mod interrupt;
pub mod output;
pub mod service;
pub mod tls;

pub use error::CliError;
pub use exit::Exit;
pub use output::Output;
