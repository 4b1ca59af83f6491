//! The link between card and host: injected faults, and recorded faults.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An injected link fault. Counted faults expire; the others last until [`LinkFault::None`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LinkFault {
    /// No fault. A link that comes up resets the card.
    None,
    /// The link is down: reads return all ones; writes, DMA and interrupts are lost.
    LinkDrop,
    /// This many accesses to BARs are never answered.
    TimeOut {
        /// Accesses.
        count: u32,
    },
    /// This many reads, of a BAR by the host or of host memory by the card, return poisoned data.
    Poison {
        /// Reads.
        count: u32,
    },
    /// This many interrupts are lost.
    LoseInterrupt {
        /// Interrupts.
        count: u32,
    },
    /// Every access to a BAR takes this much longer.
    Slow {
        /// Milliseconds.
        ms: u64,
    },
}

/// Maximum number of DMA faults that are recorded; all are counted.
const KEPT: usize = 64;

/// State of the link, shared by all its users.
#[derive(Debug, Default)]
pub(crate) struct Link {
    down: AtomicBool,
    silent: AtomicU32,
    poisoned: AtomicU32,
    lost: AtomicU32,
    slow_ms: AtomicU64,
    /// Bus mastering is enabled and the function is awake.
    pub master: AtomicBool,
    pub resets: AtomicU64,
    pub clients: AtomicU64,
    pub accesses: AtomicU64,
    pub dma_interrupts: AtomicU64,
    pub vectors: AtomicU64,
    dma_faults: AtomicU64,
    kept: Mutex<Vec<String>>,
}

/// Decrements a count; returns false if it was zero.
fn one(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok()
}

impl Link {
    /// Injects a fault. Returns whether it brought up a link that was down.
    pub fn set(&self, fault: LinkFault) -> bool {
        match fault {
            LinkFault::None => {
                for count in [&self.silent, &self.poisoned, &self.lost] {
                    count.store(0, Ordering::Release);
                }
                self.slow_ms.store(0, Ordering::Release);
                return self.down.swap(false, Ordering::AcqRel);
            }
            LinkFault::LinkDrop => self.down.store(true, Ordering::Release),
            LinkFault::TimeOut { count } => self.silent.store(count, Ordering::Release),
            LinkFault::Poison { count } => self.poisoned.store(count, Ordering::Release),
            LinkFault::LoseInterrupt { count } => self.lost.store(count, Ordering::Release),
            LinkFault::Slow { ms } => self.slow_ms.store(ms.min(60_000), Ordering::Release),
        }
        false
    }

    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Acquire)
    }

    /// Whether this access is never answered.
    pub fn silent(&self) -> bool {
        one(&self.silent)
    }

    /// Whether this read returns poisoned data.
    pub fn poisoned(&self) -> bool {
        one(&self.poisoned)
    }

    /// Whether an interrupt is delivered: not if the link is down, if it is lost, or without bus
    /// mastering.
    pub fn carries_interrupt(&self) -> bool {
        !self.is_down() && self.master.load(Ordering::Acquire) && !one(&self.lost)
    }

    pub fn delay(&self) {
        match self.slow_ms.load(Ordering::Acquire) {
            0 => {}
            ms => std::thread::sleep(Duration::from_millis(ms)),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<String>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a blocked access of the card to host memory.
    pub fn fault(&self, what: String) {
        self.dma_faults.fetch_add(1, Ordering::AcqRel);
        let mut kept = self.kept();
        if kept.len() < KEPT {
            kept.push(what);
        }
    }

    /// Number of blocked accesses, and the first of them.
    pub fn dma_faults(&self) -> (u64, Vec<String>) {
        (self.dma_faults.load(Ordering::Acquire), self.kept().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_run_down_and_all_is_well_again() {
        let link = Link::default();
        link.master.store(true, Ordering::Release);
        assert!(!link.silent() && !link.poisoned() && link.carries_interrupt());
        link.set(LinkFault::TimeOut { count: 2 });
        assert!(link.silent() && link.silent() && !link.silent());
        link.set(LinkFault::LoseInterrupt { count: 1 });
        assert!(!link.carries_interrupt() && link.carries_interrupt());
        assert!(!link.set(LinkFault::LinkDrop) && link.is_down() && !link.carries_interrupt());
        link.set(LinkFault::Poison { count: 9 });
        assert!(link.set(LinkFault::None), "it came up");
        assert!(!link.is_down() && !link.poisoned() && !link.set(LinkFault::None));
        link.master.store(false, Ordering::Release);
        assert!(!link.carries_interrupt(), "interrupts are writes of the card");
    }
}
