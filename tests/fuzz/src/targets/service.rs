//! What the verifier service reads besides the formats of attestation.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use rustls::RootCertStore;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::WebPkiClientVerifier;
use shef_verifierd::config::Config;
use shef_verifierd::jwe;
use shef_verifierd::secrets::Kek;
use shef_verifierd::session::{Protocol, Session};

use super::{outcome, utf8};

/// Signs session tokens.
pub fn kek() -> Kek {
    Kek::new(&[7; 32])
}

/// What comes, as a token and as what stands signed in one.
pub fn run_session(bytes: &[u8]) -> String {
    let kek = kek();
    let token = utf8(bytes, |text| {
        outcome(Session::open(&kek, Protocol::Native, "default", text), |_| panic!("a token that the service did not make"))
    });
    let signed = B64.encode([bytes, &kek.session_mac(bytes)].concat());
    let content = outcome(Session::open(&kek, Protocol::Native, "default", &signed), |session| assert_eq!(session.token(&kek), signed));
    format!("{token}; {content}")
}

pub fn run_jwk(bytes: &[u8]) -> String {
    let key = serde_json::from_slice(bytes).map_err(|error| error.to_string());
    outcome(key.and_then(|key| jwe::recipient(&key).map_err(|problem| problem.to_string())), drop)
}

pub fn run_service_config(bytes: &[u8]) -> String {
    utf8(bytes, |text| outcome(Config::parse(text, "verifierd.toml", Path::new("/etc/shef")), |config| assert!(!config.tenants.is_empty())))
}

/// The CA of clients, and an empty revocation list of it.
fn authority() -> &'static (RootCertStore, Vec<u8>) {
    static AUTHORITY: OnceLock<(RootCertStore, Vec<u8>)> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![rcgen::KeyUsagePurpose::CrlSign];
        let mut roots = RootCertStore::empty();
        roots.add(params.self_signed(&key).unwrap().der().clone()).unwrap();
        let list = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2026, 1, 1),
            next_update: rcgen::date_time_ymd(2027, 1, 1),
            crl_number: rcgen::SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![rcgen::RevokedCertParams {
                serial_number: rcgen::SerialNumber::from(9),
                revocation_time: rcgen::date_time_ymd(2026, 2, 1),
                reason_code: Some(rcgen::RevocationReason::KeyCompromise),
                invalidity_date: None,
            }],
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&rcgen::Issuer::new(params, key)).unwrap();
        (roots, list.der().to_vec())
    })
}

/// A revocation list of clients' certificates.
pub fn certificate_list() -> Vec<u8> {
    authority().1.clone()
}

pub fn run_certificate_list(bytes: &[u8]) -> String {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authority().0.clone()), provider);
    outcome(verifier.with_crls([CertificateRevocationListDer::from(bytes.to_vec())]).build(), drop)
}
