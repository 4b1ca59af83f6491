//! Callers with a token of an OpenID Connect provider, and forged tokens.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

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
use shef_verifierd::problem::{Kind, Problem};

use crate::operators::{config, reload};
use crate::places::token;
use crate::service::raw;
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

pub fn tls(dir: &Path) -> Arc<rustls::ServerConfig> {
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
    assert!(ready["identity_providers"][0]["keys_age"].is_u64(), "{ready}");
    // Strangers may read it.
    assert!(!ready.to_string().contains(&provider.issuer()), "{ready}");
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

/// A provider with a key, a service that has fetched it, and a token that the service accepts.
fn accepted() -> (Provider, Key, Service, String) {
    let provider = Provider::start();
    let key = Key::new("ec", Algorithm::ES256);
    provider.publish(&[&key]);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    let token = key.sign(&provider.claims());
    assert_eq!(asks(&service, &token).0, 200);
    (provider, key, service, token)
}

/// The keys of a silent provider end at the age that the configuration allows; a change of it does not
/// lose them.
#[test]
fn keys_end_at_their_age() {
    let (provider, _, service, token) = accepted();
    provider.silent.store(true, Ordering::Relaxed);
    let age = |seconds: u32| {
        let to = format!("audience = \"{AUDIENCE}\"\nkeys_seconds = {seconds}\n");
        reload(&service, |text| text.replace(&format!("audience = \"{AUDIENCE}\"\n"), &to));
    };
    age(600);
    assert_eq!(asks(&service, &token).0, 200);
    reload(&service, |text| text.replace("keys_seconds = 600\n", ""));
    std::thread::sleep(Duration::from_millis(2100));
    age(2);
    assert_eq!(asks(&service, &token), (503, "SHEF-SVC-011".into()));
    provider.silent.store(false, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(3100));
    assert_eq!(asks(&service, &token).0, 200);
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
fn providers_that_do_not_answer_hold_up_no_end() {
    // It accepts connections, and nothing more.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let provider = |number: usize| {
        format!(
            "\n[[oidc]]\nissuer = \"https://{address}/{number}\"\naudience = \"{AUDIENCE}\"\nca = \"ca.pem\"\n\
             [[oidc.grant]]\nclaim = \"scope\"\nvalue = \"attest\"\ntenant = \"default\"\nrole = \"attest\"\n"
        )
    };
    let all: String = (0..4).map(provider).collect();
    let mut service = Service::with(|text| text + &all, Default::default());
    let _asked = silent.accept().unwrap();
    let start = std::time::Instant::now();
    service.stop();
    let took = start.elapsed();
    assert!(took.as_secs() < 4, "the end took {took:?}");
}

#[test]
fn forged_tokens_are_refused() {
    let provider = Provider::start();
    let (rsa, ec) = (Key::new("rsa", Algorithm::RS256), Key::new("ec", Algorithm::ES256));
    let (attacker, twin) = (Key::new("evil", Algorithm::ES256), Key::new("ec", Algorithm::ES256));
    // A provider that publishes a symmetric key, one for encryption, or what is no key in any form
    // known here, has no use for them here.
    let mut oct = json!({"kty": "oct", "kid": "oct", "k": "c2VjcmV0"});
    provider.publish(&[&rsa, &ec]);
    let mut keys = provider.pages.lock().unwrap()["/keys"].clone();
    let mut enc = attacker.jwk.clone();
    (enc["kid"], enc["use"]) = (json!("enc"), json!("enc"));
    keys["keys"].as_array_mut().unwrap().extend([oct.take(), enc, json!({"kty": 7})]);
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
        ("bound to a key", claims(&|claims| claims["cnf"] = json!({"jkt": "x"}))),
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
    // What else the provider signs with the same keys; and the types of access tokens and ID tokens.
    let typed = |typ: &str| {
        let header = Header { typ: Some(typ.into()), ..ec.header() };
        encode(&header, &provider.claims(), &ec.key).unwrap()
    };
    for typ in ["logout+jwt", "token-introspection+jwt", "application/secevent+jwt", ""] {
        refused(&service, &typed(typ), typ);
    }
    for typ in ["JWT", "at+jwt", "application/at+JWT"] {
        assert_eq!(asks(&service, &typed(typ)).0, 200, "{typ}");
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

/// What the answer to a token says.
fn said(service: &Service, token: &str) -> String {
    let answer = service.stranger().with_token(token).get("/v1/keys").json();
    answer["detail"].as_str().unwrap().to_owned()
}

/// The result of `check` on the service's configuration.
fn checked(service: &Service) -> Result<Vec<String>, Problem> {
    let config = config(service);
    service.runtime.block_on(check::check(&config, now())).map(|report| report.notes)
}

/// A tenant may have any number of identities, and has no more connections for it.
#[test]
fn identities_of_one_tenant_do_not_take_the_connections_of_others() {
    let provider = Provider::start();
    let key = Key::new("ec", Algorithm::ES256);
    provider.publish(&[&key]);
    let other = format!(
        "[[tenant]]\nname = \"other\"\n{}[limits]\nconnections = 16\n",
        token("honest", "audit")
    );
    let service =
        Service::with(|text| text + &provider.configuration() + &other, Default::default());
    let mut honest: Vec<_> = (0..4).map(|_| raw(&service)).collect();
    let mut ask = || {
        for stream in &mut honest {
            let head = "GET /v1/devices HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer honest\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = vec![0; 4096];
            let length = stream.read(&mut answer).unwrap_or(0);
            let answer = String::from_utf8_lossy(&answer[..length]);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
        }
    };
    ask();
    let crowd: Vec<_> = (0..40)
        .map(|sub| {
            let mut claims = provider.claims();
            claims["sub"] = json!(sub.to_string());
            let client = Client::new(&service.dir, &service.url(), None);
            let client = client.with_token(&key.sign(&claims));
            client.get("/v1/keys").ok();
            client
        })
        .collect();
    ask();
    drop(crowd);
}

/// Nor does it have more events.
#[test]
fn identities_of_one_tenant_share_its_refusals_that_become_events() {
    let provider = Provider::start();
    let key = Key::new("ec", Algorithm::ES256);
    provider.publish(&[&key]);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    for sub in 0..8 {
        let mut claims = provider.claims();
        (claims["groups"], claims["scope"]) = (json!([]), json!("attest"));
        claims["sub"] = json!(sub.to_string());
        let client = Client::new(&service.dir, &service.url(), None);
        let client = client.with_token(&key.sign(&claims));
        for _ in 0..50 {
            client.get("/v1/keys").problem(403, "SHEF-SVC-028");
        }
    }
    let events = service.operator.get("/v1/events?limit=1000").ok();
    let all = events["events"].as_array().unwrap().iter();
    let refused = all.filter(|event| event["action"] == "refused").count();
    // One more for each 15 s that the test takes.
    assert!((240..270).contains(&refused), "{refused}");
}

/// The owner of a provider learns nothing about servers that its documents name.
#[test]
fn a_provider_does_not_have_other_servers_looked_at() {
    let (provider, key, service, token) = accepted();
    // An answer that is no set of keys.
    provider.page("/keys", json!({"internal": 1}));
    let changed = |line: &str| {
        let audience = format!("audience = \"{AUDIENCE}\"\n");
        let text = provider.configuration().replace(&audience, &(audience.clone() + line));
        reload(&service, |old| old.split("\n[[oidc]]").next().unwrap().to_owned() + &text);
    };
    changed("jwks_uri = \"https://127.0.0.1:1/canary\"\n");
    assert_eq!(asks(&service, &token), (503, "SHEF-SVC-011".into()));
    let expected =
        format!("{}: there are no keys of it to verify its tokens with", provider.issuer());
    assert_eq!(said(&service, &token), expected);
    let cause = |service: &Service| checked(service).unwrap_err().with_cause();
    assert!(cause(&service).contains("127.0.0.1:1/canary"), "{}", cause(&service));
    changed(&format!("jwks_uri = \"{}/keys\"\n", provider.issuer()));
    assert_eq!(said(&service, &token), expected);
    assert!(cause(&service).contains("missing field `keys`"), "{}", cause(&service));
    // Keys on another host, unless the configuration names them.
    provider.publish(&[&key]);
    let elsewhere = format!("https://localhost:{}/keys", provider.address.port());
    let document = json!({"issuer": provider.issuer(), "jwks_uri": elsewhere});
    provider.page("/.well-known/openid-configuration", document);
    changed("");
    let found = cause(&service);
    assert!(found.contains("set oidc.jwks_uri") && found.contains(&elsewhere), "{found}");
    changed(&format!("jwks_uri = \"{elsewhere}\"\n"));
    assert_eq!(asks(&service, &token).0, 200);
    checked(&service).unwrap();
}

/// `check` counts no key that verifies nothing.
#[test]
fn keys_that_verify_nothing_are_not_counted() {
    let provider = Provider::start();
    let (rsa, ec) = (Key::new("rsa", Algorithm::RS256), Key::new("ec", Algorithm::ES256));
    let twin = Key::new("ec", Algorithm::ES256);
    let oct = json!({"kty": "oct", "kid": "oct", "k": "c2VjcmV0"});
    let mut enc = rsa.jwk.clone();
    enc["use"] = json!("enc");
    let mut hmac = rsa.jwk.clone();
    hmac["alg"] = json!("RSA-OAEP");
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    let publish = |keys: &[&Value]| provider.page("/keys", json!({ "keys": keys }));
    for keys in [&[&enc][..], &[&oct], &[&hmac], &[&ec.jwk, &twin.jwk], &[&oct, &enc]] {
        publish(keys);
        let problem = checked(&service).unwrap_err();
        assert_eq!(problem.kind, Kind::Provider);
        let text = format!("none of {} keys can verify a token", keys.len());
        assert!(problem.with_cause().contains(&text), "{}", problem.with_cause());
    }
    publish(&[&oct, &rsa.jwk, &ec.jwk, &twin.jwk]);
    let notes = checked(&service).unwrap();
    let note = format!("{}: keys that verify its tokens: 1 (\"rsa\")", provider.issuer());
    assert!(notes.contains(&note), "{notes:?}");
}

/// A reload fetches the keys of new providers, and wants their files.
#[test]
fn a_reload_is_a_start_for_new_providers() {
    let provider = Provider::start();
    let key = Key::new("ec", Algorithm::ES256);
    provider.publish(&[&key]);
    let service = Service::start();
    let old = std::fs::read_to_string(service.dir.join("verifierd.toml")).unwrap();
    let ca = format!("{:?}", provider.folder.path().join("p/ca.pem"));
    let bad = old.clone() + &provider.configuration().replace(&ca, "\"none.pem\"");
    std::fs::write(service.dir.join("verifierd.toml"), bad).unwrap();
    let config = || config(&service);
    let refused = service.runtime.block_on(service.running().reload(config())).unwrap_err();
    assert_eq!(refused.kind, Kind::Material);
    assert!(refused.detail.contains("none.pem"), "{refused}");
    assert!(service.running().app.config.load().oidc.is_empty());
    reload(&service, |_| old + &provider.configuration());
    let sources = config().oidc_sources();
    let start = Instant::now();
    while service.running().app.provider_keys.ages(&sources) == [None] {
        assert!(start.elapsed().as_secs() < 20, "no keys are fetched");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A refusal names the claim of the token, with the expected and the found value.
#[test]
fn refusals_say_what_was_expected_and_found() {
    let provider = Provider::start();
    let (key, twin) = (Key::new("ec", Algorithm::ES256), Key::new("ec", Algorithm::ES256));
    provider.publish(&[&key]);
    let service = Service::with(|text| text + &provider.configuration(), Default::default());
    let long = "\u{1b}x".repeat(100);
    for (name, value, text) in [
        ("aud", json!("other"), "its `aud` is \"other\": expected \"shef\"".to_owned()),
        ("aud", json!(["a", "b\n"]), "its `aud` is [\"a\", \"b\\n\"]: expected \"shef\"".into()),
        ("aud", json!(long), format!("its `aud` is \"{}\"...: expected", "\\u{1b}x".repeat(20))),
        ("exp", json!(1_700_000_000), "it has ended: its `exp` is 1700000000, now is ".into()),
        ("nbf", json!(now() + 900), "it is not valid yet: its `nbf` is ".into()),
        ("sub", Value::Null, "`sub`".into()),
    ] {
        let mut claims = provider.claims();
        claims[name] = value;
        let found = said(&service, &key.sign(&claims));
        assert!(found.contains(&text), "{found}");
    }
    let mut claims = provider.claims();
    claims.as_object_mut().unwrap().remove("sub");
    assert!(said(&service, &key.sign(&claims)).ends_with("it has no `sub`"));
    let forged = said(&service, &twin.sign(&provider.claims()));
    assert!(forged.ends_with("its signature is not one of the provider's key with its `kid`"));
}

#[test]
fn claims_of_grants_are_names_or_pointers() {
    let provider = Provider::start();
    let service = Service::start();
    let head = std::fs::read_to_string(service.dir.join("verifierd.toml")).unwrap();
    let parse = |claim: &str| {
        let oidc = provider.configuration().replace("\"groups\"", &format!("{claim:?}"));
        let text = head.clone() + &oidc;
        let line =
            text.lines().take_while(|line| !line.contains(&format!("{claim:?}"))).count() + 1;
        (Config::parse(&text, "v.toml", &service.dir).map(drop), line)
    };
    for bad in ["realm_access/roles", "roles/", "/a~2b", "/a~"] {
        let (found, line) = parse(bad);
        let found = found.unwrap_err().detail;
        assert!(found.starts_with(&format!("v.toml:{line}:")) && found.contains(bad), "{found}");
    }
    for good in ["/realm_access/roles", "https://example.com/roles", "roles", "/a~1b~0", "a~2"] {
        parse(good).0.unwrap();
    }
}

/// Signatures of strangers' tokens are verified within the rate of their address only. A caller that
/// has shown a token on this connection goes on.
#[test]
fn signatures_are_verified_within_the_rate_of_an_address() {
    let provider = Provider::start();
    let key = Key::new("ec", Algorithm::ES256);
    provider.publish(&[&key]);
    let limits = "[limits]\nrate = 2\nburst = 40\n";
    let service =
        Service::with(|text| text + &provider.configuration() + limits, Default::default());
    let good = key.sign(&provider.claims());
    let client = |token: &str| Client::new(&service.dir, &service.url(), None).with_token(token);
    let known = client(&good);
    known.get("/v1/keys").ok();
    let guesses = client("guess");
    let refused = (0..5).any(|_| {
        while guesses.get("/v1/keys").status != 429 {}
        client(&good).get("/v1/keys").status == 429
    });
    assert!(refused, "a token was verified beyond the rate");
    known.get("/v1/keys").ok();
}
