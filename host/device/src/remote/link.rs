//! One TLS connection to an agent.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::Limits;
use crate::DeviceError;
use crate::wire::{Frames, ToAgent, ToOwner, VERSION_MAX, VERSION_MIN, codes};

/// Bytes that are read in one go.
const READ: usize = 128 * 1024;

/// What went wrong on a connection.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The connection is gone or unusable; another one may work.
    Lost(DeviceError),
    /// Nothing came in time.
    Silent,
    /// The agent refused, and will again.
    Refused(DeviceError),
}

/// The agent's side broke the protocol.
pub(super) fn broken(what: impl std::fmt::Display) -> Trouble {
    Trouble::Lost(DeviceError::Transport { code: codes::PROTOCOL, message: format!("the agent broke the protocol: {what}") })
}

/// One connection.
pub(super) struct Link {
    tls: StreamOwned<ClientConnection, TcpStream>,
    frames: Frames,
    buffer: Box<[u8]>,
}

impl Link {
    /// Connects, shakes hands and agrees on a version.
    pub(super) fn connect(host: &str, port: u16, config: &Arc<ClientConfig>, limits: &Limits) -> Result<Self, Trouble> {
        let deadline = Instant::now() + limits.connect;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let lost = |code, what: &dyn std::fmt::Display| {
            Trouble::Lost(DeviceError::Transport { code, message: format!("agent {host}:{port}: {what}") })
        };
        let name = ServerName::try_from(bare.to_owned()).map_err(|e| lost(codes::TLS, &e))?;
        let mut last = None;
        let tcp = (bare, port)
            .to_socket_addrs()
            .map_err(|e| lost(codes::UNREACHABLE, &e))?
            .find_map(|address| {
                let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                TcpStream::connect_timeout(&address, left).map_err(|e| last = Some(e)).ok()
            })
            .ok_or_else(|| match last {
                Some(error) => lost(codes::UNREACHABLE, &error),
                None => lost(codes::UNREACHABLE, &"the name has no address"),
            })?;
        let _ = tcp.set_nodelay(true);
        let connection = ClientConnection::new(Arc::clone(config), name).map_err(|e| lost(codes::TLS, &e))?;
        let mut link = Self { tls: StreamOwned::new(connection, tcp), frames: Frames::new(), buffer: vec![0; READ].into() };
        link.handshake(deadline).map_err(|e| lost(codes::TLS, &e))?;
        let program = format!("shef {}", env!("CARGO_PKG_VERSION"));
        link.send(&ToAgent::Hello { min: VERSION_MIN, max: VERSION_MAX, program }.encode(), limits.answer)?;
        match link.receive(deadline) {
            Ok(ToOwner::Welcome { version: VERSION_MIN..=VERSION_MAX, .. }) => Ok(link),
            Ok(ToOwner::Welcome { version, .. }) => Err(broken(format_args!("version {version} was not offered"))),
            Ok(_) => Err(broken("its first message is no welcome")),
            // TLS 1.3: a server that refuses the client's certificate says so after the handshake.
            Err(Trouble::Lost(DeviceError::Transport { message, .. })) => Err(lost(codes::TLS, &message)),
            Err(Trouble::Silent) => Err(lost(codes::TIMEOUT, &"no welcome in time")),
            Err(trouble) => Err(trouble),
        }
    }

    fn handshake(&mut self, deadline: Instant) -> std::io::Result<()> {
        while self.tls.conn.is_handshaking() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.tls.sock.set_read_timeout(Some(left))?;
            self.tls.sock.set_write_timeout(Some(left))?;
            self.tls.conn.complete_io(&mut self.tls.sock)?;
        }
        Ok(())
    }

    /// Sends a frame.
    pub(super) fn send(&mut self, frame: &[u8], limit: Duration) -> Result<(), Trouble> {
        let result = self.tls.sock.set_write_timeout(Some(limit)).and_then(|()| self.tls.write_all(frame)).and_then(|()| self.tls.flush());
        result.map_err(|e| gone(&e))
    }

    /// The next message.
    pub(super) fn receive(&mut self, deadline: Instant) -> Result<ToOwner, Trouble> {
        loop {
            if let Some(frame) = self.frames.take().map_err(broken)? {
                return match ToOwner::decode(frame).map_err(broken)? {
                    ToOwner::Refused { code, message } => Err(Trouble::Refused(DeviceError::Remote { code, message })),
                    message => Ok(message),
                };
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::Silent);
            }
            let read = self.tls.sock.set_read_timeout(Some(left)).and_then(|()| self.tls.read(&mut self.buffer));
            match read {
                Ok(0) => return Err(gone(&"it closed the connection")),
                Ok(n) => self.frames.push(&self.buffer[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(e) => return Err(gone(&e)),
            }
        }
    }

    /// Says goodbye in TLS's way, as far as that goes at once.
    pub(super) fn close(&mut self) {
        self.tls.conn.send_close_notify();
        let _ = self.tls.conn.write_tls(&mut self.tls.sock);
    }
}

fn gone(what: &dyn std::fmt::Display) -> Trouble {
    Trouble::Lost(DeviceError::Transport { code: codes::LOST, message: format!("the connection to the agent is gone: {what}") })
}
