//! `cargo xtask attack`: the hostile bus and host as a program.
#![forbid(unsafe_code)]

use shef_tb::attack::{Plan, Report, run};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "shef-attack --dir FOLDER [--n N] [--seed S] [--from I] [--only I] [--jobs J] [--configuration NAME]... [--stop] \
                     [--no-waves] [--quick] [--coverage] [--json]\n       shef-attack --sum REPORT... [--json]";

struct Args {
    plan: Plan,
    dir: Option<PathBuf>,
    sum: Vec<PathBuf>,
    json: bool,
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Args> {
    let mut a = Args {
        plan: Plan { n: 1000, seed: 1, jobs: 1, ..Plan::default() },
        dir: None,
        sum: Vec::new(),
        json: false,
    };
    while let Some(name) = args.next() {
        match name.as_str() {
            "--json" => a.json = true,
            "--stop" => a.plan.stop = true,
            "--no-waves" => a.plan.no_waves = true,
            "--quick" => a.plan.quick = true,
            "--coverage" => a.plan.coverage = true,
            "--n" => a.plan.n = args.next()?.parse().ok()?,
            "--seed" => a.plan.seed = args.next()?.parse().ok()?,
            "--from" => a.plan.from = args.next()?.parse().ok()?,
            "--only" => a.plan.only = Some(args.next()?.parse().ok()?),
            "--jobs" => a.plan.jobs = args.next()?.parse().ok()?,
            "--configuration" => a.plan.configurations.push(args.next()?),
            "--dir" => a.dir = Some(args.next()?.into()),
            "--sum" => a.sum.push(args.next()?.into()),
            other if !other.starts_with('-') && !a.sum.is_empty() => a.sum.push(other.into()),
            _ => return None,
        }
    }
    (a.dir.is_some() || !a.sum.is_empty()).then_some(a)
}

/// Sum of slices.
fn sum(files: &[PathBuf]) -> Result<Report, String> {
    let mut sum: Option<Report> = None;
    for f in files {
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", f.display());
        let text = std::fs::read_to_string(f).map_err(|e| fail(&e))?;
        let one: Report = serde_json::from_str(&text).map_err(|e| fail(&e))?;
        match &mut sum {
            None => sum = Some(one),
            Some(s) => s.add(&one).map_err(|e| fail(&e))?,
        }
    }
    sum.ok_or_else(|| "no reports".into())
}

fn main() -> ExitCode {
    let Some(args) = parse(std::env::args().skip(1)) else {
        eprintln!("usage: {USAGE}");
        return ExitCode::from(2);
    };
    let report = match &args.dir {
        Some(dir) if args.sum.is_empty() => run(&args.plan, dir, &|line| eprintln!("{line}"))
            .map_err(|e| format!("{e} ({})", e.code())),
        _ => sum(&args.sum),
    };
    let report = match report {
        Ok(r) => r,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    if args.json {
        match serde_json::to_string(&report) {
            Ok(text) => println!("{text}"),
            Err(e) => eprintln!("error: {e}"),
        }
    } else {
        for c in &report.by_kind {
            println!("{:9} {:7} attempts, {:7} noticed", c.kind, c.n, c.detected);
        }
        let count = |list: Vec<(&String, u64)>| {
            list.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
        };
        println!(
            "{}: acts in {}; {} over two sessions; commands: {}",
            report.top,
            count(report.by_state.iter().map(|s| (&s.state, s.n)).collect()),
            report.spanning_sessions,
            count(report.by_command.iter().map(|c| (&c.command, c.n)).collect())
        );
        println!(
            "{} attempts: delivered wrong {}, accepted wrong {}, refused wrong {}, hangs {}; {} of {} transactions honest; {:.0} attempts/s",
            report.n,
            report.delivered_wrong,
            report.accepted_wrong,
            report.refused_wrong,
            report.hangs,
            report.honest,
            report.transactions,
            report.attempts_per_second
        );
    }
    // The figures are the result; failures are already reported, one line each.
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
