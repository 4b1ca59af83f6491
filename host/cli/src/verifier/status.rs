//! `shef verifier status`: health of a verifier service, and points for its operator's attention.

use serde::Serialize;
use shef::service::api;

use crate::verify::now;
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_flags::ServiceArgs;

/// A certificate with fewer days left needs attention.
const WARN_DAYS: i64 = 14;
const DAY: i64 = 86_400;

/// Flags of `shef verifier status`.
#[derive(clap::Args)]
pub struct StatusArgs {
    /// The verifier service
    #[command(flatten)]
    service: ServiceArgs,
    /// List the stale devices
    #[arg(long)]
    devices: bool,
}

#[derive(Serialize)]
struct Document {
    url: String,
    healthy: bool,
    ready: bool,
    version: String,
    client_version: &'static str,
    certificate_ends: i64,
    certificate_days_left: i64,
    /// Absent if the role lacks read access.
    devices: Option<u64>,
    devices_stale: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stale: Vec<api::Device>,
    attention: Vec<String>,
}

/// The value of a gauge in the Prometheus text format.
fn gauge(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse::<f64>().ok().map(|value| value as u64)
}

/// Runs `shef verifier status`.
///
/// # Errors
/// Transport errors; a service that is not ready cannot decide anything.
pub fn run(output: &Output, args: &StatusArgs) -> Result<Exit, CliError> {
    let service = args.service.open()?;
    let healthy = service.get::<api::Health>("/healthz")?.status == "ok";
    let ready = service.ready()?;
    let ends = ready.certificate_ends;
    let left = (ends - now(None)).div_euclid(DAY);
    let metrics = match service.get_bytes("/metrics") {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(shef::SdkError::Refused { status: 403, .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let count = |name| metrics.as_deref().and_then(|text| gauge(text, name));
    let list = if args.devices { service.devices(|device| device.stale)? } else { Vec::new() };
    let mut document = Document {
        url: service.url().to_owned(),
        healthy,
        ready: ready.status == "ready",
        version: ready.version,
        client_version: env!("CARGO_PKG_VERSION"),
        certificate_ends: ends,
        certificate_days_left: left,
        devices: count("shef_devices"),
        devices_stale: count("shef_devices_stale"),
        stale: list,
        attention: Vec::new(),
    };
    let attention = &mut document.attention;
    if !document.healthy || !document.ready {
        attention.push("the service is not ready".to_owned());
    }
    if left < WARN_DAYS {
        attention.push(format!(
            "the certificate expires in {left} days: issue a new one and send SIGHUP"
        ));
    }
    if document.version != document.client_version {
        attention.push(format!(
            "the service is of version {}, this program of {}",
            document.version, document.client_version
        ));
    }
    if let Some(stale @ 1..) = document.devices_stale {
        attention.push(format!("{stale} devices were not accepted for too long: `shef verifier status --devices` lists them"));
    }
    output.line(format_args!("service         {} version {}", document.url, document.version))?;
    let state = if document.healthy && document.ready {
        output.good("healthy, ready")
    } else {
        output.bad("not ready")
    };
    output.line(format_args!("state           {state}"))?;
    output.line(format_args!("certificate     ends in {left} days"))?;
    match (document.devices, document.devices_stale) {
        (Some(all), Some(stale)) => {
            output.line(format_args!("devices         {all}, {stale} stale"))?;
        }
        _ => output.line("devices         not shown to this role: it needs audit or operator")?,
    }
    for device in &document.stale {
        output.line(format_args!(
            "  stale         {} last accepted {}",
            device.ueid,
            device.last_appraised.map_or_else(|| "never".to_owned(), |at| at.to_string())
        ))?;
    }
    for what in &document.attention {
        output.line(format_args!("{} {what}", output.bad("attention      ")))?;
    }
    output.document(&document)?;
    Ok(if document.attention.is_empty() { Exit::Done } else { Exit::No })
}

#[cfg(test)]
mod tests {
    use super::gauge;

    #[test]
    fn gauges_are_found_by_their_whole_name() {
        let text = "# HELP shef_devices x\nshef_devices_stale 2\nshef_devices 7\n";
        assert_eq!(
            (gauge(text, "shef_devices"), gauge(text, "shef_devices_stale"), gauge(text, "shef")),
            (Some(7), Some(2), None)
        );
    }
}
