//! The custom logic for AWS F2 (`cl_shef`, with the native kernel) under random accesses of the
//! host, with resets, a lost clock and power states in between: it breaks no rule of the shell, and
//! its memory and registers answer as they should.

use shef_regs::f2;
use shef_rtl::agent::Rng;
use shef_rtl::f2::{CORE_KHZ, CoreClock, F2Config, MEDIUM, NativeF2, TestHost};
use shef_rtl::{AxiMemoryConfig, CoreSim, Library, build_once, counted, f2_spec, module_spec};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Instant;

/// Bytes of card memory in BAR 4.
const CARD: u64 = 1 << 36;

fn library() -> &'static Library {
    static LIB: OnceLock<Library> = OnceLock::new();
    LIB.get_or_init(|| {
        let spec = f2_spec(true).expect("sources").search("shell-rtl/accel/digits");
        build_once(&counted(spec)).expect("build").clone()
    })
}

struct Card {
    f2: NativeF2<TestHost>,
    rng: Rng,
    /// What was written to card memory, by line of 64 bytes.
    lines: BTreeMap<u64, [u8; 64]>,
}

impl Card {
    fn new(seed: u64) -> Self {
        let config = F2Config {
            // Stalls of microseconds, as those of a seed, would make accesses late.
            memory: AxiMemoryConfig::bench(20, 12),
            core: CoreClock { seed, ..CoreClock::khz(CORE_KHZ) },
            ..F2Config::seeded(seed)
        };
        let f2 = NativeF2::new(library(), config, TestHost::default()).expect("a slot");
        Self { f2, rng: Rng::new(seed), lines: BTreeMap::new() }
    }

    /// Loads some words of the medium, and starts core and design.
    fn start(&mut self) {
        self.f2.wait_open().expect("a wiped core");
        let words = self.f2.page(f2::MEDIUM_WORDS);
        let at = [0, 1, words / 2, words - 1].map(|n| MEDIUM + 4 * n);
        for at in at {
            self.f2.shell.ocl_write(at, !at);
        }
        for at in at {
            assert_eq!(self.f2.shell.ocl_read(at), !at);
        }
        self.f2.start().expect("a core that runs");
        self.f2.shell.ocl_write(at[0], 1);
        assert_eq!(self.f2.shell.ocl_read(at[0]), 0, "a frozen medium");
        self.f2.mount().expect("an active design");
    }

    /// Registers of all kinds, and the places between them.
    fn registers(&mut self) {
        assert_eq!(self.f2.page(f2::ID).to_le_bytes(), *b"HSF2");
        for at in [0x1_0800, 0x2_0000, 0xff_fffc, 0x200_0000, 0x3ff_fffc] {
            self.f2.shell.ocl_write(at, 0x5a5a);
            assert_eq!(self.f2.shell.ocl_read(at), 0, "nothing at {at:#x}");
        }
        for _ in 0..8 {
            let at = self.rng.below(0x3000) as u32 * 4;
            self.f2.shell.ocl_read(at);
            assert_ne!(self.f2.shell.sda_read(at), 0x9048_1d0f);
            self.f2.shell.sda_write(at, 1);
        }
    }

    /// Random bytes to card memory and back.
    fn memory(&mut self) {
        for _ in 0..4 {
            let base = self.rng.below(CARD / 4096) * 4096;
            let skew = self.rng.below(3000);
            let mut bytes = vec![0; 1 + self.rng.below(1000) as usize];
            self.rng.fill(&mut bytes);
            self.f2.shell.bar4_write(base + skew, &bytes);
            for (at, byte) in (base + skew..).zip(&bytes) {
                self.lines.entry(at / 64).or_insert([0; 64])[at as usize % 64] = *byte;
            }
            let mut read = vec![0; bytes.len()];
            self.f2.shell.bar4_read(base + skew, &mut read);
            let same = read == bytes;
            assert!(same, "{base:#x} + {skew}: {:?}", self.f2.shell.metrics());
        }
        let mut beyond = [1; 200];
        let at = CARD + self.rng.below(CARD - 200);
        self.f2.shell.bar4_write(at, &beyond);
        self.f2.shell.bar4_read(at, &mut beyond);
        assert_eq!(beyond, [0; 200], "beyond card memory");
    }

    /// As many reads as the shell lets through, of what was written before.
    fn many_reads(&mut self) {
        let lines: Vec<(u64, [u8; 64])> = self.lines.iter().map(|(k, v)| (*k, *v)).collect();
        let most = lines.len().min(64);
        let lines = &lines[lines.len() - most..];
        for (line, _) in lines {
            self.f2.shell.bar4_begin_read(64 * line, 64);
        }
        let mut read = Vec::new();
        self.f2.shell.run_until(20_000, 1, |shell| {
            read.extend(shell.bar4_take(false));
            read.len() == most
        });
        for ((line, bytes), read) in lines.iter().zip(read) {
            let same = bytes.iter().zip(&read).all(|(byte, read)| *byte == 0 || byte == read);
            assert!(same, "line {line:#x}: {read:x?}");
        }
    }

    /// Accesses in flight.
    fn in_flight(&mut self) {
        let bytes = vec![7; 512];
        for k in 0..8 {
            self.f2.shell.bar4_begin_write(4096 * k, &bytes);
            self.f2.shell.bar4_begin_read(4096 * k, 512);
        }
        let n = self.rng.below(300);
        self.f2.shell.step(n);
    }

    fn settle(&mut self) {
        self.f2.shell.run_until(10_000, 1, |shell| {
            for write in [false, true] {
                while shell.bar4_take(write).is_some() {}
            }
            !shell.bar4_busy()
        });
        for write in [false, true] {
            while self.f2.shell.bar4_take(write).is_some() {}
        }
    }
}

fn holds(seed: u64) {
    let mut card = Card::new(seed);
    for round in 0..10 {
        card.start();
        card.registers();
        card.memory();
        card.many_reads();
        let late = [f2::OCL_LATE, f2::PCIS_READS_LATE, f2::PCIS_WRITES_LATE];
        let late = late.map(|register| card.f2.page(register));
        assert_eq!(late, [0; 3], "no watchdog has bitten");
        card.in_flight();
        match round % 5 {
            0 => {
                let ns = card.f2.shell.flr();
                assert!(ns < 2_000_000, "{ns} ns");
            }
            1 => card.f2.shell.reset(1_000),
            2 => {
                card.f2.shell.run_core_clock(false);
                card.settle();
                card.registers();
                card.f2.shell.run_core_clock(true);
            }
            3 => card.f2.command(f2::CONTROL_COMMAND_RESET),
            _ => card.f2.shell.power_down(10_000_000),
        }
        card.settle();
        let text: Vec<String> =
            card.f2.shell.violations().iter().map(ToString::to_string).collect();
        assert!(text.is_empty(), "seed {seed}, round {round}: {text:#?}");
        assert_eq!(card.f2.shell.core().violation(), None);
    }
    // The shell's limit is 8 us.
    let worst = card.f2.shell.metrics().pcis_worst_ns;
    assert!(worst.iter().all(|ns| *ns < 6_000), "{worst:?}");
}

#[test]
fn random_accesses_and_resets_break_no_rule() {
    (1..4).for_each(holds);
}

/// Run with `cargo test --release -p shef-rtl --test f2_ours -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_cycle() {
    const CYCLES: u64 = 100_000;
    let per = |start: Instant, cycles: u64| start.elapsed().as_nanos() as u64 / cycles;
    let plain = module_spec("shef_host_top").expect("sources").search("shell-rtl/accel/digits");
    let plain = build_once(&counted(plain)).expect("build");
    let mut core = CoreSim::new(plain, AxiMemoryConfig::bench(20, 12)).expect("instance");
    let start = Instant::now();
    core.step(CYCLES);
    println!("plain shell: {} ns a cycle of the core", per(start, CYCLES));
    let mut card = Card::new(1);
    card.start();
    let (start, begin) = (Instant::now(), card.f2.shell.core_cycles());
    while card.f2.shell.core_cycles() - begin < CYCLES {
        card.f2.shell.edge();
    }
    println!("F2, at 66.7 MHz: {} ns a cycle of the core", per(start, CYCLES));
}
