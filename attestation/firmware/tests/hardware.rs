//! Boot code and kernel use hardware only while it reports that it is good: noise, secret, shell,
//! configuration port and kernel port, on a test bus.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shef_firmware::{Hardware, serve, stop};
use shef_kernel::{BootPlatform, EntropyQuality, Platform};
use shef_proto::crypto::sha256;
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::mailbox::MAX_MESSAGE;
use shef_units::{Bus, regs};

const TESTED: u32 = regs::noise::STATUS_TESTED;
const WORD: u32 = regs::noise::STATUS_WORD;
const ALARMS: [u32; 3] =
    [regs::noise::STATUS_REPETITION, regs::noise::STATUS_PROPORTION, regs::noise::STATUS_SILENCE];

/// Registers that keep their values, a running timer, and a log of accesses.
#[derive(Default)]
struct Fake {
    registers: RefCell<BTreeMap<u32, u32>>,
    time: Cell<u32>,
    /// Cycles per read of the timer.
    step: Cell<u32>,
    reads: RefCell<Vec<u32>>,
    writes: RefCell<Vec<(u32, u32)>>,
    /// Number of noise words read.
    words: Cell<usize>,
    /// State of the noise source after a number of words.
    then: Cell<Option<(usize, u32)>>,
    /// Value of a register from a point in time on.
    later: Cell<Option<(u32, u32, u32)>>,
    /// Number of writes after which the processor is halted.
    ends: Cell<Option<usize>>,
}

impl Fake {
    fn with(registers: &[(u32, u32)]) -> Self {
        Self {
            registers: RefCell::new(registers.iter().copied().collect()),
            step: Cell::new(1000),
            ..Self::default()
        }
    }

    fn set(&self, address: u32, value: u32) {
        self.registers.borrow_mut().insert(address, value);
    }

    fn set_bytes(&self, address: u32, bytes: &[u8]) {
        for (at, word) in (address..).step_by(4).zip(bytes.chunks(4)) {
            let mut value = [0; 4];
            value[..word.len()].copy_from_slice(word);
            self.set(at, u32::from_le_bytes(value));
        }
    }

    fn written(&self, address: u32) -> Vec<u32> {
        self.writes
            .borrow()
            .iter()
            .filter(|(at, _)| *at == address)
            .map(|(_, value)| *value)
            .collect()
    }
}

impl Bus for Fake {
    fn read(&self, address: u32) -> u32 {
        self.reads.borrow_mut().push(address);
        assert!(self.reads.borrow().len() < 100_000, "waits for ever");
        match address {
            regs::sys::TIMER_LO => {
                self.time.set(self.time.get().wrapping_add(self.step.get()));
                if let Some((time, address, value)) = self.later.get()
                    && time <= self.time.get()
                {
                    self.set(address, value);
                }
            }
            regs::noise::WORD => {
                self.words.set(self.words.get() + 1);
                if let Some((words, status)) = self.then.get()
                    && words == self.words.get()
                {
                    self.set(regs::noise::STATUS, status);
                }
                return 0x1234_5600 + self.words.get() as u32;
            }
            _ => {}
        }
        if address == regs::sys::TIMER_LO {
            self.time.get()
        } else {
            self.registers.borrow().get(&address).copied().unwrap_or(0)
        }
    }

    fn write(&self, address: u32, value: u32) {
        self.writes.borrow_mut().push((address, value));
        let over = self.ends.get().is_some_and(|ends| self.writes.borrow().len() >= ends);
        assert!(!over, "halted");
    }
}

fn hardware(bus: &Fake) -> Hardware<&Fake> {
    Hardware::new(bus, Vec::new())
}

/// The source's quality, and whether the bytes are zero.
fn drawn(bus: &Fake) -> (EntropyQuality, bool) {
    let mut out = [0xff; 32];
    let quality = Platform::entropy(&mut hardware(bus), &mut out);
    (quality, out == [0; 32])
}

#[test]
fn noise_that_is_healthy_to_the_end_gives_a_seed() {
    let bus = Fake::with(&[(regs::noise::STATUS, TESTED | WORD)]);
    let mut out = [0; 32];
    assert_eq!(Platform::entropy(&mut hardware(&bus), &mut out), EntropyQuality::Tested);
    let raw: Vec<u8> = (1..=32_u32).flat_map(|n| (0x1234_5600 + n).to_le_bytes()).collect();
    assert_eq!((out, bus.words.get()), (sha256(&raw), 32));
    assert_eq!(bus.written(regs::sys::ALERT), [0; 0]);
    // What the shell states about the source; a value without a meaning is the worst one.
    for (source, quality) in [
        (regs::noise::STATUS_SOURCE_MEASURED, EntropyQuality::Tested),
        (regs::noise::STATUS_SOURCE_SEEDED, EntropyQuality::Seeded),
        (regs::noise::STATUS_SOURCE_UNMEASURED, EntropyQuality::Unmeasured),
        (regs::noise::STATUS_SOURCE & !regs::noise::STATUS_SOURCE_SEEDED, EntropyQuality::Seeded),
    ] {
        let bus = Fake::with(&[(regs::noise::STATUS, TESTED | WORD | source)]);
        assert_eq!(drawn(&bus), (quality, false), "{source:#x}");
    }
}

#[test]
fn noise_that_fails_a_test_gives_none() {
    let refused = |bus: &Fake, what: &str| {
        assert_eq!(drawn(bus), (EntropyQuality::Failed, true), "{what}");
        assert_eq!(bus.written(regs::sys::ALERT), [regs::sys::ALERT_CODE_NOISE], "{what}");
    };
    // Before the first word.
    refused(&Fake::with(&[(regs::noise::STATUS, WORD)]), "the start-up test has not passed");
    for alarm in ALARMS {
        refused(
            &Fake::with(&[(regs::noise::STATUS, TESTED | WORD | alarm)]),
            "an alarm from the beginning",
        );
        refused(
            &Fake::with(&[(regs::noise::STATUS, WORD | alarm)]),
            "an alarm before the start-up test",
        );
        // Between words and after the last one: the hardware clears TESTED on an alarm.
        for words in [1, 16, 31, 32] {
            for after in [alarm | WORD, alarm | WORD | TESTED, WORD] {
                let bus = Fake::with(&[(regs::noise::STATUS, TESTED | WORD)]);
                bus.then.set(Some((words, after)));
                refused(&bus, &format!("{after:#x} after {words} words"));
            }
        }
    }
    // A transient alarm.
    let bus = Fake::with(&[(regs::noise::STATUS, ALARMS[0] | WORD)]);
    bus.then.set(Some((1, TESTED | WORD)));
    refused(&bus, "an alarm before the first word");
    // No more words come.
    let bus = Fake::with(&[(regs::noise::STATUS, TESTED | WORD)]);
    bus.then.set(Some((7, TESTED)));
    refused(&bus, "no more words");
}

#[test]
fn the_secret_is_read_once_and_locked() {
    let bus = Fake::with(&[]);
    bus.set_bytes(regs::sys::UDS, &[0x5a; 32]);
    assert_eq!(*hardware(&bus).take_uds().unwrap(), [0x5a; 32]);
    assert_eq!(bus.written(regs::sys::CONTROL), [regs::sys::CONTROL_UDS_LOCK]);
    // Locked: not even read.
    bus.set(regs::sys::STATUS, regs::sys::STATUS_UDS_LOCKED);
    bus.reads.borrow_mut().clear();
    assert!(hardware(&bus).take_uds().is_none());
    assert!(
        !bus.reads.borrow().iter().any(|at| (regs::sys::UDS..regs::sys::UDS + 32).contains(at))
    );
}

#[test]
fn what_the_shell_says_of_itself_is_what_the_kernel_sees() {
    let bus = Fake::with(&[]);
    bus.set_bytes(regs::sys::SHELL, &[0x5e; 32]);
    bus.set_bytes(regs::sys::TARGET, b"a card\0\0");
    let all = regs::sys::SHELL_FLAGS_CONFIGURATION
        | regs::sys::SHELL_FLAGS_READBACK
        | regs::sys::SHELL_FLAGS_DEBUG_BRIDGE;
    for flags in 0..=all {
        bus.set(regs::sys::SHELL_FLAGS, flags);
        let shell = hardware(&bus).shell().unwrap();
        assert_eq!(shell.digest, [0x5e; 32]);
        let seen = [shell.config_port, shell.readback, shell.debug_bridge];
        let said = [
            regs::sys::SHELL_FLAGS_CONFIGURATION,
            regs::sys::SHELL_FLAGS_READBACK,
            regs::sys::SHELL_FLAGS_DEBUG_BRIDGE,
        ];
        assert_eq!(seen, said.map(|bit| flags & bit != 0), "{flags:#x}");
    }
    assert_eq!(hardware(&bus).target(), "a card");
    for (kind, root) in [
        (regs::sys::ROOT_KIND_SIMULATED, RootOfTrust::Simulated),
        (regs::sys::ROOT_KIND_SHEF_BOOT, RootOfTrust::ShefBoot),
        (regs::sys::ROOT_KIND_BOARD, RootOfTrust::Board),
        (regs::sys::ROOT_KIND_PROVIDER, RootOfTrust::Provider),
    ] {
        bus.set(regs::sys::ROOT, kind | 0xff00);
        assert_eq!(hardware(&bus).root_of_trust(), root);
    }
    assert_eq!(Platform::debug_state(&mut hardware(&bus)), DebugState::DisabledSinceBoot);
    bus.set(regs::sys::STATUS, regs::sys::STATUS_DEBUG);
    assert_eq!(Platform::debug_state(&mut hardware(&bus)), DebugState::Enabled);
    assert_eq!(BootPlatform::debug_state(&mut hardware(&bus)), DebugState::Enabled);
}

#[test]
fn a_design_that_is_not_active_has_no_digest() {
    let bus = Fake::with(&[(regs::config::STATUS, regs::config::STATUS_ACTIVE)]);
    bus.set_bytes(regs::config::DESIGN, &[0xd5; 32]);
    assert_eq!(hardware(&bus).design_digest(), Some([0xd5; 32]));
    for status in [0, regs::config::STATUS_BUSY, regs::config::STATUS_ERROR] {
        bus.set(regs::config::STATUS, status);
        assert_eq!(hardware(&bus).design_digest(), None, "{status}");
    }
}

#[test]
fn bytes_reach_the_fabric_in_whole_words_of_one_image() {
    let bus = Fake::with(&[]);
    let mut hardware = hardware(&bus);
    hardware.begin_image().unwrap();
    hardware.program(&[1, 2, 3]).unwrap();
    // The next image gets none of these bytes.
    hardware.begin_image().unwrap();
    for part in [&[1_u8, 2][..], &[], &[3, 4, 5, 6, 7, 8, 9], &[10]] {
        hardware.program(part).unwrap();
    }
    hardware.finish_image().unwrap();
    assert_eq!(bus.written(regs::config::DATA), [0x0403_0201, 0x0807_0605, 0x0000_0a09]);
    let controls =
        [regs::config::CONTROL_BEGIN, regs::config::CONTROL_BEGIN, regs::config::CONTROL_FINISH];
    assert_eq!(bus.written(regs::config::CONTROL), controls);
    // Nor does one that follows a cleared image.
    hardware.program(&[1, 2, 3]).unwrap();
    hardware.unload_image().unwrap();
    hardware.program(&[4, 3, 2, 1]).unwrap();
    assert_eq!(bus.written(regs::config::DATA).last(), Some(&0x0102_0304));
    assert_eq!(bus.written(regs::config::CONTROL).last(), Some(&regs::config::CONTROL_CLEAR));
}

#[test]
fn a_configuration_port_that_fails_is_told() {
    use regs::config::{STATUS_ACTIVE, STATUS_BUSY, STATUS_ERROR};
    for (status, finished, cleared) in [
        (0, true, true),
        (STATUS_ACTIVE, true, false),
        (STATUS_BUSY, false, false),
        (STATUS_BUSY | STATUS_ACTIVE, false, false),
        (STATUS_ERROR, false, true),
    ] {
        let bus = Fake::with(&[(regs::config::STATUS, status)]);
        bus.step.set(1_000_000);
        assert_eq!(hardware(&bus).finish_image().is_ok(), finished, "{status}");
        assert_eq!(hardware(&bus).unload_image().is_ok(), cleared, "{status}");
    }
}

#[test]
fn what_takes_its_time_is_waited_for() {
    use regs::config::{STATUS_ACTIVE, STATUS_BUSY};
    let bus = Fake::with(&[(regs::config::STATUS, STATUS_BUSY)]);
    bus.later.set(Some((10_000, regs::config::STATUS, STATUS_ACTIVE)));
    hardware(&bus).finish_image().unwrap();
    let bus = Fake::with(&[(regs::config::STATUS, STATUS_BUSY | STATUS_ACTIVE)]);
    bus.later.set(Some((10_000, regs::config::STATUS, 0)));
    hardware(&bus).unload_image().unwrap();
    // The start-up test of the noise source, and its first word.
    let bus = Fake::with(&[]);
    bus.later.set(Some((10_000, regs::noise::STATUS, TESTED | WORD)));
    assert_eq!(drawn(&bus), (EntropyQuality::Tested, false));
    let bus = Fake::with(&[(regs::noise::STATUS, TESTED)]);
    bus.later.set(Some((10_000, regs::noise::STATUS, TESTED | WORD)));
    assert_eq!(
        (drawn(&bus), bus.reads.borrow().contains(&regs::noise::WORD)),
        ((EntropyQuality::Tested, false), true)
    );
    // A thousand cycles pass, with a watchdog kick.
    let bus = Fake::with(&[]);
    hardware(&bus).idle();
    assert!(bus.time.get() > 1000 && bus.written(regs::sys::WATCHDOG).len() == 2);
}

#[test]
fn an_access_that_the_shield_refuses_is_told() {
    let bus = Fake::with(&[(regs::SHIELD + 4, 7)]);
    assert_eq!(hardware(&bus).krn_read(4).unwrap(), 7);
    hardware(&bus).krn_write(8, 9).unwrap();
    // The driver reaches only the Shield's port.
    hardware(&bus).krn_write(regs::SHIELD_LEN as u32 + 8, 10).unwrap();
    assert_eq!(bus.written(regs::SHIELD + 8), [9, 10]);
    bus.set(regs::sys::STATUS, regs::sys::STATUS_NO_SHIELD);
    hardware(&bus).krn_read(4).unwrap_err();
    hardware(&bus).krn_write(8, 9).unwrap_err();
}

/// Runs until the bus halts it.
fn until_halted(bus: &Fake, writes: usize, run: impl FnOnce()) {
    bus.ends.set(Some(writes));
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
}

#[test]
fn a_stop_wipes_and_halts_after_the_alert() {
    let bus = Fake::with(&[]);
    until_halted(&bus, 3, || stop(&bus, regs::sys::ALERT_CODE_IMAGE));
    assert_eq!(bus.writes.borrow()[0], (regs::sys::ALERT, regs::sys::ALERT_CODE_IMAGE));
    let all = regs::sys::CONTROL_WIPE | regs::sys::CONTROL_HALT;
    assert_eq!(bus.written(regs::sys::CONTROL), [all, all]);
}

#[test]
fn a_request_is_copied_whole_and_the_stack_is_cleared_before_the_answer() {
    thread_local! { static CLEARED: Cell<Option<usize>> = const { Cell::new(None) }; }
    let bus = Fake::with(&[
        (regs::mailbox::STATUS, regs::mailbox::STATUS_WAITING),
        (regs::mailbox::REQ_LEN, 5),
    ]);
    bus.set_bytes(regs::REQUEST, b"hello...");
    let mut seen = Vec::new();
    CLEARED.set(None);
    // READY, a watchdog kick, the answer in two words, and its length.
    until_halted(&bus, 5, || {
        serve(
            &bus,
            || CLEARED.set(Some(0)),
            |request| {
                assert_eq!(CLEARED.get(), None);
                seen.push(request.to_vec());
                b"answer".to_vec()
            },
        )
    });
    assert_eq!((seen.as_slice(), CLEARED.get()), (&[b"hello".to_vec()][..], Some(0)));
    let writes = bus.writes.borrow();
    assert_eq!(writes[0], (regs::sys::CONTROL, regs::sys::CONTROL_READY));
    assert_eq!(
        writes[2..],
        [
            (regs::ANSWER, u32::from_le_bytes(*b"answ")),
            (regs::ANSWER + 4, u32::from_le_bytes(*b"er\0\0")),
            (regs::mailbox::RSP_LEN, 6)
        ]
    );
}

#[test]
fn a_request_longer_than_the_buffer_is_none() {
    for (len, is) in [(MAX_MESSAGE, MAX_MESSAGE), (MAX_MESSAGE + 1, 0), (u32::MAX as usize, 0)] {
        let bus = Fake::with(&[
            (regs::mailbox::STATUS, regs::mailbox::STATUS_WAITING),
            (regs::mailbox::REQ_LEN, len as u32),
        ]);
        let mut seen = None;
        until_halted(&bus, 3, || {
            serve(
                &bus,
                || (),
                |request| {
                    seen = Some(request.len());
                    Vec::new()
                },
            )
        });
        assert_eq!(seen, Some(is), "{len}");
        assert!(!bus.reads.borrow().iter().any(|at| (regs::REQUEST + regs::REQUEST_LEN as u32..regs::ANSWER + 1).contains(at)));
    }
    // No answer without a pending request.
    let bus = Fake::with(&[]);
    let mut asked = false;
    until_halted(&bus, 10, || {
        serve(
            &bus,
            || (),
            |_| {
                asked = true;
                Vec::new()
            },
        )
    });
    assert!(!asked);
}
