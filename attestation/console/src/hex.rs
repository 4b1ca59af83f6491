//! Hexadecimal arguments and output.

use crate::error::CliError;

/// `bytes` in lower-case digits.
pub fn encode(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

/// The bytes that `text` encodes. The message of an error calls them `what`.
///
/// # Errors
/// SHEF-CLI-018.
pub fn decode(text: &str, what: &str) -> Result<Vec<u8>, CliError> {
    hex::decode(text.trim())
        .map_err(|e| CliError::new("SHEF-CLI-018", format!("{what} is not hexadecimal: {e}")))
}

/// Like [`decode`], for exactly `N` bytes.
///
/// # Errors
/// SHEF-CLI-018.
pub fn decode_array<const N: usize>(text: &str, what: &str) -> Result<[u8; N], CliError> {
    let bytes = decode(text, what)?;
    let len = bytes.len();
    bytes
        .try_into()
        .map_err(|_| CliError::new("SHEF-CLI-018", format!("{what} has {len} bytes, expected {N}")))
}
