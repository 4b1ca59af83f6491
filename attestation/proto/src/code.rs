//! Stable codes of errors and of appraisal checks.
//!
//! Every library crate lists its codes in a `CODES` constant; `shef explain CODE` prints them.

/// One stable code with its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code itself, `SHEF-XXX-nnn`. It never changes its meaning.
    pub id: &'static str,
    /// What happened, in one line.
    pub summary: &'static str,
    /// What it means and what to do about it.
    pub help: &'static str,
}

impl Code {
    /// A code from its three texts.
    #[must_use]
    pub const fn new(id: &'static str, summary: &'static str, help: &'static str) -> Self {
        Self { id, summary, help }
    }
}

/// The code named `id` in `codes`.
#[must_use]
pub fn find<'a>(codes: &'a [Code], id: &str) -> Option<&'a Code> {
    codes.iter().find(|code| code.id == id)
}

/// Number of codes in several lists.
#[must_use]
pub const fn count(lists: &[&[Code]]) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        n += lists[i].len();
        i += 1;
    }
    n
}

/// Joins several lists to one; `N` is their [`count`].
///
/// # Panics
/// At compile time, when `N` is not the number of codes.
#[must_use]
pub const fn join<const N: usize>(lists: &[&[Code]]) -> [Code; N] {
    let mut out = [Code::new("", "", ""); N];
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        let mut k = 0;
        while k < lists[i].len() {
            out[n] = lists[i][k];
            n += 1;
            k += 1;
        }
        i += 1;
    }
    assert!(n == N);
    out
}
