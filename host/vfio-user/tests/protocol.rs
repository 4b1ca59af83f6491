//! Client and server work together, and the server withstands bytes that no client would send.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{COPY, LIMIT, REFUSED, SILENT, Served};
use proptest::prelude::*;
use shef_device::{Event, SharedMemory};
use shef_vfio_user::wire::{Header, MAX_DATA, MAX_MESSAGE, Request, command, irq_flag};
use shef_vfio_user::{Client, DmaErrorKind, VfioUserError, errno};

fn code(result: Result<impl Sized, VfioUserError>) -> &'static str {
    result.err().map_or("ok", |e| e.code())
}

fn refused(result: Result<impl Sized, VfioUserError>) -> u32 {
    match result {
        Err(VfioUserError::Refused { errno, .. }) => errno,
        Err(other) => panic!("{other}"),
        Ok(_) => 0,
    }
}

#[test]
fn regions_are_read_written_and_mapped() {
    let served = Served::new();
    let mut client = served.client();
    assert_eq!(
        (client.region(0).size, client.region(2).size, client.region(4).size, client.vectors()),
        (0x1000, 0, 0x10000, 20)
    );
    client.write(0, 8, &[1, 2, 3]).unwrap();
    let mut got = [0; 5];
    client.read(0, 7, &mut got).unwrap();
    assert_eq!(got, [0, 1, 2, 3, 0]);
    for (region, offset, len) in
        [(0, 0xfff, 2), (0, u64::MAX, 1), (2, 0, 1), (9, 0, 1), (u32::MAX, 0, 1)]
    {
        assert_eq!(
            refused(client.read(region, offset, &mut vec![0; len])),
            errno::EINVAL,
            "{region} {offset:#x}"
        );
        assert_eq!(refused(client.write(region, offset, &vec![0; len])), errno::EINVAL);
    }
    assert_eq!(refused(client.write(1, 0, &[1])), errno::EINVAL, "read only");
    assert_eq!(
        refused(client.read(0, REFUSED, &mut [0; 4])),
        errno::EIO,
        "the device's own refusal"
    );
    let (one, two) =
        (client.map_region(4).unwrap().unwrap(), client.map_region(4).unwrap().unwrap());
    one.write(0xffff, &[9]).unwrap();
    let mut byte = [0];
    two.read(0xffff, &mut byte).unwrap();
    assert_eq!(byte, [9]);
    assert!(client.map_region(0).unwrap().is_none());
    assert!(client.map_region(5).unwrap().is_none(), "a file that the server can cut");
    client.write(5, 0, &[1]).unwrap();
    client.reset().unwrap();
    client.read(0, 7, &mut got).unwrap();
    assert_eq!((got, served.resets.load(Ordering::SeqCst)), ([0; 5], 1));
}

#[test]
fn posted_writes_arrive_in_order_and_are_not_answered() {
    let served = Served::new();
    let mut client = served.client();
    for n in 0..200u8 {
        client.post(0, u64::from(n), &[n]).unwrap();
        // Refused without an answer.
        client.post(0, 0xfff, &[n, n]).unwrap();
    }
    let mut got = [0; 200];
    client.read(0, 0, &mut got).unwrap();
    assert!(got.iter().zip(0..).all(|(got, n)| *got == n));
    drop(served);
    // The client detects that the server is gone, though maybe not with the first write.
    let gone = (0..100)
        .find_map(|_| client.post(0, 0, &[1]).err())
        .or_else(|| client.read(0, 0, &mut [0]).err());
    assert_eq!(gone.map(|e| e.code()), Some("SHEF-VFU-006"));
}

#[test]
fn a_read_that_is_never_answered_ends_in_time_and_the_late_answer_harms_nobody() {
    let served = Served::new();
    let mut client = Client::connect(&served.path(), Duration::from_secs(3)).unwrap();
    assert_eq!(code(client.read(0, SILENT, &mut [0; 4])), "SHEF-VFU-005");
    let mut byte = [7];
    client.read(0, 0, &mut byte).unwrap();
    assert_eq!(byte, [0]);
}

#[test]
fn a_second_client_is_told_that_the_device_is_in_use() {
    let served = Served::new();
    let mut first = served.client();
    for _ in 0..3 {
        assert_eq!(code(Client::connect(&served.path(), LIMIT)), "SHEF-VFU-002");
    }
    first.write(0, 0, &[1]).unwrap();
    drop(first);
    served.wait_left(1);
    drop(Client::connect(&served.path(), LIMIT).unwrap());
}

#[test]
fn where_there_is_no_server() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(code(Client::connect(&dir.path().join("none"), LIMIT)), "SHEF-VFU-001");
    std::fs::write(dir.path().join("file"), "x").unwrap();
    assert_eq!(code(Client::connect(&dir.path().join("file"), LIMIT)), "SHEF-VFU-001");
    // A server of another protocol.
    let listener = std::os::unix::net::UnixListener::bind(dir.path().join("http")).unwrap();
    let thread = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 64]);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    assert_eq!(code(Client::connect(&dir.path().join("http"), LIMIT)), "SHEF-VFU-003");
    thread.join().unwrap();
}

/// An unusable path is detected before the device is created, which may take minutes.
#[test]
fn a_path_that_cannot_be_served_is_found_early() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let of = |len: usize| dir.path().join("s".repeat(len - dir.path().as_os_str().len() - 1));
    shef_vfio_user::Listening::vacant(&of(107)).unwrap();
    drop(std::os::unix::net::UnixListener::bind(of(107)).unwrap());
    let error = shef_vfio_user::Listening::vacant(&of(108)).unwrap_err();
    assert_eq!(error.code(), "SHEF-VFU-007");
    let text = error.to_string();
    assert!(
        text.contains("has 108 bytes")
            && text.contains("at most 107")
            && text.contains(&of(108).display().to_string()),
        "{text}"
    );
    for folder in ["none", "file"] {
        std::fs::write(dir.path().join("file"), "x").unwrap();
        assert_eq!(
            shef_vfio_user::Listening::vacant(&dir.path().join(folder).join("s"))
                .unwrap_err()
                .code(),
            "SHEF-VFU-007"
        );
    }
    let closed = dir.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
    let vacant = shef_vfio_user::Listening::vacant(&closed.join("s"));
    // Root may write into every folder.
    match std::fs::write(closed.join("probe"), "") {
        Ok(()) => vacant.unwrap(),
        Err(_) => assert!(vacant.unwrap_err().to_string().contains("cannot make a socket in")),
    }
}

#[test]
fn a_server_that_goes_away_is_noticed() {
    let served = Served::new();
    let mut client = served.client();
    drop(served);
    let event = Event::new().unwrap();
    assert_eq!(code(client.wait(&event, LIMIT)), "SHEF-VFU-006");
    assert_eq!(code(client.read(0, 0, &mut [0; 4])), "SHEF-VFU-006");
    assert_eq!(code(client.write(0, 0, &[0; 4])), "SHEF-VFU-006");
}

/// Has the device copy `len` bytes and waits for it. Returns whether the copy succeeded.
fn copy(client: &mut Client, done: &[Event; 2], from: u64, to: u64, len: u64) -> bool {
    let order = [from.to_le_bytes(), to.to_le_bytes(), len.to_le_bytes()].concat();
    client.write(0, COPY, &order).unwrap();
    for _ in 0..6000 {
        if client.wait(&done[0], Duration::from_millis(5)).unwrap() {
            return true;
        }
        if client.wait(&done[1], Duration::from_millis(5)).unwrap() {
            return false;
        }
    }
    panic!("the device never said that it was done");
}

#[test]
fn the_device_reaches_mapped_memory_and_nothing_else() {
    let served = Served::new();
    let mut client = served.client();
    let done = [Event::new().unwrap(), Event::new().unwrap()];
    client.connect_interrupts(1, &[&done[0], &done[1]]).unwrap();
    let (shared, asked) =
        (SharedMemory::new(3 << 20).unwrap(), Arc::new(SharedMemory::new(3 << 20).unwrap()));
    let len = (2 << 20) + 12_345;
    let pattern: Vec<u8> = (0..len).map(|i| (i * 7 / 5) as u8).collect();
    shared.write(100, &pattern).unwrap();
    client.dma_map(0x1000_0000, &shared).unwrap();
    client.dma_map_by_message(0x2000_0000, &asked).unwrap();
    // From file-backed to message-backed memory, and back.
    assert!(copy(&mut client, &done, 0x1000_0064, 0x2000_0003, len));
    assert!(copy(&mut client, &done, 0x2000_0003, 0x1000_0000, len));
    let mut back = vec![0; len as usize];
    shared.read(0, &mut back).unwrap();
    assert!(back == pattern, "twice the same key gives the same bytes");
    // Outside, past the end, and no longer mapped.
    assert!(!copy(&mut client, &done, 0x3000_0000, 0x1000_0000, 8));
    assert!(!copy(&mut client, &done, 0x1000_0000 + (3 << 20) - 4, 0x2000_0000, 8));
    client.dma_unmap(0x1000_0000, 3 << 20).unwrap();
    assert!(!copy(&mut client, &done, 0x1000_0000, 0x2000_0000, 8));
    assert_eq!(served.bus.maps(), 1);
    assert_eq!(refused(client.dma_map(0x2000_1000, &shared)), errno::EEXIST);
    drop(client);
    served.wait_left(1);
    assert_eq!(served.bus.maps(), 0);
    assert_eq!(served.bus.write(0x2000_0000, &[1]).unwrap_err().kind, DmaErrorKind::NotMapped);
}

#[test]
fn interrupts_reach_their_own_events_and_can_be_masked() {
    let served = Served::new();
    let mut client = served.client();
    let events: Vec<Event> = (0..20).map(|_| Event::new().unwrap()).collect();
    client.connect_interrupts(0, &events.iter().collect::<Vec<_>>()).unwrap();
    for vector in 0..20 {
        assert!(served.bus.interrupt(vector));
        let heard: Vec<usize> = (0..20).filter(|i| events[*i].take().unwrap() > 0).collect();
        assert_eq!(heard, [vector as usize]);
    }
    assert!(!served.bus.interrupt(20));
    assert_eq!(refused(client.connect_interrupts(19, &[&events[0], &events[1]])), errno::EINVAL);
    client.disconnect_interrupts().unwrap();
    assert!(!served.bus.interrupt(3));
    assert_eq!(events[3].take().unwrap(), 0);
}

fn set_irqs(flags: u32, index: u32, start: u32, count: u32, data: &[u8]) -> Vec<u8> {
    Request::SetIrqs { flags, index, start, count, data }.encode().1
}

/// Bytes on the wire, and the error number of the answer (0 for success): the server's side of the
/// protocol, line by line.
#[test]
fn transcripts() {
    let map = |flags, address, size| Request::DmaMap { flags, offset: 0, address, size }.encode().1;
    let unmap = |flags, address, size| Request::DmaUnmap { flags, address, size }.encode().1;
    let (none, bools, event) = (irq_flag::DATA_NONE, irq_flag::DATA_BOOL, irq_flag::DATA_EVENTFD);
    let (mask, unmask, trigger) =
        (irq_flag::ACTION_MASK, irq_flag::ACTION_UNMASK, irq_flag::ACTION_TRIGGER);
    let big = vec![0; MAX_MESSAGE];
    let lines: Vec<(&str, u16, Vec<u8>, u32)> = vec![
        ("version again", command::VERSION, vec![0, 0, 1, 0], errno::EINVAL),
        ("info", command::GET_INFO, vec![16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0),
        ("info, short", command::GET_INFO, vec![16, 0, 0, 0], errno::EINVAL),
        (
            "region 0",
            command::GET_REGION_INFO,
            Request::GetRegionInfo { argsz: 32, index: 0 }.encode().1,
            0,
        ),
        (
            "region 9",
            command::GET_REGION_INFO,
            Request::GetRegionInfo { argsz: 32, index: 9 }.encode().1,
            errno::EINVAL,
        ),
        (
            "region, no room",
            command::GET_REGION_INFO,
            Request::GetRegionInfo { argsz: 31, index: 0 }.encode().1,
            errno::EINVAL,
        ),
        ("irq 2", command::GET_IRQ_INFO, Request::GetIrqInfo { index: 2 }.encode().1, 0),
        (
            "irq 5",
            command::GET_IRQ_INFO,
            Request::GetIrqInfo { index: 5 }.encode().1,
            errno::EINVAL,
        ),
        ("all vectors off", command::SET_IRQS, set_irqs(none | trigger, 2, 0, 0, &[]), 0),
        ("one vector, no event", command::SET_IRQS, set_irqs(event | trigger, 2, 3, 1, &[]), 0),
        ("mask by flags", command::SET_IRQS, set_irqs(bools | mask, 2, 0, 3, &[1, 0, 1]), 0),
        ("unmask", command::SET_IRQS, set_irqs(none | unmask, 2, 0, 3, &[]), 0),
        ("fire", command::SET_IRQS, set_irqs(none | trigger, 2, 0, 1, &[]), 0),
        (
            "flags that do not go together",
            command::SET_IRQS,
            set_irqs(none | event | trigger, 2, 0, 1, &[]),
            errno::EINVAL,
        ),
        ("no action", command::SET_IRQS, set_irqs(none, 2, 0, 1, &[]), errno::EINVAL),
        (
            "vectors that are not there",
            command::SET_IRQS,
            set_irqs(none | trigger, 2, 20, 1, &[]),
            errno::EINVAL,
        ),
        (
            "vectors that wrap",
            command::SET_IRQS,
            set_irqs(none | trigger, 2, u32::MAX, 2, &[]),
            errno::EINVAL,
        ),
        (
            "too few flags",
            command::SET_IRQS,
            set_irqs(bools | mask, 2, 0, 4, &[1, 0, 1]),
            errno::EINVAL,
        ),
        (
            "interrupt of another kind",
            command::SET_IRQS,
            set_irqs(none | trigger, 1, 0, 1, &[]),
            errno::EINVAL,
        ),
        ("none of another kind", command::SET_IRQS, set_irqs(none | trigger, 1, 0, 0, &[]), 0),
        ("map by message", command::DMA_MAP, map(3, 0x1000, 0x1000), 0),
        ("map over it", command::DMA_MAP, map(3, 0x1800, 0x1000), errno::EEXIST),
        ("map nothing", command::DMA_MAP, map(3, 0x9000, 0), errno::EINVAL),
        ("map for nothing", command::DMA_MAP, map(0, 0x9000, 1), errno::EINVAL),
        ("map over the end", command::DMA_MAP, map(3, u64::MAX, 2), errno::EINVAL),
        ("unmap a part", command::DMA_UNMAP, unmap(0, 0x1000, 0x800), errno::EINVAL),
        ("unmap more", command::DMA_UNMAP, unmap(0, 0, 1 << 40), 0),
        ("unmap what is not mapped", command::DMA_UNMAP, unmap(0, 0x1000, 0x1000), 0),
        ("unmap all", command::DMA_UNMAP, unmap(2, 0, 0), 0),
        ("unmap with dirty pages", command::DMA_UNMAP, unmap(1, 0, 0x1000), errno::EINVAL),
        (
            "read too much",
            command::REGION_READ,
            Request::RegionRead { offset: 0, region: 4, count: MAX_DATA as u32 + 1 }.encode().1,
            errno::EINVAL,
        ),
        (
            "write, count and data differ",
            command::REGION_WRITE,
            vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1],
            errno::EINVAL,
        ),
        (
            "the device's own message",
            command::DMA_READ,
            Request::DmaRead { address: 0, count: 1 }.encode().1,
            errno::EOPNOTSUPP,
        ),
        ("reset", command::RESET, vec![], 0),
        ("reset with a body", command::RESET, vec![1], errno::EINVAL),
        ("no such command", 99, vec![1, 2, 3], errno::EOPNOTSUPP),
        ("migration", 16, vec![0; 16], errno::EOPNOTSUPP),
        ("longer than any message", command::REGION_WRITE, big, errno::EMSGSIZE),
    ];
    let served = Served::new();
    let mut raw = served.raw();
    raw.hello();
    for (i, (what, command, body, error)) in lines.iter().enumerate() {
        let id = 100 + i as u16;
        raw.message(id, *command, body);
        let (header, _) = raw.answer().unwrap_or_else(|| panic!("{what}: closed"));
        assert_eq!(
            (header.id, header.command, header.failed().unwrap_or(0)),
            (id, *command, *error),
            "{what}"
        );
        raw.in_step(1000 + i as u16);
    }
    // A command that requests no reply gets no reply, whatever its outcome.
    let mut header = Header::command(1, 99, 0);
    header.flags |= 1 << 4;
    raw.send(&header.encode());
    raw.in_step(2);
    // Neither command nor reply; a reply without a request.
    header.flags = 5;
    raw.send(&header.encode());
    assert_eq!(raw.answer().unwrap().0.failed(), Some(errno::EINVAL));
    header.flags = 1;
    raw.send(&header.encode());
    raw.in_step(3);
    // An invalid size: the next message cannot be found, so this answer is the last.
    header = Header { size: 15, ..Header::command(9, command::RESET, 0) };
    raw.send(&header.encode());
    assert_eq!(raw.answer().unwrap().0.failed(), Some(errno::EINVAL));
    assert!(raw.answer().is_none(), "closed");
    served.wait_left(1);
    // Other versions, and a missing version message.
    for (what, command, body, error) in [
        ("version 1", command::VERSION, vec![1, 0, 0, 0], errno::EPROTO),
        ("half a version", command::VERSION, vec![0, 0, 1], errno::EINVAL),
        ("capabilities that are none", command::VERSION, b"\0\0\x01\0{\0".to_vec(), errno::EINVAL),
        ("no hello", command::RESET, vec![], errno::EINVAL),
    ] {
        let left = served.left.load(Ordering::SeqCst);
        let mut raw = served.raw();
        raw.message(1, command, &body);
        assert_eq!(raw.answer().map(|(h, _)| h.failed()), Some(Some(error)), "{what}");
        assert!(raw.answer().is_none(), "{what}");
        served.wait_left(left + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Every message of a valid length is answered, whatever its contents, and the next one is read
    /// from its beginning.
    #[test]
    fn any_body_is_answered(messages in proptest::collection::vec((0u16..20, proptest::collection::vec(any::<u8>(), 0..60)), 1..12)) {
        let served = Served::new();
        let mut raw = served.raw();
        raw.hello();
        for (i, (command, body)) in messages.iter().enumerate() {
            raw.message(i as u16, *command, body);
            // If the device itself hangs, the server is not at fault.
            if *command == command::REGION_READ && body.starts_with(&SILENT.to_le_bytes()) {
                continue;
            }
            let (header, _) = raw.answer().expect("an answer");
            prop_assert_eq!((header.id, header.command), (i as u16, *command));
        }
        raw.in_step(999);
    }

    /// Bytes that are not messages, or stop anywhere, end the connection and have no other effect.
    #[test]
    fn any_bytes_leave_the_server_alive(bytes in proptest::collection::vec(any::<u8>(), 0..100), greet in any::<bool>()) {
        use std::io::Write;
        let served = Served::new();
        let mut raw = served.raw();
        if greet {
            raw.hello();
        }
        let _ = raw.0.write_all(&bytes);
        let _ = raw.0.shutdown(std::net::Shutdown::Write);
        served.wait_left(1);
        drop(raw);
        let mut next = Client::connect(&served.path(), LIMIT).expect("the next client is served");
        next.read(0, 0, &mut [0; 4]).unwrap();
    }
}
