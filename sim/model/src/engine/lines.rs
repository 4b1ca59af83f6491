//! On-chip chunks: their capacity, and the choice of the line to evict.

use std::collections::{BTreeMap, VecDeque};

use shef_proto::config::{Config, Region, Set};
use zeroize::Zeroizing;

use crate::bus::{BEAT, WriteBeat};

/// An on-chip chunk. It is dirty while it has marks.
pub(super) struct Line {
    pub data: Zeroizing<Vec<u8>>,
    /// Bytes that the accelerator wrote since the line was last clean, a word of bits per beat.
    pub marks: Option<Vec<u64>>,
    /// All bytes are valid, whatever the marks say.
    pub whole: bool,
}

impl Line {
    /// A verified chunk.
    pub fn clean(data: Zeroizing<Vec<u8>>) -> Self {
        Self { data, marks: None, whole: true }
    }

    /// A line of zeros that takes writes.
    pub fn gather(len: usize) -> Self {
        Self { data: Zeroizing::new(vec![0; len]), marks: Some(vec![0; len / BEAT]), whole: false }
    }

    pub fn dirty(&self) -> bool {
        self.marks.is_some()
    }

    /// Writes a beat; returns whether the accelerator has now written every byte of the line.
    pub fn write(&mut self, word: usize, beat: &WriteBeat) -> bool {
        let words = self.data.len() / BEAT;
        let marks = self.marks.get_or_insert_with(|| vec![0; words]);
        for i in (0..BEAT).filter(|i| beat.strb >> i & 1 == 1) {
            self.data[word * BEAT + i] = beat.data[i];
        }
        marks[word] |= beat.strb;
        let all = marks.iter().all(|&m| m == u64::MAX);
        self.whole |= all;
        all
    }

    /// Fills the unwritten bytes from `below`; the line is then whole.
    pub fn fill(&mut self, below: &[u8]) {
        if let Some(marks) = &self.marks {
            for (i, (to, from)) in self.data.iter_mut().zip(below).enumerate() {
                if marks[i / BEAT] >> (i % BEAT) & 1 == 0 {
                    *to = *from;
                }
            }
        }
        self.whole = true;
    }
}

/// Index of the region in the list, and chunk.
pub(super) type Key = (usize, u64);

/// All lines. Each engine set has room for some big chunks and some small ones, or for those of its
/// cache; in each of these classes the oldest is evicted first.
pub(super) struct Lines {
    lines: BTreeMap<Key, Line>,
    /// Class of each region.
    class: Vec<usize>,
    /// Lines of a class in the order of allocation.
    order: Vec<VecDeque<Key>>,
    room: Vec<usize>,
}

impl Lines {
    pub fn new(config: &Config) -> Self {
        let class = |r: &Region| 2 * usize::from(r.set) + usize::from(!r.is_big());
        let lines = |s: &Set| match s.cache_bytes.checked_div(s.cache_line.into()) {
            Some(lines) => [lines as usize; 2],
            None => [s.big_lines.into(), s.small_lines.into()],
        };
        let room: Vec<usize> = config.sets().iter().flat_map(lines).collect();
        Self {
            lines: BTreeMap::new(),
            class: config.regions().iter().map(class).collect(),
            order: vec![VecDeque::new(); room.len()],
            room,
        }
    }

    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    pub fn get(&self, key: Key) -> Option<&Line> {
        self.lines.get(&key)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut Line> {
        self.lines.get_mut(&key)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(Key, &Line) -> bool) {
        self.lines.retain(|key, line| keep(*key, line));
        let lines = &self.lines;
        self.order.iter_mut().for_each(|o| o.retain(|key| lines.contains_key(key)));
    }

    /// Dirty lines, by region and chunk.
    pub fn dirty(&self) -> Vec<Key> {
        self.lines.iter().filter(|(_, l)| l.dirty()).map(|(key, _)| *key).collect()
    }

    /// The line that must be sealed before another of `region` becomes dirty: writes leave two
    /// lines of a class for reads.
    pub fn to_seal(&self, region: usize) -> Option<Key> {
        let class = self.class[region];
        let mut dirty =
            self.order[class].iter().filter(|key| self.lines.get(key).is_some_and(Line::dirty));
        let oldest = dirty.next()?;
        (dirty.count() + 3 >= self.room[class]).then_some(*oldest)
    }

    /// Puts a line on chip; evicts the oldest clean one of its class.
    pub fn put(&mut self, key: Key, line: Line) {
        let order = &mut self.order[self.class[key.0]];
        let lines = &mut self.lines;
        if order.len() >= self.room[self.class[key.0]]
            && let Some(at) = order.iter().position(|k| lines.get(k).is_some_and(|l| !l.dirty()))
            && let Some(old) = order.remove(at)
        {
            lines.remove(&old);
        }
        order.push_back(key);
        lines.insert(key, line);
    }
}
