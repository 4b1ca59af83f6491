//! The files that an appraisal is given: what is wrong with one, and the id of a policy.

use sha2::{Digest, Sha256};

/// Policy, reference values or anchors that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The policy.
    #[error("policy: {text}")]
    Policy {
        /// What and where.
        text: String,
    },
    /// The reference values.
    #[error("reference values: {text}")]
    Reference {
        /// What and where.
        text: String,
    },
    /// A policy in Rego.
    #[error("Rego policy: {text}")]
    Rego {
        /// What and where.
        text: String,
    },
    /// A revocation list.
    #[error("revocation list: {text}")]
    Revocation {
        /// What and where.
        text: String,
    },
    /// A trust anchor.
    #[error("trust anchor {name:?}: {text}")]
    Anchor {
        /// Its name.
        name: String,
        /// What is wrong.
        text: String,
    },
}

impl PolicyError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Policy { .. } => "SHEF-ATT-050",
            Self::Reference { .. } => "SHEF-ATT-051",
            Self::Anchor { .. } => "SHEF-ATT-052",
            Self::Rego { .. } => "SHEF-ATT-053",
            Self::Revocation { .. } => "SHEF-ATT-054",
        }
    }
}

/// Id of a policy: `sha256:` and the SHA-256 of its text in hexadecimal.
#[must_use]
pub fn policy_id(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text)))
}
