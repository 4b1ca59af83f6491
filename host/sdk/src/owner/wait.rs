//! Waits for the accelerator: their time limit, their progress, and their end.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use shef_device::Device;
use shef_device::progress::StallWatch;

use crate::SdkError;
use crate::progress::Cancel;

/// Progress of a wait for the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// The polled register.
    pub addr: u32,
    /// Its value.
    pub last: u32,
    /// Time since the wait began.
    pub elapsed: Duration,
}

/// The state of a register that ends a wait. A mask alone is [`Until::Any`]: `(0x04, 6)` waits for
/// bit 1 or bit 2 of register 0x04.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// One of these bits is set.
    Any(u32),
    /// The bits of `mask` are those of `value`.
    Equal {
        /// The bits that count.
        mask: u32,
        /// Their value.
        value: u32,
    },
}

impl Until {
    /// Whether a register with this value ends the wait.
    pub fn is_met(self, found: u32) -> bool {
        match self {
            Self::Any(mask) => found & mask != 0,
            Self::Equal { mask, value } => found & mask == value,
        }
    }
}

impl From<u32> for Until {
    fn from(mask: u32) -> Self {
        Self::Any(mask)
    }
}

/// Receives each read while the accelerator works; breaks to end the wait.
pub type WaitWatch = dyn FnMut(Waited) -> ControlFlow<()> + Send;

/// Time limit and cancellation of a session's waits for its accelerator: [`crate::Session::run`],
/// [`crate::Session::finish`], [`crate::Session::wait_register`] and rings. Ending a wait stops
/// nothing on the card: the job goes on, and can be waited for again.
pub struct Patience {
    /// Time limit of a wait. The default is an hour.
    pub most: Duration,
    /// Maximum number of cycles without progress at the accelerator's ports, on a simulated card of
    /// this machine ([`Device::progress`](crate::Device::progress)). By default, no limit.
    pub stall_cycles: Option<u64>,
    /// Cancels waits, and transfers too. A [`crate::Worker`] replaces it while it works for a
    /// future.
    pub cancel: Cancel,
    /// Receives the progress of waits.
    pub watch: Option<Box<WaitWatch>>,
}

impl Default for Patience {
    fn default() -> Self {
        let most = Duration::from_secs(3600);
        Self { most, stall_cycles: None, cancel: Cancel::default(), watch: None }
    }
}

impl Patience {
    /// Checks whether the wait for register `addr`, which began at `since`, continues.
    pub(crate) fn goes_on(&mut self, since: Instant, addr: u32, last: u32) -> Result<(), SdkError> {
        let after = since.elapsed();
        let told = self.watch.as_mut().map_or(ControlFlow::Continue(()), |watch| {
            watch(Waited { addr, last, elapsed: after })
        });
        if self.cancel.is_cancelled() || told.is_break() {
            return Err(SdkError::WaitEnded { addr, last, after });
        }
        if after >= self.most {
            return Err(SdkError::NotFinished { addr, last, after });
        }
        Ok(())
    }
}

/// Time between two looks at the accelerator's ports: one of a served card is a message.
const LOOK: Duration = Duration::from_millis(100);

/// Watches the accelerator's ports during a wait.
pub(crate) struct Stalls {
    watch: StallWatch,
    next: Instant,
}

impl Stalls {
    /// For a wait that begins now, with this limit in cycles.
    pub(crate) fn new(cycles: u64) -> Self {
        Self { watch: StallWatch::new(cycles), next: Instant::now() }
    }

    /// Checks whether the wait continues for register `addr`, which is `last`.
    pub(crate) fn goes_on(
        &mut self,
        device: &mut dyn Device,
        addr: u32,
        last: u32,
    ) -> Result<(), SdkError> {
        if Instant::now() < self.next {
            return Ok(());
        }
        self.next = Instant::now() + LOOK;
        let Some(progress) = device.progress() else {
            return Err(SdkError::NoProgressReport { uri: device.info().uri });
        };
        if self.watch.is_stalled(&progress, last) {
            let (cycles, progress) = (self.watch.cycles(), Box::new(progress));
            return Err(SdkError::Stalled { addr, last, cycles, progress });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_any_bit_or_with_a_value() {
        let met = |until: Until| (0..4).filter(|found| until.is_met(*found)).collect::<Vec<_>>();
        assert_eq!(met(3.into()), [1, 2, 3]);
        assert_eq!(met(Until::Any(0)), [0; 0]);
        assert_eq!(met(Until::Equal { mask: 1, value: 0 }), [0, 2], "a bit that falls");
        assert_eq!(met(Until::Equal { mask: u32::MAX, value: 3 }), [3]);
        assert_eq!(met(Until::Equal { mask: 1, value: 2 }), [0; 0]);
    }
}
