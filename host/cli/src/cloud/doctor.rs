//! `shef cloud doctor`: finds what would make a build or a load fail.

use std::path::PathBuf;

use serde::Serialize;
use shef_cloud::doctor::{self, Finding, Scope, Verdict};
use shef_console::{CliError, Exit, Output};
use shef_vfio::System;

use super::print::{self, ProgramArgs};

/// Width of the column of verdicts.
const COLUMN: usize = 9;

/// Flags of `shef cloud doctor`.
#[derive(clap::Args)]
pub struct DoctorArgs {
    /// Folder of AWS's hardware development kit (aws-fpga, branch f2)
    #[arg(long, value_name = "DIR")]
    hdk: Option<PathBuf>,
    /// SHA-256 of an encrypt.tcl of another release that you have read
    #[arg(long, value_name = "SHA256")]
    encrypt_script: Option<String>,
    /// AWS region [default: AWS_REGION, else AWS_DEFAULT_REGION]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Folder in place of /, for /sys and /proc
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
    #[command(flatten)]
    programs: ProgramArgs,
}

#[derive(Serialize)]
struct Document {
    /// Nothing that was examined is wrong, and something was.
    ready: bool,
    /// Subjects that were not examined.
    unchecked: Vec<&'static str>,
    findings: Vec<Finding>,
}

/// Runs `shef cloud doctor`.
///
/// # Errors
/// If stdout cannot be written.
pub fn run(output: &Output, args: &DoctorArgs) -> Result<Exit, CliError> {
    let system = System::at(&args.root);
    let region = print::region(args.region.as_deref());
    let scope = Scope {
        hdk: args.hdk.as_deref(),
        region: region.as_deref(),
        encrypt_script: args.encrypt_script.as_deref(),
        system: &system,
        limits: args.programs.limits(),
    };
    if args.programs.dry_run {
        return print::plan(output, &doctor::plan(scope)?);
    }
    let findings = doctor::examine(scope, |name| std::env::var_os(name));
    for it in &findings {
        let (word, styled) = match it.verdict {
            Verdict::Ok => ("ok", output.good("ok")),
            Verdict::Fault => ("fault", output.bad("fault")),
            Verdict::Warning => ("warning", "warning".to_owned()),
            Verdict::Untested => ("-", "-".to_owned()),
        };
        let code = it.code.map(|code| format!(" [{code}]")).unwrap_or_default();
        let text = format!("{}: {}{code}", it.check, it.found);
        print::beside(output, COLUMN, (word, &styled), &text)?;
        if let Some(next) = &it.next {
            print::beside(output, COLUMN, ("", ""), &format!("next: {next}"))?;
        }
    }
    let fault = findings.iter().any(|it| it.verdict == Verdict::Fault);
    let (ready, unchecked) = (doctor::ready(&findings), doctor::unchecked(&findings));
    let (result, exit) = match (ready, fault) {
        (true, _) => ("ready", Exit::Done),
        (false, true) => ("not ready", Exit::No),
        (false, false) => ("not decided", Exit::Undecided),
    };
    let styled = if ready { output.good(result) } else { output.bad(result) };
    let text = format!("not checked: {}", unchecked.join(", "));
    print::beside(output, result.len() + 2, (result, &styled), &text)?;
    output.document(&Document { ready, unchecked, findings })?;
    Ok(exit)
}
