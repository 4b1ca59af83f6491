//! The agent: listens, and holds its cards.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use shef_door::Door;
use shef_remote::wire::{ALPN, DeviceState, codes};
use shef_remote::{certificates, private_key, unpaired};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use crate::config::Times;
use crate::door::{Seats, door};
use crate::identity::{Revoked, end_of, ends_soon};
use crate::slot::Slot;
use crate::{AgentError, Config, Opener, connection};

/// How often certificates are looked at.
const DAY: Duration = Duration::from_secs(86_400);

/// What can change while the agent runs.
pub(crate) struct Setup {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) grace: Duration,
    pub(crate) drain: Duration,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_owner: usize,
    pub(crate) times: Times,
    /// Files and ends of the agent's own certificates.
    ends: Vec<(std::path::PathBuf, std::time::SystemTime)>,
}

impl Setup {
    fn load(config: &Config) -> Result<Arc<Self>, AgentError> {
        let ends = [&config.ca, &config.cert].map(|path| -> Result<_, AgentError> {
            Ok(certificates(path)?.iter().filter_map(|der| Some((path.clone(), end_of(der)?))).collect::<Vec<_>>())
        });
        let mut all = Vec::new();
        for list in ends {
            all.extend(list?);
        }
        let setup = Self {
            acceptor: TlsAcceptor::from(Arc::new(tls(config)?)),
            revoked: config.revoked.as_deref().map(Revoked::load).transpose()?.unwrap_or_default().into(),
            grace: config.grace,
            drain: config.drain,
            max_connections: config.max_connections,
            max_connections_per_owner: config.max_connections_per_owner,
            times: config.times,
            ends: all,
        };
        setup.warn();
        Ok(Arc::new(setup))
    }

    /// Says which certificates end soon.
    fn warn(&self) {
        for (path, until) in &self.ends {
            if *until <= std::time::SystemTime::now() {
                let file = path.display();
                tracing::error!(%file, "a certificate has ended, and no owner gets in: `shef-agent renew` makes a new one, and SIGHUP has it taken");
            } else if let Some(days) = ends_soon(*until) {
                tracing::warn!(file = %path.display(), days, "a certificate ends soon: `shef-agent renew` makes a new one, and SIGHUP has it taken");
            }
        }
    }
}

/// What the agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Serving,
    /// Sessions go on, and no new ones begin.
    Draining,
    Stopping,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) slots: BTreeMap<String, Arc<Slot>>,
    pub(crate) door: Arc<Door>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) phase: watch::Receiver<Phase>,
    setup: RwLock<Arc<Setup>>,
    /// Connections that came, that were turned away before an owner was known, and that were
    /// refused.
    counts: [AtomicU64; 3],
}

impl Shared {
    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn turned_away(&self, peer: SocketAddr, why: &str) {
        self.counts[1].fetch_add(1, Ordering::Relaxed);
        tracing::info!(%peer, "{why}");
    }

    pub(crate) fn refused(&self) {
        self.counts[2].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that came, were turned away, were refused.
    pub(crate) fn counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|i: usize| self.counts[i].load(Ordering::Relaxed))
    }
}

/// An agent that listens and does not serve yet.
pub struct Agent {
    listener: TcpListener,
    metrics: Option<TcpListener>,
    running: Running,
    threads: Vec<JoinHandle<()>>,
}

/// What rules a running agent.
#[derive(Clone)]
pub struct Running {
    phase: watch::Sender<Phase>,
    shared: Arc<Shared>,
}

impl Running {
    /// Has the agent wipe its cards and end.
    pub fn stop(&self) {
        self.phase.send_replace(Phase::Stopping);
    }

    /// Has the agent take no new sessions, and end when the last one is over or their time is up.
    /// Asked once more, it ends at once.
    pub fn drain(&self) {
        self.phase.send_modify(|phase| *phase = if *phase == Phase::Serving { Phase::Draining } else { Phase::Stopping });
    }

    /// Takes over certificates, revocations, owners of devices and limits. Sessions go on, but
    /// those of owners who may not any more. Where it listens and which devices there are changes
    /// with a restart only: what differs is told in the log.
    ///
    /// # Errors
    /// SHEF-AGT-003, SHEF-AGT-016, SHEF-AGT-017: nothing was changed then.
    pub fn reload(&self, config: &Config) -> Result<(), AgentError> {
        let setup = Setup::load(config)?;
        *self.shared.setup.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&setup);
        for (name, slot) in &self.shared.slots {
            let device = config.devices.get(name);
            match device {
                Some(device) if device.uri == *slot.uri() => {}
                Some(_) => tracing::warn!(device = name, "its URI changed, which a restart takes over"),
                None => tracing::warn!(device = name, "it is not in the configuration any more, which a restart takes over"),
            }
            slot.restrict(device.map(|device| &device.owners[..]), &setup.revoked);
        }
        for name in config.devices.keys().filter(|name| !self.shared.slots.contains_key(*name)) {
            tracing::warn!(device = name, "it is new in the configuration, which a restart takes over");
        }
        tracing::info!("configuration taken over");
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Agent {
    /// Sets up TLS, listens, and has every card opened.
    ///
    /// # Errors
    /// SHEF-AGT-003, SHEF-AGT-016, SHEF-AGT-017, SHEF-AGT-018.
    pub async fn bind(config: &Config, opener: Opener) -> Result<Self, AgentError> {
        let setup = Setup::load(config)?;
        let unable = |at: SocketAddr, e: &dyn std::fmt::Display| AgentError::Listen { message: format!("cannot listen on {at}: {e}") };
        let listener = TcpListener::bind(config.listen).await.map_err(|e| unable(config.listen, &e))?;
        let metrics = match config.metrics {
            Some(at) => Some(TcpListener::bind(at).await.map_err(|e| unable(at, &e))?),
            None => None,
        };
        let (phase, phases) = watch::channel(Phase::Serving);
        let (mut slots, mut threads) = (BTreeMap::new(), Vec::new());
        for (name, device) in &config.devices {
            let started = Slot::start(name.clone(), device.clone(), &setup.revoked, Arc::clone(&opener));
            let (slot, thread) =
                started.map_err(|e| AgentError::Listen { message: format!("cannot start a thread for device {name}: {e}") })?;
            slots.insert(name.clone(), slot);
            threads.push(thread);
        }
        let shared =
            Shared { slots, door: door(), seats: Arc::default(), phase: phases, setup: RwLock::new(setup), counts: Default::default() };
        Ok(Self { listener, metrics, running: Running { phase, shared: Arc::new(shared) }, threads })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// SHEF-AGT-018.
    pub fn address(&self) -> Result<SocketAddr, AgentError> {
        self.listener.local_addr().map_err(|e| AgentError::Listen { message: e.to_string() })
    }

    /// Where health and metrics are served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// What rules it.
    pub fn handle(&self) -> Running {
        self.running.clone()
    }

    /// Serves until it is stopped; then wipes the cards that somebody has.
    pub async fn serve(self) {
        let shared = Arc::clone(&self.running.shared);
        let mut phase = shared.phase.clone();
        let mut open = tokio::task::JoinSet::new();
        let metrics = self.metrics.map(|listener| tokio::spawn(crate::metrics::serve(listener, self.running.clone())));
        let mut daily = tokio::time::interval_at(Instant::now() + DAY, DAY);
        let mut drained: Option<Instant> = None;
        let mut look = tokio::time::interval(Duration::from_millis(200));
        loop {
            match (*phase.borrow_and_update(), drained) {
                (Phase::Serving, _) => {}
                (Phase::Draining, None) => {
                    let drain = shared.setup().drain;
                    tracing::info!(seconds = drain.as_secs(), "draining: no new sessions begin");
                    shared.slots.values().for_each(|slot| slot.close());
                    drained = Some(Instant::now() + drain);
                }
                (Phase::Draining, Some(end)) => {
                    let busy =
                        |slot: &Arc<Slot>| matches!(slot.state(), DeviceState::InUse | DeviceState::Orphaned | DeviceState::Resetting);
                    if Instant::now() >= end || !shared.slots.values().any(busy) {
                        break;
                    }
                }
                (Phase::Stopping, _) => break,
            }
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((tcp, peer)) => {
                        shared.counts[0].fetch_add(1, Ordering::Relaxed);
                        let _ = tcp.set_nodelay(true);
                        // An owner whose machine is gone is noticed within about a minute.
                        let alive = TcpKeepalive::new().with_time(Duration::from_secs(20)).with_interval(Duration::from_secs(10)).with_retries(4);
                        let _ = SockRef::from(&tcp).set_tcp_keepalive(&alive);
                        // In the order in which they came: the oldest is who makes room.
                        let ticket = shared.door.enter(peer.ip());
                        open.spawn(connection::serve(tcp, peer, ticket, Arc::clone(&shared)));
                    }
                    Err(error) => {
                        tracing::warn!("accept: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = open.join_next() => {}
                _ = phase.changed() => {}
                _ = look.tick(), if drained.is_some() => {}
                _ = daily.tick() => shared.setup().warn(),
            }
        }
        tracing::info!("stopping");
        self.running.stop();
        drop(self.listener);
        for slot in shared.slots.values() {
            slot.stop();
        }
        // A thread that hangs in a card holds nothing up: it ends with the program.
        let (sender, wiped) = tokio::sync::oneshot::channel();
        let threads = self.threads;
        std::thread::spawn(move || {
            threads.into_iter().for_each(|thread| drop(thread.join()));
            sender.send(())
        });
        if timeout(shared.setup().times.stop, wiped).await.is_err() {
            tracing::error!("a card was not wiped in time");
        }
        let _ = timeout(Duration::from_secs(5), async { while open.join_next().await.is_some() {} }).await;
        if let Some(metrics) = metrics {
            metrics.abort();
        }
    }
}

/// TLS 1.3, and a certificate of our own CA from everybody.
fn tls(config: &Config) -> Result<ServerConfig, AgentError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    let wrong = |path: &Path, e: &dyn std::fmt::Display| {
        AgentError::Device(shef_device::DeviceError::Transport {
            code: codes::TLS_FILES,
            message: format!("TLS file {}: {e}", path.display()),
        })
    };
    for cert in certificates(&config.ca)? {
        roots.add(cert).map_err(|e| wrong(&config.ca, &e))?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().map_err(|e| wrong(&config.ca, &e))?;
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|e| wrong(&config.cert, &e))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(certificates(&config.cert)?, private_key(&config.key)?)
        .map_err(|e| unpaired(&config.cert, &config.key, &e))?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.send_tls13_tickets = 0;
    Ok(tls)
}
