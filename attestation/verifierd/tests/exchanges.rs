//! Third-party clients get the responses that they expect. Instead of the clients, the test replays
//! exchanges that `cargo xtask compat` recorded with them.

#[allow(dead_code, reason = "what records stands in the program of the clients")]
use std::path::Path;

use aws_lc_rs::digest::{SHA384, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use shef_fixtures::exchange::{self, Body, Exchange, RecordedRequest, Values};
use shef_proto::evidence::Layer;

use crate::clients::*;
use shef_fixtures::service::*;

/// The nonce for a request's evidence: the challenge's, which in the KBS protocol is in the hashed
/// runtime data.
fn nonce(request: &RecordedRequest, values: &Values) -> Vec<u8> {
    let Body::Text(body) = &request.body else {
        return STANDARD.decode(values.get("nonce")).unwrap();
    };
    let body: Value = serde_json::from_str(&values.fill(body)).unwrap_or_default();
    let Some(key) = body.pointer("/runtime-data/tee-pubkey") else {
        return STANDARD.decode(values.get("nonce")).unwrap();
    };
    let members = ["alg", "crv", "kty", "x", "y"]
        .into_iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", key.get(name)?)));
    let additional = &body["tee-evidence"]["additional_evidence"];
    let key = members.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"additional-evidence":{additional},"nonce":{},"tee-pubkey":{{{key}}}}}"#,
        json!(values.get("nonce"))
    );
    digest(&SHA384, text.as_bytes()).as_ref().to_vec()
}

fn play(service: &Service, device: &Device, name: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/exchanges").join(name);
    let exchanges: Vec<Exchange> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(!exchanges.is_empty(), "{name}");
    let mut values = Values::default();
    for (at, Exchange { request, answer: expected }) in exchanges.into_iter().enumerate() {
        values.set("evidence", &b64(&device.evidence(Layer::Kernel, &nonce(&request, &values))));
        let client =
            if request.by == "operator" { service.operator.clone() } else { service.stranger() };
        let headers: Vec<(&str, String)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), values.fill(value)))
            .collect();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = match &request.body {
            Body::Text(text) => values.fill(text).into_bytes(),
            Body::Bytes(bytes) => unb64(&json!(values.fill(bytes))),
        };
        let answer = client.send(&request.method, &values.fill(&request.path), &headers, &body);
        let header = |name: &str| answer.headers.get(name)?.to_str().ok();
        let found = exchange::RecordedAnswer::shape(answer.status, header, &answer.bytes);
        let show =
            |answer: &exchange::RecordedAnswer| serde_json::to_string_pretty(answer).unwrap();
        assert!(
            found == expected,
            "{name}, exchange {at} ({} {}): answered\n{}\nrecorded with its client was\n{}\n`cargo xtask compat` asks the clients themselves",
            request.method,
            request.path,
            show(&found),
            show(&expected)
        );
        values.learn(header, &answer.bytes);
    }
}

#[test]
fn recorded_clients_are_answered_as_when_they_were_recorded() {
    let service = Service::with(
        |text| format!("{text}\n[[tenant]]\nname = \"lab\"\n{LET_IN}"),
        Default::default(),
    );
    let device = Device::new(1);
    play(&service, &device, "set-up.json");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/exchanges");
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "set-up.json").collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        play(&service, &device, &name);
    }
}
