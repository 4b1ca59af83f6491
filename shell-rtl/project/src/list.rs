//! File lists, as `bender script flist-plus`, FuseSoC (edalize's `.vc`) and hand-written `-f` files
//! have them.

use crate::verilog::Text;
use crate::{Error, Listed, Result};
use std::path::{Path, PathBuf};

/// Maximum size of a list.
const MAX_LIST: u64 = 16 << 20;
/// Lists within lists.
const MAX_DEPTH: usize = 16;

/// Options without a value that decide nothing about the design: those of the simulator's build.
const IGNORED: &str = "--cc --sc --exe --lint-only --binary --build --trace --trace-fst --trace-vcd \
    --trace-structs --trace-params --timing --no-timing --assert --autoflush --savable --coverage --stats -sv --sv \
    -Wall -Wpedantic -Wno-fatal -Wno-lint -Wno-style -O0 -O1 -O2 -O3";
/// The same with a value.
const IGNORED_VALUES: &str = "--Mdir -Mdir -CFLAGS -LDFLAGS -MAKEFLAGS --threads -j --build-jobs --prefix -o --x-assign \
    --x-initial --x-initial-edge --trace-depth --trace-threads --unroll-count --output-split --language \
    --default-language";
/// Files of the simulator's build: programs, and waivers of warnings.
const IGNORED_FILES: [&str; 11] =
    ["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "a", "o", "so", "vlt"];

/// What file lists and `shef.toml` say about a design.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    pub(crate) listed: Listed,
    /// Macros.
    pub(crate) defines: Vec<(String, String)>,
    /// Parameters of the top module.
    pub(crate) parameters: Vec<(String, String)>,
    /// Top modules.
    pub(crate) tops: Vec<String>,
    /// The lists.
    pub(crate) lists: Vec<PathBuf>,
}

/// One word of a list, with line and column.
struct Word {
    text: String,
    line: usize,
    column: usize,
}

/// Whether this is an identifier of SystemVerilog.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

impl Contents {
    /// Adds a macro.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn define(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        Self::set(&mut self.defines, "macro", name, value)
    }

    /// Adds a parameter of the top module.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn parameter(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        Self::set(&mut self.parameters, "parameter", name, value)
    }

    fn set(
        to: &mut Vec<(String, String)>,
        what: &str,
        name: &str,
        value: &str,
    ) -> std::result::Result<(), String> {
        if !is_identifier(name) {
            return Err(format!("expected the name of a {what}, found {name:?}"));
        }
        if value.contains(|c: char| c.is_control() || c == '`') {
            return Err(format!("the {what} {name} has a value with a control character or `"));
        }
        if let Some((_, reason)) = Text::of(value.as_bytes()).refused(true) {
            return Err(format!("the {what} {name}: {reason}"));
        }
        match to.iter().find(|(other, _)| other == name) {
            Some((_, other)) if other != value => {
                Err(format!("the {what} {name} has two values, {other:?} and {value:?}"))
            }
            Some(_) => Ok(()),
            None => {
                to.push((name.to_owned(), value.to_owned()));
                Ok(())
            }
        }
    }

    /// Adds a source, once.
    pub(crate) fn source(&mut self, path: PathBuf) {
        if !self.listed.files.contains(&path) {
            self.listed.files.push(path);
        }
    }

    /// Reads a list. `root` is the project's canonical folder, which contains every file.
    ///
    /// # Errors
    /// [`Error::List`] with line and column.
    pub(crate) fn read(&mut self, list: &Path, root: &Path) -> Result<()> {
        self.read_at(list, root, &mut Vec::new())
    }

    fn read_at(&mut self, list: &Path, root: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        let failed = |what: String| Error::List { place: list.display().to_string(), what };
        if above.len() >= MAX_DEPTH || above.iter().any(|other| other == list) {
            return Err(failed("the list reads itself, or lists are nested too deeply".to_owned()));
        }
        let bytes = shef_files::regular::read(list, MAX_LIST)
            .map_err(|e| failed(format!("cannot be read: {e}")))?;
        let text =
            String::from_utf8(bytes).map_err(|_| failed("it is no UTF-8 text".to_owned()))?;
        let folder = list.parent().unwrap_or(root);
        above.push(list.to_owned());
        self.lists.push(list.to_owned());
        let words = words(&text, |line| find(line, folder, root).is_ok());
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let bad = |what: String| Error::List {
                place: format!("{}:{}:{}", list.display(), word.line, word.column),
                what,
            };
            let path = |text: &str| find(text, folder, root).map_err(bad);
            let text = word.text.as_str();
            let mut value = |option: &str| match text.strip_prefix(option) {
                Some("") => words
                    .next()
                    .map(|next| next.text)
                    .ok_or_else(|| bad(format!("{option} needs a value"))),
                rest => Ok(rest.unwrap_or_default().to_owned()),
            };
            let pair = |text: &str| {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                (name.to_owned(), value.to_owned())
            };
            if let Some(folders) = text.strip_prefix("+incdir+") {
                for name in folders.split('+').filter(|name| !name.is_empty()) {
                    self.listed.include.push(path(name)?);
                }
            } else if let Some(macros) = text.strip_prefix("+define+") {
                for (name, value) in macros.split('+').filter(|m| !m.is_empty()).map(pair) {
                    self.define(&name, &value).map_err(bad)?;
                }
            } else if let Some(extensions) = text.strip_prefix("+libext+") {
                let given = extensions.split('+').map(|x| x.trim_start_matches('.').to_owned());
                self.listed.extensions.extend(given.filter(|x| !x.is_empty()));
            } else if ["--top-module", "-top-module", "--top", "-top"].contains(&text) {
                let top = value(text)?;
                self.tops.push(top);
            } else if text == "-f" || text == "-F" {
                let inner = path(&value(text)?)?;
                self.read_at(&inner, root, above)?;
            } else if text == "-y" {
                let folder = path(&value("-y")?)?;
                self.listed.folders.push(folder);
            } else if text == "-v" {
                let file = path(&value("-v")?)?;
                self.listed.libraries.push(file);
            } else if lists(IGNORED_VALUES, text) {
                value(text)?;
            } else if lists(IGNORED, text)
                || text.starts_with("-Wno-")
                || text.starts_with("-Wwarn-")
            {
            } else if text.starts_with("-I") {
                let folder = path(&value("-I")?)?;
                self.listed.include.push(folder);
            } else if text.starts_with("-D") {
                let (name, value) = pair(&value("-D")?);
                self.define(&name, &value).map_err(bad)?;
            } else if text.starts_with("-G") {
                let (name, value) = pair(&value("-G")?);
                self.parameter(&name, &value).map_err(bad)?;
            } else if text.starts_with(['-', '+']) {
                return Err(bad(format!(
                    "unknown option {text}: a list has sources, +incdir+, +define+, +libext+, -f, -F, -y, -v, -I, -D, -G, --top-module, \
                     and options of Verilator's build"
                )));
            } else {
                let extension = Path::new(text).extension().unwrap_or_default().to_string_lossy();
                match &*extension {
                    "sv" | "v" | "svh" | "vh" => self.source(path(text)?),
                    other if IGNORED_FILES.contains(&other) => {}
                    _ => {
                        return Err(bad(format!(
                            "{text} is no source: expected .sv, .v, .svh or .vh"
                        )));
                    }
                }
            }
        }
        above.pop();
        Ok(())
    }
}

fn lists(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// The canonical path of a file or folder in the project: relative to `folder`, or else to the
/// project's own folder.
///
/// # Errors
/// The reason why the path is refused.
pub(crate) fn find(text: &str, folder: &Path, root: &Path) -> std::result::Result<PathBuf, String> {
    if text.contains('$') {
        return Err(format!("{text}: expected a path without variables"));
    }
    let first = folder.join(text);
    let found = first.canonicalize().or_else(|e| root.join(text).canonicalize().map_err(|_| e));
    let found = found.map_err(|e| format!("cannot read {}: {e}", first.display()))?;
    inside(&found, root)?;
    Ok(found)
}

/// Refuses a canonical path that is outside of the project.
///
/// # Errors
/// The reason.
pub(crate) fn inside(found: &Path, root: &Path) -> std::result::Result<(), String> {
    if found.starts_with(root) {
        return Ok(());
    }
    Err(format!(
        "{} is outside of the project {}: a project stands alone",
        found.display(),
        root.display()
    ))
}

/// The canonical path of a file that may be missing, as the result of a job is before the job. A link
/// to a missing file is an error.
///
/// # Errors
/// The system's.
pub(crate) fn resolved(path: &Path) -> std::io::Result<PathBuf> {
    let missing = match path.canonicalize() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => e,
        found => return found,
    };
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) if !path.is_symlink() => Ok(resolved(folder)?.join(name)),
        _ => Err(missing),
    }
}

/// The words of a list. A line that is a path, or `+incdir+` and a path, is one word, whatever blanks
/// it has.
fn words(text: &str, is_path: impl Fn(&str) -> bool) -> Vec<Word> {
    let mut all = Vec::new();
    let mut comment = false;
    for (number, line) in text.lines().enumerate() {
        let whole = line.trim();
        let indent = line.chars().take_while(|c| c.is_whitespace()).count();
        let mut add = |text: String, column: usize| {
            all.push(Word { text, line: number + 1, column: column + 1 });
        };
        let path = whole.strip_prefix("+incdir+").unwrap_or(whole);
        if !comment && path.contains(char::is_whitespace) && is_path(path) {
            add(whole.to_owned(), indent);
            continue;
        }
        let chars: Vec<char> = line.chars().collect();
        let mut at = 0;
        while at < chars.len() {
            let rest = &chars[at..];
            match rest {
                ['*', '/', ..] if comment => {
                    comment = false;
                    at += 2;
                }
                _ if comment => at += 1,
                ['/', '*', ..] => {
                    comment = true;
                    at += 2;
                }
                ['/', '/', ..] => break,
                ['#', ..] if at == indent => break,
                [c, ..] if c.is_whitespace() => at += 1,
                ['"', more @ ..] => {
                    let len = more.iter().position(|c| *c == '"').unwrap_or(more.len());
                    add(more[..len].iter().collect(), at);
                    at += len + 2;
                }
                _ => {
                    let len = rest.iter().position(|c| c.is_whitespace()).unwrap_or(rest.len());
                    add(rest[..len].iter().collect(), at);
                    at += len;
                }
            }
        }
    }
    all
}
