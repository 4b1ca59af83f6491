//! Memory that several programs, or a program and a device, access at the same time.
//!
//! The other side may change any byte at any moment, so this module hands out no reference into the
//! memory: it copies bytes in and out, and loads and stores atomically the words that order other
//! accesses. Each byte of a copy is read or written by one relaxed atomic access ([`copy`]): a
//! concurrent write can mix old and new bytes, and do no more harm than that.

#![expect(unsafe_code, reason = "maps memory that is shared with a device")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// An access outside the memory, or a write to memory that is read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("access to {len:#x} bytes at {offset:#x} of a shared memory of {size:#x} bytes")]
pub struct OutOfRange {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Size of the memory in bytes.
    pub size: u64,
}

/// A file in memory, or a part of it, mapped into this process.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    base: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: the pointer is to a mapping that this value owns, and that no thread has exclusively.
unsafe impl Send for SharedMemory {}
// SAFETY: every access to the mapping is atomic (`copy`, `AtomicU32`), so accesses of several
// threads are not a data race.
unsafe impl Sync for SharedMemory {}

/// Copies `len` bytes between memory of this process and shared memory, or within shared memory.
/// Each byte is read once and written once, in no guaranteed order, by relaxed atomic accesses of
/// one or several bytes.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes, and the ranges must not overlap. A
/// range in memory of this process alone must be exclusive to the caller during the call.
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // `rep movsb` takes three times as long for data that another core has just written: it does
    // not prefetch.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the caller's contract. The compiler cannot change these accesses, and each byte of
    // the machine's is atomic; by the ABI the direction flag is clear.
    unsafe {
        std::arch::asm!(
            "sub {len}, 64",
            "jb 3f",
            "2:",
            "movups {a}, [rsi]",
            "movups {b}, [rsi + 16]",
            "movups {c}, [rsi + 32]",
            "movups {d}, [rsi + 48]",
            "movups [rdi], {a}",
            "movups [rdi + 16], {b}",
            "movups [rdi + 32], {c}",
            "movups [rdi + 48], {d}",
            "add rsi, 64",
            "add rdi, 64",
            "sub {len}, 64",
            "jae 2b",
            "3:",
            "lea rcx, [{len} + 64]",
            "rep movsb",
            len = inout(reg) len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            out("rcx") _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::sync::atomic::{AtomicU8, AtomicU64};
        const WORD: usize = 8;
        let mut at = 0;
        while at < len {
            // SAFETY: `at` is below `len`.
            let (f, t) = unsafe { (from.add(at), to.add(at)) };
            if len - at >= WORD && f.addr() % WORD == 0 && t.addr() % WORD == 0 {
                // SAFETY: aligned, and in range by the condition.
                let word =
                    unsafe { AtomicU64::from_ptr(f.cast_mut().cast()) }.load(Ordering::Relaxed);
                // SAFETY: as above.
                unsafe { AtomicU64::from_ptr(t.cast()) }.store(word, Ordering::Relaxed);
                at += WORD;
            } else {
                // SAFETY: in range.
                let byte = unsafe { AtomicU8::from_ptr(f.cast_mut()) }.load(Ordering::Relaxed);
                // SAFETY: in range.
                unsafe { AtomicU8::from_ptr(t) }.store(byte, Ordering::Relaxed);
                at += 1;
            }
        }
    }
}

/// Orders earlier writes before later ones, a doorbell included, for a device that sees the later
/// ones.
pub fn publish() {
    std::sync::atomic::fence(Ordering::SeqCst);
    // Rust's fences are for processors: a device is in the outer domain, as for Linux's `dma_wmb`.
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no other effect.
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
}

/// Orders earlier reads before later ones, if a device wrote both locations.
pub fn observe() {
    std::sync::atomic::fence(Ordering::Acquire);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier has no other effect.
    unsafe {
        std::arch::asm!("dmb oshld", options(nostack, preserves_flags));
    }
}

impl SharedMemory {
    /// A new memory of `len` bytes, all zero. Pages that are never written use no memory.
    ///
    /// # Errors
    /// The operating system's: no memory, or no address space of this size.
    pub fn new(len: u64) -> io::Result<Self> {
        // SAFETY: the name is a null-terminated string; the result is checked.
        let fd = unsafe {
            libc::memfd_create(c"shef".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(len)?;
        // SAFETY: the arguments are numbers.
        if unsafe {
            libc::fcntl(
                file.as_raw_fd(),
                libc::F_ADD_SEALS,
                libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
            )
        } != 0
        {
            return Err(io::Error::last_os_error());
        }
        Self::map(file, len, true)
    }

    /// Whether a file keeps its bytes while it is mapped: an in-memory file of ordinary pages that
    /// is sealed against shrinking. Any other file can be truncated by another process that has it
    /// open, and an access beyond its new end kills this process with SIGBUS; so does an access to
    /// a hugepage if no more are available.
    pub fn is_steady(file: &File) -> bool {
        // SAFETY: the arguments are numbers.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // SAFETY: all zeros is a legal value of this structure of integers.
        let mut fs: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: the structure outlives the call.
        let known = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut fs) } == 0;
        seals >= 0
            && seals & libc::F_SEAL_SHRINK != 0
            && known
            && fs.f_type != libc::HUGETLBFS_MAGIC
    }

    /// Maps the first `len` bytes of a file, which must be steady ([`Self::is_steady`]).
    ///
    /// # Errors
    /// If the file is shorter, can be truncated or cannot be mapped, or if the length is zero.
    pub fn map(file: File, len: u64, writable: bool) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        if len == 0 || file.metadata()?.len() < len {
            return Err(invalid("the file is smaller than the mapping"));
        }
        if !Self::is_steady(&file) {
            return Err(invalid(
                "the file can be cut while it is mapped: expected one in memory, sealed against shrinking (F_SEAL_SHRINK)",
            ));
        }
        let len = usize::try_from(len).map_err(|_| invalid("longer than the address space"))?;
        let access = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: no address is requested, so no existing mapping is replaced; the result is
        // checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                access,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| invalid("mapped at address 0"))?;
        Ok(Self { file, base, len, writable })
    }

    /// Size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// The file, for another process that maps the same memory.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Address of the first byte in this process, for a kernel that needs to know it. Valid as long
    /// as `self`.
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
        // SAFETY: `at` checked the range; `out` is memory of this process that does not overlap any
        // of our mappings.
        unsafe { copy(from, out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`OutOfRange`], also if the memory is read-only.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        let to = self.at(offset, bytes.len())?;
        if !self.writable {
            return Err(OutOfRange { offset, len: bytes.len() as u64, size: 0 });
        }
        // SAFETY: as in `read`, and the mapping is writable.
        unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies bytes in from another memory, or from elsewhere in this one.
    ///
    /// # Errors
    /// [`OutOfRange`] of either memory, also if this one is read-only.
    pub fn copy_from(
        &self,
        offset: u64,
        from: &Self,
        at: u64,
        len: usize,
    ) -> Result<(), OutOfRange> {
        let (to, source) = (self.at(offset, len)?, from.at(at, len)?);
        if !self.writable {
            return Err(OutOfRange { offset, len: len as u64, size: 0 });
        }
        if to.addr().abs_diff(source.addr()) < len {
            let mut bytes = vec![0; len];
            from.read(at, &mut bytes)?;
            return self.write(offset, &bytes);
        }
        // SAFETY: as in `read` and `write`; the ranges do not overlap.
        unsafe { copy(source, to, len) };
        Ok(())
    }

    fn word(&self, offset: u64) -> Result<&AtomicU32, OutOfRange> {
        let at = self.at(offset, 4)?;
        if !offset.is_multiple_of(4) {
            return Err(OutOfRange { offset, len: 4, size: self.len as u64 });
        }
        // SAFETY: the range was checked, the mapping starts at a page boundary and `offset` is a
        // multiple of four, and the mapping lives as long as `self`.
        Ok(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// Loads a word with acquire ordering: later accesses are not made before it.
    ///
    /// # Errors
    /// [`OutOfRange`], also if `offset` is not a multiple of four.
    pub fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        let word = self.word(offset)?.load(Ordering::Relaxed);
        observe();
        Ok(word)
    }

    /// Stores a word with release ordering: earlier accesses are made before it.
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
        // SAFETY: the mapping is ours, has this length, and has no references left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_one_file_see_the_same_bytes() {
        let a = SharedMemory::new(8192).unwrap();
        let b =
            SharedMemory::map(a.fd().try_clone_to_owned().unwrap().into(), 8192, false).unwrap();
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
    fn a_file_that_can_be_cut_is_not_mapped() {
        // SAFETY: the name is a null-terminated string.
        let fd = unsafe {
            libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        // SAFETY: the descriptor is new.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(8192).unwrap();
        let again = || file.try_clone().unwrap();
        assert!(
            SharedMemory::map(again(), 8192, true)
                .unwrap_err()
                .to_string()
                .contains("F_SEAL_SHRINK")
        );
        // SAFETY: the arguments are numbers.
        let sealed =
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        assert_eq!(sealed, 0);
        let memory = SharedMemory::map(again(), 8192, true).unwrap();
        assert!(file.set_len(4096).is_err());
        memory.write(8191, &[1]).unwrap();
        assert!(
            !SharedMemory::is_steady(&File::open("/dev/null").unwrap())
                && SharedMemory::new(1).unwrap().file.set_len(0).is_err()
        );
    }

    #[test]
    fn copies_of_any_alignment_arrive_whole_and_nothing_else_changes() {
        let (a, b) = (SharedMemory::new(4096).unwrap(), SharedMemory::new(4096).unwrap());
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * 7) as u8).collect();
        for offset in 0..9 {
            for len in [0, 1, 7, 8, 9, 63, 64, 65, 300] {
                a.write(0, &[0xee; 400]).unwrap();
                a.write(offset, &bytes[..len]).unwrap();
                b.write(0, &[0xdd; 400]).unwrap();
                b.copy_from(3, &a, offset, len).unwrap();
                let (mut whole, mut copied) = ([0; 400], [0; 400]);
                a.read(0, &mut whole).unwrap();
                b.read(0, &mut copied).unwrap();
                let (from, to) = (offset as usize, offset as usize + len);
                assert!(
                    whole[from..to] == bytes[..len] && copied[3..3 + len] == bytes[..len],
                    "{offset} {len}"
                );
                assert!(
                    whole[..from].iter().chain(&whole[to..]).all(|b| *b == 0xee),
                    "{offset} {len}"
                );
                assert!(
                    copied[..3].iter().chain(&copied[3 + len..]).all(|b| *b == 0xdd),
                    "{offset} {len}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_reached_outside() {
        let m = SharedMemory::new(4096).unwrap();
        let mut byte = [0];
        for (offset, len) in [(4096, 1), (4095, 2), (u64::MAX, 1), (u64::MAX - 1, 4096), (0, 4097)]
        {
            assert!(m.write(offset, &vec![0; len]).is_err(), "{offset:#x}");
            assert!(m.read(offset, &mut vec![0; len]).is_err(), "{offset:#x}");
        }
        assert!(
            m.load(4096).is_err()
                && m.load(4094).is_err()
                && m.load(2).is_err()
                && m.store(4093, 0).is_err()
        );
        m.read(4095, &mut byte).unwrap();
        m.write(4096, &[]).unwrap();
        assert!(
            SharedMemory::map(m.fd().try_clone_to_owned().unwrap().into(), 4097, true).is_err()
        );
        assert!(SharedMemory::map(m.fd().try_clone_to_owned().unwrap().into(), 0, true).is_err());
    }
}
