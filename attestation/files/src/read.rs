//! Reading: no links, no pipes, nothing of a third user, and no more than a bound.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::owner::{is_root, look, ours, way};
use crate::{folder, regular};

/// Maximum bytes that a reader takes from a file.
const MOST: u64 = 64 << 20;

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

/// Opens a file for reading. Root opens another user's file only in that user's folder or in one that
/// only root can change.
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

/// Opens a regular file for reading, also through a symbolic link: certificate managers and
/// orchestrators link the current version of a file. Root follows a link only where no other user can
/// change where it leads ([`way`]), and otherwise opens a file by the rules of [`open`].
///
/// # Errors
/// Those of [`regular::open`]; as root also those of [`way`] and [`open`].
pub fn open_linked(path: &Path) -> io::Result<File> {
    if !is_root() {
        return regular::open(path);
    }
    if path.is_symlink() { open(&way(path)?) } else { open(path) }
}

/// Why a file with a secret is not read.
#[derive(Debug)]
pub enum PrivateError {
    /// It cannot be opened, or belongs to another user.
    Open(io::Error),
    /// This mode lets other users read or change it.
    Mode(u32),
}

impl From<io::Error> for PrivateError {
    fn from(error: io::Error) -> Self {
        Self::Open(error)
    }
}

/// Opens a file with a secret by the rules of [`open_linked`]. Its mode has none of the permissions
/// `others`, and it is root's or this user's; root takes the files that [`open`] takes.
///
/// # Errors
/// Those of [`open_linked`], or the file is another user's, or accessible to other users.
pub fn open_private(path: &Path, others: u32) -> Result<File, PrivateError> {
    let file = open_linked(path)?;
    let found = file.metadata()?;
    let (user, us) = (found.uid(), rustix::process::geteuid().as_raw());
    if !is_root() && ![0, us].contains(&user) {
        let text = format!("it belongs to user {user}, expected user {us} or root");
        return Err(io::Error::new(ErrorKind::PermissionDenied, text).into());
    }
    match found.mode() & 0o777 {
        mode if mode & others == 0 => Ok(file),
        mode => Err(PrivateError::Mode(mode)),
    }
}

/// Reads a file by the rules of [`open_linked`].
///
/// # Errors
/// Those of [`open_linked`] and [`contents`], or it is not UTF-8.
pub fn read_linked(path: &Path) -> io::Result<String> {
    text(&open_linked(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_secret_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "secret").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for (mode, others, good) in [
            (0o600, 0o077, true),
            (0o640, 0o027, true),
            (0o640, 0o077, false),
            (0o604, 0o027, false),
            (0o620, 0o027, false),
        ] {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            for path in [&file, &link] {
                match open_private(path, others) {
                    Ok(_) => assert!(good, "{mode:o}"),
                    Err(PrivateError::Mode(found)) => assert!(!good && found == mode, "{mode:o}"),
                    Err(PrivateError::Open(error)) => panic!("{mode:o}: {error}"),
                }
            }
        }
        if !is_root() {
            println!("skipped: only root can give files away");
            return;
        }
        // Another user's link to root's file, and another user's file in a folder of a third user.
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let refused = |path: &Path, text: &str| match open_private(path, 0o077).unwrap_err() {
            PrivateError::Open(error) => assert!(error.to_string().contains(text), "{error}"),
            PrivateError::Mode(mode) => panic!("{mode:o}"),
        };
        std::os::unix::fs::lchown(&link, Some(4001), None).unwrap();
        refused(&link, "belongs to user 4001");
        std::os::unix::fs::chown(dir.path(), Some(4001), None).unwrap();
        refused(&link, "belongs to user 4001");
        std::os::unix::fs::chown(&file, Some(5001), None).unwrap();
        refused(&file, "belongs to user 5001");
        // This user's rights, without root's.
        std::os::unix::fs::chown(dir.path(), Some(0), None).unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::thread::scope(|scope| {
            // Linux keeps users for each thread.
            scope.spawn(|| {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
                assert_eq!(rustix::process::geteuid().as_raw(), 65534);
                match open_private(&file, 0).unwrap_err() {
                    PrivateError::Open(error) => assert!(
                        error.to_string().contains("user 5001, expected user 65534 or root"),
                        "{error}"
                    ),
                    PrivateError::Mode(mode) => panic!("{mode:o}"),
                }
            });
        });
    }

    /// The layouts of certificate managers and orchestrators: links of root's to the current version.
    #[test]
    fn root_follows_a_link_where_only_root_can_change_it() {
        use std::os::unix::fs::{chown, lchown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["live", "archive", "secret/..2026_11"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::set_permissions(at("secret"), Permissions::from_mode(0o1777)).unwrap();
        for name in ["archive/ca1.pem", "secret/..2026_11/ca.pem"] {
            std::fs::write(at(name), "text").unwrap();
        }
        for (target, link) in [
            ("../archive/ca1.pem", "live/ca.pem"),
            ("..2026_11", "secret/..data"),
            ("..data/ca.pem", "secret/ca.pem"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        for link in ["live/ca.pem", "secret/ca.pem"] {
            assert_eq!(read_linked(&at(link)).unwrap(), "text");
            assert!(read(&at(link)).unwrap_err().to_string().contains("symbolic link"));
        }
        if !is_root() {
            println!("skipped: only root can give files away");
            return;
        }
        for (link, changed) in [
            ("live/ca.pem", "live"),
            ("live/ca.pem", "live/ca.pem"),
            ("live/ca.pem", "archive"),
            ("secret/ca.pem", "secret/..data"),
            ("secret/ca.pem", "secret/..2026_11"),
        ] {
            lchown(at(changed), Some(4001), None).unwrap();
            let text = read_linked(&at(link)).unwrap_err().to_string();
            assert!(text.contains("belongs to user 4001"), "{changed}: {text}");
            lchown(at(changed), Some(0), None).unwrap();
        }
        // A file that is no link: by the rules of `open`.
        chown(at("archive"), Some(4001), None).unwrap();
        assert_eq!(read_linked(&at("archive/ca1.pem")).unwrap(), "text");
        chown(at("archive/ca1.pem"), Some(5001), None).unwrap();
        assert!(read_linked(&at("archive/ca1.pem")).unwrap_err().to_string().contains("user 5001"));
    }
}
