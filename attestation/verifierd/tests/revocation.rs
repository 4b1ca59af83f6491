//! What a reload gives and takes: revocation lists, CAs of clients, and connections without a
//! certificate.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
use shef_verifierd::auth::Identity;
use shef_verifierd::config::{ClientAuth, Config, Tls};
use shef_verifierd::problem::Kind;
use shef_verifierd::role::Role;
use shef_verifierd::secrets::sha256;
use shef_verifierd::{check, init, signing, tls};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::binary::{command, dir};
use shef_fixtures::service::*;

const DAY: i64 = 86_400;

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn certificate(pem: &str) -> Certificate {
    Certificate::from_der(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap()
}

/// A list of the CA in `folder` with the serial numbers of these certificates.
fn list(folder: &Path, revoked: &[&Path], at: i64) -> String {
    let key = KeyPair::from_pem(&text(&folder.join("ca.key"))).unwrap();
    let ca = Ca::of_pair("shef-verifierd CA", key, &text(&folder.join("ca.pem")), now()).unwrap();
    let serials = revoked.iter().map(|path| {
        (certificate(&text(path)).tbs_certificate().serial_number().as_bytes().to_vec(), at)
    });
    let list = ca.revocations(serials.collect::<Vec<_>>(), Validity { from: at, days: 30 });
    list.unwrap().pem().unwrap()
}

/// A service with the clients alice, bob, and eve, who is a client of the CA in the folder `w`.
struct Bed(Service);

impl Bed {
    fn new() -> Self {
        let service = Service::start();
        for name in ["alice", "bob"] {
            service.client("default", Role::Audit, name);
        }
        let other = service.dir.join("w");
        set_up(&other);
        let eve = Identity { tenant: "default".into(), name: "eve".into(), role: Role::Audit };
        init::client(&other, "eve", &eve, now()).unwrap();
        for file in ["eve.pem", "eve.key"] {
            std::fs::copy(other.join(file), service.dir.join(file)).unwrap();
        }
        let both = text(&service.dir.join("ca.pem")) + &text(&other.join("ca.pem"));
        std::fs::write(service.dir.join("both.pem"), both).unwrap();
        Self(service)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.dir.join(name)
    }

    /// A list of the service's CA in this file.
    fn list(&self, file: &str, revoked: &[&str], at: i64) {
        let revoked: Vec<_> =
            revoked.iter().map(|name| self.path(&format!("{name}.pem"))).collect();
        let revoked: Vec<_> = revoked.iter().map(PathBuf::as_path).collect();
        std::fs::write(self.path(file), list(&self.0.dir, &revoked, at)).unwrap();
    }

    /// Reloads a configuration with these lines in `[tls]`, and another replacement.
    fn reload(&self, tls: &str, (from, to): (&str, &str)) -> Result<(), Kind> {
        let file = self.path("verifierd.toml");
        let before = text(&file);
        let keep: Vec<_> = before
            .lines()
            .filter(|line| {
                !["client_ca =", "crls =", "client_auth ="].iter().any(|key| line.starts_with(key))
            })
            .collect();
        let lines = format!("[tls]\n{tls}");
        std::fs::write(&file, keep.join("\n").replace("[tls]", &lines).replace(from, to)).unwrap();
        let config = Config::read(&file).unwrap();
        std::fs::write(&file, before).unwrap();
        let done = self.0.runtime.block_on(self.0.running().reload(config));
        done.map(drop).map_err(|problem| problem.kind)
    }

    /// Whether alice, bob and eve are accepted.
    fn accepted(&self) -> [bool; 3] {
        ["alice", "bob", "eve"].map(|name| {
            Client::new(&self.0.dir, &self.0.url(), Some(name))
                .try_send("GET", "/v1/devices", &[], b"")
                .is_ok_and(|answer| answer.status == 200)
        })
    }
}

const GOOD: (&str, &str) = ("\n", "\n");
/// The configuration is refused.
const BROKEN: (&str, &str) = ("kek = \"kek\"", "kek = \"gone\"");

#[test]
fn every_entry_of_every_list_of_a_ca_counts() {
    for order in [&["old.pem", "new.pem"][..], &["new.pem", "old.pem"], &["both-lists.pem"]] {
        let bed = Bed::new();
        bed.list("old.pem", &["bob"], now() - 60);
        bed.list("new.pem", &["alice"], now());
        let both = text(&bed.path("old.pem")) + &text(&bed.path("new.pem"));
        std::fs::write(bed.path("both-lists.pem"), both).unwrap();
        bed.reload(&format!("crls = {order:?}"), GOOD).unwrap();
        assert_eq!(bed.accepted(), [false, false, false], "{order:?}");
        bed.0.operator.get("/v1/devices").ok();
        // The same at the start of the service.
        let mut started = Config::read(&bed.path("verifierd.toml")).unwrap().tls;
        started.crls = order.iter().map(|name| bed.path(name)).collect();
        let material = tls::server(&started, now()).unwrap();
        let accepts = ["alice", "bob", "operator"].map(|name| {
            let file = bed.path(&format!("{name}.pem"));
            material.accepts(&[CertificateDer::from_pem_file(file).unwrap()])
        });
        assert_eq!(accepts, [false, false, true], "{order:?}");
    }
    // The newest list alone must be within its validity.
    let bed = Bed::new();
    bed.list("old.pem", &[], now() - 40 * DAY);
    bed.list("new.pem", &["alice"], now());
    bed.reload("crls = [\"old.pem\", \"new.pem\"]", GOOD).unwrap();
    assert_eq!(bed.accepted(), [false, true, false]);
    // A refused configuration adds a list of the same CA.
    let bed = Bed::new();
    bed.list("old.pem", &[], now() - 60);
    bed.list("new.pem", &["alice"], now());
    bed.reload("crls = [\"old.pem\"]", GOOD).unwrap();
    assert_eq!(bed.accepted(), [true, true, false]);
    assert!(bed.reload("crls = [\"new.pem\"]", BROKEN).is_err());
    assert_eq!(bed.accepted(), [false, true, false]);
}

#[test]
fn each_list_and_each_ca_counts_on_its_own() {
    for broken in ["nothing", "", "gone"] {
        let bed = Bed::new();
        bed.list("crl.pem", &[], now() - 60);
        std::fs::write(bed.path("w.pem"), list(&bed.path("w"), &[], now() - 60)).unwrap();
        let tls = "client_ca = \"both.pem\"\ncrls = [\"w.pem\", \"crl.pem\"]";
        bed.reload(tls, GOOD).unwrap();
        assert_eq!(bed.accepted(), [true, true, true]);
        // One list cannot be used, and the other one is in force.
        bed.list("crl.pem", &["alice"], now());
        std::fs::write(bed.path("w.pem"), broken).unwrap();
        if broken == "gone" {
            std::fs::remove_file(bed.path("w.pem")).unwrap();
        }
        assert_eq!(bed.reload(tls, GOOD), Err(Kind::Material));
        assert_eq!(bed.accepted(), [false, true, true], "{broken}");
        let problems = bed.0.running().narrow(None);
        assert!(problems.len() == 1 && problems[0].detail.contains("w.pem"), "{problems:?}");
        // Neither does it keep a CA.
        assert_eq!(bed.reload("crls = [\"w.pem\", \"crl.pem\"]", GOOD), Err(Kind::Material));
        assert_eq!(bed.accepted(), [false, true, false], "{broken}");
    }
    // The first list of a refused configuration needs no list of the other CA.
    let bed = Bed::new();
    bed.reload("client_ca = \"both.pem\"", GOOD).unwrap();
    bed.list("crl.pem", &["alice"], now());
    let one = "client_ca = \"both.pem\"\ncrls = [\"crl.pem\"]";
    assert_eq!(bed.reload(one, GOOD), Err(Kind::Material));
    assert_eq!(bed.accepted(), [false, true, true]);
}

#[test]
fn no_reload_lifts_a_revocation() {
    let mut bed = Bed::new();
    bed.list("crl.pem", &["alice"], now());
    bed.reload("crls = [\"crl.pem\"]", GOOD).unwrap();
    assert_eq!(bed.accepted(), [false, true, false]);
    // Without the list, with an older one, with a newer one that has lost the entry, and without
    // client certificates in between.
    bed.list("older.pem", &[], now() - 60);
    bed.list("newer.pem", &[], now() + 60);
    for tls in ["", "crls = [\"older.pem\"]", "crls = [\"newer.pem\"]", "client_auth = \"off\"", ""]
    {
        bed.reload(tls, GOOD).unwrap();
        let off = tls.contains("off");
        assert_eq!(bed.accepted(), [false, !off, false], "{tls}");
    }
    // The log names what the configuration would have lifted.
    let config = |crls: &[&str]| Tls {
        crls: crls.iter().map(|name| bed.path(name)).collect(),
        ..Config::read(&bed.path("verifierd.toml")).unwrap().tls
    };
    let held = tls::server(&config(&["crl.pem"]), now()).unwrap();
    let alice = certificate(&text(&bed.path("alice.pem")));
    let serial = hex::encode(alice.tbs_certificate().serial_number().as_bytes());
    for (crls, count) in [(&[][..], 1), (&["older.pem"], 1), (&["newer.pem"], 1), (&["crl.pem"], 0)]
    {
        let (_, lost) = held.reloaded(&config(crls), now()).unwrap();
        assert!(
            lost.len() == count
                && lost
                    .iter()
                    .all(|text| text.contains(&serial)
                        && text.contains("until the service restarts")),
            "{crls:?} {lost:?}"
        );
    }
    let held = tls::server(&config(&["newer.pem"]), now()).unwrap();
    let (_, lost) = held.reloaded(&config(&["older.pem"]), now()).unwrap();
    assert!(lost.len() == 1 && lost[0].contains("is older than"), "{lost:?}");
    // A restart lifts it.
    bed.0.restart();
    assert_eq!(bed.accepted(), [true, true, false]);
}

#[test]
fn a_refused_configuration_only_takes_rights_away() {
    let token = "a-token";
    let entry = format!(
        "\n[[tenant.token]]\nname = \"t\"\nrole = \"audit\"\nsha256 = \"{}\"\n",
        hex::encode(sha256(token.as_bytes()))
    );
    let bed = Bed::new();
    let file = bed.path("verifierd.toml");
    std::fs::write(&file, text(&file) + &entry).unwrap();
    bed.reload("", GOOD).unwrap();
    let open = bed.0.stranger().with_token(token);
    let opened = |client: &Client| {
        client.try_send("GET", "/v1/devices", &[], b"").map_or(0, |answer| answer.status)
    };
    let tokens = || opened(&bed.0.stranger().with_token(token));
    let steps = [
        ("", GOOD, [true, true, false], 200, 200),
        // No CA is common to both: no certificate is accepted.
        ("client_ca = \"w/ca.pem\"", BROKEN, [false, false, false], 200, 200),
        ("", BROKEN, [false, false, false], 200, 200),
        ("", GOOD, [true, true, false], 200, 200),
        ("client_auth = \"off\"", BROKEN, [false, false, false], 200, 200),
        ("", GOOD, [true, true, false], 200, 200),
        ("client_auth = \"required\"", BROKEN, [true, true, false], 0, 401),
        ("client_auth = \"off\"", BROKEN, [false, false, false], 0, 0),
        ("", BROKEN, [false, false, false], 0, 0),
        ("client_ca = \"both.pem\"", GOOD, [true, true, true], 200, 200),
        ("", BROKEN, [true, true, false], 200, 200),
    ];
    for (number, (tls, with, accepted, new, old)) in steps.into_iter().enumerate() {
        assert_eq!(bed.reload(tls, with).is_err(), with == BROKEN, "{number}");
        assert_eq!(bed.accepted(), accepted, "{number}: {tls}");
        assert_eq!((tokens(), opened(&open)), (new, old), "{number}: {tls}");
    }
}

/// Of two CAs with the same name, as earlier versions of `init` made them, each has its own list.
#[test]
fn lists_belong_to_the_key_of_a_ca_and_not_to_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, text: String| {
        std::fs::write(path(name), text).unwrap();
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    let validity = Validity { from: now(), days: 30 };
    let key = || KeyPair::generate().unwrap();
    let cas = [(); 2].map(|()| Ca::new("shef-verifierd CA", key(), now()).unwrap());
    let clients = [0, 0, 1, 1].map(|at: usize| {
        let holder = Holder::Client { name: "client", uri: None };
        cas[at].0.issue(holder, &key(), validity).unwrap().der().clone()
    });
    for (at, (ca, root)) in cas.iter().enumerate() {
        let gone = Certificate::from_der(&clients[2 * at]).unwrap();
        let serial = gone.tbs_certificate().serial_number().as_bytes().to_vec();
        let list = ca.revocations([(serial, now())], validity).unwrap();
        write(&format!("crl-{at}.pem"), list.pem().unwrap());
        write(&format!("ca-{at}.pem"), root.pem());
    }
    write("both.pem", cas[0].1.pem() + &cas[1].1.pem());
    let own = key();
    let hosts = ["localhost".to_owned()];
    let server = cas[0].0.issue(Holder::Server { name: "s", hosts: &hosts }, &own, validity);
    write("server.pem", server.unwrap().pem());
    write("server.key", own.serialize_pem());
    let configured = |ca: &str, crls: &[&str]| Tls {
        certificate: path("server.pem"),
        key: path("server.key"),
        client_ca: path(ca),
        crls: crls.iter().map(|name| path(name)).collect(),
        client_auth: ClientAuth::Required,
    };
    let accepts = |tls: &Tls| {
        let material = tls::server(tls, now()).unwrap();
        clients.clone().map(|client| material.accepts(&[client]))
    };
    for crls in [["crl-0.pem", "crl-1.pem"], ["crl-1.pem", "crl-0.pem"]] {
        assert_eq!(accepts(&configured("both.pem", &crls)), [false, true, false, true]);
        // The list of a CA that has left has no effect.
        assert_eq!(accepts(&configured("ca-1.pem", &crls)), [false, false, false, true]);
    }
    let left = configured("ca-1.pem", &["crl-0.pem", "crl-1.pem"]);
    assert_eq!(tls::foreign_lists(&left).unwrap(), [path("crl-0.pem")]);
    // A CA without a list: its clients would be refused.
    for (crls, missing) in [(&["crl-0.pem"][..], 1), (&["crl-1.pem"], 0)] {
        let refused = tls::server(&configured("both.pem", crls), now()).err().unwrap();
        assert!(
            refused.kind == Kind::Material && refused.detail.contains("has no revocation list"),
            "{missing} {refused}"
        );
    }
    assert_eq!(accepts(&configured("both.pem", &[])), [true; 4]);
}

#[test]
fn cas_of_init_have_different_names_and_check_names_a_ca_without_a_list() {
    let bed = Bed::new();
    let subject =
        |path: &str| certificate(&text(&bed.path(path))).tbs_certificate().subject().to_string();
    assert!(subject("ca.pem").starts_with("CN=shef-verifierd CA "), "{}", subject("ca.pem"));
    assert_ne!(subject("ca.pem"), subject("w/ca.pem"));
    bed.list("crl.pem", &[], now());
    let mut config = Config::read(&bed.path("verifierd.toml")).unwrap();
    config.tls.client_ca = bed.path("both.pem");
    config.tls.crls = vec![bed.path("crl.pem")];
    let refused = bed.0.runtime.block_on(check::check(&config, now())).unwrap_err();
    assert!(
        refused.kind == Kind::Material && refused.detail.contains(&subject("w/ca.pem")),
        "{refused}"
    );
    std::fs::write(bed.path("w.pem"), list(&bed.path("w"), &[], now())).unwrap();
    config.tls.crls.push(bed.path("w.pem"));
    bed.0.runtime.block_on(check::check(&config, now())).unwrap();
    config.tls.client_ca = bed.path("ca.pem");
    let report = bed.0.runtime.block_on(check::check(&config, now())).unwrap();
    let warning = "no CA of clients signed this revocation list";
    assert!(report.warnings.iter().any(|text| text.contains(warning)), "{report:?}");
}

#[test]
fn only_certificates_that_the_ca_signed_are_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("v");
    set_up(&dir);
    // The same serial number and issuer, and another signature.
    let mut der = CertificateDer::from_pem_file(dir.join("operator.pem")).unwrap().to_vec();
    *der.last_mut().unwrap() ^= 1;
    use base64::Engine as _;
    let pem = base64::engine::general_purpose::STANDARD.encode(&der);
    let forged = dir.join("forged.pem");
    std::fs::write(
        &forged,
        format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n"),
    )
    .unwrap();
    let refused = init::revoke(&dir, &[forged], 30, true, now()).unwrap_err();
    assert!(refused.detail.contains("not a certificate that the CA"), "{refused}");
    assert!(!dir.join("crl.pem").exists());
    assert_eq!(init::revoke(&dir, &[dir.join("operator.pem")], 30, true, now()).unwrap().added, 1);
}

/// A connection with a client's certificate, for requests in parts.
fn raw(service: &Service, name: &str) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let pem = |end: &str| service.dir.join(format!("{name}.{end}"));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(service.dir.join("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_file(pem("pem")).unwrap()],
            PrivateKeyDer::from_pem_file(pem("key")).unwrap(),
        )
        .unwrap();
    let connection =
        rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    rustls::StreamOwned::new(connection, TcpStream::connect(service.running().address).unwrap())
}

#[test]
fn a_request_whose_caller_is_revoked_before_its_body_ends_is_refused() {
    let bed = Bed::new();
    bed.list("crl.pem", &[], now() - 60);
    bed.reload("crls = [\"crl.pem\"]", GOOD).unwrap();
    let service = &bed.0;
    let put = |name: &str, between: &dyn Fn()| {
        let mut stream = raw(service, name);
        let header = format!(
            "PUT /v1/policies/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/toml\r\nContent-Length: {}\r\n\r\n",
            POLICY.len()
        );
        let (first, rest) = POLICY.split_at(5);
        stream.write_all(header.as_bytes()).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        stream.flush().unwrap();
        // The service has admitted the request once it counts its body.
        let start = std::time::Instant::now();
        while service.running().app.bodies.is_empty() && start.elapsed().as_secs() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        between();
        stream.write_all(rest.as_bytes()).unwrap();
        stream.flush().unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    service.client("default", Role::Operator, "gone");
    service.client("default", Role::Operator, "stays");
    assert_eq!(put("stays", &|| {}), "HTTP/1.1 201");
    let revoke = || {
        bed.list("crl.pem", &["gone"], now());
        bed.reload("crls = [\"crl.pem\"]", GOOD).unwrap();
    };
    assert_eq!(put("gone", &revoke), "HTTP/1.1 401");
    assert_eq!(service.operator.get("/v1/policies/gone").status, 404);
    // A reload that takes nothing from the caller does not disturb it.
    assert_eq!(put("stays", &|| bed.reload("crls = [\"crl.pem\"]", GOOD).unwrap()), "HTTP/1.1 201");
}

/// Without the lock of the commands, some of these would write what they read before the others.
#[test]
fn commands_at_once_lose_no_revocation_and_no_retired_key() {
    let service = Service::start();
    let dir = service.dir.clone();
    let names: Vec<_> = (0..8).map(|number| format!("client-{number}")).collect();
    for name in &names {
        let identity = Identity { tenant: "default".into(), name: name.clone(), role: Role::Audit };
        init::client(&dir, name, &identity, now()).unwrap();
    }
    init::revoke(&dir, &[], 30, true, now()).unwrap();
    let config = Config::read(&dir.join("verifierd.toml")).unwrap();
    std::thread::scope(|scope| {
        for name in &names {
            let (dir, client) = (&dir, dir.join(format!("{name}.pem")));
            scope.spawn(move || init::revoke(dir, &[client], 30, false, now()).unwrap());
            scope.spawn(|| signing::rotate(&config).unwrap());
        }
    });
    assert_eq!(init::revoke(&dir, &[], 30, false, now()).unwrap().all, names.len());
    let mut retired: Vec<_> = text(&config.rotated()).lines().map(str::to_owned).collect();
    retired.sort();
    retired.dedup();
    assert_eq!(retired.len(), names.len());
}

#[test]
fn a_list_is_valid_for_whole_days_and_newer_than_the_one_before() {
    let bed = Bed::new();
    let (dir, at) = (&bed.0.dir, now());
    let revoke = |days, at| init::revoke(dir, &[], days, true, at).unwrap().until;
    let mut tls = Config::read(&dir.join("verifierd.toml")).unwrap().tls;
    tls.crls = vec![dir.join("crl.pem")];
    let end = || tls::ends(&tls).unwrap().into_iter().find(|(what, _)| *what == "crl").unwrap().1;
    let number = || {
        let der =
            rustls::pki_types::CertificateRevocationListDer::from_pem_file(dir.join("crl.pem"));
        shef_tls::ca::Revocations::read(&der.unwrap()).unwrap().number
    };
    for days in [1, 30] {
        let until = revoke(days, at);
        assert_eq!((until, end()), (at + i64::from(days) * DAY, until));
    }
    // Also if the clock was set back.
    let before = number();
    revoke(30, at - DAY);
    assert_eq!(number(), before + 1);
}

#[test]
fn commands_say_what_holds_and_what_can_be_pasted() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a b;id");
    let said = command(&["init", "--dir", odd.to_str().unwrap()]);
    let line = format!("run --config '{}'", odd.join("verifierd.toml").display());
    assert!(String::from_utf8_lossy(&said.stdout).contains(&line), "{said:?}");
    // A configuration that is a link to a missing file is not a missing configuration.
    let dir = dir();
    let revoke = ["revoke", "--dir", dir.path.to_str().unwrap()];
    assert_eq!(command(&[&revoke[..], &["--new-list"]].concat()).status.code(), Some(5));
    std::fs::remove_file(&dir.config).unwrap();
    std::os::unix::fs::symlink("gone.toml", &dir.config).unwrap();
    let said = command(&revoke);
    let warning = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.code() == Some(3) && warning.contains("does not start again"), "{said:?}");
    let line = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(line.contains("it ends ") && line.contains(" UTC"), "{line}");
}
