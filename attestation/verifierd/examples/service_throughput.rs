//! Appraisals per second of the whole service over mutual TLS, clients included, in one process,
//! and their latency at half that load.
//!
//! `cargo xtask bench verifier [--json]`. Each request carries fresh evidence for a new nonce. The
//! service appraises it with a cached chain, records it, uses the nonce up and returns a signed
//! result. The rate counts CPU time of the process, so that other work on the machine does not
//! count: appraisals in two seconds of CPU time are those of two free cores in one second.
//! Latencies are wall-clock times from the moment at which a request was due. The baseline is the
//! same clients with a request that costs nothing, a health check, over the same connections.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shef_fixtures::service::{Device, Service, b64};
use shef_proto::evidence::Layer;
use shef_verifierd::secrets::random;

const CLIENTS: usize = 4;
/// Duration of a run in seconds.
const SECONDS: f64 = 4.0;
/// Pieces of evidence for each client, at full and at half rate.
const FULL: usize = 4000;
const HALF: usize = 2000;

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

fn bodies(device: &Device, count: usize) -> Vec<Value> {
    (0..count)
        .map(|_| {
            let nonce: [u8; 48] = random();
            json!({"nonce": b64(&nonce), "layer": "shield", "evidence": b64(&device.evidence(Layer::Shield, &nonce))})
        })
        .collect()
}

/// Milliseconds of each request, and the cost of all.
struct Run {
    /// Sorted.
    times: Vec<f64>,
    /// Seconds of wall-clock time.
    wall: f64,
    /// Seconds of CPU time.
    cpu: f64,
}

impl Run {
    /// Runs all clients at once, each for at most `seconds`: as fast as possible, or at a total of
    /// `rate` requests a second. `ask` receives client and request number, and returns false when
    /// the client has nothing left to send.
    fn new(seconds: f64, rate: Option<f64>, ask: impl Fn(usize, usize) -> bool + Sync) -> Self {
        let (start, spent) = (Instant::now(), cpu());
        let one = |client: usize| {
            let mut times = Vec::new();
            for number in 0.. {
                let due = rate.map(|rate| (number * CLIENTS + client) as f64 / rate);
                if let Some(wait) =
                    due.and_then(|due| Duration::from_secs_f64(due).checked_sub(start.elapsed()))
                {
                    std::thread::sleep(wait);
                }
                let begin = due.unwrap_or_else(|| start.elapsed().as_secs_f64());
                if begin >= seconds || !ask(client, number) {
                    break;
                }
                times.push((start.elapsed().as_secs_f64() - begin) * 1000.0);
            }
            times
        };
        let mut times: Vec<f64> = std::thread::scope(|scope| {
            let one = &one;
            let threads: Vec<_> =
                (0..CLIENTS).map(|client| scope.spawn(move || one(client))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
        });
        times.sort_by(f64::total_cmp);
        Self { times, wall: start.elapsed().as_secs_f64(), cpu: cpu() - spent }
    }

    /// Requests per second of two free cores.
    fn on_two_cores(&self) -> f64 {
        (self.times.len() as f64 / self.cpu * 2.0).round()
    }

    fn a_second(&self) -> f64 {
        (self.times.len() as f64 / self.wall).round()
    }

    /// Milliseconds within which this fraction of the requests was answered.
    fn within(&self, part: f64) -> f64 {
        let at = (self.times.len() as f64 * part) as usize;
        self.times
            .get(at.min(self.times.len().saturating_sub(1)))
            .map_or(0.0, |time| (time * 1000.0).round() / 1000.0)
    }
}

fn main() {
    let json_wanted = std::env::args().any(|argument| argument == "--json");
    let limits = "\n[limits]\nrate = 1000000\nburst = 1000000\n";
    let service = Service::with(|text| format!("{text}{limits}"), Default::default());
    let device = Device::new(1);
    service.furnish(&device);
    let work: Vec<Vec<Value>> = (0..CLIENTS).map(|_| bodies(&device, FULL + HALF)).collect();
    let clients: Vec<_> = (0..CLIENTS).map(|_| service.operator.clone()).collect();
    let alive = |client: usize, _: usize| clients[client].get("/healthz").status == 200;
    let appraise = |client: usize, bodies: &[Value], number: usize| {
        bodies.get(number).is_some_and(|body| {
            clients[client].post("/v1/appraise", body).ok();
            true
        })
    };
    let bare = Run::new(SECONDS / 2.0, None, alive);
    let full =
        Run::new(SECONDS, None, |client, number| appraise(client, &work[client][..FULL], number));
    let half = (full.a_second() / 2.0).max(1.0);
    let bare_half = Run::new(SECONDS / 2.0, Some(half), alive);
    let at_half = Run::new(SECONDS, Some(half), |client, number| {
        appraise(client, &work[client][FULL..], number)
    });
    let rows = [
        json!({
            "name": "service_mtls",
            "per_second": full.on_two_cores(),
            "per_second_wall": full.a_second(),
            "baseline_per_second": bare.on_two_cores(),
            "p50_ms": full.within(0.5),
            "p99_ms": full.within(0.99),
            "ratio": (bare.on_two_cores() / full.on_two_cores() * 1000.0).round() / 1000.0,
        }),
        json!({
            "name": "service_half_load",
            "per_second": half,
            "p50_ms": at_half.within(0.5),
            "p99_ms": at_half.within(0.99),
            "baseline_p50_ms": bare_half.within(0.5),
            "baseline_p99_ms": bare_half.within(0.99),
            "ratio": Value::Null,
        }),
    ];
    if json_wanted {
        println!("{}", json!({ "rows": rows }));
        return;
    }
    let [full, half] = rows;
    println!(
        "service over mutual TLS, clients included: {} appraisals in two CPU seconds (healthz: {}), {} a second on the wall, p50 {} ms, p99 {} ms",
        full["per_second"],
        full["baseline_per_second"],
        full["per_second_wall"],
        full["p50_ms"],
        full["p99_ms"]
    );
    println!(
        "at half of that, {} a second: p50 {} ms, p99 {} ms (healthz: {} and {})",
        half["per_second"],
        half["p50_ms"],
        half["p99_ms"],
        half["baseline_p50_ms"],
        half["baseline_p99_ms"]
    );
}
