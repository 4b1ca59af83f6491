//! Batches rotate through several regions, and data is sealed and opened in pieces.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use shef::{
    Batch, Host, InputBuffer, Job, Keyed, Lane, OutputBuffer, Progress, Ran, SdkError, Session,
    unwatched,
};
use shef_lab::data::{Dataset, PIXELS};
use shef_lab::knn;
use shef_lab::reference::{self, Classification};
use shef_lab::tap::MessageKind;
use shef_lab::world::{Cards, Plan, Probe, World};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_seal::OpenPolicy;

/// Bytes of a lane's input, and of its output.
const SIZE: u64 = 4 << 20;
const QUERIES: usize = 32;
const TRAIN: usize = 64;
const START: (u32, u32) = (knn::reg::CTRL, 1);
const DONE: (u32, u32) = (knn::reg::STATUS, knn::DONE | knn::ERROR);

struct Setup {
    _dir: tempfile::TempDir,
    world: World,
    host: Host,
    probe: Probe,
    all: Dataset,
}

/// The digits accelerator behind a Shield with two lanes.
fn setup() -> Setup {
    let region = |id: u8, name: &str, mode, size, chunk| Region {
        id,
        name: name.to_owned(),
        mode,
        base: u64::from(id) * SIZE,
        size,
        chunk,
        tag_base: 8 * SIZE + u64::from(id) * (SIZE / 512 * 16),
        ..Region::default()
    };
    let regions = vec![
        region(0, "train", Mode::Input, 1 << 20, 4096),
        region(1, "query0", Mode::Input, SIZE, 512),
        region(2, "query1", Mode::Input, SIZE, 512),
        region(3, "result0", Mode::Output, SIZE, 512),
        region(4, "result1", Mode::Output, SIZE, 512),
        region(5, "more0", Mode::Input, 4096, 512),
        region(6, "more1", Mode::Input, 4096, 512),
    ];
    let config = Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        cards: Cards::model_of(config).unwrap(),
        seed: None,
        name: "stream".into(),
        service: None,
    };
    let mut world = World::new(dir.path(), plan).unwrap();
    let (host, probe) = world.card(&mut |_| {}).unwrap();
    let all =
        Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")))
            .unwrap();
    Setup { _dir: dir, world, host, probe, all }
}

impl Setup {
    /// A session with the training rows in place, the lanes, and their data.
    fn start(&mut self) -> (Session<'_, Keyed>, [Lane; 2], Digits) {
        let mut session = self.world.session(&mut self.host).unwrap();
        let digits = Digits { train: self.all.head(TRAIN), all: self.all.clone() };
        let train = session.input("train").unwrap();
        session.upload(&train, &knn::train_image(&digits.train)).unwrap();
        let lane = |i| {
            Lane::new(
                [session.input(&format!("query{i}")).unwrap()],
                [session.output(&format!("result{i}")).unwrap()],
            )
        };
        let lanes = [lane(0), lane(1)];
        (session, lanes, digits)
    }
}

struct Digits {
    train: Dataset,
    all: Dataset,
}

impl Digits {
    /// The queries of a batch, and the expected answers.
    fn batch(&self, number: u64) -> (Vec<u8>, Vec<Classification>) {
        let rows = |of: &[_]| of[number as usize * QUERIES..][..QUERIES].to_vec();
        let labels = self.all.labels[number as usize * QUERIES..][..QUERIES].to_vec();
        let set = Dataset { rows: rows(&self.all.rows), labels };
        (set.pixels(), reference::classify_all(&self.train, &set))
    }
}

fn job(lane: &Lane) -> Job {
    let registers = knn::job(0, lane.inputs[0].addr(), lane.outputs[0].addr(), TRAIN, QUERIES);
    Job {
        registers,
        start: START,
        done: (DONE.0, DONE.1.into()),
        results: vec![knn::result_len(QUERIES)],
        policy: OpenPolicy::default(),
    }
}

fn answers(batch: &Batch) -> Vec<Classification> {
    knn::answers(&batch.outputs[0].data, QUERIES).unwrap()
}

fn code<T>(result: Result<T, SdkError>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn batches_overlap_and_come_in_order() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    tap.record();
    let registers = job(&lanes[0]).registers.len();
    let queries = lanes.each_ref().map(|lane| lane.inputs[0].addr());
    let results = lanes.each_ref().map(|lane| lane.outputs[0].addr());
    let mut ring = session.ring(lanes).unwrap();
    let mut came = Vec::new();
    for number in 0..5 {
        assert_eq!(ring.push(&[&digits.batch(number).0], job).unwrap(), number);
        came.extend(ring.results().unwrap());
        assert_eq!(came.len() as u64, number);
        assert!(ring.results().unwrap().is_none(), "results come once");
    }
    came.extend(ring.finish().unwrap());
    assert!(ring.finish().unwrap().is_none());
    assert_eq!(came.iter().map(|batch| batch.number).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for batch in &came {
        assert_eq!(answers(batch), digits.batch(batch.number).1, "batch {}", batch.number);
    }
    // Each batch had a separate epoch, after the initial epochs from the Load Key.
    let statement = session.statement().unwrap();
    let epochs: Vec<_> = (1..5).map(|region| statement.region(region).unwrap().epoch).collect();
    assert_eq!(epochs, [4, 3, 4, 3]);

    // The host's view of a push in the middle: the batch is uploaded before the previous one is
    // polled, and the previous results are downloaded after this batch is launched.
    let legs: Vec<MessageKind> = tap.take_records().iter().map(|record| record.kind).collect();
    let write =
        |addr| legs.iter().position(|kind| *kind == MessageKind::MemoryWrite { addr }).unwrap();
    let read =
        |addr| legs.iter().position(|kind| *kind == MessageKind::MemoryRead { addr }).unwrap();
    let requests = |range: std::ops::Range<usize>| {
        legs[range].iter().filter(|kind| **kind == MessageKind::Request).count()
    };
    assert_eq!(
        requests(write(queries[0])..write(queries[1])),
        2 + registers + 1,
        "epochs and job, and no wait"
    );
    let opened = read(results[0]);
    assert!(requests(write(queries[1])..opened) > 2 + registers + 1);
    let third = opened
        + legs[opened..]
            .iter()
            .position(|kind| *kind == MessageKind::MemoryWrite { addr: queries[0] })
            .unwrap();
    assert_eq!(
        requests(opened..third),
        0,
        "the second batch was not launched before the results of the first came"
    );
}

#[test]
fn an_earlier_batch_does_not_pass_for_a_later_one() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    let addr = lanes[0].inputs[0].addr();
    let mut first = Vec::new();
    let mut count = 0;
    tap.meddle(move |kind, bytes, _| {
        // Data of batch 0, then its tags; replayed in place of those of batch 2.
        let tags = 8 * SIZE + SIZE / 512 * 16;
        if kind == (MessageKind::MemoryWrite { addr })
            || kind == (MessageKind::MemoryWrite { addr: tags })
        {
            count += 1;
            if count <= 2 {
                first.push(bytes.clone());
            } else {
                return Some(first.remove(0));
            }
        }
        Some(bytes)
    });
    let mut ring = session.ring(lanes).unwrap();
    assert_eq!(ring.push(&[&digits.batch(0).0], job).unwrap(), 0);
    for number in 1..3 {
        assert_eq!(ring.push(&[&digits.batch(number).0], job).unwrap(), number);
        assert_eq!(answers(&ring.results().unwrap().unwrap()), digits.batch(number - 1).1);
    }
    assert_eq!(code(ring.push(&[&digits.batch(3).0], job)), "SHEF-SDK-021");
    // No further push succeeds.
    assert_ne!(code(ring.push(&[&digits.batch(3).0], job)), "accepted");
    for _ in 0..2 {
        assert_eq!(code(ring.results()), "SHEF-SDK-021");
        assert_eq!(code(ring.finish()), "SHEF-SDK-021");
    }
    assert_eq!(ring.discard(), Some(2));
    assert!(ring.finish().unwrap().is_none());
}

#[test]
fn a_batch_that_was_not_launched_can_be_pushed_again() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    let addr = lanes[1].inputs[0].addr();
    let mut drops = 2;
    tap.meddle(move |kind, bytes, _| {
        let drop = kind == (MessageKind::MemoryWrite { addr }) && drops > 0;
        drops -= i32::from(drop);
        (!drop).then_some(bytes)
    });
    let mut ring = session.ring(lanes.clone()).unwrap();
    assert_eq!(ring.push(&[&digits.batch(0).0], job).unwrap(), 0);
    assert_eq!(code(ring.push(&[&digits.batch(1).0], job)), "SHEF-DEV-013");
    assert_eq!(code(ring.push(&[&digits.batch(1).0, &[1]], job)), "SHEF-SDK-037");
    assert_eq!(code(ring.push(&[&vec![0; SIZE as usize + 1]], job)), "SHEF-SDK-008");
    assert_eq!(code(ring.push(&[&digits.batch(1).0], job)), "SHEF-DEV-013");
    assert_eq!(ring.push(&[&digits.batch(1).0], job).unwrap(), 1);
    assert_eq!(answers(&ring.results().unwrap().unwrap()), digits.batch(0).1);
    // The results of a job that runs when a ring is dropped cannot be opened under an earlier
    // statement; the session continues under epochs in which no data was sealed.
    drop(ring);
    let buffer = &lanes[1].inputs[0];
    assert_eq!(code(session.upload(buffer, &[1; 512])), "SHEF-SEAL-003");
    assert_eq!(session.next_input_epoch(buffer).unwrap(), 5);
    session.upload(buffer, &digits.batch(2).0).unwrap();
    let mut ring = session.ring(lanes).unwrap();
    ring.push(&[&digits.batch(3).0], job).unwrap();
    assert_eq!(answers(&ring.finish().unwrap().unwrap()), digits.batch(3).1);
}

#[test]
fn a_ring_is_over_where_a_launch_fails_and_keeps_what_was_done() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    // Counts requests since the last upload of a batch, and drops all requests after a given
    // number.
    let (count, drop_at) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(usize::MAX)));
    let (counted, dropped) = (count.clone(), drop_at.clone());
    let queries = lanes.each_ref().map(|lane| lane.inputs[0].addr());
    tap.meddle(move |kind, bytes, _| {
        match kind {
            MessageKind::MemoryWrite { addr } if queries.contains(&addr) => counted.set(0),
            MessageKind::Request => counted.set(counted.get() + 1),
            _ => {}
        }
        (kind != MessageKind::Request || counted.get() < dropped.get()).then_some(bytes)
    });
    let launch = 2 + job(&lanes[0]).registers.len() + 1;
    let mut ring = session.ring(lanes.clone()).unwrap();
    for number in 0..3 {
        ring.push(&[&digits.batch(number).0], job).unwrap();
        ring.results().unwrap();
    }
    let wait = count.get() - launch;
    ring.finish().unwrap();

    let mut ring = session.ring(lanes.clone()).unwrap();
    assert_eq!(ring.push(&[&digits.batch(3).0], job).unwrap(), 0);
    drop_at.set(wait + 1);
    let error = ring.push(&[&digits.batch(4).0], job).unwrap_err();
    assert_eq!((error.code(), error.ran()), ("SHEF-SDK-040", Ran::Unknown), "{error}");
    assert_eq!(code(ring.push(&[&digits.batch(4).0], job)), "SHEF-SDK-038");
    let last = ring.results().unwrap().unwrap();
    assert_eq!((last.number, answers(&last)), (0, digits.batch(3).1));
    assert!(ring.finish().unwrap().is_none());
    drop(ring);
    // The session continues once the host forwards messages again.
    drop_at.set(usize::MAX);
    let mut ring = session.ring(lanes).unwrap();
    ring.push(&[&digits.batch(5).0], job).unwrap();
    assert_eq!(answers(&ring.finish().unwrap().unwrap()), digits.batch(5).1);
}

#[test]
fn results_that_are_withheld_can_be_fetched_again_and_no_batch_runs_twice() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    let addr = lanes[1].outputs[0].addr();
    let (withhold, held) = (Rc::new(Cell::new(true)), Rc::new(Cell::new(0)));
    let (withheld, count) = (withhold.clone(), held.clone());
    tap.meddle(move |kind, mut bytes, _| {
        if kind == (MessageKind::MemoryRead { addr }) && withheld.get() {
            bytes[0] ^= 1;
            count.set(count.get() + 1);
        }
        Some(bytes)
    });
    let mut ring = session.ring(lanes).unwrap();
    assert_eq!(ring.push(&[&digits.batch(0).0], job).unwrap(), 0);
    assert_eq!(ring.push(&[&digits.batch(1).0], job).unwrap(), 1);
    assert_eq!(answers(&ring.results().unwrap().unwrap()), digits.batch(0).1);
    // Batch 2 is launched, independently of the results of batch 1.
    assert_eq!(ring.push(&[&digits.batch(2).0], job).unwrap(), 2);
    for _ in 0..2 {
        assert_eq!(code(ring.results()), "SHEF-SDK-016");
    }
    // The next batch would overwrite them.
    assert_eq!(code(ring.push(&[&digits.batch(3).0], job)), "SHEF-SDK-045");
    withhold.set(false);
    let second = ring.results().unwrap().unwrap();
    assert_eq!((second.number, answers(&second), held.get()), (1, digits.batch(1).1, 2));
    assert_eq!(ring.push(&[&digits.batch(3).0], job).unwrap(), 3);
    // Or the caller gives them up.
    assert_eq!(answers(&ring.results().unwrap().unwrap()), digits.batch(2).1);
    withhold.set(true);
    assert_eq!(code(ring.finish()), "SHEF-SDK-016");
    assert_eq!(ring.discard(), Some(3));
    assert!(ring.finish().unwrap().is_none());
}

#[test]
fn a_batch_whose_results_do_not_fit_is_not_begun() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    tap.record();
    let mut ring = session.ring(lanes.clone()).unwrap();
    let too_long = |lane: &Lane| Job { results: vec![SIZE as usize + 1], ..job(lane) };
    assert_eq!(code(ring.push(&[&digits.batch(0).0], too_long)), "SHEF-SDK-008");
    assert_eq!(code(ring.push(&[&vec![0; SIZE as usize + 1]], job)), "SHEF-SDK-008");
    drop(ring);
    assert_eq!(tap.take_records().len(), 0, "something was sent");
    let mut ring = session.ring(lanes).unwrap();
    ring.push(&[&digits.batch(0).0], job).unwrap();
    assert_eq!(answers(&ring.finish().unwrap().unwrap()), digits.batch(0).1);
}

#[test]
fn a_batch_of_which_a_part_does_not_fit_is_not_begun() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, lanes, digits) = s.start();
    let more = ["more0", "more1"].map(|name| session.input(name).unwrap());
    let lanes = [0, 1].map(|i| {
        Lane::new([lanes[i].inputs[0].clone(), more[i].clone()], lanes[i].outputs.clone())
    });
    tap.record();
    let mut ring = session.ring(lanes).unwrap();
    assert_eq!(code(ring.push(&[&digits.batch(0).0, &[0; 4097]], job)), "SHEF-SDK-008");
    drop(ring);
    assert_eq!(tap.take_records().len(), 0, "something was sent");
}

#[test]
fn a_ring_has_lanes_of_its_own_session() {
    let (mut a, mut b) = (setup(), setup());
    let (_theirs, lanes, _) = a.start();
    let (mut session, own, _) = b.start();
    session.ring(own).unwrap();
    assert_eq!(code(session.ring(lanes)), "SHEF-SDK-043");
}

/// Batch 1 writes to memory that batch 0 of the other lane has sealed: the Shield refuses and
/// reports this. Each launch is judged separately.
#[test]
fn refusals_are_allowed_for_a_launch() {
    let mut s = setup();
    let (mut session, lanes, digits) = s.start();
    let input = lanes[0].inputs[0].addr();
    let beside = |lane: &Lane, refusals| {
        let mut job = job(lane);
        job.policy.refusals = refusals;
        job
    };
    // Writes its results into an input region.
    let refused = |lane: &Lane, refusals| Job {
        registers: knn::job(0, lane.inputs[0].addr(), input, TRAIN, QUERIES),
        policy: OpenPolicy { refusals, holes: true },
        ..job(lane)
    };
    let mut ring = session.ring(lanes).unwrap();
    ring.push(&[&digits.batch(0).0], |lane| refused(lane, true)).unwrap();
    // An allowed refusal does not fail later launches; a new one does.
    ring.push(&[&digits.batch(1).0], |lane| beside(lane, false)).unwrap();
    assert!(ring.results().unwrap().is_some());
    ring.push(&[&digits.batch(2).0], |lane| refused(lane, false)).unwrap();
    assert_eq!(answers(&ring.results().unwrap().unwrap()), digits.batch(1).1);
    assert_eq!(code(ring.finish()), "SHEF-SDK-010");
}

#[test]
fn lanes_that_cannot_take_turns_are_refused() {
    let mut s = setup();
    let (mut session, [a, b], _) = s.start();
    let other = Lane::new([session.input("train").unwrap()], b.outputs.clone());
    for (lanes, says) in [
        (vec![], "lanes: 0, expected 2 or more"),
        (vec![a.clone()], "lanes: 1, expected 2 or more"),
        (vec![a.clone(), a.clone()], r#"region: "query0" twice, expected once"#),
        (
            vec![a.clone(), Lane::new([], b.outputs.clone())],
            "0 inputs and 1 outputs, expected 1 inputs and 1 outputs",
        ),
        (
            vec![a.clone(), other],
            r#""train" of 1048576 bytes in chunks of 4096, expected "query0" of 4194304 bytes in chunks of 512"#,
        ),
    ] {
        let Err(error) = session.ring(lanes) else { panic!("accepted: {says}") };
        assert_eq!(error.code(), "SHEF-SDK-037");
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// Zeros with a batch of queries here and there, generated as they are read; never more bytes than
/// requested.
struct Made<'a> {
    at: usize,
    end: usize,
    batches: &'a [(usize, Vec<u8>)],
}

impl Read for Made<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        // Odd lengths, as real readers return.
        let len = buf.len().min(self.end - self.at).min(10_007);
        for (i, byte) in buf[..len].iter_mut().enumerate() {
            let at = self.at + i;
            *byte = self
                .batches
                .iter()
                .find_map(|(from, data)| data.get(at.checked_sub(*from)?))
                .copied()
                .unwrap_or(0);
        }
        self.at += len;
        Ok(len)
    }
}

/// Offsets of batches in a region: in the first piece, across a boundary, in the last piece, which
/// is short.
const PLACES: [usize; 3] = [4096, (2 << 20) - 1024, (3 << 20) + 512];
const LEN: usize = PLACES[2] + QUERIES * PIXELS;
/// As in transfer.rs: bytes of a piece. `ALL` is the number of pieces in an upload of [`LEN`].
const PIECE: usize = 1 << 18;
const ALL: usize = LEN.div_ceil(PIECE);

/// Bytes with their offset in the region.
type Placed = (usize, Vec<u8>);

fn at_places(digits: &Digits) -> (Vec<Placed>, Vec<Vec<Classification>>) {
    PLACES
        .iter()
        .zip(0..)
        .map(|(at, number)| (digits.batch(number), *at))
        .map(|((data, answers), at)| ((at, data), answers))
        .unzip()
}

/// Classifies the batch at `place` and leaves the results at the same place of the output region.
fn run(
    session: &mut Session<'_, Keyed>,
    query: &InputBuffer,
    result: &OutputBuffer,
    place: usize,
) -> shef_proto::channel::Statement {
    let job =
        knn::job(0, query.addr() + place as u64, result.addr() + place as u64, TRAIN, QUERIES);
    session.run(&job, START, DONE).unwrap()
}

#[test]
fn what_does_not_fit_memory_goes_through_in_pieces() {
    let mut s = setup();
    let (mut session, [Lane { inputs, outputs }, _], digits) = s.start();
    let (query, result) = (&inputs[0], &outputs[0]);
    let (batches, expected) = at_places(&digits);
    let mut seen = Vec::new();
    let mut watch = |progress: Progress| {
        seen.push(progress);
        ControlFlow::Continue(())
    };
    session
        .upload_from(query, Made { at: 0, end: LEN, batches: &batches }, LEN as u64, &mut watch)
        .unwrap();
    let total = LEN as u64;
    assert!(
        seen.iter().all(|p| p.total == total)
            && seen[0].done == 0
            && seen.last().unwrap().done == total,
        "{seen:?}"
    );
    assert!(seen.len() == 1 + ALL && seen.windows(2).all(|p| p[0].done < p[1].done), "{seen:?}");
    let mut statement = None;
    for place in PLACES {
        statement = Some(run(&mut session, query, result, place));
    }
    let statement = statement.unwrap();

    let holes = OpenPolicy { holes: true, ..OpenPolicy::default() };
    // A length that is not a multiple of the chunk size.
    let len = PLACES[2] + knn::result_len(QUERIES) - 1;
    assert_eq!(
        code(session.open_to(
            result,
            &statement,
            len as u64,
            OpenPolicy::default(),
            io::sink(),
            &mut unwatched
        )),
        "SHEF-SEAL-009"
    );
    let (opened, written) =
        session.open_to(result, &statement, len as u64, holes, Vec::new(), &mut unwatched).unwrap();
    assert_eq!(opened.len(), len);
    for (place, expected) in PLACES.iter().zip(expected) {
        let mut bytes = opened[*place..opened.len().min(place + knn::result_len(QUERIES))].to_vec();
        // The byte that was not requested is zero in every record.
        bytes.resize(knn::result_len(QUERIES), 0);
        assert_eq!(knn::answers(&bytes, QUERIES).unwrap(), expected, "at {place}");
        assert!(written.is_written(*place as u64 / 512));
    }
    assert!(opened[..PLACES[0]].iter().all(|byte| *byte == 0));
    // The same as in a single call.
    assert_eq!(session.open(result, &statement, len, holes).unwrap().data[..len], opened);
    // The same in memory that was used before: unwritten bytes are zero there too.
    for len in [len, 512, 1, 0] {
        let mut out = vec![0xee; len];
        assert_eq!(session.open_into(result, &statement, &mut out, holes).unwrap(), written);
        assert!(out == opened[..len], "{len} bytes");
    }
}

fn stop_after(pieces: usize) -> impl FnMut(Progress) -> ControlFlow<()> {
    let mut left = pieces;
    move |_| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    }
}

#[test]
fn an_upload_that_ends_half_way_is_worthless_and_the_session_goes_on() {
    let mut s = setup();
    let (mut session, [Lane { inputs, outputs }, _], digits) = s.start();
    let (query, result) = (&inputs[0], &outputs[0]);
    let (batches, expected) = at_places(&digits);
    let made = |end| Made { at: 0, end, batches: &batches };
    let len = LEN as u64;
    for pieces in [0, 1, 2, 5, ALL] {
        let ended = session.upload_from(query, made(LEN), len, &mut stop_after(pieces));
        let Err(SdkError::Cancelled { done, total }) = ended else {
            panic!("went on: {}", code(ended))
        };
        assert_eq!((done, total), (LEN.min(pieces * PIECE) as u64, len));
        assert_eq!(
            code(session.upload_from(query, made(LEN), len, &mut unwatched)),
            "SHEF-SEAL-003",
            "the epoch was sealed in"
        );
        session.next_input_epoch(query).unwrap();
    }
    // Ends in the middle of a piece, and in the last one.
    for end in [(1 << 20) + 7, LEN - 1] {
        let error = session.upload_from(query, made(end), len, &mut unwatched).unwrap_err();
        assert_eq!(error.code(), "SHEF-SDK-028", "{error}");
        session.next_input_epoch(query).unwrap();
    }
    // All of it, then half of it again: the accelerator does not get the other half of the first
    // upload.
    session.upload_from(query, made(LEN), len, &mut unwatched).unwrap();
    let statement = run(&mut session, query, result, PLACES[2]);
    let opened = session
        .open(
            result,
            &statement,
            SIZE as usize,
            OpenPolicy { holes: true, ..OpenPolicy::default() },
        )
        .unwrap();
    assert_eq!(
        knn::answers(&opened.data[PLACES[2]..][..knn::result_len(QUERIES)], QUERIES).unwrap(),
        expected[2]
    );
    session.next_input_epoch(query).unwrap();
    session.next_output_epoch(result).unwrap();
    assert_eq!(
        code(session.upload_from(query, made(LEN), len, &mut stop_after(2))),
        "SHEF-SDK-029"
    );
    let statement = run(&mut session, query, result, PLACES[2]);
    assert_eq!(code(session.open(result, &statement, 512, OpenPolicy::default())), "SHEF-SDK-021");
    session.close().unwrap();
}

/// Accepts some bytes, then fails.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(buf.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_comes_back_only_with_the_whole_result() {
    let mut s = setup();
    let tap = s.probe.tap().clone();
    let (mut session, [Lane { inputs, outputs }, _], digits) = s.start();
    let (query, result) = (&inputs[0], &outputs[0]);
    let (batches, _) = at_places(&digits);
    session
        .upload_from(query, Made { at: 0, end: LEN, batches: &batches }, LEN as u64, &mut unwatched)
        .unwrap();
    let statement = run(&mut session, query, result, PLACES[2]);
    let holes = OpenPolicy { holes: true, ..OpenPolicy::default() };
    for pieces in 0..5 {
        assert_eq!(
            code(session.open_to(
                result,
                &statement,
                SIZE,
                holes,
                Vec::new(),
                &mut stop_after(pieces)
            )),
            "SHEF-SDK-029"
        );
    }
    assert_eq!(
        code(session.open_to(result, &statement, SIZE, holes, Full(2 << 20), &mut unwatched)),
        "SHEF-SDK-028"
    );
    // Data that does not open is never written, nor anything after it.
    let addr = result.addr() + (3 << 20);
    tap.meddle(move |kind, mut bytes, _| {
        if kind == (MessageKind::MemoryRead { addr }) {
            bytes[PLACES[2] - (3 << 20)] ^= 1;
        }
        Some(bytes)
    });
    let mut written = Vec::new();
    assert_eq!(
        code(session.open_to(result, &statement, SIZE, holes, &mut written, &mut unwatched)),
        "SHEF-SDK-016"
    );
    assert_eq!(written.len(), 3 << 20);
    // The caller's buffer then contains no data.
    let mut out = vec![0xee; SIZE as usize];
    assert_eq!(code(session.open_into(result, &statement, &mut out, holes)), "SHEF-SDK-016");
    assert!(out.iter().all(|byte| *byte == 0));
    tap.honest();
    let (written, _) =
        session.open_to(result, &statement, SIZE, holes, Vec::new(), &mut unwatched).unwrap();
    assert_eq!(written.len() as u64, SIZE);
}
