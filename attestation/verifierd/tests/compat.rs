//! Veraison's clients work against the running service, and submissions by Veraison's paths and by
//! the native ones mix. The clients are implemented from the documented protocols.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use serde_json::{Value, json};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::Layer;
use shef_verifierd::role::Role;
use shef_verify::ReferenceValues;
use shef_verify::corim::{CorimSigner, Describe, write_signed};

use crate::clients::*;
use shef_fixtures::service::*;

fn new_session(client: &Client, query: &str) -> (String, Value) {
    let answer = client.send(
        "POST",
        &format!("/challenge-response/v1/newSession{query}"),
        &[("accept", SESSION)],
        b"",
    );
    assert_eq!((answer.status, answer.headers["content-type"].to_str().unwrap()), (201, SESSION));
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    assert!(
        location.starts_with("session/"),
        "relative, as clients join it themselves: {location}"
    );
    (format!("/challenge-response/v1/{location}"), answer.json())
}

#[test]
fn a_veraison_client_gets_a_result() {
    let (_service, device, client) = furnished();
    let discovery = client
        .send(
            "GET",
            "/.well-known/veraison/verification",
            &[("accept", "application/vnd.veraison.discovery+json")],
            b"",
        )
        .ok();
    assert_eq!(
        discovery["api-endpoints"]["newChallengeResponseSession"],
        "/challenge-response/v1/newSession"
    );
    assert_eq!(
        (&discovery["ear-verification-key"]["alg"], &discovery["service-state"]),
        (&json!("ES256"), &json!("READY"))
    );
    for _ in 0..20 {
        let (path, session) = new_session(&client, "");
        // Some clients decode the standard alphabet, others the URL one.
        let text = session["nonce"].as_str().unwrap();
        let nonce = STANDARD.decode(text).unwrap();
        assert_eq!((nonce.len(), B64.decode(text).unwrap()), (48, nonce.clone()));
        assert_eq!((&session["status"], &session["state"]), (&json!("waiting"), &Value::Null));
        let media = session["accept"][0].as_str().unwrap().to_owned();
        let evidence = device.evidence(Layer::Kernel, &nonce);
        let done =
            client.send("POST", &path, &[("accept", SESSION), ("content-type", &media)], &evidence);
        assert_eq!(done.status, 200, "complete at once");
        let done = done.json();
        assert_eq!(done["status"], "complete");
        assert_eq!(STANDARD.decode(done["evidence"]["value"].as_str().unwrap()).unwrap(), evidence);
        let result = claims(&done["result"]);
        assert_eq!(result["eat_profile"], "tag:github.com,2023:veraison/ear");
        assert_eq!(result["submods"]["fpga-kernel"]["ear.status"], "affirming", "{result}");
        // A session takes evidence once, and shows its result until it expires.
        client
            .send("POST", &path, &[("accept", SESSION), ("content-type", &media)], &evidence)
            .problem(409, "SHEF-SVC-042");
        assert_eq!(
            client.send("GET", &path, &[("accept", SESSION)], b"").ok()["result"],
            done["result"]
        );
    }
}

#[test]
fn bad_evidence_is_answered_with_a_result_that_says_no() {
    let (_service, device, client) = furnished();
    let (path, session) = new_session(&client, "?nonceSize=32");
    let nonce = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    assert_eq!(nonce.len(), 32);
    let post = |kind: &str, body: &[u8]| {
        client.send("POST", &path, &[("accept", SESSION), ("content-type", kind)], body)
    };
    let mut bad = device.evidence(Layer::Shield, &nonce);
    *bad.last_mut().unwrap() ^= 1;
    let denied = post("application/eat+cwt", &bad).ok();
    let result = claims(&denied["result"]);
    assert_ne!(result["submods"]["fpga-shield"]["ear.status"], "affirming");
    assert_eq!(
        result["submods"]["fpga-shield"]["ear.trustworthiness-vector"]["instance-identity"], 99,
        "{result}"
    );
    let answer = post("text/plain", &bad);
    assert!(
        answer.headers["accept"]
            .to_str()
            .unwrap()
            .contains("eat_profile=\"tag:shef.dev,2026:kernel#1\"")
    );
    answer.problem(415, "SHEF-SVC-024");
    post("application/eat+cwt; eat_profile=\"tag:example.com,2026:other\"", &bad)
        .problem(415, "SHEF-SVC-024");
    post("application/cmw+cbor", b"\x82").problem(400, "SHEF-SVC-026");
    // The session is still open for the true evidence, here in a wrapper.
    let wrapped =
        json!(["application/eat+cwt", B64.encode(device.evidence(Layer::Shield, &nonce)), 4])
            .to_string();
    let done = post("application/vnd.veraison.cmw+json", wrapped.as_bytes()).ok();
    assert_eq!(claims(&done["result"])["submods"]["fpga-shield"]["ear.status"], "affirming");
    let (path, _) = new_session(&client, "");
    client.send("DELETE", &path, &[], b"").ok();
    client.send("GET", &path, &[("accept", SESSION)], b"").problem(404, "SHEF-SVC-020");
    for query in ["?nonceSize=8", "?nonceSize=65", "?nonce=AAAA", "?nonceSize=32&nonce=AAAA"] {
        client
            .send(
                "POST",
                &format!("/challenge-response/v1/newSession{query}"),
                &[("accept", SESSION)],
                b"",
            )
            .problem(400, "SHEF-SVC-026");
    }
    // As in Veraison's own example: the error lists the alternatives.
    let short = client
        .send("POST", "/challenge-response/v1/newSession?nonceSize=8", &[("accept", SESSION)], b"")
        .problem(400, "SHEF-SVC-026");
    assert!(short["detail"].as_str().unwrap().contains("leave nonceSize out"), "{short}");
    client
        .send("POST", "/challenge-response/v1/newSession", &[("accept", "text/html")], b"")
        .problem(406, "SHEF-SVC-025");
    client
        .send("GET", "/challenge-response/v1/session/AAAA", &[("accept", SESSION)], b"")
        .problem(404, "SHEF-SVC-020");
}

#[test]
fn sessions_of_other_protocols_release_nothing_and_strangers_only_attest() {
    let (service, device, client) = furnished();
    let (path, session) = new_session(&service.operator, "");
    let token = path.rsplit('/').next().unwrap();
    let nonce = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    service.operator.put_key("data").ok();
    let body = json!({"key": "data", "session": token, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    service.operator.post("/v1/release", &body).problem(400, "SHEF-SVC-040");
    client.post("/v1/release", &body).problem(401, "SHEF-SVC-027");
    let refused = client.post("/v1/sessions", &json!({"layer": "kernel"}));
    assert_eq!(
        refused.headers["connection"], "close",
        "its body was not read: nothing else may come on this connection"
    );
    refused.problem(401, "SHEF-SVC-027");
    client
        .send(
            "POST",
            "/endorsement-provisioning/v1/submit",
            &[("content-type", "application/rim+cose")],
            b"x",
        )
        .problem(401, "SHEF-SVC-027");
    client.send("POST", "/kbs/v0/resource/a/b/c", &[], b"x").problem(403, "SHEF-SVC-028");
    // If the configuration names no tenant for anonymous clients, they are rejected.
    let closed = Service::start();
    closed
        .stranger()
        .send("POST", "/challenge-response/v1/newSession", &[("accept", SESSION)], b"")
        .problem(401, "SHEF-SVC-027");
}

/// Clients get the claim names that they request, even if a profile contains a comma; without `aud`
/// if the client's parser rejects it.
#[test]
fn results_in_the_names_that_are_asked_for() {
    let (service, device, client) = furnished();
    let asked = |profile: &str| format!("application/eat+jwt; eat_profile=\"{profile}\"");
    let [new, old] = ["tag:ietf.org,2026:rats/ear#04", "tag:github.com,2023:veraison/ear"];
    let appraise = |accept: &str, more: Value| {
        let (session, nonce) = service.operator.session(Layer::Kernel, None);
        let mut body =
            json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        service.operator.send(
            "POST",
            "/v1/appraise",
            &[("content-type", "application/json"), ("accept", accept)],
            body.to_string().as_bytes(),
        )
    };
    let audience =
        |result: &Value| (result.get("aud").cloned(), result.get("shef_audience").cloned());
    let (by_aud, by_own) = ((Some(json!("default")), None), (None, Some(json!("default"))));
    for (accept, more, profile, expected) in [
        ("*/*".to_owned(), json!({}), new, &by_aud),
        ("*/*".to_owned(), json!({"aud": false}), new, &by_own),
        (asked(new), json!({}), new, &by_aud),
        (asked(old), json!({}), old, &by_own),
        (asked(old), json!({"aud": true}), old, &by_aud),
        (format!("text/html, {}, application/json;q=0.5", asked(old)), json!({}), old, &by_own),
        (format!("{};q=0, {}", asked(old), asked(new)), json!({}), new, &by_aud),
    ] {
        let result = claims(&appraise(&accept, more).ok()["result"]);
        assert_eq!(
            (result["eat_profile"].as_str(), &audience(&result)),
            (Some(profile), expected),
            "{accept}"
        );
    }
    appraise(&asked("tag:ietf.org,2025-07:ear"), json!({})).problem(406, "SHEF-SVC-025");
    // Also on Veraison's paths, beside the session's media type.
    for (accept, profile) in
        [(SESSION.to_owned(), old), (format!("{SESSION}, {}", asked(new)), new)]
    {
        let (path, session) = new_session(&client, "");
        let nonce = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
        let headers = [("accept", accept.as_str()), ("content-type", "application/eat+cwt")];
        let result = claims(
            &client.send("POST", &path, &headers, &device.evidence(Layer::Kernel, &nonce)).ok()["result"],
        );
        assert_eq!(
            (result["eat_profile"].as_str(), audience(&result)),
            (Some(profile), by_own.clone()),
            "{accept}"
        );
    }
}

/// A nonce from the client is not a challenge of the service: it is not fresh for a policy or for
/// the record of a device, and belongs to this client only.
#[test]
fn a_nonce_that_the_client_brings_is_no_challenge() {
    let (service, device, client) = furnished();
    let operator = &service.operator;
    let put = |text: &str| {
        operator
            .send(
                "PUT",
                "/v1/policies/default",
                &[("content-type", "application/toml")],
                text.as_bytes(),
            )
            .ok()
    };
    put(&format!("{POLICY}max_age = 5\n"));
    let last = || {
        operator.get(&format!("/v1/devices/{}", hex::encode(device.ueid))).json()["last_appraised"]
            .as_i64()
    };
    let status =
        |done: &Value| claims(&done["result"])["submods"]["fpga-kernel"]["ear.status"].clone();
    let submit = |path: &str, nonce: &[u8]| {
        let evidence = device.evidence(Layer::Kernel, nonce);
        client.send(
            "POST",
            path,
            &[("accept", SESSION), ("content-type", "application/eat+cwt")],
            &evidence,
        )
    };
    // A nonce that the service draws is one.
    let (path, session) = new_session(&client, "");
    let drawn = STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap();
    assert_eq!(status(&submit(&path, &drawn).ok()), "affirming");
    let before = last().expect("a device that was seen");
    assert!(before > 0);
    // The same under a nonce of the client: it may be arbitrarily old.
    let own = [7; 32];
    let query = format!("?nonce={}", B64.encode(own));
    let (path, _) = new_session(&client, &query);
    assert_eq!(status(&submit(&path, &own).ok()), "contraindicated");
    put(POLICY);
    // Without that rule the evidence is accepted, and the device's record does not change.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let (path, _) = new_session(&client, &query);
    assert_eq!(status(&submit(&path, &own).ok()), "affirming");
    assert_eq!(last(), Some(before));
    let body = json!({"nonce": B64.encode(own), "layer": "kernel", "evidence": b64(&device.evidence(Layer::Kernel, &own))});
    operator.post("/v1/appraise", &body).ok();
    operator.post("/v1/appraise", &body).problem(409, "SHEF-SVC-042");
    assert_eq!(last(), Some(before));
    // Another identity's own nonce is a different one, even with the same bytes.
    service.client("default", Role::Attest, "second").post("/v1/appraise", &body).ok();
    // Nor does a session with another session's nonce show its result, burn it or end it.
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

/// A session is valid only in the protocol that it was made for.
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
        let body =
            json!({"session": token, "evidence": b64(&device.evidence(Layer::Kernel, &[7; 48]))});
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
        operator
            .send(
                "POST",
                "/endorsement-provisioning/v1/submit",
                &[("content-type", "application/rim+cose")],
                bytes,
            )
            .ok()
    };
    let failed = submit(&corim);
    assert_eq!(failed["status"], "failed");
    assert!(failed["failure-reason"].as_str().unwrap().contains("SHEF-ATT-"), "{failed}");
    let signer = CorimSigner::with_key("vendor", key.public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&VENDOR);
    operator
        .send(
            "PUT",
            "/v1/signers/vendor",
            &[("content-type", "application/toml")],
            signer.to_toml().as_bytes(),
        )
        .ok();
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
    operator
        .send("PUT", "/v1/corims/x", &[("content-type", "application/rim+cose")], &changed)
        .problem(422, "SHEF-SVC-052");
    // Without its signer a CoRIM has no effect.
    operator.send("DELETE", "/v1/signers/vendor", &[], b"").ok();
    assert_eq!(appraise(), 422);
}

/// Of two contradicting changes at the same time one stays, and appraisals go on. Events record who
/// changed what, and only actual changes.
#[test]
fn changes_of_collateral_are_whole_and_leave_their_event() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    service.furnish(&device);
    operator.send("DELETE", "/v1/corims/build-1", &[], b"").ok();
    let key = SigningKey::generate(&mut SeededEntropy::new(5, "signer"));
    let signer = CorimSigner::with_key("vendor", key.public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&VENDOR);
    operator
        .send(
            "PUT",
            "/v1/signers/vendor",
            &[("content-type", "application/toml")],
            signer.to_toml().as_bytes(),
        )
        .ok();
    let other = ReferenceValues::from_toml(&reference().replace("svn = 3", "svn = 4")).unwrap();
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    assert_ne!(values, other);
    let appraise = || {
        let (session, nonce) = operator.session(Layer::Shield, None);
        operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))})).status
    };
    for round in 0..6 {
        let describe = Describe {
            id: &format!("digits-{round}"),
            version: 1,
            issuer: "vendor",
            not_after: None,
        };
        let both =
            [&values, &other].map(|values| write_signed(values, &describe, &key, None).unwrap());
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let put = |k: usize| {
                let (client, body) = (operator.clone(), &both[k]);
                scope.spawn(move || {
                    client
                        .send(
                            "PUT",
                            &format!("/v1/corims/r{round}-{k}"),
                            &[("content-type", "application/rim+cose")],
                            body,
                        )
                        .status
                })
            };
            [put(0), put(1)].map(|thread| thread.join().unwrap()).to_vec()
        });
        assert!(statuses == [201, 422] || statuses == [422, 201], "{statuses:?}");
        // The image in the other CoRIM has another version than the device's.
        assert_eq!(appraise(), if statuses[0] == 201 { 200 } else { 422 });
        for k in 0..2 {
            operator.send("DELETE", &format!("/v1/corims/r{round}-{k}"), &[], b"");
        }
    }
    // An inactive CoRIM that contradicts others cannot be activated.
    let describe = Describe { id: "digits", version: 1, issuer: "vendor", not_after: None };
    let put = |id: &str, values: &ReferenceValues| {
        let body = write_signed(values, &describe, &key, None).unwrap();
        operator.send(
            "PUT",
            &format!("/v1/corims/{id}"),
            &[("content-type", "application/rim+cose")],
            &body,
        )
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
    // Refusals are recorded too, but not as changes.
    events.retain(|event| event["action"] != "refused");
    let last: Vec<(&str, &str)> = events[events.len() - 5..]
        .iter()
        .map(|event| (event["action"].as_str().unwrap(), event["what"].as_str().unwrap()))
        .collect();
    let expected = [
        ("corim-add", "one"),
        ("corim-deactivate", "one"),
        ("corim-add", "two"),
        ("corim-remove", "two"),
        ("corim-activate", "one"),
    ];
    assert_eq!(last, expected);
    assert!(events.iter().all(|event| event["who"] == "operator"
        && event["role"] == "operator"
        && event["time"].as_i64() > Some(0)));
}
