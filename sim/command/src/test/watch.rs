//! Changes of a project's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders within folders; more are no project.
const DEPTH: usize = 32;

/// Size and time of files by path.
pub type Files = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// The files below a folder, with their sizes and times. Hidden files and Python's cache do not
/// count, and neither does `except`.
pub fn files(folder: &Path, except: Option<&Path>) -> Files {
    fn below(folder: &Path, depth: usize, files: &mut Files) {
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
    if let Some(except) = except.and_then(|path| path.canonicalize().ok()) {
        all.retain(|path, _| path.canonicalize().ok().as_ref() != Some(&except));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_the_tests_write_are_no_changes() {
        let temp = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = temp.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        };
        write("shef.toml");
        let junit = temp.path().join("junit.xml");
        let seen = || files(temp.path(), Some(&junit));
        let before = seen();
        assert_eq!(before.len(), 1);
        for name in ["junit.xml", ".git/index", "rtl/__pycache__/model.pyc"] {
            write(name);
            assert_eq!(seen(), before, "{name}");
        }
        write("rtl/shef_accel.sv");
        assert_eq!(seen().len(), 2);
    }
}
