//! Carrying out what an owner asks of a card, cut into slices so that it ends with its session.

use std::time::{Duration, Instant};

use shef_device::{CtlOp, Device, DeviceError, mailbox};
use shef_remote::wire::{Answer, Op, codes};

/// Most reads of a register that are made before a poll looks whether its session is still there.
const POLL_SLICE: u32 = 256;
/// Reads that take longer than this are fewer the next time: each may cost a simulated card many
/// cycles.
const SLICE_TIME: Duration = Duration::from_millis(50);

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
            let (mut left, mut most) = (polls.max(1), POLL_SLICE / 16);
            loop {
                let slice = left.min(most);
                let begin = Instant::now();
                let op = CtlOp::Poll { offset, clear, some, polls: slice };
                let value = device.ctl_batch(&[op])?.first().copied().unwrap_or(u32::MAX);
                left -= slice;
                most = if begin.elapsed() < SLICE_TIME { (2 * most).min(POLL_SLICE) } else { (most / 2).max(1) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use shef_device::DeviceInfo;
    use std::cell::Cell;

    /// A card whose registers read as zero, `each` after they were asked for.
    struct Slow {
        each: Duration,
        reads: u32,
    }

    impl Device for Slow {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new("test:", "a slow card", "simulated", 0, false)
        }

        fn ctl_read32(&mut self, _: u32) -> Result<u32, DeviceError> {
            std::thread::sleep(self.each);
            self.reads += 1;
            Ok(0)
        }

        fn ctl_write32(&mut self, _: u32, _: u32) -> Result<(), DeviceError> {
            Ok(())
        }

        fn mem_read(&mut self, _: u64, _: &mut [u8]) -> Result<(), DeviceError> {
            Ok(())
        }

        fn mem_write(&mut self, _: u64, _: &[u8]) -> Result<(), DeviceError> {
            Ok(())
        }

        fn wait_hint(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }

        fn reset(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }
    }

    /// Reads until the session was looked at so often.
    fn reads(each: Duration, looks: u32) -> u32 {
        let mut card = Slow { each, reads: 0 };
        let left = Cell::new(looks);
        let live = || {
            left.set(left.get() - 1);
            left.get() > 0
        };
        let poll = CtlOp::Poll { offset: 0, clear: 0, some: 1, polls: u32::MAX };
        let error = batch(&mut card, &[poll], &live).expect_err("the session is over");
        assert_eq!(error.code(), codes::CANCELLED);
        card.reads
    }

    #[test]
    fn a_slow_card_is_asked_less_at_a_time() {
        // 16, 8, 4, 2, 1 and 1 again.
        assert_eq!(reads(SLICE_TIME, 6), 16 + 8 + 4 + 2 + 1 + 1);
        assert!(reads(Duration::ZERO, 1) == 16);
    }
}
