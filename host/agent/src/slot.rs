//! One card: its thread and its session.
//!
//! The card's thread carries out requests one at a time. All other code changes the state under a
//! lock that is never held while the card works.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shef_device::{Device, DeviceError, DeviceInfo, Uri, mailbox};
use shef_remote::wire::{DeviceOp, DeviceState, Listed, ToOwner, Token, WINDOW, codes};
use tokio::sync::Notify;

use crate::Opener;
use crate::carry::{Clock, carry_out, clear};
use crate::config;
use crate::identity::{Identity, Revoked};
use crate::outbox::{Frame, Outbox};

/// How often an idle card is checked: one that is gone is reopened.
const CHECK: Duration = Duration::from_secs(2);

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

/// The session that owns a card.
struct Session {
    /// Distinguishes it from every other session of this card.
    generation: u64,
    owner: Identity,
    token: Token,
    /// Number of the last accepted request.
    last: u64,
    /// Number of the last request whose answer left over an earlier connection.
    sent: u64,
    /// The owner has received every answer up to this one.
    acked: u64,
    /// Answers that the owner has not acknowledged, oldest first.
    kept: VecDeque<(u64, Frame)>,
    /// Number of the connection, and its outbox; `None` while the owner is away.
    connection: Option<(u64, Outbox)>,
    /// While the owner is away: the time at which the card is wiped.
    away_until: Option<Instant>,
    working: Option<(u64, Instant)>,
    moved: u64,
}

impl Session {
    /// Number of the last request whose answer may have arrived.
    fn sent(&self) -> u64 {
        self.connection.as_ref().map_or(0, |(_, outbox)| outbox.begun()).max(self.sent)
    }

    /// Detaches the connection.
    fn leave(&mut self) -> Option<Outbox> {
        self.sent = self.sent();
        self.connection.take().map(|(_, outbox)| outbox)
    }

    /// Notes that every answer up to `acked` has arrived; false if one of them never left.
    fn acknowledge(&mut self, acked: u64) -> bool {
        if acked > self.sent() {
            return false;
        }
        self.acked = self.acked.max(acked);
        while self.kept.front().is_some_and(|(id, _)| *id <= acked) {
            self.kept.pop_front();
        }
        true
    }
}

enum State {
    Starting,
    Free,
    Owned(Session),
    Resetting,
    Failed(Refusal),
}

impl State {
    fn shown(&self) -> DeviceState {
        match self {
            Self::Starting => DeviceState::Starting,
            Self::Free => DeviceState::Free,
            Self::Owned(s) if s.connection.is_some() => DeviceState::InUse,
            Self::Owned(_) => DeviceState::Orphaned,
            Self::Resetting => DeviceState::Resetting,
            Self::Failed(_) => DeviceState::Failed,
        }
    }
}

struct Inner {
    state: State,
    info: Option<DeviceInfo>,
    /// Owners that may use the card; if empty, every owner may.
    owners: Vec<String>,
    revoked: Arc<Revoked>,
    /// The last failure, so that the log reports it once.
    failed: String,
}

impl Inner {
    /// Whether `owner` may use the card now. Its certificate may have been revoked or have expired
    /// since it connected.
    fn is_for(&self, owner: &Identity) -> bool {
        owner.until > std::time::SystemTime::now()
            && !self.revoked.contains(owner)
            && (self.owners.is_empty() || self.owners.contains(&owner.name))
    }
}

enum Job {
    Open,
    Run { generation: u64, id: u64, op: DeviceOp },
    Wipe,
    Stop,
}

/// A card and its session.
pub(crate) struct Slot {
    pub(crate) name: String,
    uri: Uri,
    clear_memory: bool,
    /// Time limit to carry out a request, or to clear the memory.
    limit: Duration,
    inner: Mutex<Inner>,
    /// The agent is stopping.
    stopping: AtomicBool,
    jobs: mpsc::Sender<Job>,
    /// Generation of the session whose requests are carried out; 0 if there is no session.
    live: Arc<AtomicU64>,
    generations: AtomicU64,
    changed: Notify,
}

/// Result of an attempt to open a card.
pub(crate) enum Attempt {
    /// The session's generation; the owner has its answer.
    Attached(u64),
    /// The card is being prepared: wait and try again.
    Wait(&'static str),
    Refused(Refusal),
}

impl Slot {
    /// A slot with its thread, which opens the card at once.
    pub(crate) fn start(
        name: String,
        config: config::Device,
        revoked: &Arc<Revoked>,
        limit: Duration,
        opener: Opener,
    ) -> std::io::Result<(Arc<Self>, std::thread::JoinHandle<()>)> {
        let (jobs, queue) = mpsc::channel();
        let config::Device { uri, owners, clear_memory } = config;
        let slot = Arc::new(Self {
            name: name.clone(),
            uri,
            clear_memory,
            limit,
            inner: Mutex::new(Inner {
                state: State::Starting,
                info: None,
                owners,
                revoked: Arc::clone(revoked),
                failed: String::new(),
            }),
            stopping: AtomicBool::new(false),
            jobs,
            live: Arc::new(AtomicU64::new(0)),
            generations: AtomicU64::new(0),
            changed: Notify::new(),
        });
        slot.job(Job::Open);
        let worker = Arc::clone(&slot);
        let thread = std::thread::Builder::new()
            .name(format!("card {name}"))
            .spawn(move || worker.work(&queue, &opener))?;
        Ok((slot, thread))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self, job: Job) {
        // The thread ends only after Stop, and later jobs are of no use.
        let _ = self.jobs.send(job);
    }

    /// Why the card failed, if it did.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        match &self.lock().state {
            State::Failed(refusal) => Some(Refusal::new(&refusal.code, refusal.message.clone())),
            _ => None,
        }
    }

    /// Waits until the state may have changed, for at most `limit`.
    pub(crate) async fn changed(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.changed.notified()).await;
    }

    /// The card as `owner` sees it; cards of other owners are hidden.
    pub(crate) fn listed(&self, owner: &Identity) -> Option<Listed> {
        let inner = self.lock();
        if !inner.is_for(owner) {
            return None;
        }
        let state = inner.state.shown();
        let (who, moved) = match &inner.state {
            State::Owned(s) if s.owner.name == owner.name => (Some(s.owner.name.clone()), s.moved),
            _ => (None, 0),
        };
        let description = match (&inner.state, &inner.info) {
            (State::Failed(why), _) => why.message.clone(),
            (_, Some(info)) => info.description.clone(),
            (_, None) => String::new(),
        };
        Some(Listed { name: self.name.clone(), description, state, owner: who, moved })
    }

    /// State of the card.
    pub(crate) fn state(&self) -> DeviceState {
        self.lock().state.shown()
    }

    /// Whether `owner` has the card, even if it is away.
    pub(crate) fn is_of(&self, owner: &str) -> bool {
        matches!(&self.lock().state, State::Owned(s) if s.owner.name == owner)
    }

    /// Number of sessions so far.
    pub(crate) fn sessions(&self) -> u64 {
        self.generations.load(Ordering::Relaxed)
    }

    /// Whether all memory is cleared between two owners.
    pub(crate) fn clears_memory(&self) -> bool {
        self.clear_memory
    }

    /// Address of the card.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Applies a new revocation list and, if given, new `owners`. Ends the session of an owner that
    /// may no longer use the card.
    pub(crate) fn restrict(&self, owners: Option<&[String]>, revoked: &Arc<Revoked>) {
        let mut inner = self.lock();
        inner.revoked = Arc::clone(revoked);
        if let Some(owners) = owners {
            inner.owners = owners.to_vec();
        }
        let over = match &inner.state {
            State::Owned(session) => !inner.is_for(&session.owner),
            _ => false,
        };
        if over {
            tracing::warn!(device = self.name, "the owner may no longer use the card: wiping it");
            self.wipe(&mut inner);
        }
    }

    /// Gives the card to `owner`, or resumes its session.
    pub(crate) fn attach(
        &self,
        owner: &Identity,
        resume: Option<(Token, u64)>,
        connection: u64,
        outbox: &Outbox,
    ) -> Attempt {
        let mut inner = self.lock();
        if !inner.is_for(owner) {
            return Attempt::Refused(no_device(&self.name, owner));
        }
        let connection = (connection, outbox.clone());
        match resume {
            Some((token, acked)) => self.resume(&mut inner, owner, token, acked, connection),
            None if self.stopping.load(Ordering::SeqCst) => {
                Attempt::Refused(Refusal::new(codes::STOPPING, "the agent is stopping"))
            }
            None => self.claim(&mut inner, owner, connection),
        }
    }

    /// Resumes the session of `owner` over another connection.
    fn resume(
        &self,
        inner: &mut Inner,
        owner: &Identity,
        token: Token,
        acked: u64,
        connection: (u64, Outbox),
    ) -> Attempt {
        let session = match &mut inner.state {
            State::Owned(session)
                if session.owner.name == owner.name
                    && same(&session.token, &token)
                    && acked <= session.sent() =>
            {
                session
            }
            _ => {
                let what =
                    format!("the session with device {} is over: the card was wiped", self.name);
                return Attempt::Refused(Refusal::new(codes::NO_SESSION, what));
            }
        };
        let Some(info) = inner.info.clone() else {
            return Attempt::Wait("the card is being opened");
        };
        // An earlier connection, if there is one, ends.
        if let Some(before) = session.leave() {
            before.end();
        }
        session.acknowledge(acked);
        session.owner = owner.clone();
        let (_, outbox) = session.connection.insert(connection);
        session.away_until = None;
        tracing::info!(
            device = self.name,
            owner = owner.name,
            last = session.last,
            "session resumed"
        );
        // Under the lock, so that no answer overtakes it; every answer that the owner may lack
        // follows.
        outbox.say(&ToOwner::Opened { token, last: session.last, info });
        for (id, frame) in &session.kept {
            outbox.answer(*id, Arc::clone(frame));
        }
        Attempt::Attached(session.generation)
    }

    /// Gives a free card to `owner`. Wipes a card whose owner returns without its session, and
    /// reopens a failed one.
    fn claim(&self, inner: &mut Inner, owner: &Identity, connection: (u64, Outbox)) -> Attempt {
        match &mut inner.state {
            State::Starting => Attempt::Wait("the card is being opened"),
            State::Resetting => Attempt::Wait("the card is being wiped"),
            State::Failed(refusal) => {
                tracing::info!(
                    device = self.name,
                    owner = owner.name,
                    last = refusal.message,
                    "opened again"
                );
                inner.state = State::Starting;
                self.job(Job::Open);
                Attempt::Wait("the card is being opened")
            }
            State::Owned(session)
                if session.owner.name == owner.name && session.connection.is_none() =>
            {
                // The owner's program was restarted and does not know the session.
                self.wipe(inner);
                Attempt::Wait("the card is being wiped")
            }
            State::Owned(session) => {
                let whom = if session.owner.name == owner.name {
                    "you hold it over another connection"
                } else {
                    "another owner holds it"
                };
                Attempt::Refused(Refusal::new(
                    codes::IN_USE,
                    format!("device {} is in use: {whom}", self.name),
                ))
            }
            State::Free => self.open_session(inner, owner, connection),
        }
    }

    /// Opens a session of `owner` on a free card.
    fn open_session(
        &self,
        inner: &mut Inner,
        owner: &Identity,
        connection: (u64, Outbox),
    ) -> Attempt {
        let Some(info) = inner.info.clone() else {
            return Attempt::Wait("the card is being opened");
        };
        let mut token = [0; 32];
        if let Err(error) = getrandom::fill(&mut token) {
            return Attempt::Refused(Refusal::new(
                codes::DEVICE_FAILED,
                format!("no random bytes: {error}"),
            ));
        }
        let (token, generation) =
            (Token(token), self.generations.fetch_add(1, Ordering::Relaxed) + 1);
        let outbox = connection.1.clone();
        inner.state = State::Owned(Session {
            generation,
            owner: owner.clone(),
            token,
            last: 0,
            sent: 0,
            acked: 0,
            kept: VecDeque::new(),
            connection: Some(connection),
            away_until: None,
            working: None,
            moved: 0,
        });
        self.live.store(generation, Ordering::SeqCst);
        tracing::info!(device = self.name, owner = owner.name, "session opened");
        outbox.say(&ToOwner::Opened { token, last: 0, info });
        Attempt::Attached(generation)
    }

    /// The session of `generation`, if it has the card and uses `connection`.
    fn session(inner: &mut Inner, generation: u64, connection: u64) -> Option<&mut Session> {
        match &mut inner.state {
            State::Owned(s)
                if s.generation == generation
                    && s.connection.as_ref().is_some_and(|c| c.0 == connection) =>
            {
                Some(s)
            }
            _ => None,
        }
    }

    /// Accepts a request. A repeated request is not carried out again: its answer leaves once over
    /// each connection anyway.
    pub(crate) fn request(
        &self,
        generation: u64,
        connection: u64,
        id: u64,
        acked: u64,
        op: DeviceOp,
    ) -> Result<(), Refusal> {
        let mut inner = self.lock();
        let session = Self::session(&mut inner, generation, connection).ok_or_else(|| {
            Refusal::new(
                codes::NO_SESSION,
                format!("the session with device {} is over", self.name),
            )
        })?;
        if !session.acknowledge(acked) {
            return Err(Refusal::new(
                codes::PROTOCOL,
                format!("request {acked} is acknowledged, and its answer has not been sent yet"),
            ));
        }
        if id <= session.last {
            return match id <= session.acked {
                true => Err(Refusal::new(
                    codes::PROTOCOL,
                    format!("request {id} was answered and acknowledged"),
                )),
                false => Ok(()),
            };
        }
        if id != session.last + 1 || id - session.acked > WINDOW as u64 {
            return Err(Refusal::new(
                codes::PROTOCOL,
                format!(
                    "request {id} with {acked} acknowledged, expected {} with at most {WINDOW} open",
                    session.last + 1
                ),
            ));
        }
        session.last = id;
        session.moved += op.bulk();
        self.job(Job::Run { generation, id, op });
        Ok(())
    }

    /// Whether the session of `generation` uses `connection`.
    pub(crate) fn serves(&self, generation: u64, connection: u64) -> bool {
        Self::session(&mut self.lock(), generation, connection).is_some()
    }

    /// The request that the card has been working on for longer than `limit`.
    pub(crate) fn working(&self, generation: u64, connection: u64, limit: Duration) -> Option<u64> {
        let mut inner = self.lock();
        Self::session(&mut inner, generation, connection)?
            .working
            .filter(|(_, since)| since.elapsed() > limit)
            .map(|(id, _)| id)
    }

    /// The connection is gone: the owner may return within `grace`.
    pub(crate) fn detach(&self, generation: u64, connection: u64, grace: Duration) {
        let mut inner = self.lock();
        let Some(session) = Self::session(&mut inner, generation, connection) else { return };
        session.leave();
        session.away_until = Some(Instant::now() + grace);
        tracing::info!(device = self.name, owner = session.owner.name, "owner disconnected");
    }

    /// Wipes the card if its owner has been away for too long. A card has at most one absence,
    /// however often its owner disconnects and returns.
    pub(crate) fn reap(&self) {
        let mut inner = self.lock();
        if matches!(&inner.state, State::Owned(s) if s.connection.is_none() && s.away_until.is_some_and(|end| Instant::now() >= end))
        {
            tracing::warn!(device = self.name, "the owner did not reconnect: wiping the card");
            self.wipe(&mut inner);
        }
    }

    fn wipe(&self, inner: &mut Inner) {
        self.live.store(0, Ordering::SeqCst);
        if let State::Owned(Session { connection: Some((_, outbox)), .. }) = &inner.state {
            outbox.end();
        }
        inner.state = State::Resetting;
        self.job(Job::Wipe);
    }

    /// Accepts no further owner.
    pub(crate) fn close(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Wipes the card if it is in use, and ends its thread.
    pub(crate) fn stop(&self) {
        self.close();
        let mut inner = self.lock();
        if matches!(inner.state, State::Owned(_)) {
            self.wipe(&mut inner);
        }
        self.job(Job::Stop);
    }

    // ---- the card's thread ----

    fn work(&self, queue: &mpsc::Receiver<Job>, opener: &Opener) {
        let mut device: Option<Box<dyn Device>> = None;
        loop {
            match queue.recv_timeout(CHECK) {
                Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Job::Open) => self.open(&mut device, opener),
                Ok(Job::Wipe) => self.reset(&mut device),
                Ok(Job::Run { generation, id, op }) => {
                    let live = || self.live.load(Ordering::SeqCst) == generation;
                    let (true, Some(card)) = (live(), device.as_mut()) else { continue };
                    self.at_work(generation, Some(id));
                    let over = op == DeviceOp::Close;
                    let result = carry_out(card.as_mut(), op, &Clock::start(self.limit, &live));
                    let cycles = card.cycles();
                    let message = match result {
                        Ok(answer) => ToOwner::Done { id, cycles, answer },
                        Err(error) => {
                            // Reading a register of an image that is not loaded is normal.
                            if matches!(error, DeviceError::CtlRefused { .. }) {
                                tracing::debug!(
                                    device = self.name,
                                    code = error.code(),
                                    "request failed"
                                );
                            } else {
                                tracing::info!(
                                    device = self.name,
                                    code = error.code(),
                                    "request failed: {error}"
                                );
                            }
                            ToOwner::Failed { id, cycles, error }
                        }
                    };
                    self.answered(generation, id, message, over);
                    if over {
                        self.reset(&mut device);
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.check(&mut device, opener),
            }
        }
    }

    fn open(&self, device: &mut Option<Box<dyn Device>>, opener: &Opener) {
        // A failed device is closed before it is reopened.
        drop(device.take());
        match opener(&self.uri) {
            Ok(opened) => {
                let info = opened.info();
                tracing::info!(device = self.name, description = info.description, "opened");
                // Data of an earlier owner that this agent does not know of, or whose data it
                // failed to wipe.
                self.wipe_out(device.insert(opened).as_mut(), Some(info));
            }
            Err(error) => self.failed("does not open", &error),
        }
    }

    /// Checks an idle card, and reopens it if it failed or does not answer.
    fn check(&self, device: &mut Option<Box<dyn Device>>, opener: &Opener) {
        match self.state() {
            DeviceState::Failed => {}
            DeviceState::Free => match device.as_mut().map(|card| card.ctl_read32(mailbox::STATUS))
            {
                Some(Err(error)) => tracing::warn!(
                    device = self.name,
                    code = error.code(),
                    "the card does not answer: {error}"
                ),
                _ => return,
            },
            _ => return,
        }
        let mut inner = self.lock();
        // An owner may have attached since; it gets the error with its first request.
        if matches!(inner.state, State::Free | State::Failed(_)) {
            inner.state = State::Starting;
            drop(inner);
            self.open(device, opener);
        }
    }

    fn settle(&self, state: State, info: Option<DeviceInfo>) {
        let mut inner = self.lock();
        inner.state = state;
        if info.is_some() {
            (inner.info, inner.failed) = (info, String::new());
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    fn failed(&self, what: &str, error: &DeviceError) {
        let said = format!("the card {what}: {error}");
        let before = core::mem::replace(&mut self.lock().failed, said.clone());
        if before != said {
            tracing::error!(device = self.name, code = error.code(), "{said}");
        }
        self.settle(
            State::Failed(Refusal::new(
                error.code(),
                format!("device {} {what}: {error}", self.name),
            )),
            None,
        );
    }

    /// Wipes a card that waits for it. A card that was wiped in between may have its next owner.
    fn reset(&self, device: &mut Option<Box<dyn Device>>) {
        if self.state() == DeviceState::Resetting
            && let Some(device) = device
        {
            self.wipe_out(device.as_mut(), None);
        }
    }

    /// Frees a card for its next owner, who finds no data of the last one.
    fn wipe_out(&self, device: &mut dyn Device, info: Option<DeviceInfo>) {
        let go_on = || !self.stopping.load(Ordering::SeqCst);
        match device.reset().and_then(|()| {
            if self.clear_memory { clear(device, self.limit, &go_on) } else { Ok(()) }
        }) {
            Ok(()) => {
                tracing::info!(device = self.name, "wiped and free");
                self.settle(State::Free, info);
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
            outbox.answer(id, Arc::clone(&frame));
        }
        session.kept.push_back((id, frame));
        if over {
            tracing::info!(
                device = self.name,
                owner = session.owner.name,
                moved = session.moved,
                "session closed"
            );
            self.live.store(0, Ordering::SeqCst);
            inner.state = State::Resetting;
        }
    }
}

/// Compares two tokens in constant time.
fn same(a: &Token, b: &Token) -> bool {
    a.0.iter().zip(&b.0).fold(0, |d, (a, b)| d | (a ^ b)) == 0
}

/// The same refusal for a device that does not exist and for one that `owner` may not use.
pub(crate) fn no_device(name: &str, owner: &Identity) -> Refusal {
    Refusal::new(
        codes::NO_DEVICE,
        format!("this agent has no device {name} for owner {}", owner.name),
    )
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// A card that counts its resets.
    struct Card(Arc<AtomicU64>);

    impl Device for Card {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new("test", "a card of a test", "simulated", 0, true)
        }
        fn ctl_read32(&mut self, _: u32) -> Result<u32, DeviceError> {
            Ok(0)
        }
        fn ctl_write32(&mut self, _: u32, _: u32) -> Result<(), DeviceError> {
            Ok(())
        }
        fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
            Err(DeviceError::MemoryRange { addr, len: bytes.len() as u64, memory_bytes: 0 })
        }
        fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
            Err(DeviceError::MemoryRange { addr, len: bytes.len() as u64, memory_bytes: 0 })
        }
        fn wait_hint(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }
        fn reset(&mut self) -> Result<(), DeviceError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
        fn cycles(&self) -> Option<u64> {
            None
        }
    }

    fn eventually(what: &str, check: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(30);
        while !check() {
            assert!(Instant::now() < end, "{what} did not come about");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The agent restricts each card every second: no list changes here, only the time.
    #[test]
    fn a_session_ends_with_the_certificate_of_its_owner() {
        let (resets, revoked) = (Arc::new(AtomicU64::new(0)), Arc::new(Revoked::default()));
        let seen = Arc::clone(&resets);
        let opener: Opener = Arc::new(move |_| Ok(Box::new(Card(Arc::clone(&seen)))));
        let device = config::Device {
            uri: "vfio-user:/run/a".parse().unwrap(),
            owners: vec![],
            clear_memory: false,
        };
        let (slot, thread) =
            Slot::start("card0".into(), device, &revoked, Duration::from_secs(60), opener).unwrap();
        let is_free = || slot.state() == DeviceState::Free;
        eventually("the first wipe", || is_free() && resets.swap(0, Ordering::SeqCst) == 1);
        let (outbox, _frames) = Outbox::new();
        let open = |owner: &Identity| slot.attach(owner, None, 1, &outbox);
        let ended = Identity::named("alice", SystemTime::now());
        assert!(matches!(open(&ended), Attempt::Refused(_)) && slot.listed(&ended).is_none());
        let alice = Identity::named("alice", ended.until + Duration::from_secs(3600));
        assert!(matches!(open(&alice), Attempt::Attached(_)) && slot.listed(&alice).is_some());
        slot.restrict(None, &revoked);
        assert_eq!(slot.state(), DeviceState::InUse);
        // The hour passes.
        if let State::Owned(session) = &mut slot.lock().state {
            session.owner = ended;
        }
        slot.restrict(None, &revoked);
        eventually("the wipe", || is_free() && resets.load(Ordering::SeqCst) == 1);
        slot.stop();
        thread.join().unwrap();
    }
}
