//! A running `shef-verifierd` in a separate folder, and its clients.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};

use crate::Outcome;
use shef_fixtures::device::AUDIENCE;
use shef_fixtures::exchange::{self, Body, Exchange, RecordedRequest, Values};
pub use shef_fixtures::https::HttpResponse;
use shef_fixtures::https::Https;

/// The process, which ends when the value is dropped.
pub struct Service {
    folder: tempfile::TempDir,
    program: PathBuf,
    url: String,
    child: Child,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two tenants; anonymous clients belong to the first.
const MORE: &str = "\n[[tenant]]\nname = \"lab\"\n[compat]\nanonymous_tenant = \"default\"\nanonymous_resources = [\"default/key/one\", \"Default/Key/One\"]\n";

impl Service {
    pub fn start(program: &Path) -> Outcome<Self> {
        Self::start_in(tempfile::tempdir()?, program, MORE)
    }

    /// Starts it in a folder, with additional configuration.
    pub fn start_in(folder: tempfile::TempDir, program: &Path, more: &str) -> Outcome<Self> {
        let dir = folder.path().join("d");
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        set_up(program, &dir, &address.to_string())?;
        let config = dir.join("verifierd.toml");
        let text = std::fs::read_to_string(&config)? + more;
        std::fs::write(&config, text)?;
        let child = Command::new(program)
            .arg("run")
            .arg("--config")
            .arg(&config)
            .env("SHEF_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let service =
            Self { folder, program: program.to_owned(), url: format!("https://{address}"), child };
        let (client, start) = (service.anyone()?, Instant::now());
        while !client.send("GET", "/readyz", &[], b"").is_ok_and(|answer| answer.status == 200) {
            if start.elapsed() > Duration::from_secs(60) {
                return Err("shef-verifierd does not answer within a minute".into());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(service)
    }

    /// Changes the configuration, and has the service read it again.
    pub fn reload(&self, change: impl FnOnce(String) -> String) -> Outcome {
        let config = self.dir().join("verifierd.toml");
        std::fs::write(&config, change(std::fs::read_to_string(&config)?))?;
        quiet(Command::new("kill").args(["-HUP", &self.child.id().to_string()]))
    }

    /// Runs `check` on the configuration: it ends with this status, and names this code.
    pub fn check(&self, status: i32, code: &str) -> Outcome {
        let mut check = Command::new(&self.program);
        check.args(["check", "--config"]).arg(self.dir().join("verifierd.toml"));
        let output = check.stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(status) || !said.contains(code) {
            return Err(
                format!("check: {}, expected {status} {code}: {said}", output.status).into()
            );
        }
        Ok(())
    }

    fn dir(&self) -> PathBuf {
        self.folder.path().join("d")
    }

    /// An anonymous client.
    pub fn anyone(&self) -> Outcome<Client> {
        self.client("anyone", None)
    }

    /// The operator created by `init`.
    pub fn operator(&self) -> Outcome<Client> {
        self.client("operator", Some("operator"))
    }

    /// A new identity with a certificate.
    pub fn known(&self, tenant: &str, role: &str, name: &str) -> Outcome<Client> {
        let mut command = Command::new(&self.program);
        command
            .arg("client")
            .arg("--dir")
            .arg(self.dir())
            .args(["--tenant", tenant, "--role", role, "--name", name]);
        quiet(&mut command)?;
        self.client(role_label(role), Some(name))
    }

    fn client(&self, by: &'static str, name: Option<&str>) -> Outcome<Client> {
        let https = Https::new(&self.dir(), &self.url, name)?;
        Ok(Client { https, by, tape: None })
    }
}

fn role_label(role: &str) -> &'static str {
    if role == "operator" { "operator" } else { "another" }
}

/// Makes the folder of a service: its configuration, its keys and its CA.
pub fn set_up(program: &Path, dir: &Path, address: &str) -> Outcome {
    let mut init = Command::new(program);
    init.arg("init").arg("--dir").arg(dir);
    quiet(init.args(["--listen", address, "--audience", AUDIENCE]))
}

fn quiet(command: &mut Command) -> Outcome {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into())
    }
}

/// The record of a client.
#[derive(Default)]
pub struct Tape {
    values: Values,
    exchanges: Vec<Exchange>,
}

/// An HTTP client.
#[derive(Clone)]
pub struct Client {
    https: Https,
    by: &'static str,
    tape: Option<Rc<RefCell<Tape>>>,
}

/// What a case expects of a response.
pub trait Expect {
    /// The JSON of a response with this status.
    fn expect(&self, status: u16) -> Outcome<Value>;
}

impl Expect for HttpResponse {
    fn expect(&self, status: u16) -> Outcome<Value> {
        let text = || String::from_utf8_lossy(&self.bytes);
        if self.status != status {
            return Err(format!("status {}, expected {status}: {}", self.status, text()).into());
        }
        if self.bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.bytes)
            .map_err(|_| format!("{status}: not JSON: {:?}", text()).into())
    }
}

impl Client {
    /// The same client, recorded.
    pub fn on(&self, tape: &Rc<RefCell<Tape>>) -> Self {
        Self { tape: Some(Rc::clone(tape)), ..self.clone() }
    }

    /// Names a value of the next request for the record.
    pub fn know(&self, name: &'static str, value: &str) {
        if let Some(tape) = &self.tape {
            tape.borrow_mut().values.set(name, value);
        }
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Outcome<HttpResponse> {
        let answer = self.https.send(method, path, headers, body)?;
        if let Some(tape) = &self.tape {
            tape.borrow_mut().record(self.by, (method, path, headers, body), &answer);
        }
        Ok(answer)
    }

    pub fn call(&self, method: &str, path: &str, body: &Value) -> Outcome<HttpResponse> {
        self.send(
            method,
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        )
    }

    /// The same, expecting success.
    pub fn put(&self, method: &str, path: &str, media: &str, body: &[u8]) -> Outcome {
        let answer = self.send(method, path, &[("content-type", media)], body)?;
        if (200..300).contains(&answer.status) {
            Ok(())
        } else {
            Err(format!("{method} {path}: {}", String::from_utf8_lossy(&answer.bytes)).into())
        }
    }
}

impl Tape {
    fn record(
        &mut self,
        by: &str,
        (method, path, headers, body): (&str, &str, &[(&str, &str)], &[u8]),
        answer: &HttpResponse,
    ) {
        let hide = |text: &str| self.values.hide(text);
        let headers: BTreeMap<String, String> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), hide(value))).collect();
        let body = match std::str::from_utf8(body) {
            Ok(text) => Body::Text(hide(text)),
            Err(_) => Body::Bytes(hide(&B64.encode(body))),
        };
        let request = RecordedRequest {
            by: by.into(),
            method: method.into(),
            path: hide(path),
            headers,
            body,
        };
        let shape = exchange::RecordedAnswer::shape(
            answer.status,
            |name| answer.header(name),
            &answer.bytes,
        );
        self.exchanges.push(Exchange { request, answer: shape });
        self.values.learn(|name| answer.header(name), &answer.bytes);
    }

    /// Writes the record into its file, or compares it with the file.
    pub fn end(&self, name: &str, write: bool) -> Outcome {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("exchanges")
            .join(name)
            .with_extension("json");
        let text = serde_json::to_string_pretty(&json!(self.exchanges))? + "\n";
        if write {
            return Ok(std::fs::write(&path, text)?);
        }
        if std::fs::read_to_string(&path).is_ok_and(|known| known == text) {
            return Ok(());
        }
        Err(format!(
            "the exchange differs from {}; `cargo xtask compat --write` records it anew",
            path.display()
        )
        .into())
    }
}
