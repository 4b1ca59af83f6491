//! Places in the text of a configuration, for error messages.

use std::ops::Range;

use crate::problem::{Kind, Problem};

/// A configuration's name and text.
pub(super) struct At<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl At<'_> {
    pub(super) fn error(&self, span: &Range<usize>, what: impl std::fmt::Display) -> Problem {
        let before = &self.text[..span.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Kind::Config.because(format!("{}:{line}:{column}: {what}", self.name))
    }
}

/// Where the value of a key in a table is, for values whose position the parser does not report.
pub(super) fn place(text: &str, table: &str, key: &str) -> Range<usize> {
    let (mut at, mut inside) = (0, false);
    for line in text.split_inclusive('\n') {
        let plain = line.trim();
        if plain.starts_with('[') {
            inside = plain.split(['[', ']']).nth(1).is_some_and(|name| name.trim() == table);
        } else if inside && plain.split('=').next().is_some_and(|name| name.trim() == key) {
            return at..at;
        }
        at += line.len();
    }
    0..0
}
