//! The generated files of the repository: their list, and whether they are up to date.

use crate::regs::RegisterMap;
use std::path::{Path, PathBuf};

/// A generated file: path below the repository's root, and content.
#[derive(Debug)]
pub struct Generated {
    /// Path below the root.
    pub path: PathBuf,
    /// Expected content.
    pub content: String,
}

/// Every generated file of the repository at `root`. An error message names the faulty source.
pub fn all(root: &Path) -> Result<Vec<Generated>, String> {
    let mut out = Vec::new();
    registers(root, &mut out)?;
    shields(root, &mut out)?;
    microprogram(root, &mut out)?;
    ports(root, &mut out)?;
    Ok(out)
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"))
}

fn registers(root: &Path, out: &mut Vec<Generated>) -> Result<(), String> {
    const SHIELD: &str = "shell-rtl/regs/ctl.toml";
    const DMA: &str = "shell-rtl/regs/dma.toml";
    const KERNEL: &str = "shell-rtl/regs/kernel.toml";
    const F2: &str = "shell-rtl/regs/f2.toml";
    let parse =
        |source| RegisterMap::parse(&read(root, source)?).map_err(|e| format!("{source}: {e}"));
    let (shield, dma, kernel, f2) = (parse(SHIELD)?, parse(DMA)?, parse(KERNEL)?, parse(F2)?);
    let packages = [
        ("shell-rtl/rtl/pkg/shef_regs_pkg.sv", shield.to_systemverilog(SHIELD, "shef_regs_pkg")),
        ("shell-rtl/rtl/dma/shef_dma_regs_pkg.sv", dma.to_systemverilog(DMA, "shef_dma_regs_pkg")),
        (
            "shell-rtl/rtl/kernel/shef_kernel_regs_pkg.sv",
            kernel.to_systemverilog(KERNEL, "shef_kernel_regs_pkg"),
        ),
        ("shell-rtl/shell/aws_f2/shef_f2_regs_pkg.sv", f2.to_systemverilog(F2, "shef_f2_regs_pkg")),
    ];
    let host = shield.and(dma).and(f2);
    let pages = [
        ("attestation/regs/src/lib.rs", host.to_rust()),
        ("attestation/regs/src/bus.rs", kernel.to_rust_bus(KERNEL)),
        ("docs/reference/registers.md", host.and(kernel).to_markdown()),
    ];
    for (path, content) in packages.into_iter().chain(pages) {
        out.push(Generated { path: path.into(), content });
    }
    Ok(())
}

/// One generated package beside the `shield.toml` of each design that is not only a project.
fn shields(root: &Path, out: &mut Vec<Generated>) -> Result<(), String> {
    const FOLDERS: [&str; 3] =
        ["shell-rtl/accel/digits", "shell-rtl/accel/hotp", "sim/rtl/tests/core"];
    for folder in FOLDERS.map(Path::new) {
        let name = folder.join("shield.toml").display().to_string();
        let shield =
            crate::shield::parse(&read(root, &name)?).map_err(|e| format!("{name}:{e}"))?;
        out.push(Generated {
            path: folder.join("shef_cfg_pkg.sv"),
            content: crate::shield::systemverilog(&shield.config, shield.synthesis),
        });
    }
    Ok(())
}

/// The program of the Shield's sequencer.
fn microprogram(root: &Path, out: &mut Vec<Generated>) -> Result<(), String> {
    const FOLDER: &str = "shell-rtl/ucode";
    let program =
        crate::ucode::assemble("shield.uasm", &|file| read(root, &format!("{FOLDER}/{file}")))
            .map_err(|e| format!("{FOLDER}/{e}"))?;
    let content = program.to_systemverilog(&format!("{FOLDER}/shield.uasm"));
    out.push(Generated { path: "shell-rtl/rtl/core/shef_ucode_pkg.sv".into(), content });
    Ok(())
}

/// The port list of a custom logic for AWS F2.
fn ports(root: &Path, out: &mut Vec<Generated>) -> Result<(), String> {
    const TABLE: &str = "shell-rtl/shell/aws_f2/ports.csv";
    let ports = crate::f2::ports(&read(root, TABLE)?).map_err(|e| format!("{TABLE}: {e}"))?;
    let path = "shell-rtl/shell/f2_model/cl_ports.vh".into();
    out.push(Generated { path, content: crate::f2::header(&ports) });
    Ok(())
}

/// Writes the files that differ; returns the paths written.
pub fn write(root: &Path) -> Result<Vec<PathBuf>, String> {
    let stale = stale(root)?;
    for f in &stale {
        std::fs::write(root.join(&f.path), &f.content)
            .map_err(|e| format!("{}: {e}", f.path.display()))?;
    }
    Ok(stale.into_iter().map(|f| f.path).collect())
}

/// The files that differ from their expected content.
pub fn stale(root: &Path) -> Result<Vec<Generated>, String> {
    let all = all(root)?;
    Ok(all
        .into_iter()
        .filter(|f| std::fs::read_to_string(root.join(&f.path)).ok().as_deref() != Some(&f.content))
        .collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_files_are_up_to_date() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let stale = super::stale(&root).unwrap();
        let names: Vec<_> = stale.iter().map(|f| f.path.display().to_string()).collect();
        assert!(names.is_empty(), "out of date: {}; run `cargo xtask generate`", names.join(", "));
    }
}
