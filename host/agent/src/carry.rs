//! Carrying out what an owner asks of a card, cut into slices so that it ends with its session.

use shef_device::{CtlOp, Device, DeviceError, mailbox};
use shef_remote::wire::{Answer, Op, codes};

/// Reads of a register that are made before a poll looks whether its session is still there.
const POLL_SLICE: u32 = 256;

/// Does what a request asks of the card; `live` says whether its session is still there.
pub(crate) fn carry_out(device: &mut dyn Device, op: Op, live: &dyn Fn() -> bool) -> Result<Answer, DeviceError> {
    Ok(match op {
        Op::Ctl(ops) => Answer::Values(batch(device, &ops, live)?),
        Op::Kernel(request) => Answer::Bytes(mailbox::call_by(&request, |ops| batch(device, ops, live))?),
        Op::MemRead { addr, len } => {
            let mut bytes = vec![0; len as usize];
            device.mem_read(addr, &mut bytes)?;
            Answer::Bytes(bytes)
        }
        Op::MemWrite { addr, data } => {
            device.mem_write(addr, &data)?;
            Answer::Done
        }
        Op::WaitHint => {
            device.wait_hint()?;
            Answer::Done
        }
        Op::WaitInterrupt => Answer::Flag(device.wait_interrupt()?),
        Op::Reset => {
            device.reset()?;
            Answer::Done
        }
        // The card is wiped after the answer is on its way.
        Op::Close => Answer::Done,
    })
}

/// A batch, with long polls cut into slices.
fn batch(device: &mut dyn Device, ops: &[CtlOp], live: &dyn Fn() -> bool) -> Result<Vec<u32>, DeviceError> {
    let mut values = Vec::new();
    let mut rest = ops;
    while let Some(first) = rest.first() {
        if let CtlOp::Poll { offset, clear, some, polls } = *first {
            let mut left = polls.max(1);
            loop {
                let slice = left.min(POLL_SLICE);
                let op = CtlOp::Poll { offset, clear, some, polls: slice };
                let value = device.ctl_batch(&[op])?.first().copied().unwrap_or(u32::MAX);
                left -= slice;
                if op.settled(value) {
                    values.push(value);
                    break;
                }
                if left == 0 || value == u32::MAX {
                    values.push(value);
                    return Ok(values);
                }
                if !live() {
                    let message = "the session ended while a register was polled".to_owned();
                    return Err(DeviceError::Transport { code: codes::CANCELLED, message });
                }
            }
            rest = &rest[1..];
        } else {
            let plain = rest.iter().position(|op| matches!(op, CtlOp::Poll { .. })).unwrap_or(rest.len());
            values.extend(device.ctl_batch(&rest[..plain])?);
            rest = &rest[plain..];
        }
    }
    Ok(values)
}

/// Bytes of zeros that are written in one go.
const ZEROS: usize = 4 << 20;

/// Writes zeros to all of the card's memory, while `go_on` says so.
pub(crate) fn clear(device: &mut dyn Device, go_on: &dyn Fn() -> bool) -> Result<(), DeviceError> {
    let (zeros, bytes) = (vec![0; ZEROS], device.info().memory_bytes);
    for at in (0..bytes).step_by(ZEROS) {
        if !go_on() {
            let message = format!("the agent stopped with {at:#x} of {bytes:#x} bytes of card memory cleared");
            return Err(DeviceError::Transport { code: codes::CANCELLED, message });
        }
        device.mem_write(at, &zeros[..(bytes - at).min(ZEROS as u64) as usize])?;
    }
    // Writes are posted: a register is read behind them.
    device.ctl_read32(mailbox::STATUS).map(|_| ())
}
