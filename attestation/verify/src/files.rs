//! Errors in the files of an appraisal, and the id of a policy.

use sha2::{Digest, Sha256};

shef_proto::coded! {
    /// An unusable policy, reference values, anchors or revocation list.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum PolicyError {
        /// The policy.
        #[error("policy: {text}")]
        Policy {
            /// The problem and its place.
            text: String,
        } = "SHEF-ATT-050": "policy file is not valid",
            "The policy is not TOML of this form; the text names the line. docs/reference/evidence.md lists the keys.",
        /// The reference values.
        #[error("reference values: {text}")]
        Reference {
            /// The problem and its place.
            text: String,
        } = "SHEF-ATT-051": "reference values are not valid",
            "The file of reference values is not TOML or JSON of this form; the text names the place.",
        /// A trust anchor.
        #[error("trust anchor {name:?}: {text}")]
        Anchor {
            /// Its name.
            name: String,
            /// The problem.
            text: String,
        } = "SHEF-ATT-052": "trust anchor is not valid",
            "The certificate is not a self-signed P-256 root that may issue DeviceID certificates.",
        /// A policy in Rego.
        #[error("Rego policy: {text}")]
        Rego {
            /// The problem and its place.
            text: String,
        } = "SHEF-ATT-053": "Rego policy is not valid",
            "The text is not Rego of package shef with a rule allow, it is too long, or it calls a function that policies may not call; \
             the text names line and column, or the function. docs/reference/evidence.md lists the functions.",
        /// A revocation list.
        #[error("revocation list: {text}")]
        Revocation {
            /// The problem and its place.
            text: String,
        } = "SHEF-ATT-054": "revocation list is not valid",
            "The list is not TOML of this form; the text names line and column. docs/reference/evidence.md lists the keys.",
    }
}

/// Id of a policy: `sha256:` and the SHA-256 of its text in hexadecimal.
#[must_use]
pub fn policy_id(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text)))
}
