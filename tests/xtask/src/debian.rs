//! Debian's packages: those that this machine needs, and others fetched into separate folders.

use crate::files;
use crate::process::{self, Context, Result, bail, runs, say, stdout};
use crate::tools::compiler;
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable that names a mirror.
const MIRROR: &str = "SHEF_DEBIAN_MIRROR";
/// Keys of Debian's archive.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Suites: QEMU with vfio-user-pci is in the second, the kernel that boots fastest in the third.
const SUITES: [&str; 3] = ["trixie", "trixie-backports", "bookworm"];

/// Whether wave files can be built: headers of lz4 and zlib.
pub fn has_trace_libraries() -> bool {
    let headers = ["-include", "lz4.h", "-include", "zlib.h"];
    let empty = ["-x", "c++", "-fsyntax-only", "/dev/null"];
    runs(Command::new(compiler()).args(headers).args(empty))
}

/// Whether a PostgreSQL server is installed in Debian's folder, and a pooler for it.
pub fn has_postgres() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql");
    let pooler = Path::new("/usr/sbin/pgbouncer").is_file();
    pooler
        && versions.is_ok_and(|versions| {
            versions.flatten().any(|version| version.path().join("bin/postgres").is_file())
        })
}

/// Whether OpenSSL's headers are installed, and pkg-config to find them.
pub fn has_openssl() -> bool {
    runs(Command::new("pkg-config").args(["--exists", "openssl"]))
}

/// Whether Chromium is installed under Debian's name.
pub fn has_chromium() -> bool {
    runs(Command::new("chromium").arg("--version"))
}

/// Whether minisign is installed.
pub fn has_minisign() -> bool {
    runs(Command::new("minisign").arg("-v"))
}

/// Whether a token of PKCS #11 in software is installed, and the tool that looks into it.
pub fn has_softhsm() -> bool {
    ["/usr/lib/softhsm/libsofthsm2.so", "/usr/bin/pkcs11-tool"]
        .iter()
        .all(|file| Path::new(file).is_file())
}

/// Installs Debian packages if they are not `there` and this process may do so.
///
/// # Errors
/// They are still missing: the command that helps.
pub fn install(packages: &str, what: &str, there: impl Fn() -> bool) -> Result<(), String> {
    let command = format!("apt-get install -y {packages}");
    if !there() && is_root() {
        say(&format!("installing {packages} ({what})"));
        let script = format!("apt-get update -qq && DEBIAN_FRONTEND=noninteractive {command} -qq");
        let _ = process::run(Command::new("sh").args(["-c", &script]), &command);
    }
    if there() { Ok(()) } else { Err(command) }
}

/// Whether this process may install packages.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
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

    /// The package that a metapackage of a suite stands for: its first dependency.
    pub fn dependency(&self, package: &str, suite: &str) -> Result<String> {
        let table = self.run("apt-cache", &format!("madison {package}"))?;
        let of_suite = format!(" {suite}/");
        let version = table.lines().find(|line| line.contains(&of_suite));
        let version = version.and_then(|line| line.split('|').nth(1));
        let version = version.with_context(|| format!("{suite} has no {package}"))?.trim();
        let list = self.run("apt-cache", &format!("depends --important {package}={version}"))?;
        let first = list.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        first.map(str::to_owned).with_context(|| format!("{package} depends on no package"))
    }
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
