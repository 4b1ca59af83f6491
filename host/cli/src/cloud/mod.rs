//! `shef cloud`: an image for AWS F2, from sources to an attested session.

mod afi;
mod build;
mod doctor;
mod lint;
mod new;
mod print;
mod run;
mod slot;

use clap::Subcommand;
use shef_console::{CliError, Exit, Output};

/// Subcommands of `shef cloud`.
#[derive(Subcommand)]
pub enum CloudCommand {
    /// Find what would make a build or a load fail: HDK, Vivado, memory, account, card
    Doctor(doctor::DoctorArgs),
    /// Make the folder of an image in memory: custom logic, scripts, constraints, secret
    New(new::NewArgs),
    /// Check a custom logic against the shell's rules before a build of hours
    Lint(lint::LintArgs),
    /// Build an image's tarball with the HDK's scripts, and judge it by its files
    Build(build::BuildArgs),
    /// Let AWS make an image (AFI) from the tarball, and write the lock file
    Afi(afi::AfiArgs),
    /// Load the image of a lock file into a slot
    Load(slot::LoadArgs),
    /// Bind a slot's card to vfio-pci, and check that it comes back from a reset
    Bind(slot::BindArgs),
    /// Boot the card, and run a job of a project in an attested session under the lock file
    Run(Box<run::RunArgs>),
    /// Counters of a slot, their meaning, and what to do about them
    Metrics(slot::MetricsArgs),
    /// Clear a slot: its image and all its memory
    Clear(slot::ClearArgs),
}

/// Runs `shef cloud`.
///
/// # Errors
/// Those of the subcommand.
pub fn run(output: &Output, command: &CloudCommand) -> Result<Exit, CliError> {
    match command {
        CloudCommand::Doctor(args) => doctor::run(output, args),
        CloudCommand::New(args) => new::run(output, args),
        CloudCommand::Lint(args) => lint::run(output, args),
        CloudCommand::Build(args) => build::run(output, args),
        CloudCommand::Afi(args) => afi::run(output, args),
        CloudCommand::Load(args) => slot::load(output, args),
        CloudCommand::Bind(args) => slot::bind(output, args),
        CloudCommand::Run(args) => run::run(output, args),
        CloudCommand::Metrics(args) => slot::metrics(output, args),
        CloudCommand::Clear(args) => slot::clear(output, args),
    }
}
