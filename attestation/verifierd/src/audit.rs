//! The audit log: one structured event for each appraisal, release and change. Never secrets, never evidence, never bodies.

use crate::auth::Identity;
use crate::store::AppraisalRecord;

/// An appraisal.
pub fn appraisal(who: &Identity, action: &'static str, record: &AppraisalRecord) {
    tracing::info!(
        target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action,
        appraisal = %hex::encode(record.id), layer = record.layer, verdict = record.verdict, code = record.code,
        policy = %record.policy, ueid = %hex::encode(&record.ueid),
    );
}

/// A change, and what it was about.
pub fn change(who: &Identity, action: &'static str, what: &str) {
    tracing::info!(target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action, what);
}

/// A release, or the refusal of one.
pub fn release(who: &Identity, key: &str, version: i64, seq: u64, fresh: bool) {
    tracing::info!(
        target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action = "release", key, version, receipt = seq, fresh,
    );
}
