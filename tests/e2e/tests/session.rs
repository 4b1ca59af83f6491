//! Operations that a session allows and refuses.

use std::path::Path;
use std::time::Duration;

use shef::{Connected, Device, Expect, Fault, Host, Keyed, Ran, SdkError, Session};
use shef_card::{CardOptions, Engine};
use shef_lab::attacks::{buffers, upload};
use shef_lab::data::Dataset;
use shef_lab::reference;
use shef_lab::tap::MessageKind;
use shef_lab::world::{Cards, Plan, Probe, World};
use shef_lab::{Buffers, knn};
use shef_proto::channel::{ChannelError, FaultKind, ShieldAnswer, ShieldStatement, State, status};
use shef_proto::config::{Config, Mode, OnFault, Region};
use shef_proto::evidence::{AcceptedEntropy, EntropySource, RootOfTrust};
use shef_proto::load::first_epochs;
use shef_regs::ctl;
use shef_seal::OpenPolicy;
use shef_verify::rego::Unconfined;
use shef_verify::{AppraisalPolicy, Revocations};

mod hardware;
use hardware::Hardware;

struct Setup {
    _dir: tempfile::TempDir,
    world: World,
    host: Host,
    probe: Probe,
    train: Dataset,
    query: Dataset,
}

fn setup() -> Setup {
    setup_of(Cards::digits(Engine::Model).unwrap())
}

/// The same with another reaction to faults.
fn setup_with(on_fault: OnFault) -> Setup {
    let demo = shef_card::config().unwrap();
    let config =
        Config::new(on_fault, demo.ports(), demo.sets().to_vec(), demo.regions().to_vec()).unwrap();
    setup_of(Cards::model_of(config).unwrap())
}

fn setup_of(cards: Cards) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let mut world =
        World::new(dir.path(), Plan { cards, seed: None, name: "session".into(), service: None })
            .unwrap();
    let (host, probe) = world.card(&mut |_| {}).unwrap();
    let all =
        Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")))
            .unwrap();
    Setup { _dir: dir, world, host, probe, train: all.head(64), query: all.head(32) }
}

const START: (u32, u32) = (knn::reg::CTRL, 1);
const DONE: (u32, u32) = (knn::reg::STATUS, knn::DONE | knn::ERROR);

fn job(b: &Buffers, s: (&Dataset, &Dataset)) -> Vec<(u32, u32)> {
    knn::job(b.train.addr(), b.query.addr(), b.result.addr(), s.0.rows.len(), s.1.rows.len())
}

fn code<T>(result: Result<T, SdkError>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

fn keyed(s: &mut Setup) -> (Session<'_, Keyed>, Buffers, (&Dataset, &Dataset)) {
    let session = s.world.session(&mut s.host).unwrap();
    let b = buffers(&session).unwrap();
    (session, b, (&s.train, &s.query))
}

#[test]
fn buffers_are_bound_to_regions_of_their_mode() {
    let mut s = setup();
    let (mut session, b, _) = keyed(&mut s);
    assert_eq!(code(session.input("nothing")), "SHEF-SDK-006");
    assert_eq!(code(session.input("result")), "SHEF-SDK-007");
    assert_eq!(code(session.output("train")), "SHEF-SDK-007");
    assert_eq!(code(session.upload(&b.query, &vec![0; 1 << 20 | 1])), "SHEF-SDK-008");
    let statement = session.statement().unwrap();
    assert_eq!(
        code(session.open(&b.result, &statement, 1 << 20, OpenPolicy::default())),
        "SHEF-SDK-008"
    );
}

#[test]
fn data_is_sealed_once_in_an_epoch() {
    let mut s = setup();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    assert_eq!(code(session.upload(&b.query, &query.pixels())), "SHEF-SEAL-003");
    assert_eq!(session.next_input_epoch(&b.query).unwrap(), 2);
    session.upload(&b.query, &query.pixels()).unwrap();
    assert_eq!(code(session.upload(&b.query, &query.pixels())), "SHEF-SEAL-003");
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    let opened =
        session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    assert_eq!(
        knn::answers(&opened.data[..knn::result_len(32)], 32),
        Some(reference::classify_all(train, query))
    );
}

#[test]
fn results_open_only_under_a_statement_after_the_last_launch() {
    let mut s = setup();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    // Nothing was written yet.
    let before = session.statement().unwrap();
    assert_eq!(code(session.open(&b.result, &before, 512, OpenPolicy::default())), "SHEF-SEAL-009");
    let first = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert_eq!(code(session.open(&b.result, &before, 512, OpenPolicy::default())), "SHEF-SDK-014");
    assert_eq!(code(session.open(&b.result, &first, 512, OpenPolicy::default())), "accepted");
    // Only one of the region's 512 chunks was written.
    assert_eq!(code(session.open(&b.result, &first, 1024, OpenPolicy::default())), "SHEF-SEAL-009");
    let holes = session
        .open(&b.result, &first, 1024, OpenPolicy { holes: true, ..OpenPolicy::default() })
        .unwrap();
    assert!(holes.data[512..].iter().all(|x| *x == 0) && !holes.written.is_written(1));
    session.next_output_epoch(&b.result).unwrap();
    assert_eq!(code(session.open(&b.result, &first, 512, OpenPolicy::default())), "SHEF-SDK-014");
    let second = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert_eq!(code(session.open(&b.result, &first, 512, OpenPolicy::default())), "SHEF-SDK-014");
    assert_eq!(code(session.open(&b.result, &second, 512, OpenPolicy::default())), "accepted");
}

#[test]
fn what_the_accelerator_does_wrong_is_told_apart_from_faults() {
    let mut s = setup();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    session.run(&job(&b, (train, query)), START, DONE).unwrap();
    // A second run in the same epoch writes its results again, which the Shield refuses; the first
    // results stay.
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert!(
        statement.shield().refusals > 0
            && statement.shield().faults == 0
            && !statement.shield().stopped
    );
    assert_eq!(
        code(session.open(&b.result, &statement, 512, OpenPolicy::default())),
        "SHEF-SDK-010"
    );
    let opened = session
        .open(&b.result, &statement, 512, OpenPolicy { refusals: true, ..OpenPolicy::default() })
        .unwrap();
    assert_eq!(
        knn::answers(&opened.data[..knn::result_len(32)], 32),
        Some(reference::classify_all(train, query))
    );
}

/// Flips a bit in card memory, as a host could.
fn flip(session: &mut Session<'_, Keyed>, addr: u64) {
    let mut byte = session.host().read_memory(addr, 1).unwrap();
    byte[0] ^= 0x10;
    session.host().write_memory(addr, &byte).unwrap();
}

#[test]
fn a_fault_ends_the_session_where_the_configuration_says_so() {
    let mut s = setup_with(OnFault::Halt);
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    let first = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    session.open(&b.result, &first, 512, OpenPolicy::default()).unwrap();
    session.next_output_epoch(&b.result).unwrap();
    assert_eq!(session.next_input_epoch(&b.query).unwrap(), 2);
    session.upload(&b.query, &query.pixels()).unwrap();
    flip(&mut session, b.query.addr() + 700);

    let error =
        session.run(&job(&b, (train, query)), START, DONE).expect_err("the session goes on");
    assert_eq!(error.code(), "SHEF-PRO-256");
    assert!(error.to_string().contains("in region 1, chunk 0x1, version 2"), "{error}");
    let SdkError::Channel(ChannelError::Halted { last, .. }) = error else { panic!("{error}") };
    let found = |last: &shef_proto::channel::ShieldStatement| {
        (
            last.state,
            last.stopped,
            last.faults,
            last.fault_kind,
            last.fault_region,
            last.fault_chunk,
            last.fault_version,
        )
    };
    assert_eq!(found(&last), (State::Closed, true, 1, FaultKind::Tag, 1, 1, 2));
    // No answer and no result follows.
    assert_eq!(code(session.ping()), "SHEF-PRO-256");
    assert_eq!(code(session.statement()), "SHEF-PRO-256");
    assert_eq!(code(session.open(&b.result, &first, 512, OpenPolicy::default())), "SHEF-SDK-014");
    assert_eq!(
        code(session.open_despite_fault(&b.result, &first, 512, OpenPolicy::default(), &["query"])),
        "SHEF-SDK-014"
    );

    // The owner gets the last words, and the kernel countersigns them as in any session.
    let closed = session.close().unwrap();
    assert!(closed.by_itself);
    assert_eq!(found(&closed.last), found(&last));
    closed.verify_record(&s.host.close_record().unwrap()).unwrap();
    s.host.new_session().unwrap();
    let closed = s.world.keyed(&mut s.host).unwrap().close().unwrap();
    assert!(!closed.by_itself && closed.last.faults == 0);
}

#[test]
fn beside_a_frozen_region_results_open_only_by_name() {
    let mut s = setup_with(OnFault::Region);
    let (mut session, b, (train, query)) = keyed(&mut s);
    let open = |session: &mut Session<'_, Keyed>, statement: &_, unreached: &[&str]| {
        session.open_despite_fault(
            &b.result,
            statement,
            knn::result_len(32),
            OpenPolicy::default(),
            unreached,
        )
    };
    upload(&mut session, &b, train, query).unwrap();
    flip(&mut session, b.query.addr());
    let reached = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert_eq!((reached.shield().stopped, reached.shield().faults), (false, 1));
    assert_eq!(reached.frozen().collect::<Vec<_>>(), [1]);
    assert_eq!(session.read_register(knn::reg::STATUS).unwrap() & knn::ERROR, knn::ERROR);
    assert_eq!(
        code(open(&mut session, &reached, &["query"])),
        "SHEF-SEAL-009",
        "that launch wrote nothing"
    );

    // A launch that does not use the frozen region: it classifies the training rows.
    let other = knn::job(b.train.addr(), b.train.addr(), b.result.addr(), 64, 32);
    let beside = session.run(&other, START, DONE).unwrap();
    assert_eq!(session.read_register(knn::reg::STATUS).unwrap(), knn::DONE);
    let beside_code =
        |session: &mut Session<'_, Keyed>, names: &[&str]| code(open(session, &beside, names));
    assert_eq!(
        code(session.open(&b.result, &beside, knn::result_len(32), OpenPolicy::default())),
        "SHEF-SDK-021"
    );
    assert_eq!(beside_code(&mut session, &[]), "SHEF-SDK-027");
    assert_eq!(beside_code(&mut session, &["train", "result"]), "SHEF-SDK-027");
    assert_eq!(beside_code(&mut session, &["query", "nothing"]), "SHEF-SDK-006");
    let opened = open(&mut session, &beside, &["query"]).unwrap();
    assert_eq!(
        knn::answers(&opened.data[..knn::result_len(32)], 32),
        Some(reference::classify_all(train, &train.head(32)))
    );

    // The results' region is frozen, and no name opens it. The earlier statement is stale by then.
    session.invalidate().unwrap();
    flip(&mut session, b.result.addr());
    let own = session
        .run(
            &knn::job(b.train.addr(), b.result.addr(), b.result.addr() + 4096, 64, 32),
            START,
            DONE,
        )
        .unwrap();
    assert_eq!(own.frozen().collect::<Vec<_>>(), [1, 2]);
    for names in [&["query"][..], &["query", "result"], &["train", "query", "result"]] {
        assert_eq!(code(open(&mut session, &own, names)), "SHEF-SDK-027");
        assert_eq!(beside_code(&mut session, names), "SHEF-SDK-014");
    }
    // The session closes normally.
    let closed = session.close().unwrap();
    assert_eq!((closed.by_itself, closed.last.stopped, closed.last.faults), (false, false, 2));
    closed.verify_record(&s.host.close_record().unwrap()).unwrap();
}

#[test]
fn keys_are_gone_after_close_and_after_reset() {
    let mut s = setup();
    let (mut session, _, _) = keyed(&mut s);
    let request = session.seal_request(&shef_proto::channel::ShieldRequest::ping()).unwrap();
    let (answer, refused) = session.host().exchange(&request).unwrap();
    assert!(!refused);
    session.take_answer(&answer).unwrap();
    let closed = session.close().unwrap();
    let record = s.host.close_record().unwrap();
    closed.verify_record(&record).unwrap();
    assert!(s.host.exchange(&request).unwrap().1, "a request of a session that is over");
    // Another session's record is rejected.
    s.host.new_session().unwrap();
    let other = s.world.keyed(&mut s.host).unwrap().close().unwrap();
    assert_eq!(code(other.verify_record(&record)), "SHEF-SDK-020");
    other.verify_record(&s.host.close_record().unwrap()).unwrap();

    s.host.reset().unwrap();
    // Without an image there is no Shield to talk to.
    assert_eq!(code(s.host.status()), "SHEF-DEV-006");
    assert_eq!(code(s.world.keyed(&mut s.host).map(|_| ())), "SHEF-DEV-006");
    s.world.load(&mut s.host).unwrap();
    s.world.keyed(&mut s.host).unwrap().ping().unwrap();
}

#[test]
fn the_kernel_answers_everything() {
    let mut s = setup();
    for garbage in [&[][..], &[0], &[0xff; 100], b"hello", &[0x9f; 4000]] {
        let answer = s.host.kernel(garbage).unwrap();
        let answer = shef_proto::mailbox::Answer::decode(&answer).unwrap();
        assert!(answer.into_result().is_err());
    }
    assert_eq!(code(s.host.kernel(&[0; 0x2001])), "SHEF-DEV-008");
    assert_eq!(code(s.host.new_session()), "SHEF-KRN-014");
    assert_eq!(code(s.host.close_record()), "SHEF-KRN-014");
    assert_eq!(code(s.host.load_image(b"no container", [])), "SHEF-PRO-040");
    assert_eq!(s.host.kernel_status().unwrap().root_of_trust, "simulated");
    assert_eq!(s.probe.words_delivered().unwrap(), 0);
}

#[test]
fn a_seed_shows_in_evidence_and_a_policy_must_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut seeded = World::new(
        dir.path(),
        Plan {
            cards: Cards::digits(Engine::Model).unwrap(),
            seed: Some(3),
            name: "seeded".into(),
            service: None,
        },
    )
    .unwrap();
    let (mut host, _) = seeded.card(&mut |_| {}).unwrap();
    assert_eq!(
        code(
            seeded
                .release(&mut host)
                .map(|r| assert_eq!(r.verified.claims().entropy, EntropySource::Seeded))
        ),
        "accepted"
    );
    let strict =
        shef_verify::Policy::strict("production", &[shef_proto::evidence::RootOfTrust::Simulated]);
    let verifier = shef::Verifier::new(
        "data-owner",
        seeded.verifier().anchors().to_vec(),
        seeded.verifier().reference().clone(),
        strict,
    );
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let challenge = shef::Challenge::draw("data-owner", &mut entropy);
    let evidence = host.kernel_evidence(&challenge).unwrap();
    assert_eq!(
        code(verifier.appraise_kernel(&evidence, &challenge, 1_767_225_600)),
        "SHEF-ATT-022"
    );
}

/// A card whose noise source was never measured runs sessions for parties that accept it, and no other.
#[test]
fn an_unmeasured_source_shows_in_evidence_and_a_policy_must_name_it() {
    let options = CardOptions { unmeasured: true, ..CardOptions::digits(Engine::Model).unwrap() };
    let mut s = setup_of(Cards::Made(options));
    s.world.ready(&mut s.host).unwrap();
    let session = s.world.attest(&mut s.host).unwrap();
    assert_eq!(session.verified().claims().entropy, EntropySource::Unmeasured);
    drop(session);
    let mut policy = s.world.verifier().policy().clone();
    assert_eq!(core::mem::take(&mut policy.entropy), AcceptedEntropy::Unmeasured);
    let verifier = shef::Verifier::new(
        "data-owner",
        s.world.verifier().anchors().to_vec(),
        s.world.verifier().reference().clone(),
        policy,
    );
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let challenge = shef::Challenge::draw("data-owner", &mut entropy);
    let evidence = s.host.kernel_evidence(&challenge).unwrap();
    assert_eq!(code(verifier.appraise_kernel(&evidence, &challenge, now())), "SHEF-ATT-026");
}

/// A Shield without card memory: attested, keyed, registers over the channel, a statement, closed.
/// It refuses the memory accesses of the demo's accelerator.
#[test]
fn a_session_without_card_memory_has_registers_and_a_statement() {
    let mut s = setup_of(
        Cards::model_of(Config::new(OnFault::Shield, 0, vec![], vec![]).unwrap()).unwrap(),
    );
    let mut session = s.world.session(&mut s.host).unwrap();
    assert!(!session.config().has_memory());
    assert_eq!(code(session.input("train")), "SHEF-SDK-006");
    let statement = session.run(&knn::job(0, 0x1_0000, 0x2_0000, 8, 4), START, DONE).unwrap();
    assert_eq!(session.read_register(0x10).unwrap(), 8);
    assert_eq!(session.read_register(knn::reg::STATUS).unwrap() & knn::ERROR, knn::ERROR);
    assert!(
        statement.shield().refusals > 0
            && statement.shield().faults == 0
            && statement.frozen().count() == 0
    );
    assert_eq!(code(session.statistics(0)), "SHEF-PRO-254");
    session.invalidate().unwrap();
    let closed = session.close().unwrap();
    assert_eq!(
        (closed.last.state, closed.last.faults, closed.last.refusals),
        (State::Closed, 0, statement.shield().refusals)
    );
    closed.verify_record(&s.host.close_record().unwrap()).unwrap();
}

// ---- an untrusted host, message by message ----

/// Hands a sealed request to the Shield and waits until it has run.
fn ring(device: &mut dyn Device, request: &[u8]) {
    for (at, word) in (0..).step_by(4).zip(request.chunks(4)) {
        device
            .ctl_write32(ctl::CHAN_REQ + at, u32::from_le_bytes(word.try_into().unwrap()))
            .unwrap();
    }
    device.ctl_write32(ctl::CHAN_DOORBELL, 1).unwrap();
    while ctl::STATUS_CHAN_BUSY.get(device.ctl_read32(ctl::STATUS).unwrap()) == 1 {}
}

/// The host has the genuine request run, then a damaged copy refused: plain status says `REFUSED`,
/// and the Shield still shows the answer to the genuine one.
#[test]
fn an_authentic_answer_counts_whatever_plain_status_says() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    tap.meddle(|kind, mut bytes, device| {
        if kind == MessageKind::Request {
            ring(device, &bytes);
            bytes[80] ^= 1;
        }
        Some(bytes)
    });
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    let opened =
        session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    assert_eq!(knn::answers(&opened.data, 32), Some(reference::classify_all(train, query)));
    let requests = statement.shield().requests;
    tap.honest();
    assert!(session.statement().unwrap().shield().requests > requests);
}

#[test]
fn a_lost_message_is_sent_again_and_runs_once() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    // Every second request and every third answer is lost.
    let (mut requests, mut answers) = (0, 0);
    tap.meddle(move |kind, bytes, _| {
        let lost = match kind {
            MessageKind::Request => {
                requests += 1;
                requests % 2 == 0
            }
            MessageKind::Answer => {
                answers += 1;
                answers % 3 == 0
            }
            _ => false,
        };
        (!lost).then_some(bytes)
    });
    let before = session.statement().unwrap().shield().requests;
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert_eq!(statement.shield().refusals, 0, "a second run of the job would be refused");
    let opened =
        session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    assert_eq!(knn::answers(&opened.data, 32), Some(reference::classify_all(train, query)));
    // Each ran once: a job, reads until it is done, a flush, and the pages of the statement.
    let pages = 1 + 3 + 2;
    assert!(
        statement.shield().requests >= before + job(&b, (train, query)).len() as u64 + 3 + pages
    );
    let closed = session.close().unwrap();
    closed.verify_record(&s.host.close_record().unwrap()).unwrap();
}

#[test]
fn what_is_lost_again_and_again_is_unknown_and_is_settled_later() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, b, (train, query)) = keyed(&mut s);
    for kind in [MessageKind::Answer, MessageKind::Request] {
        let epoch = session.next_input_epoch(&b.query).unwrap();
        tap.meddle(move |at, bytes, _| (at != kind).then_some(bytes));
        let error = session.next_input_epoch(&b.query).unwrap_err();
        assert_eq!(
            (error.code(), error.ran(), error.at_fault()),
            ("SHEF-SDK-040", Ran::Unknown, Fault::Undecided),
            "{error}"
        );
        assert!(error.to_string().contains("unknown"), "{error}");
        assert_eq!(code(session.ping()), "SHEF-SDK-040");
        tap.honest();
        // The epoch is the requested one, whether the first message or the second set it.
        assert_eq!(session.settle().unwrap().map(|answer| answer.value), Some(0));
        assert!(session.settle().unwrap().is_none());
        assert_eq!(
            session.statement().unwrap().region(b.query.region().id).unwrap().epoch,
            epoch + 1
        );
        session.upload(&b.query, &query.pixels()).unwrap();
    }
    session.upload(&b.train, &knn::train_image(train)).unwrap();
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    let opened =
        session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    assert_eq!(knn::answers(&opened.data, 32), Some(reference::classify_all(train, query)));
    // A session with an answer outstanding closes normally.
    tap.meddle(|kind, bytes, _| (kind != MessageKind::Answer).then_some(bytes));
    assert_eq!(code(session.ping()), "SHEF-SDK-040");
    tap.honest();
    session.close().unwrap().verify_record(&s.host.close_record().unwrap()).unwrap();
}

#[test]
fn a_lost_load_key_or_confirmation_is_sent_again() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    s.world.load(&mut s.host).unwrap();
    for kind in [MessageKind::LoadKey, MessageKind::Confirmation] {
        let mut left = 1;
        tap.meddle(move |at, bytes, _| {
            let lost = at == kind && left > 0;
            left -= i32::from(lost);
            (!lost).then_some(bytes)
        });
        s.world.keyed(&mut s.host).unwrap().close().unwrap();
        tap.honest();
        s.host.new_session().unwrap();
    }
}

/// A Shield whose flush faults answers CLOSE with status 4, and still gives its last words.
#[test]
fn the_last_words_come_though_a_fault_stops_the_flush() {
    use aes_gcm::aead::{Aead, KeyInit};
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let session = s.world.session(&mut s.host).unwrap();
    let keys = s.world.session_keys().unwrap();
    let cipher = aes_gcm::Aes256Gcm::new_from_slice(keys.to_owner().expose()).unwrap();
    let said = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let heard = said.clone();
    tap.meddle(move |kind, bytes, _| {
        if kind != MessageKind::Answer {
            return Some(bytes);
        }
        let mut iv = [0; 12];
        iv[4..].copy_from_slice(&bytes[..8]);
        let iv = aes_gcm::Nonce::from(iv);
        let mut plain: [u8; 64] = cipher.decrypt(&iv, &bytes[8..]).unwrap().try_into().unwrap();
        let mut answer = ShieldAnswer::from_bytes(&plain);
        let mut last = ShieldStatement::from_payload(&answer.payload).unwrap();
        (last.stopped, last.faults, last.fault_kind) = (true, 1, FaultKind::Bus);
        (answer.status, answer.payload) = (status::FAULT, last.to_payload());
        plain = answer.to_bytes();
        let sealed = [&bytes[..8], &cipher.encrypt(&iv, &plain[..]).unwrap()].concat();
        heard.borrow_mut().clone_from(&sealed);
        Some(sealed)
    });
    let closed = session.close().unwrap();
    assert!(closed.flush_failed && closed.last.stopped && !closed.by_itself);
    assert_eq!(
        (closed.last.state, closed.last.fault_kind, closed.last.faults),
        (State::Closed, FaultKind::Bus, 1)
    );
    // The reference for the close record.
    assert_eq!(closed.sealed[..], said.borrow()[..]);
}

// ---- what belongs to what ----

#[test]
fn buffers_of_another_session_are_refused() {
    let bypass = |mut config: Vec<Region>| {
        let last = config.iter().map(|region| region.tag_base + 0x10_0000).max().unwrap();
        config.push(Region {
            id: config.len() as u8,
            name: "plain".into(),
            mode: Mode::Bypass,
            base: last.next_multiple_of(4096),
            size: 4096,
            ..Region::default()
        });
        config
    };
    let demo = shef_card::config().unwrap();
    let config = |regions| {
        Config::new(OnFault::Shield, demo.ports(), demo.sets().to_vec(), regions).unwrap()
    };
    let mut a = setup_of(Cards::model_of(config(bypass(demo.regions().to_vec()))).unwrap());
    let mut b = setup();
    let session = a.world.session(&mut a.host).unwrap();
    let (theirs, plain) = (buffers(&session).unwrap(), session.unprotected("plain").unwrap());
    let tap = b.probe.tap().clone();
    let mut own = b.world.session(&mut b.host).unwrap();
    let statement = own.statement().unwrap();
    tap.record();
    assert_eq!(code(own.upload(&theirs.query, &[1; 512])), "SHEF-SDK-043");
    assert_eq!(code(own.next_input_epoch(&theirs.query)), "SHEF-SDK-043");
    assert_eq!(code(own.next_output_epoch(&theirs.result)), "SHEF-SDK-043");
    assert_eq!(
        code(own.open(&theirs.result, &statement, 512, OpenPolicy::default())),
        "SHEF-SDK-043"
    );
    // Its number is beyond this session's list of regions.
    assert_eq!(code(own.write_unprotected(&plain, 0, &[1; 64])), "SHEF-SDK-043");
    assert_eq!(code(own.read_unprotected(&plain, 0, 64)), "SHEF-SDK-043");
    assert_eq!(tap.take_records().len(), 0, "something was sent or written");
    session.abort().unwrap();
    // The same holds in the next session of the same card.
    a.host.new_session().unwrap();
    let mut next = a.world.keyed(&mut a.host).unwrap();
    assert_eq!(code(next.upload(&theirs.query, &[1; 512])), "SHEF-SDK-043");
}

#[test]
fn a_flush_or_a_register_makes_older_statements_stale() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    let open = |session: &mut Session<'_, Keyed>, statement: &_| {
        code(session.open(&b.result, statement, 512, OpenPolicy::default()))
    };
    assert_eq!(open(&mut session, &statement), "accepted");
    session.read_register(knn::reg::STATUS).unwrap();
    assert_eq!(open(&mut session, &statement), "accepted");
    type Change = fn(&mut Session<'_, Keyed>);
    let changes: [Change; 3] = [
        |s| s.flush().unwrap(),
        |s| s.invalidate().unwrap(),
        |s| s.write_register(knn::reg::TRAIN_ROWS, 1).unwrap(),
    ];
    for change in changes {
        let statement = session.statement().unwrap();
        assert_eq!(open(&mut session, &statement), "accepted");
        change(&mut session);
        assert_eq!(open(&mut session, &statement), "SHEF-SDK-014");
    }
    // An epoch of another region, too, and a request that was sent and never answered: it may have
    // run.
    let unanswered: [Change; 2] = [
        |s| assert_eq!(code(s.flush()), "SHEF-SDK-040"),
        |s| assert_eq!(code(s.write_register(knn::reg::TRAIN_ROWS, 1)), "SHEF-SDK-040"),
    ];
    for change in unanswered {
        let statement = session.statement().unwrap();
        tap.meddle(|kind, bytes, _| (kind != MessageKind::Answer).then_some(bytes));
        change(&mut session);
        tap.honest();
        assert_eq!(open(&mut session, &statement), "SHEF-SDK-014");
    }
    let statement = session.statement().unwrap();
    session.next_input_epoch(&b.query).unwrap();
    assert_eq!(open(&mut session, &statement), "SHEF-SDK-014");
    // A request that the session only sealed, however its answer comes.
    for taken in [true, false] {
        let statement = session.statement().unwrap();
        let request = shef_proto::channel::ShieldRequest::write(knn::reg::TRAIN_ROWS, 1);
        let sealed = session.seal_request(&request).unwrap();
        if taken {
            let (answer, _) = session.host().exchange(&sealed).unwrap();
            session.take_answer(&answer).unwrap();
        } else {
            session.settle().unwrap();
        }
        assert_eq!(open(&mut session, &statement), "SHEF-SDK-014", "{taken}");
    }
}

#[test]
fn refusals_are_allowed_for_what_the_statement_shows() {
    let mut s = setup();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    session.run(&job(&b, (train, query)), START, DONE).unwrap();
    let allow = OpenPolicy { refusals: true, ..OpenPolicy::default() };
    let mut seen = 0;
    for _ in 0..2 {
        // Writes the results again, which the Shield refuses.
        let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
        assert!(statement.shield().refusals > seen);
        seen = statement.shield().refusals;
        assert_eq!(
            code(session.open(&b.result, &statement, 512, OpenPolicy::default())),
            "SHEF-SDK-010"
        );
        assert_eq!(session.open(&b.result, &statement, 511, allow).unwrap().data.len(), 511);
        assert_eq!(
            code(session.open(&b.result, &statement, 512, OpenPolicy::default())),
            "accepted"
        );
    }
}

// ---- who gets the data ----

/// The verifier knows the loaded image; the owner expects another one of the same configuration.
#[test]
fn a_known_image_that_the_owner_does_not_mean_gets_no_key() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    s.world.load(&mut s.host).unwrap();
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let now = now();
    let (verifier, config) = (s.world.verifier().clone(), s.world.config().clone());
    let (image, vendor) = (s.world.image().digest, vendor(&s.world));
    let mut attest = |expect: &Expect| {
        tap.record();
        let attested = Session::<Connected>::connect(&mut s.host).unwrap().attest(
            &verifier,
            expect,
            now,
            &mut entropy,
        );
        if let Err(SdkError::OtherConfig { expected, found }) = &attested {
            assert!(
                expected.len() == 64 && found.len() == 64 && expected != found,
                "{expected} {found}"
            );
        }
        let code = code(attested);
        assert!(tap.take_records().iter().all(|record| record.kind != MessageKind::LoadKey));
        code
    };
    assert_eq!(attest(&Expect::image(&config, &image)), "accepted");
    assert_eq!(attest(&Expect::image(&config, &image).signer(&vendor)), "accepted");
    assert_eq!(attest(&Expect::accelerator(&config, shef_card::ACCELERATOR, &vendor)), "accepted");
    let design = shef_card::Design::digits().unwrap().digest();
    assert_eq!(attest(&Expect::design(&config, &design)), "accepted");
    assert_eq!(attest(&Expect::design(&config, &[7; 32])), "SHEF-SDK-050");
    assert_eq!(attest(&Expect::image(&config, &[7; 32])), "SHEF-SDK-050");
    assert_eq!(attest(&Expect::accelerator(&config, "other", &vendor)), "SHEF-SDK-050");
    assert_eq!(
        attest(&Expect::accelerator(&config, shef_card::ACCELERATOR, &[7; 32])),
        "SHEF-SDK-050"
    );
    let other = Config::new(OnFault::Shield, 0, vec![], vec![]).unwrap();
    assert_eq!(attest(&Expect::image(&other, &image)), "SHEF-SDK-019");
    // The owner's floor holds under any policy of the verifier.
    let hardware = shef_verify::Policy::strict("floor", &[RootOfTrust::ShefBoot]);
    assert_eq!(attest(&Expect::image(&config, &image).floor(hardware)), "SHEF-ATT-020");
}

fn now() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64
}

/// An owner who draws from a seed gives no key to a device that claims to be hardware.
#[test]
fn a_seed_makes_no_key_for_hardware() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    s.world.load(&mut s.host).unwrap();
    let policy = shef_verify::Policy {
        root_of_trust: vec![RootOfTrust::ShefBoot.name().into()],
        ..s.world.verifier().policy().clone()
    };
    let verifier = shef::Verifier::new(
        "owner",
        vec![Hardware::anchor()],
        s.world.verifier().reference().clone(),
        policy,
    );
    let (expect, epochs) = (s.world.expect(), first_epochs(s.world.config(), 1));
    let vendor = shef::IpVendor::existing(
        shef::KeyFolder::open(s._dir.path().join("vendor")).unwrap(),
        "vendor",
    )
    .unwrap();
    let (mut seeded, mut system) =
        (shef::Source::new(Some(1), "owner").unwrap(), shef::Source::new(None, "owner").unwrap());
    let host = &mut s.host;
    tap.corrupt(Hardware::new(&s.world, "owner"));
    tap.record();
    assert_eq!(
        code(Session::<Connected>::connect(host).unwrap().attest(
            &verifier,
            &expect,
            now(),
            &mut seeded
        )),
        "SHEF-SDK-044"
    );
    let attested = Session::<Connected>::connect(host)
        .unwrap()
        .attest(&verifier, &expect, now(), &mut system)
        .unwrap();
    assert_eq!(code(attested.key("owner", &epochs, &mut seeded)), "SHEF-SDK-044");
    assert!(tap.take_records().iter().all(|record| record.kind != MessageKind::LoadKey));
    assert_eq!(
        code(vendor.release(host, s.world.image(), 1, &verifier, now(), &mut seeded)),
        "SHEF-SDK-044"
    );
    vendor.release(host, s.world.image(), 1, &verifier, now(), &mut system).unwrap();
}

fn vendor(world: &World) -> [u8; 32] {
    world.verifier().reference().images[0].vendor
}

#[test]
fn the_verifier_takes_revocations_and_the_age_of_its_challenge() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    s.world.load(&mut s.host).unwrap();
    let (anchors, reference) =
        (s.world.verifier().anchors().to_vec(), s.world.verifier().reference().clone());
    let mut policy = s.world.verifier().policy().clone();
    (policy.max_age, policy.require_revocation) = (Some(5), true);
    let verifier =
        shef::Verifier::new("data-owner", anchors.clone(), reference.clone(), policy.clone());
    let expect = s.world.expect();
    let now = now();
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let mut attest = |verifier: &shef::Verifier| {
        code(Session::<Connected>::connect(&mut s.host).unwrap().attest(
            verifier,
            &expect,
            now,
            &mut entropy,
        ))
    };
    assert_eq!(attest(&verifier), "SHEF-ATT-025", "a list is demanded");
    let current = Revocations { issued: now - 5, next_update: now + 60, ..Revocations::default() };
    assert_eq!(attest(&verifier.clone().with_revocations(current.clone())), "accepted");
    let vendor = reference.images[0].vendor.iter().map(|byte| format!("{byte:02x}")).collect();
    let revoked = Revocations { vendors: [vendor].into(), ..current.clone() };
    assert_eq!(attest(&verifier.clone().with_revocations(revoked)), "SHEF-ATT-025");
    // A host that delays the evidence.
    policy.max_age = Some(0);
    let young =
        shef::Verifier::new("data-owner", anchors, reference, policy).with_revocations(current);
    assert_eq!(attest(&young), "accepted");
    tap.meddle(|kind, bytes, _| {
        if kind == MessageKind::ShieldEvidence {
            std::thread::sleep(Duration::from_millis(1100));
        }
        Some(bytes)
    });
    let late = Session::<Connected>::connect(&mut s.host).unwrap().attest(
        &young,
        &expect,
        now,
        &mut entropy,
    );
    assert_eq!(code(late), "SHEF-ATT-006");
}

#[test]
fn a_policy_in_rego_counts_where_the_program_says_what_evaluates_it() {
    let mut s = setup();
    s.world.load(&mut s.host).unwrap();
    let (anchors, reference) =
        (s.world.verifier().anchors().to_vec(), s.world.verifier().reference().clone());
    let (typed, expect) = (s.world.verifier().policy().clone(), s.world.expect());
    let now = now();
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let verifier = |layer: &str| {
        let rego = shef::verify::rego::Rego::new(&format!(
            "package shef\nallow if input.layer == {layer:?}"
        ))
        .unwrap();
        shef::Verifier::new(
            "data-owner",
            anchors.clone(),
            reference.clone(),
            AppraisalPolicy::new(typed.clone()).with_rego(rego),
        )
    };
    let mut attest = |verifier: &shef::Verifier| {
        code(Session::<Connected>::connect(&mut s.host).unwrap().attest(
            verifier,
            &expect,
            now,
            &mut entropy,
        ))
    };
    assert_eq!(attest(&verifier("shield")), "SHEF-ATT-048", "nothing evaluates it");
    assert_eq!(attest(&verifier("shield").with_rego(Unconfined)), "accepted");
    assert_eq!(attest(&verifier("kernel").with_rego(Unconfined)), "SHEF-ATT-048");
}

// ---- waits ----

#[test]
fn waits_end_at_their_time_and_when_the_owner_says_so() {
    let mut s = setup();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    // A bit that is never set.
    let never = (DONE.0, 1 << 30);
    session.patience().most = Duration::from_millis(20);
    let most = Duration::from_secs(20);
    session.patience().watch = Some(Box::new(move |waited| {
        if waited.elapsed < most {
            std::ops::ControlFlow::Continue(())
        } else {
            std::ops::ControlFlow::Break(())
        }
    }));
    let error = session.run(&job(&b, (train, query)), START, never).unwrap_err();
    assert_eq!((error.code(), error.ran()), ("SHEF-SDK-011", Ran::Ran), "{error}");
    session.patience().most = Duration::from_secs(60);
    let told = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = told.clone();
    session.patience().watch = Some(Box::new(move |waited| {
        assert_eq!(waited.addr, DONE.0);
        match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            4 => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        }
    }));
    assert_eq!(code(session.finish(never)), "SHEF-SDK-041");
    assert_eq!(told.load(std::sync::atomic::Ordering::Relaxed), 5);
    session.patience().watch = None;
    let cancel = session.patience().cancel.clone();
    cancel.cancel();
    assert_eq!(code(session.finish(never)), "SHEF-SDK-041");
    let statement = session.statement().unwrap();
    assert_eq!(
        code(session.open(&b.result, &statement, 512, OpenPolicy::default())),
        "SHEF-SDK-029",
        "transfers end too"
    );
    session.patience().cancel = shef::Cancel::default();
    // The launched job continued.
    let statement = session.finish(DONE).unwrap();
    let opened =
        session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    assert_eq!(knn::answers(&opened.data, 32), Some(reference::classify_all(train, query)));
}

// ---- what others write ----

/// The host forges answers of the kernel: codes with which this library reports its own findings.
#[test]
fn codes_that_the_host_wrote_are_not_taken_for_ours() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    for forged in ["SHEF-SDK-021", "SHEF-ATT-001", "SHEF-SEAL-010"] {
        let text = "everything is fine".to_owned();
        let answer = shef_proto::mailbox::Answer::Error { code: forged.into(), text }.encode();
        tap.meddle(move |kind, bytes, _| {
            Some(if kind == MessageKind::KernelAnswer { answer.clone() } else { bytes })
        });
        let error = s.host.kernel_status().unwrap_err();
        assert_eq!(
            (error.code(), error.at_fault()),
            ("SHEF-SDK-046", Fault::Undecided),
            "{forged}"
        );
    }
    tap.honest();
    assert_eq!(code(s.host.new_session()), "SHEF-KRN-014");
}

#[test]
fn mistakes_of_the_caller_are_named_as_such() {
    let mut s = setup();
    let (mut session, b, (train, query)) = keyed(&mut s);
    upload(&mut session, &b, train, query).unwrap();
    let statement = session.statement().unwrap();
    session.flush().unwrap();
    let mistakes = [
        session.upload(&b.query, &[1]).unwrap_err(),
        session.read_register(3).unwrap_err(),
        session.open(&b.result, &statement, 512, OpenPolicy::default()).map(drop).unwrap_err(),
        session.input("nothing").unwrap_err(),
    ];
    for error in mistakes {
        assert_eq!((error.at_fault(), error.ran()), (Fault::Input, Ran::DidNotRun), "{error}");
    }
}
