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

use crate::process::{self, Context, Result, anyhow, ensure, output, say};
use crate::test::Binary;
use crate::{files, root, tools};
use fs_err as fs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    /// `package/test-target/test-name` of the test that must fail (`lib` for unit tests of a
    /// library); if missing, the hostile bench is the test.
    pub test: Option<String>,
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
    /// The test that the mutant names, or the hostile bench if it names none.
    Test,
    /// The hostile bench, or the test if the bench detects nothing.
    Attack,
}

/// Finds tests for places that the list does not name, with `filter` in their files or functions,
/// and prints lines for it.
pub fn unnamed(filter: &str) -> Result<()> {
    let places = places::unnamed()?.into_iter();
    for (heading, mutant) in places.filter(|(heading, _)| heading.contains(filter)) {
        let entry = match mutant.as_ref().map(native::find_test).transpose()? {
            None => "mutant = \"\"".to_owned(),
            Some(Some(test)) => format!("test = {test:?}"),
            Some(None) => "why = \"\"".to_owned(),
        };
        println!("{heading} = {{ {entry} }}");
    }
    Ok(())
}

/// Runs the mutants whose names contain `filter`, and prints the table.
pub fn run(verilator: &Path, filter: &str, by: By) -> Result<()> {
    let mut all = load()?;
    all.retain(|m| m.name.contains(filter));
    ensure!(!all.is_empty(), "no mutant has {filter:?} in its name; tests/mutants lists them");
    let mut binaries = Vec::new();
    if by == By::Attack || all.iter().any(|m| !m.is_native()) {
        let built = crate::test::build()?;
        ensure!(built.outcome().ok(), built.outcome().text);
        binaries = built.binaries;
    }
    let mut survivors = Vec::new();
    match by {
        By::Test => println!("{:<34} {:<9} {:>6}  caught by", "mutant", "", "s"),
        By::Attack => {
            println!("| mutant | removed rule | detected by | attempts |\n|---|---|---|---:|");
        }
    }
    for m in &all {
        let Mutant { name, breaks, .. } = m;
        say(&format!("mutant {name} ({breaks})"));
        let start = Instant::now();
        let caught = if by == By::Attack { attack_mutant(m, verilator)? } else { None };
        let test = m.test.as_deref().unwrap_or("the hostile bench");
        let outcome = match caught {
            Some(_) => "caught",
            None => m.try_test(m.binary(&binaries), verilator)?,
        };
        let seconds = start.elapsed().as_secs();
        match (by, caught) {
            (By::Test, _) => println!("{name:<34} {outcome:<9} {seconds:>6}  {test}"),
            (By::Attack, Some((what, after))) => {
                println!("| {name} | {breaks} | {what} | {after} |");
            }
            (By::Attack, None) => println!("| {name} | {breaks} | {outcome}: test `{test}` | - |"),
        }
        if outcome != "caught" {
            survivors.push(format!("{name}: {outcome}"));
        }
        let _ = fs::remove_dir_all(m.copy());
    }
    ensure!(survivors.is_empty(), "{}", survivors.join("\n"));
    Ok(())
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
fn attack_mutant(m: &Mutant, verilator: &Path) -> Result<Option<(String, u64)>> {
    let Some(configuration) = &m.attack else { return Ok(None) };
    let copy = weaken(m)?;
    let mut c = process::built("shef-attack")?;
    c.env("SHEF_ROOT", &copy).env("SHEF_CACHE", process::cache_dir());
    c.env("SHEF_VERILATOR", verilator);
    c.args(["--stop", "--no-waves", "--quick", "--json", "--configuration", configuration]);
    c.args(["--n", &ATTEMPTS.to_string(), "--dir"]).arg(copy.join("attack"));
    let out = output(&mut c)?;
    fs::write(copy.with_extension("attack.log"), &out.stderr)?;
    if out.stdout.is_empty() {
        // Even the honest traffic before the first attempt fails.
        let last = out.stderr.lines().last().unwrap_or_default();
        ensure!(!build_failed(last), "{}: {last}", m.name);
        return Ok(Some(("honest traffic".into(), 0)));
    }
    let report: Report = serde_json::from_str(&out.stdout)
        .with_context(|| format!("{}: the bench's report", m.name))?;
    Ok(report.failures.first().map(|f| {
        let seen = f.text.lines().nth(1).unwrap_or_default().trim();
        (format!("{}, {seen}", f.kind), report.n)
    }))
}

/// All mutants.
pub fn load() -> Result<Vec<Mutant>> {
    let mut all = by_hand()?;
    all.extend(places::load()?);
    all.extend(places_rtl::load()?);
    Ok(all)
}

/// The mutants that are written by hand.
pub fn by_hand() -> Result<Vec<Mutant>> {
    let mut all = Vec::new();
    for path in files::below(&root().join("tests/mutants"))? {
        let list = path.ends_with(places::LIST) || path.ends_with(places_rtl::LIST);
        if files::is(&path, "toml") && !list {
            let file: Result<File, _> = toml::from_str(&fs::read_to_string(&path)?);
            all.extend(file.with_context(|| path.display().to_string())?.mutant);
        }
    }
    Ok(all)
}

/// What tests read at run time, by folder and end of the name: the RTL, which mutants change, and
/// inputs, which they do not.
const READ: [(&str, &[&str]); 4] = [
    ("shell-rtl", RTL),
    ("sim/rtl/tests", RTL),
    ("tests/vectors", &["json"]),
    ("attestation/firmware", &["img", "sig"]),
];
const RTL: &[&str] = &["sv", "svh", "toml", "uasm", "vlt"];

/// Copies the RTL and applies the mutant; gives the copy's root.
fn weaken(m: &Mutant) -> Result<PathBuf> {
    let copy = m.copy();
    files::remove(&copy)?;
    for (folder, kinds) in READ {
        let wanted = |path: &Path| kinds.iter().any(|end| files::is(path, end));
        files::copy(&root().join(folder), &copy.join(folder), wanted)?;
    }
    for e in &m.edit {
        let path = copy.join("shell-rtl").join(&e.file);
        fs::write(&path, m.applied(e, &fs::read_to_string(&path)?)?)?;
    }
    if m.edit.iter().any(|e| e.file.ends_with(".uasm")) {
        let mut assemble = process::built("shef-gen")?;
        assemble
            .arg("ucode")
            .arg(copy.join("shell-rtl/ucode/shield.uasm"))
            .arg(copy.join("shell-rtl/rtl/core/shef_ucode_pkg.sv"));
        process::run(&mut assemble, "assembling the microprogram")?;
    }
    Ok(copy)
}

impl Mutant {
    /// The mutant of one place of a list.
    fn of_place(name: String, breaks: String, test: Option<String>, edit: Edit) -> Self {
        Self { name, breaks, test, attack: None, edit: vec![edit] }
    }

    fn copy(&self) -> PathBuf {
        process::target_dir()
            .join("mutants")
            .join(self.name.replace(|c: char| !c.is_alphanumeric() && c != '.', "-"))
    }

    /// The text of a file with one of its edits.
    fn applied(&self, edit: &Edit, text: &str) -> Result<String> {
        let (name, file) = (&self.name, &edit.file);
        edit.apply(text).map_err(|found| {
            anyhow!(
                "{name}: its text occurs {found} times in {file}, expected once; fix tests/mutants"
            )
        })
    }

    /// Its full text: with the RTL and the test, this decides whether the test detects it.
    pub fn text(&self) -> String {
        let edits: String =
            self.edit.iter().map(|e| format!("{}\0{}\0{}\0", e.file, e.find, e.replace)).collect();
        format!("{:?} {edits}", self.test.as_ref().or(self.attack.as_ref()))
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

    /// Runs its test, or the hostile bench if it names none, on a copy with the mutant.
    pub fn try_test(&self, binary: Option<&Binary>, verilator: &Path) -> Result<&'static str> {
        if self.is_native() {
            let (outcome, text) = native::try_test(self)?;
            self.log(&text)?;
            return Ok(outcome);
        }
        let binary = match (binary, &self.test) {
            (Some(binary), _) => binary,
            (None, Some(_)) => return Ok("NO TEST"),
            (None, None) => {
                let caught = attack_mutant(self, verilator)?.is_some();
                let _ = fs::remove_dir_all(self.copy());
                return Ok(if caught { "caught" } else { "SURVIVED" });
            }
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
        let _ = fs::remove_dir_all(copy);
        Ok(outcome)
    }

    /// Whether its test passes on an unchanged copy: a test that fails without a mutant detects
    /// nothing.
    fn sound(&self, binary: &Binary, verilator: &Path) -> Result<bool> {
        static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
        let test = self.test.clone().unwrap_or_default();
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sound) = known().get(&test) {
            return Ok(*sound);
        }
        let whole = Self { name: format!("{}.whole", self.name), edit: Vec::new(), ..self.clone() };
        let copy = weaken(&whole)?;
        let (sound, text) = whole.run_on(&copy, binary, verilator)?;
        if !sound {
            whole.log(&text)?;
        }
        let _ = fs::remove_dir_all(copy);
        known().insert(test, sound);
        Ok(sound)
    }

    /// Runs its test on a copy: whether it passed, and what it printed.
    fn run_on(&self, copy: &Path, binary: &Binary, verilator: &Path) -> Result<(bool, String)> {
        let name = self.test.as_deref().and_then(|test| test.rsplit('/').next());
        let mut c = binary.command(verilator);
        c.args(["--include-ignored", "--exact", name.unwrap_or_default()]);
        c.env("SHEF_ROOT", copy).env("SHEF_CACHE", process::cache_dir());
        let out = output(c.env("SHEF_IBEX", tools::ibex()?))?;
        Ok((out.status.success(), out.all()))
    }

    /// Saves the output of its test.
    fn log(&self, text: &str) -> Result<()> {
        Ok(files::update(&self.copy().with_extension("log"), text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    /// Path and text to replace of each edit of a mutant.
    type Edits = Vec<(String, String)>;

    /// The mutants that a list of places may name.
    pub fn named() -> Result<BTreeMap<String, Edits>> {
        let edits = |mutant: Mutant| -> Edits {
            mutant.edit.into_iter().map(|edit| (edit.path(), edit.find)).collect()
        };
        let by_hand = by_hand()?.into_iter().map(|mutant| (mutant.name.clone(), edits(mutant)));
        let of_proofs = crate::formal::mutants()?.into_iter().map(|(proof, mutant, file, find)| {
            (format!("{proof}/{mutant}"), vec![(format!("shell-rtl/rtl/{file}"), find)])
        });
        Ok(by_hand.chain(of_proofs).collect())
    }

    /// Whether one of the edits changes a place of a file.
    pub fn meets(edits: &Edits, path: &str, text: &str, at: &Range<usize>) -> bool {
        edits.iter().filter(|(changed, _)| changed == path).any(|(_, find)| {
            let start = text.find(find.as_str());
            start.is_some_and(|start| start < at.end && at.start < start + find.len())
        })
    }

    #[test]
    fn every_mutant_still_applies() -> Result<()> {
        let mutants = load()?;
        let mut wrong = Vec::new();
        for m in &mutants {
            let Mutant { name, test, attack, edit, .. } = m;
            assert!(test.is_some() || attack.is_some(), "{name}: neither a test nor an attack");
            assert!(m.is_native() || !edit.iter().any(native::is), "{name}: both RTL and Rust");
            // Edits of one file are applied in sequence.
            let mut files: BTreeMap<String, String> = BTreeMap::new();
            for e in edit {
                let text = files.entry(e.path()).or_insert_with_key(|path| {
                    fs::read_to_string(root().join(path)).unwrap_or_default()
                });
                match m.applied(e, text) {
                    Ok(new) => *text = new,
                    Err(error) => wrong.push(format!("{error}: {}", e.find)),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(mutants.len() >= 24, "{} mutants", mutants.len());
        Ok(())
    }
}
