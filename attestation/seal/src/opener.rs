//! The owner's side of an `output` region: it opens chunks under a statement of the same session.

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::config::{Config, Mode, Region, TAG_LEN};
use shef_proto::load::{SessionKeys, Transcript};

use crate::chunks::{BLOCK, for_each_chunk};
use crate::sealer::check_session;
use crate::{ChunkCipher, ChunkTag, Plain, SealError};

/// Conditions that an [`Opener`] tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenPolicy {
    /// Open even if the Shield refused accesses of the accelerator.
    pub refusals: bool,
    /// Open even if chunks were not written. They read as zeros, and [`Opened::written`] identifies
    /// them.
    pub holes: bool,
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
    /// Creates an opener. Takes the region's key out of `keys`.
    ///
    /// # Errors
    /// Not an `output` region, or the key was already taken.
    pub fn new(config: &Config, keys: &mut SessionKeys, region: u8) -> Result<Self, SealError> {
        let r = config
            .region(region)
            .filter(|r| r.mode == Mode::Output)
            .ok_or(SealError::Region { region, expected: "output" })?;
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
    /// Another session, a stopped Shield, any fault, or refusals that the policy does not tolerate.
    pub fn check(&self, statement: &Statement, policy: OpenPolicy) -> Result<(), SealError> {
        match statement.shield().faults {
            0 => self.check_despite_fault(statement, &[], policy),
            faults => Err(SealError::Stopped { faults }),
        }
    }

    /// Like [`Opener::check`], for a fault that froze regions without stopping the Shield
    /// (`on_fault = "region"`). The caller lists in `unreached` the frozen regions that the launch
    /// could not have reached.
    ///
    /// # Errors
    /// Another session, a stopped Shield, a frozen region that is not listed or is this one, or
    /// refusals that the policy does not tolerate.
    pub fn check_despite_fault(
        &self,
        statement: &Statement,
        unreached: &[u8],
        policy: OpenPolicy,
    ) -> Result<(), SealError> {
        if statement.transcript() != self.transcript
            || *statement.config_digest() != self.config_digest
        {
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

    /// Opens whole chunks starting at chunk `first`. `data` is the ciphertext from card memory,
    /// `tags` the tags.
    ///
    /// # Errors
    /// Those of [`Opener::check`]; a chunk that was not written, unless the policy allows holes; a
    /// chunk that does not open.
    pub fn open(
        &self,
        statement: &Statement,
        policy: OpenPolicy,
        first: u64,
        data: &[u8],
        tags: &[u8],
    ) -> Result<Opened, SealError> {
        self.check(statement, policy)?;
        self.open_checked(statement, policy, first, data, tags)
    }

    /// Like [`Opener::open`], under [`Opener::check_despite_fault`].
    ///
    /// # Errors
    /// Those of [`Opener::check_despite_fault`] and [`Opener::open`].
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

    fn open_checked(
        &self,
        statement: &Statement,
        policy: OpenPolicy,
        first: u64,
        data: &[u8],
        tags: &[u8],
    ) -> Result<Opened, SealError> {
        let mut out = Plain::zeros(data.len());
        let written = self.open_into(statement, policy, first, (data, tags), &mut out)?.clone();
        Ok(Opened { data: out, written })
    }

    /// Like [`Opener::open_despite_fault`], into `out`, which has the length of the ciphertext.
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

    /// Like [`Opener::open_piece`], with ciphertext supplied by `bring`, which copies bytes from an
    /// offset into the given buffer, a few chunks at a time and in order, so that they stay in the
    /// L1 cache. `len` is the total number of bytes.
    ///
    /// # Errors
    /// Those of [`Opener::open_piece`] and of `bring`.
    #[expect(
        clippy::too_many_arguments,
        reason = "those of `open_piece`, with the ciphertext as its length and who brings it"
    )]
    pub fn open_piece_from<E: From<SealError>>(
        &self,
        statement: &Statement,
        unreached: &[u8],
        policy: OpenPolicy,
        first: u64,
        (len, tags): (usize, &[u8]),
        out: &mut [u8],
        mut bring: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_despite_fault(statement, unreached, policy)?;
        let (epoch, map) =
            self.check_piece(statement, policy, first, (len, tags.len()), out.len())?;
        let chunk = self.region.chunk as usize;
        let mut sealed = [0; BLOCK];
        let blocks = out.chunks_mut(BLOCK).zip(tags.chunks(BLOCK / chunk * TAG_LEN as usize));
        for ((at, n), (out, tags)) in
            (0..).step_by(BLOCK).zip((first..).step_by(BLOCK / chunk)).zip(blocks)
        {
            let sealed = &mut sealed[..out.len()];
            bring(at, sealed)?;
            self.open_chunks((epoch, map), n, (sealed, tags), out)?;
        }
        Ok(())
    }

    fn open_into<'s>(
        &self,
        statement: &'s Statement,
        policy: OpenPolicy,
        first: u64,
        (data, tags): (&[u8], &[u8]),
        out: &mut [u8],
    ) -> Result<&'s WrittenMap, SealError> {
        let (epoch, map) =
            self.check_piece(statement, policy, first, (data.len(), tags.len()), out.len())?;
        self.open_chunks((epoch, map), first, (data, tags), out)?;
        Ok(map)
    }

    /// Checks that the statement allows opening this many bytes of ciphertext and tags, starting at
    /// chunk `first`: the epoch, the written chunks and the lengths.
    fn check_piece<'s>(
        &self,
        statement: &'s Statement,
        policy: OpenPolicy,
        first: u64,
        (data, tags): (usize, usize),
        out: usize,
    ) -> Result<(u64, &'s WrittenMap), SealError> {
        let r = &self.region;
        let (Some(page), Some(map)) = (statement.region(r.id), statement.written(r.id)) else {
            return Err(SealError::Session);
        };
        let epoch = page.epoch;
        if epoch == 0 {
            return Err(SealError::Epoch { region: r.id, epoch, least: 1 });
        }
        let length = |what, found, expected| SealError::Length {
            region: r.id,
            name: r.name.clone(),
            what,
            found,
            expected,
        };
        let chunk = r.chunk as usize;
        if !data.is_multiple_of(chunk) {
            return Err(length("ciphertext is not whole chunks", data as u64, u64::from(r.chunk)));
        }
        let n = (data / chunk) as u64;
        if tags as u64 != n * TAG_LEN {
            return Err(length("tags for the ciphertext", tags as u64, n * TAG_LEN));
        }
        if first > r.chunks() || n > r.chunks() - first {
            return Err(length("chunks past the region", first.saturating_add(n), r.chunks()));
        }
        if !policy.holes
            && let Some(chunk) = (first..first + n).find(|&i| !map.is_written(i))
        {
            return Err(SealError::NotWritten { region: r.id, chunk, epoch });
        }
        if out != data {
            return Err(length("room for the plaintext", out as u64, data as u64));
        }
        Ok((epoch, map))
    }

    fn open_chunks(
        &self,
        (epoch, map): (u64, &WrittenMap),
        first: u64,
        (data, tags): (&[u8], &[u8]),
        out: &mut [u8],
    ) -> Result<(), SealError> {
        let r = &self.region;
        let mut tags = tags.to_vec();
        let bad =
            for_each_chunk(r.chunk as usize, data, out, &mut tags, &|i, sealed, plain, tag| {
                // Unwritten chunks read as zeros.
                if !map.is_written(first + i) {
                    plain.fill(0);
                    return true;
                }
                let Ok(tag) = <&ChunkTag>::try_from(&*tag) else { return false };
                self.cipher.open_into(epoch, first + i, sealed, tag, plain)
            });
        match bad {
            Some(i) => Err(SealError::Tag { region: r.id, chunk: first + i, epoch }),
            None => Ok(()),
        }
    }
}
