//! One TLS connection to an agent.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use shef_device::DeviceError;

use crate::connect::connect;
use crate::wire::{Frames, ToAgent, ToOwner, VERSION_MAX, VERSION_MIN, codes};

/// Bytes per read.
const READ: usize = 128 * 1024;

/// A failure of a connection.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection is gone or unusable; another one may work.
    Lost(DeviceError),
    /// No message arrived in time.
    Silent,
    /// The agent refused, and would refuse again.
    Refused(DeviceError),
}

/// The agent broke the protocol.
pub(crate) fn broken(what: impl std::fmt::Display) -> Trouble {
    Trouble::Lost(DeviceError::Transport {
        code: codes::PROTOCOL,
        message: format!("the agent broke the protocol: {what}"),
    })
}

/// A socket that bounds its system calls by the deadline of the current operation, even if each
/// call transfers only a few bytes.
struct Bounded {
    tcp: TcpStream,
    deadline: Instant,
}

impl Bounded {
    /// Time left.
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Bounded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(Some(self.left()?))?;
        self.tcp.read(out)
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(Some(self.left()?))?;
        self.tcp.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// One connection.
pub(crate) struct Link {
    tls: StreamOwned<ClientConnection, Bounded>,
    frames: Frames,
    buffer: Box<[u8]>,
}

impl Link {
    /// Connects, completes the handshake and negotiates a version, all by `deadline`.
    pub(crate) fn connect(
        host: &str,
        port: u16,
        config: &Arc<ClientConfig>,
        deadline: Instant,
    ) -> Result<Self, Trouble> {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let lost = |code, what: &dyn std::fmt::Display| {
            Trouble::Lost(DeviceError::Transport {
                code,
                message: format!("agent {host}:{port}: {what}"),
            })
        };
        let name = ServerName::try_from(bare.to_owned()).map_err(|e| lost(codes::TLS, &e))?;
        let tcp = connect(bare, port, deadline).map_err(|e| lost(codes::UNREACHABLE, &e))?;
        let _ = tcp.set_nodelay(true);
        let connection =
            ClientConnection::new(Arc::clone(config), name).map_err(|e| lost(codes::TLS, &e))?;
        let tls = StreamOwned::new(connection, Bounded { tcp, deadline });
        let mut link = Self { tls, frames: Frames::new(), buffer: vec![0; READ].into() };
        link.handshake().map_err(|e| lost(codes::TLS, &meaning(&e)))?;
        let program = format!("shef {}", env!("CARGO_PKG_VERSION"));
        link.send(
            &ToAgent::Hello { min: VERSION_MIN, max: VERSION_MAX, program }.encode(),
            deadline,
        )?;
        match link.receive(deadline) {
            Ok(ToOwner::Welcome { version: VERSION_MIN..=VERSION_MAX, .. }) => Ok(link),
            Ok(ToOwner::Welcome { version, .. }) => {
                Err(broken(format_args!("version {version} was not offered")))
            }
            Ok(_) => Err(broken("its first message is not a welcome")),
            // TLS 1.3: a server that rejects the client's certificate does so after the handshake.
            Err(Trouble::Lost(DeviceError::Transport { message, .. })) => {
                Err(lost(codes::TLS, &message))
            }
            Err(Trouble::Silent) => Err(lost(codes::TIMEOUT, &"timed out waiting for its welcome")),
            Err(trouble) => Err(trouble),
        }
    }

    fn handshake(&mut self) -> io::Result<()> {
        while self.tls.conn.is_handshaking() {
            match self.tls.conn.complete_io(&mut self.tls.sock) {
                Ok(_) => {}
                Err(e) if is_no_progress(&e) => drop(self.tls.sock.left()?),
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sends an entire frame by `deadline`.
    pub(crate) fn send(&mut self, frame: &[u8], deadline: Instant) -> Result<(), Trouble> {
        self.tls.sock.deadline = deadline;
        self.tls.write_all(frame).and_then(|()| self.tls.flush()).map_err(|e| gone(&e))
    }

    /// Receives the next entire message by `deadline`.
    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<ToOwner, Trouble> {
        self.tls.sock.deadline = deadline;
        loop {
            if let Some(frame) = self.frames.take().map_err(broken)? {
                return match ToOwner::decode(frame).map_err(broken)? {
                    ToOwner::Refused { code, message } => {
                        Err(Trouble::Refused(DeviceError::Remote { code, message }))
                    }
                    message => Ok(message),
                };
            }
            if self.tls.sock.left().is_err() {
                return Err(Trouble::Silent);
            }
            match self.read() {
                Ok(0) => return Err(gone(&"it closed the connection")),
                Ok(n) => self.frames.push(&self.buffer[..n]),
                Err(e) if is_no_progress(&e) => {}
                Err(e) => return Err(gone(&meaning(&e))),
            }
        }
    }

    /// Reads bytes of frames. Writes nothing: data that arrived before a connection was half closed
    /// can still be read.
    fn read(&mut self) -> io::Result<usize> {
        let tls = &mut self.tls;
        loop {
            match tls.conn.reader().read(&mut self.buffer) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            tls.conn.read_tls(&mut tls.sock)?;
            tls.conn
                .process_new_packets()
                .map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        }
    }

    /// Sends TLS's close_notify, if that is possible at once.
    pub(crate) fn close(&mut self) {
        self.tls.sock.deadline = Instant::now() + Duration::from_millis(100);
        self.tls.conn.send_close_notify();
        let _ = self.tls.conn.write_tls(&mut self.tls.sock);
    }
}

/// Whether a system call ended without a result, so that the deadline decides.
fn is_no_progress(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Explains a connection error to an owner in terms of certificates rather than the protocol.
fn meaning(error: &io::Error) -> String {
    use rustls::{AlertDescription as Alert, CertificateError as Bad, Error};
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature)) => {
            "its certificate was not issued by the CA in this owner's files: expected the agent \
            that issued them; an agent that was set up again has a new CA"
                .to_owned()
        }
        Some(Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. })) => {
            "its certificate has expired: its operator can renew it with `shef-agent renew --dir \
            DIR` (is this machine's clock right?)".to_owned()
        }
        Some(Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. })) => {
            "its certificate is not valid yet: is this machine's clock right?".to_owned()
        }
        Some(Error::AlertReceived(Alert::CertificateExpired)) => {
            "it refused this owner's certificate, which has expired or is not valid yet: ask its \
            operator for a new one (`shef-agent renew --dir DIR NAME`), or compare the clocks of \
            both machines"
                .to_owned()
        }
        Some(Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError | Alert::BadCertificate)) => {
            "it refused this owner's certificate: expected one that its own CA issued (`shef-agent add-owner`)".to_owned()
        }
        _ => error.to_string(),
    }
}

fn gone(what: &dyn std::fmt::Display) -> Trouble {
    Trouble::Lost(DeviceError::Transport {
        code: codes::LOST,
        message: format!("lost the connection to the agent: {what}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{AlertDescription, CertificateError, Error};

    #[test]
    fn certificates_that_do_not_fit_are_told_with_what_to_do() {
        for (error, says) in [
            (Error::InvalidCertificate(CertificateError::Expired), "shef-agent renew --dir DIR`"),
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "the CA in this owner's files",
            ),
            (Error::InvalidCertificate(CertificateError::NotValidYet), "clock"),
            (
                Error::AlertReceived(AlertDescription::CertificateExpired),
                "shef-agent renew --dir DIR NAME",
            ),
            (Error::AlertReceived(AlertDescription::UnknownCA), "its own CA"),
        ] {
            let text = meaning(&io::Error::new(ErrorKind::InvalidData, error));
            assert!(text.contains(says), "{text}");
        }
        assert_eq!(meaning(&ErrorKind::ConnectionReset.into()), "connection reset");
    }
}
