//! Keys, their versions, releases and receipts.

use shef_proto::event;
use shef_proto::receipt::{self, Head};

use super::events::{Event, LOCK, last_event, record_event};
use super::quota::hold_quota;
use super::records::{AppraisalRecord, USE, record};
use super::rekey::hold_kek;
use super::{Store, on, row};
use crate::problem::{Kind, Problem, Result};
use crate::secrets::{Kek, key_parts};
use crate::session::Challenge;

/// A key.
#[derive(Clone, Debug)]
pub struct KeyRow {
    /// Name.
    pub name: String,
    /// Layer of the evidence that it is released for.
    pub layer: String,
    /// 1 if all versions are disabled.
    pub disabled: i64,
    /// Newest version.
    pub version: i64,
    /// 1 if that version is disabled.
    pub version_disabled: i64,
    /// 1 if it may go to any key of the host.
    pub to_host: i64,
}

row!(KeyRow { name, layer, disabled, version, version_disabled, to_host });

/// Selects a [`KeyRow`].
macro_rules! select_key {
    ($rest:literal) => {
        concat!(
            "SELECT k.name, k.layer, k.disabled, k.version, v.disabled AS version_disabled, k.to_host \
             FROM key_name k JOIN key_version v USING (tenant, name, version) WHERE ",
            $rest
        )
    };
}

/// One version of a key.
#[derive(Clone, Debug)]
pub struct KeyVersionRow {
    /// Version, from 1.
    pub version: i64,
    /// The secret, sealed under the KEK.
    pub sealed: Vec<u8>,
    /// Its policy.
    pub policy: String,
    /// Version of the policy, frozen.
    pub policy_version: i64,
    /// Maximum number of releases; 0: unlimited.
    pub max_releases: i64,
    /// Releases so far.
    pub released: i64,
    /// First second of its validity window.
    pub not_before: i64,
    /// End of its validity window; 0: unlimited.
    pub not_after: i64,
    /// 1 if this version is disabled.
    pub disabled: i64,
    /// Seconds since 1970.
    pub created: i64,
}

row!(KeyVersionRow {
    version,
    sealed,
    policy,
    policy_version,
    max_releases,
    released,
    not_before,
    not_after,
    disabled,
    created
});

/// A version to add.
#[derive(Clone, Debug)]
pub struct NewVersion {
    /// Its policy.
    pub policy: String,
    /// Version of the policy.
    pub policy_version: i64,
    /// Maximum number of releases; 0: unlimited.
    pub max_releases: i64,
    /// First second of its validity window.
    pub not_before: i64,
    /// End of its validity window; 0: unlimited.
    pub not_after: i64,
    /// Seconds since 1970.
    pub created: i64,
}

/// A release to commit.
pub struct NewRelease<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Key.
    pub name: &'a str,
    /// Its version.
    pub version: i64,
    /// Digest of the evidence.
    pub evidence: [u8; 32],
    /// Public key that the box is sealed to.
    pub recipient: &'a [u8],
    /// The challenge.
    pub challenge: &'a Challenge,
    /// Whether an earlier attestation, on which this release relies, used the challenge up.
    pub used: bool,
    /// Expiry of the box.
    pub expires: i64,
    /// Now.
    pub now: i64,
    /// Generation of the collateral in the appraisal.
    pub generation: i64,
    /// The appraisal.
    pub record: &'a AppraisalRecord,
}

impl NewRelease<'_> {
    /// Checks that the service still remembers the session.
    fn check_session(&self) -> Result<()> {
        if self.now >= self.challenge.remembered {
            let ago = self.now - self.challenge.remembered;
            return Err(
                Kind::SessionExpired.because(format!("the session ended {ago} seconds ago"))
            );
        }
        Ok(())
    }
}

/// What limits the releases of a key version.
struct LimitsRow {
    disabled: i64,
    key_disabled: i64,
    released: i64,
    max_releases: i64,
    not_before: i64,
    not_after: i64,
}

row!(LimitsRow { disabled, key_disabled, released, max_releases, not_before, not_after });

/// Selects a [`LimitsRow`].
const LIMITS: &str = "SELECT v.disabled, n.disabled AS key_disabled, v.released, v.max_releases, v.not_before, v.not_after \
     FROM key_version v JOIN key_name n ON n.tenant = v.tenant AND n.name = v.name \
     WHERE v.tenant = $1 AND v.name = $2 AND v.version = $3";

impl LimitsRow {
    /// Checks that neither the key nor the version is disabled.
    fn check_enabled(&self, new: &NewRelease<'_>) -> Result<()> {
        if self.disabled != 0 || self.key_disabled != 0 {
            return Err(
                Kind::KeyDisabled.because(format!("key {} version {}", new.name, new.version))
            );
        }
        Ok(())
    }

    /// Checks the validity window and the number of releases.
    fn check_release(&self, now: i64) -> Result<()> {
        let (from, to) = (self.not_before, self.not_after);
        if now < from || (to != 0 && now >= to) {
            return Err(
                Kind::KeyWindow.because(format!("now is {now}, the window is {from} to {to}"))
            );
        }
        let (released, most) = (self.released, self.max_releases);
        if most != 0 && released >= most {
            return Err(Kind::KeyExhausted.because(format!("released {released} times of {most}")));
        }
        Ok(())
    }
}

/// A committed release.
#[derive(Clone, Debug)]
pub struct Released {
    /// The box.
    pub bytes: Vec<u8>,
    /// Its receipt.
    pub receipt: Vec<u8>,
    /// Head of the tenant's chain at the release: its own receipt.
    pub head: Head,
    /// Expiry of the box.
    pub expires: i64,
    /// False if it was committed earlier and is returned again.
    pub fresh: bool,
}

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

fn head_of(seq: i64, digest: &[u8]) -> Result<Head> {
    let digest = digest.try_into().map_err(|_| {
        Kind::Internal.because("the stored head of the receipts has a wrong length")
    })?;
    Ok(Head { seq: seq.max(0) as u64, digest })
}

/// The earlier release of the same key version for the same evidence, if there is one.
macro_rules! released_before {
    ($tx:expr, $new:expr) => {{
        let new: &NewRelease<'_> = $new;
        let before: Option<(Vec<u8>, Vec<u8>, i64, i64)> = sqlx::query_as(
            "SELECT recipient, box, seq, expires FROM released WHERE tenant = $1 AND name = $2 AND version = $3 AND evidence = $4",
        )
        .bind(new.tenant)
        .bind(new.name)
        .bind(new.version)
        .bind(new.evidence.to_vec())
        .fetch_optional(&mut *$tx)
        .await?;
        match before {
            None => None,
            Some((recipient, bytes, seq, expires)) => {
                if recipient != new.recipient {
                    return Err(Kind::NonceUsed
                        .because("this evidence had the key released to another recipient"));
                }
                if new.now >= expires {
                    return Err(Kind::SessionExpired.because("the box has ended; attest again"));
                }
                let (receipt,): (Vec<u8>,) =
                    sqlx::query_as("SELECT content FROM receipt WHERE tenant = $1 AND seq = $2")
                        .bind(new.tenant)
                        .bind(seq)
                        .fetch_one(&mut *$tx)
                        .await?;
                let head = head_of(seq, &receipt::digest(&receipt))?;
                Some(Released { bytes, receipt, head, expires, fresh: false })
            }
        }
    }};
}

/// Uses the nonce of a release's challenge.
macro_rules! use_nonce {
    ($tx:expr, $new:expr) => {{
        let new: &NewRelease<'_> = $new;
        let used = sqlx::query(USE)
            .bind(new.tenant)
            .bind(&new.challenge.token)
            .bind(new.challenge.expires.max(new.expires))
            .bind(None::<String>)
            .bind(new.challenge.expires)
            .execute(&mut *$tx)
            .await?
            .rows_affected();
        if used == 0 {
            return Err(Kind::NonceUsed.because("evidence for this challenge was submitted before"));
        }
    }};
}

/// Counts a release, and inserts its box, its receipt and the new head of the tenant's chain.
macro_rules! insert_release {
    ($tx:expr, $new:expr, $released:expr) => {{
        let (new, released): (&NewRelease<'_>, &Released) = ($new, &$released);
        let seq = released.head.seq as i64;
        sqlx::query("UPDATE key_version SET released = released + 1 WHERE tenant = $1 AND name = $2 AND version = $3")
            .bind(new.tenant)
            .bind(new.name)
            .bind(new.version)
            .execute(&mut *$tx)
            .await?;
        sqlx::query(
            "INSERT INTO released (tenant, name, version, evidence, recipient, box, seq, expires) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(new.tenant)
        .bind(new.name)
        .bind(new.version)
        .bind(new.evidence.to_vec())
        .bind(new.recipient)
        .bind(&released.bytes)
        .bind(seq)
        .bind(released.expires)
        .execute(&mut *$tx)
        .await?;
        sqlx::query("INSERT INTO receipt (tenant, seq, time, name, content) VALUES ($1, $2, $3, $4, $5)")
            .bind(new.tenant)
            .bind(seq)
            .bind(new.now)
            .bind(new.name)
            .bind(&released.receipt)
            .execute(&mut *$tx)
            .await?;
        sqlx::query("UPDATE tenant SET head = $2 WHERE name = $1")
            .bind(new.tenant)
            .bind(released.head.digest.to_vec())
            .execute(&mut *$tx)
            .await?;
    }};
}

impl Store {
    /// Adds a key with its first version (with `new_key`: its layer, and whether it may go to any
    /// key of the host), or a version to a key. Returns the version's number.
    ///
    /// The secret is sealed under the KEK, bound to tenant, name and that number.
    ///
    /// # Errors
    /// The key exists, or does not, the tenant stores too much, the KEK was rotated, or the
    /// database does not answer.
    pub async fn add_version(
        &self,
        event: &Event<'_>,
        name: &str,
        new_key: Option<(&str, bool)>,
        new: &NewVersion,
        kek: &Kek,
        secret: &[u8],
    ) -> Result<i64> {
        let _turn = self.turns.durable(event.tenant).await?;
        let tenant = event.tenant;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            hold_kek!(tx, kek);
            sqlx::query(LOCK).bind(tenant).execute(&mut *tx).await?;
            let version = match new_key {
                Some((layer, to_host)) => {
                    let added: Option<(i64,)> = sqlx::query_as(
                        "INSERT INTO key_name (tenant, name, layer, disabled, version, to_host) VALUES ($1, $2, $3, 0, \
                         1 + COALESCE((SELECT version FROM gone WHERE tenant = $1 AND kind = 'key' AND name = $2), 0), $4) \
                         ON CONFLICT (tenant, name) DO NOTHING RETURNING version",
                    )
                    .bind(tenant)
                    .bind(name)
                    .bind(layer)
                    .bind(i64::from(to_host))
                    .fetch_optional(&mut *tx)
                    .await?;
                    added.ok_or_else(|| Kind::Conflict.because(format!("key {name} exists")))?.0
                }
                None => {
                    let row: Option<(i64,)> =
                        sqlx::query_as("UPDATE key_name SET version = version + 1 WHERE tenant = $1 AND name = $2 RETURNING version")
                            .bind(tenant)
                            .bind(name)
                            .fetch_optional(&mut *tx)
                            .await?;
                    row.ok_or_else(|| Kind::NotFound.because(format!("there is no key {name}")))?.0
                }
            };
            let policy: Option<(i64,)> = sqlx::query_as(
                "SELECT version FROM policy WHERE tenant = $1 AND name = $2 AND version = $3",
            )
            .bind(tenant)
            .bind(&new.policy)
            .bind(new.policy_version)
            .fetch_optional(&mut *tx)
            .await?;
            if policy.is_none() {
                return Err(Kind::NotFound
                    .because(format!("policy {}@{} was removed", new.policy, new.policy_version)));
            }
            sqlx::query(
                "INSERT INTO key_version (tenant, name, version, sealed, policy, policy_version, max_releases, released, not_before, \
                 not_after, disabled, created) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, 0, $10)",
            )
            .bind(tenant)
            .bind(name)
            .bind(version)
            .bind(kek.seal(&key_parts(tenant, name, &version.to_be_bytes()), secret))
            .bind(&new.policy)
            .bind(new.policy_version)
            .bind(new.max_releases)
            .bind(new.not_before)
            .bind(new.not_after)
            .bind(new.created)
            .execute(&mut *tx)
            .await?;
            hold_quota!(self, tx, tenant, false);
            record_event!(
                tx,
                event,
                if new_key.is_some() { "key-add" } else { "key-rotate" },
                format!("{name} version {version}")
            );
            tx.commit().await?;
            Ok(version)
        })
    }

    /// A key with its versions, newest first.
    ///
    /// # Errors
    /// There is no such key, or the database does not answer.
    pub async fn key(&self, tenant: &str, name: &str) -> Result<(KeyRow, Vec<KeyVersionRow>)> {
        on!(self, |pools| {
            let key: Option<KeyRow> = sqlx::query_as(select_key!("tenant = $1 AND name = $2"))
                .bind(tenant)
                .bind(name)
                .fetch_optional(&pools.read)
                .await?;
            let key =
                key.ok_or_else(|| Kind::NotFound.because(format!("there is no key {name}")))?;
            let versions = sqlx::query_as(
                "SELECT version, sealed, policy, policy_version, max_releases, released, not_before, not_after, disabled, created \
                 FROM key_version WHERE tenant = $1 AND name = $2 ORDER BY version DESC",
            )
            .bind(tenant)
            .bind(name)
            .fetch_all(&pools.read)
            .await?;
            Ok((key, versions))
        })
    }

    /// The version of a key that was released for this evidence; `None` without one, and after
    /// its box has expired.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn released_version(
        &self,
        tenant: &str,
        name: &str,
        evidence: &[u8; 32],
    ) -> Result<Option<i64>> {
        on!(self, |pools| {
            let version: Option<(i64,)> = sqlx::query_as(
                "SELECT r.version FROM key_version v JOIN released r ON r.tenant = v.tenant AND r.name = v.name \
                 AND r.version = v.version AND r.evidence = $3 WHERE v.tenant = $1 AND v.name = $2 ORDER BY r.version LIMIT 1",
            )
            .bind(tenant)
            .bind(name)
            .bind(evidence.to_vec())
            .fetch_optional(&pools.read)
            .await?;
            Ok(version.map(|(version,)| version))
        })
    }

    /// Keys by name, after this one.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn keys(&self, tenant: &str, after: &str, limit: i64) -> Result<Vec<KeyRow>> {
        on!(self, |pools| {
            Ok(sqlx::query_as(select_key!("tenant = $1 AND name > $2 ORDER BY name LIMIT $3"))
                .bind(tenant)
                .bind(after)
                .bind(limit)
                .fetch_all(&pools.read)
                .await?)
        })
    }

    /// Disables or enables a key, or one version of it. Returns its name in the event, or `None` if
    /// nothing changed.
    ///
    /// # Errors
    /// There is no such key or version, or the database does not answer.
    pub async fn disable_key(
        &self,
        event: &Event<'_>,
        name: &str,
        version: Option<i64>,
        disabled: bool,
    ) -> Result<Option<String>> {
        let _turn = self.turns.durable(event.tenant).await?;
        on!(self, |pools| {
            let (tenant, off) = (event.tenant, i64::from(disabled));
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(LOCK).bind(tenant).execute(&mut *tx).await?;
            let known: Option<(i64,)> = match version {
                None => sqlx::query_as("SELECT disabled FROM key_name WHERE tenant = $1 AND name = $2").bind(tenant).bind(name),
                Some(version) => sqlx::query_as("SELECT disabled FROM key_version WHERE tenant = $1 AND name = $2 AND version = $3")
                    .bind(tenant)
                    .bind(name)
                    .bind(version),
            }
            .fetch_optional(&mut *tx)
            .await?;
            let Some((known,)) = known else {
                return Err(Kind::NotFound.because("there is no such key or version"));
            };
            if known == off {
                return Ok(None);
            }
            match version {
                None => sqlx::query("UPDATE key_name SET disabled = $3 WHERE tenant = $1 AND name = $2").bind(tenant).bind(name).bind(off),
                Some(version) => sqlx::query("UPDATE key_version SET disabled = $3 WHERE tenant = $1 AND name = $2 AND version = $4")
                    .bind(tenant)
                    .bind(name)
                    .bind(off)
                    .bind(version),
            }
            .execute(&mut *tx)
            .await?;
            let what = version
                .map_or_else(|| name.to_owned(), |version| format!("{name} version {version}"));
            record_event!(
                tx,
                event,
                if disabled { "key-disable" } else { "key-enable" },
                what.as_str()
            );
            tx.commit().await?;
            Ok(Some(what))
        })
    }

    /// Commits a release: nonce, count, box, receipt and head in one transaction, on disk before
    /// the response. The same evidence for the same key version gets the same bytes again until
    /// they expire, without another count.
    ///
    /// `make` receives the head of the chain and the newest event, and returns box and receipt.
    /// `Ok(None)`: the collateral has changed since the appraisal.
    ///
    /// # Errors
    /// The nonce was used for something else, the session or the box has expired, a limit of the
    /// key was reached, or the database does not answer.
    pub async fn release(
        &self,
        new: &NewRelease<'_>,
        make: impl FnOnce(Head, Option<Head>) -> Result<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Released>> {
        let _turn = self.turns.durable(new.tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            // The tenant's row is the lock under which its chain grows.
            let (seq, head, generation): (i64, Vec<u8>, i64) = sqlx::query_as(
                "UPDATE tenant SET seq = seq + 1 WHERE name = $1 RETURNING seq, head, generation",
            )
            .bind(new.tenant)
            .fetch_one(&mut *tx)
            .await?;
            if generation != new.generation {
                return Ok(None);
            }
            let limits: Option<LimitsRow> = sqlx::query_as(LIMITS)
                .bind(new.tenant)
                .bind(new.name)
                .bind(new.version)
                .fetch_optional(&mut *tx)
                .await?;
            let limits = limits.ok_or_else(|| {
                Kind::NotFound.because(format!("key {} has no version {}", new.name, new.version))
            })?;
            limits.check_enabled(new)?;
            if let Some(released) = released_before!(tx, new) {
                return Ok(Some(released));
            }
            new.check_session()?;
            limits.check_release(new.now)?;
            if !new.used {
                use_nonce!(tx, new);
            }
            let events = last_event!(tx, new.tenant);
            let events = match events {
                None => Some(event::NONE),
                Some((seq, digest)) if !digest.is_empty() => Some(head_of(seq, &digest)?),
                Some((seq, _)) => {
                    // Events of version 0.1 have no digest, and precede all that have one.
                    let later: Option<(i64,)> = sqlx::query_as(
                        "SELECT seq FROM event WHERE tenant = $1 AND OCTET_LENGTH(digest) > 0 LIMIT 1",
                    )
                    .bind(new.tenant)
                    .fetch_optional(&mut *tx)
                    .await?;
                    if later.is_some() {
                        return Err(Kind::Broken.because(format!(
                            "event {seq} has lost its digest: audit the database"
                        )));
                    }
                    None
                }
            };
            let (bytes, receipt) = make(head_of(seq - 1, &head)?, events)?;
            let head = head_of(seq, &receipt::digest(&receipt))?;
            let released = Released { bytes, receipt, head, expires: new.expires, fresh: true };
            insert_release!(tx, new, released);
            record!(tx, new.tenant, new.record);
            tx.commit().await?;
            Ok(Some(released))
        })
    }

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
