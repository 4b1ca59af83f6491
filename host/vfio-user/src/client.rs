//! Drives a device that another process serves.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shef_device::{Event, SharedMemory, poll_readable};

use crate::socket::Socket;
use crate::wire::{
    Capabilities, HEADER, Header, MAP_READ, MAP_WRITE, MAX_DATA, MAX_MESSAGE, RegionInfo, Request,
    VERSION, Writer, command, irq_flag,
};
use crate::{VfioUserError, errno, irq, region};

/// Default time limit for a server's answer.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// Most outstanding replies to commands that have timed out.
const MAX_LATE: usize = 64;

type Result<T> = std::result::Result<T, VfioUserError>;
/// A whole message: header, body, descriptors.
type Message = (Header, Vec<u8>, Vec<OwnedFd>);

/// A region, as the server describes it.
#[derive(Debug)]
struct Region {
    info: RegionInfo,
    file: Option<OwnedFd>,
}

/// A connection to a server. One command at a time; while the client waits, it answers the device's
/// accesses to memory.
pub struct Client {
    path: PathBuf,
    socket: Socket,
    timeout: Duration,
    next: u16,
    /// Commands that have timed out, whose replies are to be discarded.
    late: HashSet<u16>,
    /// Set when the stream is in an unknown state: nothing more is sent.
    broken: bool,
    max_data: usize,
    max_fds: usize,
    regions: Vec<Region>,
    vectors: u32,
    /// Memory mapped without a file, by address: the device accesses it by message.
    by_message: BTreeMap<u64, (Arc<SharedMemory>, u64)>,
}

impl Client {
    /// Connects and reads the device's description. `timeout` is the limit for each answer.
    ///
    /// # Errors
    /// [`VfioUserError::Connect`], [`VfioUserError::InUse`], [`VfioUserError::Protocol`],
    /// [`VfioUserError::TimedOut`].
    pub fn connect(path: &Path, timeout: Duration) -> Result<Self> {
        let failed = |error| VfioUserError::Connect { path: path.to_owned(), error };
        let socket = UnixStream::connect(path).and_then(Socket::new).map_err(failed)?;
        let mut client = Self {
            path: path.to_owned(),
            socket,
            timeout,
            next: 0,
            late: HashSet::new(),
            broken: false,
            max_data: MAX_DATA,
            max_fds: 1,
            regions: Vec::new(),
            vectors: 0,
            by_message: BTreeMap::new(),
        };
        client.negotiate()?;
        client.describe()?;
        Ok(client)
    }

    fn negotiate(&mut self) -> Result<()> {
        let hello = Request::Version {
            major: VERSION.0,
            minor: VERSION.1,
            capabilities: Capabilities::default(),
        };
        let (body, _) = match self.call(&hello, &[]) {
            Err(VfioUserError::Refused { errno: errno::EBUSY, .. }) => {
                return Err(VfioUserError::InUse { path: self.path.clone() });
            }
            Err(VfioUserError::Refused { errno, .. }) => {
                let why = io::Error::from_raw_os_error(errno as i32);
                return Err(self.protocol(format!(
                    "it refused version {}.{} of the protocol with {why}",
                    VERSION.0, VERSION.1
                )));
            }
            other => other?,
        };
        match Request::decode(command::VERSION, &body) {
            Ok(Request::Version { major, capabilities, .. }) if major == VERSION.0 => {
                self.max_data = capabilities.max_data;
                self.max_fds = capabilities.max_fds.max(1);
                Ok(())
            }
            Ok(Request::Version { major, .. }) => Err(self.protocol(format!(
                "it speaks version {major} of the protocol, this program version {}",
                VERSION.0
            ))),
            _ => Err(self.protocol("its version message is malformed".to_owned())),
        }
    }

    fn describe(&mut self) -> Result<()> {
        for index in 0..region::COUNT {
            let (mut body, mut fds) =
                self.call(&Request::GetRegionInfo { argsz: 32, index }, &[])?;
            let (mut info, need) =
                RegionInfo::decode(&body).map_err(|what| self.protocol(what.to_owned()))?;
            if (33..=4096).contains(&need) {
                (body, fds) = self.call(&Request::GetRegionInfo { argsz: need, index }, &[])?;
                (info, _) =
                    RegionInfo::decode(&body).map_err(|what| self.protocol(what.to_owned()))?;
            }
            self.regions.push(Region { info, file: fds.into_iter().next() });
        }
        let (body, _) = self.call(&Request::GetIrqInfo { index: irq::MSIX }, &[])?;
        let count = body.get(12..16).and_then(|b| b.first_chunk()).map(|b| u32::from_le_bytes(*b));
        self.vectors = count
            .ok_or_else(|| self.protocol("its description of MSI-X is malformed".to_owned()))?;
        Ok(())
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of MSI-X vectors.
    pub fn vectors(&self) -> u32 {
        self.vectors
    }

    /// A region, as the server describes it. A region that does not exist has no bytes.
    pub fn region(&self, index: u32) -> RegionInfo {
        self.regions.get(index as usize).map(|r| r.info.clone()).unwrap_or_default()
    }

    /// Maps a region that the server lets clients map as a whole; `None` if it does not, or if the
    /// server could truncate the file and thereby kill this process.
    ///
    /// # Errors
    /// [`VfioUserError::System`].
    pub fn map_region(&self, index: u32) -> Result<Option<SharedMemory>> {
        let system = |error| VfioUserError::System { what: "mapping a region", error };
        let Some(Region { info, file: Some(file) }) = self.regions.get(index as usize) else {
            return Ok(None);
        };
        // A region with partial areas, or in the middle of a file, is accessed by message.
        if info.areas != [(0, info.size)] || info.offset != 0 {
            return Ok(None);
        }
        let file = file.try_clone().map_err(system)?.into();
        if !SharedMemory::is_steady(&file) {
            return Ok(None);
        }
        SharedMemory::map(file, info.size, true).map(Some).map_err(system)
    }

    /// Reads a region, in as many messages as needed.
    ///
    /// # Errors
    /// [`VfioUserError::Refused`] if the server refuses, and the connection's errors.
    pub fn read(&mut self, region: u32, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut at = offset;
        for piece in out.chunks_mut(self.max_data) {
            let (body, _) = self.call(
                &Request::RegionRead { offset: at, region, count: piece.len() as u32 },
                &[],
            )?;
            match body.get(16..) {
                Some(data) if data.len() == piece.len() => piece.copy_from_slice(data),
                _ => {
                    return Err(self.protocol(format!(
                        "a read of {} bytes returned {}",
                        piece.len(),
                        body.len()
                    )));
                }
            }
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Writes a region, in as many messages as needed.
    ///
    /// # Errors
    /// As [`Client::read`].
    pub fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<()> {
        let mut at = offset;
        for piece in data.chunks(self.max_data) {
            self.call(&Request::RegionWrite { offset: at, region, data: piece }, &[])?;
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Writes a few bytes of a region without waiting for the answer, like a posted write on PCIe:
    /// a later read shows whether it arrived.
    ///
    /// # Errors
    /// The connection's.
    pub fn post(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<()> {
        let (header, body) = self.command(&Request::RegionWrite { offset, region, data })?;
        let sent =
            self.socket.send(&header.posted().encode(), &body, &[], Instant::now() + self.timeout);
        sent.map_err(|error| self.cut(&error))
    }

    /// Maps `memory` at `address` for the device; the server maps it too.
    ///
    /// # Errors
    /// [`VfioUserError::Refused`], also if the address is already mapped, and the connection's
    /// errors.
    pub fn dma_map(&mut self, address: u64, memory: &SharedMemory) -> Result<()> {
        let request =
            Request::DmaMap { flags: MAP_READ | MAP_WRITE, offset: 0, address, size: memory.len() };
        self.call(&request, &[memory.fd()]).map(|_| ())
    }

    /// Maps `memory` at `address` for access by message only. The client answers these messages
    /// while it waits.
    ///
    /// # Errors
    /// As [`Client::dma_map`].
    pub fn dma_map_by_message(&mut self, address: u64, memory: &Arc<SharedMemory>) -> Result<()> {
        let size = memory.len();
        self.by_message.insert(address, (Arc::clone(memory), size));
        let mapped = self
            .call(&Request::DmaMap { flags: MAP_READ | MAP_WRITE, offset: 0, address, size }, &[])
            .map(|_| ());
        if mapped.is_err() {
            self.by_message.remove(&address);
        }
        mapped
    }

    /// Unmaps the memory at `address` from the device.
    ///
    /// # Errors
    /// [`VfioUserError::Refused`] and the connection's errors.
    pub fn dma_unmap(&mut self, address: u64, size: u64) -> Result<()> {
        self.call(&Request::DmaUnmap { flags: 0, address, size }, &[])?;
        self.by_message.remove(&address);
        Ok(())
    }

    /// Connects the vectors from `first` on to these events.
    ///
    /// # Errors
    /// [`VfioUserError::Refused`] if there are fewer vectors, and the connection's errors.
    pub fn connect_interrupts(&mut self, first: u32, events: &[&Event]) -> Result<()> {
        let mut start = first;
        for part in events.chunks(self.max_fds) {
            let fds: Vec<BorrowedFd<'_>> = part.iter().map(|e| e.as_fd()).collect();
            let flags = irq_flag::DATA_EVENTFD | irq_flag::ACTION_TRIGGER;
            self.call(
                &Request::SetIrqs {
                    flags,
                    index: irq::MSIX,
                    start,
                    count: part.len() as u32,
                    data: &[],
                },
                &fds,
            )?;
            start += part.len() as u32;
        }
        Ok(())
    }

    /// Disconnects all vectors.
    ///
    /// # Errors
    /// The connection's.
    pub fn disconnect_interrupts(&mut self) -> Result<()> {
        let flags = irq_flag::DATA_NONE | irq_flag::ACTION_TRIGGER;
        self.call(&Request::SetIrqs { flags, index: irq::MSIX, start: 0, count: 0, data: &[] }, &[])
            .map(|_| ())
    }

    /// Resets the device.
    ///
    /// # Errors
    /// [`VfioUserError::Refused`] and the connection's errors.
    pub fn reset(&mut self) -> Result<()> {
        self.call(&Request::Reset, &[]).map(|_| ())
    }

    /// Waits for an event, for at most `timeout`, while answering the device. Returns whether it
    /// arrived.
    ///
    /// # Errors
    /// The connection's.
    pub fn wait(&mut self, event: &Event, timeout: Duration) -> Result<bool> {
        let system = |error| VfioUserError::System { what: "waiting for an interrupt", error };
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let [raised, told] =
                poll_readable(&[event.as_fd(), self.socket.as_fd()], left).map_err(system)?;
            if raised && event.take().map_err(system)? > 0 {
                return Ok(true);
            }
            if told {
                self.usable()?;
                let (header, body, _) =
                    self.receive(Instant::now() + self.timeout)?.ok_or_else(|| self.gone())?;
                self.aside(&header, &body)?;
            }
            // A server that sends constantly does not extend the deadline.
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    fn protocol(&self, what: String) -> VfioUserError {
        VfioUserError::Protocol { path: self.path.clone(), what }
    }

    fn gone(&self) -> VfioUserError {
        VfioUserError::Disconnected { path: self.path.clone() }
    }

    fn usable(&self) -> Result<()> {
        if self.broken { Err(self.gone()) } else { Ok(()) }
    }

    /// Closes the connection after an error.
    fn give_up(&mut self, error: VfioUserError) -> VfioUserError {
        self.broken = true;
        self.socket.shutdown();
        error
    }

    /// Header and body of the next command.
    fn command(&mut self, request: &Request<'_>) -> Result<(Header, Vec<u8>)> {
        self.usable()?;
        let (command, body) = request.encode();
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        Ok((Header::command(id, command, body.len()), body))
    }

    /// Sends a command and waits for its reply.
    fn call(
        &mut self,
        request: &Request<'_>,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Vec<u8>, Vec<OwnedFd>)> {
        let (asked, body) = self.command(request)?;
        let Header { id, command, .. } = asked;
        // If a server closes at once, its earlier messages can still be read.
        let end = Instant::now() + self.timeout;
        let sent = self.socket.send(&asked.encode(), &body, fds, end);
        let mut over = false;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let readable = self
                .socket
                .wait(left)
                .map_err(|error| VfioUserError::System { what: "waiting for an answer", error })?;
            // A message that arrived in time may be read late; a server that sends constantly does
            // not extend the deadline.
            if std::mem::replace(&mut over, left.is_zero()) || !readable {
                let error = VfioUserError::TimedOut { command, ms: self.timeout.as_millis() };
                self.late.insert(id);
                // A half-written message, or too many unanswered ones: the connection cannot
                // continue.
                return Err(if sent.is_err() || self.late.len() > MAX_LATE {
                    self.give_up(error)
                } else {
                    error
                });
            }
            let Some((header, body, fds)) = self.receive(end)? else {
                let gone = self.gone();
                return Err(self.give_up(gone));
            };
            if header.is_reply() && header.id == id {
                if header.command != command {
                    let error = self.protocol(format!(
                        "expected an answer to {}, found one to {}",
                        command::name(command),
                        command::name(header.command)
                    ));
                    return Err(self.give_up(error));
                }
                return match header.failed() {
                    Some(errno) => Err(VfioUserError::Refused { command, errno }),
                    None => Ok((body, fds)),
                };
            }
            self.aside(&header, &body)?;
        }
    }

    /// Receives one entire message by `deadline`; `None` at the end of the connection.
    fn receive(&mut self, deadline: Instant) -> Result<Option<Message>> {
        let (mut head, mut fds) = ([0; HEADER], Vec::new());
        match self.socket.recv(&mut head, &mut fds, deadline) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(self.cut(&error)),
        }
        let header = Header::decode(&head);
        let Some(len) =
            (header.size as usize).checked_sub(HEADER).filter(|len| *len <= MAX_MESSAGE - HEADER)
        else {
            let error =
                self.protocol(format!("a message declares a length of {} bytes", header.size));
            return Err(self.give_up(error));
        };
        let mut body = vec![0; len];
        match self.socket.recv(&mut body, &mut fds, deadline) {
            Ok(true) => Ok(Some((header, body, fds))),
            Ok(false) => Ok(None),
            Err(error) => Err(self.cut(&error)),
        }
    }

    /// A read failed: the connection is lost, or stalled in the middle of a message.
    fn cut(&mut self, error: &io::Error) -> VfioUserError {
        let error = match error.kind() {
            io::ErrorKind::InvalidData => self.protocol(error.to_string()),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                self.protocol("a message is incomplete".to_owned())
            }
            _ => self.gone(),
        };
        self.give_up(error)
    }

    /// Handles a message other than the expected reply.
    fn aside(&mut self, header: &Header, body: &[u8]) -> Result<()> {
        if header.is_reply() {
            if self.late.remove(&header.id) {
                return Ok(());
            }
            let error = self.protocol(format!(
                "an answer to {} without a request",
                command::name(header.command)
            ));
            return Err(self.give_up(error));
        }
        let answer =
            if header.is_command() { self.serve(header, body) } else { Err(errno::EINVAL) };
        if !header.wants_reply() {
            return Ok(());
        }
        let deadline = Instant::now() + self.timeout;
        let sent = match answer {
            Ok(body) => self.socket.send(&header.reply(body.len()).encode(), &body, &[], deadline),
            Err(errno) => self.socket.send(&header.refusal(errno).encode(), &[], &[], deadline),
        };
        sent.map_err(|error| self.cut(&error))
    }

    /// Answers the device's access to memory that it cannot reach directly.
    fn serve(&self, header: &Header, body: &[u8]) -> std::result::Result<Vec<u8>, u32> {
        let find = |address: u64, len: u64| {
            let (start, (memory, size)) =
                self.by_message.range(..=address).next_back().ok_or(errno::EFAULT)?;
            let into = address - start;
            if into.checked_add(len).is_none_or(|end| end > *size) {
                Err(errno::EFAULT)
            } else {
                Ok((memory, into))
            }
        };
        match Request::decode(header.command, body)? {
            Request::DmaRead { address, count } => {
                let (memory, at) = find(address, count)?;
                let mut out = Writer::default().u64(address).u64(count).0;
                if count > MAX_DATA as u64 {
                    return Err(errno::EINVAL);
                }
                out.resize(16 + count as usize, 0);
                memory.read(at, &mut out[16..]).map_err(|_| errno::EFAULT)?;
                Ok(out)
            }
            Request::DmaWrite { address, data } => {
                let (memory, at) = find(address, data.len() as u64)?;
                memory.write(at, data).map_err(|_| errno::EFAULT)?;
                Ok(Writer::default().u64(address).u64(data.len() as u64).0)
            }
            _ => Err(errno::EOPNOTSUPP),
        }
    }
}
