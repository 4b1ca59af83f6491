//! Challenges and appraisals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shef_proto::evidence;

use crate::Revocation;

/// The layer that makes evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The Security Kernel.
    Kernel,
    /// A loaded Shield.
    Shield,
}

impl From<evidence::Layer> for Layer {
    fn from(layer: evidence::Layer) -> Self {
        match layer {
            evidence::Layer::Kernel => Self::Kernel,
            evidence::Layer::Shield => Self::Shield,
        }
    }
}

impl From<Layer> for evidence::Layer {
    fn from(layer: Layer) -> Self {
        match layer {
            Layer::Kernel => Self::Kernel,
            Layer::Shield => Self::Shield,
        }
    }
}

/// A verdict on evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check passed.
    Accepted,
    /// At least one check failed.
    Denied,
}

impl Verdict {
    /// The verdict on evidence that is accepted, or not.
    #[must_use]
    pub fn of(accepted: bool) -> Self {
        if accepted { Self::Accepted } else { Self::Denied }
    }

    /// `accepted` or `denied`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Denied => "denied",
        }
    }
}

/// Asks for a challenge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSession {
    /// Layer whose evidence will answer it.
    pub layer: Layer,
    /// The owner's one-time key that data keys go to: a point, base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
}

/// A challenge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Session {
    /// Signed token; nothing is stored.
    pub session: String,
    /// 48 bytes, base64 whose characters both alphabets have.
    pub nonce: String,
    /// The audience that evidence must name.
    pub audience: String,
    /// Layer of the evidence.
    pub layer: Layer,
    /// End of the session.
    pub expires: i64,
    /// Media types of evidence.
    pub accept: Vec<String>,
}

/// Evidence to appraise, with either `session`, or `nonce` and `layer`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// Evidence, base64.
    pub evidence: String,
    /// Token of `/v1/sessions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// A relying party's own nonce, base64, instead of `session`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Layer of the evidence; with `nonce`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// `name`, or an operator's `name@version`; `default` if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// False: the result has no `aud`, for parsers that refuse it, and `shef_audience` in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aud: Option<bool>,
}

/// An appraisal with its signed result.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Appraised {
    /// The verdict.
    pub verdict: Verdict,
    /// EAR as JWT.
    pub result: String,
    /// Id of the record, hexadecimal.
    pub appraisal_id: String,
    /// `name@version`.
    pub policy: String,
    /// SHA-256 of the policy's text, hexadecimal.
    pub policy_sha256: String,
    /// Every check.
    pub appraisal: Appraisal,
}

/// What an appraisal would say.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Explained {
    /// The verdict.
    pub would_be: Verdict,
    /// Whether the challenge was used up.
    pub nonce_used: bool,
    /// `name@version`.
    pub policy: String,
    /// The claims in words; null if the evidence cannot be read.
    pub claims: Value,
    /// Revocations that the evidence falls under.
    pub revocations: Vec<Revocation>,
    /// Every check.
    pub appraisal: Appraisal,
}

/// Every check of an appraisal, and what follows from them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Appraisal {
    /// The verdict.
    pub verdict: Verdict,
    /// The expected layer.
    pub layer: Layer,
    /// Name of the policy.
    pub policy: String,
    /// SHA-256 of the policy's typed part, and of its Rego part if there is one.
    pub policy_ids: Vec<String>,
    /// Overall result: `affirming`, `warning`, `contraindicated` or `none`.
    pub status: String,
    /// AR4SI trustworthiness vector: the claims that are made.
    pub vector: BTreeMap<String, i8>,
    /// Trust anchor of the chain.
    #[cfg_attr(feature = "schema", schema(required))]
    pub anchor: Option<String>,
    /// Exceptions that the policy made.
    pub warnings: Vec<String>,
    /// Every check, in order.
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Check {
    /// Its name.
    pub id: String,
    /// Its code.
    pub code: String,
    /// Whether it ran and passed.
    pub passed: bool,
    /// False if an earlier failure left nothing to check.
    pub reached: bool,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub actual: String,
}
