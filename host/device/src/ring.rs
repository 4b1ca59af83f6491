//! Descriptor rings: a program and the card's DMA engine exchange work through host memory.
//!
//! A queue is one piece of host memory that the card accesses: `entries` descriptors of 64 bytes
//! (submission), then as many completions of 16 bytes. The program writes descriptors and then
//! rings the doorbell with its new tail, once for many. The card takes them in order, writes
//! completions, and raises an interrupt, once for many. No other register access is needed, and the
//! host reads no result from the card.
//!
//! ```text
//! descriptor   op u8 | flags u8 | 0 u16 | tag u32 | host address u64 | card address u64 | bytes u32 | 0 ...      little-endian
//! completion   tag u32 | status u16 | retired u16 | bytes u32 | sequence u32
//! ```
//!
//! A completion is valid when its sequence number is one more than the previous one's. `retired` is
//! the number of descriptors that it ends: more than one if [`CHAIN`] joined them. Queues with
//! lower numbers have priority, a batch at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{DeviceError, OutOfRange, SharedMemory};

/// Bytes of a descriptor.
pub const DESCRIPTOR: u64 = 64;
/// Bytes of a completion.
pub const COMPLETION: u64 = 16;
/// Number of queues of a card.
pub const QUEUES: u32 = shef_regs::dma::COUNT;
/// Most descriptors of a queue.
pub const MAX_ENTRIES: u32 = 4096;
/// Most bytes that one descriptor moves.
pub const MAX_BYTES: u32 = 1 << 30;
/// Flag of a descriptor: the next one belongs to it, and both share one completion.
pub const CHAIN: u8 = 1;
/// Operation: host memory to card memory.
pub const OP_TO_CARD: u8 = 1;
/// Operation: card memory to host memory.
pub const OP_TO_HOST: u8 = 2;
/// Operation: none; ends once all earlier ones have.
pub const OP_NOTHING: u8 = 3;

/// Registers of the queues in the control window: those of queue n begin at `BASE + n * STRIDE`.
pub mod reg {
    use shef_regs::dma;
    pub use shef_regs::dma::{
        BASE, CONTROL, ENTRIES, INTERRUPT, INTERRUPT_BATCH, INTERRUPT_VECTOR, RING_HI, RING_LO,
        STATUS, STRIDE, TAIL,
    };
    /// One past the last register.
    pub const END: u32 = BASE + dma::COUNT * STRIDE;
    /// [`CONTROL`] command: turns the queue off.
    pub const DISABLE: u32 = dma::CONTROL_COMMAND_OFF;
    /// [`CONTROL`] command: turns the queue on, empty.
    pub const ENABLE: u32 = dma::CONTROL_COMMAND_ENABLE;
    /// [`CONTROL`] command: ends all submitted descriptors with [`super::Status::Cancelled`].
    pub const CANCEL: u32 = dma::CONTROL_COMMAND_CANCEL;
    /// [`STATUS`]: the queue is off.
    pub const OFF: u32 = dma::STATUS_LIFE_OFF;
    /// [`STATUS`]: the queue is on.
    pub const ON: u32 = dma::STATUS_LIFE_ON;
    /// [`STATUS`]: the card could not reach the ring, and the queue has stopped.
    pub const FAILED: u32 = dma::STATUS_LIFE_FAILED;
}

/// How a descriptor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// All bytes were transferred.
    Done = 0,
    /// The descriptor is malformed.
    Malformed = 1,
    /// The card could not reach host memory.
    Host = 2,
    /// The range is not in card memory.
    Card = 3,
    /// Host memory returned poisoned data.
    Poisoned = 4,
    /// The descriptor was cancelled.
    Cancelled = 5,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 6] =
        [Self::Done, Self::Malformed, Self::Host, Self::Card, Self::Poisoned, Self::Cancelled];
}

/// Memory of this program that a device also accesses.
pub trait DmaMemory {
    /// Device address of the first byte.
    fn device_address(&self) -> u64;
    /// Size in bytes.
    fn bytes(&self) -> u64;
    /// Copies bytes out.
    ///
    /// # Errors
    /// [`OutOfRange`].
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange>;
    /// Copies bytes in.
    ///
    /// # Errors
    /// [`OutOfRange`].
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange>;
    /// Loads a word with acquire ordering: later accesses are not made before it.
    ///
    /// # Errors
    /// [`OutOfRange`].
    fn load(&self, offset: u64) -> Result<u32, OutOfRange>;
    /// Orders earlier writes before later ones, for the device.
    fn publish(&self) {
        crate::memory::publish();
    }
}

impl<M: DmaMemory> DmaMemory for Arc<M> {
    fn device_address(&self) -> u64 {
        M::device_address(self)
    }

    fn bytes(&self) -> u64 {
        M::bytes(self)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        M::read(self, offset, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        M::write(self, offset, bytes)
    }

    fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        M::load(self, offset)
    }

    fn publish(&self) {
        M::publish(self);
    }
}

/// Shared memory at a device address.
#[derive(Debug, Clone)]
pub struct DmaBuffer {
    memory: Arc<SharedMemory>,
    address: u64,
}

impl DmaBuffer {
    /// Memory whose first byte has the device address `address`.
    #[must_use]
    pub fn new(memory: Arc<SharedMemory>, address: u64) -> Self {
        Self { memory, address }
    }

    /// The memory.
    #[must_use]
    pub fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }
}

impl DmaMemory for DmaBuffer {
    fn device_address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> u64 {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.memory.read(offset, out)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        self.memory.write(offset, bytes)
    }

    fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        self.memory.load(offset)
    }
}

/// A queue's view of its card: registers in the control window, and interrupts. Every
/// [`Function`](crate::pci::Function) has both.
pub trait Registers {
    /// Reads a register; all ones if it does not exist.
    ///
    /// # Errors
    /// The transport's.
    fn register(&mut self, offset: u32) -> Result<u32, DeviceError>;

    /// Writes a register; a write to one that does not exist has no effect.
    ///
    /// # Errors
    /// The transport's.
    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError>;

    /// Waits for an interrupt, like [`Function::wait_vector`](crate::pci::Function::wait_vector).
    ///
    /// # Errors
    /// The transport's.
    fn interrupted(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError>;
}

/// A unit of work for the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// [`OP_TO_CARD`], [`OP_TO_HOST`] or [`OP_NOTHING`].
    pub op: u8,
    /// [`CHAIN`] or 0.
    pub flags: u8,
    /// Chosen by the program, repeated in the completion.
    pub tag: u32,
    /// First address in host memory, as a device address.
    pub host: u64,
    /// First address in card memory.
    pub card: u64,
    /// Number of bytes, at most [`MAX_BYTES`].
    pub bytes: u32,
}

impl Descriptor {
    /// Encodes it for the ring.
    pub fn encode(&self) -> [u8; DESCRIPTOR as usize] {
        let mut out = [0; DESCRIPTOR as usize];
        out[0] = self.op;
        out[1] = self.flags;
        out[4..8].copy_from_slice(&self.tag.to_le_bytes());
        out[8..16].copy_from_slice(&self.host.to_le_bytes());
        out[16..24].copy_from_slice(&self.card.to_le_bytes());
        out[24..28].copy_from_slice(&self.bytes.to_le_bytes());
        out
    }

    /// Decodes a descriptor.
    ///
    /// # Errors
    /// The tag of a malformed one, for the completion that reports it.
    pub fn decode(bytes: &[u8; DESCRIPTOR as usize]) -> Result<Self, u32> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let d = Self {
            op: bytes[0],
            flags: bytes[1],
            tag: word(4),
            host: long(8),
            card: long(16),
            bytes: word(24),
        };
        let known = (OP_TO_CARD..=OP_NOTHING).contains(&d.op)
            && d.flags & !CHAIN == 0
            && d.bytes <= MAX_BYTES;
        if known && d.encode() == *bytes { Ok(d) } else { Err(word(4)) }
    }
}

/// How one descriptor, or a chain of them, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Tag of the last descriptor, or of the one that failed.
    pub tag: u32,
    /// How it ended.
    pub status: Status,
    /// Number of descriptors that it ends.
    pub retired: u16,
    /// Number of bytes transferred.
    pub bytes: u32,
}

impl Completion {
    /// Encodes it for the ring, without its sequence number.
    pub fn encode(&self) -> [u8; 12] {
        let mut out = [0; 12];
        out[0..4].copy_from_slice(&self.tag.to_le_bytes());
        out[4..6].copy_from_slice(&(self.status as u16).to_le_bytes());
        out[6..8].copy_from_slice(&self.retired.to_le_bytes());
        out[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        out
    }
}

/// The program's side of a queue.
pub struct Queue<M> {
    ring: M,
    index: u32,
    entries: u32,
    vector: u32,
    /// Descriptors written, submitted, and ended; the counters wrap.
    written: u32,
    told: u32,
    over: u32,
    /// Number of completions taken.
    taken: u32,
}

impl<M> Queue<M> {
    /// Bytes of host memory for a queue.
    pub const fn bytes(entries: u32) -> u64 {
        entries as u64 * (DESCRIPTOR + COMPLETION)
    }

    /// Whether the card has queue `index`.
    pub(crate) fn exists<R: Registers>(card: &mut R, index: u32) -> Result<bool, DeviceError> {
        Ok(index < QUEUES && status(card, index)? != u32::MAX)
    }
}

/// The status register of a queue; all ones if the queue does not exist.
fn status<R: Registers>(card: &mut R, index: u32) -> Result<u32, DeviceError> {
    card.register(reg::BASE + index * reg::STRIDE + reg::STATUS)
}

impl<M: DmaMemory> Queue<M> {
    /// Turns queue `index` on, in `ring`. The card raises `vector` once per `batch` completions or
    /// when its work is done; with a `batch` of 0 it raises no interrupts.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if the numbers are invalid or the card refuses, and the transport's
    /// errors.
    pub fn open<R: Registers>(
        card: &mut R,
        index: u32,
        entries: u32,
        ring: M,
        vector: u32,
        batch: u16,
    ) -> Result<Self, DeviceError> {
        let bad = |what: &str| DeviceError::Queue { index, what: what.to_owned() };
        if index >= QUEUES || !entries.is_power_of_two() || !(2..=MAX_ENTRIES).contains(&entries) {
            return Err(bad(
                "expected a queue from 0 to 3 and a power of two from 2 to 4096 descriptors",
            ));
        }
        if ring.bytes() < Self::bytes(entries)
            || !ring.device_address().is_multiple_of(4096)
            || vector > 0xffff
        {
            return Err(bad("its memory is too small or not page-aligned"));
        }
        // Data of an earlier queue must not look like completions.
        ring.write(
            u64::from(entries) * DESCRIPTOR,
            &vec![0; (u64::from(entries) * COMPLETION) as usize],
        )?;
        let queue = Self { ring, index, entries, vector, written: 0, told: 0, over: 0, taken: 0 };
        let address = queue.ring.device_address();
        queue.turn_off(card)?;
        queue.set(card, reg::RING_LO, address as u32)?;
        queue.set(card, reg::RING_HI, (address >> 32) as u32)?;
        queue.set(card, reg::ENTRIES, entries)?;
        let interrupt = reg::INTERRUPT_BATCH.put(batch.into()) | reg::INTERRUPT_VECTOR.put(vector);
        queue.set(card, reg::INTERRUPT, interrupt)?;
        queue.set(card, reg::CONTROL, reg::ENABLE)?;
        if queue.status(card)? == reg::ON {
            Ok(queue)
        } else {
            Err(bad("the card did not turn it on"))
        }
    }

    fn set<R: Registers>(
        &self,
        card: &mut R,
        register: u32,
        value: u32,
    ) -> Result<(), DeviceError> {
        card.set_register(reg::BASE + self.index * reg::STRIDE + register, value)
    }

    /// The queue's status, of a card that is present.
    fn status<R: Registers>(&self, card: &mut R) -> Result<u32, DeviceError> {
        match status(card, self.index)? {
            u32::MAX => Err(DeviceError::Gone {
                offset: reg::BASE + self.index * reg::STRIDE + reg::STATUS,
            }),
            status => Ok(status),
        }
    }

    /// Turns the queue off, and waits for the card's confirmation: until then the card may still
    /// access the ring and the memory that descriptors name.
    fn turn_off<R: Registers>(&self, card: &mut R) -> Result<(), DeviceError> {
        /// Bus transactions in flight end sooner.
        const PATIENCE: Duration = Duration::from_secs(10);
        self.set(card, reg::CONTROL, reg::DISABLE)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match self.status(card)? {
                reg::OFF => return Ok(()),
                _ if Instant::now() < end => std::thread::yield_now(),
                status => {
                    let what = format!(
                        "expected it to be off, its status is still {status} after 10 s: reset the card before its memory is used again"
                    );
                    return Err(DeviceError::Queue { index: self.index, what });
                }
            }
        }
    }

    /// Number of descriptors that can be pushed now.
    pub fn room(&self) -> u32 {
        self.entries - self.written.wrapping_sub(self.over)
    }

    /// Number of descriptors that have not ended.
    pub fn pending(&self) -> u32 {
        self.written.wrapping_sub(self.over)
    }

    /// Writes a descriptor into the ring; [`Queue::submit`] submits it. Returns false if the ring
    /// is full. Makes no system call.
    ///
    /// # Errors
    /// [`OutOfRange`] does not occur while the memory keeps its size.
    pub fn push(&mut self, descriptor: &Descriptor) -> Result<bool, OutOfRange> {
        if self.room() == 0 {
            return Ok(false);
        }
        let slot = self.written & (self.entries - 1);
        self.ring.write(u64::from(slot) * DESCRIPTOR, &descriptor.encode())?;
        self.written = self.written.wrapping_add(1);
        Ok(true)
    }

    /// Submits all pushed descriptors with one register write.
    ///
    /// # Errors
    /// The transport's.
    pub fn submit<R: Registers>(&mut self, card: &mut R) -> Result<(), DeviceError> {
        if self.told != self.written {
            // A device that sees the doorbell must see the descriptors.
            self.ring.publish();
            self.set(card, reg::TAIL, self.written)?;
            self.told = self.written;
        }
        Ok(())
    }

    /// Takes the next completion, if there is one. Makes no system call.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] for an impossible completion: the card is not trusted.
    pub fn poll(&mut self) -> Result<Option<Completion>, DeviceError> {
        let slot = self.taken & (self.entries - 1);
        let at = u64::from(self.entries) * DESCRIPTOR + u64::from(slot) * COMPLETION;
        if self.ring.load(at + 12)? != self.taken.wrapping_add(1) {
            return Ok(None);
        }
        let mut bytes = [0; 12];
        self.ring.read(at, &mut bytes)?;
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let bad = |what: String| DeviceError::Queue { index: self.index, what };
        let status = Status::ALL
            .get(usize::from(half(4)))
            .ok_or_else(|| bad(format!("a completion has the status {}", half(4))))?;
        let retired = half(6);
        if retired == 0 || u32::from(retired) > self.told.wrapping_sub(self.over) {
            return Err(bad(format!(
                "a completion ends {retired} descriptors of {}",
                self.told.wrapping_sub(self.over)
            )));
        }
        self.taken = self.taken.wrapping_add(1);
        self.over = self.over.wrapping_add(retired.into());
        Ok(Some(Completion { tag: word(0), status: *status, retired, bytes: word(8) }))
    }

    /// Checks with one register read that the card still has the queue on.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if it is off, and the transport's errors.
    pub fn check<R: Registers>(&self, card: &mut R) -> Result<(), DeviceError> {
        if self.status(card)? == reg::ON { Ok(()) } else { Err(self.stopped()) }
    }

    fn stopped(&self) -> DeviceError {
        let what = "it has stopped: the card was reset or could not reach the ring".to_owned();
        DeviceError::Queue { index: self.index, what }
    }

    /// Waits for a completion, for at most `timeout`. A lost interrupt costs time, but no
    /// completion.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if the queue has failed, and the transport's errors.
    pub fn wait<R: Registers>(
        &mut self,
        card: &mut R,
        timeout: Duration,
    ) -> Result<Option<Completion>, DeviceError> {
        /// How long to wait for an interrupt before checking the queue.
        const PATIENCE: Duration = Duration::from_millis(50);
        /// How often to yield the processor before waiting for an interrupt: in total about as long
        /// as a wake-up takes.
        const YIELDS: usize = 50;
        let end = Instant::now() + timeout;
        let mut checked = Instant::now();
        loop {
            if let Some(completion) = self.poll()? {
                return Ok(Some(completion));
            }
            let left = end.saturating_duration_since(Instant::now());
            if self.pending() == 0 || left.is_zero() {
                return Ok(None);
            }
            for _ in 0..YIELDS {
                std::thread::yield_now();
                if let Some(completion) = self.poll()? {
                    return Ok(Some(completion));
                }
            }
            let came = card.interrupted(self.vector, left.min(PATIENCE))?;
            // A card that raises interrupts constantly says nothing about its queue.
            if came && checked.elapsed() < PATIENCE {
                continue;
            }
            checked = Instant::now();
            if self.status(card)? != reg::ON {
                // The queue may have failed after a last completion.
                return match self.poll()? {
                    None => Err(self.stopped()),
                    completion => Ok(completion),
                };
            }
        }
    }

    /// Ends all submitted descriptors; completions still arrive, most of them as
    /// [`Status::Cancelled`].
    ///
    /// # Errors
    /// The transport's.
    pub fn cancel<R: Registers>(&mut self, card: &mut R) -> Result<(), DeviceError> {
        self.submit(card)?;
        self.set(card, reg::CONTROL, reg::CANCEL)
    }

    /// Waits until no descriptor is pending, turns the queue off and returns its memory. Passes the
    /// remaining completions to `each`.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if this takes longer than `timeout` (the queue is off then too) or
    /// the card does not turn the queue off, and the transport's errors.
    pub fn drain<R: Registers>(
        mut self,
        card: &mut R,
        timeout: Duration,
        mut each: impl FnMut(Completion),
    ) -> Result<M, DeviceError> {
        let end = Instant::now() + timeout;
        let result = loop {
            if self.pending() == 0 {
                break Ok(());
            }
            match self.wait(card, end.saturating_duration_since(Instant::now())) {
                Ok(Some(completion)) => each(completion),
                Ok(None) => {
                    let what = format!(
                        "{} descriptors are incomplete after {} ms",
                        self.pending(),
                        timeout.as_millis()
                    );
                    break Err(DeviceError::Queue { index: self.index, what });
                }
                Err(error) => break Err(error),
            }
        };
        self.turn_off(card)?;
        result.map(|()| self.ring)
    }

    /// Turns the queue off, even with pending descriptors. After `Ok`, the card no longer uses its
    /// memory.
    ///
    /// # Errors
    /// [`DeviceError::Queue`] if the card does not turn the queue off, and the transport's errors.
    pub fn close<R: Registers>(self, card: &mut R) -> Result<(), DeviceError> {
        self.turn_off(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn descriptors_read_back(op in 1u8..4, flags in 0u8..2, tag: u32, host: u64, card: u64, bytes in 0u32..=MAX_BYTES) {
            let d = Descriptor { op, flags, tag, host, card, bytes };
            prop_assert_eq!(Descriptor::decode(&d.encode()), Ok(d));
        }

        #[test]
        fn any_bytes_are_a_descriptor_or_none(bytes in proptest::collection::vec(any::<u8>(), 64)) {
            let bytes: [u8; 64] = bytes.try_into().unwrap();
            match Descriptor::decode(&bytes) {
                Ok(d) => prop_assert_eq!(d.encode(), bytes),
                Err(tag) => prop_assert_eq!(tag.to_le_bytes(), &bytes[4..8]),
            }
        }
    }

    /// A card that raises interrupts constantly, and whose queue is on or has failed.
    struct Storm(u32);

    impl Registers for Storm {
        fn register(&mut self, _: u32) -> Result<u32, DeviceError> {
            Ok(self.0)
        }

        fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
            if (offset - reg::BASE) % reg::STRIDE == reg::CONTROL {
                self.0 = value;
            }
            Ok(())
        }

        fn interrupted(&mut self, _: u32, _: Duration) -> Result<bool, DeviceError> {
            Ok(true)
        }
    }

    #[test]
    fn interrupts_all_the_time_do_not_hide_a_queue_that_stopped() {
        let ring = DmaBuffer::new(Arc::new(SharedMemory::new(4096).unwrap()), 0);
        let mut card = Storm(reg::OFF);
        let mut queue = Queue::open(&mut card, 0, 2, ring, 1, 1).unwrap();
        queue
            .push(&Descriptor { op: OP_NOTHING, flags: 0, tag: 0, host: 0, card: 0, bytes: 0 })
            .unwrap();
        queue.submit(&mut card).unwrap();
        assert_eq!(queue.wait(&mut card, Duration::from_millis(200)).unwrap(), None);
        card.0 = reg::FAILED;
        let error = queue.wait(&mut card, Duration::from_secs(10)).unwrap_err();
        assert!(error.to_string().contains("it has stopped"), "{error}");
    }
}
