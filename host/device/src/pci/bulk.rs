//! Bulk transfers between a program and card memory, through a descriptor ring.
//!
//! Bulk data moves through slots in a few pieces of host memory. The ring has a separate piece,
//! which no bulk data uses. While the program copies some slots, the card works on others. One
//! doorbell submits several descriptors, and one interrupt announces several completions. Writes
//! are posted: when `Bulk::write` returns, the bytes are in flight or wait for a full batch;
//! `Bulk::settle` waits until they have arrived. The contents of slots are as public as card
//! memory: bulk data is sealed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Function;
use crate::DeviceError;
use crate::dma_slots::{DmaSlot, Free, SLOT_BYTES};
use crate::ring::{
    Completion, Descriptor, DmaMemory, OP_TO_CARD, OP_TO_HOST, QUEUES, Queue, Status,
};

/// The queue: the last one, which has the lowest priority.
const QUEUE: u32 = QUEUES - 1;
/// Its interrupt vector.
const VECTOR: u32 = 1 + QUEUE;
/// Bytes of a piece of host memory: one hugepage, which is contiguous for the card even without an
/// IOMMU.
const BYTES: u64 = 2 << 20;
/// Slots per piece.
const EACH: usize = BYTES as usize / SLOT_BYTES;
/// Pieces of host memory for data.
const PIECES: usize = 3;
/// Descriptors of the ring: two for each slot.
const ENTRIES: u32 = 128;
/// Descriptors per doorbell, and completions per interrupt.
const BATCH: usize = 16;
/// Time limit for one descriptor. A simulated design moves some hundred kilobytes a second.
const LIMIT: Duration = Duration::from_secs(60);

/// The ring and the memory for data. The last piece holds the ring and has no slots.
pub(crate) struct Bulk<M> {
    queue: Queue<Arc<M>>,
    memory: Vec<Arc<M>>,
    free: Free,
    /// Descriptors in flight, oldest first.
    flight: VecDeque<Flight>,
    /// Number of descriptors pushed so far: the tag of the next one.
    begun: u32,
    /// Descriptors that were pushed and not yet submitted.
    untold: usize,
    /// Ranges being prefetched, oldest first; the slots of the first of them, which have arrived;
    /// and the number of older reads in flight whose data is to be discarded.
    ahead: VecDeque<Vec<(u64, usize)>>,
    came: VecDeque<DmaSlot>,
    forgotten: usize,
}

/// A descriptor in flight.
struct Flight {
    tag: u32,
    bytes: u32,
    /// The slot that is released when the descriptor ends, and whether it receives data.
    last: Option<(DmaSlot, bool)>,
}

impl<M: DmaMemory + Send + Sync + 'static> Bulk<M> {
    /// Turns the queue on. `None` if the card has no DMA engine.
    pub(crate) fn open<F: Function<Memory = M>>(
        function: &mut F,
    ) -> Result<Option<Self>, DeviceError> {
        if !Queue::<M>::exists(function, QUEUE)? {
            return Ok(None);
        }
        let mut memory = Vec::new();
        let sizes = [BYTES; PIECES].into_iter().chain([Queue::<M>::bytes(ENTRIES)]);
        let queue = sizes
            .into_iter()
            .try_for_each(|bytes| function.dma(bytes).map(|m| memory.push(Arc::new(m))))
            .and_then(|()| {
                let ring = Arc::clone(&memory[PIECES]);
                Queue::open(function, QUEUE, ENTRIES, ring, VECTOR, BATCH as u16)
            });
        match queue {
            Ok(queue) => Ok(Some(Self {
                queue,
                memory,
                free: Arc::new(Mutex::new((0..PIECES * EACH).rev().collect())),
                flight: VecDeque::new(),
                begun: 0,
                untold: 0,
                ahead: VecDeque::new(),
                came: VecDeque::new(),
                forgotten: 0,
            })),
            Err(error) => {
                release(function, memory, false);
                Err(error)
            }
        }
    }

    /// Whether the card still has the queue on.
    pub(crate) fn check<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.queue.check(function)
    }

    /// A free slot. If all are in use, waits for one that the card works on; `None` if all are
    /// lent.
    pub(crate) fn slot<F: Function>(
        &mut self,
        function: &mut F,
    ) -> Result<Option<DmaSlot>, DeviceError> {
        self.take_over()?;
        loop {
            let slot = self.free_slot();
            if slot.is_some() || self.flight.is_empty() {
                return Ok(slot);
            }
            self.collect(function)?;
        }
    }

    /// Whether the slot belongs to this ring, and not to one that was turned off.
    pub(crate) fn owns(&self, slot: &DmaSlot) -> bool {
        slot.is_of(&self.free)
    }

    fn free_slot(&self) -> Option<DmaSlot> {
        let number = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(DmaSlot::new(
            self.memory[number / EACH].clone(),
            (number % EACH * SLOT_BYTES) as u64,
            number,
            &self.free,
        ))
    }

    /// Starts to write a slot to card memory. The ranges fit.
    pub(crate) fn write_slot<F: Function>(
        &mut self,
        function: &mut F,
        slot: DmaSlot,
        ranges: &[(u64, usize)],
    ) -> Result<(), DeviceError> {
        // Prefetched data is now stale.
        self.forget();
        self.begin(function, OP_TO_CARD, slot, ranges, 0)
    }

    /// Starts to write ranges to card memory.
    pub(crate) fn write<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &[(u64, &[u8])],
    ) -> Result<(), DeviceError> {
        self.forget();
        let mut left: usize =
            ranges.iter().map(|(_, bytes)| bytes.len().div_ceil(SLOT_BYTES)).sum();
        for (card, bytes) in ranges {
            for (part, at) in bytes.chunks(SLOT_BYTES).zip((*card..).step_by(SLOT_BYTES)) {
                let slot = self.slot(function)?.ok_or_else(all_lent)?;
                slot.write(0, part)?;
                left -= 1;
                self.begin(function, OP_TO_CARD, slot, &[(at, part.len())], left)?;
            }
        }
        Ok(())
    }

    /// Starts to prefetch ranges of card memory, after all earlier writes; `left` more calls follow
    /// soon. Returns false if no slot is free. The ranges fit.
    pub(crate) fn read_ahead<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &[(u64, usize)],
        left: usize,
    ) -> Result<bool, DeviceError> {
        self.take_over()?;
        let Some(slot) = self.free_slot() else { return Ok(false) };
        self.ahead.push_back(ranges.to_vec());
        self.begin(function, OP_TO_HOST, slot, ranges, left)?;
        Ok(true)
    }

    /// Reads ranges of card memory into a slot, after all earlier writes; `None` if all slots are
    /// lent. The ranges fit.
    pub(crate) fn read_slot<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &[(u64, usize)],
    ) -> Result<Option<DmaSlot>, DeviceError> {
        if self.ahead.front().is_none_or(|begun| begun != ranges) {
            self.forget();
            let Some(slot) = self.slot(function)? else { return Ok(None) };
            self.ahead.push_back(ranges.to_vec());
            self.begin(function, OP_TO_HOST, slot, ranges, 0)?;
        }
        while self.came.is_empty() {
            self.collect(function)?;
        }
        self.ahead.pop_front();
        Ok(self.came.pop_front())
    }

    /// Reads ranges of card memory, after all earlier writes.
    pub(crate) fn read<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &mut [(u64, &mut [u8])],
    ) -> Result<(), DeviceError> {
        self.forget();
        let pieces = ranges.iter_mut().flat_map(|(card, bytes)| {
            (*card..).step_by(SLOT_BYTES).zip(bytes.chunks_mut(SLOT_BYTES))
        });
        let pieces: Vec<_> = pieces.map(|(at, out)| ([(at, out.len())], out)).collect();
        let mut soon = pieces.iter().map(|(range, _)| *range).collect::<VecDeque<_>>();
        for (range, out) in pieces {
            while let Some(next) = soon.front()
                && self.read_ahead(function, next, soon.len() - 1)?
            {
                soon.pop_front();
            }
            self.read_slot(function, &range)?.ok_or_else(all_lent)?.read(0, out)?;
        }
        Ok(())
    }

    /// Discards prefetched data.
    fn forget(&mut self) {
        self.forgotten += self.ahead.len() - self.came.len();
        self.ahead.clear();
        self.came.clear();
    }

    /// Whether all written data is in card memory.
    pub(crate) fn settled(&self) -> bool {
        self.flight.is_empty()
    }

    /// Waits until all written data is in card memory.
    pub(crate) fn settle<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.forget();
        while !self.settled() {
            self.collect(function)?;
        }
        Ok(())
    }

    /// Pushes the descriptors of a slot, and submits them in batches; `left` more slots follow
    /// soon.
    fn begin<F: Function>(
        &mut self,
        function: &mut F,
        op: u8,
        slot: DmaSlot,
        ranges: &[(u64, usize)],
        left: usize,
    ) -> Result<(), DeviceError> {
        let (mut host, mut parts) = (slot.device_address(), ranges.len());
        let mut slot = Some((slot, op == OP_TO_HOST));
        for &(card, len) in ranges {
            while self.queue.room() == 0 {
                self.collect(function)?;
            }
            parts -= 1;
            let (tag, bytes) = (self.begun, len as u32);
            self.queue.push(&Descriptor { op, flags: 0, tag, host, card, bytes })?;
            self.flight.push_back(Flight {
                tag,
                bytes,
                last: if parts == 0 { slot.take() } else { None },
            });
            host += len as u64;
            self.begun = self.begun.wrapping_add(1);
            self.untold += 1;
        }
        // A busy card can wait for a whole batch, and a smaller rest joins the batch before it. A
        // wait for the card submits the rest.
        let idle = self.untold == self.flight.len();
        let batch = self.untold >= BATCH && left >= BATCH;
        if batch || left == 0 && (idle || self.untold >= BATCH) {
            self.tell(function)
        } else {
            Ok(())
        }
    }

    /// Submits all pushed descriptors.
    fn tell<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.untold = 0;
        self.queue.submit(function)
    }

    /// Waits for a descriptor in flight, and takes all completions.
    fn collect<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.tell(function)?;
        match self.queue.wait(function, LIMIT)? {
            Some(completion) => self.over(completion).and_then(|()| self.take_over()),
            None => {
                let what = format!(
                    "{} descriptors are incomplete after {} s",
                    self.queue.pending(),
                    LIMIT.as_secs()
                );
                Err(DeviceError::Queue { index: QUEUE, what })
            }
        }
    }

    /// Takes all available completions.
    fn take_over(&mut self) -> Result<(), DeviceError> {
        while let Some(completion) = self.queue.poll()? {
            self.over(completion)?;
        }
        Ok(())
    }

    /// Descriptors end in order, each as a whole.
    fn over(&mut self, found: Completion) -> Result<(), DeviceError> {
        let ended = self.flight.pop_front();
        let expected = ended.as_ref().map(|f| Completion {
            tag: f.tag,
            status: Status::Done,
            retired: 1,
            bytes: f.bytes,
        });
        if expected != Some(found) {
            let what = format!("a descriptor ended with {found:?}, expected {expected:?}");
            return Err(DeviceError::Queue { index: QUEUE, what });
        }
        match ended.and_then(|f| f.last) {
            Some((_, true)) if self.forgotten > 0 => self.forgotten -= 1,
            Some((slot, true)) => self.came.push_back(slot),
            _ => {}
        }
        Ok(())
    }

    /// Turns the queue off and withdraws its memory from the card. Data that was not settled may be
    /// lost. If the card does not confirm that it has stopped, `stop` cuts it off from the memory
    /// and returns whether it succeeded. Returns the memory that is still lent, and whether the
    /// card is quiet, for [`release`].
    pub(crate) fn close<F: Function<Memory = M>>(
        self,
        function: &mut F,
        stop: impl FnOnce(&mut F) -> bool,
    ) -> (Vec<Arc<M>>, bool) {
        let Self { queue, memory, flight, came, .. } = self;
        let quiet = queue.close(function).is_ok() || stop(function);
        drop((flight, came));
        (release(function, memory, quiet), quiet)
    }
}

/// The caller's error.
pub(crate) fn stale() -> DeviceError {
    let what = "the slot belongs to a ring that has been turned off: its data is lost, restart \
        the transfer"
        .to_owned();
    DeviceError::Queue { index: QUEUE, what }
}

/// The caller's error.
pub(crate) fn all_lent() -> DeviceError {
    DeviceError::Queue {
        index: QUEUE,
        what: format!("all {} slots are in use: return one first", PIECES * EACH),
    }
}

/// Releases memory; returns the pieces that are still lent.
pub(crate) fn release<F: Function>(
    function: &mut F,
    memory: Vec<Arc<F::Memory>>,
    quiet: bool,
) -> Vec<Arc<F::Memory>> {
    let mut lent = Vec::new();
    for memory in memory {
        match Arc::try_unwrap(memory) {
            // If the link is gone, so are the mappings made over it.
            Ok(memory) => drop(function.release(memory, quiet)),
            Err(memory) => lent.push(memory),
        }
    }
    lent
}
