//! RTL lint: the module table, Verilator -Wall on every top, and elaboration of every module by yosys' slang front end.

use crate::process::{self, Failure, say};
use crate::{root, tools};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Both.
pub fn run() -> Result<(), Failure> {
    let verilator_bin = tools::ensure_verilator(&root(), &say)?;
    table()?;
    nothing_faked()?;
    verilator(&verilator_bin)?;
    let yosys_bin = tools::ensure_yosys(&root(), &say)?;
    yosys(&yosys_bin)
}

/// All SystemVerilog sources below `dir`, packages first, paths relative to the root, sorted.
pub fn sources(dir: &str) -> Result<Vec<PathBuf>, Failure> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                walk(&path, out)?;
            } else if path.extension().is_some_and(|e| e == "sv") {
                out.push(path);
            }
        }
        Ok(())
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root.join(dir), &mut found).map_err(|e| Failure::failed(format!("{dir}: {e}")))?;
    let mut found: Vec<PathBuf> = found.iter().map(|p| p.strip_prefix(&root).unwrap_or(p).to_path_buf()).collect();
    // Packages by dependency: the shared types first, then generated ones.
    found.sort_by_key(|p| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        (!name.ends_with("_pkg.sv"), name != "shef_pkg.sv", p.clone())
    });
    Ok(found)
}

/// Everything that one design is made of: shared RTL, the digits accelerator, the simulation shell.
pub fn design() -> Result<Vec<PathBuf>, Failure> {
    let mut all = sources("shell-rtl/rtl")?;
    all.extend(sources("shell-rtl/accel/digits")?);
    all.extend(sources("shell-rtl/shell/sim")?);
    all.sort_by_key(|p| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        (!name.ends_with("_pkg.sv"), name != "shef_pkg.sv")
    });
    Ok(all)
}

/// Every module stands in the table of `shell-rtl/README.md`.
pub fn table() -> Result<(), Failure> {
    const TABLE: &str = "shell-rtl/README.md";
    let text = std::fs::read_to_string(root().join(TABLE)).map_err(|e| Failure::failed(format!("{TABLE}: {e}")))?;
    let missing: Vec<String> = design()?
        .iter()
        .filter_map(|p| p.file_stem().map(|n| n.to_string_lossy().into_owned()))
        .filter(|n| !text.contains(&format!("| `{n}` |")))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Failure::failed(format!("{TABLE} has no line for {}", missing.join(", ")))) }
}

/// The RTL computes everything itself: no call out of the simulation, no files, no switch that takes a check away.
pub fn nothing_faked() -> Result<(), Failure> {
    const FORBIDDEN: &[&str] =
        &["$c(", "$c1(", "import \"DPI", "export \"DPI", "$readmem", "$fopen", "$system", "$value$plusargs", "$test$plusargs", "force "];
    let mut found = Vec::new();
    for path in design()? {
        let text = std::fs::read_to_string(root().join(&path)).map_err(|e| Failure::failed(format!("{}: {e}", path.display())))?;
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            found.extend(FORBIDDEN.iter().filter(|f| code.contains(*f)).map(|f| format!("{}:{}: {f}", path.display(), n + 1)));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::failed(found.join("\n"))) }
}

/// `verilator --lint-only -Wall` on each top of the simulation shell.
pub fn verilator(binary: &Path) -> Result<(), Failure> {
    let sources = design()?;
    for top in ["shef_sim_top", "shef_tb_top", "shef_bare_top"] {
        let mut c = Command::new(binary);
        c.current_dir(root()).args(["--lint-only", "-Wall", "-Wno-fatal", "--top-module", top]);
        if let Some(lib) = tools::verilator_root(binary) {
            c.env("VERILATOR_ROOT", lib);
        }
        let out = c.arg("shell-rtl/lint/packages.vlt").args(&sources).output().map_err(|e| Failure::failed(format!("verilator: {e}")))?;
        let text = String::from_utf8_lossy(&out.stderr);
        let findings: Vec<_> = text.lines().filter(|l| l.starts_with('%')).collect();
        if !out.status.success() || !findings.is_empty() {
            return Err(Failure::failed(format!("{top}: {} finding(s)\n{text}", findings.len())));
        }
    }
    Ok(())
}

/// Name of the module that a file holds: one module a file, named like it.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_string_lossy().into_owned();
    (!name.ends_with("_pkg")).then_some(name)
}

/// Elaborates every module of the shipped RTL with its default parameters (the simulation shell looks inside and is left out).
pub fn yosys(binary: &Path) -> Result<(), Failure> {
    let mut all = sources("shell-rtl/rtl")?;
    all.extend(sources("shell-rtl/accel/digits")?);
    all.sort_by_key(|p| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        (!name.ends_with("_pkg.sv"), name != "shef_pkg.sv")
    });
    let files: Vec<String> = all.iter().map(|p| p.display().to_string()).collect();
    let tops: String = all.iter().filter_map(|p| module_name(p)).map(|m| format!(" --top {m}")).collect();
    let script = format!("read_slang -j 1 {}{tops}", files.join(" "));
    let mut c = tools::yosys_command(binary);
    process::run(c.current_dir(root()).args(["-q", "-p", &script]), "yosys (read_slang)")
}
