//! Messages of the channel: requests, answers, and their 64-byte plaintexts.

/// Bytes of a message.
pub const MESSAGE_LEN: usize = 88;
/// Bytes of a plaintext.
pub const PLAINTEXT_LEN: usize = 64;
/// Bytes of an answer's payload.
pub const PAYLOAD_LEN: usize = 48;

/// Operation of the message with which a Shield ends a session on its own. No request can have it.
pub const HALT: u8 = 0x32;

/// A sealed message.
pub type Sealed = [u8; MESSAGE_LEN];

/// Operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Op {
    /// No operation.
    Ping = 0x01,
    /// Reads an accelerator register.
    Read = 0x02,
    /// Writes an accelerator register.
    Write = 0x03,
    /// Seals every dirty line and waits for the memory.
    Flush = 0x10,
    /// Flushes, then drops all on-chip data.
    Invalidate = 0x11,
    /// Raises a region's epoch.
    Epoch = 0x12,
    /// Reads a page of the statement.
    Statement = 0x20,
    /// Reads 384 bits of a written map.
    Map = 0x21,
    /// Reads half of an engine set's statistics.
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

    /// The meaning of a status, and whether the request ran.
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
pub struct ShieldRequest {
    /// Operation; a number, so that a Shield can answer unknown ones.
    pub op: u8,
    /// Region, or engine set, or 0.
    pub region: u8,
    /// Register address, page or word offset.
    pub addr: u32,
    /// Register value or epoch.
    pub value: u64,
}

impl ShieldRequest {
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

    /// Reads the 64 bytes. Ignores the bytes that the layout calls zero, as the Shield does.
    pub fn from_bytes(b: &[u8; PLAINTEXT_LEN]) -> Self {
        Self { op: b[0], region: b[1], addr: le32(b, 4), value: le64(b, 8) }
    }
}

/// Plaintext of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShieldAnswer {
    /// Operation, as in the request.
    pub op: u8,
    /// Region, as in the request.
    pub region: u8,
    /// See [`status`].
    pub status: u16,
    /// Address, as in the request.
    pub addr: u32,
    /// Register value, if the operation returns one.
    pub value: u64,
    /// Payload; its layout depends on the operation.
    pub payload: [u8; PAYLOAD_LEN],
}

impl ShieldAnswer {
    /// An empty answer to `request`.
    pub fn to(request: &ShieldRequest, status: u16) -> Self {
        Self {
            op: request.op,
            region: request.region,
            status,
            addr: request.addr,
            value: 0,
            payload: [0; PAYLOAD_LEN],
        }
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
        Self {
            op: b[0],
            region: b[1],
            status: u16::from_le_bytes([b[2], b[3]]),
            addr: le32(b, 4),
            value: le64(b, 8),
            payload,
        }
    }
}

pub(super) fn le32(b: &[u8], at: usize) -> u32 {
    b[at..at + 4].iter().rev().fold(0, |n, &x| n << 8 | u32::from(x))
}

pub(super) fn le64(b: &[u8], at: usize) -> u64 {
    b[at..at + 8].iter().rev().fold(0, |n, &x| n << 8 | u64::from(x))
}
