//! Callers with a token of an OpenID Connect provider, and forged tokens.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use shef_verifierd::check;
use shef_verifierd::config::Config;
use shef_verifierd::problem::Kind;

use crate::operators::{config, reload};
use shef_fixtures::service::*;

const AUDIENCE: &str = "shef";

/// The server of a provider, with its answers by path.
struct Provider {
    address: SocketAddr,
    folder: tempfile::TempDir,
    pages: Arc<Mutex<BTreeMap<String, Value>>>,
    silent: Arc<AtomicBool>,
    slow: Arc<AtomicBool>,
}

fn tls(dir: &Path) -> Arc<rustls::ServerConfig> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(dir.join("server.pem"))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let key = PrivateKeyDer::from_pem_file(dir.join("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}

impl Provider {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("p");
        set_up(&dir);
        let (config, listener) = (tls(&dir), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let pages: Arc<Mutex<BTreeMap<String, Value>>> = Arc::default();
        let (answers, silent) = (Arc::clone(&pages), Arc::<AtomicBool>::default());
        let slow = Arc::<AtomicBool>::default();
        let (mute, waits) = (Arc::clone(&silent), Arc::clone(&slow));
        // It ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if mute.load(Ordering::Relaxed) {
                    continue;
                }
                let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = BufReader::new(rustls::StreamOwned::new(connection, stream));
                let mut line = String::new();
                if stream.read_line(&mut line).is_err() {
                    continue;
                }
                let path = line.split(' ').nth(1).unwrap_or("").to_owned();
                while stream.read_line(&mut line).is_ok() && !line.ends_with("\r\n\r\n") {}
                if waits.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(200));
                }
                let page = answers.lock().unwrap().get(&path).cloned();
                let (status, body) = match page {
                    Some(page) => ("200 OK", page.to_string()),
                    None => ("404 Not Found", String::new()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.get_mut().write_all((head + &body).as_bytes());
                let _ = stream.get_mut().flush();
            }
        });
        let provider = Self { address, folder, pages, silent, slow };
        let keys = format!("{}/keys", provider.issuer());
        let discovery = json!({"issuer": provider.issuer(), "jwks_uri": keys});
        provider.page("/.well-known/openid-configuration", discovery);
        provider
    }

    fn page(&self, path: &str, page: Value) {
        self.pages.lock().unwrap().insert(path.into(), page);
    }

    fn issuer(&self) -> String {
        format!("https://{}", self.address)
    }

    fn publish(&self, keys: &[&Key]) {
        let keys: Vec<_> = keys.iter().map(|key| key.jwk.clone()).collect();
        self.page("/keys", json!({ "keys": keys }));
    }

    fn configuration(&self) -> String {
        format!(
            "\n[[oidc]]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\nca = {:?}\n\
             [[oidc.grant]]\nclaim = \"groups\"\nvalue = \"fpga\"\ntenant = \"default\"\nrole = \"operator\"\n\
             [[oidc.grant]]\nclaim = \"scope\"\nvalue = \"attest\"\ntenant = \"default\"\nrole = \"attest\"\n",
            self.issuer(),
            self.folder.path().join("p/ca.pem"),
        )
    }

    fn claims(&self) -> Value {
        json!({
            "iss": self.issuer(), "aud": [AUDIENCE, "other"], "sub": "7", "exp": now() + 300, "iat": now(),
            "email": "Jo@Example.org", "groups": ["staff", "fpga"],
        })
    }
}

struct Key {
    name: &'static str,
    key: EncodingKey,
    algorithm: Algorithm,
    jwk: Value,
}

impl Key {
    fn new(name: &'static str, algorithm: Algorithm) -> Self {
        let key = if algorithm == Algorithm::ES256 {
            let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
            EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref())
        } else {
            let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
            let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
            // The key of PKCS #1, after 26 bytes of PKCS #8.
            EncodingKey::from_rsa_der(&der.as_ref()[26..])
        };
        let mut jwk =
            serde_json::to_value(Jwk::from_encoding_key(&key, algorithm).unwrap()).unwrap();
        jwk["kid"] = json!(name);
        jwk["use"] = json!("sig");
        Self { name, key, algorithm, jwk }
    }

    fn header(&self) -> Header {
        Header { kid: Some(self.name.into()), ..Header::new(self.algorithm) }
    }

    fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.key).unwrap()
    }
}

/// The status and the code of a request with this token.
fn asks(service: &Service, token: &str) -> (u16, String) {
    let answer = service.stranger().with_token(token).get("/v1/keys");
    let code = answer.json()["code"].as_str().unwrap_or_default().to_owned();
    (answer.status, code)
}

fn refused(service: &Service, token: &str, what: &str) {
    assert_eq!(asks(service, token), (401, "SHEF-SVC-027".into()), "{what}");
}

#[test]
fn claims_of_a_provider_give_a_role() {
    let provider = Provider::start();
    let (rsa, ec) = (Key::new("rsa", Algorithm::RS256), Key::new("ec", Algorithm::ES256));
    provider.publish(&[&rsa, &ec]);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    add_policy(&service.operator);
    for key in [&rsa, &ec] {
        let caller = service.stranger().with_token(&key.sign(&provider.claims()));
        caller.put_key(key.name).ok();
    }
    let changes = service.operator.events("action", "key-add", ["who", "what"]);
    assert_eq!(changes.len(), 2);
    assert!(changes[0][0].starts_with("7.") && changes[0][0] == changes[1][0]);
    // Another group, another role; and no role.
    let mut claims = provider.claims();
    claims["groups"] = json!("staff");
    refused(&service, &rsa.sign(&claims), "no grant");
    claims["scope"] = json!("openid attest");
    assert_eq!(asks(&service, &rsa.sign(&claims)), (403, "SHEF-SVC-028".into()));
    let ready = service.operator.get("/readyz").ok();
    assert_eq!(ready["identity_providers"][0]["issuer"], json!(provider.issuer()));
    assert!(ready["identity_providers"][0]["keys_age"].is_u64(), "{ready}");
    // A new key is fetched when a token names it; and an old one that is published no more is gone.
    let new = Key::new("new", Algorithm::ES256);
    provider.publish(&[&new]);
    std::thread::sleep(Duration::from_millis(3100));
    assert_eq!(asks(&service, &new.sign(&provider.claims())).0, 200);
    refused(&service, &rsa.sign(&provider.claims()), "a key that is published no more");
    // The provider falls silent: its keys go on, and unknown names do not wait for it.
    provider.silent.store(true, Ordering::Relaxed);
    assert_eq!(asks(&service, &new.sign(&provider.claims())).0, 200);
    std::thread::sleep(Duration::from_millis(3100));
    refused(&service, &Key::new("later", Algorithm::ES256).sign(&provider.claims()), "unknown");
    assert_eq!(asks(&service, &new.sign(&provider.claims())).0, 200);
    // The configuration names it no more.
    reload(&service, |text| text.replace(&provider.configuration(), ""));
    refused(&service, &new.sign(&provider.claims()), "a provider that was removed");
}

/// A caller may disconnect before the provider answers: the keys are stored all the same.
#[test]
fn a_caller_who_leaves_keeps_no_keys_from_the_others() {
    let provider = Provider::start();
    provider.silent.store(true, Ordering::Relaxed);
    let key = Key::new("ec", Algorithm::ES256);
    provider.publish(&[&key]);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    let sources = [config(&service).oidc[0].source.clone()];
    let keys = &service.running().app.provider_keys;
    // The attempt of the start has failed.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(keys.ages(&sources), [None]);
    provider.silent.store(false, Ordering::Relaxed);
    provider.slow.store(true, Ordering::Relaxed);
    let left = service.runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(50), keys.refresh(&sources)).await
    });
    assert!(left.is_err(), "the provider was not slow, the test shows nothing");
    let start = std::time::Instant::now();
    while keys.ages(&sources) == [None] {
        assert!(start.elapsed().as_secs() < 20, "the answer was lost with the caller");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(asks(&service, &key.sign(&provider.claims())).0, 200);
}

#[test]
fn forged_tokens_are_refused() {
    let provider = Provider::start();
    let (rsa, ec) = (Key::new("rsa", Algorithm::RS256), Key::new("ec", Algorithm::ES256));
    let (attacker, twin) = (Key::new("evil", Algorithm::ES256), Key::new("ec", Algorithm::ES256));
    // A provider that publishes a symmetric key, or one for encryption, has no use for them here.
    let mut oct = json!({"kty": "oct", "kid": "oct", "k": "c2VjcmV0"});
    provider.publish(&[&rsa, &ec]);
    let mut keys = provider.pages.lock().unwrap()["/keys"].clone();
    let mut enc = attacker.jwk.clone();
    (enc["kid"], enc["use"]) = (json!("enc"), json!("enc"));
    keys["keys"].as_array_mut().unwrap().extend([oct.take(), enc]);
    provider.page("/keys", keys);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    let good = ec.sign(&provider.claims());
    assert_eq!(asks(&service, &good).0, 200);

    let claims = |change: &dyn Fn(&mut Value)| {
        let mut claims = provider.claims();
        change(&mut claims);
        ec.sign(&claims)
    };
    for (what, token) in [
        ("another audience", claims(&|claims| claims["aud"] = json!("other"))),
        ("no audience", claims(&|claims| drop(claims.as_object_mut().unwrap().remove("aud")))),
        ("another issuer", claims(&|claims| claims["iss"] = json!("https://id.example"))),
        ("no issuer", claims(&|claims| drop(claims.as_object_mut().unwrap().remove("iss")))),
        ("no subject", claims(&|claims| drop(claims.as_object_mut().unwrap().remove("sub")))),
        ("expired", claims(&|claims| claims["exp"] = json!(now() - 60))),
        ("no end", claims(&|claims| drop(claims.as_object_mut().unwrap().remove("exp")))),
        ("not yet", claims(&|claims| claims["nbf"] = json!(now() + 90))),
        ("by a stranger", attacker.sign(&provider.claims())),
        ("by a stranger under a known name", twin.sign(&provider.claims())),
        ("a changed claim", good.replacen('.', ".e30", 1)),
        ("no signature", good.rsplit_once('.').unwrap().0.to_owned() + "."),
        ("two parts", good.rsplit_once('.').unwrap().0.to_owned()),
    ] {
        refused(&service, &token, what);
    }
    // Headers: `none`, a symmetric algorithm with the public key as its secret, a key that the
    // token brings, names that lead elsewhere, a key of another kind or for another use.
    let body = b64(provider.claims().to_string().as_bytes());
    let unsigned = |header: Value| format!("{}.{body}.", b64(header.to_string().as_bytes()));
    for alg in ["none", "None", "nOnE"] {
        refused(&service, &unsigned(json!({"alg": alg, "kid": "ec"})), alg);
    }
    let secrets: [Vec<u8>; 3] = [
        rsa.jwk["n"].as_str().unwrap().into(),
        serde_json::to_vec(&rsa.jwk).unwrap(),
        b"secret".to_vec(),
    ];
    for (secret, kid) in secrets.iter().zip(["rsa", "rsa", "oct"]) {
        let header = Header { kid: Some(kid.into()), ..Header::new(Algorithm::HS256) };
        let token = encode(&header, &provider.claims(), &EncodingKey::from_secret(secret));
        refused(&service, &token.unwrap(), "HS256 with what is public");
    }
    let own = |change: &dyn Fn(&mut Header)| {
        let mut header = attacker.header();
        change(&mut header);
        encode(&header, &provider.claims(), &attacker.key).unwrap()
    };
    let jwk: Jwk = serde_json::from_value(attacker.jwk.clone()).unwrap();
    for (what, token) in [
        ("a key of its own", own(&|header| header.jwk = Some(jwk.clone()))),
        ("an address of a key", own(&|header| header.jku = Some("https://evil.example".into()))),
        ("no name", own(&|header| header.kid = None)),
        ("a name of a path", own(&|header| header.kid = Some("../../keys".into()))),
        ("a key for encryption", own(&|header| header.kid = Some("enc".into()))),
        ("a key of another kind", own(&|header| header.kid = Some("rsa".into()))),
    ] {
        refused(&service, &token, what);
    }
    let critical = json!({"alg": "ES256", "kid": "ec", "crit": ["b64"], "b64": false});
    let message = format!("{}.{body}", b64(critical.to_string().as_bytes()));
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &ec.key, Algorithm::ES256);
    refused(&service, &format!("{message}.{}", signature.unwrap()), "crit");
    assert_eq!(asks(&service, &good).0, 200);
}

#[test]
fn a_provider_that_does_not_answer_is_named() {
    let provider = Provider::start();
    let key = Key::new("ec", Algorithm::ES256);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    let checked = |service: &Service| {
        let config: Config = config(service);
        service.runtime.block_on(check::check(&config, now())).map(drop).map_err(|problem| {
            assert!(problem.detail.starts_with(&provider.issuer()), "{problem}");
            problem.kind
        })
    };
    // No keys, another provider's document, none.
    assert_eq!(checked(&service), Err(Kind::Provider));
    assert_eq!(asks(&service, &key.sign(&provider.claims())), (503, "SHEF-SVC-011".into()));
    provider.publish(&[]);
    assert_eq!(checked(&service), Err(Kind::Provider));
    provider.publish(&[&key]);
    checked(&service).unwrap();
    let discovery = "/.well-known/openid-configuration";
    let keys = format!("{}/keys", provider.issuer());
    provider.page(discovery, json!({"issuer": "https://id.example", "jwks_uri": keys}));
    assert_eq!(checked(&service), Err(Kind::Provider));
    let plain = provider.issuer().replace("https", "http");
    provider.page(discovery, json!({"issuer": provider.issuer(), "jwks_uri": plain}));
    assert_eq!(checked(&service), Err(Kind::Provider));
    // No CA of the system issued its certificate.
    reload(&service, |text| {
        let ca = format!("ca = {:?}\n", provider.folder.path().join("p/ca.pem"));
        text.replace(&ca, "")
    });
    assert_eq!(checked(&service), Err(Kind::Provider));
    // Certificates and tokens of the configuration work all the same.
    service.operator.get("/v1/keys").ok();
}
