//! The same service on PostgreSQL, with two replicas: one nonce and one release for both. Skipped where PostgreSQL is not installed.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::*;
use serde_json::json;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::config::Config;
use shef_verifierd::run::start;
use shef_verifierd::secrets::SystemEntropy;

/// A server of its own in a folder, started as an unprivileged user; stopped when dropped.
struct Postgres {
    folder: tempfile::TempDir,
    bin: PathBuf,
    port: u16,
    user: bool,
}

fn find() -> Option<PathBuf> {
    let mut places: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin")).collect();
    places.sort();
    places.into_iter().rev().find(|bin| bin.join("initdb").exists() && bin.join("pg_ctl").exists())
}

impl Postgres {
    fn start() -> Option<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let bin = find()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        // PostgreSQL refuses to run as root.
        let root = Command::new("id").arg("-u").output().unwrap().stdout.trim_ascii() == b"0";
        let server = Self { folder, bin, port, user: root };
        let data = server.folder.path().join("data");
        let data = data.to_str().unwrap();
        let log = server.folder.path().join("log");
        server.run("initdb", &["-D", data, "-A", "trust", "-U", "shef"])?;
        let options = format!("-p {port} -k {} -c listen_addresses=127.0.0.1", server.folder.path().display());
        server.run("pg_ctl", &["-D", data, "-w", "-l", log.to_str().unwrap(), "-o", &options, "start"])?;
        server.run("createdb", &["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "shef", "verifier"])?;
        Some(server)
    }

    fn run(&self, program: &str, args: &[&str]) -> Option<()> {
        let path = self.bin.join(program);
        let mut command = if self.user {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        let status =
            command.args(args).current_dir(self.folder.path()).env("LC_ALL", "C").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.ok()?.success().then_some(())
    }

    fn url(&self) -> String {
        format!("postgres://shef@127.0.0.1:{}/verifier", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.folder.path().join("data");
        self.run("pg_ctl", &["-D", data.to_str().unwrap(), "-m", "immediate", "stop"]);
    }
}

fn config(dir: &Path) -> Config {
    Config::read(&dir.join("verifierd.toml")).unwrap()
}

#[test]
fn two_replicas_release_once_and_see_each_others_changes() {
    let Some(server) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed, or does not start as an unprivileged user");
        return;
    };
    let url = server.url();
    let first = Service::with(|text| text.replace("sqlite:verifierd.db", &url), Default::default());
    let second = first.runtime.block_on(start(config(&first.dir), Default::default())).unwrap();
    let other = Client::new(&first.dir, &format!("https://{}", second.address), Some("operator"));
    let device = Device::new(1);
    first.furnish(&device);
    first.operator.call("PUT", "/v1/keys/data", &json!({"layer": "shield", "policy": "default", "generate": 32})).ok();
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    for round in 0..12 {
        // A session of one replica is good at the other.
        let (session, nonce) = first.operator.session(Layer::Shield, Some(&public));
        let evidence = b64(&device.evidence(Layer::Shield, &nonce));
        let (path, body) = if round % 2 == 0 {
            ("/v1/release", json!({"key": "data", "session": session, "evidence": evidence}))
        } else {
            ("/v1/appraise", json!({"session": session, "evidence": evidence}))
        };
        let answers: Vec<Answer> = std::thread::scope(|scope| {
            let threads: Vec<_> = [&first.operator, &other, &first.operator, &other]
                .into_iter()
                .map(|client| scope.spawn(|| client.post(path, &body)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let good: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        if path == "/v1/release" {
            // Everybody gets the same bytes, counted once.
            assert_eq!(good.len(), 4);
            assert!(good.iter().all(|answer| answer.json() == good[0].json()));
        } else {
            assert_eq!(good.len(), 1, "exactly one wins");
        }
    }
    let key = other.get("/v1/keys/data").ok();
    let receipts = other.get("/v1/receipts").ok();
    assert_eq!((&key["versions"][0]["released"], receipts["receipts"].as_array().unwrap().len()), (&json!(6), 6));
    // A revocation at one replica counts at once for releases of the other.
    first.operator.post("/v1/revocations", &json!({"kind": "device", "value": hex::encode(device.ueid), "reason": "lost"})).ok();
    let (session, nonce) = other.session(Layer::Shield, Some(&public));
    let body = json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    other.post("/v1/release", &body).problem(422, "SHEF-SVC-043");
    first.operator.call("DELETE", &format!("/v1/revocations/device/{}", hex::encode(device.ueid)), &json!({})).ok();
    // Without its database the service says 503 and releases nothing.
    let (session, nonce) = other.session(Layer::Shield, Some(&public));
    let body = json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    drop(server);
    other.post("/v1/release", &body).problem(503, "SHEF-SVC-004");
    other.get("/readyz").problem(503, "SHEF-SVC-004");
    assert_eq!(other.get("/healthz").status, 200);
    first.runtime.block_on(second.stop());
}
