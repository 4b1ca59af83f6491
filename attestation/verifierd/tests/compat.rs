//! Clients of Veraison and of the KBS, played from their documented protocols, against the running service.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA384, digest};
use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrap as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use serde_json::{Value, json};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::Layer;
use shef_verifierd::auth::Role;
use shef_verifierd::secrets::sha256;
use shef_verify::ReferenceValues;
use shef_verify::corim::{CorimSigner, Describe, write_signed};

use crate::common::*;

const SESSION: &str = "application/vnd.veraison.challenge-response-session+json";

fn claims(token: &Value) -> Value {
    serde_json::from_slice(&B64.decode(token.as_str().unwrap().split('.').nth(1).unwrap()).unwrap()).unwrap()
}

fn furnished() -> (Service, Device, Client) {
    let service = Service::with(
        |text| {
            let listed = "anonymous_resources = [\"default/key/one\", \"default/key/two\"]";
            format!("{text}\n[compat]\nanonymous_tenant = \"default\"\n{listed}\n")
        },
        Default::default(),
    );
    let device = Device::new(1);
    service.furnish(&device);
    let client = service.stranger();
    (service, device, client)
}

fn new_session(client: &Client, query: &str) -> (String, Value) {
    let answer = client.send("POST", &format!("/challenge-response/v1/newSession{query}"), &[("accept", SESSION)], b"");
    assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (201, SESSION));
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    assert!(location.starts_with("session/"), "relative, as clients join it themselves: {location}");
    (format!("/challenge-response/v1/{location}"), answer.json())
}

#[test]
fn a_veraison_client_gets_a_result() {
    let (_service, device, client) = furnished();
    let discovery =
        client.send("GET", "/.well-known/veraison/verification", &[("accept", "application/vnd.veraison.discovery+json")], b"").ok();
    assert_eq!(discovery["api-endpoints"]["newChallengeResponseSession"], "/challenge-response/v1/newSession");
    assert_eq!((&discovery["ear-verification-key"]["alg"], &discovery["service-state"]), (&json!("ES256"), &json!("READY")));
    for _ in 0..20 {
        let (path, session) = new_session(&client, "");
        // Clients decode the standard alphabet, others the URL one.
        let text = session["nonce"].as_str().unwrap();
        let nonce = STANDARD.decode(text).unwrap();
        assert_eq!((nonce.len(), B64.decode(text).unwrap()), (48, nonce.clone()));
        assert_eq!((&session["status"], &session["state"]), (&json!("waiting"), &Value::Null));
        let media = session["accept"][0].as_str().unwrap().to_owned();
        let evidence = device.evidence(Layer::Kernel, &nonce);
        let done = client.send("POST", &path, &[("accept", SESSION), ("content-type", &media)], &evidence);
        assert_eq!(done.status, 200, "complete at once");
        let done = done.json();
        assert_eq!(done["status"], "complete");
        assert_eq!(STANDARD.decode(done["evidence"]["value"].as_str().unwrap()).unwrap(), evidence);
        let result = claims(&done["result"]);
        assert_eq!(result["eat_profile"], "tag:github.com,2023:veraison/ear");
        assert_eq!(result["submods"]["fpga-kernel"]["ear.status"], "affirming", "{result}");
        // A session takes evidence once, and shows its result until it ends.
        client.send("POST", &path, &[("accept", SESSION), ("content-type", &media)], &evidence).problem(409, "SHEF-SVC-042");
        assert_eq!(client.send("GET", &path, &[("accept", SESSION)], b"").ok()["result"], done["result"]);
    }
}

#[test]
fn bad_evidence_is_answered_with_a_result_that_says_no() {
    let (_service, device, client) = furnished();
    let (path, session) = new_session(&client, "?nonceSize=32");
    let nonce = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    assert_eq!(nonce.len(), 32);
    let post = |kind: &str, body: &[u8]| client.send("POST", &path, &[("accept", SESSION), ("content-type", kind)], body);
    let mut bad = device.evidence(Layer::Shield, &nonce);
    *bad.last_mut().unwrap() ^= 1;
    let denied = post("application/eat+cwt", &bad).ok();
    let result = claims(&denied["result"]);
    assert_ne!(result["submods"]["fpga-shield"]["ear.status"], "affirming");
    assert_eq!(result["submods"]["fpga-shield"]["ear.trustworthiness-vector"]["instance-identity"], 99, "{result}");
    let answer = post("text/plain", &bad);
    assert!(answer.headers["accept"].to_str().unwrap().contains("eat_profile=\"tag:shef.dev,2026:kernel#1\""));
    answer.problem(415, "SHEF-SVC-024");
    post("application/eat+cwt; eat_profile=\"tag:example.com,2026:other\"", &bad).problem(415, "SHEF-SVC-024");
    post("application/cmw+cbor", b"\x82").problem(400, "SHEF-SVC-026");
    // The session is still open for the true evidence, here in a wrapper.
    let wrapped = json!(["application/eat+cwt", B64.encode(device.evidence(Layer::Shield, &nonce)), 4]).to_string();
    let done = post("application/vnd.veraison.cmw+json", wrapped.as_bytes()).ok();
    assert_eq!(claims(&done["result"])["submods"]["fpga-shield"]["ear.status"], "affirming");
    let (path, _) = new_session(&client, "");
    client.send("DELETE", &path, &[], b"").ok();
    client.send("GET", &path, &[("accept", SESSION)], b"").problem(404, "SHEF-SVC-020");
    for query in ["?nonceSize=8", "?nonceSize=65", "?nonce=AAAA", "?nonceSize=32&nonce=AAAA"] {
        client.send("POST", &format!("/challenge-response/v1/newSession{query}"), &[("accept", SESSION)], b"").problem(400, "SHEF-SVC-026");
    }
    client.send("POST", "/challenge-response/v1/newSession", &[("accept", "text/html")], b"").problem(406, "SHEF-SVC-025");
    client.send("GET", "/challenge-response/v1/session/AAAA", &[("accept", SESSION)], b"").problem(404, "SHEF-SVC-020");
}

#[test]
fn sessions_of_other_protocols_release_nothing_and_strangers_only_attest() {
    let (service, device, client) = furnished();
    let (path, session) = new_session(&service.operator, "");
    let token = path.rsplit('/').next().unwrap();
    let nonce = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    service.operator.call("PUT", "/v1/keys/data", &json!({"layer": "shield", "policy": "default", "generate": 32})).ok();
    let body = json!({"key": "data", "session": token, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    service.operator.post("/v1/release", &body).problem(400, "SHEF-SVC-040");
    client.post("/v1/release", &body).problem(401, "SHEF-SVC-027");
    client.post("/v1/sessions", &json!({"layer": "kernel"})).problem(401, "SHEF-SVC-027");
    client
        .send("POST", "/endorsement-provisioning/v1/submit", &[("content-type", "application/rim+cose")], b"x")
        .problem(401, "SHEF-SVC-027");
    client.send("POST", "/kbs/v0/resource/a/b/c", &[], b"x").problem(403, "SHEF-SVC-028");
    // Where the configuration names no tenant for strangers, they may not even ask.
    let closed = Service::start();
    closed.stranger().send("POST", "/challenge-response/v1/newSession", &[("accept", SESSION)], b"").problem(401, "SHEF-SVC-027");
}

/// A nonce that a client brings is no challenge of the service: not fresh for a policy, not for the record of a device, and nobody else's.
#[test]
fn a_nonce_that_the_client_brings_is_no_challenge() {
    let (service, device, client) = furnished();
    let operator = &service.operator;
    let put = |text: &str| operator.send("PUT", "/v1/policies/default", &[("content-type", "application/toml")], text.as_bytes()).ok();
    put(&format!("{POLICY}max_age = 5\n"));
    let last = || operator.get(&format!("/v1/devices/{}", hex::encode(device.ueid))).json()["last_appraised"].as_i64();
    let status = |done: &Value| claims(&done["result"])["submods"]["fpga-kernel"]["ear.status"].clone();
    let submit = |path: &str, nonce: &[u8]| {
        let evidence = device.evidence(Layer::Kernel, nonce);
        client.send("POST", path, &[("accept", SESSION), ("content-type", "application/eat+cwt")], &evidence)
    };
    // One that the service draws is.
    let (path, session) = new_session(&client, "");
    let drawn = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    assert_eq!(status(&submit(&path, &drawn).ok()), "affirming");
    let before = last().expect("a device that was seen");
    assert!(before > 0);
    // The same under a nonce of the client's: too old for all that anybody knows.
    let own = [7; 32];
    let query = format!("?nonce={}", B64.encode(own));
    let (path, _) = new_session(&client, &query);
    assert_eq!(status(&submit(&path, &own).ok()), "contraindicated");
    put(POLICY);
    // Without that rule it is accepted, and the device's record stays as it is.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let (path, _) = new_session(&client, &query);
    assert_eq!(status(&submit(&path, &own).ok()), "affirming");
    assert_eq!(last(), Some(before));
    let body = json!({"nonce": B64.encode(own), "layer": "kernel", "evidence": b64(&device.evidence(Layer::Kernel, &own))});
    operator.post("/v1/appraise", &body).ok();
    operator.post("/v1/appraise", &body).problem(409, "SHEF-SVC-042");
    assert_eq!(last(), Some(before));
    // Another identity's own nonce is another one, though its bytes are the same.
    service.client("default", Role::Attest, "second").post("/v1/appraise", &body).ok();
    // Nor does a session with the nonce of another one show its result, burn it or end it.
    let (victim, session) = new_session(&client, "");
    let nonce = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    let query = format!("?nonce={}", B64.encode(&nonce));
    let (thief, _) = new_session(&client, &query);
    client.send("DELETE", &thief, &[], b"").ok();
    let (thief, _) = new_session(&client, &query);
    submit(&thief, &nonce).ok();
    let (thief, _) = new_session(&client, &query);
    assert_eq!(client.send("GET", &victim, &[("accept", SESSION)], b"").ok()["status"], "waiting");
    assert_eq!(status(&submit(&victim, &nonce).ok()), "affirming");
    assert_eq!(client.send("GET", &thief, &[("accept", SESSION)], b"").ok()["status"], "waiting");
}

/// A session speaks the protocol that it was made for.
#[test]
fn a_session_of_one_protocol_is_none_of_another() {
    let (service, device, client) = furnished();
    let (path, session) = new_session(&client, "");
    let veraison = path.rsplit('/').next().unwrap();
    let mut kbs = Kbs::begin(&client);
    let own = kbs.cookie.split_once('=').unwrap().1.to_owned();
    let (native, _) = service.operator.session(Layer::Kernel, None);
    for token in [&own, &native] {
        let path = format!("/challenge-response/v1/session/{token}");
        client.send("GET", &path, &[("accept", SESSION)], b"").problem(404, "SHEF-SVC-020");
    }
    for token in [veraison, native.as_str()] {
        kbs.cookie = format!("kbs-session-id={token}");
        kbs.nonce = session["nonce"].as_str().unwrap().into();
        let answer = kbs.attest(&device);
        assert_eq!((answer.status, answer.json()["code"].as_str()), (401, Some("SHEF-SVC-040")));
    }
    for token in [veraison, own.as_str()] {
        let body = json!({"session": token, "evidence": b64(&device.evidence(Layer::Kernel, &[7; 48]))});
        service.operator.post("/v1/appraise", &body).problem(400, "SHEF-SVC-040");
    }
}

#[test]
fn corims_come_in_signed_by_a_known_signer_only() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    service.furnish(&device);
    operator.send("DELETE", "/v1/corims/build-1", &[], b"").ok();
    let key = SigningKey::generate(&mut SeededEntropy::new(5, "signer"));
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let describe = Describe { id: "digits-3", version: 1, issuer: "vendor", not_after: None };
    let corim = write_signed(&values, &describe, &key, None).unwrap();
    let submit = |bytes: &[u8]| {
        operator.send("POST", "/endorsement-provisioning/v1/submit", &[("content-type", "application/rim+cose")], bytes).ok()
    };
    let failed = submit(&corim);
    assert_eq!(failed["status"], "failed");
    assert!(failed["failure-reason"].as_str().unwrap().contains("SHEF-ATT-"), "{failed}");
    let signer = CorimSigner::with_key("vendor", key.public_key()).for_kernels().for_shells().for_vendor(&VENDOR);
    operator.send("PUT", "/v1/signers/vendor", &[("content-type", "application/toml")], signer.to_toml().as_bytes()).ok();
    let appraise = || {
        let (session, nonce) = operator.session(Layer::Shield, None);
        operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))})).status
    };
    assert_eq!(appraise(), 422);
    assert_eq!(submit(&corim)["status"], "success");
    assert_eq!(appraise(), 200);
    let mut changed = corim.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(submit(&changed)["status"], "failed");
    operator.send("PUT", "/v1/corims/x", &[("content-type", "application/rim+cose")], &changed).problem(422, "SHEF-SVC-052");
    // Without its signer a CoRIM counts no more.
    operator.send("DELETE", "/v1/signers/vendor", &[], b"").ok();
    assert_eq!(appraise(), 422);
}

/// Two that contradict each other come at once: one stays, and appraisals go on. Who changed what is kept, and nothing that was not changed.
#[test]
fn changes_of_collateral_are_whole_and_leave_their_event() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    service.furnish(&device);
    operator.send("DELETE", "/v1/corims/build-1", &[], b"").ok();
    let key = SigningKey::generate(&mut SeededEntropy::new(5, "signer"));
    let signer = CorimSigner::with_key("vendor", key.public_key()).for_kernels().for_shells().for_vendor(&VENDOR);
    operator.send("PUT", "/v1/signers/vendor", &[("content-type", "application/toml")], signer.to_toml().as_bytes()).ok();
    let other = ReferenceValues::from_toml(&reference().replace("svn = 3", "svn = 4")).unwrap();
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    assert_ne!(values, other);
    let appraise = || {
        let (session, nonce) = operator.session(Layer::Shield, None);
        operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))})).status
    };
    for round in 0..6 {
        let describe = Describe { id: &format!("digits-{round}"), version: 1, issuer: "vendor", not_after: None };
        let both = [&values, &other].map(|values| write_signed(values, &describe, &key, None).unwrap());
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let put = |k: usize| {
                let (client, body) = (operator.clone(), &both[k]);
                scope.spawn(move || {
                    client.send("PUT", &format!("/v1/corims/r{round}-{k}"), &[("content-type", "application/rim+cose")], body).status
                })
            };
            [put(0), put(1)].map(|thread| thread.join().unwrap()).to_vec()
        });
        assert!(statuses == [201, 422] || statuses == [422, 201], "{statuses:?}");
        // The other's image has another version than the device shows.
        assert_eq!(appraise(), if statuses[0] == 201 { 200 } else { 422 });
        for k in 0..2 {
            operator.send("DELETE", &format!("/v1/corims/r{round}-{k}"), &[], b"");
        }
    }
    // What is off and contradicts is not switched on.
    let describe = Describe { id: "digits", version: 1, issuer: "vendor", not_after: None };
    let put = |id: &str, values: &ReferenceValues| {
        let body = write_signed(values, &describe, &key, None).unwrap();
        operator.send("PUT", &format!("/v1/corims/{id}"), &[("content-type", "application/rim+cose")], &body)
    };
    put("one", &values).ok();
    operator.send("POST", "/v1/corims/one/deactivate", &[], b"").ok();
    put("two", &other).ok();
    operator.send("POST", "/v1/corims/one/activate", &[], b"").problem(422, "SHEF-SVC-052");
    operator.send("DELETE", "/v1/corims/two", &[], b"").ok();
    operator.send("POST", "/v1/corims/one/activate", &[], b"").ok();
    operator.send("POST", "/v1/corims/one/activate", &[], b"").ok();
    assert_eq!(appraise(), 200);
    operator.send("DELETE", "/v1/corims/two", &[], b"").problem(404, "SHEF-SVC-020");
    operator.send("POST", "/v1/corims/none/deactivate", &[], b"").problem(404, "SHEF-SVC-020");
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event["seq"].as_i64().unwrap());
        let page = operator.get(&format!("/v1/events?after={after}&limit=7")).ok();
        events.extend(page["events"].as_array().unwrap().iter().cloned());
        if page["next"].is_null() {
            break;
        }
    }
    assert_eq!(
        events.iter().map(|event| event["seq"].as_i64().unwrap()).collect::<Vec<_>>(),
        (1..=events.len() as i64).collect::<Vec<_>>()
    );
    // What was refused is there too, and is no change.
    events.retain(|event| event["action"] != "refused");
    let last: Vec<(&str, &str)> =
        events[events.len() - 5..].iter().map(|event| (event["action"].as_str().unwrap(), event["what"].as_str().unwrap())).collect();
    let expected =
        [("corim-add", "one"), ("corim-deactivate", "one"), ("corim-add", "two"), ("corim-remove", "two"), ("corim-activate", "one")];
    assert_eq!(last, expected);
    assert!(events.iter().all(|event| event["who"] == "operator" && event["role"] == "operator" && event["time"].as_i64() > Some(0)));
}

/// The client's side of the KBS protocol.
struct Kbs {
    client: Client,
    key: p256_key::Key,
    cookie: String,
    nonce: String,
}

/// A P-256 key for ECDH by aws-lc-rs.
mod p256_key {
    use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, agree};
    pub struct Key(PrivateKey);
    impl Key {
        pub fn of(secret: &[u8; 32]) -> Self {
            Self(PrivateKey::from_private_key(&ECDH_P256, secret).unwrap())
        }
        pub fn new() -> Self {
            Self(PrivateKey::generate(&ECDH_P256).unwrap())
        }
        pub fn point(&self) -> Vec<u8> {
            self.0.compute_public_key().unwrap().as_ref().to_vec()
        }
        pub fn agree(&self, point: &[u8]) -> Vec<u8> {
            agree(&self.0, UnparsedPublicKey::new(&ECDH_P256, point), (), |shared| Ok(shared.to_vec())).unwrap()
        }
    }
}

impl Kbs {
    fn begin(client: &Client) -> Self {
        let body = json!({"version": "0.4.0", "tee": "sample", "extra-params": {"supported-hash-algorithms": ["sha256", "sha384"]}});
        let answer = client.post("/kbs/v0/auth", &body);
        let cookie = answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(cookie.starts_with("kbs-session-id="));
        let challenge = answer.ok();
        assert_eq!(challenge["extra-params"]["selected-hash-algorithm"], "sha384");
        Self { client: client.clone(), key: p256_key::Key::new(), cookie, nonce: challenge["nonce"].as_str().unwrap().into() }
    }

    fn public(&self) -> Value {
        let point = self.key.point();
        json!({"kty": "EC", "crv": "P-256", "alg": "ECDH-ES+A256KW", "x": B64.encode(&point[1..33]), "y": B64.encode(&point[33..])})
    }

    fn attest_with(&self, device: &Device, public: &Value) -> Answer {
        let own = self.public();
        let text = format!(
            r#"{{"additional-evidence":"","nonce":"{}","tee-pubkey":{{"alg":"ECDH-ES+A256KW","crv":"P-256","kty":"EC","x":{},"y":{}}}}}"#,
            self.nonce, own["x"], own["y"]
        );
        let evidence = device.evidence(Layer::Kernel, digest(&SHA384, text.as_bytes()).as_ref());
        let body = json!({
            "init-data": null,
            "runtime-data": {"nonce": self.nonce, "tee-pubkey": public},
            "tee-evidence": {"primary_evidence": {"evidence": b64(&evidence)}, "additional_evidence": ""},
        });
        let headers = [("content-type", "application/json"), ("cookie", self.cookie.as_str())];
        self.client.send("POST", "/kbs/v0/attest", &headers, body.to_string().as_bytes())
    }

    fn attest(&self, device: &Device) -> Answer {
        self.attest_with(device, &self.public())
    }

    fn fetch(&self, path: &str) -> Answer {
        self.client.send("GET", &format!("/kbs/v0/resource/{path}"), &[("cookie", self.cookie.as_str())], b"")
    }

    /// Opens a JWE the way that the known client does: the header is read and written again before it is authenticated.
    fn open(&self, jwe: &Value) -> Vec<u8> {
        let header: Value = serde_json::from_slice(&unb64(&jwe["protected"])).unwrap();
        let epk = &header["epk"];
        let again = format!(
            r#"{{"alg":{},"enc":{},"epk":{{"crv":{},"kty":{},"x":{},"y":{}}}}}"#,
            header["alg"], header["enc"], epk["crv"], epk["kty"], epk["x"], epk["y"]
        );
        let aad = B64.encode(again);
        let shared = self.key.agree(&[vec![4], unb64(&epk["x"]), unb64(&epk["y"])].concat());
        let info = [&1u32.to_be_bytes()[..], &shared, &14u32.to_be_bytes(), b"ECDH-ES+A256KW", &[0; 8], &256u32.to_be_bytes()].concat();
        let mut key = [0; 40];
        let kek = AesKek::new(&AES_256, &sha256(&info)).unwrap();
        let key = kek.unwrap(&unb64(&jwe["encrypted_key"]), &mut key).unwrap();
        let mut text = [unb64(&jwe["ciphertext"]), unb64(&jwe["tag"])].concat();
        let iv: [u8; 12] = unb64(&jwe["iv"]).try_into().unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).unwrap());
        key.open_in_place(Nonce::assume_unique_for_key(iv), Aad::from(aad.as_bytes()), &mut text).unwrap().to_vec()
    }
}

/// A resource that goes to any key of the host's.
fn host_resource(operator: &Client, path: &str) {
    let policy = format!("{POLICY}to_host = true\n");
    operator.send("PUT", "/v1/policies/host", &[("content-type", "application/toml")], policy.as_bytes()).ok();
    let body = json!({"layer": "kernel", "policy": "host", "to": "host", "secret": b64(b"the resource")});
    operator.call("PUT", &format!("/v1/keys/{}", path.replace('/', "%2F")), &body).ok();
}

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
    // A key is no resource, and a resource is no key.
    service.operator.call("PUT", "/v1/keys/one", &json!({"layer": "shield", "policy": "default", "generate": 32})).ok();
    kbs.fetch("keys/shield/one").problem(401, "SHEF-SVC-027");
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let body = json!({"key": "default/key/one", "session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
    service.operator.post("/v1/release", &body).problem(404, "SHEF-SVC-020");
    // An attested session does not attest again for whoever holds its cookie.
    let answer = kbs.attest(&device);
    assert_eq!(answer.status, 401);
    assert_eq!(answer.json()["code"], "SHEF-SVC-042");
    // The same again is the same release, with one receipt, which says that it went to the host.
    assert_eq!(kbs.fetch("default/key/one").ok(), first);
    let receipts = service.operator.get("/v1/receipts").ok();
    let keys = service.operator.get("/.well-known/jwks.json").ok();
    let point = [vec![4], unb64(&keys["keys"][0]["x"]), unb64(&keys["keys"][0]["y"])].concat();
    let key = shef_proto::hpke_suite::PublicKey::from_bytes(&point).unwrap();
    let list = receipts["receipts"].as_array().unwrap();
    assert_eq!(list.len(), 1, "{receipts}");
    let bytes = unb64(list[0].get("receipt").unwrap_or(&list[0]));
    let receipt = shef_proto::receipt::Receipt::verify(&bytes, &[key]).unwrap();
    assert_eq!((receipt.key_id.as_str(), receipt.to_host, receipt.ueid), ("default/key/one", true, device.ueid));
    // A revocation counts at once, for a session that has attested too.
    let body = json!({"kind": "device", "value": hex::encode(device.ueid), "reason": "stolen"});
    service.operator.post("/v1/revocations", &body).ok();
    let answer = kbs.fetch("default/key/one");
    assert_eq!((answer.status, answer.json()["code"].as_str()), (401, Some("SHEF-SVC-043")));
}

/// Whoever stands beside a genuine card gets what is marked as the host's, and nothing else: a resource goes to the key that the evidence vouches for.
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
    let mut kbs = Kbs::begin(&client);
    kbs.key = p256_key::Key::of(&device.key.to_bytes());
    kbs.attest(&device).ok();
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
    // The mark needs a policy that says so, and is for resources.
    for (name, body) in [
        ("a%2Fb%2Fc", json!({"layer": "kernel", "policy": "default", "to": "host", "secret": "AAAA"})),
        ("plain", json!({"layer": "shield", "policy": "default", "to": "host", "generate": 32})),
    ] {
        service.operator.call("PUT", &format!("/v1/keys/{name}"), &body).problem(422, "SHEF-SVC-060");
    }
    // Who shows nothing gets what is listed, whoever attests what is theirs by role.
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
    // The evidence binds the client's key: another one does not do.
    let other = Kbs::begin(&client).public();
    let answer = kbs.attest_with(&device, &other);
    assert_eq!(answer.status, 401);
    let body = answer.json();
    assert!(body["type"].is_string() && body["detail"].as_str().unwrap().contains("SHEF-ATT-004"), "{body}");
    assert_eq!(kbs.attest(&Device::made_by(2, 1)).status, 401);
    kbs.fetch("default/key/one").problem(401, "SHEF-SVC-027");
    kbs.attest(&device).ok();
    let old = client.post("/kbs/v0/auth", &json!({"version": "0.3.0", "tee": "sample"}));
    assert_eq!(old.status, 401);
}
