//! The SBOM of the program as CycloneDX 1.5, from `cargo metadata` and Cargo.lock.

use super::PROGRAM;
use crate::process::{self, Context, Result, stdout};
use crate::root;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Node, Package, PackageId};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// The document, for this target.
pub fn write(target: &str) -> Result<Vec<u8>> {
    let mut cargo = process::cargo("metadata --format-version 1 --locked --filter-platform");
    let metadata = stdout(cargo.arg(target).stderr(Stdio::inherit()))?;
    let lock = fs_err::read_to_string(root().join("Cargo.lock"))?;
    let document = document(&MetadataCommand::parse(metadata)?, &toml::from_str(&lock)?);
    let document =
        document.with_context(|| format!("cargo metadata knows no package {PROGRAM}"))?;
    Ok(serde_json::to_vec_pretty(&document)?)
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

/// Run-time and build dependencies: everything but dev-dependencies.
fn used(node: &Node) -> impl Iterator<Item = &PackageId> {
    let linked = |kind: &cargo_metadata::DepKindInfo| kind.kind != DependencyKind::Development;
    node.deps.iter().filter(move |dep| dep.dep_kinds.iter().any(linked)).map(|dep| &dep.pkg)
}

/// The program's packages, each with those that it uses.
fn reached<'a>(metadata: &'a Metadata, main: &'a Package) -> Vec<(&'a Package, Vec<&'a Package>)> {
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let nodes: BTreeMap<&PackageId, &Node> = nodes.map(|node| (&node.id, node)).collect();
    // The program is built without its optional dependencies.
    let optional = |on: &PackageId| {
        let named = |of: &&cargo_metadata::Dependency| of.name == *metadata[on].name;
        main.dependencies.iter().find(named).is_some_and(|of| of.optional)
    };
    let used = |id: &'a PackageId| {
        let all = nodes.get(id).into_iter().flat_map(|node| used(node));
        all.filter(move |on| *id != main.id || !optional(on))
    };
    let (mut reached, mut open) = (BTreeSet::new(), vec![&main.id]);
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(used(id));
        }
    }
    let used = |id| used(id).map(|on| &metadata[on]);
    reached.into_iter().map(|id| (&metadata[id], used(id).collect())).collect()
}

fn component(package: &Package, kind: &str, lock: &Lock) -> Value {
    let version = package.version.to_string();
    let mut entry = json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": *package.name,
        "version": version,
    });
    // A package of this repository is in no registry.
    if package.source.is_some() {
        entry["purl"] = purl(package).into();
    }
    if let Some(license) = &package.license {
        // Older packages separate alternatives by a slash.
        let expression = license.replace(" / ", "/").replace('/', " OR ");
        entry["licenses"] = json!([{"expression": expression}]);
    }
    let locked = lock.package.iter().find(|locked| {
        (locked.name.as_str(), &locked.version) == (package.name.as_str(), &version)
    });
    if let Some(sha256) = locked.and_then(|locked| locked.checksum.as_ref()) {
        entry["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
    }
    entry
}

fn document(metadata: &Metadata, lock: &Lock) -> Option<Value> {
    let main = metadata.packages.iter().find(|package| *package.name == PROGRAM)?;
    let mut packages = reached(metadata, main);
    packages.sort_by_key(|(package, _)| (&package.name, package.version.to_string()));
    let libraries = packages.iter().filter(|(package, _)| package.id != main.id);
    let libraries: Vec<Value> =
        libraries.map(|(package, _)| component(package, "library", lock)).collect();
    let dependencies: BTreeMap<String, BTreeSet<String>> = packages
        .iter()
        .map(|(package, used)| (purl(package), used.iter().map(|on| purl(on)).collect()))
        .collect();
    let dependencies: Vec<Value> =
        dependencies.into_iter().map(|(of, on)| json!({"ref": of, "dependsOn": on})).collect();
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(main, "application", lock)},
        "components": libraries,
        "dependencies": dependencies,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_linked_is_listed_with_its_hash_and_nothing_else_is() {
        let sbom: Value = serde_json::from_slice(&write(super::super::GNU).unwrap()).unwrap();
        let components = sbom["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        for name in ["rustls", "aws-lc-sys", "sqlx", "axum", "libsqlite3-sys"] {
            let component = named(name).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(
                component["hashes"][0]["content"].as_str().unwrap().len(),
                64,
                "{component}"
            );
            assert!(
                component["licenses"][0]["expression"].is_string() && component["purl"].is_string(),
                "{component}"
            );
        }
        assert!(named("shef-verify").unwrap()["purl"].is_null());
        // Dependencies of the tests only, and of a feature that is left out.
        for name in ["shef-fixtures", "shef", "proptest", "cryptoki"] {
            assert!(named(name).is_none(), "{name} is listed");
        }
        let refs: BTreeSet<&str> = sbom["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["ref"].as_str().unwrap())
            .collect();
        assert_eq!(refs.len(), components.len() + 1);
        assert!(
            components
                .iter()
                .all(|component| refs.contains(component["bom-ref"].as_str().unwrap()))
        );
    }
}
