//! The verifier service of the version before, which serves beside the present one while replicas are
//! replaced.

use crate::process::{self, Result, ensure, stdout};
use crate::{files, root};
use fs_err as fs;
use std::path::PathBuf;
use std::process::Command;

/// Whatever changes the schema of the database begins a version.
const SCHEMA: &str = "attestation/verifierd/src/store/schema.rs";

fn git(args: &[&str]) -> Result<String> {
    Ok(stdout(Command::new("git").args(args).current_dir(root()))?.trim().to_owned())
}

/// The last commit of the version before: the one before the newest change of the schema.
pub fn commit() -> Result<String> {
    if !git(&["status", "--porcelain", "--", SCHEMA])?.is_empty() {
        return git(&["rev-parse", "HEAD"]);
    }
    let parents = git(&["log", "-1", "--format=%P", "--", SCHEMA])?;
    let first = parents.split(' ').next().unwrap_or_default();
    ensure!(
        !first.is_empty(),
        "the version before the present schema is not in the history of this clone; fetch all of it: git fetch --unshallow"
    );
    Ok(first.to_owned())
}

/// The service of the version before, built if need be.
pub fn program(commit: &str) -> Result<PathBuf> {
    let folder = process::target_dir().join("upgrade");
    let program = folder.join(format!("shef-verifierd-{commit}"));
    if program.exists() {
        return Ok(program);
    }
    process::say("building the verifier service of the version before, which takes some minutes");
    let (source, archive) = (folder.join("source"), folder.join("source.tar"));
    files::fresh(&source)?;
    git(&["archive", "--format=tar", "--output", &archive.display().to_string(), commit])?;
    let mut unpack = Command::new("tar");
    process::run(unpack.arg("-xf").arg(&archive).arg("-C").arg(&source), "unpacking it")?;
    let mut build = process::cargo("build --quiet --locked --package shef-verifierd");
    build
        .current_dir(&source)
        .env("CARGO_TARGET_DIR", folder.join("build"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    process::run(&mut build, "building it")?;
    // Its name comes last: an interrupted build leaves no program.
    fs::copy(folder.join("build/debug/shef-verifierd"), folder.join("part"))?;
    fs::rename(folder.join("part"), &program)?;
    Ok(program)
}
