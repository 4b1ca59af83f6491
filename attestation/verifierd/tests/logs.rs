//! If the reader of the log stops or closes it, the service loses log lines but answers every
//! request. If the configuration requires the log, the service releases no key without a line.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::SystemEntropy;

use crate::binary::{Dir, dir, signal};
use shef_fixtures::service::*;

/// A service whose log is read line by line.
struct Logged {
    child: Child,
    log: Option<BufReader<ChildStderr>>,
    client: Client,
    device: Device,
}

impl Logged {
    fn run(dir: &Dir, filter: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
            .args(["run", "--config", &dir.config])
            .env("SHEF_LOG", filter)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let ready = line(&mut log, |line| line["message"] == "listening");
        let address = format!("https://{}", ready["address"].as_str().unwrap());
        let client = Client::new(&dir.path, &address, Some("operator"));
        let service = Self { child, log: Some(log), client, device: Device::new(1) };
        service.furnish();
        service
    }

    fn furnish(&self) {
        furnish(&self.client, &self.device);
        self.client.put_key("data").ok();
    }

    fn release(&self) -> HttpResponse {
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let (session, nonce) = self.client.session(Layer::Shield, Some(&public));
        let evidence = b64(&self.device.evidence(Layer::Shield, &nonce));
        self.client
            .post("/v1/release", &json!({"key": "data", "session": session, "evidence": evidence}))
    }

    fn receipts(&self) -> u64 {
        self.client.get("/v1/receipts").ok()["head"]["seq"].as_u64().unwrap()
    }

    fn line(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        line(self.log.as_mut().unwrap(), is)
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until a line is as wanted.
fn line(log: &mut impl BufRead, is: impl Fn(&Value) -> bool) -> Value {
    let mut lines = log.by_ref().lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap());
    lines.find(is).expect("the service ended")
}

/// An operator finds the lines about a request by the id in its answer.
#[test]
fn the_answer_names_the_lines_of_its_request() {
    let dir = dir();
    let mut service = Logged::run(&dir, "info");
    let id = |answer: &HttpResponse| answer.headers["x-request-id"].to_str().unwrap().to_owned();
    let first = service.release();
    let second = service.release();
    let (first, second) = (id(&first), id(&second));
    assert!(first != second && first.len() == 32, "{first} {second}");
    for (id, receipt) in [(first, 1), (second, 2)] {
        let line = service.line(|line| line["receipt"] == receipt);
        assert_eq!(
            (line["action"].as_str(), line["span"]["id"].as_str()),
            (Some("release"), Some(&*id))
        );
    }
    // A refusal, too.
    let refused = service.client.post("/v1/keys/none/disable", &json!({}));
    let line = service.line(|line| line["action"] == "refused");
    assert_eq!(line["span"]["id"].as_str(), Some(&*id(&refused)));
}

#[test]
fn requests_go_on_without_a_reader_of_the_log() {
    let dir = dir();
    let mut service = Logged::run(&dir, "info");
    service.log = None;
    for released in 1..=3 {
        service.release().ok();
        assert_eq!(service.receipts(), released);
    }
    assert_eq!(service.client.get("/readyz").ok()["log"], "lost");
    let metrics = service.client.get("/metrics");
    let metrics = String::from_utf8(metrics.bytes).unwrap();
    let lost = metrics.lines().find_map(|line| line.strip_prefix("shef_log_lost_lines "));
    assert!(lost.unwrap().parse::<u64>().unwrap() >= 3, "{metrics}");
    // A reload logs, too.
    signal(&service.child, "-HUP");
    service.release().ok();
    assert_eq!(service.child.try_wait().unwrap(), None);
}

#[test]
fn requests_go_on_while_the_reader_of_the_log_stops() {
    let dir = dir();
    let service = Logged::run(&dir, "trace");
    // The pipe holds 64 KiB.
    for _ in 0..800 {
        assert_eq!(service.client.get("/healthz").status, 200);
    }
    for released in 1..=3 {
        service.release().ok();
        assert_eq!(service.receipts(), released);
    }
    // The end of the program waits for the reader, and not for ever.
    signal(&service.child, "-TERM");
    let mut service = service;
    assert!(service.child.wait().unwrap().success());
    let mut rest = Vec::new();
    service.log.take().unwrap().read_to_end(&mut rest).unwrap();
    assert!(
        rest.len() > 48_000,
        "{} bytes: the log was never stuck, the test shows nothing",
        rest.len()
    );
}

#[test]
fn a_required_log_has_a_line_of_each_release_before_it_is_committed() {
    let dir = dir();
    dir.configure(|text| format!("{text}\n[audit]\nrequired = true\n"));
    let mut service = Logged::run(&dir, "info");
    service.release().ok();
    let begins = service.line(|line| line["action"] == "release-begins");
    assert_eq!((&begins["key"], &begins["version"]), (&json!("data"), &json!(1)));
    assert_eq!(service.line(|line| line["receipt"] == 1)["action"], "release");
    assert_eq!(service.client.get("/readyz").ok()["log"], "written");
    service.log = None;
    for _ in 0..2 {
        let refused = service.release().problem(503, "SHEF-SVC-032");
        assert!(refused.to_string().contains("the line about this release was lost"), "{refused}");
    }
    service.client.get("/readyz").problem(503, "SHEF-SVC-032");
    assert_eq!(service.receipts(), 1);
}

#[test]
fn a_required_log_that_leaves_out_audit_lines_or_leads_nowhere_releases_nothing() {
    for filter in ["error", "off", "info,audit=off", "audit=error"] {
        let dir = dir();
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        dir.configure(|text| {
            format!("{text}\n[audit]\nrequired = true\n")
                .replace("127.0.0.1:0", &address.to_string())
        });
        let out = if filter == "off" { Stdio::null() } else { Stdio::piped() };
        let child = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
            .args(["run", "--config", &dir.config])
            .env("SHEF_LOG", if filter == "off" { "info" } else { filter })
            .stdout(Stdio::null())
            .stderr(out)
            .spawn()
            .unwrap();
        let client = Client::new(&dir.path, &format!("https://{address}"), Some("operator"));
        let mut service = Logged { child, log: None, client, device: Device::new(1) };
        let start = std::time::Instant::now();
        while service.client.try_send("GET", "/healthz", &[], b"").is_err() {
            assert!(start.elapsed().as_secs() < 60, "{filter}: the service does not start");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        service.furnish();
        service.release().problem(503, "SHEF-SVC-032");
        service.client.get("/readyz").problem(503, "SHEF-SVC-032");
        assert_eq!(service.receipts(), 0, "{filter}");
        assert_eq!(service.child.try_wait().unwrap(), None);
    }
}
