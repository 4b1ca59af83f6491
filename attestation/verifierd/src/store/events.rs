//! Events: who changed what, or was refused, and when. Each is written in the transaction of its
//! change, and includes the digest of its predecessor, so that edits, gaps and reordering show.

use serde::{Serialize, Serializer};
use shef_proto::event;

use super::erased::{CHANGE, lock};
use super::{Store, on, row};
use crate::problem::{Kind, Result};

/// The author and time of a change.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Name of the identity.
    pub who: &'a str,
    /// Its role.
    pub role: &'a str,
    /// Seconds since 1970.
    pub time: i64,
}

impl<'a> Event<'a> {
    /// The author is the service itself.
    #[must_use]
    pub fn own(tenant: &'a str, time: i64) -> Self {
        Self { tenant, who: "service", role: "service", time }
    }
}

/// A recorded event.
#[derive(Clone, Debug, Serialize)]
pub struct EventRow {
    /// Number, from 1, without gaps within a tenant.
    pub seq: i64,
    /// Seconds since 1970.
    pub time: i64,
    /// Name of the identity.
    pub who: String,
    /// Its role.
    pub role: String,
    /// The action, or `refused`.
    pub action: String,
    /// Its subject.
    pub what: String,
    /// SHA-256 over the digest of the event before and all of this one; empty in events of versions
    /// without digests.
    #[serde(serialize_with = "hexadecimal")]
    pub digest: Vec<u8>,
}

row!(EventRow { seq, time, who, role, action, what, digest });

fn hexadecimal<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(bytes))
}

impl EventRow {
    /// Its content, which the digest covers.
    #[must_use]
    pub fn content(&self) -> event::Event<'_> {
        event::Event {
            seq: self.seq.unsigned_abs(),
            time: self.time,
            who: &self.who,
            role: &self.role,
            action: &self.action,
            what: &self.what,
        }
    }
}

/// Number and digest of a tenant's newest event.
macro_rules! last_event {
    ($tx:expr, $tenant:expr) => {{
        let last: Option<(i64, Vec<u8>)> = sqlx::query_as(
            "SELECT seq, digest FROM event WHERE tenant = $1 ORDER BY seq DESC LIMIT 1",
        )
        .bind($tenant)
        .fetch_optional(&mut *$tx)
        .await?;
        last
    }};
}
pub(crate) use last_event;

/// Writes the event of a change, at its end, in a transaction that holds the tenant's row.
macro_rules! record_event {
    ($tx:expr, $event:expr, $action:expr, $what:expr) => {{
        $crate::auth::certain()?;
        $crate::store::events::append_event!($tx, $event, $action, $what);
    }};
}
pub(crate) use record_event;

/// Writes an event in a transaction that holds the tenant's row.
macro_rules! append_event {
    ($tx:expr, $event:expr, $action:expr, $what:expr) => {{
        let event: &$crate::store::events::Event<'_> = $event;
        let (seq, previous) = $crate::store::events::last_event!($tx, event.tenant).unwrap_or_default();
        let mut row = $crate::store::events::EventRow {
            seq: seq + 1,
            time: event.time,
            who: event.who.into(),
            role: event.role.into(),
            action: $action.into(),
            what: $what.into(),
            digest: Vec::new(),
        };
        row.digest = row.content().digest(event.tenant, &previous).to_vec();
        sqlx::query("INSERT INTO event (tenant, seq, time, who, role, action, what, digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)")
            .bind(event.tenant)
            .bind(row.seq)
            .bind(row.time)
            .bind(row.who)
            .bind(row.role)
            .bind(row.action)
            .bind(row.what)
            .bind(row.digest)
            .execute(&mut *$tx)
            .await?;
    }};
}
pub(crate) use append_event;

impl Store {
    /// Records an event that changes nothing: a refusal.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn event(&self, event: &Event<'_>, action: &str, what: &str) -> Result<()> {
        let _turn = self.turns.quick(event.tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.quick.begin_with(pools.begin_quick).await?;
            lock!(self, tx, event.tenant, CHANGE);
            append_event!(tx, event, action, what);
            tx.commit().await?;
            Ok(())
        })
    }

    /// Records an event of the service itself for every tenant: what concerns all of them, but those
    /// that were erased while the store served them.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn note(&self, action: &str, what: &str, time: i64) -> Result<()> {
        for tenant in self.tenants().await? {
            match self.event(&Event::own(&tenant, time), action, what).await {
                Err(problem) if problem.kind == Kind::Erased => {}
                noted => noted?,
            }
        }
        Ok(())
    }

    /// Events after this number, oldest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn events(&self, tenant: &str, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as(
                "SELECT seq, time, who, role, action, what, digest FROM event WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            )
            .bind(tenant)
            .bind(after)
            .bind(limit)
            .fetch_all(&pools.read)
            .await?)
        })
    }
}
