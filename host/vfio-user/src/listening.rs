//! A listening socket at a path, which is removed with its server.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::VfioUserError;

/// Maximum number of bytes of a socket's path (`sun_path`, without its last zero).
const MAX_PATH: usize = 107;

/// A listening socket. Dropping it removes its path, unless another file has taken the path by
/// then.
#[derive(Debug)]
pub struct Listening {
    path: PathBuf,
    /// Device and inode of the socket's file.
    node: (u64, u64),
    listener: UnixListener,
}

impl Listening {
    /// Checks that a socket can be created at `path`, before the device is created, which may take
    /// minutes.
    ///
    /// # Errors
    /// [`VfioUserError::Serve`] if the path is too long for a socket, the folder is missing or
    /// cannot be written, another server listens there, or the path names a file that is not a
    /// socket.
    pub fn vacant(path: &Path) -> Result<(), VfioUserError> {
        let failed = |error| Err(VfioUserError::Serve { path: path.to_owned(), error });
        let length = path.as_os_str().len();
        if length > MAX_PATH {
            let what = format!(
                "the path has {length} bytes, expected at most {MAX_PATH}: choose a shorter one"
            );
            return failed(io::Error::new(io::ErrorKind::InvalidFilename, what));
        }
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Err(error) = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK) {
            return failed(io::Error::new(
                io::Error::from(error).kind(),
                format!("cannot make a socket in {}: {error}", folder.display()),
            ));
        }
        if UnixStream::connect(path).is_ok() {
            return failed(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another server listens on it",
            ));
        }
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.file_type().is_socket() => Ok(()),
            Ok(_) => failed(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it exists and is not a socket",
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => failed(error),
        }
    }

    /// Listens on a socket at `path`, which only this user may connect to. Replaces the socket of a
    /// server that died.
    ///
    /// # Errors
    /// Those of [`Self::vacant`], and the errors of creating the socket.
    pub fn bind(path: &Path) -> Result<Self, VfioUserError> {
        Self::vacant(path)?;
        Self::made(path).map_err(|error| VfioUserError::Serve { path: path.to_owned(), error })
    }

    fn made(path: &Path) -> io::Result<Self> {
        if path.exists() {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        let node = node(path)?;
        let socket = Self { path: path.to_owned(), node, listener };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        socket.listener.set_nonblocking(true)?;
        Ok(socket)
    }

    /// The path that it listens on.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The non-blocking socket.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if node(&self.path).is_ok_and(|there| there == self.node) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of the file at a path, without following links.
fn node(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_another_server_took_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let first = Listening::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = Listening::bind(&path).unwrap();
        drop(first);
        UnixStream::connect(&path).unwrap();
        drop(second);
        assert!(!path.exists());
    }
}
