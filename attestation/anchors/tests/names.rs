//! A certificate that is named in one spelling of its signature is named in the other.

use rustls::pki_types::CertificateDer;
use shef_anchors::names;
use shef_door::ca::{Ca, Holder, KeyPair, Validity};
use shef_proto::crypto::twin;
use x509_cert::der::asn1::{BitString, UintRef};
use x509_cert::der::{Decode as _, Encode as _};

/// The certificate that anyone can make of another one: n - s in the place of s.
fn malleated(der: &[u8]) -> Vec<u8> {
    let certificate = x509_cert::Certificate::from_der(der).unwrap();
    let signature = p256::ecdsa::DerSignature::try_from(certificate.signature().raw_bytes()).unwrap();
    let rs: [u8; 64] = p256::ecdsa::Signature::try_from(signature.as_bytes()).map_or_else(
        |_| p256::ecdsa::Signature::from_der(signature.as_bytes()).unwrap().to_bytes().into(),
        |signature| signature.to_bytes().into(),
    );
    let twin = twin(&rs).unwrap();
    let (r, s) = twin.split_at(32);
    let body = [UintRef::new(r).unwrap().to_der().unwrap(), UintRef::new(s).unwrap().to_der().unwrap()].concat();
    let sequence = [&[0x30, body.len() as u8][..], &body].concat();
    let parts = [
        certificate.tbs_certificate().to_der().unwrap(),
        certificate.signature_algorithm().to_der().unwrap(),
        BitString::from_bytes(&sequence).unwrap().to_der().unwrap(),
    ]
    .concat();
    let len = parts.len() as u16;
    [&[0x30, 0x82][..], &len.to_be_bytes(), &parts].concat()
}

#[test]
fn both_spellings_have_the_same_names() {
    for _ in 0..20 {
        let (ca, _) = Ca::new("CA", KeyPair::generate().unwrap(), 1_767_225_600).unwrap();
        let key = KeyPair::generate().unwrap();
        let validity = Validity { from: 1_767_225_600, days: 30 };
        let certificate = ca.issue(Holder::Client { name: "alice", uri: None }, &key, validity).unwrap();
        let other = CertificateDer::from(malleated(certificate.der()));
        assert_ne!(certificate.der(), &other);
        let (mut names_of_one, mut names_of_other) = (names(certificate.der()).unwrap(), names(&other).unwrap());
        assert_eq!(names_of_one[0], names_of_other[0], "what the CA signed");
        assert_eq!((names_of_one[1], names_of_one[2]), (names_of_other[2], names_of_other[1]));
        names_of_one.sort_unstable();
        names_of_other.sort_unstable();
        assert_eq!(names_of_one, names_of_other);
    }
    assert_eq!(names(&CertificateDer::from(vec![1, 2, 3])), None);
}
