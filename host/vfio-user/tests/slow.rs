//! Every message of a slow or silent peer has a time limit, and no other client waits for that
//! peer.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use common::Served;
use shef_device::Event;
use shef_vfio_user::wire::{Header, command};
use shef_vfio_user::{Client, VfioUserError};

/// Short, but much longer than a byte takes to arrive.
const LIMIT: Duration = Duration::from_millis(400);
/// Longer than a correct wait takes, shorter than a broken one.
const SOON: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(30);

/// Sends bytes one by one until the peer closes the connection.
fn drip(mut stream: &UnixStream, bytes: impl Iterator<Item = u8>) {
    for byte in bytes {
        if stream.write_all(&[byte]).is_err() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn an_answer_that_drips_ends_at_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("s")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let head = Header::command(0, command::VERSION, 1 << 16).reply(1 << 16).encode();
        drip(&stream, head.into_iter().chain(std::iter::repeat(0)));
    });
    let (sender, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(sender.send(Client::connect(&dir.path().join("s"), LIMIT).err()));
    });
    let error = result.recv_timeout(SOON).expect("it is over in time").expect("it fails");
    assert!(
        matches!(error, VfioUserError::Protocol { .. } | VfioUserError::TimedOut { .. }),
        "{error}"
    );
}

/// Commands that request no reply: new ones arrive before the earlier ones are read.
fn chatter() -> Vec<u8> {
    Header::command(0, command::DMA_READ, 0).posted().encode().repeat(4096)
}

#[test]
fn a_server_that_never_stops_talking_moves_no_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let served = Served::new();
    let behind = served.path();
    // On a busy machine, ordinary answers arrive within this time.
    let limit = 5 * LIMIT;
    std::thread::spawn(move || {
        // The first client gets no answer; the second one gets a device, then constant commands.
        for talks_at_once in [true, false] {
            let (mut front, back) =
                (listener.accept().unwrap().0, UnixStream::connect(&behind).unwrap());
            let (mut from, mut to) = (front.try_clone().unwrap(), back.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            back.set_read_timeout(Some(limit)).unwrap();
            let mut buffer = [0; 4096];
            while let (false, Ok(n)) = (talks_at_once, (&back).read(&mut buffer)) {
                front.write_all(&buffer[..n]).unwrap();
            }
            while front.write_all(&chatter()).is_ok() {}
        }
    });
    let (sender, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let connected = Client::connect(&path, limit).map(drop);
        sender.send(connected.unwrap_err()).unwrap();
        let mut client = Client::connect(&path, limit).unwrap();
        std::thread::sleep(2 * limit);
        assert!(!client.wait(&Event::new().unwrap(), limit).unwrap());
        sender.send(client.read(0, common::SILENT, &mut [0; 4]).unwrap_err()).unwrap();
    });
    for _ in 0..2 {
        let error = result.recv_timeout(SOON).expect("it is over in time");
        assert!(matches!(error, VfioUserError::TimedOut { .. }), "{error}");
    }
}

#[test]
fn a_message_that_drips_ends_the_connection_at_its_limit() {
    let served = Served::within(LIMIT);
    let mut raw = served.raw();
    raw.hello();
    let begin = Instant::now();
    let head = Header::command(9, command::REGION_WRITE, 1 << 16).encode();
    drip(
        &raw.0,
        head.into_iter()
            .chain(std::iter::repeat_n(0, (SOON.as_millis() / PAUSE.as_millis()) as usize)),
    );
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    // The next client is served.
    served.wait_left(1);
    served.client().read(0, 0, &mut [0]).unwrap();
}

#[test]
fn one_who_says_nothing_leaves_the_place_to_the_next() {
    let served = Served::within(LIMIT);
    let _silent = served.raw();
    served.wait_left(1);
    served.client().read(0, 0, &mut [0]).unwrap();
}

#[test]
fn callers_who_say_nothing_do_not_keep_others_from_being_told() {
    let served = Served::new();
    let mut first = served.client();
    let _silent: Vec<UnixStream> =
        (0..16).map(|_| UnixStream::connect(served.path()).unwrap()).collect();
    let begin = Instant::now();
    let error = Client::connect(&served.path(), common::LIMIT).err().expect("the place is taken");
    assert_eq!(error.code(), "SHEF-VFU-002");
    // Sequential refusals would take a second each.
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    first.read(0, 0, &mut [0]).unwrap();
}
