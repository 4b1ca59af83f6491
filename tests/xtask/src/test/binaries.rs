//! The workspace's tests: built once and linted in the same build, then run one program at a time.

use super::lanes::Outcome;
use super::passes::{self, Tree};
use crate::files;
use crate::process::{self, Context, Result, output};
use cargo_metadata::diagnostic::DiagnosticLevel;
use cargo_metadata::{Artifact, Message};
use fs_err as fs;
use memchr::memmem;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of a test program; a program that exceeds it is stopped, and fails.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Time limit of a program's long tests.
const LONG_LIMIT: Duration = Duration::from_secs(90 * 60);

/// A test program.
#[derive(Debug, Clone)]
pub struct Binary {
    /// Its package.
    pub package: String,
    /// Test target, or the package's library or program with its unit tests.
    pub target: String,
    path: PathBuf,
    /// Folder of the package: where cargo runs its tests.
    folder: PathBuf,
    /// Digests of the program, and of the programs that it may start.
    digests: String,
    /// The entries of [`passes::NAMED`] that occur in one of them.
    names: Names,
}

/// The artefacts of the build.
#[derive(Default)]
pub struct Built {
    /// The test programs.
    pub binaries: Vec<Binary>,
    /// Diagnostics of compiler and linter, in their own format.
    pub findings: Vec<String>,
    ok: bool,
}

impl Built {
    /// Whether everything was built, and the linter found nothing.
    pub fn outcome(&self) -> Outcome {
        match (self.ok, self.findings.len()) {
            (true, 0) => Outcome::passed(),
            (_, n) => Outcome::failed(format!(
                "{}\n{n} finding(s) of compiler and clippy",
                self.findings.concat()
            )),
        }
    }
}

/// Builds every test and program of the workspace; with clippy as the compiler, one build also
/// lints.
pub fn build() -> Result<Built> {
    const COMMAND: &str = "test --workspace --no-run --quiet --message-format json";
    let mut cargo = process::cargo(COMMAND);
    let child = cargo.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.context("cannot start cargo")?;
    let out = child.stdout.take().context("cargo: no output")?;
    let mut built = Built::default();
    let mut programs: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for message in Message::parse_stream(BufReader::new(out)) {
        match message.context("cargo test --no-run")? {
            Message::CompilerMessage(found) => {
                let shown =
                    [DiagnosticLevel::Warning, DiagnosticLevel::Error, DiagnosticLevel::Ice];
                let finding = found.message;
                built.findings.extend(finding.rendered.filter(|_| shown.contains(&finding.level)));
            }
            Message::CompilerArtifact(artifact) => built.artifact(artifact, &mut programs),
            _ => {}
        }
    }
    built.ok = child.wait().context("cargo test --no-run")?.success();
    let mut seen: BTreeMap<PathBuf, (String, Names)> = BTreeMap::new();
    for b in &mut built.binaries {
        // The tests of whole systems and of the command start all programs and examples but this one;
        // other tests start only those of their package.
        let all = ["shef-e2e", "shef-cli"].contains(&b.package.as_str());
        let starts = programs
            .iter()
            .filter(|(p, _)| (all && **p != "xtask") || **p == b.package)
            .flat_map(|(_, paths)| paths);
        for path in [&b.path].into_iter().chain(starts) {
            let (digest, names) = seen.entry(path.clone()).or_insert_with(|| {
                let bytes = fs::read(path).unwrap_or_default();
                (files::digest(&bytes), names_in(&bytes))
            });
            b.digests.push_str(digest);
            b.names.iter_mut().zip(names).for_each(|(ours, theirs)| *ours |= *theirs);
        }
    }
    built.binaries.sort_by_key(Binary::name);
    Ok(built)
}

impl Built {
    /// Adds a test, or notes a program under the name of its package.
    fn artifact(&mut self, built: Artifact, programs: &mut BTreeMap<String, Vec<PathBuf>>) {
        let Some(path) = built.executable.map(PathBuf::from) else { return };
        let manifest = fs::read_to_string(&built.manifest_path).unwrap_or_default();
        let manifest: toml::Table = manifest.parse().unwrap_or_default();
        let package = manifest.get("package").and_then(|package| package.get("name")?.as_str());
        let package = package.unwrap_or_default().to_owned();
        if built.profile.test {
            self.binaries.push(Binary {
                package,
                target: built.target.name,
                path,
                folder: built.manifest_path.parent().map(PathBuf::from).unwrap_or_default(),
                digests: String::new(),
                names: Names::default(),
            });
        } else if built.target.is_bin() || built.target.is_example() {
            programs.entry(package).or_default().push(path);
        }
    }
}

/// A selection of a program's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The tests of the normal run.
    Normal,
    /// The tests of the full run: ignored otherwise, in a module `long`.
    Long,
    /// Those that start a program of the version before, in a module `beside`.
    Beside,
}

impl Binary {
    /// `package/target`, as mutants name it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.package, self.target)
    }

    /// Digest of everything that decides the outcome of its tests.
    pub fn key(&self, which: &Which, rest: &Rest) -> String {
        let named: String = rest
            .named
            .iter()
            .zip(self.names)
            .filter(|(_, named)| *named)
            .map(|(digest, _)| digest.as_str())
            .collect();
        passes::key(&self.name(), &[&format!("{which:?}"), &self.digests, &rest.files, &named])
    }

    /// The program, in the environment that cargo would give it.
    pub fn command(&self, verilator: &Path) -> Command {
        let mut c = Command::new(&self.path);
        c.current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("SHEF_VERILATOR", verilator);
        c
    }

    /// Whether it has tests for the full run.
    pub fn has_long(&self) -> bool {
        let mut list = Command::new(&self.path);
        list.args(["--list", "--ignored", "long::"]).current_dir(&self.folder);
        output(&mut list).is_ok_and(|out| out.stdout.lines().any(|line| line.ends_with(": test")))
    }

    /// Runs its tests; their output goes to a file, and to the outcome if a test fails.
    pub fn run(&self, which: &Which, verilator: &Path) -> Outcome {
        self.run_in(self.command(verilator), which)
    }

    /// Runs those that start a program of the version before.
    pub fn run_beside(&self, before: &Path, verilator: &Path) -> Outcome {
        let mut c = self.command(verilator);
        c.env("SHEF_VERIFIERD_BEFORE", before);
        self.run_in(c, &Which::Beside)
    }

    fn run_in(&self, mut c: Command, which: &Which) -> Outcome {
        let limit = match which {
            Which::Normal => LIMIT,
            Which::Long | Which::Beside => LONG_LIMIT,
        };
        match which {
            Which::Normal => {}
            Which::Long => drop(c.args(["--ignored", "long::"])),
            Which::Beside => drop(c.args(["--ignored", "beside::"])),
        }
        run_logged(c, &format!("{}-{which:?}.log", self.name().replace('/', "-")), limit)
    }
}

/// The end of a program: success or failure, in words.
struct Ended {
    well: bool,
    how: String,
}

/// Runs a program with tests; its output goes to a file below `target/test`.
fn run_logged(c: Command, log: &str, limit: Duration) -> Outcome {
    let log = process::target_dir().join("test").join(log);
    let program = c.get_program().display().to_string();
    match logged(c, &log, limit) {
        Ok((ended, text)) => judge(&ended, &text, &log),
        Err(e) => Outcome::failed(format!("{program}: {e}")),
    }
}

fn logged(mut c: Command, log: &Path, limit: Duration) -> Result<(Ended, String)> {
    fs::create_dir_all(log.parent().unwrap_or(log))?;
    let file = std::fs::File::create(log)?;
    let mut child = c.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
    let start = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Ended { well: status.success(), how: status.to_string() };
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break Ended { well: false, how: format!("stopped after {} s", limit.as_secs()) };
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Ok((ended, String::from_utf8_lossy(&fs::read(log)?).into_owned()))
}

/// Lines of a failed program's output that are shown; the rest stays in the file.
const SHOWN: usize = 300;

fn judge(ended: &Ended, text: &str, log: &Path) -> Outcome {
    let (passed, mut failed) =
        text.lines().filter_map(closing_line).fold((0, 0), |(p, f), (a, b)| (p + a, f + b));
    if ended.well && failed == 0 {
        return Outcome { passed, ..Outcome::default() };
    }
    failed = failed.max(1);
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
    Outcome {
        passed,
        failed,
        text: format!("{shown}\n{} (all of it: {})", ended.how, log.display()),
        ..Outcome::default()
    }
}

/// Number of passed and failed tests in a closing line of the test harness.
pub(super) fn closing_line(line: &str) -> Option<(u32, u32)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let words: Vec<_> = rest.split_whitespace().collect();
        let at = words.iter().position(|w| w.trim_end_matches(';') == word)?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    Some((number("passed")?, number("failed")?))
}

/// Runs the examples in the documentation of the packages that have some.
pub fn doctests() -> Outcome {
    run_logged(process::cargo("test --workspace --doc --quiet"), "doctests.log", LIMIT)
}

/// One mark for each entry of [`passes::NAMED`].
type Names = [bool; passes::NAMED.len()];

/// Digests of the files that are not Rust.
pub struct Rest {
    files: String,
    /// Files that count only if a program names them, by the mark in their paths.
    named: Vec<String>,
}

impl Rest {
    /// Reads them from the checkout.
    pub fn of(tree: &Tree) -> Self {
        let files = tree.digest(|p| !p.ends_with(".rs") && !passes::counts_where_named(p));
        Self {
            files,
            named: passes::NAMED.iter().map(|mark| tree.digest(|p| p.contains(mark))).collect(),
        }
    }
}

/// The marks that occur in a program.
fn names_in(program: &[u8]) -> Names {
    passes::NAMED.map(|mark| memmem::find(program, mark.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_depends_on_the_pages_that_it_names() {
        let named = |program: &[u8]| {
            let marks = passes::NAMED.into_iter().zip(names_in(program));
            marks.filter(|(_, named)| *named).map(|(mark, _)| mark).collect::<Vec<_>>()
        };
        assert_eq!(named(b"\0/docs/reference/negatives.md\0"), [".md", "docs/"]);
        assert_eq!(named(b"shell-rtl/formal and Cargo.lock"), ["formal", "Cargo.lock"]);
        assert!(named(b"shell-rtl/rtl/shef_set.sv").is_empty() && named(b"").is_empty());
    }

    #[test]
    fn closing_lines_are_added_up() {
        let line = "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out";
        assert_eq!(closing_line(line), Some((4, 0)));
        let line = "test result: FAILED. 3 passed; 2 failed; 0 ignored";
        assert_eq!(closing_line(line), Some((3, 2)));
        assert_eq!(closing_line("test shield::reads ... ok"), None);
    }

    fn shell(script: &str, limit: Duration) -> Outcome {
        let dir = tempfile::tempdir().expect("folder");
        let log = dir.path().join("log");
        let mut c = Command::new("sh");
        c.args(["-c", script]);
        let (ended, text) = logged(c, &log, limit).expect("sh");
        judge(&ended, &text, &log)
    }

    #[test]
    fn a_program_that_fails_crashes_or_hangs_is_a_failure() {
        let long = Duration::from_secs(60);
        let good = shell("echo 'test result: ok. 2 passed; 0 failed; 0 ignored'", long);
        assert!(good.ok() && good.passed == 2);
        let bad =
            shell("echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored'; exit 101", long);
        assert_eq!((bad.passed, bad.failed), (2, 1));
        assert_eq!(shell("echo no closing line; kill -9 $$", long).failed, 1);
        let hung = shell("echo before; sleep 60", Duration::from_millis(200));
        assert!(hung.failed == 1 && hung.text.contains("before"), "{hung:?}");
    }
}
