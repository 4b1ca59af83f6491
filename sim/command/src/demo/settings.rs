//! The demo's flags, and the settings that follow from them.

use std::path::PathBuf;

use shef::{Service, Uri};
use shef_card::{CardOptions, Control, Engine, RtlOptions, SimKernel, SimParameters};
use shef_console::CliError;
use shef_console::file::{self, Outputs};
use shef_flags::ServiceArgs;
use shef_flags::TlsArgs;
use shef_lab::attacks::{ATTACKS, Attack, Target};
use shef_lab::data::Dataset;
use shef_lab::world::Cards;
use shef_project::Jobs;

/// The digits built into the program.
const DIGITS: &[u8] = include_bytes!("../../../../tests/data/digits.csv.gz");
/// Number of their labels that a 3-nearest-neighbour classifier gets right.
const DIGITS_RIGHT: usize = 766;
/// Default number of training rows.
const TRAIN: usize = 1000;

/// Default number of cards for the attacks.
const CARDS: usize = 2;

/// Flags of `shef demo`.
#[derive(clap::Args, Debug, Clone)]
pub struct DemoArgs {
    /// Device URI: sim:rtl, sim:model, or a simulated card served by `shef sim serve`, with or
    /// without an agent
    #[arg(long, default_value = "sim:rtl")]
    pub device: String,
    /// Control socket of a served card, or a character device connected to it; by default beside
    /// the card's socket
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// Run card and agent as separate processes, this one as the owner's (sim:rtl or sim:model)
    #[arg(long, conflicts_with_all = ["control", "seed", "wave"])]
    pub remote: bool,
    /// Certificates for an agent
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Have a verifier service appraise and release the keys: `local` for a temporary one, or
    /// --verifier URL --as PREFIX for an operator's
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Your own data: 64 columns and a label, CSV or gzipped CSV
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Rows for training; the rest are classified
    #[arg(long, value_name = "N", default_value_t = TRAIN)]
    pub train: usize,
    /// Cycles from a read request to its first beat (sim:rtl)
    #[arg(long, value_name = "N")]
    pub latency: Option<u64>,
    /// Seed for random stalls of the memory (sim:rtl); cycles then include them
    #[arg(long, value_name = "SEED")]
    pub stalls: Option<u64>,
    /// Write waveforms of the honest run (sim:rtl)
    #[arg(long, value_name = "FILE.fst")]
    pub wave: Option<PathBuf>,
    /// Store everything that crossed a boundary in this folder, which is new, empty, or from an
    /// earlier run
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Store the session's keys there too; only for a simulated device
    #[arg(long, requires = "keep")]
    pub keep_secrets: bool,
    /// Draw all randomness from this seed, to compare simulated devices; refused for any other root
    /// of trust, and visible in evidence
    #[arg(long, value_name = "N", conflicts_with = "verifier")]
    pub seed: Option<u64>,
    /// Run only this attack; may be given several times, and `none` runs none
    #[arg(long, value_name = "NAME")]
    pub attack: Vec<String>,
    /// Cards of the RTL for the attacks, side by side; each boots before its first attack
    #[arg(skip = CARDS)]
    pub cards: usize,
}

impl Default for DemoArgs {
    fn default() -> Self {
        Self {
            device: "sim:rtl".to_owned(),
            control: None,
            remote: false,
            tls: TlsArgs::default(),
            service: ServiceArgs::default(),
            data: None,
            train: TRAIN,
            latency: None,
            stalls: None,
            wave: None,
            keep: None,
            keep_secrets: false,
            seed: None,
            attack: Vec::new(),
            cards: CARDS,
        }
    }
}

/// The checked settings from the flags.
pub struct Settings {
    /// The device.
    pub uri: Uri,
    /// Origin of the cards.
    pub cards: Cards,
    /// Rows to train with.
    pub train: Dataset,
    /// Rows to classify.
    pub query: Dataset,
    /// Number of labels that must be right, if it is known.
    pub expect: Option<usize>,
    /// The attacks to run.
    pub attacks: Vec<&'static Attack>,
    /// The verifier service, if the parties do not appraise.
    pub service: Option<Service>,
}

fn usage<T>(text: impl Into<String>) -> Result<T, CliError> {
    Err(CliError::new("SHEF-CLI-001", text))
}

/// Checks the flags and reads the data.
///
/// # Errors
/// Flags that do not go together, a bad URI, bad data.
pub fn settings(args: &DemoArgs) -> Result<Settings, CliError> {
    let uri: Uri = args.device.parse()?;
    let cards = cards(args, &uri)?;
    if args.control.is_some() && matches!(cards, Cards::Made(_)) {
        return usage("--control goes with a card that another process serves");
    }
    if let (None, Some(flag)) = (&args.service.verifier, args.service.given()) {
        return usage(format!("{flag} goes with --verifier"));
    }
    if args.keep_secrets && args.keep.is_none() {
        return usage("--keep-secrets goes with --keep DIR");
    }
    let (data, own) = match &args.data {
        Some(path) => {
            file::is_input(path);
            (Dataset::load(path)?, true)
        }
        None => (Dataset::parse(DIGITS, "the digits of this program")?, false),
    };
    if let (Some(wave), Cards::Made(CardOptions { design, .. })) =
        (args.wave.as_deref().or(uri.wave()), &cards)
    {
        design.kept(&Jobs::default(), [wave].into_iter()).for_each(file::is_input);
        Outputs::new([])?.elsewhere(wave)?;
    }
    let (train, query) = data.split(args.train)?;
    let expect = (!own && args.train == TRAIN).then_some(DIGITS_RIGHT);
    let attacks = attacks(args, &cards)?;
    Ok(Settings { uri, cards, train, query, expect, attacks, service: None })
}

/// The cards that the device's URI names.
fn cards(args: &DemoArgs, uri: &Uri) -> Result<Cards, CliError> {
    let timing = [
        ("--latency", args.latency.is_some()),
        ("--stalls", args.stalls.is_some()),
        ("--wave", args.wave.is_some()),
    ];
    let timing = timing.into_iter().find_map(|(flag, given)| given.then_some(flag));
    let engine = match (uri, timing) {
        (Uri::SimModel, Some(flag)) => {
            return usage(format!(
                "{flag} needs a device with a clock, and sim:model has none: use --device sim:rtl"
            ));
        }
        (Uri::SimModel, None) => Engine::Model,
        (Uri::SimRtl(SimParameters { project: Some(_), .. }), _) => {
            return usage("the demo is of the digits accelerator: use --device sim:rtl");
        }
        (Uri::SimRtl(SimParameters { seed: Some(_), .. }), _) => {
            return usage("--seed is that of all parties in the demo: use it in place of ?seed=");
        }
        (Uri::SimRtl(parameters), _) => {
            let mut parameters = parameters.clone();
            parameters.latency = args.latency.or(parameters.latency);
            parameters.stalls = args.stalls.or(parameters.stalls);
            parameters.wave = args.wave.clone().or(parameters.wave);
            Engine::Rtl(RtlOptions::from(&parameters))
        }
        (other, _) if args.seed.is_some() => {
            return usage(format!(
                "--seed is for simulated cards that this program makes, and {other} is none"
            ));
        }
        (_, Some(flag)) => {
            return usage(format!(
                "{flag} is for simulated cards that this program makes: give it to `shef sim serve`"
            ));
        }
        (other, None) => return served(args, other),
    };
    Cards::digits(engine)
}

/// A card that another process serves.
fn served(args: &DemoArgs, uri: &Uri) -> Result<Cards, CliError> {
    let control = match (uri, &args.control) {
        (_, Some(control)) => control.clone(),
        (Uri::VfioUser { socket, .. }, None) => Control::path_of(socket),
        (Uri::Pci { .. } | Uri::PciUeid { .. } | Uri::Tls { .. }, None) => {
            return usage(format!(
                "the demo needs the control socket of a simulated card behind {uri}: give it with --control"
            ));
        }
        (other, None) => {
            return Err(shef::DeviceError::NotInThisVersion { uri: other.to_string() }.into());
        }
    };
    let tls = if let Uri::VfioUser { .. } = uri { None } else { args.tls.files()? };
    Ok(Cards::Served { uri: uri.clone(), control, tls })
}

/// The attacks that the flags select, of those that these cards can suffer.
fn attacks(args: &DemoArgs, cards: &Cards) -> Result<Vec<&'static Attack>, CliError> {
    let none = args.attack.iter().any(|name| name == "none");
    for name in args.attack.iter().filter(|name| *name != "none") {
        if !ATTACKS.iter().any(|a| a.name == name) {
            let known: Vec<&str> = ATTACKS.iter().map(|a| a.name).collect();
            return usage(format!("there is no attack {name:?}; there are: {}", known.join(", ")));
        }
    }
    let boots = match cards {
        Cards::Made(options) => {
            matches!(&options.engine, Engine::Rtl(RtlOptions { kernel: SimKernel::Firmware, .. }))
        }
        Cards::Served { .. } => false,
    };
    let named = |attack: &Attack| args.attack.iter().any(|name| name == attack.name);
    if let Some(attack) = ATTACKS.iter().find(|a| a.target == Target::Boot && !boots && named(a)) {
        return usage(format!(
            "the attack {:?} is on the boot of the firmware's kernel, in this process: use --device sim:rtl",
            attack.name
        ));
    }
    let selected = ATTACKS.iter().filter(|a| {
        !none && (boots || a.target != Target::Boot) && (args.attack.is_empty() || named(a))
    });
    Ok(selected.collect())
}

/// The flags of `shef sim serve` for a card in a separate process.
///
/// # Errors
/// A device that is not made here.
pub fn card_flags(args: &DemoArgs) -> Result<Vec<String>, CliError> {
    let (device, mut parameters) = match args.device.parse()? {
        Uri::SimModel => ("model", SimParameters::default()),
        Uri::SimRtl(parameters) if parameters.project.is_none() => ("rtl", parameters),
        other => {
            return usage(format!(
                "--remote makes a card of its own: use it with sim:rtl or sim:model, not {other}"
            ));
        }
    };
    parameters.latency = args.latency.or(parameters.latency);
    parameters.stalls = args.stalls.or(parameters.stalls);
    if let Some(wave) = &parameters.wave {
        // The card's process compares it with the sources.
        args.data.iter().for_each(|data| file::is_input(data));
        Outputs::new([])?.elsewhere(wave)?;
    }
    let flags =
        parameters.given().map(|(name, value)| format!("--{name}={}", value.to_string_lossy()));
    Ok(["--device".to_owned(), device.to_owned()].into_iter().chain(flags).collect())
}
