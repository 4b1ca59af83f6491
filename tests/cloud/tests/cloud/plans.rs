//! A dry run lists exactly the programs that the command then runs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use crate::bench::{Bench, words};
use crate::faults::{Stage, machine, with};

/// A program of a plan, and the case in which it runs.
type Planned = (Option<String>, String);

/// The programs of a dry run, as the list of calls has them.
fn planned(bench: &Bench, command: &[String]) -> Vec<Planned> {
    let before = bench.calls().len();
    let document = bench.ok(&words(&with(command, &["--dry-run"])));
    assert_eq!(bench.calls().len(), before, "{command:?}: a dry run starts nothing");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let steps = document["steps"].as_array().unwrap().iter();
    let lines = steps.filter_map(|step| match text(&step["run"]) {
        Some(line) => Some((None, line)),
        None => Some((Some(text(&step["if"]["case"])?), text(&step["if"]["run"])?)),
    });
    lines.map(|(case, line)| (case, program(&line))).collect()
}

/// A command line without its folder and its variables.
fn program(line: &str) -> String {
    let line = line.rsplit_once(" && ").map_or(line, |(_, line)| line).replace('\'', "");
    let mut words = line.split(' ').peekable();
    loop {
        match words.peek() {
            Some(&"env") => drop(words.next()),
            Some(&"-u") => drop((words.next(), words.next())),
            Some(word) if word.contains('=') => drop(words.next()),
            _ => return words.collect::<Vec<_>>().join(" "),
        }
    }
}

/// Plans a command, runs it, and compares: in one of the cases of the plan, its programs are exactly
/// those that ran. A look that is repeated counts once.
#[track_caller]
fn agree(bench: &Bench, command: &[String]) {
    let plan = planned(bench, command);
    let before = bench.calls().len();
    let output = bench.run(&words(command));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    let calls = bench.calls().split_off(before);
    let mut ran: Vec<String> =
        calls.iter().map(|call| call.split_once(": ").unwrap().1.to_owned()).collect();
    ran.dedup();
    // Names that only the run knows.
    let record = fs::read_to_string(bench.at("image/build.json")).unwrap_or_default();
    let tag = record.split('"').nth(3).unwrap_or("TAG").to_owned();
    let afi = bench.world().afis.into_keys().next().unwrap_or("AFI".to_owned());
    let known =
        |line: &str| line.replace("TAG", &tag).replace("-ids AFI ", &format!("-ids {afi} "));
    let cases: BTreeSet<&String> = plan.iter().filter_map(|(case, _)| case.as_ref()).collect();
    let possible = (0..1_u32 << cases.len()).map(|set| {
        let holds = |case: &String| {
            let at = cases.iter().position(|it| *it == case).unwrap();
            set >> at & 1 == 1
        };
        let lines = plan.iter().filter(|(case, _)| case.as_ref().is_none_or(holds));
        lines.map(|(_, line)| known(line)).collect::<Vec<_>>()
    });
    let possible: Vec<_> = possible.collect();
    assert!(possible.contains(&ran), "{command:?}\nran  {ran:#?}\nplan {plan:#?}");
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_build_and_an_image_run_what_their_dry_runs_list() {
    let bench = Bench::new();
    let kit = bench.at("hdk").display().to_string();
    let root = bench.at("").display().to_string();
    let script = bench.encrypt_script();
    let doctor = ["cloud", "doctor", "--hdk", &kit, "--region", "us-east-1", "--root", &root];
    agree(&bench, &with(&owned(&doctor), &["--encrypt-script", &script]));
    let local = ["cloud", "doctor", "--hdk", &kit, "--root", &root];
    agree(&bench, &with(&owned(&local), &["--encrypt-script", &script]));
    agree(&bench, &owned(&["cloud", "new", "image", "--hdk", &kit, "--vendor", "vendor"]));
    let build = bench.build();
    let document = bench.ok(&words(&with(&build, &["--dry-run"])));
    let logic = bench.at("image/cl_shef").canonicalize().unwrap().display().to_string();
    assert!(document.to_string().contains(&format!("CL_DIR={logic} python3")), "{document}");
    // What a dry run cannot do, it refuses as the run does.
    let plain = with(&owned(&["cloud", "build", "image"]), &["--dry-run"]);
    bench.fails(&words(&plain), "SHEF-CLD-018", "encrypt.tcl has SHA-256");
    // A build that stops, and goes on.
    bench.faults("pr-verify silent");
    bench.fails(&words(&build), "SHEF-CLD-023", "are compatible");
    bench.faults("");
    agree(&bench, &build);
    agree(&bench, &build);
    let bench = machine(Stage::New);
    agree(&bench, &bench.build());
    // An upload that stops, and goes on elsewhere.
    let afi = bench.afi();
    bench.faults("create-afi denied");
    bench.fails(&words(&afi), "SHEF-CLD-014", "ec2:CreateFpgaImage");
    bench.faults("");
    let elsewhere = afi.iter().map(|word| word.replace("vendor-bucket", "another-bucket"));
    agree(&bench, &elsewhere.collect::<Vec<_>>());
    agree(&bench, &afi);
    let bench = machine(Stage::Built);
    agree(&bench, &bench.afi());
    let key = bench.calls().into_iter().rfind(|call| call.starts_with("upload")).unwrap();
    let key = key.split(' ').skip_while(|word| *word != "--key").nth(1).unwrap().to_owned();
    let mut world = bench.world();
    world.objects.insert(format!("vendor-bucket/{key}"), 1);
    world.keep(&bench.at(""));
    agree(&bench, &bench.afi());
}

#[test]
fn a_slot_runs_what_its_dry_runs_list() {
    let bench = machine(Stage::Afi);
    let (load, clear) = (Bench::load(), owned(&["cloud", "clear"]));
    let replace = with(&load, &["--replace"]);
    let cases = |command: &[String]| -> String {
        planned(&bench, command).into_iter().filter_map(|(case, _)| case).collect()
    };
    assert!(!cases(&load).contains("another image") && cases(&replace).contains("another image"));
    let set = |image: Option<&str>, status, error| {
        let mut world = bench.world();
        world.slot = shef_fakes::world::Slot {
            image: image.map(str::to_owned),
            status,
            error,
            ..Default::default()
        };
        world.keep(&bench.at(""));
    };
    agree(&bench, &clear);
    agree(&bench, &load);
    agree(&bench, &load);
    agree(&bench, &owned(&["cloud", "metrics"]));
    agree(&bench, &clear);
    // After a load that failed, and with another image.
    set(None, 7, 14);
    agree(&bench, &load);
    set(Some("agfi-0ffffffffffffffff"), 0, 0);
    agree(&bench, &replace);
    // A card that is bound already.
    let device = "root/sys/bus/pci/devices/0000:34:00.0";
    for (path, text) in [
        (format!("{device}/vendor"), "0x1d0f"),
        (format!("{device}/device"), "0xf010"),
        (format!("{device}/driver_override"), ""),
        ("root/sys/bus/pci/drivers/vfio-pci/bind".to_owned(), ""),
        ("root/sys/kernel/iommu_groups/7/name".to_owned(), "vfio-noiommu"),
        ("root/sys/module/vfio/parameters/enable_unsafe_noiommu_mode".to_owned(), "Y"),
    ] {
        bench.write(&path, text);
    }
    symlink("../../../../kernel/iommu_groups/7", bench.at(device).join("iommu_group")).unwrap();
    symlink("../../drivers/vfio-pci", bench.at(device).join("driver")).unwrap();
    let root = bench.at("root").display().to_string();
    agree(&bench, &owned(&["cloud", "bind", "--root", &root]));
}

#[test]
fn lint_reads_what_its_dry_run_lists() {
    let bench = machine(Stage::New);
    let kit = bench.at("hdk").display().to_string();
    let lint = owned(&["cloud", "lint", "image", "--dry-run"]);
    assert!(bench.ok(&words(&lint))["kit"].is_null());
    let document = bench.ok(&words(&with(&lint, &["--hdk", &kit])));
    let header = document["kit"][0].as_str().unwrap();
    assert!(header.ends_with("hdk/common/shell_stable/design/interfaces/cl_ports.vh"), "{header}");
    fs::remove_file(header).unwrap();
    bench.fails(&words(&with(&lint, &["--hdk", &kit])), "SHEF-NET-001", "hdk");
}
