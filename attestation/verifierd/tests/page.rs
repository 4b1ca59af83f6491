//! The operator's page: what it shows, what it asks before it revokes, and that nothing comes from elsewhere.

mod common;

use common::*;
use serde_json::json;
use shef_proto::evidence::Layer;
use shef_verifierd::auth::Role;

fn html(client: &Client, path: &str) -> String {
    let answer = client.get(path);
    assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (200, "text/html; charset=utf-8"));
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'self'") && !policy.contains("unsafe"), "{policy}");
    String::from_utf8(answer.bytes).unwrap()
}

#[test]
fn the_page_shows_everything_and_escapes_it() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    assert!(html(operator, "/").contains("No device has shown genuine evidence yet."));
    service.furnish(&device);
    operator.call("PUT", "/v1/keys/data", &json!({"layer": "shield", "policy": "default", "generate": 32})).ok();
    let (session, nonce) = operator.session(Layer::Kernel, None);
    operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))})).ok();
    let mut other = Device::new(1);
    other.image = [0xee; 32];
    let (session, nonce) = operator.session(Layer::Shield, None);
    let denied = operator
        .post("/v1/appraise", &json!({"session": session, "evidence": b64(&other.evidence(Layer::Shield, &nonce))}))
        .problem(422, "SHEF-SVC-043");
    operator.post("/v1/revocations", &json!({"kind": "image", "value": "ee".repeat(32), "reason": "<script>alert(1)</script>"})).ok();
    let page = html(operator, "/");
    for expected in [&hex::encode(device.ueid), "shef-test", "build-1", "maker", "unknown image", "SHEF-ATT-040", "&lt;script&gt;", "data"]
    {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"), "nothing from elsewhere");
    let page = html(operator, &format!("/appraisals/{}", denied["appraisal_id"].as_str().unwrap()));
    assert!(page.contains("unknown image") && page.contains("failed") && page.contains("passed"), "{page}");
    assert_eq!(operator.get("/style.css").headers["content-type"], "text/css; charset=utf-8");
    service.stranger().get("/").problem(401, "SHEF-SVC-027");
}

#[test]
fn a_revocation_needs_a_confirmed_form_of_this_service() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    service.furnish(&device);
    let ueid = hex::encode(device.ueid);
    let page = html(operator, &format!("/revoke?kind=device&value={ueid}"));
    let token = page.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let post = |client: &Client, body: String| {
        client.send("POST", "/revoke", &[("content-type", "application/x-www-form-urlencoded")], body.as_bytes())
    };
    let form = |value: &str, token: &str| format!("kind=device&value={value}&reason=lost+in+transit&token={token}");
    post(operator, form(&ueid, "AAAA")).problem(403, "SHEF-SVC-028");
    post(operator, form(&"0".repeat(66), token)).problem(403, "SHEF-SVC-028");
    let second = service.client("default", Role::Operator, "second");
    post(&second, form(&ueid, token)).problem(403, "SHEF-SVC-028");
    let audit = service.client("default", Role::Audit, "auditor");
    post(&audit, form(&ueid, token)).problem(403, "SHEF-SVC-028");
    assert!(!html(&audit, "/").contains("href=\"/revoke"), "who may not revoke is not offered it");
    assert!(operator.get("/v1/revocations").ok()["revocations"].as_array().unwrap().is_empty());
    let done = post(operator, form(&ueid, token));
    assert_eq!((done.status, done.headers["location"].to_str().unwrap()), (303, "/"));
    assert_eq!(operator.get("/v1/revocations").ok()["revocations"][0]["reason"], "lost in transit");
    let (session, nonce) = operator.session(Layer::Kernel, None);
    operator
        .post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))}))
        .problem(422, "SHEF-SVC-043");
}
