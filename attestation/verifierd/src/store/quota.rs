//! Storage of a tenant in bytes and rows, and its limits: reading collateral takes time under the
//! database's lock, and tenants share a disk.

use std::sync::atomic::Ordering;

use super::{Store, on};
use crate::problem::{Because, Kind, Problem, Result};

/// Bytes of everything that a tenant's operator adds: contents and names, and 128 for each row.
pub(super) const STORED: &str = "SELECT CAST(SUM(bytes) AS BIGINT) FROM (\
     SELECT SUM(128 + OCTET_LENGTH(name) + OCTET_LENGTH(certificate)) AS bytes FROM anchor WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(name) + OCTET_LENGTH(content)) FROM signer WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(id) + OCTET_LENGTH(media_type) + OCTET_LENGTH(content)) FROM corim WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(signer) + OCTET_LENGTH(id)) FROM corim_version WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(name) + OCTET_LENGTH(media_type) + OCTET_LENGTH(content)) FROM policy WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(kind) + OCTET_LENGTH(value) + OCTET_LENGTH(reason)) FROM revocation WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(name)) FROM key_name WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(name)) FROM gone WHERE tenant = $1 \
     UNION ALL SELECT SUM(128 + OCTET_LENGTH(name) + OCTET_LENGTH(sealed) + OCTET_LENGTH(policy)) FROM key_version WHERE tenant = $1\
     ) AS parts";

/// Rows that are parsed or verified each time that the collateral is read anew.
pub(super) const ROWS: &str = "SELECT (SELECT COUNT(*) FROM anchor WHERE tenant = $1) + (SELECT COUNT(*) FROM signer WHERE tenant = $1) \
     + (SELECT COUNT(*) FROM corim WHERE tenant = $1) + (SELECT COUNT(*) FROM policy WHERE tenant = $1)";

/// Checks a tenant's storage, including the additions of a transaction, against the limit.
/// Revocations may use an eighth more: a tenant at its limit can still revoke.
pub(super) fn hold(stored: Option<i64>, most: i64, revokes: bool) -> Result<(), Problem> {
    let (stored, most) =
        (stored.unwrap_or(0), if revokes { most.saturating_add(most / 8) } else { most });
    if stored <= most {
        return Ok(());
    }
    Err(Kind::Full.because(format!(
        "with this the tenant stores {stored} bytes, of at most {most}: remove reference values, signers, trust anchors, revocations, policies or keys that count \
         no more (the name of a deleted key or policy still counts), or have limits.tenant_bytes raised"
    )))
}

/// Checks the number of a tenant's rows, including the additions of a transaction.
pub(super) fn hold_rows(rows: i64, most: i64) -> Result<(), Problem> {
    if rows <= most {
        return Ok(());
    }
    Err(Kind::Full.because(format!(
        "with this the tenant has {rows} trust anchors, signers, reference values and versions of policies, of at most {most}: remove those \
         that count no more, put more reference values into one CoRIM, or have limits.tenant_rows raised"
    )))
}

/// Rejects the additions of a transaction if the tenant stores more than it may.
macro_rules! hold_quota {
    ($store:expr, $tx:expr, $tenant:expr, $revokes:expr) => {{
        let (stored,): (Option<i64>,) =
            sqlx::query_as($crate::store::quota::STORED).bind($tenant).fetch_one(&mut *$tx).await?;
        $crate::store::quota::hold(
            stored,
            $store.most.load(std::sync::atomic::Ordering::Relaxed),
            $revokes,
        )?;
        let (rows,): (i64,) =
            sqlx::query_as($crate::store::quota::ROWS).bind($tenant).fetch_one(&mut *$tx).await?;
        let most = $store.most_rows.load(std::sync::atomic::Ordering::Relaxed);
        $crate::store::quota::hold_rows(rows, if $revokes { i64::MAX } else { most })?;
    }};
}
pub(super) use hold_quota;

impl Store {
    /// Sets the maximum bytes and rows that each tenant may store; until then there is no limit.
    pub fn limit(&self, bytes: i64, rows: i64) {
        self.most.store(bytes, Ordering::Relaxed);
        self.most_rows.store(rows, Ordering::Relaxed);
    }

    /// Bytes that a tenant stores, as counted against `limits.tenant_bytes`.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn stored(&self, tenant: &str) -> Result<i64> {
        on!(self, |pools| {
            let (stored,): (Option<i64>,) =
                sqlx::query_as(STORED).bind(tenant).fetch_one(&pools.read).await?;
            Ok(stored.unwrap_or(0))
        })
    }
}
