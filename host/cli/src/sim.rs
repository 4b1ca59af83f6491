//! `shef sim`: serves a simulated card as a PCI device to other processes, such as this program and
//! QEMU, and writes the trust data for its verifiers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use serde::Serialize;
use shef::sim::{
    Blank, Card, CardError, CardOptions, Control, Engine, Identity, Manufacturer, RtlOptions,
    ServeOptions, SimKernel,
};
use shef::{KeyFolder, Source, Uri};
use shef_proto::evidence::RootOfTrust;
use shef_verify::{KernelReference, Policy, ReferenceValues, ShellReference, TrustAnchor};

use shef_console::CliError;
use shef_console::Output;
use shef_console::file::{self, Outputs};
use shef_console::folder;
use shef_console::interrupt;

/// Converts an error of the card to one of the command.
pub fn card_error(error: CardError) -> CliError {
    shef::DeviceError::from(error).into()
}

#[derive(Subcommand)]
pub enum SimCommand {
    /// Serve a simulated card as a vfio-user device until the program is interrupted
    Serve(ServeArgs),
    /// Write the trust data that verifiers need to accept a simulated card: its maker's root,
    /// reference values, a policy
    Trust(TrustArgs),
}

/// Flags of `shef sim trust`.
#[derive(clap::Args)]
pub struct TrustArgs {
    /// Folder of the manufacturer's keys, as for `shef sim serve`; created if missing
    #[arg(long, value_name = "DIR")]
    manufacturer: PathBuf,
    /// Output folder: new, empty, or created by this command
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Titles of the simulated manufacturer, for devices without and with debug.
const MAKERS: [(&str, &str); 2] = [
    ("manufacturer", "shef simulated devices"),
    ("manufacturer-debug", "shef simulated devices, debug"),
];

fn maker(
    keys: &Path,
    (name, title): (&str, &str),
    entropy: &mut Source,
) -> Result<Manufacturer, CliError> {
    Ok(Manufacturer::open(KeyFolder::open(keys.join(name))?, title, now(), entropy)?)
}

fn now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}

#[derive(Serialize)]
struct Trusted {
    files: Vec<file::PathText>,
    kernel_digest: String,
    native_kernel_digest: String,
    shell_digest: String,
}

/// The files of `shef sim trust`.
const FILES: [&str; 5] =
    ["root.pem", "anchor.json", "anchors.toml", "reference.toml", "policy.toml"];

/// Runs `shef sim trust`.
fn trust(output: &Output, args: &TrustArgs) -> Result<(), CliError> {
    folder::is_ours(&args.out, &[], &FILES, |name| FILES.contains(&name))?;
    let mut entropy = Source::new(None, "")?;
    let root = maker(&args.manufacturer, MAKERS[0], &mut entropy)?.root().der().to_vec();
    let anchor = TrustAnchor::new("simulated", RootOfTrust::Simulated, false, &root)
        .map_err(shef::SdkError::from)?;
    let shell = shef::sim::shell_digest();
    let kernel = |name: &str, kernel| KernelReference {
        name: name.to_owned(),
        digest: shef::sim::kernel_digest(kernel),
        svn: shef::sim::KERNEL_SVN,
    };
    let kernels = [
        kernel("security-kernel", SimKernel::Firmware),
        kernel("native-security-kernel", SimKernel::Native),
    ];
    let [kernel_digest, native_kernel_digest] =
        kernels.each_ref().map(|kernel| shef_console::hex::encode(&kernel.digest));
    let reference = ReferenceValues {
        kernels: kernels.into(),
        shells: vec![ShellReference { name: "simulation".to_owned(), digest: shell }],
        images: Vec::new(),
    };
    let policy = Policy::strict("simulated", &[RootOfTrust::Simulated]);
    let body = STANDARD.encode(&root);
    let lines: Vec<&str> = body
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap_or_default())
        .collect();
    let pem =
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    let registration =
        serde_json::json!({"name": "simulated", "kind": "simulated", "certificate": pem});
    std::fs::create_dir_all(&args.out).map_err(|e| CliError::write_file(&args.out, &e))?;
    let texts = [
        pem,
        format!("{registration}\n"),
        anchor.to_toml(),
        reference.to_toml().map_err(shef::SdkError::from)?,
        policy.to_toml().map_err(shef::SdkError::from)?,
    ];
    let keys = MAKERS.map(|(name, _)| args.manufacturer.join(name));
    let mut outputs = Outputs::new(keys[..1].iter().map(PathBuf::as_path))?;
    let mut files = Vec::new();
    for (name, text) in FILES.into_iter().zip(texts) {
        let path = args.out.join(name);
        let slot = outputs.file(&path)?;
        outputs.fill(slot, text)?;
        files.push(path.into());
    }
    outputs.place()?;
    output.line(format_args!(
        "wrote root, reference values and policy of simulated cards to {}",
        args.out.display()
    ))?;
    output.note(
        "a simulated card protects nothing: do not register its root where real keys are released",
    );
    output.document(&Trusted {
        files,
        kernel_digest,
        native_kernel_digest,
        shell_digest: shef_console::hex::encode(&shell),
    })
}

/// The engine of a served card.
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
    /// Socket for observation and faults; by default the device's with .control
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// The engine of the card
    #[arg(long, value_enum, default_value_t = Around::Rtl)]
    device: Around,
    /// Card memory in MiB, a power of two up to 65536; pages that are never written cost nothing
    #[arg(long, value_name = "MIB", default_value_t = shef::sim::MEMORY_BYTES >> 20)]
    memory: u64,
    /// Folder of your own design, with shield.toml and shef_accel.sv (rtl)
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Keep the manufacturer's keys in this folder, so that the card is certified by the same root
    /// every time
    #[arg(long, value_name = "DIR")]
    manufacturer: Option<PathBuf>,
    /// Cycles from a read request to its first beat (rtl)
    #[arg(long, value_name = "N")]
    memory_latency: Option<u64>,
    /// Seed for random stalls of the memory (rtl)
    #[arg(long, value_name = "SEED")]
    stalls: Option<u64>,
    /// Security Kernel of the card: `firmware` by default (rtl); the model's is native
    #[arg(long, value_enum)]
    kernel: Option<Kernel>,
}

/// Security Kernel of a served card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kernel {
    /// Boot ROM and firmware, on the processor in the RTL
    Firmware,
    /// The same kernel as a function of this program, with another measurement
    Native,
}

impl From<Kernel> for SimKernel {
    fn from(kernel: Kernel) -> Self {
        match kernel {
            Kernel::Firmware => Self::Firmware,
            Kernel::Native => Self::Native,
        }
    }
}

#[derive(Serialize)]
struct Ready {
    device: String,
    control: String,
    engine: String,
    memory_bytes: u64,
}

pub fn run(output: &Output, command: &SimCommand) -> Result<(), CliError> {
    let args = match command {
        SimCommand::Serve(args) => args,
        SimCommand::Trust(args) => return trust(output, args),
    };
    let kernel = args.kernel.unwrap_or(Kernel::Firmware).into();
    let engine = match args.device {
        Around::Model if args.project.is_some() => {
            let what =
                "the model needs the accelerator in Rust, so it has no projects: use --device rtl";
            return Err(CliError::usage("SHEF-CLI-001", what));
        }
        Around::Model if args.memory_latency.is_some() || args.stalls.is_some() => {
            let what = "--memory-latency and --stalls need a device with a clock, and the model has none: use --device rtl";
            return Err(CliError::usage("SHEF-CLI-001", what));
        }
        Around::Model if args.kernel == Some(Kernel::Firmware) => {
            let what = "the model's Security Kernel is native: use --device rtl for the firmware's";
            return Err(CliError::usage("SHEF-CLI-001", what));
        }
        Around::Model => Engine::Model,
        Around::Rtl => Engine::Rtl(RtlOptions {
            memory_latency: args.memory_latency,
            stalls: args.stalls,
            project: args.project.clone(),
            // Other processes reach the card over a bus.
            dma: true,
            kernel,
            ..RtlOptions::default()
        }),
    };
    // Without a folder for the keys, they are on disk only until they are read.
    let unwritable = |e| CliError::write_file(&std::env::temp_dir(), &e);
    let scratch = tempfile::tempdir().map_err(unwritable)?;
    let keys = args.manufacturer.clone().unwrap_or_else(|| scratch.path().to_owned());
    let mut entropy = Source::new(None, "")?;
    let now = now();
    let [maker, debug_maker] = MAKERS.map(|which| maker(&keys, which, &mut entropy));
    let (maker, debug_maker) = (maker?, debug_maker?);
    scratch.close().map_err(unwritable)?;

    let socket =
        std::path::absolute(&args.socket).map_err(|e| CliError::write_file(&args.socket, &e))?;
    let control = args.control.clone().unwrap_or_else(|| Control::path_of(&socket));
    let memory_bytes = args.memory.saturating_mul(1 << 20);
    let options =
        ServeOptions { socket: socket.clone(), control: Some(control.clone()), memory_bytes };
    let simulated = match args.device {
        Around::Rtl => Uri::SimRtl { project: args.project.clone(), kernel },
        Around::Model => Uri::SimModel,
    };
    let ready = Ready {
        device: format!("vfio-user:{}", socket.display()),
        control: control.display().to_string(),
        engine: simulated.to_string(),
        memory_bytes,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut told = Ok(());
    let tell = || {
        told = interrupt::stops(&stop).and_then(|()| {
            output.line(format_args!(
                "{} is {}, control socket {}",
                ready.device, ready.engine, ready.control
            ))?;
            output.document(&ready)
        });
        if told.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let make = || -> Result<(Card, Identity), CardError> {
        let design = match &engine {
            Engine::Rtl(options) => options.clone(),
            Engine::Model | Engine::ModelOf(_) => RtlOptions::default(),
        };
        let (design_digest, accelerator, program) =
            (design.design_digest()?, design.accelerator()?, design.program()?);
        let mut blank = Blank::new(CardOptions::new(engine), &mut |text| output.note(text))?;
        let key = blank.burn(maker.device_secret(&mut entropy));
        let mut card = blank.finish(maker.certify(&key, now))?;
        card.add_debug_identity(debug_maker.device_secret(&mut entropy), |key| {
            debug_maker.certify(key, now)
        });
        let identity = Identity {
            root: maker.root().der().to_vec(),
            debug_root: debug_maker.root().der().to_vec(),
            design_digest,
            accelerator,
            program,
            engine: simulated.to_string(),
        };
        Ok((card, identity))
    };
    shef::sim::serve(&options, make, &stop, tell).map_err(card_error)?;
    told
}
