//! The command that erases a tenant.

use crate::config::Config;
use crate::keyring;
use crate::problem::{Because, Kind, Result};
use crate::store::{Event, Store};

/// Deletes everything of a tenant but its receipts and events, and erases it from the files of an
/// SQLite database. To repeat it after an error completes it.
///
/// # Errors
/// The configuration names the tenant, the database has nothing of it, or does not answer.
pub async fn erase(config: &Config, tenant: &str, now: i64) -> Result<()> {
    if config.tenants.iter().any(|known| known.name == tenant) {
        return Err(Kind::Config.because(format!(
            "the configuration names the tenant {tenant}: remove its [[tenant]], send SIGHUP to every service, and run this again"
        )));
    }
    let store = Store::command(&config.database, &keyring::kek(config)?).await?;
    let until = now + config.limits.session_seconds + 1;
    let done = async {
        store.erase_tenant(&Event::own(tenant, now), until).await?;
        store.erase().await
    }
    .await;
    store.close().await;
    done
}
