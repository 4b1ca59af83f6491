//! The owner's driver for the demo's accelerator: registers, data layout, results.

use super::data::{Dataset, PIXELS};
use super::reference::{Classification, RECORD};

/// Registers of the accelerator.
pub mod reg {
    /// Writing 1 starts.
    pub const CTRL: u32 = 0x00;
    /// Bit 0 busy, bit 1 done, bit 2 error.
    pub const STATUS: u32 = 0x04;
    /// Address of the training rows.
    pub const TRAIN_ADDR: u32 = 0x08;
    /// Number of training rows.
    pub const TRAIN_ROWS: u32 = 0x10;
    /// Address of the queries.
    pub const QUERY_ADDR: u32 = 0x14;
    /// Number of queries.
    pub const QUERY_ROWS: u32 = 0x1c;
    /// Address of the results.
    pub const RESULT_ADDR: u32 = 0x20;
    /// Address of the labels.
    pub const LABEL_ADDR: u32 = 0x28;
    /// Identification.
    pub const ID: u32 = 0x38;
}

/// Value of [`reg::ID`].
pub const ID: u32 = 0x4449_4731;
/// STATUS: done.
pub const DONE: u32 = 2;
/// STATUS: an access was answered with an error.
pub const ERROR: u32 = 4;
/// Queries that share a beat of results.
pub const BATCH: usize = 4;

/// The bytes of the training region: rows, then labels on the next page.
pub fn train_image(train: &Dataset) -> Vec<u8> {
    let mut bytes = train.pixels();
    bytes.resize(label_offset(train.rows.len()), 0);
    bytes.extend_from_slice(&train.labels);
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    bytes
}

/// Offset of the labels in the training region.
pub fn label_offset(rows: usize) -> usize {
    (rows * PIXELS).next_multiple_of(4096)
}

/// Bytes of results for this many queries.
pub fn result_len(queries: usize) -> usize {
    queries.div_ceil(BATCH) * BATCH * RECORD
}

/// Register writes that describe a job, without the start.
pub fn job(
    train_addr: u64,
    query_addr: u64,
    result_addr: u64,
    rows: usize,
    queries: usize,
) -> Vec<(u32, u32)> {
    let mut writes = Vec::new();
    let mut address = |reg: u32, addr: u64| {
        writes.push((reg, addr as u32));
        writes.push((reg + 4, (addr >> 32) as u32));
    };
    address(reg::TRAIN_ADDR, train_addr);
    address(reg::QUERY_ADDR, query_addr);
    address(reg::RESULT_ADDR, result_addr);
    address(reg::LABEL_ADDR, train_addr + label_offset(rows) as u64);
    writes.push((reg::TRAIN_ROWS, rows as u32));
    writes.push((reg::QUERY_ROWS, queries as u32));
    writes
}

/// Decodes the answers from the bytes of the results; `None` if a record is malformed or the
/// padding is not zero.
pub fn answers(bytes: &[u8], queries: usize) -> Option<Vec<Classification>> {
    let (records, rest) = bytes.as_chunks::<RECORD>();
    if !rest.is_empty() || records.len() < queries {
        return None;
    }
    if records[queries..].iter().any(|record| *record != [0; RECORD]) {
        return None;
    }
    records[..queries].iter().map(Classification::from_record).collect()
}
