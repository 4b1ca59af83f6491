//! A design from outside the repository's accelerators, from its folder to opened results. Needs
//! Verilator: `cargo xtask setup`.

use std::fs;
use std::path::{Path, PathBuf};

use shef::{SdkError, Uri};
use shef_card::check::{DoneRegister, Report};
use shef_card::{CardError, CardOptions, Control, Design, Engine, RtlOptions, SimKernel};
use shef_lab::probe::Location;
use shef_lab::world::{Cards, Plan, World};
use shef_seal::OpenPolicy;
use shef_sim::remote::Remote;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/vecadd")
}

/// Registers of the example.
const CTRL: u32 = 0x00;
const STATUS: u32 = 0x04;
const DONE: u32 = 2;
const ERROR: u32 = 4;
const BLOCK: usize = 512;

fn words(seed: u32, count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b1).rotate_left(seed % 31)).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn vectors_are_added_behind_the_shield() {
    let uri = add_vectors(Cards::project(&example()).unwrap_or_else(|e| panic!("{e}")));
    assert_eq!(uri, format!("sim:rtl?project={}", example().display()));
}

/// Runs the example on such a card, whose URI it returns.
fn add_vectors(cards: Cards) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut world =
        World::new(dir.path(), Plan { cards, seed: None, name: "vecadd".into(), service: None })
            .unwrap();
    let (mut host, probe) = world.card(&mut |_| {}).unwrap_or_else(|e| panic!("{e}"));
    // The protocol checker finds nothing to report.
    let done = DoneRegister { offset: STATUS as u16, mask: DONE, value: DONE };
    probe.check(Some(done)).unwrap_or_else(|e| panic!("{e}"));
    let uri = host.info().uri;
    let mut session = world.session(&mut host).unwrap();

    const BLOCKS: usize = 24;
    let (a, b) = (words(1, BLOCKS * BLOCK / 4), words(2, BLOCKS * BLOCK / 4));
    let sums: Vec<u32> = a.iter().zip(&b).map(|(x, y)| x.wrapping_add(*y)).collect();
    let (in_a, in_b, out) = (
        session.input("a0").unwrap(),
        session.input("b0").unwrap(),
        session.output("result0").unwrap(),
    );
    let (scratch, progress) =
        (session.scratch("sums").unwrap(), session.unprotected("progress").unwrap());
    assert!(matches!(session.scratch("a0"), Err(SdkError::WrongMode { .. })));
    assert!(matches!(session.unprotected("result0"), Err(SdkError::WrongMode { .. })));
    session.upload(&in_a, &bytes(&a)).unwrap();
    session.upload(&in_b, &bytes(&b)).unwrap();
    session.write_unprotected(&progress, 0, &[0xaa; 64]).unwrap();
    assert!(matches!(
        session.write_unprotected(&progress, 4090, &[0; 7]),
        Err(SdkError::TooLong { .. })
    ));

    let job = [
        (0x08, BLOCKS as u32),
        (0x10, in_a.addr() as u32),
        (0x14, in_b.addr() as u32),
        (0x18, scratch as u32),
        (0x1c, out.addr() as u32),
        (0x20, progress.addr() as u32),
    ];
    let statement = session.run(&job, (CTRL, 1), (STATUS, DONE)).unwrap();
    assert_eq!(session.read_register(STATUS).unwrap() & ERROR, 0);
    let opened = session.open(&out, &statement, BLOCKS * BLOCK, OpenPolicy::default()).unwrap();
    assert_eq!(opened.data.to_vec(), bytes(&sums));
    let mut last = [0; 64];
    last[0] = BLOCKS as u8;
    assert_eq!(session.read_unprotected(&progress, 0, 64).unwrap().into_what_the_host_says(), last);
    // The sums also went through card memory, encrypted.
    let plain = bytes(&sums);
    let mut seen = vec![0; BLOCKS * BLOCK];
    session.host().device().mem_read(scratch, &mut seen).unwrap();
    assert!(seen.iter().any(|&x| x != 0), "the scratch region was never written back");
    assert!(seen.chunks(BLOCK).zip(plain.chunks(BLOCK)).all(|(x, y)| x != y));
    session.close().unwrap();
    let checked = probe.checked().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((checked.reports, checked.lost), (Vec::new(), 0));
    assert!(checked.bursts > 4 * BLOCKS as u64, "{} bursts", checked.bursts);
    // All of them were answered.
    let progress = probe.progress().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(progress.waits(), "no port waits");
    let names: Vec<&str> = progress.ports.iter().map(|port| port.port.as_str()).collect();
    assert_eq!(names, ["port 0", "registers"]);
    assert!(progress.ports.iter().all(|port| port.last.is_some()), "{progress}");
    uri
}

/// The program of the page about accelerators compiles and runs unchanged.
#[test]
fn the_program_of_the_how_to_page_runs_as_it_stands_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let program = read("sim/lab/examples/one_batch.rs");
    let body = &program[program.find("use std::error").unwrap()..];
    let page = read("docs/how-to/your-accelerator.md");
    assert!(
        page.contains(&format!("```rust\n{body}```\n")),
        "copy sim/lab/examples/one_batch.rs into section 3 of the page"
    );
    let dir = tempfile::tempdir().unwrap();
    let done = std::process::Command::new(shef_e2e::example_program("one_batch"))
        .args([&example(), dir.path()])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "4096 sums are right, and the session is closed\n"
    );
}

/// Serves a project with these flags in another process, on a socket in `dir`, until ten thousand
/// cycles have passed. Returns what it prints on stderr, the checker's reports and the design's digest.
fn served(project: &Path, dir: &Path, flags: &[&str]) -> (String, Vec<Report>, [u8; 32]) {
    use std::io::BufRead;
    let (socket, messages) = (dir.join("card"), dir.join("messages"));
    let mut command = std::process::Command::new(shef_e2e::shef_program());
    command.args(["--json", "sim", "serve", "--kernel", "native", "--project"]).arg(project);
    command.arg("--socket").arg(&socket).args(flags).env("TMPDIR", dir);
    command.stdout(std::process::Stdio::piped()).stderr(fs::File::create(&messages).unwrap());
    let mut child = command.spawn().unwrap();
    let mut ready = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let printed = || fs::read_to_string(&messages).unwrap();
    assert!(ready.starts_with('{'), "{}", printed());
    let mut control = Control::open(&Control::path_of(&socket)).unwrap();
    while control.cycles().unwrap().0.unwrap() < 10_000 {
        std::thread::yield_now();
    }
    let reports = control.checked().unwrap().reports;
    let progress = control.progress().unwrap();
    assert_eq!((progress.ports.len(), progress.waits().as_str()), (2, "no port waits"));
    let digest = control.identity().unwrap().design_digest;
    child.kill().unwrap();
    child.wait().unwrap();
    (printed(), reports, digest)
}

/// With `--check` or `check=1` the checker watches from the first cycle on, and a report is printed
/// when it comes out. The design has the same digest.
#[test]
fn a_served_card_reports_broken_rules_as_they_come() {
    const REPORT: &str = "warning: SHEF_ERRM_CLEARED_EARLY at clear, cycle ";
    let temp = tempfile::tempdir().unwrap();
    let dir = copy(temp.path());
    edit(&dir, "shef_accel.sv", "assign cleared_o = clear_i;", "assign cleared_o = 1'b1;");
    let design = Design::project(&dir).unwrap().digest();
    for (flags, count) in [(&["--check"][..], 1), (&[], 0)] {
        let (printed, reports, digest) = served(&dir, temp.path(), flags);
        let lines = printed.lines().filter(|line| line.starts_with(REPORT));
        assert_eq!((lines.count(), reports.len()), (count, count), "{printed}");
        assert!(reports.iter().all(|report| report.rule == "SHEF_ERRM_CLEARED_EARLY"));
        assert_eq!(digest, design);
    }
    let device = format!("sim:rtl?project={}&kernel=native&check=1", dir.display());
    let info = std::process::Command::new(shef_e2e::shef_program())
        .args(["device", "info", &device])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&info.stderr);
    assert!(info.status.success(), "{printed}");
    assert_eq!(printed.lines().filter(|line| line.starts_with(REPORT)).count(), 1, "{printed}");
}

/// Each write of the owner makes the accelerator request a FIXED burst.
#[test]
fn a_card_behind_an_agent_reports_broken_rules() {
    shef_e2e::shef_program();
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("hotp");
    fs::create_dir(&dir).unwrap();
    let hotp = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shell-rtl/accel/hotp");
    for file in ["shield.toml", "shef_accel.sv"] {
        fs::copy(hotp.join(file), dir.join(file)).unwrap();
    }
    let requests = "assign acc_ar_valid_o = reg_awvalid_i;";
    edit(&dir, "shef_accel.sv", "assign acc_ar_valid_o = 1'b0;", requests);
    // The Security Kernel is the FPGA's.
    let file = |name: &str| temp.path().join(name).display().to_string();
    let (maker, project) = (file("maker"), dir.display().to_string());
    let serve = ["--check", "--project", &project, "--manufacturer", &maker].map(str::to_owned);
    let remote = Remote::start(temp.path(), &serve).unwrap_or_else(|e| panic!("{e}"));
    let mut control = Control::open(&remote.control).unwrap();
    let shef = |args: &[&str]| {
        let mut command = std::process::Command::new(shef_e2e::shef_program());
        command.args(args).env("SHEF_TLS_CA", &remote.tls.ca);
        command.env("SHEF_TLS_CERT", &remote.tls.cert).env("SHEF_TLS_KEY", &remote.tls.key);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let trust = shef(&["sim", "trust", "--manufacturer", &maker, "--out", &file("trust")]);
    assert_eq!(trust.0, Some(0), "{}", trust.1);
    let [anchors, reference, policy] =
        ["anchors", "reference", "policy"].map(|name| file(&format!("trust/{name}.toml")));
    let device = remote.uri.to_string();
    let mut run = vec!["run", &project, "--device", &device, "--anchors", &anchors];
    run.extend(["--reference", &reference, "--policy", &policy]);
    let key: Vec<String> = (0..8).map(|word| format!("{:#x}=7", 4 * word)).collect();
    run.extend(key.iter().flat_map(|word| ["--reg", word]));
    run.extend(["--reg", "0x20=0", "--reg", "0x24=1", "--start", "0x28=1", "--done", "0x2c:1=1"]);
    assert_eq!(control.checked().unwrap().reports, [], "nothing is written yet");
    // The Shield refuses the requests, and the owner no result with refusals.
    let (status, printed) = shef(&run);
    assert_eq!(status, Some(1), "{printed}");
    assert!(printed.contains("SHEF-SDK-010"), "{printed}");
    let reports = control.checked().unwrap().reports;
    assert_eq!(reports.len(), 11, "one for each write: {reports:?}");
    let fixed = |report: &Report| report.rule == "SHEF_ERRM_BURST" && report.port == "port 0";
    assert!(reports.iter().all(fixed), "{reports:?}");
}

/// An accelerator without card memory, with the vectors of RFC 6238 for SHA-256.
#[test]
fn one_time_codes_come_over_the_register_channel_alone() {
    const KEY: &[u8; 32] = b"12345678901234567890123456789012";
    const VECTORS: [(u64, u32); 6] = [
        (59, 46_119_246),
        (1_111_111_109, 68_084_774),
        (1_111_111_111, 67_062_674),
        (1_234_567_890, 91_819_424),
        (2_000_000_000, 90_698_825),
        (20_000_000_000, 77_737_706),
    ];
    const COUNT: [u32; 2] = [0x20, 0x24];
    const CTRL: u32 = 0x28;
    const STATUS: u32 = 0x2c;
    const CODE: u32 = 0x30;
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shell-rtl/accel/hotp");
    let dir = tempfile::tempdir().unwrap();
    let cards = Cards::project(&project).unwrap_or_else(|e| panic!("{e}"));
    let mut world =
        World::new(dir.path(), Plan { cards, seed: None, name: "hotp".into(), service: None })
            .unwrap();
    let (mut host, _) = world.card(&mut |_| {}).unwrap_or_else(|e| panic!("{e}"));
    let mut session = world.session(&mut host).unwrap();
    assert!(!session.config().has_memory());
    let refused = |result: Result<u32, SdkError>| result.unwrap_err().code() == "SHEF-PRO-254";

    assert!(refused(session.write_register(CTRL, 1).map(|()| 0)), "no key yet");
    for (i, word) in KEY.chunks(4).enumerate() {
        session.write_register(4 * i as u32, u32::from_be_bytes(word.try_into().unwrap())).unwrap();
    }
    assert!(refused(session.write_register(0, 0).map(|()| 0)), "one key a session");
    assert!((0..8).all(|i| refused(session.read_register(4 * i))), "the key is never shown");
    assert!(refused(session.read_register(CODE)), "no code yet");
    for (time, code) in VECTORS {
        let count = time / 30;
        let job = [(COUNT[0], (count >> 32) as u32), (COUNT[1], count as u32)];
        let statement = session.run(&job, (CTRL, 1), (STATUS, 2)).unwrap();
        assert_eq!((statement.shield().refusals, statement.shield().faults), (0, 0));
        assert_eq!(session.read_register(CODE).unwrap() % 100_000_000, code, "at {time}");
        assert_eq!(session.read_register(COUNT[1]).unwrap(), count as u32 + 1);
        // the counter only increases
        assert!(refused(session.write_register(COUNT[1], count as u32).map(|()| 0)));
    }
    let closed = session.close().unwrap();
    assert_eq!((closed.last.faults, closed.last.refusals), (0, 0));
    closed.verify_record(&host.close_record().unwrap()).unwrap();
    host.new_session().unwrap();
    let mut session = world.keyed(&mut host).unwrap();
    assert!(refused(session.write_register(CTRL, 1).map(|()| 0)), "the key died with its session");
    session.close().unwrap();
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    /// Each of the two ports takes its response after that of the other one.
    #[test]
    #[ignore = "long: a Shield with two engine sets is built"]
    fn a_deadlock_behind_the_shield_is_reported() {
        const DEADLOCK: u32 = 1;
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sim/card/tests/faulty");
        let dir = tempfile::tempdir().unwrap();
        let cards = Cards::project(&project).unwrap_or_else(|e| panic!("{e}"));
        let plan = Plan { cards, seed: None, name: "faulty".into(), service: None };
        let mut world = World::new(dir.path(), plan).unwrap();
        let (mut host, probe) = world.card(&mut |_| {}).unwrap_or_else(|e| panic!("{e}"));
        let (sender, stuck) = std::sync::mpsc::channel();
        let Location::InProcess(card) = probe.location() else { panic!("in this process") };
        card.on_stuck(4096, move |progress| sender.send(progress.waits()).unwrap());
        let mut session = world.session(&mut host).unwrap();
        let input = session.input("in").unwrap();
        session.upload(&input, &[7; 4096]).unwrap();
        session.run(&[], (CTRL, 0), (STATUS, DONE)).unwrap();
        assert_eq!(probe.progress().unwrap().waits(), "no port waits");
        session.launch(&[], (CTRL, DEADLOCK)).unwrap();
        for _ in 0..200 {
            session.host().device().wait_hint().unwrap();
        }
        let progress = probe.progress().unwrap();
        assert!(progress.is_stuck(8192), "{progress}");
        let ends = [
            (
                "port 0: R of burst 1 offered since cycle ",
                ", RREADY low (memory waits for the accelerator)",
            ),
            (
                "port 1: B of burst 1 offered since cycle ",
                ", BREADY low (memory waits for the accelerator)",
            ),
        ];
        let waits = progress.waits();
        assert_eq!(waits.split("; ").count(), 2, "{waits}");
        for (wait, (start, end)) in waits.split("; ").zip(ends) {
            assert!(wait.starts_with(start) && wait.ends_with(end), "{waits}");
        }
        assert_eq!(stuck.try_iter().collect::<Vec<_>>(), [waits], "once");
        session.close().unwrap();
    }

    /// A file of waves is complete when the program that opened the URI has dropped its host, and after
    /// an interrupt of a card that is served.
    #[test]
    #[ignore = "long: a Shield with waves is built"]
    fn waves_are_complete_when_the_card_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("card.fst");
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shell-rtl/accel/hotp");
        // Blocks of a kind and a length; the hierarchy is written last, and the header complete.
        let complete = |from: u64| {
            let bytes = fs::read(&file).unwrap();
            let (mut at, mut kinds) = (0, Vec::new());
            while at < bytes.len() {
                kinds.push(bytes[at]);
                let length = bytes[at + 1..at + 9].try_into().unwrap();
                at += 1 + u64::from_be_bytes(length) as usize;
            }
            assert!(at == bytes.len() && kinds[0] == 0 && kinds.contains(&6), "{kinds:?}");
            assert_eq!(bytes[9..17], (2 * from).to_be_bytes(), "half cycles");
            fs::remove_file(&file).unwrap();
        };
        let uri = format!(
            "sim:rtl?project={}&kernel=native&wave={}&wave-scope=accel&wave-from=10",
            project.display(),
            file.display()
        );
        drop(shef::open(&uri.parse().unwrap()).unwrap_or_else(|e| panic!("{e}")));
        complete(10);
        for signal in ["-INT", "-TERM"] {
            let mut command = std::process::Command::new(shef_e2e::shef_program());
            command.args(["sim", "serve", "--kernel", "native", "--wave-scope", "accel"]);
            command.args(["--wave-from", "20", "--wave"]).arg(&file);
            command.arg("--project").arg(&project).arg("--socket").arg(dir.path().join("card"));
            let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
            let mut ready = String::new();
            let out = child.stdout.take().unwrap();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut ready).unwrap();
            let mut control = Control::open(&Control::path_of(&dir.path().join("card"))).unwrap();
            while control.cycles().unwrap().0.unwrap() < 100 {
                std::thread::yield_now();
            }
            let interrupt = [signal, &child.id().to_string()];
            assert!(std::process::Command::new("kill").args(interrupt).status().unwrap().success());
            assert!(child.wait().unwrap().success(), "{signal}");
            complete(20);
        }
    }

    /// Every register of the design begins with random contents, also the Shield's.
    #[test]
    #[ignore = "long: another build of the Shield"]
    fn vectors_are_added_with_random_contents_and_an_unfriendly_memory() {
        let design = Design::project(&example()).unwrap();
        for seed in [3, 4] {
            let options = RtlOptions {
                contents: Some(seed),
                stalls: Some(seed),
                kernel: SimKernel::Native,
                check: true,
                ..RtlOptions::default()
            };
            let options = CardOptions::new(Engine::Rtl(options), design.clone());
            assert_eq!(options.design.digest(), design.digest());
            add_vectors(Cards::Made(options));
        }
    }

    /// The example's program, built as its user would build it, over files longer than its lanes.
    #[test]
    #[ignore = "long: a workspace of its own is built"]
    fn a_program_of_a_workspace_of_its_own_adds_files() {
        let program = shef_e2e::example(&example());
        let tested = shef_e2e::tested_example(&example());
        let said = String::from_utf8_lossy(&tested.stdout);
        assert!(tested.status.success() && said.contains("1 passed"), "{said}");
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        let run = |a: &[u8], b: &[u8]| {
            fs::write(file("a"), a).unwrap();
            fs::write(file("b"), b).unwrap();
            std::process::Command::new(&program)
                .args([file("a"), file("b"), file("sums")])
                .output()
                .unwrap()
        };
        let left = || fs::read_dir(dir.path()).unwrap().count();

        let (a, b) = (words(3, 40_001), words(4, 40_001));
        let refused = run(&bytes(&a), &bytes(&b[1..]));
        assert!(
            !refused.status.success() && left() == 2,
            "{}",
            String::from_utf8_lossy(&refused.stderr)
        );

        let done = run(&bytes(&a), &bytes(&b));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(String::from_utf8_lossy(&done.stdout), "40001 sums in 3 batches\n");
        let sums: Vec<u32> = a.iter().zip(&b).map(|(x, y)| x.wrapping_add(*y)).collect();
        assert!(
            fs::read(file("sums")).unwrap() == bytes(&sums),
            "the sums differ from those of the CPU"
        );
        assert_eq!(left(), 3);
        fs::remove_file(file("sums")).unwrap();

        // The same with the card in a separate process behind an agent, as in the example's README.
        let maker = dir.path().join("maker").display().to_string();
        let serve = ["--project", &example().display().to_string(), "--manufacturer", &maker]
            .map(str::to_owned);
        let remote = Remote::start(dir.path(), &serve).unwrap_or_else(|e| panic!("{e}"));
        let trusted = std::process::Command::new(shef_e2e::shef_program())
            .args(["sim", "trust", "--manufacturer", &maker, "--out"])
            .arg(file("trust"))
            .output()
            .unwrap();
        assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
        let behind = |device: &str| {
            let mut command = std::process::Command::new(&program);
            command
                .args([file("a"), file("b"), file("sums")])
                .arg(device)
                .arg(file("trust").join("anchors.toml"));
            command
                .env("SHEF_TLS_CA", &remote.tls.ca)
                .env("SHEF_TLS_CERT", &remote.tls.cert)
                .env("SHEF_TLS_KEY", &remote.tls.key);
            command.output().unwrap()
        };
        let done = behind(&remote.uri.to_string());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(
            fs::read(file("sums")).unwrap() == bytes(&sums),
            "the sums from behind the agent differ from those of the CPU"
        );
        let refused = behind("tls://localhost:1/card0");
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.starts_with("vecadd: agent localhost:1: "), "{said}");
    }
}

fn copy(to: &Path) -> PathBuf {
    let dir = to.join("copy");
    fs::create_dir(&dir).unwrap();
    for file in ["shield.toml", "shef_accel.sv"] {
        fs::copy(example().join(file), dir.join(file)).unwrap();
    }
    dir
}

fn edit(dir: &Path, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(dir.join(file)).unwrap();
    assert!(text.contains(from));
    fs::write(dir.join(file), text.replacen(from, to, 1)).unwrap();
}

/// The error of opening the folder through its URI, as a program would.
fn opened(dir: &Path) -> SdkError {
    let uri: Uri = format!("sim:rtl?project={}", dir.display()).parse().unwrap();
    shef::open(&uri).err().expect("it cannot be opened")
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let case = |name: &str, change: &dyn Fn(&Path), code: &str, says: &[&str]| {
        let dir = temp.path().join(name);
        fs::create_dir(&dir).unwrap();
        let dir = copy(&dir);
        change(&dir);
        let error = opened(&dir);
        assert_eq!(error.code(), code, "{name}: {error}");
        for text in says {
            assert!(error.to_string().contains(text), "{name}: {error}");
        }
    };
    case(
        "folder",
        &|d| fs::remove_dir_all(d).unwrap(),
        "SHEF-CARD-003",
        &["the folder cannot be opened", "folder/copy"],
    );
    case(
        "toml",
        &|d| fs::remove_file(d.join("shield.toml")).unwrap(),
        "SHEF-CARD-003",
        &["no shield.toml"],
    );
    case(
        "rule",
        &|d| edit(d, "shield.toml", "lanes = 1", "lanes = 3"),
        "SHEF-GEN-011",
        &["copy/shield.toml:5:9: engine set 0: lanes must be", "^"],
    );
    case(
        "key",
        &|d| edit(d, "shield.toml", "lanes = 1", "lines = 1"),
        "SHEF-GEN-010",
        &["copy/shield.toml:5:1:"],
    );
    case(
        "accel",
        &|d| fs::remove_file(d.join("shef_accel.sv")).unwrap(),
        "SHEF-CARD-003",
        &["no shef_accel.sv"],
    );
    case(
        "taken",
        &|d| fs::write(d.join("shef_shield.sv"), "module shef_shield; endmodule\n").unwrap(),
        "SHEF-CARD-003",
        &["shef_shield.sv has the name of a module of the Shield"],
    );
    case(
        "syntax",
        &|d| edit(d, "shef_accel.sv", "assign irq_o = done_q;", "assign irq_o = ;"),
        "SHEF-RTL-005",
        &["copy/shef_accel.sv:", "%Error"],
    );
    case(
        "port",
        &|d| {
            edit(
                d,
                "shef_accel.sv",
                "output wire          irq_o",
                "output wire          interrupt_o",
            );
        },
        "SHEF-PRJ-006",
        &["shef_accel.sv:", "has no port irq_o"],
    );
    let wave = "sim:rtl?wave=/nope/w.fst".parse().unwrap();
    assert_eq!(shef::open(&wave).err().unwrap().code(), "SHEF-CLI-015");
    let odd = temp.path().join("with space");
    fs::create_dir(&odd).unwrap();
    assert_eq!(opened(&odd).code(), "SHEF-CARD-003");
}

#[test]
fn the_same_design_has_the_same_digest_wherever_it_lies() {
    let temp = tempfile::tempdir().unwrap();
    let dir = copy(temp.path());
    let digest = |d: &Path| -> Result<[u8; 32], CardError> { Ok(Design::project(d)?.digest()) };
    let first = digest(&example()).unwrap();
    assert_eq!(digest(&dir).unwrap(), first);
    let file = dir.join("shef_accel.sv");
    fs::write(&file, format!("{} ", fs::read_to_string(&file).unwrap())).unwrap();
    assert_ne!(digest(&dir).unwrap(), first);
}
