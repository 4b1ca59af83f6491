//! Messages between host and Security Kernel, through the card's mailbox.
//!
//! One request, one answer, each one CBOR item of at most 8 KiB. The host is untrusted: the kernel
//! copies a request before parsing it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::cbor::{self, CborError, Fields, Item, Limits, Value};
use crate::evidence::{AUDIENCE_MAX, NAME_MAX, NONCE_MAX, NONCE_MIN};
use crate::image::{MAX_CHUNK, MAX_HEADER, TAG_LEN};
use crate::release::MAX_BOX;

/// Maximum size of a request or an answer.
pub const MAX_MESSAGE: usize = 8 * 1024;
/// Maximum number of image header bytes in one request.
pub const MAX_PART: usize = 4096;
/// Maximum length of the text in an error answer.
pub const MAX_TEXT: usize = 512;

crate::coded! {
    /// Why a mailbox message is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum MailboxError {
        /// Not strict CBOR, or not the fields of a message.
        #[error(transparent)]
        Cbor(#[from] CborError) => (error) error.code(),
        /// An operation that the kernel does not support.
        #[error("unknown kernel operation {op}")]
        Operation {
            /// Its number.
            op: u64,
        } = "SHEF-PRO-060": "unknown kernel operation",
            "The request names an operation that this kernel does not have; host and kernel differ in version.",
        /// An answer to another kind of request.
        #[error("the answer is to another request")]
        Answer = "SHEF-PRO-061": "answer to another request",
            "The mailbox gave an answer of another kind than the request asks for. Something between host and kernel mixes up messages.",
        /// The kernel refused.
        #[error("the kernel refused: {text} ({code})")]
        Refused {
            /// Code of the kernel's error.
            code: String,
            /// Its text.
            text: String,
        } = "SHEF-PRO-062": "the kernel refused a request",
            "The Security Kernel answered with an error; its own code stands beside this one.",
    }
}

impl MailboxError {
    /// The kernel's code, if the kernel refused.
    #[must_use]
    pub fn kernel_code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }
}

/// A request of the host to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Version and state of the kernel.
    Status,
    /// The certificates `[AK, DeviceID]`.
    Certificates,
    /// Evidence of the kernel with a fresh KEM key; an earlier KEM key is erased.
    KernelEvidence {
        /// The challenge.
        nonce: Vec<u8>,
        /// The audience.
        audience: String,
    },
    /// Begins to load an image: the released key and the length of the signed header.
    LoadBegin {
        /// [`crate::release::KeyBox`] in CBOR.
        key_box: Vec<u8>,
        /// Bytes of the signed header.
        header_len: usize,
    },
    /// The next part of the signed header.
    LoadHeader {
        /// Its offset: the number of bytes already sent.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The next sealed chunk.
    LoadChunk {
        /// Its number.
        index: usize,
        /// The sealed bytes.
        bytes: Vec<u8>,
    },
    /// All chunks are sent: program the image.
    LoadFinish,
    /// A new seed for a Shield that has none or whose session is over.
    NewSession,
    /// Evidence of the loaded Shield; hands over a seed first if the Shield has none.
    ShieldEvidence {
        /// The challenge.
        nonce: Vec<u8>,
        /// The audience.
        audience: String,
    },
    /// The close record of the finished session.
    CloseRecord,
    /// Wipes the Shield and erases image, KEM key and session.
    Reset,
}

mod op {
    pub const STATUS: u64 = 0x01;
    pub const CERTIFICATES: u64 = 0x02;
    pub const KERNEL_EVIDENCE: u64 = 0x10;
    pub const LOAD_BEGIN: u64 = 0x20;
    pub const LOAD_HEADER: u64 = 0x21;
    pub const LOAD_CHUNK: u64 = 0x22;
    pub const LOAD_FINISH: u64 = 0x23;
    pub const NEW_SESSION: u64 = 0x30;
    pub const SHIELD_EVIDENCE: u64 = 0x31;
    pub const CLOSE_RECORD: u64 = 0x32;
    pub const RESET: u64 = 0x40;
}

/// Items of a message: at most eight fields, or a list of certificates.
const ITEMS: usize = 32;

/// `[number, {fields}]`.
fn message(number: u64, fields: Vec<(i64, Value)>) -> Vec<u8> {
    Value::Array(vec![number.into(), Value::map(fields)]).encode()
}

fn open<'a>(bytes: &'a [u8], what: &'static str) -> Result<(u64, Fields<'a>), CborError> {
    let shape = CborError::Shape { what, expected: "[number, {fields}]" };
    let Value::Array(items) = cbor::read(bytes, &Limits::bytes(MAX_MESSAGE).items(ITEMS))? else {
        return Err(shape);
    };
    let Ok([number, fields]) = <[Item<'_>; 2]>::try_from(items) else { return Err(shape) };
    let Value::Uint(number) = number else { return Err(shape) };
    Ok((number, Fields::new(fields, what)?))
}

impl Request {
    fn op(&self) -> u64 {
        match self {
            Self::Status => op::STATUS,
            Self::Certificates => op::CERTIFICATES,
            Self::KernelEvidence { .. } => op::KERNEL_EVIDENCE,
            Self::LoadBegin { .. } => op::LOAD_BEGIN,
            Self::LoadHeader { .. } => op::LOAD_HEADER,
            Self::LoadChunk { .. } => op::LOAD_CHUNK,
            Self::LoadFinish => op::LOAD_FINISH,
            Self::NewSession => op::NEW_SESSION,
            Self::ShieldEvidence { .. } => op::SHIELD_EVIDENCE,
            Self::CloseRecord => op::CLOSE_RECORD,
            Self::Reset => op::RESET,
        }
    }

    /// The bytes of the request.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let fields = match self {
            Self::KernelEvidence { nonce, audience } | Self::ShieldEvidence { nonce, audience } => {
                vec![(1, nonce.as_slice().into()), (2, audience.as_str().into())]
            }
            Self::LoadBegin { key_box, header_len } => {
                vec![(1, key_box.as_slice().into()), (2, (*header_len as u64).into())]
            }
            Self::LoadHeader { offset: number, bytes }
            | Self::LoadChunk { index: number, bytes } => {
                vec![(1, (*number as u64).into()), (2, bytes.as_slice().into())]
            }
            _ => Vec::new(),
        };
        message(self.op(), fields)
    }

    /// Parses a request.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn decode(bytes: &[u8]) -> Result<Self, MailboxError> {
        let (number, mut f) = open(bytes, "request")?;
        let request = match number {
            op::STATUS => Self::Status,
            op::CERTIFICATES => Self::Certificates,
            op::KERNEL_EVIDENCE => Self::KernelEvidence {
                nonce: f.bytes(1, NONCE_MIN..=NONCE_MAX)?.into(),
                audience: f.text(2, 1..=AUDIENCE_MAX)?.into(),
            },
            op::LOAD_BEGIN => Self::LoadBegin {
                key_box: f.bytes(1, 1..=MAX_BOX)?.into(),
                header_len: f.uint(2, MAX_HEADER as u64)? as usize,
            },
            op::LOAD_HEADER => Self::LoadHeader {
                offset: f.uint(1, MAX_HEADER as u64)? as usize,
                bytes: f.bytes(2, 1..=MAX_PART)?.into(),
            },
            op::LOAD_CHUNK => Self::LoadChunk {
                index: f.uint(1, u64::from(u32::MAX))? as usize,
                bytes: f.bytes(2, 1..=MAX_CHUNK + TAG_LEN)?.into(),
            },
            op::LOAD_FINISH => Self::LoadFinish,
            op::NEW_SESSION => Self::NewSession,
            op::SHIELD_EVIDENCE => Self::ShieldEvidence {
                nonce: f.bytes(1, NONCE_MIN..=NONCE_MAX)?.into(),
                audience: f.text(2, 1..=AUDIENCE_MAX)?.into(),
            },
            op::CLOSE_RECORD => Self::CloseRecord,
            op::RESET => Self::Reset,
            op => return Err(MailboxError::Operation { op }),
        };
        f.finish()?;
        Ok(request)
    }
}

/// State of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelState {
    /// No image is loaded.
    Idle,
    /// An image is being loaded.
    Loading,
    /// An image is loaded.
    Loaded,
    /// The kernel refuses everything until the next power-on (debug was turned on, or the Shield
    /// misbehaves).
    Halted,
}

impl KernelState {
    const ALL: [Self; 4] = [Self::Idle, Self::Loading, Self::Loaded, Self::Halted];

    /// Name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Loading => "loading",
            Self::Loaded => "loaded",
            Self::Halted => "halted",
        }
    }
}

/// Status for the host; a hint, not a basis for decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// State of the kernel.
    pub state: KernelState,
    /// Version of the kernel.
    pub kernel_version: String,
    /// Security version number of the kernel.
    pub kernel_svn: u64,
    /// Kind of root of trust, by name.
    pub root_of_trust: String,
    /// Type of the device, which images name as their target.
    pub target: String,
    /// Name of the loaded accelerator.
    pub accelerator: Option<String>,
}

/// An answer of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request succeeded without a result.
    Done,
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Certificates`]: leaf first.
    Certificates(Vec<Vec<u8>>),
    /// To requests for evidence.
    Evidence(Vec<u8>),
    /// To [`Request::LoadFinish`].
    Loaded {
        /// Image digest.
        image_digest: [u8; 32],
        /// Configuration digest, as the Shield shows it.
        config_digest: [u8; 32],
    },
    /// To [`Request::CloseRecord`].
    CloseRecord(Vec<u8>),
    /// The kernel refused.
    Error {
        /// Code of its error.
        code: String,
        /// Text of its error.
        text: String,
    },
}

mod kind {
    pub const DONE: u64 = 0;
    pub const STATUS: u64 = 1;
    pub const CERTIFICATES: u64 = 2;
    pub const EVIDENCE: u64 = 3;
    pub const LOADED: u64 = 4;
    pub const CLOSE_RECORD: u64 = 5;
    pub const ERROR: u64 = 15;
}

impl Answer {
    /// The bytes of the answer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Done => message(kind::DONE, Vec::new()),
            Self::Status(status) => {
                let mut fields = vec![
                    (1, (status.state as u64).into()),
                    (2, status.kernel_version.as_str().into()),
                    (3, status.kernel_svn.into()),
                    (4, status.root_of_trust.as_str().into()),
                    (5, status.target.as_str().into()),
                ];
                if let Some(name) = &status.accelerator {
                    fields.push((6, name.as_str().into()));
                }
                message(kind::STATUS, fields)
            }
            Self::Certificates(list) => message(
                kind::CERTIFICATES,
                vec![(1, Value::Array(list.iter().map(|der| der.as_slice().into()).collect()))],
            ),
            Self::Evidence(bytes) => message(kind::EVIDENCE, vec![(1, bytes.as_slice().into())]),
            Self::Loaded { image_digest, config_digest } => {
                message(kind::LOADED, vec![(1, image_digest.into()), (2, config_digest.into())])
            }
            Self::CloseRecord(bytes) => {
                message(kind::CLOSE_RECORD, vec![(1, bytes.as_slice().into())])
            }
            Self::Error { code, text } => {
                message(kind::ERROR, vec![(1, code.as_str().into()), (2, text.as_str().into())])
            }
        }
    }

    /// Parses an answer.
    ///
    /// # Errors
    /// The first violated rule. [`Answer::Error`] is not an error here: see
    /// [`Answer::into_result`].
    pub fn decode(bytes: &[u8]) -> Result<Self, MailboxError> {
        let (number, mut f) = open(bytes, "answer")?;
        let answer = match number {
            kind::DONE => Self::Done,
            kind::STATUS => Self::Status(Status {
                state: {
                    let n = f.uint(1, 3)?;
                    KernelState::ALL[n as usize]
                },
                kernel_version: f.text(2, 0..=NAME_MAX)?.into(),
                kernel_svn: f.uint(3, u64::MAX)?,
                root_of_trust: f.text(4, 1..=NAME_MAX)?.into(),
                target: f.text(5, 1..=NAME_MAX)?.into(),
                accelerator: match f.optional(6) {
                    None => None,
                    Some(Value::Text(name)) if name.len() <= NAME_MAX => Some(name.into()),
                    Some(_) => return Err(f.bad(6, "a name").into()),
                },
            }),
            kind::CERTIFICATES => {
                let Value::Array(list) = f.take(1)? else {
                    return Err(f.bad(1, "a list of certificates").into());
                };
                let mut certificates = Vec::with_capacity(list.len());
                for der in list {
                    let Value::Bytes(der) = der else {
                        return Err(f.bad(1, "a list of certificates").into());
                    };
                    certificates.push(der.to_vec());
                }
                Self::Certificates(certificates)
            }
            kind::EVIDENCE => Self::Evidence(f.bytes(1, 1..=MAX_MESSAGE)?.into()),
            kind::LOADED => Self::Loaded { image_digest: f.array(1)?, config_digest: f.array(2)? },
            kind::CLOSE_RECORD => Self::CloseRecord(f.bytes(1, 1..=MAX_MESSAGE)?.into()),
            kind::ERROR => Self::Error {
                code: f.text(1, 1..=32)?.into(),
                text: f.text(2, 0..=MAX_TEXT)?.into(),
            },
            op => return Err(MailboxError::Operation { op }),
        };
        f.finish()?;
        Ok(answer)
    }

    /// The answer, or the kernel's refusal as an error.
    ///
    /// # Errors
    /// [`MailboxError::Refused`].
    pub fn into_result(self) -> Result<Self, MailboxError> {
        match self {
            Self::Error { code, text } => Err(MailboxError::Refused { code, text }),
            answer => Ok(answer),
        }
    }
}

/// Decodes the answer to a request for evidence.
///
/// # Errors
/// Malformed, refused, or of another kind.
pub fn evidence_answer(bytes: &[u8]) -> Result<Vec<u8>, MailboxError> {
    match Answer::decode(bytes)?.into_result()? {
        Answer::Evidence(evidence) => Ok(evidence),
        _ => Err(MailboxError::Answer),
    }
}

/// The requests that load an image, in order: begin, header parts, chunks, finish. The answer to
/// the last one is [`Answer::Loaded`].
#[must_use]
pub fn load_requests(container: &crate::image::Container, key_box: &[u8]) -> Vec<Request> {
    let header = container.header().bytes();
    let mut out = vec![Request::LoadBegin { key_box: key_box.to_vec(), header_len: header.len() }];
    for (part, bytes) in header.chunks(MAX_PART).enumerate() {
        out.push(Request::LoadHeader { offset: part * MAX_PART, bytes: bytes.to_vec() });
    }
    for (index, bytes) in container.chunks().iter().enumerate() {
        out.push(Request::LoadChunk { index, bytes: bytes.clone() });
    }
    out.push(Request::LoadFinish);
    out
}
