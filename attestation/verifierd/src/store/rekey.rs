//! The KEK that seals everything at rest: its identity, and its rotation.

use super::erased::{CHANGE, lock};
use super::events::{Event, record_event};
use super::{Store, on};
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::{Kek, key_parts, resource_parts};

/// Parts that seal the row that names the KEK.
const PARTS: [&[u8]; 1] = [b"shef-verifierd KEK check"];

/// Reads that row.
const NAMED: &str = "SELECT content FROM meta WHERE name = 'kek'";

/// Rows to reseal at a time.
const PAGE: i64 = 256;

fn opens(kek: &Kek, sealed: &str) -> bool {
    hex::decode(sealed).is_ok_and(|sealed| kek.open(&PARTS, &sealed).is_some())
}

fn wrong() -> Problem {
    Kind::WrongKek.because("the KEK file does not open what this database holds").retry_after(1)
}

pub(super) fn expect(kek: &Kek, sealed: &str) -> Result<()> {
    if opens(kek, sealed) { Ok(()) } else { Err(wrong()) }
}

/// Locks the row that names the KEK until the end of a transaction: everything sealed in it uses
/// the KEK of the database, although another process may rotate that.
macro_rules! hold_kek {
    ($tx:expr, $kek:expr) => {{
        let held: (String,) =
            sqlx::query_as("UPDATE meta SET number = number WHERE name = 'kek' RETURNING content")
                .fetch_one(&mut *$tx)
                .await?;
        $crate::store::rekey::expect($kek, &held.0)?;
    }};
}
pub(super) use hold_kek;

/// Unseals under the old KEK and reseals under the new one.
fn again(
    old: &Kek,
    new: &Kek,
    parts: &[&[u8]],
    sealed: &[u8],
    what: impl FnOnce() -> String,
) -> Result<Vec<u8>> {
    let secret = old.open(parts, sealed);
    let secret = secret.ok_or_else(|| {
        Kind::WrongKek
            .because(format!("{} does not open under the KEK; nothing was changed", what()))
    })?;
    Ok(new.seal(parts, &secret))
}

impl Store {
    /// Checks that the database is sealed under this KEK; a new database uses it from now on.
    ///
    /// # Errors
    /// The database is sealed under another KEK, or does not answer.
    pub async fn check_kek(&self, kek: &Kek) -> Result<()> {
        on!(self, |pools| {
            let named: Option<(String,)> =
                sqlx::query_as(NAMED).fetch_optional(&pools.read).await?;
            if let Some((sealed,)) = named {
                return expect(kek, &sealed);
            }
            sqlx::query("INSERT INTO meta (name, number, content) VALUES ('kek', 0, $1) ON CONFLICT (name) DO NOTHING")
                .bind(hex::encode(kek.seal(&PARTS, b"")))
                .execute(&pools.durable)
                .await?;
            let (sealed,): (String,) = sqlx::query_as(NAMED).fetch_one(&pools.durable).await?;
            expect(kek, &sealed)
        })
    }

    /// Checks that the database is sealed under this KEK, without changes.
    ///
    /// # Errors
    /// The database is sealed under another KEK, has no KEK, or does not answer.
    pub async fn expect_kek(&self, kek: &Kek) -> Result<()> {
        let named: Option<(String,)> =
            on!(self, |pools| sqlx::query_as(NAMED).fetch_optional(&pools.read).await?);
        let (sealed,) = named.ok_or_else(|| {
            Kind::Store.because("the database names no KEK: it is damaged, or not this service's")
        })?;
        expect(kek, &sealed)
    }

    /// Reseals everything at rest under another KEK, in one transaction: after a crash, all of it
    /// is under one KEK. Returns how many secrets there were; `None` if they are under the new KEK
    /// already.
    ///
    /// # Errors
    /// The database or one of its secrets does not open under the old KEK, or the database does not
    /// answer.
    pub async fn rekey(&self, old: &Kek, new: &Kek, now: i64) -> Result<Option<u64>> {
        let tenants = self.tenants().await?;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            // First the row that every transaction with seals locks: earlier ones have finished,
            // later ones find the new KEK.
            let (named,): (String,) = sqlx::query_as(
                "UPDATE meta SET number = number WHERE name = 'kek' RETURNING content",
            )
            .fetch_one(&mut *tx)
            .await?;
            if opens(new, &named) {
                return Ok(None);
            }
            expect(old, &named)?;
            let mut count = 0;
            let mut last = (String::new(), String::new(), 0);
            loop {
                let rows: Vec<(String, String, i64, Vec<u8>)> = sqlx::query_as(
                    "SELECT tenant, name, version, sealed FROM key_version WHERE (tenant, name, version) > ($1, $2, $3) \
                     ORDER BY tenant, name, version LIMIT $4",
                )
                .bind(&last.0)
                .bind(&last.1)
                .bind(last.2)
                .bind(PAGE)
                .fetch_all(&mut *tx)
                .await?;
                let Some((tenant, name, version, _)) = rows.last() else { break };
                last = (tenant.clone(), name.clone(), *version);
                for (tenant, name, version, sealed) in &rows {
                    let number = version.to_be_bytes();
                    let what = || format!("key {name} version {version} of tenant {tenant}");
                    sqlx::query("UPDATE key_version SET sealed = $4 WHERE tenant = $1 AND name = $2 AND version = $3")
                        .bind(tenant)
                        .bind(name)
                        .bind(version)
                        .bind(again(old, new, &key_parts(tenant, name, &number), sealed, what)?)
                        .execute(&mut *tx)
                        .await?;
                    count += 1;
                }
            }
            sqlx::query("UPDATE meta SET content = $1 WHERE name = 'kek'")
                .bind(hex::encode(new.seal(&PARTS, b"")))
                .execute(&mut *tx)
                .await?;
            for tenant in &tenants {
                lock!(self, tx, tenant, CHANGE);
                record_event!(tx, &Event::own(tenant, now), "rekey", count.to_string());
            }
            tx.commit().await?;
            Ok(Some(count))
        })
    }

    /// Converts resources of older versions to keys, named by their paths, for evidence of the
    /// kernel's layer under the tenant's policy `default`.
    ///
    /// # Errors
    /// One of them does not open, or the database does not answer; nothing is changed then.
    pub async fn adopt_resources(&self, kek: &Kek) -> Result<()> {
        on!(self, |pools| {
            let any: Option<(i64,)> = sqlx::query_as("SELECT created FROM resource LIMIT 1")
                .fetch_optional(&pools.read)
                .await?;
            if any.is_none() {
                return Ok(());
            }
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            hold_kek!(tx, kek);
            let rows: Vec<(String, String, Vec<u8>, i64)> =
                sqlx::query_as("SELECT tenant, path, sealed, created FROM resource")
                    .fetch_all(&mut *tx)
                    .await?;
            for (tenant, path, sealed, created) in &rows {
                let secret = kek.open(&resource_parts(tenant, path), sealed);
                let secret = secret.ok_or_else(|| {
                    Kind::WrongKek
                        .because(format!("resource {path} of tenant {tenant} does not open"))
                })?;
                sqlx::query("INSERT INTO key_name (tenant, name, layer, disabled, version, to_host) VALUES ($1, $2, 'kernel', 0, 1, 0)")
                    .bind(tenant)
                    .bind(path)
                    .execute(&mut *tx)
                    .await?;
                sqlx::query(
                    "INSERT INTO key_version (tenant, name, version, sealed, policy, policy_version, max_releases, released, not_before, \
                     not_after, disabled, created) VALUES ($1, $2, 1, $3, 'default', \
                     (SELECT COALESCE(MAX(version), 0) FROM policy WHERE tenant = $1 AND name = 'default'), 0, 0, 0, 0, 0, $4)",
                )
                .bind(tenant)
                .bind(path)
                .bind(kek.seal(&key_parts(tenant, path, &1i64.to_be_bytes()), &secret))
                .bind(created)
                .execute(&mut *tx)
                .await?;
            }
            sqlx::query("DELETE FROM resource").execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(())
        })
    }
}
