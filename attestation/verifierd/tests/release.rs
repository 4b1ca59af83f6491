//! Appraisal and key release against the running service.

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::{PrivateKey, PublicKey, generate_key_pair};
use shef_proto::image::ImageKey;
use shef_proto::receipt::{Audit, Head};
use shef_proto::release::{Expected, ImageSecret, KeyBox};
use shef_verifierd::config::Config;
use shef_verifierd::role::Role;
use shef_verifierd::run::start;
use shef_verifierd::secrets::{SystemEntropy, sha256};

use shef_fixtures::service::*;

fn pair() -> (PrivateKey, PublicKey) {
    generate_key_pair(&mut SystemEntropy)
}

fn submit(client: &Client, path: &str, session: &str, evidence: &[u8]) -> HttpResponse {
    client.post(path, &json!({"session": session, "evidence": b64(evidence)}))
}

pub fn release(client: &Client, key: &str, session: &str, evidence: &[u8]) -> HttpResponse {
    client.post("/v1/release", &json!({"key": key, "session": session, "evidence": b64(evidence)}))
}

pub fn add_image_key(operator: &Client, name: &str, more: Value) -> [u8; 32] {
    let (_, vendor) = pair();
    let key = [7; 32];
    let mut body = json!({"layer": "kernel", "policy": "default", "image": {"key": b64(&key), "min_svn": 3, "vendor": b64(vendor.as_bytes())}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    operator.call("PUT", &format!("/v1/keys/{name}"), &body).ok();
    key
}

fn add_data_key(service: &Service, name: &str, more: Value) {
    let mut body = json!({"layer": "shield", "policy": "default", "secret": b64(b"a secret of the data owner")});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.operator.call("PUT", &format!("/v1/keys/{name}"), &body).ok();
}

fn open(answer: &Value, key: &PrivateKey, layer: Layer, evidence: &[u8], nonce: &[u8]) -> Vec<u8> {
    let sealed = KeyBox::from_cbor(&unb64(&answer["box"])).unwrap();
    sealed
        .open(
            key,
            &Expected {
                layer,
                evidence_digest: &sha256(evidence),
                nonce,
                key: Some(("default", answer["key"].as_str().unwrap())),
            },
        )
        .unwrap()
        .to_vec()
}

pub fn furnished() -> (Service, Device) {
    let (service, device) = (Service::start(), Device::new(1));
    service.furnish(&device);
    (service, device)
}

#[test]
fn evidence_is_appraised_once() {
    let (service, device) = furnished();
    let operator = &service.operator;
    let (session, nonce) = operator.session(Layer::Kernel, None);
    assert_eq!(nonce.len(), 48);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    // `explain` uses nothing up.
    for _ in 0..2 {
        let explained = submit(operator, "/v1/explain", &session, &evidence).ok();
        assert_eq!(
            (explained["would_be"].as_str(), &explained["nonce_used"]),
            (Some("accepted"), &json!(false))
        );
    }
    let answer = submit(operator, "/v1/appraise", &session, &evidence).ok();
    assert_eq!((&answer["verdict"], &answer["policy"]), (&json!("accepted"), &json!("default@1")));
    // Its answer may have been lost: the same caller gets it again for the same evidence.
    let again = submit(operator, "/v1/appraise", &session, &evidence).problem(409, "SHEF-SVC-042");
    let members = ["verdict", "appraisal_id", "policy", "policy_sha256"];
    assert!(members.iter().all(|name| again["kept"][name] == answer[name]), "{again}");
    assert!(again["kept"]["result"].is_string());
    let other = service.client("default", Role::Attest, "other");
    let stranger = submit(&other, "/v1/appraise", &session, &evidence).problem(409, "SHEF-SVC-042");
    let another = Device::new(2).evidence(Layer::Kernel, &nonce);
    let another = submit(operator, "/v1/appraise", &session, &another).problem(409, "SHEF-SVC-042");
    assert_eq!((&stranger["kept"], &another["kept"]), (&Value::Null, &Value::Null));
    assert_eq!(submit(operator, "/v1/explain", &session, &evidence).ok()["would_be"], "denied");
    // A new session has another nonce.
    let (other, _) = operator.session(Layer::Kernel, None);
    let denied = submit(operator, "/v1/appraise", &other, &evidence).problem(422, "SHEF-SVC-043");
    let failed: Vec<_> = denied["appraisal"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["passed"] == false)
        .collect();
    assert_eq!(failed[0]["code"], "SHEF-ATT-004");
    assert!(failed[0]["expected"].is_string() && failed[0]["actual"].is_string());
    // A relying party's own nonce, once.
    let nonce = [9; 32];
    let body = json!({"nonce": b64(&nonce), "layer": "kernel", "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
    operator.post("/v1/appraise", &body).ok();
    operator.post("/v1/appraise", &body).problem(409, "SHEF-SVC-042");
    operator.post("/v1/appraise", &json!({"evidence": "AA"})).problem(400, "SHEF-SVC-026");
    // The record of the device.
    let seen = operator.get("/v1/devices").ok();
    assert_eq!(seen["devices"][0]["ueid"], hex::encode(device.ueid));
    assert_eq!(seen["devices"][0]["stale"], false);
    let listed = operator.get("/v1/appraisals").ok();
    assert_eq!(listed["appraisals"].as_array().unwrap().len(), 3, "{listed}");
    let one =
        operator.get(&format!("/v1/appraisals/{}", answer["appraisal_id"].as_str().unwrap())).ok();
    assert_eq!(one["verdict"], "accepted");
}

#[test]
fn strangers_cannot_use_a_nonce_up() {
    let (service, device) = furnished();
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    // Another manufacturer's evidence, and damaged evidence, come first and do not use the
    // challenge up.
    let forged = Device::made_by(2, 5).evidence(Layer::Kernel, &nonce);
    submit(&service.operator, "/v1/appraise", &session, &forged).problem(422, "SHEF-SVC-043");
    let mut damaged = device.evidence(Layer::Kernel, &nonce);
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    submit(&service.operator, "/v1/appraise", &session, &damaged).problem(422, "SHEF-SVC-043");
    assert!(service.operator.get("/v1/devices").ok()["devices"].as_array().unwrap().is_empty());
    submit(&service.operator, "/v1/appraise", &session, &device.evidence(Layer::Kernel, &nonce))
        .ok();
}

#[test]
fn two_parallel_submissions_have_one_winner() {
    let (service, device) = furnished();
    for _ in 0..10 {
        let (session, nonce) = service.operator.session(Layer::Kernel, None);
        let evidence = device.evidence(Layer::Kernel, &nonce);
        let results: Vec<u16> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        submit(&service.operator, "/v1/appraise", &session, &evidence).status
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|status| **status == 200).count(), 1, "{results:?}");
        assert_eq!(results.iter().filter(|status| **status == 409).count(), 3, "{results:?}");
    }
}

#[test]
fn an_image_key_goes_to_the_kernel_in_the_evidence() {
    let (service, device) = furnished();
    let image_key = add_image_key(&service.operator, "image", json!({"max_releases": 1}));
    let client = service.client("default", Role::Release, "vendor");
    let (session, nonce) = client.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    let answer = release(&client, "image", &session, &evidence).ok();
    let secret =
        ImageSecret::from_bytes(&open(&answer, &device.key, Layer::Kernel, &evidence, &nonce))
            .unwrap();
    assert_eq!(secret.key.expose(), ImageKey::from_bytes(&image_key).expose());
    let sealed = KeyBox::from_cbor(&unb64(&answer["box"])).unwrap();
    assert_eq!(
        (sealed.info().tenant.as_str(), sealed.info().key_id.as_str(), sealed.info().key_version),
        ("default", "image", 1)
    );
    // The same evidence gets the same bytes again, counted once, also in parallel.
    for _ in 0..2 {
        assert_eq!(release(&client, "image", &session, &evidence).ok(), answer);
    }
    let key = service.operator.get("/v1/keys/image").ok();
    assert_eq!(key["versions"][0]["released"], 1);
    // Other evidence is counted, and the limit is reached.
    let (session, nonce) = client.session(Layer::Kernel, None);
    release(&client, "image", &session, &device.evidence(Layer::Kernel, &nonce))
        .problem(409, "SHEF-SVC-063");
    // A refusal because of the limit creates no receipt and does not use the nonce up.
    let receipts = service.operator.get("/v1/receipts").ok();
    assert_eq!(receipts["receipts"].as_array().unwrap().len(), 1);
    assert_eq!(receipts["head"], answer["head"]);
}

#[test]
fn a_data_key_goes_to_the_recipient_of_the_session_and_layers_do_not_mix() {
    let (service, device) = furnished();
    add_image_key(&service.operator, "image", json!({}));
    add_data_key(&service, "data", json!({}));
    let (one_time, public) = pair();
    let (session, nonce) = service.operator.session(Layer::Shield, Some(&public));
    let evidence = device.evidence(Layer::Shield, &nonce);
    let answer = release(&service.operator, "data", &session, &evidence).ok();
    assert_eq!(
        open(&answer, &one_time, Layer::Shield, &evidence, &nonce),
        b"a secret of the data owner"
    );
    assert!(
        KeyBox::from_cbor(&unb64(&answer["box"]))
            .unwrap()
            .open(
                &device.key,
                &Expected {
                    layer: Layer::Shield,
                    evidence_digest: &sha256(&evidence),
                    nonce: &nonce,
                    key: None
                }
            )
            .is_err()
    );

    let (session, nonce) = service.operator.session(Layer::Shield, None);
    release(&service.operator, "data", &session, &device.evidence(Layer::Shield, &nonce))
        .problem(409, "SHEF-SVC-065");
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    release(&service.operator, "data", &session, &device.evidence(Layer::Kernel, &nonce))
        .problem(409, "SHEF-SVC-064");
    // Evidence of the kernel in a session for the Shield.
    let (session, nonce) = service.operator.session(Layer::Shield, Some(&public));
    release(&service.operator, "image", &session, &device.evidence(Layer::Shield, &nonce))
        .problem(409, "SHEF-SVC-064");
    let denied =
        release(&service.operator, "data", &session, &device.evidence(Layer::Kernel, &nonce))
            .problem(422, "SHEF-SVC-043");
    assert!(denied["detail"].as_str().unwrap().contains("SHEF-ATT-002"), "{denied}");
    service
        .operator
        .post("/v1/sessions", &json!({"layer": "kernel", "recipient": b64(public.as_bytes())}))
        .problem(400, "SHEF-SVC-026");
}

#[test]
fn evidence_that_was_appraised_releases_nothing_and_the_other_way_round() {
    let (service, device) = furnished();
    add_image_key(&service.operator, "image", json!({}));
    add_image_key(&service.operator, "second", json!({}));
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    submit(&service.operator, "/v1/appraise", &session, &evidence).ok();
    release(&service.operator, "image", &session, &evidence).problem(409, "SHEF-SVC-042");
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    release(&service.operator, "image", &session, &evidence).ok();
    submit(&service.operator, "/v1/appraise", &session, &evidence).problem(409, "SHEF-SVC-042");
    release(&service.operator, "second", &session, &evidence).problem(409, "SHEF-SVC-042");
}

#[test]
fn keys_have_versions_windows_and_switches_and_their_policy_is_frozen() {
    let (service, device) = furnished();
    let operator = &service.operator;
    add_data_key(&service, "data", json!({}));
    let strict = POLICY.replace("min_kernel_svn = 1", "min_kernel_svn = 9");
    operator
        .send(
            "PUT",
            "/v1/policies/default",
            &[("content-type", "application/toml")],
            strict.as_bytes(),
        )
        .ok();
    let (_, public) = pair();
    let fetch = |key: &str| {
        let (session, nonce) = operator.session(Layer::Shield, Some(&public));
        release(operator, key, &session, &device.evidence(Layer::Shield, &nonce))
    };
    // Version 1 stays under its original policy, version 2 is under the new one.
    let (session, nonce) = operator.session(Layer::Shield, Some(&public));
    let before = device.evidence(Layer::Shield, &nonce);
    let repeat = || release(operator, "data", &session, &before);
    let answer = repeat().ok();
    let rotated =
        operator.post("/v1/keys/data/rotate", &json!({"policy": "default", "generate": 32})).ok();
    assert_eq!((&rotated["version"], &rotated["policy"]), (&json!(2), &json!("default@2")));
    let denied = fetch("data").problem(422, "SHEF-SVC-043");
    assert!(denied["detail"].as_str().unwrap().contains("SHEF-ATT-031"), "{denied}");
    // A release whose answer was lost is not another version's because the key was rotated.
    assert_eq!(repeat().ok(), answer);
    let (session, nonce) = operator.session(Layer::Shield, Some(&public));
    let old = json!({"key": "data", "version": 1, "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    operator.post("/v1/release", &old).ok();
    operator.post("/v1/keys/data/disable", &json!({"version": 1})).ok();
    // A released box is not returned again either.
    operator.post("/v1/release", &old).problem(409, "SHEF-SVC-061");
    repeat().problem(409, "SHEF-SVC-061");
    // A key and its newest version are disabled separately, and a list shows both.
    let shown = |field: &str| operator.get("/v1/keys").ok()["keys"][0][field].clone();
    for (action, off) in [("disable", true), ("enable", false)] {
        operator.post(&format!("/v1/keys/data/{action}"), &json!({"version": 2})).ok();
        assert_eq!((shown("disabled"), shown("version_disabled")), (false.into(), off.into()));
    }
    operator.post("/v1/keys/data/enable", &json!({"version": 1})).ok();
    operator.post("/v1/release", &old).ok();
    operator.send("POST", "/v1/keys/data/disable", &[], b"").ok();
    operator.post("/v1/release", &old).problem(409, "SHEF-SVC-061");

    add_data_key(&service, "later", json!({"policy": "default@1", "not_before": now() + 1000}));
    fetch("later").problem(409, "SHEF-SVC-062");
    add_data_key(&service, "gone", json!({"policy": "default@1", "not_before": 1, "not_after": 2}));
    fetch("gone").problem(409, "SHEF-SVC-062");
    fetch("none").problem(404, "SHEF-SVC-020");

    for bad in [
        json!({"layer": "shield", "policy": "default"}),
        json!({"layer": "shield", "policy": "default", "secret": "AA", "generate": 32}),
        json!({"layer": "shield", "policy": "default", "generate": 8}),
        json!({"layer": "kernel", "policy": "default", "generate": 32}),
        json!({"layer": "kernel", "policy": "default", "secret": b64(&[7; 32])}),
        json!({"layer": "shield", "policy": "default", "generate": 32, "not_before": 5, "not_after": 5}),
    ] {
        operator.call("PUT", "/v1/keys/bad", &bad).problem(422, "SHEF-SVC-060");
    }
    operator
        .call("PUT", "/v1/keys/bad", &json!({"layer": "shield", "policy": "nope", "generate": 32}))
        .problem(404, "SHEF-SVC-020");
    operator.put_key("data").problem(409, "SHEF-SVC-054");
    operator.put_key("Bad").problem(422, "SHEF-SVC-055");
}

#[test]
fn revocations_count_at_once_for_new_evidence_and_for_boxes_given_out() {
    let (service, device) = furnished();
    let operator = &service.operator;
    add_image_key(&service.operator, "image", json!({}));
    let (session, nonce) = operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    release(operator, "image", &session, &evidence).ok();
    for (kind, value) in [
        ("device", hex::encode(device.ueid)),
        ("kernel", hex::encode(KERNEL)),
        ("shell", hex::encode(SHELL)),
        ("authority", hex::encode(sha256(device.root.key().as_bytes()))),
    ] {
        operator
            .post("/v1/revocations", &json!({"kind": kind, "value": value, "reason": "lost"}))
            .ok();
        let denied = release(operator, "image", &session, &evidence).problem(422, "SHEF-SVC-043");
        if kind != "authority" {
            assert_eq!(denied["revocations"][0]["kind"], kind, "{denied}");
        }
        let (fresh, nonce) = operator.session(Layer::Kernel, None);
        submit(operator, "/v1/appraise", &fresh, &device.evidence(Layer::Kernel, &nonce))
            .problem(422, "SHEF-SVC-043");
        operator.call("DELETE", &format!("/v1/revocations/{kind}/{value}"), &json!({})).ok();
        release(operator, "image", &session, &evidence).ok();
    }
    for bad in [
        json!({"kind": "cpu", "value": "x", "reason": "r"}),
        json!({"kind": "device", "value": "00", "reason": "r"}),
        json!({"kind": "image", "value": "00".repeat(32), "reason": ""}),
    ] {
        operator.post("/v1/revocations", &bad).problem(422, "SHEF-SVC-053");
    }
    // Deactivated reference values are unknown.
    operator.send("POST", "/v1/corims/build-1/deactivate", &[], b"").ok();
    release(operator, "image", &session, &evidence).problem(422, "SHEF-SVC-043");
    operator.send("POST", "/v1/corims/build-1/activate", &[], b"").ok();
    release(operator, "image", &session, &evidence).ok();
}

#[test]
fn a_dry_run_says_what_a_policy_would_deny() {
    let (service, device) = furnished();
    let operator = &service.operator;
    for _ in 0..3 {
        let (session, nonce) = operator.session(Layer::Kernel, None);
        submit(operator, "/v1/appraise", &session, &device.evidence(Layer::Kernel, &nonce)).ok();
    }
    let strict = POLICY.replace("min_kernel_svn = 1", "min_kernel_svn = 9");
    let run = |text: &str| {
        operator.send(
            "POST",
            "/v1/policies/dry-run",
            &[("content-type", "application/toml")],
            text.as_bytes(),
        )
    };
    assert_eq!(run(POLICY).ok()["changes"], json!([]));
    let result = run(&strict).ok();
    assert_eq!((&result["held"], &result["denied"]), (&json!(3), &json!(3)));
    assert_eq!(result["changes"][0]["failed"][0]["code"], "SHEF-ATT-031");
    run("nonsense").problem(422, "SHEF-SVC-050");
    // Nothing was stored.
    assert_eq!(operator.get("/v1/policies").ok()["policies"].as_array().unwrap().len(), 1);
}

#[test]
fn receipts_form_a_chain_that_is_verified_from_outside() {
    let (service, device) = furnished();
    let operator = &service.operator;
    add_data_key(&service, "data", json!({}));
    let mut head = Value::Null;
    for _ in 0..5 {
        let (_, public) = pair();
        let (session, nonce) = operator.session(Layer::Shield, Some(&public));
        head = release(operator, "data", &session, &device.evidence(Layer::Shield, &nonce)).ok()["head"].clone();
    }
    let list = operator.get("/v1/receipts?key=data").ok();
    assert_eq!(list["head"], head);
    let jwk = operator.get("/.well-known/jwks.json").ok()["keys"][0].clone();
    let point: Vec<u8> = [vec![4], unb64(&jwk["x"]), unb64(&jwk["y"])].concat();
    let keys = [PublicKey::from_bytes(&point).unwrap()];
    let known = Head {
        seq: head["seq"].as_u64().unwrap(),
        digest: hex::decode(head["digest"].as_str().unwrap()).unwrap().try_into().unwrap(),
    };
    let receipts: Vec<Vec<u8>> =
        list["receipts"].as_array().unwrap().iter().map(|row| unb64(&row["receipt"])).collect();
    let mut audit = Audit::new("default", &keys, None);
    for receipt in &receipts {
        let receipt = audit.push(receipt).unwrap();
        assert_eq!((receipt.key_id.as_str(), receipt.ueid), ("data", device.ueid));
    }
    audit.finish(&known).unwrap();
    let mut short = Audit::new("default", &keys, None);
    receipts[..4].iter().for_each(|receipt| drop(short.push(receipt).unwrap()));
    assert_eq!(short.finish(&known).unwrap_err().code(), "SHEF-PRO-092");
}

#[test]
fn sessions_end_and_boxes_end_later() {
    let start = now();
    let service = Service::with(|text| text, fixed_clock(start));
    let device = Device::new(1);
    service.furnish(&device);
    add_image_key(&service.operator, "image", json!({}));
    let operator = &service.operator;
    let (session, nonce) = operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    let (late, late_nonce) = operator.session(Layer::Kernel, None);
    let answer = release(operator, "image", &session, &evidence).ok();
    service.set_clock(start + 200);
    release(operator, "image", &late, &device.evidence(Layer::Kernel, &late_nonce))
        .problem(410, "SHEF-SVC-041");
    submit(operator, "/v1/appraise", &late, &device.evidence(Layer::Kernel, &late_nonce))
        .problem(410, "SHEF-SVC-041");
    assert_eq!(release(operator, "image", &session, &evidence).ok(), answer);
    service.set_clock(start + 601);
    release(operator, "image", &session, &evidence).problem(410, "SHEF-SVC-041");
    // After a sweep, the evidence still releases nothing: its session has expired.
    service.set_clock(start + 4000);
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    release(operator, "image", &session, &evidence).problem(410, "SHEF-SVC-041");
    // A device that has gone quiet shows, despite an earlier count.
    let stale = |number: u32| {
        let metrics = String::from_utf8(operator.get("/metrics").bytes).unwrap();
        assert!(metrics.contains(&format!("\nshef_devices_stale {number}\n")), "{metrics}");
    };
    stale(0);
    service.set_clock(start + 90_000);
    assert_eq!(operator.get("/v1/devices").ok()["devices"][0]["stale"], true);
    stale(1);
    // The clock steps back: the used challenge stays used.
    service.set_clock(start);
    release(operator, "image", &session, &evidence).problem(409, "SHEF-SVC-042");
}

#[test]
fn everything_survives_a_restart() {
    let (mut service, device) = furnished();
    add_image_key(&service.operator, "image", json!({}));
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    let answer = release(&service.operator, "image", &session, &evidence).ok();
    service.restart();
    assert_eq!(release(&service.operator, "image", &session, &evidence).ok(), answer);
    submit(&service.operator, "/v1/appraise", &session, &evidence).problem(409, "SHEF-SVC-042");
    assert_eq!(service.operator.get("/v1/receipts").ok()["head"], answer["head"]);
}

/// The service remembers a kernel update, even if its database began with the first version of the
/// schema.
#[test]
fn a_device_that_was_updated_does_not_go_back() {
    let (mut service, device) = furnished();
    add_reference(&service.operator, "build-2", &next_reference());
    let appraise = |service: &Service, device: &Device| {
        let (session, nonce) = service.operator.session(Layer::Kernel, None);
        submit(&service.operator, "/v1/appraise", &session, &device.evidence(Layer::Kernel, &nonce))
    };
    let shown = |service: &Service| {
        service.operator.get("/v1/devices").ok()["devices"][0]["highest_svn"].clone()
    };
    appraise(&service, &device).ok();
    assert_eq!(shown(&service), 2);
    appraise(&service, &Device::updated(1)).ok();
    service.stop();
    let database = service.dir.join("verifierd.db");
    service.runtime.block_on(async {
        let pool = sqlx::SqlitePool::connect(database.to_str().unwrap()).await.unwrap();
        sqlx::raw_sql("ALTER TABLE device DROP COLUMN highest_svn; DROP TABLE event; ALTER TABLE key_name DROP COLUMN to_host; \
             DROP TABLE corim_version; DROP TABLE gone; DELETE FROM meta WHERE name = 'beside'; DROP INDEX appraisal_unproven; DROP INDEX appraisal_unproven_evidence; DROP INDEX appraisal_caller; ALTER TABLE appraisal DROP COLUMN caller; ALTER TABLE appraisal DROP COLUMN genuine; \
             ALTER TABLE appraisal DROP COLUMN sha256; ALTER TABLE tenant DROP COLUMN kept_signed; ALTER TABLE tenant DROP COLUMN erased; UPDATE meta SET number = 1 WHERE name = 'version'")
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
    });
    service.restart();
    assert_eq!(shown(&service), 3);
    let denied = appraise(&service, &device).problem(422, "SHEF-SVC-043");
    assert!(
        denied["detail"].as_str().unwrap().contains("(SHEF-ATT-031): expected at least 3, found 2"),
        "{denied}"
    );
    appraise(&service, &Device::updated(1)).ok();
}

/// Additions by one replica take effect at once for evidence that another one has: unread additions
/// cause no denial, and use no challenge up.
#[test]
fn nothing_is_denied_for_what_another_replica_has_added() {
    let (service, device) = furnished();
    add_data_key(&service, "data", json!({}));
    let config = Config::read(&service.dir.join("verifierd.toml")).unwrap();
    let second = service.runtime.block_on(start(config, Default::default())).unwrap();
    let other = Client::new(&service.dir, &format!("https://{}", second.address), Some("operator"));
    let (_, owner) = pair();
    for path in ["/v1/release", "/v1/appraise", "/v1/explain"] {
        let (session, nonce) = service.operator.session(Layer::Shield, Some(&owner));
        let mut body =
            json!({"session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
        if path == "/v1/release" {
            body["key"] = json!("data");
        }
        service.operator.send("DELETE", "/v1/corims/build-1", &[], b"").ok();
        // The other replica now reads the collateral, and trusts it for a second.
        other.get("/v1/policies/default").ok_bytes();
        add_reference(&service.operator, "build-1", &reference());
        let answer = other.post(path, &body).ok();
        assert!(path != "/v1/explain" || answer["would_be"] == "accepted", "{answer}");
    }
    service.runtime.block_on(second.stop());
}

/// The machine loses power, and with it the last used nonces: sessions of before count as used. A
/// process that is killed loses nothing.
#[test]
fn after_a_loss_of_power_no_nonce_counts_twice() {
    let (mut service, device) = furnished();
    add_image_key(&service.operator, "image", json!({}));
    let boot = |service: &Service, content: &str| {
        let file = service.dir.join("verifierd.db");
        service.runtime.block_on(async {
            let pool = sqlx::SqlitePool::connect(file.to_str().unwrap()).await.unwrap();
            let (before,): (String,) =
                sqlx::query_as("SELECT content FROM meta WHERE name = 'boot'")
                    .fetch_one(&pool)
                    .await
                    .unwrap();
            sqlx::query("UPDATE meta SET content = $1 WHERE name = 'boot'")
                .bind(content)
                .execute(&pool)
                .await
                .unwrap();
            pool.close().await;
            before
        })
    };
    let this = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let open = |service: &Service| {
        let (session, nonce) = service.operator.session(Layer::Kernel, None);
        (session, device.evidence(Layer::Kernel, &nonce))
    };
    // Stopped in order, and killed: the same start of the machine.
    let (session, evidence) = open(&service);
    service.stop();
    assert_eq!(boot(&service, this.trim()), "");
    service.restart();
    release(&service.operator, "image", &session, &evidence).ok();
    // Another start of the machine, after one that ended without the service's end.
    let (session, evidence) = open(&service);
    service.stop();
    boot(&service, "another");
    service.restart();
    release(&service.operator, "image", &session, &evidence).problem(409, "SHEF-SVC-042");
    assert_eq!(boot(&service, this.trim()), this.trim());
}

/// A release that is refused leaves an event, and the same worthless evidence one record.
#[test]
fn refusals_leave_a_trace_and_replays_one() {
    let (service, device) = furnished();
    add_image_key(&service.operator, "image", json!({}));
    let agent = service.client("default", Role::Release, "agent");
    service.operator.post("/v1/keys/image/disable", &json!({})).ok();
    let (session, nonce) = agent.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    release(&agent, "image", &session, &evidence).problem(409, "SHEF-SVC-061");
    release(&agent, "<img>", &session, &evidence).problem(404, "SHEF-SVC-020");
    assert_eq!(
        service.operator.events("action", "refused", ["who", "what"]),
        [["agent", "release image: SHEF-SVC-061"], ["agent", "release ?: SHEF-SVC-020"]]
    );
    // Captured evidence, sent under other challenges.
    let ids: Vec<_> = (0..3)
        .map(|_| {
            let (session, _) = agent.session(Layer::Kernel, None);
            let denied = submit(&agent, "/v1/appraise", &session, &evidence);
            denied.problem(422, "SHEF-SVC-043")["appraisal_id"].clone()
        })
        .collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
    let kept = service.operator.get("/v1/appraisals").ok();
    assert_eq!(kept["appraisals"].as_array().unwrap().len(), 1, "{kept}");
}
