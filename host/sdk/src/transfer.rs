//! Bulk data between the owner and card memory: sealing overlaps with the transfer to the card, opening with the transfer from it.
//!
//! Sealing and opening use all processors; the device stays on the caller's thread. Buffers go round, so that a transfer of any length holds a few
//! pieces of ciphertext.

use std::sync::mpsc;

use shef_proto::channel::{Statement, WrittenMap};
use shef_proto::config::TAG_LEN;
use shef_seal::{OpenPolicy, Opened, Opener, SealError, SealedRun, Sealer, Spent};
use zeroize::Zeroizing;

use crate::{Host, SdkError};

/// Bytes that are sealed or opened in one go while others are on their way.
const PIECE: usize = 1 << 20;
/// Pieces that are on their way at most.
const PIECES: usize = 3;

/// Seals `data` and has it carried into card memory. The sealer's epoch is over in any case.
///
/// [`crate::Session::upload`] does this for a session's buffers.
///
/// # Errors
/// Those of the host, and data of another length than the sealer was made for.
pub fn upload(host: &mut Host, mut sealer: Sealer, data: &[u8]) -> (Spent, Result<(), SdkError>) {
    if data.len() <= PIECE {
        // The sealer was made for this length, so there is room.
        return match sealer.finish(data) {
            Ok((run, spent)) => (spent, deliver(host, run).map(|_| ())),
            Err((error, sealer)) => (sealer.give_up(), Err(error.into())),
        };
    }
    std::thread::scope(|scope| {
        let (sealed, runs) = mpsc::sync_channel(1);
        let (back, empty) = mpsc::channel();
        for _ in 0..PIECES {
            let _ = back.send(SealedRun::default());
        }
        let worker = scope.spawn(move || {
            let mut rest = data;
            while rest.len() > PIECE {
                let (head, tail) = rest.split_at(PIECE);
                // The other side is gone where the transfer failed: nothing more is sealed.
                let Ok(mut run) = empty.recv() else { return (sealer.give_up(), Ok(())) };
                if let Err(error) = sealer.push_into(head, &mut run) {
                    return (sealer.give_up(), Err(error));
                }
                if sealed.send(run).is_err() {
                    return (sealer.give_up(), Ok(()));
                }
                rest = tail;
            }
            match sealer.finish(rest) {
                Ok((run, spent)) => {
                    let _ = sealed.send(run);
                    (spent, Ok(()))
                }
                Err((error, sealer)) => (sealer.give_up(), Err(error)),
            }
        });
        let mut carried = Ok(());
        for run in runs {
            match deliver(host, run) {
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
            Ok((spent, result)) => (spent, carried.and(result.map_err(SdkError::from))),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn deliver(host: &mut Host, run: SealedRun) -> Result<SealedRun, SdkError> {
    let data = host.deliver(run.addr, run.data)?;
    let tags = host.deliver(run.tag_addr, run.tags)?;
    Ok(SealedRun { data, tags, ..run })
}

/// Brings `chunks` chunks from the region's start and opens them under the statement.
///
/// [`crate::Session::open`] does this for a session's buffers, and checks the statement's age too.
///
/// # Errors
/// Those of the host and of [`Opener::open_despite_fault`].
pub fn download(
    host: &mut Host,
    opener: &Opener,
    statement: &Statement,
    unreached: &[u8],
    policy: OpenPolicy,
    chunks: u64,
) -> Result<Opened, SdkError> {
    let (base, tag_base, chunk) = (opener.region().base, opener.region().tag_base, opener.region().chunk as usize);
    let per_piece = PIECE / chunk;
    let mut out = Zeroizing::new(vec![0; chunks as usize * chunk]);
    let open = |first: usize, data: &[u8], tags: &[u8], out: &mut [u8]| {
        opener.open_piece(statement, unreached, policy, first as u64, (data, tags), out)
    };
    let fetch = |host: &mut Host, first: usize, len: usize, (data, tags): (Vec<u8>, Vec<u8>)| -> Result<(Vec<u8>, Vec<u8>), SdkError> {
        let data = host.fetch(base + (first * chunk) as u64, data, len)?;
        let tags = host.fetch(tag_base + first as u64 * TAG_LEN, tags, len / chunk * TAG_LEN as usize)?;
        Ok((data, tags))
    };
    if out.len() <= PIECE {
        let len = out.len();
        let (data, tags) = fetch(host, 0, len, Default::default())?;
        // What has another length than was asked for is refused by the opener, which compares it with the room for it.
        let written = open(0, &data, &tags, &mut out)?;
        return Ok(Opened { data: out, written });
    }
    let total = out.len();
    let written = std::thread::scope(|scope| {
        let (came, pieces) = mpsc::sync_channel::<(Vec<u8>, Vec<u8>)>(1);
        let (back, empty) = mpsc::channel();
        for _ in 0..PIECES {
            let _ = back.send((Vec::new(), Vec::new()));
        }
        let room = &mut out;
        let worker = scope.spawn(move || -> Result<Option<WrittenMap>, SealError> {
            let mut written = None;
            for ((i, out), (data, tags)) in room.chunks_mut(PIECE).enumerate().zip(pieces) {
                written = Some(open(i * per_piece, &data, &tags, out)?);
                let _ = back.send((data, tags));
            }
            Ok(written)
        });
        let mut fetched = Ok(());
        for at in (0..total).step_by(PIECE) {
            // The worker is gone where a piece did not open.
            let Ok(buffers) = empty.recv() else { break };
            match fetch(host, at / chunk, PIECE.min(total - at), buffers) {
                Ok(piece) => {
                    if came.send(piece).is_err() {
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
        match worker.join() {
            Ok(result) => fetched.and(result.map_err(SdkError::from)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    match written {
        Some(written) => Ok(Opened { data: out, written }),
        None => Err(SdkError::Length { what: "results", found: 0, expected: total }),
    }
}
