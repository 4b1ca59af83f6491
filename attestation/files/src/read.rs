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
