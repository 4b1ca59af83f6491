//! Database connections: an SQLite file that only its owner can access, or PostgreSQL, over TLS
//! unless it is local.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use shef_files::{self as files, Owner};
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::{Backend, Pools};
use crate::config::{Database, Server};
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::private_text;

/// Page size of a new SQLite database in bytes. An appraisal writes a few bytes to each of some ten
/// pages, and whole pages go through the journal: 18 kB with this size, 45 kB with the default of
/// 4096.
const PAGE_BYTES: u32 = 1024;
/// Pages in SQLite's journal after which a writer copies them into the database: 64 MB.
/// [`super::Store::checkpoint`] leaves it little to copy.
const JOURNAL_PAGES: &str = "65536";
/// The name of sessions of this program.
pub(super) const PROGRAM: &str = "shef-verifierd";
/// How long to wait for a connection.
const ACQUIRE: Duration = Duration::from_secs(5);
/// What each session of the service asks of PostgreSQL. A replica that is paused within a
/// transaction, or whose machine is gone, loses the transaction, and with it the rows for which all
/// others wait. Notices, such as that a table exists, do not concern an operator. A wait for
/// a row is longer than that, and no statement of a request takes as long as
/// the last limit: those of migrations and commands lift it.
const SESSION: &str = "SET client_min_messages = 'warning'; SET idle_in_transaction_session_timeout = '1s'; SET lock_timeout = '4s'; SET statement_timeout = '8s'; \
     SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET tcp_user_timeout = '10s'";
/// The same for the one session of a command, whose transactions are long, and which may wait for
/// those of a service.
const COMMAND: &str = "SET client_min_messages = 'warning'; SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '30s'";

fn cannot(error: &sqlx::Error) -> Problem {
    // The URL may hold a password; the library's error texts never do.
    Kind::Store.because(format!("{error}"))
}

fn file(path: &Path, error: &std::io::Error) -> Problem {
    // With a text of ours, not the system's: what other users can change is refused.
    let open = error.kind() == ErrorKind::PermissionDenied && error.get_ref().is_some();
    let kind = if open { Kind::Permissions } else { Kind::Store };
    kind.because(format!("{}: {error}", path.display()))
}

/// The path for SQLite: absolute, so that SQLite does not read it as a URI or `:memory:`.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let whole = std::path::absolute(path).map_err(|error| file(path, &error))?;
    if whole.to_str().is_none() {
        return Err(Kind::Store.because(format!("{}: expected a name in UTF-8", whole.display())));
    }
    Ok(whole)
}

/// Checks the files of a database by the rules of [`files::open`], before SQLite opens them by name
/// and follows every link. Returns which of [`Database::files`] exist.
fn present(path: &Path) -> Result<[bool; 4]> {
    files::check(files::folder(path), Owner::Service).map_err(|error| file(path, &error))?;
    let mut there = [false; 4];
    for (name, there) in Database::files(path).iter().zip(&mut there) {
        *there = files::look(name).map_err(|error| file(name, &error))?.is_some();
    }
    if let [false, others @ ..] = there
        && let Some(at) = others.iter().position(|there| *there)
    {
        let name = &Database::files(path)[at + 1];
        return Err(Kind::Store.because(format!(
            "{} is there, and its database {} is not: put the database back, or move both away",
            name.display(),
            path.display()
        )));
    }
    Ok(there)
}

/// Checks that root's process has opened the files that [`present`] checked: in another user's
/// folder, that user can exchange them in between.
fn opened(names: &[PathBuf]) -> std::io::Result<()> {
    let mut held = BTreeSet::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        held.extend(std::fs::metadata(entry?.path()).map(|found| (found.dev(), found.ino())));
    }
    for name in names {
        if files::look(name)?.is_some_and(|found| !held.contains(&(found.dev(), found.ino()))) {
            return Err(std::io::Error::other(format!(
                "{} was exchanged for another file while it was opened",
                name.display()
            )));
        }
    }
    Ok(())
}

/// Options of a pool whose connections check their file names against the files that SQLite has
/// opened.
fn pool(path: &Path, still: bool, most: u32) -> Result<SqlitePoolOptions> {
    let options = SqlitePoolOptions::new().max_connections(most).acquire_timeout(ACQUIRE);
    if !files::foreign(files::folder(path)).map_err(|error| file(path, &error))? {
        return Ok(options);
    }
    let [database, journal, index, _] = Database::files(path);
    let names: Arc<[PathBuf]> =
        if still { [database].into() } else { [database, journal, index].into() };
    Ok(options.after_connect(move |connection, _| {
        let names = Arc::clone(&names);
        Box::pin(async move {
            // SQLite opens the journal at its first read.
            sqlx::query("SELECT COUNT(*) FROM sqlite_schema").execute(connection).await?;
            Ok(opened(&names)?)
        })
    }))
}

/// Makes a database accessible to its owner only: it holds sealed keys, devices and evidence.
/// Creates a missing one, so that SQLite does not create it with another mode; the files beside it
/// get the database's mode.
///
/// # Errors
/// One of the files is a link or belongs to a third user, its mode cannot be changed, or it cannot
/// be created.
fn private(path: &Path) -> Result<()> {
    if !present(path)?[0] {
        return match files::create(path, 0o600, path) {
            // Another process created it in between.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => private(path),
            made => made.map(drop).map_err(|error| file(path, &error)),
        };
    }
    for name in Database::files(path) {
        if let Some(mode) = files::close_to_others(&name).map_err(|error| file(&name, &error))? {
            tracing::warn!(file = %name.display(), mode = format!("{mode:03o}"), "others could use the database: its mode is 600 from now on");
        }
    }
    Ok(())
}

/// Options for PostgreSQL. Unless the URL has its own settings for TLS, the certificate and its
/// name are verified, except for a local server.
pub(super) fn postgres(server: &Server) -> Result<PgConnectOptions> {
    let url = &server.url;
    let options: PgConnectOptions = url.parse().map_err(|error| cannot(&error))?;
    let options = match &server.password_file {
        None => options,
        Some(file) => {
            let text = private_text(file)?;
            let password = text.strip_suffix('\n').unwrap_or(&text);
            if password.is_empty() || password.contains('\n') {
                let text = format!("{}: expected a password in one line", file.display());
                return Err(Kind::Material.because(text));
            }
            options.password(password)
        }
    };
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let said =
        query.split('&').any(|pair| pair.starts_with("sslmode=") || pair.starts_with("ssl-mode="));
    let host = options.get_host();
    let local = options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    let options = if said || local { options } else { options.ssl_mode(PgSslMode::VerifyFull) };
    if !local && !matches!(options.get_ssl_mode(), PgSslMode::VerifyFull) {
        tracing::warn!(
            host = options.get_host(),
            "storage.url asks for less than sslmode=verify-full: whoever is between can read and change everything"
        );
    }
    Ok(options.application_name(PROGRAM))
}

/// Checks that the database can store every text, and that each connection has a separate server
/// session. A transaction pooler gives the second connection the first one's session, with its
/// prepared statement.
async fn sessions(options: &PgConnectOptions) -> Result<()> {
    let mut open = Vec::new();
    for statement in ["SELECT 1", "SELECT 2"] {
        let mut connection =
            PgConnection::connect_with(options).await.map_err(|error| cannot(&error))?;
        sqlx::query(statement)
            .execute(&mut connection)
            .await
            .map_err(|error| pooled(&error).unwrap_or_else(|| cannot(&error)))?;
        open.push(connection);
    }
    let (encoding,): (String,) = sqlx::query_as("SHOW server_encoding")
        .fetch_one(&mut open[0])
        .await
        .map_err(|error| cannot(&error))?;
    // SQL_ASCII stores the bytes of any text as they are.
    if !["UTF8", "SQL_ASCII"].contains(&encoding.as_str()) {
        return Err(Kind::Store.because(format!(
            "the encoding of the database is {encoding}, which cannot store every reason, name or policy: expected UTF8; create it anew with \
             CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )));
    }
    Ok(())
}

/// The problem behind an error that only a transaction pooler causes: a prepared statement that
/// exists already, or does not exist.
fn pooled(error: &sqlx::Error) -> Option<Problem> {
    let code = error.as_database_error().and_then(|error| error.code())?;
    let text = "the database is behind a pooler that pools transactions, such as PgBouncer with pool_mode = transaction, and the service \
                needs prepared statements that stay: expected session pooling";
    matches!(&*code, "42P05" | "26000").then(|| Kind::Store.because(text))
}

/// Overwrites deleted data in the database: it includes keys that were sealed under an older KEK.
const ERASE: (&str, &str) = ("secure_delete", "ON");

fn sqlite(path: &Path, synchronous: SqliteSynchronous) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .page_size(PAGE_BYTES)
        .pragma("wal_autocheckpoint", JOURNAL_PAGES)
        .pragma(ERASE.0, ERASE.1)
        .busy_timeout(ACQUIRE)
}

/// Options of a pool for PostgreSQL whose sessions begin with these settings.
fn limited(most: u32, settings: &'static str) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(most).acquire_timeout(ACQUIRE).after_connect(
        move |connection, _| {
            Box::pin(async move {
                sqlx::raw_sql(settings).execute(connection).await?;
                Ok(())
            })
        },
    )
}

/// Uses one pool for everything.
fn alone<D: sqlx::Database>(pool: sqlx::Pool<D>) -> Pools<D> {
    Pools {
        read: pool.clone(),
        quick: pool.clone(),
        durable: pool,
        begin_quick: "BEGIN",
        begin: "BEGIN",
    }
}

/// How many of this many connections to PostgreSQL are for changes; SQLite has one writer.
pub(super) fn changes(connections: u32) -> u32 {
    connections.div_ceil(2)
}

/// Opens a database for writing; creates a missing SQLite file. A command passes no number of
/// connections, and has one.
pub(super) async fn open(database: &Database, connections: Option<u32>) -> Result<Backend> {
    Ok(match database {
        Database::Sqlite(path) => {
            let path = &absolute(path)?;
            private(path)?;
            // A failed write, as on a full disk, ends the transaction without the library's
            // knowledge, and that connection cannot begin another.
            let pool = |most| -> Result<SqlitePoolOptions> {
                let pool = pool(path, false, most)?;
                Ok(pool.before_acquire(|connection, _| {
                    Box::pin(async move { Ok(!connection.is_in_transaction()) })
                }))
            };
            // The first connection creates the journal; the others open lazily.
            let durable = pool(1)?
                .connect_with(sqlite(path, SqliteSynchronous::Full))
                .await
                .map_err(|error| cannot(&error))?;
            let begin = "BEGIN IMMEDIATE";
            Backend::Sqlite(match connections {
                None => Pools { begin_quick: begin, begin, ..alone(durable) },
                Some(connections) => Pools {
                    read: pool(connections)?
                        .connect_lazy_with(sqlite(path, SqliteSynchronous::Normal)),
                    quick: pool(1)?.connect_lazy_with(sqlite(path, SqliteSynchronous::Normal)),
                    durable,
                    begin_quick: begin,
                    begin,
                },
            })
        }
        Database::Postgres(server) => {
            let options = postgres(server)?;
            sessions(&options).await?;
            let pool = async |most, settings| {
                let pool = limited(most, settings).connect_with(options.clone()).await;
                pool.map_err(|error| cannot(&error))
            };
            Backend::Postgres(match connections {
                None => alone(pool(1, COMMAND).await?),
                // Changes that wait for a row leave probes and reads their own connections.
                Some(connections) => {
                    let changes = pool(changes(connections), SESSION).await?;
                    Pools { read: pool((connections / 2).max(1), SESSION).await?, ..alone(changes) }
                }
            })
        }
    })
}

/// Opens an SQLite file for reading. `still`: no process has it open, so ignore the files beside
/// it.
async fn read(path: &Path, still: bool) -> Result<Backend> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(still)
        .busy_timeout(ACQUIRE);
    let pool = pool(path, still, 1)?.connect_with(options).await.map_err(|error| cannot(&error))?;
    Ok(Backend::Sqlite(alone(pool)))
}

/// Opens, for reading, a copy of a database that this process has made.
pub(super) async fn copy(path: &Path) -> Result<Backend> {
    read(&absolute(path)?, true).await
}

/// Opens a database for reading; `None` if the file is missing.
pub(super) async fn look(database: &Database) -> Result<Option<Backend>> {
    Ok(Some(match database {
        Database::Sqlite(path) => {
            let path = &absolute(path)?;
            let [there, journal, ..] = present(path)?;
            if !there {
                return Ok(None);
            }
            // Without a journal, no process has it open, and SQLite would leave behind a journal
            // that it made only to read.
            read(path, !journal).await?
        }
        Database::Postgres(server) => {
            let options = postgres(server)?.options([("default_transaction_read_only", "on")]);
            sessions(&options).await?;
            Backend::Postgres(alone(
                limited(1, COMMAND).connect_with(options).await.map_err(|error| cannot(&error))?,
            ))
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_must_prove_who_it_is() {
        let mode =
            |url: &str| format!("{:?}", postgres(&url.to_owned().into()).unwrap().get_ssl_mode());
        for url in [
            "postgres://u@db.example/v",
            "postgresql://u:p@10.0.0.7:5433/v?application_name=x",
            "postgres://u@[2001:db8::1]/v",
        ] {
            assert_eq!(mode(url), "VerifyFull", "{url}");
        }
        for url in [
            "postgres://u@localhost/v",
            "postgres://u@127.0.0.1/v",
            "postgres://u@[::1]/v",
            "postgres:///v?host=/run/postgresql",
        ] {
            assert_ne!(mode(url), "VerifyFull", "{url}");
        }
        // The URL may lower the requirement.
        assert_eq!(mode("postgres://u@db.example/v?sslmode=require"), "Require");
        assert_eq!(mode("postgres://u@localhost/v?sslmode=verify-full"), "VerifyFull");
    }
}
