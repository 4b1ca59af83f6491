//! Selects the files of a design: packages first, then everything that the top module reaches.

use crate::verilog::{Text, origin, refused_directive};
use crate::{Error, Listed, Result, SourceSet, repo_root};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The sources below a folder, sorted: without hidden files and folders (editors and version
/// control keep copies there), and without following links to folders, so that the walk ends.
fn walk(dir: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    let unreadable = |e: std::io::Error| Error::io("cannot list", dir, &e);
    let mut entries = std::fs::read_dir(dir)
        .map_err(unreadable)?
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(unreadable)?;
    entries.retain(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
        if kind.is_dir() {
            walk(&path, out)?;
        } else if (path.extension().is_some_and(|x| x == "sv") || is_header(&path))
            && !path.is_dir()
        {
            out.push(path);
        }
    }
    Ok(())
}

/// All `*.sv` files below a folder, sorted.
///
/// # Errors
/// When a folder cannot be listed.
pub fn sv_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    walk(dir, &mut out)?;
    out.retain(|p| !is_header(p));
    Ok(out)
}

/// The first word of a text, as a source of a user's project, that reads or runs something outside
/// of the design: its line, and why it is refused.
#[must_use]
pub fn reaches_outside(text: &[u8]) -> Option<(usize, String)> {
    let (at, what) = Text::of(text).refused(true)?;
    Some((text[..at].iter().filter(|byte| **byte == b'\n').count() + 1, what))
}

/// The name of a file without its extension.
#[must_use]
pub fn stem(p: &Path) -> String {
    p.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Whether it is read only where another file includes it.
fn is_header(p: &Path) -> bool {
    p.extension().is_some_and(|x| x == "svh" || x == "vh")
}

fn is_package(p: &Path) -> bool {
    stem(p).ends_with("_pkg")
}

/// All RTL of the Shield: packages first, then `shell-rtl/rtl/**.sv`.
///
/// # Errors
/// When a folder cannot be listed.
pub fn rtl_sources() -> Result<Vec<PathBuf>> {
    let mut all = sv_files(&repo_root().join("shell-rtl/rtl"))?;
    all.sort_by_key(|p| (!is_package(p), p.clone()));
    Ok(all)
}

/// Top module of the custom logic for AWS F2 in simulation.
pub const F2_TOP: &str = "shef_f2_top";

impl SourceSet {
    /// A design with the Shield's RTL and this `top`; it takes modules by file name from
    /// `shell-rtl/rtl` and `shell-rtl/shell/sim`, and for [`F2_TOP`] first from the folders of AWS F2,
    /// with the native kernel. Add an accelerator with [`SourceSet::search`].
    ///
    /// # Errors
    /// When no file is named after the top module.
    pub fn shipped(top: &str) -> Result<Self> {
        let mut set = Self::new(top);
        if top == F2_TOP {
            let folders = ["f2_native", "f2_model", "aws_f2"];
            set = folders.iter().fold(set, |set, f| set.search(format!("shell-rtl/shell/{f}")));
        }
        let set = set.search("shell-rtl/rtl").search("shell-rtl/shell/sim");
        set.resolve_sources()?;
        Ok(set)
    }

    /// Names, as in the design, of the modules that the top module's text names: those that the top
    /// tests.
    ///
    /// # Errors
    /// When the top module or a named file is missing.
    pub fn below_top(&self) -> Result<Vec<String>> {
        let files = closure(self, &self.top)?;
        let Some(top) = files.iter().find(|s| stem(&s.path) == self.top) else {
            return Err(Error::SourceMissing {
                module: self.top.clone(),
                searched: "the design".into(),
            });
        };
        let named = Text::of(&top.bytes).identifiers;
        let module = |p: &Path| p != top.path && !is_package(p) && named.contains(stem(p).as_str());
        Ok(files.iter().filter(|s| module(&s.path)).map(|s| stem(&s.path)).collect())
    }

    /// The files of the design, in compilation order.
    ///
    /// # Errors
    /// As [`SourceSet::measure`].
    pub fn resolve_sources(&self) -> Result<Vec<PathBuf>> {
        Ok(closure(self, &self.top)?.into_iter().map(|source| source.path).collect())
    }

    /// Reads the measured part of the design, each file once.
    ///
    /// # Errors
    /// When the top module or a named file is missing, two files have the same name, or a source
    /// reads something that is not measured.
    pub fn measure(&self) -> Result<Measured> {
        Ok(self.read()?.0)
    }

    /// The measured part of the design, and every file that is built.
    ///
    /// # Errors
    /// As [`SourceSet::measure`].
    pub fn read(&self) -> Result<(Measured, Vec<Source>)> {
        let built = closure(self, &self.top)?;
        let top = self.measured.as_deref().unwrap_or(&self.top);
        let mut sources = built.clone();
        if top != self.top {
            let below: BTreeSet<PathBuf> =
                closure(self, top)?.into_iter().map(|source| source.path).collect();
            sources.retain(|source| below.contains(&source.path));
            // A shell instantiates nothing of a project, but its text may contain the name of one
            // of the project's files.
            if let Some(other) = built
                .iter()
                .find(|s| self.project_of(&s.path).is_some() && !below.contains(&s.path))
            {
                return Err(Error::Source {
                    place: other.path.display().to_string(),
                    what: format!("the shell {} has a name like this file: rename it", self.top),
                });
            }
        }
        let file =
            |s: &Source| format!("file {} {}\n", s.name, hex::encode(Sha256::digest(&s.bytes)));
        // The order of listed sources counts: macros of one are those of the next.
        let (listed, others): (Vec<&Source>, Vec<&Source>) = sources.iter().partition(|s| s.listed);
        let mut lines: Vec<String> = others.into_iter().map(file).collect();
        let listed: String = listed.into_iter().map(file).collect();
        if self.listed.is_some() {
            let include = |s: &Source| {
                let line =
                    |spelling: &PathBuf| format!("include {} {}\n", spelling.display(), s.name);
                s.spellings.iter().map(line).collect::<String>()
            };
            lines.extend(sources.iter().map(include));
        }
        let mut params: Vec<String> =
            self.params.iter().map(|(k, v)| format!("param {k}={v}\n")).collect();
        params.extend(self.defines.iter().map(|(k, v)| format!("define {k}={v}\n")));
        lines.sort();
        params.sort();
        let manifest =
            format!("shef-design-1\ntop {top}\n") + &params.concat() + &lines.concat() + &listed;
        Ok((Measured { manifest, sources }, built))
    }

    /// SHA-256 of the manifest.
    ///
    /// # Errors
    /// As [`SourceSet::measure`].
    pub fn digest(&self) -> Result<[u8; 32]> {
        Ok(self.measure()?.digest())
    }

    /// Name of a source in the manifest: shipped files have their path, those that a user lists have
    /// it below the project, others their file name. So a design's digest does not depend on the
    /// project's folder.
    fn name_of(&self, path: &Path) -> Result<String> {
        let shipped = path.strip_prefix(repo_root()).ok().filter(|r| r.starts_with("shell-rtl"));
        let listed = || path.strip_prefix(&self.listed.as_ref()?.root).ok();
        let generated = || self.generated.iter().any(|(name, _)| name == path).then_some(path);
        let name = shipped.or_else(listed).or_else(generated);
        let name = name.unwrap_or(path.file_name().map_or(path, Path::new));
        match name.to_str().filter(|name| !name.contains(char::is_control)) {
            Some(name) => Ok(name.to_owned()),
            None => Err(Error::Source {
                place: path.display().to_string(),
                what: "expected a name in UTF-8 without control characters".to_owned(),
            }),
        }
    }
}

/// A design as it was read: the bytes under its digest are the bytes that are built and packed.
#[derive(Debug)]
pub struct Measured {
    /// The design as text: a line with the format's name, the top module, and sorted lines with its
    /// parameters, macros, and sources, each with the SHA-256 of its content.
    pub manifest: String,
    /// Its files, in compilation order.
    pub sources: Vec<Source>,
}

impl Measured {
    /// SHA-256 of the manifest.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.manifest).into()
    }
}

/// A file of a design: the measured bytes are the bytes that are built.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its path.
    pub path: PathBuf,
    /// Its name in the manifest.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it is compiled; other files are read where another file includes them.
    pub unit: bool,
    /// Whether it has a place in the order of the sources that a user lists.
    listed: bool,
    /// Names by which other files include it: those of a user's list, and names that are longer than
    /// its file name.
    pub spellings: BTreeSet<PathBuf>,
}

type Names = BTreeMap<String, Vec<PathBuf>>;

fn add<'a>(to: &mut Names, names: impl Iterator<Item = &'a str>, path: &Path) {
    for name in names {
        to.entry(name.to_owned()).or_default().push(path.to_path_buf());
    }
}

/// The sources that a user lists, by the names that they declare.
#[derive(Default)]
struct Contents {
    /// Their bytes, which are read once.
    bytes: BTreeMap<PathBuf, Vec<u8>>,
    /// Place of each in the order of compilation.
    place: BTreeMap<PathBuf, usize>,
    declared: Names,
    /// The same of libraries.
    libraries: Names,
    packages: Names,
    macros: Names,
    /// Those that declare nothing.
    unnamed: Vec<PathBuf>,
}

impl Contents {
    fn new(listed: &Listed, set: &SourceSet) -> Result<Self> {
        let mut all = Self::default();
        for (i, path) in listed.files.iter().enumerate() {
            let bytes = read(path, set)?;
            let text = Text::of(&bytes);
            add(&mut all.declared, text.declared.iter().map(|(_, name)| *name), path);
            add(&mut all.packages, text.packages.iter().copied(), path);
            add(&mut all.macros, text.defined.iter().copied(), path);
            if text.declared.is_empty() {
                all.unnamed.push(path.clone());
            }
            all.place.insert(path.clone(), i);
            all.bytes.insert(path.clone(), bytes);
        }
        for path in &listed.libraries {
            let bytes = read(path, set)?;
            let text = Text::of(&bytes);
            add(&mut all.libraries, text.declared.iter().map(|(_, name)| *name), path);
            all.bytes.insert(path.clone(), bytes);
        }
        for folder in &listed.folders {
            let unreadable = |e: std::io::Error| Error::io("cannot list", folder, &e);
            let mut files = std::fs::read_dir(folder)
                .map_err(unreadable)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<std::io::Result<Vec<PathBuf>>>()
                .map_err(unreadable)?;
            files.sort();
            for path in files {
                let known = path.extension().and_then(|x| x.to_str()).is_some_and(|x| {
                    ["v", "sv"].contains(&x) || listed.extensions.iter().any(|own| own == x)
                });
                // The first folder with a name provides the file.
                if known && path.is_file() {
                    all.libraries.entry(stem(&path)).or_insert_with(|| vec![path]);
                }
            }
        }
        for files in all.declared.values_mut().chain(all.macros.values_mut()) {
            files.dedup();
        }
        Ok(all)
    }

    /// The file that declares this name.
    fn find(&self, name: &str) -> Result<Option<&Path>> {
        let Some(files) = self.declared.get(name).or_else(|| self.libraries.get(name)) else {
            return Ok(None);
        };
        match files.as_slice() {
            [first, second, ..] => Err(Error::ambiguous(name, first, second)),
            files => Ok(files.first().map(PathBuf::as_path)),
        }
    }

    /// Puts sources into the order of compilation. A package comes before the files that name it,
    /// also if a pattern named it after them.
    fn ordered(&self, sources: Vec<Source>) -> Vec<Source> {
        fn place(
            contents: &Contents,
            path: &Path,
            left: &mut BTreeMap<PathBuf, Source>,
            out: &mut Vec<Source>,
        ) {
            let Some(source) = left.remove(path) else { return };
            for name in Text::of(&source.bytes).identifiers {
                for package in contents.packages.get(name).into_iter().flatten() {
                    place(contents, package, left, out);
                }
            }
            out.push(source);
        }
        let mut paths: Vec<PathBuf> = sources.iter().map(|source| source.path.clone()).collect();
        paths.sort_by_key(|path| self.place.get(path));
        let mut left = sources.into_iter().map(|source| (source.path.clone(), source)).collect();
        let mut out = Vec::new();
        for path in paths {
            place(self, &path, &mut left, &mut out);
        }
        out
    }
}

/// Sources by name: per folder, where the first folder with a name provides the file, then those
/// that a user lists.
struct Index {
    folders: Vec<BTreeMap<String, Vec<(String, PathBuf)>>>,
    contents: Contents,
    entry: String,
}

impl Index {
    fn new(set: &SourceSet) -> Result<Self> {
        let mut folders = vec![set.named()];
        for dir in set.search.iter().chain(&set.foreign) {
            let mut files = Vec::new();
            walk(dir, &mut files)?;
            folders.push(files);
        }
        let by_name = |files: Vec<PathBuf>| {
            let mut names: BTreeMap<String, Vec<(String, PathBuf)>> = BTreeMap::new();
            for file in files {
                let name = if is_header(&file) { file_name(&file) } else { stem(&file) };
                names.entry(name.to_lowercase()).or_default().push((name, file));
            }
            names
        };
        let contents = match &set.listed {
            Some(listed) => Contents::new(listed, set)?,
            None => Contents::default(),
        };
        let folders = folders.into_iter().map(by_name).collect();
        Ok(Self { folders, contents, entry: set.entry.clone() })
    }

    /// The file of this name. Names that differ only in case are the same on some file systems.
    fn find(&self, name: &str) -> Result<Option<&Path>> {
        let key = name.to_lowercase();
        for files in self.folders.iter().filter_map(|names| names.get(&key)) {
            let Some((_, found)) = files.iter().find(|(own, _)| own == name) else { continue };
            if let Some((_, other)) = files.iter().find(|(_, path)| path != found) {
                return Err(Error::ambiguous(name, found, other));
            }
            return Ok(Some(found));
        }
        self.contents.find(name)
    }

    /// The files of a name that a source uses. Of the files that a user lists, those outside of the
    /// project use only the module that they instantiate.
    fn used(&self, name: &str, in_project: bool) -> Result<Vec<&Path>> {
        let mut files: Vec<&Path> = self.find(name)?.into_iter().collect();
        if in_project {
            let macros = self.contents.macros.get(name).into_iter().flatten();
            files.extend(macros.map(PathBuf::as_path));
        } else if name != self.entry {
            files.retain(|path| {
                !self.contents.place.contains_key(*path)
                    && self.contents.libraries.get(name).is_none_or(|own| own[0] != **path)
            });
        }
        Ok(files)
    }

    /// Checks that no other file has the name of something that this file declares.
    fn owns(&self, name: &str, path: &Path) -> Result<()> {
        match self.find(name)? {
            Some(other) if other != path => Err(Error::ambiguous(name, other, path)),
            _ => Ok(()),
        }
    }

    /// The file that an include directive names.
    fn included(&self, spelling: &Path) -> Result<Option<&Path>> {
        let name = file_name(spelling);
        // A file is known by its full name, or by its stem like any other source.
        for name in [Some(name.as_str()), name.strip_suffix(".sv")].into_iter().flatten() {
            if let Some(path) = self.find(name)?.filter(|path| path.ends_with(spelling)) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

fn file_name(p: &Path) -> String {
    p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The bytes of a source, which must be a regular file: a FIFO or device may not end.
fn read(path: &Path, set: &SourceSet) -> Result<Vec<u8>> {
    if let Some((_, text)) = set.generated.iter().find(|(name, _)| name == path) {
        return Ok(text.clone().into_bytes());
    }
    let failed = |e: std::io::Error| Error::io("cannot read", path, &e);
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(Error::Source {
            place: path.display().to_string(),
            what: "expected a regular file".to_owned(),
        });
    }
    if let Some(project) = set.project_of(path) {
        let (real, folder) =
            (path.canonicalize().map_err(failed)?, project.canonicalize().map_err(failed)?);
        if !real.starts_with(folder) {
            let what = format!(
                "it is a link to {}, outside of the project: copy the file into the project",
                real.display()
            );
            return Err(Error::Source { place: path.display().to_string(), what });
        }
    }
    std::fs::read(path).map_err(failed)
}

/// The files that the sources of a design and its module `top` reach: packages first, each after its
/// dependencies.
fn closure(set: &SourceSet, top: &str) -> Result<Vec<Source>> {
    struct Walk<'a> {
        set: &'a SourceSet,
        index: &'a Index,
        seen: BTreeSet<PathBuf>,
        spellings: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
        /// The file of each spelling in a user's list.
        spelled: BTreeMap<PathBuf, PathBuf>,
        /// Modules and packages, with the files that declare them.
        declared: BTreeMap<String, PathBuf>,
        /// Macros that the files define, with their parameters.
        defined: BTreeSet<String>,
        /// Uses of macros: file, offset and name.
        macros: Vec<(PathBuf, usize, String)>,
        out: Vec<Source>,
    }
    impl Walk<'_> {
        /// The file that an include directive of `path` names.
        fn included(&self, spelling: &Path, path: &Path) -> Result<Option<PathBuf>> {
            let Some(listed) = self.set.listed.as_ref().filter(|l| path.starts_with(&l.root))
            else {
                return Ok(self.index.included(spelling)?.map(Path::to_path_buf));
            };
            let folders = listed.include.iter().map(PathBuf::as_path).chain(path.parent());
            let mut files = folders.map(|folder| folder.join(spelling));
            // Headers of the Shield have no folder in a list.
            match files.find(|file| file.exists()) {
                Some(file) => {
                    Ok(Some(file.canonicalize().map_err(|e| Error::io("cannot read", &file, &e))?))
                }
                None => Ok(self.index.included(spelling)?.map(Path::to_path_buf)),
            }
        }

        fn visit(&mut self, path: &Path) -> Result<()> {
            if !self.seen.insert(path.to_path_buf()) {
                return Ok(());
            }
            let bytes = match self.index.contents.bytes.get(path) {
                Some(bytes) => bytes.clone(),
                None => read(path, self.set)?,
            };
            let text = Text::of(&bytes);
            let foreign = self.set.is_foreign(path);
            if !foreign {
                let project = self.set.project_of(path).is_some();
                // Only the shipped waivers may contain Verilator options in Verilator's own format.
                if path.extension().is_none_or(|x| x != "vlt") {
                    if let Some((at, what)) = text.refused(project) {
                        return Err(Error::at(path, &bytes, at, what));
                    }
                    self.macros.extend(
                        text.macros
                            .iter()
                            .map(|(at, name)| (path.to_path_buf(), *at, (*name).to_owned())),
                    );
                } else if project {
                    return Err(Error::at(
                        path,
                        &bytes,
                        0,
                        "a project has no options of Verilator".to_owned(),
                    ));
                }
                for (_, name) in &text.declared {
                    match self.declared.get(*name) {
                        Some(other) if other != path => {
                            return Err(Error::ambiguous(name, other, path));
                        }
                        _ => self.declared.insert((*name).to_owned(), path.to_path_buf()),
                    };
                    if project {
                        self.index.owns(name, path)?;
                    }
                }
            }
            self.defined.extend(text.defined.iter().map(|name| (*name).to_owned()));
            for (place, name) in &text.includes {
                let found = match spelled(name) {
                    Some(spelling) => self.included(&spelling, path)?.map(|path| (spelling, path)),
                    None => None,
                };
                match found {
                    Some((spelling, path)) => {
                        if self.set.listed.is_some() {
                            let same = self.spelled.entry(spelling.clone()).or_insert(path.clone());
                            if *same != path {
                                let name = spelling.display().to_string();
                                return Err(Error::ambiguous(&name, same, &path));
                            }
                        }
                        if spelling.components().count() > 1 || self.set.listed.is_some() {
                            self.spellings.entry(path.clone()).or_default().insert(spelling);
                        }
                        self.visit(&path)?;
                    }
                    // Foreign sources conditionally include files for other tools.
                    None if foreign => {}
                    None => {
                        let what = match name {
                            Some(name) => {
                                format!(
                                    "`include \"{}\": expected a file of the project, named below its folder",
                                    name.escape_ascii()
                                )
                            }
                            None => "`include: expected the name of a file, not a macro".to_owned(),
                        };
                        return Err(Error::at(path, &bytes, *place, what));
                    }
                }
            }
            let own = self.set.generated.iter().any(|(name, _)| name == path)
                || self.set.project_of(path).is_some();
            for name in &text.identifiers {
                for path in self.index.used(name, own)? {
                    self.visit(path)?;
                }
            }
            let listed = self.index.contents.place.contains_key(path);
            let in_list = self.set.listed.as_ref().is_some_and(|list| path.starts_with(&list.root));
            let library = self.index.contents.libraries.values().any(|files| files[0] == path);
            self.out.push(Source {
                name: self.set.name_of(path)?,
                unit: listed || library || !(in_list || is_header(path)),
                listed,
                path: path.to_path_buf(),
                bytes,
                spellings: BTreeSet::new(),
            });
            Ok(())
        }
    }
    let mut start = set.named();
    let index = Index::new(set)?;
    start.extend(index.contents.unnamed.iter().cloned());
    match index.find(top)? {
        Some(p) => start.push(p.to_path_buf()),
        None if start.is_empty() => {
            let folders = set.search.iter().chain(&set.foreign);
            let searched: Vec<String> = folders.map(|p| p.display().to_string()).collect();
            return Err(Error::SourceMissing {
                module: top.to_owned(),
                searched: searched.join(", "),
            });
        }
        None => {}
    }
    let mut walk = Walk {
        set,
        index: &index,
        seen: BTreeSet::new(),
        spellings: BTreeMap::new(),
        spelled: BTreeMap::new(),
        declared: BTreeMap::new(),
        defined: set.defines.iter().map(|(name, _)| name.clone()).collect(),
        macros: Vec::new(),
        out: Vec::new(),
    };
    for path in &start {
        walk.visit(path)?;
    }
    let Walk { mut spellings, defined, macros, mut out, .. } = walk;
    if let Some((path, at, name)) = macros.iter().find(|(_, _, name)| !defined.contains(name))
        && let Some(source) = out.iter().find(|source| source.path == *path)
    {
        return Err(Error::at(path, &source.bytes, *at, refused_directive(name)));
    }
    for source in &mut out {
        source.spellings = spellings.remove(&source.path).unwrap_or_default();
    }
    out.sort_by_key(|s| !is_package(&s.path)); // stable: keeps the order of use
    let (listed, others): (Vec<Source>, Vec<Source>) = out.into_iter().partition(|s| s.listed);
    let (mut out, modules): (Vec<Source>, Vec<Source>) =
        others.into_iter().partition(|s| is_package(&s.path));
    out.extend(index.contents.ordered(listed));
    out.extend(modules);
    if set.listed.is_some() {
        let mut names: BTreeMap<&str, &Path> = BTreeMap::new();
        for source in &out {
            if let Some(other) = names.insert(&source.name, &source.path) {
                return Err(Error::ambiguous(&source.name, other, &source.path));
            }
        }
    }
    Ok(out)
}

/// Checks a project's design as preprocessed by Verilator: a macro can assemble names that no
/// source shows. `file` finds a source by its name in Verilator's output.
///
/// # Errors
/// A name is declared twice, or something reaches outside of the measured design.
pub fn preprocessed<'a>(
    set: &SourceSet,
    text: &[u8],
    file: impl Fn(&str) -> Option<&'a Path>,
) -> Result<()> {
    let source = |at: usize| {
        let (name, line) = origin(text, at);
        (file(&name).map_or_else(|| PathBuf::from(&name), Path::to_path_buf), line)
    };
    let read = Text::of(text);
    // The preprocessor itself marks the origin of lines.
    let directive = read
        .macros
        .iter()
        .find(|(_, name)| *name != "line")
        .map(|(at, name)| (*at, refused_directive(name)));
    if let Some((at, what)) = read.refused(true).into_iter().chain(directive).min() {
        let (path, line) = source(at);
        return Err(Error::Source { place: format!("{}:{line}", path.display()), what });
    }
    let index = Index::new(set)?;
    let mut declared = BTreeMap::new();
    for (at, name) in read.declared {
        let (path, _) = source(at);
        if set.project_of(&path).is_some() {
            index.owns(name, &path)?;
        }
        if let Some(other) = declared.insert(name, path.clone()) {
            return Err(Error::ambiguous(name, &other, &path));
        }
    }
    Ok(())
}

/// An include's file name below the folders of a design; `None` if it may lead outside, or contains
/// characters that a line of the manifest cannot hold.
fn spelled(name: &Option<&[u8]>) -> Option<PathBuf> {
    let name = std::str::from_utf8((*name)?)
        .ok()
        .filter(|n| n.bytes().all(|b| b.is_ascii_graphic() && b != b'\\'))?;
    let parts = Path::new(name).components().filter(|part| *part != Component::CurDir);
    parts.map(|part| if let Component::Normal(_) = part { Some(part) } else { None }).collect()
}
