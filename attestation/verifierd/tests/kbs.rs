//! The KBS protocol of Confidential Containers against the running service: a resource goes to the
//! key that the evidence vouches for, by cookie and by result.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::{Layer, RootOfTrust};
use shef_proto::hpke_suite::PrivateKey;
use shef_verifierd::config::Config;
use shef_verifierd::role::Role;
use shef_verifierd::secrets::{sha256, thumbprint};
use shef_verify::jwt::{self, NamedKey};

use crate::clients::*;
use shef_fixtures::service::*;

#[test]
fn a_kbs_client_fetches_a_resource() {
    let (service, device, client) = furnished();
    host_resource(&service.operator, "default/key/one");
    let kbs = Kbs::begin(&client);
    // Not attested: 401, so that the client attests.
    kbs.fetch("default/key/one").problem(401, "SHEF-SVC-027");
    let token = kbs.attest(&device).ok()["token"].clone();
    assert_eq!(claims(&token)["submods"]["fpga-kernel"]["ear.status"], "affirming");
    let first = kbs.fetch("default/key/one").ok();
    assert_eq!(kbs.open(&first), b"the resource");
    // Unknown: 404, so that it gives up.
    kbs.fetch("default/key/two").problem(404, "SHEF-SVC-020");
    kbs.fetch("default/key/..%2fone").problem(404, "SHEF-SVC-020");
    // A key is not a resource, and a resource is not a key.
    service.operator.put_key("one").ok();
    kbs.fetch("keys/shield/one").problem(401, "SHEF-SVC-027");
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let body = json!({"key": "default/key/one", "session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
    service.operator.post("/v1/release", &body).problem(404, "SHEF-SVC-020");
    // An attested session does not attest again for another holder of its cookie.
    let answer = kbs.attest(&device);
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["code"], "SHEF-SVC-042");
    // A repeated request is the same release, with one receipt, which says that it went to the
    // host.
    assert_eq!(kbs.fetch("default/key/one").ok(), first);
    let receipts = service.operator.get("/v1/receipts").ok();
    let keys = service.operator.get("/.well-known/jwks.json").ok();
    let point = [vec![4], unb64(&keys["keys"][0]["x"]), unb64(&keys["keys"][0]["y"])].concat();
    let key = shef_proto::hpke_suite::PublicKey::from_bytes(&point).unwrap();
    let list = receipts["receipts"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{receipts}");
    let bytes = unb64(list[0].get("receipt").unwrap_or(&list[0]));
    let receipt = shef_proto::receipt::Receipt::verify(&bytes, &[key]).unwrap();
    assert_eq!(
        (receipt.key_id.as_str(), receipt.to_host, receipt.ueid),
        ("default/key/one", true, device.ueid)
    );
    // A revocation takes effect at once, also for an attested session.
    let body = json!({"kind": "device", "value": hex::encode(device.ueid), "reason": "stolen"});
    service.operator.post("/v1/revocations", &body).ok();
    let answer = kbs.fetch("default/key/one");
    assert_eq!((answer.status, answer.json()["code"].as_str()), (401, Some("SHEF-SVC-043")));
}

/// A process beside a genuine card only gets resources that are marked as the host's: other
/// resources go to the key that the evidence vouches for.
#[test]
fn a_resource_goes_to_the_key_in_the_evidence() {
    let (service, device, client) = furnished();
    service.operator.send("POST", "/kbs/v0/resource/default/key/one", &[], b"the resource").ok();
    let kbs = Kbs::begin(&client);
    kbs.attest(&device).ok();
    let refused = kbs.fetch("default/key/one");
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["code"], "SHEF-SVC-065");
    assert!(service.operator.get("/v1/receipts").ok()["receipts"].as_array().unwrap().is_empty());
    // The card itself.
    let (kbs, _) = Kbs::of_card(&client, &device);
    assert_eq!(kbs.open(&kbs.fetch("default/key/one").ok()), b"the resource");
    // Its next version, by the same path.
    service.operator.send("POST", "/kbs/v0/resource/default/key/one", &[], b"the next one").ok();
    assert_eq!(kbs.open(&kbs.fetch("default/key/one").ok()), b"the next one");
    let shown = service.operator.get("/v1/keys/default%2Fkey%2Fone").ok();
    assert_eq!(
        (&shown["version"], &shown["to"], &shown["layer"], &shown["versions"][0]["policy"]),
        (&json!(2), &json!("evidence"), &json!("kernel"), &json!("default@1"))
    );
    service.operator.send("POST", "/v1/keys/default%2Fkey%2Fone/disable", &[], b"").ok();
    let refused = kbs.fetch("default/key/one");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (403, Some("SHEF-SVC-061")));
    // The mark requires a policy that allows it, and is for resources only.
    for (name, body) in [
        (
            "a%2Fb%2Fc",
            json!({"layer": "kernel", "policy": "default", "to": "host", "secret": "AAAA"}),
        ),
        ("plain", json!({"layer": "shield", "policy": "default", "to": "host", "generate": 32})),
    ] {
        service
            .operator
            .call("PUT", &format!("/v1/keys/{name}"), &body)
            .problem(422, "SHEF-SVC-060");
    }
    // Anonymous clients get listed resources; identified ones get what their role allows.
    host_resource(&service.operator, "default/key/secret");
    let kbs = Kbs::begin(&client);
    kbs.attest(&device).ok();
    kbs.fetch("default/key/secret").problem(401, "SHEF-SVC-027");
    for (role, status) in [(Role::Attest, 401), (Role::Release, 200)] {
        let known = Kbs::begin(&service.client("default", role, role.name()));
        known.attest(&device).ok();
        assert_eq!(known.fetch("default/key/secret").status, status, "{role:?}");
    }
}

#[test]
fn a_kbs_client_with_another_key_or_device_is_told_401() {
    let (service, device, client) = furnished();
    host_resource(&service.operator, "default/key/one");
    let kbs = Kbs::begin(&client);
    // The evidence binds the client's key: another one is rejected.
    let other = Kbs::begin(&client).public();
    let answer = kbs.submit(&kbs.attestation(&device, &other));
    assert_eq!(answer.status, 401);
    let body = answer.json();
    assert!(
        body["type"].is_string() && body["detail"].as_str().unwrap().contains("SHEF-ATT-004"),
        "{body}"
    );
    assert_eq!(kbs.attest(&Device::made_by(2, 1)).status, 401);
    kbs.fetch("default/key/one").problem(401, "SHEF-SVC-027");
    kbs.attest(&device).ok();
    let old = client.post("/kbs/v0/auth", &json!({"version": "0.3.0", "tee": "sample"}));
    old.problem(400, "SHEF-SVC-026");
}

const ONE: &str = "/kbs/v0/resource/default/key/one";

/// A client that has attested may present the result instead of the cookie, with the same rights.
#[test]
fn a_result_fetches_what_its_session_may() {
    let (service, device, client) = furnished();
    let operator = &service.operator;
    operator.send("POST", ONE, &[], b"the resource").ok();
    let (kbs, token) = Kbs::of_card(&client, &device);
    let evidence = |token: &str| {
        claims(&json!(token))["submods"]["fpga-kernel"]["ear.veraison.annotated-evidence"].clone()
    };
    assert_eq!(evidence(&token)["runtime_data_claims"]["tee-pubkey"], kbs.public());
    let stated = claims(&json!(token));
    assert_eq!((stated.get("aud"), &stated["shef_audience"]), (None, &json!("default")));
    let fetched = client.with_token(&token).get(ONE).ok();
    assert_eq!(kbs.open(&fetched), b"the resource");
    // One release with one receipt, by either name, however often it is requested.
    assert_eq!(kbs.fetch("default/key/one").ok(), fetched);
    assert_eq!(client.with_token(&token).get(ONE).ok(), fetched);
    assert_eq!(operator.get("/v1/receipts").ok()["receipts"].as_array().unwrap().len(), 1);
    // The result opens listed resources only.
    operator.send("POST", "/kbs/v0/resource/default/key/three", &[], b"another").ok();
    client
        .with_token(&token)
        .get("/kbs/v0/resource/default/key/three")
        .problem(401, "SHEF-SVC-027");
    client.with_token(&token).get("/kbs/v0/resource/default/key/two").problem(404, "SHEF-SVC-020");
    // A key of the host is not in a result, and a result does not open anything for it.
    let beside = Kbs::begin(&client);
    let other = beside.attest(&device).ok()["token"].as_str().unwrap().to_owned();
    assert_eq!(evidence(&other).get("runtime_data_claims"), None);
    client.with_token(&other).get(ONE).problem(403, "SHEF-SVC-065");
    // Revocation and disabling take effect at once.
    operator.send("POST", "/v1/keys/default%2Fkey%2Fone/disable", &[], b"").ok();
    client.with_token(&token).get(ONE).problem(403, "SHEF-SVC-061");
    operator.send("POST", "/v1/keys/default%2Fkey%2Fone/enable", &[], b"").ok();
    client.with_token(&token).get(ONE).ok();
    let body = json!({"kind": "device", "value": hex::encode(device.ueid), "reason": "stolen"});
    operator.post("/v1/revocations", &body).ok();
    client.with_token(&token).get(ONE).problem(401, "SHEF-SVC-043");
}

/// Only a result that this service issued to a KBS client, byte for byte and before its expiry,
/// fetches resources, and it does nothing else.
#[test]
fn no_other_token_is_a_result() {
    let start = now();
    let (service, device, client) =
        furnished_with("[[tenant]]\nname = \"other\"\n", fixed_clock(start));
    let operator = &service.operator;
    operator.send("POST", ONE, &[], b"the resource").ok();
    let refused = |token: &str| client.with_token(token).get(ONE).problem(401, "SHEF-SVC-027");
    let (_, good) = Kbs::of_card(&client, &device);
    client.with_token(&good).get(ONE).ok();
    // Results of the other protocols, of the same evidence and in the same names.
    let answer =
        client.send("POST", "/challenge-response/v1/newSession", &[("accept", SESSION)], b"");
    let path = format!("/challenge-response/v1/{}", answer.headers["location"].to_str().unwrap());
    let nonce = B64.decode(answer.json()["nonce"].as_str().unwrap()).unwrap();
    let headers = [("accept", SESSION), ("content-type", "application/eat+cwt")];
    let veraison =
        client.send("POST", &path, &headers, &device.evidence(Layer::Kernel, &nonce)).ok();
    refused(veraison["result"].as_str().unwrap());
    let (session, nonce) = operator.session(Layer::Kernel, None);
    let body =
        json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))})
            .to_string();
    let old = "application/eat+jwt; eat_profile=\"tag:github.com,2023:veraison/ear\"";
    let headers = [("content-type", "application/json"), ("accept", old)];
    let native = operator.send("POST", "/v1/appraise", &headers, body.as_bytes()).ok();
    refused(native["result"].as_str().unwrap());
    // The same claims under another signature by the service's own key, and with one claim changed.
    let text = std::fs::read_to_string(service.dir.join("signing.key")).unwrap();
    let secret: [u8; 32] = hex::decode(text.trim()).unwrap().try_into().unwrap();
    let own = PrivateKey::from_bytes(&secret).unwrap();
    let key = NamedKey { kid: thumbprint(&own.public_key()), key: SigningKey::new(&own) };
    let changes: [fn(&mut Value, i64); 6] = [
        |_, _| (),
        |stated, start| stated["exp"] = json!(start + 9999),
        |stated, _| stated["jti"] = json!("00".repeat(16)),
        |stated, _| stated["jti"] = json!("x"),
        |stated, _| stated["shef_audience"] = json!("other"),
        |stated, _| stated["aud"] = json!("default"),
    ];
    for change in changes {
        let mut stated = claims(&json!(good));
        change(&mut stated, start);
        refused(&jwt::sign(stated.to_string().as_bytes(), &key).unwrap());
    }
    // Another key's signature, no signature, and a truncated one.
    let somebody = NamedKey {
        kid: key.kid.clone(),
        key: SigningKey::generate(&mut SeededEntropy::new(9, "somebody")),
    };
    refused(&jwt::sign(claims(&json!(good)).to_string().as_bytes(), &somebody).unwrap());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let other =
        format!("{}{}", if signature.starts_with('A') { 'B' } else { 'A' }, &signature[1..]);
    for changed in
        [format!("{message}."), format!("{message}.{other}"), format!("{good}="), "a.b.c".into()]
    {
        refused(&changed);
    }
    // Another tenant's result, presented by any client.
    furnish(&service.client("other", Role::Operator, "other-operator"), &device);
    let (_, others) = Kbs::of_card(&service.client("other", Role::Release, "other-host"), &device);
    refused(&others);
    let host = service.client("default", Role::Release, "host");
    host.with_token(&others).get(ONE).problem(401, "SHEF-SVC-027");
    host.with_token(&good).get(ONE).ok();
    service
        .client("other", Role::Release, "other-host-2")
        .with_token(&good)
        .get(ONE)
        .problem(401, "SHEF-SVC-027");
    // It is not a token for anything else.
    client
        .with_token(&good)
        .post("/kbs/v0/auth", &json!({"version": "0.4.0", "tee": "sample"}))
        .problem(401, "SHEF-SVC-027");
    client.with_token(&good).send("POST", ONE, &[], b"x").problem(401, "SHEF-SVC-027");
    client.with_token(&good).get("/v1/keys").problem(401, "SHEF-SVC-027");
    // Expiry.
    service.set_clock(start + 299);
    client.with_token(&good).get(ONE).ok();
    service.set_clock(start + 300);
    refused(&good);
}

/// A request with only a result has the identity that attested, if the configuration still has it.
#[test]
fn a_result_is_good_for_whoever_attested() {
    let entry = |name: &str, role: &str| {
        let sha256 = hex::encode(sha256(name.as_bytes()));
        format!("[[tenant.token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{sha256}\"\n")
    };
    let tokens =
        [entry("host-1", "release"), entry("host-2", "attest"), entry("boss", "operator")].concat();
    let tokens = format!("{tokens}[[tenant]]\nname = \"other\"\n");
    let (service, device, client) = furnished_with(&tokens, Default::default());
    host_resource(&service.operator, "default/key/secret");
    const SECRET: &str = "/kbs/v0/resource/default/key/secret";
    let result = |client: &Client| Kbs::of_card(client, &device).1;
    let of_host = result(&client.with_token("host-1"));
    client.with_token(&of_host).get(SECRET).ok();
    client
        .with_token(&result(&client.with_token("host-2")))
        .get(SECRET)
        .problem(401, "SHEF-SVC-027");
    // An operator's result fetches, but stores nothing.
    let of_boss = result(&client.with_token("boss"));
    client.with_token(&of_boss).get(SECRET).ok();
    client.with_token(&of_boss).send("POST", SECRET, &[], b"x").problem(401, "SHEF-SVC-027");
    // A certificate must be presented again.
    let known = service.client("default", Role::Release, "known");
    let of_known = result(&known);
    client.with_token(&of_known).get(SECRET).problem(401, "SHEF-SVC-027");
    known.with_token(&of_known).get(SECRET).ok();
    // An identity that the configuration no longer has is invalid.
    let of_nobody = result(&client);
    service.operator.send("POST", ONE, &[], b"the resource").ok();
    client.with_token(&of_nobody).get(ONE).ok();
    let text = std::fs::read_to_string(service.dir.join("verifierd.toml")).unwrap();
    // After a token is replaced under the same name, results of the old one are invalid.
    let other = hex::encode(sha256(b"host-1's next token"));
    let rotated = text.replace(&hex::encode(sha256(b"host-1")), &other);
    let config = Config::parse(&rotated, "verifierd.toml", &service.dir).unwrap();
    service.runtime.block_on(service.running().reload(config)).unwrap();
    client.with_token(&of_host).get(SECRET).problem(401, "SHEF-SVC-027");
    let text = text
        .replace(&entry("host-1", "release"), "")
        .replace("anonymous_tenant = \"default\"", "anonymous_tenant = \"other\"");
    let config = Config::parse(&text, "verifierd.toml", &service.dir).unwrap();
    service.runtime.block_on(service.running().reload(config)).unwrap();
    for (token, path) in [(&of_host, SECRET), (&of_nobody, ONE)] {
        client.with_token(token).get(path).problem(401, "SHEF-SVC-027");
    }
    client.with_token(&of_boss).get(SECRET).ok();
}

/// The service rejects everything that it does not understand instead of ignoring it, and a key of
/// another kind gets a clear error. The session is not used up.
#[test]
fn what_is_not_understood_is_refused() {
    let (_service, device, client) = furnished();
    let (kbs, _) = Kbs::of_card(&client, &device);
    let kbs = Kbs { key: kbs.key, ..Kbs::begin(&client) };
    let good = kbs.attestation(&device, &kbs.public());
    let coordinate = B64.encode([1; 66]);
    for (pointer, value, word) in [
        ("/init-data", json!({"format": "toml", "body": ""}), "init-data"),
        ("/init-data", json!(""), "init-data"),
        ("/tee-evidence/additional_evidence", json!("{}"), "additional_evidence"),
        ("/tee-evidence/additional_evidence", json!("{\"nvidia\": {}}"), "additional_evidence"),
        (
            "/runtime-data/tee-pubkey",
            json!({"kty": "RSA", "alg": "RSA-OAEP-256", "n": "AQAB", "e": "AQAB"}),
            "kty \"RSA\"",
        ),
        (
            "/runtime-data/tee-pubkey",
            json!({"kty": "EC", "crv": "P-521", "alg": "ECDH-ES+A256KW", "x": coordinate, "y": coordinate}),
            "crv \"P-521\"",
        ),
        (
            "/runtime-data/tee-pubkey",
            json!({"kty": "AKP", "alg": "ML-KEM-768+A192KW", "pub": "AA"}),
            "alg \"ML-KEM-768+A192KW\"",
        ),
        ("/runtime-data/tee-pubkey/alg", json!("ECDH-ES"), "alg \"ECDH-ES\""),
        ("/runtime-data/tee-pubkey/kid", json!("k"), "the member \"kid\" too"),
        ("/runtime-data/tee-pubkey/x", json!("AA"), "x that is not 32 bytes"),
        ("/runtime-data/tee-pubkey/x", json!(B64.encode([1; 32])), "no point"),
        ("/runtime-data/extra", json!(1), "extra"),
        ("/tee-evidence/extra", json!(1), "extra"),
        ("/extra", json!(1), "extra"),
    ] {
        let mut body = good.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = value;
        let problem = kbs.submit(&body).problem(400, "SHEF-SVC-026");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    kbs.submit(&good).ok();
    let auth = |body: Value| client.post("/kbs/v0/auth", &body).status;
    let hashes = |list: Value| json!({"version": "0.4.0", "tee": "sample", "extra-params": {"supported-hash-algorithms": list}});
    assert_eq!(
        (
            auth(hashes(json!(["sha256", "sha384"]))),
            auth(hashes(json!(["sha256"]))),
            auth(hashes(json!("sha384")))
        ),
        (200, 400, 400)
    );
    assert_eq!(auth(json!({"version": "0.4.0", "tee": "sample", "extra-params": ""})), 200);
    assert_eq!(
        auth(json!({"version": "0.4.0", "tee": "sample", "extra-params": "", "more": 1})),
        400
    );
}

/// Trustee's paths are case-sensitive.
#[test]
fn paths_in_upper_case() {
    let (service, device, _) = furnished();
    let operator = &service.operator;
    operator.send("POST", "/kbs/v0/resource/Default/Key_1/-A.b", &[], b"upper").ok();
    operator.send("POST", "/kbs/v0/resource/default/key_1/-a.b", &[], b"lower").ok();
    let (kbs, _) = Kbs::of_card(operator, &device);
    assert_eq!(kbs.open(&kbs.fetch("Default/Key_1/-A.b").ok()), b"upper");
    assert_eq!(kbs.open(&kbs.fetch("default/key_1/-a.b").ok()), b"lower");
    kbs.fetch("DEFAULT/Key_1/-A.b").problem(404, "SHEF-SVC-020");
    for path in [".a/b/c", "a/b/..", "a/b/c%2Fd", "a/b/%C3%A4"] {
        operator
            .send("POST", &format!("/kbs/v0/resource/{path}"), &[], b"x")
            .problem(404, "SHEF-SVC-020");
    }
}

/// A simulated card attests and gets a resource only if the policies name `simulated`.
#[test]
fn a_simulated_card_gets_what_its_policies_give() {
    let service = Service::start();
    let operator = &service.operator;
    let mut device = Device::new(1);
    device.kind = RootOfTrust::Simulated;
    let anchor =
        json!({"name": "maker", "kind": "simulated", "certificate": b64(device.root.der())});
    operator.post("/v1/trust-anchors", &anchor).ok();
    add_reference(operator, "build-1", &reference());
    let put = |name: &str, text: &str| {
        operator
            .send(
                "PUT",
                &format!("/v1/policies/{name}"),
                &[("content-type", "application/toml")],
                text.as_bytes(),
            )
            .ok()
    };
    put("default", POLICY);
    put("hardware", POLICY);
    let kbs = Kbs { key: p256_key::Key::of(&device.key.to_bytes()), ..Kbs::begin(operator) };
    let denied = kbs.attest(&device);
    assert_eq!((denied.status, denied.json()["code"].as_str()), (401, Some("SHEF-SVC-043")));
    put("default", &POLICY.replace("shef-boot", "simulated"));
    operator.send("POST", ONE, &[], b"the resource").ok();
    let body = json!({"layer": "kernel", "policy": "hardware", "secret": b64(b"for hardware")});
    operator.call("PUT", "/v1/keys/default%2Fkey%2Ftwo", &body).ok();
    let (kbs, token) = Kbs::of_card(operator, &device);
    assert_eq!(claims(&json!(token))["submods"]["fpga-kernel"]["ear.status"], "warning");
    assert_eq!(kbs.open(&kbs.fetch("default/key/one").ok()), b"the resource");
    let denied = kbs.fetch("default/key/two");
    assert_eq!((denied.status, denied.json()["code"].as_str()), (401, Some("SHEF-SVC-043")));
}
