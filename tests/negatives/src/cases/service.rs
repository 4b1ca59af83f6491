//! The running service: framing of requests, sessions, and replayed or misdirected evidence.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::service::Kind;
use shef_verifierd::auth::Identity;
use shef_verifierd::role::Role;
use shef_verifierd::server::Peer;
use shef_verifierd::time::Clock;
use tower::ServiceExt as _;

use super::Run;
use crate::{ACCEPTED, Seen};
use shef_fixtures::service::{Client, Device, HttpResponse, Service, b64, fixed_clock, now};

pub(super) const CASES: &[(u32, Run)] = &[
    (1, empty),
    (2, too_large),
    (3, slow),
    (4, content_type),
    (5, unknown_profile),
    (6, accept),
    (39, same_session),
    (41, parallel),
    (42, expired),
    (43, nobodys),
    (44, other_tenant),
    (46, other_layer),
    (49, clock_steps),
    (90, rollback),
];

const JSON: (&str, &str) = ("content-type", "application/json");
/// Paths that take a body in JSON.
const PATHS: [&str; 4] = ["/v1/sessions", "/v1/appraise", "/v1/explain", "/v1/release"];

/// The service's answer: accepted, or the code of its problem; the whole answer must be a
/// well-formed problem.
pub fn answered(variant: impl Into<String>, answer: &HttpResponse) -> Seen {
    if (200..300).contains(&answer.status) {
        return Seen::new(variant, ACCEPTED);
    }
    problem(variant, answer.status, &serde_json::from_slice(&answer.bytes).unwrap_or_default())
}

fn problem(variant: impl Into<String>, status: u16, body: &Value) -> Seen {
    let code = Kind::CODES.iter().find(|code| body["code"] == code.id);
    let of_the_form = code.is_some_and(|code| code.status == Some(status))
        && body["title"].is_string()
        && body["status"] == status;
    let code = if of_the_form {
        body["code"].as_str().unwrap_or_default().to_owned()
    } else {
        format!("{status}: {body}")
    };
    Seen::new(variant, code)
}

/// A service that knows a device.
pub fn furnished() -> (Service, Device) {
    furnished_with(|text| text, Clock::System)
}

pub fn furnished_with(change: impl FnOnce(String) -> String, clock: Clock) -> (Service, Device) {
    let (service, device) = (Service::with(change, clock), Device::new(1));
    service.furnish(&device);
    (service, device)
}

/// The data owner's secret, and the key of an image.
pub const SECRET: &[u8] = b"a secret of the data owner, 32 b";
pub const IMAGE_KEY: [u8; 32] = [0xc7; 32];

/// A second tenant with an operator's token.
pub const OTHER_TOKEN: &str = "token of the other tenant's operator";

pub fn two_tenants(text: String) -> String {
    let digest = hex::encode(shef_verifierd::secrets::sha256(OTHER_TOKEN.as_bytes()));
    format!(
        "{text}\n[[tenant]]\nname = \"other\"\n[[tenant.token]]\nname = \"operator\"\nrole = \"operator\"\nsha256 = \"{digest}\"\n"
    )
}

pub fn submit(client: &Client, path: &str, session: &str, evidence: &[u8]) -> HttpResponse {
    client.post(path, &json!({"session": session, "evidence": b64(evidence)}))
}

pub fn release(client: &Client, key: &str, session: &str, evidence: &[u8]) -> HttpResponse {
    client.post("/v1/release", &json!({"key": key, "session": session, "evidence": b64(evidence)}))
}

fn add(service: &Service, name: &str, mut body: Value, more: &Value) {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    service.operator.call("PUT", &format!("/v1/keys/{name}"), &body).ok();
}

pub fn add_image_key(service: &Service, name: &str, more: &Value) {
    let (_, vendor) = derive_key_pair(b"vendor");
    let image = json!({"key": b64(&IMAGE_KEY), "min_svn": 3, "vendor": b64(vendor.as_bytes())});
    add(service, name, json!({"layer": "kernel", "policy": "default", "image": image}), more);
}

pub fn add_data_key(service: &Service, name: &str, more: &Value) {
    add(
        service,
        name,
        json!({"layer": "shield", "policy": "default", "secret": b64(SECRET)}),
        more,
    );
}

fn empty() -> Vec<Seen> {
    let service = Service::start();
    PATHS
        .into_iter()
        .map(|path| answered(path, &service.operator.send("POST", path, &[JSON], b"")))
        .collect()
}

fn too_large() -> Vec<Seen> {
    let service = Service::start();
    let body = vec![b' '; 65_537];
    PATHS
        .into_iter()
        .map(|path| answered(path, &service.operator.send("POST", path, &[JSON], &body)))
        .collect()
}

/// A body that never comes.
struct Never;

impl hyper::body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// A request to the service's router, as an operator, without a connection.
fn direct(
    service: &Service,
    variant: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Body,
) -> Seen {
    let identity =
        Identity { tenant: "default".into(), name: "operator".into(), role: Role::Operator };
    let peer = Peer::new(service.running().address, Some(identity));
    let request = headers
        .iter()
        .fold(hyper::Request::builder().method("POST").uri(path), |request, (name, value)| {
            request.header(*name, *value)
        });
    let mut request = request.body(body).unwrap();
    request.extensions_mut().insert(peer);
    let router = shef_verifierd::router::router(Arc::clone(&service.running().app));
    service.runtime.block_on(async {
        let response = router.oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        if status.is_success() {
            Seen::new(variant, ACCEPTED)
        } else {
            problem(variant, status.as_u16(), &serde_json::from_slice(&body).unwrap_or_default())
        }
    })
}

fn slow() -> Vec<Seen> {
    let service =
        Service::with(|text| format!("{text}\n[limits]\nbody_seconds = 1\n"), Clock::System);
    PATHS.into_iter().map(|path| direct(&service, path, path, &[JSON], Body::new(Never))).collect()
}

fn veraison_session(service: &Service) -> (String, Vec<u8>) {
    let answer = service.operator.send("POST", "/challenge-response/v1/newSession", &[], b"");
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let nonce = shef_fixtures::service::unb64(&json!(
        answer.json()["nonce"].as_str().unwrap().trim_end_matches('=')
    ));
    (format!("/challenge-response/v1/{location}"), nonce)
}

fn content_type() -> Vec<Seen> {
    let service = Service::start();
    let (session, _) = veraison_session(&service);
    let mut seen = Vec::new();
    for path in PATHS.into_iter().chain([session.as_str()]) {
        let name = if path == session { "a session of challenge-response" } else { path };
        for (what, headers) in [
            ("text", &[("content-type", "text/plain")][..]),
            ("CBOR", &[("content-type", "application/cbor")]),
            ("none", &[]),
        ] {
            let answer = service.operator.send("POST", path, headers, b"{}");
            assert!(answer.headers.contains_key("accept"), "{name}: the answer says what is taken");
            seen.push(answered(format!("{name}, {what}"), &answer));
        }
    }
    seen
}

fn unknown_profile() -> Vec<Seen> {
    let (service, device) = furnished();
    ["tag:example.com,2026:other#1", "tag:shef.dev,2026:kernel#2", "", "TAG:SHEF.DEV,2026:KERNEL#1"]
        .into_iter()
        .map(|profile| {
            let (session, nonce) = veraison_session(&service);
            let kind = format!("application/eat+cwt; eat_profile=\"{profile}\"");
            let evidence = device.evidence(Layer::Kernel, &nonce);
            answered(
                profile,
                &service.operator.send("POST", &session, &[("content-type", &kind)], &evidence),
            )
        })
        .collect()
}

fn accept() -> Vec<Seen> {
    let service = Service::start();
    let path = "/challenge-response/v1/newSession";
    let (session, _) = veraison_session(&service);
    let with = |variant: &str, path: &str, accept: &str| {
        let headers = [("accept", accept), ("content-type", "application/eat+cwt")];
        answered(variant, &service.operator.send("POST", path, &headers, b"x"))
    };
    vec![
        with("HTML", path, "text/html"),
        with("another version of JSON", path, "application/json"),
        with("evidence", &session, "application/eat+cwt"),
        direct(&service, "no Accept at all", path, &[], Body::empty()),
    ]
}

fn same_session() -> Vec<Seen> {
    let (service, device) = furnished();
    let operator = &service.operator;
    add_image_key(&service, "image", &json!({}));
    let fresh = || {
        let (session, nonce) = operator.session(Layer::Kernel, None);
        let evidence = device.evidence(Layer::Kernel, &nonce);
        (session, evidence)
    };
    let release = |session: &str, evidence: &[u8]| release(operator, "image", session, evidence);
    let (session, evidence) = fresh();
    submit(operator, "/v1/appraise", &session, &evidence).ok();
    let mut seen = vec![
        answered("appraised twice", &submit(operator, "/v1/appraise", &session, &evidence)),
        answered("appraised, then for a key", &release(&session, &evidence)),
        answered(
            "other evidence for the same nonce",
            &submit(
                operator,
                "/v1/appraise",
                &session,
                &Device::new(1).evidence(Layer::Kernel, &nonce_of(&evidence)),
            ),
        ),
    ];
    let (session, evidence) = fresh();
    release(&session, &evidence).ok();
    seen.push(answered(
        "for a key, then appraised",
        &submit(operator, "/v1/appraise", &session, &evidence),
    ));
    let nonce = [9; 32];
    let body = json!({"nonce": b64(&nonce), "layer": "kernel", "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
    operator.post("/v1/appraise", &body).ok();
    seen.push(answered("a relying party's own nonce", &operator.post("/v1/appraise", &body)));
    seen
}

fn nonce_of(evidence: &[u8]) -> Vec<u8> {
    shef_proto::evidence::Evidence::parse(evidence)
        .unwrap()
        .unverified_claims()
        .common
        .nonce
        .clone()
}

fn parallel() -> Vec<Seen> {
    let (service, device) = furnished();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (session, nonce) = service.operator.session(Layer::Kernel, None);
        let evidence = device.evidence(Layer::Kernel, &nonce);
        let answers: Vec<HttpResponse> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| submit(&service.operator, "/v1/appraise", &session, &evidence))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(
            answers.iter().filter(|answer| answer.status == 200).count(),
            1,
            "exactly one wins"
        );
        seen.extend(
            answers
                .iter()
                .filter(|answer| answer.status != 200)
                .map(|answer| answered("SQLite, one that lost", answer)),
        );
    }
    seen
}

fn expired() -> Vec<Seen> {
    let start = now();
    let (service, device) = furnished_with(|text| text, fixed_clock(start));
    add_image_key(&service, "image", &json!({}));
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    service.set_clock(start + 100_000);
    vec![
        answered("appraised", &submit(&service.operator, "/v1/appraise", &session, &evidence)),
        answered("for a key", &release(&service.operator, "image", &session, &evidence)),
    ]
}

fn nobodys() -> Vec<Seen> {
    let (service, device) = furnished();
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    let (foreign, _) = Service::start().operator.session(Layer::Kernel, None);
    let mut flipped = session.clone().into_bytes();
    flipped[10] = if flipped[10] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let cut = &session[..session.len() - 4];
    [
        ("another service's", foreign.as_str()),
        ("one character changed", &flipped),
        ("cut", cut),
        ("empty", ""),
        ("no base64", "not a session!"),
    ]
    .into_iter()
    .map(|(what, token)| {
        answered(what, &submit(&service.operator, "/v1/appraise", token, &evidence))
    })
    .collect()
}

fn other_tenant() -> Vec<Seen> {
    let (service, device) = furnished_with(two_tenants, Clock::System);
    let other = service.stranger().with_token(OTHER_TOKEN);
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    let seen = vec![
        answered("appraised", &submit(&other, "/v1/appraise", &session, &evidence)),
        answered("explained", &submit(&other, "/v1/explain", &session, &evidence)),
        answered("for a key", &release(&other, "image", &session, &evidence)),
    ];
    // The session's owner can still use it.
    submit(&service.operator, "/v1/appraise", &session, &evidence).ok();
    seen
}

fn other_layer() -> Vec<Seen> {
    let (service, device) = furnished();
    add_image_key(&service, "image", &json!({}));
    add_data_key(&service, "data", &json!({}));
    let (_, recipient) = derive_key_pair(b"one-time key of the owner");
    let (kernel, nonce) = service.operator.session(Layer::Kernel, None);
    let for_data =
        release(&service.operator, "data", &kernel, &device.evidence(Layer::Kernel, &nonce));
    let (shield, nonce) = service.operator.session(Layer::Shield, Some(&recipient));
    let for_image =
        release(&service.operator, "image", &shield, &device.evidence(Layer::Shield, &nonce));
    vec![
        answered("kernel's session, data key", &for_data),
        answered("Shield's session, image key", &for_image),
    ]
}

fn clock_steps() -> Vec<Seen> {
    let start = now();
    let (service, device) = furnished_with(|text| text, fixed_clock(start));
    let used = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &used.1);
    submit(&service.operator, "/v1/appraise", &used.0, &evidence).ok();
    let open = service.operator.session(Layer::Kernel, None);
    service.set_clock(start + 100_000);
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    let forwards = submit(
        &service.operator,
        "/v1/appraise",
        &open.0,
        &device.evidence(Layer::Kernel, &open.1),
    );
    service.set_clock(start);
    let back = submit(&service.operator, "/v1/appraise", &used.0, &evidence);
    vec![answered("forwards", &forwards), answered("forwards and back", &back)]
}

/// An answer about evidence: accepted, or the first check that failed, with the claims of the
/// appraisal.
fn appraised(variant: &str, answer: &HttpResponse) -> Seen {
    let body: Value = serde_json::from_slice(&answer.bytes).unwrap_or_default();
    let appraisal = &body["appraisal"];
    let Some(checks) = appraisal["checks"].as_array() else { return answered(variant, answer) };
    let denied = appraisal["verdict"] == "denied";
    // Even the explanation of a denial must not look like a release or a signed yes.
    assert_eq!(denied, answer.status == 422 || body["would_be"] == "denied", "{body}");
    let failed = checks.iter().find(|check| check["passed"] == false && check["reached"] == true);
    let code = failed.map_or(ACCEPTED, |check| check["code"].as_str().unwrap());
    let claims = serde_json::from_value(appraisal["vector"].clone()).unwrap();
    Seen {
        claims: Some(claims),
        check: failed.map(|_| code.to_owned()),
        ..Seen::new(variant, code)
    }
}

/// An updated device answers with its older kernel, which reference values and policy still allow.
fn rollback() -> Vec<Seen> {
    let (mut service, device) = furnished();
    add_image_key(&service, "image", &json!({}));
    let ask = |service: &Service, path: &str, device: &Device| {
        let (session, nonce) = service.operator.session(Layer::Kernel, None);
        submit(&service.operator, path, &session, &device.evidence(Layer::Kernel, &nonce))
    };
    // Neither an unknown kernel nor an unmeasured version raises the floor.
    assert_eq!(ask(&service, "/v1/appraise", &Device::updated(1)).status, 422);
    shef_fixtures::service::add_reference(
        &service.operator,
        "build-2",
        &shef_fixtures::service::next_reference(),
    );
    let mut unmeasured = Device::updated(1);
    unmeasured.svn = 9;
    assert_eq!(ask(&service, "/v1/appraise", &unmeasured).status, 422);
    ask(&service, "/v1/appraise", &device).ok();
    // Evidence that waits while the device shows a higher version is outdated.
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let waiting = device.evidence(Layer::Kernel, &nonce);
    release(&service.operator, "image", &session, &waiting).ok();
    ask(&service, "/v1/appraise", &Device::updated(1)).ok();
    let mut seen = vec![
        appraised(
            "box that was given out before",
            &release(&service.operator, "image", &session, &waiting),
        ),
        appraised("appraised", &ask(&service, "/v1/appraise", &device)),
        appraised("explained", &ask(&service, "/v1/explain", &device)),
    ];
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    seen.push(appraised("for a key", &release(&service.operator, "image", &session, &evidence)));
    service.restart();
    seen.push(appraised("after a restart", &ask(&service, "/v1/appraise", &device)));
    // Another device may still run the older version.
    ask(&service, "/v1/appraise", &Device::new(2)).ok();
    ask(&service, "/v1/appraise", &Device::updated(1)).ok();
    seen
}
