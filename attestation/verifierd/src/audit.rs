//! The audit log: one structured event for each appraisal, release and change. It never contains
//! secrets, evidence or bodies.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use shef_console::Log;
use shef_tls::admission::network;

use crate::auth::Identity;
use crate::problem::{Because, Kind, Result};
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

    /// Whether nothing was suppressed, and a whole burst may come.
    fn is_idle(&self, now: Instant) -> bool {
        let (left, since, held) = *self.state.lock().expect("no panic under this lock");
        let passed = now.saturating_duration_since(since);
        held == 0 && passed >= self.period * self.most.saturating_sub(left)
    }

    /// Whether this message may be written, and if so, how many were suppressed since the last one.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn pass(&self, now: Instant) -> Option<u64> {
        self.pass_on(now, 0)
    }

    /// The same for a message before which another limit has suppressed `before`, which are counted as
    /// if this one had.
    fn pass_on(&self, now: Instant, before: u64) -> Option<u64> {
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
            *held += before + 1;
            return None;
        }
        *left -= 1;
        Some(std::mem::take(held) + before)
    }
}

/// Refused logins of one network that may be logged in a burst, and the time until one more may be.
const LOGINS: (u32, Duration) = (50, Duration::from_secs(2));
/// Refusals of one identity that become events in a burst, and the time until one more may: 1,440 a day.
const REFUSALS: (u32, Duration) = (60, Duration::from_secs(60));
/// The same for all identities of a tenant, whose identity provider may know any number of them.
const TENANT_REFUSALS: (u32, Duration) = (240, Duration::from_secs(15));
/// Sources that have separate accounts; all others share one.
const SOURCES: usize = 256;

/// Admits messages by their source: a noisy one does not hide the others.
#[derive(Debug)]
struct Sources<K> {
    each: (u32, Duration),
    own: Mutex<HashMap<K, Quiet>>,
    others: Quiet,
}

impl<K: Clone + Eq + Hash> Sources<K> {
    /// A burst and a period for each source.
    fn new(each: (u32, Duration)) -> Self {
        Self { each, own: Mutex::default(), others: Quiet::new(each.0, each.1) }
    }

    /// As [`Quiet::pass`], for this source.
    fn pass(&self, source: Option<&K>, now: Instant) -> Option<u64> {
        let Some(source) = source else { return self.others.pass(now) };
        let mut own = self.own.lock().expect("no panic under this lock");
        if own.len() >= SOURCES && !own.contains_key(source) {
            own.retain(|_, quiet| !quiet.is_idle(now));
        }
        if own.len() >= SOURCES && !own.contains_key(source) {
            return self.others.pass(now);
        }
        own.entry(source.clone()).or_insert_with(|| Quiet::new(self.each.0, self.each.1)).pass(now)
    }
}

/// Admits messages about refused logins by the network that they come from.
#[derive(Debug)]
pub struct Logins(Sources<IpAddr>);

impl Default for Logins {
    fn default() -> Self {
        Self(Sources::new(LOGINS))
    }
}

/// Admits the refusals that become events, which are kept for ever: by identity, so that none crowds
/// out another's, and by tenant.
#[derive(Debug, Default)]
pub struct Refusals {
    tenants: Mutex<HashMap<String, (Sources<Identity>, Quiet)>>,
}

impl Refusals {
    /// As [`Quiet::pass`], for this identity of its tenant.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn pass(&self, who: &Identity, now: Instant) -> Option<u64> {
        let mut tenants = self.tenants.lock().expect("no panic under this lock");
        let (sources, whole) = tenants.entry(who.tenant.clone()).or_insert_with(|| {
            (Sources::new(REFUSALS), Quiet::new(TENANT_REFUSALS.0, TENANT_REFUSALS.1))
        });
        let held_back = sources.pass(Some(who), now)?;
        whole.pass_on(now, held_back)
    }
}

impl Logins {
    /// As [`Quiet::pass`], for this network.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn pass(&self, network: Option<IpAddr>, now: Instant) -> Option<u64> {
        self.0.pass(network.as_ref(), now)
    }
}

/// A login that the handshake or the check of a request's credentials refused. The credentials are
/// never logged.
pub fn login_refused(logins: &Logins, address: Option<SocketAddr>, reason: &str) {
    let network = address.map(|address| network(address.ip()));
    if let Some(held_back) = logins.pass(network, Instant::now()) {
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

/// The log, if it has the lines that `audit.required` is about.
///
/// # Errors
/// [`Kind::Log`]: the program has no log, or SHEF_LOG filters these lines out.
pub fn required() -> Result<Log> {
    let text = "SHEF_LOG leaves out the audit lines, which audit.required asks for: add audit=info";
    match Log::installed() {
        None => Err(Kind::Log.because("this program has no log")),
        Some(_) if !tracing::enabled!(target: "audit", tracing::Level::INFO) => {
            Err(Kind::Log.because(text))
        }
        Some(log) => Ok(log),
    }
}

/// A release that is about to be committed, in a service that releases nothing without a log:
/// returns once the line is written.
///
/// # Errors
/// [`Kind::Log`]: the line is lost or waits too long.
pub async fn announced(who: &Identity, key: &str, version: i64, evidence: &[u8; 32]) -> Result<()> {
    let refused = |why: &str| Err(Kind::Log.because(why.to_owned()).retry_after(5));
    let log = required()?.first();
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
    use crate::role::Role;

    #[test]
    fn a_noisy_network_hides_no_other() {
        let (logins, start) = (Logins::default(), Instant::now());
        let network = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        let noisy = (0..1000).filter(|_| logins.pass(network(0), start).is_some()).count();
        assert_eq!((noisy, logins.pass(network(1), start)), (LOGINS.0 as usize, Some(0)));
        // Beyond the networks that are remembered, all share one account.
        let many = |from: u32, now| {
            (from..from + 2000).filter(|n| logins.pass(network(*n), now).is_some()).count()
        };
        assert_eq!(many(2, start), SOURCES - 2 + LOGINS.0 as usize);
        // What has long been quiet makes room; what suppressed something is remembered.
        let later = start + Duration::from_secs(1000);
        assert_eq!(many(10_000, later), SOURCES - 1 + LOGINS.0 as usize);
        assert_eq!(logins.pass(network(0), later), Some(950));
    }

    #[test]
    fn a_tenant_of_many_identities_has_a_share_of_events() {
        let (refusals, start) = (Refusals::default(), Instant::now());
        let who = |tenant: &str, n: usize| Identity {
            tenant: tenant.into(),
            name: format!("caller.{n}"),
            role: Role::Attest,
        };
        let count = |tenant: &str, callers: usize, each: usize, now| {
            let all = (0..callers).flat_map(|n| std::iter::repeat_n(n, each));
            all.filter(|n| refusals.pass(&who(tenant, *n), now).is_some()).count()
        };
        assert_eq!(count("a", 1, 1000, start), REFUSALS.0 as usize);
        let more = TENANT_REFUSALS.0 - REFUSALS.0;
        assert_eq!(count("a", 5000, 3, start), more as usize);
        assert_eq!(count("b", 1, 60, start), REFUSALS.0 as usize);
        let tenants = refusals.tenants.lock().unwrap();
        assert_eq!(tenants["a"].0.own.lock().unwrap().len(), SOURCES);
        drop(tenants);
        // None is forgotten, whichever limit held it back.
        let later = start + Duration::from_secs(15);
        assert_eq!(refusals.pass(&who("a", 9999), later), None);
        let later = start + TENANT_REFUSALS.1 * TENANT_REFUSALS.0 * 100;
        let told: u64 = (0..5000).filter_map(|n| refusals.pass(&who("a", n), later)).sum();
        assert!(told > 0);
    }

    #[test]
    fn what_is_held_back_is_counted() {
        let tenant = Quiet::new(1, Duration::from_secs(10));
        let start = Instant::now();
        assert_eq!([tenant.pass_on(start, 3), tenant.pass_on(start, 4)], [Some(3), None]);
        assert_eq!(tenant.pass_on(start + Duration::from_secs(10), 2), Some(7));

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
