//! Runs targets for a given time and prints the results.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use shef_fuzz::{Target, all, fuzz, run_one};

const USAGE: &str = "usage: shef-fuzz [--target NAME] [--seconds N] [--seed S] [--input FILE] [--failures DIR] [--json]";

fn main() -> ExitCode {
    let (mut name, mut time, mut seed, mut json) = (None, Duration::from_secs(60), 1, false);
    let (mut input, mut failures) = (None, std::env::temp_dir().join("shef-fuzz"));
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = if arg == "--json" { Some(String::new()) } else { args.next() };
        let number = value.as_ref().and_then(|value| value.parse::<u64>().ok());
        match (arg.as_str(), value, number) {
            ("--json", ..) => json = true,
            ("--target", Some(value), _) => name = Some(value),
            ("--input", Some(value), _) => input = Some(value),
            ("--failures", Some(value), _) => failures = value.into(),
            ("--seconds", _, Some(n)) => time = Duration::from_secs(n),
            ("--seed", _, Some(n)) => seed = n,
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let targets: Vec<_> = all()
        .iter()
        .filter(|target| name.as_ref().is_none_or(|name| name == target.name))
        .collect();
    if targets.is_empty() {
        let names: Vec<_> = all().iter().map(|target| target.name).collect();
        eprintln!("no such target; there are: {}", names.join(", "));
        return ExitCode::from(2);
    }
    if let Some(file) = input {
        return again(&targets, &file);
    }
    // A panic is an outcome here; its message is printed with the file of its input.
    std::panic::set_hook(Box::new(|_| {}));
    let mut broken = false;
    let mut summaries = Vec::new();
    for target in targets {
        match fuzz(target, time, seed, &failures) {
            Ok(summary) => {
                eprintln!(
                    "{}: {} inputs, {} outcomes, {} in the corpus, slowest {} us, {} failures",
                    target.name,
                    summary.inputs,
                    summary.outcomes.len(),
                    summary.corpus,
                    summary.slowest_us,
                    summary.failures.len()
                );
                broken |= !summary.failures.is_empty();
                summaries.push(summary);
            }
            Err(error) => {
                eprintln!("error: corpus of {}: {error}", target.name);
                return ExitCode::from(5);
            }
        }
    }
    if json {
        println!("{}", serde_json::json!({ "targets": summaries }));
    }
    ExitCode::from(u8::from(broken))
}

/// Runs one input on one target.
fn again(targets: &[&Target], file: &str) -> ExitCode {
    let [target] = targets else {
        eprintln!("--input needs --target");
        return ExitCode::from(2);
    };
    match std::fs::read(file).map(|input| run_one(target, &input)) {
        Ok(Ok(outcome)) => {
            println!("{outcome}");
            ExitCode::SUCCESS
        }
        Ok(Err(_)) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {file}: {error}");
            ExitCode::from(5)
        }
    }
}
