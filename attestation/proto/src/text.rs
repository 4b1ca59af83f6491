//! Safe display of another program's text.

/// Whether a character controls a terminal, ends a line, or changes the text direction: such text
/// could pass for output of the program that shows it.
#[must_use]
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
