//! `cargo xtask vm`: the card in a virtual machine. QEMU presents it to an unmodified Linux kernel
//! as a PCI function, `vfio-pci` binds it, and the same `shef` drives it through `/dev/vfio`. CPUs
//! are emulated (TCG), so KVM is not needed.

mod archive;
mod console;
mod kernel;
mod packages;
mod unit;

use crate::process::{self, Context, Failure, Result, bail, ensure, say, stdout};
use crate::tools;
use archive::Archive;
use console::{Output, Report, is_refused, report, rings, security_kernel};
use fs_err as fs;
use packages::Guest;
use serde_json::Value;
use std::collections::BTreeSet;
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
    /// Only the guest whose card is in the model of AWS F2's shell
    #[arg(long, conflicts_with_all = ["all", "unit"])]
    f2: bool,
}

/// Purpose of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The owner's programs with the card on the same machine, in a VFIO container.
    Type1,
    /// The same with iommufd and the function's own node.
    Iommufd,
    /// The same without an IOMMU: nothing protects other memory from the card.
    NoIommu,
    /// As [`Purpose::Type1`], with the card in the model of AWS F2's shell.
    AwsF2,
    /// The agent's unit under systemd.
    Unit,
}

impl Purpose {
    /// All of them, starting with the unmodified kernel.
    pub const ALL: [Self; 5] = [Self::Type1, Self::Iommufd, Self::NoIommu, Self::AwsF2, Self::Unit];

    /// Its name as a step of a test run.
    pub fn title(self) -> String {
        match self {
            Self::Unit => "the agent's unit under systemd in a virtual machine".to_owned(),
            Self::AwsF2 => "the card in AWS F2's shell in a virtual machine".to_owned(),
            _ => format!("the card in a virtual machine, by /dev/vfio with {}", self.iommu()),
        }
    }

    /// The interface that the guest's programs request, as in a URI.
    fn iommu(self) -> &'static str {
        match self {
            Self::Type1 | Self::AwsF2 | Self::Unit => "type1",
            Self::Iommufd => "iommufd",
            Self::NoIommu => "none",
        }
    }

    /// Its programs, besides busybox: the usual `shef`, and `edu` of crate shef-vfio or the agent.
    fn programs(self) -> Result<[PathBuf; 3]> {
        let other = match self {
            Self::Unit => process::built("shef-agent")?,
            _ => process::built_example("edu", "debug")?,
        };
        let programs = [process::built("shef")?, process::built("shef-sim")?, other];
        Ok(programs.map(|command| command.get_program().into()))
    }

    /// The kind of card, and the memory of the guest, which holds all files. The model is enough if
    /// the guest tests the path to the card.
    fn card_and_memory(self) -> (&'static str, &'static str) {
        if self == Self::Unit { ("model", "1G") } else { ("rtl", "512M") }
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

/// Time limit of a guest: three times the slowest one, measured at a load of 10 on two cores.
const LIMIT: Duration = Duration::from_secs(3600);
/// Functions shared by all jobs.
const LIBRARY: &[u8] = include_bytes!("../../../vm/lib.sh");
/// The script of a guest with the card, run after the set-up by `tests/vm/init`.
const JOB: &str = include_str!("../../../vm/job");

/// Runs the command.
pub fn run(args: &Args) -> Result<()> {
    let mut reports = vec![];
    let purposes = match (args.all, args.unit) {
        (true, _) => &Purpose::ALL[..],
        (_, true) => &[Purpose::Unit],
        _ if args.f2 => &[Purpose::AwsF2],
        _ => &[Purpose::Type1],
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
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for step in &report.steps {
        let verdict = if step["ok"] == true { "ok     " } else { "FAILED " };
        println!("{verdict} {:<22} {}", text(&step["name"]), text(&step["detail"]));
    }
    for attack in &report.attacks {
        let verdict = if is_refused(attack) { "refused" } else { "FAILED " };
        println!("{verdict} {:<28} {}", text(&attack["name"]), text(&attack["code"]));
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
        Purpose::Iommufd | Purpose::NoIommu => Some(kernel::ensure()?),
        Purpose::Type1 | Purpose::AwsF2 | Purpose::Unit => None,
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
    let (failed, console) = (report.failed().join(", "), console());
    let console = console.display();
    ensure!(failed.is_empty(), "failed in the guest: {failed}; its console is in {console}");
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

/// Packs the initramfs.
fn initramfs(setup: &Setup, programs: &[PathBuf; 3], to: &Path) -> Result<()> {
    let archive = Archive::new(std::io::BufWriter::new(fs::File::create(to)?));
    match setup.purpose {
        Purpose::Unit => unit::pack(archive, setup, programs),
        _ => pack(archive, setup, programs),
    }
}

fn pack(mut a: Archive<impl Write>, setup: &Setup, programs: &[PathBuf; 3]) -> Result<()> {
    let [shef, sim, edu] = programs;
    for dir in ["bin", "proc", "sys", "dev", "tmp", "modules"] {
        a.folder(dir)?;
    }
    a.copy("bin/busybox", true, &setup.guest.busybox())?;
    a.copy("bin/shef", true, &stripped(shef)?)?;
    a.copy("bin/shef-sim", true, &stripped(sim)?)?;
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
    a.file("job", false, format!("iommu={}\n{JOB}", setup.purpose.iommu()).as_bytes())?;
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
fn serve(shef: &Path, purpose: Purpose, socket: &Path) -> Result<Running> {
    let (device, _) = purpose.card_and_memory();
    let _ = fs::remove_file(socket);
    let log = folder().join("card.log");
    let mut command = Command::new(shef);
    command.args(["sim", "serve", "--device", device, "--socket"]).arg(socket);
    command.args((purpose == Purpose::AwsF2).then_some(["--shell", "f2"]).into_iter().flatten());
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

/// Builds, starts the card and the guest, waits for its end, and parses its output.
fn boot(setup: &Setup, show: bool) -> Result<Report> {
    let dir = folder();
    fs::create_dir_all(&dir)?;
    let programs = setup.purpose.programs()?;
    let initrd = dir.join("initramfs");
    initramfs(setup, &programs, &initrd)?;
    // The length of a socket's path is limited.
    let sockets = tempfile::tempdir()?;
    let socket = sockets.path().join("card");
    let card = serve(&programs[0], setup.purpose, &socket)?;
    let begin = Instant::now();
    let result = qemu(setup, &initrd, &socket, show);
    let (state, identity) = (ask_card(&socket, "state"), ask_card(&socket, "identity"));
    drop(card);
    let output = result?;
    let mut report = match setup.purpose {
        Purpose::Unit => unit::report(&output),
        purpose => report(&output, purpose),
    };
    report.steps.push(rings(&state));
    if setup.purpose != Purpose::Unit {
        report.steps.push(security_kernel(&identity, setup.purpose));
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

fn qemu(setup: &Setup, initrd: &Path, socket: &Path, show: bool) -> Result<Output> {
    let card = serde_json::json!({
        "driver": "vfio-user-pci",
        "socket": { "type": "unix", "path": socket },
        // An access to a register of a simulated design can take long.
        "x-msg-timeout": 60_000,
    });
    let (_, memory) = setup.purpose.card_and_memory();
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
    if setup.purpose == Purpose::NoIommu {
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
