//! The description of a design to build.

use crate::toolchain::repo_root;
use std::path::{Path, PathBuf};

/// Optimisation of the C++ code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// `-O1`: short builds, for tests of small blocks.
    #[default]
    Quick,
    /// `-O3 -march=native`: for long runs. The compiler takes twice as long, the simulation 10 to
    /// 30 % less.
    Fast,
}

/// Treatment of Verilator's warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Lint {
    /// Warnings go to the build log.
    #[default]
    Log,
    /// `-Wall`, and a warning stops the build.
    Deny,
}

/// A design to build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DesignSpec {
    /// Top module.
    pub top: String,
    /// Files that the caller names; `search` finds further ones.
    pub sources: Vec<PathBuf>,
    /// Folders whose `*.sv` files (recursively) belong to the design if it uses their names;
    /// earlier folders win.
    pub search: Vec<PathBuf>,
    /// Folders of third-party RTL, searched last and read as in synthesis, with the macro
    /// `SYNTHESIS`.
    pub foreign: Vec<PathBuf>,
    /// Folders of users' RTL, which are searched as well; their files must not read anything
    /// outside of them.
    pub projects: Vec<PathBuf>,
    /// Parameters of the top module (`-G`).
    pub params: Vec<(String, String)>,
    /// Macros (`+define+`).
    pub defines: Vec<(String, String)>,
    /// Optimisation.
    pub profile: Profile,
    /// Whether waves (FST) can be written.
    pub trace: bool,
    /// Whether coverage is counted: lines, and `cover property` statements
    /// ([`crate::Sim::write_coverage`]).
    pub coverage: bool,
    /// Whether the state can be saved and restored ([`crate::Snapshot`]).
    pub savable: bool,
    /// Warnings.
    pub lint: Lint,
    /// The module that is measured, with everything below it, if not the top module.
    pub measured: Option<String>,
}

impl DesignSpec {
    /// A design with only a top module.
    #[must_use]
    pub fn new(top: &str) -> Self {
        Self {
            top: top.to_owned(),
            sources: Vec::new(),
            search: Vec::new(),
            foreign: Vec::new(),
            projects: Vec::new(),
            params: Vec::new(),
            defines: Vec::new(),
            profile: Profile::Quick,
            trace: false,
            coverage: false,
            savable: false,
            lint: Lint::Log,
            measured: None,
        }
    }

    /// Adds a source file (relative paths: below the repository).
    #[must_use]
    pub fn source(mut self, p: impl AsRef<Path>) -> Self {
        self.sources.push(repo_root().join(p));
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

    /// Adds a folder of third-party RTL.
    #[must_use]
    pub fn foreign(mut self, p: impl AsRef<Path>) -> Self {
        self.foreign.push(repo_root().join(p));
        self
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

    /// Optimises for long runs.
    #[must_use]
    pub fn fast(mut self) -> Self {
        self.profile = Profile::Fast;
        self
    }

    /// Makes waves possible.
    #[must_use]
    pub fn trace(mut self) -> Self {
        self.trace = true;
        self
    }

    /// Makes snapshots possible.
    #[must_use]
    pub fn savable(mut self) -> Self {
        self.savable = true;
        self
    }

    /// Counts coverage.
    #[must_use]
    pub fn coverage(mut self) -> Self {
        self.coverage = true;
        self
    }

    /// Stops on warnings.
    #[must_use]
    pub fn deny_warnings(mut self) -> Self {
        self.lint = Lint::Deny;
        self
    }

    pub(crate) fn is_foreign(&self, path: &Path) -> bool {
        self.foreign.iter().any(|folder| path.starts_with(folder))
    }

    /// The user's folder that contains a source.
    pub(crate) fn project_of(&self, path: &Path) -> Option<&Path> {
        self.projects.iter().map(PathBuf::as_path).find(|folder| path.starts_with(folder))
    }
}
