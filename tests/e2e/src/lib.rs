//! The bodies of the end-to-end tests: one for every back end.

use std::path::Path;

use shef_cli::demo::DemoArgs;
use shef_cli::demo::report::Report;
use shef_cli::output::{Color, Output};

/// Every attack, and the code of what must refuse it.
pub const ATTACKS: &[(&str, &str)] = &[
    ("ciphertext-bit-flip", "SHEF-SDK-021"),
    ("tag-bit-flip", "SHEF-SDK-021"),
    ("zero-tag", "SHEF-SDK-021"),
    ("chunks-swapped", "SHEF-SDK-021"),
    ("chunk-moved-to-other-region", "SHEF-SDK-021"),
    ("old-session-replayed", "SHEF-SDK-021"),
    ("old-epoch-replayed", "SHEF-SDK-021"),
    ("register-forged", "SHEF-SDK-004"),
    ("register-replayed", "SHEF-SDK-004"),
    ("load-key-replayed", "SHEF-SDK-005"),
    ("load-key-for-other-shield", "SHEF-SDK-005"),
    ("shield-key-swapped", "SHEF-ATT-014"),
    ("evidence-old-nonce", "SHEF-ATT-004"),
    ("image-byte-changed", "SHEF-PRO-041"),
    ("image-lower-svn", "SHEF-KRN-021"),
    ("debug-device", "SHEF-ATT-021"),
    ("simulator-as-hardware", "SHEF-ATT-013"),
    ("results-withheld", "SHEF-SDK-016"),
    ("memory-bus-error", "SHEF-SDK-022"),
];

/// Names of the steps, in order.
pub const STEPS: &[&str] =
    &["device", "image", "kernel-attestation", "shield-attestation", "load-key", "seal", "compute", "results", "close", "bare"];

/// Runs the demo quietly.
///
/// # Panics
/// Where the honest run does not come to its end.
pub fn demo(args: &DemoArgs) -> Report {
    let output = Output::new(true, true, 0, Color::Never);
    match shef_cli::demo::demo(&output, args) {
        Ok(report) => report,
        Err(error) => panic!("{} ({}): rerun with `cargo xtask demo {}`", error.message, error.code, flags(args)),
    }
}

/// The flags that run the same from the command line.
pub fn flags(args: &DemoArgs) -> String {
    let mut text = format!("--device {} --train {}", args.device, args.train);
    if let Some(seed) = args.seed {
        text.push_str(&format!(" --seed {seed}"));
    }
    if let Some(stalls) = args.stalls {
        text.push_str(&format!(" --stalls {stalls}"));
    }
    text
}

/// What must hold on every back end: every step, the digits, every attack with its code and no word delivered.
///
/// # Panics
/// Where something does not hold.
pub fn whole_line(device: &str) -> Report {
    let args = DemoArgs { device: device.to_owned(), ..DemoArgs::default() };
    let report = demo(&args);
    let again = flags(&args);
    assert_eq!(report.device, device);
    assert_eq!(report.root_of_trust, "simulated");
    assert!(!report.seeded);
    assert_eq!(report.steps.iter().map(|s| s.name).collect::<Vec<_>>(), STEPS);
    for step in &report.steps {
        assert!(step.ok, "step {} failed: {} (cargo xtask demo {again})", step.name, step.detail);
    }
    assert_eq!((report.digits.tested, report.digits.correct, report.digits.equal_to_reference), (797, 766, true));
    assert_eq!(report.attacks.iter().map(|a| a.name).collect::<Vec<_>>(), ATTACKS.iter().map(|a| a.0).collect::<Vec<_>>());
    for (attack, (name, code)) in report.attacks.iter().zip(ATTACKS) {
        assert!(attack.detected, "{name}: {} (cargo xtask demo {again} --attack {name})", attack.detail);
        assert_eq!(attack.words_delivered, 0, "{name}");
        assert_eq!(attack.code, *code, "{name}: {}", attack.detail);
    }
    report
}

/// Runs the honest part under a seed and leaves what crossed a boundary in `dir`.
pub fn seeded(device: &str, seed: u64, dir: &Path) -> Report {
    demo(&DemoArgs {
        device: device.to_owned(),
        seed: Some(seed),
        keep: Some(dir.to_owned()),
        keep_secrets: true,
        attack: vec!["none".to_owned()],
        ..DemoArgs::default()
    })
}
