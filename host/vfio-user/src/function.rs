//! A PCI function over vfio-user, for the card's driver.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use shef_device::pci::f2::{F2, Medium};
use shef_device::pci::{BAR_MEM, Function, PciCard};
use shef_device::progress::Progress;
use shef_device::ring::{DmaBuffer, DmaMemory};
use shef_device::{Device, DeviceError, Event, SharedMemory, Uri};

use crate::control::ControlSocket;
use crate::{Client, DEFAULT_TIMEOUT, VfioUserError, region};

/// A function that another process serves, with connected interrupts and with card memory mapped if
/// the server allows it.
pub struct VfioUserFunction {
    client: Client,
    vectors: Vec<Event>,
    memory: Option<SharedMemory>,
    control: ControlSocket,
    /// Address of the next buffer.
    next: u64,
}

/// First device address of host memory, so that address 0 is never mapped.
const FIRST: u64 = 1 << 32;
/// Addresses of buffers are multiples of this.
const ALIGN: u64 = 2 << 20;

/// Largest write that is posted: a register, not card memory through a window that is not mapped.
const POSTED: usize = 8;

impl VfioUserFunction {
    /// Connects to a server.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    pub fn open(path: &Path, timeout: Duration) -> Result<Self, VfioUserError> {
        let mut client = Client::connect(path, timeout)?;
        let count = client.vectors().min(shef_device::pci::VECTORS);
        let vectors =
            (0..count).map(|_| Event::new()).collect::<Result<Vec<_>, _>>().map_err(|error| {
                VfioUserError::System { what: "making events for interrupts", error }
            })?;
        client.connect_interrupts(0, &vectors.iter().collect::<Vec<_>>())?;
        let memory = client.map_region(region::BAR0 + u32::from(BAR_MEM))?;
        let control = ControlSocket::beside(path);
        Ok(Self { client, vectors, memory, control, next: FIRST })
    }

    /// Allocates at least `bytes` bytes of memory that the device also accesses, until
    /// [`VfioUserFunction::free`] or the end of the connection.
    ///
    /// # Errors
    /// [`VfioUserError::System`] if there is no memory, and the connection's errors.
    pub fn dma(&mut self, bytes: u64) -> Result<DmaBuffer, VfioUserError> {
        let buffer = self.place(bytes)?;
        self.client.dma_map(buffer.device_address(), buffer.memory())?;
        Ok(buffer)
    }

    /// Like [`VfioUserFunction::dma`], but the device requests every access by message, as it must
    /// if memory cannot be shared.
    ///
    /// # Errors
    /// As [`VfioUserFunction::dma`].
    pub fn dma_by_message(&mut self, bytes: u64) -> Result<DmaBuffer, VfioUserError> {
        let buffer = self.place(bytes)?;
        self.client.dma_map_by_message(buffer.device_address(), buffer.memory())?;
        Ok(buffer)
    }

    fn place(&mut self, bytes: u64) -> Result<DmaBuffer, VfioUserError> {
        let memory = SharedMemory::new(bytes.max(1).next_multiple_of(4096));
        let memory = memory
            .map_err(|error| VfioUserError::System { what: "making memory for DMA", error })?;
        let address = self.next;
        self.next += memory.len().next_multiple_of(ALIGN);
        Ok(DmaBuffer::new(Arc::new(memory), address))
    }

    /// Unmaps a buffer: after the call the device can no longer access it.
    ///
    /// # Errors
    /// The connection's.
    pub fn free(&mut self, buffer: &DmaBuffer) -> Result<(), VfioUserError> {
        self.client.dma_unmap(buffer.device_address(), buffer.bytes())
    }

    /// The connection.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Function for VfioUserFunction {
    type Memory = DmaBuffer;

    fn dma(&mut self, bytes: u64) -> Result<DmaBuffer, DeviceError> {
        Ok(VfioUserFunction::dma(self, bytes)?)
    }

    /// The server has a separate mapping: a late access of the device affects no other memory.
    fn release(&mut self, memory: DmaBuffer, _: bool) -> Result<(), DeviceError> {
        Ok(self.free(&memory)?)
    }

    fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.client.read(region::CONFIG, offset.into(), out)?)
    }

    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError> {
        Ok(self.client.write(region::CONFIG, offset.into(), data)?)
    }

    fn bar_bytes(&self, bar: u8) -> u64 {
        self.client.region(bar.into()).size
    }

    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        match &self.memory {
            Some(memory) if bar == BAR_MEM => Ok(memory.read(offset, out)?),
            _ => Ok(self.client.read(bar.into(), offset, out)?),
        }
    }

    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        match &self.memory {
            Some(memory) if bar == BAR_MEM => Ok(memory.write(offset, data)?),
            _ if data.len() <= POSTED => Ok(self.client.post(bar.into(), offset, data)?),
            _ => Ok(self.client.write(bar.into(), offset, data)?),
        }
    }

    fn wait_vector(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError> {
        match self.vectors.get(vector as usize) {
            Some(event) => Ok(self.client.wait(event, timeout)?),
            None => Ok(false),
        }
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(self.client.reset()?)
    }

    fn progress(&mut self) -> Option<Progress> {
        self.control.progress()
    }
}

/// Opens the card behind a socket.
///
/// # Errors
/// The errors of [`Client::connect`], and [`DeviceError::NotACard`] if the socket serves another
/// device.
pub fn open(path: &Path, timeout: Duration) -> Result<PciCard<VfioUserFunction>, DeviceError> {
    let function = VfioUserFunction::open(path, timeout)?;
    PciCard::open(
        function,
        &format!("vfio-user:{}", path.display()),
        "card served by another process",
        "unknown",
    )
}

/// Opens the card of [`Uri::VfioUser`], with the default time limit.
///
/// # Errors
/// As [`open`]; with a boot medium also those of [`Medium::read`] and [`F2::new`].
pub fn open_uri(socket: &Path, boot: Option<&Path>) -> Result<Box<dyn Device>, DeviceError> {
    let Some(boot) = boot else { return Ok(Box::new(open(socket, DEFAULT_TIMEOUT)?)) };
    let uri = Uri::VfioUser { socket: socket.to_owned(), boot: Some(boot.to_owned()) }.to_string();
    // The card is not opened, and so not reset, without a medium.
    let medium = Medium::read(boot)?;
    let function = VfioUserFunction::open(socket, DEFAULT_TIMEOUT)?;
    let f2 = F2::new(function, &format!("vfio-user:{}", socket.display()), medium)?;
    let description = "card served by another process, on AWS F2";
    Ok(Box::new(PciCard::open(f2, &uri, description, "unknown")?))
}
