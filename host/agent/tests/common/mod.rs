//! An agent in this process, with cards that consist of memory and registers, and proxies that
//! misbehave.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shef_agent::init::{Plan, add_owner, init};
use shef_agent::{Agent, Config, Opener, Running};
use shef_device::{CTL_BYTES, Device, DeviceError, DeviceInfo, Uri, mailbox};
use shef_remote::wire::{ToAgent, ToOwner};
use shef_remote::{Limits, RemoteDevice, TlsFiles};

/// Bytes of a card's memory.
pub const MEMORY: u64 = 16 << 20;
/// Writing adds the value to the sum.
pub const SUM: u32 = 0x10;
/// Reading takes longer than the owner waits without a progress message.
pub const SLOW: u32 = 0x20;
/// Never reads as 1.
pub const NEVER: u32 = 0x24;
/// Offset without a register.
pub const NOTHING: u32 = 0x30;

/// A card's state that tests read and control.
#[derive(Default)]
pub struct Seen {
    pub sum: AtomicU64,
    pub resets: AtomicU64,
    pub writes: AtomicU64,
    pub polls: AtomicU64,
    pub broken: AtomicBool,
    /// Memory survives a reset, as on a real card.
    pub keeps_memory: AtomicBool,
    /// A kernel request hangs.
    pub hanging: AtomicBool,
    /// A reset never returns.
    pub stuck: AtomicBool,
    /// Memory accepts no writes.
    pub read_only: AtomicBool,
    /// Milliseconds that reading the card's clock takes.
    pub slow_clock: AtomicU64,
    /// The card's memory, across openings.
    memory: Mutex<Vec<u8>>,
}

/// Prefix of a request that the card's kernel never answers.
pub const HANG: &[u8] = b"hang";

/// A card with a sum register, memory, and a kernel that reverses each request.
pub struct TestCard {
    seen: Arc<Seen>,
    window: Vec<u8>,
}

impl TestCard {
    fn word(&mut self, offset: u32) -> &mut [u8] {
        &mut self.window[offset as usize..][..4]
    }

    /// The kernel accepts the request.
    fn ring(&mut self, len: u32) {
        let request = self.window[mailbox::REQUEST as usize..][..len as usize].to_vec();
        if request.starts_with(HANG) {
            self.seen.hanging.store(true, Ordering::SeqCst);
            return self.word(mailbox::STATUS).copy_from_slice(&mailbox::STATUS_BUSY.to_le_bytes());
        }
        for (to, from) in
            self.window[mailbox::ANSWER as usize..].iter_mut().zip(request.iter().rev())
        {
            *to = *from;
        }
        self.word(mailbox::RSP_LEN).copy_from_slice(&len.to_le_bytes());
        self.word(mailbox::STATUS).copy_from_slice(&mailbox::STATUS_ANSWER.to_le_bytes());
    }
}

impl Device for TestCard {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new("test", "a card of a test", "simulated", MEMORY, true)
    }
    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        if self.seen.broken.load(Ordering::SeqCst) {
            return Err(DeviceError::Gone { offset });
        }
        match offset {
            SUM => Ok(self.seen.sum.load(Ordering::SeqCst) as u32),
            SLOW => {
                std::thread::sleep(Duration::from_millis(4500));
                Ok(7)
            }
            NEVER => {
                self.seen.polls.fetch_add(1, Ordering::SeqCst);
                Ok(0)
            }
            mailbox::REQUEST.. => Ok(u32::from_le_bytes(self.word(offset).try_into().unwrap())),
            _ => Err(DeviceError::CtlRefused { access: "read", offset }),
        }
    }
    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        match offset {
            SUM => drop(self.seen.sum.fetch_add(value.into(), Ordering::SeqCst)),
            mailbox::REQ_LEN => self.ring(value),
            mailbox::REQUEST.. => self.word(offset).copy_from_slice(&value.to_le_bytes()),
            _ => return Err(DeviceError::CtlRefused { access: "write", offset }),
        }
        Ok(())
    }
    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let range = range(addr, bytes.len())?;
        bytes.copy_from_slice(&self.seen.memory.lock().unwrap()[range]);
        Ok(())
    }
    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.seen.writes.fetch_add(1, Ordering::SeqCst);
        if self.seen.read_only.load(Ordering::SeqCst) {
            return Err(DeviceError::Gone { offset: 0 });
        }
        self.seen.memory.lock().unwrap()[range(addr, bytes.len())?].copy_from_slice(bytes);
        Ok(())
    }
    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        std::thread::sleep(Duration::from_micros(10));
        Ok(())
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        if self.seen.broken.load(Ordering::SeqCst) {
            return Err(DeviceError::Gone { offset: 0 });
        }
        while self.seen.stuck.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !self.seen.keeps_memory.load(Ordering::SeqCst) {
            self.seen.memory.lock().unwrap().fill(0);
        }
        self.seen.sum.store(0, Ordering::SeqCst);
        self.seen.resets.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn cycles(&self) -> Option<u64> {
        std::thread::sleep(Duration::from_millis(self.seen.slow_clock.load(Ordering::SeqCst)));
        Some(self.seen.sum.load(Ordering::SeqCst))
    }
}

fn range(addr: u64, len: usize) -> Result<std::ops::Range<usize>, DeviceError> {
    match addr.checked_add(len as u64) {
        Some(end) if end <= MEMORY => Ok(addr as usize..end as usize),
        _ => Err(DeviceError::MemoryRange { addr, len: len as u64, memory_bytes: MEMORY }),
    }
}

/// Short limits, so that tests end.
pub fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(10),
        answer: Duration::from_secs(3),
        request: Duration::from_secs(60),
        resume: Duration::from_secs(5),
        attempts: 12,
        ..Limits::default()
    }
}

/// Addresses of an agent and of its metrics, its handle, its task count, its thread.
type Served =
    (SocketAddr, Option<SocketAddr>, Running, tokio::runtime::Handle, std::thread::JoinHandle<()>);

/// Runs an agent on a thread.
fn serve(config: Config, opener: Opener) -> Served {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let agent = Agent::bind(&config, opener).await.unwrap();
            let tasks = tokio::runtime::Handle::current();
            tell.send((agent.address().unwrap(), agent.metrics_address(), agent.handle(), tasks))
                .unwrap();
            agent.serve().await;
        });
    });
    let (address, metrics, running, tasks) = told.recv().unwrap();
    (address, metrics, running, tasks, thread)
}

/// A running agent with two cards, for alice and bob; card1 is alice's alone.
pub struct Bed {
    pub dir: tempfile::TempDir,
    pub address: SocketAddr,
    pub cards: BTreeMap<String, Arc<Seen>>,
    pub config: Config,
    opener: Opener,
    pub metrics: Option<SocketAddr>,
    running: Running,
    tasks: tokio::runtime::Handle,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Bed {
    pub fn new(grace: Duration) -> Self {
        Self::with(grace, |_| {})
    }

    /// A bed whose configuration is edited by `change`.
    pub fn with(grace: Duration, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let uri = |n: u8| -> Uri { format!("pci:0000:00:0{n}.0").parse().unwrap() };
        let plan = Plan {
            dir: dir.path().join("agent"),
            listen: "127.0.0.1:0".into(),
            names: vec!["localhost".into()],
            owners: vec!["alice".into()],
            devices: vec![("card0".into(), uri(0)), ("card1".into(), uri(1))],
        };
        init(&plan).unwrap();
        add_owner(&plan.dir, "bob").unwrap();
        let mut config = Config::load(&plan.dir.join("agent.toml")).unwrap();
        config.grace = grace;
        config.devices.get_mut("card1").unwrap().owners = vec!["alice".into()];
        change(&mut config);
        let cards: BTreeMap<String, Arc<Seen>> =
            ["card0", "card1"].map(|name| (name.to_owned(), Arc::default())).into();
        let shared: Vec<(Uri, Arc<Seen>)> =
            vec![(uri(0), Arc::clone(&cards["card0"])), (uri(1), Arc::clone(&cards["card1"]))];
        let opener: Opener = Arc::new(move |uri| {
            let (_, seen) = shared
                .iter()
                .find(|(known, _)| known == uri)
                .ok_or(DeviceError::NotInThisVersion { uri: uri.to_string() })?;
            if seen.broken.load(Ordering::SeqCst) {
                return Err(DeviceError::Gone { offset: 0 });
            }
            seen.memory.lock().unwrap().resize(MEMORY as usize, 0);
            Ok(Box::new(TestCard { seen: Arc::clone(seen), window: vec![0; CTL_BYTES as usize] }))
        });
        let (address, metrics, running, tasks, thread) = serve(config.clone(), Arc::clone(&opener));
        let bed = Self {
            dir,
            address,
            cards,
            config,
            opener,
            metrics,
            running,
            tasks,
            thread: Some(thread),
        };
        bed.wiped_at_first();
        bed
    }

    /// Each card is wiped when it is opened: the tests count from there.
    fn wiped_at_first(&self) {
        for card in self.cards.values() {
            eventually("the first wipe", || card.resets.swap(0, Ordering::SeqCst) > 0);
        }
    }

    /// Stops the agent, and starts another one with the same cards.
    pub fn restart(&mut self) {
        self.stop();
        self.cards.values().for_each(|card| card.resets.store(0, Ordering::SeqCst));
        let (address, metrics, running, tasks, thread) =
            serve(self.config.clone(), Arc::clone(&self.opener));
        (self.address, self.metrics, self.running, self.tasks, self.thread) =
            (address, metrics, running, tasks, Some(thread));
        self.wiped_at_first();
    }

    pub fn files(&self, owner: &str) -> TlsFiles {
        let dir = self.dir.path().join("agent/owners").join(owner);
        TlsFiles { ca: dir.join("ca.pem"), cert: dir.join("cert.pem"), key: dir.join("key.pem") }
    }

    pub fn agent_dir(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    pub fn open_at(
        &self,
        port: u16,
        owner: &str,
        device: &str,
    ) -> Result<RemoteDevice, DeviceError> {
        RemoteDevice::open(&uri(port, device), &self.files(owner), limits(), None)
    }

    pub fn open(&self, owner: &str, device: &str) -> Result<RemoteDevice, DeviceError> {
        self.open_at(self.address.port(), owner, device)
    }

    pub fn handle(&self) -> &Running {
        &self.running
    }

    /// Number of tasks that are still running.
    pub fn tasks(&self) -> usize {
        self.tasks.metrics().num_alive_tasks()
    }

    /// Waits until the agent has ended.
    pub fn ended(&mut self) {
        let thread = self.thread.take().unwrap();
        eventually("the agent's end", || thread.is_finished());
        thread.join().unwrap();
    }

    pub fn stop(&mut self) {
        self.running.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.running.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An owner that sends raw frames over TLS, and reads only on demand.
pub struct Raw {
    pub tls: rustls::StreamOwned<rustls::ClientConnection, TcpStream>,
    frames: shef_remote::wire::Frames,
}

impl Raw {
    /// Connects; the handshake takes place with the first bytes.
    pub fn new(bed: &Bed, owner: &str) -> Self {
        let config = bed.files(owner).load().unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let connection = rustls::ClientConnection::new(config, name).unwrap();
        let tls = rustls::StreamOwned::new(connection, TcpStream::connect(bed.address).unwrap());
        tls.sock.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { tls, frames: shef_remote::wire::Frames::new() }
    }

    /// Opens a card.
    pub fn opened(bed: &Bed, owner: &str, device: &str) -> Self {
        let mut raw = Self::new(bed, owner);
        raw.say(&ToAgent::Hello { min: 1, max: 1, program: "test".into() });
        raw.say(&ToAgent::Open { device: device.into(), resume: None });
        while !matches!(raw.hear(), Ok(ToOwner::Opened { .. })) {}
        raw
    }

    pub fn say(&mut self, message: &ToAgent) {
        self.tls.write_all(&message.encode()).unwrap();
    }

    /// The next message, or the reason why the connection ended.
    pub fn hear(&mut self) -> Result<ToOwner, String> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            if let Some(frame) = self.frames.take().unwrap() {
                return Ok(ToOwner::decode(frame).unwrap());
            }
            match self.tls.read(&mut buffer) {
                Ok(n @ 1..) => self.frames.push(&buffer[..n]),
                other => return Err(format!("{other:?}")),
            }
        }
    }
}

pub fn uri(port: u16, device: &str) -> Uri {
    format!("tls://localhost:{port}/{device}").parse().unwrap()
}

/// The code of an error.
pub fn code<T>(result: Result<T, DeviceError>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

/// Waits for an effect of other threads.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if check() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not come about in 30 s");
}

/// How a TCP proxy modifies the bytes of each connection.
pub trait Tamper: Send + Sync {
    /// Sees the bytes of connection number `connection` and may change them; false cuts the
    /// connection.
    fn bytes(&self, connection: u64, to_agent: bool, bytes: &mut Vec<u8>) -> bool;

    /// Delay before each byte once `carried` bytes have passed in this direction.
    fn pause(&self, carried: u64, to_agent: bool) -> Option<Duration> {
        let _ = (carried, to_agent);
        None
    }
}

/// A TCP proxy that records all bytes.
pub struct Proxy {
    pub port: u16,
    pub captured: Arc<Mutex<Vec<u8>>>,
    pub connections: Arc<AtomicU64>,
    live: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub fn new(target: SocketAddr, tamper: Arc<dyn Tamper>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let captured = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicU64::new(0));
        let live: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (all, count, streams) =
            (Arc::clone(&captured), Arc::clone(&connections), Arc::clone(&live));
        std::thread::spawn(move || {
            for owner in listener.incoming() {
                let (Ok(owner), Ok(agent)) = (owner, TcpStream::connect(target)) else { continue };
                let number = count.fetch_add(1, Ordering::SeqCst);
                streams
                    .lock()
                    .unwrap()
                    .extend([owner.try_clone().unwrap(), agent.try_clone().unwrap()]);
                for (mut from, mut to, to_agent) in [
                    (owner.try_clone().unwrap(), agent.try_clone().unwrap(), true),
                    (agent, owner, false),
                ] {
                    let (all, tamper) = (Arc::clone(&all), Arc::clone(&tamper));
                    std::thread::spawn(move || {
                        let mut buffer = vec![0; 64 * 1024];
                        let mut carried = 0;
                        let mut send = |bytes: &[u8]| {
                            let parts =
                                if tamper.pause(carried + bytes.len() as u64, to_agent).is_some() {
                                    1
                                } else {
                                    bytes.len()
                                };
                            bytes.chunks(parts.max(1)).try_for_each(|part| {
                                carried += part.len() as u64;
                                tamper
                                    .pause(carried, to_agent)
                                    .into_iter()
                                    .for_each(std::thread::sleep);
                                to.write_all(part)
                            })
                        };
                        while let Ok(n @ 1..) = from.read(&mut buffer) {
                            let mut bytes = buffer[..n].to_vec();
                            all.lock().unwrap().extend_from_slice(&bytes);
                            let keep = tamper.bytes(number, to_agent, &mut bytes);
                            if !keep || send(&bytes).is_err() {
                                break;
                            }
                        }
                        let _ = from.shutdown(Shutdown::Both);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { port, captured, connections, live }
    }

    /// Cuts all open connections.
    pub fn cut(&self) {
        for stream in self.live.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Forwards everything unchanged.
pub struct Faithful;

impl Tamper for Faithful {
    fn bytes(&self, _: u64, _: bool, _: &mut Vec<u8>) -> bool {
        true
    }
}

/// A dishonest agent: it has the agent's certificate and key, and an owner's to reach the honest
/// agent, and modifies the messages inside TLS as `deed` says. It records all that it sees.
pub struct Mitm {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<u8>>>,
}

/// Takes a frame (with its length) and returns the frames to forward instead.
pub type Deed = Arc<dyn Fn(bool, Vec<u8>) -> Vec<Vec<u8>> + Send + Sync>;

impl Mitm {
    pub fn new(agent: SocketAddr, dir: &Path, files: &TlsFiles, deed: Deed) -> Self {
        use rustls::pki_types::ServerName;
        use tokio::io::{AsyncWriteExt, split};
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let cert = shef_remote::certificates(&dir.join("agent.pem")).unwrap();
        let key = shef_remote::private_key(&dir.join("agent.key")).unwrap();
        let mut server = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(cert, key)
            .unwrap();
        server.alpn_protocols = vec![shef_remote::wire::ALPN.to_vec()];
        let client = files.load().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
                let connector = tokio_rustls::TlsConnector::from(client);
                while let Ok((tcp, _)) = listener.accept().await {
                    let (acceptor, connector, deed, kept) =
                        (acceptor.clone(), connector.clone(), Arc::clone(&deed), Arc::clone(&kept));
                    tokio::spawn(async move {
                        let Ok(owner) = acceptor.accept(tcp).await else { return };
                        let Ok(tcp) = tokio::net::TcpStream::connect(agent).await else { return };
                        let Ok(agent) = connector
                            .connect(ServerName::try_from("localhost").unwrap(), tcp)
                            .await
                        else {
                            return;
                        };
                        let ((owner_in, mut owner_out), (agent_in, mut agent_out)) =
                            (split(owner), split(agent));
                        let up = carry(owner_in, &mut agent_out, true, &deed, &kept);
                        let down = carry(agent_in, &mut owner_out, false, &deed, &kept);
                        tokio::select! { () = up => {} () = down => {} }
                        let _ = owner_out.shutdown().await;
                        let _ = agent_out.shutdown().await;
                    });
                }
            });
        });
        Self { port, seen }
    }
}

async fn carry<R, W>(mut from: R, to: &mut W, to_agent: bool, deed: &Deed, seen: &Mutex<Vec<u8>>)
where
    R: tokio::io::AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Unpin,
{
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut frames = shef_remote::wire::Frames::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        frames.push(&buffer[..n]);
        while let Ok(Some(frame)) = frames.take() {
            seen.lock().unwrap().extend_from_slice(frame);
            let whole = [&(frame.len() as u32).to_be_bytes()[..], frame].concat();
            for frame in deed(to_agent, whole) {
                if to.write_all(&frame).await.is_err() {
                    return;
                }
            }
            if to.flush().await.is_err() {
                return;
            }
        }
    }
}
