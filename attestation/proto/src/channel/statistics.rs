//! Counters of an engine set.

use super::PAYLOAD_LEN;

/// Number of counters in an engine set.
pub const COUNTERS: usize = 16;

/// The counters of an engine set, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Counter {
    /// Read segments (the part of a burst in one chunk) that hit a chunk on chip.
    ReadHits,
    /// Read segments that missed.
    ReadMisses,
    /// Write segments that hit a chunk on chip.
    WriteHits,
    /// Write segments that missed.
    WriteMisses,
    /// Beats that the accelerator read.
    BeatsRead,
    /// Beats that the accelerator wrote.
    BeatsWritten,
    /// Chunks fetched from memory.
    ChunksFetched,
    /// Chunks sealed.
    ChunksSealed,
    /// Cycles in which an answer waited for a chunk.
    AnswerWaits,
    /// Cycles in which a segment waited for a line.
    LineWaits,
    /// Cycles in which data waited for key stream or GHASH.
    CryptoWaits,
    /// Cycles in which a read address waited for the memory.
    MemoryReadWaits,
    /// Cycles in which a write address or data waited for the memory.
    MemoryWriteWaits,
    /// Prefetched chunks.
    Prefetches,
    /// Prefetched chunks that a later access used.
    PrefetchesUsed,
    /// Prefetched chunks that failed and were dropped.
    PrefetchesFailed,
}

impl Counter {
    /// All counters, in order of their number.
    pub const ALL: [Self; COUNTERS] = [
        Self::ReadHits,
        Self::ReadMisses,
        Self::WriteHits,
        Self::WriteMisses,
        Self::BeatsRead,
        Self::BeatsWritten,
        Self::ChunksFetched,
        Self::ChunksSealed,
        Self::AnswerWaits,
        Self::LineWaits,
        Self::CryptoWaits,
        Self::MemoryReadWaits,
        Self::MemoryWriteWaits,
        Self::Prefetches,
        Self::PrefetchesUsed,
        Self::PrefetchesFailed,
    ];

    /// Its name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadHits => "read_hits",
            Self::ReadMisses => "read_misses",
            Self::WriteHits => "write_hits",
            Self::WriteMisses => "write_misses",
            Self::BeatsRead => "beats_read",
            Self::BeatsWritten => "beats_written",
            Self::ChunksFetched => "chunks_fetched",
            Self::ChunksSealed => "chunks_sealed",
            Self::AnswerWaits => "answer_waits",
            Self::LineWaits => "line_waits",
            Self::CryptoWaits => "crypto_waits",
            Self::MemoryReadWaits => "memory_read_waits",
            Self::MemoryWriteWaits => "memory_write_waits",
            Self::Prefetches => "prefetches",
            Self::PrefetchesUsed => "prefetches_used",
            Self::PrefetchesFailed => "prefetches_failed",
        }
    }
}

/// Statistics of one engine set: 48-bit saturating counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics([u64; COUNTERS]);

impl Statistics {
    /// These counters, saturated at 48 bits.
    pub fn new(counters: [u64; COUNTERS]) -> Self {
        Self(counters.map(|c| c.min((1 << 48) - 1)))
    }

    /// One counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Payload of the STATS answer for page `page`; `None` for a page that does not exist.
    pub fn page(&self, page: u32) -> Option<[u8; PAYLOAD_LEN]> {
        let half = self.0.chunks(COUNTERS / 2).nth(page as usize)?;
        let mut p = [0; PAYLOAD_LEN];
        for (bytes, counter) in p.chunks_mut(6).zip(half) {
            bytes.copy_from_slice(&counter.to_le_bytes()[..6]);
        }
        Some(p)
    }

    /// Reads both payloads.
    pub fn from_payloads(pages: [&[u8; PAYLOAD_LEN]; 2]) -> Self {
        let mut counters = [0; COUNTERS];
        for (counter, bytes) in counters.iter_mut().zip(pages.iter().flat_map(|p| p.chunks(6))) {
            *counter = bytes.iter().rev().fold(0, |n, &x| n << 8 | u64::from(x));
        }
        Self(counters)
    }
}
