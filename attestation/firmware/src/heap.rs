//! The heap: first fit in one arena of words, freed memory is zeroed.

/// A heap in `[u32]`. A block is a header word (`words << 1 | used`, the header included) and its
/// payload; blocks follow one another without gaps, and free neighbours are joined on the way.
pub struct Arena<'a> {
    words: &'a mut [u32],
}

impl<'a> Arena<'a> {
    /// A heap in zeroed words of which the first lies at a multiple of 8 bytes.
    pub fn new(words: &'a mut [u32]) -> Self {
        // The first header is word 1, so that payloads begin at multiples of 8 bytes.
        let room = words.len().saturating_sub(1) & !1;
        if room > 0 {
            words[1] = (room as u32) << 1;
        }
        Self { words }
    }

    /// Finds room for `bytes`; the payload begins at the word that is returned, a multiple of 8
    /// bytes into the arena.
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
                    self.words[at + size] = 0;
                    size += next;
                }
                if size >= need {
                    if size > need {
                        self.words[at + need] = ((size - need) as u32) << 1;
                    }
                    self.words[at] = (need as u32) << 1 | 1;
                    return Some(at + 1);
                }
                self.words[at] = (size as u32) << 1;
            }
            at += size;
        }
        None
    }

    /// Gives back what [`Arena::allocate`] returned; its words become zeros.
    pub fn free(&mut self, payload: usize) {
        let at = payload - 1;
        let (size, _) = self.block(at);
        self.words[payload..at + size].fill(0);
        self.words[at] &= !1;
    }

    fn end(&self) -> usize {
        1 + (self.words.len().saturating_sub(1) & !1)
    }

    fn block(&self, at: usize) -> (usize, bool) {
        let header = self.words[at];
        ((header >> 1) as usize, header & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn blocks_do_not_overlap_are_zeroed_and_join_again() {
        let mut words = [0; 1001];
        let mut arena = Arena::new(&mut words);
        let mut live: alloc::vec::Vec<(usize, usize, u32)> = alloc::vec::Vec::new();
        let mut state = 1_u32;
        for round in 1..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let random = (state >> 8) as usize;
            if random.is_multiple_of(3) && !live.is_empty() {
                let (at, len, mark) = live.swap_remove(random % live.len());
                assert!(arena.words[at..at + len].iter().all(|word| *word == mark), "round {round}");
                arena.free(at);
            } else if let Some(at) = arena.allocate(random % 300) {
                let len = (random % 300).div_ceil(4);
                assert!(at % 2 == 0 && arena.words[at..at + len].iter().all(|word| *word == 0), "round {round}");
                arena.words[at..at + len].fill(round);
                live.push((at, len, round));
            }
        }
        for (at, ..) in live.drain(..) {
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
            assert_eq!(Arena::new(&mut [0; 3][..len]).allocate(0), None, "{len}");
        }
    }
}
