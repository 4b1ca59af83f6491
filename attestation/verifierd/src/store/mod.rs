//! Storage: SQLite in a file, or PostgreSQL; the same statements for both.
//!
//! SQLite allows one writer. Two connections write: `quick` (a crash of the machine may lose its
//! last moments; a crash of the program never does) for used nonces and records of appraisals, and
//! `durable` (on disk before the response) for everything that must not be lost.

mod collateral;
mod connect;
mod erase;
mod erased;
mod events;
mod keys;
mod quota;
mod receipts;
mod records;
mod rekey;
mod releases;
mod schema;
mod turns;

use std::sync::atomic::AtomicI64;

use sqlx::{AssertSqlSafe, Pool, Postgres, Sqlite};

use crate::config::Database;
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::Kek;
use erased::Served;
use turns::Turns;

pub use collateral::{
    AnchorRow, Change, Changed, CollateralRows, CorimRow, CorimVersion, PolicyRow, RevocationRow,
    SignerRow, revoked_value,
};
pub use erased::Erasures;
pub use events::{Event, EventRow};
pub use keys::{KeyRow, KeyVersionRow, NewVersion};
pub use receipts::{FORGET, Heads, ReceiptRow};
pub use records::{AppraisalRecord, AppraisalRow, DeviceCounts, DeviceRow};
pub use releases::{Ends, NewRelease, Outcome, Released, Signed};

/// The current version of the schema.
#[must_use]
pub fn version() -> i64 {
    schema::MIGRATIONS.len() as i64
}

/// The oldest version of the schema whose programs may serve beside the current one.
#[must_use]
pub fn beside() -> i64 {
    schema::BESIDE
}

/// The first version that signs a statement about deleted receipts.
pub const SIGNED: i64 = 5;

pub(crate) struct Pools<D: sqlx::Database> {
    read: Pool<D>,
    quick: Pool<D>,
    durable: Pool<D>,
    begin_quick: &'static str,
    begin: &'static str,
}

pub(crate) enum Backend {
    Sqlite(Pools<Sqlite>),
    Postgres(Pools<Postgres>),
}

/// The store.
pub struct Store {
    pub(crate) backend: Backend,
    /// The version of the schema at opening; 0 for a new database.
    pub found: i64,
    /// Maximum bytes that a tenant may store.
    most: AtomicI64,
    /// Maximum number of a tenant's trust anchors, signers, reference values and policies.
    most_rows: AtomicI64,
    turns: Turns,
    served: Served,
}

/// Notes the start of the machine in which the database is used; empty while it is not.
const BOOT: &str = "INSERT INTO meta (name, number, content) VALUES ('boot', 0, $1) ON CONFLICT (name) DO UPDATE SET content = excluded.content";

/// Runs one body on the pools of either database.
macro_rules! on {
    ($store:expr, |$pools:ident| $body:expr) => {
        match &$store.backend {
            $crate::store::Backend::Sqlite($pools) => $body,
            $crate::store::Backend::Postgres($pools) => $body,
        }
    };
}
pub(crate) use on;

/// Reads these columns into a struct, for either backend. The library's derive would build it and
/// all its drivers a second time for the compiler.
macro_rules! row {
    ($row:ident { $($column:ident),* }) => {
        impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for $row
        where
            &'static str: sqlx::ColumnIndex<R>,
            i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
            String: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
            Vec<u8>: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
        {
            fn from_row(row: &'r R) -> sqlx::Result<Self> {
                Ok(Self { $($column: row.try_get(stringify!($column))?),* })
            }
        }
    };
}
pub(crate) use row;

/// Reads the oldest version whose programs may serve beside the newest one.
const BESIDE: &str = "SELECT number FROM meta WHERE name = 'beside'";

/// Accepts a database of a newer version that says that this program may serve beside it.
fn serves_beside(found: i64, beside: Option<(i64,)>) -> Result<()> {
    if beside.is_some_and(|(oldest,)| oldest <= version()) { Ok(()) } else { Err(newer(found)) }
}

fn newer(found: i64) -> Problem {
    Kind::NewerStore.because(format!(
        "the database has version {found}, this program knows up to {}",
        version()
    ))
}

/// Whether the error says that table `meta` is missing.
fn no_meta(error: &dyn sqlx::error::DatabaseError) -> bool {
    error.code().is_some_and(|code| code == "42P01") || error.message() == "no such table: meta"
}

/// Rejects a database that has tables but no version.
fn strange(tables: i64) -> Result<()> {
    if tables > 0 {
        return Err(Kind::Store.because("the database has tables of another program: expected one of this service, or an empty one"));
    }
    Ok(())
}

impl Store {
    /// Opens the database, creates or migrates its tables, and checks that its keys are sealed
    /// under this KEK.
    ///
    /// # Errors
    /// Out of reach, of a newer version, or sealed under another KEK.
    pub async fn open(database: &Database, connections: u32, kek: &Kek) -> Result<Self> {
        Self::opened(database, Some(connections), kek).await
    }

    /// The same for a command, with one connection: it only accesses the files that were checked.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub async fn command(database: &Database, kek: &Kek) -> Result<Self> {
        Self::opened(database, None, kek).await
    }

    async fn opened(database: &Database, connections: Option<u32>, kek: &Kek) -> Result<Self> {
        let mut store = Self {
            backend: connect::open(database, connections).await?,
            found: 0,
            most: AtomicI64::new(i64::MAX),
            most_rows: AtomicI64::new(i64::MAX),
            turns: Turns::new(connections.map_or(1, connect::changes)),
            served: Served::default(),
        };
        store.promoted().await?;
        store.found = store.migrate().await?;
        if connections.is_none() && store.found > version() {
            // A command would leave out what only the newer version knows.
            return Err(newer(store.found));
        }
        if (1..version()).contains(&store.found) {
            tracing::warn!(
                from = store.found,
                to = version(),
                "the schema of the database was extended"
            );
        }
        if store.found == 0 {
            let database = match database {
                Database::Sqlite(path) => path.display().to_string(),
                // The URL may contain a password.
                Database::Postgres(_) => "PostgreSQL".into(),
            };
            tracing::warn!(
                database,
                "the database was missing or empty: a new one begins, without keys, policies and revocations"
            );
        }
        store.check_kek(kek).await?;
        store.rights().await?;
        store.adopt_resources(kek).await?;
        Ok(store)
    }

    /// The text for this database, of those for SQLite and PostgreSQL.
    fn by_database(&self, [sqlite, postgres]: [&'static str; 2]) -> &'static str {
        match self.backend {
            Backend::Sqlite(_) => sqlite,
            Backend::Postgres(_) => postgres,
        }
    }

    /// Checks that a PostgreSQL server takes changes: it does not while it is a standby, or at the end
    /// of a recovery that paused there.
    ///
    /// # Errors
    /// It does not, or the database does not answer.
    pub async fn promoted(&self) -> Result<()> {
        let Backend::Postgres(pools) = &self.backend else { return Ok(()) };
        let (recovers,): (bool,) =
            sqlx::query_as("SELECT pg_is_in_recovery()").fetch_one(&pools.read).await?;
        if recovers {
            return Err(Kind::Store.because(
                "the PostgreSQL server is in recovery and takes no changes: if it has paused at the moment to which it was to be restored, \
                 end that with `select pg_wal_replay_resume()`, or set recovery_target_action = 'promote' before; a standby is promoted with \
                 `select pg_promote()`",
            ));
        }
        Ok(())
    }

    /// Checks that this user of PostgreSQL may make the tables of the current version, and change those
    /// of older ones.
    ///
    /// # Errors
    /// It may not, or the database does not answer.
    pub async fn may_extend(&self) -> Result<()> {
        let Backend::Postgres(pools) = &self.backend else { return Ok(()) };
        let (user, schema, may): (String, Option<String>, Option<bool>) = sqlx::query_as(
            "SELECT CURRENT_USER::TEXT, CURRENT_SCHEMA()::TEXT, has_schema_privilege(CURRENT_SCHEMA(), 'CREATE')",
        )
        .fetch_one(&pools.read)
        .await?;
        if may != Some(true) {
            let schema = schema.unwrap_or_else(|| "public".into());
            return Err(Kind::Store.because(format!(
                "the user {user} of the database may not make tables in its schema {schema}: make it the owner of the database (ALTER DATABASE \
                 ... OWNER TO {user}), or GRANT CREATE ON SCHEMA {schema} TO {user}"
            )));
        }
        let foreign: Option<(String,)> = sqlx::query_as(
            "SELECT relname::TEXT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
             WHERE nspname = CURRENT_SCHEMA() AND relkind = 'r' AND NOT pg_has_role(relowner, 'USAGE') ORDER BY relname LIMIT 1",
        )
        .fetch_optional(&pools.read)
        .await?;
        match foreign {
            None => Ok(()),
            Some((table,)) => Err(Kind::Store.because(format!(
                "the user {user} of the database does not own table {table}, and only its owner extends it: ALTER TABLE {table} OWNER TO {user}, \
                 and the same for the other tables"
            ))),
        }
    }

    /// How many other sessions of this program, as the same user, use a PostgreSQL database.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn others(&self) -> Result<i64> {
        let Backend::Postgres(pools) = &self.backend else { return Ok(0) };
        let (others,): (i64,) = sqlx::query_as(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()",
        )
        .bind(connect::PROGRAM)
        .fetch_one(&pools.read)
        .await?;
        Ok(others)
    }

    /// The audience of the replica that began last.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn audience(&self) -> Result<Option<String>> {
        on!(self, |pools| {
            let row: Option<(String,)> =
                sqlx::query_as("SELECT content FROM meta WHERE name = 'audience'")
                    .fetch_optional(&pools.read)
                    .await?;
            Ok(row.map(|row| row.0))
        })
    }

    /// Remembers the audience of a replica that begins. Returns the one before if it was another.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn begin_as(&self, audience: &str) -> Result<Option<String>> {
        let before = self.audience().await?;
        if before.as_deref() == Some(audience) {
            return Ok(None);
        }
        on!(self, |pools| {
            sqlx::query("INSERT INTO meta (name, number, content) VALUES ('audience', 0, $1) ON CONFLICT (name) DO UPDATE SET content = excluded.content")
                .bind(audience)
                .execute(&pools.durable)
                .await?;
            Ok(before)
        })
    }

    /// Checks that this user of PostgreSQL may read and change every table.
    ///
    /// # Errors
    /// It may not, or the database does not answer.
    pub async fn rights(&self) -> Result<()> {
        let Backend::Postgres(pools) = &self.backend else { return Ok(()) };
        let lacks: Option<(String, String, String)> = sqlx::query_as(
            "SELECT CURRENT_USER::TEXT, right_name, relname::TEXT FROM pg_class \
             JOIN pg_namespace ON pg_namespace.oid = relnamespace \
             CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS rights (right_name) \
             WHERE nspname = CURRENT_SCHEMA() AND relkind = 'r' AND NOT has_table_privilege(pg_class.oid, right_name) \
             ORDER BY relname, right_name LIMIT 1",
        )
        .fetch_optional(&pools.read)
        .await?;
        match lacks {
            None => Ok(()),
            Some((user, right, table)) => Err(Kind::Store.because(format!(
                "the user {user} of the database lacks the right {right} on table {table}: GRANT {right} ON {table} TO {user}"
            ))),
        }
    }

    /// Opens a database for reading, beside the running service: creates, migrates and writes
    /// nothing. `None` if there is no database yet.
    ///
    /// # Errors
    /// Out of reach, of a newer version, sealed under another KEK, or of an older version if `present`
    /// requires the current one.
    pub async fn look(database: &Database, kek: &Kek, present: bool) -> Result<Option<Self>> {
        let Some(backend) = connect::look(database).await? else { return Ok(None) };
        let store = Self::looked(backend, kek).await?;
        if present && store.found < version() {
            return Err(Kind::OlderStore.because(format!(
                "the database has version {}, and this program reads version {}: start the service once, which extends it, or use the program \
                 of that version",
                store.found,
                version()
            )));
        }
        Ok(Some(store))
    }

    /// From now on, the store shows the database as it is at this moment, whatever a service writes.
    /// For a store by [`Store::look`], which has one connection.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn hold(&self) -> Result<()> {
        let begin = match self.backend {
            Backend::Sqlite(_) => "BEGIN",
            Backend::Postgres(_) => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        on!(self, |pools| {
            // Of the pool's only connection. It ends with it.
            sqlx::raw_sql(begin).execute(&pools.read).await?;
            Ok(())
        })
    }

    /// Opens a copy of an SQLite database for reading, and checks that it is intact and belongs to
    /// this service.
    ///
    /// # Errors
    /// Not a database of this service, damaged, of a newer version, or sealed under another KEK.
    pub async fn copy(path: &std::path::Path, kek: &Kek) -> Result<Self> {
        let store = Self::looked(connect::copy(path).await?, kek).await?;
        if store.found == 0 {
            return Err(Kind::Store.because(format!("{} is empty", path.display())));
        }
        store.sound().await?;
        Ok(store)
    }

    async fn looked(backend: Backend, kek: &Kek) -> Result<Self> {
        let mut store = Self {
            backend,
            found: 0,
            most: AtomicI64::new(i64::MAX),
            most_rows: AtomicI64::new(i64::MAX),
            turns: Turns::new(1),
            served: Served::default(),
        };
        store.found = store.version_of().await?;
        if store.found > version() {
            let beside: Option<(i64,)> =
                on!(store, |pools| sqlx::query_as(BESIDE).fetch_optional(&pools.read).await?);
            serves_beside(store.found, beside)?;
        }
        if store.found > 0 {
            store.expect_kek(kek).await?;
        }
        Ok(store)
    }

    /// The version of the schema; 0 only for a database without tables.
    async fn version_of(&self) -> Result<i64> {
        let sqlite = matches!(self.backend, Backend::Sqlite(_));
        on!(self, |pools| {
            let row: Result<Option<(i64,)>, _> =
                sqlx::query_as("SELECT number FROM meta WHERE name = 'version'")
                    .fetch_optional(&pools.read)
                    .await;
            let found = match row {
                Ok(row) => row.map_or(0, |row| row.0),
                Err(sqlx::Error::Database(error)) if no_meta(&*error) => 0,
                Err(error) => return Err(error.into()),
            };
            if found == 0 && sqlite {
                let (tables,): (i64,) = sqlx::query_as("SELECT COUNT(*) FROM sqlite_schema")
                    .fetch_one(&pools.read)
                    .await?;
                strange(tables)?;
            }
            Ok(found)
        })
    }

    /// Checks that an SQLite database is intact.
    ///
    /// # Errors
    /// It is damaged, or does not answer.
    pub async fn sound(&self) -> Result<()> {
        if let Backend::Sqlite(pools) = &self.backend {
            let (said,): (String,) =
                sqlx::query_as("PRAGMA quick_check(1)").fetch_one(&pools.read).await?;
            if said != "ok" {
                return Err(Kind::Store
                    .because(format!("the database is damaged, restore a backup: {said}")));
            }
        }
        Ok(())
    }

    /// Migrates the schema; returns the version that it found.
    async fn migrate(&self) -> Result<i64> {
        let postgres = matches!(self.backend, Backend::Postgres(_));
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            if postgres {
                // Replicas that start together take turns, and a migration takes its time.
                sqlx::raw_sql("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0")
                    .execute(&mut *tx)
                    .await?;
                sqlx::query("SELECT pg_advisory_xact_lock(7306362)").execute(&mut *tx).await?;
            }
            let tables: i64 = if postgres {
                0
            } else {
                let row: (i64,) = sqlx::query_as("SELECT COUNT(*) FROM sqlite_schema")
                    .fetch_one(&mut *tx)
                    .await?;
                row.0
            };
            let make = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, number BIGINT NOT NULL, content TEXT NOT NULL)";
            sqlx::query(make).execute(&mut *tx).await?;
            let found: Option<(i64,)> =
                sqlx::query_as("SELECT number FROM meta WHERE name = 'version'")
                    .fetch_optional(&mut *tx)
                    .await?;
            let found = found.map_or(0, |row| row.0);
            if found > version() {
                let beside = sqlx::query_as(BESIDE).fetch_optional(&mut *tx).await?;
                serves_beside(found, beside)?;
                return Ok(found);
            }
            if found == 0 {
                strange(tables)?;
                // A new database holds no remains of deleted data: see `Store::erase`.
                sqlx::query("INSERT INTO meta (name, number, content) VALUES ('erased', 1, '')")
                    .execute(&mut *tx)
                    .await?;
            }
            for step in &schema::MIGRATIONS[usize::try_from(found).unwrap_or(0)..] {
                let step = step.replace("{blob}", if postgres { "BYTEA" } else { "BLOB" });
                sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *tx).await?;
            }
            for (name, number) in [("version", version()), ("beside", schema::BESIDE)] {
                sqlx::query(
                    "INSERT INTO meta (name, number, content) VALUES ($1, $2, '') ON CONFLICT (name) DO UPDATE SET number = excluded.number",
                )
                .bind(name)
                .bind(number)
                .execute(&mut *tx)
                .await?;
            }
            tx.commit().await?;
            Ok(found)
        })
    }

    /// Creates the missing rows of these tenants. Returns what [`Store::serve`] needs to know of them.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn add_tenants(&self, names: &[&str]) -> Result<Vec<Erasures>> {
        on!(self, |pools| {
            let mut all = Vec::new();
            for name in names {
                sqlx::query(
                    "INSERT INTO tenant (name, generation, seq, head, kept_seq, kept_head, swept) VALUES ($1, 1, 0, $2, 0, $2, 0) \
                     ON CONFLICT (name) DO NOTHING",
                )
                .bind(name)
                .bind(shef_proto::receipt::genesis(name).to_vec())
                .execute(&pools.durable)
                .await?;
                let (count,): (i64,) = sqlx::query_as("SELECT erased FROM tenant WHERE name = $1")
                    .bind(name)
                    .fetch_one(&pools.durable)
                    .await?;
                all.push(Erasures { tenant: (*name).to_owned(), count });
            }
            Ok(all)
        })
    }

    /// Begins to serve these tenants, and ends the service of others. Nothing is added to a tenant that
    /// is erased while it is served.
    pub fn serve(&self, tenants: &[Erasures]) {
        self.served.serve(tenants);
    }

    /// Ends the service of all tenants but these.
    pub fn keep_tenants(&self, names: &[&str]) {
        self.served.keep(names);
    }

    /// Tenants that have rows.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn tenants(&self) -> Result<Vec<String>> {
        on!(self, |pools| {
            let rows: Vec<(String,)> = sqlx::query_as("SELECT name FROM tenant ORDER BY name")
                .fetch_all(&pools.read)
                .await?;
            Ok(rows.into_iter().map(|row| row.0).collect())
        })
    }

    /// Writes a consistent copy of an SQLite database into an empty file.
    ///
    /// # Errors
    /// The database refuses, or is not SQLite.
    pub async fn copy_to(&self, path: &std::path::Path) -> Result<()> {
        match &self.backend {
            Backend::Sqlite(pools) => {
                // SQLite keeps the mode of an empty file.
                let path = connect::absolute(path)?;
                sqlx::query("VACUUM INTO $1").bind(path.to_str()).execute(&pools.read).await?;
                Ok(())
            }
            Backend::Postgres(_) => Err(Kind::Backup.because("the database is PostgreSQL")),
        }
    }

    /// Copies the content of SQLite's journal into the database, beside readers and writers.
    /// Otherwise a writer would do it, and keep all others waiting for the disk.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn checkpoint(&self) -> Result<()> {
        if let Backend::Sqlite(pools) = &self.backend {
            sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&pools.read).await?;
        }
        Ok(())
    }

    /// Writes a row, as a release does, to find out whether anything can be written. A database
    /// whose connections are all in use counts as one that can.
    ///
    /// # Errors
    /// It cannot.
    pub async fn probe(&self, now: i64) -> Result<()> {
        on!(self, |pools| {
            let written = sqlx::query(
                "INSERT INTO meta (name, number, content) VALUES ('probe', $1, '') ON CONFLICT (name) DO UPDATE SET number = excluded.number",
            )
            .bind(now)
            .execute(&pools.durable)
            .await;
            match written {
                Ok(_) | Err(sqlx::Error::PoolTimedOut) => Ok(()),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// The public keys, in hexadecimal, that have signed receipts of this database.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn signers(&self) -> Result<Vec<String>> {
        on!(self, |pools| {
            let rows: Vec<(String,)> = sqlx::query_as(
                "SELECT content FROM meta WHERE name LIKE 'signer:%' ORDER BY number",
            )
            .fetch_all(&pools.read)
            .await?;
            Ok(rows.into_iter().map(|row| row.0).collect())
        })
    }

    /// Remembers a public key that signs from now on. Returns whether it is new.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn add_signer(&self, key: &str, now: i64) -> Result<bool> {
        on!(self, |pools| {
            let added = sqlx::query("INSERT INTO meta (name, number, content) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING")
                .bind(format!("signer:{key}"))
                .bind(now)
                .bind(key)
                .execute(&pools.durable)
                .await?;
            Ok(added.rows_affected() > 0)
        })
    }

    /// Marks every session that expires before `until` as used.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn forget_sessions(&self, until: i64) -> Result<()> {
        on!(self, |pools| {
            sqlx::query("UPDATE tenant SET swept = $1 WHERE swept < $1")
                .bind(until)
                .execute(&pools.durable)
                .await?;
            Ok(())
        })
    }

    /// Remembers which start of the machine, by its boot id, this database is used in. If another
    /// one ended without [`Store::end`], SQLite may have lost its last used nonces: every session
    /// that expires before `until` counts as used from now on. Returns whether that was so.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn begin(&self, boot: &str, until: i64) -> Result<bool> {
        let Backend::Sqlite(pools) = &self.backend else { return Ok(false) };
        let mut tx = pools.durable.begin_with(pools.begin).await?;
        let before: Option<(String,)> =
            sqlx::query_as("SELECT content FROM meta WHERE name = 'boot'")
                .fetch_optional(&mut *tx)
                .await?;
        let lost = before.is_some_and(|(before,)| !before.is_empty() && before != boot);
        if lost {
            sqlx::query("UPDATE tenant SET swept = $1 WHERE swept < $1")
                .bind(until)
                .execute(&mut *tx)
                .await?;
        }
        sqlx::query(BOOT).bind(boot).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(lost)
    }

    /// Clears the mark of [`Store::begin`]: all commits of the quick connection are on disk.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn end(&self) -> Result<()> {
        if let Backend::Sqlite(pools) = &self.backend {
            sqlx::query(BOOT).bind("").execute(&pools.durable).await?;
        }
        Ok(())
    }

    /// Closes all connections; committed data is on disk.
    pub async fn close(&self) {
        on!(self, |pools| {
            pools.read.close().await;
            pools.quick.close().await;
            pools.durable.close().await;
        });
    }
}
