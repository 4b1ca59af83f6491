//! Configuration, Load Key and register channel: round trips, strictness, and both ends against
//! each other.

use proptest::prelude::*;
use shef_proto::channel::{
    ChannelError, Counter, FaultKind, MESSAGE_LEN, Op, OwnerChannel, Received, RefusalKind,
    RegionStatement, ShieldAnswer, ShieldChannel, ShieldRequest, ShieldStatement, State,
    Statistics, WrittenMap, status,
};
use shef_proto::config::{Config, ConfigError, Field, Mode, OnFault, Region, Set};
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{
    FirstEpoch, Info, Key, LoadError, Message, SessionKeys, first_epochs, open_load_key,
    seal_load_key,
};

fn region(id: u8, mode: Mode, base: u64, size: u64, chunk: u32, tag_base: u64) -> Region {
    Region {
        id,
        name: format!("r{id}"),
        mode,
        base,
        size,
        chunk,
        key_bits: 256,
        tag_base,
        ..Region::default()
    }
}

fn regions() -> Vec<Region> {
    vec![
        region(0, Mode::Input, 0, 0x10000, 4096, 0x100000),
        region(1, Mode::Output, 0x10000, 0x4000, 512, 0x101000),
        region(2, Mode::Input, 0x20000, 0x1000, 64, 0x102000),
    ]
}

fn config() -> Config {
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions()).unwrap()
}

fn refused(change: impl FnOnce(&mut Vec<Region>)) -> ConfigError {
    let mut r = regions();
    change(&mut r);
    Config::new(OnFault::Shield, 1, vec![Set::default()], r).unwrap_err()
}

fn counted(r: &mut Region, bits: u8) {
    r.mode = Mode::Counted;
    r.counter_bits = Some(bits);
}

fn tree(r: &mut Region, node_base: u64) {
    r.mode = Mode::Tree;
    r.node_base = Some(node_base);
}

/// Moves a region and its tags to free address space.
fn big(r: &mut Region, mode: Mode, size: u64) {
    r.mode = mode;
    r.chunk = 64;
    r.size = size;
    r.base = u64::from(r.id) << 56;
    r.tag_base = r.base + (1 << 55);
}

fn field(e: &ConfigError) -> Option<Field> {
    match e {
        ConfigError::Region { field, .. }
        | ConfigError::Overlap { field, .. }
        | ConfigError::Set { field, .. }
        | ConfigError::Rule { field, .. } => Some(*field),
        _ => None,
    }
}

#[test]
fn configurations_that_break_a_rule() {
    let cases: Vec<(ConfigError, &str, Field)> = vec![
        (refused(|r| r[1].base = 0x10040), "SHEF-PRO-202", Field::Base),
        (refused(|r| r[1].size = 0), "SHEF-PRO-202", Field::Size),
        (refused(|r| r[1].size = 0x4200), "SHEF-PRO-202", Field::Size),
        (refused(|r| r[0].base = u64::MAX - 0xfff), "SHEF-PRO-202", Field::Size),
        (refused(|r| r[0].tag_base = u64::MAX - 0xfff), "SHEF-PRO-202", Field::TagBase),
        (refused(|r| r[0].tag_base = 0x100800), "SHEF-PRO-202", Field::TagBase),
        (refused(|r| r[0].chunk = 32), "SHEF-PRO-202", Field::Chunk),
        (refused(|r| r[0].chunk = 8192), "SHEF-PRO-202", Field::Chunk),
        (refused(|r| r[0].chunk = 768), "SHEF-PRO-202", Field::Chunk),
        (refused(|r| r[0].chunk = 0), "SHEF-PRO-202", Field::Chunk),
        (refused(|r| r[0].key_bits = 192), "SHEF-PRO-202", Field::Key),
        (refused(|r| r[2].name = "r0".into()), "SHEF-PRO-202", Field::Name),
        (refused(|r| r[2].name = String::new()), "SHEF-PRO-202", Field::Name),
        (refused(|r| r[2].name = "Großer".into()), "SHEF-PRO-202", Field::Name),
        (refused(|r| r[2].id = 3), "SHEF-PRO-202", Field::Region),
        (refused(|r| r[2].port = 1), "SHEF-PRO-202", Field::Port),
        (refused(|r| r[2].set = 1), "SHEF-PRO-202", Field::Set),
        (refused(|r| r[2].node_base = Some(0x200000)), "SHEF-PRO-202", Field::NodeBase),
        (refused(|r| r[1].base = 0xf000), "SHEF-PRO-203", Field::Base),
        (refused(|r| r[1].tag_base = 0x100000), "SHEF-PRO-203", Field::TagBase),
        (refused(|r| r[1].tag_base = 0x13000), "SHEF-PRO-203", Field::TagBase),
        (refused(|r| r[2].base = 0x102000), "SHEF-PRO-203", Field::TagBase),
        (refused(|r| r[2].mode = Mode::Counted), "SHEF-PRO-202", Field::Counter),
        (refused(|r| r[2].counter_bits = Some(36)), "SHEF-PRO-202", Field::Counter),
        (refused(|r| r[2].prefetch = 9), "SHEF-PRO-202", Field::Prefetch),
        (refused(|r| r[0].mode = Mode::Tree), "SHEF-PRO-202", Field::NodeBase),
        (refused(|r| tree(&mut r[0], 0x200800)), "SHEF-PRO-202", Field::NodeBase),
        (refused(|r| tree(&mut r[0], u64::MAX - 0xfff)), "SHEF-PRO-202", Field::NodeBase),
        (refused(|r| tree(&mut r[0], 0x101000)), "SHEF-PRO-203", Field::TagBase),
        (refused(|r| tree(&mut r[2], 0x10000)), "SHEF-PRO-203", Field::NodeBase),
        (refused(|r| counted(&mut r[2], 40)), "SHEF-PRO-202", Field::Counter),
        (refused(|r| r[0].prefetch = 6), "SHEF-PRO-202", Field::Prefetch),
        (
            refused(|r| big(&mut r[1], Mode::Output, (1 << 32) + 0x1000)),
            "SHEF-PRO-202",
            Field::Size,
        ),
        (
            refused(|r| {
                counted(&mut r[1], 36);
                big(&mut r[1], Mode::Counted, 1 << 28);
                r[1].tag_base = 1 << 60;
                counted(&mut r[2], 48);
            }),
            "SHEF-PRO-202",
            Field::Size,
        ),
        (
            refused(|r| {
                for (i, r) in r.iter_mut().enumerate() {
                    big(r, Mode::Tree, 1 << 31);
                    tree(r, (i as u64 + 1) << 50);
                }
            }),
            "SHEF-PRO-202",
            Field::Size,
        ),
    ];
    for (e, code, f) in cases {
        assert_eq!((e.code(), field(&e)), (code, Some(f)), "{e}");
    }
    let new = |on_fault, ports, sets: Vec<Set>, r: Vec<Region>| {
        Config::new(on_fault, ports, sets, r).unwrap_err().code()
    };
    assert_eq!(new(OnFault::Shield, 1, vec![Set::default()], vec![]), "SHEF-PRO-202");
    assert_eq!(new(OnFault::Shield, 0, vec![Set::default()], regions()), "SHEF-PRO-202");
    assert_eq!(new(OnFault::Shield, 1, vec![], regions()), "SHEF-PRO-202");
    assert_eq!(
        new(OnFault::Shield, 1, vec![Set { lanes: 3, ..Set::default() }], regions()),
        "SHEF-PRO-202"
    );
    for (big_lines, small_lines) in [(2, 32), (8, 2), (33, 32), (0, 0), (u16::MAX, u16::MAX)] {
        let set = Set { big_lines, small_lines, ..Set::default() };
        assert_eq!(
            new(OnFault::Shield, 1, vec![set], regions()),
            "SHEF-PRO-202",
            "{big_lines} {small_lines}"
        );
    }
    let many = (0..17)
        .map(|i| {
            region(
                i,
                Mode::Input,
                0x1000 * u64::from(i),
                0x1000,
                4096,
                0x100000 + 0x1000 * u64::from(i),
            )
        })
        .collect();
    assert_eq!(new(OnFault::Shield, 1, vec![Set::default()], many), "SHEF-PRO-202");
}

/// The end of the last range: of tags here, of the nodes of a tree above them.
#[test]
fn a_configuration_ends_at_its_last_range() {
    let mut regions = regions();
    assert_eq!(config().memory_end(), 0x102000 + regions[2].tag_size());
    tree(&mut regions[1], 0x4_0000_0000);
    let end = 0x4_0000_0000 + regions[1].node_size();
    let config = Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap();
    assert_eq!(config.memory_end(), end);
}

#[test]
fn shapes_that_break_a_rule() {
    let refused = |ports, sets: Vec<Set>, change: fn(&mut Vec<Region>)| {
        let mut r = regions();
        change(&mut r);
        let e = Config::new(OnFault::Shield, ports, sets, r).unwrap_err();
        (e.code(), field(&e).unwrap())
    };
    let set = |acc| Set { acc, ..Set::default() };
    let cached = |cache_bytes, cache_line| Set { cache_bytes, cache_line, ..Set::default() };
    let one = |s: Set| vec![s];
    let all_4k: fn(&mut Vec<Region>) = |r| {
        r[1].chunk = 4096;
        r[2].chunk = 4096;
    };
    for (found, at) in [
        (refused(5, one(set(0)), |_| {}), Field::Ports),
        (refused(1, vec![set(0); 5], |_| {}), Field::Sets),
        (refused(1, one(set(4)), |_| {}), Field::Acc),
        (refused(1, vec![set(0), set(2)], |r| r[1].set = 1), Field::Acc),
        (refused(1, vec![set(0), set(1)], |_| {}), Field::Set),
        (refused(2, one(set(0)), |r| r[2].port = 1), Field::Port),
        (refused(1, one(cached(0, 64)), |_| {}), Field::CacheLine),
        (refused(1, one(cached(1 << 18, 0)), |_| {}), Field::CacheLine),
        (refused(1, one(cached(1 << 18, 96)), |_| {}), Field::CacheLine),
        (refused(1, one(cached(3 << 17, 64)), |_| {}), Field::Cache),
        (refused(1, one(cached(1024, 64)), |_| {}), Field::Cache),
        (refused(1, one(cached(1 << 24, 64)), |_| {}), Field::Cache),
        (refused(1, one(cached(1 << 18, 4096)), all_4k), Field::Mode),
        (refused(1, one(cached(1 << 18, 64)), |r| r[1].mode = Mode::Input), Field::Chunk),
    ] {
        assert_eq!(found, ("SHEF-PRO-202", at));
    }
}

#[test]
fn every_mode_policy_and_shape_survives_the_bytes() {
    let mut r = regions();
    counted(&mut r[0], 48);
    tree(&mut r[1], 0x200000);
    r.push(Region {
        mode: Mode::Bypass,
        tag_base: 0,
        port: 1,
        set: 1,
        ..region(3, Mode::Input, 0x400000, 0x10000, 512, 0)
    });
    r[2].prefetch = 8;
    (r[2].set, r[2].port) = (2, 1);
    let sets = vec![
        Set::default(),
        Set { cache_bytes: 1 << 16, cache_line: 512, acc: 1, ..Set::default() },
        Set::default(),
    ];
    for on_fault in [OnFault::Shield, OnFault::Region, OnFault::Halt] {
        let config = Config::new(on_fault, 2, sets.clone(), r.clone()).unwrap();
        assert_eq!(Config::from_cbor(&config.to_cbor()).unwrap(), config);
        assert_eq!((config.accelerator_ports(), config.set_port(0), config.set_port(1)), (2, 0, 1));
    }
}

/// Memory ports, engine sets and regions are all present or all absent.
#[test]
fn a_shield_may_have_no_memory() {
    let none = Config::new(OnFault::Shield, 0, vec![], vec![]).unwrap();
    assert!(!none.has_memory() && config().has_memory());
    assert_eq!(
        (none.accelerator_ports(), none.set_port(0), none.epoch_regions().count()),
        (0, 0, 0)
    );
    assert_eq!(hex::encode(none.to_cbor()), "a6010102010300040005800680");
    assert_eq!(Config::from_cbor(&none.to_cbor()).unwrap(), none);
    // SHA-256 of these 13 bytes
    assert_eq!(
        hex::encode(none.digest()),
        "bc756feff19efa7d00a7bec6acc9c18b4e3ed3e22b2bd3a82145ac2237baf1ea"
    );
    let halt = Config::new(OnFault::Halt, 0, vec![], vec![]).unwrap();
    assert_ne!(halt.digest(), none.digest());
    for (ports, sets, regions, at) in [
        (1, vec![], vec![], Field::Sets),
        (0, vec![Set::default()], vec![], Field::Ports),
        (1, vec![Set::default()], vec![], Field::Regions),
        (0, vec![], regions(), Field::Ports),
        (1, vec![], regions(), Field::Sets),
    ] {
        let e = Config::new(OnFault::Shield, ports, sets, regions).unwrap_err();
        assert_eq!((e.code(), field(&e)), ("SHEF-PRO-202", Some(at)));
        assert!(
            e.to_string().ends_with(
                ", found 0: memory ports, engine sets and regions are there together or not at all"
            ),
            "{e}"
        );
    }
    // a session has a Load Key without epochs, and the channel's keys
    let (sk, pk) = derive_key_pair(&[3; 32]);
    let (message, owner) =
        seal_load_key(&none, &pk, b"", &first_epochs(&none, 1), &mut SeededEntropy::new(1, "none"))
            .unwrap();
    let (shield, epochs) = open_load_key(&none, &sk, &message).unwrap();
    assert!(epochs.is_empty() && owner.data_key(0).is_none());
    owner.check_confirmation(&shield.confirmation()).unwrap();
    assert!(open_load_key(&halt, &sk, &message).is_err());
}

#[test]
fn trees_have_the_fewest_levels() {
    let shape = |size: u64, chunk| {
        let mut r = region(0, Mode::Tree, 0, size, chunk, 0);
        r.node_base = Some(0x1000);
        (r.tree_levels(), r.root_entries(), r.node_size())
    };
    // chunks: 1, 8 * 65536, one page more, 2^28
    assert_eq!(shape(4096, 4096), (1, 1, 4096));
    assert_eq!(shape(1 << 31, 4096), (1, 1 << 16, 1 << 22));
    assert_eq!(
        shape((1 << 31) + 4096, 4096),
        (2, 8193, ((1 << 16) + 1 + 8193) * 64 / 4096 * 4096 + 4096)
    );
    assert_eq!(
        shape(1 << 34, 64),
        (4, 1 << 16, ((1 << 25) + (1 << 22) + (1 << 19) + (1 << 16)) * 64)
    );
    let mut r = region(0, Mode::Tree, 0, 1 << 34, 64, 0);
    r.node_base = Some(0x1000);
    assert_eq!(r.node_addr(2, 3), 0x1000 + ((1 << 25) + (1 << 22) + 3) * 64);
    assert_eq!(region(0, Mode::Input, 0, 1 << 34, 64, 0).node_size(), 0);
}

#[test]
fn configuration_bytes_are_the_documented_ones() {
    let one = Config::new(
        OnFault::Shield,
        1,
        vec![Set::default()],
        vec![region(0, Mode::Output, 0x1000, 0x2000, 512, 0x10000)],
    )
    .unwrap();
    assert_eq!(
        hex::encode(one.to_cbor()),
        "a60101020103000401\
         0581a701040208031820041902000500060007000681ab0100026272300302\
         04191000\
         05192000\
         06190200\
         07190100\
         0800\
         0900\
         0a1a00010000\
         0c00"
            .replace([' ', '\n'], "")
    );
}

#[test]
fn configuration_decoder_takes_one_form_only() {
    let good = config().to_cbor();
    assert_eq!(Config::from_cbor(&good).unwrap(), config());
    for n in 0..good.len() {
        assert!(Config::from_cbor(&good[..n]).is_err(), "{n} bytes");
    }
    let mut long = good.clone();
    long.push(0);
    assert_eq!(Config::from_cbor(&long).unwrap_err().code(), "SHEF-PRO-200");
    // A longer form of a number, an indefinite map, reordered keys.
    let mut wide = good.clone();
    wide.splice(2..3, [0x18, 0x01]);
    assert_eq!(Config::from_cbor(&wide).unwrap_err().code(), "SHEF-PRO-200");
    let mut indefinite = good.clone();
    indefinite[0] = 0xbf;
    indefinite.push(0xff);
    assert_eq!(Config::from_cbor(&indefinite).unwrap_err().code(), "SHEF-PRO-200");
    let mut order = good.clone();
    order[1..5].rotate_left(2);
    assert_eq!(Config::from_cbor(&order).unwrap_err().code(), "SHEF-PRO-200");
    let mut version = good.clone();
    version[2] = 2;
    assert_eq!(Config::from_cbor(&version).unwrap_err().code(), "SHEF-PRO-201");
    let mut suite = good.clone();
    suite[4] = 2;
    assert_eq!(Config::from_cbor(&suite).unwrap_err().code(), "SHEF-PRO-201");
}

fn session(seed: u64) -> (Config, SessionKeys, SessionKeys) {
    let c = config();
    let (sk, pk) = derive_key_pair(&seed.to_be_bytes().repeat(4));
    let (m, owner) = seal_load_key(
        &c,
        &pk,
        b"info",
        &first_epochs(&c, 3),
        &mut SeededEntropy::new(seed, "owner"),
    )
    .unwrap();
    let (shield, epochs) = open_load_key(&c, &sk, &m).unwrap();
    assert_eq!(epochs, first_epochs(&c, 3));
    (c, owner, shield)
}

#[test]
fn both_sides_have_the_same_keys_and_all_keys_differ() {
    let (_, mut owner, shield) = session(5);
    assert_eq!(owner.transcript(), shield.transcript());
    owner.check_confirmation(&shield.confirmation()).unwrap();
    let mut wrong = shield.confirmation();
    wrong[31] ^= 1;
    assert_eq!(owner.check_confirmation(&wrong), Err(LoadError::Confirmation));
    assert_eq!(owner.check_confirmation(&wrong[..31]), Err(LoadError::Confirmation));
    let mut all: Vec<Vec<u8>> =
        (0..3).map(|r| owner.data_key(r).unwrap().expose().to_vec()).collect();
    all.push(owner.to_shield().expose().to_vec());
    all.push(owner.to_owner().expose().to_vec());
    all.push(owner.confirmation().to_vec());
    let (_, other, _) = session(6);
    all.push(other.data_key(0).unwrap().expose().to_vec());
    for i in 0..all.len() {
        assert!(all[..i].iter().all(|k| *k != all[i]), "key {i}");
    }
    assert_eq!(shield.data_key(1).unwrap().expose(), owner.data_key(1).unwrap().expose());
    assert!(owner.take_data_key(1).is_some());
    assert!(owner.take_data_key(1).is_none() && owner.data_key(1).is_none());
    assert!(owner.data_key(3).is_none());
    assert!(Key::new(&[0; 24]).is_none());
}

#[test]
fn epochs_must_name_every_region_once() {
    let c = config();
    let (_, pk) = derive_key_pair(&[1; 32]);
    let e = |list: &[(u8, u64)]| {
        list.iter().map(|&(region, epoch)| FirstEpoch { region, epoch }).collect::<Vec<_>>()
    };
    for bad in [
        &[(0, 1), (1, 1)][..],
        &[(0, 1), (1, 1), (2, 1), (2, 1)],
        &[(1, 1), (0, 1), (2, 1)],
        &[(0, 1), (1, 1), (2, 1 << 48)],
        &[],
        &[(0, 1), (1, 1), (3, 1)],
    ] {
        let err = seal_load_key(&c, &pk, b"", &e(bad), &mut SeededEntropy::new(1, "t"))
            .map(drop)
            .unwrap_err();
        assert_eq!(err.code(), "SHEF-PRO-233");
    }
    assert_eq!(
        seal_load_key(&c, &pk, &[0; 257], &first_epochs(&c, 1), &mut SeededEntropy::new(1, "t"))
            .map(drop),
        Err(LoadError::Info)
    );
    assert!(
        seal_load_key(&c, &pk, &[0; 256], &first_epochs(&c, 0), &mut SeededEntropy::new(1, "t"))
            .is_ok()
    );
}

#[test]
fn load_key_decoder_is_strict() {
    let c = config();
    let (sk, pk) = derive_key_pair(&[1; 32]);
    let (good, _) =
        seal_load_key(&c, &pk, b"info", &first_epochs(&c, 1), &mut SeededEntropy::new(1, "t"))
            .unwrap();
    let m = Message::from_bytes(&good).unwrap();
    assert_eq!(m.to_bytes(), good);
    for n in 0..good.len() {
        assert!(Message::from_bytes(&good[..n]).is_err(), "{n} bytes");
        let mut flipped = good.clone();
        flipped[n] ^= 1;
        assert!(open_load_key(&c, &sk, &flipped).is_err(), "byte {n}");
    }
    let mut long = good.clone();
    long.push(0);
    assert_eq!(Message::from_bytes(&long), Err(LoadError::Malformed("trailing bytes")));
    assert_eq!(Message::from_bytes(&[0; 1025]).unwrap_err().code(), "SHEF-PRO-230");
    let mut suite = good.clone();
    suite[1] = 2;
    assert_eq!(Message::from_bytes(&suite), Err(LoadError::Suite(2)));
    let swap = |f: &dyn Fn(&mut Message)| {
        let mut m = Message::from_bytes(&good).unwrap();
        f(&mut m);
        open_load_key(&c, &sk, &m.to_bytes()).map(drop)
    };
    assert_eq!(swap(&|m| m.info = b"other".to_vec()), Err(LoadError::Open));
    assert!(swap(&|m| m.info = vec![0; 257]).is_err());
    assert!(swap(&|m| m.ct = vec![0; 257]).is_err());
    assert!(swap(&|m| m.ct = vec![0; 15]).is_err());
    assert_eq!(swap(&|m| m.enc = *derive_key_pair(&[2; 32]).1.as_bytes()), Err(LoadError::Open));
    let (other, _) = derive_key_pair(&[3; 32]);
    assert_eq!(open_load_key(&c, &other, &good).map(drop), Err(LoadError::Open));
}

#[test]
fn info_has_one_form() {
    let info = Info { tenant: b"acme".to_vec(), evidence_digest: [7; 32], nonce: vec![9; 32] };
    let bytes = info.to_bytes().unwrap();
    assert_eq!(Info::from_bytes(&bytes).unwrap(), info);
    for n in 0..bytes.len() {
        assert_eq!(Info::from_bytes(&bytes[..n]), Err(LoadError::Info));
    }
    let mut long = bytes.clone();
    long.push(0);
    assert_eq!(Info::from_bytes(&long), Err(LoadError::Info));
    assert_eq!(Info { tenant: vec![0; 65], ..info }.to_bytes(), Err(LoadError::Info));
}

#[test]
fn channel_runs_each_request_once() {
    let (_, owner, shield) = session(9);
    let (mut o, mut s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
    assert!(matches!(s.receive(&[0; MESSAGE_LEN]), Received::Refused));
    assert_eq!(o.answer(&[0; MESSAGE_LEN]).unwrap_err(), ChannelError::Idle);
    let r1 = o.request(&ShieldRequest::write(0x10, 7)).unwrap();
    assert_eq!(r1[..8], 1u64.to_be_bytes());
    assert_eq!(o.request(&ShieldRequest::ping()).unwrap_err(), ChannelError::Busy { seq: 1 });
    assert_eq!(o.pending(), Some(&r1));
    let Received::Run(q) = s.receive(&r1) else { panic!("not run") };
    assert_eq!(q, ShieldRequest::write(0x10, 7));
    assert!(matches!(s.receive(&r1), Received::Refused), "while it runs");
    let a1 = s.answer(&ShieldAnswer::to(&q, status::DONE));
    // Reflected, damaged, and correct.
    assert_eq!(o.answer(&r1).unwrap_err(), ChannelError::NotAuthentic { seq: 1 });
    for at in 0..MESSAGE_LEN {
        let mut bad = a1;
        bad[at] ^= 0x80;
        assert_eq!(o.answer(&bad).unwrap_err(), ChannelError::NotAuthentic { seq: 1 }, "byte {at}");
    }
    assert_eq!(o.answer(&a1).unwrap().status, 0);
    let Received::Repeat(again) = s.receive(&r1) else { panic!("not repeated") };
    assert_eq!(*again, a1);
    // The next request: an old answer does not match it, and an old request does not run again.
    let r2 = o.request(&ShieldRequest::read(0x10)).unwrap();
    assert_eq!(o.answer(&a1).unwrap_err(), ChannelError::NotAuthentic { seq: 2 });
    let Received::Run(q2) = s.receive(&r2) else { panic!("not run") };
    let a2 = s.answer(&ShieldAnswer { value: 5, ..ShieldAnswer::to(&q2, 0) });
    assert!(matches!(s.receive(&r1), Received::Refused));
    assert_eq!(o.answer(&a2).unwrap().value, 5);
    // An answer to another request is rejected, even if it is sealed correctly.
    let r3 = o.request(&ShieldRequest::map(1, 0)).unwrap();
    let Received::Run(q3) = s.receive(&r3) else { panic!("not run") };
    let a3 = s.answer(&ShieldAnswer { addr: 1, ..ShieldAnswer::to(&q3, 0) });
    assert_eq!(o.answer(&a3).unwrap_err(), ChannelError::NotAuthentic { seq: 3 });
    // The answer to an earlier equal request does not match this one.
    let (_, owner, shield) = session(9);
    let (mut o, mut s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
    let mut old = [0; MESSAGE_LEN];
    for seq in 1..3 {
        let r = o.request(&ShieldRequest::ping()).unwrap();
        if seq == 2 {
            assert_eq!(o.answer(&old).unwrap_err(), ChannelError::NotAuthentic { seq: 2 });
        }
        let Received::Run(q) = s.receive(&r) else { panic!("not run") };
        old = s.answer(&ShieldAnswer::to(&q, 0));
        o.answer(&old).unwrap();
    }
    // A skipped number is refused.
    let (_, owner, shield) = session(9);
    let (mut o, mut s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
    let first = o.request(&ShieldRequest::ping()).unwrap();
    let Received::Run(q) = ShieldChannel::new(&shield).receive(&first) else { panic!("not run") };
    let mut helper = ShieldChannel::new(&shield);
    helper.receive(&first);
    o.answer(&helper.answer(&ShieldAnswer::to(&q, 0))).unwrap();
    let second = o.request(&ShieldRequest::ping()).unwrap();
    assert!(matches!(s.receive(&second), Received::Refused), "number 2 before number 1");
    assert!(matches!(s.receive(&first), Received::Run(_)));
}

#[test]
fn a_closed_channel_takes_nothing() {
    let (_, owner, shield) = session(9);
    let (mut o, mut s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
    let r = o.request(&ShieldRequest::abort()).unwrap();
    let Received::Run(q) = s.receive(&r) else { panic!("not run") };
    o.answer(&s.answer(&ShieldAnswer::to(&q, 0))).unwrap();
    assert_eq!(o.request(&ShieldRequest::ping()).unwrap_err(), ChannelError::Closed);
}

/// The last statement of a stopped Shield, as request `requests`.
fn last_words(requests: u64) -> ShieldStatement {
    ShieldStatement {
        state: State::Closed,
        stopped: true,
        fault_kind: FaultKind::Tag,
        fault_region: 1,
        faults: 1,
        fault_chunk: 7,
        fault_version: 3,
        ..ShieldStatement::keyed(requests)
    }
}

#[test]
fn a_halt_ends_the_channel_whatever_the_owner_waits_for() {
    let (_, owner, shield) = session(10);
    for lost in [0, 1, 2] {
        let (mut o, mut s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
        let ran = o.request(&ShieldRequest::ping()).unwrap();
        let Received::Run(q) = s.receive(&ran) else { panic!("not run") };
        let answer = s.answer(&ShieldAnswer::to(&q, 0));
        let last = last_words(2);
        let halt = s.halt(last.to_payload());
        match lost {
            // the answer arrived, and no request is in flight
            0 => drop(o.answer(&answer).unwrap()),
            // the answer was lost
            1 => {}
            // the next request came too late
            _ => {
                o.answer(&answer).unwrap();
                o.request(&ShieldRequest::flush()).unwrap();
            }
        }
        for at in 0..88 {
            let mut bad = halt;
            bad[at] ^= 1;
            assert_eq!(o.halted(&bad), Ok(()), "byte {at}");
        }
        assert_eq!(o.halted(&answer), Ok(()), "an old answer is no halt");
        assert_eq!(o.halted(&halt), Err(ChannelError::Halted { last, ran: lost != 2 }));
        assert_eq!(o.last(), Some((&last, &halt)));
        assert_eq!(
            o.request(&ShieldRequest::ping()).unwrap_err(),
            ChannelError::Halted { last, ran: false }
        );
        assert_eq!(o.pending(), None);
    }
    // a message with another state or number is not a last message; nor is one that comes too early
    for (last, error) in [
        (ShieldStatement { state: State::Keyed, ..last_words(1) }, true),
        (last_words(2), true),
        (last_words(1), false),
    ] {
        let (mut o, s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
        let found = o.halted(&s.halt(last.to_payload()));
        assert_eq!(
            found,
            Err(if error {
                ChannelError::Impossible { seq: 1, what: "last message" }
            } else {
                ChannelError::Halted { last, ran: true }
            })
        );
    }
    let (mut o, mut s) = (OwnerChannel::new(&owner), ShieldChannel::new(&shield));
    let mut ahead = OwnerChannel::new(&owner);
    let Received::Run(q) = s.receive(&ahead.request(&ShieldRequest::ping()).unwrap()) else {
        panic!("not run")
    };
    s.answer(&ShieldAnswer::to(&q, 0));
    assert_eq!(o.halted(&s.halt(last_words(2).to_payload())), Ok(()), "two ahead of this owner");
    assert_eq!(Op::from_number(shef_proto::channel::HALT), None, "nobody can ask for it");
}

#[test]
fn statistics_are_two_pages_of_48_bit_counters() {
    let mut counters = [0; 16];
    for (n, c) in (0..).zip(&mut counters) {
        *c = 0x0102_0304_0500 + n;
    }
    counters[15] = u64::MAX;
    let s = Statistics::new(counters);
    let (a, b) = (s.page(0).unwrap(), s.page(1).unwrap());
    assert_eq!(a[..12], [0, 5, 4, 3, 2, 1, 1, 5, 4, 3, 2, 1]);
    assert_eq!(b[42..], [0xff; 6], "a counter stops at its largest value");
    assert_eq!(Statistics::from_payloads([&a, &b]), s);
    assert_eq!(s.page(2), None);
    for (n, c) in Counter::ALL.into_iter().enumerate().take(15) {
        assert_eq!(s.get(c), 0x0102_0304_0500 + n as u64, "{}", c.name());
    }
}

#[test]
fn numbers_of_operations_and_kinds() {
    for op in Op::ALL {
        assert_eq!(Op::from_number(op as u8), Some(op));
    }
    assert_eq!(Op::from_number(0), None);
    assert_eq!((0..=255).filter_map(FaultKind::from_number).count(), 7);
    assert_eq!((0..=255).filter_map(RefusalKind::from_number).count(), 10);
    assert_eq!((0..=255).filter_map(Mode::from_number).count(), 5);
    for m in (0..=255).filter_map(Mode::from_number) {
        assert_eq!(Mode::from_name(m.name()), Some(m));
    }
}

#[test]
fn statement_pages_with_impossible_values_are_refused() {
    let page = ShieldStatement {
        state: State::Keyed,
        stopped: true,
        fault_kind: FaultKind::Bus,
        fault_region: 2,
        faults: 1,
        refusals: 3,
        refusal_kind: RefusalKind::Range,
        refusal_region: 0xff,
        fault_chunk: 77,
        fault_version: 5,
        refusal_addr: 0x1234,
        requests: 9,
    };
    let p = page.to_payload();
    assert_eq!(ShieldStatement::from_payload(&p), Some(page));
    for (at, v) in [(0, 3), (1, 2), (2, 7), (12, 10), (14, 1), (15, 1)] {
        let mut bad = p;
        bad[at] = v;
        assert_eq!(ShieldStatement::from_payload(&bad), None, "byte {at}");
    }
    let r = RegionStatement {
        mode: Mode::Output,
        chunk_log2: 9,
        frozen: false,
        written: 4,
        epoch: 3,
        chunks: 8,
    };
    let p = r.to_payload();
    assert_eq!(RegionStatement::from_payload(&p), Some(r));
    let frozen = RegionStatement { frozen: true, ..r };
    assert_eq!(RegionStatement::from_payload(&frozen.to_payload()), Some(frozen));
    for (at, v) in [(0, 0), (0, 6), (2, 2), (3, 1), (24, 1), (47, 1)] {
        let mut bad = p;
        bad[at] = v;
        assert_eq!(RegionStatement::from_payload(&bad), None, "byte {at}");
    }
}

#[test]
fn seeded_entropy_is_repeatable_and_separated_by_label() {
    let take = |seed, label: &str, sizes: &[usize]| {
        let mut e = SeededEntropy::new(seed, label);
        sizes
            .iter()
            .flat_map(|&n| {
                let mut b = vec![0; n];
                e.fill(&mut b);
                b
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(take(1, "a", &[100]), take(1, "a", &[1, 31, 3, 65]));
    assert_ne!(take(1, "a", &[32]), take(2, "a", &[32]));
    assert_ne!(take(1, "a", &[32]), take(1, "b", &[32]));
}

#[test]
fn codes_are_unique_and_of_this_crate() {
    let all: Vec<&str> = [
        shef_proto::config::ConfigError::CODES,
        shef_proto::load::LoadError::CODES,
        shef_proto::channel::ChannelError::CODES,
        shef_proto::hpke_suite::HpkeError::CODES,
    ]
    .iter()
    .flat_map(|c| c.iter().map(|c| c.id))
    .collect();
    for (i, c) in all.iter().enumerate() {
        assert!(c.starts_with("SHEF-PRO-2") && !all[..i].contains(c), "{c}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_and_answers_round_trip(op: u8, region: u8, addr: u32, value: u64, st: u16, payload in prop::array::uniform32(any::<u8>())) {
        let r = ShieldRequest { op, region, addr, value };
        prop_assert_eq!(ShieldRequest::from_bytes(&r.to_bytes()), r);
        let mut a = ShieldAnswer { status: st, value, ..ShieldAnswer::to(&r, 0) };
        a.payload[..32].copy_from_slice(&payload);
        prop_assert_eq!(ShieldAnswer::from_bytes(&a.to_bytes()), a);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let (sk, _) = derive_key_pair(&[1; 32]);
        prop_assert!(Config::from_cbor(&bytes).is_err());
        prop_assert!(open_load_key(&config(), &sk, &bytes).is_err());
        let _ = Info::from_bytes(&bytes);
    }

    #[test]
    fn damaged_configurations_do_not_pass_as_the_same(at: prop::sample::Index, bit in 0u8..8) {
        let good = config().to_cbor();
        let mut bad = good.clone();
        bad[at.index(good.len())] ^= 1 << bit;
        if let Ok(c) = Config::from_cbor(&bad) {
            prop_assert_eq!(c.to_cbor(), bad);
            prop_assert_ne!(c.digest(), config().digest());
        }
    }

    #[test]
    fn configurations_round_trip(sizes in prop::collection::vec((1u64..64, 6u32..13, any::<bool>(), any::<bool>()), 1..16)) {
        let mut at = 0;
        let mut list = Vec::new();
        for (i, (pages, log2, output, wide)) in sizes.into_iter().enumerate() {
            let mut r = region(i as u8, if output { Mode::Output } else { Mode::Input }, at, pages * 4096, 1 << log2, 0);
            r.key_bits = if wide { 256 } else { 128 };
            r.tag_base = at + r.size;
            at = r.tag_base + r.tag_size();
            list.push(r);
        }
        let c = Config::new(OnFault::Shield, 1, vec![Set::default()], list).unwrap();
        prop_assert_eq!(Config::from_cbor(&c.to_cbor()).unwrap(), c);
    }

    #[test]
    fn written_maps_keep_what_they_were_told(chunks in 1u64..1000, set in prop::collection::btree_set(0u64..1000, 0..100)) {
        let mut m = WrittenMap::empty(chunks);
        for &i in &set {
            prop_assert_eq!(m.set(i), i < chunks);
            prop_assert!(!m.set(i));
        }
        for i in 0..1100 {
            prop_assert_eq!(m.is_written(i), i < chunks && set.contains(&i));
        }
        prop_assert_eq!(m.count(), set.range(..chunks).count() as u64);
        prop_assert!(m.page(chunks.div_ceil(384)).is_none() && m.page(0).is_some());
    }
}
