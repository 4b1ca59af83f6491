//! Sessions with a Shield, from the data owner's side: [`Connected`] -> [`Attested`] -> [`Keyed`].
//!
//! The types enforce that no key goes to an unappraised Shield, no data to a Shield that has not
//! confirmed its keys, and that results open only under a statement read after the last launch.

use std::time::Instant;

use shef_proto::channel::{
    ChannelError, MESSAGE_LEN, Op, OwnerChannel, Sealed, ShieldAnswer, ShieldRequest,
    ShieldStatement, State, Statement, Statistics, status,
};
use shef_proto::config::Config;
use shef_proto::crypto::scrub::{DERIVATION, Scrub, scrubbed};
use shef_proto::entropy::Entropy;
use shef_proto::fork::Forked;
use shef_proto::load::{FirstEpoch, SessionKeys};
use shef_seal::{Opener, Spent};
use shef_verify::VerifiedShieldEvidence;
use zeroize::Zeroizing;

use super::wait::{Patience, Stalls, Until};
use crate::SdkError;
use crate::entropy::fit_for;
use crate::host::{Host, LoadHint};
#[cfg(feature = "service")]
use crate::verifier::service::{DataKey, Service};
use crate::verifier::{Appraised, Challenge, Expect, Verifier};

/// Maximum number of times that a Load Key is sent while no confirmation arrives.
const LOAD_TRIES: u32 = 4;

/// Carries a sealed request to the Shield and returns the content of the answer buffer.
type Carry<'c> = dyn FnMut(&Sealed) -> Result<Sealed, SdkError> + 'c;

/// A session: the path to one Shield, over an untrusted host.
pub struct Session<'h, S> {
    pub(crate) host: &'h mut Host,
    pub(crate) state: S,
}

/// There is a device, and it is not appraised yet.
///
/// It gets no key:
///
/// ```compile_fail,E0599
/// use shef::{Connected, Session, SystemEntropy};
/// fn key(session: Session<'_, Connected>, entropy: &mut SystemEntropy) {
///     session.key("tenant", &[], entropy);
/// }
/// ```
pub struct Connected;

/// The Shield is appraised: its key is fresh, and the verifier's policy is satisfied.
///
/// It gets no data yet:
///
/// ```compile_fail,E0599
/// use shef::{Attested, InputBuffer, Session};
/// fn upload(mut session: Session<'_, Attested>, input: &InputBuffer) {
///     session.upload(input, b"too early");
/// }
/// ```
///
/// It takes exactly one Load Key:
///
/// ```compile_fail,E0382
/// use shef::{Attested, Session, SystemEntropy};
/// fn twice(session: Session<'_, Attested>, entropy: &mut SystemEntropy) {
///     let first = session.key("tenant", &[], entropy);
///     let second = session.key("tenant", &[], entropy);
/// }
/// ```
pub struct Attested {
    evidence: Vec<u8>,
    challenge: Challenge,
    verified: VerifiedShieldEvidence,
    appraised: Appraised,
    config: Config,
    /// Master key that a verifier service released; if `None`, this program draws one. It stays in
    /// one place: a move moves only the pointer.
    master: Option<Zeroizing<Vec<u8>>>,
}

/// The Shield has confirmed the session's keys.
///
/// A closed session cannot be used:
///
/// ```compile_fail,E0382
/// use shef::{Keyed, Session};
/// fn after(mut session: Session<'_, Keyed>) {
///     let closed = session.close();
///     session.ping();
/// }
/// ```
pub struct Keyed {
    pub(crate) config: Config,
    pub(crate) keys: SessionKeys,
    pub(crate) channel: OwnerChannel,
    verified: VerifiedShieldEvidence,
    /// Current epoch of each region, by its number.
    pub(crate) epochs: Vec<u64>,
    pub(crate) sealers: Vec<Option<Spent>>,
    pub(crate) openers: Vec<Option<Opener>>,
    /// Statements read before the request with this number are stale.
    pub(crate) stale_before: u64,
    /// Number of refusals that the owner has reviewed and allowed: results open without another
    /// question until there are more.
    pub(crate) allowed_refusals: u32,
    pub(crate) patience: Patience,
    load_key: Vec<u8>,
    /// Dropped last.
    _scrub: Scrub<DERIVATION>,
}

impl Keyed {
    /// Refuses a forked copy of the process that made the session. It has the same keys and
    /// counters and would seal other data under them.
    pub(crate) fn check_process(&self) -> Result<(), SdkError> {
        self.keys
            .fork_guard()
            .check()
            .map_err(|Forked { made, found }| SdkError::Forked { made, found })
    }
}

/// The Shield's last words when the session closed.
#[derive(Debug, Clone)]
pub struct Closed {
    /// Its last statement, over the sealed channel.
    pub last: ShieldStatement,
    /// Transcript hash of the session.
    pub transcript: [u8; 32],
    /// The sealed bytes of the last message, which the close record must contain.
    pub sealed: Sealed,
    /// The Shield ended the session on its own after a fault (`on_fault = "halt"`), without a
    /// request.
    pub by_itself: bool,
    /// A fault stopped the flush at the end of the session: the last statement describes it.
    pub flush_failed: bool,
    verified: VerifiedShieldEvidence,
}

impl Closed {
    /// Checks that a close record belongs to this session: countersigned by the device whose
    /// evidence was appraised, over this transcript and these last words.
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
    /// Connects to the Shield behind `host`.
    ///
    /// # Errors
    /// If there is no Shield.
    pub fn connect(host: &'h mut Host) -> Result<Self, SdkError> {
        host.probe()?;
        Ok(Self { host, state: Connected })
    }

    /// Requests evidence of the Shield and appraises it: it must meet the owner's expectations.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check, as [`Expect::check`], [`SdkError::Seeded`], and
    /// transport errors.
    pub fn attest(
        self,
        verifier: &Verifier,
        expect: &Expect,
        now: i64,
        entropy: &mut dyn Entropy,
    ) -> Result<Session<'h, Attested>, SdkError> {
        let challenge = Challenge::draw(verifier.audience(), entropy);
        let evidence = self.host.shield_evidence(&challenge)?;
        let (verified, appraisal) = verifier.appraise_shield(&evidence, &challenge, expect, now)?;
        fit_for(entropy, verified.claims().root_of_trust)?;
        let (appraised, config) = (Appraised::Here(appraisal), expect.config().clone());
        Ok(Session {
            host: self.host,
            state: Attested { evidence, challenge, verified, appraised, config, master: None },
        })
    }

    /// Requests evidence of the Shield; a verifier service appraises it and releases the data key
    /// `key` for it, in its newest version or the given one. The data key becomes the master key of
    /// the Load Key. The evidence must meet the owner's expectations, whatever the service answers.
    ///
    /// # Errors
    /// [`SdkError::Denied`] with the first check that failed, [`SdkError::Rejected`] if the
    /// evidence fails the owner's own floor, as [`Expect::check`], [`SdkError::OtherRelease`],
    /// [`SdkError::MasterKey`], [`SdkError::Seeded`], and transport errors.
    #[cfg(feature = "service")]
    pub fn attest_by(
        self,
        service: &Service,
        (key, version): (&str, Option<u64>),
        expect: &Expect,
        now: i64,
        entropy: &mut dyn Entropy,
    ) -> Result<Session<'h, Attested>, SdkError> {
        let pinned = service.clone().with_receipt_keys(expect.pinned());
        let DataKey { secret, evidence, challenge, verified, receipt, released } =
            pinned.release_data_key(self.host, key, version, entropy)?;
        let shef_verify::Verified::Shield(verified) = verified else {
            return Err(SdkError::ServiceAnswer { what: "a receipt of another layer".to_owned() });
        };
        expect.check(&verified)?;
        expect.hold_service(&verified, &challenge, now)?;
        if secret.len() != shef_proto::load::MASTER_LEN {
            return Err(SdkError::MasterKey { found: secret.len() });
        }
        let (appraised, config, master) = (
            Appraised::ByService { receipt, head: released.head },
            expect.config().clone(),
            Some(secret),
        );
        Ok(Session {
            host: self.host,
            state: Attested { evidence, challenge, verified, appraised, config, master },
        })
    }
}

impl<'h> Session<'h, Attested> {
    /// Who appraised the evidence, and the result.
    pub fn appraised(&self) -> &Appraised {
        &self.state.appraised
    }

    /// The evidence as received.
    pub fn evidence(&self) -> &[u8] {
        &self.state.evidence
    }

    /// The challenge that the evidence answers.
    pub fn challenge(&self) -> &Challenge {
        &self.state.challenge
    }

    /// The verified claims of the evidence.
    pub fn verified(&self) -> &VerifiedShieldEvidence {
        &self.state.verified
    }

    /// Makes a Load Key for the appraised Shield only, sends it, and checks the Shield's
    /// confirmation.
    ///
    /// # Errors
    /// [`SdkError::Seeded`], [`SdkError::LoadRefused`],
    /// [`shef_proto::load::LoadError::Confirmation`], and transport errors.
    pub fn key(
        self,
        tenant: &str,
        epochs: &[FirstEpoch],
        entropy: &mut dyn Entropy,
    ) -> Result<Session<'h, Keyed>, SdkError> {
        // Scrubs the stack whether a session results or not.
        scrubbed::<DERIVATION, _>(|| self.confirmed(tenant, epochs, entropy))
    }

    /// [`Session::key`], in a separate stack frame.
    fn confirmed(
        self,
        tenant: &str,
        epochs: &[FirstEpoch],
        entropy: &mut dyn Entropy,
    ) -> Result<Session<'h, Keyed>, SdkError> {
        let Attested { verified, config, master, .. } = self.state;
        fit_for(entropy, verified.claims().root_of_trust)?;
        let (message, keys) = match master {
            None => verified.seal_load_key(&config, tenant, epochs, entropy)?,
            Some(master) => {
                let master = master
                    .as_slice()
                    .try_into()
                    .map_err(|_| SdkError::MasterKey { found: master.len() })?;
                verified.seal_load_key_of(master, &config, tenant, epochs, entropy)?
            }
        };
        // The confirmation decides, and stays readable: if it was lost, sending the same message
        // again returns it. Plain status only explains a missing confirmation.
        let mut try_it = || match self.host.load_key(&message) {
            Ok((hint, confirmation)) => match (keys.check_confirmation(&confirmation), hint) {
                (Ok(()), _) => Ok(()),
                (Err(_), LoadHint::Refused) => Err(SdkError::LoadRefused),
                (Err(error), LoadHint::Keyed) => Err(error.into()),
            },
            Err(error) => Err(error),
        };
        let mut confirmed = try_it();
        for _ in 1..LOAD_TRIES {
            match confirmed {
                Ok(()) | Err(SdkError::Device(_) | SdkError::ShieldBusy { .. }) => break,
                Err(_) => confirmed = try_it(),
            }
        }
        confirmed?;
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
                allowed_refusals: 0,
                patience: Patience::default(),
                load_key: message,
                _scrub: Scrub::<DERIVATION>,
            },
        })
    }
}

/// A channel error; use by a forked process maps to this library's own error.
fn of_channel(error: ChannelError) -> SdkError {
    match error {
        ChannelError::Forked { made, found } => SdkError::Forked { made, found },
        error => error.into(),
    }
}

impl<'h> Session<'h, Keyed> {
    /// The host, which carries every message.
    pub fn host(&mut self) -> &mut Host {
        self.host
    }

    /// Transcript hash of the session.
    pub fn transcript(&self) -> [u8; 32] {
        self.state.keys.transcript().0
    }

    /// The Load Key as sent.
    pub fn load_key(&self) -> &[u8] {
        &self.state.load_key
    }

    /// The configuration of the Shield.
    pub fn config(&self) -> &Config {
        &self.state.config
    }

    /// How long the session waits for its accelerator, and how the wait may end early.
    pub fn patience(&mut self) -> &mut Patience {
        &mut self.state.patience
    }

    pub(crate) fn call(&mut self, request: &ShieldRequest) -> Result<ShieldAnswer, SdkError> {
        self.sends(request, self.state.channel.seq() + 1);
        let answer = self.ask(|channel, _, carry| channel.call(request, carry))?;
        self.took(request);
        Ok(answer)
    }

    /// Whatever the outcome of this request, statements before it do not cover its effects.
    fn sends(&mut self, request: &ShieldRequest, seq: u64) {
        let changes = [Op::Write, Op::Flush, Op::Invalidate, Op::Epoch];
        if changes.iter().any(|op| *op as u8 == request.op) {
            self.state.stale_before = seq;
        }
    }

    /// Records the changes of a completed request.
    fn took(&mut self, request: &ShieldRequest) {
        if request.op == Op::Epoch as u8
            && let Some(epoch) = self.state.epochs.get_mut(usize::from(request.region))
        {
            *epoch = request.value;
        }
    }

    /// Fetches the answer to a request that is still unanswered, after [`SdkError::Unanswered`]:
    /// sends the same bytes again, and the Shield runs them unless it has already. Every other
    /// request does this first.
    ///
    /// # Errors
    /// [`SdkError::Unanswered`] again, and an error if the Shield has ended the session.
    pub fn settle(&mut self) -> Result<Option<ShieldAnswer>, SdkError> {
        self.state.check_process()?;
        let Some(request) = self.state.channel.pending_request().copied() else { return Ok(None) };
        let answer = self.carried(|channel, _, carry| channel.settle(carry))?;
        if answer.status == status::DONE {
            self.took(&request);
        }
        Ok(Some(answer))
    }

    /// Runs an exchange over the channel, after settling a request that is still unanswered.
    fn ask<T>(
        &mut self,
        what: impl FnOnce(&mut OwnerChannel, &Config, &mut Carry<'_>) -> Result<T, SdkError>,
    ) -> Result<T, SdkError> {
        self.settle()?;
        self.carried(what)
    }

    /// The Shield's answer decides, not plain status. The channel retries lost messages, but not
    /// device errors.
    fn carried<T>(
        &mut self,
        what: impl FnOnce(&mut OwnerChannel, &Config, &mut Carry<'_>) -> Result<T, SdkError>,
    ) -> Result<T, SdkError> {
        let host = &mut *self.host;
        let Keyed { channel, config, .. } = &mut self.state;
        let (mut over, mut refused) = (None, false);
        let done = what(channel, config, &mut |sealed| {
            // Stands for the device error in `over`.
            let lost = SdkError::RequestRefused;
            if over.is_some() {
                return Err(lost);
            }
            match host.exchange(sealed) {
                Ok((answer, hint)) => {
                    refused = hint;
                    let found = answer.len();
                    answer.try_into().map_err(|_| SdkError::Length {
                        what: "sealed answer",
                        found,
                        expected: MESSAGE_LEN,
                    })
                }
                Err(error) => {
                    over = Some(error);
                    Err(lost)
                }
            }
        });
        match done {
            Err(source) if channel.pending().is_some() => {
                let source = match source {
                    SdkError::Channel(ChannelError::NotAuthentic { .. }) if refused => {
                        SdkError::RequestRefused
                    }
                    source => over.unwrap_or(source),
                };
                Err(SdkError::Unanswered { seq: channel.seq(), source: Box::new(source) })
            }
            done => done,
        }
    }

    /// Makes the next sealed request without sending it, for experiments with a dishonest host; the
    /// session waits for its answer.
    ///
    /// # Errors
    /// Another request is in flight.
    pub fn seal_request(&mut self, request: &ShieldRequest) -> Result<Sealed, SdkError> {
        let sealed = self.state.channel.request(request).map_err(of_channel)?;
        self.sends(request, self.state.channel.seq());
        Ok(sealed)
    }

    /// Accepts the answer to [`Session::seal_request`].
    ///
    /// # Errors
    /// The answer is not authentic.
    pub fn take_answer(&mut self, answer: &[u8]) -> Result<ShieldAnswer, SdkError> {
        let sealed = answer.try_into().map_err(|_| SdkError::Length {
            what: "sealed answer",
            found: answer.len(),
            expected: MESSAGE_LEN,
        })?;
        let request = self.state.channel.pending_request().copied();
        let answer = self.state.channel.answer(sealed).map_err(of_channel)?;
        if let Some(request) = request.filter(|_| answer.status == status::DONE) {
            self.took(&request);
        }
        Ok(answer)
    }

    /// Checks that the Shield answers.
    ///
    /// # Errors
    /// Channel errors.
    pub fn ping(&mut self) -> Result<(), SdkError> {
        self.call(&ShieldRequest::ping()).map(drop)
    }

    /// Reads a register of the accelerator over the sealed channel.
    ///
    /// # Errors
    /// Channel errors.
    pub fn read_register(&mut self, addr: u32) -> Result<u32, SdkError> {
        Ok(self.call(&ShieldRequest::read(addr))?.value as u32)
    }

    /// Writes a register of the accelerator over the sealed channel.
    ///
    /// # Errors
    /// Channel errors.
    pub fn write_register(&mut self, addr: u32, value: u32) -> Result<(), SdkError> {
        self.call(&ShieldRequest::write(addr, value)).map(drop)
    }

    /// Polls a register over the sealed channel until it has the state `until`; returns its value.
    /// Between reads the host waits for a hint from the device. [`Session::patience`] limits the
    /// time, and may end the wait after a read.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`], [`SdkError::Stalled`], [`SdkError::WaitEnded`], and channel errors.
    pub fn wait_register(&mut self, addr: u32, until: impl Into<Until>) -> Result<u32, SdkError> {
        let (since, until) = (Instant::now(), until.into());
        let mut stalls = self.state.patience.stall_cycles.map(Stalls::new);
        loop {
            self.host.device().wait_interrupt()?;
            let last = self.read_register(addr)?;
            if until.is_met(last) {
                return Ok(last);
            }
            self.state.patience.goes_on(since, addr, last)?;
            if let Some(stalls) = &mut stalls {
                stalls.goes_on(self.host.device(), addr, last)?;
            }
        }
    }

    /// Runs a job: writes the registers of `job`, then `start`, waits until the register `done` has
    /// its state, flushes, and reads the statement. If the Shield stops during the job, the wait
    /// ends; the statement then gives the reason, and opens no results.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`] if the accelerator does not finish although the Shield runs,
    /// [`SdkError::Stalled`], [`SdkError::WaitEnded`], and channel errors. After one of the first three
    /// the accelerator is still running: [`Session::finish`] waits for it again.
    pub fn run(
        &mut self,
        job: &[(u32, u32)],
        start: (u32, u32),
        done: (u32, impl Into<Until>),
    ) -> Result<Statement, SdkError> {
        let ran = self.launch(job, start).and_then(|()| self.finish(done));
        self.or_why_stopped(ran)
    }

    /// Returns the result of `ran`, or if the Shield stopped, the statement that gives the reason;
    /// if there is no statement, the channel error.
    pub(crate) fn or_why_stopped(
        &mut self,
        ran: Result<Statement, SdkError>,
    ) -> Result<Statement, SdkError> {
        match ran {
            Err(SdkError::Channel(ChannelError::Status {
                status: status::STOPPED | status::FAULT,
                ..
            })) => self.statement(),
            ran => ran,
        }
    }

    /// The first half of [`Session::run`]: register writes and start.
    ///
    /// # Errors
    /// Channel errors.
    pub fn launch(&mut self, job: &[(u32, u32)], start: (u32, u32)) -> Result<(), SdkError> {
        for (addr, value) in job {
            self.write_register(*addr, *value)?;
        }
        self.write_register(start.0, start.1)
    }

    /// The second half of [`Session::run`]: wait, flush, statement.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`], [`SdkError::Stalled`], [`SdkError::WaitEnded`], and channel errors:
    /// after a fault, a status.
    pub fn finish(&mut self, done: (u32, impl Into<Until>)) -> Result<Statement, SdkError> {
        self.wait_register(done.0, done.1)?;
        self.flush()?;
        self.statement()
    }

    /// Makes the Shield seal and write back every dirty line, and drop all on-chip state.
    ///
    /// # Errors
    /// Channel errors.
    pub fn invalidate(&mut self) -> Result<(), SdkError> {
        self.call(&ShieldRequest::invalidate()).map(drop)
    }

    /// Makes the Shield seal and write back every dirty line.
    ///
    /// # Errors
    /// Channel errors.
    pub fn flush(&mut self) -> Result<(), SdkError> {
        self.call(&ShieldRequest::flush()).map(drop)
    }

    /// Reads the statement. Read it after the last flush.
    ///
    /// # Errors
    /// Channel errors.
    pub fn statement(&mut self) -> Result<Statement, SdkError> {
        self.ask(|channel, config, carry| channel.statement(config, carry))
    }

    /// Reads the statistics of engine set `set` since the session began.
    ///
    /// # Errors
    /// Channel errors: status 1 if there is no such set.
    pub fn statistics(&mut self, set: u8) -> Result<Statistics, SdkError> {
        self.ask(|channel, _, carry| channel.statistics(set, carry))
    }

    /// Number of the last request.
    pub(crate) fn requests(&self) -> u64 {
        self.state.channel.seq()
    }

    /// Ends the session: the Shield flushes, sends its last words and zeroises all keys. If the
    /// Shield has already ended the session, returns its last words.
    ///
    /// # Errors
    /// [`SdkError::Unanswered`] if the last words do not arrive; the session is over in any case.
    pub fn close(self) -> Result<Closed, SdkError> {
        self.end(&ShieldRequest::close())
    }

    /// Ends the session without a flush.
    ///
    /// # Errors
    /// As [`Session::close`].
    pub fn abort(self) -> Result<Closed, SdkError> {
        self.end(&ShieldRequest::abort())
    }

    fn end(mut self, request: &ShieldRequest) -> Result<Closed, SdkError> {
        let mut sealed = [0; MESSAGE_LEN];
        // These are the last words with any status: a fault may have stopped the flush.
        let answer = self.ask(|channel, _, carry| {
            channel.request(request)?;
            channel.settle(&mut |message| {
                sealed = carry(message)?;
                Ok(sealed)
            })
        });
        let Keyed { channel, verified, .. } = self.state;
        let transcript = self.state.keys.transcript().0;
        if let Some((last, sealed)) = channel.last() {
            return Ok(Closed {
                last: *last,
                transcript,
                sealed: *sealed,
                by_itself: true,
                flush_failed: false,
                verified,
            });
        }
        let answer = answer?;
        let impossible =
            |what| SdkError::Channel(ChannelError::Impossible { seq: channel.seq(), what });
        let last = ShieldStatement::from_payload(&answer.payload)
            .ok_or_else(|| impossible("last message"))?;
        if last.state != State::Closed {
            return Err(impossible("the session is not closed"));
        }
        Ok(Closed {
            last,
            transcript,
            sealed,
            by_itself: false,
            flush_failed: answer.status == status::FAULT,
            verified,
        })
    }
}
