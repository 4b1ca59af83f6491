//! Cost of a service with a million devices and ten million receipts, compared with one that has a
//! thousandth of that.
//!
//! `cargo xtask bench verifier --scale [--json]`. Both run on SQLite, in one process, the small one
//! first. Times are CPU times of the process, so that other work on the machine does not count;
//! memory is the resident set of the process. `SHEF_SCALE_DEVICES` sets another number of devices;
//! there are ten receipts for each.

use std::path::Path;

use serde_json::{Value, json};
use shef_fixtures::service::{Device, Service, b64, now};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::{SystemEntropy, random};

/// Minimum CPU time of a measurement in seconds.
const LEAST: f64 = 0.5;

/// CPU time of this process in seconds: fields 14 and 15 of its stat, in hundredths.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<f64> = text
        .rsplit(") ")
        .next()
        .into_iter()
        .flat_map(str::split_whitespace)
        .map(|field| field.parse().unwrap_or(0.0))
        .collect();
    (fields[11] + fields[12]) / 100.0
}

/// Resident memory of this process, in MiB.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kibibytes: f64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
    (kibibytes / 102.4).round() / 10.0
}

/// Adds devices and receipts to the database of a stopped service.
async fn fill(file: &Path, devices: i64) -> Result<(), sqlx::Error> {
    const COUNT: &str =
        "WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < $1)";
    let pool = sqlx::SqlitePool::connect(&file.display().to_string()).await?;
    let mut tx = pool.begin().await?;
    let device = "INSERT INTO device SELECT 'default', CAST(printf('%033d', n) AS BLOB), $2, $2, $2 - n % 172800, 'accepted', 'shef-test', 2, 2 FROM count";
    sqlx::query(sqlx::AssertSqlSafe(format!("{COUNT} {device}")))
        .bind(devices)
        .bind(now())
        .execute(&mut *tx)
        .await?;
    // The receipts are not verified here, so any bytes do.
    let receipt = "INSERT INTO receipt SELECT 'default', n, $2 - $1 + n, 'key-' || n % ($1 / 1000), randomblob(320) FROM count";
    sqlx::query(sqlx::AssertSqlSafe(format!("{COUNT} {receipt}")))
        .bind(devices * 10)
        .bind(now())
        .execute(&mut *tx)
        .await?;
    sqlx::query("UPDATE tenant SET seq = $1").bind(devices * 10).execute(&mut *tx).await?;
    tx.commit().await?;
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&pool).await?;
    pool.close().await;
    Ok(())
}

/// How often `work` runs in a second of CPU time.
fn rate(mut work: impl FnMut(i64)) -> f64 {
    work(0);
    let (start, mut number) = (cpu(), 0);
    while cpu() - start < LEAST {
        for _ in 0..8 {
            number += 1;
            work(number);
        }
    }
    (number as f64 / (cpu() - start)).round()
}

/// Rates by name, and the resident memory after all of them.
fn measure(devices: i64) -> (Vec<(&'static str, f64)>, f64) {
    let mut service = Service::with(
        |text| {
            format!(
                "{text}\n[limits]\nrate = 1000000\nburst = 1000000\n[retention]\nreceipt_days = 3650\n"
            )
        },
        Default::default(),
    );
    let device = Device::new(1);
    service.furnish(&device);
    service
        .operator
        .call(
            "PUT",
            "/v1/keys/data",
            &json!({"layer": "shield", "policy": "default", "generate": 32}),
        )
        .ok();
    service.stop();
    service
        .runtime
        .block_on(fill(&service.dir.join("verifierd.db"), devices))
        .expect("the database is filled");
    service.restart();
    let (store, runtime) = (&service.running().app.store, &service.runtime);
    let mut rates = Vec::new();
    let any = |number: i64, of: i64| number.wrapping_mul(7_919) % of + 1;
    let ueid = |number| format!("{:033}", any(number, devices)).into_bytes();
    rates.push((
        "device",
        rate(|n| {
            assert!(
                runtime.block_on(store.device("default", &ueid(n))).expect("an answer").is_some()
            );
        }),
    ));
    rates.push((
        "devices_page",
        rate(|n| {
            drop(runtime.block_on(store.devices("default", &ueid(n), 50)).expect("an answer"));
        }),
    ));
    let page = |name: Option<String>, behind| {
        runtime.block_on(store.receipts("default", name.as_deref(), behind, 50)).expect("an answer")
    };
    rates.push(("receipts_page", rate(|n| drop(page(None, any(n, devices * 10))))));
    rates.push((
        "receipts_of_key",
        rate(|n| drop(page(Some(format!("key-{}", n % (devices / 100))), any(n, devices * 5)))),
    ));
    rates.push((
        "sweep",
        rate(|_| runtime.block_on(service.running().app.sweep()).expect("an answer")),
    ));
    rates.push(("metrics", rate(|_| drop(service.operator.get("/metrics").ok_bytes()))));
    rates.push(("operators_page", rate(|_| drop(service.operator.get("/").ok_bytes()))));
    let appraise = |_| {
        let nonce: [u8; 48] = random();
        let body = json!({"nonce": b64(&nonce), "layer": "shield", "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
        service.operator.post("/v1/appraise", &body).ok();
    };
    rates.push(("appraise", rate(appraise)));
    let release = |_| {
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let (session, nonce) = service.operator.session(Layer::Shield, Some(&public));
        let body = json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
        service.operator.post("/v1/release", &body).ok();
    };
    rates.push(("release", rate(release)));
    (rates, resident())
}

fn main() {
    let json_wanted = std::env::args().any(|argument| argument == "--json");
    let devices: i64 = std::env::var("SHEF_SCALE_DEVICES")
        .ok()
        .and_then(|number| number.parse().ok())
        .unwrap_or(1_000_000);
    let (small, small_memory) = measure(devices / 1000);
    let (large, large_memory) = measure(devices);
    let mut rows: Vec<Value> = small
        .iter()
        .zip(&large)
        .map(|((name, baseline), (_, rate))| {
            let ratio = (baseline / rate * 1000.0).round() / 1000.0;
            json!({"name": format!("scale_{name}"), "per_second": rate, "baseline_per_second": baseline, "ratio": ratio})
        })
        .collect();
    rows.push(json!({"name": "scale_memory", "mib": large_memory, "baseline_mib": small_memory}));
    if json_wanted {
        println!("{}", json!({ "rows": rows }));
        return;
    }
    println!(
        "{:<24} {:>16} {:>16} {:>8}",
        "per second of CPU time",
        devices / 1000,
        devices,
        "ratio"
    );
    for ((name, baseline), (_, rate)) in small.iter().zip(&large) {
        println!("{name:<24} {baseline:>16} {rate:>16} {:>8.3}", baseline / rate);
    }
    println!("{:<24} {small_memory:>12} MiB {large_memory:>12} MiB", "memory");
}
