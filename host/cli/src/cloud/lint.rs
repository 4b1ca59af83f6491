//! `shef cloud lint`: a custom logic against the shell's rules.

use std::path::{Path, PathBuf};

use shef_console::file::TempFolder;
use shef_console::output::{COLUMNS, wrapped};
use shef_console::{CliError, Exit, Output};
use shef_netlist::{Check, CustomLogic, Report};

/// Flags of `shef cloud lint`.
#[derive(clap::Args)]
pub struct LintArgs {
    /// Folder of the custom logic (sources in it or in its `design`, the top module with its name), or
    /// of the image around it
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Folder of AWS's kit, whose list of ports is compared; without it, that of HDK 2.3.2 is
    #[arg(long, value_name = "DIR")]
    hdk: Option<PathBuf>,
    /// Print every finding, not only the first one of each check
    #[arg(long)]
    all: bool,
    /// Print the crossings between clocks
    #[arg(long)]
    crossings: bool,
    /// Print what would be read, and stop
    #[arg(long)]
    dry_run: bool,
}

/// The folder of the custom logic, given itself, the folder of an image around it, or its `design`.
fn custom_logic(dir: &Path) -> PathBuf {
    let inside = dir.join("cl_shef");
    if inside.is_dir() {
        return inside;
    }
    match dir.parent() {
        Some(above) if dir.ends_with("design") && above.join("build").is_dir() => above.to_owned(),
        _ => dir.to_owned(),
    }
}

/// Runs `shef cloud lint`.
///
/// # Errors
/// SHEF-NET-001 to -004, and those of the sources and of the front end.
pub fn run(output: &Output, args: &LintArgs) -> Result<Exit, CliError> {
    let logic = CustomLogic::in_folder(&custom_logic(&args.dir))?;
    if args.dry_run {
        output.line(format_args!("top module   {}", logic.sources.top))?;
        for folder in logic.sources.search.iter().chain(&logic.sources.foreign) {
            output.line(format_args!("sources      {}", folder.display()))?;
        }
        for file in &logic.constraints {
            output.line(format_args!("constraints  {}", file.display()))?;
        }
        let kit = args.hdk.as_deref().map(shef_netlist::kit).transpose()?;
        if kit.is_none() {
            output.line("ports        the table of HDK 2.3.2")?;
        }
        for file in kit.iter().flatten() {
            output.line(format_args!("kit          {}", file.display()))?;
        }
        let folders: Vec<_> = logic.sources.search.iter().chain(&logic.sources.foreign).collect();
        output.document(&serde_json::json!({
            "top": logic.sources.top, "sources": folders, "constraints": logic.constraints,
            "kit": kit,
        }))?;
        return Ok(Exit::Done);
    }
    let report = {
        let _spinner = output.spinner("reading the netlist");
        let scratch = TempFolder::new()?;
        shef_netlist::lint(&logic, args.hdk.as_deref(), scratch.path())?
    };
    print(output, args, &report)?;
    output.document(&report)?;
    Ok(if report.passed() { Exit::Done } else { Exit::No })
}

fn print(output: &Output, args: &LintArgs, report: &Report) -> Result<(), CliError> {
    for check in &report.checks {
        let result = if check.passed { output.good("passed") } else { output.bad("failed") };
        let name = format!("{:<12}", check.check);
        for (i, line) in wrapped(&check.looked_at, COLUMNS - 21).into_iter().enumerate() {
            match i {
                0 => output.line(format_args!("{name} {result}  {line}"))?,
                _ => output.line(format_args!("{:21}{line}", ""))?,
            }
        }
        findings(output, args, check)?;
    }
    if args.crossings {
        output.line(output.heading("crossings"))?;
        for line in &report.crossings {
            output.line(format_args!("{}, {} bit", line.form, line.bits))?;
            output.line(format_args!("  from {} ({})", line.from, line.from_clock))?;
            output.line(format_args!("  to   {} ({})", line.to, line.to_clock))?;
        }
    }
    let failed = report.checks.iter().filter(|check| !check.passed).count();
    let result = match failed {
        0 => output.good("in order"),
        n => output.bad(&format!("{n} of {} checks failed", report.checks.len())),
    };
    output.line(format_args!("{}: {result}", report.top))
}

fn findings(output: &Output, args: &LintArgs, check: &Check) -> Result<(), CliError> {
    let shown = if args.all { check.findings.len() } else { 1 };
    for finding in check.findings.iter().take(shown) {
        let place =
            if finding.place.is_empty() { String::new() } else { format!("{}: ", finding.place) };
        for line in wrapped(&format!("{place}{}", finding.what), COLUMNS - 2) {
            output.line(format_args!("  {line}"))?;
        }
    }
    if check.findings.len() > shown {
        output.line(format_args!("  and {} more (--all)", check.findings.len() - shown))?;
    }
    if !check.passed {
        let next = format!("{}: {}", check.code, check.help());
        for line in wrapped(&next, COLUMNS - 4) {
            output.line(format_args!("    {line}"))?;
        }
    }
    Ok(())
}
