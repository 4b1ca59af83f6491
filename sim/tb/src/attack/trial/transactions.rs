//! Accelerator transactions with their expected outcome.

use super::{Trial, pick};
use crate::Result;
use crate::bench::Bench;
use crate::traffic::{Op, Outcome};
use shef_proto::config::{Mode, Region};
use std::collections::BTreeSet;

/// A burst and its expected outcome.
#[derive(Debug, Clone)]
pub struct Transaction {
    /// The burst.
    pub op: Op,
    /// The expected outcome.
    pub want: Outcome,
    /// Whether the outcome is required. If not, the burst may be refused instead.
    pub required: bool,
}

/// Chunks that a set of concurrent bursts reads and writes.
#[derive(Default)]
struct Busy {
    read: BTreeSet<(u8, u64)>,
    written: BTreeSet<(u8, u64)>,
}

impl Trial<'_> {
    /// The plaintext of a chunk, if it is known.
    pub(super) fn plain(&self, r: &Region, chunk: u64) -> Option<Vec<u8>> {
        let known = self
            .fresh
            .get(&(r.id, chunk))
            .or_else(|| self.s.scoreboards[usize::from(r.id)].plain.get(&chunk));
        let zeros =
            || matches!(r.mode, Mode::Counted | Mode::Tree).then(|| vec![0; r.chunk as usize]);
        known.cloned().or_else(zeros)
    }

    /// Whether memory still holds a chunk as it was sealed at the snapshot.
    pub(super) fn sealed_at_snapshot(&self, r: &Region, chunk: u64) -> bool {
        self.s.scoreboards[usize::from(r.id)].plain.contains_key(&chunk)
            && !self.fresh.contains_key(&(r.id, chunk))
    }

    /// Whether honest traffic may access a chunk.
    fn free(&self, r: &Region, chunk: u64) -> bool {
        !self.frozen.contains(&r.id)
            && !self.avoid.iter().any(|(id, c)| *id == r.id && c.contains(&chunk))
    }

    /// A random chunk of a region, among those that traffic uses.
    pub(super) fn some_chunk(&mut self, r: &Region) -> u64 {
        let used = &self.s.scoreboards[usize::from(r.id)].used;
        pick(&mut self.rng, used).unwrap_or(0)
    }

    fn some_region(&mut self) -> Region {
        let n = self.s.config.regions().len() as u64;
        let id = self.below(n) as u8;
        self.region(id)
    }

    /// A read of a chunk: all of it, a part, or on into the following chunks if those may be read.
    pub(super) fn read_of(&mut self, r: &Region, chunk: u64, alone: bool) -> Transaction {
        self.read_beside(r, chunk, alone, &Busy::default())
    }

    fn read_beside(&mut self, r: &Region, chunk: u64, alone: bool, busy: &Busy) -> Transaction {
        let per = u64::from(r.chunk) / 64;
        let first = self.below(per);
        let mut beats =
            1 + if self.rng.one_in(2) { per - first - 1 } else { self.below(per - first) };
        if self.rng.one_in(3) && !alone {
            beats = beats.max(1 + self.below(16));
        }
        let start = chunk * per + first;
        beats = beats.min(64 - start % 64).min(r.size / 64 - start);
        let mut want = Outcome { okay: Vec::new(), data: Vec::new() };
        for b in start..start + beats {
            let c = b / per;
            let Some(plain) = self.plain(r, c) else { break };
            if c != chunk && (alone || !self.free(r, c) || busy.written.contains(&(r.id, c))) {
                break;
            }
            let at = (b % per * 64) as usize;
            want.data.extend_from_slice(&plain[at..at + 64]);
            want.okay.push(true);
        }
        let op = Op::Read {
            id: self.below(8) as u8,
            addr: r.base + start * 64,
            beats: want.okay.len() as u32,
        };
        Transaction { op, want, required: true }
    }

    fn honest_read(&mut self, busy: &mut Busy) -> Option<Transaction> {
        for _ in 0..40 {
            let r = self.some_region();
            let c = self.some_chunk(&r);
            if self.free(&r, c) && !busy.written.contains(&(r.id, c)) && self.plain(&r, c).is_some()
            {
                let transaction = self.read_beside(&r, c, false, busy);
                let last = (c * u64::from(r.chunk) + 64 * transaction.want.okay.len() as u64)
                    .div_ceil(u64::from(r.chunk));
                busy.read.extend((c..=last).map(|c| (r.id, c)));
                return Some(transaction);
            }
        }
        None
    }

    fn honest_write(&mut self, busy: &mut Busy) -> Option<Transaction> {
        let regions = self.regions(|m| m != Mode::Input);
        for _ in 0..40 {
            let r = pick(&mut self.rng, &regions)?;
            let c = self.some_chunk(&r);
            let taken = busy.written.contains(&(r.id, c)) || busy.read.contains(&(r.id, c));
            if taken || !self.free(&r, c) || (r.mode == Mode::Output && self.plain(&r, c).is_some())
            {
                continue;
            }
            busy.written.insert((r.id, c));
            return Some(self.write_of(&r, c));
        }
        None
    }

    /// A write of a chunk or a part of it. The scoreboard is updated.
    pub(super) fn write_of(&mut self, r: &Region, chunk: u64) -> Transaction {
        let per = u64::from(r.chunk) / 64;
        let first = if r.mode == Mode::Output || self.rng.one_in(2) { 0 } else { self.below(per) };
        let beats = if self.rng.one_in(3) { 1 + self.below(per - first) } else { per - first };
        let mut data = vec![0; 64 * beats as usize];
        self.rng.fill(&mut data);
        let strobes: Vec<u64> = if self.rng.one_in(4) {
            (0..beats).map(|k| self.rng.next_u64() | u64::from(k == 0)).collect()
        } else {
            Vec::new()
        };
        let mut plain = self.plain(r, chunk).unwrap_or_else(|| vec![0; r.chunk as usize]);
        let at = 64 * first as usize;
        for (i, d) in data.iter().enumerate() {
            if strobes.get(i / 64).is_none_or(|s| s >> (i % 64) & 1 == 1) {
                plain[at + i] = *d;
            }
        }
        if r.mode != Mode::Bypass {
            self.watch.secret(&plain);
        }
        self.fresh.insert((r.id, chunk), plain);
        let op = Op::Write {
            id: self.below(4) as u8,
            addr: r.chunk_addr(chunk) + 64 * first,
            data,
            strobes,
        };
        Transaction { op, want: Outcome { okay: vec![true], data: Vec::new() }, required: true }
    }

    /// Leaves a chunk of a region dirty in the Shield: a byte of it is written, if there is a chunk
    /// that no act touches.
    pub(super) fn dirty(&mut self, r: &Region) -> Result<()> {
        let c = self.some_chunk(r);
        if !matches!(r.mode, Mode::Counted | Mode::Tree) || !self.free(r, c) {
            return Ok(());
        }
        let mut plain = self.plain(r, c).unwrap_or_else(|| vec![0; r.chunk as usize]);
        plain[0] = self.below(256) as u8;
        let data = plain[..64].to_vec();
        self.fresh.insert((r.id, c), plain);
        let op = Op::Write { id: 1, addr: r.chunk_addr(c), data, strobes: vec![1] };
        self.execute(&[Transaction {
            op,
            want: Outcome { okay: vec![true], data: Vec::new() },
            required: true,
        }])?;
        Ok(())
    }

    /// A burst that the Shield must refuse whole: an unsupported type, outside all regions, across
    /// the end of a region, or a write to a read-only region.
    fn refused(&mut self) -> Option<Transaction> {
        let r = self.some_region();
        let id = self.below(8) as u8;
        let beats = 1 + self.below(4) as u32;
        let data = |n: u32| vec![0xa5; 64 * n as usize];
        let c = self.some_chunk(&r);
        let op = match self.below(5) {
            0 => Op::Wrap { write: self.rng.one_in(2), id, addr: r.chunk_addr(c) & !255, beats: 4 },
            1 => Op::Read { id, addr: (1 << 50) + r.base, beats },
            2 => Op::Read { id, addr: r.base + r.size - 64, beats: beats + 1 },
            3 if r.mode != Mode::Input => Op::Write {
                id,
                addr: r.base + r.size - 64,
                data: data(beats + 1),
                strobes: Vec::new(),
            },
            _ if r.mode == Mode::Input => {
                Op::Write { id, addr: r.chunk_addr(c), data: data(1), strobes: Vec::new() }
            }
            // A second write of a result that is already in memory.
            _ if r.mode == Mode::Output && self.sealed_at_snapshot(&r, c) && self.free(&r, c) => {
                Op::Write { id, addr: r.chunk_addr(c), data: data(1), strobes: Vec::new() }
            }
            _ => return None,
        };
        let n = match &op {
            Op::Read { beats, .. } | Op::Wrap { write: false, beats, .. } => *beats as usize,
            _ => 0,
        };
        let want = if n == 0 {
            Outcome { okay: vec![false], data: Vec::new() }
        } else {
            Outcome { okay: vec![false; n], data: vec![0; 64 * n] }
        };
        Some(Transaction { op, want, required: true })
    }

    /// Honest bursts that may run at the same time.
    pub(super) fn honest(&mut self, n: u64) -> Vec<Transaction> {
        let mut busy = Busy::default();
        let mut list = Vec::new();
        for _ in 0..n {
            list.extend(match self.below(24) {
                0 => self.refused(),
                1..9 => self.honest_write(&mut busy),
                _ => self.honest_read(&mut busy),
            });
        }
        list
    }

    /// A single honest write, with its region and chunk.
    pub(super) fn one_write(&mut self) -> Option<(Transaction, Region, u64)> {
        let mut busy = Busy::default();
        let transaction = self.honest_write(&mut busy)?;
        let (id, c) = busy.written.into_iter().next()?;
        Some((transaction, self.region(id), c))
    }

    /// Runs bursts and checks their outcomes.
    pub(super) fn execute(&mut self, transactions: &[Transaction]) -> Result<Vec<Outcome>> {
        let ops: Vec<Op> = transactions.iter().map(|d| d.op.clone()).collect();
        let got = self.s.bench.burst(&ops)?;
        self.judge(transactions, &got);
        Ok(got)
    }

    /// Runs honest traffic before the act.
    pub(super) fn warm_up(&mut self) -> Result<()> {
        let n = 2 + self.below(4);
        let transactions = self.honest(n);
        self.execute(&transactions)?;
        Ok(())
    }
}

/// The start address of a burst.
pub fn address(op: &Op) -> u64 {
    match op {
        Op::Read { addr, .. } | Op::Write { addr, .. } | Op::Wrap { addr, .. } => *addr,
    }
}

/// Marks each transaction as one that may be refused: the Shield may have stopped.
pub fn may_be_refused(mut transactions: Vec<Transaction>) -> Vec<Transaction> {
    transactions.iter_mut().for_each(|d| d.required = false);
    transactions
}
