//! The words of a SystemVerilog text (IEEE 1800, clauses 5 and 22) that decide which files make a
//! design, and which of them are forbidden in a measured design. Sources are bytes in any encoding
//! that extends ASCII.

use std::collections::BTreeSet;

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

/// Directives allowed in a measured design. Any other name after a backtick is a macro of the
/// design, or refused: it may contain C++, options of the tool, or text that this parser cannot
/// read.
const DIRECTIVES: &str = "define undef undefineall ifdef ifndef elsif else endif include timescale default_nettype resetall \
    celldefine endcelldefine unconnected_drive nounconnected_drive __FILE__ __LINE__";

/// Pragmas allowed in comments (`/* verilator WORD */`) of a measured design.
const PRAGMAS: &str = "lint_off lint_on lint_save lint_restore coverage_off coverage_on tracing_off tracing_on \
    full_case parallel_case inline_module no_inline_module no_inline_task split_var isolate_assignments";

/// Warnings that `lint_off` and `lint_on` may name: all concern text with the same meaning without
/// the warning. MODDUP is not among them: with it off, the first of two modules with the same name
/// silently wins.
const WARNINGS: &str = "ALWCOMBORDER ASCRANGE ASSIGNDLY BLKANDNBLK BLKLOOPINIT BLKSEQ BSSPACE CASEINCOMPLETE CASEOVERLAP CASEWITHX \
    CASEX CASTCONST CDCRSTLOGIC CMPCONST COLONPLUS COMBDLY CONTASSREG DECLFILENAME DEFOVERRIDE DEFPARAM DEPRECATED ENDLABEL EOFNEWLINE \
    GENCLK GENUNNAMED IFDEPTH IGNOREDRETURN IMPERFECTSCH IMPLICIT IMPLICITSTATIC IMPORTSTAR IMPURE INCABSPATH INFINITELOOP INITIALDLY \
    LATCH LITENDIAN MISINDENT MULTIDRIVEN NEWERSTD NOEFFECT NOLATCH NONSTD NULLPORT PINCONNECTEMPTY PINMISSING PINNOCONNECT REALCVT \
    SELRANGE SHORTREAL SIDEEFFECT SPLITVAR STATICVAR STMTDLY SYMRSVDWORD SYNCASYNCNET TIMESCALEMOD UNDRIVEN UNOPT UNOPTFLAT \
    UNOPTTHREADS UNPACKED UNSIGNED UNUSED UNUSEDGENVAR UNUSEDLOOP UNUSEDPARAM UNUSEDSIGNAL VARHIDDEN WAITCONST WIDTH WIDTHCONCAT \
    WIDTHEXPAND WIDTHTRUNC WIDTHXZEXPAND ZERODLY ZEROREPL";

fn lists(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// The words of one text.
#[derive(Default)]
pub(crate) struct Text<'a> {
    /// Every identifier and macro name, outside of comments and strings.
    pub identifiers: BTreeSet<&'a str>,
    /// Offset and file name of each include; no name if it comes from a macro.
    pub includes: Vec<(usize, Option<&'a [u8]>)>,
    /// Modules, packages, interfaces and the like that the text declares, with their offsets.
    pub declared: Vec<(usize, &'a str)>,
    /// Those of `declared` that are packages.
    pub packages: BTreeSet<&'a str>,
    /// Macros that the text defines, with their parameters.
    pub defined: BTreeSet<&'a str>,
    /// Offset and text of each name after a backtick that is not an admitted directive.
    pub macros: Vec<(usize, &'a str)>,
    /// Offset and text of each word that is forbidden in a measured design.
    refused: Vec<(usize, String)>,
    /// The same for words that are allowed in shipped benches only.
    shipped_only: Vec<(usize, String)>,
}

pub(crate) enum Token<'a> {
    Identifier(&'a str),
    /// `` `name ``
    Directive(&'a str),
    /// `$name`
    System(&'a str),
    String,
    Other,
}

/// The tokens of a text, each with its offset.
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    /// Offset and content of each comment.
    comments: Vec<(usize, &'a [u8])>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, comments: Vec::new() }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    /// Consumes bytes while `more` holds.
    fn run(&mut self, more: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|b| !more(*b)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn name(&mut self) -> &'a str {
        std::str::from_utf8(self.run(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$'))
            .unwrap_or_default()
    }

    /// Consumes the text up to and including `end`.
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

    /// Skips blanks, line ends (including those of a continued macro) and comments.
    fn blanks(&mut self) {
        loop {
            let start = self.at;
            match self.rest() {
                [b'/', b'/', ..] => {
                    self.at += 2;
                    let comment = self.run(|b| b != b'\n');
                    self.comments.push((start, comment));
                }
                [b'/', b'*', ..] => {
                    self.at += 2;
                    let comment = self.until(b"*/");
                    self.comments.push((start, comment));
                }
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                [b, ..] if b.is_ascii_whitespace() || *b == 0x0b => self.at += 1,
                _ => return,
            }
        }
    }

    /// The file name after `` `include ``.
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
                Token::Identifier(
                    std::str::from_utf8(self.run(|b| !b.is_ascii_whitespace())).unwrap_or_default(),
                )
            }
            b'`' => {
                self.at += 1;
                // In a macro, `` joins two names, and `" makes a string of the text between two of
                // them.
                if self.rest().starts_with(b"`") || self.rest().starts_with(b"\"") {
                    self.at += 1;
                    Token::Directive("")
                } else if self.rest().starts_with(b"\\") {
                    self.at += 1;
                    Token::Identifier(
                        std::str::from_utf8(self.run(|b| !b.is_ascii_whitespace()))
                            .unwrap_or_default(),
                    )
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
        let mut lexer = Lexer::new(text);
        // The previous word, with its offset.
        let mut before = (0, "");
        // A pending `import` or `export`, whose kind is not yet known.
        let mut foreign = None;
        while let Some((at, token)) = lexer.next() {
            let mut word = "";
            match token {
                Token::Identifier(name) => {
                    found.identifiers.insert(name);
                    if before.1 == "`define" {
                        found.defined.insert(name);
                        found.defined.extend(parameters(&text[lexer.at..]));
                    }
                    if DECLARING.contains(&before.1)
                        && !["automatic", "static", "class"].contains(&name)
                    {
                        found.declared.push((at, name));
                        if before.1 == "package" {
                            found.packages.insert(name);
                        }
                    }
                    match name {
                        "automatic" | "static" if DECLARING.contains(&before.1) => word = before.1,
                        // A variable or port of an interface.
                        "interface"
                            if before.1 == "virtual"
                                || matches!(text.get(before.0), Some(b'(' | b',')) => {}
                        // The solver for these is a separate program.
                        "randomize" | "constraint" => found.refused.push((at, name.to_owned())),
                        "bind" | "config" | "library" => {
                            found.shipped_only.push((at, name.to_owned()));
                        }
                        _ => word = name,
                    }
                }
                Token::Directive("include") => found.includes.push((at, lexer.file())),
                Token::Directive(name @ ("define" | "")) => {
                    word = if name.is_empty() { "" } else { "`define" }
                }
                Token::Directive(name) => {
                    found.identifiers.insert(name);
                    if !lists(DIRECTIVES, name) {
                        found.macros.push((at, name));
                    }
                }
                Token::System(name) => {
                    // `$` alone is the end of a queue or a range.
                    if !name.is_empty() && !lists(ADMITTED, name) {
                        found.refused.push((at, format!("${name}")));
                    }
                    if let Some(name) = name.split('$').next_back() {
                        found.identifiers.insert(name);
                    }
                }
                Token::String | Token::Other => {}
            }
            // An import or export of a package has a name or `*` next; directives and macros may
            // stand between.
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
        found.refused.extend(
            lexer
                .comments
                .iter()
                .filter_map(|(at, comment)| Some((*at, refused_pragma(text[at + 1], comment)?))),
        );
        found
    }

    /// Offset of the first word that is forbidden in a measured design, with the reason.
    pub(crate) fn refused(&self, project: bool) -> Option<(usize, String)> {
        let more = self.shipped_only.iter().filter(|_| project);
        let (at, word) = self.refused.iter().chain(more).min()?;
        Some((*at, format!("{word} can reach outside of the measured design")))
    }
}

/// Why a name after a backtick that is neither a macro nor admitted is refused.
pub(crate) fn refused_directive(name: &str) -> String {
    format!(
        "`{name} can reach outside of the measured design: it is no macro of the design, and the directives are {DIRECTIVES}"
    )
}

/// The comment, which begins with `/` and `second`, if it is a pragma that is not admitted.
fn refused_pragma(second: u8, comment: &[u8]) -> Option<String> {
    let pragma = String::from_utf8_lossy(comment.trim_ascii().strip_prefix(b"verilator")?);
    // Another comment may follow on the line.
    let text = if second == b'/' { pragma.split("//").next()? } else { &pragma };
    let mut words =
        text.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty());
    let known = text.starts_with(|c: char| c.is_ascii_whitespace())
        && words.next().is_some_and(|word| lists(PRAGMAS, word));
    let admitted = known && words.all(|warning| lists(WARNINGS, warning));
    (!admitted).then(|| format!("the pragma \"verilator{}\"", text.escape_debug()))
}

/// The parameters of a macro, in parentheses directly after its name.
fn parameters(text: &[u8]) -> Vec<&str> {
    let lexer = Lexer::new(text);
    let inside =
        |(at, token): &(usize, Token<'_>)| !matches!((token, text[*at]), (Token::Other, b')'));
    let names = |(_, token)| if let Token::Identifier(name) = token { Some(name) } else { None };
    if text.starts_with(b"(") {
        lexer.take_while(inside).filter_map(names).collect()
    } else {
        Vec::new()
    }
}

/// File and line of origin of a position in preprocessed text.
pub(crate) fn origin(text: &[u8], at: usize) -> (String, usize) {
    let before = String::from_utf8_lossy(&text[..at]);
    let mut place = (String::new(), 1);
    for (i, line) in before.split('\n').enumerate() {
        if i > 0 {
            place.1 += 1;
        }
        if let Some((number, rest)) =
            line.strip_prefix("`line ").and_then(|rest| rest.split_once(" \""))
            && let (Ok(number), Some((file, _))) = (number.parse::<usize>(), rest.split_once('"'))
        {
            place = (file.to_owned(), number.saturating_sub(1));
        }
    }
    place
}

/// Keywords that precede the name of a declaration.
const DECLARING: [&str; 7] =
    ["module", "macromodule", "package", "interface", "program", "primitive", "checker"];
