//! Results: EAR in both dialects, and the results that a relying party must refuse.

use serde_json::{Value, json};
use shef_fixtures::case::{Case, NONCE, NOW, key};
use shef_proto::evidence::{self, AcceptedEntropy, EntropySource, Layer, RootOfTrust};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::crypto::portable;
use shef_verify::ear::{self, Dialect, Expect, Issue, Reader};
use shef_verify::jwt::{self, JwtKey, NamedKey};
use shef_verify::{Outcome, Status};

const AUDIENCE: &str = "https://keys.example";

fn signer() -> NamedKey {
    NamedKey { kid: "2026-11".into(), key: key("verifier") }
}

fn keys() -> Vec<JwtKey> {
    vec![
        JwtKey { kid: "old".into(), key: key("old").public_key() },
        JwtKey { kid: "2026-11".into(), key: key("verifier").public_key() },
    ]
}

fn issue(dialect: Dialect) -> Issue<'static> {
    Issue {
        dialect,
        issuer: "https://verifier.example",
        audience: AUDIENCE,
        reader: Reader::Own,
        issued: NOW,
        expires: NOW + 300,
        id: "7f",
        nonce: &NONCE,
        policy: Some("default@3"),
        developer: "https://shef.dev",
        build: "shef-verifierd 0.1.0",
        with_ueid: false,
    }
}

fn expect(layer: Layer) -> Expect<'static> {
    Expect {
        issuer: Some("https://verifier.example"),
        audience: AUDIENCE,
        nonce: Some(&NONCE),
        layer,
        policy: None,
        now: NOW + 10,
        leeway: 5,
    }
}

fn outcome(case: &Case) -> Outcome {
    case.appraise_bytes(&case.evidence(), &[])
}

#[test]
fn both_dialects_are_read_back() {
    for dialect in Dialect::ALL {
        for layer in [Layer::Kernel, Layer::Shield] {
            let case = Case::new(layer);
            let outcome = outcome(&case);
            let token = ear::sign(&outcome, layer, &issue(dialect), &signer()).unwrap();
            let ear = ear::verify(&token, &keys(), &expect(layer), portable).unwrap();
            assert_eq!(
                (ear.dialect, ear.status, ear.vector),
                (dialect, Status::Affirming, outcome.appraisal.vector)
            );
            assert_eq!(ear.key, Some(key("shield").public_key()));
            assert_eq!(ear.evidence_digest, Some(evidence::digest(&case.evidence())));
            assert_eq!(
                (ear.nonce, ear.id.as_str(), ear.expires),
                (NONCE.to_vec(), "7f", NOW + 300)
            );
            assert_eq!(
                (ear.policy_ids[0].as_str(), &ear.policy_ids[1..]),
                ("default@3", &outcome.appraisal.policy_ids[..])
            );
            for (policy, known) in [
                ("default@3", true),
                (&outcome.appraisal.policy_ids[0], true),
                ("default@2", false),
                ("default", false),
            ] {
                let expect = Expect { policy: Some(policy), ..expect(layer) };
                assert_eq!(
                    ear::verify(&token, &keys(), &expect, portable).is_ok(),
                    known,
                    "{policy}"
                );
            }
            assert!(!ear.attester.contains_key("ueid"), "the device is named only on request");
            // A result for one layer is refused for another.
            let other = if layer == Layer::Kernel { Layer::Shield } else { Layer::Kernel };
            assert!(ear::verify(&token, &keys(), &expect(other), portable).is_err());
        }
    }
}

/// Parsers that refuse `aud` find the audience in another claim, with the same effect; the KBS of
/// Trustee finds the key, and no other key, as a JWK.
#[test]
fn results_for_parsers_of_others() {
    let case = Case::new(Layer::Shield);
    for (dialect, evidence) in [
        (Dialect::Draft04, "ear_attester_claims"),
        (Dialect::Veraison2023, "ear.veraison.annotated-evidence"),
    ] {
        for reader in [Reader::Veraison, Reader::Trustee] {
            let issue = Issue { reader, ..issue(dialect) };
            let token = ear::sign(&outcome(&case), Layer::Shield, &issue, &signer()).unwrap();
            let claims: Value =
                serde_json::from_slice(&ear::claims(&outcome(&case), Layer::Shield, &issue))
                    .unwrap();
            assert_eq!((claims.get("aud"), &claims["shef_audience"]), (None, &json!(AUDIENCE)));
            ear::verify(&token, &keys(), &expect(Layer::Shield), portable).unwrap();
            let other = Expect { audience: "https://elsewhere.example", ..expect(Layer::Shield) };
            assert!(
                ear::verify(&token, &keys(), &other, portable)
                    .unwrap_err()
                    .to_string()
                    .starts_with("claim aud")
            );
            let found = claims["submods"]["fpga-shield"][evidence].get("runtime_data_claims");
            let b64 = |bytes: &[u8]| base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes);
            let xy = key("shield").public_key().xy();
            let jwk = json!({"kty": "EC", "crv": "P-256", "alg": "ECDH-ES+A256KW", "x": b64(&xy[..32]), "y": b64(&xy[32..])});
            assert_eq!(found, (reader == Reader::Trustee).then_some(&json!({"tee-pubkey": jwk})));
            // A result with both is invalid.
            let mut both = claims.clone();
            both["aud"] = json!(AUDIENCE);
            let token = jwt::sign(both.to_string().as_bytes(), &signer()).unwrap();
            assert!(ear::verify(&token, &keys(), &expect(Layer::Shield), portable).is_err());
        }
    }
}

/// The names on the wire: a relying party's policy reads exactly these.
#[test]
fn names_of_the_dialects() {
    let case = Case::new(Layer::Shield);
    let claims = |dialect| -> Value {
        serde_json::from_slice(&ear::claims(&outcome(&case), Layer::Shield, &issue(dialect)))
            .unwrap()
    };
    let new = claims(Dialect::Draft04);
    assert_eq!(new["eat_profile"], "tag:ietf.org,2026:rats/ear#04");
    assert_eq!(new["ear_status"], "affirming");
    assert_eq!(
        new["ear_verifier_id"],
        json!({"developer": "https://shef.dev", "build": "shef-verifierd 0.1.0"})
    );
    let shield = &new["submods"]["fpga-shield"];
    assert_eq!(shield["ear_status"], "affirming");
    assert_eq!(
        shield["ear_trustworthiness_vector"],
        json!({"instance-identity": 2, "configuration": 2, "executables": 2, "hardware": 2, "runtime-opaque": 2, "storage-opaque": 2})
    );
    assert!(shield["ear_appraisal_policy_ids"][1].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(shield["ear_verifier_claims"]["reasons"], json!([]));
    let old = claims(Dialect::Veraison2023);
    assert_eq!(old["eat_profile"], "tag:github.com,2023:veraison/ear");
    assert!(old.get("ear_status").is_none() && old.get("ear.status").is_none());
    let shield = &old["submods"]["fpga-shield"];
    assert_eq!(shield["ear.status"], "affirming");
    assert!(shield["ear.appraisal-policy-id"].is_string());
    assert!(
        shield["ear.veraison.key-attestation"]["akpub"]
            .as_str()
            .unwrap()
            .starts_with("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE")
    );
}

#[test]
fn a_denial_names_its_reasons_and_no_key() {
    let mut case = Case::new(Layer::Shield);
    case.shield().image_digest[0] ^= 1;
    for dialect in Dialect::ALL {
        let token = ear::sign(&outcome(&case), Layer::Shield, &issue(dialect), &signer()).unwrap();
        let ear = ear::verify(&token, &keys(), &expect(Layer::Shield), portable).unwrap();
        assert_eq!(
            (ear.status, ear.vector.get("executables")),
            (Status::Contraindicated, Some(33))
        );
        assert_eq!((ear.key, ear.evidence_digest), (None, None));
    }
    let claims: Value = serde_json::from_slice(&ear::claims(
        &outcome(&case),
        Layer::Shield,
        &issue(Dialect::Draft04),
    ))
    .unwrap();
    let reasons = &claims["submods"]["fpga-shield"]["ear_verifier_claims"]["reasons"];
    assert_eq!(reasons[0]["code"], "SHEF-ATT-040");
    assert_eq!(reasons[0]["actual"], "0203030303030303...");
}

#[test]
fn statuses_and_vectors() {
    type Change = fn(&mut Case);
    let provider: Change = |c| {
        c.claims.common.root_of_trust = RootOfTrust::Provider;
        c.anchor.0 = RootOfTrust::Provider;
        c.policy.root_of_trust = vec!["provider".into()];
    };
    let rows: [(Change, Status, &str, i8); 16] = [
        (|_| (), Status::Affirming, "hardware", 2),
        (provider, Status::Affirming, "hardware", -2),
        (provider, Status::Affirming, "instance-identity", 0),
        (|c| c.nonce = vec![0; 48], Status::Contraindicated, "instance-identity", 99),
        (|c| c.signer = "somebody", Status::Contraindicated, "executables", 99),
        (|c| c.known_maker = "another", Status::Contraindicated, "hardware", 97),
        (|c| c.known_maker = "another", Status::Contraindicated, "executables", 99),
        (|c| c.layer = Layer::Kernel, Status::None, "hardware", 1),
        (|c| c.policy.min_kernel_svn = 9, Status::Contraindicated, "hardware", 32),
        (
            |c| c.policy.revoked = [hex::encode(c.claims.common.ueid)].into(),
            Status::Contraindicated,
            "instance-identity",
            97,
        ),
        (
            |c| c.claims.common.entropy = EntropySource::Seeded,
            Status::Contraindicated,
            "configuration",
            96,
        ),
        (
            |c| c.claims.common.entropy = EntropySource::Unmeasured,
            Status::Contraindicated,
            "configuration",
            96,
        ),
        (
            |c| {
                c.claims.common.entropy = EntropySource::Unmeasured;
                c.policy.entropy = AcceptedEntropy::Unmeasured;
            },
            Status::Warning,
            "configuration",
            32,
        ),
        (|c| c.shield().bypass = vec!["x".into()], Status::Contraindicated, "runtime-opaque", 96),
        (
            |c| {
                c.shield().bypass = vec!["x".into()];
                c.policy.bypass = vec!["x".into()];
            },
            Status::Warning,
            "runtime-opaque",
            32,
        ),
        (
            |c| {
                c.claims.common.root_of_trust = RootOfTrust::Simulated;
                c.anchor.0 = RootOfTrust::Simulated;
                c.policy.root_of_trust = vec!["simulated".into()];
            },
            Status::Warning,
            "hardware",
            32,
        ),
    ];
    for (at, (change, status, claim, value)) in rows.into_iter().enumerate() {
        let mut case = Case::new(Layer::Shield);
        change(&mut case);
        let appraisal = case.appraise();
        assert_eq!(
            (appraisal.status, appraisal.vector.get(claim)),
            (status, Some(value)),
            "row {at}"
        );
    }
}

#[test]
fn what_a_relying_party_refuses() {
    let layer = Layer::Shield;
    let outcome = outcome(&Case::new(layer));
    let token = |change: fn(&mut Issue<'_>)| {
        let mut issue = issue(Dialect::Draft04);
        change(&mut issue);
        ear::sign(&outcome, layer, &issue, &signer()).unwrap()
    };
    let refused = |token: &str| {
        ear::verify(token, &keys(), &expect(layer), portable).unwrap_err().to_string()
    };
    for (change, what) in [
        ((|i| i.audience = "https://elsewhere.example") as fn(&mut Issue<'_>), "claim aud"),
        (|i| i.issuer = "somebody", "claim iss"),
        (
            |i| i.issuer = "some\u{1b}[2Jbody",
            "claim iss: expected \"https://verifier.example\", found \"some\\u{1b}[2Jbody\"",
        ),
        (|i| i.issued = NOW + 100, "claim iat"),
        (|i| i.expires = NOW + 5, "claim exp"),
        (|i| i.expires = NOW, "claim exp"),
        (|i| i.nonce = b"another nonce", "claim eat_nonce"),
    ] {
        let error = refused(&token(change));
        assert!(error.starts_with(what), "{error}");
    }
    // A claim of each tier below affirming, with a status that hides it.
    let claims = ear::claims(&outcome, layer, &issue(Dialect::Draft04));
    for value in [-128, -97, -96, -33, -1, 1, 32, 95, 96, 127] {
        let mut claims: Value = serde_json::from_slice(&claims).unwrap();
        claims["submods"]["fpga-shield"]["ear_trustworthiness_vector"]["hardware"] = json!(value);
        let error = refused(&jwt::sign(claims.to_string().as_bytes(), &signer()).unwrap());
        assert!(error.starts_with("claim ear_status"), "{value}: {error}");
    }
}

/// Headers and algorithms that must not work, around a good claims-set.
#[test]
fn token_traps() {
    let b64 = base64_simd::URL_SAFE_NO_PAD;
    let claims =
        ear::claims(&outcome(&Case::new(Layer::Shield)), Layer::Shield, &issue(Dialect::Draft04));
    let good = jwt::sign(&claims, &signer()).unwrap();
    let verify = |token: &str| {
        ear::verify(token, &keys(), &expect(Layer::Shield), portable).map_err(|error| error.code())
    };
    assert!(verify(&good).is_ok());
    let [header, body, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!() };
    // Signed by the right key, so that only the header can cause a refusal.
    let with_header = |header: Value| {
        let message = format!("{}.{body}", b64.encode_to_string(header.to_string()));
        let signature = key("verifier").sign(message.as_bytes());
        format!("{message}.{}", b64.encode_to_string(signature))
    };
    assert!(verify(&with_header(json!({"alg": "ES256", "kid": "2026-11"}))).is_ok());
    for alg in ["none", "None", "HS256", "RS256", "PS256", "ES384", "ES256K", "EdDSA", "es256", ""]
    {
        assert_eq!(
            verify(&with_header(json!({"alg": alg, "kid": "2026-11"}))),
            Err("SHEF-ATT-072"),
            "{alg}"
        );
    }
    let attacker: PublicKey = key("attacker").public_key();
    let xy = attacker.xy();
    let jwk = json!({"kty": "EC", "crv": "P-256", "x": b64.encode_to_string(&xy[..32]), "y": b64.encode_to_string(&xy[32..])});
    for (name, value) in [
        ("jwk", jwk),
        ("jku", json!("https://attacker.example/jwks")),
        ("x5u", json!("https://attacker.example/x5")),
        ("x5c", json!(["MII"])),
        ("crit", json!(["b64"])),
        ("b64", json!(false)),
    ] {
        let mut header = json!({"alg": "ES256", "kid": "2026-11"});
        header[name] = value;
        assert_eq!(verify(&with_header(header)), Err("SHEF-ATT-072"), "{name}");
    }
    for kid in [json!("old"), json!("unknown"), json!("../2026-11"), json!("")] {
        assert_eq!(
            verify(&with_header(json!({"alg": "ES256", "kid": kid}))),
            Err("SHEF-ATT-071"),
            "{kid}"
        );
    }
    assert_eq!(
        verify(&with_header(json!({"alg": "ES256"}))),
        Err("SHEF-ATT-071"),
        "no kid, and two keys"
    );
    assert_eq!(verify(&with_header(json!({"alg": "ES256", "kid": 1}))), Err("SHEF-ATT-072"));
    assert_eq!(verify(&with_header(json!({"kid": "2026-11"}))), Err("SHEF-ATT-072"));
    assert_eq!(
        verify(&with_header(json!({"alg": "ES256", "kid": "2026-11", "typ": "at+jwt"}))),
        Err("SHEF-ATT-072")
    );
    // HMAC with the public key as secret is HS256, refused by name. So is a duplicate name.
    let twice = format!(
        "{}.{body}.{signature}",
        b64.encode_to_string(r#"{"alg":"none","alg":"ES256","kid":"2026-11"}"#)
    );
    assert_eq!(verify(&twice), Err("SHEF-ATT-072"));
    for (token, code) in [
        (format!("{header}.{body}."), "SHEF-ATT-070"),
        (format!("{header}.{body}"), "SHEF-ATT-070"),
        (format!("{good}.{signature}"), "SHEF-ATT-070"),
        (format!("{good}="), "SHEF-ATT-070"),
        (format!(" {good}"), "SHEF-ATT-070"),
        (String::new(), "SHEF-ATT-070"),
        (format!("{header}.{body}.{}", b64.encode_to_string([0x30; 70])), "SHEF-ATT-070"),
        (format!("{header}.{body}.{}", b64.encode_to_string([0; 64])), "SHEF-ATT-071"),
        (format!("{header}.{}.{signature}", b64.encode_to_string("{}")), "SHEF-ATT-071"),
    ] {
        assert_eq!(verify(&token), Err(code), "{token}");
    }
    // A signed claims-set with a duplicate name.
    let text = String::from_utf8(claims).unwrap();
    let doubled = text.replacen('{', r#"{"aud":"https://elsewhere.example","#, 1);
    assert_eq!(verify(&jwt::sign(doubled.as_bytes(), &signer()).unwrap()), Err("SHEF-ATT-070"));
    // A status better than its vector, and an overall status better than the layer's.
    for (from, to) in [
        ("\"configuration\":2", "\"configuration\":96"),
        ("\"hardware\":2", "\"hardware\":\"2\""),
        ("affirming", "yes"),
    ] {
        assert!(text.contains(from));
        let changed = text.replace(from, to);
        assert_eq!(
            verify(&jwt::sign(changed.as_bytes(), &signer()).unwrap()),
            Err("SHEF-ATT-073"),
            "{to}"
        );
    }
    let changed = text.replacen("affirming", "none", 1);
    assert_eq!(verify(&jwt::sign(changed.as_bytes(), &signer()).unwrap()), Err("SHEF-ATT-073"));
}
