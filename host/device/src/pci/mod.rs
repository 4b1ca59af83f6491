//! The card as a PCI function: the layout of its BARs, and the [`Device`](crate::Device) that all
//! transports to a PCI function share.
//!
//! | BAR | bytes | contents |
//! |---|---|---|
//! | 0 | 64 KiB | control window: the Shield's registers and the kernel's mailbox |
//! | 2 | 64 KiB | MSI-X table at 0, pending bits at 0x8000 |
//! | 4 | as card memory | window to card memory, prefetchable, mappable |
//!
//! All are 64-bit BARs, as on AWS F2. If the card has a DMA engine, bulk data goes through a
//! descriptor ring ([`crate::ring`]). Short transfers, and all transfers of a card without an
//! engine, go through the window.

mod bulk;
mod card;
pub mod f2;

use std::ops::Range;
use std::time::Duration;

use crate::progress::Progress;
use crate::ring::{self, DmaMemory, Registers};
use crate::{DeviceError, mailbox};

pub use card::PciCard;

/// Vendor and device IDs of cards: the application function of AWS F2 (Amazon's vendor ID, in the
/// range of device IDs that is free for designs). The simulated card also shows the first.
pub const IDS: &[(u16, u16)] = &[(0x1d0f, 0xf010)];
/// BAR of the control window.
pub const BAR_CTL: u8 = 0;
/// BAR of the MSI-X table.
pub const BAR_MSIX: u8 = 2;
/// BAR of the window to card memory; the window begins at address 0 of card memory.
pub const BAR_MEM: u8 = 4;
/// Bytes of [`BAR_MSIX`].
pub const MSIX_BYTES: u64 = 0x1_0000;
/// Vectors of the card's MSI-X.
pub const VECTORS: u32 = 16;
/// Vector of the accelerator's interrupt.
pub const VECTOR_ACCELERATOR: u32 = 0;

/// A transfer uses the ring if any of its ranges has at least this many bytes.
pub const RING_FROM: usize = 4096;

/// The parts of the control window that a card's users can access: the Shield's registers and the
/// mailbox. The registers of the DMA engine belong to [`PciCard`]'s own rings: they give access to
/// all memory of this program that the card reaches and, without an IOMMU, to all of the machine's
/// memory.
pub const REGISTERS: [Range<u32>; 4] = [
    0..ring::reg::BASE,
    mailbox::REQUEST..mailbox::REQUEST + mailbox::MAX_REQUEST as u32,
    mailbox::ANSWER..mailbox::ANSWER + mailbox::MAX_ANSWER as u32,
    mailbox::REQ_LEN..mailbox::RSP_LEN + 4,
];

// No range includes the DMA engine's registers.
const _: () = assert!(ring::reg::END <= mailbox::REQUEST);

/// Offset of the command register in configuration space.
const COMMAND: u16 = 4;
/// Command: the function responds to memory accesses.
const COMMAND_MEMORY: u16 = 2;
/// Command: the function may master the bus.
const COMMAND_MASTER: u16 = 4;

/// Sets and clears bits of the command register.
fn command<F: Function>(function: &mut F, set: u16, clear: u16) -> Result<(), DeviceError> {
    let mut command = [0; 2];
    function.config_read(COMMAND, &mut command)?;
    let command = u16::from_le_bytes(command) & !clear | set;
    function.config_write(COMMAND, &command.to_le_bytes())
}

/// A PCI function that a program controls: through the kernel's VFIO, vfio-user, or another
/// transport.
pub trait Function {
    /// Memory of this program that the function accesses.
    type Memory: DmaMemory + Send + Sync + 'static;

    /// Allocates at least `bytes` bytes of memory, contiguous for the function, which it can access
    /// until [`Function::release`].
    ///
    /// # Errors
    /// If there is no memory, and the transport's errors.
    fn dma(&mut self, bytes: u64) -> Result<Self::Memory, DeviceError>;

    /// Withdraws memory from the function and returns it to the system; `quiet` promises that the
    /// function no longer uses it. Memory that the function may still use, and that cannot be cut
    /// off from it, is never returned.
    ///
    /// # Errors
    /// The transport's.
    fn release(&mut self, memory: Self::Memory, quiet: bool) -> Result<(), DeviceError>;

    /// Reads configuration space.
    ///
    /// # Errors
    /// The transport's.
    fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes configuration space.
    ///
    /// # Errors
    /// The transport's.
    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError>;

    /// Size of a BAR in bytes; 0 if there is no such BAR.
    fn bar_bytes(&self, bar: u8) -> u64;

    /// Reads a BAR. The range lies inside it. Aligned four-byte accesses reach the device as one
    /// access.
    ///
    /// # Errors
    /// The transport's. A read that the device refuses returns all ones.
    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes a BAR; as [`Function::bar_read`].
    ///
    /// # Errors
    /// The transport's. A write that the device refuses is dropped.
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError>;

    /// Waits for an interrupt vector, for at most `timeout`. Returns whether it was raised since
    /// the last call.
    ///
    /// # Errors
    /// The transport's.
    fn wait_vector(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError>;

    /// Resets the function.
    ///
    /// # Errors
    /// The transport's.
    fn reset(&mut self) -> Result<(), DeviceError>;

    /// As [`Device::progress`](crate::Device::progress).
    fn progress(&mut self) -> Option<Progress> {
        None
    }
}

impl<F: Function> Registers for F {
    fn register(&mut self, offset: u32) -> Result<u32, DeviceError> {
        let mut word = [0; 4];
        self.bar_read(BAR_CTL, offset.into(), &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.bar_write(BAR_CTL, offset.into(), &value.to_le_bytes())
    }

    fn interrupted(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError> {
        self.wait_vector(vector, timeout)
    }
}
