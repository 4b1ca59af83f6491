//! The demo, `shef demo`: the complete workflow on real digits with a simulated card, then every
//! attack.
//!
//! Parties, accelerator and attacks are public, so that tests can use them.

pub mod attacks;
mod bench;
pub mod data;
mod keep;
pub mod knn;
mod local;
mod process;
pub mod reference;
pub mod remote;
pub mod report;
pub mod world;

use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};
use shef::sim::{BareCard, Control, Engine, RtlOptions, SimKernel};
use shef::{Host, Uri};
use shef_proto::channel::Counter;
use shef_regs::ctl;
use shef_seal::OpenPolicy;

use attacks::{ATTACKS, Attack, Lab, Target};
use data::Dataset;
use keep::Keep;
use local::Local;
use remote::Remote;
use report::{AttackResult, Cycles, Digits, Report, Sealed, Step};
use shef_console::CliError;
use shef_console::Exit;
use shef_console::hex;
use shef_console::interrupt;
use shef_console::output::{Output, Spinner, count};
use shef_console::service::ServiceArgs;
use shef_console::tls::TlsArgs;
use world::{Bench, Cards, Plan, World};

/// The digits built into the program.
const DIGITS: &[u8] = include_bytes!("../../../tests/data/digits.csv.gz");
/// Number of their labels that a 3-nearest-neighbour classifier gets right.
const DIGITS_RIGHT: usize = 766;
/// Default number of training rows.
const TRAIN: usize = 1000;
/// Maximum cycles of a bare run.
const BARE_LIMIT: u64 = 1 << 32;
/// Rows of the small jobs that attacks run.
const SMALL: (usize, usize) = (64, 32);
/// Default seed of the memory's stalls during attacks.
const ATTACK_STALLS: u64 = 1;

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
    pub memory_latency: Option<u64>,
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
            memory_latency: None,
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

/// Runs the command.
///
/// # Errors
/// Wrong flags, bad data, and errors that prevent the honest run. A successful attack is no error
/// but an exit status of 1.
pub fn run(output: &Output, args: &DemoArgs) -> Result<Exit, CliError> {
    let dir = folder()?;
    interrupt::removes(dir.path())?;
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
        output.error(&CliError {
            code: "SHEF-CLI-020".into(),
            message: format!("failed: {}", failed.join(", ")),
            exit: Exit::No,
        });
        return Ok(Exit::No);
    }
    if !undetected.is_empty() {
        output.error(&CliError {
            code: "SHEF-CLI-021".into(),
            message: format!("not refused: {}", undetected.join(", ")),
            exit: Exit::No,
        });
        return Ok(Exit::No);
    }
    Ok(Exit::Done)
}

/// The checked settings from the flags.
struct Settings {
    uri: Uri,
    cards: Cards,
    train: Dataset,
    query: Dataset,
    expect: Option<usize>,
    attacks: Vec<&'static Attack>,
    service: Option<shef::Service>,
}

fn settings(args: &DemoArgs) -> Result<Settings, CliError> {
    let uri: Uri = args.device.parse()?;
    let usage = |text: String| Err(CliError::usage("SHEF-CLI-001", text));
    let timing = [
        ("--memory-latency", args.memory_latency.is_some()),
        ("--stalls", args.stalls.is_some()),
        ("--wave", args.wave.is_some()),
    ];
    let timing = timing.into_iter().find_map(|(flag, given)| given.then_some(flag));
    let cards = match (&uri, timing) {
        (Uri::SimModel, Some(flag)) => {
            return usage(format!(
                "{flag} needs a device with a clock, and sim:model has none: use --device sim:rtl"
            ));
        }
        (Uri::SimModel, None) => Cards::Made(Engine::Model),
        (Uri::SimRtl { project: None, kernel }, _) => Cards::Made(Engine::Rtl(RtlOptions {
            kernel: *kernel,
            memory_latency: args.memory_latency,
            stalls: args.stalls,
            wave: args.wave.clone(),
            ..RtlOptions::default()
        })),
        (Uri::SimRtl { project: Some(_), .. }, _) => {
            return usage("the demo is of the digits accelerator: use --device sim:rtl".to_owned());
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
        (Uri::VfioUser { socket }, None) => {
            let control = args.control.clone().unwrap_or_else(|| Control::path_of(socket));
            Cards::Served { uri: uri.clone(), control, tls: None }
        }
        (Uri::Pci { .. } | Uri::PciUeid { .. } | Uri::Tls { .. }, None) => match &args.control {
            Some(control) => {
                Cards::Served { uri: uri.clone(), control: control.clone(), tls: args.tls.files()? }
            }
            None => {
                return usage(format!(
                    "the demo needs the control socket of a simulated card behind {uri}: give it with --control"
                ));
            }
        },
        (other, None) => {
            return Err(shef::DeviceError::NotInThisVersion { uri: other.to_string() }.into());
        }
    };
    if args.control.is_some() && matches!(cards, Cards::Made(_)) {
        return usage("--control goes with a card that another process serves".to_owned());
    }
    if args.keep_secrets && args.keep.is_none() {
        return usage("--keep-secrets goes with --keep DIR".to_owned());
    }
    let (data, own) = match &args.data {
        Some(path) => (Dataset::load(path)?, true),
        None => (Dataset::parse(DIGITS, "the digits of this program")?, false),
    };
    let (train, query) = data.split(args.train)?;
    let expect = (!own && args.train == TRAIN).then_some(DIGITS_RIGHT);
    let none = args.attack.iter().any(|name| name == "none");
    for name in args.attack.iter().filter(|name| *name != "none") {
        if !ATTACKS.iter().any(|a| a.name == name) {
            let known: Vec<&str> = ATTACKS.iter().map(|a| a.name).collect();
            return usage(format!("there is no attack {name:?}; there are: {}", known.join(", ")));
        }
    }
    let boots =
        matches!(&cards, Cards::Made(Engine::Rtl(RtlOptions { kernel: SimKernel::Firmware, .. })));
    let named = |attack: &Attack| args.attack.iter().any(|name| name == attack.name);
    if let Some(attack) = ATTACKS.iter().find(|a| a.target == Target::Boot && !boots && named(a)) {
        return usage(format!(
            "the attack {:?} is on the boot of the firmware's kernel, in this process: use --device sim:rtl",
            attack.name
        ));
    }
    let attacks = ATTACKS
        .iter()
        .filter(|a| {
            !none && (boots || a.target != Target::Boot) && (args.attack.is_empty() || named(a))
        })
        .collect();
    Ok(Settings { uri, cards, train, query, expect, attacks, service: None })
}

/// The flags of `shef sim serve` for a card in a separate process.
fn card_flags(args: &DemoArgs) -> Result<Vec<String>, CliError> {
    let device = match args.device.parse()? {
        Uri::SimModel => "model",
        Uri::SimRtl { project: None, .. } => "rtl",
        other => {
            return Err(CliError::usage(
                "SHEF-CLI-001",
                format!(
                    "--remote makes a card of its own: use it with sim:rtl or sim:model, not {other}"
                ),
            ));
        }
    };
    let mut flags = vec!["--device".to_owned(), device.to_owned()];
    for (flag, value) in [("--memory-latency", args.memory_latency), ("--stalls", args.stalls)] {
        flags.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value.to_string()]));
    }
    Ok(flags)
}

/// Runs everything and returns the report.
///
/// # Errors
/// As [`run`].
pub fn demo(output: &Output, args: &DemoArgs) -> Result<Report, CliError> {
    demo_in(output, args, folder()?.path())
}

/// A temporary folder for keys and sockets.
fn folder() -> Result<tempfile::TempDir, CliError> {
    tempfile::tempdir().map_err(|e| CliError::write_file(&std::env::temp_dir(), &e))
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
        let (memory_latency, stalls) = (None, None);
        let args = DemoArgs {
            device,
            control: Some(remote.control.clone()),
            remote: false,
            tls,
            memory_latency,
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
    let mut flow = honest(output, args, &settings, dir, keep.as_mut())?;
    let attacks = all_attacks(output, args, &settings, dir)?;
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

fn ms(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Prints and collects steps.
struct Steps<'a> {
    output: &'a Output,
    list: Vec<Step>,
    begin: Instant,
    cycles: Option<u64>,
}

impl<'a> Steps<'a> {
    fn new(output: &'a Output) -> Self {
        Self { output, list: Vec::new(), begin: Instant::now(), cycles: None }
    }

    /// Starts a step at this cycle of the device.
    fn begin(&mut self, cycles: Option<u64>) {
        self.begin = Instant::now();
        self.cycles = cycles;
    }

    /// Ends the step.
    fn end(
        &mut self,
        name: &'static str,
        ok: bool,
        cycles: Option<u64>,
        detail: impl Into<String>,
    ) -> Result<(), CliError> {
        let cycles = match (self.cycles, cycles) {
            (Some(from), Some(to)) => Some(to - from),
            _ => None,
        };
        self.add(Step { name, ok, ms: ms(self.begin), cycles, detail: detail.into() })
    }

    /// Records a finished step.
    fn add(&mut self, step: Step) -> Result<(), CliError> {
        let mark = if step.ok { self.output.good("ok  ") } else { self.output.bad("FAIL") };
        let shown = step.cycles.map_or(String::new(), |c| format!("{c} cycles"));
        self.output.line(format_args!(
            "{:>2} {mark} {:<20} {:>6} ms {shown:>15}  {}",
            self.list.len() + 1,
            step.name,
            step.ms,
            step.detail
        ))?;
        self.list.push(step);
        Ok(())
    }
}

/// Name and description of a part of the boot.
fn boot_stage(stage: &str) -> (&'static str, &'static str) {
    match stage {
        "clear" => ("boot-clear", "hardware clears all memory of the Security Kernel's processor"),
        "measure" => {
            ("boot-measure", "boot ROM copies the kernel image and measures what will run")
        }
        "verify" => ("boot-verify", "signature and security version of the kernel image"),
        _ => (
            "boot-identify",
            "device secret read and locked, keys derived, attestation key certified; the kernel starts",
        ),
    }
}

fn honest(
    output: &Output,
    args: &DemoArgs,
    settings: &Settings,
    dir: &Path,
    mut keep: Option<&mut Keep>,
) -> Result<Report, CliError> {
    let (train, query) = (&settings.train, &settings.query);
    let mut steps = Steps::new(output);
    let plan = Plan {
        cards: settings.cards.clone(),
        seed: args.seed,
        name: "demo".to_owned(),
        service: settings.service.clone(),
    };

    // 1: the manufacturer makes a device; its boot code measures the kernel.
    let spinner = output.spinner("making a device");
    let mut world = World::new(&dir.join("demo"), plan)?;
    let (mut host, bench) = world.card(&mut |text| spinner.message(text))?;
    if keep.is_some() {
        host.record();
    }
    let certificates = host.certificates()?;
    drop(spinner);
    let now = |bench: &Bench| bench.cycles();
    steps.end(
        "device",
        certificates.len() == 2,
        None,
        "UDS, DeviceID certificate, measured Security Kernel, attestation key",
    )?;

    let booted = bench.kernel();
    for stage in booted.iter().flat_map(|kernel| &kernel.boot) {
        let (name, detail) = boot_stage(stage.name);
        steps.add(Step {
            name,
            ok: true,
            ms: stage.ms,
            cycles: Some(stage.cycles),
            detail: detail.to_owned(),
        })?;
    }

    // 2: the vendor's container.
    steps.begin(now(&bench));
    let image = world.image().clone();
    let parsed =
        shef_proto::image::Container::parse(&image.container).map_err(shef::SdkError::from)?;
    steps.end(
        "image",
        true,
        now(&bench),
        format!(
            "{} bytes in {}, SVN {}, design {}",
            image.container.len(),
            count(parsed.chunks().len(), "chunk"),
            image.description.svn,
            short(&image.description.design_digest)
        ),
    )?;

    // 3: kernel round.
    steps.begin(now(&bench));
    let release = world.release(&mut host)?;
    let root_of_trust = release.verified.claims().root_of_trust.name().to_owned();
    let loaded = host.load_image(image.container.clone(), release.key_box.clone())?;
    let ok = loaded.image_digest == image.digest;
    steps.end(
        "kernel-attestation",
        ok,
        now(&bench),
        format!(
            "{}, root of trust {root_of_trust}, image {} loaded",
            release.appraised,
            short(&loaded.image_digest)
        ),
    )?;

    // 4: Shield round.
    steps.begin(now(&bench));
    let spinner = output.spinner("the Shield derives its key pair");
    let session = world.attest(&mut host)?;
    drop(spinner);
    let evidence = session.evidence().to_vec();
    let head = match session.appraised() {
        shef::Appraised::ByService { head, .. } => Some(*head),
        shef::Appraised::Here(_) => None,
    };
    let challenge = session.challenge().clone();
    let shield_key = session.verified().shield_key().xy();
    steps.end(
        "shield-attestation",
        true,
        bench.cycles(),
        format!("{}, Shield key {}", session.appraised(), short(&shield_key)),
    )?;

    // 5: Load Key.
    steps.begin(bench.cycles());
    let spinner = output.spinner("the Shield opens the Load Key");
    let mut session = world.key(session)?;
    drop(spinner);
    if args.keep_secrets {
        session.expose_secrets()?;
    }
    let transcript = session.transcript();
    steps.end(
        "load-key",
        true,
        bench.cycles(),
        format!("confirmed by the Shield, session {}", short(&transcript[..16])),
    )?;

    // 6: seal and upload.
    steps.begin(bench.cycles());
    let b = attacks::buffers(&session)?;
    attacks::upload(&mut session, &b, train, query)?;
    let mut sealed = Sealed { transcript: hex::encode(&transcript), ..Sealed::default() };
    let inputs = [
        (b.train.region().clone(), knn::train_image(train).len()),
        (b.query.region().clone(), query.rows.len() * data::PIXELS),
    ];
    sealed.inputs = memory_digest(session.host(), &inputs)?;
    steps.end(
        "seal",
        true,
        bench.cycles(),
        format!(
            "{} training rows, {} queries, ciphertext and tags in card memory",
            train.rows.len(),
            query.rows.len()
        ),
    )?;

    // 7: compute.
    steps.begin(bench.cycles());
    let spinner = output.spinner("the accelerator computes");
    session.read_register(knn::reg::ID).map_err(CliError::from).and_then(|id| {
        if id == knn::ID {
            Ok(())
        } else {
            Err(CliError::internal(format!(
                "the accelerator's identification is {id:#x}, expected {:#x}",
                knn::ID
            )))
        }
    })?;
    for (addr, value) in knn::job(
        b.train.addr(),
        b.query.addr(),
        b.result.addr(),
        train.rows.len(),
        query.rows.len(),
    ) {
        session.write_register(addr, value)?;
    }
    let start = bench.cycles();
    session.write_register(knn::reg::CTRL, 1)?;
    let status = session.wait_register(knn::reg::STATUS, knn::DONE | knn::ERROR)?;
    session.flush()?;
    let shielded = start.zip(bench.last_write_cycle()).map(|(from, to)| to.saturating_sub(from));
    drop(spinner);
    steps.end(
        "compute",
        status & knn::ERROR == 0,
        bench.cycles(),
        format!(
            "k-nearest-neighbour, k = 3, over {} x {} rows",
            train.rows.len(),
            query.rows.len()
        ),
    )?;

    // 8: statement, then results.
    steps.begin(bench.cycles());
    let statement = session.statement()?;
    let len = knn::result_len(query.rows.len());
    let opened = session.open(&b.result, &statement, len, OpenPolicy::default())?;
    let mut statistics = Vec::new();
    for set in 0..session.config().sets().len() {
        let counted = session.statistics(set as u8)?;
        output.detail(format_args!(
            "engine set {set}: {} chunks fetched, {} sealed; {} beats read, {} written",
            counted.get(Counter::ChunksFetched),
            counted.get(Counter::ChunksSealed),
            counted.get(Counter::BeatsRead),
            counted.get(Counter::BeatsWritten)
        ));
        statistics.push(Counter::ALL.into_iter().map(|c| (c.name(), counted.get(c))).collect());
    }
    let answers = knn::answers(&opened.data[..len], query.rows.len()).unwrap_or_default();
    let expected = reference::classify_all(train, query);
    let correct = answers.iter().zip(&query.labels).filter(|(a, l)| a.label == **l).count();
    let digits =
        Digits { tested: query.rows.len(), correct, equal_to_reference: answers == expected };
    let outputs = [(b.result.region().clone(), len)];
    sealed.results = memory_digest(session.host(), &outputs)?;
    if let Some(at) = (0..expected.len()).find(|i| answers.get(*i) != expected.get(*i)) {
        output.note(format_args!(
            "query {at}: accelerator says {:?}, reference {:?}",
            answers.get(at),
            expected.get(at)
        ));
    }
    if let Some(keep) = keep.as_deref_mut() {
        keep.session(&session)?;
        keep.memory(session.host(), &inputs)?;
        keep.memory(session.host(), &outputs)?;
    }
    let right = settings.expect.is_none_or(|n| n == correct);
    let page = statement.region(b.result.region().id);
    steps.end(
        "results",
        digits.equal_to_reference && right,
        bench.cycles(),
        format!(
            "statement: epoch {}, {}, {} written; {correct} of {} labels right, {} the CPU reference",
            page.map_or(0, |p| p.epoch),
            count(statement.shield().faults, "fault"),
            count(page.map_or(0, |p| p.written), "chunk"),
            digits.tested,
            if digits.equal_to_reference { "all equal to" } else { "not equal to" }
        ),
    )?;

    // 9: close.
    steps.begin(bench.cycles());
    let closed = session.close()?;
    let record = host.close_record()?;
    let countersigned = closed.verify_record(&record);
    let ran = bench.kernel();
    let wiped = wiped(&mut host)?;
    steps.end(
        "close",
        countersigned.is_ok() && wiped,
        bench.cycles(),
        format!(
            "last words after {} requests, {} faults; keys wiped: {}; record countersigned: {}",
            closed.last.requests,
            closed.last.faults,
            if wiped { "confirmation and state read back as gone" } else { "NO" },
            if countersigned.is_ok() { "yes" } else { "NO" }
        ),
    )?;

    // 10: the same without a Shield.
    steps.begin(None);
    let bare = match &settings.cards {
        Cards::Made(Engine::Rtl(rtl)) => {
            let spinner = output.spinner("the same accelerator without a Shield");
            let (cycles, same) = bare(rtl, train, query, &expected, &spinner)?;
            drop(spinner);
            let per_cycle =
                (train.rows.len() * data::PIXELS * query.rows.len().div_ceil(knn::BATCH)) as f64
                    / cycles.max(1) as f64;
            steps.cycles = Some(0);
            steps.end(
                "bare",
                same,
                Some(cycles),
                format!("the same results; reads its training set at {per_cycle:.1} B/cycle"),
            )?;
            Some(cycles)
        }
        Cards::Made(_) => {
            steps.end("bare", true, None, "the model has no clock: nothing to compare")?;
            None
        }
        Cards::Served { .. } => {
            steps.end("bare", true, None, "the card is in another process: nothing to compare")?;
            None
        }
    };
    let kernel = report::Kernel {
        runs_on: match (&settings.cards, &booted) {
            (Cards::Served { .. }, _) => "served",
            (_, Some(_)) => "rtl",
            (_, None) => "native",
        },
        image_file: booted
            .as_ref()
            .map(|_| shef::sim::repository().join("attestation/firmware/kernel.img").into()),
        digest_in_evidence: hex::encode(&release.verified.claims().kernel_digest),
        boot_cycles: booted
            .as_ref()
            .map(|kernel| kernel.boot.iter().map(|stage| stage.cycles).sum()),
        cycles: booted.as_ref().zip(ran).map(|(from, to)| to.cycles - from.cycles),
    };
    if let Some(keep) = keep {
        keep.evidence(
            "kernel",
            &release.evidence,
            release.challenge.nonce(),
            release.challenge.audience(),
        )?;
        keep.evidence("shield", &evidence, challenge.nonce(), challenge.audience())?;
        keep.parties(&world, &image, &release.key_box, &certificates)?;
        if let Some(service) = &settings.service {
            keep.service(service)?;
        }
        keep.close_record(&record)?;
        keep.messages(&host.take_records())?;
    }
    Ok(Report {
        device: settings.uri.to_string(),
        root_of_trust,
        verifier: settings.service.as_ref().zip(head).map(|(service, head)| report::Verifier {
            url: service.url().to_owned(),
            head: format!("{}:{}", head.seq, hex::encode(&head.digest)),
        }),
        seeded: args.seed.is_some(),
        kernel,
        steps: steps.list,
        digits,
        attacks: Vec::new(),
        cycles: Cycles { shielded, bare },
        statistics,
        sealed,
        ms: 0,
    })
}

/// Checks that no state of the session can be read back: state, confirmation, and the answer to a
/// request in its channel.
fn wiped(host: &mut Host) -> Result<bool, CliError> {
    let status = host.status()?;
    let confirm =
        shef_device::mailbox::read_bytes(host.device(), ctl::CONFIRM, ctl::CONFIRM_BYTES)?;
    let mut request = [0; shef_proto::channel::MESSAGE_LEN];
    request[7] = 1;
    let (_, refused) = host.ring(&request)?;
    Ok(ctl::STATUS_STATE.get(status) == ctl::STATUS_STATE_CLOSED
        && confirm.iter().all(|b| *b == 0)
        && refused)
}

fn short(bytes: &[u8]) -> String {
    hex::encode(&bytes[..bytes.len().min(8)])
}

/// SHA-256 over ciphertext and tags at the start of these regions.
fn memory_digest(
    host: &mut Host,
    parts: &[(shef_proto::config::Region, usize)],
) -> Result<String, CliError> {
    let mut hash = Sha256::new();
    for (region, len) in parts {
        let chunks = (*len as u64).div_ceil(u64::from(region.chunk));
        let mut data = vec![0; (chunks * u64::from(region.chunk)) as usize];
        let mut tags = vec![0; (chunks * shef_proto::config::TAG_LEN) as usize];
        host.device().mem_read(region.base, &mut data)?;
        host.device().mem_read(region.tag_base, &mut tags)?;
        hash.update(&data);
        hash.update(&tags);
    }
    Ok(hex::encode(&hash.finalize()))
}

/// Runs the accelerator without a Shield: returns the cycles, and whether its results match the
/// reference.
fn bare(
    options: &RtlOptions,
    train: &Dataset,
    query: &Dataset,
    expected: &[reference::Answer],
    spinner: &Spinner,
) -> Result<(u64, bool), CliError> {
    const QUERY: u64 = 0x10_0000;
    const RESULT: u64 = 0x20_0000;
    let mut card =
        BareCard::new(options, &mut |text| spinner.message(text)).map_err(world::card)?;
    card.mem_write(0, &knn::train_image(train));
    card.mem_write(QUERY, &query.pixels());
    for (addr, value) in knn::job(0, QUERY, RESULT, train.rows.len(), query.rows.len()) {
        card.reg_write(addr, value).map_err(world::card)?;
    }
    let cycles = card
        .run(knn::reg::CTRL, 1, knn::reg::STATUS, knn::DONE | knn::ERROR, BARE_LIMIT)
        .map_err(world::card)?;
    let mut bytes = vec![0; knn::result_len(query.rows.len())];
    card.mem_read(RESULT, &mut bytes);
    Ok((cycles, knn::answers(&bytes, query.rows.len()).as_deref() == Some(expected)))
}

// ---- attacks ----

fn all_attacks(
    output: &Output,
    args: &DemoArgs,
    settings: &Settings,
    dir: &Path,
) -> Result<Vec<AttackResult>, CliError> {
    if settings.attacks.is_empty() {
        return Ok(Vec::new());
    }
    output.line("")?;
    output.line(output.heading("attacks"))?;
    let cards = match &settings.cards {
        // Attacks run with random stalls of the memory, each on the card as the previous attack
        // left it.
        Cards::Made(Engine::Rtl(rtl)) => Cards::Made(Engine::Rtl(RtlOptions {
            stalls: Some(rtl.stalls.unwrap_or(ATTACK_STALLS)),
            wave: None,
            ..rtl.clone()
        })),
        other => other.clone(),
    };
    let train = settings.train.head(SMALL.0);
    let query = settings.query.head(SMALL.1);
    let workers = match cards {
        Cards::Made(Engine::Model | Engine::ModelOf(_)) | Cards::Served { .. } => 1,
        Cards::Made(Engine::Rtl(_)) => {
            std::thread::available_parallelism().map_or(1, usize::from).min(args.cards.max(1))
        }
    };
    let spinner = output.spinner(format!("{} attacks", settings.attacks.len()));
    let list = &settings.attacks;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results: std::sync::Mutex<Vec<Option<AttackResult>>> =
        std::sync::Mutex::new(list.iter().map(|_| None).collect());
    let failures: Vec<CliError> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..workers)
            .map(|worker| {
                let (cards, service) = (cards.clone(), settings.service.clone());
                let (train, query, next, results) = (&train, &query, &next, &results);
                let dir = dir.join(format!("attacks-{worker}"));
                scope.spawn(move || -> Result<(), CliError> {
                    let mut world = World::new(
                        &dir,
                        Plan { cards, seed: args.seed, name: format!("attacks-{worker}"), service },
                    )?;
                    let (mut host, bench) = world.card(&mut |_| {})?;
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(attack) = list.get(at) else { return Ok(()) };
                        let result =
                            one_attack(attack, &mut world, &mut host, &bench, train, query);
                        if let Ok(mut results) = results.lock() {
                            results[at] = Some(result);
                        }
                    }
                })
            })
            .collect();
        handles
            .into_iter()
            .filter_map(|h| {
                h.join().unwrap_or_else(|_| Err(CliError::internal("a worker stopped"))).err()
            })
            .collect()
    });
    drop(spinner);
    if let Some(error) = failures.into_iter().next() {
        return Err(error);
    }
    let results: Vec<AttackResult> = results
        .into_inner()
        .map_err(|_| CliError::internal("a worker stopped"))?
        .into_iter()
        .flatten()
        .collect();
    for result in &results {
        let mark = if result.detected && result.words_delivered == 0 {
            output.good("refused")
        } else {
            output.bad("FAILED ")
        };
        output.line(format_args!(
            "{mark} {:<27} {:<13} {} words  {:>5} ms  {}",
            result.name, result.code, result.words_delivered, result.ms, result.title
        ))?;
        output.detail(format_args!("        {}", result.detail));
    }
    output.line("")?;
    Ok(results)
}

fn one_attack(
    attack: &Attack,
    world: &mut World,
    host: &mut Host,
    bench: &Bench,
    train: &Dataset,
    query: &Dataset,
) -> AttackResult {
    let begin = Instant::now();
    let from = bench.cycles();
    host.corrupt(Box::new(shef::Honest));
    let ready = match attack.target {
        Target::Session => world.ready(host),
        Target::Load | Target::Boot => host.reset(),
    };
    let outcome = ready.map_err(CliError::from).and_then(|()| {
        bench.unwatch()?;
        let outcome = (attack.run)(&mut Lab { world, host, bench, train, query })?;
        Ok((outcome, bench.words_delivered()?))
    });
    let (detected, words_delivered, code, detail) = match outcome {
        Ok((outcome, words)) => (outcome.detected, words, outcome.code, outcome.detail),
        // An error that an attack does not expect is not a detection.
        Err(error) => {
            (false, bench.words_delivered().unwrap_or(0), error.code.to_string(), error.message)
        }
    };
    AttackResult {
        name: attack.name,
        title: attack.title,
        detected,
        words_delivered,
        code,
        detail,
        ms: ms(begin),
        cycles: from.zip(bench.cycles()).map(|(from, to)| to - from),
    }
}
