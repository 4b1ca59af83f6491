//! `cargo xtask dist`: the verifier service as one static program, with the files for its installation,
//! their hashes, and a signature of these.

mod chart;
mod elf;
mod oci;
mod sbom;
mod sign;

use crate::process::{self, Result, ensure, runs, say, stdout};
use crate::{debian, deployment, files, root};
use fs_err as fs;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "shef-verifierd";
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
    /// Sign SHA256SUMS with this secret key of minisign: writes SHA256SUMS.minisig
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
    /// One JSON document on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    target: &'static str,
    linked: &'static str,
    files: Vec<File>,
    signed: bool,
    starts_in_an_empty_root: bool,
}

#[derive(Serialize)]
struct File {
    name: String,
    bytes: u64,
    sha256: String,
}

/// The target of the build: musl if rustc and a C compiler support it, else glibc, linked
/// statically.
fn target() -> (&'static str, &'static str) {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", MUSL]).current_dir(root());
    let std = stdout(&mut rustc).is_ok_and(|folder| Path::new(folder.trim()).is_dir());
    if std && runs(Command::new("musl-gcc").arg("--version")) {
        (MUSL, "musl")
    } else {
        (
            GNU,
            "glibc, linked in (for musl: `rustup target add x86_64-unknown-linux-musl`, and musl-gcc)",
        )
    }
}

fn build(target: &str) -> Result<PathBuf> {
    // A static program cannot load libraries of tokens.
    let mut cargo = process::cargo("build --release --locked --quiet --no-default-features");
    cargo.args(["--package", PROGRAM, "--bin", PROGRAM, "--target", target]);
    if target == MUSL {
        cargo.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    } else {
        let flags = "-C target-feature=+crt-static";
        cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", flags);
    }
    process::run(&mut cargo, "building shef-verifierd")?;
    Ok(process::target_dir().join(target).join("release").join(PROGRAM))
}

/// Runs the program in an otherwise empty root folder: set-up, start, first answer.
fn starts_in_an_empty_root(program: &Path, dir: &Path) -> Result<()> {
    let empty = tempfile::tempdir_in(dir)?;
    fs::copy(program, empty.path().join(PROGRAM))?;
    let inside = |args: &str| {
        let root = if debian::is_root() { "chroot" } else { "unshare" };
        let mut command = Command::new(root);
        command.args((root == "unshare").then_some(["--map-root-user", "--root"]).iter().flatten());
        command.arg(empty.path()).arg(format!("/{PROGRAM}")).args(args.split(' ')).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("SHEF_LOG", "warn");
        command
    };
    for args in ["init --dir /v --listen 127.0.0.1:0", "check --config /v/verifierd.toml"] {
        let (name, _) = args.split_once(' ').unwrap_or_default();
        process::run(&mut inside(args), &format!("{PROGRAM} {name} in an empty root"))?;
    }
    let mut run = inside("run --config /v/verifierd.toml");
    let mut child = run.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    let connected =
        line.split('"').nth(3).is_some_and(|address| std::net::TcpStream::connect(address).is_ok());
    let _ = child.kill();
    let _ = child.wait();
    let runs = matches!(read, Some(Ok(1..))) && connected;
    ensure!(runs, "shef-verifierd does not run in an empty root: {line:?}");
    Ok(())
}

/// Builds everything.
pub fn run(args: &Args) -> Result<()> {
    let out = args.out.clone().unwrap_or_else(|| process::target_dir().join("dist"));
    let key = args.sign.as_deref().map(sign::Key::new).transpose()?;
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
    let bytes = fs::read(&program)?;
    elf::is_static(&bytes)?;
    files::fresh(&out)?;
    starts_in_an_empty_root(&program, &out)?;

    let version = env!("CARGO_PKG_VERSION");
    let mut files = Vec::new();
    let mut sums = String::new();
    let image = oci::archive(&bytes, version)?;
    let made = [
        (PROGRAM.to_owned(), bytes),
        (format!("{PROGRAM}-{version}.oci.tar"), image),
        (format!("{PROGRAM}-{version}.tgz"), chart::archive()?),
        (format!("{PROGRAM}-{version}.cdx.json"), sbom::write(target)?),
    ];
    for (name, bytes) in made.into_iter().chain(deployment::shipped()?) {
        let path = out.join(&name);
        fs::create_dir_all(path.parent().unwrap_or(&out))?;
        fs::write(path, &bytes)?;
        let sha256 = files::digest(&bytes);
        sums.push_str(&format!("{sha256}  {name}\n"));
        files.push(File { name, bytes: bytes.len() as u64, sha256 });
    }
    fs::set_permissions(out.join(PROGRAM), std::fs::Permissions::from_mode(0o755))?;
    fs::write(out.join(sign::SUMS), sums)?;
    if let Some(key) = &key {
        key.sign(&out, &format!("{PROGRAM} {version}"))?;
    }
    let signed = key.is_some();
    let document = Document { target, linked, files, signed, starts_in_an_empty_root: true };
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
