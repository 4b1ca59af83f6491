//! Bulk data between the owner and card memory: sealing overlaps with the transfer to the card, and
//! opening with the transfer from the card.
//!
//! All processors seal and open. The device stays on the caller's thread, which seals and opens
//! too. A transfer of any length holds a few pieces of ciphertext. With a reader or writer it also
//! holds a few pieces of plaintext, otherwise only the caller's.
//!
//! The cipher works in a few kilobytes of private memory that stay in the L1 cache. A sealing
//! thread then copies the result to where the card fetches it; an opening thread copies first. The
//! card must never see memory that the cipher works on: if it changed ciphertext at that time, the
//! tag would cover data that the owner never sealed, or the plaintext would differ from the data
//! that the tag covers.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::TrySendError;
use std::sync::{Mutex, PoisonError, mpsc};

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::config::TAG_LEN;
use shef_seal::{OpenPolicy, Opened, Opener, Plain, Portion, SealError, Sealer, Spent, processors};
use zeroize::Zeroizing;

use super::lock;
use crate::SdkError;
use crate::host::Host;
use crate::host::carrier::{Carrier, Parcel, Ranges};
pub use crate::progress::{Progress, Watch, unwatched};

/// Bytes that justify another thread.
const SHARE: usize = 1 << 19;
/// Pieces that are prefetched.
const AHEAD: usize = 16;
/// Maximum number of threads beside the caller's that seal or open: more than this is faster than
/// any link.
const HELPERS: usize = 7;
/// Pieces per helper.
const EACH: usize = 5;

fn tell(watch: &mut Watch<'_>, done: usize, total: usize) -> Result<(), SdkError> {
    match watch(Progress { done: done as u64, total: total as u64 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(SdkError::Cancelled { done: done as u64, total: total as u64 })
        }
    }
}

/// Source of the plaintext of an upload.
trait Source<'a>: Send {
    /// The next `len` bytes, in `room` if they are not in memory already.
    fn piece<'r>(&mut self, len: usize, room: &'r mut Zeroizing<Vec<u8>>) -> io::Result<&'r [u8]>
    where
        'a: 'r;
}

/// The caller's bytes, which are sealed in place.
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

/// Buffer for the plaintext of a piece.
enum Room<'a> {
    /// The caller's.
    Lent(&'a mut [u8]),
    /// Temporary, for plaintext that goes elsewhere afterwards.
    Own(Zeroizing<Vec<u8>>),
}

impl Room<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

/// Destination of the plaintext of a download.
trait Sink<'a> {
    /// A buffer for the next `len` bytes.
    fn room(&mut self, len: usize) -> Room<'a>;

    /// Takes the opened plaintext of the oldest buffer that has not been filled yet.
    fn filled(&mut self, room: Room<'a>) -> io::Result<()>;
}

/// The caller's bytes that have not been lent: all of the last piece, or its beginning.
struct ToSlice<'a>(&'a mut [u8]);

impl<'a> Sink<'a> for ToSlice<'a> {
    fn room(&mut self, len: usize) -> Room<'a> {
        self.0.split_off_mut(..len).map_or_else(|| Room::Own(vec![0; len].into()), Room::Lent)
    }

    fn filled(&mut self, room: Room<'a>) -> io::Result<()> {
        if let Room::Own(opened) = room {
            let rest = std::mem::take(&mut self.0);
            rest.copy_from_slice(&opened[..rest.len()]);
        }
        Ok(())
    }
}

/// A writer, the number of bytes it still gets, and spare buffers.
struct ToWriter<W>(W, u64, Vec<Zeroizing<Vec<u8>>>);

impl<'a, W: Write> Sink<'a> for ToWriter<W> {
    fn room(&mut self, len: usize) -> Room<'a> {
        let mut room = self.2.pop().unwrap_or_default();
        room.resize(len, 0);
        Room::Own(room)
    }

    fn filled(&mut self, mut room: Room<'a>) -> io::Result<()> {
        let bytes = room.bytes();
        // The last chunk may extend past the requested length.
        let len = self.1.min(bytes.len() as u64);
        self.1 -= len;
        self.0.write_all(&bytes[..len as usize])?;
        if let Room::Own(room) = room {
            self.2.push(room);
        }
        Ok(())
    }
}

/// Seals `data` and transfers it into card memory. This ends the sealer's epoch in any case.
///
/// [`crate::Session::upload`] does this for a session's buffers.
///
/// # Errors
/// Host errors, data of a length other than the sealer's, [`SdkError::Cancelled`].
pub fn upload(
    host: &mut Host,
    sealer: Sealer,
    data: &[u8],
    watch: &mut Watch<'_>,
) -> (Spent, Result<(), SdkError>) {
    send(host, sealer, &mut { data }, data.len(), watch)
}

/// As [`upload`], of `len` bytes that are read piece by piece.
///
/// [`crate::Session::upload_from`] does this for a session's buffers.
///
/// # Errors
/// As [`upload`]; [`SdkError::Stream`] if the reader fails or ends early, [`SdkError::Cancelled`].
pub fn upload_from(
    host: &mut Host,
    sealer: Sealer,
    from: impl Read + Send,
    len: usize,
    watch: &mut Watch<'_>,
) -> (Spent, Result<(), SdkError>) {
    send(host, sealer, &mut FromReader(from), len, watch)
}

/// Number of threads that work on `bytes` bytes beside the caller's.
fn helpers(bytes: usize) -> usize {
    (processors() - 1).min(bytes / SHARE).min(HELPERS)
}

/// The pieces still to be sealed, each by the thread that takes it.
struct Pieces<'s, 'a> {
    sealer: Sealer,
    source: &'s mut dyn Source<'a>,
    /// Remaining bytes of the source, and maximum bytes of a piece.
    rest: usize,
    most: usize,
    /// Nothing more is to be sealed.
    over: bool,
}

impl<'a> Pieces<'_, 'a> {
    /// Seals the next piece into `parcel`; returns whether there was one. After an error there are
    /// no more pieces.
    fn seal<'r>(
        all: &Mutex<Self>,
        room: &'r mut Zeroizing<Vec<u8>>,
        parcel: &mut Parcel,
    ) -> Result<bool, SdkError>
    where
        'a: 'r,
    {
        let Some((portion, data)) = lock(all).next(room)? else { return Ok(false) };
        let (chunk, tag) = (portion.chunk(), TAG_LEN as usize);
        let ((data_addr, tags_addr), bytes) = (portion.addresses(), portion.bytes() as usize);
        parcel.address(Ranges { data: (data_addr, bytes), tags: (tags_addr, bytes / chunk * tag) });
        portion.seal_to(data, |n, sealed, tags| {
            parcel.put((n as usize * chunk, sealed), (n as usize * tag, tags))
        })?;
        Ok(true)
    }

    fn next<'r>(
        &mut self,
        room: &'r mut Zeroizing<Vec<u8>>,
    ) -> Result<Option<(Portion, &'r [u8])>, SdkError>
    where
        'a: 'r,
    {
        if std::mem::replace(&mut self.over, true) {
            return Ok(None);
        }
        let len = self.rest.min(self.most);
        let data = self.source.piece(len, room).map_err(unread)?;
        // The last pieces are padded with zeros.
        let bytes = if len == self.rest {
            self.sealer.remaining().min(self.most as u64)
        } else {
            len as u64
        };
        let portion = self.sealer.portion(bytes)?;
        self.rest -= len;
        self.over = self.rest == 0 && self.sealer.remaining() == 0;
        Ok(Some((portion, data)))
    }
}

/// Every thread seals, and this one passes all sealed pieces to the device. It waits for the others
/// only at the end, so that neither sealing nor the transfer blocks the other.
fn send<'a>(
    host: &mut Host,
    sealer: Sealer,
    source: &mut dyn Source<'a>,
    len: usize,
    watch: &mut Watch<'_>,
) -> (Spent, Result<(), SdkError>) {
    let mut carrier = match tell(watch, 0, len).and_then(|()| Carrier::new(host, len)) {
        Ok(carrier) => carrier,
        Err(error) => return (sealer.give_up(), Err(error)),
    };
    let most = carrier.bytes(sealer.region().chunk as usize);
    let pieces = Mutex::new(Pieces { sealer, source, rest: len, most, over: false });
    let result = std::thread::scope(|scope| {
        let (sealed, parcels) = mpsc::channel();
        let (backs, helpers): (Vec<_>, Vec<_>) = (0..helpers(len))
            .map(|helper| {
                let (back, empty) = mpsc::channel();
                let (sealed, pieces) = (sealed.clone(), &pieces);
                (
                    back,
                    scope.spawn(move || {
                        help(pieces, &empty, |parcel| sealed.send((helper, parcel)).is_ok())
                    }),
                )
            })
            .unzip();
        drop(sealed);
        let mut done = 0;
        let mut carry = |carrier: &mut Carrier<'_>, parcel: Parcel| {
            done = len.min(done + parcel.bytes());
            carrier.send(parcel).and_then(|()| tell(watch, done, len))
        };
        // Drops the channels back to the helpers at the end, so that they stop waiting.
        let mut carried = |backs: Vec<mpsc::Sender<Parcel>>| -> Result<(), SdkError> {
            for _ in 0..EACH {
                backs
                    .iter()
                    .try_for_each(|back| carrier.parcel().map(|parcel| drop(back.send(parcel))))?;
            }
            let mut room = Zeroizing::default();
            loop {
                for (helper, parcel) in parcels.try_iter() {
                    carry(&mut carrier, parcel)?;
                    let _ = backs[helper].send(carrier.parcel()?);
                }
                let mut own = carrier.parcel()?;
                if !Pieces::seal(&pieces, &mut room, &mut own)? {
                    carrier.keep(own);
                    break;
                }
                carry(&mut carrier, own)?;
            }
            drop(backs);
            parcels.iter().try_for_each(|(_, parcel)| carry(&mut carrier, parcel))
        };
        let mut result = carried(backs);
        // After a failure nothing more is sealed.
        lock(&pieces).over = true;
        for helper in helpers {
            match helper.join() {
                Ok(Ok(unused)) => unused.into_iter().for_each(|parcel| carrier.keep(parcel)),
                Ok(Err(error)) => result = result.and(Err(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        result
    });
    (pieces.into_inner().unwrap_or_else(PoisonError::into_inner).sealer.give_up(), result)
}

/// Seals pieces into the parcels it receives, until there are no more or the receiver is gone;
/// returns the unused parcels.
fn help(
    pieces: &Mutex<Pieces<'_, '_>>,
    empty: &mpsc::Receiver<Parcel>,
    sealed: impl Fn(Parcel) -> bool,
) -> Result<Vec<Parcel>, SdkError> {
    let mut room = Zeroizing::default();
    while let Ok(mut parcel) = empty.recv() {
        if !Pieces::seal(pieces, &mut room, &mut parcel)? {
            return Ok([parcel].into_iter().chain(empty.iter()).collect());
        }
        if !sealed(parcel) {
            break;
        }
    }
    Ok(Vec::new())
}

fn unread(source: io::Error) -> SdkError {
    SdkError::Stream { what: "what is to be sealed cannot be read", source }
}

/// Conditions for opening results.
#[derive(Debug, Clone, Copy)]
pub struct Open<'a> {
    /// Statement of the Shield.
    pub statement: &'a Statement,
    /// Regions that the launch could not have reached.
    pub unreached: &'a [u8],
    /// The tolerated refusals.
    pub policy: OpenPolicy,
}

/// Fetches the chunks of the region's first `len` bytes and opens them under the statement.
///
/// [`crate::Session::open`] does this for a session's buffers, and also checks the statement's age.
///
/// # Errors
/// Host errors, and as [`Opener::open_despite_fault`].
pub fn download(
    host: &mut Host,
    opener: &Opener,
    open: Open<'_>,
    len: u64,
    watch: &mut Watch<'_>,
) -> Result<Opened, SdkError> {
    let mut data = Plain::zeros(whole_chunks(opener, len));
    let written = receive(host, opener, open, data.len(), &mut ToSlice(&mut data), watch)?;
    data.shorten(len as usize);
    Ok(Opened { data, written })
}

/// As [`download`], into the caller's memory, which sets the length: zeros on failure.
///
/// [`crate::Session::open_into`] does this for a session's buffers.
///
/// # Errors
/// As [`download`].
pub fn download_into(
    host: &mut Host,
    opener: &Opener,
    open: Open<'_>,
    out: &mut [u8],
    watch: &mut Watch<'_>,
) -> Result<WrittenMap, SdkError> {
    let bytes = whole_chunks(opener, out.len() as u64);
    receive(host, opener, open, bytes, &mut ToSlice(&mut *out), watch).inspect_err(|_| out.fill(0))
}

/// As [`download`], but writes the first `len` bytes to `to` piece by piece. Each piece is opened
/// before it is written. The writer is returned only after all of them: on an error, its output is
/// not the result.
///
/// [`crate::Session::open_to`] does this for a session's buffers.
///
/// # Errors
/// As [`download`]; [`SdkError::Stream`] if the writer fails, [`SdkError::Cancelled`].
pub fn download_to<W: Write>(
    host: &mut Host,
    opener: &Opener,
    open: Open<'_>,
    to: W,
    len: u64,
    watch: &mut Watch<'_>,
) -> Result<(W, WrittenMap), SdkError> {
    let mut sink = ToWriter(to, len, Vec::new());
    let written = receive(host, opener, open, whole_chunks(opener, len), &mut sink, watch)?;
    sink.0.flush().map_err(unwritten)?;
    Ok((sink.0, written))
}

fn whole_chunks(opener: &Opener, len: u64) -> usize {
    len.next_multiple_of(opener.region().chunk.into()) as usize
}

fn unwritten(source: io::Error) -> SdkError {
    SdkError::Stream { what: "results cannot be written", source }
}

/// A fetched piece: its first byte, its ciphertext and tags, and a buffer for its plaintext.
struct FetchedPiece<'a> {
    at: usize,
    parcel: Parcel,
    room: Room<'a>,
}

/// An opened piece, with its plaintext in the buffer.
type OpenedPiece<'a> = Result<FetchedPiece<'a>, SdkError>;

/// This thread fetches pieces from the device, and opens those for which no other thread is free.
fn receive<'a>(
    host: &mut Host,
    opener: &Opener,
    Open { statement, unreached, policy }: Open<'_>,
    total: usize,
    sink: &mut dyn Sink<'a>,
    watch: &mut Watch<'_>,
) -> Result<WrittenMap, SdkError> {
    let region = opener.region();
    let chunk = region.chunk as usize;
    opener.check_despite_fault(statement, unreached, policy)?;
    tell(watch, 0, total)?;
    let mut carrier = Carrier::new(host, total)?;
    let most = carrier.bytes(chunk);
    let open = |mut piece: FetchedPiece<'a>| -> OpenedPiece<'a> {
        let FetchedPiece { at, parcel, room } = &mut piece;
        // Rejects a piece of the wrong length: the opener compares it with its buffer.
        let (len, tags) = parcel.fetched()?;
        let bring = |at: usize, out: &mut [u8]| parcel.get(at, out);
        opener.open_piece_from(
            statement,
            unreached,
            policy,
            (*at / chunk) as u64,
            (len, &tags),
            room.bytes(),
            bring,
        )?;
        Ok(piece)
    };
    // A thread that takes a piece from the queue returns it on the piece's own channel: the results
    // are awaited in order.
    let helpers = helpers(total);
    let (queue, taken) =
        mpsc::sync_channel::<(FetchedPiece<'a>, mpsc::Sender<OpenedPiece<'a>>)>(helpers);
    let taken = Mutex::new(taken);
    let open_next = || {
        // Other threads can use the queue while this piece is opened.
        let next = lock(&taken).recv();
        next.map(|(piece, opened)| drop(opened.send(open(piece)))).is_ok()
    };
    std::thread::scope(|scope| {
        (0..helpers).for_each(|_| drop(scope.spawn(|| while open_next() {})));
        let ranges = |at: usize| {
            let len = most.min(total - at);
            let tags = (region.tag_addr((at / chunk) as u64), len / chunk * TAG_LEN as usize);
            Ranges { data: (region.base + at as u64, len), tags }
        };
        let (mut awaited, mut done) = (VecDeque::new(), 0);
        let mut finish = |sink: &mut dyn Sink<'a>,
                          first: Option<mpsc::Receiver<OpenedPiece<'a>>>| {
            // Nothing is sent if a helper panicked, and then the scope panics too.
            let gone = SdkError::Length { what: "results", found: done, expected: total };
            let FetchedPiece { at, parcel, room } =
                first.and_then(|first| first.recv().ok()).ok_or(gone)??;
            sink.filled(room).map_err(unwritten)?;
            done = total.min(at + most);
            tell(watch, done, total)?;
            Ok::<_, SdkError>(parcel)
        };
        let mut soon = 0;
        for at in (0..total).step_by(most) {
            if awaited.len() > EACH * helpers {
                carrier.keep(finish(sink, awaited.pop_front())?);
            }
            // While this piece is copied and others are opened, the next are in flight.
            while soon < total.min(at + AHEAD * most) && carrier.fetch_soon(ranges(soon))? {
                soon += most;
            }
            let parcel = carrier.fetch(ranges(at))?;
            soon = soon.max(at + most);
            let (opened, first) = mpsc::channel();
            awaited.push_back(first);
            let piece = FetchedPiece { at, room: sink.room(parcel.bytes()), parcel };
            if let Err(
                TrySendError::Full((piece, opened)) | TrySendError::Disconnected((piece, opened)),
            ) = queue.try_send((piece, opened))
            {
                let _ = opened.send(open(piece));
            }
        }
        drop(queue);
        while open_next() {}
        while !awaited.is_empty() {
            carrier.keep(finish(sink, awaited.pop_front())?);
        }
        Ok::<_, SdkError>(())
    })?;
    Ok(statement.written(region.id).ok_or(SealError::Session)?.clone())
}
