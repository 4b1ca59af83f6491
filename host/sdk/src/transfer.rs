//! Bulk data between the owner and card memory: sealing overlaps with the transfer to the card, opening with the transfer from it.
//!
//! Sealing and opening use all processors; the device stays on the caller's thread. Buffers go round, so that a transfer of any length holds a few
//! pieces of ciphertext, and of plaintext no more than the caller does: a piece where it comes from a reader or goes to a writer.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc;

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::config::TAG_LEN;
use shef_seal::{OpenPolicy, Opened, Opener, Plain, SealedRun, Sealer, Spent};
use zeroize::Zeroizing;

use crate::{Host, SdkError};

/// Bytes that are sealed or opened in one go while others are on their way.
const PIECE: usize = 1 << 20;
/// Pieces that are on their way at most.
pub(crate) const PIECES: usize = 3;

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
trait Source: Send {
    /// The next `len` bytes.
    fn piece(&mut self, len: usize) -> io::Result<&[u8]>;
}

/// Bytes of the caller's, which are sealed where they lie.
struct FromSlice<'a>(&'a [u8]);

impl Source for FromSlice<'_> {
    fn piece(&mut self, len: usize) -> io::Result<&[u8]> {
        self.0.split_off(..len).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A reader and the piece that was read last.
struct FromReader<R>(R, Zeroizing<Vec<u8>>);

impl<R: Read + Send> Source for FromReader<R> {
    fn piece(&mut self, len: usize) -> io::Result<&[u8]> {
        self.1.resize(len, 0);
        self.0.read_exact(&mut self.1)?;
        Ok(&self.1)
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
    send(host, sealer, &mut FromSlice(data), data.len(), &mut unwatched)
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
    send(host, sealer, &mut FromReader(from, Zeroizing::default()), len, watch)
}

fn send(host: &mut Host, sealer: Sealer, source: &mut dyn Source, len: usize, watch: &mut Watch<'_>) -> (Spent, Result<(), SdkError>) {
    if let Err(error) = tell(watch, 0, len) {
        return (sealer.give_up(), Err(error));
    }
    if len <= PIECE {
        let data = match source.piece(len) {
            Ok(data) => data,
            Err(error) => return (sealer.give_up(), Err(unread(error))),
        };
        // The sealer was made for this length, so there is room.
        return match sealer.finish(data) {
            Ok((run, spent)) => (spent, deliver(host, run).and_then(|_| tell(watch, len, len))),
            Err((error, sealer)) => (sealer.give_up(), Err(error.into())),
        };
    }
    std::thread::scope(|scope| {
        let (sealed, runs) = mpsc::sync_channel(1);
        let (back, empty) = mpsc::channel();
        for _ in 0..PIECES {
            let (data, tags) = host.take_spare();
            let _ = back.send(SealedRun { data, tags, ..SealedRun::default() });
        }
        let worker = scope.spawn(move || (seal_pieces(sealer, source, len, &sealed, &empty), empty));
        let mut carried = Ok(());
        let mut done = 0;
        for run in runs {
            done = len.min(done + PIECE);
            match deliver(host, run).and_then(|run| tell(watch, done, len).map(|()| run)) {
                // The worker may be done already.
                Ok(run) => drop(back.send(run)),
                Err(error) => {
                    carried = Err(error);
                    break;
                }
            }
        }
        drop(back);
        match worker.join() {
            Ok(((spent, result), empty)) => {
                empty.iter().for_each(|run| host.keep_spare((run.data, run.tags)));
                (spent, carried.and(result))
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Seals pieces into the buffers that come back, and sends them on; the rest goes with the last.
fn seal_pieces(
    mut sealer: Sealer,
    source: &mut dyn Source,
    len: usize,
    sealed: &mpsc::SyncSender<SealedRun>,
    empty: &mpsc::Receiver<SealedRun>,
) -> (Spent, Result<(), SdkError>) {
    let mut rest = len;
    // The other side is gone where the transfer failed: nothing more is sealed.
    while let Ok(mut run) = empty.recv() {
        let data = match source.piece(rest.min(PIECE)) {
            Ok(data) => data,
            Err(error) => return (sealer.give_up(), Err(unread(error))),
        };
        if rest <= PIECE {
            return match sealer.finish_into(data, run) {
                Ok((run, spent)) => {
                    let _ = sealed.send(run);
                    (spent, Ok(()))
                }
                Err((error, sealer)) => (sealer.give_up(), Err(error.into())),
            };
        }
        let pushed = sealer.push_into(data, &mut run);
        if pushed.is_err() || sealed.send(run).is_err() {
            return (sealer.give_up(), pushed.map_err(Into::into));
        }
        rest -= PIECE;
    }
    (sealer.give_up(), Ok(()))
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
        let room = sink.room(PIECE.min(total - at));
        let written = opener.open_piece(statement, unreached, policy, (at / chunk) as u64, (data, tags), room)?;
        sink.filled().map_err(unwritten)?;
        Ok(written)
    };
    let fetch = |host: &mut Host, at: usize, (data, tags): (Vec<u8>, Vec<u8>)| -> Result<(Vec<u8>, Vec<u8>), SdkError> {
        let (first, len) = (at / chunk, PIECE.min(total - at));
        let tags_at = tag_base + first as u64 * TAG_LEN;
        let [data, tags] = host.fetch([(base + at as u64, data, len), (tags_at, tags, len / chunk * TAG_LEN as usize)])?;
        Ok((data, tags))
    };
    if total <= PIECE {
        let sealed = fetch(host, 0, Default::default())?;
        tell(watch, total, total)?;
        return piece(sink, 0, &sealed);
    }
    let written = std::thread::scope(|scope| {
        let (came, pieces) = mpsc::sync_channel::<(Vec<u8>, Vec<u8>)>(1);
        let (back, empty) = mpsc::channel();
        for _ in 0..PIECES {
            let _ = back.send(host.take_spare());
        }
        let worker = scope.spawn(move || -> Result<Option<WrittenMap>, SdkError> {
            let mut written = None;
            for (at, sealed) in (0..total).step_by(PIECE).zip(pieces) {
                written = Some(piece(sink, at, &sealed)?);
                let _ = back.send(sealed);
            }
            Ok(written)
        });
        let mut fetched = Ok(());
        for at in (0..total).step_by(PIECE) {
            // The worker is gone where a piece did not open.
            let Ok(buffers) = empty.recv() else { break };
            match fetch(host, at, buffers).and_then(|sealed| tell(watch, total.min(at + PIECE), total).map(|()| sealed)) {
                Ok(sealed) => {
                    if came.send(sealed).is_err() {
                        break;
                    }
                }
                Err(error) => {
                    fetched = Err(error);
                    break;
                }
            }
        }
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
