//! The client's memory as the device accesses it: the mapped addresses and their backing.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};

use shef_device::SharedMemory;

use crate::errno;
use crate::wire::{MAP_READ, MAP_WRITE, MAX_MAPS};

/// A failed access of the device to host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA {} at {address:#x}: {kind}", if *write { "write" } else { "read" })]
pub struct DmaError {
    /// First address that could not be accessed.
    pub address: u64,
    /// Whether the access was a write.
    pub write: bool,
    /// The reason.
    pub kind: DmaErrorKind,
}

/// Why an access failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DmaErrorKind {
    /// The address is not mapped.
    #[error("not mapped")]
    NotMapped,
    /// It is mapped for the other direction only.
    #[error("not allowed in this direction")]
    Denied,
    /// The client answered with an error.
    #[error("refused by the client (error {0})")]
    Refused(u32),
    /// The client did not answer in time.
    #[error("no answer from the client")]
    TimedOut,
    /// There is no client, or it disconnected, or the device was reset during the access.
    #[error("cancelled")]
    Cancelled,
}

/// Backing of a mapped range.
#[derive(Debug, Clone)]
pub(crate) enum Backing {
    /// Mapped here too; the offset is that of the range's first byte.
    Memory(Arc<SharedMemory>, u64),
    /// Only the client can access it: request by message.
    Message,
}

#[derive(Debug)]
struct Entry {
    size: u64,
    flags: u32,
    backing: Backing,
}

/// All mapped ranges of one client, without overlap.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    entries: BTreeMap<u64, Entry>,
    /// One mapping per file, shared by all of its ranges.
    files: HashMap<(u64, u64), Weak<SharedMemory>>,
}

/// A part of an access that lies in one range.
pub(crate) struct Piece {
    pub len: usize,
    pub backing: Backing,
}

impl Maps {
    /// Maps a range.
    ///
    /// # Errors
    /// `EINVAL` for an invalid range or a file that is too short, `EEXIST` if part of the range is
    /// already mapped, `ENOSPC` for too many ranges.
    pub fn map(
        &mut self,
        flags: u32,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<OwnedFd>,
    ) -> Result<(), u32> {
        let end = address.checked_add(size).ok_or(errno::EINVAL)?;
        if size == 0 || flags & (MAP_READ | MAP_WRITE) == 0 {
            return Err(errno::EINVAL);
        }
        if self.entries.range(..end).next_back().is_some_and(|(at, e)| at + e.size > address) {
            return Err(errno::EEXIST);
        }
        if self.entries.len() >= MAX_MAPS {
            return Err(errno::ENOSPC);
        }
        let backing = match fd.map(File::from) {
            Some(file) => {
                let need = offset.checked_add(size).ok_or(errno::EINVAL)?;
                if file.metadata().map_or(true, |meta| meta.len() < need) {
                    return Err(errno::EINVAL);
                }
                // If the client could truncate the file, a copy could kill this process with a
                // signal: the device requests the bytes by message instead.
                if SharedMemory::is_steady(&file) {
                    Backing::Memory(self.memory(file, need, flags & MAP_WRITE != 0)?, offset)
                } else {
                    Backing::Message
                }
            }
            None => Backing::Message,
        };
        self.entries.insert(address, Entry { size, flags, backing });
        Ok(())
    }

    /// The mapping of a file of at least `need` bytes.
    fn memory(&mut self, file: File, need: u64, writable: bool) -> Result<Arc<SharedMemory>, u32> {
        let failed = |e: std::io::Error| e.raw_os_error().map_or(errno::EINVAL, |n| n as u32);
        let meta = file.metadata().map_err(failed)?;
        let key = (meta.dev(), meta.ino());
        // A read-only mapping is not kept: another range of the file may be writable.
        if let Some(known) = self.files.get(&key).and_then(Weak::upgrade)
            && known.len() >= need
        {
            return Ok(known);
        }
        if self.files.len() > 64 {
            self.files.retain(|_, m| m.strong_count() > 0);
        }
        let memory =
            Arc::new(SharedMemory::map(file, meta.len().max(need), writable).map_err(failed)?);
        if writable {
            self.files.insert(key, Arc::downgrade(&memory));
        }
        Ok(memory)
    }

    /// Unmaps every range inside `[address, address + size)` and returns the number of bytes that
    /// were mapped there. Ranges that were never mapped are not an error.
    ///
    /// # Errors
    /// `EINVAL` if a mapped range would be split.
    pub fn unmap(&mut self, address: u64, size: u64) -> Result<u64, u32> {
        let end = address.checked_add(size).ok_or(errno::EINVAL)?;
        if size == 0 {
            return Err(errno::EINVAL);
        }
        let cut =
            self.entries.range(..address).next_back().is_some_and(|(at, e)| at + e.size > address)
                || self
                    .entries
                    .range(address..end)
                    .next_back()
                    .is_some_and(|(at, e)| at + e.size > end);
        if cut {
            return Err(errno::EINVAL);
        }
        let starts: Vec<u64> = self.entries.range(address..end).map(|(at, _)| *at).collect();
        Ok(starts.iter().filter_map(|at| self.entries.remove(at)).map(|e| e.size).sum())
    }

    /// Unmaps all ranges.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.files.clear();
    }

    /// Number of mapped ranges.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first piece of an access, at most `len` bytes.
    pub fn piece(&self, address: u64, len: usize, write: bool) -> Result<Piece, DmaErrorKind> {
        let (start, entry) = self
            .entries
            .range(..=address)
            .next_back()
            .filter(|(start, e)| address - **start < e.size)
            .ok_or(DmaErrorKind::NotMapped)?;
        if entry.flags & if write { MAP_WRITE } else { MAP_READ } == 0 {
            return Err(DmaErrorKind::Denied);
        }
        let into = address - start;
        let len = usize::try_from(entry.size - into).map_or(len, |left| left.min(len));
        let backing = match &entry.backing {
            Backing::Memory(memory, offset) => Backing::Memory(Arc::clone(memory), offset + into),
            Backing::Message => Backing::Message,
        };
        Ok(Piece { len, backing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RW: u32 = MAP_READ | MAP_WRITE;

    #[test]
    fn ranges_are_found_and_never_overlap() {
        let mut maps = Maps::default();
        maps.map(RW, 0, 0x1000, 0x1000, None).unwrap();
        maps.map(MAP_READ, 0, 0x2000, 0x1000, None).unwrap();
        for (address, size) in
            [(0x1000, 0x1000), (0x1fff, 1), (0x0fff, 2), (0, u64::MAX), (0x2fff, 0x1000)]
        {
            assert_eq!(maps.map(RW, 0, address, size, None), Err(errno::EEXIST), "{address:#x}");
        }
        for (address, size, flags) in [(0x9000, 0, RW), (u64::MAX, 2, RW), (0x9000, 1, 0)] {
            assert_eq!(maps.map(flags, 0, address, size, None), Err(errno::EINVAL));
        }
        assert_eq!(maps.piece(0x1ff0, 100, true).unwrap().len, 16);
        assert_eq!(maps.piece(0x2000, 100, false).unwrap().len, 100);
        assert_eq!(maps.piece(0x2000, 1, true).err(), Some(DmaErrorKind::Denied));
        assert_eq!(maps.piece(0x3000, 1, false).err(), Some(DmaErrorKind::NotMapped));
        assert_eq!(maps.piece(0xfff, 1, false).err(), Some(DmaErrorKind::NotMapped));
    }

    #[test]
    fn unmapping_takes_whole_ranges_only() {
        let mut maps = Maps::default();
        for page in 1..5 {
            maps.map(RW, 0, page * 0x1000, 0x1000, None).unwrap();
        }
        assert_eq!(maps.unmap(0x1800, 0x1000), Err(errno::EINVAL));
        assert_eq!(maps.unmap(0x1000, 0x1800), Err(errno::EINVAL));
        assert_eq!(maps.len(), 4);
        assert_eq!(maps.unmap(0x2000, 0x2000), Ok(0x2000));
        assert_eq!(maps.unmap(0x2000, 0x2000), Ok(0), "nothing there is no error");
        assert_eq!(maps.unmap(0, 1 << 40), Ok(0x2000));
        assert_eq!(maps.unmap(1, u64::MAX), Err(errno::EINVAL));
    }

    #[test]
    fn a_file_is_mapped_once_and_must_be_long_enough() {
        let memory = SharedMemory::new(0x4000).unwrap();
        let fd = || Some(memory.fd().try_clone_to_owned().unwrap());
        let mut maps = Maps::default();
        for page in 0..4 {
            maps.map(RW, page * 0x1000, 0x10_0000 + page * 0x2000, 0x1000, fd()).unwrap();
        }
        let at = |address| match maps.piece(address, 8, true).unwrap().backing {
            Backing::Memory(memory, offset) => (Arc::as_ptr(&memory), offset),
            Backing::Message => panic!("not by message"),
        };
        assert_eq!(at(0x10_0008).0, at(0x10_6010).0);
        assert_eq!(at(0x10_6010).1, 0x3010);
        assert_eq!(maps.map(RW, 0x3000, 0x20_0000, 0x1001, fd()), Err(errno::EINVAL));
        assert_eq!(maps.map(RW, u64::MAX, 0x20_0000, 0x1000, fd()), Err(errno::EINVAL));
        let null = OwnedFd::from(File::open("/dev/null").unwrap());
        assert_eq!(maps.map(RW, 0, 0x20_0000, 0x1000, Some(null)), Err(errno::EINVAL));
    }

    #[test]
    fn a_file_that_can_be_cut_is_never_mapped() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(0x4000).unwrap();
        let mut maps = Maps::default();
        maps.map(RW, 0, 0x1000, 0x4000, Some(file.try_clone().unwrap().into())).unwrap();
        file.set_len(0).unwrap();
        assert!(matches!(maps.piece(0x1000, 8, true).unwrap().backing, Backing::Message));
    }
}
