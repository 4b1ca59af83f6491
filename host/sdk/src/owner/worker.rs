//! A session on a dedicated thread, for programs that must not block.
//!
//! Every operation of a session ends in blocking calls of the device. So the session lives on one
//! thread, receives work through a channel, and answers through futures that need only `std`: they
//! run under every executor without an adapter.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};

use super::lock;
use super::session::{Closed, Keyed, Session};
use crate::SdkError;
use crate::host::Host;
use crate::progress::Cancel;

/// Work for a session.
type Work = Box<dyn for<'h> FnOnce(&mut Session<'h, Keyed>) + Send>;

/// A task for the thread.
enum Task {
    Run(Work),
    Close(Promise<End>),
}

/// A keyed session on a dedicated thread.
///
/// Work runs in the order of submission. Dropping the worker lets the thread finish the submitted
/// work and then drop the session, as dropping a [`Session`] does; [`Worker::close`] ends it
/// properly.
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

/// The end of a session on a thread.
pub struct End {
    /// The Shield's last words.
    pub closed: Closed,
    /// The close record, not verified, or the reason why it is missing. A missing record proves
    /// nothing.
    pub record: Result<Vec<u8>, SdkError>,
}

impl Worker {
    /// Starts a thread on which `open` opens the device and `key` makes a session with it. They
    /// move to that thread; the device and the session never leave it. If the future is dropped,
    /// the thread ends after its current step, without a session; requests to a verifier service
    /// end at once if [`crate::Service::ended_by`] was given the `Cancel`.
    pub fn start(
        open: impl FnOnce() -> Result<Host, SdkError> + Send + 'static,
        key: impl for<'h> FnOnce(&'h mut Host, &Cancel) -> Result<Session<'h, Keyed>, SdkError>
        + Send
        + 'static,
    ) -> Pending<Self> {
        let (promise, cancel, pending) = promise();
        let thread = std::thread::Builder::new().name("shef".to_owned());
        // If the thread cannot start, the promise is dropped with the closure, and the future
        // reports it.
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

    /// Runs `work` with the session on the thread.
    ///
    /// If the future is dropped, work that has not started never starts. Running work checks its
    /// [`Cancel`], which replaces that of the session's [`Session::patience`] for the time:
    /// transfers end after a piece, waits for the accelerator after a read. A request to the Shield
    /// is never abandoned half-way, so the session stays usable; [`Session::upload_from`] and
    /// [`Session::open_to`] describe the state of an upload or a result.
    ///
    /// # Errors
    /// The error of `work`; [`SdkError::WorkerGone`] if the thread ended because something on it
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
                // A dropped future ends waits and transfers.
                let before = std::mem::replace(&mut session.patience().cancel, cancel.clone());
                let done = work(session, &cancel);
                session.patience().cancel = before;
                promise.keep(done);
            }
        })));
        pending
    }

    /// Closes the session, after all submitted work, and requests its close record. This happens
    /// even if the future is dropped.
    ///
    /// # Errors
    /// As [`Session::close`].
    pub fn close(self) -> Pending<End> {
        let (promise, _, pending) = promise();
        self.give(Task::Close(promise));
        pending
    }

    /// If the thread is gone, this drops the task, and its promise with it.
    fn give(&self, task: Task) {
        let _ = self.tasks.send(task);
    }
}

/// Runs tasks until the session is closed, or until the channel is disconnected.
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

/// The future result of a thread. Dropping it cancels the work: see [`Worker::run`].
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

impl<T> Promise<T> {
    fn keep(self, value: Result<T, SdkError>) {
        lock(&self.0).value = Some(value);
        // Dropping it wakes the waiting task.
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
