//! The command from outside: exit statuses, streams, codes, bad input.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn shef(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shef"));
    command.args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    shef(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs, and expects this exit status and this code, printed once on stderr and not on stdout.
fn fails(args: &[&str], exit: i32, code: &str) {
    let output = run(args);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{args:?}: {stderr}");
    assert_eq!(stderr.matches(&format!("error [{code}]")).count(), 1, "{args:?}: {stderr}");
    assert!(stderr.contains(&format!("shef explain {code}")), "{args:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{args:?}: {stderr}");
    if args.contains(&"--json") {
        assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
    }
}

const MODEL: &[&str] = &["demo", "--device", "sim:model", "--attack", "none", "--json"];

fn model(more: &[&str]) -> Vec<String> {
    MODEL.iter().chain(more).map(|s| (*s).to_owned()).collect()
}

fn model_fails(more: &[&str], exit: i32, code: &str) {
    let args = model(more);
    fails(&args.iter().map(String::as_str).collect::<Vec<_>>(), exit, code);
}

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/digits.csv.gz");

#[test]
fn json_is_one_document_of_the_shape_that_others_read() {
    let output = run(&["demo", "--device", "sim:model", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "quiet in a pipe: {}", text(&output.stderr));
    let d: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(d["device"], "sim:model");
    assert_eq!(d["root_of_trust"], "simulated");
    assert_eq!(
        (&d["digits"]["tested"], &d["digits"]["correct"], &d["digits"]["equal_to_reference"]),
        (&797.into(), &766.into(), &true.into())
    );
    assert!(d["cycles"]["shielded"].is_null() && d["cycles"]["bare"].is_null());
    for step in d["steps"].as_array().unwrap() {
        assert!(
            step["name"].is_string()
                && step["ok"] == true
                && step["ms"].is_u64()
                && step["cycles"].is_null(),
            "{step}"
        );
    }
    let attacks = d["attacks"].as_array().unwrap();
    let names: std::collections::HashSet<&str> =
        attacks.iter().map(|a| a["name"].as_str().unwrap()).collect();
    // All but those on the boot of the kernel in the FPGA.
    assert_eq!(names.len(), 20);
    for a in attacks {
        assert!(
            a["detected"] == true
                && a["words_delivered"] == 0
                && a["code"].as_str().unwrap().starts_with("SHEF-"),
            "{a}"
        );
    }
}

#[test]
fn devices_that_do_not_exist_or_cannot_be_opened() {
    for (uri, code) in [
        ("usb:1", "SHEF-DEV-001"),
        ("sim:fpga", "SHEF-DEV-002"),
        ("sim:model?x=1", "SHEF-DEV-002"),
        ("sim:model?project=/x", "SHEF-DEV-002"),
    ] {
        fails(&["demo", "--json", "--device", uri], 5, code);
        fails(&["device", "info", "--json", uri], 5, code);
    }
    fails(&["demo", "--json", "--device", "tls://localhost:1/card0"], 2, "SHEF-CLI-001");
    fails(&["demo", "--json", "--remote", "--device", "pci:0000:65:00.0"], 2, "SHEF-CLI-001");
    fails(
        &[
            "device",
            "info",
            "--json",
            "tls://localhost:1/card0",
            "--tls-ca",
            "/x",
            "--tls-cert",
            "/x",
            "--tls-key",
            "/x",
        ],
        5,
        "SHEF-AGT-003",
    );
    fails(&["device", "info", "--json", "vfio-user:/no/such/socket"], 4, "SHEF-VFU-001");
    fails(&["demo", "--json", "--device", "vfio-user:/no/such/socket"], 4, "SHEF-VFU-001");
    fails(&["demo", "--json", "--device", "pci:0000:65:00.0"], 2, "SHEF-CLI-001");
    fails(&["demo", "--json", "--device", "sim:model", "--control", "/x"], 2, "SHEF-CLI-001");
    fails(&["demo", "--json", "--device", "vfio-user:/x", "--stalls", "1"], 2, "SHEF-CLI-001");
    fails(
        &["sim", "serve", "--json", "--socket", "/no/such/folder/card", "--device", "model"],
        4,
        "SHEF-VFU-007",
    );
    fails(
        &["sim", "serve", "--json", "--socket", "card", "--device", "model", "--memory", "3"],
        5,
        "SHEF-CARD-004",
    );
    fails(
        &["sim", "serve", "--json", "--socket", "card", "--device", "model", "--stalls", "1"],
        2,
        "SHEF-CLI-001",
    );
    fails(&["demo", "--json", "--device", "pci:0000:65:00.0", "--seed", "1"], 2, "SHEF-CLI-001");
    fails(&["device", "info", "--json", "pci:ffff:ff:1f.7"], 4, "SHEF-PCI-001");
    fails(
        &["device", "info", "--json", &format!("pci:ueid=01{}", "00".repeat(32))],
        4,
        "SHEF-DEV-014",
    );
    fails(&["device", "info", "--json", "pci:ueid=01"], 5, "SHEF-DEV-002");
    fails(&["demo", "--json", "--device", "sim:rtl?project=/no/such/folder"], 2, "SHEF-CLI-001");
    fails(&["device", "info", "--json", "sim:rtl?project=/no/such/folder"], 5, "SHEF-CARD-003");
}

#[test]
fn flags_that_do_not_go_together() {
    model_fails(&["--wave", "x.fst"], 2, "SHEF-CLI-001");
    model_fails(&["--stalls", "1"], 2, "SHEF-CLI-001");
    model_fails(&["--latency", "9"], 2, "SHEF-CLI-001");
    fails(&["demo", "--device", "sim:model", "--json", "--attack", "kindness"], 2, "SHEF-CLI-001");
    for args in [&["demo", "--keep-secrets"][..], &["demo", "--train", "x"], &["nothing"], &[]] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
    for args in [&["--help"][..], &["--version"], &["demo", "--help"]] {
        assert_eq!(run(args).status.code(), Some(0), "{args:?}");
    }
    assert!(text(&run(&["--help"]).stdout).contains("70  internal error"));
}

#[test]
fn damaged_data_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let raw = fs::read(DIGITS).unwrap();
    fs::write(path("cut.csv.gz"), &raw[..raw.len() / 2]).unwrap();
    let mut more = raw.clone();
    more.extend_from_slice(b"and more");
    fs::write(path("more.csv.gz"), &more).unwrap();
    fs::write(path("line.csv"), "1,2,3\n").unwrap();
    fs::write(path("empty.csv"), "").unwrap();
    let row = format!("{}3\n", "1,".repeat(64));
    fs::write(path("two.csv"), row.repeat(2)).unwrap();
    model_fails(&["--data", &path("none.csv")], 5, "SHEF-CLI-010");
    model_fails(&["--data", &path("cut.csv.gz")], 5, "SHEF-CLI-011");
    model_fails(&["--data", &path("more.csv.gz")], 5, "SHEF-CLI-011");
    model_fails(&["--data", &path("line.csv")], 5, "SHEF-CLI-012");
    model_fails(&["--data", &path("empty.csv")], 5, "SHEF-CLI-013");
    model_fails(&["--data", &path("two.csv")], 5, "SHEF-CLI-014");
    model_fails(&["--data", dir.path().to_str().unwrap()], 5, "SHEF-CLI-010");
    model_fails(&["--train", "0"], 5, "SHEF-CLI-014");
    model_fails(&["--train", "1797"], 5, "SHEF-CLI-014");
    // The smallest working case, with fewer rows than neighbours.
    let args = model(&["--data", &path("two.csv"), "--train", "1"]);
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_folder_without_a_design_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("accelerator.toml"), "").unwrap();
    let folder = dir.path().to_str().unwrap();
    let output = run(&["shield", "check", folder]);
    let stderr = text(&output.stderr);
    assert!(
        output.status.code() == Some(5) && stderr.contains("with a file shield.toml in it"),
        "{stderr}"
    );
    fails(&["sim", "serve", "--json", "--socket", "card", "--project", folder], 5, "SHEF-CARD-003");
    fails(
        &["sim", "serve", "--json", "--socket", "card", "--project", folder, "--device", "model"],
        2,
        "SHEF-CLI-001",
    );
}

#[test]
fn an_error_drives_no_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("no\x1b[2Jfile.toml");
    let output = run(&["shield", "check", file.to_str().unwrap()]);
    let stderr = text(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(!stderr.contains('\x1b') && stderr.contains("no\\u{1b}[2Jfile.toml"), "{stderr}");
}

#[test]
fn places_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    model_fails(&["--keep", file.join("below").to_str().unwrap()], 5, "SHEF-CLI-015");
    model_fails(&["--keep", file.to_str().unwrap()], 5, "SHEF-CLI-015");
    if Path::new("/dev/full").exists() {
        let args = model(&[]);
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = shef(&args.iter().map(String::as_str).collect::<Vec<_>>())
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert!(text(&output.stderr).contains("SHEF-CLI-015"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    // An endless command ends.
    for args in [&["explain"][..], &["device", "watch", "sim:model", "--interval", "0.01"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = shef(args).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    }
}

#[test]
fn explanations() {
    let output = run(&["explain", "shef-att-013", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let e: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(e["code"], "SHEF-ATT-013");
    assert!(e["help"].as_str().unwrap().len() > 20);
    fails(&["explain", "SHEF-XXX-999", "--json"], 2, "SHEF-CLI-002");
    let all = text(&run(&["explain"]).stdout);
    for part in ["PRO", "SEAL", "ATT", "KRN", "DEV", "SDK", "CARD", "RTL", "CLI"] {
        assert!(all.contains(&format!("SHEF-{part}-")), "{part}");
    }
}

#[test]
fn devices_are_listed_and_described() {
    let list: serde_json::Value =
        serde_json::from_slice(&run(&["device", "list", "--json"]).stdout).unwrap();
    assert!(
        list.as_array()
            .unwrap()
            .iter()
            .any(|d| d["uri"] == "sim:rtl" && d["status"] == "available")
    );
    // What a simulated card lacks is its state.
    let list = |name: &str| {
        let mut command = shef(&["device", "list", "--json"]);
        let output = command.env(name, "/no/such").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout).unwrap()
    };
    for (name, lacks) in [
        ("SHEF_SIM", &[("sim:model", "SHEF-DEV-017"), ("sim:rtl", "SHEF-DEV-017")][..]),
        ("SHEF_VERILATOR", &[("sim:rtl", "SHEF-RTL-001"), ("sim:rtl?project=DIR", "SHEF-RTL-001")]),
        ("CXX", &[("sim:rtl", "SHEF-RTL-003")]),
        ("SHEF_IBEX", &[("sim:rtl", "SHEF-RTL-017")]),
    ] {
        let all = list(name);
        let of = |uri: &str| all.iter().find(|d| d["uri"] == uri).unwrap();
        for (uri, code) in lacks {
            let missing = &of(uri)["missing"];
            assert_eq!(of(uri)["status"], format!("fault {code}"), "{name}: {uri}");
            assert!(missing["message"].as_str().unwrap().contains("/no/such"), "{missing}");
            assert!(missing["help"].as_str().unwrap().len() > 20, "{missing}");
        }
        let model = if name == "SHEF_SIM" { "fault SHEF-DEV-017" } else { "available" };
        assert_eq!(of("sim:model")["status"], model, "{name}");
    }
    let shown = shef(&["device", "list"]).env("SHEF_VERILATOR", "/no/such").output().unwrap();
    let shown = text(&shown.stdout);
    assert_eq!(shown.matches("\nSHEF-RTL-001: ").count(), 1, "{shown}");
    assert_eq!(shown.matches("\nhelp: ").count(), 1, "{shown}");
    let output = run(&["device", "info", "sim:model", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&info["device"], &info["root_of_trust"], &info["kernel"]["state"]),
        (&"sim:model".into(), &"simulated".into(), &"idle".into())
    );
    assert!(info["shield"].is_null());
    let ueid = info["ueid"].as_str().unwrap();
    assert_eq!(ueid.parse::<shef_device::Ueid>().unwrap().to_string(), ueid);
}

#[test]
fn images_are_built_inspected_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let vendor = path("vendor");
    let image = path("image.shef");
    let built = run(&[
        "image",
        "build",
        "--simulated-card",
        "--svn",
        "3",
        "--vendor",
        &vendor,
        "--out",
        &image,
        "--json",
    ]);
    assert_eq!(built.status.code(), Some(0), "{}", text(&built.stderr));
    let built: serde_json::Value = serde_json::from_slice(&built.stdout).unwrap();
    let key: String = fs::read(dir.path().join("vendor/signing.pub"))
        .unwrap()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let image_key = fs::read_dir(&vendor)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.file_name().unwrap().to_string_lossy().starts_with("image-"))
        .unwrap();

    let inspected: serde_json::Value =
        serde_json::from_slice(&run(&["image", "inspect", &image, "--json"]).stdout).unwrap();
    assert_eq!((&inspected["svn"], &inspected["signature"]), (&3.into(), &"not verified".into()));
    let verified = run(&[
        "image",
        "verify",
        &image,
        "--vendor-key",
        &key,
        "--image-key",
        image_key.to_str().unwrap(),
        "--json",
    ]);
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
    let verified: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
    assert_eq!(
        (&verified["signature"], &verified["image_digest"]),
        (&"verified".into(), &built["image_digest"])
    );

    // The reference values beside it are signed by the vendor and name this image.
    let signers = shef_verify::corim::CorimSigner::list_from_toml(
        &fs::read_to_string(path("image.signers.toml")).unwrap(),
    )
    .unwrap();
    let trust = shef_verify::corim::Trust {
        signers: &signers,
        deactivated: &Default::default(),
        revocations: None,
        now: 0,
        verify: shef_verify::crypto::portable,
    };
    let corim = shef_verify::corim::read(&fs::read(path("image.corim")).unwrap(), &trust).unwrap();
    assert_eq!(
        hex::encode(corim.reference.images[0].digest),
        built["image_digest"].as_str().unwrap()
    );
    assert_eq!((corim.version, corim.reference.images[0].svn), (3, 3));

    // Another party's key, and every possible defect of the file.
    let other = path("other");
    assert_eq!(
        run(&[
            "image",
            "build",
            "--simulated-card",
            "--svn",
            "3",
            "--vendor",
            &other,
            "--out",
            &path("other.shef")
        ])
        .status
        .code(),
        Some(0)
    );
    let other_key: String = fs::read(dir.path().join("other/signing.pub"))
        .unwrap()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    fails(&["image", "verify", &image, "--vendor-key", &other_key, "--json"], 1, "SHEF-PRO-012");
    let good = fs::read(&image).unwrap();
    let bad = path("bad.shef");
    for (bytes, code) in [
        (Vec::new(), "SHEF-PRO-040"),
        (good[..good.len() - 1].to_vec(), "SHEF-PRO-040"),
        ([&good[..], &[0]].concat(), "SHEF-PRO-040"),
        ([&b"XHEFIMG1"[..], &good[8..]].concat(), "SHEF-PRO-040"),
        (flip(&good, good.len() - 1), "SHEF-PRO-041"),
    ] {
        fs::write(&bad, bytes).unwrap();
        fails(&["image", "inspect", &bad, "--json"], 5, code);
        fails(&["image", "verify", &bad, "--vendor-key", &key, "--json"], 5, code);
    }
    fails(&["image", "verify", &image, "--vendor-key", "04zz", "--json"], 5, "SHEF-CLI-018");
    fails(&["image", "inspect", &path("none"), "--json"], 5, "SHEF-CLI-010");
    fs::write(path("shield.toml"), "suite = 1\nunknown = 2\n").unwrap();
    let named = [
        "--payload",
        &path("shield.toml"),
        "--design",
        &"00".repeat(32),
        "--accelerator",
        "x",
        "--target",
        "t",
    ];
    let output = shef(&[
        "image",
        "build",
        "--svn",
        "1",
        "--config",
        &path("shield.toml"),
        "--vendor",
        &vendor,
        "--out",
        &path("x"),
    ])
    .args(named)
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(
        text(&output.stderr).contains("shield.toml:2:"),
        "points at the line: {}",
        text(&output.stderr)
    );
}

/// Signed values need explicit flags: a missing flag does not default to the demo's.
#[test]
fn an_image_has_no_default_design() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vecadd/shield.toml");
    let digest = "11".repeat(32);
    let all = [
        ("--config", config),
        ("--payload", config),
        ("--design", &digest),
        ("--accelerator", "own"),
        ("--target", "t"),
    ];
    let (vendor, out) = (path("vendor"), path("image.shef"));
    let base = ["image", "build", "--svn", "1", "--vendor", &vendor, "--out", &out];
    for given in 0..1 << all.len() {
        let flags = all
            .iter()
            .enumerate()
            .filter(|(i, _)| given >> i & 1 == 1)
            .flat_map(|(_, (flag, value))| [*flag, *value]);
        let args: Vec<&str> = base.into_iter().chain(flags).collect();
        if given + 1 < 1 << all.len() {
            fails(&args, 2, "SHEF-CLI-001");
            assert!(!Path::new(&out).exists() && !Path::new(&vendor).exists(), "{args:?}");
        } else {
            assert_eq!(run(&args).status.code(), Some(0));
        }
    }
    // A project determines all of it, and excludes parts of another design.
    let project = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vecadd");
    let args: Vec<&str> = base.into_iter().chain(["--project", project, "--json"]).collect();
    let built: serde_json::Value = serde_json::from_slice(&run(&args).stdout).unwrap();
    let own = run(&["project", "check", project, "--no-ports", "--json"]);
    let own: serde_json::Value = serde_json::from_slice(&own.stdout).unwrap();
    assert_eq!(own["design_digest"].as_str().unwrap().len(), 64);
    for field in ["accelerator", "target", "design_digest", "config_digest"] {
        assert_eq!(built[field], own[field], "{field}");
    }
    // Neither needs a simulator.
    for args in [&args[..], &["project", "check", project, "--no-ports"]] {
        let output = shef(args).env("SHEF_SIM", "/none").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    // The noise source that the vendor accepts is the strict one, unless a flag names the other.
    assert_eq!(built["entropy"], "tested");
    for (source, status) in [("tested", 0), ("unmeasured", 0), ("seeded", 2), ("", 2)] {
        let args: Vec<&str> = args.iter().copied().chain(["--entropy", source]).collect();
        let output = run(&args);
        assert_eq!(output.status.code(), Some(status), "{source}");
        if status == 0 {
            let shown = run(&["image", "inspect", &out, "--json"]);
            let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
            assert_eq!(shown["entropy"], source);
        }
    }
    for (flag, value) in all {
        assert_eq!(
            run(&args.iter().copied().chain([flag, value]).collect::<Vec<_>>()).status.code(),
            Some(2),
            "{flag}"
        );
    }
}

#[test]
#[cfg(unix)]
fn a_path_that_is_not_utf8_is_shown_as_text() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let maker = dir.path().join("m").display().to_string();
    let output = shef(&["--json", "sim", "trust", "--manufacturer", &maker, "--out"])
        .arg(&folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = document["files"].as_array().unwrap();
    assert_eq!(files.len(), fs::read_dir(&folder).unwrap().count());
    assert!(files.iter().all(|f| f.as_str().unwrap().contains("/caf\u{fffd}/")), "{document}");
    // No other document has a field that serde cannot serialise.
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut walk, mut seen) =
        (["host", "attestation", "sim", "tests/xtask"].map(|d| sources.join(d)).to_vec(), 0);
    while let Some(path) = walk.pop() {
        if path.is_dir() {
            walk.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else if path.extension().is_some_and(|x| x == "rs") {
            let code = fs::read_to_string(&path).unwrap();
            for item in code
                .split("#[derive(")
                .skip(1)
                .filter(|item| item.split(')').next().is_some_and(|d| d.contains("Serialize")))
            {
                seen += 1;
                let body = item.split("\n}").next().unwrap();
                assert!(
                    !["PathBuf", "&Path", "&'a Path", "OsString"].iter().any(|t| body.contains(t)),
                    "{}: use PathText:\n{body}",
                    path.display()
                );
            }
        }
    }
    assert!(seen > 50, "{seen} documents");
}

/// A disk that is full after 1,024 bytes: the old file stays, without any part of a new one.
#[test]
#[cfg(unix)]
fn a_file_that_does_not_fit_leaves_no_part() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let names = || -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let full = |args: &[&str]| {
        let script = r#"ulimit -f 1; trap '' XFSZ; exec "$0" "$@""#;
        let output = Command::new("bash")
            .args(["-c", script, env!("CARGO_BIN_EXE_shef")])
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (vendor, image) = (path("vendor"), path("image.shef"));
    // The payload of a simulated card is a temporary file, too: here the image is the first file.
    let other = tempfile::tempdir().unwrap();
    let payload = other.path().join("payload").display().to_string();
    let design = shef_project::Design::digits().unwrap();
    fs::write(&payload, design.program().unwrap()).unwrap();
    let digest = hex::encode(design.digest());
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shell-rtl/accel/digits/shield.toml");
    let build: Vec<&str> = ["image", "build", "--config", digits, "--payload", &payload]
        .into_iter()
        .chain(["--design", &digest, "--accelerator", "digits-knn"])
        .chain(["--target", "shef-sim", "--svn", "1", "--vendor", &vendor, "--out", &image])
        .collect();
    for before in [None, Some(b"the image before")] {
        if let Some(bytes) = before {
            fs::write(&image, bytes).unwrap();
        }
        let there = if before.is_some() { vec!["image.shef", "vendor"] } else { vec!["vendor"] };
        let (code, stderr) = full(&build);
        assert_eq!(code, Some(5), "{stderr}");
        assert!(stderr.contains("error [SHEF-CLI-015]") && stderr.contains(&image), "{stderr}");
        assert_eq!(names(), there);
        assert_eq!(fs::read(&image).ok().as_deref(), before.map(|b| &b[..]));
    }
    let generated = path("generated");
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vecadd/shield.toml");
    let (code, stderr) = full(&["shield", "generate", config, "--out", &generated]);
    assert_eq!(code, Some(5), "{stderr}");
    assert!(
        stderr.contains("shef_cfg_pkg.sv") && fs::read_dir(&generated).unwrap().count() == 0,
        "{stderr}"
    );
}

fn flip(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

#[test]
fn evidence_is_verified_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let keep = dir.path().join("keep");
    let path = |name: &str| keep.join(name).display().to_string();
    let args = model(&["--keep", keep.to_str().unwrap()]);
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!keep.join("secrets.json").exists());

    let (policy, reference, anchors) =
        (path("policy.toml"), path("reference.toml"), path("anchors.toml"));
    let verify =
        |layer: &str, evidence: &str, nonce: &str, policy: &str, reference: &str, anchors: &str| {
            run(&[
                "verify",
                "--json",
                "--layer",
                layer,
                "--evidence",
                evidence,
                "--nonce",
                nonce,
                "--audience",
                "data-owner",
                "--policy",
                policy,
                "--reference",
                reference,
                "--anchors",
                anchors,
            ])
        };
    for layer in ["kernel", "shield"] {
        let (evidence, nonce) = (
            path(&format!("evidence/{layer}.cbor")),
            format!("@{}", path(&format!("evidence/{layer}.nonce"))),
        );
        let good = verify(layer, &evidence, &nonce, &policy, &reference, &anchors);
        assert_eq!(good.status.code(), Some(0), "{}", text(&good.stderr));
        let d: serde_json::Value = serde_json::from_slice(&good.stdout).unwrap();
        assert_eq!(d["verdict"], "accepted");
        assert!(d["checks"].as_array().unwrap().iter().all(|c| c["passed"] == true));
        assert!(d["warnings"][0].as_str().unwrap().contains("simulated"));

        // Old nonce, other layer, changed, truncated, extended by a byte: rejected, with the failed
        // check.
        let other = if layer == "kernel" { "shield" } else { "kernel" };
        let bytes = fs::read(&evidence).unwrap();
        let bad = dir.path().join("bad.cbor").display().to_string();
        let first = |output: &Output| {
            assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
            let d: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(d["verdict"], "denied");
            d["checks"].as_array().unwrap().iter().find(|c| c["passed"] == false).unwrap()["code"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            first(&verify(layer, &evidence, &"00".repeat(32), &policy, &reference, &anchors)),
            "SHEF-ATT-004"
        );
        assert_eq!(
            first(&verify(other, &evidence, &nonce, &policy, &reference, &anchors)),
            "SHEF-ATT-002"
        );
        for (bytes, code) in [
            (flip(&bytes, bytes.len() - 1), "SHEF-ATT-014"),
            (bytes[..bytes.len() - 1].to_vec(), "SHEF-ATT-001"),
            ([&bytes[..], &[0]].concat(), "SHEF-ATT-001"),
        ] {
            fs::write(&bad, bytes).unwrap();
            assert_eq!(first(&verify(layer, &bad, &nonce, &policy, &reference, &anchors)), code);
        }
        // A policy for production does not name simulated devices.
        let text_policy = fs::read_to_string(&policy).unwrap();
        fs::write(
            dir.path().join("production.toml"),
            text_policy.replace("simulated", "shef-boot"),
        )
        .unwrap();
        assert_eq!(
            first(&verify(
                layer,
                &evidence,
                &nonce,
                dir.path().join("production.toml").to_str().unwrap(),
                &reference,
                &anchors
            )),
            "SHEF-ATT-020"
        );
        // A closed pipe is no error, and it turns no denial into success.
        let production = dir.path().join("production.toml").display().to_string();
        for (policy, status) in [(&production, 1), (&policy, 0)] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let args = ["verify", "--layer", layer, "--evidence", &evidence, "--nonce", &nonce];
            let trust = ["--audience", "data-owner", "--reference", &reference];
            let mut command = shef(&args);
            command.args(trust).args(["--anchors", &anchors, "--policy"]).arg(policy);
            let output = command.stdout(writer).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
            assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        }

        // An undecidable case is neither yes nor no.
        fs::write(dir.path().join("empty"), "").unwrap();
        let empty = dir.path().join("empty").display().to_string();
        for output in [
            verify(layer, &empty, &nonce, &policy, &reference, &anchors),
            verify(layer, &evidence, &nonce, &policy, &empty, &anchors),
            verify(layer, &evidence, &nonce, &policy, &reference, &empty),
        ] {
            assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
            assert!(text(&output.stderr).contains("SHEF-CLI-022"));
        }
        // Malformed files.
        fs::write(dir.path().join("wrong.toml"), format!("{text_policy}\nsurprise = 1\n")).unwrap();
        let wrong = dir.path().join("wrong.toml").display().to_string();
        for (output, code) in [
            (verify(layer, &evidence, &nonce, &wrong, &reference, &anchors), "SHEF-ATT-050"),
            (verify(layer, &evidence, &nonce, &policy, &wrong, &anchors), "SHEF-ATT-051"),
            (verify(layer, &evidence, &nonce, &policy, &reference, &wrong), "SHEF-ATT-052"),
            (verify(layer, &evidence, "xyz", &policy, &reference, &anchors), "SHEF-CLI-018"),
            (verify(layer, &path("none"), &nonce, &policy, &reference, &anchors), "SHEF-CLI-010"),
        ] {
            assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
            assert!(text(&output.stderr).contains(code), "{code}: {}", text(&output.stderr));
        }
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("image-key"), "{shell}");
        let output = run(&["sim", "completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("stalls"), "{shell}");
    }
    assert!(text(&run(&["man"]).stdout).contains(".TH"));
    assert!(text(&run(&["man", "demo"]).stdout).contains("keep"));
    fails(&["man", "nothing"], 2, "SHEF-CLI-001");
}

/// The program's own output contains no session key either.
#[test]
fn no_key_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let keep = dir.path().join("keep");
    let mut printed = String::new();
    let mut keys = Vec::new();
    for form in [&["-v"][..], &["-v", "--json"]] {
        let mut args = vec![
            "demo",
            "--device",
            "sim:model",
            "--keep",
            keep.to_str().unwrap(),
            "--keep-secrets",
        ];
        args.extend(form);
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        printed.push_str(&text(&output.stdout));
        printed.push_str(&text(&output.stderr));
        let secrets: serde_json::Value =
            serde_json::from_slice(&fs::read(keep.join("secrets.json")).unwrap()).unwrap();
        keys.extend(
            secrets["data"]
                .as_object()
                .unwrap()
                .values()
                .map(|v| v["key"].as_str().unwrap().to_owned()),
        );
        keys.extend(
            ["channel_owner_to_shield", "channel_shield_to_owner"]
                .map(|k| secrets[k].as_str().unwrap().to_owned()),
        );
    }
    assert_eq!(keys.len(), 10);
    let printed = printed.to_lowercase();
    for key in keys {
        assert!(!printed.contains(&key[..16]), "the beginning of a key was printed");
    }
    // Only its owner can read the file with the keys.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(keep.join("secrets.json")).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

/// A valid `shield.toml`: two regions behind one set.
const SHIELD: &str = r#"[[region]]
name = "in"
mode = "input"
base = 0x0
size = "64 KiB"

[[region]]
name = "out"
mode = "output"
base = 0x10000
size = "8 KiB"
chunk = 512
"#;

/// Every rule of docs/reference/shield-config.md once: the text that is appended to or replaced in
/// [`SHIELD`], and the error's first line and code.
#[test]
fn bad_shields_are_told_with_line_and_column() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shield.toml");
    let shield = |from: &str, to: &str| {
        assert!(SHIELD.contains(from), "{from}");
        SHIELD.replacen(from, to, 1)
    };
    let set = |keys: &str| format!("{SHIELD}[[set]]\n{keys}\n");
    let more = |keys: &str| format!("{SHIELD}{keys}\n");
    let region = |n: usize, keys: &str| format!("[[region]]\nname = \"r{n}\"\n{keys}\n");
    let cases: Vec<(String, &str, &str)> = vec![
        // not TOML, keys, types
        ("region = [".into(), "1:", "SHEF-GEN-010"),
        (more("chunks = 4"), "13:1: unknown field `chunks`", "SHEF-GEN-010"),
        (shield("name = \"in\"\n", ""), "1:1: missing field `name`", "SHEF-GEN-010"),
        (shield("\"8 KiB\"", "\"8 kb\""), "11:8: ", "SHEF-GEN-010"),
        (shield("\"input\"", "\"inputs\""), "3:8: unknown mode \"inputs\"", "SHEF-GEN-010"),
        // the whole file
        (
            "[[set]]\n".into(),
            "1:1: 1 to 16 regions, found 0: memory ports, engine sets and regions are there together",
            "SHEF-GEN-011",
        ),
        (
            "[memory]\nports = 1\n".into(),
            "2:9: 1 to 16 regions, found 0: memory ports",
            "SHEF-GEN-011",
        ),
        (
            format!("[memory]\nports = 0\n{SHIELD}"),
            "2:9: 1 to 4 memory ports, found 0: memory ports",
            "SHEF-GEN-011",
        ),
        (format!("suite = 2\n{SHIELD}"), "1:9: unknown suite 2", "SHEF-GEN-011"),
        (
            format!("[synthesis]\nsbox = \"rom\"\n{SHIELD}"),
            "2:8: unknown kind of S-box \"rom\", expected lut or ram",
            "SHEF-GEN-011",
        ),
        (
            format!("on_fault = \"stop\"\n{SHIELD}"),
            "1:12: unknown fault policy \"stop\"",
            "SHEF-GEN-011",
        ),
        (
            format!("[memory]\nports = 5\n{SHIELD}"),
            "2:9: 1 to 4 memory ports, found 5",
            "SHEF-GEN-011",
        ),
        (
            format!("{SHIELD}{}", "[[set]]\n".repeat(5)),
            "17:1: 1 to 4 engine sets, found 5",
            "SHEF-GEN-011",
        ),
        (
            (0..17)
                .map(|n| region(n, &format!("mode = \"input\"\nbase = {}\nsize = 4096", n * 4096)))
                .collect(),
            "81:1: 1 to 16 regions, found 17",
            "SHEF-GEN-011",
        ),
        // sets
        (set("lanes = 3"), "14:9: engine set 0: lanes must be 1, 2 or 4, found 3", "SHEF-GEN-011"),
        (
            set("big_lines = 2"),
            "14:13: engine set 0: big_lines must be 3 or more, found 2",
            "SHEF-GEN-011",
        ),
        (
            set("small_lines = 60"),
            "14:15: engine set 0: big_lines and small_lines must be 64 or less together",
            "SHEF-GEN-011",
        ),
        (
            set("ring_beats = 500"),
            "14:14: engine set 0: ring_beats must be a power of two from 128 to 4096, found 500",
            "SHEF-GEN-011",
        ),
        (
            set("acc = 4"),
            "14:7: engine set 0: acc names an accelerator port from 0 to 3, found 4",
            "SHEF-GEN-011",
        ),
        (
            set("acc = 1"),
            "14:7: engine set 0: accelerator port 1 needs a set on port 0 too",
            "SHEF-GEN-011",
        ),
        (
            set("cache = 100\ncache_line = 64"),
            "14:9: engine set 0: cache must be a power of two from 32 lines (2048 B) to 8388608 B, found 100",
            "SHEF-GEN-011",
        ),
        (
            set("cache = \"64 KiB\""),
            "14:9: engine set 0: cache_line must be a power of two",
            "SHEF-GEN-011",
        ),
        (set("cache_line = 64"), "14:14: engine set 0: cache_line without cache", "SHEF-GEN-011"),
        (
            format!("{SHIELD}[[set]]\n[[set]]\n"),
            "14:1: engine set 1: no region belongs to it",
            "SHEF-GEN-011",
        ),
        // regions
        (
            shield("\"in\"", "\"In\""),
            "2:8: region 0 (In): a name is 1 to 32 of a-z 0-9 _ -",
            "SHEF-GEN-011",
        ),
        (
            shield("\"out\"", "\"in\""),
            "8:8: region 1 (in): another region has this name",
            "SHEF-GEN-011",
        ),
        (
            shield("chunk = 512", "chunk = 500"),
            "12:9: region 1 (out): chunk must be a power of two",
            "SHEF-GEN-011",
        ),
        (
            more("key = 192"),
            "13:7: region 1 (out): key must be 128 or 256 bits, found 192",
            "SHEF-GEN-011",
        ),
        (
            shield("0x10000", "0x10040"),
            "10:8: region 1 (out): base 0x10040 is not a multiple of 4 KiB",
            "SHEF-GEN-011",
        ),
        (
            shield("\"8 KiB\"", "0"),
            "11:8: region 1 (out): size 0x0 is not a positive multiple of 4 KiB",
            "SHEF-GEN-011",
        ),
        (
            shield("0x10000", "\"0xffff_ffff_ffff_f000\""),
            "11:8: region 1 (out): the region runs past the last address",
            "SHEF-GEN-011",
        ),
        (
            shield("\"8 KiB\"", "\"2 TiB\""),
            "11:8: region 1 (out): 4294967296 chunks, at most 2^31",
            "SHEF-GEN-011",
        ),
        (
            more("tag_base = 0x20100"),
            "13:12: region 1 (out): tag_base 0x20100 is not a multiple of 4 KiB",
            "SHEF-GEN-011",
        ),
        (
            more("node_base = 0x20000"),
            "13:13: region 1 (out): only a tree region has node_base",
            "SHEF-GEN-011",
        ),
        (
            more("counter = 36"),
            "13:11: region 1 (out): only a counted region has counter",
            "SHEF-GEN-011",
        ),
        (
            shield("\"output\"", "\"counted\"\ncounter = 40"),
            "10:11: region 1 (out): counter must be 36 or 48 bits",
            "SHEF-GEN-011",
        ),
        (
            shield("\"output\"", "\"bypass\"\ntag_base = 0x20000"),
            "10:12: a bypass region has no tags",
            "SHEF-GEN-011",
        ),
        (
            more("prefetch = 9"),
            "13:12: region 1 (out): prefetch must be 0 to 8 chunks, found 9",
            "SHEF-GEN-011",
        ),
        (
            more("port = 1"),
            "13:8: region 1 (out): port 1 does not exist, there are 1",
            "SHEF-GEN-011",
        ),
        (
            more("set = 1"),
            "13:7: region 1 (out): engine set 1 does not exist, there are 1",
            "SHEF-GEN-011",
        ),
        // regions in their set
        (
            format!("[memory]\nports = 2\n{}", more("port = 1")),
            "15:8: region 1 (out): port 1, but region 0 (in) of the same engine set uses port 0",
            "SHEF-GEN-011",
        ),
        (
            set("cache = \"256 KiB\"\ncache_line = 4096"),
            "9:8: region 1 (out): engine set 0 has a cache, which cannot hold output regions",
            "SHEF-GEN-011",
        ),
        (
            set("cache = \"64 KiB\"\ncache_line = 512"),
            "1:1: region 0 (in): chunk 4096 in engine set 0, whose cache has lines of 512 B",
            "SHEF-GEN-011",
        ),
        (
            set("small_lines = 4").replace("chunk = 512", "chunk = 512\nprefetch = 2"),
            "13:12: region 1 (out): prefetch 2 needs 5 small_lines, engine set 0 has 4",
            "SHEF-GEN-011",
        ),
        // overlaps
        (
            shield("0x10000", "0xf000"),
            "10:8: data of region 1 (out) 0xf000..0x11000 overlaps data of region 0 (in) 0x0..0x10000",
            "SHEF-GEN-011",
        ),
        (
            more("tag_base = 0x1000"),
            "13:12: tags of region 1 (out) 0x1000..0x2000 overlaps data of region 0 (in)",
            "SHEF-GEN-011",
        ),
        (
            shield("\"output\"", "\"tree\"\nnode_base = 0x1000"),
            "10:13: nodes of region 1 (out) 0x1000..0x2000 overlaps data of region 0 (in)",
            "SHEF-GEN-011",
        ),
        // on-chip memory
        (
            shield("\"8 KiB\"", "\"64 GiB\""),
            "11:8: region 1 (out): the output regions up to this one have 134217728 chunks, on-chip memory holds a bit",
            "SHEF-GEN-011",
        ),
        (
            shield("\"output\"", "\"counted\"").replace("\"8 KiB\"", "\"4 GiB\""),
            "11:8: region 1 (out): the counted regions up to this one have 8388608 chunks, on-chip memory holds a counter",
            "SHEF-GEN-011",
        ),
        (
            (0..3)
                .map(|n| {
                    region(n, &format!("mode = \"tree\"\nbase = {}\nsize = \"2 GiB\"", n << 40))
                })
                .collect(),
            "15:8: region 2 (r2): the tree regions up to this one have 196608 root table entries, on-chip memory holds 131072",
            "SHEF-GEN-011",
        ),
    ];
    for (text_of_file, start, code) in cases {
        fs::write(&file, &text_of_file).unwrap();
        let path = file.display().to_string();
        for command in ["check", "digest"] {
            fails(&["shield", command, &path], 5, code);
        }
        let stderr = text(&run(&["shield", "check", &path]).stderr);
        let first = stderr.lines().next().unwrap();
        assert!(
            first.starts_with(&format!("error [{code}]: {path}:{start}")),
            "{first}\nexpected {start}\n{text_of_file}"
        );
        // The line itself, and a caret under the column.
        let (line, column) = first
            .rsplit_once(".toml:")
            .unwrap()
            .1
            .split_once(' ')
            .unwrap()
            .0
            .trim_end_matches(':')
            .split_once(':')
            .unwrap();
        let line: usize = line.parse().unwrap();
        let caret =
            stderr.lines().find(|l| l.trim_start_matches([' ', '|']).starts_with('^')).unwrap();
        assert!(
            stderr.contains(&format!(
                "\n{line} | {}\n",
                text_of_file.lines().nth(line - 1).unwrap_or("")
            )),
            "{stderr}"
        );
        assert_eq!(
            caret.find('^').unwrap(),
            line.to_string().len() + 3 + column.parse::<usize>().unwrap() - 1,
            "{stderr}"
        );
    }
    fails(&["shield", "check", "/no/such/shield.toml"], 5, "SHEF-CLI-010");
    fs::write(&file, [0xff, 0xfe]).unwrap();
    fails(&["shield", "check", &file.display().to_string()], 5, "SHEF-CLI-016");
}

fn document(args: &[&str]) -> serde_json::Value {
    let output = run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn shields_are_checked_generated_shown_and_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shield.toml");
    let all = format!(
        "on_fault = \"region\"\n{SHIELD}\n[[region]]\nname = \"tree\"\nmode = \"tree\"\nbase = 0x100000\nsize = \"1 MiB\"\n\
         [[region]]\nname = \"counted\"\nmode = \"counted\"\nbase = 0x200000\nsize = \"1 MiB\"\ncounter = 48\n\
         [[region]]\nname = \"open\"\nmode = \"bypass\"\nbase = 0x300000\nsize = \"4 KiB\"\n"
    );
    fs::write(&file, &all).unwrap();
    // A folder is accepted in place of the file in it.
    let path = dir.path().display().to_string();

    let checked = document(&["shield", "check", &path, "--json"]);
    let digest = checked["config_digest"].as_str().unwrap();
    assert_eq!((digest.len(), &checked["regions"]), (64, &5.into()));
    assert_eq!(checked["warnings"].as_array().unwrap().len(), 1);
    let shown = run(&["shield", "check", &path]);
    assert!(
        text(&shown.stdout).contains("in order, 5 regions, 1 engine set, 1 warning"),
        "{}",
        text(&shown.stdout)
    );
    let stderr = text(&shown.stderr);
    assert!(
        stderr.contains("shield.toml:28:8: region \"open\" is not protected")
            && stderr.contains("|        ^^^^^^^^"),
        "{stderr}"
    );

    assert_eq!(text(&run(&["shield", "digest", &path, "-q"]).stdout), format!("{digest}\n"));
    assert_eq!(document(&["shield", "digest", &path, "--json"])["config_digest"], digest);

    let out = dir.path().join("generated");
    let written =
        document(&["shield", "generate", &path, "--out", &out.display().to_string(), "--json"]);
    assert_eq!(written["files"].as_array().unwrap().len(), 3);
    let package = fs::read_to_string(out.join("shef_cfg_pkg.sv")).unwrap();
    assert!(
        package.contains(&format!("CONFIG_DIGEST = 256'h{digest};"))
            && package.contains("ON_FAULT = shef_pkg::ON_FAULT_REGION")
    );
    assert!(
        fs::read_to_string(out.join("shef_config.rs")).unwrap().contains("pub mod region_counted")
    );
    let header = fs::read_to_string(out.join("shef_config.h")).unwrap();
    assert!(header.contains("#define SHEF_REGION_OPEN_BASE UINT64_C(0x300000)"), "{header}");
    fails(&["shield", "generate", &path, "--out", &file.display().to_string()], 5, "SHEF-CLI-015");
    // S-boxes in block RAM: another package of the same digest
    assert!(package.contains("SBOX_RAM = 1'b0;"));
    fs::write(&file, format!("{all}[synthesis]\nsbox = \"ram\"\n")).unwrap();
    assert_eq!(
        document(&["shield", "generate", &path, "--out", &out.display().to_string(), "--json"])["config_digest"],
        digest
    );
    assert!(fs::read_to_string(out.join("shef_cfg_pkg.sv")).unwrap().contains("SBOX_RAM = 1'b1;"));
    assert_eq!(document(&["shield", "show", &path, "--json"])["sbox"], "ram");
    fs::write(&file, &all).unwrap();

    let shown = document(&["shield", "show", &path, "--json"]);
    assert_eq!(
        (&shown["on_fault"], &shown["regions"][3]["counter_bits"]),
        (&"region".into(), &48.into())
    );
    let memory = shown["memory"].as_array().unwrap();
    for pair in memory.windows(2) {
        assert_eq!(pair[0]["end"], pair[1]["start"]);
    }
    for what in ["data", "tags", "nodes", "free"] {
        assert!(memory.iter().any(|r| r["what"] == what), "{what}");
    }
    let shown = text(&run(&["shield", "show", &path, "-q"]).stdout);
    assert!(
        shown.contains("0x0000000000100000 .. 0x00000000001fffff      1 MiB  data  tree"),
        "{shown}"
    );

    let at = |mhz: &str| document(&["shield", "estimate", &path, "--json", "--clock-mhz", mhz]);
    let (slow, fast) = (at("125"), at("250"));
    assert_eq!(slow["total"], fast["total"]);
    assert!(
        fast["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|b| b["basis"] == "measured" || b["basis"] == "estimate")
    );
    let sum: u64 =
        fast["blocks"].as_array().unwrap().iter().map(|b| b["lut"].as_u64().unwrap()).sum();
    assert_eq!(fast["total"]["lut"], sum);
    let life = |d: &serde_json::Value| d["regions"][3]["counter_seconds"].as_f64().unwrap();
    assert!((life(&slow) / life(&fast) - 2.0).abs() < 1e-9);
    assert!(
        fast["regions"][0]["key_seconds"].is_null() && fast["regions"][1]["key_seconds"].is_f64()
    );
    let table = text(&run(&["shield", "estimate", &path, "-q"]).stdout);
    for word in ["LUT", "RAMB36", "sum", "measured", "random read", "open", "bypass"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    fails(&["shield", "estimate", &path, "--clock-mhz", "0"], 2, "SHEF-CLI-001");
    fails(&["shield", "estimate", &path, "--latency", "0"], 2, "SHEF-CLI-001");
}

/// A Shield without card memory: parts that serve memory are neither shown nor counted.
#[test]
fn a_shield_without_regions_has_the_control_plane_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("shield.toml");
    fs::write(&file, "on_fault = \"halt\"\n").unwrap();
    let path = dir.path().display().to_string();
    assert!(
        text(&run(&["shield", "check", &path]).stdout)
            .contains("in order, 0 regions, 0 engine sets, 0 warnings")
    );
    let shown = document(&["shield", "show", &path, "--json"]);
    assert_eq!([&shown["memory_ports"], &shown["accelerator_ports"]], [&0, &0]);
    assert!(
        shown["sets"].as_array().unwrap().is_empty()
            && shown["regions"].as_array().unwrap().is_empty()
    );
    assert!(text(&run(&["shield", "show", &path, "-q"]).stdout).contains("card memory     none"));
    let digest = text(&run(&["shield", "digest", &path, "-q"]).stdout);
    assert_eq!(shown["config_digest"], digest.trim_end());
    // a port count of 0 means the same
    fs::write(&file, "on_fault = \"halt\"\n[memory]\nports = 0\n").unwrap();
    assert_eq!(text(&run(&["shield", "digest", &path, "-q"]).stdout), digest);
    let out = dir.path().join("generated");
    document(&["shield", "generate", &path, "--out", &out.display().to_string(), "--json"]);
    let package = fs::read_to_string(out.join("shef_cfg_pkg.sv")).unwrap();
    assert!(
        package.contains("N_SETS = 0;")
            && package.contains("N_REGIONS = 0;")
            && package.contains("[0:0] REGIONS = '0;"),
        "{package}"
    );
    let estimate = document(&["shield", "estimate", &path, "--json"]);
    assert!(estimate["blocks"].as_array().unwrap().iter().all(|b| b["set"].is_null()));
    assert!(estimate["total"]["lut"].as_u64().unwrap() <= 20_000, "{}", estimate["total"]);
}

#[test]
fn the_doctor_names_each_fault_and_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap();
    // A machine without cards is undecided.
    let output = run(&["device", "doctor", "--json", "--root", root]);
    assert_eq!((output.status.code(), text(&output.stdout).trim()), (Some(3), "[]"));
    let card = dir.path().join("sys/bus/pci/devices/0000:65:00.0");
    std::fs::create_dir_all(&card).unwrap();
    std::fs::write(card.join("vendor"), "0x1d0f\n").unwrap();
    std::fs::write(card.join("device"), "0xf010\n").unwrap();
    let output = run(&["device", "doctor", "--json", "--root", root]);
    assert_eq!(output.status.code(), Some(1));
    let d: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&d[0]["device"], &d[0]["ready"]), (&"pci:0000:65:00.0".into(), &false.into()));
    let checks = d[0]["checks"].as_array().unwrap();
    let of = |code: &str| {
        checks
            .iter()
            .find(|c| c["code"] == code)
            .unwrap_or_else(|| panic!("no {code} in {checks:?}"))
    };
    assert!(of("SHEF-PCI-004")["command"].as_str().unwrap().contains("driver_override"));
    assert_eq!(of("SHEF-PCI-003")["verdict"], "fault");
    assert_eq!(of("SHEF-PCI-009")["verdict"], "fault");
    assert_eq!(of("SHEF-PCI-018")["verdict"], "warning");
    assert!(checks.iter().any(|c| c["verdict"] == "untested"));
    // The same in text form, and in the list.
    let output = run(&["device", "doctor", "pci:0000:65:00.0", "--root", root]);
    assert!(text(&output.stdout).contains("run: modprobe vfio-pci; echo vfio-pci > "));
    let output = run(&["device", "list", "--root", root]);
    let listed = text(&output.stdout);
    assert!(
        listed.contains("pci:0000:65:00.0") && listed.contains("fault SHEF-PCI-004"),
        "{listed}"
    );
    fails(&["device", "doctor", "sim:model", "--root", root], 2, "SHEF-CLI-001");
}

#[test]
fn a_device_is_reset_and_watched() {
    let output = run(&["device", "reset", "sim:model", "--json"]);
    let d: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success() && d["image"].is_null() && d["shield"].is_null(), "{d}");
    let output =
        run(&["device", "watch", "sim:model", "--count", "3", "--interval", "0", "--json"]);
    let d: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(d.as_array().unwrap().len(), 1, "nothing changed: {d}");
    fails(&["device", "watch", "sim:model", "--json"], 2, "SHEF-CLI-001");
    fails(&["device", "watch", "sim:model", "--interval=-1"], 2, "SHEF-CLI-001");
    fails(&["device", "reset", "pci:ffff:ff:1f.7"], 4, "SHEF-PCI-001");
}

/// An auditor's bundle, a result as token, evidence in a wrapper: all from the files of one demo
/// run.
#[test]
fn evidence_goes_into_bundles_and_results() {
    let dir = tempfile::tempdir().unwrap();
    let keep = dir.path().join("keep");
    let kept = |name: &str| keep.join(name).display().to_string();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let args = model(&["--keep", keep.to_str().unwrap()]);
    let output = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let (nonce, anchors, policy, reference) = (
        format!("@{}", kept("evidence/shield.nonce")),
        kept("anchors.toml"),
        kept("policy.toml"),
        kept("reference.toml"),
    );
    let evidence = |file: &str| {
        ["--layer", "shield", "--audience", "data-owner", "--evidence", file, "--nonce", &nonce]
            .map(str::to_owned)
            .to_vec()
    };
    let trust = ["--policy", &policy, "--reference", &reference, "--anchors", &anchors]
        .map(str::to_owned)
        .to_vec();
    let shef = |command: &[&str], more: &[Vec<String>]| {
        let more = more.concat();
        run(&command.iter().copied().chain(more.iter().map(String::as_str)).collect::<Vec<_>>())
    };
    let shield = kept("evidence/shield.cbor");

    // A token in each dialect.
    for (dialect, profile) in
        [("04", "tag:ietf.org,2026:rats/ear#04"), ("2023", "tag:github.com,2023:veraison/ear")]
    {
        let (ear, keys) = (path("result.jwt"), path("verifier"));
        let command =
            ["verify", "--json", "--ear", &ear, "--ear-keys", &keys, "--ear-dialect", dialect];
        let output = shef(&command, &[evidence(&shield), trust.clone()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let key = fs::read(dir.path().join("verifier/signing.pub")).unwrap();
        let key = shef_proto::hpke_suite::PublicKey::from_bytes(&key).unwrap();
        let kid = hex::encode(&shef_verify::corim::vendor_id(&key)[..8]);
        let token = fs::read_to_string(&ear).unwrap();
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
                as i64;
        let expect = shef_verify::ear::Expect {
            issuer: None,
            audience: "relying-party",
            nonce: None,
            layer: shef_proto::evidence::Layer::Shield,
            policy: None,
            now,
            leeway: 5,
        };
        let keys = [shef_verify::jwt::JwtKey { kid, key }];
        let ear =
            shef_verify::ear::verify(token.trim(), &keys, &expect, shef_verify::crypto::portable)
                .unwrap();
        assert_eq!(
            ear.status,
            shef_verify::Status::Warning,
            "simulated, and a policy that names it"
        );
        assert_eq!(ear.dialect.profile(), profile);
    }

    // In a wrapper.
    let bytes = fs::read(&shield).unwrap();
    let wrapper = shef_verify::cmw::Cmw::Record(shef_verify::cmw::Record::evidence(&bytes));
    fs::write(path("evidence.cmw"), wrapper.to_json()).unwrap();
    assert_eq!(
        shef(&["verify", "--json"], &[evidence(&path("evidence.cmw")), trust.clone()])
            .status
            .code(),
        Some(0)
    );

    // A bundle: as of its date, as of today, changed, of another maker, and with later revocations.
    let bundle = path("session.bundle");
    let create = ["bundle", "create", "--json", "--keys", &path("auditor"), "--out", &bundle];
    let output = shef(&create, &[evidence(&shield), trust.clone()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let created: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let maker = created["maker"].as_str().unwrap().to_owned();
    let audit = run(&["bundle", "verify", "--json", &bundle, "--maker", &maker]);
    assert_eq!(audit.status.code(), Some(0), "{}", text(&audit.stderr));
    let audit: serde_json::Value = serde_json::from_slice(&audit.stdout).unwrap();
    assert_eq!(
        (&audit["as_of_date"]["verdict"], &audit["as_of_today"]["verdict"]),
        (&"accepted".into(), &"accepted".into())
    );
    let image = audit["as_of_date"]["claims"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c[0] == "image_digest")
        .unwrap()[1]
        .as_str()
        .unwrap();
    fs::write(
        path("revoked.toml"),
        format!("issued = 1\nnext_update = 2\nimages = [\"{image}\"]\n"),
    )
    .unwrap();
    let audit = run(&[
        "bundle",
        "verify",
        "--json",
        &bundle,
        "--maker",
        &maker,
        "--revocations",
        &path("revoked.toml"),
    ]);
    assert_eq!(audit.status.code(), Some(1));
    let audit: serde_json::Value = serde_json::from_slice(&audit.stdout).unwrap();
    assert_eq!(
        (&audit["as_of_date"]["verdict"], &audit["as_of_today"]["verdict"]),
        (&"accepted".into(), &"denied".into())
    );
    let good = fs::read(&bundle).unwrap();
    fs::write(path("bad.bundle"), flip(&good, good.len() / 2)).unwrap();
    fails(
        &["bundle", "verify", "--json", &path("bad.bundle"), "--maker", &maker],
        1,
        "SHEF-ATT-101",
    );
    let other = fs::read(dir.path().join("verifier/signing.pub")).unwrap();
    fails(
        &["bundle", "verify", "--json", &bundle, "--maker", &hex::encode(other)],
        1,
        "SHEF-ATT-101",
    );
    fails(&["bundle", "verify", "--json", &shield, "--maker", &maker], 5, "SHEF-ATT-100");
    policies_of_others(dir.path(), &bundle, &maker);

    // Its parts, and its trust data in a folder that never rolls back.
    assert_eq!(
        run(&["bundle", "export", &bundle, "--maker", &maker, "--out", &path("parts")])
            .status
            .code(),
        Some(0)
    );
    assert_eq!(fs::read(dir.path().join("parts/shield.cbor")).unwrap(), bytes);
    assert_eq!(fs::read(dir.path().join("parts/policy.toml")).unwrap(), fs::read(&policy).unwrap());
    fails(
        &["bundle", "export", &bundle, "--maker", &maker, "--out", &path("parts")],
        5,
        "SHEF-CLI-015",
    );
    assert_eq!(
        run(&["bundle", "import", &bundle, "--maker", &maker, "--into", &path("trust")])
            .status
            .code(),
        Some(0)
    );
    assert!(!dir.path().join("trust/shield.cbor").exists());
    let old = [
        "bundle",
        "create",
        "--created",
        "5",
        "--keys",
        &path("auditor"),
        "--out",
        &path("old.bundle"),
    ];
    assert_eq!(shef(&old, &[trust]).status.code(), Some(0));
    fails(
        &["bundle", "import", &path("old.bundle"), "--maker", &maker, "--into", &path("trust")],
        1,
        "SHEF-CLI-023",
    );
    fails(
        &["bundle", "verify", "--json", &path("old.bundle"), "--maker", &maker],
        3,
        "SHEF-ATT-102",
    );
}

/// A policy in a bundle is its maker's program: it is confined by the limits, and the command
/// reports that.
fn policies_of_others(dir: &Path, bundle: &str, maker: &str) {
    use shef_verify::bundle::Bundle;
    let key = shef::KeyFolder::open(dir.join("auditor")).unwrap().existing_signing_key().unwrap();
    let good =
        Bundle::open(&fs::read(bundle).unwrap(), &key.public_key(), shef_verify::crypto::portable)
            .unwrap();
    let file = dir.join("rego.bundle").display().to_string();
    let with = |rego: &str| {
        fs::write(&file, Bundle { rego: Some(rego.into()), ..good.clone() }.sign(&key)).unwrap();
    };
    let verify = ["bundle", "verify", "--json", &file, "--maker", maker, "--as-of", "date"];
    let failure = || {
        let output = run(&verify);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let audit: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = audit["as_of_date"]["checks"].as_array().unwrap().clone();
        checks.iter().find(|check| check["passed"] == false).unwrap()["actual"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    with("package shef\nallow if input.layer == \"shield\"\n");
    assert_eq!(run(&verify).status.code(), Some(0));
    with("package shef\nallow if input.layer == \"kernel\"\n");
    assert_eq!(failure(), "false or undefined");
    for rego in [
        "if count(numbers.range(1, 400000000000)) > 3",
        "if sprintf(\"%9000000000d\", [1]) != 1",
        ":= (",
    ] {
        with(&format!("package shef\nallow {rego}"));
        fails(&verify, 5, "SHEF-ATT-053");
    }
    // Lists that double.
    let lists: String =
        (1..40).map(|n| format!("x{n} := array.concat(x{0}, x{0})\n", n - 1)).collect();
    with(&format!("package shef\nx0 := [1]\n{lists}allow if count(x39) > 3\n"));
    let passed = failure();
    assert!(passed.ends_with("(SHEF-ATT-055)"), "{passed}");
    // The maker sees the error before signing.
    let (policy, rego) = (
        dir.join("parts.toml").display().to_string(),
        dir.join("policy.rego").display().to_string(),
    );
    fs::write(&policy, &good.policy).unwrap();
    fs::write(dir.join("anchors.toml"), &good.anchors).unwrap();
    fs::write(&rego, "package shef\nallow := (\n").unwrap();
    let (anchors, out) = (
        dir.join("anchors.toml").display().to_string(),
        dir.join("x.bundle").display().to_string(),
    );
    let keys = dir.join("auditor").display().to_string();
    let create = [
        "bundle", "create", "--json", "--keys", &keys, "--out", &out, "--policy", &policy,
        "--rego", &rego,
    ];
    let create = [&create[..], &["--reference", &policy, "--anchors", &anchors]].concat();
    fails(&create, 5, "SHEF-ATT-053");
}

/// Child processes of `parent` that run this project's programs.
fn children(parent: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Waits until `done`, for at most ten seconds.
fn soon(what: &str, done: impl Fn() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !done() {
        assert!(std::time::Instant::now() < until, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn an_interrupt_leaves_no_folder_and_no_process() {
    // Of two signals, the second one arrives before the first one has done its work. After SIGKILL,
    // only the folder stays.
    for signals in [&["INT"][..], &["TERM"], &["HUP"], &["TERM", "INT"], &["KILL"]] {
        let signal = signals.join(" and ");
        let dir = tempfile::tempdir().unwrap();
        let mut demo = shef(&["demo", "--remote", "--device", "sim:model"]);
        let mut demo = demo
            .env("TMPDIR", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        soon("the demo starts its agent", || children(demo.id()).len() >= 2);
        let others = children(demo.id());
        assert!(!is_empty(dir.path()));
        let send: Vec<String> =
            signals.iter().map(|signal| format!("kill -{signal} {}", demo.id())).collect();
        assert!(Command::new("sh").args(["-c", &send.join("; ")]).status().unwrap().success());
        let status = demo.wait().unwrap();
        assert_eq!(status.code(), None, "SIG{signal}: {status}");
        assert!(
            signals == ["KILL"] || is_empty(dir.path()),
            "SIG{signal} left {:?}",
            fs::read_dir(dir.path()).unwrap().collect::<Vec<_>>()
        );
        // Only the system reaps them.
        let gone = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        };
        soon("the agent and the card end", || others.iter().all(gone));
        let mut said = String::new();
        std::io::Read::read_to_string(&mut demo.stderr.take().unwrap(), &mut said).unwrap();
        assert!(!said.contains("error"), "SIG{signal}: {said}");
    }
}

#[test]
fn a_demo_that_nobody_reads_leaves_no_folder_and_no_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut demo = shef(&["demo", "--remote", "--device", "sim:model"]);
    let mut demo = demo
        .env("TMPDIR", dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    soon("the demo starts its agent", || children(demo.id()).len() >= 2);
    let others = children(demo.id());
    drop(demo.stdout.take());
    let output = demo.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("error"), "{}", text(&output.stderr));
    assert!(is_empty(dir.path()));
    assert!(others.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()));
}

/// A simulated card runs in a separate process, which ends with the command in every case.
#[test]
fn a_simulated_card_ends_with_its_command() {
    use std::io::{BufRead, BufReader};
    for signal in ["TERM", "KILL"] {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = shef(&["device", "watch", "sim:model", "--interval", "0.01"])
            .env("TMPDIR", dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut line, mut out) = (String::new(), BufReader::new(watch.stdout.take().unwrap()));
        out.read_line(&mut line).unwrap();
        assert!(line.contains("kernel idle"), "{line}");
        let [card] = children(watch.id())[..] else { panic!("{:?}", children(watch.id())) };
        let mut kill = Command::new("kill");
        kill.args([format!("-{signal}"), watch.id().to_string()]);
        assert!(kill.status().unwrap().success());
        watch.wait().unwrap();
        soon("the card ends", || !Path::new(&format!("/proc/{card}")).exists());
        assert!(is_empty(dir.path()), "{signal}");
    }
    // The same where the command ends on its own.
    let dir = tempfile::tempdir().unwrap();
    let done = shef(&["device", "info", "sim:model"]).env("TMPDIR", dir.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(is_empty(dir.path()));
}

/// Nothing changes, so nothing is printed, and only the end of the reader shows that none follows.
#[test]
fn a_watch_that_nobody_reads_ends() {
    use std::io::{BufRead, BufReader};
    let mut watch = shef(&["device", "watch", "sim:model", "--interval", "60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("kernel idle"), "{line}");
    let begun = std::time::Instant::now();
    let status = loop {
        match watch.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > std::time::Duration::from_secs(20) => {
                watch.kill().unwrap();
                watch.wait().unwrap();
                panic!("it holds the card");
            }
            None => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    assert_eq!(status.code(), Some(0));
}

/// A claim, an accelerator's name, a file's name: none of them becomes a line of ours.
#[test]
fn text_of_others_is_one_line_of_a_document() {
    use shef_proto::text::misleads;
    const CLAIM: &str = "me\n\nok   SHEF-ATT-010 signature        valid\naffirmed\u{202e}";
    const NAME: &str = "x\nimage digest    00 (ok)\u{1b}[8m";
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let honest = |output: &Output| {
        for stream in [&output.stdout, &output.stderr] {
            let said = text(stream);
            assert!(said.chars().all(|c| c == '\n' || !misleads(c)), "{said:?}");
            for line in ["affirmed", "image digest    00", "help: run"] {
                assert!(!said.lines().any(|said| said.starts_with(line)), "{said}");
            }
        }
        text(&output.stdout)
    };
    let (policy, anchors, reference) =
        (path("t/policy.toml"), path("t/anchors.toml"), path("t/reference.toml"));
    let trust = run(&["sim", "trust", "--manufacturer", &path("m"), "--out", &path("t")]);
    assert_eq!(trust.status.code(), Some(0), "{}", text(&trust.stderr));
    let attested = run(&["attest", "sim:model", "--audience", CLAIM, "--out", &path("ev")]);
    assert_eq!(attested.status.code(), Some(0), "{}", text(&attested.stderr));
    honest(&attested);
    let (evidence, nonce, audience) =
        (path("ev"), format!("@{}", path("ev.nonce")), format!("@{}", path("ev.audience")));
    let verify = [
        "verify",
        "--evidence",
        &evidence,
        "--layer",
        "kernel",
        "--nonce",
        &nonce,
        "--audience",
        &audience,
        "--policy",
        &policy,
        "--anchors",
        &anchors,
        "--reference",
        &reference,
    ];
    // The card is of another maker.
    let verified = run(&verify);
    assert_eq!(verified.status.code(), Some(1), "{}", text(&verified.stderr));
    let said = honest(&verified);
    assert!(said.contains(r"me\n\nok   SHEF-ATT-010") && said.ends_with("rejected\n"), "{said}");
    let said = honest(&shef(&verify).arg("--json").output().unwrap());
    let document: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(document.to_string().contains(&serde_json::to_string(CLAIM).unwrap()), "{said}");

    fs::write(path("payload"), [0]).unwrap();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vecadd/shield.toml");
    let (payload, design, vendor, image) =
        (path("payload"), "00".repeat(32), path("vendor"), path("image"));
    let build = ["image", "build", "--svn", "1", "--vendor", &vendor, "--out", &image];
    let of = ["--config", config, "--payload", &payload, "--design", &design, "--target", "t"];
    let built = shef(&build).args(of).args(["--accelerator", NAME]).output().unwrap();
    honest(&built);
    honest(&run(&["image", "inspect", &image]));
    let missing = run(&["image", "inspect", &path(NAME)]);
    honest(&missing);
    assert!(text(&missing.stderr).contains(r"x\nimage digest"), "{}", text(&missing.stderr));
    let usage = run(&["image", "inspect", &image, "x\nhelp: run this"]);
    honest(&usage);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn a_missing_simulator_says_where_it_is_looked_for() {
    let missing = shef(&["device", "info", "sim:model"]).env("SHEF_SIM", "/no/such").output();
    let missing = missing.unwrap();
    assert_eq!(missing.status.code(), Some(5), "{}", text(&missing.stderr));
    assert!(text(&missing.stderr).contains("error [SHEF-DEV-017]"), "{}", text(&missing.stderr));
    let demo = shef(&["demo"]).env("SHEF_SIM", "/no/such").output().unwrap();
    assert_eq!(demo.status.code(), Some(5), "{}", text(&demo.stderr));
    assert!(text(&demo.stderr).contains("SHEF_SIM"), "{}", text(&demo.stderr));
}

/// A program `shef-sim` that does this.
fn simulator(dir: &Path, does: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("shef-sim");
    fs::write(&path, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_simulator_is_not_looked_for_in_other_folders() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().join("a/b");
    fs::create_dir_all(&here).unwrap();
    simulator(&dir.path().join("a"), &format!("touch {}/planted", dir.path().display()));
    let program = here.join("shef");
    if fs::hard_link(env!("CARGO_BIN_EXE_shef"), &program).is_err() {
        fs::copy(env!("CARGO_BIN_EXE_shef"), &program).unwrap();
    }
    for args in [&["device", "info", "sim:model"][..], &["demo"], &["explain", "SHEF-CARD-003"]] {
        let run = Command::new(&program).args(args).env_remove("SHEF_SIM").env("PATH", "").output();
        assert!(!dir.path().join("planted").exists(), "{args:?}: {}", text(&run.unwrap().stderr));
    }
}

#[test]
fn a_simulator_gets_no_secrets_and_ends_with_an_interrupt() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().display();
    // It runs for longer than this test takes.
    let slow = format!("env > {at}/env; touch {at}/started; exec sleep 600");
    let program = simulator(dir.path(), &slow);
    let mut list = shef(&["device", "list"])
        .env("SHEF_SIM", program)
        .env("HTTPS_PROXY", "http://user:password@proxy:3128")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    soon("the simulator runs", || dir.path().join("started").exists());
    let others = children(list.id());
    assert_eq!(others.len(), 1);
    let mut kill = Command::new("kill");
    assert!(kill.args(["-TERM", &list.id().to_string()]).status().unwrap().success());
    assert_eq!(list.wait().unwrap().code(), None);
    soon("the simulator ends", || !Path::new(&format!("/proc/{}", others[0])).exists());
    let env = fs::read_to_string(dir.path().join("env")).unwrap();
    assert!(env.contains("PATH=") && !env.contains("password"), "{env}");
}

#[test]
fn an_interrupted_card_leaves_no_socket_and_no_key() {
    use std::io::{BufRead, BufReader};
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("card");
    let mut serve =
        shef(&["sim", "serve", "--device", "model", "--socket", socket.to_str().unwrap()]);
    let mut serve = serve.env("TMPDIR", dir.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut there: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    there.sort();
    assert_eq!(there, ["card", "card.control"], "a maker's keys are not kept");
    assert!(
        Command::new("kill").args(["-INT", &serve.id().to_string()]).status().unwrap().success()
    );
    assert_eq!(serve.wait().unwrap().code(), Some(0));
    assert!(is_empty(dir.path()));
}

#[test]
fn the_secret_of_an_image_is_private_and_certified_for_provider_only() {
    use shef_proto::cert::Certificate;
    use shef_proto::evidence::RootOfTrust;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let draw =
        |out: &str| run(&["image", "secret", "--json", "--vendor", &path("vendor"), "--out", out]);
    let mut device_ids = Vec::new();
    for name in ["one", "two"] {
        let output = draw(&path(name));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let out = dir.path().join(name);
        let package = fs::read_to_string(out.join("shef_image_secret_pkg.sv")).unwrap();
        let digits: String = package
            .split_once("256'h")
            .unwrap()
            .1
            .chars()
            .take_while(|c| *c != ';')
            .filter(|c| *c != '_')
            .collect();
        let mut uds: [u8; 32] = hex::decode(&digits).unwrap().try_into().unwrap();
        uds.reverse();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&out), mode(&out.join("shef_image_secret_pkg.sv"))), (0o700, 0o600));
        }
        // Only the package contains the secret.
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let files = ["device-id.der", "anchor.toml"].map(|name| fs::read(out.join(name)).unwrap());
        for bytes in [&output.stdout, &output.stderr, &files[0], &files[1]] {
            for secret in [hex::encode(uds), digits.clone()] {
                assert!(
                    !text(bytes).contains(&secret)
                        && !bytes.windows(32).any(|w| w == hex::decode(&secret).unwrap())
                );
            }
        }
        // The certificate is for the device with this secret, under an anchor for this kind of
        // device only.
        let device_id = shef_kernel::device_id_key(&uds, RootOfTrust::Provider, false).public_key();
        let certificate = Certificate::parse(&files[0]).unwrap();
        assert_eq!(
            (certificate.key(), &told["device_id"]),
            (&device_id, &hex::encode(device_id.as_bytes()).into())
        );
        let [anchor] = &shef_verify::TrustAnchor::list_from_toml(&text(&files[1])).unwrap()[..]
        else {
            panic!()
        };
        assert_eq!((anchor.kind(), anchor.debug()), (RootOfTrust::Provider, false));
        assert!(anchor.certificate().is_issuer_of(&certificate));
        device_ids.push(device_id);
        // An existing file is not replaced.
        assert_eq!(draw(&path(name)).status.code(), Some(5));
        assert_eq!(fs::read_to_string(out.join("shef_image_secret_pkg.sv")).unwrap(), package);
        // Neither is the certificate, after the required deletion of the package.
        fs::remove_file(out.join("shef_image_secret_pkg.sv")).unwrap();
        assert_eq!(draw(&path(name)).status.code(), Some(5));
        assert_eq!(fs::read(out.join("device-id.der")).unwrap(), files[0]);
        assert!(!out.join("shef_image_secret_pkg.sv").exists(), "refused before anything is drawn");
    }
    assert_ne!(device_ids[0], device_ids[1]);
}

#[test]
fn a_secret_that_cannot_be_certified_does_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    for blocked in ["device-id.der", "anchor.toml"] {
        let out = path(&format!("before {blocked}"));
        fs::create_dir_all(Path::new(&out).join(blocked)).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&out, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let draw =
            || run(&["image", "secret", "--json", "--vendor", &path("vendor"), "--out", &out]);
        assert_eq!(draw().status.code(), Some(5));
        assert!(!Path::new(&out).join("shef_image_secret_pkg.sv").exists(), "{blocked}");
        fs::remove_dir(Path::new(&out).join(blocked)).unwrap();
        let again = draw();
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    }
}

#[test]
fn the_secret_of_an_image_is_not_put_into_a_git_work_tree() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::create_dir_all(dir.path().join("tree/.git")).unwrap();
    fs::create_dir_all(dir.path().join("linked tree/rtl")).unwrap();
    // As created by `git worktree`.
    fs::write(dir.path().join("linked tree/.git"), "gitdir: elsewhere").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path().join("tree"), dir.path().join("link")).unwrap();
    for out in [
        "tree",
        "tree/new/folder",
        "linked tree/rtl",
        "tree/.git/x",
        #[cfg(unix)]
        "link/new",
        "other/../tree/x",
    ] {
        fails(
            &["image", "secret", "--json", "--vendor", &path("vendor"), "--out", &path(out)],
            5,
            "SHEF-CLI-025",
        );
    }
    assert!(!dir.path().join("vendor").exists(), "refused before anything is drawn");
    for folder in ["tree", "tree/new/folder", "tree/.git/x", "tree/x", "linked tree/rtl"] {
        assert!(
            fs::read_dir(dir.path().join(folder))
                .unwrap()
                .all(|entry| entry.unwrap().path().is_dir()),
            "{folder}"
        );
    }
}

/// Ignoring an entry would leave a withdrawn CoRIM in force.
#[test]
fn an_entry_that_is_no_digest_deactivates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    assert_eq!(
        run(&["sim", "trust", "--manufacturer", &path("maker"), "--out", &path("trust")])
            .status
            .code(),
        Some(0)
    );
    fs::write(path("evidence"), [0]).unwrap();
    for (list, says) in [
        ("00 11\n", "deactivated:1: \"00\""),
        (&format!("{}\n\nnonsense\n", "ab".repeat(32)), "deactivated:3: \"nonsense\""),
    ] {
        fs::write(path("deactivated"), list).unwrap();
        let (policy, anchors) = (path("trust/policy.toml"), path("trust/anchors.toml"));
        let (evidence, deactivated, reference) =
            (path("evidence"), path("deactivated"), path("trust/reference.toml"));
        let args = [
            "verify",
            "--evidence",
            &evidence,
            "--layer",
            "kernel",
            "--nonce",
            "00",
            "--audience",
            "me",
            "--policy",
            &policy,
            "--anchors",
            &anchors,
            "--reference",
            &reference,
            "--deactivated",
            &deactivated,
        ];
        fails(&args, 5, "SHEF-CLI-018");
        let stderr = text(&run(&args).stderr);
        assert!(stderr.contains(says) && stderr.contains("SHA-256 digest"), "{stderr}");
    }
}

/// A digest counts by its value, and one that names nothing is noted.
#[test]
fn a_digest_in_any_spelling_deactivates_its_corim() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    for made in [
        &["sim", "trust", "--manufacturer", &path("m"), "--out", &path("t")][..],
        &[
            "image",
            "build",
            "--simulated-card",
            "--svn",
            "1",
            "--vendor",
            &path("v"),
            "--out",
            &path("i"),
        ],
    ] {
        let made = run(made);
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    }
    fs::write(path("evidence"), [0]).unwrap();
    let corim = fs::read(path("i.corim")).unwrap();
    let digest = hex::encode(shef_verify::corim::content(&corim).unwrap());
    let pairs: Vec<&str> =
        digest.as_bytes().chunks(2).map(|p| std::str::from_utf8(p).unwrap()).collect();
    let other = "00".repeat(32);
    for (entry, names_it) in [
        (digest.clone(), true),
        (digest.to_uppercase(), true),
        (format!("sha256:{digest}"), true),
        (pairs.join(":"), true),
        (format!("{other}\n{}", pairs.join(":").to_uppercase()), true),
        (other.clone(), false),
    ] {
        fs::write(path("deactivated"), entry + "\n").unwrap();
        let (evidence, policy, anchors, reference) = (
            path("evidence"),
            path("t/policy.toml"),
            path("t/anchors.toml"),
            path("t/reference.toml"),
        );
        let (corim, signers, deactivated) =
            (path("i.corim"), path("i.signers.toml"), path("deactivated"));
        let appraised =
            ["--evidence", &evidence, "--layer", "kernel", "--nonce", "00", "--audience", "me"];
        let trust = ["--policy", &policy, "--anchors", &anchors, "--reference", &reference];
        let corims = ["--corim", &corim, "--signers", &signers, "--deactivated", &deactivated];
        let verified = shef(&["verify"]).args(appraised).args(trust).args(corims).output().unwrap();
        let said = text(&verified.stderr);
        assert_eq!(said.contains(&format!("SHA-256 {digest}")), names_it, "{said}");
        assert_ne!(verified.status.code(), Some(0));
        let noted = said.contains("name no CoRIM") && said.contains(&other);
        assert_eq!(noted, fs::read_to_string(&deactivated).unwrap().contains(&other), "{said}");
    }
}

/// The same for a revocation list, each kind for itself: a kernel's digest revokes no image.
#[test]
fn a_revocation_of_nothing_known_is_noted() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    bundles(dir.path(), &["1000"]);
    let reference = fs::read_to_string(path("t/reference.toml")).unwrap();
    let reference = shef_verify::ReferenceValues::from_toml(&reference).unwrap();
    let kernel = hex::encode(reference.kernels[0].digest);
    fs::write(path("evidence"), [0]).unwrap();
    for (list, noted) in [
        (format!("kernels = [\"{kernel}\"]"), None),
        (format!("kernels = [\"{kernel}\"]\nimages = [\"{kernel}\"]"), Some("1 of 2 digests")),
        ("devices = []\nserials = [\"01\"]".to_owned(), None),
    ] {
        let list = format!("issued = 0\nnext_update = 4000000000\n{list}\n");
        fs::write(path("revoked.toml"), list).unwrap();
        let [evidence, policy, anchors, reference, revoked] =
            ["evidence", "t/policy.toml", "t/anchors.toml", "t/reference.toml", "revoked.toml"]
                .map(path);
        let of =
            ["--evidence", &evidence, "--layer", "kernel", "--nonce", "00", "--audience", "me"];
        let trust = ["--policy", &policy, "--anchors", &anchors, "--reference", &reference];
        let verify = shef(&["verify", "--revocations", &revoked]).args(of).args(trust).output();
        let said = text(&verify.unwrap().stderr);
        assert_eq!(said.contains("name no kernel, shell, image"), noted.is_some(), "{said}");
        assert!(noted.is_none_or(|noted| said.contains(noted) && said.contains(&kernel)), "{said}");
    }
}

/// The error names the proxy, not the service.
#[test]
fn a_proxy_that_is_down_is_named_without_its_password() {
    use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
    let dir = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_secs()).unwrap();
    let (ca, root) = Ca::new("ca", KeyPair::generate().unwrap(), now).unwrap();
    let key = KeyPair::generate().unwrap();
    let holder = Holder::Client { name: "op", uri: None };
    let cert = ca.issue(holder, &key, Validity { from: now, days: 30 }).unwrap();
    for (name, content) in
        [("ca.pem", root.pem()), ("op.pem", cert.pem()), ("op.key", key.serialize_pem())]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::write(dir.path().join(name), content).unwrap();
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    // No program listens on this port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let status = [
        "verifier",
        "status",
        "--verifier",
        "https://verifier.example:8443",
        "--verifier-ca",
        "ca.pem",
        "--as",
        "op",
    ];
    let down = shef(&status)
        .current_dir(dir.path())
        .env("HTTPS_PROXY", format!("http://user:secret@127.0.0.1:{port}"))
        .output()
        .unwrap();
    let said = text(&down.stderr);
    assert_eq!(down.status.code(), Some(3), "{said}");
    assert!(
        said.contains("error [SHEF-SDK-052]")
            && said.contains(&format!("http://127.0.0.1:{port} (HTTPS_PROXY)"))
            && said.contains("no way to https://verifier.example:8443 through it")
            && !said.contains("secret"),
        "{said}"
    );
}

/// Runs with a limit of 20 seconds: exit status and stderr.
fn in_time(args: &[&str], dir: &Path) -> (Option<i32>, String) {
    let mut child =
        shef(args).current_dir(dir).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > std::time::Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{args:?} waits");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), text(&output.stderr))
}

/// All files below a folder with their content, and its folders.
fn tree(dir: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Option<Vec<u8>>> {
    let mut all = std::collections::BTreeMap::new();
    let mut walk = vec![dir.to_owned()];
    while let Some(path) = walk.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                walk.push(path.clone());
                all.insert(path, None);
            } else {
                let bytes = fs::read(&path).ok();
                all.insert(path, bytes);
            }
        }
    }
    all
}

/// Trust data of the simulated cards as bundles with these times: `DIR/TIME.bundle`, and their
/// maker.
fn bundles(dir: &Path, times: &[&str]) -> String {
    let path = |name: &str| dir.join(name).display().to_string();
    assert_eq!(
        run(&["sim", "trust", "--manufacturer", &path("m"), "--out", &path("t")]).status.code(),
        Some(0)
    );
    let mut maker = String::new();
    for time in times {
        let (policy, anchors, reference) =
            (path("t/policy.toml"), path("t/anchors.toml"), path("t/reference.toml"));
        let trust = ["--policy", &policy, "--anchors", &anchors, "--reference", &reference];
        let out = path(&format!("{time}.bundle"));
        let create = [
            "bundle",
            "create",
            "--json",
            "--created",
            time,
            "--keys",
            &path("maker"),
            "--out",
            &out,
        ];
        let output = run(&[&create[..], &trust].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        maker = serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["maker"]
            .as_str()
            .unwrap()
            .to_owned();
    }
    maker
}

#[test]
fn an_import_replaces_only_what_an_import_made() {
    let dir = tempfile::tempdir().unwrap();
    let maker = bundles(dir.path(), &["1000", "2000"]);
    let bundle = dir.path().join("1000.bundle").display().to_string();
    let there = dir.path().join("there");
    let import = |into: &str| {
        in_time(&["bundle", "import", &bundle, "--maker", &maker, "--into", into], &there)
    };
    fs::create_dir_all(there.join("below")).unwrap();
    fs::write(there.join("mine"), "mine").unwrap();
    for (folder, file) in [
        ("keys", "signing.key"),
        ("noted", "created"),
        ("noted", "notes.txt"),
        ("site.old", "mine"),
        ("site.new", "mine"),
    ] {
        fs::create_dir_all(there.join(folder)).unwrap();
        fs::write(there.join(folder).join(file), "5").unwrap();
    }
    fs::create_dir_all(there.join("deep/created")).unwrap();
    fs::write(there.join("file"), "mine").unwrap();
    std::os::unix::fs::symlink("keys", there.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", there.join("dangling")).unwrap();
    let before = tree(dir.path());
    for into in [
        ".",
        "..",
        "/",
        "below/..",
        "keys",
        "keys/.",
        "keys/",
        "./noted",
        "deep",
        "file",
        "link",
        "dangling",
        "below/../keys",
    ] {
        let (status, said) = import(into);
        assert_eq!(status, Some(5), "{into}: {said}");
        assert!(said.contains("SHEF-CLI-027") || said.contains("SHEF-CLI-015"), "{into}: {said}");
        assert_eq!(
            tree(dir.path()).keys().collect::<Vec<_>>(),
            before.keys().collect::<Vec<_>>(),
            "{into}"
        );
    }
    assert!(tree(dir.path()) == before);
    // A new folder, and the same again: its neighbours stay, and no new ones appear.
    let names = || fs::read_dir(&there).unwrap().count();
    let count = names();
    for _ in 0..2 {
        let (status, said) = import("site");
        assert_eq!(status, Some(0), "{said}");
        assert_eq!(
            (fs::read_to_string(there.join("site/created")).unwrap().as_str(), names()),
            ("1000\n", count + 1)
        );
    }
    assert!(before.iter().all(|(path, bytes)| tree(dir.path()).get(path) == Some(bytes)));
    // Through a link, and into a folder whose parents are missing.
    std::os::unix::fs::symlink("site", there.join("current")).unwrap();
    let newer = dir.path().join("2000.bundle").display().to_string();
    let (status, said) =
        in_time(&["bundle", "import", &newer, "--maker", &maker, "--into", "current"], &there);
    assert!(status == Some(0) && there.join("current").is_symlink(), "{said}");
    assert_eq!(fs::read_to_string(there.join("site/created")).unwrap(), "2000\n");
    assert_eq!(import("a/b/c").0, Some(0));
    assert_eq!(import("site").0, Some(1));
    // An export creates a folder and removes nothing.
    let export = |out: &str| {
        in_time(&["bundle", "export", &bundle, "--maker", &maker, "--out", out], &there)
    };
    assert_eq!(export("dangling").0, Some(5));
    assert_eq!(export("parts").0, Some(0));
    let (status, said) = import("parts");
    assert_eq!(status, Some(0), "an export without evidence is what an import writes: {said}");
}

#[test]
fn an_import_that_is_killed_lets_no_older_bundle_in() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let maker = bundles(dir.path(), &["1000", "2000"]);
    let import = |time: &str, into: &str| {
        let bundle = dir.path().join(format!("{time}.bundle")).display().to_string();
        in_time(&["bundle", "import", &bundle, "--maker", &maker, "--into", into], dir.path())
    };
    // The folder exists at every moment at which an import may be killed.
    assert_eq!(import("2000", "site").0, Some(0));
    let (stop, looks, missing, created) = (
        AtomicBool::new(false),
        AtomicU64::new(0),
        AtomicU64::new(0),
        dir.path().join("site/created"),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                looks.fetch_add(1, Ordering::Relaxed);
                missing.fetch_add(u64::from(!created.exists()), Ordering::Relaxed);
            }
        });
        let done: Vec<_> = (0..10).map(|_| import("2000", "site")).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(done.iter().all(|(status, _)| *status == Some(0)), "{done:?}");
    });
    assert_eq!(missing.load(Ordering::Relaxed), 0, "of {} looks", looks.load(Ordering::Relaxed));
    // A leftover counts, also on file systems that cannot exchange folders.
    let left = dir.path().join(".site.0123456789abcdef.part");
    fs::rename(dir.path().join("site"), &left).unwrap();
    let (status, said) = import("1000", "site");
    assert!(
        status == Some(1)
            && said.contains("SHEF-CLI-023")
            && said.contains(".site.0123456789abcdef.part"),
        "{said}"
    );
    let (status, said) = import("2000", "site");
    assert!(status == Some(0) && said.contains("remove it") && left.exists(), "{said}");
}

/// A release counts: an output that cannot be written, or is another file, is detected before any
/// request.
#[test]
fn outputs_are_certain_before_anything_is_asked() {
    use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .cast_signed();
    let (ca, root) = Ca::new("ca", KeyPair::generate().unwrap(), now).unwrap();
    let key = KeyPair::generate().unwrap();
    let cert = ca
        .issue(Holder::Client { name: "op", uri: None }, &key, Validity { from: now, days: 30 })
        .unwrap();
    for (name, text) in [
        ("ca.pem", root.pem()),
        ("op.pem", cert.pem()),
        ("op.key", key.serialize_pem()),
        ("image", "image".into()),
    ] {
        fs::write(path(name), text).unwrap();
        fs::set_permissions(path(name), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
    }
    fs::write(path("earlier"), "receipt").unwrap();
    fs::write(path("signing.key"), "secret").unwrap();
    fs::set_permissions(path("signing.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    fs::create_dir(path("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
    fs::hard_link(path("image"), path("second")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let before = tree(dir.path());
    let to = |args: &[&str]| {
        // The first request goes to the device, at a socket that does not exist.
        let (op, socket) = (path("op"), format!("vfio-user:{}", path("socket")));
        let base = [args, &["--verifier", &url, "--as", &op]].concat();
        in_time(
            &base
                .iter()
                .map(|a| if *a == "CARD" { socket.as_str() } else { *a })
                .collect::<Vec<_>>(),
            dir.path(),
        )
    };
    let release = ["keys", "release", "k", "CARD", "--layer", "kernel", "--out"];
    let attest = ["attest", "CARD", "--out"];
    let load = ["--load", "image", "--image-key", "k"];
    for (args, code) in [
        ([&release[..], &["nodir/box"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["image"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["dangling"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["both", "--receipt", "both"]].concat(), "SHEF-CLI-026"),
        ([&release[..], &["both", "--receipt", "folder/../both"]].concat(), "SHEF-CLI-026"),
        ([&release[..], &["box", "--receipt", "nodir/r"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["box", "--receipt", "folder"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["box", "--receipt", "op.key"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["box", "--receipt", "image"], &load].concat(), "SHEF-CLI-015"),
        ([&release[..], &["box", "--receipt", "second"], &load].concat(), "SHEF-CLI-015"),
        // A receipt needs a new file.
        ([&release[..], &["box", "--receipt", "/dev/full"]].concat(), "SHEF-CLI-015"),
        ([&release[..], &["box", "--receipt", "earlier"]].concat(), "SHEF-CLI-015"),
        ([&attest[..], &["ev", "--result", "ev"]].concat(), "SHEF-CLI-026"),
        // An existing key file.
        ([&attest[..], &["ev", "--result", "signing.key"]].concat(), "SHEF-CLI-015"),
        ([&attest[..], &["ev", "--result", "ev.nonce"]].concat(), "SHEF-CLI-026"),
        ([&attest[..], &["ev", "--result", "nodir/r"]].concat(), "SHEF-CLI-015"),
        ([&attest[..], &["op.key"]].concat(), "SHEF-CLI-026"),
        ([&attest[..], &["image", "--layer", "shield"], &load].concat(), "SHEF-CLI-026"),
    ] {
        let (_, said) = to(&args);
        assert!(said.contains(&format!("error [{code}]")), "{args:?}: {said}");
        assert!(tree(dir.path()) == before, "{args:?}: {said}");
    }
    // With good outputs the device is contacted, and its refusal leaves no files.
    for args in [
        [&release[..], &["box", "--receipt", "r"]].concat(),
        [&attest[..], &["ev", "--result", "r"]].concat(),
    ] {
        assert_eq!(to(&args).0, Some(4), "{args:?}");
        assert!(tree(dir.path()) == before, "{args:?}");
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // The other commands: no output is an input or a key.
    let maker = bundles(dir.path(), &["1000"]);
    let before = tree(dir.path());
    let trust = [
        "--policy",
        "t/policy.toml",
        "--anchors",
        "t/anchors.toml",
        "--reference",
        "t/reference.toml",
    ];
    for args in [
        [&["bundle", "create", "--keys", "maker", "--out", "maker/signing.key"][..], &trust]
            .concat(),
        [&["bundle", "create", "--keys", "maker", "--out", "t/policy.toml"][..], &trust].concat(),
        vec![
            "image",
            "build",
            "--simulated-card",
            "--svn",
            "1",
            "--vendor",
            "maker",
            "--out",
            "maker/signing.key",
        ],
    ] {
        let (status, said) = in_time(&args, dir.path());
        assert!(status == Some(2) && said.contains("SHEF-CLI-026"), "{args:?}: {said}");
        assert!(
            before.iter().all(|(path, bytes)| tree(dir.path()).get(path) == Some(bytes)),
            "{args:?}"
        );
    }
    assert!(!maker.is_empty());
}

#[test]
fn each_image_has_reference_values_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    for out in ["digits.shef", "digits-1.0", "digits-1.1", "own.corim"] {
        let args = [
            "image",
            "build",
            "--simulated-card",
            "--svn",
            "1",
            "--vendor",
            &path("vendor"),
            "--out",
            &path(out),
            "--json",
        ];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(
            run(&["image", "inspect", &path(out)]).status.code(),
            Some(0),
            "{out} is the image"
        );
    }
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected: Vec<_> = ["digits", "digits-1.0", "digits-1.1", "own.corim"]
        .iter()
        .flat_map(|n| [format!("{n}.corim"), format!("{n}.signers.toml")])
        .collect();
    expected.extend(
        ["digits.shef", "digits-1.0", "digits-1.1", "own.corim", "vendor"].map(str::to_owned),
    );
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn configuration_is_read_from_regular_files() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("shield.toml");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let pipe = fifo.display().to_string();
    let at = format!("@{pipe}");
    let trust = ["--policy", &pipe, "--anchors", &pipe, "--reference", &pipe];
    let tls = [
        "device",
        "info",
        "tls://localhost:1/c",
        "--tls-ca",
        &pipe,
        "--tls-cert",
        &pipe,
        "--tls-key",
        &pipe,
    ];
    for (args, code) in [
        (vec!["shield", "check", &pipe], "SHEF-CLI-010"),
        (vec!["shield", "check", "."], "SHEF-CLI-010"),
        (vec!["shield", "check", "/dev/zero"], "SHEF-CLI-010"),
        (vec!["image", "inspect", &pipe], "SHEF-CLI-010"),
        (vec!["bundle", "verify", "x", "--maker", &at], "SHEF-CLI-010"),
        (vec!["audit", "verify", "x", "--jwks", &pipe], "SHEF-CLI-010"),
        ([&["bundle", "create", "--keys", "k", "--out", "o"][..], &trust].concat(), "SHEF-CLI-010"),
        (tls.to_vec(), "SHEF-AGT-003"),
    ] {
        let (status, said) = in_time(&args, dir.path());
        assert!(status == Some(5) && said.contains(&format!("error [{code}]")), "{args:?}: {said}");
    }
}

#[test]
fn an_owner_is_warned_of_a_certificate_that_ends_soon() {
    use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
    let dir = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .cast_signed();
    let (ca, root) = Ca::new("agent", KeyPair::generate().unwrap(), now).unwrap();
    let key = KeyPair::generate().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| {
        fs::write(file(name), text).unwrap();
        fs::set_permissions(file(name), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
    };
    write("ca.pem", &root.pem());
    write("key.pem", &key.serialize_pem());
    let out = file("evidence");
    for (days, warns) in [(5, true), (100, false)] {
        let cert = ca
            .issue(Holder::Client { name: "alice", uri: None }, &key, Validity { from: now, days })
            .unwrap();
        write("cert.pem", &cert.pem());
        let tls = [
            "--tls-ca",
            &file("ca.pem"),
            "--tls-cert",
            &file("cert.pem"),
            "--tls-key",
            &file("key.pem"),
        ];
        for command in [
            &["device", "info", "tls://localhost:1/card0"][..],
            &["device", "reset", "tls://localhost:1/card0"],
            &["attest", "tls://localhost:1/card0", "--out", &out],
        ] {
            let stderr = text(&run(&[command, &tls].concat()).stderr);
            let warning = stderr.lines().find(|line| line.starts_with("warning: the certificate "));
            assert_eq!(
                warning.is_some_and(|line| line.contains("cert.pem expires in 4 days: ask")),
                warns,
                "{command:?}: {stderr}"
            );
            assert!(stderr.contains("error [SHEF-AGT-001]"), "{stderr}");
        }
    }
    // A card of this machine needs no certificate.
    assert!(
        !text(&run(&["device", "info", "vfio-user:/no/such/socket"]).stderr).contains("warning")
    );
}

#[test]
fn a_folder_of_others_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let keep = |out: &str| {
        run(&["demo", "--device", "sim:model", "--attack", "none", "--keep", &path(out)])
    };
    let trust =
        |out: &str| run(&["sim", "trust", "--manufacturer", &path("m"), "--out", &path(out)]);
    // New, and again over the same folder.
    for _ in 0..2 {
        assert_eq!(trust("trust").status.code(), Some(0));
        let kept = keep("kept");
        assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
    }
    // Files placed or created by others, and a link out of the folder.
    for (folder, file) in [
        ("mine", "secrets.json"),
        ("site", "policy.toml"),
        ("kept", "notes.txt"),
        ("kept/memory", "notes.txt"),
        ("trust", "notes.txt"),
    ] {
        fs::create_dir_all(path(folder)).unwrap();
        fs::write(dir.path().join(folder).join(file), "mine").unwrap();
        let (before, folder) = (tree(dir.path()), folder.split('/').next().unwrap());
        for output in [keep(folder), trust(folder)] {
            let said = text(&output.stderr);
            assert!(
                output.status.code() == Some(5) && said.contains("SHEF-CLI-027"),
                "{folder}: {said}"
            );
            assert!(tree(dir.path()) == before, "{folder}");
        }
        fs::remove_file(path(folder) + "/notes.txt").ok();
    }
    fs::create_dir(path("linked")).unwrap();
    std::os::unix::fs::symlink(path("m/manufacturer/ca.key"), path("linked/policy.toml")).unwrap();
    let before = tree(dir.path());
    assert_eq!(trust("linked").status.code(), Some(5));
    assert!(tree(dir.path()) == before);
}

#[test]
fn an_image_does_not_replace_its_sources() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("own");
    fs::create_dir(&project).unwrap();
    for entry in
        fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vecadd")).unwrap()
    {
        let from = entry.unwrap().path();
        if from.extension().is_some_and(|end| end == "sv" || end == "toml") {
            fs::copy(&from, project.join(from.file_name().unwrap())).unwrap();
        }
    }
    fs::create_dir(project.join("rtl")).unwrap();
    fs::write(project.join("rtl/helper.sv"), "module helper;\nendmodule\n").unwrap();
    let before = tree(&project);
    for out in ["own/shef_accel.sv", "own/shield.toml", "own/rtl/helper.sv"] {
        let (status, said) = in_time(
            &[
                "image",
                "build",
                "--project",
                "own",
                "--svn",
                "1",
                "--vendor",
                "vendor",
                "--out",
                out,
            ],
            dir.path(),
        );
        assert!(status == Some(2) && said.contains("SHEF-CLI-026"), "{out}: {said}");
        let attest = format!("sim:rtl?project={}", project.display());
        let (status, said) = in_time(&["attest", &attest, "--out", out], dir.path());
        assert!(status == Some(2) && said.contains("SHEF-CLI-026"), "{out}: {said}");
        assert!(tree(&project) == before, "{out}");
    }
}

#[test]
fn an_output_that_nobody_reads_is_told_or_interrupted() {
    use std::io::Write;
    use std::os::unix::{fs::OpenOptionsExt, process::ExitStatusExt};
    let dir = tempfile::tempdir().unwrap();
    bundles(dir.path(), &["1000"]);
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let trust = [
        "--policy",
        "t/policy.toml",
        "--anchors",
        "t/anchors.toml",
        "--reference",
        "t/reference.toml",
    ];
    let create = [&["bundle", "create", "--keys", "maker", "--out", "fifo"][..], &trust].concat();
    let (status, said) = in_time(&create, dir.path());
    assert!(
        status == Some(5)
            && said.contains("SHEF-CLI-015")
            && said.contains("no process reads this pipe"),
        "{said}"
    );
    // A stalled reader: the pipe is full.
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut end =
        fs::OpenOptions::new().read(true).write(true).custom_flags(nonblock).open(&fifo).unwrap();
    for len in [4096, 1] {
        while end.write(&vec![0; len]).is_ok() {}
    }
    for signal in ["INT", "TERM", "HUP"] {
        let mut child = shef(&create)
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert_eq!(child.try_wait().unwrap(), None, "it waits for the reader");
        assert!(
            Command::new("kill")
                .args(["-s", signal, &child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        let begun = std::time::Instant::now();
        let ended = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status.signal(),
                None if begun.elapsed() > std::time::Duration::from_secs(5) => {
                    child.kill().unwrap();
                    child.wait().unwrap();
                    panic!("{signal} does not end it");
                }
                None => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        };
        assert!(ended.is_some(), "{signal}");
    }
}

#[test]
fn a_reader_makes_no_key_folder() {
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("image").display().to_string();
    let vendor = dir.path().join("vendor");
    let build = [
        "image",
        "build",
        "--simulated-card",
        "--svn",
        "1",
        "--vendor",
        vendor.to_str().unwrap(),
        "--out",
        &image,
    ];
    assert_eq!(run(&build).status.code(), Some(0));
    let key = hex::encode(fs::read(vendor.join("signing.pub")).unwrap());
    let before = tree(dir.path());
    let (status, said) = in_time(
        &["image", "verify", "image", "--vendor-key", &key, "--image-key", "nodir/key"],
        dir.path(),
    );
    assert!(status == Some(5) && said.contains("nodir"), "{said}");
    assert!(tree(dir.path()) == before);
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    for args in [&["--help"][..], &["--version"], &["image", "build", "--help"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = shef(args).stdout(full).output().unwrap();
        let said = text(&output.stderr);
        assert!(
            output.status.code() == Some(5) && said.contains("error [SHEF-CLI-015]"),
            "{args:?}: {said}"
        );
    }
}

/// A folder that was skipped would be missing in the digest of the design.
#[test]
fn a_folder_of_a_project_that_cannot_be_read_is_an_error() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let temp = tempfile::tempdir().unwrap();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let [project, folder, program] =
        ["project", "project/more", "program"].map(|name| temp.path().join(name));
    fs::create_dir_all(&folder).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_shef"), &program).unwrap();
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for name in ["shield.toml", "shef_accel.sv"] {
        fs::copy(root.join("examples/vecadd").join(name), project.join(name)).unwrap();
        mode(&project.join(name), 0o644);
    }
    for path in [temp.path(), &project, &folder, &program] {
        mode(path, 0o755);
    }
    // Root reads every folder.
    let is_root = temp.path().metadata().unwrap().uid() == 0;
    let other = |program: &Path| {
        let mut command = Command::new(program);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        command
    };
    let rtl = root.join("shell-rtl/rtl/shield");
    if !other(Path::new("test")).arg("-x").arg(&rtl).status().unwrap().success() {
        println!("skipped: another user cannot read the repository");
        return;
    }
    let check = || {
        let mut command = other(&program);
        command.args(["project", "check", "--no-ports"]).arg(&project);
        command.env("HOME", temp.path()).env("SHEF_ROOT", root).output().unwrap()
    };
    let read = check();
    assert!(read.status.success(), "{}", text(&read.stderr));
    mode(&folder, 0);
    let unread = check();
    mode(&folder, 0o755);
    let said = text(&unread.stderr);
    assert!(!unread.status.success() && said.contains("project/more"), "{said}");
}
