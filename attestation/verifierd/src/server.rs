//! Connections: TLS handshake, HTTP/1.1, time limits, and an orderly end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::auth::Identity;
use crate::metrics::{Counter, Metrics};
use crate::problem::{Kind, Result};

/// What a connection knows of its other end; an extension of each request.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// The identity of its certificate.
    pub identity: Option<Identity>,
}

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// For the handshake, and for each request header.
    pub header: Duration,
    /// For a write that makes no progress, and between requests.
    pub idle: Duration,
    /// For open requests at the end.
    pub shutdown: Duration,
    /// Most connections.
    pub connections: usize,
}

/// Opens the address.
///
/// # Errors
/// It is taken, or not of this machine.
pub async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| Kind::Listen.because(format!("{address}: {error}")))
}

/// Serves until `stop` turns true; then lets open requests end.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ArcSwap<ServerConfig>>,
    router: Router,
    timing: Timing,
    metrics: Arc<Metrics>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(timing.connections));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or a client that left: wait a little rather than spin.
                    tracing::warn!(%error, "accept");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            () = stopped(&mut stop) => break,
        };
        let (acceptor, router, metrics, stop) = (TlsAcceptor::from(tls.load_full()), router.clone(), Arc::clone(&metrics), stop.clone());
        tokio::spawn(async move {
            connection(stream, address, acceptor, router, timing, &metrics, stop).await;
            drop(place);
        });
    }
    drop(listener);
    let all = u32::try_from(timing.connections).unwrap_or(u32::MAX);
    if timeout(timing.shutdown, places.acquire_many(all)).await.is_err() {
        tracing::warn!("requests were still open when the service ended");
    }
}

/// Waits for the end of the service.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    router: Router,
    timing: Timing,
    metrics: &Metrics,
    mut stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let stream = match timeout(timing.header, acceptor.accept(Idle::new(stream, timing.idle))).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            metrics.count(Counter::Handshakes, &["refused"]);
            tracing::debug!(%address, %error, "TLS handshake");
            return;
        }
        Err(_) => {
            metrics.count(Counter::Handshakes, &["slow"]);
            return;
        }
    };
    let identity = stream.get_ref().1.peer_certificates().and_then(|chain| Identity::from_certificate(chain.first()?));
    let peer = Peer { address, identity };
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(peer.clone());
        router.clone().oneshot(hyper::Request::from_parts(parts, Body::new(body)))
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timing.header)
        .max_buf_size(32 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = &mut connection => {}
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// A stream that fails when neither direction moves for a time: a client that does not read its answer cannot hold a place for ever.
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
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.check(cx, poll)
    }
}

impl AsyncWrite for Idle {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
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
