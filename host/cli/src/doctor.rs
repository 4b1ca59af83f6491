//! `shef device doctor`: finds what prevents a card of this machine from being opened, and the
//! command that fixes it.

use serde::Serialize;
use shef_device::{Iommu, Uri};
use shef_vfio::System;
use shef_vfio::check::{Finding, Verdict, examine};

use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;

#[derive(Serialize)]
struct Report {
    device: String,
    ready: bool,
    checks: Vec<Check>,
}

#[derive(Serialize)]
struct Check {
    check: &'static str,
    verdict: &'static str,
    found: String,
    code: Option<&'static str>,
    command: Option<String>,
}

impl From<Finding> for Check {
    fn from(finding: Finding) -> Self {
        let verdict = match finding.verdict {
            Verdict::Pass => "ok",
            Verdict::Warn => "warning",
            Verdict::Fail => "fault",
            Verdict::Untested => "untested",
        };
        Self {
            check: finding.check,
            verdict,
            found: finding.found,
            code: finding.code,
            command: finding.command,
        }
    }
}

/// Examines one card, or all cards of the machine.
///
/// # Errors
/// A URI that names no card of this machine.
pub fn run(output: &Output, device: Option<&str>, system: &System) -> Result<Exit, CliError> {
    let cards = match device {
        None => system.cards().into_iter().map(|card| (card.bdf, Iommu::Any)).collect(),
        Some(text) => match text.parse::<Uri>()? {
            Uri::Pci { function, iommu, .. } => vec![(function, iommu)],
            other => {
                return Err(CliError::new(
                    "SHEF-CLI-001",
                    format!(
                        "doctor examines cards of this machine, as pci:0000:65:00.0; {other} is opened with `shef device info {other}`"
                    ),
                ));
            }
        },
    };
    let reports: Vec<Report> = cards
        .into_iter()
        .map(|(function, iommu)| {
            let checks: Vec<Check> =
                examine(system, function, iommu).into_iter().map(Check::from).collect();
            let ready = checks.iter().all(|c| c.verdict != "fault");
            Report { device: Uri::Pci { function, iommu, boot: None }.to_string(), ready, checks }
        })
        .collect();
    for report in &reports {
        output.line(output.heading(&format!(
            "{}: {}",
            report.device,
            if report.ready { "can be opened" } else { "cannot be opened" }
        )))?;
        for c in &report.checks {
            let verdict = match c.verdict {
                "fault" => output.bad("fault   "),
                "ok" => output.good("ok      "),
                other => format!("{other:<8}"),
            };
            output.line(format_args!(
                "{verdict} {:<16} {}{}",
                c.check,
                c.found,
                c.code.map(|c| format!(" [{c}]")).unwrap_or_default()
            ))?;
            if let Some(command) = c.command.as_deref().filter(|_| c.verdict != "ok") {
                output.line(format_args!("{:<25} run: {command}", ""))?;
            }
        }
    }
    output.document(&reports)?;
    if reports.is_empty() {
        output.note(
            "this machine has no card: expected a PCI function 1d0f:f010 in `lspci -nn`; if it is missing, load a shef image into the FPGA",
        );
        return Ok(Exit::Undecided);
    }
    Ok(if reports.iter().all(|r| r.ready) { Exit::Done } else { Exit::No })
}
