//! Looks for the secret of an image in every file below a folder, also inside of archives.
//!
//! A file is read as several streams of bits: its bytes, its hexadecimal digits, its binary digits,
//! its base64 characters, and the numbers that it lists, each at its width. Characters between digits
//! do not count. A hit is any 64 bits of a stream that are 8 consecutive bytes of the secret in some
//! order: of bits in a nibble or byte, of nibbles, of bytes in a word, of words. An order reverses
//! the secret within units of a power of two bits, so bit `i` of it is bit `i ^ mask` of the secret:
//! 256 masks are all orders. A checkpoint of Vivado is a zip archive: its members are inflated, and
//! so are gzip and tar.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::{DeflateDecoder, MultiGzDecoder};
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
    let wrong =
        || CloudError::Changed { file: package.to_owned(), what: "it is no package with a secret" };
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
        self.number.zeroize();
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
}

impl Report {
    /// That there is no hit.
    ///
    /// # Errors
    /// SHEF-CLD-024.
    pub fn clean(&self) -> Result<(), CloudError> {
        match self.hits.first() {
            None => Ok(()),
            Some(hit) => Err(CloudError::Secret {
                file: hit.file.clone(),
                form: hit.form.to_owned(),
                hits: self.hits.len(),
            }),
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
        if depth == DEPTH {
            return Ok(());
        }
        let mut head = [0; 512];
        data.seek(SeekFrom::Start(0))?;
        let got = read_full(&mut data, &mut head)?;
        if head.starts_with(b"PK\x03\x04") {
            self.zip(name, &mut data, depth)
        } else if head.starts_with(&[0x1f, 0x8b]) {
            data.seek(SeekFrom::Start(0))?;
            self.member(&name.join("(gzip)"), MultiGzDecoder::new(data), depth)
        } else if got == 512 && head[257..262] == *b"ustar" {
            data.seek(SeekFrom::Start(0))?;
            let mut tar = tar::Archive::new(data);
            for entry in tar.entries()? {
                let entry = entry?;
                let inner = name.join(entry.path()?);
                self.member(&inner, entry, depth)?;
            }
            Ok(())
        } else {
            Ok(())
        }
    }

    /// Looks at a member of an archive.
    fn member(&mut self, name: &Path, mut data: impl Read, depth: usize) -> io::Result<()> {
        self.report.members += 1;
        let mut head = vec![0; 512];
        let got = read_full(&mut data, &mut head)?;
        head.truncate(got);
        let tar = got == 512 && head[257..262] == *b"ustar";
        let whole = tar || head.starts_with(b"PK\x03\x04") || head.starts_with(&[0x1f, 0x8b]);
        let mut data = Cursor::new(head).chain(data);
        if !whole {
            return self.stream(name, &mut data);
        }
        let mut inner = Vec::new();
        if data.by_ref().take(MAX_INNER).read_to_end(&mut inner)? as u64 == MAX_INNER {
            return Err(io::Error::other(format!("{}: too large", name.display())));
        }
        self.archive(name, Cursor::new(inner), depth + 1)
    }

    /// Looks at the members of a zip archive, by its central directory.
    fn zip(&mut self, name: &Path, data: &mut (impl Read + Seek), depth: usize) -> io::Result<()> {
        let wrong =
            |what: &str| io::Error::other(format!("not a zip archive of a known form: {what}"));
        let len = data.seek(SeekFrom::End(0))?;
        let tail_at = len.saturating_sub(66_000);
        data.seek(SeekFrom::Start(tail_at))?;
        let mut tail = Vec::new();
        data.read_to_end(&mut tail)?;
        let end = memmem::rfind(&tail, b"PK\x05\x06").ok_or_else(|| wrong("no end"))?;
        let short = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]))
        };
        let long = |bytes: &[u8], at: usize| {
            bytes.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        };
        let cut = || wrong("cut");
        let entries = short(&tail, end + 10).ok_or_else(cut)?;
        let size = long(&tail, end + 12).ok_or_else(cut)?;
        let at = long(&tail, end + 16).ok_or_else(cut)?;
        if entries == u16::MAX || size == u32::MAX || at == u32::MAX {
            return Err(wrong("zip64"));
        }
        data.seek(SeekFrom::Start(at.into()))?;
        let mut directory = Vec::new();
        data.by_ref().take(size.into()).read_to_end(&mut directory)?;
        let mut entry = 0;
        for _ in 0..entries {
            let field = &directory[entry.min(directory.len())..];
            if !field.starts_with(b"PK\x01\x02") {
                return Err(cut());
            }
            let (flags, method) = (short(field, 8), short(field, 10));
            let packed = long(field, 20).ok_or_else(cut)?;
            let lens = [28, 30, 32].map(|at| usize::from(short(field, at).unwrap_or(0)));
            let local = long(field, 42).ok_or_else(cut)?;
            let inner = String::from_utf8_lossy(field.get(46..46 + lens[0]).ok_or_else(cut)?);
            let inner = name.join(&*inner);
            entry += 46 + lens.iter().sum::<usize>();
            if flags.is_some_and(|flags| flags & 1 != 0) {
                // Encrypted: nothing to read.
                continue;
            }
            let mut head = [0; 30];
            data.seek(SeekFrom::Start(local.into()))?;
            data.read_exact(&mut head)?;
            let skip = [26, 28].map(|at| i64::from(short(&head, at).unwrap_or(0)));
            data.seek(SeekFrom::Current(skip[0] + skip[1]))?;
            let raw = data.by_ref().take(packed.into());
            match method {
                Some(0) => self.member(&inner, raw, depth)?,
                Some(8) => self.member(&inner, DeflateDecoder::new(raw), depth)?,
                method => return Err(wrong(&format!("method {method:?} of {}", inner.display()))),
            }
        }
        Ok(())
    }

    /// Looks at bytes up to the first hit.
    fn stream(&mut self, name: &Path, data: &mut impl Read) -> io::Result<()> {
        let mut streams = Streams::default();
        let mut block = Zeroizing::new(vec![0; BLOCK]);
        let mut found = None;
        while found.is_none() {
            let got = data.read(&mut block)?;
            self.report.bytes += got as u64;
            found = match &block[..got] {
                [] => match streams.end(&self.windows) {
                    None => return Ok(()),
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

/// Fills a buffer as far as there are bytes.
fn read_full(data: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match data.read(&mut buffer[len..])? {
            0 => break,
            n => len += n,
        }
    }
    Ok(len)
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
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, content).unwrap();
        let mut scan = Scan::new(&Zeroizing::new(secret));
        scan.below(dir.path(), None).unwrap();
        scan.report().hits.into_iter().map(|hit| hit.form).collect()
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
            ];
            for (text, form) in &forms {
                let shown = || format!("{mask:#x}: {}", String::from_utf8_lossy(text));
                let found = hits(&[b"key: ", &text[..], b"\n"].concat());
                assert_eq!(found, [*form], "{}", shown());
            }
        }
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
        // A damaged archive is not clean.
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x.dcp"), &checkpoint[..checkpoint.len() - 30]).unwrap();
        let error = Scan::new(&Zeroizing::new(bytes())).below(dir.path(), None).unwrap_err();
        assert_eq!(error.code(), "SHEF-CLD-055");
    }
}
