//! Files that commands change while a service reads them, or that another administrator changes at
//! the same time.
//!
//! A command takes the [`lock`] of the folder, reads what is there, and [`replace`]s the file. A
//! reader finds the old file or the new one, whole. No function here follows a symbolic link at the
//! end of a path.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the lock in a folder.
const LOCK: &str = ".lock";
/// How long a command waits for another one.
const WAIT: Duration = Duration::from_secs(10);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);

/// The folder of a file.
#[must_use]
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
}

/// Gives a file that root made the owner and group of `like`.
fn hand_over(file: &File, like: &std::fs::Metadata) -> io::Result<()> {
    if file.metadata()?.uid() == 0 { fchown(file, Some(like.uid()), Some(like.gid())) } else { Ok(()) }
}

/// The right to change the files of a folder, until it is dropped.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held")] File);

/// Waits until no other command changes files of `folder`. The lock is a file that only the owner of
/// the folder and root can open.
///
/// # Errors
/// The lock cannot be opened, or another command holds it for ten seconds.
pub fn lock(folder: &Path) -> io::Result<FolderLock> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let file = no_follow(options.read(true).write(true).create(true).truncate(false).mode(0o600)).open(&path)?;
    hand_over(&file, &std::fs::metadata(folder)?)?;
    let end = Instant::now() + WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FolderLock(file)),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOOK),
            Err(std::fs::TryLockError::WouldBlock) => {
                let text = format!("another command has held {} for {} s", path.display(), WAIT.as_secs());
                return Err(io::Error::new(ErrorKind::ResourceBusy, text));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Makes an empty file with exactly this mode, whatever the umask is. If root makes it, it gets the
/// owner and group of the file that it replaces, or of its folder.
///
/// # Errors
/// It exists, or cannot be made.
pub fn create(path: &Path, mode: u32, in_place_of: &Path) -> io::Result<File> {
    // Before there is a new file: it may have the name of the old one.
    let owner = std::fs::symlink_metadata(in_place_of).or_else(|_| std::fs::metadata(folder(path)))?;
    let file = no_follow(OpenOptions::new().write(true).create_new(true).mode(mode)).open(path)?;
    hand_over(&file, &owner)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

/// Reads a file.
///
/// # Errors
/// It cannot be read, or is a symbolic link.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    no_follow(OpenOptions::new().read(true)).open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Puts `bytes` in the place of a file, whole and down to the disk. The new file has the owner and
/// mode of the old one. If there was no file, it has `mode` and the owner of the folder.
///
/// # Errors
/// It cannot be written: the old file stays, and nothing else is left.
pub fn replace(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mode = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file).map_or(mode, |old| old.mode() & 0o777);
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    // Of a command that was killed.
    let _ = std::fs::remove_file(new);
    let written = create(new, mode, path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let moved = written.and_then(|()| std::fs::rename(new, path));
    if moved.is_err() {
        let _ = std::fs::remove_file(new);
    }
    moved?;
    File::open(folder(path))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((std::fs::read_to_string(&other).unwrap().as_str(), read(&link).unwrap().as_str()), ("mine", "new"));
        std::os::unix::fs::symlink(&other, dir.path().join(LOCK)).unwrap();
        assert!(lock(dir.path()).is_err());
    }

    #[test]
    fn one_command_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        replace(&path, 0o600, b"").unwrap();
        std::thread::scope(|scope| {
            for number in 0..24 {
                let path = &path;
                scope.spawn(move || {
                    let _alone = lock(folder(path)).unwrap();
                    let text = read(path).unwrap() + &format!("{number}\n");
                    replace(path, 0o600, text.as_bytes()).unwrap();
                });
            }
        });
        assert_eq!(read(&path).unwrap().lines().count(), 24);
    }
}
