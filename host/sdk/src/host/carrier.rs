//! How bulk data passes through the host.
//!
//! If the device lends DMA space, parcels lie in memory that the card reaches. Otherwise the host
//! carries them as messages.

use shef_device::pci::RING_FROM;
use shef_device::{DeviceError, DmaSlot, DmaSlots, SLOT_BYTES};
use shef_proto::config::TAG_LEN;

use super::Host;
use crate::SdkError;

/// Bytes of chunks in a parcel that is sent as messages.
const CARRIED: usize = 1 << 18;

/// Consecutive sealed chunks in card memory: address and length of their ciphertext and of their
/// tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ranges {
    pub(crate) data: (u64, usize),
    pub(crate) tags: (u64, usize),
}

/// Ciphertext and tags in transit.
pub(crate) struct Parcel {
    held: Held,
    ranges: Ranges,
}

enum Held {
    /// Ciphertext, followed by the tags.
    Slot(DmaSlot),
    Buffers(Vec<u8>, Vec<u8>),
}

impl Parcel {
    /// Sets the destination of the parcel, and so its length.
    pub(crate) fn address(&mut self, ranges: Ranges) {
        self.ranges = ranges;
        if let Held::Buffers(data, tags) = &mut self.held {
            data.resize(ranges.data.1, 0);
            tags.resize(ranges.tags.1, 0);
        }
    }

    /// Bytes of ciphertext.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.data.1
    }

    /// Copies chunks and their tags in, each at its offset.
    pub(crate) fn put(
        &mut self,
        (data_at, data): (usize, &[u8]),
        (tags_at, tags): (usize, &[u8]),
    ) -> Result<(), SdkError> {
        match &mut self.held {
            Held::Slot(slot) => {
                slot.write(data_at, data)?;
                slot.write(self.ranges.data.1 + tags_at, tags)?;
            }
            Held::Buffers(all, all_tags) => {
                all[data_at..][..data.len()].copy_from_slice(data);
                all_tags[tags_at..][..tags.len()].copy_from_slice(tags);
            }
        }
        Ok(())
    }

    /// Bytes of ciphertext that arrived, and a copy of the tags.
    pub(crate) fn fetched(&self) -> Result<(usize, Vec<u8>), SdkError> {
        match &self.held {
            Held::Slot(slot) => {
                let mut tags = vec![0; self.ranges.tags.1];
                slot.read(self.ranges.data.1, &mut tags)?;
                Ok((self.ranges.data.1, tags))
            }
            Held::Buffers(data, tags) => Ok((data.len(), tags.clone())),
        }
    }

    /// Copies ciphertext out, from an offset.
    pub(crate) fn get(&self, at: usize, out: &mut [u8]) -> Result<(), SdkError> {
        match &self.held {
            Held::Slot(slot) => slot.read(at, out)?,
            Held::Buffers(data, _) => out.copy_from_slice(&data[at..][..out.len()]),
        }
        Ok(())
    }
}

/// The host during one transfer.
pub(crate) struct Carrier<'h> {
    host: &'h mut Host,
    lent: bool,
}

impl<'h> Carrier<'h> {
    /// Starts a transfer of `bytes` bytes.
    pub(crate) fn new(host: &'h mut Host, bytes: usize) -> Result<Self, SdkError> {
        let lent =
            bytes >= RING_FROM && host.device().dma_slots().map_or(Ok(false), DmaSlots::ready)?;
        Ok(Self { host, lent })
    }

    /// Bytes of ciphertext that fit into a parcel, for this chunk size.
    pub(crate) fn bytes(&self, chunk: usize) -> usize {
        if self.lent { SLOT_BYTES / (chunk + TAG_LEN as usize) * chunk } else { CARRIED }
    }

    fn dma_slots(&mut self) -> Option<&mut dyn DmaSlots> {
        if self.lent { self.host.device().dma_slots() } else { None }
    }

    /// An empty parcel.
    pub(crate) fn parcel(&mut self) -> Result<Parcel, SdkError> {
        let held = match self.dma_slots() {
            Some(slots) => Held::Slot(slots.slot()?),
            None => {
                let (data, tags) = self.host.take_spare();
                Held::Buffers(data, tags)
            }
        };
        Ok(Parcel { held, ranges: Ranges::default() })
    }

    /// Sends a parcel to card memory.
    pub(crate) fn send(
        &mut self,
        Parcel { held, ranges: Ranges { data, tags } }: Parcel,
    ) -> Result<(), SdkError> {
        match held {
            Held::Slot(slot) => match self.dma_slots() {
                Some(slots) => Ok(slots.write_slot(slot, &[data, tags])?),
                None => Err(DeviceError::Gone { offset: 0 }.into()),
            },
            Held::Buffers(bytes, tag_bytes) => {
                let ranges = [(data.0, &bytes[..]), (tags.0, &tag_bytes[..])];
                self.host.device().mem_write_ranges(&ranges)?;
                self.host.keep_spare((bytes, tag_bytes));
                Ok(())
            }
        }
    }

    /// Prefetches a parcel. Returns whether it is in flight.
    pub(crate) fn fetch_soon(&mut self, Ranges { data, tags }: Ranges) -> Result<bool, SdkError> {
        Ok(self.dma_slots().map_or(Ok(false), |slots| slots.read_ahead(&[data, tags]))?)
    }

    /// Fetches a parcel from card memory.
    pub(crate) fn fetch(&mut self, ranges: Ranges) -> Result<Parcel, SdkError> {
        let Ranges { data, tags } = ranges;
        let held = match self.dma_slots() {
            Some(slots) => Held::Slot(slots.read_slot(&[data, tags])?),
            None => {
                let (mut bytes, mut tag_bytes) = self.host.take_spare();
                bytes.resize(data.1, 0);
                tag_bytes.resize(tags.1, 0);
                let mut ranges = [(data.0, &mut bytes[..]), (tags.0, &mut tag_bytes[..])];
                self.host.device().mem_read_ranges(&mut ranges)?;
                Held::Buffers(bytes, tag_bytes)
            }
        };
        Ok(Parcel { held, ranges })
    }

    /// Takes back a parcel that is no longer needed.
    pub(crate) fn keep(&mut self, parcel: Parcel) {
        if let Held::Buffers(data, tags) = parcel.held {
            self.host.keep_spare((data, tags));
        }
    }
}
