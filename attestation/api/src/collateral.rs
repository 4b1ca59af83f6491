//! Trust anchors, reference values, policies.

use serde::{Deserialize, Serialize};

use crate::{Check, Verdict};

/// All trust anchors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Anchors {
    /// Raised with every change of the collateral.
    pub generation: u64,
    /// All of them.
    pub trust_anchors: Vec<Anchor>,
}

/// A manufacturer's root.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Anchor {
    /// Name.
    pub name: String,
    /// Root of trust: shef-boot, board, provider or simulated.
    pub kind: String,
    /// For devices in debug mode.
    pub debug: bool,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// SHA-256 of its public key, which revokes it; empty if it cannot be read.
    pub authority: String,
    /// DER, base64url.
    pub certificate: String,
    /// When it was added.
    pub created: i64,
}

/// A root to register.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewAnchor {
    /// Name.
    pub name: String,
    /// Root of trust: shef-boot, board, provider or simulated.
    pub kind: String,
    /// For devices in debug mode.
    #[serde(default)]
    pub debug: bool,
    /// DER in base64, or PEM.
    pub certificate: String,
}

/// The registered root.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddedAnchor {
    /// Name.
    pub name: String,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

/// All signers of CoRIMs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Signers {
    /// Raised with every change of the collateral.
    pub generation: u64,
    /// All of them.
    pub signers: Vec<Signer>,
}

/// A signer of CoRIMs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Signer {
    /// Name.
    pub name: String,
    /// Its entry in TOML.
    pub signer: String,
    /// When it was added.
    pub created: i64,
}

/// The signer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddedSigner {
    /// Name.
    pub name: String,
}

/// All reference values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Corims {
    /// Raised with every change of the collateral.
    pub generation: u64,
    /// All of them.
    pub corims: Vec<Corim>,
}

/// Reference values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Corim {
    /// Their id.
    pub id: String,
    /// Media type of the content.
    pub media_type: String,
    /// Whether they count.
    pub active: bool,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// Size of the content.
    pub bytes: u64,
    /// When it was added.
    pub created: i64,
}

/// The reference values that were added.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddedCorim {
    /// Their id.
    pub id: String,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// How many they are.
    pub reference_values: Counts,
}

/// Numbers of reference values.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Counts {
    /// Kernels.
    pub kernels: u64,
    /// Shells.
    pub shells: u64,
    /// Images.
    pub images: u64,
}

/// All policies.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policies {
    /// Raised with every change of the collateral.
    pub generation: u64,
    /// All versions.
    pub policies: Vec<Policy>,
}

/// A version of a policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policy {
    /// Name.
    pub name: String,
    /// Version, from 1.
    pub version: u64,
    /// Media type of the text.
    pub media_type: String,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// When it was added.
    pub created: i64,
}

/// The version of the policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddedPolicy {
    /// Name.
    pub name: String,
    /// Its number; that of the newest version if the text is the same.
    pub version: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

/// Recorded evidence under another policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DryRun {
    /// Records that were appraised.
    pub held: u64,
    /// Accepted ones.
    pub accepted: u64,
    /// Denied ones.
    pub denied: u64,
    /// Records whose verdict would change.
    pub changes: Vec<Change>,
}

/// A record whose verdict would change.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Change {
    /// Id of the record, hexadecimal.
    pub appraisal_id: String,
    /// Identity in the evidence, hexadecimal.
    pub ueid: String,
    /// Time of the appraisal.
    pub time: i64,
    /// The recorded verdict.
    pub was: Verdict,
    /// The verdict under this policy.
    pub would_be: Verdict,
    /// Checks that failed.
    pub failed: Vec<Check>,
}
