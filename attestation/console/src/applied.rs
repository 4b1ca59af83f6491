//! Which content of a file is in force. A running program reports it to the commands on its machine,
//! so that a command that changes the file can say whether the change took effect.
//!
//! The program listens on a socket in Linux's abstract namespace, one for each file. The socket's
//! name is that of the program, the SHA-256 of the file's path and, for each further program that uses
//! the file, a number. The program sends the SHA-256 of the content in force to each connection. A
//! command asks all of them. Any user can take a name first: a command names the users that it trusts,
//! and confirms nothing if another user has one of the names.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use shef_proto::crypto::sha256;

/// Hexadecimal digits of a digest.
const DIGEST: usize = 64;
/// Programs of a kind that use one file.
const PROGRAMS: usize = 16;
/// Commands that are answered at once.
const MOST: usize = 64;
/// How often a program answers, and a command asks.
pub const LOOK: Duration = Duration::from_millis(200);
/// How long a command waits for a program, which checks its files every second.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// SHA-256 of a file's content, in hexadecimal.
#[must_use]
pub fn digest(content: &[u8]) -> String {
    hex::encode(sha256(content))
}

/// Name of the socket of the first program that uses this file, by whatever path.
fn name(program: &str, file: &Path) -> io::Result<String> {
    let whole = std::fs::canonicalize(file).or_else(|_| {
        let name = file.file_name().unwrap_or_default();
        std::fs::canonicalize(shef_files::folder(file)).map(|folder| folder.join(name))
    })?;
    Ok(format!("shef-{program}/{}", digest(whole.as_os_str().as_encoded_bytes())))
}

/// Names of the sockets of all programs that use a file, from that of the first.
fn names(first: &str) -> impl Iterator<Item = String> {
    let further = (1..PROGRAMS).map(move |number| format!("{first}/{number}"));
    std::iter::once(first.to_owned()).chain(further)
}

/// Listens under the first name that is free.
fn listen(first: &str) -> io::Result<UnixListener> {
    let mut taken = io::Error::from(io::ErrorKind::AddrInUse);
    for name in names(first) {
        match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// A running program's answers.
pub struct Reporter {
    program: &'static str,
    /// By the first name; `None` if other programs have all names.
    sockets: BTreeMap<String, Option<UnixListener>>,
}

impl Reporter {
    /// Of a kind of program, `agent` or `service`.
    #[must_use]
    pub fn new(program: &'static str) -> Self {
        Self { program, sockets: BTreeMap::new() }
    }

    /// Answers the commands that asked since the last call; to be called every [`LOOK`]. Each file
    /// has the [`digest`] of its content in force. Returns the files about which commands cannot ask,
    /// once, with the reason.
    pub fn answer(&mut self, files: &[(PathBuf, String)]) -> Vec<(PathBuf, io::Error)> {
        let (mut sockets, mut failed) = (BTreeMap::new(), Vec::new());
        for (file, digest) in files {
            let Ok(name) = name(self.program, file) else { continue };
            if sockets.contains_key(&name) {
                continue;
            }
            let listener = match self.sockets.remove(&name) {
                Some(Some(listener)) => Some(listener),
                before => match listen(&name) {
                    Ok(listener) => Some(listener),
                    Err(error) => {
                        if before.is_none() {
                            failed.push((file.clone(), error));
                        }
                        None
                    }
                },
            };
            for _ in 0..MOST {
                let Some(Ok((mut stream, _))) = listener.as_ref().map(UnixListener::accept) else {
                    break;
                };
                // A socket buffer always has room for a digest.
                let _ =
                    stream.set_nonblocking(true).and_then(|()| stream.write_all(digest.as_bytes()));
            }
            sockets.insert(name, listener);
        }
        self.sockets = sockets;
        failed
    }
}

/// The digest that a program sends, if it runs as a user that the command trusts; `None` if no
/// program has this socket.
fn ask(program: &str, socket: &str, believed: &[u32]) -> Result<Option<String>, String> {
    let connect = || {
        let name = socket;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = rustix::net::socket_with(family, kind, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let user = rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw();
        Ok((stream, user))
    };
    let silent = || format!("the running {program} does not answer");
    let (mut stream, user) = match connect() {
        Ok(connected) => connected,
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::CONNREFUSED) => return Ok(None),
            Some(Errno::AGAIN) => return Err(silent()),
            _ => return Err(format!("the running {program} cannot be asked: {error}")),
        },
    };
    if !believed.contains(&user) {
        return Err(format!("a program of user {user} answers in place of the {program}"));
    }
    let mut digest = [0; DIGEST];
    match stream.read_exact(&mut digest) {
        Ok(()) => Ok(Some(String::from_utf8_lossy(&digest).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(silent()),
        Err(error) => {
            Err(format!("the running {program} does not report which list it applies: {error}"))
        }
    }
}

/// Waits until all running programs that use a file apply it as it is now: `wanted` reads it, and
/// returns its [`digest`]. They must run as one of the users `believed`. Returns their number, at
/// least 1.
///
/// # Errors
/// Why no program has confirmed it, or not all of them.
pub fn confirm(
    program: &str,
    file: &Path,
    believed: &[u32],
    wanted: impl Fn() -> Result<String, String>,
) -> Result<usize, String> {
    let unused = |why: &str| format!("no running {program} uses this list{why}");
    let first = name(program, file).map_err(|error| unused(&format!(" ({error})")))?;
    let end = Instant::now() + PATIENCE;
    loop {
        // Another command may have changed the file since.
        let wanted = wanted()?;
        let (mut running, mut late) = (0, 0);
        for socket in names(&first) {
            if let Some(digest) = ask(program, &socket, believed)? {
                running += 1;
                late += usize::from(digest != wanted);
            }
        }
        if running == 0 {
            return Err(unused(""));
        }
        if late == 0 {
            return Ok(running);
        }
        if Instant::now() > end {
            let seconds = PATIENCE.as_secs();
            return Err(match running {
                1 => format!(
                    "the running {program} has not applied the list within {seconds} s: see its log"
                ),
                _ => format!(
                    "{late} of {running} running programs of kind {program} have not applied the list within {seconds} s: see their logs"
                ),
            });
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_waits_until_its_file_is_in_force() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (file, link) = (at("list"), at("link"));
        std::fs::write(&file, "new").unwrap();
        std::os::unix::fs::symlink("list", &link).unwrap();
        let us = rustix::process::geteuid().as_raw();
        let ask = |believed: &[u32]| confirm("test", &file, believed, || Ok(digest(b"new")));
        let error = ask(&[us]).unwrap_err();
        assert!(error.starts_with("no running test uses this list"), "{error}");

        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let program = std::thread::spawn(move || {
            let mut reporter = Reporter::new("test");
            // The old content first. The same file under two paths has one socket.
            for content in std::iter::repeat_n("old", 10).chain(std::iter::repeat("new")) {
                let now = digest(content.as_bytes());
                let failed = reporter.answer(&[(link.clone(), now.clone()), (file_of(&link), now)]);
                assert!(failed.is_empty(), "{failed:?}");
                if !matches!(
                    stopped.recv_timeout(Duration::from_millis(20)),
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                ) {
                    return;
                }
            }
        });
        while ask(&[us]).is_err_and(|error| error.starts_with("no running")) {}
        assert_eq!(ask(&[us]).unwrap(), 1);
        let error = ask(&[us + 1]).unwrap_err();
        assert!(error.contains(&format!("user {us} answers in place of the test")), "{error}");
        // A second program, which applies another content for a while, and then for good.
        let second = |late| {
            let (done, ended) = std::sync::mpsc::channel::<()>();
            let begun = Instant::now();
            let mut second = Reporter::new("test");
            let list = at("list");
            let mut answer = move || {
                let content = if begun.elapsed() < late { "other" } else { "new" };
                second.answer(&[(list.clone(), digest(content.as_bytes()))])
            };
            assert!(answer().is_empty());
            std::thread::spawn(move || {
                while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    answer();
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            done
        };
        let late = Duration::from_secs(1);
        let (begun, done) = (Instant::now(), second(late));
        assert_eq!(ask(&[us]).unwrap(), 2);
        assert!(begun.elapsed() >= late, "confirmed while one program applies another content");
        drop(done);
        while ask(&[us]).unwrap() == 2 {}
        let done = second(Duration::MAX);
        let error = ask(&[us]).unwrap_err();
        assert!(error.starts_with("1 of 2 running") && error.contains("within 5 s"), "{error}");
        drop(stop);
        program.join().unwrap();
        let error = ask(&[us]).unwrap_err();
        assert!(error.contains("has not applied the list within"), "{error}");
        drop(done);
    }

    /// A program that commands cannot ask reports that, once.
    #[test]
    fn a_program_without_a_free_name_reports_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = [(dir.path().join("list"), digest(b""))];
        let mut all: Vec<Reporter> = (0..PROGRAMS).map(|_| Reporter::new("test")).collect();
        for reporter in &mut all {
            assert!(reporter.answer(&file).is_empty());
        }
        let mut more = Reporter::new("test");
        assert_eq!(more.answer(&file).len() + more.answer(&file).len(), 1);
        all.pop();
        assert!(more.answer(&file).is_empty());
    }

    fn file_of(link: &Path) -> PathBuf {
        link.with_file_name("list")
    }
}
