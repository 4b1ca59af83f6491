//! Attacks by a dishonest host, memory or customer of the vendor, and the checks that refuse them.
//!
//! Each attack runs only the steps that it needs. Attacks on a session start from a loaded image
//! and a Shield with a new seed: if an attack leaves its session open, or the Shield gets no new
//! seed, the next one fails. All others start from a reset.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use shef::{Host, Keyed, SdkError, Session};
use shef_card::BootFault;
use shef_proto::channel::{FaultKind, MESSAGE_LEN, ShieldRequest};
use shef_proto::evidence::RootOfTrust;
use shef_proto::load::first_epochs;
use shef_regs::ctl;
use shef_seal::OpenPolicy;

use crate::data::Dataset;
use crate::reference;
use crate::tap::{MessageKind, Record, Tap};
use crate::world::{Probe, World};
use crate::{Buffers, knn};
use shef_console::CliError;

/// Result of an attack.
pub struct Outcome {
    /// Whether the attack was refused as required, and the rest of the claim holds.
    pub detected: bool,
    /// Code of the component that refused.
    pub code: String,
    /// Observed details.
    pub detail: String,
}

/// The phase that an attack targets, which determines the state of the card at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A session: the image is loaded and the Shield has a new seed.
    Session,
    /// The load of an image: the card was reset.
    Load,
    /// The boot of the firmware's kernel, on a card of this process that was reset.
    Boot,
}

/// An attack.
pub struct Attack {
    /// Stable name.
    pub name: &'static str,
    /// One line for the report.
    pub title: &'static str,
    /// Runs the attack.
    pub run: fn(&mut Lab) -> Result<Outcome, CliError>,
    /// The attacked part.
    pub target: Target,
}

impl Attack {
    const fn on(
        target: Target,
        name: &'static str,
        title: &'static str,
        run: fn(&mut Lab) -> Result<Outcome, CliError>,
    ) -> Self {
        Self { name, title, run, target }
    }
}

/// Everything that an attack may use.
pub struct Lab<'a> {
    /// The honest parties.
    pub world: &'a mut World,
    /// The card in the dishonest host.
    pub host: &'a mut Host,
    /// The controls that only a simulated card has.
    pub probe: &'a Probe,
    /// A few rows to train with.
    pub train: &'a Dataset,
    /// A few rows to classify.
    pub query: &'a Dataset,
}

/// All attacks, in the order in which they are printed.
pub const ATTACKS: &[Attack] = &[
    Attack::on(
        Target::Session,
        "ciphertext-bit-flip",
        "one bit of a sealed chunk flipped in card memory",
        |lab| memory(lab, Tamper::FlipData, FaultKind::Tag),
    ),
    Attack::on(Target::Session, "tag-bit-flip", "one bit of a tag flipped in card memory", |lab| {
        memory(lab, Tamper::FlipTag, FaultKind::Tag)
    }),
    Attack::on(Target::Session, "zero-tag", "a tag replaced by zeros", |lab| {
        memory(lab, Tamper::ZeroTag, FaultKind::Tag)
    }),
    Attack::on(
        Target::Session,
        "chunks-swapped",
        "two chunks swapped together with their tags",
        |lab| memory(lab, Tamper::Swap, FaultKind::Tag),
    ),
    Attack::on(
        Target::Session,
        "chunk-moved-to-other-region",
        "a sealed result moved with its tag to where a query lies",
        moved_region,
    ),
    Attack::on(
        Target::Session,
        "old-session-replayed",
        "chunk and tag of an earlier session put back",
        old_session,
    ),
    Attack::on(
        Target::Session,
        "old-epoch-replayed",
        "chunk and tag of an earlier epoch put back",
        old_epoch,
    ),
    Attack::on(
        Target::Session,
        "register-forged",
        "a sealed register command changed on its way",
        register_forged,
    ),
    Attack::on(
        Target::Session,
        "register-replayed",
        "an earlier start command sent again",
        register_replayed,
    ),
    Attack::on(
        Target::Session,
        "load-key-replayed",
        "an earlier Load Key sent again, into the session and into a new one",
        load_key_replayed,
    ),
    Attack::on(
        Target::Session,
        "load-key-for-other-shield",
        "a Load Key made for another Shield's key",
        load_key_other,
    ),
    Attack::on(
        Target::Session,
        "shield-key-swapped",
        "the host's own key put into the Shield's evidence",
        key_swapped,
    ),
    Attack::on(
        Target::Session,
        "evidence-old-nonce",
        "evidence of an earlier challenge sent again",
        old_nonce,
    ),
    Attack::on(
        Target::Load,
        "image-byte-changed",
        "one byte of the image changed on its way to the kernel",
        image_changed,
    ),
    Attack::on(
        Target::Load,
        "image-lower-svn",
        "an older image of the same vendor, with a lower SVN",
        image_old,
    ),
    Attack::on(
        Target::Load,
        "debug-device",
        "a device with debug on, under a policy for production",
        debug_device,
    ),
    Attack::on(
        Target::Load,
        "simulator-as-hardware",
        "a simulator's certificates under an anchor for hardware",
        simulator_as_hardware,
    ),
    Attack::on(
        Target::Session,
        "results-withheld",
        "the host says that the results were never written",
        withheld,
    ),
    Attack::on(
        Target::Session,
        "memory-bus-error",
        "the memory answers with a bus error, which is no tampering",
        bus_error,
    ),
    Attack::on(
        Target::Load,
        "reset-while-loading",
        "the card reset in the middle of loading an image",
        reset_while_loading,
    ),
    Attack::on(
        Target::Boot,
        "kernel-bit-flip",
        "one bit of the kernel image flipped on the boot medium",
        |lab| kernel_image(lab, BootFault::ImageBit),
    ),
    Attack::on(
        Target::Boot,
        "kernel-lower-svn",
        "an older kernel of the right signer on the boot medium",
        |lab| kernel_image(lab, BootFault::OldKernel),
    ),
    Attack::on(
        Target::Boot,
        "kernel-other-signer",
        "a kernel of another signer on the boot medium",
        |lab| kernel_image(lab, BootFault::OtherSigner),
    ),
    Attack::on(
        Target::Boot,
        "noise-source-stuck",
        "a noise source that gives the same bit for ever",
        noise_stuck,
    ),
    Attack::on(
        Target::Boot,
        "mailbox-flooded",
        "floods of truncated and overlong messages from the first cycle of the boot on",
        mailbox_flooded,
    ),
];

/// All of card memory.
const ALL: Range<u64> = 0..1 << 34;

fn outcome(detected: bool, code: &str, detail: impl Into<String>) -> Outcome {
    Outcome { detected, code: code.to_owned(), detail: detail.into() }
}

/// Accepts only the expected errors as a detection.
fn refused<T>(result: Result<T, SdkError>, expected: &[&str]) -> Outcome {
    match result {
        Ok(_) => outcome(false, "", "it was accepted"),
        Err(error) => {
            let code = error.code().to_owned();
            Outcome { detected: expected.contains(&code.as_str()), detail: error.to_string(), code }
        }
    }
}

// ---- attacks on messages ----

/// A host that changes every message of one kind.
fn change(tap: &Tap, kind: MessageKind, mut how: impl FnMut(&mut Vec<u8>) + 'static) {
    tap.meddle(move |at, mut bytes, _| {
        if at == kind {
            how(&mut bytes);
        }
        Some(bytes)
    });
}

// ---- a small job ----

/// The buffers of a job in the Shield's regions.
///
/// # Errors
/// If the configuration has other regions.
pub fn buffers(session: &Session<'_, Keyed>) -> Result<Buffers, SdkError> {
    Ok(Buffers {
        train: session.input("train")?,
        query: session.input("query")?,
        result: session.output("result")?,
    })
}

/// Seals and uploads both inputs.
///
/// # Errors
/// Session errors.
pub fn upload(
    session: &mut Session<'_, Keyed>,
    b: &Buffers,
    train: &Dataset,
    query: &Dataset,
) -> Result<(), SdkError> {
    session.upload(&b.train, &knn::train_image(train))?;
    session.upload(&b.query, &query.pixels())
}

/// Launches, waits, flushes and opens the results; a fault becomes an error with its kind.
fn launch(
    session: &mut Session<'_, Keyed>,
    b: &Buffers,
    train: &Dataset,
    query: &Dataset,
) -> Result<Vec<reference::Classification>, SdkError> {
    let job = knn::job(
        b.train.addr(),
        b.query.addr(),
        b.result.addr(),
        train.rows.len(),
        query.rows.len(),
    );
    let statement =
        session.run(&job, (knn::reg::CTRL, 1), (knn::reg::STATUS, knn::DONE | knn::ERROR))?;
    let opened = session.open(
        &b.result,
        &statement,
        knn::result_len(query.rows.len()),
        OpenPolicy::default(),
    )?;
    Ok(knn::answers(&opened.data[..knn::result_len(query.rows.len())], query.rows.len())
        .unwrap_or_default())
}

/// Checks that an honest run works, as it must even after a refused message.
fn honest_run(
    session: &mut Session<'_, Keyed>,
    b: &Buffers,
    train: &Dataset,
    query: &Dataset,
) -> Result<bool, SdkError> {
    Ok(launch(session, b, train, query)? == reference::classify_all(train, query))
}

/// A complete small run, from the kernel's evidence to the verified close record, as an honest host
/// allows it.
///
/// # Errors
/// The first refusal, if the host is not honest.
pub fn small_run(
    world: &mut World,
    host: &mut Host,
    train: &Dataset,
    query: &Dataset,
) -> Result<Vec<reference::Classification>, SdkError> {
    let mut session = world.session(host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let answers = launch(&mut session, &b, train, query)?;
    let closed = session.close()?;
    closed.verify_record(&host.close_record()?)?;
    Ok(answers)
}

// ---- memory ----

#[derive(Clone, Copy, PartialEq)]
enum Tamper {
    FlipData,
    FlipTag,
    ZeroTag,
    Swap,
}

/// Tampers with the upload into the `query` region and expects a fault in its first chunk.
fn memory(lab: &mut Lab, tamper: Tamper, kind: FaultKind) -> Result<Outcome, CliError> {
    let region = lab
        .world
        .config()
        .region_by_name("query")
        .cloned()
        .ok_or_else(|| CliError::internal("no region query"))?;
    let (base, tags, chunk) = (region.base, region.tag_base, region.chunk as usize);
    let chunks = if tamper == Tamper::Swap { 2 } else { 1 };
    lab.probe.watch(base..base + (chunks * chunk) as u64)?;
    lab.probe.tap().meddle(move |kind, mut bytes, _| {
        match (kind, tamper) {
            (MessageKind::MemoryWrite { addr }, Tamper::FlipData) if addr == base => {
                bytes[77] ^= 0x10;
            }
            (MessageKind::MemoryWrite { addr }, Tamper::FlipTag) if addr == tags => bytes[5] ^= 1,
            (MessageKind::MemoryWrite { addr }, Tamper::ZeroTag) if addr == tags => {
                bytes[..16].fill(0);
            }
            (MessageKind::MemoryWrite { addr }, Tamper::Swap) if addr == base => {
                bytes[..2 * chunk].rotate_left(chunk);
            }
            (MessageKind::MemoryWrite { addr }, Tamper::Swap) if addr == tags => {
                bytes[..32].rotate_left(16);
            }
            _ => {}
        }
        Some(bytes)
    });
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    faulted(session, &b, train, query, kind, region.id, 0..chunks as u64)
}

/// Launches, expects exactly this fault, a stopped Shield and no opened results, and ends the
/// session.
fn faulted(
    mut session: Session<'_, Keyed>,
    b: &Buffers,
    train: &Dataset,
    query: &Dataset,
    kind: FaultKind,
    region: u8,
    chunks: Range<u64>,
) -> Result<Outcome, CliError> {
    let Err(error) = launch(&mut session, b, train, query) else {
        return Ok(outcome(false, "", "the results opened"));
    };
    let recorded = matches!(&error, SdkError::Faulted { kind: k, region: r, chunk: c, count, .. } if *k == kind && *r == region && chunks.contains(c) && *count > 0);
    // The whole Shield has stopped: it refuses access to the accelerator's registers, and plain
    // status shows why.
    let stopped = match session.read_register(knn::reg::ID) {
        Err(SdkError::Channel(shef_proto::channel::ChannelError::Status { status, .. })) => {
            status == shef_proto::channel::status::STOPPED
        }
        _ => false,
    };
    let status = session.host().status()?;
    let told = ctl::STATUS_STOPPED.get(status) == 1
        && ctl::STATUS_FAULT_KIND.get(status) == u32::from(kind.number());
    // The statement shows the fault on every read, and opens nothing.
    let statement = session.statement()?;
    let opens = session
        .open(
            &b.result,
            &statement,
            knn::result_len(query.rows.len()),
            OpenPolicy { refusals: true, holes: true },
        )
        .is_ok();
    session.abort()?;
    Ok(outcome(recorded && stopped && told && !opens, error.code(), error.to_string()))
}

fn moved_region(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let probe = lab.probe;
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    if !honest_run(&mut session, &b, train, query)? {
        return Ok(outcome(false, "", "the honest run before it failed"));
    }
    session.next_output_epoch(&b.result)?;
    session.invalidate()?;
    let (from, to) = (b.result.region().clone(), b.query.region().clone());
    if from.chunk != to.chunk {
        return Err(CliError::internal("regions with chunks of different size"));
    }
    let mut chunk = vec![0; from.chunk as usize];
    let mut tag = [0; 16];
    let device = session.host().device();
    device.mem_read(from.base, &mut chunk)?;
    device.mem_read(from.tag_base, &mut tag)?;
    device.mem_write(to.base, &chunk)?;
    device.mem_write(to.tag_base, &tag)?;
    probe.watch(to.base..to.base + u64::from(to.chunk))?;
    faulted(session, &b, train, query, FaultKind::Tag, to.id, 0..1)
}

/// Replays an earlier upload of chunk 0 of a region and its tag.
fn put_back(
    host: &mut Host,
    region: &shef_proto::config::Region,
    recorded: &[Record],
) -> Result<(), CliError> {
    for (addr, len) in [(region.base, region.chunk as usize), (region.tag_base, 16)] {
        let old = recorded
            .iter()
            .find(|old| old.kind == MessageKind::MemoryWrite { addr })
            .ok_or_else(|| CliError::internal("nothing was uploaded there"))?;
        host.device().mem_write(addr, &old.bytes[..len])?;
    }
    Ok(())
}

fn old_session(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    lab.probe.tap().record();
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    session.abort()?;
    let recorded = lab.probe.tap().stop_recording();
    lab.host.new_session()?;
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let region = b.query.region().clone();
    put_back(session.host(), &region, &recorded)?;
    lab.probe.watch(region.base..region.base + u64::from(region.chunk))?;
    faulted(session, &b, train, query, FaultKind::Tag, region.id, 0..1)
}

fn old_epoch(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let probe = lab.probe;
    probe.tap().record();
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let recorded = probe.tap().stop_recording();
    session.next_input_epoch(&b.query)?;
    session.upload(&b.query, &query.pixels())?;
    let region = b.query.region().clone();
    put_back(session.host(), &region, &recorded)?;
    probe.watch(region.base..region.base + u64::from(region.chunk))?;
    faulted(session, &b, train, query, FaultKind::Tag, region.id, 0..1)
}

fn bus_error(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let probe = lab.probe;
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let region = b.query.region().clone();
    let range = region.base..region.base + u64::from(region.chunk);
    probe.watch(range.clone())?;
    probe.fail_reads(range)?;
    let outcome = faulted(session, &b, train, query, FaultKind::Bus, region.id, 0..1)?;
    // The memory responds again after a reset.
    lab.host.reset()?;
    Ok(outcome)
}

fn withheld(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let places = [b.result.region().base, b.result.region().tag_base];
    lab.probe.tap().meddle(move |kind, mut bytes, _| {
        if let MessageKind::MemoryRead { addr } = kind
            && places.contains(&addr)
        {
            bytes.fill(0);
        }
        Some(bytes)
    });
    let result = refused(launch(&mut session, &b, train, query), &["SHEF-SDK-016"]);
    // Nothing was lost: an honest host delivers the results.
    lab.probe.tap().honest();
    let statement = session.statement()?;
    let opened = session.open(
        &b.result,
        &statement,
        knn::result_len(query.rows.len()),
        OpenPolicy::default(),
    )?;
    let same = knn::answers(&opened.data[..knn::result_len(query.rows.len())], query.rows.len())
        == Some(reference::classify_all(train, query));
    session.abort()?;
    Ok(Outcome { detected: result.detected && same, ..result })
}

// ---- registers ----

fn register_forged(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    session.ping()?;
    let before = session.statement()?.shield().requests;
    // The host changes the address inside a sealed command: flipping a bit of the ciphertext flips
    // that bit of the plaintext.
    let sealed = session.seal_request(&ShieldRequest::write(knn::reg::TRAIN_ROWS, 1))?;
    let shown_before =
        shef_device::mailbox::read_bytes(session.host().device(), ctl::CHAN_RSP, MESSAGE_LEN)?;
    let mut refusals = 0;
    let mut attempts = 0;
    let mut unchanged = true;
    for at in [0, 7, 8, 12, 16, 71, 72, 87] {
        let mut forged = sealed;
        forged[at] ^= 1;
        let (shown, says_refused) = session.host().exchange(&forged)?;
        attempts += 1;
        refusals += usize::from(says_refused);
        unchanged &= shown == shown_before;
    }
    // The honest command is still the next expected one.
    let (answer, says_refused) = session.host().exchange(&sealed)?;
    let taken = !says_refused && session.take_answer(&answer).is_ok_and(|a| a.status == 0);
    let after = session.statement()?.shield().requests;
    let fine = honest_run(&mut session, &b, train, query)?;
    let pages = session.config().regions().len() as u64 + map_pages(session.config()) + 1;
    let counted = after == before + 1 + pages;
    session.abort()?;
    Ok(outcome(
        refusals == attempts && unchanged && taken && counted && fine,
        "SHEF-SDK-004",
        format!(
            "{refusals} of {attempts} forgeries refused, answer and count of requests unchanged, the honest command and run {}",
            if taken && fine { "worked" } else { "failed" }
        ),
    ))
}

/// MAP requests for a complete statement.
fn map_pages(config: &shef_proto::config::Config) -> u64 {
    config
        .regions()
        .iter()
        .filter(|r| r.mode == shef_proto::config::Mode::Output)
        .map(|r| r.chunks().div_ceil(shef_proto::channel::MAP_BITS))
        .sum()
}

fn register_replayed(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    lab.probe.tap().record();
    if !honest_run(&mut session, &b, train, query)? {
        return Ok(outcome(false, "", "the honest run before it failed"));
    }
    let requests: Vec<Vec<u8>> = lab
        .probe
        .tap()
        .stop_recording()
        .into_iter()
        .filter(|record| record.kind == MessageKind::Request)
        .map(|record| record.bytes)
        .collect();
    let Some((last, earlier)) = requests.split_last() else {
        return Ok(outcome(false, "", "no request was heard"));
    };
    let before = session.statement()?.shield().requests;
    let mut refusals = 0;
    for old in earlier.iter().chain([last]) {
        // All of them precede the statement's last page, so none may run or be answered.
        refusals += usize::from(session.host().exchange(old)?.1);
    }
    let all = earlier.len() + 1;
    let after = session.statement()?.shield().requests;
    let pages = session.config().regions().len() as u64 + map_pages(session.config()) + 1;
    // The owner continues as before.
    session.next_output_epoch(&b.result)?;
    let fine = honest_run(&mut session, &b, train, query)?;
    session.abort()?;
    Ok(outcome(
        refusals == all && after == before + pages && fine,
        "SHEF-SDK-004",
        format!(
            "{refusals} of {all} replays refused, none run, the honest run after it {}",
            if fine { "worked" } else { "failed" }
        ),
    ))
}

// ---- Load Key ----

fn load_key_replayed(lab: &mut Lab) -> Result<Outcome, CliError> {
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let old = session.load_key().to_vec();
    let into_session = session.host().load_key(&old)?.0 == shef::LoadHint::Refused;
    let fine = honest_run(&mut session, &b, train, query)?;
    session.close()?;
    lab.host.new_session()?;
    let into_fresh = lab.host.load_key(&old)?.0 == shef::LoadHint::Refused
        && ctl::STATUS_STATE.get(lab.host.status()?) == ctl::STATUS_STATE_FRESH;
    let mut session = lab.world.keyed(lab.host)?;
    let next = session.ping().is_ok();
    session.abort()?;
    Ok(outcome(
        into_session && fine && into_fresh && next,
        "SHEF-SDK-005",
        format!(
            "refused in the session: {into_session}, in the next one: {into_fresh}; honest run: {fine}, honest Load Key after it: {next}"
        ),
    ))
}

fn load_key_other(lab: &mut Lab) -> Result<Outcome, CliError> {
    // The host answers the owner's Load Key with its own, made for another key pair.
    let config = lab.world.config().clone();
    let entropy = lab.world.adversary_entropy();
    let (_, other) = shef_proto::hpke_suite::generate_key_pair(entropy);
    let epochs = first_epochs(&config, 1);
    let (message, _) = shef_proto::load::seal_load_key(&config, &other, b"", &epochs, entropy)
        .map_err(SdkError::from)?;
    change(lab.probe.tap(), MessageKind::LoadKey, move |bytes| bytes.clone_from(&message));
    let result = refused(lab.world.keyed(lab.host), &["SHEF-SDK-005"]);
    let fresh = ctl::STATUS_STATE.get(lab.host.status()?) == ctl::STATUS_STATE_FRESH;
    lab.probe.tap().honest();
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.keyed(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let fine = honest_run(&mut session, &b, train, query)?;
    session.abort()?;
    Ok(Outcome { detected: result.detected && fresh && fine, ..result })
}

// ---- evidence ----

fn key_swapped(lab: &mut Lab) -> Result<Outcome, CliError> {
    lab.probe.watch(ALL)?;
    let (_, own) = shef_proto::hpke_suite::generate_key_pair(lab.world.adversary_entropy());
    let own = own.xy();
    let swapped = Rc::new(RefCell::new(false));
    let done = Rc::clone(&swapped);
    change(lab.probe.tap(), MessageKind::ShieldEvidence, move |bytes| {
        let Ok(evidence) = shef_proto::evidence::Evidence::parse(bytes) else { return };
        let shown = evidence.unverified_claims().common.key.xy();
        for (old, new) in [(&shown[..32], &own[..32]), (&shown[32..], &own[32..])] {
            if let Some(at) = bytes.windows(32).position(|w| w == old) {
                bytes[at..at + 32].copy_from_slice(new);
                *done.borrow_mut() = true;
            }
        }
    });
    let result = refused(lab.world.keyed(lab.host), &["SHEF-ATT-014"]);
    let swapped = *swapped.borrow();
    Ok(Outcome { detected: result.detected && swapped && no_key(lab.host)?, ..result })
}

fn old_nonce(lab: &mut Lab) -> Result<Outcome, CliError> {
    lab.probe.watch(ALL)?;
    // The first challenge is answered honestly, and the evidence recorded; the second is answered
    // with that evidence.
    let first = lab.world.shield_evidence(lab.host)?;
    change(lab.probe.tap(), MessageKind::ShieldEvidence, move |bytes| bytes.clone_from(&first));
    let result = refused(lab.world.keyed(lab.host), &["SHEF-ATT-004"]);
    Ok(Outcome { detected: result.detected && no_key(lab.host)?, ..result })
}

/// Checks that the Shield holds no session: no key was released to it.
fn no_key(host: &mut Host) -> Result<bool, CliError> {
    Ok(ctl::STATUS_STATE.get(host.status()?) != ctl::STATUS_STATE_KEYED)
}

fn debug_device(lab: &mut Lab) -> Result<Outcome, CliError> {
    lab.world.with_debug_card(lab.host, lab.probe, |world, host, probe| {
        probe.watch(ALL)?;
        let result = refused(world.release(host), &["SHEF-ATT-021"]);
        // The attack may use a separate device, so the words are counted there.
        Ok(Outcome { detected: result.detected && probe.words_delivered()? == 0, ..result })
    })
}

fn simulator_as_hardware(lab: &mut Lab) -> Result<Outcome, CliError> {
    lab.probe.watch(ALL)?;
    Ok(refused(lab.world.release_under(lab.host, RootOfTrust::ShefBoot)?, &["SHEF-ATT-013"]))
}

// ---- image ----

/// The outcome of an attack on a load: nothing was loaded, and an honest host can load the image.
fn loaded_after(lab: &mut Lab, result: Outcome, unloaded: bool) -> Result<Outcome, CliError> {
    lab.probe.tap().honest();
    lab.world.load(lab.host)?;
    Ok(Outcome { detected: result.detected && unloaded, ..result })
}

fn image_changed(lab: &mut Lab) -> Result<Outcome, CliError> {
    use shef_proto::mailbox::Request;
    lab.probe.watch(ALL)?;
    change(lab.probe.tap(), MessageKind::KernelRequest, |bytes| {
        if let Ok(Request::LoadChunk { index, bytes: mut sealed }) = Request::decode(bytes) {
            sealed[3] ^= 0x40;
            *bytes = Request::LoadChunk { index, bytes: sealed }.encode();
        }
    });
    let result = refused(lab.world.load(lab.host), &["SHEF-PRO-041"]);
    let unloaded = lab.world.shield_evidence(lab.host).is_err();
    loaded_after(lab, result, unloaded)
}

fn image_old(lab: &mut Lab) -> Result<Outcome, CliError> {
    use shef_proto::image::Container;
    use shef_proto::mailbox::{Request, load_requests};
    lab.probe.watch(ALL)?;
    // From the first request on, the host sends the old image in place of the new one.
    let old = Container::parse(&lab.world.old_image()).map_err(SdkError::from)?;
    let mut requests = Vec::new().into_iter();
    change(lab.probe.tap(), MessageKind::KernelRequest, move |bytes| {
        if let Ok(Request::LoadBegin { key_box, .. }) = Request::decode(bytes) {
            requests = load_requests(&old, &key_box).into_iter();
        }
        if let Some(request) = requests.next() {
            *bytes = request.encode();
        }
    });
    let result = refused(lab.world.load(lab.host), &["SHEF-KRN-021"]);
    let unloaded = lab.world.shield_evidence(lab.host).is_err();
    loaded_after(lab, result, unloaded)
}

fn reset_while_loading(lab: &mut Lab) -> Result<Outcome, CliError> {
    use shef_proto::mailbox::Request;
    lab.probe.watch(ALL)?;
    lab.probe.tap().meddle(|kind, bytes, device| {
        let half = kind == MessageKind::KernelRequest
            && matches!(Request::decode(&bytes), Ok(Request::LoadChunk { index: 1, .. }));
        if half {
            // If the reset fails, the load is not refused, and the attack shows that.
            let _ = device.reset();
        }
        Some(bytes)
    });
    let result = refused(lab.world.load(lab.host), &["SHEF-KRN-014"]);
    // The fabric is empty, and no evidence vouches for it.
    let unloaded = lab.host.device().ctl_read32(ctl::STATUS).is_err()
        && lab.world.shield_evidence(lab.host).is_err();
    loaded_after(lab, result, unloaded)
}

// ---- boot ----

/// Alerts of the subsystem (`shell-rtl/regs/kernel.toml`).
mod alert {
    pub const IMAGE: u64 = 4;
    pub const NOISE: u64 = 5;
}

fn alert(probe: &Probe) -> u64 {
    probe.kernel().map_or(0, |kernel| kernel.alert)
}

/// A kernel that the boot ROM must not start: the device reports the reason, and nothing else.
fn kernel_image(lab: &mut Lab, fault: BootFault) -> Result<Outcome, CliError> {
    lab.probe.watch(ALL)?;
    lab.probe.fail_boot(fault)?;
    lab.host.reset()?;
    let expected = if fault == BootFault::OldKernel { "SHEF-KRN-005" } else { "SHEF-KRN-004" };
    let result = refused(lab.host.certificates(), &[expected]);
    let silent = lab.world.release(lab.host).is_err_and(|error| error.code() == expected);
    let alerted = alert(lab.probe) == alert::IMAGE;
    // The next reset finds an honest medium, and starts a kernel with an identity.
    lab.host.reset()?;
    lab.host.certificates()?;
    Ok(Outcome { detected: result.detected && silent && alerted, ..result })
}

fn noise_stuck(lab: &mut Lab) -> Result<Outcome, CliError> {
    lab.probe.watch(ALL)?;
    lab.probe.fail_boot(BootFault::StuckNoise)?;
    lab.host.reset()?;
    let result = refused(lab.world.release(lab.host), &["SHEF-KRN-011"]);
    let alerted = alert(lab.probe) == alert::NOISE;
    // The next reset finds a working noise source.
    lab.host.reset()?;
    lab.world.release(lab.host)?;
    Ok(Outcome { detected: result.detected && alerted, ..result })
}

fn mailbox_flooded(lab: &mut Lab) -> Result<Outcome, CliError> {
    use shef_device::mailbox;
    const LENGTHS: [u32; 8] = [0, 1, 2, 3, 8191, 8192, 8193, u32::MAX];
    const AFTER_BOOT: usize = 24;
    lab.probe.watch(ALL)?;
    lab.probe.fail_boot(BootFault::Unattended)?;
    lab.host.reset()?;
    let device = lab.host.device();
    let (mut busy, mut answers, mut code) = (0, 0, String::new());
    while answers < LENGTHS.len() + AFTER_BOOT {
        // A kernel that is busy with a message, or not running yet, accepts no other.
        for word in 0..4 {
            busy +=
                usize::from(device.ctl_write32(mailbox::REQUEST + 4 * word, 0xa5a5_a5a5).is_err());
        }
        let rung = device.ctl_write32(mailbox::REQ_LEN, LENGTHS[answers % LENGTHS.len()]).is_ok();
        if !rung && device.ctl_read32(mailbox::STATUS)? == mailbox::STATUS_BUSY {
            busy += 1;
            continue;
        }
        let mut polls = 0;
        while device.ctl_read32(mailbox::STATUS)? != mailbox::STATUS_ANSWER {
            polls += 1;
            busy += usize::from(device.ctl_write32(mailbox::REQ_LEN, 1).is_err());
            if polls > 10_000 {
                return Ok(outcome(false, "", format!("no answer after {answers}")));
            }
        }
        let len = device.ctl_read32(mailbox::RSP_LEN)? as usize;
        let answer = mailbox::read_bytes(device, mailbox::ANSWER, len.min(mailbox::MAX_ANSWER))?;
        match shef_proto::mailbox::Answer::decode(&answer) {
            Ok(shef_proto::mailbox::Answer::Error { code: found, .. }) => code = found,
            _ => return Ok(outcome(false, "", "a message without sense was not refused")),
        }
        answers += 1;
    }
    let quiet = alert(lab.probe) == 0 && lab.probe.words_delivered()? == 0;
    lab.probe.unwatch()?;
    let (train, query) = (lab.train, lab.query);
    let mut session = lab.world.session(lab.host)?;
    let b = buffers(&session)?;
    upload(&mut session, &b, train, query)?;
    let fine = honest_run(&mut session, &b, train, query)?;
    Ok(outcome(
        quiet && fine && busy > 0,
        &code,
        format!(
            "{answers} messages refused, {busy} accesses refused meanwhile, no alert: {quiet}; honest run after it: {fine}"
        ),
    ))
}
