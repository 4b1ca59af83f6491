//! Control of a running agent, and the state that its connections share.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use shef_files as files;
use shef_remote::wire::{ALPN, codes};
use shef_remote::{private_key, unpaired};
use shef_tls::admission::Admission;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::admission::{OwnerConnections, admission};
use crate::config::Times;
use crate::identity::{Revoked, ends_soon, is_ca, validity_of};
use crate::init::issued_to;
use crate::slot::Slot;
use crate::{AgentError, Config};

/// Settings that can change while the agent runs.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) revoked: Arc<Revoked>,
    /// The file of that list, and the version last read.
    list: Option<(std::path::PathBuf, Option<files::Stamp>)>,
    pub(crate) grace: Duration,
    pub(crate) drain: Duration,
    pub(crate) max_connections: usize,
    pub(crate) max_connections_per_owner: usize,
    pub(crate) times: Times,
    /// Files and validity periods of the agent's own certificates.
    ends: Vec<(std::path::PathBuf, [std::time::SystemTime; 2])>,
}

impl Setup {
    pub(crate) fn load(config: &Config) -> Result<Arc<Self>, AgentError> {
        let ends = [&config.ca, &config.cert].map(|path| -> Result<_, AgentError> {
            Ok(certificates(path)?
                .iter()
                .filter_map(|der| Some((path.clone(), validity_of(der)?)))
                .collect::<Vec<_>>())
        });
        let mut all = Vec::new();
        for list in ends {
            all.extend(list?);
        }
        let setup = Self {
            acceptor: TlsAcceptor::from(Arc::new(tls(config)?)),
            // Before the file is read: a change in between triggers another read.
            list: config.revoked.clone().map(|path| (path.clone(), files::stamp(&path))),
            revoked: config
                .revoked
                .as_deref()
                .map(Revoked::load)
                .transpose()?
                .unwrap_or_default()
                .into(),
            grace: config.grace,
            drain: config.drain,
            max_connections: config.max_connections,
            max_connections_per_owner: config.max_connections_per_owner,
            times: config.times,
            ends: all,
        };
        setup.warn();
        warn_of_unknown_owners(config);
        Ok(Arc::new(setup))
    }

    /// The file of the revocation list.
    pub(crate) fn list_file(&self) -> Option<std::path::PathBuf> {
        self.list.as_ref().map(|(path, _)| path.clone())
    }

    /// Warns of certificates that expire soon.
    pub(crate) fn warn(&self) {
        let now = std::time::SystemTime::now();
        for (path, [from, until]) in &self.ends {
            if *from > now {
                let file = path.display();
                tracing::error!(%file, "a certificate is not valid yet, and no owner can connect: \
                    is this machine's clock right?");
            } else if *until <= now {
                let file = path.display();
                tracing::error!(%file, "a certificate has expired, and no owner can connect: \
                    issue a new one with `shef-agent renew`, then send SIGHUP");
            } else if let Some(days) = ends_soon(*until) {
                tracing::warn!(file = %path.display(), days, "a certificate expires soon: issue a \
                    new one with `shef-agent renew`, then send SIGHUP");
            }
        }
    }
}

/// Warns of configured owners that have no certificate of this CA, as after a misspelling.
fn warn_of_unknown_owners(config: &Config) {
    let Some(known) = issued_to(&config.ca) else { return };
    for (device, found) in &config.devices {
        for owner in found.owners.iter().filter(|owner| !known.contains(*owner)) {
            tracing::warn!(
                device,
                owner,
                "`owners` names an owner without a certificate: issue one with `shef-agent \
                add-owner`, or correct the name"
            );
        }
    }
}

/// Warns which certificates are accepted again.
fn warn_of_lifted(before: &Revoked, after: &Revoked) {
    let lifted = before.lifted_by(after);
    if !lifted.is_empty() {
        tracing::warn!(
            lifted = lifted.len(),
            certificates = lifted.join(", "),
            "the list of revoked certificates has lost entries: these certificates are accepted again"
        );
    }
}

/// Settings that only a restart changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) listen: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
}

impl Fixed {
    /// The keys of `config` that take effect at a restart.
    fn differing(self, config: &Config) -> impl Iterator<Item = &'static str> {
        let keys =
            [("listen", self.listen != config.listen), ("metrics", self.metrics != config.metrics)];
        keys.into_iter().filter_map(|(key, differs)| differs.then_some(key))
    }
}

/// Phase of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Serving,
    /// Sessions continue, but no new ones begin.
    Draining,
    Stopping,
}

/// State that all connections share.
pub(crate) struct Shared {
    pub(crate) slots: BTreeMap<String, Arc<Slot>>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) connections: Arc<OwnerConnections>,
    pub(crate) phase: watch::Receiver<Phase>,
    fixed: Fixed,
    setup: RwLock<Arc<Setup>>,
    /// Digest of the revocation list that restricts all devices.
    applied: Mutex<String>,
    /// Connections that were accepted, turned away before an owner was known, and refused.
    counts: [AtomicU64; 3],
}

impl Shared {
    fn new(
        slots: BTreeMap<String, Arc<Slot>>,
        fixed: Fixed,
        setup: Arc<Setup>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self {
            slots,
            fixed,
            admission: admission(),
            connections: Arc::default(),
            phase,
            setup: RwLock::new(setup),
            applied: Mutex::default(),
            counts: Default::default(),
        }
    }

    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn came(&self) {
        self.counts[0].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn turned_away(&self, peer: SocketAddr, why: &str) {
        self.counts[1].fetch_add(1, Ordering::Relaxed);
        tracing::info!(%peer, "{why}");
    }

    /// Digest of the revocation list that is applied.
    pub(crate) fn applied(&self) -> String {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn refused(&self) {
        self.counts[2].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections accepted, turned away, and refused.
    pub(crate) fn counts(&self) -> [u64; 3] {
        [0, 1, 2].map(|i: usize| self.counts[i].load(Ordering::Relaxed))
    }
}

/// Controls a running agent.
#[derive(Clone)]
pub struct Running {
    phase: watch::Sender<Phase>,
    shared: Arc<Shared>,
}

impl Running {
    pub(crate) fn new(slots: BTreeMap<String, Arc<Slot>>, fixed: Fixed, setup: Arc<Setup>) -> Self {
        let (phase, phases) = watch::channel(Phase::Serving);
        Self { phase, shared: Arc::new(Shared::new(slots, fixed, setup, phases)) }
    }

    /// Wipes the cards and ends the agent.
    pub fn stop(&self) {
        self.phase.send_replace(Phase::Stopping);
    }

    /// Accepts no new sessions, and ends the agent when the last one is over or the time is up. A
    /// second call ends it at once.
    pub fn drain(&self) {
        self.phase.send_modify(|phase| {
            *phase = if *phase == Phase::Serving { Phase::Draining } else { Phase::Stopping }
        });
    }

    /// Applies certificates, revocations, owners of devices and limits. Sessions continue, except
    /// for owners that may no longer use their card. The address and the set of devices change only
    /// at a restart: the log lists the differences. A configuration without `revoked` leaves the
    /// list in force.
    ///
    /// # Errors
    /// SHEF-AGT-003, SHEF-AGT-016, SHEF-AGT-017: nothing has changed in these cases.
    pub fn reload(&self, config: &Config) -> Result<(), AgentError> {
        let setup = self.take_over(Setup::load(config)?);
        for key in self.shared.fixed.differing(config) {
            tracing::warn!(key, "it changed: restart the agent to apply it");
        }
        for (name, slot) in &self.shared.slots {
            let device = config.devices.get(name);
            match device {
                Some(device) => {
                    if device.uri != *slot.uri() {
                        tracing::warn!(
                            device = name,
                            "its URI changed: restart the agent to apply it"
                        );
                    }
                    if device.clear_memory != slot.clears_memory() {
                        tracing::warn!(
                            device = name,
                            "its clear_memory changed: restart the agent to apply it"
                        );
                    }
                }
                None => tracing::warn!(
                    device = name,
                    "it is no longer in the configuration: restart the agent to apply that"
                ),
            }
            slot.restrict(device.map(|device| &device.owners[..]), &setup.revoked);
        }
        for name in config.devices.keys().filter(|name| !self.shared.slots.contains_key(*name)) {
            tracing::warn!(
                device = name,
                "it is new in the configuration: restart the agent to apply that"
            );
        }
        tracing::info!("configuration reloaded");
        Ok(())
    }

    /// Puts a new setup in force. If it names no revocation list, the previous list stays: a line
    /// that is missing by mistake lifts no revocation.
    fn take_over(&self, setup: Arc<Setup>) -> Arc<Setup> {
        // Locked while the old list is compared: another thread may reload the file.
        let mut held = self.shared.setup.write().unwrap_or_else(PoisonError::into_inner);
        let setup = match &held.list {
            Some((path, _)) if setup.list.is_none() => {
                tracing::warn!(
                    file = %path.display(),
                    "the configuration no longer has `revoked`, and the list stays in force: to \
                    accept a certificate again, remove its line from the file; to run without a \
                    list, restart the agent"
                );
                let (revoked, list) = (Arc::clone(&held.revoked), held.list.clone());
                Arc::new(Setup { revoked, list, ..(*setup).clone() })
            }
            _ => setup,
        };
        warn_of_lifted(&held.revoked, &setup.revoked);
        *held = Arc::clone(&setup);
        setup
    }

    /// Applies the revocation list if its file changed, and ends sessions whose certificate has
    /// expired. This needs neither a signal nor a valid configuration.
    pub(crate) fn look_at_owners(&self) {
        let changed = self
            .shared
            .setup()
            .list
            .as_ref()
            .is_some_and(|(path, seen)| files::stamp(path) != *seen);
        if changed {
            self.read_revoked_again();
        }
        let revoked = Arc::clone(&self.shared.setup().revoked);
        self.shared.slots.values().for_each(|slot| slot.restrict(None, &revoked));
        revoked
            .digest()
            .clone_into(&mut self.shared.applied.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Reads the revocation list again. An invalid list changes nothing, and is not read again
    /// before its file changes.
    fn read_revoked_again(&self) {
        // Locked from here on: otherwise the settings of a concurrent reload would be lost.
        let mut setup = self.shared.setup.write().unwrap_or_else(PoisonError::into_inner);
        let Some((path, _)) = &setup.list else { return };
        let list = Some((path.clone(), files::stamp(path)));
        let revoked = match Revoked::load(path) {
            Ok(revoked) => {
                warn_of_lifted(&setup.revoked, &revoked);
                tracing::info!(file = %path.display(), "the list of revoked certificates is in force");
                revoked.into()
            }
            Err(error) => {
                tracing::error!(
                    code = error.code(),
                    "the list of revoked certificates is not applied, the last one stays in force: {error}"
                );
                Arc::clone(&setup.revoked)
            }
        };
        *setup = Arc::new(Setup { revoked, list, ..(**setup).clone() });
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> AgentError {
    AgentError::Device(shef_device::DeviceError::Transport {
        code: codes::TLS_FILES,
        message: format!("TLS file {}: {error}", path.display()),
    })
}

/// The certificates of a PEM file, at least one, read by the rules of [`files::open_linked`].
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, AgentError> {
    let pem = files::open_linked(path).and_then(|file| files::contents(&file));
    let list = CertificateDer::pem_slice_iter(&pem.map_err(|e| wrong(path, &e))?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| wrong(path, &e))?;
    if list.is_empty() { Err(wrong(path, &"it holds no certificate")) } else { Ok(list) }
}

/// TLS 1.3 that requires a client certificate of our own CA.
fn tls(config: &Config) -> Result<ServerConfig, AgentError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let cas = certificates(&config.ca)?;
    if !cas.iter().all(is_ca) {
        return Err(wrong(
            &config.ca,
            &"`ca` names a certificate that is not a CA's: expected basicConstraints CA:TRUE, as in the ca.pem of `shef-agent init`",
        ));
    }
    let verifier = shef_tls::client_verifier(&cas, &provider, |builder| builder)
        .map_err(|e| wrong(&config.ca, &e))?;
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
