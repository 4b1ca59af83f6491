//! The AXI agents work against each other, through wires.

use shef_rtl::agent::Rng;
use shef_rtl::{
    AxiBurst, AxiLite, AxiMaster, AxiMemory, AxiMemoryConfig, AxiOp, DesignSpec, Hostile, Sim,
    build,
};
use std::collections::HashMap;

fn sim() -> Sim {
    let lib = build(&DesignSpec::new("loop").source("sim/rtl/tests/loop.sv")).expect("build");
    let mut s = Sim::new(&lib).expect("instance");
    s.reset("rst_n", 2);
    s
}

#[test]
fn random_traffic_keeps_every_byte() {
    for seed in 0..6u64 {
        let mut s = sim();
        let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::seeded(seed)).expect("memory");
        let mut acc = AxiMaster::new(&s, "acc0_", Some(seed + 100)).expect("master");
        let mut rng = Rng::new(seed);
        let mut want: HashMap<u64, [u8; 64]> = HashMap::new();
        for _ in 0..300 {
            let beats = 1 + rng.below(8);
            let addr = rng.below(64) * 4096 + rng.below(64 - beats + 1) * 64;
            let mut data = vec![0; beats as usize * 64];
            rng.fill(&mut data);
            let strobes: Vec<u64> =
                (0..beats).map(|_| if rng.one_in(4) { rng.next_u64() } else { u64::MAX }).collect();
            for (k, c) in data.chunks(64).enumerate() {
                let e = want.entry(addr + 64 * k as u64).or_insert([0; 64]);
                for (i, b) in c.iter().enumerate() {
                    if strobes[k] >> i & 1 == 1 {
                        e[i] = *b;
                    }
                }
            }
            acc.push(AxiOp::Write { id: rng.below(4) as u8, addr, data, strobes });
        }
        let done = acc.finish(&mut s, &mut [&mut mem], 100_000).expect("writes finish");
        assert!(done.len() == 300 && done.iter().all(|d| d.okay()));
        for a in want.keys() {
            acc.push(AxiOp::Read { id: rng.below(4) as u8, addr: *a, beats: 1 });
        }
        for d in acc.finish(&mut s, &mut [&mut mem], 200_000).expect("reads finish") {
            let AxiOp::Read { addr, .. } = d.op else { panic!() };
            assert_eq!(d.data, want[&addr], "seed {seed} address {addr:#x}");
        }
        assert_eq!((mem.violations(), acc.violations()), (&[][..], &[][..]), "seed {seed}");
        assert!(mem.idle());
    }
}

#[test]
fn a_reset_takes_what_is_under_way() {
    let mut s = sim();
    let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::bench(10, 5)).expect("memory");
    let mut acc = AxiMaster::new(&s, "acc0_", None).expect("master");
    acc.read(0, 8);
    acc.write(4096, &[7; 256]);
    acc.read(8192, 1);
    assert!(acc.finish(&mut s, &mut [&mut mem], 14).is_err(), "it is under way");
    acc.lose();
    let mut lost: Vec<_> = std::iter::from_fn(|| acc.pop()).collect();
    lost.sort_by_key(|d| d.tag);
    let words: Vec<_> = lost
        .iter()
        .map(|d| (d.tag, d.lost, d.okay(), d.resp.len() < 8, d.data.len() / 64 == d.resp.len()))
        .collect();
    assert_eq!(words[0], (0, true, false, true, true), "the words that had come are kept");
    assert!(acc.idle() && lost.iter().all(|d| d.lost != d.okay()));
    // and the ports fall silent
    mem.reset(&mut s);
    acc.read(0, 1);
    assert!(
        acc.finish(&mut s, &mut [&mut mem], 100)
            .expect("a burst after it")
            .iter()
            .all(|d| d.okay())
    );
}

#[test]
fn full_speed_without_stalls() {
    let mut s = sim();
    let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::bench(10, 5)).expect("memory");
    let mut acc = AxiMaster::new(&s, "acc0_", None).expect("master");
    acc.read(0, 1);
    let d = acc.finish(&mut s, &mut [&mut mem], 100).unwrap().remove(0);
    assert_eq!(d.end - d.start, 10);
    for i in 0..64 {
        acc.read(i * 1024, 16);
        acc.write(0x10_0000 + i * 1024, &[7; 1024]);
    }
    let before = s.cycles();
    acc.finish(&mut s, &mut [&mut mem], 10_000).unwrap();
    let took = s.cycles() - before;
    assert!(took < 1024 + 40, "{took} cycles for 1024 beats each way");
    assert_eq!(mem.counters.read_beats, 1025);
}

#[test]
fn every_breach_is_seen() {
    let cases = [
        Hostile::UnownedR { id: 9 },
        Hostile::UnownedB { id: 9 },
        Hostile::WrongRid(0x40),
        Hostile::WrongBid(0x40),
        Hostile::EarlyLast,
        Hostile::LateLast,
        Hostile::MissingLast,
        Hostile::LoseRead,
        Hostile::LoseWrite,
        Hostile::DoubleB,
    ];
    for h in cases {
        let mut s = sim();
        let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::bench(3, 3)).expect("memory");
        let mut acc = AxiMaster::new(&s, "acc0_", None).expect("master");
        mem.inject(h);
        acc.read(0, 4);
        acc.write(0, &[1; 256]);
        let hung = acc.finish(&mut s, &mut [&mut mem], 200).is_err();
        for _ in 0..50 {
            shef_rtl::cycle(&mut s, &mut [&mut acc, &mut mem]);
        }
        let lost = matches!(h, Hostile::LoseRead | Hostile::LoseWrite);
        assert!(mem.injected_all(), "{h:?} did not happen");
        assert!(if lost { hung } else { !acc.violations().is_empty() }, "{h:?} was not seen");
    }
    // The memory detects the violations of a master.
    let mut s = sim();
    let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::bench(3, 3)).expect("memory");
    let mut acc = AxiMaster::new(&s, "acc0_", None).expect("master");
    acc.read(4096 - 64, 2);
    acc.finish(&mut s, &mut [&mut mem], 200).unwrap();
    acc.push(AxiOp::odd(0, AxiBurst { write: true, addr: 0, beats: 2, size: 6, burst: 2 }));
    acc.finish(&mut s, &mut [&mut mem], 200).unwrap();
    assert_eq!(mem.violations().len(), 2, "{:?}", mem.violations());
}

#[test]
fn errors_silence_and_tampering() {
    let mut s = sim();
    let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::seeded(4)).expect("memory");
    let mut acc = AxiMaster::new(&s, "acc0_", Some(5)).expect("master");
    mem.error_ranges.push(0x1040..0x1041);
    mem.silent_ranges.push(0x9000..0xa000);
    acc.read(0x1000, 3);
    acc.write(0x1000, &[3; 128]);
    let mut done = acc.finish(&mut s, &mut [&mut mem], 2000).unwrap();
    done.sort_by_key(|d| d.tag);
    assert_eq!(done[0].resp, [0, 2, 0]);
    assert_eq!(done[1].resp, [2]);
    mem.on_read(|a, d| {
        if a == 0x2040 {
            d[5] ^= 1;
        }
    });
    acc.read(0x2000, 2);
    let d = acc.finish(&mut s, &mut [&mut mem], 2000).unwrap().remove(0);
    assert_eq!((d.data[5], d.data[69]), (0, 1));
    acc.read(0x9000, 1);
    assert_eq!(acc.finish(&mut s, &mut [&mut mem], 2000).unwrap_err().code(), "SHEF-RTL-014");
}

#[test]
fn registers() {
    let mut s = sim();
    let mut ctl = AxiLite::new(&s, "ctl_").expect("ctl");
    assert!(ctl.write(&mut s, &mut [], 4, 0x1234_5678).unwrap());
    assert!(ctl.write(&mut s, &mut [], 8, 7).unwrap());
    assert_eq!(ctl.read(&mut s, &mut [], 4).unwrap(), Some(0x1234_5678));
    assert_eq!(ctl.read(&mut s, &mut [], 8).unwrap(), Some(7));
    assert_eq!(ctl.read(&mut s, &mut [], 16).unwrap(), None);
    assert!(!ctl.write(&mut s, &mut [], 0x100, 7).unwrap());
}
