//! The running service from outside: set-up, health, limits, errors, time-outs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use shef_proto::evidence::Layer;
use shef_verifierd::api::Takes;
use shef_verifierd::role::Role;

use crate::places::token;
use shef_fixtures::service::*;

#[test]
fn health_keys_and_description_are_open_and_the_rest_is_not() {
    let service = Service::start();
    let stranger = service.stranger();
    assert_eq!(stranger.get("/healthz").ok()["status"], "ok");
    let ready = stranger.get("/readyz").ok();
    assert!(ready["certificate_ends"].as_i64().unwrap() > now());
    let keys = stranger.get("/.well-known/jwks.json").ok();
    assert_eq!(keys["keys"][0]["crv"], "P-256");
    for route in shef_verifierd::api::ROUTES {
        let path = filled(route.path);
        let answer =
            stranger.send(route.method, &path, &[("content-type", "application/json")], b"");
        if route.need == shef_verifierd::role::Need::Open {
            assert_eq!(answer.status, 200, "{path}");
        } else {
            answer.problem(401, "SHEF-SVC-027");
        }
    }
}

#[test]
fn every_route_of_the_table_exists_and_is_described() {
    let service = Service::start();
    let description = service.operator.get("/v1/openapi.json").ok();
    for route in shef_verifierd::api::ROUTES {
        let operation = &description["paths"][route.path][route.method.to_ascii_lowercase()];
        assert!(operation["summary"].is_string(), "{route:?}");
        let statuses: Vec<u16> = operation["responses"]
            .as_object()
            .unwrap()
            .keys()
            .map(|status| status.parse().unwrap())
            .collect();
        assert!(
            statuses.iter().filter(|status| **status < 400).count() == 1 && statuses.contains(&503),
            "{route:?}: {statuses:?}"
        );
        assert_eq!(
            statuses.contains(&401),
            route.need != shef_verifierd::role::Need::Open,
            "{route:?}"
        );
        let parameters = operation["parameters"]
            .as_array()
            .map_or(0, |all| all.iter().filter(|one| one["in"] == "path").count());
        assert_eq!(parameters, route.path.matches('{').count(), "{route:?}");
        let path = filled(route.path);
        let answer =
            service.operator.send(route.method, &path, &[("content-type", "text/plain")], b"x");
        let text = String::from_utf8_lossy(&answer.bytes).into_owned();
        assert!(
            !text.contains("there is no such path") && answer.status != 405 && answer.status != 403,
            "{route:?}: {text}"
        );
    }
    service.operator.get("/v1/nothing").problem(404, "SHEF-SVC-020");
    service.operator.call("DELETE", "/v1/sessions", &json!({})).problem(405, "SHEF-SVC-021");
}

fn filled(path: &str) -> String {
    let parts = [
        ("{name}", "x"),
        ("{id}", "00"),
        ("{kind}", "device"),
        ("{value}", "x"),
        ("{ueid}", "00"),
        ("{repository}", "a"),
        ("{tag}", "b"),
    ];
    parts.into_iter().fold(path.to_owned(), |path, (part, with)| path.replace(part, with))
}

/// A browser adds certificate or password automatically, so the service rejects changes by another
/// site's page or form.
#[test]
fn pages_of_other_sites_change_nothing() {
    let service = Service::start();
    let operator = &service.operator;
    let own = service.url();
    let mut changing = 0;
    for route in shef_verifierd::api::ROUTES.iter().filter(|route| route.changes()) {
        changing += 1;
        let path = filled(route.path);
        let form = route.takes == Takes::One(&["application/x-www-form-urlencoded"]);
        let good = match route.takes {
            Takes::One(types) => types[0],
            Takes::Evidence => "application/eat+cwt",
            Takes::Nothing => "application/json",
            Takes::Bytes => "application/octet-stream",
        };
        for (name, value) in [
            ("origin", "https://evil"),
            ("origin", "null"),
            ("origin", "http://localhost"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let answer =
                operator.send(route.method, &path, &[("content-type", good), (name, value)], b"{}");
            answer.problem(403, "SHEF-SVC-028");
        }
        for kind in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
        {
            if !(form && kind.ends_with("urlencoded")) {
                let answer = operator.send(route.method, &path, &[("content-type", kind)], b"{}");
                assert!(answer.headers.contains_key("accept"), "{route:?}");
                answer.problem(415, "SHEF-SVC-024");
            }
        }
        // From this site, it reaches the handler.
        let answer = operator.send(
            route.method,
            &path,
            &[("content-type", good), ("origin", &own), ("sec-fetch-site", "same-origin")],
            b"{}",
        );
        let code = if answer.bytes.is_empty() {
            String::new()
        } else {
            String::from_utf8_lossy(&answer.bytes).into_owned()
        };
        assert!(
            answer.status != 415 && !code.contains("another site"),
            "{route:?}: {} {code}",
            answer.status
        );
    }
    assert!(changing >= 25, "{changing}");
}

/// HEAD requires the same right as GET.
#[test]
fn head_needs_what_get_needs() {
    let service = Service::start();
    let stranger = service.stranger();
    for route in shef_verifierd::api::ROUTES.iter().filter(|route| !route.changes()) {
        let path = filled(route.path);
        let [head, get] = ["HEAD", "GET"].map(|method| stranger.send(method, &path, &[], b""));
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
        assert_eq!(head.status == 401, route.need != shef_verifierd::role::Need::Open, "{path}");
    }
}

#[test]
fn bad_requests_get_their_codes() {
    let service = Service::start();
    let operator = &service.operator;
    operator
        .send("POST", "/v1/sessions", &[("content-type", "text/plain")], b"{}")
        .problem(415, "SHEF-SVC-024");
    let answer = operator.send("POST", "/v1/sessions", &[("content-type", "text/plain")], b"{}");
    assert_eq!(answer.headers["accept"], "application/json");
    for body in [
        "",
        "{",
        "[]",
        "{\"layer\":7}",
        "{\"layer\":\"kernel\",\"more\":1}",
        "{\"layer\":\"boot\"}",
        "{\"layer\":\"shield\",\"recipient\":\"AAAA\"}",
    ] {
        operator
            .send("POST", "/v1/sessions", &[("content-type", "application/json")], body.as_bytes())
            .problem(400, "SHEF-SVC-026");
    }
    let big = vec![b' '; 65_537];
    operator
        .send("POST", "/v1/sessions", &[("content-type", "application/json")], &big)
        .problem(413, "SHEF-SVC-022");
    // Reference values have a separate limit.
    let answer = operator.send(
        "PUT",
        "/v1/corims/big",
        &[("content-type", "application/toml")],
        &vec![b'#'; 300_000],
    );
    assert_eq!(answer.status, 201);
    for name in ["..", "A", "a%2fb", "%C3%A9", "-a"] {
        let answer = operator.send(
            "PUT",
            &format!("/v1/policies/{name}"),
            &[("content-type", "application/toml")],
            POLICY.as_bytes(),
        );
        assert!(
            answer.status == 422 || answer.status == 404 || answer.status == 405,
            "{name}: {}",
            answer.status
        );
    }
}

#[test]
fn roles_and_tenants() {
    let tokens = |text: String| {
        let entry = |name: &str, role: &str| {
            format!(
                "[[tenant.token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{}\"\n",
                hex::encode(shef_verifierd::secrets::sha256(name.as_bytes()))
            )
        };
        format!(
            "{text}{}{}\n[[tenant]]\nname = \"other\"\n{}",
            entry("tok-attest", "attest"),
            entry("tok-audit", "audit"),
            entry("tok-other", "operator")
        )
    };
    let service = Service::with(tokens, Default::default());
    let device = Device::new(1);
    service.furnish(&device);
    let stranger = service.stranger();
    stranger.with_token("nothing").get("/v1/devices").problem(401, "SHEF-SVC-027");
    let attest = stranger.with_token("tok-attest");
    attest.session(Layer::Kernel, None);
    attest.get("/v1/devices").problem(403, "SHEF-SVC-028");
    attest.post("/v1/release", &json!({})).problem(403, "SHEF-SVC-028");
    let audit = stranger.with_token("tok-audit");
    assert_eq!(audit.get("/v1/trust-anchors").ok()["trust_anchors"].as_array().unwrap().len(), 1);
    audit.post("/v1/sessions", &json!({"layer": "kernel"})).problem(403, "SHEF-SVC-028");
    audit.post("/v1/revocations", &json!({})).problem(403, "SHEF-SVC-028");
    // Another tenant sees nothing of this one, and cannot use its sessions.
    let other = stranger.with_token("tok-other");
    assert!(other.get("/v1/trust-anchors").ok()["trust_anchors"].as_array().unwrap().is_empty());
    let (session, nonce) = attest.session(Layer::Kernel, None);
    let body =
        json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
    other.post("/v1/appraise", &body).problem(400, "SHEF-SVC-040");
    attest.post("/v1/appraise", &body).ok();
    // A certificate of an unknown tenant.
    let nobody = service.client("nobody", Role::Operator, "nobody");
    nobody.get("/v1/devices").problem(401, "SHEF-SVC-027");
}

/// Those who submit evidence do not choose the rules: only operators choose versions of policies,
/// and the configuration restricts names.
#[test]
fn policies_are_chosen_by_those_who_may() {
    let change = |text: String| {
        format!(
            "{text}[[tenant.submitter]]\nname = \"host-7\"\npolicies = [\"default\", \"strict\"]\n"
        )
    };
    let service = Service::with(change, Default::default());
    let device = Device::new(1);
    service.furnish(&device);
    let operator = &service.operator;
    for (name, text) in [("default", format!("{POLICY}max_age = 60\n")), ("other", POLICY.into())] {
        operator
            .send(
                "PUT",
                &format!("/v1/policies/{name}"),
                &[("content-type", "application/toml")],
                text.as_bytes(),
            )
            .ok();
    }
    let ask = |client: &Client, policy: Option<&str>| {
        let (session, nonce) = client.session(Layer::Kernel, None);
        let mut body =
            json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
        if let Some(policy) = policy {
            body["policy"] = json!(policy);
        }
        (client.post("/v1/explain", &body), client.post("/v1/appraise", &body))
    };
    let host = service.client("default", Role::Release, "host-7");
    for refused in ["default@1", "default@2", "default@", "@1", "other", "other@1"] {
        let (explained, appraised) = ask(&host, Some(refused));
        explained.problem(403, "SHEF-SVC-028");
        appraised.problem(403, "SHEF-SVC-028");
    }
    ask(&host, Some("strict")).1.problem(404, "SHEF-SVC-020");
    assert_eq!(ask(&host, None).1.ok()["policy"], "default@2");
    // An identity that is not listed may name any policy, and the operator any version; results
    // show which one applied.
    let free = service.client("default", Role::Attest, "host-8");
    ask(&free, Some("default@1")).1.problem(403, "SHEF-SVC-028");
    assert_eq!(ask(&free, Some("other")).1.ok()["policy"], "other@1");
    let result = ask(operator, Some("default@1")).1.ok()["result"].clone();
    let claims =
        result.as_str().unwrap().split('.').nth(1).map(|text| unb64(&json!(text))).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(
        claims["submods"]["fpga-kernel"]["ear_appraisal_policy_ids"][0], "default@1",
        "{claims}"
    );
}

#[test]
fn a_tenant_that_asks_too_often_waits() {
    let service = Service::with(
        |text| format!("{text}\n[limits]\nrate = 1\nburst = 3\n"),
        Default::default(),
    );
    let mut refused = 0;
    for _ in 0..8 {
        let answer = service.operator.post("/v1/sessions", &json!({"layer": "kernel"}));
        if answer.status == 429 {
            assert_eq!(answer.headers["retry-after"], "1");
            answer.problem(429, "SHEF-SVC-029");
            refused += 1;
        }
    }
    assert!(refused >= 3, "{refused}");
    assert_eq!(service.stranger().get("/healthz").status, 200);
}

pub fn raw(service: &Service) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(service.dir.join("ca.pem")).unwrap()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_protocol_versions(&[&rustls::version::TLS13])
    .unwrap()
    .with_root_certificates(roots)
    .with_no_client_auth();
    let connection =
        rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    rustls::StreamOwned::new(connection, TcpStream::connect(service.running().address).unwrap())
}

#[test]
fn slow_clients_lose_their_connection_and_others_do_not_notice() {
    let service = Service::with(
        |text| format!("{text}\n[limits]\nheader_seconds = 1\nbody_seconds = 1\n"),
        Default::default(),
    );
    // No data: the handshake never starts.
    let mut silent = TcpStream::connect(service.running().address).unwrap();
    // A header that arrives byte by byte.
    let mut slow = raw(&service);
    let drip = std::thread::spawn(move || {
        let mut sent = 0;
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".iter().cycle() {
            if slow.write_all(&[*byte]).is_err() || slow.flush().is_err() || sent > 600 {
                break;
            }
            sent += 1;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        sent
    });
    // A body that never ends.
    let mut half = raw(&service);
    half.write_all(
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
    )
    .unwrap();
    let mut answer = String::new();
    let _ = half.read_to_string(&mut answer);
    // Without an identity, the service does not wait for the body at all.
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(service.stranger().get("/healthz").status, 200);
    assert!(drip.join().unwrap() < 600, "a header of one byte at a time was read for ever");
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
}

/// More silent connections than slots, before or after their handshake, from one address: another
/// client at that address is answered at once, and always with a certificate.
#[test]
fn who_says_nothing_keeps_nobody_out() {
    // No connection times out during the test.
    let service = Service::with(
        |text| format!("{text}\n[limits]\nconnections = 16\nheader_seconds = 60\n"),
        Default::default(),
    );
    let soon = |client: Client| {
        let start = std::time::Instant::now();
        client.get("/healthz").ok();
        assert!(
            start.elapsed() < std::time::Duration::from_secs(4),
            "waited for {:?}",
            start.elapsed()
        );
    };
    let connect = || TcpStream::connect(service.running().address).unwrap();
    let silent: Vec<TcpStream> = (0..80).map(|_| connect()).collect();
    soon(service.stranger());
    // The oldest have made room; the last four silent ones are still open.
    let still_open = || {
        let open = silent.iter().filter(|stream| {
            stream.set_nonblocking(true).unwrap();
            stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        });
        open.count()
    };
    // Their slots are free before their connections close, which is another task's work.
    let start = std::time::Instant::now();
    while still_open() > 4 && start.elapsed() < std::time::Duration::from_secs(4) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(
        (1..=4).contains(&still_open()),
        "{} of those that said nothing are still there",
        still_open()
    );
    let metrics = String::from_utf8(service.operator.get("/metrics").ok_bytes()).unwrap();
    assert!(metrics.contains("shef_tls_failures_total{reason=\"displaced\"} "), "{metrics}");
    // Anonymous connections after the handshake have three quarters of the slots.
    let shaken: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = raw(&service);
            while stream.conn.is_handshaking() && stream.conn.complete_io(&mut stream.sock).is_ok()
            {
            }
            stream
        })
        .collect();
    soon(service.client("default", Role::Audit, "auditor"));
    soon(service.stranger());
    drop(shaken);
}

/// A connection that has begun its handshake keeps its slot before others of its address that only
/// sent part of a message.
#[test]
fn a_part_of_a_message_is_no_handshake() {
    let service = Service::with(
        |text| format!("{text}\n[limits]\nconnections = 16\nheader_seconds = 60\n"),
        Default::default(),
    );
    let mut honest = raw(&service);
    while honest.conn.wants_write() {
        honest.conn.write_tls(&mut honest.sock).unwrap();
    }
    // The response has come: the message was read.
    honest.sock.peek(&mut [0]).unwrap();
    let others: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(service.running().address).unwrap();
            stream.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
            // It is read before the next one arrives.
            std::thread::sleep(std::time::Duration::from_millis(50));
            stream
        })
        .collect();
    write!(honest, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    let _ = honest.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    drop(others);
}

/// Connections that alternate between work and rest stay open, and those of one certificate have at
/// most a quarter: other clients are answered at once.
#[test]
fn one_client_does_not_take_the_connections_of_others() {
    let service =
        Service::with(|text| format!("{text}\n[limits]\nconnections = 16\n"), Default::default());
    let mut held = vec![service.client("default", Role::Attest, "greedy")];
    held.extend((1..20).map(|_| Client::new(&service.dir, &service.url(), Some("greedy"))));
    for client in &held {
        client.get("/healthz").ok();
    }
    let start = std::time::Instant::now();
    for client in [
        service.client("default", Role::Audit, "auditor"),
        service.stranger(),
        held.into_iter().next().unwrap(),
    ] {
        client.get("/healthz").ok();
    }
    assert!(
        start.elapsed() < std::time::Duration::from_secs(4),
        "waited for {:?}",
        start.elapsed()
    );
    let metrics = String::from_utf8(service.operator.get("/metrics").ok_bytes()).unwrap();
    let evicted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("shef_tls_failures_total{reason=\"evicted\"} "));
    assert!(evicted.is_some_and(|count| count.parse::<u32>().unwrap() >= 16), "{metrics}");
}

/// Endless bodies hold memory: a caller's bodies, a tenant's, and those of all callers but operators
/// have a share of it, and the next body is answered at once.
#[test]
fn bodies_of_one_caller_do_not_take_the_memory_of_others() {
    let service = Service::with(
        |text| {
            let limits = "[limits]\nrequests = 8\nbody_bytes = 65536\ncorim_bytes = 65536\n";
            let tokens = [token("one", "attest"), token("two", "attest"), token("op", "operator")];
            let other = token("other", "attest");
            format!("{text}{}[[tenant]]\nname = \"other\"\n{other}{limits}", tokens.concat())
        },
        Default::default(),
    );
    let begin = |name: &str| {
        let mut stream = raw(&service);
        let head = format!(
            "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {name}\r\nContent-Type: application/json\r\n"
        );
        write!(stream, "{head}Content-Length: 60000\r\n\r\n{{").unwrap();
        stream
    };
    let refused = |stream: &mut rustls::StreamOwned<_, TcpStream>| {
        stream.sock.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let answer = answer.strip_prefix("HTTP/1.1 503")?;
        answer.find("hold").map(|at| answer[at..].split(", and").next().unwrap_or("").to_owned())
    };
    let mut held = begin("one");
    assert_eq!(refused(&mut held), None);
    assert_eq!(refused(&mut begin("one")).as_deref(), Some("hold 60000 of 65536 bytes"));
    assert_eq!(refused(&mut begin("two")).as_deref(), Some("hold 60000 of 98304 bytes"));
    let mut others = [begin("op"), begin("other")];
    assert_eq!(others.each_mut().map(refused), [None, None]);
    drop(held);
}

#[test]
fn a_body_that_stops_half_way_is_answered_with_408() {
    let token = "slow-token";
    let entry = format!(
        "[[tenant.token]]\nname = \"t\"\nrole = \"operator\"\nsha256 = \"{}\"\n",
        hex::encode(shef_verifierd::secrets::sha256(token.as_bytes()))
    );
    let service = Service::with(
        move |text| format!("{text}{entry}\n[limits]\nheader_seconds = 5\nbody_seconds = 1\n"),
        Default::default(),
    );
    let mut half = raw(&service);
    write!(half, "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{")
        .unwrap();
    let mut answer = String::new();
    let _ = half.read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("SHEF-SVC-023"), "{answer}");
}

/// Every appraisal is on some page, even if all are of the same second.
#[test]
fn pages_lose_nothing() {
    let start = now();
    let service = Service::with(|text| text, shef_verifierd::time::Clock::Set(start.into()));
    let operator = &service.operator;
    let mut made = std::collections::BTreeSet::new();
    for byte in 0..23u8 {
        let body = json!({"nonce": b64(&[byte; 32]), "layer": "kernel", "evidence": b64(&[byte]), "policy": "default"});
        add_policy(operator);
        made.insert(
            operator.post("/v1/appraise", &body).problem(422, "SHEF-SVC-043")["appraisal_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/appraisals?limit=5".to_owned());
    loop {
        let page = operator.get(&path).ok();
        seen.extend(
            page["appraisals"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/appraisals?limit=5&before={next}");
    }
    assert_eq!((seen.len(), seen.iter().cloned().collect()), (23, made));
    assert!(
        operator.get(&format!("/v1/appraisals?before={start}")).ok()["appraisals"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    operator.get("/v1/appraisals?before=yesterday").problem(400, "SHEF-SVC-026");
}

#[test]
fn metrics_have_labels_of_the_program_only() {
    let service = Service::start();
    let device = Device::new(1);
    service.furnish(&device);
    service.operator.get("/v1/keys/evil%22label").problem(404, "SHEF-SVC-020");
    service.operator.get("/no/such/evil");
    let text = String::from_utf8(service.operator.get("/metrics").bytes).unwrap();
    assert!(
        text.contains("shef_requests_total{route=\"/v1/keys/{name}\",status=\"404\"} 1"),
        "{text}"
    );
    assert!(text.contains("shef_requests_total{route=\"other\",status=\"404\"} 1"), "{text}");
    assert!(!text.contains("evil"), "{text}");
}

#[test]
fn reload_takes_new_tokens_and_keeps_the_old_ones_of_a_bad_file() {
    let service = Service::start();
    let file = service.dir.join("verifierd.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let token = "new-token";
    let entry = format!(
        "[[tenant.token]]\nname = \"t\"\nrole = \"audit\"\nsha256 = \"{}\"\n",
        hex::encode(shef_verifierd::secrets::sha256(token.as_bytes()))
    );
    let client = service.stranger().with_token(token);
    client.get("/v1/devices").problem(401, "SHEF-SVC-027");
    let reload = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let config = shef_verifierd::config::Config::read(&file)?;
        service.runtime.block_on(service.running().reload(config))
    };
    let current = |sample: &str| {
        let metrics = String::from_utf8(service.operator.get("/metrics").ok_bytes()).unwrap();
        let sample = format!("\nshef_config_last_reload_successful {sample}\n");
        assert!(metrics.contains(&sample), "{metrics}");
    };
    reload(&format!("{text}{entry}")).unwrap();
    client.get("/v1/devices").ok();
    current("1");
    assert!(reload(&format!("{text}{entry}").replace("signing.key", "missing.key")).is_err());
    client.get("/v1/devices").ok();
    current("0");
    reload(&text).unwrap();
    current("1");
    client.get("/v1/devices").problem(401, "SHEF-SVC-027");
}
