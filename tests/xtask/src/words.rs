//! Comments in plain English: idioms of translated text are counted per crate.

use crate::process::{Result, ensure};
use crate::{files, root};
use fs_err as fs;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// Maximum share of a crate's comment lines, in thousandths.
const LIMIT: usize = 5;
/// Crates with fewer comment lines are not judged alone.
const SMALL: usize = 50;

/// Phrases that plain English says with a subject, a noun or a shorter word. `*` stands for one of
/// [`VERBS`].
const PHRASES: &str = "\
     is none, are none, whoever, who *, he, his, him, nobody, somebody, everybody, so many, so \
     long, so few, as such, where there is none, where there is no, where there is one, where it is \
     absent, where it is missing, where it is not, where nothing, where none, where nobody, where \
     one, is asked, is told, is said, is looked, is held against, is taken back, is taken up, is \
     let go, are asked, are told, are said, are looked, are held against, are taken back, are taken \
     up, are let go, was asked, was told, was said, were asked, were told, were said, be asked, be \
     told, be said, be looked, be held against, be taken back, meanwhile, of its own, of their own, \
     of one's own, by itself, by themselves";
/// After `who`, without a noun before it.
const VERBS: &[&str] = &[
    "reads", "has", "holds", "asks", "sees", "shows", "attested", "handles", "submits", "may",
    "runs", "puts", "goes", "listens",
];
/// `what` before one of these begins a relative clause in a noun's place, if it stands first in a
/// later clause or after one of [`BEFORE_WHAT`].
const AFTER_WHAT: &[&str] = &[
    "is", "was", "has", "had", "the", "a", "an", "it", "they", "of", "came", "comes", "lies",
    "stands", "stood", "does", "do", "no", "can", "one",
];
const BEFORE_WHAT: &[&str] = &["of", "to", "with", "from", "by", "than", "after", "before"];

/// Whether a comment's text holds one of the idioms.
fn idiom(text: &str) -> bool {
    let lower = text.to_lowercase();
    // A word, and whether punctuation ends the phrase before it.
    let mut words: Vec<(&str, bool)> = Vec::new();
    let mut first = false;
    for token in lower.split_whitespace() {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric());
        let opens = token.starts_with('(');
        if !word.is_empty() {
            words.push((word, first || opens));
        }
        first = token.ends_with(['.', ';', ':', ',']);
    }
    let is = |at: usize, pattern: &str| {
        words.get(at).is_some_and(|(word, _)| {
            if pattern == "*" { VERBS.contains(word) } else { *word == pattern }
        })
    };
    static PATTERNS: LazyLock<Vec<Vec<&str>>> =
        LazyLock::new(|| PHRASES.split(", ").map(|phrase| phrase.split(' ').collect()).collect());
    let holds = |at: usize, phrase: &[&str]| {
        phrase.iter().enumerate().all(|(n, pattern)| is(at + n, pattern))
    };
    words.iter().enumerate().any(|(at, (word, first))| {
        let noun = *word == "what"
            && words.get(at + 1).is_some_and(|(next, _)| AFTER_WHAT.contains(next))
            && (*first
                || at.checked_sub(1).is_some_and(|before| BEFORE_WHAT.contains(&words[before].0)));
        noun || PATTERNS.iter().any(|phrase| holds(at, phrase))
    })
}

/// Comment lines of a crate: all of them, and those with an idiom.
#[derive(Default)]
struct Count {
    lines: usize,
    idioms: Vec<String>,
}

/// The crates with a larger share of idioms than [`LIMIT`], each with its lines.
fn judge(crates: &BTreeMap<String, Count>) -> Vec<String> {
    let over = |c: &&Count| c.lines >= SMALL && c.idioms.len() * 1000 > c.lines * LIMIT;
    crates.values().filter(over).flat_map(|c| c.idioms.iter().cloned()).collect()
}

/// Counts the comments of one file, which belongs to `of`.
fn count(of: &mut Count, path: &Path, text: &str) {
    for (number, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("//") else { continue };
        of.lines += 1;
        if idiom(comment.trim_start_matches(['/', '!'])) {
            of.idioms.push(format!("{}:{}: {}", path.display(), number + 1, comment.trim()));
        }
    }
}

/// Checks the comments of those `paths` that are Rust or SystemVerilog.
///
/// # Errors
/// A crate or folder has more than five idioms in a thousand comment lines; a source is unreadable.
pub fn check<'a>(paths: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut crates: BTreeMap<String, Count> = BTreeMap::new();
    for path in paths.map(Path::new) {
        if !files::is(path, "rs") && !files::is(path, "sv") {
            continue;
        }
        let name: Vec<_> = path.iter().take(2).map(|part| part.to_string_lossy()).collect();
        let text = fs::read_to_string(root().join(path))?;
        count(crates.entry(name.join("/")).or_default(), path, &text);
    }
    let found = judge(&crates);
    ensure!(
        found.is_empty(),
        "comments that read as translated; give the sentence a subject and the field's noun:\n{}",
        found.join("\n")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idioms_are_found_and_plain_sentences_are_not() {
        for text in [
            "Stops; what is refused stays out.",
            "the answer of what came first",
            "An answer that is none.",
            "Whoever holds the key may read.",
            "it ends by itself",
            "the kernel is told",
            "for who reads it",
        ] {
            assert!(idiom(text), "{text}");
        }
        for text in [
            "The verifier rejects stale evidence.",
            "Says what is missing.",
            "What the caller sent.",
            "hexadecimal",
            "the client asks for a nonce",
            "its own key",
            "",
        ] {
            assert!(!idiom(text), "{text}");
        }
    }

    const IDIOM: &str = "Nobody reads it.";

    #[test]
    fn a_crate_over_the_limit_is_named() {
        let mut of = Count::default();
        let plain = "// The client sends a nonce.\n".repeat(300);
        count(&mut of, Path::new("a/b/c.rs"), &format!("{plain}// {IDIOM}\n"));
        let crates = |of| BTreeMap::from([("a/b".to_owned(), of)]);
        assert!(judge(&crates(of)).is_empty());
        let mut of = Count::default();
        count(
            &mut of,
            Path::new("a/b/c.rs"),
            &format!("{plain}{}", format!("let x = 1; // {IDIOM}\n").repeat(2)),
        );
        assert_eq!(
            judge(&crates(of)),
            ["a/b/c.rs:301: Nobody reads it.", "a/b/c.rs:302: Nobody reads it."]
        );
    }
}
