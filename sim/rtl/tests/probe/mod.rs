//! `shef_kernel` with the probe program in its ROM, and requests for tests.
#![allow(dead_code, reason = "each test uses a part")]

use crate::rv32::CoreOp;
use shef_rtl::{DesignSpec, KernelSim, KernelStraps, Library, build_once, counted, kernel_spec};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

pub const MEMORY: u32 = 0x1000_0000;
pub const RAM: u32 = 0x2000_0000;
pub const MEDIUM: u32 = 0x3000_0000;
pub const SYS: u32 = 0x4000_0000;
pub const CONTROL: u32 = SYS + 4;
pub const STATUS: u32 = SYS + 8;
pub const ALERT: u32 = SYS + 0xc;
pub const TIMER: u32 = SYS + 0x10;
pub const WATCHDOG: u32 = SYS + 0x18;
pub const UDS: u32 = SYS + 0x20;
pub const MAILBOX: u32 = 0x4000_1000;
pub const SHIELD: u32 = 0x4000_2000;
pub const NOISE: u32 = 0x4000_3000;
pub const REQUEST: u32 = 0x4000_4000;
pub const ANSWER: u32 = 0x4000_6000;
pub const P256: u32 = 0x4000_8000;
pub const HASH: u32 = 0x4000_9000;
pub const AES: u32 = 0x4000_a000;
pub const CONFIG: u32 = 0x4000_b000;
pub const MEASURE: u32 = 0x4000_c000;
/// Fetch, load and store access faults, as the program reports them.
pub const FETCH_FAULT: u32 = 1 + 1;
pub const LOAD_FAULT: u32 = 5 + 1;
pub const STORE_FAULT: u32 = 7 + 1;

/// The design.
pub fn library() -> &'static Library {
    build_once(&counted(spec())).expect("model")
}

/// The specification of the design.
pub fn spec() -> DesignSpec {
    kernel_spec(Some(&ROM)).expect("sources").savable()
}

/// The folder of the package with the probe program. Programs of tests that run at the same time
/// share it, and so do the threads of one: each program writes the file once, and renames it.
static ROM: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel-probe");
    std::fs::create_dir_all(&folder).expect("folder");
    let (package, text) =
        (folder.join("shef_kernel_rom_pkg.sv"), crate::rv32::package(&crate::rv32::probe()));
    if std::fs::read_to_string(&package).is_ok_and(|there| there == text) {
        return folder;
    }
    let part = package.with_extension(std::process::id().to_string());
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, package)).expect("package");
    folder
});

/// Straps of a simulated device.
pub fn straps() -> KernelStraps {
    let mut target = [0; 32];
    target[..4].copy_from_slice(b"test");
    KernelStraps {
        uds: core::array::from_fn(|i| 0xa0 + i as u8),
        root: 0,
        target,
        shell: core::array::from_fn(|i| 0x10 + i as u8),
        shell_flags: 5,
        debug: false,
        seeded: true,
        unmeasured: false,
    }
}

/// The subsystem, accessed over the mailbox.
pub struct Kernel(pub KernelSim);

impl Kernel {
    pub fn new() -> Self {
        Self(KernelSim::new(library(), &straps()).expect("instance"))
    }

    /// Sends a request to the program; returns the word and the trap, or `None` if no answer
    /// arrives within `cycles`.
    pub fn within(&mut self, cycles: u64, request: [u32; 4]) -> Option<(u32, u32)> {
        let request: Vec<u8> = request.iter().flat_map(|w| w.to_le_bytes()).collect();
        // The subsystem clears itself first.
        let taken = (0..200).any(|_| {
            let taken = self.0.send(&request).expect("host port");
            if !taken {
                self.0.step(1000);
            }
            taken
        });
        assert!(taken, "the mailbox takes no request");
        let answer = self.0.receive(cycles).expect("host port")?;
        let word =
            |n: usize| u32::from_le_bytes(answer[4 * n..4 * n + 4].try_into().expect("word"));
        Some((word(0), word(1)))
    }

    /// Occurrences of a word in the state of the subsystem, at any byte.
    pub fn count(&self, word: u32) -> usize {
        self.0
            .save()
            .expect("savable")
            .bytes()
            .windows(4)
            .filter(|w| *w == word.to_le_bytes())
            .count()
    }

    pub fn ask(&mut self, ask: CoreOp, address: u32, value: u32) -> (u32, u32) {
        self.within(300_000, [ask as u32, address, value, 0]).expect("an answer")
    }

    pub fn read(&mut self, address: u32) -> u32 {
        let (word, trap) = self.ask(CoreOp::Read, address, 0);
        assert_eq!(trap, 0, "read of {address:#x}");
        word
    }

    pub fn write(&mut self, address: u32, value: u32) {
        assert_eq!(self.ask(CoreOp::Write, address, value).1, 0, "write of {address:#x}");
    }

    pub fn bytes(&mut self, address: u32, len: u32) -> Vec<u8> {
        (0..len / 4).flat_map(|n| self.read(address + 4 * n).to_le_bytes()).collect()
    }

    pub fn bytes_of_unit(&mut self, unit: u32, len: u32) -> Vec<u8> {
        (0..len / 4).flat_map(|_| self.read(unit + 8).to_le_bytes()).collect()
    }

    /// Writes of `CONTROL` may clear the mailbox with the answer.
    pub fn control(&mut self, bit: u32) -> Option<(u32, u32)> {
        self.within(100_000, [CoreOp::Write as u32, CONTROL, 1 << bit, 0])
    }

    pub fn or(&mut self, address: u32, words: u32) -> u32 {
        let answer = self.within(1_000_000, [CoreOp::Or as u32, address, words, 0]);
        let (word, trap) = answer.expect("an answer");
        assert_eq!(trap, 0);
        word
    }

    pub fn fill(&mut self, address: u32, words: u32, value: u32) {
        assert_eq!(
            self.within(1_000_000, [CoreOp::Fill as u32, address, words, value]),
            Some((0, 0))
        );
    }
}
