//! Files of services, which appear whole under their names.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::{beside, create, folder, id, no_follow};

/// A new file in the folder of its future name. It is not kept open, so another library can write
/// to it. Dropping it removes it, and no other file, unless it was [placed](Part::place) or
/// [replaced](Part::replace) a file.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    /// Device and inode number of the file.
    id: (u64, u64),
}

impl Part {
    /// Creates a file [`beside`] `path`, like [`create`], and fills it.
    ///
    /// # Errors
    /// It cannot be created or filled: nothing is left then.
    pub fn new(
        path: &Path,
        mode: u32,
        in_place_of: &Path,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Self> {
        let path = beside(path)?;
        let mut file = create(&path, mode, in_place_of)?;
        let part = Self { path, id: id(&file.metadata()?) };
        fill(&mut file)?;
        file.sync_all()?;
        Ok(part)
    }

    /// Its current path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs its content to disk, and checks that its name still refers to this file.
    fn sync(&self) -> io::Result<()> {
        let file = no_follow(OpenOptions::new().read(true)).open(&self.path)?;
        if id(&file.metadata()?) != self.id {
            return Err(io::Error::other(format!(
                "{} was exchanged for another file",
                self.path.display()
            )));
        }
        file.sync_all()
    }

    /// Gives it the name `path`, and syncs that to disk.
    ///
    /// # Errors
    /// A file of this name exists, and stays as it is, or the part cannot be written.
    pub fn place(self, path: &Path) -> io::Result<()> {
        self.sync()?;
        std::fs::hard_link(&self.path, path)?;
        let folder = folder(path).to_owned();
        drop(self);
        File::open(folder)?.sync_all()
    }

    /// Replaces the file `path` by it, and syncs that to disk.
    ///
    /// # Errors
    /// It cannot be written: the old file stays.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        self.sync()?;
        // After the rename, nothing is left to remove under the old name.
        std::fs::rename(&self.path, path)?;
        File::open(folder(path))?.sync_all()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Creates a new file, like [`create`], with these bytes, and syncs it to disk. Its name only ever
/// refers to the complete file.
///
/// # Errors
/// It exists, or cannot be written: nothing is left then.
pub fn write_new(path: &Path, mode: u32, in_place_of: &Path, bytes: &[u8]) -> io::Result<()> {
    Part::new(path, mode, in_place_of, |file| file.write_all(bytes))?.place(path)
}

/// Replaces a file by `bytes` as a whole, and syncs it to disk. The new file has the owner and mode
/// of the old one. Without an old file, it has `mode` and the owner of the folder.
///
/// # Errors
/// It cannot be written: the old file stays, and nothing else is left.
pub fn replace(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mode = std::fs::symlink_metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map_or(mode, |old| old.mode() & 0o777);
    Part::new(path, mode, path, |file| file.write_all(bytes))?.replace(path)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::{LOCK, Owner, lock, read};

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_new_one_has_the_mode_that_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        replace(&path, 0o666, b"one").unwrap();
        assert_eq!((mode(), read(&path).unwrap().as_str()), (0o666, "one"));
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        replace(&path, 0o600, b"two").unwrap();
        assert_eq!((mode(), read(&path).unwrap().as_str()), (0o640, "two"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_are_neither_read_nor_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (other, link) = (dir.path().join("other"), dir.path().join("link"));
        std::fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert!(read(&link).is_err());
        replace(&link, 0o600, b"new").unwrap();
        assert_eq!(
            (std::fs::read_to_string(&other).unwrap().as_str(), read(&link).unwrap().as_str()),
            ("mine", "new")
        );
        std::os::unix::fs::symlink(&other, dir.path().join(LOCK)).unwrap();
        assert!(lock(dir.path(), Owner::Root).is_err());
    }

    /// Writing a file removes neither `NAME.new` nor `NAME.part`, which may be a user's file, such
    /// as a KEK.
    #[test]
    fn a_part_takes_only_itself_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kek.2027");
        let others =
            ["kek.new", "kek.part", "kek.old", "kek.2027.new", "kek.2027.part", "kek.2027.old"];
        others.iter().for_each(|name| std::fs::write(dir.path().join(name), name).unwrap());
        write_new(&path, 0o600, &path, b"one").unwrap();
        assert_eq!(
            write_new(&path, 0o600, &path, b"two").unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(read(&path).unwrap(), "one");
        replace(&path, 0o600, b"three").unwrap();
        drop(Part::new(&path, 0o600, &path, |_| Ok(())).unwrap());
        Part::new(&path, 0o600, &path, |_| Err(ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(read(&path).unwrap(), "three");
        // Another file under the part's name is not mistaken for the written one.
        let part = Part::new(&path, 0o600, &path, |_| Ok(())).unwrap();
        std::fs::rename(dir.path().join("kek.old"), part.path()).unwrap();
        assert!(part.replace(&path).unwrap_err().to_string().contains("exchanged"));
        assert_eq!(read(&path).unwrap(), "three");
        for name in others.iter().filter(|name| **name != "kek.old") {
            assert_eq!(read(&dir.path().join(name)).unwrap(), *name);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), others.len());
    }
}
