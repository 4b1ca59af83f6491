//! The running service's state.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use shef_console::Log;
use shef_proto::receipt::{Audit, Forgotten, ReceiptError};
use shef_rego::Workers;
use shef_verify::MemoryChainCache;
use shef_verify::crypto::aws_lc_ready;
use tokio::task::block_in_place;
use zeroize::Zeroizing;

use crate::appraiser::Received;
use crate::audit::{Logins, Refusals};
use crate::auth::{Identity, Rates};
use crate::bodies::Bodies;
use crate::collateral::Collateral;
use crate::config::{Config, Retention};
use crate::keyring;
use crate::lanes::Lanes;
use crate::metrics::Metrics;
use crate::oidc;
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::{Kek, Signer};
use crate::store::{DeviceCounts, Event, FORGET, Store};
use crate::time::Clock;
use crate::tls;
use crate::traces::Traces;
use crate::vault;
use crate::work_queue::WorkQueue;

/// How long a replica uses its collateral before it checks the store for changes by other replicas.
const FRESH: Duration = Duration::from_secs(1);

/// Capacity of the cache of certificate chains; an entry is about 2 KiB.
const CHAINS: usize = 64 * 1024;

/// State of the service; shared by all requests.
pub struct App {
    /// The configuration; replaced on reload.
    pub config: ArcSwap<Config>,
    /// The store.
    pub store: Store,
    /// Seals keys, signs sessions; replaced on reload.
    pub kek: ArcSwap<Kek>,
    /// Signs results and receipts.
    pub signer: ArcSwap<Signer>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Spans of requests, if there is a collector.
    pub traces: Option<Traces>,
    /// Request rates of the tenants.
    pub rates: Rates,
    /// Places of requests in progress.
    pub lanes: Lanes,
    /// Memory held by the bodies of requests.
    pub bodies: Arc<Bodies>,
    /// Cache of verified certificate chains.
    pub chains: Arc<MemoryChainCache>,
    /// The time.
    pub clock: Clock,
    collateral: Mutex<HashMap<String, (Arc<Collateral>, Instant)>>,
    work_queues: Mutex<HashMap<String, Arc<WorkQueue>>>,
    /// Last count of each tenant's devices, and its time.
    counted: tokio::sync::Mutex<HashMap<String, (i64, DeviceCounts)>>,
    /// Why nothing can be written to the database, as of the last probe.
    pub unwritable: ArcSwapOption<String>,
    /// Limits refused logins in the log.
    pub logins: Arc<Logins>,
    /// Whether deleted data may be left in the journal of SQLite.
    remains: AtomicBool,
    /// How many configurations were read.
    read: AtomicU64,
    /// Whether a request has asked since the last probe if the key signs.
    asked: AtomicBool,
    /// The keys of identity providers.
    pub provider_keys: oidc::Keys,
    /// Limits the refusals that become events.
    refusals: Refusals,
}

/// Seconds for which a count of devices stays valid: counting a million takes a tenth of a second.
const COUNTED_SECONDS: i64 = 15;

/// Checks that every key that has signed receipts is still published, as their verification needs
/// it.
///
/// # Errors
/// The first that is not.
pub fn published(signer: &Signer, signers: &[String]) -> Result<()> {
    let known: Vec<_> =
        signer.public_keys().iter().map(|key| hex::encode(key.as_bytes())).collect();
    let Some(at) = signers.iter().position(|key| !known.contains(key)) else { return Ok(()) };
    let lost = &signers[at];
    let help = format!("put the line {lost} back into signing.key.retired");
    // The last one is the newest: the key of another replica, or the one that this one just replaced.
    let help = if at + 1 == signers.len() {
        format!(
            "it is the newest one: if another replica signs with it, copy signing.key and signing.key.retired from there, and if this \
             configuration replaces it, {help}"
        )
    } else {
        help
    };
    Err(Kind::Material.because(format!(
        "the key {lost} has signed receipts of this database, and is neither signing.key nor one of the retired ones: {help}"
    )))
}

/// What a replica says whose audience is not that of the replica before.
pub(crate) fn other_audience(own: &str, before: &str) -> String {
    format!(
        "the audience is {own}, and a service of this database began with {before} before: all replicas need the same, or each denies evidence \
         for sessions of the others"
    )
}

impl App {
    /// Opens everything that the configuration names.
    ///
    /// # Errors
    /// A file or the database cannot be used.
    pub async fn open(config: Config, clock: Clock) -> Result<Arc<Self>> {
        crate::usage::started();
        oidc::readable(&config.oidc_sources())?;
        let kek = keyring::kek(&config)?;
        let signer = keyring::signer(&config)?;
        let store = Store::open(&config.database, config.connections, &kek).await?;
        let app = Self {
            lanes: Lanes::new(config.limits.requests),
            bodies: Arc::default(),
            store,
            kek: ArcSwap::from_pointee(kek),
            signer: ArcSwap::from_pointee(signer),
            metrics: Arc::new(Metrics::default()),
            traces: config.traces.as_ref().map(Traces::start).transpose()?,
            rates: Rates::default(),
            chains: Arc::new(MemoryChainCache::new(CHAINS).with_ready_keys(aws_lc_ready)),
            work_queues: Mutex::default(),
            clock,
            collateral: Mutex::default(),
            counted: tokio::sync::Mutex::default(),
            unwritable: ArcSwapOption::empty(),
            logins: Arc::default(),
            remains: AtomicBool::new(true),
            read: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            provider_keys: oidc::Keys::default(),
            refusals: Refusals::default(),
            config: ArcSwap::from_pointee(config),
        };
        app.sign_as(&app.signer.load()).await?;
        app.begin_as(&app.config.load().audience).await?;
        app.limit();
        let tenants = app.store.add_tenants(&app.config.load_full().tenant_names()).await?;
        app.store.serve(&tenants);
        app.bring_up_to_date().await?;
        app.begin().await?;
        Ok(Arc::new(app))
    }

    /// Counts open sessions as used if the machine has lost power since the last start.
    async fn begin(&self) -> Result<()> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let until = self.now() + self.config.load().limits.session_seconds + 1;
        if self.store.begin(boot.trim(), until).await? {
            tracing::warn!(
                "the machine ended before the service did: sessions that were open then count as used"
            );
        }
        Ok(())
    }

    /// Remembers that receipts are signed by this key from now on.
    ///
    /// # Errors
    /// A key that has signed receipts is not published any more, or the database does not answer.
    async fn sign_as(&self, signer: &Signer) -> Result<()> {
        let before = self.store.signers().await?;
        published(signer, &before)?;
        let key = hex::encode(signer.public_keys()[0].as_bytes());
        if self.store.add_signer(&key, self.now()).await? && !before.is_empty() {
            self.note("signing-key", &key).await;
        }
        Ok(())
    }

    /// Remembers the audience of this replica, and says if another replica had another one.
    async fn begin_as(&self, audience: &str) -> Result<()> {
        if let Some(before) = self.store.begin_as(audience).await? {
            tracing::warn!("{}", other_audience(audience, &before));
        }
        Ok(())
    }

    /// Checks that this replica signs with the newest key of its database, as all replicas should.
    ///
    /// # Errors
    /// It signs with another one, or the database does not answer.
    pub async fn signs_as_all(&self) -> Result<()> {
        let own = hex::encode(self.signer.load().public_keys()[0].as_bytes());
        match self.store.signers().await?.last() {
            Some(newest) if *newest != own => Err(Kind::Differs
                .because(format!(
                    "this replica signs with the key {own}, and the newest one of the database is {newest}: give all replicas the same \
                     signing.key and signing.key.retired, and send SIGHUP; to return to an older key, make a new one with signing rotate"
                ))
                .retry_after(5)),
            _ => Ok(()),
        }
    }

    /// Records, for every tenant, an event that concerns all of them.
    pub async fn note(&self, action: &str, what: &str) {
        tracing::info!(target: "audit", who = "service", action, what);
        if let Err(problem) = self.store.note(action, what, self.now()).await {
            tracing::warn!(code = problem.kind.code(), %problem, action, "an event was not kept");
        }
    }

    /// Writes to a log that was late, which recovers with its next line, and to the database, to
    /// find out whether they can be written.
    ///
    /// # Errors
    /// The database cannot.
    pub async fn probe(&self) -> Result<()> {
        if Log::installed().is_some_and(|log| !log.works()) {
            tracing::error!(target: "audit", action = "log-late", "lines of the log were lost or late");
        }
        let written = self.store.probe(self.now()).await;
        let why = written.as_ref().err().map(|problem| Arc::new(problem.with_cause()));
        self.unwritable.store(why);
        written
    }

    /// Has deleted data erased from the journal of SQLite, soon.
    pub fn erase_soon(&self) {
        self.remains.store(true, Ordering::Relaxed);
    }

    /// Erases deleted data from the journal of SQLite; the next time, if others read it.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn erase_remains(&self) -> Result<()> {
        if self.remains.swap(false, Ordering::Relaxed) {
            let done = self.store.emptied().await;
            if !matches!(done, Ok(true)) {
                self.erase_soon();
            }
            done?;
        }
        Ok(())
    }

    /// Whether the key that signs did so the last time; a question here has [`App::probe_signer`]
    /// find it out anew.
    ///
    /// # Errors
    /// Its token did not answer.
    pub fn signs(&self) -> Result<()> {
        self.asked.store(true, Ordering::Relaxed);
        self.signer.load().failed().map_or(Ok(()), Err)
    }

    /// Finds out whether the key that signs can do so, if a request has asked since the last time. A
    /// token does not sign without need, nor once for each request of a stranger.
    ///
    /// # Errors
    /// Its token does not answer.
    pub async fn probe_signer(&self) -> Result<()> {
        if !self.asked.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let signer = self.signer.load_full();
        let done = tokio::task::spawn_blocking(move || signer.probe()).await;
        done.map_err(|error| Kind::Internal.because(error.to_string()))?
    }

    /// Adds what older versions did not remember or sign, once, after a schema migration. Also
    /// moves CoRIM versions that are remembered under a signer's name to its key, while the name
    /// still tells it.
    async fn bring_up_to_date(&self) -> Result<()> {
        let extended = (1..crate::store::version()).contains(&self.store.found);
        let named = self.store.remembered_by_name().await?;
        for tenant in self
            .config
            .load_full()
            .tenants
            .iter()
            .filter(|tenant| extended || named.contains(&tenant.name))
        {
            match self.read_collateral(&tenant.name).await {
                Ok(collateral) => self.store.remember(&tenant.name, &collateral.versions).await?,
                Err(problem) => {
                    tracing::error!(tenant = %tenant.name, %problem, "the versions of its CoRIMs are not remembered");
                }
            }
            if !extended {
                continue;
            }
            let heads = self.store.heads(&tenant.name).await?;
            if heads.kept.seq > 0 && self.store.found < crate::store::SIGNED {
                let statement =
                    Forgotten { tenant: tenant.name.clone(), head: heads.kept, time: self.now() };
                let event = Event::own(&tenant.name, self.now());
                self.store
                    .forget_receipts(
                        &event,
                        heads.kept,
                        heads.kept,
                        &self.signer.load().forgotten(&statement)?,
                    )
                    .await?;
            }
        }
        Ok(())
    }

    /// How many devices a tenant has, at most a few seconds old. Concurrent callers wait for the
    /// same count.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn device_counts(&self, tenant: &str) -> Result<DeviceCounts> {
        let mut counted = self.counted.lock().await;
        let now = self.now();
        if let Some((at, counts)) = counted.get(tenant)
            && (*at..*at + COUNTED_SECONDS).contains(&now)
        {
            return Ok(*counts);
        }
        let counts = self
            .store
            .device_counts(tenant, now - self.config.load().retention.stale_seconds)
            .await?;
        counted.insert(tenant.to_owned(), (now, counts));
        Ok(counts)
    }

    /// Invalidates the count of a tenant's devices, after one was removed.
    pub async fn recount(&self, tenant: &str) {
        self.counted.lock().await.remove(tenant);
    }

    /// What expires, with the end in seconds since 1970: certificates of signers and CoRIMs of
    /// these tenants, and those of the service itself.
    ///
    /// # Errors
    /// The database does not answer, or a file cannot be read.
    pub async fn ends(&self, tenants: &[&str], service: bool) -> Result<Vec<(&'static str, i64)>> {
        let mut all = if service { tls::ends(&self.config.load().tls)? } else { Vec::new() };
        for tenant in tenants {
            all.extend(self.collateral(tenant).await?.watched.list());
        }
        let mut first: std::collections::BTreeMap<&'static str, i64> =
            std::collections::BTreeMap::new();
        for (what, end) in all {
            first.entry(what).and_modify(|known| *known = end.min(*known)).or_insert(end);
        }
        Ok(first.into_iter().collect())
    }

    /// Records a refusal as an event of its tenant; if there are too many, only their number.
    pub async fn refused(&self, who: &Identity, what: &str) {
        let Some(held_back) = self.refusals.pass(who, Instant::now()) else { return };
        crate::audit::change(who, "refused", what);
        let what = if held_back == 0 {
            what.to_owned()
        } else {
            format!("{what}; {held_back} before it were not kept")
        };
        let event =
            Event { tenant: &who.tenant, who: &who.name, role: who.role.name(), time: self.now() };
        if let Err(problem) = self.store.event(&event, "refused", &what).await {
            tracing::warn!(code = problem.kind.code(), %problem, "a refusal was not kept");
        }
    }

    fn limit(&self) {
        let limits = &self.config.load().limits;
        self.store.limit(limits.tenant_bytes, limits.tenant_rows);
    }

    /// Applies a new configuration: tenants, tokens, limits, signing keys, KEK. The settings that
    /// [`Config::fixed`] lists stay unchanged. `number` is that of [`App::withdraw`].
    ///
    /// # Errors
    /// A file cannot be used, or a newer configuration was read in the meantime; the old one stays.
    pub async fn reload(&self, config: Config, number: u64) -> Result<()> {
        oidc::readable(&config.oidc_sources())?;
        let config = Arc::new(config);
        let of = Arc::clone(&config);
        let keys = vault::aside(move || Ok((keyring::signer(&of)?, keyring::kek(&of)?)));
        let (signer, kek) = keys.await?;
        self.store.check_kek(&kek).await?;
        self.sign_as(&signer).await?;
        self.begin_as(&config.audience).await?;
        let tenants = self.store.add_tenants(&config.tenant_names()).await?;
        // Nothing waits from here on: rights that were withdrawn must not come back.
        if self.read.load(Ordering::Relaxed) != number {
            return Err(
                Kind::Busy.because("a newer configuration was read before this one was in force")
            );
        }
        self.store.serve(&tenants);
        self.config.store(config);
        self.limit();
        self.signer.store(Arc::new(signer));
        self.kek.store(Arc::new(kek));
        Ok(())
    }

    /// Takes from callers the rights that they do not have in a new configuration. Depends on
    /// nothing else in it. Returns the number of the configuration.
    pub fn withdraw(&self, new: &Config) -> u64 {
        let number = self.read.fetch_add(1, Ordering::Relaxed) + 1;
        let kept = self.config.load().without_removed(new);
        self.store.keep_tenants(&kept.tenant_names());
        self.config.store(Arc::new(kept));
        number
    }

    /// Unseals a secret from the database.
    ///
    /// # Errors
    /// The KEK was rotated while this replica ran, or the secret belongs to another name.
    pub async fn unseal(&self, parts: &[&[u8]], sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let kek = self.kek.load_full();
        if let Some(secret) = kek.open(parts, sealed) {
            return Ok(secret);
        }
        self.store.check_kek(&kek).await?;
        Err(Kind::Internal
            .because("what the database holds does not open under its name and version"))
    }

    /// Seconds since 1970.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.clock.now()
    }

    /// The tenant's collateral, at most a second old.
    ///
    /// # Errors
    /// The database does not answer, or holds unreadable collateral.
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

    /// Reads the collateral again: after a change, or when a release finds another generation.
    ///
    /// # Errors
    /// The database does not answer, or holds unreadable collateral.
    pub async fn read_collateral(&self, tenant: &str) -> Result<Arc<Collateral>> {
        let rows = self.store.collateral(tenant).await?;
        let (now, before) = (self.now(), self.known_collateral(tenant));
        // Off the threads that serve connections: there may be a lot to parse.
        let collateral = block_in_place(|| Collateral::new(&rows, now, before.as_deref().into()))?;
        let collateral = Arc::new(collateral);
        self.keep(tenant, &collateral);
        Ok(collateral)
    }

    /// The tenant's collateral as it was last read.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    #[must_use]
    pub fn known_collateral(&self, tenant: &str) -> Option<Arc<Collateral>> {
        let known = self.collateral.lock().expect("no panic under this lock");
        known.get(tenant).map(|(collateral, _)| Arc::clone(collateral))
    }

    /// Uses this collateral from now on, unless there is newer one.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn keep(&self, tenant: &str, collateral: &Arc<Collateral>) {
        let mut known = self.collateral.lock().expect("no panic under this lock");
        match known.get_mut(tenant) {
            // A slower reader never replaces newer collateral.
            Some((old, _)) if old.generation > collateral.generation => {}
            _ => {
                known.insert(tenant.to_owned(), (Arc::clone(collateral), Instant::now()));
            }
        }
    }

    /// The work queue that a tenant's appraisals run in.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub fn work_queue(&self, tenant: &str) -> Arc<WorkQueue> {
        let mut work_queues = self.work_queues.lock().expect("no panic under this lock");
        if let Some(work_queue) = work_queues.get(tenant) {
            return Arc::clone(work_queue);
        }
        let work_queue = WorkQueue::new(tenant, Workers::default(), Arc::clone(&self.metrics));
        Arc::clone(work_queues.entry(tenant.to_owned()).or_insert(Arc::new(work_queue)))
    }

    /// The highest security version that a known kernel of the evidence's device has shown to this
    /// tenant, or 0.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn shown_svn(&self, tenant: &str, evidence: &Received) -> Result<u64> {
        let Some(claims) = evidence.claims() else { return Ok(0) };
        let device = self.store.device(tenant, &claims.common.ueid).await?;
        Ok(device.map_or(0, |device| device.highest_svn.unsigned_abs()))
    }

    /// Deletes receipts from before `before`, if they form the chain, and signs a statement about
    /// it. Returns how many.
    async fn forget_receipts(&self, tenant: &str, before: i64) -> Result<u64> {
        let (heads, rows) =
            (self.store.heads(tenant).await?, self.store.old_receipts(tenant, before).await?);
        // Another replica may be doing the same.
        if rows.is_empty() || self.store.heads(tenant).await?.kept != heads.kept {
            return Ok(0);
        }
        let (signer, name, time) = (self.signer.load_full(), tenant.to_owned(), self.now());
        let from = heads.kept;
        let verified = tokio::task::spawn_blocking(move || {
            let bad = |error: ReceiptError| {
                Kind::Audit.because(format!(
                    "tenant {name}: {error} ({}); no receipt was forgotten",
                    error.code()
                ))
            };
            let keys = signer.public_keys();
            if heads.kept.seq > 0 {
                Forgotten::verify(&heads.signed, keys, &name, heads.kept).map_err(bad)?;
            }
            let mut audit = Audit::new(&name, keys, Some(heads.kept));
            let mut head = heads.kept;
            for row in &rows {
                // The signed time decides, whatever its column says.
                if audit.push(&row.content).map_err(bad)?.time >= before {
                    break;
                }
                head = audit.head();
            }
            if head.seq == heads.kept.seq {
                return Ok(None);
            }
            let statement = Forgotten { tenant: name.clone(), head, time };
            Ok::<_, Problem>(Some((head, signer.forgotten(&statement)?)))
        });
        let verified = verified.await.map_err(|error| Kind::Internal.because(error.to_string()))?;
        let Some((to, signed)) = verified? else { return Ok(0) };
        self.store.forget_receipts(&Event::own(tenant, time), from, to, &signed).await
    }

    /// Deletes expired data of every tenant.
    ///
    /// # Errors
    /// The first tenant whose data could not be deleted; those of all others are.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    pub async fn sweep(&self) -> Result<()> {
        let work_queues: Vec<Arc<WorkQueue>> =
            self.work_queues.lock().expect("no panic under this lock").values().cloned().collect();
        work_queues.iter().for_each(|work_queue| work_queue.retire());
        let config = self.config.load_full();
        let mut all = Ok(());
        for tenant in &config.tenants {
            all = all.and(self.sweep_tenant(&tenant.name, &config.retention).await);
        }
        all
    }

    async fn sweep_tenant(&self, tenant: &str, retention: &Retention) -> Result<()> {
        let now = self.store.witnessed(self.now()).await?;
        self.store.sweep(tenant, now, retention.appraisals).await?;
        if retention.receipt_days == 0 {
            return Ok(());
        }
        let before = now - i64::from(retention.receipt_days) * 86_400;
        // In parts, so that releases go on in between.
        loop {
            let gone = self.forget_receipts(tenant, before).await?;
            if gone > 0 {
                tracing::info!(target: "audit", tenant, action = "receipts-forgotten", count = gone);
            }
            if gone < FORGET {
                return Ok(());
            }
        }
    }
}
