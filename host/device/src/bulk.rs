//! Bulk transfers between a program and card memory, through a descriptor ring.
//!
//! Bulk data moves through places in a few pieces of host memory. The ring has a separate piece,
//! which no bulk data uses. While the program copies some places, the card works on others. One
//! doorbell submits several descriptors, and one interrupt announces several completions. Writes
//! are posted: when `Bulk::write` returns, the bytes are in flight or wait for a full batch;
//! `Bulk::settle` waits until they have arrived. The contents of places are as public as card
//! memory: bulk data is sealed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::DeviceError;
use crate::pci::Function;
use crate::places::{Free, PLACE, Place};
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
/// Places per piece.
const EACH: usize = BYTES as usize / PLACE;
/// Pieces of host memory for data.
const PIECES: usize = 3;
/// Descriptors of the ring: two for each place.
const ENTRIES: u32 = 128;
/// Descriptors per doorbell, and completions per interrupt.
const BATCH: usize = 16;
/// Time limit for one descriptor. A simulated design moves some hundred kilobytes a second.
const LIMIT: Duration = Duration::from_secs(60);

/// The ring and the memory for data. The last piece holds the ring and has no places.
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
    /// Ranges being prefetched, oldest first; the places of the first of them, which have arrived;
    /// and the number of older reads in flight whose data is to be discarded.
    ahead: VecDeque<Vec<(u64, usize)>>,
    came: VecDeque<Place>,
    forgotten: usize,
}

/// A descriptor in flight.
struct Flight {
    tag: u32,
    bytes: u32,
    /// The place that is released when the descriptor ends, and whether it receives data.
    last: Option<(Place, bool)>,
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

    /// A free place. If all are in use, waits for one that the card works on; `None` if all are
    /// lent.
    pub(crate) fn place<F: Function>(
        &mut self,
        function: &mut F,
    ) -> Result<Option<Place>, DeviceError> {
        self.take_over()?;
        loop {
            let place = self.free_place();
            if place.is_some() || self.flight.is_empty() {
                return Ok(place);
            }
            self.collect(function)?;
        }
    }

    /// Whether the place belongs to this ring, and not to one that was turned off.
    pub(crate) fn owns(&self, place: &Place) -> bool {
        place.is_of(&self.free)
    }

    fn free_place(&self) -> Option<Place> {
        let number = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Place::new(
            self.memory[number / EACH].clone(),
            (number % EACH * PLACE) as u64,
            number,
            &self.free,
        ))
    }

    /// Starts to write a place to card memory. The ranges fit.
    pub(crate) fn write_place<F: Function>(
        &mut self,
        function: &mut F,
        place: Place,
        ranges: &[(u64, usize)],
    ) -> Result<(), DeviceError> {
        // Prefetched data is now stale.
        self.forget();
        self.begin(function, OP_TO_CARD, place, ranges, 0)
    }

    /// Starts to write ranges to card memory.
    pub(crate) fn write<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &[(u64, &[u8])],
    ) -> Result<(), DeviceError> {
        self.forget();
        let mut left: usize = ranges.iter().map(|(_, bytes)| bytes.len().div_ceil(PLACE)).sum();
        for (card, bytes) in ranges {
            for (part, at) in bytes.chunks(PLACE).zip((*card..).step_by(PLACE)) {
                let place = self.place(function)?.ok_or_else(all_lent)?;
                place.write(0, part)?;
                left -= 1;
                self.begin(function, OP_TO_CARD, place, &[(at, part.len())], left)?;
            }
        }
        Ok(())
    }

    /// Starts to prefetch ranges of card memory, after all earlier writes; `left` more calls follow
    /// soon. Returns false if no place is free. The ranges fit.
    pub(crate) fn read_ahead<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &[(u64, usize)],
        left: usize,
    ) -> Result<bool, DeviceError> {
        self.take_over()?;
        let Some(place) = self.free_place() else { return Ok(false) };
        self.ahead.push_back(ranges.to_vec());
        self.begin(function, OP_TO_HOST, place, ranges, left)?;
        Ok(true)
    }

    /// Reads ranges of card memory into a place, after all earlier writes; `None` if all places are
    /// lent. The ranges fit.
    pub(crate) fn read_place<F: Function>(
        &mut self,
        function: &mut F,
        ranges: &[(u64, usize)],
    ) -> Result<Option<Place>, DeviceError> {
        if self.ahead.front().is_none_or(|begun| begun != ranges) {
            self.forget();
            let Some(place) = self.place(function)? else { return Ok(None) };
            self.ahead.push_back(ranges.to_vec());
            self.begin(function, OP_TO_HOST, place, ranges, 0)?;
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
        let pieces = ranges
            .iter_mut()
            .flat_map(|(card, bytes)| (*card..).step_by(PLACE).zip(bytes.chunks_mut(PLACE)));
        let pieces: Vec<_> = pieces.map(|(at, out)| ([(at, out.len())], out)).collect();
        let mut soon = pieces.iter().map(|(range, _)| *range).collect::<VecDeque<_>>();
        for (range, out) in pieces {
            while let Some(next) = soon.front()
                && self.read_ahead(function, next, soon.len() - 1)?
            {
                soon.pop_front();
            }
            self.read_place(function, &range)?.ok_or_else(all_lent)?.read(0, out)?;
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

    /// Pushes the descriptors of a place, and submits them in batches; `left` more places follow
    /// soon.
    fn begin<F: Function>(
        &mut self,
        function: &mut F,
        op: u8,
        place: Place,
        ranges: &[(u64, usize)],
        left: usize,
    ) -> Result<(), DeviceError> {
        let (mut host, mut parts) = (place.device_address(), ranges.len());
        let mut place = Some((place, op == OP_TO_HOST));
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
                last: if parts == 0 { place.take() } else { None },
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
            Some((place, true)) => self.came.push_back(place),
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
