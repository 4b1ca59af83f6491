//! `shef sim serve`: serves a simulated card as a PCI device to other processes, such as `shef` and
//! QEMU.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use shef::{KeyFolder, Manufacturer, Source, Uri};
use shef_card::{
    Blank, Card, CardError, CardOptions, Control, Design, Engine, Identity, RtlOptions,
    ServeOptions, SimKernel, SimParameters, SimShell,
};
use shef_console::file::{Outputs, is_input};
use shef_console::{CliError, Output, folder, interrupt, output};
use shef_device::pci::f2::Medium;
use shef_flags::WaveArgs;
use shef_lab::world::card;
use shef_project::Jobs;

use crate::makers::{MAKERS, maker, now};
use crate::trust;

/// Cycles without a transfer after which an accelerator is reported as stuck.
const STUCK: u64 = 1_000_000;

/// The engine of a served card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DeviceKind {
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
    #[arg(long, value_enum, default_value_t = DeviceKind::Rtl)]
    device: DeviceKind,
    /// Card memory in MiB, a power of two up to 65536; pages that are never written cost nothing
    #[arg(long, value_name = "MIB", default_value_t = shef_card::MEMORY_BYTES >> 20)]
    memory: u64,
    /// Folder of a project, in place of the digits accelerator (rtl)
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Keep the manufacturer's keys in this folder, so that the card is certified by the same root
    /// every time
    #[arg(long, value_name = "DIR")]
    manufacturer: Option<PathBuf>,
    /// Cycles from a read request to its first beat (rtl)
    #[arg(long, value_name = "N")]
    latency: Option<u64>,
    /// Seed for a memory with random stalls, latencies and order of responses (rtl)
    #[arg(long, value_name = "SEED")]
    stalls: Option<u64>,
    /// Seed for random contents of registers and memories at the start; it needs another build (rtl)
    #[arg(long, value_name = "SEED")]
    contents: Option<u64>,
    /// Security Kernel of the card: `firmware` by default (rtl); the model's is native
    #[arg(long, value_enum)]
    kernel: Option<Kernel>,
    /// Shell around the design: `plain` by default, or the model of AWS F2's (rtl)
    #[arg(long, value_enum)]
    shell: Option<Shell>,
    /// The card waits for a host that boots it, as on AWS F2: writes its boot medium (kernel.img,
    /// kernel.sig, device-id.der) to this folder, for ?boot= of the URI (--shell f2, --kernel native)
    #[arg(long, value_name = "DIR")]
    boot: Option<PathBuf>,
    /// Seed for the card's randomness, which evidence reports (rtl)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Check the accelerator's ports from the start, and print each broken rule on stderr (rtl)
    #[arg(
        long,
        value_name = "1",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = ["1"]
    )]
    check: Option<String>,
    #[command(flatten)]
    waves: WaveArgs,
    /// Also stop when standard input closes, and then remove the folder of the socket if it is empty
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Security Kernel of a served card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kernel {
    /// Boot ROM and firmware, on the processor in the RTL
    Firmware,
    /// The same kernel as a function of this program, with another measurement
    Native,
}

/// Shell of a served card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Shell {
    /// A test bench at the ports of the design
    Plain,
    /// The custom logic for AWS F2 in the model of its shell
    F2,
}

impl From<Shell> for SimShell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Plain => Self::Plain,
            Shell::F2 => Self::AwsF2,
        }
    }
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
    trust: Trust,
}

/// Trust data for the card.
#[derive(Serialize)]
struct Trust {
    /// As in `anchors.toml` of `shef sim trust`.
    anchors: String,
    /// As in `reference.toml`.
    reference: String,
}

impl ServeArgs {
    /// Those that a URI has, too.
    fn parameters(&self) -> SimParameters {
        let mut parameters = SimParameters {
            project: self.project.clone(),
            kernel: self.kernel.unwrap_or(Kernel::Firmware).into(),
            shell: self.shell.unwrap_or(Shell::Plain).into(),
            latency: self.latency,
            stalls: self.stalls,
            contents: self.contents,
            seed: self.seed,
            check: self.check.is_some(),
            ..SimParameters::default()
        };
        self.waves.apply(&mut parameters);
        parameters
    }

    /// The card's engine and design.
    fn options(&self) -> Result<CardOptions, CliError> {
        let wrong = |what: &str| Err(CliError::new("SHEF-CLI-001", what));
        let parameters = self.parameters();
        let bootable = (SimShell::AwsF2, SimKernel::Native);
        if self.boot.is_some() && (parameters.shell, parameters.kernel) != bootable {
            return wrong(
                "--boot is for a card in the shell of AWS F2 with a native kernel: \
                 use --shell f2 --kernel native",
            );
        }
        let engine = match self.device {
            DeviceKind::Model if self.project.is_some() => {
                return wrong(
                    "the model needs the accelerator in Rust, so it has no projects: use --device rtl",
                );
            }
            DeviceKind::Model if self.kernel == Some(Kernel::Firmware) => {
                return wrong(
                    "the model's Security Kernel is native: use --device rtl for the firmware's",
                );
            }
            DeviceKind::Model => {
                if let Some((name, _)) = parameters.given().find(|(name, _)| *name != "kernel") {
                    return wrong(&format!("--{name} is of the RTL: use --device rtl"));
                }
                Engine::Model
            }
            // Other processes reach the card over a bus.
            DeviceKind::Rtl => Engine::Rtl(RtlOptions {
                dma: true,
                host_boots: self.boot.is_some(),
                ..RtlOptions::from(&parameters)
            }),
        };
        let design = match &self.project {
            Some(folder) => Design::project(folder),
            None => Design::digits(),
        };
        let options = CardOptions::new(engine, design.map_err(card)?);
        Ok(CardOptions { seed: self.seed, ..options })
    }
}

/// Runs `shef sim serve`.
///
/// # Errors
/// Wrong flags, errors of the card and of its sockets.
pub fn run(output: &Output, args: &ServeArgs) -> Result<(), CliError> {
    let card_options = args.options()?;
    let mut entropy = Source::new(None, "")?;
    let now = now();
    let keys = args.manufacturer.as_deref();
    let [maker, debug_maker] = MAKERS.map(|which| maker(keys, which, &mut entropy));
    let (maker, debug_maker) = (maker?, debug_maker?);
    if let Some(wave) = &args.waves.wave {
        waves(wave, &card_options.design, [&maker, &debug_maker])?;
    }
    let boot = args.boot.as_deref().map(Boot::new).transpose()?;

    let socket =
        std::path::absolute(&args.socket).map_err(|e| CliError::write_file(&args.socket, &e))?;
    let control = args.control.clone().unwrap_or_else(|| Control::path_of(&socket));
    let memory_bytes = args.memory.saturating_mul(1 << 20);
    let mapped = args.shell != Some(Shell::F2);
    let (device, control_path) = (socket.clone(), Some(control.clone()));
    let host_boots = boot.is_some();
    let options =
        ServeOptions { socket: device, control: control_path, memory_bytes, mapped, host_boots };
    let simulated = card_options.uri();
    let ready = Ready {
        device: Uri::VfioUser { socket, boot: boot.as_ref().map(|boot| boot.folder.clone()) }
            .to_string(),
        control: control.display().to_string(),
        engine: simulated.to_string(),
        memory_bytes,
        trust: Trust {
            anchors: trust::anchor(maker.root().der()).map_err(shef::SdkError::from)?.to_toml(),
            reference: trust::reference().to_toml().map_err(shef::SdkError::from)?,
        },
    };
    let stop = Arc::new(AtomicBool::new(false));
    if args.until_stdin_closes {
        stops_with_stdin(&stop);
    }
    let mut told = Ok(());
    let tell = || {
        let signals = if args.until_stdin_closes {
            // Its reader ends this process, after a last use of the card.
            interrupt::leaves_terminal(&stop)
        } else {
            interrupt::stops(&stop)
        };
        let written = signals.and_then(|()| boot.as_ref().map_or(Ok(()), Boot::write));
        told = written.and_then(|()| {
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
        let design = card_options.design.clone();
        let program = design.program()?;
        let mut blank = Blank::new(card_options, &mut |text| output.note(text))?;
        let key = blank.burn(maker.device_secret(&mut entropy));
        let mut card = blank.finish(maker.certify(&key, now))?;
        // `--quiet` hides no report: the user turned the checker on.
        card.probe().on_report(|report| output::warn(report));
        card.probe().on_stuck(STUCK, |progress| {
            let waits = progress.waits();
            output::warn(format_args!(
                "no transfer at the accelerator's ports for {STUCK} cycles: {waits}"
            ));
        });
        if let Some(boot) = &boot {
            let _ = boot.files.set(card.boot_files());
        }
        card.add_debug_identity(debug_maker.device_secret(&mut entropy), |key| {
            debug_maker.certify(key, now)
        });
        let identity = Identity {
            root: maker.root().der().to_vec(),
            debug_root: debug_maker.root().der().to_vec(),
            design_digest: design.digest(),
            accelerator: design.name().to_owned(),
            program,
            engine: simulated.to_string(),
        };
        Ok((card, identity))
    };
    shef_card::serve(&options, make, &stop, tell).map_err(card)?;
    if let (true, Some(folder)) = (args.until_stdin_closes, options.socket.parent()) {
        // Only an empty folder can be removed.
        let _ = std::fs::remove_dir(folder);
    }
    told
}

/// File of a folder of boot media that only simulated cards have used. A card holds it while it is
/// served.
const SIMULATED: &str = "simulated-card";

/// The folder of the card's boot medium.
struct Boot {
    folder: PathBuf,
    /// [`SIMULATED`], locked.
    held: OnceLock<File>,
    /// Contents of [`Medium::FILES`], once the card has an identity.
    files: OnceLock<[Vec<u8>; 3]>,
}

impl Boot {
    /// Checks that the folder is new, empty, or of an earlier simulated card: a medium of a real card
    /// may be the only copy of its certificate.
    fn new(folder: &Path) -> Result<Self, CliError> {
        let ours = |name: &str| name == SIMULATED || Medium::FILES.contains(&name);
        folder::is_ours(folder, &[], &[SIMULATED], ours)?;
        let folder = std::path::absolute(folder).map_err(|e| CliError::write_file(folder, &e))?;
        Ok(Self { folder, held: OnceLock::new(), files: OnceLock::new() })
    }

    /// Takes the folder: the medium of a card that is served stays as it is.
    fn hold(&self) -> Result<(), CliError> {
        let mark = self.folder.join(SIMULATED);
        let failed = |e: std::io::Error| CliError::write_file(&mark, &e);
        let file = File::options().create(true).append(true).open(&mark).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => drop(self.held.set(file)),
            Err(TryLockError::WouldBlock) => {
                let folder = self.folder.display();
                let text = format!(
                    "{folder} is the folder of a card that is served: expected another folder for --boot"
                );
                return Err(CliError::new("SHEF-CLI-027", text));
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        Ok(())
    }

    fn write(&self) -> Result<(), CliError> {
        let Some(files) = self.files.get() else { return Ok(()) };
        std::fs::create_dir_all(&self.folder)
            .map_err(|e| CliError::write_file(&self.folder, &e))?;
        self.hold()?;
        let mut outputs = Outputs::new([])?;
        for (name, bytes) in Medium::FILES.iter().zip(files) {
            let slot = outputs.file(&self.folder.join(name))?;
            outputs.fill(slot, bytes)?;
        }
        outputs.place()
    }
}

/// Checks that a file for waves can be written, and is neither a file of the project nor a key.
fn waves(file: &Path, design: &Design, makers: [&Manufacturer; 2]) -> Result<(), CliError> {
    let jobs = design.folder().map(|folder| Jobs::read(folder, design.config()));
    let jobs = jobs.transpose().map_err(|e| CliError::new(e.code(), e.to_string()))?;
    design.kept(&jobs.unwrap_or_default(), [file].into_iter()).for_each(is_input);
    let keys = makers.into_iter().filter_map(Manufacturer::folder);
    Outputs::new(keys.map(KeyFolder::path))?.elsewhere(file)
}

/// From now on the end of standard input sets `stop`.
fn stops_with_stdin(stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while matches!(std::io::stdin().read(&mut bytes), Ok(1..)) {}
        stop.store(true, Ordering::Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn a_folder_with_the_medium_of_another_card_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let boot = |folder: &Path, text: &[u8]| {
            let boot = Boot::new(folder)?;
            boot.files.set([text.to_vec(), text.to_vec(), text.to_vec()]).unwrap();
            boot.write().map(|()| boot)
        };
        let image = |folder: &Path| std::fs::read(folder.join(Medium::FILES[0])).unwrap();
        // A real card's.
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        Medium::FILES.iter().for_each(|name| std::fs::write(real.join(name), "real").unwrap());
        assert_eq!(boot(&real, b"x").err().unwrap().code, "SHEF-CLI-027");
        assert_eq!(image(&real), b"real");
        // A simulated card's, while it is served and afterwards.
        let folder = dir.path().join("sim");
        let served = boot(&folder, b"first").unwrap();
        assert_eq!(boot(&folder, b"second").err().unwrap().code, "SHEF-CLI-027");
        assert_eq!(image(&folder), b"first");
        drop(served);
        boot(&folder, b"second").unwrap();
        assert_eq!(image(&folder), b"second");
    }

    #[test]
    fn a_host_boots_a_native_kernel_in_the_shell_of_f2() {
        for flags in [&["--shell", "f2"][..], &["--kernel", "native"], &["--device", "model"]] {
            let command = ServeArgs::augment_args(clap::Command::new("serve"));
            let all = ["serve", "--socket", "/card", "--boot", "/boot"];
            let matches = command.try_get_matches_from(all.iter().chain(flags)).unwrap();
            let error = ServeArgs::from_arg_matches(&matches).unwrap().options().err().unwrap();
            assert_eq!(error.code, "SHEF-CLI-001");
            assert!(error.message.contains("--shell f2 --kernel native"), "{}", error.message);
        }
    }

    #[test]
    fn a_uri_and_the_flags_have_the_same_names() {
        let command = ServeArgs::augment_args(clap::Command::new("serve"));
        for row in SimParameters::TABLE {
            let flag = command.get_arguments().find(|arg| arg.get_long() == Some(row.name));
            assert!(flag.is_some(), "{}", row.name);
        }
    }
}
