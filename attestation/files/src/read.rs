//! Reading: no links, no pipes, nothing of a third user, and no more than a bound.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::owner::{look, ours};
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
}
