//! `cargo xtask dist`: the verifier service as one static program, with the files for its installation.

mod elf;
mod oci;
mod sbom;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::process::{self, Failure, say};
use crate::root;

const PROGRAM: &str = "shef-verifierd";
const UNIT: &str = "attestation/verifierd/dist/shef-verifierd.service";
const MUSL: &str = "x86_64-unknown-linux-musl";
const GNU: &str = "x86_64-unknown-linux-gnu";

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Output folder; target/dist by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Use this program instead of building one; it must also be static and start in an empty root
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    target: &'static str,
    linked: &'static str,
    files: Vec<File>,
    starts_in_an_empty_root: bool,
}

#[derive(Serialize)]
struct File {
    name: String,
    bytes: u64,
    sha256: String,
}

fn cannot(what: impl std::fmt::Display) -> Failure {
    Failure::failed(what.to_string())
}

/// The target of the build: musl if rustc and a C compiler support it, else glibc, linked
/// statically.
fn target() -> (&'static str, &'static str) {
    let libraries = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", MUSL])
        .current_dir(root())
        .output();
    let std =
        libraries.is_ok_and(|out| Path::new(String::from_utf8_lossy(&out.stdout).trim()).is_dir());
    let cc = Command::new("musl-gcc")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if std && cc {
        (MUSL, "musl")
    } else {
        (
            GNU,
            "glibc, linked in (for musl: `rustup target add x86_64-unknown-linux-musl`, and musl-gcc)",
        )
    }
}

fn build(target: &str) -> Result<PathBuf, Failure> {
    let mut cargo = process::cargo(&[
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        PROGRAM,
        "--bin",
        PROGRAM,
        "--target",
        target,
    ]);
    if target == MUSL {
        cargo.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    } else {
        cargo.env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "-C target-feature=+crt-static",
        );
    }
    process::run(&mut cargo, "building shef-verifierd")?;
    Ok(process::target_dir().join(target).join("release").join(PROGRAM))
}

/// Runs the program in an otherwise empty root folder: set-up, start, first answer.
fn starts_in_an_empty_root(program: &Path, dir: &Path) -> Result<(), Failure> {
    let empty = dir.join("empty");
    fs::create_dir(&empty).and_then(|()| fs::copy(program, empty.join(PROGRAM))).map_err(cannot)?;
    let inside = |args: &[&str]| {
        let mut command = if crate::tools::is_root() {
            let mut command = Command::new("chroot");
            command.arg(&empty);
            command
        } else {
            let mut command = Command::new("unshare");
            command.args(["--map-root-user", "--root"]).arg(&empty);
            command
        };
        command
            .arg(format!("/{PROGRAM}"))
            .args(args)
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("SHEF_LOG", "warn");
        command
    };
    process::run(
        &mut inside(&["init", "--dir", "/v", "--listen", "127.0.0.1:0"]),
        "shef-verifierd init in an empty root",
    )?;
    process::run(
        &mut inside(&["check", "--config", "/v/verifierd.toml"]),
        "shef-verifierd check in an empty root",
    )?;
    let mut child = inside(&["run", "--config", "/v/verifierd.toml"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let mut line = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    let connected =
        line.split('"').nth(3).is_some_and(|address| std::net::TcpStream::connect(address).is_ok());
    let _ = child.kill();
    let _ = child.wait();
    if matches!(read, Some(Ok(1..))) && connected {
        Ok(())
    } else {
        Err(cannot(format!("shef-verifierd does not run in an empty root: {line:?}")))
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Builds everything.
pub fn run(args: &Args) -> Result<(), Failure> {
    let out = args.out.clone().unwrap_or_else(|| process::target_dir().join("dist"));
    let (target, linked) = target();
    let (program, linked) = match &args.program {
        Some(program) => {
            (program.clone(), "built elsewhere; the SBOM is that of a build for this target")
        }
        None => {
            say(&format!("building {PROGRAM} for {target}: {linked}"));
            (build(target)?, linked)
        }
    };
    let bytes = fs::read(&program).map_err(|e| cannot(format!("{}: {e}", program.display())))?;
    elf::is_static(&bytes).map_err(cannot)?;
    let work = out.join("work");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(cannot)?;
    }
    fs::create_dir_all(&work).map_err(cannot)?;
    starts_in_an_empty_root(&program, &work)?;
    fs::remove_dir_all(&work).map_err(cannot)?;

    let version = env!("CARGO_PKG_VERSION");
    let unit = fs::read(root().join(UNIT)).map_err(cannot)?;
    let sbom = sbom::write(target)?;
    let mut image = Vec::new();
    oci::write(&mut image, &bytes, version).map_err(cannot)?;
    let mut files = Vec::new();
    let mut sums = String::new();
    for (name, bytes) in [
        (PROGRAM.to_owned(), &bytes),
        (format!("{PROGRAM}-{version}.oci.tar"), &image),
        (format!("{PROGRAM}.service"), &unit),
        (format!("{PROGRAM}-{version}.cdx.json"), &sbom),
    ] {
        let path = out.join(&name);
        fs::write(&path, bytes).map_err(|e| cannot(format!("{}: {e}", path.display())))?;
        let sha256 = digest(bytes);
        sums.push_str(&format!("{sha256}  {name}\n"));
        files.push(File { name, bytes: bytes.len() as u64, sha256 });
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(out.join(PROGRAM), fs::Permissions::from_mode(0o755))
            .map_err(cannot)?;
    }
    fs::write(out.join("SHA256SUMS"), sums).map_err(cannot)?;
    let document = Document { target, linked, files, starts_in_an_empty_root: true };
    if args.json {
        println!("{}", serde_json::json!(document));
        return Ok(());
    }
    println!("{}: {target}, {linked}; starts in an empty root", out.display());
    for file in &document.files {
        println!("{:>10}  {}", file.bytes, file.name);
    }
    Ok(())
}
