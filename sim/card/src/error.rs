//! Errors of the simulated card.

use shef_proto::code::Code;

/// Why a simulated card did not start or went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// Building, loading or driving the RTL.
    #[error(transparent)]
    Rtl(#[from] shef_rtl::Error),
    /// The boot code stopped.
    #[error("boot: {0}")]
    Boot(#[from] shef_kernel::BootError),
    /// The design does not do what the card needs.
    #[error("design: {what}")]
    Design {
        /// What is wrong.
        what: String,
    },
    /// The configuration of the model cannot be read.
    #[error("configuration: {what}")]
    Config {
        /// What is wrong.
        what: String,
    },
}

impl CardError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rtl(error) => error.code(),
            Self::Boot(error) => error.code(),
            Self::Design { .. } => "SHEF-CARD-001",
            Self::Config { .. } => "SHEF-CARD-002",
        }
    }
}

impl From<CardError> for shef_device::DeviceError {
    fn from(error: CardError) -> Self {
        Self::Simulator { code: error.code(), message: error.to_string() }
    }
}

/// Codes of this crate.
pub const CODES: &[Code] = &[
    Code::new("SHEF-CARD-001", "the simulated design does not do what the card needs", "it was changed or built from other sources: rebuild it, and compare with shell-rtl/shell/sim"),
    Code::new("SHEF-CARD-002", "the simulated card has no valid configuration", "check shell-rtl/accel/digits/shield.toml with `cargo xtask generate`"),
];

/// Codes of crate `shef-rtl`.
pub(crate) const RTL_CODES: &[Code] = &[
    Code::new("SHEF-RTL-001", "no Verilator", "run `cargo xtask setup`, or set SHEF_VERILATOR to a Verilator of 5.006 or newer"),
    Code::new("SHEF-RTL-002", "Verilator too old", "5.006 or newer is needed: run `cargo xtask setup`, or set SHEF_VERILATOR to another one"),
    Code::new("SHEF-RTL-003", "no C++ compiler", "apt-get install g++, or set CXX"),
    Code::new("SHEF-RTL-004", "a source of the design is missing", "the repository is incomplete: `git status` shows what was deleted; SHEF_ROOT names another one"),
    Code::new("SHEF-RTL-005", "Verilator refused the RTL", "the log that the message names shows line and reason"),
    Code::new("SHEF-RTL-006", "the generated C++ does not compile", "the log that the message names shows why; a full disk is a frequent reason (`df -h`)"),
    Code::new("SHEF-RTL-007", "waves need two libraries", "apt-get install liblz4-dev zlib1g-dev"),
    Code::new("SHEF-RTL-008", "the design was built without waves", "this is a defect of the program, please report it"),
    Code::new("SHEF-RTL-009", "a port has a form that is not supported", "ports of a top module are plain vectors"),
    Code::new("SHEF-RTL-010", "the top module lacks a port", "compare its ports with those of shell-rtl/shell/sim"),
    Code::new("SHEF-RTL-011", "a port has another width", "compare its ports with those of shell-rtl/shell/sim"),
    Code::new("SHEF-RTL-012", "the compiled design cannot be loaded", "remove the folder target/verilated and run the command again"),
    Code::new("SHEF-RTL-013", "the file system refused", "check permissions and free space (`df -h`), then run the command again"),
    Code::new("SHEF-RTL-014", "the simulated design hangs", "this is a defect of the design, please report it with --wave FILE.fst"),
];
