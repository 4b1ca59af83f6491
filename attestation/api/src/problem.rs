//! Problem documents.

use serde::{Deserialize, Serialize};

use crate::{Appraisal, Appraised, Revocation};

/// What went wrong, `application/problem+json` (RFC 9457).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// `urn:shef:code:` and the code.
    pub r#type: String,
    /// Summary of the code.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Stable code.
    #[cfg_attr(feature = "schema", schema(pattern = "^SHEF-[A-Z]{3}-[0-9]{3}$"))]
    pub code: String,
    /// The expected and the actual value.
    pub detail: String,
    /// What was found about evidence.
    #[serde(flatten)]
    pub finding: Finding,
}

/// What a refusal says about evidence.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Every check.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub appraisal: Option<Appraisal>,
    /// Revocations that the evidence falls under.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub revocations: Option<Vec<Revocation>>,
    /// Id of the record, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub appraisal_id: Option<String>,
    /// EAR as JWT.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub result: Option<String>,
    /// The appraisal again, if the same evidence was submitted for the same challenge before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub kept: Option<Appraised>,
}
