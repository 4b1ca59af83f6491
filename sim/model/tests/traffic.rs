//! Random traffic on the model matches a plain record of each byte's expected value.

mod common;

use std::collections::BTreeMap;

use common::*;
use proptest::prelude::*;
use shef_model::{Burst, NoAccelerator, Resp, WriteBeat};
use shef_proto::channel::ShieldRequest;
use shef_seal::{ChunkCipher, OpenPolicy, Opener, Sealer};

#[derive(Debug, Clone)]
enum Op {
    Write { region: u8, offset: u64, beats: usize, size: u8, strobes: u64, fill: u8 },
    Read { region: u8, offset: u64, beats: usize, size: u8 },
    Flush,
    Invalidate,
    Epoch { region: u8, by: u64 },
}

/// Few chunks, so that lines never run out and every chunk is hit often.
fn place() -> impl Strategy<Value = (u8, u64)> {
    prop_oneof![Just((1u8, 0x800u64)), Just((2, 0x4000)), Just((3, 0x400))]
        .prop_flat_map(|(region, span)| (Just(region), 0..span))
}

fn op() -> impl Strategy<Value = Op> {
    let strobes = prop_oneof![4 => Just(u64::MAX), 1 => any::<u64>()];
    prop_oneof![
        8 => (place(), 1usize..20, 4u8..7, strobes, any::<u8>()).prop_map(|((region, offset), beats, size, strobes, fill)| Op::Write { region, offset, beats, size, strobes, fill }),
        5 => (place(), 1usize..20, 0u8..7).prop_map(|((region, offset), beats, size)| Op::Read { region, offset, beats, size }),
        1 => Just(Op::Flush),
        1 => Just(Op::Invalidate),
        1 => (1u8..4, 1u64..5).prop_map(|(region, by)| Op::Epoch { region, by }),
    ]
}

#[derive(Clone, Default)]
struct Chunk {
    bytes: Vec<u8>,
    valid: Vec<bool>,
    sealed: bool,
}

#[derive(Default)]
struct Account {
    chunks: BTreeMap<(u8, u64), Chunk>,
    epochs: BTreeMap<u8, u64>,
    refusals: u32,
}

impl Account {
    fn flush(&mut self) {
        self.chunks.values_mut().for_each(|c| c.sealed = true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_byte_is_as_accounted(ops in prop::collection::vec(op(), 1..60)) {
        let config = small_config();
        let mut o = Owner::start(config.clone(), Box::new(NoAccelerator), 1);
        let mut account = Account { epochs: (1..4).map(|r| (r, 1)).collect(), ..Account::default() };
        for op in ops {
            match op {
                Op::Write { region, offset, beats, size, strobes, fill } => {
                    let r = config.region(region).unwrap();
                    let burst = Burst { addr: r.base + offset, len: beats as u8 - 1, size, incr: true };
                    let data: Vec<WriteBeat> = (0..beats)
                        .map(|i| WriteBeat { data: core::array::from_fn(|k| fill.wrapping_add((i * 64 + k) as u8)), strb: strobes.rotate_left(i as u32) })
                        .collect();
                    let found = o.model.axi_write(&burst, &data);
                    let start = burst.start();
                    if start % 4096 + ((beats as u64) << size) > 4096 {
                        account.refusals += 1;
                        prop_assert_eq!(found, Resp::SlvErr);
                        continue;
                    }
                    let mut refused = false;
                    let mut i = 0;
                    while i < beats {
                        let chunk = (start + ((i as u64) << size) - r.base) / u64::from(r.chunk);
                        let state = account.chunks.entry((region, chunk)).or_insert_with(|| Chunk { bytes: vec![0; r.chunk as usize], valid: vec![false; r.chunk as usize], sealed: false });
                        let closed = state.sealed;
                        refused |= closed;
                        while i < beats && (start + ((i as u64) << size) - r.base) / u64::from(r.chunk) == chunk {
                            let word = ((start + ((i as u64) << size) - r.base) % u64::from(r.chunk)) as usize & !63;
                            for k in (0..64).filter(|k| !closed && data[i].strb >> k & 1 == 1) {
                                state.bytes[word + k] = data[i].data[k];
                                state.valid[word + k] = true;
                            }
                            i += 1;
                        }
                        state.sealed |= state.valid.iter().all(|&v| v);
                    }
                    account.refusals += u32::from(refused);
                    prop_assert_eq!(found == Resp::SlvErr, refused);
                }
                Op::Read { region, offset, beats, size } => {
                    let r = config.region(region).unwrap();
                    let burst = Burst { addr: r.base + offset, len: beats as u8 - 1, size, incr: true };
                    let found = o.model.axi_read(&burst);
                    prop_assert_eq!(found.len(), beats);
                    let start = burst.start();
                    let illegal = start % 4096 + ((beats as u64) << size) > 4096;
                    let mut refused = illegal;
                    for (i, beat) in (0u64..).zip(&found) {
                        let at = start + (i << size) - r.base;
                        let (chunk, word) = (at / u64::from(r.chunk), (at % u64::from(r.chunk)) as usize & !63);
                        match account.chunks.get(&(region, chunk)).filter(|_| !illegal) {
                            Some(c) => prop_assert_eq!((&beat.data[..], beat.resp), (&c.bytes[word..word + 64], Resp::Okay)),
                            None => {
                                refused = true;
                                prop_assert_eq!((beat.data, beat.resp), ([0; 64], Resp::SlvErr));
                            }
                        }
                    }
                    account.refusals += u32::from(refused);
                }
                Op::Flush => {
                    account.flush();
                    prop_assert_eq!(o.ask(ShieldRequest::flush()).status, 0);
                }
                Op::Invalidate => {
                    account.flush();
                    prop_assert_eq!(o.ask(ShieldRequest::invalidate()).status, 0);
                }
                Op::Epoch { region, by } => {
                    let epoch = account.epochs[&region] + by;
                    prop_assert_eq!(o.ask(ShieldRequest::epoch(region, epoch)).status, 0);
                    account.flush();
                    account.chunks.retain(|(r, _), _| *r != region);
                    account.epochs.insert(region, epoch);
                }
            }
        }
        o.ask(ShieldRequest::flush());
        let s = o.statement();
        prop_assert_eq!((s.shield().refusals, s.shield().faults), (account.refusals, 0));
        let policy = OpenPolicy { refusals: true, holes: true };
        for id in 1..4u8 {
            let r = config.region(id).unwrap();
            let opener = Opener::new(&config, &mut o.keys, id).unwrap();
            let (data, tags) = o.copy_out(id, 0, r.chunks());
            let opened = opener.open(&s, policy, 0, &data, &tags).unwrap();
            prop_assert_eq!(s.region(id).unwrap().epoch, account.epochs[&id]);
            for chunk in 0..r.chunks() {
                let at = (chunk * u64::from(r.chunk)) as usize;
                let found = &opened.data[at..at + r.chunk as usize];
                match account.chunks.get(&(id, chunk)) {
                    Some(c) => prop_assert_eq!((found, opened.written.is_written(chunk)), (&c.bytes[..], true)),
                    None => prop_assert!(found.iter().all(|&b| b == 0) && !opened.written.is_written(chunk)),
                }
            }
        }
    }

    #[test]
    fn what_the_owner_seals_the_accelerator_reads(data in prop::collection::vec(any::<u8>(), 1..4096), at: prop::sample::Index, bit in 0u8..8) {
        let config = small_config();
        let mut o = Owner::start(config.clone(), Box::new(NoAccelerator), 5);
        let (run, _) = Sealer::new(&config, &mut o.keys, 0, 5, 4096).unwrap().finish(&data).map_err(|e| e.0).unwrap();
        o.copy_in(&run);
        let mut found = vec![0; 4096];
        prop_assert_eq!(o.model.axi_read_bytes(0, &mut found), Resp::Okay);
        prop_assert_eq!(&found[..data.len()], &data[..]);
        prop_assert!(found[data.len()..].iter().all(|&b| b == 0));
        // A bit flip anywhere in ciphertext or tags: that chunk and all after it are not delivered.
        let at = at.index(run.data.len() + run.tags.len());
        let (addr, chunk) = if at < run.data.len() { (at as u64, at / 64) } else { (run.tag_addr + (at - run.data.len()) as u64, (at - run.data.len()) / 16) };
        let mut b = [0];
        o.model.memory().read(addr, &mut b);
        o.model.memory_mut().write(addr, &[b[0] ^ 1 << bit]);
        let mut found = vec![0xaa; 4096];
        prop_assert_eq!(o.model.axi_read_bytes(0, &mut found), Resp::SlvErr);
        prop_assert_eq!(&found[..chunk * 64], &[&data[..], &[0; 4096]].concat()[..chunk * 64]);
        prop_assert!(found[chunk * 64..].iter().all(|&b| b == 0));
        let s = o.statement();
        prop_assert_eq!((s.shield().stopped, s.shield().fault_chunk, s.shield().fault_version), (true, chunk as u64, 5));
    }
}

/// A Shield that has stopped seals nothing more.
#[test]
fn nothing_is_sealed_after_a_fault() {
    let config = small_config();
    let mut o = Owner::start(config.clone(), Box::new(NoAccelerator), 1);
    let beat = WriteBeat { data: [5; 64], strb: u64::MAX };
    assert_eq!(o.model.axi_write(&Burst::whole(0x1_0000, 4), &[beat; 4]), Resp::Okay);
    assert_eq!(
        o.model.axi_read(&Burst::whole(0, 1))[0].resp,
        Resp::SlvErr,
        "memory holds no sealed chunk"
    );
    assert_eq!(o.model.axi_write(&Burst::whole(0x1_0100, 4), &[beat; 4]), Resp::SlvErr);
    assert_eq!(o.ask(ShieldRequest::flush()).status, 3);
    // Later accesses return errors, and are neither faults nor refusals.
    assert_eq!(o.model.axi_read(&Burst::whole(0x9000, 1))[0].resp, Resp::SlvErr);
    assert_eq!(o.model.axi_read(&Burst::whole(0x40, 1))[0].resp, Resp::SlvErr);
    assert_eq!(o.model.axi_write(&Burst::whole(0x9000, 1), &[beat]), Resp::SlvErr);
    let s = o.statement();
    assert_eq!((s.shield().faults, s.shield().refusals), (1, 0));
    assert_eq!(o.ask(ShieldRequest::close()).status, 0);
    let (data, tags) = o.copy_out(1, 0, 32);
    assert!(data.iter().chain(&tags).all(|&b| b == 0));
}

/// A bus error while sealing is a fault, and the affected chunk is never sealed again.
#[test]
fn a_failed_write_back_stops_the_shield() {
    let config = small_config();
    for (range, what) in [(0x1_0000..0x1_0001, "data"), (0x10_1010..0x10_1011, "tag")] {
        let mut o = Owner::start(config.clone(), Box::new(NoAccelerator), 1);
        o.model.add_fault(range, shef_model::MemoryFault::Error);
        let beat = WriteBeat { data: [5; 64], strb: u64::MAX };
        assert_eq!(o.model.axi_write(&Burst::whole(0x1_0000, 2), &[beat; 2]), Resp::Okay);
        assert_eq!(o.ask(ShieldRequest::flush()).status, 4, "{what}");
        o.model.clear_faults();
        assert_eq!(o.ask(ShieldRequest::flush()).status, 3, "{what}");
        assert_eq!(o.statement().shield().fault_kind, shef_proto::channel::FaultKind::Bus);
    }
}

/// More incomplete chunks than lines: the oldest is closed early, and refuses further writes.
#[test]
fn lines_that_run_out_are_closed_with_gaps() {
    let config = small_config();
    let mut o = Owner::start(config.clone(), Box::new(NoAccelerator), 1);
    let beat = WriteBeat { data: [5; 64], strb: u64::MAX };
    for i in 0..8 {
        assert_eq!(o.model.axi_write(&Burst::whole(0x2_0000 + i * 4096, 1), &[beat]), Resp::Okay);
    }
    let early = o.statement().written(2).unwrap().count();
    assert!(early >= 1);
    assert_eq!(o.model.axi_write(&Burst::whole(0x2_0040, 1), &[beat]), Resp::SlvErr);
    o.ask(ShieldRequest::flush());
    assert_eq!(o.statement().written(2).unwrap().count(), 8);
    let cipher = ChunkCipher::new(2, o.keys.data_key(2).unwrap());
    let (mut data, tags) = o.copy_out(2, 0, 1);
    assert!(cipher.open(1, 0, &mut data, tags[..].try_into().unwrap()));
    assert!(data[..64].iter().all(|&b| b == 5) && data[64..].iter().all(|&b| b == 0));
}
