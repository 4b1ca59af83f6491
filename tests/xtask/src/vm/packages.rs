//! QEMU, a kernel and busybox from Debian's packages, under `target/tools`: fetched and verified by
//! apt in a separate folder, unpacked by dpkg-deb. This needs neither root nor chroot: QEMU runs
//! with the loader from its packages.

use crate::debian::{Apt, unpack};
use crate::files;
use crate::process::{Result, ensure, output, say};
use crate::tools::{self, once};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Changes whenever the unpacked contents change.
const FOLDER: &str = "guest-1";
/// The same for the system with systemd.
const SYSTEM: &str = "systemd-1";
/// Its packages, which come with their dependencies: those of the unit, and those of the commands
/// that set an agent up.
const SYSTEM_PACKAGES: &str = "systemd udev kmod passwd libgcc-s1";
/// Modules, in loading order.
const MODULES: [&str; 6] =
    ["irqbypass", "vfio", "vfio_virqfd", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci"];

/// The files to start a guest with.
pub struct Guest {
    dir: PathBuf,
}

impl Guest {
    /// QEMU, without arguments.
    pub fn qemu(&self) -> Command {
        let root = self.dir.join("root");
        let mut c = Command::new(root.join("usr/lib64/ld-linux-x86-64.so.2"));
        c.arg("--library-path").arg(root.join("usr/lib/x86_64-linux-gnu"));
        c.arg(root.join("usr/bin/qemu-system-x86_64"));
        c.arg("-L").arg(root.join("usr/share/qemu"));
        c.arg("-L").arg(root.join("usr/share/seabios"));
        c.env("QEMU_MODULE_DIR", root.join("usr/lib/x86_64-linux-gnu/qemu"));
        c
    }

    /// Kernel image.
    pub fn kernel(&self) -> PathBuf {
        self.dir.join("vmlinuz")
    }

    /// Busybox, linked statically.
    pub fn busybox(&self) -> PathBuf {
        self.dir.join("busybox")
    }

    /// A module's file; not every kernel has every module.
    fn module(&self, name: &str) -> Option<PathBuf> {
        let path = self.dir.join("modules").join(format!("{name}.ko"));
        path.is_file().then_some(path)
    }

    /// The modules that this kernel has, in loading order: name and file.
    pub fn modules(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        MODULES.into_iter().filter_map(|name| Some((name, self.module(name)?)))
    }

    fn works(&self) -> Result<()> {
        let out = output(self.qemu().args(["-device", "help"]))?;
        let runs = out.all().contains("\"vfio-user-pci\"");
        ensure!(runs, "QEMU does not run, or has no vfio-user-pci: {}", out.last_line());
        let files = self.kernel().is_file() && self.busybox().is_file();
        let complete = files && self.module("vfio-pci").is_some();
        ensure!(complete, "kernel, vfio-pci or busybox is missing");
        Ok(())
    }
}

/// The files to start a guest with, fetched if need be; otherwise the reason, and the command that
/// helps.
pub fn guest() -> Result<Guest> {
    let guest = Guest { dir: tools::folder().join(FOLDER) };
    once("guest", || guest.works().is_ok(), |part| install(part, &guest))?;
    guest.works()?;
    Ok(guest)
}

/// The root of a Debian system with systemd, fetched if need be; otherwise the reason, and the
/// command that helps.
pub fn systemd() -> Result<PathBuf> {
    let dir = tools::folder().join(SYSTEM);
    let fetch = |part: &Path| {
        say("downloading systemd from Debian (20 MB)");
        let apt = Apt::new(&part.join("apt"))?;
        apt.get(&format!("install --download-only --target-release trixie {SYSTEM_PACKAGES}"))?;
        let tree = part.join("root");
        unpack(&apt.dir.join("cache/archives"), &tree)?;
        // As in package base-files.
        for name in ["bin", "sbin", "lib", "lib64"] {
            fs::os::unix::fs::symlink(format!("usr/{name}"), tree.join(name))?;
        }
        Ok(fs::rename(&tree, &dir)?)
    };
    once("systemd", || dir.is_dir(), fetch)?;
    Ok(dir)
}

/// Fetches and unpacks beside the final place, then renames.
fn install(part: &Path, guest: &Guest) -> Result<()> {
    ensure!(std::env::consts::ARCH == "x86_64", "the guest's QEMU and kernel are for x86-64");
    files::remove(&guest.dir)?;
    let apt = Apt::new(&part.join("apt"))?;
    say("downloading QEMU, a kernel and busybox from Debian (70 MB)");
    apt.get("install --download-only --target-release trixie-backports qemu-system-x86 seabios")?;
    let kernel = apt.dependency("linux-image-cloud-amd64", "bookworm")?;
    apt.get(&format!("download {kernel} busybox-static"))?;

    let (tool, other) = (part.join("tool"), part.join("other"));
    unpack(&apt.dir.join("cache/archives"), &tool.join("root"))?;
    unpack(&apt.dir, &other)?;
    for path in files::below(&other)? {
        let name = files::name(&path);
        let to = match name.as_str() {
            "busybox" if path.parent().is_some_and(|p| p.ends_with("bin")) => tool.join("busybox"),
            _ if name.starts_with("vmlinuz-") => tool.join("vmlinuz"),
            _ if MODULES.iter().any(|m| name == format!("{m}.ko")) => {
                tool.join("modules").join(name)
            }
            _ => continue,
        };
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        fs::copy(path, to)?;
    }
    Ok(fs::rename(&tool, &guest.dir)?)
}
