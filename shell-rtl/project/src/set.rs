//! The description of a design's sources.

use crate::repo_root;
use std::path::{Path, PathBuf};

/// Sources that a user lists, instead of a folder to search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Canonical path of the project's folder, which contains all of them.
    pub root: PathBuf,
    /// Sources in the order of compilation. A file belongs to the design if the design uses a name
    /// that it declares, or if it declares nothing.
    pub files: Vec<PathBuf>,
    /// Sources for names that `files` do not declare (`-v`).
    pub libraries: Vec<PathBuf>,
    /// Folders with such sources, by file name (`-y`).
    pub folders: Vec<PathBuf>,
    /// Extensions of files in `folders`, besides `v` and `sv` (`+libext+`).
    pub extensions: Vec<String>,
    /// Folders of headers; the first that has a header provides it.
    pub include: Vec<PathBuf>,
}

/// The sources of a design: a top module, and where its files are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SourceSet {
    /// Top module.
    pub top: String,
    /// Files that the caller names; `search` finds further ones.
    pub files: Vec<PathBuf>,
    /// Sources that are generated, by file name.
    pub generated: Vec<(PathBuf, String)>,
    /// Folders whose `*.sv` files (recursively) belong to the design if it uses their names;
    /// earlier folders win.
    pub search: Vec<PathBuf>,
    /// Folders of third-party RTL, searched last and read as in synthesis, with the macro
    /// `SYNTHESIS`.
    pub foreign: Vec<PathBuf>,
    /// Folders of users' RTL, which are searched as well; their files must not read anything
    /// outside of them.
    pub projects: Vec<PathBuf>,
    /// The sources that a user lists. Other files name only the module `entry` of them.
    pub listed: Option<Listed>,
    /// The module of a user's project that files outside of it instantiate.
    pub entry: String,
    /// Parameters of the top module (`-G`).
    pub params: Vec<(String, String)>,
    /// Macros (`+define+`).
    pub defines: Vec<(String, String)>,
    /// The module that is measured, with everything below it, if not the top module.
    pub measured: Option<String>,
}

impl SourceSet {
    /// A design with only a top module.
    #[must_use]
    pub fn new(top: &str) -> Self {
        Self {
            top: top.to_owned(),
            files: Vec::new(),
            generated: Vec::new(),
            search: Vec::new(),
            foreign: Vec::new(),
            projects: Vec::new(),
            listed: None,
            entry: String::new(),
            params: Vec::new(),
            defines: Vec::new(),
            measured: None,
        }
    }

    /// Adds a source file (relative paths: below the repository).
    #[must_use]
    pub fn source(mut self, p: impl AsRef<Path>) -> Self {
        self.files.push(repo_root().join(p));
        self
    }

    /// Adds a generated source with this file name.
    #[must_use]
    pub fn generated(mut self, name: &str, text: String) -> Self {
        self.generated.push((PathBuf::from(name), text));
        self
    }

    /// Adds a folder to look modules and packages up in (relative paths: below the repository).
    #[must_use]
    pub fn search(mut self, p: impl AsRef<Path>) -> Self {
        self.search.push(repo_root().join(p));
        self
    }

    /// Adds a user's folder to look modules and packages up in.
    #[must_use]
    pub fn project(mut self, p: impl AsRef<Path>) -> Self {
        self.projects.push(p.as_ref().to_owned());
        self.search(p)
    }

    /// Adds the sources that a user lists; files outside of the project instantiate `entry` of them.
    #[must_use]
    pub fn listed(mut self, listed: Listed, entry: &str) -> Self {
        self.projects.push(listed.root.clone());
        self.listed = Some(listed);
        entry.clone_into(&mut self.entry);
        self
    }

    /// Adds a folder of third-party RTL.
    #[must_use]
    pub fn foreign(mut self, p: impl AsRef<Path>) -> Self {
        self.foreign.push(repo_root().join(p));
        self
    }

    /// Adds the sources of the Security Kernel's processor.
    ///
    /// # Errors
    /// [`Error::IbexMissing`](crate::Error::IbexMissing).
    pub fn with_kernel(self) -> crate::Result<Self> {
        let ibex = crate::ibex()?;
        let folders = ["rtl", "vendor/lowrisc_ip/ip/prim/rtl", "vendor/lowrisc_ip/dv/sv/dv_utils"];
        Ok(folders.iter().fold(self, |set, folder| set.foreign(ibex.join(folder))))
    }

    /// Sets a parameter of the top module.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.params.push((name.to_owned(), value.to_string()));
        self
    }

    /// Defines a macro.
    #[must_use]
    pub fn define(mut self, name: &str, value: &str) -> Self {
        self.defines.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Measures `module` and everything below it, not the shell around it.
    #[must_use]
    pub fn measure_below(mut self, module: &str) -> Self {
        self.measured = Some(module.to_owned());
        self
    }

    /// The files that the caller names, then the generated ones.
    pub(crate) fn named(&self) -> Vec<PathBuf> {
        self.files.iter().chain(self.generated.iter().map(|(name, _)| name)).cloned().collect()
    }

    /// Whether a source is third-party RTL.
    #[must_use]
    pub fn is_foreign(&self, path: &Path) -> bool {
        self.foreign.iter().any(|folder| path.starts_with(folder))
    }

    /// The user's folder that contains a source.
    pub(crate) fn project_of(&self, path: &Path) -> Option<&Path> {
        self.projects.iter().map(PathBuf::as_path).find(|folder| path.starts_with(folder))
    }
}
