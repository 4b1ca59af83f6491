//! No message, and no sequence of messages, makes the kernel use more memory than its core has.
#![expect(unsafe_code, reason = "an allocator that counts")]

use shef_fixtures::world::*;
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::image::{Description, MAX_HEADER};
use shef_proto::mailbox::{MAX_MESSAGE, MAX_PART, Request, load_requests};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The firmware's heap is 236 KiB (`attestation/firmware/ld`); this leaves room for gaps. Pointers
/// are twice as wide here, so the same work takes less there.
const BOUND: usize = 200 * 1024;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

/// Heap that the kernel holds between messages, and its peak within one.
#[derive(Default)]
struct Memory {
    held: isize,
    peak: isize,
}

impl Memory {
    fn ask(&mut self, world: &mut World, message: &[u8]) {
        let before = LIVE.load(Relaxed) as isize;
        PEAK.store(before as usize, Relaxed);
        let answer = world.kernel.handle(message);
        self.peak = self.peak.max(self.held + PEAK.load(Relaxed) as isize - before);
        drop(answer);
        self.held += LIVE.load(Relaxed) as isize - before;
        // The fabric holds the programmed image.
        let fabric = &world.kernel.platform().coming;
        assert!(fabric.len() <= PLAINTEXT.len());
    }
}

/// One test, because the counters are global to the process.
#[test]
fn memory_is_bounded() {
    // As many chunks as a header can list.
    let description = Description { chunk_size: 6, ..description(3) };
    let mut world =
        World::with(RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot, &description, |_| {});
    assert!(world.vendor.container.header().bytes().len() > MAX_HEADER * 5 / 6);
    let mut memory = Memory::default();
    let key_box = world.key_box(3);
    for request in load_requests(&world.vendor.container.clone(), &key_box) {
        memory.ask(&mut world, &request.encode());
    }
    assert!(world.kernel.platform().loaded.is_some());
    println!("a load: {} bytes", memory.peak);

    // Much structure in few bytes, parsed as a message and as a header.
    let shapes: [&[u8]; 6] = [&[0], &[0x80], &[0x81, 0], &[0xa1, 0, 0], &[0xc0, 0], &[0x40]];
    for shape in shapes {
        for len in [MAX_MESSAGE, MAX_HEADER] {
            let count = (len - 3) / shape.len();
            let mut bomb = vec![0x99, (count >> 8) as u8, count as u8];
            bomb.extend(shape.repeat(count));
            memory.ask(&mut world, &bomb);
            let key_box = world.key_box(3);
            memory
                .ask(&mut world, &Request::LoadBegin { key_box, header_len: bomb.len() }.encode());
            for (part, bytes) in bomb.chunks(MAX_PART).enumerate() {
                memory.ask(
                    &mut world,
                    &Request::LoadHeader { offset: part * MAX_PART, bytes: bytes.to_vec() }
                        .encode(),
                );
            }
        }
    }
    println!("with hostile messages: {} bytes", memory.peak);
    assert!(memory.peak < BOUND as isize, "{} bytes", memory.peak);
}
