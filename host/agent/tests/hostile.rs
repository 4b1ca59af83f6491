//! Hostile or slow owners and strangers cost a bounded amount, and the agent serves others at the
//! same time.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use shef_device::{CtlOp, Device, DeviceError};
use shef_fixtures::agent::*;
use shef_remote::wire::{DeviceOp, DeviceState, MAX_BULK, ToAgent, ToOwner};
use shef_remote::{Limits, RemoteDevice, list};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);
/// Longer than a correct wait takes, shorter than a broken one.
const SOON: Duration = Duration::from_secs(20);

/// Runs `what` on a thread and fails after [`SOON`].
fn soon<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || drop(sender.send(run())));
    result
        .recv_timeout(SOON)
        .unwrap_or_else(|_| panic!("{what} is not over after {} s", SOON.as_secs()))
}

fn request(id: u64, acked: u64, op: DeviceOp) -> ToAgent {
    ToAgent::Request { id, acked, op }
}

#[test]
fn a_request_that_is_repeated_is_answered_once() {
    let bed = Bed::new(LONG);
    let mut raw = Raw::opened(&bed, "alice", "card0");
    for _ in 0..1000 {
        raw.say(&request(1, 0, DeviceOp::MemRead { addr: 0, len: 4096 }));
    }
    raw.say(&request(2, 0, DeviceOp::WaitHint));
    let mut answers = 0;
    loop {
        match raw.hear().unwrap() {
            ToOwner::Done { id: 1, .. } => answers += 1,
            ToOwner::Done { id: 2, .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(answers, 1);
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let bed = Bed::new(LONG);
    let proxy = Proxy::new(bed.address, Arc::new(Faithful));
    let mut live = bed.open_at(proxy.port, "alice", "card0").unwrap();
    live.ctl_write32(SUM, 7).unwrap();
    let strangers: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(bed.address).unwrap()).collect();
    // One owner that connects, and one whose connection breaks.
    bed.open("alice", "card1").unwrap().ctl_write32(SUM, 1).unwrap();
    proxy.cut();
    assert_eq!(live.ctl_read32(SUM).unwrap(), 7);
    drop(strangers);
}

/// Cuts every connection at its first bytes, until the given time.
struct Away(std::sync::Mutex<Instant>);

impl Tamper for Away {
    fn bytes(&self, _: u64, _: bool, _: &mut Vec<u8>) -> bool {
        Instant::now() >= *self.0.lock().unwrap()
    }
}

#[test]
fn an_owner_goes_on_however_often_connecting_fails() {
    let bed = Bed::new(LONG);
    let away = Arc::new(Away(std::sync::Mutex::new(Instant::now())));
    let proxy = Proxy::new(bed.address, Arc::clone(&away) as _);
    let limits = Limits { attempts: 1, resume: SOON, ..limits() };
    let mut card =
        RemoteDevice::open(&uri(proxy.port, "card0"), &bed.files("alice"), limits, None).unwrap();
    card.ctl_write32(SUM, 7).unwrap();
    let before = proxy.connections.load(Ordering::SeqCst);
    *away.0.lock().unwrap() = Instant::now() + Duration::from_secs(2);
    proxy.cut();
    assert_eq!(card.ctl_read32(SUM).unwrap(), 7);
    assert!(proxy.connections.load(Ordering::SeqCst) > before + 4);
}

#[test]
fn what_did_not_leave_is_not_acknowledged() {
    let bed = Bed::new(LONG);
    let mut raw = Raw::opened(&bed, "alice", "card0");
    raw.say(&request(1, 0, DeviceOp::Kernel(HANG.to_vec())));
    raw.say(&request(2, 1, DeviceOp::WaitHint));
    match raw.hear() {
        Ok(ToOwner::Refused { code, message }) => assert!(
            code == "SHEF-AGT-004" && message.contains("has not been sent"),
            "{code}: {message}"
        ),
        other => panic!("{other:?}"),
    }
}

/// Delays each byte after the first `from` bytes in one direction.
struct Drip {
    from: u64,
    to_agent: bool,
    pause: Duration,
}

impl Tamper for Drip {
    fn bytes(&self, connection: u64, to_agent: bool, _: &mut Vec<u8>) -> bool {
        let _ = (connection, to_agent);
        true
    }
    fn pause(&self, carried: u64, to_agent: bool) -> Option<Duration> {
        (to_agent == self.to_agent && carried >= self.from).then_some(self.pause)
    }
}

/// A proxy that delays the agent's bytes after the first `from` bytes.
fn dripping(bed: &Bed, from: u64) -> Proxy {
    Proxy::new(
        bed.address,
        Arc::new(Drip { from, to_agent: false, pause: Duration::from_millis(50) }),
    )
}

fn impatient() -> Limits {
    let limit = Duration::from_millis(700);
    Limits {
        connect: limit,
        answer: limit,
        request: 4 * limit,
        resume: 2 * limit,
        attempts: 1,
        ..Limits::default()
    }
}

#[test]
fn a_handshake_that_drips_ends_at_its_limit() {
    let bed = Bed::new(LONG);
    let (proxy, files) = (dripping(&bed, 0), bed.files("alice"));
    let error = soon("a handshake of a byte every 50 ms", move || {
        RemoteDevice::open(&uri(proxy.port, "card0"), &files, impatient(), None).err().unwrap()
    });
    assert!(error.code().starts_with("SHEF-AGT-0"), "{error}");
}

#[test]
fn an_answer_that_drips_ends_at_its_limit() {
    let bed = Bed::new(LONG);
    // By then the handshake is over and the answer has begun.
    let (proxy, files) = (dripping(&bed, 8192), bed.files("alice"));
    let mut card = RemoteDevice::open(
        &uri(proxy.port, "card0"),
        &files,
        Limits { connect: SOON, ..impatient() },
        None,
    )
    .unwrap();
    let error = soon("an answer of a byte every 50 ms", move || {
        card.mem_read(0, &mut vec![0; 64 << 10]).unwrap_err()
    });
    assert!(error.code().starts_with("SHEF-AGT-0"), "{error}");
}

#[test]
fn the_time_of_grace_begins_with_each_absence() {
    const GRACE: Duration = Duration::from_secs(3);
    let bed = Bed::new(GRACE);
    let resets = || bed.cards["card0"].resets.load(Ordering::SeqCst);
    let state =
        || list("localhost", bed.address.port(), &bed.files("alice"), &limits()).unwrap()[0].state;
    let proxy = Proxy::new(bed.address, Arc::new(Faithful));
    // A stalled machine makes the first absence longer than the grace period: then the test
    // retries.
    let (_card, before_that) = (0..10)
        .find_map(|_| {
            let mut card = bed.open_at(proxy.port, "alice", "card0").unwrap();
            card.ctl_write32(SUM, 3).unwrap();
            let (cut, wiped) = (Instant::now(), resets());
            proxy.cut();
            eventually("the first absence", || {
                state() == DeviceState::Orphaned || resets() > wiped
            });
            std::thread::sleep((GRACE * 2 / 3).saturating_sub(cut.elapsed()));
            let result = card.ctl_read32(SUM);
            let in_time = cut.elapsed() < GRACE;
            assert!(
                !in_time || result.as_ref().is_ok_and(|sum| *sum == 3),
                "{result:?} after {:?}",
                cut.elapsed()
            );
            result.is_ok().then_some((card, wiped))
        })
        .expect("an absence that is shorter than the time of grace");
    let before = Instant::now();
    proxy.cut();
    // A second after the first absence's period is over, and before that of the second.
    while before.elapsed() < GRACE * 5 / 6 {
        let wiped = resets();
        assert!(
            wiped == before_that || before.elapsed() >= GRACE,
            "wiped {:?} into an absence",
            before.elapsed()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    eventually("the wipe", || resets() > before_that);
}

#[test]
fn a_kernel_that_hangs_holds_no_shutdown() {
    let mut bed = Bed::new(LONG);
    let mut card = bed.open("alice", "card0").unwrap();
    let owner = std::thread::spawn(move || code(card.kernel_call(HANG)));
    eventually("the request", || bed.cards["card0"].hanging.load(Ordering::SeqCst));
    let before = Instant::now();
    bed.stop();
    assert!(before.elapsed() < SOON, "{:?}", before.elapsed());
    assert!(owner.join().unwrap().starts_with("SHEF-AGT-"));
}

#[test]
fn a_card_that_hangs_holds_no_shutdown() {
    let mut bed = Bed::with(LONG, |config| config.times.stop = Duration::from_millis(200));
    let _card = bed.open("alice", "card0").unwrap();
    let seen = Arc::clone(&bed.cards["card0"]);
    seen.stuck.store(true, Ordering::SeqCst);
    soon("a shutdown with a card whose reset hangs", move || bed.stop());
    seen.stuck.store(false, Ordering::SeqCst);
}

/// The owner leaves; the card is soon wiped and given to another owner.
fn the_next_owner_gets_the_card(bed: &Bed, owner: Raw) {
    drop(owner);
    let before = Instant::now();
    eventually("the wipe", || bed.cards["card0"].resets.load(Ordering::SeqCst) == 1);
    assert!(before.elapsed() < SOON, "{:?}", before.elapsed());
    bed.open("bob", "card0").unwrap();
}

#[test]
fn a_kernel_that_hangs_does_not_keep_the_card_from_the_next_owner() {
    let bed = Bed::new(Duration::from_millis(100));
    let mut raw = Raw::opened(&bed, "alice", "card0");
    raw.say(&request(1, 0, DeviceOp::Kernel(HANG.to_vec())));
    eventually("the request", || bed.cards["card0"].hanging.load(Ordering::SeqCst));
    the_next_owner_gets_the_card(&bed, raw);
}

#[test]
fn plain_reads_of_a_slow_card_do_not_keep_it_from_the_next_owner() {
    let bed = Bed::new(Duration::from_millis(100));
    let mut raw = Raw::opened(&bed, "alice", "card0");
    // Ten hours of reads.
    raw.say(&request(1, 0, DeviceOp::Ctl(vec![CtlOp::Read { offset: SLOW }; 8192])));
    the_next_owner_gets_the_card(&bed, raw);
}

#[test]
fn a_request_ends_at_its_time_and_its_owner_hears_how_far_it_came() {
    let bed = Bed::with(LONG, |config| config.times.request = Duration::from_secs(1));
    let mut alice = bed.open("alice", "card0").unwrap();
    let error = alice.ctl_batch(&[CtlOp::Read { offset: SLOW }; 3]).unwrap_err();
    assert!(
        error.code() == "SHEF-AGT-019"
            && error.to_string().contains("1 of 3 register accesses made"),
        "{error}"
    );
    alice.ctl_write32(SUM, 3).unwrap();
    assert_eq!(alice.ctl_read32(SUM).unwrap(), 3);
}

#[test]
fn absences_cost_nothing_that_stays() {
    let bed = Bed::new(LONG);
    let mut raw = Raw::new(&bed, "alice");
    raw.say(&ToAgent::Hello { min: 1, max: 1, program: "test".into() });
    raw.say(&ToAgent::Open { device: "card0".into(), resume: None });
    let token = |raw: &mut Raw| loop {
        if let ToOwner::Opened { token, .. } = raw.hear().unwrap() {
            return token;
        }
    };
    let first = token(&mut raw);
    let before = bed.tasks();
    for _ in 0..40 {
        drop(raw);
        raw = Raw::new(&bed, "alice");
        raw.say(&ToAgent::Hello { min: 1, max: 1, program: "test".into() });
        raw.say(&ToAgent::Open { device: "card0".into(), resume: Some((first, 0)) });
        assert!(token(&mut raw) == first);
    }
    eventually("the end of what absences began", || bed.tasks() <= before);
}

#[test]
fn owners_do_not_see_each_other() {
    let bed = Bed::new(LONG);
    let mut alice = bed.open("alice", "card0").unwrap();
    alice.mem_write(0, &[1; 4096]).unwrap();
    let _other = bed.open("alice", "card1").unwrap();
    let listed =
        |owner: &str| list("localhost", bed.address.port(), &bed.files(owner), &limits()).unwrap();
    let shown: Vec<_> =
        listed("bob").into_iter().map(|d| (d.name, d.state, d.owner, d.moved)).collect();
    assert_eq!(shown, [("card0".to_owned(), DeviceState::InUse, None, 0)]);
    let shown: Vec<_> = listed("alice").into_iter().map(|d| (d.name, d.owner, d.moved)).collect();
    let alice = || Some("alice".to_owned());
    assert_eq!(shown, [("card0".to_owned(), alice(), 4096), ("card1".to_owned(), alice(), 0)]);
    let error = bed.open("bob", "card0").err().unwrap();
    assert_eq!(
        (error.code(), error.to_string().contains("alice")),
        ("SHEF-AGT-007", false),
        "{error}"
    );
    // A device that the owner may not open looks like one that does not exist.
    let (theirs, nobodys) =
        (bed.open("bob", "card1").err().unwrap(), bed.open("bob", "card2").err().unwrap());
    assert_eq!(
        (theirs.code(), theirs.to_string()),
        (nobodys.code(), nobodys.to_string().replace("card2", "card1"))
    );
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// In a separate process, because it measures the process's memory.
#[test]
fn an_owner_who_never_reads_costs_a_window_and_no_more() {
    const INNER: &str = "SHEF_TEST_NEVER_READS";
    if std::env::var_os(INNER).is_none() {
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "an_owner_who_never_reads_costs_a_window_and_no_more", "--nocapture"])
            .env(INNER, "1")
            .output()
            .unwrap();
        return assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    let bed = Bed::new(LONG);
    let mut raw = Raw::opened(&bed, "alice", "card0");
    let before = resident();
    // Every answer is acknowledged, and not one was read.
    for id in 1..=1600 {
        let frame =
            request(id, id - 1, DeviceOp::MemRead { addr: 0, len: MAX_BULK as u32 }).encode();
        if std::io::Write::write_all(&mut raw.tls, &frame).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    let grown = resident().saturating_sub(before) >> 20;
    assert!(grown < 48, "{grown} MiB for one owner who does not read");
    // Other owners are served.
    bed.open("bob", "card0")
        .err()
        .map_or_else(|| (), |error: DeviceError| assert_eq!(error.code(), "SHEF-AGT-007"));
}
