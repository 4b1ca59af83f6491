//! How databases are reached: an SQLite file for its owner alone, PostgreSQL over TLS wherever it
//! is not of this machine.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use shef_door::files;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::{Backend, Pools};
use crate::config::Database;
use crate::problem::{Kind, Problem, Result};

/// Bytes of a page of SQLite, where the database is new. An appraisal touches some ten pages, of
/// most of them a few bytes, and all of them go through the journal: 18 kB with these, 45 kB with
/// the usual ones of 4096.
const PAGE_BYTES: u32 = 1024;
/// Pages of SQLite's journal after which a writer copies them into the database itself: 64 MB.
/// [`super::Store::checkpoint`] leaves it little to copy.
const JOURNAL_PAGES: &str = "65536";
/// How long a connection is waited for.
const ACQUIRE: Duration = Duration::from_secs(5);

fn cannot(error: &sqlx::Error) -> Problem {
    // The URL may hold a password; the text of the library's errors never does.
    Kind::Store.because(format!("{error}"))
}

fn file(path: &Path, error: &std::io::Error) -> Problem {
    Kind::Store.because(format!("{}: {error}", path.display()))
}

/// The file of a database, and those that SQLite puts beside it.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

/// Makes an empty file for its owner alone.
///
/// # Errors
/// It exists, or cannot be made.
pub(super) fn create(path: &Path) -> Result<()> {
    files::create(path, 0o600, path).map(drop).map_err(|error| file(path, &error))
}

/// Takes from everybody else what they may do with a database: it holds sealed keys, devices and
/// evidence. One that is not there is made, so that SQLite does not make it with another mode; the
/// files beside it get that of the database.
///
/// # Errors
/// Its mode cannot be changed, or it cannot be made.
pub fn private(path: &Path) -> Result<()> {
    match create(path) {
        Ok(()) => return Ok(()),
        Err(_) if path.exists() => {}
        Err(problem) => return Err(problem),
    }
    for path in files(path) {
        let mode = match std::fs::metadata(&path) {
            Ok(found) => found.permissions().mode() & 0o777,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(file(&path, &error)),
        };
        if mode & 0o077 != 0 {
            tracing::warn!(file = %path.display(), mode = format!("{mode:03o}"), "others could use the database: its mode is 600 from now on");
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(|error| file(&path, &error))?;
        }
    }
    Ok(())
}

/// Options of PostgreSQL. What the URL does not say about TLS: the certificate and its name are
/// verified, unless the server is of this machine.
pub(super) fn postgres(url: &str) -> Result<PgConnectOptions> {
    let options: PgConnectOptions = url.parse().map_err(|error| cannot(&error))?;
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let said = query.split('&').any(|pair| pair.starts_with("sslmode=") || pair.starts_with("ssl-mode="));
    let host = options.get_host();
    let local = options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let options = if said || local { options } else { options.ssl_mode(PgSslMode::VerifyFull) };
    if !local && !matches!(options.get_ssl_mode(), PgSslMode::VerifyFull) {
        tracing::warn!(
            host = options.get_host(),
            "storage.url asks for less than sslmode=verify-full: whoever is between can read and change everything"
        );
    }
    Ok(options.application_name("shef-verifierd"))
}

/// Checks that each connection has a session of the server's. A pooler that pools transactions gives
/// the second connection the session of the first, with the statement that the first has prepared.
async fn sessions(options: &PgConnectOptions) -> Result<()> {
    let mut open = Vec::new();
    for statement in ["SELECT 1", "SELECT 2"] {
        let mut connection = PgConnection::connect_with(options).await.map_err(|error| cannot(&error))?;
        sqlx::query(statement).execute(&mut connection).await.map_err(|error| pooled(&error).unwrap_or_else(|| cannot(&error)))?;
        open.push(connection);
    }
    Ok(())
}

/// The problem behind an error that only a pooler of transactions causes: a prepared statement that
/// exists already, or does not.
fn pooled(error: &sqlx::Error) -> Option<Problem> {
    let code = error.as_database_error().and_then(|error| error.code())?;
    let text = "the database is behind a pooler that pools transactions, such as PgBouncer with pool_mode = transaction, and the service \
                needs prepared statements that stay: expected session pooling";
    matches!(&*code, "42P05" | "26000").then(|| Kind::Store.because(text))
}

fn sqlite(path: &Path, synchronous: SqliteSynchronous) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .page_size(PAGE_BYTES)
        .pragma("wal_autocheckpoint", JOURNAL_PAGES)
        .busy_timeout(ACQUIRE)
}

/// Opens a database to be written; an SQLite file is made where there is none.
pub(super) async fn open(database: &Database, connections: u32) -> Result<Backend> {
    Ok(match database {
        Database::Sqlite(path) => {
            if !path.exists() {
                tracing::warn!(file = %path.display(), "there is no database: a new one is made");
            }
            private(path)?;
            // A write that fails, as on a full disk, ends its transaction behind the library's
            // back, and that connection begins no other.
            let pool = |most| {
                SqlitePoolOptions::new()
                    .max_connections(most)
                    .acquire_timeout(ACQUIRE)
                    .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            };
            // The first connection makes the journal; the others open lazily.
            let durable = pool(1).connect_with(sqlite(path, SqliteSynchronous::Full)).await.map_err(|error| cannot(&error))?;
            Backend::Sqlite(Pools {
                read: pool(connections).connect_lazy_with(sqlite(path, SqliteSynchronous::Normal)),
                quick: pool(1).connect_lazy_with(sqlite(path, SqliteSynchronous::Normal)),
                durable,
                begin_quick: "BEGIN IMMEDIATE",
                begin: "BEGIN IMMEDIATE",
            })
        }
        Database::Postgres(url) => {
            let pool = PgPoolOptions::new().max_connections(connections).acquire_timeout(ACQUIRE);
            let options = postgres(url)?;
            sessions(&options).await?;
            let pool = pool.connect_with(options).await.map_err(|error| cannot(&error))?;
            Backend::Postgres(Pools { read: pool.clone(), quick: pool.clone(), durable: pool, begin_quick: "BEGIN", begin: "BEGIN" })
        }
    })
}

/// Opens a database to be read; `None` where there is no file.
pub(super) async fn look(database: &Database) -> Result<Option<Backend>> {
    Ok(Some(match database {
        Database::Sqlite(path) => {
            if !path.exists() {
                return Ok(None);
            }
            // Without a journal nobody has it open, and SQLite would leave one behind that it made
            // only to read.
            let still = !files(path)[1].exists();
            let options = SqliteConnectOptions::new().filename(path).read_only(true).immutable(still).busy_timeout(ACQUIRE);
            let pool = SqlitePoolOptions::new().max_connections(1).acquire_timeout(ACQUIRE);
            let pool = pool.connect_with(options).await.map_err(|error| cannot(&error))?;
            Backend::Sqlite(Pools { read: pool.clone(), quick: pool.clone(), durable: pool, begin_quick: "BEGIN", begin: "BEGIN" })
        }
        Database::Postgres(url) => {
            let options = postgres(url)?.options([("default_transaction_read_only", "on")]);
            sessions(&options).await?;
            let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(ACQUIRE);
            let pool = pool.connect_with(options).await.map_err(|error| cannot(&error))?;
            Backend::Postgres(Pools { read: pool.clone(), quick: pool.clone(), durable: pool, begin_quick: "BEGIN", begin: "BEGIN" })
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_must_prove_who_it_is() {
        let mode = |url: &str| format!("{:?}", postgres(url).unwrap().get_ssl_mode());
        for url in ["postgres://u@db.example/v", "postgresql://u:p@10.0.0.7:5433/v?application_name=x", "postgres://u@[2001:db8::1]/v"] {
            assert_eq!(mode(url), "VerifyFull", "{url}");
        }
        for url in ["postgres://u@localhost/v", "postgres://u@127.0.0.1/v", "postgres://u@[::1]/v", "postgres:///v?host=/run/postgresql"] {
            assert_ne!(mode(url), "VerifyFull", "{url}");
        }
        // Whoever says less says it.
        assert_eq!(mode("postgres://u@db.example/v?sslmode=require"), "Require");
        assert_eq!(mode("postgres://u@localhost/v?sslmode=verify-full"), "VerifyFull");
    }
}
