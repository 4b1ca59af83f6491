//! The command `shef` as a library, so that tests run the same code.
//!
//! It drives cards and appraises evidence; simulator, demo, attacks, and what makes and tests projects
//! are in the program `shef-sim`, which `shef sim`, `shef demo`, `shef new`, `shef test`
//! and `shef bench` call.

mod attest;
mod audit;
mod bundle;
mod cloud;
mod device;
mod doctor;
mod image;
mod keys;
mod project;
mod run;
mod secret;
mod shield;
mod simulator;
mod verifier;
mod verify;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use shef_console::codes::{self, Groups};
use shef_console::output::Flags;
use shef_console::{CliError, Common, Exit, Output, exit, program};

/// Attested, shielded FPGA accelerators.
#[derive(Parser)]
#[command(name = "shef", version, about, after_help = exit::help(), max_term_width = 100)]
struct Args {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the complete demo on real digits: attest, key, seal, compute, open, and every attack
    #[command(disable_help_flag = true)]
    Demo(simulator::Rest),
    /// Make a project from a template: RTL, Shield, a job and a test that passes
    #[command(disable_help_flag = true)]
    New(simulator::Rest),
    /// Run the tests of a project: without a Shield, behind it, under attack, and after another
    /// session
    #[command(disable_help_flag = true)]
    Test(simulator::Rest),
    /// Measure a job of a project: its cycles without a Shield and behind it, and what its ports wait
    /// for
    #[command(disable_help_flag = true)]
    Bench(simulator::Rest),
    /// List, inspect, diagnose, reset or watch devices
    #[command(subcommand)]
    Device(device::DeviceCommand),
    /// Build, inspect or verify an image container, or draw the device secret of an image
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Check the project of an accelerator: sources, ports, regions and digest
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Run a job of a project on a card: attest, send data, start, wait, open the results
    Run(Box<run::RunArgs>),
    /// Check, generate, estimate or show a Shield from its shield.toml
    #[command(subcommand)]
    Shield(shield::ShieldCommand),
    /// Simulated cards: serve one to other processes, write the trust data for it
    #[command(disable_help_flag = true)]
    Sim(simulator::Rest),
    /// Fetch evidence from a device, for a challenge from a verifier service or your own
    Attest(attest::AttestArgs),
    /// Keys of a verifier service: add, list, show, rotate, disable, and release to a device
    Keys(keys::KeysArgs),
    /// Ask a verifier service for its state
    #[command(subcommand)]
    Verifier(verifier::VerifierCommand),
    /// Appraise evidence from a file against anchors, reference values and a policy
    Verify(verify::VerifyArgs),
    /// Receipts of key releases
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Evidence and everything for its appraisal, in one signed file
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// An image for AWS F2: check, build, load and attest it
    #[command(subcommand)]
    Cloud(cloud::CloudCommand),
    #[command(flatten)]
    Common(Common),
}

/// The codes of the program's libraries.
pub fn codes() -> Groups {
    let mut groups = shef::codes();
    // Cards and `shef shield` report these.
    groups.push(("Security Kernel", shef_kernel::CODES.iter().collect()));
    groups.push(("projects", shef_project::CODES.iter().collect()));
    groups.push(("custom logic", shef_netlist::CODES.iter().collect()));
    groups.push(("generators", shef_gen::CODES.iter().collect()));
    groups.push(("AWS F2", shef_cloud::CODES.iter().collect()));
    groups
}

/// Runs the command line and returns the exit status.
pub fn main() -> Exit {
    let output = |args: &Args| args.flags.output();
    program::main("shef", codes, output, |output, args: Args| {
        close_memory(&args.command)?;
        dispatch(output, &args.flags.arguments(), args.command)
    })
}

/// Keys of parties and sessions stay in this process.
fn close_memory(command: &Command) -> Result<(), CliError> {
    match command {
        // Those of the other program do not pass through this one.
        Command::Sim(_)
        | Command::Demo(_)
        | Command::New(_)
        | Command::Test(_)
        | Command::Bench(_) => Ok(()),
        _ => Ok(shef::undumpable()?),
    }
}

fn dispatch(output: &Output, globals: &[OsString], command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Demo(rest) => simulator::becomes(globals, Some("demo"), rest),
        Command::New(rest) => simulator::becomes(globals, Some("new"), rest),
        Command::Test(rest) => simulator::becomes(globals, Some("test"), rest),
        Command::Bench(rest) => simulator::becomes(globals, Some("bench"), rest),
        Command::Device(command) => device::run(output, &command),
        Command::Image(command) => image::run(output, &command),
        Command::Project(command) => project::run(output, &command).map(|()| Exit::Done),
        Command::Run(args) => run::run(output, &args),
        Command::Shield(command) => shield::run(output, &command).map(|()| Exit::Done),
        Command::Sim(rest) => simulator::becomes(globals, None, rest),
        Command::Attest(args) => attest::run(output, &args),
        Command::Keys(args) => keys::run(output, &args),
        Command::Verifier(command) => verifier::run(output, &command),
        Command::Verify(args) => verify::run(output, &args),
        Command::Audit(command) => audit::run(output, &command),
        Command::Bundle(command) => bundle::run(output, &command),
        Command::Cloud(command) => cloud::run(output, &command),
        // The simulator's program also knows the codes of simulated cards.
        Command::Common(Common::Explain { code })
            if code.as_deref().is_some_and(|code| codes::find(code).is_none())
                && simulator::is_there() =>
        {
            let rest: Vec<OsString> = code.into_iter().map(OsString::from).collect();
            simulator::becomes(globals, Some("explain"), simulator::Rest::from(rest))
        }
        Command::Common(Common::Explain { code: None }) => {
            let exit = Common::Explain { code: None }.run::<Args>(output)?;
            if !output.is_closed() {
                output.note("codes of simulated cards: `shef-sim explain`");
            }
            Ok(exit)
        }
        // These are commands of the other program.
        Command::Common(Common::Man { command: Some(command) })
            if ["demo", "new", "test", "bench"].contains(&command.as_str()) =>
        {
            let rest = simulator::Rest::from(vec![command.into()]);
            simulator::becomes(globals, Some("man"), rest)
        }
        Command::Common(common) => common.run::<Args>(output),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    /// A command of ours in a text for people: its words exist, and so do its flags.
    fn exists(text: &str) -> Result<(), String> {
        use clap::CommandFactory as _;
        let root = Args::command();
        let mut command = &root;
        for word in text.split_whitespace().skip(1) {
            if let Some(flag) = word.strip_prefix("--").map(|it| it.split('=').next().unwrap()) {
                let known =
                    |of: &clap::Command| of.get_arguments().any(|it| it.get_long() == Some(flag));
                let others = ["demo", "new", "test", "bench", "sim"].contains(&command.get_name());
                if !known(command)
                    && !known(&root)
                    && !["help", "version"].contains(&flag)
                    && !others
                {
                    return Err(format!("{} has no --{flag}: {text}", command.get_name()));
                }
            } else if command.has_subcommands() {
                let found = command.get_subcommands().find(|it| it.get_name() == word);
                // The simulator's have theirs elsewhere.
                command = found.ok_or_else(|| format!("there is no {word}: {text}"))?;
            }
        }
        Ok(())
    }

    #[test]
    fn every_help_names_commands_that_exist() {
        assert!(exists("shef cloud build NAME --place X").is_ok());
        for wrong in ["shef cloud biuld", "shef cloud build --again", "shef nosuch"] {
            assert!(exists(wrong).is_err(), "{wrong}");
        }
        let (mut seen, mut wrong) = (0, Vec::new());
        for code in codes().into_iter().flat_map(|(_, codes)| codes) {
            for text in code.help.split('`').skip(1).step_by(2).filter(|it| it.starts_with("shef "))
            {
                wrong.extend(exists(text).err().map(|why| format!("{}: {why}", code.id)));
                seen += 1;
            }
        }
        assert_eq!((wrong, seen > 50), (Vec::<String>::new(), true), "{seen}");
    }

    #[test]
    fn every_command_but_the_simulators_closes_its_memory() {
        let run = |args: &[&str]| {
            close_memory(&Args::try_parse_from(args).unwrap().command).unwrap();
            dumpable_behavior().unwrap()
        };
        assert_ne!(
            run(&["shef", "sim", "serve", "--socket", "card"]),
            DumpableBehavior::NotDumpable
        );
        assert_eq!(run(&["shef", "explain"]), DumpableBehavior::NotDumpable);
    }
}
