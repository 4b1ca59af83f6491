//! Rows of pixels with labels, read from CSV or gzipped CSV.
//!
//! A line has 64 pixels (0 to 255) and then a label (0 to 15), separated by commas. An optional
//! header line starts with a letter or a quote.

use std::io::Read;
use std::path::Path;

use shef_console::CliError;

/// Pixels in a row.
pub const PIXELS: usize = 64;
/// Largest label.
pub const MAX_LABEL: u8 = 15;
/// Maximum number of rows in a file.
pub const MAX_ROWS: usize = 4096 + 16384;
/// Maximum size of the text, in bytes.
const MAX_TEXT: u64 = 16 << 20;
/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// Rows and their labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// Pixels of each row.
    pub rows: Vec<[u8; PIXELS]>,
    /// Label of each row.
    pub labels: Vec<u8>,
}

impl Dataset {
    /// The digits of this repository, `tests/data/digits.csv.gz`.
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn shipped() -> Result<Self, CliError> {
        Self::load(&crate::data_file("digits.csv.gz"))
    }

    /// Reads a file, gzipped or not.
    ///
    /// # Errors
    /// SHEF-CLI-010 if the file cannot be read, SHEF-CLI-011 if gzip reports that it is damaged,
    /// SHEF-CLI-012 if a line is malformed, SHEF-CLI-013 if it is empty or too large.
    pub fn load(path: &Path) -> Result<Self, CliError> {
        let file = std::fs::File::open(path).map_err(|e| CliError::read_file(path, &e))?;
        let mut raw = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut raw).map_err(|e| CliError::read_file(path, &e))?;
        if raw.len() as u64 > MAX_FILE {
            return Err(CliError::new(
                "SHEF-CLI-013",
                format!("{} has more than {MAX_FILE} bytes", path.display()),
            ));
        }
        Self::parse(&raw, &path.display().to_string())
    }

    /// Parses the bytes of a file; `name` is used in messages.
    ///
    /// # Errors
    /// As [`Dataset::load`].
    pub fn parse(raw: &[u8], name: &str) -> Result<Self, CliError> {
        let text = if raw.starts_with(&[0x1f, 0x8b]) { gunzip(raw, name)? } else { raw.to_vec() };
        if text.len() as u64 > MAX_TEXT {
            return Err(CliError::new(
                "SHEF-CLI-013",
                format!("{name} holds more than {MAX_TEXT} bytes of text"),
            ));
        }
        let text = String::from_utf8(text).map_err(|e| {
            CliError::new(
                "SHEF-CLI-012",
                format!(
                    "{name} is not text: byte {:#04x} at offset {}",
                    e.as_bytes()[e.utf8_error().valid_up_to()],
                    e.utf8_error().valid_up_to()
                ),
            )
        })?;
        let mut data = Self { rows: Vec::new(), labels: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty()
                || (index == 0 && line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '"'))
            {
                continue;
            }
            let (row, label) = parse_line(line).map_err(|what| {
                CliError::new("SHEF-CLI-012", format!("{name}, line {}: {what}", index + 1))
            })?;
            if data.rows.len() == MAX_ROWS {
                return Err(CliError::new(
                    "SHEF-CLI-013",
                    format!("{name} has more than {MAX_ROWS} rows"),
                ));
            }
            data.rows.push(row);
            data.labels.push(label);
        }
        if data.rows.is_empty() {
            return Err(CliError::new("SHEF-CLI-013", format!("{name} holds no rows")));
        }
        Ok(data)
    }

    /// Splits off the first `train` rows for training; the others are queries.
    ///
    /// # Errors
    /// SHEF-CLI-014 if either part is empty or larger than the accelerator supports.
    pub fn split(&self, train: usize) -> Result<(Self, Self), CliError> {
        let bad = |what: String| CliError::new("SHEF-CLI-014", what);
        if train == 0 || train >= self.rows.len() {
            return Err(bad(format!(
                "--train {train} leaves no training rows or no queries: the file has {} rows",
                self.rows.len()
            )));
        }
        if train > 4096 {
            return Err(bad(format!(
                "--train {train} is more than the 4096 rows that the accelerator takes"
            )));
        }
        if self.rows.len() - train > 16384 {
            return Err(bad(format!(
                "{} queries are more than the 16384 that the region holds",
                self.rows.len() - train
            )));
        }
        let part = |range: std::ops::Range<usize>| Self {
            rows: self.rows[range.clone()].to_vec(),
            labels: self.labels[range].to_vec(),
        };
        Ok((part(0..train), part(train..self.rows.len())))
    }

    /// The first `n` rows.
    #[must_use]
    pub fn head(&self, n: usize) -> Self {
        let n = n.min(self.rows.len());
        Self { rows: self.rows[..n].to_vec(), labels: self.labels[..n].to_vec() }
    }

    /// All pixels, row after row.
    pub fn pixels(&self) -> Vec<u8> {
        self.rows.as_flattened().to_vec()
    }
}

fn gunzip(raw: &[u8], name: &str) -> Result<Vec<u8>, CliError> {
    let damaged =
        |what: String| CliError::new("SHEF-CLI-011", format!("{name} is damaged: {what}"));
    let mut text = Vec::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let mut decoder = flate2::bufread::GzDecoder::new(rest);
        decoder
            .by_ref()
            .take(MAX_TEXT + 1 - text.len() as u64)
            .read_to_end(&mut text)
            .map_err(|e| damaged(e.to_string()))?;
        if text.len() as u64 > MAX_TEXT {
            return Err(CliError::new(
                "SHEF-CLI-013",
                format!("{name} holds more than {MAX_TEXT} bytes of text"),
            ));
        }
        let left = decoder.into_inner();
        if left.len() == rest.len() {
            return Err(damaged("gzip makes no progress".to_owned()));
        }
        rest = left;
    }
    Ok(text)
}

fn parse_line(line: &str) -> Result<([u8; PIXELS], u8), String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    if fields.len() != PIXELS + 1 {
        return Err(format!("{} columns, expected {PIXELS} pixels and a label", fields.len()));
    }
    let number = |column: usize, max: u8| {
        fields[column].parse::<u8>().ok().filter(|v| *v <= max).ok_or_else(|| {
            let shown: String = fields[column].chars().take(20).collect();
            format!("column {}: {shown:?} is no whole number from 0 to {max}", column + 1)
        })
    };
    let mut row = [0; PIXELS];
    for (column, pixel) in row.iter_mut().enumerate() {
        *pixel = number(column, 255)?;
    }
    Ok((row, number(PIXELS, MAX_LABEL)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn digits() -> Dataset {
        Dataset::shipped().unwrap()
    }

    fn line(label: &str) -> String {
        let mut text = "1,".repeat(PIXELS);
        text.push_str(label);
        text
    }

    #[test]
    fn the_real_digits_are_read() {
        let data = digits();
        assert_eq!(data.rows.len(), 1797);
        assert_eq!(&data.labels[..10], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let (train, query) = data.split(1000).unwrap();
        assert_eq!((train.rows.len(), query.rows.len()), (1000, 797));
    }

    #[test]
    fn cuts_and_flipped_bytes_of_the_gzip_are_refused() {
        let raw = std::fs::read(crate::data_file("digits.csv.gz")).unwrap();
        for cut in [3, 10, 100, raw.len() / 2, raw.len() - 8, raw.len() - 1] {
            assert_eq!(
                Dataset::parse(&raw[..cut], "x").unwrap_err().code,
                "SHEF-CLI-011",
                "cut at {cut}"
            );
        }
        for at in [100, 1000, raw.len() / 2, raw.len() - 6, raw.len() - 1] {
            let mut bad = raw.clone();
            bad[at] ^= 0x10;
            let error = Dataset::parse(&bad, "x").unwrap_err();
            assert!(
                matches!(&*error.code, "SHEF-CLI-011" | "SHEF-CLI-012" | "SHEF-CLI-013"),
                "{}",
                error.code
            );
        }
        let mut trailing = raw.clone();
        trailing.extend_from_slice(b"more");
        assert_eq!(Dataset::parse(&trailing, "x").unwrap_err().code, "SHEF-CLI-011");
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, code, part) in [
            (line("3"), "", ""),
            (format!("a,b\n{}", line("3")), "", ""),
            (format!("{}\n{}", line("3"), line("16")), "SHEF-CLI-012", "line 2: column 65"),
            (line("-1"), "SHEF-CLI-012", "column 65"),
            (line(""), "SHEF-CLI-012", "column 65"),
            (line("1.0"), "SHEF-CLI-012", "column 65"),
            (format!("{},1", line("3")), "SHEF-CLI-012", "66 columns"),
            (line("3").replacen('1', "256", 1), "SHEF-CLI-012", "column 1"),
            ("\n".to_owned(), "SHEF-CLI-013", "no rows"),
        ] {
            match Dataset::parse(text.as_bytes(), "file.csv") {
                Ok(_) => assert_eq!(code, "", "{text}"),
                Err(error) => {
                    assert_eq!(error.code, code, "{text}");
                    assert!(error.message.contains(part), "{}", error.message);
                }
            }
        }
        assert_eq!(Dataset::parse(b"\xff\xfe", "x").unwrap_err().code, "SHEF-CLI-012");
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..(MAX_TEXT / 65536 + 2) {
            encoder.write_all(&[b'1'; 65536]).unwrap();
        }
        assert_eq!(
            Dataset::parse(&encoder.finish().unwrap(), "x").unwrap_err().code,
            "SHEF-CLI-013"
        );
    }

    #[test]
    fn splits_that_leave_nothing_are_refused() {
        for train in [0, 1797, 5000] {
            assert_eq!(digits().split(train).unwrap_err().code, "SHEF-CLI-014");
        }
    }
}
