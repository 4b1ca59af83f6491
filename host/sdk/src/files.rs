//! Output files: whole or not there.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file, or replaces it: readers see the old content or the new, and an error (a full
/// disk) leaves the old. A replaced file keeps its mode and owner. A link is followed; a pipe or
/// device (`/dev/stdout`) is written to directly.
///
/// # Errors
/// The system's; no part of the new content stays behind.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let old = match path.metadata() {
        Ok(meta) if !meta.is_file() => return OpenOptions::new().write(true).open(path)?.write_all(bytes),
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let path = if old.is_some() { &path.canonicalize()? } else { path };
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Other processes, and other threads of this one, may write beside.
    static WRITERS: AtomicU64 = AtomicU64::new(0);
    let mut part = std::ffi::OsString::from(".");
    part.push(name);
    part.push(format!(".{}.{}.part", std::process::id(), WRITERS.fetch_add(1, Ordering::Relaxed)));
    let part = folder.join(part);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let placed = |file: File| {
        if let Some(old) = &old {
            owned_like(&file, old)?;
        }
        std::fs::rename(&part, path)
    };
    fill(&options, &part, bytes, placed)?;
    // So that the new name outlives a crash; a folder that cannot be read cannot be asked.
    File::open(folder).map_or(Ok(()), |folder| folder.sync_all())
}

/// Writes a file that must not exist, for its owner only.
///
/// # Errors
/// It exists, or the system's; no part of the content stays behind.
pub fn write_new_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    fill(&options, path, bytes, |_| Ok(()))
}

/// Makes and fills a file, does `then`, and removes the file if one of these fails.
fn fill(options: &OpenOptions, path: &Path, bytes: &[u8], then: impl FnOnce(File) -> io::Result<()>) -> io::Result<()> {
    let mut file = options.open(path)?;
    let done = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| then(file));
    done.inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

#[cfg(unix)]
fn owned_like(file: &File, old: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn owned_like(_: &File, _: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_replaced_whole_with_its_mode_and_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        write_file(&file, b"old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!((std::fs::read(&file).unwrap(), file.metadata().unwrap().permissions().mode() & 0o777), (b"new".to_vec(), 0o640));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing beside them");
    }

    #[test]
    fn a_new_secret_replaces_nothing_and_a_device_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        write_new_secret(&file, b"one").unwrap();
        assert_eq!(write_new_secret(&file, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((std::fs::read(&file).unwrap(), file.metadata().unwrap().permissions().mode() & 0o777), (b"one".to_vec(), 0o600));
        assert!(write_file(dir.path(), b"x").is_err(), "a folder");
        write_file(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let part = dir.path().join("part");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        assert!(fill(&options, &part, b"x", |_| Err(io::ErrorKind::StorageFull.into())).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
