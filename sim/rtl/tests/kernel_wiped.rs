//! `shef_kernel` keeps no data after a reset, a wipe and each kind of stop; checked from inside.
//!
//! Two instances run the same operations with two secrets, in every place that can hold data.
//! Afterwards no register and no memory differs between them.

mod inside;
mod probe;
mod rv32;

use inside::Inside;
use probe::*;
use rv32::{Asm, CoreOp, MTVEC};
use shef_rtl::agent::Rng;
use shef_rtl::kernel_sim::host;
use shef_rtl::{KernelPort, KernelSnapshot};

const SECRETS: [u32; 2] = [0x5ec2_e7aa, 0x3b1d_9c55];
/// Programs in kernel memory: above the part that is filled with the secret.
const PROGRAMS: u32 = MEMORY + 0x3_f000;
const MEASURE: u32 = 0x4000_c000;
/// Registers that the probe program does not need.
const FREE: [u32; 19] = [2, 3, 4, 7, 15, 16, 17, 19, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31];
const MSCRATCH: i32 = 0x340;
const MTVAL: i32 = 0x343;
const PMPADDR0: i32 = 0x3b0;

/// Variables that hold data, by a part of their names.
const HOLDS: &[&str] = &[
    "u_ram",
    "u_memory",
    "u_request",
    "u_answer",
    "u_file",
    "u_p256__",
    "u_hash__",
    "u_measure__",
    "u_aes__",
    "u_config",
    "u_shield",
    "u_noise",
];

struct Echo(u32);

impl KernelPort for Echo {
    fn read(&mut self, _: u32) -> Option<u32> {
        Some(self.0)
    }
    fn write(&mut self, _: u32, value: u32) -> bool {
        self.0 = value;
        true
    }
}

fn load(k: &mut Kernel, address: u32, program: &mut Asm) {
    for (n, word) in program.words().iter().enumerate() {
        k.write(address + 4 * n as u32, *word);
    }
}

/// Words of the request buffer after the message, written by the host, whose last write is a
/// constant.
fn fill_request(k: &mut Kernel, secret: u32) {
    for offset in (16..host::REQUEST_BYTES as u64).step_by(4) {
        assert!(k.0.host_write(host::REQUEST + offset, secret).unwrap());
    }
    assert!(k.0.host_write(host::REQUEST, 0).unwrap());
}

/// An instance with noise derived from the secret.
fn noisy(secret: u32) -> Kernel {
    let mut k = Kernel::new();
    let mut rng = Rng::new(secret.into());
    k.0.environment.noise =
        Box::new(move |cycle| cycle.is_multiple_of(4).then(|| rng.next_u64() >> 63 == 1));
    k
}

/// Puts the secret into RAM, mailbox and units.
fn fill_units(k: &mut Kernel, secret: u32) {
    k.0.environment.shield = Some(Box::new(Echo(0)));
    k.fill(RAM, 0x1_0000, secret);
    // A scalar and its product with the base point, partly read.
    k.write(P256, 0);
    for n in 0..8 {
        k.write(P256 + 8, if n == 0 { 0x5a } else { secret });
    }
    k.write(P256, 4);
    k.write(P256, 7);
    k.read(P256 + 8);
    // Keys, half a message, and bytes that wait on either side.
    for unit in [HASH, MEASURE] {
        k.write(unit, 1);
        for _ in 0..8 {
            k.write(unit + 8, secret);
        }
        k.write(unit, 2 | 70 << 16);
        for _ in 0..17 {
            k.write(unit + 8, secret);
        }
    }
    k.write(AES, 0);
    for _ in 0..7 {
        k.write(AES + 8, secret);
    }
    k.write(AES, 2 | 16 << 16);
    for _ in 0..2 {
        k.write(AES + 8, secret);
    }
    k.read(AES + 12);
    k.fill(ANSWER + 8, 0x77c, secret);
    fill_request(k, secret);
}

/// Puts the secret into kernel memory, into registers of the processor and of the ports, and into a
/// word of noise.
fn fill_rest(k: &mut Kernel, secret: u32) {
    k.fill(MEMORY, 0xf000, secret);
    k.write(CONFIG, 1);
    k.write(CONFIG + 8, secret);
    k.write(CONFIG + 8, !secret);
    k.write(SHIELD + 4, secret);
    k.read(SHIELD + 4);
    let mut program = Asm::default();
    program.li(6, secret);
    for csr in [MSCRATCH, MTVAL, PMPADDR0] {
        program.csrw(csr, 6);
    }
    for register in FREE {
        program.li(register, secret);
    }
    load(k, PROGRAMS, program.jalr(0, 1, 0));
    assert_eq!(k.ask(CoreOp::Call, PROGRAMS, 0), (0, 0));
    assert_eq!(k.read(NOISE), 0x1003, "tested, and a word waits");
    k.read(NOISE + 4);
}

/// Traps inside its own trap handler.
fn double_trap(k: &mut Kernel) {
    load(
        k,
        PROGRAMS + 0x800,
        Asm::default().li(6, 0x5000_0000).csrw(MTVEC, 6).li(6, 0x6000_0000).lw(6, 0, 6),
    );
}

fn state(k: &Kernel) -> KernelSnapshot {
    k.0.save().expect("savable")
}

/// Inputs that belong to host and Shield.
fn own(name: &str) -> bool {
    name.contains("__DOT__")
        && !["top__DOT__host_req", "top__DOT__krn_rsp"].iter().any(|bus| name.ends_with(bus))
}

/// Registers and memories that differ between two instances.
fn differing(inside: &Inside, [a, b]: [&Kernel; 2]) -> Vec<String> {
    inside
        .differing(state(a).bytes(), state(b).bytes())
        .into_iter()
        .filter(|name| own(name))
        .map(str::to_owned)
        .collect()
}

/// Number of occurrences of the secret in registers and memories.
fn found(inside: &Inside, k: &Kernel, secret: u32) -> usize {
    let count = |bytes: &[u8]| bytes.windows(4).filter(|w| *w == secret.to_le_bytes()).count();
    inside
        .of_snapshot(state(k).bytes())
        .filter(|(name, _)| own(name))
        .map(|(_, bytes)| count(bytes))
        .sum()
}

/// Stops the noise, whose input is not the subsystem's state.
fn silent(k: &mut Kernel) {
    k.0.environment.noise = Box::new(|_| None);
}

/// The way in which the subsystem is made to clear itself, the alert that it then shows, and
/// whether it restarts.
type End = (&'static str, fn(&mut Kernel), u64, bool);

const ENDS: &[End] = &[
    ("reset", |k| k.0.reset(), 0, true),
    ("wipe", |k| k.0.wipe().expect("acknowledged"), 0, true),
    (
        "watchdog",
        |k| assert_eq!(k.within(10_000, [CoreOp::Write as u32, WATCHDOG, 1, 0]), None),
        6,
        true,
    ),
    ("halt", |k| assert_eq!(k.control(2), None), 0, false),
    (
        "wipe and halt",
        |k| assert_eq!(k.within(10_000, [CoreOp::Write as u32, CONTROL, 6, 0]), None),
        0,
        false,
    ),
    (
        "trap in a trap",
        |k| assert_eq!(k.within(10_000, [CoreOp::Call as u32, PROGRAMS + 0x800, 0, 0]), None),
        1,
        false,
    ),
    (
        "alert and halt",
        |k| {
            k.write(ALERT, 5);
            assert_eq!(k.control(2), None);
        },
        5,
        false,
    ),
];

#[test]
fn nothing_is_left_by_any_stop() {
    let inside = Inside::of(&spec(), "kernel-wiped-0");
    let mut full = SECRETS.map(|secret| {
        let mut k = noisy(secret);
        fill_units(&mut k, secret);
        fill_rest(&mut k, secret);
        double_trap(&mut k);
        fill_request(&mut k, secret);
        silent(&mut k);
        k
    });
    let before = [state(&full[0]), state(&full[1])];
    // Each memory and each block holds some of it.
    let held = differing(&inside, [&full[0], &full[1]]);
    for part in HOLDS {
        assert!(
            held.iter().any(|name| name.contains(part)),
            "{part} holds nothing of the secret: {held:?}"
        );
    }
    for (what, end, alert, starts) in ENDS {
        for ((k, before), secret) in full.iter_mut().zip(&before).zip(SECRETS) {
            k.0.restore(before).expect("same design");
            assert!(found(&inside, k, secret) > 0x1_f000);
            end(k);
            k.0.step(70_000);
            assert_eq!(k.0.alert(), *alert, "{what}");
            assert_eq!(found(&inside, k, secret), 0, "{what}");
        }
        let left = differing(&inside, [&full[0], &full[1]]);
        assert!(left.is_empty(), "{what}: these depend on the secret: {left:?}");
        for k in &mut full {
            let answer = k.within(10_000, [CoreOp::Read as u32, SYS, 0, 0]);
            assert_eq!(answer.is_some(), *starts, "{what}");
        }
    }
}

#[test]
fn after_a_reset_or_a_wipe_it_is_as_after_power_on() {
    let inside = Inside::of(&spec(), "kernel-wiped-1");
    let mut fresh = Kernel::new();
    silent(&mut fresh);
    let mut used = noisy(SECRETS[0]);
    fill_units(&mut used, SECRETS[0]);
    fill_rest(&mut used, SECRETS[0]);
    silent(&mut used);
    used.0.environment.shield = None;
    for k in [&mut fresh, &mut used] {
        k.0.step(1000);
        k.0.reset();
        k.0.step(65_600);
    }
    assert_eq!(differing(&inside, [&fresh, &used]), Vec::<String>::new(), "reset");
    fill_units(&mut used, SECRETS[1]);
    silent(&mut used);
    used.0.environment.shield = None;
    for k in [&mut fresh, &mut used] {
        // The host makes the last access.
        k.0.host_read(host::STATUS).unwrap();
        k.0.host_write(host::REQUEST, 0).unwrap();
        k.0.wipe().expect("acknowledged");
        k.0.step(100);
    }
    assert_eq!(differing(&inside, [&fresh, &used]), Vec::<String>::new(), "wipe");
}

#[test]
fn a_wipe_by_the_kernel_leaves_nothing_in_ram_mailbox_and_units() {
    let inside = Inside::of(&spec(), "kernel-wiped-2");
    let mut full = SECRETS.map(|secret| {
        let mut k = Kernel::new();
        fill_units(&mut k, secret);
        k
    });
    for (k, secret) in full.iter_mut().zip(SECRETS) {
        assert!(found(&inside, k, secret) > 0x1_0000);
        assert_eq!(k.control(1), None);
        assert_eq!(found(&inside, k, secret), 0);
    }
    let left = differing(&inside, [&full[0], &full[1]]);
    assert!(left.is_empty(), "these depend on the secret: {left:?}");
}
