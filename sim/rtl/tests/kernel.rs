//! `shef_kernel` with a test program in its ROM: memory map, locks, traps, mailbox, watchdog,
//! wipes, units and ports work, and the host reaches only the mailbox.

mod probe;
mod rv32;

use probe::*;
use rv32::{Asm, CoreOp, MTVEC};
use sha2::{Digest, Sha256};
use shef_rtl::kernel_sim::{fair_noise, host};
use shef_rtl::{KernelPort, KernelStraps};

#[test]
fn identity_comes_from_the_shell_and_the_secret_locks() {
    let mut k = Kernel::new();
    assert_eq!(k.read(SYS), u32::from_le_bytes(*b"SHEK"));
    let straps = straps();
    assert_eq!(k.bytes(SYS + 0x40, 32), straps.target);
    assert_eq!(k.bytes(SYS + 0x60, 32), straps.shell);
    assert_eq!((k.read(SYS + 0x1c), k.read(SYS + 0x80)), (0, 5));
    assert_eq!(k.bytes(UDS, 32), straps.uds);
    assert_eq!(k.read(STATUS) & 1, 0);
    assert_eq!(k.control(0), Some((0, 0)));
    assert_eq!(k.bytes(UDS, 32), [0; 32]);
    assert_eq!(k.read(STATUS) & 1, 1);
    // Only a reset opens it again: neither READY nor WIPE does.
    assert_eq!(k.control(3), Some((0, 0)));
    assert_eq!(k.control(1), None);
    assert_eq!(k.bytes(UDS, 32), [0; 32]);
    for address in (SYS..SYS + 0x84).step_by(4).filter(|a| ![CONTROL, WATCHDOG, ALERT].contains(a))
    {
        k.ask(CoreOp::Write, address, 0);
        k.ask(CoreOp::Write, address, u32::MAX);
    }
    assert_eq!(k.bytes(UDS, 32), [0; 32]);
    k.0.reset();
    assert_eq!(k.bytes(UDS, 32), straps.uds);
}

/// The processor takes no part in this: it may never run again.
#[test]
fn debug_is_latched_and_a_change_since_boot_halts() {
    const CANARY: u32 = 0x5ec2_e7aa;
    const DEBUG: u64 = 7;
    let straps = |debug| KernelStraps { debug, ..straps() };
    for boots_with in [false, true] {
        let mut k = Kernel::new();
        k.0.strap(&straps(boots_with)).expect("ports");
        k.0.reset();
        assert_eq!((k.read(STATUS) >> 1 & 1, k.0.alert()), (boots_with.into(), 0));
        k.fill(RAM, 0x100, CANARY);
        k.fill(MEMORY, 0x100, CANARY);
        assert!(k.count(CANARY) > 0x100);
        // One cycle is enough, and nothing reverts it.
        k.0.debug(!boots_with);
        k.0.step(1);
        k.0.debug(boots_with);
        k.0.step(65_600);
        assert_eq!((k.0.alert(), k.count(CANARY)), (DEBUG, 0), "booted with debug {boots_with}");
        assert_eq!(
            k.within(10_000, [CoreOp::Read as u32, SYS, 0, 0]),
            None,
            "the processor stays in reset"
        );
        // Only a reset restarts it, in a cleared subsystem.
        k.0.reset();
        assert_eq!((k.read(STATUS) >> 1 & 1, k.0.alert()), (boots_with.into(), 0));
        assert_eq!(k.or(RAM, 0x100), 0);
    }
}

#[test]
fn debug_of_a_part_of_the_boot_is_no_boot_without_debug() {
    const CANARY: u32 = 0x5ec2_e7aa;
    const DEBUG: u64 = 7;
    // The subsystem restarts, by its watchdog and by a wipe of the shell; while it clears its
    // memories, debug is switched on and off again.
    for wiped in [false, true] {
        let mut k = Kernel::new();
        k.fill(RAM + 0x8000, 0x100, CANARY);
        if wiped {
            k.0.wipe_request(true);
            k.0.step(10);
            k.0.wipe_request(false);
        } else {
            assert_eq!(k.within(10_000, [CoreOp::Write as u32, WATCHDOG, 3000, 0]), Some((0, 0)));
            k.0.step(3000);
        }
        k.0.step(100);
        assert!(k.count(CANARY) >= 0x100, "the clear has not come so far");
        let alert = k.0.alert();
        k.0.debug(true);
        k.0.step(1);
        k.0.debug(false);
        k.0.step(140_000);
        assert_eq!(
            (k.0.alert(), k.count(CANARY)),
            (if wiped { DEBUG } else { alert }, 0),
            "wiped {wiped}"
        );
        assert_eq!(
            k.within(10_000, [CoreOp::Read as u32, SYS, 0, 0]),
            None,
            "the processor stays in reset"
        );
        k.0.reset();
        assert_eq!((k.read(STATUS) >> 1 & 1, k.0.alert()), (0, 0));
    }
}

#[test]
fn what_is_nowhere_traps() {
    let mut k = Kernel::new();
    k.0.environment.medium = vec![1, 2, 3, 4, 5];
    let (good, read, write) = ((0, 0), LOAD_FAULT, STORE_FAULT);
    // Address, the trap of a read, and the trap of a write.
    for (address, on_read, on_write) in [
        (0x0000_0000, 0, write),
        (0x0000_fffc, 0, write),
        (0x0001_0000, read, write),
        (0x0fff_fffc, read, write),
        (MEMORY, 0, 0),
        (MEMORY + 0x3_fffc, 0, 0),
        (MEMORY + 0x4_0000, read, write),
        (RAM, 0, 0),
        (RAM + 0x3_fffc, 0, 0),
        (RAM + 0x4_0000, read, write),
        (RAM - 4, read, write),
        (MEDIUM, 0, write),
        (MEDIUM + 4, 0, write),
        (MEDIUM + 8, read, write),
        (MEDIUM + 0xf_fffc, read, write),
        (MEDIUM + 0x10_0000, read, write),
        (SYS, 0, write),
        (SYS + 0x84, read, write),
        (MAILBOX, 0, write),
        (MAILBOX + 0xc, read, write),
        (NOISE, 0, write),
        (NOISE + 8, read, write),
        (REQUEST, 0, write),
        (ANSWER, read, 0),
        (P256, read, 0),
        (P256 + 0x14, read, write),
        (HASH + 4, 0, write),
        (AES + 0x14, read, write),
        (CONFIG, read, 0),
        (CONFIG + 8, read, write),
        (CONFIG + 0x2000, read, write),
        (0x8000_0000, read, write),
        (0x9000_0000, read, write),
        (0xffff_fffc, read, write),
    ] {
        assert_eq!(k.ask(CoreOp::Read, address, 0).1, on_read, "read of {address:#x}");
        // CMD 15 of a unit and 0 at the configuration port have no effect.
        let value = if address == CONFIG { 0 } else { 15 };
        assert_eq!(k.ask(CoreOp::Write, address, value).1, on_write, "write of {address:#x}");
    }
    assert_eq!(k.read(MEDIUM), 0x0403_0201);
    assert_eq!(k.read(MEDIUM + 4), 5);
    // Less than a word: only memories and the answer allow it.
    assert_eq!(k.ask(CoreOp::WriteByte, RAM + 1, 0x77), good);
    assert_eq!(k.read(RAM), 0x7700 | 15);
    assert_eq!(k.ask(CoreOp::WriteByte, ANSWER + 9, 1), good);
    for address in [ALERT, MAILBOX + 8, HASH + 8, CONFIG, SHIELD] {
        assert_eq!(k.ask(CoreOp::WriteByte, address, 1).1, write, "{address:#x}");
    }
    // Instructions are fetched from ROM and kernel memory.
    k.write(MEMORY, 0x0000_8067); // ret
    assert_eq!(k.ask(CoreOp::Call, MEMORY, 0), good);
    k.write(RAM, 0x0000_8067);
    for address in [RAM, MEDIUM, REQUEST, ANSWER, 0x5000_0000] {
        assert_eq!(k.ask(CoreOp::Call, address, 0).1, FETCH_FAULT, "{address:#x}");
    }
    assert_eq!(k.0.alert(), 0);
}

#[test]
fn memories_are_clear_after_reset_wipe_watchdog_and_halt() {
    const CANARY: u32 = 0x5ec2_e7aa;
    let mut k = Kernel::new();
    assert_eq!(k.or(RAM, 0x1_0000), 0, "RAM after power-on");
    assert_eq!(k.or(MEMORY, 0x1_0000), 0, "kernel memory after power-on");
    k.fill(RAM, 0x1_0000, CANARY);
    k.fill(MEMORY, 0x1_0000, CANARY);
    // A key in the hash unit; the answer and two registers of the processor.
    k.write(HASH, 1);
    for _ in 0..8 {
        k.write(HASH + 8, CANARY);
    }
    k.within(1000, [CoreOp::Write as u32, ANSWER + 0x100, CANARY, CANARY]).expect("an answer");
    let filled = k.0.save().expect("savable");
    assert!(k.count(CANARY) > 0x2_0000);
    k.0.reset();
    k.0.step(65_600);
    assert_eq!(k.count(CANARY), 0, "reset");
    // Before the acknowledgement.
    k.0.restore(&filled).expect("same design");
    k.0.wipe().expect("acknowledged");
    assert_eq!(k.count(CANARY), 0, "wipe");
    // The watchdog, and its alert.
    k.0.restore(&filled).expect("same design");
    k.write(WATCHDOG, 1000);
    k.0.step(70_000);
    assert_eq!((k.0.alert(), k.count(CANARY)), (6, 0), "watchdog");
    assert_eq!(k.read(WATCHDOG), 0);
    // CONTROL.WIPE keeps kernel memory and clears the answer.
    k.0.restore(&filled).expect("same design");
    assert_eq!(k.control(1), None);
    // The count includes the words that its ports read last.
    assert!((0x1_0000..=0x1_0002).contains(&k.count(CANARY)), "kernel memory alone");
    assert_eq!(k.read(MEMORY), CANARY);
    assert_eq!(k.or(RAM, 0x1_0000), 0, "RAM after CONTROL.WIPE");
    // A halt clears everything and answers nothing; the host's accesses still complete.
    k.0.restore(&filled).expect("same design");
    assert_eq!(k.control(2), None);
    assert_eq!(k.count(CANARY), 0, "halt");
    assert_eq!(k.within(10_000, [CoreOp::Read as u32, SYS, 0, 0]), None);
    k.0.reset();
    assert_eq!(k.or(RAM, 0x1_0000), 0, "RAM after all");
}

#[test]
fn the_watchdog_stops_in_boot_only() {
    let mut k = Kernel::new();
    k.write(WATCHDOG, 100_000);
    assert!(k.read(WATCHDOG) < 100_000);
    k.write(WATCHDOG, 0);
    k.0.step(200_000);
    assert_eq!((k.0.alert(), k.0.ready()), (0, false));
    assert_eq!(k.control(3), Some((0, 0)));
    assert!(k.0.ready());
    k.write(WATCHDOG, 100_000);
    k.write(WATCHDOG, 0);
    assert_ne!(k.read(WATCHDOG), 0);
    k.0.step(110_000);
    assert_eq!((k.0.alert(), k.0.ready()), (6, false));
    // The timer restarted.
    assert!(k.read(TIMER) < 200_000);
    let (low, high) = (k.read(TIMER), k.read(TIMER + 4));
    assert!(low > 0 && high == 0);
}

#[test]
fn a_trap_inside_a_trap_halts_with_an_alert() {
    let mut k = Kernel::new();
    // During boot and after it.
    for ready in [false, true] {
        // Its trap vector points nowhere.
        let mut program = Asm::default();
        program.li(6, 0x5000_0000).csrw(MTVEC, 6).li(6, 0x6000_0000).lw(6, 0, 6);
        for (n, word) in program.words().iter().enumerate() {
            k.write(MEMORY + 4 * n as u32, *word);
        }
        if ready {
            assert_eq!(k.control(3), Some((0, 0)));
        }
        assert_eq!(k.within(1000, [CoreOp::Call as u32, MEMORY, 0, 0]), None);
        assert_eq!(k.0.alert(), 1, "ready: {ready}");
        assert_eq!(k.within(10_000, [CoreOp::Read as u32, SYS, 0, 0]), None, "ready: {ready}");
        k.0.reset();
    }
    assert_eq!(k.0.alert(), 0);
    // The first alert stays.
    k.write(ALERT, 2);
    k.write(ALERT, 4);
    assert_eq!((k.0.alert(), k.read(ALERT)), (2, 2));
}

#[test]
fn a_message_is_whole_and_has_one_owner() {
    let mut k = Kernel::new();
    // No write succeeds while the subsystem clears itself.
    assert!(!k.0.host_write(host::REQUEST, 1).unwrap());
    k.read(SYS);
    assert!(k.0.host_write(host::REQUEST + 0x100, 0x1234_5678).unwrap());
    // The read sees the request of `ask`: word 1 is the address.
    assert_eq!(k.read(REQUEST + 4), REQUEST + 4);
    assert_eq!(k.read(REQUEST + 0x100), 0x1234_5678);
    assert_eq!(k.read(MAILBOX), 16);
    // While the kernel owns it, nothing changes and nothing is visible.
    let loops: Vec<u32> = Asm::default().label("here").jump("here").words();
    k.write(MEMORY, loops[0]);
    let request: Vec<u8> =
        [CoreOp::Call as u32, MEMORY, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert!(k.0.send(&request).unwrap());
    k.0.step(100);
    assert_eq!(k.0.host_read(host::STATUS).unwrap(), Some(2));
    for offset in [host::REQUEST, host::REQUEST + 0x1ffc, host::REQ_LEN] {
        assert!(!k.0.host_write(offset, 7).unwrap(), "{offset:#x}");
    }
    assert_eq!(k.0.host_read(host::ANSWER).unwrap(), Some(0));
    assert_eq!(k.0.host_read(host::RSP_LEN).unwrap(), Some(0));
    k.0.reset();
    assert_eq!(k.read(REQUEST + 0x100), 0);
    // A length that exceeds every buffer is reported unchanged.
    k.write(MEMORY, 0x0000_8067);
    k.0.host_write(host::REQUEST, CoreOp::Read as u32).unwrap();
    k.0.host_write(host::REQUEST + 4, MAILBOX).unwrap();
    k.0.host_write(host::REQ_LEN, 0xffff_fff0).unwrap();
    let answer = k.0.receive(10_000).unwrap().expect("an answer");
    assert_eq!(answer[..4], 0xffff_fff0_u32.to_le_bytes());
}

#[test]
fn the_host_reaches_nothing_but_the_mailbox() {
    let mut k = Kernel::new();
    k.read(SYS);
    for offset in (0..0x4000).step_by(4) {
        let readable = (host::ANSWER..host::ANSWER + host::ANSWER_BYTES as u64).contains(&offset)
            || [host::STATUS, host::RSP_LEN].contains(&offset);
        assert_eq!(k.0.host_read(offset).unwrap().is_some(), readable, "read of {offset:#x}");
        if offset != host::REQ_LEN {
            let writable = offset < host::REQUEST_BYTES as u64;
            assert_eq!(
                k.0.host_write(offset, 0xffff_ffff).unwrap(),
                writable,
                "write of {offset:#x}"
            );
        }
    }
}

#[test]
fn units_compute() {
    let mut k = Kernel::new();
    // SHA-256 of 70 bytes, in words and bytes, in each of the two units.
    let message: Vec<u8> = (0..70).collect();
    for unit in [HASH, MEASURE] {
        k.write(unit, 0);
        k.write(unit, 2 | 70 << 16);
        for word in message[..68].chunks(4) {
            k.write(unit + 8, u32::from_le_bytes(word.try_into().unwrap()));
        }
        k.write(unit + 12, 68);
        k.write(unit + 12, 69);
        k.write(unit, 3);
        let mut digest: Vec<u8> = (0..7).flat_map(|_| k.read(unit + 8).to_le_bytes()).collect();
        digest.extend((0..4).map(|_| k.read(unit + 12) as u8));
        assert_eq!(digest, Sha256::digest(&message)[..], "{unit:#x}");
        assert_eq!(k.read(unit + 4), 0x4003);
    }
    // k G for k = 1: the base point.
    k.write(P256, 0);
    for n in 0..8 {
        k.write(P256 + 8, if n == 7 { 0x0100_0000 } else { 0 });
    }
    k.write(P256, 4);
    k.write(P256, 7);
    let x = k.bytes_of_unit(P256, 32);
    assert_eq!(hex::encode(&x), "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296");
    assert_eq!(k.read(P256 + 4) & 2, 2);
    // AES-128-GCM, zero key, zero nonce, 16 zero bytes: test case 2 of the GCM specification.
    k.write(AES, 0);
    for _ in 0..7 {
        k.write(AES + 8, 0);
    }
    k.write(AES, 2 | 16 << 16);
    let mut sealed = Vec::new();
    for _ in 0..4 {
        k.write(AES + 8, 0);
        sealed.extend(k.read(AES + 8).to_le_bytes());
    }
    k.write(AES, 3);
    sealed.extend(k.bytes_of_unit(AES, 16));
    assert_eq!(
        hex::encode(&sealed),
        "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"
    );
    // An unsupported access is a bus error, and a wipe recovers the unit.
    assert_eq!(k.ask(CoreOp::Read, HASH + 8, 0), (0, LOAD_FAULT));
    k.write(HASH + 8, 1);
    assert_eq!(k.ask(CoreOp::Write, HASH, 0).1, STORE_FAULT);
    k.write(HASH + 16, 1);
    assert_eq!(k.read(HASH + 4) & 1, 1);
}

#[test]
fn noise_is_tested_and_each_word_is_read_once() {
    let mut k = Kernel::new();
    k.0.step(80_000 + 4 * 4096);
    assert_eq!(k.read(NOISE), 0x1003);
    let first = k.read(NOISE + 4);
    k.0.step(200);
    let second = k.read(NOISE + 4);
    assert!(first != 0 && second != 0 && first != second);
    k.0.environment.noise = Box::new(|_| Some(true));
    k.0.step(100);
    assert_eq!(k.read(NOISE), 0x1100);
    assert_eq!(k.read(NOISE + 4), 0);
    // It stays so until a reset, whatever the source does.
    k.0.environment.noise = fair_noise(3);
    k.0.step(40_000);
    assert_eq!(k.read(NOISE), 0x1100);
    k.0.reset();
    k.0.step(80_000 + 4 * 4096);
    assert_eq!(k.read(NOISE), 0x1003);
    // Alternating bits.
    let mut last = false;
    k.0.environment.noise = Box::new(move |_| {
        last = !last;
        Some(last)
    });
    k.0.step(10_000);
    assert_eq!(k.read(NOISE), 0x1800);
}

struct Registers([u32; 4]);

impl KernelPort for Registers {
    fn read(&mut self, offset: u32) -> Option<u32> {
        self.0.get(offset as usize / 4).copied()
    }
    fn write(&mut self, offset: u32, value: u32) -> bool {
        self.0.get_mut(offset as usize / 4).is_some_and(|word| {
            *word = value;
            true
        })
    }
}

#[test]
fn the_shield_answers_or_is_said_to_be_absent() {
    let mut k = Kernel::new();
    let absent = |k: &mut Kernel| k.read(STATUS) >> 4 & 1;
    assert_eq!((k.read(SHIELD), absent(&mut k)), (0, 1));
    k.0.environment.shield = Some(Box::new(Registers([1, 2, 3, 4])));
    // It did not answer: it is not accessed again before the fabric holds another design.
    assert_eq!((k.read(SHIELD + 4), absent(&mut k)), (0, 1));
    k.write(CONFIG, 4);
    assert_eq!((k.read(SHIELD + 4), absent(&mut k)), (2, 0));
    k.write(SHIELD + 8, 0xdead_beef);
    assert_eq!(absent(&mut k), 0);
    assert_eq!(k.read(SHIELD + 8), 0xdead_beef);
    assert_eq!((k.read(SHIELD + 16), absent(&mut k)), (0, 1));
    assert_eq!((k.read(SHIELD + 12), absent(&mut k)), (4, 0));
    k.write(SHIELD + 16, 1);
    assert_eq!(absent(&mut k), 1);
}

#[test]
fn an_image_leaves_in_order_and_once() {
    let mut k = Kernel::new();
    k.0.environment.fabric = Box::new(|image: &[u8]| (image.len() == 12).then_some([0x5a; 32]));
    let send = |k: &mut Kernel, words: &[u32]| {
        k.write(CONFIG, 1);
        for word in words {
            k.write(CONFIG + 8, *word);
        }
    };
    send(&mut k, &[1, 2, 3]);
    // The last word waits: more may follow.
    assert_eq!(
        (k.0.environment.image.len(), k.0.environment.whole, k.read(CONFIG + 4)),
        (8, false, 1)
    );
    k.write(CONFIG, 2);
    assert_eq!(k.0.environment.image, [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(k.read(CONFIG + 4), 2);
    assert_eq!(k.bytes(CONFIG + 0x20, 32), [0x5a; 32]);
    assert_eq!(k.ask(CoreOp::Write, CONFIG + 8, 4).1, STORE_FAULT);
    // A refused image.
    send(&mut k, &[1]);
    k.write(CONFIG, 2);
    assert_eq!((k.read(CONFIG + 4), k.bytes(CONFIG + 0x20, 32)), (4, vec![0; 32]));
    // A reset in the middle leaves nothing behind.
    send(&mut k, &[1, 2, 3]);
    k.write(CONFIG, 2);
    assert_eq!(k.read(CONFIG + 4), 2);
    send(&mut k, &[9, 9]);
    k.0.reset();
    assert_eq!(
        (k.read(CONFIG + 4), k.0.environment.design, k.0.environment.image.len()),
        (0, None, 0)
    );
}
