//! The SBOM of the program as CycloneDX 1.5, from `cargo metadata` and Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{PROGRAM, cannot};
use crate::process::{self, Failure};
use crate::root;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}

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
///
/// # Errors
/// cargo does not list the program's dependencies.
pub fn write(target: &str) -> Result<Vec<u8>, Failure> {
    let mut cargo = process::cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        target,
    ]);
    let out = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(cannot)?;
    if !out.status.success() {
        return Err(cannot("cargo metadata failed; its messages are above"));
    }
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).map_err(cannot)?;
    let document = document(
        &serde_json::from_slice(&out.stdout).map_err(cannot)?,
        &toml::from_str(&lock).map_err(cannot)?,
    );
    let document =
        document.ok_or_else(|| cannot(format!("cargo metadata knows no package {PROGRAM}")))?;
    serde_json::to_vec_pretty(&document).map_err(cannot)
}

fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

fn document(metadata: &Metadata, lock: &Lock) -> Option<Value> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let checksums: BTreeMap<(&str, &str), &str> = lock
        .package
        .iter()
        .filter_map(|locked| Some(((&*locked.name, &*locked.version), locked.checksum.as_deref()?)))
        .collect();
    // Run-time and build dependencies: everything but dev-dependencies.
    let used = |node: &Node| -> Vec<String> {
        let deps = node
            .deps
            .iter()
            .filter(|dep| dep.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev")));
        deps.map(|dep| dep.pkg.clone()).collect()
    };
    let graph: BTreeMap<&str, Vec<String>> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), used(node))).collect();
    let main = metadata.packages.iter().find(|package| package.name == PROGRAM)?;
    let (mut reached, mut open) = (BTreeSet::new(), vec![main.id.as_str()]);
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(graph.get(id).into_iter().flatten().map(String::as_str));
        }
    }
    let component = |package: &Package, kind: &str| {
        let mut entry = json!({"type": kind, "bom-ref": purl(package), "name": package.name, "version": package.version});
        // A package of this repository is in no registry.
        if package.source.is_some() {
            entry["purl"] = purl(package).into();
        }
        if let Some(license) = &package.license {
            // Older packages separate alternatives by a slash.
            entry["licenses"] =
                json!([{"expression": license.replace(" / ", "/").replace('/', " OR ")}]);
        }
        if let Some(sha256) = checksums.get(&(&*package.name, &*package.version)) {
            entry["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
        }
        entry
    };
    let list = || reached.iter().filter_map(|id| packages.get(id).copied());
    let mut components: Vec<&Package> = list().filter(|package| package.id != main.id).collect();
    components.sort_by_key(|package| (&package.name, &package.version));
    let dependencies: BTreeMap<String, BTreeSet<String>> = list()
        .map(|package| {
            (
                purl(package),
                graph[&*package.id]
                    .iter()
                    .filter_map(|id| packages.get(&**id).copied())
                    .map(purl)
                    .collect(),
            )
        })
        .collect();
    Some(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(main, "application")},
        "components": components.into_iter().map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": dependencies.into_iter().map(|(of, on)| json!({"ref": of, "dependsOn": on})).collect::<Vec<_>>(),
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
        // Dependencies of the tests only.
        for name in ["ureq", "tempfile", "shef", "proptest"] {
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
