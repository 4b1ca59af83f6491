//! The log of a service: lines on stderr that hold up no request.
//!
//! A separate thread writes the lines, which wait in a bounded queue. A line is lost and counted if
//! the queue is full or the line cannot be written: a reader that stops or goes away, or a full
//! disk, takes nothing from the service. [`Log::settled`] is for callers that need to know.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

/// Maximum bytes of lines that wait, of each kind.
const WAITING: usize = 4 << 20;
/// What a call of [`Log::settled`] counts for in the queue.
const MARK: usize = 256;
/// A log is late if a line waits, or has just waited, longer than this.
const LATE: Duration = Duration::from_secs(2);

static INSTALLED: OnceLock<Log> = OnceLock::new();

type Settled = Box<dyn FnOnce(u64) + Send>;

enum Entry {
    Line(Vec<u8>),
    Mark(Settled),
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Mark(_) => MARK,
        }
    }
}

/// The log of this process. Each write is one line.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
    /// Whether lines of this value go first.
    first: bool,
}

/// Lines of one kind, each with the time at which it came.
#[derive(Default)]
struct Queue {
    entries: VecDeque<(Instant, Entry)>,
    bytes: usize,
}

struct Shared {
    /// Lines that go first, and all others.
    queues: Mutex<[Queue; 2]>,
    came: Condvar,
    lost: AtomicU64,
    failing: AtomicBool,
    /// When the entry came that is being written.
    writing: Mutex<Option<Instant>>,
    /// How long the last line waited, in milliseconds.
    waited: AtomicU64,
}

/// The value, also if a thread panicked under the lock: every change is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// The log on stderr; the first call starts its thread. Where stderr leads nowhere, every line
    /// is lost.
    pub fn install() -> Self {
        INSTALLED.get_or_init(|| Self::to(io::stderr(), leads_nowhere())).clone()
    }

    /// The log of this process, if it has one.
    pub fn installed() -> Option<Self> {
        INSTALLED.get().cloned()
    }

    /// The same log, whose lines go before those that wait.
    #[must_use]
    pub fn first(&self) -> Self {
        Self { first: true, ..self.clone() }
    }

    fn to(out: impl Write + Send + 'static, nowhere: bool) -> Self {
        let shared = Arc::new(Shared {
            queues: Mutex::default(),
            came: Condvar::new(),
            lost: AtomicU64::new(0),
            failing: AtomicBool::new(nowhere),
            writing: Mutex::new(None),
            waited: AtomicU64::new(0),
        });
        let log = Self { shared: Arc::clone(&shared), first: false };
        std::thread::spawn(move || shared.run(out, nowhere));
        log
    }

    /// Adds an entry if there is room.
    fn put(&self, entry: Entry) -> Result<(), Entry> {
        let mut queues = lock(&self.shared.queues);
        let queue = &mut queues[usize::from(!self.first)];
        if queue.bytes + entry.bytes() > WAITING {
            return Err(entry);
        }
        queue.bytes += entry.bytes();
        queue.entries.push_back((Instant::now(), entry));
        self.shared.came.notify_one();
        Ok(())
    }

    /// Lines that were lost.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Acquire)
    }

    /// Whether the last line was written, and in time.
    pub fn works(&self) -> bool {
        let shared = &self.shared;
        let late = |since: Option<Instant>| since.is_some_and(|since| since.elapsed() > LATE);
        let waited = Duration::from_millis(shared.waited.load(Ordering::Acquire)) > LATE;
        let oldest = lock(&shared.queues).iter().any(|queue| late(queue.oldest()));
        !shared.failing.load(Ordering::Acquire)
            && !waited
            && !oldest
            && !late(*lock(&shared.writing))
    }

    /// Calls `then` with the number of [`Self::lost`] lines, once every earlier line of this value's
    /// kind was written or lost; with `u64::MAX` if there is no room to wait. While the log is
    /// stuck, it does not call.
    pub fn settled(&self, then: impl FnOnce(u64) + Send + 'static) {
        if let Err(Entry::Mark(then)) = self.put(Entry::Mark(Box::new(then))) {
            then(u64::MAX);
        }
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

/// Whether stderr is `/dev/null`, as it also is in a process that was started without one.
fn leads_nowhere() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of = |path: &str| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    of("/proc/self/fd/2").is_some_and(|err| Some(err) == of("/dev/null"))
}

impl Queue {
    fn oldest(&self) -> Option<Instant> {
        self.entries.front().map(|(came, _)| *came)
    }

    fn take(&mut self) -> Option<(Instant, Entry)> {
        let (came, entry) = self.entries.pop_front()?;
        self.bytes -= entry.bytes();
        Some((came, entry))
    }
}

impl Shared {
    /// The next entry; waits for it.
    fn next(&self) -> (Instant, Entry) {
        let mut queues = lock(&self.queues);
        loop {
            if let Some(next) = queues.iter_mut().find_map(Queue::take) {
                *lock(&self.writing) = Some(next.0);
                return next;
            }
            queues = self.came.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes what comes, until the process ends.
    fn run(&self, mut out: impl Write, nowhere: bool) -> ! {
        loop {
            let (came, entry) = self.next();
            match entry {
                Entry::Line(line) => {
                    let written = out.write_all(&line).and_then(|()| out.flush());
                    let failed = nowhere || written.is_err();
                    self.failing.store(failed, Ordering::Release);
                    self.lost.fetch_add(failed.into(), Ordering::AcqRel);
                    self.waited.store(came.elapsed().as_millis() as u64, Ordering::Release);
                }
                Entry::Mark(settled) => settled(self.lost.load(Ordering::Acquire)),
            }
            *lock(&self.writing) = None;
        }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.put(Entry::Line(line.to_vec())).is_err() {
            self.shared.lost.fetch_add(1, Ordering::AcqRel);
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
        let mut log = Log::to(out.clone(), false);
        let line = [b'x'; 1 << 16];
        for _ in 0..2 * WAITING / line.len() {
            log.write_all(&line).unwrap();
        }
        // The one that is being written is not in the queue, if the thread took it in time.
        let gone = log.lost();
        let all = WAITING / line.len();
        assert!([all - 1, all].contains(&(gone as usize)), "{gone}");
        let (done, wait) = mpsc::channel();
        log.settled(move |lost| done.send(lost).unwrap());
        assert_eq!(wait.try_recv(), Ok(u64::MAX), "no room");
        std::thread::sleep(LATE + Duration::from_millis(100));
        assert!(!log.works());
        // A line that goes first has room, and is next.
        log.first().write_all(b"first\n").unwrap();
        out.open();
        log.flush(Duration::from_secs(60));
        let written = out.written.lock().unwrap().clone();
        assert_eq!(written.len(), (2 * all - gone as usize) * line.len() + 6);
        assert_eq!(written[line.len()..][..6], *b"first\n");
        // A line that waited for long does not count as written in time; the next one does.
        assert!(!log.works());
        log.write_all(b"on\n").unwrap();
        assert_eq!((lost(&log), log.works()), (gone, true));
    }

    #[test]
    fn a_log_that_leads_nowhere_loses_every_line() {
        let out = Out::default();
        out.open();
        let mut log = Log::to(out, true);
        assert!(!log.works());
        log.write_all(b"one\n").unwrap();
        assert_eq!((lost(&log), log.works()), (1, false));
    }

    #[test]
    fn a_log_without_a_reader_counts_what_is_lost() {
        let out = Out::default();
        out.open();
        let mut log = Log::to(out.clone(), false);
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
