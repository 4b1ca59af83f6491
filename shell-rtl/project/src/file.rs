//! `shef.toml`: the description of a project. Its keys are in `docs/reference/project.md`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shef_gen::shield::Place;
use toml::Spanned;

use crate::job::{Job, Jobs, Names, Refused, Registers, Test};
use crate::list::{Contents, find, inside, is_identifier};
use crate::{Error, Result};
use shef_proto::config::Config;

/// Name of the file.
pub(crate) const NAME: &str = "shef.toml";
/// The version of the format that this crate reads.
const FORMAT: i64 = 1;
/// Maximum size.
const MAX: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: Spanned<i64>,
    name: Option<Spanned<String>>,
    top: Option<Spanned<String>>,
    shield: Option<Spanned<String>>,
    sources: Option<Sources>,
    #[serde(default)]
    defines: BTreeMap<Spanned<String>, Value>,
    #[serde(default)]
    parameters: BTreeMap<Spanned<String>, Value>,
    #[serde(default)]
    registers: BTreeMap<Spanned<String>, i64>,
    #[serde(default)]
    jobs: BTreeMap<Spanned<String>, JobTable>,
    #[serde(default)]
    tests: BTreeMap<Spanned<String>, TestTable>,
}

/// `[jobs.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobTable {
    #[serde(default)]
    r#in: Vec<Spanned<String>>,
    #[serde(default)]
    reg: Vec<Spanned<String>>,
    start: Spanned<String>,
    done: Spanned<String>,
    #[serde(default)]
    out: Vec<Spanned<String>>,
    #[serde(default)]
    read: Vec<Spanned<String>>,
    seconds: Option<Spanned<i64>>,
    stall_cycles: Option<Spanned<i64>>,
}

/// `[tests.NAME]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestTable {
    job: Spanned<String>,
    #[serde(default)]
    expect: Vec<Spanned<String>>,
    model: Option<Spanned<String>>,
    seeds: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    #[serde(default)]
    files: Vec<Spanned<String>>,
    #[serde(default)]
    lists: Vec<Spanned<String>>,
    #[serde(default)]
    include: Vec<Spanned<String>>,
}

/// The text of a macro or parameter, which the file has as a number or as a string.
struct Value(String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Value;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a whole number, or a string with the text, such as \"8'h0f\"")
            }
            fn visit_i64<E>(self, number: i64) -> std::result::Result<Value, E> {
                Ok(Value(number.to_string()))
            }
            fn visit_str<E>(self, text: &str) -> std::result::Result<Value, E> {
                Ok(Value(text.to_owned()))
            }
        }
        from.deserialize_any(Visitor)
    }
}

/// The parsed file, and the text for the places in errors.
struct Text {
    path: PathBuf,
    text: String,
    file: File,
}

/// Refuses a file behind a link that leads out of the project of this folder.
///
/// # Errors
/// [`Error::Folder`], [`Error::Io`].
pub(crate) fn own(path: &Path, dir: &Path) -> Result<()> {
    let real = |path: &Path| path.canonicalize().map_err(|e| Error::io("cannot read", path, &e));
    inside(&real(path)?, &real(dir)?).map_err(|what| Error::Folder { dir: dir.to_owned(), what })
}

fn rule(path: &Path, text: &str, span: Range<usize>, message: String) -> Error {
    Error::Rule { file: path.to_owned(), place: Place::of(text, span), message }
}

impl Text {
    /// The file of a folder, if it has one.
    fn read(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(NAME);
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        own(&path, dir)?;
        let bytes = shef_files::regular::read(&path, MAX)
            .map_err(|e| Error::io("cannot read", &path, &e))?;
        let text = String::from_utf8(bytes)
            .map_err(|e| Error::io("cannot read", &path, &std::io::Error::other(e)))?;
        let file: File = toml::from_str(&text).map_err(|e| Error::File {
            file: path.clone(),
            place: Place::of(&text, e.span().unwrap_or(0..0)),
            message: e.message().lines().collect::<Vec<_>>().join("; "),
        })?;
        if *file.format.get_ref() != FORMAT {
            let what = format!(
                "this is a project of format {}, and this program reads format {FORMAT}",
                file.format.get_ref()
            );
            return Err(rule(&path, &text, file.format.span(), what));
        }
        Ok(Some(Self { path, text, file }))
    }
}

impl Jobs {
    /// Reads registers, jobs and tests of a project's folder, whose Shield has this configuration.
    /// A folder without `shef.toml` has none. Files that jobs name are in the folder, also behind
    /// links, and need not exist.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Rule`] with line and column.
    pub fn read(dir: &Path, config: &Config) -> Result<Self> {
        let Some(Text { path, text, file }) = Text::read(dir)? else { return Ok(Self::default()) };
        let rule = |span, message: Refused| rule(&path, &text, span, message);
        let (mut registers, mut places) = (Registers::default(), BTreeMap::new());
        for (name, offset) in file.registers {
            let added = registers.add(name.get_ref(), offset);
            let offset = added.map_err(|what| rule(name.span(), what))?;
            if let Some(other) = places.insert(offset, name.clone()) {
                let (first, second) = if other.span().start < name.span().start {
                    (other, name)
                } else {
                    (name, other)
                };
                let Place { line, column, .. } = Place::of(&text, first.span());
                let what = format!(
                    "expected one name for an offset: {} at {line}:{column} also has the offset {offset:#x}",
                    first.get_ref()
                );
                return Err(rule(second.span(), what));
            }
        }
        let names = Names { registers: &registers, config, project: Some(dir) };
        let named = |name: &Spanned<String>| {
            let what = "expected a name of 1 to 64 letters, digits, '_', '-', '.'".to_owned();
            if is_name(name.get_ref()) { Ok(()) } else { Err(rule(name.span(), what)) }
        };
        let (mut jobs, mut tests) = (BTreeMap::new(), BTreeMap::new());
        for (name, table) in file.jobs {
            named(&name)?;
            let job = table.job(names).map_err(|(span, what)| rule(span, what))?;
            jobs.insert(name.into_inner(), job);
        }
        for (name, table) in file.tests {
            named(&name)?;
            let test = table.test(names, &jobs, name.span());
            tests.insert(name.into_inner(), test.map_err(|(span, what)| rule(span, what))?);
        }
        Ok(Self { registers, jobs, tests })
    }
}

/// The reason why a value is refused, and its place.
type Misplaced = (Range<usize>, Refused);

impl JobTable {
    fn job(self, names: Names) -> std::result::Result<Job, Misplaced> {
        let mut job = Job::default();
        type Add = fn(&mut Job, Names, &str) -> std::result::Result<(), Refused>;
        type Len = fn(&Job) -> usize;
        let lists: [(_, Add, Len); 4] = [
            (self.r#in, Job::input, |job| job.inputs.len()),
            (self.reg, Job::register, |job| job.registers.len()),
            (self.out, Job::output, |job| job.outputs.len()),
            (self.read, Job::read, |job| job.reads.len()),
        ];
        for (list, add, len) in lists {
            for (k, text) in list.iter().enumerate() {
                let refused = |what| (text.span(), what);
                add(&mut job, names, text.get_ref()).map_err(refused)?;
                if len(&job) != k + 1 {
                    return Err(refused("its left side is in this list twice".to_owned()));
                }
            }
        }
        job.start(names, self.start.get_ref()).map_err(|what| (self.start.span(), what))?;
        job.done(names, self.done.get_ref()).map_err(|what| (self.done.span(), what))?;
        let limits = [(self.seconds, &mut job.seconds), (self.stall_cycles, &mut job.stall_cycles)];
        for (limit, to) in limits {
            if let Some(limit) = limit {
                let number = u64::try_from(*limit.get_ref()).ok().filter(|number| *number > 0);
                *to = number.ok_or_else(|| (limit.span(), "expected 1 or more".to_owned()))?;
            }
        }
        Ok(job)
    }
}

impl TestTable {
    fn test(
        self,
        names: Names,
        jobs: &BTreeMap<String, Job>,
        name: Range<usize>,
    ) -> std::result::Result<Test, Misplaced> {
        let job = jobs.get(self.job.get_ref()).ok_or_else(|| {
            let known: Vec<&str> = jobs.keys().map(String::as_str).collect();
            let what = format!("expected the name of a job; the jobs are {}", known.join(", "));
            (self.job.span(), what)
        })?;
        let seeds = self.seeds.as_ref();
        let mut test = Test::new(self.job.get_ref(), seeds.map(|seeds| *seeds.get_ref()))
            .map_err(|what| (seeds.map_or(name.clone(), Spanned::span), what))?;
        for text in &self.expect {
            test.expect(names, job, text.get_ref()).map_err(|what| (text.span(), what))?;
        }
        if let Some(text) = &self.model {
            test.model(names, text.get_ref()).map_err(|what| (text.span(), what))?;
        }
        if test.expect.is_empty() && test.model.is_none() {
            let what = "a test without `expect` and `model` cannot fail".to_owned();
            return Err((name, what));
        }
        Ok(test)
    }
}

/// A project as its file describes it; without a file, as its folder does.
pub(crate) struct Project {
    /// Name of the accelerator, unless it is that of the folder.
    pub(crate) name: Option<String>,
    /// Top module, unless it is `shef_accel`.
    pub(crate) top: Option<String>,
    /// The Shield's file.
    pub(crate) shield: PathBuf,
    /// Its sources, unless the folder is searched for them.
    pub(crate) sources: Option<Contents>,
}

/// Whether an accelerator, a job or a test can have this name: 1 to 64 letters, digits, `_`, `-`, `.`.
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

impl Project {
    /// Reads the project of a folder. `root` is its canonical path.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Rule`] with line and column, and those of file lists.
    pub(crate) fn read(dir: &Path, root: &Path) -> Result<Self> {
        let Some(Text { path, text, file }) = Text::read(dir)? else {
            let shield = dir.join("shield.toml");
            return Ok(Self { name: None, top: None, shield, sources: None });
        };
        let rule = |span, message: String| rule(&path, &text, span, message);
        if let Some(name) = file.name.as_ref().filter(|name| !is_name(name.get_ref())) {
            let what = "expected a name of 1 to 64 letters, digits, '_', '-', '.'".to_owned();
            return Err(rule(name.span(), what));
        }
        if let Some(top) = file.top.as_ref().filter(|top| !is_identifier(top.get_ref())) {
            return Err(rule(top.span(), "expected the name of a module".to_owned()));
        }
        let shield = match &file.shield {
            None => dir.join("shield.toml"),
            Some(name) => {
                find(name.get_ref(), root, root).map_err(|what| rule(name.span(), what))?
            }
        };
        if file.sources.is_none()
            && let Some(name) = file.defines.keys().chain(file.parameters.keys()).next()
        {
            let what = "macros and parameters need [sources], which lists the files".to_owned();
            return Err(rule(name.span(), what));
        }
        let sources = match file.sources {
            None => None,
            Some(sources) => {
                let mut contents = Contents::default();
                let parameter = file.parameters.keys().next().map(Spanned::span);
                let list = sources.lists.first().map(Spanned::span);
                for (names, add) in [
                    (file.defines, Contents::define as fn(&mut Contents, &str, &str) -> _),
                    (file.parameters, Contents::parameter),
                ] {
                    for (name, value) in names {
                        add(&mut contents, name.get_ref(), &value.0)
                            .map_err(|what: String| rule(name.span(), what))?;
                    }
                }
                for name in &sources.include {
                    let folder =
                        find(name.get_ref(), root, root).map_err(|what| rule(name.span(), what))?;
                    contents.listed.include.push(folder);
                }
                for name in &sources.lists {
                    let list =
                        find(name.get_ref(), root, root).map_err(|what| rule(name.span(), what))?;
                    contents.read(&list, root)?;
                }
                for name in &sources.files {
                    for file in
                        glob(name.get_ref(), root).map_err(|what| rule(name.span(), what))?
                    {
                        contents.source(file);
                    }
                }
                contents.listed.root = root.to_owned();
                contents.tops.sort();
                contents.tops.dedup();
                if let (None, [first, second, ..]) = (&file.top, contents.tops.as_slice()) {
                    let what = format!(
                        "the file lists have two tops, {first} and {second}: name one with `top`"
                    );
                    return Err(rule(list.unwrap_or(file.format.span()), what));
                }
                let top = file.top.as_ref().map(Spanned::get_ref).or(contents.tops.first());
                if !contents.parameters.is_empty() && top.is_none_or(|top| top == "shef_accel") {
                    let what = "a module shef_accel is instantiated without parameters: give the \
                                top module another name, and name it with `top`"
                        .to_owned();
                    return Err(rule(parameter.unwrap_or(file.format.span()), what));
                }
                Some(contents)
            }
        };
        let listed = sources.as_ref().and_then(|contents| contents.tops.first().cloned());
        Ok(Self {
            name: file.name.map(Spanned::into_inner),
            top: file.top.map(Spanned::into_inner).or(listed),
            shield,
            sources,
        })
    }
}

/// The files that a pattern names, sorted: `*` and `?` within a name, `**` for any folders. Hidden
/// files match only a name that begins with a dot.
fn glob(pattern: &str, root: &Path) -> std::result::Result<Vec<PathBuf>, String> {
    if !pattern.contains(['*', '?']) {
        return Ok(vec![find(pattern, root, root)?]);
    }
    let parts: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if pattern.starts_with('/') || parts.contains(&"..") {
        return Err("a pattern is relative to the project's folder, without ..".to_owned());
    }
    let mut found = Vec::new();
    below(root, &parts, &mut found).map_err(|e| e.to_string())?;
    found.sort();
    found.dedup();
    if let Some(other) = found.iter().find(|file| !file.starts_with(root)) {
        return Err(format!(
            "{} is outside of the project: a project stands alone",
            other.display()
        ));
    }
    if found.is_empty() { Err("no file matches".to_owned()) } else { Ok(found) }
}

fn below(folder: &Path, parts: &[&str], found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    if *first == "**" {
        below(folder, rest, found)?;
    }
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        if name.starts_with('.') && !first.starts_with('.') {
            continue;
        }
        // Links to folders are not followed, so that the walk ends.
        let is_folder = entry.file_type()?.is_dir();
        if *first == "**" {
            if is_folder {
                below(&path, parts, found)?;
            }
        } else if matches(first.as_bytes(), name.as_bytes()) {
            match rest {
                [] if path.is_file() => found.push(path.canonicalize()?),
                [] => {}
                rest if is_folder => below(&path, rest, found)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether a name matches a pattern of `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|n| matches(rest, &name[n..])),
        ([b'?', pattern @ ..], [_, name @ ..]) => matches(pattern, name),
        ([p, pattern @ ..], [n, name @ ..]) => p == n && matches(pattern, name),
        _ => false,
    }
}
