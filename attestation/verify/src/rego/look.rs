//! What is looked for in the text of a policy before it is parsed.

use super::MAX_BYTES;
use super::program::{may_call, refusal};
use crate::files::PolicyError;

/// Most that the parser may have to read, as [`reading`] counts it: some tenths of a second.
const READING: u64 = 1 << 20;

/// Looks a policy over, without parsing it.
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

/// Bytes of a policy, and whether each stands in code: neither in a string nor in a comment.
fn bytes(text: &str) -> impl Iterator<Item = (u8, bool)> {
    // What ends the string or comment that is read, and whether this byte was escaped.
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

/// Characters that the parser reads, each as often as it does: what is in brackets is tried as a
/// comprehension first and, where it is none, read again, brackets in it and all. Fifty nested ones
/// would take it for ever.
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

/// The first function by name that policies may not call. What hides a name from here meets the
/// same refusal when it is called.
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
