//! Bulk data between the owner and card memory: sealing overlaps with the transfer to the card, and
//! opening with the transfer from the card.
//!
//! All processors seal and open. The device stays on the caller's thread, which seals and opens
//! too. A transfer of any length holds a few pieces of ciphertext. It holds a few pieces of
//! plaintext if that comes from a reader or goes to a writer, and otherwise only the caller's.
//!
//! The cipher works in a few kilobytes of private memory that stay in the nearest cache. The thread
//! that sealed them copies them to where the card fetches them; a thread that opens copies first.
//! The card must never see memory that the cipher works on: if it changed ciphertext at that time,
//! the tag would be for data that the owner never sealed, or the plaintext would not be what the
//! tag was compared with.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::TrySendError;
use std::sync::{Mutex, PoisonError, mpsc};

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::config::TAG_LEN;
use shef_seal::{OpenPolicy, Opened, Opener, Plain, Portion, SealError, Sealer, Spent, processors};
use zeroize::Zeroizing;

use crate::carrier::{Carrier, Parcel, Ranges};
use crate::worker::lock;
use crate::{Host, SdkError};

/// Bytes for which another thread is worth its while.
const SHARE: usize = 1 << 19;
/// Pieces that the device is told of before they are fetched.
const AHEAD: usize = 16;
/// Threads beside the caller's that seal or open at most: more than this is faster than any link.
const HELPERS: usize = 7;
/// Pieces that each of them has.
const EACH: usize = 5;

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that are in card memory, or came from there.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Told of the progress of a transfer, before it and after each piece; breaks to end it with
/// [`SdkError::Cancelled`].
pub type Watch<'w> = dyn FnMut(Progress) -> ControlFlow<()> + 'w;

/// Watches nothing and lets every transfer go on.
pub fn unwatched(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn tell(watch: &mut Watch<'_>, done: usize, total: usize) -> Result<(), SdkError> {
    match watch(Progress { done: done as u64, total: total as u64 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(SdkError::Cancelled { done: done as u64, total: total as u64 })
        }
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

/// Room for the plaintext of a piece.
enum Room<'a> {
    /// Of the caller's.
    Lent(&'a mut [u8]),
    /// For what goes elsewhere afterwards.
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

/// Where the plaintext of a download goes.
trait Sink<'a> {
    /// Room for the next `len` bytes.
    fn room(&mut self, len: usize) -> Room<'a>;

    /// The first room that was not filled before is filled now with what opened.
    fn filled(&mut self, room: Room<'a>) -> io::Result<()>;
}

/// Bytes of the caller's that have not been lent: all of the last piece, or its beginning.
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

/// A writer, how many bytes it still gets, and room of pieces that it has.
struct ToWriter<W>(W, u64, Vec<Zeroizing<Vec<u8>>>);

impl<'a, W: Write> Sink<'a> for ToWriter<W> {
    fn room(&mut self, len: usize) -> Room<'a> {
        let mut room = self.2.pop().unwrap_or_default();
        room.resize(len, 0);
        Room::Own(room)
    }

    fn filled(&mut self, mut room: Room<'a>) -> io::Result<()> {
        let bytes = room.bytes();
        // The last chunk may be longer than what was asked for.
        let len = self.1.min(bytes.len() as u64);
        self.1 -= len;
        self.0.write_all(&bytes[..len as usize])?;
        if let Room::Own(room) = room {
            self.2.push(room);
        }
        Ok(())
    }
}

/// Seals `data` and has it carried into card memory. The sealer's epoch is over in any case.
///
/// [`crate::Session::upload`] does this for a session's buffers.
///
/// # Errors
/// Those of the host, data of another length than the sealer was made for, [`SdkError::Cancelled`].
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
/// As [`upload`]; [`SdkError::Stream`] where the reader fails or ends early,
/// [`SdkError::Cancelled`].
pub fn upload_from(
    host: &mut Host,
    sealer: Sealer,
    from: impl Read + Send,
    len: usize,
    watch: &mut Watch<'_>,
) -> (Spent, Result<(), SdkError>) {
    send(host, sealer, &mut FromReader(from), len, watch)
}

/// Threads that work on so many bytes beside the caller's.
fn helpers(bytes: usize) -> usize {
    (processors() - 1).min(bytes / SHARE).min(HELPERS)
}

/// What is still to be sealed: each piece by the thread that asks for it.
struct Pieces<'s, 'a> {
    sealer: Sealer,
    source: &'s mut dyn Source<'a>,
    /// Bytes of the source that are left, and most bytes of a piece.
    rest: usize,
    most: usize,
    /// Nothing more is sealed.
    over: bool,
}

impl<'a> Pieces<'_, 'a> {
    /// Seals the next piece into `parcel`: whether there was one. After an error there is none.
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
        // The last ones are filled up with zeros.
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

/// Every thread seals, and this one hands to the device what it and the others sealed: it waits for
/// them only at the end, so that sealing and transfer keep one another from nothing.
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
        // Ends with the way back to the helpers, who wait for nothing more then.
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
        // Where it failed, nothing more is sealed.
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

/// Seals pieces into the parcels that come, until there are none, or nobody takes them: the parcels
/// that it did not need.
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

/// Under what results are opened.
#[derive(Debug, Clone, Copy)]
pub struct Open<'a> {
    /// Statement of the Shield.
    pub statement: &'a Statement,
    /// Regions that the launch could not have reached.
    pub unreached: &'a [u8],
    /// What is tolerated.
    pub policy: OpenPolicy,
}

/// Brings the chunks of the region's first `len` bytes and opens them under the statement.
///
/// [`crate::Session::open`] does this for a session's buffers, and checks the statement's age too.
///
/// # Errors
/// Those of the host and of [`Opener::open_despite_fault`].
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

/// As [`download`], into memory of the caller's, as many bytes as that has: zeros where it fails.
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

/// As [`download`], of which `to` gets the first `len` bytes piece by piece. Each piece was opened
/// before it is written. The writer comes back only with all of them: where it does not, what it
/// took is not the result.
///
/// [`crate::Session::open_to`] does this for a session's buffers.
///
/// # Errors
/// As [`download`]; [`SdkError::Stream`] where the writer fails, [`SdkError::Cancelled`].
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

/// A piece that came: its first byte, its ciphertext and tags, and room for its plaintext.
struct Came<'a> {
    at: usize,
    parcel: Parcel,
    room: Room<'a>,
}

/// What the thread that takes a piece answers with.
type Answer<'a> = Result<Came<'a>, SdkError>;

/// This thread brings pieces from the device, and opens those that no other thread is free for.
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
    let open = |mut came: Came<'a>| -> Answer<'a> {
        let Came { at, parcel, room } = &mut came;
        // What has another length than was asked for is refused: the opener compares it with the
        // room for it.
        let (len, tags) = parcel.came()?;
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
        Ok(came)
    };
    // Whoever takes a piece of the queue answers where it is waited for: pieces are awaited in
    // their order.
    let helpers = helpers(total);
    let (queue, taken) = mpsc::sync_channel::<(Came<'a>, mpsc::Sender<Answer<'a>>)>(helpers);
    let taken = Mutex::new(taken);
    let open_next = || {
        // The queue is free for others while this piece is opened.
        let next = lock(&taken).recv();
        next.map(|(came, answer)| drop(answer.send(open(came)))).is_ok()
    };
    std::thread::scope(|scope| {
        (0..helpers).for_each(|_| drop(scope.spawn(|| while open_next() {})));
        let ranges = |at: usize| {
            let len = most.min(total - at);
            let tags = (region.tag_addr((at / chunk) as u64), len / chunk * TAG_LEN as usize);
            Ranges { data: (region.base + at as u64, len), tags }
        };
        let (mut awaited, mut done) = (VecDeque::new(), 0);
        let mut finish = |sink: &mut dyn Sink<'a>, first: Option<mpsc::Receiver<Answer<'a>>>| {
            // Nobody answers where a helper panicked, and then so does the scope.
            let gone = SdkError::Length { what: "results", found: done, expected: total };
            let Came { at, parcel, room } =
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
            // While this piece is copied and others are opened, the next are on their way.
            while soon < total.min(at + AHEAD * most) && carrier.fetch_soon(ranges(soon))? {
                soon += most;
            }
            let parcel = carrier.fetch(ranges(at))?;
            soon = soon.max(at + most);
            let (answer, first) = mpsc::channel();
            awaited.push_back(first);
            let came = Came { at, room: sink.room(parcel.bytes()), parcel };
            if let Err(
                TrySendError::Full((came, answer)) | TrySendError::Disconnected((came, answer)),
            ) = queue.try_send((came, answer))
            {
                let _ = answer.send(open(came));
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
