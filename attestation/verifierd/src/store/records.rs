//! Used nonces, appraisals, devices.

use super::erased::{CHANGE, RECORD, lock};
use super::events::{Event, record_event};
use super::{Backend, Store, on, row};
use crate::problem::{Because, Kind, Result};
use crate::session::Challenge;

/// The record of an appraisal.
#[derive(Clone, Debug)]
pub struct AppraisalRecord {
    /// Random id.
    pub id: [u8; 16],
    /// Identity of the caller, as its URI.
    pub caller: String,
    /// Seconds since 1970.
    pub time: i64,
    /// Expected layer.
    pub layer: &'static str,
    /// `accepted` or `denied`.
    pub verdict: &'static str,
    /// Code of the first failed check; empty if all passed.
    pub code: &'static str,
    /// Policy, `name@version`.
    pub policy: String,
    /// Identity in the evidence, proven or not; empty if unreadable.
    pub ueid: Vec<u8>,
    /// Type of device in the evidence.
    pub target: String,
    /// Security version of the kernel in the evidence.
    pub kernel_svn: u64,
    /// That version if it was measured in a kernel that a reference value knows, else 0: only then
    /// does the device's highest version rise.
    pub proven_svn: u64,
    /// Whether a certified device signed the evidence: only then does the record of the device
    /// change.
    pub genuine: bool,
    /// Whether this service drew the nonce. Evidence for another nonce may be of any age: it only
    /// ever raises the device's highest version.
    pub fresh: bool,
    /// The nonce in the evidence.
    pub nonce: Vec<u8>,
    /// The evidence; empty if it cannot be read.
    pub evidence: Vec<u8>,
    /// SHA-256 of the evidence.
    pub sha256: [u8; 32],
    /// The appraisal as JSON.
    pub report: String,
}

/// A recorded appraisal.
#[derive(Clone, Debug)]
pub struct AppraisalRow {
    /// Id.
    pub id: Vec<u8>,
    /// Seconds since 1970.
    pub time: i64,
    /// Layer.
    pub layer: String,
    /// `accepted` or `denied`.
    pub verdict: String,
    /// Code of the first failed check.
    pub code: String,
    /// Policy, `name@version`.
    pub policy: String,
    /// Identity in the evidence.
    pub ueid: Vec<u8>,
    /// The nonce.
    pub nonce: Vec<u8>,
    /// The evidence; empty if it could not be read.
    pub evidence: Vec<u8>,
    /// SHA-256 of the evidence; empty in records of versions that did not keep it.
    pub sha256: Vec<u8>,
    /// The appraisal as JSON.
    pub report: String,
}

row!(AppraisalRow {
    id,
    time,
    layer,
    verdict,
    code,
    policy,
    ueid,
    nonce,
    evidence,
    sha256,
    report
});

/// A known device.
#[derive(Clone, Debug)]
pub struct DeviceRow {
    /// Identity.
    pub ueid: Vec<u8>,
    /// Seconds since 1970 of its first genuine evidence.
    pub first_seen: i64,
    /// Seconds since 1970 of its newest genuine evidence.
    pub last_seen: i64,
    /// Seconds since 1970 of its newest accepted evidence; 0: never.
    pub last_appraised: i64,
    /// Newest verdict.
    pub verdict: String,
    /// Type of device.
    pub target: String,
    /// Security version of its kernel in its newest genuine evidence.
    pub kernel_svn: i64,
    /// The highest version that a known kernel of the device has shown: evidence below it is
    /// denied.
    pub highest_svn: i64,
}

row!(DeviceRow {
    ueid,
    first_seen,
    last_seen,
    last_appraised,
    verdict,
    target,
    kernel_svn,
    highest_svn
});

/// Numbers of devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceCounts {
    /// All.
    pub all: i64,
    /// Not accepted for longer than the configuration allows.
    pub stale: i64,
}

/// Uses a nonce and records the appraisal; statements of one transaction.
macro_rules! record {
    ($tx:expr, $tenant:expr, $record:expr) => {{
        let (tenant, record): (&str, &AppraisalRecord) = ($tenant, $record);
        sqlx::query(
            "INSERT INTO appraisal (tenant, id, time, layer, verdict, code, policy, ueid, nonce, evidence, report, genuine, sha256, caller) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        )
        .bind(tenant)
        .bind(record.id.to_vec())
        .bind(record.time)
        .bind(record.layer)
        .bind(record.verdict)
        .bind(record.code)
        .bind(&record.policy)
        .bind(&record.ueid)
        .bind(&record.nonce)
        .bind(&record.evidence)
        .bind(&record.report)
        .bind(i64::from(record.genuine))
        .bind(record.sha256.to_vec())
        .bind(&record.caller)
        .execute(&mut *$tx)
        .await?;
        if record.genuine && !record.fresh {
            sqlx::query("UPDATE device SET highest_svn = $3 WHERE tenant = $1 AND ueid = $2 AND highest_svn < $3")
                .bind(tenant)
                .bind(&record.ueid)
                .bind(i64::try_from(record.proven_svn).unwrap_or(i64::MAX))
                .execute(&mut *$tx)
                .await?;
        } else if record.genuine {
            let appraised = if record.verdict == "accepted" { record.time } else { 0 };
            sqlx::query(
                "INSERT INTO device (tenant, ueid, first_seen, last_seen, last_appraised, verdict, target, kernel_svn, highest_svn) \
                 VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, ueid) DO UPDATE SET last_seen = excluded.last_seen, \
                 last_appraised = CASE WHEN excluded.last_appraised > 0 THEN excluded.last_appraised ELSE device.last_appraised END, \
                 verdict = excluded.verdict, target = excluded.target, kernel_svn = excluded.kernel_svn, \
                 highest_svn = CASE WHEN excluded.highest_svn > device.highest_svn THEN excluded.highest_svn ELSE device.highest_svn END",
            )
            .bind(tenant)
            .bind(&record.ueid)
            .bind(record.time)
            .bind(appraised)
            .bind(record.verdict)
            .bind(&record.target)
            .bind(i64::try_from(record.kernel_svn).unwrap_or(i64::MAX))
            .bind(i64::try_from(record.proven_svn).unwrap_or(i64::MAX))
            .execute(&mut *$tx)
            .await?;
        }
    }};
}
pub(crate) use record;

/// `INSERT` of a used challenge; one row if it was new. A challenge whose end ($5) is before the
/// time up to which nonces were deleted counts as used, so that a clock that steps back makes
/// nothing reusable. So does every challenge of a tenant that was erased since this number ($6).
macro_rules! use_under {
    ($lock:literal) => {
        concat!(
            "INSERT INTO used (tenant, nonce, expires, result) SELECT $1, $2, $3, $4 \
             WHERE $5 >= (SELECT swept FROM tenant WHERE name = $1 AND erased = COALESCE($6, erased)",
            $lock,
            ") ON CONFLICT (tenant, nonce) DO NOTHING"
        )
    };
}

/// The same where the tenant is locked already.
pub(crate) const USE: &str = use_under!("");

/// The same with a lock that only an erasure waits for, for SQLite and PostgreSQL.
const USE_LOCKING: [&str; 2] = [USE, use_under!(" FOR KEY SHARE")];

/// Why a challenge counts as used: its row is there, or it is from a time whose nonces are not known.
macro_rules! used_up {
    ($tx:expr, $tenant:expr, $challenge:expr) => {{
        let row: Option<(i64,)> =
            sqlx::query_as("SELECT expires FROM used WHERE tenant = $1 AND nonce = $2")
                .bind($tenant)
                .bind(&$challenge.token)
                .fetch_optional(&mut *$tx)
                .await?;
        $crate::problem::Because::because(
            $crate::problem::Kind::NonceUsed,
            match row {
                Some(_) => "evidence for this challenge was submitted before",
                None => {
                    "the session is from before the database was restored, the tenant erased or power lost: sessions from before are not \
                     accepted any more, ask for a new one"
                }
            },
        )
    }};
}
pub(crate) use used_up;

/// Deletes records of a tenant ($1) of genuine or other evidence ($2) beyond a number ($3), at most
/// $4 of them, but not one ($5). The oldest of the caller that has the most go first, so that no
/// caller pushes out the records of another that has fewer.
const TRIM: &str = "DELETE FROM appraisal WHERE tenant = $1 AND id <> $5 AND id IN (SELECT id FROM (SELECT id, time, \
     ROW_NUMBER() OVER (PARTITION BY caller ORDER BY time DESC, id DESC) AS place FROM appraisal WHERE tenant = $1 AND genuine = $2) AS placed \
     ORDER BY place, time DESC, id DESC LIMIT $4 OFFSET $3)";

/// Both counts come from the index over `last_appraised`, not from the rows.
const COUNTS: &str = "SELECT (SELECT COUNT(*) FROM device WHERE tenant = $2), \
     (SELECT COUNT(*) FROM device WHERE tenant = $2 AND last_appraised < $1)";

impl Store {
    /// Uses a challenge up and records the appraisal, in one transaction.
    ///
    /// # Errors
    /// The challenge was used before, or its session does not count any more; the tenant was erased;
    /// or the database does not answer. Nothing is recorded then.
    pub async fn use_challenge(
        &self,
        tenant: &str,
        challenge: &Challenge,
        kept: Option<&str>,
        record: &AppraisalRecord,
    ) -> Result<()> {
        let _turn = self.turns.quick(tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.quick.begin_with(pools.begin_quick).await?;
            let new = sqlx::query(self.by_database(USE_LOCKING))
                .bind(tenant)
                .bind(&challenge.token)
                .bind(challenge.remembered)
                .bind(kept)
                .bind(challenge.expires)
                .bind(self.served.erasures(tenant))
                .execute(&mut *tx)
                .await?
                .rows_affected();
            if new == 0 {
                lock!(self, tx, tenant, RECORD);
                return Err(used_up!(tx, tenant, challenge));
            }
            record!(tx, tenant, record);
            tx.commit().await?;
            Ok(())
        })
    }

    /// Records an appraisal that uses no nonce: evidence that no certified device signed. Anybody
    /// can send that, so only `unproven` are kept, apart from those of genuine evidence, and the
    /// same evidence of the same caller with the same result is kept once. Returns the record's id.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn record(
        &self,
        tenant: &str,
        record: &AppraisalRecord,
        unproven: i64,
    ) -> Result<Vec<u8>> {
        let _turn = self.turns.quick(tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.quick.begin_with(pools.begin_quick).await?;
            let known: Option<(Vec<u8>,)> = sqlx::query_as(
                "SELECT id FROM appraisal WHERE tenant = $1 AND sha256 = $2 AND caller = $3 AND code = $4 AND genuine = 0",
            )
            .bind(tenant)
            .bind(record.sha256.to_vec())
            .bind(&record.caller)
            .bind(record.code)
            .fetch_optional(&mut *tx)
            .await?;
            if let Some((id,)) = known {
                return Ok(id);
            }
            lock!(self, tx, tenant, RECORD);
            record!(tx, tenant, record);
            // Several at a time, because the number may have been lowered. The newest record stays,
            // whatever its place among those of the same second.
            sqlx::query(TRIM)
                .bind(tenant)
                .bind(0i64)
                .bind(unproven)
                .bind(64i64)
                .bind(record.id.to_vec())
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            Ok(record.id.to_vec())
        })
    }

    /// Ends a session without evidence so far; has no effect on a used one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn end_session(&self, tenant: &str, challenge: &Challenge) -> Result<()> {
        let _turn = self.turns.quick(tenant).await?;
        on!(self, |pools| {
            let (token, expires) = (&challenge.token, challenge.expires);
            sqlx::query(self.by_database(USE_LOCKING))
                .bind(tenant)
                .bind(token)
                .bind(expires)
                .bind(None::<String>)
                .bind(expires)
                .bind(self.served.erasures(tenant))
                .execute(&pools.quick)
                .await?;
            Ok(())
        })
    }

    /// The data kept with a used challenge; `None` if it is unused.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn kept(
        &self,
        tenant: &str,
        challenge: &Challenge,
    ) -> Result<Option<Option<String>>> {
        on!(self, |pools| {
            let row: Option<(Option<String>,)> =
                sqlx::query_as("SELECT result FROM used WHERE tenant = $1 AND nonce = $2")
                    .bind(tenant)
                    .bind(&challenge.token)
                    .fetch_optional(&pools.read)
                    .await?;
            Ok(row.map(|row| row.0))
        })
    }

    /// Appraisals, newest first, after the row of this time and id.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn appraisals(
        &self,
        tenant: &str,
        time: i64,
        id: &[u8],
        limit: i64,
    ) -> Result<Vec<AppraisalRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as(
                "SELECT id, time, layer, verdict, code, policy, ueid, nonce, evidence, sha256, report FROM appraisal \
                 WHERE tenant = $1 AND (time < $2 OR (time = $2 AND id > $3)) ORDER BY time DESC, id LIMIT $4",
            )
            .bind(tenant)
            .bind(time)
            .bind(id)
            .bind(limit)
            .fetch_all(&pools.read)
            .await?)
        })
    }

    /// One appraisal.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn appraisal(&self, tenant: &str, id: &[u8]) -> Result<Option<AppraisalRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as(
                "SELECT id, time, layer, verdict, code, policy, ueid, nonce, evidence, sha256, report FROM appraisal WHERE tenant = $1 AND id = $2",
            )
            .bind(tenant)
            .bind(id)
            .fetch_optional(&pools.read)
            .await?)
        })
    }

    /// Devices by identity, after this one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn devices(&self, tenant: &str, after: &[u8], limit: i64) -> Result<Vec<DeviceRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as(
                "SELECT ueid, first_seen, last_seen, last_appraised, verdict, target, kernel_svn, highest_svn FROM device \
                 WHERE tenant = $1 AND ueid > $2 ORDER BY ueid LIMIT $3",
            )
            .bind(tenant)
            .bind(after)
            .bind(limit)
            .fetch_all(&pools.read)
            .await?)
        })
    }

    /// One device.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn device(&self, tenant: &str, ueid: &[u8]) -> Result<Option<DeviceRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as(
                "SELECT ueid, first_seen, last_seen, last_appraised, verdict, target, kernel_svn, highest_svn FROM device WHERE tenant = $1 AND ueid = $2",
            )
            .bind(tenant)
            .bind(ueid)
            .fetch_optional(&pools.read)
            .await?)
        })
    }

    /// Removes a device that was never accepted, or that is revoked. Its highest version goes too,
    /// below which its evidence would be denied.
    ///
    /// # Errors
    /// There is no such device, it was accepted and is not revoked, or the database does not
    /// answer.
    pub async fn forget_device(&self, event: &Event<'_>, ueid: &[u8]) -> Result<()> {
        let _turn = self.turns.durable(event.tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            lock!(self, tx, event.tenant, CHANGE);
            let row: Option<(i64, i64)> = sqlx::query_as(
                "SELECT last_appraised, (SELECT COUNT(*) FROM revocation WHERE tenant = $1 AND kind = 'device' AND value = $3) FROM device \
                 WHERE tenant = $1 AND ueid = $2",
            )
            .bind(event.tenant)
            .bind(ueid)
            .bind(hex::encode(ueid))
            .fetch_optional(&mut *tx)
            .await?;
            let (appraised, revoked) =
                row.ok_or_else(|| Kind::NotFound.because("there is no such device"))?;
            if appraised > 0 && revoked == 0 {
                return Err(Kind::Known.because(
                    "the device was accepted, and is not revoked: revoke it first, so that it cannot come back with an older kernel",
                ));
            }
            sqlx::query("DELETE FROM device WHERE tenant = $1 AND ueid = $2")
                .bind(event.tenant)
                .bind(ueid)
                .execute(&mut *tx)
                .await?;
            record_event!(tx, event, "device-forget", hex::encode(ueid));
            tx.commit().await?;
            Ok(())
        })
    }

    /// How many devices a tenant has, and how many were not accepted since `since`.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn device_counts(&self, tenant: &str, since: i64) -> Result<DeviceCounts> {
        on!(self, |pools| {
            let (all, stale): (i64, i64) =
                sqlx::query_as(COUNTS).bind(since).bind(tenant).fetch_one(&pools.read).await?;
            Ok(DeviceCounts { all, stale })
        })
    }

    /// A replica's time, or that of the PostgreSQL server if it is earlier: all replicas lose the rows
    /// that one deletes, and count sessions that ended before then as used.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn witnessed(&self, now: i64) -> Result<i64> {
        let Backend::Postgres(pools) = &self.backend else { return Ok(now) };
        let (there,): (i64,) = sqlx::query_as("SELECT EXTRACT(EPOCH FROM now())::BIGINT")
            .fetch_one(&pools.read)
            .await?;
        Ok(now.min(there))
    }

    /// Deletes expired data: used nonces and boxes past their time, appraisals beyond the number
    /// kept.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sweep(&self, tenant: &str, now: i64, appraisals: i64) -> Result<()> {
        let _turn = self.turns.quick(tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.quick.begin_with(pools.begin_quick).await?;
            // A minute more than needed: clocks of replicas differ a little.
            sqlx::query("UPDATE tenant SET swept = $2 WHERE name = $1 AND swept < $2")
                .bind(tenant)
                .bind(now - 60)
                .execute(&mut *tx)
                .await?;
            sqlx::query(TRIM)
                .bind(tenant)
                .bind(1i64)
                .bind(appraisals)
                .bind(i64::MAX)
                .bind(Vec::<u8>::new())
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            // From here on, these sessions count as used without their rows.
            for delete in [SWEEP_USED, SWEEP_RELEASED] {
                loop {
                    let deleted = sqlx::query(delete)
                        .bind(tenant)
                        .bind(now - 60)
                        .bind(PART as i64)
                        .execute(&pools.quick)
                        .await?
                        .rows_affected();
                    if deleted < PART {
                        break;
                    }
                }
            }
            Ok(())
        })
    }
}

/// Rows that are deleted at a time, so that others wait for milliseconds, and a part stays done.
const PART: u64 = 5000;
const SWEEP_USED: &str = "DELETE FROM used WHERE tenant = $1 AND nonce IN \
     (SELECT nonce FROM used WHERE tenant = $1 AND expires < $2 LIMIT $3)";
const SWEEP_RELEASED: &str = "DELETE FROM released WHERE tenant = $1 AND (name, version, evidence) IN \
     (SELECT name, version, evidence FROM released WHERE tenant = $1 AND expires < $2 LIMIT $3)";
