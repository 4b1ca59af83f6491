//! Card memory in the HBM of AWS F2: a memory port of the core behind its bridge, and the custom
//! logic with `Hbm`, whose host and Shield reach the same bytes.

use shef_regs::f2;
use shef_rtl::agent::Rng;
use shef_rtl::f2::{CORE_KHZ, CoreClock, F2Config, NativeF2, TestHost};
use shef_rtl::{
    AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Library, Sim, build,
    build_once, counted, f2_spec,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of the HBM.
const CARD: u64 = 1 << 34;

/// The bridge between a master with 8-bit ids and a port of the HBM's model.
struct Bench {
    s: Sim,
    core: AxiMaster,
    mem: AxiMemory,
}

impl Bench {
    fn new(stalls: Option<u64>, memory: AxiMemoryConfig) -> Self {
        let spec = DesignSpec::new("shef_f2_hbm_tb")
            .source("sim/rtl/tests/sv/shef_f2_hbm_tb.sv")
            .search("shell-rtl/shell/f2_model")
            .search("shell-rtl/shell/aws_f2")
            .search("shell-rtl/rtl");
        let mut s = Sim::new(&build(&spec).expect("shef_f2_hbm builds")).expect("instance");
        s.poke("rst_n", 0);
        for _ in 0..4 {
            s.settle();
            s.edge();
        }
        s.poke("rst_n", 1);
        let core = AxiMaster::new(&s, "core_", stalls).expect("master");
        let mem = AxiMemory::new(&s, "mem_", memory).expect("memory");
        Self { s, core, mem }
    }

    fn finish(&mut self) -> Vec<AxiDone> {
        let done = self.core.finish(&mut self.s, &mut [&mut self.mem], 100_000).expect("an end");
        assert_eq!(self.core.violations(), &[] as &[String]);
        assert_eq!(self.mem.violations(), &[] as &[String]);
        assert_eq!(self.s.peek("error"), 0, "a rule of the HBM's port");
        assert!(done.iter().all(AxiDone::okay), "{done:?}");
        done
    }

    fn line(&self, addr: u64) -> [u8; 64] {
        let mut bytes = [0; 64];
        self.mem.memory.read(addr, &mut bytes);
        bytes
    }
}

/// Random bursts of 256 ids, strobes of any kind, answers in any order: the memory has what was
/// written, byte by byte, and reads have what the memory has.
#[test]
fn every_byte_crosses_the_bridge() {
    for seed in 1..6 {
        let mut b = Bench::new(Some(seed), AxiMemoryConfig::seeded(seed));
        let mut rng = Rng::new(seed);
        let mut want: BTreeMap<u64, [u8; 64]> = BTreeMap::new();
        let mut overtaken = 0;
        for round in 0..20 {
            let page = round << 20 | rng.below(1 << 13) << 21;
            for slot in 0..40 {
                let beats = 1 + rng.below(8);
                let addr = page + 512 * slot + 64 * rng.below(9 - beats);
                let mut data = vec![0; 64 * beats as usize];
                rng.fill(&mut data);
                let strobe = |rng: &mut Rng| match rng.below(4) {
                    0 => rng.next_u64() << 32,
                    1 => rng.next_u64() >> 32,
                    2 => rng.next_u64(),
                    _ => u64::MAX,
                };
                let strobes: Vec<u64> = (0..beats).map(|_| strobe(&mut rng)).collect();
                for ((n, bytes), strobe) in (0..).zip(data.as_chunks::<64>().0).zip(&strobes) {
                    let line = want.entry(addr + 64 * n).or_insert([0; 64]);
                    for i in (0..64).filter(|i| strobe >> i & 1 != 0) {
                        line[i] = bytes[i];
                    }
                }
                b.core.push(AxiOp::Write { id: rng.below(256) as u8, addr, data, strobes });
            }
            b.finish();
            let written: Vec<_> = want.range(page..page + (1 << 20)).collect();
            for (line, bytes) in &written {
                assert_eq!(b.line(**line), **bytes, "seed {seed}: written to {line:#x}");
            }
            for slot in 0..40 {
                let id = rng.below(256) as u8;
                b.core.push(AxiOp::Read { id, addr: page + 512 * slot, beats: 8 });
            }
            let done = b.finish();
            overtaken += done.windows(2).filter(|two| two[0].tag > two[1].tag).count();
            for d in done {
                let AxiOp::Read { addr, .. } = d.op else { panic!() };
                for (n, bytes) in (0..).zip(d.data.as_chunks::<64>().0) {
                    let line = addr + 64 * n;
                    assert_eq!(*bytes, b.line(line), "seed {seed}: read from {line:#x}");
                }
            }
        }
        assert!(overtaken > 20, "seed {seed}: {overtaken} answers out of order");
    }
}

/// Bytes a cycle in each direction, alone and together.
#[test]
fn a_port_moves_32_bytes_a_cycle_each_way() {
    const BURSTS: u64 = 2000;
    let run = |reads: bool, writes: bool| {
        let memory = AxiMemoryConfig { outstanding: 256, ..AxiMemoryConfig::bench(40, 30) };
        let mut b = Bench::new(None, memory);
        b.core.outstanding = 64;
        for n in 0..BURSTS {
            let id = n as u8 & 63;
            if reads {
                b.core.push(AxiOp::Read { id, addr: n << 9, beats: 8 });
            }
            if writes {
                let (addr, data) = (1 << 30 | n << 9, vec![n as u8; 512]);
                b.core.push(AxiOp::Write { id, addr, data, strobes: Vec::new() });
            }
        }
        let done = b.finish();
        let end = done.iter().map(|d| d.end).max().unwrap_or(1);
        let start = done.iter().map(|d| d.start).min().unwrap_or(0);
        (BURSTS * 512) as f64 / (end - start) as f64
    };
    for (name, reads, writes) in
        [("reads", true, false), ("writes", false, true), ("both, each way", true, true)]
    {
        let bytes = run(reads, writes);
        println!("{name}: {bytes:.1} bytes a cycle");
        assert!((31.0..=32.0).contains(&bytes), "{name}: {bytes}");
    }
}

fn library() -> &'static Library {
    let spec = f2_spec(true).expect("sources").search("shell-rtl/accel/digits").param("Hbm", 1);
    build_once(&counted(spec)).expect("build")
}

/// Regions on two memory ports: two ports of the HBM.
fn two_ports() -> &'static Library {
    let text = include_str!("../../tb/configs/sets2.toml");
    let shield = shef_gen::shield::parse(text).expect("two sets on two ports");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("f2-hbm-two-ports");
    std::fs::create_dir_all(&folder).unwrap();
    let package = folder.join("shef_cfg_pkg.sv");
    let text = shef_gen::shield::systemverilog(&shield.config, shield.synthesis);
    std::fs::write(&package, text).unwrap();
    let spec = f2_spec(true).expect("sources").source(&package).search("shell-rtl/accel/digits");
    build_once(&spec.param("Hbm", 1)).expect("build")
}

fn card(library: &Library, seed: u64) -> NativeF2<TestHost> {
    let config = F2Config {
        memory: AxiMemoryConfig {
            reorder: true,
            stalls: Some(seed),
            ..AxiMemoryConfig::bench(20, 12)
        },
        core: CoreClock { seed, ..CoreClock::khz(CORE_KHZ) },
        ..F2Config::seeded(seed)
    };
    NativeF2::new(library, config, TestHost::default()).expect("a slot")
}

fn start(f2: &mut NativeF2<TestHost>) {
    f2.wait_open().expect("a wiped core");
    f2.start().expect("a core that runs");
    f2.mount().expect("an active design");
}

fn ends_clean(f2: &mut NativeF2<TestHost>, what: &str) {
    let text: Vec<String> = f2.shell.violations().iter().map(ToString::to_string).collect();
    assert!(text.is_empty(), "{what}: {text:#?}");
    assert_eq!(f2.shell.core().violation(), None, "{what}");
    assert_eq!(f2.shell.core().sim().peek("hbm_error"), 0, "{what}: a rule of the HBM's ports");
}

/// The host writes through BAR 4: the HBM has every byte at its address, up to the last one of its
/// 16 GiB, and gives it back, over resets in between.
#[test]
fn the_host_reaches_the_hbm() {
    for seed in 1..3 {
        let mut f2 = card(library(), seed);
        let mut rng = Rng::new(seed);
        for round in 0..4 {
            start(&mut f2);
            assert_eq!(f2::STATUS_MEMORY_READY.get(f2.page(f2::STATUS)), 1);
            for k in 0..6 {
                let mut bytes = vec![0; 1 + rng.below(1000) as usize];
                rng.fill(&mut bytes);
                let len = bytes.len() as u64;
                let at = if k == 0 { CARD - len } else { rng.below(CARD - len) };
                f2.shell.bar4_write(at, &bytes);
                let mut read = vec![0; bytes.len()];
                f2.shell.bar4_read(at, &mut read);
                assert!(read == bytes, "seed {seed}: read from {at:#x}");
                f2.shell.core().memory().read(at, &mut read);
                assert!(read == bytes, "seed {seed}: written to {at:#x}");
            }
            let mut beyond = [1; 200];
            f2.shell.bar4_write(CARD + 4096 * round, &beyond);
            f2.shell.bar4_read(CARD + 4096 * round, &mut beyond);
            assert_eq!(beyond, [0; 200], "beyond card memory");
            ends_clean(&mut f2, "accesses");
            match round % 4 {
                0 => drop(f2.flr().expect("a reset")),
                1 => f2.shell.reset(1_000),
                2 => {
                    f2.shell.run_core_clock(false);
                    f2.shell.step(2_000);
                    f2.shell.run_core_clock(true);
                }
                _ => f2.command(f2::CONTROL_COMMAND_RESET),
            }
            ends_clean(&mut f2, "a reset");
        }
    }
}

/// Two memory ports of the core are two ports of the HBM, with one memory behind them.
#[test]
fn two_ports_reach_one_memory() {
    let mut f2 = card(two_ports(), 1);
    let mut rng = Rng::new(1);
    start(&mut f2);
    // The first 64 KiB are a region at port 0, the next a region at port 1.
    let mut want = vec![0; 1 << 17];
    for k in 0..24 {
        let mut bytes = vec![0; 1 + rng.below(2000) as usize];
        rng.fill(&mut bytes);
        let len = bytes.len() as u64;
        let at = if k % 4 == 0 { 0x1_0000 - len / 2 } else { rng.below((1 << 17) - len) };
        f2.shell.bar4_write(at, &bytes);
        want[at as usize..][..bytes.len()].copy_from_slice(&bytes);
        let mut read = vec![0; bytes.len()];
        f2.shell.bar4_read(at, &mut read);
        assert!(read == bytes, "read from {at:#x}");
    }
    let mut seen = vec![0; 1 << 17];
    f2.shell.core().memory().read(0, &mut seen);
    assert!(seen == want, "the memory");
    for port in 0..2 {
        let counters = f2.shell.core().axi_memories()[port].counters;
        assert!(counters.writes > 10 && counters.reads > 10, "port {port}: {counters:?}");
    }
    ends_clean(&mut f2, "two ports");
}

/// The shell sees both monitors of the IP, bit by bit.
#[test]
fn the_monitors_reach_the_shell() {
    let mut f2 = card(library(), 1);
    for level in [0, 1] {
        for n in 0..2_u64 {
            let sim = f2.shell.core().sim();
            sim.poke(&format!("hbm_apb_preset_n_{n}"), level);
            sim.eval();
            for (name, value) in [
                ("paddr", 0x10_0000 + n),
                ("pwdata", 0x2000_0000 + n),
                ("prdata", 0x3000_0000 + n),
                ("psel", level),
                ("penable", level),
                ("pwrite", level),
                ("pready", level),
                ("pslverr", level),
                ("pprot", 0),
                ("pstrb", 0),
            ] {
                assert_eq!(sim.peek(&format!("hbm_apb_{name}_{n}")), value, "{name}_{n}");
            }
        }
    }
}

/// A host that is early waits for the initialisation: nothing reaches the HBM before.
#[test]
fn no_access_before_the_memory_is_ready() {
    let mut f2 = card(library(), 1);
    f2.shell.core().sim().poke("ddr_ready", 0);
    start(&mut f2);
    assert_eq!(f2::STATUS_MEMORY_READY.get(f2.page(f2::STATUS)), 0);
    f2.shell.bar4_begin_write(0x1000, &[0x5a; 64]);
    f2.shell.step(500);
    let mut seen = [1; 64];
    f2.shell.core().memory().read(0x1000, &mut seen);
    assert_eq!(seen, [0; 64]);
    f2.shell.core().sim().poke("ddr_ready", 1);
    f2.wait("memory", |status| f2::STATUS_MEMORY_READY.get(status) == 1).expect("memory");
    f2.shell.step(1_000);
    f2.shell.core().memory().read(0x1000, &mut seen);
    assert_eq!(seen, [0x5a; 64]);
    ends_clean(&mut f2, "an early access");
}
