//! Each failure of each program ends with a code, the values, and a next step; and after the fault is
//! gone, the same command succeeds.

use std::fs;

use crate::bench::{Bench, HBM, words};

/// How far a machine is.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Stage {
    New,
    Built,
    Afi,
}

/// A machine that is so far.
pub fn machine(stage: Stage) -> Bench {
    let bench = Bench::new();
    let image = bench.new_image();
    bench.reference_values(image["design"].as_str().unwrap());
    if stage >= Stage::Built {
        bench.ok(&words(&bench.build()));
    }
    if stage >= Stage::Afi {
        bench.ok(&words(&bench.afi()));
    }
    bench
}

/// A fault of a program, and how the command ends.
type Case = (&'static str, i32, &'static str, &'static str);

/// Runs a command under each fault, and at the end without one.
#[track_caller]
fn cases(bench: &Bench, command: &[String], cases: &[Case]) {
    for (faults, status, code, says) in cases {
        bench.faults(faults);
        let found = bench.fails(&words(command), code, says);
        assert_eq!(found, *status, "{faults}: exit status");
        bench.faults("");
    }
    bench.ok(&words(command));
    assert!(!bench.calls().iter().any(|call| call.starts_with("REFUSED")), "{:?}", bench.calls());
}

/// More words for a command.
pub fn with(command: &[String], more: &[&str]) -> Vec<String> {
    command.iter().cloned().chain(more.iter().map(|word| (*word).to_owned())).collect()
}

#[test]
fn a_build_is_judged_by_its_files() {
    let bench = machine(Stage::New);
    let build = with(&bench.build(), &["--limit", "2"]);
    cases(
        &bench,
        &build,
        &[
            ("build hang", 3, "SHEF-CLD-008", "within 2 s"),
            ("build die", 3, "SHEF-CLD-020", "post_synth.dcp"),
            ("build killed", 3, "SHEF-CLD-021", "SynthCL.log:3 has \"Killed\""),
            ("build broken", 3, "SHEF-CLD-020", "vivado.log:3: ERROR: [Synth 8-439]"),
            ("build empty", 3, "SHEF-CLD-020", "no error in"),
            ("build nothing", 3, "SHEF-CLD-020", "no error in"),
            ("build plain", 1, "SHEF-CLD-019", "shef_image_secret_pkg.sv: line 3 is in the clear"),
            ("build half", 1, "SHEF-CLD-019", "line 7 is in the clear"),
            ("build header", 1, "SHEF-CLD-019", "a .svh, which encrypt.tcl leaves in the clear"),
            ("build dropped", 1, "SHEF-CLD-019", "no such file, and the design has it"),
        ],
    );
}

#[test]
fn a_secret_in_a_checkpoint_and_a_wrong_implementation_are_found() {
    for (fault, status, code, says) in [
        // The first call is that of the version, the second synthesis, the third the implementation.
        ("#3 violated", 1, "SHEF-CLD-022", "VIOLATED"),
        ("#3 violated-report", 1, "SHEF-CLD-022", "Slack (VIOLATED) : -0.125ns"),
        ("#3 no-report", 3, "SHEF-CLD-020", "post_route_timing.rpt"),
        ("#3 killed", 3, "SHEF-CLD-021", "ImplCL.log"),
        ("#3 plain", 1, "SHEF-CLD-019", "in the clear"),
        // A secret in the clear comes before the timing.
        ("#3 plain-violated", 1, "SHEF-CLD-019", "in the clear"),
        ("pr-verify hdpr", 1, "SHEF-CLD-023", "HDPRVerify-41"),
        ("pr-verify silent", 1, "SHEF-CLD-023", "are compatible"),
        ("pr-verify no-report", 3, "SHEF-CLD-020", "pr_verify.txt"),
        ("pr-verify hang", 3, "SHEF-CLD-008", "vivado -mode batch"),
        ("vivado-version version:v2019.1", 5, "SHEF-CLD-007", "too old"),
        ("vivado-version version:v2031.1", 5, "SHEF-CLD-007", "v2024.1"),
        ("vivado-version garbage", 5, "SHEF-CLD-007", "<html>"),
        ("build leak-log", 1, "SHEF-CLD-024", ".vivado.log, in hexadecimal"),
        // Of synthesis alone: the implementation writes the file anew.
        ("build leak-log 1", 1, "SHEF-CLD-024", ".vivado.log, in hexadecimal"),
        ("build leak-tmp", 1, "SHEF-CLD-024", "image/tmp/vivado.tmp, in hexadecimal"),
        ("build leak-dcp", 1, "SHEF-CLD-024", "post_synth.dcp/netlist.edf"),
    ] {
        let bench = machine(Stage::New);
        let build = with(&bench.build(), &["--limit", "2"]);
        bench.faults(fault);
        let found = bench.fails(&words(&build), code, says);
        assert_eq!(found, status, "{fault}");
        if code != "SHEF-CLD-024" {
            if code == "SHEF-CLD-007" {
                assert!(!bench.calls().iter().any(|call| call.starts_with("build")), "{fault}");
            }
            bench.faults("");
            bench.ok(&words(&build));
        }
    }
}

#[test]
fn a_project_is_searched_before_the_hours_of_a_build() {
    let with_project = || {
        let bench = machine(Stage::New);
        let text = fs::read_to_string(bench.at("image/image.toml")).unwrap();
        let project = bench.at("project").display().to_string();
        bench.write("image/image.toml", &format!("project = {project:?}\n{text}"));
        bench
    };
    let none = |bench: &Bench| {
        assert!(!bench.calls().iter().any(|call| call.starts_with("build:")));
    };
    let bench = with_project();
    bench.write("project/notes", &format!("key: {}\n", bench.secret()));
    let says = "the secret of the image is in";
    bench.fails(&words(&bench.build()), "SHEF-CLD-024", says);
    // A copy outlives the file.
    fs::remove_file(bench.at("project/notes")).unwrap();
    bench.fails(&words(&bench.build()), "SHEF-CLD-024", "project/notes, in hexadecimal");
    none(&bench);
    let bench = with_project();
    let build = bench.build();
    let mut zip = shef_fakes::script::zip("model.bin", b"weights");
    zip[6] = 1;
    bench.write("project/notes", "");
    fs::write(bench.at("project/model.zip"), zip).unwrap();
    bench.fails(&words(&build), "SHEF-CLD-045", "model.zip/model.bin: it is encrypted");
    none(&bench);
    // Neither of the two is an archive.
    fs::remove_file(bench.at("project/model.zip")).unwrap();
    fs::write(bench.at("project/cut.zip"), b"PK\x03\x04").unwrap();
    fs::write(bench.at("project/tone.raw"), b"\x1f\x8b\x08\x00 samples").unwrap();
    bench.ok(&words(&build));
}

#[test]
fn what_a_build_reads_is_what_new_wrote() {
    let bench = machine(Stage::New);
    let build = bench.build();
    let fails = |code, says| bench.fails(&words(&build), code, says);
    let plain = ["cloud", "build", "image"];
    bench.fails(&plain, "SHEF-CLD-018", "encrypt.tcl has SHA-256");
    bench.fails(&["cloud", "build", "image", "--no-encrypt"], "SHEF-CLD-018", "refused");
    let edit = |path: &str, to: &str| {
        let at = bench.at(path);
        let before = fs::read(&at).unwrap();
        fs::write(&at, to).unwrap();
        before
    };
    let before = edit("image/cl_shef/design/cl_shef.sv", "module cl_shef; endmodule");
    fails("SHEF-CLD-053", "cl_shef.sv: it was edited");
    fs::write(bench.at("image/cl_shef/design/cl_shef.sv"), before).unwrap();
    bench.write("image/cl_shef/design/ila.sv", "");
    fails("SHEF-CLD-053", "ila.sv: it was added");
    fs::remove_file(bench.at("image/cl_shef/design/ila.sv")).unwrap();
    let link = bench.at("image/cl_shef/build/scripts/encrypt.tcl");
    fs::remove_file(&link).unwrap();
    fs::write(&link, "# source encrypt_none.tcl").unwrap();
    fails("SHEF-CLD-053", "encrypt.tcl: it is no link to the HDK");
    fs::remove_file(&link).unwrap();
    let target = bench.at("hdk/hdk/common/shell_stable/build/scripts/encrypt.tcl");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    fs::set_permissions(bench.at("image"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    fails("SHEF-CLD-016", "mode 755");
    fs::set_permissions(bench.at("image"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    let output = bench.shef(&words(&build)).env_remove("HDK_IP_SRC_DIR").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("SHEF-CLD-005"));
    let output = bench.shef(&words(&build)).env("HDK_SHELL_DIR", "/").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("SHEF-CLD-005"));
    // Without Vivado.
    fs::remove_file(bench.at("bin/python3")).unwrap();
    fails("SHEF-CLD-006", "python3 is not on PATH");
}

#[test]
fn the_scripts_of_a_build_are_those_of_its_start_and_others_cannot_change_them() {
    let bench = machine(Stage::New);
    let build = bench.build();
    let scripts = bench.at("hdk/hdk/common/shell_stable/build/scripts");
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    for (path, open, closed) in [
        (scripts.clone(), 0o775, 0o755),
        (scripts.join("build_all.tcl"), 0o646, 0o644),
        (scripts.join("aws_build_dcp_from_cl.py"), 0o664, 0o644),
        // A user who can rename a folder above them can replace them all.
        (scripts.parent().unwrap().to_owned(), 0o777, 0o755),
        (bench.at("hdk/hdk"), 0o775, 0o755),
        (bench.at("hdk"), 0o757, 0o755),
    ] {
        fs::set_permissions(&path, mode(open)).unwrap();
        let file = path.display();
        bench.fails(&words(&build), "SHEF-CLD-046", &format!("{file} has mode {open:o}"));
        let command = format!("chmod go-w {file}");
        bench.fails(&words(&build), "SHEF-CLD-046", &format!("`{command}`"));
        let closes = std::process::Command::new("/bin/sh").args(["-c", &command]).status();
        assert!(closes.unwrap().success(), "{command}");
        let found = fs::metadata(&path).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&found) & 0o777, closed);
    }
    // In such a folder, others can rename only what is theirs.
    fs::set_permissions(bench.at("hdk/hdk"), mode(0o1777)).unwrap();
    bench.ok(&words(&with(&build, &["--dry-run"])));
    fs::set_permissions(&scripts, mode(0o1777)).unwrap();
    bench.fails(&words(&build), "SHEF-CLD-046", "has mode 1777");
    assert!(!bench.calls().iter().any(|call| call.starts_with("build:")));
    for flow in [1, 2] {
        let bench = machine(Stage::New);
        // The first call is that of the version.
        bench.faults(&format!("#{} swap", flow + 1));
        bench.fails(&words(&bench.build()), "SHEF-CLD-058", "build_all.tcl was SHA-256");
        let calls = bench.calls().iter().filter(|call| call.starts_with("build:")).count();
        assert_eq!(calls, flow, "nothing goes on");
        // Neither in a second call, until the record of the first one is gone.
        bench.faults("");
        bench.fails(&words(&bench.build()), "SHEF-CLD-058", "build_all.tcl was SHA-256");
        assert_eq!(bench.fails(&words(&bench.build()), "SHEF-CLD-058", "and is SHA-256"), 5);
        fs::remove_file(bench.at("image/build.json")).unwrap();
        bench.ok(&words(&bench.build()));
    }
}

#[test]
fn a_build_goes_on_with_the_programs_that_it_began_with() {
    let bench = machine(Stage::New);
    let build = bench.build();
    let scripts = "hdk/hdk/common/shell_stable/build/scripts";
    bench.write(&format!("{scripts}/synth_cl_header.tcl"), "# of the HDK\n");
    bench.faults("pr-verify silent");
    bench.fails(&words(&build), "SHEF-CLD-023", "are compatible");
    bench.faults("vivado-version version:v2024.1");
    bench.fails(&words(&build), "SHEF-CLD-058", "Vivado was v2025.1 when the build began");
    bench.faults("");
    // A script that those of the links read.
    bench.write(&format!("{scripts}/synth_cl_header.tcl"), "# another one\n");
    bench.fails(&words(&build), "SHEF-CLD-058", "synth_cl_header.tcl was SHA-256");
    bench.write(&format!("{scripts}/more.tcl"), "");
    bench.write(&format!("{scripts}/synth_cl_header.tcl"), "# of the HDK\n");
    bench.fails(&words(&build), "SHEF-CLD-058", "more.tcl was missing when the build began");
    fs::remove_file(bench.at(scripts).join("more.tcl")).unwrap();
    let before = bench.calls().len();
    bench.ok(&words(&build));
    assert!(!bench.calls()[before..].iter().any(|call| call.starts_with("build:")), "it goes on");
}

/// Puts a script before a program.
fn wrap(bench: &Bench, name: &str, script: &str) {
    let at = bench.at("bin").join(name);
    let target = fs::read_link(&at).unwrap();
    fs::create_dir_all(bench.at("real")).unwrap();
    let real = bench.at("real").join(name);
    std::os::unix::fs::symlink(target, &real).unwrap();
    fs::remove_file(&at).unwrap();
    let text = format!("#!/bin/bash\n{script}\nexec {} \"$@\"\n", real.display());
    bench.write(&format!("bin/{name}"), &text);
    fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

const SHELL: &str = "hdk/hdk/common/shell_stable";

/// Makes the checkpoint of the shell another one, with its SHA-256 beside it.
fn another_shell(bench: &Bench, text: &str) {
    use sha2::Digest as _;
    let checkpoint = format!("{SHELL}/build/checkpoints/from_aws/cl_bb_routed.small_shell.dcp");
    bench.write(&checkpoint, text);
    let digest = hex::encode(sha2::Sha256::digest(text));
    bench.write(&format!("{checkpoint}.sha256"), &format!("{digest}  cl_bb.dcp\n"));
}

#[test]
fn an_image_is_built_and_compared_only_with_the_shell_that_it_names() {
    let bench = machine(Stage::New);
    let build = bench.build();
    let builds =
        |bench: &Bench| bench.calls().iter().filter(|call| call.starts_with("build:")).count();
    let other = |bench: &Bench| {
        let build = bench.build();
        let fails = |says: &str| {
            assert_eq!(bench.fails(&words(&build), "SHEF-CLD-053", says), 5);
            bench.fails(&words(&with(&build, &["--dry-run"])), "SHEF-CLD-053", says);
        };
        another_shell(bench, "another shell");
        fails("cl_bb_routed.small_shell.dcp: it is that of ");
        another_shell(bench, "the shell");
        let version = format!("{SHELL}/shell_version.txt");
        bench.write(&version, "small_shell=0x99999999\n");
        fails("it is that of 0x99999999, and the image was made for 0x10212415");
        bench.write(&version, "small_shell=0x10212415\n");
        bench.write("hdk/release_version.txt", "RELEASE_VERSION=2.3.4\n");
        fails("it is that of 2.3.4, and the image was made for 2.3.2");
        bench.write("hdk/release_version.txt", "RELEASE_VERSION=2.3.2\n");
    };
    other(&bench);
    assert_eq!(builds(&bench), 0);
    // Also in a call that continues.
    bench.faults("pr-verify silent");
    bench.fails(&words(&build), "SHEF-CLD-023", "are compatible");
    bench.faults("");
    other(&bench);
    assert_eq!(builds(&bench), 2);
    bench.ok(&words(&build));
    // The result has the shell that it was compared with.
    let record = bench.at("image/build.json");
    let whole = fs::read_to_string(&record).unwrap();
    let image = shef_cloud::logic::read(&bench.at("image")).unwrap();
    assert!(whole.contains(&image.shell));
    fs::write(&record, whole.replace(&image.shell, &"11".repeat(32))).unwrap();
    for words_of in [&build, &bench.afi()] {
        bench.fails(&words(words_of), "SHEF-CLD-053", "build.json: its shell is 1111");
    }
    fs::write(&record, whole).unwrap();
    bench.ok(&words(&bench.afi()));
}

/// A flow or a comparison in whose time the shell changes has no result that counts.
#[test]
fn a_shell_that_changes_in_a_build_ends_it() {
    for (program, mark) in [("python3", "SynthCL"), ("python3", "ImplCL"), ("vivado", "batch")] {
        let bench = machine(Stage::New);
        another_shell(&bench, "another shell");
        let folder = bench.at(SHELL).join("build/checkpoints/from_aws");
        let keep = bench.at("another");
        fs::create_dir(&keep).unwrap();
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            fs::copy(entry.path(), keep.join(entry.file_name())).unwrap();
        }
        another_shell(&bench, "the shell");
        let copy = format!("/bin/cp {}/* {}/", keep.display(), folder.display());
        wrap(&bench, program, &format!("case \"$*\" in *{mark}*) {copy};; esac"));
        bench.fails(&words(&bench.build()), "SHEF-CLD-053", "small_shell.dcp: it is that of");
        bench.fails(&words(&bench.afi()), "SHEF-CLD-056", "a build that did not end");
    }
}

/// A secret that was found stays found: in HOME, which each call makes anew, after an interrupt, and
/// without the file.
#[test]
fn an_image_whose_secret_was_found_is_never_used() {
    let leaks = "/bin/grep UDS $CL_DIR/design/shef_image_secret_pkg.sv > $HOME/.Xilinx/webtalk.log";
    for ends in ["", "[ \"$7\" = SynthCL ] && kill -KILL $PPID"] {
        let bench = machine(Stage::New);
        wrap(&bench, "python3", &format!("[ \"$7\" = SynthCL ] && {leaks}\n{ends}"));
        let build = bench.build();
        let found = "tmp/home/.Xilinx/webtalk.log, in hexadecimal";
        let first = bench.run(&words(&build));
        assert!(!first.status.success());
        let said = String::from_utf8_lossy(&first.stderr).into_owned();
        assert_eq!(said.contains("SHEF-CLD-024"), ends.is_empty(), "{said}");
        let wrapped = bench.at("bin/python3");
        fs::remove_file(&wrapped).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_shef-fakes"), &wrapped).unwrap();
        bench.fails(&words(&build), "SHEF-CLD-024", found);
        fs::remove_dir_all(bench.at("image/tmp")).unwrap();
        let other = with(&build, &["--place", "Explore"]);
        for words_of in [&build, &other, &with(&build, &["--dry-run"]), &bench.afi()] {
            bench.fails(&words(words_of), "SHEF-CLD-024", "the secret of the image was in");
        }
    }
}

/// What a program finds around it leads neither out of the searched folder nor to a dump.
#[test]
fn programs_of_a_build_have_no_way_out_of_its_folder() {
    let bench = machine(Stage::New);
    bench.write("home/.flexlmrc", "VENDOR_LICENSE_FILE=x\n");
    bench.write("sourced", &format!("echo sourced > {}\n", bench.at("ran").display()));
    let seen = bench.at("seen").display().to_string();
    let script = format!(
        "{{ /usr/bin/env; /bin/cat /proc/$$/limits /proc/$PPID/limits; /bin/cat $HOME/.flexlmrc; }} > {seen}\n\
         echo changed >> $HOME/.flexlmrc; echo changed >> $HOME/.Xilinx/Xilinx.lic"
    );
    wrap(&bench, "python3", &script);
    let build = bench.build();
    let mut shef = bench.shef(&words(&build));
    let variables = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TEMP", "TMP"];
    shef.envs(variables.map(|name| (name, bench.at("home"))));
    shef.env("BASH_ENV", bench.at("sourced")).env("ENV", bench.at("sourced"));
    let output = shef.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(seen.contains("VENDOR_LICENSE_FILE=x"), "the license is there: {seen}");
    for name in variables {
        assert!(!seen.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}");
    }
    assert!(!bench.at("ran").exists(), "no script of the user");
    for file in ["home/.flexlmrc", "home/.Xilinx/Xilinx.lic"] {
        assert!(!fs::read_to_string(bench.at(file)).unwrap().contains("changed"), "{file}");
    }
    // 1 byte: no dump, also none that Linux hands to a program. A lower limit of the test's stays.
    let cores: Vec<&str> =
        seen.lines().filter_map(|line| line.strip_prefix("Max core file size")).collect();
    assert_eq!(cores.len(), 2, "the program and shef: {seen}");
    for core in cores {
        let mut limits = core.split_whitespace();
        let [soft, hard] = [limits.next(), limits.next()].map(Option::unwrap);
        assert!(soft == hard && ["0", "1"].contains(&soft), "{core}");
    }
}

/// What the helps of these codes tell to do gets the user on.
#[test]
fn a_tarball_that_is_gone_or_damaged_and_a_build_that_is_done_have_a_way_on() {
    let bench = machine(Stage::New);
    let (build, afi) = (bench.build(), bench.afi());
    assert_eq!(bench.fails(&words(&afi), "SHEF-CLD-056", "no build has begun"), 5);
    // The tarball is packed, and the build does not end.
    let mut zip = shef_fakes::script::zip("log", b"text");
    zip[6] = 1;
    fs::write(bench.at("image/log.zip"), zip).unwrap();
    bench.fails(&words(&build), "SHEF-CLD-045", "log.zip/log: it is encrypted");
    bench.fails(&words(&afi), "SHEF-CLD-056", "a build that did not end");
    let tarball = |bench: &Bench| {
        let all = fs::read_dir(bench.at("image/out")).unwrap().flatten().map(|it| it.path());
        let mut all = all.filter(|it| it.extension().is_some_and(|it| it == "tar"));
        (all.next().unwrap(), all.next())
    };
    // Before its end, a build makes it again.
    let (first, _) = tarball(&bench);
    fs::write(&first, "cut").unwrap();
    fs::remove_file(bench.at("image/log.zip")).unwrap();
    // Other choices: another tarball, with the time of its begin, and the first one is gone at the end.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    bench.ok(&words(&with(&build, &["--place", "Explore"])));
    let (second, none) = tarball(&bench);
    assert!(second != first && none.is_none(), "{first:?} {second:?} {none:?}");
    for words_of in [&build, &with(&build, &["--dry-run"])] {
        let says = "with --place Explore --route AggressiveExplore, and this call has --place SSI_";
        assert_eq!(bench.fails(&words(words_of), "SHEF-CLD-060", says), 5);
    }
    let build = with(&build, &["--place", "Explore"]);
    let whole = fs::read(&second).unwrap();
    fs::write(&second, &whole[..whole.len() / 2]).unwrap();
    for words_of in [&build, &afi] {
        bench.fails(&words(words_of), "SHEF-CLD-026", "expected a tarball with");
    }
    // Another one, which is whole.
    let record = fs::read(bench.at("image/build.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let manifest = shef_cloud::tarball::Manifest {
        shell_version: "0x10212415".to_owned(),
        hdk_version: "2.3.2".to_owned(),
        tool_version: "v2025.1".to_owned(),
        tag: record["tag"].as_str().unwrap().to_owned(),
    };
    bench.write("other.dcp", "another checkpoint");
    fs::remove_file(&second).unwrap();
    shef_cloud::tarball::pack(&bench.at("other.dcp"), &manifest, &second).unwrap();
    for words_of in [&build, &afi] {
        bench.fails(&words(words_of), "SHEF-CLD-026", "expected a tarball with the SHA-256 of");
    }
    fs::remove_file(&second).unwrap();
    for words_of in [&build, &afi] {
        bench.fails(&words(words_of), "SHEF-CLD-026", "No such file");
    }
    fs::write(&second, whole).unwrap();
    bench.ok(&words(&afi));
    // Without a copy: another folder.
    fs::rename(bench.at("image"), bench.at("old")).unwrap();
    let image = bench.new_image();
    fs::remove_file(bench.at("digits.shef")).unwrap();
    bench.reference_values(image["design"].as_str().unwrap());
    bench.ok(&words(&bench.build()));
    bench.ok(&words(&afi));
}

#[test]
fn an_image_begins_only_with_names_and_a_record_that_can_be_right() {
    let bench = machine(Stage::Built);
    let afi = bench.afi();
    let other = |from: &str, to: &str| -> Vec<String> {
        afi.iter().map(|word| if word == from { to.to_owned() } else { word.clone() }).collect()
    };
    for (words_of, says) in [
        (other("vendor-bucket", "Vendor_Bucket"), "--bucket is \"Vendor_Bucket\""),
        (other("us-east-1", "us east"), "--region"),
        (with(&afi, &["--prefix", "a//b"]), "--prefix"),
    ] {
        assert_eq!(bench.fails(&words(&words_of), "SHEF-CLD-054", says), 5);
    }
    bench.fails(&words(&other("digits.lock", "nowhere/digits.lock")), "SHEF-CLI-015", "nowhere");
    for input in ["digits.corim", "image/anchor.toml", "image/device-id.der"] {
        let before = fs::read(bench.at(input)).unwrap();
        assert_eq!(bench.fails(&words(&other("digits.lock", input)), "SHEF-CLI-026", input), 2);
        assert_eq!(fs::read(bench.at(input)).unwrap(), before);
    }
    let calls = || bench.calls().iter().filter(|call| call.contains(": aws ")).count();
    assert_eq!(calls(), 0, "before any request");
    bench.faults("create-afi denied");
    bench.fails(&words(&afi), "SHEF-CLD-014", "ec2:CreateFpgaImage");
    bench.faults("");
    let all = fs::read_dir(bench.at("image/out")).unwrap().flatten().map(|it| it.path());
    let record = all.into_iter().find(|it| it.to_string_lossy().ends_with("afi.json")).unwrap();
    let whole = fs::read_to_string(&record).unwrap();
    let other = format!("\"tarball\": \"{}\"", "00".repeat(32));
    let tarball = whole.lines().find(|line| line.contains("\"tarball\"")).unwrap();
    for text in [
        whole[..whole.len() / 2].to_owned(),
        whole.replace("\"uploaded\"", "\"up\""),
        whole.replace(tarball.trim().trim_end_matches(','), &other),
        whole.replace("\"afi\": null", "\"afi\": \"afi-0123456789abcdef0\""),
    ] {
        assert_ne!(text, whole);
        fs::write(&record, text).unwrap();
        let before = calls();
        for words_of in [&afi, &with(&afi, &["--dry-run"])] {
            assert_eq!(bench.fails(&words(words_of), "SHEF-CLD-057", "afi.json: "), 5);
        }
        assert_eq!(calls(), before, "the object that it names is still there");
    }
    fs::write(&record, whole).unwrap();
    bench.ok(&words(&afi));
    assert!(bench.world().objects.is_empty());
}

#[test]
fn an_interrupt_says_what_is_at_aws_and_how_it_goes_on() {
    use rustix::process::{Pid, Signal, kill_process};
    for (fault, says) in [
        ("upload hang", &["s3://vendor-bucket/shef/", " may be in S3, with the secret"][..]),
        ("describe-afi hang", &["afi-", " in us-east-1 is requested; s3://", " is in S3, with"]),
    ] {
        let bench = machine(Stage::Built);
        bench.faults(fault);
        let mut shef = bench.shef(&words(&bench.afi()));
        let shef = shef.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let begun = std::time::Instant::now();
        let form = fault.split(' ').next().unwrap();
        while !bench.calls().iter().any(|call| call.starts_with(form)) {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "no {form}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&shef), Signal::INT).unwrap();
        let said = String::from_utf8(shef.wait_with_output().unwrap().stderr).unwrap();
        for text in
            says.iter().chain(&["warning: interrupted: ", "same command again", "aws s3 rm"])
        {
            assert!(said.contains(text), "{fault}: {text}: {said}");
        }
        bench.faults("");
        bench.ok(&words(&bench.afi()));
        assert!(bench.world().objects.is_empty(), "{fault}");
    }
    // So does an error.
    let bench = machine(Stage::Built);
    bench.faults("describe-afi lost");
    let said = bench.run(&words(&bench.afi())).stderr;
    assert!(String::from_utf8_lossy(&said).contains(" is in S3, with the secret"));
}

#[test]
fn an_hdk_that_is_not_ours_is_refused_with_the_place() {
    let bench = Bench::new();
    let kit = bench.at("hdk").display().to_string();
    let new = ["cloud", "new", "image", "--hdk", &kit, "--vendor", "vendor"];
    let shell = "hdk/hdk/common/shell_stable";
    let header = format!("{shell}/design/interfaces/cl_ports.vh");
    let text = fs::read_to_string(bench.at(&header)).unwrap();
    bench.write(
        &header,
        &text.replace("output logic [15:0] cl_sh_pcim_awid", "output logic [7:0] cl_sh_pcim_awid"),
    );
    assert_eq!(bench.fails(&new, "SHEF-CLD-002", "cl_sh_pcim_awid is output of"), 1);
    bench.write(&header, "`include \"other.vh\"\n");
    bench.fails(&new, "SHEF-CLD-003", "cl_ports.vh: ");
    fs::remove_file(bench.at(&header)).unwrap();
    bench.fails(&new, "SHEF-CLD-001", "cl_ports.vh below it");
    bench.write(&header, &text);
    let link = bench.at("hdk/hdk/cl/examples/CL_TEMPLATE/build/scripts/encrypt.tcl");
    let target = fs::read_link(&link).unwrap();
    fs::remove_file(&link).unwrap();
    fs::write(&link, target.to_str().unwrap()).unwrap();
    bench.fails(&new, "SHEF-CLD-004", "1 of 4 are lost");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(target, &link).unwrap();
    let dcp = format!("{shell}/build/checkpoints/from_aws/cl_bb_routed.small_shell.dcp");
    bench.write(&dcp, "another shell");
    bench.fails(&new, "SHEF-CLD-052", "SHA-256");
    fs::remove_file(bench.at(&dcp)).unwrap();
    bench.fails(&new, "SHEF-CLD-052", "the checkpoint of the shell");
    bench.write(&dcp, "the shell");
    bench.fails(
        &["cloud", "new", "image", "--hdk", "nowhere", "--vendor", "vendor"],
        "SHEF-CLD-001",
        "nowhere",
    );
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let on_disk = disk.path().join("image").display().to_string();
    let args = ["cloud", "new", &on_disk, "--hdk", &kit, "--vendor", "vendor"];
    assert_eq!(bench.fails(&args, "SHEF-CLD-015", "expected a folder on tmpfs"), 5);
    assert!(!disk.path().join("image").exists());
    let args = ["cloud", "new", "image", "--hdk", &kit, "--vendor", "vendor", "--core-mhz", "600"];
    bench.fails(&args, "SHEF-CLD-054", "10 to 250");
    assert!(!bench.at("image").exists(), "nothing half done");
}

#[test]
fn the_hbm_is_the_one_of_the_kit() {
    let bench = Bench::new();
    let kit = bench.at("hdk").display().to_string();
    let new = ["cloud", "new", "image", "--hdk", &kit, "--vendor", "vendor", "--hbm"];
    let good = fs::read_to_string(bench.at(HBM)).unwrap();
    let map =
        |value: &str| format!("\"USER_MC7_MANUAL_ADDR_MAP_SEL\": [ {{ \"value\": \"{value}\"");
    for (from, to, found) in [
        ("16GB", "8GB", "USER_HBM_DENSITY: 8GB, expected 16GB"),
        ("USER_SWITCH_ENABLE_01", "USER_SWITCH", "USER_SWITCH_ENABLE_01: no value, expected TRUE"),
        (&map("false"), &map("true"), "USER_MC7_MANUAL_ADDR_MAP_SEL: true, expected false"),
    ] {
        assert!(good.contains(from), "{from}");
        bench.write(HBM, &good.replace(from, to));
        bench.fails(&new, "SHEF-CLD-042", found);
    }
    fs::remove_file(bench.at(HBM)).unwrap();
    bench.fails(&new, "SHEF-CLD-042", "cl_hbm.xci");
    assert!(!bench.at("image").exists(), "nothing half done");
    bench.write(HBM, &good);
    assert_eq!(bench.ok(&new)["hbm"], true);
    let script = bench.at("image/cl_shef/build/scripts/synth_cl_shef.tcl");
    assert!(fs::read_to_string(script).unwrap().contains("-generic Hbm=1"));
    for name in ["cl_hbm.sv", "cl_hbm_ports.vh"] {
        assert!(!bench.at("image/cl_shef/design").join(name).exists(), "{name} is the vendor's");
    }
    assert!(bench.at("image/cl_shef/design/shef_f2_hbm_memory.sv").exists());
}

/// A project is in one build with the secret: its names end inside of it, and every tool reads the
/// same of it.
#[test]
fn a_project_reaches_only_itself() {
    let bench = Bench::new();
    let example = shef_project::repo_root().join("examples/vecadd");
    let project = bench.at("vecadd");
    fs::create_dir(&project).unwrap();
    for name in ["shef.toml", "shield.toml", "shef_accel.sv"] {
        fs::copy(example.join(name), project.join(name)).unwrap();
    }
    let good = fs::read_to_string(project.join("shef_accel.sv")).unwrap();
    let (kit, dir) = (bench.at("hdk").display().to_string(), project.display().to_string());
    let new = ["cloud", "new", "image", "--hdk", &kit, "--vendor", "vendor", "--project", &dir];
    let bit =
        |name: &str| format!("logic leak_q;\n  always_ff @(posedge clk_i) leak_q <= {name}[0];");
    for (text, says) in [
        (bit("u_system.uds_i"), "u_system"),
        (bit("cl_shef.uds"), "cl_shef"),
        (bit("shef_system.uds_i"), "shef_system"),
        (bit("$root.cl_shef.uds"), "$root reaches outside"),
        ("defparam cl_shef.Hbm = 1;".to_owned(), "cl_shef"),
        ("defparam u_system.u_kernel.u_noise.RepetitionCutoff = 9;".to_owned(), "u_system"),
        (
            format!("`ifndef __slang__\n  {}\n`endif", bit("u_system.uds_i")),
            "`ifndef __slang__ can differ from tool to tool",
        ),
        ("`define SYNTHESIS".to_owned(), "`define SYNTHESIS changes how other files are read"),
        ("bind shef_system shef_accel u_accel2 ();".to_owned(), "bind"),
    ] {
        let (before, after) = good.rsplit_once("endmodule").unwrap();
        bench.write("vecadd/shef_accel.sv", &format!("{before}\n  {text}\nendmodule{after}"));
        let output = bench.run(&new);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(says), "{text}: {said}");
        assert!(!bench.at("image").exists(), "{text}: nothing half done");
    }
    bench.write("vecadd/shef_accel.sv", &good);
    bench.ok(&new);
    let hotp = shef_project::repo_root().join("shell-rtl/accel/hotp").display().to_string();
    bench.ok(&["cloud", "new", "hotp", "--hdk", &kit, "--vendor", "vendor", "--project", &hotp]);
}

#[test]
fn every_failure_of_aws_on_the_way_to_an_image_has_its_code() {
    let bench = machine(Stage::Built);
    let afi = with(&bench.afi(), &["--limit", "2"]);
    cases(
        &bench,
        &afi,
        &[
            ("bucket-location denied", 5, "SHEF-CLD-014", "no permission for s3:GetBucketLocation"),
            ("bucket-location anonymous", 5, "SHEF-CLD-013", "Unable to locate credentials"),
            ("bucket-location expired", 5, "SHEF-CLD-013", "expired"),
            (
                "bucket-location elsewhere",
                5,
                "SHEF-CLD-028",
                "the bucket is in eu-west-2, expected us-east-1",
            ),
            ("bucket-location garbage", 3, "SHEF-CLD-010", "<html>"),
            ("bucket-versioning versioned", 5, "SHEF-CLD-028", "versioning is Enabled"),
            ("upload lost", 3, "SHEF-CLD-012", "Could not connect"),
            ("upload hang", 3, "SHEF-CLD-008", "aws s3api put-object"),
            ("upload die", 3, "SHEF-CLD-009", "signal 9"),
            ("upload refused", 5, "SHEF-CLD-014", "s3:PutObject"),
            ("upload cut", 5, "SHEF-CLD-028", "bytes, expected"),
            ("upload status", 3, "SHEF-CLD-011", "it did not work"),
            ("create-afi denied", 5, "SHEF-CLD-014", "ec2:CreateFpgaImage"),
            ("create-afi garbage", 3, "SHEF-CLD-010", "FpgaImageId"),
            ("create-afi short", 3, "SHEF-CLD-010", "agfi-0123456789abcdef0"),
            ("describe-afi lost", 3, "SHEF-CLD-012", "Could not connect"),
            (
                "describe-afi unknown-state",
                3,
                "SHEF-CLD-010",
                "pending, available, failed or unavailable",
            ),
            ("describe-afi other-afi", 3, "SHEF-CLD-010", "the id of the request"),
            ("delete-object kept", 5, "SHEF-CLD-028", "it is still there after its deletion"),
            ("delete-object refused", 5, "SHEF-CLD-014", "s3:DeleteObject"),
        ],
    );
    // A lost connection while waiting is borne.
    let bench = machine(Stage::Built);
    bench.faults("describe-afi lost 5");
    bench.ok(&words(&bench.afi()));
    // An image that is never available: the object stays, and the same command goes on.
    let bench = machine(Stage::Built);
    bench.faults("describe-afi never");
    let late = with(&bench.afi(), &["--wait", "0"]);
    assert_eq!(bench.fails(&words(&late), "SHEF-CLD-029", "pending after 0 minutes"), 3);
    assert_eq!(bench.world().objects.len(), 1);
    bench.faults("");
    bench.ok(&words(&bench.afi()));
    assert_eq!(bench.world().afis.len(), 1, "the same image");
    // An image that is gone.
    let bench = machine(Stage::Built);
    bench.faults("describe-afi unavailable");
    bench.fails(&words(&bench.afi()), "SHEF-CLD-030", "unavailable");
    // One that was deleted at AWS: the object goes, and the next call requests another image.
    let bench = machine(Stage::Built);
    bench.faults("describe-afi status 1");
    bench.fails(&words(&bench.afi()), "SHEF-CLD-011", "it did not work");
    bench.faults("");
    let gone = |bench: &Bench| {
        let mut world = bench.world();
        assert_eq!((world.afis.len(), world.objects.len()), (1, 1));
        world.afis.clear();
        world.keep(&bench.at(""));
    };
    gone(&bench);
    let looks = || bench.calls().iter().filter(|call| call.starts_with("describe-afi")).count();
    let before = looks();
    let status = bench.fails(&words(&bench.afi()), "SHEF-CLD-030", "is unknown at AWS");
    assert_eq!((status, looks() - before), (1, 3), "a new image may be unknown for a moment");
    assert!(bench.world().objects.is_empty(), "the object holds the secret");
    bench.ok(&words(&bench.afi()));
    assert!(bench.world().objects.is_empty() && bench.world().afis.len() == 1);
}

#[test]
fn one_command_works_in_a_folder_and_an_object_that_is_back_is_deleted() {
    let bench = machine(Stage::Built);
    bench.faults("upload hang");
    let mut first = bench.shef(&words(&bench.afi())).spawn().unwrap();
    let begun = std::time::Instant::now();
    while !bench.calls().iter().any(|call| call.starts_with("upload")) {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "no upload");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    bench.fails(&words(&bench.afi()), "SHEF-CLD-025", "another command works in");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&first),
        rustix::process::Signal::INT,
    )
    .unwrap();
    first.wait().unwrap();
    bench.faults("");
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(bench.at("image"), mode(0o750)).unwrap();
    bench.fails(&words(&bench.afi()), "SHEF-CLD-016", "mode 750");
    fs::set_permissions(bench.at("image"), mode(0o700)).unwrap();
    bench.ok(&words(&bench.afi()));
    // As after the upload of a command that was killed.
    let upload = bench.calls().into_iter().rfind(|call| call.starts_with("upload")).unwrap();
    let after = |option: &str| {
        let mut rest = upload.split(' ').skip_while(|word| *word != option);
        rest.nth(1).unwrap_or_default().to_owned()
    };
    let mut world = bench.world();
    world.objects.insert(format!("{}/{}", after("--bucket"), after("--key")), 1);
    world.keep(&bench.at(""));
    bench.ok(&words(&bench.afi()));
    assert_eq!(bench.world().objects.len(), 0, "the object holds the secret");
}

#[test]
fn every_code_of_an_image_that_failed_is_mapped_and_the_object_goes() {
    let bench = machine(Stage::Built);
    let mut seen = 0;
    for (name, code) in shef_cloud_codes() {
        bench.faults(&format!("describe-afi failed:{name}"));
        assert_eq!(bench.fails(&words(&bench.afi()), &code, name), 1);
        // The logs are named, and where they are.
        bench.fails(&words(&bench.afi()), &code, "AWS's logs: s3://vendor-bucket/shef/logs");
        let world = bench.world();
        assert!(world.objects.is_empty(), "{name}: the object holds the secret");
        assert!(!bench.at("digits.lock").exists(), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 15);
    bench.faults("describe-afi failed:SOMETHING_NEW");
    bench.fails(&words(&bench.afi()), "SHEF-CLD-030", "SOMETHING_NEW");
    bench.faults("");
    // Another image: AWS answers the token of one that failed with it.
    bench.ok(&words(&bench.afi()));
    assert_eq!(bench.world().afis.len(), 32);
}

/// The documented codes of AWS, in the order of its page, and ours.
fn shef_cloud_codes() -> impl Iterator<Item = (&'static str, String)> {
    [
        "INACCESSIBLE_INPUT",
        "INPUT_SIZE_ILLEGAL",
        "DCP_INTEGRITY_UNVERIFIED",
        "MANIFEST_NOT_FOUND",
        "MANIFEST_PARSE_FAILED",
        "SHELL_VERSION_INVALID",
        "SHELL_VERSION_DEPRECATED",
        "PCIID_SYNTAX_INVALID",
        "PCIID_FORBIDDEN",
        "CLK_ILLEGAL",
        "CORRUPT_ARCHIVE",
        "DCP_NOT_FOUND",
        "UNSUPPORTED_DESIGN_LOGIC",
        "UNKNOWN_BITSTREAM_GENERATE_ERROR",
        "TOOL_VERSION_INVALID",
    ]
    .into_iter()
    .zip((101..).map(|number| format!("SHEF-CLD-{number}")))
}

#[test]
fn what_is_uploaded_matches_its_manifest_and_the_vendors_values() {
    let bench = machine(Stage::Built);
    let out = bench.at("image/out");
    let tarball = fs::read_dir(&out)
        .unwrap()
        .map(|it| it.unwrap().path())
        .find(|it| it.extension().is_some_and(|it| it == "tar"))
        .unwrap();
    let whole = fs::read(&tarball).unwrap();
    let afi = bench.afi();
    fs::write(&tarball, &whole[..whole.len() / 3]).unwrap();
    assert_eq!(bench.fails(&words(&afi), "SHEF-CLD-026", "expected a tarball with"), 1);
    let mut changed = whole.clone();
    let at = changed.windows(6).position(|it| it == b"0xF010").unwrap();
    changed[at + 2..at + 6].copy_from_slice(b"0A51");
    fs::write(&tarball, &changed).unwrap();
    assert_eq!(
        bench.fails(&words(&afi), "SHEF-CLD-027", "pci_device_id is 0x0A51, expected 0xF010"),
        1
    );
    let mut changed = whole.clone();
    changed[600] ^= 1;
    fs::write(&tarball, &changed).unwrap();
    bench.fails(&words(&afi), "SHEF-CLD-027", "dcp_hash");
    fs::write(&tarball, &whole).unwrap();
    assert_eq!(
        bench.calls().iter().filter(|call| call.contains(": aws ")).count(),
        0,
        "before any request"
    );
    // Reference values for another design.
    let bench = machine(Stage::Built);
    fs::remove_file(bench.at("digits.shef")).unwrap();
    bench.reference_values(&"11".repeat(32));
    assert_eq!(bench.fails(&words(&bench.afi()), "SHEF-CLD-059", "design 1111"), 5);
    fs::write(bench.at("digits.corim"), "x").unwrap();
    let output = bench.run(&words(&bench.afi()));
    assert!(!output.status.success(), "no CoRIM");
}

#[test]
fn every_error_of_a_slot_is_mapped_and_one_that_may_pass_is_tried_twice() {
    let bench = machine(Stage::Afi);
    let load = Bench::load();
    let numbers = [3, 5, 6, 11, 12, 13, 14, 16, 17, 19, 20, 21, 24, 25, 26, 27, 28, 29];
    assert_eq!(numbers.len(), 18);
    for number in numbers {
        let again = [3, 6, 14, 19, 25].contains(&number);
        for fault in ["refuses", "error"] {
            let before = bench.calls().len();
            bench.faults(&format!("load-slot {fault}:{number}"));
            let says = if again { ", twice" } else { &*format!("({number})") };
            let status = bench.fails(&words(&load), &format!("SHEF-CLD-{}", 200 + number), says);
            assert_eq!(status, 4);
            let calls = bench.calls();
            let loads = calls[before..].iter().filter(|call| call.starts_with("load-slot")).count();
            assert_eq!(loads, if again { 2 } else { 1 }, "{number}");
        }
        // Once, and then it works.
        if again {
            bench.faults(&format!("load-slot refuses:{number} 1"));
            bench.ok(&words(&load));
            bench.faults("");
            bench.ok(&["cloud", "clear"]);
        }
    }
    bench.faults("describe-slot error:20");
    bench.fails(&words(&load), "SHEF-CLD-220", "pci-device-missing");
    bench.faults("");
    bench.ok(&words(&load));
}

#[test]
fn an_image_that_another_user_loads_between_two_tries_stays() {
    let bench = machine(Stage::Afi);
    let load = Bench::load();
    bench.faults("load-slot taken:14 1");
    let calls = bench.calls().len();
    assert_eq!(bench.fails(&words(&load), "SHEF-CLD-033", "--replace"), 1);
    let calls = bench.calls().split_off(calls);
    assert!(!calls.iter().any(|call| call.starts_with("clear-slot")), "{calls:?}");
    assert_eq!(bench.world().slot.image.as_deref(), Some("agfi-0ffffffffffffffff"));
    // Also one that failed.
    let mut world = bench.world();
    (world.slot.status, world.slot.error) = (7, 14);
    world.keep(&bench.at(""));
    bench.fails(&words(&load), "SHEF-CLD-033", "is load-failed with agfi-0f");
    bench.ok(&words(&with(&load, &["--replace"])));
}

#[test]
fn a_slot_that_is_not_as_expected_is_refused() {
    let bench = machine(Stage::Afi);
    let load = with(&Bench::load()[..4], &["--wait", "1", "--limit", "2"]);
    bench.faults("load-slot stuck");
    let status =
        bench.fails(&words(&load), "SHEF-CLD-035", "slot 0 is busy after 1 s, expected loaded");
    assert_eq!(status, 3);
    // The instance is stopped and started again.
    fs::remove_file(bench.at("world.json")).unwrap();
    cases(
        &bench,
        &load,
        &[
            ("load-slot hang", 3, "SHEF-CLD-008", "fpga-load-local-image"),
            ("load-slot die", 3, "SHEF-CLD-009", "signal 9"),
            ("describe-slot garbage", 3, "SHEF-CLD-010", "<html>"),
            ("describe-slot nothing", 3, "SHEF-CLD-010", "a line AFI"),
            ("describe-slot new-status", 4, "SHEF-CLD-036", "status 9"),
            ("describe-slot status", 3, "SHEF-CLD-011", "it did not work"),
        ],
    );
    bench.ok(&["cloud", "clear"]);
    // The slot's report after a load is not true.
    bench.faults("rescan-slot lies");
    bench.fails(&words(&load), "SHEF-CLD-034", "was loaded with agfi-");
    bench.faults("load-slot other");
    bench.ok(&["cloud", "clear"]);
    bench.fails(&words(&load), "SHEF-CLD-034", "was loaded with agfi-");
    bench.faults("");
    assert_eq!(bench.fails(&words(&load), "SHEF-CLD-033", "--replace"), 1);
    bench.ok(&words(&with(&load, &["--replace"])));
    bench.faults("slot-metrics late");
    let output = bench.run(&["cloud", "metrics"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("ocl-slave-timeout-count is 3 (first at 0x1000c, a"), "{text}");
    // A lock file that was edited.
    let lock = fs::read_to_string(bench.at("digits.lock")).unwrap();
    bench.write("digits.lock", &lock.replace("core_khz = 66666", "core_khz = 66667"));
    assert_eq!(bench.fails(&words(&load), "SHEF-CLD-031", "its lines have SHA-256"), 5);
}

#[test]
fn a_card_is_bound_only_where_a_shef_image_is_loaded() {
    let bench = machine(Stage::Afi);
    let root = bench.at("root").display().to_string();
    let bind = ["cloud", "bind", "--root", &root];
    assert_eq!(bench.fails(&bind, "SHEF-CLD-040", "1d0f:9048"), 4);
    bench.ok(&words(&Bench::load()));
    // modprobe works and changes nothing.
    bench.fails(&bind, "SHEF-CLD-041", "enable_unsafe_noiommu_mode: missing, expected Y");
    bench.write("root/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y\n");
    bench.fails(&bind, "SHEF-CLD-041", "/sys/bus/pci/drivers/vfio-pci");
    bench.faults("modprobe-vfio-pci status");
    bench.fails(&bind, "SHEF-CLD-011", "modprobe vfio-pci ended with status 1");
}

#[test]
fn doctor_names_each_fault_with_its_next_step() {
    let bench = Bench::new();
    let kit = bench.at("hdk").display().to_string();
    let (digest, root) = (bench.encrypt_script(), bench.at("").display().to_string());
    let doctor = [
        "cloud",
        "doctor",
        "--hdk",
        &kit,
        "--region",
        "us-east-1",
        "--encrypt-script",
        &digest,
        "--root",
        &root,
    ];
    let look = || {
        let output = bench.shef(&doctor).arg("--json").output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = document["findings"].as_array().unwrap().clone();
        let faults: Vec<String> = found
            .iter()
            .filter(|it| it["verdict"] == "fault")
            .map(|it| {
                assert!(it["next"].is_string(), "{it}");
                format!("{} {}", it["check"].as_str().unwrap(), it["code"].as_str().unwrap())
            })
            .collect();
        assert_eq!(output.status.code(), Some(i32::from(!faults.is_empty())));
        faults
    };
    assert_eq!(look(), [""; 0]);
    for (fault, expected) in [
        ("vivado-version version:v2017.4", "Vivado SHEF-CLD-007"),
        ("vivado-version die", "Vivado SHEF-CLD-009"),
        ("identity anonymous", "credentials SHEF-CLD-013"),
        ("identity garbage", "credentials SHEF-CLD-010"),
        ("offerings none", "region SHEF-CLD-050"),
        ("offerings denied", "region SHEF-CLD-014"),
        ("quota zero", "quota SHEF-CLD-049"),
        ("quota lost", "quota SHEF-CLD-012"),
    ] {
        bench.faults(fault);
        assert_eq!(look(), [expected], "{fault}");
    }
    bench.faults("");
    let script = bench.at("hdk/hdk/common/shell_stable/build/scripts/build_all.tcl");
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(&script, mode(0o666)).unwrap();
    assert_eq!(look(), ["scripts SHEF-CLD-046"]);
    fs::set_permissions(&script, mode(0o644)).unwrap();
    bench.write("proc/meminfo", "MemTotal: 16000000 kB\n");
    assert_eq!(look(), ["memory SHEF-CLD-051"]);
    bench.write("proc/meminfo", "MemTotal: 65000000 kB\n");
    for (release, verdict) in [("2.2.0", "warning"), ("2.3.3", "ok"), ("2.4.0", "warning")] {
        bench.write("hdk/release_version.txt", &format!("RELEASE_VERSION={release}\n"));
        let output = bench.shef(&doctor).arg("--json").output().unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let hdk = document["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["check"] == "HDK")
            .unwrap();
        assert_eq!(hdk["verdict"], verdict, "{release}");
    }
    fs::remove_file(bench.at("bin/aws")).unwrap();
    fs::remove_file(bench.at("bin/vivado")).unwrap();
    assert_eq!(look(), ["Vivado SHEF-CLD-006", "AWS CLI SHEF-CLD-006"]);
}

#[test]
fn a_dry_run_changes_nothing_and_shows_every_command() {
    let bench = machine(Stage::Afi);
    let before: Vec<String> = bench.calls();
    let kit = bench.at("hdk").display().to_string();
    let image = fs::read(bench.at("image/image.toml")).unwrap();
    let dry = |all: &[&str]| {
        let document = bench.ok(&[all, &["--dry-run"]].concat());
        assert_eq!(document["dry_run"], true);
        let steps = document["steps"].as_array().unwrap().clone();
        steps.iter().map(|step| step.to_string()).collect::<Vec<_>>().join("\n")
    };
    assert!(
        dry(&["cloud", "doctor", "--hdk", &kit, "--region", "us-east-1"])
            .contains("aws ec2 describe-instance-type-offerings")
    );
    assert!(
        dry(&["cloud", "new", "second", "--hdk", &kit, "--vendor", "vendor"])
            .contains("shef_image_secret_pkg.sv")
    );
    // A name that is not free, and a folder that an interrupted call left.
    let new = |name, more: &[&str]| {
        let words = ["cloud", "new", name, "--hdk", &kit, "--vendor", "vendor"];
        [&words, more].concat().iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()
    };
    bench.write("other/file", "theirs");
    for name in ["image", "other"] {
        for more in [&["--dry-run"][..], &[]] {
            bench.fails(&words(&new(name, more)), "SHEF-CLD-017", "expected a name that is free");
        }
    }
    bench.write("left/.shef-cloud", "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(bench.at("left"), mode(0o700)).unwrap();
    assert!(dry(&words(&new("left", &[]))).contains("remove left, which an interrupted call left"));
    // Finished steps are not done again.
    let build = dry(&words(&bench.build()));
    assert!(build.contains("the build is done") && !build.contains("-f "), "{build}");
    let afi = dry(&words(&bench.afi()));
    assert!(afi.contains("is there again") && afi.contains("aws s3api head-object"), "{afi}");
    assert!(!afi.contains("put-object") && !afi.contains("ec2"), "{afi}");
    let record = fs::read_dir(bench.at("image/out")).unwrap().flatten().map(|entry| entry.path());
    let record = record.into_iter().find(|path| path.to_string_lossy().ends_with("afi.json"));
    let kept = record.as_ref().map(|path| (path.clone(), fs::read(path).unwrap())).unwrap();
    fs::remove_file(&kept.0).unwrap();
    assert!(dry(&words(&bench.afi())).contains("create-fpga-image --name digits-knn-"));
    fs::write(&kept.0, kept.1).unwrap();
    assert!(dry(&words(&Bench::load())).contains("-I agfi-"));
    assert!(dry(&["cloud", "bind"]).contains("driver_override"));
    assert!(dry(&["cloud", "metrics"]).contains("-M"));
    assert!(dry(&["cloud", "clear"]).contains("fpga-clear-local-image -S 0 -A"));
    assert_eq!(bench.calls(), before);
    assert!(!bench.at("second").exists());
    assert_eq!(fs::read(bench.at("image/image.toml")).unwrap(), image);
    // Lines of 80 columns, except for paths that are longer.
    for command in [&["cloud", "metrics", "--dry-run"][..], &["cloud", "clear", "--dry-run"]] {
        let text = String::from_utf8(bench.run(command).stdout).unwrap();
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}

#[test]
fn doctor_without_a_kit_and_a_region_decides_nothing() {
    let bench = Bench::new();
    let root = bench.at("").display().to_string();
    let output = bench.run(&["cloud", "doctor", "--root", &root]);
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap();
    assert_eq!(last, "not decided  not checked: build host, account, card, silicon", "{text}");
    assert_eq!(output.status.code(), Some(3));
    let kit = bench.at("hdk").display().to_string();
    let output = bench.run(&["cloud", "doctor", "--root", &root, "--hdk", &kit]);
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.ends_with("ready  not checked: account, card, silicon"), "{text}");
}

#[test]
fn explain_lists_the_codes_and_names_the_other_program() {
    let output = Bench::new().run(&["explain"]);
    let (list, note) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for code in shef_cloud::CODES {
        assert!(list.lines().any(|line| line.starts_with(code.id)), "{} is missing", code.id);
    }
    assert!(list.contains("SHEF-NET-112") && list.contains("SHEF-CLI-001"), "{list}");
    assert!(note.contains("`shef-sim explain`"), "{note}");
}

#[test]
fn usage_has_80_columns() {
    let bench = Bench::new();
    for command in
        ["doctor", "new", "lint", "build", "afi", "load", "bind", "run", "metrics", "clear"]
    {
        let text = String::from_utf8(bench.run(&["cloud", command, "--help"]).stdout).unwrap();
        let usage = text.lines().skip_while(|line| !line.starts_with("Usage"));
        let usage: Vec<&str> = usage.take_while(|line| !line.is_empty()).collect();
        assert!(!usage.is_empty() && usage.iter().all(|line| line.len() <= 80), "{usage:?}");
    }
}
