//! Messages between a service and its worker, over one pipe per direction: length in four bytes,
//! kind, body.

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

/// Maximum size of a message: the longest policy or input, with a margin.
const MAX: usize = 256 * 1024;

/// Request: evaluate. The id of a policy, a newline, and the input in JSON.
pub const EVALUATE: u8 = b'E';
/// Request: load a policy's text.
pub const LOAD: u8 = b'L';
/// Answer: ready for the first request, or the policy was loaded.
pub const READY: u8 = b'R';
/// Answer: allowed.
pub const ALLOW: u8 = b'a';
/// Answer: not allowed.
pub const DENY: u8 = b'd';
/// Answer: evaluation failed, with the reason.
pub const FAILED: u8 = b'f';
/// Answer: evaluation timed out.
pub const TIME: u8 = b't';
/// Answer: the policy is not loaded.
pub const UNKNOWN: u8 = b'u';
/// Answer: the text is not a policy, with the reason.
pub const BAD: u8 = b'b';
/// Added to an answer: the worker ends after it.
pub const LAST: u8 = 0x80;

/// One end of the two pipes. A round trip costs half as much as over a socket.
pub struct Channel {
    input: File,
    output: File,
    /// Maximum time for a message.
    patience: Option<Duration>,
    out: Vec<u8>,
    /// The last message read: kind and body.
    message: Vec<u8>,
}

impl Channel {
    /// An end without a time limit.
    pub fn new(input: File, output: File) -> Self {
        Self { input, output, patience: None, out: Vec::new(), message: Vec::new() }
    }

    /// An end with this time limit for receiving and for sending a message.
    pub fn with_patience(input: File, output: File, patience: Duration) -> io::Result<Self> {
        ioctl_fionbio(&output, true)?;
        Ok(Self { patience: Some(patience), ..Self::new(input, output) })
    }

    fn deadline(&self) -> Option<Instant> {
        self.patience.map(|patience| Instant::now() + patience)
    }

    /// Sends a message consisting of these parts.
    pub fn send(&mut self, kind: u8, parts: &[&str]) -> io::Result<()> {
        let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
        self.out.clear();
        self.out.extend(u32::try_from(length).map_err(io::Error::other)?.to_be_bytes());
        self.out.push(kind);
        parts.iter().for_each(|part| self.out.extend(part.as_bytes()));
        let deadline = self.deadline();
        let mut rest = &self.out[..];
        while !rest.is_empty() {
            match self.output.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.output, PollFlags::OUT, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next message; `None` if the other end closed between messages.
    pub fn receive(&mut self) -> io::Result<Option<(u8, &str)>> {
        // At most one message is in flight: requests and answers alternate.
        self.message.resize(4096, 0);
        let (mut have, mut want) = (0, 4);
        let deadline = self.deadline();
        while have < want {
            wait(&self.input, PollFlags::IN, deadline)?;
            match self.input.read(&mut self.message[have..])? {
                0 if have == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => have += more,
            }
            if want == 4 && have >= 4 {
                let length = u32::from_be_bytes([
                    self.message[0],
                    self.message[1],
                    self.message[2],
                    self.message[3],
                ]) as usize;
                if !(1..=MAX).contains(&length) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                want = 4 + length;
                self.message.resize(want.max(have), 0);
            }
        }
        if have > want {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let body =
            std::str::from_utf8(&self.message[5..want]).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Some((self.message[4], body)))
    }
}

/// Waits until the pipe is ready for the next call, or until the deadline. Without a deadline it
/// returns at once, since that call blocks anyway.
fn wait(pipe: &File, ready: PollFlags, deadline: Option<Instant>) -> io::Result<()> {
    let Some(deadline) = deadline else { return Ok(()) };
    loop {
        let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()))
            .map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(pipe, ready)], Some(&left)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two connected channels, and the writing end of the first one's input.
    fn pair() -> (Channel, Channel, File) {
        let file = |fd: std::os::fd::OwnedFd| File::from(fd);
        let (questions, asks) = std::io::pipe().unwrap();
        let (answers, answer) = std::io::pipe().unwrap();
        let answer = file(answer.into());
        let ours = Channel::with_patience(
            file(answers.into()),
            file(asks.into()),
            Duration::from_millis(200),
        )
        .unwrap();
        (ours, Channel::new(file(questions.into()), answer.try_clone().unwrap()), answer)
    }

    #[test]
    fn messages_come_whole_or_not_at_all() {
        let (mut channel, mut other, mut theirs) = pair();
        let long = "x".repeat(100_000);
        let sender = std::thread::spawn(move || {
            channel.send(LOAD, &["policy", "\n", &long]).map(|()| channel).unwrap()
        });
        let (kind, body) = other.receive().unwrap().unwrap();
        assert_eq!((kind, &body[..9], body.len()), (LOAD, "policy\nxx", 100_007));
        let mut channel = sender.join().unwrap();
        // In pieces.
        for piece in [&[0, 0][..], &[0, 3, b'f'], b"no"] {
            theirs.write_all(piece).unwrap();
        }
        assert_eq!(channel.receive().unwrap(), Some((FAILED, "no")));
        for bad in [&[0, 0, 0, 0][..], &[0, 4, 0, 1, b'f'], &[0xff; 5], &[0, 0, 0, 2, b'f', 0xff]] {
            theirs.write_all(bad).unwrap();
            assert_eq!(
                channel.receive().unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{bad:?}"
            );
        }
        theirs.write_all(&[0, 0, 0, 9, b'f']).unwrap();
        drop((theirs, other));
        assert_eq!(channel.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(channel.receive().unwrap(), None);
    }

    #[test]
    fn who_neither_reads_nor_answers_is_not_waited_for() {
        let (mut channel, _other, mut theirs) = pair();
        let long = "x".repeat(200_000);
        assert_eq!(
            channel.send(LOAD, &[&long]).unwrap_err().kind(),
            io::ErrorKind::TimedOut,
            "more than the pipe holds"
        );
        theirs.write_all(&[0, 0]).unwrap();
        assert_eq!(
            channel.receive().unwrap_err().kind(),
            io::ErrorKind::TimedOut,
            "half a message"
        );
    }
}
