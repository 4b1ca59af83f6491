//! What a session lets its owner do, and what not.

use std::path::Path;

use shef::sim::Engine;
use shef::{Host, Keyed, SdkError, Session};
use shef_cli::demo::attacks::{buffers, upload};
use shef_cli::demo::data::Dataset;
use shef_cli::demo::knn::{self, Buffers};
use shef_cli::demo::reference;
use shef_cli::demo::world::{Bench, Cards, Plan, World};
use shef_proto::channel::{ChannelError, FaultKind, State};
use shef_proto::config::{Config, OnFault};
use shef_seal::OpenPolicy;

struct Setup {
    _dir: tempfile::TempDir,
    world: World,
    host: Host,
    bench: Bench,
    train: Dataset,
    query: Dataset,
}

fn setup() -> Setup {
    setup_of(Engine::Model)
}

/// The same with another answer to faults.
fn setup_with(on_fault: OnFault) -> Setup {
    let demo = shef::sim::config().unwrap();
    let config = Config::new(on_fault, demo.ports(), demo.sets().to_vec(), demo.regions().to_vec()).unwrap();
    setup_of(Engine::ModelOf(config))
}

fn setup_of(engine: Engine) -> Setup {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(dir.path(), Plan { cards: Cards::Made(engine), seed: None, name: "session".into(), service: None }).unwrap();
    let (host, bench) = world.card(&mut |_| {}).unwrap();
    let all = Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz"))).unwrap();
    Setup { _dir: dir, world, host, bench, train: all.head(64), query: all.head(32) }
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
    assert_eq!(code(session.open(&b.result, &statement, 1 << 20, OpenPolicy::default())), "SHEF-SDK-008");
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
    let opened = session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    assert_eq!(knn::answers(&opened.data[..knn::result_len(32)], 32), Some(reference::classify_all(train, query)));
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
    // Of the region's 512 chunks one was written.
    assert_eq!(code(session.open(&b.result, &first, 1024, OpenPolicy::default())), "SHEF-SEAL-009");
    let holes = session.open(&b.result, &first, 1024, OpenPolicy { holes: true, ..OpenPolicy::default() }).unwrap();
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
    // A second run in the same epoch writes its results a second time, which the Shield refuses; the first ones stay.
    let statement = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert!(statement.shield().refusals > 0 && statement.shield().faults == 0 && !statement.shield().stopped);
    assert_eq!(code(session.open(&b.result, &statement, 512, OpenPolicy::default())), "SHEF-SDK-010");
    let opened = session.open(&b.result, &statement, 512, OpenPolicy { refusals: true, ..OpenPolicy::default() }).unwrap();
    assert_eq!(knn::answers(&opened.data[..knn::result_len(32)], 32), Some(reference::classify_all(train, query)));
}

/// What a host does that changes a bit in card memory.
fn flip(session: &mut Session<'_, Keyed>, addr: u64) {
    let mut byte = session.host().read_memory(addr, 1).unwrap();
    byte[0] ^= 0x10;
    session.host().write_memory(addr, byte).unwrap();
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

    let error = session.run(&job(&b, (train, query)), START, DONE).expect_err("the session goes on");
    assert_eq!(error.code(), "SHEF-PRO-256");
    assert!(error.to_string().contains("in region 1, chunk 0x1, version 2"), "{error}");
    let SdkError::Channel(ChannelError::Halted { last }) = error else { panic!("{error}") };
    let found = |last: &shef_proto::channel::ShieldStatement| {
        (last.state, last.stopped, last.faults, last.fault_kind, last.fault_region, last.fault_chunk, last.fault_version)
    };
    assert_eq!(found(&last), (State::Closed, true, 1, FaultKind::Tag, 1, 1, 2));
    // No answer and no result comes after that.
    assert_eq!(code(session.ping()), "SHEF-PRO-256");
    assert_eq!(code(session.statement()), "SHEF-PRO-256");
    assert_eq!(code(session.open(&b.result, &first, 512, OpenPolicy::default())), "SHEF-SDK-014");
    assert_eq!(code(session.open_despite_fault(&b.result, &first, 512, OpenPolicy::default(), &["query"])), "SHEF-SDK-014");

    // The owner has the last words, and the kernel countersigns them as those of any session.
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
        session.open_despite_fault(&b.result, statement, knn::result_len(32), OpenPolicy::default(), unreached)
    };
    upload(&mut session, &b, train, query).unwrap();
    flip(&mut session, b.query.addr());
    let reached = session.run(&job(&b, (train, query)), START, DONE).unwrap();
    assert_eq!((reached.shield().stopped, reached.shield().faults), (false, 1));
    assert_eq!(reached.frozen().collect::<Vec<_>>(), [1]);
    assert_eq!(session.read_register(knn::reg::STATUS).unwrap() & knn::ERROR, knn::ERROR);
    assert_eq!(code(open(&mut session, &reached, &["query"])), "SHEF-SEAL-009", "that launch wrote nothing");

    // A launch that leaves the frozen region alone: training rows are classified.
    let other = knn::job(b.train.addr(), b.train.addr(), b.result.addr(), 64, 32);
    let beside = session.run(&other, START, DONE).unwrap();
    assert_eq!(session.read_register(knn::reg::STATUS).unwrap(), knn::DONE);
    let beside_code = |session: &mut Session<'_, Keyed>, names: &[&str]| code(open(session, &beside, names));
    assert_eq!(code(session.open(&b.result, &beside, knn::result_len(32), OpenPolicy::default())), "SHEF-SDK-021");
    assert_eq!(beside_code(&mut session, &[]), "SHEF-SDK-027");
    assert_eq!(beside_code(&mut session, &["train", "result"]), "SHEF-SDK-027");
    assert_eq!(beside_code(&mut session, &["query", "nothing"]), "SHEF-SDK-006");
    let opened = open(&mut session, &beside, &["query"]).unwrap();
    assert_eq!(knn::answers(&opened.data[..knn::result_len(32)], 32), Some(reference::classify_all(train, &train.head(32))));

    // The results' own region is frozen: no name opens it. The statement from before is stale by then.
    session.invalidate().unwrap();
    flip(&mut session, b.result.addr());
    let own = session.run(&knn::job(b.train.addr(), b.result.addr(), b.result.addr() + 4096, 64, 32), START, DONE).unwrap();
    assert_eq!(own.frozen().collect::<Vec<_>>(), [1, 2]);
    for names in [&["query"][..], &["query", "result"], &["train", "query", "result"]] {
        assert_eq!(code(open(&mut session, &own, names)), "SHEF-SDK-027");
        assert_eq!(beside_code(&mut session, names), "SHEF-SDK-014");
    }
    // The session is closed as any other.
    let closed = session.close().unwrap();
    assert_eq!((closed.by_itself, closed.last.stopped, closed.last.faults), (false, false, 2));
    closed.verify_record(&s.host.close_record().unwrap()).unwrap();
}

#[test]
fn keys_are_gone_after_close_and_after_reset() {
    let mut s = setup();
    let (mut session, _, _) = keyed(&mut s);
    let request = session.seal_request(&shef_proto::channel::Request::ping()).unwrap();
    let (answer, refused) = session.host().ring(&request).unwrap();
    assert!(!refused);
    session.take_answer(&answer).unwrap();
    let closed = session.close().unwrap();
    let record = s.host.close_record().unwrap();
    closed.verify_record(&record).unwrap();
    assert!(s.host.ring(&request).unwrap().1, "a request of a session that is over");
    // Nobody else's record passes for this one's.
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
        let answer = s.host.kernel(garbage.to_vec()).unwrap();
        let answer = shef_proto::mailbox::Answer::decode(&answer).unwrap();
        assert!(answer.into_result().is_err());
    }
    assert_eq!(code(s.host.kernel(vec![0; 0x2001])), "SHEF-DEV-008");
    assert_eq!(code(s.host.new_session()), "SHEF-KRN-014");
    assert_eq!(code(s.host.close_record()), "SHEF-KRN-014");
    assert_eq!(code(s.host.load_image(b"no container".to_vec(), vec![])), "SHEF-PRO-040");
    assert_eq!(s.host.kernel_status().unwrap().root_of_trust, "simulated");
    assert_eq!(s.bench.words_delivered().unwrap(), 0);
}

#[test]
fn a_seed_shows_in_evidence_and_a_policy_must_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut seeded =
        World::new(dir.path(), Plan { cards: Cards::Made(Engine::Model), seed: Some(3), name: "seeded".into(), service: None }).unwrap();
    let (mut host, _) = seeded.card(&mut |_| {}).unwrap();
    assert_eq!(code(seeded.release(&mut host).map(|r| assert!(r.verified.claims().seeded))), "accepted");
    let strict = shef_verify::Policy::strict("production", &[shef_proto::evidence::RootOfTrust::Simulated]);
    let verifier = shef::Verifier::new("data-owner", seeded.verifier().anchors().to_vec(), seeded.verifier().reference().clone(), strict);
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let challenge = shef::Challenge::draw("data-owner", &mut entropy);
    let evidence = host.kernel_evidence(&challenge).unwrap();
    assert_eq!(code(verifier.appraise_kernel(&evidence, &challenge, 1_767_225_600)), "SHEF-ATT-022");
}

/// A Shield without card memory: attested, keyed, registers over the channel, a statement, closed. What the demo's accelerator asks of memory is refused.
#[test]
fn a_session_without_card_memory_has_registers_and_a_statement() {
    let mut s = setup_of(Engine::ModelOf(Config::new(OnFault::Shield, 0, vec![], vec![]).unwrap()));
    let mut session = s.world.session(&mut s.host).unwrap();
    assert!(!session.config().has_memory());
    assert_eq!(code(session.input("train")), "SHEF-SDK-006");
    let statement = session.run(&knn::job(0, 0x1_0000, 0x2_0000, 8, 4), START, DONE).unwrap();
    assert_eq!(session.read_register(0x10).unwrap(), 8);
    assert_eq!(session.read_register(knn::reg::STATUS).unwrap() & knn::ERROR, knn::ERROR);
    assert!(statement.shield().refusals > 0 && statement.shield().faults == 0 && statement.frozen().count() == 0);
    assert_eq!(code(session.statistics(0)), "SHEF-PRO-254");
    session.invalidate().unwrap();
    let closed = session.close().unwrap();
    assert_eq!((closed.last.state, closed.last.faults, closed.last.refusals), (State::Closed, 0, statement.shield().refusals));
    closed.verify_record(&s.host.close_record().unwrap()).unwrap();
}
