//! The sealed register channel: 88-byte messages in both directions, both of its ends, and the statement.
//!
//! The format is in `docs/reference/register-channel.md`.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit, Nonce, Tag};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::code::Code;
use crate::config::{Config, Mode};
use crate::load::{Key, SessionKeys, Transcript};

/// Bytes of a message.
pub const MESSAGE_LEN: usize = 88;
/// Bytes of a plaintext.
pub const PLAINTEXT_LEN: usize = 64;
/// Bytes of an answer's payload.
pub const PAYLOAD_LEN: usize = 48;
/// Chunks that one MAP answer covers.
pub const MAP_BITS: u64 = 384;

/// Times that a request is sent at most while no authentic answer comes.
pub const TRIES: u32 = 4;

/// Statistics that an engine set counts.
pub const COUNTERS: usize = 16;
/// Operation in the message with which a Shield ends a session by itself. Nobody can ask for it.
pub const HALT: u8 = 0x32;

/// A sealed message.
pub type Sealed = [u8; MESSAGE_LEN];

/// Codes of [`ChannelError`].
pub const CODES: &[Code] = &[
    Code {
        id: "SHEF-PRO-250",
        summary: "an answer of the register channel is not authentic",
        help: "The answer was changed, replayed, or belongs to another request or session. Nothing is concluded from it; the same request may be sent again.",
    },
    Code {
        id: "SHEF-PRO-251",
        summary: "the register channel waits for an answer",
        help: "One request is on its way. Deliver its answer, or send the same 88 bytes again.",
    },
    Code { id: "SHEF-PRO-252", summary: "no request is on its way", help: "An answer came that nobody asked for. It is not looked at." },
    Code { id: "SHEF-PRO-253", summary: "the register channel is exhausted or closed", help: "Open a new session." },
    Code {
        id: "SHEF-PRO-254",
        summary: "the Shield answered with an error",
        help: "1: unknown operation or bad argument. 2: the accelerator's register answered with an error. 3: the Shield has stopped after a fault. 4: a fault stopped the operation. Read the statement.",
    },
    Code {
        id: "SHEF-PRO-255",
        summary: "an authentic answer has impossible content",
        help: "The Shield does not run this configuration, or is of another version.",
    },
    Code {
        id: "SHEF-PRO-256",
        summary: "a fault made the Shield end the session by itself",
        help: "on_fault is \"halt\": the Shield told of the fault in its last message and erased all keys. No result opens. Begin a new session.",
    },
];

/// What can go wrong on the owner's side of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The answer does not open, or is not the answer to this request.
    #[error("answer to request {seq} is not authentic: whether the request ran is unknown")]
    NotAuthentic {
        /// number of the request
        seq: u64,
    },
    /// A request is under way.
    #[error("request {seq} is under way")]
    Busy {
        /// its number
        seq: u64,
    },
    /// No request is under way.
    #[error("no request is under way")]
    Idle,
    /// Closed, or no numbers left.
    #[error("the register channel is closed")]
    Closed,
    /// The Shield answered with a status other than done.
    #[error("shield answered request {seq} with status {status}: {}", status::text(*status))]
    Status {
        /// number of the request
        seq: u64,
        /// the status
        status: u16,
    },
    /// Content that no Shield of this configuration sends.
    #[error("answer to request {seq} is impossible: {what}")]
    Impossible {
        /// number of the request
        seq: u64,
        /// what is wrong
        what: &'static str,
    },
    /// The Shield has ended the session by itself after a fault.
    #[error(
        "the shield ended the session after a fault: {} in region {}, chunk {:#x}, version {}",
        .last.fault_kind.name(), .last.fault_region, .last.fault_chunk, .last.fault_version
    )]
    Halted {
        /// its last words
        last: ShieldStatement,
        /// the request that this was the answer to was run before
        ran: bool,
    },
}

impl ChannelError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAuthentic { .. } => "SHEF-PRO-250",
            Self::Busy { .. } => "SHEF-PRO-251",
            Self::Idle => "SHEF-PRO-252",
            Self::Closed => "SHEF-PRO-253",
            Self::Status { .. } => "SHEF-PRO-254",
            Self::Impossible { .. } => "SHEF-PRO-255",
            Self::Halted { .. } => "SHEF-PRO-256",
        }
    }
}

/// Operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Op {
    /// Nothing.
    Ping = 0x01,
    /// Reads an accelerator register.
    Read = 0x02,
    /// Writes an accelerator register.
    Write = 0x03,
    /// Seals every dirty line and waits for the memory.
    Flush = 0x10,
    /// Flushes, then drops what is held on chip.
    Invalidate = 0x11,
    /// Raises a region's epoch.
    Epoch = 0x12,
    /// A page of the statement.
    Statement = 0x20,
    /// 384 bits of a written map.
    Map = 0x21,
    /// Half of an engine set's statistics.
    Stats = 0x22,
    /// Flushes and ends the session.
    Close = 0x30,
    /// Ends the session without a flush.
    Abort = 0x31,
}

impl Op {
    /// All operations.
    pub const ALL: [Self; 11] = [
        Self::Ping,
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Invalidate,
        Self::Epoch,
        Self::Statement,
        Self::Map,
        Self::Stats,
        Self::Close,
        Self::Abort,
    ];

    /// The operation with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| *op as u8 == n)
    }
}

/// Status of an answer.
pub mod status {
    /// Done.
    pub const DONE: u16 = 0;
    /// Unknown operation or bad argument.
    pub const BAD: u16 = 1;
    /// The accelerator's register answered with an error.
    pub const REGISTER: u16 = 2;
    /// Refused, because the Shield has stopped.
    pub const STOPPED: u16 = 3;
    /// A fault stopped the operation.
    pub const FAULT: u16 = 4;

    /// What a status says, and so whether the request ran.
    pub fn text(status: u16) -> &'static str {
        match status {
            DONE => "it ran",
            BAD => "unknown operation or bad argument, it did not run",
            REGISTER => "it ran, and the accelerator's register answered with an error",
            STOPPED => "the Shield has stopped, it did not run",
            FAULT => "it ran until a fault stopped it",
            _ => "a status that no Shield of this version has",
        }
    }
}

/// Plaintext of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// Operation; a number, so that a Shield can answer unknown ones.
    pub op: u8,
    /// Region, or engine set, or 0.
    pub region: u8,
    /// Register address, page or word offset.
    pub addr: u32,
    /// Register value or epoch.
    pub value: u64,
}

impl Request {
    /// PING.
    pub fn ping() -> Self {
        Self::of(Op::Ping)
    }
    /// READ of an accelerator register.
    pub fn read(addr: u32) -> Self {
        Self { addr, ..Self::of(Op::Read) }
    }
    /// WRITE of an accelerator register.
    pub fn write(addr: u32, value: u32) -> Self {
        Self { addr, value: u64::from(value), ..Self::of(Op::Write) }
    }
    /// FLUSH.
    pub fn flush() -> Self {
        Self::of(Op::Flush)
    }
    /// INVALIDATE.
    pub fn invalidate() -> Self {
        Self::of(Op::Invalidate)
    }
    /// EPOCH.
    pub fn epoch(region: u8, epoch: u64) -> Self {
        Self { region, value: epoch, ..Self::of(Op::Epoch) }
    }
    /// STATEMENT page: 0 the Shield, 1 + r region r.
    pub fn statement(page: u32) -> Self {
        Self { addr: page, ..Self::of(Op::Statement) }
    }
    /// MAP of an `output` region, from chunk `word * 384` on.
    pub fn map(region: u8, word: u32) -> Self {
        Self { region, addr: word, ..Self::of(Op::Map) }
    }
    /// STATS: counters `8 * page` to `8 * page + 7` of an engine set.
    pub fn stats(set: u8, page: u32) -> Self {
        Self { region: set, addr: page, ..Self::of(Op::Stats) }
    }
    /// CLOSE.
    pub fn close() -> Self {
        Self::of(Op::Close)
    }
    /// ABORT.
    pub fn abort() -> Self {
        Self::of(Op::Abort)
    }

    fn of(op: Op) -> Self {
        Self { op: op as u8, ..Self::default() }
    }

    /// The 64 bytes.
    pub fn to_bytes(&self) -> [u8; PLAINTEXT_LEN] {
        let mut b = [0; PLAINTEXT_LEN];
        b[0] = self.op;
        b[1] = self.region;
        b[4..8].copy_from_slice(&self.addr.to_le_bytes());
        b[8..16].copy_from_slice(&self.value.to_le_bytes());
        b
    }

    /// Reads the 64 bytes. Bytes that the layout calls zero are not looked at, as in the Shield.
    pub fn from_bytes(b: &[u8; PLAINTEXT_LEN]) -> Self {
        Self { op: b[0], region: b[1], addr: le32(b, 4), value: le64(b, 8) }
    }
}

/// Plaintext of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Operation, as asked.
    pub op: u8,
    /// Region, as asked.
    pub region: u8,
    /// See [`status`].
    pub status: u16,
    /// Address, as asked.
    pub addr: u32,
    /// Register value, where the operation gives one.
    pub value: u64,
    /// By operation.
    pub payload: [u8; PAYLOAD_LEN],
}

impl Answer {
    /// An answer to `request` with nothing in it.
    pub fn to(request: &Request, status: u16) -> Self {
        Self { op: request.op, region: request.region, status, addr: request.addr, value: 0, payload: [0; PAYLOAD_LEN] }
    }

    /// The 64 bytes.
    pub fn to_bytes(&self) -> [u8; PLAINTEXT_LEN] {
        let mut b = [0; PLAINTEXT_LEN];
        b[0] = self.op;
        b[1] = self.region;
        b[2..4].copy_from_slice(&self.status.to_le_bytes());
        b[4..8].copy_from_slice(&self.addr.to_le_bytes());
        b[8..16].copy_from_slice(&self.value.to_le_bytes());
        b[16..].copy_from_slice(&self.payload);
        b
    }

    /// Reads the 64 bytes.
    pub fn from_bytes(b: &[u8; PLAINTEXT_LEN]) -> Self {
        let mut payload = [0; PAYLOAD_LEN];
        payload.copy_from_slice(&b[16..]);
        Self { op: b[0], region: b[1], status: u16::from_le_bytes([b[2], b[3]]), addr: le32(b, 4), value: le64(b, 8), payload }
    }
}

fn le32(b: &[u8], at: usize) -> u32 {
    b[at..at + 4].iter().rev().fold(0, |n, &x| n << 8 | u32::from(x))
}

fn le64(b: &[u8], at: usize) -> u64 {
    b[at..at + 8].iter().rev().fold(0, |n, &x| n << 8 | u64::from(x))
}

/// One direction of the channel. Its key stays in one place.
struct Direction(Box<Aes256Gcm>);

impl Direction {
    fn new(key: &Key) -> Self {
        Self(Box::new(Aes256Gcm::new_from_slice(key.expose()).expect("channel keys have 32 bytes")))
    }

    fn iv(seq: u64) -> [u8; 12] {
        let mut iv = [0; 12];
        iv[4..].copy_from_slice(&seq.to_be_bytes());
        iv
    }

    fn seal(&self, seq: u64, plaintext: &[u8; PLAINTEXT_LEN]) -> Sealed {
        let mut m = [0; MESSAGE_LEN];
        m[..8].copy_from_slice(&seq.to_be_bytes());
        m[8..72].copy_from_slice(plaintext);
        let tag = self
            .0
            .encrypt_inout_detached(&Nonce::from(Self::iv(seq)), &[], (&mut m[8..72]).into())
            .expect("64 bytes are within GCM's limit");
        m[72..].copy_from_slice(&tag);
        m
    }

    fn open(&self, m: &Sealed) -> Option<(u64, Zeroizing<[u8; PLAINTEXT_LEN]>)> {
        let mut seq = [0; 8];
        seq.copy_from_slice(&m[..8]);
        let seq = u64::from_be_bytes(seq);
        let mut plaintext = Zeroizing::new([0; PLAINTEXT_LEN]);
        plaintext.copy_from_slice(&m[8..72]);
        let mut tag = Tag::default();
        tag.copy_from_slice(&m[72..]);
        self.0.decrypt_inout_detached(&Nonce::from(Self::iv(seq)), &[], (&mut plaintext[..]).into(), &tag).ok()?;
        Some((seq, plaintext))
    }
}

/// The owner's end. At most one request is under way; a lost answer is asked for by sending the same bytes again.
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
}

impl OwnerChannel {
    /// The channel of a session.
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
        }
    }

    /// Number of the last request that was made.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Seals the next request.
    ///
    /// # Errors
    /// Another request is under way, or the channel is closed.
    pub fn request(&mut self, request: &Request) -> Result<Sealed, ChannelError> {
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
    /// The answer is not authentic, and the request stays under way; or it is the last message of a Shield that has ended the session; or
    /// it is a statement ([`ChannelError::Impossible`]) that is cleaner than what the Shield answered before: after a request that was
    /// refused in a stopped Shield or met a fault, no statement without that opens anything.
    pub fn answer(&mut self, sealed: &Sealed) -> Result<Answer, ChannelError> {
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
        let statement = request.op == Op::Statement as u8 && request.addr == 0 && answer.status == status::DONE;
        self.closed |= last;
        self.pending = None;
        self.stopped |= answer.status == status::STOPPED;
        self.faulted |= answer.status == status::FAULT;
        if (last || statement)
            && let Some(page) = ShieldStatement::from_payload(&answer.payload)
        {
            if (self.stopped && !page.stopped) || (self.faulted && !page.stopped && page.faults == 0) {
                return Err(ChannelError::Impossible { seq, what: "the statement is cleaner than the answers before it" });
            }
            // What one statement says, no later one takes back.
            self.stopped |= page.stopped;
            self.faulted |= page.faults != 0;
        }
        Ok(answer)
    }

    /// Looks whether a message is the one by which the Shield has ended the session. It bears the number after the last request that the
    /// Shield ran, which is that of the request under way or the next one. Everything else is left alone.
    ///
    /// # Errors
    /// [`ChannelError::Halted`] with its last words, [`ChannelError::Impossible`] where they are none.
    pub fn halted(&mut self, sealed: &Sealed) -> Result<(), ChannelError> {
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

    /// Sends the request under way over `carry`, which takes it to the Shield and brings the answer back, and takes the answer. While no
    /// authentic answer comes, the same bytes go again, [`TRIES`] times in all: the Shield runs them once and shows the stored answer then.
    ///
    /// # Errors
    /// What `carry` said last, or that the answer was not authentic: the request is still under way, whether it ran is unknown, and this
    /// may be called again. And those of [`OwnerChannel::answer`] after which it is not.
    pub fn settle<E: From<ChannelError>>(&mut self, carry: &mut dyn FnMut(&Sealed) -> Result<Sealed, E>) -> Result<Answer, E> {
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
        if answer.status == status::DONE { Ok(answer) } else { Err(ChannelError::Status { seq: self.seq, status: answer.status }.into()) }
    }

    /// Reads the whole statement of a Shield with configuration `config`: region pages and written maps first, page 0 last, so that it covers
    /// everything before it. Call it after the last FLUSH.
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
            let page = self.call(&Request::statement(1 + u32::from(r.id)), carry)?;
            let page =
                RegionStatement::from_payload(&page.payload).ok_or(ChannelError::Impossible { seq: self.seq, what: "region page" })?;
            let shape = page.mode == r.mode
                && page.chunk_log2 == r.chunk_log2()
                && page.chunks == r.chunks()
                && u64::from(page.written) <= page.chunks;
            if !shape {
                return Err(ChannelError::Impossible { seq: self.seq, what: "region differs from the configuration" }.into());
            }
            let mut map = None;
            if r.mode == Mode::Output {
                let mut bits = WrittenMap::empty(r.chunks());
                for word in 0..r.chunks().div_ceil(MAP_BITS) {
                    let a = self.call(&Request::map(r.id, word as u32), carry)?;
                    if !bits.set_page(word, &a.payload) {
                        return Err(ChannelError::Impossible { seq: self.seq, what: "written map past the region" }.into());
                    }
                }
                if bits.count() != u64::from(page.written) {
                    return Err(ChannelError::Impossible { seq: self.seq, what: "written map and count differ" }.into());
                }
                map = Some(bits);
            }
            regions.push((page, map));
        }
        let page = self.call(&Request::statement(0), carry)?;
        let shield = ShieldStatement::from_payload(&page.payload).ok_or(ChannelError::Impossible { seq: self.seq, what: "shield page" })?;
        if shield.requests != self.seq {
            return Err(ChannelError::Impossible { seq: self.seq, what: "number of the request" }.into());
        }
        if shield.faults != 0 && !shield.stopped {
            // A region may have been frozen after its page was read, and before the map of another: what was sealed in between shows there.
            for (r, (page, _)) in config.regions().iter().zip(&mut regions) {
                let again = self.call(&Request::statement(1 + u32::from(r.id)), carry)?;
                let again =
                    RegionStatement::from_payload(&again.payload).ok_or(ChannelError::Impossible { seq: self.seq, what: "region page" })?;
                page.frozen |= again.frozen;
            }
        }
        Ok(Statement { transcript: self.transcript, config_digest: config.digest(), shield, regions })
    }
}

/// What the Shield does with a message.
#[derive(Debug)]
pub enum Received {
    /// The next request: run it, then call [`ShieldChannel::answer`].
    Run(Request),
    /// The last request again: show this stored answer.
    Repeat(Box<Sealed>),
    /// Everything else: nothing changes.
    Refused,
}

/// The Shield's end.
pub struct ShieldChannel {
    rx: Direction,
    tx: Direction,
    seq: u64,
    last: Sealed,
    stored: Option<Sealed>,
    running: bool,
}

impl ShieldChannel {
    /// The channel of a session.
    pub fn new(keys: &SessionKeys) -> Self {
        Self {
            rx: Direction::new(keys.to_shield()),
            tx: Direction::new(keys.to_owner()),
            seq: 0,
            last: [0; MESSAGE_LEN],
            stored: None,
            running: false,
        }
    }

    /// Number of the last request that was run (or runs).
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Looks at a message.
    pub fn receive(&mut self, sealed: &Sealed) -> Received {
        if self.running {
            return Received::Refused;
        }
        if let Some(stored) = &self.stored
            && bool::from(self.last[..].ct_eq(&sealed[..]))
        {
            return Received::Repeat(Box::new(*stored));
        }
        let next = self.seq.checked_add(1);
        match self.rx.open(sealed) {
            Some((seq, plaintext)) if Some(seq) == next => {
                self.seq = seq;
                self.last = *sealed;
                self.stored = None;
                self.running = true;
                Received::Run(Request::from_bytes(&plaintext))
            }
            _ => Received::Refused,
        }
    }

    /// Seals the message by which a Shield ends the session by itself, under the number after that of the last request: with `payload` its
    /// last words, it must be the last one.
    pub fn halt(&self, payload: [u8; PAYLOAD_LEN]) -> Sealed {
        let answer = Answer { op: HALT, region: 0, status: status::DONE, addr: 0, value: 0, payload };
        self.tx.seal(self.seq.wrapping_add(1), &answer.to_bytes())
    }

    /// Seals and stores the answer to the request that runs.
    pub fn answer(&mut self, answer: &Answer) -> Sealed {
        let mut plaintext = answer.to_bytes();
        let sealed = self.tx.seal(self.seq, &plaintext);
        plaintext.zeroize();
        self.stored = Some(sealed);
        self.running = false;
        sealed
    }
}

/// State of the Shield in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Keyed.
    Keyed,
    /// Closed.
    Closed,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// None.
    None,
    /// A chunk's tag did not match.
    Tag,
    /// The memory answered with an error.
    Bus,
    /// The memory did not answer.
    Timeout,
    /// An answer that was not owed, or of the wrong length.
    Protocol,
    /// A tree node's tag did not match.
    Node,
    /// A countermeasure inside the Shield fired.
    Internal,
}

impl FaultKind {
    /// The number in statement and status register.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Tag => 1,
            Self::Bus => 2,
            Self::Timeout => 3,
            Self::Protocol => 4,
            Self::Node => 5,
            Self::Internal => 6,
        }
    }

    /// What it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no fault",
            Self::Tag => "a tag that does not match",
            Self::Bus => "an error of the memory",
            Self::Timeout => "a memory that does not answer",
            Self::Protocol => "an answer of the memory that is not owed",
            Self::Node => "a tree node that does not match",
            Self::Internal => "a countermeasure inside the Shield",
        }
    }

    /// The kind with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        [Self::None, Self::Tag, Self::Bus, Self::Timeout, Self::Protocol, Self::Node, Self::Internal].into_iter().find(|k| k.number() == n)
    }
}

/// Kinds of refusals: what the accelerator itself did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// None.
    None,
    /// Not wholly inside one region.
    Range,
    /// Not an INCR burst, or across a 4 KiB page.
    Burst,
    /// Write to an `input` region.
    ReadOnly,
    /// Chunk of an `output` region already sealed in this epoch.
    SecondWrite,
    /// The region's epoch is 0.
    EpochZero,
    /// A counter or a key's use limit is at its end.
    Exhausted,
    /// No session.
    NotKeyed,
    /// Read of an `output` chunk that was not sealed in this epoch and is not on chip.
    NotWritten,
}

impl RefusalKind {
    /// The number in the statement.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Range => 1,
            Self::Burst => 2,
            Self::ReadOnly => 3,
            Self::SecondWrite => 4,
            Self::EpochZero => 5,
            Self::Exhausted => 6,
            Self::NotKeyed => 7,
            Self::NotWritten => 8,
        }
    }

    /// The kind with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        [
            Self::None,
            Self::Range,
            Self::Burst,
            Self::ReadOnly,
            Self::SecondWrite,
            Self::EpochZero,
            Self::Exhausted,
            Self::NotKeyed,
            Self::NotWritten,
        ]
        .into_iter()
        .find(|k| k.number() == n)
    }
}

/// Statement page 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShieldStatement {
    /// State of the session.
    pub state: State,
    /// A fault stopped the Shield.
    pub stopped: bool,
    /// Kind of the first fault.
    pub fault_kind: FaultKind,
    /// Region of the first fault.
    pub fault_region: u8,
    /// Number of faults.
    pub faults: u32,
    /// Number of refusals.
    pub refusals: u32,
    /// Kind of the first refusal.
    pub refusal_kind: RefusalKind,
    /// Region of the first refusal; 0xff: none.
    pub refusal_region: u8,
    /// Chunk of the first fault.
    pub fault_chunk: u64,
    /// Version of the first fault.
    pub fault_version: u64,
    /// Address of the first refusal.
    pub refusal_addr: u64,
    /// Number of requests that were run, this one included.
    pub requests: u64,
}

impl ShieldStatement {
    /// The payload of an answer.
    pub fn to_payload(&self) -> [u8; PAYLOAD_LEN] {
        let mut p = [0; PAYLOAD_LEN];
        p[0] = match self.state {
            State::Keyed => 4,
            State::Closed => 5,
        };
        p[1] = u8::from(self.stopped);
        p[2] = self.fault_kind.number();
        p[3] = self.fault_region;
        p[4..8].copy_from_slice(&self.faults.to_le_bytes());
        p[8..12].copy_from_slice(&self.refusals.to_le_bytes());
        p[12] = self.refusal_kind.number();
        p[13] = self.refusal_region;
        p[16..24].copy_from_slice(&self.fault_chunk.to_le_bytes());
        p[24..32].copy_from_slice(&self.fault_version.to_le_bytes());
        p[32..40].copy_from_slice(&self.refusal_addr.to_le_bytes());
        p[40..48].copy_from_slice(&self.requests.to_le_bytes());
        p
    }

    /// Reads a payload; `None` if it holds values that no Shield sends.
    pub fn from_payload(p: &[u8; PAYLOAD_LEN]) -> Option<Self> {
        let s = Self {
            state: match p[0] {
                4 => State::Keyed,
                5 => State::Closed,
                _ => return None,
            },
            stopped: match p[1] {
                0 => false,
                1 => true,
                _ => return None,
            },
            fault_kind: FaultKind::from_number(p[2])?,
            fault_region: p[3],
            faults: le32(p, 4),
            refusals: le32(p, 8),
            refusal_kind: RefusalKind::from_number(p[12])?,
            refusal_region: p[13],
            fault_chunk: le64(p, 16),
            fault_version: le64(p, 24),
            refusal_addr: le64(p, 32),
            requests: le64(p, 40),
        };
        (s.to_payload() == *p).then_some(s)
    }
}

/// Statement page 1 + r.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionStatement {
    /// Mode.
    pub mode: Mode,
    /// Base-2 logarithm of the chunk size.
    pub chunk_log2: u8,
    /// A fault froze the region (only under `on_fault = "region"`).
    pub frozen: bool,
    /// Chunks sealed in the present epoch.
    pub written: u32,
    /// Present epoch.
    pub epoch: u64,
    /// Chunks in the region.
    pub chunks: u64,
}

impl RegionStatement {
    /// The payload of an answer.
    pub fn to_payload(&self) -> [u8; PAYLOAD_LEN] {
        let mut p = [0; PAYLOAD_LEN];
        p[0] = self.mode.number();
        p[1] = self.chunk_log2;
        p[2] = u8::from(self.frozen);
        p[4..8].copy_from_slice(&self.written.to_le_bytes());
        p[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        p[16..24].copy_from_slice(&self.chunks.to_le_bytes());
        p
    }

    /// Reads a payload; `None` if it holds values that no Shield sends.
    pub fn from_payload(p: &[u8; PAYLOAD_LEN]) -> Option<Self> {
        let s = Self {
            mode: Mode::from_number(p[0])?,
            chunk_log2: p[1],
            frozen: p[2] == 1,
            written: le32(p, 4),
            epoch: le64(p, 8),
            chunks: le64(p, 16),
        };
        (s.to_payload() == *p).then_some(s)
    }
}

/// What an engine set counts, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Counter {
    /// Read segments (the part of a burst in one chunk) that were on chip.
    ReadHits,
    /// Read segments that were not.
    ReadMisses,
    /// Write segments that found their chunk on chip.
    WriteHits,
    /// Write segments that did not.
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
    /// Chunks fetched ahead.
    Prefetches,
    /// Of these, the ones that were asked for later.
    PrefetchesUsed,
    /// Of these, the ones that failed and were dropped.
    PrefetchesFailed,
}

impl Counter {
    /// All, in order of their number.
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

/// Statistics of one engine set: counters of 48 bits that stop at their largest value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics([u64; COUNTERS]);

impl Statistics {
    /// These counters; what does not fit 48 bits is the largest value.
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

/// Which chunks of an `output` region were sealed in its present epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenMap {
    bits: Vec<u8>,
    chunks: u64,
}

impl WrittenMap {
    /// A map of a region with `chunks` chunks, none written.
    pub fn empty(chunks: u64) -> Self {
        Self { bits: vec![0; chunks.div_ceil(8) as usize], chunks }
    }

    /// Whether chunk `index` was sealed.
    pub fn is_written(&self, index: u64) -> bool {
        index < self.chunks && self.bits[(index / 8) as usize] >> (index % 8) & 1 == 1
    }

    /// Notes chunk `index`; false if it was noted before or does not exist.
    pub fn set(&mut self, index: u64) -> bool {
        if index >= self.chunks || self.is_written(index) {
            return false;
        }
        self.bits[(index / 8) as usize] |= 1 << (index % 8);
        true
    }

    /// Chunks in the region.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Number of sealed chunks.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|b| u64::from(b.count_ones())).sum()
    }

    /// Payload of the MAP answer for page `word`; `None` past the region.
    pub fn page(&self, word: u64) -> Option<[u8; PAYLOAD_LEN]> {
        if word.checked_mul(MAP_BITS)? >= self.chunks {
            return None;
        }
        let from = (word * MAP_BITS / 8) as usize;
        let n = (self.bits.len() - from).min(PAYLOAD_LEN);
        let mut p = [0; PAYLOAD_LEN];
        p[..n].copy_from_slice(&self.bits[from..from + n]);
        Some(p)
    }

    /// Takes the payload of a MAP answer; false if it has bits past the region.
    fn set_page(&mut self, word: u64, payload: &[u8; PAYLOAD_LEN]) -> bool {
        for k in 0..MAP_BITS {
            if payload[(k / 8) as usize] >> (k % 8) & 1 == 1 && !self.set(word * MAP_BITS + k) {
                return false;
            }
        }
        true
    }
}

/// A whole statement, read over the sealed channel: only [`OwnerChannel::statement`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    transcript: Transcript,
    config_digest: [u8; 32],
    shield: ShieldStatement,
    regions: Vec<(RegionStatement, Option<WrittenMap>)>,
}

impl Statement {
    /// T of the session that it belongs to.
    pub fn transcript(&self) -> Transcript {
        self.transcript
    }

    /// Digest of the configuration that it was read for.
    pub fn config_digest(&self) -> &[u8; 32] {
        &self.config_digest
    }

    /// Page 0.
    pub fn shield(&self) -> &ShieldStatement {
        &self.shield
    }

    /// Page of a region.
    pub fn region(&self, id: u8) -> Option<&RegionStatement> {
        self.regions.get(usize::from(id)).map(|(r, _)| r)
    }

    /// Regions that a fault froze.
    pub fn frozen(&self) -> impl Iterator<Item = u8> {
        (0..).zip(&self.regions).filter(|(_, (page, _))| page.frozen).map(|(id, _)| id)
    }

    /// Written map of an `output` region.
    pub fn written(&self, id: u8) -> Option<&WrittenMap> {
        self.regions.get(usize::from(id)).and_then(|(_, m)| m.as_ref())
    }
}
