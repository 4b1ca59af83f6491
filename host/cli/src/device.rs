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
    Listed { uri: "sim:rtl?project=DIR", status: "not in this version", description: "the same around a design of your own" },
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
    map_version: String,
    shell: u32,
    clock_khz: u32,
    regions: u32,
    engine_sets: u32,
    memory_ports: u32,
    config_digest: String,
    state: u32,
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
            host.probe()?;
            let info = host.info();
            let device = host.device();
            use shef_regs::ctl;
            let shape = device.ctl_read32(ctl::SHAPE)?;
            let version = device.ctl_read32(ctl::VERSION)?;
            let digest = shef_device::mailbox::read_bytes(device, ctl::CONFIG_DIGEST, ctl::CONFIG_DIGEST_BYTES)?;
            let info = Info {
                device: info.uri,
                description: info.description,
                root_of_trust: info.root_of_trust,
                memory_bytes: info.memory_bytes,
                counts_cycles: info.counts_cycles,
                map_version: format!("{}.{}", version >> 16, version & 0xffff),
                shell: device.ctl_read32(ctl::SHELL)?,
                clock_khz: device.ctl_read32(ctl::CLOCK_KHZ)?,
                regions: ctl::SHAPE_REGIONS.get(shape),
                engine_sets: ctl::SHAPE_SETS.get(shape),
                memory_ports: ctl::SHAPE_PORTS.get(shape),
                config_digest: hex::encode(&digest),
                state: ctl::STATUS_STATE.get(device.ctl_read32(ctl::STATUS)?),
            };
            drop(spinner);
            output.line(format_args!("device          {}", info.device))?;
            output.line(format_args!("what            {}", info.description))?;
            output.line(format_args!("root of trust   {}", info.root_of_trust))?;
            output.line(format_args!("card memory     {} MiB", info.memory_bytes >> 20))?;
            output.line(format_args!("register map    {}", info.map_version))?;
            output.line(format_args!("shape           {} regions, {} engine sets, {} memory ports", info.regions, info.engine_sets, info.memory_ports))?;
            output.line(format_args!("clock           {} kHz", info.clock_khz))?;
            output.line(format_args!("config digest   {}", info.config_digest))?;
            output.line(format_args!("state           {}", info.state))?;
            output.document(&info)
        }
    }
}
