//! The words of a SystemVerilog text (IEEE 1800, clauses 5 and 22) that decide which files make a
//! design, and which of them a measured design may not have. Sources are bytes in any encoding that
//! extends ASCII.

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// System tasks and functions that read and run nothing outside of the design: all others are
/// refused.
const ADMITTED: &str = "bits clog2 countbits countones onehot onehot0 isunknown signed unsigned cast typename \
    size left right low high increment dimensions unpacked_dimensions unit root global_clock \
    display displayb displayh displayo write writeb writeh writeo strobe monitor monitoron monitoroff fwrite fdisplay fflush \
    sformat sformatf swrite psprintf sscanf info warning error fatal finish stop exit time stime realtime timeformat printtimescale \
    past rose fell stable changed sampled past_gclk rose_gclk fell_gclk stable_gclk changed_gclk \
    future_gclk rising_gclk falling_gclk steady_gclk changing_gclk inferred_clock inferred_disable \
    asserton assertoff assertkill assertcontrol assertpasson assertpassoff assertfailon assertfailoff \
    assertnonvacuouson assertvacuousoff itor rtoi realtobits bitstoreal shortrealtobits bitstoshortreal \
    ln log10 exp sqrt pow floor ceil sin cos tan asin acos atan atan2 hypot sinh cosh tanh asinh acosh atanh \
    random urandom urandom_range setup hold setuphold recovery removal recrem width period skew timeskew fullskew nochange";

/// Directives that hold C++, options of the tool, or text that cannot be read here.
/// So do all of a name that begins with `systemc_`.
const REFUSED: [&str; 3] = ["protect", "protected", "begin_protected"];

/// The words of one text.
#[derive(Default)]
pub(crate) struct Text<'a> {
    /// Every identifier and name of a macro, outside of comments and strings.
    pub identifiers: BTreeSet<&'a str>,
    /// Offset and file name of each include; no name if a macro has it.
    pub includes: Vec<(usize, Option<&'a [u8]>)>,
    /// Modules, packages, interfaces and the like that the text declares.
    pub declared: BTreeSet<&'a str>,
    /// Offset of each word that a measured design may not have, and the word.
    refused: Vec<(usize, String)>,
    /// The same for words that only shipped benches may have.
    shipped_only: Vec<(usize, String)>,
}

enum Token<'a> {
    Identifier(&'a str),
    /// `` `name ``
    Directive(&'a str),
    /// `$name`
    System(&'a str),
    String,
    Other,
}

/// The tokens of a text, each with its offset.
struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    /// Takes bytes while `more` holds.
    fn run(&mut self, more: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|b| !more(*b)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn name(&mut self) -> &'a str {
        std::str::from_utf8(self.run(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')).unwrap_or_default()
    }

    /// Takes the text up to `end`, and `end`.
    fn until(&mut self, end: &[u8]) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.windows(end.len()).position(|w| w == end).unwrap_or(rest.len());
        self.at += len + end.len();
        &rest[..len]
    }

    fn string(&mut self) -> &'a [u8] {
        let quote: &[u8] = if self.rest().starts_with(b"\"\"\"") { b"\"\"\"" } else { b"\"" };
        self.at += quote.len();
        let start = self.rest();
        while !self.rest().is_empty() && !self.rest().starts_with(quote) {
            self.at += if self.rest()[0] == b'\\' { 2 } else { 1 };
        }
        let len = start.len() - self.rest().len();
        self.at += quote.len();
        &start[..len]
    }

    /// Skips blanks, line ends (those of a continued macro too) and comments.
    fn blanks(&mut self) {
        loop {
            match self.rest() {
                [b'/', b'/', ..] => drop(self.run(|b| b != b'\n')),
                [b'/', b'*', ..] => {
                    self.at += 2;
                    self.until(b"*/");
                }
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                [b, ..] if b.is_ascii_whitespace() || *b == 0x0b => self.at += 1,
                _ => return,
            }
        }
    }

    /// The file name behind `` `include ``.
    fn file(&mut self) -> Option<&'a [u8]> {
        self.blanks();
        match self.rest().first()? {
            b'"' => Some(self.string()),
            b'<' => {
                self.at += 1;
                Some(self.until(b">"))
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.blanks();
        let start = self.at;
        let token = match *self.rest().first()? {
            b'"' => {
                self.string();
                Token::String
            }
            b'\\' => {
                self.at += 1;
                Token::Identifier(std::str::from_utf8(self.run(|b| !b.is_ascii_whitespace())).unwrap_or_default())
            }
            b'`' => {
                self.at += 1;
                // `" makes a string of what stands between two of them in a macro.
                if self.rest().starts_with(b"\"") {
                    self.at += 1;
                }
                if self.rest().starts_with(b"\\") {
                    self.at += 1;
                    Token::Identifier(std::str::from_utf8(self.run(|b| !b.is_ascii_whitespace())).unwrap_or_default())
                } else {
                    Token::Directive(self.name())
                }
            }
            b'$' => {
                self.at += 1;
                Token::System(self.name())
            }
            b if b.is_ascii_alphabetic() || b == b'_' => Token::Identifier(self.name()),
            _ => {
                self.at += 1;
                Token::Other
            }
        };
        Some((start, token))
    }
}

impl<'a> Text<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let mut found = Self::default();
        let mut lexer = Lexer { text, at: 0 };
        // The word before, with its offset.
        let mut before = (0, "");
        // An `import` or `export` of which nothing was seen yet.
        let mut foreign = None;
        while let Some((at, token)) = lexer.next() {
            let mut word = "";
            match token {
                Token::Identifier(name) => {
                    found.identifiers.insert(name);
                    if DECLARING.contains(&before.1) && !["automatic", "static", "class"].contains(&name) {
                        found.declared.insert(name);
                    }
                    match name {
                        "automatic" | "static" if DECLARING.contains(&before.1) => word = before.1,
                        "protect" if before.1 == "`pragma" => found.refused.push((at, "`pragma protect".to_owned())),
                        "bind" | "config" | "library" => found.shipped_only.push((at, name.to_owned())),
                        _ => word = name,
                    }
                }
                Token::Directive("include") => found.includes.push((at, lexer.file())),
                Token::Directive("verilator_config") => found.refused.push((at, "`verilator_config".to_owned())),
                Token::Directive(name) => {
                    found.identifiers.insert(name);
                    if REFUSED.contains(&name) || name.starts_with("systemc_") {
                        found.refused.push((at, format!("`{name}")));
                    }
                    if name == "pragma" {
                        word = "`pragma";
                    }
                }
                Token::System(name) => {
                    // `$` alone is the end of a queue or a range.
                    if !name.is_empty() && !ADMITTED.split_ascii_whitespace().any(|admitted| admitted == name) {
                        found.refused.push((at, format!("${name}")));
                    }
                    if let Some(name) = name.split('$').next_back() {
                        found.identifiers.insert(name);
                    }
                }
                Token::String | Token::Other => {}
            }
            // Of a package is what a name follows, or `*`; directives and macros may stand between.
            match (token, foreign) {
                (Token::Identifier(name @ ("import" | "export")), _) => foreign = Some((at, name)),
                (Token::Directive(_), _) | (_, None) => {}
                (Token::String | Token::Other | Token::System(_), Some((from, name))) => {
                    if !(name == "export" && text[at..].starts_with(b"*")) {
                        found.refused.push((from, format!("{name} of a foreign function (DPI)")));
                    }
                    foreign = None;
                }
                (Token::Identifier(_), _) => foreign = None,
            }
            before = (at, word);
        }
        found
    }

    /// Whether a measured design may hold this text.
    ///
    /// # Errors
    /// [`Error::Source`] with line and column.
    pub(crate) fn admitted(&self, path: &Path, text: &[u8], project: bool) -> Result<()> {
        let more = self.shipped_only.iter().filter(|_| project);
        match self.refused.iter().chain(more).min() {
            None => Ok(()),
            Some((at, word)) => Err(Error::at(path, text, *at, format!("{word} can reach outside of the measured design"))),
        }
    }
}

/// Keywords before the name of what a file declares.
const DECLARING: [&str; 6] = ["module", "macromodule", "package", "interface", "program", "primitive"];
