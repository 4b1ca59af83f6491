//! The agent: listens, and holds its cards.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use shef_device::remote::{certificates, private_key};
use shef_device::wire::{ALPN, codes};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::slot::Slot;
use crate::{AgentError, Config, Opener, connection};

/// Time that cards get to be wiped when the agent stops.
const STOP: Duration = Duration::from_secs(60);

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) slots: BTreeMap<String, Arc<Slot>>,
    pub(crate) grace: Duration,
    pub(crate) stop: watch::Receiver<bool>,
}

/// An agent that listens and does not serve yet.
pub struct Agent {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    connections: Arc<Semaphore>,
}

/// Stops an agent.
#[derive(Clone)]
pub struct Running(watch::Sender<bool>);

impl Running {
    /// Has the agent wipe its cards and end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Agent {
    /// Sets up TLS, listens, and has every card opened.
    ///
    /// # Errors
    /// SHEF-AGT-001, SHEF-AGT-003.
    pub async fn bind(config: &Config, opener: Opener) -> Result<Self, AgentError> {
        let acceptor = TlsAcceptor::from(Arc::new(tls(config)?));
        let unable = |e: &dyn std::fmt::Display| AgentError::Listen { message: format!("cannot listen on {}: {e}", config.listen) };
        let listener = TcpListener::bind(config.listen).await.map_err(|e| unable(&e))?;
        let (stop, stopped) = watch::channel(false);
        let (mut slots, mut threads) = (BTreeMap::new(), Vec::new());
        for (name, device) in &config.devices {
            let (slot, thread) = Slot::start(name.clone(), device.clone(), Arc::clone(&opener)).map_err(|e| unable(&e))?;
            slots.insert(name.clone(), slot);
            threads.push(thread);
        }
        Ok(Self {
            listener,
            acceptor,
            shared: Arc::new(Shared { slots, grace: config.grace, stop: stopped }),
            stop,
            threads,
            connections: Arc::new(Semaphore::new(config.max_connections)),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// SHEF-AGT-001.
    pub fn address(&self) -> Result<SocketAddr, AgentError> {
        self.listener.local_addr().map_err(|e| AgentError::Listen { message: e.to_string() })
    }

    /// What stops it.
    pub fn handle(&self) -> Running {
        Running(self.stop.clone())
    }

    /// Serves until it is stopped; then wipes the cards that somebody has.
    pub async fn serve(self) {
        let mut stop = self.shared.stop.clone();
        let mut open = tokio::task::JoinSet::new();
        while !*stop.borrow() {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((tcp, peer)) => {
                        let _ = tcp.set_nodelay(true);
                        // An owner whose machine is gone is noticed within about a minute.
                        let alive = TcpKeepalive::new().with_time(Duration::from_secs(20)).with_interval(Duration::from_secs(10)).with_retries(4);
                        let _ = SockRef::from(&tcp).set_tcp_keepalive(&alive);
                        match Arc::clone(&self.connections).try_acquire_owned() {
                            Ok(permit) => {
                                let (acceptor, shared) = (self.acceptor.clone(), Arc::clone(&self.shared));
                                open.spawn(async move {
                                    connection::serve(tcp, acceptor, shared).await;
                                    drop(permit);
                                });
                            }
                            Err(_) => tracing::warn!(%peer, code = codes::BUSY, "too many connections"),
                        }
                    }
                    Err(error) => {
                        tracing::warn!("accept: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = open.join_next() => {}
                _ = stop.changed() => {}
            }
        }
        tracing::info!("stopping");
        drop(self.listener);
        for slot in self.shared.slots.values() {
            slot.stop();
        }
        let threads = self.threads;
        let wiped = tokio::task::spawn_blocking(move || threads.into_iter().for_each(|thread| drop(thread.join())));
        if tokio::time::timeout(STOP, wiped).await.is_err() {
            tracing::error!("a card was not wiped in time");
        }
        let _ = tokio::time::timeout(Duration::from_secs(5), async { while open.join_next().await.is_some() {} }).await;
    }
}

/// TLS 1.3, and a certificate of our own CA from everybody.
fn tls(config: &Config) -> Result<ServerConfig, AgentError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    let wrong = |path: &std::path::Path, e: &dyn std::fmt::Display| {
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
        .map_err(|e| wrong(&config.cert, &e))?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    tls.send_tls13_tickets = 0;
    Ok(tls)
}
