//! RTL lint: the module table, Verilator -Wall on every top, and elaboration of every module by
//! yosys' slang front end.

use crate::process::{self, Failure, say};
use crate::{root, tools};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs all of them.
pub fn run() -> Result<(), Failure> {
    let verilator_bin = tools::ensure_verilator(&root(), &say)?;
    table()?;
    nothing_faked()?;
    names()?;
    verilator(&verilator_bin)?;
    let yosys_bin = tools::ensure_yosys(&root(), &say)?;
    yosys(&yosys_bin)
}

/// The accelerators, each with a configuration of the Shield: the demo's first, then the one
/// without card memory.
pub const ACCELERATORS: [&str; 2] = ["digits", "hotp"];

/// All SystemVerilog sources below `dirs` (folders, or single files), paths relative to the root: packages first, the shared
/// types before all others, then by path.
pub fn sources(dirs: &[&str]) -> Result<Vec<PathBuf>, Failure> {
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
    for dir in dirs {
        let path = root.join(dir);
        if path.is_file() {
            found.push(path);
            continue;
        }
        walk(&path, &mut found).map_err(|e| Failure::failed(format!("{dir}: {e}")))?;
    }
    let mut found: Vec<PathBuf> =
        found.iter().map(|p| p.strip_prefix(&root).unwrap_or(p).to_path_buf()).collect();
    found.sort_by_key(|p| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        (!name.ends_with("_pkg.sv"), name != "shef_pkg.sv", p.clone())
    });
    Ok(found)
}

/// Folder of the Security Kernel's subsystem, the only RTL of the project around a third-party
/// block.
pub const KERNEL: &str = "shell-rtl/rtl/kernel";
/// Folder of the RTL that joins it with a design.
pub const SYSTEM: &str = "shell-rtl/rtl/system";

/// The shipped RTL: the Shield and an accelerator.
pub fn shipped(accelerator: &str) -> Result<Vec<PathBuf>, Failure> {
    without_kernel(&["shell-rtl/rtl", &format!("shell-rtl/accel/{accelerator}")])
}

/// The shipped RTL, and the simulation shell around it.
fn design(accelerator: &str) -> Result<Vec<PathBuf>, Failure> {
    without_kernel(&[
        "shell-rtl/rtl",
        &format!("shell-rtl/accel/{accelerator}"),
        "shell-rtl/shell/sim",
    ])
}

fn without_kernel(dirs: &[&str]) -> Result<Vec<PathBuf>, Failure> {
    Ok(sources(dirs)?
        .into_iter()
        .filter(|p| !p.starts_with(KERNEL) && !p.starts_with(SYSTEM))
        .collect())
}

/// The Security Kernel's subsystem with all project RTL that it may use.
pub fn kernel() -> Result<Vec<PathBuf>, Failure> {
    sources(&[
        "shell-rtl/rtl/pkg",
        "shell-rtl/rtl/crypto",
        "shell-rtl/rtl/core/shef_axil_master.sv",
        "shell-rtl/rtl/core/shef_axil_slave.sv",
        KERNEL,
    ])
}

/// The Security Kernel's subsystem, Shield and accelerator, and the RTL that joins them.
fn system() -> Result<Vec<PathBuf>, Failure> {
    sources(&["shell-rtl/rtl", "shell-rtl/accel/digits"])
}

/// Its processor: include folders, and the sources that the subsystem uses.
pub fn ibex(ibex: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let prim = ibex.join("vendor/lowrisc_ip/ip/prim/rtl");
    let includes = vec![prim.clone(), ibex.join("vendor/lowrisc_ip/dv/sv/dv_utils")];
    let rtl = IBEX.iter().map(|name| ibex.join(format!("rtl/ibex_{name}.sv")));
    (includes, rtl.chain(PRIM.iter().map(|name| prim.join(format!("prim_{name}.sv")))).collect())
}

const IBEX: &[&str] = &[
    "pkg",
    "alu",
    "branch_predict",
    "compressed_decoder",
    "controller",
    "core",
    "counter",
    "cs_registers",
    "csr",
    "decoder",
    "dummy_instr",
    "ex_block",
    "fetch_fifo",
    "icache",
    "id_stage",
    "if_stage",
    "load_store_unit",
    "multdiv_fast",
    "multdiv_slow",
    "pmp",
    "prefetch_buffer",
    "register_file_ff",
    "wb_stage",
];
const PRIM: &[&str] = &[
    "cipher_pkg",
    "lfsr",
    "onehot_check",
    "onehot_enc",
    "onehot_mux",
    "secded_inv_28_22_dec",
    "secded_inv_28_22_enc",
    "secded_inv_39_32_dec",
    "secded_inv_39_32_enc",
];

/// The shipped RTL behind the hostile bench, whose accelerator replaces the shipped one and uses
/// its configuration.
fn bench() -> Result<Vec<PathBuf>, Failure> {
    let mut all =
        without_kernel(&["shell-rtl/rtl", "shell-rtl/accel/digits", "shell-rtl/shell/tb"])?;
    all.retain(|p| !p.starts_with("shell-rtl/accel") || p.ends_with("shef_cfg_pkg.sv"));
    Ok(all)
}

/// Everything: the designs of all accelerators, and the bench's.
fn everything() -> Result<BTreeSet<PathBuf>, Failure> {
    let mut all: BTreeSet<PathBuf> = bench()?
        .into_iter()
        .chain(system()?)
        .chain(sources(&["shell-rtl/shell/system"])?)
        .collect();
    for accelerator in ACCELERATORS {
        all.extend(design(accelerator)?);
    }
    Ok(all)
}

/// Every module is in the table of `shell-rtl/README.md`.
pub fn table() -> Result<(), Failure> {
    const TABLE: &str = "shell-rtl/README.md";
    let text = std::fs::read_to_string(root().join(TABLE))
        .map_err(|e| Failure::failed(format!("{TABLE}: {e}")))?;
    let missing: Vec<String> = everything()?
        .iter()
        .filter_map(|p| p.file_stem().map(|n| n.to_string_lossy().into_owned()))
        .filter(|n| !text.contains(&format!("| `{n}` |")))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::failed(format!("{TABLE} has no line for {}", missing.join(", "))))
    }
}

/// The RTL computes everything itself: it makes no call out of the simulation, reads no files, and
/// has no switch that removes a check.
pub fn nothing_faked() -> Result<(), Failure> {
    const FORBIDDEN: &[&str] = &[
        "$c(",
        "$c1(",
        "import \"DPI",
        "export \"DPI",
        "$readmem",
        "$fopen",
        "$system",
        "$value$plusargs",
        "$test$plusargs",
        "force ",
    ];
    let mut found = Vec::new();
    for path in everything()? {
        let text = process::read(&root().join(&path))?;
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            found.extend(
                FORBIDDEN
                    .iter()
                    .filter(|f| code.contains(*f))
                    .map(|f| format!("{}:{}: {f}", path.display(), n + 1)),
            );
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::failed(found.join("\n"))) }
}

/// One dialect of names: instances begin with `u_`, labels of generate blocks with `g_`.
pub fn names() -> Result<(), Failure> {
    let mut found = Vec::new();
    let mut files = everything()?;
    files.extend(sources(&["shell-rtl/formal"])?);
    for path in files {
        let text = process::read(&root().join(&path))?;
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let other = code
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .find(|word| word.starts_with("i_") || word.starts_with("gen_"));
            let label = code.split_once("begin :").map(|(_, label)| label.trim());
            if let Some(name) = other.or(label.filter(|label| !label.starts_with("g_"))) {
                found.push(format!(
                    "{}:{}: {name}: expected u_ for an instance, g_ for a generate block",
                    path.display(),
                    n + 1
                ));
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Failure::failed(found.join("\n"))) }
}

/// `verilator --lint-only -Wall` on each top of the simulation shell, and on that of the bench.
pub fn verilator(binary: &Path) -> Result<(), Failure> {
    let shell = ["shef_sim_top", "shef_host_top", "shef_dma_top", "shef_bare_top"];
    let mut designs = vec![("the bench", bench()?, vec!["shef_tb_top"])];
    for (n, accelerator) in ACCELERATORS.into_iter().enumerate() {
        // Another accelerator changes the tops that contain one.
        designs.push((
            accelerator,
            design(accelerator)?,
            if n == 0 { shell.to_vec() } else { shell[..1].to_vec() },
        ));
    }
    for (accelerator, sources, tops) in designs {
        for top in tops {
            warnings(binary, top, accelerator, |c| {
                c.args(&sources);
            })?;
        }
    }
    let (includes, foreign) = ibex(&tools::ensure_ibex(&root(), &say)?);
    // Third-party sources are read as in synthesis, without style warnings.
    let waiver = process::target_dir().join("ibex.vlt");
    std::fs::write(
        &waiver,
        "`verilator_config\nlint_off -file \"*/ibex_*.sv\"\nlint_off -file \"*/prim_*.sv\"\n",
    )
    .map_err(|e| Failure::failed(format!("{}: {e}", waiver.display())))?;
    warnings(binary, "shef_cfg_fixed", "nothing", |c| {
        c.arg(format!("{SYSTEM}/shef_cfg_fixed.sv"));
    })?;
    let mut system = system()?;
    system.extend(sources(&["shell-rtl/shell/system"])?);
    for (top, ours) in [("shef_kernel", kernel()?), ("shef_system_top", system)] {
        warnings(binary, top, "Ibex", |c| {
            c.args(["+define+SYNTHESIS", "-Wno-UNOPTFLAT"])
                .arg(&waiver)
                .args(includes.iter().map(|i| format!("+incdir+{}", i.display())));
            let (packages, modules): (Vec<_>, Vec<_>) =
                ours.iter().chain(&foreign).partition(|p| module_name(p).is_none());
            c.args(packages).args(modules);
        })?;
    }
    Ok(())
}

/// `verilator --lint-only -Wall` on one top.
fn warnings(
    binary: &Path,
    top: &str,
    with: &str,
    sources: impl FnOnce(&mut Command),
) -> Result<(), Failure> {
    let mut c = Command::new(binary);
    c.current_dir(root()).args(["--lint-only", "-Wall", "-Wno-fatal", "--top-module", top]);
    c.arg("+incdir+shell-rtl/rtl/pkg");
    if let Some(lib) = tools::verilator_root(binary) {
        c.env("VERILATOR_ROOT", lib);
    }
    sources(&mut c);
    let out = c.output().map_err(|e| Failure::failed(format!("verilator: {e}")))?;
    let text = String::from_utf8_lossy(&out.stderr);
    let findings: Vec<_> = text.lines().filter(|l| l.starts_with('%')).collect();
    if !out.status.success() || !findings.is_empty() {
        return Err(Failure::failed(format!(
            "{top} with {with}: {} finding(s)\n{text}",
            findings.len()
        )));
    }
    Ok(())
}

/// Name of the module in a file: one module per file, with the file's name.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_string_lossy().into_owned();
    (!name.ends_with("_pkg")).then_some(name)
}

/// Reads and elaborates; `cargo xtask area` turns processes into cells, once per block instead of
/// once per module and all that it contains.
const READ: &str = "read_slang -j 1 --no-proc";

/// Elaborates every module of the shipped RTL with its default parameters (the simulation shell
/// looks inside and is left out), and the core around each other accelerator.
pub fn yosys(binary: &Path) -> Result<(), Failure> {
    for (n, accelerator) in ACCELERATORS.iter().enumerate() {
        let all = shipped(accelerator)?;
        let files: Vec<String> = all.iter().map(|p| p.display().to_string()).collect();
        let tops: String = all
            .iter()
            .filter_map(|p| module_name(p))
            .filter(|m| n == 0 || m == "shef_core")
            .map(|m| format!(" --top {m}"))
            .collect();
        let script = format!("{READ} {}{tops}", files.join(" "));
        let mut c = tools::yosys_command(binary);
        process::run(c.current_dir(root()).args(["-q", "-p", &script]), "yosys (read_slang)")?;
    }
    let processor = processor(&tools::ensure_ibex(&root(), &say)?);
    for (ours, tops) in
        [(kernel()?, "--top shef_kernel"), (system()?, "--top shef_system --top shef_cfg_fixed")]
    {
        let ours: String = ours.iter().map(|p| format!(" {}", p.display())).collect();
        let script = format!("{READ}{ours}{processor} {tops}");
        let mut c = tools::yosys_command(binary);
        process::run(c.current_dir(root()).args(["-q", "-p", &script]), "yosys (read_slang)")?;
    }
    Ok(())
}

/// Arguments with which yosys' front end reads the processor's sources.
pub fn processor(folder: &Path) -> String {
    let (includes, foreign) = ibex(folder);
    let words = |flag: &str, paths: &[PathBuf]| {
        paths.iter().fold(String::new(), |s, p| format!("{s} {flag}{}", below_root(p).display()))
    };
    format!(" -D SYNTHESIS{}{}", words("-I ", &includes), words("", &foreign))
}

/// yosys reads below the current folder only.
fn below_root(path: &Path) -> PathBuf {
    path.strip_prefix(root()).unwrap_or(path).to_path_buf()
}
