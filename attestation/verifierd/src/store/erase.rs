//! Deletes keys and tenants, and erases what was deleted from the files of the database.

use std::time::Duration;

use super::erased::{CHANGE, lock};
use super::events::{Event, record_event};
use super::keys::named;
use super::{Backend, Store, on};
use crate::problem::{Because, Kind, Result};

/// How often to try emptying a journal that has readers.
const TRIES: u32 = 250;

/// What a tenant's erasure deletes: everything but the chains of receipts and events, and the
/// numbers of deleted keys and policies.
const TABLES: [&str; 12] = [
    "anchor",
    "signer",
    "corim",
    "corim_version",
    "policy",
    "revocation",
    "device",
    "appraisal",
    "used",
    "released",
    "key_version",
    "key_name",
];

/// Excludes the locks under which something is added to a tenant, for SQLite and PostgreSQL.
const ALONE: [&str; 2] = [
    "SELECT erased FROM tenant WHERE name = $1",
    "SELECT erased FROM tenant WHERE name = $1 FOR UPDATE",
];

/// Remembers the highest version of a key or policy that is deleted.
macro_rules! remember_gone {
    ($tx:expr, $tenant:expr, $kind:expr, $name:expr, $version:expr) => {
        sqlx::query(
            "INSERT INTO gone (tenant, kind, name, version) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, kind, name) \
             DO UPDATE SET version = excluded.version",
        )
        .bind($tenant)
        .bind($kind)
        .bind($name)
        .bind($version)
        .execute(&mut *$tx)
        .await?
    };
}
pub(super) use remember_gone;

impl Store {
    /// Deletes a key with all of its versions, or one version that is not the newest, and the boxes
    /// of its releases. Receipts stay. Returns its name in the event.
    ///
    /// # Errors
    /// There is no such key or version, the version is the newest, or the database does not answer.
    pub async fn delete_key(
        &self,
        event: &Event<'_>,
        name: &str,
        version: Option<i64>,
    ) -> Result<String> {
        let _turn = self.turns.durable(event.tenant).await?;
        let tenant = event.tenant;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            lock!(self, tx, tenant, CHANGE);
            let newest: Option<(i64,)> =
                sqlx::query_as("SELECT version FROM key_name WHERE tenant = $1 AND name = $2")
                    .bind(tenant)
                    .bind(name)
                    .fetch_optional(&mut *tx)
                    .await?;
            let (newest,) =
                newest.ok_or_else(|| Kind::NotFound.because(format!("there is no key {name}")))?;
            if version == Some(newest) {
                return Err(Kind::InUse
                    .because(format!("version {newest} is the newest version of key {name}")));
            }
            let mut deleted = 0;
            for sql in [
                "DELETE FROM released WHERE tenant = $1 AND name = $2 AND version = COALESCE($3, version)",
                "DELETE FROM key_version WHERE tenant = $1 AND name = $2 AND version = COALESCE($3, version)",
            ] {
                deleted = sqlx::query(sql)
                    .bind(tenant)
                    .bind(name)
                    .bind(version)
                    .execute(&mut *tx)
                    .await?
                    .rows_affected();
            }
            if let Some(version) = version
                && deleted == 0
            {
                let text = format!("key {name} has no version {version}");
                return Err(Kind::NotFound.because(text));
            }
            if version.is_none() {
                sqlx::query("DELETE FROM key_name WHERE tenant = $1 AND name = $2")
                    .bind(tenant)
                    .bind(name)
                    .execute(&mut *tx)
                    .await?;
                remember_gone!(tx, tenant, "key", name, newest);
            }
            let what = named(name, version);
            record_event!(tx, event, "key-delete", what.as_str());
            tx.commit().await?;
            Ok(what)
        })
    }

    /// Deletes everything of a tenant but its receipts and events, whose chains go on if the tenant
    /// comes back. Replicas that still have it add nothing to it from then on. Its sessions that end before `until` count as used.
    ///
    /// # Errors
    /// There is no such tenant, or the database does not answer.
    pub async fn erase_tenant(&self, event: &Event<'_>, until: i64) -> Result<()> {
        let _turn = self.turns.durable(event.tenant).await?;
        let tenant = event.tenant;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            // Waits for what is being added.
            sqlx::query(self.by_database(ALONE)).bind(tenant).execute(&mut *tx).await?;
            let known = sqlx::query(
                "UPDATE tenant SET generation = generation + 1, erased = erased + 1, swept = CASE WHEN swept < $2 THEN $2 ELSE swept END WHERE name = $1",
            )
            .bind(tenant)
            .bind(until)
            .execute(&mut *tx)
            .await?
            .rows_affected();
            if known == 0 {
                return Err(Kind::NotFound
                    .because(format!("the database has nothing of a tenant {tenant}")));
            }
            for sql in [
                "INSERT INTO gone (tenant, kind, name, version) SELECT tenant, 'key', name, version FROM key_name WHERE tenant = $1 \
                 ON CONFLICT (tenant, kind, name) DO UPDATE SET version = excluded.version",
                "INSERT INTO gone (tenant, kind, name, version) SELECT tenant, 'policy', name, MAX(version) FROM policy WHERE tenant = $1 \
                 GROUP BY tenant, name ON CONFLICT (tenant, kind, name) DO UPDATE SET version = excluded.version",
            ] {
                sqlx::query(sql).bind(tenant).execute(&mut *tx).await?;
            }
            for table in TABLES {
                let sql = format!("DELETE FROM {table} WHERE tenant = $1");
                sqlx::query(sqlx::AssertSqlSafe(sql)).bind(tenant).execute(&mut *tx).await?;
            }
            record_event!(tx, event, "tenant-erase", tenant);
            tx.commit().await?;
            Ok(())
        })
    }

    /// Empties the journal of SQLite, in which deleted data remain, unless another process or
    /// connection reads it: no writer waits for that. Whether it is empty.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn emptied(&self) -> Result<bool> {
        let Backend::Sqlite(pools) = &self.backend else { return Ok(true) };
        let mut connection = pools.read.acquire().await?;
        let (wait,): (i64,) =
            sqlx::query_as("PRAGMA busy_timeout").fetch_one(&mut *connection).await?;
        sqlx::query("PRAGMA busy_timeout = 0").execute(&mut *connection).await?;
        let done: Result<(i64, i64, i64), _> =
            sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut *connection).await;
        let again = format!("PRAGMA busy_timeout = {wait}");
        sqlx::query(sqlx::AssertSqlSafe(again)).execute(&mut *connection).await?;
        Ok(done?.0 == 0)
    }

    /// Removes remains of deleted data, and of secrets under an older KEK, from the files of an
    /// SQLite database. The journal holds them until it is emptied. Databases of versions that did
    /// not erase deleted data hold them in free space: those are rewritten, once.
    ///
    /// # Errors
    /// The journal always has readers, or the database does not answer.
    pub async fn erase(&self) -> Result<()> {
        let Backend::Sqlite(pools) = &self.backend else { return Ok(()) };
        let erased: Option<(i64,)> =
            sqlx::query_as("SELECT number FROM meta WHERE name = 'erased'")
                .fetch_optional(&pools.durable)
                .await?;
        if erased.is_none() {
            sqlx::query("VACUUM").execute(&pools.durable).await?;
            sqlx::query("INSERT INTO meta (name, number, content) VALUES ('erased', 1, '') ON CONFLICT (name) DO NOTHING")
                .execute(&pools.durable)
                .await?;
        }
        for _ in 0..TRIES {
            if self.emptied().await? {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(Kind::Store.because(
            "it is done, but the journal of the database still holds what was deleted or replaced, because other processes read it: run the \
             same command again",
        ))
    }
}
