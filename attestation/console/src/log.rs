//! The log of a service: lines on stderr that hold up no request.
//!
//! A separate thread writes the lines, which wait in a bounded queue. A line is lost and counted if
//! the queue is full or the line cannot be written: a reader that stops or goes away, or a full
//! disk, takes nothing from the service. [`Log::settled`] is for callers that need to know.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Maximum bytes of lines that wait.
const WAITING: usize = 4 << 20;
/// What a call of [`Log::settled`] counts for in the queue.
const MARK: usize = 256;
/// A log is stuck if lines wait and none is written within this time.
const STUCK: Duration = Duration::from_secs(2);

static INSTALLED: OnceLock<Log> = OnceLock::new();

type Settled = Box<dyn FnOnce(u64) + Send>;

enum Entry {
    Line(Vec<u8>),
    Mark(Settled),
}

/// The log of this process. Each write is one line.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    queue: Sender<Entry>,
    /// Bytes in the queue.
    waiting: AtomicUsize,
    lost: AtomicU64,
    failing: AtomicBool,
    start: Instant,
    /// Milliseconds from `start` to the last end of a write.
    written: AtomicU64,
}

impl Log {
    /// The log on stderr; the first call starts its thread.
    pub fn install() -> Self {
        INSTALLED.get_or_init(|| Self::to(io::stderr())).clone()
    }

    /// The log of this process, if it has one.
    pub fn installed() -> Option<Self> {
        INSTALLED.get().cloned()
    }

    fn to(out: impl Write + Send + 'static) -> Self {
        let (queue, entries) = mpsc::channel();
        let log = Self(Arc::new(Shared {
            queue,
            waiting: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            start: Instant::now(),
            written: AtomicU64::new(0),
        }));
        let writer = log.clone();
        std::thread::spawn(move || writer.run(&entries, out));
        log
    }

    fn run(&self, entries: &Receiver<Entry>, mut out: impl Write) {
        let shared = &self.0;
        for entry in entries {
            let bytes = match entry {
                Entry::Line(line) => {
                    let failed = out.write_all(&line).and_then(|()| out.flush()).is_err();
                    shared.failing.store(failed, Ordering::Release);
                    shared.lost.fetch_add(failed.into(), Ordering::AcqRel);
                    line.len()
                }
                Entry::Mark(settled) => {
                    settled(shared.lost.load(Ordering::Acquire));
                    MARK
                }
            };
            shared.written.store(shared.elapsed(), Ordering::Release);
            shared.waiting.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Whether there is room for this many bytes; takes it.
    fn takes(&self, bytes: usize) -> bool {
        let room = |waiting: usize| Some(waiting + bytes).filter(|all| *all <= WAITING);
        let taken = self.0.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, room);
        // A queue that was empty is not stuck.
        if taken == Ok(0) {
            self.0.written.store(self.0.elapsed(), Ordering::Release);
        }
        taken.is_ok()
    }

    /// Lines that were lost.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Acquire)
    }

    /// Whether the last line was written, and none waits for long.
    pub fn works(&self) -> bool {
        let shared = &self.0;
        let quiet = shared.elapsed().saturating_sub(shared.written.load(Ordering::Acquire));
        let stuck = shared.waiting.load(Ordering::Acquire) > 0 && quiet > STUCK.as_millis() as u64;
        !shared.failing.load(Ordering::Acquire) && !stuck
    }

    /// Calls `then` with the number of [`Self::lost`] lines, once every line of before was written
    /// or lost; with `u64::MAX` if there is no room to wait. While the log is stuck, it does not
    /// call.
    pub fn settled(&self, then: impl FnOnce(u64) + Send + 'static) {
        if !self.takes(MARK) {
            return then(u64::MAX);
        }
        let _ = self.0.queue.send(Entry::Mark(Box::new(then)));
    }

    /// Waits until every line so far was written or lost, but not longer than `limit`.
    pub fn flush(&self, limit: Duration) {
        let end = Instant::now() + limit;
        loop {
            let (done, wait) = mpsc::channel();
            self.settled(move |lost| {
                let _ = done.send(lost);
            });
            let left = end.saturating_duration_since(Instant::now());
            match wait.recv_timeout(left) {
                // No room to wait in the queue.
                Ok(u64::MAX) if !left.is_zero() => std::thread::sleep(Duration::from_millis(10)),
                _ => return,
            }
        }
    }
}

impl Shared {
    fn elapsed(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.takes(line.len()) {
            // The thread ends with the process.
            let _ = self.0.queue.send(Entry::Line(line.to_vec()));
        } else {
            self.0.lost.fetch_add(1, Ordering::AcqRel);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// Fails, or waits until it is opened.
    #[derive(Clone, Default)]
    struct Out {
        open: Arc<(Mutex<bool>, Condvar)>,
        fails: Arc<AtomicBool>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Out {
        fn open(&self) {
            *self.open.0.lock().unwrap() = true;
            self.open.1.notify_all();
        }
    }

    impl Write for Out {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let open = self.open.0.lock().unwrap();
            drop(self.open.1.wait_while(open, |open| !*open).unwrap());
            if self.fails.load(Ordering::Acquire) {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe));
            }
            self.written.lock().unwrap().extend(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lost(log: &Log) -> u64 {
        let (done, wait) = mpsc::channel();
        log.settled(move |lost| done.send(lost).unwrap());
        wait.recv().unwrap()
    }

    #[test]
    fn a_stuck_log_loses_lines_and_holds_nobody_up() {
        let out = Out::default();
        let mut log = Log::to(out.clone());
        let line = [b'x'; 1 << 16];
        for _ in 0..2 * WAITING / line.len() {
            log.write_all(&line).unwrap();
        }
        assert_eq!(log.lost(), (WAITING / line.len()) as u64);
        let (done, wait) = mpsc::channel();
        log.settled(move |lost| done.send(lost).unwrap());
        assert_eq!(wait.try_recv(), Ok(u64::MAX), "no room");
        std::thread::sleep(STUCK + Duration::from_millis(100));
        assert!(!log.works());
        out.open();
        log.flush(Duration::from_secs(60));
        assert!(log.works());
        assert_eq!(out.written.lock().unwrap().len(), WAITING);
        log.write_all(b"on\n").unwrap();
        assert_eq!(lost(&log), (WAITING / line.len()) as u64);
    }

    #[test]
    fn a_log_without_a_reader_counts_what_is_lost() {
        let out = Out::default();
        out.open();
        let mut log = Log::to(out.clone());
        log.write_all(b"one\n").unwrap();
        assert_eq!((lost(&log), log.works()), (0, true));
        out.fails.store(true, Ordering::Release);
        log.write_all(b"two\n").unwrap();
        assert_eq!((lost(&log), log.works()), (1, false));
        out.fails.store(false, Ordering::Release);
        log.write_all(b"three\n").unwrap();
        assert_eq!((lost(&log), log.works()), (1, true));
        assert_eq!(*out.written.lock().unwrap(), b"one\nthree\n");
    }
}
