//! A device of plain memory behind a server on a thread, and a client that sends raw bytes.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shef_device::SharedMemory;
use shef_vfio_user::wire::{HEADER, Header};
use shef_vfio_user::{Backend, Bus, Client, NO_ANSWER, Region, Server, errno, region};

pub const LIMIT: Duration = Duration::from_secs(60);
/// A read of BAR0 at this offset is never answered; a write at [`COPY`] copies, see [`Toy::write`].
pub const SILENT: u64 = 0xff0;
pub const REFUSED: u64 = 0xff4;
pub const COPY: u64 = 0xf00;

pub struct Toy {
    memory: Vec<u8>,
    bus: Bus,
    pub resets: Arc<AtomicU32>,
    pub left: Arc<AtomicU32>,
}

impl Backend for Toy {
    fn attached(&mut self) {}

    fn detached(&mut self) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }

    fn read(&mut self, _: u32, offset: u64, out: &mut [u8]) -> Result<(), u32> {
        match offset {
            SILENT => Err(NO_ANSWER),
            REFUSED => Err(errno::EIO),
            _ => {
                out.copy_from_slice(&self.memory[offset as usize..][..out.len()]);
                Ok(())
            }
        }
    }

    /// A write of `from | to | len` (three times eight bytes) to [`COPY`] makes the device copy
    /// host memory, on a separate thread as in a real device, and raise vector 1. Bytes 0 to 4 of
    /// the BAR then hold 1, or 2 if the copy failed.
    fn write(&mut self, _: u32, offset: u64, data: &[u8]) -> Result<(), u32> {
        if offset != COPY {
            self.memory[offset as usize..][..data.len()].copy_from_slice(data);
            return Ok(());
        }
        let n = |i: usize| u64::from_le_bytes(data[8 * i..][..8].try_into().unwrap());
        let (from, to, len, bus) = (n(0), n(1), n(2), self.bus.clone());
        std::thread::spawn(move || {
            let mut bytes = vec![0; len as usize];
            let done = bus.read(from, &mut bytes).and_then(|()| {
                bytes.iter_mut().for_each(|b| *b ^= 0x5a);
                bus.write(to, &bytes)
            });
            bus.interrupt(if done.is_ok() { 1 } else { 2 });
        });
        Ok(())
    }

    fn reset(&mut self) -> Result<(), u32> {
        self.memory.fill(0);
        self.resets.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

pub struct Served {
    pub dir: tempfile::TempDir,
    pub resets: Arc<AtomicU32>,
    pub left: Arc<AtomicU32>,
    pub bus: Bus,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub fn new() -> Self {
        Self::within(LIMIT)
    }

    /// A server with a time limit for each message.
    pub fn within(limit: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let window = SharedMemory::new(0x10000).unwrap();
        let mut regions: Vec<Region> = (0..region::COUNT).map(|_| Region::default()).collect();
        regions[0] = Region { size: 0x1000, writable: true, memory: None };
        regions[1] = Region { size: 0x1000, writable: false, memory: None };
        regions[4] = Region {
            size: 0x10000,
            writable: true,
            memory: Some((window.fd().try_clone_to_owned().unwrap(), 0)),
        };
        // A file that its owner can truncate.
        let file = tempfile::tempfile().unwrap();
        file.set_len(0x1000).unwrap();
        regions[5] = Region { size: 0x1000, writable: true, memory: Some((file.into(), 0)) };
        let bus = Bus::new(20);
        let server =
            Server::bind(&dir.path().join("s"), regions, bus.clone()).unwrap().within(limit);
        let (resets, left, stop) = (
            Arc::<AtomicU32>::default(),
            Arc::<AtomicU32>::default(),
            Arc::<AtomicBool>::default(),
        );
        let mut toy = Toy {
            memory: vec![0; 0x10000],
            bus: bus.clone(),
            resets: Arc::clone(&resets),
            left: Arc::clone(&left),
        };
        let end = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(&mut toy, &end).unwrap());
        Self { dir, resets, left, bus, stop, thread: Some(thread) }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.path(), LIMIT).unwrap()
    }

    /// A raw connection that need not follow the protocol.
    pub fn raw(&self) -> Raw {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Raw(stream)
    }

    /// Waits until `n` clients have left.
    pub fn wait_left(&self, n: u32) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.left.load(Ordering::SeqCst) < n {
            assert!(Instant::now() < end, "{n} clients have not left in 30 s");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().unwrap().join();
    }
}

pub struct Raw(pub UnixStream);

impl Raw {
    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    pub fn message(&mut self, id: u16, command: u16, body: &[u8]) {
        self.send(&[&Header::command(id, command, body.len()).encode()[..], body].concat());
    }

    /// The next message; `None` at the end.
    pub fn answer(&mut self) -> Option<(Header, Vec<u8>)> {
        let mut head = [0; HEADER];
        let mut got = 0;
        while got < HEADER {
            match self.0.read(&mut head[got..]) {
                Ok(0) | Err(_) if got == 0 => return None,
                Ok(n) => got += n,
                Err(e) => panic!("cut in a header: {e}"),
            }
        }
        let header = Header::decode(&head);
        let mut body = vec![0; header.size as usize - HEADER];
        self.0.read_exact(&mut body).unwrap();
        Some((header, body))
    }

    /// Sends a version without capabilities.
    pub fn hello(&mut self) {
        // The server uses no later version than the client's.
        self.message(7, 1, &[0, 0, 0, 0]);
        let (header, body) = self.answer().unwrap();
        assert_eq!(
            (header.id, header.command, header.failed(), &body[..4]),
            (7, 1, None, &[0, 0, 0, 0][..])
        );
    }

    /// Checks that the stream is still in step: a read of BAR0 gets the matching answer.
    pub fn in_step(&mut self, id: u16) {
        let body = [&0u64.to_le_bytes()[..], &0u32.to_le_bytes(), &4u32.to_le_bytes()].concat();
        self.message(id, 9, &body);
        let (header, body) = self.answer().expect("an answer");
        assert_eq!((header.id, header.command, header.failed(), body.len()), (id, 9, None, 20));
    }
}
