//! Attestation results (EAR as JWT) that a relying party must reject, and those that other parsers
//! read.

use shef_proto::cose::SigningKey;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_verify::Rego;
use shef_verify::crypto;
use shef_verify::ear::{self, Dialect, Expect, Issue, Reader};
use shef_verify::jwt::{JwtKey, NamedKey};

use super::Run;
use crate::device::Device;
use crate::{ACCEPTED, Seen};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shef_fixtures::der::other_s;
use shef_fixtures::world::NOW;

pub(super) const CASES: &[(u32, Run)] = &[
    (30, public_key_as_secret),
    (31, no_algorithm),
    (32, brought_keys),
    (52, other_audience),
    (53, used_twice),
    (54, out_of_time),
    (55, retired_key),
    (116, dialects),
    (117, relying_party_policy),
];

const AUDIENCE: &str = "relying-party.example";

/// A verifier's signed result about a good device, and the relying party that expects it.
struct Relying {
    key: NamedKey,
    known: Vec<JwtKey>,
    token: String,
    nonce: Vec<u8>,
    device: Device,
}

impl Relying {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Issue<'_>)) -> Self {
        let device = Device::new(Layer::Shield);
        let nonce = device.verifier.nonce.clone();
        let key = NamedKey {
            kid: "2026-11".into(),
            key: SigningKey::derive(b"the verifier's key for results"),
        };
        let mut issue = Issue {
            dialect: Dialect::Draft04,
            issuer: "verifier.example",
            audience: AUDIENCE,
            reader: Reader::Own,
            issued: NOW,
            expires: NOW + 300,
            id: "0123456789abcdef",
            nonce: &nonce,
            policy: None,
            developer: "shef",
            build: "test",
            with_ueid: true,
        };
        change(&mut issue);
        let token =
            ear::sign(&device.verifier.outcome(&device.evidence), Layer::Shield, &issue, &key)
                .unwrap();
        let known = vec![JwtKey { kid: key.kid.clone(), key: key.key.public_key() }];
        Self { key, known, token, nonce, device }
    }

    fn ask(&self, variant: &str, token: &str) -> Seen {
        let expect = Expect {
            issuer: Some("verifier.example"),
            audience: AUDIENCE,
            nonce: Some(&self.nonce),
            layer: Layer::Shield,
            policy: None,
            now: NOW + 10,
            leeway: 5,
        };
        let results = [crypto::portable, crypto::aws_lc]
            .map(|verify| ear::verify(token, &self.known, &expect, verify));
        assert_eq!(results[0], results[1], "both implementations of ECDSA say the same");
        Seen::of(variant, &results[0], |error| error.code())
    }

    fn claims(&self) -> Vec<u8> {
        B64.decode(self.token.split('.').nth(1).unwrap()).unwrap()
    }

    fn submod(&self) -> Value {
        let claims: Value = serde_json::from_slice(&self.claims()).unwrap();
        claims["submods"]["fpga-shield"].clone()
    }

    /// A token with this header, signed by `sign`.
    fn forged(&self, header: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
        let message = format!("{}.{}", B64.encode(header.to_string()), B64.encode(self.claims()));
        let signature = sign(message.as_bytes());
        format!("{message}.{}", B64.encode(signature))
    }
}

/// A result with `n - s` for s.
pub(super) fn result_with_other_s(variant: &str) -> Seen {
    let relying = Relying::new();
    let (message, signature) = relying.token.rsplit_once('.').unwrap();
    assert_eq!(relying.ask("", &relying.token).code, ACCEPTED);
    relying.ask(
        variant,
        &format!("{message}.{}", B64.encode(other_s(&B64.decode(signature).unwrap()))),
    )
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let pad = |byte: u8| block.map(|b| b ^ byte);
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

/// Encodings in which an attacker knows the verifier's public key.
fn public_forms(key: &PublicKey) -> Vec<(&'static str, Vec<u8>)> {
    let head = hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").unwrap();
    let der = [&head[..], key.as_bytes()].concat();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        base64::engine::general_purpose::STANDARD.encode(&der)
    );
    vec![("point", key.as_bytes().to_vec()), ("DER", der), ("PEM", pem.into_bytes())]
}

fn public_key_as_secret() -> Vec<Seen> {
    let relying = Relying::new();
    let mut seen = Vec::new();
    for (form, secret) in public_forms(&relying.known[0].key) {
        let header = json!({"alg": "HS256", "typ": "JWT", "kid": relying.key.kid});
        seen.push(relying.ask(form, &relying.forged(&header, |message| hmac(&secret, message))));
    }
    let header = json!({"alg": "ES256", "typ": "JWT", "kid": relying.key.kid});
    let secret = relying.known[0].key.as_bytes().to_vec();
    seen.push(relying.ask(
        "HMAC under the name ES256",
        &relying.forged(&header, |message| hmac(&secret, message)),
    ));
    seen
}

fn no_algorithm() -> Vec<Seen> {
    let relying = Relying::new();
    ["none", "None", "NONE", "nOnE", "", "ES384", "RS256"]
        .into_iter()
        .map(|name| {
            relying.ask(
                name,
                &relying
                    .forged(&json!({"alg": name, "typ": "JWT", "kid": relying.key.kid}), |_| {
                        Vec::new()
                    }),
            )
        })
        .collect()
}

fn brought_keys() -> Vec<Seen> {
    let relying = Relying::new();
    let attacker = SigningKey::derive(b"an attacker");
    let xy = attacker.public_key().xy();
    let jwk = json!({"kty": "EC", "crv": "P-256", "x": B64.encode(&xy[..32]), "y": B64.encode(&xy[32..])});
    let with = |name: &str, value: Value| {
        let mut header = json!({"alg": "ES256", "typ": "JWT", "kid": relying.key.kid});
        header[name] = value;
        relying.forged(&header, |message| attacker.sign(message).to_vec())
    };
    let mut seen = vec![
        relying.ask("jwk", &with("jwk", jwk)),
        relying.ask("jku", &with("jku", json!("https://attacker.example/jwks.json"))),
        relying.ask("x5u", &with("x5u", json!("https://attacker.example/chain.pem"))),
        relying.ask("x5c", &with("x5c", json!(["MIIB"]))),
        relying.ask("crit", &with("crit", json!(["exp"]))),
        relying.ask("kid of nobody", &with("kid", json!("attacker"))),
        relying.ask("kid that is a path", &with("kid", json!("../../../../dev/null"))),
    ];
    let device = &relying.device;
    let header = |label: i64, value: shef_proto::cbor::Value| {
        device.spoilt(|token| {
            let shef_proto::cbor::Value::Map(entries) = &mut token.unprotected else {
                unreachable!()
            };
            entries.push((shef_proto::cbor::Value::int(label), value));
        })
    };
    seen.push(device.ask("kid in evidence", &header(4, (&[1, 2, 3]).into())));
    seen.push(
        device.ask("x5u in evidence", &header(35, "https://attacker.example/chain.der".into())),
    );
    seen
}

fn other_audience() -> Vec<Seen> {
    ["somebody.example", "relying-party.example.attacker.example", "", "RELYING-PARTY.EXAMPLE"]
        .into_iter()
        .map(|audience| {
            let relying = Relying::with(|issue| issue.audience = audience);
            relying.ask(audience, &relying.token)
        })
        .collect()
}

/// A result answers one challenge; the relying party's next challenge has another nonce.
fn used_twice() -> Vec<Seen> {
    let mut relying = Relying::new();
    assert_eq!(relying.ask("", &relying.token).code, ACCEPTED);
    relying.nonce = vec![0x99; 48];
    let mut seen = vec![relying.ask("next challenge", &relying.token)];
    relying.nonce = Vec::new();
    seen.push(relying.ask("a challenge without a nonce", &relying.token));
    seen
}

fn out_of_time() -> Vec<Seen> {
    let with = |what: &str, issued: i64, expires: i64| {
        let relying = Relying::with(|issue| (issue.issued, issue.expires) = (issued, expires));
        relying.ask(what, &relying.token)
    };
    let good = Relying::new();
    assert_eq!(good.ask("", &good.token).code, ACCEPTED);
    vec![
        with("expired", NOW - 600, NOW - 300),
        with("expired, beyond the leeway", NOW - 600, NOW + 5),
        with("issued in the future", NOW + 60, NOW + 360),
        with("ends before it begins", NOW + 12, NOW + 11),
        with("at the beginning of time", i64::MIN, i64::MIN),
        with("at the end of time", i64::MAX, i64::MAX),
    ]
}

fn retired_key() -> Vec<Seen> {
    let mut relying = Relying::new();
    // While both keys are published, results of both verify.
    let next =
        JwtKey { kid: "2026-12".into(), key: SigningKey::derive(b"the next key").public_key() };
    relying.known.push(next);
    assert_eq!(relying.ask("", &relying.token).code, ACCEPTED);
    relying.known.remove(0);
    let mut seen = vec![relying.ask("no longer published", &relying.token)];
    relying.known[0].kid = relying.key.kid.clone();
    seen.push(relying.ask("its name given to the next key", &relying.token));
    relying.known.clear();
    seen.push(relying.ask("no keys at all", &relying.token));
    seen
}

/// Names of the two dialects in their own parsers.
fn dialects() -> Vec<Seen> {
    let new = Relying::new();
    let old = Relying::with(|issue| issue.dialect = Dialect::Veraison2023);
    let read = |relying: &Relying,
                profile: &str,
                status: &str,
                vector: &str,
                policy: &str,
                verifier: &str| {
        let claims: Value = serde_json::from_slice(&relying.claims()).ok()?;
        let submod = claims["submods"].as_object()?.values().next()?.clone();
        let numbers = submod[vector].as_object()?.values().all(Value::is_i64);
        let both =
            claims[verifier]["developer"].is_string() && claims[verifier]["build"].is_string();
        let policy = match &submod[policy] {
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => false,
        };
        let right = claims["eat_profile"] == profile
            && claims["iat"].is_i64()
            && submod[status] == "affirming"
            && numbers
            && both
            && policy;
        right.then_some(())
    };
    let verdict = |variant: &str, read: Option<()>, relying: &Relying| {
        let own = relying.ask(variant, &relying.token);
        if read.is_some() {
            own
        } else {
            Seen::new(variant, "is not what readers of this dialect expect")
        }
    };
    vec![
        verdict(
            "draft -04",
            read(
                &new,
                "tag:ietf.org,2026:rats/ear#04",
                "ear_status",
                "ear_trustworthiness_vector",
                "ear_appraisal_policy_ids",
                "ear_verifier_id",
            ),
            &new,
        ),
        verdict(
            "2023",
            read(
                &old,
                "tag:github.com,2023:veraison/ear",
                "ear.status",
                "ear.trustworthiness-vector",
                "ear.appraisal-policy-id",
                "ear.verifier-id",
            ),
            &old,
        ),
    ]
}

/// A relying party's own policy over the claims of a result: enough trust in the claims that it
/// needs, and no contraindicated claim.
const RELYING_POLICY: &str = r#"
package shef
import rego.v1

default allow := false

allow if {
    input.ear_status == "affirming"
    vector := input.ear_trustworthiness_vector
    every name in ["instance-identity", "configuration", "executables", "hardware"] { affirming(vector[name]) }
    every claim in vector { claim < 96 }
}

affirming(claim) if { claim >= 2; claim <= 31 }
"#;

fn relying_party_policy() -> Vec<Seen> {
    let policy = Rego::new(RELYING_POLICY).unwrap().compile().unwrap();
    let submod = Relying::new().submod();
    let ask = |submod: &Value| policy.clone().evaluate(&submod.to_string());
    for (name, value) in [("hardware", 97), ("executables", 33), ("configuration", 0)] {
        let mut worse = submod.clone();
        worse["ear_trustworthiness_vector"][name] = json!(value);
        assert_ne!(ask(&worse), Ok(true), "{name} {value}");
    }
    let answer = ask(&submod);
    vec![Seen::new(
        "affirming",
        if answer == Ok(true) { ACCEPTED.to_owned() } else { format!("{answer:?}") },
    )]
}
