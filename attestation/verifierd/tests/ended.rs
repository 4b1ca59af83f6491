//! Clients of a CA outside its validity are rejected.

use std::os::unix::fs::PermissionsExt as _;

use rustls::pki_types::{CertificateDer, UnixTime};
use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
use shef_verifierd::config::{ClientAuth, Tls};
use shef_verifierd::tls::server;

const DAY: i64 = 86_400;

/// Whether a service accepts a client whose certificate is valid today, and whose CA becomes valid
/// in `ca_from` days.
fn accepts(ca_from: i64) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let now = UnixTime::now().as_secs().cast_signed();
    let today = Validity { from: now - DAY, days: 30 };
    let (ca, root) = Ca::new("a CA", KeyPair::generate().unwrap(), now + ca_from * DAY).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = ca
        .issue(Holder::Server { name: "server", hosts: &["localhost".to_owned()] }, &key, today)
        .unwrap();
    for (name, text) in
        [("ca.pem", root.pem()), ("server.pem", own.pem()), ("server.key", key.serialize_pem())]
    {
        std::fs::write(path(name), text).unwrap();
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let tls = Tls {
        certificate: path("server.pem"),
        key: path("server.key"),
        client_ca: path("ca.pem"),
        crls: Vec::new(),
        client_auth: ClientAuth::Required,
    };
    let client = ca
        .issue(Holder::Client { name: "op", uri: None }, &KeyPair::generate().unwrap(), today)
        .unwrap();
    let client: &CertificateDer<'static> = client.der();
    server(&tls, now).unwrap().accepts(std::slice::from_ref(client))
}

#[test]
fn a_client_is_let_in_only_while_its_ca_is_valid() {
    assert!(accepts(-10));
    // A CA is valid for 3650 days.
    assert!(!accepts(-3651), "the CA has ended");
    assert!(!accepts(2), "the CA has not begun");
}
