//! Safe display of text that this program did not write: claims, names, paths, and messages of other
//! programs.

use alloc::string::String;

/// Whether a character controls a terminal, ends a line, or changes the text direction: such text
/// could pass for output of the program that shows it.
#[must_use]
pub fn misleads(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Such a text on one line: characters that [mislead](misleads) are escaped, as in a Rust string.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if misleads(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_is_one_line() {
        assert_eq!(
            one_line("a\r\n\thelp: b\u{1b}[2J\u{9b}\u{202e}\u{2028}\u{2066}\u{e9}\"'\\"),
            "a\\r\\n\\thelp: b\\u{1b}[2J\\u{9b}\\u{202e}\\u{2028}\\u{2066}\u{e9}\"'\\"
        );
    }
}
