//! A fleet's certificates, images, signers, authorities and keys can change while the service runs
//! (docs/how-to/fleet.md).

use std::path::Path;

use serde_json::{Value, json};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::{Evidence, Layer};
use shef_proto::hpke_suite::{PublicKey, generate_key_pair};
use shef_proto::receipt::Audit;
use shef_verifierd::config::Config;
use shef_verifierd::init;
use shef_verifierd::problem::Kind;
use shef_verifierd::rekey::rekey;
use shef_verifierd::role::Role;
use shef_verifierd::secrets::{SystemEntropy, sha256};
use shef_verify::ReferenceValues;
use shef_verify::corim::{CorimSigner, Describe, write_signed};

use shef_fixtures::service::*;

const DAY: i64 = 86_400;
const TOML: &[(&str, &str)] = &[("content-type", "application/toml")];

fn appraise(client: &Client, device: &Device, layer: Layer) -> HttpResponse {
    let (session, nonce) = client.session(layer, None);
    client.post(
        "/v1/appraise",
        &json!({"session": session, "evidence": b64(&device.evidence(layer, &nonce))}),
    )
}

/// The code of the check that denied the evidence.
#[track_caller]
fn denied(answer: HttpResponse) -> String {
    let problem = answer.problem(422, "SHEF-SVC-043");
    let checks = problem["appraisal"]["checks"].as_array().unwrap();
    checks.iter().find(|check| check["passed"] == false).unwrap()["code"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn anchor(client: &Client, name: &str, device: &Device) {
    client
        .post(
            "/v1/trust-anchors",
            &json!({"name": name, "kind": "shef-boot", "certificate": b64(device.root.der())}),
        )
        .ok();
}

fn delete(client: &Client, path: &str) {
    client.send("DELETE", path, &[], b"").ok();
}

fn revoke(client: &Client, kind: &str, value: &str) {
    client
        .post("/v1/revocations", &json!({"kind": kind, "value": value, "reason": "rotation"}))
        .ok();
}

/// Reloads a changed configuration.
fn reload(
    service: &Service,
    change: impl FnOnce(String) -> String,
) -> Result<Vec<&'static str>, Kind> {
    let file = service.dir.join("verifierd.toml");
    std::fs::write(&file, change(std::fs::read_to_string(&file).unwrap())).unwrap();
    let config = Config::read(&file).map_err(|problem| problem.kind)?;
    service.runtime.block_on(service.running().reload(config)).map_err(|problem| problem.kind)
}

#[test]
fn a_device_moves_to_a_new_root_without_a_gap() {
    let service = Service::start();
    let operator = &service.operator;
    // The same device, certified by two roots.
    let (old, new) = (Device::made_by(1, 7), Device::made_by(2, 7));
    assert_eq!(old.ueid, new.ueid);
    service.furnish(&old);
    assert_eq!(denied(appraise(operator, &new, Layer::Kernel)), "SHEF-ATT-011");
    anchor(operator, "maker-2", &new);
    appraise(operator, &old, Layer::Kernel).ok();
    appraise(operator, &new, Layer::Kernel).ok();
    delete(operator, "/v1/trust-anchors/maker");
    assert_eq!(denied(appraise(operator, &old, Layer::Kernel)), "SHEF-ATT-011");
    appraise(operator, &new, Layer::Kernel).ok();
    assert_eq!(operator.get("/v1/devices").ok()["devices"].as_array().unwrap().len(), 1);
}

#[test]
fn a_certificate_is_revoked_and_the_device_goes_on_with_another() {
    let service = Service::start();
    let operator = &service.operator;
    let (old, new) = (Device::made_by(1, 7), Device::made_by(2, 7));
    service.furnish(&old);
    anchor(operator, "maker-2", &new);
    let evidence = Evidence::parse(&old.evidence(Layer::Kernel, &[1; 48])).unwrap();
    revoke(operator, "certificate", &hex::encode(sha256(&evidence.x5chain()[1])));
    assert_eq!(denied(appraise(operator, &old, Layer::Kernel)), "SHEF-ATT-025");
    appraise(operator, &new, Layer::Kernel).ok();
    // The whole authority, as after the loss of its key.
    revoke(operator, "authority", &hex::encode(sha256(new.root.key().as_bytes())));
    assert_eq!(denied(appraise(operator, &new, Layer::Kernel)), "SHEF-ATT-025");
}

#[test]
fn images_overlap_until_the_old_one_is_switched_off_or_revoked() {
    let service = Service::start();
    let operator = &service.operator;
    let old = Device::new(1);
    let mut new = Device::new(1);
    new.image = [0x34; 32];
    service.furnish(&old);
    assert_eq!(denied(appraise(operator, &new, Layer::Shield)), "SHEF-ATT-040");
    let values = reference().replace(&hex::encode(IMAGE), &hex::encode(new.image));
    operator.send("PUT", "/v1/corims/build-2", TOML, values.as_bytes()).ok();
    for device in [&old, &new] {
        appraise(operator, device, Layer::Shield).ok();
    }
    operator.send("POST", "/v1/corims/build-1/deactivate", &[], b"").ok();
    assert_eq!(denied(appraise(operator, &old, Layer::Shield)), "SHEF-ATT-040");
    appraise(operator, &new, Layer::Shield).ok();
    // Reactivated, the old image is known. Revoked, it is rejected for good, and so is everything
    // of its vendor.
    operator.send("POST", "/v1/corims/build-1/activate", &[], b"").ok();
    appraise(operator, &old, Layer::Shield).ok();
    revoke(operator, "image", &hex::encode(old.image));
    assert_eq!(denied(appraise(operator, &old, Layer::Shield)), "SHEF-ATT-025");
    appraise(operator, &new, Layer::Shield).ok();
    revoke(operator, "vendor", &hex::encode(VENDOR));
    assert_eq!(denied(appraise(operator, &new, Layer::Shield)), "SHEF-ATT-025");
}

#[test]
fn a_signer_of_reference_values_is_replaced() {
    let service = Service::start();
    let operator = &service.operator;
    let device = Device::new(1);
    service.furnish(&device);
    delete(operator, "/v1/corims/build-1");
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let key = |seed| SigningKey::generate(&mut SeededEntropy::new(seed, "signer"));
    let put = |id: &str, version, key: &SigningKey| {
        let corim = write_signed(
            &values,
            &Describe { id: "digits", version, issuer: "vendor", not_after: None },
            key,
            None,
        )
        .unwrap();
        operator.send(
            "PUT",
            &format!("/v1/corims/{id}"),
            &[("content-type", "application/rim+cose")],
            &corim,
        )
    };
    let signer = |name: &str, key: &SigningKey| {
        let signer = CorimSigner::with_key(name, key.public_key())
            .for_kernels()
            .for_shells()
            .for_vendor(&VENDOR);
        operator
            .send("PUT", &format!("/v1/signers/{name}"), TOML, signer.to_toml().as_bytes())
            .ok();
    };
    let (first, second) = (key(1), key(2));
    signer("vendor-2026", &first);
    put("digits-1", 1, &first).ok();
    put("digits-2", 2, &second).problem(422, "SHEF-SVC-052");
    // Both sign for a while. Then only the new one does, and the old one's CoRIMs have no effect.
    signer("vendor-2027", &second);
    put("digits-2", 2, &second).ok();
    appraise(operator, &device, Layer::Shield).ok();
    delete(operator, "/v1/signers/vendor-2026");
    appraise(operator, &device, Layer::Shield).ok();
    // A version older than a known one is rejected.
    let old = put("digits-0", 1, &second).problem(422, "SHEF-SVC-052");
    assert!(old["detail"].as_str().unwrap().contains("SHEF-ATT-081"), "{old}");
    delete(operator, "/v1/signers/vendor-2027");
    assert_eq!(denied(appraise(operator, &device, Layer::Kernel)), "SHEF-ATT-030");
}

fn points(service: &Service) -> Vec<PublicKey> {
    let jwks = service.stranger().get("/.well-known/jwks.json").ok();
    let point = |key: &Value| {
        PublicKey::from_bytes(&[vec![4], unb64(&key["x"]), unb64(&key["y"])].concat()).unwrap()
    };
    jwks["keys"].as_array().unwrap().iter().map(point).collect()
}

#[test]
fn the_service_signs_with_a_new_key_and_publishes_the_old_one() {
    let service = Service::start();
    let operator = &service.operator;
    let device = Device::new(1);
    service.furnish(&device);
    operator.put_key("data").ok();
    let release = || {
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let (session, nonce) = operator.session(Layer::Shield, Some(&public));
        let evidence = b64(&device.evidence(Layer::Shield, &nonce));
        operator
            .post("/v1/release", &json!({"key": "data", "session": session, "evidence": evidence}))
            .ok();
    };
    release();
    let before = points(&service);
    let (private, public) = generate_key_pair(&mut SystemEntropy);
    let file = |name: &str, text: String| std::fs::write(service.dir.join(name), text).unwrap();
    file("signing.key", hex::encode(&private.to_bytes()[..]));
    file("signing-2026.pub", hex::encode(before[0].as_bytes()));
    reload(&service, |text| {
        text.replace(
            "key = \"signing.key\"",
            "key = \"signing.key\"\nretired = [\"signing-2026.pub\"]",
        )
    })
    .unwrap();
    release();
    let both = points(&service);
    assert_eq!((both.len(), both[0], both[1]), (2, public, before[0]));
    // The chain continues across the rotation, and verifies with both keys only.
    let page = operator.get("/v1/receipts").ok();
    let receipts: Vec<Vec<u8>> =
        page["receipts"].as_array().unwrap().iter().map(|row| unb64(&row["receipt"])).collect();
    let audit = |keys: &[PublicKey]| {
        let mut audit = Audit::new("default", keys, None);
        receipts.iter().map(|receipt| audit.push(receipt).is_ok()).collect::<Vec<_>>()
    };
    assert_eq!((audit(&both), audit(&before)), (vec![true, true], vec![true, false]));
}

fn reaches(dir: &Path, service: &Service, name: &str) -> bool {
    // A new connection each time: open ones stay.
    Client::new(dir, &service.url(), Some(name))
        .try_send("GET", "/v1/devices", &[], b"")
        .is_ok_and(|answer| answer.status == 200)
}

#[test]
fn server_certificate_and_authority_of_clients_are_exchanged() {
    let service = Service::start();
    let dir = &service.dir;
    init::server(dir, "server-2", &["localhost".into(), "127.0.0.1".into()], now() - 10 * DAY)
        .unwrap();
    assert_eq!(
        init::server(dir, "server-2", &["localhost".into()], now()).unwrap_err().kind,
        Kind::Exists
    );
    let ends = || service.stranger().get("/readyz").ok()["certificate_ends"].as_i64().unwrap();
    let first = ends();
    reload(&service, |text| {
        text.replace("server.pem", "server-2.pem").replace("server.key", "server-2.key")
    })
    .unwrap();
    assert_eq!(first - ends(), 10 * DAY);
    // Clients of the old and of a new authority; then of the new one only.
    let other = dir.join("other");
    set_up(&other);
    let pem = |path: &Path| std::fs::read_to_string(path.join("ca.pem")).unwrap();
    // They know the service by their own authority.
    let (ours, theirs) = (pem(dir), pem(&other));
    std::fs::write(other.join("ca.pem"), &ours).unwrap();
    assert!(reaches(dir, &service, "operator") && !reaches(&other, &service, "operator"));
    std::fs::write(dir.join("clients.pem"), format!("{ours}{theirs}")).unwrap();
    reload(&service, |text| text.replace("client_ca = \"ca.pem\"", "client_ca = \"clients.pem\""))
        .unwrap();
    assert!(reaches(dir, &service, "operator") && reaches(&other, &service, "operator"));
    std::fs::write(dir.join("clients.pem"), &theirs).unwrap();
    reload(&service, |text| text).unwrap();
    assert!(!reaches(dir, &service, "operator") && reaches(&other, &service, "operator"));
}

#[test]
fn the_authority_of_the_server_is_exchanged_with_an_overlap() {
    let service = Service::start();
    let dir = &service.dir;
    let other = dir.join("other");
    set_up(&other);
    let pem = |path: &Path| std::fs::read_to_string(path.join("ca.pem")).unwrap();
    let (old, new) = (pem(dir), pem(&other));
    // The same client three times, with different known authorities.
    let knows = |name: &str, authorities: &str| {
        let folder = dir.join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("ca.pem"), authorities).unwrap();
        for file in ["operator.pem", "operator.key"] {
            std::fs::copy(dir.join(file), folder.join(file)).unwrap();
        }
        folder
    };
    let clients = [knows("old", &old), knows("new", &new), knows("both", &format!("{old}{new}"))];
    let get_in = || clients.each_ref().map(|folder| reaches(folder, &service, "operator"));
    assert_eq!(get_in(), [true, false, true]);
    reload(&service, |text| {
        text.replace("server.pem", "other/server.pem").replace("server.key", "other/server.key")
    })
    .unwrap();
    assert_eq!(get_in(), [false, true, true]);
    // And back, as long as clients know both.
    reload(&service, |text| text.replace("other/", "")).unwrap();
    assert_eq!(get_in(), [true, false, true]);
}

#[test]
fn the_kek_is_exchanged_while_the_service_runs() {
    let service = Service::start();
    let operator = &service.operator;
    let device = Device::new(1);
    service.furnish(&device);
    let add = |name: &str| {
        operator.call(
            "PUT",
            &format!("/v1/keys/{name}"),
            &json!({"layer": "shield", "policy": "default", "generate": 32}),
        )
    };
    let resource = || {
        operator.send(
            "POST",
            "/kbs/v0/resource/a/b/c",
            &[("content-type", "application/octet-stream")],
            b"secret",
        )
    };
    let release = |(session, nonce): (String, Vec<u8>)| {
        operator.post("/v1/release", &json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))}))
    };
    let session =
        || operator.session(Layer::Shield, Some(&generate_key_pair(&mut SystemEntropy).1));
    add("data").ok();
    resource().ok();
    release(session()).ok();
    let file = service.dir.join("verifierd.toml");
    let config = Config::read(&file).unwrap();
    let to = |name: &str| service.dir.join(name);
    let run = |config: &Config, to: &Path| {
        service.runtime.block_on(rekey(config, to, now())).map_err(|problem| problem.kind)
    };
    assert_eq!(run(&config, &config.kek), Err(Kind::Exists));
    assert_eq!(run(&config, &to("kek-2")), Ok(Some(2)));
    // Until it knows the new KEK, the service appraises, but neither seals nor unseals.
    appraise(operator, &device, Layer::Shield).ok();
    let early = session();
    release(early.clone()).problem(503, "SHEF-SVC-006");
    add("more").problem(503, "SHEF-SVC-006");
    assert_eq!(resource().status, 503);
    operator.get("/readyz").problem(503, "SHEF-SVC-006");
    assert_eq!(reload(&service, |text| text), Err(Kind::WrongKek));
    reload(&service, |text| text.replace("kek = \"kek\"", "kek = \"kek-2\"")).unwrap();
    operator.get("/readyz").ok();
    // Sessions of the old KEK are invalid; everything else goes on.
    release(early).problem(400, "SHEF-SVC-040");
    release(session()).ok();
    add("more").ok();
    resource().ok();
    // Again, as after a crash: nothing is left to do. No secret is lost: another rotation opens
    // them all.
    assert_eq!(run(&config, &to("kek-2")), Ok(None));
    assert_eq!(run(&Config::read(&file).unwrap(), &to("kek-3")), Ok(Some(4)));
    assert_eq!(run(&config, &to("kek-4")), Err(Kind::WrongKek));
    // Each of them left an event.
    assert_eq!(
        operator.events("who", "service", ["action", "what"]),
        [["rekey", "2"], ["reload-refused", "SHEF-SVC-006"], ["reload", ""], ["rekey", "4"]]
    );
}

#[test]
fn a_revoked_client_is_refused_and_a_list_past_its_end_refuses_all() {
    let token = "a-token";
    let entry = format!(
        "[[tenant.token]]\nname = \"t\"\nrole = \"audit\"\nsha256 = \"{}\"\n",
        hex::encode(sha256(token.as_bytes()))
    );
    let service = Service::with(|text| format!("{text}{entry}"), Default::default());
    let dir = &service.dir;
    service.client("default", Role::Audit, "gone");
    service.client("default", Role::Audit, "stays");
    let refused = || ["gone", "stays", "operator"].map(|name| !reaches(dir, &service, name));
    assert_eq!(refused(), [false, false, false]);
    // An empty list, then one with a client, which stays on later lists.
    let revoke = |files: &[&str], days, at| {
        let files: Vec<_> = files.iter().map(|file| dir.join(file)).collect();
        init::revoke(dir, &files, days, true, at).map(|listed| (listed.all, listed.added))
    };
    assert_eq!(revoke(&[], 30, now()).unwrap(), (0, 0));
    reload(&service, |text| text.replace("client_ca =", "crls = [\"crl.pem\"]\nclient_ca ="))
        .unwrap();
    assert_eq!(refused(), [false, false, false]);
    assert_eq!(revoke(&["gone.pem"], 30, now()).unwrap(), (1, 1));
    reload(&service, |text| text).unwrap();
    assert_eq!(refused(), [true, false, false]);
    assert_eq!(revoke(&["gone.pem"], 30, now()).unwrap(), (1, 0));
    // An expired list: all clients with a certificate are rejected, those with a token are not.
    revoke(&[], 1, now() - 3 * DAY).unwrap();
    reload(&service, |text| text).unwrap();
    assert_eq!(refused(), [true, true, true]);
    service.stranger().with_token(token).get("/v1/devices").ok();
    revoke(&[], 30, now()).unwrap();
    reload(&service, |text| text).unwrap();
    assert_eq!(refused(), [true, false, false]);
    // A certificate of another CA, and an invalid list: the old configuration stays.
    let other = dir.join("other");
    set_up(&other);
    assert_eq!(revoke(&["other/operator.pem"], 30, now()).unwrap_err().kind, Kind::Material);
    // A list without effect, or one that would readmit the clients on a lost list.
    let server = revoke(&["server.pem"], 30, now()).unwrap_err();
    assert!(server.detail.contains("not a client's certificate"), "{server:?}");
    let list = std::fs::read(dir.join("crl.pem")).unwrap();
    std::fs::remove_file(dir.join("crl.pem")).unwrap();
    let lost = revoke(&["stays.pem"], 30, now()).unwrap_err();
    assert!(lost.detail.contains("verifierd.toml names it"), "{lost:?}");
    assert!(!dir.join("crl.pem").exists());
    std::fs::write(dir.join("crl.pem"), list).unwrap();
    // The folder of a CA alone.
    let ca = dir.join("ca");
    std::fs::create_dir(&ca).unwrap();
    for file in ["ca.key", "ca.pem", "stays.pem"] {
        std::fs::copy(dir.join(file), ca.join(file)).unwrap();
    }
    let begin = |new| init::revoke(&ca, &[ca.join("stays.pem")], 30, new, now());
    assert!(begin(false).unwrap_err().detail.contains("--new-list"));
    begin(true).unwrap();
    begin(false).unwrap();
    // The key of another CA.
    std::fs::copy(other.join("ca.key"), ca.join("ca.key")).unwrap();
    let wrong = begin(false).unwrap_err();
    assert!(wrong.detail.contains("is not the key of ca.pem"), "{wrong:?}");
    std::fs::write(dir.join("crl.pem"), "nothing").unwrap();
    assert_eq!(reload(&service, |text| text), Err(Kind::Material));
    assert_eq!(refused(), [true, false, false]);
}

/// What takes rights from callers is applied on its own, whatever else keeps a configuration from
/// being used.
#[test]
fn revocation_depends_on_nothing_else_in_the_configuration() {
    let token = "a-token";
    let entry = format!(
        "[[tenant.token]]\nname = \"t\"\nrole = \"audit\"\nsha256 = \"{}\"\n",
        hex::encode(sha256(token.as_bytes()))
    );
    for (broken, with) in [
        ("key = \"signing.key\"", "key = \"signing.key\"\nretired = [\"gone.pub\"]"),
        ("certificate = \"server.pem\"", "certificate = \"missing.pem\""),
        ("client_ca = \"ca.pem\"", "client_ca = \"missing.pem\""),
        ("kek = \"kek\"", "kek = \"gone\""),
    ] {
        let service = Service::with(|text| format!("{text}{entry}"), Default::default());
        let dir = &service.dir;
        let open = service.client("default", Role::Audit, "gone");
        service.client("default", Role::Audit, "stays");
        let revoke = |file: &str, new| init::revoke(dir, &[dir.join(file)], 30, new, now());
        let refused = || ["gone", "stays", "operator"].map(|name| !reaches(dir, &service, name));
        let with_token = service.stranger().with_token(token);
        with_token.get("/v1/devices").ok();
        open.get("/v1/devices").ok();
        revoke("gone.pem", true).unwrap();
        // The first list of the configuration, and no token.
        let lists = |text: String| {
            text.replace("client_ca =", "crls = [\"crl.pem\"]\nclient_ca =")
                .replace(&entry, "")
                .replace(broken, with)
        };
        assert!(reload(&service, lists).is_err(), "{with}");
        assert_eq!(refused(), [true, false, false], "{with}");
        open.get("/v1/devices").problem(401, "SHEF-SVC-027");
        with_token.get("/v1/devices").problem(401, "SHEF-SVC-027");
        // One more certificate, while the file cannot be read at all.
        revoke("stays.pem", false).unwrap();
        assert!(service.running().narrow(None).is_empty());
        assert_eq!(refused(), [true, true, false], "{with}");
        // An unreadable list readmits no client.
        let list = std::fs::read(dir.join("crl.pem")).unwrap();
        std::fs::write(dir.join("crl.pem"), "nothing").unwrap();
        assert!(!service.running().narrow(None).is_empty());
        assert_eq!(refused(), [true, true, false], "{with}");
        std::fs::write(dir.join("crl.pem"), list).unwrap();
        // A CA that the configuration does not name any more.
        if !with.contains("client_ca") {
            set_up(&dir.join("other"));
            let other = |text: String| {
                text.replace("client_ca = \"ca.pem\"", "client_ca = \"other/ca.pem\"")
            };
            assert!(reload(&service, other).is_err(), "{with}");
            assert_eq!(refused(), [true, true, true], "{with}");
        }
    }
}

/// Signatures of the CA's key would not verify under another certificate, and the list of another CA
/// has that CA's serial numbers.
#[test]
fn only_the_ca_of_the_folder_and_its_list_are_used() {
    use shef_tls::ca::{Ca, KeyPair};
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (dir, other) = (folder.path(), other.path());
    [dir, other].into_iter().for_each(set_up);
    let operator = dir.join("operator.pem");
    let revoke = |files: &[&Path]| {
        let files: Vec<_> = files.iter().map(|path| path.to_path_buf()).collect();
        init::revoke(dir, &files, 30, true, now())
    };
    // Two certificates in one file.
    let both = dir.join("both.pem");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    std::fs::write(&both, text(&operator) + &text(&dir.join("server.pem"))).unwrap();
    let two = revoke(&[&both]).unwrap_err();
    assert!(two.detail.contains("expected one certificate, found 2"), "{two}");
    assert!(!dir.join("crl.pem").exists());
    // The list of another CA.
    init::revoke(other, &[other.join("operator.pem")], 30, true, now()).unwrap();
    std::fs::copy(other.join("crl.pem"), dir.join("crl.pem")).unwrap();
    let foreign = revoke(&[&operator]).unwrap_err();
    assert!(foreign.detail.contains("expected a list that the key of"), "{foreign}");
    assert_eq!(text(&dir.join("crl.pem")), text(&other.join("crl.pem")));
    std::fs::remove_file(dir.join("crl.pem")).unwrap();
    assert_eq!(revoke(&[&operator]).unwrap().all, 1);
    assert_eq!(revoke(&[]).unwrap().all, 1);
    // Another certificate of the same key: another subject, an end in the past, not a CA's.
    let root = text(&dir.join("ca.pem"));
    let key = || KeyPair::from_pem(&text(&dir.join("ca.key"))).unwrap();
    let named = |name, from| Ca::new(name, key(), from).unwrap().1.pem();
    let ca = Ca::of_pair("shef-verifierd CA", key(), &root, now()).unwrap();
    let holder = shef_tls::ca::Holder::Client { name: "shef-verifierd CA", uri: None };
    let leaf = ca.issue(holder, &key(), shef_tls::ca::Validity { from: now(), days: 30 }).unwrap();
    for (pem, reason) in [
        (named("another CA", now()), "another subject"),
        (named("shef-verifierd CA", now() - 3660 * DAY), "has ended"),
        (leaf.pem(), "not a CA's certificate"),
    ] {
        std::fs::write(dir.join("ca.pem"), pem).unwrap();
        let refused = init::server(dir, "second", &["localhost".into()], now()).unwrap_err();
        assert!(refused.detail.contains(reason), "{refused}");
        assert!(revoke(&[]).unwrap_err().detail.contains(reason));
    }
    std::fs::write(dir.join("ca.pem"), root).unwrap();
    init::server(dir, "second", &["localhost".into()], now()).unwrap();
}
