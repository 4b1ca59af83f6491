//! A service in a separate process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::accounts::Book;

/// A running `shef-verifierd`, whose log is read; dropping it kills it.
pub struct Process {
    child: Child,
    unread: Arc<AtomicBool>,
}

impl Process {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(program: &Path, config: &Path, book: &Arc<Book>) -> Result<Self> {
        // A write beyond the limit of a file's size returns an error, as on a full disk, instead of
        // ending the program.
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$0\" run --config \"$1\""])
            .args([program, config])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = shef_process::ends_with_thread(&mut command).spawn()?;
        let log = BufReader::new(child.stderr.take().ok_or("no log")?);
        let unread = Arc::new(AtomicBool::new(false));
        let process = Self { child, unread: Arc::clone(&unread) };
        let (book, (listens, listening)) = (Arc::clone(book), mpsc::channel());
        std::thread::spawn(move || {
            let mut last = String::new();
            for line in log.lines().map_while(std::result::Result::ok) {
                if unread.load(Ordering::Relaxed) {
                    return;
                }
                book.lock().line(&line);
                if line.contains("\"listening\"") {
                    let _ = listens.send(Ok(()));
                }
                last = line;
            }
            let _ = listens.send(Err(last));
        });
        match listening.recv_timeout(Duration::from_secs(60)) {
            Ok(Ok(())) => Ok(process),
            Ok(Err(line)) => Err(format!("the service ended: {line}").into()),
            Err(_) => Err("the service does not listen after 60 s".into()),
        }
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Closes its log with the next line.
    pub fn close_log(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    /// Limits the size of its files; `unlimited` lifts the limit.
    ///
    /// # Errors
    /// The limit cannot be set.
    pub fn limit_files(&self, bytes: &str) -> Result<()> {
        let (pid, limit) = (self.child.id().to_string(), format!("--fsize={bytes}:"));
        let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status()?;
        if set.success() { Ok(()) } else { Err(format!("prlimit {limit}: {set}").into()) }
    }

    /// Stops it in order, and waits for its end.
    pub fn end(&mut self) {
        self.signal(Signal::TERM);
        let _ = self.child.wait();
    }

    /// Kills it, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
