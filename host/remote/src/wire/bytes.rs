//! Frames, and reading and writing the fields of a message.

use shef_proto::cbor::printable;

use super::MAX_FRAME;

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A frame of no or too many bytes.
    #[error("a frame of {found} bytes; expected 1 to {MAX_FRAME}")]
    FrameLength {
        /// Bytes that its head says.
        found: usize,
    },
    /// A kind of message that this side does not take.
    #[error("message kind {found:#04x} is none of this protocol")]
    Kind {
        /// The kind.
        found: u8,
    },
    /// The body ends before the message does.
    #[error("{what} is cut off")]
    Short {
        /// Which field.
        what: &'static str,
    },
    /// The body goes on after the message.
    #[error("{found} bytes after the message")]
    Trailing {
        /// Bytes.
        found: usize,
    },
    /// A field has a value that it cannot have.
    #[error("{what} is {found}, expected {expected}")]
    Value {
        /// Which field.
        what: &'static str,
        /// Its value.
        found: u64,
        /// What it can be.
        expected: &'static str,
    },
    /// A text is not UTF-8, or not of the characters that it may have.
    #[error("{what} is no valid text")]
    Text {
        /// Which field.
        what: &'static str,
    },
}

/// Cuts a stream of bytes into frames. Holds at most one frame and what was read with it.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    start: usize,
}

impl Frames {
    /// Nothing was received.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what came in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether something came in that is not taken: after [`Frames::take`] gave nothing, the
    /// beginning of a frame.
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

/// A frame that is being written.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(kind: u8) -> Self {
        Self(vec![0, 0, 0, 0, kind])
    }

    /// The frame with its length.
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

    /// A text with its length in front.
    pub(super) fn text(&mut self, text: &str) {
        let text = super::shortened(text);
        self.u16(text.len() as u16);
        self.raw(text.as_bytes());
    }
}

/// The body of a frame that is being read.
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

    /// All that is left.
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

    pub(super) fn text(&mut self, what: &'static str) -> Result<String, WireError> {
        let len = usize::from(self.u16(what)?);
        if len > super::MAX_TEXT {
            return Err(WireError::Value {
                what,
                found: len as u64,
                expected: "at most 2048 bytes",
            });
        }
        printable(self.slice(len, what)?).map(str::to_owned).ok_or(WireError::Text { what })
    }

    pub(super) fn name(&mut self, what: &'static str) -> Result<String, WireError> {
        let name = self.text(what)?;
        if shef_device::is_name(&name) { Ok(name) } else { Err(WireError::Text { what }) }
    }
}
