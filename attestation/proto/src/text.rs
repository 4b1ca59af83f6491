//! Text of another program, fit to be shown.

/// Whether a character drives a terminal, ends a line, or changes the direction of what follows: such
/// text could look like text of the program that shows it.
#[must_use]
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
