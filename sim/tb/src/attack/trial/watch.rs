//! Watches the memory bus for forbidden writes: plaintext of a sealed region, and writes outside
//! the writable ranges or to a frozen region.

use super::super::session::Session;
use crate::bench::RtlBench;
use shef_proto::config::{Mode, Region};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Default)]
struct State {
    /// The first 8 bytes of every 64 bytes of plaintext, if they are random enough not to appear by
    /// chance.
    plain: HashSet<u64>,
    /// Data of regions that a fault froze: nothing is sealed there any more.
    frozen: Vec<Range<u64>>,
    seen: Vec<String>,
}

/// Inspects every write on the memory bus.
pub struct Watch {
    state: Arc<Mutex<State>>,
    /// Ranges that may be written, and whether their contents are sealed.
    places: Arc<Vec<(Range<u64>, bool)>>,
}

fn head(word: &[u8]) -> u64 {
    word.first_chunk::<8>().map_or(0, |c| u64::from_le_bytes(*c))
}

/// Whether these bytes can only be plaintext. Mostly zero bytes, left by a narrow write, may also
/// be the counters of a tree node, which are not encrypted.
fn telling(head: u64) -> bool {
    head.to_le_bytes().iter().filter(|b| **b != 0).count() > 5
}

/// The ranges of a region that the Shield may write.
fn places(r: &Region) -> Vec<(Range<u64>, bool)> {
    let mut list = vec![(r.base..r.base + r.size, r.mode != Mode::Bypass)];
    if r.mode.has_tags() {
        list.push((r.tag_base..r.tag_base + r.tag_size(), true));
    }
    if let Some(nodes) = r.node_base {
        list.push((nodes..nodes + r.node_size(), true));
    }
    list
}

impl Watch {
    /// Watches for the regions of a session and their contents.
    pub fn new(s: &Session) -> Self {
        let regions = s.config.regions();
        let places = regions.iter().filter(|r| r.mode != Mode::Input).flat_map(places).collect();
        Self { state: Arc::default(), places: Arc::new(places) }
    }

    /// Starts watching the Shield's writes.
    pub fn bind(&self, bench: &mut RtlBench) {
        for memory in bench.core().axi_memories() {
            let (state, places) = (Arc::clone(&self.state), Arc::clone(&self.places));
            memory.on_write(move |addr, data, strobes| {
                let mut s = state.lock().unwrap_or_else(PoisonError::into_inner);
                if s.frozen.iter().any(|f| f.contains(&addr)) {
                    s.seen.push(format!("the Shield wrote to {addr:#x} of a frozen region"));
                }
                match places.iter().find(|(p, _)| p.contains(&addr)) {
                    None => s
                        .seen
                        .push(format!("the Shield wrote to {addr:#x}, which is no place for it")),
                    Some((_, true)) if *strobes & 0xff == 0xff && s.plain.contains(&head(data)) => {
                        s.seen.push(format!(
                            "plaintext on the memory bus at {addr:#x}: {:02x?}",
                            &data[..8]
                        ));
                    }
                    Some(_) => {}
                }
            });
        }
    }

    /// Adds plaintext that the accelerator writes.
    pub fn secret(&self, plain: &[u8]) {
        let mut s = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        s.plain.extend(plain.chunks_exact(64).map(head).filter(|h| telling(*h)));
    }

    /// From now on, no chunk of this region may be written.
    pub fn freeze(&self, r: &Region) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .frozen
            .push(r.base..r.base + r.size);
    }

    /// The first violations that were seen.
    pub fn seen(&self) -> Vec<String> {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .seen
            .iter()
            .take(4)
            .cloned()
            .collect()
    }
}
