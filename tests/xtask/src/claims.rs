//! Checks `docs/threat-model.md` and `docs/audits.md` against the code: everything that they name
//! exists, and every proof and every weakened Shield belongs to a countermeasure. Targets that
//! cargo does not build as tests contain no tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::{formal, mutants, root};

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
        let workspace = table(&root().join("Cargo.toml"));
        for member in workspace["workspace"]["members"].as_array().expect("a list") {
            let member = root().join(member.as_str().expect("a path"));
            let manifest = table(&member.join("Cargo.toml"));
            let package = manifest["package"]["name"].as_str().expect("a name").to_owned();
            let named =
                manifest.get("test").and_then(|tests| tests.as_array()).into_iter().flatten();
            let named = named.filter_map(|test| test["name"].as_str().map(str::to_owned));
            let files = fs::read_dir(member.join("tests")).into_iter().flatten().flatten();
            let files = files
                .map(|file| file.file_name().to_string_lossy().trim_end_matches(".rs").to_owned());
            tests.programs.extend(
                named
                    .chain(files)
                    .chain(["lib".to_owned()])
                    .map(|program| format!("{package}/{program}")),
            );
            tests.collect(&package, &member.join("src"));
            tests.collect(&package, &member.join("tests"));
        }
        tests
    }

    /// Collects the functions of a file, or of the files of a folder.
    fn collect(&mut self, package: &str, path: &Path) {
        if path.is_dir() {
            for entry in fs::read_dir(path).expect("a folder").flatten() {
                self.collect(package, &entry.path());
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(path).expect("a file");
            for after in text.split("fn ").skip(1) {
                let name: String =
                    after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                self.functions.insert(format!("{package}/{name}"));
            }
        }
    }

    /// Whether `CRATE/PROGRAM/FUNCTION` exists; accepts `MODULE::FUNCTION` and `FUNC*` too.
    fn has(&self, name: &str) -> bool {
        let [package, program, function] = name.split('/').collect::<Vec<_>>()[..] else {
            return false;
        };
        let function = function.rsplit("::").next().unwrap_or(function);
        let known = match function.strip_suffix('*') {
            Some(start) => {
                self.functions.iter().any(|known| known.starts_with(&format!("{package}/{start}")))
            }
            None => self.functions.contains(&format!("{package}/{function}")),
        };
        known && self.programs.contains(&format!("{package}/{program}"))
    }
}

fn table(path: &Path) -> toml::Table {
    fs::read_to_string(path).expect("a manifest").parse().expect("TOML")
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
    }
}

/// `test = false` saves a second build of a target without unit tests; cargo would skip any tests
/// in it.
#[test]
fn targets_that_are_not_tested_have_no_tests() {
    let workspace = table(&root().join("Cargo.toml"));
    for member in workspace["workspace"]["members"].as_array().expect("a list") {
        let member = root().join(member.as_str().expect("a path"));
        let manifest = table(&member.join("Cargo.toml"));
        let untested = |target: &toml::Value| {
            target.get("test").is_some_and(|test| test.as_bool() == Some(false))
        };
        let lib = manifest.get("lib").filter(|lib| untested(lib)).map(|_| member.join("src"));
        let bins = manifest
            .get("bin")
            .and_then(|bins| bins.as_array())
            .into_iter()
            .flatten()
            .filter(|bin| untested(bin));
        // cargo's default path is `src/bin/NAME.rs`.
        let path = |bin: &toml::Value| match bin.get("path") {
            Some(path) => member.join(path.as_str().expect("a path")),
            None => member
                .join("src/bin")
                .join(bin["name"].as_str().expect("a name"))
                .with_extension("rs"),
        };
        for path in lib.into_iter().chain(bins.map(path)) {
            assert!(path.exists(), "{} is not there", path.display());
            // A program's modules belong to its library, and are tested there.
            let tests = sources(&path)
                .into_iter()
                .find(|text| text.contains("#[test]") || text.contains("cfg(test)"));
            assert!(
                tests.is_none(),
                "{} has tests, and {} says `test = false`",
                path.display(),
                member.display()
            );
        }
    }
}

/// Texts of a file, or of the Rust files of a folder.
fn sources(path: &Path) -> Vec<String> {
    if path.is_dir() {
        return fs::read_dir(path)
            .expect("a folder")
            .flatten()
            .flat_map(|entry| sources(&entry.path()))
            .collect();
    }
    let rust = path.extension().is_some_and(|e| e == "rs");
    rust.then(|| fs::read_to_string(path).expect("a file")).into_iter().collect()
}
