//! Receipts of releases, and the ends of their chain.

use shef_proto::receipt::{self, Head};

use super::erased::{CHANGE, lock};
use super::events::{Event, record_event};
use super::{Store, on, row};
use crate::problem::{Because, Kind, Problem, Result};

/// A receipt.
#[derive(Clone, Debug)]
pub struct ReceiptRow {
    /// Number in the tenant's chain.
    pub seq: i64,
    /// Seconds since 1970.
    pub time: i64,
    /// Key.
    pub name: String,
    /// The signed bytes.
    pub content: Vec<u8>,
}

row!(ReceiptRow { seq, time, name, content });

/// Maximum number of receipts to delete at a time: each is verified first.
pub const FORGET: u64 = 500;

struct HeadsRow {
    seq: i64,
    head: Vec<u8>,
    kept_seq: i64,
    kept_head: Vec<u8>,
    kept_signed: Vec<u8>,
}

row!(HeadsRow { seq, head, kept_seq, kept_head, kept_signed });

/// Where a tenant's chain of receipts begins and ends.
#[derive(Clone, Debug)]
pub struct Heads {
    /// The end.
    pub head: Head,
    /// The last deleted receipt; number 0 if nothing was deleted.
    pub kept: Head,
    /// The service's signed statement about the deletion; empty if nothing was deleted.
    pub signed: Vec<u8>,
}

/// A head as it is stored.
///
/// # Errors
/// Its digest has a wrong length.
pub(super) fn head_of(seq: i64, digest: &[u8]) -> Result<Head> {
    let digest = digest.try_into().map_err(|_| {
        Kind::Internal.because("the stored head of the receipts has a wrong length")
    })?;
    Ok(Head { seq: seq.max(0) as u64, digest })
}

impl Store {
    /// Receipts after this number, of one key or of all.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn receipts(
        &self,
        tenant: &str,
        name: Option<&str>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<ReceiptRow>> {
        on!(self, |pools| {
            let rows =
                match name {
                    None => {
                        sqlx::query_as("SELECT seq, time, name, content FROM receipt WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT $3")
                            .bind(tenant)
                            .bind(after)
                            .bind(limit)
                            .fetch_all(&pools.read)
                            .await?
                    }
                    Some(name) => sqlx::query_as(
                        "SELECT seq, time, name, content FROM receipt WHERE tenant = $1 AND name = $4 AND seq > $2 ORDER BY seq LIMIT $3",
                    )
                    .bind(tenant)
                    .bind(after)
                    .bind(limit)
                    .bind(name)
                    .fetch_all(&pools.read)
                    .await?,
                };
            Ok(rows)
        })
    }

    /// Where a tenant's chain of receipts begins and ends.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn heads(&self, tenant: &str) -> Result<Heads> {
        on!(self, |pools| {
            let row: Option<HeadsRow> = sqlx::query_as(
                "SELECT seq, head, kept_seq, kept_head, kept_signed FROM tenant WHERE name = $1",
            )
            .bind(tenant)
            .fetch_optional(&pools.read)
            .await?;
            let Some(row) = row else {
                let first = Head { seq: 0, digest: receipt::genesis(tenant) };
                return Ok(Heads { head: first, kept: first, signed: Vec::new() });
            };
            Ok(Heads {
                head: head_of(row.seq, &row.head)?,
                kept: head_of(row.kept_seq, &row.kept_head)?,
                signed: row.kept_signed,
            })
        })
    }

    /// The oldest receipts that may be deleted: up to the first that is younger than `before`, and
    /// few enough not to delay other requests. The newest stays, so that a chain never becomes
    /// empty.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn old_receipts(&self, tenant: &str, before: i64) -> Result<Vec<ReceiptRow>> {
        on!(self, |pools| {
            let mut oldest: Vec<ReceiptRow> = sqlx::query_as(
                "SELECT seq, time, name, content FROM receipt WHERE tenant = $1 AND seq < (SELECT MAX(seq) FROM receipt WHERE tenant = $1) \
                 ORDER BY seq LIMIT $2",
            )
            .bind(tenant)
            .bind(FORGET as i64)
            .fetch_all(&pools.read)
            .await?;
            let old = oldest.iter().take_while(|row| row.time < before).count();
            oldest.truncate(old);
            Ok(oldest)
        })
    }

    /// Deletes the receipts up to a head, as in the service's signed statement; the chain then
    /// begins after that head. Returns how many it deleted; 0 if the chain no longer began at
    /// `from`.
    /// # Errors
    /// The database does not answer.
    pub async fn forget_receipts(
        &self,
        event: &Event<'_>,
        from: Head,
        to: Head,
        signed: &[u8],
    ) -> Result<u64> {
        let _turn = self.turns.durable(event.tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            lock!(self, tx, event.tenant, CHANGE);
            let moved = sqlx::query("UPDATE tenant SET kept_seq = $2, kept_head = $3, kept_signed = $4 WHERE name = $1 AND kept_seq = $5")
                .bind(event.tenant)
                .bind(to.seq as i64)
                .bind(to.digest.to_vec())
                .bind(signed)
                .bind(from.seq as i64)
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if moved == 0 {
                return Ok(0);
            }
            let gone = sqlx::query("DELETE FROM receipt WHERE tenant = $1 AND seq <= $2")
                .bind(event.tenant)
                .bind(to.seq as i64)
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if gone > 0 {
                record_event!(tx, event, "receipts-forgotten", format!("up to {}", to.seq));
            }
            tx.commit().await?;
            Ok::<u64, Problem>(gone)
        })
    }
}
