//! Serves a device to one client at a time.

mod bus;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use shef_device::{Event, poll_readable};

use crate::listening::Listening;
use crate::socket::Socket;
use crate::wire::{
    self, HEADER, Header, MAX_DATA, MAX_MESSAGE, RegionInfo, Request, irq_flag, region_flag,
};
use crate::{VfioUserError, errno, irq, region};
pub use bus::Bus;

/// Time limit for a message once it has begun, and for the client to receive an answer.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the server checks whether to stop.
const TICK: Duration = Duration::from_millis(100);
/// How long a new client waits for the current one to leave.
const LEAVING: Duration = Duration::from_millis(300);
/// Time limit for a refused client's first message.
const REFUSING: Duration = Duration::from_secs(1);
/// Most clients that wait at once; further ones are dropped.
const KNOCKING: usize = 32;

/// Return value of a [`Backend`] for no answer at all, as from a device that hangs.
pub const NO_ANSWER: u32 = u32::MAX;

/// A region of a device.
#[derive(Debug, Default)]
pub struct Region {
    /// Size in bytes; 0 if the region does not exist.
    pub size: u64,
    /// Whether it can be written.
    pub writable: bool,
    /// A file that clients may map, and the offset of the region in it.
    pub memory: Option<(OwnedFd, u64)>,
}

/// The device behind a server. Its error numbers are sent to the client unchanged.
pub trait Backend {
    /// A client has connected. The device accesses its memory and interrupts through `bus` until it
    /// leaves.
    fn attached(&mut self);

    /// The client has left; its mappings can no longer be accessed.
    fn detached(&mut self);

    /// Reads a region; the range is inside it.
    ///
    /// # Errors
    /// The error number for the client.
    fn read(&mut self, region: u32, offset: u64, out: &mut [u8]) -> Result<(), u32>;

    /// Writes a region; the range is inside it.
    ///
    /// # Errors
    /// The error number for the client.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), u32>;

    /// Resets the device.
    ///
    /// # Errors
    /// The error number for the client.
    fn reset(&mut self) -> Result<(), u32>;
}

/// A listening socket and the regions of its device.
pub struct Server {
    socket: Listening,
    regions: Vec<Region>,
    bus: Bus,
    limit: Duration,
}

/// An answer: body and, optionally, a descriptor.
type Reply<'a> = (Vec<u8>, Option<BorrowedFd<'a>>);

impl Server {
    /// Listens on a socket at `path` ([`Listening::bind`]). Clients see `regions` by index (a PCI
    /// function uses the indices of [`crate::region`]) and the vectors of `bus`.
    ///
    /// # Errors
    /// Those of [`Listening::bind`].
    pub fn bind(path: &Path, regions: Vec<Region>, bus: Bus) -> Result<Self, VfioUserError> {
        Ok(Self { socket: Listening::bind(path)?, regions, bus, limit: MESSAGE_TIMEOUT })
    }

    /// Sets the time limit for each message, from its first byte to its last, and for the first
    /// message after the connection.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Serves clients, one at a time, until `stop` is set.
    ///
    /// # Errors
    /// [`VfioUserError::Serve`] if the socket fails.
    pub fn run(&self, backend: &mut dyn Backend, stop: &AtomicBool) -> Result<(), VfioUserError> {
        let busy = AtomicBool::new(false);
        let (sender, clients) = mpsc::channel();
        std::thread::scope(|scope| {
            let door = scope.spawn(|| {
                let result = self.door(&busy, sender, stop);
                stop.store(true, Ordering::Relaxed);
                result
            });
            while !stop.load(Ordering::Relaxed) {
                let Ok(stream) = clients.recv_timeout(TICK) else { continue };
                // If the connection is unusable, the client has already left.
                let _ = self.serve(stream, backend, &busy, stop);
            }
            let failed =
                |error| VfioUserError::Serve { path: self.socket.path().to_owned(), error };
            door.join()
                .unwrap_or_else(|_| Err(io::Error::other("the accepting thread stopped")))
                .map_err(failed)
        })
    }

    /// Admits one client at a time and refuses the others. Each waiting client has a thread, so
    /// that a slow one delays no other.
    fn door(
        &self,
        busy: &AtomicBool,
        clients: mpsc::Sender<UnixStream>,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let knocking = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                if !poll_readable(&[self.socket.listener().as_fd()], TICK)?[0] {
                    continue;
                }
                let stream = match self.socket.listener().accept() {
                    Ok((stream, _)) if knocking.load(Ordering::Acquire) < KNOCKING => stream,
                    Ok(_) => continue,
                    // The client has left already, or no descriptors are available at the moment.
                    Err(_) => {
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    }
                };
                knocking.fetch_add(1, Ordering::AcqRel);
                let (clients, knocking) = (clients.clone(), &knocking);
                let knock = move || {
                    if enter(busy, stop) {
                        let _ = clients.send(stream);
                    } else {
                        let _ = refuse(stream);
                    }
                    knocking.fetch_sub(1, Ordering::AcqRel);
                };
                std::thread::Builder::new().spawn_scoped(scope, knock)?;
            }
            Ok(())
        })
    }

    /// Serves one client until it leaves.
    fn serve(
        &self,
        stream: UnixStream,
        backend: &mut dyn Backend,
        busy: &AtomicBool,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let connected = Socket::new(stream).and_then(|socket| Ok((socket.try_clone()?, socket)));
        let result = connected.and_then(|(out, socket)| {
            self.bus.attach(out, self.limit);
            backend.attached();
            let result = self.messages(&socket, backend, stop);
            self.bus.detach();
            socket.shutdown();
            result
        });
        // The next client may wait from now on; it is served once the device has seen the last one
        // leave.
        busy.store(false, Ordering::Release);
        backend.detached();
        result
    }

    fn messages(
        &self,
        socket: &Socket,
        backend: &mut dyn Backend,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let mut negotiated = false;
        let mut body = Vec::new();
        let greeted = Instant::now() + self.limit;
        while !stop.load(Ordering::Relaxed) {
            if !socket.wait(TICK)? {
                if !negotiated && Instant::now() >= greeted {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                continue;
            }
            let deadline = Instant::now() + self.limit;
            let (mut head, mut fds) = ([0; HEADER], Vec::new());
            if !socket.recv(&mut head, &mut fds, deadline)? {
                return Ok(());
            }
            let header = Header::decode(&head);
            let Some(len) = (header.size as usize).checked_sub(HEADER) else {
                // The beginning of the next message is unknown.
                return self.bus.send(&header.refusal(errno::EINVAL), &[], &[]);
            };
            if len > MAX_MESSAGE - HEADER {
                skip(socket, len, deadline)?;
                self.bus.send(&header.refusal(errno::EMSGSIZE), &[], &[])?;
                continue;
            }
            body.resize(len, 0);
            if len > 0 && !socket.recv(&mut body, &mut fds, deadline)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if header.is_reply() {
                self.bus.replied(&header, &body);
                continue;
            }
            let answer = if header.is_command() {
                self.command(&header, &body, fds, &mut negotiated, backend)
            } else {
                Err(errno::EINVAL)
            };
            if header.wants_reply() && !matches!(answer, Err(NO_ANSWER)) {
                match &answer {
                    Ok((body, fd)) => {
                        self.bus.send(&header.reply(body.len()), body, fd.as_slice())?;
                    }
                    Err(errno) => self.bus.send(&header.refusal(*errno), &[], &[])?,
                }
            }
            if !negotiated {
                // The client has another version, or sent no version.
                return Ok(());
            }
        }
        Ok(())
    }

    fn command(
        &self,
        header: &Header,
        body: &[u8],
        mut fds: Vec<OwnedFd>,
        negotiated: &mut bool,
        backend: &mut dyn Backend,
    ) -> Result<Reply<'_>, u32> {
        let request = Request::decode(header.command, body)?;
        if *negotiated == matches!(request, Request::Version { .. }) {
            return Err(errno::EINVAL);
        }
        if !fds.is_empty() && !matches!(request, Request::DmaMap { .. } | Request::SetIrqs { .. }) {
            return Err(errno::EINVAL);
        }
        let empty = || (Vec::new(), None);
        match request {
            Request::Version { major, minor, capabilities } => {
                if major != wire::VERSION.0 {
                    return Err(errno::EPROTO);
                }
                *negotiated = true;
                self.bus.limit(capabilities.max_data);
                Ok((
                    Request::Version { major, minor: minor.min(wire::VERSION.1), capabilities }
                        .encode()
                        .1,
                    None,
                ))
            }
            Request::DmaMap { flags, offset, address, size } => {
                if fds.len() > 1 {
                    return Err(errno::EINVAL);
                }
                self.bus.map(flags, offset, address, size, fds.pop()).map(|()| empty())
            }
            Request::DmaUnmap { flags, address, size } => {
                let size = match flags {
                    0 => self.bus.unmap(address, size)?,
                    wire::UNMAP_ALL => self.bus.unmap_all(),
                    _ => return Err(errno::EINVAL),
                };
                Ok((Request::DmaUnmap { flags, address, size }.encode().1, None))
            }
            Request::GetInfo => {
                let info = wire::Writer::default()
                    .u32(16)
                    .u32(wire::INFO_RESET | wire::INFO_PCI)
                    .u32(region::COUNT)
                    .u32(irq::COUNT);
                Ok((info.0, None))
            }
            Request::GetRegionInfo { argsz, index } => self.region_info(argsz, index),
            Request::GetIrqInfo { index } => {
                if index >= irq::COUNT {
                    return Err(errno::EINVAL);
                }
                let (flags, count) = if index == irq::MSIX {
                    (
                        wire::IRQ_EVENTFD | wire::IRQ_MASKABLE | wire::IRQ_NORESIZE,
                        self.bus.vectors(),
                    )
                } else {
                    (0, 0)
                };
                Ok((wire::Writer::default().u32(16).u32(flags).u32(index).u32(count).0, None))
            }
            Request::SetIrqs { flags, index, start, count, data } => {
                self.set_irqs(flags, index, start, count, data, fds).map(|()| empty())
            }
            Request::RegionRead { offset, region, count } => {
                let len = self.check(region, offset, count as usize, false)?;
                let mut out = wire::Writer::default().u64(offset).u32(region).u32(count).0;
                out.resize(16 + len, 0);
                backend.read(region, offset, &mut out[16..])?;
                Ok((out, None))
            }
            Request::RegionWrite { offset, region, data } => {
                self.check(region, offset, data.len(), true)?;
                backend.write(region, offset, data)?;
                Ok((wire::Writer::default().u64(offset).u32(region).u32(data.len() as u32).0, None))
            }
            // These go from server to client.
            Request::DmaRead { .. } | Request::DmaWrite { .. } => Err(errno::EOPNOTSUPP),
            Request::Reset => {
                self.bus.cancel();
                backend.reset().map(|()| empty())
            }
        }
    }

    fn region_info(&self, argsz: u32, index: u32) -> Result<Reply<'_>, u32> {
        if index >= region::COUNT || argsz < 32 {
            return Err(errno::EINVAL);
        }
        let Some(r) = self.regions.get(index as usize) else {
            return Ok((RegionInfo::default().encode(index, argsz), None));
        };
        let mut info = RegionInfo { size: r.size, ..RegionInfo::default() };
        if r.size > 0 {
            info.flags = region_flag::READ | if r.writable { region_flag::WRITE } else { 0 };
        }
        let mut fd = None;
        if let Some((file, offset)) = &r.memory {
            info.offset = *offset;
            info.areas = vec![(0, r.size)];
            fd = Some(file.as_fd());
        }
        Ok((info.encode(index, argsz), fd))
    }

    /// Checks that a range is entirely inside a region.
    fn check(&self, region: u32, offset: u64, len: usize, write: bool) -> Result<usize, u32> {
        let r = self.regions.get(region as usize).filter(|r| r.size > 0).ok_or(errno::EINVAL)?;
        let fits =
            len <= MAX_DATA && offset.checked_add(len as u64).is_some_and(|end| end <= r.size);
        if fits && (!write || r.writable) { Ok(len) } else { Err(errno::EINVAL) }
    }

    fn set_irqs(
        &self,
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
        data: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<(), u32> {
        use irq_flag::{
            ACTION_MASK, ACTION_TRIGGER, ACTION_UNMASK, DATA_BOOL, DATA_EVENTFD, DATA_NONE,
        };
        let vectors = if index == irq::MSIX { self.bus.vectors() } else { 0 };
        let end = start
            .checked_add(count)
            .filter(|end| *end <= vectors && index < irq::COUNT)
            .ok_or(errno::EINVAL)?;
        let (source, action) = (
            flags & (DATA_NONE | DATA_BOOL | DATA_EVENTFD),
            flags & (ACTION_MASK | ACTION_UNMASK | ACTION_TRIGGER),
        );
        if source | action != flags || (!fds.is_empty() && source != DATA_EVENTFD) {
            return Err(errno::EINVAL);
        }
        let range = start..end;
        match (source, action) {
            (DATA_EVENTFD, ACTION_TRIGGER) => {
                if fds.is_empty() {
                    range.for_each(|v| self.bus.connect(v, None));
                } else if fds.len() == range.len() {
                    range.zip(fds).for_each(|(v, fd)| self.bus.connect(v, Some(Event::from(fd))));
                } else {
                    return Err(errno::EINVAL);
                }
            }
            (DATA_NONE, ACTION_TRIGGER) if count == 0 => {
                (0..vectors).for_each(|v| self.bus.connect(v, None));
            }
            (DATA_NONE | DATA_BOOL, ACTION_MASK | ACTION_UNMASK | ACTION_TRIGGER) => {
                for (i, vector) in range.enumerate() {
                    if source == DATA_BOOL && data.get(i).is_none_or(|b| *b == 0) {
                        continue;
                    }
                    match action {
                        ACTION_TRIGGER => {
                            self.bus.interrupt(vector);
                        }
                        action => self.bus.mask(vector, action == ACTION_MASK),
                    }
                }
            }
            _ => return Err(errno::EINVAL),
        }
        Ok(())
    }
}

/// Takes the client's seat once it is free, within [`LEAVING`]: the last client may have left
/// without the server noticing yet, as when programs run one right after the other.
fn enter(busy: &AtomicBool, stop: &AtomicBool) -> bool {
    let knocked = Instant::now();
    while busy.swap(true, Ordering::AcqRel) {
        if knocked.elapsed() >= LEAVING || stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Answers the first message of a client that connects while another is served.
fn refuse(stream: UnixStream) -> io::Result<()> {
    let (socket, deadline) = (Socket::new(stream)?, Instant::now() + REFUSING);
    let (mut head, mut fds) = ([0; HEADER], Vec::new());
    if socket.recv(&mut head, &mut fds, deadline)? {
        let header = Header::decode(&head);
        skip(&socket, (header.size as usize).saturating_sub(HEADER).min(MAX_MESSAGE), deadline)?;
        socket.send(&header.refusal(errno::EBUSY).encode(), &[], &[], deadline)?;
    }
    Ok(())
}

/// Discards bytes of the stream, so that the next message is read from its beginning.
fn skip(socket: &Socket, mut len: usize, deadline: Instant) -> io::Result<()> {
    let mut bin = vec![0; len.min(64 << 10)];
    while len > 0 {
        let n = len.min(bin.len());
        if !socket.recv(&mut bin[..n], &mut Vec::new(), deadline)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        len -= n;
    }
    Ok(())
}
