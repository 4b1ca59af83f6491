//! Events: who changed what, and when. Each is written in the transaction of its change.

use super::{Store, on, row};
use crate::problem::Result;

/// Who changes something, and when.
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

/// An event that was kept.
#[derive(Clone, Debug, serde::Serialize)]
pub struct EventRow {
    /// Number, from 1; a tenant's events have no gaps.
    pub seq: i64,
    /// Seconds since 1970.
    pub time: i64,
    /// Name of the identity.
    pub who: String,
    /// Its role.
    pub role: String,
    /// What was done.
    pub action: String,
    /// What it was about.
    pub what: String,
}

row!(EventRow { seq, time, who, role, action, what });

/// Writes an event in a transaction that holds the tenant's row.
macro_rules! record_event {
    ($tx:expr, $event:expr, $action:expr, $what:expr) => {{
        let event: &$crate::store::events::Event<'_> = $event;
        sqlx::query(
            "INSERT INTO event (tenant, seq, time, who, role, action, what) \
             SELECT $1, COALESCE(MAX(seq), 0) + 1, $2, $3, $4, $5, $6 FROM event WHERE tenant = $1",
        )
        .bind(event.tenant)
        .bind(event.time)
        .bind(event.who)
        .bind(event.role)
        .bind($action)
        .bind($what)
        .execute(&mut *$tx)
        .await?;
    }};
}
pub(crate) use record_event;

impl Store {
    /// Events behind this number, the oldest first.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn events(&self, tenant: &str, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as("SELECT seq, time, who, role, action, what FROM event WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3")
                .bind(tenant)
                .bind(after)
                .bind(limit)
                .fetch_all(&pools.read)
                .await?)
        })
    }
}
