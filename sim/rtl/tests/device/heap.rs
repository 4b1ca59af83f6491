//! Use of the firmware's stack and heap, from a snapshot of the subsystem.

use shef_rtl::KernelSnapshot;

/// Words of the stack, from the bottom of RAM (`attestation/firmware/ld`).
const STACK: usize = 0x4000 / 4;
/// Words up to the end of the heap.
const HEAP_END: usize = 0x3_f000 / 4;
/// Most words of statics, which are between stack and heap.
const STATICS: usize = 256;

/// Position of RAM in snapshots, and of the heap in RAM.
#[derive(Clone, Copy, Debug)]
pub struct Ram {
    offset: usize,
    heap: usize,
}

/// Memory in use, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Blocks of the heap, with their headers.
    pub live: usize,
    /// From the beginning of the heap to the end of its last block in use.
    pub reach: usize,
    /// From the deepest word of the stack that is not zero: the maximum depth since start, because
    /// RAM begins as zeros.
    pub stack: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The blocks, starting at byte `at`, over `words` words: position, words, used.
fn blocks(bytes: &[u8], at: usize, words: usize) -> impl Iterator<Item = (usize, usize, bool)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let header = word(bytes, at + 4 * next).filter(|_| next < words)?;
        let (block, size) = (next, (header >> 1) as usize);
        next += size;
        (size >= 2 && size.is_multiple_of(2) && next <= words).then_some((
            block,
            size,
            header & 1 != 0,
        ))
    })
}

impl Ram {
    /// Finds the position at which a chain of blocks fills the heap exactly.
    ///
    /// # Panics
    /// When there is not exactly one position.
    pub fn find(snapshot: &KernelSnapshot) -> Self {
        let bytes = snapshot.bytes();
        let mut found: Vec<Self> = Vec::new();
        for at in 0..bytes.len() {
            let (mut sum, mut used) = (0, 0);
            for (_, size, in_use) in blocks(bytes, at, HEAP_END - STACK) {
                (sum, used) = (sum + size, used + usize::from(in_use));
            }
            // The heap follows the statics; its first word belongs to no block, nor does its last.
            let heap = (STACK..STACK + STATICS).step_by(2).find(|heap| HEAP_END - heap - 2 == sum);
            let place =
                heap.and_then(|heap| Some(Self { offset: at.checked_sub(4 * (heap + 1))?, heap }));
            if let Some(place) = place.filter(|_| used > 0)
                && found.iter().all(|first| first.offset != place.offset)
            {
                found.push(place);
            }
        }
        let [ram] = found[..] else { panic!("RAM of the core at {found:?}") };
        ram
    }

    /// Memory in use in a snapshot; `None` while the firmware is joining blocks.
    pub fn usage(self, snapshot: &KernelSnapshot) -> Option<Use> {
        let bytes = snapshot.bytes();
        let words = HEAP_END - self.heap - 2;
        let blocks: Vec<_> = blocks(bytes, self.offset + 4 * (self.heap + 1), words).collect();
        if blocks.iter().map(|(_, size, _)| size).sum::<usize>() != words {
            return None;
        }
        let used = || blocks.iter().filter(|(.., used)| *used);
        let deepest = (0..STACK)
            .find(|index| word(bytes, self.offset + 4 * index) != Some(0))
            .unwrap_or(STACK);
        Some(Use {
            live: 4 * used().map(|(_, size, _)| size).sum::<usize>(),
            reach: used().next_back().map_or(0, |(at, size, _)| 4 * (at + size)),
            stack: 4 * (STACK - deepest),
        })
    }
}
