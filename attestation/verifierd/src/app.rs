//! The running service's state.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use shef_proto::hpke_suite::PublicKey;
use shef_verify::MemoryChainCache;
use shef_verify::crypto::aws_lc_ready;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use crate::appraiser::{Collateral, Received};
use crate::auth::Rates;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::problem::{Kind, Result};
use crate::secrets::{Kek, Signer, read_secret};
use crate::store::{DeviceCounts, Store};

/// How long a replica trusts what it has read before it asks the store whether another one changed it.
const FRESH: Duration = Duration::from_secs(1);

/// Most certificate chains that are kept, about 2 KiB each.
const CHAINS: usize = 64 * 1024;

/// Where the time comes from.
#[derive(Debug, Default)]
pub enum Clock {
    /// The system.
    #[default]
    System,
    /// A test.
    Set(AtomicI64),
}

impl Clock {
    /// Seconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        match self {
            Self::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs() as i64),
            Self::Set(now) => now.load(Ordering::Relaxed),
        }
    }
}

/// State of the service; shared by all requests.
pub struct App {
    /// The configuration; exchanged on reload.
    pub config: ArcSwap<Config>,
    /// The store.
    pub store: Store,
    /// Seals keys, signs sessions; exchanged on reload.
    pub kek: ArcSwap<Kek>,
    /// Signs results and receipts.
    pub signer: ArcSwap<Signer>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Requests of each tenant.
    pub rates: Rates,
    /// Requests that are worked on.
    pub places: Arc<Semaphore>,
    /// Certificate chains that were verified.
    pub chains: MemoryChainCache,
    /// The time.
    pub clock: Clock,
    collateral: Mutex<HashMap<String, (Arc<Collateral>, Instant)>>,
    /// Devices as they were counted last, and when.
    counted: tokio::sync::Mutex<Option<(i64, DeviceCounts)>>,
}

/// Seconds for which devices are not counted again: of a million that takes a tenth of a second.
const COUNTED_SECONDS: i64 = 15;

/// The signing key and the retired ones.
///
/// # Errors
/// A file is missing, open to others, or holds no key.
pub fn signer(config: &Config) -> Result<Signer> {
    let mut retired = Vec::new();
    for path in &config.retired {
        let bad = |text: String| Kind::Material.because(format!("{}: {text}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let bytes = hex::decode(text.trim()).map_err(|_| bad("expected a public key of 65 bytes in hexadecimal".into()))?;
        retired.push(PublicKey::from_bytes(&bytes).map_err(|error| bad(error.to_string()))?);
    }
    Signer::new(&*read_secret(&config.signing_key)?, retired)
}

impl App {
    /// Opens everything that the configuration names.
    ///
    /// # Errors
    /// A file or the database cannot be used.
    pub async fn open(config: Config, clock: Clock) -> Result<Arc<Self>> {
        let kek = Kek::new(&*read_secret(&config.kek)?);
        let signer = signer(&config)?;
        let store = Store::open(&config.database, config.connections, &kek).await?;
        let app = Self {
            places: Arc::new(Semaphore::new(config.limits.requests)),
            store,
            kek: ArcSwap::from_pointee(kek),
            signer: ArcSwap::from_pointee(signer),
            metrics: Arc::new(Metrics::default()),
            rates: Rates::default(),
            chains: MemoryChainCache::new(CHAINS).with_ready_keys(aws_lc_ready),
            clock,
            collateral: Mutex::default(),
            counted: tokio::sync::Mutex::default(),
            config: ArcSwap::from_pointee(config),
        };
        app.add_tenants().await?;
        Ok(Arc::new(app))
    }

    /// How many devices there are, as of now or a few seconds ago; who asks meanwhile waits for the same count.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn device_counts(&self) -> Result<DeviceCounts> {
        let mut counted = self.counted.lock().await;
        let now = self.now();
        if let Some((at, counts)) = *counted
            && (at..at + COUNTED_SECONDS).contains(&now)
        {
            return Ok(counts);
        }
        let counts = self.store.device_counts(now - self.config.load().retention.stale_seconds).await?;
        *counted = Some((now, counts));
        Ok(counts)
    }

    async fn add_tenants(&self) -> Result<()> {
        let config = self.config.load_full();
        let names: Vec<&str> = config.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        self.store.add_tenants(&names).await
    }

    /// Takes a new configuration: tenants, tokens, limits, signing keys, KEK. Address and database stay as they are.
    ///
    /// # Errors
    /// A file cannot be used; the old configuration stays.
    pub async fn reload(&self, config: Config) -> Result<()> {
        let signer = signer(&config)?;
        let kek = Kek::new(&*read_secret(&config.kek)?);
        self.store.check_kek(&kek).await?;
        let before = self.config.swap(Arc::new(config));
        if let Err(problem) = self.add_tenants().await {
            self.config.store(before);
            return Err(problem);
        }
        self.signer.store(Arc::new(signer));
        self.kek.store(Arc::new(kek));
        Ok(())
    }

    /// Opens a secret of the database.
    ///
    /// # Errors
    /// The KEK was rotated while this replica ran, or the secret is not the one of its name.
    pub async fn unseal(&self, parts: &[&[u8]], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let kek = self.kek.load_full();
        if let Some(secret) = kek.open(parts, sealed) {
            return Ok(secret);
        }
        self.store.check_kek(&kek).await?;
        Err(Kind::Internal.because("what the database holds does not open under its name and version"))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// What a tenant's appraisals are held against: at most a second old.
    ///
    /// # Errors
    /// The database does not answer, or holds what cannot be read.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub async fn collateral(&self, tenant: &str) -> Result<Arc<Collateral>> {
        let known = self.collateral.lock().expect("no panic under this lock").get(tenant).cloned();
        if let Some((collateral, checked)) = known
            && self.now() <= collateral.ends
        {
            if checked.elapsed() < FRESH {
                return Ok(collateral);
            }
            if self.store.generation(tenant).await? == collateral.generation {
                self.keep(tenant, &collateral);
                return Ok(collateral);
            }
        }
        self.read_collateral(tenant).await
    }

    /// Reads it again: after a change, or when a release finds another generation.
    ///
    /// # Errors
    /// The database does not answer, or holds what cannot be read.
    pub async fn read_collateral(&self, tenant: &str) -> Result<Arc<Collateral>> {
        let rows = self.store.collateral(tenant).await?;
        let collateral = Arc::new(Collateral::new(&rows, self.now())?);
        self.keep(tenant, &collateral);
        Ok(collateral)
    }

    fn keep(&self, tenant: &str, collateral: &Arc<Collateral>) {
        let mut known = self.collateral.lock().expect("no panic under this lock");
        match known.get_mut(tenant) {
            // A slower reader never replaces what is newer.
            Some((old, _)) if old.generation > collateral.generation => {}
            _ => {
                known.insert(tenant.to_owned(), (Arc::clone(collateral), Instant::now()));
            }
        }
    }

    /// The highest security version that a known kernel of this evidence's device has shown to this tenant; 0 for none.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn shown_svn(&self, tenant: &str, evidence: &Received) -> Result<u64> {
        let Some(claims) = evidence.claims() else { return Ok(0) };
        let device = self.store.device(tenant, &claims.common.ueid).await?;
        Ok(device.map_or(0, |device| device.highest_svn.unsigned_abs()))
    }

    /// Forgets and deletes what has ended.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn sweep(&self) -> Result<()> {
        let config = self.config.load_full();
        let now = self.now();
        for tenant in &config.tenants {
            self.store.sweep(&tenant.name, now, config.retention.appraisals).await?;
            if config.retention.receipt_days > 0 {
                let before = now - i64::from(config.retention.receipt_days) * 86_400;
                let gone = self.store.forget_receipts(&tenant.name, before).await?;
                if gone > 0 {
                    tracing::info!(target: "audit", tenant = %tenant.name, action = "receipts-forgotten", count = gone);
                }
            }
        }
        Ok(())
    }
}
