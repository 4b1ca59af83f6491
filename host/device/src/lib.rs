//! A card as a host program sees it: the [`Device`] trait, device URIs, the kernel mailbox, errors.
//!
//! Nothing here is trusted: the software and the links between the program and a device belong to
//! other parties. The roles of crate `shef` check the device's claims; this crate never does.
//!
//! Device URIs, the same in every program:
//!
//! | URI | device |
//! |---|---|
//! | `sim:model` | simulated card around the functional model |
//! | `sim:rtl` | simulated card around the Verilated RTL |
//! | `sim:rtl?project=DIR` | the same around a user's project; more parameters are in [`SimParameters`] |
//! | `vfio-user:/path/socket` | a card served by another process |
//! | `vfio-user:/path/socket?boot=/FOLDER` | the same, if that card boots from a medium as on AWS F2 |
//! | `pci:0000:65:00.0` | a card in this machine, through VFIO; `?iommu=type1`, `iommufd` or `none` says how |
//! | `pci:0000:34:00.0?boot=/FOLDER` | the same, with the folder of the boot medium: a card on AWS F2 ([`pci::f2`]) |
//! | `pci:ueid=01...` | the card of this machine that has this ueid, in any slot |
//! | `tls://host:port/DEVICE` | a card behind an agent |

pub mod batch;
mod dma_slots;
mod error;
mod event;
pub mod mailbox;
pub mod memory;
pub mod name;
pub mod pci;
pub mod progress;
pub mod ring;
mod simulated;
mod ueid;
mod uri;

pub use batch::CtlOp;
pub use dma_slots::{DmaSlot, DmaSlots, SLOT_BYTES};
pub use error::DeviceError;
pub use event::{Event, poll_readable, poll_writable};
pub use memory::{OutOfRange, SharedMemory};
pub use simulated::{SimKernel, SimParameter, SimParameters, SimShell, WaveScope};
pub use ueid::Ueid;
pub use uri::{Bdf, Iommu, Uri, is_name};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = DeviceError::CODES;

/// Bytes of the control window (BAR0).
pub const CTL_BYTES: u32 = 0x1_0000;

/// A device's description of itself. A hint for people; decisions rest on evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// URI that the device was opened with.
    pub uri: String,
    /// One line for people: the device behind the URI.
    pub description: String,
    /// Kind of root of trust, as in evidence, e.g. `simulated`.
    pub root_of_trust: String,
    /// Bytes of addressable card memory.
    pub memory_bytes: u64,
    /// Whether the device counts clock cycles.
    pub counts_cycles: bool,
}

impl DeviceInfo {
    /// Combines the parts.
    pub fn new(
        uri: impl Into<String>,
        description: impl Into<String>,
        root_of_trust: impl Into<String>,
        memory_bytes: u64,
        counts_cycles: bool,
    ) -> Self {
        Self {
            uri: uri.into(),
            description: description.into(),
            root_of_trust: root_of_trust.into(),
            memory_bytes,
            counts_cycles,
        }
    }
}

/// A card, as its host accesses it.
///
/// Offsets of `ctl` are bytes into BAR0, multiples of four. Addresses of card memory are bytes as
/// the accelerator sees them.
pub trait Device {
    /// The device's description of itself.
    fn info(&self) -> DeviceInfo;

    /// Reads a 32-bit register of the control window.
    ///
    /// # Errors
    /// [`DeviceError::CtlRefused`] if the bus answers with an error, [`DeviceError::Gone`] if the
    /// device has left the bus.
    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError>;

    /// Writes a 32-bit register of the control window.
    ///
    /// # Errors
    /// As [`Device::ctl_read32`].
    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError>;

    /// Makes several accesses of the control window in order and returns the values of its reads
    /// and polls, up to the end of the batch: see [`CtlOp::Poll`].
    ///
    /// # Errors
    /// As [`Device::ctl_read32`], of the first access that fails; later accesses are not made.
    fn ctl_batch(&mut self, ops: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
        batch::run(self, ops)
    }

    /// Reads card memory.
    ///
    /// # Errors
    /// [`DeviceError::MemoryRange`] if the range is not entirely inside card memory.
    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes card memory.
    ///
    /// # Errors
    /// [`DeviceError::MemoryRange`] if the range is not entirely inside card memory.
    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads several ranges of card memory, in one transfer if the device can.
    ///
    /// # Errors
    /// As [`Device::mem_read`], of the first range that fails.
    fn mem_read_ranges(&mut self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), DeviceError> {
        ranges.iter_mut().try_for_each(|(addr, bytes)| self.mem_read(*addr, bytes))
    }

    /// The device's slots, if it lends any: memory that the device accesses directly, for bulk
    /// transfers without an extra copy.
    fn dma_slots(&mut self) -> Option<&mut dyn DmaSlots> {
        None
    }

    /// Writes several ranges of card memory, in one transfer if the device can.
    ///
    /// # Errors
    /// As [`Device::mem_write`], of the first range that fails.
    fn mem_write_ranges(&mut self, ranges: &[(u64, &[u8])]) -> Result<(), DeviceError> {
        ranges.iter().try_for_each(|(addr, bytes)| self.mem_write(*addr, bytes))
    }

    /// Lets time pass while the host waits for the device: an interrupt, a short sleep, or some
    /// simulated cycles.
    ///
    /// # Errors
    /// Those of the transport.
    fn wait_hint(&mut self) -> Result<(), DeviceError>;

    /// Waits for an interrupt of the device, for a bounded time. Returns, as a hint, whether one
    /// arrived.
    ///
    /// # Errors
    /// Those of the transport.
    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        self.wait_hint().map(|()| false)
    }

    /// Resets the card. This destroys the keys in the Shield, and with them every session.
    ///
    /// # Errors
    /// Those of the transport.
    fn reset(&mut self) -> Result<(), DeviceError>;

    /// Sends one message to the Security Kernel and returns its answer.
    ///
    /// # Errors
    /// [`DeviceError::MailboxTooLong`], [`DeviceError::MailboxTimeout`] and those of the transport.
    fn kernel_call(&mut self, request: &[u8]) -> Result<Vec<u8>, DeviceError> {
        mailbox::call(self, request)
    }

    /// The bursts at the accelerator's ports, and who waits for whom, if the device reports them: a
    /// simulated card of this machine does. For people only.
    fn progress(&mut self) -> Option<progress::Progress> {
        None
    }

    /// Clock cycles since the device was opened, if it counts them. For statistics only.
    fn cycles(&self) -> Option<u64> {
        None
    }
}
