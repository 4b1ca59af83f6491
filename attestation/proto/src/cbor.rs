//! Strict deterministic CBOR (RFC 8949 section 4.2.1).
//!
//! [`read`] and [`parse`] check external bytes before any other use. They accept one item of
//! definite lengths, shortest integers, map keys in ascending order of their encoding without
//! duplicates, valid UTF-8, no floats, no undefined values, within [`Limits`] and without trailing
//! bytes. Accepted bytes have exactly one encoding, which [`Value::encode`] reproduces.

use alloc::{boxed::Box, string::String, vec::Vec};

use minicbor::Encoder;

crate::coded! {
    /// Why bytes are not a valid CBOR message.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CborError {
        /// The item ends before its last byte, or its first byte is reserved.
        #[error("malformed CBOR at byte {offset}")]
        Malformed {
            /// The position.
            offset: usize,
        } = "SHEF-PRO-001": "malformed CBOR",
            "The message ends early or holds a reserved byte. It was cut or damaged on the way; ask for it again.",
        /// Well-formed, but not the one deterministic encoding, or a kind of item that no format
        /// here uses.
        #[error("CBOR at byte {offset} is not deterministic: {what}")]
        NotDeterministic {
            /// The position.
            offset: usize,
            /// The violated rule.
            what: &'static str,
        } = "SHEF-PRO-002": "CBOR is not deterministic",
            "The message is well-formed but not in the one deterministic encoding (RFC 8949 section 4.2.1): definite lengths, shortest \
             integers, sorted keys without repeats, no floats. The sender does not follow the format.",
        /// Exceeds a limit on length, depth or number of items.
        #[error("CBOR exceeds the limit on {what} ({limit})")]
        Limit {
            /// Which limit.
            what: &'static str,
            /// Its value.
            limit: usize,
        } = "SHEF-PRO-003": "CBOR exceeds a limit", "The message is longer, deeper or holds more items than its format allows.",
        /// Trailing bytes after the item.
        #[error("{extra} bytes after the end of the CBOR item")]
        Trailing {
            /// How many.
            extra: usize,
        } = "SHEF-PRO-004": "bytes after the end of a message",
            "The message is followed by bytes that do not belong to it. Formats here end with their last byte.",
        /// A required field is missing.
        #[error("{what}: field {key} is missing")]
        Missing {
            /// The message.
            what: &'static str,
            /// Key of the field.
            key: i64,
        } = "SHEF-PRO-005": "field missing",
            "A field that the format demands is not in the message. The reference pages under docs/reference list the fields.",
        /// A field of the wrong type, length or range.
        #[error("{what}: field {key} is not {expected}")]
        Field {
            /// The message.
            what: &'static str,
            /// Key of the field.
            key: i64,
            /// Expected value.
            expected: &'static str,
        } = "SHEF-PRO-006": "field of the wrong type or size",
            "A field is there, but of another type, length or range than the format says.",
        /// The whole message has the wrong shape.
        #[error("{what} is not {expected}")]
        Shape {
            /// The message.
            what: &'static str,
            /// Expected shape.
            expected: &'static str,
        } = "SHEF-PRO-006",
        /// A field that the format does not define.
        #[error("{what}: unknown field")]
        Unknown {
            /// The message.
            what: &'static str,
        } = "SHEF-PRO-007": "unknown field",
            "The message holds a field that this version of the format does not have. Unknown fields are refused, not skipped.",
    }
}

/// Bounds of a message.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Total bytes.
    pub len: usize,
    /// Nesting depth of arrays, maps and tags.
    pub depth: usize,
    /// Total items.
    pub items: usize,
}

impl Limits {
    /// Limits of `len` bytes, with the depth and number of items that the formats here need.
    #[must_use]
    pub const fn bytes(len: usize) -> Self {
        Self { len, depth: 16, items: 16_384 }
    }

    /// The same with a maximum number of items: a message can claim a small multiple of that in
    /// memory.
    #[must_use]
    pub const fn items(self, items: usize) -> Self {
        Self { items, ..self }
    }
}

/// One CBOR item with owned strings. [`Item`] is the same with strings borrowed from the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<B = Vec<u8>, T = String> {
    /// Major type 0.
    Uint(u64),
    /// Major type 1: the number is `-1 - n`.
    Nint(u64),
    /// Major type 2.
    Bytes(B),
    /// Major type 3.
    Text(T),
    /// Major type 4.
    Array(Vec<Self>),
    /// Major type 5. [`Value::encode`] sorts the entries; [`parse`] gives them in order.
    Map(Vec<(Self, Self)>),
    /// Major type 6.
    Tag(u64, Box<Self>),
    /// `false`, `true`.
    Bool(bool),
    /// `null`.
    Null,
}

/// One CBOR item that borrows from a message.
pub type Item<'a> = Value<&'a [u8], &'a str>;

impl From<Item<'_>> for Value {
    fn from(item: Item<'_>) -> Self {
        match item {
            Value::Uint(n) => Self::Uint(n),
            Value::Nint(n) => Self::Nint(n),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Text(text) => Self::Text(text.into()),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Map(entries) => Self::Map(
                entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            ),
            Value::Tag(tag, item) => Self::Tag(tag, Box::new((*item).into())),
            Value::Bool(b) => Self::Bool(b),
            Value::Null => Self::Null,
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Self::Uint(n)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl<B, T> Value<B, T> {
    /// The integer, if it is one and fits.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Uint(n) => i64::try_from(*n).ok(),
            Self::Nint(n) => i64::try_from(*n).ok().map(|n| -1 - n),
            _ => None,
        }
    }
}

impl Value {
    /// An integer of either sign.
    #[must_use]
    pub fn int(n: i64) -> Self {
        match u64::try_from(n) {
            Ok(n) => Self::Uint(n),
            Err(_) => Self::Nint(!n.cast_unsigned()),
        }
    }

    /// A map with integer keys.
    #[must_use]
    pub fn map(entries: Vec<(i64, Value)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (Self::int(key), value)).collect())
    }

    /// The deterministic encoding.
    ///
    /// A map with duplicate keys has no such encoding; building one is a defect of the caller, and
    /// [`parse`] refuses the result.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(Vec::new());
        self.write(&mut encoder);
        encoder.into_writer()
    }

    fn write(&self, e: &mut Encoder<Vec<u8>>) {
        // Writing to a Vec cannot fail.
        match self {
            Self::Uint(n) => drop(e.u64(*n)),
            Self::Nint(n) => {
                let int = minicbor::data::Int::try_from(-1 - i128::from(*n));
                if let Ok(int) = int {
                    drop(e.int(int));
                }
            }
            Self::Bytes(bytes) => drop(e.bytes(bytes)),
            Self::Text(text) => drop(e.str(text)),
            Self::Bool(b) => drop(e.bool(*b)),
            Self::Null => drop(e.null()),
            Self::Tag(tag, value) => {
                drop(e.tag(minicbor::data::Tag::new(*tag)));
                value.write(e);
            }
            Self::Array(items) => {
                drop(e.array(items.len() as u64));
                for item in items {
                    item.write(e);
                }
            }
            Self::Map(entries) => {
                let mut encoded: Vec<(Vec<u8>, &Value)> =
                    entries.iter().map(|(key, value)| (key.encode(), value)).collect();
                encoded.sort_by(|a, b| a.0.cmp(&b.0));
                drop(e.map(encoded.len() as u64));
                for (key, value) in encoded {
                    e.writer_mut().extend_from_slice(&key);
                    value.write(e);
                }
            }
        }
    }
}

/// Checks that `bytes` are exactly one deterministic item within `limits`.
///
/// # Errors
/// The first violated rule.
pub fn check(bytes: &[u8], limits: &Limits) -> Result<(), CborError> {
    read(bytes, limits).map(drop)
}

/// Reads exactly one deterministic item and copies its strings.
///
/// # Errors
/// The first violated rule.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, CborError> {
    read(bytes, limits).map(Value::from)
}

/// Reads exactly one deterministic item and borrows its strings.
///
/// # Errors
/// The first violated rule.
pub fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Item<'a>, CborError> {
    if bytes.len() > limits.len {
        return Err(CborError::Limit { what: "length", limit: limits.len });
    }
    let mut reader = Reader { bytes, at: 0, items: 0, limits: *limits };
    let item = reader.item(0)?;
    match bytes.len() - reader.at {
        0 => Ok(item),
        extra => Err(CborError::Trailing { extra }),
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    items: usize,
    limits: Limits,
}

/// Maximum capacity reserved for a list before its items are read: a short message cannot claim
/// much memory.
const ROOM: usize = 32;

impl<'a> Reader<'a> {
    fn take(&mut self, n: u64) -> Result<&'a [u8], CborError> {
        let end = usize::try_from(n)
            .ok()
            .and_then(|n| self.at.checked_add(n))
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(CborError::Malformed { offset: self.at })?;
        let slice = &self.bytes[self.at..end];
        self.at = end;
        Ok(slice)
    }

    fn bad(&self, offset: usize, what: &'static str) -> CborError {
        CborError::NotDeterministic { offset, what }
    }

    /// First byte and argument of an item.
    fn head(&mut self) -> Result<(u8, u64), CborError> {
        let offset = self.at;
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 0x1f);
        let (n, least) = match info {
            0..=23 => (u64::from(info), 0),
            24..=27 => {
                let width = 1u64 << (info - 24);
                let n = self.take(width)?.iter().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
                // One more than the largest value of the next shorter form.
                let least = match width {
                    1 => 24,
                    2 => 1 << 8,
                    4 => 1 << 16,
                    _ => 1 << 32,
                };
                (n, least)
            }
            31 => return Err(self.bad(offset, "indefinite length")),
            _ => return Err(CborError::Malformed { offset }),
        };
        if major == 7 {
            return match info {
                20..=22 => Ok((major, n)),
                25..=27 => Err(self.bad(offset, "float")),
                _ => Err(self.bad(offset, "simple value")),
            };
        }
        if n < least {
            return Err(self.bad(offset, "integer is not in its shortest form"));
        }
        Ok((major, n))
    }

    /// A count of items that the remaining bytes can hold.
    fn room(&self, n: u64) -> Result<usize, CborError> {
        let left = self.bytes.len() - self.at;
        usize::try_from(n)
            .ok()
            .filter(|n| *n <= left)
            .ok_or(CborError::Malformed { offset: self.at })
    }

    fn item(&mut self, depth: usize) -> Result<Item<'a>, CborError> {
        if depth > self.limits.depth {
            return Err(CborError::Limit { what: "depth", limit: self.limits.depth });
        }
        self.items += 1;
        if self.items > self.limits.items {
            return Err(CborError::Limit { what: "items", limit: self.limits.items });
        }
        let offset = self.at;
        let (major, n) = self.head()?;
        Ok(match major {
            0 => Value::Uint(n),
            1 => Value::Nint(n),
            2 => Value::Bytes(self.take(n)?),
            3 => match core::str::from_utf8(self.take(n)?) {
                Ok(text) => Value::Text(text),
                Err(_) => return Err(self.bad(offset, "text is not UTF-8")),
            },
            4 => {
                let n = self.room(n)?;
                let mut items = Vec::with_capacity(n.min(ROOM));
                for _ in 0..n {
                    items.push(self.item(depth + 1)?);
                }
                Value::Array(items)
            }
            5 => {
                let n = self.room(n)?;
                let mut entries = Vec::with_capacity(n.min(ROOM));
                let mut last: Option<(usize, usize)> = None;
                for _ in 0..n {
                    let start = self.at;
                    let key = self.item(depth + 1)?;
                    let end = self.at;
                    if let Some((from, to)) = last {
                        match self.bytes[from..to].cmp(&self.bytes[start..end]) {
                            core::cmp::Ordering::Less => {}
                            core::cmp::Ordering::Equal => {
                                return Err(self.bad(start, "a map key appears twice"));
                            }
                            core::cmp::Ordering::Greater => {
                                return Err(self.bad(start, "map keys are not sorted"));
                            }
                        }
                    }
                    last = Some((start, end));
                    entries.push((key, self.item(depth + 1)?));
                }
                Value::Map(entries)
            }
            6 => Value::Tag(n, Box::new(self.item(depth + 1)?)),
            _ => match n {
                20 => Value::Bool(false),
                21 => Value::Bool(true),
                _ => Value::Null,
            },
        })
    }
}

/// Whether an external text may be printed unchanged. It has no control characters except line
/// ends, so that its author cannot drive a terminal.
#[must_use]
pub fn is_printable(text: &str) -> bool {
    // Most texts are ASCII; this check covers many bytes at once.
    text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'))
        || text.chars().all(|c| !c.is_control() || c == '\n')
}

/// The text in external bytes, if it is UTF-8 and [`is_printable`].
#[must_use]
pub fn printable(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok().filter(|text| is_printable(text))
}

/// Fields of a map with integer keys. Each is taken once, and none may remain at the end.
pub struct Fields<'a> {
    what: &'static str,
    entries: Vec<(Item<'a>, Item<'a>)>,
}

impl<'a> Fields<'a> {
    /// The fields of `item`; `what` names the message in errors.
    ///
    /// # Errors
    /// `item` is not a map with integer keys.
    pub fn new(item: Item<'a>, what: &'static str) -> Result<Self, CborError> {
        let Value::Map(entries) = item else {
            return Err(CborError::Shape { what, expected: "a map" });
        };
        if entries.iter().any(|(key, _)| key.as_int().is_none()) {
            return Err(CborError::Unknown { what });
        }
        Ok(Self { what, entries })
    }

    /// The items of an array as fields keyed by their index.
    #[must_use]
    pub fn of_places(items: Vec<Item<'a>>, what: &'static str) -> Self {
        Self { what, entries: (0..).map(Value::Uint).zip(items).collect() }
    }

    /// An error about field `key`.
    #[must_use]
    pub fn bad(&self, key: i64, expected: &'static str) -> CborError {
        CborError::Field { what: self.what, key, expected }
    }

    /// Takes an optional field.
    pub fn optional(&mut self, key: i64) -> Option<Item<'a>> {
        let at = self.entries.iter().position(|(k, _)| k.as_int() == Some(key))?;
        Some(self.entries.swap_remove(at).1)
    }

    /// Takes a field.
    ///
    /// # Errors
    /// It is missing.
    pub fn take(&mut self, key: i64) -> Result<Item<'a>, CborError> {
        self.optional(key).ok_or(CborError::Missing { what: self.what, key })
    }

    /// An unsigned integer of at most `max`.
    ///
    /// # Errors
    /// Missing, of another type, or larger.
    pub fn uint(&mut self, key: i64, max: u64) -> Result<u64, CborError> {
        match self.take(key)? {
            Value::Uint(n) if n <= max => Ok(n),
            _ => Err(self.bad(key, "an unsigned integer in range")),
        }
    }

    /// A byte string with a length in `len`.
    ///
    /// # Errors
    /// Missing, of another type, or of another length.
    pub fn bytes(
        &mut self,
        key: i64,
        len: core::ops::RangeInclusive<usize>,
    ) -> Result<&'a [u8], CborError> {
        match self.take(key)? {
            Value::Bytes(bytes) if len.contains(&bytes.len()) => Ok(bytes),
            _ => Err(self.bad(key, "a byte string of the right length")),
        }
    }

    /// A byte string of exactly `N` bytes.
    ///
    /// # Errors
    /// Missing, of another type, or of another length.
    pub fn array<const N: usize>(&mut self, key: i64) -> Result<[u8; N], CborError> {
        let bytes = self.bytes(key, N..=N)?;
        <[u8; N]>::try_from(bytes).map_err(|_| self.bad(key, "a byte string of the right length"))
    }

    /// A text with a length in `len` (bytes) that can be printed: see [`is_printable`].
    ///
    /// # Errors
    /// Missing, of another type, of another length, or with control characters.
    pub fn text(
        &mut self,
        key: i64,
        len: core::ops::RangeInclusive<usize>,
    ) -> Result<&'a str, CborError> {
        let text = self.file(key, len)?;
        if is_printable(text) {
            Ok(text)
        } else {
            Err(self.bad(key, "a text without control characters"))
        }
    }

    /// The text of a file with a length in `len` (bytes) and any content.
    ///
    /// # Errors
    /// Missing, of another type, or of another length.
    pub fn file(
        &mut self,
        key: i64,
        len: core::ops::RangeInclusive<usize>,
    ) -> Result<&'a str, CborError> {
        match self.take(key)? {
            Value::Text(text) if len.contains(&text.len()) => Ok(text),
            _ => Err(self.bad(key, "a text of the right length")),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// Missing or of another type.
    pub fn bool(&mut self, key: i64) -> Result<bool, CborError> {
        match self.take(key)? {
            Value::Bool(b) => Ok(b),
            _ => Err(self.bad(key, "true or false")),
        }
    }

    /// Ends the message.
    ///
    /// # Errors
    /// A field was not taken: the format does not define it.
    pub fn finish(self) -> Result<(), CborError> {
        if self.entries.is_empty() { Ok(()) } else { Err(CborError::Unknown { what: self.what }) }
    }
}
