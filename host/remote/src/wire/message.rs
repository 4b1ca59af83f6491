//! The messages.

use shef_device::{CtlOp, DeviceError, DeviceInfo, mailbox};
use shef_proto::text::one_line;

use super::bytes::{Reader, Writer};
use super::{MAGIC, MAX_BULK, MAX_DEVICES, MAX_OPS, WireError, error};

/// Resumes a session: random, known to the agent and to the program that opened the session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 32]);

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Token")
    }
}

/// A message from an owner's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToAgent {
    /// The first message: the versions that the program supports, and its name.
    Hello {
        /// First version.
        min: u16,
        /// Last version.
        max: u16,
        /// Name and version of the program, for the agent's log.
        program: String,
    },
    /// Requests the list of the agent's devices.
    List,
    /// Opens a card by its name, or resumes a session.
    Open {
        /// Name in the agent's configuration.
        device: String,
        /// Token of the session to resume, and the number up to which every answer has arrived.
        resume: Option<(Token, u64)>,
    },
    /// A request in the session.
    Request {
        /// Its number: 1 for the first request of a session, then rising by one.
        id: u64,
        /// Every answer up to this number has arrived.
        acked: u64,
        /// The operation.
        op: DeviceOp,
    },
}

/// An operation on a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceOp {
    /// Accesses of the control window: [`shef_device::Device::ctl_batch`].
    Ctl(Vec<CtlOp>),
    /// A message to the Security Kernel.
    Kernel(Vec<u8>),
    /// Reads card memory.
    MemRead {
        /// First address.
        addr: u64,
        /// Bytes.
        len: u32,
    },
    /// Writes card memory.
    MemWrite {
        /// First address.
        addr: u64,
        /// Bytes.
        data: Vec<u8>,
    },
    /// Lets time pass.
    WaitHint,
    /// Waits for an interrupt, for a bounded time.
    WaitInterrupt,
    /// Resets the card.
    Reset,
    /// Ends the session: the card is reset and free for others.
    Close,
}

impl DeviceOp {
    /// Bytes of card memory that it transfers.
    pub fn bulk(&self) -> u64 {
        match self {
            Self::MemRead { len, .. } => u64::from(*len),
            Self::MemWrite { data, .. } => data.len() as u64,
            _ => 0,
        }
    }

    /// Whether `answer` has the form of its answer.
    pub fn takes(&self, answer: &DeviceAnswer) -> bool {
        match (self, answer) {
            (Self::Ctl(ops), DeviceAnswer::Values(values)) => fits(ops, values),
            (Self::Kernel(_), DeviceAnswer::Bytes(_)) => true,
            (Self::MemRead { len, .. }, DeviceAnswer::Bytes(bytes)) => {
                bytes.len() as u64 == u64::from(*len)
            }
            (Self::WaitInterrupt, DeviceAnswer::Flag(_)) => true,
            (
                Self::MemWrite { .. } | Self::WaitHint | Self::Reset | Self::Close,
                DeviceAnswer::Done,
            ) => true,
            _ => false,
        }
    }
}

/// Whether a batch can return these values: all of them, or those up to a poll that did not settle.
fn fits(ops: &[CtlOp], values: &[u32]) -> bool {
    let mut values = values.iter();
    for op in ops {
        if matches!(op, CtlOp::Write { .. }) {
            continue;
        }
        match values.next() {
            None => return false,
            Some(value) if !op.settled(*value) => break,
            Some(_) => {}
        }
    }
    values.next().is_none()
}

/// A message from an agent.
#[derive(Debug)]
pub enum ToOwner {
    /// The answer to [`ToAgent::Hello`].
    Welcome {
        /// Version in use from now on.
        version: u16,
        /// Name and version of the agent's program.
        program: String,
        /// Name of the owner, as the agent read it from the certificate.
        owner: String,
    },
    /// The answer to [`ToAgent::List`].
    Devices(Vec<Listed>),
    /// The answer to [`ToAgent::Open`].
    Opened {
        /// Token of the session.
        token: Token,
        /// Number of the last request that was carried out or is waiting: 0 in a new session.
        last: u64,
        /// The card's description of itself.
        info: DeviceInfo,
    },
    /// The agent is working: on a request, or on opening the card.
    Progress {
        /// Number of the request, 0 while the card is being opened.
        id: u64,
        /// Its current work, for people.
        text: String,
    },
    /// A request was carried out.
    Done {
        /// Its number.
        id: u64,
        /// Clock cycles of the card, if it counts them.
        cycles: Option<u64>,
        /// The result.
        answer: DeviceAnswer,
    },
    /// A request failed; the session continues.
    Failed {
        /// Its number.
        id: u64,
        /// Clock cycles of the card, if it counts them.
        cycles: Option<u64>,
        /// Why.
        error: DeviceError,
    },
    /// The agent ends the connection.
    Refused {
        /// Stable code.
        code: String,
        /// The reason, and the remedy.
        message: String,
    },
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceAnswer {
    /// The operation is done and returns no data.
    Done,
    /// Whether an interrupt arrived.
    Flag(bool),
    /// Values of registers.
    Values(Vec<u32>),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A device of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// A description.
    pub description: String,
    /// Its state.
    pub state: DeviceState,
    /// Its present owner.
    pub owner: Option<String>,
    /// Bytes of card memory transferred for the present owner.
    pub moved: u64,
}

/// State of an agent's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceState {
    /// It is being opened.
    Starting,
    /// It has no owner.
    Free,
    /// An owner has it.
    InUse,
    /// Its owner is gone; it is reset when the grace period is over.
    Orphaned,
    /// It is being wiped.
    Resetting,
    /// It cannot be opened or reset.
    Failed,
}

impl DeviceState {
    /// All states, by number.
    pub const ALL: [Self; 6] =
        [Self::Starting, Self::Free, Self::InUse, Self::Orphaned, Self::Resetting, Self::Failed];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Free => "free",
            Self::InUse => "in use",
            Self::Orphaned => "orphaned",
            Self::Resetting => "resetting",
            Self::Failed => "failed",
        }
    }
}

const HELLO: u8 = 0x01;
const LIST: u8 = 0x02;
const OPEN: u8 = 0x03;
const REQUEST: u8 = 0x04;
const WELCOME: u8 = 0x81;
const DEVICES: u8 = 0x82;
const OPENED: u8 = 0x83;
const PROGRESS: u8 = 0x84;
const DONE: u8 = 0x85;
const FAILED: u8 = 0x86;
const REFUSED: u8 = 0x87;

impl ToAgent {
    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { min, max, program } => {
                let mut w = Writer::new(HELLO);
                w.raw(&MAGIC);
                w.u16(*min);
                w.u16(*max);
                w.text(program);
                w.finish()
            }
            Self::List => Writer::new(LIST).finish(),
            Self::Open { device, resume } => {
                let mut w = Writer::new(OPEN);
                w.text(device);
                w.u8(resume.is_some().into());
                if let Some((token, acked)) = resume {
                    w.raw(&token.0);
                    w.u64(*acked);
                }
                w.finish()
            }
            Self::Request { id, acked, op } => {
                let mut w = Writer::new(REQUEST);
                w.u64(*id);
                w.u64(*acked);
                write_op(&mut w, op);
                w.finish()
            }
        }
    }

    /// Decodes a frame without its length.
    ///
    /// # Errors
    /// Anything that is not exactly one message.
    pub fn decode(frame: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(frame);
        let message = match r.u8("kind of message")? {
            HELLO => {
                let magic = r.array("magic")?;
                if magic != MAGIC {
                    return Err(WireError::Value {
                        what: "magic",
                        found: u64::from_be_bytes(magic),
                        expected: "SHEFAGNT",
                    });
                }
                Self::Hello {
                    min: r.u16("first version")?,
                    max: r.u16("last version")?,
                    program: r.text("program")?,
                }
            }
            LIST => Self::List,
            OPEN => {
                let device = r.name("name of the device")?;
                let resume = if r.flag("token's presence")? {
                    Some((Token(r.array("token")?), r.u64("acknowledged number")?))
                } else {
                    None
                };
                Self::Open { device, resume }
            }
            REQUEST => {
                let (id, acked) = (r.u64("number")?, r.u64("acknowledged number")?);
                if id == 0 || acked >= id {
                    return Err(WireError::Value {
                        what: "acknowledged number",
                        found: acked,
                        expected: "less than the request's number",
                    });
                }
                Self::Request { id, acked, op: read_op(&mut r)? }
            }
            found => return Err(WireError::Kind { found }),
        };
        r.end()?;
        Ok(message)
    }
}

fn write_op(w: &mut Writer, op: &DeviceOp) {
    match op {
        DeviceOp::Ctl(ops) => {
            w.u8(0);
            for op in ops {
                match *op {
                    CtlOp::Read { offset } => {
                        w.u8(0);
                        w.u32(offset);
                    }
                    CtlOp::Write { offset, value } => {
                        w.u8(1);
                        w.u32(offset);
                        w.u32(value);
                    }
                    CtlOp::Poll { offset, clear, some, polls } => {
                        w.u8(2);
                        for n in [offset, clear, some, polls] {
                            w.u32(n);
                        }
                    }
                }
            }
        }
        DeviceOp::Kernel(request) => {
            w.u8(1);
            w.raw(request);
        }
        DeviceOp::MemRead { addr, len } => {
            w.u8(2);
            w.u64(*addr);
            w.u32(*len);
        }
        DeviceOp::MemWrite { addr, data } => {
            w.u8(3);
            w.u64(*addr);
            w.raw(data);
        }
        DeviceOp::WaitHint => w.u8(4),
        DeviceOp::WaitInterrupt => w.u8(5),
        DeviceOp::Reset => w.u8(6),
        DeviceOp::Close => w.u8(7),
    }
}

fn read_op(r: &mut Reader<'_>) -> Result<DeviceOp, WireError> {
    Ok(match r.u8("kind of request")? {
        0 => {
            let mut rest = Reader::new(r.rest());
            let mut ops = Vec::new();
            while !rest.is_empty() {
                let kind = rest.u8("access")?;
                if ops.len() == MAX_OPS {
                    return Err(WireError::Value {
                        what: "number of accesses",
                        found: MAX_OPS as u64 + 1,
                        expected: "at most 8192",
                    });
                }
                let offset = rest.u32("offset")?;
                ops.push(match kind {
                    0 => CtlOp::Read { offset },
                    1 => CtlOp::Write { offset, value: rest.u32("value")? },
                    2 => CtlOp::Poll {
                        offset,
                        clear: rest.u32("bits")?,
                        some: rest.u32("bits")?,
                        polls: rest.u32("polls")?,
                    },
                    found => {
                        return Err(WireError::Value {
                            what: "access",
                            found: found.into(),
                            expected: "0 to 2",
                        });
                    }
                });
            }
            DeviceOp::Ctl(ops)
        }
        1 => {
            let request = r.rest();
            if request.len() > mailbox::MAX_REQUEST {
                let found = request.len() as u64;
                return Err(WireError::Value {
                    what: "length of a kernel request",
                    found,
                    expected: "at most 8192 bytes",
                });
            }
            DeviceOp::Kernel(request.to_vec())
        }
        2 => DeviceOp::MemRead { addr: r.u64("address")?, len: bulk(r.u32("length")? as usize)? },
        3 => {
            let addr = r.u64("address")?;
            let data = r.rest();
            bulk(data.len())?;
            DeviceOp::MemWrite { addr, data: data.to_vec() }
        }
        4 => DeviceOp::WaitHint,
        5 => DeviceOp::WaitInterrupt,
        6 => DeviceOp::Reset,
        7 => DeviceOp::Close,
        found => {
            return Err(WireError::Value {
                what: "kind of request",
                found: found.into(),
                expected: "0 to 7",
            });
        }
    })
}

fn bulk(len: usize) -> Result<u32, WireError> {
    match len {
        1..=MAX_BULK => Ok(len as u32),
        _ => Err(WireError::Value {
            what: "length of a transfer",
            found: len as u64,
            expected: "1 to 262144 bytes",
        }),
    }
}

impl ToOwner {
    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Welcome { version, program, owner } => {
                let mut w = Writer::new(WELCOME);
                w.raw(&MAGIC);
                w.u16(*version);
                w.text(program);
                w.text(owner);
                w.finish()
            }
            Self::Devices(list) => {
                let mut w = Writer::new(DEVICES);
                for listed in list.iter().take(MAX_DEVICES) {
                    w.text(&listed.name);
                    // So that the entire list fits into a frame.
                    w.text(&one_line(&listed.description).chars().take(200).collect::<String>());
                    w.u8(
                        DeviceState::ALL.iter().position(|s| *s == listed.state).unwrap_or(0) as u8
                    );
                    w.u8(listed.owner.is_some().into());
                    if let Some(owner) = &listed.owner {
                        w.text(owner);
                    }
                    w.u64(listed.moved);
                }
                w.finish()
            }
            Self::Opened { token, last, info } => {
                let mut w = Writer::new(OPENED);
                w.raw(&token.0);
                w.u64(*last);
                w.text(&info.uri);
                w.text(&info.description);
                w.text(&info.root_of_trust);
                w.u64(info.memory_bytes);
                w.u8(info.counts_cycles.into());
                w.finish()
            }
            Self::Progress { id, text } => {
                let mut w = Writer::new(PROGRESS);
                w.u64(*id);
                w.text(text);
                w.finish()
            }
            Self::Done { id, cycles, answer } => {
                let mut w = Writer::new(DONE);
                w.u64(*id);
                w.option(*cycles);
                match answer {
                    DeviceAnswer::Done => w.u8(0),
                    DeviceAnswer::Flag(flag) => {
                        w.u8(1);
                        w.u8((*flag).into());
                    }
                    DeviceAnswer::Values(values) => {
                        w.u8(2);
                        values.iter().for_each(|value| w.u32(*value));
                    }
                    DeviceAnswer::Bytes(bytes) => {
                        w.u8(3);
                        w.raw(bytes);
                    }
                }
                w.finish()
            }
            Self::Failed { id, cycles, error } => {
                let mut w = Writer::new(FAILED);
                w.u64(*id);
                w.option(*cycles);
                error::write(&mut w, error);
                w.finish()
            }
            Self::Refused { code, message } => {
                let mut w = Writer::new(REFUSED);
                w.text(code);
                w.text(message);
                w.finish()
            }
        }
    }

    /// Decodes a frame without its length.
    ///
    /// # Errors
    /// Anything that is not exactly one message.
    pub fn decode(frame: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(frame);
        let message = match r.u8("kind of message")? {
            WELCOME => {
                let magic = r.array("magic")?;
                if magic != MAGIC {
                    return Err(WireError::Value {
                        what: "magic",
                        found: u64::from_be_bytes(magic),
                        expected: "SHEFAGNT",
                    });
                }
                Self::Welcome {
                    version: r.u16("version")?,
                    program: r.text("program")?,
                    owner: r.name("owner")?,
                }
            }
            DEVICES => {
                let mut rest = Reader::new(r.rest());
                let mut list = Vec::new();
                while let Some(listed) = read_listed(&mut rest)? {
                    if list.len() == MAX_DEVICES {
                        return Err(WireError::Value {
                            what: "number of devices",
                            found: list.len() as u64 + 1,
                            expected: "at most 256",
                        });
                    }
                    list.push(listed);
                }
                Self::Devices(list)
            }
            OPENED => {
                let (token, last) = (Token(r.array("token")?), r.u64("number")?);
                let (uri, description, root) =
                    (r.text("URI")?, r.text("description")?, r.text("root of trust")?);
                let info = DeviceInfo::new(
                    uri,
                    description,
                    root,
                    r.u64("memory size")?,
                    r.flag("clock")?,
                );
                Self::Opened { token, last, info }
            }
            PROGRESS => Self::Progress { id: r.u64("number")?, text: r.text("text")? },
            DONE => {
                let (id, cycles) = (r.u64("number")?, r.option("cycles")?);
                let answer = match r.u8("kind of answer")? {
                    0 => DeviceAnswer::Done,
                    1 => DeviceAnswer::Flag(r.flag("flag")?),
                    2 => {
                        let (words, odd) = r.rest().as_chunks::<4>();
                        if !odd.is_empty() {
                            return Err(WireError::Short { what: "value" });
                        }
                        DeviceAnswer::Values(
                            words.iter().map(|word| u32::from_be_bytes(*word)).collect(),
                        )
                    }
                    3 => DeviceAnswer::Bytes(r.rest().to_vec()),
                    found => {
                        return Err(WireError::Value {
                            what: "kind of answer",
                            found: found.into(),
                            expected: "0 to 3",
                        });
                    }
                };
                Self::Done { id, cycles, answer }
            }
            FAILED => Self::Failed {
                id: r.u64("number")?,
                cycles: r.option("cycles")?,
                error: error::read(&mut r)?,
            },
            REFUSED => Self::Refused { code: error::code(&mut r)?, message: r.text("message")? },
            found => return Err(WireError::Kind { found }),
        };
        r.end()?;
        Ok(message)
    }
}

/// The next device of a list, `None` at its end.
fn read_listed(r: &mut Reader<'_>) -> Result<Option<Listed>, WireError> {
    if r.is_empty() {
        return Ok(None);
    }
    let (name, description) = (r.name("name of a device")?, r.text("description")?);
    let state = r.u8("state")?;
    let state = *DeviceState::ALL.get(usize::from(state)).ok_or(WireError::Value {
        what: "state",
        found: state.into(),
        expected: "0 to 5",
    })?;
    let owner = if r.flag("owner's presence")? { Some(r.name("owner")?) } else { None };
    Ok(Some(Listed { name, description, state, owner, moved: r.u64("moved bytes")? }))
}
