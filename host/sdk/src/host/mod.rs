//! The untrusted host: every message between the parties and the card passes through it.
//!
//! [`Host`] owns the device and carries messages. No conclusion of a role may rest on this type's
//! word, or on that of the device.

use shef_device::batch::bytes_of;
use shef_device::{CtlOp, Device, DeviceInfo};
use shef_proto::channel::MESSAGE_LEN;
use shef_regs::ctl;

use crate::SdkError;

pub(crate) mod carrier;
mod kernel;
pub mod open;
#[cfg(feature = "vfio-user")]
pub mod simulator;

pub use kernel::LoadedImage;

/// Message buffers that are kept for the next transfer.
const SPARE: usize = 36;

/// Polls of the plain status before the host gives up on a busy Shield.
const MAX_POLLS: u32 = 1_000_000;

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
    /// The process that serves the device; it ends after the connection.
    #[cfg(feature = "vfio-user")]
    simulator: Option<simulator::Simulator>,
    /// Buffers for ciphertext and tags from earlier transfers: new memory costs about as much as
    /// the cipher.
    spare: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Host {
    /// The host of a device.
    pub fn new(device: Box<dyn Device>) -> Self {
        Self {
            device,
            #[cfg(feature = "vfio-user")]
            simulator: None,
            spare: Vec::new(),
        }
    }

    /// The host of a simulated card, whose process ends with this value. `progress` receives
    /// messages until the card is ready.
    #[cfg(feature = "vfio-user")]
    pub(crate) fn simulated(
        uri: &crate::Uri,
        progress: Option<&mut dyn FnMut(&str)>,
    ) -> Result<Self, SdkError> {
        let (card, simulator) = simulator::open(uri, progress)?;
        Ok(Self { simulator: Some(simulator), ..Self::new(card) })
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

    /// The device's description of itself.
    pub fn info(&self) -> DeviceInfo {
        #[cfg(feature = "vfio-user")]
        if let Some(simulator) = &self.simulator {
            let mut info = self.device.info();
            info.uri = simulator.uri().to_string();
            let description = match simulator.uri() {
                crate::Uri::SimModel => {
                    "simulated card around the functional model: protects nothing"
                }
                _ => "simulated card around the Verilated RTL: protects nothing",
            };
            description.clone_into(&mut info.description);
            "simulated".clone_into(&mut info.root_of_trust);
            return info;
        }
        self.device.info()
    }

    /// Trust data for the card, if it is a simulated one that this process started. Such a card
    /// protects nothing.
    #[cfg(feature = "vfio-user")]
    pub fn simulated_trust(&self) -> Option<&simulator::SimulatedTrust> {
        self.simulator.as_ref().map(simulator::Simulator::trust)
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

    /// Carries a message to the Security Kernel and its answer back.
    ///
    /// # Errors
    /// Device errors.
    pub fn kernel(&mut self, request: &[u8]) -> Result<Vec<u8>, SdkError> {
        Ok(self.device.kernel_call(request)?)
    }

    /// Carries a Load Key to the Shield and returns the content of the confirmation buffer.
    ///
    /// # Errors
    /// [`SdkError::ShieldBusy`], [`SdkError::MessageTooLong`] and device errors.
    pub fn load_key(&mut self, message: &[u8]) -> Result<(LoadHint, Vec<u8>), SdkError> {
        if message.len() > ctl::LOAD_MSG_BYTES {
            return Err(SdkError::MessageTooLong {
                what: "Load Key",
                len: message.len(),
                max: ctl::LOAD_MSG_BYTES,
            });
        }
        let (status, confirmation) = self.command(
            (ctl::LOAD_MSG, message),
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
        Ok((hint, confirmation))
    }

    /// Carries a sealed request to the Shield and returns the content of the answer buffer, and
    /// whether plain status says `REFUSED`. That is a hint: the answer may still belong to the
    /// request.
    ///
    /// # Errors
    /// [`SdkError::ShieldBusy`] and device errors.
    pub fn exchange(&mut self, request: &[u8]) -> Result<(Vec<u8>, bool), SdkError> {
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
    /// Device errors.
    pub fn write_memory(&mut self, addr: u64, bytes: &[u8]) -> Result<(), SdkError> {
        Ok(self.device.mem_write_ranges(&[(addr, bytes)])?)
    }

    /// Reads card memory.
    ///
    /// # Errors
    /// Device errors.
    pub fn read_memory(&mut self, addr: u64, len: usize) -> Result<Vec<u8>, SdkError> {
        let mut bytes = vec![0; len];
        self.device.mem_read_ranges(&mut [(addr, &mut bytes)])?;
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
