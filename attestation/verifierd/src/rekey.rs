//! The command that rotates the KEK.

use std::path::Path;

use shef_files::{self as files, Owner};
use zeroize::Zeroizing;

use crate::config::{Config, Database, same_file};
use crate::init;
use crate::keyring;
use crate::problem::{Because, Kind, Result};
use crate::secrets::random;
use crate::store::Store;

/// Seals everything in the configured database under the KEK in `to`, which is created if missing.
/// The configured KEK file stays in place: backups are sealed under it. After a crash, another run
/// completes the work. Returns how many secrets there were, or `None` if all of them were already
/// resealed.
///
/// # Errors
/// The database is sealed under neither KEK, or the database or a file cannot be used.
pub async fn rekey(config: &Config, to: &Path, now: i64) -> Result<Option<u64>> {
    if config.named(to).to_str().is_none() {
        return Err(Kind::Config.because(format!(
            "{}: expected a name in UTF-8, which the configuration can hold",
            to.display()
        )));
    }
    let old = keyring::kek(config)?;
    if same_file(to, &config.kek) {
        return Err(Kind::Exists.because(format!(
            "{} is the KEK that the configuration names; give another file",
            to.display()
        )));
    }
    if let Some(name) = config.reserved(to) {
        return Err(Kind::Exists
            .because(format!("{} is the file of {name}; give another name", to.display())));
    }
    // Two concurrent runs take turns.
    let _alone = match &config.database {
        Database::Sqlite(path) => {
            let lock = files::lock(files::folder(path), Owner::Service);
            Some(lock.map_err(|error| Kind::Store.because(format!("{}: {error}", path.display())))?)
        }
        Database::Postgres(_) => None,
    };
    let open = |kek| Store::command(&config.database, kek);
    let store = match open(&old).await {
        Err(problem) if problem.kind == Kind::WrongKek && to.exists() => {
            let new = keyring::kek_in(to, config)?;
            open(&new).await?
        }
        other => other?,
    };
    let done = async {
        if !to.exists() {
            // Synced to disk, name and all, before anything depends on it.
            let key = Zeroizing::new(random());
            match config.pkcs11.as_ref().and_then(|token| token.kek.as_deref()) {
                None => init::write_secret(to, &config.kek, &key)?,
                Some(label) => {
                    init::write_sealed(to, &config.kek, &keyring::seal(config, label, &key)?)?;
                }
            }
        }
        let new = keyring::kek_in(to, config)?;
        let done = store.rekey(&old, &new, now).await?;
        store.erase().await?;
        Ok(done)
    }
    .await;
    store.close().await;
    done
}
