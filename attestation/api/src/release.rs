//! Release of keys.

use serde::{Deserialize, Serialize};

/// Asks for a key, with evidence for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Name of the key.
    pub key: String,
    /// Version of the key; the newest if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Token of `/v1/sessions`.
    pub session: String,
    /// Evidence, base64.
    pub evidence: String,
}

/// A released key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Released {
    /// Name of the key.
    pub key: String,
    /// Version of the key.
    pub version: u64,
    /// The key in an HPKE box, base64url.
    pub r#box: String,
    /// Signed receipt, base64url.
    pub receipt: String,
    /// End of the tenant's chain of receipts: keep it.
    pub head: Head,
    /// End of the time in which the same request gets the same bytes.
    pub expires: i64,
}

/// A place in the chain of receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Head {
    /// Number of a receipt; 0 before the first.
    pub seq: u64,
    /// Its SHA-256, hexadecimal.
    pub digest: String,
}

/// The place after which receipts are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Forgotten {
    /// Number of the last receipt that was deleted; 0 for none.
    pub seq: u64,
    /// Its SHA-256, hexadecimal.
    pub digest: String,
    /// The service's signature under that, base64url; missing if nothing was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub statement: Option<String>,
}
