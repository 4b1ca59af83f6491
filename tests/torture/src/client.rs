//! Clients of a service: they go from replica to replica until one gives a final answer.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shef_fixtures::https::Https;

use crate::Result;
use crate::accounts::{Accounts, Book, Windows};

/// How long a client waits for one answer, as one behind a load balancer would.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after an answer that is not final.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client tries.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service: one process on SQLite, or replicas on one database.
pub struct Service {
    /// Name of its database.
    pub name: &'static str,
    /// The folder of its set-up.
    pub folder: PathBuf,
    /// The addresses of its replicas.
    pub urls: Vec<String>,
    /// When it cannot answer, and need not.
    pub windows: Mutex<Windows>,
    /// The accounts.
    pub book: Arc<Book>,
}

impl Service {
    /// Begins or ends a time in which the service need not answer.
    pub fn excuse(&self, begins: bool) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if begins { windows.open(Instant::now()) } else { windows.close(Instant::now()) }
    }

    fn counted(&self, from: Instant) -> Duration {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        windows.outside(from, Instant::now())
    }
}

/// The name of a tenant in the accounts: each service has its own tenants.
pub fn account(service: &Service, tenant: &str) -> String {
    format!("{} at {}", tenant, service.name)
}

/// A request.
pub struct Request {
    method: &'static str,
    path: String,
    media: &'static str,
    body: Vec<u8>,
}

impl Request {
    /// Without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), media: "", body: Vec::new() }
    }

    /// With a JSON body.
    pub fn json(method: &'static str, path: impl Into<String>, body: &Value) -> Self {
        let body = body.to_string().into_bytes();
        Self { method, path: path.into(), media: "application/json", body }
    }

    /// With a text in TOML.
    pub fn toml(path: impl Into<String>, body: String) -> Self {
        let (method, media) = ("PUT", "application/toml");
        Self { method, path: path.into(), media, body: body.into_bytes() }
    }
}

/// The tenants that do nothing wrong.
pub const INNOCENT: [&str; 2] = ["default", "other"];

/// Evidence, for a session.
pub fn submission(session: &str, evidence: &str) -> Value {
    json!({"session": session, "evidence": evidence})
}

/// A client of one tenant with one token.
pub struct Client<'a> {
    /// The service.
    pub service: &'a Service,
    /// Its tenant.
    pub tenant: &'static str,
    token: String,
    innocent: bool,
    replicas: Vec<Https>,
    turn: Cell<usize>,
}

impl<'a> Client<'a> {
    /// A client with the token `TENANT-ROLE`, whose requests are answered within a time.
    ///
    /// # Errors
    /// The service's certificates cannot be read.
    pub fn with_timeout(
        service: &'a Service,
        tenant: &'static str,
        role: &str,
        timeout: Duration,
    ) -> Result<Self> {
        let replica = |url: &String| Https::with_timeout(&service.folder, url, None, Some(timeout));
        let replicas = service.urls.iter().map(replica).collect::<Result<_>>()?;
        let innocent = INNOCENT.contains(&tenant);
        Ok(Self {
            innocent,
            service,
            tenant,
            token: format!("{tenant}-{role}"),
            replicas,
            turn: Cell::new(0),
        })
    }

    /// A client of an innocent tenant.
    ///
    /// # Errors
    /// The service's certificates cannot be read.
    pub fn new(service: &'a Service, tenant: &'static str, role: &str) -> Result<Self> {
        Self::with_timeout(service, tenant, role, TIMEOUT)
    }

    /// The name of its tenant in the accounts.
    pub fn account(&self) -> String {
        account(self.service, self.tenant)
    }

    fn book<T>(&self, entry: impl FnOnce(&mut Accounts) -> T) -> T {
        entry(&mut self.service.book.lock())
    }

    /// Sends a request to one replica; a body that is not JSON is null.
    pub fn send(&self, replica: usize, request: &Request) -> Option<(u16, Value)> {
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend((!request.media.is_empty()).then_some(("content-type", request.media)));
        let Request { method, path, body, .. } = request;
        let replica = &self.replicas[replica % self.replicas.len()];
        let answer = replica.send(method, path, &headers, body).ok()?;
        Some((answer.status, serde_json::from_slice(&answer.bytes).unwrap_or(Value::Null)))
    }

    /// Sends a request to replica after replica, until `read` finds the final answer; `None` if
    /// all time has passed without one.
    pub fn ask<T>(&self, request: &Request, read: impl Fn(u16, &Value) -> Option<T>) -> Option<T> {
        let (start, fault) = (Instant::now(), self.book(|book| book.now()));
        let (mut last, mut attempts) = (String::new(), 0);
        let answer = loop {
            self.turn.set(self.turn.get() + 1);
            attempts += 1;
            let answer = self.send(self.turn.get(), request);
            if let Some((status, body)) = &answer {
                if self.innocent {
                    self.book(Accounts::answered);
                }
                if let Some(answer) = read(*status, body) {
                    break Some(answer);
                }
            }
            last = answer.map_or_else(
                || "no answer".to_owned(),
                |(status, body)| format!("{status} {}: {}", body["code"], body["detail"]),
            );
            if self.service.counted(start) > PATIENCE {
                break None;
            }
            std::thread::sleep(PAUSE);
        };
        let what = format!(
            "{} {} of {}, {attempts} attempts{}",
            request.method,
            request.path,
            self.account(),
            if last.is_empty() { String::new() } else { format!(", the last but one: {last}") }
        );
        if answer.is_none() {
            eprintln!("torture: no final answer: {what}");
        }
        if self.innocent {
            self.book(|book| book.waited(fault, self.service.counted(start), &what));
        }
        answer
    }
}

/// Reads a status of success.
pub fn done(status: u16, body: &Value) -> Option<Value> {
    (200..300).contains(&status).then(|| body.clone())
}
