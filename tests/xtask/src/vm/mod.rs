//! `cargo xtask vm`: the card in a virtual machine. QEMU presents it to an unmodified Linux kernel as a PCI function, `vfio-pci` binds it, and the same `shef` drives it through `/dev/vfio`. CPUs are emulated (TCG), so KVM is not needed.

mod archive;
mod kernel;
pub mod packages;
mod unit;

use crate::process::{self, Context, Failure, Result, bail, ensure, say, stdout};
use crate::tools;
use archive::Archive;
use fs_err as fs;
use packages::Guest;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Show the guest's console
    #[arg(long)]
    console: bool,
    /// Also run the other guests: with iommufd and without an IOMMU, on a custom kernel (seven
    /// minutes of processor time, once), and with systemd
    #[arg(long)]
    all: bool,
    /// Only the guest with systemd, which runs the agent's unit
    #[arg(long, conflicts_with = "all")]
    unit: bool,
}

/// Purpose of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The owner's programs with the card on the same machine.
    Card(Iommu),
    /// The agent's unit under systemd.
    Unit,
}

impl Purpose {
    /// All of them, starting with the unmodified kernel.
    pub const ALL: [Self; 4] =
        [Self::Card(Iommu::Type1), Self::Card(Iommu::Iommufd), Self::Card(Iommu::None), Self::Unit];

    /// Its name as a step of a test run.
    pub fn title(self) -> String {
        match self {
            Self::Card(iommu) => {
                format!("the card in a virtual machine, by /dev/vfio with {}", iommu.name())
            }
            Self::Unit => "the agent's unit under systemd in a virtual machine".to_owned(),
        }
    }

    /// Its programs, besides busybox: the usual `shef`, and `edu` of crate shef-vfio or the agent.
    fn programs(self) -> Result<[PathBuf; 2]> {
        let path = |command: Command| PathBuf::from(command.get_program());
        let other = match self {
            Self::Card(_) => process::built_example("edu", "debug")?,
            Self::Unit => process::built("shef-agent")?,
        };
        Ok([path(process::built("shef")?), path(other)])
    }

    /// The kind of card: the model is enough if the guest tests the path to it.
    fn card(self) -> &'static str {
        match self {
            Self::Card(_) => "rtl",
            Self::Unit => "model",
        }
    }

    /// Memory of the guest, which holds all files.
    fn memory(self) -> &'static str {
        match self {
            Self::Card(_) => "512M",
            Self::Unit => "1G",
        }
    }
}

/// Protects other memory from the card, and so decides the interface that the guest's programs
/// request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iommu {
    /// A VFIO container.
    Type1,
    /// iommufd and the function's own node.
    Iommufd,
    /// No protection.
    None,
}

impl Iommu {
    /// Its name in a URI.
    pub fn name(self) -> &'static str {
        match self {
            Self::Type1 => "type1",
            Self::Iommufd => "iommufd",
            Self::None => "none",
        }
    }
}

/// The parts of a guest.
struct Setup {
    guest: Guest,
    purpose: Purpose,
    /// The custom kernel, in place of Debian's.
    own: Option<PathBuf>,
    /// The files of a system with systemd.
    system: Option<PathBuf>,
}

/// The emulator.
const QEMU: &str = "11.1 (vfio-user-pci), TCG";
/// Time limit of a guest.
const LIMIT: Duration = Duration::from_secs(1800);
/// Functions shared by all jobs.
const LIBRARY: &[u8] = include_bytes!("../../../vm/lib.sh");
/// PCI IDs of QEMU's device `edu`, and of the card.
const EDU: &str = "0x1234:0x11e8";
const CARD: &str = "0x1d0f:0xf010";

/// The observations of a run.
#[derive(Serialize, Default)]
pub struct Report {
    driver: String,
    iommu: String,
    kernel: String,
    qemu: String,
    steps: Vec<Value>,
    digits: Value,
    attacks: Vec<Value>,
    /// Why no guest was started.
    skipped: Option<String>,
    seconds: u64,
}

impl Report {
    /// The failed checks of a run.
    fn failed(&self) -> Vec<String> {
        let name = |v: &Value| v["name"].as_str().unwrap_or("?").to_owned();
        let steps = self.steps.iter().filter(|s| s["ok"] != true).map(name);
        let attacks = self
            .attacks
            .iter()
            .filter(|a| a["detected"] != true || a["words_delivered"] != 0)
            .map(name);
        let digits = (self.digits["equal_to_reference"] != true).then(|| "digits".to_owned());
        steps.chain(attacks).chain(digits).collect()
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let mut reports = vec![];
    let purposes = match (args.all, args.unit) {
        (true, _) => &Purpose::ALL[..],
        (_, true) => &[Purpose::Unit],
        _ => &[Purpose::Card(Iommu::Type1)],
    };
    for purpose in purposes {
        let report = match setup(*purpose) {
            Ok(setup) => boot(&setup, args.console)?,
            Err(why) => Report { skipped: Some(format!("{why:#}")), ..Report::default() },
        };
        if !args.json {
            print(&report);
        }
        reports.push(report);
    }
    match &reports[..] {
        [report] if args.json => println!("{}", serde_json::json!(report)),
        reports if args.json => println!("{}", serde_json::json!({ "guests": reports })),
        _ => {}
    }
    // A run with skipped guests is not a success.
    if reports.iter().any(|report| report.skipped.is_some()) {
        Err(Failure::exit(3))
    } else {
        reports.iter().try_for_each(verdict)
    }
}

fn print(report: &Report) {
    for step in &report.steps {
        let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
        println!(
            "{} {:<22} {}",
            if step["ok"] == true { "ok     " } else { "FAILED " },
            text("name"),
            text("detail")
        );
    }
    for attack in &report.attacks {
        let refused = attack["detected"] == true && attack["words_delivered"] == 0;
        println!(
            "{} {:<28} {}",
            if refused { "refused" } else { "FAILED " },
            attack["name"].as_str().unwrap_or_default(),
            attack["code"].as_str().unwrap_or_default()
        );
    }
    match &report.skipped {
        Some(why) => println!("skipped: {why}"),
        None => println!(
            "Linux {}, {}, {}, {} s",
            report.kernel, report.driver, report.iommu, report.seconds
        ),
    }
}

/// The parts of a guest, or the reason why it cannot start.
fn setup(purpose: Purpose) -> Result<Setup> {
    let guest = packages::guest()?;
    let own = match purpose {
        Purpose::Card(Iommu::Iommufd | Iommu::None) => Some(kernel::ensure()?),
        Purpose::Card(Iommu::Type1) | Purpose::Unit => None,
    };
    let system = if purpose == Purpose::Unit { Some(packages::systemd()?) } else { None };
    Ok(Setup { guest, purpose, own, system })
}

/// The same as part of `cargo xtask test --full`.
///
/// # Errors
/// The reason why this machine cannot start the guest.
pub fn test(purpose: Purpose) -> Result<Result<()>> {
    let setup = setup(purpose)?;
    Ok(boot(&setup, false).and_then(|report| verdict(&report)))
}

fn verdict(report: &Report) -> Result<()> {
    let failed = report.failed();
    let console = console();
    let console = console.display();
    ensure!(
        failed.is_empty(),
        "failed in the guest: {}; its console is in {console}",
        failed.join(", ")
    );
    Ok(())
}

fn folder() -> PathBuf {
    process::target_dir().join("vm")
}

fn console() -> PathBuf {
    folder().join("console.log")
}

/// Shared libraries of programs, the loader among them, as this machine has them.
fn libraries(programs: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f...)`, and the loader alone.
    let text = stdout(Command::new("ldd").args(programs))?;
    let words = text.split_whitespace();
    Ok(words.filter(|w| w.starts_with('/') && !w.ends_with(':')).map(PathBuf::from).collect())
}

/// A program without its debug information, to save memory in the guest.
fn stripped(program: &Path) -> Result<PathBuf> {
    let to = folder().join(program.file_name().unwrap_or_default());
    process::run(Command::new("strip").arg("-o").arg(&to).arg(program), "strip")?;
    Ok(to)
}

/// The guest's script, run after the set-up by `tests/vm/init`.
fn job(iommu: Iommu) -> String {
    let name = iommu.name();
    // The function's node, the user's permission for other nodes, and the card's URI: with the
    // available interface, or the requested one.
    let (node, shared, card) = match iommu {
        Iommu::Type1 => ("/dev/vfio/$group", "", String::new()),
        Iommu::Iommufd => (
            "/dev/vfio/devices/$(ls /sys/bus/pci/devices/$edu/vfio-dev)",
            "chmod 666 /dev/iommu",
            format!("?iommu={name}"),
        ),
        Iommu::None => ("/dev/vfio/noiommu-$group", "", format!("?iommu={name}")),
    };
    let permission = match iommu {
        // Only root may see physical addresses.
        Iommu::None => {
            "document edu-permission su user -c \"/bin/edu pci:$edu?iommu=none\"
document edu-unasked /bin/edu pci:$edu"
        }
        _ => {
            "document edu-locked-memory su user -c \"ulimit -l 64; /bin/edu pci:$edu?iommu=$iommu locked-memory\"
chown 0 $node; chmod 600 $node
document edu-permission su user -c \"/bin/edu pci:$edu?iommu=$iommu\""
        }
    };
    format!(
        "iommu={name}
edu=$(find_function {EDU})
bind_function $edu
document edu /bin/edu pci:$edu?iommu=$iommu
group=$(basename $(readlink /sys/bus/pci/devices/$edu/iommu_group))
node={node}
mkdir /etc; echo user:x:1000:1000::/tmp:/bin/sh > /etc/passwd
chown user $node
{shared}
{permission}
document edu-removal /bin/edu pci:$edu?iommu=$iommu removal
card=$(find_function {CARD})
document doctor-before shef device doctor --json pci:$card{card}
bind_function $card
say driver $(basename $(readlink /sys/bus/pci/devices/$card/driver))
document doctor shef device doctor --json pci:$card{card}
document info shef device info --json pci:$card{card}
exec 9<>/dev/ttyS1; stty -F /dev/ttyS1 raw -echo
document demo shef demo --json --device pci:$card{card} --control /dev/ttyS1
"
    )
}

/// Packs the initramfs.
fn initramfs(setup: &Setup, programs: &[PathBuf; 2], to: &Path) -> Result<()> {
    let archive = Archive::new(std::io::BufWriter::new(fs::File::create(to)?));
    match setup.purpose {
        Purpose::Card(iommu) => pack(archive, setup, iommu, programs),
        Purpose::Unit => unit::pack(archive, setup, programs),
    }
}

fn pack(
    mut a: Archive<impl Write>,
    setup: &Setup,
    iommu: Iommu,
    programs: &[PathBuf; 2],
) -> Result<()> {
    let [shef, edu] = programs;
    for dir in ["bin", "proc", "sys", "dev", "tmp", "modules"] {
        a.folder(dir)?;
    }
    a.copy("bin/busybox", true, &setup.guest.busybox())?;
    a.copy("bin/shef", true, &stripped(shef)?)?;
    a.copy("bin/edu", true, &stripped(edu)?)?;
    let libraries = libraries(programs)?;
    // A folder comes before its contents.
    let folders: BTreeSet<&Path> =
        libraries.iter().flat_map(|library| library.ancestors().skip(1)).collect();
    for folder in folders.into_iter().filter(|folder| *folder != Path::new("/")) {
        a.folder(&below_root(folder))?;
    }
    for library in &libraries {
        a.copy(&below_root(library), true, library)?;
    }
    let mut order = String::new();
    // The custom kernel has all modules built in.
    for (name, module) in setup.guest.modules().filter(|_| setup.own.is_none()) {
        a.copy(&format!("modules/{name}.ko"), false, &module)?;
        order += &format!("{name}.ko\n");
    }
    a.file("modules/order", false, order.as_bytes())?;
    a.file("lib.sh", false, LIBRARY)?;
    a.file("init", true, include_bytes!("../../../vm/init"))?;
    a.file("job", false, job(iommu).as_bytes())?;
    a.finish()?;
    Ok(())
}

/// A path of this machine as a name in the archive.
fn below_root(path: &Path) -> String {
    path.strip_prefix("/").unwrap_or(path).display().to_string()
}

/// A process that ends when the value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the card's server; its socket exists when this returns.
fn serve(shef: &Path, device: &str, socket: &Path) -> Result<Running> {
    let _ = fs::remove_file(socket);
    let log = folder().join("card.log");
    let mut command = Command::new(shef);
    command.args(["sim", "serve", "--device", device, "--socket"]).arg(socket);
    command.env("SHEF_VERILATOR", tools::verilator()?).env("SHEF_IBEX", tools::ibex()?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&log)?.into_file());
    let mut running = Running(command.spawn().context("cannot start shef sim serve")?);
    let (begin, log) = (Instant::now(), log.display());
    // A design that is not cached is compiled first.
    while !socket.exists() {
        if let Ok(Some(status)) = running.0.try_wait() {
            bail!("shef sim serve ended ({status}); its messages are in {log}");
        }
        if begin.elapsed() > LIMIT {
            bail!("shef sim serve created no socket; its messages are in {log}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(running)
}

/// The guest's output.
#[derive(Default)]
struct Output {
    words: BTreeMap<String, String>,
    documents: BTreeMap<String, String>,
    exits: BTreeMap<String, i32>,
    failures: Vec<String>,
    steps: Vec<Value>,
}

impl Output {
    /// Parses a line of the console.
    fn line(&mut self, line: &str, open: &mut Option<String>) {
        let Some(event) = line.strip_prefix("@@ ") else {
            if let Some(text) = open.as_ref().and_then(|name| self.documents.get_mut(name)) {
                *text += line;
                text.push('\n');
            }
            return;
        };
        match event.split_once(' ').unwrap_or((event, "")) {
            ("begin", name) => {
                self.documents.insert(name.to_owned(), String::new());
                *open = Some(name.to_owned());
            }
            ("end", _) => *open = None,
            ("exit", rest) => {
                if let Some((name, code)) = rest.split_once(' ') {
                    self.exits.insert(name.to_owned(), code.parse().unwrap_or(-1));
                }
            }
            ("failed", what) => self.failures.push(what.to_owned()),
            // `@@ step ok NAME: DETAIL`
            ("step", rest) => self.steps.extend(parsed(rest, "")),
            ("at", what) => say(&format!("in the guest: {what}")),
            ("note", _) => {}
            (key, value) => {
                self.words.insert(key.to_owned(), value.to_owned());
            }
        }
    }

    fn word(&self, key: &str) -> String {
        self.words.get(key).cloned().unwrap_or_default()
    }

    fn json(&self, name: &str) -> Value {
        let document = self.documents.get(name);
        document.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
    }
}

/// Builds, starts the card and the guest, waits for its end, and parses its output.
fn boot(setup: &Setup, show: bool) -> Result<Report> {
    let dir = folder();
    fs::create_dir_all(&dir)?;
    let programs = setup.purpose.programs()?;
    let initrd = dir.join("initramfs");
    initramfs(setup, &programs, &initrd)?;
    // The length of a socket's path is limited.
    let sockets = std::env::temp_dir().join(format!("shef-vm-{}", std::process::id()));
    fs::create_dir_all(&sockets)?;
    let socket = sockets.join("card");
    let card = serve(&programs[0], setup.purpose.card(), &socket)?;
    let begin = Instant::now();
    let result = qemu(setup, &initrd, &socket, show);
    let (state, identity) = (ask_card(&socket, "state"), ask_card(&socket, "identity"));
    drop(card);
    let _ = fs::remove_dir_all(&sockets);
    let output = result?;
    let mut report = match setup.purpose {
        Purpose::Card(iommu) => report(&output, iommu),
        Purpose::Unit => unit::report(&output),
    };
    report.steps.push(rings(&state));
    if let Purpose::Card(_) = setup.purpose {
        report.steps.push(security_kernel(&identity));
    }
    Ok(Report { seconds: begin.elapsed().as_secs(), ..report })
}

/// Queries the card on its control socket.
fn ask_card(socket: &Path, what: &str) -> Value {
    let ask = || -> std::io::Result<Value> {
        let mut stream = UnixStream::connect(format!("{}.control", socket.display()))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("{{\"do\":\"{what}\"}}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    ask().unwrap_or(Value::Null)
}

/// Whether the card's Security Kernel was boot ROM and firmware: a native kernel shows in the URI.
fn security_kernel(identity: &Value) -> Value {
    let engine = identity["engine"].as_str().unwrap_or("of an unknown kind");
    step("security-kernel", engine == "sim:rtl", format!("the card is {engine}"))
}

/// Least number of bytes that the demo moves each way through rings.
const BULK: u64 = 64 << 10;

/// Whether bulk data went through rings: the card accessed the guest's memory directly.
fn rings(state: &Value) -> Value {
    let bytes = |key: &str| state[key].as_u64().unwrap_or(0);
    let (read, written, interrupts) =
        (bytes("dma_read"), bytes("dma_written"), bytes("dma_interrupts"));
    let detail = format!(
        "the card's DMA engine read {read} bytes of the guest's memory, wrote {written}, and raised {interrupts} interrupts"
    );
    step("rings", read >= BULK && written > 0 && interrupts > 0, detail)
}

fn qemu(setup: &Setup, initrd: &Path, socket: &Path, show: bool) -> Result<Output> {
    let card = serde_json::json!({
        "driver": "vfio-user-pci",
        "socket": { "type": "unix", "path": socket },
        // An access to a register of a simulated design can take long.
        "x-msg-timeout": 60_000,
    });
    let memory = setup.purpose.memory();
    let mut command = setup.guest.qemu();
    command
        .args(["-accel", "tcg", "-machine", "q35,memory-backend=mem", "-cpu", "max", "-m", memory])
        .args(["-object", &format!("memory-backend-memfd,id=mem,size={memory},share=on")])
        .args(["-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio"])
        .args(["-chardev", &format!("socket,id=control,path={}.control", socket.display())])
        .args(["-serial", "chardev:control"])
        .args(["-device", "edu,dma_mask=0xffffffffffff", "-device", &card.to_string()])
        .arg("-initrd")
        .arg(initrd)
        .arg("-kernel")
        .arg(setup.own.clone().unwrap_or_else(|| setup.guest.kernel()));
    // Without no_timer_check a busy host makes the kernel give up on its timer.
    let mut line = "console=ttyS0 quiet panic=-1 no_timer_check".to_owned();
    if setup.purpose == Purpose::Card(Iommu::None) {
        line += " vfio.enable_unsafe_noiommu_mode=1";
    } else {
        command.args(["-device", "intel-iommu,intremap=on,caching-mode=on"]);
        line += " intel_iommu=on";
    }
    command.args(["-append", &line]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut running = Running(child.context("cannot start QEMU")?);
    let out = running.0.stdout.take().context("QEMU: no output")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).split(b'\n').map_while(std::io::Result::ok) {
            let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut log = fs::File::create(console())?;
    let (mut output, mut open) = (Output::default(), None);
    let begin = Instant::now();
    loop {
        match lines.recv_timeout(LIMIT.saturating_sub(begin.elapsed())) {
            Ok(line) => {
                let _ = writeln!(log, "{line}");
                if show {
                    say(&line);
                }
                output.line(&line, &mut open);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                output.failures.push(format!("the guest did not end within {} s", LIMIT.as_secs()));
                break;
            }
        }
    }
    Ok(output)
}

fn step(name: &str, ok: bool, detail: String) -> Value {
    serde_json::json!({ "name": name, "ok": ok, "detail": detail })
}

/// The step of a line `VERDICT NAME: DETAIL`.
fn parsed(line: &str, prefix: &str) -> Option<Value> {
    let (verdict, rest) = line.split_once(' ')?;
    let (name, detail) = rest.split_once(": ")?;
    Some(step(&format!("{prefix}{name}"), verdict == "ok", detail.to_owned()))
}

/// Whether the guest came up.
fn booted(output: &Output) -> Value {
    let ready = output.words.contains_key("ready") && output.failures.is_empty();
    step("boot", ready, output.failures.join("; "))
}

/// Steps of the demo, or their absence.
fn demo(output: &Output) -> Vec<Value> {
    let steps = output.json("demo")["steps"].as_array().cloned();
    let exit = format!("exit {:?}", output.exits.get("demo"));
    steps.unwrap_or_else(|| vec![step("demo", false, exit)])
}

/// The guest's output as the command's document.
fn report(output: &Output, iommu: Iommu) -> Report {
    let mut steps = vec![booted(output)];
    let edu = ["edu", "edu-locked-memory", "edu-removal"]
        .iter()
        .filter_map(|name| output.documents.get(*name));
    let lines = edu.flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("edu "));
    steps.extend(lines.filter_map(|line| parsed(line, "vfio-")));
    // A program that panics prints nothing.
    for name in ["edu", "edu-locked-memory", "edu-removal"] {
        let runs = name != "edu-locked-memory" || iommu != Iommu::None;
        let how = match output.exits.get(name) {
            Some(0) => continue,
            Some(code) => format!("exit {code}"),
            None => "it did not end".to_owned(),
        };
        if runs {
            steps.push(step(name, false, how));
        }
    }
    // The same function without permission, or without a statement that nothing confines it.
    let mut refused = |name: &str, document: &str, code: &str, what: &str| {
        let refused = output.documents.get(document).is_some_and(|text| text.contains(code));
        steps.push(step(name, refused, format!("{what} is refused with {code}")));
    };
    if iommu == Iommu::None {
        refused("vfio-permission", "edu-permission", "SHEF-PCI-017", "another user's open");
        refused("vfio-unasked", "edu-unasked", "SHEF-PCI-011", "a URI without iommu=none");
    } else {
        refused("vfio-permission", "edu-permission", "SHEF-PCI-006", "another user's open");
    }
    let before = output.json("doctor-before").to_string();
    let unbound = "a card without driver is named with its command".to_owned();
    steps.push(step("doctor-unbound", before.contains("SHEF-PCI-004"), unbound));
    let doctor = output.json("doctor");
    let bound = "the bound card can be opened".to_owned();
    steps.push(step("doctor", doctor[0]["ready"] == true, bound));
    let interface = doctor[0]["checks"]
        .as_array()
        .and_then(|checks| checks.iter().find(|c| c["check"] == "IOMMU"))
        .and_then(|c| c["found"].as_str())
        .unwrap_or_default();
    let expected = interface.starts_with(&format!("interface {},", iommu.name()));
    steps.push(step("interface", expected, interface.to_owned()));
    let info = output.json("info");
    let description = info["description"].as_str().unwrap_or_default().to_owned();
    steps.push(step("info", info["kernel"]["state"].is_string(), description));
    steps.extend(demo(output));
    let demo = output.json("demo");
    Report {
        driver: output.word("driver"),
        iommu: interface.to_owned(),
        kernel: output.word("kernel"),
        qemu: QEMU.to_owned(),
        steps,
        digits: demo["digits"].clone(),
        attacks: demo["attacks"].as_array().cloned().unwrap_or_default(),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Iommu, Output, report, rings, security_kernel};

    fn output(lines: &[&str]) -> Output {
        let (mut output, mut open) = (Output::default(), None);
        for line in lines {
            output.line(line, &mut open);
        }
        output
    }

    #[test]
    fn lines_of_the_guest_become_a_report() {
        let output = output(&[
            "[    0.1] noise",
            "@@ kernel 6.1",
            "@@ ready 3.1",
            "@@ exit edu 0",
            "@@ begin edu",
            "edu ok dma: there and back",
            "edu FAILED reset: no",
            "@@ end edu",
            "@@ exit edu-removal 101",
            "@@ begin edu-removal",
            "@@ end edu-removal",
            "noise between documents",
            "@@ begin demo",
            "{\"digits\":{\"tested\":1},",
            " \"steps\":[{\"name\":\"seal\",\"ok\":true}],\"attacks\":[]}",
            "@@ end demo",
        ]);
        let r = report(&output, Iommu::Type1);
        assert_eq!((r.kernel.as_str(), &r.digits["tested"]), ("6.1", &1.into()));
        let step = |name: &str| {
            r.steps.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("{name}"))["ok"]
                == true
        };
        assert!(step("boot") && step("vfio-dma") && !step("vfio-reset") && step("seal"));
        // Nor does a program that panicked before it printed anything.
        assert!(!step("edu-removal") && r.steps.iter().all(|s| s["name"] != "edu"));
        // Anything missing from the guest's output counts as failed.
        assert!(
            !step("edu-locked-memory")
                && !step("doctor")
                && !step("info")
                && !step("vfio-permission")
        );
        assert!(r.failed().contains(&"digits".to_owned()));
    }

    #[test]
    fn bulk_that_went_through_the_window_has_failed() {
        let state = |read, interrupts| serde_json::json!({ "is": "state", "dma_read": read, "dma_written": 1, "dma_interrupts": interrupts });
        assert_eq!(rings(&state(1 << 20, 9))["ok"], true);
        for other in [state(100, 9), state(1 << 20, 0), serde_json::Value::Null] {
            assert_eq!(rings(&other)["ok"], false, "{other}");
        }
    }

    #[test]
    fn a_card_with_a_native_kernel_has_failed() {
        let identity = |engine: &str| serde_json::json!({ "is": "identity", "engine": engine });
        assert_eq!(security_kernel(&identity("sim:rtl"))["ok"], true);
        for other in
            [identity("sim:rtl?kernel=native"), identity("sim:model"), serde_json::Value::Null]
        {
            assert_eq!(security_kernel(&other)["ok"], false, "{other}");
        }
    }

    #[test]
    fn a_guest_that_says_nothing_has_failed() {
        let r = report(&output(&["Kernel panic - not syncing"]), Iommu::None);
        assert!(r.failed().iter().any(|f| f == "boot") && r.failed().iter().any(|f| f == "demo"));
    }
}
