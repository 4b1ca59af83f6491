//! Devices, appraisals, events, and the pages of all lists.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Layer, Verdict};

/// The size of a page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct RowsLimit {
    /// Most rows of a page, 1 to 1000; 100 if it is missing.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub limit: Option<i64>,
}

/// A page of rows by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct RowsAfter {
    /// Rows after this one: `next` of the previous page.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub after: Option<String>,
    /// Most rows of a page, 1 to 1000; 100 if it is missing.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub limit: Option<i64>,
}

/// A page of rows by number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct RowsBehind {
    /// Rows after this number: `next` of the previous page.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub after: Option<i64>,
    /// Most rows of a page, 1 to 1000; 100 if it is missing.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub limit: Option<i64>,
}

/// A page of rows by time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct RowsBefore {
    /// A time, or `next` of the previous page.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub before: Option<String>,
    /// Most rows of a page, 1 to 1000; 100 if it is missing.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub limit: Option<i64>,
}

/// A page of rows by number, of one key or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct RowsOfKey {
    /// Rows of this key only.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub key: Option<String>,
    /// Rows after this number: `next` of the previous page.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub after: Option<i64>,
    /// Most rows of a page, 1 to 1000; 100 if it is missing.
    #[cfg_attr(feature = "schema", param(nullable = false))]
    pub limit: Option<i64>,
}

/// A page of devices.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Devices {
    /// By `ueid`.
    pub devices: Vec<Device>,
    /// Start of the next page; null on the last one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<String>,
}

/// A device.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Device {
    /// Identity, hexadecimal.
    pub ueid: String,
    /// Type of device.
    pub target: String,
    /// Security version of its kernel in its newest genuine evidence.
    pub kernel_svn: u64,
    /// The highest one that a known kernel of it has shown.
    pub highest_svn: u64,
    /// Its newest verdict.
    pub verdict: Verdict,
    /// When it was seen first.
    pub first_seen: i64,
    /// When it was seen last.
    pub last_seen: i64,
    /// When it was accepted last; null for never.
    #[cfg_attr(feature = "schema", schema(required))]
    pub last_appraised: Option<i64>,
    /// Whether that is longer ago than `retention.stale_seconds`.
    pub stale: bool,
}

/// A page of recorded appraisals.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Records {
    /// Newest first.
    pub appraisals: Vec<Record>,
    /// Start of the next page; null on the last one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<String>,
}

/// A recorded appraisal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Record {
    /// Id, hexadecimal.
    pub id: String,
    /// Time of the appraisal.
    pub time: i64,
    /// The expected layer.
    pub layer: Layer,
    /// The verdict.
    pub verdict: Verdict,
    /// Code of the first failed check; empty if none failed.
    pub code: String,
    /// `name@version`.
    pub policy: String,
    /// Identity in the evidence, hexadecimal.
    pub ueid: String,
    /// SHA-256 of the evidence, hexadecimal; empty in records of older versions.
    pub evidence_sha256: String,
}

/// A recorded appraisal with its checks and claims.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WholeRecord {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// The appraisal as it was recorded, with every check; null if it cannot be read.
    #[cfg_attr(feature = "schema", schema(value_type = Option<crate::Appraisal>, required))]
    pub appraisal: Value,
    /// The claims in words; null if the evidence cannot be read.
    pub claims: Value,
}

/// A page of events.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Events {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Start of the next page; null on the last one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<u64>,
}

/// A change, or a refused one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Event {
    /// Number, from 1, without gaps.
    pub seq: u64,
    /// Time.
    pub time: i64,
    /// Name of the identity, or `service`.
    pub who: String,
    /// Its role.
    pub role: String,
    /// The action, or `refused`.
    pub action: String,
    /// Its subject.
    pub what: String,
    /// SHA-256 over the digest of the previous event and this one, hexadecimal; empty in events of version 0.1.
    pub digest: String,
}
