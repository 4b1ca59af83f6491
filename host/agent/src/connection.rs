//! One connection of an owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use shef_device::wire::{Frames, ToAgent, ToOwner, VERSION_MAX, VERSION_MIN, codes, is_name};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::server::Shared;
use crate::slot::{Attempt, Outbox, Refusal, Slot};

/// Time for the handshake and for each message before a card is opened.
const HELLO: Duration = Duration::from_secs(10);
/// Time for a frame to leave.
const WRITE: Duration = Duration::from_secs(60);
/// Time without a request after which a session's connection is closed.
const IDLE: Duration = Duration::from_secs(3600);
/// How often an owner is told that the card works.
const TICK: Duration = Duration::from_secs(1);
/// Time that a card may take to be ready.
const READY: Duration = Duration::from_secs(900);
/// Bytes that are read in one go.
const READ: usize = 128 * 1024;

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

type Reading = ReadHalf<TlsStream<TcpStream>>;
type Writing = WriteHalf<TlsStream<TcpStream>>;

/// Messages as they come in.
struct Incoming {
    stream: Reading,
    frames: Frames,
    buffer: Box<[u8]>,
}

/// Why there is no next message.
enum End {
    /// The owner's side is gone.
    Gone,
    Refused(Refusal),
}

impl Incoming {
    /// The next message. May be dropped and called again at any time.
    async fn next(&mut self) -> Result<ToAgent, End> {
        let malformed = |e: shef_device::wire::WireError| End::Refused(Refusal::new(codes::PROTOCOL, e.to_string()));
        loop {
            if let Some(frame) = self.frames.take().map_err(malformed)? {
                return ToAgent::decode(frame).map_err(malformed);
            }
            match self.stream.read(&mut self.buffer).await {
                Ok(n) if n > 0 => self.frames.push(&self.buffer[..n]),
                _ => return Err(End::Gone),
            }
        }
    }

    async fn within(&mut self, limit: Duration) -> Result<ToAgent, End> {
        let late = || End::Refused(Refusal::new(codes::TIMEOUT, format!("no message within {} s", limit.as_secs())));
        timeout(limit, self.next()).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(tcp: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let peer = tcp.peer_addr().map_or_else(|_| "?".to_owned(), |a| a.to_string());
    let tls = match timeout(HELLO, acceptor.accept(tcp)).await {
        Ok(Ok(tls)) => tls,
        Ok(Err(error)) => return tracing::info!(peer, "TLS refused: {error}"),
        Err(_) => return tracing::info!(peer, "no TLS handshake in time"),
    };
    let owner = tls.get_ref().1.peer_certificates().and_then(|list| owner_of(list.first()?));
    let (stream, writing) = split(tls);
    let (outbox, frames) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(writing, frames));
    let mut incoming = Incoming { stream, frames: Frames::new(), buffer: vec![0; READ].into() };
    let end = match owner {
        Some(owner) => converse(&mut incoming, &outbox, &shared, &owner, &peer).await,
        None => Err(End::Refused(Refusal::new(codes::NOT_ALLOWED, "the certificate's common name is no name of an owner"))),
    };
    if let Err(End::Refused(Refusal { code, message })) = end {
        tracing::info!(peer, code, "refused: {message}");
        let _ = outbox.send(Arc::new(ToOwner::Refused { code, message }.encode()));
    }
    // The writer ends when it has written all.
    drop(outbox);
    let _ = timeout(WRITE, writer).await;
}

async fn write(mut stream: Writing, mut frames: mpsc::UnboundedReceiver<Arc<Vec<u8>>>) {
    while let Some(frame) = frames.recv().await {
        let written = timeout(WRITE, async {
            stream.write_all(&frame).await?;
            if frames.is_empty() { stream.flush().await } else { Ok(()) }
        });
        if !matches!(written.await, Ok(Ok(()))) {
            return;
        }
    }
    let _ = timeout(HELLO, stream.shutdown()).await;
}

/// The owner's name in its certificate: the common name.
fn owner_of(der: &CertificateDer<'_>) -> Option<String> {
    use x509_cert::der::Decode;
    use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
    let certificate = x509_cert::Certificate::from_der(der).ok()?;
    let common_name: x509_cert::der::asn1::ObjectIdentifier = "2.5.4.3".parse().ok()?;
    let mut names = certificate.tbs_certificate().subject().iter().filter(|attribute| attribute.oid == common_name);
    let (name, None) = (names.next()?, names.next()) else { return None };
    let text = name.value.decode_as::<Utf8StringRef<'_>>().map(|s| s.as_str().to_owned());
    let text = text.or_else(|_| name.value.decode_as::<PrintableStringRef<'_>>().map(|s| s.as_str().to_owned())).ok()?;
    is_name(&text).then_some(text)
}

async fn converse(incoming: &mut Incoming, outbox: &Outbox, shared: &Arc<Shared>, owner: &str, peer: &str) -> Result<(), End> {
    let say = |message: &ToOwner| outbox.send(Arc::new(message.encode())).map_err(|_| End::Gone);
    let refuse = |code: &str, message: String| Err(End::Refused(Refusal::new(code, message)));
    match incoming.within(HELLO).await? {
        ToAgent::Hello { min, max, program } => {
            if min > VERSION_MAX || max < VERSION_MIN || min > max {
                let what = format!("versions {min} to {max} of the protocol are offered, this agent speaks {VERSION_MIN} to {VERSION_MAX}");
                return refuse(codes::VERSION, what);
            }
            tracing::info!(peer, owner, program, "connected");
            let version = max.min(VERSION_MAX);
            say(&ToOwner::Welcome { version, program: format!("shef-agent {}", env!("CARGO_PKG_VERSION")), owner: owner.to_owned() })?;
        }
        _ => return refuse(codes::PROTOCOL, "the first message is no hello".to_owned()),
    }
    let (device, resume) = match incoming.within(HELLO).await? {
        ToAgent::List => return say(&ToOwner::Devices(shared.slots.values().map(|slot| slot.listed()).collect())),
        ToAgent::Open { device, resume } => (device, resume),
        _ => return refuse(codes::PROTOCOL, "expected a device to be opened".to_owned()),
    };
    let Some(slot) = shared.slots.get(&device) else {
        return refuse(codes::NO_DEVICE, format!("this agent has no device {device}"));
    };
    let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let begin = Instant::now();
    let mut stop = shared.stop.clone();
    let generation = loop {
        match slot.attach(owner, resume, connection, outbox) {
            Attempt::Attached(generation) => break generation,
            Attempt::Refused(refusal) => return Err(End::Refused(refusal)),
            Attempt::Wait(_) if begin.elapsed() > READY || *stop.borrow() => {
                return refuse(codes::DEVICE_FAILED, format!("device {device} is not ready"));
            }
            Attempt::Wait(text) => {
                say(&ToOwner::Progress { id: 0, text: text.to_owned() })?;
                tokio::select! {
                    () = slot.changed(TICK) => {}
                    _ = stop.changed() => {}
                    // Nothing may come before the card is open.
                    next = incoming.next() => {
                        return match next {
                            Ok(_) => refuse(codes::PROTOCOL, "a message before the device is open".to_owned()),
                            Err(end) => Err(end),
                        };
                    }
                }
                if let Some(refusal) = slot.refusal() {
                    return Err(End::Refused(refusal));
                }
            }
        }
    };
    let result = session(incoming, outbox, &mut stop, slot, connection, generation).await;
    if slot.detach(generation, connection) {
        let (slot, grace) = (Arc::clone(slot), shared.grace);
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            slot.reap(generation);
        });
    }
    result
}

async fn session(
    incoming: &mut Incoming,
    outbox: &Outbox,
    stop: &mut watch::Receiver<bool>,
    slot: &Slot,
    connection: u64,
    generation: u64,
) -> Result<(), End> {
    let say = |message: &ToOwner| outbox.send(Arc::new(message.encode())).map_err(|_| End::Gone);
    let mut tick = tokio::time::interval(TICK);
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            message = incoming.next() => match message? {
                ToAgent::Request { id, acked, op } => {
                    heard = Instant::now();
                    slot.request(generation, connection, id, acked, op).map_err(End::Refused)?;
                }
                _ => return Err(End::Refused(Refusal::new(codes::PROTOCOL, "expected a request of the session"))),
            },
            _ = tick.tick() => {
                // Nobody reads any more, or the session goes on over another connection.
                if outbox.is_closed() || !slot.serves(generation, connection) {
                    return Err(End::Gone);
                }
                if let Some(id) = slot.working(generation, connection, TICK) {
                    heard = Instant::now();
                    say(&ToOwner::Progress { id, text: "the card works".to_owned() })?;
                } else if heard.elapsed() > IDLE {
                    return Err(End::Refused(Refusal::new(codes::TIMEOUT, format!("no request within {} s", IDLE.as_secs()))));
                }
            }
            _ = stop.changed() => return Err(End::Refused(Refusal::new(codes::STOPPING, "the agent stops"))),
        }
    }
}
