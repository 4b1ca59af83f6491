//! TCP connections of the HTTP client, to a verifier service or its proxy. Addresses are tried as for
//! an agent ([`shef_remote::connect_any`]); the client's own connector waits for each in turn.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    RustlsConnector, Transport,
};

/// Maximum time to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// Connects to a server, through a proxy if the configuration has one, with TLS for `https`.
pub(super) fn connector() -> impl Connector {
    ().chain(ConnectProxyConnector::default()).chain(Tcp).chain(RustlsConnector::default())
}

/// Opens a connection unless there is one, through a proxy.
#[derive(Debug)]
struct Tcp;

impl<In: Transport> Connector<In> for Tcp {
    type Out = Either<In, Connection>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if let Some(tunnel) = chained {
            return Ok(Some(Either::A(tunnel)));
        }
        let (config, limit) = (details.config, (*details.timeout.after).min(CONNECT));
        let stream = shef_remote::connect_any(&details.addrs, Instant::now() + limit)?;
        stream.set_nodelay(config.no_delay())?;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(Connection { stream, buffers })))
    }
}

/// A TCP connection with its buffers.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    buffers: LazyBuffers,
}

/// What is left of a time limit; `None` without a limit.
fn left(timeout: NextTimeout) -> Result<Option<Duration>, Error> {
    match timeout.not_zero() {
        Some(_) if timeout.after.is_zero() => Err(Error::Timeout(timeout.reason)),
        limit => Ok(limit.map(|limit| *limit)),
    }
}

/// The error of a read or write under a time limit.
fn failed(error: std::io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

impl Transport for Connection {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let timeout = timeout.for_write();
        self.stream.set_write_timeout(left(timeout)?)?;
        let bytes = &self.buffers.output()[..amount];
        self.stream.write_all(bytes).map_err(|error| failed(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let timeout = timeout.for_read();
        self.stream.set_read_timeout(left(timeout)?)?;
        let bytes = self.buffers.input_append_buf();
        let count = loop {
            match self.stream.read(bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(|error| failed(error, timeout))?,
            }
        };
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    /// A server sends nothing between answers: bytes and an end mean that the connection is over.
    fn is_open(&mut self) -> bool {
        let idle = |stream: &TcpStream| {
            stream.set_nonblocking(true)?;
            let idle = stream.peek(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
            stream.set_nonblocking(false).map(|()| idle)
        };
        idle(&self.stream).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use rustix::net::{AddressFamily, SocketType};
    use ureq::http::Uri;
    use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};

    use super::*;

    /// Resolves every name to these addresses.
    #[derive(Debug)]
    struct To(Vec<SocketAddr>);

    impl Resolver for To {
        fn resolve(
            &self,
            _: &Uri,
            _: &ureq::config::Config,
            _: NextTimeout,
        ) -> Result<ResolvedSocketAddrs, Error> {
            let mut found = self.empty();
            self.0.iter().for_each(|address| found.push(*address));
            Ok(found)
        }
    }

    /// An address that does not answer: the queue of its listener is full.
    fn silent() -> (SocketAddr, Vec<std::os::fd::OwnedFd>) {
        let socket = || {
            let flags = rustix::net::SocketFlags::NONBLOCK;
            rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap()
        };
        let listener = socket();
        rustix::net::bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let address = SocketAddr::try_from(rustix::net::getsockname(&listener).unwrap()).unwrap();
        let mut held = vec![listener];
        held.extend((0..4).map(|_| {
            let socket = socket();
            let _ = rustix::net::connect(&socket, &address);
            socket
        }));
        (address, held)
    }

    /// Answers each connection once, and sends the first line of its request to the channel.
    fn server() -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // The second request of a connection goes through the tunnel that the first opens.
                loop {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let mut byte = [0];
                        if !matches!(stream.read(&mut byte), Ok(1)) {
                            break;
                        }
                        head.push(byte[0]);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let Some(line) = head.lines().next() else { break };
                    let (line, tunnel) = (line.to_owned(), line.starts_with("CONNECT"));
                    sender.send(line).unwrap();
                    let length = if tunnel { "" } else { "content-length: 2\r\n" };
                    let body = if tunnel { "" } else { "ok" };
                    write!(stream, "HTTP/1.1 200 OK\r\n{length}\r\n{body}").unwrap();
                }
            }
        });
        (address, lines)
    }

    fn agent(addresses: &[SocketAddr], proxy: Option<&str>, limit: Duration) -> ureq::Agent {
        let config = ureq::Agent::config_builder()
            .proxy(proxy.map(|url| ureq::Proxy::new(url).unwrap()))
            .timeout_connect(Some(limit))
            .build();
        ureq::Agent::with_parts(config, connector(), To(addresses.to_vec()))
    }

    fn get(agent: &ureq::Agent) -> Result<String, Error> {
        agent.get("http://service.example:8443/v1").call()?.body_mut().read_to_string()
    }

    #[test]
    fn an_address_that_does_not_answer_holds_no_request_up() {
        let ((silent, _held), (good, lines)) = (silent(), server());
        for proxy in [None, Some("http://proxy.example:3128")] {
            let agent = agent(&[silent, good], proxy, Duration::from_secs(60));
            let second = agent.clone();
            let answer = std::thread::spawn(move || get(&agent).unwrap());
            // In sequence, the first address would take 40 of the 60 s.
            let mut seen = vec![lines.recv_timeout(Duration::from_secs(20)).unwrap()];
            assert_eq!(answer.join().unwrap(), "ok");
            // The second request uses the same connection.
            assert_eq!(get(&second).unwrap(), "ok");
            seen.extend(lines.try_iter());
            let expected: &[&str] = match proxy {
                None => &["GET /v1 HTTP/1.1"; 2],
                Some(_) => &[
                    "CONNECT service.example:8443 HTTP/1.1",
                    "GET /v1 HTTP/1.1",
                    "GET /v1 HTTP/1.1",
                ],
            };
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_failed_request_names_each_address() {
        let (silent, _held) = silent();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for proxy in [None, Some("http://proxy.example:3128")] {
            let agent = agent(&[silent, closed], proxy, Duration::from_secs(1));
            let error = get(&agent).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{silent}: no answer in "))
                    && error.contains(&format!("{closed}: Connection refused")),
                "{error}"
            );
        }
    }
}
