//! The program `shef-sim`: simulated cards for other processes, their trust data, the demo, and
//! projects: a new one, its tests, and the cycles of its jobs.
//!
//! `shef sim ARGS` is `shef-sim ARGS`, and `shef demo ARGS` is `shef-sim demo ARGS`, as are `shef new`,
//! `shef test` and `shef bench`. The host library starts this program for a device `sim:`.

mod bench;
mod demo;
mod evaluate;
mod job;
mod list;
mod makers;
mod new;
mod serve;
mod test;
mod trust;

use clap::{Parser, Subcommand};
use shef_console::codes::Groups;
use shef_console::output::Flags;
use shef_console::{CliError, Common, Exit, Output, exit, program};

use shef_workloads::WorkloadError;

pub use bench::BenchError;
pub use demo::{DemoArgs, demo, remote, report};
pub use evaluate::EvaluateError;
pub use test::TestError;

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
    /// Make a project from a template: RTL, Shield, a job and a test that passes
    New(new::NewArgs),
    /// Run the tests of a project: without a Shield, behind it, under attack, and after another
    /// session
    Test(test::TestArgs),
    /// Measure a job of a project: its cycles without a Shield and behind it, and what its ports wait
    /// for
    Bench(bench::BenchArgs),
    /// Run the workloads of ShEF's evaluation, without a Shield and behind it, beside the paper's
    /// figures
    Evaluate(evaluate::EvaluateArgs),
    /// Serve a simulated card as a vfio-user device until the program is interrupted
    Serve(serve::ServeArgs),
    /// Write the trust data that verifiers need to accept a simulated card: its maker's root,
    /// reference values, a policy
    Trust(trust::TrustArgs),
    /// List the kinds of simulated cards, and what this machine lacks for them
    List,
    #[command(flatten)]
    Common(Common),
}

/// The codes of the program's libraries.
pub fn codes() -> Groups {
    let mut groups = shef::codes();
    groups.extend(shef_card::codes());
    // `cargo xtask` runs the benches and has no `explain`.
    groups.push(("benches", shef_tb::CODES.iter().collect()));
    groups.push(("tests of projects", TestError::CODES.iter().collect()));
    groups.push(("benches of projects", BenchError::CODES.iter().collect()));
    groups.push(("workloads", WorkloadError::CODES.iter().collect()));
    groups.push(("evaluation", EvaluateError::CODES.iter().collect()));
    groups
}

/// Runs the command line and returns the exit status.
pub fn main() -> Exit {
    let output = |args: &Args| args.flags.output();
    // `shef sim` and `shef demo` are this program.
    program::main("shef", codes, output, |output, args: Args| {
        shef_console::output::keep_stdout()?;
        run(output, args.command)
    })
}

fn run(output: &Output, command: Command) -> Result<Exit, CliError> {
    match command {
        // The demo's process holds an owner's keys. Those of a simulated card protect nothing, and
        // its developers need to inspect it.
        Command::Demo(args) => {
            shef::undumpable().map_err(CliError::from).and_then(|()| demo::run(output, &args))
        }
        Command::New(args) => new::run(output, &args).map(|()| Exit::Done),
        // Its data are those of tests.
        Command::Test(args) => test::run(output, &args),
        Command::Bench(args) => bench::run(output, &args).map(|()| Exit::Done),
        Command::Evaluate(args) => evaluate::run(output, &args),
        Command::Serve(args) => serve::run(output, &args).map(|()| Exit::Done),
        Command::Trust(args) => trust::run(output, &args).map(|()| Exit::Done),
        Command::List => list::run(output).map(|()| Exit::Done),
        Command::Common(common) => common.run::<Args>(output),
    }
}
