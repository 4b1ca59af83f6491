//! The bodies of the end-to-end tests, shared by all back ends.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use shef_console::output::{Color, Output};
use shef_lab::data::{Dataset, PIXELS};
use shef_sim::DemoArgs;
use shef_sim::report::Report;

/// Every attack, and the code of the check that must refuse it.
pub const ATTACKS: &[(&str, &str)] = &[
    ("ciphertext-bit-flip", "SHEF-SDK-021"),
    ("tag-bit-flip", "SHEF-SDK-021"),
    ("zero-tag", "SHEF-SDK-021"),
    ("chunks-swapped", "SHEF-SDK-021"),
    ("chunk-moved-to-other-region", "SHEF-SDK-021"),
    ("old-session-replayed", "SHEF-SDK-021"),
    ("old-epoch-replayed", "SHEF-SDK-021"),
    ("register-forged", "SHEF-SDK-004"),
    ("register-replayed", "SHEF-SDK-004"),
    ("load-key-replayed", "SHEF-SDK-005"),
    ("load-key-for-other-shield", "SHEF-SDK-005"),
    ("shield-key-swapped", "SHEF-ATT-014"),
    ("evidence-old-nonce", "SHEF-ATT-004"),
    ("image-byte-changed", "SHEF-PRO-041"),
    ("image-lower-svn", "SHEF-KRN-021"),
    ("debug-device", "SHEF-ATT-021"),
    ("simulator-as-hardware", "SHEF-ATT-013"),
    ("results-withheld", "SHEF-SDK-016"),
    ("memory-bus-error", "SHEF-SDK-022"),
    ("reset-while-loading", "SHEF-KRN-014"),
];

/// Attacks on the boot of the firmware's kernel.
pub const BOOT_ATTACKS: &[(&str, &str)] = &[
    ("kernel-bit-flip", "SHEF-KRN-004"),
    ("kernel-lower-svn", "SHEF-KRN-005"),
    ("kernel-other-signer", "SHEF-KRN-004"),
    ("noise-source-stuck", "SHEF-KRN-011"),
    ("mailbox-flooded", "SHEF-PRO-001"),
];

/// Names of the steps, in order.
pub const STEPS: &[&str] = &[
    "device",
    "image",
    "kernel-attestation",
    "shield-attestation",
    "load-key",
    "seal",
    "compute",
    "results",
    "close",
    "bare",
];

/// Steps of a boot of the firmware's kernel, after the first step.
pub const BOOT_STEPS: &[&str] = &["boot-clear", "boot-measure", "boot-verify", "boot-identify"];

/// Runs the demo quietly.
///
/// # Panics
/// If the honest run does not complete.
pub fn demo(args: &DemoArgs) -> Report {
    let output = Output::new(true, true, 0, Color::Never);
    match shef_sim::demo(&output, args) {
        Ok(report) => report,
        Err(error) => panic!(
            "{} ({}): rerun with `cargo xtask demo {}`",
            error.message,
            error.code,
            flags(args)
        ),
    }
}

/// The command-line flags for the same run.
pub fn flags(args: &DemoArgs) -> String {
    let mut text = format!("--device {} --train {}", args.device, args.train);
    if let Some(seed) = args.seed {
        text.push_str(&format!(" --seed {seed}"));
    }
    if let Some(stalls) = args.stalls {
        text.push_str(&format!(" --stalls {stalls}"));
    }
    text
}

/// Checks the guarantees of every back end: every step, the digits, every attack with its code and
/// no word delivered.
///
/// # Panics
/// If one of them does not hold.
pub fn whole_line(device: &str) -> Report {
    let boot = if device == "sim:rtl" { BOOT_ATTACKS } else { &[] };
    let report = line(
        &DemoArgs { device: device.to_owned(), ..DemoArgs::default() },
        &[ATTACKS, boot].concat(),
    );
    assert_eq!((report.digits.tested, report.digits.correct), (797, 766));
    report
}

/// The same with the attacks in `attacks`, which must be the selection of `args`, and with the data
/// of `args`: every digit must match the reference.
///
/// # Panics
/// If one of them does not hold.
pub fn line(args: &DemoArgs, attacks: &[(&str, &str)]) -> Report {
    let report = demo(args);
    let again = flags(args);
    let device = args.device.as_str();
    assert_eq!(report.device, device);
    assert_eq!(report.root_of_trust, "simulated");
    assert!(!report.seeded);
    let boots = report.kernel.runs_on == "rtl";
    assert_eq!(boots, device == "sim:rtl");
    let steps = [&STEPS[..1], if boots { BOOT_STEPS } else { &[] }, &STEPS[1..]].concat();
    assert_eq!(report.steps.iter().map(|s| s.name).collect::<Vec<_>>(), steps);
    for step in &report.steps {
        assert!(step.ok, "step {} failed: {} (cargo xtask demo {again})", step.name, step.detail);
    }
    assert!(
        report.digits.equal_to_reference,
        "{} digits (cargo xtask demo {again})",
        report.digits.tested
    );
    assert_eq!(
        report.attacks.iter().map(|a| a.name).collect::<Vec<_>>(),
        attacks.iter().map(|a| a.0).collect::<Vec<_>>()
    );
    for (attack, (name, code)) in report.attacks.iter().zip(attacks) {
        assert!(
            attack.detected,
            "{name}: {} (cargo xtask demo {again} --attack {name})",
            attack.detail
        );
        assert_eq!(attack.words_delivered, 0, "{name}");
        assert_eq!(attack.code, *code, "{name}: {}", attack.detail);
    }
    report
}

/// The first digits of the demo as a file in `dir`, for runs that do not test the accelerator:
/// `train` rows for training, and `query` rows to classify.
///
/// # Panics
/// If the digits cannot be read, or the file cannot be written.
pub fn few_digits(dir: &Path, train: usize, query: usize) -> DemoArgs {
    let all = Dataset::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/digits.csv.gz"))
        .expect("the digits");
    let few = all.head(train + query);
    let line = |(row, label): (&[u8; PIXELS], &u8)| {
        row.iter().chain([label]).map(u8::to_string).collect::<Vec<_>>().join(",") + "\n"
    };
    let path = dir.join("few.csv");
    std::fs::write(&path, few.rows.iter().zip(&few.labels).map(line).collect::<String>())
        .expect("a file of digits");
    DemoArgs { data: Some(path), train, ..DemoArgs::default() }
}

/// Runs the honest part under a seed and stores everything that crossed a boundary in `dir`.
pub fn seeded(device: &str, seed: u64, dir: &Path) -> Report {
    demo(&DemoArgs {
        device: device.to_owned(),
        seed: Some(seed),
        keep: Some(dir.to_owned()),
        keep_secrets: true,
        attack: vec!["none".to_owned()],
        ..DemoArgs::default()
    })
}

/// A card in a separate process, which ends when the value is dropped.
pub struct Served {
    child: Child,
    dir: tempfile::TempDir,
    device: Vec<OsString>,
}

impl Served {
    /// Serves a card around `device`, `model` or `rtl`, and waits until it can be reached.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(device: &str) -> Self {
        Self::of(vec![device.into()])
    }

    /// Serves a card around the RTL of a project, whose Security Kernel is native.
    ///
    /// # Panics
    /// As [`Served::start`].
    pub fn project(dir: &Path) -> Self {
        Self::of(vec![
            "rtl".into(),
            "--kernel".into(),
            "native".into(),
            "--project".into(),
            dir.into(),
        ])
    }

    /// Serves a card around the RTL in the shell of AWS F2, whose Security Kernel is native and boots
    /// from a medium of the host: this one, which the card writes to the folder `boot`.
    ///
    /// # Panics
    /// As [`Served::start`].
    pub fn on_f2(boot: &Path) -> Self {
        let flags = ["rtl", "--shell", "f2", "--kernel", "native", "--boot"].map(OsString::from);
        Self::of(flags.into_iter().chain([boot.into()]).collect())
    }

    fn of(device: Vec<OsString>) -> Self {
        let dir = tempfile::tempdir().expect("a folder for the socket");
        let child = Self::spawn(&device, dir.path());
        Self { child, dir, device }
    }

    fn spawn(device: &[OsString], dir: &Path) -> Child {
        use std::io::BufRead;
        let mut command = Command::new(shef_program());
        // The folder contains everything that a killed process leaves behind.
        command
            .args(["--json", "sim", "serve", "--device"])
            .args(device)
            .arg("--socket")
            .arg(dir.join("card"))
            .env("TMPDIR", dir);
        command.arg("--manufacturer").arg(dir.join("maker"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("shef starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        std::io::BufReader::new(stdout).read_line(&mut line).expect("a line when it is ready");
        assert!(line.starts_with('{'), "shef sim serve --device {device:?} said {line:?}");
        child
    }

    /// Serves another card on the same socket, after the last one ended.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.kill();
        self.child = Self::spawn(&self.device, self.dir.path());
    }

    /// The device's URI.
    pub fn uri(&self) -> String {
        format!("vfio-user:{}", self.socket().display())
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("card")
    }

    /// Folder of its manufacturer's keys.
    pub fn manufacturer(&self) -> PathBuf {
        self.dir.path().join("maker")
    }

    /// Ends the process at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program `shef` that was built with these tests; `shef-agent` and `shef-verifierd` are in the
/// same folder.
///
/// # Panics
/// If one of them is missing, or older than its sources: `cargo test --workspace` builds all of
/// them before it runs a test.
pub fn shef_program() -> PathBuf {
    program("shef-agent");
    program("shef-sim");
    program("shef-verifierd");
    program("shef")
}

/// An example of a crate of this workspace.
///
/// # Panics
/// See [`shef_program`].
pub fn example_program(name: &str) -> PathBuf {
    program(&format!("examples/{name}"))
}

/// A program of this workspace, in the parent folder of the running test's folder.
fn program(name: &str) -> PathBuf {
    const BUILD: &str = "cargo test --workspace --no-run";
    let test = std::env::current_exe().expect("the path of this test");
    let path = test.ancestors().nth(2).expect("the folder above this test's").join(name);
    let age = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    let Some(built) = age(&path) else {
        panic!("there is no program {}: build it with `{BUILD}`", path.display())
    };
    // Cargo lists each program's sources in a file beside it.
    let list = std::fs::read_to_string(path.with_extension("d")).unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let sources = list
        .split_once(':')
        .map_or("", |(_, sources)| sources)
        .split_ascii_whitespace()
        .map(Path::new);
    let newer = sources
        .filter(|source| source.starts_with(root))
        .find(|source| age(source).is_some_and(|changed| changed > built));
    assert!(newer.is_none(), "{} is older than {newer:?}: build it with `{BUILD}`", path.display());
    path
}

/// The program of an example, which has a separate workspace and its folder's name; built into the
/// target folder of these tests.
///
/// # Panics
/// If it cannot be built. If only its `Cargo.lock` is old, `cargo build` in its folder updates it.
pub fn example(dir: &Path) -> PathBuf {
    let name = dir.file_name().and_then(|name| name.to_str()).expect("a folder with a name");
    built(name, dir, &["--locked"])
}

/// The tests of an example: cargo's output.
///
/// # Panics
/// If cargo does not start.
pub fn tested_example(dir: &Path) -> std::process::Output {
    cargo(dir).args(["test", "--quiet", "--locked"]).output().expect("cargo runs")
}

/// Cargo in `dir`, with the target folder of these tests.
fn cargo(dir: &Path) -> Command {
    // target/PROFILE/deps/TEST
    let test = std::env::current_exe().expect("the test's own path");
    let target = test.ancestors().nth(3).expect("it is in a target folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(dir).env("CARGO_TARGET_DIR", target);
    cargo
}

/// Builds in `dir`, and finds the resulting program `name`.
fn built(name: &str, dir: &Path, args: &[&str]) -> PathBuf {
    let mut build = cargo(dir);
    build.args(["build", "--quiet", "--message-format", "json-render-diagnostics"]).args(args);
    let built = build.output().expect("cargo runs");
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .rfind(|path| path.ends_with(name));
    program.unwrap_or_else(|| {
        panic!("{name} was not built: {}", String::from_utf8_lossy(&built.stderr))
    })
}

/// The policy of a demo at a service, from what `/v1/policies` answers.
///
/// # Panics
/// Without such a policy.
pub fn policy_of_demo(policies: &shef::service::api::Policies) -> String {
    let mut names = policies.policies.iter().map(|policy| &policy.name);
    names.find(|name| name.starts_with("demo-")).expect("a policy of a demo").clone()
}
