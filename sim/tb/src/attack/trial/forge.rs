//! Forges memory contents and messages: the result always differs from the original.

use super::{Trial, pick};
use crate::attack::Kind;
use crate::attack::layout::{self, Part};
use crate::attack::session::{Piece, Session};
use crate::bench::Bench;
use shef_proto::channel::{MESSAGE_LEN, Sealed};
use shef_proto::config::{Mode, Region};
use shef_rtl::agent::Rng;
use std::ops::Range;

/// Replacement bytes for an address.
pub type Patch = (u64, Vec<u8>);

/// A forged chunk.
pub struct Forgery {
    /// Replacement bytes.
    pub patches: Vec<Patch>,
    /// The chunks that share a changed part with the victim.
    pub shared: Range<u64>,
    /// Whether a tree node is changed: then the node's tag fails first.
    pub node: bool,
}

/// A random cut inside `len` bytes, at a multiple of 8.
fn cut(rng: &mut Rng, len: usize) -> usize {
    8 * (1 + rng.below(len as u64 / 8 - 1) as usize)
}

/// Forges some bytes, given the bytes at another address and at an earlier time.
pub fn mangle(rng: &mut Rng, kind: Kind, now: &[u8], other: &[u8], old: &[u8]) -> Vec<u8> {
    let mut new = now.to_vec();
    let a = cut(rng, now.len());
    match kind {
        Kind::Flip => {
            for _ in 0..1 + if rng.one_in(2) { 0 } else { rng.below(4) } {
                let bit = rng.below(8 * now.len() as u64);
                new[bit as usize / 8] ^= 1 << (bit % 8);
            }
        }
        Kind::Swap => new.copy_from_slice(other),
        Kind::Replay => new.copy_from_slice(old),
        Kind::Splice => {
            let from = if rng.one_in(2) { old } else { other };
            if rng.one_in(2) {
                new[a..].copy_from_slice(&from[a..]);
            } else {
                new[..a].copy_from_slice(&from[..a]);
            }
        }
        Kind::Truncate => {
            if rng.one_in(2) {
                new[a..].fill(0);
            } else {
                new[a..].copy_from_slice(&old[a..]);
            }
        }
        _ => {
            if rng.one_in(2) {
                new.fill(0);
            } else {
                new[a - 8..a].fill(0);
            }
        }
    }
    new
}

impl Trial<'_> {
    fn bytes(&self, at: &Range<u64>) -> Vec<u8> {
        let mut b = vec![0; (at.end - at.start) as usize];
        self.s.bench.mem_read(at.start, &mut b);
        b
    }

    fn old_bytes(&self, at: &Range<u64>) -> Vec<u8> {
        let mut b = vec![0; (at.end - at.start) as usize];
        self.old.read(at.start, &mut b);
        b
    }

    /// Another sealed chunk of the same shape, in the same region or another.
    fn foreign(&mut self, r: &Region, chunk: u64) -> (Region, u64) {
        let like: Vec<Region> = self.regions(|m| m != Mode::Bypass);
        let like: Vec<Region> = like
            .into_iter()
            .filter(|o| o.chunk == r.chunk && layout::parts(o) == layout::parts(r))
            .collect();
        for _ in 0..20 {
            let o = pick(&mut self.rng, &like).unwrap_or_else(|| r.clone());
            let c = self.some_chunk(&o);
            if (o.id, c) != (r.id, chunk) && self.sealed_at_snapshot(&o, c) {
                return (o, c);
            }
        }
        (r.clone(), if chunk == 0 { 1 } else { chunk - 1 })
    }

    /// Forges one, some or all of the parts of a chunk: data, tag and nodes.
    pub(super) fn forged(&mut self, r: &Region, chunk: u64) -> Forgery {
        let all = Session::parts(r, chunk);
        let (o, other) = self.foreign(r, chunk);
        let one = self.below(all.len() as u64) as usize;
        let how = self.below(4);
        let mut f = Forgery { patches: Vec::new(), shared: chunk..chunk + 1, node: false };
        for (i, (part, at)) in all.iter().enumerate() {
            let taken = match how {
                0 => true,
                1 => i == one || self.rng.one_in(2),
                _ => i == one,
            };
            if !taken {
                continue;
            }
            let now = self.bytes(at);
            let (from, old) = (self.bytes(&layout::place(&o, other, *part)), self.old_bytes(at));
            let new = mangle(&mut self.rng, self.kind, &now, &from, &old);
            if new != now {
                f.add(chunk, *part, at.start, new);
            }
        }
        if f.patches.is_empty() {
            let (part, at) = &all[0];
            let mut new = self.bytes(at);
            new[0] ^= 1;
            f.add(chunk, *part, at.start, new);
        }
        f
    }

    /// Forges a result that the owner is about to open.
    pub(super) fn forged_piece(&mut self, r: &Region, chunk: u64, now: &Piece) -> Piece {
        let mut p = now.clone();
        for (at, bytes) in self.forged(r, chunk).patches {
            if at == r.chunk_addr(chunk) { p.0 = bytes } else { p.1.copy_from_slice(&bytes) }
        }
        p
    }

    /// Forges a message, and picks the words of it that are written.
    pub(super) fn forged_message(
        &mut self,
        now: &Sealed,
        before: &[Sealed],
    ) -> (Sealed, Range<usize>) {
        let mut m = *now;
        let all = 0..MESSAGE_LEN / 4;
        let old = pick(&mut self.rng, before).unwrap_or([0; MESSAGE_LEN]);
        let block = |rng: &mut Rng| 8 + 16 * rng.below(5) as usize;
        match self.kind {
            Kind::Swap => {
                let (a, b) = (block(&mut self.rng), block(&mut self.rng));
                let (x, y) = (m[a..a + 16].to_vec(), m[b..b + 16].to_vec());
                m[a..a + 16].copy_from_slice(&y);
                m[b..b + 16].copy_from_slice(&x);
            }
            Kind::Replay => m = old,
            Kind::Truncate => return (m, 0..2 + self.below(20) as usize),
            kind => m.copy_from_slice(&mangle(&mut self.rng, kind, now, &old, &old)),
        }
        if m == *now {
            m[MESSAGE_LEN - 1] ^= 1;
        }
        (m, all)
    }
}

impl Forgery {
    fn add(&mut self, chunk: u64, part: Part, at: u64, bytes: Vec<u8>) {
        let s = layout::shared(chunk, part);
        self.shared = self.shared.start.min(s.start)..self.shared.end.max(s.end);
        self.node |= matches!(part, Part::Node(_));
        self.patches.push((at, bytes));
    }
}
