//! `shef sim design`: the digest of a design, and the payload of an image for it.

use std::path::PathBuf;

use serde::Serialize;
use shef_card::Design;
use shef_console::file::{self, Outputs};
use shef_console::{CliError, Output, hex};
use shef_lab::world::card;

/// Flags of `shef sim design`.
#[derive(clap::Args)]
pub struct DesignArgs {
    /// Folder of your own design, with shield.toml and shef_accel.sv; by default the digits
    /// accelerator
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Also write the payload of an image for this design
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document {
    accelerator: String,
    target: &'static str,
    digest: String,
    config_digest: String,
    /// CBOR in hexadecimal.
    config: String,
    payload: Option<file::PathText>,
}

/// Runs `shef sim design`.
///
/// # Errors
/// Errors of the project, and of the output file.
pub fn run(output: &Output, args: &DesignArgs) -> Result<(), CliError> {
    let design = match &args.project {
        Some(folder) => {
            file::are_inputs(folder);
            Design::project(folder).map_err(card)?
        }
        None => Design::digits().map_err(card)?,
    };
    if let Some(path) = &args.out {
        let mut outputs = Outputs::new([])?;
        let slot = outputs.file(path)?;
        outputs.fill(slot, design.program().map_err(card)?)?;
        outputs.place()?;
    }
    let document = Document {
        accelerator: design.name().to_owned(),
        target: shef_card::TARGET,
        digest: hex::encode(&design.digest()),
        config_digest: hex::encode(&design.config().digest()),
        config: hex::encode(&design.config().to_cbor()),
        payload: args.out.clone().map(Into::into),
    };
    output.line(format_args!("accelerator     {}", document.accelerator))?;
    output.line(format_args!("design digest   {}", document.digest))?;
    output.line(format_args!("config digest   {}", document.config_digest))?;
    output.document(&document)
}
