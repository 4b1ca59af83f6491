//! The audit log: one structured event for each appraisal, release and change. It never contains
//! secrets, evidence or bodies.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use shef_console::Log;

use crate::auth::Identity;
use crate::problem::{Kind, Result};
use crate::store::AppraisalRecord;

/// Admits a burst of messages, then one in each period, and counts the suppressed ones. Strangers
/// choose how often they are refused; they must not choose how much is logged.
#[derive(Debug)]
pub struct Quiet {
    most: u32,
    period: Duration,
    state: Mutex<(u32, Instant, u64)>,
}

impl Quiet {
    /// A burst of `most` messages, and one more in each period.
    #[must_use]
    pub fn new(most: u32, period: Duration) -> Self {
        Self { most, period, state: Mutex::new((most, Instant::now(), 0)) }
    }

    /// Whether this message may be written, and if so, how many were suppressed since the last one.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn pass(&self, now: Instant) -> Option<u64> {
        let (left, since, held) = &mut *self.state.lock().expect("no panic under this lock");
        let more = u32::try_from(
            now.saturating_duration_since(*since).as_nanos() / self.period.as_nanos().max(1),
        )
        .unwrap_or(u32::MAX);
        if more > 0 {
            *left = left.saturating_add(more).min(self.most);
            *since = now;
        }
        if *left == 0 {
            *held += 1;
            return None;
        }
        *left -= 1;
        Some(std::mem::take(held))
    }
}

/// A login that the handshake or the check of a request's credentials refused. The credentials are
/// never logged.
pub fn login_refused(quiet: &Quiet, address: Option<SocketAddr>, reason: &str) {
    if let Some(held_back) = quiet.pass(Instant::now()) {
        let address = address.map_or_else(String::new, |address| address.to_string());
        tracing::warn!(target: "audit", action = "login-refused", address, reason, held_back);
    }
}

/// An appraisal.
pub fn appraisal(who: &Identity, action: &'static str, record: &AppraisalRecord) {
    tracing::info!(
        target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action,
        appraisal = %hex::encode(record.id), layer = record.layer, verdict = record.verdict, code = record.code,
        policy = %record.policy, ueid = %hex::encode(&record.ueid),
    );
}

/// A change, and its subject.
pub fn change(who: &Identity, action: &'static str, what: &str) {
    tracing::info!(target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action, what);
}

/// How long a release waits for its line in the log.
const WRITTEN: Duration = Duration::from_secs(2);

/// A release that is about to be committed, in a service that releases nothing without a log:
/// returns once the line is written.
///
/// # Errors
/// [`Kind::Log`]: the line is lost or waits too long.
pub async fn announced(who: &Identity, key: &str, version: i64, evidence: &[u8; 32]) -> Result<()> {
    let refused = |why: &str| Err(Kind::Log.because(why.to_owned()).retry_after(5));
    let Some(log) = Log::installed() else { return refused("this program has no log") };
    let before = log.lost();
    tracing::info!(
        target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action = "release-begins", key, version,
        evidence = %hex::encode(evidence),
    );
    let (done, settled) = tokio::sync::oneshot::channel();
    log.settled(move |lost| {
        let _ = done.send(lost);
    });
    match tokio::time::timeout(WRITTEN, settled).await {
        Ok(Ok(lost)) if lost == before => Ok(()),
        Ok(_) => refused("the line about this release was lost"),
        Err(_) => refused("the line about this release waits for the log's reader"),
    }
}

/// A release, new or repeated.
pub fn release(who: &Identity, key: &str, version: i64, seq: u64, fresh: bool) {
    tracing::info!(
        target: "audit", tenant = %who.tenant, who = %who.name, role = who.role.name(), action = "release", key, version, receipt = seq, fresh,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_counted() {
        let quiet = Quiet::new(2, Duration::from_secs(10));
        let start = Instant::now();
        assert_eq!(
            [quiet.pass(start), quiet.pass(start), quiet.pass(start), quiet.pass(start)],
            [Some(0), Some(0), None, None]
        );
        let later = start + Duration::from_secs(11);
        assert_eq!([quiet.pass(later), quiet.pass(later)], [Some(2), None]);
        assert_eq!(quiet.pass(start + Duration::from_secs(1000)), Some(1));
    }
}
