//! One command at a time changes the files of a folder.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::owner::{Owner, check};
use crate::{hand_over, no_follow};

/// Name of the lock in a folder.
pub const LOCK: &str = ".lock";
/// How long a command waits for another.
const WAIT: Duration = Duration::from_secs(10);
/// Interval between its attempts.
const LOOK: Duration = Duration::from_millis(20);

/// The right to change the files of a folder, until it is dropped.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held")] File);

/// Opens the lock of a folder. A new lock file gets the owner of the folder. An existing one keeps
/// its owner: in another user's folder, its name may refer to any file.
fn open_lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    loop {
        let mut options = OpenOptions::new();
        match no_follow(options.read(true).write(true).create_new(true).mode(0o600)).open(&path) {
            Ok(file) => {
                hand_over(&file, &std::fs::metadata(folder)?)?;
                // Whatever the umask.
                file.set_permissions(Permissions::from_mode(0o600))?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        match no_follow(OpenOptions::new().read(true).write(true)).open(&path) {
            // Removed in between.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
    }
}

/// Waits until no other command changes files of `folder`, which `owner` may own. The lock is a
/// file that only the owner of the folder and root can open.
///
/// # Errors
/// Those of [`check`], the lock cannot be opened, or another command holds it for ten seconds.
pub fn lock(folder: &Path, owner: Owner) -> io::Result<FolderLock> {
    check(folder, owner)?;
    let file = open_lock(folder)?;
    let end = Instant::now() + WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FolderLock(file)),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() < end => {
                std::thread::sleep(LOOK);
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                let text = format!(
                    "another command has held {} for {} s",
                    folder.join(LOCK).display(),
                    WAIT.as_secs()
                );
                return Err(io::Error::new(ErrorKind::ResourceBusy, text));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;
    use crate::owner::{given_away, is_root};
    use crate::{folder, read, replace};

    #[test]
    fn one_command_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        replace(&path, 0o600, b"").unwrap();
        std::thread::scope(|scope| {
            for number in 0..24 {
                let path = &path;
                scope.spawn(move || {
                    let _alone = lock(folder(path), Owner::Service).unwrap();
                    let text = read(path).unwrap() + &format!("{number}\n");
                    replace(path, 0o600, text.as_bytes()).unwrap();
                });
            }
        });
        assert_eq!(read(&path).unwrap().lines().count(), 24);
    }

    #[test]
    fn a_lock_that_was_there_keeps_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        if !given_away(dir.path()) {
            println!("skipped: only root can give files away");
            return;
        }
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        let lock_file = dir.path().join(LOCK);
        drop(lock(dir.path(), Owner::Service).unwrap());
        assert_eq!(owner(&lock_file), 4001);
        // Root's file under the name of the lock.
        let other = dir.path().join("other");
        std::fs::write(&other, "root's").unwrap();
        std::fs::remove_file(&lock_file).unwrap();
        std::fs::hard_link(&other, &lock_file).unwrap();
        drop(lock(dir.path(), Owner::Service).unwrap());
        assert_eq!(owner(&other), 0);
    }

    #[test]
    fn root_neither_locks_folders_nor_reads_files_that_others_put_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("list");
        std::fs::write(&path, "text").unwrap();
        let all =
            |mode| std::fs::set_permissions(dir.path(), Permissions::from_mode(mode)).unwrap();
        all(0o777);
        assert_eq!(lock(dir.path(), Owner::Service).is_err(), is_root());
        all(0o755);
        if !given_away(dir.path()) {
            println!("skipped: only root can give files away");
            return;
        }
        assert!(lock(dir.path(), Owner::Root).is_err() && lock(dir.path(), Owner::Service).is_ok());
        assert_eq!(read(&path).unwrap(), "text");
        std::os::unix::fs::chown(&path, Some(5001), None).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("user 5001"));
    }
}
