//! Messages between a service and its worker: length in four bytes, kind, body.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Most bytes of a message: the longest policy or input, with room.
const MAX: usize = 256 * 1024;

/// Question: the id of a policy, a new line, and the input in JSON. Is it allowed?
pub const EVALUATE: u8 = b'E';
/// Question: a policy's text, to be kept.
pub const LOAD: u8 = b'L';
/// Answer: ready for the first question; the policy was loaded.
pub const READY: u8 = b'R';
/// Answer: allowed.
pub const ALLOW: u8 = b'a';
/// Answer: not allowed.
pub const DENY: u8 = b'd';
/// Answer: failed, and why.
pub const FAILED: u8 = b'f';
/// Answer: it took too long.
pub const TIME: u8 = b't';
/// Answer: the policy is not loaded.
pub const UNKNOWN: u8 = b'u';
/// Answer: the text is no policy, and why.
pub const BAD: u8 = b'b';
/// Added to an answer: the worker ends after it.
pub const LAST: u8 = 0x80;

/// One end of the socket.
pub struct Channel {
    socket: UnixStream,
    out: Vec<u8>,
    /// What was read last: its kind and body.
    message: Vec<u8>,
}

impl Channel {
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, out: Vec::new(), message: Vec::new() }
    }

    /// Sends a message of these parts.
    pub fn send(&mut self, kind: u8, parts: &[&str]) -> io::Result<()> {
        let length = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
        self.out.clear();
        self.out.extend(u32::try_from(length).map_err(io::Error::other)?.to_be_bytes());
        self.out.push(kind);
        parts.iter().for_each(|part| self.out.extend(part.as_bytes()));
        self.socket.write_all(&self.out)
    }

    /// The next message; nothing where the other end has left between two.
    pub fn receive(&mut self) -> io::Result<Option<(u8, &str)>> {
        // A message is the only one on its way: questions and answers take turns.
        self.message.resize(4096, 0);
        let (mut have, mut want) = (0, 4);
        while have < want {
            match self.socket.read(&mut self.message[have..])? {
                0 if have == 0 => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => have += more,
            }
            if want == 4 && have >= 4 {
                let length = u32::from_be_bytes([self.message[0], self.message[1], self.message[2], self.message[3]]) as usize;
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
        let body = std::str::from_utf8(&self.message[5..want]).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Some((self.message[4], body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_or_not_at_all() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(ours);
        let mut other = Channel::new(theirs.try_clone().unwrap());
        let long = "x".repeat(100_000);
        let sender = std::thread::spawn(move || channel.send(LOAD, &["policy", "\n", &long]).map(|()| channel).unwrap());
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
            assert_eq!(channel.receive().unwrap_err().kind(), io::ErrorKind::InvalidData, "{bad:?}");
        }
        theirs.write_all(&[0, 0, 0, 9, b'f']).unwrap();
        drop((theirs, other));
        assert_eq!(channel.receive().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(channel.receive().unwrap(), None);
    }
}
