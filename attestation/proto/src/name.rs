//! User-entered names of revoked, withdrawn or allowed items: digests, serial numbers and ueids in
//! hexadecimal.
//!
//! A revocation list fails open if it accepts an entry that never matches. So values are compared,
//! not spellings. The parser accepts either case, colons between bytes, `sha256:` before a digest
//! and leading zeros of a serial number; all else is an error. The canonical spelling is lower-case
//! hexadecimal without separators.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;

use crate::cert::UEID_LEN;

/// Maximum length of a serial number in bytes (RFC 5280, 4.1.2.2).
const SERIAL_MAX: usize = 20;

/// Lower-case hexadecimal without colons.
fn plain(text: &str) -> Option<String> {
    let pairs = text.contains(':');
    let parts = text.split(':');
    if pairs && parts.clone().any(|part| part.len() != 2) {
        return None;
    }
    let digits: String = parts.collect();
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| digits.to_ascii_lowercase())
}

fn of_length(text: &str, bytes: usize) -> Option<String> {
    plain(text).filter(|digits| digits.len() == 2 * bytes)
}

/// Expected form of a digest.
pub const DIGEST: &str = "a SHA-256 digest: 64 hexadecimal digits";
/// Expected form of a serial number.
pub const SERIAL: &str = "a serial number: 1 to 40 hexadecimal digits";
/// Expected form of a ueid.
pub const UEID: &str = "a ueid: 66 hexadecimal digits";

/// A SHA-256 digest in its canonical spelling.
#[must_use]
pub fn digest(text: &str) -> Option<String> {
    let prefix = text.get(..7).filter(|prefix| prefix.eq_ignore_ascii_case("sha256:"));
    of_length(text.get(prefix.map_or(0, str::len)..)?, 32)
}

/// A ueid in its canonical spelling.
#[must_use]
pub fn ueid(text: &str) -> Option<String> {
    of_length(text, UEID_LEN)
}

/// A serial number in its canonical spelling: whole bytes, without leading zero bytes.
#[must_use]
pub fn serial(text: &str) -> Option<String> {
    let digits = plain(text).filter(|digits| !digits.is_empty())?;
    let number = digits.trim_start_matches('0');
    let number = if number.is_empty() { "0" } else { number };
    (number.len() <= 2 * SERIAL_MAX)
        .then(|| if number.len() % 2 == 0 { number.to_owned() } else { format!("0{number}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_not_spellings() {
        let canonical = "0a".repeat(32);
        for text in [
            canonical.clone(),
            "0A".repeat(32),
            format!("sha256:{canonical}"),
            format!("SHA256:{}", ["0A"; 32].join(":")),
        ] {
            assert_eq!(digest(&text), Some(canonical.clone()), "{text}");
        }
        for text in [
            "",
            "nonsense",
            "sha256:",
            &"0a".repeat(31),
            &"0g".repeat(32),
            &format!("sha1:{canonical}"),
            &format!("{canonical}:"),
        ] {
            assert_eq!(digest(text), None, "{text:?}");
        }
        for (text, number) in [
            ("7f", "7f"),
            ("007f", "7f"),
            ("00:FF:01", "ff01"),
            ("0000000001", "01"),
            ("f", "0f"),
            ("0", "00"),
            (&format!("00{}", "ab".repeat(20)), &*"ab".repeat(20)),
        ] {
            assert_eq!(serial(text).as_deref(), Some(number), "{text}");
        }
        for text in ["", "0x7f", "7f ", "-1", ":", &"ab".repeat(21)] {
            assert_eq!(serial(text), None, "{text:?}");
        }
        assert_eq!(ueid(&"AB".repeat(33)), Some("ab".repeat(33)));
        assert_eq!(ueid(&"ab".repeat(32)), None);
    }
}
