//! Scans the text of a policy before it is parsed.

use super::MAX_BYTES;
use super::program::{may_call, refusal};
use crate::files::PolicyError;

/// Maximum work of the parser, as counted by [`reading`]: a few tenths of a second.
const READING: u64 = 1 << 20;

/// Scans a policy without parsing it.
pub(super) fn look_over(text: &str) -> Result<(), PolicyError> {
    let bad = |text: String| PolicyError::Rego { text };
    if text.len() > MAX_BYTES {
        return Err(bad(format!("{} bytes, the limit is {MAX_BYTES}", text.len())));
    }
    if reading(text) > READING {
        return Err(bad(
            "its brackets are nested so deep that it would take too long to read: make what is inside a rule of its own".into()
        ));
    }
    if let Some(name) = forbidden(text) {
        return Err(bad(refusal(&name)));
    }
    Ok(())
}

/// The bytes of a policy, each with whether it is code rather than part of a string or comment.
fn bytes(text: &str) -> impl Iterator<Item = (u8, bool)> {
    // The end marker of the current string or comment, and whether this byte is escaped.
    let (mut until, mut escaped) = (None, false);
    text.bytes().map(move |byte| match until {
        Some(_) if escaped => {
            escaped = false;
            (byte, false)
        }
        Some(end) => {
            escaped = end == b'"' && byte == b'\\';
            if byte == end {
                until = None;
            }
            (byte, false)
        }
        None => {
            until = match byte {
                b'"' | b'`' => Some(byte),
                b'#' => Some(b'\n'),
                _ => None,
            };
            (byte, until.is_none())
        }
    })
}

/// Number of characters that the parser reads, with repetitions. It first tries bracketed text as a
/// comprehension and, if that fails, reads it again, including nested brackets. Fifty nested
/// brackets would take forever.
fn reading(text: &str) -> u64 {
    let (mut sum, mut depth) = (0u64, 0u32);
    for (byte, code) in bytes(text) {
        sum = sum.saturating_add(1u64.checked_shl(depth).unwrap_or(u64::MAX));
        match byte {
            b'{' | b'[' if code => depth += 1,
            b'}' | b']' if code => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    sum
}

/// The first function name that is not allowed. A name hidden from this scan is refused when it is
/// called.
fn forbidden(text: &str) -> Option<String> {
    let mut word = String::new();
    for (byte, code) in bytes(text).chain([(b'\n', true)]) {
        if code && (byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) {
            word.push(char::from(byte));
            continue;
        }
        // A rule or variable may have the name of a function without a dot.
        if !may_call(&word) && (word.contains('.') || byte == b'(') {
            return Some(word);
        }
        word.clear();
    }
    None
}
