//! Frames, and encoding and decoding the fields of a message.

use shef_proto::cbor::printable;
use shef_proto::text::one_line;

use super::MAX_FRAME;

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A frame that is empty or too long.
    #[error("a frame of {found} bytes; expected 1 to {MAX_FRAME}")]
    FrameLength {
        /// Length in its header.
        found: usize,
    },
    /// A message kind that this side does not accept.
    #[error("unknown message kind {found:#04x}")]
    Kind {
        /// The kind.
        found: u8,
    },
    /// The body is too short for the message.
    #[error("{what} is truncated")]
    Short {
        /// Which field.
        what: &'static str,
    },
    /// The body continues after the message.
    #[error("{found} bytes after the message")]
    Trailing {
        /// Number of excess bytes.
        found: usize,
    },
    /// A field has an invalid value.
    #[error("{what} is {found}, expected {expected}")]
    Value {
        /// Which field.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
    /// A text is not UTF-8, or has characters that are not allowed.
    #[error("{what} is not valid text")]
    Text {
        /// Which field.
        what: &'static str,
    },
}

/// Splits a stream of bytes into frames. Holds at most one frame and the bytes read with it.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    start: usize,
}

impl Frames {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether received bytes are left: once [`Frames::take`] has returned `None`, the beginning of
    /// a frame.
    pub fn is_begun(&self) -> bool {
        self.start < self.bytes.len()
    }

    /// The next whole frame, without its length.
    ///
    /// # Errors
    /// [`WireError::FrameLength`]; the stream is unusable then.
    pub fn take(&mut self) -> Result<Option<&[u8]>, WireError> {
        let rest = &self.bytes[self.start..];
        let Some((head, body)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        let found = u32::from_be_bytes(*head) as usize;
        if found == 0 || found > MAX_FRAME {
            return Err(WireError::FrameLength { found });
        }
        if body.len() < found {
            return Ok(None);
        }
        let from = self.start + 4;
        self.start = from + found;
        Ok(Some(&self.bytes[from..self.start]))
    }
}

/// A frame being written.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    /// The frame, including its length.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() - 4;
        debug_assert!(len <= MAX_FRAME, "a frame of {len} bytes");
        self.0[..4].copy_from_slice(&(len as u32).to_be_bytes());
        self.0
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.raw(&value.to_be_bytes());
    }

    /// 0, or 1 and the value.
    pub(super) fn option(&mut self, value: Option<u64>) {
        self.u8(value.is_some().into());
        if let Some(value) = value {
            self.u64(value);
        }
    }

    /// A text on [one line](one_line), preceded by its length.
    pub(super) fn text(&mut self, text: &str) {
        let text = one_line(text);
        let text = super::shortened(&text);
        self.u16(text.len() as u16);
        self.raw(text.as_bytes());
    }
}

/// The body of a frame being read.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn end(self) -> Result<(), WireError> {
        match self.0.len() {
            0 => Ok(()),
            found => Err(WireError::Trailing { found }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All remaining bytes.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    pub(super) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], WireError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::Short { what })?;
        self.0 = rest;
        Ok(*head)
    }

    fn slice(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(WireError::Short { what })?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.array::<1>(what).map(|[b]| b)
    }

    pub(super) fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        self.array(what).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        self.array(what).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, WireError> {
        self.array(what).map(u64::from_be_bytes)
    }

    pub(super) fn flag(&mut self, what: &'static str) -> Result<bool, WireError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(WireError::Value { what, found: found.into(), expected: "0 or 1" }),
        }
    }

    pub(super) fn option(&mut self, what: &'static str) -> Result<Option<u64>, WireError> {
        if self.flag(what)? { self.u64(what).map(Some) } else { Ok(None) }
    }

    /// A text of the peer, on [one line](one_line).
    pub(super) fn text(&mut self, what: &'static str) -> Result<String, WireError> {
        let len = usize::from(self.u16(what)?);
        if len > super::MAX_TEXT {
            return Err(WireError::Value {
                what,
                found: len as u64,
                expected: "at most 2048 bytes",
            });
        }
        printable(self.slice(len, what)?).map(one_line).ok_or(WireError::Text { what })
    }

    pub(super) fn name(&mut self, what: &'static str) -> Result<String, WireError> {
        let name = self.text(what)?;
        if shef_device::is_name(&name) { Ok(name) } else { Err(WireError::Text { what }) }
    }
}
