//! Which files make a design: packages first, then what the top module reaches.

use crate::{DesignSpec, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Root of the repository (`SHEF_ROOT`, else where this crate was compiled).
#[must_use]
pub fn repo_root() -> PathBuf {
    match std::env::var_os("SHEF_ROOT") {
        Some(r) if !r.is_empty() => PathBuf::from(r),
        _ => {
            let p = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            std::fs::canonicalize(&p).unwrap_or(p)
        }
    }
}

fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    for p in paths {
        if p.is_dir() {
            walk(&p, out);
        } else if p.extension().is_some_and(|x| x == "sv" || x == "svh") {
            out.push(p);
        }
    }
}

/// All `*.sv` files below a folder, sorted.
#[must_use]
pub fn sv_files(dir: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    walk(dir, &mut out);
    out.retain(|p| !is_header(p));
    out
}

pub(crate) fn stem(p: &Path) -> String {
    p.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Read where another file includes it, and only there.
pub(crate) fn is_header(p: &Path) -> bool {
    p.extension().is_some_and(|x| x == "svh")
}

pub(crate) fn is_package(p: &Path) -> bool {
    stem(p).ends_with("_pkg")
}

/// All RTL of the Shield: packages first, then `shell-rtl/rtl/**.sv`.
#[must_use]
pub fn rtl_sources() -> Vec<PathBuf> {
    let mut all = sv_files(&repo_root().join("shell-rtl/rtl"));
    all.sort_by_key(|p| (!is_package(p), p.clone()));
    all
}

/// A design with `top` from the Shield's RTL; modules are looked up by file name in `shell-rtl/rtl`
/// and `shell-rtl/shell/sim`. Add an accelerator with [`DesignSpec::search`].
///
/// # Errors
/// When no file is named after the top module.
pub fn module_spec(top: &str) -> Result<DesignSpec> {
    let spec = DesignSpec::new(top).search("shell-rtl/rtl").search("shell-rtl/shell/sim");
    spec.resolve_sources()?;
    Ok(spec)
}

/// The Security Kernel's subsystem `shef_kernel`, around Ibex. `boot` is a folder with the package
/// `shef_kernel_rom_pkg`; without one the shipped boot ROM is taken.
///
/// # Errors
/// When Ibex or a source is missing.
pub fn kernel_spec(boot: Option<&Path>) -> Result<DesignSpec> {
    with_kernel("shef_kernel_top", "shell-rtl/shell/kernel", boot)
}

/// The whole system `shef_system`: the Security Kernel as of [`kernel_spec`], Shield and DMA engine.
/// Add an accelerator with [`DesignSpec::search`].
///
/// # Errors
/// When Ibex or a source is missing.
pub fn system_spec(boot: Option<&Path>) -> Result<DesignSpec> {
    with_kernel("shef_system_top", "shell-rtl/shell/system", boot)
}

fn with_kernel(top: &str, shell: &str, boot: Option<&Path>) -> Result<DesignSpec> {
    let ibex = crate::toolchain::find_ibex()?;
    let spec = DesignSpec::new(top).source("shell-rtl/shell/kernel/ibex.vlt");
    let spec = boot.into_iter().fold(spec, DesignSpec::search).search(shell);
    let foreign = ["rtl", "vendor/lowrisc_ip/ip/prim/rtl", "vendor/lowrisc_ip/dv/sv/dv_utils"];
    let spec = foreign.iter().fold(spec.search("shell-rtl/rtl"), |spec, folder| spec.foreign(ibex.join(folder)));
    spec.resolve_sources()?;
    Ok(spec)
}

/// Identifiers of a source text, comments and strings left out.
fn identifiers(text: &str) -> BTreeSet<&str> {
    let b = text.as_bytes();
    let mut out = BTreeSet::new();
    let mut i = 0;
    while i < b.len() {
        match b[i] {
            b'/' if b.get(i + 1) == Some(&b'/') => {
                while i < b.len() && b[i] != b'\n' {
                    i += 1;
                }
            }
            b'/' if b.get(i + 1) == Some(&b'*') => {
                i += 2;
                while i < b.len() && !(b[i] == b'*' && b.get(i + 1) == Some(&b'/')) {
                    i += 1;
                }
                i += 2;
            }
            b'"' => {
                i += 1;
                while i < b.len() && b[i] != b'"' {
                    i += if b[i] == b'\\' { 2 } else { 1 };
                }
                i += 1;
            }
            c if c.is_ascii_alphabetic() || c == b'_' => {
                let s = i;
                while i < b.len() && (b[i].is_ascii_alphanumeric() || b[i] == b'_' || b[i] == b'$') {
                    i += 1;
                }
                out.insert(&text[s..i]);
            }
            _ => i += 1,
        }
    }
    out
}

impl DesignSpec {
    /// The modules that the top module's text names, as they stand in the design: what the top is a
    /// bench for.
    ///
    /// # Errors
    /// When the top module or a named file is missing.
    pub fn below_top(&self) -> Result<Vec<String>> {
        let files = self.resolve_sources()?;
        let Some(top) = files.iter().find(|p| stem(p) == self.top) else {
            return Err(Error::SourceMissing { module: self.top.clone(), searched: "the design".into() });
        };
        let text = std::fs::read_to_string(top).map_err(|e| Error::io("cannot read", top, &e))?;
        let named = identifiers(&text);
        let module = |p: &&PathBuf| *p != top && !is_package(p) && named.contains(stem(p).as_str());
        Ok(files.iter().filter(module).map(|p| stem(p)).collect())
    }
}

/// The files that a source text includes, by name.
fn included(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.trim().strip_prefix("`include \"")?.split('"').next())
}

/// The files that `roots` and the module `top` reach, packages first, each after what it uses.
pub(crate) fn closure(top: &str, roots: &[PathBuf], search: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut index: BTreeMap<String, PathBuf> = BTreeMap::new();
    for r in roots {
        index.entry(stem(r)).or_insert_with(|| r.clone());
    }
    for dir in search {
        let mut files = Vec::new();
        walk(dir, &mut files);
        for f in files {
            let name = if is_header(&f) { f.file_name().unwrap_or_default().to_string_lossy().into_owned() } else { stem(&f) };
            index.entry(name).or_insert(f);
        }
    }
    let mut start: Vec<PathBuf> = roots.to_vec();
    match index.get(top) {
        Some(p) => start.push(p.clone()),
        None if roots.is_empty() => {
            let searched: Vec<String> = search.iter().map(|p| p.display().to_string()).collect();
            return Err(Error::SourceMissing { module: top.to_owned(), searched: searched.join(", ") });
        }
        None => {}
    }
    fn visit(p: &Path, index: &BTreeMap<String, PathBuf>, seen: &mut BTreeSet<PathBuf>, out: &mut Vec<PathBuf>) -> Result<()> {
        if !seen.insert(p.to_path_buf()) {
            return Ok(());
        }
        let text = std::fs::read_to_string(p).map_err(|e| Error::io("cannot read", p, &e))?;
        // An included file goes by its whole name, or by its stem like any other source.
        let includes = included(&text).flat_map(|f| [Some(f), f.strip_suffix(".sv")]).flatten();
        for name in includes.chain(identifiers(&text)) {
            if let Some(q) = index.get(name) {
                visit(q, index, seen, out)?;
            }
        }
        out.push(p.to_path_buf());
        Ok(())
    }
    let (mut seen, mut out) = (BTreeSet::new(), Vec::new());
    for p in &start {
        visit(p, &index, &mut seen, &mut out)?;
    }
    out.sort_by_key(|p| !is_package(p)); // stable: keeps the order of use
    Ok(out)
}
