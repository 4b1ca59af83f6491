//! Keys of the running service: limits, names, tenants, receipts, crashes, and secrets that must
//! not leak.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::{PublicKey, derive_key_pair};
use shef_proto::receipt::{Audit, Head};
use shef_verifierd::config::Config;
use shef_verifierd::run::start;
use shef_verifierd::time::Clock;
use tracing_subscriber::filter::LevelFilter;

use super::Run;
use super::service::{
    IMAGE_KEY, OTHER_TOKEN, SECRET, add_data_key, add_image_key, answered, furnished,
    furnished_with, release, two_tenants,
};
use crate::{ACCEPTED, Seen};
use shef_fixtures::service::{Device, HttpResponse, Service, b64, now, unb64};

pub(super) const CASES: &[(u32, Run)] = &[
    (103, limit),
    (104, window),
    (106, disabled),
    (107, names),
    (108, other_tenant),
    (109, receipts),
    (110, crash),
    (111, store_down),
    (112, wrong_kek),
    (113, secrets),
];

/// Requests a release with fresh evidence.
fn fetch(service: &Service, device: &Device, key: &str, version: Option<u64>) -> HttpResponse {
    let (_, recipient) = derive_key_pair(b"one-time key of the owner");
    let (session, nonce) = service.operator.session(Layer::Shield, Some(&recipient));
    let mut body = json!({"key": key, "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    if let Some(version) = version {
        body["version"] = json!(version);
    }
    service.operator.post("/v1/release", &body)
}

fn limit() -> Vec<Seen> {
    let (service, device) = furnished();
    add_data_key(&service, "data", &json!({"max_releases": 2}));
    for _ in 0..2 {
        fetch(&service, &device, "data", None).ok();
    }
    vec![
        answered("one more", &fetch(&service, &device, "data", None)),
        answered("and again", &fetch(&service, &device, "data", None)),
    ]
}

fn window() -> Vec<Seen> {
    let (service, device) = furnished();
    add_data_key(&service, "later", &json!({"not_before": now() + 1000}));
    add_data_key(&service, "gone", &json!({"not_before": 1, "not_after": 2}));
    vec![
        answered("before it", &fetch(&service, &device, "later", None)),
        answered("after it", &fetch(&service, &device, "gone", None)),
    ]
}

fn disabled() -> Vec<Seen> {
    let (service, device) = furnished();
    add_data_key(&service, "data", &json!({}));
    service
        .operator
        .post("/v1/keys/data/rotate", &json!({"policy": "default", "generate": 32}))
        .ok();
    service.operator.post("/v1/keys/data/disable", &json!({"version": 1})).ok();
    fetch(&service, &device, "data", Some(2)).ok();
    let version =
        answered("version rotated away and disabled", &fetch(&service, &device, "data", Some(1)));
    add_image_key(&service, "image", &json!({}));
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    release(&service.operator, "image", &session, &evidence).ok();
    for key in ["data", "image"] {
        service.operator.send("POST", &format!("/v1/keys/{key}/disable"), &[], b"").ok();
    }
    vec![
        version,
        answered("key", &fetch(&service, &device, "data", None)),
        answered(
            "box that was given out before",
            &release(&service.operator, "image", &session, &evidence),
        ),
    ]
}

fn names() -> Vec<Seen> {
    let service = Service::start();
    let body = json!({"layer": "shield", "policy": "default", "generate": 32});
    let long = "a".repeat(65);
    let names = [
        "a%2Fb",
        "..%2F..%2Fkek",
        "%2e%2e%2fa",
        "a%5Cb",
        "a%00b",
        "%D0%B0bc",
        "%C3%A9",
        "%EF%BC%8Fa",
        "A",
        "-a",
        "a..b",
        "a%20b",
        "a%0Ab",
        &long,
    ];
    names
        .into_iter()
        .map(|name| {
            answered(name, &service.operator.call("PUT", &format!("/v1/keys/{name}"), &body))
        })
        .collect()
}

fn other_tenant() -> Vec<Seen> {
    let (service, device) = furnished_with(two_tenants, Clock::System);
    add_data_key(&service, "data", &json!({}));
    let other = service.stranger().with_token(OTHER_TOKEN);
    let (_, recipient) = derive_key_pair(b"one-time key");
    let (session, nonce) = other.session(Layer::Shield, Some(&recipient));
    assert_eq!(other.get("/v1/keys").ok()["keys"], json!([]));
    assert_eq!(other.get("/v1/devices").ok()["devices"], json!([]));
    vec![
        answered("read", &other.get("/v1/keys/data")),
        answered(
            "release",
            &release(&other, "data", &session, &device.evidence(Layer::Shield, &nonce)),
        ),
        answered(
            "rotate",
            &other.post("/v1/keys/data/rotate", &json!({"policy": "default", "generate": 32})),
        ),
        answered("disable", &other.post("/v1/keys/data/disable", &json!({"version": 1}))),
    ]
}

/// Verdict of an auditor with the head of the last release on these receipts.
fn audit(variant: &str, receipts: &[Vec<u8>], key: PublicKey, known: &Head) -> Seen {
    let keys = [key];
    let mut audit = Audit::new("default", &keys, None);
    let result = receipts
        .iter()
        .try_for_each(|receipt| audit.push(receipt).map(drop))
        .and_then(|()| audit.finish(known));
    Seen::of(variant, &result, |error| error.code())
}

fn receipts() -> Vec<Seen> {
    let (service, device) = furnished();
    add_data_key(&service, "data", &json!({}));
    let mut head = Value::Null;
    for _ in 0..4 {
        head = fetch(&service, &device, "data", None).ok()["head"].clone();
    }
    let list = service.operator.get("/v1/receipts").ok();
    let good: Vec<Vec<u8>> =
        list["receipts"].as_array().unwrap().iter().map(|row| unb64(&row["receipt"])).collect();
    let jwk = service.operator.get("/.well-known/jwks.json").ok()["keys"][0].clone();
    let key =
        PublicKey::from_bytes(&[vec![4], unb64(&jwk["x"]), unb64(&jwk["y"])].concat()).unwrap();
    let digest = hex::decode(head["digest"].as_str().unwrap()).unwrap().try_into().unwrap();
    let known = Head { seq: head["seq"].as_u64().unwrap(), digest };
    assert_eq!(audit("", &good, key, &known).code, ACCEPTED);

    let mut seen: Vec<Seen> = (0..good[1].len())
        .map(|at| {
            let mut edited = good.clone();
            edited[1][at] ^= 1;
            audit("edited", &edited, key, &known)
        })
        .collect();
    let mut left_out = good.clone();
    left_out.remove(1);
    let mut reordered = good.clone();
    reordered.swap(1, 2);
    let twice = [&good[..2], &good[1..]].concat();
    seen.extend([
        audit("left out", &left_out, key, &known),
        audit("first left out", &good[1..], key, &known),
        audit("reordered", &reordered, key, &known),
        audit("twice", &twice, key, &known),
        audit("cut at the end", &good[..3], key, &known),
        audit("none at all", &[], key, &known),
    ]);
    seen
}

/// The answer to a release is lost, and the service stops and restarts.
fn crash() -> Vec<Seen> {
    let (mut service, device) = furnished();
    add_image_key(&service, "image", &json!({"max_releases": 1}));
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    let first = release(&service.operator, "image", &session, &evidence);
    let mut seen = vec![answered("first answer", &first)];
    let first = first.ok();
    for when in ["asked again", "asked after a restart"] {
        let again = release(&service.operator, "image", &session, &evidence);
        seen.push(answered(when, &again));
        assert_eq!(again.ok(), first, "the same bytes");
        service.restart();
    }
    assert_eq!(
        service.operator.get("/v1/keys/image").ok()["versions"][0]["released"],
        1,
        "counted once"
    );
    assert_eq!(service.operator.get("/v1/receipts").ok()["receipts"].as_array().unwrap().len(), 1);
    seen
}

/// The connections to the database are lost.
fn store_down() -> Vec<Seen> {
    let (mut service, device) = furnished();
    add_data_key(&service, "data", &json!({}));
    let (_, recipient) = derive_key_pair(b"one-time key of the owner");
    let (session, nonce) = service.operator.session(Layer::Shield, Some(&recipient));
    let evidence = device.evidence(Layer::Shield, &nonce);
    let store = &service.running().app.store;
    service.runtime.block_on(store.close());
    let seen = vec![
        answered("for a key", &release(&service.operator, "data", &session, &evidence)),
        answered("list of keys", &service.operator.get("/v1/keys")),
    ];
    service.restart();
    assert_eq!(
        service.operator.get("/v1/receipts").ok()["receipts"],
        json!([]),
        "nothing was released"
    );
    release(&service.operator, "data", &session, &evidence).ok();
    seen
}

fn wrong_kek() -> Vec<Seen> {
    let (mut service, _) = furnished();
    add_data_key(&service, "data", &json!({}));
    service.stop();
    let config = Config::read(&service.dir.join("verifierd.toml")).unwrap();
    std::fs::write(&config.kek, format!("{}\n", "5a".repeat(32))).unwrap();
    let started = service.runtime.block_on(start(config, Clock::System));
    vec![Seen::of("start", &started.map(drop), |problem| problem.kind.code())]
}

/// Everything that the program logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The log of this program, from the first use on.
fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the program has no other log");
        log
    })
}

/// Encodings in which a secret could appear.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let debug = format!("{secret:?}");
    vec![
        secret.to_vec(),
        hex::encode(secret).into_bytes(),
        b64(secret).into_bytes(),
        debug.trim_matches(['[', ']']).as_bytes().to_vec(),
    ]
}

fn secrets() -> Vec<Seen> {
    let log = log();
    let (service, device) = furnished();
    add_data_key(&service, "data", &json!({}));
    add_image_key(&service, "image", &json!({}));
    let mut answers = Vec::new();
    let mut keep = |answer: HttpResponse| answers.extend(answer.bytes);
    keep(fetch(&service, &device, "data", None));
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    keep(release(&service.operator, "image", &session, &device.evidence(Layer::Kernel, &nonce)));
    for path in [
        "/v1/keys",
        "/v1/keys/data",
        "/v1/keys/image",
        "/v1/appraisals",
        "/v1/receipts",
        "/v1/devices",
        "/metrics",
        "/",
    ] {
        keep(service.operator.get(path));
    }
    keep(service.operator.call(
        "PUT",
        "/v1/keys/data",
        &json!({"layer": "shield", "policy": "default", "secret": b64(SECRET)}),
    ));
    keep(service.operator.call(
        "PUT",
        "/v1/keys/bad",
        &json!({"layer": "kernel", "policy": "default", "secret": b64(SECRET)}),
    ));
    let mut database = Vec::new();
    for entry in std::fs::read_dir(&service.dir).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains(".db") {
            database.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    assert!(!database.is_empty());
    let log = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(!log.is_empty(), "the log is seen");
    [("log", log), ("answers", answers), ("database", database)]
        .into_iter()
        .map(|(place, bytes)| {
            let found = [SECRET, &IMAGE_KEY]
                .into_iter()
                .flat_map(forms)
                .any(|form| bytes.windows(form.len()).any(|window| window == form));
            Seen::new(place, if found { "a secret shows" } else { ACCEPTED })
        })
        .collect()
}
