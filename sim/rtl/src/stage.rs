//! The measured bytes as files in a folder, which is all that Verilator reads of a design.

use crate::toolchain::target_dir;
use crate::{DesignSpec, Error, Result};
use shef_project::{Source, repo_root};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Folder for sources from outside the repository.
const OUTSIDE: &str = "outside";
/// Folder for headers by the names that include them.
const INCLUDE: &str = "include";

/// One file of a design, as staged for Verilator.
struct Staged {
    source: Source,
    /// Path below Verilator's working folder: as below the repository, or `outside/` and the name in
    /// the manifest (which is unique in a design).
    name: PathBuf,
    /// Read as in synthesis.
    foreign: bool,
}

/// The files of a design.
pub(crate) struct Stage(Vec<Staged>);

impl Stage {
    /// Names that do not depend on the paths of the repository and of generated packages: a copied
    /// checkout finds the results of another.
    pub(crate) fn new(spec: &DesignSpec, sources: Vec<Source>) -> Self {
        let (root, target) = (repo_root(), target_dir());
        let name = |source: &Source| {
            let path = &source.path;
            let below = path.strip_prefix(&root).ok().filter(|_| !path.starts_with(&target));
            below.map_or_else(|| Path::new(OUTSIDE).join(&source.name), Path::to_path_buf)
        };
        let staged = sources.into_iter().map(|source| Staged {
            name: name(&source),
            foreign: spec.sources.is_foreign(&source.path),
            source,
        });
        Self(staged.collect())
    }

    /// Names of the files, and whether each is read as in synthesis.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.0.iter().map(|s| (s.name.as_path(), s.foreign))
    }

    /// Writes the measured bytes below `folder`.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        for s in &self.0 {
            let bytes = &s.source.bytes;
            let has = |word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
            // Only in modules and packages: an included file would undefine the macro for its
            // includer.
            let text = if s.foreign && (has(b"\nendmodule") || has(b"\nendpackage")) {
                let line = format!("`define SYNTHESIS\n`line 1 \"{}\" 0\n", s.name.display());
                [line.as_bytes(), bytes, b"\n`undef SYNTHESIS\n"].concat()
            } else {
                bytes.clone()
            };
            let spelled =
                s.source.spellings.iter().map(|spelling| Path::new(INCLUDE).join(spelling));
            for name in [s.name.clone()].into_iter().chain(spelled) {
                let to = folder.join(name);
                let parent = to.parent().unwrap_or(folder);
                fs::create_dir_all(parent).map_err(|e| Error::io("cannot create", parent, &e))?;
                fs::write(&to, &text).map_err(|e| Error::io("cannot write", &to, &e))?;
            }
        }
        Ok(())
    }

    /// Verilator's arguments for headers and sources, in its working folder.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let headers = self.0.iter().filter(|s| !s.source.unit);
        let folders: BTreeSet<&Path> = headers.filter_map(|s| s.name.parent()).collect();
        // A spelling names one header; a name may be that of several.
        let folders = [Path::new(INCLUDE)].into_iter().chain(folders);
        let folders = folders.map(|f| format!("+incdir+{}", f.display()).into());
        let units = self.0.iter().filter(|s| s.source.unit).map(|s| s.name.clone().into());
        folders.chain(units).collect()
    }

    /// The original path of a file, by the name that Verilator prints.
    pub(crate) fn original(&self, name: &str) -> Option<&Path> {
        let name = Path::new(name);
        let is = |s: &&Staged| {
            s.name == name
                || name.strip_prefix(INCLUDE).is_ok_and(|n| s.source.spellings.contains(n))
        };
        self.0.iter().find(is).map(|s| s.source.path.as_path())
    }

    fn outside(&self) -> impl Iterator<Item = &Staged> {
        self.0.iter().filter(|s| s.name.starts_with(OUTSIDE))
    }

    /// Name of the folder of an external configuration.
    pub(crate) fn folder(&self) -> Option<String> {
        let folder = self.outside().next().and_then(|s| s.source.path.parent()?.file_name());
        folder.map(|name| name.to_string_lossy().into_owned())
    }

    /// Restores the original path of files from outside the repository in messages.
    pub(crate) fn name_outside(&self, log: &Path) -> Result<()> {
        let text = fs::read(log).map_err(|e| Error::io("cannot read", log, &e))?;
        let mut text = String::from_utf8_lossy(&text).into_owned();
        for s in self.outside() {
            text =
                text.replace(&s.name.display().to_string(), &s.source.path.display().to_string());
        }
        fs::write(log, text).map_err(|e| Error::io("cannot write", log, &e))
    }
}
