//! The card as a PCI function: what its BARs are, and the [`Device`] that every way to a PCI function shares.
//!
//! | BAR | bytes | what |
//! |---|---|---|
//! | 0 | 64 KiB | control window: the Shield's registers and the kernel's mailbox |
//! | 2 | 64 KiB | MSI-X table at 0, pending bits at 0x8000 |
//! | 4 | as card memory | window to card memory, prefetchable, may be mapped |
//!
//! All are 64-bit BARs, as on AWS F2.

use std::time::Duration;

use shef_regs::ctl;

use crate::{CTL_BYTES, Device, DeviceError, DeviceInfo, mailbox};

/// Vendor and device numbers under which a card answers: the application function of AWS F2 (Amazon's vendor number, in the range of devices that
/// is free for designs), and so the simulated card too, which shows the first.
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

/// How long one wait for the accelerator's interrupt takes at most.
const INTERRUPT_WAIT: Duration = Duration::from_millis(20);
/// First and longest pause of a host that waits for something without an interrupt.
const PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));
/// Pauses after a reset until a card that does not answer is given up: 10 s.
const RESET_PAUSES: u32 = 10_000;

/// A PCI function in the hands of a program: the kernel's VFIO, vfio-user, or what else reaches one.
pub trait Function {
    /// Reads configuration space.
    ///
    /// # Errors
    /// Those of the transport.
    fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes configuration space.
    ///
    /// # Errors
    /// Those of the transport.
    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError>;

    /// Bytes of a BAR; 0 where there is none.
    fn bar_bytes(&self, bar: u8) -> u64;

    /// Reads a BAR. The range is inside it. Accesses of four aligned bytes reach the device as one.
    ///
    /// # Errors
    /// Those of the transport. What a device refuses reads as all ones.
    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes a BAR; as [`Function::bar_read`].
    ///
    /// # Errors
    /// Those of the transport. What a device refuses is dropped.
    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError>;

    /// Waits for an interrupt vector, at most so long. Whether it was raised since this was last asked.
    ///
    /// # Errors
    /// Those of the transport.
    fn wait_vector(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError>;

    /// Resets the function.
    ///
    /// # Errors
    /// Those of the transport.
    fn reset(&mut self) -> Result<(), DeviceError>;
}

/// Offset of class and revision in configuration space.
const CLASS_REVISION: u16 = 8;
/// Offset of the command register in configuration space.
const COMMAND: u16 = 4;
/// Command: the function answers memory accesses.
const COMMAND_MEMORY: u16 = 2;
/// Command: the function may access memory itself.
const COMMAND_MASTER: u16 = 4;

/// A card behind a PCI function.
pub struct PciCard<F> {
    function: F,
    info: DeviceInfo,
    pause: Duration,
}

impl<F: Function> PciCard<F> {
    /// Takes a function that is open: checks that it has the card's BARs and lets it answer memory accesses and access memory.
    /// `info` is what is said about it; the size of card memory is read from the function.
    ///
    /// # Errors
    /// [`DeviceError::Gone`], [`DeviceError::NotACard`] and those of the transport.
    pub fn open(function: F, uri: &str, description: &str, root_of_trust: &str) -> Result<Self, DeviceError> {
        let memory_bytes = function.bar_bytes(BAR_MEM);
        let info = DeviceInfo::new(uri, description, root_of_trust, memory_bytes, false);
        let mut card = Self { function, info, pause: PAUSE.0 };
        card.present(0)?;
        let bars = [(BAR_CTL, u64::from(CTL_BYTES)), (BAR_MEM, 4096)];
        for (bar, need) in bars {
            let bytes = card.function.bar_bytes(bar);
            if bytes < need {
                return Err(DeviceError::NotACard { uri: uri.to_owned(), bar, bytes, need });
            }
        }
        let mut command = [0; 2];
        card.function.config_read(COMMAND, &mut command)?;
        let on = u16::from_le_bytes(command) | COMMAND_MEMORY | COMMAND_MASTER;
        card.function.config_write(COMMAND, &on.to_le_bytes())?;
        Ok(card)
    }

    /// The function.
    pub fn function(&mut self) -> &mut F {
        &mut self.function
    }

    /// Whether the function still answers on the bus. Class and revision always come from the hardware, and all ones is no class; the vendor number may be one
    /// that the operating system remembers.
    fn present(&mut self, offset: u32) -> Result<(), DeviceError> {
        let mut class = [0; 4];
        self.function.config_read(CLASS_REVISION, &mut class)?;
        if class == [0xff; 4] { Err(DeviceError::Gone { offset }) } else { Ok(()) }
    }

    fn word(&mut self, offset: u32) -> Result<u32, DeviceError> {
        let mut word = [0; 4];
        self.function.bar_read(BAR_CTL, offset.into(), &mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn check(&self, addr: u64, len: usize) -> Result<(), DeviceError> {
        let memory_bytes = self.info.memory_bytes;
        if addr.checked_add(len as u64).is_some_and(|end| end <= memory_bytes) {
            Ok(())
        } else {
            Err(DeviceError::MemoryRange { addr, len: len as u64, memory_bytes })
        }
    }
}

impl<F: Function> Device for PciCard<F> {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        let refused = DeviceError::CtlRefused { access: "read", offset };
        if !offset.is_multiple_of(4) || offset >= CTL_BYTES {
            return Err(refused);
        }
        let value = self.word(offset)?;
        if value != u32::MAX {
            return Ok(value);
        }
        // All ones: the device has left, or these are bytes that may be so, or the register refuses.
        self.present(offset)?;
        let bytes = ctl::ITEMS.iter().any(|item| item.bytes > 4 && (item.offset..item.offset + item.bytes).contains(&offset))
            || (mailbox::REQUEST..mailbox::REQ_LEN).contains(&offset);
        if bytes { Ok(value) } else { Err(refused) }
    }

    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        if !offset.is_multiple_of(4) || offset >= CTL_BYTES {
            return Err(DeviceError::CtlRefused { access: "write", offset });
        }
        self.pause = PAUSE.0;
        self.function.bar_write(BAR_CTL, offset.into(), &value.to_le_bytes())
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check(addr, bytes.len())?;
        self.function.bar_read(BAR_MEM, addr, bytes)?;
        // A card that is gone reads as ones everywhere.
        if bytes.len() >= 4 && bytes.iter().all(|b| *b == 0xff) { self.present(0) } else { Ok(()) }
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check(addr, bytes.len())?;
        self.function.bar_write(BAR_MEM, addr, bytes)
    }

    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        self.function.wait_vector(VECTOR_ACCELERATOR, self.pause)?;
        self.pause = (2 * self.pause).min(PAUSE.1);
        Ok(())
    }

    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        let came = self.function.wait_vector(VECTOR_ACCELERATOR, INTERRUPT_WAIT)?;
        if !came {
            self.present(0)?;
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
                Err(DeviceError::CtlRefused { .. }) => std::thread::sleep(PAUSE.1),
                Err(error) => return Err(error),
            }
        }
        Err(DeviceError::MailboxTimeout { status: u32::MAX, polls: RESET_PAUSES })
    }
}
