//! Checks `docs/threat-model.md` and `docs/audits.md` against the code: everything that they name
//! exists, and every proof and every weakened Shield belongs to a countermeasure. The tests that
//! mutants name exist. Targets that cargo does not build as tests contain no tests.

use crate::files;
use crate::{formal, mutants, root};
use cargo_metadata::{Metadata, MetadataCommand};
use fs_err as fs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn workspace() -> Metadata {
    MetadataCommand::new().current_dir(root()).no_deps().exec().expect("cargo metadata")
}

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Names of the workspace's test programs, `CRATE/PROGRAM`, and of its crates' functions,
/// `CRATE/FUNCTION`.
struct Tests {
    programs: BTreeSet<String>,
    functions: BTreeSet<String>,
}

impl Tests {
    fn of_the_workspace() -> Self {
        let mut tests = Self { programs: BTreeSet::new(), functions: BTreeSet::new() };
        for package in workspace().packages {
            let targets = package.targets.iter().filter(|target| target.is_test());
            let names = targets.map(|target| target.name.as_str()).chain(["lib"]);
            tests.programs.extend(names.map(|name| format!("{}/{name}", package.name)));
            let folder = package.manifest_path.parent().expect("a folder");
            for text in ["src", "tests"].iter().flat_map(|of| sources(folder.join(of).as_ref())) {
                for after in text.split("fn ").skip(1) {
                    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_');
                    let name = &after[..end.unwrap_or(after.len())];
                    tests.functions.insert(format!("{}/{name}", package.name));
                }
            }
        }
        tests
    }

    /// Whether `CRATE/PROGRAM/FUNCTION` exists; accepts `MODULE::FUNCTION` and `FUNC*` too.
    fn has(&self, name: &str) -> bool {
        let [package, program, function] = name.split('/').collect::<Vec<_>>()[..] else {
            return false;
        };
        self.has_function(package, function)
            && self.programs.contains(&format!("{package}/{program}"))
    }

    /// Whether a crate has `FUNCTION`, `MODULE::FUNCTION` or `FUNC*`.
    fn has_function(&self, package: &str, path: &str) -> bool {
        let function = path.rsplit("::").next().unwrap_or(path);
        match function.strip_suffix('*') {
            Some(start) => {
                self.functions.iter().any(|known| known.starts_with(&format!("{package}/{start}")))
            }
            None => self.functions.contains(&format!("{package}/{function}")),
        }
    }
}

#[test]
fn the_threat_model_names_what_exists_and_everything_that_guards() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).expect("the page");
    let mutants: BTreeSet<String> =
        mutants::by_hand().expect("mutants").into_iter().map(|mutant| mutant.name).collect();
    let proofs: BTreeSet<String> = formal::names().into_iter().collect();
    let tests = Tests::of_the_workspace();
    let mut named = BTreeMap::new();
    let (_, claims) = page.split_once("\n## ").expect("claims");
    for item in claims.split("\n- ").skip(1) {
        let mut paragraphs = item
            .split("\n\n")
            .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
        let claim = item.lines().next().unwrap_or("");
        let shown =
            paragraphs.find_map(|paragraph| Some(paragraph.split_once("Shown by ")?.1.to_owned()));
        let shown = shown.unwrap_or_else(|| panic!("{claim}: nothing shows it"));
        for name in quoted(&shown) {
            let known = mutants.contains(name) || proofs.contains(name) || tests.has(name);
            assert!(known, "{claim}: there is no test, proof or mutant {name}");
            named.insert(name.to_owned(), claim);
        }
    }
    for guard in mutants.iter().chain(&proofs) {
        assert!(
            named.contains_key(guard),
            "{guard} belongs to no countermeasure of docs/threat-model.md"
        );
    }
}

#[test]
fn audits_name_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/audits.md")).expect("the page");
    let tests = Tests::of_the_workspace();
    let packages: BTreeSet<&str> =
        tests.programs.iter().filter_map(|program| program.split('/').next()).collect();
    for name in quoted(&page) {
        let parts: Vec<&str> = name.split('/').collect();
        if let [package, _, function] = parts[..]
            && packages.contains(package)
            && !function.contains('.')
        {
            assert!(tests.has(name), "docs/audits.md names {name}, and there is no such test");
        }
        // A test by its module: `CRATE/MODULE::FUNCTION`.
        if let [package, path] = parts[..]
            && packages.contains(package)
            && path.contains("::")
        {
            let known = tests.has_function(package, path);
            assert!(known, "docs/audits.md names {name}, and there is no such test");
        }
    }
}

#[test]
fn mutants_name_tests_that_exist() {
    let tests = Tests::of_the_workspace();
    for mutant in mutants::load().expect("mutants") {
        let Some(test) = &mutant.test else { continue };
        assert!(tests.has(test), "mutant {}: there is no test {test}", mutant.name);
    }
}

/// `test = false` saves a second build of a target without unit tests; cargo would skip any tests
/// in it.
#[test]
fn targets_that_are_not_tested_have_no_tests() {
    for package in workspace().packages {
        for target in package.targets.iter().filter(|t| !t.test && (t.is_lib() || t.is_bin())) {
            let path = target.src_path.as_std_path();
            // A program's modules belong to its library, and are tested there.
            let path = if target.is_lib() { path.parent().expect("a folder") } else { path };
            let tests =
                sources(path).iter().any(|t| t.contains("#[test]") || t.contains("cfg(test)"));
            assert!(!tests, "{} has tests, and its manifest says `test = false`", path.display());
        }
    }
}

/// Texts of a file, or of the Rust files below a folder.
fn sources(path: &Path) -> Vec<String> {
    let files = files::below(path).unwrap_or_default();
    let sources = files.iter().filter(|path| files::is(path, "rs"));
    sources.map(|path| fs::read_to_string(path).expect("a file")).collect()
}
