//! The state that the committed boot ROM hands to the kernel, and the parts that it locks for good:
//! a signed program acts as a kernel that attacks the ROM.

mod rv32;

use rv32::{Asm, CoreOp, MTVEC};
use shef_kernel::{Identity, KernelImage, Medium, device_id_key};
use shef_proto::cert::{self, Certificate};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::RootOfTrust;
use shef_rtl::{
    KernelSim, KernelStraps, Library, build_once, fair_noise, kernel_spec, sparse_noise,
};

const NOW: i64 = 1_795_000_000;
const BOOT: u64 = 30_000_000;
/// The signer of kernels for simulated devices, whose key is public (`cargo xtask firmware`).
const SIGNER: &[u8] = b"shef/1: signer of kernels for simulated devices, known to all";

const VERSION: &str = "against the ROM";

const ROM: u32 = 0;
const MEMORY: u32 = 0x1000_0000;
const RAM: u32 = 0x2000_0000;
const IDENTITY: u32 = 0x2003_f000;
const MEDIUM: u32 = 0x3000_0000;
const SYS: u32 = 0x4000_0000;
const UDS: u32 = SYS + 0x20;
const NOISE: u32 = 0x4000_3000;
const UNITS: [u32; 4] = [0x4000_8000, 0x4000_9000, 0x4000_a000, 0x4000_c000];
const FETCH_FAULT: u32 = 1 + 1;
const LOAD_FAULT: u32 = 5 + 1;
const STORE_FAULT: u32 = 7 + 1;

/// Address at which the program saves the registers that it found.
const FOUND: u32 = RAM + 0x1000;
/// The register that it needs for that; the ROM jumps through it.
const BASE: u32 = 28;
/// Address of the program's server; the next constant is that of its attempt to open locked parts.
const SERVER: u32 = MEMORY + 0x100;
const OPEN: u32 = MEMORY + 0x800;

/// With four entries each, and with one: every register that can exist.
const PMPCFG: std::ops::Range<i32> = 0x3a0..0x3a4;
const PMPADDR: std::ops::Range<i32> = 0x3b0..0x3c0;
const MSECCFG: i32 = 0x747;

fn library() -> &'static Library {
    build_once(&kernel_spec(None).expect("sources").fast().savable()).expect("model")
}

/// Saves all registers, reports ready, and serves the mailbox.
fn program() -> Vec<u8> {
    let mut a = Asm::default();
    a.li(BASE, FOUND);
    for register in (1..32).filter(|register| *register != BASE) {
        a.sw(register, 4 * register as i32, BASE);
    }
    a.li(6, SERVER)
        .csrw(MTVEC, 6)
        .li(6, SYS)
        .li(7, 8)
        .sw(7, 4, 6)
        .li(6, SERVER + 0x80)
        .jalr(0, 6, 0);
    let server = rv32::probe();
    let mut words = a.words();
    assert!(words.len() <= 0x100 / 4);
    words.resize(0x100 / 4, 0);
    words.extend(server);
    assert!(words.len() <= 0x800 / 4);
    words.resize(0x800 / 4, 0);
    // All permissions everywhere, in each writable entry.
    let mut open = Asm::default();
    open.li(6, 4).csrw(MSECCFG, 6).li(6, u32::MAX);
    for entry in PMPADDR {
        open.csrw(entry, 6);
    }
    open.li(6, 0x1f1f_1f1f);
    for entries in PMPCFG {
        open.csrw(entries, 6);
    }
    open.csrw(MSECCFG, 0).jalr(0, 1, 0);
    words.extend(open.words());
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// A device with this secret, whose medium contains this program, signed, in reset.
fn device(uds: [u8; 32], program: &[u8]) -> KernelSim {
    let key = SigningKey::generate(&mut SeededEntropy::new(7, "test"));
    let root = Certificate::parse(&cert::issue_root(
        &key,
        "test manufacturer",
        NOW - 1000,
        NOW + 1_000_000,
    ))
    .expect("root");
    let device_id = device_id_key(&uds, RootOfTrust::Simulated, false).public_key();
    let certificate = cert::issue_device_id(&key, &root, &device_id, NOW - 500);

    let signer = SigningKey::derive(SIGNER);
    let image = KernelImage { svn: 1, version: VERSION, code: program }.to_bytes();
    let signature = [&signer.sign(&image)[..], &signer.public_key().xy()].concat();
    let straps = KernelStraps {
        uds,
        root: 0,
        target: KernelStraps::name("test"),
        shell: [0x5e; 32],
        shell_flags: 0,
        debug: false,
        seeded: true,
        unmeasured: false,
    };
    let mut kernel = KernelSim::new(library(), &straps).expect("instance");
    kernel.environment.medium =
        Medium::build(&image, &signature.try_into().expect("signature and key"), &certificate);
    kernel
}

/// The same device with the program running.
fn running(uds: [u8; 32]) -> KernelSim {
    let mut kernel = device(uds, &program());
    start(&mut kernel);
    kernel
}

fn start(kernel: &mut KernelSim) {
    kernel.boot(BOOT).expect("boot");
    assert_eq!((kernel.alert(), kernel.ready()), (0, true));
}

fn ask(kernel: &mut KernelSim, ask: CoreOp, address: u32, value: u32) -> (u32, u32) {
    let request: Vec<u8> =
        [ask as u32, address, value, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(kernel.send(&request).expect("host port"));
    let answer = kernel.receive(3_000_000).expect("host port").expect("an answer");
    let word = |n: usize| u32::from_le_bytes(answer[4 * n..4 * n + 4].try_into().expect("word"));
    (word(0), word(1))
}

fn words(kernel: &mut KernelSim, address: u32, words: u32) -> Vec<u32> {
    (0..words)
        .map(|n| {
            let (word, trap) = ask(kernel, CoreOp::Read, address + 4 * n, 0);
            assert_eq!(trap, 0, "{:#x}", address + 4 * n);
            word
        })
        .collect()
}

/// Words of a unit's result.
fn result(kernel: &mut KernelSim, unit: u32) -> Vec<u32> {
    (0..8).map(|_| words(kernel, unit + 8, 1)[0]).collect()
}

#[test]
fn the_kernel_finds_its_identity_and_nothing_else() {
    let secrets = [[0x5a; 32], [0xa7; 32]];
    let found = secrets.map(|uds| {
        let mut k = running(uds);
        assert_eq!(words(&mut k, UDS, 8), [0; 8], "the device secret");
        let registers = words(&mut k, FOUND, 32);
        // RAM below and above the program's own writes; its stack is unused.
        for (from, to) in [(RAM, FOUND), (FOUND + 0x80, IDENTITY)] {
            assert_eq!(
                ask(&mut k, CoreOp::Or, from, (to - from) / 4),
                (0, 0),
                "RAM from {from:#x} on"
            );
        }
        let page: Vec<u8> =
            words(&mut k, IDENTITY, 1024).into_iter().flat_map(u32::to_le_bytes).collect();
        let len = u32::from_le_bytes(*page.first_chunk().expect("length")) as usize;
        Identity::from_bytes(&page[4..4 + len]).expect("an identity");
        assert!(page[4 + len..].iter().all(|byte| *byte == 0), "behind the identity");
        // Idle, without a waiting result byte.
        let units = UNITS.map(|unit| {
            let status = words(&mut k, unit + 4, 1)[0];
            assert_eq!(status & 0x701, 1, "unit {unit:#x}");
            status
        });
        // Coordinates of the last product, and a digest of the last input.
        let mut left = Vec::new();
        for command in [7, 8] {
            assert_eq!(ask(&mut k, CoreOp::Write, UNITS[0], command).1, 0);
            left.extend(result(&mut k, UNITS[0]));
        }
        for unit in [UNITS[1], UNITS[3]] {
            assert_eq!(ask(&mut k, CoreOp::Write, unit, 3).1, 0);
            left.extend(result(&mut k, unit));
        }
        (registers, units, left)
    });
    assert_eq!(found[0].2, found[1].2, "units");
    assert_eq!(found[0].1, found[1].1, "units' state");
    assert!(
        found[0].2[..16].iter().all(|word| *word == 0),
        "a product is left: {:08x?}",
        found[0].2
    );
    // The exit code needs constants.
    for (register, (one, other)) in found[0].0.iter().zip(&found[1].0).enumerate() {
        assert_eq!(one, other, "register {register} holds something of the device");
        assert!(*one == 0 || [5, 6, 7].contains(&register), "register {register} is {one:#x}");
    }
}

#[test]
fn what_the_rom_closes_stays_closed() {
    let mut k = running([0x5a; 32]);
    let closed = |k: &mut KernelSim, when: &str| {
        for address in
            [ROM, ROM + 0x80, ROM + 0xfffc, MEDIUM, MEDIUM + 0x1000, 0x5000_0000, 0xffff_fffc]
        {
            assert_eq!(
                ask(k, CoreOp::Read, address, 0),
                (0, LOAD_FAULT),
                "{when}: read of {address:#x}"
            );
        }
        for address in [MEMORY, SERVER, MEMORY + 0x3_fffc] {
            assert_eq!(
                ask(k, CoreOp::Write, address, 0).1,
                STORE_FAULT,
                "{when}: write of {address:#x}"
            );
        }
        for address in [ROM + 0x80, RAM + 0x2000, MEDIUM, SYS] {
            assert_eq!(
                ask(k, CoreOp::Call, address, 0).1,
                FETCH_FAULT,
                "{when}: call of {address:#x}"
            );
        }
        assert_eq!(words(k, UDS, 8), [0; 8], "{when}");
    };
    closed(&mut k, "after boot");
    assert_eq!(ask(&mut k, CoreOp::Call, OPEN, 0), (0, 0));
    closed(&mut k, "after an attempt to open it");
}

#[test]
fn nothing_is_placed_that_was_not_measured() {
    let program = program();
    let end = MEMORY + program.len() as u32;
    for more in 1..4 {
        let code = [&program[..], &vec![0x11; more]].concat();
        let mut k = device([0x5a; 32], &code);
        // Padding in the image's last word on the medium is not part of it.
        let image =
            Medium::IMAGE + KernelImage { svn: 1, version: VERSION, code: &code }.to_bytes().len();
        let fill = &mut k.environment.medium[image..image.next_multiple_of(4)];
        assert!(fill.iter().all(|byte| *byte == 0));
        fill.fill(0xee);
        start(&mut k);
        let mut expected = [0; 4];
        expected[..more].fill(0x11);
        assert_eq!(words(&mut k, end, 2), [u32::from_le_bytes(expected), 0], "{more} bytes");
    }
}

/// As in each power-on of a simulated card except the first.
#[test]
fn power_ons_from_one_snapshot_share_no_noise() {
    let mut k = device([0x5a; 32], &program());
    k.environment.noise = sparse_noise(fair_noise(1));
    start(&mut k);
    let snapshot = k.save().expect("savable");
    let [one, other] = [2, 3].map(|seed| {
        k.restore(&snapshot).expect("same design");
        k.environment.noise = fair_noise(seed);
        assert_eq!(words(&mut k, NOISE, 1), [0x1000], "not tested, no word, no alarm");
        k.step(20_000);
        (0..32)
            .map(|_| {
                k.step(200);
                assert_eq!(words(&mut k, NOISE, 1), [0x1003], "tested, and a word waits");
                words(&mut k, NOISE + 4, 1)[0]
            })
            .collect::<Vec<_>>()
    });
    assert!(one.iter().zip(&other).all(|(one, other)| one != other), "{one:08x?} {other:08x?}");
}
