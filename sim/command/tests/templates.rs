//! `shef new` and `shef test` from outside: templates pass their tests, and what is planted in a
//! design is found, with a command that finds it again.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

    /// vecadd with a test.
    fn vecadd() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("vecadd");
        fs::create_dir(&dir).unwrap();
        let example = shef_card::repository().join("examples/vecadd");
        for file in ["shef_accel.sv", "shield.toml"] {
            fs::copy(example.join(file), dir.join(file)).unwrap();
        }
        let text = r#"
format = 1
[registers]
ctrl = 0x00
status = 0x04
kept = 0x24
[jobs.sum]
in = ["a0=random:2048", "b0=random:2048"]
reg = ["0x08=4", "0x10=@a0", "0x14=@b0", "0x18=@sums", "0x1c=@result0", "0x20=@progress"]
start = "ctrl=1"
done = "status:1=1"
out = ["result0=sums.bin:2048"]
read = ["status"]
stall_cycles = 5000
[tests.sum]
job = "sum"
expect = ["status=2"]
model = "model.py:add"
seeds = 2
"#;
        fs::write(dir.join("shef.toml"), text).unwrap();
        let model = "
def add(inputs, registers):
    return {'result0': inputs['a0'].view('<u4') + inputs['b0'].view('<u4')}
";
        fs::write(dir.join("model.py"), model).unwrap();
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

    fn run(&self, args: &[&str]) -> Output {
        shef_sim(&["test"]).arg(&self.dir).args(args).output().unwrap()
    }

    /// The document of a run that ends with this status.
    fn tested(&self, args: &[&str], status: i32) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {errors}"))
    }

    /// The first failure, and the same again from the command that it names.
    fn fails_twice(&self, args: &[&str]) -> Value {
        let first = failure(&self.tested(args, 1));
        let replay = first["replay"].as_str().unwrap();
        let words: Vec<&str> = replay.split(' ').collect();
        assert_eq!(&words[..3], ["shef", "test", self.dir.to_str().unwrap()]);
        let again = failure(&self.tested(&words[3..], 1));
        for member in ["test", "phase", "seed", "failure"] {
            assert_eq!(first[member], again[member], "{replay}");
        }
        first
    }
}

fn failure(report: &Value) -> Value {
    assert_eq!(report["passed"], false);
    let phases = report["phases"].as_array().unwrap();
    phases.iter().find(|phase| phase["passed"] == false).unwrap().clone()
}

fn error_code(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.split_once("error [").and_then(|(_, rest)| rest.split_once(']')).unwrap().0.to_owned()
}

fn phases(report: &Value) -> Vec<(String, bool)> {
    let phase =
        |phase: &Value| (phase["phase"].as_str().unwrap().to_owned(), phase["passed"] == true);
    report["phases"].as_array().unwrap().iter().map(phase).collect()
}

#[test]
fn a_project_begins_in_a_new_or_empty_folder_and_nowhere_else() {
    let temp = tempfile::tempdir().unwrap();
    let new = |dir: &Path| shef_sim(&["new", "--template", "random"]).arg(dir).output().unwrap();
    let dir = temp.path().join("fir-2");
    fs::create_dir(&dir).unwrap();
    assert!(new(&dir).status.success(), "an empty folder");
    let text = fs::read_to_string(dir.join("shef.toml")).unwrap();
    assert!(text.contains("name = \"fir-2\"") && !text.contains("@NAME@"), "{text}");
    assert!(dir.join(".gitignore").is_file());
    let files = || fs::read_dir(&dir).unwrap().count();
    let before = files();
    let refused = new(&dir);
    assert_eq!((refused.status.code(), error_code(&refused).as_str()), (Some(5), "SHEF-CLI-027"));
    assert_eq!(files(), before);
    let bad = temp.path().join("a b");
    assert_eq!(new(&bad).status.code(), Some(2));
    assert!(!bad.exists());
    let nowhere = new(&temp.path().join("none/here"));
    assert_eq!((nowhere.status.code(), error_code(&nowhere).as_str()), (Some(5), "SHEF-CLI-015"));
}

#[test]
fn templates_pass_their_tests_without_a_shield() {
    for template in ["stream", "random", "registers"] {
        let report = Project::new(template).tested(&["--only", "bare"], 0);
        assert_eq!(phases(&report), [("bare".to_owned(), true)], "{template}");
    }
}

/// The Shield of this template is small, as it has no memory.
#[test]
fn the_template_of_registers_passes_all_of_its_tests() {
    let report = Project::new("registers").tested(&[], 0);
    let names = ["bare", "shielded", "residue"].map(|name| (name.to_owned(), true));
    assert_eq!(phases(&report), names);
}

/// What fails without a Shield is not tried behind it, unless the user wants that.
#[test]
fn a_failure_without_a_shield_ends_the_test() {
    let project = Project::new("registers");
    project.change("shef.toml", "result0=0x497df3d0", "result0=0x497df3d1");
    let report = project.tested(&[], 1);
    let names = ["bare", "shielded", "residue"].map(|name| (name.to_owned(), false));
    assert_eq!(phases(&report), names);
    for phase in &report["phases"].as_array().unwrap()[1..] {
        assert_eq!(phase["skipped"], "its bare job failed, and --no-fail-fast is not given");
        assert!(phase["failure"].is_null() && phase["seeds"].as_array().unwrap().is_empty());
    }
    assert!(report["phases"][0]["skipped"].is_null());
    let output = project.run(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\nskip encrypt          shielded  not run: its bare job failed"),
        "{text}"
    );
    assert!(text.contains("0 of 3 phases of 1 test passed, 2 not run; "), "{text}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("1 of 1 failed: encrypt bare"), "{errors}");

    let report = project.tested(&["--no-fail-fast"], 1);
    let all = [("bare", false), ("shielded", false), ("residue", true)];
    assert_eq!(phases(&report), all.map(|(name, passed)| (name.to_owned(), passed)));
    assert_eq!(report["phases"][1]["failure"]["kind"], "result");
}

/// A key that outlives its session, and can be read.
#[test]
fn a_register_without_reset_is_a_residue() {
    let project = Project::new("registers");
    project
        .change("shef_accel.sv", "{key_q, block_q, rdata_q} <= '0;", "{block_q, rdata_q} <= '0;")
        .change("shef_accel.sv", "16'h20: rdata_q <= block_q[0];", "16'h20: rdata_q <= key_q[0];");
    let failed = project.fails_twice(&["--only", "residue"]);
    assert_eq!(failed["failure"]["kind"], "residue");
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("register block0 at the start is 0x10203, and "), "{message}");
    // In one session, nothing is wrong with it.
    project.tested(&["--only", "shielded"], 0);
}

/// A job of the second session that does not end shows nothing.
#[test]
fn a_second_session_without_an_end_is_no_pass() {
    let project = Project::new("registers");
    project.change(
        "shef.toml",
        "done = \"status:1=1\"",
        "done = \"status:30=1\"\nstall_cycles = 5000",
    );
    let failed = failure(&project.tested(&["--only", "residue"], 1));
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("the job does not end: status is "), "{message}");
}

/// A key that outlives its session: at an offset without a name, in the time of the next job, in its
/// interrupt.
#[test]
fn a_residue_is_found_where_no_result_shows_it() {
    let kept = "
  logic [31:0] kept_q = '0;
  logic [5:0] late_q = '0;
  always_ff @(posedge clk_i) begin
    if (change && reg_awaddr_i == 16'h10) kept_q <= kept_q == '0 ? reg_wdata_i : kept_q;
    late_q <= busy_q && step_q == '1 ? late_q + 6'd1 : '0;
  end
  wire unused =";
    for (from, to, found) in [
        (
            "          default: begin\n            rdata_q <= '0;",
            "          16'h5a0: rdata_q <= kept_q;\n          default: begin\n            rdata_q <= '0;",
            "register 0x5a0 at the start",
        ),
        (
            "      step_q <= step_q + 6'd1;\n      if (step_q == '1) {busy_q, done_q} <= 2'b01;",
            "      if (step_q != '1) step_q <= step_q + 6'd1;\n      \
             if (step_q == '1 && late_q >= {kept_q[2:0], 3'd0}) {busy_q, done_q} <= 2'b01;",
            "the interrupt is irq_o is 1, cycle ",
        ),
        ("assign irq_o = done_q;", "assign irq_o = done_q && kept_q[0];", "the interrupt"),
    ] {
        let project = Project::new("registers");
        project.change("shef_accel.sv", "\n  wire unused =", kept).change(
            "shef_accel.sv",
            from,
            to,
        );
        let failed = failure(&project.tested(&["--only", "residue"], 1));
        assert_eq!(failed["failure"]["kind"], "residue", "{failed}");
        let message = failed["failure"]["message"].as_str().unwrap();
        assert!(message.contains(found), "{message}");
    }
}

/// A file of results is that of this run, or is not there.
#[test]
fn results_in_a_file_are_of_this_run() {
    let project = Project::new("registers");
    let file = project.dir.join("results.xml");
    let junit = ["--only", "bare", "--junit", file.to_str().unwrap()];
    project.tested(&junit, 0);
    assert!(fs::read_to_string(&file).unwrap().contains("failures=\"0\""));
    let broken = fs::read_to_string(project.dir.join("shef_accel.sv")).unwrap();
    fs::write(project.dir.join("shef_accel.sv"), format!("{broken}\nmodule;")).unwrap();
    let refused = project.run(&junit);
    assert_eq!(refused.status.code(), Some(5));
    assert!(!file.exists(), "an old file looks like a result of this run");
    fs::write(project.dir.join("shef_accel.sv"), &broken).unwrap();
    let model = project.dir.join("model.py");
    let before = fs::read(&model).unwrap();
    let refused = project.run(&["--only", "bare", "--junit", model.to_str().unwrap()]);
    assert_eq!((refused.status.code(), error_code(&refused).as_str()), (Some(2), "SHEF-CLI-026"));
    assert_eq!(fs::read(&model).unwrap(), before);
}

#[test]
fn broken_rules_are_found_by_name() {
    let clocked = "
  logic odd_q;
  always_ff @(posedge clk_i) odd_q <= rst_ni && !odd_q;
  wire unused =";
    for (rule, from, to) in [
        ("AXI_ERRM_WDATA_NUM", "single || beat_q == '1;", "single || beat_q == 3'd6;"),
        (
            "AXI_ERRM_ARVALID_STABLE",
            "assign acc_ar_valid_o = reading && !asked_q;",
            "assign acc_ar_valid_o = reading && !asked_q && odd_q;",
        ),
        ("AXI_ERRM_WSTRB", "size: AXI_SIZE_64,", "size: single ? 3'd2 : AXI_SIZE_64,"),
    ] {
        let project = Project::vecadd();
        project.change("shef_accel.sv", from, to);
        project.change("shef_accel.sv", "\n  wire unused =", clocked);
        let failed = project.fails_twice(&["--only", "bare"]);
        assert_eq!(failed["failure"]["kind"], "rule", "{failed}");
        assert_eq!(failed["failure"]["rules"][0]["rule"], rule, "{failed}");
        assert!(failed["failure"]["message"].as_str().unwrap().starts_with(rule), "{failed}");
    }
}

/// The full names of all signals, with the signals.
fn signals(waves: &wellen::simple::Waveform) -> Vec<(String, wellen::SignalRef)> {
    let all = waves.hierarchy();
    all.all_vars().map(|var| (all[var].full_name(all), all[var].signal_ref())).collect()
}

/// The value of a signal at the end of a cycle.
fn value(waves: &mut wellen::simple::Waveform, signal: &str, cycle: u64) -> String {
    let found = signals(waves).into_iter().find(|(name, _)| name == signal);
    let id = found.unwrap_or_else(|| panic!("no {signal}")).1;
    waves.load_signals(&[id]);
    let times = waves.time_table();
    let changes = waves.get_signal(id).unwrap().iter_changes();
    let until = changes.take_while(|(at, _)| times[*at as usize] <= 2 * cycle);
    until.last().unwrap().1.to_bit_string().unwrap()
}

/// A design in which ARVALID falls without ARREADY: the waves of the failure show it in the cycle of the
/// report, and begin 10,000 cycles before it.
#[test]
fn a_failure_keeps_its_waves() {
    let project = Project::vecadd();
    project.change(
        "shef_accel.sv",
        "assign acc_ar_valid_o = reading && !asked_q;",
        "assign acc_ar_valid_o = reading && !asked_q && odd_q;",
    );
    let clocked = "
  logic odd_q;
  always_ff @(posedge clk_i) odd_q <= rst_ni && !odd_q;
  wire unused =";
    project.change("shef_accel.sv", "\n  wire unused =", clocked);
    let failed = failure(&project.tested(&[], 1));
    assert!(failed["no_wave"].is_null(), "{failed}");
    let (cycle, wave) = (failed["failure"]["cycle"].as_u64().unwrap(), &failed["wave"]);
    assert_eq!(wave["from"], cycle.saturating_sub(10_000));
    let (file, failed) = (wave["file"].as_str().unwrap(), wave["failed"].as_u64().unwrap());
    let mut waves = wellen::simple::read(file).unwrap();
    let times = waves.time_table();
    let (first, last) = (times[0], *times.last().unwrap());
    assert!(
        first >= 2 * cycle.saturating_sub(10_000) && last <= 2 * (cycle + 16),
        "{first} {last}"
    );
    let accel = "top.shef_bare_top.u_accel.";
    let [valid, ready] = ["acc_ar_valid_o", "acc_ar_ready_i"].map(|name| format!("{accel}{name}"));
    let mut at = |signal: &str, cycle| value(&mut waves, signal, cycle);
    // The checker reports what an earlier clock edge saw.
    let mut falls = |cycle| {
        at(&valid, cycle - 1) == "1" && at(&ready, cycle - 1) == "0" && at(&valid, cycle) == "0"
    };
    assert!((failed - 2..=failed).any(&mut falls), "ARVALID falls before cycle {failed}");

    // The waves of one run go to a file of the user's.
    let mine = project.dir.join("mine.fst");
    let flags = ["--only", "bare", "--seed", "2", "--wave", mine.to_str().unwrap()];
    let report =
        project.tested(&[&flags[..], &["--wave-scope", "all", "--wave-from", "20"]].concat(), 1);
    assert!(failure(&report)["wave"].is_null());
    let waves = wellen::simple::read(&mine).unwrap();
    assert_eq!(waves.time_table()[0], 40);
    assert!(signals(&waves).iter().any(|(name, _)| !name.starts_with(accel)));
    for (file, code) in [("mine.fst", "SHEF-CLI-001"), ("model.py", "SHEF-CLI-026")] {
        let file = project.dir.join(file);
        let refused = project.run(&["--only", "bare", "--wave", file.to_str().unwrap()]);
        assert_eq!((refused.status.code(), &*error_code(&refused)), (Some(2), code));
    }
}

#[test]
fn a_wrong_result_is_shown_with_its_first_byte() {
    let project = Project::new("stream");
    project.change(
        "model.py",
        "    return {\"out\": (words + np.uint32(registers[\"addend\"])).view(np.uint8)}",
        "    out = (words + np.uint32(registers[\"addend\"])).view(np.uint8)\n    out[77] ^= 1\n    return {\"out\": out}",
    );
    let failed = project.fails_twice(&["--only", "bare", "--seeds", "2"]);
    let found = &failed["failure"]["difference"];
    assert_eq!((&found["of"], &found["offset"]), (&"out".into(), &77.into()), "{failed}");
    let byte = |name: &str| found[name].as_u64().unwrap();
    assert_eq!(byte("expected") ^ byte("found"), 1);
    assert_eq!(failed["seed"], 1);
    let text = String::from_utf8(project.run(&["--only", "bare", "--seed", "3"]).stdout).unwrap();
    assert!(text.contains("region out, offset 0x4d: expected "), "{text}");
    assert!(text.contains("-k add --seed 3 --only bare"), "{text}");
}

#[test]
fn a_job_that_does_not_end_is_ended() {
    let project = Project::new("stream");
    project.change(
        "shef.toml",
        "done = \"status:1=1\"",
        "done = \"status:5=1\"\nstall_cycles = 3000",
    );
    let failed = project.fails_twice(&["--only", "bare", "--seed", "1"]);
    assert_eq!(failed["failure"]["kind"], "limit", "{failed}");
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(
        message.contains("status is 0x2") && message.contains("no progress for 3000 cycles"),
        "{message}"
    );
}

#[test]
fn a_model_is_limited_and_its_errors_are_shown() {
    let call = "    words = inputs[\"in\"].view(\"<u4\")";
    for (body, expected) in [
        ("    while True: pass", "has not ended after 2 seconds"),
        ("    while True: print('x' * 1000)", "prints more than 1048576 bytes"),
        ("    raise ValueError('no sums today')", "ValueError: no sums today"),
        ("    return {'out': inputs['in'][:7]}", "the result out has 7 bytes, expected 16384"),
        ("    return {'in': inputs['in']}", "'in' is no result of the job: expected out, status"),
        ("    import sys; sys.exit(0)", "the model failed: SystemExit: 0"),
        ("    import os; os._exit(0)", "without results"),
    ] {
        let project = Project::new("stream");
        project.change("shef.toml", "read = [\"status\"]", "read = [\"status\"]\nseconds = 2");
        project.change("model.py", call, &format!("{body}\n{call}"));
        // No design is built for it.
        let failed = failure(&project.tested(&["--only", "bare"], 1));
        assert_eq!(failed["failure"]["kind"], "model", "{failed}");
        let message = failed["failure"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn without_numpy_a_model_does_not_run() {
    let project = Project::new("stream");
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("numpy.py"), "raise ImportError('no numpy here')").unwrap();
    for (name, value) in [("PYTHONPATH", other.path()), ("PATH", other.path())] {
        let mut command = shef_sim(&["test"]);
        let output = command.arg(&project.dir).env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{name}");
        assert_eq!(error_code(&output), "SHEF-TST-003");
    }
}

#[test]
fn no_test_is_an_error() {
    let project = Project::new("stream");
    for filter in ["sum", "ADD"] {
        let output = project.run(&["-k", filter]);
        assert_eq!((output.status.code(), &*error_code(&output)), (Some(5), "SHEF-TST-001"));
        assert!(String::from_utf8_lossy(&output.stderr).contains("there are add"));
    }
    let project = Project::vecadd();
    fs::remove_file(project.dir.join("shef.toml")).unwrap();
    let output = project.run(&[]);
    assert_eq!((output.status.code(), &*error_code(&output)), (Some(5), "SHEF-TST-001"));
}

#[test]
fn a_design_that_does_not_build_is_an_error() {
    let project = Project::new("registers");
    project.change("shef_accel.sv", "wire [31:0] next_sum", "wire [31:0] next_sun");
    let output = project.run(&["--only", "bare"]);
    assert_eq!((output.status.code(), &*error_code(&output)), (Some(5), "SHEF-RTL-005"));
}

#[test]
fn expected_files_fit_the_job() {
    let project = Project::new("stream");
    project.change("shef.toml", "expect = [\"status=2\"]", "expect = [\"out=short.bin\"]");
    fs::write(project.dir.join("short.bin"), [0; 100]).unwrap();
    let output = project.run(&["--only", "bare"]);
    assert_eq!((output.status.code(), &*error_code(&output)), (Some(5), "SHEF-TST-004"));
}

#[test]
fn junit_has_every_phase() {
    let project = Project::new("registers");
    project.change("shef.toml", "result0=0x497df3d0", "result0=0x497df3d1");
    let file = project.dir.join("junit.xml");
    project.tested(&["--junit", file.to_str().unwrap()], 1);
    let text = fs::read_to_string(&file).unwrap();
    for part in [
        "<testsuite name=\"encrypt\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"2\"",
        "name=\"residue\" time=\"0.000\">\n      <skipped message=\"its bare job failed, and --no-",
        "<testcase classname=\"mine.encrypt\" name=\"bare\" time=\"",
        "<failure message=\"register result0: expected 0x497df3d1, found 0x497df3d0 (expect)\">",
        "-k encrypt --seed 1 --only bare",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_change_runs_the_tests_again() {
    let project = Project::new("registers");
    let mut command = shef_sim(&["test", "--watch", "--only", "bare"]);
    let command = command.arg(&project.dir).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |text: &str| loop {
        let line = lines.next().expect("it runs").unwrap();
        if line.contains(text) {
            return line;
        }
    };
    assert!(until("encrypt").starts_with("ok"));
    until("waiting for a change");
    project.change("shef.toml", "result0=0x497df3d0", "result0=0x497df3d1");
    assert!(until("encrypt").starts_with("FAIL"));
    until("waiting for a change");
    drop(lines);
    // It ends when its output has no reader.
    assert!(child.wait().unwrap().success());
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: builds two designs with Shields"]
    fn templates_pass_all_of_their_tests() {
        for template in ["stream", "random"] {
            let report = Project::new(template).tested(&[], 0);
            let names = ["bare", "shielded", "attacks", "residue"];
            assert_eq!(phases(&report), names.map(|name| (name.to_owned(), true)), "{template}");
            let attacks = report["phases"][2]["attacks"].as_array().unwrap();
            let refused = |scratch: bool| {
                let of = |attack: &Value| attack["attack"].as_str().unwrap().contains("scratch");
                let of_kind = attacks.iter().filter(|attack| of(attack) == scratch);
                of_kind.filter(|attack| !attack["code"].is_null()).count()
            };
            assert_eq!(refused(false), 8, "each of them changes what is read: {report}");
            assert_eq!(refused(true) > 0, template == "random", "{report}");
        }
    }

    #[test]
    #[ignore = "long: builds a design with a Shield"]
    fn a_word_that_vecadd_keeps_is_a_residue() {
        let project = Project::vecadd();
        let kept = "
  logic [31:0] kept_q;
  always_ff @(posedge clk_i) if (acc_r_valid_i) kept_q <= acc_r_i.data[31:0];
  wire unused =";
        project
            .change("shef_accel.sv", "\n  wire unused =", kept)
            .change("shef_accel.sv", "16'h1c, 16'h20};", "16'h1c, 16'h20, 16'h24};")
            .change(
                "shef_accel.sv",
                "          16'h20: rdata_q <= progress_q;",
                "          16'h20: rdata_q <= progress_q;\n          16'h24: rdata_q <= kept_q;",
            );
        let failed = project.fails_twice(&["--only", "residue"]);
        let message = failed["failure"]["message"].as_str().unwrap();
        assert!(message.contains("register kept at the start"), "{message}");
        project.tested(&["--only", "bare"], 0);
    }
}
