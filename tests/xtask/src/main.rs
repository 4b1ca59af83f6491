//! `cargo xtask`: the entry point for everything beyond cargo.
#![forbid(unsafe_code)]

mod area;
mod attack;
mod bench;
#[cfg(test)]
mod claims;
mod cloud;
mod compat;
mod coverage;
mod debian;
mod deployment;
mod dist;
mod files;
mod firmware;
mod formal;
mod fuzz;
mod kit;
mod lint;
mod mutants;
mod negatives;
mod pictures;
mod process;
mod rooms;
mod test;
mod tools;
mod torture;
mod upgrade;
mod vm;
mod words;

use clap::{Parser, Subcommand};
use process::{Failure, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Set-up, demo, tests, generated files, lint and area: everything beyond cargo.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install the tools that the project needs into target/tools (no root needed)
    Setup {
        /// Also install the tools for Fmax and proofs (nextpnr, z3), used by area and formal
        #[arg(long)]
        all: bool,
    },
    /// Run the demo: an attested, shielded accelerator on real digits, and attacks on it
    Demo {
        /// Arguments of `shef demo`; `cargo xtask demo -- --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run the workloads of ShEF's evaluation on real data, without a Shield and behind it, beside the
    /// paper's figures
    Evaluate {
        /// Arguments of `shef-sim evaluate`; `cargo xtask evaluate -- --help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run a hostile bus and host against the Shield's RTL, one act at a time
    Attack(attack::Args),
    /// Measure which lines and cover points of the RTL the hostile bench and random operations
    /// reach, and check that the others have a reason
    Coverage(coverage::Args),
    /// Run the tests, in a quarter of an hour; with --full, all tests
    Test(test::Args),
    /// Run the card in a virtual machine: an unmodified Linux kernel, vfio-pci, and the whole demo
    /// through /dev/vfio
    Vm(vm::Args),
    /// Update the generated files
    Generate {
        /// Only list outdated files
        #[arg(long)]
        check: bool,
    },
    /// Build boot ROM and Security Kernel for the FPGA, reproducibly
    Firmware(firmware::Args),
    /// Lint the RTL with Verilator -Wall and elaborate every module with yosys
    Lint,
    /// Prove the properties of shell-rtl/formal with yosys, sby and z3, and check that each proof
    /// detects its mutants
    Formal(formal::Args),
    /// Change a copy of the RTL in one place at a time, and check that the mutant's test detects
    /// it
    Mutants {
        /// Use the hostile bench instead, and print a table of observations and attempts
        #[arg(long)]
        attack: bool,
        /// Find tests for comparisons and erasures missing from tests/mutants/places.toml, and
        /// print lines for it
        #[arg(long, conflicts_with = "attack")]
        unnamed: bool,
        /// Only mutants whose names contain this (`seed-wipes-nothing`, `cache`)
        #[arg(default_value = "")]
        filter: String,
    },
    /// Build the verifier service for operators: static program, OCI image, systemd unit, Helm chart,
    /// manifests, alert rules, dashboard, SBOM, hashes
    Dist(dist::Args),
    /// Check alert rules, Helm chart and manifests of the verifier service
    Deployment(deployment::Args),
    /// Fuzz every decoder of untrusted input; inputs with new outcomes go into the corpora
    Fuzz(fuzz::Args),
    /// List the inputs that must be rejected, with their codes
    Negatives(negatives::Args),
    /// Follow the tutorials for a design of one's own, plant bugs that `shef test` must find, and
    /// measure both
    Kit(kit::Args),
    /// Run third-party clients and parsers against the verifier service: `ear` 0.5 and 0.6,
    /// `kbs-types`, Veraison's documented calls; and tokens of the OpenID provider `oidc-provider`
    Compat(compat::Args),
    /// Run replicas of the verifier service under the load of three tenants, while machines,
    /// databases and one of the tenants misbehave: nothing is lost, and no other tenant is out for
    /// long
    Torture(torture::Args),
    /// Run the custom logic for AWS F2 in the model of its shell: each rule with a custom logic that
    /// breaks it, lint, the demo, sizes and times
    Cloud(cloud::Args),
    /// Measure performance, with baselines from the same run
    Bench {
        #[command(subcommand)]
        what: bench::What,
    },
    /// Update shell-rtl/area.toml: the size of each block from yosys for UltraScale+, and relative
    /// Fmax of the critical ones. Recomputes stale rows only; all of them take an hour
    Area(area::Args),
}

/// The repository's root: two levels above this package.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

fn main() -> ExitCode {
    if let Some(code) = firmware::compiler() {
        return code;
    }
    let args = Args::parse();
    let result = match args.command {
        Command::Setup { all } => setup(all),
        Command::Demo { args } => demo(&args),
        Command::Evaluate { args } => evaluate(&args),
        Command::Attack(args) => attack::run(&args),
        Command::Coverage(args) => coverage::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Vm(args) => vm::run(&args),
        Command::Generate { check } => generate(check),
        Command::Firmware(args) => firmware::run(&args),
        Command::Lint => lint::run(),
        Command::Formal(args) => formal::run(&args),
        Command::Mutants { unnamed: true, filter, .. } => mutants::unnamed(&filter),
        Command::Mutants { attack, filter, .. } => {
            let by = if attack { mutants::By::Attack } else { mutants::By::Test };
            tools::verilator().and_then(|verilator| mutants::run(&verilator, &filter, by))
        }
        Command::Dist(args) => dist::run(&args),
        Command::Deployment(args) => deployment::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Negatives(args) => negatives::run(&args),
        Command::Kit(args) => kit::run(&args),
        Command::Compat(args) => compat::run(&args),
        Command::Torture(args) => torture::run(&args),
        Command::Cloud(args) => cloud::run(&args),
        Command::Bench { what } => bench::run(&what),
        Command::Area(args) => area::run(&args),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    // A started program has reported its error itself.
    if !error.downcast_ref::<Failure>().is_some_and(|failure| failure.message.is_empty()) {
        eprintln!("error: {error:#}");
    }
    ExitCode::from(Failure::code(&error))
}

fn setup(all: bool) -> Result<()> {
    println!("verilator {}", tools::verilator()?.display());
    println!("ibex {}", tools::ibex()?.display());
    // `shef project check` reads ports with it.
    let yosys = tools::yosys()?;
    println!("yosys {}", yosys.display());
    // The models of projects' tests need it, and any other serves them as well.
    match tools::numpy() {
        Ok(numpy) => println!("numpy {} (a folder for PYTHONPATH)", numpy.display()),
        Err(error) => eprintln!("note: {error:#}"),
    }
    if all {
        println!("nextpnr {}", tools::nextpnr(&yosys)?.display());
        println!("{}", tools::prover()?.version);
    }
    Ok(())
}

fn demo(args: &[String]) -> Result<()> {
    let (verilator, ibex) = (tools::verilator()?, tools::ibex()?);
    // It starts these two itself.
    if args.iter().any(|arg| arg == "--remote") {
        process::built("shef-agent")?;
    }
    if args.windows(2).any(|pair| pair == ["--verifier", "local"])
        || args.iter().any(|arg| arg == "--verifier=local")
    {
        process::built("shef-verifierd")?;
    }
    process::built("shef-sim")?;
    let mut command = process::built("shef")?;
    let here = std::env::current_dir().unwrap_or_else(|_| root());
    command
        .current_dir(here)
        .arg("demo")
        .args(args)
        .env("SHEF_VERILATOR", verilator)
        .env("SHEF_IBEX", ibex);
    process::hand_over(&mut command)
}

fn evaluate(args: &[String]) -> Result<()> {
    let verilator = tools::verilator()?;
    let mut command = process::built("shef-sim")?;
    let here = std::env::current_dir().unwrap_or_else(|_| root());
    command.current_dir(here).arg("evaluate").args(args).env("SHEF_VERILATOR", verilator);
    process::hand_over(&mut command)
}

fn generate(check: bool) -> Result<()> {
    pictures::run(&root(), check)?;
    process::hand_over(&mut generator(if check { "check" } else { "generate" })?)
}

/// The program that generates the repository's generated files.
pub fn generator(command: &str) -> Result<std::process::Command> {
    let mut c = process::built("shef-gen")?;
    c.arg(command).arg(root());
    Ok(c)
}
