//! The untrusted host: every message from a party to the card or to another party passes through
//! here.
//!
//! [`Host`] owns the device. It sees every message, and an installed [`Adversary`] can change,
//! replace or drop any of them and do to the device whatever a host can do. No conclusion of a role
//! may rest on this type's word.

use shef_device::batch::bytes_of;
use shef_device::{CtlOp, Device, DeviceInfo};
use shef_proto::channel::MESSAGE_LEN;
use shef_regs::ctl;

use crate::SdkError;
use crate::carrier::SPARE;

/// Polls of the plain status before the host gives up on a busy Shield.
const MAX_POLLS: u32 = 1_000_000;

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
    /// Image container, to the kernel.
    Image,
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
            Self::Image => "image",
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

/// The honest carrier.
#[derive(Debug, Clone, Copy, Default)]
pub struct Honest;

impl Adversary for Honest {}

/// One message that crossed a boundary, as delivered.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its kind.
    pub kind: MessageKind,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What happened to a Load Key, according to plain status. A hint: the owner believes only the
/// confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadHint {
    /// The Shield shows a confirmation.
    Keyed,
    /// The Shield reports a refusal.
    Refused,
}

/// The untrusted machine that holds the card.
pub struct Host {
    device: Box<dyn Device>,
    /// `None` if the host is honest.
    adversary: Option<Box<dyn Adversary>>,
    records: Option<Vec<Record>>,
    /// Buffers for ciphertext and tags from earlier transfers: new memory costs about as much as
    /// the cipher.
    spare: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Host {
    /// An honest host around a device.
    pub fn new(device: Box<dyn Device>) -> Self {
        Self { device, adversary: None, records: None, spare: Vec::new() }
    }

    /// Checks that there is a Shield behind the device.
    ///
    /// # Errors
    /// [`shef_device::DeviceError::NotAShield`], [`shef_device::DeviceError::Gone`] and transport
    /// errors.
    pub fn probe(&mut self) -> Result<(), SdkError> {
        let found = self.device.ctl_read32(ctl::MAGIC)?;
        if found == u32::MAX {
            return Err(shef_device::DeviceError::Gone { offset: ctl::MAGIC }.into());
        }
        let expected = u32::from_le_bytes(*b"SHEF");
        if found != expected {
            return Err(shef_device::DeviceError::NotAShield {
                uri: self.device.info().uri,
                found,
                expected,
            }
            .into());
        }
        Ok(())
    }

    /// Installs an adversary and returns the previous one.
    pub fn corrupt(&mut self, adversary: Box<dyn Adversary>) -> Box<dyn Adversary> {
        self.adversary.replace(adversary).unwrap_or_else(|| Box::new(Honest))
    }

    /// Records a copy of every message delivered from now on.
    pub fn record(&mut self) {
        self.records.get_or_insert_default();
    }

    /// Takes the records so far.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// Whether an adversary or a recorder sees every message.
    pub(crate) fn is_watched(&self) -> bool {
        self.adversary.is_some() || self.records.is_some()
    }

    /// The device's description of itself.
    pub fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    /// The device, which the host may use as it likes.
    pub fn device(&mut self) -> &mut dyn Device {
        self.device.as_mut()
    }

    /// Cycles of the device, for figures.
    pub fn cycles(&self) -> Option<u64> {
        self.device.cycles()
    }

    /// Resets the card.
    ///
    /// # Errors
    /// Transport errors.
    pub fn reset(&mut self) -> Result<(), SdkError> {
        Ok(self.device.reset()?)
    }

    /// Carries a message between two parties.
    ///
    /// # Errors
    /// [`SdkError::Dropped`] if it does not arrive.
    pub fn carry(&mut self, kind: MessageKind, bytes: Vec<u8>) -> Result<Vec<u8>, SdkError> {
        let delivered = match &mut self.adversary {
            Some(adversary) => adversary
                .message(kind, bytes, self.device.as_mut())
                .ok_or(SdkError::Dropped { kind })?,
            None => bytes,
        };
        if let Some(records) = &mut self.records {
            records.push(Record { kind, bytes: delivered.clone() });
        }
        Ok(delivered)
    }

    /// Carries a message to the Security Kernel and its answer back.
    ///
    /// # Errors
    /// [`SdkError::Dropped`] and device errors.
    pub fn kernel(&mut self, request: Vec<u8>) -> Result<Vec<u8>, SdkError> {
        let request = self.carry(MessageKind::KernelRequest, request)?;
        let answer = self.device.kernel_call(&request)?;
        self.carry(MessageKind::KernelAnswer, answer)
    }

    /// Carries a Load Key to the Shield and returns the content of the confirmation buffer.
    ///
    /// # Errors
    /// [`SdkError::Dropped`], [`SdkError::ShieldBusy`], [`SdkError::MessageTooLong`] and device
    /// errors.
    pub fn load_key(&mut self, message: Vec<u8>) -> Result<(LoadHint, Vec<u8>), SdkError> {
        let message = self.carry(MessageKind::LoadKey, message)?;
        if message.len() > ctl::LOAD_MSG_BYTES {
            return Err(SdkError::MessageTooLong {
                what: "Load Key",
                len: message.len(),
                max: ctl::LOAD_MSG_BYTES,
            });
        }
        let (status, confirmation) = self.command(
            (ctl::LOAD_MSG, &message),
            (ctl::LOAD_DOORBELL, message.len() as u32),
            ctl::STATUS_LOAD_BUSY.put(1),
            (ctl::CONFIRM, ctl::CONFIRM_BYTES),
        )?;
        let hint = if ctl::STATUS_LOAD_REFUSED.get(status) == 0
            && ctl::STATUS_STATE.get(status) == ctl::STATUS_STATE_KEYED
        {
            LoadHint::Keyed
        } else {
            LoadHint::Refused
        };
        Ok((hint, self.carry(MessageKind::Confirmation, confirmation)?))
    }

    /// Carries a sealed request to the Shield and returns the content of the answer buffer, and
    /// whether plain status says `REFUSED`. That is a hint: the answer may still belong to the
    /// request.
    ///
    /// # Errors
    /// [`SdkError::Dropped`], [`SdkError::ShieldBusy`] and device errors.
    pub fn exchange(&mut self, request: &[u8; MESSAGE_LEN]) -> Result<(Vec<u8>, bool), SdkError> {
        let request = self.carry(MessageKind::Request, request.to_vec())?;
        let (answer, refused) = self.ring(&request)?;
        Ok((self.carry(MessageKind::Answer, answer)?, refused))
    }

    /// Submits bytes to the Shield as a sealed request, bypassing adversary and recorder. Returns
    /// the answer buffer and whether plain status says `REFUSED`.
    ///
    /// # Errors
    /// [`SdkError::ShieldBusy`] and device errors.
    pub fn ring(&mut self, request: &[u8]) -> Result<(Vec<u8>, bool), SdkError> {
        let request = &request[..request.len().min(MESSAGE_LEN)];
        let (status, answer) = self.command(
            (ctl::CHAN_REQ, request),
            (ctl::CHAN_DOORBELL, 1),
            ctl::STATUS_CHAN_BUSY.put(1),
            (ctl::CHAN_RSP, MESSAGE_LEN),
        )?;
        Ok((answer, ctl::STATUS_CHAN_REFUSED.get(status) == 1))
    }

    /// Writes card memory.
    ///
    /// # Errors
    /// [`SdkError::Dropped`] and device errors.
    pub fn write_memory(&mut self, addr: u64, bytes: Vec<u8>) -> Result<(), SdkError> {
        self.deliver([(addr, bytes)]).map(|_| ())
    }

    /// Reads card memory.
    ///
    /// # Errors
    /// [`SdkError::Dropped`] and device errors.
    pub fn read_memory(&mut self, addr: u64, len: usize) -> Result<Vec<u8>, SdkError> {
        let [bytes] = self.fetch([(addr, Vec::new(), len)])?;
        Ok(bytes)
    }

    /// Buffers of an earlier transfer, or new ones.
    pub(crate) fn take_spare(&mut self) -> (Vec<u8>, Vec<u8>) {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps the buffers of a transfer for the next one. They hold only content of card memory:
    /// ciphertext and tags.
    pub(crate) fn keep_spare(&mut self, buffers: (Vec<u8>, Vec<u8>)) {
        if self.spare.len() < SPARE {
            self.spare.push(buffers);
        }
    }

    /// Writes ranges of card memory and returns the buffers.
    pub(crate) fn deliver<const N: usize>(
        &mut self,
        parts: [(u64, Vec<u8>); N],
    ) -> Result<[Vec<u8>; N], SdkError> {
        let mut buffers = [const { Vec::new() }; N];
        let mut ranges = [(0, &[][..]); N];
        for ((buffer, range), (addr, bytes)) in buffers.iter_mut().zip(&mut ranges).zip(parts) {
            *buffer = self.carry(MessageKind::MemoryWrite { addr }, bytes)?;
            *range = (addr, &buffer[..]);
        }
        self.device.mem_write_ranges(&ranges)?;
        Ok(buffers)
    }

    /// Reads ranges of card memory of these lengths into reused buffers.
    pub(crate) fn fetch<const N: usize>(
        &mut self,
        mut parts: [(u64, Vec<u8>, usize); N],
    ) -> Result<[Vec<u8>; N], SdkError> {
        let mut ranges = parts.each_mut().map(|(addr, buffer, len)| {
            buffer.resize(*len, 0);
            (*addr, &mut buffer[..])
        });
        self.device.mem_read_ranges(&mut ranges)?;
        let mut buffers = [const { Vec::new() }; N];
        for (buffer, (addr, bytes, _)) in buffers.iter_mut().zip(parts) {
            *buffer = self.carry(MessageKind::MemoryRead { addr }, bytes)?;
        }
        Ok(buffers)
    }

    /// Plain status of the Shield: a hint.
    ///
    /// # Errors
    /// Device errors.
    pub fn status(&mut self) -> Result<u32, SdkError> {
        Ok(self.device.ctl_read32(ctl::STATUS)?)
    }

    /// Waits until the Shield is idle, writes `message` into a buffer, rings the doorbell, waits
    /// until all bits of `busy` are clear and reads the plain status and the answer buffer: one
    /// batch.
    fn command(
        &mut self,
        message: (u32, &[u8]),
        doorbell: (u32, u32),
        busy: u32,
        answer: (u32, usize),
    ) -> Result<(u32, Vec<u8>), SdkError> {
        // While the Shield scrubs its memories, the state is 0.
        const { assert!(ctl::STATUS_STATE_SCRUB == 0) };
        let poll = |clear| CtlOp::Poll {
            offset: ctl::STATUS,
            clear,
            some: ctl::STATUS_STATE.put(u32::MAX),
            polls: MAX_POLLS,
        };
        let mut ops = vec![poll(ctl::STATUS_LOAD_BUSY.put(1) | ctl::STATUS_CHAN_BUSY.put(1))];
        ops.extend(CtlOp::write_bytes(message.0, message.1));
        ops.push(CtlOp::Write { offset: doorbell.0, value: doorbell.1 });
        ops.push(poll(busy));
        let words = answer.1.div_ceil(4);
        ops.extend(CtlOp::read_words(answer.0, words));
        let values = self.device.ctl_batch(&ops)?;
        match values.get(1..) {
            Some([status, answer_words @ ..]) if answer_words.len() == words => {
                let mut bytes = bytes_of(answer_words);
                bytes.truncate(answer.1);
                Ok((*status, bytes))
            }
            // The last value is from the poll that ended the batch.
            _ => match values.last() {
                None | Some(&u32::MAX) => {
                    Err(shef_device::DeviceError::Gone { offset: ctl::STATUS }.into())
                }
                Some(&status) => Err(SdkError::ShieldBusy { status }),
            },
        }
    }
}
