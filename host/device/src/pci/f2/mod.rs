//! A card on F2 behind its PCI function: the additional needs of the shell.
//!
//! The Security Kernel is not in the image: after each reset of the function it boots from a medium
//! that the host writes. The shell routes an interrupt to a vector only after two registers of BAR2
//! are written.

pub mod adapter;

use std::time::Duration;

use super::{BAR_CTL, BAR_MSIX, COMMAND_MEMORY, Function, VECTOR_ACCELERATOR, command};
use crate::DeviceError;
use crate::progress::Progress;
use adapter::Window;

pub use adapter::Medium;

/// The accelerator's interrupt in the image.
const ACCELERATOR: u32 = 15;
/// Longest pause of a card without interrupts.
const POLL: Duration = Duration::from_millis(1);
/// Capability of PCI Express.
const EXPRESS: u8 = 0x10;

/// Registers of BAR2 (aws-fpga f2: sdk/apps/msix-interrupts, since 2.2.0).
mod bar2 {
    /// Identifier of the block.
    pub const ID: u64 = 0x2000;
    /// Its value.
    pub const ID_VALUE: u32 = 0x1fc2_0006;
    /// Mask of enabled user interrupts.
    pub const ENABLE: u64 = 0x2004;
    /// Vectors of the user interrupts, one a byte.
    pub const VECTORS: u64 = 0x2080;
}

/// BAR0 of a function.
struct Bar0<'a, F> {
    function: &'a mut F,
    card: &'a str,
}

impl<F: Function> Window for Bar0<'_, F> {
    fn read(&mut self, offset: u64) -> Result<u32, DeviceError> {
        word(self.function, BAR_CTL, offset)
    }

    fn write(&mut self, offset: u64, value: u32) -> Result<(), DeviceError> {
        self.function.bar_write(BAR_CTL, offset, &value.to_le_bytes())
    }

    fn card(&self) -> String {
        self.card.to_owned()
    }
}

fn word<F: Function>(function: &mut F, bar: u8, offset: u64) -> Result<u32, DeviceError> {
    let mut word = [0; 4];
    function.bar_read(bar, offset, &mut word)?;
    Ok(u32::from_le_bytes(word))
}

/// Whether a function is a card that waits for its boot medium.
///
/// # Errors
/// The transport's.
pub fn waits<F: Function>(function: &mut F) -> Result<bool, DeviceError> {
    if function.bar_bytes(BAR_CTL) <= adapter::PAGE {
        return Ok(false);
    }
    adapter::waits(&mut Bar0 { function, card: "" })
}

/// Waits for the adapter of a function that was reset. Returns the waiting time.
///
/// # Errors
/// As [`adapter::present`].
pub fn returned<F: Function>(function: &mut F, card: &str) -> Result<Duration, DeviceError> {
    adapter::present(&mut Bar0 { function, card }, adapter::RETURN)
}

/// Routes the user interrupts to the vectors of the same number. False if BAR2 has no such block:
/// the card is polled then.
///
/// # Errors
/// The transport's.
pub fn interrupts<F: Function>(function: &mut F) -> Result<bool, DeviceError> {
    if word(function, BAR_MSIX, bar2::ID)? != bar2::ID_VALUE {
        return Ok(false);
    }
    for group in 0..4 {
        let vectors: [u8; 4] = std::array::from_fn(|n| (4 * group + n) as u8);
        function.bar_write(BAR_MSIX, bar2::VECTORS + 4 * group as u64, &vectors)?;
    }
    function.bar_write(BAR_MSIX, bar2::ENABLE, &0xffff_u32.to_le_bytes())?;
    Ok(word(function, BAR_MSIX, bar2::ENABLE)? == 0xffff)
}

/// Maximum payload and maximum read request in bytes, from configuration space; none without the
/// capability of PCI Express. `read` reads at an offset.
///
/// # Errors
/// Those of `read`.
pub fn configured<E>(
    mut read: impl FnMut(u16, &mut [u8]) -> Result<(), E>,
) -> Result<Option<[u32; 2]>, E> {
    let mut at = [0];
    read(0x34, &mut at)?;
    // Capabilities are 4 bytes apart at least.
    for _ in 0..48 {
        let offset = u16::from(at[0] & 0xfc);
        if offset < 0x40 {
            break;
        }
        let mut capability = [0; 2];
        read(offset, &mut capability)?;
        if capability[0] == EXPRESS {
            let mut control = [0; 2];
            read(offset + 8, &mut control)?;
            let control = u32::from(u16::from_le_bytes(control));
            return Ok(Some([128 << (control >> 5 & 7), 128 << (control >> 12 & 7)]));
        }
        at[0] = capability[1];
    }
    Ok(None)
}

/// Compares what host and shell take for the parameters of the link.
///
/// # Errors
/// [`DeviceError::PcieParameters`].
pub fn same_parameters(host: [u32; 2], card: [u32; 2]) -> Result<(), DeviceError> {
    for (what, (host, card)) in
        ["maximum payload", "maximum read request"].into_iter().zip(host.into_iter().zip(card))
    {
        if host != card {
            return Err(DeviceError::PcieParameters { what, host, card });
        }
    }
    Ok(())
}

/// The function of a card on F2, with the boot medium of its image.
pub struct F2<F> {
    function: F,
    card: String,
    medium: Medium,
    polled: bool,
}

impl<F: Function> F2<F> {
    /// Takes an open function, resets it, and boots its kernel. `card` names it in errors.
    ///
    /// # Errors
    /// Those of [`adapter::present`] and [`adapter::boot`], [`DeviceError::PcieParameters`], and
    /// those of the transport.
    pub fn new(function: F, card: &str, medium: Medium) -> Result<Self, DeviceError> {
        let mut f2 = Self { function, card: card.to_owned(), medium, polled: false };
        f2.reset()?;
        Ok(f2)
    }

    /// Whether the card has no interrupts.
    pub fn polled(&self) -> bool {
        self.polled
    }

    /// Brings a function that was reset to a booted kernel.
    fn begin(&mut self) -> Result<(), DeviceError> {
        command(&mut self.function, COMMAND_MEMORY, 0)?;
        let mut window = Bar0 { function: &mut self.function, card: &self.card };
        adapter::present(&mut window, adapter::RETURN)?;
        let card = adapter::pcie(&mut window)?;
        let host = configured(|offset, out| self.function.config_read(offset, out))?;
        if let Some(host) = host {
            same_parameters(host, card)?;
        }
        self.polled = !interrupts(&mut self.function)?;
        let mut window = Bar0 { function: &mut self.function, card: &self.card };
        adapter::boot(&mut window, &self.medium, adapter::BOOT)
    }
}

impl<F: Function> Function for F2<F> {
    type Memory = F::Memory;

    fn dma(&mut self, bytes: u64) -> Result<F::Memory, DeviceError> {
        self.function.dma(bytes)
    }

    fn release(&mut self, memory: F::Memory, quiet: bool) -> Result<(), DeviceError> {
        self.function.release(memory, quiet)
    }

    fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError> {
        self.function.config_read(offset, out)
    }

    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError> {
        self.function.config_write(offset, data)
    }

    fn bar_bytes(&self, bar: u8) -> u64 {
        self.function.bar_bytes(bar)
    }

    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        self.function.bar_read(bar, offset, out)
    }

    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        self.function.bar_write(bar, offset, data)
    }

    fn wait_vector(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError> {
        if self.polled {
            std::thread::sleep(timeout.min(POLL));
            return Ok(true);
        }
        let vector = if vector == VECTOR_ACCELERATOR { ACCELERATOR } else { vector };
        self.function.wait_vector(vector, timeout)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.function.reset()?;
        self.begin()
    }

    fn progress(&mut self) -> Option<Progress> {
        self.function.progress()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::adapter::{PAGE, reg};
    use super::*;
    use crate::OutOfRange;
    use crate::pci::{BAR_MEM, PciCard};
    use crate::ring::DmaMemory;

    struct NoMemory;

    impl DmaMemory for NoMemory {
        fn device_address(&self) -> u64 {
            0
        }
        fn bytes(&self) -> u64 {
            0
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
            Err(OutOfRange { offset, len: out.len() as u64, size: 0 })
        }
        fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
            Err(OutOfRange { offset, len: bytes.len() as u64, size: 0 })
        }
        fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
            Err(OutOfRange { offset, len: 4, size: 0 })
        }
    }

    /// A function with the adapter's page, the block of BAR2 and configuration space.
    struct Model {
        config: Vec<u8>,
        medium: Vec<u8>,
        bar2: Vec<u8>,
        running: bool,
        writes: u32,
        boots: u32,
        shell: u32,
        waited: Mutex<Vec<u32>>,
    }

    impl Model {
        fn new() -> Self {
            let mut config = vec![0; 256];
            config[0x34] = 0x40;
            config[0x40..0x42].copy_from_slice(&[0x11, 0x60]);
            config[0x60..0x62].copy_from_slice(&[EXPRESS, 0]);
            // MPS 256, MRRS 512.
            config[0x68..0x6a].copy_from_slice(&(1_u16 << 5 | 2 << 12).to_le_bytes());
            let mut bar2 = vec![0; 0x1_0000];
            bar2[0x2000..0x2004].copy_from_slice(&bar2::ID_VALUE.to_le_bytes());
            Self {
                config,
                medium: vec![0; 1 << 16],
                bar2,
                running: false,
                writes: 0,
                boots: 0,
                shell: 2 << 4 | 1,
                waited: Mutex::default(),
            }
        }
    }

    impl Function for Model {
        type Memory = NoMemory;
        fn dma(&mut self, _: u64) -> Result<NoMemory, DeviceError> {
            Ok(NoMemory)
        }
        fn release(&mut self, _: NoMemory, _: bool) -> Result<(), DeviceError> {
            Ok(())
        }
        fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError> {
            let offset = usize::from(offset);
            out.copy_from_slice(&self.config[offset..offset + out.len()]);
            Ok(())
        }
        fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError> {
            let offset = usize::from(offset);
            self.config[offset..offset + data.len()].copy_from_slice(data);
            Ok(())
        }
        fn bar_bytes(&self, bar: u8) -> u64 {
            if bar == BAR_MEM { 1 << 20 } else { 64 << 20 }
        }
        fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
            if self.config[4] & COMMAND_MEMORY as u8 == 0 {
                out.fill(0xff);
                return Ok(());
            }
            let status = 9 | if self.running { 0x14 } else { 0 };
            let at = offset as usize;
            let value = match (bar, offset) {
                (BAR_MSIX, _) => u32::from_le_bytes(self.bar2[at..at + 4].try_into().unwrap()),
                (_, o) if o == PAGE + reg::ID => adapter::ID,
                (_, o) if o == PAGE + reg::VERSION => 1,
                (_, o) if o == PAGE + reg::STATUS => status,
                (_, o) if o == PAGE + reg::PCIE => self.shell,
                (_, o) if o == PAGE + reg::MEDIUM_WORDS => 1 << 14,
                (_, o) if o == PAGE + reg::MEDIUM_WRITES => self.writes,
                (_, o) if o >= adapter::MEDIUM => {
                    let at = (o - adapter::MEDIUM) as usize;
                    u32::from_le_bytes(self.medium[at..at + 4].try_into().unwrap())
                }
                _ => 0,
            };
            out.copy_from_slice(&value.to_le_bytes()[..out.len()]);
            Ok(())
        }
        fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
            let at = offset as usize;
            match (bar, offset) {
                (BAR_MSIX, _) => self.bar2[at..at + data.len()].copy_from_slice(data),
                (_, o) if o == PAGE + reg::CONTROL => {
                    self.running = data[0] == 1;
                    self.boots += u32::from(self.running);
                    self.writes *= u32::from(self.running);
                }
                (_, o) if o >= adapter::MEDIUM => {
                    let at = (o - adapter::MEDIUM) as usize;
                    self.medium[at..at + 4].copy_from_slice(data);
                    self.writes += 1;
                }
                _ => {}
            }
            Ok(())
        }
        fn wait_vector(&mut self, vector: u32, _: Duration) -> Result<bool, DeviceError> {
            self.waited.lock().unwrap().push(vector);
            Ok(false)
        }
        fn reset(&mut self) -> Result<(), DeviceError> {
            self.running = false;
            self.bar2[0x2004] = 0;
            self.config[4] = 0;
            Ok(())
        }
    }

    fn opened(model: Model) -> Result<F2<Model>, DeviceError> {
        F2::new(model, "0000:34:00.0", Medium::new(&[3; 4000], &[1; 128], &[2; 300])?)
    }

    #[test]
    fn a_card_boots_after_each_reset_and_its_interrupts_are_routed() {
        let mut f2 = opened(Model::new()).unwrap();
        assert!(!f2.polled());
        assert_eq!(f2.function.bar2[0x2080..0x2090], std::array::from_fn::<u8, 16, _>(|n| n as u8));
        f2.wait_vector(VECTOR_ACCELERATOR, Duration::ZERO).unwrap();
        f2.wait_vector(3, Duration::ZERO).unwrap();
        assert_eq!(*f2.function.waited.lock().unwrap(), [15, 3]);
        f2.reset().unwrap();
        assert_eq!((f2.function.boots, f2.function.bar2[0x2004]), (2, 0xff));
        assert_eq!(f2.function.medium[12..4012], [3; 4000]);
    }

    #[test]
    fn a_card_that_waits_for_its_medium_names_the_parameter() {
        let error = PciCard::open(Model::new(), "pci:0000:34:00.0", "", "").err().unwrap();
        assert_eq!(error.code(), "SHEF-DEV-025");
        assert!(
            DeviceError::CODES
                .iter()
                .any(|code| code.id == error.code() && code.help.contains("boot="))
        );
        // One that has booted does not wait.
        let f2 = opened(Model::new()).unwrap();
        PciCard::open(f2, "pci:0000:34:00.0", "", "").unwrap();
    }

    #[test]
    fn a_card_without_the_block_of_bar2_is_polled() {
        let mut model = Model::new();
        model.bar2[0x2000] = 0;
        let mut f2 = opened(model).unwrap();
        assert!(f2.polled() && f2.wait_vector(3, Duration::ZERO).unwrap());
        assert_eq!(f2.function.waited.lock().unwrap().len(), 0);
    }

    #[test]
    fn other_parameters_of_the_link_are_refused() {
        let mut model = Model::new();
        model.shell = 2 << 4 | 2;
        let error = opened(model).err().unwrap();
        assert_eq!(error.code(), "SHEF-DEV-023");
        assert!(
            error.to_string().contains("maximum payload is 256 bytes for the host and 512"),
            "{error}"
        );
        // Without the capability there is nothing to compare, and a list that does not end ends.
        let mut model = Model::new();
        model.config[0x41] = 0x40;
        opened(model).unwrap();
    }
}
