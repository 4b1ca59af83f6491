//! A PCI function that is open: configuration space, BARs, interrupts, reset, DMA.
#![expect(unsafe_code, reason = "VFIO's ioctls")]

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use shef_device::{Bdf, Event, Iommu, poll_readable};
use vfio_bindings::bindings::vfio as abi;

use crate::VfioError;
use crate::check::{self, Interface};
use crate::space::{self, DmaBuffer, Kind, Space};
use crate::sys::{self, Ioctl, Pages};
use crate::system::{Function, System};

const GET_API_VERSION: Ioctl<libc::c_ulong> = Ioctl::new(100);
const CHECK_EXTENSION: Ioctl<libc::c_ulong> = Ioctl::new(101);
const SET_IOMMU: Ioctl<libc::c_ulong> = Ioctl::new(102);
const GROUP_GET_STATUS: Ioctl<abi::vfio_group_status> = Ioctl::new(103);
const GROUP_SET_CONTAINER: Ioctl<i32> = Ioctl::new(104);
const GROUP_GET_DEVICE_FD: Ioctl<*const libc::c_char> = Ioctl::new(106);
const DEVICE_GET_REGION_INFO: Ioctl<abi::vfio_region_info> = Ioctl::new(108);
const DEVICE_GET_IRQ_INFO: Ioctl<abi::vfio_irq_info> = Ioctl::new(109);
const DEVICE_SET_IRQS: Ioctl<[u32; IRQ_WORDS]> = Ioctl::new(110);
const DEVICE_RESET: Ioctl<libc::c_ulong> = Ioctl::new(111);

/// Most vectors of one request.
const MAX_VECTORS: usize = 64;
/// Words of a request that sets vectors.
const IRQ_WORDS: usize = 5 + MAX_VECTORS;

/// Offsets and bits of configuration space (PCI Local Bus Specification 3.0, 6.1).
const COMMAND: u16 = 0x04;
const CLASS_REVISION: u16 = 0x08;
const COMMAND_MEMORY: u16 = 1 << 1;
const COMMAND_MASTER: u16 = 1 << 2;

/// Kinds of message-signalled interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// MSI.
    Msi,
    /// MSI-X.
    MsiX,
}

/// A PCI function, opened through VFIO. It belongs to this process until it is dropped.
pub struct OpenFunction {
    device: Arc<OwnedFd>,
    space: Arc<Space>,
    function: Function,
    interface: Interface,
    config: u64,
    /// Signalled where the kernel wants the function back.
    request: Event,
    /// Keeps the group as long as the function.
    _group: Option<OwnedFd>,
    /// Keeps other programs of ours out.
    _lock: File,
}

impl OpenFunction {
    /// Opens a function, whatever it is.
    ///
    /// # Errors
    /// What [`check::ready`] finds, [`VfioError::InUse`], and what the kernel refuses.
    pub fn open(system: &System, bdf: Bdf, iommu: Iommu, ids: &[(u16, u16)]) -> Result<Self, VfioError> {
        let (function, interface) = check::ready(system, bdf, iommu, ids)?;
        let lock = lock(system, bdf)?;
        let refused = |what: &'static str| move |e: io::Error| VfioError::Kernel { function: bdf, what, reason: e.to_string() };
        let node = |path: &str| {
            sys::open(&system.path(path)).map_err(|e| match e.raw_os_error() {
                Some(libc::EBUSY) => VfioError::InUse {
                    function: bdf,
                    holder: system.holders(path).into_iter().next().unwrap_or_else(|| "another program".to_owned()),
                },
                Some(libc::EACCES | libc::EPERM) => check::denied(path, &e),
                _ => VfioError::Kernel { function: bdf, what: "opening a VFIO node", reason: format!("{path}: {e}") },
            })
        };
        let (device, group, space) = match &interface {
            Interface::Iommufd { node: path } => {
                let (iommu, device) = (node("/dev/iommu")?, node(path)?);
                let ioas = space::iommufd_space(&iommu).map_err(refused("IOMMU_IOAS_ALLOC"))?;
                space::iommufd_attach(&device, &iommu, ioas).map_err(refused("VFIO_DEVICE_BIND_IOMMUFD"))?;
                let space = Space { function: bdf, numa_node: function.numa_node, kind: Kind::Iommufd { iommu, ioas } };
                (device, None, space)
            }
            Interface::Type1 { node: path } | Interface::Unprotected { node: path } => {
                let protected = matches!(interface, Interface::Type1 { .. });
                let kind = if protected { abi::VFIO_TYPE1v2_IOMMU } else { abi::VFIO_NOIOMMU_IOMMU };
                let container = node("/dev/vfio/vfio")?;
                let version = sys::ioctl_value(container.as_fd(), &GET_API_VERSION, 0).map_err(refused("VFIO_GET_API_VERSION"))?;
                let known = sys::ioctl_value(container.as_fd(), &CHECK_EXTENSION, kind.into()).map_err(refused("VFIO_CHECK_EXTENSION"))?;
                if version != abi::VFIO_API_VERSION as i32 || known != 1 {
                    return Err(VfioError::NoVfio {
                        path: format!("VFIO interface {version} with IOMMU type {kind}"),
                        command: "modprobe vfio_iommu_type1".to_owned(),
                    });
                }
                let group = node(path)?;
                let mut status = abi::vfio_group_status { argsz: size_of::<abi::vfio_group_status>() as u32, flags: 0 };
                // SAFETY: the kernel writes flags into the structure.
                unsafe { sys::ioctl(group.as_fd(), &GROUP_GET_STATUS, &mut status) }.map_err(refused("VFIO_GROUP_GET_STATUS"))?;
                if status.flags & abi::VFIO_GROUP_FLAGS_VIABLE == 0 {
                    let members: Vec<String> = system.group_members(&function).iter().map(|m| m.bdf.to_string()).collect();
                    return Err(VfioError::NotViable {
                        group: function.group.unwrap_or(0),
                        members: members.join(", "),
                        command: "shef device doctor".to_owned(),
                    });
                }
                let mut number = container.as_raw_fd();
                // SAFETY: the kernel reads the number of a descriptor that is open.
                unsafe { sys::ioctl(group.as_fd(), &GROUP_SET_CONTAINER, &mut number) }.map_err(refused("VFIO_GROUP_SET_CONTAINER"))?;
                sys::ioctl_value(container.as_fd(), &SET_IOMMU, kind.into()).map_err(refused("VFIO_SET_IOMMU"))?;
                let name = CString::new(bdf.to_string()).unwrap_or_default();
                // SAFETY: the request returns a descriptor of the function that is named.
                let device =
                    unsafe { sys::ioctl_fd(group.as_fd(), &GROUP_GET_DEVICE_FD, &name) }.map_err(refused("VFIO_GROUP_GET_DEVICE_FD"))?;
                let space = if protected {
                    Space::type1(bdf, function.numa_node, container)?
                } else {
                    tracing::warn!(
                        code = "SHEF-PCI-011",
                        function = %bdf,
                        "opened WITHOUT AN IOMMU: the device can read and write all of this machine's memory"
                    );
                    Space { function: bdf, numa_node: function.numa_node, kind: Kind::Unprotected { _container: container } }
                };
                (device, Some(group), space)
            }
        };
        let device = Arc::new(device);
        let config = region(&device, bdf, abi::VFIO_PCI_CONFIG_REGION_INDEX)?.offset;
        let request = Event::new().map_err(refused("eventfd"))?;
        let opened = Self { device, space: Arc::new(space), function, interface, config, request, _group: group, _lock: lock };
        opened.alive()?;
        // Not every function tells us when it must go.
        let _ = opened.set_vectors(abi::VFIO_PCI_REQ_IRQ_INDEX, &[opened.request.as_fd().as_raw_fd()]);
        opened.command(COMMAND_MEMORY | COMMAND_MASTER, true)?;
        Ok(opened)
    }

    /// The function as the kernel lists it.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// Through what it was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    fn refused(&self, what: &'static str, error: &io::Error) -> VfioError {
        VfioError::Kernel { function: self.function.bdf, what, reason: error.to_string() }
    }

    /// Reads configuration space.
    ///
    /// # Errors
    /// The kernel's.
    pub fn config_read(&self, offset: u16, bytes: &mut [u8]) -> Result<(), VfioError> {
        sys::pread(self.device.as_fd(), bytes, self.config + u64::from(offset)).map_err(|e| self.refused("reading configuration space", &e))
    }

    /// Writes configuration space.
    ///
    /// # Errors
    /// The kernel's.
    pub fn config_write(&self, offset: u16, bytes: &[u8]) -> Result<(), VfioError> {
        sys::pwrite(self.device.as_fd(), bytes, self.config + u64::from(offset))
            .map_err(|e| self.refused("writing configuration space", &e))
    }

    /// Whether the function is still there. Class and revision are read from the hardware, and all ones is no class.
    ///
    /// # Errors
    /// [`VfioError::Gone`].
    pub fn alive(&self) -> Result<(), VfioError> {
        let gone = || VfioError::Gone { function: self.function.bdf };
        let mut class = [0; 4];
        self.config_read(CLASS_REVISION, &mut class).map_err(|_| gone())?;
        let wanted = poll_readable(&[self.request.as_fd()], Duration::ZERO).is_ok_and(|[ready]| ready);
        if class == [0xff; 4] || wanted { Err(gone()) } else { Ok(()) }
    }

    /// Sets or clears bits of the command register.
    fn command(&self, bits: u16, on: bool) -> Result<(), VfioError> {
        let mut word = [0; 2];
        self.config_read(COMMAND, &mut word)?;
        let old = u16::from_le_bytes(word);
        let new = if on { old | bits } else { old & !bits };
        self.config_write(COMMAND, &new.to_le_bytes())
    }

    /// Lets the function do DMA, or keeps it from it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bus_master(&self, on: bool) -> Result<(), VfioError> {
        self.command(COMMAND_MASTER, on)
    }

    /// Resets the function. What is mapped stays mapped.
    ///
    /// # Errors
    /// [`VfioError::NoReset`], [`VfioError::Gone`], and the kernel's.
    pub fn reset(&self) -> Result<(), VfioError> {
        match sys::ioctl_value(self.device.as_fd(), &DEVICE_RESET, 0) {
            Ok(_) => {}
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => {
                return Err(VfioError::NoReset { function: self.function.bdf });
            }
            Err(e) => return Err(self.refused("VFIO_DEVICE_RESET", &e)),
        }
        self.alive()?;
        self.command(COMMAND_MEMORY | COMMAND_MASTER, true)
    }

    /// Maps a BAR.
    ///
    /// # Errors
    /// [`VfioError::BarSize`] where it has fewer than `least` bytes.
    pub fn bar(&self, bar: u8, least: u64) -> Result<Bar, VfioError> {
        let info = region(&self.device, self.function.bdf, u32::from(bar))?;
        if info.size < least {
            return Err(VfioError::BarSize { function: self.function.bdf, bar, found: info.size, expected: least });
        }
        let len = usize::try_from(info.size).unwrap_or(usize::MAX);
        let pages = if info.flags & abi::VFIO_REGION_INFO_FLAG_MMAP != 0 {
            Pages::of_device(self.device.as_fd(), len, info.offset).ok()
        } else {
            None
        };
        Ok(Bar { pages, bar, size: info.size, offset: info.offset, device: Arc::clone(&self.device) })
    }

    /// Memory that the function may read and write.
    ///
    /// # Errors
    /// [`VfioError::LockedMemory`], [`VfioError::Dma`], without an IOMMU [`VfioError::NoHugepage`] and [`VfioError::HiddenAddresses`].
    pub fn dma(&self, len: usize) -> Result<DmaBuffer, VfioError> {
        DmaBuffer::new(&self.space, len)
    }

    /// Interrupts of the function as event descriptors: at least `least`, at most `most` vectors.
    ///
    /// # Errors
    /// [`VfioError::Interrupts`] where it has too few, and the kernel's.
    pub fn interrupts(&self, kind: Vectors, least: u32, most: u32) -> Result<Interrupts, VfioError> {
        let index = match kind {
            Vectors::Msi => abi::VFIO_PCI_MSI_IRQ_INDEX,
            Vectors::MsiX => abi::VFIO_PCI_MSIX_IRQ_INDEX,
        };
        let mut info = abi::vfio_irq_info { argsz: size_of::<abi::vfio_irq_info>() as u32, index, ..Default::default() };
        // SAFETY: the kernel writes flags and a count into the structure.
        unsafe { sys::ioctl(self.device.as_fd(), &DEVICE_GET_IRQ_INFO, &mut info) }
            .map_err(|e| self.refused("VFIO_DEVICE_GET_IRQ_INFO", &e))?;
        if info.count < least {
            return Err(VfioError::Interrupts { function: self.function.bdf, found: info.count, wanted: least });
        }
        let count = info.count.min(most).min(MAX_VECTORS as u32);
        let events: Vec<Event> = (0..count).map(|_| Event::new()).collect::<io::Result<_>>().map_err(|e| self.refused("eventfd", &e))?;
        let numbers: Vec<i32> = events.iter().map(|e| e.as_fd().as_raw_fd()).collect();
        self.set_vectors(index, &numbers).map_err(|e| self.refused("VFIO_DEVICE_SET_IRQS", &e))?;
        Ok(Interrupts { function: self.function.bdf, events })
    }

    /// Ties the first vectors of a kind to event descriptors.
    fn set_vectors(&self, index: u32, events: &[i32]) -> io::Result<()> {
        let mut request = [0; IRQ_WORDS];
        let count = events.len().min(MAX_VECTORS);
        request[0] = (4 * (5 + count)) as u32;
        request[1] = abi::VFIO_IRQ_SET_DATA_EVENTFD | abi::VFIO_IRQ_SET_ACTION_TRIGGER;
        request[2] = index;
        request[4] = count as u32;
        for (word, event) in request[5..].iter_mut().zip(events) {
            *word = *event as u32;
        }
        // SAFETY: `struct vfio_irq_set` is five words and the numbers of descriptors; the first word is its length.
        unsafe { sys::ioctl(self.device.as_fd(), &DEVICE_SET_IRQS, &mut request) }.map(|_| ())
    }
}

impl Drop for OpenFunction {
    fn drop(&mut self) {
        // A device that is gone cannot be told.
        let _ = self.bus_master(false);
    }
}

/// Information about a region of the function.
fn region(device: &OwnedFd, function: Bdf, index: u32) -> Result<abi::vfio_region_info, VfioError> {
    let mut info = abi::vfio_region_info { argsz: size_of::<abi::vfio_region_info>() as u32, index, ..Default::default() };
    // SAFETY: the kernel fills the structure.
    unsafe { sys::ioctl(device.as_fd(), &DEVICE_GET_REGION_INFO, &mut info) }.map_err(|e| VfioError::Kernel {
        function,
        what: "VFIO_DEVICE_GET_REGION_INFO",
        reason: e.to_string(),
    })?;
    Ok(info)
}

/// Takes the function for this process: a lock on its configuration space in sysfs, which no crash leaves behind.
fn lock(system: &System, function: Bdf) -> Result<File, VfioError> {
    let failed = |e: io::Error| VfioError::Kernel { function, what: "locking the function", reason: e.to_string() };
    let file = File::open(system.path(format!("{}/config", System::folder(function)))).map_err(failed)?;
    if sys::try_lock(file.as_fd()).map_err(failed)? {
        return Ok(file);
    }
    let meta = file.metadata().map_err(failed)?;
    let (dev, inode) = (meta.dev(), meta.ino());
    // `1: FLOCK  ADVISORY  WRITE 1234 00:17:4242 0 EOF`
    let place = format!("{:02x}:{:02x}:{inode}", libc::major(dev), libc::minor(dev));
    let locks = system.text("/proc/locks").unwrap_or_default();
    let holder = locks
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&place.as_str()))
        .map_or_else(|| "another program".to_owned(), |words| system.process(words[4]));
    Err(VfioError::InUse { function, holder })
}

/// A BAR, mapped; where the kernel does not map it, each access is a system call.
pub struct Bar {
    /// Unmapped before the descriptor behind it is closed.
    pages: Option<Pages>,
    bar: u8,
    size: u64,
    offset: u64,
    device: Arc<OwnedFd>,
}

impl Bar {
    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn inside(&self, offset: u64, len: usize) -> Result<(), VfioError> {
        if offset.checked_add(len as u64).is_some_and(|end| end <= self.size) {
            Ok(())
        } else {
            Err(VfioError::Bounds { what: format!("BAR{}", self.bar), offset, len: len as u64, size: self.size })
        }
    }

    fn failed(&self, offset: u64, len: usize) -> VfioError {
        VfioError::Bounds { what: format!("BAR{} (the kernel refused)", self.bar), offset, len: len as u64, size: self.size }
    }

    /// Reads a register.
    ///
    /// # Errors
    /// [`VfioError::Bounds`].
    pub fn read32(&self, offset: u64) -> Result<u32, VfioError> {
        self.aligned(offset)?;
        match &self.pages {
            Some(pages) => Ok(pages.read32(offset as usize)),
            None => {
                let mut word = [0; 4];
                sys::pread(self.device.as_fd(), &mut word, self.offset + offset).map_err(|_| self.failed(offset, 4))?;
                Ok(u32::from_le_bytes(word))
            }
        }
    }

    /// Writes a register.
    ///
    /// # Errors
    /// [`VfioError::Bounds`].
    pub fn write32(&self, offset: u64, value: u32) -> Result<(), VfioError> {
        self.aligned(offset)?;
        match &self.pages {
            Some(pages) => {
                pages.write32(offset as usize, value);
                Ok(())
            }
            None => sys::pwrite(self.device.as_fd(), &value.to_le_bytes(), self.offset + offset).map_err(|_| self.failed(offset, 4)),
        }
    }

    fn aligned(&self, offset: u64) -> Result<(), VfioError> {
        if offset.is_multiple_of(4) { self.inside(offset, 4) } else { Err(self.failed(offset, 4)) }
    }

    /// Reads a range.
    ///
    /// # Errors
    /// [`VfioError::Bounds`].
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), VfioError> {
        self.inside(offset, bytes.len())?;
        match &self.pages {
            Some(pages) => {
                pages.copy_out(offset as usize, bytes);
                Ok(())
            }
            None => sys::pread(self.device.as_fd(), bytes, self.offset + offset).map_err(|_| self.failed(offset, bytes.len())),
        }
    }

    /// Writes a range.
    ///
    /// # Errors
    /// [`VfioError::Bounds`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), VfioError> {
        self.inside(offset, bytes.len())?;
        match &self.pages {
            Some(pages) => {
                pages.copy_in(offset as usize, bytes);
                Ok(())
            }
            None => sys::pwrite(self.device.as_fd(), bytes, self.offset + offset).map_err(|_| self.failed(offset, bytes.len())),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        // A live mapping would keep the function open behind a closed descriptor.
        self.pages = None;
    }
}

/// Interrupts as event descriptors.
pub struct Interrupts {
    function: Bdf,
    events: Vec<Event>,
}

impl Interrupts {
    /// Vectors.
    pub fn vectors(&self) -> usize {
        self.events.len()
    }

    /// Waits until a vector is signalled, at most so long, and takes it: whether it was. A vector that there is not is never signalled.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, vector: usize, timeout: Duration) -> Result<bool, VfioError> {
        let failed = |e: io::Error| VfioError::Kernel { function: self.function, what: "waiting for an interrupt", reason: e.to_string() };
        self.events.get(vector).map_or(Ok(false), |event| event.wait(timeout).map_err(failed))
    }
}

// What is open may be used from several threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<OpenFunction>();
    shared::<Bar>();
    shared::<DmaBuffer>();
};
