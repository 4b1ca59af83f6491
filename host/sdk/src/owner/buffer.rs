//! Buffers of a session: plaintext sealed into card memory, and results opened from it.

use std::io::{Read, Write};
use std::ops::ControlFlow;

use shef_proto::channel::{ShieldRequest, Statement, WrittenMap};
use shef_proto::config::{Mode, Region};
use shef_seal::{OpenPolicy, Opened, Opener, SealError, Sealer, Spent};

use super::judge::{judge, judge_despite_fault};
use super::transfer::{self, Open, Progress, Watch, unwatched};
use crate::host::Host;
use crate::progress::Cancel;
use crate::{Keyed, SdkError, Session};

/// A region, and the session that owns the buffer: another session has other keys for the region,
/// and may run on another card.
#[derive(Debug, Clone)]
struct Bound {
    region: Region,
    session: [u8; 32],
}

/// A buffer in an `input` region: data that the owner seals for the accelerator.
#[derive(Debug, Clone)]
pub struct InputBuffer(Bound);

/// A buffer in an `output` region: results that the Shield seals for the owner.
#[derive(Debug, Clone)]
pub struct OutputBuffer(Bound);

/// A buffer in a `bypass` region: unprotected bytes. The host, and anyone else with access to card
/// memory, sees and changes them.
#[derive(Debug, Clone)]
pub struct UnprotectedBuffer(Bound);

macro_rules! region_of {
    ($($buffer:ident),*) => {$(
        impl $buffer {
            /// Address of the first byte, as the accelerator sees it.
            pub fn addr(&self) -> u64 {
                self.0.region.base
            }

            /// The region.
            pub fn region(&self) -> &Region {
                &self.0.region
            }
        }
    )*};
}

region_of!(InputBuffer, OutputBuffer, UnprotectedBuffer);

/// An unprotected value: the host may have made it up. It must be taken out explicitly before use.
///
/// ```compile_fail,E0308
/// fn results(said: shef::Untrusted<Vec<u8>>) -> Vec<u8> {
///     said
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// The value. A caller that bases a decision on it lets the host decide.
    pub fn into_what_the_host_says(self) -> T {
        self.0
    }
}

impl Session<'_, Keyed> {
    /// The buffer of an `input` region.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn input(&self, name: &str) -> Result<InputBuffer, SdkError> {
        self.bound(name, Mode::Input).map(InputBuffer)
    }

    /// The buffer of an `output` region.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn output(&self, name: &str) -> Result<OutputBuffer, SdkError> {
        self.bound(name, Mode::Output).map(OutputBuffer)
    }

    /// The buffer of a `bypass` region.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn unprotected(&self, name: &str) -> Result<UnprotectedBuffer, SdkError> {
        self.bound(name, Mode::Bypass).map(UnprotectedBuffer)
    }

    /// First byte of a scratch region (`counted`, `tree`), as the accelerator sees it: no host can
    /// read or fill one.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn scratch(&self, name: &str) -> Result<u64, SdkError> {
        let region = self
            .state
            .config
            .region_by_name(name)
            .ok_or_else(|| SdkError::NoRegion { name: name.to_owned() })?;
        if !matches!(region.mode, Mode::Counted | Mode::Tree) {
            return Err(SdkError::WrongMode {
                name: name.to_owned(),
                found: region.mode.name(),
                expected: "counted or tree",
            });
        }
        Ok(region.base)
    }

    fn bound(&self, name: &str, mode: Mode) -> Result<Bound, SdkError> {
        let region = self
            .state
            .config
            .region_by_name(name)
            .ok_or_else(|| SdkError::NoRegion { name: name.to_owned() })?;
        if region.mode != mode {
            return Err(SdkError::WrongMode {
                name: name.to_owned(),
                found: region.mode.name(),
                expected: mode.name(),
            });
        }
        Ok(Bound { region: region.clone(), session: self.transcript() })
    }

    /// The region of a buffer of this session.
    fn own<'b>(&self, buffer: &'b Bound) -> Result<&'b Region, SdkError> {
        self.state.check_process()?;
        let region = &buffer.region;
        if buffer.session == self.transcript() {
            Ok(region)
        } else {
            Err(SdkError::OtherSession { name: region.name.clone() })
        }
    }

    /// Checks that a buffer belongs to this session and that `len` bytes fit it from its start.
    pub(crate) fn check_input(&self, buffer: &InputBuffer, len: u64) -> Result<(), SdkError> {
        fits(self.own(&buffer.0)?, len)
    }

    /// As [`Session::check_input`].
    pub(crate) fn check_output(&self, buffer: &OutputBuffer, len: u64) -> Result<(), SdkError> {
        fits(self.own(&buffer.0)?, len)
    }

    /// Seals `data` into the buffer, from its start, and transfers ciphertext and tags into card
    /// memory; sealing overlaps with the transfer. Once per epoch.
    ///
    /// # Errors
    /// [`SdkError::TooLong`], [`SdkError::Seal`] if the epoch's data has already been sealed, and
    /// host errors.
    pub fn upload(&mut self, buffer: &InputBuffer, data: &[u8]) -> Result<(), SdkError> {
        self.upload_at(buffer, self.epoch(&buffer.0)?, data)
    }

    /// As [`Session::upload`], under an epoch that the Shield may not have reached yet.
    pub(crate) fn upload_at(
        &mut self,
        buffer: &InputBuffer,
        epoch: u64,
        data: &[u8],
    ) -> Result<(), SdkError> {
        self.seal(buffer, epoch, data.len() as u64, &mut unwatched, |host, sealer, watch| {
            transfer::upload(host, sealer, data, watch)
        })
    }

    /// As [`Session::upload`], of `len` bytes that are read piece by piece, so that they need not
    /// fit the owner's memory. `watch` sees the progress and may end the transfer after the current
    /// piece. The upload is then worthless, as after any other error, and so is the epoch:
    /// [`Session::next_input_epoch`] makes the buffer usable again. Until then the accelerator gets
    /// no byte of it that was not sealed for this epoch (the Shield stops with a fault).
    ///
    /// # Errors
    /// As [`Session::upload`]; [`SdkError::Stream`] if the reader fails or ends before `len` bytes,
    /// [`SdkError::Cancelled`].
    pub fn upload_from(
        &mut self,
        buffer: &InputBuffer,
        from: impl Read + Send,
        len: u64,
        watch: &mut Watch<'_>,
    ) -> Result<(), SdkError> {
        let epoch = self.epoch(&buffer.0)?;
        self.seal(buffer, epoch, len, watch, |host, sealer, watch| {
            transfer::upload_from(host, sealer, from, len as usize, watch)
        })
    }

    /// Runs `upload` with the sealer of an epoch, once per epoch.
    fn seal(
        &mut self,
        buffer: &InputBuffer,
        epoch: u64,
        len: u64,
        watch: &mut Watch<'_>,
        upload: impl FnOnce(&mut Host, Sealer, &mut Watch<'_>) -> (Spent, Result<(), SdkError>),
    ) -> Result<(), SdkError> {
        let region = self.own(&buffer.0)?;
        fits(region, len)?;
        let cancel = self.state.patience.cancel.clone();
        let state = &mut self.state;
        let slot = usize::from(region.id);
        let sealer = match state.sealers[slot].take() {
            None => Sealer::new(&state.config, &mut state.keys, region.id, epoch, len)?,
            Some(spent) => match spent.next_epoch(epoch, len) {
                Ok(sealer) => sealer,
                Err((error, spent)) => {
                    state.sealers[slot] = Some(spent);
                    return Err(error.into());
                }
            },
        };
        let (spent, result) =
            upload(self.host, sealer, &mut |progress| both(&cancel, watch, progress));
        state.sealers[slot] = Some(spent);
        result
    }

    /// Writes unprotected plain bytes.
    ///
    /// # Errors
    /// [`SdkError::TooLong`] and host errors.
    pub fn write_unprotected(
        &mut self,
        buffer: &UnprotectedBuffer,
        offset: u64,
        data: &[u8],
    ) -> Result<(), SdkError> {
        let addr = within(self.own(&buffer.0)?, offset, data.len() as u64)?;
        self.host.write_memory(addr, data)
    }

    /// Reads unprotected plain bytes: a hint, never a result. The accelerator's writes are visible
    /// after a flush.
    ///
    /// # Errors
    /// [`SdkError::TooLong`] and host errors.
    pub fn read_unprotected(
        &mut self,
        buffer: &UnprotectedBuffer,
        offset: u64,
        len: usize,
    ) -> Result<Untrusted<Vec<u8>>, SdkError> {
        let addr = within(self.own(&buffer.0)?, offset, len as u64)?;
        self.host.read_memory(addr, len).map(Untrusted)
    }

    /// Raises the epoch of an `input` region: earlier sealed data becomes worthless, and new data
    /// can be sealed.
    ///
    /// # Errors
    /// Channel errors.
    pub fn next_input_epoch(&mut self, buffer: &InputBuffer) -> Result<u64, SdkError> {
        let region = self.own(&buffer.0)?.id;
        self.next_epoch(region)
    }

    /// Raises the epoch of an `output` region: every chunk may be written again.
    ///
    /// # Errors
    /// Channel errors.
    pub fn next_output_epoch(&mut self, buffer: &OutputBuffer) -> Result<u64, SdkError> {
        let region = self.own(&buffer.0)?.id;
        self.next_epoch(region)
    }

    fn next_epoch(&mut self, region: u8) -> Result<u64, SdkError> {
        let epoch = self.unused_epoch(region);
        self.raise_epoch(region, epoch)?;
        Ok(epoch)
    }

    fn epoch(&self, buffer: &Bound) -> Result<u64, SdkError> {
        Ok(self.state.epochs[usize::from(self.own(buffer)?.id)])
    }

    /// The lowest epoch of a region that neither Shield nor owner has reached.
    pub(crate) fn unused_epoch(&self, region: u8) -> u64 {
        let slot = usize::from(region);
        let sealed = self.state.sealers[slot].as_ref().map_or(0, Spent::epoch);
        self.state.epochs[slot].max(sealed) + 1
    }

    /// Makes the Shield raise the epoch of a region.
    pub(crate) fn raise_epoch(&mut self, region: u8, epoch: u64) -> Result<(), SdkError> {
        self.call(&ShieldRequest::epoch(region, epoch)).map(drop)
    }

    /// Checks that results may be opened under the statement, as [`Session::open`] does: for a
    /// launch whose results are registers only.
    ///
    /// # Errors
    /// [`SdkError::Faulted`] or [`SdkError::Refusals`].
    pub fn check(&self, statement: &Statement, policy: OpenPolicy) -> Result<(), SdkError> {
        judge(statement.shield(), self.allowed(policy))
    }

    /// Reads `len` bytes of results from card memory and opens them under the statement. A policy
    /// that tolerates refusals tolerates the refusals of this statement, now and later; refusals of
    /// a later launch must be tolerated again.
    ///
    /// # Errors
    /// [`SdkError::Faulted`] or [`SdkError::Refusals`] if the statement is not good,
    /// [`SdkError::StaleStatement`] if it is older than the last launch, register write, flush or
    /// epoch, [`SdkError::Withheld`] if the host does not deliver what the Shield sealed,
    /// [`SdkError::Seal`] if a chunk was never written.
    pub fn open(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: usize,
        policy: OpenPolicy,
    ) -> Result<Opened, SdkError> {
        self.open_since(buffer, statement, len, policy, self.state.stale_before)
    }

    /// As [`Session::open`], for an earlier launch: the statement must have been read after request
    /// `since`.
    pub(crate) fn open_since(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: usize,
        policy: OpenPolicy,
        since: u64,
    ) -> Result<Opened, SdkError> {
        self.check(statement, policy)?;
        self.open_judged(
            buffer,
            statement,
            len as u64,
            (policy, &[]),
            since,
            &mut unwatched,
            transfer::download,
        )
    }

    /// Number of refusals with which results open: those that the owner allowed earlier, and those
    /// of this statement if the policy allows them.
    fn allowed(&self, policy: OpenPolicy) -> u32 {
        if policy.refusals { u32::MAX } else { self.state.allowed_refusals }
    }

    /// As [`Session::open`], into the caller's memory, which sets the length: new memory costs
    /// about as much as the cipher. On failure it holds zeros or its previous content.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_into(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        out: &mut [u8],
        policy: OpenPolicy,
    ) -> Result<WrittenMap, SdkError> {
        self.check(statement, policy)?;
        let since = self.state.stale_before;
        self.open_judged(
            buffer,
            statement,
            out.len() as u64,
            (policy, &[]),
            since,
            &mut unwatched,
            |host, opener, open, _, watch| transfer::download_into(host, opener, open, out, watch),
        )
    }

    /// As [`Session::open`], but writes the `len` bytes to `to` piece by piece, so that they need
    /// not fit the owner's memory. Every piece is opened before it is written, but the first is
    /// written before all are opened: the output is a result only if the writer is returned.
    /// Otherwise discard it (write to a file with a temporary name, and rename it at the end).
    /// `watch` sees the progress and may end the transfer; the session is unchanged, and the
    /// results can be opened again.
    ///
    /// # Errors
    /// As [`Session::open`]; [`SdkError::Stream`] if the writer fails, [`SdkError::Cancelled`].
    pub fn open_to<W: Write>(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: u64,
        policy: OpenPolicy,
        to: W,
        watch: &mut Watch<'_>,
    ) -> Result<(W, WrittenMap), SdkError> {
        self.check(statement, policy)?;
        let since = self.state.stale_before;
        self.open_judged(
            buffer,
            statement,
            len,
            (policy, &[]),
            since,
            watch,
            |host, opener, open, len, watch| {
                transfer::download_to(host, opener, open, to, len, watch)
            },
        )
    }

    /// Opens results of a launch during which a fault froze regions (`on_fault = "region"`),
    /// although the accelerator gets only zeros and errors from them. That is right only if the
    /// launch could not have reached any frozen region: the caller asserts this by naming them in
    /// `unreached`, and the statement cannot prove it. Nothing opens if a frozen region is not
    /// named, if the buffer's own region is frozen, or if the Shield has stopped.
    ///
    /// # Errors
    /// [`SdkError::Reached`] for a frozen region that is not named, [`SdkError::NoRegion`] for an
    /// unknown name; otherwise as [`Session::open`].
    pub fn open_despite_fault(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: usize,
        policy: OpenPolicy,
        unreached: &[&str],
    ) -> Result<Opened, SdkError> {
        let config = &self.state.config;
        let mut ids = Vec::with_capacity(unreached.len());
        for name in unreached {
            ids.push(
                config
                    .region_by_name(name)
                    .ok_or_else(|| SdkError::NoRegion { name: (*name).to_owned() })?
                    .id,
            );
        }
        judge_despite_fault(config, statement, &ids, buffer.0.region.id, self.allowed(policy))?;
        self.open_judged(
            buffer,
            statement,
            len as u64,
            (policy, &ids),
            self.state.stale_before,
            &mut unwatched,
            transfer::download,
        )
    }

    /// Runs `download` to fetch and open `len` bytes under a judged statement.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is opened, under what, and how it is brought"
    )]
    fn open_judged<T>(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: u64,
        (policy, unreached): (OpenPolicy, &[u8]),
        since: u64,
        watch: &mut Watch<'_>,
        download: impl FnOnce(&mut Host, &Opener, Open<'_>, u64, &mut Watch<'_>) -> Result<T, SdkError>,
    ) -> Result<T, SdkError> {
        let region = self.own(&buffer.0)?;
        let found = statement.shield().requests;
        if found <= since {
            return Err(SdkError::StaleStatement { needed: since, found });
        }
        fits(region, len)?;
        let cancel = self.state.patience.cancel.clone();
        let state = &mut self.state;
        let slot = usize::from(region.id);
        // The statement is authentic; the owner must still check that it is of the expected epoch.
        if statement.region(region.id).map(|page| page.epoch) != Some(state.epochs[slot]) {
            return Err(SdkError::StaleStatement { needed: state.stale_before, found });
        }
        let opener = match &mut state.openers[slot] {
            Some(opener) => opener,
            empty => empty.insert(Opener::new(&state.config, &mut state.keys, region.id)?),
        };
        // Refusals have already been judged.
        let open = Open { statement, unreached, policy: OpenPolicy { refusals: true, ..policy } };
        let opened =
            download(self.host, opener, open, len, &mut |progress| both(&cancel, watch, progress));
        if policy.refusals && opened.is_ok() {
            state.allowed_refusals = state.allowed_refusals.max(statement.shield().refusals);
        }
        opened.map_err(|error| match error {
            SdkError::Seal(source @ (SealError::Tag { .. } | SealError::Length { .. })) => {
                SdkError::Withheld { source }
            }
            error => error,
        })
    }
}

/// Continues unless the session's owner or the caller ends it.
fn both(cancel: &Cancel, watch: &mut Watch<'_>, progress: Progress) -> ControlFlow<()> {
    match watch(progress) {
        ControlFlow::Continue(()) => cancel.watch(progress),
        ended @ ControlFlow::Break(()) => ended,
    }
}

/// First address of a range that lies entirely inside a region.
fn within(region: &Region, offset: u64, len: u64) -> Result<u64, SdkError> {
    if offset.checked_add(len).is_none_or(|end| end > region.size) {
        return Err(SdkError::TooLong {
            name: region.name.clone(),
            offset,
            len,
            size: region.size,
        });
    }
    Ok(region.base + offset)
}

/// Checks that `len` bytes fit a region from its start.
fn fits(region: &Region, len: u64) -> Result<(), SdkError> {
    if len > region.size {
        return Err(SdkError::TooLong {
            name: region.name.clone(),
            offset: 0,
            len,
            size: region.size,
        });
    }
    Ok(())
}
