//! Type 1, through the crate vfio-ioctls: container, group, information about the function,
//! interrupts, DMA.
//!
//! Only the address ranges that the IOMMU allows are read here: the crate has no request for them.
#![expect(unsafe_code, reason = "memory is handed to a device, and descriptors to the crate")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shef_device::{Bdf, Event};
use vfio_bindings::bindings::vfio as abi;
use vfio_ioctls::{VfioContainer, VfioDevice, VfioError as Refusal};
use vmm_sys_util::eventfd::EventFd;

use crate::VfioError;
use crate::handle::{Handle, Region, unopened};
use crate::space::{AddressSpace, DmaAddr, Segment, unmapped};
use crate::sys::{self, Ioctl, Pages};
use crate::system::{Function, System};

const IOMMU_GET_INFO: Ioctl<[u8; INFO_BYTES]> = Ioctl::new(112);

/// Room for the result of `VFIO_IOMMU_GET_INFO` with its capabilities.
const INFO_BYTES: usize = 4096;
/// Lowest buffer address: a device without a programmed address must not hit a buffer.
const LOWEST: u64 = 1 << 20;

/// An open function and its address space. They end together: a container keeps its IOMMU only
/// while it holds the function's group.
pub(crate) struct Type1 {
    bdf: Bdf,
    /// Dropped before `file`. The crate closes its descriptor, then reads the function's folder in
    /// sysfs, and panics if the kernel has removed it; while `file` is open, the kernel waits.
    function: VfioDevice,
    container: Arc<VfioContainer>,
    free: Mutex<Ranges>,
    file: File,
}

impl Type1 {
    /// Opens a function of the machine through its group's node.
    pub(crate) fn open(
        system: &System,
        function: &Function,
        node: &str,
    ) -> Result<Self, VfioError> {
        let bdf = function.bdf;
        let refused = |e| refused(system, function, node, e);
        if !system.is_machine() {
            let e = io::Error::other("vfio-ioctls opens the machine's own nodes only");
            return Err(unopened(system, bdf, node, e));
        }
        let container = Arc::new(VfioContainer::new(None).map_err(refused)?);
        let device = VfioDevice::new(&system.path(System::folder(bdf)), container.clone(), false)
            .map_err(refused)?;
        // SAFETY: `device` keeps this descriptor open until it is dropped.
        let file = unsafe { BorrowedFd::borrow_raw(device.as_raw_fd()) }.try_clone_to_owned();
        let file = file.map_err(VfioError::refused(bdf, "copying a descriptor"))?.into();
        let mut opened = Self { bdf, function: device, container, free: Mutex::default(), file };
        // If the kernel does not describe a region, the crate skips it and the next region takes
        // its number.
        if !matches!(opened.function.get_region_size(abi::VFIO_PCI_CONFIG_REGION_INDEX), 256 | 4096)
        {
            let e = io::Error::other("the kernel does not describe all of the function's regions");
            return Err(VfioError::refused(bdf, "VFIO_DEVICE_GET_REGION_INFO")(e));
        }
        let mut info = Box::new([0; INFO_BYTES]);
        info[..4].copy_from_slice(&(INFO_BYTES as u32).to_ne_bytes());
        // SAFETY: the first word states the room, and the kernel writes no more than that.
        unsafe { sys::ioctl(&*opened.container, &IOMMU_GET_INFO, &mut *info) }
            .map_err(VfioError::refused(bdf, "VFIO_IOMMU_GET_INFO"))?;
        opened.free = Mutex::new(Ranges::new(&allowed(&info[..])));
        Ok(opened)
    }

    fn free(&self) -> MutexGuard<'_, Ranges> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handle for Type1 {
    fn file(&self) -> &File {
        &self.file
    }

    fn region(&self, index: u32) -> Result<Region, VfioError> {
        let function = &self.function;
        Ok(Region {
            size: function.get_region_size(index),
            offset: function.get_region_offset(index),
            flags: function.get_region_flags(index),
        })
    }

    fn vectors(&self, index: u32) -> Result<u32, VfioError> {
        let unknown = || {
            VfioError::refused(self.bdf, "VFIO_DEVICE_GET_IRQ_INFO")(io::Error::other(
                "the kernel does not describe these interrupts",
            ))
        };
        self.function.get_irq_info(index).map(|irq| irq.count).ok_or_else(unknown)
    }

    fn signal(&self, index: u32, events: &[Event]) -> Result<(), VfioError> {
        let events: io::Result<Vec<EventFd>> = events.iter().map(event_fd).collect();
        let events = events.map_err(VfioError::refused(self.bdf, "copying a descriptor"))?;
        self.function.enable_irq(index, events.iter().collect()).map_err(|e| {
            let (what, e) = word(e);
            VfioError::refused(self.bdf, what)(e)
        })
    }
}

/// An event in the crate's type. The kernel keeps the event itself, not the descriptor.
fn event_fd(event: &Event) -> io::Result<EventFd> {
    let copy = event.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is new, belongs to an event, and has no other owner.
    Ok(unsafe { EventFd::from_raw_fd(copy.into_raw_fd()) })
}

impl AddressSpace for Type1 {
    fn map(&self, pages: &Pages, page: u64) -> Result<Vec<Segment>, VfioError> {
        let len = pages.len() as u64;
        let none =
            || VfioError::Dma { len, reason: "the IOMMU has no free addresses for it".to_owned() };
        let iova = self.free().take(len, page).ok_or_else(none)?;
        // SAFETY: the crate's contract. `Pages` gives out no reference to its memory and accesses
        // it atomically or volatile through raw pointers. It is unmapped from the process only
        // after `unmap` has succeeded with the same address and length, otherwise never
        // (`DmaBuffer::drop`).
        match unsafe { self.container.vfio_dma_map(iova, pages.len(), pages.start().as_ptr()) } {
            Ok(()) => Ok(vec![Segment { addr: DmaAddr(iova), len }]),
            Err(e) => {
                let (what, e) = word(e);
                self.free().give(iova, len);
                Err(unmapped(self.bdf, what, len)(e))
            }
        }
    }

    fn unmap(&self, segment: Segment) -> io::Result<()> {
        let (iova, len) = (segment.addr.0, segment.len);
        self.container.vfio_dma_unmap(iova, len as usize).map_err(|e| word(e).1)?;
        self.free().give(iova, len);
        Ok(())
    }
}

/// The error for a refusal of the crate while a function was being opened.
fn refused(system: &System, function: &Function, node: &str, refusal: Refusal) -> VfioError {
    match refusal {
        Refusal::OpenContainer(e) => unopened(system, function.bdf, "/dev/vfio/vfio", e),
        Refusal::OpenGroup(e, _) => unopened(system, function.bdf, node, e),
        Refusal::VfioApiVersion | Refusal::VfioExtension => VfioError::NoVfio {
            path: "VFIO's interface 0 with an IOMMU of type 1 (v2)".to_owned(),
            command: "modprobe vfio_iommu_type1".to_owned(),
        },
        Refusal::GroupViable => VfioError::NotViable {
            group: function.group.unwrap_or(0),
            members: system
                .group_members(function)
                .iter()
                .map(|m| m.bdf.to_string())
                .collect::<Vec<_>>()
                .join(", "),
            command: "shef device doctor".to_owned(),
        },
        other => {
            let (what, e) = word(other);
            VfioError::refused(function.bdf, what)(e)
        }
    }
}

/// The request that the kernel refused, and its error. For three requests the crate drops the
/// error. errno still holds it, because between the request and this function memory is only freed
/// and descriptors are only closed, and neither changes errno.
fn word(refusal: Refusal) -> (&'static str, io::Error) {
    match refusal {
        Refusal::GetGroupStatus => ("VFIO_GROUP_GET_STATUS", io::Error::last_os_error()),
        Refusal::GroupSetContainer => ("VFIO_GROUP_SET_CONTAINER", io::Error::last_os_error()),
        Refusal::VfioDeviceEnableIrq => ("VFIO_DEVICE_SET_IRQS", io::Error::last_os_error()),
        Refusal::ContainerSetIOMMU(e) => ("VFIO_SET_IOMMU", e.into()),
        Refusal::GroupGetDeviceFD(e) => ("VFIO_GROUP_GET_DEVICE_FD", e.into()),
        Refusal::VfioDeviceGetInfo(e) => ("VFIO_DEVICE_GET_INFO", e.into()),
        Refusal::IommuDmaMap(e) => ("VFIO_IOMMU_MAP_DMA", e.into()),
        Refusal::IommuDmaUnmap(e) => ("VFIO_IOMMU_UNMAP_DMA", e.into()),
        other => ("VFIO", io::Error::other(other)),
    }
}

/// Address ranges that the IOMMU allows, from the capability chain of `VFIO_IOMMU_GET_INFO`; 39
/// bits if the kernel does not state them.
fn allowed(info: &[u8]) -> Vec<(u64, u64)> {
    const CAPABILITY_IOVA_RANGE: u16 = 1;
    const WHOLE: (u64, u64) = (0, (1 << 39) - 1);
    let word = |at: usize| {
        info.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let long = |at: usize| {
        info.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
    };
    if word(4) & abi::VFIO_IOMMU_INFO_CAPS == 0 {
        return vec![WHOLE];
    }
    let mut at = word(16) as usize;
    // A chain may only lead forwards.
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

/// Free address ranges, first to last, without overlap.
#[derive(Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn new(allowed: &[(u64, u64)]) -> Self {
        Self(
            allowed
                .iter()
                .map(|(first, last)| ((*first).max(LOWEST), *last))
                .filter(|(first, last)| first <= last)
                .collect(),
        )
    }

    /// Takes the lowest `len` free addresses, aligned.
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

    /// Returns a range and merges it with its neighbours.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::PAGE;
    use crate::system::HUGEPAGE;

    #[test]
    fn addresses_are_lowest_first_aligned_and_joined_again() {
        let mut free = Ranges::new(&[(0, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)]);
        let (a, b, c) =
            (free.take(PAGE, PAGE), free.take(HUGEPAGE, HUGEPAGE), free.take(PAGE, PAGE));
        assert_eq!((a, b, c), (Some(LOWEST), Some(HUGEPAGE), Some(LOWEST + PAGE)));
        // A range that does not fit below the hole for interrupts goes above it.
        assert_eq!(free.take(1 << 32, PAGE), Some(0xfef0_0000));
        assert_eq!(free.take(1 << 40, PAGE), None);
        for (start, len) in
            [(LOWEST, PAGE), (HUGEPAGE, HUGEPAGE), (LOWEST + PAGE, PAGE), (0xfef0_0000, 1 << 32)]
        {
            free.give(start, len);
        }
        assert_eq!(
            free.0.into_iter().collect::<Vec<_>>(),
            [(LOWEST, 0xfedf_ffff), (0xfef0_0000, (1 << 39) - 1)]
        );
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
        // A chain that leads backwards ends there.
        info[36..40].copy_from_slice(&32u32.to_ne_bytes());
        assert_eq!(allowed(&info), [(0, (1 << 39) - 1)]);
        assert_eq!(allowed(&[0; 24]), [(0, (1 << 39) - 1)]);
    }

    fn function() -> Function {
        Function {
            bdf: Bdf { domain: 0, bus: 0x65, device: 0, function: 0 },
            vendor: 0x1d0f,
            device: 0xf010,
            driver: Some("vfio-pci".to_owned()),
            group: Some(12),
            unprotected: false,
            numa_node: None,
            bars: [0; 6],
            node: None,
        }
    }

    #[test]
    fn refusals_while_opening_have_the_code_of_their_cause() {
        let system = System::at("/nowhere");
        let code = |refusal| refused(&system, &function(), "/dev/vfio/12", refusal).code();
        let group =
            |number| Refusal::OpenGroup(io::Error::from_raw_os_error(number), "12".to_owned());
        assert_eq!(code(group(libc::EBUSY)), "SHEF-PCI-007");
        assert_eq!(code(group(libc::EACCES)), "SHEF-PCI-006");
        assert_eq!(code(group(libc::EIO)), "SHEF-PCI-021");
        assert_eq!(
            code(Refusal::OpenContainer(io::Error::from_raw_os_error(libc::EPERM))),
            "SHEF-PCI-006"
        );
        assert_eq!(code(Refusal::GroupViable), "SHEF-PCI-005");
        assert_eq!(
            (code(Refusal::VfioApiVersion), code(Refusal::VfioExtension)),
            ("SHEF-PCI-008", "SHEF-PCI-008")
        );
        assert_eq!(code(Refusal::VfioDeviceGetInfoPCI), "SHEF-PCI-021");
    }

    #[test]
    fn refusals_keep_the_kernels_number() {
        use vmm_sys_util::errno::Error as Errno;
        let number = |refusal| word(refusal).1.raw_os_error();
        for refusal in [
            Refusal::ContainerSetIOMMU,
            Refusal::GroupGetDeviceFD,
            Refusal::VfioDeviceGetInfo,
            Refusal::IommuDmaMap,
            Refusal::IommuDmaUnmap,
        ] {
            assert_eq!(number(refusal(Errno::new(libc::EBUSY))), Some(libc::EBUSY));
        }
        // The crate drops these: errno holds the error of the last failed call.
        for refusal in
            [Refusal::GetGroupStatus, Refusal::GroupSetContainer, Refusal::VfioDeviceEnableIrq]
        {
            File::open("/nowhere").unwrap_err();
            assert_eq!(number(refusal), Some(libc::ENOENT));
        }
        // The limit of locked memory has a separate code.
        let (what, e) = word(Refusal::IommuDmaMap(Errno::new(libc::ENOMEM)));
        let expected = if sys::locked_limit().is_some() { "SHEF-PCI-010" } else { "SHEF-PCI-021" };
        assert_eq!(unmapped(function().bdf, what, 4096)(e).code(), expected);
    }

    #[test]
    fn an_event_that_the_crate_is_given_is_the_same_event() {
        let event = Event::new().unwrap();
        event_fd(&event).unwrap().write(2).unwrap();
        assert_eq!(event.take().unwrap(), 2);
    }
}
