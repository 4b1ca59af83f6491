//! The same test bodies pass on the Verilated RTL. They need Verilator: `cargo xtask setup`.

use sha2::{Digest, Sha256};
use shef_sim::DemoArgs;
use std::fs;
use std::path::Path;

/// Attacks on the Security Kernel and its boot, one of each kind, to test the firmware's part. The
/// long test runs the others, and `sim/rtl/tests` tests the firmware's answers to them; attacks on
/// the Shield do not depend on where the kernel runs.
const ON_THE_FIRMWARE: &[&str] = &[
    "shield-key-swapped",
    "evidence-old-nonce",
    "image-byte-changed",
    "simulator-as-hardware",
    "noise-source-stuck",
];

#[test]
fn the_whole_line() {
    whole_line("sim:rtl?kernel=native");
}

fn whole_line(device: &str) {
    let report = shef_e2e::whole_line(device);
    let (Some(shielded), Some(bare)) = (report.cycles.shielded, report.cycles.bare) else {
        panic!("no cycles: {:?}", report.cycles)
    };
    assert!(bare > 0 && shielded >= bare * 9 / 10, "{shielded} cycles shielded, {bare} bare");
    assert!(
        shielded * 100 <= bare * 110,
        "{shielded} cycles shielded, {bare} bare: more than 10 % overhead"
    );
}

/// The model and the RTL agree on every byte of ciphertext, tags, sealed register traffic and
/// evidence.
#[test]
fn model_and_rtl_agree_bit_for_bit() {
    const SEED: u64 = 20_260_101;
    let dir = tempfile::tempdir().unwrap();
    let (m, r) = (dir.path().join("model"), dir.path().join("rtl"));
    let model = shef_e2e::seeded("sim:model", SEED, &m);
    let rtl = shef_e2e::seeded("sim:rtl?kernel=native", SEED, &r);
    assert_eq!(model.sealed.transcript, rtl.sealed.transcript);
    assert_eq!(model.sealed.inputs, rtl.sealed.inputs);
    assert_eq!(model.sealed.results, rtl.sealed.results);
    assert_eq!(
        (model.digits.tested, model.digits.correct),
        (rtl.digits.tested, rtl.digits.correct)
    );
    for name in [
        "memory/train.data",
        "memory/train.tags",
        "memory/query.data",
        "memory/query.tags",
        "memory/result.data",
        "memory/result.tags",
        "load-key.bin",
        "confirmation.bin",
        "evidence/kernel.cbor",
        "evidence/shield.cbor",
        "image.shef",
        "key-box.cbor",
    ] {
        assert_eq!(
            fs::read(m.join(name)).unwrap(),
            fs::read(r.join(name)).unwrap(),
            "{name}, seed {SEED}"
        );
    }
    assert_eq!(names_the_firmware(&r), [false; 2], "the native kernel has another digest");
}

/// Boot ROM and firmware on the RTL's processor answer, evidence names the committed image, and
/// attacks on the kernel are refused. The kernel does not affect the accelerator's results: a few
/// digits show that the right one was loaded.
#[test]
fn the_line_with_the_firmware() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let all = shef_e2e::ATTACKS.iter().chain(shef_e2e::BOOT_ATTACKS);
    let attacks: Vec<(&str, &str)> =
        all.filter(|(name, _)| ON_THE_FIRMWARE.contains(name)).copied().collect();
    assert_eq!(attacks.len(), ON_THE_FIRMWARE.len());
    let args = DemoArgs {
        device: "sim:rtl".to_owned(),
        attack: attacks.iter().map(|(name, _)| (*name).to_owned()).collect(),
        keep: Some(kept.clone()),
        // A second card would boot and load an image for the same attacks.
        cards: 1,
        ..shef_e2e::few_digits(dir.path(), 64, 32)
    };
    assert_eq!(shef_e2e::line(&args, &attacks).digits.tested, 32);
    assert_eq!(names_the_firmware(&kept), [true; 2]);
}

/// Whether evidence of kernel and Shield contains the digest of the committed image.
fn names_the_firmware(run: &Path) -> [bool; 2] {
    let image: [u8; 32] =
        Sha256::digest(include_bytes!("../../../attestation/firmware/kernel.img")).into();
    ["evidence/kernel.cbor", "evidence/shield.cbor"]
        .map(|name| fs::read(run.join(name)).unwrap().windows(32).any(|window| window == image))
}

/// For `cargo xtask test --full`.
mod long {
    #[test]
    #[ignore = "long: every attack with the firmware"]
    fn the_whole_line_with_the_firmware() {
        super::whole_line("sim:rtl");
    }
}
