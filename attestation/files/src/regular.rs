//! Files that hold configuration, certificates or evidence: regular files, nothing else.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file. A pipe or a terminal would make the caller wait for a writer, and a device
/// may never end.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidInput`] for a folder, pipe, socket or device.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Opening a pipe blocks until its other end is open.
    let options = options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// As [`open`]; [`io::ErrorKind::FileTooLarge`] for a larger file.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most} bytes"),
        ));
    }
    Ok(bytes)
}
