//! A certificate is accepted only while its CA is valid too.

use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, Error, RootCertStore};
use shef_tls::ca::{self, Ca, Holder, KeyPair};
use shef_tls::{Validity, client_verifier, server_verifier};
use std::sync::Arc;
use std::time::Duration;

/// 2026-01-01.
const NEW_YEAR: i64 = 1_767_225_600;
const DAY: i64 = 86_400;
/// Validity of a CA in days.
const CA_DAYS: i64 = 3650;

/// A CA valid from a given day, and leaves under it whose validity begins ten days earlier and ends
/// ten days later.
struct Made {
    ca: Ca,
    root: CertificateDer<'static>,
    client: CertificateDer<'static>,
    server: CertificateDer<'static>,
}

fn made(name: &str, from: i64) -> Made {
    let key = || KeyPair::generate().expect("a key");
    let (ca, root) = Ca::new(name, key(), from).expect("a CA");
    let long =
        ca::Validity { from: from - 10 * DAY, days: u32::try_from(CA_DAYS + 20).expect("days") };
    let issue = |holder| ca.issue(holder, &key(), long).expect("a leaf").der().clone();
    let client = issue(Holder::Client { name: "alice", uri: None });
    let server = issue(Holder::Server { name: "agent", hosts: &["localhost".to_owned()] });
    Made { root: root.der().clone(), client, server, ca }
}

fn at(seconds: i64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds.cast_unsigned()))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The errors of clients and servers under these CAs at a given time.
fn told(cas: &[&Made], of: &Made, now: i64) -> [Option<CertificateError>; 2] {
    let roots: Vec<_> = cas.iter().map(|made| made.root.clone()).collect();
    let clients = client_verifier(&roots, &provider(), |builder| builder).expect("CAs");
    let servers = server_verifier(&roots, &provider()).expect("CAs");
    let name = ServerName::try_from("localhost").expect("a name");
    let client = clients.verify_client_cert(&of.client, &[], at(now)).map(drop);
    let server = servers.verify_server_cert(&of.server, &[], &name, &[], at(now)).map(drop);
    [client, server].map(|result| match result {
        Ok(()) => None,
        Err(Error::InvalidCertificate(error)) => Some(error),
        Err(error) => panic!("{error}"),
    })
}

#[test]
fn a_leaf_counts_while_its_ca_does() {
    let one = made("one", NEW_YEAR);
    let end = NEW_YEAR + CA_DAYS * DAY;
    assert_eq!(
        Validity::of(&one.root).expect("a CA"),
        Validity { from: (NEW_YEAR - DAY).cast_unsigned(), until: end.cast_unsigned() }
    );
    // webpki without these verifiers accepts the leaf at each of these times.
    let mut store = RootCertStore::empty();
    store.add(one.root.clone()).expect("a CA");
    let alone = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider())
        .build()
        .expect("a verifier");
    for (now, expected) in [
        (NEW_YEAR - 2 * DAY, Some(CertificateError::NotValidYet)),
        (NEW_YEAR - DAY - 1, Some(CertificateError::NotValidYet)),
        // The peer's clock may be a day behind the issuer's.
        (NEW_YEAR - DAY, None),
        (NEW_YEAR, None),
        (end, None),
        (end + 1, Some(CertificateError::Expired)),
        (end + 9 * DAY, Some(CertificateError::Expired)),
    ] {
        alone.verify_client_cert(&one.client, &[], at(now)).expect("accepted by webpki");
        assert_eq!(told(&[&one], &one, now), [expected.clone(), expected], "{now}");
    }
}

#[test]
fn one_ca_that_ended_neither_helps_nor_harms_another() {
    // All have the same name, like the CAs of `init`.
    let (old, new) = (made("CA", NEW_YEAR - CA_DAYS * DAY - DAY), made("CA", NEW_YEAR - 5 * DAY));
    let stranger = made("CA", NEW_YEAR - 5 * DAY);
    for cas in [[&old, &new], [&new, &old]] {
        assert_eq!(told(&cas, &new, NEW_YEAR), [None, None]);
        assert_eq!(
            told(&cas, &old, NEW_YEAR),
            [Some(CertificateError::Expired), Some(CertificateError::Expired)]
        );
        let [Some(client), Some(server)] = told(&cas, &stranger, NEW_YEAR) else {
            panic!("accepted")
        };
        assert!(
            client != CertificateError::Expired && server != CertificateError::Expired,
            "{client:?} {server:?}"
        );
    }
}

#[test]
fn revocation_lists_and_optional_certificates_stay_as_they_were() {
    let (one, two) = (made("one", NEW_YEAR), made("two", NEW_YEAR));
    let roots = [one.root.clone(), two.root.clone()];
    let lists: Vec<CertificateRevocationListDer<'static>> = [&one, &two]
        .map(|made| {
            made.ca
                .revocations([], ca::Validity { from: NEW_YEAR, days: 30 })
                .expect("a list")
                .der()
                .clone()
        })
        .into();
    let with = |lists: &[CertificateRevocationListDer<'static>]| {
        let lists = lists.to_vec();
        client_verifier(&roots, &provider(), move |builder| {
            builder.with_crls(lists.clone()).enforce_revocation_expiration()
        })
        .expect("lists")
    };
    let both = with(&lists);
    both.verify_client_cert(&two.client, &[], at(NEW_YEAR)).expect("not revoked");
    let late = both.verify_client_cert(&two.client, &[], at(NEW_YEAR + 31 * DAY)).map(drop);
    assert!(
        matches!(&late, Err(Error::InvalidCertificate(error)) if format!("{error:?}").contains("ExpiredRevocationList")),
        "{late:?}"
    );
    // A CA without a list admits no client.
    let first = with(&lists[..1]);
    first.verify_client_cert(&one.client, &[], at(NEW_YEAR)).expect("not revoked");
    assert_eq!(
        first.verify_client_cert(&two.client, &[], at(NEW_YEAR)).map(drop),
        Err(Error::InvalidCertificate(CertificateError::UnknownRevocationStatus))
    );
    assert!(
        both.client_auth_mandatory()
            && both.offer_client_auth()
            && both.root_hint_subjects().len() == 2
    );
    let optional = client_verifier(&roots, &provider(), |builder| builder.allow_unauthenticated())
        .expect("CAs");
    assert!(!optional.client_auth_mandatory() && optional.offer_client_auth());
}

#[test]
fn what_is_no_ca_is_an_error() {
    assert!(
        client_verifier(&[], &provider(), |builder| builder).is_err()
            && server_verifier(&[], &provider()).is_err()
    );
    let nonsense = [CertificateDer::from(vec![0x30, 0x00])];
    assert!(
        client_verifier(&nonsense, &provider(), |builder| builder).is_err()
            && server_verifier(&nonsense, &provider()).is_err()
    );
}
