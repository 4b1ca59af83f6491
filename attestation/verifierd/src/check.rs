//! `shef-verifierd check`: checks a configuration, its files and its database, beside the service
//! that may run on it. Writes nothing.

use crate::app::{other_audience, published};
use crate::collateral::{Before, Collateral};
use crate::config::{Config, Database};
use crate::init;
use crate::keyring::{self, signer};
use crate::oidc;
use crate::problem::{Because, Kind, Result};
use crate::run::{descriptors, ends_soon};
use crate::secrets::Signer;
use crate::store::{Store, version};
use crate::time;
use crate::tls;
use crate::traces;

/// Findings about a valid configuration.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Facts.
    pub notes: Vec<String>,
    /// Certificates and lists that expire soon, or have.
    pub warnings: Vec<String>,
}

/// Checks a configuration, its files and its database.
///
/// # Errors
/// The first thing that would keep the service from starting.
pub async fn check(config: &Config, now: i64) -> Result<Report> {
    descriptors(config, false)?;
    tls::server(&config.tls, now)?;
    init::authority_is_private(&config.file)?;
    let signer = signer(config)?;
    let kek = keyring::kek(config)?;
    let mut report = Report::default();
    report.notes.push(format!(
        "public keys: the present one, and {} retired",
        signer.public_keys().len() - 1
    ));
    for path in tls::foreign_lists(&config.tls)? {
        report.warnings.push(format!(
            "{}: no CA of clients signed this revocation list, so it revokes no certificate of theirs",
            path.display()
        ));
    }
    for provider in &config.oidc {
        let source = provider.source.clone();
        let keys = tokio::task::spawn_blocking(move || oidc::check(&source)).await;
        let keys = keys.map_err(|error| Kind::Internal.because(error.to_string()))??;
        report.notes.push(format!(
            "{}: keys that verify its tokens: {} ({})",
            provider.source.issuer,
            keys.len(),
            keys.join(", ")
        ));
    }
    if let Some(traces) = config.traces.clone() {
        let endpoint = traces.endpoint.clone();
        let checked = tokio::task::spawn_blocking(move || traces::check(&traces)).await;
        match checked.map_err(|error| Kind::Internal.because(error.to_string()))?? {
            Ok(()) => report.notes.push(format!("{endpoint}: takes spans")),
            Err(why) => report.warnings.push(format!("spans will be lost: {why}")),
        }
    }
    let mut ends = tls::ends(&config.tls)?;
    match Store::look(&config.database, &kek, false).await? {
        None => report.notes.push("there is no database yet: run makes it".into()),
        Some(store) => {
            let looked = look(config, &store, &signer, now, &mut report, &mut ends).await;
            store.close().await;
            looked?;
        }
    }
    ends.sort_unstable();
    ends.dedup_by_key(|(what, _)| *what);
    for (what, end) in ends {
        report.notes.push(format!("{what}: ends {}", time::text(end)));
        if let Some(text) = ends_soon(what, end - now) {
            report.warnings.push(text);
        }
    }
    Ok(report)
}

async fn look(
    config: &Config,
    store: &Store,
    signer: &Signer,
    now: i64,
    report: &mut Report,
    ends: &mut Vec<(&'static str, i64)>,
) -> Result<()> {
    store.promoted().await?;
    if store.found < version() {
        store.may_extend().await?;
    }
    if store.found == 0 {
        report.notes.push("the database is empty: run makes its tables".into());
        return Ok(());
    }
    store.sound().await?;
    if let Some(before) = store.audience().await?.filter(|before| *before != config.audience) {
        report.warnings.push(other_audience(&config.audience, &before));
    }
    published(signer, &store.signers().await?)?;
    let of = if matches!(config.database, Database::Sqlite(_)) { "SQLite" } else { "PostgreSQL" };
    if store.found < version() {
        report.notes.push(format!(
            "the database ({of}) has version {}: run extends it to {}; make a backup before",
            store.found,
            version()
        ));
        return Ok(());
    }
    store.rights().await?;
    report.notes.push(format!("the database ({of}) has version {}", store.found));
    for tenant in store.tenants().await?.iter().filter(|name| config.tenant(name).is_some()) {
        let collateral = Collateral::new(&store.collateral(tenant).await?, now, Before::default())?;
        ends.extend(collateral.watched.list());
        for id in &collateral.withdrawn {
            report.warnings.push(format!(
                "reference values {id} of tenant {tenant} do not count: their payload is deactivated under another id; activate or remove that one"
            ));
        }
    }
    Ok(())
}
