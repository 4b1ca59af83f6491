//! Revocations.

use serde::{Deserialize, Serialize};

/// All revocations.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Revocations {
    /// Raised with every change of the collateral.
    pub generation: u64,
    /// All of them.
    pub revocations: Vec<Revocation>,
}

/// A revocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Revocation {
    /// Kind of the subject: device, serial, certificate, authority, kernel, shell, image or vendor.
    pub kind: String,
    /// The subject, hexadecimal in lower case without separators and leading zeros.
    pub value: String,
    /// The reason.
    pub reason: String,
    /// When it was added.
    pub created: i64,
}

/// A subject to revoke.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRevocation {
    /// Kind of the subject: device, serial, certificate, authority, kernel, shell, image or vendor.
    pub kind: String,
    /// The subject, hexadecimal.
    pub value: String,
    /// The reason, 1 to 256 characters.
    pub reason: String,
}

/// The revocation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddedRevocation {
    /// Kind of the subject.
    pub kind: String,
    /// Canonical spelling of the subject.
    pub value: String,
    /// Whether anchors, reference values or the newest 256 appraisals hold it.
    pub known: bool,
}
