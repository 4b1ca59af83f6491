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

/// Folder of Ibex' sources: `SHEF_IBEX`, else the project's tools folder.
///
/// # Errors
/// [`Error::IbexMissing`](crate::Error::IbexMissing).
pub fn ibex() -> crate::Result<PathBuf> {
    let ibex = match std::env::var_os("SHEF_IBEX") {
        Some(v) if !v.is_empty() => PathBuf::from(v),
        _ => repo_root().join("target/tools/ibex-0.0.post2937/pythondata_cpu_ibex/system_verilog"),
    };
    if ibex.join("rtl/ibex_core.sv").is_file() {
        Ok(ibex)
    } else {
        Err(crate::Error::IbexMissing(ibex.display().to_string()))
    }
}
