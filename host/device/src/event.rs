//! Event descriptors (eventfd), which deliver an interrupt to a program.

#![expect(unsafe_code, reason = "calls eventfd and ppoll")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A counter in the kernel: one side signals it, and the other waits for it.
#[derive(Debug)]
pub struct Event(File);

impl Event {
    /// A new event, at zero.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    /// Signals the event. A descriptor whose counter is full stays signalled.
    ///
    /// # Errors
    /// If the descriptor is not an event.
    pub fn signal(&self) -> io::Result<()> {
        match (&self.0).write(&1u64.to_ne_bytes()) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(()),
        }
    }

    /// Takes the signals since the last call: their number, 0 if there were no signals. Does not
    /// wait.
    ///
    /// # Errors
    /// If the descriptor is not an event.
    pub fn take(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        match (&self.0).read(&mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(e) => Err(e),
        }
    }

    /// Waits for a signal, for at most `timeout`, and takes it. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Event::take`].
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        Ok(poll_readable(&[self.0.as_fd()], timeout)?[0] && self.take()? > 0)
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<OwnedFd> for Event {
    fn from(fd: OwnedFd) -> Self {
        Self(fd.into())
    }
}

/// Waits until one of the descriptors is readable or its other end is gone, for at most `timeout`.
/// Returns which ones.
///
/// # Errors
/// The operating system's.
pub fn poll_readable<const N: usize>(
    fds: &[BorrowedFd<'_>; N],
    timeout: Duration,
) -> io::Result<[bool; N]> {
    poll(fds, libc::POLLIN, timeout)
}

/// Waits until a descriptor is writable or its other end is gone, for at most `timeout`. Returns
/// whether it is.
///
/// # Errors
/// The operating system's.
pub fn poll_writable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    Ok(poll(&[fd], libc::POLLOUT, timeout)?[0])
}

fn poll<const N: usize>(
    fds: &[BorrowedFd<'_>; N],
    events: libc::c_short,
    timeout: Duration,
) -> io::Result<[bool; N]> {
    let end = Instant::now() + timeout;
    let mut polled = fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = libc::timespec {
            tv_sec: left.as_secs().min(1 << 30) as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: the pointers are to N entries and to a time that live over the call, and no
        // signal mask is passed.
        let n = unsafe {
            libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, &raw const left, std::ptr::null())
        };
        if n >= 0 {
            return Ok(polled.map(|p| p.revents != 0));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_taken_once() {
        let event = Event::new().unwrap();
        assert!(!event.wait(Duration::ZERO).unwrap());
        event.signal().unwrap();
        event.signal().unwrap();
        assert!(event.wait(Duration::from_secs(60)).unwrap());
        assert_eq!(event.take().unwrap(), 0);
        let other = Event::from(event.as_fd().try_clone_to_owned().unwrap());
        other.signal().unwrap();
        assert_eq!(event.take().unwrap(), 1);
    }
}
