//! A card in this machine.

use std::time::Duration;

use shef_device::pci::{self, BAR_CTL, BAR_MEM, PciCard};
use shef_device::{Bdf, CTL_BYTES, DeviceError, Iommu, Uri};

use crate::check::Interface;
use crate::function::{Bar, Interrupts, OpenFunction, Vectors};
use crate::system::System;
use crate::{DmaBuffer, VfioError};

/// A card's PCI function, with its BARs mapped and its interrupts connected.
pub struct CardFunction {
    ctl: Bar,
    mem: Bar,
    interrupts: Interrupts,
    function: OpenFunction,
}

impl CardFunction {
    /// Opens a function that has a card's numbers and BARs.
    ///
    /// # Errors
    /// [`VfioError`], each with what to do.
    pub fn open(system: &System, bdf: Bdf, iommu: Iommu) -> Result<Self, VfioError> {
        let function = OpenFunction::open(system, bdf, iommu, pci::IDS)?;
        Ok(Self {
            ctl: function.bar(BAR_CTL, u64::from(CTL_BYTES))?,
            mem: function.bar(BAR_MEM, 4096)?,
            interrupts: function.interrupts(Vectors::MsiX, 1, pci::VECTORS)?,
            function,
        })
    }

    /// Memory that the card may read and write.
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

    /// One of the BARs that a card has.
    fn bar(&self, bar: u8) -> Result<&Bar, VfioError> {
        match bar {
            BAR_CTL => Ok(&self.ctl),
            BAR_MEM => Ok(&self.mem),
            _ => Err(VfioError::BarSize { function: self.function.function().bdf, bar, found: 0, expected: 1 }),
        }
    }
}

impl pci::Function for CardFunction {
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

/// Opens the card that is function `bdf` of this machine.
///
/// # Errors
/// [`VfioError`] as [`DeviceError::Transport`], and those of [`PciCard::open`].
pub fn open(bdf: Bdf, iommu: Iommu) -> Result<PciCard<CardFunction>, DeviceError> {
    let card = CardFunction::open(&System::default(), bdf, iommu)?;
    let how = match card.function.interface() {
        Interface::Unprotected { .. } => "WITHOUT AN IOMMU: it can reach all of this machine's memory",
        Interface::Iommufd { .. } => "DMA confined by the IOMMU (iommufd)",
        Interface::Type1 { .. } => "DMA confined by the IOMMU (type 1)",
    };
    let vectors = card.interrupts.vectors();
    let description = format!("PCI card {} in this machine, {how}, {vectors} interrupt vectors", card.function.function().id());
    PciCard::open(card, &Uri::Pci { function: bdf, iommu }.to_string(), &description, "unknown")
}
