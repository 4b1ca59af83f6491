//! The program `shef-sim` from outside: it serves a card for one process and ends with it, and a
//! design has one digest in all commands.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use shef_card::{Control, Design};

fn shef_sim(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shef-sim"));
    command.args(args);
    command
}

fn document(args: &[&str]) -> Value {
    let output = shef_sim(args).arg("--json").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A card that is served for this process, and its private folder.
fn served(folder: &Path) -> (Child, PathBuf) {
    let socket = folder.join("card");
    let mut child =
        shef_sim(&["serve", "--json", "--device", "model", "--until-stdin-closes", "--socket"])
            .arg(&socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "the card is not served");
    (child, socket)
}

#[test]
fn a_card_ends_when_its_pipe_closes_and_leaves_no_folder() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("private");
    std::fs::create_dir(&folder).unwrap();
    let (mut child, socket) = served(&folder);
    assert!(socket.exists() && child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!folder.exists());
}

/// Without `--manufacturer`, the keys of the card's maker are on no disk at any time.
#[test]
fn a_card_needs_no_folder_for_keys_that_nobody_keeps() {
    let temp = tempfile::tempdir().unwrap();
    let mut serve = shef_sim(&["serve", "--device", "model", "--until-stdin-closes", "--socket"]);
    let serve = serve.arg(temp.path().join("card")).env("TMPDIR", temp.path().join("none"));
    let mut child = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("is sim:model"), "{line:?}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_folder_that_is_not_empty_stays() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("other"), "").unwrap();
    let (mut child, socket) = served(temp.path());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!socket.exists() && temp.path().join("other").exists());
}

/// Waves replace neither sources nor files of jobs, whichever command makes the card.
#[test]
fn waves_replace_no_input() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let example = shef_project::repo_root().join("examples/vecadd");
    let write = |name: &str, text: &str| std::fs::write(at(name), text).unwrap();
    for name in ["shield.toml", "shef_accel.sv"] {
        std::fs::copy(example.join(name), at(name)).unwrap();
    }
    write(
        "shef.toml",
        "format = 1\nname = \"own\"\n[jobs.add]\nin = [\"a0=in.bin\"]\nstart = \"0=1\"\ndone = \"4:1=1\"\n\
         out = [\"result0=out.bin:64\"]\n[tests.add]\njob = \"add\"\nexpect = [\"result0=golden.bin\"]\n\
         model = \"model.py:add\"\n",
    );
    let inputs = [
        "shef_accel.sv",
        "shield.toml",
        "shef.toml",
        "spare.sv",
        "in.bin",
        "golden.bin",
        "model.py",
    ];
    inputs[3..].iter().for_each(|name| write(name, "mine"));
    let refuses = |args: &[&str], file: &Path| {
        let before = std::fs::read(file).unwrap();
        let output = shef_sim(args).env("SHEF_VERILATOR", "/no/such/verilator").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && said.contains("SHEF-CLI-026"),
            "{args:?}: {said}"
        );
        assert_eq!(std::fs::read(file).unwrap(), before, "{args:?}");
    };
    let (socket, project) = (at("card"), temp.path().to_str().unwrap());
    let serve = ["serve", "--device", "rtl", "--kernel", "native", "--socket"];
    let socket = socket.to_str().unwrap();
    for name in inputs {
        let wave = at(name).display().to_string();
        let more = [socket, "--project", project, "--wave", &wave];
        refuses(&[&serve[..], &more].concat(), &at(name));
    }
    // The demo, whose card is in this process or in another.
    let digits = shef_project::repo_root().join("shell-rtl/accel/digits/shef_accel.sv");
    write("data.csv", "mine");
    let (source, data) = (digits.to_str().unwrap(), at("data.csv"));
    let waves = |file: &str| format!("sim:rtl?wave={file}");
    refuses(&["demo", "--attack", "none", "--wave", source], &digits);
    refuses(&["demo", "--attack", "none", "--device", &waves(source)], &digits);
    let own = data.to_str().unwrap();
    refuses(&["demo", "--remote", "--data", own, "--device", &waves(own)], &data);
}

#[test]
fn a_design_has_one_digest() {
    let design = Design::digits().unwrap();
    let temp = tempfile::tempdir().unwrap();
    let (mut child, socket) = served(temp.path());
    let identity = Control::open(&Control::path_of(&socket)).unwrap().identity().unwrap();
    assert_eq!(
        (identity.design_digest, &identity.program),
        (design.digest(), &design.program().unwrap())
    );
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn codes_of_cards_are_explained() {
    for code in [
        "SHEF-CARD-003",
        "SHEF-RTL-005",
        "SHEF-RTL-043",
        "SHEF-PRJ-004",
        "SHEF-ATT-012",
        "SHEF-CLI-001",
        "SHEF-TST-002",
    ] {
        assert_eq!(document(&["explain", code])["code"], code);
    }
    let output = shef_sim(&["explain", "SHEF-XXX-999"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
