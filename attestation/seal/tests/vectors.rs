//! The project's vectors in
//! `tests/vectors/{load-key,register-channel,sealed-memory,tree-node}.json` match this code's
//! output. Every value is also computed independently from the reference page alone, with HKDF,
//! HPKE and AES-GCM called directly.
//!
//! `SHEF_WRITE_VECTORS=1 cargo test -p shef-seal --test vectors` writes the files.

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit, Nonce};
use hkdf::Hkdf;
use hpke::aead::AesGcm256;
use hpke::kdf::HkdfSha256;
use hpke::kem::DhP256HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shef_proto::channel::{
    FaultKind, OwnerChannel, Received, RefusalKind, RegionStatement, ShieldAnswer, ShieldChannel,
    ShieldRequest, ShieldStatement, State, WrittenMap, status,
};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{FirstEpoch, Info, Key, Message, SessionKeys, open_load_key, seal_load_key};
use shef_seal::{ChunkCipher, NodeCipher, Sealer, chunk_iv, node_iv};

const SEED: u64 = 1;

fn config() -> Config {
    let region = |id, name: &str, mode, base, size, chunk, key_bits, tag_base| Region {
        id,
        name: name.into(),
        mode,
        base,
        size,
        chunk,
        key_bits,
        tag_base,
        ..Region::default()
    };
    let regions = vec![
        region(0, "weights", Mode::Input, 0x0, 0x10000, 4096, 256, 0x100000),
        region(1, "rows", Mode::Input, 0x10000, 0x2000, 64, 128, 0x101000),
        region(2, "results", Mode::Output, 0x20000, 0x40000, 512, 256, 0x102000),
    ];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap()
}

fn drawn(label: &str, n: usize) -> Vec<u8> {
    let mut b = vec![0; n];
    SeededEntropy::new(SEED, label).fill(&mut b);
    b
}

struct Session {
    config: Config,
    seed: [u8; 32],
    info: Vec<u8>,
    epochs: Vec<FirstEpoch>,
    message: Vec<u8>,
    owner: SessionKeys,
    shield: SessionKeys,
}

fn session() -> Session {
    let config = config();
    let seed: [u8; 32] = drawn("kernel", 32).try_into().unwrap();
    let (sk, pk) = derive_key_pair(&seed);
    let info = Info {
        tenant: b"acme".to_vec(),
        evidence_digest: Sha256::digest(b"evidence").into(),
        nonce: drawn("nonce", 32),
    }
    .to_bytes()
    .unwrap();
    let epochs: Vec<_> = [(0, 1), (1, 0x1234_5678_9abc), (2, 7)]
        .into_iter()
        .map(|(region, epoch)| FirstEpoch { region, epoch })
        .collect();
    let (message, owner) =
        seal_load_key(&config, &pk, &info, &epochs, &mut SeededEntropy::new(SEED, "owner"))
            .unwrap();
    let (shield, _) = open_load_key(&config, &sk, &message).unwrap();
    Session { config, seed, info, epochs, message, owner, shield }
}

fn check(name: &str, made: Value) {
    let path = format!("{}/../../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
    if std::env::var_os("SHEF_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "tests/vectors/{name} differs; run SHEF_WRITE_VECTORS=1 cargo test -p shef-seal --test vectors"
    );
}

fn hkdf(prk: &[u8], info: &[&[u8]], len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    Hkdf::<Sha256>::from_prk(prk).unwrap().expand(&info.concat(), &mut out).unwrap();
    out
}

fn gcm(key: &[u8], iv: &[u8], data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut data, nonce) = (data.to_vec(), Nonce::try_from(iv).unwrap());
    let tag = match key.len() {
        16 => Aes128Gcm::new_from_slice(key).unwrap().encrypt_inout_detached(
            &nonce,
            &[],
            data.as_mut_slice().into(),
        ),
        _ => Aes256Gcm::new_from_slice(key).unwrap().encrypt_inout_detached(
            &nonce,
            &[],
            data.as_mut_slice().into(),
        ),
    };
    (data, tag.unwrap().to_vec())
}

#[test]
fn load_key() {
    let s = session();
    let (sk, pk) = derive_key_pair(&s.seed);
    let m = Message::from_bytes(&s.message).unwrap();
    let digest = s.config.digest();
    let draws = drawn("owner", 64);

    // From the reference page alone.
    let enc = <DhP256HkdfSha256 as Kem>::EncappedKey::from_bytes(&m.enc).unwrap();
    let key = <DhP256HkdfSha256 as Kem>::PrivateKey::from_bytes(&sk.to_bytes()[..]).unwrap();
    let mut ctx = hpke::setup_receiver::<AesGcm256, HkdfSha256, DhP256HkdfSha256>(
        &OpModeR::Base,
        &key,
        &enc,
        &m.info,
    )
    .unwrap();
    let aad = [&[0, 1][..], &digest].concat();
    let plaintext = ctx.open(&m.ct, &aad).unwrap();
    let mut expected = draws[..32].to_vec();
    expected.push(3);
    for e in &s.epochs {
        expected.push(e.region);
        expected.extend_from_slice(&e.epoch.to_be_bytes()[2..]);
    }
    assert_eq!(plaintext, expected);
    let t = Sha256::digest(
        [
            &b"shef-load/1\x00\x01"[..],
            &digest,
            &[0, 65],
            &m.enc,
            &[0, 65],
            pk.as_bytes(),
            &Sha256::digest(&m.info),
            &Sha256::digest(&m.ct),
        ]
        .concat(),
    );
    let mut export = [0; 32];
    ctx.export(b"shef-session", &mut export).unwrap();
    let (prk, _) = Hkdf::<Sha256>::extract(Some(&export), &draws[..32]);
    let master = hkdf(&prk, &[&t], 32);
    let derive = |usage: u8, direction: u8, region: u8, len| {
        hkdf(&master, &[b"shef-key/1", &[usage, direction, region]], len)
    };
    assert_eq!(t[..], s.owner.transcript().0);
    assert_eq!(derive(1, 0, 0, 32), s.owner.data_key(0).unwrap().expose());
    assert_eq!(derive(1, 0, 1, 16), s.owner.data_key(1).unwrap().expose());
    assert_eq!(derive(1, 0, 2, 32), s.shield.data_key(2).unwrap().expose());
    assert_eq!(derive(3, 1, 0xff, 32), s.owner.to_shield().expose());
    assert_eq!(derive(3, 2, 0xff, 32), s.owner.to_owner().expose());
    let confirm = derive(4, 0, 0xff, 32);
    use hmac::Mac;
    let mut mac = <hmac::Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&confirm).unwrap();
    mac.update(b"shield");
    mac.update(&t);
    assert_eq!(mac.finalize().into_bytes()[..], s.owner.confirmation());

    let mut refused = Vec::new();
    let mut refuse = |why: &str, message: Vec<u8>| {
        assert!(open_load_key(&s.config, &sk, &message).is_err(), "{why}");
        refused.push(json!({ "why": why, "message": hex::encode(message) }));
    };
    let changed = |f: &dyn Fn(&mut Vec<u8>)| {
        let mut b = s.message.clone();
        f(&mut b);
        b
    };
    refuse("empty", vec![]);
    refuse("truncated by a byte", changed(&|b| b.truncate(b.len() - 1)));
    refuse("a byte follows", changed(&|b| b.push(0)));
    refuse("suite 2", changed(&|b| b[1] = 2));
    refuse("enc_len 64", changed(&|b| b[3] = 64));
    refuse("enc in compressed form", changed(&|b| b[4] = 2));
    refuse("enc not on the curve", changed(&|b| b[68] ^= 1));
    refuse("enc is zero", changed(&|b| b[5..69].fill(0)));
    refuse("enc with x not below p", changed(&|b| b[5..37].fill(0xff)));
    refuse("info changed", changed(&|b| b[71] ^= 1));
    refuse(
        "ciphertext changed",
        changed(&|b| {
            let n = b.len();
            b[n - 17] ^= 1;
        }),
    );
    refuse(
        "tag changed",
        changed(&|b| {
            let n = b.len();
            b[n - 1] ^= 1;
        }),
    );
    let remade = |plaintext: &[u8], aad: &[u8]| {
        let mut e = SeededEntropy::new(SEED, "remade");
        let (enc, mut sender) =
            shef_proto::hpke_suite::Sender::setup(&pk, &m.info, &mut e).unwrap();
        Message { enc, info: m.info.clone(), ct: sender.seal(aad, plaintext).unwrap() }.to_bytes()
    };
    assert!(open_load_key(&s.config, &sk, &remade(&plaintext, &aad)).is_ok());
    refuse(
        "another configuration digest in the aad",
        remade(&plaintext, &[&[0, 1][..], &[0; 32]].concat()),
    );
    refuse("count too large", remade(&[&plaintext[..32], &[4], &plaintext[33..]].concat(), &aad));
    refuse("count too small", remade(&[&plaintext[..32], &[2], &plaintext[33..47]].concat(), &aad));
    refuse(
        "regions in another order",
        remade(
            &[&plaintext[..33], &plaintext[40..47], &plaintext[33..40], &plaintext[47..]].concat(),
            &aad,
        ),
    );
    refuse(
        "a region twice",
        remade(
            &[&plaintext[..33], &plaintext[33..40], &plaintext[33..40], &plaintext[47..]].concat(),
            &aad,
        ),
    );
    refuse("a byte after the list", remade(&[&plaintext[..], &[0]].concat(), &aad));
    refuse("plaintext of 32 bytes", remade(&plaintext[..32], &aad));

    check(
        "load-key.json",
        json!({
            "about": "One Load Key from seed to confirmation, and messages that must be refused (by the same Shield, in state FRESH); hexadecimal. docs/reference/load-key.md",
            "configuration": { "cbor": hex::encode(s.config.to_cbor()), "digest": hex::encode(digest) },
            "seed": hex::encode(s.seed),
            "shield_private_key": hex::encode(&sk.to_bytes()[..]),
            "shield_public_key": hex::encode(pk.as_bytes()),
            "info": hex::encode(&s.info),
            "epochs": s.epochs.iter().map(|e| json!({ "region": e.region, "epoch": e.epoch })).collect::<Vec<_>>(),
            "master": hex::encode(&draws[..32]),
            "ephemeral_ikm": hex::encode(&draws[32..]),
            "enc": hex::encode(m.enc),
            "aad": hex::encode(&aad),
            "plaintext": hex::encode(&plaintext),
            "ct": hex::encode(&m.ct),
            "message": hex::encode(&s.message),
            "transcript": hex::encode(t),
            "session_id": hex::encode(&t[..16]),
            "hpke_export": hex::encode(export),
            "session_master": hex::encode(&master),
            "data_keys": [hex::encode(derive(1, 0, 0, 32)), hex::encode(derive(1, 0, 1, 16)), hex::encode(derive(1, 0, 2, 32))],
            "channel_to_shield": hex::encode(derive(3, 1, 0xff, 32)),
            "channel_to_owner": hex::encode(derive(3, 2, 0xff, 32)),
            "confirmation_key": hex::encode(&confirm),
            "confirmation": hex::encode(s.owner.confirmation()),
            "refused": refused,
        }),
    );
}

#[test]
fn register_channel() {
    let s = session();
    let (mut owner, mut shield) = (OwnerChannel::new(&s.owner), ShieldChannel::new(&s.shield));
    let page0 = |state, requests| ShieldStatement {
        state,
        stopped: true,
        fault_kind: FaultKind::Tag,
        fault_region: 1,
        faults: 1,
        refusals: 2,
        refusal_kind: RefusalKind::Range,
        refusal_region: 0xff,
        fault_chunk: 0x21,
        fault_version: 0x1234_5678_9abc,
        refusal_addr: 0xffff_0000_1040,
        requests,
    };
    let mut map = WrittenMap::empty(512);
    [0, 9, 383, 384, 511].into_iter().for_each(|i| assert!(map.set(i)));
    let region = |r: &Region, written, epoch| RegionStatement {
        mode: r.mode,
        chunk_log2: r.chunk_log2(),
        frozen: false,
        written,
        epoch,
        chunks: r.chunks(),
    };
    let r = s.config.regions();
    let done = |payload: [u8; 48]| (status::DONE, 0, payload);
    let none = [0; 48];
    let cases = [
        ("PING", ShieldRequest::ping(), done(none)),
        ("WRITE of register 0x10", ShieldRequest::write(0x10, 1000), done(none)),
        ("READ of register 0x38", ShieldRequest::read(0x38), (status::DONE, 0x4449_4731, none)),
        (
            "READ that the accelerator refuses",
            ShieldRequest::read(0x40),
            (status::REGISTER, 0, none),
        ),
        (
            "unknown operation",
            ShieldRequest { op: 0x7f, region: 3, addr: 5, value: 6 },
            (status::BAD, 0, none),
        ),
        ("FLUSH", ShieldRequest::flush(), done(none)),
        ("INVALIDATE", ShieldRequest::invalidate(), done(none)),
        ("EPOCH", ShieldRequest::epoch(2, 8), done(none)),
        (
            "EPOCH that is not above the present one",
            ShieldRequest::epoch(2, 8),
            (status::BAD, 0, none),
        ),
        (
            "STATEMENT of region 0",
            ShieldRequest::statement(1),
            done(region(&r[0], 0, 1).to_payload()),
        ),
        (
            "STATEMENT of region 1",
            ShieldRequest::statement(2),
            done(region(&r[1], 0, 0x1234_5678_9abc).to_payload()),
        ),
        (
            "STATEMENT of region 2",
            ShieldRequest::statement(3),
            done(region(&r[2], 5, 8).to_payload()),
        ),
        ("MAP of region 2, chunks 0 to 383", ShieldRequest::map(2, 0), done(map.page(0).unwrap())),
        (
            "MAP of region 2, chunks 384 to 511",
            ShieldRequest::map(2, 1),
            done(map.page(1).unwrap()),
        ),
        ("FLUSH after a fault", ShieldRequest::flush(), (status::STOPPED, 0, none)),
        (
            "STATEMENT of the Shield after a fault",
            ShieldRequest::statement(0),
            done(page0(State::Keyed, 16).to_payload()),
        ),
        ("CLOSE", ShieldRequest::close(), done(page0(State::Closed, 17).to_payload())),
    ];
    let mut steps = Vec::new();
    for (what, request, (status, value, payload)) in cases {
        let sealed = owner.request(&request).unwrap();
        let Received::Run(seen) = shield.receive(&sealed) else { panic!("{what}: refused") };
        assert_eq!(seen, request);
        let answer = ShieldAnswer { value, payload, ..ShieldAnswer::to(&request, status) };
        let back = shield.answer(&answer);
        // From the reference page alone.
        let n = owner.seq();
        let iv = [&[0; 4][..], &n.to_be_bytes()].concat();
        for (key, plaintext, message) in [
            (s.owner.to_shield(), request.to_bytes(), sealed),
            (s.owner.to_owner(), answer.to_bytes(), back),
        ] {
            let (ct, tag) = gcm(key.expose(), &iv, &plaintext);
            assert_eq!([&n.to_be_bytes()[..], &ct, &tag].concat(), message, "{what}");
        }
        assert_eq!(owner.answer(&back).unwrap(), answer);
        steps.push(json!({
            "what": what,
            "request_plaintext": hex::encode(request.to_bytes()),
            "request": hex::encode(sealed),
            "answer_plaintext": hex::encode(answer.to_bytes()),
            "answer": hex::encode(back),
        }));
    }

    // A Shield that has run request 1 refuses these and does not change.
    let mut shield = ShieldChannel::new(&s.shield);
    let bytes = |i: usize| -> [u8; 88] {
        hex::decode(steps[i]["request"].as_str().unwrap()).unwrap().try_into().unwrap()
    };
    let Received::Run(first) = shield.receive(&bytes(0)) else { panic!("refused") };
    let stored = shield.answer(&ShieldAnswer::to(&first, 0));
    let mut refused = Vec::new();
    let mut refuse = |why: &str, m: [u8; 88]| {
        assert!(matches!(shield.receive(&m), Received::Refused), "{why}");
        refused.push(json!({ "why": why, "message": hex::encode(m) }));
    };
    let changed = |i: usize, at: usize| {
        let mut m = bytes(i);
        m[at] ^= 1;
        m
    };
    refuse("number 3 before number 2", bytes(2));
    refuse("number changed from 2 to 3", changed(1, 7));
    refuse("ciphertext changed", changed(1, 40));
    refuse("tag changed", changed(1, 87));
    refuse("request 1 with its tag changed", changed(0, 87));
    refuse(
        "an answer sent back",
        hex::decode(steps[1]["answer"].as_str().unwrap()).unwrap().try_into().unwrap(),
    );
    refuse("all zero", [0; 88]);
    let Received::Repeat(again) = shield.receive(&bytes(0)) else { panic!("not repeated") };
    assert_eq!(*again, stored);

    check(
        "register-channel.json",
        json!({
            "about": "Requests and answers of one session in order, and messages that a Shield which has run request 1 must refuse; hexadecimal. docs/reference/register-channel.md",
            "channel_to_shield": hex::encode(s.owner.to_shield().expose()),
            "channel_to_owner": hex::encode(s.owner.to_owner().expose()),
            "steps": steps,
            "refused": refused,
        }),
    );
}

/// Tree nodes under fixed keys; the tag is also computed as GMAC, from the reference page alone.
#[test]
fn tree_nodes() {
    const REGION: u8 = 9;
    let max = (1u64 << 48) - 1;
    let rising = [1, 2, 3, 4, 5, 6, 7, 8];
    let cases = [
        ("a first version", 16, 1, 0, 0, [1, 0, 0, 0, 0, 0, 0, 0]),
        ("all counters", 32, 7, 0, 3, rising),
        (
            "an inner level",
            32,
            0x1234_5678_9abc,
            3,
            0x1234,
            [max, max - 1, 1 << 47, 1 << 24, 0, 0, 0, 0x0102_0304_0506],
        ),
        ("the last version and node", 16, max, 15, (1 << 36) - 1, [max; 8]),
    ];
    let key = |len: usize| drawn(&format!("node key {len}"), len);
    let cipher = |len: usize| NodeCipher::new(REGION, &Key::new(&key(len)).unwrap());
    let mut nodes = Vec::new();
    for (what, len, version, level, node, counters) in cases {
        let sealed = cipher(len).seal(version, level, node, &counters);
        assert_eq!(cipher(len).open(version, level, node, &sealed), Some(counters));
        let plain: Vec<u8> = counters.iter().flat_map(|c| c.to_be_bytes()[2..].to_vec()).collect();
        let iv = [
            &[REGION][..],
            &version.to_be_bytes()[2..],
            &(u64::from(level) << 36 | node).to_be_bytes()[3..],
        ]
        .concat();
        let nonce = Nonce::try_from(&iv[..]).unwrap();
        let tag = match len {
            16 => Aes128Gcm::new_from_slice(&key(len)).unwrap().encrypt_inout_detached(
                &nonce,
                &plain,
                (&mut [][..]).into(),
            ),
            _ => Aes256Gcm::new_from_slice(&key(len)).unwrap().encrypt_inout_detached(
                &nonce,
                &plain,
                (&mut [][..]).into(),
            ),
        };
        assert_eq!(sealed[..], [&plain[..], &tag.unwrap()].concat(), "{what}");
        assert_eq!(iv, node_iv(REGION, version, level, node), "{what}");
        nodes.push(json!({
            "what": what,
            "key": hex::encode(key(len)),
            "region": REGION,
            "version": version,
            "level": level,
            "node": node,
            "iv": hex::encode(iv),
            "counters": counters,
            "bytes": hex::encode(sealed),
        }));
    }
    let good = cipher(32).seal(7, 0, 3, &rising);
    let mut refused = Vec::new();
    let mut refuse = |why: &str, version: u64, level: u8, node: u64, bytes: [u8; 64]| {
        assert_eq!(cipher(32).open(version, level, node, &bytes), None, "{why}");
        refused.push(json!({ "why": why, "key": hex::encode(key(32)), "region": REGION, "version": version, "level": level, "node": node, "bytes": hex::encode(bytes) }));
    };
    let changed = |at: usize, with: u8| {
        let mut b = good;
        b[at] ^= with;
        b
    };
    refuse("first bit of a counter", 7, 0, 3, changed(0, 0x80));
    refuse("last bit of the last counter", 7, 0, 3, changed(47, 1));
    refuse("first bit of the tag", 7, 0, 3, changed(48, 0x80));
    refuse("last bit of the tag", 7, 0, 3, changed(63, 1));
    refuse("an older version", 6, 0, 3, good);
    refuse("a later version", 8, 0, 3, good);
    refuse("another node's place", 7, 0, 2, good);
    refuse("another level's place", 7, 1, 3, good);
    refuse("all zero", 7, 0, 3, [0; 64]);
    refuse(
        "another region's node",
        7,
        0,
        3,
        NodeCipher::new(8, &Key::new(&key(32)).unwrap()).seal(7, 0, 3, &rising),
    );
    refuse(
        "the data key's node",
        7,
        0,
        3,
        NodeCipher::new(REGION, &Key::new(&[0x5a; 32]).unwrap()).seal(7, 0, 3, &rising),
    );
    let shapes: Vec<Value> = [1, 8, 9, 512, 8 * 65536, 8 * 65536 + 1, 1 << 25, 1 << 31]
        .into_iter()
        .map(|chunks| {
            let r = Region { mode: Mode::Tree, size: 64 * chunks, chunk: 64, node_base: Some(0), ..config().region(0).unwrap().clone() };
            let levels: Vec<Value> =
                (0..r.tree_levels()).map(|l| json!({ "nodes": r.level_nodes(l), "offset": r.node_addr(l, 0) })).collect();
            json!({ "chunks": chunks, "levels": levels, "root": r.root_entries(), "size": r.node_size() })
        })
        .collect();
    check(
        "tree-node.json",
        json!({
            "about": "Nodes of the counter tree, nodes that must not verify, and the layout of trees; byte strings hexadecimal. docs/reference/sealed-memory.md",
            "nodes": nodes,
            "refused": refused,
            "trees": shapes,
        }),
    );
}

#[test]
fn sealed_memory() {
    let mut s = session();
    let mut regions = Vec::new();
    for r in s.config.regions().to_vec() {
        let key = s.shield.data_key(r.id).unwrap();
        let cipher = ChunkCipher::new(r.id, key);
        let epoch = s.epochs[usize::from(r.id)].epoch;
        let mut chunks = Vec::new();
        for index in [0, 1, r.chunks() - 1] {
            let plain = drawn(&format!("chunk {} {index}", r.id), r.chunk as usize);
            let mut data = plain.clone();
            let tag = cipher.seal(epoch, index, &mut data);
            let iv = [&[r.id][..], &epoch.to_be_bytes()[2..], &index.to_be_bytes()[3..]].concat();
            assert_eq!(gcm(key.expose(), &iv, &plain), (data.clone(), tag.to_vec()));
            assert_eq!(iv, chunk_iv(r.id, epoch, index));
            chunks.push(json!({
                "index": index,
                "address": r.base + index * u64::from(r.chunk),
                "tag_address": r.tag_base + 16 * index,
                "iv": hex::encode(iv),
                "plaintext": hex::encode(plain),
                "ciphertext": hex::encode(data),
                "tag": hex::encode(tag),
            }));
        }
        regions.push(json!({ "region": r.id, "mode": r.mode.name(), "chunk": r.chunk, "key": hex::encode(key.expose()), "epoch": epoch, "chunks": chunks }));
    }
    // A sealer gives the same output for the same bytes.
    let plain: Vec<u8> = (0..2).flat_map(|i| drawn(&format!("chunk 0 {i}"), 4096)).collect();
    let (run, _) = Sealer::new(&s.config, &mut s.owner, 0, 1, 8192)
        .unwrap()
        .finish(&plain)
        .map_err(|e| e.0)
        .unwrap();
    let made = |i: usize, what: &str| {
        hex::decode(regions[0]["chunks"][i][what].as_str().unwrap()).unwrap()
    };
    assert_eq!(run.data, [made(0, "ciphertext"), made(1, "ciphertext")].concat());
    assert_eq!(run.tags, [made(0, "tag"), made(1, "tag")].concat());

    // Single changes, none of which may open.
    let cipher = ChunkCipher::new(2, s.shield.data_key(2).unwrap());
    let chunk = |what: &str| hex::decode(regions[2]["chunks"][0][what].as_str().unwrap()).unwrap();
    let mut refused = Vec::new();
    let mut refuse = |why: &str, version: u64, index: u64, data: Vec<u8>, tag: Vec<u8>| {
        assert!(
            !cipher.open(version, index, &mut data.clone(), tag[..].try_into().unwrap()),
            "{why}"
        );
        refused.push(json!({ "why": why, "region": 2, "version": version, "index": index, "ciphertext": hex::encode(data), "tag": hex::encode(tag) }));
    };
    let flip = |mut b: Vec<u8>, at: usize| {
        b[at] ^= 1;
        b
    };
    refuse("first bit of the ciphertext", 7, 0, flip(chunk("ciphertext"), 0), chunk("tag"));
    refuse("last bit of the ciphertext", 7, 0, flip(chunk("ciphertext"), 511), chunk("tag"));
    refuse("a bit of the tag", 7, 0, chunk("ciphertext"), flip(chunk("tag"), 15));
    refuse("zero tag", 7, 0, chunk("ciphertext"), vec![0; 16]);
    refuse("an older epoch", 6, 0, chunk("ciphertext"), chunk("tag"));
    refuse("a later epoch", 8, 0, chunk("ciphertext"), chunk("tag"));
    refuse("another chunk's place", 7, 1, chunk("ciphertext"), chunk("tag"));
    let other = |what: &str| hex::decode(regions[2]["chunks"][1][what].as_str().unwrap()).unwrap();
    refuse("another chunk with its own tag", 7, 0, other("ciphertext"), other("tag"));
    refuse("another chunk's tag", 7, 0, chunk("ciphertext"), other("tag"));
    refuse("plaintext", 7, 0, chunk("plaintext"), chunk("tag"));

    check(
        "sealed-memory.json",
        json!({
            "about": "Chunks of the session of load-key.json, and chunks that must not open under the key of region 2; byte strings hexadecimal. docs/reference/sealed-memory.md",
            "regions": regions,
            "refused": refused,
        }),
    );
}
