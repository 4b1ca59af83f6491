//! Events: who changed what, or was refused, and when. Each is written in the transaction of its
//! change, and includes the digest of its predecessor, so that edits, gaps and reordering show.

use serde::{Serialize, Serializer};

use super::{Store, on, row};
use crate::problem::{Kind, Result};
use crate::secrets::sha256;

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
    /// The digest of this event after one with digest `previous` (empty before the first): SHA-256
    /// over `shef-event/1`, `previous`, tenant, number, time, who, role, action and what. A length
    /// in four bytes precedes each; numbers have eight bytes; all are big-endian.
    #[must_use]
    pub fn chained(&self, tenant: &str, previous: &[u8]) -> [u8; 32] {
        let (seq, time) = (self.seq.to_be_bytes(), self.time.to_be_bytes());
        let parts: [&[u8]; 9] = [
            b"shef-event/1",
            previous,
            tenant.as_bytes(),
            &seq,
            &time,
            self.who.as_bytes(),
            self.role.as_bytes(),
            self.action.as_bytes(),
            self.what.as_bytes(),
        ];
        let mut all = Vec::new();
        for part in parts {
            all.extend_from_slice(&(part.len() as u32).to_be_bytes());
            all.extend_from_slice(part);
        }
        sha256(&all)
    }
}

/// Checks the events of one tenant in order.
#[derive(Debug)]
pub struct EventChain<'a> {
    tenant: &'a str,
    seq: i64,
    digest: Vec<u8>,
}

impl<'a> EventChain<'a> {
    /// Begins before a tenant's first event.
    #[must_use]
    pub fn new(tenant: &'a str) -> Self {
        Self { tenant, seq: 0, digest: Vec::new() }
    }

    /// Checks the next event.
    ///
    /// # Errors
    /// It is out of sequence, or was altered.
    pub fn push(&mut self, row: &EventRow) -> Result<()> {
        let bad = |what: &str| {
            Err(Kind::Audit.because(format!(
                "event {} of tenant {}: {what}",
                self.seq + 1,
                self.tenant
            )))
        };
        if row.seq != self.seq + 1 {
            return bad(&format!("missing, or in another order: found number {}", row.seq));
        }
        // Events of older versions have no digest; all of them precede the first with one.
        let from_before = row.digest.is_empty() && self.digest.is_empty();
        if !from_before && row.digest != row.chained(self.tenant, &self.digest) {
            return bad("changed, or does not follow the one before it");
        }
        (self.seq, self.digest) = (row.seq, row.digest.clone());
        Ok(())
    }

    /// Number and digest of the last one.
    #[must_use]
    pub fn head(&self) -> (i64, &[u8]) {
        (self.seq, &self.digest)
    }
}

/// Locks a tenant until the end of a transaction.
pub(crate) const LOCK: &str = "UPDATE tenant SET swept = swept WHERE name = $1";

/// Writes an event in a transaction that holds the tenant's row.
macro_rules! record_event {
    ($tx:expr, $event:expr, $action:expr, $what:expr) => {{
        let event: &$crate::store::events::Event<'_> = $event;
        let last: Option<(i64, Vec<u8>)> = sqlx::query_as("SELECT seq, digest FROM event WHERE tenant = $1 ORDER BY seq DESC LIMIT 1")
            .bind(event.tenant)
            .fetch_optional(&mut *$tx)
            .await?;
        let (seq, previous) = last.unwrap_or_default();
        let mut row = $crate::store::events::EventRow {
            seq: seq + 1,
            time: event.time,
            who: event.who.into(),
            role: event.role.into(),
            action: $action.into(),
            what: $what.into(),
            digest: Vec::new(),
        };
        row.digest = row.chained(event.tenant, &previous).to_vec();
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
pub(crate) use record_event;

impl Store {
    /// Records an event that changes nothing: a refusal.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn event(&self, event: &Event<'_>, action: &str, what: &str) -> Result<()> {
        let _turn = self.turns.quick(event.tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.quick.begin_with(pools.begin_quick).await?;
            sqlx::query(LOCK).bind(event.tenant).execute(&mut *tx).await?;
            record_event!(tx, event, action, what);
            tx.commit().await?;
            Ok(())
        })
    }

    /// Records an event of the service itself for every tenant: what concerns all of them.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn note(&self, action: &str, what: &str, time: i64) -> Result<()> {
        for tenant in self.tenants().await? {
            self.event(&Event::own(&tenant, time), action, what).await?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_a_gap_and_another_order_show() {
        let mut rows: Vec<EventRow> = Vec::new();
        for seq in 1..=4 {
            let mut row = EventRow {
                seq,
                time: 7,
                who: "a".into(),
                role: "operator".into(),
                action: "revoke".into(),
                what: format!("device {seq}"),
                digest: Vec::new(),
            };
            // The first is from a version without digests.
            if seq > 1 {
                row.digest =
                    row.chained("t", rows.last().map_or(&[][..], |row| &row.digest)).to_vec();
            }
            rows.push(row);
        }
        let check = |tenant: &str, rows: &[EventRow]| {
            let mut chain = EventChain::new(tenant);
            rows.iter().try_for_each(|row| chain.push(row)).map_err(|problem| problem.kind)
        };
        assert_eq!(check("t", &rows), Ok(()));
        assert_eq!(check("u", &rows), Err(Kind::Audit));
        let changed = |change: fn(&mut Vec<EventRow>)| {
            let mut rows = rows.clone();
            change(&mut rows);
            check("t", &rows)
        };
        assert_eq!(changed(|rows| rows[2].who = "b".into()), Err(Kind::Audit));
        assert_eq!(changed(|rows| rows.swap(1, 2)), Err(Kind::Audit));
        assert_eq!(changed(|rows| drop(rows.remove(1))), Err(Kind::Audit));
        assert_eq!(changed(|rows| rows[3].digest.clear()), Err(Kind::Audit));
    }
}
