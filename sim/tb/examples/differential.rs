//! Random operations on the functional model and, with `--rtl`, on the RTL too: checks every answer
//! against the reference, every write to memory against the oracle, and both benches against each
//! other. The RTL is `shef_core`, with the same Shield in all sessions.
//!
//! `cargo run -p shef-tb --example differential -- [--operations N] [--seed N] [--rtl] [--config
//! shield.toml]`
//!
//! Without `--config` the model runs in a new random configuration every 10,000 operations, and the
//! RTL in that of `sim/tb/tests/shield.toml`, whose build the tests use too.

use shef_proto::config::Config;
use shef_tb::{BenchError, ModelBench, RtlBench, campaign, design, random_config};
use std::path::Path;

/// Operations of one session.
const SESSION: u64 = 10_000;

struct Args {
    operations: u64,
    seed: u64,
    rtl: bool,
    config: Option<String>,
}

fn args() -> Result<Args, String> {
    let mut out = Args { operations: 1_000_000, seed: 1, rtl: false, config: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} wants a value"));
        let number =
            |v: String| v.replace('_', "").parse().map_err(|_| format!("{v} is no number"));
        match word.as_str() {
            "--operations" => out.operations = number(value()?)?,
            "--seed" => out.seed = number(value()?)?,
            "--rtl" => out.rtl = true,
            "--config" => out.config = Some(value()?),
            _ => {
                return Err(format!(
                    "unknown argument {word}; known are --operations N, --seed N, --rtl, --config FILE"
                ));
            }
        }
    }
    Ok(out)
}

fn run(args: &Args) -> Result<(u64, u64), BenchError> {
    let text = match &args.config {
        Some(path) => Some(
            std::fs::read_to_string(path).map_err(|e| BenchError::File(format!("{path}: {e}")))?,
        ),
        None if args.rtl => Some(include_str!("../tests/shield.toml").to_owned()),
        None => None,
    };
    // In the program's folder: generated packages belong to the build products.
    let program = std::env::current_exe().unwrap_or_default();
    let name = args
        .config
        .as_deref()
        .and_then(|c| Path::new(c).file_stem())
        .map_or("shield".into(), |s| s.to_string_lossy());
    let folder = program.parent().unwrap_or(Path::new(".")).join("differential_rtl").join(&*name);
    let fixed = match &text {
        Some(text) => Some(design(text, &folder)?),
        None => None,
    };
    let library = match &fixed {
        Some((spec, _)) if args.rtl => Some(shef_rtl::build(&spec.clone().fast())?),
        _ => None,
    };
    // One Shield for all sessions: each begins with the state that the previous one left.
    let mut rtl = match (&library, &fixed) {
        (Some(library), Some((_, config))) => {
            Some(RtlBench::new(library, config, Some(args.seed))?)
        }
        _ => None,
    };
    let (mut done, mut refused, mut seed) = (0, 0, args.seed);
    while done < args.operations {
        let most = SESSION.min(args.operations - done);
        let config: Config = match &fixed {
            Some((_, config)) => config.clone(),
            None => random_config(seed)?,
        };
        let told = |what: &str, e: BenchError| {
            BenchError::Unequal(format!("{what}, --seed {seed} --operations {most}: {e}"))
        };
        let model = campaign(&mut ModelBench::new(&config), &config, seed, most)
            .map_err(|e| told("model", e))?;
        if let Some(bench) = &mut rtl {
            bench.retime(Some(seed))?;
            let rtl = campaign(bench, &config, seed, most).map_err(|e| told("rtl", e))?;
            if rtl != model {
                return Err(told(
                    "model and rtl",
                    BenchError::Unequal(format!("{model:?} and {rtl:?}")),
                ));
            }
        }
        done += model.operations;
        refused += u64::from(model.refusals);
        seed += 1;
        eprint!("\r{done} operations");
    }
    eprintln!();
    Ok((done, refused))
}

fn main() -> std::process::ExitCode {
    let start = std::time::Instant::now();
    match args().map_err(BenchError::File).and_then(|args| run(&args)) {
        Ok((done, refused)) => {
            println!(
                "{done} operations, {refused} of them refused as they ought to be, all as the reference says, in {:.0?}",
                start.elapsed()
            );
            std::process::ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("error[{}]: {e}", e.code());
            std::process::ExitCode::FAILURE
        }
    }
}
