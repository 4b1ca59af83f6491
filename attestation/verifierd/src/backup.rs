//! Backup and restore of the embedded database, and the audit of the receipts in any.

use std::path::Path;

use shef_proto::receipt::{Audit, Head};

use crate::app::signer;
use crate::config::{Config, Database};
use crate::problem::{Kind, Problem, Result};
use crate::secrets::{Kek, read_secret};
use crate::store::Store;

const PAGE: i64 = 1000;

fn cannot(path: &Path, error: impl std::fmt::Display) -> Problem {
    Kind::Backup.because(format!("{}: {error}", path.display()))
}

async fn open(config: &Config) -> Result<Store> {
    Store::open(&config.database, config.connections, &Kek::new(&*read_secret(&config.kek)?)).await
}

/// Writes a consistent copy of the database while the service runs. Keys in it are sealed; the KEK is not in it.
///
/// # Errors
/// The file exists, or the database is not SQLite: PostgreSQL has tools of its own.
pub async fn backup(config: &Config, to: &Path) -> Result<()> {
    if matches!(config.database, Database::Postgres(_)) {
        return Err(Kind::Backup.because("the database is PostgreSQL: use pg_dump, or its continuous archiving"));
    }
    if to.exists() {
        return Err(cannot(to, "exists already"));
    }
    let store = open(config).await?;
    store.copy_to(to).await?;
    store.close().await;
    Ok(())
}

/// Puts a backup where the configuration's database is missing. Sessions that were open count as used, because the backup may not know that
/// they were; receipts younger than the backup are missing, and an audit against a younger head says so.
///
/// # Errors
/// A database is there, or the backup is none, of a newer version, or sealed under another KEK.
pub async fn restore(config: &Config, from: &Path, now: i64) -> Result<()> {
    let Database::Sqlite(path) = &config.database else {
        return Err(Kind::Backup.because("the database is PostgreSQL: use pg_restore"));
    };
    if !from.is_file() {
        return Err(cannot(from, "there is no such file"));
    }
    if path.exists() {
        return Err(cannot(path, "a database is there already; move it away first"));
    }
    let part = path.with_extension("restoring");
    std::fs::copy(from, &part).map_err(|error| cannot(&part, error))?;
    let checked = Config { database: Database::Sqlite(part.clone()), ..config.clone() };
    let result = async {
        let store = open(&checked).await?;
        // One more second: a session that was made in this very one ends then.
        store.forget_sessions(now + config.limits.session_seconds + 1).await?;
        store.close().await;
        std::fs::rename(&part, path).map_err(|error| cannot(path, error))
    }
    .await;
    if result.is_err() {
        for end in ["restoring", "restoring-wal", "restoring-shm"] {
            let _ = std::fs::remove_file(path.with_extension(end));
        }
    }
    result
}

/// A tenant's chain that was verified.
#[derive(Clone, Debug)]
pub struct Audited {
    /// Tenant.
    pub tenant: String,
    /// Where the kept receipts begin.
    pub from: Head,
    /// The head.
    pub head: Head,
}

/// Verifies the receipts of every configured tenant, from the oldest kept to the head.
///
/// # Errors
/// The first receipt that does not fit.
pub async fn audit(config: &Config) -> Result<Vec<Audited>> {
    let store = open(config).await?;
    let keys: Vec<_> = signer(config)?.keys().into_iter().map(|key| key.key).collect();
    let mut list = Vec::new();
    for tenant in &config.tenants {
        store.add_tenants(&[&tenant.name]).await?;
        let (head, from) = store.heads(&tenant.name).await?;
        let bad =
            |error: shef_proto::receipt::ReceiptError| Kind::Audit.because(format!("tenant {}: {error} ({})", tenant.name, error.code()));
        let mut audit = Audit::new(&tenant.name, &keys, Some(from));
        loop {
            let rows = store.receipts(&tenant.name, None, audit.head().seq as i64, PAGE).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                audit.push(&row.content).map_err(bad)?;
            }
        }
        audit.finish(&head).map_err(bad)?;
        list.push(Audited { tenant: tenant.name.clone(), from, head });
    }
    store.close().await;
    Ok(list)
}
