//! Rotation of the KEK, as a command.

use std::path::Path;

use zeroize::Zeroizing;

use crate::config::Config;
use crate::init;
use crate::problem::{Kind, Result};
use crate::secrets::{Kek, random};
use crate::store::Store;

/// Seals everything in the configured database under the KEK in `to`, which is made when it is
/// missing. The configured KEK stays where it is: backups stand under it. Run again after a crash,
/// it does what is left to do. Gives how many secrets there were, `None` when all was done.
///
/// # Errors
/// The database stands under neither KEK, or cannot be used; or a file cannot be.
pub async fn rekey(config: &Config, to: &Path) -> Result<Option<u64>> {
    if to == config.kek {
        return Err(Kind::Exists.because(format!("{} is the KEK that the configuration names; give another file", to.display())));
    }
    if let Some(name) = config.secret_of(to) {
        return Err(Kind::Exists.because(format!("{} is the file of {name}; give a file of its own", to.display())));
    }
    if !to.exists() {
        // On disk, name and all, before anything depends on it.
        init::write_secret(to, &config.kek, &Zeroizing::new(random()))?;
    }
    let (old, new) = (Kek::read(&config.kek)?, Kek::read(to)?);
    let open = |kek| Store::open(&config.database, config.connections, kek);
    let store = match open(&old).await {
        Err(problem) if problem.kind == Kind::WrongKek => open(&new).await?,
        other => other?,
    };
    let done = store.rekey(&old, &new).await;
    store.close().await;
    done
}
