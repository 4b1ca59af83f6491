//! The untrusted host's part of the sealed channel, over any [`Bench`]: it carries messages and may
//! tamper with them.

use crate::bench::Bench;
use crate::{BenchError, Result};
use shef_proto::channel::{MESSAGE_LEN, Sealed};
use shef_regs::ctl;
use std::ops::Range;

/// Maximum number of polls of a status register. Time passes between polls.
const MAX_POLLS: u32 = 20_000;
/// 32-bit words of a message.
pub const WORDS: usize = MESSAGE_LEN / 4;

/// Writes bytes, word by word.
///
/// # Errors
/// Those of `write`.
pub fn bytes_in(
    write: &mut dyn FnMut(u32, u32) -> Result<()>,
    at: u32,
    bytes: &[u8],
) -> Result<()> {
    for (i, c) in (0u32..).zip(bytes.chunks(4)) {
        let mut w = [0; 4];
        w[..c.len()].copy_from_slice(c);
        write(at + 4 * i, u32::from_le_bytes(w))?;
    }
    Ok(())
}

/// Reads bytes, word by word.
///
/// # Errors
/// Those of `read`.
pub fn bytes_out(read: &mut dyn FnMut(u32) -> Result<u32>, at: u32, out: &mut [u8]) -> Result<()> {
    for (i, c) in (0u32..).zip(out.chunks_mut(4)) {
        let w = read(at + 4 * i)?.to_le_bytes();
        c.copy_from_slice(&w[..c.len()]);
    }
    Ok(())
}

/// Polls the status register until `done` holds.
///
/// # Errors
/// If it does not hold in time.
pub fn wait_for(
    bench: &mut dyn Bench,
    what: &'static str,
    done: impl Fn(u32) -> bool,
) -> Result<u32> {
    let mut status = 0;
    for _ in 0..MAX_POLLS {
        status = bench.ctl_read(ctl::STATUS)?;
        if done(status) {
            return Ok(status);
        }
        bench.wait();
    }
    Err(BenchError::Wait { what, status })
}

/// Waits until no request and no Load Key is in progress. Returns the status.
///
/// # Errors
/// If that takes too long.
pub fn ready(bench: &mut dyn Bench) -> Result<u32> {
    wait_for(bench, "the end of a request", |s| {
        ctl::STATUS_CHAN_BUSY.get(s) == 0 && ctl::STATUS_LOAD_BUSY.get(s) == 0
    })
}

/// Writes these words of a message, rings the doorbell and waits. Returns the status.
///
/// # Errors
/// As [`ready`].
pub fn ring(bench: &mut dyn Bench, message: &Sealed, words: Range<usize>) -> Result<u32> {
    for (i, c) in
        (0u32..).zip(message.chunks_exact(4)).filter(|(i, _)| words.contains(&(*i as usize)))
    {
        bench
            .ctl_write(ctl::CHAN_REQ + 4 * i, u32::from_le_bytes(c.try_into().unwrap_or([0; 4])))?;
    }
    bench.ctl_write(ctl::CHAN_DOORBELL, 1)?;
    ready(bench)
}

/// Reads the answer registers.
///
/// # Errors
/// A register that does not answer.
pub fn shown(bench: &mut dyn Bench) -> Result<Sealed> {
    let mut answer = [0; MESSAGE_LEN];
    bytes_out(&mut |a| bench.ctl_read(a), ctl::CHAN_RSP, &mut answer)?;
    Ok(answer)
}

/// Carries a sealed request to the Shield and its answer back.
///
/// # Errors
/// A request that the Shield refuses.
pub fn carry(bench: &mut dyn Bench, sealed: &Sealed) -> Result<Sealed> {
    let status = ring(bench, sealed, 0..WORDS)?;
    if ctl::STATUS_CHAN_REFUSED.get(status) != 0 || ctl::STATUS_CHAN_ANSWER.get(status) == 0 {
        return Err(BenchError::Refused { what: "the request", status });
    }
    shown(bench)
}

/// Hands the Shield a Load Key. Returns the status after the Shield has processed it.
///
/// # Errors
/// If that takes too long.
pub fn load(bench: &mut dyn Bench, message: &[u8]) -> Result<u32> {
    bytes_in(&mut |a, v| bench.ctl_write(a, v), ctl::LOAD_MSG, message)?;
    bench.ctl_write(ctl::LOAD_DOORBELL, u32::try_from(message.len()).unwrap_or(u32::MAX))?;
    ready(bench)
}
