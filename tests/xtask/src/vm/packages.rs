//! QEMU, a kernel and busybox from Debian's packages, under `target/tools`: fetched and verified by
//! apt in a separate folder, unpacked by dpkg-deb. This needs neither root nor chroot: QEMU runs
//! with the loader from its packages.

use crate::process::say;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Changes whenever the unpacked contents change.
const FOLDER: &str = "guest-1";
/// The same for the system with systemd.
const SYSTEM: &str = "systemd-1";
/// Its packages, which come with their dependencies: those of the unit, and those of the commands
/// that set an agent up.
const SYSTEM_PACKAGES: [&str; 5] = ["systemd", "udev", "kmod", "passwd", "libgcc-s1"];
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
        c.arg("--library-path")
            .arg(root.join("usr/lib/x86_64-linux-gnu"))
            .arg(root.join("usr/bin/qemu-system-x86_64"))
            .arg("-L")
            .arg(root.join("usr/share/qemu"))
            .arg("-L")
            .arg(root.join("usr/share/seabios"))
            .env("QEMU_MODULE_DIR", root.join("usr/lib/x86_64-linux-gnu/qemu"));
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

    fn works(&self) -> Result<(), String> {
        let o = self
            .qemu()
            .args(["-device", "help"])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        let text =
            String::from_utf8_lossy(&o.stdout).into_owned() + &String::from_utf8_lossy(&o.stderr);
        if !text.contains("\"vfio-user-pci\"") {
            return Err(format!(
                "QEMU does not run, or has no vfio-user-pci: {}",
                last_line(&text)
            ));
        }
        if !self.kernel().is_file()
            || !self.busybox().is_file()
            || self.module("vfio-pci").is_none()
        {
            return Err("kernel, vfio-pci or busybox is missing".to_owned());
        }
        Ok(())
    }
}

/// The files to start a guest with, fetched if need be; otherwise the reason, and the command that
/// helps.
pub fn ensure(root: &Path) -> Result<Guest, String> {
    let tools = root.join("target/tools");
    let guest = Guest { dir: tools.join(FOLDER) };
    once(
        &tools,
        "guest",
        || guest.dir.is_dir() && guest.works().is_ok(),
        |part| install(part, &guest),
    )?;
    guest.works()?;
    Ok(guest)
}

/// The root of a Debian system with systemd, fetched if need be; otherwise the reason, and the
/// command that helps.
pub fn systemd(root: &Path) -> Result<PathBuf, String> {
    let tools = root.join("target/tools");
    let dir = tools.join(SYSTEM);
    once(
        &tools,
        "systemd",
        || dir.is_dir(),
        |part| {
            say("downloading systemd from Debian (20 MB)");
            let apt = Apt::new(&part.join("apt"))?;
            apt.get(
                &[
                    &["install", "--download-only", "--target-release", "trixie"],
                    &SYSTEM_PACKAGES[..],
                ]
                .concat(),
            )?;
            let tree = part.join("root");
            unpack(&apt.dir.join("cache/archives"), &tree)?;
            // As in package base-files.
            for name in ["bin", "sbin", "lib", "lib64"] {
                std::os::unix::fs::symlink(format!("usr/{name}"), tree.join(name))
                    .map_err(|e| format!("{}: {e}", tree.display()))?;
            }
            fs::rename(&tree, &dir).map_err(|e| format!("cannot rename {}: {e}", tree.display()))
        },
    )?;
    Ok(dir)
}

/// Unpacks all packages of a folder.
pub fn unpack(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("cannot create {}: {e}", to.display()))?;
    for deb in files(from).into_iter().filter(|p| p.extension().is_some_and(|e| e == "deb")) {
        output(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(to))
            .map_err(|e| format!("dpkg-deb: {e}"))?;
    }
    Ok(())
}

/// Calls `make` to create something below the folder of tools unless it is `there`, in one process
/// at a time; `make` gets an empty folder, which is removed afterwards.
pub fn once(
    tools: &Path,
    name: &str,
    there: impl Fn() -> bool,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    if there() {
        return Ok(());
    }
    fs::create_dir_all(tools).map_err(|e| format!("cannot create {}: {e}", tools.display()))?;
    let lock = File::create(tools.join(format!("{name}.lock"))).and_then(|f| f.lock().map(|()| f));
    let _lock = lock.map_err(|e| format!("cannot lock {}: {e}", tools.display()))?;
    if there() {
        return Ok(());
    }
    let part = tools.join(format!("{name}.part"));
    remove(&part)?;
    fs::create_dir_all(&part).map_err(|e| format!("cannot create {}: {e}", part.display()))?;
    make(&part)?;
    // The result exists; a leftover folder does no harm.
    let _ = remove(&part);
    Ok(())
}

fn remove(dir: &Path) -> Result<(), String> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|e| format!("cannot remove {}: {e}", dir.display()))
    } else {
        Ok(())
    }
}

/// Fetches and unpacks beside the final place, then renames.
fn install(part: &Path, guest: &Guest) -> Result<(), String> {
    if std::env::consts::ARCH != "x86_64" {
        return Err("the guest's QEMU and kernel are for x86-64".to_owned());
    }
    remove(&guest.dir)?;
    let apt = Apt::new(&part.join("apt"))?;
    say("downloading QEMU, a kernel and busybox from Debian (70 MB)");
    apt.get(&[
        "install",
        "--download-only",
        "--target-release",
        "trixie-backports",
        "qemu-system-x86",
        "seabios",
    ])?;
    let depends = apt.run(
        "apt-cache",
        &[
            "depends",
            "--important",
            &format!(
                "linux-image-cloud-amd64={}",
                apt.version("linux-image-cloud-amd64", "bookworm")?
            ),
        ],
    )?;
    let kernel = depends
        .lines()
        .find_map(|l| l.trim().strip_prefix("Depends: "))
        .ok_or("the kernel's metapackage names no kernel")?;
    apt.get(&["download", kernel, "busybox-static"])?;

    let (root, other) = (part.join("tool/root"), part.join("other"));
    for (from, to) in [(apt.dir.join("cache/archives"), &root), (apt.dir.clone(), &other)] {
        unpack(&from, to)?;
    }
    let take = |from: &Path, to: PathBuf| {
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::copy(from, &to).map(|_| ()))
            .map_err(|e| format!("{}: {e}", from.display()))
    };
    let tool = part.join("tool");
    for path in walk(&other) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let to = match name {
            "busybox" if path.parent().is_some_and(|p| p.ends_with("bin")) => tool.join("busybox"),
            _ if name.starts_with("vmlinuz-") => tool.join("vmlinuz"),
            _ if MODULES.iter().any(|m| name == format!("{m}.ko")) => {
                tool.join("modules").join(name)
            }
            _ => continue,
        };
        take(&path, to)?;
    }
    fs::rename(&tool, &guest.dir).map_err(|e| format!("cannot rename {}: {e}", tool.display()))
}

/// The mirror that this machine's apt sources name.
fn mirror() -> Option<String> {
    if let Ok(own) = std::env::var(MIRROR)
        && !own.is_empty()
    {
        return Some(own);
    }
    let mut sources = files(Path::new("/etc/apt/sources.list.d"));
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
    pub fn new(dir: &Path) -> Result<Self, String> {
        if !Path::new(KEYRING).is_file() {
            return Err(format!(
                "{KEYRING} is missing; run `apt-get install debian-archive-keyring`"
            ));
        }
        let mirror = mirror().ok_or_else(|| {
            format!("the sources of this machine name no Debian mirror; set {MIRROR}=http://...")
        })?;
        let failed = |e: std::io::Error| format!("cannot write below {}: {e}", dir.display());
        for sub in [
            "etc/apt.conf.d",
            "etc/preferences.d",
            "etc/sources.list.d",
            "state/lists/partial",
            "cache/archives/partial",
            "log",
        ] {
            fs::create_dir_all(dir.join(sub)).map_err(failed)?;
        }
        let sources: String = SUITES
            .iter()
            .map(|suite| format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))
            .collect();
        fs::write(dir.join("etc/sources.list"), sources).map_err(failed)?;
        fs::write(dir.join("status"), "").map_err(failed)?;
        let at = |sub: &str| dir.join(sub).display().to_string();
        let options = [
            format!("Dir::Etc={}", at("etc")),
            format!("Dir::State={}", at("state")),
            format!("Dir::State::status={}", at("status")),
            format!("Dir::Cache={}", at("cache")),
            format!("Dir::Log={}", at("log")),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures=amd64".to_owned(),
            "APT::Install-Recommends=false".to_owned(),
            "APT::Sandbox::User=".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=2".to_owned(),
        ];
        let apt = Self {
            dir: dir.to_owned(),
            options: options.into_iter().flat_map(|o| ["-o".to_owned(), o]).collect(),
        };
        apt.get(&["update"])?;
        Ok(apt)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        output(
            Command::new(program)
                .args(&self.options)
                .args(arguments)
                .current_dir(&self.dir)
                .env("LC_ALL", "C"),
        )
        .map_err(|e| format!("{program} {}: {e}", arguments.join(" ")))
    }

    /// `apt-get`.
    pub fn get(&self, arguments: &[&str]) -> Result<String, String> {
        let mut all = vec!["--yes", "--quiet"];
        all.extend(arguments);
        self.run("apt-get", &all)
    }

    /// Version of a package in a suite.
    fn version(&self, package: &str, suite: &str) -> Result<String, String> {
        let table = self.run("apt-cache", &["madison", package])?;
        let wanted = format!(" {suite}/");
        table
            .lines()
            .find(|line| line.contains(&wanted))
            .and_then(|line| line.split('|').nth(1))
            .map(|version| version.trim().to_owned())
            .ok_or_else(|| format!("{suite} has no {package}"))
    }
}

/// Standard output of a command that succeeds, else the last line of its error output.
pub fn output(command: &mut Command) -> Result<String, String> {
    let o = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    if o.status.success() {
        Ok(String::from_utf8_lossy(&o.stdout).into_owned())
    } else {
        Err(last_line(&String::from_utf8_lossy(&o.stderr)))
    }
}

fn last_line(text: &str) -> String {
    text.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no message").trim().to_owned()
}

/// The contents of a folder, sorted.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(dir).into_iter().flatten().filter_map(|e| Some(e.ok()?.path())).collect();
    all.sort();
    all
}

/// All regular files below a folder.
pub fn walk(dir: &Path) -> Vec<PathBuf> {
    files(dir)
        .into_iter()
        .flat_map(|path| match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => walk(&path),
            Ok(meta) if meta.is_file() => vec![path],
            _ => Vec::new(),
        })
        .collect()
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
