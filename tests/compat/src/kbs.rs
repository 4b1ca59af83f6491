//! The KBS protocol through the crate `kbs-types`, as used by Trustee's client. The crate encodes
//! requests and decodes answers, the client's crate canonicalizes runtime data, and an independent
//! JOSE library opens resources.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use josekit::jwe::{self, ECDH_ES_A256KW};
use josekit::jwk::Jwk;
use josekit::jwk::alg::ec::EcCurve;
use kbs_types::{
    Attestation, Challenge, CompositeEvidence, ErrorInformation, HashAlgorithm, InitData, Request,
    Response, RuntimeData, Tee, TeePubKey,
};
use serde_json::{Value, json};
use shef_proto::evidence::Layer;

use crate::service::{Client, Expect as _, HttpResponse};
use crate::{Case, Outcome, World, demand, text};
use shef_fixtures::device::Device;

const ONE: &str = "default/key/one";

/// A session of the client.
struct Kbs {
    client: Client,
    cookie: String,
    challenge: Challenge,
    hash: HashAlgorithm,
    key: TeePubKey,
}

/// The key that the card's evidence certifies.
fn card_key(device: &Device) -> TeePubKey {
    let xy = device.key.public_key().xy();
    TeePubKey::EC {
        crv: "P-256".into(),
        alg: "ECDH-ES+A256KW".into(),
        x: B64.encode(&xy[..32]),
        y: B64.encode(&xy[32..]),
    }
}

/// A key made by the host.
fn host_key(curve: EcCurve) -> Outcome<(TeePubKey, Jwk)> {
    let pair = ECDH_ES_A256KW.generate_ec_key_pair(curve)?;
    let public = pair.to_jwk_public_key();
    let member = |name: &str| {
        public
            .parameter(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or("a member of the key is missing")
    };
    let key = TeePubKey::EC {
        crv: member("crv")?,
        alg: "ECDH-ES+A256KW".into(),
        x: member("x")?,
        y: member("y")?,
    };
    Ok((key, pair.to_jwk_private_key()))
}

impl Kbs {
    fn begin(client: &Client, key: TeePubKey) -> Outcome<Self> {
        let hashes = HashAlgorithm::list_all();
        let request = Request {
            version: "0.4.0".into(),
            tee: Tee::Sample,
            extra_params: json!({"supported-hash-algorithms": hashes}),
        };
        let answer = client.call("POST", "/kbs/v0/auth", &serde_json::to_value(request)?)?;
        let cookie = answer
            .header("set-cookie")
            .and_then(|cookie| cookie.split(';').next())
            .ok_or("no cookie")?
            .to_owned();
        let challenge: Challenge = serde_json::from_value(answer.expect(200)?)?;
        let hash = text(&challenge.extra_params, "selected-hash-algorithm")?.parse()?;
        Ok(Self { client: client.clone(), cookie, challenge, hash, key })
    }

    /// The client's message with evidence of this device.
    fn attestation(&self, device: &Device) -> Outcome<Attestation> {
        let additional_evidence = String::new();
        let runtime = json!({"tee-pubkey": self.key, "nonce": self.challenge.nonce, "additional-evidence": additional_evidence});
        let nonce = self.hash.digest(&serde_json_canonicalizer::to_vec(&runtime)?);
        let evidence = B64.encode(device.evidence(Layer::Kernel, &nonce));
        self.client.know("evidence", &evidence);
        Ok(Attestation {
            init_data: None,
            runtime_data: RuntimeData {
                nonce: self.challenge.nonce.clone(),
                tee_pubkey: self.key.clone(),
            },
            tee_evidence: CompositeEvidence {
                primary_evidence: json!({"evidence": evidence}),
                additional_evidence,
            },
        })
    }

    fn submit(&self, attestation: &Attestation) -> Outcome<HttpResponse> {
        let headers = [("content-type", "application/json"), ("cookie", self.cookie.as_str())];
        self.client.send("POST", "/kbs/v0/attest", &headers, &serde_json::to_vec(attestation)?)
    }

    /// Attests, and gives the result.
    fn attest(&self, device: &Device) -> Outcome<String> {
        Ok(text(&self.submit(&self.attestation(device)?)?.expect(200)?, "token")?.to_owned())
    }

    fn fetch(&self, path: &str) -> Outcome<HttpResponse> {
        self.client.send(
            "GET",
            &format!("/kbs/v0/resource/{path}"),
            &[("cookie", self.cookie.as_str())],
            b"",
        )
    }
}

/// A session with the card's own key, attested, and its result.
fn of_card(client: &Client, device: &Device) -> Outcome<(Kbs, String)> {
    let kbs = Kbs::begin(client, card_key(device))?;
    let token = kbs.attest(device)?;
    Ok((kbs, token))
}

/// A result obtained in this way.
pub fn result(world: &World) -> Outcome<String> {
    Ok(of_card(&world.anyone, &world.card)?.1)
}

fn with_result(client: &Client, token: &str, path: &str) -> Outcome<HttpResponse> {
    client.send(
        "GET",
        &format!("/kbs/v0/resource/{path}"),
        &[("authorization", &format!("Bearer {token}"))],
        b"",
    )
}

/// The private key of a card as a JWK.
fn private(device: &Device) -> Outcome<Jwk> {
    let TeePubKey::EC { crv, x, y, .. } = card_key(device) else { return Err("no EC key".into()) };
    let jwk = json!({"kty": "EC", "crv": crv, "x": x, "y": y, "d": B64.encode(&device.key.to_bytes()[..])});
    Ok(Jwk::from_bytes(jwk.to_string())?)
}

/// Opens a resource. The client authenticates the header as it re-encodes it, so the header must
/// have the original encoding.
fn open(answer: &HttpResponse, key: &Jwk) -> Outcome<Vec<u8>> {
    let body = answer.expect(200)?;
    let response: Response = serde_json::from_value(body.clone())?;
    demand!(
        response.protected.generate_aad()? == text(&body, "protected")?.as_bytes(),
        "the header is another one when it is written again"
    );
    let (plain, _) =
        jwe::deserialize_json(&body.to_string(), &ECDH_ES_A256KW.decrypter_from_jwk(key)?)?;
    Ok(plain)
}

fn opens(answer: &HttpResponse, key: &Jwk, expected: &[u8]) -> Outcome {
    demand!(open(answer, key)? == expected, "another resource");
    Ok(())
}

/// Checks an error as the crate parses it.
fn refused(answer: &HttpResponse, status: u16, word: &str) -> Outcome {
    let error: ErrorInformation = serde_json::from_value(answer.expect(status)?)?;
    demand!(
        !error.error_type.is_empty() && error.detail.contains(word),
        "{error:?}, expected {word:?}"
    );
    Ok(())
}

/// Cases of its clients.
pub const CASES: &[Case] = &[
    Case("attests and fetches a resource with the key of the card", |world| {
        world.recorded("kbs-cookie", |tape| {
            let (kbs, _) = of_card(&world.anyone.on(tape), &world.card)?;
            opens(&kbs.fetch(ONE)?, &private(&world.card)?, b"the resource")
        })
    }),
    Case("fetches a resource with the result of the attestation as its bearer token", |world| {
        world.recorded("kbs-result", |tape| {
            let client = world.anyone.on(tape);
            let (kbs, token) = of_card(&client, &world.card)?;
            let claims: Value = serde_json::from_slice(&B64.decode(token.split('.').nth(1).ok_or("no JWT")?)?)?;
            let shown = &claims["submods"]["fpga-kernel"]["ear.veraison.annotated-evidence"]["runtime_data_claims"]["tee-pubkey"];
            demand!(*shown == serde_json::to_value(&kbs.key)?, "tee-pubkey {shown}");
            opens(&with_result(&client, &token, ONE)?, &private(&world.card)?, b"the resource")
        })
    }),
    Case("fetches with a client certificate and a result", |world| {
        let (_, token) = of_card(&world.host, &world.card)?;
        opens(&with_result(&world.host, &token, ONE)?, &private(&world.card)?, b"the resource")?;
        refused(&with_result(&world.anyone, &token, ONE)?, 401, "certificate")
    }),
    Case("paths in upper case", |world| {
        let (kbs, _) = of_card(&world.anyone, &world.card)?;
        opens(&kbs.fetch("Default/Key/One")?, &private(&world.card)?, b"the resource")
    }),
    Case("a key of the host's gets nothing but what is marked as the host's", |world| {
        let (key, own) = host_key(EcCurve::P256)?;
        let kbs = Kbs::begin(&world.host, key)?;
        let token = kbs.attest(&world.card)?;
        opens(&kbs.fetch("default/key/host")?, &own, b"for the host")?;
        refused(&kbs.fetch(ONE)?, 403, "cnf")?;
        refused(&with_result(&world.host, &token, ONE)?, 403, "cnf")
    }),
    Case("keys that no card has are refused in words", |world| {
        world.recorded("kbs-other-keys", |tape| {
            let client = world.anyone.on(tape);
            let rsa = TeePubKey::RSA {
                alg: "RSA-OAEP-256".into(),
                k_mod: B64.encode([0xc5; 128]),
                k_exp: "AQAB".into(),
            };
            let p521 = TeePubKey::EC {
                crv: "P-521".into(),
                alg: "ECDH-ES+A256KW".into(),
                x: B64.encode([1; 66]),
                y: B64.encode([2; 66]),
            };
            let pqc =
                TeePubKey::AKP { alg: "ML-KEM-768+A192KW".into(), public_key: B64.encode([3; 96]) };
            for key in [rsa, p521, pqc] {
                let kbs = Kbs::begin(&client, key)?;
                refused(&kbs.submit(&kbs.attestation(&world.card)?)?, 400, "P-256")?;
            }
            Ok(())
        })
    }),
    Case("init-data and additional evidence are refused in words", |world| {
        world.recorded("kbs-not-understood", |tape| {
            let kbs = Kbs::begin(&world.anyone.on(tape), card_key(&world.card))?;
            let mut attestation = kbs.attestation(&world.card)?;
            attestation.init_data =
                Some(InitData { format: "toml".into(), body: "algorithm = \"sha384\"".into() });
            refused(&kbs.submit(&attestation)?, 400, "init-data")?;
            attestation.init_data = None;
            attestation.tee_evidence.additional_evidence = "{\"nvidia\":[]}".into();
            refused(&kbs.submit(&attestation)?, 400, "additional_evidence")?;
            // The refused requests did not use up the session.
            kbs.attest(&world.card)?;
            Ok(())
        })
    }),
    Case("who has not attested is asked to, and what is not there is not", |world| {
        world.recorded("kbs-refusals", |tape| {
            let client = world.anyone.on(tape);
            refused(
                &client.send("GET", &format!("/kbs/v0/resource/{ONE}"), &[], b"")?,
                401,
                "attest",
            )?;
            let (kbs, _) = of_card(&client, &world.card)?;
            refused(&kbs.submit(&kbs.attestation(&world.card)?)?, 401, "before")?;
            refused(
                &client.send(
                    "GET",
                    &format!("/kbs/v0/resource/{ONE}"),
                    &[("authorization", "Bearer a.b.c")],
                    b"",
                )?,
                401,
                "result",
            )
        })?;
        let (kbs, _) = of_card(&world.host, &world.card)?;
        refused(&kbs.fetch("default/key/none")?, 404, "none")
    }),
    Case("another version of the protocol is told", |world| {
        let request =
            Request { version: "0.3.0".into(), tee: Tee::Sample, extra_params: json!("") };
        refused(
            &world.anyone.call("POST", "/kbs/v0/auth", &serde_json::to_value(request)?)?,
            400,
            "0.4.0",
        )
    }),
    Case(
        "a simulated card gets a resource under a policy that names simulated, and nowhere else",
        |world| {
            let (kbs, token) = of_card(&world.lab, &world.simulated)?;
            opens(&kbs.fetch(ONE)?, &private(&world.simulated)?, b"the resource")?;
            opens(
                &with_result(&world.lab, &token, ONE)?,
                &private(&world.simulated)?,
                b"the resource",
            )?;
            let elsewhere = Kbs::begin(&world.anyone, card_key(&world.simulated))?;
            refused(&elsewhere.submit(&elsewhere.attestation(&world.simulated)?)?, 401, "SHEF-ATT-")
        },
    ),
    Case("a result of another tenant fetches nothing", |world| {
        let (_, token) = of_card(&world.lab, &world.simulated)?;
        refused(&with_result(&world.host, &token, ONE)?, 401, "result")?;
        refused(&with_result(&world.anyone, &token, ONE)?, 401, "certificate")
    }),
    Case("after a revocation neither cookie nor result fetches", |world| {
        let (kbs, token) = of_card(&world.anyone, &world.stolen)?;
        opens(&kbs.fetch(ONE)?, &private(&world.stolen)?, b"the resource")?;
        let revocation =
            json!({"kind": "device", "value": hex::encode(world.stolen.ueid), "reason": "stolen"});
        world.operator.call("POST", "/v1/revocations", &revocation)?.expect(201)?;
        refused(&kbs.fetch(ONE)?, 401, "revo")?;
        refused(&with_result(&world.anyone, &token, ONE)?, 401, "revo")
    }),
];
