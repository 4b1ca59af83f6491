//! Runs Verilator, shim generator, g++ and linker once per content.

use crate::shim::shim_source;
use crate::sim::Library;
use crate::stage::Stage;
use crate::toolchain::{Toolchain, find_toolchain, target_dir};
use crate::{DesignSpec, Error, Lint, Profile, Result};
use sha2::{Digest, Sha256};
use shef_project::{preprocessed, stem};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Builds (or takes from the cache) and loads a design.
///
/// # Errors
/// Missing tools, rejected RTL or C++, or a full disk.
pub fn build(spec: &DesignSpec) -> Result<Library> {
    build_with(spec, &mut |_| {})
}

/// As [`build`], once in a process for each specification: the design stays loaded until the process
/// ends. For tests, which use one design from many threads.
///
/// # Errors
/// As [`build`].
pub fn build_once(spec: &DesignSpec) -> Result<&'static Library> {
    type Built = Mutex<HashMap<DesignSpec, &'static OnceLock<Library>>>;
    static BUILT: LazyLock<Built> = LazyLock::new(Mutex::default);
    let mut all = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let one: &'static OnceLock<Library> =
        all.entry(spec.clone()).or_insert_with(|| Box::leak(Box::default()));
    drop(all);
    if let Some(library) = one.get() {
        return Ok(library);
    }
    // Two threads may build at the same time: the cache of builds lets the second one wait.
    let library = build(spec)?;
    Ok(one.get_or_init(|| library))
}

/// As [`build`]; `progress` is called with one line per step that takes time.
///
/// # Errors
/// As [`build`].
pub fn build_with(spec: &DesignSpec, progress: &mut dyn FnMut(&str)) -> Result<Library> {
    let tc = find_toolchain()?;
    let (measured, built) = spec.sources.read()?;
    let digest = measured.digest();
    let mut h = Sha256::new();
    h.update(digest);
    if spec.sources.measured.is_some() {
        for source in &built {
            h.update(Sha256::digest(&source.bytes));
        }
    }
    let verilator_flags = verilator_flags(spec);
    let cxx_flags = cxx_flags(spec, &tc);
    let tools = [RECIPE, &tc.verilator_version, &tc.cxx, &tc.cxx_version];
    for s in tools.iter().chain(READING) {
        h.update(s);
        h.update([0]);
    }
    for f in verilator_flags.iter().chain(&cxx_flags) {
        h.update(f);
        h.update([0]);
    }
    if spec.profile == Profile::Fast {
        h.update(processor());
    }
    // The order of the sources, their names in messages, and the way they are read; not the path of
    // the checkout.
    let sources = Stage::new(spec, built);
    for (name, foreign) in sources.names() {
        h.update(name.display().to_string());
        h.update([u8::from(foreign)]);
    }
    let key = hex::encode(&h.finalize()[..16]);
    let cache = cache_dir();
    fs::create_dir_all(&cache).map_err(|e| Error::io("cannot create", &cache, &e))?;
    let dir = cache.join(format!("{}-{key}", spec.sources.top));
    let so = dir.join("model.so");
    if !so.is_file() {
        let _lock = lock(&cache.join(format!("{}-{key}.lock", spec.sources.top)))?;
        if !so.is_file() {
            let tmp = cache.join(format!("{}-{key}.part", spec.sources.top));
            fresh_dir(&tmp)?;
            let job = Job {
                spec,
                tc: &tc,
                sources: &sources,
                dir: &tmp,
                cache: &cache,
                cxx_flags: &cxx_flags,
            };
            job.run(&verilator_flags, &hex::encode(digest), progress)?;
            // Leftovers of an earlier attempt would block the rename.
            if dir.exists() {
                fs::remove_dir_all(&dir).map_err(|e| Error::io("cannot remove", &dir, &e))?;
            }
            fs::rename(&tmp, &dir).map_err(|e| Error::io("cannot rename", &tmp, &e))?;
        }
    }
    Library::load(&so, &spec.sources.top)
}

/// Folder of build results: `verilated` below `SHEF_CACHE`, which several checkouts may share, else
/// below `target`.
#[must_use]
pub fn cache_dir() -> PathBuf {
    let base = std::env::var_os("SHEF_CACHE")
        .filter(|c| !c.is_empty())
        .map_or_else(target_dir, PathBuf::from);
    base.join("verilated")
}

/// The recipe for objects: these files. A change to them rebuilds the objects.
const RECIPE: &str =
    concat!(include_str!("build.rs"), include_str!("stage.rs"), include_str!("shim.rs"));
/// Rules for sources. A change to them also rebuilds objects.
const READING: &[&str] = &[include_str!("spec.rs"), shef_project::RULES];

/// The meaning of `-march=native` on this machine: results are not shared between processors of
/// different instruction sets.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line =
        |name: &str| text.lines().find(|l| l.starts_with(name)).unwrap_or_default().to_owned();
    line("model name") + &line("flags") + &line("Features")
}

fn lock(path: &Path) -> Result<File> {
    let f = File::create(path).map_err(|e| Error::io("cannot create", path, &e))?;
    f.lock().map_err(|e| Error::io("cannot lock", path, &e))?;
    Ok(f)
}

fn fresh_dir(p: &Path) -> Result<()> {
    if p.exists() {
        fs::remove_dir_all(p).map_err(|e| Error::io("cannot remove", p, &e))?;
    }
    fs::create_dir_all(p).map_err(|e| Error::io("cannot create", p, &e))
}

fn verilator_flags(spec: &DesignSpec) -> Vec<String> {
    let mut f: Vec<String> = [
        "--cc",
        "--no-timing",
        "-O3",
        "--x-assign",
        "fast",
        "--x-initial",
        if spec.random_contents { "unique" } else { "fast" },
        "--assert",
        "--prefix",
        "Vtop",
        "--output-split",
        "30000",
        "--output-split-cfuncs",
        "3000",
        "--threads",
        "1",
    ]
    .map(str::to_owned)
    .to_vec();
    match spec.lint {
        // Warnings are logged; an error of the design ends the build.
        Lint::Log => {
            f.extend(["-Wno-fatal", "-Werror-USERERROR", "-Werror-MODDUP"].map(str::to_owned));
        }
        Lint::Deny => f.push("-Wall".into()),
    }
    if spec.trace {
        f.extend(["--trace-fst", "--trace-structs"].map(str::to_owned));
    }
    if spec.coverage {
        f.extend(["--coverage-line", "--coverage-user"].map(str::to_owned));
    } else if spec.savable {
        f.push("--savable".into());
    }
    f.push("--top-module".into());
    f.push(spec.sources.top.clone());
    f.extend(spec.sources.params.iter().map(|(k, v)| format!("-G{k}={v}")));
    f.extend(spec.sources.defines.iter().map(|(k, v)| format!("+define+{k}={v}")));
    f
}

/// A JSON document beside the library that records the result's [`DesignSpec`] and its build time.
const RECORD: &str = "build.json";

fn cxx_flags(spec: &DesignSpec, tc: &Toolchain) -> Vec<String> {
    let mut f: Vec<String> = [
        "-std=gnu++17",
        "-fPIC",
        "-fvisibility=hidden",
        "-w",
        "-DVM_COVERAGE=0",
        "-DVM_SC=0",
        "-DVERILATOR=1",
        "-fno-strict-aliasing",
        "-fcf-protection=none",
        "-pthread",
    ]
    .map(str::to_owned)
    .to_vec();
    if spec.coverage {
        f[4] = "-DVM_COVERAGE=1".into();
    }
    if tc.cxx_version.contains("clang") {
        f.push("-fbracket-depth=4096".into());
    } else {
        f.push("-fno-gnu-unique".into());
    }
    f.extend(match spec.profile {
        Profile::Quick => vec!["-O1".to_owned()],
        Profile::Fast => vec!["-O3".to_owned(), "-march=native".to_owned()],
    });
    if spec.trace {
        f.extend(["-DVM_TRACE=1", "-DVM_TRACE_FST=1"].map(str::to_owned));
    } else {
        f.push("-DVM_TRACE=0".into());
    }
    if spec.savable && !spec.coverage {
        f.push("-DVM_SAVABLE=1".into());
    }
    f
}

struct Job<'a> {
    spec: &'a DesignSpec,
    tc: &'a Toolchain,
    sources: &'a Stage,
    dir: &'a Path,
    cache: &'a Path,
    cxx_flags: &'a [String],
}

impl Job<'_> {
    fn run(
        &self,
        verilator_flags: &[String],
        digest: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let top = &self.spec.sources.top;
        progress(&format!("{top}: Verilator"));
        let start = Instant::now();
        let obj = self.dir.join("obj");
        let log = self.dir.join("verilator.log");
        let stage = self.dir.join("src");
        self.sources.write(&stage)?;
        let verilator = |more: &[&str]| {
            let mut c = Command::new(&self.tc.verilator);
            c.current_dir(&stage)
                .env("VERILATOR_ROOT", &self.tc.root)
                .args(verilator_flags)
                .args(more);
            c.args(self.sources.arguments());
            c
        };
        let refused = || {
            self.sources.name_outside(&log)?;
            Err(Error::Verilate {
                top: top.clone(),
                log: log.display().to_string(),
                tail: tail(&log),
            })
        };
        if !self.spec.sources.projects.is_empty() {
            // Without its warnings, which quote the sources.
            let text = self.dir.join("preprocessed.sv");
            if !self.run_to(verilator(&["-E"]), &text, &log, "verilator")? {
                return refused();
            }
            let bytes = fs::read(&text).map_err(|e| Error::io("cannot read", &text, &e))?;
            preprocessed(&self.spec.sources, &bytes, |name| self.sources.original(name))?;
            let _ = fs::remove_file(&text);
        }
        if !self.logged(verilator(&["--Mdir", "../obj"]), &log, "verilator")? {
            return refused();
        }
        self.read_only_the_stage(&obj)?;
        let verilated = start.elapsed();
        let header = obj.join("Vtop.h");
        let text =
            fs::read_to_string(&header).map_err(|e| Error::io("cannot read", &header, &e))?;
        let shim = obj.join("shim.cpp");
        fs::write(&shim, shim_source(top, &text, digest, self.spec)?)
            .map_err(|e| Error::io("cannot write", &shim, &e))?;

        let runtime = self.runtime(progress)?;
        let units = grouped(&obj)?;
        progress(&format!("{top}: g++"));
        let objects = self.compile(&units, &obj)?;
        let so = self.dir.join("model.so");
        let mut c = Command::new(&self.tc.cxx);
        c.args(["-shared", "-pthread", "-Wl,-Bsymbolic", "-o"])
            .arg(&so)
            .args(&objects)
            .arg(&runtime);
        if self.spec.trace {
            c.args(["-llz4", "-lz"]);
        }
        let log = self.dir.join("link.log");
        if !self.logged(c, &log, "g++")? {
            return Err(Error::Compile {
                top: top.clone(),
                log: log.display().to_string(),
                tail: tail(&log),
            });
        }
        let _ = fs::remove_dir_all(&obj);
        let _ = fs::remove_dir_all(&stage);
        let record = self.dir.join(RECORD);
        let text = format!(
            "{{\"design\":\"{}\",\"profile\":\"{:?}\",\"verilator_ms\":{},\"cxx_ms\":{}}}\n",
            self.label(),
            self.spec.profile,
            verilated.as_millis(),
            (start.elapsed() - verilated).as_millis()
        );
        fs::write(&record, text).map_err(|e| Error::io("cannot write", &record, &e))
    }

    /// The top module, its parameters, and the folder of an external configuration.
    fn label(&self) -> String {
        let folder = self.sources.folder();
        let params = self.spec.sources.params.iter().map(|(k, v)| format!("{k}={v}"));
        let label: Vec<String> =
            [self.spec.sources.top.clone()].into_iter().chain(folder).chain(params).collect();
        label.join(" ").replace(['"', '\\'], "")
    }

    /// Checks Verilator's list of read files: only staged files and Verilator's own are allowed.
    fn read_only_the_stage(&self, obj: &Path) -> Result<()> {
        let list = obj.join("Vtop__ver.d");
        let text = fs::read_to_string(&list).map_err(|e| Error::io("cannot read", &list, &e))?;
        let read = text.split_once(" : ").map_or("", |(_, read)| read).split_ascii_whitespace();
        let own = |path: &Path| path.starts_with(&self.tc.root) || path == self.tc.verilator;
        let inside = |path: &Path| {
            path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        match read.map(Path::new).find(|path| !inside(path) && !own(path)) {
            None => Ok(()),
            Some(path) => {
                let what = "Verilator read this file, which is no source of the design".to_owned();
                Err(shef_project::Error::Source { place: path.display().to_string(), what }.into())
            }
        }
    }

    fn logged(&self, c: Command, log: &Path, what: &'static str) -> Result<bool> {
        let f = File::create(log).map_err(|e| Error::io("cannot create", log, &e))?;
        let g = f.try_clone().map_err(|e| Error::io("cannot create", log, &e))?;
        Self::started(c, f, g, what)
    }

    /// Writes the output to `out`, and messages to `log`.
    fn run_to(&self, c: Command, out: &Path, log: &Path, what: &'static str) -> Result<bool> {
        let create =
            |path: &Path| File::create(path).map_err(|e| Error::io("cannot create", path, &e));
        Self::started(c, create(out)?, create(log)?, what)
    }

    fn started(mut c: Command, out: File, log: File, what: &'static str) -> Result<bool> {
        // Variables that add folders to a compiler's search path.
        for variable in [
            "CPATH",
            "C_INCLUDE_PATH",
            "CPLUS_INCLUDE_PATH",
            "LIBRARY_PATH",
            "GCC_EXEC_PREFIX",
            "COMPILER_PATH",
        ] {
            c.env_remove(variable);
        }
        let s = c
            .stdin(Stdio::null())
            .stdout(Stdio::from(out))
            .stderr(Stdio::from(log))
            .status()
            .map_err(|e| Error::io("cannot start", Path::new(what), &e))?;
        Ok(s.success())
    }

    /// Compiles `units` into `out`, two at a time.
    fn compile(&self, units: &[PathBuf], out: &Path) -> Result<Vec<PathBuf>> {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let failed: std::sync::Mutex<Option<Error>> = std::sync::Mutex::new(None);
        let object = |u: &Path| out.join(format!("{}.o", stem(u)));
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(u) = units.get(i) else { break };
                        if failed.lock().is_ok_and(|f| f.is_some()) {
                            break;
                        }
                        let log = out.join(format!("{}.log", stem(u)));
                        let mut c = Command::new(&self.tc.cxx);
                        c.args(self.cxx_flags);
                        // Verilator's "slow" code runs once: optimising its megabytes of initial
                        // values would take minutes
                        if stem(u).contains("__Slow") {
                            c.arg("-O0");
                        }
                        for include in ["include", "include/vltstd"] {
                            c.arg("-I").arg(self.tc.root.join(include));
                        }
                        c.arg("-I").arg(out).arg("-c").arg(u).arg("-o").arg(object(u));
                        let r = match self.logged(c, &log, "g++") {
                            Ok(true) => continue,
                            Ok(false) => {
                                let t = tail(&log);
                                if t.contains("lz4.h") || t.contains("zlib.h") {
                                    Error::TraceLibraries
                                } else {
                                    Error::Compile {
                                        top: self.spec.sources.top.clone(),
                                        log: log.display().to_string(),
                                        tail: t,
                                    }
                                }
                            }
                            Err(e) => e,
                        };
                        if let Ok(mut f) = failed.lock() {
                            f.get_or_insert(r);
                        }
                    }
                });
            }
        });
        if let Some(e) = failed.into_inner().unwrap_or(None) {
            return Err(e);
        }
        Ok(units.iter().map(|u| object(u)).collect())
    }

    /// Verilator's runtime as an archive, shared by all designs with the same flags.
    fn runtime(&self, progress: &mut dyn FnMut(&str)) -> Result<PathBuf> {
        let mut h = Sha256::new();
        for s in [RECIPE, &self.tc.verilator_version, &self.tc.cxx, &self.tc.cxx_version] {
            h.update(s);
            h.update([0]);
        }
        for f in self.cxx_flags {
            h.update(f);
            h.update([0]);
        }
        if self.spec.profile == Profile::Fast {
            h.update(processor());
        }
        let key = hex::encode(&h.finalize()[..8]);
        let done = self.cache.join(format!("runtime-{key}"));
        let lib = done.join("libverilated.a");
        if lib.is_file() {
            return Ok(lib);
        }
        let _lock = lock(&self.cache.join(format!("runtime-{key}.lock")))?;
        if lib.is_file() {
            return Ok(lib);
        }
        progress("Verilator's runtime: g++");
        let tmp = self.cache.join(format!("runtime-{key}.part"));
        fresh_dir(&tmp)?;
        let mut names = vec!["verilated.cpp", "verilated_threads.cpp"];
        if self.spec.trace {
            names.push("verilated_fst_c.cpp");
        }
        if self.spec.coverage {
            names.push("verilated_cov.cpp");
        } else if self.spec.savable {
            names.push("verilated_save.cpp");
        }
        let units: Vec<PathBuf> =
            names.iter().map(|n| self.tc.root.join("include").join(n)).collect();
        let objects = self.compile(&units, &tmp)?;
        let mut c = Command::new("ar");
        c.arg("crs").arg(tmp.join("libverilated.a")).args(&objects);
        let log = tmp.join("ar.log");
        if !self.logged(c, &log, "ar")? {
            return Err(Error::Compile {
                top: "runtime".into(),
                log: log.display().to_string(),
                tail: tail(&log),
            });
        }
        if done.exists() {
            fs::remove_dir_all(&done).map_err(|e| Error::io("cannot remove", &done, &e))?;
        }
        fs::rename(&tmp, &done).map_err(|e| Error::io("cannot rename", &tmp, &e))?;
        Ok(lib)
    }
}

/// Bytes of C++ below which a design is one unit.
const SMALL: u64 = 500_000;

/// Joins Verilator's files into three: two of similar size for the code that runs in every cycle,
/// and one for the code that runs once. Every file reads the same headers, which takes the compiler
/// as long as the file itself; two compilers run in parallel.
fn grouped(obj: &Path) -> Result<Vec<PathBuf>> {
    let mut groups = [
        ("hot0.cpp", 0, String::new()),
        ("hot1.cpp", 0, String::new()),
        ("once__Slow.cpp", 0, String::new()),
    ];
    let mut files: Vec<(u64, PathBuf)> = fs::read_dir(obj)
        .map_err(|e| Error::io("cannot list", obj, &e))?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|x| x == "cpp"))
        .map(|p| (p.metadata().map_or(0, |m| m.len()), p))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    let small = files.iter().map(|(size, _)| size).sum::<u64>() < SMALL;
    for (size, file) in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let group = match name.contains("__Slow") {
            _ if small => 0,
            true => 2,
            false => usize::from(groups[0].1 > groups[1].1),
        };
        groups[group].1 += size;
        let _ = writeln!(groups[group].2, "#include \"{name}\"");
    }
    let mut units = Vec::new();
    for (name, size, text) in groups.iter().filter(|g| !g.2.is_empty()) {
        let path = obj.join(name);
        fs::write(&path, text).map_err(|e| Error::io("cannot write", &path, &e))?;
        units.push((*size, path));
    }
    // The longest first.
    units.sort_by(|a, b| b.cmp(a));
    Ok(units.into_iter().map(|(_, path)| path).collect())
}

/// First errors of a log, for the message: an excerpt, whose lines stay lines where it is shown.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|l| l.contains("rror")).take(12).collect();
    let lines: Vec<&str> = text.lines().collect();
    let shown = if errors.is_empty() { &lines[lines.len().saturating_sub(12)..] } else { &errors };
    let shown: Vec<String> = shown.iter().map(|line| format!("  | {line}")).collect();
    shown.join("\n")
}
