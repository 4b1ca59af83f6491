//! Looks for the secret of an image in every file below a folder, also inside of archives.
//!
//! The search covers the raw bytes, hexadecimal of either case with and without `_`, in binary digits, each
//! also in parts of 8 bytes and in reversed byte order, and in base64 at each alignment. A checkpoint
//! of Vivado is a zip archive: its members are inflated, and so are gzip and tar.

use std::fs::{self, File};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use flate2::read::{DeflateDecoder, MultiGzDecoder};
use memchr::memmem;
use zeroize::{Zeroize as _, Zeroizing};

use crate::CloudError;

/// Bytes of a part that counts as a hit.
const PART: usize = 8;
/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;
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

/// A way to write the secret.
struct Form {
    name: &'static str,
    /// Digits of numbers: `_` and case do not count.
    digits: bool,
    text: Zeroizing<Vec<u8>>,
}

/// All ways to write it.
fn forms(secret: &Secret) -> Vec<Form> {
    let mut forms = Vec::new();
    let mut turned = Zeroizing::new(**secret);
    turned.reverse();
    for (bytes, names) in [
        (secret, ["raw", "in hexadecimal", "in binary digits", "in base64"]),
        (
            &turned,
            [
                "raw, reversed",
                "in hexadecimal, reversed",
                "in binary digits, reversed",
                "in base64, reversed",
            ],
        ),
    ] {
        let mut add = |name, digits, text: Vec<u8>| {
            forms.push(Form { name, digits, text: Zeroizing::new(text) });
        };
        for part in bytes.chunks(PART) {
            add(names[0], false, part.to_vec());
            let hex = |b: &u8| [b >> 4, b & 15].map(|n| b"0123456789abcdef"[usize::from(n)]);
            add(names[1], true, part.iter().flat_map(hex).collect());
            let bits = |b: &u8| (0..8).rev().map(|bit| b'0' + (b >> bit & 1)).collect::<Vec<_>>();
            add(names[2], true, part.iter().flat_map(bits).collect());
        }
        for before in 0..3 {
            // The characters that no neighbour of the secret changes.
            let mut shifted = Zeroizing::new(vec![0; before]);
            shifted.extend_from_slice(&bytes[..]);
            let (first, end) = ((before * 8).div_ceil(6), (before + 32) * 8 / 6);
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let text = Zeroizing::new(engine.encode(&*shifted));
                add(names[3], false, text.as_bytes()[first..end].to_vec());
            }
        }
    }
    forms
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
    forms: Vec<Form>,
    longest: usize,
    report: Report,
}

impl Scan {
    /// Looks for this secret.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        let forms = forms(secret);
        let longest = forms.iter().map(|form| form.text.len()).max().unwrap_or(0);
        Self { forms, longest, report: Report::default() }
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

    /// Looks at bytes from the beginning to the end.
    fn stream(&mut self, name: &Path, data: &mut impl Read) -> io::Result<()> {
        let mut found: Vec<&'static str> = Vec::new();
        let (mut raw, mut digits) = (Vec::new(), Vec::new());
        let mut block = vec![0; BLOCK];
        loop {
            let got = data.read(&mut block)?;
            if got == 0 {
                break;
            }
            let new = &block[..got];
            self.report.bytes += got as u64;
            raw.extend_from_slice(new);
            digits.extend(new.iter().filter(|b| **b != b'_').map(u8::to_ascii_lowercase));
            for form in &self.forms {
                let text = if form.digits { &digits } else { &raw };
                if !found.contains(&form.name) && memmem::find(text, &form.text).is_some() {
                    found.push(form.name);
                }
            }
            for kept in [&mut raw, &mut digits] {
                kept.drain(..kept.len().saturating_sub(self.longest));
            }
        }
        // They may hold parts of the secret.
        block.zeroize();
        raw.zeroize();
        digits.zeroize();
        let hit = |form| Hit { file: name.to_owned(), form };
        self.report.hits.extend(found.into_iter().map(hit));
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

    use super::*;

    fn bytes() -> [u8; 32] {
        core::array::from_fn(|n| (n as u8).wrapping_mul(37).wrapping_add(201))
    }

    fn hits(content: &[u8]) -> Vec<&'static str> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, content).unwrap();
        let mut scan = Scan::new(&Zeroizing::new(bytes()));
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

    #[test]
    fn every_form_is_found_wherever_it_lies() {
        let secret = bytes();
        let mut turned = secret;
        turned.reverse();
        let bits = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:08b}")).collect::<String>();
        let package = shef_gen::secret::secret_package(&secret);
        let forms: Vec<(Vec<u8>, &str)> = vec![
            (secret.to_vec(), "raw"),
            (turned.to_vec(), "raw, reversed"),
            (secret[8..16].to_vec(), "raw"),
            (hex::encode(secret).into_bytes(), "in hexadecimal"),
            (hex::encode_upper(secret).into_bytes(), "in hexadecimal"),
            (hex::encode_upper(&turned[..8]).into_bytes(), "in hexadecimal, reversed"),
            (package.as_bytes().to_vec(), "in hexadecimal, reversed"),
            (bits(&turned).into_bytes(), "in binary digits, reversed"),
            (STANDARD_NO_PAD.encode(secret).into_bytes(), "in base64"),
            (
                STANDARD_NO_PAD.encode([b"key".as_slice(), &secret, b"!"].concat()).into_bytes(),
                "in base64",
            ),
            (
                URL_SAFE_NO_PAD.encode([b"x".as_slice(), &secret, b"yz"].concat()).into_bytes(),
                "in base64",
            ),
            (
                STANDARD_NO_PAD.encode([b"xy".as_slice(), &turned].concat()).into_bytes(),
                "in base64, reversed",
            ),
        ];
        for (text, form) in &forms {
            for before in [0, 1, BLOCK - 5, 3 * BLOCK - 20] {
                let content = [&vec![b'.'; before][..], text, b"..."].concat();
                assert_eq!(hits(&content), [*form], "{form} after {before} bytes");
            }
        }
        // Seven bytes are no hit, and neither is a neighbour.
        let mut other = secret;
        for byte in other.iter_mut().step_by(8) {
            *byte ^= 1;
        }
        assert_eq!(hits(&[&other[..], hex::encode(other).as_bytes()].concat()), [""; 0]);
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
