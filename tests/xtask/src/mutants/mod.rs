//! `cargo xtask mutants`: changes a copy of the RTL, or of the Security Kernel, in one place at a
//! time and checks that the change is detected: by the test that the mutant names or, with
//! `--attack`, by the hostile bench.
//!
//! A mutant is an entry of `tests/mutants/*.toml`, or is derived from a comparison or an erasure of
//! the Security Kernel's sources (`places`) or of its RTL (`places_rtl`). It has edits (a file, a
//! text that occurs in it exactly once, and its replacement) and a detector: a test, a
//! configuration of the hostile bench, or both. Microcode is reassembled after an edit. Tests and
//! bench run on the copy through `SHEF_ROOT`. A mutant that does not build counts as a failure of
//! this command, not as detected.

mod native;
mod places;
mod places_rtl;

pub use places_rtl::of_proof;

use crate::process::{self, Failure, say};
use crate::test::Binary;
use crate::{root, tools};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    mutant: Vec<Mutant>,
}

/// A copy with one weakness.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// Short name, words joined by dashes.
    pub name: String,
    /// The claim that no longer holds.
    pub breaks: String,
    /// `package/test-target/test-name` of the test that must fail; if missing, the hostile bench is
    /// the test.
    test: Option<String>,
    /// Configuration in which the hostile bench attacks it; if missing, no configuration has the
    /// weakened part, or no act of the bench can reveal it.
    attack: Option<String>,
    /// The changes.
    edit: Vec<Edit>,
}

/// One change of one file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Source file below `shell-rtl`, or a path that begins with `attestation/`.
    file: String,
    /// The text to replace; occurs in the file exactly once.
    find: String,
    /// The replacement.
    replace: String,
    /// Its position, if known.
    #[serde(skip)]
    at: Option<usize>,
}

impl Edit {
    /// The file's path, relative to the root.
    fn path(&self) -> String {
        if native::is(self) { self.file.clone() } else { format!("shell-rtl/{}", self.file) }
    }

    /// The file's text with the edit, or the number of occurrences of the text to be replaced.
    fn apply(&self, text: &str) -> Result<String, usize> {
        if let Some(at) = self.at {
            let (before, rest) = text.split_at_checked(at).ok_or(0_usize)?;
            let after = rest.strip_prefix(&self.find).ok_or(0_usize)?;
            return Ok(format!("{before}{}{after}", self.replace));
        }
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            found => Err(found),
        }
    }
}

/// Prefixes of the codes of failed builds and loads of a design (crate shef-rtl); other codes
/// concern the behaviour of a design that was built.
const BUILD_FAILED: [&str; 4] = ["SHEF-RTL-00", "SHEF-RTL-012", "SHEF-RTL-013", "SHEF-RTL-02"];

fn build_failed(text: &str) -> bool {
    BUILD_FAILED.iter().any(|code| text.contains(code))
}

/// Attempts of the hostile bench on a mutant.
const ATTEMPTS: u64 = 4000;

/// The detector.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The test that the mutant names.
    Test,
    /// The hostile bench, or the test if the bench detects nothing.
    Attack,
}

/// Finds tests for places that the list does not name, with `filter` in their files or functions,
/// and prints lines for it.
pub fn unnamed(filter: &str) -> Result<(), Failure> {
    for (heading, mutant) in
        places::unnamed()?.into_iter().filter(|(heading, _)| heading.contains(filter))
    {
        let said = match mutant {
            None => "mutant = \"\"".to_owned(),
            Some(mutant) => match native::who_catches(&mutant)? {
                Some(test) => format!("test = {test:?}"),
                None => "why = \"\"".to_owned(),
            },
        };
        println!("{heading} = {{ {said} }}");
    }
    Ok(())
}

/// Runs the mutants whose names contain `filter`, and prints the table.
pub fn run(verilator: &Path, filter: &str, by: By) -> Result<(), Failure> {
    let line = |text: &str| println!("{text}");
    let all = load()?;
    let chosen = |m: &&Mutant| m.name.contains(filter) && (by == By::Attack || m.test.is_some());
    if !all.iter().any(|m| chosen(&m)) {
        return Err(Failure::failed(format!(
            "no mutant has {filter:?} in its name; tests/mutants lists them"
        )));
    }
    let mut binaries = Vec::new();
    if by == By::Attack || all.iter().filter(chosen).any(|m| !m.is_native()) {
        let built = crate::test::build()?;
        if !built.outcome().ok() {
            return Err(Failure::failed(built.outcome().text));
        }
        binaries = built.binaries;
    }
    let mut survivors = Vec::new();
    match by {
        By::Test => line(&format!("{:<34} {:<9} {:>6}  caught by", "mutant", "", "s")),
        By::Attack => {
            line("| mutant | removed rule | detected by | attempts |\n|---|---|---|---:|");
        }
    }
    for m in all.iter().filter(chosen) {
        say(&format!("mutant {} ({})", m.name, m.breaks));
        let start = Instant::now();
        let caught = if by == By::Attack && m.attack.is_some() {
            attack_mutant(m, &weaken(m)?, verilator)?
        } else {
            None
        };
        let test = m.test.as_deref().unwrap_or_default();
        let outcome =
            if caught.is_some() { "caught" } else { m.try_test(m.binary(&binaries), verilator)? };
        match (by, caught) {
            (By::Test, _) => line(&format!(
                "{:<34} {:<9} {:>6}  {}",
                m.name,
                outcome,
                start.elapsed().as_secs(),
                test
            )),
            (By::Attack, Some((what, after))) => {
                line(&format!("| {} | {} | {what} | {after} |", m.name, m.breaks));
            }
            (By::Attack, None) => {
                line(&format!("| {} | {} | {outcome}: test `{test}` | - |", m.name, m.breaks));
            }
        }
        if outcome != "caught" {
            survivors.push(format!("{}: {outcome}", m.name));
        }
        let _ = std::fs::remove_dir_all(m.copy());
    }
    if survivors.is_empty() { Ok(()) } else { Err(Failure::failed(survivors.join("\n"))) }
}

/// The part of the bench's report that the table shows.
#[derive(Deserialize)]
struct Report {
    n: u64,
    failures: Vec<Seen>,
}

#[derive(Deserialize)]
struct Seen {
    kind: String,
    text: String,
}

/// Attacks a mutant until the bench detects it: the observation, and the number of attempts.
fn attack_mutant(
    m: &Mutant,
    copy: &Path,
    verilator: &Path,
) -> Result<Option<(String, u64)>, Failure> {
    let Some(configuration) = &m.attack else { return Ok(None) };
    let mut c = process::built("shef-attack")?;
    c.env("SHEF_ROOT", copy)
        .env("SHEF_CACHE", process::cache_dir())
        .env("SHEF_VERILATOR", verilator)
        .stdin(Stdio::null());
    c.args(["--stop", "--no-waves", "--quick", "--json", "--configuration", configuration, "--n"])
        .arg(ATTEMPTS.to_string());
    c.arg("--dir").arg(copy.join("attack"));
    let out = c.output().map_err(|e| Failure::failed(format!("shef-attack: {e}")))?;
    let told = String::from_utf8_lossy(&out.stderr);
    let log = copy.with_extension("attack.log");
    std::fs::write(&log, told.as_bytes())
        .map_err(|e| Failure::failed(format!("{}: {e}", log.display())))?;
    if out.stdout.is_empty() {
        // Even the honest traffic before the first attempt fails.
        let last = told.lines().last().unwrap_or_default();
        return if build_failed(last) {
            Err(Failure::failed(format!("{}: {last}", m.name)))
        } else {
            Ok(Some(("honest traffic".into(), 0)))
        };
    }
    let report: Report = serde_json::from_slice(&out.stdout)
        .map_err(|e| Failure::failed(format!("{}: the bench's report: {e}", m.name)))?;
    Ok(report.failures.first().map(|f| {
        let seen = f.text.lines().nth(1).unwrap_or_default().trim();
        (format!("{}, {seen}", f.kind), report.n)
    }))
}

/// All mutants.
///
/// # Errors
/// A file that cannot be read.
pub fn load() -> Result<Vec<Mutant>, Failure> {
    let mut all = by_hand()?;
    all.extend(places::load()?);
    all.extend(places_rtl::load()?);
    Ok(all)
}

/// The mutants that are written by hand.
///
/// # Errors
/// A file that cannot be read.
pub fn by_hand() -> Result<Vec<Mutant>, Failure> {
    let folder = root().join("tests/mutants");
    let fail =
        |p: &Path, e: &dyn std::fmt::Display| Failure::failed(format!("{}: {e}", p.display()));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|e| fail(&folder, &e))?
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| {
            p.extension().is_some_and(|e| e == "toml")
                && !p.ends_with(places::LIST)
                && !p.ends_with(places_rtl::LIST)
        })
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

/// Copies the RTL and applies the mutant; gives the copy's root.
fn weaken(m: &Mutant) -> Result<PathBuf, Failure> {
    let copy = m.copy();
    let copy = copy.as_path();
    let fail = |e: std::io::Error| Failure::failed(format!("{}: {e}", copy.display()));
    if copy.exists() {
        std::fs::remove_dir_all(copy).map_err(fail)?;
    }
    copy_tree(&root().join("shell-rtl"), &copy.join("shell-rtl")).map_err(fail)?;
    copy_tree(&root().join("sim/rtl/tests"), &copy.join("sim/rtl/tests")).map_err(fail)?;
    for e in &m.edit {
        let path = copy.join("shell-rtl").join(&e.file);
        let text = std::fs::read_to_string(&path)
            .map_err(|err| Failure::failed(format!("{}: {}: {err}", m.name, e.file)))?;
        std::fs::write(&path, m.applied(e, &text)?).map_err(fail)?;
    }
    if m.edit.iter().any(|e| e.file.ends_with(".uasm")) {
        let mut assemble = process::built("shef-gen")?;
        assemble
            .arg("ucode")
            .arg(copy.join("shell-rtl/ucode/shield.uasm"))
            .arg(copy.join("shell-rtl/rtl/core/shef_ucode_pkg.sv"));
        process::run(&mut assemble, "assembling the microprogram")?;
    }
    Ok(copy.to_path_buf())
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let Some(name) = path.file_name() else { continue };
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else if path
            .extension()
            .is_some_and(|e| ["sv", "svh", "toml", "uasm", "vlt"].iter().any(|known| e == *known))
        {
            std::fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

impl Mutant {
    fn copy(&self) -> PathBuf {
        process::target_dir()
            .join("mutants")
            .join(self.name.replace(|c: char| !c.is_alphanumeric() && c != '.', "-"))
    }

    /// The text of a file with one of its edits.
    fn applied(&self, edit: &Edit, text: &str) -> Result<String, Failure> {
        edit.apply(text).map_err(|found| {
            Failure::failed(format!(
                "{}: its text occurs {found} times in {}, expected once; fix tests/mutants",
                self.name, edit.file
            ))
        })
    }

    /// Its full text: with the RTL and the test, this decides whether the test detects it.
    pub fn text(&self) -> String {
        let edits: String =
            self.edit.iter().map(|e| format!("{}\0{}\0{}\0", e.file, e.find, e.replace)).collect();
        format!("{:?} {edits}", self.test)
    }

    /// Whether it changes a file for which `wanted` is true.
    pub fn weakens(&self, wanted: impl Fn(&str) -> bool) -> bool {
        self.edit.iter().any(|e| wanted(&e.path()))
    }

    /// Whether it changes boot ROM or Security Kernel only, and no RTL.
    pub fn is_native(&self) -> bool {
        self.edit.iter().all(native::is)
    }

    /// The program with the test that must fail.
    pub fn binary<'a>(&self, all: &'a [Binary]) -> Option<&'a Binary> {
        let (program, _) = self.test.as_ref()?.rsplit_once('/')?;
        all.iter().find(|b| b.name() == program)
    }

    /// Runs its test on a copy with the mutant.
    ///
    /// # Errors
    /// The mutant cannot be applied, or the test cannot be started.
    pub fn try_test(
        &self,
        binary: Option<&Binary>,
        verilator: &Path,
    ) -> Result<&'static str, Failure> {
        if self.is_native() {
            let (outcome, text) = native::try_test(self)?;
            self.log(&text)?;
            return Ok(outcome);
        }
        let Some(binary) = binary else {
            return Ok(if self.test.is_some() { "NO TEST" } else { "SURVIVED" });
        };
        if !self.sound(binary, verilator)? {
            return Ok("TEST FAILS");
        }
        let copy = weaken(self)?;
        let (passed, text) = self.run_on(&copy, binary, verilator)?;
        self.log(&text)?;
        // A failed assertion of the design aborts the program; that counts as detected, too.
        let outcome = if build_failed(&text) {
            "NO BUILD"
        } else if !text.contains("running 1 test") {
            "NO TEST"
        } else if passed {
            "SURVIVED"
        } else {
            "caught"
        };
        let _ = std::fs::remove_dir_all(copy);
        Ok(outcome)
    }

    /// Whether its test passes on an unchanged copy: a test that fails without a mutant detects
    /// nothing.
    fn sound(&self, binary: &Binary, verilator: &Path) -> Result<bool, Failure> {
        static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
        let test = self.test.clone().unwrap_or_default();
        let known =
            |test: &str| KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(test).copied();
        if let Some(sound) = known(&test) {
            return Ok(sound);
        }
        let whole = Self { name: format!("{}.whole", self.name), edit: Vec::new(), ..self.clone() };
        let copy = weaken(&whole)?;
        let (sound, text) = whole.run_on(&copy, binary, verilator)?;
        if !sound {
            whole.log(&text)?;
        }
        let _ = std::fs::remove_dir_all(copy);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(test, sound);
        Ok(sound)
    }

    /// Runs its test on a copy: whether it passed, and what it printed.
    fn run_on(
        &self,
        copy: &Path,
        binary: &Binary,
        verilator: &Path,
    ) -> Result<(bool, String), Failure> {
        let name =
            self.test.as_deref().and_then(|test| test.rsplit('/').next()).unwrap_or_default();
        let mut c = binary.command(verilator);
        c.args(["--include-ignored", "--exact", name]);
        c.env("SHEF_ROOT", copy).env("SHEF_CACHE", process::cache_dir()).stdin(Stdio::null());
        c.env("SHEF_IBEX", tools::ensure_ibex(&root(), &say)?);
        let out = c.output().map_err(|e| Failure::failed(format!("{}: {e}", binary.name())))?;
        Ok((
            out.status.success(),
            format!(
                "{}{}",
                String::from_utf8_lossy(&out.stdout),
                String::from_utf8_lossy(&out.stderr)
            ),
        ))
    }

    /// Saves the output of its test.
    fn log(&self, text: &str) -> Result<(), Failure> {
        let log = self.copy().with_extension("log");
        let folder = log.parent().unwrap_or(&log);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&log, text))
            .map_err(|e| Failure::failed(format!("{}: {e}", log.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::{BTreeMap, load, root};

    #[test]
    fn every_mutant_still_applies() {
        let mutants = load().unwrap_or_else(|e| panic!("{e:?}"));
        let mut wrong = Vec::new();
        for m in &mutants {
            assert!(m.test.is_some() || m.attack.is_some(), "{}: nobody is to notice it", m.name);
            assert!(
                m.is_native() || !m.edit.iter().any(super::native::is),
                "{}: both RTL and Rust",
                m.name
            );
            // Edits of one file are applied in sequence.
            let mut files: BTreeMap<String, String> = BTreeMap::new();
            for e in &m.edit {
                let text = files.entry(e.path()).or_insert_with_key(|path| {
                    std::fs::read_to_string(root().join(path)).unwrap_or_default()
                });
                match e.apply(text) {
                    Ok(new) => *text = new,
                    Err(found) => {
                        wrong
                            .push(format!("{}: {} times in {}: {}", m.name, found, e.file, e.find));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(mutants.len() >= 24, "{} mutants", mutants.len());
    }
}
