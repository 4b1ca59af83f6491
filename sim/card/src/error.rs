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
    /// The folder of a design of one's own lacks something.
    #[error("project {}: {what}", dir.display())]
    Project {
        /// The folder.
        dir: std::path::PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The `shield.toml` of a design of one's own is wrong.
    #[error("{}:{error}", file.display())]
    Shield {
        /// The file.
        file: std::path::PathBuf,
        /// What is wrong, with its place.
        error: shef_gen::shield::ShieldError,
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
            Self::Project { .. } => "SHEF-CARD-003",
            Self::Shield { error, .. } => error.code(),
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
    Code::new(
        "SHEF-CARD-001",
        "the simulated design does not do what the card needs",
        "it was changed or built from other sources: rebuild it, and compare with shell-rtl/shell/sim",
    ),
    Code::new(
        "SHEF-CARD-002",
        "the simulated card has no valid configuration",
        "check shell-rtl/accel/digits/shield.toml with `cargo xtask generate`",
    ),
    Code::new(
        "SHEF-CARD-003",
        "the folder of a design of your own lacks something",
        "sim:rtl?project=DIR needs DIR/shield.toml and a module shef_accel in DIR/shef_accel.sv; docs/how-to/your-accelerator.md shows how",
    ),
];
