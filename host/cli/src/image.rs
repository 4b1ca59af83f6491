//! `shef image build|inspect|verify`.

use clap::Subcommand;

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Subcommand)]
pub enum ImageCommand {
    /// todo
    Inspect,
}

pub fn run(_output: &Output, _command: &ImageCommand) -> Result<Exit, CliError> {
    Ok(Exit::Done)
}
