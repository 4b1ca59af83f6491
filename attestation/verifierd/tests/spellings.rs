//! The service rejects a signature with `n - s` in place of s on every path, and accepts the same
//! message with the original s.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use serde_json::json;
use shef_proto::crypto::twin;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::SystemEntropy;
use shef_verify::cmw::{Cmw, Record};

use crate::clients::*;
use shef_fixtures::service::*;

/// A signed message with the other s.
fn other_s(signed: &[u8]) -> Vec<u8> {
    let (start, signature) = signed.split_last_chunk::<64>().unwrap();
    [start, &twin(signature).unwrap()[..]].concat()
}

/// A path that takes evidence: its response to evidence changed by a function, and whether it
/// accepts it.
type Path<'a> = (&'a str, &'a dyn Fn(&dyn Fn(Vec<u8>) -> Vec<u8>) -> (HttpResponse, bool));

#[test]
fn evidence_with_the_other_s_is_refused_at_every_path() {
    let (service, device, client) = furnished();
    let operator = &service.operator;
    operator.put_key("data").ok();
    let appraise = |layer: Layer, change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let (session, nonce) = operator.session(layer, None);
        let evidence = change(device.evidence(layer, &nonce));
        let answer =
            operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&evidence)}));
        let taken = answer.status == 200;
        (answer, taken)
    };
    let release = |change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let (session, nonce) = operator.session(Layer::Shield, Some(&public));
        let evidence = change(device.evidence(Layer::Shield, &nonce));
        let answer = operator.post(
            "/v1/release",
            &json!({"key": "data", "session": session, "evidence": b64(&evidence)}),
        );
        let taken = answer.status == 200;
        (answer, taken)
    };
    let veraison = |media: &str,
                    wrap: &dyn Fn(&[u8]) -> Vec<u8>,
                    change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let answer =
            client.send("POST", "/challenge-response/v1/newSession", &[("accept", SESSION)], b"");
        let path =
            format!("/challenge-response/v1/{}", answer.headers["location"].to_str().unwrap());
        let nonce = STANDARD.decode(answer.json()["nonce"].as_str().unwrap()).unwrap();
        let evidence = wrap(&change(device.evidence(Layer::Kernel, &nonce)));
        let answer =
            client.send("POST", &path, &[("accept", SESSION), ("content-type", media)], &evidence);
        let taken =
            claims(&answer.json()["result"])["submods"]["fpga-kernel"]["ear.status"] == "affirming";
        (answer, taken)
    };
    let kbs = |change: &dyn Fn(Vec<u8>) -> Vec<u8>| {
        let kbs = Kbs::begin(&client);
        let mut body = kbs.attestation(&device, &kbs.public());
        let shown = &mut body["tee-evidence"]["primary_evidence"]["evidence"];
        *shown = json!(b64(&change(unb64(shown))));
        let answer = kbs.submit(&body);
        let taken = answer.status == 200;
        (answer, taken)
    };
    let record = |evidence: &[u8]| Cmw::Record(Record::evidence(evidence));
    let paths: [Path<'_>; 7] = [
        ("appraise, kernel", &|change| appraise(Layer::Kernel, change)),
        ("appraise, Shield", &|change| appraise(Layer::Shield, change)),
        ("release", &release),
        ("Veraison", &|change| veraison("application/eat+cwt", &<[u8]>::to_vec, change)),
        ("Veraison, CMW in CBOR", &|change| {
            veraison("application/cmw+cbor", &|evidence| record(evidence).to_cbor(), change)
        }),
        ("Veraison, CMW in JSON", &|change| {
            veraison(
                "application/cmw+json",
                &|evidence| record(evidence).to_json().into_bytes(),
                change,
            )
        }),
        ("KBS", &kbs),
    ];
    for (name, path) in paths {
        let (answer, taken) = path(&|evidence| evidence);
        assert!(taken, "{name}: {}", String::from_utf8_lossy(&answer.bytes));
        let (answer, taken) = path(&|evidence| other_s(&evidence));
        let text = String::from_utf8_lossy(&answer.bytes);
        assert!(!taken, "{name}: {text}");
        assert!(name.starts_with("Veraison") || text.contains("SHEF-ATT-014"), "{name}: {text}");
    }
}

/// Two rules reject it: results have a low s, and a result must match byte for byte.
#[test]
fn a_result_with_the_other_s_fetches_nothing() {
    let (service, device, client) = furnished();
    host_resource(&service.operator, "default/key/one");
    let (_, token) = Kbs::of_card(&client, &device);
    let (message, signature) = token.rsplit_once('.').unwrap();
    let other = format!("{message}.{}", B64.encode(other_s(&B64.decode(signature).unwrap())));
    const ONE: &str = "/kbs/v0/resource/default/key/one";
    client.with_token(&token).get(ONE).ok();
    client.with_token(&other).get(ONE).problem(401, "SHEF-SVC-027");
}
