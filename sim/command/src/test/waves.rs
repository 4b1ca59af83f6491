//! Waves of a run, and those that are kept of a run that failed.

use std::path::PathBuf;

use serde::Serialize;
use shef_card::{Design, RtlOptions, WaveScope};
use shef_console::{CliError, hex};

use super::phases::{self, Phase};
use crate::job::case::Case;

/// Cycles before a failure that are kept.
const CYCLES: u64 = 10_000;
/// Cycles after it, so that its end shows.
const AFTER: u64 = 16;

/// Waves of a failing seed without a Shield.
#[derive(Debug, Clone, Serialize)]
pub struct Kept {
    /// The file (FST); its time is in half cycles.
    pub file: String,
    /// Its first cycle.
    pub from: u64,
    /// Cycle of the failure in this run. Another build writes the waves, whose registers may begin
    /// with other contents.
    pub failed: Option<u64>,
}

/// The file of a case in the cache.
fn file(design: &Design, case: &Case<'_>) -> Result<PathBuf, CliError> {
    let folder = shef_card::cache_dir().join("waves");
    std::fs::create_dir_all(&folder).map_err(|e| CliError::write_file(&folder, &e))?;
    let digest = hex::encode(&design.digest()[..4]);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let test: String = case.subject.name.chars().map(plain).collect();
    Ok(folder.join(format!("{}-{digest}-{test}-{}.fst", design.name(), case.seed)))
}

/// Runs a case that failed without a Shield at this cycle again, and keeps waves of its end.
///
/// # Errors
/// The design cannot be built with waves, or the file cannot be written.
pub fn keep(
    design: &Design,
    case: &Case<'_>,
    cycle: u64,
    progress: &mut dyn FnMut(&str),
) -> Result<Kept, CliError> {
    let (file, from) = (file(design, case)?, cycle.saturating_sub(CYCLES));
    let options = RtlOptions {
        wave: Some(file.clone()),
        wave_scope: WaveScope::Accel,
        wave_from: from,
        wave_until: Some(cycle + AFTER),
        ..RtlOptions::default()
    };
    let again = phases::run(Phase::Bare, design, case, &options, progress)?;
    let failed = again.err().and_then(|failure| failure.found.cycle);
    Ok(Kept { file: file.display().to_string(), from, failed })
}
