//! System calls: each function is one operation and returns the kernel's error.
#![expect(unsafe_code, reason = "system calls, with arguments that the kernel reads or writes")]

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

/// An ioctl whose argument is a `T` that the kernel reads and may write.
pub(crate) struct Ioctl<T>(libc::c_ulong, PhantomData<T>);

impl<T> Ioctl<T> {
    /// `_IO(';', number)`, as in all of VFIO and iommufd.
    pub(crate) const fn new(number: u32) -> Self {
        Self(((b';' as libc::c_ulong) << 8) | number as libc::c_ulong, PhantomData)
    }
}

fn checked(result: libc::c_int) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Calls an ioctl with a structure.
///
/// # Safety
/// `T` must be the structure that the kernel expects for this ioctl, with its size field set, and
/// addresses in it must stay valid for as long as the kernel or the device uses them.
pub(crate) unsafe fn ioctl<T>(
    fd: &impl AsRawFd,
    request: &Ioctl<T>,
    argument: &mut T,
) -> io::Result<i32> {
    // SAFETY: `argument` is a live `T`; the caller guarantees that the kernel expects this type.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), request.0, std::ptr::from_mut(argument)) })
}

/// Calls an ioctl whose argument is a number.
pub(crate) fn ioctl_value(
    fd: &impl AsRawFd,
    request: &Ioctl<libc::c_ulong>,
    value: libc::c_ulong,
) -> io::Result<i32> {
    // SAFETY: the argument is not an address.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), request.0, value) })
}

/// Calls an ioctl that returns a new file descriptor for a name.
///
/// # Safety
/// As [`ioctl`]; the request must be one that returns a descriptor.
pub(crate) unsafe fn ioctl_fd(
    fd: &impl AsRawFd,
    request: &Ioctl<*const libc::c_char>,
    name: &CString,
) -> io::Result<File> {
    // SAFETY: `name` outlives the call and is null-terminated.
    let fd = checked(unsafe { libc::ioctl(fd.as_raw_fd(), request.0, name.as_ptr()) })?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Opens a kernel node for reading and writing.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Whether this user may read and write a file.
pub(crate) fn may_open(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` outlives the call and is null-terminated.
    checked(unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) }).map(|_| ())
}

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: takes no argument.
    unsafe { libc::geteuid() == 0 }
}

/// Limit of locked memory in bytes; `None` if there is no limit.
pub(crate) fn locked_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live structure of the right type.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Pages that this process has mapped; dropping the value unmaps them.
pub(crate) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the pages belong to this value alone, and no thread has them exclusively.
unsafe impl Send for Pages {}
// SAFETY: memory of this machine is copied by atomic accesses (`take`, `fill`, `load32`), and a
// device's by volatile ones: accesses of several threads are not a data race.
unsafe impl Sync for Pages {}

impl Pages {
    fn map(len: usize, flags: libc::c_int, fd: libc::c_int, offset: u64) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses replaces no existing one.
        let start = unsafe {
            libc::mmap(
                null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                fd,
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast())
            .map(|start| Self { start, len })
            .ok_or_else(|| io::Error::other("mapped at address 0"))
    }

    /// Maps memory of a device.
    pub(crate) fn of_device(fd: &impl AsRawFd, len: usize, offset: u64) -> io::Result<Self> {
        Self::map(len, libc::MAP_SHARED, fd.as_raw_fd(), offset)
    }

    /// Zeroed memory for a device; this process's children do not inherit it.
    pub(crate) fn anonymous(len: usize, huge: bool) -> io::Result<Self> {
        let huge = if huge { libc::MAP_HUGETLB | libc::MAP_HUGE_2MB } else { 0 };
        let pages = Self::map(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | huge, -1, 0)?;
        // SAFETY: start and length are the mapping's. Without this, parent and device could have
        // different pages after a fork.
        checked(unsafe { libc::madvise(pages.start.as_ptr().cast(), len, libc::MADV_DONTFORK) })?;
        Ok(pages)
    }

    /// Requests pages of one NUMA node; a hint.
    pub(crate) fn prefer_node(&self, node: u32) {
        let Some(mask) = 1u64.checked_shl(node) else { return };
        const MPOL_PREFERRED: libc::c_long = 1;
        // SAFETY: start and length are the mapping's; the mask has 64 bits, and the kernel reads as
        // many. Its result does not matter.
        unsafe {
            libc::syscall(
                libc::SYS_mbind,
                self.start.as_ptr(),
                self.len,
                MPOL_PREFERRED,
                &raw const mask,
                65 as libc::c_ulong,
                0,
            )
        };
    }

    /// Makes the pages present and locks them against swapping. That does not pin them: the kernel
    /// may still move a locked page, and its physical address with it, for compaction, NUMA
    /// balancing or memory hot-unplug. It does not move hugepages of its pool on its own, so
    /// nothing else works without an IOMMU. Behind an IOMMU, VFIO pins mapped memory.
    pub(crate) fn lock(&self) -> io::Result<()> {
        // SAFETY: start and length are the mapping's.
        checked(unsafe { libc::mlock(self.start.as_ptr().cast(), self.len) }).map(|_| ())
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// `len` bytes at `offset`. The caller has checked the range; this function checks it again.
    fn range(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: not past the end of the mapping, by the assertion.
        unsafe { self.start.add(offset) }
    }

    /// A `T` at `offset`, which must be aligned for it: a mapping begins at a page boundary.
    fn at<T>(&self, offset: usize) -> NonNull<T> {
        assert!(offset.is_multiple_of(align_of::<T>()));
        self.range(offset, size_of::<T>()).cast()
    }

    /// Reads a 32-bit word.
    pub(crate) fn read32(&self, offset: usize) -> u32 {
        let word = self.at::<u32>(offset);
        // SAFETY: `at` returns an aligned location inside the mapping.
        unsafe { word.read_volatile() }
    }

    /// Loads a 32-bit word of memory of this machine.
    pub(crate) fn load32(&self, offset: usize) -> u32 {
        let word = self.at::<u32>(offset);
        // SAFETY: inside the mapping, aligned, and valid as long as `self`.
        unsafe { AtomicU32::from_ptr(word.as_ptr()) }.load(Ordering::Relaxed)
    }

    /// Writes a 32-bit word.
    pub(crate) fn write32(&self, offset: usize, value: u32) {
        let word = self.at::<u32>(offset);
        // SAFETY: inside the mapping, aligned; the other side is a device or a program that expects
        // a store at any time.
        unsafe { word.write_volatile(value) }
    }

    /// Copies out of memory of this machine.
    pub(crate) fn take(&self, offset: usize, bytes: &mut [u8]) {
        let from = self.range(offset, bytes.len()).as_ptr();
        // SAFETY: `range` returns bytes inside the mapping; `bytes` is memory that does not overlap
        // any of our mappings.
        unsafe { shef_device::memory::copy(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Copies into memory of this machine.
    pub(crate) fn fill(&self, offset: usize, bytes: &[u8]) {
        let to = self.range(offset, bytes.len()).as_ptr();
        // SAFETY: as in `take`.
        unsafe { shef_device::memory::copy(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies out of a device, in words of 64 or 32 bits if alignment and length allow, otherwise
    /// in bytes.
    pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.range(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done;
            if at.is_multiple_of(8) && bytes.len() - done >= 8 {
                let word = self.at::<u64>(at);
                // SAFETY: inside the mapping, aligned.
                let word = unsafe { word.read_volatile() };
                bytes[done..done + 8].copy_from_slice(&word.to_ne_bytes());
                done += 8;
            } else if at.is_multiple_of(4) && bytes.len() - done >= 4 {
                bytes[done..done + 4].copy_from_slice(&self.read32(at).to_ne_bytes());
                done += 4;
            } else {
                let byte = self.at::<u8>(at);
                // SAFETY: inside the mapping.
                bytes[done] = unsafe { byte.read_volatile() };
                done += 1;
            }
        }
    }

    /// Copies into a device, in words of 64 or 32 bits if alignment and length allow, otherwise in
    /// bytes.
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.range(offset, bytes.len());
        let mut done = 0;
        while done < bytes.len() {
            let (at, rest) = (offset + done, &bytes[done..]);
            if let (true, Some(word)) = (at.is_multiple_of(8), rest.first_chunk::<8>()) {
                let place = self.at::<u64>(at);
                // SAFETY: inside the mapping, aligned.
                unsafe { place.write_volatile(u64::from_ne_bytes(*word)) };
                done += 8;
            } else if let (true, Some(word)) = (at.is_multiple_of(4), rest.first_chunk::<4>()) {
                self.write32(at, u32::from_ne_bytes(*word));
                done += 4;
            } else {
                let byte = self.at::<u8>(at);
                // SAFETY: inside the mapping.
                unsafe { byte.write_volatile(rest[0]) };
                done += 1;
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: start and length are the mapping's, which has no other user.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
