//! The DER subset that the certificates need: definite, shortest lengths, one-byte tags.

use alloc::vec::Vec;

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const PRINTABLE_STRING: u8 = 0x13;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// Tag, length and concatenated value.
pub(crate) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(len + 5);
    out.push(tag);
    if len < 0x80 {
        out.push(len as u8);
    } else {
        let bytes = len.to_be_bytes();
        let skip = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (bytes.len() - skip) as u8);
        out.extend_from_slice(&bytes[skip..]);
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// INTEGER (or an implicitly tagged one) from an unsigned big-endian number.
pub(crate) fn unsigned(tag: u8, big_endian: &[u8]) -> Vec<u8> {
    let skip = big_endian.iter().take_while(|byte| **byte == 0).count();
    let digits = &big_endian[skip..];
    match digits.first() {
        None => tlv(tag, &[&[0]]),
        Some(first) if first & 0x80 != 0 => tlv(tag, &[&[0], digits]),
        Some(_) => tlv(tag, &[digits]),
    }
}

/// Strict reader of one level.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// Not DER, or not the expected tag.
#[derive(Debug)]
pub(crate) struct DerError;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Next element: tag, value, and the whole element.
    pub(crate) fn any(&mut self) -> Result<(u8, &'a [u8], &'a [u8]), DerError> {
        let [tag, first, ..] = self.rest else { return Err(DerError) };
        if tag & 0x1f == 0x1f {
            return Err(DerError);
        }
        let (len, head) = if *first < 0x80 {
            (usize::from(*first), 2)
        } else {
            let n = usize::from(first & 0x7f);
            let digits =
                self.rest.get(2..2 + n).filter(|_| (1..=3).contains(&n)).ok_or(DerError)?;
            let len = digits.iter().fold(0usize, |len, byte| len << 8 | usize::from(*byte));
            if digits[0] == 0 || len < 0x80 {
                return Err(DerError);
            }
            (len, 2 + n)
        };
        let end = head.checked_add(len).filter(|end| *end <= self.rest.len()).ok_or(DerError)?;
        let (whole, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok((*tag, &whole[head..], whole))
    }

    /// Value of the next element, which must have this tag.
    pub(crate) fn value(&mut self, tag: u8) -> Result<&'a [u8], DerError> {
        match self.any()? {
            (found, value, _) if found == tag => Ok(value),
            _ => Err(DerError),
        }
    }

    /// The next element with its header.
    pub(crate) fn whole(&mut self, tag: u8) -> Result<&'a [u8], DerError> {
        match self.any()? {
            (found, _, whole) if found == tag => Ok(whole),
            _ => Err(DerError),
        }
    }

    /// Reader of the value of the next element.
    pub(crate) fn inside(&mut self, tag: u8) -> Result<Reader<'a>, DerError> {
        self.value(tag).map(Reader::new)
    }

    pub(crate) fn finish(self) -> Result<(), DerError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DerError) }
    }
}

/// Content of a non-negative INTEGER in its shortest form.
pub(crate) fn unsigned_content(content: &[u8]) -> Result<&[u8], DerError> {
    match content {
        [] => Err(DerError),
        [first, ..] if first & 0x80 != 0 => Err(DerError),
        [0, second, ..] if second & 0x80 == 0 => Err(DerError),
        [0] => Ok(&[]),
        [0, rest @ ..] => Ok(rest),
        all => Ok(all),
    }
}

/// An unsigned number of at most 64 bits.
pub(crate) fn u64_content(content: &[u8]) -> Result<u64, DerError> {
    let digits = unsigned_content(content)?;
    if digits.len() > 8 {
        return Err(DerError);
    }
    Ok(digits.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}
