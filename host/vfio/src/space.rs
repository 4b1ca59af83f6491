//! The addresses that a function may reach by DMA, in three kinds, and memory put there.
#![expect(unsafe_code, reason = "ioctls that hand memory to a device")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use shef_device::Bdf;
use vfio_bindings::bindings::vfio as abi;

use crate::VfioError;
use crate::sys::{self, Ioctl, Pages};
use crate::system::HUGEPAGE;

const IOMMU_GET_INFO: Ioctl<[u8; INFO_BYTES]> = Ioctl::new(112);
const MAP_DMA: Ioctl<abi::vfio_iommu_type1_dma_map> = Ioctl::new(113);
const UNMAP_DMA: Ioctl<abi::vfio_iommu_type1_dma_unmap> = Ioctl::new(114);
const IOAS_MAP: Ioctl<IoasMap> = Ioctl::new(0x85);
const IOAS_UNMAP: Ioctl<IoasUnmap> = Ioctl::new(0x86);

/// Room for the answer of `VFIO_IOMMU_GET_INFO` with its capabilities.
const INFO_BYTES: usize = 4096;
/// Small page.
const PAGE: u64 = 4096;
/// No buffer lies below: a device that was not told an address must not hit one.
const LOWEST: u64 = 1 << 20;

/// `struct iommu_ioas_map` of linux/iommufd.h.
#[repr(C)]
struct IoasMap {
    size: u32,
    flags: u32,
    ioas: u32,
    reserved: u32,
    user: u64,
    len: u64,
    iova: u64,
}

/// `struct iommu_ioas_unmap` of linux/iommufd.h.
#[repr(C)]
struct IoasUnmap {
    size: u32,
    ioas: u32,
    iova: u64,
    len: u64,
}

const IOAS_WRITEABLE: u32 = 2;
const IOAS_READABLE: u32 = 4;

/// An address as the device uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmaAddr(pub u64);

/// A piece of a buffer that is in one piece for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First address, as the device uses it.
    pub addr: DmaAddr,
    /// Bytes.
    pub len: u64,
}

/// How the addresses are made.
pub(crate) enum Kind {
    /// A container of type 1: addresses are ours to choose inside what the IOMMU allows.
    Type1 { container: OwnedFd, free: Mutex<Ranges> },
    /// iommufd chooses.
    Iommufd { iommu: OwnedFd, ioas: u32 },
    /// Physical addresses; nothing is confined.
    Unprotected { _container: OwnedFd },
}

/// The addresses that a function may reach.
pub(crate) struct Space {
    pub(crate) function: Bdf,
    pub(crate) numa_node: Option<u32>,
    pub(crate) kind: Kind,
}

impl Space {
    /// The space of a container that has its IOMMU.
    pub(crate) fn type1(function: Bdf, numa_node: Option<u32>, container: OwnedFd) -> Result<Self, VfioError> {
        let mut info = Box::new([0u8; INFO_BYTES]);
        info[..4].copy_from_slice(&(INFO_BYTES as u32).to_ne_bytes());
        // SAFETY: the first word says how much room there is, and the kernel writes no more.
        unsafe { sys::ioctl(container.as_fd(), &IOMMU_GET_INFO, &mut *info) }.map_err(|e| kernel(function, "VFIO_IOMMU_GET_INFO", &e))?;
        Ok(Self { function, numa_node, kind: Kind::Type1 { container, free: Mutex::new(Ranges::new(&allowed(&info[..]))) } })
    }

    /// Makes `pages` reachable for the device.
    fn map(&self, pages: &Pages, huge: bool) -> Result<Vec<Segment>, VfioError> {
        let (start, len) = (pages.start().as_ptr() as u64, pages.len() as u64);
        let failed = |what, e: io::Error| match (e.raw_os_error(), sys::locked_limit()) {
            (Some(libc::ENOMEM), Some(limit)) => VfioError::LockedMemory { needed: len, limit },
            _ => kernel(self.function, what, &e),
        };
        match &self.kind {
            Kind::Type1 { container, free } => {
                let iova = {
                    let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
                    free.take(len, if huge { HUGEPAGE } else { PAGE })
                }
                .ok_or_else(|| VfioError::Dma { len, reason: "the IOMMU has no free addresses for it".to_owned() })?;
                let mut request = abi::vfio_iommu_type1_dma_map {
                    argsz: size_of::<abi::vfio_iommu_type1_dma_map>() as u32,
                    flags: abi::VFIO_DMA_MAP_FLAG_READ | abi::VFIO_DMA_MAP_FLAG_WRITE,
                    vaddr: start,
                    iova,
                    size: len,
                };
                // SAFETY: the pages stay mapped until `unmap` has taken them from the device again (see `DmaBuffer::drop`).
                match unsafe { sys::ioctl(container.as_fd(), &MAP_DMA, &mut request) } {
                    Ok(_) => Ok(vec![Segment { addr: DmaAddr(iova), len }]),
                    Err(e) => {
                        free.lock().unwrap_or_else(PoisonError::into_inner).give(iova, len);
                        Err(failed("VFIO_IOMMU_MAP_DMA", e))
                    }
                }
            }
            Kind::Iommufd { iommu, ioas } => {
                let mut request = IoasMap {
                    size: size_of::<IoasMap>() as u32,
                    flags: IOAS_READABLE | IOAS_WRITEABLE,
                    ioas: *ioas,
                    reserved: 0,
                    user: start,
                    len,
                    iova: 0,
                };
                // SAFETY: as above.
                unsafe { sys::ioctl(iommu.as_fd(), &IOAS_MAP, &mut request) }.map_err(|e| failed("IOMMU_IOAS_MAP", e))?;
                Ok(vec![Segment { addr: DmaAddr(request.iova), len }])
            }
            Kind::Unprotected { .. } => {
                pages.lock().map_err(|e| failed("mlock", e))?;
                physical(start, len, if huge { HUGEPAGE } else { PAGE })
            }
        }
    }

    /// Takes a segment from the device again.
    fn unmap(&self, segment: Segment) -> io::Result<()> {
        let (iova, len) = (segment.addr.0, segment.len);
        match &self.kind {
            Kind::Type1 { container, free } => {
                let mut request = abi::vfio_iommu_type1_dma_unmap {
                    argsz: size_of::<abi::vfio_iommu_type1_dma_unmap>() as u32,
                    flags: 0,
                    iova,
                    size: len,
                    ..Default::default()
                };
                // SAFETY: the kernel only stops using memory.
                unsafe { sys::ioctl(container.as_fd(), &UNMAP_DMA, &mut request) }?;
                if request.size != len {
                    return Err(io::Error::other(format!("{:#x} of {len:#x} bytes were unmapped", request.size)));
                }
                free.lock().unwrap_or_else(PoisonError::into_inner).give(iova, len);
                Ok(())
            }
            Kind::Iommufd { iommu, ioas } => {
                let mut request = IoasUnmap { size: size_of::<IoasUnmap>() as u32, ioas: *ioas, iova, len };
                // SAFETY: the kernel only stops using memory.
                unsafe { sys::ioctl(iommu.as_fd(), &IOAS_UNMAP, &mut request) }.map(|_| ())
            }
            Kind::Unprotected { .. } => Ok(()),
        }
    }
}

fn kernel(function: Bdf, what: &'static str, error: &io::Error) -> VfioError {
    VfioError::Kernel { function, what, reason: error.to_string() }
}

/// Physical addresses of pages that are present and locked, by /proc/self/pagemap.
fn physical(start: u64, len: u64, page: u64) -> Result<Vec<Segment>, VfioError> {
    let hidden = |_| VfioError::HiddenAddresses;
    let pagemap = File::open("/proc/self/pagemap").map_err(hidden)?;
    (0..len.div_ceil(page))
        .map(|i| {
            let mut entry = [0; 8];
            sys::pread(pagemap.as_fd(), &mut entry, (start + i * page) / PAGE * 8).map_err(hidden)?;
            let entry = u64::from_ne_bytes(entry);
            let frame = entry & ((1 << 55) - 1);
            if entry >> 63 == 0 || frame == 0 {
                return Err(VfioError::HiddenAddresses);
            }
            Ok(Segment { addr: DmaAddr(frame * PAGE), len: page.min(len - i * page) })
        })
        .collect()
}

/// Address ranges that the IOMMU allows, from the capability chain of `VFIO_IOMMU_GET_INFO`; 39 bits where the kernel does not say.
fn allowed(info: &[u8]) -> Vec<(u64, u64)> {
    const CAPABILITY_IOVA_RANGE: u16 = 1;
    const WHOLE: (u64, u64) = (0, (1 << 39) - 1);
    let word = |at: usize| info.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes);
    let long = |at: usize| info.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes);
    if word(4) & abi::VFIO_IOMMU_INFO_CAPS == 0 {
        return vec![WHOLE];
    }
    let mut at = word(16) as usize;
    // A chain only leads forwards.
    while at >= 20 && at + 8 <= info.len() {
        if word(at) as u16 == CAPABILITY_IOVA_RANGE {
            let count = (word(at + 8) as usize).min(info.len() / 16);
            return (0..count).map(|i| (long(at + 16 + 16 * i), long(at + 24 + 16 * i))).collect();
        }
        let next = word(at + 4) as usize;
        if next <= at {
            break;
        }
        at = next;
    }
    vec![WHOLE]
}

/// Free address ranges: first to last, not overlapping.
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn new(allowed: &[(u64, u64)]) -> Self {
        Self(allowed.iter().map(|(first, last)| ((*first).max(LOWEST), *last)).filter(|(first, last)| first <= last).collect())
    }

    /// The lowest `len` free addresses, aligned.
    fn take(&mut self, len: u64, align: u64) -> Option<u64> {
        let (first, last, start) = self.0.iter().find_map(|(first, last)| {
            let start = first.checked_next_multiple_of(align)?;
            (start.checked_add(len - 1)? <= *last).then_some((*first, *last, start))
        })?;
        self.0.remove(&first);
        if first < start {
            self.0.insert(first, start - 1);
        }
        if start + (len - 1) < last {
            self.0.insert(start + len, last);
        }
        Some(start)
    }

    /// Gives a range back and joins it with its neighbours.
    fn give(&mut self, start: u64, len: u64) {
        let (mut first, mut last) = (start, start + (len - 1));
        if let Some((&before, &end)) = self.0.range(..start).next_back()
            && end + 1 == start
        {
            self.0.remove(&before);
            first = before;
        }
        if let Some(next) = last.checked_add(1)
            && let Some(end) = self.0.remove(&next)
        {
            last = end;
        }
        self.0.insert(first, last);
    }
}

/// Memory that the device may read and write, zeroed at first. Its contents are only copied in and out: the device may change them at any time.
pub struct DmaBuffer {
    /// Given up only where the device could not be kept from it.
    pages: Option<Pages>,
    segments: Vec<Segment>,
    huge: bool,
    space: Arc<Space>,
}

impl DmaBuffer {
    /// A buffer of at least `len` bytes, of hugepages where there are some free.
    pub(crate) fn new(space: &Arc<Space>, len: usize) -> Result<Self, VfioError> {
        let whole = |page: u64| (len.max(1) as u64).checked_next_multiple_of(page).and_then(|l| usize::try_from(l).ok());
        let too_long = || VfioError::Dma { len: len as u64, reason: "longer than the address space".to_owned() };
        let large = Pages::anonymous(whole(HUGEPAGE).ok_or_else(too_long)?, true);
        let (pages, huge) = match large {
            Ok(pages) => (pages, true),
            Err(_) if matches!(space.kind, Kind::Unprotected { .. }) => {
                return Err(VfioError::NoHugepage { command: "echo 64 > /proc/sys/vm/nr_hugepages".to_owned() });
            }
            Err(error) => {
                tracing::warn!(code = "SHEF-PCI-018", %error, len, "no hugepages for DMA memory: small pages are used, and mapping takes longer");
                let small = Pages::anonymous(whole(PAGE).ok_or_else(too_long)?, false);
                (small.map_err(|e| VfioError::Dma { len: len as u64, reason: e.to_string() })?, false)
            }
        };
        if let Some(node) = space.numa_node {
            pages.prefer_node(node);
        }
        let segments = space.map(&pages, huge)?;
        Ok(Self { pages: Some(pages), segments, huge, space: Arc::clone(space) })
    }

    fn pages(&self, offset: u64, len: usize) -> Result<&Pages, VfioError> {
        let size = self.len();
        match &self.pages {
            Some(pages) if offset.checked_add(len as u64).is_some_and(|end| end <= size) => Ok(pages),
            _ => Err(VfioError::Bounds { what: "a DMA buffer".to_owned(), offset, len: len as u64, size }),
        }
    }

    /// Bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|s| s.len).sum()
    }

    /// Whether it is made of hugepages.
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// Where the device finds it: one segment behind an IOMMU, one a page without.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`VfioError::Bounds`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), VfioError> {
        self.pages(offset, bytes.len())?.fill(offset as usize, bytes);
        Ok(())
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`VfioError::Bounds`].
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), VfioError> {
        self.pages(offset, bytes.len())?.take(offset as usize, bytes);
        Ok(())
    }

    /// Loads a word; accesses after it are not done before it.
    ///
    /// # Errors
    /// [`VfioError::Bounds`], also where `offset` is no multiple of four.
    pub fn load(&self, offset: u64) -> Result<u32, VfioError> {
        // Bytes past the end are refused in any case.
        let word = self.pages(offset, if offset.is_multiple_of(4) { 4 } else { usize::MAX })?.load32(offset as usize);
        shef_device::memory::observe();
        Ok(word)
    }
}

impl Drop for DmaBuffer {
    fn drop(&mut self) {
        for segment in std::mem::take(&mut self.segments) {
            if let Err(error) = self.space.unmap(segment) {
                tracing::error!(function = %self.space.function, %error, "DMA memory could not be taken from the device and is never used again");
                // The device may still write there: the pages must not come back to life as something else.
                std::mem::forget(self.pages.take());
            }
        }
    }
}

/// Allocates an address space in iommufd.
pub(crate) fn iommufd_space(iommu: &OwnedFd) -> io::Result<u32> {
    /// `struct iommu_ioas_alloc` of linux/iommufd.h.
    #[repr(C)]
    struct IoasAlloc {
        size: u32,
        flags: u32,
        ioas: u32,
    }
    const IOAS_ALLOC: Ioctl<IoasAlloc> = Ioctl::new(0x81);
    let mut request = IoasAlloc { size: size_of::<IoasAlloc>() as u32, flags: 0, ioas: 0 };
    // SAFETY: the kernel writes a number into the structure.
    unsafe { sys::ioctl(iommu.as_fd(), &IOAS_ALLOC, &mut request) }?;
    Ok(request.ioas)
}

/// Ties a function's own node to an address space of iommufd.
pub(crate) fn iommufd_attach(device: &OwnedFd, iommu: &OwnedFd, ioas: u32) -> io::Result<()> {
    const BIND: Ioctl<abi::vfio_device_bind_iommufd> = Ioctl::new(118);
    const ATTACH: Ioctl<abi::vfio_device_attach_iommufd_pt> = Ioctl::new(119);
    // 16 bytes are what every kernel knows of this structure.
    let mut bind = abi::vfio_device_bind_iommufd { argsz: 16, iommufd: iommu.as_raw_fd(), ..Default::default() };
    // SAFETY: the kernel writes a number into the structure.
    unsafe { sys::ioctl(device.as_fd(), &BIND, &mut bind) }?;
    let mut attach = abi::vfio_device_attach_iommufd_pt { argsz: 12, pt_id: ioas, ..Default::default() };
    // SAFETY: the kernel writes a number into the structure.
    unsafe { sys::ioctl(device.as_fd(), &ATTACH, &mut attach) }.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_lowest_first_aligned_and_joined_again() {
        let mut free = Ranges::new(&[(0, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)]);
        let (a, b, c) = (free.take(PAGE, PAGE), free.take(HUGEPAGE, HUGEPAGE), free.take(PAGE, PAGE));
        assert_eq!((a, b, c), (Some(LOWEST), Some(HUGEPAGE), Some(LOWEST + PAGE)));
        // What does not fit below the hole for interrupts lies above it.
        assert_eq!(free.take(1 << 32, PAGE), Some(0xfef0_0000));
        assert_eq!(free.take(1 << 40, PAGE), None);
        for (start, len) in [(LOWEST, PAGE), (HUGEPAGE, HUGEPAGE), (LOWEST + PAGE, PAGE), (0xfef0_0000, 1 << 32)] {
            free.give(start, len);
        }
        assert_eq!(free.0.into_iter().collect::<Vec<_>>(), [(LOWEST, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)]);
    }

    #[test]
    fn allowed_ranges_are_read_from_the_capability_chain() {
        let mut info = vec![0u8; 256];
        let mut put = |at: usize, bytes: &[u8]| info[at..at + bytes.len()].copy_from_slice(bytes);
        put(4, &(abi::VFIO_IOMMU_INFO_CAPS).to_ne_bytes());
        put(16, &32u32.to_ne_bytes());
        // A capability of another kind, then the ranges.
        put(32, &2u16.to_ne_bytes());
        put(36, &64u32.to_ne_bytes());
        put(64, &1u16.to_ne_bytes());
        put(72, &2u32.to_ne_bytes());
        for (i, value) in [0u64, 0xfedf_ffff, 0xfef0_0000, 0xff_ffff_ffff].into_iter().enumerate() {
            put(80 + 8 * i, &value.to_ne_bytes());
        }
        assert_eq!(allowed(&info), [(0, 0xfedf_ffff), (0xfef0_0000, 0xff_ffff_ffff)]);
        // A chain that leads backwards ends.
        info[36..40].copy_from_slice(&32u32.to_ne_bytes());
        assert_eq!(allowed(&info), [(0, (1 << 39) - 1)]);
        assert_eq!(allowed(&[0; 24]), [(0, (1 << 39) - 1)]);
    }

    #[test]
    fn memory_of_this_process_has_physical_addresses_for_root_only() {
        let pages = Pages::anonymous(4 * PAGE as usize, false).unwrap();
        pages.copy_in(0, &[1; 4 * PAGE as usize]);
        match physical(pages.start().as_ptr() as u64, pages.len() as u64, PAGE) {
            Ok(segments) => {
                assert_eq!(segments.iter().map(|s| s.len).sum::<u64>(), 4 * PAGE);
                assert!(segments.iter().all(|s| s.addr.0 != 0 && s.addr.0 % PAGE == 0));
            }
            Err(error) => assert_eq!(error.code(), "SHEF-PCI-017"),
        }
    }

    #[test]
    fn copies_of_any_alignment_arrive_whole() {
        let pages = Pages::anonymous(4096, false).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        for offset in 0..9 {
            for len in [0, 1, 7, 8, 9, 63, 100] {
                pages.copy_in(0, &[0xee; 256]);
                pages.copy_in(offset, &bytes[..len]);
                let mut back = vec![0; 256];
                pages.copy_out(0, &mut back);
                assert_eq!(&back[offset..offset + len], &bytes[..len]);
                assert!(back[..offset].iter().chain(&back[offset + len..]).all(|b| *b == 0xee), "{offset} {len}");
            }
        }
    }
}
