//! Scratch and public regions (counted, tree, bypass) read back; attacks on chunks, tags and nodes
//! are detected; fault policies apply.

mod common;

use common::*;
use shef_model::{Burst, MemoryFault, NoAccelerator, Resp, WriteBeat};
use shef_proto::channel::{FaultKind, RefusalKind, ShieldRequest, ShieldStatement};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_seal::{ChunkCipher, NodeCipher};

const TREE64: u8 = 3;

/// Every mode; `tree64` has more nodes than the cache holds.
fn config(on_fault: OnFault) -> Config {
    let counted = |r: Region| Region { counter_bits: Some(36), ..r };
    let tree = |r: Region, node_base| Region { node_base: Some(node_base), ..r };
    let regions = vec![
        counted(region(0, "c64", Mode::Counted, 0, 0x2000, 64, 128, 0x100_0000)),
        counted(region(1, "c4k", Mode::Counted, 0x1_0000, 0x1_0000, 4096, 256, 0x101_0000)),
        tree(region(2, "t512", Mode::Tree, 0x2_0000, 0x1_0000, 512, 256, 0x102_0000), 0x200_0000),
        tree(
            region(TREE64, "t64", Mode::Tree, 0x10_0000, 0x10_0000, 64, 128, 0x110_0000),
            0x201_0000,
        ),
        region(4, "b64", Mode::Bypass, 0x4_0000, 0x1000, 64, 128, 0),
        region(5, "b512", Mode::Bypass, 0x5_0000, 0x4000, 512, 128, 0),
        region(6, "in", Mode::Input, 0x6_0000, 0x1000, 512, 256, 0x103_0000),
    ];
    Config::new(on_fault, 1, vec![Set::default()], regions).unwrap()
}

fn owner(on_fault: OnFault) -> Owner {
    Owner::start(config(on_fault), Box::new(NoAccelerator), 1)
}

/// xorshift64*
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

fn fill(o: &mut Owner, addr: u64, len: usize, byte: u8) -> Resp {
    o.model.axi_write_bytes(addr, &vec![byte; len])
}

fn flush(o: &mut Owner) {
    assert_eq!(o.ask(ShieldRequest::flush()).status, 0);
}

fn first(o: &mut Owner, addr: u64) -> (u8, Resp) {
    let beat = o.model.axi_read(&Burst::whole(addr, 1))[0];
    (beat.data[0], beat.resp)
}

fn flip(o: &mut Owner, addr: u64) {
    let mut b = [0];
    o.model.memory().read(addr, &mut b);
    o.model.memory_mut().write(addr, &[b[0] ^ 4]);
}

fn shield(o: &mut Owner) -> ShieldStatement {
    *o.statement().shield()
}

/// Bursts of all sizes and strobes read back the written data, whatever is evicted, flushed or
/// fetched again in between.
#[test]
fn every_byte_comes_back() {
    let config = config(OnFault::Shield);
    for seed in 1..4 {
        let mut o = owner(OnFault::Shield);
        let mut rng = Rng(seed);
        let mut plain: Vec<Vec<u8>> =
            config.regions().iter().map(|r| vec![0; r.size as usize]).collect();
        for i in 0..12_000 {
            let r = config.regions()[rng.below(6) as usize].clone();
            let size = [6, 6, 6, rng.below(7) as u8][rng.below(4) as usize];
            let addr = r.base + rng.below(r.size);
            let room = (4096 - (addr & !((1 << size) - 1)) % 4096) >> size;
            let most = [1, 8, 64][rng.below(3) as usize];
            let beats = (1 + rng.below(most)).min(room);
            let burst = Burst { addr, len: beats as u8 - 1, size, incr: true };
            let at = |i: u64| ((burst.start() + (i << size) - r.base) & !63) as usize;
            let bytes = &mut plain[usize::from(r.id)];
            if rng.below(2) == 0 {
                let words: Vec<WriteBeat> = (0..beats)
                    .map(|_| {
                        let data = core::array::from_fn(|_| rng.next() as u8);
                        WriteBeat {
                            data,
                            strb: [u64::MAX, u64::MAX, rng.next()][rng.below(3) as usize],
                        }
                    })
                    .collect();
                assert_eq!(o.model.axi_write(&burst, &words), Resp::Okay);
                for (i, w) in (0..).zip(&words) {
                    (0..64)
                        .filter(|k| w.strb >> k & 1 == 1)
                        .for_each(|k| bytes[at(i) + k] = w.data[k]);
                }
            } else {
                for (n, beat) in (0..).zip(o.model.axi_read(&burst)) {
                    assert_eq!(
                        (&beat.data[..], beat.resp),
                        (&bytes[at(n)..at(n) + 64], Resp::Okay),
                        "seed {seed}, operation {i}, {burst:?}"
                    );
                }
            }
            match rng.below(400) {
                0 => flush(&mut o),
                1 => assert_eq!(o.ask(ShieldRequest::invalidate()).status, 0),
                // Clean lines are fetched again.
                2 => drop(o.model.memory_mut()),
                _ => {}
            }
        }
        let s = shield(&mut o);
        assert_eq!((s.faults, s.refusals, s.stopped), (0, 0, false));
    }
}

/// Data is where the documentation places it.
#[test]
fn chunks_and_nodes_lie_as_the_format_says() {
    let mut o = owner(OnFault::Shield);
    let config = config(OnFault::Shield);
    // A first and a second version of a counted chunk; the second is merged from one byte.
    assert_eq!(fill(&mut o, 0x1_1000, 4096, 0x11), Resp::Okay);
    flush(&mut o);
    let one = WriteBeat { data: [0x22; 64], strb: 1 };
    o.ask(ShieldRequest::invalidate());
    assert_eq!(o.model.axi_write(&Burst::whole(0x1_1000, 1), &[one]), Resp::Okay);
    flush(&mut o);
    let cipher = ChunkCipher::new(1, o.keys.data_key(1).unwrap());
    let (mut data, tag) = o.copy_out(1, 1, 1);
    assert!(cipher.open(2, 1, &mut data, tag[..].try_into().unwrap()));
    assert_eq!((data[0], &data[1..]), (0x22, &[0x11; 4095][..]));
    // A chunk that was never fully written has zeros in its gaps.
    assert_eq!(o.model.axi_write(&Burst::whole(0x1_2000, 1), &[one]), Resp::Okay);
    flush(&mut o);
    let (mut data, tag) = o.copy_out(1, 2, 1);
    assert!(cipher.open(1, 2, &mut data, tag[..].try_into().unwrap()));
    assert_eq!((data[0], &data[1..]), (0x22, &[0; 4095][..]));
    // More nodes than the cache holds: the first ones are in memory, under version 1.
    let r = config.region(TREE64).unwrap();
    assert_eq!(fill(&mut o, r.base, r.size as usize, 0x33), Resp::Okay);
    let node = NodeCipher::new(TREE64, o.keys.node_key(TREE64).unwrap());
    assert_eq!((r.tree_levels(), r.level_nodes(0)), (1, 2048));
    let at = |n| r.node_addr(0, n);
    let mut bytes = [0; 64];
    for n in 0..1024 {
        o.model.memory().read(at(n), &mut bytes);
        assert_eq!(node.open(1, 0, n, &bytes), Some([1; 8]), "node {n}");
    }
    o.model.memory().read(at(2047), &mut bytes);
    assert_eq!(bytes, [0; 64], "nodes are written only to make room");
}

/// A chunk that was never written reads as zeros, without a memory access.
#[test]
fn version_0_is_zeros_without_memory() {
    let mut o = owner(OnFault::Shield);
    o.model.add_fault(0..1 << 40, MemoryFault::Error);
    for addr in [0, 0x1_0000, 0x2_0000, 0x10_0000] {
        assert_eq!(first(&mut o, addr), (0, Resp::Okay));
    }
    assert_eq!(shield(&mut o).faults, 0);
}

/// Memory returns other data than was written: none of it is delivered, and the record names the
/// location and the expected version.
#[test]
fn tampering_is_told_with_place_and_version() {
    #[derive(Debug, Clone, Copy)]
    enum Attack {
        Data,
        Tag,
        Replay,
        Swap,
        Bus,
    }
    let config = config(OnFault::Shield);
    for id in 0..4u8 {
        for attack in [Attack::Data, Attack::Tag, Attack::Replay, Attack::Swap, Attack::Bus] {
            let mut o = owner(OnFault::Shield);
            let r = config.region(id).unwrap();
            let (chunk, len) = (5, r.chunk as usize);
            let (addr, tag_addr) = (r.chunk_addr(chunk), r.tag_addr(chunk));
            let image = |o: &Owner, chunk| o.copy_out(id, chunk, 1);
            fill(&mut o, r.chunk_addr(6), len, 6);
            fill(&mut o, addr, len, 1);
            flush(&mut o);
            let old = image(&o, chunk);
            fill(&mut o, addr, len, 2);
            flush(&mut o);
            match attack {
                Attack::Data => flip(&mut o, addr + 63),
                Attack::Tag => flip(&mut o, tag_addr),
                Attack::Replay | Attack::Swap => {
                    let (data, tag) =
                        if matches!(attack, Attack::Swap) { image(&o, 6) } else { old };
                    o.model.memory_mut().write(addr, &data);
                    o.model.memory_mut().write(tag_addr, &tag);
                }
                Attack::Bus => o.model.add_fault(addr..addr + 1, MemoryFault::Error),
            }
            assert_eq!(first(&mut o, addr), (0, Resp::SlvErr), "{attack:?} {}", r.name);
            let kind = if matches!(attack, Attack::Bus) { FaultKind::Bus } else { FaultKind::Tag };
            let s = shield(&mut o);
            assert_eq!(
                (s.fault_kind, s.fault_region, s.fault_chunk, s.fault_version),
                (kind, id, chunk, 2),
                "{attack:?} {}",
                r.name
            );
            assert!(s.stopped);
            assert_eq!(first(&mut o, 0x1_8000), (0, Resp::SlvErr), "it stops as a whole");
        }
    }
}

/// The same for nodes of the tree, read by a read or by a write.
#[test]
fn a_changed_or_old_node_is_told() {
    for (replay, write) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut o = owner(OnFault::Shield);
        let r = config(OnFault::Shield).region(TREE64).unwrap().clone();
        let node = r.node_base.unwrap() + 7 * 64;
        let mut old = [0; 64];
        for _ in 0..2 {
            o.model.memory().read(node, &mut old);
            assert_eq!(fill(&mut o, r.base, r.size as usize, 9), Resp::Okay);
        }
        assert_ne!(old, [0; 64]);
        if replay {
            o.model.memory_mut().write(node, &old);
        } else {
            flip(&mut o, node + 50);
        }
        let addr = r.chunk_addr(7 * 8 + 2);
        if write {
            assert_eq!(fill(&mut o, addr, 64, 1), Resp::SlvErr);
        } else {
            assert_eq!(first(&mut o, addr), (0, Resp::SlvErr));
        }
        let s = shield(&mut o);
        assert_eq!(
            (s.fault_kind, s.fault_region, s.fault_chunk, s.fault_version),
            (FaultKind::Node, TREE64, 7, 2)
        );
    }
}

/// `on_fault = "region"`: the region is frozen, the others are not; nothing in it is sealed again,
/// and requests to it are not counted as refusals.
#[test]
fn a_fault_may_freeze_one_region() {
    let mut o = owner(OnFault::Region);
    fill(&mut o, 0x1_1000, 4096, 1);
    fill(&mut o, 0x1000, 64, 2);
    flush(&mut o);
    fill(&mut o, 0x1_2000, 64, 3);
    flip(&mut o, 0x1_1000);
    assert_eq!(first(&mut o, 0x1_1000), (0, Resp::SlvErr));
    assert_eq!(first(&mut o, 0x1_2000), (0, Resp::SlvErr));
    assert_eq!(fill(&mut o, 0x1_2000, 64, 3), Resp::SlvErr);
    assert_eq!(first(&mut o, 0x1000), (2, Resp::Okay));
    assert_eq!(fill(&mut o, 0x1000, 64, 4), Resp::Okay);
    flush(&mut o);
    let s = shield(&mut o);
    assert_eq!((s.faults, s.refusals, s.stopped, o.model.region_faults()), (1, 0, false, 2));
    let (data, tag) = o.copy_out(1, 2, 1);
    assert!(data.iter().chain(&tag).all(|b| *b == 0), "a frozen region's dirty chunk was sealed");
    // A fault that belongs to no region stops the Shield.
    o.model.add_fault(0..64, MemoryFault::Hang);
    assert_eq!(first(&mut o, 0), (0, Resp::Okay), "never written");
    o.ask(ShieldRequest::invalidate());
    o.model.add_fault(0x100_0000..0x100_1000, MemoryFault::Error);
    assert_eq!(first(&mut o, 0x1000), (0, Resp::SlvErr));
    assert_eq!(first(&mut o, 0x2_0000), (0, Resp::SlvErr));
    assert!(shield(&mut o).stopped);
}

/// The host sees public memory as it is: unwritten bytes stay, there are no tags, and nothing is
/// checked.
#[test]
fn bypass_writes_the_bytes_it_was_given() {
    let mut o = owner(OnFault::Shield);
    o.model.memory_mut().write(0x5_0000, &[7; 512]);
    let beat = WriteBeat { data: [1; 64], strb: 0xf0 };
    assert_eq!(o.model.axi_write(&Burst::whole(0x5_0040, 1), &[beat]), Resp::Okay);
    flush(&mut o);
    let mut seen = [0; 512];
    o.model.memory().read(0x5_0000, &mut seen);
    let mut want = [7; 512];
    want[0x44..0x48].fill(1);
    assert_eq!(seen, want);
    // A change by the host while a chunk is half written is visible in the other half.
    assert_eq!(
        o.model.axi_write(&Burst::whole(0x5_0040, 1), &[WriteBeat { data: [2; 64], strb: 1 }]),
        Resp::Okay
    );
    o.model.memory_mut().write(0x5_0000, &[8; 512]);
    assert_eq!(first(&mut o, 0x5_0040), (2, Resp::Okay));
    assert_eq!(first(&mut o, 0x5_0000), (8, Resp::Okay));
    flush(&mut o);
    o.model.memory().read(0x5_0000, &mut seen);
    assert_eq!((seen[0x40], seen[0x41]), (2, 8));
    assert_eq!(shield(&mut o).faults, 0);
}

#[test]
fn statistics_count_what_happened() {
    let mut o = owner(OnFault::Shield);
    fill(&mut o, 0, 128, 1);
    flush(&mut o);
    first(&mut o, 0);
    o.ask(ShieldRequest::invalidate());
    first(&mut o, 0);
    first(&mut o, 0);
    // hits and misses of reads and writes, beats, fetched, sealed
    assert_eq!(o.model.counters(0).unwrap()[..9], [2, 1, 0, 2, 3, 2, 1, 2, 0]);
    assert!(o.model.counters(1).is_none());
    o.model.wipe();
    assert_eq!(*o.model.counters(0).unwrap(), [0; 16]);
}

/// An input region is read-only, whatever the other modes.
#[test]
fn an_input_region_is_read_only() {
    let mut o = owner(OnFault::Shield);
    assert_eq!(fill(&mut o, 0x6_0000, 64, 1), Resp::SlvErr);
    let s = shield(&mut o);
    assert_eq!((s.refusals, s.refusal_kind, s.refusal_region), (1, RefusalKind::ReadOnly, 6));
}
