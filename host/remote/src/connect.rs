//! Connects to a name that has several addresses as RFC 8305 ("Happy Eyeballs") describes: attempts
//! start in sequence without waiting for earlier ones, and the first connection wins.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

/// Connection Attempt Delay (RFC 8305, section 5).
const DELAY: Duration = Duration::from_millis(250);

/// Addresses of a name, within a time limit. A resolver that hangs is abandoned.
fn resolve(host: &str, port: u16, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    let (sender, found) = mpsc::channel();
    let name = (host.to_owned(), port);
    std::thread::Builder::new()
        .spawn(move || sender.send(name.to_socket_addrs().map(Vec::from_iter)))?;
    found.recv_timeout(limit).unwrap_or_else(|_| {
        Err(io::Error::new(ErrorKind::TimedOut, "resolving its name timed out"))
    })
}

/// The addresses in the system's order, with alternating families (RFC 8305, section 4): if one
/// family does not work, the second attempt uses the other.
fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut each: Vec<SocketAddr> = Vec::new();
    addresses.iter().for_each(|address| {
        if !each.contains(address) {
            each.push(*address);
        }
    });
    let first = each.first().is_some_and(SocketAddr::is_ipv4);
    let (mut one, mut other): (std::collections::VecDeque<_>, std::collections::VecDeque<_>) =
        each.into_iter().partition(|address| address.is_ipv4() == first);
    let mut order = Vec::new();
    while !one.is_empty() || !other.is_empty() {
        order.extend(one.pop_front());
        order.extend(other.pop_front());
    }
    order
}

/// Starts to connect.
fn begin(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Failed attempts, with their reasons.
#[derive(Default)]
struct Tried(Vec<String>);

impl Tried {
    fn add(&mut self, address: SocketAddr, why: &dyn std::fmt::Display) {
        self.0.push(format!("{address}: {why}"));
    }

    fn error(self, kind: ErrorKind) -> io::Error {
        io::Error::new(kind, format!("no connection ({})", self.0.join("; ")))
    }
}

/// Returns the first connection to one of these addresses, by `deadline`.
fn race(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    let mut waiting = addresses.iter().copied().peekable();
    let mut open: Vec<(SocketAddr, OwnedFd)> = Vec::new();
    let mut tried = Tried::default();
    let (start, mut next) = (Instant::now(), Instant::now());
    loop {
        let now = Instant::now();
        if now >= deadline {
            let seconds = start.elapsed().as_secs_f32();
            open.iter().for_each(|(address, _)| {
                tried.add(*address, &format_args!("no answer in {seconds:.1} s"));
            });
            waiting.for_each(|address| tried.add(address, &"not tried: out of time"));
            return Err(tried.error(ErrorKind::TimedOut));
        }
        // After a failed attempt the next one starts at once.
        if now >= next || open.is_empty() {
            let Some(address) = waiting.next() else {
                if open.is_empty() {
                    return Err(tried.error(ErrorKind::ConnectionRefused));
                }
                next = deadline;
                continue;
            };
            match begin(address) {
                Ok(socket) => open.push((address, socket)),
                Err(error) => {
                    tried.add(address, &error);
                    continue;
                }
            }
            next = now + DELAY;
        }
        let until = if waiting.peek().is_some() { next.min(deadline) } else { deadline };
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec {
            tv_sec: left.as_secs().min(3600).cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut polled: Vec<PollFd<'_>> =
            open.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::OUT)).collect();
        match poll(&mut polled, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = polled.iter().map(|one| !one.revents().is_empty()).collect();
        for at in (0..ready.len()).rev().filter(|at| ready[*at]) {
            let (address, socket) = open.remove(at);
            match sockopt::socket_error(&socket)? {
                Ok(()) => {
                    let stream = TcpStream::from(socket);
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
                Err(error) => {
                    tried.add(address, &io::Error::from(error));
                    next = Instant::now();
                }
            }
        }
    }
}

/// Connects to one of these addresses, by `deadline`. The first connection ends the other attempts.
///
/// # Errors
/// There is no address, or no address answers: the error names each attempt.
pub fn connect_any(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    if addresses.is_empty() {
        return Err(io::Error::new(ErrorKind::NotFound, "the name does not resolve to an address"));
    }
    race(&interleaved(addresses), deadline)
}

/// Connects to a host by name or address, by `deadline`, as [`connect_any`].
///
/// # Errors
/// The name cannot be resolved, or as for [`connect_any`].
pub fn connect(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    connect_any(&resolve(host, port, left)?, deadline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A listener that accepts no more connections: its queue is full, and new ones are dropped.
    struct Full(SocketAddr, #[expect(dead_code, reason = "held open")] (OwnedFd, Vec<OwnedFd>));

    impl Full {
        fn new() -> Self {
            let socket =
                rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
            rustix::net::listen(&socket, 0).unwrap();
            let address = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
            let fill = (0..4).map(|_| begin(address).unwrap()).collect();
            Self(address, (socket, fill))
        }
    }

    /// An address that refuses connections.
    fn refusing() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    fn later(seconds: u64) -> Instant {
        Instant::now() + Duration::from_secs(seconds)
    }

    #[test]
    fn families_take_turns_and_the_systems_first_one_begins() {
        let of = |list: &[&str]| {
            list.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>()
        };
        let found = interleaved(&of(&[
            "[2001:db8::1]:1",
            "[2001:db8::2]:1",
            "[2001:db8::3]:1",
            "192.0.2.1:1",
            "192.0.2.1:1",
            "192.0.2.2:1",
        ]));
        assert_eq!(
            found,
            of(&[
                "[2001:db8::1]:1",
                "192.0.2.1:1",
                "[2001:db8::2]:1",
                "192.0.2.2:1",
                "[2001:db8::3]:1"
            ])
        );
        assert_eq!(
            interleaved(&of(&["192.0.2.1:1", "[2001:db8::1]:1"])),
            of(&["192.0.2.1:1", "[2001:db8::1]:1"])
        );
    }

    #[test]
    fn an_address_that_does_not_answer_holds_no_other_up() {
        let (full, other) = (Full::new(), Full::new());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        let stream = race(&[full.0, refusing(), other.0, good], later(60)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        // The socket is in blocking mode.
        use std::io::{Read as _, Write as _};
        let (mut owner, mut agent) = (stream, listener.accept().unwrap().0);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            agent.write_all(b"x")
        });
        assert_eq!(owner.read(&mut [0]).unwrap(), 1);
    }

    #[test]
    fn a_failure_names_everything_that_was_tried() {
        let (full, closed) = (Full::new(), refusing());
        let error = race(&[full.0, closed], later(1)).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(
            text.contains(&format!("{}: no answer in ", full.0))
                && text.contains(&format!("{closed}: Connection refused")),
            "{text}"
        );
        let error = race(&[closed, closed], later(60)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = race(&[full.0, full.0, full.0], Instant::now() + Duration::from_millis(100))
            .unwrap_err();
        assert!(error.to_string().ends_with("not tried: out of time)"), "{error}");
    }
}
