//! One card: its thread, and the session that has it.
//!
//! The card's thread carries out requests one after the other. Everything else changes the state under a lock that is never held while the card works.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shef_device::wire::{Answer, DeviceState, Listed, Op, ToOwner, Token, WINDOW, codes};
use shef_device::{CtlOp, Device, DeviceError, DeviceInfo};
use tokio::sync::{Notify, mpsc::UnboundedSender};

use crate::Opener;
use crate::config;

/// Reads of a register that are made before a poll looks whether its session is still there.
const POLL_SLICE: u32 = 256;

/// A refusal that ends a connection.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// Frames on their way to an owner.
pub(crate) type Outbox = UnboundedSender<Arc<Vec<u8>>>;

/// The session that has a card.
struct Session {
    /// Tells it from every other session with this card.
    generation: u64,
    owner: String,
    token: Token,
    /// Number of the last request that was taken.
    last: u64,
    /// Answers that the owner has not acknowledged, oldest first.
    kept: VecDeque<(u64, Arc<Vec<u8>>)>,
    /// Number of the connection, and the way to it; none while the owner is away.
    connection: Option<(u64, Outbox)>,
    working: Option<(u64, Instant)>,
    moved: u64,
}

enum State {
    Starting,
    Free,
    Owned(Session),
    Resetting,
    Failed(Refusal),
}

struct Inner {
    state: State,
    info: Option<DeviceInfo>,
}

enum Job {
    Open,
    Run { generation: u64, id: u64, op: Op },
    Wipe,
    Stop,
}

/// A card and its session.
pub(crate) struct Slot {
    pub(crate) name: String,
    config: config::Device,
    inner: Mutex<Inner>,
    jobs: mpsc::Sender<Job>,
    /// Generation of the session whose requests are carried out; 0 for none.
    live: Arc<AtomicU64>,
    generations: AtomicU64,
    changed: Notify,
}

/// What became of an attempt to open a card.
pub(crate) enum Attempt {
    /// The session's generation; the owner was told.
    Attached(u64),
    /// The card is being made ready: wait and try again.
    Wait(&'static str),
    Refused(Refusal),
}

impl Slot {
    /// A slot whose card is opened at once, on a thread of its own.
    pub(crate) fn start(name: String, config: config::Device, opener: Opener) -> std::io::Result<(Arc<Self>, std::thread::JoinHandle<()>)> {
        let (jobs, queue) = mpsc::channel();
        let slot = Arc::new(Self {
            name: name.clone(),
            config,
            inner: Mutex::new(Inner { state: State::Starting, info: None }),
            jobs,
            live: Arc::new(AtomicU64::new(0)),
            generations: AtomicU64::new(0),
            changed: Notify::new(),
        });
        slot.job(Job::Open);
        let worker = Arc::clone(&slot);
        let thread = std::thread::Builder::new().name(format!("card {name}")).spawn(move || worker.work(&queue, &opener))?;
        Ok((slot, thread))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self, job: Job) {
        // The thread ends after Stop only, and what comes later is of no use.
        let _ = self.jobs.send(job);
    }

    /// Why the card failed, where it did.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match &self.lock().state {
            State::Failed(refusal) => Some(Refusal::new(&refusal.code, refusal.message.clone())),
            _ => None,
        }
    }

    /// Waits until the state may have changed, at most for `limit`.
    pub(crate) async fn changed(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.changed.notified()).await;
    }

    /// The card as it is listed.
    pub(crate) fn listed(&self) -> Listed {
        let inner = self.lock();
        let (state, owner, moved) = match &inner.state {
            State::Starting => (DeviceState::Starting, None, 0),
            State::Free => (DeviceState::Free, None, 0),
            State::Owned(s) if s.connection.is_some() => (DeviceState::InUse, Some(s.owner.clone()), s.moved),
            State::Owned(s) => (DeviceState::Orphaned, Some(s.owner.clone()), s.moved),
            State::Resetting => (DeviceState::Resetting, None, 0),
            State::Failed(_) => (DeviceState::Failed, None, 0),
        };
        let description = match (&inner.state, &inner.info) {
            (State::Failed(why), _) => why.message.clone(),
            (_, Some(info)) => info.description.clone(),
            (_, None) => String::new(),
        };
        Listed { name: self.name.clone(), description, state, owner, moved }
    }

    /// Gives the card to `owner`, or its session back.
    pub(crate) fn attach(&self, owner: &str, resume: Option<(Token, u64)>, connection: u64, outbox: &Outbox) -> Attempt {
        if !self.config.owners.is_empty() && !self.config.owners.iter().any(|name| name == owner) {
            return Attempt::Refused(Refusal::new(codes::NOT_ALLOWED, format!("device {} is not for owner {owner}", self.name)));
        }
        let mut inner = self.lock();
        let Inner { state, info } = &mut *inner;
        match (state, resume) {
            (State::Owned(session), Some((token, acked)))
                if session.owner == owner && same(&session.token, &token) && acked <= session.last =>
            {
                session.kept.retain(|(id, _)| *id > acked);
                // A connection of before, if there is one, loses its outbox and ends.
                session.connection = Some((connection, outbox.clone()));
                let Some(info) = info.clone() else { return Attempt::Wait("the card is opened") };
                tracing::info!(device = self.name, owner, last = session.last, "session taken up again");
                // Under the lock, so that no answer overtakes it; then every answer that the owner may lack.
                let _ = outbox.send(Arc::new(ToOwner::Opened { token, last: session.last, info }.encode()));
                for (_, frame) in &session.kept {
                    let _ = outbox.send(Arc::clone(frame));
                }
                Attempt::Attached(session.generation)
            }
            (_, Some(_)) => {
                let what = format!("the session with device {} is over: the card was wiped", self.name);
                Attempt::Refused(Refusal::new(codes::NO_SESSION, what))
            }
            (State::Starting, None) => Attempt::Wait("the card is opened"),
            (State::Resetting, None) => Attempt::Wait("the card is wiped"),
            (state @ State::Failed(_), None) => {
                if let State::Failed(refusal) = core::mem::replace(state, State::Starting) {
                    tracing::info!(device = self.name, owner, last = refusal.message, "opened again");
                }
                self.job(Job::Open);
                Attempt::Wait("the card is opened")
            }
            (State::Owned(session), None) if session.owner == owner && session.connection.is_none() => {
                // The owner's program was started anew and knows nothing of the session.
                self.wipe(&mut inner);
                Attempt::Wait("the card is wiped")
            }
            (State::Owned(session), None) => Attempt::Refused(Refusal::new(
                codes::IN_USE,
                format!(
                    "device {} is in use by {}{}",
                    self.name,
                    session.owner,
                    if session.connection.is_none() { ", who is away" } else { "" }
                ),
            )),
            (state @ State::Free, None) => {
                let Some(info) = info.clone() else { return Attempt::Wait("the card is opened") };
                let mut token = [0; 32];
                if let Err(error) = getrandom::fill(&mut token) {
                    return Attempt::Refused(Refusal::new(codes::DEVICE_FAILED, format!("no random bytes: {error}")));
                }
                let (token, generation) = (Token(token), self.generations.fetch_add(1, Ordering::Relaxed) + 1);
                *state = State::Owned(Session {
                    generation,
                    owner: owner.to_owned(),
                    token,
                    last: 0,
                    kept: VecDeque::new(),
                    connection: Some((connection, outbox.clone())),
                    working: None,
                    moved: 0,
                });
                self.live.store(generation, Ordering::SeqCst);
                tracing::info!(device = self.name, owner, "session opened");
                let _ = outbox.send(Arc::new(ToOwner::Opened { token, last: 0, info }.encode()));
                Attempt::Attached(generation)
            }
        }
    }

    /// The session of `generation`, if it has the card over `connection`.
    fn session(inner: &mut Inner, generation: u64, connection: u64) -> Option<&mut Session> {
        match &mut inner.state {
            State::Owned(s) if s.generation == generation && s.connection.as_ref().is_some_and(|c| c.0 == connection) => Some(s),
            _ => None,
        }
    }

    /// Takes a request: a new one is queued, one that was carried out is answered from what was kept.
    pub(crate) fn request(&self, generation: u64, connection: u64, id: u64, acked: u64, op: Op) -> Result<(), Refusal> {
        let mut inner = self.lock();
        let session = Self::session(&mut inner, generation, connection)
            .ok_or_else(|| Refusal::new(codes::NO_SESSION, format!("the session with device {} is over", self.name)))?;
        if acked > session.last {
            return Err(Refusal::new(codes::PROTOCOL, format!("request {acked} is acknowledged and was never made")));
        }
        while session.kept.front().is_some_and(|(id, _)| *id <= acked) {
            session.kept.pop_front();
        }
        if id <= session.last {
            let Some((_, outbox)) = &session.connection else { return Ok(()) };
            match session.kept.iter().find(|(kept, _)| *kept == id) {
                Some((_, frame)) => {
                    let _ = outbox.send(Arc::clone(frame));
                    return Ok(());
                }
                // Still waiting or at work: its answer comes by itself. An acknowledged one cannot be asked for again.
                None if id > session.kept.back().map_or(acked, |(kept, _)| *kept) => return Ok(()),
                None => return Err(Refusal::new(codes::PROTOCOL, format!("request {id} was answered and acknowledged"))),
            }
        }
        if id != session.last + 1 || id - acked > WINDOW as u64 {
            return Err(Refusal::new(
                codes::PROTOCOL,
                format!("request {id} with {acked} acknowledged, expected {} with at most {WINDOW} open", session.last + 1),
            ));
        }
        session.last = id;
        session.moved += op.bulk();
        self.job(Job::Run { generation, id, op });
        Ok(())
    }

    /// Whether the session of `generation` is served over `connection`.
    pub(crate) fn serves(&self, generation: u64, connection: u64) -> bool {
        Self::session(&mut self.lock(), generation, connection).is_some()
    }

    /// The request that the card has been at for longer than `limit`.
    pub(crate) fn working(&self, generation: u64, connection: u64, limit: Duration) -> Option<u64> {
        let mut inner = self.lock();
        Self::session(&mut inner, generation, connection)?.working.filter(|(_, since)| since.elapsed() > limit).map(|(id, _)| id)
    }

    /// The connection is gone; says whether the session has been without one since.
    pub(crate) fn detach(&self, generation: u64, connection: u64) -> bool {
        let mut inner = self.lock();
        match Self::session(&mut inner, generation, connection) {
            Some(session) => {
                session.connection = None;
                tracing::info!(device = self.name, owner = session.owner, "owner is away");
                true
            }
            None => false,
        }
    }

    /// Wipes the card if its owner is away still.
    pub(crate) fn reap(&self, generation: u64) {
        let mut inner = self.lock();
        if matches!(&inner.state, State::Owned(s) if s.generation == generation && s.connection.is_none()) {
            tracing::warn!(device = self.name, "the owner did not come back: the card is wiped");
            self.wipe(&mut inner);
        }
    }

    fn wipe(&self, inner: &mut Inner) {
        self.live.store(0, Ordering::SeqCst);
        inner.state = State::Resetting;
        self.job(Job::Wipe);
    }

    /// Wipes the card where somebody has it, and ends its thread.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        if matches!(inner.state, State::Owned(_)) {
            self.wipe(&mut inner);
        }
        self.job(Job::Stop);
    }

    // ---- the card's thread ----

    fn work(&self, queue: &mpsc::Receiver<Job>, opener: &Opener) {
        let mut device: Option<Box<dyn Device>> = None;
        while let Ok(job) = queue.recv() {
            match job {
                Job::Stop => return,
                Job::Open => {
                    // A device that failed is let go before it is opened anew.
                    drop(device.take());
                    match opener(&self.config.uri) {
                        Ok(opened) => {
                            let info = opened.info();
                            tracing::info!(device = self.name, description = info.description, "ready");
                            device = Some(opened);
                            self.settle(State::Free, Some(info));
                        }
                        Err(error) => self.failed("does not open", &error),
                    }
                }
                Job::Wipe => self.reset(device.as_mut()),
                Job::Run { generation, id, op } => {
                    let live = || self.live.load(Ordering::SeqCst) == generation;
                    let (true, Some(card)) = (live(), device.as_mut()) else { continue };
                    self.at_work(generation, Some(id));
                    let over = op == Op::Close;
                    let result = carry_out(card.as_mut(), op, &live);
                    let cycles = card.cycles();
                    let message = match result {
                        Ok(answer) => ToOwner::Done { id, cycles, answer },
                        Err(error) => {
                            tracing::info!(device = self.name, code = error.code(), "request failed");
                            ToOwner::Failed { id, cycles, error }
                        }
                    };
                    self.answered(generation, id, message, over);
                    if over {
                        self.reset(device.as_mut());
                    }
                }
            }
        }
    }

    fn settle(&self, state: State, info: Option<DeviceInfo>) {
        let mut inner = self.lock();
        inner.state = state;
        if info.is_some() {
            inner.info = info;
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    fn failed(&self, what: &str, error: &DeviceError) {
        tracing::error!(device = self.name, code = error.code(), "the card {what}: {error}");
        self.settle(State::Failed(Refusal::new(error.code(), format!("device {} {what}: {error}", self.name))), None);
    }

    fn reset(&self, device: Option<&mut Box<dyn Device>>) {
        let Some(device) = device else { return };
        match device.reset() {
            Ok(()) => {
                tracing::info!(device = self.name, "wiped and free");
                self.settle(State::Free, None);
            }
            Err(error) => self.failed("does not reset", &error),
        }
    }

    fn at_work(&self, generation: u64, id: Option<u64>) {
        if let State::Owned(session) = &mut self.lock().state
            && session.generation == generation
        {
            session.working = id.map(|id| (id, Instant::now()));
        }
    }

    fn answered(&self, generation: u64, id: u64, message: ToOwner, over: bool) {
        let frame = Arc::new(message.encode());
        drop(message);
        let mut inner = self.lock();
        let State::Owned(session) = &mut inner.state else { return };
        if session.generation != generation {
            return;
        }
        session.working = None;
        if let Some((_, outbox)) = &session.connection {
            let _ = outbox.send(Arc::clone(&frame));
        }
        session.kept.push_back((id, frame));
        if over {
            tracing::info!(device = self.name, owner = session.owner, moved = session.moved, "session closed");
            self.live.store(0, Ordering::SeqCst);
            inner.state = State::Resetting;
        }
    }
}

/// Whether two tokens are the same, in a time that does not depend on where they differ.
fn same(a: &Token, b: &Token) -> bool {
    a.0.iter().zip(&b.0).fold(0, |d, (a, b)| d | (a ^ b)) == 0
}

/// Does what a request asks of the card; `live` says whether its session is still there.
fn carry_out(device: &mut dyn Device, op: Op, live: &dyn Fn() -> bool) -> Result<Answer, DeviceError> {
    Ok(match op {
        Op::Ctl(ops) => Answer::Values(batch(device, &ops, live)?),
        Op::Kernel(request) => Answer::Bytes(device.kernel_call(&request)?),
        Op::MemRead { addr, len } => {
            let mut bytes = vec![0; len as usize];
            device.mem_read(addr, &mut bytes)?;
            Answer::Bytes(bytes)
        }
        Op::MemWrite { addr, data } => {
            device.mem_write(addr, &data)?;
            Answer::Done
        }
        Op::WaitHint => {
            device.wait_hint()?;
            Answer::Done
        }
        Op::WaitInterrupt => Answer::Flag(device.wait_interrupt()?),
        Op::Reset => {
            device.reset()?;
            Answer::Done
        }
        // The card is wiped after the answer is on its way.
        Op::Close => Answer::Done,
    })
}

/// A batch, with long polls cut into slices so that they end with their session.
fn batch(device: &mut dyn Device, ops: &[CtlOp], live: &dyn Fn() -> bool) -> Result<Vec<u32>, DeviceError> {
    let mut values = Vec::new();
    let mut rest = ops;
    while let Some(first) = rest.first() {
        if let CtlOp::Poll { offset, clear, some, polls } = *first {
            let mut left = polls.max(1);
            loop {
                let slice = left.min(POLL_SLICE);
                let op = CtlOp::Poll { offset, clear, some, polls: slice };
                let value = device.ctl_batch(&[op])?.first().copied().unwrap_or(u32::MAX);
                left -= slice;
                if op.settled(value) {
                    values.push(value);
                    break;
                }
                if left == 0 || value == u32::MAX {
                    values.push(value);
                    return Ok(values);
                }
                if !live() {
                    let message = "the session ended while a register was polled".to_owned();
                    return Err(DeviceError::Transport { code: codes::CANCELLED, message });
                }
            }
            rest = &rest[1..];
        } else {
            let plain = rest.iter().position(|op| matches!(op, CtlOp::Poll { .. })).unwrap_or(rest.len());
            values.extend(device.ctl_batch(&rest[..plain])?);
            rest = &rest[plain..];
        }
    }
    Ok(values)
}
