//! The sealed-memory format: chunks, versions, tags.
//!
//! The format is in `docs/reference/sealed-memory.md`. A [`Sealer`] fills an `input` region and cannot seal a chunk twice in an epoch; an
//! [`Opener`] opens an `output` region and wants a statement of the same session for it. [`ChunkCipher`] and [`NodeCipher`] are the bare
//! format, for a Shield.
#![cfg_attr(not(feature = "parallel"), no_std)]
#![forbid(unsafe_code)]
extern crate alloc;

mod cipher;
mod gcm;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::code::Code;
use shef_proto::config::{Config, MAX_EPOCH, MAX_KEY_BLOCKS, Mode, Region, TAG_LEN};
use shef_proto::load::{SessionKeys, Transcript};

pub use cipher::{ChunkCipher, ChunkTag, NODE_LEN, NodeCipher, chunk_iv, node_iv};

/// Codes of [`SealError`].
pub const CODES: &[Code] = &[
    Code {
        id: "SHEF-SEAL-001",
        summary: "no such region, or of another mode",
        help: "Only input regions are sealed by the owner and only output regions are opened.",
    },
    Code {
        id: "SHEF-SEAL-002",
        summary: "the key of a region was taken before",
        help: "A region has one sealer or opener in a session. Keep it, or open a new session.",
    },
    Code { id: "SHEF-SEAL-003", summary: "an epoch that may not be used", help: "Epochs are 1 to 2^48 - 1 and only go up in a session." },
    Code {
        id: "SHEF-SEAL-004",
        summary: "a length does not fit",
        help: "The declared length is at most the region's size, all data but the last piece is whole chunks, and ciphertext and tags cover the same chunks.",
    },
    Code { id: "SHEF-SEAL-005", summary: "a region's key is used up", help: "A key seals at most 2^48 blocks. Open a new session." },
    Code {
        id: "SHEF-SEAL-006",
        summary: "the statement belongs to another session",
        help: "Results open only under a statement read over the sealed channel of the same session, for the same configuration.",
    },
    Code {
        id: "SHEF-SEAL-007",
        summary: "the Shield has stopped after a fault",
        help: "Memory was tampered with or failed while the accelerator ran. No result opens. Reset the device, open a new session and run again.",
    },
    Code {
        id: "SHEF-SEAL-008",
        summary: "the accelerator did something that the Shield refused",
        help: "The results may be incomplete. Look at the statement's first refusal; to open them all the same, ask for it.",
    },
    Code {
        id: "SHEF-SEAL-009",
        summary: "a chunk was not written in this epoch",
        help: "The accelerator did not write all that was asked for. Open with holes, or ask for fewer bytes.",
    },
    Code {
        id: "SHEF-SEAL-010",
        summary: "a chunk does not open",
        help: "The Shield sealed this chunk, and what came back is something else: memory or host changed, swapped, replayed or withheld it.",
    },
    Code {
        id: "SHEF-SEAL-011",
        summary: "a fault froze a region",
        help: "Under on_fault = \"region\" a result opens in spite of it only where the launch could not have reached any frozen region, and the caller names them all.",
    },
];

/// Why something is not sealed or not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// No such region, or of another mode.
    #[error("region {region} is no {expected} region")]
    Region {
        /// number
        region: u8,
        /// mode that the operation needs
        expected: &'static str,
    },
    /// Somebody has the key already.
    #[error("the key of region {region} was taken before")]
    KeyTaken {
        /// number
        region: u8,
    },
    /// Zero, too large, or not above the present one.
    #[error("epoch {epoch} of region {region} may not be used; expected {least} to {MAX_EPOCH}")]
    Epoch {
        /// number
        region: u8,
        /// the epoch asked for
        epoch: u64,
        /// the least that is allowed
        least: u64,
    },
    /// Something does not fit.
    #[error("region {region} ({name}): {what}: {found}, expected {expected}")]
    Length {
        /// number
        region: u8,
        /// name
        name: String,
        /// what does not fit
        what: &'static str,
        /// bytes found
        found: u64,
        /// bytes expected, or the most
        expected: u64,
    },
    /// 2^48 blocks are sealed.
    #[error("the key of region {region} is used up")]
    Exhausted {
        /// number
        region: u8,
    },
    /// Another session or configuration.
    #[error("the statement belongs to another session")]
    Session,
    /// The Shield stopped.
    #[error("the shield has stopped: {faults} fault(s)")]
    Stopped {
        /// number of faults
        faults: u32,
    },
    /// A fault froze this region, and the caller did not say that the launch could not have reached it, or it is the region to be opened.
    #[error("a fault froze region {region}, and what was sealed may depend on it")]
    Frozen {
        /// number
        region: u8,
    },
    /// Refusals, and the caller did not ask to open all the same.
    #[error("the shield refused {refusals} access(es) of the accelerator")]
    Refusals {
        /// number of refusals
        refusals: u32,
    },
    /// A hole.
    #[error("chunk {chunk} of region {region} was not written in epoch {epoch}")]
    NotWritten {
        /// number of the region
        region: u8,
        /// chunk
        chunk: u64,
        /// epoch of the statement
        epoch: u64,
    },
    /// Tag mismatch.
    #[error("chunk {chunk} of region {region} does not open in epoch {epoch}")]
    Tag {
        /// number of the region
        region: u8,
        /// chunk
        chunk: u64,
        /// epoch
        epoch: u64,
    },
}

impl SealError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Region { .. } => "SHEF-SEAL-001",
            Self::KeyTaken { .. } => "SHEF-SEAL-002",
            Self::Epoch { .. } => "SHEF-SEAL-003",
            Self::Length { .. } => "SHEF-SEAL-004",
            Self::Exhausted { .. } => "SHEF-SEAL-005",
            Self::Session => "SHEF-SEAL-006",
            Self::Stopped { .. } => "SHEF-SEAL-007",
            Self::Refusals { .. } => "SHEF-SEAL-008",
            Self::Frozen { .. } => "SHEF-SEAL-011",
            Self::NotWritten { .. } => "SHEF-SEAL-009",
            Self::Tag { .. } => "SHEF-SEAL-010",
        }
    }
}

/// Sealed chunks that lie one after the other, ready to be copied to card memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SealedRun {
    /// Card address of the ciphertext.
    pub addr: u64,
    /// Ciphertext.
    pub data: Vec<u8>,
    /// Card address of the tags.
    pub tag_addr: u64,
    /// Tags, 16 bytes a chunk.
    pub tags: Vec<u8>,
}

/// A region and its cipher.
struct Sealed {
    cipher: ChunkCipher,
    region: Region,
}

impl Sealed {
    fn length(&self, what: &'static str, found: u64, expected: u64) -> SealError {
        SealError::Length { region: self.region.id, name: self.region.name.clone(), what, found, expected }
    }
}

/// Seals an `input` region once, front to back: each chunk of an epoch is sealed by the one sealer that owns the region's key and the epoch, or by the
/// one [`Portion`] that was taken from it.
pub struct Sealer {
    of: Arc<Sealed>,
    epoch: u64,
    next: u64,
    end: u64,
    blocks: u64,
}

/// Chunks that were taken from a [`Sealer`], to be sealed on whichever thread: once, as it is used up by that.
pub struct Portion {
    of: Arc<Sealed>,
    epoch: u64,
    chunks: core::ops::Range<u64>,
}

/// A sealer whose epoch is over.
pub struct Spent {
    of: Arc<Sealed>,
    epoch: u64,
    blocks: u64,
}

impl Sealer {
    /// A sealer for `length` bytes from the start of the region in epoch `epoch` of the Load Key. Takes the region's key out of `keys`.
    ///
    /// # Errors
    /// No `input` region, key taken before, epoch 0 or above 48 bits, length 0 or above the region's size.
    pub fn new(config: &Config, keys: &mut SessionKeys, region: u8, epoch: u64, length: u64) -> Result<Self, SealError> {
        let r = config.region(region).filter(|r| r.mode == Mode::Input).ok_or(SealError::Region { region, expected: "input" })?;
        check_session(config, keys)?;
        check(r, epoch, 1, length)?;
        let key = keys.take_data_key(region).ok_or(SealError::KeyTaken { region })?;
        let of = Arc::new(Sealed { cipher: ChunkCipher::new(region, &key), region: r.clone() });
        let spent = Spent { of, epoch: 0, blocks: 0 };
        spent.next_epoch(epoch, length).map_err(|(e, _)| e)
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.of.region
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Bytes until the declared end, which is rounded up to whole chunks.
    pub fn remaining(&self) -> u64 {
        (self.end - self.next) * self.chunk()
    }

    fn chunk(&self) -> u64 {
        self.of.region.chunk.into()
    }

    /// Takes the next `bytes` away, for whoever seals them. They must be whole chunks.
    ///
    /// # Errors
    /// More bytes than declared, or not whole chunks; nothing is taken then.
    pub fn portion(&mut self, bytes: u64) -> Result<Portion, SealError> {
        if !bytes.is_multiple_of(self.chunk()) {
            return Err(self.of.length("data is not whole chunks", bytes, self.chunk()));
        }
        if bytes > self.remaining() {
            return Err(self.of.length("more data than declared", bytes, self.remaining()));
        }
        let first = self.next;
        self.next += bytes / self.chunk();
        Ok(Portion { of: Arc::clone(&self.of), epoch: self.epoch, chunks: first..self.next })
    }

    /// Seals the next bytes. They must be whole chunks.
    ///
    /// # Errors
    /// More bytes than declared, or not whole chunks; nothing is sealed then.
    pub fn push(&mut self, data: &[u8]) -> Result<SealedRun, SealError> {
        let mut run = SealedRun::default();
        self.push_into(data, &mut run)?;
        Ok(run)
    }

    /// As [`Sealer::push`], into the buffers of an earlier run.
    ///
    /// # Errors
    /// As [`Sealer::push`]; `run` is as it was then.
    pub fn push_into(&mut self, data: &[u8], run: &mut SealedRun) -> Result<(), SealError> {
        self.portion(data.len() as u64)?.seal_into(data, run)
    }

    /// Seals the last bytes, then zeros up to the declared end.
    ///
    /// # Errors
    /// More bytes than declared; the sealer comes back.
    pub fn finish(mut self, data: &[u8]) -> Result<(SealedRun, Spent), (SealError, Self)> {
        let remaining = self.remaining();
        if data.len() as u64 > remaining {
            let e = self.of.length("more data than declared", data.len() as u64, remaining);
            return Err((e, self));
        }
        let mut run = SealedRun::default();
        match self.portion(remaining).and_then(|rest| rest.seal_into(data, &mut run)) {
            Ok(()) => Ok((run, self.give_up())),
            Err(e) => Err((e, self)),
        }
    }

    /// Ends the epoch before its data is complete.
    pub fn give_up(self) -> Spent {
        Spent { of: self.of, epoch: self.epoch, blocks: self.blocks }
    }
}

impl Portion {
    /// Bytes of the chunks.
    pub fn bytes(&self) -> u64 {
        (self.chunks.end - self.chunks.start) * u64::from(self.of.region.chunk)
    }

    /// Seals bytes, then zeros up to the portion's end, into the buffers of an earlier run.
    ///
    /// # Errors
    /// More bytes than there are in it; `run` is as it was then.
    pub fn seal_into(self, data: &[u8], run: &mut SealedRun) -> Result<(), SealError> {
        let bytes = self.bytes() as usize;
        if data.len() > bytes {
            return Err(self.of.length("more data than declared", data.len() as u64, self.bytes()));
        }
        let (chunk, tag) = (self.of.region.chunk as usize, TAG_LEN as usize);
        let (first, n) = (self.chunks.start, data.len() / chunk);
        run.data.resize(bytes, 0);
        run.tags.resize(bytes / chunk * tag, 0);
        let (whole, last) = data.split_at(n * chunk);
        let (sealed, padded) = run.data.split_at_mut(n * chunk);
        let (tags, padded_tags) = run.tags.split_at_mut(n * tag);
        self.seal(first, whole, sealed, tags);
        if !padded.is_empty() {
            let mut plain = Plain::zeros(padded.len());
            plain[..last.len()].copy_from_slice(last);
            self.seal(first + n as u64, &plain, padded, padded_tags);
        }
        (run.addr, run.tag_addr) = (self.of.region.chunk_addr(first), self.of.region.tag_addr(first));
        Ok(())
    }

    fn seal(&self, first: u64, plain: &[u8], sealed: &mut [u8], tags: &mut [u8]) {
        for_each_chunk(self.of.region.chunk as usize, plain, sealed, tags, &|i, plain, sealed, tag| {
            tag.copy_from_slice(&self.of.cipher.seal_into(self.epoch, first + i, plain, sealed));
            true
        });
    }
}

impl Spent {
    /// The epoch that is over.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A sealer for a later epoch; the Shield's epoch is raised by the channel's EPOCH command.
    ///
    /// # Errors
    /// An epoch that is not above the last one, a length that does not fit, or a key that is used up; this value comes back.
    pub fn next_epoch(self, epoch: u64, length: u64) -> Result<Sealer, (SealError, Self)> {
        let region = &self.of.region;
        if let Err(e) = check(region, epoch, self.epoch + 1, length) {
            return Err((e, self));
        }
        let end = length.div_ceil(region.chunk.into());
        // The tag mask and the hash key count as blocks too.
        let blocks = self.blocks.saturating_add(end * (u64::from(region.chunk) / 16 + 1)).saturating_add(1);
        if blocks > MAX_KEY_BLOCKS {
            return Err((SealError::Exhausted { region: region.id }, self));
        }
        Ok(Sealer { of: self.of, epoch, next: 0, end, blocks })
    }
}

fn check_session(config: &Config, keys: &SessionKeys) -> Result<(), SealError> {
    if *keys.config_digest() == config.digest() { Ok(()) } else { Err(SealError::Session) }
}

fn check(r: &Region, epoch: u64, least: u64, length: u64) -> Result<(), SealError> {
    if epoch < least || epoch > MAX_EPOCH {
        return Err(SealError::Epoch { region: r.id, epoch, least });
    }
    if length == 0 || length > r.size {
        return Err(SealError::Length { region: r.id, name: r.name.clone(), what: "declared length", found: length, expected: r.size });
    }
    Ok(())
}

/// What an [`Opener`] tolerates, beyond which it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenPolicy {
    /// Open although the Shield refused accesses of the accelerator.
    pub refusals: bool,
    /// Open although chunks were not written; they read as zeros and [`Opened::written`] tells them apart.
    pub holes: bool,
}

/// Plaintext in bulk, erased when dropped. It has the length that it was made with, so that nothing is left behind elsewhere.
pub struct Plain(Vec<u8>);

impl Plain {
    /// So many zeros.
    pub fn zeros(len: usize) -> Self {
        Self(vec![0; len])
    }
}

impl core::ops::Deref for Plain {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl core::ops::DerefMut for Plain {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // As fast as memory is written: byte by byte it would take longer than the cipher. The barrier keeps it from being left out.
        self.0.fill(0);
        zeroize::optimization_barrier(&self.0[..]);
    }
}

/// An opened part of a region.
pub struct Opened {
    /// Plaintext.
    pub data: Plain,
    /// The region's written map.
    pub written: WrittenMap,
}

/// Opens an `output` region under a statement of the same session.
pub struct Opener {
    cipher: ChunkCipher,
    region: Region,
    transcript: Transcript,
    config_digest: [u8; 32],
}

impl Opener {
    /// An opener; takes the region's key out of `keys`.
    ///
    /// # Errors
    /// No `output` region, or key taken before.
    pub fn new(config: &Config, keys: &mut SessionKeys, region: u8) -> Result<Self, SealError> {
        let r = config.region(region).filter(|r| r.mode == Mode::Output).ok_or(SealError::Region { region, expected: "output" })?;
        check_session(config, keys)?;
        let key = keys.take_data_key(region).ok_or(SealError::KeyTaken { region })?;
        Ok(Self {
            cipher: ChunkCipher::new(region, &key),
            region: r.clone(),
            transcript: keys.transcript(),
            config_digest: *keys.config_digest(),
        })
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Whether results may be opened under this statement at all.
    ///
    /// # Errors
    /// Another session, a stopped Shield or any fault, refusals that the policy does not tolerate.
    pub fn check(&self, statement: &Statement, policy: OpenPolicy) -> Result<(), SealError> {
        match statement.shield().faults {
            0 => self.check_despite_fault(statement, &[], policy),
            faults => Err(SealError::Stopped { faults }),
        }
    }

    /// As [`Opener::check`] where a fault froze regions and did not stop the Shield (`on_fault = "region"`), and the launch could have
    /// reached none of them: the caller names them in `unreached`.
    ///
    /// # Errors
    /// Another session, a stopped Shield, a frozen region that is not named or is this one, refusals that the policy does not tolerate.
    pub fn check_despite_fault(&self, statement: &Statement, unreached: &[u8], policy: OpenPolicy) -> Result<(), SealError> {
        if statement.transcript() != self.transcript || *statement.config_digest() != self.config_digest {
            return Err(SealError::Session);
        }
        let s = statement.shield();
        let mut frozen = statement.frozen().peekable();
        if s.stopped || (s.faults != 0) != frozen.peek().is_some() {
            return Err(SealError::Stopped { faults: s.faults });
        }
        if let Some(region) = frozen.find(|id| *id == self.region.id || !unreached.contains(id)) {
            return Err(SealError::Frozen { region });
        }
        if s.refusals != 0 && !policy.refusals {
            return Err(SealError::Refusals { refusals: s.refusals });
        }
        Ok(())
    }

    /// Opens whole chunks from chunk `first` on; `data` is what lies in card memory, `tags` their tags.
    ///
    /// # Errors
    /// What [`Opener::check`] says; a chunk that was not written, unless the policy allows holes; a chunk that does not open.
    pub fn open(&self, statement: &Statement, policy: OpenPolicy, first: u64, data: &[u8], tags: &[u8]) -> Result<Opened, SealError> {
        self.check(statement, policy)?;
        self.open_checked(statement, policy, first, data, tags)
    }

    /// As [`Opener::open`], under [`Opener::check_despite_fault`].
    ///
    /// # Errors
    /// What [`Opener::check_despite_fault`] says; else as [`Opener::open`].
    pub fn open_despite_fault(
        &self,
        statement: &Statement,
        unreached: &[u8],
        policy: OpenPolicy,
        first: u64,
        data: &[u8],
        tags: &[u8],
    ) -> Result<Opened, SealError> {
        self.check_despite_fault(statement, unreached, policy)?;
        self.open_checked(statement, policy, first, data, tags)
    }

    fn open_checked(&self, statement: &Statement, policy: OpenPolicy, first: u64, data: &[u8], tags: &[u8]) -> Result<Opened, SealError> {
        let mut out = Plain::zeros(data.len());
        let written = self.open_into(statement, policy, first, (data, tags), &mut out)?.clone();
        Ok(Opened { data: out, written })
    }

    /// As [`Opener::open_despite_fault`], into `out`, which has the length of the ciphertext.
    ///
    /// # Errors
    /// As [`Opener::open_despite_fault`].
    pub fn open_piece(
        &self,
        statement: &Statement,
        unreached: &[u8],
        policy: OpenPolicy,
        first: u64,
        sealed: (&[u8], &[u8]),
        out: &mut [u8],
    ) -> Result<(), SealError> {
        self.check_despite_fault(statement, unreached, policy)?;
        self.open_into(statement, policy, first, sealed, out).map(drop)
    }

    fn open_into<'s>(
        &self,
        statement: &'s Statement,
        policy: OpenPolicy,
        first: u64,
        (data, tags): (&[u8], &[u8]),
        out: &mut [u8],
    ) -> Result<&'s WrittenMap, SealError> {
        let r = &self.region;
        let (Some(page), Some(map)) = (statement.region(r.id), statement.written(r.id)) else { return Err(SealError::Session) };
        let epoch = page.epoch;
        if epoch == 0 {
            return Err(SealError::Epoch { region: r.id, epoch, least: 1 });
        }
        let length = |what, found, expected| SealError::Length { region: r.id, name: r.name.clone(), what, found, expected };
        let chunk = r.chunk as usize;
        if !data.len().is_multiple_of(chunk) {
            return Err(length("ciphertext is not whole chunks", data.len() as u64, u64::from(r.chunk)));
        }
        let n = (data.len() / chunk) as u64;
        if tags.len() as u64 != n * TAG_LEN {
            return Err(length("tags for the ciphertext", tags.len() as u64, n * TAG_LEN));
        }
        if first > r.chunks() || n > r.chunks() - first {
            return Err(length("chunks past the region", first.saturating_add(n), r.chunks()));
        }
        if !policy.holes
            && let Some(chunk) = (first..first + n).find(|&i| !map.is_written(i))
        {
            return Err(SealError::NotWritten { region: r.id, chunk, epoch });
        }
        if out.len() != data.len() {
            return Err(length("room for the plaintext", out.len() as u64, data.len() as u64));
        }
        let mut tags = tags.to_vec();
        let cipher = &self.cipher;
        let bad = for_each_chunk(chunk, data, out, &mut tags, &|i, sealed, plain, tag| {
            // What was not written reads as zeros.
            if !map.is_written(first + i) {
                plain.fill(0);
                return true;
            }
            let Ok(tag) = <&ChunkTag>::try_from(&*tag) else { return false };
            cipher.open_into(epoch, first + i, sealed, tag, plain)
        });
        match bad {
            Some(i) => Err(SealError::Tag { region: r.id, chunk: first + i, epoch }),
            None => Ok(map),
        }
    }
}

/// Processors of this process. Asked for once: the answer comes from files of the kernel, and takes as long as sealing some hundred kilobytes.
#[cfg(feature = "parallel")]
pub fn processors() -> usize {
    static PROCESSORS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

type PerChunk<'a> = dyn Fn(u64, &[u8], &mut [u8], &mut [u8]) -> bool + Sync + 'a;

/// Runs `f` on every chunk, the chunk that is made of it, and its tag; returns the first chunk for which it said false.
fn for_each_chunk(chunk: usize, from: &[u8], to: &mut [u8], tags: &mut [u8], f: &PerChunk<'_>) -> Option<u64> {
    let serial = |first: u64, from: &[u8], to: &mut [u8], tags: &mut [u8]| {
        let mut bad = None;
        let parts = from.chunks_exact(chunk).zip(to.chunks_exact_mut(chunk)).zip(tags.chunks_exact_mut(TAG_LEN as usize));
        for (i, ((from, to), tag)) in (first..).zip(parts) {
            if !f(i, from, to, tag) && bad.is_none() {
                bad = Some(i);
            }
        }
        bad
    };
    #[cfg(feature = "parallel")]
    {
        // Below this a thread costs more than it brings.
        let threads = processors().min(from.len() / (256 * 1024));
        if threads > 1 {
            // Each takes the next share: a thread that began late, or was kept waiting, does less.
            let share = (64 * 1024 / chunk).max(1);
            let bytes = share * chunk;
            let shares = from.chunks(bytes).zip(to.chunks_mut(bytes)).zip(tags.chunks_mut(share * TAG_LEN as usize));
            let shares = std::sync::Mutex::new((0u64..).step_by(share).zip(shares));
            let next = || shares.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
            let work = || {
                let mut bad: Option<u64> = None;
                while let Some((first, ((from, to), tags))) = next() {
                    bad = bad.or(serial(first, from, to, tags));
                }
                bad
            };
            return std::thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
                let own = work();
                let all = others.into_iter().map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                all.chain([own]).flatten().min()
            });
        }
    }
    serial(0, from, to, tags)
}
