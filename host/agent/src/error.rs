//! Errors of the agent's program.

use std::path::Path;

use shef_device::DeviceError;
use shef_proto::fault::Coded;
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

    pub(crate) fn file(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Self {
        Self::Files { message: format!("cannot {what} {}: {error}", path.display()) }
    }
}

impl Coded for AgentError {
    fn code(&self) -> &str {
        self.code()
    }
}
