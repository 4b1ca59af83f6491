//! `cargo xtask mutants`: breaks a copy of the RTL in one place at a time and sees the named test fail.
//!
//! A mutant is an entry of `tests/mutants/*.toml`: edits, each a file, a text that stands in it exactly once and what replaces it, and the test that
//! must notice. Microcode is assembled anew after an edit.
//! The test runs on the copy through `SHEF_ROOT`. A mutant that does not build counts as a failure of this command, not as caught.

use crate::process::{self, Failure, say};
use crate::root;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mutant: Vec<Mutant>,
}

/// One weakened Shield.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Short name, in dashes.
    name: String,
    /// The claim that no longer holds.
    breaks: String,
    /// `package/test-target/test-name` of the test that must fail.
    test: String,
    /// What is changed.
    edit: Vec<Edit>,
}

/// One change of one file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Source file below `shell-rtl`.
    file: String,
    /// Stands in the file exactly once.
    find: String,
    /// Stands there instead.
    replace: String,
}

/// Code that every failed build of a design carries (crate shef-rtl).
const BUILD_FAILED: &str = "SHEF-RTL-0";

/// Runs all mutants, or those whose name holds `filter`; `line` prints the table.
pub fn run(verilator: &Path, filter: &str, line: &dyn Fn(&str)) -> Result<(), Failure> {
    let all = load()?;
    let folder = process::target_dir().join("mutants");
    let mut survivors = Vec::new();
    let mut ran = 0;
    line(&format!("{:<34} {:<9} {:>6}  caught by", "mutant", "", "s"));
    for m in all.iter().filter(|m| m.name.contains(filter)) {
        ran += 1;
        say(&format!("mutant {} ({})", m.name, m.breaks));
        let copy = folder.join(&m.name);
        weaken(m, &copy)?;
        let start = Instant::now();
        let outcome = try_mutant(m, &copy, verilator)?;
        line(&format!("{:<34} {:<9} {:>6}  {}", m.name, outcome, start.elapsed().as_secs(), m.test));
        if outcome != "caught" {
            survivors.push(format!("{}: {outcome}", m.name));
        }
        let _ = std::fs::remove_dir_all(&copy);
    }
    if ran == 0 {
        return Err(Failure::failed(format!("no mutant's name holds '{filter}'")));
    }
    if survivors.is_empty() { Ok(()) } else { Err(Failure::failed(survivors.join("\n"))) }
}

fn load() -> Result<Vec<Mutant>, Failure> {
    let folder = root().join("tests/mutants");
    let fail = |p: &Path, e: &dyn std::fmt::Display| Failure::failed(format!("{}: {e}", p.display()));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|e| fail(&folder, &e))?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    let mut all = Vec::new();
    for p in paths {
        let text = std::fs::read_to_string(&p).map_err(|e| fail(&p, &e))?;
        let file: File = toml::from_str(&text).map_err(|e| fail(&p, &e))?;
        all.extend(file.mutant);
    }
    Ok(all)
}

/// Copies the RTL to `copy` and applies the mutant.
fn weaken(m: &Mutant, copy: &Path) -> Result<(), Failure> {
    let fail = |e: std::io::Error| Failure::failed(format!("{}: {e}", copy.display()));
    if copy.exists() {
        std::fs::remove_dir_all(copy).map_err(fail)?;
    }
    copy_tree(&root().join("shell-rtl"), &copy.join("shell-rtl")).map_err(fail)?;
    copy_tree(&root().join("sim/rtl/tests"), &copy.join("sim/rtl/tests")).map_err(fail)?;
    for e in &m.edit {
        let path = copy.join("shell-rtl").join(&e.file);
        let text = std::fs::read_to_string(&path).map_err(|err| Failure::failed(format!("{}: {}: {err}", m.name, e.file)))?;
        let found = text.matches(&e.find).count();
        if found != 1 {
            return Err(Failure::failed(format!(
                "{}: its text stands {found} times in {}, expected once; mend tests/mutants",
                m.name, e.file
            )));
        }
        std::fs::write(&path, text.replacen(&e.find, &e.replace, 1)).map_err(fail)?;
    }
    if m.edit.iter().any(|e| e.file.ends_with(".uasm")) {
        let mut assemble = process::cargo(&["run", "--quiet", "--package", "shef-gen", "--", "ucode"]);
        assemble.arg(copy.join("shell-rtl/ucode/shield.uasm")).arg(copy.join("shell-rtl/rtl/core/shef_ucode_pkg.sv"));
        process::run(&mut assemble, "assembling the microprogram")?;
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else if path.extension().is_some_and(|e| e == "sv" || e == "toml" || e == "uasm") {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

fn try_mutant(m: &Mutant, copy: &Path, verilator: &Path) -> Result<&'static str, Failure> {
    let parts: Vec<&str> = m.test.split('/').collect();
    let [package, target, name] = parts[..] else {
        return Err(Failure::failed(format!("{}: test '{}' is not package/target/name", m.name, m.test)));
    };
    let mut c = process::cargo(&["test", "--quiet", "--package", package, "--test", target, "--", "--exact", name]);
    c.env("SHEF_ROOT", copy).env("SHEF_CACHE", copy.with_file_name("cache")).env("SHEF_VERILATOR", verilator).stdin(Stdio::null());
    let out = c.output().map_err(|e| Failure::failed(format!("cargo test: {e}")))?;
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let log = copy.with_extension("log");
    std::fs::write(&log, &text).map_err(|e| Failure::failed(format!("{}: {e}", log.display())))?;
    Ok(if text.contains(BUILD_FAILED) || text.contains("could not compile") {
        "NO BUILD"
    } else if !text.contains("1 failed") && !text.contains("1 passed") {
        "NO TEST"
    } else if out.status.success() {
        "SURVIVED"
    } else {
        "caught"
    })
}
