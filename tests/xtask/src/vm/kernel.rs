//! A kernel with features that Debian's kernels lack: iommufd with per-function nodes, and no-IOMMU
//! mode. It is built once from Debian's source package with a minimal configuration for a guest
//! (`tests/vm/kernel.config`), under `target/tools`, in about seven minutes of CPU time.

use crate::debian::{self, Apt};
use crate::process::{Context, Result, anyhow, ensure, runs, say, stdout};
use crate::{files, tools};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source package of a long-term kernel.
const SOURCE: &str = "linux-source-6.12";
/// Options in addition to `tinyconfig`.
const CONFIG: &str = include_str!("../../../vm/kernel.config");
/// Build dependencies in addition to a C compiler and make.
const PACKAGES: &str = "flex bison bc libelf-dev xz-utils";

/// The kernel image, built if need be; otherwise the reason, and the command that helps.
pub fn ensure() -> Result<PathBuf> {
    let digest = files::digest(format!("{SOURCE}\n{CONFIG}"));
    let image = tools::folder().join(format!("kernel-{}", &digest[..12]));
    tools::once("kernel", || image.is_file(), |part| build(part, &image))?;
    Ok(image)
}

fn build(part: &Path, image: &Path) -> Result<()> {
    let there = || {
        let programs = ["flex", "bison", "bc", "xz"];
        programs.iter().all(|program| runs(Command::new(program).arg("--version")))
            && Path::new("/usr/include/gelf.h").is_file()
    };
    debian::install(PACKAGES, "the guest's own kernel", there)
        .map_err(|command| anyhow!("a kernel with iommufd cannot be built; run `{command}`"))?;
    say("downloading the source of a kernel from Debian (150 MB)");
    let package = Apt::new(&part.join("apt"))?.download(SOURCE)?;
    stdout(Command::new("dpkg-deb").arg("--extract").arg(package).arg(part)).context(SOURCE)?;
    let archive = part.join(format!("usr/src/{SOURCE}.tar.xz"));
    let mut tar = Command::new("tar");
    stdout(tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(part))?;
    let source = part.join(SOURCE);
    let make = |arguments: &[&str]| {
        stdout(Command::new("make").arg("-C").arg(&source).args(arguments)).context(SOURCE)
    };
    fs::write(source.join("kernel/configs/shef.config"), CONFIG)?;
    make(&["tinyconfig", "shef.config"])?;
    let made = fs::read_to_string(source.join(".config"))?;
    // kconfig silently drops an option whose dependency is not set.
    for line in CONFIG.lines().filter(|l| l.starts_with("CONFIG_") && l.ends_with("=y")) {
        ensure!(made.lines().any(|l| l == line), "{SOURCE}: {line} did not remain");
    }
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    say("building a kernel with iommufd and no-IOMMU mode, once (seven minutes of processor time)");
    make(&[&format!("-j{jobs}"), "bzImage"])?;
    Ok(fs::rename(source.join("arch/x86/boot/bzImage"), image)?)
}
