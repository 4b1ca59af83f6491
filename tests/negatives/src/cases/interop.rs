//! Clients of other services' documented protocols against the running service.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use serde_json::{Value, json};
use sha2::{Digest, Sha384};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::{PublicKey, derive_key_pair};
use shef_verify::crypto;
use shef_verify::ear::{self, Expect};
use shef_verify::jwt::JwtKey;

use super::Run;
use super::service::{answered, furnished};
use crate::{ACCEPTED, Seen};
use shef_fixtures::service::{POLICY, Service, now};

pub(super) const CASES: &[(u32, Run)] = &[(114, veraison), (115, kbs)];

/// Keys of results, as a relying party gets them.
fn known_keys(service: &Service) -> Vec<JwtKey> {
    let set = service.stranger().get("/.well-known/jwks.json").ok();
    let point = |key: &Value| {
        [
            vec![4],
            B64.decode(key["x"].as_str().unwrap()).unwrap(),
            B64.decode(key["y"].as_str().unwrap()).unwrap(),
        ]
        .concat()
    };
    set["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| JwtKey {
            kid: key["kid"].as_str().unwrap().into(),
            key: PublicKey::from_bytes(&point(key)).unwrap(),
        })
        .collect()
}

/// Discovery, a session for each size of nonce, evidence, and the result verified with the
/// published key.
fn veraison() -> Vec<Seen> {
    const SESSION: &str = "application/vnd.veraison.challenge-response-session+json";
    let (service, device) = furnished();
    let keys = known_keys(&service);
    let client = &service.operator;
    let discovery = client.get("/.well-known/veraison/verification").ok();
    let new =
        discovery["api-endpoints"]["newChallengeResponseSession"].as_str().unwrap().to_owned();
    [("", 48), ("?nonceSize=32", 32), ("?nonceSize=64", 64)]
        .into_iter()
        .flat_map(|(query, size)| [Layer::Kernel, Layer::Shield].map(|layer| (query, size, layer)))
        .map(|(query, size, layer)| {
            let variant = format!("{} with {size} bytes", layer.name());
            let started =
                client.send("POST", &format!("{new}{query}"), &[("accept", SESSION)], b"");
            if started.status != 201 || started.headers["content-type"] != SESSION {
                return answered(variant, &started);
            }
            let location = started.headers["location"].to_str().unwrap().to_owned();
            let text = started.json()["nonce"].as_str().unwrap().to_owned();
            // Clients decode with either alphabet: both must give the same bytes.
            let nonce = STANDARD.decode(&text).unwrap();
            assert_eq!(
                (nonce.len(), B64.decode(text.trim_end_matches('=')).unwrap()),
                (size, nonce.clone())
            );
            let base = new.rsplit_once('/').unwrap().0;
            let kind = format!("application/eat+cwt; eat_profile=\"{}\"", layer.profile());
            let headers = [("accept", SESSION), ("content-type", kind.as_str())];
            let answer = client.send(
                "POST",
                &format!("{base}/{location}"),
                &headers,
                &device.evidence(layer, &nonce),
            );
            if answer.status != 200 {
                return answered(variant, &answer);
            }
            let body = answer.json();
            let claims = body["result"].as_str().unwrap();
            let expect = Expect {
                issuer: None,
                audience: "default",
                nonce: Some(&nonce),
                layer,
                policy: None,
                now: now(),
                leeway: 5,
            };
            let result = ear::verify(claims, &keys, &expect, crypto::portable);
            let affirming =
                result.as_ref().is_ok_and(|ear| ear.status == shef_verify::Status::Affirming);
            assert!(body["status"] == "complete" && (affirming || result.is_err()), "{body}");
            Seen::of(variant, &result, |error| error.code())
        })
        .collect()
}

/// Authenticate, attest with a key bound to the challenge, fetch a resource, open it.
fn kbs() -> Vec<Seen> {
    let (service, device) = furnished();
    let client = &service.operator;
    let policy = format!("{POLICY}to_host = true\n");
    client
        .send(
            "PUT",
            "/v1/policies/host",
            &[("content-type", "application/toml")],
            policy.as_bytes(),
        )
        .ok();
    [Layer::Kernel, Layer::Shield]
        .into_iter()
        .map(|layer| {
            let body = json!({"layer": layer.name(), "policy": "host", "to": "host", "secret": B64.encode(b"a resource")});
            client.call("PUT", &format!("/v1/keys/default%2Fkey%2F{}", layer.name()), &body).ok();
            let path = format!("/kbs/v0/resource/default/key/{}", layer.name());
            let started = client.post("/kbs/v0/auth", &json!({"version": "0.4.0", "tee": "sample", "extra-params": ""}));
            if started.status != 200 {
                return answered(layer.name(), &started);
            }
            let cookie = started.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
            let nonce = started.ok()["nonce"].as_str().unwrap().to_owned();
            let (_, public) = derive_key_pair(b"key of the confidential container");
            let xy = public.xy();
            let key = json!({"alg": "ECDH-ES+A256KW", "crv": "P-256", "kty": "EC", "x": B64.encode(&xy[..32]), "y": B64.encode(&xy[32..])});
            let runtime = json!({"additional-evidence": "", "nonce": nonce, "tee-pubkey": key});
            let report = Sha384::digest(runtime.to_string());
            let evidence = json!({"evidence": B64.encode(device.evidence(layer, &report))});
            let body = json!({
                "runtime-data": {"nonce": nonce, "tee-pubkey": key},
                "tee-evidence": {"primary_evidence": evidence, "additional_evidence": ""},
            });
            let headers = [("content-type", "application/json"), ("cookie", cookie.as_str())];
            let attested = client.send("POST", "/kbs/v0/attest", &headers, body.to_string().as_bytes());
            if attested.status != 200 {
                return answered(layer.name(), &attested);
            }
            let fetched = client.send("GET", &path, &headers[1..], b"");
            let seen = answered(layer.name(), &fetched);
            let jwe = fetched.json();
            let whole = ["protected", "encrypted_key", "iv", "ciphertext", "tag"].iter().all(|member| jwe[*member].is_string());
            if seen.code == ACCEPTED && !whole { Seen::new(layer.name(), "no JWE") } else { seen }
        })
        .collect()
}
