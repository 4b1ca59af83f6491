//! Keys and their versions.

use super::erased::{CHANGE, lock};
use super::events::{Event, record_event};
use super::quota::hold_quota;
use super::rekey::hold_kek;
use super::{Store, on, row};
use crate::problem::{Because, Kind, Result};
use crate::secrets::{Kek, key_parts};

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

/// The name of a key, or of one version of it, in events.
pub(super) fn named(name: &str, version: Option<i64>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} version {version}"))
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
            lock!(self, tx, tenant, CHANGE);
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
                named(name, Some(version))
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
            lock!(self, tx, tenant, CHANGE);
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
            let what = named(name, version);
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
}
