//! The owner's end of the channel.

use alloc::vec::Vec;

use super::cipher::Direction;
use super::{
    ChannelError, HALT, MAP_BITS, Op, RegionStatement, Sealed, ShieldAnswer, ShieldRequest,
    ShieldStatement, State, Statement, Statistics, WrittenMap, status,
};
use crate::config::{Config, Mode, Region};
use crate::fork::{ForkGuard, Forked};
use crate::load::{SessionKeys, Transcript};

/// Maximum number of times that a request is sent without an authentic answer.
pub const TRIES: u32 = 4;

/// The owner's end. At most one request is in flight; resending the same bytes recovers a lost
/// answer. A fork of the process that made the keys has the same keys and numbers, so the channel
/// makes no request and accepts no answer there.
pub struct OwnerChannel {
    tx: Direction,
    rx: Direction,
    transcript: Transcript,
    seq: u64,
    pending: Option<(ShieldRequest, Sealed)>,
    closed: bool,
    last: Option<(ShieldStatement, Sealed)>,
    /// A request was answered with these statuses: every later statement must show the cause.
    stopped: bool,
    faulted: bool,
    /// The process that made the keys.
    fork_guard: ForkGuard,
}

impl OwnerChannel {
    /// The channel of a session. Make one for each `keys`: two would use the same number and IV for
    /// different messages. The owner's library keeps the keys private for this reason; benches that
    /// play a hostile owner make more.
    pub fn new(keys: &SessionKeys) -> Self {
        Self {
            tx: Direction::new(keys.to_shield()),
            rx: Direction::new(keys.to_owner()),
            transcript: keys.transcript(),
            seq: 0,
            pending: None,
            closed: false,
            last: None,
            stopped: false,
            faulted: false,
            fork_guard: keys.fork_guard(),
        }
    }

    fn check_process(&self) -> Result<(), ChannelError> {
        self.fork_guard
            .check()
            .map_err(|Forked { made, found }| ChannelError::Forked { made, found })
    }

    /// Number of the last request.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Seals the next request.
    ///
    /// # Errors
    /// Another request is in flight, the channel is closed, or this is a fork of the process that
    /// made its keys.
    pub fn request(&mut self, request: &ShieldRequest) -> Result<Sealed, ChannelError> {
        self.check_process()?;
        if self.pending.is_some() {
            return Err(ChannelError::Busy { seq: self.seq });
        }
        if let Some((last, _)) = self.last {
            return Err(ChannelError::Halted { last, ran: false });
        }
        if self.closed || self.seq == u64::MAX {
            return Err(ChannelError::Closed);
        }
        self.seq += 1;
        let sealed = self.tx.seal(self.seq, &request.to_bytes());
        self.pending = Some((*request, sealed));
        Ok(sealed)
    }

    /// The request in flight, for resending.
    pub fn pending(&self) -> Option<&Sealed> {
        self.pending.as_ref().map(|(_, sealed)| sealed)
    }

    /// The request in flight, in plaintext.
    pub fn pending_request(&self) -> Option<&ShieldRequest> {
        self.pending.as_ref().map(|(request, _)| request)
    }

    /// Opens the answer to the request in flight. The result is authentic, whatever its status is.
    ///
    /// # Errors
    /// The answer is not authentic, and the request stays in flight; or it is the last message of a
    /// Shield that ended the session; or it is a statement ([`ChannelError::Impossible`]) that is
    /// cleaner than an earlier answer: after a request met a fault or was refused by a stopped
    /// Shield, a statement that does not show it opens nothing.
    pub fn answer(&mut self, sealed: &Sealed) -> Result<ShieldAnswer, ChannelError> {
        self.check_process()?;
        if self.pending.is_none() {
            return Err(ChannelError::Idle);
        }
        self.halted(sealed)?;
        let Some((request, _)) = &self.pending else { return Err(ChannelError::Idle) };
        let refused = ChannelError::NotAuthentic { seq: self.seq };
        let (seq, plaintext) = self.rx.open(sealed).ok_or(refused)?;
        if seq != self.seq {
            return Err(refused);
        }
        let answer = ShieldAnswer::from_bytes(&plaintext);
        if (answer.op, answer.region, answer.addr) != (request.op, request.region, request.addr) {
            return Err(refused);
        }
        let last = request.op == Op::Close as u8 || request.op == Op::Abort as u8;
        let statement =
            request.op == Op::Statement as u8 && request.addr == 0 && answer.status == status::DONE;
        self.closed |= last;
        self.pending = None;
        self.stopped |= answer.status == status::STOPPED;
        self.faulted |= answer.status == status::FAULT;
        if (last || statement)
            && let Some(page) = ShieldStatement::from_payload(&answer.payload)
        {
            if (self.stopped && !page.stopped)
                || (self.faulted && !page.stopped && page.faults == 0)
            {
                return Err(ChannelError::Impossible {
                    seq,
                    what: "the statement is cleaner than the answers before it",
                });
            }
            // No later statement can withdraw it.
            self.stopped |= page.stopped;
            self.faulted |= page.faults != 0;
        }
        Ok(answer)
    }

    /// Checks whether a message is the one by which the Shield ended the session. Its number
    /// follows the last request that the Shield ran: it is that of the request in flight or the
    /// next one. Ignores all other messages.
    ///
    /// # Errors
    /// [`ChannelError::Halted`] with the last statement, [`ChannelError::Impossible`] if that is
    /// invalid.
    pub fn halted(&mut self, sealed: &Sealed) -> Result<(), ChannelError> {
        self.check_process()?;
        let Some((seq, plaintext)) = self.rx.open(sealed) else { return Ok(()) };
        let answer = ShieldAnswer::from_bytes(&plaintext);
        let ran = seq.checked_sub(1) == Some(self.seq);
        let due = ran || (seq == self.seq && self.pending.is_some());
        if answer.op != HALT || answer.status != status::DONE || !due {
            return Ok(());
        }
        let last = ShieldStatement::from_payload(&answer.payload)
            .filter(|last| last.state == State::Closed && last.stopped && last.requests == seq)
            .ok_or(ChannelError::Impossible { seq, what: "last message" })?;
        self.closed = true;
        self.pending = None;
        self.last = Some((last, *sealed));
        Err(ChannelError::Halted { last, ran })
    }

    /// The message by which the Shield ended the session on its own, if received.
    pub fn last(&self) -> Option<(&ShieldStatement, &Sealed)> {
        self.last.as_ref().map(|(last, sealed)| (last, sealed))
    }

    /// Reads the statistics of an engine set.
    ///
    /// # Errors
    /// As [`OwnerChannel::call`].
    pub fn statistics<E: From<ChannelError>>(
        &mut self,
        set: u8,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<Statistics, E> {
        let first = self.call(&ShieldRequest::stats(set, 0), carry)?;
        let second = self.call(&ShieldRequest::stats(set, 1), carry)?;
        Ok(Statistics::from_payloads([&first.payload, &second.payload]))
    }

    /// Sends the request in flight with `carry`, which delivers it to the Shield and returns the
    /// answer, and opens the answer. Without an authentic answer it resends the same bytes,
    /// [`TRIES`] sends in total: the Shield runs them once and then repeats the stored answer.
    ///
    /// # Errors
    /// The last error of `carry`, or an answer that is not authentic: the request stays in flight,
    /// whether it ran is unknown, and the caller may retry. Also the other errors of
    /// [`OwnerChannel::answer`], after which it is no longer in flight.
    pub fn settle<E: From<ChannelError>>(
        &mut self,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<ShieldAnswer, E> {
        let sealed = *self.pending().ok_or(ChannelError::Idle)?;
        for _ in 1..TRIES {
            let answered = carry(&sealed).and_then(|answer| Ok(self.answer(&answer)?));
            if answered.is_ok() || self.pending.is_none() {
                return answered;
            }
        }
        Ok(self.answer(&carry(&sealed)?)?)
    }

    /// Request and answer in one step: see [`OwnerChannel::settle`].
    ///
    /// # Errors
    /// As [`OwnerChannel::settle`], or (with `E: From<ChannelError>`) a status other than done.
    pub fn call<E: From<ChannelError>>(
        &mut self,
        request: &ShieldRequest,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<ShieldAnswer, E> {
        self.request(request)?;
        let answer = self.settle(carry)?;
        if answer.status == status::DONE {
            Ok(answer)
        } else {
            Err(ChannelError::Status { seq: self.seq, status: answer.status }.into())
        }
    }

    /// Reads the whole statement of a Shield with configuration `config`: region pages and written
    /// maps first, page 0 last, so that it covers everything before it. Call it after the last
    /// FLUSH.
    ///
    /// # Errors
    /// As [`OwnerChannel::call`], or content that does not fit the configuration.
    pub fn statement<E: From<ChannelError>>(
        &mut self,
        config: &Config,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<Statement, E> {
        let mut regions = Vec::new();
        for r in config.regions() {
            let page = self.region_page(r, carry)?;
            let map = if r.mode == Mode::Output { Some(self.written_map(r, carry)?) } else { None };
            if map.as_ref().is_some_and(|map| map.count() != u64::from(page.written)) {
                return Err(self.impossible("written map and count differ").into());
            }
            regions.push((page, map));
        }
        let page = self.call(&ShieldRequest::statement(0), carry)?;
        let shield =
            ShieldStatement::from_payload(&page.payload).ok_or(self.impossible("shield page"))?;
        if shield.requests != self.seq {
            return Err(self.impossible("number of the request").into());
        }
        if shield.faults != 0 && !shield.stopped {
            // A fault may have frozen a region after its page was read and before another's map
            // was: that map shows chunks sealed in between.
            for (r, (page, _)) in config.regions().iter().zip(&mut regions) {
                page.frozen |= self.region_page(r, carry)?.frozen;
            }
        }
        Ok(Statement {
            transcript: self.transcript,
            config_digest: config.digest(),
            shield,
            regions,
        })
    }

    fn region_page<E: From<ChannelError>>(
        &mut self,
        r: &Region,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<RegionStatement, E> {
        let answer = self.call(&ShieldRequest::statement(1 + u32::from(r.id)), carry)?;
        let page =
            RegionStatement::from_payload(&answer.payload).ok_or(self.impossible("region page"))?;
        let fits = page.mode == r.mode
            && page.chunk_log2 == r.chunk_log2()
            && page.chunks == r.chunks()
            && u64::from(page.written) <= page.chunks;
        if fits {
            Ok(page)
        } else {
            Err(self.impossible("region differs from the configuration").into())
        }
    }

    fn written_map<E: From<ChannelError>>(
        &mut self,
        r: &Region,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<WrittenMap, E> {
        let mut map = WrittenMap::empty(r.chunks());
        for word in 0..r.chunks().div_ceil(MAP_BITS) {
            let answer = self.call(&ShieldRequest::map(r.id, word as u32), carry)?;
            if !map.set_page(word, &answer.payload) {
                return Err(self.impossible("written map past the region").into());
            }
        }
        Ok(map)
    }

    fn impossible(&self, what: &'static str) -> ChannelError {
        ChannelError::Impossible { seq: self.seq, what }
    }
}
