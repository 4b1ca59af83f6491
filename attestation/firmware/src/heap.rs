//! The heap: first fit in one arena of words; freed memory is zeroised.

/// Words of memory. The arena reads and writes headers, free words and words being freed, one at a
/// time. It keeps no reference to memory, and never touches a block in use.
pub trait Words {
    /// Number of words.
    fn count(&self) -> usize;
    /// Reads a word.
    fn get(&self, at: usize) -> u32;
    /// Writes a word.
    fn set(&mut self, at: usize, value: u32);
}

/// A heap in [`Words`]. A block is a header word (`words << 1 | used`, including the header) and
/// its payload. Blocks are contiguous, and a search joins free neighbours.
pub struct Arena<W> {
    words: W,
}

impl<W: Words> Arena<W> {
    /// A heap in words that begin at a multiple of 8 bytes: a new one if they are zero, else the
    /// existing one.
    pub fn new(mut words: W) -> Self {
        // The first header is word 1, so that payloads begin at multiples of 8 bytes.
        let room = words.count().saturating_sub(1) & !1;
        if room > 0 && words.get(1) == 0 {
            words.set(1, (room as u32) << 1);
        }
        Self { words }
    }

    /// Allocates `bytes` and returns the first word of the payload, a multiple of 8 bytes into the
    /// arena.
    pub fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let need = (bytes.checked_add(4)?.checked_next_multiple_of(8)? / 4).max(2);
        let mut at = 1;
        while at < self.end() {
            let (mut size, used) = self.block(at);
            if !used {
                while at + size < self.end() {
                    let (next, used) = self.block(at + size);
                    if used {
                        break;
                    }
                    self.words.set(at + size, 0);
                    size += next;
                }
                if size >= need {
                    if size > need {
                        self.words.set(at + need, ((size - need) as u32) << 1);
                    }
                    self.words.set(at, (need as u32) << 1 | 1);
                    return Some(at + 1);
                }
                self.words.set(at, (size as u32) << 1);
            }
            at += size;
        }
        None
    }

    /// Frees a payload that [`Arena::allocate`] returned, and zeroises its words.
    pub fn free(&mut self, payload: usize) {
        let at = payload - 1;
        let (size, _) = self.block(at);
        for word in payload..at + size {
            self.words.set(word, 0);
        }
        self.words.set(at, (size as u32) << 1);
    }

    fn end(&self) -> usize {
        1 + (self.words.count().saturating_sub(1) & !1)
    }

    fn block(&self, at: usize) -> (usize, bool) {
        let header = self.words.get(at);
        ((header >> 1) as usize, header & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arena, Words};
    use alloc::vec::Vec;
    use core::cell::RefCell;

    /// Memory under test, with a flag for each allocated word.
    struct Memory<'a>(&'a RefCell<(Vec<u32>, Vec<bool>)>);

    impl Words for Memory<'_> {
        fn count(&self) -> usize {
            self.0.borrow().0.len()
        }
        fn get(&self, at: usize) -> u32 {
            assert!(!self.0.borrow().1[at], "word {at} is somebody else's");
            self.0.borrow().0[at]
        }
        fn set(&mut self, at: usize, value: u32) {
            assert!(!self.0.borrow().1[at], "word {at} is somebody else's");
            self.0.borrow_mut().0[at] = value;
        }
    }

    fn memory(words: usize) -> RefCell<(Vec<u32>, Vec<bool>)> {
        RefCell::new((alloc::vec![0; words], alloc::vec![false; words]))
    }

    #[test]
    fn blocks_do_not_overlap_are_zeroed_and_join_again() {
        let memory = memory(1001);
        let lend =
            |at: usize, len: usize, lent: bool| memory.borrow_mut().1[at..at + len].fill(lent);
        let is = |at: usize, len: usize, value: u32| {
            memory.borrow().0[at..at + len].iter().all(|word| *word == value)
        };
        let mut arena = Arena::new(Memory(&memory));
        let mut live: alloc::vec::Vec<(usize, usize, u32)> = alloc::vec::Vec::new();
        let mut state = 1_u32;
        for round in 1..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = (state >> 8) as usize;
            if random.is_multiple_of(3) && !live.is_empty() {
                let (at, len, mark) = live.swap_remove(random % live.len());
                assert!(is(at, len, mark), "round {round}");
                lend(at, len, false);
                arena.free(at);
                assert!(is(at, len, 0), "round {round}");
            } else if let Some(at) = arena.allocate(random % 300) {
                let len = (random % 300).div_ceil(4);
                assert!(at % 2 == 0 && is(at, len, 0), "round {round}");
                memory.borrow_mut().0[at..at + len].fill(round);
                lend(at, len, true);
                live.push((at, len, round));
            }
            // The existing heap continues.
            if round % 100 == 0 {
                arena = Arena::new(Memory(&memory));
            }
        }
        for (at, len, _) in live.drain(..) {
            lend(at, len, false);
            arena.free(at);
        }
        assert_eq!(arena.allocate(3996), Some(2));
        assert_eq!(arena.allocate(0), None);
        arena.free(2);
        assert_eq!(arena.allocate(3997), None);
        assert_eq!(arena.allocate(usize::MAX), None);
    }

    #[test]
    fn an_arena_without_room_gives_nothing() {
        for len in 0..3 {
            assert_eq!(Arena::new(Memory(&memory(len))).allocate(0), None, "{len}");
        }
    }
}
