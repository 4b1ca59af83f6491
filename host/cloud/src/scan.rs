//! Looks for the secret of an image in every file below a folder, also inside of archives.
//!
//! A file is read as several streams of bits: its bytes, its hexadecimal digits, its binary digits,
//! its base64 and base32 characters, its bytes behind escapes (`\253`, `\xab`, `\u00ab`, `%ab`,
//! `=AB`), the rows of a dump without their addresses, and the numbers that it lists, each at its
//! width. Characters between digits do not count. A hit is any 64 bits of a stream that are 8
//! consecutive bytes of the secret in some order: of bits in a nibble or byte, of nibbles, of bytes
//! in a word, of words. An order reverses the secret within units of a power of two bits, so bit `i`
//! of it is bit `i ^ mask` of the secret: 256 masks are all orders.
//!
//! A checkpoint of Vivado is a zip archive: its members are inflated, and so are gzip and tar. A file
//! that only looks like one of these, or is cut, is read as its bytes and as far as its members go.
//! An archive of another format, and one with members that cannot be read, is a finding.

use std::fs::{self, File};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::bufread::DeflateDecoder;
use flate2::read::MultiGzDecoder;
use memchr::memmem;
use zeroize::{Zeroize as _, Zeroizing};

use crate::CloudError;

/// Bits of the secret.
const BITS: usize = 256;
/// Bytes that are read at once.
const BLOCK: usize = 1 << 18;
/// Longest number of a list: a 256-bit number in binary digits with `_` between.
const LONGEST: usize = 600;
/// Logarithm of the bits of the filter before the search for a window.
const FILTER: u32 = 18;
/// Begin of the header before each member of a zip archive.
const LOCAL: &[u8] = b"PK\x03\x04";
/// Highest version of its format that a header asks for, and its methods of compression.
const VERSION: u16 = 63;
const METHODS: [u16; 15] = [0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 14, 93, 95, 98, 99];
/// Archives within archives.
const DEPTH: usize = 4;
/// Longest archive within an archive.
const MAX_INNER: u64 = 1 << 30;

/// The secret of an image.
pub type Secret = Zeroizing<[u8; 32]>;

/// Takes the secret from its package.
///
/// # Errors
/// SHEF-CLD-053.
pub fn secret(package: &Path) -> Result<Secret, CloudError> {
    let wrong = || CloudError::Changed {
        file: package.to_owned(),
        what: "it is no package with a secret".to_owned(),
    };
    let file = File::open(package).map_err(|_| wrong())?;
    let mut bytes = Zeroizing::new(vec![0; 4096]);
    let mut len = 0;
    let mut file = file.take(4096);
    while len < bytes.len() {
        match file.read(&mut bytes[len..]).map_err(|_| wrong())? {
            0 => break,
            n => len += n,
        }
    }
    let text = std::str::from_utf8(&bytes[..len]).map_err(|_| wrong())?;
    let number = text.split_once("UDS = 256'h").and_then(|(_, rest)| rest.split_once(';'));
    let number = number.ok_or_else(wrong)?.0;
    let mut digits = number.bytes().filter(|b| *b != b'_');
    let mut secret = Zeroizing::new([0; 32]);
    // Byte 0 is lowest: the last two digits.
    for byte in secret.iter_mut().rev() {
        let mut nibble = || digits.next().and_then(|b| char::from(b).to_digit(16));
        let (high, low) = (nibble().ok_or_else(wrong)?, nibble().ok_or_else(wrong)?);
        *byte = (high << 4 | low) as u8;
    }
    if digits.next().is_some() { Err(wrong()) } else { Ok(secret) }
}

/// What a hit looks like: 64 bits that are 8 consecutive bytes of the secret, in any order.
struct Windows {
    /// Sorted.
    all: Zeroizing<Vec<u64>>,
    /// A Bloom filter of them.
    filter: Zeroizing<Vec<u64>>,
}

impl Windows {
    fn of(secret: &Secret) -> Self {
        let bit = |i: usize| u64::from(secret[i / 8] >> (7 - i % 8) & 1);
        let mut all = Zeroizing::new(Vec::new());
        for mask in 0..BITS {
            for start in (0..=BITS - 64).step_by(8) {
                all.push((start..start + 64).fold(0, |window, i| window << 1 | bit(i ^ mask)));
            }
        }
        all.sort_unstable();
        all.dedup();
        let mut filter = Zeroizing::new(vec![0; 1 << (FILTER - 6)]);
        for place in all.iter().flat_map(|window| Self::places(*window)) {
            filter[place / 64] |= 1 << (place % 64);
        }
        Self { all, filter }
    }

    /// Bits of the filter for a window.
    fn places(window: u64) -> [usize; 2] {
        let hash = window.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        [hash >> (64 - FILTER), hash >> (64 - 2 * FILTER) & ((1 << FILTER) - 1)].map(|n| n as usize)
    }

    fn has(&self, window: u64) -> bool {
        Self::places(window).iter().all(|place| self.filter[place / 64] >> (place % 64) & 1 == 1)
            && self.all.binary_search(&window).is_ok()
    }
}

/// The last bits of the streams of a file.
#[derive(Default)]
struct Streams {
    raw: u64,
    hex: u64,
    /// Hexadecimal digits before the last run of them, which may be a base or a width.
    before: u64,
    /// Length of that run.
    run: usize,
    /// Whether the last byte is the `'` of a base, or the `s` after it.
    quoted: bool,
    binary: u64,
    base64: u128,
    /// By the alphabets of RFC 4648: that of base32 and that of base32hex.
    base32: [u128; 2],
    escapes: Escapes,
    rows: Rows,
    /// Numbers with a base, and long ones in hexadecimal.
    literals: u64,
    /// Numbers in hexadecimal without a base.
    bare: u64,
    /// Decimal numbers.
    decimal: u64,
    /// The number that is being read.
    number: Vec<u8>,
    last: u8,
}

impl Streams {
    /// Takes a byte; `Some`: the secret ends with it, in this form.
    fn take(&mut self, byte: u8, windows: &Windows) -> Option<&'static str> {
        self.raw = self.raw << 8 | u64::from(byte);
        if windows.has(self.raw) {
            return Some("raw");
        }
        if let Some(digit) = char::from(byte).to_digit(16) {
            if self.run == 0 {
                self.before = self.hex;
            }
            self.run += 1;
            self.hex = self.hex << 4 | u64::from(digit);
            if windows.has(self.hex) {
                return Some("in hexadecimal");
            }
            if digit < 2 {
                self.binary = self.binary << 1 | u64::from(digit);
                if windows.has(self.binary) {
                    return Some("in binary digits");
                }
            }
        } else if byte.eq_ignore_ascii_case(&b'h') && self.quoted
            || byte.eq_ignore_ascii_case(&b'x') && self.last == b'0' && self.run == 1
        {
            // A width and a base are no digits of the secret.
            self.hex = self.before;
            self.run = 0;
        } else if byte != b'_' && byte != b'\'' && !self.quoted {
            self.run = 0;
        }
        self.quoted = byte == b'\'' || self.quoted && byte.eq_ignore_ascii_case(&b's');
        let sextet = match byte {
            b'A'..=b'Z' => Some(byte - b'A'),
            b'a'..=b'z' => Some(byte - b'a' + 26),
            b'0'..=b'9' => Some(byte - b'0' + 52),
            b'+' | b'-' => Some(62),
            b'/' | b'_' => Some(63),
            _ => None,
        };
        if let Some(sextet) = sextet {
            self.base64 = self.base64 << 6 | u128::from(sextet);
            // Bytes begin at each second bit.
            if (0..6).step_by(2).any(|bits| windows.has((self.base64 >> bits) as u64)) {
                return Some("in base64");
            }
        }
        let quintets = match byte.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => {
                [Some(letter - b'A'), (letter <= b'V').then(|| letter - b'A' + 10)]
            }
            digit @ b'0'..=b'9' => {
                [(b'2'..=b'7').contains(&digit).then(|| digit - b'2' + 26), Some(digit - b'0')]
            }
            _ => [None; 2],
        };
        for (stream, quintet) in self.base32.iter_mut().zip(quintets) {
            let Some(quintet) = quintet else { continue };
            *stream = *stream << 5 | u128::from(quintet);
            if (0..5).any(|bits| windows.has((*stream >> bits) as u64)) {
                return Some("in base32");
            }
        }
        if self.escapes.take(byte, windows) {
            return Some("behind escapes");
        }
        if self.rows.take(byte, windows) {
            return Some("in the rows of a dump");
        }
        self.last = byte;
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'\'' {
            if self.number.len() < LONGEST {
                self.number.push(byte);
            }
            return None;
        }
        self.end(windows)
    }

    /// Ends a number: appends it to its streams at its width.
    fn end(&mut self, windows: &Windows) -> Option<&'static str> {
        let mut number = std::mem::take(&mut self.number);
        let found = self.number(&number, windows);
        number.zeroize();
        number.clear();
        self.number = number;
        found.then_some("in a list of numbers")
    }

    fn number(&mut self, text: &[u8], windows: &Windows) -> bool {
        let width = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<usize>().ok();
        let base = |letter: u8| match letter.to_ascii_lowercase() {
            b'h' | b'x' => Some(16),
            b'b' => Some(2),
            b'o' => Some(8),
            b'd' => Some(10),
            _ => None,
        };
        if let Some(at) = text.iter().position(|byte| *byte == b'\'') {
            let (size, rest) = (width(&text[..at]), &text[at + 1..]);
            let rest = rest.strip_prefix(b"s").or(rest.strip_prefix(b"S")).unwrap_or(rest);
            let Some((letter, digits)) = rest.split_first() else { return false };
            return base(*letter)
                .is_some_and(|base| self.append(digits, base, size, true, windows));
        }
        if let [b'0', letter, digits @ ..] = text
            && let Some(base) = base(*letter).filter(|base| *base != 10)
            && digits.iter().all(|byte| *byte == b'_' || char::from(*byte).is_digit(base))
        {
            return self.append(digits, base, None, true, windows);
        }
        let decimal = text.iter().all(u8::is_ascii_digit);
        self.append(text, 16, None, false, windows)
            || decimal && self.append(text, 10, None, false, windows)
    }

    /// Appends a number; without a width, the next power of two that holds its digits.
    fn append(
        &mut self,
        digits: &[u8],
        base: u32,
        width: Option<usize>,
        literal: bool,
        windows: &Windows,
    ) -> bool {
        let each = match base {
            16 => 4,
            8 => 3,
            2 => 1,
            _ => 0,
        };
        let digits = || digits.iter().filter(|byte| **byte != b'_');
        let value = |byte: &u8| char::from(*byte).to_digit(base).map(u64::from);
        if digits().next().is_none() || digits().any(|byte| value(byte).is_none()) {
            return false;
        }
        let count = digits().count();
        let push = |stream: &mut u64, bits: usize, value: u64| {
            *stream = if bits < 64 { *stream << bits | value } else { value };
            windows.has(*stream)
        };
        if each == 0 {
            let sum = digits()
                .try_fold(0_u64, |sum, byte| sum.checked_mul(10)?.checked_add(value(byte)?));
            let Some(sum) = sum else { return false };
            let own = (64 - sum.leading_zeros() as usize).next_power_of_two().max(8);
            let width = width.unwrap_or(if own == 16 { 32 } else { own }).min(64);
            let stream = if literal { &mut self.literals } else { &mut self.decimal };
            // A window may begin at any byte of it.
            let (first, mut left) = (width % 8, width);
            let mut hit = false;
            while left > 0 {
                let bits = if left == width && first > 0 { first } else { 8 };
                left -= bits;
                hit |= push(stream, bits, sum >> left & ((1 << bits) - 1));
            }
            return hit;
        }
        let bits = count * each;
        let width = width.unwrap_or(bits.next_power_of_two().max(8));
        let append = |stream: &mut u64| {
            let zeros = width.saturating_sub(bits).min(64);
            let mut hit = push(stream, zeros, 0);
            // A digit at the top of a width that is no multiple of its bits.
            let mut top = if bits > width { (width % each).max(1) } else { each };
            let skipped = bits.saturating_sub(width) / each;
            for byte in digits().skip(skipped) {
                let digit = value(byte).unwrap_or(0) & ((1 << top) - 1);
                hit |= push(stream, top, digit);
                top = each;
            }
            hit
        };
        let mut hit = false;
        if literal || count >= 8 {
            hit |= append(&mut self.literals);
        }
        if !literal {
            hit |= append(&mut self.bare);
        }
        hit
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for stream in [
            &mut self.raw,
            &mut self.hex,
            &mut self.before,
            &mut self.binary,
            &mut self.literals,
            &mut self.bare,
            &mut self.decimal,
        ] {
            stream.zeroize();
        }
        self.base64.zeroize();
        self.base32.zeroize();
        self.number.zeroize();
        for stream in [&mut self.escapes.text, &mut self.rows.hex, &mut self.rows.decimal] {
            stream.zeroize();
        }
        self.rows.octal.zeroize();
        self.rows.token.zeroize();
        self.escapes.pending.zeroize();
    }
}

/// Bytes of text with escapes of C, Python, JSON, URLs or quoted-printable.
#[derive(Default)]
struct Escapes {
    /// The last bytes.
    text: u64,
    /// Bytes since the last escape, counted down: without one, these are the raw bytes.
    left: u8,
    /// An escape that is not complete.
    pending: Vec<u8>,
}

impl Escapes {
    /// Takes a byte; whether the secret ends with it.
    fn take(&mut self, byte: u8, windows: &Windows) -> bool {
        let digit = |base| char::from(byte).is_digit(base);
        let Some((begin, rest)) = self.pending.split_first() else {
            if matches!(byte, b'\\' | b'%' | b'=') {
                self.pending.push(byte);
                return false;
            }
            return self.push(byte, false, windows);
        };
        let (base, begin_len, most) = match (begin, rest) {
            (b'\\', []) => {
                let control = match byte {
                    b'0'..=b'7' | b'x' | b'u' => {
                        self.pending.push(byte);
                        return false;
                    }
                    b'a' => 7,
                    b'b' => 8,
                    b't' => 9,
                    b'n' => 10,
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => 13,
                    b'e' => 27,
                    other => other,
                };
                self.pending.clear();
                return self.push(control, true, windows);
            }
            (b'\\', [b'x', ..]) => (16, 2, 4),
            (b'\\', [b'u', ..]) => (16, 2, 6),
            (b'\\', _) => (8, 1, 4),
            _ => (16, 1, 3),
        };
        let is_digit = digit(base);
        if is_digit {
            self.pending.push(byte);
            if self.pending.len() < most {
                return false;
            }
        }
        // Complete, or ended by another character.
        let digits = std::str::from_utf8(&self.pending[begin_len..]).unwrap_or_default();
        let value = u32::from_str_radix(digits, base).ok();
        let whole = matches!(self.pending[0], b'\\') || self.pending.len() == most;
        let mut pending = std::mem::take(&mut self.pending);
        let mut hit = match value {
            Some(value) if whole => self.push(value as u8, true, windows),
            _ => pending.iter().fold(false, |hit, byte| hit | self.push(*byte, false, windows)),
        };
        pending.zeroize();
        pending.clear();
        self.pending = pending;
        if !is_digit {
            hit |= self.take(byte, windows);
        }
        hit
    }

    fn push(&mut self, byte: u8, escaped: bool, windows: &Windows) -> bool {
        self.text = self.text << 8 | u64::from(byte);
        self.left = if escaped { 8 } else { self.left.saturating_sub(1) };
        self.left > 0 && windows.has(self.text)
    }
}

/// Part of a line that may be a row of a dump: an address, then words.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Before the address.
    #[default]
    Begin,
    Address,
    Words,
    /// Text beside the words, or another line.
    Rest,
}

/// The rows of a dump: words without the address before them and without the text beside them.
#[derive(Default)]
struct Rows {
    hex: u64,
    decimal: u64,
    octal: u64,
    part: Part,
    /// Characters of the address.
    address: usize,
    /// The word that is being read.
    token: Vec<u8>,
    /// Digits of the first word of the row; in hexadecimal, all have as many.
    width: usize,
}

impl Rows {
    /// Takes a byte; whether the secret ends with it.
    fn take(&mut self, byte: u8, windows: &Windows) -> bool {
        let between = matches!(byte, b' ' | b'\t' | b',' | b';' | b':' | b'\r');
        let digit = byte.is_ascii_hexdigit();
        match self.part {
            _ if byte == b'\n' => {
                let hit = self.part == Part::Words && self.word(windows);
                (self.part, self.address, self.width) = (Part::Begin, 0, 0);
                self.token.clear();
                return hit;
            }
            Part::Begin if digit => (self.part, self.address) = (Part::Address, 1),
            Part::Begin if matches!(byte, b' ' | b'\t' | b'@' | b'[') => {}
            Part::Address if digit || byte == b'x' && self.address == 1 => self.address += 1,
            Part::Address if between || matches!(byte, b']' | b'|') => self.part = Part::Words,
            Part::Words if between => return self.word(windows),
            Part::Words if byte.is_ascii_alphanumeric() && self.token.len() < LONGEST => {
                self.token.push(byte);
            }
            Part::Words => {
                // The text begins.
                let hit = self.word(windows);
                self.part = Part::Rest;
                return hit;
            }
            _ => self.part = Part::Rest,
        }
        false
    }

    /// Ends a word.
    fn word(&mut self, windows: &Windows) -> bool {
        let mut token = std::mem::take(&mut self.token);
        let hit = self.append(&token, windows);
        token.zeroize();
        token.clear();
        self.token = token;
        hit
    }

    fn append(&mut self, token: &[u8], windows: &Windows) -> bool {
        let token = token.strip_prefix(b"0x").unwrap_or(token);
        if token.is_empty() {
            return false;
        }
        if !token.iter().all(u8::is_ascii_hexdigit) {
            self.part = Part::Rest;
            return false;
        }
        let mut hit = false;
        if self.width == 0 {
            self.width = token.len();
        }
        if token.len() == self.width {
            for digit in token.iter().filter_map(|byte| char::from(*byte).to_digit(16)) {
                self.hex = self.hex << 4 | u64::from(digit);
                hit |= windows.has(self.hex);
            }
        }
        let value = |base| u32::from_str_radix(std::str::from_utf8(token).ok()?, base).ok();
        if let Some(value) = value(10).filter(|value| token.len() <= 3 && *value < 256) {
            self.decimal = self.decimal << 8 | u64::from(value);
            hit |= windows.has(self.decimal);
        }
        // Of bytes, and of words of 16 bits.
        for (digits, bits) in [(3, 8), (6, 16)] {
            let fits = |value: &u32| token.len() == digits && value >> bits == 0;
            if let Some(value) = value(8).filter(fits) {
                self.octal = self.octal << bits | u64::from(value);
                hit |= windows.has(self.octal);
            }
        }
        hit
    }
}

/// A file that holds the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The file, with the member of an archive.
    pub file: PathBuf,
    /// How it is written there.
    pub form: &'static str,
}

/// An archive whose content cannot be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The archive, or its member.
    pub file: PathBuf,
    /// The reason.
    pub why: &'static str,
}

/// Result of a scan: how much was read, and what was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Files.
    pub files: usize,
    /// Members of archives.
    pub members: usize,
    /// Bytes, those of inflated members too.
    pub bytes: u64,
    /// Files with the secret.
    pub hits: Vec<Hit>,
    /// Archives that may hold it.
    pub unread: Vec<Unread>,
}

impl Report {
    /// That there is no hit, and that everything was read.
    ///
    /// # Errors
    /// SHEF-CLD-024, SHEF-CLD-045.
    pub fn clean(&self) -> Result<(), CloudError> {
        if let Some(hit) = self.hits.first() {
            let (file, form) = (hit.file.clone(), hit.form.to_owned());
            let hits = self.hits.len();
            return Err(CloudError::Secret { file, form, hits, earlier: false });
        }
        match self.unread.first() {
            None => Ok(()),
            Some(Unread { file, why }) => {
                let (file, archives) = (file.clone(), self.unread.len());
                Err(CloudError::Unread { file, why, archives })
            }
        }
    }
}

/// Archives that are opened.
#[derive(Clone, Copy)]
enum Kind {
    Zip,
    Gzip,
    Tar,
    /// One that is not opened.
    Closed(&'static str),
}

/// Begins of archives that are not opened.
const CLOSED: &[(&[u8], &str)] = &[
    (b"\xfd7zXZ\0", "it is packed with xz, which is not opened"),
    (b"BZh91AY&SY", "it is packed with bzip2, which is not opened"),
    (b"\x28\xb5\x2f\xfd", "it is packed with zstd, which is not opened"),
    (b"\x04\x22\x4d\x18", "it is packed with lz4, which is not opened"),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive, which is not opened"),
    (b"Rar!\x1a\x07", "it is a rar archive, which is not opened"),
    (b"LZIP\x01", "it is packed with lzip, which is not opened"),
    (b"\x1f\x9d\x90", "it is packed with compress, which is not opened"),
    (b"\x89LZO\0\r\n\x1a\n", "it is packed with lzop, which is not opened"),
    (b"MSCF\0\0\0\0", "it is a cabinet archive, which is not opened"),
    (b"hsqs", "it is a squashfs image, which is not opened"),
    (b"\xed\xab\xee\xdb", "it is an rpm package, which is not opened"),
    (b"!<arch>\ndebian-binary", "it is a Debian package, which is not opened"),
];

/// Whether a file begins as one of lzma does: properties, a dictionary of a power of two, and a length
/// that is unknown or below 2^40.
fn is_lzma(head: &[u8]) -> bool {
    let Some(([0x5d, dictionary @ ..], rest)) = head.split_first_chunk::<5>() else { return false };
    let Some((length, _)) = rest.split_first_chunk::<8>() else { return false };
    let dictionary = u32::from_le_bytes(*dictionary);
    dictionary >= 1 << 16
        && dictionary.is_power_of_two()
        && (*length == [0xff; 8] || u64::from_le_bytes(*length) < 1 << 40)
}

impl Kind {
    /// The kind of a file that begins with up to 512 bytes.
    fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(LOCAL) {
            Some(Self::Zip)
        } else if head.starts_with(&[0x1f, 0x8b, 8]) {
            // The one method that there is.
            Some(Self::Gzip)
        } else if head.get(257..262) == Some(b"ustar") {
            Some(Self::Tar)
        } else if is_lzma(head) {
            Some(Self::Closed("it is packed with lzma, which is not opened"))
        } else {
            // A level other than 9.
            let level = head.get(3).is_some_and(|level| (b'1'..=b'9').contains(level));
            let same = |begin: &[u8]| {
                head.starts_with(begin)
                    || level
                        && begin.starts_with(b"BZh")
                        && head.starts_with(b"BZh")
                        && head[4..].starts_with(&begin[4..])
            };
            let closed = CLOSED.iter().find(|(begin, _)| same(begin));
            closed.map(|(_, why)| Self::Closed(why))
        }
    }
}

/// The search.
pub struct Scan {
    windows: Windows,
    report: Report,
}

impl Scan {
    /// Looks for this secret.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        Self { windows: Windows::of(secret), report: Report::default() }
    }

    /// Everything that was found.
    #[must_use]
    pub fn report(self) -> Report {
        self.report
    }

    /// Looks at a file, or at every file below a folder, except for `without`. Links are not
    /// followed.
    ///
    /// # Errors
    /// SHEF-CLD-055: a file that cannot be read is not clean.
    pub fn below(&mut self, path: &Path, without: Option<&Path>) -> Result<(), CloudError> {
        let found = fs::symlink_metadata(path).map_err(CloudError::io("find", path))?;
        if Some(path) == without {
            return Ok(());
        }
        if found.is_dir() {
            let list = CloudError::io("list", path);
            let mut entries: Vec<PathBuf> = fs::read_dir(path)
                .map_err(&list)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<io::Result<_>>()
                .map_err(&list)?;
            entries.sort();
            return entries.iter().try_for_each(|entry| self.below(entry, without));
        }
        if found.is_file() {
            self.report.files += 1;
            let file = File::open(path).map_err(CloudError::io("read", path))?;
            self.archive(path, file, 0).map_err(CloudError::io("read", path))?;
        }
        Ok(())
    }

    /// Looks at bytes, and at the members if they are an archive.
    fn archive(&mut self, name: &Path, mut data: impl Read + Seek, depth: usize) -> io::Result<()> {
        self.stream(name, &mut data)?;
        let mut head = [0; 512];
        data.seek(SeekFrom::Start(0))?;
        let got = read_full(&mut data, &mut head)?;
        let Some(kind) = Kind::of(&head[..got]) else { return Ok(()) };
        if depth == DEPTH {
            self.unread(name, "it is nested deeper than archives are opened");
            return Ok(());
        }
        data.seek(SeekFrom::Start(0))?;
        let opened = match kind {
            Kind::Zip => self.zip(name, &mut data, depth),
            Kind::Gzip => self.member(&name.join("(gzip)"), MultiGzDecoder::new(data), depth),
            Kind::Tar => self.tar(name, data, depth),
            Kind::Closed(why) => {
                self.unread(name, why);
                Ok(())
            }
        };
        // The raw bytes are already searched. Data that cannot be unpacked end the search of this
        // archive; an I/O error fails it.
        opened.or_else(|e| if e.raw_os_error().is_some() { Err(e) } else { Ok(()) })
    }

    fn unread(&mut self, file: &Path, why: &'static str) {
        self.report.unread.push(Unread { file: file.to_owned(), why });
    }

    fn tar(&mut self, name: &Path, data: impl Read, depth: usize) -> io::Result<()> {
        for entry in tar::Archive::new(data).entries()? {
            let entry = entry?;
            let inner = name.join(entry.path()?);
            self.member(&inner, entry, depth)?;
        }
        Ok(())
    }

    /// Looks at a member of an archive, as far as it can be unpacked.
    fn member(&mut self, name: &Path, mut data: impl Read, depth: usize) -> io::Result<()> {
        self.report.members += 1;
        let mut head = vec![0; 512];
        let (got, begin) = fill(&mut data, &mut head);
        head.truncate(got);
        let kind = Kind::of(&head);
        let rest = if begin.is_ok() { u64::MAX } else { 0 };
        let mut data = Cursor::new(head).chain(data.take(rest));
        if kind.is_none() {
            return self.stream(name, &mut data).and(begin);
        }
        let mut inner = Vec::new();
        let end = data.by_ref().take(MAX_INNER).read_to_end(&mut inner);
        if inner.len() as u64 == MAX_INNER {
            self.unread(name, "it is larger than archives within archives are opened");
        }
        self.archive(name, Cursor::new(inner), depth + 1)?;
        begin.and(end.map(|_| ()))
    }

    /// Looks at the members of a zip archive, by the header before each: also of one that is cut.
    fn zip(&mut self, name: &Path, data: &mut (impl Read + Seek), depth: usize) -> io::Result<()> {
        let mut at = 0;
        while let Some(found) = next(data, at)? {
            let mut head = [0; 30];
            data.seek(SeekFrom::Start(found))?;
            let got = read_full(data, &mut head)?;
            let short = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
            let packed = u32::from_le_bytes([head[18], head[19], head[20], head[21]]);
            let (flags, method) = (short(6), short(8));
            at = found + LOCAL.len() as u64;
            if got < head.len() || !(METHODS.contains(&method) && short(4) & 0xff <= VERSION) {
                // No header: its four bytes by chance.
                continue;
            }
            let mut inner = vec![0; short(26).into()];
            read_full(data, &mut inner)?;
            let inner = name.join(&*String::from_utf8_lossy(&inner));
            let begin = data.seek(SeekFrom::Current(short(28).into()))?;
            // Bit 3 and zip64: the length comes later.
            let length = (flags & 1 << 3 == 0 && packed != u32::MAX).then_some(u64::from(packed));
            at = begin + length.unwrap_or(0);
            let mut raw = BufReader::new(data.by_ref().take(length.unwrap_or(u64::MAX)));
            let opened = match method {
                _ if flags & 1 == 1 => {
                    self.unread(&inner, "it is encrypted");
                    Ok(())
                }
                // Without a length, its members are found by their own headers.
                0 if length.is_some() => self.member(&inner, raw, depth),
                0 => Ok(()),
                8 => {
                    let mut inflated = DeflateDecoder::new(&mut raw);
                    let opened = self.member(&inner, &mut inflated, depth);
                    at = begin + length.unwrap_or(inflated.total_in());
                    opened
                }
                _ => {
                    self.unread(&inner, "it is compressed by a method other than deflate");
                    Ok(())
                }
            };
            // A damaged member: the next one may be whole.
            opened.or_else(|e| if e.raw_os_error().is_some() { Err(e) } else { Ok(()) })?;
        }
        Ok(())
    }

    /// Looks at bytes up to the first hit.
    fn stream(&mut self, name: &Path, data: &mut impl Read) -> io::Result<()> {
        let mut streams = Streams::default();
        let mut block = Zeroizing::new(vec![0; BLOCK]);
        let mut found = None;
        let mut end = Ok(());
        while found.is_none() {
            let got = data.read(&mut block).unwrap_or_else(|e| {
                end = Err(e);
                0
            });
            self.report.bytes += got as u64;
            found = match &block[..got] {
                // The end of the last line.
                [] => match streams.take(b'\n', &self.windows) {
                    None => return end,
                    last => last,
                },
                new => new.iter().find_map(|byte| streams.take(*byte, &self.windows)),
            };
        }
        let file = name.to_owned();
        self.report.hits.extend(found.map(|form| Hit { file, form }));
        Ok(())
    }
}

/// The place of the next header of a zip archive's member.
fn next(data: &mut (impl Read + Seek), from: u64) -> io::Result<Option<u64>> {
    let mut at = data.seek(SeekFrom::Start(from))?;
    let mut block = Zeroizing::new(vec![0; BLOCK]);
    loop {
        let got = read_full(data, &mut block)?;
        if let Some(found) = memmem::find(&block[..got], LOCAL) {
            return Ok(Some(at + found as u64));
        }
        if got < BLOCK {
            return Ok(None);
        }
        // A header may begin at the end of a block.
        at = data.seek(SeekFrom::Current(1 - LOCAL.len() as i64))?;
    }
}

/// Fills a buffer as far as there are bytes.
fn read_full(data: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let (len, end) = fill(data, buffer);
    end.map(|()| len)
}

/// Fills a buffer as far as bytes can be read: their number, and the failure after them.
fn fill(data: &mut impl Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut len = 0;
    while len < buffer.len() {
        match data.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) => return (len, Err(e)),
        }
    }
    (len, Ok(()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;

    use super::*;

    fn bytes() -> [u8; 32] {
        core::array::from_fn(|n| (n as u8).wrapping_mul(37).wrapping_add(201))
    }

    fn hits(content: &[u8]) -> Vec<&'static str> {
        hits_of(bytes(), content)
    }

    fn hits_of(secret: [u8; 32], content: &[u8]) -> Vec<&'static str> {
        report(secret, content).hits.into_iter().map(|hit| hit.form).collect()
    }

    fn look(content: &[u8]) -> Report {
        report(bytes(), content)
    }

    fn report(secret: [u8; 32], content: &[u8]) -> Report {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, content).unwrap();
        let mut scan = Scan::new(&Zeroizing::new(secret));
        scan.below(dir.path(), None).unwrap();
        scan.report()
    }

    #[test]
    fn the_secret_is_read_from_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("p.sv");
        fs::write(&file, shef_gen::secret::secret_package(&bytes()).as_bytes()).unwrap();
        assert_eq!(*secret(&file).unwrap(), bytes());
        for text in ["", "UDS = 256'h12;", "UDS = 256'hxx"] {
            fs::write(&file, text).unwrap();
            assert_eq!(secret(&file).unwrap_err().code(), "SHEF-CLD-053");
        }
    }

    /// The secret in an order: bit `i` is bit `i ^ mask` of it.
    fn order(mask: usize) -> [u8; 32] {
        let bit = |i: usize| bytes()[i / 8] >> (7 - i % 8) & 1;
        core::array::from_fn(|n| (0..8).fold(0, |byte, i| byte << 1 | bit((8 * n + i) ^ mask)))
    }

    /// Words of some bytes as literals of SystemVerilog.
    fn words(bytes: &[u8], size: usize, between: &str) -> String {
        let word = |word: &[u8]| format!("{}'h{}", 8 * size, hex::encode(word));
        bytes.chunks(size).map(word).collect::<Vec<_>>().join(between)
    }

    #[test]
    fn orders_are_those_that_tools_make() {
        let mut turned = bytes();
        turned.reverse();
        assert_eq!(order(0xf8), turned);
        assert_eq!(order(7), bytes().map(u8::reverse_bits));
        assert_eq!(order(4), bytes().map(|byte| byte.rotate_left(4)));
        let (mut words, mut each) = (order(0xe0), bytes());
        each.chunks_mut(4).for_each(<[u8]>::reverse);
        assert_eq!(order(0x18), each);
        words.reverse();
        assert_eq!(words, each);
        let digits: String = hex::encode(bytes()).chars().rev().collect();
        assert_eq!(hex::encode(order(0xfc)), digits);
    }

    #[test]
    fn every_form_is_found_in_every_order_wherever_it_lies() {
        for mask in [0, 3, 4, 7, 8, 0x18, 0x38, 0xe0, 0xf8, 0xfc, 0xff, 0x55] {
            let secret = order(mask);
            let digits = hex::encode(secret);
            let list =
                |each: fn(&u8) -> String| secret.iter().map(each).collect::<Vec<_>>().join(", ");
            let lines = |size: usize, name: &str| {
                let one = |(n, word): (usize, &[u8])| {
                    format!("{name}{n} [{n}:0] = {};\n", words(word, size, ""))
                };
                secret.chunks(size).enumerate().map(one).collect::<String>()
            };
            let bits = list(|byte| format!("{byte:08b}"));
            let bit = |(n, bit): (usize, char)| format!("uds[{n}] = 1'b{bit};\n");
            let single: String = bits.replace(", ", "").chars().enumerate().map(bit).collect();
            let number = |word: &[u8]| u32::from_be_bytes(word.try_into().unwrap());
            let decimal = |size: &str| {
                let one = |word: &[u8]| format!("{size}{}", number(word));
                secret.chunks(4).map(one).collect::<Vec<_>>().join(", ")
            };
            let base64 = |before: &[u8]| STANDARD_NO_PAD.encode([before, &secret, b"!!"].concat());
            let (number, hexadecimal) = ("in a list of numbers", "in hexadecimal");
            let forms: Vec<(Vec<u8>, &str)> = vec![
                (secret.to_vec(), "raw"),
                (secret[5..13].to_vec(), "raw"),
                (digits.clone().into_bytes(), hexadecimal),
                (digits.to_uppercase().into_bytes(), hexadecimal),
                (digits[14..30].into(), hexadecimal),
                (list(|byte| format!("{byte:02x}")).into_bytes(), hexadecimal),
                (list(|byte| format!("\\x{byte:02X}")).into_bytes(), hexadecimal),
                (words(&secret, 4, ", ").into_bytes(), hexadecimal),
                (words(&secret, 2, ",\n  ").into_bytes(), hexadecimal),
                (words(&secret, 1, ". ").replace('h', "sh").into_bytes(), hexadecimal),
                (words(&secret, 8, "}, '{").to_uppercase().into_bytes(), hexadecimal),
                (
                    format!("256'h{}", words(&secret, 4, "_").replace("32'h", "")).into(),
                    hexadecimal,
                ),
                (digits.bytes().flat_map(|digit| [digit, 0]).collect(), hexadecimal),
                (lines(4, "localparam logic W").into_bytes(), number),
                (lines(1, "byte b").into_bytes(), number),
                (list(|byte| format!("{byte:#o}").replace("0o", "8'o")).into_bytes(), number),
                (format!("{secret:?}").into_bytes(), number),
                (decimal("").into_bytes(), number),
                (decimal("32'd").into_bytes(), number),
                (single.into_bytes(), number),
                (list(|byte| format!("8'b{byte:b}")).into_bytes(), number),
                (bits.into_bytes(), "in binary digits"),
                (base64(b"").into_bytes(), "in base64"),
                (base64(b"x").into_bytes(), "in base64"),
                (base64(b"xy").replace('+', "-").replace('/', "_").into_bytes(), "in base64"),
                (base32(&secret, BASE32).into_bytes(), "in base32"),
                (
                    base32(&[b"abc", &secret[..]].concat(), BASE32).to_lowercase().into(),
                    "in base32",
                ),
                (base32(&[b"x", &secret[..]].concat(), BASE32HEX).into_bytes(), "in base32"),
            ];
            for (text, form) in &forms {
                let shown = || format!("{mask:#x}: {}", String::from_utf8_lossy(text));
                let found = hits(&[b"key: ", &text[..], b"\n"].concat());
                assert_eq!(found, [*form], "{}", shown());
            }
        }
    }

    const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const BASE32HEX: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";

    fn base32(bytes: &[u8], alphabet: &[u8; 32]) -> String {
        let bit = |n: usize| bytes.get(n / 8).map_or(0, |byte| byte >> (7 - n % 8) & 1);
        let digit = |n: usize| (0..5).fold(0, |digit, i| digit << 1 | bit(5 * n + i));
        let digits = (0..(8 * bytes.len()).div_ceil(5)).map(digit);
        digits.map(|digit| char::from(alphabet[usize::from(digit)])).collect()
    }

    #[test]
    fn the_alphabets_are_those_of_the_rfc() {
        assert_eq!(base32(b"foobar", BASE32), "MZXW6YTBOI");
        assert_eq!(base32(b"foobar", BASE32HEX), "CPNMUOJ1E8");
    }

    #[test]
    fn bytes_behind_escapes_are_found() {
        // Printable characters, quotes and controls among others, as in a string of a program.
        let mut secret = bytes();
        for (at, byte) in [(1, b'A'), (2, b'"'), (5, b'\n'), (9, b'7'), (12, b'\\'), (17, 1)] {
            secret[at] = byte;
        }
        let escaped = |one: &dyn Fn(u8) -> String| secret.map(one).concat();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() && byte != b'7';
        let some =
            |byte: u8, form: String| if plain(byte) { char::from(byte).into() } else { form };
        for text in [
            escaped(&|byte| format!("\\{byte:o}")),
            escaped(&|byte| format!("\\{byte:03o}")),
            escaped(&|byte| some(byte, format!("\\{byte:03o}"))),
            escaped(&|byte| some(byte, format!("\\x{byte:02x}"))),
            escaped(&|byte| some(byte, format!("\\u{byte:04X}"))),
            escaped(&|byte| some(byte, format!("%{byte:02X}"))),
            escaped(&|byte| some(byte, format!("={byte:02X}"))),
            escaped(&|byte| match byte {
                b'\n' => "\\n".to_owned(),
                b'"' | b'\\' => format!("\\{}", char::from(byte)),
                byte => some(byte, format!("\\{byte:03o}")),
            }),
        ] {
            let found = hits_of(secret, format!("key = \"{text}\"; % 5 = 6\n").as_bytes());
            let [form] = found[..] else { panic!("{found:?}: {text}") };
            assert!(["behind escapes", "in hexadecimal"].contains(&form), "{form}: {text}");
        }
    }

    #[test]
    fn the_rows_of_a_dump_are_found_without_addresses_and_text() {
        let text = |row: &[u8]| -> String {
            let shown = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
            row.iter().map(shown).collect()
        };
        let dump = |size: usize, row: &dyn Fn(usize, &[u8]) -> String| {
            bytes().chunks(size).enumerate().map(|(n, it)| row(n * size, it)).collect::<String>()
        };
        let each = |row: &[u8], form: &dyn Fn(u8) -> String| {
            row.iter().map(|byte| form(*byte)).collect::<Vec<_>>().join(" ")
        };
        let hex = |row: &[u8]| each(row, &|byte| format!("{byte:02x}"));
        for size in [1, 2, 4] {
            for content in [
                dump(size, &|at, row| format!("{at:04x}: {}\n", hex(row))),
                dump(size, &|at, row| format!("{at:08x}: {}  {}\n", hex(row), text(row))),
                dump(size, &|at, row| format!("{at:08x}  {}  |{}|\n", hex(row), text(row))),
                dump(size, &|at, row| format!("@{at:x} {}\n", hex::encode(row))),
                dump(size, &|at, row| format!("  [{at:x}] 0x{},\r\n", hex::encode(row))),
                dump(size, &|at, row| format!("0x{at:04x}: 0x{}\n", hex::encode(row))),
                dump(size, &|at, row| format!("{at:07o} {}\n", each(row, &|b| format!("{b:3}")))),
                dump(size, &|at, row| format!("{at:07o} {}\n", each(row, &|b| format!("{b:03o}")))),
            ] {
                assert_eq!(hits(content.as_bytes()), ["in the rows of a dump"], "{content}");
                assert_eq!(hits(content.trim_end().as_bytes()).len(), 1, "{content}");
            }
        }
        let word = |row: &[u8]| format!("{:06o}", u16::from_le_bytes(row.try_into().unwrap()));
        let words = dump(2, &|at, row| format!("{at:07o} {}\n", word(row)));
        assert_eq!(hits(words.as_bytes()), ["in the rows of a dump"], "{words}");
    }

    #[test]
    fn numbers_have_their_width_without_their_zeros() {
        let secret = core::array::from_fn(|n| bytes()[n] & [0xff, 0x0f, 0xff, 0xff][n % 4]);
        for text in [
            format!("{secret:x?}"),
            format!("{secret:#x?}"),
            format!("{secret:?}"),
            secret.map(|byte| format!("8'h{byte:x}; ")).concat(),
            secret.map(|byte| format!("8'd{byte} ")).concat(),
            secret.map(|byte| format!("0b{byte:b},")).concat(),
        ] {
            assert_eq!(hits_of(secret, text.as_bytes()), ["in a list of numbers"], "{text}");
        }
    }

    #[test]
    fn a_secret_across_blocks_is_found_and_its_neighbours_are_not() {
        let digits = hex::encode(bytes()).into_bytes();
        for before in [BLOCK - 5, BLOCK - 20, BLOCK] {
            let content = [&vec![b'.'; before][..], &digits, b"..."].concat();
            assert_eq!(hits(&content), ["in hexadecimal"], "after {before} bytes");
        }
        // Seven bytes are no hit, and neither is a neighbour.
        let mut other = bytes();
        for byte in other.iter_mut().step_by(8) {
            *byte ^= 1;
        }
        let near = [
            other.to_vec(),
            hex::encode(other).into_bytes(),
            words(&other, 4, ", ").into_bytes(),
            STANDARD_NO_PAD.encode(other).into_bytes(),
            format!("{other:?} {other:x?}").into_bytes(),
        ];
        assert_eq!(hits(&near.concat()), [""; 0]);
    }

    /// A zip archive with one deflated member and one that is stored.
    fn zip(members: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for (name, content, deflate) in members {
            let packed = if *deflate {
                let mut encoder =
                    flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            } else {
                content.to_vec()
            };
            let at = out.len() as u32;
            let method: u16 = if *deflate { 8 } else { 0 };
            let sizes = [packed.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
            let middle = [
                &[20, 0, 0, 0][..],
                &method.to_le_bytes(),
                &[0; 8],
                &sizes,
                &(name.len() as u16).to_le_bytes(),
                &[0, 0],
            ]
            .concat();
            out.extend([b"PK\x03\x04", &middle[..], name.as_bytes(), &packed].concat());
            directory.extend(
                [
                    b"PK\x01\x02",
                    &[20, 0][..],
                    &middle,
                    &[0; 10],
                    &at.to_le_bytes(),
                    name.as_bytes(),
                ]
                .concat(),
            );
        }
        let (at, n) = (out.len() as u32, members.len() as u16);
        out.extend(&directory);
        out.extend(
            [
                b"PK\x05\x06",
                &[0; 4][..],
                &n.to_le_bytes(),
                &n.to_le_bytes(),
                &(directory.len() as u32).to_le_bytes(),
                &at.to_le_bytes(),
                &[0, 0],
            ]
            .concat(),
        );
        out
    }

    #[test]
    fn archives_are_opened() {
        let plain = [&b"cell ".repeat(1000)[..], hex::encode(bytes()).as_bytes()].concat();
        let checkpoint = zip(&[("a.xml", b"<x/>", false), ("netlist.edf", &plain, true)]);
        assert!(memmem::find(&checkpoint, &hex::encode(bytes()).as_bytes()[..16]).is_none());
        assert_eq!(hits(&checkpoint), ["in hexadecimal"]);
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(checkpoint.len() as u64);
        tar.append_data(&mut header, "to_aws/x.dcp", &checkpoint[..]).unwrap();
        let tar = tar.into_inner().unwrap();
        assert_eq!(hits(&tar), ["in hexadecimal"]);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&tar).unwrap();
        assert_eq!(hits(&gzip.finish().unwrap()), ["in hexadecimal"]);
        // A damaged one is read as far as it goes.
        assert_eq!(hits(&checkpoint[..checkpoint.len() - 30]), ["in hexadecimal"]);
        let at = memmem::rfind(&checkpoint, LOCAL).unwrap();
        let mut damaged = checkpoint.clone();
        damaged[at - 2..at].fill(0xff);
        assert_eq!(hits(&damaged), ["in hexadecimal"]);
        let mut streamed = checkpoint.clone();
        // The length comes after the member.
        for local in [0, at] {
            streamed[local + 6] |= 1 << 3;
            streamed[local + 18..local + 26].fill(0);
        }
        assert_eq!(hits(&streamed), ["in hexadecimal"]);
    }

    #[test]
    fn a_file_that_is_no_whole_archive_is_read_as_its_bytes() {
        let gzip = |content: &[u8]| {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            gzip.write_all(content).unwrap();
            gzip.finish().unwrap()
        };
        let other = zip(&[("a", b"text of a file", true), ("b", b"another", false)]);
        let noise: Vec<u8> = (0..1000_u32).map(|n| (n.wrapping_mul(n) >> 3) as u8).collect();
        let whole = gzip(b"text");
        for (name, content) in [
            ("magic", b"\x1f\x8b".to_vec()),
            ("gzip of noise", [b"\x1f\x8b\x08\0", &noise[..]].concat()),
            ("cut gzip", gzip(&noise)[..500].to_vec()),
            ("gzip with more", [&whole[..], b"more"].concat()),
            ("zip of noise", [LOCAL, &noise].concat()),
            ("cut zip", other[..other.len() / 2].to_vec()),
        ] {
            assert_eq!(look(&content).clean().map_err(|e| e.to_string()), Ok(()), "{name}");
            // The secret is found in each.
            let with = [&content[..], b" ", hex::encode(bytes()).as_bytes()].concat();
            let found = hits(&with);
            assert!(found.first() == Some(&"in hexadecimal"), "{name}: {found:?}");
        }
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(hex::encode(bytes()).repeat(2).as_bytes()).unwrap();
        let packed = [packed.finish().unwrap(), b"more".to_vec()].concat();
        assert_eq!(hits(&packed), ["in hexadecimal"]);
    }

    #[test]
    fn an_archive_of_a_format_that_is_not_opened_is_a_finding() {
        let lzma = [&[0x5d, 0, 0, 0x80, 0][..], &[0xff; 8], b"packed"].concat();
        let closed = CLOSED.iter().map(|(begin, _)| [begin, &b"packed"[..]].concat());
        for content in closed.chain([lzma.clone(), b"BZh11AY&SYpacked".to_vec()]) {
            let error = look(&content).clean().unwrap_err();
            assert_eq!(error.code(), "SHEF-CLD-045", "{content:?}");
            assert!(error.to_string().contains("which is not opened, expected"), "{error}");
            // Also a member.
            for deflate in [true, false] {
                let error = look(&zip(&[("a.xz", &content, deflate)])).clean().unwrap_err();
                assert!(error.to_string().contains("file/a.xz: it is"), "{error}");
            }
        }
        // Text and data that begin in a similar way.
        for content in [
            &b"BZh9 is the begin of bzip2"[..],
            b"LZIP is a format",
            b"7z",
            &lzma[..9],
            b"!<arch>\nlib.o/",
        ] {
            assert_eq!(look(content).clean().map_err(|e| e.to_string()), Ok(()), "{content:?}");
        }
    }

    #[test]
    fn an_archive_that_cannot_be_read_is_a_finding() {
        let mut other = zip(&[("a", b"text of a file", true)]);
        let code = |content: &[u8]| look(content).clean().unwrap_err().to_string();
        other[8] = 12;
        assert!(code(&other).contains("a: it is compressed by a method"), "{}", code(&other));
        (other[6], other[8]) = (1, 8);
        assert!(code(&other).contains("a: it is encrypted"), "{}", code(&other));
        let mut nested = b"text".to_vec();
        for _ in 0..=DEPTH {
            assert!(look(&nested).clean().is_ok());
            nested = zip(&[("n", &nested, true)]);
        }
        let error = look(&nested).clean().unwrap_err();
        assert_eq!(error.code(), "SHEF-CLD-045");
        assert!(error.to_string().contains("nested deeper"), "{error}");
    }
}
