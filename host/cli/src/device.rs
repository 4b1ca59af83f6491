//! `shef device list|info`.

use clap::Subcommand;
use serde::Serialize;
use shef_device::Uri;

use crate::error::CliError;
use crate::hex;
use crate::output::Output;

#[derive(Subcommand)]
pub enum DeviceCommand {
    /// List the devices that this program can open, and the forms that it knows
    List,
    /// Open a device and print what it says about itself
    Info {
        /// Device URI, as sim:rtl
        #[arg(default_value = "sim:model")]
        device: String,
    },
}

#[derive(Serialize)]
struct Listed {
    uri: &'static str,
    status: &'static str,
    description: &'static str,
}

/// Forms of URIs, and whether this version opens them.
const FORMS: &[Listed] = &[
    Listed { uri: "sim:model", status: "available", description: "simulated card around the functional model" },
    Listed { uri: "sim:rtl", status: "available", description: "simulated card around the Verilated RTL" },
    Listed { uri: "sim:rtl?project=DIR", status: "available", description: "the same around a design of your own" },
    Listed { uri: "vfio-user:/SOCKET", status: "not in this version", description: "a card served by another process" },
    Listed { uri: "pci:DOMAIN:BUS:DEVICE.FUNCTION", status: "not in this version", description: "a card in this machine" },
    Listed { uri: "tls://HOST:PORT/DEVICE", status: "not in this version", description: "a card behind an agent" },
];

#[derive(Serialize)]
struct Info {
    device: String,
    description: String,
    root_of_trust: String,
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
        // Nothing answers there before an image is loaded.
        Err(shef::SdkError::Device(shef_device::DeviceError::CtlRefused { .. })) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let device = host.device();
    let shape = device.ctl_read32(ctl::SHAPE)?;
    let version = device.ctl_read32(ctl::VERSION)?;
    let digest = shef_device::mailbox::read_bytes(device, ctl::CONFIG_DIGEST, ctl::CONFIG_DIGEST_BYTES)?;
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

pub fn run(output: &Output, command: &DeviceCommand) -> Result<(), CliError> {
    match command {
        DeviceCommand::List => {
            for form in FORMS {
                output.line(format_args!("{:<32} {:<20} {}", form.uri, form.status, form.description))?;
            }
            output.document(&FORMS)
        }
        DeviceCommand::Info { device } => {
            let uri: Uri = device.parse()?;
            let spinner = output.spinner(format!("opening {uri}"));
            let mut host = shef::open(&uri)?;
            let hint = host.info();
            let status = host.kernel_status()?;
            let info = Info {
                device: hint.uri,
                description: hint.description,
                root_of_trust: hint.root_of_trust,
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
            output.line(format_args!("root of trust   {} (says the device; only evidence shows it)", info.root_of_trust))?;
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
                        "shape           {} regions, {} engine sets, {} memory ports",
                        s.regions, s.engine_sets, s.memory_ports
                    ))?;
                    output.line(format_args!("clock           {} kHz", s.clock_khz))?;
                    output.line(format_args!("config digest   {}", s.config_digest))?;
                    output.line(format_args!("state           {}", s.state))?;
                }
            }
            output.document(&info)
        }
    }
}
