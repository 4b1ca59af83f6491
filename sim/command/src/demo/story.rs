//! The honest run, step by step, from the making of a device to the close of the session.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use sha2::{Digest, Sha256};
use shef::{Attested, Closed, Host, Image, Keyed, Release, Session};
use shef_card::{BareCard, CardOptions, Engine, KernelView, RtlOptions};
use shef_console::output::{Output, count};
use shef_console::{CliError, hex};
use shef_lab::attacks;
use shef_lab::data;
use shef_lab::probe::Probe;
use shef_lab::reference;
use shef_lab::world::{Cards, Plan, World, card};
use shef_lab::{Buffers, knn};
use shef_proto::channel::Counter;
use shef_proto::config::Region;
use shef_proto::load::SessionKeys;
use shef_regs::ctl;
use shef_seal::OpenPolicy;

use super::keep::Keep;
use super::report::{self, Cycles, Digits, Report, Sealed};
use super::settings::{DemoArgs, Settings};
use super::steps::{Ended, Steps, ms};

/// Maximum cycles of a bare run.
const BARE_LIMIT: u64 = 1 << 32;

/// What every step may use.
struct Context<'a> {
    output: &'a Output,
    args: &'a DemoArgs,
    settings: &'a Settings,
}

/// The parties and the device.
struct Stage {
    world: World,
    host: Host,
    probe: Probe,
    certificates: Vec<Vec<u8>>,
    booted: Option<KernelView>,
}

/// Statistics of each engine set, by the counter's name.
type Statistics = Vec<BTreeMap<&'static str, u64>>;

/// What the session's steps find.
#[derive(Default)]
struct Found {
    evidence: Vec<u8>,
    challenge: Option<shef::Challenge>,
    /// Position in a verifier service's log.
    verifier: Option<report::Verifier>,
    sealed: Sealed,
    digits: Option<Digits>,
    statistics: Statistics,
    /// Keys of the session, if they are kept.
    keys: Option<SessionKeys>,
    shielded: Option<u64>,
}

/// Runs all steps and returns the report, without attacks.
///
/// # Errors
/// Errors that prevent the honest run.
pub fn tell(
    output: &Output,
    args: &DemoArgs,
    settings: &Settings,
    dir: &Path,
    mut keep: Option<&mut Keep>,
) -> Result<Report, CliError> {
    let context = Context { output, args, settings };
    let mut steps = Steps::new(output);
    let mut stage = device(&context, dir, keep.is_some(), &mut steps)?;
    let image = stage.world.image().clone();
    steps.run("image", &stage.probe, || container(&image))?;
    let begun = Steps::begin(Some(&stage.probe));
    let (release, ended) = kernel_attestation(&mut stage, &image)?;
    steps.end("kernel-attestation", &begun, &stage.probe, ended)?;

    let mut found = Found::default();
    let Stage { world, host, probe, certificates, booted } = &mut stage;
    let session = begin(&context, world, host, probe, &mut steps, &mut found)?;
    let session = compute(&context, session, probe, &mut steps, &mut found, keep.as_deref_mut())?;

    let begun = Steps::begin(Some(probe));
    let closed = session.close()?;
    let record = host.close_record()?;
    let ran = probe.kernel();
    if let Some(keep) = keep.as_deref_mut() {
        keep.messages(&probe.tap().stop_recording())?;
    }
    let ended = close(&closed, &record, host)?;
    steps.end("close", &begun, probe, ended)?;

    let bare = without_a_shield(&context, &mut steps)?;
    if let Some(keep) = keep {
        let challenge = &release.challenge;
        keep.evidence("kernel", &release.evidence, challenge.nonce(), challenge.audience())?;
        if let Some(challenge) = &found.challenge {
            keep.evidence("shield", &found.evidence, challenge.nonce(), challenge.audience())?;
        }
        keep.parties(world, &image, &release.key_box, certificates)?;
        if let Some(service) = &settings.service {
            keep.service(service)?;
        }
        keep.close_record(&record)?;
    }
    let claims = release.verified.claims();
    Ok(Report {
        device: settings.uri.to_string(),
        root_of_trust: claims.root_of_trust.name().to_owned(),
        verifier: found.verifier,
        seeded: args.seed.is_some(),
        kernel: kernel(settings, claims.kernel_digest, booted.as_ref(), ran.as_ref()),
        steps: steps.list(),
        digits: found.digits.ok_or_else(|| CliError::internal("no digits were classified"))?,
        attacks: Vec::new(),
        cycles: Cycles { shielded: found.shielded, bare },
        statistics: found.statistics,
        sealed: found.sealed,
        ms: 0,
    })
}

// ---- device, image, kernel ----

/// 1: the manufacturer makes a device; its boot code measures the kernel.
fn device(
    context: &Context<'_>,
    dir: &Path,
    record: bool,
    steps: &mut Steps<'_>,
) -> Result<Stage, CliError> {
    let begun = Instant::now();
    let plan = Plan {
        cards: context.settings.cards.clone(),
        seed: context.args.seed,
        name: "demo".to_owned(),
        service: context.settings.service.clone(),
    };
    let spinner = context.output.spinner("making a device");
    let mut world = World::new(&dir.join("demo"), plan)?;
    let (mut host, probe) = world.card(&mut |text| spinner.message(text))?;
    if record {
        probe.tap().record();
    }
    let certificates = host.certificates()?;
    drop(spinner);
    let detail = "UDS, DeviceID certificate, measured Security Kernel, attestation key";
    steps.add("device", ms(begun), None, Ended::new(certificates.len() == 2, detail))?;
    let booted = probe.kernel();
    for stage in booted.iter().flat_map(|kernel| &kernel.boot) {
        let (name, detail) = boot_stage(stage.name);
        steps.add(name, stage.ms, Some(stage.cycles), Ended::new(true, detail))?;
    }
    Ok(Stage { world, host, probe, certificates, booted })
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

/// 2: the vendor's container.
fn container(image: &Image) -> Result<Ended, CliError> {
    let parsed =
        shef_proto::image::Container::parse(&image.container).map_err(shef::SdkError::from)?;
    Ok(Ended::new(
        true,
        format!(
            "{} bytes in {}, SVN {}, design {}",
            image.container.len(),
            count(parsed.chunks().len(), "chunk"),
            image.description.svn,
            short(&image.description.design_digest)
        ),
    ))
}

/// 3: the vendor appraises the kernel and releases the image's key to it.
fn kernel_attestation(stage: &mut Stage, image: &Image) -> Result<(Release, Ended), CliError> {
    let release = stage.world.release(&mut stage.host)?;
    let loaded = stage.host.load_image(&image.container, &release.key_box)?;
    let detail = format!(
        "{}, root of trust {}, image {} loaded",
        release.appraised,
        release.verified.claims().root_of_trust.name(),
        short(&loaded.image_digest)
    );
    Ok((release, Ended::new(loaded.image_digest == image.digest, detail)))
}

// ---- session ----

/// 4 and 5: the owner appraises the Shield and gives it a Load Key.
fn begin<'h>(
    context: &Context<'_>,
    world: &mut World,
    host: &'h mut Host,
    probe: &Probe,
    steps: &mut Steps<'_>,
    found: &mut Found,
) -> Result<Session<'h, Keyed>, CliError> {
    let begun = Steps::begin(Some(probe));
    let spinner = context.output.spinner("the Shield derives its key pair");
    let session = world.attest(host)?;
    drop(spinner);
    steps.end("shield-attestation", &begun, probe, attested(context, &session, found))?;

    let begun = Steps::begin(Some(probe));
    let spinner = context.output.spinner("the Shield opens the Load Key");
    let session = world.key(session)?;
    drop(spinner);
    if context.args.keep_secrets {
        found.keys = Some(world.session_keys()?);
    }
    let transcript = session.transcript();
    found.sealed.transcript = hex::encode(&transcript);
    let detail = format!("confirmed by the Shield, session {}", short(&transcript[..16]));
    steps.end("load-key", &begun, probe, Ended::new(true, detail))?;
    Ok(session)
}

fn attested(context: &Context<'_>, session: &Session<'_, Attested>, found: &mut Found) -> Ended {
    found.evidence = session.evidence().to_vec();
    found.challenge = Some(session.challenge().clone());
    if let (Some(service), shef::Appraised::ByService { head, .. }) =
        (&context.settings.service, session.appraised())
    {
        found.verifier = Some(report::Verifier {
            url: service.url().to_owned(),
            head: format!("{}:{}", head.seq, hex::encode(&head.digest)),
        });
    }
    let key = session.verified().shield_key().xy();
    Ended::new(true, format!("{}, Shield key {}", session.appraised(), short(&key)))
}

/// 6 to 8: data in, computation, results out.
fn compute<'h>(
    context: &Context<'_>,
    mut session: Session<'h, Keyed>,
    probe: &Probe,
    steps: &mut Steps<'_>,
    found: &mut Found,
    keep: Option<&mut Keep>,
) -> Result<Session<'h, Keyed>, CliError> {
    let Settings { train, query, .. } = context.settings;
    let b = attacks::buffers(&session)?;
    let inputs = [
        (b.train.region().clone(), knn::train_image(train).len()),
        (b.query.region().clone(), query.rows.len() * data::PIXELS),
    ];
    let outputs = [(b.result.region().clone(), knn::result_len(query.rows.len()))];

    steps.run("seal", probe, || {
        attacks::upload(&mut session, &b, train, query)?;
        found.sealed.inputs = memory_digest(session.host(), &inputs)?;
        let detail = format!(
            "{} training rows, {} queries, ciphertext and tags in card memory",
            train.rows.len(),
            query.rows.len()
        );
        Ok(Ended::new(true, detail))
    })?;
    steps.run("compute", probe, || launch(context, &mut session, &b, probe, found))?;
    steps.run("results", probe, || {
        let ended = results(context, &mut session, &b, found)?;
        found.sealed.results = memory_digest(session.host(), &outputs)?;
        if let Some(keep) = keep {
            keep.session(&session, found.keys.as_ref())?;
            keep.memory(session.host(), &inputs)?;
            keep.memory(session.host(), &outputs)?;
        }
        Ok(ended)
    })?;
    Ok(session)
}

fn launch(
    context: &Context<'_>,
    session: &mut Session<'_, Keyed>,
    b: &Buffers,
    probe: &Probe,
    found: &mut Found,
) -> Result<Ended, CliError> {
    let Settings { train, query, .. } = context.settings;
    let spinner = context.output.spinner("the accelerator computes");
    let id = session.read_register(knn::reg::ID)?;
    if id != knn::ID {
        return Err(CliError::internal(format!(
            "the accelerator's identification is {id:#x}, expected {:#x}",
            knn::ID
        )));
    }
    let (rows, queries) = (train.rows.len(), query.rows.len());
    for (addr, value) in knn::job(b.train.addr(), b.query.addr(), b.result.addr(), rows, queries) {
        session.write_register(addr, value)?;
    }
    let start = probe.cycles();
    session.write_register(knn::reg::CTRL, 1)?;
    let status = session.wait_register(knn::reg::STATUS, knn::DONE | knn::ERROR)?;
    session.flush()?;
    found.shielded = start.zip(probe.last_write_cycle()).map(|(from, to)| to.saturating_sub(from));
    drop(spinner);
    let detail = format!("k-nearest-neighbour, k = 3, over {rows} x {queries} rows");
    Ok(Ended::new(status & knn::ERROR == 0, detail))
}

fn results(
    context: &Context<'_>,
    session: &mut Session<'_, Keyed>,
    b: &Buffers,
    found: &mut Found,
) -> Result<Ended, CliError> {
    let Settings { train, query, expect, .. } = context.settings;
    let statement = session.statement()?;
    let len = knn::result_len(query.rows.len());
    let opened = session.open(&b.result, &statement, len, OpenPolicy::default())?;
    found.statistics = statistics(context.output, session)?;
    let answers = knn::answers(&opened.data[..len], query.rows.len()).unwrap_or_default();
    let expected = reference::classify_all(train, query);
    if let Some(at) = (0..expected.len()).find(|i| answers.get(*i) != expected.get(*i)) {
        context.output.note(format_args!(
            "query {at}: accelerator says {:?}, reference {:?}",
            answers.get(at),
            expected.get(at)
        ));
    }
    let correct = answers.iter().zip(&query.labels).filter(|(a, l)| a.label == **l).count();
    let digits =
        Digits { tested: query.rows.len(), correct, equal_to_reference: answers == expected };
    let right = digits.equal_to_reference && expect.is_none_or(|n| n == correct);
    let page = statement.region(b.result.region().id);
    let detail = format!(
        "statement: epoch {}, {}, {} written; {correct} of {} labels right, {} the CPU reference",
        page.map_or(0, |p| p.epoch),
        count(statement.shield().faults, "fault"),
        count(page.map_or(0, |p| p.written), "chunk"),
        digits.tested,
        if digits.equal_to_reference { "all equal to" } else { "not equal to" }
    );
    found.digits = Some(digits);
    Ok(Ended::new(right, detail))
}

/// Statistics of each engine set, by the counter's name.
fn statistics(output: &Output, session: &mut Session<'_, Keyed>) -> Result<Statistics, CliError> {
    let mut all = Vec::new();
    for set in 0..session.config().sets().len() {
        let counted = session.statistics(set as u8)?;
        output.detail(format_args!(
            "engine set {set}: {} chunks fetched, {} sealed; {} beats read, {} written",
            counted.get(Counter::ChunksFetched),
            counted.get(Counter::ChunksSealed),
            counted.get(Counter::BeatsRead),
            counted.get(Counter::BeatsWritten)
        ));
        all.push(Counter::ALL.into_iter().map(|c| (c.name(), counted.get(c))).collect());
    }
    Ok(all)
}

// ---- end ----

/// 9: the Shield's last words, countersigned by the kernel, and no state left behind.
fn close(closed: &Closed, record: &[u8], host: &mut Host) -> Result<Ended, CliError> {
    let countersigned = closed.verify_record(record).is_ok();
    let wiped = wiped(host)?;
    let detail = format!(
        "last words after {} requests, {} faults; keys wiped: {}; record countersigned: {}",
        closed.last.requests,
        closed.last.faults,
        if wiped { "confirmation and state read back as gone" } else { "NO" },
        if countersigned { "yes" } else { "NO" }
    );
    Ok(Ended::new(countersigned && wiped, detail))
}

/// Checks that no state of the session can be read back: state, confirmation, and the answer to a
/// request in its channel.
fn wiped(host: &mut Host) -> Result<bool, CliError> {
    let status = host.status()?;
    let confirm =
        shef_device::mailbox::read_bytes(host.device(), ctl::CONFIRM, ctl::CONFIRM_BYTES)?;
    let mut request = [0; shef_proto::channel::MESSAGE_LEN];
    request[7] = 1;
    let (_, refused) = host.exchange(&request)?;
    Ok(ctl::STATUS_STATE.get(status) == ctl::STATUS_STATE_CLOSED
        && confirm.iter().all(|b| *b == 0)
        && refused)
}

/// 10: the same accelerator without a Shield. Returns its cycles.
fn without_a_shield(context: &Context<'_>, steps: &mut Steps<'_>) -> Result<Option<u64>, CliError> {
    let begun = Instant::now();
    let settings = context.settings;
    let nothing = match &settings.cards {
        Cards::Made(CardOptions { engine: Engine::Rtl(rtl), design, .. }) => {
            let spinner = context.output.spinner("the same accelerator without a Shield");
            let rtl = RtlOptions { wave: None, ..rtl.clone() };
            let bare_card = BareCard::new(design, &rtl, &mut |text| spinner.message(text));
            let (cycles, same) = bare(bare_card.map_err(card)?, settings)?;
            drop(spinner);
            let (rows, queries) = (settings.train.rows.len(), settings.query.rows.len());
            let read = rows * data::PIXELS * queries.div_ceil(knn::BATCH);
            let per_cycle = read as f64 / cycles.max(1) as f64;
            let detail =
                format!("the same results; reads its training set at {per_cycle:.1} B/cycle");
            steps.add("bare", ms(begun), Some(cycles), Ended::new(same, detail))?;
            return Ok(Some(cycles));
        }
        Cards::Made(_) => "the model has no clock: nothing to compare",
        Cards::Served { .. } => "the card is in another process: nothing to compare",
    };
    steps.add("bare", ms(begun), None, Ended::new(true, nothing))?;
    Ok(None)
}

/// Runs the accelerator without a Shield: returns the cycles, and whether its results match the
/// reference.
fn bare(mut bare: BareCard, settings: &Settings) -> Result<(u64, bool), CliError> {
    const QUERY: u64 = 0x10_0000;
    const RESULT: u64 = 0x20_0000;
    let Settings { train, query, .. } = settings;
    bare.mem_write(0, &knn::train_image(train));
    bare.mem_write(QUERY, &query.pixels());
    for (addr, value) in knn::job(0, QUERY, RESULT, train.rows.len(), query.rows.len()) {
        bare.reg_write(addr, value).map_err(card)?;
    }
    let cycles = bare
        .run(knn::reg::CTRL, 1, knn::reg::STATUS, knn::DONE | knn::ERROR, BARE_LIMIT)
        .map_err(card)?;
    let mut bytes = vec![0; knn::result_len(query.rows.len())];
    bare.mem_read(RESULT, &mut bytes);
    let expected = reference::classify_all(train, query);
    Ok((cycles, knn::answers(&bytes, query.rows.len()) == Some(expected)))
}

/// The Security Kernel of the run.
fn kernel(
    settings: &Settings,
    digest: [u8; 32],
    booted: Option<&KernelView>,
    ran: Option<&KernelView>,
) -> report::Kernel {
    report::Kernel {
        runs_on: match (&settings.cards, booted) {
            (Cards::Served { .. }, _) => "served",
            (_, Some(_)) => "rtl",
            (_, None) => "native",
        },
        image_file: booted
            .map(|_| shef_card::repository().join("attestation/firmware/kernel.img").into()),
        digest_in_evidence: hex::encode(&digest),
        boot_cycles: booted.map(|kernel| kernel.boot.iter().map(|stage| stage.cycles).sum()),
        cycles: booted.zip(ran).map(|(from, to)| to.cycles - from.cycles),
    }
}

fn short(bytes: &[u8]) -> String {
    hex::encode(&bytes[..bytes.len().min(8)])
}

/// SHA-256 over ciphertext and tags at the start of these regions.
fn memory_digest(host: &mut Host, parts: &[(Region, usize)]) -> Result<String, CliError> {
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
