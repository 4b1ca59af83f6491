//! The owner's end of the channel.

use alloc::vec::Vec;

use super::cipher::Direction;
use super::{
    Answer, ChannelError, HALT, MAP_BITS, Op, RegionStatement, Request, Sealed, ShieldStatement,
    State, Statement, Statistics, WrittenMap, status,
};
use crate::config::{Config, Mode, Region};
use crate::load::{SessionKeys, Transcript};
use crate::maker::{Copied, Maker};

/// Times that a request is sent at most while no authentic answer comes.
pub const TRIES: u32 = 4;

/// The owner's end. At most one request is under way; a lost answer is asked for by sending the
/// same bytes again. A copy of the process that made the keys, made by fork, has the same keys and
/// numbers: there, the channel makes no request and takes no answer.
pub struct OwnerChannel {
    tx: Direction,
    rx: Direction,
    transcript: Transcript,
    seq: u64,
    pending: Option<(Request, Sealed)>,
    closed: bool,
    last: Option<(ShieldStatement, Sealed)>,
    /// Some request was answered with these: every statement after it must show why.
    stopped: bool,
    faulted: bool,
    /// The process that made the keys.
    maker: Maker,
}

impl OwnerChannel {
    /// The channel of a session. Make one for each `keys`: two would give different messages the same
    /// number and IV. The owner's library keeps the keys to itself for this reason; benches that play a
    /// hostile owner make more.
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
            maker: keys.maker(),
        }
    }

    fn check_process(&self) -> Result<(), ChannelError> {
        self.maker.check().map_err(|Copied { made, found }| ChannelError::Copied { made, found })
    }

    /// Number of the last request that was made.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Seals the next request.
    ///
    /// # Errors
    /// Another request is under way, the channel is closed, or this is a copy of the process that
    /// made its keys.
    pub fn request(&mut self, request: &Request) -> Result<Sealed, ChannelError> {
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

    /// The request under way, to be sent again.
    pub fn pending(&self) -> Option<&Sealed> {
        self.pending.as_ref().map(|(_, sealed)| sealed)
    }

    /// What it asks for.
    pub fn pending_request(&self) -> Option<&Request> {
        self.pending.as_ref().map(|(request, _)| request)
    }

    /// Opens the answer to the request under way. Whatever its status is, it is authentic.
    ///
    /// # Errors
    /// The answer is not authentic, and the request stays under way; or it is the last message of a
    /// Shield that has ended the session; or it is a statement ([`ChannelError::Impossible`]) that
    /// is cleaner than what the Shield answered before: after a request that was refused in a
    /// stopped Shield or met a fault, no statement without that opens anything.
    pub fn answer(&mut self, sealed: &Sealed) -> Result<Answer, ChannelError> {
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
        let answer = Answer::from_bytes(&plaintext);
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
            // What one statement says, no later one takes back.
            self.stopped |= page.stopped;
            self.faulted |= page.faults != 0;
        }
        Ok(answer)
    }

    /// Looks whether a message is the one by which the Shield has ended the session. It bears the
    /// number after the last request that the Shield ran, which is that of the request under way or
    /// the next one. Everything else is left alone.
    ///
    /// # Errors
    /// [`ChannelError::Halted`] with its last words, [`ChannelError::Impossible`] where they are
    /// none.
    pub fn halted(&mut self, sealed: &Sealed) -> Result<(), ChannelError> {
        self.check_process()?;
        let Some((seq, plaintext)) = self.rx.open(sealed) else { return Ok(()) };
        let answer = Answer::from_bytes(&plaintext);
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

    /// The message by which the Shield has ended the session by itself, if it came.
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
        let first = self.call(&Request::stats(set, 0), carry)?;
        let second = self.call(&Request::stats(set, 1), carry)?;
        Ok(Statistics::from_payloads([&first.payload, &second.payload]))
    }

    /// Sends the request under way over `carry`, which takes it to the Shield and brings the answer
    /// back, and takes the answer. While no authentic answer comes, the same bytes go again,
    /// [`TRIES`] times in all: the Shield runs them once and shows the stored answer then.
    ///
    /// # Errors
    /// What `carry` said last, or that the answer was not authentic: the request is still under
    /// way, whether it ran is unknown, and this may be called again. And those of
    /// [`OwnerChannel::answer`] after which it is not.
    pub fn settle<E: From<ChannelError>>(
        &mut self,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<Answer, E> {
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
        request: &Request,
        carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>,
    ) -> Result<Answer, E> {
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
        let page = self.call(&Request::statement(0), carry)?;
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
        let answer = self.call(&Request::statement(1 + u32::from(r.id)), carry)?;
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
            let answer = self.call(&Request::map(r.id, word as u32), carry)?;
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
