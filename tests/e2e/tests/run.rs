//! `shef run`: a job of a project, from its folder to results in files. Needs Verilator: `cargo xtask
//! setup`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use shef_e2e::{Served, shef_program};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/vecadd").canonicalize().unwrap()
}

/// The digest of the example's design.
fn digest() -> String {
    hex::encode(shef_project::Design::project(&example()).unwrap().digest())
}

/// 8 blocks of 512 bytes.
const BYTES: usize = 8 * 512;

fn words(seed: u32) -> Vec<u32> {
    let word = |i: u32| (i ^ seed).wrapping_mul(0x9e37_79b1).rotate_left(seed % 31);
    (0..BYTES as u32 / 4).map(word).collect()
}

fn bytes(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn sums() -> Vec<u8> {
    bytes(words(1).into_iter().zip(words(2)).map(|(x, y)| x.wrapping_add(y)))
}

/// A folder with inputs, whose names have blanks and umlauts.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a größer.bin"), bytes(words(1))).unwrap();
    fs::write(dir.path().join("b=1.bin"), bytes(words(2))).unwrap();
    dir
}

const FILES: [&str; 4] = ["--in", "a0=a größer.bin", "--in", "b0=b=1.bin"];
const OUT: [&str; 2] = ["--out", "result0=die Summe.bin:4096"];
/// The job `add` of the example without its inputs and outputs, but with 8 blocks.
const REGISTERS: [&str; 16] = [
    "--reg",
    "blocks=8",
    "--reg",
    "a=@a0",
    "--reg",
    "0x14=@b0",
    "--reg",
    "sums=0x2_0000",
    "--reg",
    "result=@result0",
    "--reg",
    "progress=@progress",
    "--start",
    "ctrl=1",
    "--read",
    "status",
];
const DONE: [&str; 2] = ["--done", "status:1=1"];

/// `shef run` of a project in a folder.
fn command(dir: &Path, project: &Path, args: &[&[&str]]) -> Command {
    let mut command = Command::new(shef_program());
    command.current_dir(dir).arg("run").arg(project).args(args.concat());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn ok(mut command: Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn fails(mut command: Command, exit: i32, code: &str, parts: &[&str]) {
    let output = command.arg("--json").output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(exit), "{command:?}: {said}");
    let code = if code.is_empty() { "error: ".to_owned() } else { format!("error [{code}]") };
    assert_eq!(said.matches(&code).count(), 1, "{command:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The names of a folder's files.
fn names(dir: &Path) -> Vec<String> {
    let entry = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(entry).collect();
    names.sort();
    names
}

#[test]
fn a_job_of_the_project_runs_on_a_card_that_the_command_starts() {
    let dir = folder();
    let more = [&["--job", "add", "--reg", "blocks=8", "--sessions", "2"][..], &FILES, &OUT];
    let mut command = command(dir.path(), &example(), &more);
    let output = command.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(said(&output).matches("protects nothing").count(), 1, "{}", said(&output));
    assert_eq!(fs::read(dir.path().join("die Summe.bin")).unwrap(), sums());
    assert_eq!(names(dir.path()), ["a größer.bin", "b=1.bin", "die Summe.bin"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["accelerator"], "vecadd");
    assert_eq!(
        document["device"],
        format!("sim:rtl?project={}&kernel=native", example().display())
    );
    assert_eq!(document["design_digest"], digest());
    assert_eq!((&document["job"], &document["seed"]), (&"add".into(), &Value::Null));
    let sessions = document["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert_ne!(sessions[0]["transcript"], sessions[1]["transcript"], "keys of its own");
    let register = serde_json::json!([{"name": "status", "offset": 4, "value": 2}]);
    assert_eq!(document["registers"], register);
    assert_eq!(document["inputs"][0]["region"], "a0");
    assert_eq!(document["inputs"][0]["bytes"], BYTES);
    let digest = |bytes: &[u8]| hex::encode(<sha2::Sha256 as sha2::Digest>::digest(bytes));
    assert_eq!(document["inputs"][1]["sha256"], digest(&bytes(words(2))));
    assert_eq!(document["outputs"][0]["sha256"], digest(&sums()));
}

/// Trust data for a served card in the folder `trust` beside the inputs, with a policy that allows
/// these unprotected regions.
fn trust(dir: &Path, card: &Served, bypass: &str) -> Vec<String> {
    let out = dir.join("trust");
    if !out.exists() {
        let mut trust = Command::new(shef_program());
        trust.args(["sim", "trust", "--quiet", "--manufacturer"]).arg(card.manufacturer());
        assert!(trust.arg("--out").arg(&out).status().unwrap().success());
    }
    let policy = fs::read_to_string(out.join("policy.toml")).unwrap();
    assert!(policy.contains("bypass = []\n"), "{policy}");
    let policy = policy.replace("bypass = []", &format!("bypass = {bypass}"));
    fs::write(out.join("own.toml"), policy).unwrap();
    let file = |name: &str| out.join(name).display().to_string();
    ["--device", &card.uri(), "--anchors", &file("anchors.toml"), "--reference"]
        .into_iter()
        .map(str::to_owned)
        .chain([file("reference.toml"), "--policy".to_owned(), file("own.toml")])
        .collect()
}

#[test]
fn a_card_that_others_serve_needs_trust_data_and_every_session_is_closed() {
    let (dir, card) = (folder(), Served::project(&example()));
    let out = dir.path().join("die Summe.bin");
    let trusted = trust(dir.path(), &card, "[\"progress\"]");
    let trusted: Vec<&str> = trusted.iter().map(String::as_str).collect();
    let run = |more: &[&[&str]]| {
        command(dir.path(), &example(), &[&[&trusted[..], &REGISTERS][..], more].concat())
    };
    let files = || names(dir.path());
    let before = files();

    // All of it as flags gives what the job of the file gives.
    let document = ok(run(&[&FILES, &OUT, &DONE]));
    assert_eq!(fs::read(&out).unwrap(), sums());
    assert_eq!(document["device"], card.uri());
    let random = |seed: &str| {
        let mut run = command(dir.path(), &example(), &[&trusted[..], &["--job", "add"], &OUT]);
        run.args(["--reg", "blocks=8", "--seed", seed]);
        let document = ok(run);
        assert_eq!(document["seed"].to_string(), seed);
        (document["inputs"].clone(), fs::read(&out).unwrap())
    };
    let first = random("7");
    assert_eq!(random("7"), first);
    let other = random("8");
    assert!(other.0 != first.0 && other.1 != first.1);
    fs::remove_file(&out).unwrap();

    // An accelerator that is never done.
    let never = ["--done", "status=0x80"];
    let mut late = run(&[&FILES, &OUT, &never, &["--seconds", "1"]]);
    let output = late.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("error [SHEF-CLI-030]"), "{}", said(&output));
    assert!(said(&output).contains("register status is 0x00000002"), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["code"], "SHEF-CLI-030");
    assert_eq!(files(), before);

    // An accelerator without progress: the card's control socket has the report.
    let mut stalled = run(&[&FILES, &OUT, &never, &["--stall-cycles", "20000"]]);
    let output = stalled.arg("--json").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let expected = "the accelerator makes no progress for 20000 cycles: register status is 0x00000002; \
                    no port waits; no output was written";
    assert!(said(&output).contains(expected), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ports = document["progress"]["ports"].as_array().unwrap();
    assert_eq!((&ports[0]["port"], &document["code"]), (&"port 0".into(), &"SHEF-CLI-030".into()));
    assert!(!ports[0]["bursts"].as_array().unwrap().is_empty(), "{document}");
    assert_eq!(files(), before);

    // An interrupt while it works.
    let mut child = run(&[&FILES, &OUT, &never, &["-v"]])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "waiting for the accelerator"));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(2), "{status}");
    let rest: Vec<String> = lines.collect();
    assert_eq!(rest, ["closing the session"], "no error: the interrupt is the reason");
    assert_eq!(files(), before);

    // The Shield's refusal, the policy's, and another project's image.
    fails(run(&[&FILES, &OUT, &DONE, &["--reg", "a=@result0"]]), 1, "SHEF-SDK-010", &[]);
    let other = dir.path().join("vecadd");
    fs::create_dir(&other).unwrap();
    for name in ["shield.toml", "shef.toml", "shef_accel.sv"] {
        let text = fs::read_to_string(example().join(name)).unwrap();
        fs::write(other.join(name), text + "\n").unwrap();
    }
    let mut mixed = command(dir.path(), &other, &[&trusted[..], &REGISTERS, &FILES, &OUT, &DONE]);
    let design = format!("is vecadd, design {}", digest());
    let parts = ["the image, which is vecadd, design", &format!("this card, which {design}")];
    fails(mixed, 5, "SHEF-CLI-029", &parts);
    mixed = command(dir.path(), &other, &[&REGISTERS, &FILES, &OUT, &DONE]);
    let device = format!("sim:rtl?project={}", example().display());
    mixed.args(["--device", &device]);
    fails(mixed, 5, "SHEF-CLI-029", &["vecadd, design", &design]);
    fs::remove_dir_all(&other).unwrap();
    trust(dir.path(), &card, "[]");
    fails(run(&[&FILES, &OUT, &DONE]), 1, "SHEF-ATT-045", &["progress"]);
    assert_eq!(files(), before);

    // Without the control socket there is no report of progress.
    let socket = card.uri().trim_start_matches("vfio-user:").to_owned();
    fs::remove_file(socket + ".control").unwrap();
    let limit = ["--stall-cycles", "20000"];
    let parts = ["vfio-user: with the control socket PATH.control", &card.uri()];
    fails(run(&[&FILES, &OUT, &never, &limit]), 5, "SHEF-SDK-054", &parts);
}

#[test]
fn what_is_wrong_is_named_before_a_card_is_opened() {
    let dir = folder();
    let file = |name: &str| dir.path().join(name);
    fs::write(file("empty"), "").unwrap();
    fs::write(file("long"), vec![0; (64 << 10) + 1]).unwrap();
    let before = names(dir.path());
    let case = |args: &[&str], exit: i32, code: &str, parts: &[&str]| {
        let mut command = command(dir.path(), &example(), &[&["--job", "add"], args]);
        // It would be another error.
        command.env("SHEF_SIM", "/no/such/simulator");
        fails(command, exit, code, parts);
        assert_eq!(names(dir.path()), before, "{args:?}");
    };
    case(&[], 5, "SHEF-DEV-017", &["/no/such/simulator"]);
    case(&["--in", "a0=none"], 5, "SHEF-CLI-010", &["none"]);
    case(&["--in", "a0=."], 5, "SHEF-CLI-010", &[]);
    case(&["--in", "a0=empty"], 5, "SHEF-CLI-028", &["empty is empty: region a0 takes 1 to 65536"]);
    case(&["--in", "a0=long"], 5, "SHEF-CLI-028", &["long has 65537 bytes: region a0 takes"]);
    case(&["--in", "result0=long"], 2, "SHEF-CLI-001", &["--in result0=long: the region result0"]);
    case(&["--reg", "block=1"], 2, "SHEF-CLI-001", &["no register is named \"block\""]);
    case(&["--job", "sub"], 2, "", &["cannot be used multiple times"]);
    case(&["--out", "result0=no/x:16"], 5, "SHEF-CLI-015", &["no/x"]);
    case(&["--out", "result0=/proc/none:16"], 5, "SHEF-CLI-015", &["/proc/none"]);
    case(&["--out", "result0=.:16"], 5, "SHEF-CLI-015", &[]);
    case(&["--in", "a0=long.sv", "--out", "result0=long:16"], 5, "SHEF-CLI-010", &[]);
    case(&["--in", "a0=b=1.bin", "--out", "result0=b=1.bin:16"], 2, "SHEF-CLI-026", &["an input"]);
    case(&["--out", "result0=x:16", "--out", "result1=./x:16"], 2, "SHEF-CLI-026", &["another"]);
    for source in ["shef_accel.sv", "shef.toml", "shield.toml"] {
        let out = format!("result0={}:16", example().join(source).display());
        case(&["--out", &out], 2, "SHEF-CLI-026", &[source, "an input"]);
    }
    // The waves of the simulated card are another output.
    let waves =
        |file: &str| format!("sim:rtl?project={}&kernel=native&wave={file}", example().display());
    for (wave, more, part) in [
        ("b%3D1.bin", ["--in", "a0=b=1.bin"], "b=1.bin, an input"),
        ("./b=1.bin", ["--in", "a0=b=1.bin"], "b=1.bin, an input"),
        ("x", ["--out", "result0=./x:16"], "x, another output"),
        (example().join("shef_accel.sv").to_str().unwrap(), ["--seed", "1"], "shef_accel.sv, an"),
        ("no/x", ["--seed", "1"], ""),
    ] {
        let (exit, code) = if part.is_empty() { (5, "SHEF-CLI-015") } else { (2, "SHEF-CLI-026") };
        case(&[&["--device", &waves(wave)], &more[..]].concat(), exit, code, &[part]);
    }
    // A flag that would have no effect.
    for service in [&["--verifier", "https://localhost", "--as", "me"][..], &["--as", "me"]] {
        case(service, 2, "SHEF-CLI-001", &["with --image-key or --data-key", service[0]]);
    }
    let device = ["--device", "vfio-user:/no/such/card"];
    let trust = ["--anchors", "none", "--policy", "none", "--reference", "none"];
    case(&device, 2, "SHEF-CLI-001", &["expected --anchors, --reference and --policy"]);
    case(&[&device[..], &trust].concat(), 5, "SHEF-CLI-010", &["none"]);
    case(&["--anchors", "none"], 2, "", &["--policy"]);
    let wave = ["--wave", "w.fst"];
    case(&[&device[..], &wave].concat(), 2, "SHEF-CLI-001", &["--wave is for a simulated card"]);
    case(&["--wave-from", "3"], 2, "", &["--wave"]);
    case(&["--in", "a0=b=1.bin", "--wave", "b=1.bin"], 2, "SHEF-CLI-026", &["an input"]);
    case(&["--out", "result0=x:16", "--wave", "x"], 2, "SHEF-CLI-026", &["another output"]);
    case(&["--wave", "no/w.fst"], 5, "SHEF-CLI-015", &["no/w.fst"]);
    case(&["--image-key", "k"], 2, "", &["--image"]);
    case(&["--data-key", "d"], 2, "SHEF-CLI-001", &["--verifier"]);
    let other = ["--device", "sim:model"];
    case(
        &other,
        5,
        "SHEF-CLI-029",
        &[&format!("is vecadd, design {}", digest()), "sim:model is digits-knn, design"],
    );

    // A new vendor is no surprise.
    for (new, note) in [(true, 1), (false, 0)] {
        let mut command = command(dir.path(), &example(), &[&["--job", "add", "--vendor", "typo"]]);
        let output = command.env("SHEF_SIM", "/no/such/simulator").output().unwrap();
        let said = said(&output);
        assert_eq!(
            said.matches("made typo: a new folder, with new keys").count(),
            note,
            "{new} {said}"
        );
    }

    let plain = |args: &[&str]| command(dir.path(), &example(), &[args]);
    fails(plain(&[]), 2, "SHEF-CLI-001", &["expected `start`", "the jobs of shef.toml are add"]);
    fails(plain(&["--job", "sub"]), 2, "SHEF-CLI-001", &["no job \"sub\"", "are add"]);
    fails(plain(&["--job", "add", "--seconds", "0"]), 2, "", &[]);
    let none = command(dir.path(), &file("none"), &[&["--job", "add"]]);
    fails(none, 5, "SHEF-CARD-003", &["none"]);
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    /// Each of two ports takes its response after that of the other one: the report has both, whichever
    /// limit ends the job.
    #[test]
    #[ignore = "long: a Shield with two engine sets is built"]
    fn a_deadlock_is_reported_with_the_ports_that_wait() {
        let dir = tempfile::tempdir().unwrap();
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sim/card/tests/faulty");
        let job = ["--in", "in=random:4096", "--start", "0=1", "--done", "4:1=1"];
        for (limit, text) in [
            (["--stall-cycles", "20000"], "makes no progress for 20000 cycles: register 0x"),
            (["--seconds", "2"], "is not done after 2 s: register 0x"),
        ] {
            let mut command = command(dir.path(), &project, &[&job, &limit]);
            let output = command.arg("--json").output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{}", said(&output));
            assert!(said(&output).contains(text), "{}", said(&output));
            let waits = [
                "; port 0: R of burst 0 offered since cycle ",
                ", RREADY low (memory waits for the accelerator); port 1: B of burst 0 offered since ",
                ", BREADY low (memory waits for the accelerator); no output was written",
            ];
            assert!(waits.iter().all(|wait| said(&output).contains(wait)), "{}", said(&output));
            let document: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(document["progress"]["ports"][0]["waits"][0]["channel"], "R");
        }
    }
}
