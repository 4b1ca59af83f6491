//! Cache of passed steps by content: a step is not run again while its inputs are identical to
//! those with which it passed.
//!
//! Only passes are cached. The inputs of a test are its executable, the programs that it starts,
//! and every file of the checkout that is not Rust; pages, proofs and similar files ([`NAMED`])
//! only if one of these programs names them. Any other input of a step must be added to the step's
//! key.

use crate::process::{self, Failure};
use crate::root;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A pass.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    /// The step.
    pub name: String,
    /// Its tests.
    pub passed: u32,
    /// Seconds that it took.
    pub seconds: u64,
    /// The commit that was checked out, with a `+` if the tree had changes.
    pub commit: String,
}

/// The folder of passes, and whether they count.
pub struct Kept {
    folder: PathBuf,
    used: bool,
    commit: String,
}

impl Kept {
    /// With `again`, earlier passes do not count; new passes are cached as usual.
    pub fn open(again: bool) -> Self {
        Self {
            folder: process::cache_dir().join("passed"),
            used: !again && std::env::var_os("SHEF_SEED").is_none(),
            commit: commit(),
        }
    }

    /// The pass for this content.
    pub fn get(&self, key: &str) -> Option<Pass> {
        let text = fs::read_to_string(self.folder.join(key)).ok().filter(|_| self.used)?;
        serde_json::from_str(&text).ok()
    }

    /// Caches a pass.
    pub fn put(&self, key: &str, name: &str, passed: u32, seconds: u64) {
        let pass = Pass { name: name.into(), passed, seconds, commit: self.commit.clone() };
        // Written to a temporary file and renamed: an interrupted run leaves no partial entry. A
        // pass that cannot be cached only costs another run.
        let part = self.folder.join(format!("{key}.{}", std::process::id()));
        let text = serde_json::to_string(&pass).unwrap_or_default();
        let _ = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, text))
            .and_then(|()| fs::rename(&part, self.folder.join(key)));
    }

    /// The commit that is checked out.
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git")
            .args(args)
            .current_dir(root())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
            .filter(|_| out.status.success())
    };
    let changed = git(&["status", "--porcelain"]).is_some_and(|text| !text.is_empty());
    git(&["rev-parse", "--short=12", "HEAD"])
        .map_or_else(|| "unknown".into(), |head| if changed { head + "+" } else { head })
}

/// The files of the checkout, each with its digest.
pub struct Tree(BTreeMap<String, [u8; 32]>);

impl Tree {
    /// The files that git tracks or would add: no build products.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read() -> Result<Self, Failure> {
        let mut files = BTreeMap::new();
        for path in listed().unwrap_or_else(walked) {
            // A tracked file that is deleted does not count.
            if let Ok(bytes) = fs::read(root().join(&path)) {
                files.insert(path, Sha256::digest(bytes).into());
            }
        }
        if files.is_empty() {
            return Err(Failure::failed(format!("no file under {}", root().display())));
        }
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

fn listed() -> Option<Vec<String>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let out = Command::new("git")
        .args(args)
        .current_dir(root())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|o| o.status.success())?;
    Some(
        String::from_utf8_lossy(&out.stdout)
            .split('\0')
            .filter(|p| !p.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// The same without git: all files but build products.
fn walked() -> Vec<String> {
    fn walk(dir: &Path, out: &mut Vec<String>) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for path in entries.flatten().map(|e| e.path()) {
            if path.is_dir() {
                if !path.ends_with("target") && !path.ends_with(".git") {
                    walk(&path, out);
                }
            } else if let Ok(below) = path.strip_prefix(root()) {
                out.push(below.display().to_string());
            }
        }
    }
    let mut out = Vec::new();
    walk(&root(), &mut out);
    out
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
    fs::read(path).map_or_else(|_| format!("absent {}", path.display()), |bytes| digest(&bytes))
}

/// Digest of bytes.
pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
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
        let folder = std::env::temp_dir().join(format!("shef-passed-{}", std::process::id()));
        let mut kept = Kept { folder: folder.clone(), used: true, commit: "c".into() };
        let (one, other) = (key("lint", &["a", "b"]), key("lint", &["ab", ""]));
        assert_ne!(one, other);
        kept.put(&one, "lint", 3, 7);
        assert_eq!(
            kept.get(&one).map(|p| (p.name, p.passed, p.commit)),
            Some(("lint".into(), 3, "c".into()))
        );
        assert!(kept.get(&other).is_none());
        fs::write(folder.join(&other), "{").expect("file");
        assert!(kept.get(&other).is_none(), "half a record is no pass");
        kept.used = false;
        assert!(kept.get(&one).is_none());
        fs::remove_dir_all(folder).expect("remove");
    }

    #[test]
    fn the_tree_has_the_sources_and_no_build_products() {
        let tree = Tree::read().unwrap_or_else(|e| panic!("{e:?}"));
        assert!(
            tree.0.contains_key("Cargo.toml")
                && tree.0.contains_key("tests/xtask/src/test/kept.rs")
        );
        assert!(!tree.0.keys().any(|p| p.starts_with("target/")));
        let walked = walked();
        assert!(tree.0.keys().all(|p| walked.contains(p)), "the list without git lacks files");
        assert_ne!(tree.digest(|p| p.ends_with(".sv")), tree.digest(|p| p.ends_with(".rs")));
    }
}
