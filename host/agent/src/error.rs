//! Errors of the agent's program.

use std::path::Path;

use shef_device::DeviceError;
use shef_remote::wire::codes;

/// Why the agent does not start, or stops.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The configuration is wrong.
    #[error("{message}")]
    Config {
        /// What is wrong, and where.
        message: String,
    },
    /// A file cannot be read or written.
    #[error("{message}")]
    Files {
        /// Which file, and why.
        message: String,
    },
    /// The agent cannot listen on the address, or cannot set up TLS.
    #[error("{message}")]
    Listen {
        /// Why.
        message: String,
    },
    /// Certificates, keys, devices, other agents.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl AgentError {
    /// Stable code.
    pub fn code(&self) -> &str {
        match self {
            Self::Config { .. } => codes::CONFIG,
            Self::Files { .. } => codes::FILES,
            Self::Listen { .. } => codes::LISTEN,
            Self::Device(error) => error.code(),
        }
    }

    /// Exit status of a program that ends with this error, as in `shef`: 5 if its user or the
    /// operator has to correct something, 4 for a device, the path to it, or an address.
    pub fn exit(&self) -> u8 {
        match self {
            Self::Config { .. } | Self::Files { .. } => 5,
            Self::Device(error)
                if [codes::TLS_FILES, codes::NO_DEVICE, codes::NOT_ALLOWED]
                    .contains(&error.code()) =>
            {
                5
            }
            Self::Listen { .. } | Self::Device(_) => 4,
        }
    }

    pub(crate) fn file(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Self {
        Self::Files { message: format!("cannot {what} {}: {error}", path.display()) }
    }
}
