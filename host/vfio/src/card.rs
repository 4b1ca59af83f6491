//! A card in this machine.

use std::path::Path;
use std::time::Duration;

use shef_device::pci::f2::{F2, Medium};
use shef_device::pci::{self, BAR_CTL, BAR_MEM, BAR_MSIX, PciCard};
use shef_device::ring::DmaMemory;
use shef_device::{Bdf, CTL_BYTES, Device, DeviceError, Iommu, OutOfRange, Ueid, Uri, name};

use crate::check::Interface;
use crate::function::{Bar, Interrupts, OpenFunction, Vectors};
use crate::system::System;
use crate::{DmaBuffer, VfioError};

/// A card's PCI function, with its BARs mapped and its interrupts connected.
pub struct CardFunction {
    ctl: Bar,
    mem: Bar,
    msix: Bar,
    interrupts: Interrupts,
    function: OpenFunction,
}

impl CardFunction {
    /// Opens a function that has a card's IDs and BARs.
    ///
    /// # Errors
    /// [`VfioError`], which states the remedy.
    pub fn open(system: &System, bdf: Bdf, iommu: Iommu) -> Result<Self, VfioError> {
        let function = OpenFunction::open(system, bdf, iommu, pci::IDS)?;
        Ok(Self {
            ctl: function.bar(BAR_CTL, u64::from(CTL_BYTES))?,
            mem: function.bar(BAR_MEM, 4096)?,
            msix: function.bar(BAR_MSIX, 0)?,
            interrupts: function.interrupts(Vectors::MsiX, 1, pci::VECTORS)?,
            function,
        })
    }

    /// Allocates memory that the card may read and write.
    ///
    /// # Errors
    /// As [`OpenFunction::dma`].
    pub fn dma(&self, len: usize) -> Result<DmaBuffer, VfioError> {
        self.function.dma(len)
    }

    /// The PCI function.
    pub fn function(&self) -> &OpenFunction {
        &self.function
    }

    /// One of the BARs of a card.
    fn bar(&self, bar: u8) -> Result<&Bar, VfioError> {
        match bar {
            BAR_CTL => Ok(&self.ctl),
            BAR_MEM => Ok(&self.mem),
            BAR_MSIX => Ok(&self.msix),
            _ => Err(VfioError::BarSize {
                function: self.function.function().bdf,
                bar,
                found: 0,
                expected: 1,
            }),
        }
    }
}

impl DmaMemory for DmaBuffer {
    fn device_address(&self) -> u64 {
        // A buffer has a segment; a ring never gets a buffer with several.
        self.segments().first().map_or(0, |s| s.addr.0)
    }

    fn bytes(&self) -> u64 {
        self.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        DmaBuffer::read(self, offset, out).map_err(|_| OutOfRange {
            offset,
            len: out.len() as u64,
            size: self.len(),
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        DmaBuffer::write(self, offset, bytes).map_err(|_| OutOfRange {
            offset,
            len: bytes.len() as u64,
            size: self.len(),
        })
    }

    fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        DmaBuffer::load(self, offset).map_err(|_| OutOfRange { offset, len: 4, size: self.len() })
    }
}

impl pci::Function for CardFunction {
    type Memory = DmaBuffer;

    fn dma(&mut self, bytes: u64) -> Result<DmaBuffer, DeviceError> {
        let buffer = CardFunction::dma(self, usize::try_from(bytes).unwrap_or(usize::MAX))?;
        if buffer.segments().len() > 1 {
            let reason = format!(
                "it is in {} pieces for the device, expected one: request at most one hugepage",
                buffer.segments().len()
            );
            return Err(VfioError::Dma { len: bytes, reason }.into());
        }
        Ok(buffer)
    }

    #[expect(
        clippy::mem_forget,
        reason = "the device may still write there: the pages must not come back to life as something else"
    )]
    fn release(&mut self, memory: DmaBuffer, quiet: bool) -> Result<(), DeviceError> {
        if !quiet && matches!(self.function.interface(), Interface::Unprotected { .. }) {
            tracing::error!(function = %self.function.function().bdf, "the card does not stop: its DMA memory is never used again");
            std::mem::forget(memory);
        }
        Ok(())
    }

    fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.function.config_read(offset, out)?)
    }

    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError> {
        Ok(self.function.config_write(offset, data)?)
    }

    fn bar_bytes(&self, bar: u8) -> u64 {
        self.bar(bar).map_or(0, Bar::size)
    }

    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.bar(bar)?.read(offset, out)?)
    }

    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        Ok(self.bar(bar)?.write(offset, data)?)
    }

    fn wait_vector(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError> {
        Ok(self.interrupts.wait(vector as usize, timeout)?)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(self.function.reset()?)
    }
}

/// Opens the card at function `bdf` of this machine. A card on AWS F2 also needs the folder of its
/// boot medium: its kernel boots from it now and after each reset.
///
/// # Errors
/// [`VfioError`] as [`DeviceError::Transport`], the errors of [`Medium::read`], [`F2::new`] and
/// [`PciCard::open`].
pub fn open(bdf: Bdf, iommu: Iommu, boot: Option<&Path>) -> Result<Box<dyn Device>, DeviceError> {
    let uri = Uri::Pci { function: bdf, iommu, boot: boot.map(Path::to_owned) }.to_string();
    let Some(boot) = boot else { return Ok(Box::new(plain(bdf, iommu, &uri)?)) };
    // The card is not opened, and so not reset, without a medium.
    let medium = Medium::read(boot)?;
    let (card, description) = function(bdf, iommu)?;
    let f2 = F2::new(card, &bdf.to_string(), medium)?;
    let polled =
        if f2.polled() { ", polled: BAR2 has no block of interrupt registers" } else { "" };
    let description = format!("{description}, on AWS F2{polled}");
    Ok(Box::new(PciCard::open(f2, &uri, &description, "provider")?))
}

/// Opens the card of this machine that has the given ueid. Opens every free card to read its ueid,
/// which resets the card.
///
/// # Errors
/// As [`name::find`].
pub fn open_ueid(ueid: &Ueid, iommu: Iommu) -> Result<Box<dyn Device>, DeviceError> {
    let cards = System::default().cards();
    let opened = cards.iter().map(|card| {
        let uri = Uri::Pci { function: card.bdf, iommu, boot: None }.to_string();
        (card.bdf.to_string(), plain(card.bdf, iommu, &uri))
    });
    Ok(Box::new(name::find(ueid, opened)?))
}

/// A card that needs no boot medium.
fn plain(bdf: Bdf, iommu: Iommu, uri: &str) -> Result<PciCard<CardFunction>, DeviceError> {
    let (card, description) = function(bdf, iommu)?;
    PciCard::open(card, uri, &description, "unknown")
}

/// Opens a function, and describes it.
fn function(bdf: Bdf, iommu: Iommu) -> Result<(CardFunction, String), DeviceError> {
    let card = CardFunction::open(&System::default(), bdf, iommu)?;
    let how = match card.function.interface() {
        Interface::Unprotected { .. } => {
            "WITHOUT AN IOMMU: it can reach all of this machine's memory"
        }
        Interface::Iommufd { .. } => "DMA confined by the IOMMU (iommufd)",
        Interface::Type1 { .. } => "DMA confined by the IOMMU (type 1)",
    };
    let vectors = card.interrupts.vectors();
    let description = format!(
        "PCI card {} in this machine, {how}, {vectors} interrupt vectors",
        card.function.function().id()
    );
    Ok((card, description))
}
