//! The chunk cache matches a plain reference under random traffic with random timing, refusals,
//! errors, commands and a wipe, and reaches its speed.

mod clocked;

use clocked::Clocked;
use shef_rtl::agent::Rng;
use shef_rtl::{
    Agent, AxiBurst, AxiDone, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Library,
    Port, Sim, build_once, cycle,
};
use std::collections::BTreeSet;

/// As in tests/sv/shef_cache_tb.sv: two writable regions and one read-only region.
const BASES: [u64; 3] = [0x10_0000, 0x20_0000, 0x30_0000];
const SIZE: u64 = 0x1_0000;
const LINES: u64 = 128;
const FLUSH: u64 = 0;
const INVALIDATE: u64 = 1;

fn library(line: u64) -> &'static Library {
    let spec = DesignSpec::new("shef_cache_tb")
        .source("sim/rtl/tests/sv/shef_cache_tb.sv")
        .search("shell-rtl/rtl")
        .param("LineBytes", line)
        .param("Bytes", line * LINES);
    build_once(&spec).expect("shef_cache builds")
}

struct Counts {
    ports: [Port; 2],
    /// A set's statistics: read hits and misses in segments, write segments, beats read, beats
    /// written.
    seen: [u64; 6],
    done: usize,
}

impl Counts {
    fn hits(&self) -> u64 {
        self.seen[0] + self.seen[2]
    }
    fn misses(&self) -> u64 {
        self.seen[1] + self.seen[3]
    }
}

impl Agent for Counts {
    fn sample(&mut self, s: &Sim) {
        let seen = s.get(self.ports[0]);
        (0..).zip(&mut self.seen).for_each(|(bit, n)| *n += seen >> bit & 1);
        self.done += s.get(self.ports[1]) as usize;
    }
    fn drive(&mut self, _: &mut Sim) {}
}

struct Bench {
    s: Sim,
    mem: AxiMemory,
    acc: AxiMaster,
    counts: Counts,
    line: u64,
    /// The accelerator's expected view, starting at 0x10_0000.
    want: Vec<u8>,
}

impl Clocked for Bench {
    fn sim(&mut self) -> &mut Sim {
        &mut self.s
    }

    fn cycle(&mut self) {
        cycle(&mut self.s, &mut [&mut self.acc, &mut self.mem, &mut self.counts]);
    }

    fn ended(&self) -> usize {
        self.counts.done
    }
}

impl Bench {
    fn new(line: u64, config: AxiMemoryConfig, stalls: Option<u64>) -> Self {
        let mut s = Sim::new(library(line)).unwrap();
        s.reset("rst_n", 4);
        let mut mem = AxiMemory::new(&s, "mem0_", config).unwrap();
        let acc = AxiMaster::new(&s, "acc_", stalls).unwrap();
        let counts = Counts {
            ports: ["seen", "cmd_done"].map(|n| s.port(n).unwrap()),
            seen: [0; 6],
            done: 0,
        };
        let mut want = vec![0; 0x21_0000];
        Rng::new(line).fill(&mut want);
        for base in BASES {
            mem.memory.write(base, &want[(base - BASES[0]) as usize..][..SIZE as usize]);
        }
        let mut b = Self { s, mem, acc, counts, line, want };
        b.wipe();
        b.s.poke("enable", 1);
        b
    }

    fn wipe(&mut self) {
        self.s.poke("wipe", 1);
        self.until("no wipe_done", 40_000, |b| b.s.peek("wipe_done") == 1);
        self.s.poke("wipe", 0);
    }

    fn command(&mut self, cmd: u64) {
        self.give(&[("cmd", cmd)]);
    }

    fn finish(&mut self) -> Vec<AxiDone> {
        self.until("bursts not answered", 200_000, |b| b.acc.idle());
        let mut done: Vec<AxiDone> = std::iter::from_fn(|| self.acc.pop()).collect();
        done.sort_by_key(|d| d.tag);
        done
    }

    /// Issues commands at any time, and withholds answers for a while, until every burst is
    /// answered and every command has ended.
    fn disturb(&mut self, rng: &mut Rng) {
        let (mut held, mut running) = (0, None);
        for _ in 0..400_000 {
            if self.acc.idle() && running.is_none() {
                self.acc.hold = [false; 2];
                return;
            }
            if held > 0 {
                held -= 1;
            } else {
                self.acc.hold = [rng.one_in(300), rng.one_in(300)];
                held = if self.acc.hold == [false; 2] { 0 } else { 1 + rng.below(2000) };
            }
            if running.is_none() && rng.one_in(200) {
                running = Some(self.counts.done);
                self.s.poke("cmd", rng.below(3));
                self.s.poke("cmd_valid", 1);
            }
            self.s.eval();
            let taken = self.s.peek("cmd_valid") == 1 && self.s.peek("cmd_ready") == 1;
            self.cycle();
            if taken {
                self.s.poke("cmd_valid", 0);
            }
            running = running.filter(|before| self.counts.done == *before);
        }
        panic!("bursts or commands that do not end");
    }

    fn bytes(&self, addr: u64, len: u64) -> &[u8] {
        &self.want[(addr - BASES[0]) as usize..][..len as usize]
    }

    fn in_memory(&self, addr: u64, len: u64) -> Vec<u8> {
        let mut d = vec![0; len as usize];
        self.mem.memory.read(addr, &mut d);
        d
    }

    /// Every region in memory contains the accelerator's writes.
    fn same_in_memory(&self) {
        for base in BASES {
            assert!(
                self.in_memory(base, SIZE) == self.bytes(base, SIZE),
                "region at {base:#x} differs"
            );
        }
    }

    fn clean(&self) {
        assert_eq!((self.mem.violations(), self.acc.violations()), (&[][..], &[][..]));
    }
}

/// A burst inside one page: of whole beats, sometimes unaligned, or narrow.
fn shape(rng: &mut Rng, narrow: bool) -> (u64, u32, u8) {
    let page = BASES[rng.below(3) as usize] + rng.below(SIZE / 4096) * 4096;
    let size = if narrow && rng.one_in(4) { rng.below(6) as u8 } else { 6 };
    let addr = page + (rng.below(4096) & !((1 << size) - 1));
    let room = (page + 4096 - addr) >> size;
    let beats = 1 + rng.below(room.min(256)) as u32;
    (addr, if rng.one_in(3) { beats } else { beats.min(1 + rng.below(9) as u32) }, size)
}

/// Batches of bursts that do not touch the same lines within a batch, so that every answer is
/// known. With `disturbed`, commands arrive in the middle of them, and the accelerator accepts no R
/// or B for a while.
fn random_traffic(line: u64, seed: u64, disturbed: bool) {
    let mut rng = Rng::new(seed);
    let mut b = Bench::new(line, AxiMemoryConfig::seeded(seed), Some(seed + 1000));
    b.acc.outstanding = if disturbed { 48 } else { 16 };
    for batch in 0..40 {
        let mut written: BTreeSet<u64> = BTreeSet::new();
        let mut touched: BTreeSet<u64> = BTreeSet::new();
        let mut expect = Vec::new();
        for _ in 0..24 {
            let write = rng.one_in(2);
            let (addr, beats, size) = shape(&mut rng, !write);
            let lines: Vec<u64> =
                (addr / line..=(addr + (u64::from(beats) << size) - 1) / line).collect();
            if lines.iter().any(|l| written.contains(l) || (write && touched.contains(l))) {
                continue;
            }
            touched.extend(&lines);
            let id = rng.below(4) as u8;
            if write {
                written.extend(&lines);
                let mut data = vec![0; beats as usize * 64];
                rng.fill(&mut data);
                let strobes: Vec<u64> = if rng.one_in(2) {
                    vec![]
                } else {
                    (0..beats).map(|_| rng.next_u64() | rng.next_u64()).collect()
                };
                let okay = addr < BASES[2];
                if okay {
                    for (i, byte) in data.iter().enumerate() {
                        if strobes.get(i / 64).is_none_or(|s| s >> (i % 64) & 1 == 1) {
                            b.want[(addr - BASES[0]) as usize + i] = *byte;
                        }
                    }
                }
                expect.push((okay, None));
                b.acc.push(AxiOp::Write { id, addr, data, strobes });
            } else {
                let beat = |k: u64| {
                    let at = addr + (k << size);
                    let lane = (at & 63) as usize;
                    (lane, b.bytes(at, 1 << size).to_vec())
                };
                expect.push((true, Some((0..u64::from(beats)).map(beat).collect::<Vec<_>>())));
                b.acc.push(if size == 6 {
                    AxiOp::Read { id, addr, beats }
                } else {
                    AxiOp::odd(id, AxiBurst { write: false, addr, beats, size, burst: 1 })
                });
            }
        }
        if disturbed {
            b.disturb(&mut rng);
        }
        for (d, (okay, data)) in b.finish().into_iter().zip(expect) {
            assert_eq!(d.okay(), okay, "seed {seed} batch {batch}: {:x?}", d.op);
            for (k, (lane, want)) in data.into_iter().flatten().enumerate() {
                assert_eq!(
                    &d.data[64 * k + lane..][..want.len()],
                    want,
                    "seed {seed} batch {batch}: {:x?} beat {k}",
                    d.op
                );
            }
        }
        if rng.one_in(8) {
            b.command(if rng.one_in(2) { FLUSH } else { INVALIDATE });
            b.same_in_memory();
        }
    }
    b.command(FLUSH);
    b.same_in_memory();
    b.clean();
    let least = if disturbed { 10 } else { 50 };
    assert!(
        b.counts.misses() > 50 && b.counts.hits() > least,
        "{} misses, {} hits",
        b.counts.misses(),
        b.counts.hits()
    );
}

#[test]
fn random_traffic_with_lines_of_a_beat() {
    (1..5).for_each(|seed| random_traffic(64, seed, seed == 4));
}

#[test]
fn random_traffic_with_lines_of_eight_beats() {
    (11..15).for_each(|seed| random_traffic(512, seed, seed > 12));
}

#[test]
fn random_traffic_with_lines_of_a_page() {
    (21..24).for_each(|seed| random_traffic(4096, seed, seed == 23));
}

#[test]
fn what_is_held_is_not_asked_for_again_and_an_invalidate_forgets_it() {
    let mut b = Bench::new(64, AxiMemoryConfig::bench(40, 40), None);
    b.acc.read(BASES[0], 8);
    assert_eq!(b.finish()[0].data, b.bytes(BASES[0], 512));
    b.mem.memory.write(BASES[0], &[0xee; 512]);
    b.acc.read(BASES[0], 8);
    assert_eq!(b.finish()[0].data, b.bytes(BASES[0], 512));
    assert_eq!(b.counts.seen, [8, 8, 0, 0, 16, 0]);
    b.command(FLUSH);
    assert_eq!(b.in_memory(BASES[0], 512), [0xee; 512], "a clean line was written back");
    b.command(INVALIDATE);
    b.acc.read(BASES[0], 8);
    assert_eq!(b.finish()[0].data, [0xee; 512]);
    b.clean();
}

#[test]
fn statistics_count_segments_and_beats_of_the_accelerator() {
    let mut b = Bench::new(512, AxiMemoryConfig::bench(40, 40), None);
    b.acc.write(BASES[0] + 448, &[1; 192]); // the end of one line and the beginning of the next
    b.finish();
    assert_eq!(b.counts.seen, [0, 0, 0, 2, 0, 3]);
    // one segment, though it is processed in pieces of 64 beats
    let narrow = AxiBurst { write: false, addr: BASES[0], beats: 256, size: 1, burst: 1 };
    b.acc.push(AxiOp::odd(1, narrow));
    b.finish();
    assert_eq!(b.counts.seen, [1, 0, 0, 2, 256, 3]);
    // refused: no segment
    let write = AxiBurst { write: true, addr: BASES[2], beats: 2, size: 6, burst: 1 };
    b.acc.push(AxiOp::odd(1, write));
    b.finish();
    assert_eq!(b.counts.seen, [1, 0, 0, 2, 256, 3]);
}

#[test]
fn refused_bursts_are_shown_to_the_set_and_change_nothing() {
    let mut b = Bench::new(512, AxiMemoryConfig::seeded(3), Some(4));
    // (write, addr, beats, size, burst)
    let odd = [
        (false, 0x50_0000, 4, 6, 1),
        (true, 0x50_0000, 4, 6, 1),
        (true, BASES[2], 8, 6, 1),
        (false, BASES[0], 4, 6, 2),
        (true, BASES[0], 4, 6, 0),
        (false, BASES[0] + 4096 - 64, 2, 6, 1),
        (true, BASES[0], 256, 0, 0),
    ];
    for (k, (write, addr, beats, size, burst)) in odd.into_iter().enumerate() {
        let before = (b.mem.counters.reads, b.mem.counters.writes);
        b.acc.push(AxiOp::odd(7, AxiBurst { write, addr, beats, size, burst }));
        let d = b.finish().remove(0);
        assert!(d.resp.iter().all(|r| *r == 2) && d.data.iter().all(|x| *x == 0), "{k}: {d:?}");
        b.until("not shown", 2000, |b| b.s.peek("idle") == 1 && b.mem.idle());
        let after = (b.mem.counters.reads, b.mem.counters.writes);
        assert_eq!(
            (after.0 - before.0, after.1 - before.1),
            (u64::from(!write), u64::from(write)),
            "{k}"
        );
    }
    b.command(FLUSH);
    b.same_in_memory();
}

#[test]
fn a_line_that_came_with_an_error_is_answered_with_errors_and_never_written_back() {
    let mut b = Bench::new(512, AxiMemoryConfig::bench(20, 20), None);
    b.mem.error_ranges.push(BASES[0] + 1024..BASES[0] + 1536);
    b.acc.read(BASES[0] + 512, 24);
    let d = b.finish().remove(0);
    assert_eq!(
        d.resp.iter().map(|r| *r != 0).collect::<Vec<_>>(),
        (0..24).map(|k| (8..16).contains(&k)).collect::<Vec<_>>()
    );
    assert!(d.data[512..1024].iter().all(|x| *x == 0));
    b.acc.write(BASES[0] + 1024, &[7; 64]);
    assert!(!b.finish()[0].okay());
    b.mem.error_ranges.clear();
    b.command(FLUSH);
    b.same_in_memory();
    // a flush does not clear it
    b.acc.read(BASES[0] + 1024, 1);
    assert!(!b.finish()[0].okay());
    b.command(INVALIDATE);
    b.acc.read(BASES[0] + 1024, 8);
    let d = b.finish().remove(0);
    assert!(d.okay() && d.data == b.bytes(BASES[0] + 1024, 512));
    b.same_in_memory();
}

/// A command ends even if the accelerator accepts no answers, and no answer is lost when it accepts
/// them later.
#[test]
fn answers_that_are_not_taken_hold_no_command() {
    for held in 0..2 {
        for command in [FLUSH, INVALIDATE] {
            let mut b = Bench::new(512, AxiMemoryConfig::bench(20, 20), None);
            b.acc.outstanding = 64;
            b.acc.hold[held] = true;
            for k in 0..24 {
                if held == 0 {
                    b.acc.read(BASES[0] + 512 * k, 8);
                } else {
                    b.want[512 * k as usize..][..512].fill(k as u8);
                    b.acc.write(BASES[0] + 512 * k, &[k as u8; 512]);
                }
            }
            (0..3000).for_each(|_| b.cycle());
            b.command(command);
            b.acc.hold = [false; 2];
            for d in b.finish() {
                assert!(
                    d.okay() && (held == 1 || d.data == b.bytes(BASES[0] + 512 * d.tag, 512)),
                    "{held} {command}: {:x?}",
                    d.op
                );
            }
            b.command(FLUSH);
            b.same_in_memory();
            b.clean();
        }
    }
}

/// Writes continue while as many reads wait for the accelerator as the cache can hold.
#[test]
fn reads_that_are_not_taken_hold_no_writes() {
    let mut b = Bench::new(512, AxiMemoryConfig::bench(20, 20), None);
    b.acc.outstanding = 64;
    b.acc.hold[0] = true;
    for k in 0..24 {
        b.acc.read(BASES[0] + 512 * k, 8);
    }
    (0..2000).for_each(|_| b.cycle());
    b.acc.write(BASES[1], &[5; 4096]);
    b.until("the write waits for reads", 5000, |b| b.counts.seen[5] == 64);
    b.acc.hold[0] = false;
    assert!(b.finish().iter().all(AxiDone::okay));
    b.clean();
}

/// Requests that wait in the lookup for reads that the accelerator does not accept survive a
/// command: nothing is lost or cut off. Commands end promptly, however slowly the accelerator
/// accepts them.
#[test]
fn what_waits_for_a_line_is_there_after_a_command() {
    for (command, write) in [(FLUSH, true), (INVALIDATE, true), (FLUSH, false), (INVALIDATE, false)]
    {
        let mut b = Bench::new(512, AxiMemoryConfig::bench(20, 20), None);
        b.acc.hold[0] = true;
        // all four lines that could hold the last of them, where a walk ends
        for k in [31, 63, 95, 127] {
            b.acc.read(BASES[0] + 512 * k, 8);
        }
        (0..1000).for_each(|_| b.cycle());
        if write {
            b.want[512 * 31..][..64].fill(5);
            b.acc.write(BASES[0] + 512 * 31, &[5; 64]);
        } else {
            b.acc.read(BASES[1] + 512 * 29, 8);
        }
        (0..1000).for_each(|_| b.cycle());
        assert!(b.acc.pop().is_none(), "it waits");
        let start = b.s.cycles();
        for _ in 0..if write { 1 } else { 3 } {
            b.command(command);
        }
        assert!(b.s.cycles() - start < 1000, "{} cycles for commands", b.s.cycles() - start);
        if command == INVALIDATE {
            // a dropped line is read again
            b.mem.memory.write(BASES[0] + 512 * 63, &[9; 512]);
            b.want[512 * 63..][..512].fill(9);
        }
        // one beat at long intervals
        while !b.acc.idle() {
            b.acc.hold[0] = !b.s.cycles().is_multiple_of(100);
            b.cycle();
        }
        b.acc.hold[0] = false;
        let d = b.finish();
        assert!(d.len() == 5 && d.iter().all(AxiDone::okay), "{command} {write}");
        if !write {
            let last = d.iter().find(|d| d.tag == 4).expect("the last read");
            assert_eq!(last.data, b.bytes(BASES[1] + 512 * 29, 512));
        }
        b.acc.read(BASES[0] + 512 * 63, 8);
        assert_eq!(b.finish()[0].data, b.bytes(BASES[0] + 512 * 63, 512), "{command} {write}");
        b.command(FLUSH);
        b.same_in_memory();
        b.clean();
    }
}

/// The limit that the guide documents: with all four lines of a cache set held by unaccepted reads,
/// a write to a fifth line blocks later requests until a read is accepted, and nothing is lost.
#[test]
fn a_fifth_line_of_a_cache_set_holds_what_is_behind_it() {
    let mut b = Bench::new(512, AxiMemoryConfig::bench(20, 20), None);
    b.acc.hold[0] = true;
    for k in [31, 63, 95, 127] {
        b.acc.read(BASES[0] + 512 * k, 8);
    }
    (0..1000).for_each(|_| b.cycle());
    let writes = [(BASES[1] + 512 * 29, 6), (BASES[0], 5)];
    for (at, byte) in writes {
        b.acc.write(at, &[byte; 64]);
    }
    (0..10_000).for_each(|_| b.cycle());
    assert!(b.acc.pop().is_none(), "both wait");
    b.acc.hold[0] = false;
    let start = b.s.cycles();
    assert!(b.finish().iter().all(AxiDone::okay));
    assert!(b.s.cycles() - start < 200, "{} cycles", b.s.cycles() - start);
    for (at, byte) in writes {
        b.acc.read(at, 1);
        assert_eq!(b.finish()[0].data, [byte; 64]);
    }
    b.clean();
}

/// The accelerator received OKAY for data that never reached memory: from then on nothing is
/// answered with OKAY, and the loss is reported.
#[test]
fn a_write_back_that_fails_is_a_fault_and_no_stale_line_comes_back() {
    for frozen in [false, true] {
        let mut b = Bench::new(512, AxiMemoryConfig::bench(20, 20), None);
        b.acc.write(BASES[1] + 512 * 3, &[7; 512]);
        assert!(b.finish()[0].okay());
        b.mem.error_ranges.push(BASES[1]..BASES[1] + SIZE);
        b.s.poke("region_fault", if frozen { 2 } else { 0 });
        b.s.poke("cmd", INVALIDATE);
        b.s.poke("cmd_valid", 1);
        let mut told = Vec::new();
        for cycle in 0..1000 {
            if cycle == 1 {
                b.s.poke("cmd_valid", 0);
            }
            if b.s.peek("fault_valid") == 1 {
                told.push((b.s.peek("fault_region"), b.s.peek("fault_chunk")));
            }
            b.cycle();
        }
        b.mem.error_ranges.clear();
        b.acc.read(BASES[1] + 512 * 3, 8);
        b.acc.read(BASES[0], 1);
        let d = b.finish();
        assert!(
            !d[0].okay() && d[0].data.iter().all(|x| *x == 0),
            "what memory had before the write"
        );
        // a frozen region has its fault already, and the others continue
        assert_eq!(
            (told, d[1].okay()),
            if frozen { (vec![], true) } else { (vec![(1, 3)], false) }
        );
        b.wipe();
        assert_eq!(b.s.peek("halted"), 0);
        b.clean();
    }
}

/// Write beats without a burst are not accepted, from any port.
#[test]
fn write_data_without_an_address_are_not_taken() {
    let mut b = Bench::new(64, AxiMemoryConfig::bench(20, 20), None);
    for _ in 0..2 {
        b.s.poke("acc_wvalid", 1);
        for _ in 0..100 {
            b.s.eval();
            assert_eq!(b.s.peek("acc_wready"), 0, "a beat that nobody owes");
            b.s.tick();
        }
        b.s.poke("acc_wvalid", 0);
        b.acc.write(BASES[0] + 64, &[9; 192]);
        assert!(b.finish()[0].okay());
        b.acc.read(BASES[0] + 64, 3);
        let d = b.finish();
        assert!(d[0].okay() && d[0].data == [9; 192]);
    }
}

#[test]
fn a_stopped_shield_and_a_frozen_region_get_nothing_from_the_cache() {
    let mut b = Bench::new(64, AxiMemoryConfig::bench(20, 20), None);
    for base in &BASES[..2] {
        b.acc.read(*base, 1);
        assert!(b.finish()[0].okay());
    }
    b.s.poke("region_fault", 2);
    b.acc.read(BASES[0], 1);
    b.acc.read(BASES[1], 1);
    let d = b.finish();
    assert!(d[0].okay() && d[1].resp == [2] && d[1].data == [0; 64]);
    b.s.poke("region_fault", 0);
    b.s.poke("stop", 1);
    b.acc.read(BASES[0], 1);
    b.acc.write(BASES[0], &[1; 64]);
    let d = b.finish();
    assert!(d[0].resp == [2] && d[0].data == [0; 64] && !d[1].okay());
}

#[test]
fn a_wipe_in_the_middle_of_traffic_ends_everything_with_an_answer() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut b = Bench::new(64, AxiMemoryConfig::seeded(seed), Some(seed));
        for _ in 0..40 {
            let (addr, beats, _) = shape(&mut rng, false);
            if rng.one_in(2) {
                b.acc.read(addr, beats)
            } else {
                b.acc.write(addr, &vec![3; beats as usize * 64])
            };
        }
        for _ in 0..200 + rng.below(400) {
            b.cycle();
        }
        b.s.poke("enable", 0);
        b.wipe();
        b.finish();
        // a new session: the cache is empty
        b.s.poke("enable", 1);
        for base in BASES {
            b.mem.memory.write(base, &vec![0x55; SIZE as usize]);
        }
        for page in 0..8 {
            b.acc.read(BASES[0] + page * 4096, 64);
        }
        assert!(
            b.finish().iter().all(|d| d.okay() && d.data.iter().all(|x| *x == 0x55)),
            "seed {seed}"
        );
    }
}

#[test]
fn hits_take_six_cycles_and_run_at_one_beat_a_cycle() {
    let mut b = Bench::new(64, AxiMemoryConfig::bench(40, 40), None);
    for line in 0..64 {
        b.acc.read(BASES[0] + line * 64, 1);
    }
    let cold = b.s.cycles();
    b.finish();
    let cold = b.s.cycles() - cold;
    let start = b.s.cycles();
    for k in 0..512u64 {
        b.acc.push(AxiOp::Read { id: 0, addr: BASES[0] + (k * 37 % 64) * 64, beats: 1 });
    }
    let done = b.finish();
    let warm = b.s.cycles() - start;
    b.acc.read(BASES[0], 1);
    let alone = b.finish()[0].clone();
    println!(
        "64 misses {cold} cycles, 512 hits {warm} cycles, one hit {} cycles",
        alone.end - alone.start
    );
    assert!(done.iter().all(AxiDone::okay));
    assert!(warm <= 512 + 24, "{warm} cycles for 512 hits");
    assert!(alone.end - alone.start <= 7, "{} cycles for one hit", alone.end - alone.start);
    assert_eq!(b.line, 64);
    b.clean();
}
