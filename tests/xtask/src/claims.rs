//! Holds `docs/threat-model.md` and `docs/audits.md` to the code: what they name exists, and every
//! proof and every weakened Shield belongs to a countermeasure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::{formal, mutants, root};

/// What stands between backticks in a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Every test of the workspace: `CRATE/FILE/FUNCTION`, with `lib` for tests inside the sources.
fn tests() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for member in members() {
        let manifest = fs::read_to_string(member.join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = manifest.parse().expect("TOML");
        let package = manifest["package"]["name"].as_str().expect("a name").to_owned();
        collect(&package, "lib", &member.join("src"), &mut found);
        for entry in fs::read_dir(member.join("tests")).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            collect(&package, name.trim_end_matches(".rs"), &path, &mut found);
        }
    }
    found
}

fn members() -> Vec<std::path::PathBuf> {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let workspace: toml::Table = text.parse().expect("TOML");
    let members = workspace["workspace"]["members"].as_array().expect("a list");
    members.iter().map(|member| root().join(member.as_str().expect("a path"))).collect()
}

/// Functions in a file, or in the files of a folder.
fn collect(package: &str, file: &str, path: &Path, found: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder").flatten() {
            collect(package, file, &entry.path(), found);
        }
    } else if path.extension().is_some_and(|e| e == "rs") {
        let text = fs::read_to_string(path).expect("a file");
        for after in text.split("fn ").skip(1) {
            let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            found.insert(format!("{package}/{file}/{name}"));
        }
    }
}

#[test]
fn the_threat_model_names_what_exists_and_everything_that_guards() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).expect("the page");
    let mutants: BTreeSet<String> = mutants::load().expect("mutants").into_iter().map(|mutant| mutant.name).collect();
    let proofs: BTreeSet<String> = formal::names().into_iter().collect();
    let tests = tests();
    let mut named = BTreeMap::new();
    for item in page.split("\n- ").skip(1) {
        let claim = item.lines().next().unwrap_or("");
        let (_, shown) = item.split_once("Shown by ").unwrap_or_else(|| panic!("{claim}: nothing shows it"));
        let shown = shown.split("\n\n").next().unwrap_or("");
        for name in quoted(shown) {
            let known = mutants.contains(name) || proofs.contains(name) || tests.contains(name);
            assert!(known, "{claim}: there is no test, proof or mutant {name}");
            named.insert(name.to_owned(), claim);
        }
    }
    for guard in mutants.iter().chain(&proofs) {
        assert!(named.contains_key(guard), "{guard} belongs to no countermeasure of docs/threat-model.md");
    }
}

#[test]
fn audits_name_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/audits.md")).expect("the page");
    let tests = tests();
    let crates: BTreeSet<&str> = tests.iter().filter_map(|test| test.split('/').next()).collect();
    for name in quoted(&page) {
        let parts: Vec<&str> = name.split('/').collect();
        if let [package, _, function] = parts[..]
            && crates.contains(package)
            && !function.contains('.')
        {
            assert!(tests.contains(name), "docs/audits.md names {name}, and there is no such test");
        }
    }
}
