//! The whole life of a session on the model, honest and under attack.

mod common;

use common::*;
use shef_model::digits::{self, Digits, reg};
use shef_model::{Burst, MemoryFault, NoAccelerator, Resp, WriteBeat};
use shef_proto::channel::{FaultKind, RefusalKind, ShieldRequest};
use shef_proto::entropy::SeededEntropy;
use shef_proto::load::{FirstEpoch, seal_load_key};
use shef_regs::{ctl, krn};
use shef_seal::{OpenPolicy, Opener, SealError, Sealer};

/// 1,797 rows of 64 pixels and a label.
fn digits_data() -> (Vec<u8>, Vec<u8>) {
    use std::io::Read;
    let file =
        std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/digits.csv.gz"))
            .unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let row: Vec<u8> =
            line.split(',').map(|v| v.trim().parse::<f64>().unwrap() as u8).collect();
        assert_eq!(row.len(), 65);
        pixels.extend_from_slice(&row[..64]);
        labels.push(row[64]);
    }
    (pixels, labels)
}

struct Demo {
    owner: Owner,
    labels_at: u64,
    queries: usize,
    opener: Opener,
    expected: Vec<u8>,
    truth: Vec<u8>,
}

fn demo() -> Demo {
    let (pixels, labels) = digits_data();
    let n = 1000;
    let config = digits_config();
    let mut owner = Owner::start(config.clone(), Box::new(Digits::default()), 1);
    let labels_at = (n as u64 * 64).next_multiple_of(4096);
    let mut train = pixels[..n * 64].to_vec();
    train.resize(labels_at as usize, 0);
    train.extend_from_slice(&labels[..n]);
    let queries = &pixels[n * 64..];
    let (run, _) = Sealer::new(&config, &mut owner.keys, 0, 1, train.len() as u64)
        .unwrap()
        .finish(&train)
        .map_err(|e| e.0)
        .unwrap();
    owner.copy_in(&run);
    let (run, _) = Sealer::new(&config, &mut owner.keys, 1, 1, queries.len() as u64)
        .unwrap()
        .finish(queries)
        .map_err(|e| e.0)
        .unwrap();
    owner.copy_in(&run);
    let opener = Opener::new(&config, &mut owner.keys, 2).unwrap();
    Demo {
        owner,
        labels_at,
        queries: queries.len() / 64,
        opener,
        expected: digits::classify(&pixels[..n * 64], &labels[..n], queries),
        truth: labels[n..].to_vec(),
    }
}

impl Demo {
    fn launch(&mut self) -> u32 {
        let o = &mut self.owner;
        for (addr, value) in [
            (reg::TRAIN_ADDR, 0),
            (reg::TRAIN_ROWS, 1000),
            (reg::QUERY_ADDR, 0x10_0000),
            (reg::QUERY_ROWS, self.queries as u32),
            (reg::RESULT_ADDR, 0x20_0000),
            (reg::LABEL_ADDR, self.labels_at as u32),
            (reg::CTRL, 1),
        ] {
            o.write(u32::from(addr), value);
        }
        let a = o.ask(ShieldRequest::read(u32::from(reg::STATUS)));
        a.value as u32
    }
}

#[test]
fn digits_are_classified_and_766_are_right() {
    let mut d = demo();
    assert_eq!(d.launch(), 2);
    assert_eq!(d.owner.ask(ShieldRequest::flush()).status, 0);
    let statement = d.owner.statement();
    let chunks = d.expected.len().div_ceil(512) as u64;
    assert_eq!(statement.written(2).unwrap().count(), chunks);
    let (data, tags) = d.owner.copy_out(2, 0, chunks);
    let opened = d.opener.open(&statement, OpenPolicy::default(), 0, &data, &tags).unwrap();
    assert_eq!(&opened.data[..d.expected.len()], &d.expected[..]);
    assert!(opened.data[d.expected.len()..].iter().all(|&b| b == 0));
    let right = opened.data.chunks(16).zip(&d.truth).filter(|(r, t)| r[0] == **t).count();
    assert_eq!((d.truth.len(), right), (797, 766));
    // No plaintext is in memory.
    let mut page = [0; 4096];
    d.owner.model.memory().read(0, &mut page);
    assert!(page.iter().filter(|&&b| b > 16).count() > 3000);

    let close = d.owner.ask(ShieldRequest::close());
    assert_eq!((close.status, close.payload[0]), (0, 5));
    assert_eq!(state(&d.owner.model), ctl::STATUS_STATE_CLOSED);
    assert_eq!(krn_bytes(&d.owner.model, krn::LAST, 88), response(&d.owner.model));
    assert_eq!(krn_bytes(&d.owner.model, krn::T, 32), d.owner.keys.transcript().0);
    assert_eq!(d.owner.model.ctl_read(ctl::CONFIRM), Some(0));
    assert_eq!(d.owner.model.krn_read(krn::PUBKEY), Some(0));
    assert!(d.owner.channel.request(&ShieldRequest::ping()).is_err());
}

#[test]
fn a_bare_accelerator_gives_the_same_results() {
    let (pixels, labels) = digits_data();
    let mut bare = shef_model::Bare::new(Box::new(Digits::default()));
    bare.memory_mut().write(0, &pixels[..64_000]);
    bare.memory_mut().write(0x40_0000, &labels[..1000]);
    bare.memory_mut().write(0x10_0000, &pixels[64_000..]);
    for (addr, value) in
        [(0x10, 1000), (0x14, 0x10_0000), (0x1c, 797), (0x20, 0x20_0000), (0x28, 0x40_0000), (0, 1)]
    {
        bare.reg_write(addr, value).unwrap();
    }
    assert_eq!(bare.reg_read(reg::STATUS), Some(2));
    let expected = digits::classify(&pixels[..64_000], &labels[..1000], &pixels[64_000..]);
    let mut found = vec![0; expected.len()];
    bare.memory_mut().read(0x20_0000, &mut found);
    assert_eq!(found, expected);
}

#[test]
fn tampering_stops_the_shield_and_nothing_tampered_is_delivered() {
    type Attack = fn(&mut Demo);
    let attacks: [(&str, Attack, FaultKind); 9] = [
        ("data bit", |d| flip(d, 0x5000), FaultKind::Tag),
        ("tag bit", |d| flip(d, 0x30_0005), FaultKind::Tag),
        ("zero tag", |d| d.owner.model.memory_mut().write(0x30_0010, &[0; 16]), FaultKind::Tag),
        (
            "swap with tags",
            |d| {
                swap(d, 0x1000, 0x2000, 4096);
                swap(d, 0x30_0010, 0x30_0020, 16);
            },
            FaultKind::Tag,
        ),
        (
            "other region",
            |d| {
                let m = d.owner.model.memory_mut();
                let mut b = [0; 512];
                m.read(0x0, &mut b);
                m.write(0x10_0000, &b);
            },
            FaultKind::Tag,
        ),
        (
            "query moved",
            |d| {
                swap(d, 0x10_0000, 0x10_0200, 512);
                swap(d, 0x30_1000, 0x30_1010, 16);
            },
            FaultKind::Tag,
        ),
        (
            "bus error",
            |d| d.owner.model.add_fault(0x3000..0x3040, MemoryFault::Error),
            FaultKind::Bus,
        ),
        (
            "bus error at the tag",
            |d| d.owner.model.add_fault(0x30_0030..0x30_0031, MemoryFault::Error),
            FaultKind::Bus,
        ),
        (
            "hang",
            |d| d.owner.model.add_fault(0x3000..0x3040, MemoryFault::Hang),
            FaultKind::Timeout,
        ),
    ];
    for (name, attack, kind) in attacks {
        let mut d = demo();
        attack(&mut d);
        let range = match name {
            "data bit" => 0x5000..0x6000,
            "tag bit" => 0..0x1000,
            "zero tag" => 0x1000..0x2000,
            "swap with tags" => 0x1000..0x3000,
            "other region" => 0x10_0000..0x10_0200,
            "query moved" => 0x10_0000..0x10_0400,
            "bus error at the tag" => 0..0x4000,
            _ => 0x3000..0x4000,
        };
        d.owner.model.watch(range);
        let status = d.launch_attacked();
        assert_eq!(status, None, "{name}");
        assert_eq!(d.owner.model.words_delivered(), 0, "{name}");
        assert_eq!(d.owner.ask(ShieldRequest::flush()).status, 3, "{name}");
        let s = d.owner.statement();
        assert!(
            s.shield().stopped && s.shield().faults == 1 && s.shield().fault_kind == kind,
            "{name}: {:?}",
            s.shield()
        );
        assert_eq!(
            field(&d.owner.model, ctl::STATUS_FAULT_KIND),
            u32::from(kind.number()),
            "{name}"
        );
        let (data, tags) = d.owner.copy_out(2, 0, 1);
        let e = d
            .opener
            .open(&s, OpenPolicy { refusals: true, holes: true }, 0, &data, &tags)
            .map(drop)
            .unwrap_err();
        assert_eq!(e, SealError::Stopped { faults: 1 }, "{name}");
        // Usable again after a reset.
        d.owner.model.reset();
        assert_eq!(state(&d.owner.model), ctl::STATUS_STATE_EMPTY);
        assert_eq!(field(&d.owner.model, ctl::STATUS_STOPPED), 0);
    }
}

impl Demo {
    /// The accelerator's status, or `None` if the Shield has stopped.
    fn launch_attacked(&mut self) -> Option<u64> {
        let o = &mut self.owner;
        for (addr, value) in [
            (0x10, 1000),
            (0x14, 0x10_0000),
            (0x1c, 797),
            (0x20, 0x20_0000),
            (0x28, self.labels_at as u32),
            (0, 1),
        ] {
            o.write(addr, value);
        }
        let a = o.ask(ShieldRequest::read(4));
        (a.status == 0).then_some(a.value)
    }
}

fn flip(d: &mut Demo, addr: u64) {
    let m = d.owner.model.memory_mut();
    let mut b = [0];
    m.read(addr, &mut b);
    m.write(addr, &[b[0] ^ 1]);
}

fn swap(d: &mut Demo, a: u64, b: u64, len: usize) {
    let m = d.owner.model.memory_mut();
    let (mut x, mut y) = (vec![0; len], vec![0; len]);
    m.read(a, &mut x);
    m.read(b, &mut y);
    m.write(a, &y);
    m.write(b, &x);
}

#[test]
fn watched_words_are_counted_when_nothing_is_wrong() {
    let mut d = demo();
    d.owner.model.watch(0x10_0000..0x10_0100);
    d.launch();
    assert_eq!(d.owner.model.words_delivered(), 32);
}

#[test]
fn results_withheld_are_not_opened() {
    let mut d = demo();
    d.launch();
    d.owner.ask(ShieldRequest::flush());
    let s = d.owner.statement();
    let zero = |n: usize| (vec![0; n * 512], vec![0; n * 16]);
    let (data, tags) = zero(4);
    let e = d.opener.open(&s, OpenPolicy::default(), 0, &data, &tags).map(drop).unwrap_err();
    assert_eq!(e, SealError::Tag { region: 2, chunk: 0, epoch: 1 });
    // A chunk after the results was not written, and only the statement reveals that.
    let (data, tags) = d.owner.copy_out(2, 24, 2);
    let e = d.opener.open(&s, OpenPolicy::default(), 24, &data, &tags).map(drop).unwrap_err();
    assert_eq!(e, SealError::NotWritten { region: 2, chunk: 25, epoch: 1 });
    let opened =
        d.opener.open(&s, OpenPolicy { holes: true, refusals: false }, 24, &data, &tags).unwrap();
    assert!(opened.data[512..].iter().all(|&b| b == 0) && !opened.written.is_written(25));
    // Nor under the statement of another session.
    let mut other = demo();
    let foreign = other.owner.statement();
    assert_eq!(other.opener.check(&foreign, OpenPolicy::default()), Ok(()));
    let mut d2 = demo();
    d2.owner.model.wipe();
    let pk = seed(&mut d2.owner.model, &[8; 32]);
    let config = digits_config();
    let epochs = shef_proto::load::first_epochs(&config, 1);
    let (m, keys) =
        seal_load_key(&config, &pk, b"info", &epochs, &mut SeededEntropy::new(2, "owner")).unwrap();
    assert!(load(&mut d2.owner.model, &m));
    d2.owner.channel = shef_proto::channel::OwnerChannel::new(&keys);
    let s2 = d2.owner.statement();
    assert_eq!(d.opener.check(&s2, OpenPolicy::default()), Err(SealError::Session));
}

#[test]
fn load_keys_that_do_not_fit_change_nothing() {
    let config = digits_config();
    let mut model = shef_model::Model::new(config.clone(), Box::new(NoAccelerator));
    assert_eq!(state(&model), ctl::STATUS_STATE_EMPTY);
    assert!(!load(&mut model, &[0; 100]), "no seed yet");
    let pk = seed(&mut model, &[7; 32]);
    assert_eq!(state(&model), ctl::STATUS_STATE_FRESH);
    assert_eq!(model.krn_write(krn::SEED, 0), None, "a seed is taken in EMPTY and CLOSED only");
    let epochs = shef_proto::load::first_epochs(&config, 1);
    let (good, keys) =
        seal_load_key(&config, &pk, b"", &epochs, &mut SeededEntropy::new(1, "owner")).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        assert!(!load(&mut model, &bad), "byte {at}");
        assert_eq!(state(&model), ctl::STATUS_STATE_FRESH);
    }
    for n in 0..good.len() {
        assert!(!load(&mut model, &good[..n]), "{n} bytes");
    }
    let mut long = good.clone();
    long.push(0);
    assert!(!load(&mut model, &long));
    model.ctl_write(ctl::LOAD_DOORBELL, 1025).unwrap();
    assert_eq!(field(&model, ctl::STATUS_LOAD_REFUSED), 1);
    let other = shef_proto::hpke_suite::derive_key_pair(&[9; 32]).1;
    let (wrong, _) =
        seal_load_key(&config, &other, b"", &epochs, &mut SeededEntropy::new(1, "owner")).unwrap();
    assert!(!load(&mut model, &wrong), "made for another key");
    let (wrong, _) = seal_load_key(
        &small_config(),
        &pk,
        b"",
        &shef_proto::load::first_epochs(&small_config(), 1),
        &mut SeededEntropy::new(1, "o"),
    )
    .unwrap();
    assert!(!load(&mut model, &wrong), "made for another configuration");
    assert_eq!(model.ctl_read(ctl::CONFIRM), Some(0));
    assert!(load(&mut model, &good));
    assert_eq!(
        model.ctl_read(ctl::CONFIRM),
        Some(u32::from_le_bytes(keys.confirmation()[..4].try_into().unwrap()))
    );
    assert!(!load(&mut model, &good), "a seed takes one Load Key");
    assert_eq!(state(&model), ctl::STATUS_STATE_KEYED);
}

#[test]
fn forged_and_replayed_requests_change_nothing() {
    let mut o = Owner::start(small_config(), Box::new(Digits::default()), 1);
    let first = o.channel.request(&ShieldRequest::write(0x10, 55)).unwrap();
    let mut forged = first;
    for at in 0..88 {
        forged[at] ^= 1;
        assert!(ring(&mut o.model, &forged).is_none(), "byte {at}");
        forged[at] ^= 1;
    }
    let answer = ring(&mut o.model, &first).unwrap();
    assert_eq!(ring(&mut o.model, &first).unwrap(), answer, "the same bytes get the stored answer");
    o.channel.answer(&answer).unwrap();
    let second = o.channel.request(&ShieldRequest::write(0x10, 66)).unwrap();
    let a2 = ring(&mut o.model, &second).unwrap();
    o.channel.answer(&a2).unwrap();
    assert!(ring(&mut o.model, &first).is_none(), "an older request is refused");
    assert_eq!(response(&o.model), a2, "and the last answer stays");
    assert_eq!(o.ask(ShieldRequest::read(0x10)).value, 66);
    assert_eq!(o.ask(ShieldRequest { op: 0x7f, ..ShieldRequest::default() }).status, 1);
    assert_eq!(o.ask(ShieldRequest::read(0x44)).status, 2);
    assert_eq!(o.ask(ShieldRequest::read(0x2)).status, 1);
    assert_eq!(o.ask(ShieldRequest::read(0x1_0000)).status, 1);
    assert_eq!(o.ask(ShieldRequest::statement(5)).status, 1);
    assert_eq!(o.ask(ShieldRequest::map(0, 0)).status, 1);
    assert_eq!(o.ask(ShieldRequest::map(1, 1)).status, 1);
    assert_eq!(o.ask(ShieldRequest::epoch(1, 1)).status, 1);
    assert_eq!(o.ask(ShieldRequest::epoch(1, 1 << 48)).status, 1);
    assert_eq!(o.ask(ShieldRequest::epoch(4, 2)).status, 1);
}

fn beat(fill: u8) -> WriteBeat {
    WriteBeat { data: [fill; 64], strb: u64::MAX }
}

#[test]
fn output_chunks_are_written_once_an_epoch() {
    let mut o = Owner::start(small_config(), Box::new(NoAccelerator), 1);
    let at = 0x1_0000;
    // Neither on chip nor sealed.
    assert!(o.model.axi_read(&Burst::whole(at, 1)).iter().all(|b| b.resp == Resp::SlvErr));
    // Gathered in pieces; unwritten bytes read as zero.
    assert_eq!(o.model.axi_write(&Burst::whole(at, 4), &[beat(1); 4]), Resp::Okay);
    let r = o.model.axi_read(&Burst::whole(at, 8));
    assert!(r.iter().all(|b| b.resp == Resp::Okay) && r[3].data == [1; 64] && r[4].data == [0; 64]);
    assert_eq!(o.statement().written(1).unwrap().count(), 0);
    assert_eq!(o.model.axi_write(&Burst::whole(at + 256, 4), &[beat(2); 4]), Resp::Okay);
    assert!(o.statement().written(1).unwrap().is_written(0));
    assert_eq!(o.model.axi_write(&Burst::whole(at, 1), &[beat(3)]), Resp::SlvErr);
    // A gap is closed by the flush.
    let hole = WriteBeat { data: [9; 64], strb: 0xff };
    assert_eq!(o.model.axi_write(&Burst::whole(at + 512, 1), &[hole]), Resp::Okay);
    assert_eq!(o.ask(ShieldRequest::flush()).status, 0);
    assert_eq!(o.model.axi_write(&Burst::whole(at + 512 + 64, 1), &[beat(3)]), Resp::SlvErr);
    let s = o.statement();
    assert_eq!(
        (
            s.shield().refusals,
            s.shield().refusal_kind,
            s.shield().refusal_region,
            s.shield().refusal_addr
        ),
        (3, RefusalKind::NotWritten, 1, at)
    );
    let config = small_config();
    let opener = Opener::new(&config, &mut o.keys, 1).unwrap();
    let (data, tags) = o.copy_out(1, 0, 2);
    assert_eq!(
        opener.open(&s, OpenPolicy::default(), 0, &data, &tags).map(drop).unwrap_err(),
        SealError::Refusals { refusals: 3 }
    );
    let policy = OpenPolicy { refusals: true, holes: false };
    let opened = opener.open(&s, policy, 0, &data, &tags).unwrap();
    assert_eq!(
        (opened.data[255], opened.data[256], opened.data[512], opened.data[520], opened.data[1023]),
        (1, 2, 9, 0, 0)
    );
    // A new epoch: the old chunk no longer opens, and may be written again.
    assert_eq!(o.ask(ShieldRequest::epoch(1, 5)).status, 0);
    assert_eq!(o.statement().region(1).unwrap().epoch, 5);
    assert_eq!(o.model.axi_write(&Burst::whole(at, 8), &[beat(4); 8]), Resp::Okay);
    o.ask(ShieldRequest::flush());
    let s5 = o.statement();
    assert_eq!(
        opener.open(&s5, policy, 0, &data[..512], &tags[..16]).map(drop).unwrap_err(),
        SealError::Tag { region: 1, chunk: 0, epoch: 5 }
    );
    let (data5, tags5) = o.copy_out(1, 0, 1);
    assert_eq!(opener.open(&s5, policy, 0, &data5, &tags5).unwrap().data[..], [4; 512]);
    // Replayed into memory, the old chunk stops the Shield.
    o.model.memory_mut().write(at, &data[..512]);
    o.model.memory_mut().write(0x10_1000, &tags[..16]);
    assert_eq!(o.model.axi_read(&Burst::whole(at, 1))[0].resp, Resp::SlvErr);
    let s = o.statement();
    assert_eq!(
        (
            s.shield().fault_kind,
            s.shield().fault_region,
            s.shield().fault_chunk,
            s.shield().fault_version
        ),
        (FaultKind::Tag, 1, 0, 5)
    );
}

#[test]
fn what_the_accelerator_does_wrong_is_refused_and_counted() {
    let epochs: Vec<FirstEpoch> =
        (0..4).map(|region| FirstEpoch { region, epoch: u64::from(region != 3) }).collect();
    let mut o = Owner::start_with(small_config(), Box::new(NoAccelerator), &epochs);
    let mut count = 0;
    let mut refused = |o: &mut Owner, burst: Burst, write: bool, kind: RefusalKind| {
        if write {
            assert_eq!(o.model.axi_write(&burst, &vec![beat(1); burst.beats()]), Resp::SlvErr);
        } else {
            assert!(
                o.model
                    .axi_read(&burst)
                    .iter()
                    .all(|b| b.resp == Resp::SlvErr && b.data == [0; 64])
            );
        }
        count += 1;
        let s = *o.statement().shield();
        assert_eq!(s.refusals, count, "{kind:?}");
        assert!(!s.stopped);
    };
    refused(&mut o, Burst::whole(0x9000, 1), false, RefusalKind::Range);
    refused(&mut o, Burst::whole(0xfc0, 2), false, RefusalKind::Burst);
    refused(&mut o, Burst { incr: false, ..Burst::whole(0, 1) }, false, RefusalKind::Burst);
    refused(&mut o, Burst { size: 7, ..Burst::whole(0, 1) }, false, RefusalKind::Burst);
    refused(&mut o, Burst::whole(0, 1), true, RefusalKind::ReadOnly);
    refused(&mut o, Burst::whole(0x4_0000, 1), true, RefusalKind::EpochZero);
    refused(&mut o, Burst::whole(0x4_0000, 1), false, RefusalKind::EpochZero);
    refused(&mut o, Burst::whole(u64::MAX - 63, 1), false, RefusalKind::Range);
    let s = *o.statement().shield();
    assert_eq!(
        (s.refusal_kind, s.refusal_region, s.refusal_addr),
        (RefusalKind::Range, 0xff, 0x9000)
    );
    // A burst over an open and a closed chunk: the open part is written, one refusal is counted.
    o.model.axi_write(&Burst::whole(0x1_0000, 8), &[beat(1); 8]);
    assert_eq!(o.model.axi_write(&Burst::whole(0x1_0000, 16), &[beat(2); 16]), Resp::SlvErr);
    assert_eq!(o.statement().written(1).unwrap().count(), 2);
    assert_eq!(o.statement().shield().refusals, count + 1);
}

#[test]
fn without_a_session_nothing_is_served() {
    let mut model = shef_model::Model::new(small_config(), Box::new(NoAccelerator));
    assert!(
        model
            .axi_read(&Burst::whole(0, 4))
            .iter()
            .all(|b| b.resp == Resp::SlvErr && b.data == [0; 64])
    );
    assert!(ring(&mut model, &[0; 88]).is_none());
    for addr in [0x14, 0x40, 0x104, 0x200, 0x204, 0x1000, 0x2000, 0x2158, 0xfffc] {
        assert_eq!(model.ctl_read(addr), None, "{addr:#x}");
    }
    for addr in [0, 0x20, 0x100, 0x120, 0x2100, 0x1400, 0x2058] {
        assert_eq!(model.ctl_write(addr, 1), None, "{addr:#x}");
    }
    assert_eq!(model.ctl_read(0), Some(u32::from_le_bytes(*b"SHEF")));
    assert_eq!(model.ctl_read(ctl::SHAPE), Some(0x411));
    assert_eq!(model.krn_read(krn::SEED), None);
}

#[test]
fn wipe_and_a_second_session() {
    let mut o = Owner::start(small_config(), Box::new(NoAccelerator), 1);
    o.model.axi_write(&Burst::whole(0x1_0000, 8), &[beat(1); 8]);
    assert_eq!(o.ask(ShieldRequest::abort()).status, 0);
    // The seed is erased once it is taken: a second command without a new seed, or with a partial
    // one, is refused and has no effect.
    assert_eq!(o.model.krn_write(krn::CTRL, krn::CTRL_SEED.put(1)), None);
    o.model.krn_write(krn::SEED, 1).unwrap();
    assert_eq!(o.model.krn_write(krn::CTRL, krn::CTRL_SEED.put(1)), None);
    assert_eq!(state(&o.model), ctl::STATUS_STATE_CLOSED);
    o.model.krn_write(krn::CTRL, krn::CTRL_WIPE.put(1)).unwrap();
    let pk = seed(&mut o.model, &[1; 32]);
    let config = small_config();
    let (m, keys) = seal_load_key(
        &config,
        &pk,
        b"",
        &shef_proto::load::first_epochs(&config, 1),
        &mut SeededEntropy::new(9, "owner"),
    )
    .unwrap();
    assert!(!load(&mut o.model, &o.load_key.clone()), "the Load Key of the old session");
    assert!(load(&mut o.model, &m));
    o.channel = shef_proto::channel::OwnerChannel::new(&keys);
    assert_eq!(o.statement().written(1).unwrap().count(), 0);
    // The old session's chunk and tag are still in memory, and are not served.
    assert_eq!(o.model.axi_read(&Burst::whole(0x1_0000, 1))[0].resp, Resp::SlvErr);
    o.model.krn_write(krn::CTRL, krn::CTRL_WIPE.put(1)).unwrap();
    assert_eq!(state(&o.model), ctl::STATUS_STATE_EMPTY);
    assert_eq!(krn_bytes(&o.model, krn::T, 32), [0; 32]);
    assert_eq!(response(&o.model), [0; 88]);
}
