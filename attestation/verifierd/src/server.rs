//! Connections: TLS handshake, HTTP/1.1, time limits, and orderly shutdown.
//!
//! Until its handshake is complete, a connection occupies a slot of admission; then it takes a
//! connection slot. Both are pools ([`shef_tls::admission`]) that accept every newcomer: the tenant
//! with the most slots makes room, in it the identity with the most; the addresses without an identity
//! count as one tenant. One address or identity has at most a quarter of the slots, and a quarter is
//! reserved for clients with a certificate, or with a token since their first request.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::HandshakeKind;
use rustls::pki_types::CertificateDer;
use rustls::server::Acceptor;
use shef_tls::admission::{self, Admission, Permit, Pool, Shares, Slot, network};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use crate::audit::{self, Logins};
use crate::auth::Identity;
use crate::metrics::{Counter, Metrics};
use crate::problem::{Because, Kind, Result};
use crate::tls::Material;

/// A connection's peer; an extension of each request.
#[derive(Clone)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The identity of its certificate.
    pub identity: Option<Identity>,
    connection: Option<Connection>,
}

/// What a connection has shown, and the slot that it occupies.
#[derive(Clone)]
struct Connection {
    shown: Arc<Shown>,
    tls: Arc<ArcSwap<Material>>,
    slot: Arc<Slot<Holder>>,
    admission: Arc<Admission>,
    /// Whether its client has become known by a token.
    known: Arc<OnceLock<()>>,
}

impl Peer {
    /// A peer that no TLS connection vouches for: it is never stale.
    #[must_use]
    pub fn new(address: SocketAddr, identity: Option<Identity>) -> Self {
        Self { address, identity, connection: None }
    }

    /// The client has shown a token: from now on, its connection is not a stranger's.
    pub fn recognise(&self, who: &Identity) {
        if let Some(connection) = &self.connection
            && connection.known.set(()).is_ok()
        {
            connection.slot.recognise(Holder::Identity(who.clone()));
            connection.admission.know(self.address.ip());
        }
    }

    /// Whether the client has shown a token before.
    #[must_use]
    pub fn is_recognised(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.known.get().is_some())
    }

    /// Why the connection would not be accepted now, if so.
    #[must_use]
    pub fn stale(&self) -> Option<&'static str> {
        let Connection { shown, tls, .. } = self.connection.as_ref()?;
        (!shown.is_good(&tls.load_full())).then_some(if shown.chain.is_empty() {
            "connections without a client certificate are not accepted any more"
        } else {
            "the certificate of this connection is not accepted any more: it was revoked, has ended, or its CA is gone"
        })
    }
}

/// The certificates of a connection, which may be none, and the configuration that last checked
/// them.
struct Shown {
    chain: Vec<CertificateDer<'static>>,
    identity: Option<Identity>,
    held: Mutex<Option<Arc<Material>>>,
}

impl Shown {
    /// Whether the connection is still accepted; checked again when the configuration changes.
    fn is_good(&self, now: &Arc<Material>) -> bool {
        let mut held = self.held.lock().expect("no panic under this lock");
        if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, now)) {
            return true;
        }
        let good = now.accepts(&self.chain);
        *held = good.then(|| Arc::clone(now));
        good
    }
}

/// Time limits and number of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For the handshake, and for each request header.
    pub header: Duration,
    /// For a write that makes no progress, and between requests.
    pub idle: Duration,
    /// For open requests at shutdown.
    pub shutdown: Duration,
    /// Maximum number of connections after the handshake.
    pub connections: usize,
    /// Age at which a connection ends, once its request has been answered.
    pub age: Duration,
}

/// Binds the address.
///
/// # Errors
/// It is taken, or not an address of this machine.
pub async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| Kind::Listen.because(format!("{address}: {error}")))
}

/// The holder of a connection: the identity in its certificate or of its token, or else the address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Address(IpAddr),
    Identity(Identity),
}

impl admission::Holder for Holder {
    /// A tenant, which may have any number of identities; `None`: those without one.
    type Group = Option<String>;

    fn group(&self) -> Option<String> {
        match self {
            Self::Address(_) => None,
            Self::Identity(who) => Some(who.tenant.clone()),
        }
    }
}

/// Time to finish a response when a connection is evicted.
const LAST: Duration = Duration::from_millis(100);

/// Serves until `stop` turns true; then lets open requests finish.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ArcSwap<Material>>,
    router: Router,
    timing: Timing,
    (metrics, logins): (Arc<Metrics>, Arc<Logins>),
    mut stop: watch::Receiver<bool>,
) {
    let quarter = (timing.connections / 4).max(1);
    let pool = Pool::new(Shares {
        all: timing.connections,
        strangers: timing.connections - timing.connections / 4,
        holder: quarter,
    });
    let admission = Arc::new(Admission::new((timing.connections / 2).max(2), quarter));
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or the client has gone: wait a little instead of
                    // spinning.
                    tracing::warn!(%error, "accept");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            () = stopped(&mut stop) => break,
        };
        // In the order of arrival: the oldest makes room.
        let permit = admission.enter(address.ip());
        let (admission, pool) = (Arc::clone(&admission), Arc::clone(&pool));
        let (tls, router, mut stop) = (Arc::clone(&tls), router.clone(), stop.clone());
        let (metrics, logins) = (Arc::clone(&metrics), Arc::clone(&logins));
        tokio::spawn(async move {
            let shaken = tokio::select! {
                shaken = timeout(timing.header, handshake(stream, &permit, &tls, timing.idle)) => shaken,
                () = permit.displaced() => return metrics.count(Counter::Handshakes, None, &["displaced"]),
                () = stopped(&mut stop) => return,
            };
            match shaken {
                Ok(Ok(shaken)) => {
                    let stranger = shaken.shown.chain.is_empty();
                    if stranger {
                        drop(permit);
                    } else {
                        permit.admit();
                    }
                    let holder = match &shaken.shown.identity {
                        Some(identity) => Holder::Identity(identity.clone()),
                        None => Holder::Address(network(address.ip())),
                    };
                    let connection = Connection {
                        shown: Arc::new(shaken.shown),
                        tls,
                        slot: Arc::new(pool.enter(holder, stranger)),
                        admission,
                        known: Arc::default(),
                    };
                    if converse(shaken.stream, connection, address, router, timing, stop).await {
                        metrics.count(Counter::Handshakes, None, &["evicted"]);
                    }
                }
                Ok(Err(error)) => {
                    metrics.count(Counter::Handshakes, None, &["refused"]);
                    audit::login_refused(
                        &logins,
                        Some(address),
                        &format!("TLS handshake: {error}"),
                    );
                }
                Err(_) => metrics.count(Counter::Handshakes, None, &["slow"]),
            }
        });
    }
    drop(listener);
    if timeout(timing.shutdown, pool.emptied()).await.is_err() {
        tracing::warn!("requests were still open when the service ended");
    }
}

/// Waits until the service stops.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A connection after its handshake.
struct Shaken {
    stream: TlsStream<Idle>,
    shown: Shown,
}

async fn handshake(
    stream: TcpStream,
    permit: &Permit,
    tls: &ArcSwap<Material>,
    idle: Duration,
) -> io::Result<Shaken> {
    let _ = stream.set_nodelay(true);
    let hello = LazyConfigAcceptor::new(Acceptor::default(), Idle::new(stream, idle)).await?;
    permit.spoke();
    let material = tls.load_full();
    let stream = hello.into_stream(Arc::clone(&material.config)).await?;
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let shown = Shown {
        chain: chain.iter().map(|certificate| certificate.clone().into_owned()).collect(),
        identity: chain.first().and_then(|certificate| Identity::from_certificate(certificate)),
        // A resumed session carries the certificate of its first handshake, which may be long ago.
        held: Mutex::new(
            (stream.get_ref().1.handshake_kind() != Some(HandshakeKind::Resumed))
                .then_some(material),
        ),
    };
    Ok(Shaken { stream, shown })
}

/// A request in progress: idle connections are evicted before this one.
struct Engaged(Arc<Slot<Holder>>);

impl Engaged {
    fn of(slot: &Arc<Slot<Holder>>) -> Self {
        slot.engage(true);
        Self(Arc::clone(slot))
    }
}

impl Drop for Engaged {
    fn drop(&mut self) {
        self.0.engage(false);
    }
}

/// Serves a connection to its end. Returns whether it was evicted.
async fn converse(
    stream: TlsStream<Idle>,
    connection: Connection,
    address: SocketAddr,
    router: Router,
    timing: Timing,
    mut stop: watch::Receiver<bool>,
) -> bool {
    let (slot, place) = (Arc::clone(&connection.slot), Arc::clone(&connection.slot));
    let identity = connection.shown.identity.clone();
    let peer = Peer { address, identity, connection: Some(connection) };
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let engaged = Engaged::of(&place);
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(peer.clone());
        let answer = router.clone().oneshot(hyper::Request::from_parts(parts, Body::new(body)));
        async move {
            let answer = answer.await;
            drop(engaged);
            answer
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timing.header)
        .max_buf_size(32 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => return false,
        () = tokio::time::sleep(timing.age) => {}
        () = stopped(&mut stop) => {}
        () = slot.displaced() => {
            connection.as_mut().graceful_shutdown();
            let _ = timeout(LAST, connection).await;
            return true;
        }
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        _ = &mut connection => false,
        () = slot.displaced() => true,
    }
}

/// A stream that fails when neither direction makes progress for a time: a client that does not
/// read its response cannot hold a slot for ever.
struct Idle {
    stream: TcpStream,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Idle {
    fn new(stream: TcpStream, limit: Duration) -> Self {
        Self { stream, limit, sleep: Box::pin(tokio::time::sleep(limit)) }
    }

    fn check<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.sleep.as_mut().reset(Instant::now() + self.limit);
            return poll;
        }
        match self.sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Idle {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.check(cx, poll)
    }
}

impl AsyncWrite for Idle {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
