//! Buffers of a session: what is sealed into card memory and opened out of it.

use std::io::{Read, Write};
use std::ops::ControlFlow;

use shef_proto::channel::{Request, Statement, WrittenMap};
use shef_proto::config::{Mode, Region};
use shef_seal::{OpenPolicy, Opened, Opener, SealError, Sealer, Spent};

use crate::host::Host;
use crate::judge::{judge, judge_despite_fault};
use crate::transfer::{self, Open, Progress, Watch, unwatched};
use crate::wait::Cancel;
use crate::{Keyed, SdkError, Session};

/// A region, and the session whose buffer it is: another session has other keys for it, and may be
/// one with another card.
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

/// A buffer in a `bypass` region: bytes that nothing protects. The host and everybody else at the
/// card's memory sees and changes them.
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

/// What nothing protects: the host may have made it up. Only a value that is taken out by name gets
/// any further.
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
    /// The value. A caller who decides anything by it lets the host decide.
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

    /// Whether a buffer is one of this session, and so many bytes fit it from its start on.
    pub(crate) fn check_input(&self, buffer: &InputBuffer, len: u64) -> Result<(), SdkError> {
        fits(self.own(&buffer.0)?, len)
    }

    /// As [`Session::check_input`].
    pub(crate) fn check_output(&self, buffer: &OutputBuffer, len: u64) -> Result<(), SdkError> {
        fits(self.own(&buffer.0)?, len)
    }

    /// Seals `data` into the buffer, from its start, and has ciphertext and tags carried into card
    /// memory; sealing overlaps with the transfer. Once in an epoch.
    ///
    /// # Errors
    /// [`SdkError::TooLong`], [`SdkError::Seal`] where the epoch's data was sealed already, and
    /// those of the host.
    pub fn upload(&mut self, buffer: &InputBuffer, data: &[u8]) -> Result<(), SdkError> {
        self.upload_at(buffer, self.epoch(&buffer.0)?, data)
    }

    /// As [`Session::upload`], under an epoch that the Shield may have yet to come to.
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
    /// fit the owner's memory. `watch` sees the progress and may end the transfer, after the piece
    /// that is being read; what was uploaded is worthless then, as after every other error, and so
    /// is the epoch: after [`Session::next_input_epoch`] the buffer can be filled anew, and until
    /// then the accelerator gets no byte of it that was not sealed for this epoch (the Shield stops
    /// with a fault).
    ///
    /// # Errors
    /// As [`Session::upload`]; [`SdkError::Stream`] where the reader fails or ends before `len`
    /// bytes, [`SdkError::Cancelled`].
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

    /// Has `upload` do with the sealer of an epoch what it does, once for each epoch.
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

    /// Writes plain bytes that nothing protects.
    ///
    /// # Errors
    /// [`SdkError::TooLong`] and those of the host.
    pub fn write_unprotected(
        &mut self,
        buffer: &UnprotectedBuffer,
        offset: u64,
        data: &[u8],
    ) -> Result<(), SdkError> {
        let addr = within(self.own(&buffer.0)?, offset, data.len() as u64)?;
        self.host.write_memory(addr, data.to_vec())
    }

    /// Reads plain bytes that nothing protects: a hint, never a result. What the accelerator wrote
    /// is there after a flush.
    ///
    /// # Errors
    /// [`SdkError::TooLong`] and those of the host.
    pub fn read_unprotected(
        &mut self,
        buffer: &UnprotectedBuffer,
        offset: u64,
        len: usize,
    ) -> Result<Untrusted<Vec<u8>>, SdkError> {
        let addr = within(self.own(&buffer.0)?, offset, len as u64)?;
        self.host.read_memory(addr, len).map(Untrusted)
    }

    /// Raises the epoch of an `input` region: what was sealed before is worthless, and new data can
    /// be sealed.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn next_input_epoch(&mut self, buffer: &InputBuffer) -> Result<u64, SdkError> {
        let region = self.own(&buffer.0)?.id;
        self.next_epoch(region)
    }

    /// Raises the epoch of an `output` region: every chunk may be written again.
    ///
    /// # Errors
    /// Those of the channel.
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

    /// The least epoch of a region that neither Shield nor owner has come to.
    pub(crate) fn unused_epoch(&self, region: u8) -> u64 {
        let slot = usize::from(region);
        let sealed = self.state.sealers[slot].as_ref().map_or(0, Spent::epoch);
        self.state.epochs[slot].max(sealed) + 1
    }

    /// Has the Shield raise the epoch of a region.
    pub(crate) fn raise_epoch(&mut self, region: u8, epoch: u64) -> Result<(), SdkError> {
        self.call(&Request::epoch(region, epoch)).map(drop)
    }

    /// Reads `len` bytes of results from card memory and opens them under the statement. A policy
    /// that tolerates refusals tolerates those that this statement shows, now and later; what the
    /// Shield refuses in a later launch must be tolerated again.
    ///
    /// # Errors
    /// [`SdkError::Faulted`] or [`SdkError::Refusals`] where the statement is not good,
    /// [`SdkError::StaleStatement`] where it is older than the last launch, register write, flush
    /// or epoch, [`SdkError::Withheld`] where the host delivers something else than the Shield
    /// sealed, [`SdkError::Seal`] where a chunk was never written.
    pub fn open(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: usize,
        policy: OpenPolicy,
    ) -> Result<Opened, SdkError> {
        self.open_since(buffer, statement, len, policy, self.state.stale_before)
    }

    /// As [`Session::open`], of a launch before the last one: the statement must have been read
    /// after request `since`.
    pub(crate) fn open_since(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: usize,
        policy: OpenPolicy,
        since: u64,
    ) -> Result<Opened, SdkError> {
        judge(statement.shield(), self.allowed(policy))?;
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

    /// Refusals with which results open: those that the owner has allowed before, and those of this
    /// statement where the policy allows them.
    fn allowed(&self, policy: OpenPolicy) -> u32 {
        if policy.refusals { u32::MAX } else { self.state.allowed_refusals }
    }

    /// As [`Session::open`], into memory of the caller's, as many bytes as that has: new memory
    /// costs about as much as the cipher. Where it fails, it holds zeros, or what it held before.
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
        judge(statement.shield(), self.allowed(policy))?;
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

    /// As [`Session::open`], of which `to` gets the `len` bytes piece by piece, so that they need
    /// not fit the owner's memory. Every piece was opened before it is written, but not all of them
    /// before the first is: what was written is a result only when the writer comes back. Throw it
    /// away where it does not (write to a file of another name, and rename it at the end). `watch`
    /// sees the progress and may end the transfer; the session is as before, and the results can be
    /// opened again.
    ///
    /// # Errors
    /// As [`Session::open`]; [`SdkError::Stream`] where the writer fails, [`SdkError::Cancelled`].
    pub fn open_to<W: Write>(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: u64,
        policy: OpenPolicy,
        to: W,
        watch: &mut Watch<'_>,
    ) -> Result<(W, WrittenMap), SdkError> {
        judge(statement.shield(), self.allowed(policy))?;
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
    /// although what the accelerator got from them are zeros and errors. That is right only where
    /// the launch could have reached none of the frozen regions: the caller says so by naming them
    /// in `unreached`, and nothing in the statement can show that it is true. A frozen region that
    /// is not named, or that is the buffer's own, opens nothing; nor does a Shield that has
    /// stopped.
    ///
    /// # Errors
    /// [`SdkError::Reached`] for a frozen region that is not named, [`SdkError::NoRegion`] for a
    /// name that is none; else those of [`Session::open`].
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

    /// Has `download` bring and open `len` bytes under a statement that was judged.
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
        // The statement is authentic; that it is of the epoch which the owner has in mind is the
        // owner's to check.
        if statement.region(region.id).map(|page| page.epoch) != Some(state.epochs[slot]) {
            return Err(SdkError::StaleStatement { needed: state.stale_before, found });
        }
        let opener = match &mut state.openers[slot] {
            Some(opener) => opener,
            empty => empty.insert(Opener::new(&state.config, &mut state.keys, region.id)?),
        };
        // Refusals were judged.
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

/// Goes on while neither the session's owner nor the caller ends it.
fn both(cancel: &Cancel, watch: &mut Watch<'_>, progress: Progress) -> ControlFlow<()> {
    match watch(progress) {
        ControlFlow::Continue(()) => cancel.watch(progress),
        ended @ ControlFlow::Break(()) => ended,
    }
}

/// First address of bytes that are wholly in a region.
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

/// Whether so many bytes fit a region from its start on.
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
