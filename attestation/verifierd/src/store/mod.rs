//! Storage: SQLite in a file, or PostgreSQL; the same statements for both.
//!
//! SQLite has one writer. Two connections write: `quick` (a crash of the machine may lose its last moments; a crash of the program never
//! does) for used nonces and records of appraisals, and `durable` (on disk before the answer) for everything that must not be lost.

mod collateral;
mod events;
mod keys;
mod records;
mod rekey;
mod schema;

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection as _, Pool, Postgres, Sqlite};

use crate::config::Database;
use crate::problem::{Kind, Problem, Result};
use crate::secrets::Kek;

pub use collateral::{AnchorRow, Change, Changed, CollateralRows, CorimRow, PolicyRow, RevocationRow, SignerRow};
pub use events::{Event, EventRow};
pub use keys::{KeyRow, KeyVersionRow, NewRelease, NewVersion, ReceiptRow, Released};
pub use records::{AppraisalRecord, AppraisalRow, DeviceCounts, DeviceRow};

/// Bytes of a page of SQLite, where the database is new. An appraisal touches some ten pages, of most of them a few bytes, and all of them go through the journal:
/// 18 kB with these, 45 kB with the usual ones of 4096.
const PAGE_BYTES: u32 = 1024;
/// Pages of SQLite's journal after which a writer copies them into the database itself: 64 MB. [`Store::checkpoint`] leaves it little to copy.
const JOURNAL_PAGES: &str = "65536";

/// The version of the schema that this program makes and knows.
#[must_use]
pub fn version() -> i64 {
    schema::MIGRATIONS.len() as i64
}

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
}

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

/// Reads these columns into a struct of either backend. The library's derive would have it, and all its drivers, built a second time for the compiler.
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

fn cannot(error: &sqlx::Error) -> Problem {
    // The URL may hold a password; the text of the library's errors never does.
    Kind::Store.because(format!("{error}"))
}

impl Store {
    /// Opens the database, makes or extends its tables, and checks that its keys are sealed under this KEK.
    ///
    /// # Errors
    /// Out of reach, of a newer version, or sealed under another KEK.
    pub async fn open(database: &Database, connections: u32, kek: &Kek) -> Result<Self> {
        let store = match database {
            Database::Sqlite(path) => {
                let options = |synchronous| {
                    SqliteConnectOptions::new()
                        .filename(path)
                        .create_if_missing(true)
                        .journal_mode(SqliteJournalMode::Wal)
                        .synchronous(synchronous)
                        .page_size(PAGE_BYTES)
                        .pragma("wal_autocheckpoint", JOURNAL_PAGES)
                        .busy_timeout(Duration::from_secs(5))
                };
                // A write that fails, as on a full disk, ends its transaction behind the library's back, and that connection begins no other.
                let pool = |most| {
                    SqlitePoolOptions::new()
                        .max_connections(most)
                        .acquire_timeout(Duration::from_secs(5))
                        .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
                };
                // The first connection makes the file and its journal; the others open lazily.
                let durable = pool(1).connect_with(options(SqliteSynchronous::Full)).await.map_err(|error| cannot(&error))?;
                Backend::Sqlite(Pools {
                    read: pool(connections).connect_lazy_with(options(SqliteSynchronous::Normal)),
                    quick: pool(1).connect_lazy_with(options(SqliteSynchronous::Normal)),
                    durable,
                    begin_quick: "BEGIN IMMEDIATE",
                    begin: "BEGIN IMMEDIATE",
                })
            }
            Database::Postgres(url) => {
                let options: PgConnectOptions = url.parse().map_err(|error| cannot(&error))?;
                let pool = PgPoolOptions::new()
                    .max_connections(connections)
                    .acquire_timeout(Duration::from_secs(5))
                    .connect_with(options.application_name("shef-verifierd"))
                    .await
                    .map_err(|error| cannot(&error))?;
                Backend::Postgres(Pools { read: pool.clone(), quick: pool.clone(), durable: pool, begin_quick: "BEGIN", begin: "BEGIN" })
            }
        };
        let store = Self { backend: store };
        store.migrate().await?;
        store.check_kek(kek).await?;
        store.adopt_resources(kek).await?;
        Ok(store)
    }

    async fn migrate(&self) -> Result<()> {
        let postgres = matches!(self.backend, Backend::Postgres(_));
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            if postgres {
                // Replicas that start together take turns.
                sqlx::query("SELECT pg_advisory_xact_lock(7306362)").execute(&mut *tx).await?;
            }
            let make = "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, number BIGINT NOT NULL, content TEXT NOT NULL)";
            sqlx::query(make).execute(&mut *tx).await?;
            let found: Option<(i64,)> = sqlx::query_as("SELECT number FROM meta WHERE name = 'version'").fetch_optional(&mut *tx).await?;
            let found = found.map_or(0, |row| row.0);
            if found > version() {
                return Err(Kind::NewerStore.because(format!("the database has version {found}, this program knows up to {}", version())));
            }
            for step in &schema::MIGRATIONS[usize::try_from(found).unwrap_or(0)..] {
                let step = step.replace("{blob}", if postgres { "BYTEA" } else { "BLOB" });
                sqlx::raw_sql(AssertSqlSafe(step)).execute(&mut *tx).await?;
            }
            sqlx::query(
                "INSERT INTO meta (name, number, content) VALUES ('version', $1, '') ON CONFLICT (name) DO UPDATE SET number = excluded.number",
            )
            .bind(version())
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(())
        })
    }

    /// Makes sure that the configured tenants have rows.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn add_tenants(&self, names: &[&str]) -> Result<()> {
        on!(self, |pools| {
            for name in names {
                sqlx::query(
                    "INSERT INTO tenant (name, generation, seq, head, kept_seq, kept_head, swept) VALUES ($1, 1, 0, $2, 0, $2, 0) \
                     ON CONFLICT (name) DO NOTHING",
                )
                .bind(name)
                .bind(shef_proto::receipt::genesis(name).to_vec())
                .execute(&pools.durable)
                .await?;
            }
            Ok(())
        })
    }

    /// Writes a consistent copy of an SQLite database.
    ///
    /// # Errors
    /// The database refuses, or is not SQLite.
    pub async fn copy_to(&self, path: &std::path::Path) -> Result<()> {
        match &self.backend {
            Backend::Sqlite(pools) => {
                sqlx::query("VACUUM INTO $1").bind(path.display().to_string()).execute(&pools.durable).await?;
                Ok(())
            }
            Backend::Postgres(_) => Err(Kind::Backup.because("the database is PostgreSQL: use pg_dump")),
        }
    }

    /// Copies what SQLite's journal holds into the database, beside those who read and write. A writer who has to do it keeps everybody behind it waiting for the disk.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn checkpoint(&self) -> Result<()> {
        if let Backend::Sqlite(pools) = &self.backend {
            sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&pools.read).await?;
        }
        Ok(())
    }

    /// Counts every session that ends before `until` as used.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn forget_sessions(&self, until: i64) -> Result<()> {
        on!(self, |pools| {
            sqlx::query("UPDATE tenant SET swept = $1 WHERE swept < $1").bind(until).execute(&pools.durable).await?;
            Ok(())
        })
    }

    /// Closes all connections; what was committed is on disk.
    pub async fn close(&self) {
        on!(self, |pools| {
            pools.read.close().await;
            pools.quick.close().await;
            pools.durable.close().await;
        });
    }
}
