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
];
