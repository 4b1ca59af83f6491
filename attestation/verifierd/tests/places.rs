//! What one client, tenant or address has in progress leaves others their places.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::role::Role;
use shef_verifierd::secrets::SystemEntropy;
use sqlx::Connection as _;

use crate::service::raw;
use shef_fixtures::service::*;

/// The lines of a token for the configuration.
pub fn token(name: &str, role: &str) -> String {
    let sha256 = hex::encode(shef_verifierd::secrets::sha256(name.as_bytes()));
    format!("[[tenant.token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{sha256}\"\n")
}

/// One client sends more releases than the service takes requests, and the database keeps each of
/// them waiting: probes, readers and other tenants get answers at the same time.
#[test]
fn releases_that_wait_take_no_place_of_others() {
    const RELEASES: usize = 64;
    let service = Service::with(
        |text| {
            let other = format!("[[tenant]]\nname = \"other\"\n{}", token("other-agent", "attest"));
            format!("{text}\n{other}[limits]\nrequests = 32\n")
        },
        Default::default(),
    );
    let device = Device::new(1);
    service.furnish(&device);
    service.operator.put_key("data").ok();
    let greedy = service.client("default", Role::Release, "greedy");
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let (session, nonce) = greedy.session(Layer::Shield, Some(&public));
    let evidence = b64(&device.evidence(Layer::Shield, &nonce));
    let request = json!({"key": "data", "session": session, "evidence": evidence});
    let released = greedy.post("/v1/release", &request).ok();
    let auditor = service.client("default", Role::Audit, "auditor");
    auditor.get("/v1/keys").ok();

    let database =
        sqlx::sqlite::SqliteConnectOptions::new().filename(service.dir.join("verifierd.db"));
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut writer =
            service.runtime.block_on(sqlx::SqliteConnection::connect_with(&database)).unwrap();
        service.runtime.block_on(sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut writer)).unwrap();
        for _ in 0..RELEASES {
            scope.spawn(|| {
                let answer = greedy.post("/v1/release", &request);
                answered.fetch_add(1, Ordering::Relaxed);
                let body = answer.json();
                match body["code"].as_str() {
                    None => assert_eq!(body, released),
                    Some("SHEF-SVC-030") => assert_eq!(
                        body["detail"],
                        "caller greedy: as many requests of this kind as it may have are under way"
                    ),
                    // One of them had its place, and waited for the database until it gave up.
                    Some(code) => assert_eq!(code, "SHEF-SVC-004"),
                }
            });
        }
        // All of them are on their way, and the first that are refused say so.
        let start = Instant::now();
        while answered.load(Ordering::Relaxed) == 0 && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let others = || {
            service.stranger().get("/healthz").ok();
            service.stranger().get("/readyz").ok();
            auditor.get("/v1/keys").ok();
            let other = service.stranger().with_token("other-agent");
            other.post("/v1/sessions", &json!({"layer": "kernel"})).ok();
            service.operator.get("/v1/revocations").ok();
        };
        let all = std::panic::catch_unwind(std::panic::AssertUnwindSafe(others));
        let before = answered.load(Ordering::Relaxed);
        service.runtime.block_on(writer.close()).unwrap();
        all.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(before < RELEASES, "no release waited: the test shows nothing");
    });
}

/// A client that has shown a token keeps its connection, whatever strangers at its address do.
#[test]
fn a_client_with_a_token_is_no_stranger() {
    let service = Service::with(
        |text| format!("{text}\n{}[limits]\nconnections = 16\n", token("agent", "attest")),
        Default::default(),
    );
    let ask = |stream: &mut rustls::StreamOwned<_, std::net::TcpStream>, token: &str| {
        let head = format!(
            "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        );
        let body = "{\"layer\": \"kernel\"}";
        let length = body.len();
        if write!(stream, "{head}Content-Length: {length}\r\n\r\n{body}").is_err() {
            return String::new();
        }
        let mut answer = [0; 4096];
        let count = stream.read(&mut answer).unwrap_or(0);
        String::from_utf8_lossy(&answer[..count]).into_owned()
    };
    let [mut known, mut guesses] = [raw(&service), raw(&service)];
    let answer = ask(&mut known, "agent");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let answer = ask(&mut guesses, "wrong");
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let strangers: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = raw(&service);
            write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let _ = stream.read(&mut [0; 64]);
            stream
        })
        .collect();
    let answer = ask(&mut known, "agent");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer:?}");
    let answer = ask(&mut guesses, "agent");
    assert_eq!(answer, "", "a stranger's connection had made room");
    drop(strangers);
}

/// Strangers at one address who guess tokens are limited, and take nothing from those who know one.
#[test]
fn guesses_take_from_their_address() {
    let service = Service::with(
        |text| format!("{text}\n{}[limits]\nrate = 2\nburst = 8\n", token("agent", "attest")),
        Default::default(),
    );
    let guess = service.stranger().with_token("wrong");
    let statuses: Vec<u16> = (0..12).map(|_| guess.get("/v1/keys").status).collect();
    assert_eq!(statuses[..3], [401; 3]);
    assert!(statuses.contains(&429), "{statuses:?}");
    let known = service.stranger().with_token("agent");
    known.post("/v1/sessions", &json!({"layer": "kernel"})).ok();
}
