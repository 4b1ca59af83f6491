//! New files. What root makes for a service that runs as somebody else is the service's.

use std::fs::{File, OpenOptions, metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

/// The folder of a file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes an empty file with this mode. Where root makes it, it gets the owner and group of the file
/// in whose place it comes, or of its folder where there is none.
///
/// # Errors
/// It exists, or cannot be made.
pub(crate) fn create(path: &Path, mode: u32, in_place_of: &Path) -> io::Result<File> {
    // Before there is a new file: it may have the name of the old one.
    let owner = metadata(in_place_of).or_else(|_| metadata(folder(path)))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    if file.metadata()?.uid() == 0 {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(file)
}
