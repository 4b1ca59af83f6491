//! One connection of an owner.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::server::Acceptor;
use shef_remote::wire::{self, ToAgent, ToOwner, VERSION_MAX, VERSION_MIN, codes};
use shef_tls::admission::Permit;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::Times;
use crate::identity::Identity;
use crate::outbox::{Frames, Outbox};
use crate::slot::{Attempt, Refusal, Slot, no_device};
use crate::state::{Phase, Shared};

/// How often the agent reports to an owner that the card is working.
const TICK: Duration = Duration::from_secs(1);
/// Most time that a card may take to become ready.
const READY: Duration = Duration::from_secs(900);
/// Time to send the last messages when a connection ends.
const LAST: Duration = Duration::from_secs(5);
/// Bytes per read.
const READ: usize = 128 * 1024;

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

type Reading = ReadHalf<TlsStream<TcpStream>>;
type Writing = WriteHalf<TlsStream<TcpStream>>;

/// Incoming messages.
struct Incoming {
    stream: Reading,
    frames: wire::Frames,
    buffer: Box<[u8]>,
    times: Times,
    /// Deadline of the message being received.
    whole_by: Option<Instant>,
}

/// Why there is no next message.
enum End {
    /// The owner's side is gone, or continues on another connection.
    Gone,
    Refused(Refusal),
}

fn refuse<T>(code: &str, message: impl Into<String>) -> Result<T, End> {
    Err(End::Refused(Refusal::new(code, message)))
}

fn say(outbox: &Outbox, message: &ToOwner) -> Result<(), End> {
    if outbox.say(message) { Ok(()) } else { Err(End::Gone) }
}

impl Incoming {
    /// The next message. Safe to cancel and to call again. A message must arrive whole in time once
    /// it has begun.
    async fn next(&mut self) -> Result<ToAgent, End> {
        let malformed =
            |e: wire::WireError| End::Refused(Refusal::new(codes::PROTOCOL, e.to_string()));
        loop {
            if let Some(frame) = self.frames.take().map_err(malformed)? {
                let message = ToAgent::decode(frame).map_err(malformed);
                self.whole_by = None;
                return message;
            }
            if self.frames.is_begun() {
                self.whole_by = self.whole_by.or_else(|| Some(Instant::now() + self.times.message));
            }
            let read = self.stream.read(&mut self.buffer);
            let read = match self.whole_by {
                None => read.await,
                Some(end) => match timeout_at(end, read).await {
                    Ok(read) => read,
                    Err(_) => {
                        let what = format!(
                            "a message is incomplete {} s after its first byte",
                            self.times.message.as_secs_f32()
                        );
                        return refuse(codes::TIMEOUT, what);
                    }
                },
            };
            match read {
                Ok(n) if n > 0 => self.frames.push(&self.buffer[..n]),
                _ => return Err(End::Gone),
            }
        }
    }

    /// The next message, within the time limit for messages before a card is opened.
    async fn soon(&mut self) -> Result<ToAgent, End> {
        let limit = self.times.hello;
        match timeout(limit, self.next()).await {
            Ok(message) => message,
            Err(_) => {
                refuse(codes::TIMEOUT, format!("no message within {} s", limit.as_secs_f32()))
            }
        }
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve(tcp: TcpStream, peer: SocketAddr, permit: Permit, shared: Arc<Shared>) {
    let setup = shared.setup();
    let shaken = timeout(setup.times.hello, async {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), tcp).await?;
        permit.spoke();
        hello.into_stream(Arc::clone(setup.acceptor.config())).await
    });
    let tls = tokio::select! {
        shaken = shaken => match shaken {
            Ok(Ok(tls)) => tls,
            Ok(Err(error)) => return shared.turned_away(peer, &format!("TLS refused: {error}")),
            Err(_) => return shared.turned_away(peer, "the TLS handshake timed out"),
        },
        () = permit.displaced() => return shared.turned_away(peer, "too many handshakes: this one \
            was closed to admit another"),
    };
    let identity = tls.get_ref().1.peer_certificates().and_then(|list| Identity::of(list.first()?));
    let (stream, writing) = split(tls);
    let (outbox, frames) = Outbox::new();
    let writer = tokio::spawn(write(writing, frames, setup.times.message));
    let times = setup.times;
    let mut incoming = Incoming {
        stream,
        frames: wire::Frames::new(),
        buffer: vec![0; READ].into(),
        times,
        whole_by: None,
    };
    let end = match identity {
        Some(owner) if setup.revoked.contains(&owner) => refuse(
            codes::NOT_ALLOWED,
            format!(
                "the certificate of {} was revoked (fingerprint {})",
                owner.name,
                owner.fingerprint()
            ),
        ),
        Some(owner) => {
            permit.admit();
            let has_session = shared.slots.values().any(|slot| slot.is_of(&owner.name));
            let permit = shared.connections.take(
                &owner.name,
                setup.max_connections,
                setup.max_connections_per_owner,
                has_session,
            );
            match permit {
                Ok(_permit) => converse(&mut incoming, &outbox, &shared, &owner, peer).await,
                Err(refusal) => Err(End::Refused(refusal)),
            }
        }
        None => {
            refuse(codes::NOT_ALLOWED, "the certificate's common name is not a valid owner name")
        }
    };
    let gone = matches!(end, Err(End::Gone));
    if let Err(End::Refused(Refusal { code, message })) = end {
        tracing::info!(%peer, code, "refused: {message}");
        shared.refused();
        outbox.say(&ToOwner::Refused { code, message });
    }
    // The writer ends once it has written everything; it writes nothing to a closed connection.
    drop(outbox);
    let abort = writer.abort_handle();
    if gone || timeout(LAST, writer).await.is_err() {
        abort.abort();
    }
}

async fn write(mut stream: Writing, mut frames: Frames, limit: Duration) {
    while let Some(frame) = frames.next().await {
        let written = timeout(limit, async {
            stream.write_all(&frame).await?;
            if frames.is_empty() { stream.flush().await } else { Ok(()) }
        });
        if !matches!(written.await, Ok(Ok(()))) {
            return;
        }
    }
    let _ = timeout(LAST, stream.shutdown()).await;
}

async fn converse(
    incoming: &mut Incoming,
    outbox: &Outbox,
    shared: &Arc<Shared>,
    owner: &Identity,
    peer: SocketAddr,
) -> Result<(), End> {
    match incoming.soon().await? {
        ToAgent::Hello { min, max, program } => {
            if min > VERSION_MAX || max < VERSION_MIN || min > max {
                let what = format!(
                    "the peer offers versions {min} to {max} of the protocol, this agent supports \
                    {VERSION_MIN} to {VERSION_MAX}"
                );
                return refuse(codes::VERSION, what);
            }
            tracing::info!(%peer, owner = owner.name, fingerprint = owner.fingerprint(), program, "connected");
            let (version, program) =
                (max.min(VERSION_MAX), format!("shef-agent {}", env!("CARGO_PKG_VERSION")));
            say(outbox, &ToOwner::Welcome { version, program, owner: owner.name.clone() })?;
        }
        _ => return refuse(codes::PROTOCOL, "the first message is not a hello"),
    }
    let (device, resume) = match incoming.soon().await? {
        ToAgent::List => {
            return say(
                outbox,
                &ToOwner::Devices(
                    shared.slots.values().filter_map(|slot| slot.listed(owner)).collect(),
                ),
            );
        }
        ToAgent::Open { device, resume } => (device, resume),
        _ => return refuse(codes::PROTOCOL, "expected a request to open a device"),
    };
    if let Some(days) = owner.ends_soon() {
        tracing::warn!(
            owner = owner.name,
            fingerprint = owner.fingerprint(),
            days,
            "the owner's certificate expires soon"
        );
        say(
            outbox,
            &ToOwner::Progress {
                id: 0,
                text: format!(
                    "your certificate expires in {days} days: ask the agent's operator for a new \
                    one"
                ),
            },
        )?;
    }
    let Some(slot) = shared.slots.get(&device) else {
        return Err(End::Refused(no_device(&device, owner)));
    };
    let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    let begin = Instant::now();
    let mut phase = shared.phase.clone();
    let generation = loop {
        match slot.attach(owner, resume, connection, outbox) {
            Attempt::Attached(generation) => break generation,
            Attempt::Refused(refusal) => return Err(End::Refused(refusal)),
            Attempt::Wait(_) if begin.elapsed() > READY || *phase.borrow() != Phase::Serving => {
                return refuse(codes::DEVICE_FAILED, format!("device {device} is not ready"));
            }
            Attempt::Wait(text) => {
                if outbox.is_idle() {
                    say(outbox, &ToOwner::Progress { id: 0, text: text.to_owned() })?;
                }
                tokio::select! {
                    () = slot.changed(TICK) => {}
                    _ = phase.changed() => {}
                    // No message may arrive before the card is open.
                    next = incoming.next() => {
                        return match next {
                            Ok(_) => refuse(codes::PROTOCOL, "a message before the device is open"),
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
    let result = session(incoming, outbox, &mut phase, slot, connection, generation).await;
    slot.detach(generation, connection, shared.setup().grace);
    result
}

async fn session(
    incoming: &mut Incoming,
    outbox: &Outbox,
    phase: &mut watch::Receiver<Phase>,
    slot: &Slot,
    connection: u64,
    generation: u64,
) -> Result<(), End> {
    let mut tick = tokio::time::interval(TICK);
    let mut heard = Instant::now();
    loop {
        if *phase.borrow() == Phase::Stopping {
            return refuse(codes::STOPPING, "the agent is stopping");
        }
        tokio::select! {
            message = incoming.next() => match message? {
                ToAgent::Request { id, acked, op } => {
                    heard = Instant::now();
                    slot.request(generation, connection, id, acked, op).map_err(End::Refused)?;
                }
                _ => return refuse(codes::PROTOCOL, "expected a request of the session"),
            },
            // The session continues over another connection, or the card was taken away.
            () = outbox.over() => if *phase.borrow() != Phase::Stopping { return Err(End::Gone) },
            _ = tick.tick() => {
                // The peer has stopped reading.
                if outbox.is_closed() {
                    return Err(End::Gone);
                }
                // The owner closed the session: the remaining messages are sent.
                if !slot.serves(generation, connection) {
                    return Ok(());
                }
                if let Some(id) = slot.working(generation, connection, TICK) {
                    heard = Instant::now();
                    if outbox.is_idle() {
                        let text = "the card is working".to_owned();
                        say(outbox, &ToOwner::Progress { id, text })?;
                    }
                } else if heard.elapsed() > incoming.times.idle {
                    return refuse(codes::TIMEOUT, format!("no request within {} s", incoming.times.idle.as_secs()));
                }
            }
            _ = phase.changed() => {}
        }
    }
}
