//! The device's path to the host: memory and interrupts of the connected client.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use shef_device::{Event, SharedMemory};

use crate::dma::{Backing, DmaError, DmaErrorKind, Maps};
use crate::socket::Socket;
use crate::wire::{HEADER, Header, MAX_DATA, Request};

/// Bytes copied per lock of the map, so that unmapping is not delayed for long.
const STRIDE: usize = 1 << 20;
/// Time limit for the client's answer to a DMA message.
const ANSWER: Duration = Duration::from_secs(10);

/// A handle on the client's memory and interrupts; all handles of a server share them. Without a
/// connected client, every access fails.
#[derive(Clone)]
pub struct Bus(Arc<Inner>, Ask);

/// How memory that only the client can access is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// By a message to the client.
    Client,
    /// As not mapped.
    Nobody,
}

struct Inner {
    maps: RwLock<Maps>,
    vectors: Mutex<Vec<Vector>>,
    /// Sending half of the connection, most bytes of data per message for its client, and the time
    /// limit for sending a message.
    out: Mutex<Option<(Socket, usize, Duration)>>,
    waiting: Mutex<Waiting>,
    /// Bytes read and bytes written.
    moved: [AtomicU64; 2],
}

#[derive(Default)]
struct Vector {
    event: Option<Event>,
    masked: bool,
    pending: bool,
}

/// Outcome of a DMA message: the reply's body, or the client's error.
type Outcome = Result<Vec<u8>, DmaErrorKind>;

#[derive(Default)]
struct Waiting {
    next: u16,
    asked: HashMap<u16, SyncSender<Outcome>>,
}

/// A lock is poisoned by a thread that panicked between two complete changes: its data is
/// consistent.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bus {
    /// A bus for a device with `vectors` MSI-X vectors.
    pub fn new(vectors: u32) -> Self {
        Self(
            Arc::new(Inner {
                maps: RwLock::default(),
                vectors: Mutex::new((0..vectors).map(|_| Vector::default()).collect()),
                out: Mutex::new(None),
                waiting: Mutex::default(),
                moved: Default::default(),
            }),
            Ask::Client,
        )
    }

    pub(super) fn vectors(&self) -> u32 {
        hold(&self.0.vectors).len() as u32
    }

    /// A handle that never waits for the client: memory that the client maps without a file counts
    /// as not mapped.
    #[must_use]
    pub fn mapped(&self) -> Self {
        Self(Arc::clone(&self.0), Ask::Nobody)
    }

    pub(super) fn attach(&self, socket: Socket, limit: Duration) {
        *hold(&self.0.out) = Some((socket, MAX_DATA, limit));
    }

    pub(super) fn limit(&self, max_data: usize) {
        if let Some((_, limit, _)) = hold(&self.0.out).as_mut() {
            *limit = max_data;
        }
    }

    /// Forgets the client: its mappings, its interrupts, and pending requests to it.
    pub(super) fn detach(&self) {
        *hold(&self.0.out) = None;
        self.cancel();
        self.0.maps.write().unwrap_or_else(PoisonError::into_inner).clear();
        hold(&self.0.vectors).iter_mut().for_each(|v| *v = Vector::default());
    }

    /// Aborts every DMA message that waits for an answer.
    pub fn cancel(&self) {
        for (_, asked) in hold(&self.0.waiting).asked.drain() {
            let _ = asked.try_send(Err(DmaErrorKind::Cancelled));
        }
    }

    pub(super) fn send(
        &self,
        header: &Header,
        body: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        match &*hold(&self.0.out) {
            Some((socket, _, limit)) => {
                socket.send(&header.encode(), body, fds, Instant::now() + *limit)
            }
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Handles a reply of the client. A reply after its time limit is dropped.
    pub(super) fn replied(&self, header: &Header, body: &[u8]) {
        if let Some(asked) = hold(&self.0.waiting).asked.remove(&header.id) {
            let _ = asked.try_send(match header.failed() {
                Some(errno) => Err(DmaErrorKind::Refused(errno)),
                None => Ok(body.to_vec()),
            });
        }
    }

    pub(super) fn map(
        &self,
        flags: u32,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<OwnedFd>,
    ) -> Result<(), u32> {
        self.0
            .maps
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .map(flags, offset, address, size, fd)
    }

    /// Waits for copies in progress: once this returns, the device does not access the range.
    pub(super) fn unmap(&self, address: u64, size: u64) -> Result<u64, u32> {
        self.0.maps.write().unwrap_or_else(PoisonError::into_inner).unmap(address, size)
    }

    pub(super) fn unmap_all(&self) -> u64 {
        self.0.maps.write().unwrap_or_else(PoisonError::into_inner).clear();
        0
    }

    pub(super) fn connect(&self, vector: u32, event: Option<Event>) {
        if let Some(v) = hold(&self.0.vectors).get_mut(vector as usize) {
            *v = Vector { event, ..Vector::default() };
        }
    }

    pub(super) fn mask(&self, vector: u32, masked: bool) {
        let fire = match hold(&self.0.vectors).get_mut(vector as usize) {
            Some(v) => {
                v.masked = masked;
                !masked && std::mem::take(&mut v.pending)
            }
            None => false,
        };
        if fire {
            self.interrupt(vector);
        }
    }

    /// Raises an interrupt. Returns whether it was delivered; a masked one is kept until it is
    /// unmasked.
    pub fn interrupt(&self, vector: u32) -> bool {
        match hold(&self.0.vectors).get_mut(vector as usize) {
            Some(Vector { masked: true, pending, .. }) => {
                *pending = true;
                false
            }
            Some(Vector { event: Some(event), .. }) => event.signal().is_ok(),
            _ => false,
        }
    }

    /// Number of ranges that the client has mapped.
    pub fn maps(&self) -> usize {
        self.0.maps.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Bytes read from and written to host memory so far.
    pub fn moved(&self) -> (u64, u64) {
        let [read, written] =
            [&self.0.moved[0], &self.0.moved[1]].map(|n| n.load(Ordering::Relaxed));
        (read, written)
    }

    /// Reads host memory.
    ///
    /// # Errors
    /// [`DmaError`] with the first address that cannot be accessed; earlier bytes were read.
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), DmaError> {
        let len = out.len();
        self.pieces(address, len, false, |address, n, done, backing| {
            let part = &mut out[done as usize..][..n];
            match backing {
                Backing::Memory(memory, offset) => {
                    memory.read(*offset, part).map_err(|_| DmaErrorKind::NotMapped)
                }
                Backing::Message => {
                    part.copy_from_slice(&self.ask_read(address, n)?);
                    Ok(())
                }
            }
        })
    }

    /// Writes host memory.
    ///
    /// # Errors
    /// [`DmaError`] with the first address that cannot be accessed; earlier bytes were written.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), DmaError> {
        self.pieces(address, data.len(), true, |address, n, done, backing| {
            let part = &data[done as usize..][..n];
            match backing {
                Backing::Memory(memory, offset) => {
                    memory.write(*offset, part).map_err(|_| DmaErrorKind::NotMapped)
                }
                Backing::Message => {
                    self.ask(&Request::DmaWrite { address, data: part }).map(|_| ())
                }
            }
        })
    }

    /// Copies host memory to `to`, from byte `at` on; directly, if the client's memory is mapped
    /// here.
    ///
    /// # Errors
    /// As [`Bus::read`].
    pub fn copy_to(
        &self,
        address: u64,
        to: &SharedMemory,
        at: u64,
        len: usize,
    ) -> Result<(), DmaError> {
        self.pieces(address, len, false, |address, n, done, backing| match backing {
            Backing::Memory(memory, offset) => {
                to.copy_from(at + done, memory, *offset, n).map_err(|_| DmaErrorKind::NotMapped)
            }
            Backing::Message => to
                .write(at + done, &self.ask_read(address, n)?)
                .map_err(|_| DmaErrorKind::NotMapped),
        })
    }

    /// Copies to host memory from `from`, from byte `at` on.
    ///
    /// # Errors
    /// As [`Bus::write`].
    pub fn copy_from(
        &self,
        address: u64,
        from: &SharedMemory,
        at: u64,
        len: usize,
    ) -> Result<(), DmaError> {
        self.pieces(address, len, true, |address, n, done, backing| match backing {
            Backing::Memory(memory, offset) => {
                memory.copy_from(*offset, from, at + done, n).map_err(|_| DmaErrorKind::NotMapped)
            }
            Backing::Message => {
                let mut data = vec![0; n];
                from.read(at + done, &mut data).map_err(|_| DmaErrorKind::NotMapped)?;
                self.ask(&Request::DmaWrite { address, data: &data }).map(|_| ())
            }
        })
    }

    /// Makes an access in pieces: `copy` gets address, length, number of bytes already copied, and
    /// backing.
    fn pieces(
        &self,
        address: u64,
        len: usize,
        write: bool,
        mut copy: impl FnMut(u64, usize, u64, &Backing) -> Result<(), DmaErrorKind>,
    ) -> Result<(), DmaError> {
        let mut done = 0;
        while done < len {
            let at = address.wrapping_add(done as u64);
            done +=
                self.access(at, len - done, write, |n, backing| copy(at, n, done as u64, backing))?;
        }
        self.0.moved[usize::from(write)].fetch_add(len as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Requests bytes from the client.
    fn ask_read(&self, address: u64, n: usize) -> Result<Vec<u8>, DmaErrorKind> {
        let mut body = self.ask(&Request::DmaRead { address, count: n as u64 })?;
        if body.len() != 16 + n {
            return Err(DmaErrorKind::Refused(crate::errno::EPROTO));
        }
        body.drain(..16);
        Ok(body)
    }

    /// Makes one piece of an access and returns its length.
    fn access(
        &self,
        address: u64,
        len: usize,
        write: bool,
        mut copy: impl FnMut(usize, &Backing) -> Result<(), DmaErrorKind>,
    ) -> Result<usize, DmaError> {
        let failed = |kind| DmaError { address, write, kind };
        let maps = self.0.maps.read().unwrap_or_else(PoisonError::into_inner);
        let piece = maps.piece(address, len.min(STRIDE), write).map_err(failed)?;
        match &piece.backing {
            // The lock is held during the copy: no copy is in progress after an answered unmap.
            Backing::Memory(..) => {
                copy(piece.len, &piece.backing).map_err(failed)?;
                Ok(piece.len)
            }
            Backing::Message if self.1 == Ask::Nobody => Err(failed(DmaErrorKind::NotMapped)),
            Backing::Message => {
                drop(maps);
                let limit = hold(&self.0.out).as_ref().map_or(0, |(_, limit, _)| *limit);
                if limit == 0 {
                    return Err(failed(DmaErrorKind::Cancelled));
                }
                let n = piece.len.min(limit);
                copy(n, &piece.backing).map_err(failed)?;
                Ok(n)
            }
        }
    }

    /// Sends a request to the client and waits for its answer.
    fn ask(&self, request: &Request<'_>) -> Outcome {
        let (sender, answer) = mpsc::sync_channel(1);
        let id = {
            let mut waiting = hold(&self.0.waiting);
            while waiting.asked.contains_key(&waiting.next) {
                waiting.next = waiting.next.wrapping_add(1);
            }
            let id = waiting.next;
            waiting.next = id.wrapping_add(1);
            waiting.asked.insert(id, sender);
            id
        };
        let (command, body) = request.encode();
        let header = Header::command(id, command, body.len());
        debug_assert!(header.size as usize >= HEADER);
        let outcome = match self.send(&header, &body, &[]) {
            Ok(()) => match answer.recv_timeout(ANSWER) {
                Ok(outcome) => outcome,
                Err(RecvTimeoutError::Timeout) => Err(DmaErrorKind::TimedOut),
                Err(RecvTimeoutError::Disconnected) => Err(DmaErrorKind::Cancelled),
            },
            Err(_) => Err(DmaErrorKind::Cancelled),
        };
        hold(&self.0.waiting).asked.remove(&id);
        outcome
    }
}
