//! Runs Verilator, shim generator, g++ and linker once per content.

use crate::sim::Library;
use crate::toolchain::{Toolchain, find_toolchain, target_dir};
use crate::{DesignSpec, Error, Lint, Profile, Result};
use sha2::{Digest, Sha256};
use shef_project::{Source, preprocessed, repo_root, stem};
use std::collections::{BTreeSet, HashMap};
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
    let sources = staged(spec, built);
    for s in &sources {
        h.update(s.name.display().to_string());
        h.update([u8::from(s.foreign)]);
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

/// The recipe for objects: this file. A change to it rebuilds them.
const RECIPE: &str = include_str!("build.rs");
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
        "fast",
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

/// One file of a design, as staged for Verilator.
struct Staged {
    source: Source,
    /// Path below Verilator's working folder: as below the repository, or `outside/` and the name in
    /// the manifest (which is unique in a design).
    name: PathBuf,
    /// Read as in synthesis.
    foreign: bool,
}

/// Names that do not depend on the paths of the repository and of generated packages: a copied
/// checkout finds the results of another.
fn staged(spec: &DesignSpec, sources: Vec<Source>) -> Vec<Staged> {
    let (root, target) = (repo_root(), target_dir());
    let name = |source: &Source| {
        let path = &source.path;
        let below = path.strip_prefix(&root).ok().filter(|_| !path.starts_with(&target));
        below.map_or_else(|| Path::new(OUTSIDE).join(&source.name), Path::to_path_buf)
    };
    sources
        .into_iter()
        .map(|source| Staged {
            name: name(&source),
            foreign: spec.sources.is_foreign(&source.path),
            source,
        })
        .collect()
}

/// Folder for sources from outside the repository.
const OUTSIDE: &str = "outside";
/// Folder for headers that are included by a path.
const INCLUDE: &str = "include";

struct Job<'a> {
    spec: &'a DesignSpec,
    tc: &'a Toolchain,
    sources: &'a [Staged],
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
        let stage = self.stage()?;
        let verilator = |more: &[&str]| {
            let mut c = Command::new(&self.tc.verilator);
            c.current_dir(&stage)
                .env("VERILATOR_ROOT", &self.tc.root)
                .args(verilator_flags)
                .args(more);
            let headers = self.sources.iter().filter(|s| !s.source.unit);
            let folders: BTreeSet<&Path> = headers.filter_map(|s| s.name.parent()).collect();
            // A spelling names one header; a name may be that of several.
            let folders = [Path::new(INCLUDE)].into_iter().chain(folders);
            c.args(folders.map(|f| format!("+incdir+{}", f.display())));
            c.args(self.sources.iter().filter(|s| s.source.unit).map(|s| &s.name));
            c
        };
        let refused = || {
            self.name_outside(&log)?;
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
            let is = |s: &Staged, name: &Path| {
                s.name == name
                    || name.strip_prefix(INCLUDE).is_ok_and(|n| s.source.spellings.contains(n))
            };
            let file = |name: &str| {
                self.sources
                    .iter()
                    .find(|s| is(s, Path::new(name)))
                    .map(|s| s.source.path.as_path())
            };
            preprocessed(&self.spec.sources, &bytes, file)?;
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
        let outside = self
            .sources
            .iter()
            .find(|s| s.name.starts_with(OUTSIDE))
            .and_then(|s| s.source.path.parent()?.file_name());
        let folder = outside.map(|f| f.to_string_lossy().into_owned());
        let params = self.spec.sources.params.iter().map(|(k, v)| format!("{k}={v}"));
        let label: Vec<String> =
            [self.spec.sources.top.clone()].into_iter().chain(folder).chain(params).collect();
        label.join(" ").replace(['"', '\\'], "")
    }

    /// Writes the measured bytes to the files that Verilator reads.
    fn stage(&self) -> Result<PathBuf> {
        let stage = self.dir.join("src");
        for s in self.sources {
            let bytes = &s.source.bytes;
            let has = |word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
            // Only in modules and packages: an included file would undefine the macro for its
            // includer.
            let text = if s.foreign && (has(b"\nendmodule") || has(b"\nendpackage")) {
                let line = format!("`define SYNTHESIS\n`line 1 \"{}\" 0\n", s.name.display());
                [line.as_bytes(), bytes, b"\n`undef SYNTHESIS\n"].concat()
            } else {
                bytes.clone()
            };
            let spelled =
                s.source.spellings.iter().map(|spelling| Path::new(INCLUDE).join(spelling));
            for name in [s.name.clone()].into_iter().chain(spelled) {
                let to = stage.join(name);
                let folder = to.parent().unwrap_or(&stage);
                fs::create_dir_all(folder).map_err(|e| Error::io("cannot create", folder, &e))?;
                fs::write(&to, &text).map_err(|e| Error::io("cannot write", &to, &e))?;
            }
        }
        Ok(stage)
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

    /// Restores the original path of files from outside the repository in messages.
    fn name_outside(&self, log: &Path) -> Result<()> {
        let text = fs::read(log).map_err(|e| Error::io("cannot read", log, &e))?;
        let mut text = String::from_utf8_lossy(&text).into_owned();
        for s in self.sources.iter().filter(|s| s.name.starts_with(OUTSIDE)) {
            text =
                text.replace(&s.name.display().to_string(), &s.source.path.display().to_string());
        }
        fs::write(log, text).map_err(|e| Error::io("cannot write", log, &e))
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

/// First errors of a log, for the message.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default();
    let errors: Vec<&str> = text.lines().filter(|l| l.contains("rror")).take(12).collect();
    if errors.is_empty() {
        let l: Vec<&str> = text.lines().collect();
        l[l.len().saturating_sub(12)..].join("\n")
    } else {
        errors.join("\n")
    }
}

/// Serialisation of a model (Verilator's `--savable`) to and from memory. The reader's end lies
/// behind the data by Verilator's look-ahead, so that it never requests more.
const SAVE: &str = r#"
#include <cstring>
#include <vector>
#include "verilated_save.h"
struct mem_save final : public VerilatedSerialize {
  std::vector<uint8_t> out;
  mem_save() { m_isOpen = true; }
  void flush() override { out.insert(out.end(), m_bufp, m_cp); m_cp = m_bufp; }
};
struct mem_restore final : public VerilatedDeserialize {
  std::vector<uint8_t> in;
  mem_restore(const uint8_t* p, uint64_t n) : in(n + bufferInsertSize(), 0) {
    std::memcpy(in.data(), p, n);
    m_isOpen = true;
    m_cp = in.data();
    m_endp = in.data() + in.size();
  }
  bool whole(uint64_t n) const { return m_cp == in.data() + n; }
  void fill() override {}
};
API uint64_t shef_save(handle* m, uint8_t* to, uint64_t room) {
  mem_save s;
  s << m->model;
  s.flush();
  if (s.out.size() <= room) std::memcpy(to, s.out.data(), s.out.size());
  return s.out.size();
}
API uint32_t shef_restore(handle* m, const uint8_t* from, uint64_t n) {
  mem_restore r(from, n);
  r >> m->model;
  return r.whole(n) ? 1 : 0;
}
"#;

/// The same with coverage, which Verilator's serialisation does not support: the bytes of the
/// module instances, which lie before the counters, so that the counters continue. The bytes
/// contain pointers into their instance and are restored only into that instance.
const SAVE_BESIDE_COVERAGE: &str = r#"
#include <cstring>
#include "Vtop__Syms.h"
static uint8_t* state_of(handle* m) { return (uint8_t*)&m->model.rootp->vlSymsp->TOP; }
static uint64_t size_of(handle* m) { return (uint64_t)((uint8_t*)m->model.rootp->vlSymsp->__Vcoverage - state_of(m)); }
API uint64_t shef_save(handle* m, uint8_t* to, uint64_t room) {
  const uint64_t n = sizeof(m->number) + size_of(m);
  if (n <= room) {
    std::memcpy(to, &m->number, sizeof(m->number));
    std::memcpy(to + sizeof(m->number), state_of(m), size_of(m));
  }
  return n;
}
API uint32_t shef_restore(handle* m, const uint8_t* from, uint64_t n) {
  if (n != sizeof(m->number) + size_of(m) || std::memcmp(from, &m->number, sizeof(m->number)) != 0) return 0;
  std::memcpy(state_of(m), from + sizeof(m->number), size_of(m));
  return 1;
}
"#;

/// The `extern "C"` side: create, evaluate, free, and the address of each port.
fn shim_source(top: &str, header: &str, digest: &str, spec: &DesignSpec) -> Result<String> {
    let mut ports = String::new();
    let mut count = 0u32;
    let mut add = |name: &str, dir: u32, (hi, lo): (i64, i64), at: &str| {
        let bits = (hi - lo).abs() + 1;
        let _ = writeln!(
            ports,
            "  if (i == {count}) return shef_port{{\"{name}\", {dir}, {bits}, (void*)&m->model.{at}}};"
        );
        count += 1;
    };
    for line in header.lines().map(str::trim) {
        let bad = || Error::PortForm { top: top.to_owned(), port: line.to_owned() };
        // `VlUnpacked<type/*hi:lo*/, n> &bus_signal;`: element k is the port `busk_signal`; the
        // header does not give its direction
        if let Some((array, name)) =
            line.strip_prefix("VlUnpacked<").and_then(|l| l.strip_suffix(';')?.split_once("> &"))
        {
            let (_, range) = array.split_once("/*").ok_or_else(bad)?;
            let (range, n) = range.split_once("*/, ").ok_or_else(bad)?;
            let (hi, lo) = range.split_once(':').ok_or_else(bad)?;
            let number = |s: &str| s.parse::<i64>().map_err(|_| bad());
            let (bus, signal) = name.split_once('_').ok_or_else(bad)?;
            for k in 0..number(n)? {
                add(
                    &format!("{bus}{k}_{signal}"),
                    2,
                    (number(hi)?, number(lo)?),
                    &format!("{name}[{k}]"),
                );
            }
            continue;
        }
        let Some((mac, rest)) = line.split_once('(') else { continue };
        let dir = if mac.starts_with("VL_INOUT") {
            2
        } else if mac.starts_with("VL_IN") {
            0
        } else if mac.starts_with("VL_OUT") {
            1
        } else {
            continue;
        };
        let body = rest.split(')').next().ok_or_else(bad)?;
        let mut f = body.split(',');
        let name = f.next().and_then(|n| n.trim().strip_prefix('&')).ok_or_else(bad)?;
        let mut num = || f.next().and_then(|n| n.trim().parse::<i64>().ok()).ok_or_else(bad);
        let (hi, lo) = (num()?, num()?);
        if !rest.trim_end().ends_with(");") || name.contains('[') {
            return Err(bad());
        }
        add(name, dir, (hi, lo), name);
    }
    let trace_inc = if spec.trace { "#include \"verilated_fst_c.h\"\n" } else { "" };
    let trace = if spec.trace {
        r#"
API int32_t shef_trace_open(handle* m, const char* path) {
  if (!m->fst) { m->fst = new VerilatedFstC; m->model.trace(m->fst, 99); }
  m->fst->open(path);
  return m->fst->isOpen() ? 1 : 0;
}
API void shef_trace_dump(handle* m, uint64_t t) { m->fst->dump(t); }
API void shef_trace_close(handle* m) { if (m->fst) m->fst->close(); }
"#
    } else {
        ""
    };
    let trace_on = if spec.trace { "ctx.traceEverOn(true);" } else { "" };
    let trace_member = if spec.trace {
        "VerilatedFstC* fst = nullptr; ~handle() { model.final(); delete fst; }"
    } else {
        "~handle() { model.final(); }"
    };
    let cov = if spec.coverage {
        "#include \"verilated_cov.h\"\nAPI void shef_coverage(handle* m, const char* path) { m->ctx.coveragep()->forcePerInstance(true); m->ctx.coveragep()->write(path); }\n"
    } else {
        ""
    };
    let save = match (spec.savable, spec.coverage) {
        (false, _) => "",
        (true, false) => SAVE,
        (true, true) => SAVE_BESIDE_COVERAGE,
    };
    Ok(format!(
        r#"// Generated: C interface of {top}.
#include <atomic>
#include <cstdint>
#include "verilated.h"
{trace_inc}#include "Vtop.h"
#define API extern "C" __attribute__((visibility("default")))
static std::atomic<uint64_t> handles{{0}};
struct handle {{
  const uint64_t number = ++handles;
  VerilatedContext ctx;
  struct on {{ on(VerilatedContext& ctx, uint32_t seed) {{ (void)ctx; ctx.randSeed((int)seed); {trace_on} }} }} on_;
  Vtop model;
  {trace_member}
  handle(uint32_t seed) : ctx(), on_(ctx, seed), model(&ctx, "top") {{}}
}};
struct shef_port {{ const char* name; uint32_t dir; uint32_t bits; void* at; }};
extern "C" {{
__attribute__((visibility("default"))) extern const char shef_design_digest[65] = "{digest}";
__attribute__((visibility("default"))) extern const uint32_t shef_port_count = {count};
}}
API handle* shef_new(uint32_t seed) {{ return new handle(seed); }}
// Older runtimes look up the context of the thread while they take a model down: it must be this
// one's.
API void shef_free(handle* m) {{ Verilated::threadContextp(&m->ctx); delete m; }}
API void shef_eval(handle* m) {{ m->model.eval(); }}
API uint32_t shef_finished(handle* m) {{ return m->ctx.gotFinish(); }}
API void shef_run(handle* m, uint8_t* clk, uint64_t n) {{
  for (uint64_t i = 0; i < n; ++i) {{ *clk = 0; m->model.eval(); *clk = 1; m->model.eval(); }}
}}
API shef_port shef_port_at(handle* m, uint32_t i) {{
{ports}  return shef_port{{nullptr, 0, 0, nullptr}};
}}
{trace}{cov}{save}"#
    ))
}
