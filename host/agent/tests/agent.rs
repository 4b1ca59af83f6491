//! The agent serves several owners and cards, and resumes sessions over lost connections. It keeps
//! strangers away, and the owner's side withstands dishonest agents.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shef_device::{CtlOp, Device, DeviceError};
use shef_fixtures::agent::*;
use shef_remote::wire::{DeviceAnswer, DeviceOp, DeviceState, ToAgent, ToOwner};
use shef_remote::{RemoteDevice, TlsFiles, list};

/// What a dishonest agent does with the answer of this number: `None` forwards it.
type Deed = fn(&ToOwner, u64) -> Option<Vec<ToOwner>>;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((i ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn a_card_behind_an_agent_is_like_one_here() {
    let bed = Bed::new(LONG);
    let mut card = bed.open("alice", "card0").unwrap();
    let info = card.info();
    assert_eq!((info.memory_bytes, info.root_of_trust.as_str()), (MEMORY, "simulated"));
    card.ctl_write32(SUM, 5).unwrap();
    let write = CtlOp::Write { offset: SUM, value: 2 };
    let read = CtlOp::Read { offset: SUM };
    assert_eq!(card.ctl_batch(&[read, write, read, write, write, read]).unwrap(), [5, 7, 11]);
    assert_eq!(card.cycles(), Some(11));
    // A batch with more accesses than one message holds.
    let many: Vec<CtlOp> =
        (0..20_000).map(|_| CtlOp::Write { offset: SUM, value: 1 }).chain([read]).collect();
    assert_eq!(card.ctl_batch(&many).unwrap(), [20_011]);
    // A poll that does not settle ends the batch.
    let poll = CtlOp::Poll { offset: NEVER, clear: 0, some: 1, polls: 1000 };
    assert_eq!(card.ctl_batch(&[read, poll, write]).unwrap(), [20_011, 0]);
    assert_eq!(bed.cards["card0"].polls.load(Ordering::SeqCst), 1000);
    assert_eq!(card.kernel_call(b"stop").unwrap(), b"pots");
    assert!(!card.wait_interrupt().unwrap());
    for (addr, len) in [(0, 1), (4095, 2), (7, 3 * 1024 * 1024 + 5), (MEMORY - 9, 9)] {
        let data = pattern(addr, len);
        card.mem_write(addr, &data).unwrap();
        let mut back = vec![0; len];
        card.mem_read(addr, &mut back).unwrap();
        assert_eq!(back, data, "{len} bytes at {addr}");
    }
    card.mem_write(0, &[]).unwrap();
    // Errors arrive unchanged, and the session continues.
    assert!(matches!(
        card.ctl_read32(NOTHING),
        Err(DeviceError::CtlRefused { access: "read", offset: NOTHING })
    ));
    assert!(matches!(
        card.ctl_write32(NOTHING, 0),
        Err(DeviceError::CtlRefused { access: "write", offset: NOTHING })
    ));
    assert!(
        matches!(card.mem_write(MEMORY - 1, &[0; 2]), Err(DeviceError::MemoryRange { addr, len: 2, memory_bytes: MEMORY }) if addr == MEMORY - 1)
    );
    assert!(matches!(card.mem_read(u64::MAX, &mut [0; 2]), Err(DeviceError::MemoryRange { .. })));
    assert!(matches!(
        card.kernel_call(&[0; 8193]),
        Err(DeviceError::MailboxTooLong { len: 8193, max: 8192 })
    ));
    card.reset().unwrap();
    assert_eq!(card.ctl_read32(SUM).unwrap(), 0);
}

#[test]
fn a_card_has_one_owner_at_a_time_and_is_wiped_between_two() {
    let bed = Bed::new(LONG);
    let mut alice = bed.open("alice", "card0").unwrap();
    alice.ctl_write32(SUM, 9).unwrap();
    let error = bed.open("bob", "card0").err().unwrap();
    assert_eq!(error.code(), "SHEF-AGT-007");
    assert!(error.to_string().contains("another owner holds it"), "{error}");
    // Not even for a second session of the same owner.
    assert_eq!(code(bed.open("alice", "card0")), "SHEF-AGT-007");
    // Another card at the same time is fine.
    let mut other = bed.open("alice", "card1").unwrap();
    other.ctl_write32(SUM, 1).unwrap();
    assert_eq!(code(bed.open("bob", "card2")), "SHEF-AGT-006");
    let listed = list("localhost", bed.address.port(), &bed.files("alice"), &limits()).unwrap();
    let states: Vec<_> =
        listed.iter().map(|d| (d.name.as_str(), d.state, d.owner.as_deref())).collect();
    assert_eq!(
        states,
        [
            ("card0", DeviceState::InUse, Some("alice")),
            ("card1", DeviceState::InUse, Some("alice"))
        ]
    );
    drop(alice);
    let mut bob = bed.open("bob", "card0").unwrap();
    assert_eq!(bob.ctl_read32(SUM).unwrap(), 0);
    assert_eq!(bed.cards["card0"].resets.load(Ordering::SeqCst), 1);
    assert_eq!(bed.cards["card1"].resets.load(Ordering::SeqCst), 0);
}

#[test]
fn owners_work_at_the_same_time_on_their_own_cards() {
    let bed = Bed::new(LONG);
    std::thread::scope(|scope| {
        for (owner, card, seed) in [("bob", "card0", 1), ("alice", "card1", 2)] {
            let bed = &bed;
            scope.spawn(move || {
                let mut card = bed.open(owner, card).unwrap();
                for round in 0..6 {
                    let data = pattern(seed + round, 1 << 20);
                    card.mem_write(round, &data).unwrap();
                    card.ctl_write32(SUM, seed as u32).unwrap();
                    let mut back = vec![0; 1 << 20];
                    card.mem_read(round, &mut back).unwrap();
                    assert_eq!(back, data);
                }
                assert_eq!(card.ctl_read32(SUM).unwrap(), 6 * seed as u32);
            });
        }
    });
}

#[test]
fn an_owner_that_vanishes_leaves_a_card_that_is_wiped_and_free() {
    let bed = Bed::new(Duration::from_millis(200));
    let proxy = Proxy::new(bed.address, Arc::new(Faithful));
    let mut card = bed.open_at(proxy.port, "alice", "card0").unwrap();
    card.ctl_write32(SUM, 3).unwrap();
    proxy.cut();
    let seen = &bed.cards["card0"];
    eventually("the wipe", || seen.resets.load(Ordering::SeqCst) == 1);
    assert_eq!(seen.sum.load(Ordering::SeqCst), 0);
    // The session is over for good, and the error gives the reason.
    assert_eq!(code(card.ctl_read32(SUM)), "SHEF-AGT-008");
    assert_eq!(code(card.ctl_read32(SUM)), "SHEF-AGT-008");
    bed.open("bob", "card0").unwrap().ctl_read32(SUM).unwrap();
}

#[test]
#[expect(clippy::mem_forget, reason = "a program that is killed drops nothing")]
fn an_owner_whose_program_was_started_anew_gets_the_card_at_once() {
    let bed = Bed::new(LONG);
    let proxy = Proxy::new(bed.address, Arc::new(Faithful));
    let mut before = bed.open_at(proxy.port, "alice", "card0").unwrap();
    before.ctl_write32(SUM, 3).unwrap();
    proxy.cut();
    std::mem::forget(before);
    let state =
        || list("localhost", bed.address.port(), &bed.files("bob"), &limits()).unwrap()[0].state;
    eventually("the agent's notice", || state() == DeviceState::Orphaned);
    assert_eq!(code(bed.open("bob", "card0")), "SHEF-AGT-007");
    let mut again = bed.open("alice", "card0").unwrap();
    assert_eq!(again.ctl_read32(SUM).unwrap(), 0);
}

/// Cuts each connection after a number of bytes in one direction.
struct CutAfter {
    limit: u64,
    carried: Mutex<std::collections::BTreeMap<(u64, bool), u64>>,
}

impl Tamper for CutAfter {
    fn bytes(&self, connection: u64, to_agent: bool, bytes: &mut Vec<u8>) -> bool {
        let mut carried = self.carried.lock().unwrap();
        let so_far = carried.entry((connection, to_agent)).or_default();
        *so_far += bytes.len() as u64;
        *so_far <= self.limit
    }
}

#[test]
fn transfers_go_on_after_lost_connections_and_nothing_is_done_twice() {
    let bed = Bed::new(LONG);
    let proxy =
        Proxy::new(bed.address, Arc::new(CutAfter { limit: 1_500_000, carried: Mutex::default() }));
    let mut card = bed.open_at(proxy.port, "alice", "card0").unwrap();
    let data = pattern(5, 6 << 20);
    let mut sum = 0;
    for round in 1..=3u32 {
        card.mem_write(0, &data).unwrap();
        card.ctl_write32(SUM, round).unwrap();
        sum += round;
        let mut back = vec![0; data.len()];
        card.mem_read(0, &mut back).unwrap();
        assert_eq!(back, data);
    }
    for _ in 0..300 {
        card.ctl_write32(SUM, 1).unwrap();
        sum += 1;
    }
    assert_eq!(card.ctl_read32(SUM).unwrap(), sum);
    assert!(
        proxy.connections.load(Ordering::SeqCst) > 20,
        "{} connections",
        proxy.connections.load(Ordering::SeqCst)
    );
    // Each piece was written exactly once, however often it was resent.
    assert_eq!(bed.cards["card0"].writes.load(Ordering::SeqCst), 3 * 24);
}

/// Cuts a connection at one of the first bytes after the session was opened, including between a
/// request and its answer.
struct CutAnswers {
    every: u64,
    count: AtomicU64,
}

impl Tamper for CutAnswers {
    fn bytes(&self, _: u64, to_agent: bool, bytes: &mut Vec<u8>) -> bool {
        // Small segments to the owner are answers: some never arrive although the request was
        // carried out.
        to_agent
            || bytes.len() > 200
            || self.count.fetch_add(1, Ordering::SeqCst) % self.every != self.every - 1
    }
}

#[test]
fn a_request_whose_answer_was_lost_is_not_carried_out_again() {
    let bed = Bed::new(LONG);
    let proxy =
        Proxy::new(bed.address, Arc::new(CutAnswers { every: 7, count: AtomicU64::new(0) }));
    let mut card = bed.open_at(proxy.port, "alice", "card0").unwrap();
    for i in 1..=60u32 {
        card.ctl_write32(SUM, 1).unwrap();
        assert_eq!(bed.cards["card0"].sum.load(Ordering::SeqCst), u64::from(i));
    }
    assert!(proxy.connections.load(Ordering::SeqCst) > 5);
}

/// Changes, drops, repeats or swaps bytes below TLS now and then.
struct Noise {
    kind: u8,
    count: AtomicU64,
}

impl Tamper for Noise {
    fn bytes(&self, _: u64, _: bool, bytes: &mut Vec<u8>) -> bool {
        if self.count.fetch_add(1, Ordering::SeqCst) % 23 == 22 {
            let middle = bytes.len() / 2;
            match self.kind {
                0 => bytes[middle] ^= 1,
                1 => bytes.truncate(middle),
                2 => bytes.extend_from_within(..),
                _ => bytes.rotate_left(middle),
            }
        }
        true
    }
}

#[test]
fn what_happens_below_tls_changes_no_result() {
    // They mostly wait for answers that do not arrive.
    std::thread::scope(|scope| {
        (0..4).for_each(|kind| drop(scope.spawn(move || happens_below_tls(kind))));
    });
}

fn happens_below_tls(kind: u8) {
    let bed = Bed::new(LONG);
    let proxy = Proxy::new(bed.address, Arc::new(Noise { kind, count: AtomicU64::new(0) }));
    // Even the opening may fail, but then with a code.
    let Ok(mut card) = bed.open_at(proxy.port, "alice", "card0") else { return };
    let data = pattern(u64::from(kind), 700_000);
    let mut done = 0;
    for _ in 0..12 {
        let mut back = vec![0; data.len()];
        let result = card
            .mem_write(0, &data)
            .and_then(|()| card.mem_read(0, &mut back))
            .and_then(|()| card.ctl_write32(SUM, 1));
        match result {
            Ok(()) => {
                assert_eq!(back, data, "kind {kind}");
                done += 1;
                assert_eq!(bed.cards["card0"].sum.load(Ordering::SeqCst), done);
            }
            Err(error) => {
                assert!(error.code().starts_with("SHEF-AGT-"), "kind {kind}: {error}");
                break;
            }
        }
    }
    assert!(proxy.connections.load(Ordering::SeqCst) > 1, "kind {kind} broke nothing");
}

#[test]
fn a_dishonest_agent_is_noticed_or_without_effect() {
    let deeds: &[(&str, Deed)] = &[
        ("answers that never come", |_, _| Some(vec![])),
        ("another number", |m, id| Some(vec![done(id + 1, answer(m))])),
        ("an earlier number", |m, id| Some(vec![done(id - 1, answer(m))])),
        ("an answer of another kind", |_, id| Some(vec![done(id, DeviceAnswer::Flag(true))])),
        ("more values", |_, id| Some(vec![done(id, DeviceAnswer::Values(vec![1; 99]))])),
        ("no values", |_, id| Some(vec![done(id, DeviceAnswer::Values(vec![]))])),
        ("two answers", |m, id| Some(vec![done(id, answer(m)), done(id, answer(m))])),
        ("a welcome", |_, _| {
            Some(vec![ToOwner::Welcome { version: 1, program: String::new(), owner: "x".into() }])
        }),
        ("a refusal", |_, _| {
            Some(vec![ToOwner::Refused { code: "SHEF-AGT-008".into(), message: "no".into() }])
        }),
    ];
    for (what, deed) in deeds {
        let bed = Bed::new(LONG);
        let mitm = Mitm::new(
            bed.address,
            &bed.agent_dir(),
            &bed.files("alice"),
            Arc::new(move |to_agent, frame| {
                if to_agent {
                    return vec![frame];
                }
                let message = ToOwner::decode(&frame[4..]).unwrap();
                // The opening and two requests pass unchanged.
                match message {
                    ToOwner::Done { id, .. } if id > 2 => match deed(&message, id) {
                        Some(messages) => messages.iter().map(ToOwner::encode).collect(),
                        None => vec![frame],
                    },
                    _ => vec![frame],
                }
            }),
        );
        let impatient =
            shef_remote::Limits { answer: Duration::from_millis(400), attempts: 2, ..limits() };
        let mut card =
            RemoteDevice::open(&uri(mitm.port, "card0"), &bed.files("alice"), impatient, None)
                .unwrap();
        card.ctl_write32(SUM, 4).unwrap();
        assert_eq!(card.ctl_read32(SUM).unwrap(), 4);
        match card.ctl_read32(SUM).and_then(|a| card.ctl_read32(SUM).map(|b| (a, b))) {
            Ok(values) => assert_eq!(values, (4, 4), "{what}"),
            Err(error) => assert!(error.code().starts_with("SHEF-AGT-"), "{what}: {error}"),
        }
    }
}

fn done(id: u64, answer: DeviceAnswer) -> ToOwner {
    ToOwner::Done { id, cycles: None, answer }
}

fn answer(message: &ToOwner) -> DeviceAnswer {
    match message {
        ToOwner::Done { answer, .. } => answer.clone(),
        _ => DeviceAnswer::Done,
    }
}

#[test]
fn long_work_is_no_silence() {
    let bed = Bed::new(LONG);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let progress = Box::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
    let mut card = RemoteDevice::open(
        &uri(bed.address.port(), "card0"),
        &bed.files("alice"),
        limits(),
        Some(progress),
    )
    .unwrap();
    assert_eq!(card.ctl_read32(SLOW).unwrap(), 7);
    assert!(told.lock().unwrap().iter().any(|text| text == "the card is working"));
}

#[test]
fn a_poll_that_never_settles_does_not_keep_the_card() {
    let bed = Bed::new(Duration::from_millis(100));
    let proxy = Proxy::new(bed.address, Arc::new(Faithful));
    let mut alice = bed.open_at(proxy.port, "alice", "card0").unwrap();
    let poller = std::thread::spawn(move || {
        code(alice.ctl_batch(&[CtlOp::Poll { offset: NEVER, clear: 0, some: 1, polls: u32::MAX }]))
    });
    eventually("the poll", || bed.cards["card0"].polls.load(Ordering::SeqCst) > 0);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                proxy.cut();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        eventually("the wipe", || bed.cards["card0"].resets.load(Ordering::SeqCst) > 0);
        stop.store(true, Ordering::SeqCst);
    });
    assert!(poller.join().unwrap().starts_with("SHEF-AGT-"));
    bed.open("bob", "card0").unwrap();
}

#[test]
fn a_card_that_does_not_reset_is_opened_anew_for_the_next_owner() {
    let bed = Bed::new(LONG);
    let card = bed.open("alice", "card0").unwrap();
    bed.cards["card0"].broken.store(true, Ordering::SeqCst);
    drop(card);
    eventually("the failure", || {
        list("localhost", bed.address.port(), &bed.files("bob"), &limits()).unwrap()[0].state
            == DeviceState::Failed
    });
    let error = bed.open("bob", "card0").err().unwrap();
    assert_eq!(error.code(), "SHEF-DEV-005", "{error}");
    bed.cards["card0"].broken.store(false, Ordering::SeqCst);
    bed.open("bob", "card0").unwrap().ctl_write32(SUM, 1).unwrap();
}

/// A copy of a file, with the mode that a key must have.
fn key_of(file: &std::path::Path) -> std::path::PathBuf {
    let copy = file.with_extension("copy");
    std::fs::copy(file, &copy).unwrap();
    std::fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    copy
}

#[test]
fn strangers_do_not_get_in() {
    let (bed, other) = (Bed::new(LONG), Bed::new(LONG));
    let mine = bed.files("alice");
    let theirs = other.files("alice");
    let open = |files: &TlsFiles| {
        code(RemoteDevice::open(&uri(bed.address.port(), "card0"), files, limits(), None))
    };
    // A certificate of another agent's CA; the certificate of another agent; the key of another
    // owner; mixed-up files.
    for (files, code, says) in [
        (
            TlsFiles { ca: mine.ca.clone(), ..theirs.clone() },
            "SHEF-AGT-002",
            "expected one that its own CA issued",
        ),
        (
            TlsFiles { ca: theirs.ca.clone(), ..mine.clone() },
            "SHEF-AGT-002",
            "was not issued by the CA in this owner's files",
        ),
        (
            TlsFiles { key: theirs.key.clone(), ..mine.clone() },
            "SHEF-AGT-003",
            "not the certificate of the private key in",
        ),
        (
            TlsFiles { cert: mine.key.clone(), ..mine.clone() },
            "SHEF-AGT-003",
            "it holds no certificate",
        ),
        (
            TlsFiles { key: key_of(&mine.cert), ..mine.clone() },
            "SHEF-AGT-003",
            "it holds no private key",
        ),
    ] {
        let error = RemoteDevice::open(&uri(bed.address.port(), "card0"), &files, limits(), None)
            .err()
            .unwrap();
        assert!(error.code() == code && error.to_string().contains(says), "{says}: {error}");
    }
    assert_eq!(open(&TlsFiles { ca: "/nonexistent".into(), ..mine.clone() }), "SHEF-AGT-003");
    // The agent's own certificate does not authenticate an owner.
    let server = TlsFiles {
        cert: bed.agent_dir().join("agent.pem"),
        key: bed.agent_dir().join("agent.key"),
        ..mine.clone()
    };
    assert_eq!(open(&server), "SHEF-AGT-002");
    assert_eq!(open(&mine), "accepted");
    // A name that is not in the agent's certificate; a closed port; a port of another service.
    let at = |host: &str, port: u16| {
        let uri = format!("tls://{host}:{port}/card0").parse().unwrap();
        code(RemoteDevice::open(&uri, &mine, limits(), None))
    };
    assert_eq!(at("127.0.0.1", bed.address.port()), "SHEF-AGT-002");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(at("127.0.0.1", closed), "SHEF-AGT-001");
    let echo = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = echo.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in echo.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    assert_eq!(at("127.0.0.1", port), "SHEF-AGT-002");
}

/// Sends raw bytes over TLS and returns the refusal's code.
fn raw(bed: &Bed, bytes: &[u8]) -> String {
    use rustls::pki_types::ServerName;
    use std::io::Read;
    let config = bed.files("alice").load().unwrap();
    let connection =
        rustls::ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let mut tls =
        rustls::StreamOwned::new(connection, std::net::TcpStream::connect(bed.address).unwrap());
    tls.sock.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = tls.write_all(bytes);
    let mut frames = shef_remote::wire::Frames::new();
    let mut buffer = [0; 4096];
    loop {
        while let Some(frame) = frames.take().unwrap() {
            if let ToOwner::Refused { code, .. } = ToOwner::decode(frame).unwrap() {
                return code;
            }
        }
        match tls.read(&mut buffer) {
            Ok(n @ 1..) => frames.push(&buffer[..n]),
            other => return format!("{other:?}"),
        }
    }
}

#[test]
fn every_malformed_message_is_answered_with_a_refusal() {
    let bed = Bed::new(Duration::from_millis(1));
    let hello = ToAgent::Hello { min: 1, max: 1, program: "test".into() }.encode();
    let open = ToAgent::Open { device: "card0".into(), resume: None }.encode();
    let request = |id, acked, op| ToAgent::Request { id, acked, op }.encode();
    let cases: Vec<(&str, Vec<Vec<u8>>, &str)> = vec![
        ("no hello", vec![open.clone()], "SHEF-AGT-004"),
        ("HTTP", vec![b"GET / HTTP/1.1\r\n\r\n".to_vec()], "SHEF-AGT-004"),
        ("a frame of nothing", vec![vec![0; 4]], "SHEF-AGT-004"),
        ("a huge frame", vec![hello.clone(), vec![0xff; 8]], "SHEF-AGT-004"),
        (
            "later versions",
            vec![ToAgent::Hello { min: 2, max: 9, program: String::new() }.encode()],
            "SHEF-AGT-005",
        ),
        (
            "versions upside down",
            vec![ToAgent::Hello { min: 2, max: 1, program: String::new() }.encode()],
            "SHEF-AGT-005",
        ),
        ("two hellos", vec![hello.clone(), hello.clone()], "SHEF-AGT-004"),
        (
            "a request without a card",
            vec![hello.clone(), request(1, 0, DeviceOp::Reset)],
            "SHEF-AGT-004",
        ),
        (
            "an unknown token",
            vec![
                hello.clone(),
                ToAgent::Open {
                    device: "card0".into(),
                    resume: Some((shef_remote::wire::Token([7; 32]), 0)),
                }
                .encode(),
            ],
            "SHEF-AGT-008",
        ),
        ("two openings", vec![hello.clone(), open.clone(), open.clone()], "SHEF-AGT-004"),
        (
            "a number too high",
            vec![hello.clone(), open.clone(), request(2, 0, DeviceOp::WaitHint)],
            "SHEF-AGT-004",
        ),
        (
            "acknowledged what was not asked",
            vec![hello.clone(), open.clone(), request(5, 4, DeviceOp::WaitHint)],
            "SHEF-AGT-004",
        ),
        (
            "past the window",
            [
                vec![hello.clone(), open.clone()],
                (1..=17).map(|id| request(id, 0, DeviceOp::WaitHint)).collect(),
            ]
            .concat(),
            "SHEF-AGT-004",
        ),
    ];
    // The previous connection's end has the card wiped at once.
    let free = || {
        eventually("a free card", || {
            list("localhost", bed.address.port(), &bed.files("bob"), &limits()).unwrap()[0].state
                == DeviceState::Free
        });
    };
    for (what, frames, expected) in cases {
        free();
        assert_eq!(raw(&bed, &frames.concat()), expected, "{what}");
    }
    free();
    bed.open("bob", "card0").unwrap();
}

#[test]
fn an_agent_that_stops_wipes_its_cards() {
    let mut bed = Bed::new(LONG);
    let mut card = bed.open("alice", "card0").unwrap();
    card.ctl_write32(SUM, 8).unwrap();
    bed.stop();
    assert_eq!(bed.cards["card0"].resets.load(Ordering::SeqCst), 1);
    assert_eq!(bed.cards["card0"].sum.load(Ordering::SeqCst), 0);
    let error = code(card.ctl_read32(SUM));
    assert!(["SHEF-AGT-012", "SHEF-AGT-001", "SHEF-AGT-010"].contains(&error.as_str()), "{error}");
}
