//! `shef device list|info|doctor|reset|watch`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Subcommand;
use serde::Serialize;
use shef_device::{Iommu, Ueid, Uri};
use shef_vfio::System;

use crate::attest::{open, warn_of_end};
use crate::doctor;
use crate::simulator::{self, Missing};
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::hex;
use shef_console::output::count;
use shef_flags::TlsArgs;

#[derive(Subcommand)]
pub enum DeviceCommand {
    /// List the cards of this machine and the device URIs that this program supports
    List {
        /// Open every free card and read its ueid; this resets it
        #[arg(long)]
        ueid: bool,
        /// Root of the kernel's file systems
        #[arg(long, hide = true, default_value = "/")]
        root: PathBuf,
    },
    /// Open a device and print its description
    Info {
        /// Device URI, such as pci:0000:65:00.0
        #[arg(default_value = "sim:model")]
        device: String,
        /// Certificates for an agent
        #[command(flatten)]
        tls: TlsArgs,
    },
    /// Find what prevents a card from being opened (IOMMU, driver, group, permissions, hugepages,
    /// BARs), and name the command that fixes it
    Doctor {
        /// Card, such as pci:0000:65:00.0; defaults to all cards of this machine
        device: Option<String>,
        /// Root of the kernel's file systems
        #[arg(long, hide = true, default_value = "/")]
        root: PathBuf,
    },
    /// Reset a device: zeroises the keys in its Shield and ends sessions
    Reset {
        /// Device URI
        device: String,
        /// Certificates for an agent
        #[command(flatten)]
        tls: TlsArgs,
    },
    /// Print the state of a device whenever it changes, until the device is gone
    Watch {
        /// Device URI
        device: String,
        /// Seconds between polls
        #[arg(long, value_name = "S", default_value_t = 1.0)]
        interval: f64,
        /// Number of polls; by default, until the program is interrupted
        #[arg(long, value_name = "N")]
        count: Option<u64>,
        /// Certificates for an agent
        #[command(flatten)]
        tls: TlsArgs,
    },
}

#[derive(Serialize)]
struct Listed {
    uri: String,
    status: String,
    /// Of a card, if requested and the card could be opened.
    ueid: Option<String>,
    description: String,
    /// Why it cannot be opened now, if it cannot.
    missing: Option<Missing>,
}

/// The cards of this machine, then the supported forms of URIs.
fn list(system: &System, ueids: bool) -> Vec<Listed> {
    let ueid =
        |card: &shef_vfio::Function| Ueid::of(&mut *shef_vfio::open(card.bdf, Iommu::Any, None)?);
    let mut all: Vec<Listed> = system
        .cards()
        .iter()
        .map(|card| Listed {
            uri: format!("pci:{}", card.bdf),
            status: match shef_vfio::check::ready(
                system,
                card.bdf,
                Iommu::Any,
                shef_device::pci::IDS,
            ) {
                Ok((_, interface)) => match system.holders(interface.node()).first() {
                    Some(holder) => format!("in use by {holder}"),
                    None => "available".to_owned(),
                },
                Err(error) => format!("fault {}", error.code()),
            },
            missing: None,
            ueid: ueids.then(|| ueid(card).ok()).flatten().map(|ueid| ueid.to_string()),
            description: format!(
                "card {} in this machine, driver {}",
                card.id(),
                card.driver.as_deref().unwrap_or("none")
            ),
        })
        .collect();
    let simulated = simulator::cards();
    all.extend(FORMS.iter().map(|(uri, status, description)| {
        let missing = match &simulated {
            _ if !uri.starts_with("sim:") => None,
            Ok(cards) => cards
                .iter()
                .find(|card| uri.split('?').next() == Some(card.uri.as_str()))
                .and_then(|card| card.missing.clone()),
            Err(error) => Some(Missing::from(error)),
        };
        let fault = missing.as_ref().map(|missing| format!("fault {}", missing.code));
        Listed {
            uri: (*uri).to_owned(),
            status: fault.unwrap_or_else(|| (*status).to_owned()),
            ueid: None,
            description: (*description).to_owned(),
            missing,
        }
    }));
    all
}

/// Forms of URIs that this program can open.
const FORMS: &[(&str, &str, &str)] = &[
    ("sim:model", "available", "simulated card around the functional model"),
    ("sim:rtl", "available", "simulated card around the Verilated RTL"),
    (
        "sim:rtl?project=DIR",
        "available",
        "the same around a project; also &kernel=native&latency=N&stalls=SEED&seed=N&wave=FILE",
    ),
    ("vfio-user:/SOCKET", "form", "a card served by another process"),
    (
        "pci:DOMAIN:BUS:DEVICE.FUNCTION",
        "form",
        "a card in this machine; ?iommu=type1, iommufd or none",
    ),
    (
        "pci:ueid=UEID",
        "form",
        "the card in this machine that has this ueid, whichever slot it is in",
    ),
    ("tls://HOST:PORT/DEVICE", "form", "a card behind an agent"),
];

/// The result of one poll of a device.
#[derive(Serialize, PartialEq, Clone)]
struct State {
    kernel: &'static str,
    image: Option<String>,
    /// Absent while no image is loaded.
    shield: Option<u32>,
    stopped: bool,
    fault: u32,
}

impl State {
    fn of(host: &mut shef::Host) -> Result<Self, CliError> {
        use shef_regs::ctl;
        let status = host.kernel_status()?;
        let plain = match host.status() {
            Ok(plain) => Some(plain),
            Err(shef::SdkError::Device(shef_device::DeviceError::CtlRefused { .. })) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            kernel: status.state.name(),
            image: status.accelerator,
            shield: plain.map(|p| ctl::STATUS_STATE.get(p)),
            stopped: plain.is_some_and(|p| ctl::STATUS_STOPPED.get(p) == 1),
            fault: plain.map_or(0, |p| ctl::STATUS_FAULT_KIND.get(p)),
        })
    }
}

fn watch(
    output: &Output,
    device: &str,
    tls: &TlsArgs,
    interval: f64,
    count: Option<u64>,
) -> Result<(), CliError> {
    if !(interval.is_finite() && (0.0..=86_400.0).contains(&interval)) {
        return Err(CliError::new(
            "SHEF-CLI-001",
            "--interval is a number of seconds from 0 to 86400",
        ));
    }
    if output.json() && count.is_none() {
        return Err(CliError::new(
            "SHEF-CLI-001",
            "--json prints one document at the end: give --count",
        ));
    }
    #[derive(Serialize)]
    struct Change {
        seconds: f64,
        #[serde(flatten)]
        state: State,
    }
    let (_, mut host) = open(output, device, tls)?;
    let begin = Instant::now();
    let mut changes: Vec<Change> = Vec::new();
    let mut look = 0;
    while !output.is_closed() && count.is_none_or(|n| look < n) {
        if look > 0 {
            output.wait(Duration::from_secs_f64(interval));
            if output.is_closed() {
                break;
            }
        }
        look += 1;
        let state = State::of(&mut host)?;
        if changes.last().is_some_and(|last| last.state == state) {
            continue;
        }
        let seconds = begin.elapsed().as_secs_f64();
        output.line(format_args!(
            "{seconds:8.1} s  kernel {}, image {}, Shield {}{}",
            state.kernel,
            state.image.as_deref().unwrap_or("none"),
            state.shield.map_or_else(|| "none".to_owned(), |s| format!("state {s}")),
            if state.stopped {
                format!(", STOPPED by fault kind {}", state.fault)
            } else {
                String::new()
            }
        ))?;
        // Only the last state is needed to detect the next change; the JSON document needs all of
        // them.
        if !output.json() {
            changes.clear();
        }
        changes.push(Change { seconds, state });
    }
    output.document(&changes)
}

#[derive(Serialize)]
struct Info {
    device: String,
    description: String,
    root_of_trust: String,
    ueid: String,
    memory_bytes: u64,
    counts_cycles: bool,
    kernel: Kernel,
    /// Absent while no image is loaded.
    shield: Option<Shield>,
}

#[derive(Serialize)]
struct Kernel {
    state: &'static str,
    version: String,
    svn: u64,
    target: String,
    accelerator: Option<String>,
}

#[derive(Serialize)]
struct Shield {
    map_version: String,
    shell: u32,
    clock_khz: u32,
    regions: u32,
    engine_sets: u32,
    memory_ports: u32,
    config_digest: String,
    state: u32,
}

fn shield(host: &mut shef::Host) -> Result<Option<Shield>, CliError> {
    use shef_regs::ctl;
    match host.probe() {
        Ok(()) => {}
        // The Shield does not answer before an image is loaded.
        Err(shef::SdkError::Device(shef_device::DeviceError::CtlRefused { .. })) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    }
    let device = host.device();
    let shape = device.ctl_read32(ctl::SHAPE)?;
    let version = device.ctl_read32(ctl::VERSION)?;
    let digest =
        shef_device::mailbox::read_bytes(device, ctl::CONFIG_DIGEST, ctl::CONFIG_DIGEST_BYTES)?;
    Ok(Some(Shield {
        map_version: format!("{}.{}", version >> 16, version & 0xffff),
        shell: device.ctl_read32(ctl::SHELL)?,
        clock_khz: device.ctl_read32(ctl::CLOCK_KHZ)?,
        regions: ctl::SHAPE_REGIONS.get(shape),
        engine_sets: ctl::SHAPE_SETS.get(shape),
        memory_ports: ctl::SHAPE_PORTS.get(shape),
        config_digest: hex::encode(&digest),
        state: ctl::STATUS_STATE.get(device.ctl_read32(ctl::STATUS)?),
    }))
}

pub fn run(output: &Output, command: &DeviceCommand) -> Result<Exit, CliError> {
    match command {
        DeviceCommand::List { ueid, root } => {
            let all = list(&System::at(root), *ueid);
            for form in &all {
                output.line(format_args!(
                    "{:<32} {:<20} {}",
                    form.uri, form.status, form.description
                ))?;
                if let Some(ueid) = &form.ueid {
                    output.line(format_args!("{:<32} pci:ueid={ueid}", ""))?;
                }
            }
            // Several devices may lack the same.
            let mut told = BTreeSet::new();
            for missing in all.iter().filter_map(|form| form.missing.as_ref()) {
                if told.insert(&missing.code) {
                    output.line("")?;
                    output.line(format_args!("{}: {}", missing.code, missing.message))?;
                    output.paragraph(&format!("help: {}", missing.help))?;
                }
            }
            output.document(&all)?;
        }
        DeviceCommand::Doctor { device, root } => {
            return doctor::run(output, device.as_deref(), &System::at(root));
        }
        DeviceCommand::Reset { device, tls } => {
            let (uri, mut host) = open(output, device, tls)?;
            host.reset()?;
            let state = State::of(&mut host)?;
            output.line(format_args!(
                "{uri} was reset: kernel {}, no image, keys wiped",
                state.kernel
            ))?;
            output.document(&state)?;
        }
        DeviceCommand::Watch { device, interval, count, tls } => {
            watch(output, device, tls, *interval, *count)?;
        }
        DeviceCommand::Info { device, tls } => {
            let uri: Uri = device.parse()?;
            warn_of_end(output, &uri, tls)?;
            let spinner = output.spinner(format!("opening {uri}"));
            let mut host =
                shef::open_with(&uri, shef::OpenOptions { tls: tls.files()?, progress: None })?;
            let hint = host.info();
            let status = host.kernel_status()?;
            let info = Info {
                device: hint.uri,
                description: hint.description,
                root_of_trust: hint.root_of_trust,
                ueid: Ueid::of(host.device()).map_err(shef::SdkError::from)?.to_string(),
                memory_bytes: hint.memory_bytes,
                counts_cycles: hint.counts_cycles,
                kernel: Kernel {
                    state: status.state.name(),
                    version: status.kernel_version,
                    svn: status.kernel_svn,
                    target: status.target,
                    accelerator: status.accelerator,
                },
                shield: shield(&mut host)?,
            };
            drop(spinner);
            output.line(format_args!("device          {}", info.device))?;
            output.line(format_args!("what            {}", info.description))?;
            output.line(format_args!(
                "root of trust   {} (says the device; only evidence shows it)",
                info.root_of_trust
            ))?;
            output.line(format_args!("ueid            {} (says the device)", info.ueid))?;
            output.line(format_args!("card memory     {} MiB", info.memory_bytes >> 20))?;
            output.line(format_args!(
                "kernel          {}, version {}, SVN {}, target {}",
                info.kernel.state, info.kernel.version, info.kernel.svn, info.kernel.target
            ))?;
            match &info.shield {
                None => output.line("Shield          none: no image is loaded")?,
                Some(s) => {
                    output.line(format_args!("register map    {}", s.map_version))?;
                    output.line(format_args!(
                        "shape           {}, {}, {}",
                        count(s.regions, "region"),
                        count(s.engine_sets, "engine set"),
                        count(s.memory_ports, "memory port")
                    ))?;
                    output.line(format_args!("clock           {} kHz", s.clock_khz))?;
                    output.line(format_args!("config digest   {}", s.config_digest))?;
                    output.line(format_args!("state           {}", s.state))?;
                }
            }
            output.document(&info)?;
        }
    }
    Ok(Exit::Done)
}
