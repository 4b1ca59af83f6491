//! The program `shef-sim`: simulated cards for other processes, their trust data, and the demo.
//!
//! `shef sim ARGS` is `shef-sim ARGS`, and `shef demo ARGS` is `shef-sim demo ARGS`. The host library
//! starts this program for a device `sim:`.

mod demo;
mod design;
mod makers;
mod serve;
mod trust;

use clap::{CommandFactory, Parser, Subcommand};
use shef_console::output::Flags;
use shef_console::{CliError, Exit, Output, codes, exit, explain, generated};

pub use demo::{DemoArgs, demo, remote, report};

/// Simulated cards of shef: serve them, describe them, run the demo on them.
#[derive(Parser)]
#[command(name = "shef-sim", version, about, after_help = exit::help(), max_term_width = 100)]
struct Args {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the complete demo on real digits: attest, key, seal, compute, open, and every attack
    Demo(Box<DemoArgs>),
    /// Serve a simulated card as a vfio-user device until the program is interrupted
    Serve(serve::ServeArgs),
    /// Write the trust data that verifiers need to accept a simulated card: its maker's root,
    /// reference values, a policy
    Trust(trust::TrustArgs),
    /// Print the digest of a design, and write the payload of an image for it
    Design(design::DesignArgs),
    /// Explain a code, such as SHEF-CARD-003; without a code, list them all
    Explain {
        /// The code
        code: Option<String>,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff) of the program, or of one of its commands
    Man {
        /// The command
        command: Option<String>,
    },
}

/// Runs the command line and returns the exit status.
pub fn main() -> Exit {
    codes::add(shef_card::codes);
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            return shef_console::output::usage(error.use_stderr(), error.print());
        }
    };
    let output = args.flags.output();
    match shef_console::output::keep_stdout().and_then(|()| run(&output, args.command)) {
        Ok(exit) => exit,
        Err(error) => {
            output.error(&error);
            error.exit
        }
    }
}

fn run(output: &Output, command: Command) -> Result<Exit, CliError> {
    match command {
        // The demo's process holds an owner's keys. Those of a simulated card protect nothing, and
        // its developers need to inspect it.
        Command::Demo(args) => {
            shef::undumpable().map_err(CliError::from).and_then(|()| demo::run(output, &args))
        }
        Command::Serve(args) => serve::run(output, &args).map(|()| Exit::Done),
        Command::Trust(args) => trust::run(output, &args).map(|()| Exit::Done),
        Command::Design(args) => design::run(output, &args).map(|()| Exit::Done),
        Command::Explain { code } => explain::run(output, code.as_deref()).map(|()| Exit::Done),
        Command::Completions { shell } => {
            generated::completions(output, Args::command(), "shef-sim", shell)
        }
        Command::Man { command } => generated::manual(output, Args::command(), command.as_deref()),
    }
}
