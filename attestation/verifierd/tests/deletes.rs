//! What is deleted is gone from the files, and its numbers are never used again.

use serde_json::json;
use shef_proto::evidence::Layer;
use shef_verifierd::problem::{Kind, Problem};
use shef_verifierd::role::Role;
use shef_verifierd::session::{Challenge, Protocol, Session};
use shef_verifierd::store::{AppraisalRecord, CorimVersion, Event};
use shef_verifierd::time::Clock;
use shef_verifierd::{backup, erase};

use crate::operators::{config, number, reload};
use crate::release::{add_image_key, furnished, release};
use shef_fixtures::service::*;

fn delete(client: &Client, path: &str) -> HttpResponse {
    client.send("DELETE", path, &[], b"")
}

/// Whether the files of the database hold these bytes.
fn in_files(service: &Service, bytes: &[u8]) -> bool {
    ["verifierd.db", "verifierd.db-wal"].iter().any(|name| {
        let file = std::fs::read(service.dir.join(name)).unwrap_or_default();
        file.windows(bytes.len()).any(|window| window == bytes)
    })
}

/// The newest version of a key, as it is sealed in the database.
fn sealed(service: &Service, name: &str) -> Vec<u8> {
    let store = &service.running().app.store;
    service.runtime.block_on(store.key("default", name)).unwrap().1.remove(0).sealed
}

fn numbers(client: &Client, name: &str) -> Vec<i64> {
    let key = client.get(&format!("/v1/keys/{name}")).ok();
    let versions = key["versions"].as_array().unwrap();
    versions.iter().map(|version| version["version"].as_i64().unwrap()).collect()
}

#[test]
fn a_deleted_key_is_gone_and_its_numbers_with_it() {
    let (service, device) = furnished();
    let operator = &service.operator;
    add_image_key(&service.operator, "image", json!({}));
    let (session, nonce) = operator.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    release(operator, "image", &session, &evidence).ok();
    release(operator, "image", &session, &evidence).ok();
    let bytes = sealed(&service, "image");
    assert!(in_files(&service, &bytes));
    delete(&service.client("default", Role::Audit, "auditor"), "/v1/keys/image")
        .problem(403, "SHEF-SVC-028");
    delete(operator, "/v1/keys/image").ok();
    let start = std::time::Instant::now();
    while in_files(&service, &bytes) {
        assert!(start.elapsed().as_secs() < 20, "the deleted key is in the files");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    operator.get("/v1/keys/image").problem(404, "SHEF-SVC-020");
    delete(operator, "/v1/keys/image").problem(404, "SHEF-SVC-020");
    // Its box is not given again either. The receipt stays, and the chain holds.
    release(operator, "image", &session, &evidence).problem(404, "SHEF-SVC-020");
    let receipts = operator.get("/v1/receipts").ok();
    assert_eq!(receipts["receipts"].as_array().unwrap().len(), 1);
    let audited = || service.runtime.block_on(backup::audit(&config(&service))).unwrap();
    assert_eq!(audited()[0].head.seq, 1);
    // One of the same name begins behind it; only the newest version cannot go alone.
    add_image_key(&service.operator, "image", json!({}));
    assert_eq!(numbers(operator, "image"), [2]);
    operator.put_key("data").ok();
    for _ in 0..2 {
        let next = json!({"policy": "default", "generate": 32});
        operator.post("/v1/keys/data/rotate", &next).ok();
    }
    delete(operator, "/v1/keys/data?version=3").problem(409, "SHEF-SVC-066");
    delete(operator, "/v1/keys/data?version=1").ok();
    delete(operator, "/v1/keys/data?version=1").problem(404, "SHEF-SVC-020");
    delete(operator, "/v1/keys/data?version=0").problem(404, "SHEF-SVC-020");
    delete(operator, "/v1/keys/data?version=x").problem(400, "SHEF-SVC-026");
    assert_eq!(numbers(operator, "data"), [3, 2]);
    delete(operator, "/v1/keys/data").ok();
    operator.put_key("data").ok();
    assert_eq!(numbers(operator, "data"), [4]);
    assert_eq!(
        operator.events("action", "key-delete", ["who", "what"]),
        ["image", "data version 1", "data"].map(|what| ["operator", what].map(str::to_owned))
    );
    audited();
}

/// The erasure waits for readers of the database, and no other tenant waits for the erasure.
#[test]
fn a_deletion_beside_a_reader_holds_up_no_other_tenant() {
    let more = "\n[[tenant]]\nname = \"acme\"\n";
    let service = Service::with(|text| text + more, Clock::System);
    let acme = service.client("acme", Role::Operator, "boss");
    add_policy(&service.operator);
    service.operator.put_key("data").ok();
    let reader = service.runtime.block_on(async {
        let path = service.dir.join("verifierd.db");
        let pool = sqlx::SqlitePool::connect(path.to_str().unwrap()).await.unwrap();
        let mut reader = pool.begin().await.unwrap();
        sqlx::query("SELECT COUNT(*) FROM event").execute(&mut *reader).await.unwrap();
        reader
    });
    delete(&service.operator, "/v1/keys/data").ok();
    for serial in 1..=30 {
        let lost = json!({"kind": "serial", "value": format!("{serial:02x}"), "reason": "lost"});
        acme.post("/v1/revocations", &lost).ok();
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    service.runtime.block_on(reader.rollback()).unwrap();
}

#[test]
fn a_policy_that_a_key_names_stays() {
    let service = Service::start();
    let operator = &service.operator;
    let add = |at: i64| {
        let text = format!("id = \"p\"\nroot_of_trust = [\"simulated\"]\nmin_kernel_svn = {at}\n");
        let toml = [("content-type", "application/toml")];
        operator.send("PUT", "/v1/policies/p", &toml, text.as_bytes()).ok()["version"].clone()
    };
    assert_eq!([1, 2, 3].map(add), [1, 2, 3]);
    let key = |policy: &str| json!({"layer": "shield", "policy": policy, "generate": 32});
    operator.call("PUT", "/v1/keys/k", &key("p@2")).ok();
    let refused = delete(operator, "/v1/policies/p@2").problem(409, "SHEF-SVC-066");
    assert!(refused["detail"].as_str().unwrap().contains("key k version 1"), "{refused}");
    delete(operator, "/v1/policies/p").problem(409, "SHEF-SVC-066");
    delete(operator, "/v1/policies/p@3").problem(409, "SHEF-SVC-066");
    delete(operator, "/v1/policies/p@1").ok();
    delete(operator, "/v1/policies/p@1").problem(404, "SHEF-SVC-020");
    delete(operator, "/v1/policies/p@").problem(404, "SHEF-SVC-020");
    delete(operator, "/v1/policies/p@0").problem(404, "SHEF-SVC-020");
    operator.get("/v1/policies/p@1").problem(404, "SHEF-SVC-020");
    operator.get("/v1/policies/p@2").ok_bytes();
    delete(operator, "/v1/keys/k").ok();
    delete(operator, "/v1/policies/p").ok();
    operator.call("PUT", "/v1/keys/k", &key("p")).problem(404, "SHEF-SVC-020");
    // Results name versions: none of them is used twice.
    assert_eq!(add(1), 4);
    assert_eq!(
        operator.events("action", "policy-remove", ["who", "what"]),
        ["p@1", "p"].map(|what| ["operator", what].map(str::to_owned))
    );
}

/// A tenant that is gone leaves its receipts and events, which go on if it comes back.
#[test]
fn an_erased_tenant_leaves_its_receipts_and_events() {
    let more = "\n[[tenant]]\nname = \"acme\"\n";
    let service = Service::with(|text| text + more, Clock::System);
    let (device, acme) = (Device::new(1), service.client("acme", Role::Operator, "boss"));
    furnish(&acme, &device);
    service.furnish(&device);
    service.operator.put_key("other").ok();
    acme.put_key("k").ok();
    add_image_key(&acme, "image", json!({}));
    let (session, nonce) = acme.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    release(&acme, "image", &session, &evidence).ok();
    let erased = || service.runtime.block_on(erase::erase(&config(&service), "acme", now()));
    let kind = |problem: Problem| problem.kind;
    assert_eq!(erased().map_err(kind), Err(Kind::Config), "the configuration names it");
    reload(&service, |text| text.replace(more, ""));
    acme.get("/v1/keys").problem(401, "SHEF-SVC-027");
    erased().unwrap();
    // Its chains can still be verified and read.
    let audited = service.runtime.block_on(backup::audit(&config(&service))).unwrap();
    let chain = audited.iter().find(|audited| audited.tenant == "acme").unwrap();
    assert!(!chain.configured && chain.head.seq == 1 && chain.events > 5, "{audited:?}");
    assert!(audited.iter().any(|audited| audited.configured && audited.tenant == "default"));
    let events = |tenant: Option<&str>| {
        let mut lines = Vec::new();
        let take = |line: &str| -> Result<(), Problem> {
            lines.push(line.to_owned());
            Ok(())
        };
        let done = service.runtime.block_on(backup::events(&config(&service), tenant, take));
        done.map(|()| lines).map_err(kind)
    };
    let own = events(Some("acme")).unwrap();
    assert!(own.last().unwrap().contains("tenant-erase"), "{own:?}");
    assert!(own.iter().all(|line| events(None).unwrap().contains(line)));
    assert_eq!(events(Some("nobody")), Err(Kind::Config));
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('tenant', 'meta', 'gone', 'event', 'receipt')";
    let names = service.runtime.block_on(async {
        let path = service.dir.join("verifierd.db");
        let pool = sqlx::SqlitePool::connect(path.to_str().unwrap()).await.unwrap();
        let names: Vec<(String,)> = sqlx::query_as(tables).fetch_all(&pool).await.unwrap();
        pool.close().await;
        names
    });
    assert!(names.len() > 10, "{names:?}");
    for (table,) in &names {
        let count = format!("SELECT COUNT(*) FROM {table} WHERE tenant = 'acme'");
        assert_eq!(number(&service, &count), 0, "{table}");
    }
    service.operator.get("/v1/keys/other").ok();
    // It comes back: its chains go on, and so do the numbers of its keys and policies.
    reload(&service, |text| text + more);
    let audited = service.runtime.block_on(backup::audit(&config(&service))).unwrap();
    let chain = audited.iter().find(|audited| audited.tenant == "acme").unwrap();
    assert_eq!(chain.head.seq, 1);
    assert_eq!(acme.events("action", "tenant-erase", ["who", "what"]), [["service", "acme"]]);
    furnish(&acme, &device);
    acme.put_key("k").ok();
    assert_eq!(numbers(&acme, "k"), [2]);
    let policies = acme.get("/v1/policies").ok();
    assert_eq!(policies["policies"][0]["version"], 2);
    // An open session of before is no session now.
    let again = json!({"session": session, "evidence": b64(&evidence)});
    acme.post("/v1/appraise", &again).problem(409, "SHEF-SVC-042");
    let unknown = service.runtime.block_on(erase::erase(&config(&service), "nobody", now()));
    assert_eq!(unknown.map_err(kind), Err(Kind::NotFound));
}

/// Requests that began before their tenant was removed and erased go on after that: they add nothing.
#[test]
fn what_was_in_progress_adds_nothing_to_an_erased_tenant() {
    let more = "\n[[tenant]]\nname = \"acme\"\n";
    let service = Service::with(|text| text + more, Clock::System);
    let (device, acme) = (Device::new(1), service.client("acme", Role::Operator, "boss"));
    furnish(&acme, &device);
    let (session, nonce) = acme.session(Layer::Kernel, None);
    let app = std::sync::Arc::clone(&service.running().app);
    reload(&service, |text| text.replace(more, ""));
    service.runtime.block_on(erase::erase(&config(&service), "acme", now())).unwrap();
    let rows = || {
        ["event", "appraisal", "used", "corim_version"].map(|table| {
            number(&service, &format!("SELECT COUNT(*) FROM {table} WHERE tenant = 'acme'"))
        })
    };
    let before = rows();
    // What such a request does last: a change, a refusal, a record, the end of a session.
    let challenge = {
        let kek = app.kek.load();
        Challenge::of(&Session::open(&kek, Protocol::Native, "acme", &session).unwrap())
    };
    let record = AppraisalRecord {
        id: [7; 16],
        caller: "boss".into(),
        time: now(),
        layer: "kernel",
        verdict: "denied",
        code: "",
        policy: "default@1".into(),
        ueid: device.ueid.to_vec(),
        target: String::new(),
        kernel_svn: 0,
        proven_svn: 0,
        genuine: true,
        fresh: true,
        nonce,
        evidence: vec![1],
        sha256: [1; 32],
        report: "{}".into(),
    };
    let version = CorimVersion { signer: "key:00".into(), id: "c".into(), version: 1 };
    service.runtime.block_on(async {
        let (store, event) = (&app.store, Event::own("acme", now()));
        let refused = |done: Result<(), Problem>| {
            assert_eq!(done.map_err(|problem| problem.kind), Err(Kind::Erased));
        };
        refused(store.event(&event, "refused", "a key").await);
        refused(store.use_challenge("acme", &challenge, None, &record).await);
        refused(store.record("acme", &record, 5).await.map(drop));
        refused(store.remember("acme", &[version]).await);
        store.end_session("acme", &challenge).await.unwrap();
        // What concerns all tenants is noted for the others.
        store.note("signing-key", "x", now()).await.unwrap();
    });
    assert_eq!(rows(), before);
    let noted = "SELECT COUNT(*) FROM event WHERE tenant = 'default' AND action = 'signing-key'";
    assert_eq!(number(&service, noted), 1);
    // The next tenant of that name begins.
    reload(&service, |text| text + more);
    furnish(&acme, &device);
    service.runtime.block_on(app.store.record("acme", &record, 5)).unwrap();
}

/// A reload that a newer configuration overtakes serves none of its tenants: one of them may have been
/// erased since, with requests still in progress.
#[test]
fn a_reload_that_is_overtaken_opens_no_erased_tenant() {
    let more = "\n[[tenant]]\nname = \"acme\"\n";
    let service = Service::with(|text| text + more, Clock::System);
    let (app, whole) = (&service.running().app, config(&service));
    let mut without = whole.clone();
    without.tenants.retain(|tenant| tenant.name != "acme");
    let overtaken = app.withdraw(&whole);
    app.withdraw(&without);
    service.runtime.block_on(async {
        erase::erase(&without, "acme", now()).await.unwrap();
        let refused = app.reload(whole, overtaken).await.unwrap_err();
        assert_eq!(refused.kind, Kind::Busy);
        let added = app.store.event(&Event::own("acme", now()), "refused", "a key").await;
        assert_eq!(added.map_err(|problem| problem.kind), Err(Kind::Erased));
    });
}

/// What a replica answers that still has a tenant after it was erased: nothing is added.
pub fn adds_nothing(stale: &Client, device: &Device) {
    let erased = |answer: HttpResponse| drop(answer.problem(403, "SHEF-SVC-067"));
    let policy = "id = \"p\"\nroot_of_trust = [\"simulated\"]\nmin_kernel_svn = 1\n";
    let toml = [("content-type", "application/toml")];
    erased(stale.send("PUT", "/v1/policies/p", &toml, policy.as_bytes()));
    let anchor = b64(device.root.der());
    let anchor = json!({"name": "maker", "kind": "shef-boot", "certificate": anchor});
    erased(stale.post("/v1/trust-anchors", &anchor));
    let lost = json!({"kind": "serial", "value": "01", "reason": "lost"});
    erased(stale.post("/v1/revocations", &lost));
    // Sessions are not stored. Their evidence would be.
    let (session, nonce) = stale.session(Layer::Kernel, None);
    let genuine = device.evidence(Layer::Kernel, &nonce);
    let mut forged = genuine.clone();
    *forged.last_mut().unwrap() ^= 1;
    for evidence in [forged, genuine] {
        let body = json!({"session": session, "evidence": b64(&evidence)});
        let answer = stale.post("/v1/appraise", &body);
        // A replica that has read the tenant's policies again finds none.
        let code = answer.json()["code"].clone();
        assert!(code == "SHEF-SVC-067" || code == "SHEF-SVC-020", "{} {code}", answer.status);
    }
    // A refusal would be an event.
    stale.get("/v1/keys/k").problem(404, "SHEF-SVC-020");
}

/// A service that has not read its new configuration.
#[test]
fn a_service_that_still_has_an_erased_tenant_adds_nothing_to_it() {
    let more = "\n[[tenant]]\nname = \"acme\"\n";
    let service = Service::with(|text| text + more, Clock::System);
    let (device, acme) = (Device::new(1), service.client("acme", Role::Operator, "boss"));
    furnish(&acme, &device);
    let file = service.dir.join("verifierd.toml");
    let old = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, old.replace(more, "")).unwrap();
    service.runtime.block_on(erase::erase(&config(&service), "acme", now())).unwrap();
    let rows = || -> Vec<i64> {
        ["event", "appraisal", "used", "policy", "anchor", "revocation", "key_name", "device"]
            .map(|table| {
                number(&service, &format!("SELECT COUNT(*) FROM {table} WHERE tenant = 'acme'"))
            })
            .into()
    };
    let before = rows();
    assert!(before[0] > 0 && before[1..].iter().all(|count| *count == 0), "{before:?}");
    adds_nothing(&acme, &device);
    // Nor after it has read the old one again. Other tenants are as before.
    reload(&service, |_| old.clone());
    adds_nothing(&acme, &device);
    assert_eq!(rows(), before);
    service.furnish(&device);
    // It loses the tenant, and gets it again: that begins it anew.
    reload(&service, |_| old.replace(more, ""));
    reload(&service, |_| old.clone());
    furnish(&acme, &device);
    acme.put_key("k").ok();
}
