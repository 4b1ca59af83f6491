//! The demo, `shef demo`: the complete workflow on real digits with a simulated card, then every
//! attack.

mod keep;
mod local;
mod process;
pub mod remote;
pub mod report;
mod settings;
mod steps;
mod story;
mod trials;

use std::path::Path;
use std::time::Instant;

use shef_console::file::TempFolder;
use shef_console::output::Output;
use shef_console::{CliError, Exit};
use shef_flags::TlsArgs;

use keep::Keep;
use local::Local;
use remote::Remote;
use report::Report;
pub use settings::DemoArgs;
use settings::{card_flags, settings};
use steps::ms;

/// Runs the command.
///
/// # Errors
/// Wrong flags, bad data, and errors that prevent the honest run. A successful attack is no error
/// but an exit status of 1.
pub fn run(output: &Output, args: &DemoArgs) -> Result<Exit, CliError> {
    let dir = TempFolder::new()?;
    let report = demo_in(output, args, dir.path())?;
    output.document(&report)?;
    let failed: Vec<&str> = report.steps.iter().filter(|s| !s.ok).map(|s| s.name).collect();
    let undetected: Vec<&str> = report
        .attacks
        .iter()
        .filter(|a| !a.detected || a.words_delivered != 0)
        .map(|a| a.name)
        .collect();
    if !failed.is_empty() {
        return Err(CliError::new("SHEF-CLI-020", format!("failed: {}", failed.join(", "))));
    }
    if !undetected.is_empty() {
        let message = format!("not refused: {}", undetected.join(", "));
        return Err(CliError::new("SHEF-CLI-021", message));
    }
    Ok(Exit::Done)
}

/// Runs everything and returns the report.
///
/// # Errors
/// As `shef demo`: wrong flags, bad data, and errors that prevent the honest run.
pub fn demo(output: &Output, args: &DemoArgs) -> Result<Report, CliError> {
    demo_in(output, args, TempFolder::new()?.path())
}

fn demo_in(output: &Output, args: &DemoArgs, dir: &Path) -> Result<Report, CliError> {
    let begin = Instant::now();
    if args.remote {
        let remote = Remote::start(dir, &card_flags(args)?)?;
        let tls = TlsArgs {
            tls_ca: Some(remote.tls.ca.clone()),
            tls_cert: Some(remote.tls.cert.clone()),
            tls_key: Some(remote.tls.key.clone()),
        };
        let device = remote.uri.to_string();
        output.note(format_args!(
            "owner: process {}, agent: {}, card: {}",
            std::process::id(),
            remote.agent(),
            remote.card()
        ));
        let (latency, stalls) = (None, None);
        let args = DemoArgs {
            device,
            control: Some(remote.control.clone()),
            remote: false,
            tls,
            latency,
            stalls,
            ..args.clone()
        };
        return demo_in(output, &args, dir);
    }
    let mut settings = settings(args)?;
    let local = match args.service.verifier.as_deref() {
        Some("local") => Some(Local::start(dir)?),
        _ => None,
    };
    settings.service = match &local {
        Some(local) => Some(local.service.clone()),
        // Only the flag counts: an environment variable never makes a demo write to a service.
        None if args.service.verifier.is_some() => args.service.find()?,
        None => None,
    };
    if let Some(service) = &settings.service {
        let own =
            local.as_ref().map_or_else(String::new, |local| format!(", process {}", local.id()));
        output.note(format_args!("verifier service {}{own}", service.url()));
        service.ready()?;
    }
    let mut keep = args.keep.as_deref().map(Keep::new).transpose()?;
    output.line(output.heading(&format!("device {}", settings.uri)))?;
    let mut flow = story::tell(output, args, &settings, dir, keep.as_mut())?;
    let attacks = trials::all(output, args, &settings, dir)?;
    flow.attacks = attacks;
    flow.ms = ms(begin);
    if let Some(keep) = &mut keep {
        keep.report(&flow)?;
    }
    let d = &flow.digits;
    let refused = flow.attacks.iter().filter(|a| a.detected && a.words_delivered == 0).count();
    output.line(format_args!(
        "{} of {} digits right, {} the CPU reference; {refused} of {} attacks refused{}; {:.1} s",
        d.correct,
        d.tested,
        if d.equal_to_reference { "all equal to" } else { "NOT equal to" },
        flow.attacks.len(),
        match (flow.cycles.shielded, flow.cycles.bare) {
            (Some(shielded), Some(bare)) if bare > 0 => format!(
                "; {shielded} cycles shielded, {bare} bare, ratio {:.3}",
                shielded as f64 / bare as f64
            ),
            _ => String::new(),
        },
        begin.elapsed().as_secs_f64(),
    ))?;
    Ok(flow)
}
