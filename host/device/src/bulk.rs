//! Bulk transfers between a program and card memory, through a descriptor ring.
//!
//! A few pieces of host memory hold the places that bytes lie in on their way; the ring lies in a
//! piece of its own, where no bulk data comes. While some places are copied, the card works on
//! others; the card is told of several descriptors at once and raises one interrupt for several.
//! Writes are posted: the bytes are on their way, or wait for others to go with, when `Bulk::write`
//! returns; `Bulk::settle` waits until they have arrived. What lies in these places is as public as
//! card memory: bulk data is sealed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::DeviceError;
use crate::pci::Function;
use crate::places::{Free, PLACE, Place};
use crate::ring::{
    Completion, Descriptor, DmaMemory, OP_TO_CARD, OP_TO_HOST, QUEUES, Queue, Status,
};

/// The queue: of all the last one that is served.
const QUEUE: u32 = QUEUES - 1;
/// Vector of its interrupts.
const VECTOR: u32 = 1 + QUEUE;
/// Bytes of a piece of host memory: one hugepage, which has one address for the card even without
/// an IOMMU.
const BYTES: u64 = 2 << 20;
/// Places in it.
const EACH: usize = BYTES as usize / PLACE;
/// Pieces of host memory for data.
const PIECES: usize = 3;
/// Descriptors of the ring: two for each place.
const ENTRIES: u32 = 128;
/// Descriptors for one doorbell, and completions for one interrupt.
const BATCH: usize = 16;
/// How long one descriptor may take. A simulated design moves some hundred kilobytes a second.
const LIMIT: Duration = Duration::from_secs(60);

/// The ring and the memory for data. The ring's own is the last piece, which no place names.
pub(crate) struct Bulk<M> {
    queue: Queue<Arc<M>>,
    memory: Vec<Arc<M>>,
    free: Free,
    /// Descriptors that were begun and are not over, the oldest first.
    flight: VecDeque<Flight>,
    /// Descriptors that were begun: tag of the next one.
    begun: u32,
    /// Those of them that the card was not told of.
    untold: usize,
    /// What is read ahead, the oldest first; the places of the first ones of it, which have come;
    /// reads on their way that nobody asks for any more, all of them older.
    ahead: VecDeque<Vec<(u64, usize)>>,
    came: VecDeque<Place>,
    forgotten: usize,
}

/// A descriptor that was begun.
struct Flight {
    tag: u32,
    bytes: u32,
    /// The place that is done with when it is over, and whether it was read into.
    last: Option<(Place, bool)>,
}

impl<M: DmaMemory + Send + Sync + 'static> Bulk<M> {
    /// Turns the queue on. `None` where the card has no DMA engine.
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

    /// A place that is free. Where there is none, waits for one that the card works on; `None`
    /// where all are lent.
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

    /// Whether the place is one of this ring's, and not of one that was turned off.
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

    /// Has what lies in a place written to card memory. The ranges fit.
    pub(crate) fn write_place<F: Function>(
        &mut self,
        function: &mut F,
        place: Place,
        ranges: &[(u64, usize)],
    ) -> Result<(), DeviceError> {
        // What was read before is old now.
        self.forget();
        self.begin(function, OP_TO_CARD, place, ranges, 0)
    }

    /// Has ranges written to card memory.
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

    /// Begins to read ranges of card memory that will be read next, after everything that was
    /// written before; `left` more come soon. Whether there is a place for them. The ranges fit.
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

    /// Reads ranges of card memory into a place, after everything that was written before; `None`
    /// where all places are lent. The ranges fit.
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

    /// Reads ranges of card memory, after everything that was written before.
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

    /// Nobody asks any more for what was read ahead.
    fn forget(&mut self) {
        self.forgotten += self.ahead.len() - self.came.len();
        self.ahead.clear();
        self.came.clear();
    }

    /// Whether everything that was written is in card memory.
    pub(crate) fn settled(&self) -> bool {
        self.flight.is_empty()
    }

    /// Waits until everything that was written is in card memory.
    pub(crate) fn settle<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.forget();
        while !self.settled() {
            self.collect(function)?;
        }
        Ok(())
    }

    /// Begins the descriptors of a place, and tells the card of a batch of them; `left` places come
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
        // A card that has something to do can wait for a whole batch, and what is less than one
        // goes with the one before; whoever waits for the card tells it of the rest.
        let idle = self.untold == self.flight.len();
        let batch = self.untold >= BATCH && left >= BATCH;
        if batch || left == 0 && (idle || self.untold >= BATCH) {
            self.tell(function)
        } else {
            Ok(())
        }
    }

    /// Tells the card of everything that was begun.
    fn tell<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.untold = 0;
        self.queue.submit(function)
    }

    /// Waits for a descriptor, of which there is one, and takes all that are over.
    fn collect<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.tell(function)?;
        match self.queue.wait(function, LIMIT)? {
            Some(completion) => self.over(completion).and_then(|()| self.take_over()),
            None => {
                let what = format!(
                    "{} descriptors are not over after {} s",
                    self.queue.pending(),
                    LIMIT.as_secs()
                );
                Err(DeviceError::Queue { index: QUEUE, what })
            }
        }
    }

    /// Takes all descriptors that are over.
    fn take_over(&mut self) -> Result<(), DeviceError> {
        while let Some(completion) = self.queue.poll()? {
            self.over(completion)?;
        }
        Ok(())
    }

    /// They end in order, each wholly.
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

    /// Turns the queue off and takes its memory from the card. What was not settled may be lost. A
    /// card that does not say that it has stopped is kept from its memory by `stop`: whether that
    /// was done. What is lent comes back, with whether the card is quiet, for [`release`].
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

/// An error of the caller's.
pub(crate) fn stale() -> DeviceError {
    let what = "the place is of a ring that was turned off meanwhile: what lies in it is lost, begin the transfer again".to_owned();
    DeviceError::Queue { index: QUEUE, what }
}

/// An error of the caller's.
pub(crate) fn all_lent() -> DeviceError {
    DeviceError::Queue {
        index: QUEUE,
        what: format!("all {} places are lent: give one back first", PIECES * EACH),
    }
}

/// Gives memory back; what is lent out of comes back.
pub(crate) fn release<F: Function>(
    function: &mut F,
    memory: Vec<Arc<F::Memory>>,
    quiet: bool,
) -> Vec<Arc<F::Memory>> {
    let mut lent = Vec::new();
    for memory in memory {
        match Arc::try_unwrap(memory) {
            // Where the link is gone, so is what was mapped over it.
            Ok(memory) => drop(function.release(memory, quiet)),
            Err(memory) => lent.push(memory),
        }
    }
    lent
}
