//! A card in this machine as a [`Device`].

use std::io;
use std::time::Duration;

use shef_device::{Bdf, CTL_BYTES, Device, DeviceError, DeviceInfo, Iommu, Uri, mailbox, pci};
use shef_regs::ctl;

use crate::function::{Bar, Interrupts, OpenFunction, Vectors};
use crate::system::System;
use crate::{DmaBuffer, VfioError};

/// Most interrupt vectors that are used, as on AWS F2.
const VECTORS: u32 = 16;
/// First and longest pause of a host that waits.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// How long one wait for an interrupt lasts.
const INTERRUPT_WAIT: Duration = Duration::from_millis(100);
/// Pauses after a reset until a card that does not answer is given up: 10 s.
const RESET_PAUSES: u32 = 10_000;

/// A card in this machine.
pub struct Card {
    ctl: Bar,
    mem: Bar,
    interrupts: Interrupts,
    function: OpenFunction,
    iommu: Iommu,
    pause: Duration,
}

impl Card {
    /// Opens the card that is function `bdf` of this machine.
    ///
    /// # Errors
    /// [`VfioError`], each with what to do.
    pub fn open(bdf: Bdf, iommu: Iommu) -> Result<Self, VfioError> {
        Self::open_in(&System::default(), bdf, iommu)
    }

    /// The same with the kernel's folders elsewhere.
    ///
    /// # Errors
    /// As [`Card::open`].
    pub fn open_in(system: &System, bdf: Bdf, iommu: Iommu) -> Result<Self, VfioError> {
        let function = OpenFunction::open(system, bdf, iommu, pci::IDS)?;
        Ok(Self {
            ctl: function.bar(pci::BAR_CTL, u64::from(CTL_BYTES))?,
            mem: function.bar(pci::BAR_MEM, 4096)?,
            interrupts: function.interrupts(Vectors::MsiX, 1, VECTORS)?,
            function,
            iommu,
            pause: PAUSE.0,
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

    /// What all ones at `offset` of the control window mean: the card is gone, a register refused the read, or bytes that may be so.
    fn all_ones(&self, offset: u32) -> Result<u32, DeviceError> {
        self.function.alive().map_err(|_| DeviceError::Gone { offset })?;
        let bytes = ctl::ITEMS.iter().any(|item| item.bytes > 4 && (item.offset..item.offset + item.bytes).contains(&offset))
            || (mailbox::REQUEST..mailbox::REQ_LEN).contains(&offset);
        if bytes { Ok(u32::MAX) } else { Err(DeviceError::CtlRefused { access: "read", offset }) }
    }

    fn in_memory(&self, addr: u64, len: usize) -> Result<(), DeviceError> {
        let (len, memory_bytes) = (len as u64, self.mem.size());
        match addr.checked_add(len) {
            Some(end) if end <= memory_bytes => Ok(()),
            _ => Err(DeviceError::MemoryRange { addr, len, memory_bytes }),
        }
    }

    fn waited(&self, timeout: Duration) -> Result<bool, DeviceError> {
        let wait = |e: io::Error| VfioError::Kernel {
            function: self.function.function().bdf,
            what: "waiting for an interrupt",
            reason: e.to_string(),
        };
        Ok(!self.interrupts.wait(timeout).map_err(wait)?.is_empty())
    }
}

impl Device for Card {
    fn info(&self) -> DeviceInfo {
        let function = self.function.function();
        let uri = Uri::Pci { function: function.bdf, iommu: self.iommu };
        let how = match self.function.interface().name() {
            "none" => "WITHOUT AN IOMMU: it can reach all of this machine's memory",
            "iommufd" => "DMA confined by the IOMMU (iommufd)",
            _ => "DMA confined by the IOMMU (type 1)",
        };
        let description = format!("PCI card {} in this machine, {how}, {} interrupt vectors", function.id(), self.interrupts.vectors());
        DeviceInfo::new(uri.to_string(), description, "unknown", self.mem.size(), false)
    }

    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        if !offset.is_multiple_of(4) || offset >= CTL_BYTES {
            return Err(DeviceError::CtlRefused { access: "read", offset });
        }
        match self.ctl.read32(offset.into())? {
            u32::MAX => self.all_ones(offset),
            value => Ok(value),
        }
    }

    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        if !offset.is_multiple_of(4) || offset >= CTL_BYTES {
            return Err(DeviceError::CtlRefused { access: "write", offset });
        }
        self.pause = PAUSE.0;
        Ok(self.ctl.write32(offset.into(), value)?)
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.in_memory(addr, bytes.len())?;
        self.mem.read(addr, bytes)?;
        // A card that is gone reads as ones everywhere.
        if bytes.len() >= 4 && bytes.iter().all(|b| *b == 0xff) {
            self.function.alive()?;
        }
        Ok(())
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.in_memory(addr, bytes.len())?;
        Ok(self.mem.write(addr, bytes)?)
    }

    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        self.waited(self.pause)?;
        self.pause = (2 * self.pause).min(PAUSE.1);
        Ok(())
    }

    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        let came = self.waited(INTERRUPT_WAIT)?;
        if !came {
            self.function.alive()?;
        }
        Ok(came)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.function.reset()?;
        self.pause = PAUSE.0;
        // The mailbox answers as soon as the Security Kernel runs.
        for _ in 0..RESET_PAUSES {
            match self.ctl_read32(mailbox::STATUS) {
                Ok(_) => return Ok(()),
                Err(DeviceError::CtlRefused { .. }) => self.waited(PAUSE.1).map(|_| ())?,
                Err(error) => return Err(error),
            }
        }
        Err(DeviceError::MailboxTimeout { status: u32::MAX, polls: RESET_PAUSES })
    }
}
