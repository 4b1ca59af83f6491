//! The service works the same on PostgreSQL with replicas: one nonce and one release for all of
//! them, despite failures of a replica, the database, its disk or a clock. Skipped if PostgreSQL is
//! not installed.

use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::backup;
use shef_verifierd::config::{Config, Database};
use shef_verifierd::erase::erase;
use shef_verifierd::problem::Kind;
use shef_verifierd::role::Role;
use shef_verifierd::run::{Running, start};
use shef_verifierd::secrets::{Kek, SystemEntropy};
use shef_verifierd::store::Store;
use shef_verifierd::time::Clock;
use tokio::runtime::Runtime;

use crate::binary::{Dir, Process, command, dir, run, signal, started};
use crate::deletes::adds_nothing;
use crate::places::token;
use shef_fixtures::postgres::Postgres;
use shef_fixtures::service::*;

/// Limits the size of files that the server writes for its present and future clients.
fn limit_files(server: &Postgres, runtime: &Runtime, bytes: &str) {
    let lock = std::fs::read_to_string(server.folder().join("data/postmaster.pid")).unwrap();
    let backends = "SELECT pid::TEXT FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let pids: Vec<(String,)> = runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        let pids = sqlx::query_as(backends).fetch_all(&pool).await.unwrap();
        pool.close().await;
        pids
    });
    let limit = |pid: &str| {
        let args = ["--pid", pid, &format!("--fsize={bytes}:")];
        server.command("prlimit".into()).args(args).status().unwrap().success()
    };
    assert!(limit(lock.lines().next().unwrap()));
    for (pid,) in pids {
        // The queried process has gone.
        limit(&pid);
    }
}

fn config(dir: &Path) -> Config {
    Config::read(&dir.join("verifierd.toml")).unwrap()
}

/// A set-up on the server, whose callers may send as much as they like.
pub fn unlimited(server: &Postgres) -> Dir {
    let dir = dir();
    dir.configure(|text| {
        format!(
            "{}\n[limits]\nrate = 1000000\nburst = 1000000\n",
            text.replace("sqlite:verifierd.db", &server.url())
        )
    });
    dir
}

/// A server with a certificate of another CA, or for another name, is rejected.
fn over_tls_or_not_at_all(server: &Postgres) {
    let folder = tempfile::tempdir().unwrap();
    let (runtime, kek) = (Runtime::new().unwrap(), Kek::new(&[7; 32]));
    set_up(&folder.path().join("other"));
    let other = folder.path().join("other/ca.pem");
    let ours = server.folder().join("tls/ca.pem");
    let open = |url: String| {
        runtime
            .block_on(Store::look(&Database::Postgres(url.into()), &kek, false))
            .map(|_| ())
            .map_err(|problem| problem.kind)
    };
    assert_eq!(open(server.url_with("localhost", &ours)), Ok(()));
    assert_eq!(open(server.url_with("localhost", &other)), Err(Kind::Store));
    assert_eq!(open(server.url_with("127.0.0.1", &ours)), Err(Kind::Store));
}

/// A database that cannot store every text, or not everything, is refused before it is used.
fn not_everything_can_be_stored(server: &Postgres) {
    let (runtime, kek) = (Runtime::new().unwrap(), Kek::new(&[7; 32]));
    let port = server.port.to_string();
    let args = ["-h", "127.0.0.1", "-p", &port, "-U", "shef", "-E", "LATIN1", "-T", "template0"];
    server.run("createdb", &[&args[..], &["--locale=C", "latin"]].concat()).unwrap();
    let url = server.url().replace("/verifier", "/latin");
    let open = |url: String| {
        let opened = runtime.block_on(Store::open(&Database::Postgres(url.into()), 2, &kek));
        opened.map(|_| ()).map_err(|problem| problem.detail)
    };
    let refused = open(url.clone()).unwrap_err();
    assert!(refused.contains("LATIN1") && refused.contains("expected UTF8"), "{refused}");
    server.run("createdb", &["-h", "127.0.0.1", "-p", &port, "-U", "shef", "rights"]).unwrap();
    let url = server.url().replace("/verifier", "/rights");
    open(url.clone()).unwrap();
    runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&url).await.unwrap();
        let grant = "CREATE ROLE little LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO little; \
                     GRANT CREATE ON SCHEMA public TO little; REVOKE INSERT ON event FROM little";
        sqlx::raw_sql(grant).execute(&pool).await.unwrap();
        pool.close().await;
    });
    let refused = open(url.replace("shef@", "little@")).unwrap_err();
    assert!(refused.contains("GRANT INSERT ON event TO little"), "{refused}");
}

/// The password of the database comes from a file that others cannot read.
#[test]
fn the_password_of_the_database_comes_from_a_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(server) = Postgres::start() else { return };
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        let make =
            "CREATE ROLE service LOGIN PASSWORD 'p@ss word'; GRANT ALL ON SCHEMA public TO service";
        sqlx::raw_sql(make).execute(&pool).await.unwrap();
        pool.close().await;
    });
    // From now on, the server asks this user for it.
    let hba = server.folder().join("data/pg_hba.conf");
    let rules = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, format!("host all service all scram-sha-256\n{rules}")).unwrap();
    let data = server.folder().join("data");
    server.run("pg_ctl", &["-D", data.to_str().unwrap(), "reload"]).unwrap();
    let dir = dir();
    let url = server.url().replace("shef@", "service@");
    dir.configure(|text| {
        let named = format!("{url}\"\npassword_file = \"db.password");
        text.replace("sqlite:verifierd.db", &named)
    });
    let file = dir.path.join("db.password");
    let write = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let fails = |code: &str, text: &str| {
        let output = command(&["check", "--config", &dir.config]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(code) && said.contains(text), "{said}");
        assert!(!said.contains("p@ss"), "{said}");
    };
    fails("SHEF-SVC-002", "db.password");
    write("wrong\n", 0o600);
    fails("SHEF-SVC-004", "password authentication failed");
    write("p@ss word\nmore\n", 0o600);
    fails("SHEF-SVC-002", "a password in one line");
    write("p@ss word\n", 0o644);
    fails("SHEF-SVC-003", "db.password");
    write("p@ss word\n", 0o600);
    assert!(command(&["check", "--config", &dir.config]).status.success());
    let mut replica = run(&dir);
    replica.client.get("/readyz").ok();
    signal(&replica.child, "-TERM");
    replica.child.wait().unwrap();
    // The tables are there at the second start, of which an operator need not hear.
    let (mut replica, log) = started(&dir);
    signal(&replica.child, "-TERM");
    replica.child.wait().unwrap();
    assert!(log.iter().all(|line| !line.to_string().contains("skipping")), "{log:#?}");
    // In the URL, it closes the configuration to others.
    let file = Path::new(&dir.config);
    dir.configure(|text| {
        let text = text.replace("password_file = \"db.password\"\n", "");
        text.replace("service@", "service:p%40ss%20word@")
    });
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
    fails("SHEF-SVC-003", "storage.password_file");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(command(&["check", "--config", &dir.config]).status.success());
}

/// PgBouncer in front of the server; it ends when the value is dropped.
struct Pooler(Child, u16);

impl Pooler {
    /// `None` if it is not installed.
    fn start(server: &Postgres, mode: &str) -> Option<Self> {
        let program = Path::new("/usr/sbin/pgbouncer").to_owned();
        let mut command = server.command(program.clone());
        let version = command.arg("--version").stdout(Stdio::piped()).output().ok()?;
        let version = String::from_utf8(version.stdout).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let minor = version.split(['.', '\n']).nth(1).and_then(|minor| minor.parse::<u32>().ok());
        // Newer versions can give each session its statements.
        let statements = if minor > Some(20) { "max_prepared_statements = 0\n" } else { "" };
        let file = server.folder().join("pgbouncer.ini");
        let text = format!(
            "[databases]\nverifier = host=127.0.0.1 port={} user=shef\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\nignore_startup_parameters = extra_float_digits,options\n{statements}",
            server.port
        );
        std::fs::write(&file, text).unwrap();
        let child = server.command(program).arg(&file).spawn().unwrap();
        let pooler = Self(child, port);
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "{version} does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(pooler)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_pooler_of_transactions_is_refused_by_name_and_one_of_sessions_serves() {
    let Some(server) = Postgres::start() else { return };
    let (runtime, kek) = (Runtime::new().unwrap(), Kek::new(&[7; 32]));
    for (mode, serves) in [("transaction", false), ("session", true)] {
        let Some(pooler) = Pooler::start(&server, mode) else {
            println!("skipped: PgBouncer is not installed");
            return;
        };
        let url = format!("postgres://shef@127.0.0.1:{}/verifier", pooler.1);
        let looked = runtime.block_on(Store::look(&Database::Postgres(url.into()), &kek, false));
        match looked {
            Ok(_) => assert!(serves, "{mode}"),
            Err(problem) => {
                let text = format!("{problem:?}");
                assert!(
                    !serves && text.contains("behind a pooler that pools transactions"),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn two_replicas_release_once_and_see_each_others_changes() {
    let Some(server) = Postgres::start() else { return };
    let url = server.url();
    over_tls_or_not_at_all(&server);
    not_everything_can_be_stored(&server);
    let first = Service::with(|text| text.replace("sqlite:verifierd.db", &url), Default::default());
    let second = first.runtime.block_on(start(config(&first.dir), Default::default())).unwrap();
    let other = Client::new(&first.dir, &format!("https://{}", second.address), Some("operator"));
    let device = Device::new(1);
    first.furnish(&device);
    first.operator.put_key("data").ok();
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    for round in 0..12 {
        // A session of one replica is valid at the other.
        let (session, nonce) = first.operator.session(Layer::Shield, Some(&public));
        let evidence = b64(&device.evidence(Layer::Shield, &nonce));
        let (path, body) = if round % 2 == 0 {
            ("/v1/release", json!({"key": "data", "session": session, "evidence": evidence}))
        } else {
            ("/v1/appraise", json!({"session": session, "evidence": evidence}))
        };
        let answers: Vec<HttpResponse> = std::thread::scope(|scope| {
            let threads: Vec<_> = [&first.operator, &other, &first.operator, &other]
                .into_iter()
                .map(|client| scope.spawn(|| client.post(path, &body)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let good: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        if path == "/v1/release" {
            // All get the same bytes, counted once.
            assert_eq!(
                good.len(),
                4,
                "{:?}",
                answers
                    .iter()
                    .map(|answer| String::from_utf8_lossy(&answer.bytes))
                    .collect::<Vec<_>>()
            );
            assert!(good.iter().all(|answer| answer.json() == good[0].json()));
        } else {
            assert_eq!(good.len(), 1, "exactly one wins");
        }
    }
    let (all, plain) = first.runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&url).await.unwrap();
        let count = "SELECT COUNT(*), COUNT(*) FILTER (WHERE NOT ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'shef-verifierd'";
        let counts: (i64, i64) = sqlx::query_as(count).fetch_one(&pool).await.unwrap();
        pool.close().await;
        counts
    });
    assert!(all > 0 && plain == 0, "{plain} of {all} connections without TLS");
    let key = other.get("/v1/keys/data").ok();
    let receipts = other.get("/v1/receipts").ok();
    assert_eq!(
        (&key["versions"][0]["released"], receipts["receipts"].as_array().unwrap().len()),
        (&json!(6), 6)
    );
    // A revocation at one replica takes effect at once for releases by the other.
    first
        .operator
        .post(
            "/v1/revocations",
            &json!({"kind": "device", "value": hex::encode(device.ueid), "reason": "lost"}),
        )
        .ok();
    let (session, nonce) = other.session(Layer::Shield, Some(&public));
    let body = json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    other.post("/v1/release", &body).problem(422, "SHEF-SVC-043");
    first
        .operator
        .call("DELETE", &format!("/v1/revocations/device/{}", hex::encode(device.ueid)), &json!({}))
        .ok();
    // Without its database the service answers 503 and releases nothing.
    let (session, nonce) = other.session(Layer::Shield, Some(&public));
    let body = json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
    drop(server);
    other.post("/v1/release", &body).problem(503, "SHEF-SVC-004");
    other.get("/readyz").problem(503, "SHEF-SVC-004");
    assert_eq!(other.get("/healthz").status, 200);
    first.runtime.block_on(second.stop());
}

/// Ends with the rows of a tenant locked by a replica that does not run.
#[test]
fn a_paused_replica_takes_nothing_from_the_others() {
    let Some(server) = Postgres::start() else { return };
    let (runtime, dir) = (Runtime::new().unwrap(), unlimited(&server));
    let replicas: Vec<Process> = (0..2).map(|_| run(&dir)).collect();
    let client = &replicas[1].client;
    let device = Device::new(1);
    furnish(client, &device);
    client.put_key("data").ok();
    let (paused, innocent) =
        (Cases::new(vec![replicas[0].client.clone()]), Cases::new(vec![client.clone()]));
    let stop = AtomicBool::new(false);
    let holds = async || {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        // Twice: a transaction that goes on is not held.
        let mut found = Vec::new();
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let query = "SELECT pid FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE state = 'idle in transaction' \
                         AND relation = 'tenant'::regclass AND mode = 'RowExclusiveLock'";
            let pids: Vec<(i32,)> = sqlx::query_as(query).fetch_all(&pool).await.unwrap();
            found.push(pids);
        }
        pool.close().await;
        found[0].iter().any(|pid| found[1].contains(pid))
    };
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (paused, stop) = (&paused, &stop);
            scope.spawn(move || paused.work(worker, stop));
        }
        let caught = (0..200).any(|_| {
            signal(&replicas[0].child, "-STOP");
            if runtime.block_on(holds()) {
                return true;
            }
            signal(&replicas[0].child, "-CONT");
            std::thread::sleep(Duration::from_millis(7));
            false
        });
        // Whatever happens, the replica goes on: its clients wait for it.
        let answers = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let request = innocent.request(client).expect("a session");
            let answer = client.post("/v1/release", &request).ok();
            let revoked =
                json!({"kind": "certificate", "value": "11".repeat(32), "reason": "lost"});
            client.post("/v1/revocations", &revoked).ok();
            assert_eq!(client.get("/readyz").status, 200);
            (request, answer)
        }));
        signal(&replicas[0].child, "-CONT");
        stop.store(true, Ordering::Relaxed);
        assert!(
            caught,
            "the replica was never paused within a transaction: the test shows nothing"
        );
        innocent
            .done
            .lock()
            .unwrap()
            .push(answers.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    });
    // What was undone is done again, and counted once.
    let all = innocent.done.into_inner().unwrap();
    paused.done.lock().unwrap().extend(all);
    paused.check(client);
    for mut replica in replicas {
        signal(&replica.child, "-TERM");
        replica.child.wait().unwrap();
    }
}

/// The row of a tenant is locked, and the tenant has more changes than the replica has connections:
/// another tenant's change is answered before any of them.
#[test]
fn changes_that_wait_for_a_row_take_no_connection_of_others() {
    let Some(server) = Postgres::start() else { return };
    let (runtime, dir) = (Runtime::new().unwrap(), unlimited(&server));
    dir.configure(|text| {
        let other = format!("[[tenant]]\nname = \"other\"\n{}", token("other-op", "operator"));
        text.replace("[limits]", &format!("{other}[limits]"))
    });
    let mut replica = run(&dir);
    let client = &replica.client;
    let other = Client::new(&dir.path, client.url(), None).with_token("other-op");
    let revoke = |client: &Client, byte: u8| {
        let what =
            json!({"kind": "certificate", "value": hex::encode([byte; 32]), "reason": "lost"});
        client.post("/v1/revocations", &what)
    };
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (pool, lock) = runtime.block_on(async {
            let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
            let mut lock = pool.begin().await.unwrap();
            sqlx::query("UPDATE tenant SET seq = seq WHERE name = 'default'")
                .execute(&mut *lock)
                .await
                .unwrap();
            (pool, lock)
        });
        for byte in 0..6 {
            let (revoke, answered) = (&revoke, &answered);
            scope.spawn(move || {
                let status = revoke(client, byte).status;
                answered.fetch_add(1, Ordering::Relaxed);
                assert!(status == 503 || status == 201, "{status}");
            });
        }
        // As many as may are waiting for the row.
        let waiting = async || {
            let query = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
            let (count,): (i64,) = sqlx::query_as(query).fetch_one(&pool).await.unwrap();
            count
        };
        let start = Instant::now();
        while runtime.block_on(waiting()) == 0 && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        let answer = revoke(&other, 0);
        let (before, held) = (answered.load(Ordering::Relaxed), runtime.block_on(waiting()));
        runtime.block_on(async {
            lock.rollback().await.unwrap();
            pool.close().await;
        });
        assert_eq!(answer.status, 201);
        assert_eq!(
            (before, held),
            (0, 1),
            "changes that were answered, and that held a connection"
        );
    });
    signal(&replica.child, "-TERM");
    replica.child.wait().unwrap();
}

/// The database ends sessions in the middle of releases: each is answered the first time.
#[test]
fn what_the_database_undoes_is_done_again() {
    let Some(server) = Postgres::start() else { return };
    let (runtime, dir) = (Runtime::new().unwrap(), unlimited(&server));
    let mut replica = run(&dir);
    let client = &replica.client;
    let device = Device::new(1);
    furnish(client, &device);
    client.put_key("data").ok();
    let cases = Cases::new(vec![client.clone()]);
    let (stop, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (cases, stop) = (&cases, &stop);
            scope.spawn(move || cases.work(worker, stop));
        }
        let start = Instant::now();
        let pool = runtime.block_on(sqlx::PgPool::connect(&server.url())).unwrap();
        while ended.load(Ordering::Relaxed) < 20 && start.elapsed() < Duration::from_secs(60) {
            let query = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'idle in transaction'";
            let (count,): (i64,) =
                runtime.block_on(sqlx::query_as(query).fetch_one(&pool)).unwrap();
            ended.fetch_add(count as usize, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(if count > 0 { 250 } else { 1 }));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(ended.into_inner() >= 20, "no release was undone: the test shows nothing");
    cases.check(client);
    let refused = cases.refused.load(Ordering::Relaxed);
    assert_eq!(refused, 0, "releases that were answered with 503");
    signal(&replica.child, "-TERM");
    replica.child.wait().unwrap();
}

/// Release requests, and every replica's responses to them.
struct Cases {
    device: Device,
    clients: Vec<Client>,
    /// Answered requests, with their responses.
    done: std::sync::Mutex<Vec<(Value, Value)>>,
    /// Responses with a retry status, and broken connections.
    refused: AtomicUsize,
}

impl Cases {
    fn new(clients: Vec<Client>) -> Self {
        let (done, refused) = (Default::default(), AtomicUsize::new(0));
        Self { device: Device::new(1), clients, done, refused }
    }

    fn request(&self, client: &Client) -> Option<Value> {
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let body = json!({"layer": "shield", "recipient": b64(public.as_bytes())}).to_string();
        let session = client
            .try_send(
                "POST",
                "/v1/sessions",
                &[("content-type", "application/json")],
                body.as_bytes(),
            )
            .ok()?
            .ok();
        let evidence = self.device.evidence(Layer::Shield, &unb64(&session["nonce"]));
        Some(json!({"key": "data", "session": session["session"], "evidence": b64(&evidence)}))
    }

    /// Tries replica after replica until one answers.
    fn release(&self, request: &Value, first: usize) -> Value {
        let (kind, body) = ([("content-type", "application/json")], request.to_string());
        for attempt in 0..400 {
            let client = &self.clients[(first + attempt) % self.clients.len()];
            match client.try_send("POST", "/v1/release", &kind, body.as_bytes()) {
                Ok(answer) if answer.status == 200 => return answer.json(),
                Ok(answer) => {
                    let code = answer.json()["code"].clone();
                    assert!(code == "SHEF-SVC-004" || code == "SHEF-SVC-030", "{code}");
                    answer.problem(503, code.as_str().unwrap());
                }
                Err(_) => {}
            }
            self.refused.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no replica answered");
    }

    /// Releases until `stop`; requests each release again from the next replica.
    fn work(&self, worker: usize, stop: &AtomicBool) {
        let mut number = worker;
        while !stop.load(Ordering::Relaxed) {
            number += 1;
            let Some(request) = self.request(&self.clients[number % self.clients.len()]) else {
                continue;
            };
            let answer = self.release(&request, number);
            assert_eq!(
                self.release(&request, number + 1),
                answer,
                "the same bytes from every replica"
            );
            self.done.lock().unwrap().push((request, answer));
        }
    }

    /// Each release is counted once, has one receipt, and is returned again unchanged.
    fn check(&self, client: &Client) -> usize {
        let done = self.done.lock().unwrap();
        for (request, answer) in done.iter() {
            assert_eq!(client.post("/v1/release", request).ok(), *answer);
        }
        let released =
            client.get("/v1/keys/data").ok()["versions"][0]["released"].as_u64().unwrap();
        assert_eq!(
            (released, client.get("/v1/receipts").ok()["head"]["seq"].as_u64().unwrap()),
            (done.len() as u64, done.len() as u64)
        );
        done.len()
    }
}

fn set_clock(replica: &Running, now: i64) {
    match &replica.app.clock {
        Clock::Set(clock) => clock.store(now, Ordering::Relaxed),
        Clock::System => panic!("the replica runs on the system's clock"),
    }
}

/// A database that was taken back to an earlier moment has forgotten nonces that were used since.
/// `restore` ends the sessions, so that nothing is released for them again.
#[test]
fn a_moment_of_the_database_is_restored_and_no_nonce_counts_twice() {
    let Some(server) = Postgres::start() else { return };
    let archive = server.folder().join("archive");
    std::fs::create_dir(&archive).unwrap();
    std::fs::set_permissions(&archive, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .unwrap();
    let (archive, runtime) = (archive.display(), Runtime::new().unwrap());
    let sql = |statements: &[&str]| {
        runtime.block_on(async {
            let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
            for statement in statements {
                let statement = sqlx::AssertSqlSafe((*statement).to_owned());
                sqlx::query(statement).execute(&pool).await.unwrap();
            }
            pool.close().await;
        });
    };
    sql(&[
        "ALTER SYSTEM SET archive_mode = on",
        &format!("ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'"),
    ]);
    server.stop();
    server.resume().unwrap();
    let dir = unlimited(&server);
    let mut first = run(&dir);
    let (device, client) = (Device::new(1), first.client.clone());
    furnish(&client, &device);
    client.put_key("data").ok();
    let port = server.port.to_string();
    let base = server.folder().join("base");
    let copy = ["-h", "127.0.0.1", "-p", &port, "-U", "shef", "-D", base.to_str().unwrap()];
    server.run("pg_basebackup", &copy).unwrap();
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let release = |client: &Client, (session, nonce): &(String, Vec<u8>)| {
        let evidence = b64(&device.evidence(Layer::Shield, nonce));
        let body = json!({"key": "data", "session": session, "evidence": evidence});
        client.post("/v1/release", &body)
    };
    let session = || client.session(Layer::Shield, Some(&public));
    let (before, after) = (session(), session());
    release(&client, &before).ok();
    sql(&["SELECT pg_create_restore_point('before')", "SELECT pg_switch_wal()"]);
    let lost = release(&client, &after).ok();
    sql(&["SELECT pg_switch_wal()"]);
    signal(&first.child, "-TERM");
    first.child.wait().unwrap();
    // The database is lost, and restored as it was before the second release.
    server.stop();
    let data = server.data();
    std::fs::remove_dir_all(&data).unwrap();
    let config = format!(
        "restore_command = 'cp {archive}/%f %p'\nrecovery_target_name = 'before'\nrecovery_target_action = 'pause'\n"
    );
    let mut own = server.command("cp".into());
    assert!(own.arg("-a").args([base.to_str().unwrap(), &data]).status().unwrap().success());
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(format!("{data}/postgresql.auto.conf"))
        .unwrap();
    std::io::Write::write_all(&mut file, config.as_bytes()).unwrap();
    let mut own = server.command("touch".into());
    assert!(own.arg(format!("{data}/recovery.signal")).status().unwrap().success());
    server.resume().unwrap();
    // The server pauses at that moment, and takes no changes until it is resumed.
    for name in ["check", "restore", "run"] {
        let output = command(&[name, "--config", &dir.config]);
        let said = String::from_utf8_lossy(&output.stderr);
        let helps = said.contains("SHEF-SVC-004") && said.contains("pg_wal_replay_resume()");
        assert!(!output.status.success() && helps, "{name}: {said}");
    }
    sql(&["SELECT pg_wal_replay_resume()"]);
    let asked = Instant::now();
    while !command(&["check", "--config", &dir.config]).status.success() {
        assert!(asked.elapsed() < Duration::from_secs(60), "the server stays in recovery");
        std::thread::sleep(Duration::from_millis(200));
    }
    let restored = command(&["restore", "--config", &dir.config]);
    let said = String::from_utf8(restored.stdout).unwrap();
    assert!(restored.status.success(), "{said}{}", String::from_utf8_lossy(&restored.stderr));
    assert!(said.contains("receipts 1 to 1 hold"), "{said}");
    let second = run(&dir);
    let client = &second.client;
    // Neither nonce is accepted again. The box from before that moment can be fetched again.
    let refused = release(client, &after).problem(409, "SHEF-SVC-042");
    assert!(refused["detail"].as_str().unwrap().contains("sessions from before"), "{refused}");
    let body =
        json!({"session": after.0, "evidence": b64(&device.evidence(Layer::Shield, &after.1))});
    let refused = client.post("/v1/appraise", &body).problem(409, "SHEF-SVC-042");
    assert!(refused["detail"].as_str().unwrap().contains("sessions from before"), "{refused}");
    release(client, &before).ok();
    // Beside a service, it is refused.
    let refused = command(&["restore", "--config", &dir.config]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("SHEF-SVC-009") && said.contains("stop every replica"), "{said}");
    assert_eq!(client.events("action", "restored", ["who", "what"]), [["service", ""]]);
    let head = &client.get("/v1/receipts").ok()["head"];
    assert!(head["seq"] == 1 && lost["head"]["seq"] == 2, "{head} {lost}");
    release(client, &client.session(Layer::Shield, Some(&public))).ok();
}

/// A replica with an old configuration adds nothing to a tenant that was erased, also when another has
/// begun the tenant anew.
#[test]
fn an_erased_tenant_is_closed_at_replicas_that_still_have_it() {
    let Some(server) = Postgres::start() else { return };
    let (url, more) = (server.url(), "\n[[tenant]]\nname = \"acme\"\n");
    let with = |text: String| text.replace("sqlite:verifierd.db", &url) + more;
    let stale = Service::with(with, Default::default());
    let (device, acme) = (Device::new(1), stale.client("acme", Role::Operator, "boss"));
    furnish(&acme, &device);
    acme.put_key("data").ok();
    let whole = config(&stale.dir);
    let mut without = whole.clone();
    without.tenants.retain(|tenant| tenant.name != "acme");
    let erased = stale.runtime.block_on(async {
        let current = start(without.clone(), Default::default()).await.unwrap();
        erase(&without, "acme", now()).await.unwrap();
        current
    });
    let events = || {
        let all = stale.runtime.block_on(backup::audit(&whole)).unwrap();
        all.iter().find(|audited| audited.tenant == "acme").unwrap().events
    };
    let before = events();
    adds_nothing(&acme, &device);
    assert_eq!(events(), before);
    // Another replica gets it again.
    stale.runtime.block_on(erased.reload(whole.clone())).unwrap();
    let new = Client::new(&stale.dir, &format!("https://{}", erased.address), Some("boss"));
    furnish(&new, &device);
    new.put_key("data").ok();
    acme.put_key("more").problem(403, "SHEF-SVC-067");
    let (session, nonce) = acme.session(Layer::Kernel, None);
    let body =
        json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
    acme.post("/v1/appraise", &body).problem(403, "SHEF-SVC-067");
    new.post("/v1/appraise", &body).ok();
    stale.furnish(&device);
    stale.runtime.block_on(erased.stop());
}

/// A service on a server with the tenant `acme`, whose operator and configuration without it come too.
fn with_acme(server: &Postgres) -> (Service, Client, Config) {
    let (url, more) = (server.url(), "\n[[tenant]]\nname = \"acme\"\n");
    let with = |text: String| text.replace("sqlite:verifierd.db", &url) + more;
    let service = Service::with(with, Default::default());
    let acme = service.client("acme", Role::Operator, "boss");
    let mut without = config(&service.dir);
    without.tenants.retain(|tenant| tenant.name != "acme");
    (service, acme, without)
}

/// Waits until a query finds as many.
fn until(runtime: &Runtime, pool: &sqlx::PgPool, query: &'static str, least: i64) {
    let start = Instant::now();
    while count(runtime, pool, query) < least {
        assert!(start.elapsed() < Duration::from_secs(20), "{query}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count(runtime: &Runtime, pool: &sqlx::PgPool, query: &'static str) -> i64 {
    runtime.block_on(async { sqlx::query_scalar(query).fetch_one(pool).await.unwrap() })
}

/// An erasure waits for what is being added.
#[test]
fn an_erasure_ends_after_what_is_being_added() {
    let Some(server) = Postgres::start() else { return };
    let (service, acme, without) = with_acme(&server);
    let (runtime, device) = (&service.runtime, Device::new(1));
    furnish(&acme, &device);
    // Both records last longer than the erasure would.
    let pool = runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$; \
                    CREATE TRIGGER slow AFTER INSERT ON appraisal FOR EACH ROW EXECUTE FUNCTION slow()";
        sqlx::raw_sql(slow).execute(&pool).await.unwrap();
        pool
    });
    let (session, nonce) = acme.session(Layer::Kernel, None);
    let genuine = device.evidence(Layer::Kernel, &nonce);
    let mut forged = genuine.clone();
    *forged.last_mut().unwrap() ^= 1;
    std::thread::scope(|scope| {
        for evidence in [genuine, forged] {
            let body = json!({"session": session, "evidence": b64(&evidence)});
            let acme = &acme;
            scope.spawn(move || acme.post("/v1/appraise", &body));
        }
        let sleeps = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        until(runtime, &pool, sleeps, 2);
        runtime.block_on(erase(&without, "acme", now())).unwrap();
    });
    let left = "SELECT (SELECT COUNT(*) FROM appraisal WHERE tenant = 'acme') + (SELECT COUNT(*) FROM used WHERE tenant = 'acme') \
                + (SELECT COUNT(*) FROM device WHERE tenant = 'acme')";
    assert_eq!(count(runtime, &pool, left), 0);
    runtime.block_on(pool.close());
}

/// Changes that wait for the row of a tenant while it is erased add nothing, although the replica has
/// lost the tenant by then.
#[test]
fn what_waits_for_an_erasure_adds_nothing() {
    let Some(server) = Postgres::start() else { return };
    let (service, acme, without) = with_acme(&server);
    let runtime = &service.runtime;
    add_policy(&acme);
    let (pool, held) = runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        let mut held = pool.begin().await.unwrap();
        let lock = "UPDATE tenant SET swept = swept WHERE name = 'acme'";
        sqlx::query(lock).execute(&mut *held).await.unwrap();
        (pool, held)
    });
    let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    std::thread::scope(|scope| {
        for version in 2..6 {
            let acme = &acme;
            scope.spawn(move || {
                let text = format!(
                    "id = \"p\"\nroot_of_trust = [\"simulated\"]\nmin_kernel_svn = {version}\n"
                );
                let toml = [("content-type", "application/toml")];
                acme.send("PUT", "/v1/policies/p", &toml, text.as_bytes())
            });
        }
        until(runtime, &pool, waits, 1);
        // The others wait for their turn in the service.
        std::thread::sleep(Duration::from_millis(300));
        // As a reload does first.
        service.running().app.withdraw(&without);
        let erasure = scope.spawn(|| runtime.block_on(erase(&without, "acme", now())).unwrap());
        until(runtime, &pool, waits, 2);
        runtime.block_on(held.commit()).unwrap();
        erasure.join().unwrap();
    });
    let after = "SELECT (SELECT COUNT(*) FROM policy WHERE tenant = 'acme') + (SELECT COUNT(*) FROM event WHERE tenant = 'acme' AND seq > \
                 (SELECT MAX(seq) FROM event WHERE tenant = 'acme' AND action = 'tenant-erase'))";
    assert_eq!(count(runtime, &pool, after), 0);
    runtime.block_on(pool.close());
}

/// The change of a caller that is removed while it waits for the database is not made.
#[test]
fn a_caller_that_is_removed_changes_nothing_any_more() {
    let Some(server) = Postgres::start() else { return };
    let (service, acme, without) = with_acme(&server);
    let runtime = &service.runtime;
    add_policy(&acme);
    let lost = |value: &str| json!({"kind": "serial", "value": value, "reason": "lost"});
    acme.post("/v1/revocations", &lost("01")).ok();
    let (pool, held) = runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        let mut held = pool.begin().await.unwrap();
        let lock = "UPDATE tenant SET swept = swept WHERE name = 'acme'";
        sqlx::query(lock).execute(&mut *held).await.unwrap();
        (pool, held)
    });
    let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let text = "id = \"p\"\nroot_of_trust = [\"simulated\"]\nmin_kernel_svn = 2\n";
    let toml = [("content-type", "application/toml")];
    std::thread::scope(|scope| {
        let change = || acme.send("PUT", "/v1/policies/p", &toml, text.as_bytes());
        let change = scope.spawn(change);
        until(runtime, &pool, waits, 1);
        let taken = scope.spawn(|| acme.post("/v1/revocations", &lost("02")));
        let given = scope.spawn(|| acme.send("DELETE", "/v1/revocations/serial/01", &[], b""));
        // These wait for their turn in the service.
        std::thread::sleep(Duration::from_millis(500));
        service.running().app.withdraw(&without);
        runtime.block_on(held.rollback()).unwrap();
        for refused in [change, given] {
            refused.join().unwrap().problem(503, "SHEF-SVC-030");
        }
        // What only takes a right away is done.
        taken.join().unwrap().ok();
    });
    let left = "SELECT (SELECT COUNT(*) FROM policy WHERE tenant = 'acme' AND name = 'p') + 10 * (SELECT COUNT(*) FROM revocation \
                WHERE tenant = 'acme')";
    assert_eq!(count(runtime, &pool, left), 20);
    runtime.block_on(pool.close());
}

/// `check` reports an empty database that `run` could not use, and `restore` makes no database.
#[test]
fn an_empty_database_is_no_restored_one_and_needs_the_right_to_make_tables() {
    let Some(server) = Postgres::start() else { return };
    let dir = unlimited(&server);
    let (runtime, check) = (Runtime::new().unwrap(), ["check", "--config", &dir.config]);
    let sql = |text: &'static str| {
        runtime.block_on(async {
            let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
            sqlx::raw_sql(text).execute(&pool).await.unwrap();
            pool.close().await;
        });
    };
    let fails = |args: &[&str], texts: [&str; 2]| {
        let output = command(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let all = texts.iter().all(|text| said.contains(text));
        assert!(!output.status.success() && all, "{args:?}: {said}");
    };
    let restore = ["restore", "--config", &dir.config];
    fails(&restore, ["SHEF-SVC-009", "the database is empty"]);
    let output = command(&check);
    assert!(String::from_utf8(output.stdout).unwrap().contains("the database is empty"));
    // Another user than the owner.
    sql("CREATE ROLE little LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    let owner = server.url();
    let little = owner.replace("shef@", "little@");
    dir.configure(|text| text.replace(&owner, &little));
    fails(&check, ["SHEF-SVC-004", "GRANT CREATE ON SCHEMA public TO little"]);
    sql("GRANT CREATE ON SCHEMA public TO little");
    assert!(command(&check).status.success());
    // And one that does not own the tables of an older version.
    dir.configure(|text| text.replace(&little, &owner));
    let mut service = run(&dir);
    signal(&service.child, "-TERM");
    service.child.wait().unwrap();
    sql(
        "ALTER TABLE tenant DROP COLUMN erased; UPDATE meta SET number = 8 WHERE name = 'version'; \
         GRANT ALL ON ALL TABLES IN SCHEMA public TO little",
    );
    fails(&["audit", "--config", &dir.config], ["SHEF-SVC-015", "the database has version 8"]);
    dir.configure(|text| text.replace(&owner, &little));
    fails(&check, ["SHEF-SVC-004", "ALTER TABLE anchor OWNER TO little"]);
    dir.configure(|text| text.replace(&little, &owner));
    assert!(command(&check).status.success());
    let restored = command(&restore);
    let said = String::from_utf8_lossy(&restored.stderr);
    let told = said.contains("extended") && said.contains("\"from\":8");
    assert!(restored.status.success() && told, "{said}");
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: replicas under load"]
    fn replicas_die_the_database_restarts_its_disk_fills_and_clocks_step() {
        let Some(server) = Postgres::start() else { return };
        let (runtime, dir) = (Runtime::new().unwrap(), unlimited(&server));
        let mut replicas: Vec<Process> = (0..3).map(|_| run(&dir)).collect();
        let clients: Vec<Client> = replicas.iter().map(|replica| replica.client.clone()).collect();
        let cases = Cases::new(clients);
        furnish(&cases.clients[0], &cases.device);
        cases.clients[0].put_key("data").ok();

        // Under load a replica is killed, then the database crashes and comes back.
        let stop = AtomicBool::new(false);
        let ready = |least: usize| {
            let start = Instant::now();
            while cases.done.lock().unwrap().len() < least {
                if start.elapsed() > Duration::from_secs(120) {
                    stop.store(true, Ordering::Relaxed);
                    panic!("nothing is released any more");
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (cases, stop) = (&cases, &stop);
                scope.spawn(move || cases.work(worker, stop));
            }
            ready(12);
            signal(&replicas[2].child, "-KILL");
            ready(24);
            server.crash();
            let before = cases.done.lock().unwrap().len();
            ready(before + 12);
            stop.store(true, Ordering::Relaxed);
        });
        replicas.pop().unwrap().child.wait().unwrap();
        assert!(
            cases.refused.load(Ordering::Relaxed) > 0,
            "nobody noticed the kill: the test shows nothing"
        );
        cases.check(&cases.clients[0]);

        // The disk is full: the table of appraisals cannot grow further.
        runtime.block_on(async {
        let pool = sqlx::PgPool::connect(&server.url()).await.unwrap();
        sqlx::query(
            "INSERT INTO appraisal SELECT 'nobody', int4send(n), 0, '', '', '', '', '', '', '', repeat('x', 1000) FROM generate_series(1, 1200) n",
        )
        .execute(&pool)
        .await
        .unwrap();
        pool.close().await;
    });
        limit_files(&server, &runtime, "1048576");
        let mut refused = Vec::new();
        for client in &cases.clients[..2] {
            // Free space in the last pages suffices for a few more.
            let full = (0..60).find_map(|_| {
                let request = cases.request(client).unwrap();
                let answer = client.post("/v1/release", &request);
                if answer.status == 200 {
                    cases.done.lock().unwrap().push((request, answer.json()));
                    return None;
                }
                answer.problem(503, "SHEF-SVC-004");
                Some(request)
            });
            refused.push(full.expect("a full disk: without one the test shows nothing"));
            cases.check(client);
        }
        limit_files(&server, &runtime, "unlimited");
        for request in refused {
            let answer = cases.release(&request, 0);
            cases.done.lock().unwrap().push((request, answer));
        }
        let total = cases.check(&cases.clients[1]);
        for replica in &mut replicas {
            signal(&replica.child, "-TERM");
            replica.child.wait().unwrap();
        }

        // Two replicas with separate clocks. One steps a day forward, sweeps, and steps back; the
        // other stays.
        let noon = now();
        let begin = || runtime.block_on(start(config(&dir.path), fixed_clock(noon))).unwrap();
        let (steps, stays) = (begin(), begin());
        let client = |replica: &Running| {
            Client::new(&dir.path, &format!("https://{}", replica.address), Some("operator"))
        };
        let (at_steps, at_stays) = (client(&steps), client(&stays));
        let (used, unused) = (cases.request(&at_steps).unwrap(), cases.request(&at_steps).unwrap());
        let answer = at_steps.post("/v1/release", &used).ok();
        set_clock(&steps, noon + 90_000);
        for request in [&used, &unused] {
            at_steps.post("/v1/release", request).problem(410, "SHEF-SVC-041");
        }
        runtime.block_on(steps.app.sweep()).unwrap();
        // The clock of the database has not moved: nothing was deleted, and no session is over.
        assert_eq!(at_stays.post("/v1/release", &used).ok(), answer);
        at_stays.post("/v1/release", &unused).ok();
        set_clock(&steps, noon);
        for client in [&at_steps, &at_stays] {
            assert_eq!(client.post("/v1/release", &used).ok(), answer);
            client.post("/v1/release", &cases.request(client).unwrap()).ok();
        }
        runtime.block_on(async {
            steps.stop().await;
            stays.stop().await;
        });
        // Every receipt of all of this is in the chain.
        let audit = String::from_utf8(command(&["audit", "--config", &dir.config]).stdout).unwrap();
        assert!(audit.contains(&format!("receipts 1 to {} hold", total + 4)), "{audit}");
    }
}
