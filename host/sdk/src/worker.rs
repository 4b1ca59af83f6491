//! A session on a thread of its own, for programs that must not block.
//!
//! Everything that a session does ends in calls of the device, which block. So it lives on one
//! thread, gets its work through a channel, and answers through futures that need nothing but
//! `std`: they run under every executor, and an adapter for one would have nothing to do.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};

use crate::{Cancel, Closed, Host, Keyed, SdkError, Session};

/// Something to be done with a session.
type Work = Box<dyn for<'h> FnOnce(&mut Session<'h, Keyed>) + Send>;

/// What the thread does with its session.
enum Task {
    Run(Work),
    Close(Promise<End>),
}

/// A keyed session on a thread of its own.
///
/// Work is done in the order in which it was given. Dropping the worker lets the thread finish what
/// it was given and then drop the session, as dropping a [`Session`] does; [`Worker::close`] ends
/// it in order.
///
/// ```
/// # use shef::{Connected, Expect, Host, SdkError, Session, SystemEntropy, Verifier, Worker, unwatched};
/// # use shef_proto::load::first_epochs;
/// # async fn doc(uri: shef::Uri, verifier: Verifier, expect: Expect, now: i64, data: Vec<u8>) -> Result<(), SdkError> {
/// let worker = Worker::start(
///     move || shef::open(&uri),
///     move |host, _| {
///         let mut entropy = SystemEntropy::new()?;
///         let session = Session::<Connected>::connect(host)?.attest(&verifier, &expect, now, &mut entropy)?;
///         session.key("tenant", &first_epochs(expect.config(), 1), &mut entropy)
///     },
/// )
/// .await?;
/// let len = data.len() as u64;
/// worker
///     .run(move |session, _| session.upload_from(&session.input("query")?, &data[..], len, &mut unwatched))
///     .await?;
/// worker.close().await?;
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    tasks: mpsc::Sender<Task>,
}

/// How a session on a thread ended.
pub struct End {
    /// The Shield's last words.
    pub closed: Closed,
    /// The close record, not verified, or why there is none. A missing record proves nothing.
    pub record: Result<Vec<u8>, SdkError>,
}

impl Worker {
    /// Starts a thread on which `open` opens the device and `key` makes a session with it. They
    /// move to that thread; the device and the session never leave it. Where the future is dropped,
    /// the thread ends after what it is at, without a session; requests to a verifier service end
    /// at once where [`crate::Service::ended_by`] was given the `Cancel`.
    pub fn start(
        open: impl FnOnce() -> Result<Host, SdkError> + Send + 'static,
        key: impl for<'h> FnOnce(&'h mut Host, &Cancel) -> Result<Session<'h, Keyed>, SdkError>
        + Send
        + 'static,
    ) -> Pending<Self> {
        let (promise, cancel, pending) = promise();
        let thread = std::thread::Builder::new().name("shef".to_owned());
        // Where there is no thread, the promise goes with the closure, and the future says so.
        let _ = thread.spawn(move || {
            let mut host = match open() {
                Ok(host) => host,
                Err(error) => return promise.keep(Err(error)),
            };
            if cancel.is_cancelled() {
                return;
            }
            let session = match key(&mut host, &cancel) {
                Ok(session) => session,
                Err(error) => return promise.keep(Err(error)),
            };
            let (tasks, work) = mpsc::channel();
            promise.keep(Ok(Self { tasks }));
            if let Some((closed, promise)) = serve(session, &work) {
                promise.keep(closed.map(|closed| End { closed, record: host.close_record() }));
            }
        });
        pending
    }

    /// Has the thread do something with the session.
    ///
    /// Where the future is dropped, what was not begun is never begun. What was begun looks at its
    /// [`Cancel`], which is that of the session's [`Session::patience`] meanwhile: transfers end
    /// after a piece, waits for the accelerator after a read. A request to the Shield is never left
    /// half-way, so that the session can be used in any case; what becomes of an upload or a result
    /// is said at [`Session::upload_from`] and [`Session::open_to`].
    ///
    /// # Errors
    /// What `work` says; [`SdkError::WorkerGone`] where the thread ended, because something on it
    /// panicked.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl for<'h> FnOnce(&mut Session<'h, Keyed>, &Cancel) -> Result<T, SdkError>
        + Send
        + 'static,
    ) -> Pending<T> {
        let (promise, cancel, pending) = promise();
        self.give(Task::Run(Box::new(move |session: &mut Session<'_, Keyed>| {
            if !cancel.is_cancelled() {
                // What waits or transfers ends where nobody waits for it any more.
                let before = std::mem::replace(&mut session.patience().cancel, cancel.clone());
                let done = work(session, &cancel);
                session.patience().cancel = before;
                promise.keep(done);
            }
        })));
        pending
    }

    /// Closes the session, after what was given before, and asks for its close record. This is done
    /// even where the future is dropped.
    ///
    /// # Errors
    /// As [`Session::close`].
    pub fn close(self) -> Pending<End> {
        let (promise, _, pending) = promise();
        self.give(Task::Close(promise));
        pending
    }

    /// Where the thread is gone the task is dropped, and its promise with it.
    fn give(&self, task: Task) {
        let _ = self.tasks.send(task);
    }
}

/// Does what comes until the session is closed, or until nothing can come any more.
fn serve(
    mut session: Session<'_, Keyed>,
    work: &mpsc::Receiver<Task>,
) -> Option<(Result<Closed, SdkError>, Promise<End>)> {
    loop {
        match work.recv().ok()? {
            Task::Run(run) => run(&mut session),
            Task::Close(promise) => return Some((session.close(), promise)),
        }
    }
}

/// What a thread will have done. Dropping it says that nobody waits any more: see [`Worker::run`].
#[must_use = "what was asked for is cancelled where nobody waits for it"]
pub struct Pending<T> {
    slot: Arc<Mutex<Slot<T>>>,
    cancel: Cancel,
}

struct Promise<T>(Arc<Mutex<Slot<T>>>);

struct Slot<T> {
    value: Option<Result<T, SdkError>>,
    waker: Option<Waker>,
}

fn promise<T>() -> (Promise<T>, Cancel, Pending<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, waker: None }));
    let cancel = Cancel::default();
    (Promise(slot.clone()), cancel.clone(), Pending { slot, cancel })
}

/// For what is whole whenever its lock is free, whoever panicked.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Promise<T> {
    fn keep(self, value: Result<T, SdkError>) {
        lock(&self.0).value = Some(value);
        // Dropping it wakes who waits.
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = lock(&self.0);
            slot.value.get_or_insert(Err(SdkError::WorkerGone));
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, SdkError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.slot);
        match slot.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
