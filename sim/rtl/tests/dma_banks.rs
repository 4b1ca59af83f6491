//! The DMA engine's path to several memory ports routes every access to the port of its address,
//! and every answer to its requester.

use shef_rtl::agent::Rng;
use shef_rtl::{Agent, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Sim, build};

/// As in tests/sv/shef_banks_tb.sv.
const REGIONS: u64 = 4;
const SIZE: u64 = 0x1_0000;
const TAGS: u64 = 0x80_0000;
/// Tags occupy whole pages.
const TAG_BYTES: u64 = ((SIZE >> 9) << 4).next_multiple_of(4096);

fn base(region: u64) -> u64 {
    region << 20
}

/// The port of an address: that of the region whose data or tags contain it, else the first.
fn port_of(addr: u64, ports: u64) -> usize {
    let region = (0..REGIONS).find(|&r| {
        let tags = TAGS + (r << 12);
        (base(r)..base(r) + SIZE).contains(&addr)
            || (r != 3 && (tags..tags + TAG_BYTES).contains(&addr))
    });
    region.map_or(0, |r| (r % ports) as usize)
}

struct Bench {
    s: Sim,
    mems: Vec<AxiMemory>,
    acc: AxiMaster,
}

impl Bench {
    fn new(ports: u64, memory: impl Fn(u64) -> AxiMemoryConfig) -> Self {
        let spec = DesignSpec::new("shef_banks_tb")
            .source("sim/rtl/tests/sv/shef_banks_tb.sv")
            .search("shell-rtl/rtl")
            .param("NPorts", ports);
        let mut s = Sim::new(&build(&spec).expect("shef_dma_banks builds")).expect("instance");
        s.reset("rst_n", 2);
        let mems = (0..ports)
            .map(|k| AxiMemory::new(&s, &format!("mem{k}_"), memory(k)).expect("memory"))
            .collect();
        // The engine always accepts answers; the random timing is that of the memories.
        Self { acc: AxiMaster::new(&s, "acc_", None).expect("master"), s, mems }
    }

    fn finish(&mut self) -> Vec<shef_rtl::AxiDone> {
        let mut others: Vec<&mut dyn Agent> =
            self.mems.iter_mut().map(|m| m as &mut dyn Agent).collect();
        self.acc.finish(&mut self.s, &mut others, 1_000_000).expect("an end")
    }

    fn check(&self) {
        assert_eq!(self.acc.violations(), &[] as &[String]);
        for (k, mem) in self.mems.iter().enumerate() {
            assert_eq!(mem.violations(), &[] as &[String], "port {k}");
            assert!(mem.idle(), "port {k}");
        }
    }
}

/// An address and a number of beats: in a region, in the page of a region's tags, or in no region;
/// never across a page.
fn place(rng: &mut Rng) -> (u64, u64) {
    let region = rng.below(REGIONS);
    let page = match rng.below(4) {
        0 => TAGS + (region << 12),
        1 => 0x700_0000 + (region << 12),
        _ => base(region) + (rng.below(SIZE >> 12) << 12),
    };
    let beats = 1 + rng.below(8);
    (page + rng.below(64 - beats + 1) * 64, beats)
}

#[test]
fn every_access_is_at_the_port_of_its_address() {
    for (ports, seed) in [(2, 1), (2, 2), (4, 3), (4, 4)] {
        let mut b = Bench::new(ports, |k| AxiMemoryConfig::seeded(10 * seed + k));
        let mut rng = Rng::new(seed);
        let mut want = std::collections::HashMap::<u64, [u8; 64]>::new();
        for _ in 0..4 {
            // Earlier writes are read while other beats are written.
            let (mut writes, mut reads) = (Vec::new(), Vec::new());
            let before: std::collections::BTreeSet<u64> = want.keys().copied().collect();
            for _ in 0..250 {
                let (addr, beats) = place(&mut rng);
                let lines: Vec<u64> = (0..beats).map(|n| addr + 64 * n).collect();
                if lines.iter().any(|line| want.contains_key(line)) {
                    if lines.iter().all(|line| before.contains(line)) {
                        reads.push((addr, beats));
                    }
                    continue;
                }
                let mut data = vec![0; 64 * beats as usize];
                rng.fill(&mut data);
                for (line, bytes) in lines.iter().zip(data.as_chunks::<64>().0) {
                    want.insert(*line, *bytes);
                }
                writes.push((addr, data));
            }
            for line in &before {
                reads.push((*line, 1));
            }
            for (addr, data) in writes {
                b.acc.push(AxiOp::Write {
                    id: rng.below(16) as u8,
                    addr,
                    data,
                    strobes: Vec::new(),
                });
            }
            for (addr, beats) in reads {
                b.acc.push(AxiOp::Read { id: rng.below(16) as u8, addr, beats: beats as u32 });
            }
            for done in b.finish() {
                assert!(done.okay());
                if let AxiOp::Read { addr, .. } = done.op {
                    for (n, bytes) in done.data.as_chunks::<64>().0.iter().enumerate() {
                        assert!(
                            *bytes == want[&(addr + 64 * n as u64)],
                            "seed {seed}, {addr:#x}, beat {n}"
                        );
                    }
                }
            }
        }
        b.check();
        let mut used = vec![0; ports as usize];
        for (line, bytes) in &want {
            let port = port_of(*line, ports);
            used[port] += 1;
            for (k, mem) in b.mems.iter().enumerate() {
                let mut found = [0; 64];
                mem.memory.read(*line, &mut found);
                let expected = if k == port { *bytes } else { [0; 64] };
                assert!(
                    found == expected,
                    "seed {seed}, {line:#x} at port {k}, expected at port {port}"
                );
            }
        }
        assert!(used.iter().all(|n| *n > 50), "{used:?}");
    }
}

#[test]
fn errors_come_from_the_port_that_gave_them() {
    let mut b = Bench::new(4, |k| AxiMemoryConfig::seeded(50 + k));
    for (k, mem) in b.mems.iter_mut().enumerate() {
        if k != 2 {
            mem.error_ranges.push(base(2)..base(2) + SIZE);
        } else {
            mem.error_ranges.push(base(2) + 0x2000..base(2) + 0x3000);
        }
    }
    for n in 0..32 {
        b.acc.read(base(n % 4) + 0x1000 + 64 * n, 1);
        b.acc.read(base(n % 4) + 0x2000 + 64 * n, 1);
        b.acc.write(base(n % 4) + 0x2000 + 64 * n, &[n as u8; 64]);
    }
    for done in b.finish() {
        let (AxiOp::Read { addr, .. } | AxiOp::Write { addr, .. }) = done.op else { panic!() };
        assert_eq!(done.okay(), !(base(2) + 0x2000..base(2) + 0x3000).contains(&addr), "{addr:#x}");
    }
    b.check();
}

#[test]
fn a_port_that_stays_is_a_beat_a_cycle() {
    let mut b = Bench::new(4, |_| AxiMemoryConfig::bench(20, 10));
    for n in 0..64 {
        b.acc.read(base(1) + 512 * n, 8);
        b.acc.write(base(3) + 512 * n, &[7; 512]);
    }
    let before = b.s.cycles();
    b.finish();
    let took = b.s.cycles() - before;
    assert!(took < 512 + 60, "{took} cycles for 512 beats each way");
    assert_eq!((b.mems[1].counters.read_beats, b.mems[3].counters.write_beats), (512, 512));
    b.check();
}
