//! The control socket beside the socket of a simulated card: its report of the accelerator's progress.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use shef_device::progress::Progress;

/// Time limit for a report.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of a report.
const MAX_REPORT: u64 = 1 << 20;

/// The answer of the control socket.
#[derive(Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
enum Answer {
    Progress(Progress),
}

/// A control socket, which a card need not have.
pub(crate) struct ControlSocket {
    path: PathBuf,
    stream: Option<BufReader<UnixStream>>,
}

impl ControlSocket {
    /// The control socket beside a card's socket.
    pub(crate) fn beside(socket: &Path) -> Self {
        let path = [socket.as_os_str(), ".control".as_ref()].into_iter().collect::<OsString>();
        Self { path: path.into(), stream: None }
    }

    /// The progress of the card's accelerator; `None` if there is no socket or no report.
    pub(crate) fn progress(&mut self) -> Option<Progress> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = UnixStream::connect(&self.path).ok()?;
                stream.set_read_timeout(Some(TIMEOUT)).ok()?;
                stream.set_write_timeout(Some(TIMEOUT)).ok()?;
                BufReader::new(stream)
            }
        };
        stream.get_mut().write_all(b"{\"do\":\"progress\"}\n").ok()?;
        let mut line = Vec::new();
        (&mut stream).take(MAX_REPORT).read_until(b'\n', &mut line).ok()?;
        let Answer::Progress(progress) = serde_json::from_slice(&line).ok()?;
        self.stream = Some(stream);
        Some(progress)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_report_is_what_the_socket_answers_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let card = dir.path().join("card");
        assert_eq!(ControlSocket::beside(&card).progress(), None, "no socket");
        let listener = UnixListener::bind(dir.path().join("card.control")).unwrap();
        let answers: [(&[u8], bool); 5] = [
            (b"{\"is\":\"progress\",\"cycle\":7,\"ports\":[]}\n", true),
            (b"{\"is\":\"error\",\"message\":\"no ports\"}\n", false),
            (b"{\"is\":\"done\"}\n", false),
            (b"\xff\n", false),
            (b"", false),
        ];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (answer, reused) in answers {
                    let (mut stream, _) = listener.accept().unwrap();
                    for _ in 0..=u8::from(reused) {
                        let mut request = String::new();
                        BufReader::new(&stream).read_line(&mut request).unwrap();
                        assert_eq!(request, "{\"do\":\"progress\"}\n");
                        stream.write_all(answer).unwrap();
                    }
                }
            });
            for (answer, valid) in answers {
                let mut socket = ControlSocket::beside(&card);
                for _ in 0..=u8::from(valid) {
                    let cycle = socket.progress().map(|progress| progress.cycle);
                    assert_eq!(cycle, valid.then_some(7), "{}", String::from_utf8_lossy(answer));
                }
            }
        });
    }
}
