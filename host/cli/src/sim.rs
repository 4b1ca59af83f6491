//! `shef sim serve`: a simulated card as a PCI device that other processes drive, this program and QEMU among them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use serde::Serialize;
use shef::sim::{Blank, Card, CardError, CardOptions, Control, Engine, Identity, RtlOptions, ServeOptions};
use shef::{KeyFolder, Manufacturer, Source};

use crate::demo::card_error;
use crate::error::CliError;
use crate::interrupt;
use crate::output::Output;

#[derive(Subcommand)]
pub enum SimCommand {
    /// Serve a simulated card as a vfio-user device until the program is interrupted
    Serve(ServeArgs),
}

/// What a served card is built around.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Around {
    /// The Verilated RTL
    Rtl,
    /// The functional model
    Model,
}

/// Flags of `shef sim serve`.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// Socket of the device: the path in vfio-user:/PATH
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Socket for observation and faults; beside the device's, with .control, where it is absent
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// What the card is built around
    #[arg(long, value_enum, default_value_t = Around::Rtl)]
    device: Around,
    /// Card memory in MiB, a power of two up to 65536; pages that are never written cost nothing
    #[arg(long, value_name = "MIB", default_value_t = shef::sim::MEMORY_BYTES >> 20)]
    memory: u64,
    /// Keep the manufacturer's keys in this folder, so that the card is certified by the same root every time
    #[arg(long, value_name = "DIR")]
    manufacturer: Option<PathBuf>,
    /// Cycles from a read request to its first beat (rtl)
    #[arg(long, value_name = "N")]
    memory_latency: Option<u64>,
    /// Random stalls of the memory by this seed (rtl)
    #[arg(long, value_name = "SEED")]
    stalls: Option<u64>,
}

#[derive(Serialize)]
struct Ready {
    device: String,
    control: String,
    engine: &'static str,
    memory_bytes: u64,
}

pub fn run(output: &Output, command: &SimCommand) -> Result<(), CliError> {
    let SimCommand::Serve(args) = command;
    let engine = match args.device {
        Around::Model if args.memory_latency.is_some() || args.stalls.is_some() => {
            let what = "--memory-latency and --stalls need a device with a clock, and the model has none: use --device rtl";
            return Err(CliError::usage("SHEF-CLI-001", what));
        }
        Around::Model => Engine::Model,
        Around::Rtl => Engine::Rtl(RtlOptions {
            memory_latency: args.memory_latency,
            stalls: args.stalls,
            // Others reach the card over a bus.
            dma: true,
            ..RtlOptions::default()
        }),
    };
    // Keys that nobody asked to keep are on the disk only until they are read.
    let unwritable = |e| CliError::write_file(&std::env::temp_dir(), &e);
    let scratch = tempfile::tempdir().map_err(unwritable)?;
    let keys = args.manufacturer.clone().unwrap_or_else(|| scratch.path().to_owned());
    let mut entropy = Source::new(None, "")?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
    let mut open = |name: &str, title| Manufacturer::open(KeyFolder::open(keys.join(name))?, title, now, &mut entropy);
    let maker = open("manufacturer", "shef simulated devices")?;
    let debug_maker = open("manufacturer-debug", "shef simulated devices, debug")?;
    scratch.close().map_err(unwritable)?;

    let socket = std::path::absolute(&args.socket).map_err(|e| CliError::write_file(&args.socket, &e))?;
    let control = args.control.clone().unwrap_or_else(|| Control::path_of(&socket));
    let memory_bytes = args.memory.saturating_mul(1 << 20);
    let options = ServeOptions { socket: socket.clone(), control: Some(control.clone()), memory_bytes };
    let name = if args.device == Around::Rtl { "sim:rtl" } else { "sim:model" };
    let ready =
        Ready { device: format!("vfio-user:{}", socket.display()), control: control.display().to_string(), engine: name, memory_bytes };
    let stop = Arc::new(AtomicBool::new(false));
    let mut told = Ok(());
    let tell = || {
        told = interrupt::stops(&stop).and_then(|()| {
            output.line(format_args!("{} is {}, control socket {}", ready.device, ready.engine, ready.control))?;
            output.document(&ready)
        });
        if told.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let make = || -> Result<(Card, Identity), CardError> {
        let design_digest = match &engine {
            Engine::Rtl(options) => options.design_digest()?,
            _ => shef::sim::design_digest()?,
        };
        let mut blank = Blank::new(CardOptions::new(engine), &mut |text| output.note(text))?;
        let key = blank.burn(maker.device_secret(&mut entropy));
        let mut card = blank.finish(maker.certify(&key, now))?;
        card.add_debug_identity(debug_maker.device_secret(&mut entropy), |key| debug_maker.certify(key, now));
        let identity = Identity {
            root: maker.root().der().to_vec(),
            debug_root: debug_maker.root().der().to_vec(),
            design_digest,
            engine: name.to_owned(),
        };
        Ok((card, identity))
    };
    shef::sim::serve(&options, make, &stop, tell).map_err(card_error)?;
    told
}
