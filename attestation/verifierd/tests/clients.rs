//! Clients of Veraison and of the KBS, implemented from their documented protocols.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA384, digest};
use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrap as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_verifierd::secrets::sha256;
use shef_verifierd::time::Clock;

use shef_fixtures::service::*;

pub const SESSION: &str = "application/vnd.veraison.challenge-response-session+json";

pub fn claims(token: &Value) -> Value {
    serde_json::from_slice(&B64.decode(token.as_str().unwrap().split('.').nth(1).unwrap()).unwrap())
        .unwrap()
}

/// Admits clients without credentials.
pub const LET_IN: &str = "[compat]\nanonymous_tenant = \"default\"\nanonymous_resources = [\"default/key/one\", \"default/key/two\"]\n";

pub fn furnished() -> (Service, Device, Client) {
    furnished_with("", Default::default())
}

/// With additional configuration, after its first tenant, and another clock.
pub fn furnished_with(more: &str, clock: Clock) -> (Service, Device, Client) {
    let service = Service::with(|text| format!("{text}\n{more}\n{LET_IN}"), clock);
    let device = Device::new(1);
    service.furnish(&device);
    let client = service.stranger();
    (service, device, client)
}

/// The client's side of the KBS protocol.
pub struct Kbs {
    pub client: Client,
    pub key: p256_key::Key,
    pub cookie: String,
    pub nonce: String,
}

/// A P-256 key for ECDH by aws-lc-rs.
pub mod p256_key {
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
            agree(&self.0, UnparsedPublicKey::new(&ECDH_P256, point), (), |shared| {
                Ok(shared.to_vec())
            })
            .unwrap()
        }
    }
}

impl Kbs {
    pub fn begin(client: &Client) -> Self {
        let body = json!({"version": "0.4.0", "tee": "sample", "extra-params": {"supported-hash-algorithms": ["sha256", "sha384"]}});
        let answer = client.post("/kbs/v0/auth", &body);
        let cookie =
            answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(cookie.starts_with("kbs-session-id="));
        let challenge = answer.ok();
        assert_eq!(challenge["extra-params"]["selected-hash-algorithm"], "sha384");
        Self {
            client: client.clone(),
            key: p256_key::Key::new(),
            cookie,
            nonce: challenge["nonce"].as_str().unwrap().into(),
        }
    }

    pub fn public(&self) -> Value {
        let point = self.key.point();
        json!({"kty": "EC", "crv": "P-256", "alg": "ECDH-ES+A256KW", "x": B64.encode(&point[1..33]), "y": B64.encode(&point[33..])})
    }

    /// The attestation body, with evidence for this client's own key.
    pub fn attestation(&self, device: &Device, public: &Value) -> Value {
        let own = self.public();
        let text = format!(
            r#"{{"additional-evidence":"","nonce":"{}","tee-pubkey":{{"alg":"ECDH-ES+A256KW","crv":"P-256","kty":"EC","x":{},"y":{}}}}}"#,
            self.nonce, own["x"], own["y"]
        );
        let evidence = device.evidence(Layer::Kernel, digest(&SHA384, text.as_bytes()).as_ref());
        json!({
            "init-data": null,
            "runtime-data": {"nonce": self.nonce, "tee-pubkey": public},
            "tee-evidence": {"primary_evidence": {"evidence": b64(&evidence)}, "additional_evidence": ""},
        })
    }

    pub fn submit(&self, body: &Value) -> HttpResponse {
        let headers = [("content-type", "application/json"), ("cookie", self.cookie.as_str())];
        self.client.send("POST", "/kbs/v0/attest", &headers, body.to_string().as_bytes())
    }

    pub fn attest(&self, device: &Device) -> HttpResponse {
        self.submit(&self.attestation(device, &self.public()))
    }

    /// An attested session with the key that this device's evidence vouches for, and its result.
    pub fn of_card(client: &Client, device: &Device) -> (Self, String) {
        let kbs = Self { key: p256_key::Key::of(&device.key.to_bytes()), ..Self::begin(client) };
        let token = kbs.attest(device).ok()["token"].as_str().unwrap().to_owned();
        (kbs, token)
    }

    pub fn fetch(&self, path: &str) -> HttpResponse {
        self.client.send(
            "GET",
            &format!("/kbs/v0/resource/{path}"),
            &[("cookie", self.cookie.as_str())],
            b"",
        )
    }

    /// Opens a JWE like the known client, which parses and serialises the header again before
    /// authenticating it.
    pub fn open(&self, jwe: &Value) -> Vec<u8> {
        self.open_with_key(jwe).0
    }

    /// The same; also returns the content encryption key.
    pub fn open_with_key(&self, jwe: &Value) -> (Vec<u8>, Vec<u8>) {
        let header: Value = serde_json::from_slice(&unb64(&jwe["protected"])).unwrap();
        let epk = &header["epk"];
        let again = format!(
            r#"{{"alg":{},"enc":{},"epk":{{"crv":{},"kty":{},"x":{},"y":{}}}}}"#,
            header["alg"], header["enc"], epk["crv"], epk["kty"], epk["x"], epk["y"]
        );
        let aad = B64.encode(again);
        let shared = self.key.agree(&[vec![4], unb64(&epk["x"]), unb64(&epk["y"])].concat());
        let info = [
            &1u32.to_be_bytes()[..],
            &shared,
            &14u32.to_be_bytes(),
            b"ECDH-ES+A256KW",
            &[0; 8],
            &256u32.to_be_bytes(),
        ]
        .concat();
        let mut key = [0; 40];
        let kek = AesKek::new(&AES_256, &sha256(&info)).unwrap();
        let content_key = kek.unwrap(&unb64(&jwe["encrypted_key"]), &mut key).unwrap().to_vec();
        let mut text = [unb64(&jwe["ciphertext"]), unb64(&jwe["tag"])].concat();
        let iv: [u8; 12] = unb64(&jwe["iv"]).try_into().unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &content_key).unwrap());
        let plain = key
            .open_in_place(Nonce::assume_unique_for_key(iv), Aad::from(aad.as_bytes()), &mut text)
            .unwrap()
            .to_vec();
        (plain, content_key)
    }
}

/// A resource that goes to any key of the host.
pub fn host_resource(operator: &Client, path: &str) {
    let policy = format!("{POLICY}to_host = true\n");
    operator
        .send(
            "PUT",
            "/v1/policies/host",
            &[("content-type", "application/toml")],
            policy.as_bytes(),
        )
        .ok();
    let body =
        json!({"layer": "kernel", "policy": "host", "to": "host", "secret": b64(b"the resource")});
    operator.call("PUT", &format!("/v1/keys/{}", path.replace('/', "%2F")), &body).ok();
}
