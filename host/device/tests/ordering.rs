//! A ring between two threads under loom, which runs every interleaving of their accesses and
//! returns for each load every value that the memory model allows. The program's side of the ring
//! is the real one; the card is a model of the DMA engine.
//!
//! Interleavings with at most four preemptions are run. Removing each ordering shows that it is
//! needed.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;
use shef_device::ring::{
    COMPLETION, Completion, DESCRIPTOR, Descriptor, DmaMemory, OP_NOTHING, Queue, Registers,
    Status, reg,
};
use shef_device::{DeviceError, OutOfRange};
use std::time::Duration;

const ENTRIES: u32 = 2;
/// More than the ring has entries, so that both kinds of entry are overwritten.
const DESCRIPTORS: u32 = 3;

/// All orderings, or one removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Kept,
    /// The doorbell is not ordered after the descriptors.
    NotPublished,
    /// The program may read a completion before the number that makes it valid.
    NumberNotAcquired,
    /// The card may write a completion after the number that makes it valid.
    NumberNotReleased,
}

/// Words of host memory that both sides access.
#[derive(Clone)]
struct Ring(Arc<Vec<AtomicU32>>, Order);

impl Ring {
    fn words(&self, offset: u64, bytes: usize) -> &[AtomicU32] {
        &self.0[offset as usize / 4..][..bytes / 4]
    }
}

impl DmaMemory for Ring {
    fn device_address(&self) -> u64 {
        0
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64 * 4
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        for (word, out) in self.words(offset, out.len()).iter().zip(out.chunks_exact_mut(4)) {
            out.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        for (word, bytes) in self.words(offset, bytes.len()).iter().zip(bytes.as_chunks().0) {
            word.store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        Ok(())
    }

    fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        let order =
            if self.1 == Order::NumberNotAcquired { Ordering::Relaxed } else { Ordering::Acquire };
        Ok(self.words(offset, 4)[0].load(order))
    }

    fn publish(&self) {
        if self.1 != Order::NotPublished {
            fence(Ordering::SeqCst);
        }
    }
}

/// The card's registers: writing the doorbell orders no other access.
struct Doorbell {
    tail: Arc<AtomicU32>,
    on: u32,
}

impl Registers for Doorbell {
    fn register(&mut self, _: u32) -> Result<u32, DeviceError> {
        Ok(self.on)
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        match offset - reg::BASE {
            reg::CONTROL => self.on = value,
            reg::TAIL => self.tail.store(value, Ordering::Relaxed),
            _ => {}
        }
        Ok(())
    }

    fn interrupted(&mut self, _: u32, _: Duration) -> Result<bool, DeviceError> {
        Ok(false)
    }
}

fn descriptor(tag: u32) -> Descriptor {
    Descriptor {
        op: OP_NOTHING,
        flags: 0,
        tag,
        host: u64::from(tag) << 12,
        card: u64::from(tag) << 20,
        bytes: 100 + tag,
    }
}

fn completion(tag: u32) -> Completion {
    Completion { tag, status: Status::Done, retired: 1, bytes: 100 + tag }
}

/// Serves all descriptors, and checks that each is the one that was pushed.
fn card(ring: &Ring, tail: &AtomicU32) {
    let mut head = 0;
    while head < DESCRIPTORS {
        if tail.load(Ordering::Relaxed) == head {
            thread::yield_now();
            continue;
        }
        fence(Ordering::Acquire);
        let mut bytes = [0; DESCRIPTOR as usize];
        ring.read(u64::from(head % ENTRIES) * DESCRIPTOR, &mut bytes).unwrap();
        assert_eq!(
            Descriptor::decode(&bytes),
            Ok(descriptor(head)),
            "another descriptor than was pushed"
        );
        let at = u64::from(ENTRIES) * DESCRIPTOR + u64::from(head % ENTRIES) * COMPLETION;
        ring.write(at, &completion(head).encode()).unwrap();
        head += 1;
        if ring.1 != Order::NumberNotReleased {
            fence(Ordering::Release);
        }
        ring.write(at + 12, &head.to_le_bytes()).unwrap();
    }
}

fn run(order: Order) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(move || {
        let words = Queue::<Ring>::bytes(ENTRIES) / 4;
        let ring = Ring(Arc::new((0..words).map(|_| AtomicU32::new(0)).collect()), order);
        let tail = Arc::new(AtomicU32::new(0));
        let mut doorbell = Doorbell { tail: Arc::clone(&tail), on: 0 };
        let mut queue = Queue::open(&mut doorbell, 0, ENTRIES, ring.clone(), 1, 0).unwrap();
        let card = thread::spawn(move || card(&ring, &tail));
        let (mut pushed, mut taken) = (0, 0);
        while taken < DESCRIPTORS {
            if pushed < DESCRIPTORS && queue.push(&descriptor(pushed)).unwrap() {
                pushed += 1;
                queue.submit(&mut doorbell).unwrap();
            }
            match queue.poll().unwrap() {
                Some(found) => {
                    assert_eq!(found, completion(taken), "another completion than was written");
                    taken += 1;
                }
                None => thread::yield_now(),
            }
        }
        card.join().unwrap();
        assert_eq!((queue.pending(), queue.room()), (0, ENTRIES));
    });
}

#[test]
fn descriptors_and_completions_are_seen_as_they_were_written() {
    run(Order::Kept);
}

#[test]
#[should_panic = "another descriptor than was pushed"]
fn a_doorbell_before_its_descriptors_is_found() {
    run(Order::NotPublished);
}

#[test]
#[should_panic = "another completion than was written"]
fn a_completion_read_before_its_number_is_found() {
    run(Order::NumberNotAcquired);
}

#[test]
#[should_panic = "another completion than was written"]
fn a_completion_written_after_its_number_is_found() {
    run(Order::NumberNotReleased);
}
