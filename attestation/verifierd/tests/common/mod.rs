//! A running service, its clients, and a device that makes evidence.
#![allow(dead_code, reason = "each test uses a part")]

mod described;
mod device;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
pub use device::*;
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_verifierd::app::Clock;
use shef_verifierd::auth::Identity;
use shef_verifierd::config::Config;
use shef_verifierd::init::{self, Setup};
use shef_verifierd::role::Role;
use shef_verifierd::run::{Running, start};
use tokio::runtime::Runtime;
use ureq::tls::{
    Certificate as Pem, ClientCert, PemItem, PrivateKey as PemKey, RootCerts, TlsConfig,
    TlsProvider, parse_pem,
};

pub const POLICY: &str = "id = \"default\"\nroot_of_trust = [\"shef-boot\"]\nmin_kernel_svn = 1\n";

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

pub fn b64(bytes: &[u8]) -> String {
    B64.encode(bytes)
}

pub fn unb64(value: &Value) -> Vec<u8> {
    B64.decode(value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))).unwrap()
}

/// An HTTP client with the identity of one of the folder's certificates, or without one.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    pub url: String,
    bearer: Option<String>,
}

pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|_| panic!("not JSON: {:?}", String::from_utf8_lossy(&self.bytes)))
    }

    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(
            (200..300).contains(&self.status),
            "{}: {}",
            self.status,
            String::from_utf8_lossy(&self.bytes)
        );
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// The bytes of a page or list.
    #[track_caller]
    pub fn ok_bytes(self) -> Vec<u8> {
        assert!(
            (200..300).contains(&self.status),
            "{}: {}",
            self.status,
            String::from_utf8_lossy(&self.bytes)
        );
        self.bytes
    }

    /// A problem of this status and code.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status, body["code"].as_str()), (status, Some(code)), "{body}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert!(
            body["title"].is_string()
                && !body["detail"].as_str().unwrap().is_empty()
                && body["status"] == status,
            "{body}"
        );
        body
    }
}

impl Client {
    pub fn new(dir: &Path, url: &str, name: Option<&str>) -> Self {
        let read = |file: &str| std::fs::read(dir.join(file)).unwrap();
        let authorities: Vec<Pem<'static>> = parse_pem(&read("ca.pem"))
            .map(|item| match item.unwrap() {
                PemItem::Certificate(certificate) => certificate,
                _ => panic!("ca.pem holds something else than certificates"),
            })
            .collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(
                rustls::crypto::aws_lc_rs::default_provider(),
            ))
            .root_certs(RootCerts::new_with_certs(&authorities))
            .client_cert(name.map(|name| {
                ClientCert::new_with_certs(
                    &[Pem::from_pem(&read(&format!("{name}.pem"))).unwrap()],
                    PemKey::from_pem(&read(&format!("{name}.key"))).unwrap(),
                )
            }))
            .build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .build()
            .into();
        Self { agent, url: url.into(), bearer: None }
    }

    pub fn with_token(&self, token: &str) -> Self {
        Self { bearer: Some(token.into()), ..self.clone() }
    }

    pub fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.bearer {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = if body.is_empty() && method != "POST" && method != "PUT" {
            self.agent.run(request.body(()).unwrap())?
        } else {
            self.agent.run(request.body(body).unwrap())?
        };
        let bytes = response.body_mut().with_config().limit(64 << 20).read_to_vec()?;
        let answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            bytes,
        };
        described::hold(method, path, &answer);
        Ok(answer)
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body).unwrap()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], b"")
    }

    pub fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.send(
            method,
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, body)
    }

    pub fn session(&self, layer: Layer, recipient: Option<&PublicKey>) -> (String, Vec<u8>) {
        let mut body = json!({"layer": layer.name()});
        if let Some(key) = recipient {
            body["recipient"] = json!(b64(key.as_bytes()));
        }
        let session = self.post("/v1/sessions", &body).ok();
        (
            session["session"].as_str().unwrap().to_owned(),
            STANDARD.decode(session["nonce"].as_str().unwrap()).unwrap(),
        )
    }
}

/// A running service in a temporary folder.
pub struct Service {
    pub dir: PathBuf,
    _folder: tempfile::TempDir,
    pub runtime: Runtime,
    pub running: Option<Running>,
    pub operator: Client,
}

pub fn set_up(dir: &Path) {
    let setup = Setup {
        listen: "127.0.0.1:0".into(),
        hosts: vec!["127.0.0.1".into(), "localhost".into()],
        audience: AUDIENCE.into(),
        tenant: "default".into(),
    };
    init::init(dir, &setup, now()).unwrap();
}

impl Service {
    pub fn start() -> Self {
        Self::with(|text| text, Clock::System)
    }

    /// With a changed configuration, and another clock.
    pub fn with(change: impl FnOnce(String) -> String, clock: Clock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("d");
        set_up(&dir);
        let file = dir.join("verifierd.toml");
        let text = change(std::fs::read_to_string(&file).unwrap());
        std::fs::write(&file, text).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let running = runtime.block_on(start(Config::read(&file).unwrap(), clock)).unwrap();
        let url = format!("https://{}", running.address);
        let operator = Client::new(&dir, &url, Some("operator"));
        Self { dir, _folder: folder, runtime, running: Some(running), operator }
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.running().address)
    }

    /// A client with a certificate of this role.
    pub fn client(&self, tenant: &str, role: Role, name: &str) -> Client {
        init::client(
            &self.dir,
            name,
            &Identity { tenant: tenant.into(), name: name.into(), role },
            now(),
        )
        .unwrap();
        Client::new(&self.dir, &self.url(), Some(name))
    }

    /// A client without a certificate.
    pub fn stranger(&self) -> Client {
        Client::new(&self.dir, &self.url(), None)
    }

    /// Registers manufacturer, reference values and a policy.
    pub fn furnish(&self, device: &Device) {
        furnish(&self.operator, device);
    }

    pub fn set_clock(&self, now: i64) {
        match &self.running().app.clock {
            Clock::Set(clock) => clock.store(now, Ordering::Relaxed),
            Clock::System => panic!("the service runs on the system's clock"),
        }
    }

    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop());
        }
    }

    /// Stops it if it runs, and starts it again on the same folder.
    pub fn restart(&mut self) {
        self.stop();
        let config = Config::read(&self.dir.join("verifierd.toml")).unwrap();
        let running = self.runtime.block_on(start(config, Clock::System)).unwrap();
        self.operator.url = format!("https://{}", running.address);
        self.running = Some(running);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn fixed_clock(now: i64) -> Clock {
    Clock::Set(AtomicI64::new(now))
}

pub fn furnish(operator: &Client, device: &Device) {
    let anchor =
        json!({"name": "maker", "kind": "shef-boot", "certificate": b64(device.root.der())});
    operator.post("/v1/trust-anchors", &anchor).ok();
    add_reference(operator, "build-1", &reference());
    operator
        .send(
            "PUT",
            "/v1/policies/default",
            &[("content-type", "application/toml")],
            POLICY.as_bytes(),
        )
        .ok();
}

pub fn add_reference(operator: &Client, id: &str, text: &str) {
    operator
        .send(
            "PUT",
            &format!("/v1/corims/{id}"),
            &[("content-type", "application/toml")],
            text.as_bytes(),
        )
        .ok();
}
