//! Output files: complete or absent.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::{folder, id};

/// Writes or replaces a file: readers see the old content or the new, and an error (a full disk)
/// leaves the old. A replaced file keeps its mode and owner. A link is followed; a pipe or device
/// (`/dev/stdout`) is written to directly. A pipe without a reader is an error.
///
/// # Errors
/// I/O errors; no part of the new content stays behind.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Staged::replacing(path)?;
    file.fill(bytes)?;
    file.put()
}

/// Writes a new file, accessible to its owner only.
///
/// # Errors
/// The file exists, or I/O errors; no part of the content stays behind.
pub fn write_new_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Staged::new_secret(path)?;
    file.fill(bytes)?;
    file.put()
}

/// An output file that is prepared beside its final name, so that an unwritable output is detected
/// before there is content. If it is dropped before [`Staged::keep`], everything stays as it was.
#[derive(Debug)]
pub struct Staged {
    /// The final name, links resolved.
    path: PathBuf,
    /// Device and inode of the previous file of this name.
    old: Option<(u64, u64)>,
    rule: Rule,
    state: State,
    /// Only the owner can open the file to be replaced, while new files of this process are open to
    /// others.
    private: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Replace,
    New,
}

#[derive(Debug)]
enum State {
    /// A pipe or device, with the pending content.
    Direct(File, Zeroizing<Vec<u8>>),
    /// The new content is in the file with this name.
    Part(PathBuf, File),
    /// The new content has the final name, which was free before.
    Placed,
    /// The new content has the final name, and the old content this name.
    Replaced(PathBuf),
    /// There is nothing left to undo.
    Done,
}

/// Bytes that a disk must have free before a command makes a request that it cannot repeat.
#[cfg(target_os = "linux")]
const ROOM: u64 = 16 << 10;

impl Staged {
    /// For a file that is written or replaced, as by [`write_file`].
    ///
    /// # Errors
    /// I/O errors.
    pub fn replacing(path: &Path) -> io::Result<Self> {
        let old = match path.metadata() {
            Ok(meta) if !meta.is_file() => {
                let file = open_direct(path, &meta)?;
                let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                return Ok(Self {
                    path,
                    old: Some(id(&meta)),
                    rule: Rule::Replace,
                    state: State::Direct(file, Zeroizing::default()),
                    private: false,
                });
            }
            Ok(meta) => Some(meta),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let path = if old.is_some() { path.canonicalize()? } else { resolved(path)? };
        let (part, file) = part_of(&path, OpenOptions::new().write(true).create_new(true))?;
        let private = match &old {
            Some(old) => is_private(old) && !is_private(&file.metadata()?),
            None => false,
        };
        let staged = Self {
            path,
            old: old.as_ref().map(id),
            rule: Rule::Replace,
            state: State::Part(part, file),
            private,
        };
        staged.prepare(old.as_ref())?;
        Ok(staged)
    }

    /// For a new file.
    ///
    /// # Errors
    /// The file exists, or I/O errors.
    pub fn new_file(path: &Path) -> io::Result<Self> {
        Self::new(path, OpenOptions::new().write(true).create_new(true))
    }

    /// For a new file, accessible to its owner only.
    ///
    /// # Errors
    /// The file exists, or I/O errors.
    pub fn new_secret(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Self::new(path, &options)
    }

    fn new(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        let path = resolved(path)?;
        // This includes a link, whatever its target.
        if path.symlink_metadata().is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (part, file) = part_of(&path, options)?;
        let staged = Self {
            path,
            old: None,
            rule: Rule::New,
            state: State::Part(part, file),
            private: false,
        };
        staged.prepare(None)?;
        Ok(staged)
    }

    fn prepare(&self, old: Option<&std::fs::Metadata>) -> io::Result<()> {
        let State::Part(_, file) = &self.state else { return Ok(()) };
        if let Some(old) = old {
            owned_like(file, old)?;
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::{fs::FallocateFlags, io::Errno};
            // A system without this call reports that, and no space is reserved.
            if let Err(error @ (Errno::NOSPC | Errno::DQUOT)) =
                rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, ROOM)
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// The final name, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The temporary file beside it, if there is one.
    pub fn part(&self) -> Option<&Path> {
        match &self.state {
            State::Part(part, _) | State::Replaced(part) => Some(part),
            _ => None,
        }
    }

    /// Whether two outputs are the same file.
    pub fn is_also(&self, other: &Self) -> bool {
        self.path == other.path || self.is(other.old)
    }

    /// Whether it would replace the file with this device and inode.
    pub fn is(&self, file: Option<(u64, u64)>) -> bool {
        file.is_some() && self.old == file
    }

    /// Whether it is a pipe or device.
    pub fn is_direct(&self) -> bool {
        matches!(self.state, State::Direct(..))
    }

    /// Whether it would replace a file that only its owner can open, like a secret, while new files
    /// of this process are open to others.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Writes the content, but not yet under the final name.
    ///
    /// # Errors
    /// I/O errors.
    pub fn fill(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            State::Direct(_, content) => *content = Zeroizing::new(bytes.to_vec()),
            State::Part(_, file) => {
                file.write_all(bytes)?;
                let len = file.metadata()?.len();
                // Releases space that was not needed.
                file.set_len(len)?;
                file.sync_all()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Moves it to its final name; [`Staged::keep`] must follow, or the drop undoes this. Output to
    /// a pipe or device is immediate and cannot be undone.
    ///
    /// # Errors
    /// I/O errors; everything is as before.
    pub fn place(&mut self) -> io::Result<()> {
        let part = match &mut self.state {
            State::Direct(file, content) => {
                file.write_all(content)?;
                self.state = State::Done;
                return Ok(());
            }
            State::Part(part, _) => part.clone(),
            _ => return Ok(()),
        };
        self.state = match rename_new(&part, &self.path) {
            Ok(()) => State::Placed,
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && self.rule == Rule::Replace =>
            {
                if exchange(&part, &self.path).is_ok() {
                    State::Replaced(part)
                } else {
                    // A second name keeps the old content until the end.
                    let second = beside(&self.path)?;
                    std::fs::hard_link(&self.path, &second)?;
                    if let Err(error) = std::fs::rename(&part, &self.path) {
                        let _ = std::fs::remove_file(&second);
                        return Err(error);
                    }
                    State::Replaced(second)
                }
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Commits: the new content stays. From here on the name survives a crash.
    ///
    /// # Errors
    /// I/O errors.
    pub fn keep(mut self) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, State::Done);
        match &state {
            State::Done => return Ok(()),
            State::Part(part, _) | State::Replaced(part) => std::fs::remove_file(part)?,
            State::Placed | State::Direct(..) => {}
        }
        sync_folder(&self.path)
    }

    /// Moves it to its final name permanently.
    fn put(mut self) -> io::Result<()> {
        match (&self.state, self.rule) {
            (State::Part(part, _), Rule::Replace) => {
                std::fs::rename(part, &self.path)?;
                self.state = State::Done;
                sync_folder(&self.path)
            }
            _ => {
                self.place()?;
                self.keep()
            }
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = match &self.state {
            State::Part(part, _) => std::fs::remove_file(part),
            State::Placed => std::fs::remove_file(&self.path),
            State::Replaced(old) => std::fs::rename(old, &self.path),
            State::Direct(..) | State::Done => Ok(()),
        };
    }
}

/// A path whose last component need not exist, in an existing folder; the folder's links are
/// resolved.
///
/// # Errors
/// The folder does not exist, or the path has no last component, as with `..`.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the path does not end with a name")
    })?;
    Ok(folder(path).canonicalize()?.join(name))
}

/// A new name beside `path` for an unfinished file: `.NAME.16 hexadecimal digits.part`.
///
/// # Errors
/// Errors of the system's source of randomness.
pub fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or(io::ErrorKind::InvalidInput)?);
    crate::beside(&folder(path).join(name))
}

fn part_of(path: &Path, options: &OpenOptions) -> io::Result<(PathBuf, File)> {
    let part = beside(path)?;
    let file = options.open(&part)?;
    Ok((part, file))
}

/// Exchanges two names atomically.
///
/// # Errors
/// I/O errors; [`io::ErrorKind::Unsupported`] or [`io::ErrorKind::InvalidInput`] if the system has
/// no such call.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return Ok(rustix::fs::renameat_with(
        rustix::fs::CWD,
        one,
        rustix::fs::CWD,
        other,
        rustix::fs::RenameFlags::EXCHANGE,
    )?);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (one, other);
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Renames to a name that is free.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`], and I/O errors.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::Errno;
        match rustix::fs::renameat_with(
            rustix::fs::CWD,
            from,
            rustix::fs::CWD,
            to,
            rustix::fs::RenameFlags::NOREPLACE,
        ) {
            // Not supported by this file system or this kernel.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            done => return Ok(done?),
        }
    }
    if from.is_dir() {
        // A folder that is not empty is never replaced this way.
        return if to.symlink_metadata().is_ok() {
            Err(io::ErrorKind::AlreadyExists.into())
        } else {
            std::fs::rename(from, to)
        };
    }
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

/// Opens a pipe or device. Opening does not block, writing does.
fn open_direct(path: &Path, meta: &std::fs::Metadata) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let open = OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path);
    let file = open.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::NXIO) if meta.file_type().is_fifo() => {
            io::Error::new(error.kind(), "no process reads this pipe")
        }
        _ => error,
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Whether the mode grants access to the owner only.
fn is_private(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o077 == 0
}

/// Makes a new name survive a crash; a folder that cannot be read cannot be synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path)).map_or(Ok(()), |opened| opened.sync_all())
}

fn owned_like(file: &File, old: &std::fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        fchown(file, Some(old.uid()), Some(old.gid()))?;
    }
    file.set_permissions(old.permissions())
}

#[cfg(test)]
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
        assert_eq!(
            (std::fs::read(&file).unwrap(), file.metadata().unwrap().permissions().mode() & 0o777),
            (b"new".to_vec(), 0o640)
        );
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing beside them");
    }

    #[test]
    fn a_new_secret_replaces_nothing_and_a_device_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secret");
        write_new_secret(&file, b"one").unwrap();
        assert_eq!(
            write_new_secret(&file, b"two").unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(
            (std::fs::read(&file).unwrap(), file.metadata().unwrap().permissions().mode() & 0o777),
            (b"one".to_vec(), 0o600)
        );
        assert!(write_file(dir.path(), b"x").is_err(), "a folder");
        write_file(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::write(&old, b"before").unwrap();
        let staged = || {
            let mut both = [Staged::replacing(&old).unwrap(), Staged::new_secret(&new).unwrap()];
            both.iter_mut().for_each(|file| file.fill(b"x").unwrap());
            both
        };
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        let unchanged = || {
            assert_eq!(std::fs::read(&old).unwrap(), b"before");
            assert_eq!(names(), 1);
        };
        drop(staged());
        unchanged();
        // Moved, then undone.
        let mut both = staged();
        both.iter_mut().for_each(|file| file.place().unwrap());
        assert_eq!(std::fs::read(&old).unwrap(), b"x");
        drop(both);
        unchanged();
        // A name that another process has taken in between stays untouched.
        let mut both = staged();
        std::fs::write(&new, b"other").unwrap();
        assert_eq!(both[1].place().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        drop(both);
        assert_eq!((std::fs::read(&new).unwrap(), names()), (b"other".to_vec(), 2));
    }
}
