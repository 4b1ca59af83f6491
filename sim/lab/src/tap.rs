//! A device in the hands of a dishonest host: every message between the parties and the card can be
//! read, changed and dropped, and everything else that a host can do to a device is possible.
//!
//! [`tap`] wraps the device of a host and returns a [`Tap`] beside it. The library under test drives the wrapped
//! device like any other; the tap decodes what passes through the mailbox, the control window and
//! the transfers of card memory. Single accesses ([`Device::ctl_read32`], [`Device::mem_read`] and
//! so on) pass unseen: tests use them to look at the card.

use std::cell::RefCell;
use std::rc::Rc;

use shef::Host;
use shef_device::batch::bytes_of;
use shef_device::{CtlOp, Device, DeviceError, DeviceInfo, DmaSlots};
use shef_proto::channel::MESSAGE_LEN;
use shef_proto::mailbox::{Answer, Request};
use shef_regs::ctl;

/// The kind of a message, which determines its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageKind {
    /// Request to the Security Kernel.
    KernelRequest,
    /// Answer of the Security Kernel.
    KernelAnswer,
    /// Nonce from a verifier to the device.
    Nonce,
    /// Evidence from the kernel to the IP vendor.
    KernelEvidence,
    /// Evidence from the Shield to the data owner.
    ShieldEvidence,
    /// Certificates of the device.
    Certificates,
    /// Released image key, to the kernel.
    Release,
    /// Load Key, to the Shield.
    LoadKey,
    /// Key confirmation of the Shield.
    Confirmation,
    /// Sealed request to the Shield.
    Request,
    /// Sealed answer of the Shield.
    Answer,
    /// Close record, countersigned by the kernel.
    CloseRecord,
    /// Bytes written to card memory.
    MemoryWrite {
        /// First address.
        addr: u64,
    },
    /// Bytes read from card memory.
    MemoryRead {
        /// First address.
        addr: u64,
    },
}

impl MessageKind {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::KernelRequest => "kernel-request",
            Self::KernelAnswer => "kernel-answer",
            Self::Nonce => "nonce",
            Self::KernelEvidence => "kernel-evidence",
            Self::ShieldEvidence => "shield-evidence",
            Self::Certificates => "certificate",
            Self::Release => "key-box",
            Self::LoadKey => "load-key",
            Self::Confirmation => "confirmation",
            Self::Request => "request",
            Self::Answer => "answer",
            Self::CloseRecord => "close-record",
            Self::MemoryWrite { .. } => "memory-write",
            Self::MemoryRead { .. } => "memory-read",
        }
    }
}

/// A dishonest host. Every default method does nothing.
pub trait Adversary {
    /// Sees a message and returns the one to deliver in its place; `None` drops it. The host
    /// controls the device during the call.
    fn message(
        &mut self,
        kind: MessageKind,
        bytes: Vec<u8>,
        device: &mut dyn Device,
    ) -> Option<Vec<u8>> {
        let _ = (kind, device);
        Some(bytes)
    }
}

/// A dishonest host, given as a function.
struct Meddler<F>(F);

impl<F: FnMut(MessageKind, Vec<u8>, &mut dyn Device) -> Option<Vec<u8>>> Adversary for Meddler<F> {
    fn message(
        &mut self,
        kind: MessageKind,
        bytes: Vec<u8>,
        device: &mut dyn Device,
    ) -> Option<Vec<u8>> {
        (self.0)(kind, bytes, device)
    }
}

/// One message, as delivered.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its kind.
    pub kind: MessageKind,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

#[derive(Default)]
struct State {
    /// `None` if the host is honest.
    adversary: Option<Box<dyn Adversary>>,
    records: Option<Vec<Record>>,
}

/// The control of a tapped device.
#[derive(Clone, Default)]
pub struct Tap(Rc<RefCell<State>>);

impl Tap {
    /// Installs an adversary.
    pub fn corrupt(&self, adversary: impl Adversary + 'static) {
        self.0.borrow_mut().adversary = Some(Box::new(adversary));
    }

    /// Installs an adversary that is given as a function.
    pub fn meddle(
        &self,
        how: impl FnMut(MessageKind, Vec<u8>, &mut dyn Device) -> Option<Vec<u8>> + 'static,
    ) {
        self.corrupt(Meddler(how));
    }

    /// Removes the adversary.
    pub fn honest(&self) {
        self.0.borrow_mut().adversary = None;
    }

    /// Records a copy of every message delivered from now on.
    pub fn record(&self) {
        self.0.borrow_mut().records.get_or_insert_default();
    }

    /// Takes the records, and records no more.
    pub fn stop_recording(&self) -> Vec<Record> {
        self.0.borrow_mut().records.take().unwrap_or_default()
    }

    /// Takes the records so far.
    pub fn take_records(&self) -> Vec<Record> {
        self.0.borrow_mut().records.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// Taps the device of a host.
pub fn tap(host: Host) -> (Host, Tap) {
    let tap = Tap::default();
    (Host::new(Box::new(Tapped { host, tap: tap.clone() })), tap)
}

struct Tapped {
    host: Host,
    tap: Tap,
}

/// Buffers of the control window that take a message and show its answer.
struct Buffer {
    message: u32,
    /// Bytes of the message buffer.
    room: usize,
    doorbell: u32,
    kinds: [MessageKind; 2],
    /// The length of a message, from the doorbell.
    len: fn(u32) -> usize,
}

const BUFFERS: [Buffer; 2] = [
    Buffer {
        message: ctl::LOAD_MSG,
        room: ctl::LOAD_MSG_BYTES,
        doorbell: ctl::LOAD_DOORBELL,
        kinds: [MessageKind::LoadKey, MessageKind::Confirmation],
        len: |rung| rung as usize,
    },
    Buffer {
        message: ctl::CHAN_REQ,
        room: MESSAGE_LEN,
        doorbell: ctl::CHAN_DOORBELL,
        kinds: [MessageKind::Request, MessageKind::Answer],
        len: |_| MESSAGE_LEN,
    },
];

impl Tapped {
    fn is_watched(&self) -> bool {
        let state = self.tap.0.borrow();
        state.adversary.is_some() || state.records.is_some()
    }

    /// Delivers a message.
    fn carry(&mut self, kind: MessageKind, bytes: Vec<u8>) -> Option<Vec<u8>> {
        // The adversary may use the tap itself.
        let adversary = self.tap.0.borrow_mut().adversary.take();
        let delivered = match adversary {
            None => Some(bytes),
            Some(mut adversary) => {
                let delivered = adversary.message(kind, bytes, self.host.device());
                self.tap.0.borrow_mut().adversary.get_or_insert(adversary);
                delivered
            }
        }?;
        if let Some(records) = &mut self.tap.0.borrow_mut().records {
            records.push(Record { kind, bytes: delivered.clone() });
        }
        Some(delivered)
    }

    /// A request to the kernel, part by part and as a whole.
    fn request(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let whole = match Request::decode(bytes) {
            Ok(Request::KernelEvidence { nonce, audience }) => {
                let nonce = self.carry(MessageKind::Nonce, nonce)?;
                Request::KernelEvidence { nonce, audience }.encode()
            }
            Ok(Request::ShieldEvidence { nonce, audience }) => {
                let nonce = self.carry(MessageKind::Nonce, nonce)?;
                Request::ShieldEvidence { nonce, audience }.encode()
            }
            Ok(Request::LoadBegin { key_box, header_len }) => {
                let key_box = self.carry(MessageKind::Release, key_box)?;
                Request::LoadBegin { key_box, header_len }.encode()
            }
            _ => bytes.to_vec(),
        };
        self.carry(MessageKind::KernelRequest, whole)
    }

    /// The kernel's answer to a request, as a whole and part by part.
    fn answer(&mut self, to: &[u8], bytes: Vec<u8>) -> Option<Vec<u8>> {
        let bytes = self.carry(MessageKind::KernelAnswer, bytes)?;
        let evidence = match Request::decode(to) {
            Ok(Request::KernelEvidence { .. }) => MessageKind::KernelEvidence,
            _ => MessageKind::ShieldEvidence,
        };
        Some(match Answer::decode(&bytes) {
            Ok(Answer::Evidence(bytes)) => Answer::Evidence(self.carry(evidence, bytes)?).encode(),
            Ok(Answer::CloseRecord(bytes)) => {
                Answer::CloseRecord(self.carry(MessageKind::CloseRecord, bytes)?).encode()
            }
            Ok(Answer::Certificates(list)) => {
                let carried: Option<Vec<_>> = list
                    .into_iter()
                    .map(|der| self.carry(MessageKind::Certificates, der))
                    .collect();
                Answer::Certificates(carried?).encode()
            }
            _ => bytes,
        })
    }

    /// A batch that hands a message to the Shield and reads its answer.
    fn exchange(&mut self, buffer: &Buffer, ops: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
        let in_message =
            |offset: u32| (buffer.message..buffer.message + buffer.room as u32).contains(&offset);
        let (mut words, mut len, mut reads) = (Vec::new(), 0, 0);
        for op in ops {
            match *op {
                CtlOp::Write { offset, value } if offset == buffer.doorbell => {
                    len = (buffer.len)(value);
                }
                CtlOp::Write { offset, value } if in_message(offset) => words.push(value),
                CtlOp::Write { .. } | CtlOp::Poll { .. } => {}
                CtlOp::Read { .. } => reads += 1,
            }
        }
        let mut message = bytes_of(&words);
        message.truncate(len);
        let delivered = self.carry(buffer.kinds[0], message);
        let mut carried = Vec::new();
        for op in ops {
            match (*op, &delivered) {
                (CtlOp::Write { offset, .. }, _) if in_message(offset) => {}
                // A message that is dropped changes nothing: the Shield shows its last answer.
                (CtlOp::Write { offset, .. }, None) if offset == buffer.doorbell => {}
                (CtlOp::Write { offset, value }, Some(bytes)) if offset == buffer.doorbell => {
                    let room = bytes.len().min(buffer.room);
                    carried.extend(CtlOp::write_bytes(buffer.message, &bytes[..room]));
                    let value = if len == bytes.len() { value } else { bytes.len() as u32 };
                    carried.push(CtlOp::Write { offset, value });
                }
                _ => carried.push(*op),
            }
        }
        let mut values = self.host.device().ctl_batch(&carried)?;
        let polls = ops.iter().filter(|op| matches!(op, CtlOp::Poll { .. })).count();
        if delivered.is_some() && values.len() == polls + reads {
            let shown = &mut values[polls..];
            // The owner reads a fixed number of bytes. A dropped answer reads as zeros.
            let mut bytes = self.carry(buffer.kinds[1], bytes_of(shown)).unwrap_or_default();
            bytes.resize(4 * reads, 0);
            for (value, word) in shown.iter_mut().zip(bytes.chunks_exact(4)) {
                *value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            }
        }
        Ok(values)
    }
}

/// A transfer that the host did not make.
fn lost(what: &str) -> DeviceError {
    DeviceError::Queue { index: 0, what: format!("the host dropped {what}") }
}

impl Device for Tapped {
    fn info(&self) -> DeviceInfo {
        self.host.info()
    }

    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        self.host.device().ctl_read32(offset)
    }

    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.host.device().ctl_write32(offset, value)
    }

    fn ctl_batch(&mut self, ops: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
        let rings = |buffer: &&Buffer| {
            ops.iter()
                .any(|op| matches!(op, CtlOp::Write { offset, .. } if *offset == buffer.doorbell))
        };
        match BUFFERS.iter().find(rings) {
            Some(buffer) if self.is_watched() => self.exchange(buffer, ops),
            _ => self.host.device().ctl_batch(ops),
        }
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.host.device().mem_read(addr, bytes)
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.host.device().mem_write(addr, bytes)
    }

    fn mem_read_ranges(&mut self, ranges: &mut [(u64, &mut [u8])]) -> Result<(), DeviceError> {
        self.host.device().mem_read_ranges(ranges)?;
        if self.is_watched() {
            for (addr, bytes) in ranges {
                let read = MessageKind::MemoryRead { addr: *addr };
                let mut carried =
                    self.carry(read, bytes.to_vec()).ok_or_else(|| lost("a read of memory"))?;
                carried.resize(bytes.len(), 0);
                bytes.copy_from_slice(&carried);
            }
        }
        Ok(())
    }

    fn dma_slots(&mut self) -> Option<&mut dyn DmaSlots> {
        // In slots, data never passes through the host as a message.
        if self.is_watched() { None } else { self.host.device().dma_slots() }
    }

    fn mem_write_ranges(&mut self, ranges: &[(u64, &[u8])]) -> Result<(), DeviceError> {
        if !self.is_watched() {
            return self.host.device().mem_write_ranges(ranges);
        }
        let carried: Option<Vec<(u64, Vec<u8>)>> = ranges
            .iter()
            .map(|&(addr, bytes)| {
                Some((addr, self.carry(MessageKind::MemoryWrite { addr }, bytes.to_vec())?))
            })
            .collect();
        let carried = carried.ok_or_else(|| lost("a write to memory"))?;
        let ranges: Vec<(u64, &[u8])> =
            carried.iter().map(|(addr, bytes)| (*addr, bytes.as_slice())).collect();
        self.host.device().mem_write_ranges(&ranges)
    }

    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        self.host.device().wait_hint()
    }

    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        self.host.device().wait_interrupt()
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.host.device().reset()
    }

    fn kernel_call(&mut self, request: &[u8]) -> Result<Vec<u8>, DeviceError> {
        if !self.is_watched() {
            return self.host.device().kernel_call(request);
        }
        let lost = || lost("a message to or from the kernel");
        let carried = self.request(request).ok_or_else(lost)?;
        let answer = self.host.device().kernel_call(&carried)?;
        self.answer(request, answer).ok_or_else(lost)
    }

    fn cycles(&self) -> Option<u64> {
        self.host.cycles()
    }
}
