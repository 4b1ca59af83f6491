//! `cargo xtask cloud`: the custom logic for AWS F2 in the model of its shell: each rule with the custom
//! logic that breaks it, lint, the demo beside that of the plain shell, sizes and times.

use crate::process::{self, Context, Result, ensure};
use crate::{area, bench, tools};
use serde_json::{Value, json};
use std::process::Command;

/// LUTs of a VU47P.
const LUTS: f64 = 1_303_680.0;

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
    let share = area::luts(&["shef_system, all", "cl_shef, adapter"])? as f64 / LUTS;
    let number = |name: &str| figures[name].as_f64().with_context(|| format!("no {name}"));
    let document = json!({
        "rules": figures["rules"],
        "lint": lint["checks"],
        "demo": demo,
        "lut_share": share,
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
