//! Input of the verifier service other than attestation formats.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use shef_tls::ca::{Ca, KeyPair, Validity};
use shef_verifierd::config::Config;
use shef_verifierd::jwe;
use shef_verifierd::secrets::Kek;
use shef_verifierd::session::{Protocol, Session};

use super::{outcome, utf8};

/// Signs session tokens.
pub fn kek() -> Kek {
    Kek::new(&[7; 32])
}

/// Runs the input as a token and as the signed content of one.
pub fn run_session(bytes: &[u8]) -> String {
    let kek = kek();
    let token = utf8(bytes, |text| {
        outcome(Session::open(&kek, Protocol::Native, "default", text), |_| {
            panic!("a token that the service did not make")
        })
    });
    let signed = B64.encode([bytes, &kek.session_mac(bytes)].concat());
    let content = outcome(Session::open(&kek, Protocol::Native, "default", &signed), |session| {
        assert_eq!(session.token(&kek), signed);
    });
    format!("{token}; {content}")
}

pub fn run_jwk(bytes: &[u8]) -> String {
    let key = serde_json::from_slice(bytes).map_err(|error| error.to_string());
    outcome(key.and_then(|key| jwe::recipient(&key).map_err(|problem| problem.to_string())), drop)
}

pub fn run_service_config(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        outcome(Config::parse(text, "verifierd.toml", Path::new("/etc/shef")), |config| {
            assert!(!config.tenants.is_empty());
        })
    })
}

/// The CA of clients, and its revocation list.
fn authority() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static AUTHORITY: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        const NEW_YEAR: i64 = 1_767_225_600;
        let (ca, certificate) =
            Ca::new("a CA of clients", KeyPair::generate().unwrap(), NEW_YEAR).unwrap();
        let list =
            ca.revocations([(vec![9], NEW_YEAR)], Validity { from: NEW_YEAR, days: 365 }).unwrap();
        (certificate.der().clone(), list.der().to_vec())
    })
}

/// A revocation list of client certificates.
pub fn certificate_list() -> Vec<u8> {
    authority().1.clone()
}

pub fn run_certificate_list(bytes: &[u8]) -> String {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let list = CertificateRevocationListDer::from(bytes.to_vec());
    outcome(
        shef_tls::client_verifier(&[authority().0.clone()], &provider, |builder| {
            builder.with_crls([list.clone()])
        }),
        drop,
    )
}
