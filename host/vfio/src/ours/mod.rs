//! The interfaces that the crate vfio-ioctls cannot serve: iommufd and no-IOMMU. Both provide a
//! descriptor of the function, on which these ioctls are ours.
#![expect(unsafe_code, reason = "VFIO's ioctls")]

pub(crate) mod iommufd;
pub(crate) mod noiommu;

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use shef_device::{Bdf, Event};
use vfio_bindings::bindings::vfio as abi;

use crate::VfioError;
use crate::handle::{Handle, MAX_VECTORS, Region};
use crate::sys::{self, Ioctl};

const DEVICE_GET_REGION_INFO: Ioctl<abi::vfio_region_info> = Ioctl::new(108);
const DEVICE_GET_IRQ_INFO: Ioctl<abi::vfio_irq_info> = Ioctl::new(109);
const DEVICE_SET_IRQS: Ioctl<[u32; IRQ_WORDS]> = Ioctl::new(110);

/// Words of a request that sets vectors.
const IRQ_WORDS: usize = 5 + MAX_VECTORS;

/// A function's descriptor.
pub(crate) struct Descriptor {
    bdf: Bdf,
    file: File,
}

impl Handle for Descriptor {
    fn file(&self) -> &File {
        &self.file
    }

    fn region(&self, index: u32) -> Result<Region, VfioError> {
        let mut info = abi::vfio_region_info {
            argsz: size_of::<abi::vfio_region_info>() as u32,
            index,
            ..Default::default()
        };
        // SAFETY: the kernel fills the structure.
        unsafe { sys::ioctl(&self.file, &DEVICE_GET_REGION_INFO, &mut info) }
            .map_err(VfioError::refused(self.bdf, "VFIO_DEVICE_GET_REGION_INFO"))?;
        Ok(Region { size: info.size, offset: info.offset, flags: info.flags })
    }

    fn vectors(&self, index: u32) -> Result<u32, VfioError> {
        let mut info = abi::vfio_irq_info {
            argsz: size_of::<abi::vfio_irq_info>() as u32,
            index,
            ..Default::default()
        };
        // SAFETY: the kernel writes flags and a count into the structure.
        unsafe { sys::ioctl(&self.file, &DEVICE_GET_IRQ_INFO, &mut info) }
            .map_err(VfioError::refused(self.bdf, "VFIO_DEVICE_GET_IRQ_INFO"))?;
        Ok(info.count)
    }

    fn signal(&self, index: u32, events: &[Event]) -> Result<(), VfioError> {
        let mut request = [0; IRQ_WORDS];
        let count = events.len().min(MAX_VECTORS);
        request[0] = (4 * (5 + count)) as u32;
        request[1] = abi::VFIO_IRQ_SET_DATA_EVENTFD | abi::VFIO_IRQ_SET_ACTION_TRIGGER;
        request[2] = index;
        request[4] = count as u32;
        for (word, event) in request[5..].iter_mut().zip(events) {
            *word = event.as_fd().as_raw_fd() as u32;
        }
        // SAFETY: `struct vfio_irq_set` consists of five words and the descriptor numbers; its
        // first word is its length.
        unsafe { sys::ioctl(&self.file, &DEVICE_SET_IRQS, &mut request) }
            .map_err(VfioError::refused(self.bdf, "VFIO_DEVICE_SET_IRQS"))?;
        Ok(())
    }
}
