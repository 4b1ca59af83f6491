//! Every comparison and every erasure of Security Kernel and boot ROM, found in their sources, and
//! one mutant for each: the list is not picked by hand.
//!
//! A place is one of these:
//!
//! - a condition of `if` or of a match arm: if one branch refuses, the condition is fixed to take
//!   the other branch; if neither refuses, it becomes `true` and `false`. Each operand of `a || b`
//!   and `a && b` is a separate place;
//! - a comparison that gives the value of a variable, a field or a closure: it becomes `true` and
//!   `false`;
//! - a call that can refuse and has no other result (`check()?;`): its error is dropped;
//! - a statement that erases, wipes or locks ([`ERASES`]): it is removed;
//! - an arm of a match that refuses: it has no automatic replacement, so a mutant written by hand
//!   covers it.
//!
//! Loops are not places; nor are refusals without which there is no value to continue with
//! (`ok_or`, `let ... else`). `tests/mutants/places.toml` names for each place the test that
//! detects its mutant, or the mutant of `tests/mutants/firmware.toml` that covers it, or the reason
//! why no test can detect it. A place that is not in the list fails the normal run, as does a line
//! of the list without a place. The mutants are run with all others.

use super::{Edit, Mutant};
use crate::process::{Context, Result, ensure};
use crate::{files, root};
use fs_err as fs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Values of match arms that are errors.
const ERRORS: [&str; 2] = ["Err(", "return Err("];

/// The list.
pub const LIST: &str = "tests/mutants/places.toml";
/// Folders that are searched for places.
const SOURCES: [&str; 2] = ["attestation/kernel/src", "attestation/firmware/src"];
/// Built for the processor in the FPGA only: no native test runs it.
const OF_THE_CORE: [&str; 2] =
    ["attestation/firmware/src/bin", "attestation/firmware/src/machine.rs"];
/// Generated files have no places.
const GENERATED: &str = "regs.rs";
/// Texts that mark a statement that erases, wipes, locks or halts.
const ERASES: [&str; 20] = [
    ".zeroize()",
    "= None",
    "Load::None",
    "drop(",
    ".erase(",
    "::derive(&[])",
    "Rest::default()",
    ".unload",
    ".reset()",
    ".wipe()",
    "clear()",
    "clear_stack()",
    "clear_registers!",
    "zero_memory!",
    ".fill(0)",
    ", 0)",
    "halted = true",
    "occupied = true",
    "sys::CONTROL",
    "sys::ALERT",
];
/// Texts that mark a block that refuses.
const REFUSES: [&str; 11] = [
    "Err(",
    "None",
    "Failed",
    "stop(",
    ".wipe()",
    ".reset()",
    ".erase(",
    ".unload",
    "unwrap_or(0)",
    "false",
    "break",
];
const COMPARES: [&str; 6] = [" == ", " != ", " < ", " > ", " <= ", " >= "];

/// The list's entry for a place.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Entry {
    /// `package/test-target/test-name` of the test that detects the mutant.
    Test(String),
    /// Mutant of `firmware.toml` that covers the place.
    Mutant(String),
    /// Why no test can detect it.
    Why(String),
}

/// File, then function, then key of the place.
type List = BTreeMap<String, BTreeMap<String, BTreeMap<String, Entry>>>;

/// One weakening of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    file: String,
    function: String,
    /// The original text and its change: the key in the list.
    key: String,
    at: Range<usize>,
    /// The replacement; if missing, the generator cannot write one.
    weak: Option<String>,
}

/// All mutants of the list, and the defects of the list.
pub fn load() -> Result<Vec<Mutant>> {
    let list = list()?;
    let mut mutants = Vec::new();
    for place in places()? {
        let Some(entry) = place.entry(&list) else { continue };
        let name = place.name();
        let (Entry::Test(text) | Entry::Mutant(text) | Entry::Why(text)) = entry;
        ensure!(!text.is_empty(), "{LIST}: {name}: a test, a mutant or a reason");
        if let Entry::Test(test) = entry {
            mutants.extend(place.mutant(Some(test.clone()))?);
        }
    }
    Ok(mutants)
}

/// Places that the list does not name, each with its mutant, if it can have one.
pub fn unnamed() -> Result<Vec<(String, Option<Mutant>)>> {
    let list = list()?;
    let places = places()?.into_iter().filter(|place| place.entry(&list).is_none());
    places.map(|place| Ok((place.heading(), place.mutant(None)?))).collect()
}

fn list() -> Result<List> {
    toml::from_str(&fs::read_to_string(root().join(LIST))?).context(LIST)
}

impl Place {
    /// Its entry in the list.
    fn entry<'a>(&self, list: &'a List) -> Option<&'a Entry> {
        list.get(&self.file)?.get(&self.function)?.get(&self.key)
    }

    /// Name of its mutant.
    fn name(&self) -> String {
        let file = self.file.strip_prefix("attestation/").unwrap_or(&self.file);
        let stem = file.replace("/src", "").replace(".rs", "");
        format!("{stem}: {}: {}", self.function, self.key)
    }

    /// Whether only the processor in the FPGA runs it.
    fn is_of_the_core(&self) -> bool {
        OF_THE_CORE.iter().any(|path| self.file.starts_with(path))
    }

    /// Its heading in the list.
    fn heading(&self) -> String {
        format!("[\"{}\".{}]\n'{}'", self.file, self.function, self.key)
    }

    fn mutant(&self, test: Option<String>) -> Result<Option<Mutant>> {
        let Some(weak) = self.weak.as_ref().filter(|_| !self.is_of_the_core()) else {
            return Ok(None);
        };
        let text = fs::read_to_string(root().join(&self.file))?;
        let edit = Edit {
            file: self.file.clone(),
            find: text[self.at.clone()].into(),
            replace: weak.clone(),
            at: Some(self.at.start),
        };
        Ok(Some(Mutant::of_place(self.name(), self.key.clone(), test, edit)))
    }
}

/// All places of all sources.
fn places() -> Result<Vec<Place>> {
    let mut all = Vec::new();
    for folder in SOURCES {
        for path in files::below(&root().join(folder))? {
            if files::is(&path, "rs") && !path.ends_with(GENERATED) {
                let file = path.strip_prefix(root())?.display().to_string();
                all.extend(scan(&file, &fs::read_to_string(&path)?));
            }
        }
    }
    Ok(all)
}

/// The text with blanks for comments, for quoted text, and for the tests at its end: every byte
/// keeps its position.
pub fn code(text: &str) -> Vec<u8> {
    let text = text.split("#[cfg(test)]").next().unwrap_or(text).as_bytes();
    let mut out = text.to_vec();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        // What becomes blank, and the end of the token.
        let (blank, end) = if rest.starts_with(b"//") {
            let len = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            (at..at + len, at + len)
        } else if rest[0] == b'"' {
            let mut len = 1;
            while len < rest.len() && rest[len] != b'"' {
                len += if rest[len] == b'\\' { 2 } else { 1 };
            }
            let end = (at + len + 1).min(text.len());
            (at + 1..end - 1, end)
        } else {
            (at..at, at + 1)
        };
        out[blank].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        at = end;
    }
    out
}

/// Position of the first of `ends` outside of all brackets, starting at `from`.
fn until(code: &[u8], from: usize, ends: &[&str]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = from;
    while at < code.len() {
        if depth == 0 && ends.iter().any(|end| code[at..].starts_with(end.as_bytes())) {
            return Some(at);
        }
        match code[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether the arguments of a closure end here and its body follows.
fn closure(code: &[u8], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).map_or(b' ', |at| code[at]);
    let ahead = code[..at.saturating_sub(1)].trim_ascii_end().last();
    let none = before(1) == b'|'
        && (before(2) == b'('
            || before(2) == b' ' && ahead.is_some_and(|ahead| [b'=', b','].contains(ahead)));
    code[at..].starts_with(b"| ")
        && (none || before(1).is_ascii_alphanumeric() || before(1) == b'_')
}

/// A block, starting at its brace.
fn block(code: &[u8], open: usize) -> Option<Range<usize>> {
    Some(open + 1..until(code, open + 1, &["}"])?)
}

fn word(code: &[u8], at: usize, word: &str) -> bool {
    let bound = |b: Option<&u8>| b.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    code[at..].starts_with(word.as_bytes()) && bound(at.checked_sub(1).and_then(|at| code.get(at)))
}

fn has(code: &[u8], range: Range<usize>, what: &[&str]) -> bool {
    let text = String::from_utf8_lossy(&code[range]);
    what.iter().any(|what| text.contains(what))
}

/// The parts of a condition between `operator`s.
fn parts(code: &[u8], range: Range<usize>, operator: &str) -> Vec<Range<usize>> {
    let (mut out, mut from) = (Vec::new(), range.start);
    while let Some(at) = until(&code[..range.end], from, &[operator]) {
        out.push(from..at);
        from = at + operator.len();
    }
    out.push(from..range.end);
    out
}

/// Code whose wrapped expressions are on one line: a line break becomes a blank if the line before
/// ends with `=`, or the next one goes on with `&&`, `||` or a method.
fn joined(mut code: Vec<u8>) -> Vec<u8> {
    for at in (0..code.len()).filter(|at| code[*at] == b'\n').collect::<Vec<_>>() {
        let (before, next) = (code[..at].trim_ascii_end(), code[at..].trim_ascii_start());
        let goes_on = ["&&", "||", "."].iter().any(|begin| next.starts_with(begin.as_bytes()));
        if goes_on || before.ends_with(b" =") {
            code[at] = b' ';
        }
    }
    code
}

/// Finds the places of one file.
fn scan(file: &str, text: &str) -> Vec<Place> {
    let code = joined(code(text));
    let mut scan = Scan { text, code: &code, found: Vec::new() };
    scan.conditions();
    scan.statements();
    scan.places(file)
}

/// A file, and what is found in it: position, change, and the replacement.
struct Scan<'a> {
    text: &'a str,
    code: &'a [u8],
    found: Vec<(Range<usize>, &'static str, Option<String>)>,
}

impl Scan<'_> {
    fn trim(&self, range: Range<usize>) -> Range<usize> {
        let part = &self.text[range.clone()];
        let start = range.start + part.len() - part.trim_start().len();
        start..start + part.trim().len()
    }

    /// Adds a part of a condition that becomes `value`.
    fn fix(&mut self, part: Range<usize>, value: bool) {
        let inner = &self.text[part.clone()];
        let (how, weak) = match value {
            true => ("=> true", format!("(true || ({inner}))")),
            false => ("=> false", format!("(false && ({inner}))")),
        };
        self.found.push((part, how, Some(weak)));
    }

    /// Adds a condition: each part is replaced by each of `values`.
    fn condition(&mut self, range: Range<usize>, values: &[bool]) {
        for &value in values {
            let operator = if value { " && " } else { " || " };
            for part in parts(self.code, range.clone(), operator) {
                let part = self.trim(part);
                let inner = &self.text[part.clone()];
                if !(inner.starts_with("let ") || !value && inner.contains("let ")) {
                    self.fix(part, value);
                } else if !value {
                    // In a chain with `let`, the last part is enough.
                    for part in parts(self.code, part, " && ") {
                        let part = self.trim(part);
                        if !self.text[part.clone()].starts_with("let ") {
                            self.fix(part, false);
                        }
                    }
                }
            }
        }
    }

    /// Finds conditions of `if` and of match arms, and values that compare.
    fn conditions(&mut self) {
        let code = self.code;
        for at in 0..code.len() {
            if word(code, at, "if ") {
                self.branch(at + 3);
            } else if code[at..].starts_with(b" = ")
                || code[at..].starts_with(b": ")
                || closure(code, at)
            {
                self.value(at + if code[at] == b' ' { 3 } else { 2 });
            }
        }
    }

    /// The condition that begins here, after its `if`.
    fn branch(&mut self, from: usize) {
        let code = self.code;
        let arm = until(code, from, &[" => "]);
        let open = until(code, from, &[" {"]);
        // The guard of a match arm.
        if let Some(arrow) = arm.filter(|arrow| open.is_none_or(|open| *arrow < open)) {
            let ends = if open.is_some() { [",", "\n"] } else { [",", "}"] };
            let end = until(code, arrow + 4, &ends).unwrap_or(open.unwrap_or(arrow));
            self.condition(from..arrow, &[!has(code, arrow..end, &REFUSES)]);
            return;
        }
        let Some(open) = open else { return };
        let Some(then) = block(code, open + 1) else { return };
        let other = code[then.end..].starts_with(b"} else {");
        let other = other.then(|| block(code, then.end + 7)).flatten();
        let refuses =
            |block: Range<usize>| has(code, block.clone(), &REFUSES) || has(code, block, &ERASES);
        match (refuses(then), other.is_some_and(refuses)) {
            (true, false) => self.condition(from..open, &[false]),
            (false, true) => self.condition(from..open, &[true]),
            _ => self.condition(from..open, &[true, false]),
        }
    }

    /// The value of a variable, field or closure that begins here, if it compares.
    fn value(&mut self, from: usize) {
        let code = self.code;
        let end = until(code, from, &[";", ",", ")", " {", "\n"]);
        let end = end.or_else(|| (from..code.len()).find(|end| b")}".contains(&code[*end])));
        let Some(end) = end else { return };
        let value = self.text[from..end].trim_start();
        let starts =
            ["if ", "match ", "|", "&&", "let "].iter().any(|begin| value.starts_with(begin));
        let top = parts(code, from..end, " && ").len() > 1
            || COMPARES.iter().any(|sign| until(&code[..end], from, &[sign]).is_some());
        if !starts && top && !value.contains("=>") && !value.contains(" = ") {
            self.condition(from..end, &[true, false]);
        }
    }

    /// Finds calls that can refuse, erasures, and match arms that refuse.
    fn statements(&mut self) {
        let mut from = 0;
        // The line is the value of a `let` that begins on the line before.
        let mut bound = false;
        for line in self.text.split_inclusive('\n') {
            let range = from..from + line.len();
            from = range.end;
            if range.end > self.code.len() {
                break;
            }
            let shown = String::from_utf8_lossy(&self.code[range.clone()]);
            let bare = shown.trim();
            if !std::mem::replace(&mut bound, bare.ends_with(" =")) {
                let statement = self.trim(range);
                match bare.split_once(" => ") {
                    Some((_, value)) => self.arm(bare, value, statement),
                    None => self.statement(bare, statement),
                }
            }
        }
    }

    /// A match arm: its line and the value on it.
    fn arm(&mut self, bare: &str, value: &str, line: Range<usize>) {
        // A value that does not fit on the line stands in a block.
        let arm = if value == "{" {
            let body = block(self.code, line.end - 1);
            body.map(|body| (self.text[body.clone()].trim(), line.start..body.end + 1))
        } else {
            bare.ends_with(',').then_some((value, line))
        };
        if let Some((value, range)) = arm
            && !bare.contains(" if ")
            && ERRORS.iter().any(|begin| value.starts_with(begin))
        {
            self.found.push((range, "=> taken", None));
        }
    }

    /// A line without an arm.
    fn statement(&mut self, bare: &str, at: Range<usize>) {
        let whole = bare.ends_with(';')
            && !["let ", "use ", "const "].iter().any(|begin| bare.starts_with(begin));
        let first = bare.split(['(', '.', ' ', '*']).next().unwrap_or_default();
        if !whole && !bare.ends_with("!(),")
            || ["return", "fn", "pub", "impl", "type", ""].contains(&first)
            || bare.starts_with(['}', ')', '.', '?'])
        {
            return;
        }
        if bare.ends_with("?;") && !bare.contains(" = ") {
            let call = self.text[at.clone()].trim_end_matches("?;");
            self.found.push((at.clone(), "=> ignored", Some(format!("let _ = {call};"))));
        }
        if ERASES.iter().any(|erases| bare.contains(erases)) {
            let nothing = if whole { "" } else { "\"\"," };
            self.found.push((at, "=> removed", Some(nothing.into())));
        }
    }

    /// What was found, with keys.
    fn places(mut self, file: &str) -> Vec<Place> {
        self.found.sort_by_key(|(at, how, _)| (at.start, at.end, *how));
        let mut seen = BTreeMap::new();
        let mut out: Vec<Place> = Vec::new();
        for (at, how, weak) in self.found {
            let function = function(self.code, self.text, at.start);
            let mut what = String::new();
            for part in self.text[at.clone()].split_whitespace() {
                // A wrapped method call.
                let method = part.starts_with('.') && !part.starts_with("..");
                what.push_str(if what.is_empty() || method { "" } else { " " });
                what.push_str(part);
            }
            let key = format!("{what} {how}");
            if out.last().is_some_and(|last| last.at == at && last.key.starts_with(&key)) {
                continue;
            }
            let key = numbered(&mut seen, &function, key);
            out.push(Place { file: file.into(), function, key, at, weak });
        }
        out
    }
}

/// A key that was `seen` before in this scope gets a number.
pub fn numbered(seen: &mut BTreeMap<String, usize>, scope: &str, key: String) -> String {
    let count = seen.entry(format!("{scope}\0{key}")).or_default();
    *count += 1;
    if *count > 1 { format!("{key} ({count})") } else { key }
}

/// The innermost function around a place.
fn function(code: &[u8], text: &str, at: usize) -> String {
    let mut name = "file";
    for begin in (0..at).filter(|begin| word(code, *begin, "fn ")) {
        let Some(open) = until(code, begin, &[" {", ";"]).filter(|open| code[*open] == b' ') else {
            continue;
        };
        if block(code, open + 1).is_some_and(|body| body.contains(&at)) {
            name = text[begin + 3..]
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or(name);
        }
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{meets, named};
    use super::*;

    #[test]
    fn every_comparison_and_every_erasure_is_in_the_list() -> Result<()> {
        let unnamed: Vec<String> = unnamed()?.into_iter().map(|(heading, _)| heading).collect();
        let help = "`cargo xtask mutants --unnamed` finds their tests";
        assert!(unnamed.is_empty(), "not in {LIST}; {help}:\n{}", unnamed.join("\n"));
        load()?;
        let (list, places, mutants) = (list()?, places()?, named()?);
        for (file, functions) in &list {
            let text = fs::read_to_string(root().join(file))?;
            let entries = functions.iter().flat_map(|(function, keys)| {
                keys.iter().map(move |(key, entry)| (function, key, entry))
            });
            for (function, key, entry) in entries {
                let here = format!("{LIST}: {file}: {function}: {key}");
                let place = places.iter().find(|place| {
                    (&place.file, &place.function, &place.key) == (file, function, key)
                });
                let place = place.unwrap_or_else(|| panic!("{here}: there is no such place"));
                assert!(
                    !matches!(entry, Entry::Test(_))
                        || place.weak.is_some() && !place.is_of_the_core(),
                    "{here}: needs a mutant written by hand, or a reason"
                );
                if let Entry::Mutant(name) = entry {
                    let meets = mutants.get(name).map(|edits| meets(edits, file, &text, &place.at));
                    assert_eq!(meets, Some(true), "{here}: {name} is a mutant of this place");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn places_are_found() {
        let source = "
/// if a == b { return Err(x) }
fn one(a: u32) -> Result<(), ()> {
    let text = \"if a != 1 { return Err(()) }\";
    if a == 1 || b.len() > 2 {
        return Err(());
    }
    if a == 3 && matches!(c, D { .. }) { Ok(()) } else { Err(()) }
    let good = a < 4;
    let long =
        value(a)?;
    check(a)?;
    key.zeroize();
    match a {
        1 if a == 5 => Ok(()),
        2 => Err(()),
    }
}
";
        let keys: Vec<String> = scan("x.rs", source)
            .into_iter()
            .map(|place| format!("{}: {}", place.function, place.key))
            .collect();
        let expected = [
            "a == 1 => false",
            "b.len() > 2 => false",
            "a == 3 => true",
            "matches!(c, D { .. }) => true",
            "a < 4 => false",
            "a < 4 => true",
            "check(a)?; => ignored",
            "key.zeroize(); => removed",
            "a == 5 => true",
            "2 => Err(()), => taken",
        ];
        assert_eq!(keys, expected.map(|key| format!("one: {key}")));
    }
}
