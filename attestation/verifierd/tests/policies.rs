//! Policies in Rego run in separate processes: a policy that exceeds its limits ends its process
//! only.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_rego::Workers;
use shef_verify::rego::Evaluate as _;
use shef_verify::{Rego, RegoError};

use crate::binary::{Process, command, dir, run, signal};
use shef_fixtures::service::*;

const PROGRAM: &str = env!("CARGO_BIN_EXE_shef-verifierd");

/// Ten million steps without a result.
const TIME: &str = "package shef
n := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
allow if { some a in n; some b in n; some c in n; some d in n; some e in n; some f in n; some g in n; a + b + c + d + e + f + g == -1 }
";

/// Two policies that ended or blocked a service that ran them in-process.
const RANGES: [&str; 2] = [
    "package shef\nallow if count(numbers.range(1, 400000000000)) > 3\n",
    "package shef\nallow if count(numbers.range(1, 20000000)) > 3\n",
];

/// Values that double each time: `first`, and the expression for the next value from `x`.
fn doubling(first: &str, next: &str) -> String {
    let mut text = format!("package shef\nx0 := {first}\n");
    for n in 1..40 {
        let _ = writeln!(text, "x{n} := {}", next.replace('x', &format!("x{}", n - 1)));
    }
    text + "allow if x39 != 0\n"
}

/// Lists: in a few steps larger than memory.
fn memory() -> String {
    doubling("[1]", "array.concat(x, x)")
}

/// Numbers: successive multiplications without a bound on their time.
fn squares() -> String {
    doubling("18446744073709551615", "x * x")
}

fn policy(text: &str) -> Rego {
    Rego::new(text).unwrap()
}

fn is_alive(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn a_worker_answers_for_many_and_has_nothing_that_they_do_not_need() {
    let workers = Workers::new(PROGRAM);
    let good = policy("package shef\nallow if input.n >= 18446744073709551615\n");
    assert_eq!(workers.evaluate(&good, "{\"n\": 18446744073709551615}"), Ok(true));
    let ids = workers.ids();
    assert_eq!(ids.len(), 1);
    assert_eq!(workers.evaluate(&good, "{\"n\": 18446744073709551614}"), Ok(false));
    assert_eq!(workers.evaluate(&policy("package shef\nallow if input.x"), "{}"), Ok(false));
    let failed = |text: &str| match workers.evaluate(&policy(text), "{\"n\": 0}") {
        Err(RegoError::Failed { text }) => text,
        other => panic!("{text}: {other:?}"),
    };
    assert!(failed("package shef\nallow := 7").contains("a number"));
    assert!(failed("package shef\nallow := x if { x := 1 / input.n }").contains("zero"));
    assert!(failed("package shef\nallow := (").contains("policy.rego:2"));
    // A name that the check of the text cannot see fails at the call.
    assert!(
        failed("package shef\nallow if count(numbers[\"range\"](1, 400000000000)) > 3")
            .contains("may not call")
    );
    // Even after failures, an evaluation starts from a clean state.
    let divides = policy("package shef\nallow if { x := 1 / input.n; x == 1 }");
    for _ in 0..2 {
        assert_eq!(workers.evaluate(&divides, "{\"n\": 1}"), Ok(true));
        assert!(workers.evaluate(&divides, "{\"n\": 0}").is_err());
    }
    let bad = workers.check(&policy("package shef\nallow := (")).unwrap_err();
    assert_eq!((bad.code(), bad.to_string().contains("policy.rego:2")), ("SHEF-ATT-053", true));
    workers.check(&good).unwrap();
    // All of that ran in one process, which cannot open files and leaves no core dump.
    assert_eq!(workers.ids(), ids);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", ids[0])).unwrap();
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    for name in ["Max open files", "Max core file size", "Max file size", "Max processes"] {
        assert_eq!(soft(name), "0", "{name}");
    }
    assert!(soft("Max address space").parse::<u64>().unwrap() < 1 << 30);
    assert!(soft("Max cpu time").parse::<u64>().unwrap() < 10);
    assert_eq!(std::fs::read(format!("/proc/{}/environ", ids[0])).unwrap(), b"");
    // A worker ignores the signal that ends a whole unit; killing the worker loses no answer.
    let worker = rustix_pid(ids[0]);
    rustix::process::kill_process(worker, rustix::process::Signal::TERM).unwrap();
    assert_eq!(workers.evaluate(&divides, "{\"n\": 1}"), Ok(true));
    assert_eq!(workers.ids(), ids);
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    while std::fs::read_to_string(format!("/proc/{}/stat", ids[0]))
        .is_ok_and(|stat| !stat.contains(") Z "))
    {
        std::thread::yield_now();
    }
    assert_eq!(workers.evaluate(&divides, "{\"n\": 1}"), Ok(true));
    let next = workers.ids();
    assert!(next != ids && next.len() == 1);
    workers.retire(std::time::Duration::ZERO);
    assert!(workers.ids().is_empty() && !is_alive(next[0]));
}

fn rustix_pid(id: u32) -> rustix::process::Pid {
    rustix::process::Pid::from_raw(id.cast_signed()).unwrap()
}

#[test]
fn a_policy_that_passes_its_limits_ends_its_own_process() {
    let workers = Workers::new(PROGRAM);
    let good = policy("package shef\nallow := true\n");
    let (memory, squares) = (policy(&memory()), policy(&squares()));
    let passed = |policy: &Rego| workers.evaluate(policy, "{}").unwrap_err();
    for _ in 0..2 {
        // On a busy machine, the time may run out first.
        assert_eq!(passed(&memory).code(), "SHEF-ATT-055");
        assert_eq!(workers.evaluate(&good, "{}"), Ok(true));
    }
    // Within one step, where the engine checks no clock.
    assert_eq!(passed(&squares).code(), "SHEF-ATT-055");
    // After three failures in a row it is suspended for a while, even if it is parsed in between;
    // other policies still run.
    workers.check(&memory).unwrap();
    assert_eq!(passed(&memory).code(), "SHEF-ATT-055");
    assert_eq!(workers.check(&memory).unwrap_err().code(), "SHEF-ATT-053");
    assert_eq!(passed(&memory).code(), "SHEF-ATT-056");
    assert_eq!(workers.evaluate(&good, "{}"), Ok(true));
}

/// A policy that runs late because other work had the processor is not treated as slow.
#[test]
fn a_policy_that_was_kept_waiting_is_evaluated() {
    use rustix::process::{Signal, kill_process};
    let workers = Workers::new(PROGRAM);
    let policy = |n: u32| {
        let steps = (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let text = format!(
            "package shef\nn := [{steps}]\nallow if not sum\nsum if {{ some a in n; some b in n; some c in n; a + b + c == -1 }}\n"
        );
        self::policy(&text)
    };
    // One that is still running when it is stopped, but ends long before its time limit.
    let long = (8..).step_by(2).find_map(|n| {
        let (policy, start) = (policy(n), std::time::Instant::now());
        workers.evaluate(&policy, "{}").unwrap();
        (start.elapsed() > std::time::Duration::from_millis(50)).then_some(policy)
    });
    let (long, quick) = (long.unwrap(), self::policy("package shef\nallow := true\n"));
    // Other work may have the processor for longer than even this allows; stopped for that long, an
    // evaluation that is not repeated never succeeds.
    let answered = (0..8).any(|_| {
        let workers = Workers::new(PROGRAM);
        workers.evaluate(&quick, "{}").unwrap();
        let worker = rustix_pid(workers.ids()[0]);
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| workers.evaluate(&long, "{}"));
            std::thread::sleep(std::time::Duration::from_millis(10));
            kill_process(worker, Signal::STOP).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1200));
            kill_process(worker, Signal::CONT).unwrap();
            answer.join().unwrap() == Ok(true)
        })
    });
    assert!(answered);
}

#[test]
fn without_a_worker_nothing_is_allowed() {
    for program in ["/nowhere/shef-verifierd", "/bin/true", "/bin/cat"] {
        let error = Workers::new(program)
            .evaluate(&policy("package shef\nallow := true"), "{}")
            .unwrap_err();
        assert_eq!(
            (error.code(), error.to_string().contains(program)),
            ("SHEF-ATT-057", true),
            "{error}"
        );
    }
}

/// Peak memory of the process so far, in bytes.
fn peak(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn both(rego: &str) -> String {
    json!({"typed": POLICY, "rego": rego}).to_string()
}

fn json_type() -> [(&'static str, &'static str); 1] {
    [("content-type", "application/json")]
}

fn put(client: &Client, name: &str, rego: &str) -> HttpResponse {
    client.send("PUT", &format!("/v1/policies/{name}"), &json_type(), both(rego).as_bytes())
}

fn dry_run(client: &Client, rego: &str) -> HttpResponse {
    client.send("POST", "/v1/policies/dry-run", &json_type(), both(rego).as_bytes())
}

fn appraise(client: &Client, device: &Device, policy: &str) -> HttpResponse {
    let (session, nonce) = client.session(Layer::Kernel, None);
    let evidence = device.evidence(Layer::Kernel, &nonce);
    client.post(
        "/v1/appraise",
        &json!({"session": session, "evidence": b64(&evidence), "policy": policy}),
    )
}

/// While one tenant's policies use all they can, in dry runs and appraisals, another tenant gets
/// answers.
#[test]
fn one_tenants_policies_are_no_other_tenants_loss() {
    let dir = dir();
    dir.configure(|text| format!("{text}\n[[tenant]]\nname = \"other\"\n"));
    let path = dir.path.to_str().unwrap();
    assert!(
        command(&[
            "client", "--dir", path, "--tenant", "other", "--role", "operator", "--name", "other"
        ])
        .status
        .success()
    );
    assert!(
        command(&["client", "--dir", path, "--role", "operator", "--name", "colleague"])
            .status
            .success()
    );
    let mut process = run(&dir);
    let named = |name| Client::new(&dir.path, process.client.url(), Some(name));
    let (client, other, colleague) = (process.client.clone(), named("other"), named("colleague"));
    let device = Device::new(1);
    for client in [&client, &other] {
        furnish(client, &device);
        appraise(client, &device, "default").ok();
        appraise(client, &device, "default").ok();
    }
    for rego in RANGES {
        for answer in [put(&client, "range", rego), dry_run(&client, rego)] {
            let problem = answer.problem(422, "SHEF-SVC-050");
            assert!(
                problem["detail"]
                    .as_str()
                    .unwrap()
                    .contains("numbers.range: a policy may not call it"),
                "{problem}"
            );
        }
    }
    put(&client, "broken", "package shef\nallow := (").problem(422, "SHEF-SVC-050");
    put(&client, "memory", &memory()).ok();
    put(&client, "squares", &squares()).ok();
    put(&client, "good", "package shef\nallow := true\n").ok();
    let before = peak(&process);
    let (over, mut answered, mut second) = (AtomicBool::new(false), 0, false);
    let denied = |answer: HttpResponse| {
        let denied = answer.problem(422, "SHEF-SVC-043");
        denied["detail"].as_str().unwrap().to_owned()
    };
    std::thread::scope(|scope| {
        // Of another caller: one caller's appraisals take no more than its own places.
        let dry = scope.spawn(|| dry_run(&colleague, TIME).ok());
        let killers: Vec<_> = ["memory", "squares"]
            .into_iter()
            .map(|name| {
                scope.spawn(|| {
                    // The caller's other appraisal can take its place for longer than a request
                    // waits for one.
                    let busy = |answer: &HttpResponse| answer.status == 503;
                    let mut answers = (0..50).map(|_| appraise(&client, &device, name));
                    denied(answers.find(|answer| !busy(answer)).expect("a place"))
                })
            })
            .collect();
        let all = scope.spawn(|| {
            // First the end of the loop below, even if one of them has failed.
            let details: Vec<_> = killers.into_iter().map(|killer| killer.join()).collect();
            let dry = dry.join();
            over.store(true, Ordering::Relaxed);
            let details: Vec<String> = details.into_iter().map(Result::unwrap).collect();
            let dry: Value = dry.unwrap();
            (details, dry)
        });
        while !over.load(Ordering::Relaxed) {
            assert_eq!(other.get("/healthz").ok()["status"], "ok");
            appraise(&other, &device, "default").ok();
            dry_run(&other, "package shef\nallow := true\n").ok();
            answered += 1;
            // One dry run per tenant at a time.
            second |= dry_run(&client, "package shef\nallow := true\n").status == 429;
        }
        let (details, dry) = all.join().unwrap();
        assert!(details.iter().all(|detail| detail.contains("SHEF-ATT-055")), "{details:?}");
        assert!(dry["accepted"] == 0 && dry["held"].as_u64() >= Some(2), "{dry}");
        assert!(
            dry["changes"][0]["failed"][0]["actual"].as_str().unwrap().contains("SHEF-ATT-055"),
            "{dry}"
        );
    });
    assert!(answered >= 2, "the other tenant was answered {answered} times meanwhile");
    assert!(second, "no second dry run was refused");
    assert!(
        peak(&process) - before < 48 << 20,
        "the service took {} MiB",
        (peak(&process) - before) >> 20
    );
    // Denied without running it, while the tenant's other policies run.
    assert!(denied(appraise(&client, &device, "memory")).contains("SHEF-ATT-055"));
    assert!(denied(appraise(&client, &device, "memory")).contains("SHEF-ATT-055"));
    assert!(denied(appraise(&client, &device, "memory")).contains("SHEF-ATT-056"));
    appraise(&client, &device, "good").ok();
    let metrics = String::from_utf8(client.get("/metrics").ok_bytes()).unwrap();
    for reason in ["limit", "refused"] {
        assert!(
            metrics.contains(&format!("\nshef_policy_failures_total{{reason=\"{reason}\"}} ")),
            "{metrics}"
        );
    }
    signal(&process.child, "-TERM");
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
}

/// A policy from a version that allowed more functions denies with its name in the error, affects
/// no other policy, and is not replaced by an older version.
#[test]
fn a_stored_policy_that_may_not_run_any_more_is_named() {
    let mut service = Service::start();
    let device = Device::new(1);
    service.furnish(&device);
    service
        .operator
        .send("PUT", "/v1/policies/old", &[("content-type", "application/toml")], POLICY.as_bytes())
        .ok();
    service.stop();
    let database = service.dir.join("verifierd.db");
    let content = both("package shef\nallow if sprintf(\"%d\", [1]) == \"1\"\n");
    service.runtime.block_on(async {
        let pool = sqlx::SqlitePool::connect(database.to_str().unwrap()).await.unwrap();
        let sql = "INSERT INTO policy SELECT tenant, name, 2, 'application/json', ?, sha256, created FROM policy WHERE name = 'old'";
        sqlx::query(sql).bind(content.as_bytes()).execute(&pool).await.unwrap();
        pool.close().await;
    });
    service.restart();
    appraise(&service.operator, &device, "default").ok();
    let problem = appraise(&service.operator, &device, "old").problem(422, "SHEF-SVC-050");
    assert!(
        problem["detail"].as_str().unwrap().contains("policy old: Rego policy: sprintf"),
        "{problem}"
    );
    appraise(&service.operator, &device, "old@1").ok();
}
