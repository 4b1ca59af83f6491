//! Replicas are replaced one by one: those of the version before serve beside the new ones.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::SystemEntropy;

use crate::binary::{Dir, Process, command, run, run_by, signal};
use crate::postgres::unlimited;
use shef_fixtures::postgres::Postgres;
use shef_fixtures::service::*;

/// Names the program of the version before.
const BEFORE: &str = "SHEF_VERIFIERD_BEFORE";

fn ends(mut process: Process) {
    signal(&process.child, "-TERM");
    assert!(process.child.wait().unwrap().success());
}

/// Releases and appraisals at one replica, repeated at another; revocations at each of both.
fn together(dir: &Dir, device: &Device, pair: [&Process; 2], round: usize) {
    let [one, other] = pair.map(|process| &process.client);
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let body = |key: Option<&str>| {
        let (session, nonce) = one.session(Layer::Shield, Some(&public));
        let evidence = b64(&device.evidence(Layer::Shield, &nonce));
        json!({"key": key, "session": session, "evidence": evidence})
    };
    let release = body(Some("data"));
    let first = one.post("/v1/release", &release).ok();
    assert_eq!(other.post("/v1/release", &release).ok(), first, "the same box at both");
    let mut appraise = body(None);
    appraise.as_object_mut().unwrap().remove("key");
    one.post("/v1/appraise", &appraise).ok();
    other.post("/v1/appraise", &appraise).problem(409, "SHEF-SVC-042");
    // A revocation at one replica takes effect at the other at once, which can withdraw it.
    let ueid = hex::encode(device.ueid);
    one.post("/v1/revocations", &json!({"kind": "device", "value": ueid, "reason": "test"})).ok();
    other.post("/v1/release", &body(Some("data"))).problem(422, "SHEF-SVC-043");
    other.send("DELETE", &format!("/v1/revocations/device/{ueid}"), &[], b"").ok();
    // Keys of one are released by the other.
    let name = format!("key-{round}");
    one.put_key(&name).ok();
    other.post("/v1/release", &body(Some(&name))).ok();
    // Of readiness, the version before may say less.
    for client in [one, other] {
        client.get("/healthz").ok();
    }
    let audit = command(&["audit", "--config", &dir.config]);
    assert!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stderr));
}

#[test]
#[ignore = "needs the program of the version before: cargo xtask test --full"]
fn replicas_are_replaced_one_by_one() {
    let before = std::env::var(BEFORE).expect("the program of the version before");
    let server = Postgres::start().expect("PostgreSQL");
    let (dir, device) = (unlimited(&server), Arc::new(Device::new(1)));
    let old = |_| run_by(Path::new(&before), &dir);
    let [first, second] = [0, 1].map(old);
    furnish(&first.client, &device);
    first.client.put_key("data").ok();
    // The first new one migrates the database below the feet of the old ones.
    let third = run(&dir);
    together(&dir, &device, [&first, &third], 0);
    together(&dir, &device, [&third, &second], 1);
    ends(first);
    let fourth = run(&dir);
    together(&dir, &device, [&second, &fourth], 2);
    ends(second);
    together(&dir, &device, [&third, &fourth], 3);
    let receipts = fourth.client.get("/v1/receipts").ok();
    assert_eq!(receipts["receipts"].as_array().map(Vec::len), Some(8), "{receipts}");
    assert_ne!(receipts["head"], Value::Null);
    ends(third);
    ends(fourth);
}
