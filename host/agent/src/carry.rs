//! Carries out an owner's requests on a card, in slices, so that the work ends with the session.

use std::time::{Duration, Instant};

use shef_device::{CtlOp, Device, DeviceError, mailbox};
use shef_remote::wire::{DeviceAnswer, DeviceOp, codes};

/// Most accesses between two checks of the clock.
const SLICE: u32 = 256;
/// If a slice takes longer than this, the next one is smaller: an access may cost a simulated card
/// many cycles.
const SLICE_TIME: Duration = Duration::from_millis(50);

/// Time limit for one request.
pub(crate) struct Clock<'a> {
    /// Whether the session of the request still exists.
    live: &'a dyn Fn() -> bool,
    limit: Duration,
    end: Instant,
}

impl<'a> Clock<'a> {
    /// Starts the clock.
    pub(crate) fn start(limit: Duration, live: &'a dyn Fn() -> bool) -> Self {
        Self { live, limit, end: Instant::now() + limit }
    }

    /// Fails if the time is up or the session is over; `done` describes the progress so far.
    fn go_on(&self, done: impl Fn() -> String) -> Result<(), DeviceError> {
        if !(self.live)() {
            let message = format!("the session ended with {}", done());
            return Err(DeviceError::Transport { code: codes::CANCELLED, message });
        }
        if Instant::now() >= self.end {
            let message = format!(
                "{} within {} s, the time for one request",
                done(),
                self.limit.as_secs_f32()
            );
            return Err(DeviceError::Transport { code: codes::TOO_LONG, message });
        }
        Ok(())
    }
}

/// Carries out a request on the card.
pub(crate) fn carry_out(
    device: &mut dyn Device,
    op: DeviceOp,
    clock: &Clock<'_>,
) -> Result<DeviceAnswer, DeviceError> {
    Ok(match op {
        DeviceOp::Ctl(ops) => DeviceAnswer::Values(batch(device, &ops, clock)?),
        DeviceOp::Kernel(request) => {
            DeviceAnswer::Bytes(mailbox::call_by(&request, |ops| batch(device, ops, clock))?)
        }
        DeviceOp::MemRead { addr, len } => {
            let mut bytes = vec![0; len as usize];
            device.mem_read(addr, &mut bytes)?;
            DeviceAnswer::Bytes(bytes)
        }
        DeviceOp::MemWrite { addr, data } => {
            device.mem_write(addr, &data)?;
            DeviceAnswer::Done
        }
        DeviceOp::WaitHint => {
            device.wait_hint()?;
            DeviceAnswer::Done
        }
        DeviceOp::WaitInterrupt => DeviceAnswer::Flag(device.wait_interrupt()?),
        DeviceOp::Reset => {
            device.reset()?;
            DeviceAnswer::Done
        }
        // The card is wiped once the answer has been sent.
        DeviceOp::Close => DeviceAnswer::Done,
    })
}

/// Number of accesses between two checks of the clock.
struct Slice(u32);

impl Slice {
    /// Makes accesses, and adapts the slice to the time that they took.
    fn run(&mut self, device: &mut dyn Device, ops: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
        let begin = Instant::now();
        let values = device.ctl_batch(ops)?;
        self.0 = if begin.elapsed() < SLICE_TIME {
            (2 * self.0).min(SLICE)
        } else {
            (self.0 / 2).max(1)
        };
        Ok(values)
    }
}

/// Runs a batch in slices.
fn batch(
    device: &mut dyn Device,
    ops: &[CtlOp],
    clock: &Clock<'_>,
) -> Result<Vec<u32>, DeviceError> {
    let mut values = Vec::new();
    let mut rest = ops;
    // The first access shows how long one takes.
    let mut slice = Slice(1);
    let made = |rest: &[CtlOp]| {
        format!("{} of {} register accesses made", ops.len() - rest.len(), ops.len())
    };
    while let Some(first) = rest.first() {
        if let CtlOp::Poll { offset, clear, some, polls } = *first {
            let (mut left, mut slice) = (polls.max(1), Slice(SLICE / 16));
            loop {
                let now = left.min(slice.0);
                let value = slice
                    .run(device, &[CtlOp::Poll { offset, clear, some, polls: now }])?
                    .first()
                    .copied()
                    .unwrap_or(u32::MAX);
                left -= now;
                if first.settled(value) {
                    values.push(value);
                    break;
                }
                if left == 0 || value == u32::MAX {
                    values.push(value);
                    return Ok(values);
                }
                clock.go_on(|| {
                    format!(
                        "{}, and register {offset:#x} polled {} times",
                        made(rest),
                        polls.max(1) - left
                    )
                })?;
            }
            rest = &rest[1..];
        } else {
            let plain = rest
                .iter()
                .take(slice.0 as usize)
                .take_while(|op| !matches!(op, CtlOp::Poll { .. }))
                .count();
            values.extend(slice.run(device, &rest[..plain])?);
            rest = &rest[plain..];
        }
        if !rest.is_empty() {
            clock.go_on(|| made(rest))?;
        }
    }
    Ok(values)
}

/// Bytes of zeros per write.
const ZEROS: usize = 4 << 20;

/// Slowest acceptable rate for clearing card memory, in bytes a second.
const CLEARING: u64 = 16 << 20;

/// Writes zeros to all of the card's memory, while the agent runs (`live`), within `limit` plus the
/// time that the bytes take.
pub(crate) fn clear(
    device: &mut dyn Device,
    limit: Duration,
    live: &dyn Fn() -> bool,
) -> Result<(), DeviceError> {
    let (zeros, bytes) = (vec![0; ZEROS], device.info().memory_bytes);
    let clock = Clock::start(limit + Duration::from_secs(bytes / CLEARING), live);
    for at in (0..bytes).step_by(ZEROS) {
        clock.go_on(|| format!("{at:#x} of {bytes:#x} bytes of card memory cleared"))?;
        device.mem_write(at, &zeros[..(bytes - at).min(ZEROS as u64) as usize])?;
    }
    // Writes are posted: a register read flushes them.
    device.ctl_read32(mailbox::STATUS).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shef_device::DeviceInfo;
    use std::cell::Cell;

    /// A card whose registers read as zero, each after a delay of `each`.
    struct Slow {
        each: Duration,
        reads: u32,
    }

    impl Device for Slow {
        fn info(&self) -> DeviceInfo {
            DeviceInfo::new("test:", "a slow card", "simulated", 12 << 20, false)
        }

        fn ctl_read32(&mut self, _: u32) -> Result<u32, DeviceError> {
            std::thread::sleep(self.each);
            self.reads += 1;
            Ok(0)
        }

        fn ctl_write32(&mut self, _: u32, _: u32) -> Result<(), DeviceError> {
            self.ctl_read32(0).map(drop)
        }

        fn mem_read(&mut self, _: u64, _: &mut [u8]) -> Result<(), DeviceError> {
            Ok(())
        }

        fn mem_write(&mut self, _: u64, _: &[u8]) -> Result<(), DeviceError> {
            std::thread::sleep(self.each);
            self.reads += 1;
            Ok(())
        }

        fn wait_hint(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }

        fn reset(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }
    }

    /// Number of reads before the check number `looks` of the session ends the batch.
    fn reads(each: Duration, looks: u32) -> u32 {
        let mut card = Slow { each, reads: 0 };
        let left = Cell::new(looks);
        let live = || {
            left.set(left.get() - 1);
            left.get() > 0
        };
        let poll = CtlOp::Poll { offset: 0, clear: 0, some: 1, polls: u32::MAX };
        let clock = Clock::start(Duration::from_secs(3600), &live);
        let error = batch(&mut card, &[poll], &clock).expect_err("the session is over");
        assert_eq!(error.code(), codes::CANCELLED);
        card.reads
    }

    #[test]
    fn a_slow_card_is_asked_less_at_a_time() {
        // 16, 8, 4, 2, 1 and 1 again.
        assert_eq!(reads(SLICE_TIME, 6), 16 + 8 + 4 + 2 + 1 + 1);
        assert!(reads(Duration::ZERO, 1) == 16);
    }

    /// Error and number of accesses of an operation on a card whose accesses take 20 ms each,
    /// within `limit`, in a session that ends at the check number `looks`.
    fn cut(op: DeviceOp, limit: Duration, looks: u32) -> (DeviceError, u32) {
        let mut card = Slow { each: Duration::from_millis(20), reads: 0 };
        let left = Cell::new(looks);
        let live = || {
            left.set(left.get().saturating_sub(1));
            left.get() > 0
        };
        let error =
            carry_out(&mut card, op, &Clock::start(limit, &live)).expect_err("it takes longer");
        (error, card.reads)
    }

    #[test]
    fn every_work_of_a_slow_card_ends_at_its_time_and_says_how_far_it_came() {
        const SHORT: Duration = Duration::from_millis(200);
        let reads = || DeviceOp::Ctl(vec![CtlOp::Read { offset: 0 }; 8192]);
        let polls =
            || DeviceOp::Ctl(vec![CtlOp::Poll { offset: 0, clear: 0, some: 1, polls: u32::MAX }]);
        for (op, says) in [
            (reads(), " of 8192 register accesses made within 0.2 s"),
            (
                DeviceOp::Ctl(vec![CtlOp::Write { offset: 0, value: 0 }; 8192]),
                " of 8192 register accesses made",
            ),
            (DeviceOp::Kernel(vec![0; 8192]), " of 2051 register accesses made"),
            (polls(), "0 of 1 register accesses made, and register 0x0 polled 16 times"),
        ] {
            let (error, made) = cut(op, SHORT, u32::MAX);
            assert!(error.code() == codes::TOO_LONG && error.to_string().contains(says), "{error}");
            assert!(made < 32, "{made}");
        }
        // The agent does not wait for a session that ends.
        for op in [reads(), DeviceOp::Kernel(vec![0; 8192]), polls()] {
            let (error, made) = cut(op, Duration::from_secs(3600), 1);
            assert!(error.code() == codes::CANCELLED && made <= 16, "{error}, {made}");
        }
        let mut card = Slow { each: Duration::from_millis(300), reads: 0 };
        let error = clear(&mut card, SHORT, &|| true).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("0x400000 of 0xc00000 bytes of card memory cleared within 0.2 s"),
            "{error}"
        );
        let stops = clear(&mut card, Duration::from_secs(3600), &|| false).unwrap_err();
        assert_eq!(stops.code(), codes::CANCELLED);
    }

    #[test]
    fn what_is_quick_is_done_whole() {
        let mut card = Slow { each: Duration::ZERO, reads: 0 };
        let ops = vec![CtlOp::Read { offset: 0 }; 8192];
        let live = || true;
        let values = batch(&mut card, &ops, &Clock::start(Duration::from_secs(60), &live)).unwrap();
        assert_eq!((values.len(), card.reads), (8192, 8192));
    }
}
