//! No-IOMMU: a container without confinement, and physical addresses.
#![expect(unsafe_code, reason = "VFIO's ioctls")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use shef_device::Bdf;
use vfio_bindings::bindings::vfio as abi;

use super::Descriptor;
use crate::VfioError;
use crate::handle::node;
use crate::space::{AddressSpace, DmaAddr, PAGE, Segment, unmapped};
use crate::sys::{self, Ioctl, Pages};
use crate::system::System;

const SET_IOMMU: Ioctl<libc::c_ulong> = Ioctl::new(102);
const GROUP_SET_CONTAINER: Ioctl<i32> = Ioctl::new(104);
const GROUP_GET_DEVICE_FD: Ioctl<*const libc::c_char> = Ioctl::new(106);

/// Address space of all of the machine's memory.
pub(crate) struct Memory {
    bdf: Bdf,
    _group: File,
    _container: File,
}

/// Opens a function through the group's node.
pub(crate) fn open(
    system: &System,
    bdf: Bdf,
    path: &str,
) -> Result<(Descriptor, Memory), VfioError> {
    let (container, group) = (node(system, bdf, "/dev/vfio/vfio")?, node(system, bdf, path)?);
    let mut number = container.as_raw_fd();
    // SAFETY: the kernel reads the number of an open descriptor.
    unsafe { sys::ioctl(&group, &GROUP_SET_CONTAINER, &mut number) }
        .map_err(VfioError::refused(bdf, "VFIO_GROUP_SET_CONTAINER"))?;
    sys::ioctl_value(&container, &SET_IOMMU, abi::VFIO_NOIOMMU_IOMMU.into())
        .map_err(VfioError::refused(bdf, "VFIO_SET_IOMMU"))?;
    let name = CString::new(bdf.to_string()).unwrap_or_default();
    // SAFETY: the request returns a descriptor of the named function.
    let file = unsafe { sys::ioctl_fd(&group, &GROUP_GET_DEVICE_FD, &name) }
        .map_err(VfioError::refused(bdf, "VFIO_GROUP_GET_DEVICE_FD"))?;
    tracing::warn!(
        code = "SHEF-PCI-011",
        function = %bdf,
        "opened WITHOUT AN IOMMU: the device can read and write all of this machine's memory"
    );
    Ok((Descriptor { bdf, file }, Memory { bdf, _group: group, _container: container }))
}

impl AddressSpace for Memory {
    fn small_pages(&self) -> bool {
        false
    }

    fn map(&self, pages: &Pages, page: u64) -> Result<Vec<Segment>, VfioError> {
        let len = pages.len() as u64;
        pages.lock().map_err(unmapped(self.bdf, "mlock", len))?;
        physical(pages.start().as_ptr() as u64, len, page)
    }

    fn unmap(&self, _segment: Segment) -> io::Result<()> {
        Ok(())
    }
}

/// Physical addresses of present, locked pages, from /proc/self/pagemap.
fn physical(start: u64, len: u64, page: u64) -> Result<Vec<Segment>, VfioError> {
    let hidden = |_| VfioError::HiddenAddresses;
    let pagemap = File::open("/proc/self/pagemap").map_err(hidden)?;
    (0..len.div_ceil(page))
        .map(|i| {
            let mut entry = [0; 8];
            pagemap.read_exact_at(&mut entry, (start + i * page) / PAGE * 8).map_err(hidden)?;
            let entry = u64::from_ne_bytes(entry);
            let frame = entry & ((1 << 55) - 1);
            if entry >> 63 == 0 || frame == 0 {
                return Err(VfioError::HiddenAddresses);
            }
            Ok(Segment { addr: DmaAddr(frame * PAGE), len: page.min(len - i * page) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
