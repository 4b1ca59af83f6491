//! Backup and restore of the embedded database, and the audit of receipts in either database.

use std::path::Path;

use shef_files::{self as files, Owner, Part};
use shef_proto::event::{EventAudit, EventError};
use shef_proto::receipt::{Audit, Forgotten, Head};

use crate::config::{Config, Database};
use crate::keyring::{self, signer};
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::Kek;
use crate::store::{EventRow, Store, version};

const PAGE: i64 = 1000;

fn cannot(path: &Path, error: impl std::fmt::Display) -> Problem {
    Kind::Backup.because(format!("{}: {error}", path.display()))
}

/// Opens the database for reading, beside the running service.
async fn look(config: &Config, present: bool) -> Result<Store> {
    let store = Store::look(&config.database, &keyring::kek(config)?, present).await?;
    store.ok_or_else(|| {
        Kind::Store.because("there is no database yet: `shef-verifierd run` makes it")
    })
}

/// The same, as it is at this moment, whatever the service writes.
async fn still(config: &Config) -> Result<Store> {
    let store = look(config, true).await?;
    store.hold().await?;
    Ok(store)
}

/// Writes a consistent copy of the database while the service runs. Its keys are sealed; it does
/// not contain the KEK.
///
/// # Errors
/// The file exists, the database or the copy is damaged or does not pass the audit, or the database
/// is not SQLite: PostgreSQL has separate tools.
pub async fn backup(config: &Config, to: &Path) -> Result<()> {
    if matches!(config.database, Database::Postgres(_)) {
        return Err(Kind::Backup.because(format!(
            "the database is PostgreSQL, whose own tools copy it: `pg_dump --format=custom --file={} --dbname=URL`, or pg_basebackup with \
             continuous archiving for any moment",
            to.display()
        )));
    }
    let to = &std::path::absolute(to).map_err(|error| cannot(to, error))?;
    if to.to_str().is_none() {
        return Err(cannot(to, "expected a name in UTF-8"));
    }
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(cannot(to, "exists already"));
    }
    if let Some(what) = config.reserved(to) {
        return Err(cannot(to, format!("is the file of {what}; give another name")));
    }
    let kek = keyring::kek(config)?;
    let store = look(config, false).await?;
    let made = async {
        if store.found == 0 {
            return Err(
                Kind::Store.because("the database is empty: `shef-verifierd run` makes its tables")
            );
        }
        // The final name only ever holds a complete copy.
        let part = Part::new(to, 0o600, to, |_| Ok(())).map_err(|error| cannot(to, error))?;
        store.copy_to(part.path()).await.map_err(|problem| cannot(to, problem.with_cause()))?;
        audit_copy(config, part.path(), &kek).await?;
        part.place(to).map_err(|error| cannot(to, error))
    }
    .await;
    store.close().await;
    made
}

/// Puts a backup in the place of the missing database. Sessions that were open count as used,
/// because the backup may not know that they were. Receipts younger than the backup are missing,
/// and an audit against a younger head reports that.
///
/// # Errors
/// A database or remains of one exist, or the backup is not a database of this service, is damaged,
/// of a newer version, sealed under another KEK, or does not pass the audit.
pub async fn restore(config: &Config, from: &Path, now: i64) -> Result<()> {
    let Database::Sqlite(path) = &config.database else {
        return Err(Kind::Backup.because(format!(
            "the database is PostgreSQL, whose own tools restore it: `pg_restore --clean --dbname=URL {}`, or a recovery to a moment. Then run \
             this without --from, before a service starts",
            from.display()
        )));
    };
    let kek = keyring::kek(config)?;
    let mut backup = files::open(from).map_err(|error| cannot(from, error))?;
    let [_, wal, _, journal] = Database::files(from);
    for name in [wal, journal] {
        match std::fs::symlink_metadata(&name) {
            Ok(found) if found.is_file() && found.len() == 0 => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(&name, error)),
            // It may contain a revocation.
            Ok(_) => {
                let text = format!(
                    "the copy {0} is incomplete without the changes in this file, and `restore` does not read it. Restore a copy that \
                     `shef-verifierd backup` made. Or have SQLite write the changes into the copy: `sqlite3 {0} 'PRAGMA \
                     wal_checkpoint(TRUNCATE)'`. Only if the file belongs to another database, move it away",
                    from.display()
                );
                return Err(cannot(&name, text));
            }
        }
    }
    let _alone =
        files::lock(files::folder(path), Owner::Service).map_err(|error| cannot(path, error))?;
    for name in Database::files(path) {
        // SQLite would write another database's journal into this one.
        if std::fs::symlink_metadata(&name).is_ok() {
            return Err(cannot(
                &name,
                "is there already; move all files of the database away first (FILE, FILE-wal, FILE-shm, FILE-journal)",
            ));
        }
    }
    // For the owner only, whatever the mode of the backup.
    let part = Part::new(path, 0o600, path, |file| std::io::copy(&mut backup, file).map(drop))
        .map_err(|error| cannot(path, error))?;
    let ready = async {
        audit_copy(config, part.path(), &kek).await.map_err(|problem| {
            // Not the service's database, but a file that was named.
            let kind = match problem.kind {
                Kind::Store | Kind::Broken => Kind::Backup,
                kind => kind,
            };
            let why = problem.with_cause();
            kind.because(format!("{} cannot be restored: {why}", from.display()))
        })?;
        let store = Store::command(&Database::Sqlite(part.path().to_owned()), &kek).await?;
        let done = ended(config, &store, now).await;
        store.close().await;
        done
    }
    .await;
    // Closing its last connection, SQLite has written its journal into the database.
    let left: Vec<_> = Database::files(part.path())
        .into_iter()
        .skip(1)
        .filter(|name| std::fs::symlink_metadata(name).is_ok())
        .collect();
    left.iter().for_each(|name| drop(std::fs::remove_file(name)));
    ready?;
    if let Some(name) = left.first() {
        return Err(cannot(name, "this journal could not be written into the database"));
    }
    part.place(path).map_err(|error| cannot(path, error))
}

/// Takes a PostgreSQL database into use again that PostgreSQL's tools have restored, from a copy or
/// to a moment. Sessions that were open count as used, because the database may not know that they
/// were. Receipts after that moment are missing, and an audit against a younger head reports that.
///
/// # Errors
/// The database is SQLite's, is empty or in use, still recovers, does not pass the audit, or does not
/// answer; its sessions stay then.
pub async fn restored(config: &Config, now: i64) -> Result<Vec<Audited>> {
    if matches!(config.database, Database::Sqlite(_)) {
        return Err(Kind::Backup
            .because("the database is SQLite's: expected the copy to restore, as --from FILE"));
    }
    let kek = keyring::kek(config)?;
    let looked = Store::look(&config.database, &kek, false).await?;
    if let Some(store) = looked {
        let (promoted, others) = (store.promoted().await, store.others().await);
        let empty = store.found == 0;
        store.close().await;
        promoted?;
        if empty {
            return Err(Kind::Backup.because(
                "the database is empty: restore a copy into it first, as with `pg_restore --dbname=URL FILE`, or correct storage.url",
            ));
        }
        let others = others?;
        if others > 0 {
            return Err(Kind::Backup.because(format!(
                "a service or another command uses the database ({others} sessions of shef-verifierd): stop every replica, and run this again"
            )));
        }
    }
    // An older copy gets the tables that the audit needs.
    let store = Store::command(&config.database, &kek).await?;
    let done = async {
        let audited = audit_in(config, &store).await?;
        ended(config, &store, now).await?;
        Ok(audited)
    }
    .await;
    store.close().await;
    done
}

/// Ends the sessions that were open in a restored database, and records the restore in the chain of
/// every tenant.
async fn ended(config: &Config, store: &Store, now: i64) -> Result<()> {
    // One more second: a session made within this second expires then.
    store.forget_sessions(now + config.limits.session_seconds + 1).await?;
    store.note("restored", "", now).await
}

/// A tenant's verified chains.
#[derive(Clone, Debug)]
pub struct Audited {
    /// Tenant.
    pub tenant: String,
    /// Whether the configuration names it. One that was erased keeps its chains.
    pub configured: bool,
    /// Where the kept receipts begin.
    pub from: Head,
    /// The head.
    pub head: Head,
    /// How many events exist.
    pub events: u64,
    /// Digest of the last of them.
    pub events_head: Vec<u8>,
}

/// Verifies the receipts of every tenant of the configuration and of the database, from the oldest kept to the head, and its
/// events, which must be those that receipts name. The chain begins at the first receipt, or at the
/// service's signed statement that it deleted earlier ones.
///
/// # Errors
/// The first receipt or event that breaks a chain.
pub async fn audit(config: &Config) -> Result<Vec<Audited>> {
    let store = still(config).await?;
    let result = audit_in(config, &store).await;
    store.close().await;
    result
}

/// Checks and audits a copy of the database. A copy of an older version is only checked: the audit
/// needs the tables that a service adds at its start.
async fn audit_copy(config: &Config, path: &Path, kek: &Kek) -> Result<()> {
    let copy = Store::copy(path, kek).await?;
    let audited = match copy.found < version() {
        true => Ok(()),
        false => audit_in(config, &copy).await.map(drop),
    };
    copy.close().await;
    audited
}

/// The tenants of the configuration, and then those that only the database has.
async fn tenants_of(config: &Config, store: &Store) -> Result<Vec<String>> {
    let mut names: Vec<String> = config.tenant_names().into_iter().map(str::to_owned).collect();
    let others = store.tenants().await?;
    names.extend(others.into_iter().filter(|name| config.tenant(name).is_none()));
    Ok(names)
}

async fn audit_in(config: &Config, store: &Store) -> Result<Vec<Audited>> {
    let keys: Vec<_> = signer(config)?.keys().into_iter().map(|key| key.key).collect();
    let mut list = Vec::new();
    for tenant in tenants_of(config, store).await? {
        let heads = store.heads(&tenant).await?;
        let bad = |error: shef_proto::receipt::ReceiptError| {
            Kind::Audit.because(format!("tenant {tenant}: {error} ({})", error.code()))
        };
        if heads.kept.seq > 0 {
            Forgotten::verify(&heads.signed, &keys, &tenant, heads.kept).map_err(bad)?;
        }
        let from = if heads.kept.seq > 0 { Some(heads.kept) } else { None };
        let mut audit = Audit::new(&tenant, &keys, from);
        let mut events = EventAudit::new(&tenant);
        loop {
            let rows = store.receipts(&tenant, None, audit.head().seq as i64, PAGE).await?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                let receipt = audit.push(&row.content).map_err(bad)?;
                receipt.events.map_or(Ok(()), |named| events.expect(named)).map_err(unfit)?;
            }
        }
        audit.finish(&heads.head).map_err(bad)?;
        let (events, events_head) =
            events_of::<Problem>(store, &tenant, events, &mut |_| Ok(())).await?;
        list.push(Audited {
            configured: config.tenant(&tenant).is_some(),
            tenant,
            from: heads.kept,
            head: heads.head,
            events,
            events_head,
        });
    }
    Ok(list)
}

fn unfit(error: EventError) -> Problem {
    Kind::Audit.because(format!("{error} ({})", error.code()))
}

/// Verifies a tenant's events, and passes each to `take`.
async fn events_of<E: From<Problem>>(
    store: &Store,
    tenant: &str,
    mut audit: EventAudit<'_>,
    take: &mut dyn FnMut(&EventRow) -> Result<(), E>,
) -> Result<(u64, Vec<u8>), E> {
    loop {
        let rows = store.events(tenant, audit.head().0 as i64, PAGE).await?;
        if rows.is_empty() {
            audit.finish().map_err(unfit)?;
            let (seq, digest) = audit.head();
            return Ok((seq, digest.to_vec()));
        }
        for row in &rows {
            audit.push(&row.content(), &row.digest).map_err(unfit)?;
            take(row)?;
        }
    }
}

/// Passes every event of one tenant or of all, of the configuration and of the database, to `out`, as one line of JSON with its tenant, and
/// verifies the chains on the way.
///
/// # Errors
/// There is no such tenant, an event breaks its chain, or `out` fails.
pub async fn events<E: From<Problem>>(
    config: &Config,
    tenant: Option<&str>,
    mut out: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    let store = still(config).await?;
    let result = async {
        let mut names = tenants_of(config, &store).await?;
        if let Some(name) = tenant {
            names.retain(|known| known == name);
            if names.is_empty() {
                let text =
                    format!("there is no tenant {name} in the configuration or the database");
                return Err(Kind::Config.because(text).into());
            }
        }
        for name in &names {
            let mut take = |row: &EventRow| {
                let mut line = serde_json::json!(row);
                line["tenant"] = serde_json::json!(name);
                out(&line.to_string())
            };
            events_of(&store, name, EventAudit::new(name), &mut take).await?;
        }
        Ok(())
    }
    .await;
    store.close().await;
    result
}
