//! `cargo xtask torture`: two replicas of the verifier service on one PostgreSQL, and one service on
//! SQLite, under the load of three tenants, while machines, databases and one of the tenants
//! misbehave, one fault after the other. Afterwards nothing is lost, nothing was done twice, and no
//! innocent tenant was out for long.

#![forbid(unsafe_code)]

mod accounts;
mod client;
mod faults;
mod hostile;
mod load;
mod machines;
mod process;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use shef_fixtures::postgres::Postgres;
use shef_fixtures::service::unb64;
use shef_proto::receipt::Audit;
use shef_verifierd::config::Config;

use accounts::{Book, Kept, Report};
use client::{Client, INNOCENT, Request, Service, account, done};
use machines::{Machines, TENANTS};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Seconds of each fault, with the time before and after it.
const SECONDS: u64 = 30;

const USAGE: &str = "usage: shef-torture [--json] [--seconds N] [FAULT ...]";

fn main() -> ExitCode {
    // A worker for policies, in a process that the replica in this process starts.
    if let Some(ended) = shef_rego::serve() {
        return ended;
    }
    let (mut json, mut seconds, mut only) = (false, SECONDS, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.len()) {
            ("--json", _) => json = true,
            ("--seconds", 1..) => match args.next().and_then(|number| number.parse().ok()) {
                Some(number @ 1..) => seconds = number,
                _ => return wrong_use(),
            },
            (name, _) if faults::ALL.iter().any(|(known, _)| *known == name) => only.push(arg),
            _ => return wrong_use(),
        }
    }
    let Some(database) = Postgres::start() else {
        eprintln!("torture: needs PostgreSQL: apt-get install postgresql");
        return ExitCode::from(3);
    };
    match run(database, &only, Duration::from_secs(seconds)) {
        Ok(report) => {
            if json {
                println!("{}", serde_json::json!(report));
            } else {
                print!("{}", table(&report));
            }
            ExitCode::from(u8::from(!report.holds()))
        }
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(5)
        }
    }
}

fn wrong_use() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// The figures as text.
fn table(report: &Report) -> String {
    let mut text = format!("{:<18} {:>8}\n", "requests", report.requests);
    for (name, count) in report.counts() {
        text.push_str(&format!("{name:<18} {count:>8}\n"));
    }
    text.push_str("\nlongest outage of an innocent tenant\n");
    for fault in &report.faults {
        text.push_str(&format!("{:<18} {:>6.1} s\n", fault.fault, fault.outage_of_innocent_s));
    }
    text
}

/// Counts the panics of this process, in which one of the replicas runs.
fn count_panics(book: &Arc<Book>) {
    let (book, print) = (Arc::clone(book), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        book.lock().line(&format!("panicked in this process: {panic}"));
    }));
}

/// Runs these faults, or all, and compares requests with receipts.
fn run(database: Postgres, only: &[String], time: Duration) -> Result<Report> {
    let book = Arc::<Book>::default();
    count_panics(&book);
    let (mut machines, services) = Machines::start(&book, database)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for service in &services {
            for tenant in INNOCENT {
                for work in load::works(service.urls.len()) {
                    let stop = &stop;
                    scope.spawn(move || work(service, tenant, stop).expect("a client"));
                }
            }
        }
        let ended = run_faults(&mut machines, &services, only, time);
        stop.store(true, Ordering::Relaxed);
        ended
    })?;
    eprintln!("torture: comparing receipts and releases");
    for service in &services {
        for tenant in TENANTS {
            if let Err(error) = audit(service, tenant, &book) {
                book.lock().broken(format!("{}: {error}", account(service, tenant)));
            }
        }
    }
    machines.stop();
    let report = book.lock().report();
    Ok(report)
}

/// Runs the faults, with load before and after each.
fn run_faults(
    machines: &mut Machines,
    services: &[Service; 2],
    only: &[String],
    time: Duration,
) -> Result<()> {
    let book = &services[0].book;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    for (name, fault) in faults::ALL.into_iter().filter(|(name, _)| wanted(name)) {
        let (start, before) = (Instant::now(), book.lock().report().requests);
        let number = book.lock().begin(name);
        std::thread::sleep(time / 5);
        fault(machines, services, time * 2 / 5)?;
        std::thread::sleep(time * 2 / 5);
        let report = book.lock().report();
        let outage = &report.faults[number];
        eprintln!(
            "torture: {name}: {} requests in {:.0} s, longest outage {:.1} s ({})",
            report.requests - before,
            start.elapsed().as_secs_f64(),
            outage.outage_of_innocent_s,
            outage.request
        );
    }
    Ok(())
}

/// Fetches all receipts of a tenant, verifies their chain, and compares them with the releases.
fn audit(service: &Service, tenant: &'static str, book: &Book) -> Result<()> {
    let client = Client::new(service, tenant, "audit")?;
    let get = |path: String| client.ask(&Request::get(path), done).ok_or("no answer");
    let config = Config::read(&service.folder.join("process.toml"))?;
    let signer = shef_verifierd::keyring::signer(&config)?;
    let (mut chain, mut receipts) = (Audit::new(tenant, signer.public_keys(), None), Vec::new());
    let mut after = Value::from(0);
    while !after.is_null() {
        let page = get(format!("/v1/receipts?limit=500&after={after}"))?;
        for row in page["receipts"].as_array().ok_or("no receipts")? {
            let receipt = chain.push(&unb64(&row["receipt"]))?;
            receipts.push(Kept { evidence: receipt.evidence_digest, key: receipt.key_id });
        }
        after = page["next"].clone();
    }
    let mut counted = BTreeMap::new();
    for key in load::KEYS {
        let versions = get(format!("/v1/keys/{key}"))?["versions"].take();
        let released = versions.as_array().into_iter().flatten();
        let released = released.filter_map(|version| version["released"].as_u64()).sum::<u64>();
        counted.insert(key.to_owned(), usize::try_from(released)?);
    }
    book.lock().audit(&account(service, tenant), &receipts, &counted);
    Ok(())
}
