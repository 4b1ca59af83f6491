//! RTL lint: the module table, Verilator -Wall on every top, and elaboration of every module by
//! yosys' slang front end.

use crate::process::{self, Result, ensure, output};
use crate::{files, root, tools};
use fs_err as fs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs all of them.
pub fn run() -> Result<()> {
    let verilator_bin = tools::verilator()?;
    table()?;
    nothing_faked()?;
    names()?;
    verilator(&verilator_bin)?;
    yosys(&tools::yosys()?)
}

/// The accelerators, each with a configuration of the Shield: the demo's first, then the one
/// without card memory.
pub const ACCELERATORS: [&str; 2] = ["digits", "hotp"];

/// All SystemVerilog sources below `dirs` (folders, or single files), paths relative to the root:
/// packages first, the shared types before all others, then by path.
pub fn sources(dirs: &[&str]) -> Result<Vec<PathBuf>> {
    let root = root();
    let mut found = Vec::new();
    for dir in dirs {
        let files = files::below(&root.join(dir))?.into_iter().filter(|path| files::is(path, "sv"));
        found.extend(files.map(|path| path.strip_prefix(&root).unwrap_or(&path).to_path_buf()));
    }
    found.sort_by_key(|path| {
        let name = files::name(path);
        (!name.ends_with("_pkg.sv"), name != "shef_pkg.sv", path.clone())
    });
    Ok(found)
}

/// Folder of the Security Kernel's subsystem, the only RTL of the project around a third-party
/// block.
pub const KERNEL: &str = "shell-rtl/rtl/kernel";
/// Folder of the RTL that joins it with a design.
pub const SYSTEM: &str = "shell-rtl/rtl/system";

/// Folder of the custom logic for AWS F2 around it.
pub const F2: &str = "shell-rtl/shell/aws_f2";
/// Folders of its simulation; those of the native kernel replace RTL.
const F2_MODEL: [&str; 2] = ["shell-rtl/shell/f2_model", "shell-rtl/shell/f2_native"];

/// The shipped RTL: the Shield and an accelerator.
pub fn shipped(accelerator: &str) -> Result<Vec<PathBuf>> {
    without_kernel(&["shell-rtl/rtl", &format!("shell-rtl/accel/{accelerator}")])
}

/// The shipped RTL, and the simulation shell around it.
fn design(accelerator: &str) -> Result<Vec<PathBuf>> {
    without_kernel(&[
        "shell-rtl/rtl",
        &format!("shell-rtl/accel/{accelerator}"),
        "shell-rtl/shell/sim",
    ])
}

fn without_kernel(dirs: &[&str]) -> Result<Vec<PathBuf>> {
    Ok(sources(dirs)?
        .into_iter()
        .filter(|p| !p.starts_with(KERNEL) && !p.starts_with(SYSTEM))
        .collect())
}

/// The Security Kernel's subsystem with all project RTL that it may use.
pub fn kernel() -> Result<Vec<PathBuf>> {
    sources(&[
        "shell-rtl/rtl/pkg",
        "shell-rtl/rtl/crypto",
        "shell-rtl/rtl/core/shef_axil_master.sv",
        "shell-rtl/rtl/core/shef_axil_slave.sv",
        KERNEL,
    ])
}

/// The Security Kernel's subsystem, Shield and accelerator, and the RTL that joins them.
fn system() -> Result<Vec<PathBuf>> {
    sources(&["shell-rtl/rtl", "shell-rtl/accel/digits"])
}

/// The custom logic for AWS F2 with its simulation top. Modules of the simulation replace those of
/// the same name.
fn f2(native: bool) -> Result<Vec<PathBuf>> {
    let model = &F2_MODEL[..if native { 2 } else { 1 }];
    let mut all = sources(&["shell-rtl/rtl", "shell-rtl/accel/digits", "shell-rtl/shell/sim", F2])?;
    let own = sources(model)?;
    let names: BTreeSet<String> = own.iter().map(|path| files::stem(path)).collect();
    all.retain(|path| {
        let name = files::stem(path);
        let unused = native && path.starts_with(KERNEL);
        !names.contains(&name) && !name.ends_with("_top") && !unused
    });
    all.extend(own);
    Ok(all)
}

/// Its processor: include folders, and the sources that the subsystem uses.
pub fn ibex(ibex: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let prim = ibex.join("vendor/lowrisc_ip/ip/prim/rtl");
    let includes = vec![prim.clone(), ibex.join("vendor/lowrisc_ip/dv/sv/dv_utils")];
    let rtl = IBEX.split_whitespace().map(|name| ibex.join(format!("rtl/ibex_{name}.sv")));
    let shared = PRIM.split_whitespace().map(|name| prim.join(format!("prim_{name}.sv")));
    (includes, rtl.chain(shared).collect())
}

const IBEX: &str = "\
     pkg alu branch_predict compressed_decoder controller core counter cs_registers csr decoder \
     dummy_instr ex_block fetch_fifo icache id_stage if_stage load_store_unit multdiv_fast \
     multdiv_slow pmp prefetch_buffer register_file_ff wb_stage";
const PRIM: &str = "\
     cipher_pkg lfsr onehot_check onehot_enc onehot_mux secded_inv_28_22_dec secded_inv_28_22_enc \
     secded_inv_39_32_dec secded_inv_39_32_enc";

/// The shipped RTL behind the hostile bench, whose accelerator replaces the shipped one and uses
/// its configuration.
fn bench() -> Result<Vec<PathBuf>> {
    let mut all = without_kernel(&[
        "shell-rtl/rtl",
        "shell-rtl/accel/digits",
        "shell-rtl/shell/tb",
        "shell-rtl/shell/sim",
    ])?;
    all.retain(|p| !p.starts_with("shell-rtl/accel") || p.ends_with("shef_cfg_pkg.sv"));
    Ok(all)
}

/// Folder of the accelerators.
const ACCEL: &str = "shell-rtl/accel";

/// The accelerators of the evaluation: projects, as a user has them. Their README has their modules.
fn workloads() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join(ACCEL))? {
        let name = files::name(&entry?.path());
        let project = root().join(ACCEL).join(&name).join("shef.toml");
        if project.exists() && !ACCELERATORS.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "no project in {ACCEL}");
    Ok(names)
}

/// One of them, with the RTL that an accelerator may use.
fn workload(name: &str) -> Result<Vec<PathBuf>> {
    sources(&[
        "shell-rtl/rtl/pkg/shef_pkg.sv",
        "shell-rtl/rtl/core/shef_sweep.sv",
        "shell-rtl/rtl/shield/shef_fifo.sv",
        "shell-rtl/rtl/shield/shef_bram_fifo.sv",
        "shell-rtl/rtl/kit",
        &format!("{ACCEL}/{name}"),
    ])
}

/// All files of all of them.
fn of_workloads() -> Result<BTreeSet<PathBuf>> {
    let mut all = BTreeSet::new();
    for name in workloads()? {
        all.extend(sources(&[&format!("{ACCEL}/{name}")])?);
    }
    Ok(all)
}

/// Everything: the designs of all accelerators, and the bench's.
fn everything() -> Result<BTreeSet<PathBuf>> {
    let mut all: BTreeSet<PathBuf> = bench()?
        .into_iter()
        .chain(system()?)
        .chain(sources(&["shell-rtl/shell/system", F2])?)
        .chain(sources(&F2_MODEL)?)
        .collect();
    for accelerator in ACCELERATORS {
        all.extend(design(accelerator)?);
    }
    Ok(all)
}

/// Every module is in the table of `shell-rtl/README.md`, or in that of its accelerator.
pub fn table() -> Result<()> {
    const TABLE: &str = "shell-rtl/README.md";
    let text = fs::read_to_string(root().join(TABLE))?;
    let modules = everything()?.into_iter().map(|path| files::stem(&path));
    let missing: Vec<String> = modules.filter(|n| !text.contains(&format!("| `{n}` |"))).collect();
    ensure!(missing.is_empty(), "{TABLE} has no line for {}", missing.join(", "));
    for path in of_workloads()? {
        let page = path.with_file_name("README.md");
        let text = fs::read_to_string(root().join(&page))?;
        let name = files::name(&path);
        ensure!(text.contains(&format!("`{name}`")), "{} has no line for {name}", page.display());
    }
    Ok(())
}

/// The RTL computes everything itself: it makes no call out of the simulation, reads no files, and
/// has no switch that removes a check.
pub fn nothing_faked() -> Result<()> {
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
    for path in everything()?.union(&of_workloads()?) {
        let text = fs::read_to_string(root().join(path))?;
        for (n, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let forbidden = FORBIDDEN.iter().filter(|forbidden| code.contains(*forbidden));
            found.extend(forbidden.map(|text| format!("{}:{}: {text}", path.display(), n + 1)));
        }
    }
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// One dialect of names: instances begin with `u_`, labels of generate blocks with `g_`.
pub fn names() -> Result<()> {
    let mut found = Vec::new();
    let mut files = everything()?;
    files.extend(of_workloads()?);
    files.extend(sources(&["shell-rtl/formal"])?);
    for path in files {
        let text = fs::read_to_string(root().join(&path))?;
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
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// `verilator --lint-only -Wall` on each top of the simulation shell, and on that of the bench.
pub fn verilator(binary: &Path) -> Result<()> {
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
            warnings(binary, top, accelerator, |c| c.args(&sources))?;
        }
    }
    for name in workloads()? {
        let sources = workload(&name)?;
        warnings(binary, "shef_accel", &name, |c| c.args(&sources))?;
    }
    let (includes, foreign) = ibex(&tools::ibex()?);
    // Third-party sources are read as in synthesis, without style warnings.
    let waiver = process::target_dir().join("ibex.vlt");
    let rules = "lint_off -file \"*/ibex_*.sv\"\nlint_off -file \"*/prim_*.sv\"\n";
    fs::write(&waiver, format!("`verilator_config\n{rules}"))?;
    let fixed = format!("{SYSTEM}/shef_cfg_fixed.sv");
    warnings(binary, "shef_cfg_fixed", "nothing", |c| c.arg(fixed))?;
    let mut system = system()?;
    system.extend(sources(&["shell-rtl/shell/system", "shell-rtl/shell/sim"])?);
    let tops = [
        ("shef_kernel", "", kernel()?),
        ("shef_system_top", "", system),
        ("shef_f2_top", "", f2(false)?),
        ("shef_f2_top", "", f2(true)?),
        ("shef_f2_top", "-GHbm=1", f2(true)?),
    ];
    for (top, parameter, ours) in tops {
        let (packages, modules): (Vec<_>, Vec<_>) =
            ours.iter().chain(&foreign).partition(|p| module_name(p).is_none());
        warnings(binary, top, "Ibex", |c| {
            c.args(["+define+SYNTHESIS", "-Wno-UNOPTFLAT"]).arg(&waiver);
            c.args(Some(parameter).filter(|text| !text.is_empty()));
            c.args(includes.iter().map(|i| format!("+incdir+{}", i.display())));
            c.args(packages).args(modules)
        })?;
    }
    Ok(())
}

/// `verilator --lint-only -Wall` on one top.
fn warnings(
    binary: &Path,
    top: &str,
    with: &str,
    sources: impl FnOnce(&mut Command) -> &mut Command,
) -> Result<()> {
    let mut c = Command::new(binary);
    c.current_dir(root()).args(["--lint-only", "-Wall", "-Wno-fatal", "--top-module", top]);
    c.args([
        "+incdir+shell-rtl/rtl/pkg",
        "+incdir+shell-rtl/shell/sim",
        "+incdir+shell-rtl/shell/f2_model",
    ]);
    c.envs(tools::verilator_root(binary).map(|lib| ("VERILATOR_ROOT", lib)));
    let out = output(sources(&mut c))?;
    let findings = out.stderr.lines().filter(|l| l.starts_with('%')).count();
    let clean = out.status.success() && findings == 0;
    ensure!(clean, "{top} with {with}: {findings} finding(s)\n{}", out.stderr);
    Ok(())
}

/// Name of the module in a file: one module per file, with the file's name.
fn module_name(path: &Path) -> Option<String> {
    Some(files::stem(path)).filter(|name| !name.ends_with("_pkg"))
}

/// Reads and elaborates; `cargo xtask area` turns processes into cells, once per block instead of
/// once per module and all that it contains.
const READ: &str = "read_slang -j 1 --no-proc";

/// Elaborates every module of the shipped RTL with its default parameters (the simulation shell
/// looks inside and is left out), and the core around each other accelerator.
pub fn yosys(binary: &Path) -> Result<()> {
    let run = |script: String| {
        let mut c = tools::yosys_command(binary);
        process::run(c.current_dir(root()).args(["-q", "-p", &script]), "yosys (read_slang)")
    };
    for (n, accelerator) in ACCELERATORS.iter().enumerate() {
        let all = shipped(accelerator)?;
        let modules = all.iter().filter_map(|p| module_name(p));
        let tops = modules.filter(|m| n == 0 || m == "shef_core").map(|m| format!(" --top {m}"));
        run(format!("{READ}{}{}", arguments("", &all), tops.collect::<String>()))?;
    }
    for name in workloads()? {
        run(format!("{READ}{} --top shef_accel", arguments("", &workload(&name)?)))?;
    }
    let processor = processor(&tools::ibex()?);
    let (kernel, system) = (kernel()?, system()?);
    run(format!("{READ}{}{processor} --top shef_kernel", arguments("", &kernel)))?;
    run(format!(
        "{READ}{}{processor} --top shef_system --top shef_cfg_fixed",
        arguments("", &system)
    ))
}

/// Paths as arguments of the front end, each after a flag.
pub fn arguments(flag: &str, paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!(" {flag}{}", below_root(path).display())).collect()
}

/// Arguments with which yosys' front end reads the processor's sources.
pub fn processor(folder: &Path) -> String {
    let (includes, foreign) = ibex(folder);
    format!(" -D SYNTHESIS{}{}", arguments("-I ", &includes), arguments("", &foreign))
}

/// yosys reads below the current folder only.
fn below_root(path: &Path) -> PathBuf {
    path.strip_prefix(root()).unwrap_or(path).to_path_buf()
}
