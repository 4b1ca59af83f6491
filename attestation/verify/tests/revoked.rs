//! Revoked, deactivated or outdated items stay so in every spelling of their signatures, values and
//! names.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use shef_fixtures::case::*;
use shef_proto::cbor::{self, Limits, Value};
use shef_proto::cert::{self, Certificate};
use shef_proto::crypto::twin;
use shef_proto::evidence::{self, Layer};
use shef_verify::corim::{self, CorimError, CorimSigner, Describe, Trust};
use shef_verify::crypto::portable;
use shef_verify::{CheckId, Revocations};

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The checks that evidence with these certificates fails under a list.
fn failed(case: &Case, certificates: &[Vec<u8>], list: Revocations) -> Vec<CheckId> {
    let case = Case {
        revocations: Some(Revocations { issued: NOW - 1, next_update: NOW + 1, ..list }),
        ..case.clone()
    };
    let chain: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
    let bytes = evidence::sign(&case.claims, &key(case.signer), &chain);
    let outcome = case.appraise_bytes(&bytes, &[]);
    outcome
        .appraisal
        .checks
        .iter()
        .filter(|check| check.reached && !check.passed)
        .map(|check| check.id)
        .collect()
}

#[test]
fn a_certificate_is_revoked_in_both_spellings() {
    let case = Case::new(Layer::Kernel);
    let [ak, device] = <[Vec<u8>; 2]>::try_from(case.certificates()).unwrap();
    let parsed = Certificate::parse(&device).unwrap();
    let other = parsed.twin().unwrap();
    assert_ne!(device, other);
    let spellings = [&device, &other].map(|device| vec![ak.clone(), device.clone()]);
    // A manufacturer's CA may use either s: both are valid until one is revoked.
    for chain in &spellings {
        assert_eq!(failed(&case, chain, Revocations::default()), []);
    }
    for named in [sha256(&device), sha256(&other), hex::encode(parsed.names()[0])] {
        for chain in &spellings {
            let list =
                Revocations { certificates: [named.clone()].into(), ..Revocations::default() };
            assert_eq!(failed(&case, chain, list), [CheckId::Revocation], "{named}");
        }
    }
    let another =
        Revocations { certificates: [sha256(b"another")].into(), ..Revocations::default() };
    assert_eq!(failed(&case, &spellings[0], another), []);
}

#[test]
fn a_serial_number_is_a_number() {
    let case = Case::new(Layer::Kernel);
    let certificates = case.certificates();
    let serial = hex::encode(Certificate::parse(&certificates[1]).unwrap().serial());
    let colons = serial
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap())
        .collect::<Vec<_>>()
        .join(":");
    for spelling in [
        serial.clone(),
        format!("00{serial}"),
        format!("0000{}", serial.to_uppercase()),
        format!("00:{colons}"),
    ] {
        let text =
            format!("issued = {}\nnext_update = {}\nserials = [{spelling:?}]\n", NOW - 1, NOW + 1);
        assert_eq!(
            failed(&case, &certificates, Revocations::from_toml(&text).unwrap()),
            [CheckId::Revocation],
            "{spelling}"
        );
    }
    for entry in ["0x7f", "", "7f 80"] {
        let text = format!("issued = 0\nnext_update = 1\nserials = [{entry:?}]\n");
        let error = Revocations::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("serial number"), "{error}");
    }
}

fn describe(version: u64) -> Describe<'static> {
    Describe { id: "release", version, issuer: "maker", not_after: Some(NOW + 100) }
}

fn trust<'a>(signers: &'a [CorimSigner], deactivated: &'a BTreeSet<String>) -> Trust<'a> {
    Trust { signers, deactivated, revocations: None, now: NOW, verify: portable }
}

fn all(signer: CorimSigner) -> CorimSigner {
    signer.for_kernels().for_shells().for_vendor(&[6; 32])
}

/// The same CoRIM with the other spelling of its final signature.
fn other(corim: &[u8]) -> Vec<u8> {
    let (start, signature) = corim.split_last_chunk::<64>().unwrap();
    [start, &twin(signature).unwrap()[..]].concat()
}

#[test]
fn a_deactivated_corim_stays_out_in_both_spellings() {
    let reference = Case::new(Layer::Shield).reference;
    let root = Case::root("corim ca");
    let leaf = cert::issue_signer(
        &key("corim ca"),
        &root,
        &key("corim").public_key(),
        "release key",
        NOW - 10,
        NOW + 10,
    );
    let other_leaf = Certificate::parse(&leaf).unwrap().twin().unwrap();
    let sign = |leaf: Option<&[u8]>| {
        corim::write_signed(&reference, &describe(1), &key("corim"), leaf).unwrap()
    };
    let signers = [
        all(CorimSigner::with_key("key", key("corim").public_key())),
        all(CorimSigner::with_authority("ca", root.der()).unwrap()),
    ];
    for certificates in [vec![None], vec![Some(&leaf[..]), Some(&other_leaf[..])]] {
        let spellings: Vec<Vec<u8>> = certificates
            .iter()
            .map(|leaf| sign(*leaf))
            .flat_map(|one| [other(&one), one])
            .collect();
        let nothing = BTreeSet::new();
        for bytes in &spellings {
            corim::read(bytes, &trust(&signers, &nothing)).unwrap();
        }
        let content = hex::encode(corim::names(&spellings[0]).unwrap()[0]);
        for named in spellings.iter().map(|bytes| sha256(bytes)).chain([content]) {
            let deactivated = BTreeSet::from([named]);
            for bytes in &spellings {
                let error = corim::read(bytes, &trust(&signers, &deactivated)).unwrap_err();
                assert!(matches!(error, CorimError::Deactivated { .. }), "{error}");
            }
        }
    }
}

#[test]
fn order_goes_by_the_signers_key() {
    let reference = Case::new(Layer::Shield).reference;
    let write =
        |version| corim::write_signed(&reference, &describe(version), &key("corim"), None).unwrap();
    let nothing = BTreeSet::new();
    let read = |name: &str, version| {
        let signers = [all(CorimSigner::with_key(name, key("corim").public_key()))];
        corim::read(&write(version), &trust(&signers, &nothing)).unwrap()
    };
    let (newer, older) = (read("maker", 2), read("another name", 1));
    assert!(matches!(
        corim::admit(&older, std::slice::from_ref(&newer)),
        Err(CorimError::Older { known: 2, .. })
    ));
    corim::admit(&newer, &[older]).unwrap();
    // The same content under two names is no conflict.
    corim::admit(&read("another name", 2), &[newer]).unwrap();
}

/// The same CoRIM without the certificate in its unprotected header.
fn bare(corim: &[u8]) -> Vec<u8> {
    let Value::Tag(tag, inner) = cbor::parse(corim, &Limits::bytes(1 << 20)).unwrap() else {
        panic!("a tag")
    };
    let Value::Array(mut parts) = *inner else { panic!("an array") };
    parts[1] = Value::Map(Vec::new());
    Value::Tag(tag, Box::new(Value::Array(parts))).encode()
}

#[test]
fn a_deactivated_corim_stays_out_without_its_certificate() {
    let reference = Case::new(Layer::Shield).reference;
    let root = Case::root("corim ca");
    let leaf = cert::issue_signer(
        &key("corim ca"),
        &root,
        &key("corim").public_key(),
        "release key",
        NOW - 10,
        NOW + 10,
    );
    let with = corim::write_signed(&reference, &describe(1), &key("corim"), Some(&leaf)).unwrap();
    let without = bare(&with);
    // The same key is registered directly and under its CA.
    let signers = [
        all(CorimSigner::with_key("key", key("corim").public_key())),
        all(CorimSigner::with_authority("ca", root.der()).unwrap()),
    ];
    let nothing = BTreeSet::new();
    let payload = hex::encode(corim::read(&with, &trust(&signers, &nothing)).unwrap().content);
    for named in [&payload, &sha256(&without)] {
        for bytes in [with.clone(), other(&with), without.clone(), other(&without)] {
            corim::read(&bytes, &trust(&signers, &nothing)).unwrap();
            let deactivated = BTreeSet::from([named.clone()]);
            let error = corim::read(&bytes, &trust(&signers, &deactivated)).unwrap_err();
            // The message contains the name that covers all spellings.
            assert!(
                matches!(error, CorimError::Deactivated { .. })
                    && error.to_string().contains(&payload),
                "{error}"
            );
        }
    }
    // Bytes without a certificate do not identify the one removed.
    let deactivated = BTreeSet::from([sha256(&with)]);
    assert!(corim::read(&with, &trust(&signers, &deactivated)).is_err());
    assert!(corim::read(&without, &trust(&signers, &deactivated)).is_ok());
}

#[test]
fn a_revoked_ca_ends_the_corims_of_its_signers() {
    let reference = Case::new(Layer::Shield).reference;
    let root = Case::root("corim ca");
    let leaf = cert::issue_signer(
        &key("corim ca"),
        &root,
        &key("corim").public_key(),
        "release key",
        NOW - 10,
        NOW + 10,
    );
    let bytes = corim::write_signed(&reference, &describe(1), &key("corim"), Some(&leaf)).unwrap();
    let signers = [all(CorimSigner::with_authority("ca", root.der()).unwrap())];
    let nothing = BTreeSet::new();
    let read = |list: &Revocations| {
        corim::read(&bytes, &Trust { revocations: Some(list), ..trust(&signers, &nothing) })
    };
    read(&Revocations::default()).unwrap();
    let leaf = Certificate::parse(&leaf).unwrap();
    for certificate in [&leaf, &root] {
        for name in certificate.names() {
            let list =
                Revocations { certificates: [hex::encode(name)].into(), ..Revocations::default() };
            assert!(matches!(read(&list), Err(CorimError::Deactivated { .. })), "certificate");
        }
        let list = Revocations {
            serials: [hex::encode(certificate.serial())].into(),
            ..Revocations::default()
        };
        assert!(matches!(read(&list), Err(CorimError::Deactivated { .. })), "serial");
        let list = Revocations {
            authorities: [sha256(certificate.key().as_bytes())].into(),
            ..Revocations::default()
        };
        assert!(matches!(read(&list), Err(CorimError::Deactivated { .. })), "authority");
    }
}
