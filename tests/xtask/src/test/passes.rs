//! Cache of passed steps by content: a step is not run again while its inputs are identical to
//! those with which it passed.
//!
//! Only passes are cached. The inputs of a test are its executable, the programs that it starts,
//! and every file of the checkout that is not Rust; pages, proofs and similar files ([`NAMED`])
//! only if one of these programs names them. Any other input of a step must be added to the step's
//! key.

use super::lanes::Outcome;
use crate::files;
use crate::process::{self, Result, ensure, stdout};
use crate::root;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use walkdir::{DirEntry, WalkDir};

/// A pass.
#[derive(Serialize, Deserialize)]
struct Pass {
    /// The step.
    name: String,
    /// Its tests.
    passed: u32,
    /// Seconds that it took.
    seconds: u64,
    /// The commit that was checked out, with a `+` if the tree had changes.
    commit: String,
}

/// The folder of passes, and whether they count.
pub struct Passes {
    folder: PathBuf,
    used: bool,
    commit: String,
}

impl Passes {
    /// With `again`, earlier passes do not count; new passes are cached as usual.
    pub fn open(again: bool) -> Self {
        Self {
            folder: process::cache_dir().join("passed"),
            used: !again && std::env::var_os("SHEF_SEED").is_none(),
            commit: commit(),
        }
    }

    /// The pass for this content.
    fn get(&self, key: &str) -> Option<Pass> {
        let text = fs::read_to_string(self.folder.join(key)).ok().filter(|_| self.used)?;
        serde_json::from_str(&text).ok()
    }

    /// Caches a pass.
    fn put(&self, key: &str, name: &str, passed: u32, seconds: u64) {
        let pass = Pass { name: name.into(), passed, seconds, commit: self.commit.clone() };
        // Written to a temporary file and renamed: an interrupted run leaves no partial entry. A
        // pass that cannot be cached only costs another run.
        let part = self.folder.join(format!("{key}.{}", std::process::id()));
        let text = serde_json::to_string(&pass).unwrap_or_default();
        let _ = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, text))
            .and_then(|()| fs::rename(&part, self.folder.join(key)));
    }

    /// Runs `work` unless it passed on this content, and caches a pass.
    pub fn once(&self, key: &str, name: &str, work: impl FnOnce() -> Outcome) -> Outcome {
        if let Some(pass) = self.get(key) {
            let text = format!("at {}", pass.commit);
            return Outcome { passed: pass.passed, cached: true, text, ..Outcome::default() };
        }
        let start = Instant::now();
        let outcome = work();
        if outcome.ok() && outcome.skipped.is_none() {
            self.put(key, name, outcome.passed, start.elapsed().as_secs());
        }
        outcome
    }

    /// The commit that is checked out.
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

fn commit() -> String {
    let git = |args: &[&str]| stdout(Command::new("git").args(args).current_dir(root()));
    let changed = git(&["status", "--porcelain"]).is_ok_and(|text| !text.is_empty());
    let head = git(&["rev-parse", "--short=12", "HEAD"]);
    head.map_or_else(
        |_| "unknown".into(),
        |head| head.trim().to_owned() + if changed { "+" } else { "" },
    )
}

/// The files of the checkout, each with its digest.
pub struct Tree(BTreeMap<String, [u8; 32]>);

impl Tree {
    /// The files that git tracks or would add: no build products.
    pub fn read() -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in files::tracked().or_else(|_| walked())? {
            // A tracked file that is deleted does not count.
            if let Ok(bytes) = fs::read(root().join(&path)) {
                files.insert(path, Sha256::digest(bytes).into());
            }
        }
        ensure!(!files.is_empty(), "no file under {}", root().display());
        Ok(Self(files))
    }

    /// Paths of all files, relative to the root.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Digest of the names and contents of the files for which `wanted` is true.
    pub fn digest(&self, wanted: impl Fn(&str) -> bool) -> String {
        let mut hash = Sha256::new();
        for (path, digest) in self.0.iter().filter(|(path, _)| wanted(path)) {
            hash.update(path);
            hash.update([0]);
            hash.update(digest);
        }
        hex::encode(hash.finalize())
    }
}

/// The same without git: all files but build products.
fn walked() -> Result<Vec<String>> {
    let product =
        |entry: &DirEntry| ["target", ".git"].iter().any(|name| entry.file_name() == *name);
    let mut paths = Vec::new();
    for entry in WalkDir::new(root()).into_iter().filter_entry(|entry| !product(entry)) {
        let entry = entry?;
        if !entry.path().is_dir() {
            paths.push(entry.path().strip_prefix(root())?.display().to_string());
        }
    }
    Ok(paths)
}

/// The key of a step: its name and everything that decides its outcome.
pub fn key(name: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in [name].iter().chain(parts) {
        hash.update(part);
        hash.update([0]);
    }
    hex::encode(&hash.finalize()[..16])
}

/// Digest of a built file.
pub fn file_digest(path: &Path) -> String {
    fs::read(path).map_or_else(|_| format!("absent {}", path.display()), files::digest)
}

/// Marks in paths of files that count only for programs that contain the same text: no build of a
/// design and no test reads these files without naming them.
pub const NAMED: [&str; 11] = [
    ".md",
    "docs/",
    "area.toml",
    "coverage.toml",
    "tests/mutants",
    "tests/compat",
    "formal",
    "corpus",
    "Cargo.toml",
    "Cargo.lock",
    ".service",
];

/// Whether a path has one of these marks.
pub fn counts_where_named(path: &str) -> bool {
    NAMED.iter().any(|mark| path.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_counts_for_its_content_alone() {
        let dir = tempfile::tempdir().expect("folder");
        let folder = dir.path().join("passed");
        let mut passes = Passes { folder: folder.clone(), used: true, commit: "c".into() };
        let (one, other) = (key("lint", &["a", "b"]), key("lint", &["ab", ""]));
        assert_ne!(one, other);
        passes.put(&one, "lint", 3, 7);
        assert_eq!(
            passes.get(&one).map(|p| (p.name, p.passed, p.commit)),
            Some(("lint".into(), 3, "c".into()))
        );
        assert!(passes.get(&other).is_none());
        fs::write(folder.join(&other), "{").expect("file");
        assert!(passes.get(&other).is_none(), "half a record is no pass");
        passes.used = false;
        assert!(passes.get(&one).is_none());
    }

    #[test]
    fn the_tree_has_the_sources_and_no_build_products() {
        let tree = Tree::read().unwrap_or_else(|e| panic!("{e:?}"));
        let own = "tests/xtask/src/test/passes.rs";
        assert!(tree.0.contains_key("Cargo.toml") && tree.0.contains_key(own));
        assert!(!tree.0.keys().any(|p| p.starts_with("target/")));
        let walked = walked().expect("files");
        assert!(tree.0.keys().all(|p| walked.contains(p)), "the list without git lacks files");
        assert_ne!(tree.digest(|p| p.ends_with(".sv")), tree.digest(|p| p.ends_with(".rs")));
    }
}
