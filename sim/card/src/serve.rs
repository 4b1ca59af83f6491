//! A card as a PCI function that other processes drive over vfio-user.
//!
//! The card runs on its own thread, so its clock runs between accesses; the server passes it
//! accesses in order. An idle clock stops after a while and restarts with the next access.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::Duration;

use shef_device::pci::{BAR_CTL, BAR_MEM, BAR_MSIX, MSIX_BYTES, VECTOR_ACCELERATOR, VECTORS};
use shef_device::{CTL_BYTES, Device, SharedMemory, mailbox, ring};
use shef_model::{Bytes, SparseMemory};
use shef_rtl::f2::BAR0_BYTES;
use shef_vfio_user::{Backend, Bus, Listening, NO_ANSWER, Region, Server, VfioUserError, region};

use crate::config_space::{self, ConfigSpace, Effect};
use crate::control::{Control, ControlRequest, ControlResponse, Identity, State, line};
use crate::dma::Engine;
use crate::host_port::HostPort;
use crate::link::{Link, LinkFault};
use crate::{Card, CardError};

/// Maximum number of queued accesses.
const QUEUE: usize = 1024;
/// Time limit for a read. After it the host reads all ones, as behind a shell that gives up.
const READ_LIMIT: Duration = Duration::from_secs(15);
/// Cycles without access or interrupt until the clock stops.
const IDLE_CYCLES: u64 = 1 << 22;
/// The interrupt registers of AWS F2's shell in BAR2, between MSI-X table and pending bits.
const INTERRUPTS: std::ops::Range<u64> = 0x2000..0x3000;
/// Maximum number of concurrent control connections.
const MAX_CONTROLS: u32 = 8;

/// Options for serving a card.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Socket of the card.
    pub socket: PathBuf,
    /// Control socket; by default [`Control::path_of`] the card's socket.
    pub control: Option<PathBuf>,
    /// Bytes of card memory: a power of two from 1 MiB to 64 GiB.
    pub memory_bytes: u64,
    /// Clients may map the window to card memory. Otherwise each of their accesses passes the card,
    /// as in the model of AWS F2's shell.
    pub mapped: bool,
    /// The host boots the card ([`crate::RtlOptions::host_boots`]): BAR0 has 64 MiB, with the adapter
    /// page and the boot medium, and BAR2 the interrupt registers of AWS F2's shell.
    pub host_boots: bool,
}

impl ServeOptions {
    /// A card with the default memory on a socket.
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            control: None,
            memory_bytes: crate::MEMORY_BYTES,
            mapped: true,
            host_boots: false,
        }
    }
}

/// Card memory in a file that host programs can map.
struct Dram(Arc<SharedMemory>);

impl Bytes for Dram {
    fn read(&self, addr: u64, buf: &mut [u8]) {
        if self.0.read(addr, buf).is_err() {
            buf.fill(0);
        }
    }

    fn write(&self, addr: u64, data: &[u8]) {
        // There is nothing beyond the end of memory.
        let _ = self.0.write(addr, data);
    }
}

/// Registers of the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bar {
    /// BAR0.
    Ctl,
    /// The interrupt registers of AWS F2's shell in BAR2.
    Interrupts,
}

/// A job for the card's thread.
enum Job {
    Read(Bar, u32, SyncSender<u32>),
    Write(Bar, u32, u32),
    /// Reads card memory at an address into this many bytes.
    Load(u64, Vec<u8>, SyncSender<Vec<u8>>),
    /// Writes card memory.
    Store(u64, Vec<u8>),
    Reset(SyncSender<bool>),
    Probe(ControlRequest, SyncSender<ControlResponse>),
}

/// State shared with the card's thread.
#[derive(Clone)]
struct Shared {
    link: Arc<Link>,
    /// Unanswered kernel requests.
    kernel_busy: Arc<AtomicU32>,
    bus: Bus,
}

/// Creates a card with `make` and serves it until `stop` is set. Calls `ready` when clients may
/// connect.
///
/// # Errors
/// [`CardError::Serve`], [`CardError::Memory`], and those of `make`.
pub fn serve(
    options: &ServeOptions,
    make: impl FnOnce() -> Result<(Card, Identity), CardError> + Send,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<(), CardError> {
    let bytes = options.memory_bytes;
    if !bytes.is_power_of_two() || !(1 << 20..=1 << 36).contains(&bytes) {
        return Err(CardError::Memory {
            bytes,
            what: "expected a power of two from 1 MiB to 64 GiB".to_owned(),
        });
    }
    let failed = |e: std::io::Error| CardError::Memory { bytes, what: e.to_string() };
    let dram = Arc::new(SharedMemory::new(bytes).map_err(failed)?);
    let window = dram.fd().try_clone_to_owned().map_err(failed)?;
    let bar = |size: u64| Region { size, writable: true, memory: None };
    let mut regions: Vec<Region> = (0..region::COUNT).map(|_| Region::default()).collect();
    let ctl_bytes = if options.host_boots { BAR0_BYTES } else { CTL_BYTES }.into();
    regions[usize::from(BAR_CTL)] = bar(ctl_bytes);
    regions[usize::from(BAR_MSIX)] = bar(MSIX_BYTES);
    let window = options.mapped.then_some((window, 0));
    regions[usize::from(BAR_MEM)] = Region { memory: window, ..bar(bytes) };
    regions[region::CONFIG as usize] = bar(config_space::BYTES as u64);
    // An invalid path is reported before the card is made, which may take minutes; when the card
    // answers, the sockets exist.
    Listening::vacant(&options.socket)?;
    let control_path = options.control.clone().unwrap_or_else(|| Control::path_of(&options.socket));
    Listening::vacant(&control_path).map_err(|e| ControlSocket::failed(&control_path, &e))?;

    let bus = Bus::new(VECTORS);
    let link = Arc::new(Link::default());
    let shared = Shared { link: Arc::clone(&link), kernel_busy: Arc::default(), bus: bus.clone() };
    let host = HostPort { bus: bus.clone(), link: Arc::clone(&link) };
    let engine = Engine::new(host.clone(), Arc::clone(&dram));
    let (jobs, queue) = mpsc::sync_channel(QUEUE);
    let (made, born) = mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        let memory = SparseMemory::over(Arc::new(Dram(Arc::clone(&dram))));
        let thread = shared.clone();
        scope.spawn(move || match make() {
            Ok((mut card, identity)) => {
                card.put_memory(memory, bytes);
                match card.connect(host) {
                    Ok(own_engine) => {
                        let _ = made.send(Ok((identity, card.serial(), own_engine)));
                        run(card, &queue, &thread);
                    }
                    Err(error) => {
                        let _ = made.send(Err(error));
                    }
                }
            }
            Err(error) => {
                let _ = made.send(Err(error));
            }
        });
        let stopped = || CardError::Design { what: "the card's thread stopped".to_owned() };
        let (identity, serial, own_engine) = born.recv().map_err(|_| stopped())??;
        // Bound first: a client that finds the card's socket also finds the control socket.
        let control = ControlSocket::bind(&control_path)?;
        let server = Server::bind(&options.socket, regions, bus)?;
        // The design's own engine is accessed like its other registers.
        let engine = if own_engine { None } else { Some(&engine) };
        let handler =
            ControlHandler { engine, jobs: jobs.clone(), identity, shared: shared.clone() };
        scope.spawn(move || control.run(&handler, stop));
        if let Some(engine) = engine {
            scope.spawn(move || engine.run(stop));
        }
        let mut front = Front {
            engine,
            config: ConfigSpace::new(ctl_bytes, bytes, serial),
            routed: options.host_boots,
            table: vec![0; MSIX_BYTES as usize],
            dram,
            mapped: options.mapped,
            jobs,
            shared,
        };
        ready();
        let result = server.run(&mut front, stop);
        stop.store(true, Ordering::Relaxed);
        // The card's thread ends when its queue is disconnected.
        drop(front);
        Ok(result?)
    })
}

/// The card's thread.
fn run(mut card: Card, queue: &Receiver<Job>, shared: &Shared) {
    let host = HostPort { bus: shared.bus.clone(), link: Arc::clone(&shared.link) };
    let clocked = card.cycles().is_some();
    let mut active = card.cycles().unwrap_or(0);
    loop {
        let running =
            clocked && card.cycles().is_some_and(|now| now.wrapping_sub(active) < IDLE_CYCLES);
        let job = if running {
            match queue.try_recv() {
                Ok(job) => Some(job),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return,
            }
        } else {
            match queue.recv_timeout(Duration::from_millis(200)) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        };
        match job {
            // A card that cannot go on answers no reads, and the host sees all ones.
            None if card.wait_hint().is_err() => return,
            None => {}
            Some(job) => {
                work(&mut card, job, shared);
                active = card.cycles().unwrap_or(0);
            }
        }
        if card.interrupted() {
            active = card.cycles().unwrap_or(0);
            host.raise(VECTOR_ACCELERATOR);
        }
    }
}

fn work(card: &mut Card, job: Job, shared: &Shared) {
    match job {
        Job::Read(Bar::Ctl, offset, answer) => {
            // A refused read is all ones to the host.
            let _ = answer.try_send(card.ctl_read32(offset).unwrap_or(u32::MAX));
        }
        Job::Read(Bar::Interrupts, offset, answer) => {
            let _ = answer.try_send(card.bar2_read(offset));
        }
        Job::Write(Bar::Interrupts, offset, value) => card.bar2_write(offset, value),
        Job::Write(Bar::Ctl, offset, value) => {
            // A refused write is lost: writes are posted.
            let _ = card.ctl_write32(offset, value);
            if offset == mailbox::REQ_LEN {
                shared.kernel_busy.fetch_sub(1, Ordering::AcqRel);
            }
        }
        Job::Load(addr, mut bytes, answer) => {
            if card.mem_read(addr, &mut bytes).is_err() {
                bytes.fill(0xff);
            }
            let _ = answer.try_send(bytes);
        }
        Job::Store(addr, bytes) => {
            let _ = card.mem_write(addr, &bytes);
        }
        Job::Reset(answer) => {
            let _ = answer.try_send(card.reset().is_ok());
        }
        Job::Probe(request, answer) => {
            let _ = answer.try_send(probe(card, request));
        }
    }
}

fn probe(card: &mut Card, request: ControlRequest) -> ControlResponse {
    let probe = card.probe();
    match request {
        ControlRequest::Watch { start, end } => probe.watch(start..end),
        ControlRequest::Unwatch => probe.unwatch(),
        ControlRequest::Words => return ControlResponse::Words { words: probe.words_delivered() },
        ControlRequest::FailReads { start, end } => probe.fail_reads(start..end),
        ControlRequest::Cycles => {
            return ControlResponse::Cycles {
                now: probe.cycles(),
                last_write: probe.last_write_cycle(),
            };
        }
        ControlRequest::Check { done } => {
            if let Err(error) = probe.check(done) {
                return ControlResponse::Error { message: error.to_string() };
            }
        }
        ControlRequest::Uncheck => probe.uncheck(),
        ControlRequest::Checked => return ControlResponse::Checked(probe.checked()),
        ControlRequest::Progress => {
            return match probe.progress() {
                Ok(progress) => ControlResponse::Progress(progress),
                Err(error) => ControlResponse::Error { message: error.to_string() },
            };
        }
        ControlRequest::Debug { on } => {
            if let Err(error) = card.set_debug(on) {
                return ControlResponse::Error { message: error.to_string() };
            }
        }
        ControlRequest::Identity | ControlRequest::Fault { .. } | ControlRequest::State => {
            return ControlResponse::Error { message: "that is not the card's to say".to_owned() };
        }
    }
    ControlResponse::Done
}

/// The PCI function in front of the card.
struct Front<'a> {
    /// The DMA engine, if the design has none.
    engine: Option<&'a Engine>,
    config: ConfigSpace,
    /// BAR2 has the interrupt registers of AWS F2's shell.
    routed: bool,
    table: Vec<u8>,
    dram: Arc<SharedMemory>,
    /// Accesses of card memory go to its bytes; otherwise to the card.
    mapped: bool,
    jobs: SyncSender<Job>,
    shared: Shared,
}

impl Front<'_> {
    /// Applies the bus mastering bit of configuration space to all traffic from the card to the
    /// host.
    fn note_master(&self) {
        self.shared.link.master.store(self.config.bus_master(), Ordering::Release);
    }

    /// Wipes the Shield and restarts the card.
    fn reset_card(&mut self) -> Result<(), u32> {
        self.shared.link.resets.fetch_add(1, Ordering::AcqRel);
        let back = reset(&self.jobs, READ_LIMIT);
        if let Some(engine) = self.engine {
            engine.reset();
        }
        back.then_some(()).ok_or(shef_vfio_user::errno::EIO)
    }

    /// The DMA engine, if `offset` is one of its registers.
    fn engine(&self, offset: u32) -> Option<&Engine> {
        self.engine.filter(|_| (ring::reg::BASE..ring::reg::END).contains(&offset))
    }

    fn ctl_read(&mut self, offset: u32) -> u32 {
        if let Some(engine) = self.engine(offset) {
            return engine.read(offset).unwrap_or(u32::MAX);
        }
        if offset == mailbox::STATUS && self.shared.kernel_busy.load(Ordering::Acquire) > 0 {
            return mailbox::STATUS_BUSY;
        }
        self.register(Bar::Ctl, offset)
    }

    /// Reads a register of the card.
    fn register(&self, bar: Bar, offset: u32) -> u32 {
        let (answer, response) = mpsc::sync_channel(1);
        if self.jobs.send(Job::Read(bar, offset, answer)).is_err() {
            return u32::MAX;
        }
        response.recv_timeout(READ_LIMIT).unwrap_or(u32::MAX)
    }

    /// Whether a word in BAR2 is an interrupt register of the card.
    fn is_routed(&self, offset: u64, len: usize) -> bool {
        self.routed && INTERRUPTS.contains(&offset) && offset.is_multiple_of(4) && len == 4
    }

    /// Reads card memory through the card.
    fn load(&self, addr: u64, out: &mut [u8]) {
        let (answer, response) = mpsc::sync_channel(1);
        let sent = self.jobs.send(Job::Load(addr, vec![0; out.len()], answer)).is_ok();
        match sent.then(|| response.recv_timeout(READ_LIMIT)) {
            Some(Ok(bytes)) => out.copy_from_slice(&bytes),
            _ => out.fill(0xff),
        }
    }

    fn ctl_write(&mut self, offset: u32, value: u32) {
        if let Some(engine) = self.engine(offset) {
            return engine.write(offset, value);
        }
        if offset == mailbox::REQ_LEN {
            self.shared.kernel_busy.fetch_add(1, Ordering::AcqRel);
        }
        // Without a card the write is lost.
        let _ = self.jobs.send(Job::Write(Bar::Ctl, offset, value));
    }
}

/// Resets the card and returns whether it restarts. Where that takes longer than a read may, the
/// host reads all ones until the card is back, as after a function-level reset.
fn reset(jobs: &SyncSender<Job>, limit: Duration) -> bool {
    let (answer, response) = mpsc::sync_channel(1);
    jobs.send(Job::Reset(answer)).is_ok()
        && match response.recv_timeout(limit) {
            Ok(restarted) => restarted,
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => false,
        }
}

impl Backend for Front<'_> {
    fn attached(&mut self) {
        self.shared.link.clients.fetch_add(1, Ordering::AcqRel);
    }

    fn detached(&mut self) {
        // No client drives the function any more: it stops mastering the bus, and the last client's
        // state is wiped.
        self.config.reset();
        self.note_master();
        let _ = self.reset_card();
    }

    fn read(&mut self, region: u32, offset: u64, out: &mut [u8]) -> Result<(), u32> {
        let link = Arc::clone(&self.shared.link);
        if link.is_down() {
            out.fill(0xff);
            return Ok(());
        }
        if region == region::CONFIG {
            self.config.read(offset, out);
            return Ok(());
        }
        link.accesses.fetch_add(1, Ordering::AcqRel);
        link.delay();
        if link.silent() {
            return Err(NO_ANSWER);
        }
        if !self.config.memory_enabled() || link.poisoned() {
            out.fill(0xff);
            return Ok(());
        }
        match region as u8 {
            BAR_CTL => {
                // As on the bus: aligned words, and nothing else reaches a register.
                for (i, part) in out.chunks_mut(4).enumerate() {
                    let at = offset as u32 + 4 * i as u32;
                    let value = if at.is_multiple_of(4) && part.len() == 4 {
                        self.ctl_read(at)
                    } else {
                        u32::MAX
                    };
                    part.copy_from_slice(&value.to_le_bytes()[..part.len()]);
                }
            }
            BAR_MSIX if self.is_routed(offset, out.len()) => {
                let value = self.register(Bar::Interrupts, offset as u32);
                out.copy_from_slice(&value.to_le_bytes());
            }
            BAR_MSIX => out.copy_from_slice(&self.table[offset as usize..][..out.len()]),
            _ if self.mapped => {
                self.dram.read(offset, out).map_err(|_| shef_vfio_user::errno::EINVAL)?;
            }
            _ => self.load(offset, out),
        }
        Ok(())
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), u32> {
        let link = Arc::clone(&self.shared.link);
        if link.is_down() {
            return Ok(());
        }
        if region == region::CONFIG {
            let effect = self.config.write(offset, data);
            if effect == Effect::Reset || effect == Effect::Wake {
                self.config.reset();
            }
            self.note_master();
            return if effect == Effect::None { Ok(()) } else { self.reset_card() };
        }
        link.accesses.fetch_add(1, Ordering::AcqRel);
        link.delay();
        if link.silent() {
            return Err(NO_ANSWER);
        }
        if !self.config.memory_enabled() {
            return Ok(());
        }
        match region as u8 {
            BAR_CTL => {
                for (i, part) in data.chunks(4).enumerate() {
                    let at = offset as u32 + 4 * i as u32;
                    if let (Some(word), true) = (part.first_chunk(), at.is_multiple_of(4)) {
                        self.ctl_write(at, u32::from_le_bytes(*word));
                    }
                }
            }
            BAR_MSIX if self.is_routed(offset, data.len()) => {
                let word = data.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
                // Without a card the write is lost.
                let _ = self.jobs.send(Job::Write(Bar::Interrupts, offset as u32, word));
            }
            BAR_MSIX => {
                // The table is writable, the pending bits are not.
                let end =
                    (config_space::PBA as usize).saturating_sub(offset as usize).min(data.len());
                self.table[offset as usize..][..end].copy_from_slice(&data[..end]);
            }
            _ if self.mapped => {
                self.dram.write(offset, data).map_err(|_| shef_vfio_user::errno::EINVAL)?;
            }
            // Without a card the write is lost.
            _ => drop(self.jobs.send(Job::Store(offset, data.to_vec()))),
        }
        Ok(())
    }

    /// A reset as requested by a driver through the operating system: a function-level reset that
    /// keeps configuration space.
    fn reset(&mut self) -> Result<(), u32> {
        self.reset_card()
    }
}

/// Handles requests of the probe.
struct ControlHandler<'a> {
    engine: Option<&'a Engine>,
    jobs: SyncSender<Job>,
    identity: Identity,
    shared: Shared,
}

impl ControlHandler<'_> {
    fn answer(&self, request: ControlRequest) -> ControlResponse {
        let link = &self.shared.link;
        match request {
            ControlRequest::Identity => ControlResponse::Identity(self.identity.clone()),
            ControlRequest::State => {
                let (dma_faults, first_dma_faults) = link.dma_faults();
                let (dma_read, dma_written) = self.shared.bus.moved();
                ControlResponse::State(State {
                    link_down: link.is_down(),
                    bus_master: link.master.load(Ordering::Acquire),
                    resets: link.resets.load(Ordering::Acquire),
                    clients: link.clients.load(Ordering::Acquire),
                    maps: self.shared.bus.maps(),
                    accesses: link.accesses.load(Ordering::Acquire),
                    dma_interrupts: link.dma_interrupts.load(Ordering::Acquire),
                    vectors: link.vectors.load(Ordering::Acquire),
                    dma_read,
                    dma_written,
                    dma_faults,
                    first_dma_faults,
                })
            }
            ControlRequest::Fault { fault } => {
                let up = link.set(fault);
                if let (true, Some(engine)) = (up, self.engine) {
                    engine.reset();
                }
                if up && !reset(&self.jobs, READ_LIMIT) {
                    return ControlResponse::Error {
                        message: "the card did not come back".to_owned(),
                    };
                }
                if fault == LinkFault::LinkDrop {
                    // Requests of the card to the host are lost with the link.
                    self.shared.bus.cancel();
                }
                ControlResponse::Done
            }
            request => {
                let (answer, response) = mpsc::sync_channel(1);
                let gone =
                    || ControlResponse::Error { message: "the card does not answer".to_owned() };
                if self.jobs.send(Job::Probe(request, answer)).is_err() {
                    return gone();
                }
                response.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| gone())
            }
        }
    }
}

/// The listening control socket.
struct ControlSocket(Listening);

impl ControlSocket {
    fn failed(path: &Path, error: &VfioUserError) -> CardError {
        CardError::Control { path: path.to_owned(), what: error.to_string() }
    }

    fn bind(path: &Path) -> Result<Self, CardError> {
        Listening::bind(path).map(Self).map_err(|e| Self::failed(path, &e))
    }

    fn run(self, handler: &ControlHandler<'_>, stop: &AtomicBool) {
        let tick = Duration::from_millis(100);
        let open = AtomicU32::new(0);
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let ready = shef_device::poll_readable(
                    &[std::os::fd::AsFd::as_fd(self.0.listener())],
                    tick,
                );
                let Ok((stream, _)) =
                    (if ready.is_ok_and(|[r]| r) { self.0.listener().accept() } else { continue })
                else {
                    std::thread::sleep(tick);
                    continue;
                };
                if open.load(Ordering::Acquire) < MAX_CONTROLS {
                    open.fetch_add(1, Ordering::AcqRel);
                    let open = &open;
                    scope.spawn(move || {
                        let _ = serve_connection(stream, handler, stop);
                        open.fetch_sub(1, Ordering::AcqRel);
                    });
                }
            }
        });
    }
}

/// Serves one control connection.
fn serve_connection(
    stream: UnixStream,
    handler: &ControlHandler<'_>,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while !stop.load(Ordering::Relaxed) {
        if reader.buffer().is_empty()
            && !shef_device::poll_readable(
                &[std::os::fd::AsFd::as_fd(reader.get_ref())],
                Duration::from_millis(100),
            )?[0]
        {
            continue;
        }
        let Some(text) = line(&mut reader, crate::control::MAX_REQUEST)? else { return Ok(()) };
        let response = match serde_json::from_slice(&text) {
            Ok(request) => handler.answer(request),
            Err(e) => ControlResponse::Error { message: e.to_string() },
        };
        let mut text = serde_json::to_vec(&response)?;
        text.push(b'\n');
        writer.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reset_goes_on_and_a_failed_one_is_reported() {
        let (jobs, queue) = mpsc::sync_channel(1);
        assert!(reset(&jobs, Duration::ZERO), "a card that has not answered yet");
        let Ok(Job::Reset(answer)) = queue.recv() else { panic!("no reset") };
        drop(answer);
        for restarted in [true, false] {
            std::thread::scope(|scope| {
                let reset = scope.spawn(|| reset(&jobs, Duration::from_secs(60)));
                let Ok(Job::Reset(answer)) = queue.recv() else { panic!("no reset") };
                answer.send(restarted).unwrap();
                assert_eq!(reset.join().unwrap(), restarted);
            });
        }
        drop(queue);
        assert!(!reset(&jobs, Duration::from_secs(60)), "no card");
    }
}
