//! `cargo xtask cloud`: the custom logic for AWS F2 in the model of its shell: each rule with the custom
//! logic that breaks it, lint, the demo beside that of the plain shell, sizes and times.

use crate::process::{self, Context, Result, cargo, ensure};
use crate::{bench, tools};
use serde_json::{Value, json};
use std::path::Path;

/// Rules that the report has at least; fewer mean that a table was cut.
const RULES: usize = 18;
/// Floors: share of the card's LUTs, bytes per cycle, microseconds, milliseconds, cycles beside the
/// plain shell.
const LUT_SHARE: f64 = 0.14;
const PCIM: f64 = 48.0;
const PCIS_US: f64 = 6.0;
const FLR_MS: f64 = 100.0;
const CYCLES: f64 = 1.25;

#[derive(clap::Args)]
pub struct Args {
    /// Without the demo, which takes minutes
    #[arg(long)]
    no_demo: bool,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub fn run(args: &Args) -> Result<()> {
    let verilator = tools::verilator()?;
    let say = |what: &str| eprintln!("{what}");
    say("rules and figures in the model of the shell");
    let mut figures = process::built_example("f2_figures", "debug")?;
    let figures = bench::document(figures.env("SHEF_VERILATOR", &verilator))?;
    say("lint of the custom logic");
    let lint = lint()?;
    say("secrets in what a build leaves");
    let secret_hits = secrets()?;
    let demo = if args.no_demo { Value::Null } else { demo(&verilator)? };
    let number = |name: &str| figures[name].as_f64().with_context(|| format!("no {name}"));
    let document = json!({
        "rules": figures["rules"],
        "lint": lint["checks"],
        "demo": demo,
        "lut_share": lint["lut_share"],
        "pcim_bytes_per_cycle": number("pcim_bytes_per_cycle")?,
        "pcis_worst_us": number("pcis_worst_ns")? / 1e3,
        "flr_ms": number("flr_ns")? / 1e6,
        "crossings_unnamed": lint["crossings_unnamed"],
        "secret_hits": secret_hits,
    });
    if args.json {
        println!("{document}");
    } else {
        print(&document);
    }
    judge(&document)
}

/// `shef cloud lint` on the custom logic of this repository.
fn lint() -> Result<Value> {
    let mut command = process::built("shef")?;
    command.args(["cloud", "lint", "shell-rtl/shell/aws_f2"]).current_dir(crate::root());
    bench::document(&mut command)
}

/// How often the secret of an image is found after a build with fakes of AWS's programs.
fn secrets() -> Result<u64> {
    const TEST: &str = "flow::sources_become_a_loaded_slot_and_the_secret_is_nowhere";
    let words = format!("test -q --workspace --test cloud -- --exact --nocapture {TEST}");
    let output = process::output(&mut cargo(&words))?;
    let line = output.stdout.lines().find_map(|line| line.split_once("secret hits: "));
    let count = line.and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    count.with_context(|| format!("{TEST} did not count\n{}", output.all()))
}

/// The demo through the model of F2's shell, and the same through the plain one.
fn demo(verilator: &Path) -> Result<Value> {
    let run = |device: &str, more: &[&str]| {
        eprintln!("the demo on {device}");
        let mut command = process::built("shef")?;
        command.args(["sim", "demo", "--device", device]).args(more);
        bench::document(command.env("SHEF_VERILATOR", verilator))
    };
    let f2 = run("sim:rtl?shell=f2", &[])?;
    // Its attacks are those of `cargo xtask demo`.
    let plain = run("sim:rtl", &["--attack", "none"])?;
    let cycles = |of: &Value| of["cycles"]["shielded"].as_u64().context("no cycles");
    let attacks = f2["attacks"].as_array().context("no attacks")?;
    let refused = |attack: &&Value| attack["detected"] == true && attack["words_delivered"] == 0;
    Ok(json!({
        "correct": f2["digits"]["correct"],
        "attacks_refused": attacks.iter().filter(refused).count(),
        "cycles": cycles(&f2)?,
        "cycles_plain_shell": cycles(&plain)?,
    }))
}

fn print(d: &Value) {
    println!("{:<24} broken by its fault  by ours", "rule");
    for row in d["rules"].as_array().into_iter().flatten() {
        let name = row["rule"].as_str().unwrap_or_default();
        println!("{name:<24} {:<19} {}", row["tripped_by_broken_cl"], row["violations_of_ours"]);
    }
    for check in d["lint"].as_array().into_iter().flatten() {
        println!("lint {:<19} {}", check["check"].as_str().unwrap_or_default(), check["passed"]);
    }
    for name in [
        "demo",
        "lut_share",
        "pcim_bytes_per_cycle",
        "pcis_worst_us",
        "flr_ms",
        "crossings_unnamed",
        "secret_hits",
    ] {
        println!("{name:<24} {}", d[name]);
    }
}

/// The floors.
fn judge(d: &Value) -> Result<()> {
    let mut missed = Vec::new();
    let rules: Vec<&Value> = d["rules"].as_array().into_iter().flatten().collect();
    let bad = |row: &&&Value| row["tripped_by_broken_cl"] != true || row["violations_of_ours"] != 0;
    missed.extend(rules.iter().filter(bad).map(|row| format!("rule {}", row["rule"])));
    if rules.len() < RULES {
        missed.push(format!("{} rules", rules.len()));
    }
    let checks = d["lint"].as_array().into_iter().flatten();
    let failed = checks.filter(|check| check["passed"] != true);
    missed.extend(failed.map(|check| format!("lint {}", check["check"])));
    let number = |name: &str| d[name].as_f64().unwrap_or(f64::MAX);
    for (name, most) in [
        ("lut_share", LUT_SHARE),
        ("pcis_worst_us", PCIS_US),
        ("flr_ms", FLR_MS),
        ("crossings_unnamed", 0.0),
        ("secret_hits", 0.0),
    ] {
        if number(name) > most {
            missed.push(format!("{name} {} (at most {most})", d[name]));
        }
    }
    if d["pcim_bytes_per_cycle"].as_f64().is_none_or(|n| n < PCIM) {
        missed.push(format!("PCIM {} bytes a cycle (at least {PCIM})", d["pcim_bytes_per_cycle"]));
    }
    if let Some(demo) = d["demo"].as_object() {
        let of = |name: &str| demo[name].as_f64().unwrap_or_default();
        if demo["correct"] != 766 || of("attacks_refused") < 25.0 {
            missed.push(format!("demo {}", d["demo"]));
        }
        if of("cycles") > CYCLES * of("cycles_plain_shell") {
            missed.push(format!("cycles {}", d["demo"]));
        }
    }
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}
