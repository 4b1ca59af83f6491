//! `[limits]` and `[retention]`: every number of a configuration, and its bounds.

use serde::{Deserialize, Serialize};

use super::at::{At, place};
use crate::problem::Result;

/// Limits; all have defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum size of a body in bytes.
    pub body_bytes: usize,
    /// Maximum size of a CoRIM in bytes.
    pub corim_bytes: usize,
    /// Maximum bytes that a tenant stores: reference values, policies, keys and resources,
    /// revocations, anchors, signers.
    pub tenant_bytes: i64,
    /// Maximum number of a tenant's trust anchors, signers, reference values and versions of
    /// policies: each change reads them all.
    pub tenant_rows: i64,
    /// Seconds within which TLS handshake and request header must arrive.
    pub header_seconds: u64,
    /// Seconds within which a body must arrive.
    pub body_seconds: u64,
    /// Seconds that open requests have to finish when the service stops.
    pub shutdown_seconds: u64,
    /// Maximum number of connections.
    pub connections: usize,
    /// Seconds after which a connection ends, once its request has been answered: no client keeps
    /// an outdated identity.
    pub connection_seconds: u64,
    /// Maximum number of concurrent requests.
    pub requests: usize,
    /// Seconds for which a session is valid.
    pub session_seconds: i64,
    /// Seconds for which an attestation result is valid.
    pub result_seconds: i64,
    /// Seconds for which a client can fetch a released box again.
    pub release_seconds: i64,
    /// Requests per second for the operators of a tenant, and for all its other callers; one of
    /// these has half of it.
    pub rate: u32,
    /// Requests that they may send in a burst after a pause, divided in the same way.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 * 1024,
            corim_bytes: 1024 * 1024,
            tenant_bytes: 8 * 1024 * 1024,
            tenant_rows: 4096,
            header_seconds: 10,
            body_seconds: 10,
            shutdown_seconds: 10,
            connections: 1024,
            connection_seconds: 600,
            requests: 256,
            session_seconds: 150,
            result_seconds: 300,
            release_seconds: 600,
            rate: 5000,
            burst: 10_000,
        }
    }
}

/// How long to keep data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Appraisals kept for each tenant.
    pub appraisals: i64,
    /// Appraisals kept for each tenant in addition: of evidence that no certified device has
    /// signed. Anybody can send that.
    pub unproven: i64,
    /// Days for which to keep receipts; 0: for ever. The chain stays verifiable from the oldest one
    /// kept.
    pub receipt_days: u32,
    /// Seconds without an accepted appraisal after which a device is stale.
    pub stale_seconds: i64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { appraisals: 10_000, unproven: 1000, receipt_days: 0, stale_seconds: 24 * 3600 }
    }
}

/// Checks that limits are within their bounds, and fit each other.
pub(super) fn check(
    at: &At<'_>,
    limits: &Limits,
    retention: &Retention,
    connections: u32,
) -> Result<()> {
    for (table, name, value, least, most) in bounds(limits, retention, connections) {
        if !(least..=most).contains(&value) {
            let what = format!("{table}.{name} = {value} is not within {least} to {most}");
            return Err(at.error(&place(at.text, table, name), what));
        }
    }
    // The service remembers the releases of an attestation until the box ends, which must
    // outlast the attestation.
    let l = limits;
    if l.result_seconds > l.release_seconds {
        let said = |name| Some(place(at.text, "limits", name)).filter(|span| span.start > 0);
        let text = format!(
            "limits.result_seconds = {} is more than limits.release_seconds = {}: an attestation would outlive the box that it released, and release \
             the key a second time; make result_seconds at most release_seconds",
            l.result_seconds, l.release_seconds
        );
        return Err(at.error(
            &said("result_seconds").or_else(|| said("release_seconds")).unwrap_or(0..0),
            text,
        ));
    }
    Ok(())
}

/// Every number of a configuration: table, key, value, minimum and maximum.
pub(super) fn bounds(
    limits: &Limits,
    retention: &Retention,
    connections: u32,
) -> [(&'static str, &'static str, i64, i64, i64); 20] {
    let (l, r) = (limits, retention);
    let size = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let seconds = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    const DAY: i64 = 86_400;
    [
        ("limits", "body_bytes", size(l.body_bytes), 8192, 16 << 20),
        ("limits", "corim_bytes", size(l.corim_bytes), 8192, 64 << 20),
        ("limits", "tenant_bytes", l.tenant_bytes, 64 << 10, 1 << 40),
        ("limits", "tenant_rows", l.tenant_rows, 16, 1 << 20),
        ("limits", "header_seconds", seconds(l.header_seconds), 1, 600),
        ("limits", "body_seconds", seconds(l.body_seconds), 1, 600),
        ("limits", "shutdown_seconds", seconds(l.shutdown_seconds), 0, 600),
        ("limits", "connections", size(l.connections), 1, 1 << 20),
        ("limits", "connection_seconds", seconds(l.connection_seconds), 1, DAY),
        ("limits", "requests", size(l.requests), 1, 1 << 16),
        ("limits", "session_seconds", l.session_seconds, 5, DAY),
        ("limits", "result_seconds", l.result_seconds, 5, DAY),
        ("limits", "release_seconds", l.release_seconds, 5, DAY),
        ("limits", "rate", l.rate.into(), 1, 1 << 24),
        ("limits", "burst", l.burst.into(), 1, 1 << 24),
        ("retention", "appraisals", r.appraisals, 1, 1 << 40),
        ("retention", "unproven", r.unproven, 1, 1 << 40),
        ("retention", "receipt_days", r.receipt_days.into(), 0, 36_500),
        ("retention", "stale_seconds", r.stale_seconds, 1, 3650 * DAY),
        ("storage", "connections", connections.into(), 1, 256),
    ]
}
