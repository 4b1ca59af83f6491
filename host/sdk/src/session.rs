//! Sessions with a Shield, as the data owner has them: [`Connected`] -> [`Attested`] -> [`Keyed`].
//!
//! The types follow the rule that no key goes to what was not appraised, no data to a Shield that has not confirmed its keys, and no result is
//! opened but under a statement read after the last launch.

use std::io::{Read, Write};

use shef_proto::channel::{
    Answer, ChannelError, OwnerChannel, Request, Sealed, ShieldStatement, State, Statement, Statistics, WrittenMap, status,
};
use shef_proto::config::{Config, Mode, Region};
use shef_proto::entropy::Entropy;
use shef_proto::evidence::RootOfTrust;
use shef_proto::load::{FirstEpoch, MASTER_LEN, SessionKeys};
use shef_seal::{OpenPolicy, Opened, Opener, SealError, Sealer, Spent};
use shef_verify::{Verified, VerifiedShieldEvidence};
use zeroize::Zeroizing;

use crate::host::{Host, LoadHint};
use crate::service::{DataKey, Service};
use crate::transfer::{self, Open, Watch};
use crate::verifier::{Appraised, Challenge, Verifier};
use crate::{Leg, SdkError};

/// Reads of a register until an accelerator is given up.
const POLLS: u32 = 1_000_000;

/// A session: the way to one Shield, over a host that is not trusted.
pub struct Session<'h, S> {
    host: &'h mut Host,
    state: S,
}

/// There is a device, and nothing is known about it.
pub struct Connected;

/// The Shield was appraised: its key is fresh, and the verifier's policy is satisfied.
pub struct Attested {
    evidence: Vec<u8>,
    challenge: Challenge,
    verified: VerifiedShieldEvidence,
    appraised: Appraised,
    config: Config,
    /// Master key that a verifier service released; this program draws one where there is none.
    master: Option<Zeroizing<[u8; MASTER_LEN]>>,
}

/// The Shield has confirmed the session's keys.
pub struct Keyed {
    config: Config,
    keys: SessionKeys,
    channel: OwnerChannel,
    verified: VerifiedShieldEvidence,
    /// Present epoch of each region, by its number.
    epochs: Vec<u64>,
    sealers: Vec<Option<Spent>>,
    openers: Vec<Option<Opener>>,
    /// Number of the request before which a statement says nothing any more.
    stale_before: u64,
    load_key: Vec<u8>,
    secrets: Option<SessionSecrets>,
}

/// A buffer in an `input` region: data that the owner seals for the accelerator.
#[derive(Debug, Clone)]
pub struct InputBuffer(Region);

/// A buffer in a `bypass` region: bytes that nothing protects. The host and everybody else at the card's memory sees and changes them.
#[derive(Debug, Clone)]
pub struct UnprotectedBuffer(Region);

impl UnprotectedBuffer {
    /// Address of the first byte, as the accelerator sees it.
    pub fn addr(&self) -> u64 {
        self.0.base
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.0
    }

    fn check(&self, offset: u64, len: u64) -> Result<u64, SdkError> {
        let region = &self.0;
        if offset.checked_add(len).is_none_or(|end| end > region.size) {
            return Err(SdkError::TooLong { name: region.name.clone(), offset, len, size: region.size });
        }
        Ok(region.base + offset)
    }
}

/// A buffer in an `output` region: results that the Shield seals for the owner.
#[derive(Debug, Clone)]
pub struct OutputBuffer(Region);

impl InputBuffer {
    /// Address of the first byte, as the accelerator sees it.
    pub fn addr(&self) -> u64 {
        self.0.base
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.0
    }
}

impl OutputBuffer {
    /// Address of the first byte, as the accelerator sees it.
    pub fn addr(&self) -> u64 {
        self.0.base
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.0
    }
}

/// The keys of a session, for checks by other tools in a simulated setting.
pub struct SessionSecrets {
    /// Data key of each region with one.
    pub data: Vec<(u8, Zeroizing<Vec<u8>>)>,
    /// Channel key, owner to Shield.
    pub to_shield: Zeroizing<Vec<u8>>,
    /// Channel key, Shield to owner.
    pub to_owner: Zeroizing<Vec<u8>>,
}

/// What the Shield said when the session was closed.
#[derive(Debug, Clone)]
pub struct Closed {
    /// Its last words, over the sealed channel.
    pub last: ShieldStatement,
    /// Transcript hash of the session.
    pub transcript: [u8; 32],
    /// The sealed bytes of the last message, to be found again in the close record.
    pub sealed: Sealed,
    /// The Shield ended the session by itself, after a fault (`on_fault = "halt"`); nobody asked for it.
    pub by_itself: bool,
    verified: VerifiedShieldEvidence,
}

impl Closed {
    /// Checks that a close record is of this session: countersigned by the device whose evidence was appraised, over this transcript and
    /// these last words.
    ///
    /// # Errors
    /// [`SdkError::Close`], [`SdkError::OtherRecord`].
    pub fn verify_record(&self, record: &[u8]) -> Result<(), SdkError> {
        let record = self.verified.verify_close(record)?;
        if record.transcript != self.transcript {
            return Err(SdkError::OtherRecord { what: "transcript" });
        }
        if record.last != self.sealed {
            return Err(SdkError::OtherRecord { what: "last message" });
        }
        Ok(())
    }
}

impl<'h> Session<'h, Connected> {
    /// Opens the way to the Shield behind `host`.
    ///
    /// # Errors
    /// Where there is no Shield.
    pub fn connect(host: &'h mut Host) -> Result<Self, SdkError> {
        host.probe()?;
        Ok(Self { host, state: Connected })
    }

    /// Asks the Shield for evidence and has it appraised. `config` is the configuration that the owner expects; its digest must be in the
    /// evidence.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check, and everything that keeps evidence from arriving.
    pub fn attest(
        self,
        verifier: &Verifier,
        config: &Config,
        now: i64,
        entropy: &mut dyn Entropy,
    ) -> Result<Session<'h, Attested>, SdkError> {
        let challenge = Challenge::draw(verifier.audience(), entropy);
        let evidence = self.host.shield_evidence(&challenge)?;
        let (verified, appraisal) = verifier.appraise_shield(&evidence, &challenge, config, now)?;
        let (appraised, config) = (Appraised::Here(appraisal), config.clone());
        Ok(Session { host: self.host, state: Attested { evidence, challenge, verified, appraised, config, master: None } })
    }

    /// Asks the Shield for evidence and has a verifier service appraise it and release the data key `key` for it, which becomes the master
    /// key of the Load Key. `config` is the configuration that the owner expects; its digest must be in the evidence.
    ///
    /// # Errors
    /// [`SdkError::Denied`] with the first check that failed, [`SdkError::OtherConfig`], [`SdkError::MasterKey`], and everything that keeps
    /// messages from arriving.
    pub fn attest_by(
        self,
        service: &Service,
        key: &str,
        config: &Config,
        entropy: &mut dyn Entropy,
    ) -> Result<Session<'h, Attested>, SdkError> {
        let DataKey { secret, evidence, challenge, verified, receipt, released } =
            service.release_data_key(self.host, key, None, entropy)?;
        let Verified::Shield(verified) = verified else { return Err(SdkError::OtherConfig) };
        if *verified.config_digest() != config.digest() {
            return Err(SdkError::OtherConfig);
        }
        let mut master = Zeroizing::new([0; MASTER_LEN]);
        if secret.len() != MASTER_LEN {
            return Err(SdkError::MasterKey { found: secret.len() });
        }
        master.copy_from_slice(&secret);
        let (appraised, config, master) = (Appraised::ByService { receipt, head: released.head }, config.clone(), Some(master));
        Ok(Session { host: self.host, state: Attested { evidence, challenge, verified, appraised, config, master } })
    }
}

impl<'h> Session<'h, Attested> {
    /// Who appraised the evidence, and what came out.
    pub fn appraised(&self) -> &Appraised {
        &self.state.appraised
    }

    /// The evidence as it came.
    pub fn evidence(&self) -> &[u8] {
        &self.state.evidence
    }

    /// The challenge that the evidence answers.
    pub fn challenge(&self) -> &Challenge {
        &self.state.challenge
    }

    /// What the evidence says, verified.
    pub fn verified(&self) -> &VerifiedShieldEvidence {
        &self.state.verified
    }

    /// Makes the Load Key for the appraised Shield and nothing else, sends it, and checks the Shield's confirmation.
    ///
    /// # Errors
    /// [`SdkError::LoadRefused`], [`shef_proto::load::LoadError::Confirmation`], and everything that keeps the messages from arriving.
    pub fn key(self, tenant: &str, epochs: &[FirstEpoch], entropy: &mut dyn Entropy) -> Result<Session<'h, Keyed>, SdkError> {
        let Attested { verified, config, master, .. } = self.state;
        let (message, keys) = match master {
            None => verified.seal_load_key(&config, tenant, epochs, entropy)?,
            Some(master) => verified.seal_load_key_of(&master, &config, tenant, epochs, entropy)?,
        };
        let (hint, confirmation) = self.host.load_key(message.clone())?;
        // The confirmation decides; plain status only says why there is none.
        match (keys.check_confirmation(&confirmation), hint) {
            (Ok(()), _) => {}
            (Err(_), LoadHint::Refused) => return Err(SdkError::LoadRefused),
            (Err(error), LoadHint::Keyed) => return Err(error.into()),
        }
        let count = config.regions().len();
        let mut by_region = vec![0; count];
        for first in epochs {
            if let Some(slot) = by_region.get_mut(usize::from(first.region)) {
                *slot = first.epoch;
            }
        }
        let channel = OwnerChannel::new(&keys);
        Ok(Session {
            host: self.host,
            state: Keyed {
                config,
                channel,
                keys,
                verified,
                epochs: by_region,
                sealers: core::iter::repeat_with(|| None).take(count).collect(),
                openers: core::iter::repeat_with(|| None).take(count).collect(),
                stale_before: 0,
                load_key: message,
                secrets: None,
            },
        })
    }
}

impl<'h> Session<'h, Keyed> {
    /// The host, which carries everything.
    pub fn host(&mut self) -> &mut Host {
        self.host
    }

    /// Transcript hash of the session.
    pub fn transcript(&self) -> [u8; 32] {
        self.state.keys.transcript().0
    }

    /// The Load Key as it was sent.
    pub fn load_key(&self) -> &[u8] {
        &self.state.load_key
    }

    /// The configuration of the Shield.
    pub fn config(&self) -> &Config {
        &self.state.config
    }

    /// Copies the session's keys out, before the first buffer is used, so that other tools can check what was sealed.
    ///
    /// # Errors
    /// [`SdkError::NotSimulated`] for every device whose evidence does not say that it is simulated.
    pub fn expose_secrets(&mut self) -> Result<(), SdkError> {
        let kind = self.state.verified.claims().root_of_trust;
        if kind != RootOfTrust::Simulated {
            return Err(SdkError::NotSimulated { kind: kind.name() });
        }
        let keys = &self.state.keys;
        let copy = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
        let data = self.state.config.regions().iter().filter_map(|r| keys.data_key(r.id).map(|k| (r.id, copy(k.expose())))).collect();
        self.state.secrets =
            Some(SessionSecrets { data, to_shield: copy(keys.to_shield().expose()), to_owner: copy(keys.to_owner().expose()) });
        Ok(())
    }

    /// What [`Session::expose_secrets`] copied.
    pub fn secrets(&self) -> Option<&SessionSecrets> {
        self.state.secrets.as_ref()
    }

    /// The buffer of an `input` region.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn input(&self, name: &str) -> Result<InputBuffer, SdkError> {
        self.region(name, Mode::Input).map(InputBuffer)
    }

    /// The buffer of an `output` region.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn output(&self, name: &str) -> Result<OutputBuffer, SdkError> {
        self.region(name, Mode::Output).map(OutputBuffer)
    }

    /// The buffer of a `bypass` region.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn unprotected(&self, name: &str) -> Result<UnprotectedBuffer, SdkError> {
        self.region(name, Mode::Bypass).map(UnprotectedBuffer)
    }

    /// First byte of a scratch region (`counted`, `tree`), as the accelerator sees it: no host can read or fill one.
    ///
    /// # Errors
    /// [`SdkError::NoRegion`], [`SdkError::WrongMode`].
    pub fn scratch(&self, name: &str) -> Result<u64, SdkError> {
        let region = self.state.config.region_by_name(name).ok_or_else(|| SdkError::NoRegion { name: name.to_owned() })?;
        if !matches!(region.mode, Mode::Counted | Mode::Tree) {
            return Err(SdkError::WrongMode { name: name.to_owned(), found: region.mode.name(), expected: "counted or tree" });
        }
        Ok(region.base)
    }

    fn region(&self, name: &str, mode: Mode) -> Result<Region, SdkError> {
        let region = self.state.config.region_by_name(name).ok_or_else(|| SdkError::NoRegion { name: name.to_owned() })?;
        if region.mode != mode {
            return Err(SdkError::WrongMode { name: name.to_owned(), found: region.mode.name(), expected: mode.name() });
        }
        Ok(region.clone())
    }

    /// Seals `data` into the buffer, from its start, and has ciphertext and tags carried into card memory; sealing overlaps with the transfer. Once in
    /// an epoch.
    ///
    /// # Errors
    /// [`SdkError::TooLong`], [`SdkError::Seal`] where the epoch's data was sealed already, and those of the host.
    pub fn upload(&mut self, buffer: &InputBuffer, data: &[u8]) -> Result<(), SdkError> {
        self.upload_at(buffer, self.epoch(&buffer.0), data)
    }

    /// As [`Session::upload`], under an epoch that the Shield may have yet to come to.
    pub(crate) fn upload_at(&mut self, buffer: &InputBuffer, epoch: u64, data: &[u8]) -> Result<(), SdkError> {
        self.seal(buffer, epoch, data.len() as u64, |host, sealer| transfer::upload(host, sealer, data))
    }

    /// As [`Session::upload`], of `len` bytes that are read piece by piece, so that they need not fit the owner's memory. `watch` sees the
    /// progress and may end the transfer, after the piece that is being read; what was uploaded is worthless then, as after every other
    /// error, and so is the epoch: after [`Session::next_input_epoch`] the buffer can be filled anew, and until then the accelerator gets no
    /// byte of it that was not sealed for this epoch (the Shield stops with a fault).
    ///
    /// # Errors
    /// As [`Session::upload`]; [`SdkError::Stream`] where the reader fails or ends before `len` bytes, [`SdkError::Cancelled`].
    pub fn upload_from(&mut self, buffer: &InputBuffer, from: impl Read + Send, len: u64, watch: &mut Watch<'_>) -> Result<(), SdkError> {
        self.seal(buffer, self.epoch(&buffer.0), len, |host, sealer| transfer::upload_from(host, sealer, from, len as usize, watch))
    }

    /// Has `upload` do with the sealer of an epoch what it does, once for each epoch.
    fn seal(
        &mut self,
        buffer: &InputBuffer,
        epoch: u64,
        len: u64,
        upload: impl FnOnce(&mut Host, Sealer) -> (Spent, Result<(), SdkError>),
    ) -> Result<(), SdkError> {
        let region = &buffer.0;
        fits(region, len)?;
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
        let (spent, result) = upload(self.host, sealer);
        state.sealers[slot] = Some(spent);
        result
    }

    /// Writes plain bytes that nothing protects.
    ///
    /// # Errors
    /// [`SdkError::TooLong`] and those of the host.
    pub fn write_unprotected(&mut self, buffer: &UnprotectedBuffer, offset: u64, data: &[u8]) -> Result<(), SdkError> {
        let addr = buffer.check(offset, data.len() as u64)?;
        self.host.write_memory(addr, data.to_vec())
    }

    /// Reads plain bytes that nothing protects: a hint, never a result. What the accelerator wrote is there after a flush.
    ///
    /// # Errors
    /// [`SdkError::TooLong`] and those of the host.
    pub fn read_unprotected(&mut self, buffer: &UnprotectedBuffer, offset: u64, len: usize) -> Result<Vec<u8>, SdkError> {
        let addr = buffer.check(offset, len as u64)?;
        self.host.read_memory(addr, len)
    }

    /// Raises the epoch of an `input` region: what was sealed before is worthless, and new data can be sealed.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn next_input_epoch(&mut self, buffer: &InputBuffer) -> Result<u64, SdkError> {
        self.next_epoch(buffer.0.id)
    }

    /// Raises the epoch of an `output` region: every chunk may be written again.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn next_output_epoch(&mut self, buffer: &OutputBuffer) -> Result<u64, SdkError> {
        self.next_epoch(buffer.0.id)
    }

    fn next_epoch(&mut self, region: u8) -> Result<u64, SdkError> {
        let epoch = self.unused_epoch(region);
        self.raise_epoch(region, epoch)?;
        Ok(epoch)
    }

    fn epoch(&self, region: &Region) -> u64 {
        self.state.epochs[usize::from(region.id)]
    }

    /// The least epoch of a region that neither Shield nor owner has come to.
    pub(crate) fn unused_epoch(&self, region: u8) -> u64 {
        let slot = usize::from(region);
        let sealed = self.state.sealers[slot].as_ref().map_or(0, Spent::epoch);
        self.state.epochs[slot].max(sealed) + 1
    }

    /// Has the Shield raise the epoch of a region.
    pub(crate) fn raise_epoch(&mut self, region: u8, epoch: u64) -> Result<(), SdkError> {
        self.call(&Request::epoch(region, epoch))?;
        self.state.epochs[usize::from(region)] = epoch;
        self.state.stale_before = self.state.channel.seq();
        Ok(())
    }

    fn call(&mut self, request: &Request) -> Result<Answer, SdkError> {
        self.ask(|channel, _, carry| channel.call(request, carry))
    }

    /// Does something over the channel. Where the Shield refuses a request, what it shows instead may be its last message.
    fn ask<T>(
        &mut self,
        what: impl FnOnce(&mut OwnerChannel, &Config, &mut dyn FnMut(&Sealed) -> Result<Sealed, SdkError>) -> Result<T, SdkError>,
    ) -> Result<T, SdkError> {
        let host = &mut *self.host;
        let Keyed { channel, config, .. } = &mut self.state;
        let done = what(channel, config, &mut |sealed| carry(host, sealed));
        if let Err(SdkError::RequestRefused { answer }) = &done
            && let Ok(sealed) = answer.as_slice().try_into()
        {
            channel.halted(sealed)?;
        }
        done
    }

    /// Makes the next sealed request without sending it, for experiments with a dishonest host; the session waits for its answer.
    ///
    /// # Errors
    /// Another request is under way.
    pub fn seal_request(&mut self, request: &Request) -> Result<Sealed, SdkError> {
        Ok(self.state.channel.request(request)?)
    }

    /// Takes the answer to [`Session::seal_request`].
    ///
    /// # Errors
    /// It is not authentic.
    pub fn take_answer(&mut self, answer: &[u8]) -> Result<Answer, SdkError> {
        let sealed = answer.try_into().map_err(|_| SdkError::Length {
            what: "sealed answer",
            found: answer.len(),
            expected: shef_proto::channel::MESSAGE_LEN,
        })?;
        Ok(self.state.channel.answer(sealed)?)
    }

    /// Asks for a sign of life.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn ping(&mut self) -> Result<(), SdkError> {
        self.call(&Request::ping()).map(|_| ())
    }

    /// Reads a register of the accelerator over the sealed channel.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn read_register(&mut self, addr: u32) -> Result<u32, SdkError> {
        Ok(self.call(&Request::read(addr))?.value as u32)
    }

    /// Writes a register of the accelerator over the sealed channel.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn write_register(&mut self, addr: u32, value: u32) -> Result<(), SdkError> {
        self.call(&Request::write(addr, value))?;
        self.state.stale_before = self.state.channel.seq();
        Ok(())
    }

    /// Reads a register over the sealed channel until one of the bits of `mask` is set; returns its value. Between reads the host waits for
    /// a hint of the device.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`] after `limit` reads, and those of the channel.
    pub fn wait_register(&mut self, addr: u32, mask: u32, limit: u32) -> Result<u32, SdkError> {
        let mut last = 0;
        for _ in 0..limit {
            self.host.device().wait_interrupt()?;
            last = self.read_register(addr)?;
            if last & mask != 0 {
                return Ok(last);
            }
        }
        Err(SdkError::NotFinished { addr, last, polls: limit })
    }

    /// Runs a job: writes the registers of `job`, then `start`, waits until one of the bits of `done` is set, flushes, and reads the statement.
    /// A Shield that stopped on the way ends the wait; the statement then says why, and opens nothing.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`] where the accelerator does not come to an end although the Shield runs, and those of the channel.
    pub fn run(&mut self, job: &[(u32, u32)], start: (u32, u32), done: (u32, u32)) -> Result<Statement, SdkError> {
        let ran = self.launch(job, start).and_then(|()| self.finish(done));
        self.or_why_stopped(ran)
    }

    /// What `ran` brought, or where the Shield stopped, the statement that says why: one that does not is an error of the channel.
    pub(crate) fn or_why_stopped(&mut self, ran: Result<Statement, SdkError>) -> Result<Statement, SdkError> {
        match ran {
            Err(SdkError::Channel(ChannelError::Status { status: status::STOPPED | status::FAULT, .. })) => self.statement(),
            ran => ran,
        }
    }

    /// The first half of [`Session::run`]: registers and start.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn launch(&mut self, job: &[(u32, u32)], start: (u32, u32)) -> Result<(), SdkError> {
        for (addr, value) in job {
            self.write_register(*addr, *value)?;
        }
        self.write_register(start.0, start.1)
    }

    /// The second half of [`Session::run`]: wait, flush, statement.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`], and those of the channel: after a fault, a status.
    pub fn finish(&mut self, done: (u32, u32)) -> Result<Statement, SdkError> {
        self.wait_register(done.0, done.1, POLLS)?;
        self.flush()?;
        self.statement()
    }

    /// Has every dirty line sealed and written back, and everything on chip forgotten.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn invalidate(&mut self) -> Result<(), SdkError> {
        self.call(&Request::invalidate())?;
        Ok(())
    }

    /// Has every dirty line sealed and written back.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn flush(&mut self) -> Result<(), SdkError> {
        self.call(&Request::flush())?;
        Ok(())
    }

    /// Reads the statement. Read it after the last flush.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn statement(&mut self) -> Result<Statement, SdkError> {
        self.ask(|channel, config, carry| channel.statement(config, carry))
    }

    /// Reads what engine set `set` has counted since the session began.
    ///
    /// # Errors
    /// Those of the channel: status 1 where there is no such set.
    pub fn statistics(&mut self, set: u8) -> Result<Statistics, SdkError> {
        self.ask(|channel, _, carry| channel.statistics(set, carry))
    }

    /// Reads `len` bytes of results from card memory and opens them under the statement.
    ///
    /// # Errors
    /// [`SdkError::Faulted`] or [`SdkError::Refusals`] where the statement is not good, [`SdkError::StaleStatement`] where it is older than the
    /// last launch, [`SdkError::Withheld`] where the host delivers something else than the Shield sealed, [`SdkError::Seal`] where a chunk was
    /// never written.
    pub fn open(&mut self, buffer: &OutputBuffer, statement: &Statement, len: usize, policy: OpenPolicy) -> Result<Opened, SdkError> {
        self.open_since(buffer, statement, len, policy, self.state.stale_before)
    }

    /// As [`Session::open`], of a launch before the last one: the statement must have been read after request `since`.
    pub(crate) fn open_since(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: usize,
        policy: OpenPolicy,
        since: u64,
    ) -> Result<Opened, SdkError> {
        judge(statement.shield(), policy.refusals)?;
        self.open_judged(buffer, statement, len as u64, (policy, &[]), since, transfer::download)
    }

    /// As [`Session::open`], into memory of the caller's, as many bytes as that has: new memory costs about as much as the cipher. Where it fails, it holds
    /// zeros, or what it held before.
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
        judge(statement.shield(), policy.refusals)?;
        let since = self.state.stale_before;
        self.open_judged(buffer, statement, out.len() as u64, (policy, &[]), since, |host, opener, open, _| {
            transfer::download_into(host, opener, open, out)
        })
    }

    /// As [`Session::open`], of which `to` gets the `len` bytes piece by piece, so that they need not fit the owner's memory. Every piece was opened
    /// before it is written, but not all of them before the first is: what was written is a result only when the writer comes back. Throw
    /// it away where it does not (write to a file of another name, and rename it at the end). `watch` sees the progress and may end the
    /// transfer; the session is as before, and the results can be opened again.
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
        judge(statement.shield(), policy.refusals)?;
        let since = self.state.stale_before;
        self.open_judged(buffer, statement, len, (policy, &[]), since, |host, opener, open, len| {
            transfer::download_to(host, opener, open, to, len, watch)
        })
    }

    /// Opens results of a launch during which a fault froze regions (`on_fault = "region"`), although what
    /// the accelerator got from them are zeros and errors. That is right only where the launch could have reached none of the frozen regions: the caller says so
    /// by naming them in `unreached`, and nothing in the statement can show that it is true. A frozen region that is not named, or that is
    /// the buffer's own, opens nothing; nor does a Shield that has stopped.
    ///
    /// # Errors
    /// [`SdkError::Reached`] for a frozen region that is not named, [`SdkError::NoRegion`] for a name that is none; else those of
    /// [`Session::open`].
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
            ids.push(config.region_by_name(name).ok_or_else(|| SdkError::NoRegion { name: (*name).to_owned() })?.id);
        }
        judge_despite_fault(config, statement, &ids, buffer.0.id, policy.refusals)?;
        self.open_judged(buffer, statement, len as u64, (policy, &ids), self.state.stale_before, transfer::download)
    }

    /// Has `download` bring and open `len` bytes under a statement that was judged.
    fn open_judged<T>(
        &mut self,
        buffer: &OutputBuffer,
        statement: &Statement,
        len: u64,
        (policy, unreached): (OpenPolicy, &[u8]),
        since: u64,
        download: impl FnOnce(&mut Host, &Opener, Open<'_>, u64) -> Result<T, SdkError>,
    ) -> Result<T, SdkError> {
        let found = statement.shield().requests;
        if found <= since {
            return Err(SdkError::StaleStatement { needed: since, found });
        }
        let region = &buffer.0;
        fits(region, len)?;
        let state = &mut self.state;
        let slot = usize::from(region.id);
        // The statement is authentic; that it is of the epoch which the owner has in mind is the owner's to check.
        if statement.region(region.id).map(|page| page.epoch) != Some(state.epochs[slot]) {
            return Err(SdkError::StaleStatement { needed: state.stale_before, found });
        }
        let opener = match &mut state.openers[slot] {
            Some(opener) => opener,
            empty => empty.insert(Opener::new(&state.config, &mut state.keys, region.id)?),
        };
        download(self.host, opener, Open { statement, unreached, policy }, len).map_err(|error| match error {
            SdkError::Seal(source @ (SealError::Tag { .. } | SealError::Length { .. })) => SdkError::Withheld { source },
            error => error,
        })
    }

    /// Number of the last request.
    pub(crate) fn requests(&self) -> u64 {
        self.state.channel.seq()
    }

    /// Ends the session: the Shield flushes, says its last words and forgets all keys. Where the Shield has ended the session by itself,
    /// these are its last words.
    ///
    /// # Errors
    /// Those of the channel; the session is over in any case.
    pub fn close(self) -> Result<Closed, SdkError> {
        self.end(&Request::close())
    }

    /// Ends the session without a flush.
    ///
    /// # Errors
    /// Those of the channel; the session is over in any case.
    pub fn abort(self) -> Result<Closed, SdkError> {
        self.end(&Request::abort())
    }

    fn end(mut self, request: &Request) -> Result<Closed, SdkError> {
        let transcript = self.transcript();
        let mut sealed = [0; shef_proto::channel::MESSAGE_LEN];
        let answer = self.ask(|channel, _, carry| {
            channel.call(request, &mut |message| {
                sealed = carry(message)?;
                Ok(sealed)
            })
        });
        let channel = &self.state.channel;
        if let Some((last, sealed)) = channel.last() {
            return Ok(Closed { last: *last, transcript, sealed: *sealed, by_itself: true, verified: self.state.verified });
        }
        let impossible = |what| SdkError::Channel(ChannelError::Impossible { seq: channel.seq(), what });
        let last = ShieldStatement::from_payload(&answer?.payload).ok_or_else(|| impossible("last message"))?;
        if last.state != State::Closed {
            return Err(impossible("the session is not closed"));
        }
        Ok(Closed { last, transcript, sealed, by_itself: false, verified: self.state.verified })
    }
}

/// Whether so many bytes fit a region from its start on.
fn fits(region: &Region, len: u64) -> Result<(), SdkError> {
    if len > region.size {
        return Err(SdkError::TooLong { name: region.name.clone(), offset: 0, len, size: region.size });
    }
    Ok(())
}

fn carry(host: &mut Host, sealed: &Sealed) -> Result<Sealed, SdkError> {
    let answer = host.exchange(sealed)?;
    let found = answer.len();
    answer.try_into().map_err(|_| SdkError::Length { what: "sealed answer", found, expected: sealed.len() })
}

/// Says whether results may be opened under what the Shield says of itself.
///
/// # Errors
/// [`SdkError::Faulted`], [`SdkError::Refusals`].
pub fn judge(shield: &ShieldStatement, allow_refusals: bool) -> Result<(), SdkError> {
    if shield.stopped || shield.faults != 0 {
        return Err(faulted(shield));
    }
    refused(shield, allow_refusals)
}

/// As [`judge`], where regions that a fault froze do not count if they are `unreached`. The statement's Shield must run all the same, and
/// the result's own region must not be frozen.
fn judge_despite_fault(config: &Config, statement: &Statement, unreached: &[u8], result: u8, refusals: bool) -> Result<(), SdkError> {
    let shield = statement.shield();
    let mut frozen = statement.frozen().peekable();
    if shield.stopped || (shield.faults != 0 && frozen.peek().is_none()) {
        return Err(faulted(shield));
    }
    if let Some(id) = frozen.find(|id| *id == result || !unreached.contains(id)) {
        return Err(SdkError::Reached { name: config.region(id).map_or_else(String::new, |r| r.name.clone()) });
    }
    refused(shield, refusals)
}

fn faulted(shield: &ShieldStatement) -> SdkError {
    SdkError::Faulted {
        kind: shield.fault_kind,
        region: shield.fault_region,
        chunk: shield.fault_chunk,
        version: shield.fault_version,
        count: shield.faults,
    }
}

fn refused(shield: &ShieldStatement, allow_refusals: bool) -> Result<(), SdkError> {
    if shield.refusals != 0 && !allow_refusals {
        return Err(SdkError::Refusals {
            count: shield.refusals,
            kind: refusal_text(shield.refusal_kind),
            region: shield.refusal_region,
            addr: shield.refusal_addr,
        });
    }
    Ok(())
}

fn refusal_text(kind: shef_proto::channel::RefusalKind) -> &'static str {
    use shef_proto::channel::RefusalKind as R;
    match kind {
        R::None => "none",
        R::Range => "access outside or across regions",
        R::Burst => "illegal burst",
        R::ReadOnly => "write to an input region",
        R::SecondWrite => "second write to a chunk of an output region",
        R::EpochZero => "access at epoch 0",
        R::Exhausted => "exhausted counter",
        R::NotKeyed => "access without keys",
        R::NotWritten => "read of a chunk that was not written",
        _ => "refusal of a kind that this program does not know",
    }
}

impl Host {
    /// Brings evidence of the Shield that answers `challenge`.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn shield_evidence(&mut self, challenge: &Challenge) -> Result<Vec<u8>, SdkError> {
        let nonce = self.carry(Leg::Nonce, challenge.nonce().to_vec())?;
        let answer =
            self.kernel(shef_proto::mailbox::Request::ShieldEvidence { nonce, audience: challenge.audience().to_owned() }.encode())?;
        let evidence = shef_proto::mailbox::evidence_answer(&answer)?;
        self.carry(Leg::ShieldEvidence, evidence)
    }

    /// Brings evidence of the kernel that answers `challenge`.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn kernel_evidence(&mut self, challenge: &Challenge) -> Result<Vec<u8>, SdkError> {
        let nonce = self.carry(Leg::Nonce, challenge.nonce().to_vec())?;
        let answer =
            self.kernel(shef_proto::mailbox::Request::KernelEvidence { nonce, audience: challenge.audience().to_owned() }.encode())?;
        let evidence = shef_proto::mailbox::evidence_answer(&answer)?;
        self.carry(Leg::KernelEvidence, evidence)
    }

    /// Has the kernel load an image under a released key.
    ///
    /// # Errors
    /// Those of the kernel and of the host, and a container that is none.
    pub fn load_image(&mut self, container: Vec<u8>, key_box: Vec<u8>) -> Result<LoadedImage, SdkError> {
        use shef_proto::mailbox::{Answer, MailboxError, load_requests};
        let key_box = self.carry(Leg::Release, key_box)?;
        let container = self.carry(Leg::Image, container)?;
        let container = shef_proto::image::Container::parse(&container)?;
        for request in load_requests(&container, &key_box) {
            let answer = self.kernel(request.encode())?;
            match Answer::decode(&answer)?.into_result()? {
                Answer::Done => {}
                Answer::Loaded { image_digest, config_digest } => return Ok(LoadedImage { image_digest, config_digest }),
                _ => return Err(MailboxError::Answer.into()),
            }
        }
        Err(MailboxError::Answer.into())
    }

    /// Asks the kernel for a new seed for the Shield, so that another session can begin.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn new_session(&mut self) -> Result<(), SdkError> {
        self.done(shef_proto::mailbox::Request::NewSession)
    }

    /// Has the kernel wipe the Shield and forget image and session.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn reset_kernel(&mut self) -> Result<(), SdkError> {
        self.done(shef_proto::mailbox::Request::Reset)
    }

    fn done(&mut self, request: shef_proto::mailbox::Request) -> Result<(), SdkError> {
        use shef_proto::mailbox::{Answer, MailboxError};
        let answer = self.kernel(request.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Done => Ok(()),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// Brings the close record of the session that is over.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn close_record(&mut self) -> Result<Vec<u8>, SdkError> {
        use shef_proto::mailbox::{Answer, MailboxError, Request};
        let answer = self.kernel(Request::CloseRecord.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::CloseRecord(record) => self.carry(Leg::CloseRecord, record),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// What the kernel says about itself. A hint.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn kernel_status(&mut self) -> Result<shef_proto::mailbox::Status, SdkError> {
        use shef_proto::mailbox::{Answer, MailboxError, Request};
        let answer = self.kernel(Request::Status.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Status(status) => Ok(status),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// Brings the device's certificates, leaf first.
    ///
    /// # Errors
    /// Those of the kernel and of the host.
    pub fn certificates(&mut self) -> Result<Vec<Vec<u8>>, SdkError> {
        use shef_proto::mailbox::{Answer, MailboxError, Request};
        let answer = self.kernel(Request::Certificates.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Certificates(list) => list.into_iter().map(|der| self.carry(Leg::Certificates, der)).collect(),
            _ => Err(MailboxError::Answer.into()),
        }
    }
}

/// What the kernel says that it loaded. A hint for the host: the parties believe evidence.
#[derive(Debug, Clone, Copy)]
pub struct LoadedImage {
    /// Image digest.
    pub image_digest: [u8; 32],
    /// Digest of the configuration that the Shield shows.
    pub config_digest: [u8; 32],
}
