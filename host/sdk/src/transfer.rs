//! Bulk data between the owner and card memory: sealing overlaps with the transfer to the card, opening with the transfer from it.
//!
//! Sealing and opening use all processors; the device stays on the caller's thread, which seals too. Buffers go round, so that a transfer of any length holds a few
//! pieces of ciphertext, and of plaintext no more than the caller does: a piece where it comes from a reader or goes to a writer.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError, mpsc};

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::config::TAG_LEN;
use shef_seal::{OpenPolicy, Opened, Opener, Plain, Portion, SealedRun, Sealer, Spent, processors};
use zeroize::Zeroizing;

use crate::worker::lock;
use crate::{Host, SdkError};

/// Bytes that a thread seals in one go while others are on their way.
const PIECE: usize = 1 << 18;
/// Bytes that two threads open in one go while others are on their way.
const OPENED: usize = 1 << 19;
/// Pieces that are on their way at most.
pub(crate) const PIECES: usize = 3;
/// Pieces that the device is told of before they are fetched.
const AHEAD: usize = 3;
/// Threads that seal beside the caller's at most: more than this is faster than any link.
const HELPERS: usize = 7;
/// Pieces that each of them has.
const EACH: usize = 2;

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are in card memory, or came from there.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Told of the progress of a transfer, before it and after each piece; breaks to end it with [`SdkError::Cancelled`].
pub type Watch<'w> = dyn FnMut(Progress) -> ControlFlow<()> + 'w;

/// Watches nothing and lets every transfer go on.
pub fn unwatched(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn tell(watch: &mut Watch<'_>, done: usize, total: usize) -> Result<(), SdkError> {
    match watch(Progress { done: done as u64, total: total as u64 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(SdkError::Cancelled { done: done as u64, total: total as u64 }),
    }
}

/// Where the plaintext of an upload comes from.
trait Source<'a>: Send {
    /// The next `len` bytes, in `room` where they do not lie in memory.
    fn piece<'r>(&mut self, len: usize, room: &'r mut Zeroizing<Vec<u8>>) -> io::Result<&'r [u8]>
    where
        'a: 'r;
}

/// Bytes of the caller's, which are sealed where they lie.
impl<'a> Source<'a> for &'a [u8] {
    fn piece<'r>(&mut self, len: usize, _: &'r mut Zeroizing<Vec<u8>>) -> io::Result<&'r [u8]>
    where
        'a: 'r,
    {
        self.split_off(..len).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

struct FromReader<R>(R);

impl<'a, R: Read + Send> Source<'a> for FromReader<R> {
    fn piece<'r>(&mut self, len: usize, room: &'r mut Zeroizing<Vec<u8>>) -> io::Result<&'r [u8]>
    where
        'a: 'r,
    {
        room.resize(len, 0);
        self.0.read_exact(room)?;
        Ok(room)
    }
}

/// Where the plaintext of a download goes.
trait Sink: Send {
    /// Room for the next `len` bytes, zeros.
    fn room(&mut self, len: usize) -> &mut [u8];

    /// The room was filled with what opened.
    fn filled(&mut self) -> io::Result<()>;
}

/// Room for everything, and how much of it was filled or is about to be.
struct ToSlice<'a>(&'a mut [u8]);

impl Sink for ToSlice<'_> {
    fn room(&mut self, len: usize) -> &mut [u8] {
        self.0.split_off_mut(..len).unwrap_or_default()
    }

    fn filled(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer, the piece that opens next, and how many bytes the writer still gets.
struct ToWriter<W>(W, Zeroizing<Vec<u8>>, u64);

impl<W: Write + Send> Sink for ToWriter<W> {
    fn room(&mut self, len: usize) -> &mut [u8] {
        self.1.clear();
        self.1.resize(len, 0);
        &mut self.1
    }

    fn filled(&mut self) -> io::Result<()> {
        // The last chunk may be longer than what was asked for.
        let len = self.2.min(self.1.len() as u64);
        self.2 -= len;
        self.0.write_all(&self.1[..len as usize])
    }
}

/// Seals `data` and has it carried into card memory. The sealer's epoch is over in any case.
///
/// [`crate::Session::upload`] does this for a session's buffers.
///
/// # Errors
/// Those of the host, and data of another length than the sealer was made for.
pub fn upload(host: &mut Host, sealer: Sealer, data: &[u8]) -> (Spent, Result<(), SdkError>) {
    send(host, sealer, &mut { data }, data.len(), &mut unwatched)
}

/// As [`upload`], of `len` bytes that are read piece by piece.
///
/// [`crate::Session::upload_from`] does this for a session's buffers.
///
/// # Errors
/// As [`upload`]; [`SdkError::Stream`] where the reader fails or ends early, [`SdkError::Cancelled`].
pub fn upload_from(
    host: &mut Host,
    sealer: Sealer,
    from: impl Read + Send,
    len: usize,
    watch: &mut Watch<'_>,
) -> (Spent, Result<(), SdkError>) {
    send(host, sealer, &mut FromReader(from), len, watch)
}

/// What is still to be sealed: each piece by the thread that asks for it.
struct Pieces<'s, 'a> {
    sealer: Sealer,
    source: &'s mut dyn Source<'a>,
    rest: usize,
}

impl<'a> Pieces<'_, 'a> {
    /// Seals the next piece into `run`: whether there was one. After an error there is none.
    fn seal<'r>(all: &Mutex<Self>, room: &'r mut Zeroizing<Vec<u8>>, run: &mut SealedRun) -> Result<bool, SdkError>
    where
        'a: 'r,
    {
        let Some((portion, data)) = lock(all).next(room)? else { return Ok(false) };
        portion.seal_into(data, run)?;
        Ok(true)
    }

    fn next<'r>(&mut self, room: &'r mut Zeroizing<Vec<u8>>) -> Result<Option<(Portion, &'r [u8])>, SdkError>
    where
        'a: 'r,
    {
        if self.rest == 0 {
            return Ok(None);
        }
        let (len, rest) = (self.rest.min(PIECE), std::mem::take(&mut self.rest));
        let data = self.source.piece(len, room).map_err(unread)?;
        // The last one is filled up with zeros.
        let bytes = if len == rest { self.sealer.remaining() } else { len as u64 };
        let portion = self.sealer.portion(bytes)?;
        self.rest = rest - len;
        Ok(Some((portion, data)))
    }
}

/// Every thread seals, and this one hands to the device what it and the others sealed: it waits for them only at the end, so that sealing and transfer
/// keep one another from nothing.
fn send<'a>(
    host: &mut Host,
    sealer: Sealer,
    source: &mut dyn Source<'a>,
    len: usize,
    watch: &mut Watch<'_>,
) -> (Spent, Result<(), SdkError>) {
    let pieces = Mutex::new(Pieces { sealer, source, rest: len });
    let helpers = (processors() - 1).min(len / PIECE / 2).min(HELPERS);
    let result = tell(watch, 0, len).and_then(|()| {
        std::thread::scope(|scope| {
            let (sealed, runs) = mpsc::channel();
            let helpers: Vec<_> = (0..helpers)
                .map(|helper| {
                    let (back, empty) = mpsc::channel();
                    (0..EACH).for_each(|_| drop(back.send(spare(host))));
                    let (sealed, pieces) = (sealed.clone(), &pieces);
                    (back, scope.spawn(move || help(pieces, &empty, |run| sealed.send((helper, run)).is_ok()).map(|()| empty)))
                })
                .collect();
            drop(sealed);
            let mut done = 0;
            let mut carry = |host: &mut Host, run: SealedRun| {
                done = len.min(done + run.data.len());
                deliver(host, run).and_then(|run| tell(watch, done, len).map(|()| run))
            };
            let mut carried = || -> Result<(), SdkError> {
                let (mut room, mut own) = (Zeroizing::default(), spare(host));
                loop {
                    for (helper, run) in runs.try_iter() {
                        let _ = helpers[helper].0.send(carry(host, run)?);
                    }
                    if !Pieces::seal(&pieces, &mut room, &mut own)? {
                        break;
                    }
                    own = carry(host, own)?;
                }
                host.keep_spare((own.data, own.tags));
                for (helper, run) in &runs {
                    let _ = helpers[helper].0.send(carry(host, run)?);
                }
                Ok(())
            };
            let mut result = carried();
            // Where it failed, nothing more is sealed.
            lock(&pieces).rest = 0;
            for (back, helper) in helpers {
                drop(back);
                match helper.join() {
                    Ok(Ok(empty)) => empty.iter().for_each(|run| host.keep_spare((run.data, run.tags))),
                    Ok(Err(error)) => result = result.and(Err(error)),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            result
        })
    });
    (pieces.into_inner().unwrap_or_else(PoisonError::into_inner).sealer.give_up(), result)
}

/// Seals pieces into the buffers that come back, until there are none, or nobody takes them.
fn help(pieces: &Mutex<Pieces<'_, '_>>, empty: &mpsc::Receiver<SealedRun>, sealed: impl Fn(SealedRun) -> bool) -> Result<(), SdkError> {
    let mut room = Zeroizing::default();
    while let Ok(mut run) = empty.recv() {
        if !Pieces::seal(pieces, &mut room, &mut run)? || !sealed(run) {
            break;
        }
    }
    Ok(())
}

/// Buffers of an earlier transfer, or new ones.
fn spare(host: &mut Host) -> SealedRun {
    let (data, tags) = host.take_spare();
    SealedRun { data, tags, ..SealedRun::default() }
}

fn unread(source: io::Error) -> SdkError {
    SdkError::Stream { what: "what is to be sealed cannot be read", source }
}

fn deliver(host: &mut Host, run: SealedRun) -> Result<SealedRun, SdkError> {
    let [data, tags] = host.deliver([(run.addr, run.data), (run.tag_addr, run.tags)])?;
    Ok(SealedRun { data, tags, ..run })
}

/// What is opened, and under what.
#[derive(Debug, Clone, Copy)]
pub struct Open<'a> {
    /// Statement of the Shield.
    pub statement: &'a Statement,
    /// Regions that the launch could not have reached.
    pub unreached: &'a [u8],
    /// What is tolerated.
    pub policy: OpenPolicy,
    /// Chunks from the region's start on.
    pub chunks: u64,
}

/// Brings chunks from the region's start and opens them under the statement.
///
/// [`crate::Session::open`] does this for a session's buffers, and checks the statement's age too.
///
/// # Errors
/// Those of the host and of [`Opener::open_despite_fault`].
pub fn download(host: &mut Host, opener: &Opener, open: Open<'_>) -> Result<Opened, SdkError> {
    let mut data = Plain::zeros(open.chunks as usize * opener.region().chunk as usize);
    let written = receive(host, opener, open, &mut ToSlice(&mut data), &mut unwatched)?;
    Ok(Opened { data, written })
}

/// As [`download`], of which `to` gets the first `len` bytes piece by piece. Each piece was opened before it is written. The writer comes back only with
/// all of them: where it does not, what it took is not the result.
///
/// [`crate::Session::open_to`] does this for a session's buffers.
///
/// # Errors
/// As [`download`]; [`SdkError::Stream`] where the writer fails, [`SdkError::Cancelled`].
pub fn download_to<W: Write + Send>(
    host: &mut Host,
    opener: &Opener,
    open: Open<'_>,
    to: W,
    len: u64,
    watch: &mut Watch<'_>,
) -> Result<(W, WrittenMap), SdkError> {
    let mut sink = ToWriter(to, Zeroizing::default(), len);
    let written = receive(host, opener, open, &mut sink, watch)?;
    sink.0.flush().map_err(unwritten)?;
    Ok((sink.0, written))
}

fn unwritten(source: io::Error) -> SdkError {
    SdkError::Stream { what: "results cannot be written", source }
}

fn receive(host: &mut Host, opener: &Opener, open: Open<'_>, sink: &mut dyn Sink, watch: &mut Watch<'_>) -> Result<WrittenMap, SdkError> {
    let (base, tag_base, chunk) = (opener.region().base, opener.region().tag_base, opener.region().chunk as usize);
    let total = open.chunks as usize * chunk;
    tell(watch, 0, total)?;
    let Open { statement, unreached, policy, .. } = open;
    // What has another length than was asked for is refused by the opener, which compares it with the room for it.
    let piece = |sink: &mut dyn Sink, at: usize, (data, tags): &(Vec<u8>, Vec<u8>)| -> Result<WrittenMap, SdkError> {
        let room = sink.room(OPENED.min(total - at));
        let written = opener.open_piece(statement, unreached, policy, (at / chunk) as u64, (data, tags), room)?;
        sink.filled().map_err(unwritten)?;
        Ok(written)
    };
    let ranges = |at: usize| {
        let (first, len) = (at / chunk, OPENED.min(total - at));
        [(base + at as u64, len), (tag_base + first as u64 * TAG_LEN, len / chunk * TAG_LEN as usize)]
    };
    let fetch = |host: &mut Host, at: usize, (data, tags): (Vec<u8>, Vec<u8>)| -> Result<(Vec<u8>, Vec<u8>), SdkError> {
        let [(data_at, data_len), (tags_at, tags_len)] = ranges(at);
        let [data, tags] = host.fetch([(data_at, data, data_len), (tags_at, tags, tags_len)])?;
        Ok((data, tags))
    };
    if total <= OPENED {
        let sealed = fetch(host, 0, Default::default())?;
        tell(watch, total, total)?;
        return piece(sink, 0, &sealed);
    }
    let written = std::thread::scope(|scope| {
        let (came, pieces) = mpsc::channel::<(Vec<u8>, Vec<u8>)>();
        let (back, empty) = mpsc::channel();
        for _ in 0..PIECES {
            let _ = back.send(host.take_spare());
        }
        let worker = scope.spawn(move || -> Result<Option<WrittenMap>, SdkError> {
            let mut written = None;
            for (at, sealed) in (0..total).step_by(OPENED).zip(pieces) {
                written = Some(piece(sink, at, &sealed)?);
                let _ = back.send(sealed);
            }
            Ok(written)
        });
        let mut fetch_all = || -> Result<(), SdkError> {
            let mut soon = (0..total).step_by(OPENED).map(ranges);
            soon.by_ref().take(AHEAD).try_for_each(|next| host.fetch_soon(&next))?;
            for at in (0..total).step_by(OPENED) {
                // The worker is gone where a piece did not open.
                let Ok(buffers) = empty.recv() else { break };
                // While this piece is copied and others are opened, the next are on their way.
                soon.next().map_or(Ok(()), |next| host.fetch_soon(&next))?;
                let sealed = fetch(host, at, buffers)?;
                tell(watch, total.min(at + OPENED), total)?;
                if came.send(sealed).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let fetched = fetch_all();
        drop(came);
        let opened = worker.join();
        empty.iter().for_each(|buffers| host.keep_spare(buffers));
        match opened {
            Ok(result) => fetched.and(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    written.ok_or(SdkError::Length { what: "results", found: 0, expected: total })
}
