//! Changes of a project's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders within folders; more are no project.
const DEPTH: usize = 32;

/// The files below a folder, with their sizes and times. Hidden files and Python's cache do not
/// count.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, (u64, Option<SystemTime>)> {
    fn below(folder: &Path, depth: usize, files: &mut BTreeMap<PathBuf, (u64, Option<SystemTime>)>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.') || name == "__pycache__" {
                continue;
            }
            let Ok(data) = path.metadata() else { continue };
            // A link to a folder may lead back.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth > 0 {
                below(&path, depth - 1, files);
            } else if data.is_file() {
                files.insert(path, (data.len(), data.modified().ok()));
            }
        }
    }
    let mut all = BTreeMap::new();
    below(folder, DEPTH, &mut all);
    all
}
