//! `cargo xtask attack`: the hostile bus and host as a program.
#![forbid(unsafe_code)]

use shef_tb::attack::{Kind, Plan, run};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "shef-attack --dir FOLDER [--n N] [--seed S] [--first I] [--only I] [--configurations N] [--json]";

fn main() -> ExitCode {
    let mut plan = Plan { n: 1000, seed: 1, ..Plan::default() };
    let (mut json, mut dir) = (false, None);
    let mut args = std::env::args().skip(1);
    while let Some(a) = args.next() {
        if a == "--json" {
            json = true;
            continue;
        }
        let value = args.next();
        let number = value.as_ref().and_then(|v| v.parse::<u64>().ok());
        match (a.as_str(), number, value) {
            ("--n", Some(v), _) => plan.n = v,
            ("--seed", Some(v), _) => plan.seed = v,
            ("--first", Some(v), _) => plan.first = v,
            ("--configurations", Some(v), _) => plan.configurations = usize::try_from(v).unwrap_or(0),
            ("--only", Some(v), _) => plan.only = Some(v),
            ("--dir", _, Some(v)) => dir = Some(PathBuf::from(v)),
            _ => {
                eprintln!("usage: {USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let Some(dir) = dir else {
        eprintln!("usage: {USAGE}");
        return ExitCode::from(2);
    };
    let report = match run(&plan, &dir, &mut |line| eprintln!("{line}")) {
        Ok(r) => r,
        Err(e) => {
            eprintln!("error: {e} ({})", e.code());
            return ExitCode::FAILURE;
        }
    };
    if json {
        println!("{}", report.json());
    } else {
        for (k, c) in Kind::ALL.iter().zip(&report.kinds) {
            println!("{:9} {:7} attempts, {:7} noticed", k.name(), c.n, c.detected);
        }
        println!(
            "delivered wrong {}, accepted wrong {}, refused wrong {}, hangs {}; {} of {} transactions honest; {:.0} s",
            report.delivered_wrong,
            report.accepted_wrong,
            report.refused_wrong,
            report.hangs,
            report.honest,
            report.transactions,
            report.time.as_secs_f64()
        );
    }
    // The figures are the answer; a failure has been told line by line.
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
