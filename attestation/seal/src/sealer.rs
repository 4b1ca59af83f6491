//! The owner's side of an `input` region: each chunk of an epoch is sealed once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use shef_proto::config::{Config, MAX_EPOCH, MAX_KEY_BLOCKS, Mode, Region, TAG_LEN};
use shef_proto::fork::{ForkGuard, Forked};
use shef_proto::load::SessionKeys;

use crate::chunks::{BLOCK, MIN_CHUNK, for_each_chunk};
use crate::{ChunkCipher, Plain, SealError};

/// Contiguous sealed chunks, ready to be copied to card memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SealedRun {
    /// Card address of the ciphertext.
    pub addr: u64,
    /// Ciphertext.
    pub data: Vec<u8>,
    /// Card address of the tags.
    pub tag_addr: u64,
    /// Tags, 16 bytes per chunk.
    pub tags: Vec<u8>,
}

/// A region and its cipher.
struct Sealed {
    cipher: ChunkCipher,
    region: Region,
    /// The process that has the key. A fork of it would seal other data under the same IVs.
    fork_guard: ForkGuard,
}

impl Sealed {
    fn check_process(&self) -> Result<(), SealError> {
        self.fork_guard.check().map_err(|Forked { made, found }| SealError::Forked { made, found })
    }

    fn length(&self, what: &'static str, found: u64, expected: u64) -> SealError {
        SealError::Length {
            region: self.region.id,
            name: self.region.name.clone(),
            what,
            found,
            expected,
        }
    }
}

/// Seals an `input` region once, front to back. Each chunk of an epoch is sealed only by the sealer
/// that owns the region's key and the epoch, or by the one [`Portion`] taken from it.
pub struct Sealer {
    of: Arc<Sealed>,
    epoch: u64,
    next: u64,
    end: u64,
    blocks: u64,
}

/// Chunks taken from a [`Sealer`], to be sealed once on any thread. Sealing consumes the portion.
///
/// ```compile_fail,E0382
/// fn twice(portion: shef_seal::Portion, data: &[u8], run: &mut shef_seal::SealedRun) {
///     portion.seal_into(data, run);
///     portion.seal_into(data, run);
/// }
/// ```
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
    /// Creates a sealer for `length` bytes from the start of the region, in epoch `epoch` of the
    /// Load Key. Takes the region's key out of `keys`.
    ///
    /// # Errors
    /// Not an `input` region, a key that was already taken, an epoch of 0 or above 48 bits, or a
    /// length of 0 or above the region's size.
    pub fn new(
        config: &Config,
        keys: &mut SessionKeys,
        region: u8,
        epoch: u64,
        length: u64,
    ) -> Result<Self, SealError> {
        let r = config
            .region(region)
            .filter(|r| r.mode == Mode::Input)
            .ok_or(SealError::Region { region, expected: "input" })?;
        check_session(config, keys)?;
        check(r, epoch, 1, length)?;
        let key = keys.take_data_key(region).ok_or(SealError::KeyTaken { region })?;
        let of = Arc::new(Sealed {
            cipher: ChunkCipher::new(region, &key),
            region: r.clone(),
            fork_guard: keys.fork_guard(),
        });
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

    /// Remaining bytes up to the declared end, rounded up to whole chunks.
    pub fn remaining(&self) -> u64 {
        (self.end - self.next) * self.chunk()
    }

    fn chunk(&self) -> u64 {
        self.of.region.chunk.into()
    }

    /// Takes the next `bytes` as a portion to be sealed separately. They must be whole chunks.
    ///
    /// # Errors
    /// More bytes than declared, partial chunks, or a fork of the process that created the sealer.
    /// No portion is taken then.
    pub fn portion(&mut self, bytes: u64) -> Result<Portion, SealError> {
        self.of.check_process()?;
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
    /// More bytes than declared, or partial chunks. Nothing is sealed then.
    pub fn push(&mut self, data: &[u8]) -> Result<SealedRun, SealError> {
        let mut run = SealedRun::default();
        self.push_into(data, &mut run)?;
        Ok(run)
    }

    /// Like [`Sealer::push`], into the buffers of an earlier run.
    ///
    /// # Errors
    /// Those of [`Sealer::push`]. `run` is unchanged then.
    pub fn push_into(&mut self, data: &[u8], run: &mut SealedRun) -> Result<(), SealError> {
        self.portion(data.len() as u64)?.seal_into(data, run)
    }

    /// Seals the last bytes, then zeros up to the declared end.
    ///
    /// # Errors
    /// More bytes than declared. The sealer is returned.
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
    /// More bytes than the portion has. `run` is unchanged then.
    pub fn seal_into(self, data: &[u8], run: &mut SealedRun) -> Result<(), SealError> {
        self.of.check_process()?;
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
        (run.addr, run.tag_addr) =
            (self.of.region.chunk_addr(first), self.of.region.tag_addr(first));
        Ok(())
    }

    /// Like [`Portion::seal_into`], with the output passed to `take`, a few chunks at a time and in
    /// order, from memory that stays in the L1 cache. `take` gets the index of the first chunk
    /// within the portion, the ciphertext and the tags.
    ///
    /// # Errors
    /// Those of [`Portion::seal_into`] and of `take`. Chunks that were not taken are never sealed.
    pub fn seal_to<E: From<SealError>>(
        self,
        data: &[u8],
        mut take: impl FnMut(u64, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.of.check_process()?;
        if data.len() as u64 > self.bytes() {
            return Err(self
                .of
                .length("more data than declared", data.len() as u64, self.bytes())
                .into());
        }
        let chunk = self.of.region.chunk as usize;
        let (mut sealed, mut tags) = ([0; BLOCK], [0; BLOCK / MIN_CHUNK * TAG_LEN as usize]);
        let mut rest = data;
        let each = (BLOCK / chunk) as u64;
        for first in self.chunks.clone().step_by(each as usize) {
            let n = each.min(self.chunks.end - first) as usize;
            let (sealed, tags) = (&mut sealed[..n * chunk], &mut tags[..n * TAG_LEN as usize]);
            match rest.split_at_checked(sealed.len()) {
                Some((plain, later)) => {
                    self.seal(first, plain, sealed, tags);
                    rest = later;
                }
                None => {
                    let mut plain = Plain::zeros(sealed.len());
                    plain[..rest.len()].copy_from_slice(rest);
                    self.seal(first, &plain, sealed, tags);
                    rest = &[];
                }
            }
            take(first - self.chunks.start, sealed, tags)?;
        }
        Ok(())
    }

    /// Bytes of a chunk.
    pub fn chunk(&self) -> usize {
        self.of.region.chunk as usize
    }

    /// Card addresses of the portion's ciphertext and tags.
    pub fn addresses(&self) -> (u64, u64) {
        (self.of.region.chunk_addr(self.chunks.start), self.of.region.tag_addr(self.chunks.start))
    }

    fn seal(&self, first: u64, plain: &[u8], sealed: &mut [u8], tags: &mut [u8]) {
        for_each_chunk(
            self.of.region.chunk as usize,
            plain,
            sealed,
            tags,
            &|i, plain, sealed, tag| {
                tag.copy_from_slice(&self.of.cipher.seal_into(
                    self.epoch,
                    first + i,
                    plain,
                    sealed,
                ));
                true
            },
        );
    }
}

impl Spent {
    /// The finished epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Creates a sealer for a later epoch. The channel's EPOCH command raises the Shield's epoch.
    ///
    /// # Errors
    /// An epoch that is not above the last one, an invalid length, or an exhausted key. This value
    /// is returned.
    pub fn next_epoch(self, epoch: u64, length: u64) -> Result<Sealer, (SealError, Self)> {
        let region = &self.of.region;
        if let Err(e) = check(region, epoch, self.epoch + 1, length) {
            return Err((e, self));
        }
        let end = length.div_ceil(region.chunk.into());
        // The tag mask and the hash key count as blocks too.
        let blocks =
            self.blocks.saturating_add(end * (u64::from(region.chunk) / 16 + 1)).saturating_add(1);
        if blocks > MAX_KEY_BLOCKS {
            return Err((SealError::Exhausted { region: region.id }, self));
        }
        Ok(Sealer { of: self.of, epoch, next: 0, end, blocks })
    }
}

/// Checks that the keys belong to a session under this configuration.
pub(crate) fn check_session(config: &Config, keys: &SessionKeys) -> Result<(), SealError> {
    if *keys.config_digest() == config.digest() { Ok(()) } else { Err(SealError::Session) }
}

fn check(r: &Region, epoch: u64, least: u64, length: u64) -> Result<(), SealError> {
    if epoch < least || epoch > MAX_EPOCH {
        return Err(SealError::Epoch { region: r.id, epoch, least });
    }
    if length == 0 || length > r.size {
        return Err(SealError::Length {
            region: r.id,
            name: r.name.clone(),
            what: "declared length",
            found: length,
            expected: r.size,
        });
    }
    Ok(())
}
