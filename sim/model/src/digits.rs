//! Functional model of the digits accelerator: k-nearest-neighbour classification of rows of 64
//! pixel bytes, k = 3.
//!
//! Registers and result records are those of `shell-rtl/accel/digits`. CYCLES reads as 0: the model
//! has no clock.

use crate::bus::{Accelerator, BEAT, Resp, ShieldBus};

/// Register addresses.
pub mod reg {
    /// Write 1: start.
    pub const CTRL: u16 = 0x00;
    /// Bit 0 busy, bit 1 done, bit 2 error.
    pub const STATUS: u16 = 0x04;
    /// Low half; the high half follows.
    pub const TRAIN_ADDR: u16 = 0x08;
    /// 1 to 4096.
    pub const TRAIN_ROWS: u16 = 0x10;
    /// Low half; the high half follows.
    pub const QUERY_ADDR: u16 = 0x14;
    /// 1 to 65535.
    pub const QUERY_ROWS: u16 = 0x1c;
    /// Low half; the high half follows.
    pub const RESULT_ADDR: u16 = 0x20;
    /// Low half; the high half follows.
    pub const LABEL_ADDR: u16 = 0x28;
    /// Low half; the high half follows.
    pub const CYCLES: u16 = 0x30;
    /// [`super::ID`]
    pub const ID: u16 = 0x38;
    /// [`super::BATCH`]
    pub const BATCH: u16 = 0x3c;
}

/// "DIG1".
pub const ID: u32 = 0x4449_4731;
/// Queries per pass over the training rows.
pub const BATCH: usize = 4;
/// Neighbours that vote.
pub const K: usize = 3;
/// Bytes of a row.
pub const ROW: usize = 64;
/// Bytes of a result record.
pub const RECORD: usize = 16;

/// The accelerator.
#[derive(Debug, Default, Clone)]
pub struct Digits {
    train: u64,
    train_rows: u32,
    query: u64,
    query_rows: u32,
    result: u64,
    label: u64,
    start: bool,
    done: bool,
    error: bool,
}

/// A neighbour: squared distance, training row, label.
type Near = (u32, u16, u8);

/// The nearest three, nearest first; ties go to the smaller row.
fn nearest(query: &[u8], train: &[u8], labels: &[u8]) -> [Option<Near>; K] {
    let mut best: [Option<Near>; K] = [None; K];
    for (i, (row, &label)) in (0u16..).zip(train.chunks_exact(ROW).zip(labels)) {
        let distance =
            row.iter().zip(query).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum::<u32>();
        let mut new = Some((distance, i, label & 15));
        for slot in &mut best {
            if let Some((d, row, _)) = new
                && slot.is_none_or(|(old, other, _)| (d, row) < (old, other))
            {
                core::mem::swap(slot, &mut new);
            }
        }
    }
    best
}

/// Result record: label u8, votes u8, three rows u16, distance of the nearest u32, zero u32;
/// little-endian.
fn record(best: &[Option<Near>; K]) -> [u8; RECORD] {
    let votes = |label: u8| best.iter().flatten().filter(|n| n.2 == label).count() as u8;
    let first = best[0].map_or(0, |n| n.2);
    let label = best.iter().flatten().map(|n| n.2).find(|&l| votes(l) >= 2).unwrap_or(first);
    let mut r = [0; RECORD];
    r[0] = label;
    r[1] = votes(label);
    for (k, n) in best.iter().enumerate() {
        r[2 + 2 * k..4 + 2 * k].copy_from_slice(&n.map_or(0xffff, |n| n.1).to_le_bytes());
    }
    r[8..12].copy_from_slice(&best[0].map_or(0, |n| n.0).to_le_bytes());
    r
}

/// The result records of all queries, as in memory: whole 64-byte beats, with zeros for absent
/// records. The reference for tests and demo.
pub fn classify(train: &[u8], labels: &[u8], queries: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> =
        queries.chunks_exact(ROW).flat_map(|q| record(&nearest(q, train, labels))).collect();
    out.resize(out.len().next_multiple_of(BEAT), 0);
    out
}

impl Digits {
    fn go(&mut self, bus: &mut dyn ShieldBus) -> Result<(), ()> {
        if !(1..=4096).contains(&self.train_rows) || !(1..=65_535).contains(&self.query_rows) {
            return Err(());
        }
        let read = |bus: &mut dyn ShieldBus, addr: u64, out: &mut [u8]| {
            if bus.read_bytes(addr & !63, out) == Resp::Okay { Ok(()) } else { Err(()) }
        };
        let rows = self.train_rows as usize;
        let mut labels = vec![0; rows.next_multiple_of(BEAT)];
        read(bus, self.label, &mut labels)?;
        let mut train = vec![0; rows * ROW];
        let mut pending = Vec::new();
        let mut at = self.result & !63;
        let mut left = self.query_rows as usize;
        let mut query_at = self.query & !63;
        while left > 0 {
            let n = left.min(BATCH);
            let mut queries = vec![0; n * ROW];
            read(bus, query_at, &mut queries)?;
            read(bus, self.train & !63, &mut train)?;
            pending.extend(classify(&train, &labels[..rows], &queries));
            left -= n;
            query_at = query_at.wrapping_add((n * ROW) as u64);
            // Bursts of eight beats that end on a 512-byte boundary; the first and the last may be
            // shorter.
            if left == 0 || (at + pending.len() as u64).is_multiple_of(512) {
                if bus.write_bytes(at, &pending, 8) != Resp::Okay {
                    return Err(());
                }
                at += pending.len() as u64;
                pending.clear();
            }
        }
        Ok(())
    }
}

impl Accelerator for Digits {
    fn name(&self) -> &'static str {
        "digits"
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn reg_read(&mut self, addr: u16) -> Option<u32> {
        let half = |v: u64, high: bool| Some(if high { (v >> 32) as u32 } else { v as u32 });
        match addr {
            reg::CTRL | reg::CYCLES | 0x34 => Some(0),
            reg::STATUS => Some(u32::from(self.done) << 1 | u32::from(self.error) << 2),
            reg::TRAIN_ADDR | 0x0c => half(self.train, addr == 0x0c),
            reg::TRAIN_ROWS => Some(self.train_rows),
            reg::QUERY_ADDR | 0x18 => half(self.query, addr == 0x18),
            reg::QUERY_ROWS => Some(self.query_rows),
            reg::RESULT_ADDR | 0x24 => half(self.result, addr == 0x24),
            reg::LABEL_ADDR | 0x2c => half(self.label, addr == 0x2c),
            reg::ID => Some(ID),
            reg::BATCH => Some(BATCH as u32),
            _ => None,
        }
    }

    fn reg_write(&mut self, addr: u16, value: u32) -> bool {
        let set = |v: &mut u64, high: bool| {
            let shift = if high { 32 } else { 0 };
            *v = *v & !(0xffff_ffff << shift) | u64::from(value) << shift;
        };
        match addr {
            reg::CTRL => self.start |= value & 1 == 1,
            reg::TRAIN_ADDR | 0x0c => set(&mut self.train, addr == 0x0c),
            reg::TRAIN_ROWS => self.train_rows = value,
            reg::QUERY_ADDR | 0x18 => set(&mut self.query, addr == 0x18),
            reg::QUERY_ROWS => self.query_rows = value,
            reg::RESULT_ADDR | 0x24 => set(&mut self.result, addr == 0x24),
            reg::LABEL_ADDR | 0x2c => set(&mut self.label, addr == 0x2c),
            _ => return false,
        }
        true
    }

    fn run(&mut self, bus: &mut dyn ShieldBus) {
        if core::mem::take(&mut self.start) {
            self.error = self.go(bus).is_err();
            self.done = true;
        }
    }
}
