//! iommufd, and the function's own node.
#![expect(unsafe_code, reason = "ioctls that hand memory to a device")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use shef_device::Bdf;
use vfio_bindings::bindings::vfio as abi;

use super::Descriptor;
use crate::VfioError;
use crate::handle::{lock, node, unopened};
use crate::space::{AddressSpace, DmaAddr, Segment, unmapped};
use crate::sys::{self, Ioctl, Pages};
use crate::system::System;

const BIND: Ioctl<abi::vfio_device_bind_iommufd> = Ioctl::new(118);
const ATTACH: Ioctl<abi::vfio_device_attach_iommufd_pt> = Ioctl::new(119);
const IOAS_ALLOC: Ioctl<IoasAlloc> = Ioctl::new(0x81);
const IOAS_MAP: Ioctl<IoasMap> = Ioctl::new(0x85);
const IOAS_UNMAP: Ioctl<IoasUnmap> = Ioctl::new(0x86);

/// `struct iommu_ioas_alloc` of linux/iommufd.h.
#[repr(C)]
struct IoasAlloc {
    size: u32,
    flags: u32,
    ioas: u32,
}

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

/// Address space whose addresses iommufd chooses.
pub(crate) struct Ioas {
    bdf: Bdf,
    iommu: File,
    number: u32,
}

/// Opens a function through its own node.
pub(crate) fn open(system: &System, bdf: Bdf, path: &str) -> Result<(Descriptor, Ioas), VfioError> {
    let (iommu, file) = (node(system, bdf, "/dev/iommu")?, node(system, bdf, path)?);
    lock(system, bdf, &file)?;
    let mut ioas = IoasAlloc { size: size_of::<IoasAlloc>() as u32, flags: 0, ioas: 0 };
    // SAFETY: the kernel writes a number into the structure.
    unsafe { sys::ioctl(&iommu, &IOAS_ALLOC, &mut ioas) }
        .map_err(VfioError::refused(bdf, "IOMMU_IOAS_ALLOC"))?;
    // Every kernel knows the first 16 bytes of this structure.
    let mut bind = abi::vfio_device_bind_iommufd {
        argsz: 16,
        iommufd: iommu.as_raw_fd(),
        ..Default::default()
    };
    // SAFETY: the kernel writes a number into the structure.
    unsafe { sys::ioctl(&file, &BIND, &mut bind) }.map_err(|e| match e.raw_os_error() {
        // It is in use through its group's node.
        Some(libc::EBUSY) => unopened(system, bdf, path, e),
        _ => VfioError::refused(bdf, "VFIO_DEVICE_BIND_IOMMUFD")(e),
    })?;
    let mut attach =
        abi::vfio_device_attach_iommufd_pt { argsz: 12, pt_id: ioas.ioas, ..Default::default() };
    // SAFETY: the kernel writes a number into the structure.
    unsafe { sys::ioctl(&file, &ATTACH, &mut attach) }
        .map_err(VfioError::refused(bdf, "VFIO_DEVICE_ATTACH_IOMMUFD_PT"))?;
    Ok((Descriptor { bdf, file }, Ioas { bdf, iommu, number: ioas.ioas }))
}

impl AddressSpace for Ioas {
    fn map(&self, pages: &Pages, _page: u64) -> Result<Vec<Segment>, VfioError> {
        let len = pages.len() as u64;
        let mut request = IoasMap {
            size: size_of::<IoasMap>() as u32,
            flags: IOAS_READABLE | IOAS_WRITEABLE,
            ioas: self.number,
            reserved: 0,
            user: pages.start().as_ptr() as u64,
            len,
            iova: 0,
        };
        // SAFETY: the pages stay mapped until `unmap` has withdrawn them from the device (see
        // `DmaBuffer::drop`).
        unsafe { sys::ioctl(&self.iommu, &IOAS_MAP, &mut request) }.map_err(unmapped(
            self.bdf,
            "IOMMU_IOAS_MAP",
            len,
        ))?;
        Ok(vec![Segment { addr: DmaAddr(request.iova), len }])
    }

    fn unmap(&self, segment: Segment) -> io::Result<()> {
        let mut request = IoasUnmap {
            size: size_of::<IoasUnmap>() as u32,
            ioas: self.number,
            iova: segment.addr.0,
            len: segment.len,
        };
        // SAFETY: the kernel only stops using memory.
        unsafe { sys::ioctl(&self.iommu, &IOAS_UNMAP, &mut request) }.map(|_| ())
    }
}
