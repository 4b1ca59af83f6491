//! Bulk transfers between a program and card memory, through a descriptor ring.
//!
//! A few pieces of host memory hold the places that bytes lie in on their way; the ring lies in a piece of its own, where no bulk data comes. While some places are copied, the card works on others; the card is told
//! of several descriptors at once and raises one interrupt for several. Writes are posted: the bytes are on their way, or wait for others to go with, when
//! `Bulk::write` returns; `Bulk::settle` waits until they have arrived. What lies in these places is as public as card memory: bulk data is sealed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::DeviceError;
use crate::pci::Function;
use crate::ring::{Completion, Descriptor, DmaMemory, OP_TO_CARD, OP_TO_HOST, QUEUES, Queue, Status};

/// The queue: of all the last one that is served.
const QUEUE: u32 = QUEUES - 1;
/// Vector of its interrupts.
const VECTOR: u32 = 1 + QUEUE;
/// Bytes of a place, and so of the longest descriptor.
const PLACE: usize = 128 << 10;
/// Bytes of a piece of host memory: one hugepage, which has one address for the card even without an IOMMU.
const BYTES: u64 = 2 << 20;
/// Places in it.
const EACH: usize = BYTES as usize / PLACE;
/// Pieces of host memory for data.
const PIECES: usize = 3;
/// Places in all.
const PLACES: usize = PIECES * EACH;
/// Descriptors of the ring.
const ENTRIES: u32 = 64;
/// Descriptors for one doorbell, and completions for one interrupt.
const BATCH: usize = 8;
/// How long one descriptor may take. A simulated design moves some hundred kilobytes a second.
const LIMIT: Duration = Duration::from_secs(60);

const _: () = assert!(PLACES <= ENTRIES as usize);

/// The ring and the memory for data. The ring's own is the last piece, which no place names.
pub(crate) struct Bulk<M> {
    queue: Queue<Arc<M>>,
    memory: Vec<Arc<M>>,
    /// Descriptors that were begun, and are over. Number n has place n modulo [`PLACES`].
    begun: u64,
    over: u64,
    /// Those of them that the card was not told of.
    untold: usize,
    /// Bytes in each place.
    bytes: [u32; PLACES],
    /// Reads that were begun before they were asked for, the oldest first: their ranges and their first descriptors.
    ahead: VecDeque<(Vec<(u64, usize)>, u64)>,
}

/// What one descriptor moves of some ranges: the number of the range, and the part of it.
fn pieces(lengths: impl Iterator<Item = usize>) -> Vec<(usize, Range<usize>)> {
    let of = |(n, len): (usize, usize)| (0..len).step_by(PLACE).map(move |at| (n, at..len.min(at + PLACE)));
    lengths.enumerate().flat_map(of).collect()
}

/// Host memory of the place of a descriptor, and where it begins there.
fn place(number: u64) -> (usize, usize) {
    let place = (number % PLACES as u64) as usize;
    (place / EACH, place % EACH * PLACE)
}

impl<M: DmaMemory> Bulk<M> {
    /// Turns the queue on. `None` where the card has no DMA engine.
    pub(crate) fn open<F: Function<Memory = M>>(function: &mut F) -> Result<Option<Self>, DeviceError> {
        if !Queue::<M>::exists(function, QUEUE)? {
            return Ok(None);
        }
        let mut memory = Vec::new();
        let sizes = [BYTES; PIECES].into_iter().chain([Queue::<M>::bytes(ENTRIES)]);
        let queue = sizes.into_iter().try_for_each(|bytes| function.dma(bytes).map(|m| memory.push(Arc::new(m)))).and_then(|()| {
            let ring = Arc::clone(&memory[PIECES]);
            Queue::open(function, QUEUE, ENTRIES, ring, VECTOR, BATCH as u16)
        });
        match queue {
            Ok(queue) => Ok(Some(Self { queue, memory, begun: 0, over: 0, untold: 0, bytes: [0; PLACES], ahead: VecDeque::new() })),
            Err(error) => {
                release(function, memory, false);
                Err(error)
            }
        }
    }

    /// Has ranges written to card memory.
    pub(crate) fn write<F: Function>(&mut self, function: &mut F, ranges: &[(u64, &[u8])]) -> Result<(), DeviceError> {
        // What was read before is old now.
        self.ahead.clear();
        let mut left: usize = ranges.iter().map(|(_, bytes)| bytes.len().div_ceil(PLACE)).sum();
        for (card, bytes) in ranges {
            for (part, at) in bytes.chunks(PLACE).zip((*card..).step_by(PLACE)) {
                if self.room() == 0 {
                    self.collect(function, self.begun, |_, _, _| Ok(()))?;
                }
                let (memory, offset) = place(self.begun);
                self.memory[memory].write(offset as u64, part)?;
                left -= 1;
                self.begin(function, OP_TO_CARD, at, part.len(), left)?;
            }
        }
        Ok(())
    }

    /// Begins to read ranges of card memory that will be read next, after everything that was written before, where there is room for all of them.
    pub(crate) fn read_ahead<F: Function>(&mut self, function: &mut F, ranges: &[(u64, usize)]) -> Result<(), DeviceError> {
        let pieces = pieces(ranges.iter().map(|(_, len)| *len));
        if pieces.len() > self.room() {
            return Ok(());
        }
        self.ahead.push_back((ranges.to_vec(), self.begun));
        for (left, (n, part)) in (0..pieces.len()).rev().zip(pieces) {
            self.begin(function, OP_TO_HOST, ranges[n].0 + part.start as u64, part.len(), left)?;
        }
        Ok(())
    }

    /// Reads ranges of card memory, after everything that was written before.
    pub(crate) fn read<F: Function>(&mut self, function: &mut F, ranges: &mut [(u64, &mut [u8])]) -> Result<(), DeviceError> {
        let pieces = pieces(ranges.iter().map(|(_, bytes)| bytes.len()));
        let first = match self.ahead.pop_front() {
            Some((begun, first)) if begun.iter().copied().eq(ranges.iter().map(|(addr, bytes)| (*addr, bytes.len()))) => first,
            _ => {
                self.ahead.clear();
                self.begun
            }
        };
        let end = first + pieces.len() as u64;
        while self.over < end {
            while self.begun < end && self.room() != 0 {
                let (n, part) = &pieces[(self.begun - first) as usize];
                let left = (end - self.begun - 1) as usize;
                self.begin(function, OP_TO_HOST, ranges[*n].0 + part.start as u64, part.len(), left)?;
            }
            self.collect(function, end, |number, memory, offset| match number.checked_sub(first) {
                Some(piece) => {
                    let (n, part) = &pieces[piece as usize];
                    Ok(memory.read(offset as u64, &mut ranges[*n].1[part.clone()])?)
                }
                None => Ok(()),
            })?;
        }
        Ok(())
    }

    /// Whether everything that was written is in card memory.
    pub(crate) fn settled(&self) -> bool {
        self.begun == self.over
    }

    /// Waits until everything that was written is in card memory.
    pub(crate) fn settle<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.ahead.clear();
        while !self.settled() {
            self.collect(function, self.begun, |_, _, _| Ok(()))?;
        }
        Ok(())
    }

    /// Places that are free.
    fn room(&self) -> usize {
        PLACES - (self.begun - self.over) as usize
    }

    /// Begins a descriptor for the next place, and tells the card of a batch of them; `left` come soon.
    fn begin<F: Function>(&mut self, function: &mut F, op: u8, card: u64, bytes: usize, left: usize) -> Result<(), DeviceError> {
        let (memory, offset) = place(self.begun);
        let host = self.memory[memory].device_address() + offset as u64;
        let bytes = bytes as u32;
        // There is room: the ring has more entries than there are places.
        self.queue.push(&Descriptor { op, flags: 0, tag: self.begun as u32, host, card, bytes })?;
        self.bytes[(self.begun % PLACES as u64) as usize] = bytes;
        self.begun += 1;
        self.untold += 1;
        // A card that has something to do can wait for a whole batch, and what is less than one goes with the one before; whoever waits for the card tells it
        // of the rest.
        let idle = self.begun - self.untold as u64 == self.over;
        let batch = self.untold >= BATCH && left >= BATCH;
        if batch || left == 0 && (idle || self.untold >= BATCH) { self.tell(function) } else { Ok(()) }
    }

    /// Tells the card of everything that was begun.
    fn tell<F: Function>(&mut self, function: &mut F) -> Result<(), DeviceError> {
        self.untold = 0;
        self.queue.submit(function)
    }

    /// Waits for a descriptor and takes all before number `end` that are over, of which there is one; `each` gets their numbers and places.
    fn collect<F: Function>(
        &mut self,
        function: &mut F,
        end: u64,
        mut each: impl FnMut(u64, &M, usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.tell(function)?;
        let mut next = self.queue.wait(function, LIMIT)?;
        if next.is_none() {
            let what = format!("{} descriptors are not over after {} s", self.queue.pending(), LIMIT.as_secs());
            return Err(DeviceError::Queue { index: QUEUE, what });
        }
        while let Some(found) = next {
            // They end in order, each wholly.
            let bytes = self.bytes[(self.over % PLACES as u64) as usize];
            let expected = Completion { tag: self.over as u32, status: Status::Done, retired: 1, bytes };
            if found != expected {
                let what = format!("a descriptor ended with {found:?}, expected {expected:?}");
                return Err(DeviceError::Queue { index: QUEUE, what });
            }
            let (memory, offset) = place(self.over);
            each(self.over, &self.memory[memory], offset)?;
            self.over += 1;
            next = if self.over < end { self.queue.poll()? } else { None };
        }
        Ok(())
    }

    /// Turns the queue off and takes its memory from the card. What was not settled may be lost. A card that does not say that it has stopped is kept
    /// from its memory by `stop`: whether that was done.
    pub(crate) fn close<F: Function<Memory = M>>(self, function: &mut F, stop: impl FnOnce(&mut F) -> bool) {
        let quiet = self.queue.close(function).is_ok() || stop(function);
        release(function, self.memory, quiet);
    }
}

fn release<F: Function>(function: &mut F, memory: Vec<Arc<F::Memory>>, quiet: bool) {
    for memory in memory.into_iter().filter_map(Arc::into_inner) {
        // Where the link is gone, so is what was mapped over it.
        let _ = function.release(memory, quiet);
    }
}
