//! Traces: the spans that a collector receives, and requests that do not depend on it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::check;
use shef_verifierd::problem::{Kind, Problem};
use shef_verifierd::secrets::SystemEntropy;

use crate::binary::{dir, run, signal};
use crate::oidc::tls;
use crate::operators::{config, reload};
use crate::service::raw;
use shef_fixtures::service::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// What a collector does with spans.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Takes,
    Rejects,
    Fails,
    Silent,
}

/// Requests: heads, in lower case, and bodies.
type Got = Vec<(String, Vec<u8>)>;

/// A collector that keeps what it gets.
struct Collector {
    address: SocketAddr,
    got: Arc<Mutex<Got>>,
    mode: Arc<Mutex<Mode>>,
    /// With its certificate, if it has one.
    folder: Option<tempfile::TempDir>,
}

/// Takes one request.
fn serve(stream: impl Read + Write, mode: Mode, got: &Mutex<Got>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let spans = ExportTraceServiceRequest::decode(&body[..]).unwrap().resource_spans.len();
    got.lock().unwrap().push((head, body));
    let partial = ExportTracePartialSuccess { rejected_spans: 1, error_message: String::new() };
    let partial_success = (mode == Mode::Rejects && spans > 0).then_some(partial);
    let answer = ExportTraceServiceResponse { partial_success }.encode_to_vec();
    let status = if mode == Mode::Fails { "500 No" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    let _ = stream.get_mut().write_all(&[head.as_bytes(), &answer].concat());
    let _ = stream.get_mut().flush();
}

impl Collector {
    fn start(mode: Mode) -> Self {
        Self::listen(mode, None)
    }

    fn with_certificate() -> Self {
        let folder = tempfile::tempdir().unwrap();
        set_up(&folder.path().join("c"));
        Self::listen(Mode::Takes, Some(folder))
    }

    fn listen(mode: Mode, folder: Option<tempfile::TempDir>) -> Self {
        let server = folder.as_ref().map(|folder| tls(&folder.path().join("c")));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (got, mode) = (Arc::<Mutex<_>>::default(), Arc::new(Mutex::new(mode)));
        let (keeps, does) = (Arc::clone(&got), Arc::clone(&mode));
        // It ends with the test.
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming().flatten() {
                let mode = *does.lock().unwrap();
                match &server {
                    _ if mode == Mode::Silent => silent.push(stream),
                    None => serve(stream, mode, &keeps),
                    Some(server) => {
                        let connection = rustls::ServerConnection::new(Arc::clone(server)).unwrap();
                        serve(rustls::StreamOwned::new(connection, stream), mode, &keeps);
                    }
                }
            }
        });
        Self { address, got, mode, folder }
    }

    fn configuration(&self) -> String {
        let scheme = if self.folder.is_some() { "https" } else { "http" };
        format!("\n[traces]\nendpoint = \"{scheme}://{}/v1/traces\"\n", self.address)
    }

    fn got(&self) -> Got {
        self.got.lock().unwrap().clone()
    }

    /// All spans that came.
    fn spans(&self) -> Vec<Span> {
        let got = self.got();
        let all = got.iter().map(|(_, body)| ExportTraceServiceRequest::decode(&body[..]).unwrap());
        let all = all.flat_map(|request| request.resource_spans);
        all.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
    }

    /// The span of the request with this answer.
    #[track_caller]
    fn server_span(&self, answer: &HttpResponse) -> Span {
        let id = answer.headers["x-request-id"].to_str().unwrap();
        let of = |span: &Span| attributes(&span.attributes)["shef.request.id"] == json!(id);
        soon("the span of a request", || {
            self.spans().into_iter().find(|span| span.kind == 2 && of(span))
        })
    }

    /// The names of a span's children, sorted.
    fn children(&self, parent: &Span) -> Vec<String> {
        let mut all: Vec<_> = self
            .spans()
            .into_iter()
            .filter(|span| {
                span.parent_span_id == parent.span_id && span.trace_id == parent.trace_id
            })
            .map(|span| span.name)
            .collect();
        all.sort();
        all
    }
}

#[track_caller]
fn soon<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed().as_secs() < 30, "{what} does not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn attributes(list: &[KeyValue]) -> BTreeMap<String, Value> {
    let value = |of: &KeyValue| match of.value.clone().unwrap().value.unwrap() {
        Any::StringValue(text) => json!(text),
        Any::IntValue(number) => json!(number),
        other => panic!("{other:?}"),
    };
    list.iter().map(|of| (of.key.clone(), value(of))).collect()
}

fn lost(operator: &Client) -> u64 {
    let metrics = String::from_utf8(operator.get("/metrics").ok_bytes()).unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix("shef_trace_spans_lost_total "));
    line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

/// One release and what it is made of, with a policy in Rego, a token and a secret key.
#[test]
fn a_release_and_its_steps_are_one_trace_without_secrets() {
    let collector = Collector::start(Mode::Takes);
    let dir = dir();
    let token = "shef_canary-of-a-token";
    let sha256 = hex::encode(shef_verifierd::secrets::sha256(token.as_bytes()));
    let token_entry =
        format!("[[tenant.token]]\nname = \"t\"\nrole = \"release\"\nsha256 = \"{sha256}\"\n");
    dir.configure(|text| text + &token_entry + &collector.configuration());
    let mut process = run(&dir);
    let (client, device) = (process.client.clone(), Device::new(1));
    furnish(&client, &device);
    let rego = "package shef\nallow if input.canary_of_rego == 1\nallow if true\n";
    let both = json!({"typed": POLICY, "rego": rego});
    client.call("PUT", "/v1/policies/default", &both).ok();
    let canary = b"canary-canary-canary-canary-0042";
    let key = json!({"layer": "shield", "policy": "default", "secret": b64(canary)});
    client.call("PUT", "/v1/keys/canary-of-a-key", &key).ok();

    let stranger = Client::new(&dir.path, client.url(), None);
    let caller = stranger.with_token(token);
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let (session, nonce) = caller.session(Layer::Shield, Some(&public));
    let evidence = device.evidence(Layer::Shield, &nonce);
    let body = json!({"key": "canary-of-a-key", "session": session, "evidence": b64(&evidence)})
        .to_string();
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [
        ("content-type", "application/json"),
        ("traceparent", &*traceparent),
        ("tracestate", "canary=of-a-state"),
        ("baggage", "canary=of-baggage"),
        ("x-request-id", "canary-of-an-id"),
    ];
    let released = caller.send("POST", "/v1/release", &headers, body.as_bytes());
    assert_eq!(released.status, 200, "{}", released.json());
    let span = collector.server_span(&released);
    let id = released.headers["x-request-id"].to_str().unwrap();
    assert_eq!(span.name, "POST /v1/release");
    assert_eq!(hex::encode(&span.trace_id), TRACE);
    assert_eq!(hex::encode(&span.parent_span_id), PARENT);
    assert_eq!((&*span.trace_state, span.status.clone().unwrap().code), ("", 0));
    assert_eq!(
        json!(attributes(&span.attributes)),
        json!({
            "http.request.method": "POST", "http.route": "/v1/release",
            "http.response.status_code": 200, "url.scheme": "https",
            "shef.request.id": id, "shef.tenant": "default",
        })
    );
    assert!(span.events.is_empty() && span.links.is_empty());
    assert!(span.start_time_unix_nano < span.end_time_unix_nano);
    let steps = ["appraise", "change in database", "sign receipt"];
    assert_eq!(collector.children(&span), steps);
    let appraise = collector
        .spans()
        .into_iter()
        .find(|one| one.name == "appraise" && one.parent_span_id == span.span_id);
    assert_eq!(collector.children(&appraise.unwrap()), ["evaluate policy in Rego"]);

    // A refusal: the path is the table's, whatever the client sends.
    let refused = client.post("/v1/keys/canary-of-a-path/disable", &json!({}));
    let refused_span = collector.server_span(&refused);
    refused.problem(404, "SHEF-SVC-020");
    assert_eq!(refused_span.name, "POST /v1/keys/{name}/disable");
    let of = attributes(&refused_span.attributes);
    assert_eq!(of["http.route"], "/v1/keys/{name}/disable");
    assert_eq!(
        (&of["http.response.status_code"], &of["error.type"]),
        (&json!(404), &json!("SHEF-SVC-020"))
    );
    assert!(refused_span.parent_span_id.is_empty() && hex::encode(&refused_span.trace_id) != TRACE);
    // Neither caller nor route.
    let wrong = stranger.with_token("canary-of-a-wrong-token");
    let unknown = wrong.get("/canary-of-nothing?canary=query");
    let span = collector.server_span(&unknown);
    let of = attributes(&span.attributes);
    assert_eq!((&*span.name, &of["http.response.status_code"]), ("GET", &json!(404)));
    assert!(!of.contains_key("http.route") && !of.contains_key("shef.tenant"), "{of:?}");
    wrong.get("/v1/devices?limit=7&canary=query").problem(401, "SHEF-SVC-027");
    let (again, other_nonce) = client.session(Layer::Shield, Some(&public));
    let evidence = device.evidence(Layer::Shield, &other_nonce);
    let appraised = json!({"session": again, "evidence": b64(&evidence)});
    let appraised = client.post("/v1/appraise", &appraised);
    let span = collector.server_span(&appraised);
    assert!(collector.children(&span).contains(&"sign result".into()), "{}", appraised.json());

    signal(&process.child, "-TERM");
    assert!(process.child.wait().unwrap().success());
    let resource = ExportTraceServiceRequest::decode(&collector.got()[0].1[..]).unwrap();
    let resource = resource.resource_spans[0].resource.clone().unwrap();
    let resource = attributes(&resource.attributes);
    assert_eq!(resource["service.name"], "shef-verifierd");
    assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    let evidence_text = b64(&evidence);
    for secret in [
        b"canary".as_slice(),
        canary,
        token.as_bytes(),
        sha256.as_bytes(),
        session.as_bytes(),
        again.as_bytes(),
        &nonce,
        b64(&nonce).as_bytes(),
        hex::encode(&nonce).as_bytes(),
        &evidence,
        evidence_text.as_bytes(),
        b"limit=7",
    ] {
        for (_, body) in collector.got() {
            let found = body.windows(secret.len()).any(|part| part == secret);
            assert!(!found, "{:?}", String::from_utf8_lossy(secret));
        }
    }
}

#[test]
fn no_traceparent_breaks_a_request() {
    let collector = Collector::start(Mode::Takes);
    let service = Service::with(|text| text + &collector.configuration(), Default::default());
    let good = format!("00-{TRACE}-{PARENT}-01");
    let (long, upper) = ("0".repeat(4096), good.to_uppercase());
    let zeros = format!("00-{}-{PARENT}-01", "0".repeat(32));
    let no_parent = format!("00-{TRACE}-{}-01", "0".repeat(16));
    let forged: [&[&str]; 9] = [
        &[""],
        &["00"],
        &[&long],
        &[&upper],
        &[&zeros],
        &[&no_parent],
        &[&good[..54]],
        &[&good, &good],
        &[&good, "00"],
    ];
    for values in forged {
        let headers: Vec<_> = values.iter().map(|value| ("traceparent", *value)).collect();
        let answer = service.operator.send("GET", "/v1/keys", &headers, b"");
        assert_eq!(answer.status, 200, "{values:?}");
        let span = collector.server_span(&answer);
        assert!(span.parent_span_id.is_empty(), "{values:?}");
        assert_ne!(hex::encode(span.trace_id), TRACE, "{values:?}");
    }
    let answer = service.operator.send("GET", "/v1/keys", &[("traceparent", &good)], b"");
    assert_eq!(hex::encode(collector.server_span(&answer).parent_span_id), PARENT);
    assert_eq!(lost(&service.operator), 0);
}

/// Callers choose ids and flags, and so that they could have all their requests traced, or none.
#[test]
fn callers_have_no_say_in_what_is_traced() {
    let collector = Collector::start(Mode::Takes);
    let sampled = collector.configuration() + "sample = 0.5\n";
    let mut service = Service::with(|text| text + &sampled, Default::default());
    for (trace, flags) in [("1", "01"), ("f", "00")] {
        let parent = format!("00-{}-{PARENT}-{flags}", trace.repeat(32));
        for _ in 0..200 {
            service.operator.send("GET", "/healthz", &[("traceparent", &parent)], b"");
        }
    }
    service.stop();
    let spans = collector.spans();
    for trace in ["1", "f"] {
        let of = spans.iter().filter(|span| hex::encode(&span.trace_id) == trace.repeat(32));
        let count = of.count();
        assert!((50..=150).contains(&count), "{trace}: {count} of 200");
    }
    // None at all.
    let collector = Collector::start(Mode::Takes);
    let none = collector.configuration() + "sample = 0\n";
    let mut service = Service::with(|text| text + &none, Default::default());
    service.operator.get("/healthz").ok();
    service.stop();
    assert_eq!(collector.got().len(), 0);
}

/// A request whose answer must not depend on a collector.
fn requests(service: &Service) -> Vec<(u16, Value)> {
    let mut all = Vec::new();
    let mut keep = |answer: HttpResponse| all.push((answer.status, answer.json()));
    let get = |path: &str| service.operator.get(path);
    keep(get("/healthz"));
    keep(get("/v1/keys"));
    keep(get("/v1/keys/none"));
    keep(service.stranger().get("/v1/keys"));
    keep(service.operator.post("/v1/appraise", &json!({"evidence": 1})));
    all
}

#[test]
fn requests_go_on_without_a_collector_that_takes_spans() {
    let mut plain = Service::start();
    let expected = requests(&plain);
    assert_eq!(lost(&plain.operator), 0);
    plain.stop();
    // A port that no test gets.
    let absent = "\n[traces]\nendpoint = \"http://127.0.0.1:1/v1/traces\"\n".to_owned();
    let stranger = Collector::with_certificate();
    let [silent, failing, rejecting] =
        [Mode::Silent, Mode::Fails, Mode::Rejects].map(Collector::start);
    let cases = [
        ("absent", absent),
        ("no CA of the system issued its certificate", stranger.configuration()),
        ("fails", failing.configuration()),
        ("rejects", rejecting.configuration()),
        ("silent", silent.configuration()),
    ];
    for (what, traces) in cases {
        let mut service = Service::with(|text| text + &traces, Default::default());
        let start = Instant::now();
        for _ in 0..20 {
            assert_eq!(requests(&service), expected, "{what}");
        }
        assert!(start.elapsed().as_secs() < 8, "{what}: {:?}", start.elapsed());
        let count = soon(what, || Some(lost(&service.operator)).filter(|lost| *lost > 0));
        assert!(count <= 2000, "{what}: {count}");
        service.operator.get("/readyz").ok();
        let start = Instant::now();
        service.stop();
        assert!(start.elapsed().as_secs() < 8, "{what}: the end takes {:?}", start.elapsed());
    }
    assert!(stranger.got().is_empty());
}

/// More spans than wait for a collector are lost at once, and one that comes back gets the others.
#[test]
fn a_collector_that_comes_back_gets_what_is_new() {
    let collector = Collector::start(Mode::Silent);
    let service = Service::with(|text| text + &collector.configuration(), Default::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = service.operator.clone();
                for _ in 0..500 {
                    client.get("/v1/keys").ok();
                }
            });
        }
    });
    let count = lost(&service.operator);
    assert!((2000 - 1024..=2000).contains(&count), "{count}");
    *collector.mode.lock().unwrap() = Mode::Takes;
    soon("a span", || (!collector.got().is_empty()).then_some(()));
    collector.server_span(&service.operator.get("/v1/keys"));
}

/// Strangers' spans, and those of paths that there are not, leave room for those of tenants.
#[test]
fn strangers_do_not_take_the_queue_of_spans() {
    let collector = Collector::start(Mode::Silent);
    let service = Service::with(|text| text + &collector.configuration(), Default::default());
    std::thread::scope(|scope| {
        for path in ["/nothing", "/healthz", "/v1/keys", "/nothing"] {
            let client = service.stranger();
            scope.spawn(move || (0..600).for_each(|_| drop(client.get(path))));
        }
    });
    let answers: Vec<_> = (0..20).map(|_| service.operator.get("/v1/keys")).collect();
    *collector.mode.lock().unwrap() = Mode::Takes;
    // The last of them; a batch that was on its way to the silent collector is lost.
    collector.server_span(answers.last().unwrap());
    let strangers = collector
        .spans()
        .iter()
        .filter(|span| !attributes(&span.attributes).contains_key("shef.tenant"))
        .count();
    assert!(strangers <= 2048 / 8, "{strangers}");
}

/// What exceeds the rate of its address has no span, whichever path it is for.
#[test]
fn unknown_paths_count_and_refusals_by_rate_have_no_spans() {
    let collector = Collector::start(Mode::Takes);
    let limits = "[limits]\nrate = 2\nburst = 40\n";
    let mut service =
        Service::with(|text| text + &collector.configuration() + limits, Default::default());
    let stranger = service.stranger();
    let all: Vec<_> = (0..60).map(|_| stranger.get("/nothing").status).collect();
    let admitted = all.iter().filter(|status| **status == 404).count();
    assert!(admitted < 60 && all.contains(&429), "{all:?}");
    assert_eq!(stranger.post("/healthz", &json!({})).status, 429);
    service.operator.get("/v1/keys").ok();
    service.stop();
    assert_eq!(collector.spans().iter().filter(|span| span.name == "GET").count(), admitted);
}

/// A method that is unknown is any text.
#[test]
fn no_span_has_text_of_a_stranger() {
    let collector = Collector::start(Mode::Takes);
    let mut service = Service::with(|text| text + &collector.configuration(), Default::default());
    let mut stream = raw(&service);
    stream.write_all(b"CANARY /canary?canary HTTP/1.1\r\nHost: canary\r\n\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(&mut stream).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 404 "), "{line}");
    service.stop();
    let spans = collector.spans();
    let of = attributes(&spans[0].attributes);
    assert_eq!((&*spans[0].name, &of["http.request.method"]), ("HTTP", &json!("_OTHER")));
    for (_, body) in collector.got() {
        assert!(!String::from_utf8_lossy(&body).to_lowercase().contains("canary"));
    }
}

/// The service waits for its last spans, which the log tells of if they are lost.
#[test]
fn the_end_of_the_service_sends_the_last_spans_or_says_that_they_are_lost() {
    let collector = Collector::start(Mode::Takes);
    let mut service = Service::with(|text| text + &collector.configuration(), Default::default());
    let answer = service.operator.get("/healthz");
    service.stop();
    let id = answer.headers["x-request-id"].to_str().unwrap();
    let spans = collector.spans();
    assert!(spans.iter().any(|span| attributes(&span.attributes)["shef.request.id"] == json!(id)));

    let silent = Collector::start(Mode::Silent);
    let dir = dir();
    dir.configure(|text| text + &silent.configuration());
    let mut child = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
        .args(["run", "--config", &dir.config])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let listens = lines.find(|line| line["message"] == "listening").unwrap();
    let url = format!("https://{}", listens["address"].as_str().unwrap());
    let client = Client::new(&dir.path, &url, Some("operator"));
    for _ in 0..3 {
        client.get("/healthz").ok();
    }
    signal(&child, "-TERM");
    let told = lines.find(|line| line["message"] == "spans were lost").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        (&told["level"], &told["lost"], &told["total"]),
        (&json!("WARN"), &json!(3), &json!(3))
    );
}

#[test]
fn a_collector_is_known_by_its_certificate_and_gets_the_headers_of_a_file() {
    let collector = Collector::with_certificate();
    let ca = collector.folder.as_ref().unwrap().path().join("c/ca.pem");
    let more = format!("ca = {ca:?}\nheaders_file = \"headers\"\n");
    let text = collector.configuration() + &more;
    let mut service = Service::start();
    let file = service.dir.join("verifierd.toml");
    let whole = std::fs::read_to_string(&file).unwrap() + &text;
    std::fs::write(&file, whole).unwrap();
    let headers = service.dir.join("headers");
    let write = |content: &str, mode: u32| {
        std::fs::write(&headers, content).unwrap();
        std::fs::set_permissions(&headers, PermissionsExt::from_mode(mode)).unwrap();
    };
    let checked =
        |service: &Service| service.runtime.block_on(check::check(&config(service), now()));
    let refused = |service: &Service| -> Problem { checked(service).err().unwrap() };

    assert_eq!(refused(&service).kind, Kind::Material);
    write("authorization: Bearer canary\n", 0o644);
    assert_eq!(refused(&service).kind, Kind::Permissions);
    for bad in ["canary", "canary canary: x", "x: canary\u{1}", ": canary"] {
        write(&format!("x-scope: tenant\n{bad}\n"), 0o600);
        let problem = refused(&service);
        assert_eq!(problem.kind, Kind::Material);
        assert!(problem.detail.contains("headers:2: expected a header"), "{problem}");
        assert!(!problem.detail.contains("canary"), "{problem}");
    }
    // Headers that say how a request is sent.
    for name in
        ["Content-Length", "transfer-encoding", "Host", "content-encoding", "connection", "te"]
    {
        write(&format!("x-scope: tenant\n\n{name}: canary\n"), 0o600);
        let problem = refused(&service);
        assert_eq!(problem.kind, Kind::Material);
        let text = format!("headers:3: the header {} says how", name.to_ascii_lowercase());
        assert!(problem.detail.contains(&text) && !problem.detail.contains("canary"), "{problem}");
    }
    write("authorization: Bearer canary\n\nX-Scope: tenant\n", 0o600);
    let report = checked(&service).unwrap();
    assert!(
        report.notes.iter().any(|note| note.ends_with("/v1/traces: takes spans")),
        "{report:?}"
    );
    // A change needs a restart.
    assert_eq!(reload(&service, |text| text), ["traces"]);
    assert_eq!(collector.got().len(), 1);
    service.restart();
    assert_eq!(reload(&service, |text| text), [""; 0]);
    let answer = service.operator.get("/healthz");
    collector.server_span(&answer);
    for (head, _) in collector.got() {
        for line in [
            "post /v1/traces http/1.1\r\n",
            "\r\ncontent-type: application/x-protobuf\r\n",
            "\r\nauthorization: bearer canary\r\n",
            "\r\nx-scope: tenant\r\n",
        ] {
            assert!(head.contains(line), "{head}");
        }
    }
    // Without its CA, and without its file of CAs.
    let change = |from: &str, to: &str| {
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace(from, to)).unwrap();
    };
    change(&format!("ca = {ca:?}\n"), "");
    let report = checked(&service).unwrap();
    assert!(
        report.warnings.iter().any(|text| text.starts_with("spans will be lost: https://")),
        "{report:?}"
    );
    change("headers_file", "ca = \"none.pem\"\nheaders_file");
    assert_eq!(refused(&service).kind, Kind::Material);
}
