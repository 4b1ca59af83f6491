//! A host that accesses registers at random while bursts run.

use crate::Result;
use crate::bench::RtlBench;
use crate::host::WORDS;
use shef_proto::channel::Sealed;
use shef_regs::ctl;
use shef_rtl::agent::{Agent, Rng};
use shef_rtl::{AxiLite, Sim};

/// Random register accesses by the host.
pub struct Flood {
    lite: AxiLite,
    rng: Rng,
    /// A message that has already run.
    old: Sealed,
    /// Accesses that were answered.
    pub answered: u64,
    over: bool,
}

impl Flood {
    /// A flood from a seed.
    pub fn new(bench: &mut RtlBench, seed: u64, old: Sealed) -> Result<Self> {
        Ok(Self {
            lite: AxiLite::new(bench.core().sim(), "ctl_")?,
            rng: Rng::new(seed),
            old,
            answered: 0,
            over: false,
        })
    }

    /// Completes the last access.
    pub fn end(&mut self, bench: &mut RtlBench) {
        self.over = true;
        for _ in 0..2000 {
            if !self.lite.busy() {
                break;
            }
            bench.core().step_with(&mut [&mut *self]);
        }
    }
}

impl Agent for Flood {
    fn sample(&mut self, sim: &Sim) {
        self.lite.sample(sim);
    }

    #[expect(clippy::cast_possible_truncation, reason = "fields of a random word")]
    fn drive(&mut self, sim: &mut Sim) {
        self.lite.drive(sim);
        self.answered += u64::from(self.lite.take().is_some());
        if self.over || self.lite.busy() || self.rng.one_in(8) {
            return;
        }
        let r = self.rng.next_u64();
        let (value, strobe) = ((r >> 32) as u32, (r >> 20) as u8 & 15);
        let word = self.rng.below(WORDS as u64);
        match r % 9 {
            0 => self.lite.start_read(sim, r >> 8 & 0xfffc),
            1 => self.lite.start_write(sim, r >> 8 & 0xffff, value, strobe),
            2 => self.lite.start_write(sim, u64::from(ctl::CHAN_REQ) + 4 * word, value, strobe),
            3 => {
                let at = 4 * word as usize;
                let old = u32::from_le_bytes(self.old[at..at + 4].try_into().unwrap_or([0; 4]));
                self.lite.start_write(sim, u64::from(ctl::CHAN_REQ) + 4 * word, old, 15);
            }
            4 => self.lite.start_write(sim, u64::from(ctl::CHAN_DOORBELL), value, 15),
            5 => self.lite.start_write(sim, u64::from(ctl::LOAD_DOORBELL), value & 0x7ff, 15),
            6 => self.lite.start_write(
                sim,
                u64::from(ctl::LOAD_MSG) + 4 * self.rng.below(256),
                value,
                15,
            ),
            7 => self.lite.start_read(sim, u64::from(ctl::CHAN_RSP) + 4 * word),
            _ => self.lite.start_read(sim, u64::from(ctl::STATUS)),
        }
    }
}
