//! Long-term guarantees for operators: no revoked or removed item returns, strangers cannot push
//! out valid data, kept data is verifiable and private to its owner, and the service reports what
//! it ignores.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use shef_proto::cert;
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::app::published;
use shef_verifierd::auth::Identity;
use shef_verifierd::config::Config;
use shef_verifierd::problem::{Kind, Problem};
use shef_verifierd::role::Role;
use shef_verifierd::secrets::{SystemEntropy, read_secret, sha256};
use shef_verifierd::time::Clock;
use shef_verifierd::time::DAY;
use shef_verifierd::{backup, check, init, keyring, run, signing, store, tls};
use shef_verify::ReferenceValues;
use shef_verify::corim::{CorimSigner, Describe, write_signed};

use shef_fixtures::service::*;

const TOML: &[(&str, &str)] = &[("content-type", "application/toml")];

pub fn config(service: &Service) -> Config {
    Config::read(&service.dir.join("verifierd.toml")).unwrap()
}

pub fn reload(service: &Service, change: impl FnOnce(String) -> String) -> Vec<&'static str> {
    let file = service.dir.join("verifierd.toml");
    std::fs::write(&file, change(std::fs::read_to_string(&file).unwrap())).unwrap();
    service.runtime.block_on(service.running().reload(config(service))).unwrap()
}

/// Runs statements on a service's database, beside the service.
pub fn sql(service: &Service, statements: &[&str]) {
    service.runtime.block_on(async {
        let pool = sqlx::SqlitePool::connect(service.dir.join("verifierd.db").to_str().unwrap())
            .await
            .unwrap();
        for statement in statements {
            sqlx::query(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&pool).await.unwrap();
        }
        pool.close().await;
    });
}

pub fn number(service: &Service, query: &str) -> i64 {
    service.runtime.block_on(async {
        let pool = sqlx::SqlitePool::connect(service.dir.join("verifierd.db").to_str().unwrap())
            .await
            .unwrap();
        let (number,): (i64,) =
            sqlx::query_as(sqlx::AssertSqlSafe(query.to_owned())).fetch_one(&pool).await.unwrap();
        pool.close().await;
        number
    })
}

/// A signer of CoRIMs, and its registration.
fn vendor(operator: &Client) -> SigningKey {
    let key = SigningKey::generate(&mut SeededEntropy::new(5, "signer"));
    let signer = CorimSigner::with_key("vendor", key.public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&VENDOR);
    operator.send("PUT", "/v1/signers/vendor", TOML, signer.to_toml().as_bytes()).ok();
    key
}

fn put(
    operator: &Client,
    key: &SigningKey,
    id: &str,
    version: u64,
    not_after: Option<i64>,
) -> HttpResponse {
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let corim = write_signed(
        &values,
        &Describe { id: "digits", version, issuer: "vendor", not_after },
        key,
        None,
    )
    .unwrap();
    operator.send(
        "PUT",
        &format!("/v1/corims/{id}"),
        &[("content-type", "application/rim+cose")],
        &corim,
    )
}

#[test]
fn an_older_corim_never_comes_back() {
    let start = now();
    let mut service = Service::with(|text| text, fixed_clock(start));
    let (operator, device) = (service.operator.clone(), Device::new(1));
    service.furnish(&device);
    operator.send("DELETE", "/v1/corims/build-1", &[], b"").ok();
    let key = vendor(&operator);
    let appraise = |operator: &Client| {
        let (session, nonce) = operator.session(Layer::Kernel, None);
        operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))})).status
    };
    put(&operator, &key, "one", 1, None).ok();
    put(&operator, &key, "two", 2, Some(start + 100)).ok();
    assert_eq!(appraise(&operator), 200);
    // The newer one expires: the older one, which does not expire, does not replace it.
    service.set_clock(start + 101);
    assert_eq!(appraise(&operator), 422);
    // Nor if the newer one is deleted, nor when the older one is activated or sent again.
    operator.send("DELETE", "/v1/corims/two", &[], b"").ok();
    assert_eq!(appraise(&operator), 422);
    operator.send("POST", "/v1/corims/one/deactivate", &[], b"").ok();
    let refused =
        operator.send("POST", "/v1/corims/one/activate", &[], b"").problem(422, "SHEF-SVC-052");
    assert!(refused["detail"].as_str().unwrap().contains("SHEF-ATT-081"), "{refused}");
    operator.send("DELETE", "/v1/corims/one", &[], b"").ok();
    put(&operator, &key, "again", 1, None).problem(422, "SHEF-SVC-052");
    service.restart();
    let operator = service.operator.clone();
    put(&operator, &key, "again", 1, None).problem(422, "SHEF-SVC-052");
    put(&operator, &key, "three", 3, None).ok();
    assert_eq!(appraise(&operator), 200);
}

#[test]
fn what_nobody_signed_keeps_a_digest_under_a_quota_of_its_own() {
    let limits =
        "\n[limits]\nrate = 100000\nburst = 100000\n[retention]\nappraisals = 3\nunproven = 5\n";
    let service = Service::with(|text| format!("{text}{limits}"), Clock::System);
    let (operator, device) = (&service.operator, Device::new(1));
    service.furnish(&device);
    let (session, nonce) = operator.session(Layer::Kernel, None);
    operator
        .post(
            "/v1/appraise",
            &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))}),
        )
        .ok();
    let genuine =
        operator.get("/v1/appraisals").ok()["appraisals"][0]["id"].as_str().unwrap().to_owned();
    let stranger = service.client("default", Role::Attest, "stranger");
    for round in 0..30u8 {
        let junk = vec![round; 40_000];
        let body = json!({"nonce": b64(&[round; 32]), "layer": "kernel", "evidence": b64(&junk)});
        let id = stranger.post("/v1/appraise", &body).problem(422, "SHEF-SVC-043")["appraisal_id"]
            .as_str()
            .unwrap()
            .to_owned();
        if round == 29 {
            let kept = operator.get(&format!("/v1/appraisals/{id}")).ok();
            assert_eq!(kept["evidence_sha256"], hex::encode(sha256(&junk)), "{kept}");
        }
    }
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    operator.get(&format!("/v1/appraisals/{genuine}")).ok();
    let kept = operator.get("/v1/appraisals").ok()["appraisals"].as_array().unwrap().len();
    assert!((6..=7).contains(&kept), "{kept}");
    assert_eq!(
        number(&service, "SELECT SUM(LENGTH(evidence)) FROM appraisal WHERE genuine = 0"),
        0
    );
    assert_eq!(
        number(
            &service,
            "SELECT COUNT(*) FROM appraisal WHERE genuine = 1 AND LENGTH(evidence) > 0"
        ),
        1
    );
}

/// Links of certificate managers and orchestrators are root's.
#[test]
fn root_takes_no_key_of_another_user() {
    use std::os::unix::fs::{lchown, symlink};
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("v");
    set_up(&dir);
    let config = Config::read(&dir.join("verifierd.toml")).unwrap();
    let reads = |file: &str| match file {
        "kek" | "signing.key" => read_secret(&dir.join(file)).map(drop),
        _ => tls::server(&config.tls, now()).map(drop),
    };
    for file in ["kek", "signing.key", "server.key", "server.pem", "ca.pem"] {
        let (path, real) = (dir.join(file), dir.join(format!("{file}.real")));
        std::fs::rename(&path, &real).unwrap();
        symlink(&real, &path).unwrap();
        reads(file).unwrap();
        if lchown(&path, Some(4001), None).is_err() {
            println!("skipped: only root can give files away");
            return;
        }
        let problem = reads(file).unwrap_err();
        assert!(problem.detail.contains("belongs to user 4001"), "{file}: {problem}");
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&real, &path).unwrap();
    }
}

#[test]
fn a_caller_with_many_appraisals_removes_no_record_of_another() {
    let limits =
        "\n[limits]\nrate = 100000\nburst = 100000\n[retention]\nappraisals = 10\nunproven = 10\n";
    let start = now();
    let service = Service::with(|text| format!("{text}{limits}"), fixed_clock(start));
    let device = Device::new(1);
    service.furnish(&device);
    let [few, many] = ["few", "many"].map(|name| service.client("default", Role::Attest, name));
    let mut second = start;
    // Records of genuine and of other evidence.
    let mut appraise = |client: &Client| {
        second += 1;
        service.set_clock(second);
        let (session, nonce) = client.session(Layer::Kernel, None);
        let evidence = b64(&device.evidence(Layer::Kernel, &nonce));
        client.post("/v1/appraise", &json!({"session": session, "evidence": evidence})).ok();
        let junk = b64(&second.to_be_bytes());
        let junk = json!({"nonce": b64(&[1; 32]), "layer": "kernel", "evidence": junk});
        client.post("/v1/appraise", &junk).problem(422, "SHEF-SVC-043");
    };
    let records = |of: &str, genuine: u8| {
        number(
            &service,
            &format!(
                "SELECT COUNT(*) FROM appraisal WHERE genuine = {genuine} AND caller LIKE '%:{of}'"
            ),
        )
    };
    appraise(&few);
    (0..12).for_each(|_| appraise(&many));
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    for genuine in [0, 1] {
        assert_eq!((records("few", genuine), records("many", genuine)), (1, 9), "{genuine}");
    }
    // The newest ones of the caller with more records stay.
    let oldest = "SELECT MIN(time) FROM appraisal WHERE genuine = 1 AND caller LIKE '%:many'";
    assert_eq!(number(&service, oldest), start + 5);
    // Both have more than half: each keeps half.
    (0..12).for_each(|_| appraise(&few));
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    for genuine in [0, 1] {
        assert_eq!((records("few", genuine), records("many", genuine)), (5, 5), "{genuine}");
    }
}

#[test]
fn a_signers_certificate_is_watched() {
    let service = Service::start();
    let operator = &service.operator;
    let ends = now() + 5 * DAY;
    let authority = SigningKey::generate(&mut SeededEntropy::new(6, "authority"));
    let root = cert::issue_root(&authority, "vendor", now() - DAY, ends);
    let signer = CorimSigner::with_authority("vendor", &root).unwrap().for_kernels();
    operator.send("PUT", "/v1/signers/vendor", TOML, signer.to_toml().as_bytes()).ok();
    let metrics = String::from_utf8(operator.get("/metrics").bytes).unwrap();
    let left = |of: &str| -> Option<i64> {
        let line = format!("shef_certificate_seconds_left{{of=\"{of}\"}} ");
        metrics.lines().find_map(|text| text.strip_prefix(&line)).map(|text| text.parse().unwrap())
    };
    assert!((5 * DAY - 60..=5 * DAY).contains(&left("signer").unwrap()), "{metrics}");
    assert!(left("server") > Some(300 * DAY) && left("client-ca") > Some(3000 * DAY), "{metrics}");
    let report = service.runtime.block_on(check::check(&config(&service), now())).unwrap();
    assert!(report.warnings.iter().any(|text| text.contains("signer")), "{report:?}");
    assert_eq!(
        run::ends_soon("crl", -11 * DAY).unwrap(),
        "a revocation list has ended, 11 days ago: every client certificate is refused"
    );
    assert!(run::ends_soon("crl", DAY).unwrap().contains("ends soon, in 1 days: then every"));
    assert!(
        run::ends_soon("signer", 20 * DAY).is_none() && run::ends_soon("crl", 3 * DAY).is_none()
    );
}

/// Three old releases, and one of today.
fn released(service: &Service, device: &Device) {
    service.furnish(device);
    service.operator.put_key("data").ok();
    (0..4).for_each(|_| drop(release(service, device).ok()));
}

fn release(service: &Service, device: &Device) -> HttpResponse {
    let operator = &service.operator;
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let (session, nonce) = operator.session(Layer::Shield, Some(&public));
    let evidence = b64(&device.evidence(Layer::Shield, &nonce));
    let body = json!({"key": "data", "session": session, "evidence": evidence});
    operator.post("/v1/release", &body)
}

#[test]
fn that_receipts_were_forgotten_is_signed() {
    let service = Service::with(
        |text| format!("{text}\n[retention]\nreceipt_days = 1\n"),
        fixed_clock(now()),
    );
    released(&service, &Device::new(1));
    let audit = || {
        service
            .runtime
            .block_on(backup::audit(&config(&service)))
            .map_err(|problem| (problem.kind, problem.detail))
    };
    let bad = |code: &str| {
        let (kind, detail) = audit().unwrap_err();
        assert!(kind == Kind::Audit && detail.contains(code), "{detail}");
    };
    assert_eq!(audit().unwrap()[0].head.seq, 4);
    // The service does not delete an altered receipt: it signs no statement about it.
    sql(
        &service,
        &["UPDATE receipt SET content = (SELECT content FROM receipt WHERE seq = 1) WHERE seq = 2"],
    );
    service.set_clock(now() + 2 * DAY);
    let sweep =
        || service.runtime.block_on(service.running().app.sweep()).map_err(|problem| problem.kind);
    assert_eq!(sweep(), Err(Kind::Audit));
    bad("SHEF-PRO-091");
    drop(service);

    let service = Service::with(
        |text| format!("{text}\n[retention]\nreceipt_days = 1\n"),
        fixed_clock(now()),
    );
    released(&service, &Device::new(1));
    let audit = || {
        service
            .runtime
            .block_on(backup::audit(&config(&service)))
            .map_err(|problem| (problem.kind, problem.detail))
    };
    // The signed time decides, whatever the column of the database says.
    sql(&service, &["UPDATE receipt SET time = 0"]);
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    assert_eq!(audit().unwrap()[0].from.seq, 0);
    service.set_clock(now() + 2 * DAY);
    service.runtime.block_on(service.running().app.sweep()).unwrap();
    let page = service.operator.get("/v1/receipts").ok();
    assert_eq!(
        (page["kept"]["seq"].as_i64(), page["receipts"].as_array().unwrap().len()),
        (Some(3), 1),
        "{page}"
    );
    assert!(page["kept"]["statement"].is_string());
    assert_eq!(audit().unwrap()[0].from.seq, 3);
    assert!(
        service.operator.get("/v1/events").ok()["events"]
            .to_string()
            .contains("receipts-forgotten")
    );
    // A larger deletion, recorded in the database, lacks the signature.
    let head = "(SELECT head FROM tenant WHERE name = 'default')";
    sql(
        &service,
        &[
            &format!("UPDATE tenant SET kept_seq = 4, kept_head = {head} WHERE name = 'default'"),
            "DELETE FROM receipt",
        ],
    );
    let (kind, detail) = audit().unwrap_err();
    assert!(kind == Kind::Audit && detail.contains("SHEF-PRO-093"), "{detail}");
}

/// Receipts name the newest event: without the signing key, an event before a release can be neither
/// removed nor replaced.
#[test]
fn events_before_a_release_cannot_be_taken_away() {
    let service = Service::start();
    released(&service, &Device::new(1));
    let audit = || service.runtime.block_on(backup::audit(&config(&service)));
    let whole = audit().unwrap().remove(0);
    assert!(whole.events > 0);
    // Nothing is released, and so signed, over an event without its digest.
    let last = "(SELECT MAX(seq) FROM event)";
    let digest = "(SELECT content FROM meta WHERE name = 'kept')";
    sql(
        &service,
        &[
            &format!("INSERT INTO meta SELECT 'kept', 0, digest FROM event WHERE seq = {last}"),
            &format!("UPDATE event SET digest = X'' WHERE seq = {last}"),
        ],
    );
    release(&service, &Device::new(1)).problem(500, "SHEF-SVC-033");
    sql(&service, &[&format!("UPDATE event SET digest = {digest} WHERE seq = {last}")]);
    audit().unwrap();
    sql(&service, &["DELETE FROM event WHERE seq = (SELECT MAX(seq) FROM event)"]);
    let problem = audit().unwrap_err();
    assert!(problem.kind == Kind::Audit && problem.detail.contains("SHEF-PRO-095"), "{problem}");
    // The same for events whose digests were computed anew.
    let rows = service.runtime.block_on(service.running().app.store.events("default", 0, 1000));
    let mut previous = Vec::new();
    for mut row in rows.unwrap() {
        row.who = "nobody".into();
        previous = row.content().digest("default", &previous).to_vec();
        let digest = hex::encode(&previous);
        let set = format!(
            "UPDATE event SET who = 'nobody', digest = X'{digest}' WHERE seq = {}",
            row.seq
        );
        sql(&service, &[&set]);
    }
    let problem = audit().unwrap_err();
    assert!(problem.detail.contains("SHEF-PRO-095"), "{problem}");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn databases_and_backups_are_their_owners_alone() {
    let mut service = Service::start();
    let files =
        ["verifierd.db", "verifierd.db-wal", "verifierd.db-shm"].map(|name| service.dir.join(name));
    assert_eq!([mode(&files[0]), mode(&files[1]), mode(&files[2])], [0o600; 3]);
    // A file of an older version, or a careless copy: made private at the next start.
    service.stop();
    std::fs::set_permissions(&files[0], std::fs::Permissions::from_mode(0o644)).unwrap();
    service.restart();
    assert_eq!([mode(&files[0]), mode(&files[1])], [0o600; 2]);
    let copy = service.dir.join("copy.db");
    service.runtime.block_on(backup::backup(&config(&service), &copy)).unwrap();
    assert_eq!(mode(&copy), 0o600);
    service.stop();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o644)).unwrap();
    files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    service.runtime.block_on(backup::restore(&config(&service), &copy, now())).unwrap();
    assert_eq!(mode(&files[0]), 0o600);
}

#[test]
fn changes_and_refusals_are_events_of_one_chain() {
    let service = Service::start();
    let operator = &service.operator;
    service.furnish(&Device::new(1));
    operator.put_key("data").ok();
    operator
        .call("POST", "/v1/keys/data/rotate", &json!({"policy": "default", "generate": 32}))
        .ok();
    // The second time nothing changes, and no change is recorded.
    for _ in 0..2 {
        assert_eq!(operator.post("/v1/keys/data/disable", &json!({"version": 1})).status, 204);
    }
    operator.post("/v1/keys/data/disable", &json!({"version": 9})).problem(404, "SHEF-SVC-020");
    operator.send("DELETE", "/v1/trust-anchors/nobody", &[], b"").problem(404, "SHEF-SVC-020");
    let guest = service.client("default", Role::Attest, "guest");
    for _ in 0..100 {
        guest.send("DELETE", "/v1/trust-anchors/maker", &[], b"").problem(403, "SHEF-SVC-028");
    }
    let auditor = service.client("default", Role::Audit, "auditor");
    auditor.post("/v1/keys/data/enable", &json!({"version": 1})).problem(403, "SHEF-SVC-028");
    let rows = operator.get("/v1/events?limit=1000").ok()["events"].as_array().unwrap().clone();
    let of = |action: &str| -> Vec<String> {
        rows.iter()
            .filter(|row| row["action"] == action)
            .map(|row| {
                format!("{} {}", row["who"].as_str().unwrap(), row["what"].as_str().unwrap())
            })
            .collect()
    };
    assert_eq!(of("key-add"), ["operator data version 1"]);
    assert_eq!(of("key-rotate"), ["operator data version 2"]);
    assert_eq!(of("key-disable"), ["operator data version 1"]);
    assert!(of("trust-anchor-remove").is_empty());
    let refused = of("refused");
    assert_eq!(refused[0], "operator POST /v1/keys/{name}/disable 404 SHEF-SVC-020");
    assert_eq!(refused[2], "guest DELETE /v1/trust-anchors/{name} 403 SHEF-SVC-028");
    // Persistent refusals of one identity do not fill the disk, and do not hide others'.
    assert_eq!(refused.iter().filter(|refusal| refusal.starts_with("guest ")).count(), 60);
    assert_eq!(refused.last().unwrap(), "auditor POST /v1/keys/{name}/enable 403 SHEF-SVC-028");
    let export = || {
        let mut lines = Vec::new();
        let done = service.runtime.block_on(backup::events(&config(&service), None, |line| {
            lines.push(serde_json::from_str::<Value>(line).unwrap());
            Ok::<_, Problem>(())
        }));
        done.map(|()| lines).map_err(|problem| problem.kind)
    };
    let lines = export().unwrap();
    assert_eq!(
        (lines.len(), &lines[0]["tenant"], &lines[0]["seq"]),
        (rows.len(), &json!("default"), &json!(1))
    );
    sql(&service, &["UPDATE event SET who = 'nobody' WHERE action = 'key-disable'"]);
    assert_eq!(export(), Err(Kind::Audit));
    assert_eq!(
        service.runtime.block_on(backup::audit(&config(&service))).unwrap_err().kind,
        Kind::Audit
    );
}

/// Reference values are read when they are first needed: one tenant's large collateral does not slow
/// other tenants.
#[test]
fn what_a_tenant_has_is_read_at_its_own_cost() {
    let mut service =
        Service::with(|text| format!("{text}\n[[tenant]]\nname = \"other\"\n"), Clock::System);
    let other = service.client("other", Role::Operator, "other");
    other.send("PUT", "/v1/policies/default", TOML, POLICY.as_bytes()).ok();
    for file in 0..4 {
        let kernels: Vec<Value> = (0..9500)
            .map(|at| json!({"name": "k", "digest": format!("{file:032x}{at:032x}"), "svn": 1}))
            .collect();
        let body = json!({"kernel": kernels}).to_string();
        other
            .send(
                "PUT",
                &format!("/v1/corims/many-{file}"),
                &[("content-type", "application/json")],
                body.as_bytes(),
            )
            .ok();
    }
    // The clock is another service, which answers one request after another: on a machine that is slow,
    // it is slow, too.
    let (clock, ticks, done) = (Service::start(), AtomicUsize::new(0), AtomicBool::new(false));
    let timed = |ask: &dyn Fn()| {
        let start = ticks.load(Ordering::Relaxed);
        ask();
        ticks.load(Ordering::Relaxed) - start
    };
    let (alone, waited) = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Also after a panic, it ends.
            let start = std::time::Instant::now();
            while !done.load(Ordering::Relaxed) && start.elapsed().as_secs() < 120 {
                clock.operator.get("/healthz").ok();
                ticks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut restarted = || {
            service.restart();
            service.operator.get("/healthz").ok();
            let other = Client::new(&service.dir, &service.url(), Some("other"));
            (move || drop(other.get("/v1/policies/default").ok_bytes()), service.operator.clone())
        };
        let alone = timed(&restarted().0);
        // More requests than serving threads.
        let (read, operator) = restarted();
        let waited = std::thread::scope(|scope| {
            let busy: Vec<_> = (0..4).map(|_| scope.spawn(&read)).collect();
            let mut waited = 0;
            while busy.iter().any(|thread| !thread.is_finished()) {
                waited = waited.max(timed(&|| drop(operator.get("/healthz").ok())));
            }
            waited
        });
        done.store(true, Ordering::Relaxed);
        (alone, waited)
    });
    assert!(
        waited < alone / 4,
        "somebody else waited {waited} ticks, and a read alone takes {alone}"
    );
}

/// All additions of a tenant count against one limit. Removals, and repeats of existing content,
/// always succeed.
#[test]
fn a_tenant_stores_so_much_and_no_more() {
    let limits = "[limits]\ntenant_bytes = 65536\n[[tenant]]\nname = \"other\"\n";
    let service = Service::with(|text| format!("{text}\n{limits}"), Clock::System);
    let (operator, other) = (&service.operator, service.client("other", Role::Operator, "other"));
    service.furnish(&Device::new(1));
    let signer = vendor(operator);
    let large = format!("{}#{}", reference(), "x".repeat(15_000));
    let corim = |client: &Client, id: &str| {
        client.send("PUT", &format!("/v1/corims/{id}"), TOML, large.as_bytes())
    };
    let key = |name: &str| {
        operator.call(
            "PUT",
            &format!("/v1/keys/{name}"),
            &json!({"layer": "shield", "policy": "default", "generate": 32}),
        )
    };
    let resource =
        |bytes: usize| operator.send("POST", "/kbs/v0/resource/a/b/c", &[], &vec![7; bytes]);
    key("data").ok();
    resource(8).ok();
    (1..=3).for_each(|at| drop(corim(operator, &format!("large-{at}")).ok()));
    let stored = |client: &Client| {
        let text = String::from_utf8(client.get("/metrics").ok_bytes()).unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix("shef_stored_bytes "))
            .unwrap()
            .parse::<usize>()
            .unwrap()
    };
    let (full, events) =
        (stored(operator), operator.get("/v1/events").ok()["events"].as_array().unwrap().len());
    assert!((45_000..58_000).contains(&full), "{full}");
    let room = 65_536 - full;
    let anchor = json!({"name": "maker-2", "kind": "shef-boot", "certificate": b64(Device::made_by(2, 1).root.der())});
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let named = |id: &str| {
        write_signed(
            &values,
            &Describe { id, version: 1, issuer: "vendor", not_after: None },
            &signer,
            None,
        )
        .unwrap()
    };
    // A policy takes all but a few bytes, so every further addition is too much.
    let policy = |text: usize| {
        operator.send(
            "PUT",
            "/v1/policies/large",
            TOML,
            format!("{POLICY}#{}", "x".repeat(text)).as_bytes(),
        )
    };
    let too_much = policy(room).problem(409, "SHEF-SVC-058")["detail"].as_str().unwrap().to_owned();
    assert!(
        too_much.contains("of at most 65536") && too_much.contains("limits.tenant_bytes"),
        "{too_much}"
    );
    policy(room - 300).ok();
    let full = stored(&service.client("default", Role::Audit, "auditor"));
    assert!((65_300..=65_536).contains(&full), "{full}");
    let signer = CorimSigner::with_key("more", signer.public_key()).for_kernels().to_toml();
    for (way, answer) in [
        ("reference values", corim(operator, "large-4")),
        ("policy", policy(room - 200)),
        ("signer", operator.send("PUT", "/v1/signers/more", TOML, signer.as_bytes())),
        ("anchor", operator.post("/v1/trust-anchors", &anchor)),
        ("key", key("more")),
        (
            "version of a key",
            operator.post("/v1/keys/data/rotate", &json!({"policy": "default", "generate": 64})),
        ),
        ("resource", resource(5000)),
        (
            "Veraison",
            operator.send(
                "POST",
                "/endorsement-provisioning/v1/submit",
                &[("content-type", "application/rim+cose")],
                &named("b"),
            ),
        ),
    ] {
        assert_eq!(
            (answer.status, answer.json()["code"].as_str()),
            (409, Some("SHEF-SVC-058")),
            "{way}"
        );
    }
    assert_eq!(stored(operator), full);
    let kept = operator.get("/v1/events").ok()["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["action"] != "refused")
        .count();
    assert_eq!(kept, events + 1);
    // Existing content, other tenants' additions, and removals.
    corim(operator, "large-1").ok();
    (1..=3).for_each(|at| drop(corim(&other, &format!("large-{at}")).ok()));
    let revoke = |at: usize| {
        operator.post(
            "/v1/revocations",
            &json!({"kind": "kernel", "value": format!("{at:064x}"), "reason": "lost"}),
        )
    };
    assert_eq!(revoke(0).status, 201);
    let revoked = (1..100).take_while(|at| revoke(*at).status == 201).count();
    assert!((30..50).contains(&revoked), "{revoked}");
    revoke(100).problem(409, "SHEF-SVC-058");
    operator.send("DELETE", "/v1/corims/large-1", &[], b"").ok();
    key("more").ok();
    corim(operator, "large-4").problem(409, "SHEF-SVC-058");
    reload(&service, |text| text.replace("tenant_bytes = 65536", "tenant_bytes = 131072"));
    corim(operator, "large-4").ok();
}

#[test]
fn a_tenants_auditor_sees_the_metrics_of_that_tenant() {
    let service =
        Service::with(|text| format!("{text}\n[[tenant]]\nname = \"other\"\n"), Clock::System);
    let device = Device::new(1);
    service.furnish(&device);
    let (session, nonce) = service.operator.session(Layer::Kernel, None);
    service
        .operator
        .post(
            "/v1/appraise",
            &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))}),
        )
        .ok();
    let metrics = |client: &Client| String::from_utf8(client.get("/metrics").ok_bytes()).unwrap();
    let other = metrics(&service.client("other", Role::Audit, "auditor"));
    let appraisals = |line: &&str| line.starts_with("shef_appraisals_total{");
    assert!(
        other.contains("\nshef_devices 0\n")
            && other.lines().filter(appraisals).all(|line| line.ends_with(" 0")),
        "{other}"
    );
    for whole in [
        "shef_request_seconds",
        "shef_tls_failures_total",
        "shef_reloads_total",
        "of=\"server\"",
        "shef_build_info",
        "shef_ready",
        "process_",
    ] {
        assert!(!other.contains(whole), "{whole}: {other}");
    }
    // The same name in another tenant is not the service's operator.
    assert!(
        !metrics(&service.client("other", Role::Audit, "operator-2"))
            .contains("shef_request_seconds")
    );
    let whole = metrics(&service.operator);
    assert!(
        whole.contains(
            "shef_appraisals_total{layer=\"kernel\",verdict=\"accepted\",code=\"none\"} 1"
        ) && whole.contains("shef_request_seconds_count")
    );
    reload(&service, |text| {
        text.replace("operators = [\"default/operator\"]", "operators = [\"other/auditor\"]")
    });
    assert!(!metrics(&service.operator).contains("shef_request_seconds"));
    assert!(
        metrics(&Client::new(&service.dir, &service.url(), Some("auditor")))
            .contains("\nshef_devices 1\n")
    );
}

#[test]
fn a_revoked_client_goes_with_its_next_request() {
    let service = Service::start();
    let gone = service.client("default", Role::Audit, "gone");
    let stays = service.client("default", Role::Audit, "stays");
    gone.get("/v1/devices").ok();
    stays.get("/v1/devices").ok();
    init::revoke(&service.dir, &[service.dir.join("gone.pem")], 30, true, now()).unwrap();
    reload(&service, |text| text.replace("client_ca =", "crls = [\"crl.pem\"]\nclient_ca ="));
    // The connections are older: a new one would fail in the handshake.
    let refused = gone.get("/v1/devices").problem(401, "SHEF-SVC-027");
    assert!(refused["detail"].as_str().unwrap().contains("revoked"), "{refused}");
    stays.get("/v1/devices").ok();
    assert!(gone.try_send("GET", "/v1/devices", &[], b"").is_err());
}

#[test]
fn no_connection_lasts_for_ever() {
    let service =
        Service::with(|text| format!("{text}\n[limits]\nconnection_seconds = 1\n"), Clock::System);
    let mut stream = crate::service::raw(&service);
    let start = std::time::Instant::now();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let lasted = start.elapsed();
    assert!((Duration::from_millis(900)..Duration::from_secs(8)).contains(&lasted), "{lasted:?}");
}

#[test]
fn a_reload_names_what_it_ignores() {
    let service = Service::start();
    assert!(reload(&service, |text| format!("{text}\n[limits]\nrate = 7\n")).is_empty());
    let ignored = reload(&service, |text| {
        let text = text
            .replace("listen = \"127.0.0.1:0\"", "listen = \"127.0.0.1:1\"")
            .replace("verifierd.db", "other.db");
        text.replace("rate = 7", "requests = 7\nconnections = 8")
    });
    assert_eq!(ignored, ["listen", "storage.url", "limits.connections", "limits.requests"]);
    // Compared with the running configuration, not with the last one read.
    assert_eq!(reload(&service, |text| text).len(), 4);
}

#[test]
fn check_looks_and_touches_nothing() {
    let mut service = Service::start();
    let dir = service.dir.clone();
    let database = dir.join("verifierd.db");
    let run_check =
        |service: &Service| service.runtime.block_on(check::check(&config(service), now()));
    let version = format!("version {}", store::version());
    assert!(run_check(&service).unwrap().notes.iter().any(|note| note.contains(&version)));
    service.stop();
    // An older database stays unchanged: only run migrates it.
    sql(&service, &["UPDATE meta SET number = 5 WHERE name = 'version'"]);
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        (names, std::fs::read(&database).unwrap())
    };
    let before = files();
    let report = run_check(&service).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("run extends it")), "{report:?}");
    assert!(before == files(), "check changed the folder");
    // Nor does an audit; and if there is no database, it creates none.
    assert_eq!(
        service.runtime.block_on(backup::audit(&config(&service))).unwrap_err().kind,
        Kind::OlderStore
    );
    assert!(before == files(), "audit changed the folder");
    std::fs::remove_file(&database).unwrap();
    assert!(run_check(&service).unwrap().notes.iter().any(|note| note.contains("no database")));
    assert!(!database.exists());
}

/// A permanent database error is a 500 without `Retry-After`.
#[test]
fn a_database_that_lacks_a_table_is_no_passing_fault() {
    let service = Service::start();
    sql(&service, &["DROP TABLE revocation"]);
    let answer = service.operator.get("/v1/revocations");
    assert!(!answer.headers.contains_key("retry-after"));
    answer.problem(500, "SHEF-SVC-033");
}

/// The ids of the keys that a service publishes, the one that signs first.
fn ids(service: &Service) -> Vec<String> {
    let jwks = service.stranger().get("/.well-known/jwks.json").ok();
    let id = |key: &Value| key["kid"].as_str().unwrap().to_owned();
    jwks["keys"].as_array().unwrap().iter().map(id).collect()
}

#[test]
fn a_prepared_key_is_published_before_it_signs() {
    let service = Service::start();
    released(&service, &Device::new(1));
    let (first, file) = (ids(&service), service.dir.join("signing.key.next"));
    let next = signing::prepare(&config(&service)).unwrap();
    assert_eq!((signing::prepare(&config(&service)).unwrap(), mode(&file)), (next.clone(), 0o600));
    // What every replica gets before one signs with the key.
    reload(&service, |text| text);
    assert_eq!(ids(&service), [first[0].clone(), next.clone()]);
    let rotated = signing::rotate(&config(&service)).unwrap();
    assert_eq!((rotated, file.exists()), ((first[0].clone(), next.clone()), false));
    reload(&service, |text| text);
    assert_eq!(ids(&service), [next.clone(), first[0].clone()]);
    // A command that ended before it removed the file leaves the key that signs there.
    std::fs::copy(service.dir.join("signing.key"), &file).unwrap();
    let (old, new) = signing::rotate(&config(&service)).unwrap();
    assert!(old == next && new != next && !file.exists());
    reload(&service, |text| text);
    assert_eq!(ids(&service), [new, next, first[0].clone()]);
}

#[test]
fn the_signing_key_is_rotated_by_a_command() {
    let service = Service::start();
    released(&service, &Device::new(1));
    let first = ids(&service);
    let (old, new) = signing::rotate(&config(&service)).unwrap();
    assert_eq!(
        (first.as_slice(), mode(&service.dir.join("signing.key"))),
        (&[old.clone()][..], 0o600)
    );
    reload(&service, |text| text);
    assert_eq!(ids(&service), [new.clone(), old.clone()]);
    let (_, third) = signing::rotate(&config(&service)).unwrap();
    reload(&service, |text| text);
    assert_eq!(ids(&service), [third, new, old]);
    service.operator.put_key("more").ok();
    let rotated = service.operator.events("action", "signing-key", ["who", "what"]);
    assert_eq!(rotated.len(), 2, "{rotated:?}");
    // The chain across the rotation verifies with all of them.
    assert_eq!(service.runtime.block_on(backup::audit(&config(&service))).unwrap()[0].head.seq, 4);
    // Without one of them it does not, and neither check nor a service passes over it.
    let retired = service.dir.join("signing.key.retired");
    let text = std::fs::read_to_string(&retired).unwrap();
    std::fs::write(
        &retired,
        text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>(),
    )
    .unwrap();
    let lost = |problem: Problem| {
        assert_eq!(problem.kind, Kind::Material);
        assert!(problem.detail.contains("has signed receipts"), "{}", problem.detail);
    };
    lost(service.runtime.block_on(check::check(&config(&service), now())).unwrap_err());
    lost(service.runtime.block_on(service.running().reload(config(&service))).unwrap_err());
    // Another replica signs with the key that is missing: its files are the ones to copy.
    let own = keyring::signer(&config(&service)).unwrap();
    let key = hex::encode(own.public_key().as_bytes());
    for (signers, help) in [
        (["04", &*key], "retired ones: put the line 04 back into signing.key.retired"),
        ([&*key, "04"], "it is the newest one: if another replica signs with it, copy signing.key"),
    ] {
        let detail = published(&own, &signers.map(str::to_owned)).unwrap_err().detail;
        assert!(detail.contains(help), "{detail}");
    }
    std::fs::write(&retired, text).unwrap();
    service.runtime.block_on(service.running().reload(config(&service))).unwrap();
    // Another replica signs with a newer key: this one is not ready.
    service.operator.get("/readyz").ok();
    let newer = "INSERT INTO meta (name, number, content) VALUES ('signer:04', 99999999999, '04')";
    sql(&service, &[newer]);
    let problem = service.operator.get("/readyz").problem(503, "SHEF-SVC-014");
    assert!(problem["detail"].as_str().unwrap().contains("send SIGHUP"), "{problem}");
}

/// The service's user can replace any of its files by a link.
#[test]
fn a_rotation_follows_no_link_and_takes_no_file_of_a_third_user() {
    let service = Service::start();
    let key = service.dir.join("signing.key");
    let (other, text) = (service.dir.join("other.key"), std::fs::read(&key).unwrap());
    std::fs::rename(&key, &other).unwrap();
    std::os::unix::fs::symlink(&other, &key).unwrap();
    let refused = |says: &str| {
        let error = signing::rotate(&config(&service)).unwrap_err();
        assert!(error.kind == Kind::Material && error.to_string().contains(says), "{error}");
        assert!(!service.dir.join("signing.key.retired").exists());
    };
    refused("signing.key");
    assert_eq!(std::fs::read(&other).unwrap(), text);
    std::fs::rename(&other, &key).unwrap();
    if std::fs::metadata(&key).unwrap().uid() == 0 {
        chown(&service.dir, Some(4001), None).unwrap();
        chown(&key, Some(5001), None).unwrap();
        refused("user 5001");
        chown(&key, Some(4001), None).unwrap();
    }
    std::os::unix::fs::symlink("/nowhere", service.dir.join("signing.key.retired")).unwrap();
    let error = signing::rotate(&config(&service)).unwrap_err();
    assert!(error.to_string().contains("signing.key.retired"), "{error}");
    std::fs::remove_file(service.dir.join("signing.key.retired")).unwrap();
    signing::rotate(&config(&service)).unwrap();
}

/// Files that root creates for another user's service belong to that user: the owner of the
/// replaced file, or else of the folder.
#[test]
fn files_that_root_makes_are_the_services() {
    let mut service = Service::start();
    let dir = service.dir.clone();
    let owner = |name: &str| {
        let found = std::fs::metadata(dir.join(name)).unwrap();
        (found.uid(), found.gid())
    };
    if owner("kek").0 != 0 {
        println!("skipped: only root can give files away");
        return;
    }
    service.stop();
    let give = |name: &str, to: (u32, u32)| chown(dir.join(name), Some(to.0), Some(to.1)).unwrap();
    let (user, other) = ((4001, 4002), (4001, 5002));
    give("", user);
    for entry in std::fs::read_dir(&dir).unwrap() {
        give(entry.unwrap().file_name().to_str().unwrap(), user);
    }
    for name in ["signing.key", "kek", "server.key"] {
        give(name, other);
    }
    let runtime = &service.runtime;
    signing::rotate(&config(&service)).unwrap();
    init::server(&dir, "server-2", &["localhost".into()], now()).unwrap();
    init::client(
        &dir,
        "fleet",
        &Identity { tenant: "default".into(), name: "fleet".into(), role: Role::Attest },
        now(),
    )
    .unwrap();
    init::revoke(&dir, &[], 30, true, now()).unwrap();
    runtime
        .block_on(shef_verifierd::rekey::rekey(&config(&service), &dir.join("kek-2"), now()))
        .unwrap();
    let text = std::fs::read_to_string(dir.join("verifierd.toml"))
        .unwrap()
        .replace("kek = \"kek\"", "kek = \"kek-2\"");
    std::fs::write(dir.join("verifierd.toml"), text).unwrap();
    runtime.block_on(backup::backup(&config(&service), &dir.join("copy.db"))).unwrap();
    std::fs::remove_file(dir.join("verifierd.db")).unwrap();
    runtime.block_on(backup::restore(&config(&service), &dir.join("copy.db"), now())).unwrap();
    for (name, to) in [
        ("signing.key", other),
        ("signing.key.retired", user),
        ("server-2.key", other),
        ("server-2.pem", other),
        ("fleet.key", user),
        ("fleet.pem", user),
        ("crl.pem", user),
        ("kek-2", other),
        ("copy.db", user),
        ("verifierd.db", user),
    ] {
        assert_eq!(owner(name), to, "{name}");
    }
    // An existing file keeps its owner.
    give("crl.pem", other);
    init::revoke(&dir, &[], 30, false, now()).unwrap();
    assert_eq!(owner("crl.pem"), other);
    // That user can exchange folders on the path of a set-up: `init` makes nothing there.
    std::fs::create_dir(dir.join("new")).unwrap();
    give("new", other);
    for name in ["new", "missing/new"] {
        let setup = init::Setup {
            listen: "127.0.0.1:0".into(),
            hosts: vec!["localhost".into()],
            audience: AUDIENCE.into(),
            tenant: "default".into(),
        };
        let refused = init::init(&dir.join(name), &setup, now()).unwrap_err();
        assert!(refused.detail.contains("expected a path that only root can change"), "{refused}");
    }
    assert_eq!(std::fs::read_dir(dir.join("new")).unwrap().count(), 0);
    assert!(!dir.join("missing").exists());
}

/// Root issues no certificate and makes no KEK where others can exchange the files, or redirect the
/// path to them.
#[test]
fn root_writes_no_key_where_others_can_exchange_it() {
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
    let mut service = Service::start();
    service.stop();
    let (dir, link) = (service.dir.clone(), service.dir.with_file_name("link"));
    if std::fs::metadata(&dir).unwrap().uid() != 0 {
        println!("skipped: only root can give files away");
        return;
    }
    let who = Identity { tenant: "default".into(), name: "fleet".into(), role: Role::Attest };
    let all = |folder: &Path, says: &str| {
        let rekeyed = service.runtime.block_on(shef_verifierd::rekey::rekey(
            &config(&service),
            &folder.join("kek-2"),
            now(),
        ));
        for result in [
            init::client(folder, "fleet", &who, now()),
            init::server(folder, "server-2", &["localhost".into()], now()),
            init::revoke(folder, &[], 30, true, now()).map(drop),
            rekeyed.map(drop),
        ] {
            let problem = result.unwrap_err();
            assert!(problem.detail.contains(says), "{problem}");
        }
        for name in ["fleet.key", "server-2.key", "crl.pem", "kek-2"] {
            assert!(!dir.join(name).exists(), "{name}");
        }
    };
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    all(&dir, "a folder that only its owner can change");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&dir, &link).unwrap();
    lchown(&link, Some(4001), None).unwrap();
    all(&link, "a path that only root can change");
}

/// A device that was never accepted counts as stale until it is forgotten. An accepted one cannot
/// be forgotten: its highest version guards against a rollback.
#[test]
fn devices_that_were_never_accepted_can_be_forgotten() {
    let service = Service::start();
    let operator = &service.operator;
    let (accepted, denied) = (Device::new(1), Device::updated(2));
    service.furnish(&accepted);
    for (device, status) in [(&accepted, 200), (&denied, 422)] {
        let (session, nonce) = operator.session(Layer::Kernel, None);
        let body =
            json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))});
        assert_eq!(operator.post("/v1/appraise", &body).status, status);
    }
    let counts = || {
        let text = String::from_utf8(operator.get("/metrics").ok_bytes()).unwrap();
        ["shef_devices ", "shef_devices_stale "]
            .map(|name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned())
    };
    assert_eq!(counts(), ["2", "1"]);
    let path = |device: &Device| format!("/v1/devices/{}", hex::encode(device.ueid));
    let forget = |client: &Client, device: &Device| client.send("DELETE", &path(device), &[], b"");
    forget(&service.client("default", Role::Audit, "auditor"), &denied)
        .problem(403, "SHEF-SVC-028");
    forget(operator, &accepted).problem(409, "SHEF-SVC-059");
    forget(operator, &denied).ok();
    forget(operator, &denied).problem(404, "SHEF-SVC-020");
    operator.get(&path(&denied)).problem(404, "SHEF-SVC-020");
    assert_eq!(counts(), ["1", "0"]);
    operator
        .post(
            "/v1/revocations",
            &json!({"kind": "device", "value": hex::encode(accepted.ueid), "reason": "sold"}),
        )
        .ok();
    forget(operator, &accepted).ok();
    assert_eq!(counts(), ["0", "0"]);
    assert_eq!(
        operator.events("action", "device-forget", ["who", "what"]),
        [denied, accepted].map(|device| ["operator".to_owned(), hex::encode(device.ueid)])
    );
}

/// A revocation is a value, not a spelling: leading zeros, colons and upper case make no
/// difference, and anything else is rejected. The response reports whether the service has seen the
/// value.
#[test]
fn a_revocation_is_a_value_and_not_a_spelling() {
    let service = Service::start();
    let operator = &service.operator;
    let device = Device::new(1);
    service.furnish(&device);
    let appraise = || {
        let (session, nonce) = operator.session(Layer::Kernel, None);
        let evidence = device.evidence(Layer::Kernel, &nonce);
        let answer =
            operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&evidence)}));
        (
            answer.status,
            shef_proto::evidence::Evidence::parse(&evidence).unwrap().x5chain()[1].clone(),
        )
    };
    let (accepted, der) = appraise();
    assert_eq!(accepted, 200);
    let certificate = shef_proto::cert::Certificate::parse(&der).unwrap();
    let (serial, [tbs, ..]) =
        (hex::encode(certificate.serial()), certificate.names().map(hex::encode));
    let ueid = hex::encode(device.ueid);
    for (kind, spelled, value) in [
        ("serial", format!("00{}", serial.to_uppercase()), &serial),
        ("certificate", format!("sha256:{}", tbs.to_uppercase()), &tbs),
        ("device", ueid.to_uppercase(), &ueid),
    ] {
        let made = operator
            .post("/v1/revocations", &json!({"kind": kind, "value": spelled, "reason": "lost"}))
            .ok();
        assert_eq!(made, json!({"kind": kind, "value": value, "known": true}), "{kind}");
        assert_eq!(appraise().0, 422, "{kind}");
        operator.call("DELETE", &format!("/v1/revocations/{kind}/{spelled}"), &json!({})).ok();
        assert_eq!(appraise().0, 200, "{kind}");
    }
    let unknown = json!({"kind": "serial", "value": "0123", "reason": "lost"});
    assert_eq!(operator.post("/v1/revocations", &unknown).ok()["known"], false);
    for (kind, value) in
        [("serial", "0x12"), ("certificate", "nonsense"), ("device", "ab"), ("fleet", "ab")]
    {
        operator
            .post("/v1/revocations", &json!({"kind": kind, "value": value, "reason": "lost"}))
            .problem(422, "SHEF-SVC-053");
    }
}

/// The service also knows a signer of reference values, its certificate and its CA as subjects of
/// revocations; a revoked CA invalidates its signers' CoRIMs.
#[test]
fn a_revocation_of_a_signers_chain_is_known_and_counts() {
    let service = Service::start();
    let operator = &service.operator;
    let device = Device::new(1);
    service.furnish(&device);
    operator.send("DELETE", "/v1/corims/build-1", &[], b"").ok();
    let key = |name| SigningKey::generate(&mut SeededEntropy::new(8, name));
    let (ca, release, other) = (key("ca"), key("release"), key("other"));
    let root = cert::issue_root(&ca, "vendor", now() - DAY, now() + 9 * DAY);
    let root = cert::Certificate::parse(&root).unwrap();
    let leaf = cert::issue_signer(
        &ca,
        &root,
        &release.public_key(),
        "release key",
        now() - DAY,
        now() + 9 * DAY,
    );
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let describe = Describe { id: "digits", version: 1, issuer: "vendor", not_after: None };
    let corim = write_signed(&values, &describe, &release, Some(&leaf)).unwrap();
    for signer in [
        CorimSigner::with_authority("vendor", root.der()).unwrap(),
        CorimSigner::with_key("other", other.public_key()),
    ] {
        let signer = signer.for_kernels().for_shells().for_vendor(&VENDOR);
        operator
            .send(
                "PUT",
                &format!("/v1/signers/{}", signer.name()),
                TOML,
                signer.to_toml().as_bytes(),
            )
            .ok();
    }
    operator
        .send("PUT", "/v1/corims/digits", &[("content-type", "application/rim+cose")], &corim)
        .ok();
    let appraise = || {
        let (session, nonce) = operator.session(Layer::Shield, None);
        operator.post("/v1/appraise", &json!({"session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))})).status
    };
    assert_eq!(appraise(), 200);
    let leaf = cert::Certificate::parse(&leaf).unwrap();
    let authority = |key: &SigningKey| hex::encode(sha256(key.public_key().as_bytes()));
    for (kind, value, status) in [
        ("certificate", hex::encode(root.names()[0]), 422),
        ("certificate", hex::encode(root.names()[1]), 422),
        ("serial", hex::encode(root.serial()), 422),
        ("authority", authority(&ca), 422),
        ("certificate", hex::encode(leaf.names()[2]), 422),
        ("serial", hex::encode(leaf.serial()), 422),
        ("authority", authority(&release), 422),
        ("vendor", authority(&release), 422),
        ("authority", authority(&other), 200),
    ] {
        let made = operator
            .post("/v1/revocations", &json!({"kind": kind, "value": value, "reason": "lost"}))
            .ok();
        assert_eq!((&made["known"], appraise()), (&json!(true), status), "{kind} {value}");
        operator.call("DELETE", &format!("/v1/revocations/{kind}/{value}"), &json!({})).ok();
        assert_eq!(appraise(), 200, "{kind} {value}");
    }
}

/// Versions before 0.2 stored values as typed, even invalid ones: all of them can be withdrawn.
#[test]
fn revocations_of_older_versions_can_be_taken_back() {
    let service = Service::start();
    let operator = &service.operator;
    let insert = |kind: &str, value: &str| {
        let row = format!(
            "INSERT INTO revocation (tenant, kind, value, reason, created) VALUES ('default', '{kind}', '{value}', 'old', 1)"
        );
        sql(&service, &[&row]);
    };
    for (kind, stored, typed) in [
        ("serial", "007F", "7f"),
        ("serial", "007F", "007F"),
        ("image", &*"EE".repeat(32), &*"ee".repeat(32)),
        ("serial", "none", "none"),
    ] {
        insert(kind, stored);
        operator.send("DELETE", &format!("/v1/revocations/{kind}/{typed}"), &[], b"").ok();
        assert_eq!(
            operator.get("/v1/revocations").ok()["revocations"],
            json!([]),
            "{kind} {stored}"
        );
        operator
            .send("DELETE", &format!("/v1/revocations/{kind}/{typed}"), &[], b"")
            .problem(404, "SHEF-SVC-020");
    }
    // Two spellings of one number are one revocation.
    insert("serial", "7f");
    insert("serial", "007F");
    operator.send("DELETE", "/v1/revocations/serial/7F", &[], b"").ok();
    assert_eq!(operator.get("/v1/revocations").ok()["revocations"], json!([]));
}

/// Versions before 0.2 remembered the signer of a CoRIM by name. This version adds the key at its
/// start: another name for the same key does not allow a rollback.
#[test]
fn versions_remembered_by_name_hold_for_the_key() {
    let mut service = Service::start();
    let key = SigningKey::generate(&mut SeededEntropy::new(9, "signer"));
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let put = |service: &Service, version| {
        let corim = write_signed(
            &values,
            &Describe { id: "digits", version, issuer: "vendor", not_after: None },
            &key,
            None,
        )
        .unwrap();
        service.operator.send(
            "PUT",
            &format!("/v1/corims/digits-{version}"),
            &[("content-type", "application/rim+cose")],
            &corim,
        )
    };
    let signer = |service: &Service, name: &str| {
        let signer = CorimSigner::with_key(name, key.public_key())
            .for_kernels()
            .for_shells()
            .for_vendor(&VENDOR);
        service
            .operator
            .send("PUT", &format!("/v1/signers/{name}"), TOML, signer.to_toml().as_bytes())
            .ok();
    };
    signer(&service, "maker");
    put(&service, 2).ok();
    service.operator.send("DELETE", "/v1/corims/digits-2", &[], b"").ok();
    service.stop();
    sql(
        &service,
        &[
            "DELETE FROM corim_version",
            "INSERT INTO corim_version (tenant, signer, id, version) VALUES ('default', 'maker', 'digits', 2)",
        ],
    );
    service.restart();
    service.operator.send("DELETE", "/v1/signers/maker", &[], b"").ok();
    signer(&service, "another");
    let old = put(&service, 1).problem(422, "SHEF-SVC-052");
    assert!(old["detail"].as_str().unwrap().contains("SHEF-ATT-081"), "{old}");
}

/// `check` lists reference values whose payload is deactivated under another id, and does not warn
/// that they expire.
#[test]
fn check_names_reference_values_whose_payload_is_withdrawn() {
    let service = Service::start();
    let operator = &service.operator;
    let key = SigningKey::generate(&mut SeededEntropy::new(10, "signer"));
    let signer = CorimSigner::with_key("maker", key.public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&VENDOR);
    operator.send("PUT", "/v1/signers/maker", TOML, signer.to_toml().as_bytes()).ok();
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let describe =
        Describe { id: "digits", version: 1, issuer: "vendor", not_after: Some(now() + 3 * DAY) };
    let corim = write_signed(&values, &describe, &key, None).unwrap();
    let put = |id: &str| {
        operator
            .send(
                "PUT",
                &format!("/v1/corims/{id}"),
                &[("content-type", "application/rim+cose")],
                &corim,
            )
            .ok()
    };
    let warnings = || {
        service
            .runtime
            .block_on(check::check(&config(&service), now()))
            .unwrap()
            .warnings
            .join("\n")
    };
    put("one");
    put("two");
    assert!(
        warnings().contains("ends soon") && !warnings().contains("do not count"),
        "{}",
        warnings()
    );
    operator.send("POST", "/v1/corims/one/deactivate", &[], b"").ok();
    let found = warnings();
    assert!(
        found.contains("reference values two of tenant default do not count")
            && !found.contains("ends soon"),
        "{found}"
    );
    operator.send("POST", "/v1/corims/one/activate", &[], b"").ok();
    assert!(!warnings().contains("do not count"), "{}", warnings());
}

/// Every list is read to its end by following `next`, whatever the size of a page.
#[test]
fn every_list_is_read_to_its_end() {
    let service = Service::start();
    let operator = &service.operator;
    service.furnish(&Device::new(1));
    for key in 0..7 {
        operator
            .call(
                "PUT",
                &format!("/v1/keys/key-{key}"),
                &json!({"layer": "shield", "policy": "default", "generate": 32}),
            )
            .ok();
    }
    for device in 1..=7 {
        let device = Device::new(device);
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let (session, nonce) = operator.session(Layer::Shield, Some(&public));
        let evidence = b64(&device.evidence(Layer::Shield, &nonce));
        operator
            .post("/v1/release", &json!({"key": "key-0", "session": session, "evidence": evidence}))
            .ok();
    }
    for (path, list, parameter, count) in [
        ("/v1/keys", "keys", "after", 7),
        ("/v1/devices", "devices", "after", 7),
        ("/v1/receipts", "receipts", "after", 7),
        ("/v1/appraisals", "appraisals", "before", 7),
        ("/v1/events", "events", "after", 10),
    ] {
        let (mut seen, mut next) = (std::collections::BTreeSet::new(), String::new());
        for _ in 0..count {
            let page = operator.get(&format!("{path}?limit=3{next}")).ok();
            seen.extend(page[list].as_array().unwrap().iter().map(Value::to_string));
            assert!(page.as_object().unwrap().contains_key("next"), "{path}: {page}");
            let Some(value) = page.get("next").filter(|next| !next.is_null()) else { break };
            next = format!(
                "&{parameter}={}",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            );
        }
        assert_eq!(seen.len(), count, "{path}");
        // A misspelt parameter would return the first page for ever.
        for bad in ["limit=three", "limt=3"] {
            operator.get(&format!("{path}?{bad}")).problem(400, "SHEF-SVC-026");
        }
    }
}

#[test]
fn an_identity_of_a_configuration_is_named_in_full() {
    let dir = tempfile::tempdir().unwrap();
    let parse = |operators: &str| {
        let text = format!(
            "listen = \"127.0.0.1:0\"\naudience = \"a\"\n[service]\noperators = [{operators}]\n[[tenant]]\nname = \"t\"\n"
        );
        Config::parse(&text, "v.toml", dir.path()).map_err(|problem| problem.detail)
    };
    assert_eq!(parse("\"t/o\"").unwrap().operators, ["t/o"]);
    for bad in ["\"o\"", "\"u/o\"", "\"t/\"", "\"t/O\""] {
        assert!(parse(bad).unwrap_err().starts_with("v.toml:4:14: service.operators"), "{bad}");
    }
    let identity = Identity { tenant: "t".into(), name: "o".into(), role: Role::Audit };
    assert_eq!(identity.uri(), "urn:shef:t:audit:o");
}

/// The reference page lists every key of every table, with its default, and no other key; an error
/// for an unknown key names its position.
#[test]
fn the_reference_page_is_the_configuration() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/verifierd-toml.md"
    ))
    .unwrap();
    let tables: Vec<(&str, Vec<(&str, &str)>)> = page
        .split("\n## ")
        .skip(1)
        .map(|section| {
            let name = section.lines().next().unwrap().trim_matches('`');
            let rows = section.lines().filter(|line| line.starts_with("| `"));
            let cells = rows.map(|line| line.split(" | ").collect::<Vec<_>>());
            (
                name,
                cells
                    .map(|cells| {
                        (
                            cells[0].trim_matches(['|', ' ', '`']),
                            cells[1].trim_matches(['|', ' ', '`']),
                        )
                    })
                    .collect(),
            )
        })
        .collect();
    assert_eq!(tables.len(), 16);
    let defaults = [
        ("[limits]", toml::Value::try_from(shef_verifierd::config::Limits::default()).unwrap()),
        (
            "[retention]",
            toml::Value::try_from(shef_verifierd::config::Retention::default()).unwrap(),
        ),
    ];
    for (table, rows) in &tables {
        let head = "listen = \"127.0.0.1:0\"\naudience = \"a\"\n";
        let (text, place) = match *table {
            "Top level" => (format!("{head}strange = 1\n[[tenant]]\nname = \"t\"\n"), "3:1"),
            "[[tenant]]" => (format!("{head}[[tenant]]\nname = \"t\"\nstrange = 1\n"), "5:1"),
            "[[tenant.token]]" | "[[tenant.submitter]]" => {
                (format!("{head}[[tenant]]\nname = \"t\"\n{table}\nstrange = 1\n"), "6:1")
            }
            "[[oidc.grant]]" => (format!("{head}[[oidc]]\n{table}\nstrange = 1\n"), "5:1"),
            _ => (format!("{head}{table}\nstrange = 1\n[[tenant]]\nname = \"t\"\n"), "4:1"),
        };
        let said = Config::parse(&text, "v.toml", Path::new("")).unwrap_err().detail;
        let known = said
            .strip_prefix(&format!("v.toml:{place}: unknown field `strange`, expected "))
            .unwrap_or_else(|| panic!("{table}: {said}"));
        let mut known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let mut documented: Vec<&str> = rows.iter().map(|(key, _)| *key).collect();
        known.sort_unstable();
        documented.sort_unstable();
        assert_eq!(known, documented, "{table} of docs/reference/verifierd-toml.md");
        for (key, value) in defaults
            .iter()
            .filter(|(name, _)| name == table)
            .flat_map(|(_, values)| values.as_table().unwrap())
        {
            assert!(
                rows.contains(&(key, value.to_string().as_str())),
                "{table} {key}: the default is {value}"
            );
        }
    }
}
