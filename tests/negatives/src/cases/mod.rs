//! The cases, grouped by the part that they corrupt.

mod algorithms;
mod appraisal;
mod binding;
mod boxes;
mod chain;
mod corims;
mod freshness;
mod high_s;
mod interop;
mod release;
mod results;
mod service;
mod token;
mod wrappers;

use crate::Seen;

/// A case: builds the bad input, runs the code, returns the outcomes, one for each form.
pub type Run = fn() -> Vec<Seen>;

/// All cases, by number.
#[must_use]
pub fn all() -> Vec<(u32, Run)> {
    let mut all = [
        wrappers::CASES,
        token::CASES,
        algorithms::CASES,
        high_s::CASES,
        freshness::CASES,
        binding::CASES,
        boxes::CASES,
        chain::CASES,
        appraisal::CASES,
        corims::CASES,
        results::CASES,
        service::CASES,
        release::CASES,
        interop::CASES,
    ]
    .concat();
    all.sort_unstable_by_key(|(id, _)| *id);
    all
}
