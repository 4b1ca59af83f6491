//! Finding the repository.

use std::path::{Path, PathBuf};

/// Root of the repository (`SHEF_ROOT`, else where this crate was compiled).
#[must_use]
pub fn repo_root() -> PathBuf {
    match std::env::var_os("SHEF_ROOT") {
        Some(r) if !r.is_empty() => PathBuf::from(r),
        _ => {
            let p = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            std::fs::canonicalize(&p).unwrap_or(p)
        }
    }
}
