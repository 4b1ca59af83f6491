//! Appraisals per second of the whole service over mutual TLS, clients included, in one process.
//!
//! `cargo xtask bench verifier [--json]`. Each request carries fresh evidence for a nonce of its own; it is appraised with the chain cached,
//! recorded, its nonce used up, and answered with a signed result. The rate counts CPU time of the process, so that other work on the machine
//! does not count: appraisals in two seconds of CPU time are what two free cores do in one second. Latencies are of the clock on the wall.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{Device, Service, b64};
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_verifierd::secrets::random;

const CLIENTS: usize = 4;
const SECONDS: u64 = 4;

/// CPU time of this process in seconds: fields 14 and 15 of its stat, in hundredths.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<f64> =
        text.rsplit(") ").next().into_iter().flat_map(str::split_whitespace).map(|field| field.parse().unwrap_or(0.0)).collect();
    (fields[11] + fields[12]) / 100.0
}

fn bodies(device: &Device, count: usize) -> Vec<Value> {
    (0..count)
        .map(|_| {
            let nonce: [u8; 48] = random();
            json!({"nonce": b64(&nonce), "layer": "shield", "evidence": b64(&device.evidence(Layer::Shield, &nonce))})
        })
        .collect()
}

fn main() {
    let json_wanted = std::env::args().any(|argument| argument == "--json");
    let limits = "\n[limits]\nrate = 1000000\nburst = 1000000\n";
    let service = Service::with(|text| format!("{text}{limits}"), Default::default());
    let device = Device::new(1);
    service.furnish(&device);
    let work: Vec<Vec<Value>> = (0..CLIENTS).map(|_| bodies(&device, 6000)).collect();
    let stop = AtomicBool::new(false);
    let (start, spent) = (Instant::now(), cpu());
    let mut latencies: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = work
            .iter()
            .map(|bodies| {
                let (client, stop) = (service.operator.clone(), &stop);
                scope.spawn(move || {
                    let mut times = Vec::new();
                    for body in bodies {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let start = Instant::now();
                        client.post("/v1/appraise", body).ok();
                        times.push(start.elapsed().as_secs_f64() * 1000.0);
                    }
                    times
                })
            })
            .collect();
        while start.elapsed() < Duration::from_secs(SECONDS) && threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
    });
    let (wall, spent) = (start.elapsed().as_secs_f64(), cpu() - spent);
    latencies.sort_by(f64::total_cmp);
    let count = latencies.len() as f64;
    let at = |part: f64| (latencies[((count * part) as usize).min(latencies.len() - 1)] * 1000.0).round() / 1000.0;
    let row = json!({
        "name": "service_mtls",
        "per_second": (count / spent * 2.0).round(),
        "per_second_wall": (count / wall).round(),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "ratio": Value::Null,
    });
    if json_wanted {
        println!("{}", json!({ "rows": [row] }));
    } else {
        println!(
            "service over mutual TLS, clients included: {} appraisals in two CPU seconds, {} a second on the wall, p50 {} ms, p99 {} ms",
            row["per_second"], row["per_second_wall"], row["p50_ms"], row["p99_ms"]
        );
    }
}
