//! The description of a design to build.

use shef_project::SourceSet;
use std::path::Path;

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
    /// Its sources.
    pub sources: SourceSet,
    /// Optimisation.
    pub profile: Profile,
    /// Whether waves (FST) can be written.
    pub trace: bool,
    /// Whether coverage is counted: lines, and `cover property` statements
    /// ([`crate::Sim::write_coverage`]).
    pub coverage: bool,
    /// Whether registers and memories can begin with random contents
    /// ([`crate::Sim::with_contents`]). This is another build: its code sets every variable at the
    /// start, and those of functions at each call, which costs time also while they begin with
    /// zeros. The seed is that of the instance.
    pub random_contents: bool,
    /// Whether the state can be saved and restored ([`crate::Snapshot`]).
    pub savable: bool,
    /// Warnings.
    pub lint: Lint,
}

impl From<SourceSet> for DesignSpec {
    /// A design of these sources, for short builds, without waves, coverage and snapshots.
    fn from(sources: SourceSet) -> Self {
        Self {
            sources,
            profile: Profile::Quick,
            trace: false,
            coverage: false,
            random_contents: false,
            savable: false,
            lint: Lint::Log,
        }
    }
}

impl DesignSpec {
    /// A design with only a top module.
    #[must_use]
    pub fn new(top: &str) -> Self {
        SourceSet::new(top).into()
    }

    fn with(self, change: impl FnOnce(SourceSet) -> SourceSet) -> Self {
        Self { sources: change(self.sources), ..self }
    }

    /// [`SourceSet::source`].
    #[must_use]
    pub fn source(self, p: impl AsRef<Path>) -> Self {
        self.with(|sources| sources.source(p))
    }

    /// [`SourceSet::search`].
    #[must_use]
    pub fn search(self, p: impl AsRef<Path>) -> Self {
        self.with(|sources| sources.search(p))
    }

    /// [`SourceSet::project`].
    #[must_use]
    pub fn project(self, p: impl AsRef<Path>) -> Self {
        self.with(|sources| sources.project(p))
    }

    /// [`SourceSet::foreign`].
    #[must_use]
    pub fn foreign(self, p: impl AsRef<Path>) -> Self {
        self.with(|sources| sources.foreign(p))
    }

    /// [`SourceSet::param`].
    #[must_use]
    pub fn param(self, name: &str, value: impl ToString) -> Self {
        self.with(|sources| sources.param(name, value))
    }

    /// [`SourceSet::define`].
    #[must_use]
    pub fn define(self, name: &str, value: &str) -> Self {
        self.with(|sources| sources.define(name, value))
    }

    /// [`SourceSet::measure_below`].
    #[must_use]
    pub fn measure_below(self, module: &str) -> Self {
        self.with(|sources| sources.measure_below(module))
    }

    /// [`SourceSet::digest`].
    ///
    /// # Errors
    /// As [`SourceSet::measure`].
    pub fn digest(&self) -> crate::Result<[u8; 32]> {
        Ok(self.sources.digest()?)
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

    /// Makes random contents possible.
    #[must_use]
    pub fn random_contents(mut self) -> Self {
        self.random_contents = true;
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
}
