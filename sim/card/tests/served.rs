//! The card behaves as a PCI function, driven over vfio-user from this process.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Served, make};
use shef_card::control::ControlRequest;
use shef_card::{CardError, Control, LinkFault, ServeOptions, serve};
use shef_device::pci::{Function, IDS, PciCard};
use shef_device::{Device, mailbox};
use shef_proto::mailbox::{Answer, Request};
use shef_vfio_user::{DEFAULT_TIMEOUT, VfioUserFunction, region};

fn config(card: &mut PciCard<VfioUserFunction>, at: u16) -> u32 {
    let mut word = [0; 4];
    card.function().config_read(at, &mut word).unwrap();
    u32::from_le_bytes(word)
}

/// Sends the kernel a request, so that the mailbox holds an answer.
fn ask(card: &mut PciCard<VfioUserFunction>) {
    let status = card.kernel_call(&Request::Status.encode()).unwrap();
    assert!(matches!(Answer::decode(&status).unwrap(), Answer::Status(_)));
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_ANSWER);
}

const COMMAND: u16 = 4;
const PMCSR: u16 = 0x44;
const DEVCTL: u16 = 0x78;
const ENABLED: [u8; 2] = [6, 0];

#[test]
fn every_kind_of_reset_powers_the_card_on_anew() {
    let served = Served::new(1 << 30);
    let mut card = served.open();
    let mut control = served.control();
    assert_eq!(config(&mut card, 0), u32::from(IDS[0].1) << 16 | u32::from(IDS[0].0));
    assert_eq!(card.info().memory_bytes, 1 << 30);
    let resets = control.state().unwrap().resets;
    // A driver's reset keeps configuration space.
    ask(&mut card);
    card.reset().unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
    assert_eq!(control.state().unwrap().resets, resets + 1);
    // A function-level reset by configuration space clears it.
    ask(&mut card);
    card.function().config_write(DEVCTL, &0x8000u16.to_le_bytes()).unwrap();
    assert_eq!(config(&mut card, COMMAND) & 6, 0);
    assert_eq!(
        card.ctl_read32(mailbox::STATUS).unwrap_err().code(),
        "SHEF-DEV-006",
        "memory accesses are off"
    );
    assert!(!control.state().unwrap().bus_master);
    card.function().config_write(COMMAND, &ENABLED).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
    assert!(control.state().unwrap().bus_master);
    // Power states: going to sleep wipes, waking up resets.
    ask(&mut card);
    card.function().config_write(PMCSR, &[3, 0]).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap_err().code(), "SHEF-DEV-006");
    assert_eq!(control.state().unwrap().resets, resets + 3);
    card.function().config_write(PMCSR, &[0, 0]).unwrap();
    card.function().config_write(COMMAND, &ENABLED).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
    assert_eq!(control.state().unwrap().resets, resets + 4);
    // A client disconnects.
    ask(&mut card);
    drop(card);
    let mut card = served.open();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
    assert_eq!(card.ctl_read32(mailbox::ANSWER).unwrap(), 0);
}

/// The functional model has no ports: it refuses the protocol checker, and reports nothing.
#[test]
fn the_checker_needs_rtl() {
    let served = Served::new(1 << 30);
    let mut control = served.control();
    let error = control.check(None).unwrap_err().to_string();
    assert!(error.contains("use the RTL"), "{error}");
    assert_eq!(control.checked().unwrap(), Default::default());
    control.uncheck().unwrap();
    // The status register may be left out.
    let request = serde_json::from_str(r#"{"do":"check"}"#).unwrap();
    assert!(matches!(request, ControlRequest::Check { done: None }));
}

#[test]
fn card_memory_is_one_however_it_is_reached() {
    let served = Served::new(1 << 36);
    let mut card = served.open();
    let last = (1u64 << 36) - 8;
    card.mem_write(last, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let mut by_message = [0; 8];
    card.function().client().read(region::BAR0 + 4, last, &mut by_message).unwrap();
    assert_eq!(by_message, [1, 2, 3, 4, 5, 6, 7, 8]);
    card.function().client().write(region::BAR0 + 4, 0x5000, &[9; 3]).unwrap();
    let mut mapped = [0; 4];
    card.mem_read(0x5000, &mut mapped).unwrap();
    assert_eq!(mapped, [9, 9, 9, 0]);
    for (addr, len) in [(1u64 << 36, 1), (last + 7, 2), (u64::MAX, 2)] {
        assert_eq!(card.mem_write(addr, &vec![0; len]).unwrap_err().code(), "SHEF-DEV-007");
        assert_eq!(card.mem_read(addr, &mut vec![0; len]).unwrap_err().code(), "SHEF-DEV-007");
    }
    card.reset().unwrap();
    card.mem_read(last, &mut by_message).unwrap();
    assert_eq!(
        by_message,
        [1, 2, 3, 4, 5, 6, 7, 8],
        "a reset leaves card memory, which holds ciphertext only"
    );
}

#[test]
fn registers_are_reached_by_aligned_words_only() {
    let served = Served::new(1 << 20);
    let mut card = served.open();
    ask(&mut card);
    let status = u64::from(mailbox::STATUS);
    for (offset, len) in [(status, 2), (status + 1, 4), (status + 2, 2), (status, 1)] {
        let mut bytes = vec![0; len];
        card.function().bar_read(0, offset, &mut bytes).unwrap();
        assert!(bytes.iter().all(|b| *b == 0xff), "{offset:#x} {len}: {bytes:?}");
        card.function().bar_write(0, offset, &bytes).unwrap();
    }
    let mut two = [0; 8];
    card.function().bar_read(0, status, &mut two).unwrap();
    assert_eq!(two[..4], mailbox::STATUS_ANSWER.to_le_bytes());
    // Registers of a missing Shield, and the MSI-X table, whose pending bits are read-only.
    assert_eq!(card.ctl_read32(0).unwrap_err().code(), "SHEF-DEV-006");
    let mut table = [0; 8];
    card.function().bar_write(2, 0x7ffc, &[5; 8]).unwrap();
    card.function().bar_read(2, 0x7ffc, &mut table).unwrap();
    assert_eq!(table, [5, 5, 5, 5, 0, 0, 0, 0]);
}

#[test]
fn faults_of_the_link_have_clear_errors_and_end() {
    let served = Served::new(1 << 20);
    let mut card = served.open_within(Duration::from_secs(5));
    let mut control = served.control();
    ask(&mut card);
    // One access is never answered; the next one is.
    control.fault(LinkFault::TimeOut { count: 1 }).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap_err().code(), "SHEF-VFU-005");
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_ANSWER);
    // Poisoned data reads as an error.
    control.fault(LinkFault::Poison { count: 1 }).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap_err().code(), "SHEF-DEV-006");
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_ANSWER);
    control.fault(LinkFault::Slow { ms: 20 }).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_ANSWER);
    control.fault(LinkFault::None).unwrap();
    // A link that drops is a device that left; a link that comes back is a card that was reset.
    control.fault(LinkFault::LinkDrop).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap_err().code(), "SHEF-DEV-005");
    assert_eq!(card.kernel_call(&Request::Status.encode()).unwrap_err().code(), "SHEF-DEV-005");
    assert!(control.state().unwrap().link_down);
    control.fault(LinkFault::None).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
}

#[test]
fn one_client_at_a_time_and_the_next_one_finds_nothing_left() {
    let served = Served::new(1 << 20);
    let mut control = served.control();
    let mut card = served.open();
    let memory = shef_device::SharedMemory::new(1 << 20).unwrap();
    card.function().client().dma_map(0x10_0000, &memory).unwrap();
    assert_eq!(
        shef_vfio_user::open(&served.socket(), DEFAULT_TIMEOUT).err().unwrap().code(),
        "SHEF-VFU-002"
    );
    assert_eq!((control.state().unwrap().maps, control.state().unwrap().clients), (1, 1));
    drop(card);
    let _card = served.open();
    assert_eq!((control.state().unwrap().maps, control.state().unwrap().clients), (0, 2));
}

#[test]
fn debug_has_an_identity_of_its_own_and_the_control_socket_takes_any_line() {
    use std::io::{BufRead, BufReader, Write};
    let served = Served::new(1 << 20);
    let mut control = served.control();
    assert_eq!(control.identity().unwrap().design_digest, [3; 32]);
    control.set_debug(true).unwrap();
    control.set_debug(true).unwrap();
    control.set_debug(false).unwrap();
    assert_eq!(control.cycles().unwrap(), (None, None));
    let mut raw =
        std::os::unix::net::UnixStream::connect(Control::path_of(&served.socket())).unwrap();
    raw.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut answers = BufReader::new(raw.try_clone().unwrap()).lines();
    for bad in [
        "",
        "{",
        "[]",
        "{\"do\":\"fly\"}",
        "{\"do\":\"watch\",\"start\":-1,\"end\":0}",
        "{\"do\":\"words\",\"more\":1}\u{7f}",
    ] {
        raw.write_all(format!("{bad}\n").as_bytes()).unwrap();
        assert!(answers.next().unwrap().unwrap().contains("\"error\""), "{bad}");
    }
    raw.write_all(b"{\"do\":\"words\"}\n").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "{\"is\":\"words\",\"words\":0}");
    // An endless line is not buffered for ever.
    raw.write_all(&vec![b'x'; 70_000]).unwrap();
    assert!(answers.next().is_none_or(|line| line.is_err()), "closed");
    assert_eq!(control.words_delivered().unwrap(), 0);
}

#[test]
fn a_card_has_its_sockets_when_it_answers_and_a_path_that_cannot_be_is_told_before_it_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("card");
    let sockets = [socket.clone(), Control::path_of(&socket)];
    let stop = AtomicBool::new(false);
    let late = || {
        assert!(
            sockets.iter().all(|path| !path.exists()),
            "a client would wait for what is not made"
        );
        make()
    };
    let ready = || {
        assert!(sockets.iter().all(|path| path.exists()));
        stop.store(true, Ordering::SeqCst);
    };
    serve(&ServeOptions::new(&socket), late, &stop, ready).unwrap();
    assert!(sockets.iter().all(|path| !path.exists()));

    std::fs::write(&socket, "no socket").unwrap();
    let served = Served::new(1 << 20);
    for wrong in [&socket, &dir.path().join("none/card"), &served.socket()] {
        let result = serve(
            &ServeOptions::new(wrong),
            || unreachable!("it is made"),
            &AtomicBool::new(false),
            || (),
        );
        assert!(matches!(result, Err(CardError::Serve(_))), "{}: {result:?}", wrong.display());
    }
    assert_eq!(std::fs::read(&socket).unwrap(), b"no socket");
    // The same for the control socket: another program's file is not deleted.
    let options = ServeOptions {
        control: Some(socket.clone()),
        ..ServeOptions::new(&dir.path().join("other"))
    };
    let result = serve(&options, || unreachable!("it is made"), &AtomicBool::new(false), || ());
    assert!(matches!(result, Err(CardError::Control { .. })), "{result:?}");
    assert_eq!(std::fs::read(&socket).unwrap(), b"no socket");
    served.open();
}
