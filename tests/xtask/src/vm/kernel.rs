//! A kernel with features that Debian's kernels lack: iommufd with per-function nodes, and no-IOMMU
//! mode. It is built once from Debian's source package with a minimal configuration for a guest
//! (`tests/vm/kernel.config`), under `target/tools`, in about seven minutes of CPU time.

use super::packages::{Apt, files, once, output};
use crate::process::say;
use crate::tools;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The source package of a long-term kernel.
const SOURCE: &str = "linux-source-6.12";
/// Options in addition to `tinyconfig`.
const CONFIG: &str = include_str!("../../../vm/kernel.config");
/// Build dependencies in addition to a C compiler and make.
const PACKAGES: &str = "flex bison bc libelf-dev xz-utils";

/// The kernel image, built if need be; otherwise the reason, and the command that helps.
pub fn ensure(root: &Path) -> Result<PathBuf, String> {
    let tools = root.join("target/tools");
    let digest: String = Sha256::digest(format!("{SOURCE}\n{CONFIG}"))
        .iter()
        .take(6)
        .map(|b| format!("{b:02x}"))
        .collect();
    let image = tools.join(format!("kernel-{digest}"));
    once(&tools, "kernel", || image.is_file(), |part| build(part, &image))?;
    Ok(image)
}

fn build(part: &Path, image: &Path) -> Result<(), String> {
    let there = || {
        let runs = |program| {
            Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|s| s.success())
        };
        ["flex", "bison", "bc", "xz"].iter().all(runs) && Path::new("/usr/include/gelf.h").is_file()
    };
    tools::debian_packages(PACKAGES, "the guest's own kernel", there)
        .map_err(|command| format!("a kernel with iommufd cannot be built; run `{command}`"))?;
    say("downloading the source of a kernel from Debian (150 MB)");
    let apt = Apt::new(&part.join("apt"))?;
    apt.get(&["download", SOURCE])?;
    let package = files(&apt.dir)
        .into_iter()
        .find(|p| p.extension().is_some_and(|e| e == "deb"))
        .ok_or("apt downloaded nothing")?;
    let at = |error: String| format!("{SOURCE}: {error}");
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(part)).map_err(at)?;
    output(
        Command::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(part.join(format!("usr/src/{SOURCE}.tar.xz")))
            .arg("--directory")
            .arg(part),
    )
    .map_err(at)?;
    let source = part.join(SOURCE);
    let make = |arguments: &[&str]| {
        output(Command::new("make").arg("-C").arg(&source).args(arguments)).map_err(at)
    };
    let write =
        |name: &str, text: &str| fs::write(source.join(name), text).map_err(|e| at(e.to_string()));
    write("kernel/configs/shef.config", CONFIG)?;
    make(&["tinyconfig", "shef.config"])?;
    let made = fs::read_to_string(source.join(".config")).map_err(|e| at(e.to_string()))?;
    // kconfig silently drops an option whose dependency is not set.
    if let Some(lost) = CONFIG.lines().find(|line| {
        line.starts_with("CONFIG_") && line.ends_with("=y") && !made.lines().any(|l| l == *line)
    }) {
        return Err(at(format!("{lost} did not remain")));
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    say("building a kernel with iommufd and no-IOMMU mode, once (seven minutes of processor time)");
    make(&[&format!("-j{jobs}"), "bzImage"])?;
    fs::rename(source.join("arch/x86/boot/bzImage"), image).map_err(|e| at(e.to_string()))
}
