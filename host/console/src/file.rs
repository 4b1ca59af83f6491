//! Output files of commands, and how documents name files.

use std::path::Path;

use crate::CliError;

/// Writes or replaces an output file ([`shef::write_file`]).
///
/// # Errors
/// SHEF-CLI-015, with the file's name; nothing of it stays behind.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
    shef::write_file(path, bytes.as_ref()).map_err(|e| CliError::write_file(path, &e))
}

/// Writes a file that must not exist, for its owner only ([`shef::write_new_secret`]).
///
/// # Errors
/// As [`write`].
pub fn write_new_secret(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    shef::write_new_secret(path, bytes).map_err(|e| CliError::write_file(path, &e))
}

/// A path in a JSON document. A name that is not UTF-8 has U+FFFD for each byte that is not text: a
/// document is text, and the command has done its work.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(transparent)]
pub struct PathText(String);

impl<P: AsRef<Path>> From<P> for PathText {
    fn from(path: P) -> Self {
        Self(path.as_ref().display().to_string())
    }
}
