//! State and published keys of the service.

use serde::{Deserialize, Serialize};

/// The process works.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// The service can answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Ready {
    /// `ready`.
    pub status: String,
    /// Version of the program.
    pub version: String,
    /// End of the server's certificate.
    pub certificate_ends: i64,
    /// `written`; `lost` if lines of the log are lost; `none`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub log: String,
    /// Providers whose tokens identify callers, in the order of the configuration.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub identity_providers: Vec<IdentityProvider>,
}

/// An identity provider.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct IdentityProvider {
    /// Seconds since its keys were fetched; null without keys.
    #[cfg_attr(feature = "schema", schema(required))]
    pub keys_age: Option<u64>,
}

/// Keys that verify results and receipts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Jwks {
    /// The present one first.
    pub keys: Vec<Jwk>,
}

/// A public key as JWK.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Jwk {
    /// `EC`.
    pub kty: String,
    /// `P-256`.
    pub crv: String,
    /// `ES256`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub alg: String,
    /// `sig`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub r#use: String,
    /// RFC 7638 thumbprint.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub kid: String,
    /// Coordinate, base64url.
    pub x: String,
    /// Coordinate, base64url.
    pub y: String,
}
