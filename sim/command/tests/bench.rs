//! `shef bench` from outside: exact cycles, wrong results, and values that it cannot take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The program. It finds the NumPy of `cargo xtask setup`.
fn shef_sim(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shef-sim"));
    command.args(args);
    command
}

/// A project from a template in a temporary folder.
struct Project {
    _temp: tempfile::TempDir,
    dir: PathBuf,
}

impl Project {
    fn new(template: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("mine");
        let made = shef_sim(&["new", "--template", template]).arg(&dir).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self { _temp: temp, dir }
    }

    /// Replaces a text of a file, which has it once.
    fn change(&self, file: &str, from: &str, to: &str) -> &Self {
        let path = self.dir.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
        self
    }
}

fn bench(dir: &Path, args: &[&str]) -> Output {
    shef_sim(&["bench"]).arg(dir).args(args).output().unwrap()
}

fn document(dir: &Path, args: &[&str]) -> Value {
    let output = bench(dir, &[args, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {errors}"))
}

/// Status and code of a run that fails, and its message.
fn failure(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output = bench(dir, args);
    let text = String::from_utf8(output.stderr).unwrap();
    let code = text.split_once("error [").and_then(|(_, rest)| rest.split_once(']'));
    let code = code.map(|(code, _)| code.to_owned()).unwrap_or_default();
    (output.status.code().unwrap(), code, text)
}

/// The accelerator takes 64 cycles for half a round each after its start, and shows its end in the
/// next one. Polled over the sealed channel, the same job takes thousands.
#[test]
fn registers_take_65_cycles_without_a_shield_and_behind_it() {
    let project = Project::new("registers");
    let report = document(&project.dir, &["--latency", "40"]);
    assert_eq!(report["job"], "encrypt");
    assert_eq!(report["tests"], serde_json::json!(["encrypt"]));
    let [pair] = report["latencies"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&pair["latency"], &pair["ratio"]), (&40.into(), &1.0.into()));
    for run in ["bare", "shielded"] {
        assert_eq!(pair[run]["cycles"], 65, "{run}: {report}");
        assert_eq!(pair[run]["within"], 1, "{run}: {report}");
        assert_eq!(pair[run]["regions"], serde_json::json!([]));
        assert_eq!(pair[run]["ports"][0]["stalled"], 0);
    }
    assert_eq!(pair["hints"], serde_json::json!([]));
    // Without `--json`, a row for each latency, in the order given and each once.
    let text = bench(&project.dir, &["--latency", "7", "--latency", "3", "--latency", "7"]);
    let text = String::from_utf8(text.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(1) == Some(&"65"))
        .collect();
    let rest = ["65", "65", "1.000", "0", "0.00", "0.00", "0.0%", "0.0%"];
    assert_eq!(rows, [[&["7"][..], &rest].concat(), [&["3"][..], &rest].concat()], "{text}");
    assert!(text.ends_with("all results are those of encrypt\n"), "{text}");
}

#[test]
fn a_wrong_result_is_no_measurement() {
    let project = Project::new("registers");
    project.change("shef.toml", "result0=0x497df3d0", "result0=0x497df3d1");
    let (status, code, text) = failure(&project.dir, &["--latency", "40"]);
    assert_eq!((status, code.as_str()), (1, "SHEF-BEN-001"), "{text}");
    let expected =
        "job encrypt: bare, latency 40: register result0: expected 0x497df3d1, found 0x497df3d0";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_job_that_does_not_end_is_no_measurement() {
    let project = Project::new("registers");
    project.change(
        "shef.toml",
        "done = \"status:1=1\"",
        "done = \"status:5=1\"\nstall_cycles = 3000",
    );
    let (status, code, text) = failure(&project.dir, &["--latency", "40"]);
    assert_eq!((status, code.as_str()), (1, "SHEF-BEN-001"), "{text}");
    assert!(text.contains("the job does not end: status is 0x2"), "{text}");
}

/// The id of a request depends on whether a register is being read, so copies that are read do not do
/// what the accelerator does.
#[test]
fn an_accelerator_that_a_read_changes_cannot_be_measured() {
    let project = Project::new("stream");
    project.change("shef_accel.sv", "acc_ar_o = '{id: '0,", "acc_ar_o = '{id: {7'd0, rvalid_q},");
    let (status, code, text) = failure(&project.dir, &["--latency", "40"]);
    assert_eq!((status, code.as_str()), (5, "SHEF-RTL-029"), "{text}");
    assert!(text.contains("has other outputs at cycle"), "{text}");
}

/// Waves change no cycle, and are of one run.
#[test]
fn a_bench_writes_waves() {
    let project = Project::new("registers");
    let wave = project.dir.join("run.fst");
    let waves = ["--wave", wave.to_str().unwrap(), "--wave-scope", "accel"];
    let (status, _, text) = failure(&project.dir, &waves);
    assert_eq!(status, 5, "{text}");
    assert!(text.contains("expected one --latency, found 4"), "{text}");
    let source = project.dir.join("shef_accel.sv");
    let (status, code, _) =
        failure(&project.dir, &["--latency", "40", "--wave", source.to_str().unwrap()]);
    assert_eq!((status, code.as_str()), (2, "SHEF-CLI-026"));
    let report = document(&project.dir, &[&["--latency", "40"], &waves[..]].concat());
    assert_eq!(report["latencies"][0]["shielded"]["cycles"], 65, "{report}");
    assert!(fs::metadata(&wave).unwrap().len() > 1000);
}

#[test]
fn what_cannot_be_measured_is_bad_input() {
    let project = Project::new("registers");
    for (args, expected) in [
        (&["--latency", "0"][..], "expected a latency of 1 to 100000 cycles, found 0"),
        (&["--latency", "40", "--latency", "100001"], "found 100001"),
        (&["--job", "decrypt"], "there is no job \"decrypt\": the jobs of shef.toml are encrypt"),
    ] {
        let (status, code, text) = failure(&project.dir, args);
        assert_eq!((status, code.as_str()), (5, "SHEF-BEN-002"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(failure(&project.dir, &["--latency", "fast"]).0, 2);
    assert_eq!(failure(&project.dir.join("none"), &[]).0, 5);
    fs::remove_file(project.dir.join("shef.toml")).unwrap();
    let (status, code, text) = failure(&project.dir, &[]);
    assert_eq!((status, code.as_str()), (5, "SHEF-BEN-002"), "{text}");
    assert!(text.contains("has no [jobs.NAME]"), "{text}");
}

#[test]
fn a_design_that_does_not_build_is_an_error() {
    let project = Project::new("registers");
    project.change("shef_accel.sv", "wire [31:0] next_sum", "wire [31:0] next_sun");
    let (status, code, text) = failure(&project.dir, &[]);
    assert_eq!((status, code.as_str()), (5, "SHEF-RTL-005"), "{text}");
}

/// The two reads of a block, one after the other, leave most of the memory's latency in the open.
#[test]
fn the_example_has_exact_cycles_and_a_hint() {
    let report = document(&shef_card::repository().join("examples/vecadd"), &["--latency", "40"]);
    let pair = &report["latencies"][0];
    let cycles = ["bare", "shielded"].map(|run| pair[run]["cycles"].as_u64().unwrap());
    assert_eq!(cycles, [5968, 11_925], "{pair}");
    assert_eq!(pair["ratio"], 1.998);
    const BYTES: u64 = 16_384;
    for run in ["bare", "shielded"] {
        let port = &pair[run]["ports"][0];
        assert_eq!(pair[run]["within"], 1, "{port}");
        // Two operands and the sums are read; sums, results and the progress are written.
        assert_eq!(port["reads"]["bursts"]["bytes"], 3 * BYTES, "{port}");
        let writes = port["writes"]["bursts"]["bytes"].as_u64().unwrap();
        assert!((2 * BYTES..3 * BYTES).contains(&writes), "{port}");
        let regions = pair[run]["regions"].as_array().unwrap();
        let names: Vec<&str> = regions.iter().map(|r| r["region"].as_str().unwrap()).collect();
        assert_eq!(names, ["a0", "b0", "sums", "result0", "progress"]);
        assert_eq!(regions[0]["reads"]["bytes"], BYTES);
    }
    let [hint] = pair["hints"].as_array().unwrap().as_slice() else { panic!("{pair}") };
    let hint = hint.as_str().unwrap();
    assert!(hint.starts_with("port 0 waits ") && hint.contains(" without the Shield"), "{hint}");
}
