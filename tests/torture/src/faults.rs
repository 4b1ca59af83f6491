//! The faults, one by one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use shef_fixtures::service::{Device, now};
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::SystemEntropy;

use crate::Result;
use crate::accounts::Verdict;
use crate::client::{Client, INNOCENT, Request, Service};
use crate::hostile;
use crate::load::{self, DOOMED, KEYS, any_revocation, revoke, rotate};
use crate::machines::Machines;

/// A fault: its name, and what it does while the load goes on. The time is that of the fault
/// itself, unless its length is fixed.
pub type Fault = (&'static str, fn(&mut Machines, &[Service; 2], Duration) -> Result<()>);

/// All faults, in the order of the run: the log is closed until the next start, which is that after
/// `kill`.
pub const ALL: [Fault; 10] = [
    ("pause", pause),
    ("disk-full", disk_full),
    ("database-restart", database_restart),
    ("log-closed", log_closed),
    ("kill", kill),
    ("clock-step", clock_step),
    ("reload", reload),
    ("rotation", rotation),
    ("revocation", revocation),
    ("hostile-tenant", hostile_tenant),
];

/// Fails if a fault has no effect: then the run shows nothing.
fn show(effect: bool, what: &str) -> Result<()> {
    if effect { Ok(()) } else { Err(format!("{what}: the run shows nothing").into()) }
}

/// What a replica of a service answers to one request.
fn asked(service: &Service, replica: usize, request: &Request) -> Result<Option<(u16, Value)>> {
    Ok(Client::new(service, INNOCENT[0], "operator")?.send(replica, request))
}

/// Seconds by which a clock steps: more than a day.
const STEP: i64 = 90_000;
/// How long a revoked device may still be accepted.
const IN_FORCE: Duration = Duration::from_secs(2);
/// The number of the replica in a separate process.
const PROCESS: usize = 1;

/// A replica stands still for ten seconds.
fn pause(machines: &mut Machines, services: &[Service; 2], _: Duration) -> Result<()> {
    machines.replica.signal(Signal::STOP);
    let start = Instant::now();
    let answer = asked(&services[0], PROCESS, &Request::get("/healthz"));
    std::thread::sleep(Duration::from_secs(10).saturating_sub(start.elapsed()));
    machines.replica.signal(Signal::CONT);
    show(answer?.is_none(), "a paused replica answers")
}

/// The disk of the service on SQLite is full; its own tenants are excused while it is.
fn disk_full(machines: &mut Machines, services: &[Service; 2], time: Duration) -> Result<()> {
    services[1].excuse(true);
    machines.single.limit_files("1")?;
    std::thread::sleep(time);
    let answer = asked(&services[1], 0, &any_revocation());
    machines.single.limit_files("unlimited")?;
    services[1].excuse(false);
    let full = answer?.is_none_or(|(status, _)| status == 503);
    show(full, "a change is stored although the disk is full")
}

/// PostgreSQL ends as in a crash, and starts again.
fn database_restart(machines: &mut Machines, _: &[Service; 2], _: Duration) -> Result<()> {
    machines.database.crash();
    Ok(())
}

/// The reader of the log goes away, and does not come back.
fn log_closed(machines: &mut Machines, services: &[Service; 2], time: Duration) -> Result<()> {
    machines.replica.close_log();
    machines.single.close_log();
    std::thread::sleep(time);
    for (service, replica) in services.iter().zip([PROCESS, 0]) {
        let answer = asked(service, replica, &Request::get("/readyz"))?;
        let lost = answer.is_some_and(|(_, body)| body["log"] == "lost");
        show(lost, "no line of a closed log is lost")?;
    }
    Ok(())
}

/// A replica and the service on SQLite are killed and start again, twice. The tenants on SQLite are
/// excused while their only process is down.
fn kill(machines: &mut Machines, services: &[Service; 2], time: Duration) -> Result<()> {
    for _ in 0..2 {
        machines.kill_replica(time / 4)?;
        services[1].excuse(true);
        machines.kill_single()?;
        services[1].excuse(false);
        std::thread::sleep(time / 4);
    }
    Ok(())
}

/// The clock of a replica steps forward, the replica deletes what has expired by that clock, and
/// the clock steps back.
fn clock_step(machines: &mut Machines, _: &[Service; 2], time: Duration) -> Result<()> {
    machines.ahead.store(STEP, Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(500));
    let stepped = machines.inner.app.now() > now() + STEP / 2;
    machines.runtime.block_on(machines.inner.app.sweep())?;
    std::thread::sleep(time);
    machines.ahead.store(0, Ordering::Relaxed);
    show(stepped, "the clock did not step")
}

/// All replicas read their configurations again, many times a second.
fn reload(machines: &mut Machines, _: &[Service; 2], time: Duration) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < time {
        machines.reload()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Signing keys and keys of tenants are exchanged for new ones.
fn rotation(machines: &mut Machines, services: &[Service; 2], time: Duration) -> Result<()> {
    for _ in 0..3 {
        machines.rotate_signing_keys()?;
        machines.reload()?;
        for service in services {
            for tenant in INNOCENT {
                let operator = Client::new(service, tenant, "operator")?;
                for key in KEYS {
                    rotate(&operator, key);
                }
            }
        }
        std::thread::sleep(time / 4);
    }
    Ok(())
}

/// When a revocation was sent, and when it was answered.
type Revoked = std::sync::Mutex<(Option<Instant>, Option<Instant>)>;

/// A device submits evidence all the time, while it is revoked. Returns how much of it had to be
/// denied.
fn doomed(
    service: &Service,
    tenant: &'static str,
    revoked: &Revoked,
    stop: &AtomicBool,
) -> Result<usize> {
    let client = Client::new(service, tenant, "release")?;
    let device = Device::new(DOOMED);
    let (_, recipient) = generate_key_pair(&mut SystemEntropy);
    let mut denied = 0;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let Some(case) = load::case(&client, &device, Some(&recipient)) else { continue };
        let begin = Instant::now();
        let found = if number % 2 == 0 {
            load::appraise(&client, &case)
        } else {
            load::release(&client, KEYS[0], &case)
        };
        let (Some(found), Ok(revoked)) = (found, revoked.lock()) else { continue };
        let expected = match *revoked {
            (None, _) => Verdict::Accepted,
            (_, Some(answered)) if begin > answered + IN_FORCE => Verdict::Denied,
            _ => continue,
        };
        let what = format!("{}: a device that is revoked during the run", client.account());
        service.book.lock().verdict(&what, expected, found);
        denied += usize::from(expected == Verdict::Denied);
    }
    Ok(denied)
}

/// A device is revoked while it submits evidence to all replicas.
fn revocation(_: &mut Machines, services: &[Service; 2], time: Duration) -> Result<()> {
    let stop = AtomicBool::new(false);
    let all: Vec<(&Service, &'static str, Revoked)> = services
        .iter()
        .flat_map(|service| INNOCENT.map(|tenant| (service, tenant, Revoked::default())))
        .collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = all
            .iter()
            .map(|(service, tenant, revoked)| {
                let stop = &stop;
                scope.spawn(move || {
                    doomed(service, tenant, revoked, stop).map_err(|e| e.to_string())
                })
            })
            .collect();
        std::thread::sleep(time / 2);
        for (service, tenant, revoked) in &all {
            let operator = Client::new(service, tenant, "operator")?;
            let mark = |answered: bool| {
                if let Ok(mut revoked) = revoked.lock() {
                    let at = Some(Instant::now());
                    if answered { revoked.1 = at } else { revoked.0 = at }
                }
            };
            mark(false);
            if revoke(&operator, &Device::new(DOOMED)).is_some() {
                mark(true);
            }
        }
        std::thread::sleep(time / 2 + IN_FORCE);
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let denied = thread.join().map_err(|_| "a client panicked")??;
            show(denied > 0, "a revoked device submitted nothing")?;
        }
        Ok(())
    })
}

/// One tenant attacks the replicas, then the service on SQLite.
fn hostile_tenant(_: &mut Machines, services: &[Service; 2], time: Duration) -> Result<()> {
    for service in services {
        let stop = AtomicBool::new(false);
        let answered = std::thread::scope(|scope| {
            let attack =
                scope.spawn(|| hostile::attack(service, &stop).map_err(|error| error.to_string()));
            std::thread::sleep(time / 2);
            stop.store(true, Ordering::Relaxed);
            attack.join().map_err(|_| "an attacker panicked")
        })??;
        show(answered > hostile::connections(), "the attackers sent little")?;
    }
    Ok(())
}
