//! A session works on its own thread, under a minimal executor and under tokio.

use std::future::Future;
use std::io::{self, Read};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use shef::seal::OpenPolicy;
use shef::{Pending, SdkError, Uri, Worker};
use shef_card::Engine;
use shef_lab::data::Dataset;
use shef_lab::knn;
use shef_lab::reference;
use shef_lab::world::{Cards, Plan, World};

const START: (u32, u32) = (knn::reg::CTRL, 1);
const DONE: (u32, u32) = (knn::reg::STATUS, knn::DONE | knn::ERROR);

/// A minimal executor.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker: Waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        std::thread::park();
    }
}

struct Setup {
    _dir: tempfile::TempDir,
    train: Dataset,
    query: Dataset,
}

/// A worker around the model card.
fn worker() -> (Setup, Pending<Worker>) {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        cards: Cards::digits(Engine::Model).unwrap(),
        seed: None,
        name: "worker".into(),
        service: None,
    };
    let world = Arc::new(Mutex::new(World::new(dir.path(), plan).unwrap()));
    let all =
        Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")))
            .unwrap();
    let maker = world.clone();
    let pending = Worker::start(
        move || Ok(maker.lock().unwrap().card(&mut |_| {}).unwrap().0),
        move |host, _| world.lock().unwrap().session(host),
    );
    (Setup { _dir: dir, train: all.head(64), query: all.head(32) }, pending)
}

impl Setup {
    /// Uploads both inputs, runs, opens.
    async fn classify(&self, worker: &Worker) -> Vec<reference::Classification> {
        let (train, query) = (knn::train_image(&self.train), self.query.pixels());
        worker
            .run(move |session, _| session.upload(&session.input("train")?, &train))
            .await
            .unwrap();
        worker
            .run(move |session, _| session.upload(&session.input("query")?, &query))
            .await
            .unwrap();
        let opened = worker.run(|session, _| {
            let (train, query, result) =
                (session.input("train")?, session.input("query")?, session.output("result")?);
            let statement = session.run(
                &knn::job(train.addr(), query.addr(), result.addr(), 64, 32),
                START,
                DONE,
            )?;
            session.open(&result, &statement, knn::result_len(32), OpenPolicy::default())
        });
        knn::answers(&opened.await.unwrap().data, 32).unwrap()
    }

    fn expected(&self) -> Vec<reference::Classification> {
        reference::classify_all(&self.train, &self.query)
    }
}

fn code<T>(result: Result<T, SdkError>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn any_executor_will_do() {
    let (s, pending) = worker();
    block_on(async {
        let worker = pending.await.unwrap();
        assert_eq!(s.classify(&worker).await, s.expected());
        let end = worker.close().await.unwrap();
        end.closed.verify_record(&end.record.unwrap()).unwrap();
    });
    let missing = Worker::start(
        || shef::open(&"vfio-user:/nowhere/at/all".parse::<Uri>()?),
        |_, _| panic!("there is no host"),
    );
    assert_eq!(code(block_on(missing)), "SHEF-VFU-001");
}

/// Signals that the first byte was requested, then waits for permission to continue.
struct Gate {
    reached: mpsc::Sender<()>,
    leave: mpsc::Receiver<()>,
    open: bool,
}

impl Gate {
    fn new() -> (Self, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let ((reached, is_reached), (go, leave)) = (mpsc::channel(), mpsc::channel());
        (Self { reached, leave, open: false }, is_reached, go)
    }
}

impl Read for Gate {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.open, true) {
            self.reached.send(()).unwrap();
            self.leave.recv().unwrap();
        }
        buf.fill(1);
        Ok(buf.len())
    }
}

#[test]
fn tokio_goes_on_meanwhile_and_what_it_drops_ends() {
    let (s, pending) = worker();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let worker = pending.await.unwrap();
        let (gate, reached, go) = Gate::new();
        let ended = Arc::new(Mutex::new(None));
        let seen = ended.clone();
        let upload = worker.run(move |session, cancel| {
            let done = session
                .upload_from(&session.input("query")?, gate, 1 << 20, &mut |p| cancel.watch(p));
            *seen.lock().unwrap() = Some(code(done));
            Ok(())
        });
        let begun = Arc::new(AtomicBool::new(false));
        let flag = begun.clone();
        let never = worker.run(move |_, _| {
            flag.store(true, Ordering::Relaxed);
            Ok(())
        });
        // The thread is in the middle of an upload; tasks and timers still run.
        tokio::task::spawn_blocking(move || reached.recv().unwrap()).await.unwrap();
        assert!(
            tokio::time::timeout(Duration::from_millis(20), upload).await.is_err(),
            "done without leave"
        );
        drop(never);
        go.send(()).unwrap();
        // The upload whose future was dropped completed; the upload that had not begun never
        // started; the session still works.
        let epoch = worker
            .run(|session, _| session.next_input_epoch(&session.input("query")?))
            .await
            .unwrap();
        assert_eq!(epoch, 2);
        assert_eq!(ended.lock().unwrap().as_deref(), Some("SHEF-SDK-029"));
        assert!(!begun.load(Ordering::Relaxed));
        assert_eq!(s.classify(&worker).await, s.expected());
        let end = worker.close().await.unwrap();
        end.closed.verify_record(&end.record.unwrap()).unwrap();
    });
}

/// A job that never ends: its future is dropped before the register can show it.
#[test]
fn a_wait_that_nobody_waits_for_ends_and_the_session_goes_on() {
    let (s, pending) = worker();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let worker = pending.await.unwrap();
        let ended = Arc::new(Mutex::new(None));
        let seen = ended.clone();
        let endless = worker.run(move |session, _| {
            // A bit that is never set.
            *seen.lock().unwrap() = Some(code(session.wait_register(knn::reg::STATUS, 1 << 30)));
            Ok(())
        });
        assert!(
            tokio::time::timeout(Duration::from_millis(20), endless).await.is_err(),
            "it came to an end"
        );
        let ping = worker.run(|session, _| session.ping());
        tokio::time::timeout(Duration::from_secs(20), ping)
            .await
            .expect("the wait goes on")
            .unwrap();
        assert_eq!(ended.lock().unwrap().as_deref(), Some("SHEF-SDK-041"));
        assert_eq!(s.classify(&worker).await, s.expected());
        worker.close().await.unwrap();
    });
}

#[test]
fn a_thread_that_is_gone_is_said_to_be_gone() {
    let (_s, pending) = worker();
    let worker = block_on(pending).unwrap();
    let bad = worker.run(|_, _| -> Result<(), SdkError> { panic!("of the caller's") });
    let queued = worker.run(|session, _| session.ping());
    assert_eq!(code(block_on(bad)), "SHEF-SDK-039");
    assert_eq!(code(block_on(queued)), "SHEF-SDK-039");
    assert_eq!(code(block_on(worker.run(|session, _| session.ping()))), "SHEF-SDK-039");
    assert_eq!(code(block_on(worker.close())), "SHEF-SDK-039");
}

#[test]
fn no_session_is_made_that_nobody_waits_for() {
    let ((opened, is_opened), (keyed, is_keyed)) = (mpsc::channel(), mpsc::channel());
    let (go, leave) = mpsc::channel::<()>();
    let mut pending = Worker::start(
        move || {
            opened.send(()).unwrap();
            leave.recv().unwrap();
            shef::open(&Uri::SimModel)
        },
        move |_, _| {
            keyed.send(()).unwrap();
            Err(SdkError::LoadRefused)
        },
    );
    is_opened.recv().unwrap();
    assert!(Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(pending);
    go.send(()).unwrap();
    // The closure was dropped without being called.
    is_keyed.recv().expect_err("a session was made");
}
