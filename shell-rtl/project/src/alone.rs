//! Whether the sources of a project stand alone beside sources that they must not change: in an
//! image, other tools than ours read them, in one build with the shell and the Security Kernel.
//!
//! Every test of a macro has one outcome for all tools: the macro is defined before in the same
//! file, or is the guard of a whole file. No macro of a project is one that another source uses.
//! `$root` and directives that last beyond a file are refused. Hierarchical names are checked by the
//! front end, which elaborates the accelerator without the shell
//! ([`Design::ports`](crate::Design::ports)).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::verilog::{Lexer, Text, Token};
use crate::{Error, Result, Source};

/// Directives that test a macro.
const TESTS: [&str; 3] = ["ifdef", "ifndef", "elsif"];
/// Directives whose effect lasts until another one, in files of others too.
const LASTING: [&str; 3] = ["undefineall", "unconnected_drive", "nounconnected_drive"];
/// Longest chain of includes.
const DEPTH: usize = 32;

/// A conditional that is open.
struct Open {
    /// Whether a branch was taken.
    taken: bool,
    /// Whether the current branch is read.
    reads: bool,
    /// The offset of the directive, if it guards the whole file.
    guard: Option<usize>,
}

/// What is known of the macros: whether each is defined.
type Known<'a> = BTreeMap<&'a str, bool>;

/// A source as it is read: path, names by which others include it, and bytes.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    path: &'a Path,
    spellings: &'a BTreeSet<PathBuf>,
    bytes: &'a [u8],
}

impl<'a> From<&'a Source> for Part<'a> {
    fn from(source: &'a Source) -> Self {
        Self { path: &source.path, spellings: &source.spellings, bytes: &source.bytes }
    }
}

/// A file that an include names: of the project, or the macros of another one.
enum Included<'a, 'm> {
    Own(Part<'a>),
    Other(&'m BTreeSet<&'a str>),
}

struct Project<'a> {
    sources: &'a [Part<'a>],
    /// Macros that other sources use, test or define.
    theirs: BTreeSet<String>,
    /// Macros that each other source defines.
    headers: Vec<(Part<'a>, BTreeSet<&'a str>)>,
}

/// Checks the sources of a project, which are compiled in one build with `others`.
///
/// # Errors
/// [`Error::Source`]: the place in a source, and what is refused.
pub fn alone(project: &[Part<'_>], others: &[Part<'_>]) -> Result<()> {
    let mut theirs = BTreeSet::new();
    for other in others {
        let mut tests = false;
        for (_, token) in Lexer::new(other.bytes) {
            match token {
                Token::Directive(name) => {
                    tests = TESTS.contains(&name) || name == "define" || name == "undef";
                    theirs.insert(name.to_owned());
                }
                Token::Identifier(name) if tests => {
                    theirs.insert(name.to_owned());
                    tests = false;
                }
                _ => tests = false,
            }
        }
    }
    let headers =
        others.iter().map(|other| (*other, Text::of(other.bytes).defined)).collect::<Vec<_>>();
    let all = Project { sources: project, theirs, headers };
    project.iter().try_for_each(|source| all.read(*source, &mut Known::new(), 0))
}

/// Offset of the end of a line that a backslash does not continue.
fn line_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' if text[at + 1..].starts_with(b"\r\n") => at += 3,
            b'\\' => at += 2,
            b'\n' => return at,
            _ => at += 1,
        }
    }
    text.len()
}

impl<'a> Project<'a> {
    /// The source that an include names: of the project, or of the others.
    fn included(&self, spelling: &[u8]) -> Option<Included<'a, '_>> {
        let name = std::str::from_utf8(spelling).ok()?;
        let is = |source: &Part<'_>| {
            source.path.ends_with(name)
                || source.spellings.iter().any(|other| other.as_os_str() == name)
        };
        let own =
            self.sources.iter().find(|source| is(source)).map(|source| Included::Own(*source));
        own.or_else(|| {
            self.headers
                .iter()
                .find(|(source, _)| is(source))
                .map(|(_, defined)| Included::Other(defined))
        })
    }

    fn read(&self, source: Part<'a>, known: &mut Known<'a>, depth: usize) -> Result<()> {
        let text = source.bytes;
        let wrong = |at: usize, what: String| Err(Error::at(source.path, text, at, what));
        let tokens: Vec<(usize, Token<'a>)> = Lexer::new(text).collect();
        let name_at = |i: usize| match tokens.get(i) {
            Some((_, Token::Identifier(name))) => Some(*name),
            _ => None,
        };
        let directive_at = |i: usize| match tokens.get(i) {
            Some((_, Token::Directive(name))) => Some(*name),
            _ => None,
        };
        let mut open: Vec<Open> = Vec::new();
        let mut i = 0;
        while let Some((at, token)) = tokens.get(i) {
            let at = *at;
            i += 1;
            let name = match token {
                Token::Directive(name) => *name,
                Token::System(name) if name.split('$').next() == Some("root") => {
                    return wrong(at, "$root reaches outside of the project".to_owned());
                }
                _ => continue,
            };
            let reads = open.iter().all(|it| it.reads);
            // The same for the text around the innermost conditional.
            let outside = open.iter().rev().skip(1).all(|it| it.reads);
            if LASTING.contains(&name) {
                return wrong(at, format!("`{name} changes how other files are read"));
            }
            if TESTS.contains(&name) {
                let Some(tested) = name_at(i) else {
                    return wrong(at, format!("`{name} without the name of a macro"));
                };
                i += 1;
                // Of a branch that is not read, the tests decide nothing.
                if !reads && name != "elsif" {
                    open.push(Open { taken: true, reads: false, guard: None });
                    continue;
                }
                if name == "elsif" {
                    match open.last_mut() {
                        None => return wrong(at, "`elsif without `ifdef".to_owned()),
                        Some(it) if it.guard.is_some() => {
                            return wrong(at, "`elsif in the guard of a file".to_owned());
                        }
                        Some(it) if it.taken || !outside => {
                            it.reads = false;
                            continue;
                        }
                        Some(_) => {}
                    }
                }
                let guards = name == "ifndef"
                    && i == 2
                    && directive_at(2) == Some("define")
                    && name_at(3) == Some(tested);
                let holds = match known.get(tested) {
                    Some(defined) => *defined == (name != "ifndef"),
                    None if guards => true,
                    None => {
                        return wrong(
                            at,
                            format!(
                                "`{name} {tested} can differ from tool to tool: expected a macro that is defined before in this file or in one that it includes, or the guard of a whole file; write `define {tested}, or remove the test"
                            ),
                        );
                    }
                };
                if name == "elsif" {
                    if let Some(it) = open.last_mut() {
                        (it.taken, it.reads) = (holds, holds);
                    }
                } else {
                    open.push(Open { taken: holds, reads: holds, guard: guards.then_some(at) });
                }
                continue;
            }
            match name {
                "else" => match open.last_mut() {
                    None => return wrong(at, "`else without `ifdef".to_owned()),
                    Some(it) if it.guard.is_some() => {
                        return wrong(at, "`else in the guard of a file".to_owned());
                    }
                    Some(it) => {
                        it.reads = outside && !it.taken;
                        it.taken = true;
                    }
                },
                "endif" => match open.pop() {
                    None => return wrong(at, "`endif without `ifdef".to_owned()),
                    Some(Open { guard: Some(from), .. }) if i < tokens.len() => {
                        return wrong(from, "this guard does not end with its file".to_owned());
                    }
                    Some(_) => {}
                },
                "define" | "undef" => {
                    let Some(named) = name_at(i) else {
                        return wrong(at, format!("`{name} without a name"));
                    };
                    i += 1;
                    if self.theirs.contains(named) {
                        return wrong(
                            at,
                            format!(
                                "`{name} {named} changes how other files are read: sources beside the project use this macro; give it another name"
                            ),
                        );
                    }
                    if reads {
                        known.insert(named, name == "define");
                    }
                    if name == "define" {
                        let end = line_end(text, at);
                        while let Some((at, token)) = tokens.get(i).filter(|(at, _)| *at < end) {
                            i += 1;
                            if let Token::Directive(inner) = token
                                && (TESTS.contains(inner)
                                    || ["else", "endif", "define", "undef", "include"]
                                        .contains(inner)
                                    || LASTING.contains(inner))
                            {
                                return wrong(*at, format!("`{inner} in a macro"));
                            }
                        }
                    }
                }
                "include" if reads => {
                    let rest = tokens.get(i).map_or(&[][..], |(at, _)| &text[*at..]);
                    let spelling = rest
                        .strip_prefix(b"\"")
                        .and_then(|rest| rest.split(|byte| *byte == b'"').next());
                    let found = spelling.and_then(|spelling| self.included(spelling));
                    match found {
                        _ if depth == DEPTH => {
                            return wrong(
                                at,
                                format!("more than {DEPTH} includes, one in another"),
                            );
                        }
                        None => {
                            return wrong(
                                at,
                                "`include of no file of the design by its name".to_owned(),
                            );
                        }
                        Some(Included::Own(own)) => self.read(own, known, depth + 1)?,
                        Some(Included::Other(defined)) => {
                            known.extend(defined.iter().map(|name| (*name, true)));
                        }
                    }
                }
                _ => {}
            }
        }
        match open.last() {
            None => Ok(()),
            Some(_) => wrong(text.len(), "`ifdef without `endif".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&'static str, &'static str)]) -> Result<()> {
        let ours = [
            ("shef.sv", "`include \"ours.svh\"\n`ifdef SYNTHESIS\n`endif\nmodule m;endmodule"),
            ("ours.svh", "`ifndef OURS\n`define OURS\n`define SHEF_PORTS x\n`endif\n"),
        ];
        let none = BTreeSet::new();
        let part = |(name, text): &(&'static str, &'static str)| Part {
            path: Path::new(*name),
            spellings: &none,
            bytes: text.as_bytes(),
        };
        let (project, ours): (Vec<_>, Vec<_>) =
            (files.iter().map(part).collect(), ours.iter().map(part).collect());
        alone(&project, &ours)
    }

    #[test]
    fn designs_that_mean_the_same_to_every_tool_pass() {
        for text in [
            "module a; endmodule",
            "`ifndef A_SV\n`define A_SV\nmodule a; endmodule\n`endif // A_SV\n",
            "`define WIDE\n`ifdef WIDE\nwire [1:0] a;\n`elsif NARROW\nwire a;\n`else\nwire b;\n`endif",
            "`define M(x) \\\n  x\n`undef WIDE\n`ifndef WIDE\n`ifdef M\n`endif\n`else\n`ifdef OTHER\n`endif\n`endif",
            "`include \"b.svh\"\n`ifdef B\n`endif\n`include \"ours.svh\"\n`ifdef SHEF_PORTS\n`endif",
            "// `ifdef VERILATOR\nwire [$] a = $clog2(2);",
        ] {
            let header = ("b.svh", "`ifndef B_SVH\n`define B_SVH\n`define B\n`endif");
            read(&[("a.sv", text), header]).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
    }

    #[test]
    fn designs_that_a_tool_reads_in_another_way_are_refused() {
        for (text, says) in [
            ("`ifndef __slang__\nwire a = u_system.uds_i;\n`endif", "a.sv:1:1"),
            ("wire a;\n`ifdef SYNTHESIS\n`endif", "`ifdef SYNTHESIS can differ"),
            ("`ifndef VERILATOR\n`define VERILATOR\nwire a;\n`endif\nwire b;", "does not end with"),
            ("`ifndef X\n`define X\nwire a;\n`else\nwire b;\n`endif", "`else in the guard"),
            ("`ifndef X\n`define X\nwire a;\n`elsif Y\nwire b;\n`endif", "`elsif in the guard"),
            // Not read, so not defined.
            ("`define A\n`ifndef A\n`define B\n`endif\n`ifdef B\n`endif", "`ifdef B can differ"),
            ("`define A\n`ifndef A\n`elsif SYNTHESIS\n`endif", "`elsif SYNTHESIS can differ"),
            ("`define A \\\n`ifdef SYNTHESIS\n", "in a macro"),
            ("`define A(x) `include x\n", "`include in a macro"),
            ("`define SHEF_PORTS y\n", "`define SHEF_PORTS changes how other files"),
            ("`define SYNTHESIS\n", "`define SYNTHESIS changes how other files"),
            ("`undef OURS\n", "`undef OURS changes how other files"),
            ("`undefineall\n", "`undefineall changes"),
            ("`unconnected_drive pull1\n", "`unconnected_drive changes"),
            ("`include `FILE\n", "no file of the design"),
            ("`include \"a.sv\"\n", "more than 32 includes"),
            ("wire a = $root.cl_shef.uds[0];", "$root reaches"),
            ("`define A\n`ifdef A\n", "without `endif"),
        ] {
            let error = read(&[("a.sv", text)]).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
