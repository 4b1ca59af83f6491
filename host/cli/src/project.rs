//! `shef project check`: sources, ports, regions, jobs and digest of a project.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use shef_project::{Design, Error, Jobs};

use shef_console::file::{self, TempFolder};
use shef_console::output::count;
use shef_console::{CliError, Output, hex};

#[derive(Subcommand)]
pub enum ProjectCommand {
    /// Read a project as all commands do, and print its sources, the ports of its top module as the
    /// netlist's front end (yosys) reads them, its regions, its jobs and its digest
    Check {
        /// Folder of the project, with shef.toml or shield.toml
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// Do not read the ports: that needs yosys (`cargo xtask setup`)
        #[arg(long)]
        no_ports: bool,
    },
}

#[derive(Serialize)]
struct Source {
    name: String,
    bytes: usize,
}

#[derive(Serialize)]
struct Region {
    name: String,
    mode: &'static str,
    base: u64,
    size: u64,
}

#[derive(Serialize)]
struct Job {
    name: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

#[derive(Serialize)]
struct Document {
    accelerator: String,
    top: String,
    target: &'static str,
    design_digest: String,
    config_digest: String,
    sources: Vec<Source>,
    /// Absent with `--no-ports`.
    ports: Option<Vec<String>>,
    regions: Vec<Region>,
    jobs: Vec<Job>,
}

/// The error of a project.
pub fn failed(error: Error) -> CliError {
    CliError::new(error.code(), error.to_string())
}

/// Reads the project of a folder; no output replaces its files.
///
/// # Errors
/// Those of the project, with their place.
pub fn design(dir: &Path) -> Result<Design, CliError> {
    file::are_inputs(dir);
    Design::project(dir).map_err(failed)
}

/// Runs the command.
///
/// # Errors
/// Those of the project and of the front end.
pub fn run(output: &Output, command: &ProjectCommand) -> Result<(), CliError> {
    let ProjectCommand::Check { dir, no_ports } = command;
    let design = design(dir)?;
    let jobs = Jobs::read(dir, design.config()).map_err(failed)?;
    let ports = if *no_ports {
        None
    } else {
        let _spinner = output.spinner("reading the ports");
        let scratch = TempFolder::new()?;
        Some(design.ports(scratch.path()).map_err(failed)?)
    };
    let sources = design
        .own_sources()
        .map(|(name, bytes)| Source { name: name.to_owned(), bytes: bytes.len() });
    let regions = design.config().regions().iter().map(|region| Region {
        name: region.name.clone(),
        mode: region.mode.name(),
        base: region.base,
        size: region.size,
    });
    let jobs = jobs.jobs.iter().map(|(name, job)| Job {
        name: name.clone(),
        inputs: job.inputs.iter().map(|input| input.region.clone()).collect(),
        outputs: job.outputs.iter().map(|output| output.region.clone()).collect(),
    });
    let document = Document {
        accelerator: design.name().to_owned(),
        top: design.top().to_owned(),
        target: shef_project::TARGET,
        design_digest: hex::encode(&design.digest()),
        config_digest: hex::encode(&design.config().digest()),
        sources: sources.collect(),
        ports,
        regions: regions.collect(),
        jobs: jobs.collect(),
    };
    output.line(format_args!("accelerator     {}", document.accelerator))?;
    output.line(format_args!("top             {}", document.top))?;
    output.line(format_args!("design digest   {}", document.design_digest))?;
    output.line(format_args!("config digest   {}", document.config_digest))?;
    output.line(output.heading(&count(document.sources.len(), "source")))?;
    for source in &document.sources {
        output.line(format_args!("{:>9}  {}", source.bytes, source.name))?;
    }
    if let Some(ports) = &document.ports {
        output.line(output.heading(&count(ports.len(), "port")))?;
        ports.iter().try_for_each(|port| output.line(port))?;
    }
    output.line(output.heading(&count(document.regions.len(), "region")))?;
    for region in &document.regions {
        output.line(format_args!(
            "{:<16} {:<8} {:#018x} {:#x} bytes",
            region.name, region.mode, region.base, region.size
        ))?;
    }
    if !document.jobs.is_empty() {
        output.line(output.heading(&count(document.jobs.len(), "job")))?;
    }
    for Job { name, inputs, outputs } in &document.jobs {
        let (inputs, outputs) = (inputs.join(", "), outputs.join(", "));
        output.line(format_args!("{name:<16} in {inputs}; out {outputs}"))?;
    }
    output.document(&document)
}
