//! Inputs that must be refused: negative cases of evidence, chains, results, key releases and the
//! service, each with its expected code and trustworthiness claims.
//!
//! `expected.toml` lists the expected outcomes, [`cases`] derive the bad inputs from evidence of the simulated device and run the real code, and [`run`] compares both. `cargo xtask negatives` prints all cases and writes `docs/reference/negatives.md`.
#![forbid(unsafe_code)]

pub mod cases;
mod device;
mod report;
mod table;

pub use report::{Report, Row};
pub use table::{Case, Expectation, table};

use std::collections::BTreeMap;

/// Outcome of an accepted input.
pub const ACCEPTED: &str = "accepted";

/// Outcome of one form of a case.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Name of the form.
    pub variant: String,
    /// Most exact stable code of the refusal, or [`ACCEPTED`].
    pub code: String,
    /// Code of the appraisal's first failed check, if an appraisal denied.
    pub check: Option<String>,
    /// AR4SI claims of the appraisal, if any; without claims that make no statement.
    pub claims: Option<BTreeMap<String, i8>>,
}

impl Seen {
    /// A refusal or acceptance outside an appraisal.
    #[must_use]
    pub fn new(variant: impl Into<String>, code: impl Into<String>) -> Self {
        Self { variant: variant.into(), code: code.into(), check: None, claims: None }
    }

    /// Outcome of a function: the code of its error, or accepted.
    #[must_use]
    pub fn of<T, E>(
        variant: impl Into<String>,
        result: &Result<T, E>,
        code: impl FnOnce(&E) -> &str,
    ) -> Self {
        Self::new(variant, result.as_ref().err().map_or(ACCEPTED, code))
    }
}

/// Runs the cases with these ids; without ids, the whole table.
#[must_use]
pub fn run(ids: &[u32]) -> Report {
    let cases = cases::all();
    let rows = table().iter().filter(|case| ids.is_empty() || ids.contains(&case.id)).map(|case| {
        let seen = match cases.iter().find(|(id, _)| *id == case.id) {
            Some((_, run)) if case.not_applicable.is_none() => {
                std::panic::catch_unwind(run).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        Row::new(case, seen)
    });
    Report { cases: rows.collect() }
}
