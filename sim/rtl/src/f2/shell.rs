//! The shell around a CL.

use super::clock::MAIN_PS;
use super::config::{F2Config, Metrics};
use super::image::Image;
use super::irq::{Interrupt, Msix};
use super::life::{Flr, Ids, Slot};
use super::pcim::PcimTiming;
use super::rules::{Rule, Violation};
use crate::{CoreSide, HostBus, Library, Result};

/// Cycles of `rst_main_n` at a load.
const LOAD_RESET: u64 = 1_000;

/// The shell of AWS F2 around a CL: the host's accesses on one side, all signals of the CL on the
/// other, and a record of the rules that the CL breaks.
///
/// The host's accesses, [`F2Shell::step`] and [`F2Shell::flr`] move the clocks; nothing runs in
/// between. While the function is not there (no image, a reset), reads give all ones.
pub struct F2Shell<B> {
    /// The host's memory.
    pub host: B,
    pub(crate) config: F2Config,
    pub(crate) image: Image,
    pub(crate) slot: Slot,
}

impl<B: HostBus> F2Shell<B> {
    /// A slot into which `lib` is loaded, with the ids of its manifest.
    ///
    /// # Errors
    /// When the top module lacks a port of the CL.
    pub fn new(lib: &Library, config: F2Config, manifest: Ids, host: B) -> Result<Self> {
        let image = Image::new(lib, &config)?;
        let mut shell = Self { host, config, image, slot: Slot::Cleared };
        shell.start(manifest);
        Ok(shell)
    }

    /// Loads an image over the one in the slot: a new instance, and memory without contents.
    ///
    /// # Errors
    /// As [`F2Shell::new`].
    pub fn load(&mut self, lib: &Library, manifest: Ids) -> Result<()> {
        self.slot = Slot::Cleared;
        self.image = Image::new(lib, &self.config)?;
        self.start(manifest);
        Ok(())
    }

    /// Clears the slot: the memories of the card with it.
    ///
    /// # Errors
    /// As [`F2Shell::new`].
    pub fn clear(&mut self) -> Result<()> {
        let lib = self.image.core.sim.library().clone();
        self.image = Image::new(&lib, &self.config)?;
        self.slot = Slot::Cleared;
        Ok(())
    }

    fn start(&mut self, manifest: Ids) {
        let code = |bytes: usize, least: usize| u64::from((bytes / least).max(1).ilog2());
        let (payload, request) = (self.config.max_payload, self.config.max_read_request);
        let Image { core, clocks, life, .. } = &mut self.image;
        let sim = &mut core.sim;
        for (name, value) in [
            ("cfg_max_payload", code(payload, 128)),
            ("cfg_max_read_req", code(request, 128)),
            ("ddr_ready", 1),
        ] {
            if let Some(port) = sim.find(name) {
                sim.set(port, value);
            }
        }
        for (name, bytes) in &self.config.inputs {
            sim.poke_le(name, bytes);
        }
        clocks.run_core(sim, false);
        life.reset(sim, 0, LOAD_RESET);
        self.step(LOAD_RESET / 2);
        self.run_core_clock(true);
        self.step(LOAD_RESET);
        let Image { core, life, record, .. } = &mut self.image;
        self.slot = if life.compare_ids(&core.sim, manifest, record) {
            Slot::Loaded
        } else {
            Slot::Failed(12)
        };
        life.read_stat(&mut core.sim, record.cycle);
        while self.image.life.stat_busy() {
            self.edge();
        }
        if self.image.record.count(Rule::DdrStat) != 0 && self.slot == Slot::Loaded {
            self.slot = Slot::Failed(13);
        }
    }

    /// What the slot holds.
    #[must_use]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The CL on its core's clock: memory, observers, further agents. A load replaces it.
    pub fn core(&mut self) -> &mut CoreSide {
        &mut self.image.core
    }

    /// The same, to look at.
    #[must_use]
    pub fn core_ref(&self) -> &CoreSide {
        &self.image.core
    }

    /// The broken rules since the load, in order; the first 256.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        self.image.record.violations()
    }

    /// How often the CL broke a rule since the load.
    #[must_use]
    pub fn broken(&self, rule: Rule) -> u64 {
        self.image.record.count(rule)
    }

    /// Time since the load in picoseconds.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.image.clocks.now()
    }

    /// Cycles of `clk_main_a0` since the load.
    #[must_use]
    pub fn main_cycles(&self) -> u64 {
        self.image.record.cycle
    }

    /// Cycles of the core's clock since the load, or of `clk_main_a0` if the CL has no other.
    #[must_use]
    pub fn core_cycles(&self) -> u64 {
        self.image.core.sim.cycles()
    }

    /// Metrics since the load.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let Image { ocl, sda, pcis, pcim, .. } = &self.image;
        let ns = |cycles: u64| cycles * MAIN_PS / 1_000;
        Metrics {
            late: [ocl.metrics(), sda.metrics(), pcis.metrics()],
            errors: [ocl.errors, sda.errors, pcis.errors],
            ocl_worst_ns: ns(ocl.worst),
            pcis_worst_ns: pcis.worst().map(ns),
            pcim: pcim.counters,
            pcim_dead: pcim.dead,
        }
    }

    /// The next rising edge of a clock.
    #[inline]
    pub fn edge(&mut self) {
        self.image.edge(&mut self.host);
    }

    /// `n` cycles of `clk_main_a0`.
    pub fn step(&mut self, n: u64) {
        let end = self.image.record.cycle + n;
        while self.image.record.cycle < end {
            self.edge();
        }
    }

    /// Steps until `done` holds, checked every `every` cycles; whether it did within `limit`.
    pub fn run_until(
        &mut self,
        limit: u64,
        every: u64,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        let end = self.image.record.cycle + limit;
        loop {
            if done(self) {
                return true;
            }
            if self.image.record.cycle >= end {
                return false;
            }
            self.step(every.max(1));
        }
    }
    /// The next interrupt that reached the host.
    pub fn take_interrupt(&mut self) -> Option<Interrupt> {
        self.image.irq.take()
    }

    /// How the function delivers MSI-X; a reset of the function turns it off.
    pub fn set_msix(&mut self, msix: Msix) {
        self.image.irq.msix = msix;
        self.image.irq.unmasked();
    }

    /// The lines that the host gave to the CL; a request on another breaks a rule.
    pub fn give_lines(&mut self, lines: u16) {
        self.image.irq.given = lines;
    }

    /// Bus mastering of the function; a reset of the function turns it off.
    pub fn set_bus_master(&mut self, on: bool) {
        self.image.pcim.master = on;
    }

    /// Bytes of the packets of PCIM, if the host's bridge has others than the signals say.
    pub fn set_packets(&mut self, max_payload: usize, max_read_request: usize) {
        (self.image.pcim.payload, self.image.pcim.request) = (max_payload, max_read_request);
    }

    /// Changes the timing of the path to the host's memory.
    pub fn set_pcim(&mut self, timing: PcimTiming) {
        self.image.pcim.timing = timing;
    }

    /// Whether every burst on PCIM is answered.
    #[must_use]
    pub fn pcim_idle(&self) -> bool {
        self.image.pcim.idle()
    }

    /// Resets the function, as VFIO does when the device is opened and closed; returns the
    /// nanoseconds until the CL was done (100 ms and more: it never was).
    pub fn flr(&mut self) -> u64 {
        self.begin_flr();
        while self.in_flr() {
            self.edge();
        }
        self.image.life.flr_cycles * MAIN_PS / 1_000
    }

    /// Asserts the reset of the function, after the accesses in flight; [`F2Shell::in_flr`] tells
    /// when it is over.
    pub fn begin_flr(&mut self) {
        while self.image.pcis.busy() || self.image.ocl.busy() || self.image.sda.busy() {
            self.edge();
        }
        let Image { core, life, record, .. } = &mut self.image;
        life.assert_flr(&mut core.sim, record.cycle);
    }

    /// Whether the function is being reset.
    #[must_use]
    pub fn in_flr(&self) -> bool {
        matches!(self.image.life.flr, Flr::Asserted(_) | Flr::Done(_))
    }

    /// Makes `rst_main_n` low for this number of cycles.
    pub fn reset(&mut self, cycles: u64) {
        let Image { core, life, record, .. } = &mut self.image;
        life.reset(&mut core.sim, record.cycle, cycles);
        self.image.lose();
        while self.image.life.reset_until.is_some() {
            self.edge();
        }
    }

    /// Stops the core's clock, with `core_locked` low, or starts it.
    pub fn run_core_clock(&mut self, runs: bool) {
        let Image { core, clocks, .. } = &mut self.image;
        clocks.run_core(&mut core.sim, runs);
    }

    /// Announces power state 3, waits for the wipe, stops all clocks for this time, and returns to
    /// state 0.
    pub fn power_down(&mut self, stopped_ps: u64) {
        let Image { core, life, record, .. } = &mut self.image;
        life.power(&mut core.sim, record.cycle, 3);
        while !self.image.life.power_done() {
            self.edge();
        }
        let Image { core, clocks, life, pcim, record, .. } = &mut self.image;
        pcim.settle(&mut core.sim, record);
        clocks.run_core(&mut core.sim, false);
        clocks.pause(stopped_ps);
        life.power(&mut core.sim, record.cycle, 0);
        clocks.run_core(&mut core.sim, true);
    }
}
