//! The agent: listens, and owns the cards.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use shef_remote::wire::DeviceState;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

use crate::slot::Slot;
use crate::state::{Fixed, Phase, Running, Setup};
use crate::{AgentError, Config, Opener, connection};

/// How often the agent checks whether owners may still use their cards.
const OWNERS: Duration = Duration::from_secs(1);
/// How often the agent checks for owners that have been away for too long.
const AWAY: Duration = Duration::from_millis(100);
/// How often the agent checks when its certificates expire.
const DAY: Duration = Duration::from_secs(86_400);

/// An agent that listens but does not serve yet.
pub struct Agent {
    listener: TcpListener,
    metrics: Option<TcpListener>,
    running: Running,
    threads: Vec<JoinHandle<()>>,
}

impl Agent {
    /// Sets up TLS, listens, and starts opening every card.
    ///
    /// # Errors
    /// SHEF-AGT-003, SHEF-AGT-016, SHEF-AGT-017, SHEF-AGT-018.
    pub async fn bind(config: &Config, opener: Opener) -> Result<Self, AgentError> {
        let setup = Setup::load(config)?;
        if config.revoked.is_none() {
            tracing::warn!(
                "the configuration has no `revoked`: no certificate is revoked, and `shef-agent revoke` has no effect on this agent"
            );
        }
        let unable = |at: SocketAddr, e: &dyn std::fmt::Display| AgentError::Listen {
            message: format!("cannot listen on {at}: {e}"),
        };
        let listener =
            TcpListener::bind(config.listen).await.map_err(|e| unable(config.listen, &e))?;
        let metrics = match config.metrics {
            Some(at) => Some(TcpListener::bind(at).await.map_err(|e| unable(at, &e))?),
            None => None,
        };
        let (mut slots, mut threads) = (BTreeMap::new(), Vec::new());
        for (name, device) in &config.devices {
            let started = Slot::start(
                name.clone(),
                device.clone(),
                &setup.revoked,
                setup.times.request,
                Arc::clone(&opener),
            );
            let (slot, thread) = started.map_err(|e| AgentError::Listen {
                message: format!("cannot start a thread for device {name}: {e}"),
            })?;
            slots.insert(name.clone(), slot);
            threads.push(thread);
        }
        let fixed = Fixed { listen: config.listen, metrics: config.metrics };
        Ok(Self { listener, metrics, running: Running::new(slots, fixed, setup), threads })
    }

    /// Address that it listens on.
    ///
    /// # Errors
    /// SHEF-AGT-018.
    pub fn address(&self) -> Result<SocketAddr, AgentError> {
        self.listener.local_addr().map_err(|e| AgentError::Listen { message: e.to_string() })
    }

    /// Address of health and metrics.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Handle that controls the agent.
    pub fn handle(&self) -> Running {
        self.running.clone()
    }

    /// Serves until it is stopped, then wipes the cards in use.
    pub async fn serve(self) {
        let shared = Arc::clone(self.running.shared());
        let mut phase = shared.phase.clone();
        let mut open = tokio::task::JoinSet::new();
        let metrics = self
            .metrics
            .map(|listener| tokio::spawn(crate::metrics::serve(listener, self.running.clone())));
        let applied = tokio::spawn(crate::applied::serve(self.running.clone()));
        let mut daily = tokio::time::interval_at(Instant::now() + DAY, DAY);
        let mut drained: Option<Instant> = None;
        let mut owners = tokio::time::interval(OWNERS);
        let mut away = tokio::time::interval(AWAY);
        let mut look = tokio::time::interval(Duration::from_millis(200));
        loop {
            match (*phase.borrow_and_update(), drained) {
                (Phase::Serving, _) => {}
                (Phase::Draining, None) => {
                    let drain = shared.setup().drain;
                    tracing::info!(
                        seconds = drain.as_secs(),
                        "draining: no new sessions are accepted"
                    );
                    shared.slots.values().for_each(|slot| slot.close());
                    drained = Some(Instant::now() + drain);
                }
                (Phase::Draining, Some(end)) => {
                    let busy = |slot: &Arc<Slot>| {
                        matches!(
                            slot.state(),
                            DeviceState::InUse | DeviceState::Orphaned | DeviceState::Resetting
                        )
                    };
                    if Instant::now() >= end || !shared.slots.values().any(busy) {
                        break;
                    }
                }
                (Phase::Stopping, _) => break,
            }
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((tcp, peer)) => {
                        shared.came();
                        let _ = tcp.set_nodelay(true);
                        // Detects within about a minute that an owner's machine is gone.
                        let alive = TcpKeepalive::new().with_time(Duration::from_secs(20)).with_interval(Duration::from_secs(10)).with_retries(4);
                        let _ = SockRef::from(&tcp).set_tcp_keepalive(&alive);
                        // In order of arrival: the oldest makes room.
                        let permit = shared.admission.enter(peer.ip());
                        open.spawn(connection::serve(tcp, peer, permit, Arc::clone(&shared)));
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
                _ = away.tick() => shared.slots.values().for_each(|slot| slot.reap()),
                _ = owners.tick() => self.running.look_at_owners(),
            }
        }
        tracing::info!("stopping");
        self.running.stop();
        applied.abort();
        drop(self.listener);
        for slot in shared.slots.values() {
            slot.stop();
        }
        // A thread that hangs in a card delays nothing: it ends with the program.
        let (sender, wiped) = tokio::sync::oneshot::channel();
        let threads = self.threads;
        std::thread::spawn(move || {
            threads.into_iter().for_each(|thread| drop(thread.join()));
            sender.send(())
        });
        if timeout(shared.setup().times.stop, wiped).await.is_err() {
            tracing::error!("a card was not wiped in time");
        }
        let _ =
            timeout(Duration::from_secs(5), async { while open.join_next().await.is_some() {} })
                .await;
        if let Some(metrics) = metrics {
            metrics.abort();
        }
    }
}
