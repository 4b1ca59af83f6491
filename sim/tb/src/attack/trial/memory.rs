//! Acts on memory contents: chunks that the accelerator reads, results that the owner opens.

use super::forge::Patch;
use super::transactions::{Transaction, address, may_be_refused};
use super::{Trial, pick};
use crate::Result;
use crate::attack::Kind;
use crate::attack::session::{Piece, piece};
use crate::bench::Bench;
use crate::traffic::Op;
use shef_proto::channel::{FaultKind, ShieldRequest};
use shef_proto::config::{Mode, Region};
use std::ops::Range;
use std::sync::Arc;

impl Trial<'_> {
    /// A chunk to attack, still sealed as at the snapshot. Traffic before the act does not touch
    /// it.
    pub(super) fn victim(&mut self) -> (Region, u64) {
        let regions = self.regions(|m| m != Mode::Bypass);
        loop {
            let Some(r) = pick(&mut self.rng, &regions) else {
                unreachable!("a configuration has a sealed region")
            };
            let c = self.some_chunk(&r);
            if self.sealed_at_snapshot(&r, c) {
                self.spare(&r, c..c + 1);
                return (r, c);
            }
        }
    }

    /// Keeps honest traffic away from chunks and from those that share a beat of tags with them.
    pub(super) fn spare(&mut self, r: &Region, chunks: Range<u64>) {
        self.avoid.push((r.id, chunks.start / 4 * 4..chunks.end.next_multiple_of(4)));
    }

    /// Replaces bytes in memory, or in flight from it.
    fn plant(&mut self, patches: Vec<Patch>, wire: bool) {
        if !wire {
            for (at, bytes) in &patches {
                self.s.bench.mem_write(*at, bytes);
            }
            return;
        }
        let patches = Arc::new(patches);
        for memory in self.s.bench.core().axi_memories() {
            let patches = Arc::clone(&patches);
            memory.on_read(move |addr, beat| {
                for (at, bytes) in
                    patches.iter().filter(|(at, b)| *at < addr + 64 && addr < *at + b.len() as u64)
                {
                    for (i, b) in beat.iter_mut().enumerate() {
                        if let Some(new) =
                            (addr + i as u64).checked_sub(*at).and_then(|k| bytes.get(k as usize))
                        {
                            *b = *new;
                        }
                    }
                }
            });
        }
    }

    pub(super) fn forged_chunk(&mut self) -> Result<()> {
        let (r, c) = self.victim();
        let f = self.forged(&r, c);
        self.spare(&r, f.shared);
        // If the region prefetches, the act comes before all traffic.
        let early = r.prefetch > 0 || self.rng.one_in(4);
        let wire = self.rng.one_in(2);
        if self.by_region() && self.rng.one_in(2) {
            self.dirty(&r)?;
        }
        let what: Vec<String> =
            f.patches.iter().map(|(at, b)| format!("{} B at {at:#x}", b.len())).collect();
        self.v.act = format!(
            "region {} chunk {c}: {} {}",
            r.name,
            what.join(", "),
            if wire { "on the wire" } else { "in memory" }
        );
        if early {
            self.plant(f.patches, wire);
            self.warm_up()?;
        } else {
            self.warm_up()?;
            self.plant(f.patches, wire);
        }
        let kind = if f.node { FaultKind::Node } else { FaultKind::Tag };
        if matches!(r.mode, Mode::Counted | Mode::Tree) && self.rng.one_in(4) {
            // A partial write does not repair the rest of the forged chunk.
            let transaction = self.write_of(&r, c);
            if covers_chunk(&transaction, &r) {
                self.fresh.remove(&(r.id, c));
            } else {
                self.v.act.push_str(", written in part before it is read");
                self.execute(&may_be_refused(vec![transaction]))?;
            }
        }
        self.read_victims(&[(r, c)], kind)
    }

    /// Reads attacked chunks among honest bursts. None of their bytes may be delivered, and the
    /// Shield must report the fault.
    pub(super) fn read_victims(
        &mut self,
        victims: &[(Region, u64)],
        kind: FaultKind,
    ) -> Result<()> {
        let n = self.below(3);
        let mut transactions = self.honest(n);
        let spared = self.by_region();
        for d in &mut transactions {
            d.required = spared && !victims.iter().any(|(r, _)| r.contains(address(&d.op), 1));
        }
        let mut asked = Vec::new();
        for (r, c) in victims {
            let mut transaction = self.read_of(r, *c, true);
            transaction.required = false;
            asked.push(transaction.op.clone());
            let at = self.below(transactions.len() as u64 + 1) as usize;
            transactions.insert(at, transaction);
        }
        let got = self.execute(&transactions)?;
        let through = victims.len() == 1
            && transactions
                .iter()
                .zip(&got)
                .any(|(d, o)| d.op == asked[0] && o.okay.contains(&true));
        if through {
            self.v.act.push_str(": words of the chunk were delivered");
        }
        self.v.detected = self.fault_reported(&[kind], Some(victims))? && !through;
        Ok(())
    }

    /// Swaps two chunks of a region and reads both at once.
    pub(super) fn two_exchanged(&mut self) -> Result<()> {
        let (r, a) = self.victim();
        let b = loop {
            let b = self.some_chunk(&r);
            if b != a && self.sealed_at_snapshot(&r, b) {
                break b;
            }
        };
        self.spare(&r, b..b + 1);
        let early = r.prefetch > 0;
        if !early {
            self.warm_up()?;
        }
        let (pa, pb) = (piece(&self.s.bench, &r, a), piece(&self.s.bench, &r, b));
        self.v.act = format!("region {} chunks {a} and {b} change places", r.name);
        let at = |c: u64, p: Piece| [(r.chunk_addr(c), p.0), (r.tag_addr(c), p.1.to_vec())];
        self.plant([at(a, pb), at(b, pa)].concat(), false);
        if early {
            self.warm_up()?;
        }
        self.read_victims(&[(r.clone(), a), (r, b)], FaultKind::Tag)
    }

    /// Advances the epoch while memory, and possibly the Shield's lines, still hold the old one.
    fn stale_epoch_of(&mut self, r: &Region) -> Result<()> {
        let c = self.some_chunk(r);
        self.spare(r, 0..r.chunks());
        self.warm_up()?;
        let before = self.read_of(r, c, true);
        let after = self.read_of(r, c, true);
        self.execute(&[before])?;
        let next = self.s.epoch + 1 + self.below(3);
        self.v.act =
            format!("region {} chunk {c} of epoch {} in epoch {next}", r.name, self.s.epoch);
        self.must(&ShieldRequest::epoch(r.id, next))?;
        self.epochs.insert(r.id, next);
        let got = self.execute(&may_be_refused(vec![after]))?;
        let through = got[0].okay.contains(&true);
        self.v.detected =
            self.fault_reported(&[FaultKind::Tag], Some(&[(r.clone(), c)]))? && !through;
        Ok(())
    }

    pub(super) fn stale_epoch(&mut self) -> Result<()> {
        let inputs = self.regions(|m| m == Mode::Input);
        match pick(&mut self.rng, &inputs) {
            Some(r) => self.stale_epoch_of(&r),
            None => self.forged_chunk(),
        }
    }

    /// Changes bytes of an unprotected region: they are delivered unchanged, and everything else is
    /// unaffected.
    pub(super) fn public(&mut self) -> Result<()> {
        let open = self.regions(|m| m == Mode::Bypass);
        let Some(r) = pick(&mut self.rng, &open) else {
            unreachable!("the configuration has an unprotected region")
        };
        let c = self.some_chunk(&r);
        let mut bytes = self.plain(&r, c).unwrap_or_default();
        for _ in 0..1 + self.below(8) {
            let bit = self.below(8 * u64::from(r.chunk)) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        self.v.act = format!("region {} chunk {c}", r.name);
        self.plant(vec![(r.chunk_addr(c), bytes.clone())], false);
        self.fresh.insert((r.id, c), bytes);
        let transaction = self.read_of(&r, c, true);
        self.execute(&[transaction])?;
        let transactions = self.honest(6);
        self.execute(&transactions)?;
        self.check_unharmed()
    }

    /// Changes a result, from this attempt or an earlier one, before the owner opens it.
    pub(super) fn forged_result(&mut self) -> Result<()> {
        let outputs = self.regions(|m| m == Mode::Output);
        let Some(r) = pick(&mut self.rng, &outputs) else { return self.stale_scratch() };
        self.warm_up()?;
        self.must(&ShieldRequest::flush())?;
        self.check_written();
        let c = loop {
            let c = self.some_chunk(&r);
            // A chunk of the previous epoch in place of an unwritten one is a replay too.
            if self.plain(&r, c).is_some() || self.kind == Kind::Replay {
                break c;
            }
        };
        let now = piece(&self.s.bench, &r, c);
        self.v.act = format!("result {} chunk {c}", r.name);
        self.v.transactions += 1;
        // The owner opens the chunks that the written map marks as sealed in this epoch.
        let answer = self.must(&ShieldRequest::map(r.id, (c / 384) as u32))?;
        let bit = c % 384;
        let says = answer.payload[bit as usize / 8] >> (bit % 8) & 1 == 1;
        if says != self.plain(&r, c).is_some() {
            let list = if says { &mut self.v.accepted_wrong } else { &mut self.v.refused_wrong };
            list.push(format!("written map of region {} chunk {c} says {says}", r.name));
        }
        let bad = if says { self.forged_piece(&r, c, &now) } else { self.old_piece(&r, c) };
        let opened = self.s.open_chunk(&r, c, &bad);
        if opened.is_some() {
            self.v.accepted_wrong.push(format!("forged result {} chunk {c} opened", r.name));
        }
        self.v.detected = opened.is_none();
        Ok(())
    }

    pub(super) fn old_piece(&self, r: &Region, chunk: u64) -> Piece {
        let (mut d, mut t) = (vec![0; r.chunk as usize], [0; 16]);
        self.old.read(r.chunk_addr(chunk), &mut d);
        self.old.read(r.tag_addr(chunk), &mut t);
        (d, t)
    }

    /// Forges scratch that this attempt has rewritten and sealed, for example with its previous
    /// contents.
    fn stale_scratch(&mut self) -> Result<()> {
        let scratch = self.regions(|m| matches!(m, Mode::Counted | Mode::Tree));
        let Some(r) = pick(&mut self.rng, &scratch) else { return self.forged_chunk() };
        self.warm_up()?;
        let c = self.some_chunk(&r);
        let now = self.s.bench.core().memory().clone();
        let transaction = self.write_of(&r, c);
        self.execute(&[transaction])?;
        self.must(&ShieldRequest::invalidate())?;
        self.check_written();
        self.old = now;
        self.spare(&r, c / 4 * 4..c / 4 * 4 + 4);
        let mut f = self.forged(&r, c);
        // The Shield still holds the nodes above it.
        let (data, tag) = (r.chunk_addr(c), r.tag_addr(c));
        f.patches.retain(|(at, _)| *at == data || *at == tag);
        if f.patches.is_empty() {
            let mut p = piece(&self.s.bench, &r, c);
            p.1[0] ^= 1;
            f.patches.push((tag, p.1.to_vec()));
        }
        self.v.act = format!("region {} chunk {c}, rewritten just now", r.name);
        self.plant(f.patches, false);
        self.read_victims(&[(r, c)], FaultKind::Tag)
    }
}

/// Whether a write replaces a chunk entirely.
fn covers_chunk(transaction: &Transaction, r: &Region) -> bool {
    matches!(&transaction.op, Op::Write { data, strobes, .. } if strobes.is_empty() && data.len() == r.chunk as usize)
}
