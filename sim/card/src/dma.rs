//! The card's DMA engine: takes descriptors from rings in host memory, moves bytes between host and
//! card memory, writes completions.
//!
//! It runs on a dedicated thread. It reaches host memory only through the client's mappings, and
//! only while bus mastering is on.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shef_device::SharedMemory;
use shef_device::ring::{
    CHAIN, COMPLETION, Completion, DESCRIPTOR, Descriptor, MAX_ENTRIES, OP_NOTHING, OP_TO_CARD,
    QUEUES, Status, reg,
};
use shef_rtl::{HostBus, HostFault};
use shef_vfio_user::{Bus, DmaError};

use crate::host_port::HostPort;

/// Descriptors per fetch.
const BATCH: u32 = 16;
/// Bytes per move; cancellation and other queues wait for one move.
const STRIDE: usize = 1 << 20;

#[derive(Default, Clone)]
struct Queue {
    ring: u64,
    entries: u32,
    interrupt: u32,
    status: u32,
    tail: u32,
    head: u32,
    /// Completions written, and the number of them without an interrupt yet.
    completed: u32,
    untold: u32,
    /// Descriptors before this one are cancelled.
    cancelled: Option<u32>,
    chain: Chain,
}

impl Queue {
    /// Whether its registers describe a valid ring.
    fn makes_sense(&self) -> bool {
        self.entries.is_power_of_two()
            && (2..=MAX_ENTRIES).contains(&self.entries)
            && self.ring.is_multiple_of(4096)
    }

    /// The state that survives turning it off: the location of its ring.
    fn place(&self) -> Self {
        Self {
            ring: self.ring,
            entries: self.entries,
            interrupt: self.interrupt,
            ..Self::default()
        }
    }
}

/// State of a chain of descriptors.
#[derive(Default, Clone)]
struct Chain {
    length: u16,
    bytes: u32,
    /// The first that failed.
    failed: Option<(u32, Status)>,
}

#[derive(Default)]
struct State {
    queues: [Queue; QUEUES as usize],
    /// The queue that is being served.
    busy: Option<usize>,
    /// Incremented by a reset: the current service is abandoned.
    generation: u64,
}

pub(crate) struct Engine {
    state: Mutex<State>,
    changed: Condvar,
    host: HostPort,
    dram: Arc<SharedMemory>,
}

/// Why a transfer stopped.
enum Stop {
    Status(Status),
    /// A reset: nothing more is written.
    Reset,
}

impl Engine {
    pub fn new(host: HostPort, dram: Arc<SharedMemory>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), host, dram }
    }

    fn hold(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a register; `None` if it does not exist.
    pub fn read(&self, offset: u32) -> Option<u32> {
        let state = self.hold();
        let q = state.queues.get(((offset - reg::BASE) / reg::STRIDE) as usize)?;
        match (offset - reg::BASE) % reg::STRIDE {
            reg::RING_LO => Some(q.ring as u32),
            reg::RING_HI => Some((q.ring >> 32) as u32),
            reg::ENTRIES => Some(q.entries),
            reg::TAIL => Some(q.tail),
            reg::STATUS => Some(q.status),
            reg::INTERRUPT => Some(q.interrupt),
            _ => None,
        }
    }

    /// Writes a register. Invalid writes are ignored.
    pub fn write(&self, offset: u32, value: u32) {
        let index = ((offset - reg::BASE) / reg::STRIDE) as usize;
        let mut state = self.hold();
        let Some(q) = state.queues.get_mut(index) else { return };
        let off = q.status == reg::OFF;
        match (offset - reg::BASE) % reg::STRIDE {
            reg::RING_LO if off => q.ring = q.ring >> 32 << 32 | u64::from(value),
            reg::RING_HI if off => q.ring = q.ring & 0xffff_ffff | u64::from(value) << 32,
            reg::ENTRIES if off => q.entries = value,
            reg::INTERRUPT if off => q.interrupt = value,
            // Forward only. While a batch is served, the host may know a later head than the one
            // recorded here.
            reg::TAIL
                if q.status == reg::ON
                    && (q.tail.wrapping_sub(q.head)..=q.entries + BATCH)
                        .contains(&value.wrapping_sub(q.head)) =>
            {
                q.tail = value;
            }
            reg::CONTROL if value == reg::ENABLE && off && q.makes_sense() => {
                *q = Queue { status: reg::ON, ..q.place() };
            }
            reg::CONTROL if value == reg::CANCEL => q.cancelled = Some(q.tail),
            reg::CONTROL if value == reg::DISABLE => {
                *q = q.place();
                // After turning a queue off, the host may free its memory.
                self.quiet(state, Some(index));
                return;
            }
            _ => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Turns all queues off and waits until host memory is no longer accessed.
    pub fn reset(&self) {
        let mut state = self.hold();
        state.generation += 1;
        state.queues = Default::default();
        self.quiet(state, None);
    }

    /// Waits until no queue, or not this one, is being served.
    fn quiet(&self, mut state: MutexGuard<'_, State>, index: Option<usize>) {
        while state.busy.is_some_and(|busy| index.is_none_or(|index| index == busy)) {
            // Cancels a request to the client that is still unanswered.
            self.host.bus.cancel();
            state = self
                .changed
                .wait_timeout(state, Duration::from_millis(10))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The engine's thread.
    pub fn run(&self, stop: &AtomicBool) {
        let mut state = self.hold();
        while !stop.load(Ordering::Relaxed) {
            let next = state.queues.iter().position(|q| q.status == reg::ON && q.head != q.tail);
            let Some(index) = next else {
                state = self
                    .changed
                    .wait_timeout(state, Duration::from_millis(100))
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                continue;
            };
            state.busy = Some(index);
            let generation = state.generation;
            let queue = state.queues[index].clone();
            drop(state);
            let served = self.serve(queue, index, generation);
            state = self.hold();
            state.busy = None;
            if let Some(served) = served
                && state.generation == generation
            {
                let now = &mut state.queues[index];
                // Changes made during the service take precedence.
                if now.status != reg::OFF {
                    let cancelled =
                        now.cancelled.filter(|to| to.wrapping_sub(served.head) as i32 > 0);
                    *now = Queue { tail: now.tail, cancelled, ..served };
                    self.tell(now);
                }
            }
            self.changed.notify_all();
        }
    }

    /// Raises the queue's interrupt if it is due.
    fn tell(&self, q: &mut Queue) {
        let (batch, vector) =
            (reg::INTERRUPT_BATCH.get(q.interrupt), reg::INTERRUPT_VECTOR.get(q.interrupt));
        let due = batch > 0
            && q.untold > 0
            && (q.untold >= batch || q.head == q.tail || q.status != reg::ON);
        if due {
            q.untold = 0;
            self.host.interrupt(vector);
        }
    }

    fn host_read(&self, address: u64, out: &mut [u8]) -> Result<(), Status> {
        self.host.clone().read(address, out).map_err(|fault| match fault {
            HostFault::Unreachable => Status::Host,
            HostFault::Poisoned => Status::Poisoned,
        })
    }

    fn reach(&self, access: impl FnOnce(&Bus) -> Result<(), DmaError>) -> Result<(), Status> {
        self.host.reach(access).map_err(|_| Status::Host)
    }

    /// Serves some descriptors of a queue, and returns the queue's new state; `None` after a reset.
    fn serve(&self, mut q: Queue, index: usize, generation: u64) -> Option<Queue> {
        let at = q.head & (q.entries - 1);
        let n = q.tail.wrapping_sub(q.head).min(BATCH).min(q.entries - at);
        let mut fetched = [0; (BATCH as u64 * DESCRIPTOR) as usize];
        let fetched = &mut fetched[..(u64::from(n) * DESCRIPTOR) as usize];
        if self.host_read(q.ring.wrapping_add(u64::from(at) * DESCRIPTOR), fetched).is_err() {
            q.status = reg::FAILED;
            q.untold += 1;
            return Some(q);
        }
        let mut moved = 0usize;
        for bytes in fetched.as_chunks::<{ DESCRIPTOR as usize }>().0 {
            if self.overtaken(index, generation) {
                return None;
            }
            let decoded = Descriptor::decode(bytes);
            let tag = match &decoded {
                Ok(d) => d.tag,
                Err(tag) => *tag,
            };
            let outcome = match decoded {
                _ if q.chain.failed.is_some() => Ok(0),
                _ if self.cancelled(index, q.head) => Err(Stop::Status(Status::Cancelled)),
                Err(_) => Err(Stop::Status(Status::Malformed)),
                Ok(d) => self.transfer(&d, index, generation, q.head),
            };
            q.chain.length += 1;
            match outcome {
                Ok(n) => {
                    q.chain.bytes = q.chain.bytes.wrapping_add(n);
                    moved += n as usize;
                }
                Err(Stop::Status(status)) => q.chain.failed = Some((tag, status)),
                Err(Stop::Reset) => return None,
            }
            q.head = q.head.wrapping_add(1);
            let goes_on = decoded.is_ok_and(|d| d.flags & CHAIN != 0)
                && u32::from(q.chain.length) < q.entries;
            if !goes_on {
                let Chain { length, bytes, failed } = std::mem::take(&mut q.chain);
                let (tag, status) = failed.unwrap_or((tag, Status::Done));
                if self
                    .complete(&mut q, Completion { tag, status, retired: length, bytes })
                    .is_err()
                {
                    q.status = reg::FAILED;
                    q.untold += 1;
                    return Some(q);
                }
            }
            if moved >= STRIDE {
                break;
            }
        }
        Some(q)
    }

    /// Writes the completion's words first, then the number that makes it valid.
    fn complete(&self, q: &mut Queue, completion: Completion) -> Result<(), Status> {
        let slot = q.completed & (q.entries - 1);
        let at =
            q.ring.wrapping_add(u64::from(q.entries) * DESCRIPTOR + u64::from(slot) * COMPLETION);
        q.completed = q.completed.wrapping_add(1);
        self.reach(|bus| bus.write(at, &completion.encode()))?;
        fence(Ordering::Release);
        self.reach(|bus| bus.write(at + 12, &q.completed.to_le_bytes()))?;
        q.untold += 1;
        Ok(())
    }

    /// Whether a reset happened, or the queue was turned off.
    fn overtaken(&self, index: usize, generation: u64) -> bool {
        let state = self.hold();
        state.generation != generation || state.queues[index].status == reg::OFF
    }

    fn cancelled(&self, index: usize, at: u32) -> bool {
        self.hold().queues[index].cancelled.is_some_and(|to| (to.wrapping_sub(at) as i32) > 0)
    }

    /// Moves the bytes of one descriptor; returns their number.
    fn transfer(
        &self,
        d: &Descriptor,
        index: usize,
        generation: u64,
        at: u32,
    ) -> Result<u32, Stop> {
        if d.op == OP_NOTHING {
            return Ok(0);
        }
        if d.card.checked_add(d.bytes.into()).is_none_or(|end| end > self.dram.len()) {
            return Err(Stop::Status(Status::Card));
        }
        let mut done = 0u64;
        while done < u64::from(d.bytes) {
            let n = (u64::from(d.bytes) - done).min(STRIDE as u64) as usize;
            let (host, card) = (d.host.wrapping_add(done), d.card + done);
            if self.overtaken(index, generation) {
                return Err(Stop::Reset);
            }
            if done > 0 && self.cancelled(index, at) {
                return Err(Stop::Status(Status::Cancelled));
            }
            let moved = match d.op {
                OP_TO_CARD if self.host.link.poisoned() => Err(Status::Poisoned),
                OP_TO_CARD => self.reach(|bus| bus.copy_to(host, &self.dram, card, n)),
                _ => self.reach(|bus| bus.copy_from(host, &self.dram, card, n)),
            };
            moved.map_err(Stop::Status)?;
            done += n as u64;
        }
        Ok(d.bytes)
    }
}
