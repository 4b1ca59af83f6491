//! A card behind an agent, as a [`Device`]: the owner's side of the protocol in [`crate::wire`].
//!
//! Bulk transfers and batches keep several requests in flight. After a lost connection the device
//! reconnects and resumes the session; [`Limits`] bound every wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use shef_device::{CtlOp, Device, DeviceError, DeviceInfo, Uri, mailbox};

use crate::link::{Link, Trouble, broken};
use crate::tls::TlsFiles;
use crate::wire::{
    DeviceAnswer, DeviceOp, Listed, MAX_BULK, MAX_OPS, ToAgent, ToOwner, Token, WINDOW, codes,
};

/// Time limits and retries.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// To connect, with the handshake and the welcome.
    pub connect: Duration,
    /// Without any message from the agent.
    pub answer: Duration,
    /// For one request in total, regardless of progress messages.
    pub request: Duration,
    /// To resume a session after a lost connection, regardless of the number of failed attempts to
    /// connect.
    pub resume: Duration,
    /// Consecutive connections that may break after the session was resumed, without an answer in
    /// between.
    pub attempts: u32,
    /// Lowest acceptable rate of a transfer in bytes a second: a transfer gets the time of a
    /// request plus the time for its bytes at this rate.
    pub rate: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            request: Duration::from_secs(900),
            resume: Duration::from_secs(20),
            attempts: 8,
            rate: 16 << 10,
        }
    }
}

/// A card behind an agent.
pub struct RemoteDevice {
    host: String,
    port: u16,
    device: String,
    tls: Arc<ClientConfig>,
    limits: Limits,
    link: Option<Link>,
    token: Token,
    info: DeviceInfo,
    cycles: Option<u64>,
    /// Number of the next request.
    next: u64,
    /// The owner has received every answer up to this one.
    acked: u64,
    /// Last request that the agent has reported as accepted.
    taken: u64,
    /// Last request that was sent over this connection or accepted before it.
    sent: u64,
    /// Unanswered requests, oldest first.
    pending: VecDeque<(u64, DeviceOp)>,
    /// Why the session ended.
    over: Option<(String, String)>,
    progress: Option<Progress>,
}

/// Called with the agent's progress messages.
pub type Progress = Box<dyn FnMut(&str) + Send>;

impl RemoteDevice {
    /// Opens the device that a `tls://` URI names.
    ///
    /// # Errors
    /// SHEF-AGT codes; [`DeviceError::MalformedUri`] for a URI of another kind.
    pub fn open(
        uri: &Uri,
        tls: &TlsFiles,
        limits: Limits,
        progress: Option<Progress>,
    ) -> Result<Self, DeviceError> {
        let Uri::Tls { host, port, device } = uri else {
            return Err(DeviceError::MalformedUri {
                uri: uri.to_string(),
                reason: "expected tls://HOST:PORT/DEVICE".to_owned(),
            });
        };
        let mut remote = Self {
            host: host.clone(),
            port: *port,
            device: device.clone(),
            tls: tls.load()?,
            limits,
            link: None,
            token: Token([0; 32]),
            info: DeviceInfo::new(uri.to_string(), "", "", 0, false),
            cycles: None,
            next: 1,
            acked: 0,
            taken: 0,
            sent: 0,
            pending: VecDeque::new(),
            over: None,
            progress,
        };
        let until = Instant::now() + limits.request;
        let (link, token, last, info) =
            remote.attach(None, until).map_err(|trouble| remote.give_up(trouble))?;
        if last != 0 {
            return Err(remote.give_up(broken("a new session has requests")));
        }
        let description = format!("behind agent {host}:{port}: {}", info.description);
        remote.info = DeviceInfo::new(
            uri.to_string(),
            description,
            info.root_of_trust,
            info.memory_bytes,
            info.counts_cycles,
        );
        (remote.link, remote.token) = (Some(link), token);
        Ok(remote)
    }

    /// Connects and opens the device, or resumes the session `resume`, by `until`.
    fn attach(
        &mut self,
        resume: Option<(Token, u64)>,
        until: Instant,
    ) -> Result<(Link, Token, u64, DeviceInfo), Trouble> {
        let mut link = Link::connect(
            &self.host,
            self.port,
            &self.tls,
            until.min(Instant::now() + self.limits.connect),
        )?;
        link.send(
            &ToAgent::Open { device: self.device.clone(), resume }.encode(),
            until.min(Instant::now() + self.limits.answer),
        )?;
        loop {
            match link.receive(until.min(Instant::now() + self.limits.answer))? {
                ToOwner::Opened { token, last, info } => return Ok((link, token, last, info)),
                ToOwner::Progress { id: 0, text } if Instant::now() < until => {
                    if let Some(progress) = &mut self.progress {
                        progress(&text);
                    }
                }
                _ => return Err(broken("expected an answer to the request to open the device")),
            }
        }
    }

    /// Ends the session for this reason, which every later call returns.
    fn give_up(&mut self, trouble: Trouble) -> DeviceError {
        let error = match trouble {
            Trouble::Lost(error) | Trouble::Refused(error) => error,
            Trouble::Silent => DeviceError::Transport {
                code: codes::TIMEOUT,
                message: format!(
                    "agent {}:{} did not answer within {} s",
                    self.host,
                    self.port,
                    self.limits.answer.as_secs()
                ),
            },
        };
        self.link = None;
        self.pending.clear();
        self.over = Some((error.code().to_owned(), error.to_string()));
        error
    }

    /// Resumes the session after `trouble` and resends unanswered requests. The time is limited,
    /// not the number of failed attempts to connect: an agent may restart, a link may be down, or
    /// the agent may have no free connection at the moment. A resumed session that breaks again
    /// counts as an attempt.
    fn recover(
        &mut self,
        mut trouble: Trouble,
        broken_before: &mut u32,
        until: Instant,
    ) -> Result<(), DeviceError> {
        self.link = None;
        let limit = self.limits.resume;
        let mut end = until.min(Instant::now() + limit);
        let mut pause = Duration::from_millis(20);
        *broken_before += 1;
        loop {
            if is_final(&trouble) || *broken_before > self.limits.attempts {
                return Err(self.give_up(trouble));
            }
            let before = self.taken;
            let resumed = self.resume(end);
            // If the agent has accepted more each time, there is progress, at most a window of
            // times.
            if self.taken > before {
                (*broken_before, end) = (0, until.min(Instant::now() + limit));
            }
            trouble = match resumed {
                Ok(()) => return Ok(()),
                Err(trouble) if Instant::now() < end => trouble,
                Err(trouble) => return Err(self.give_up(trouble)),
            };
            std::thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Resumes the session.
    fn resume(&mut self, until: Instant) -> Result<(), Trouble> {
        let (link, token, last, _) = self.attach(Some((self.token, self.acked)), until)?;
        if token != self.token || last < self.acked || last >= self.next {
            return Err(broken(format_args!(
                "the session comes back with request {last}, expected {} to {}",
                self.acked,
                self.next - 1
            )));
        }
        // Accepted requests are answered without being resent, and their answers are read before
        // anything else is sent: a write over a connection that is being cut could lose answers
        // that have arrived, and with them all progress.
        (self.taken, self.sent, self.link) = (last, last, Some(link));
        Ok(())
    }

    /// Sends every request that was not sent yet.
    fn flush(&mut self, until: Instant) -> Result<(), Trouble> {
        let link = self.link.as_mut().ok_or_else(|| broken("there is no connection"))?;
        let before = self.sent;
        for (id, op) in self.pending.iter().filter(|(id, _)| *id > before) {
            let deadline = until.min(Instant::now() + self.limits.answer);
            link.send(
                &ToAgent::Request { id: *id, acked: self.acked, op: op.clone() }.encode(),
                deadline,
            )?;
            self.sent = *id;
        }
        Ok(())
    }

    /// Sends a request, by `until`; the window must have room.
    fn submit(&mut self, op: DeviceOp, until: Instant) -> Result<(), DeviceError> {
        if let Some((code, message)) = &self.over {
            return Err(DeviceError::Remote { code: code.clone(), message: message.clone() });
        }
        debug_assert!(self.pending.len() < WINDOW);
        let id = self.next;
        self.next += 1;
        let message = ToAgent::Request { id, acked: self.acked, op };
        let sent = match &mut self.link {
            Some(link) if self.sent + 1 == id => {
                let sent =
                    link.send(&message.encode(), until.min(Instant::now() + self.limits.answer));
                sent.map(|()| self.sent = id)
            }
            Some(_) => Ok(()),
            None => Err(broken("there is no connection")),
        };
        if let ToAgent::Request { op, .. } = message {
            self.pending.push_back((id, op));
        }
        // A request that could not be sent is sent again when the session resumes.
        sent.or_else(|trouble| self.recover(trouble, &mut 0, until))
    }

    /// The answer to the oldest request, by `until`: the outer error ends the session, the inner
    /// one belongs to the request.
    fn answer(&mut self, until: Instant) -> Result<Result<DeviceAnswer, DeviceError>, DeviceError> {
        let end = until.min(Instant::now() + self.limits.request);
        let mut broken_before = 0;
        loop {
            let now = Instant::now();
            let oldest = self.pending.front().map_or(0, |(id, _)| *id);
            let flushed = if oldest > self.sent { self.flush(end) } else { Ok(()) };
            let message = flushed.and_then(|()| match &mut self.link {
                Some(_) if now >= end => Err(Trouble::Silent),
                Some(link) => link.receive(end.min(now + self.limits.answer)),
                None => Err(broken("there is no connection")),
            });
            let trouble = match message {
                Ok(ToOwner::Progress { id, text }) if id < self.next => {
                    if let Some(progress) = &mut self.progress {
                        progress(&text);
                    }
                    continue;
                }
                // An answer that arrived before the connection broke.
                Ok(ToOwner::Done { id, .. } | ToOwner::Failed { id, .. }) if id <= self.acked => {
                    continue;
                }
                Ok(ToOwner::Done { id, cycles, answer }) if id == oldest => {
                    match self.pending.pop_front() {
                        Some((_, op)) if op.takes(&answer) => {
                            (self.cycles, self.acked) = (cycles, id);
                            return Ok(Ok(answer));
                        }
                        Some(request) => {
                            self.pending.push_front(request);
                            broken(format_args!("the answer to request {id} is of the wrong kind"))
                        }
                        None => broken("an answer without a request"),
                    }
                }
                Ok(ToOwner::Failed { id, cycles, error }) if id == oldest => {
                    self.pending.pop_front();
                    (self.cycles, self.acked) = (cycles, id);
                    return Ok(Err(error));
                }
                Ok(_) => {
                    broken(format_args!("a message that is not the answer to request {oldest}"))
                }
                Err(Trouble::Silent) if Instant::now() >= end => {
                    return Err(self.give_up(Trouble::Silent));
                }
                Err(trouble) => trouble,
            };
            self.recover(trouble, &mut broken_before, end)?;
        }
    }

    fn call(&mut self, op: DeviceOp) -> Result<DeviceAnswer, DeviceError> {
        let until = Instant::now() + self.limits.request;
        self.submit(op, until)?;
        self.answer(until)?
    }

    /// Turns pieces of `len` bytes in total into requests and keeps the window full; `take` gets
    /// the answers in order. A failed request stops the stream.
    fn stream(
        &mut self,
        len: usize,
        pieces: impl Iterator<Item = DeviceOp>,
        mut take: impl FnMut(DeviceAnswer),
    ) -> Result<(), DeviceError> {
        let until = Instant::now()
            + self.limits.request
            + Duration::from_secs(len as u64 / u64::from(self.limits.rate.max(1)));
        let mut pieces = pieces.fuse();
        let mut failed = None;
        loop {
            while self.pending.len() < WINDOW && failed.is_none() {
                match pieces.next() {
                    Some(op) => self.submit(op, until)?,
                    None => break,
                }
            }
            if self.pending.is_empty() {
                return failed.map_or(Ok(()), Err);
            }
            match self.answer(until)? {
                Ok(answer) => take(answer),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
    }
}

/// Whether another connection would fail the same way. An agent without a free connection has one
/// again when others leave.
fn is_final(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Refused(error) if error.code() != codes::BUSY)
}

/// Lists the devices of an agent.
///
/// # Errors
/// SHEF-AGT codes.
pub fn list(
    host: &str,
    port: u16,
    tls: &TlsFiles,
    limits: &Limits,
) -> Result<Vec<Listed>, DeviceError> {
    let ask = || {
        let mut link = Link::connect(
            host,
            port,
            &tls.load().map_err(Trouble::Refused)?,
            Instant::now() + limits.connect,
        )?;
        let end = Instant::now() + limits.answer;
        link.send(&ToAgent::List.encode(), end)?;
        match link.receive(end)? {
            ToOwner::Devices(list) => {
                link.close();
                Ok(list)
            }
            _ => Err(broken("expected a list of devices")),
        }
    };
    ask().map_err(|trouble| match trouble {
        Trouble::Lost(error) | Trouble::Refused(error) => error,
        Trouble::Silent => DeviceError::Transport {
            code: codes::TIMEOUT,
            message: format!("agent {host}:{port} did not answer in time"),
        },
    })
}

/// Addresses and lengths of the pieces of a transfer.
fn pieces(addr: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    (0..len)
        .step_by(MAX_BULK)
        .map(move |at| (addr.wrapping_add(at as u64), at, MAX_BULK.min(len - at)))
}

impl Device for RemoteDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        // The answer is known to have as many values as the batch reads.
        Ok(self.ctl_batch(&[CtlOp::Read { offset }])?.first().copied().unwrap_or(u32::MAX))
    }

    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.ctl_batch(&[CtlOp::Write { offset, value }]).map(|_| ())
    }

    fn ctl_batch(&mut self, ops: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
        let mut all = Vec::new();
        for ops in ops.chunks(MAX_OPS) {
            let reads = ops.iter().filter(|op| !matches!(op, CtlOp::Write { .. })).count();
            let DeviceAnswer::Values(values) = self.call(DeviceOp::Ctl(ops.to_vec()))? else {
                break;
            };
            let last = ops.iter().rfind(|op| !matches!(op, CtlOp::Write { .. }));
            let ended = values.len() < reads
                || last.zip(values.last()).is_some_and(|(op, value)| !op.settled(*value));
            all.extend(values);
            if ended {
                break;
            }
        }
        Ok(all)
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let ops = pieces(addr, bytes.len())
            .map(|(addr, _, len)| DeviceOp::MemRead { addr, len: len as u32 });
        let (len, mut rest) = (bytes.len(), &mut *bytes);
        self.stream(len, ops, |answer| {
            if let DeviceAnswer::Bytes(piece) = answer {
                let (head, tail) = core::mem::take(&mut rest).split_at_mut(piece.len());
                head.copy_from_slice(&piece);
                rest = tail;
            }
        })
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let ops = pieces(addr, bytes.len())
            .map(|(addr, at, len)| DeviceOp::MemWrite { addr, data: bytes[at..at + len].to_vec() });
        self.stream(bytes.len(), ops, |_| {})
    }

    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        self.call(DeviceOp::WaitHint).map(|_| ())
    }

    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        self.call(DeviceOp::WaitInterrupt).map(|answer| answer == DeviceAnswer::Flag(true))
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.call(DeviceOp::Reset).map(|_| ())
    }

    fn kernel_call(&mut self, request: &[u8]) -> Result<Vec<u8>, DeviceError> {
        if request.len() > mailbox::MAX_REQUEST {
            return Err(DeviceError::MailboxTooLong {
                len: request.len(),
                max: mailbox::MAX_REQUEST,
            });
        }
        match self.call(DeviceOp::Kernel(request.to_vec()))? {
            DeviceAnswer::Bytes(bytes) if bytes.len() <= mailbox::MAX_ANSWER => Ok(bytes),
            DeviceAnswer::Bytes(bytes) => {
                Err(DeviceError::MailboxTooLong { len: bytes.len(), max: mailbox::MAX_ANSWER })
            }
            _ => Ok(Vec::new()),
        }
    }

    fn cycles(&self) -> Option<u64> {
        self.cycles
    }
}

impl Drop for RemoteDevice {
    /// Ends the session, so that the card is free for others at once. If that fails, the agent ends
    /// it after its grace period.
    fn drop(&mut self) {
        if self.over.is_none() && self.pending.is_empty() && self.link.is_some() {
            self.limits = Limits {
                answer: Duration::from_secs(5),
                request: Duration::from_secs(10),
                attempts: 0,
                ..self.limits
            };
            let _ = self.call(DeviceOp::Close);
        }
        if let Some(link) = &mut self.link {
            link.close();
        }
    }
}
