//! The same bodies on the Verilated RTL. They need Verilator: `cargo xtask setup`.

use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

#[test]
fn the_whole_line() {
    let report = shef_e2e::whole_line("sim:rtl");
    let (Some(shielded), Some(bare)) = (report.cycles.shielded, report.cycles.bare) else { panic!("no cycles: {:?}", report.cycles) };
    assert!(bare > 0 && shielded >= bare * 9 / 10, "{shielded} cycles shielded, {bare} bare");
    assert!(shielded * 100 <= bare * 110, "{shielded} cycles shielded, {bare} bare: more than 10 % overhead");
}

/// Ciphertext, tags, sealed register traffic, evidence: the model and the RTL agree on every byte.
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
    assert_eq!((model.digits.tested, model.digits.correct), (rtl.digits.tested, rtl.digits.correct));
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
        assert_eq!(fs::read(m.join(name)).unwrap(), fs::read(r.join(name)).unwrap(), "{name}, seed {SEED}");
    }
    assert_eq!(names_the_firmware(&r), [false; 2], "the native kernel has another digest");
}

/// The boot ROM and the firmware on the RTL's processor are what answers: evidence names the
/// committed image.
#[test]
fn evidence_of_the_rtl_names_the_firmware() {
    let dir = tempfile::tempdir().unwrap();
    shef_e2e::seeded("sim:rtl", 7, dir.path());
    assert_eq!(names_the_firmware(dir.path()), [true; 2]);
}

/// Whether evidence of kernel and Shield holds the digest of the committed image.
fn names_the_firmware(run: &Path) -> [bool; 2] {
    let image: [u8; 32] = Sha256::digest(include_bytes!("../../../attestation/firmware/kernel.img")).into();
    ["evidence/kernel.cbor", "evidence/shield.cbor"].map(|name| fs::read(run.join(name)).unwrap().windows(32).any(|window| window == image))
}
