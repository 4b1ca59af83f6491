//! Appraisals per second on one core, each with the bare signature operations of that appraisal as
//! the baseline, in the same run.
//!
//! `cargo xtask bench verifier [--json]`. An appraisal here is all of a verifier's work on one
//! piece of evidence: from the received bytes to the signed result. Times are CPU times of this
//! thread and of the process that runs the Rego policy, so that other load does not count. The two
//! are measured in alternating turns; the result is the median of the turns.

use std::hint::black_box;
use std::process::ExitCode;

use shef_fixtures::case::{AUDIENCE, Case, NONCE, NOW, key};
use shef_proto::evidence::Layer;
use shef_rego::Workers;
use shef_verify::crypto::{AwsLcKey, aws_lc, aws_lc_ready};
use shef_verify::ear::{self, Dialect, Issue, Reader};
use shef_verify::jwt::Signer;
use shef_verify::{
    AppraisalRequest, MemoryChainCache, Rego, Revocations, TrustAnchor, TrustAnchors, appraise,
};

/// A policy as operators write them: a dozen rules over the claims.
const REGO: &str = r#"package shef

default allow := false

allow if {
    input.layer == "shield"
    input.root_of_trust in {"shef-boot", "board"}
    input.debug in {"disabled-since-boot", "disabled-permanently"}
    not input.seeded
    input.kernel_svn >= 5
    input.image_svn >= 6
    input.accelerator in accelerators
    input.state == "fresh"
    count(input.bypass) == 0
}

accelerators := {"digits", "lenet"}
"#;

/// Turns, and minimum CPU time of each half of a turn in nanoseconds.
const TURNS: usize = 15;
const HALF: u64 = 40_000_000;

/// CPU time of this thread and of the policy processes in nanoseconds.
fn cpu(workers: &Workers) -> u64 {
    // The scheduler updates the count when the thread yields.
    std::thread::yield_now();
    let of = |task: String| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{task}/schedstat"))
            .expect("Linux with CONFIG_SCHED_INFO");
        text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
    };
    let workers: u64 = workers.ids().iter().map(|id| of(id.to_string())).sum();
    of("thread-self".into()) + workers
}

/// Runs per second of CPU time.
fn rate(workers: &Workers, work: &mut dyn FnMut()) -> f64 {
    // Starts the policy process before the measurement.
    work();
    let cpu = || cpu(workers);
    let (start, mut runs) = (cpu(), 0u32);
    loop {
        for _ in 0..64 {
            work();
        }
        runs += 64;
        let spent = cpu() - start;
        if spent >= HALF {
            return f64::from(runs) * 1e9 / spent as f64;
        }
    }
}

/// A list with entries of each kind, but not the appraised device.
fn revocations() -> Revocations {
    let list = |bytes: usize| (0xe0..0xe8u8).map(|byte| hex::encode(vec![byte; bytes])).collect();
    Revocations {
        issued: NOW - 10,
        next_update: NOW + 10,
        devices: list(33),
        serials: list(16),
        certificates: list(32),
        authorities: list(32),
        kernels: list(32),
        shells: list(32),
        images: list(32),
        vendors: list(32),
    }
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn main() -> ExitCode {
    if let Some(ended) = shef_rego::serve() {
        return ended;
    }
    let workers = Workers::default();
    let json = std::env::args().any(|argument| argument == "--json");
    let mut case = Case::new(Layer::Shield);
    (case.policy.max_age, case.policy.require_revocation) = (Some(300), true);
    let evidence = case.evidence();
    let anchor = TrustAnchor::new("maker", case.anchor.0, case.anchor.1, Case::root("maker").der())
        .expect("a root");
    let anchors = TrustAnchors::new(vec![anchor]);
    let typed = case.appraisal_policy();
    let revocations = revocations();
    let with_rego = typed.clone().with_rego(Rego::new(REGO).expect("a policy"));
    let cache = MemoryChainCache::new(1024).with_ready_keys(aws_lc_ready);
    let secret = shef_proto::hpke_suite::derive_key_pair(b"verifier").0;
    let signer = AwsLcKey::new("2026-11", &secret).expect("a key");
    let own_keys = [secret.public_key()];
    let issue = Issue {
        dialect: Dialect::Draft04,
        issuer: "https://verifier.example",
        audience: AUDIENCE,
        reader: Reader::Own,
        issued: NOW,
        expires: NOW + 300,
        id: "0123456789abcdef0123456789abcdef",
        nonce: &NONCE,
        policy: None,
        developer: "https://shef.dev",
        build: "bench",
        with_ueid: false,
    };
    let request = |policy, cached: bool| {
        let request = AppraisalRequest::new(
            &evidence,
            &anchors,
            &case.reference,
            policy,
            Layer::Shield,
            &NONCE,
            AUDIENCE,
            NOW,
        );
        AppraisalRequest {
            verify: aws_lc,
            chains: cached.then_some(&cache as _),
            revocations: Some(&revocations),
            challenged: Some(NOW - 2),
            own_keys: &own_keys,
            shown_svn: 5,
            rego: Some(&workers),
            ..request
        }
    };
    let run = |request: &AppraisalRequest<'_>| {
        let outcome = appraise(request);
        assert!(outcome.appraisal.accepted(), "{}", outcome.appraisal.to_json());
        black_box(ear::sign(&outcome, Layer::Shield, &issue, &signer).expect("a signature"));
    };
    // The bare operations, over messages of the same sizes: the evidence's Sig_structure, the
    // bodies of certificates, the token.
    let certificates: usize = case.certificates().iter().map(Vec::len).sum();
    let result = appraise(&request(&typed, false));
    let token = ear::sign(&result, Layer::Shield, &issue, &signer).expect("a signature");
    let (payload, body, token) = (
        vec![7; evidence.len() - certificates - 64],
        vec![7; certificates / 2 - 90],
        vec![7; token.len() - 87],
    );
    let sign = |message: &[u8]| key("bare").sign(message);
    let (payload_rs, body_rs, public) = (sign(&payload), sign(&body), key("bare").public_key());
    let bare = |certificates: usize| {
        for _ in 0..certificates {
            assert!(aws_lc(&public, black_box(&body), &body_rs));
        }
        assert!(aws_lc(&public, black_box(&payload), &payload_rs));
        black_box(signer.sign(black_box(&token)).expect("a signature"));
    };

    let mut rows = Vec::new();
    for (name, policy, cached) in [
        ("appraise_full", &typed, false),
        ("appraise_cached_rego", &with_rego, true),
        ("appraise_cached_typed", &typed, true),
    ] {
        let request = request(policy, cached);
        let mut turns = Vec::new();
        for _ in 0..TURNS {
            let ours = rate(&workers, &mut || run(&request));
            let baseline = rate(&workers, &mut || bare(if cached { 0 } else { 2 }));
            turns.push((ours, baseline));
        }
        let per_second = median(turns.iter().map(|(ours, _)| *ours).collect());
        let baseline = median(turns.iter().map(|(_, baseline)| *baseline).collect());
        let ratio = median(turns.iter().map(|(ours, baseline)| baseline / ours).collect());
        rows.push(serde_json::json!({
            "name": name,
            "per_second": per_second.round(),
            "baseline_per_second": baseline.round(),
            "ratio": (ratio * 1000.0).round() / 1000.0,
        }));
    }
    if json {
        println!("{}", serde_json::json!({ "rows": rows }));
        return ExitCode::SUCCESS;
    }
    println!("{:<24} {:>12} {:>14} {:>8}", "one core", "per second", "bare signatures", "ratio");
    for row in rows {
        let number = |name: &str| row[name].as_f64().unwrap_or_default();
        let name = row["name"].as_str().unwrap_or_default();
        println!(
            "{name:<24} {:>12.0} {:>14.0} {:>8.3}",
            number("per_second"),
            number("baseline_per_second"),
            number("ratio")
        );
    }
    ExitCode::SUCCESS
}
