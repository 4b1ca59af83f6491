//! `shef verify`.

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(clap::Args)]
pub struct VerifyArgs {}

pub fn run(_output: &Output, _args: &VerifyArgs) -> Result<Exit, CliError> {
    Ok(Exit::Undecided)
}
