//! `shef cloud run`: the policy of a session is the lock file, and a card that is not of that image
//! is refused by evidence. Needs Verilator: `cargo xtask setup`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use shef_cloud::lock::Lock;
use shef_e2e::{Served, shef_program};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/vecadd").canonicalize().unwrap()
}

/// `shef --json`, which must succeed.
fn ok(words: &[&str]) -> Value {
    let output = Command::new(shef_program()).args(words).arg("--json").output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

#[test]
fn a_session_is_that_of_the_lock_file_and_another_image_is_refused_by_evidence() {
    let (dir, card) = (tempfile::tempdir().unwrap(), Served::project(&example()));
    let at = |name: &str| dir.path().join(name).display().to_string();
    let maker = card.manufacturer().display().to_string();
    let trust = ok(&["sim", "trust", "--manufacturer", &maker, "--out", &at("trust")]);
    let anchors = at("trust/anchors.toml");
    let project = example().display().to_string();
    let digest = |file: &str| hex::encode(Sha256::digest(fs::read(file).unwrap()));
    let lock = Lock {
        format: Lock::format(),
        accelerator: text(&ok(&["project", "check", &project, "--no-ports"])["accelerator"]),
        target: "shef-sim".to_owned(),
        root_of_trust: "simulated".to_owned(),
        source: text(&ok(&["project", "check", &project, "--no-ports"])["design_digest"]),
        firmware: text(&trust["native_kernel_digest"]),
        firmware_svn: 1,
        shell: text(&trust["shell_digest"]),
        shell_version: "0x00000000".to_owned(),
        hdk_release: "none".to_owned(),
        entropy: "tested".to_owned(),
        core_khz: 250_000,
        hbm: false,
        dcp: "00".repeat(32),
        tarball: "00".repeat(32),
        region: "us-east-1".to_owned(),
        afi: "afi-00000000000000000".to_owned(),
        agfi: "agfi-00000000000000000".to_owned(),
        ueid: text(&ok(&["device", "info", &card.uri()])["ueid"]),
        certificate: "00".repeat(32),
        anchor: digest(&anchors),
        corim: "00".repeat(32),
    };
    let out = format!("result0={}:4096", at("sums"));
    let started = |lock: &Lock, anchors: &str, job: &[&str]| -> Output {
        lock.write(Path::new(&at("image.lock"))).unwrap();
        let mut command = Command::new(shef_program());
        command.args(["cloud", "run", &project, "--lock", &at("image.lock")]);
        command.args(["--anchors", anchors, "--device", &card.uri(), "--job"]).args(job);
        command.args(["--reg", "blocks=8", "--out", &out, "--json"]).output().unwrap()
    };
    let run = |lock: &Lock, anchors: &str| started(lock, anchors, &["add"]);
    let output = run(&lock, &anchors);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["design_digest"], lock.source.as_str());
    assert_eq!(fs::read(at("sums")).unwrap().len(), 4096);

    // Another image: evidence shows another device, shell, kernel or kind of root.
    let other = |change: &dyn Fn(&mut Lock), code: &str| {
        let mut lock = lock.clone();
        change(&mut lock);
        fs::remove_file(at("sums")).ok();
        let output = run(&lock, &anchors);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(code), "{code}: {said}");
        assert!(!Path::new(&at("sums")).exists(), "{code}: no result");
        output.status.code()
    };
    assert_eq!(other(&|lock| lock.ueid = "01".repeat(33), "SHEF-ATT-024"), Some(1));
    assert_eq!(other(&|lock| lock.shell = "11".repeat(32), "SHEF-ATT-032"), Some(1));
    assert_eq!(other(&|lock| lock.firmware = "11".repeat(32), "SHEF-ATT-030"), Some(1));
    assert_eq!(other(&|lock| lock.target = "aws-f2".to_owned(), "SHEF-ATT-023"), Some(1));
    let provider = "provider".to_owned();
    assert_eq!(other(&|lock| lock.root_of_trust.clone_from(&provider), "SHEF-ATT-0"), Some(1));
    // Files that are not those of the lock file.
    assert_eq!(other(&|lock| lock.source = "11".repeat(32), "SHEF-CLD-032"), Some(5));
    assert_eq!(other(&|lock| lock.anchor = "11".repeat(32), "SHEF-CLD-032"), Some(5));
    // A dry run checks the job, too.
    let output = started(&lock, &anchors, &["nosuch", "--dry-run"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("nosuch"), "{said}");
    assert!(started(&lock, &anchors, &["add", "--dry-run"]).status.success());
    // The same card once more.
    assert!(run(&lock, &anchors).status.success());
}
