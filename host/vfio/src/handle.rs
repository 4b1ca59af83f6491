//! The handle of an open function, and the VFIO nodes that it comes from.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;

use shef_device::{Bdf, Event};

use crate::VfioError;
use crate::check;
use crate::sys;
use crate::system::System;

/// Most vectors in one request.
pub(crate) const MAX_VECTORS: usize = 64;

/// Location of a region in a function's descriptor.
pub(crate) struct Region {
    pub(crate) size: u64,
    pub(crate) offset: u64,
    pub(crate) flags: u32,
}

/// A function, opened through an interface. Implemented by `type1`, and by `ours` for the other
/// interfaces.
pub(crate) trait Handle: Send + Sync {
    /// The descriptor. Regions are read, written and mapped, and the function is reset, through it.
    fn file(&self) -> &File;

    /// Information about a region.
    fn region(&self, index: u32) -> Result<Region, VfioError>;

    /// Number of interrupts of a kind.
    fn vectors(&self, index: u32) -> Result<u32, VfioError>;

    /// Connects the first interrupts of a kind to events.
    fn signal(&self, index: u32, events: &[Event]) -> Result<(), VfioError>;
}

/// Opens a VFIO node.
pub(crate) fn node(system: &System, bdf: Bdf, path: &str) -> Result<File, VfioError> {
    sys::open(&system.path(path)).map_err(|e| unopened(system, bdf, path, e))
}

/// The error for a node that could not be opened.
pub(crate) fn unopened(system: &System, function: Bdf, path: &str, error: io::Error) -> VfioError {
    match error.raw_os_error() {
        Some(libc::EBUSY) => {
            let holder = system.holders(path).into_iter().next();
            VfioError::InUse {
                function,
                holder: holder.unwrap_or_else(|| "another program".to_owned()),
            }
        }
        Some(libc::EACCES | libc::EPERM) => check::denied(path, &error),
        _ => VfioError::Kernel {
            function,
            what: "opening a VFIO node",
            reason: format!("{path}: {error}"),
        },
    }
}

/// Reserves a VFIO node for this process with a lock that a crash releases. The kernel lets several
/// programs open a function's node and binds the function to one of them; the lock shows the others
/// which one. A group's node needs no lock: the kernel opens it only once. The lock is never on a
/// file that a user without access to the node can open: that user could hold the lock and thus
/// block the card.
pub(crate) fn lock(system: &System, function: Bdf, file: &File) -> Result<(), VfioError> {
    let failed = VfioError::refused(function, "locking the function");
    match file.try_lock() {
        Ok(()) => return Ok(()),
        Err(TryLockError::Error(e)) => return Err(failed(e)),
        Err(TryLockError::WouldBlock) => {}
    }
    let meta = file.metadata().map_err(failed)?;
    let (dev, inode) = (meta.dev(), meta.ino());
    // `1: FLOCK  ADVISORY  WRITE 1234 00:17:4242 0 EOF`
    let place = format!("{:02x}:{:02x}:{inode}", libc::major(dev), libc::minor(dev));
    let locks = system.text("/proc/locks").unwrap_or_default();
    let holder = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place.as_str()))
        .map_or_else(|| "another program".to_owned(), |words| system.process(words[4]));
    Err(VfioError::InUse { function, holder })
}
