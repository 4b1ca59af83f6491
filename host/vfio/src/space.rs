//! The address space of a function's DMA, and memory mapped into it.

use std::io;
use std::sync::Arc;

use shef_device::Bdf;

use crate::VfioError;
use crate::sys::{self, Pages};
use crate::system::{Function, HUGEPAGE};

/// Size of a small page.
pub(crate) const PAGE: u64 = 4096;

/// A device address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmaAddr(pub u64);

/// A part of a buffer that is contiguous for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// First device address.
    pub addr: DmaAddr,
    /// Size in bytes.
    pub len: u64,
}

/// The address space of a function's DMA. Implemented by `type1` and by the interfaces in `ours`.
pub(crate) trait AddressSpace: Send + Sync {
    /// Whether memory may consist of small pages.
    fn small_pages(&self) -> bool {
        true
    }

    /// Maps memory of `page`-byte pages for the device.
    fn map(&self, pages: &Pages, page: u64) -> Result<Vec<Segment>, VfioError>;

    /// Unmaps a segment.
    fn unmap(&self, segment: Segment) -> io::Result<()>;
}

/// The kernel's refusal to map `len` bytes.
pub(crate) fn unmapped(
    function: Bdf,
    what: &'static str,
    len: u64,
) -> impl Fn(io::Error) -> VfioError {
    move |e| match (e.raw_os_error(), sys::locked_limit()) {
        (Some(libc::ENOMEM), Some(limit)) => VfioError::LockedMemory { needed: len, limit },
        _ => VfioError::refused(function, what)(e),
    }
}

/// Memory that the device may read and write, initially zero. Its contents are only copied in and
/// out, because the device may change them at any time.
pub struct DmaBuffer {
    /// Leaked only if the kernel could not unmap it from the device.
    pages: Option<Pages>,
    segments: Vec<Segment>,
    huge: bool,
    function: Bdf,
    space: Arc<dyn AddressSpace>,
}

impl DmaBuffer {
    /// Allocates at least `len` bytes for a function, in hugepages if some are free.
    pub(crate) fn new(
        function: &Function,
        space: &Arc<dyn AddressSpace>,
        len: usize,
    ) -> Result<Self, VfioError> {
        let whole = |page: u64| {
            (len.max(1) as u64).checked_next_multiple_of(page).and_then(|l| usize::try_from(l).ok())
        };
        let too_long = || VfioError::Dma {
            len: len as u64,
            reason: "longer than the address space".to_owned(),
        };
        let large = Pages::anonymous(whole(HUGEPAGE).ok_or_else(too_long)?, true);
        let (pages, huge) = match large {
            Ok(pages) => (pages, true),
            Err(_) if !space.small_pages() => {
                return Err(VfioError::NoHugepage {
                    command: "echo 64 > /proc/sys/vm/nr_hugepages".to_owned(),
                });
            }
            Err(error) => {
                tracing::warn!(code = "SHEF-PCI-018", %error, len, "no hugepages for DMA memory: small pages are used, and mapping takes longer");
                let small = Pages::anonymous(whole(PAGE).ok_or_else(too_long)?, false);
                (
                    small.map_err(|e| VfioError::Dma { len: len as u64, reason: e.to_string() })?,
                    false,
                )
            }
        };
        if let Some(node) = function.numa_node {
            pages.prefer_node(node);
        }
        let segments = space.map(&pages, if huge { HUGEPAGE } else { PAGE })?;
        Ok(Self {
            pages: Some(pages),
            segments,
            huge,
            function: function.bdf,
            space: Arc::clone(space),
        })
    }

    fn pages(&self, offset: u64, len: usize) -> Result<&Pages, VfioError> {
        let size = self.len();
        match &self.pages {
            Some(pages) if offset.checked_add(len as u64).is_some_and(|end| end <= size) => {
                Ok(pages)
            }
            _ => Err(VfioError::Bounds {
                what: "a DMA buffer".to_owned(),
                offset,
                len: len as u64,
                size,
            }),
        }
    }

    /// Size in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a buffer is never empty")]
    pub fn len(&self) -> u64 {
        self.segments.iter().map(|s| s.len).sum()
    }

    /// Whether it consists of hugepages.
    pub fn is_huge(&self) -> bool {
        self.huge
    }

    /// Its device addresses: one segment behind an IOMMU, one per page without.
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

    /// Loads a word with acquire ordering: later accesses are not made before it.
    ///
    /// # Errors
    /// [`VfioError::Bounds`], also if `offset` is not a multiple of four.
    pub fn load(&self, offset: u64) -> Result<u32, VfioError> {
        // This length is out of bounds in any buffer.
        let word = self
            .pages(offset, if offset.is_multiple_of(4) { 4 } else { usize::MAX })?
            .load32(offset as usize);
        shef_device::memory::observe();
        Ok(word)
    }
}

impl Drop for DmaBuffer {
    #[expect(
        clippy::mem_forget,
        reason = "the device may still write there: the pages must not come back to life as something else"
    )]
    fn drop(&mut self) {
        for segment in std::mem::take(&mut self.segments) {
            if let Err(error) = self.space.unmap(segment) {
                tracing::error!(function = %self.function, %error, "DMA memory could not be taken from the device and is never used again");
                std::mem::forget(self.pages.take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                assert!(
                    back[..offset].iter().chain(&back[offset + len..]).all(|b| *b == 0xee),
                    "{offset} {len}"
                );
            }
        }
    }
}
