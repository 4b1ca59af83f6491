//! QEMU, a kernel and busybox from Debian's packages, under `target/tools`: fetched and verified by
//! apt in a separate folder, unpacked by dpkg-deb. This needs neither root nor chroot: QEMU runs
//! with the loader from its packages.

use crate::files;
use crate::process::{Context, Result, bail, ensure, output, say, stdout};
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
/// Variable that names a mirror.
const MIRROR: &str = "SHEF_DEBIAN_MIRROR";
/// Keys of Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Suites: QEMU with vfio-user-pci is in the second, the kernel that boots fastest in the third.
const SUITES: [&str; 3] = ["trixie", "trixie-backports", "bookworm"];
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

/// The packages in a folder.
fn packages(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    all.retain(|path| files::is(path, "deb"));
    all.sort();
    Ok(all)
}

/// Unpacks all packages of a folder.
pub fn unpack(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for package in packages(from)? {
        stdout(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(to))?;
    }
    Ok(())
}

/// Fetches and unpacks beside the final place, then renames.
fn install(part: &Path, guest: &Guest) -> Result<()> {
    ensure!(std::env::consts::ARCH == "x86_64", "the guest's QEMU and kernel are for x86-64");
    files::remove(&guest.dir)?;
    let apt = Apt::new(&part.join("apt"))?;
    say("downloading QEMU, a kernel and busybox from Debian (70 MB)");
    apt.get("install --download-only --target-release trixie-backports qemu-system-x86 seabios")?;
    let image = "linux-image-cloud-amd64";
    let version = apt.version(image, "bookworm")?;
    let depends = apt.run("apt-cache", &format!("depends --important {image}={version}"))?;
    let kernel = depends
        .lines()
        .find_map(|l| l.trim().strip_prefix("Depends: "))
        .context("the kernel's metapackage names no kernel")?;
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

/// The mirror that this machine's apt sources name.
fn mirror() -> Option<String> {
    if let Some(own) = std::env::var(MIRROR).ok().filter(|own| !own.is_empty()) {
        return Some(own);
    }
    let mut sources = files::below(Path::new("/etc/apt/sources.list.d")).unwrap_or_default();
    sources.push("/etc/apt/sources.list".into());
    sources.iter().filter_map(|p| fs::read_to_string(p).ok()).find_map(|text| mirror_of(&text))
}

/// The archive in a list of sources, in either format: the first one of Debian itself.
fn mirror_of(text: &str) -> Option<String> {
    text.lines()
        .filter(|line| line.starts_with("URIs:") || line.starts_with("deb "))
        .flat_map(str::split_whitespace)
        .find(|word| word.starts_with("http") && word.trim_end_matches('/').ends_with("/debian"))
        .map(|word| word.trim_end_matches('/').to_owned())
}

/// apt with separate lists, cache and sources.
pub struct Apt {
    /// Download folder.
    pub dir: PathBuf,
    options: Vec<String>,
}

impl Apt {
    /// Creates it with fresh lists.
    pub fn new(dir: &Path) -> Result<Self> {
        if !Path::new(KEYRING).is_file() {
            bail!("{KEYRING} is missing; run `apt-get install debian-archive-keyring`");
        }
        let mirror = mirror().with_context(|| {
            format!("the sources of this machine name no Debian mirror; set {MIRROR}=http://...")
        })?;
        let folders = "etc/apt.conf.d etc/preferences.d etc/sources.list.d state/lists/partial \
                       cache/archives/partial log";
        for folder in folders.split_whitespace() {
            fs::create_dir_all(dir.join(folder))?;
        }
        let sources =
            SUITES.map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"));
        fs::write(dir.join("etc/sources.list"), sources.concat())?;
        fs::write(dir.join("status"), "")?;
        let folders = [
            ("Etc", "etc"),
            ("State", "state"),
            ("State::status", "status"),
            ("Cache", "cache"),
            ("Log", "log"),
        ];
        let folders = folders.map(|(of, at)| format!("Dir::{of}={}", dir.join(at).display()));
        let others = [
            "APT::Architecture=amd64",
            "APT::Architectures=amd64",
            "APT::Install-Recommends=false",
            "APT::Sandbox::User=",
            "Acquire::Languages=none",
            "Acquire::Retries=2",
        ];
        let options = folders.into_iter().chain(others.map(str::to_owned));
        let options = options.flat_map(|option| ["-o".to_owned(), option]).collect();
        let apt = Self { dir: dir.to_owned(), options };
        apt.get("update")?;
        Ok(apt)
    }

    fn run(&self, program: &str, words: &str) -> Result<String> {
        let mut c = Command::new(program);
        c.args(&self.options).args(words.split(' ')).current_dir(&self.dir).env("LC_ALL", "C");
        stdout(&mut c).with_context(|| words.to_owned())
    }

    /// `apt-get` with these words as arguments.
    pub fn get(&self, words: &str) -> Result<String> {
        self.run("apt-get", &format!("--yes --quiet {words}"))
    }

    /// Downloads one package; gives its file.
    pub fn download(&self, package: &str) -> Result<PathBuf> {
        self.get(&format!("download {package}"))?;
        packages(&self.dir)?.into_iter().next().context("apt downloaded nothing")
    }

    /// Version of a package in a suite.
    fn version(&self, package: &str, suite: &str) -> Result<String> {
        let table = self.run("apt-cache", &format!("madison {package}"))?;
        let wanted = format!(" {suite}/");
        let line = table.lines().find(|line| line.contains(&wanted));
        let version = line.and_then(|line| line.split('|').nth(1));
        Ok(version.with_context(|| format!("{suite} has no {package}"))?.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::mirror_of;

    #[test]
    fn the_mirror_is_that_of_the_machine() {
        let new =
            "Types: deb\n# a comment\nURIs: http://mirror.example/debian/\nSuites: bookworm\n";
        assert_eq!(mirror_of(new).as_deref(), Some("http://mirror.example/debian"));
        let old = "# deb http://no.example/debian x main\ndeb [arch=amd64] http://security.example/debian-security bookworm main\n\
                   deb http://mirror.example/debian bookworm main\n";
        assert_eq!(mirror_of(old).as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(mirror_of("deb http://archive.example/ubuntu noble main\n"), None);
    }
}
