//! A served card and its client, each killed at any point, give a clear error and no leftovers, and
//! the next one works.

use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use shef_card::Control;
use shef_e2e::Served;

/// Held by each test, because all of them count the descriptors of this process.
static ALONE: Mutex<()> = Mutex::new(());

/// Deaths of each kind; SHEF_DEATHS sets another number.
fn deaths() -> u64 {
    std::env::var("SHEF_DEATHS").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}

/// Delays that differ within the loop, and are the same in every run of the test.
fn delay(i: u64) -> Duration {
    Duration::from_micros(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff)
}

/// Number of open descriptors of a process.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[test]
fn a_server_that_dies_at_any_point_is_a_clear_error_and_the_next_one_works() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = descriptors(std::process::id());
    let mut served = Served::start("model");
    for i in 0..deaths() {
        let mut host = shef::open(&served.uri().parse().unwrap()).unwrap();
        let (error, killed) = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(delay(i));
                served.kill();
            });
            let error = loop {
                if let Err(error) = host.kernel_status() {
                    break error;
                }
            };
            (error, killer.join())
        });
        killed.unwrap();
        assert_eq!(error.code(), "SHEF-VFU-006", "{error}");
        // Every later operation fails at once with the same error.
        assert_eq!(host.reset().unwrap_err().code(), "SHEF-VFU-006");
        assert_eq!(
            shef::open(&served.uri().parse().unwrap()).err().unwrap().code(),
            "SHEF-VFU-001"
        );
        served.restart();
    }
    drop(shef::open(&served.uri().parse().unwrap()).unwrap());
    drop(served);
    assert_eq!(descriptors(std::process::id()), before, "descriptors were leaked");
}

#[test]
fn a_client_that_dies_at_any_point_leaves_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let served = Served::start("model");
    let mut control = Control::open(&Control::path_of(&served.socket())).unwrap();
    let mut connected = None;
    let left = tempfile::tempdir().unwrap();
    for i in 0..deaths() {
        let mut child = Command::new(shef_e2e::shef_program())
            .args(["--quiet", "demo", "--attack", "none", "--device", &served.uri()])
            .env("TMPDIR", left.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(4 * delay(i));
        child.kill().unwrap();
        child.wait().unwrap();
        // The server accepts the next client once it sees that the last one is gone; that client
        // finds a card after a reset.
        let mut host = (0..4000)
            .find_map(|_| match shef::open(&served.uri().parse().unwrap()) {
                Ok(host) => Some(host),
                Err(error) if error.code() == "SHEF-VFU-002" => {
                    std::thread::sleep(Duration::from_millis(5));
                    None
                }
                Err(error) => panic!("{error}"),
            })
            .expect("the place becomes free");
        let status = host.kernel_status().unwrap();
        assert_eq!(
            (status.state.name(), status.accelerator),
            ("idle", None),
            "the session of the dead client"
        );
        assert_eq!(control.state().unwrap().maps, 0);
        // After a client is rejected because the card is in use, the server may still count its
        // connection.
        let expected = *connected.get_or_insert_with(|| {
            std::thread::sleep(Duration::from_millis(200));
            descriptors(served.id())
        });
        let gone = (0..1000).any(|_| {
            let same = descriptors(served.id()) == expected;
            if !same {
                std::thread::sleep(Duration::from_millis(5));
            }
            same
        });
        assert!(
            gone,
            "{} descriptors with one client after {} deaths, {expected} after the first",
            descriptors(served.id()),
            i + 1
        );
        drop(host);
    }
}
