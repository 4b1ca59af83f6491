//! An open PCI function: configuration space, BARs, interrupts, reset, DMA.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use shef_device::{Bdf, Event, Iommu, poll_readable};
use vfio_bindings::bindings::vfio as abi;

use crate::VfioError;
use crate::check::{self, Interface};
use crate::handle::{Handle, MAX_VECTORS};
use crate::ours::{iommufd, noiommu};
use crate::space::{AddressSpace, DmaBuffer};
use crate::sys::{self, Ioctl, Pages};
use crate::system::{Function, System};
use crate::type1::Type1;

const DEVICE_RESET: Ioctl<libc::c_ulong> = Ioctl::new(111);

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

/// A PCI function, opened through VFIO. It belongs to this process until it, its BARs and its DMA
/// memory are dropped.
pub struct OpenFunction {
    handle: Arc<dyn Handle>,
    space: Arc<dyn AddressSpace>,
    function: Function,
    interface: Interface,
    config: u64,
    /// Signalled if the kernel wants the function back.
    request: [Event; 1],
}

impl OpenFunction {
    /// Opens any function.
    ///
    /// # Errors
    /// The errors of [`check::ready`], [`VfioError::InUse`], and the kernel's.
    pub fn open(
        system: &System,
        bdf: Bdf,
        iommu: Iommu,
        ids: &[(u16, u16)],
    ) -> Result<Self, VfioError> {
        let (function, interface) = check::ready(system, bdf, iommu, ids)?;
        let (handle, space): (Arc<dyn Handle>, Arc<dyn AddressSpace>) = match &interface {
            Interface::Type1 { node } => {
                let both = Arc::new(Type1::open(system, &function, node)?);
                (both.clone(), both)
            }
            Interface::Iommufd { node } => {
                let (handle, space) = iommufd::open(system, bdf, node)?;
                (Arc::new(handle), Arc::new(space))
            }
            Interface::Unprotected { node } => {
                let (handle, space) = noiommu::open(system, bdf, node)?;
                (Arc::new(handle), Arc::new(space))
            }
        };
        let config = handle.region(abi::VFIO_PCI_CONFIG_REGION_INDEX)?.offset;
        let request = [Event::new().map_err(VfioError::refused(bdf, "eventfd"))?];
        let opened = Self { handle, space, function, interface, config, request };
        opened.alive()?;
        // Not every function reports that the kernel wants it back.
        let _ = opened.handle.signal(abi::VFIO_PCI_REQ_IRQ_INDEX, &opened.request);
        opened.command(COMMAND_MEMORY | COMMAND_MASTER, true)?;
        Ok(opened)
    }

    /// The function as the kernel lists it.
    pub fn function(&self) -> &Function {
        &self.function
    }

    /// The interface that it was opened through.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Reads configuration space.
    ///
    /// # Errors
    /// The kernel's.
    pub fn config_read(&self, offset: u16, bytes: &mut [u8]) -> Result<(), VfioError> {
        let refused = VfioError::refused(self.function.bdf, "reading configuration space");
        self.handle.file().read_exact_at(bytes, self.config + u64::from(offset)).map_err(refused)
    }

    /// Writes configuration space.
    ///
    /// # Errors
    /// The kernel's.
    pub fn config_write(&self, offset: u16, bytes: &[u8]) -> Result<(), VfioError> {
        let refused = VfioError::refused(self.function.bdf, "writing configuration space");
        self.handle.file().write_all_at(bytes, self.config + u64::from(offset)).map_err(refused)
    }

    /// Checks that the function is still present. Class and revision come from the hardware, and
    /// all ones is not a class.
    ///
    /// # Errors
    /// [`VfioError::Gone`].
    pub fn alive(&self) -> Result<(), VfioError> {
        let gone = || VfioError::Gone { function: self.function.bdf };
        let mut class = [0; 4];
        self.config_read(CLASS_REVISION, &mut class).map_err(|_| gone())?;
        let wanted =
            poll_readable(&[self.request[0].as_fd()], Duration::ZERO).is_ok_and(|[ready]| ready);
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

    /// Enables or disables the function's DMA.
    ///
    /// # Errors
    /// The kernel's.
    pub fn bus_master(&self, on: bool) -> Result<(), VfioError> {
        self.command(COMMAND_MASTER, on)
    }

    /// Resets the function. Mappings stay in place.
    ///
    /// # Errors
    /// [`VfioError::NoReset`], [`VfioError::Gone`], and the kernel's.
    pub fn reset(&self) -> Result<(), VfioError> {
        let function = self.function.bdf;
        sys::ioctl_value(self.handle.file(), &DEVICE_RESET, 0).map_err(|e| {
            match e.raw_os_error() {
                Some(libc::EINVAL | libc::ENOTTY) => VfioError::NoReset { function },
                _ => VfioError::refused(function, "VFIO_DEVICE_RESET")(e),
            }
        })?;
        self.alive()?;
        self.command(COMMAND_MEMORY | COMMAND_MASTER, true)
    }

    /// Maps a BAR.
    ///
    /// # Errors
    /// [`VfioError::BarSize`] if it has fewer than `least` bytes.
    pub fn bar(&self, bar: u8, least: u64) -> Result<Bar, VfioError> {
        let info = self.handle.region(u32::from(bar))?;
        if info.size < least {
            return Err(VfioError::BarSize {
                function: self.function.bdf,
                bar,
                found: info.size,
                expected: least,
            });
        }
        let len = usize::try_from(info.size).unwrap_or(usize::MAX);
        let pages = if info.flags & abi::VFIO_REGION_INFO_FLAG_MMAP != 0 {
            Pages::of_device(self.handle.file(), len, info.offset).ok()
        } else {
            None
        };
        Ok(Bar {
            pages,
            bar,
            size: info.size,
            offset: info.offset,
            handle: Arc::clone(&self.handle),
        })
    }

    /// Allocates memory that the function may read and write.
    ///
    /// # Errors
    /// [`VfioError::LockedMemory`], [`VfioError::Dma`], without an IOMMU [`VfioError::NoHugepage`]
    /// and [`VfioError::HiddenAddresses`].
    pub fn dma(&self, len: usize) -> Result<DmaBuffer, VfioError> {
        DmaBuffer::new(&self.function, &self.space, len)
    }

    /// Connects interrupts of the function to event descriptors: at least `least`, at most `most`
    /// vectors.
    ///
    /// # Errors
    /// [`VfioError::Interrupts`] if it has too few, and the kernel's errors.
    pub fn interrupts(
        &self,
        kind: Vectors,
        least: u32,
        most: u32,
    ) -> Result<Interrupts, VfioError> {
        let index = match kind {
            Vectors::Msi => abi::VFIO_PCI_MSI_IRQ_INDEX,
            Vectors::MsiX => abi::VFIO_PCI_MSIX_IRQ_INDEX,
        };
        let (function, found) = (self.function.bdf, self.handle.vectors(index)?);
        if found < least {
            return Err(VfioError::Interrupts { function, found, wanted: least });
        }
        let count = found.min(most).min(MAX_VECTORS as u32);
        let events: io::Result<Vec<Event>> = (0..count).map(|_| Event::new()).collect();
        let events = events.map_err(VfioError::refused(function, "eventfd"))?;
        self.handle.signal(index, &events)?;
        Ok(Interrupts { function, events })
    }
}

impl Drop for OpenFunction {
    fn drop(&mut self) {
        // A device that is gone cannot be stopped.
        let _ = self.bus_master(false);
    }
}

/// Reads a register of a BAR through sysfs, without opening the function: also of a card that another
/// program uses. A function that does not respond reads as all ones.
///
/// # Errors
/// [`VfioError::Bounds`], and the kernel's.
pub fn peek(system: &System, bdf: Bdf, bar: u8, offset: u64) -> Result<u32, VfioError> {
    const PAGE: u64 = 4096;
    let path = system.path(format!("{}/resource{bar}", System::folder(bdf)));
    let refused = || VfioError::refused(bdf, "reading a BAR through sysfs");
    let file = std::fs::File::options().read(true).write(true).open(path).map_err(refused())?;
    let size = file.metadata().map_err(refused())?.len();
    let page = offset / PAGE * PAGE;
    if !offset.is_multiple_of(4) || page + PAGE > size {
        return Err(VfioError::Bounds { what: format!("BAR{bar}"), offset, len: 4, size });
    }
    let pages = Pages::of_device(&file, PAGE as usize, page).map_err(refused())?;
    Ok(pages.read32((offset - page) as usize))
}

/// A mapped BAR; if the kernel does not map it, each access is a system call.
pub struct Bar {
    /// The first field, so that it is unmapped before the descriptor behind it is closed.
    pages: Option<Pages>,
    bar: u8,
    size: u64,
    offset: u64,
    handle: Arc<dyn Handle>,
}

impl Bar {
    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    fn inside(&self, offset: u64, len: usize) -> Result<(), VfioError> {
        if offset.checked_add(len as u64).is_some_and(|end| end <= self.size) {
            Ok(())
        } else {
            Err(VfioError::Bounds {
                what: format!("BAR{}", self.bar),
                offset,
                len: len as u64,
                size: self.size,
            })
        }
    }

    fn failed(&self, offset: u64, len: usize) -> VfioError {
        VfioError::Bounds {
            what: format!("BAR{} (the kernel refused)", self.bar),
            offset,
            len: len as u64,
            size: self.size,
        }
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
                self.handle
                    .file()
                    .read_exact_at(&mut word, self.offset + offset)
                    .map_err(|_| self.failed(offset, 4))?;
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
            None => self
                .handle
                .file()
                .write_all_at(&value.to_le_bytes(), self.offset + offset)
                .map_err(|_| self.failed(offset, 4)),
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
            None => self
                .handle
                .file()
                .read_exact_at(bytes, self.offset + offset)
                .map_err(|_| self.failed(offset, bytes.len())),
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
            None => self
                .handle
                .file()
                .write_all_at(bytes, self.offset + offset)
                .map_err(|_| self.failed(offset, bytes.len())),
        }
    }
}

/// Interrupts, delivered to event descriptors.
pub struct Interrupts {
    function: Bdf,
    events: Vec<Event>,
}

impl Interrupts {
    /// Number of vectors.
    pub fn vectors(&self) -> usize {
        self.events.len()
    }

    /// Waits for a vector, for at most `timeout`, and takes its signal. Returns whether there was
    /// one. A vector that does not exist is never signalled.
    ///
    /// # Errors
    /// The system's.
    pub fn wait(&self, vector: usize, timeout: Duration) -> Result<bool, VfioError> {
        let failed = VfioError::refused(self.function, "waiting for an interrupt");
        self.events.get(vector).map_or(Ok(false), |event| event.wait(timeout).map_err(failed))
    }
}

// The open objects can be shared between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<OpenFunction>();
    shared::<Bar>();
    shared::<DmaBuffer>();
};
