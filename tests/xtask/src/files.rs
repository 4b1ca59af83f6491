//! Files and folders.

use crate::process::{self, Result};
use crate::root;
use fs_err as fs;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;
use walkdir::WalkDir;

/// Removes a folder if it exists.
pub fn remove(folder: &Path) -> std::io::Result<()> {
    if folder.exists() { fs::remove_dir_all(folder) } else { Ok(()) }
}

/// Makes an empty folder.
pub fn fresh(folder: &Path) -> std::io::Result<()> {
    remove(folder)?;
    fs::create_dir_all(folder)
}

/// The regular files below a folder, in the order of their paths; links are not followed.
pub fn below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder) {
        let entry = entry?;
        files.extend(entry.file_type().is_file().then(|| entry.into_path()));
    }
    files.sort();
    Ok(files)
}

/// Copies the files below a folder for which `wanted` is true.
pub fn copy(from: &Path, to: &Path, wanted: impl Fn(&Path) -> bool) -> Result<()> {
    for path in below(from)?.iter().filter(|path| wanted(path)) {
        update(&to.join(path.strip_prefix(from)?), &fs::read(path)?)?;
    }
    Ok(())
}

/// Writes a file, and its folder, unless it has this content: an unchanged modification time avoids
/// a rebuild.
pub fn update(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, bytes)
}

/// Whether the name of a file ends with a dot and this.
pub fn is(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The last part of a path.
pub fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The same without extension: in the RTL the name of the module.
pub fn stem(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Paths of the files that git tracks or would add, relative to the root: no build products.
pub fn tracked() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = process::stdout(git.current_dir(root()))?;
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}
