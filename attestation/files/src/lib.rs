//! Files of programs: those that commands change while a service reads them or another administrator
//! changes them, [inputs](regular) and [outputs](staged).
//!
//! A command takes the [`lock`] of the folder, reads the file, and [`replace`]s it. A reader finds
//! the old or the new file, always complete: the new one is written as a [`Part`], under a name
//! that no other file has. Except for [`read_linked`], no function here follows a symbolic link at
//! the end of a path. Root trusts neither folders that others can change nor their files.

pub mod regular;
pub mod staged;

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the lock in a folder.
pub const LOCK: &str = ".lock";
/// Maximum bytes that a reader takes from a file.
const MOST: u64 = 64 << 20;
/// How long a command waits for another.
const WAIT: Duration = Duration::from_secs(10);
/// Interval between its attempts.
const LOOK: Duration = Duration::from_millis(20);

/// The folder of a file.
#[must_use]
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
}

/// Gives a file created by root the owner and group of `like`.
fn hand_over(file: &File, like: &std::fs::Metadata) -> io::Result<()> {
    if file.metadata()?.uid() == 0 {
        fchown(file, Some(like.uid()), Some(like.gid()))
    } else {
        Ok(())
    }
}

/// The owner of a folder that root writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Root only.
    Root,
    /// Root, or the user of a service with exclusive use of the folder.
    Service,
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process runs as root and the folder belongs to another user, who can exchange its
/// files at any moment.
///
/// # Errors
/// The folder cannot be found.
pub fn foreign(folder: &Path) -> io::Result<bool> {
    Ok(is_root() && std::fs::metadata(folder)?.uid() != 0)
}

/// Rejects a folder in which root must not change files: users other than `owner` can put links or
/// their own files there.
///
/// # Errors
/// The folder cannot be found, or this process runs as root and another user can change the folder.
pub fn check(folder: &Path, owner: Owner) -> io::Result<()> {
    // A link to a folder is not root's folder.
    let found = if owner == Owner::Root {
        std::fs::symlink_metadata(folder)?
    } else {
        std::fs::metadata(folder)?
    };
    let (foreign, expected) = match owner {
        Owner::Root => (found.uid() != 0, "a folder that only root can change"),
        Owner::Service => (false, "a folder that only its owner can change"),
    };
    if is_root() && (foreign || found.mode() & 0o022 != 0) {
        let (shown, user, mode) = (folder.display(), found.uid(), found.mode() & 0o777);
        let text = format!(
            "{shown} belongs to user {user} with mode {mode:o}, and this command runs as root: expected {expected}"
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

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

/// Creates an empty file with exactly this mode, whatever the umask. If root creates it, it gets
/// the owner and group of the file that it replaces, or of its folder.
///
/// # Errors
/// It exists, or cannot be created.
pub fn create(path: &Path, mode: u32, in_place_of: &Path) -> io::Result<File> {
    // Before the new file exists: it may have the name of the old one.
    let owner =
        std::fs::symlink_metadata(in_place_of).or_else(|_| std::fs::metadata(folder(path)))?;
    let file = no_follow(OpenOptions::new().write(true).create_new(true).mode(mode)).open(path)?;
    let ready =
        hand_over(&file, &owner).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
    match ready {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// A name beside `path` that no other file has: the whole name, a random number and `.part`.
///
/// # Errors
/// The system provides no random number.
pub fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.part", u64::from_le_bytes(random)));
    Ok(name.into())
}

/// Whether `user` is the number of owners outside the user namespace of an unprivileged user, who is
/// root in it (`unshare --map-root-user`): no user inside has that number, and this command is no
/// more than that user. `map` and `outside` are `/proc/self/uid_map` and the kernel's `overflowuid`.
fn is_outside(user: u32, map: &str, outside: &str) -> bool {
    let ranges: Vec<[u64; 3]> = map
        .lines()
        .filter_map(|line| {
            let numbers = line.split_whitespace().map(|number| number.parse().ok());
            numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
        })
        .collect();
    let inside =
        |user: u64| ranges.iter().find(|range| (range[0]..range[0] + range[2]).contains(&user));
    outside.trim().parse() == Ok(user)
        && inside(user.into()).is_none()
        && inside(0).is_some_and(|root| root[1] != 0)
}

/// Rejects a path that other users can redirect. Root must own each folder and link on it, and
/// others may write only to folders with the sticky bit, which protects root's entries. The last
/// folder may be open to them unless `end_is_closed`.
fn check_way(path: &Path, end_is_closed: bool) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (map, outside) = (read("/proc/self/uid_map"), read("/proc/sys/kernel/overflowuid"));
    let foreign = |user| user != 0 && !is_outside(user, &map, &outside);
    for way in [std::path::absolute(path)?, path.canonicalize()?] {
        for step in way.ancestors() {
            let (entry, found) = (std::fs::symlink_metadata(step)?, std::fs::metadata(step)?);
            let open = found.mode() & 0o022 != 0
                && found.mode() & 0o1000 == 0
                && (end_is_closed || step != way);
            if foreign(entry.uid()) || foreign(found.uid()) || open {
                let user = if entry.uid() == 0 { found.uid() } else { entry.uid() };
                let text = format!(
                    "{} belongs to user {user} with mode {:o}, and this command runs as root: expected a path that only root can change. Run it as that user, or choose another folder",
                    step.display(),
                    found.mode() & 0o7777
                );
                return Err(io::Error::new(ErrorKind::PermissionDenied, text));
            }
        }
    }
    Ok(())
}

/// Opens a folder, and not the target of a link in its place, and sets its mode.
fn set_mode(path: &Path, mode: impl FnOnce(u32) -> u32) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = folder.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("it belongs to user {}", found.uid());
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    let (old, new) = (found.mode() & 0o7777, mode(found.mode() & 0o7777));
    // Some file systems have one mode.
    if new == old { Ok(()) } else { folder.set_permissions(Permissions::from_mode(new)) }
}

/// Makes one folder with exactly this mode, whatever the umask.
///
/// # Errors
/// It exists, or cannot be made.
pub fn new_folder(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(path)?;
    set_mode(path, |_| mode).inspect_err(|_| drop(std::fs::remove_dir(path)))
}

/// Makes a missing folder with exactly this mode completely or not at all: `fill` fills a folder
/// beside it, which gets its name at the end.
///
/// # Errors
/// Those of `fill`; through `failed`, the folder exists or cannot be made, or this process runs as
/// root and another user can change the path.
pub fn make_folder<E>(
    path: &Path,
    mode: u32,
    failed: impl Fn(io::Error) -> E,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let part = || {
        check_way(folder(path), true)?;
        if path.is_symlink() || path.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let part = beside(path)?;
        new_folder(&part, mode)?;
        Ok(part)
    };
    let part = part().map_err(&failed)?;
    // Only this new folder is removed.
    fill(&part)
        .and_then(|()| std::fs::rename(&part, path).map_err(&failed))
        .inspect_err(|_| drop(std::fs::remove_dir_all(&part)))
}

/// Sets up an empty or missing folder completely or not at all. `fill` fills a folder inside it,
/// whose files then move up, `last` as the last one: without that file, a set-up was interrupted.
/// A missing folder is made with exactly this mode, and its missing parents with 755. An existing
/// one stays, as it may be a mount point or the current folder, but group and others lose the
/// permission to write.
///
/// # Errors
/// Those of `fill`; through `failed`, there are files in the folder, it cannot be made or written,
/// or this process runs as root and another user can change the folder or its path.
pub fn set_up_folder<E>(
    path: &Path,
    mode: u32,
    last: &str,
    failed: impl Fn(io::Error) -> E,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let ready = || {
        // `x/` and `x/.` name the folder x, also if it is missing.
        let path: PathBuf = std::path::absolute(path)?.components().collect();
        let made = make_missing(&path, mode)?;
        check_way(&path, false)?;
        let real = path.canonicalize()?;
        if std::fs::metadata(&real)?.uid() == rustix::process::geteuid().as_raw() {
            set_mode(&real, |mode| mode & !0o022)?;
        }
        let alone = lock(&real, Owner::Root)?;
        check_empty(&real)?;
        let part = beside(&real.join(SET_UP))?;
        new_folder(&part, 0o700)?;
        Ok((made, real, alone, part))
    };
    let (made, real, _alone, part) = ready().map_err(&failed)?;
    fill(&part).and_then(|()| move_up(&part, &real, last).map_err(&failed)).inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&part);
        if made {
            let _ = std::fs::remove_file(real.join(LOCK));
            let _ = std::fs::remove_dir(&real);
        }
    })
}

/// Begin of the name of the folder that [`set_up_folder`] fills.
const SET_UP: &str = "setup";

/// Makes a folder, and its parents, if they are missing. Returns whether the folder was.
fn make_missing(path: &Path, mode: u32) -> io::Result<bool> {
    let missing: Vec<_> = path.ancestors().take_while(|above| !above.is_dir()).collect();
    let Some(highest) = missing.last() else { return Ok(false) };
    check_way(folder(highest), true)?;
    let mut made = false;
    for above in missing.iter().rev() {
        made = match new_folder(above, if *above == path { mode } else { 0o755 }) {
            // Another command was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && above.is_dir() => false,
            made => made.map(|()| true)?,
        };
    }
    Ok(made)
}

/// The names in a folder, except for its lock and a file system's own folder.
fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .filter(|name| !name.as_ref().is_ok_and(|name| name == LOCK || name == "lost+found"))
        .collect::<Result<_, _>>()?;
    names.sort();
    Ok(names)
}

fn check_empty(folder: &Path) -> io::Result<()> {
    let names: Vec<_> =
        names(folder)?.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let interrupted =
        names.iter().any(|name| name.starts_with(&format!("{SET_UP}.")) && name.ends_with(".part"));
    let text = format!("expected an empty or missing folder, found in it: {}", names.join(", "));
    let text = if interrupted {
        format!("{text}. A set-up that was interrupted left them: remove them")
    } else {
        text
    };
    Err(io::Error::new(ErrorKind::DirectoryNotEmpty, text))
}

/// Moves the files of `part` into `folder` above it: all of them, or none.
fn move_up(part: &Path, folder: &Path, last: &str) -> io::Result<()> {
    let mut all = names(part)?;
    all.sort_by_key(|name| name == last);
    let moved = all.iter().try_for_each(|name| {
        let (from, to) = (part.join(name), folder.join(name));
        if to.is_symlink() || to.exists() {
            let text = format!("{} appeared during the set-up", to.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        std::fs::rename(from, to)
    });
    if moved.is_err() {
        for name in all.iter().filter(|name| !part.join(name).exists()) {
            let _ = std::fs::rename(folder.join(name), part.join(name));
        }
        return moved;
    }
    std::fs::remove_dir(part)?;
    File::open(folder)?.sync_all()
}

/// A new file in the folder of its future name. It is not kept open, so another library can write
/// to it. Dropping it removes it, and no other file, unless it was [placed](Part::place) or
/// [replaced](Part::replace) a file.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    /// Device and inode number of the file.
    id: (u64, u64),
}

fn id(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
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

/// Rejects a file that root must not use: a third user's, and one of root's to which another user
/// has given a second name.
fn ours(found: &std::fs::Metadata, folder: &std::fs::Metadata) -> io::Result<()> {
    if !found.is_file() {
        let text = if found.is_symlink() {
            "it is a symbolic link: name the file itself"
        } else {
            "it is not a regular file"
        };
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    if !is_root() || folder.uid() == 0 {
        return Ok(());
    }
    let (user, owner) = (found.uid(), folder.uid());
    let text = if ![0, owner].contains(&user) {
        format!(
            "it belongs to user {user}, and its folder to user {owner}: expected the owner of the folder, or root"
        )
    } else if user == 0 && found.nlink() > 1 {
        format!(
            "it belongs to root and has {} names, and its folder belongs to user {owner}: expected one name",
            found.nlink()
        )
    } else {
        return Ok(());
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// Checks a file that another library opens by name, by the rules of [`open`]; `None` if it is
/// missing. Does not open the file: closing it would release this process's locks on it.
///
/// # Errors
/// It cannot be found, is a symbolic link or not a file, or belongs to a third user.
pub fn look(path: &Path) -> io::Result<Option<std::fs::Metadata>> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    ours(&found, &std::fs::metadata(folder(path))?)?;
    Ok(Some(found))
}

/// Removes the permissions of group and others from a file that [`open`] accepts. Returns the
/// former mode if it changed.
///
/// # Errors
/// Those of [`open`], or its mode cannot be changed.
pub fn close_to_others(path: &Path) -> io::Result<Option<u32>> {
    let Some(found) = look(path)?.filter(|found| found.mode() & 0o077 != 0) else {
        return Ok(None);
    };
    open(path)?.set_permissions(Permissions::from_mode(0o600))?;
    Ok(Some(found.mode() & 0o777))
}

/// Opens a file for reading. Root opens another user's file only in that user's folder or in one of
/// root's.
///
/// # Errors
/// It cannot be opened, is a symbolic link or not a file, or belongs to a third user.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A pipe in its place must not block the command.
    let file = options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK)
        .open(path);
    // For a link, report this error instead of "too many levels of symbolic links".
    let file = file.or_else(|error| look(path).and(Err(error)))?;
    ours(&file.metadata()?, &std::fs::metadata(folder(path))?)?;
    Ok(file)
}

/// Reads a file to its end, at most 64 MiB.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn contents(file: &File) -> io::Result<Vec<u8>> {
    let len = file.metadata()?.len();
    let large = |len| {
        io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has {len} bytes, expected at most {MOST}"),
        )
    };
    if len > MOST {
        return Err(large(len));
    }
    // Room for all of it and for the read at its end: a growing buffer leaves a copy behind.
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 32);
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST { Err(large(bytes.len() as u64)) } else { Ok(bytes) }
}

fn text(file: &File) -> io::Result<String> {
    String::from_utf8(contents(file)?)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads a file by the rules of [`open`].
///
/// # Errors
/// Those of [`open`] and [`contents`], or it is not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    text(&open(path)?)
}

/// Reads a regular file, also through a symbolic link: certificate managers and orchestrators link
/// the current version of a file.
///
/// # Errors
/// Those of [`regular::open`] and [`contents`], or it is not UTF-8.
pub fn read_linked(path: &Path) -> io::Result<String> {
    text(&regular::open(path)?)
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

    /// Only root can make this: another user's folder.
    fn given_away(folder: &Path) -> bool {
        is_root() && std::os::unix::fs::chown(folder, Some(4001), Some(4002)).is_ok()
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

    /// A set-up of two files, and the result in words.
    fn set_up(path: &Path) -> Result<(), String> {
        set_up_folder(
            path,
            0o755,
            "last",
            |error| error.to_string(),
            |inside| {
                std::fs::write(inside.join("key"), "secret").unwrap();
                std::fs::write(inside.join("last"), "").map_err(|error| error.to_string())
            },
        )
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    /// Another user who can change a folder on the path could put a link in place of a new folder,
    /// and root would give the target away or write its keys there.
    #[test]
    fn root_makes_no_folder_on_a_path_that_others_can_change() {
        let dir = tempfile::tempdir().unwrap();
        let (home, link) = (dir.path().join("home"), dir.path().join("link"));
        let below = home.join("root/sub");
        std::fs::create_dir_all(&below).unwrap();
        let all = |mode| std::fs::set_permissions(&home, Permissions::from_mode(mode)).unwrap();
        let refused = |path: &Path| {
            let make =
                |path: &Path| make_folder(path, 0o700, |error| error.to_string(), |_| Ok(()));
            for result in [set_up(path), make(path)] {
                if is_root() {
                    let text = result.unwrap_err();
                    assert!(text.contains("expected a path that only root can change"), "{text}");
                    assert!(!path.exists(), "{}", path.display());
                }
            }
        };
        all(0o777);
        refused(&home.join("v"));
        refused(&below.join("v"));
        assert_eq!(set_up(&home.join("p/q/v")).is_err(), is_root());
        assert_eq!(home.join("p").exists(), !is_root());
        if !given_away(&home) {
            println!("skipped: only root can give files away");
            return;
        }
        all(0o755);
        for path in [home.join("v"), below.join("v")] {
            refused(&path);
        }
        // Also an empty folder of another user, and that user's link to one of root's.
        let empty = home.join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert!(set_up(&empty).is_err() && given_away(&empty) && set_up(&empty).is_err());
        let ours = dir.path().join("ours");
        std::fs::create_dir(&ours).unwrap();
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(4001), None).unwrap();
        assert!(set_up(&link).is_err());
        assert_eq!(std::fs::read_dir(&ours).unwrap().count(), 0);
        assert!(given_away(&ours) && set_up(&ours).is_err());
        // No mode is set through a link.
        assert!(set_mode(&link, |_| 0o777).is_err());
        assert_eq!(mode(&ours), 0o755);
        // Root's entries of a folder with the sticky bit are safe.
        std::os::unix::fs::chown(&home, Some(0), None).unwrap();
        all(0o1777);
        set_up(&home.join("v")).unwrap();
    }

    #[test]
    fn an_owner_outside_the_namespace_of_an_unprivileged_user_is_no_other_user() {
        let whole = "         0          0 4294967295\n";
        let unshared = "         0       1000          1\n";
        let container = "0 1000 1\n1 100000 65536\n";
        for (user, map, outside, expected) in [
            (65534, unshared, "65534\n", true),
            (65534, whole, "65534\n", false),
            // A user of the container, and real root with users that it does not map.
            (65534, container, "65534\n", false),
            (65534, "0 0 1\n", "65534\n", false),
            (1000, unshared, "65534\n", false),
            (65534, "", "", false),
        ] {
            assert_eq!(is_outside(user, map, outside), expected, "{user} {map:?}");
        }
    }

    #[test]
    fn an_empty_folder_is_set_up_in_place_without_the_write_permission_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let id = |path: &Path| id(&std::fs::metadata(path).unwrap());
        for name in ["open", "linked"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::set_permissions(at(name), Permissions::from_mode(0o777)).unwrap();
        }
        // A mount point has its file system's own folder.
        std::fs::create_dir(at("open/lost+found")).unwrap();
        std::os::unix::fs::symlink("linked", at("link")).unwrap();
        let before = id(&at("open"));
        for (named, folder) in [
            ("open", "open"),
            ("link", "linked"),
            ("slash/", "slash"),
            ("dot/.", "dot"),
            ("p/q/v", "p/q/v"),
        ] {
            set_up(&at(named)).unwrap_or_else(|text| panic!("{named}: {text}"));
            assert_eq!((mode(&at(folder)), mode(&at(folder).join("key")) & 0o400), (0o755, 0o400));
            let made = names(&at(folder)).unwrap();
            assert_eq!(made, ["key", "last"], "{named}");
            let again = set_up(&at(named)).unwrap_err();
            assert!(again.contains("found in it: key, last"), "{again}");
            assert!(!again.contains("interrupted"), "{again}");
        }
        assert_eq!(id(&at("open")), before);
        assert_eq!((mode(&at("p")), mode(&at("p/q"))), (0o755, 0o755));
    }

    #[test]
    fn a_set_up_leaves_nothing_if_it_fails_and_is_named_if_it_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new"), dir.path().join("old"));
        std::fs::create_dir(&old).unwrap();
        let fails = |path: &Path, fill: &dyn Fn(&Path)| {
            set_up_folder(
                path,
                0o755,
                "last",
                |error| error.to_string(),
                |inside| {
                    std::fs::write(inside.join("key"), "secret").unwrap();
                    fill(path);
                    if path.join("key").exists() { Ok(()) } else { Err("full".to_owned()) }
                },
            )
            .unwrap_err()
        };
        for path in [&new, &old] {
            assert_eq!(fails(path, &|_| ()), "full");
        }
        assert!(!new.exists() && names(&old).unwrap().is_empty());
        // A file that appeared stays.
        let text = fails(&old, &|path| std::fs::write(path.join("key"), "a user's").unwrap());
        assert!(text.contains("appeared"), "{text}");
        assert_eq!(names(&old).unwrap(), ["key"]);
        assert_eq!(read(&old.join("key")).unwrap(), "a user's");
        // What a killed one leaves.
        std::fs::create_dir(old.join("setup.0011223344556677.part")).unwrap();
        let text = set_up(&old).unwrap_err();
        assert!(
            text.contains("key, setup.0011223344556677.part. A set-up that was interrupted left"),
            "{text}"
        );
    }

    #[test]
    fn a_pipe_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("list");
        let made = std::process::Command::new("mkfifo").arg(&socket).status().unwrap();
        assert!(made.success());
        assert!(read(&socket).is_err());
        assert!(read_linked(&socket).unwrap_err().to_string().contains("not a regular file"));
        assert!(read_linked(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn a_reader_that_follows_links_takes_no_more_than_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_linked(&link).unwrap(), "text");
        File::create(&file).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_linked(&link).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
