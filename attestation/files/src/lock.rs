//! One command at a time changes the files of a folder.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::owner::{Owner, check};
use crate::{hand_over, id, no_follow};

/// Name of the lock in a folder.
pub const LOCK: &str = ".lock";
/// How long a command waits for another.
const WAIT: Duration = Duration::from_secs(10);
/// Interval between its attempts.
const LOOK: Duration = Duration::from_millis(20);

/// The right to change the files of a folder, until it is dropped.
#[derive(Debug)]
pub struct FolderLock {
    file: File,
    /// Whether this command made the file.
    pub(crate) made: bool,
}

impl FolderLock {
    /// Whether the lock of `folder` is still this file.
    pub(crate) fn is_of(&self, folder: &Path) -> io::Result<bool> {
        let held = id(&self.file.metadata()?);
        Ok(std::fs::symlink_metadata(folder.join(LOCK)).is_ok_and(|found| id(&found) == held))
    }
}

/// Rejects a lock that another user can hold, which would block every command: its owner can, and
/// everyone who can open it. The names of the lock in another user's folder may refer to any file.
fn only_ours(path: &Path, found: &Metadata, folder: &Metadata) -> io::Result<()> {
    let (user, mode) = (found.uid(), found.mode() & 0o7777);
    let fault = if !found.is_file() {
        "is not a regular file".to_owned()
    } else if ![rustix::process::geteuid().as_raw(), folder.uid()].contains(&user) {
        format!("belongs to user {user}")
    } else if mode & 0o077 != 0 {
        format!("has mode {mode:o}")
    } else if found.nlink() > 1 {
        format!("has {} names", found.nlink())
    } else {
        return Ok(());
    };
    let owner = folder.uid();
    let text = format!(
        "{} {fault}, so another user can hold it and block every command: expected a regular file with one name and mode 600, of this user or of the folder's owner \
         (user {owner}). Remove it while no other command runs here; the next command makes a new one",
        path.display()
    );
    Err(io::Error::other(text))
}

/// Opens the lock of a folder. A new lock file gets the owner of the folder. An existing one keeps
/// its owner.
fn open_lock(folder: &Path) -> io::Result<FolderLock> {
    let path = folder.join(LOCK);
    let above = std::fs::metadata(folder)?;
    loop {
        let mut options = OpenOptions::new();
        match no_follow(options.read(true).write(true).create_new(true).mode(0o600)).open(&path) {
            Ok(file) => {
                // Whatever the umask.
                let ready = hand_over(&file, &above)
                    .and_then(|()| file.set_permissions(Permissions::from_mode(0o600)));
                ready.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
                return Ok(FolderLock { file, made: true });
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // Before it is opened: the system does not say whose lock this user cannot open.
        let opened = std::fs::symlink_metadata(&path)
            .and_then(|found| only_ours(&path, &found, &above))
            .and_then(|()| no_follow(OpenOptions::new().read(true).write(true)).open(&path));
        match opened {
            // Removed in between.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => {
                let file = opened?;
                only_ours(&path, &file.metadata()?, &above)?;
                return Ok(FolderLock { file, made: false });
            }
        }
    }
}

/// Waits until no other command changes files of `folder`, which `owner` may own. The lock is a
/// file that only the owner of the folder and root can open.
///
/// # Errors
/// Those of [`check`], the lock cannot be opened or another user can hold it, or another command
/// holds it for ten seconds.
pub fn lock(folder: &Path, owner: Owner) -> io::Result<FolderLock> {
    check(folder, owner)?;
    hold(folder)
}

/// Takes the lock of a folder that [`check`] may not accept yet.
pub(crate) fn hold(folder: &Path) -> io::Result<FolderLock> {
    let mut lock = open_lock(folder)?;
    let end = Instant::now() + WAIT;
    loop {
        match lock.file.try_lock() {
            Ok(()) if lock.is_of(folder)? => return Ok(lock),
            // A set-up that failed has removed it.
            Ok(()) => lock = open_lock(folder)?,
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                let text = format!(
                    "another command has held {} for {} s",
                    folder.join(LOCK).display(),
                    WAIT.as_secs()
                );
                return Err(io::Error::new(ErrorKind::ResourceBusy, text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
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
        let folder = dir.path().join("service");
        std::fs::create_dir(&folder).unwrap();
        if !given_away(&folder) {
            println!("skipped: only root can give files away");
            return;
        }
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        let lock_file = folder.join(LOCK);
        drop(lock(&folder, Owner::Service).unwrap());
        assert_eq!(owner(&lock_file), 4001);
        drop(lock(&folder, Owner::Service).unwrap());
        // Root's file under the name of the lock.
        let other = dir.path().join("other");
        std::fs::write(&other, "root's").unwrap();
        std::fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
        std::fs::remove_file(&lock_file).unwrap();
        std::fs::hard_link(&other, &lock_file).unwrap();
        let error = lock(&folder, Owner::Service).unwrap_err().to_string();
        assert!(error.contains("has 2 names"), "{error}");
        assert_eq!(owner(&other), 0);
    }

    /// Another user who can hold the lock could block every command for ever.
    #[test]
    fn a_lock_that_another_user_can_hold_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK);
        let refused = |fault: &str| {
            let text = lock(dir.path(), Owner::Root).unwrap_err().to_string();
            let named = format!("{} {fault}, so another user can hold it", path.display());
            assert!(text.starts_with(&named) && text.contains("Remove it while"), "{text}");
        };
        drop(lock(dir.path(), Owner::Root).unwrap());
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            refused(&format!("has mode {mode:o}"));
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("other", &path).unwrap();
        refused("is not a regular file");
        std::fs::remove_file(&path).unwrap();
        let of_another = |user| {
            drop(lock(dir.path(), Owner::Root).unwrap());
            std::os::unix::fs::chown(&path, Some(user), None)
        };
        if of_another(4001).is_ok() {
            refused("belongs to user 4001");
        } else {
            println!("skipped: only root can give files away");
        }
    }

    /// A set-up that fails removes its lock: a command that waited for it takes the new one.
    #[test]
    fn a_lock_that_was_removed_gives_way_to_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK);
        let first = lock(dir.path(), Owner::Root).unwrap();
        assert!(first.made && first.is_of(dir.path()).unwrap());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(dir.path(), Owner::Root).unwrap());
            // Long enough for it to open the first file.
            std::thread::sleep(10 * LOOK);
            std::fs::remove_file(&path).unwrap();
            drop(first);
            let second = waiting.join().unwrap();
            assert!(second.is_of(dir.path()).unwrap());
        });
    }

    #[test]
    fn root_neither_locks_folders_nor_reads_files_that_others_put_there() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("service");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("list");
        std::fs::write(&path, "text").unwrap();
        let all = |mode| std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        for mode in [0o777, 0o1777, 0o775] {
            all(mode);
            assert_eq!(lock(&folder, Owner::Service).is_err(), is_root());
        }
        all(0o755);
        if !is_root() {
            println!("skipped: only root can give files away");
            return;
        }
        // Of a folder of root's that others can change, root takes its own files only.
        std::os::unix::fs::chown(&path, Some(4001), None).unwrap();
        assert_eq!(read(&path).unwrap(), "text");
        all(0o1777);
        assert!(read(&path).unwrap_err().to_string().contains("user 4001"));
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        assert_eq!(read(&path).unwrap(), "text");
        all(0o755);
        assert!(given_away(&folder));
        assert!(lock(&folder, Owner::Root).is_err() && lock(&folder, Owner::Service).is_ok());
        assert_eq!(read(&path).unwrap(), "text");
        std::os::unix::fs::chown(&path, Some(5001), None).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("user 5001"));
    }
}
