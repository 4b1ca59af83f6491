//! Memory that several programs, or a program and a device, see at the same time.
//!
//! The other side may change every byte at any moment, so no reference into it is ever given out: bytes are copied in and out, and words that
//! order other accesses are loaded and stored atomically.

#![expect(unsafe_code, reason = "maps memory that is shared with a device")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// An access outside the memory, or a write where it may only be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("access to {len:#x} bytes at {offset:#x} of a shared memory of {size:#x} bytes")]
pub struct OutOfRange {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Bytes of the memory.
    pub size: u64,
}

/// A file in memory, or a part of one, mapped into this process.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: the pointer is to a mapping that this value owns, and every access through it is a copy or an atomic that any thread may do.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; nothing here depends on which thread it runs on.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// A new memory of `len` bytes, all zero. Pages that are never written cost nothing.
    ///
    /// # Errors
    /// Those of the operating system: no memory, or no address space of this size.
    pub fn new(len: u64) -> io::Result<Self> {
        // SAFETY: the name is a string with its zero; the result is checked.
        let fd = unsafe { libc::memfd_create(c"shef".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(len)?;
        Self::map(file, len, true)
    }

    /// Maps the first `len` bytes of a file. The file must have them for as long as it is mapped: a file that is cut ends the process.
    ///
    /// # Errors
    /// A file that is shorter or cannot be mapped so, and a length of zero.
    pub fn map(file: File, len: u64, writable: bool) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        if len == 0 || file.metadata()?.len() < len {
            return Err(invalid("the file has fewer bytes than are to be mapped"));
        }
        let len = usize::try_from(len).map_err(|_| invalid("longer than the address space"))?;
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: no address is asked for, so nothing that exists is replaced; the result is checked.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED | libc::MAP_NORESERVE, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| invalid("mapped at address 0"))?;
        Ok(Self { file, base, len, writable })
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// The file, to be handed to who maps the same memory.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Address of the first byte in this process, for a kernel that wants to know where the memory is. Stays valid as long as `self`.
    pub fn address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    fn at(&self, offset: u64, len: usize) -> Result<*mut u8, OutOfRange> {
        let bad = OutOfRange { offset, len: len as u64, size: self.len as u64 };
        let start = usize::try_from(offset).map_err(|_| bad)?;
        if start.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(bad);
        }
        // SAFETY: `start` is at most `len`, so the result is inside the mapping or one past it.
        Ok(unsafe { self.base.as_ptr().add(start) })
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`OutOfRange`].
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        let from = self.at(offset, out.len())?;
        // SAFETY: `at` checked the range; `out` is memory of this process that no mapping of ours overlaps. The other side may write at the
        // same time: the bytes copied are then any mixture, and nothing is concluded from them before they are copied.
        unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`OutOfRange`], also where the memory may only be read.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        let to = self.at(offset, bytes.len())?;
        if !self.writable {
            return Err(OutOfRange { offset, len: bytes.len() as u64, size: 0 });
        }
        // SAFETY: as in `read`, and the mapping is writable.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies bytes in from another memory, or from elsewhere in this one.
    ///
    /// # Errors
    /// [`OutOfRange`] of either, also where this memory may only be read.
    pub fn copy_from(&self, offset: u64, from: &Self, at: u64, len: usize) -> Result<(), OutOfRange> {
        let (to, from) = (self.at(offset, len)?, from.at(at, len)?);
        if !self.writable {
            return Err(OutOfRange { offset, len: len as u64, size: 0 });
        }
        // SAFETY: as in `read` and `write`; the ranges may overlap.
        unsafe { std::ptr::copy(from, to, len) };
        Ok(())
    }

    fn word(&self, offset: u64) -> Result<&AtomicU32, OutOfRange> {
        let at = self.at(offset, 4)?;
        if !offset.is_multiple_of(4) {
            return Err(OutOfRange { offset, len: 4, size: self.len as u64 });
        }
        // SAFETY: the range was checked, the mapping starts at a page and `offset` is a multiple of four, and it lives as long as `self`.
        Ok(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// Loads a word; accesses after it are not done before it.
    ///
    /// # Errors
    /// [`OutOfRange`], also where `offset` is no multiple of four.
    pub fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Stores a word; accesses before it are done before it.
    ///
    /// # Errors
    /// As [`SharedMemory::load`] and [`SharedMemory::write`].
    pub fn store(&self, offset: u64, value: u32) -> Result<(), OutOfRange> {
        if !self.writable {
            return Err(OutOfRange { offset, len: 4, size: 0 });
        }
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_one_file_see_the_same_bytes() {
        let a = SharedMemory::new(8192).unwrap();
        let b = SharedMemory::map(a.fd().try_clone_to_owned().unwrap().into(), 8192, false).unwrap();
        a.write(4090, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        a.store(0, 0x0403_0201).unwrap();
        let mut got = [0; 8];
        b.read(4090, &mut got).unwrap();
        assert_eq!(got, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(b.load(0).unwrap(), 0x0403_0201);
        assert_eq!(b.write(0, &[1]).unwrap_err().size, 0, "mapped for reading only");
        assert_eq!(b.store(0, 1).unwrap_err().size, 0);
        let c = SharedMemory::new(4096).unwrap();
        c.copy_from(100, &b, 4090, 8).unwrap();
        c.copy_from(102, &c, 100, 8).unwrap();
        let mut got = [0; 10];
        c.read(100, &mut got).unwrap();
        assert_eq!(got, [1, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(b.copy_from(0, &a, 0, 8).unwrap_err().size, 0);
        assert!(c.copy_from(4090, &a, 0, 8).is_err() && c.copy_from(0, &a, 8190, 8).is_err());
    }

    #[test]
    fn nothing_is_reached_outside() {
        let m = SharedMemory::new(4096).unwrap();
        let mut byte = [0];
        for (offset, len) in [(4096, 1), (4095, 2), (u64::MAX, 1), (u64::MAX - 1, 4096), (0, 4097)] {
            assert!(m.write(offset, &vec![0; len]).is_err(), "{offset:#x}");
            assert!(m.read(offset, &mut vec![0; len]).is_err(), "{offset:#x}");
        }
        assert!(m.load(4096).is_err() && m.load(4094).is_err() && m.load(2).is_err() && m.store(4093, 0).is_err());
        m.read(4095, &mut byte).unwrap();
        m.write(4096, &[]).unwrap();
        assert!(SharedMemory::map(m.fd().try_clone_to_owned().unwrap().into(), 4097, true).is_err());
        assert!(SharedMemory::map(m.fd().try_clone_to_owned().unwrap().into(), 0, true).is_err());
    }
}
