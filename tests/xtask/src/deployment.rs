//! `cargo xtask deployment`: alert rules, Helm chart and Kubernetes manifests of the verifier service,
//! checked by promtool, Helm's library and Kubernetes' schemas.

use crate::debian::Apt;
use crate::process::{self, Result, ensure, output, stdout};
use crate::{files, root, tools};
use fs_err as fs;
use std::path::PathBuf;
use std::process::Command;

/// The service's package.
pub const SERVICE: &str = "attestation/verifierd";
/// Its files for operators.
pub const FILES: &str = "attestation/verifierd/dist";
/// The chart, in [`FILES`].
pub const CHART: &str = "helm/shef-verifierd";
/// The chart's output for its default values, in [`FILES`].
pub const MANIFESTS: &str = "kubernetes/shef-verifierd.yaml";

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Render the manifests again
    #[arg(long)]
    write: bool,
}

/// The command.
pub fn run(args: &Args) -> Result<()> {
    rules()?;
    println!("alert rules: promtool accepts them, and their tests pass");
    chart(args.write)?;
    println!("chart and manifests: Helm renders them, Kubernetes' schemas accept them");
    Ok(())
}

/// promtool, from the package `prometheus` of Debian 12, the last one that has it; nothing is installed.
fn promtool() -> Result<PathBuf> {
    let program = tools::folder().join("promtool-1");
    let there = || process::runs(Command::new(&program).arg("--version"));
    tools::once("promtool", there, |part| {
        process::say("downloading promtool (20 MB)");
        let package = Apt::new(&part.join("apt"))?.download("prometheus/bookworm")?;
        let unpacked = part.join("prometheus");
        stdout(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&unpacked))?;
        Ok(fs::rename(unpacked.join("usr/bin/promtool"), &program)?)
    })?;
    Ok(program)
}

/// Checks the alert rules, and runs their tests.
pub fn rules() -> Result<()> {
    let promtool = promtool()?;
    for args in
        ["check rules dist/prometheus-rules.yml", "test rules tests/prometheus-rules-test.yml"]
    {
        let mut command = Command::new(&promtool);
        let out = output(command.args(args.split(' ')).current_dir(root().join(SERVICE)))?;
        ensure!(out.status.success(), "promtool {args}: {}", out.all());
    }
    Ok(())
}

/// Renders the chart, checks the objects, and compares or writes the manifests.
pub fn chart(write: bool) -> Result<()> {
    let folder = root().join(FILES);
    for field in ["version: ", "appVersion: "] {
        let text = fs::read_to_string(folder.join(CHART).join("Chart.yaml"))?;
        let found = text.lines().find_map(|line| line.strip_prefix(field));
        let (found, expected) =
            (found.unwrap_or_default().trim_matches('"'), env!("CARGO_PKG_VERSION"));
        ensure!(found == expected, "Chart.yaml: {field}{found}, expected {expected}");
    }
    let mut python = Command::new("python3");
    python.args(["-c", include_str!("deployment.py")]);
    python.arg(folder.join(CHART)).arg(folder.join(MANIFESTS));
    python.arg(if write { "write" } else { "check" }).env("PYTHONPATH", tools::kubernetes()?);
    let out = output(&mut python)?;
    ensure!(out.status.success(), "{}", out.all());
    let mut kubectl = Command::new("kubectl");
    kubectl.arg("kustomize").arg(folder.join("kubernetes"));
    if process::runs(Command::new("kubectl").args(["version", "--client"])) {
        let all = stdout(&mut kubectl)?;
        ensure!(all.matches("\n  namespace: shef\n").count() == 4, "kubectl kustomize: {all}");
    } else {
        process::say("kustomization.yaml was not built: there is no kubectl");
    }
    Ok(())
}

/// The files that are installed with the program, by name and content: `NAME` or `FOLDER/NAME`.
pub fn shipped() -> Result<Vec<(String, Vec<u8>)>> {
    let folder = root().join(FILES);
    let mut all = Vec::new();
    for path in files::below(&folder)? {
        let name = path.strip_prefix(&folder)?.display().to_string();
        if !name.starts_with("helm/") {
            all.push((name, fs::read(path)?));
        }
    }
    Ok(all)
}
