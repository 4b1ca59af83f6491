//! Naming a certificate in one encoding of its signature names it in the other.

use std::sync::Arc;

use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512};
use rustls::pki_types::{CertificateDer, UnixTime};
use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
use shef_tls::{client_verifier, names};
use x509_cert::der::asn1::{BitString, Uint};
use x509_cert::der::{Decode as _, Encode as _};

const START: i64 = 1_767_225_600;

/// a - b of big-endian numbers.
fn minus(a: &[u8], b: &[u8]) -> Vec<u8> {
    let b = [&vec![0; a.len() - b.len()][..], b].concat();
    let mut borrow = 0;
    let mut digits: Vec<u8> = a
        .iter()
        .zip(&b)
        .rev()
        .map(|(a, b)| {
            let difference = i16::from(*a) - i16::from(*b) - borrow;
            borrow = i16::from(difference < 0);
            difference.rem_euclid(256) as u8
        })
        .collect();
    digits.reverse();
    digits
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    let body = parts.concat();
    let head = match body.len() {
        0..128 => vec![0x30, body.len() as u8],
        128..256 => vec![0x30, 0x81, body.len() as u8],
        _ => [&[0x30, 0x82][..], &(body.len() as u16).to_be_bytes()].concat(),
    };
    [head, body].concat()
}

/// The variant that anyone can make of a certificate: n - s instead of s.
fn malleated(der: &[u8], order: &[u8]) -> Vec<u8> {
    let certificate = x509_cert::Certificate::from_der(der).unwrap();
    let [r, s] =
        <[Uint; 2]>::try_from(Vec::<Uint>::from_der(certificate.signature().raw_bytes()).unwrap())
            .unwrap();
    let other = Uint::new(&minus(order, s.as_bytes())).unwrap();
    let signature = sequence(&[r.to_der().unwrap(), other.to_der().unwrap()]);
    sequence(&[
        certificate.tbs_certificate().to_der().unwrap(),
        certificate.signature_algorithm().to_der().unwrap(),
        BitString::from_bytes(&signature).unwrap().to_der().unwrap(),
    ])
}

#[test]
fn both_spellings_have_the_same_names() {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    for (at, (algorithm, order)) in [
        (&PKCS_ECDSA_P256_SHA256, "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
        (&PKCS_ECDSA_P384_SHA384, "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973"),
        (
            &PKCS_ECDSA_P521_SHA512,
            "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let order: Vec<u8> =
            order.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
        for _ in 0..20 {
            let (ca, root) = Ca::new("CA", KeyPair::generate_for(algorithm).unwrap(), START).unwrap();
            let key = KeyPair::generate().unwrap();
            let validity = Validity { from: START, days: 30 };
            let certificate = ca.issue(Holder::Client { name: "alice", uri: None }, &key, validity).unwrap();
            let other = CertificateDer::from(malleated(certificate.der(), &order));
            assert_ne!(certificate.der(), &other);
            // TLS accepts both, so a list of revoked certificates names both.
            let verifier = client_verifier(&[root.der().clone()], &provider, |builder| builder).unwrap();
            let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(START as u64 + 60));
            verifier.verify_client_cert(&other, &[], now).unwrap();
            let (of_one, of_other) = (names(certificate.der()).unwrap(), names(&other).unwrap());
            assert_eq!(of_one[0], of_other[0], "what the CA signed");
            // One name for each curve that the signature fits.
            assert_eq!((of_one.len(), of_other.len()), (5 - at, 5 - at));
            assert_eq!((of_one[1], of_one[2]), (of_other[2], of_other[1]));
        }
    }
    assert_eq!(names(&CertificateDer::from(vec![1, 2, 3])), None);
}
