//! The services under test: two replicas on one PostgreSQL, of which one runs in this process and
//! has a clock that can be set, and one service on SQLite.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use shef_fixtures::postgres::Postgres;
use shef_fixtures::service::{Device, POLICY, b64, fixed_clock, now, reference, set_up};
use shef_verifierd::app::App;
use shef_verifierd::config::Config;
use shef_verifierd::run::{Running, start};
use shef_verifierd::secrets::sha256;
use shef_verifierd::time::Clock;
use tokio::runtime::Runtime;

use crate::Result;
use crate::accounts::Book;
use crate::client::{Client, Request, Service, done};
use crate::load::{KEYS, REVOKED, revoke};
use crate::process::Process;

/// The tenant that attacks.
pub const HOSTILE: &str = "hostile";
/// All tenants.
pub const TENANTS: [&str; 3] = ["default", "other", HOSTILE];
/// The roles of a tenant's tokens, by the names of the tokens.
const TOKENS: [(&str, &str); 5] = [
    ("operator", "operator"),
    ("audit", "audit"),
    ("release", "release"),
    ("attest", "attest"),
    ("second", "attest"),
];

/// The running services.
pub struct Machines {
    /// The database of the replicas.
    pub database: Postgres,
    /// The replica in a separate process.
    pub replica: Process,
    /// The service on SQLite.
    pub single: Process,
    /// The replica in this process.
    pub inner: Running,
    /// Seconds that its clock is ahead.
    pub ahead: Arc<AtomicI64>,
    /// What it runs on.
    pub runtime: Runtime,
    clock: (Arc<AtomicBool>, std::thread::JoinHandle<()>),
    program: PathBuf,
    book: Arc<Book>,
    _folder: tempfile::TempDir,
    folders: [PathBuf; 2],
}

/// The file of the process's configuration in the folder of a set-up.
const PROCESS: &str = "process.toml";
/// The file of the configuration of the replica in this process.
const INNER: &str = "verifierd.toml";

fn port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Writes a configuration with all tenants; the replica of a file listens at a port.
fn configure(folder: &Path, files: &[(&str, u16)], database: Option<&str>) -> Result<()> {
    let mut text = std::fs::read_to_string(folder.join(INNER))?;
    for tenant in TENANTS {
        // The first tenant is the last table of the file.
        if tenant != TENANTS[0] {
            text.push_str(&format!("[[tenant]]\nname = \"{tenant}\"\n"));
        }
        for (name, role) in TOKENS {
            let sha256 = hex::encode(sha256(format!("{tenant}-{name}").as_bytes()));
            text.push_str(&format!(
                "[[tenant.token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{sha256}\"\n"
            ));
        }
    }
    if let Some(url) = database {
        text = text.replace("sqlite:verifierd.db", url);
    }
    for (file, port) in files {
        std::fs::write(
            folder.join(file),
            text.replace("127.0.0.1:0", &format!("127.0.0.1:{port}")),
        )?;
    }
    Ok(())
}

/// Keeps a set clock going, some seconds ahead of the system's.
fn tick(
    app: Arc<App>,
    ahead: Arc<AtomicI64>,
    stop: Arc<AtomicBool>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            if let Clock::Set(clock) = &app.clock {
                clock.store(now() + ahead.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    })
}

impl Machines {
    /// Starts everything, and furnishes every tenant with reference values, a policy and keys.
    ///
    /// # Errors
    /// Something does not start.
    pub fn start(book: &Arc<Book>, database: Postgres) -> Result<(Self, [Service; 2])> {
        let program = std::env::current_exe()?.with_file_name("shef-verifierd");
        if !program.is_file() {
            let built = "build it with `cargo build --workspace --bin shef-verifierd`";
            return Err(format!("there is no {}: {built}", program.display()).into());
        }
        let folder = tempfile::tempdir()?;
        let folders = ["postgres", "sqlite"].map(|name| folder.path().join(name));
        let ports = [port()?, port()?, port()?];
        folders.iter().for_each(|folder| set_up(folder));
        configure(&folders[0], &[(PROCESS, ports[1]), (INNER, ports[0])], Some(&database.url()))?;
        configure(&folders[1], &[(PROCESS, ports[2])], None)?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let config = Config::read(&folders[0].join(INNER))?;
        let inner = runtime.block_on(start(config, fixed_clock(now())))?;
        let (ahead, stop) = (Arc::<AtomicI64>::default(), Arc::<AtomicBool>::default());
        let ticks = tick(Arc::clone(&inner.app), Arc::clone(&ahead), Arc::clone(&stop));
        let process = |folder: &Path| Process::start(&program, &folder.join(PROCESS), book);
        let machines = Self {
            replica: process(&folders[0])?,
            single: process(&folders[1])?,
            inner,
            ahead,
            runtime,
            clock: (stop, ticks),
            program: program.clone(),
            book: Arc::clone(book),
            database,
            _folder: folder,
            folders: folders.clone(),
        };
        let url = |port: u16| format!("https://127.0.0.1:{port}");
        let service = |name, folder: &Path, urls| Service {
            name,
            folder: folder.to_owned(),
            urls,
            windows: Default::default(),
            book: Arc::clone(book),
        };
        let services = [
            service("PostgreSQL", &folders[0], vec![url(ports[0]), url(ports[1])]),
            service("SQLite", &folders[1], vec![url(ports[2])]),
        ];
        for service in &services {
            for tenant in TENANTS {
                furnish(service, tenant)?;
            }
        }
        Ok((machines, services))
    }

    fn process(&self, folder: usize) -> Result<Process> {
        Process::start(&self.program, &self.folders[folder].join(PROCESS), &self.book)
    }

    /// Kills the replica in its process, and starts it again after a while.
    ///
    /// # Errors
    /// It does not start.
    pub fn kill_replica(&mut self, down: Duration) -> Result<()> {
        self.replica.kill();
        std::thread::sleep(down);
        self.replica = self.process(0)?;
        Ok(())
    }

    /// Kills the service on SQLite, and starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub fn kill_single(&mut self) -> Result<()> {
        self.single.kill();
        self.single = self.process(1)?;
        Ok(())
    }

    /// Has all replicas read their configurations again.
    ///
    /// # Errors
    /// The replica in this process cannot.
    pub fn reload(&self) -> Result<()> {
        self.replica.signal(Signal::HUP);
        self.single.signal(Signal::HUP);
        let config = Config::read(&self.folders[0].join(INNER))?;
        self.runtime.block_on(self.inner.reload(config))?;
        Ok(())
    }

    /// Makes new signing keys for both services.
    ///
    /// # Errors
    /// The command fails.
    pub fn rotate_signing_keys(&self) -> Result<()> {
        for folder in &self.folders {
            let mut rotate = Command::new(&self.program);
            let out = rotate
                .args(["signing", "rotate", "--config"])
                .arg(folder.join(PROCESS))
                .output()?;
            if !out.status.success() {
                return Err(String::from_utf8_lossy(&out.stderr).into_owned().into());
            }
        }
        Ok(())
    }

    /// Stops everything in order.
    pub fn stop(self) {
        let Self {
            mut replica, mut single, inner, runtime, clock: (stop, ticks), database, ..
        } = self;
        for process in [&mut replica, &mut single] {
            process.end();
        }
        runtime.block_on(inner.stop());
        stop.store(true, Ordering::Relaxed);
        let _ = ticks.join();
        drop(database);
    }
}

/// Makes reference values, a policy, a revocation and keys for a tenant.
fn furnish(service: &Service, tenant: &'static str) -> Result<()> {
    let operator = Client::new(service, tenant, "operator")?;
    let device = Device::new(REVOKED);
    let anchor =
        json!({"name": "maker", "kind": "shef-boot", "certificate": b64(device.root.der())});
    let ask = |request: Request| {
        operator
            .ask(&request, done)
            .ok_or_else(|| format!("{} is not furnished", operator.account()))
    };
    ask(Request::json("POST", "/v1/trust-anchors", &anchor))?;
    ask(Request::toml("/v1/corims/build-1", reference()))?;
    ask(Request::toml("/v1/policies/default", POLICY.to_owned()))?;
    for key in KEYS {
        let new = json!({"layer": "shield", "policy": "default", "generate": 32});
        ask(Request::json("PUT", format!("/v1/keys/{key}"), &new))?;
    }
    revoke(&operator, &device).ok_or("no device is revoked")?;
    Ok(())
}
