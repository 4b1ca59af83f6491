//! Errors of building, loading and driving a design.

/// What went wrong, by who must act.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No Verilator where one was looked for.
    #[error("no Verilator: {0}")]
    VerilatorMissing(String),
    /// The Verilator found is older than 5.006.
    #[error("Verilator at {path} is too old: {version}, needed 5.006 or newer")]
    VerilatorTooOld {
        /// Program that was asked.
        path: String,
        /// What it answered.
        version: String,
    },
    /// No C++ compiler.
    #[error("C++ compiler {0} cannot be started: install g++ (apt-get install g++) or set CXX")]
    CompilerMissing(String),
    /// A top module or a named source does not exist.
    #[error("no source for module {module}: looked for {module}.sv in {searched}")]
    SourceMissing {
        /// Module or package.
        module: String,
        /// Folders looked in.
        searched: String,
    },
    /// Verilator refused the RTL.
    #[error("Verilator refused {top} (log: {log}):\n{tail}")]
    Verilate {
        /// Top module.
        top: String,
        /// Path of the full log.
        log: String,
        /// Its last lines.
        tail: String,
    },
    /// g++ refused the generated C++.
    #[error("compiling {top} failed (log: {log}):\n{tail}")]
    Compile {
        /// Top module.
        top: String,
        /// Path of the full log.
        log: String,
        /// Its last lines.
        tail: String,
    },
    /// Waves were asked for and their libraries are missing.
    #[error("waves need lz4 and zlib: apt-get install liblz4-dev zlib1g-dev")]
    TraceLibraries,
    /// The design was built without waves.
    #[error("design {0} was built without waves: set DesignSpec::trace")]
    TraceOff(String),
    /// A port of the top module has a form that is not supported (unpacked array).
    #[error("port of {top} has a form that is not supported: {port}")]
    PortForm {
        /// Top module.
        top: String,
        /// Declaration in the generated header.
        port: String,
    },
    /// The top module has no such port.
    #[error("{top} has no port {port}")]
    NoPort {
        /// Top module.
        top: String,
        /// Name asked for.
        port: String,
    },
    /// A port exists with another width than the agent needs.
    #[error("port {port} of {top} is {actual} bits wide, expected {expected}")]
    PortWidth {
        /// Top module.
        top: String,
        /// Name of the port.
        port: String,
        /// Width in bits.
        actual: u32,
        /// Width needed in bits.
        expected: u32,
    },
    /// The compiled model cannot be loaded.
    #[error("cannot load {path}: {reason}")]
    Load {
        /// Path of the shared object.
        path: String,
        /// The loader's words.
        reason: String,
    },
    /// The file system refused.
    #[error("{what} {path}: {reason}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// The design did not do what was waited for.
    #[error("{what}: nothing happened in {cycles} cycles")]
    Hang {
        /// What was waited for.
        what: &'static str,
        /// For how many cycles.
        cycles: u64,
    },
}

impl Error {
    /// Stable code of this error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::VerilatorMissing(_) => "SHEF-RTL-001",
            Self::VerilatorTooOld { .. } => "SHEF-RTL-002",
            Self::CompilerMissing(_) => "SHEF-RTL-003",
            Self::SourceMissing { .. } => "SHEF-RTL-004",
            Self::Verilate { .. } => "SHEF-RTL-005",
            Self::Compile { .. } => "SHEF-RTL-006",
            Self::TraceLibraries => "SHEF-RTL-007",
            Self::TraceOff(_) => "SHEF-RTL-008",
            Self::PortForm { .. } => "SHEF-RTL-009",
            Self::NoPort { .. } => "SHEF-RTL-010",
            Self::PortWidth { .. } => "SHEF-RTL-011",
            Self::Load { .. } => "SHEF-RTL-012",
            Self::Io { .. } => "SHEF-RTL-013",
            Self::Hang { .. } => "SHEF-RTL-014",
        }
    }

    pub(crate) fn io(what: &'static str, path: &std::path::Path, e: &std::io::Error) -> Self {
        Self::Io {
            what,
            path: path.display().to_string(),
            reason: e.to_string(),
        }
    }
}
