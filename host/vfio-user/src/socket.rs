//! A stream socket that carries file descriptors along with bytes.

#![expect(unsafe_code, reason = "calls sendmsg and recvmsg")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use shef_device::{poll_readable, poll_writable};

use crate::wire::MAX_FDS;

/// Size of a control message with `fds` descriptors.
const fn space(fds: usize) -> usize {
    // SAFETY: a computation on a number.
    unsafe { libc::CMSG_SPACE((fds * size_of::<RawFd>()) as u32) as usize }
}

/// Room for one control message, with the alignment of its header.
#[repr(C, align(8))]
struct Control([u8; space(MAX_FDS)]);

/// A connected socket. Every message has a deadline, which is checked before each system call that
/// would block, even if each call transfers only a few bytes.
#[derive(Debug)]
pub(crate) struct Socket(UnixStream);

/// Time left.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl Socket {
    /// Wraps a connection.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self(stream))
    }

    /// A second handle on the connection, for another thread.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits for bytes, or for the end of the connection.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        Ok(poll_readable(&[self.0.as_fd()], timeout)?[0])
    }

    /// Ends the connection in both directions.
    pub fn shutdown(&self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }

    /// Sends all bytes of both parts by `deadline`; the descriptors are sent with the first bytes.
    pub fn send(
        &self,
        head: &[u8],
        body: &[u8],
        fds: &[BorrowedFd<'_>],
        deadline: Instant,
    ) -> io::Result<()> {
        let total = head.len() + body.len();
        let mut sent = 0;
        while sent < total {
            let (h, b) = if sent < head.len() {
                (&head[sent..], body)
            } else {
                (&head[..0], &body[sent - head.len()..])
            };
            match self.send_some(h, b, if sent == 0 { fds } else { &[] }) {
                Ok(n) => sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    poll_writable(self.0.as_fd(), left(deadline)?)?;
                }
                Err(e) => return Err(e),
            }
            if sent < total {
                left(deadline)?;
            }
        }
        Ok(())
    }

    fn send_some(&self, head: &[u8], body: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        if fds.len() > MAX_FDS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "too many file descriptors for one message",
            ));
        }
        let mut parts = [head, body]
            .map(|p| libc::iovec { iov_base: p.as_ptr().cast_mut().cast(), iov_len: p.len() });
        let mut control = Control([0; space(MAX_FDS)]);
        // SAFETY: all zeros is a legal value of this structure of integers and pointers.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = parts.len() as _;
        if !fds.is_empty() {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = space(fds.len()) as _;
            // SAFETY: pointer and length of the control buffer are set.
            let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
            // SAFETY: the control buffer is aligned and holds at least one header.
            let header = unsafe { &mut *header };
            header.cmsg_level = libc::SOL_SOCKET;
            header.cmsg_type = libc::SCM_RIGHTS;
            // SAFETY: a computation on a number.
            header.cmsg_len = unsafe { libc::CMSG_LEN(size_of_val(fds) as u32) } as _;
            // SAFETY: the header is the one above.
            let data: *mut RawFd = unsafe { libc::CMSG_DATA(header) }.cast();
            for (i, fd) in fds.iter().enumerate() {
                // SAFETY: there is room for MAX_FDS descriptors behind the header, and `i` is less
                // than that.
                let place = unsafe { data.add(i) };
                // SAFETY: inside the control buffer.
                unsafe { place.write_unaligned(fd.as_raw_fd()) };
            }
        }
        loop {
            // SAFETY: every pointer in the message points to memory that outlives the call.
            let n = unsafe {
                libc::sendmsg(self.0.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
            };
            match usize::try_from(n) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => return Ok(n),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Fills `buf` by `deadline`; descriptors that arrive with it are appended to `fds`.
    /// `Ok(false)` if the connection ended before the first byte.
    pub fn recv(
        &self,
        buf: &mut [u8],
        fds: &mut Vec<OwnedFd>,
        deadline: Instant,
    ) -> io::Result<bool> {
        let mut got = 0;
        while got < buf.len() {
            match self.recv_some(&mut buf[got..], fds) {
                Ok(0) if got == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => got += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(left(deadline)?)?;
                }
                Err(e) => return Err(e),
            }
            if fds.len() > MAX_FDS {
                return Err(too_many());
            }
            if got < buf.len() {
                left(deadline)?;
            }
        }
        Ok(true)
    }

    fn recv_some(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let mut part = libc::iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: buf.len() };
        let mut control = Control([0; space(MAX_FDS)]);
        // SAFETY: all zeros is a legal value of this structure of integers and pointers.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let n = loop {
            // SAFETY: every pointer in the message points to memory that outlives the call and has
            // the stated length.
            let n = unsafe {
                libc::recvmsg(self.0.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC)
            };
            match usize::try_from(n) {
                Ok(n) => break n,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        };
        // SAFETY: the kernel filled the control buffer and its length; the walk stays inside it.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        while !header.is_null() {
            // SAFETY: not null, so inside the control buffer, and the kernel wrote it.
            let found = unsafe { *header };
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                // SAFETY: a computation on a number.
                let count = (found.cmsg_len as usize)
                    .saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize)
                    / size_of::<RawFd>();
                // SAFETY: the header is inside the buffer.
                let data: *const RawFd = unsafe { libc::CMSG_DATA(header) }.cast();
                for i in 0..count {
                    // SAFETY: the kernel wrote `count` descriptors there.
                    let place = unsafe { data.add(i) };
                    // SAFETY: one of those descriptors.
                    let fd = unsafe { place.read_unaligned() };
                    // SAFETY: the kernel has just created it for this process, so it has no other
                    // owner.
                    fds.push(unsafe { OwnedFd::from_raw_fd(fd) });
                }
            }
            // SAFETY: as for the first header.
            header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
        }
        if message.msg_flags & libc::MSG_CTRUNC != 0 {
            return Err(too_many());
        }
        Ok(n)
    }
}

fn too_many() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "more file descriptors in one message than allowed")
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};

    fn pair() -> (Socket, Socket) {
        let (a, b) = UnixStream::pair().unwrap();
        (Socket::new(a).unwrap(), Socket::new(b).unwrap())
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn bytes_that_drip_do_not_move_the_deadline() {
        let (a, b) = pair();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed)
                    && a.send(&[1], &[], &[], later()).is_ok()
                {
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let result = b.recv(
                &mut [0; 2000],
                &mut Vec::new(),
                Instant::now() + Duration::from_millis(300),
            );
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::TimedOut);
        });
        // The peer does not read: a send that does not fit also ends in time.
        let full =
            a.send(&vec![0; 64 << 20], &[], &[], Instant::now() + Duration::from_millis(100));
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn descriptors_travel_with_bytes() {
        let (a, b) = pair();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"here").unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        a.send(b"0123456789abcdef", b"body", &[file.as_fd(), file.as_fd()], later()).unwrap();
        let (mut head, mut body, mut fds) = ([0; 16], [0; 4], Vec::new());
        assert!(
            b.recv(&mut head, &mut fds, later()).unwrap()
                && b.recv(&mut body, &mut fds, later()).unwrap()
        );
        assert_eq!((&head[..], &body[..], fds.len()), (&b"0123456789abcdef"[..], &b"body"[..], 2));
        let mut text = String::new();
        File::from(fds.pop().unwrap()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "here");
        drop(a);
        assert!(
            !b.recv(&mut head, &mut fds, later()).unwrap(),
            "an end is told apart from an error"
        );
    }

    #[test]
    fn large_messages_go_through_and_too_many_descriptors_do_not() {
        let (a, b) = pair();
        let big: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7) as u8).collect();
        let thread = std::thread::spawn(move || {
            let mut got = vec![0; 3_000_016];
            b.recv(&mut got, &mut Vec::new(), later()).unwrap();
            got
        });
        a.send(&[9; 16], &big, &[], later()).unwrap();
        assert_eq!(thread.join().unwrap()[16..], big[..]);
        let (a, b) = pair();
        let fds = [a.as_fd(); MAX_FDS + 1];
        assert!(a.send(b"x", b"", &fds, later()).is_err());
        // Nor do they with a few for each byte.
        let (mut head, mut fds) = ([0; 16], Vec::new());
        (0..head.len()).for_each(|_| a.send(b"x", b"", &[a.as_fd(); MAX_FDS], later()).unwrap());
        assert_eq!(
            b.recv(&mut head, &mut fds, later()).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert_eq!(fds.len(), 2 * MAX_FDS);
    }
}
