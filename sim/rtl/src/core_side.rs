//! The core's side of a simulation: the memory behind its ports, and what observes it, in the cycles
//! of the core's clock.

use crate::agent::Agent;
use crate::check::{Checked, Checker, DoneRegister, ReportHook};
use crate::measure::{Measured, MeasuredJob, Meter};
use crate::memory::SparseMemory;
use crate::progress::{Follow, Progress};
use crate::{AxiMemory, AxiMemoryConfig, BusCounters, Library, Port, Result, Sim, Snapshot};
use std::collections::VecDeque;
use std::ops::Range;

/// Counts 64-bit words that the design in the simulation shell received from watched addresses with
/// OKAY.
///
/// It follows the accelerator's read requests (in order per id) from the shell's observation
/// outputs; it only counts, and sees no data.
pub struct Watch {
    ar: [Port; 4],
    r: [Port; 4],
    ranges: Vec<Range<u64>>,
    pending: Vec<VecDeque<(u64, u64)>>,
    words: u64,
    beats: u64,
    refused: u64,
}

impl Watch {
    /// Binds to the observation outputs of an accelerator port, if the top module has them.
    fn new(sim: &Sim, port: usize) -> Option<Self> {
        let p = |n: &str| sim.find(&format!("obs{port}_{n}"));
        Some(Self {
            ar: [p("arvalid")?, p("arid")?, p("araddr")?, p("arlen")?],
            r: [p("rvalid")?, p("rid")?, p("rresp")?, p("rlast")?],
            ranges: Vec::new(),
            pending: (0..256).map(|_| VecDeque::new()).collect(),
            words: 0,
            beats: 0,
            refused: 0,
        })
    }

    fn clear(&mut self) {
        self.pending.iter_mut().for_each(VecDeque::clear);
    }
}

impl Agent for Watch {
    fn sample(&mut self, sim: &Sim) {
        if sim.get(self.ar[0]) != 0 {
            let id = sim.get(self.ar[1]) as usize & 0xff;
            self.pending[id].push_back((sim.get(self.ar[2]) & !63, sim.get(self.ar[3]) + 1));
        }
        if sim.get(self.r[0]) != 0 {
            let id = sim.get(self.r[1]) as usize & 0xff;
            let okay = sim.get(self.r[2]) == 0;
            if okay {
                self.beats += 1;
            } else {
                self.refused += 1;
            }
            // An unsolicited beat has no address; it counts as refused.
            let Some((addr, left)) = self.pending[id].front_mut() else {
                self.refused += u64::from(okay);
                return;
            };
            let at = *addr;
            *addr += 64;
            *left -= 1;
            if sim.get(self.r[3]) != 0 || *left == 0 {
                self.pending[id].pop_front();
            }
            if okay {
                for r in &self.ranges {
                    let (lo, hi) = (r.start.max(at), r.end.min(at + 64));
                    if lo < hi {
                        self.words += hi.div_ceil(8) - lo / 8;
                    }
                }
            }
        }
    }

    fn drive(&mut self, _: &mut Sim) {}
}

/// The memories on the ports `mem0_`, `mem1_`, ...; seeds of random timing differ from port to
/// port.
fn memories(sim: &Sim, config: &AxiMemoryConfig) -> Result<Vec<AxiMemory>> {
    let one = |k: u64| {
        let stalls = config.stalls.map(|s| s.wrapping_add(k.wrapping_mul(0x9e37_79b9)));
        AxiMemory::new(sim, &format!("mem{k}_"), AxiMemoryConfig { stalls, ..config.clone() })
    };
    let ports = (0..4).filter(|k| sim.find(&format!("mem{k}_arvalid")).is_some());
    ports.map(one).collect()
}

/// A design with one memory behind its memory ports, and its observers.
///
/// Every memory port has its own timing, faults and counters.
pub struct CoreSide {
    pub(crate) sim: Sim,
    /// One per port; the first holds the bytes.
    mems: Vec<AxiMemory>,
    /// One per accelerator port.
    watches: Vec<Watch>,
    checker: Option<Checker>,
    follow: Follow,
    meter: Option<Box<Meter>>,
    /// Agents that run in every cycle.
    agents: Vec<Box<dyn Agent>>,
}

impl CoreSide {
    /// Memory of this timing at the memory ports of the instance.
    pub(crate) fn new(sim: Sim, memory: &AxiMemoryConfig) -> Result<Self> {
        Ok(Self {
            mems: memories(&sim, memory)?,
            watches: (0..4).map_while(|p| Watch::new(&sim, p)).collect(),
            checker: Checker::find(&sim),
            follow: Follow::new(&sim),
            meter: None,
            agents: Vec::new(),
            sim,
        })
    }

    /// Before a rising edge of the clock, in a settled cycle; `memory`: it is not in reset.
    #[inline]
    pub(crate) fn sample(&mut self, memory: bool) {
        self.observe();
        if memory {
            for k in 0..self.mems.len() {
                self.at_port(k, |m, sim| m.sample(sim));
            }
        } else {
            self.mems.iter_mut().for_each(|m| m.reset(&mut self.sim));
        }
        for w in &mut self.watches {
            w.sample(&self.sim);
        }
        for a in &mut self.agents {
            a.sample(&self.sim);
        }
    }

    /// After a rising edge of the clock.
    #[inline]
    pub(crate) fn drive(&mut self) {
        for k in 0..self.mems.len() {
            self.at_port(k, |m, sim| m.drive(sim));
        }
        for a in &mut self.agents {
            a.drive(&mut self.sim);
        }
    }

    /// Whether every accepted burst is answered.
    pub(crate) fn idle(&self) -> bool {
        self.mems.iter().all(AxiMemory::idle)
    }

    /// Forgets all bursts in flight, when the design is reset.
    pub(crate) fn forget(&mut self) {
        self.mems.iter_mut().for_each(|m| m.reset(&mut self.sim));
        self.watches.iter_mut().for_each(Watch::clear);
    }

    /// Restores the design, with a memory of this timing and these bytes; all faults, hooks and
    /// violations are cleared, and the checker is off.
    pub(crate) fn restore(
        &mut self,
        snapshot: &Snapshot,
        memory: &AxiMemoryConfig,
        bytes: SparseMemory,
    ) -> Result<()> {
        self.sim.restore(snapshot)?;
        self.mems = memories(&self.sim, memory)?;
        self.mems[0].memory = bytes;
        for k in 0..self.mems.len() {
            for p in ["arready", "awready", "wready", "rvalid", "bvalid"] {
                self.sim.poke(&format!("mem{k}_{p}"), 0);
            }
        }
        // The state contains the inputs of the checker.
        self.uncheck();
        self.follow.forget();
        self.meter = None;
        self.watches.iter_mut().for_each(Watch::clear);
        Ok(())
    }

    /// [`Checker::close`], if there is a checker.
    pub(crate) fn close(&mut self, now: bool) {
        if let Some(checker) = &mut self.checker {
            checker.close(&mut self.sim, now);
        }
    }

    /// The measured job, once it has ended and its last reads are answered.
    ///
    /// # Errors
    /// [`crate::Error::NotMeasured`]
    #[must_use]
    pub fn measured(&self) -> Option<Result<Measured>> {
        self.meter.as_ref().and_then(|meter| meter.measured())
    }

    /// The instance, for ports of a test top that this type does not cover.
    pub fn sim(&mut self) -> &mut Sim {
        &mut self.sim
    }

    /// Runs an agent in every cycle from now on, for ports that this type does not cover.
    pub fn attach(&mut self, agent: Box<dyn Agent>) {
        self.agents.push(agent);
    }

    /// The memory as the AXI slave of the first port: faults, counters, timing.
    ///
    /// # Panics
    /// Without memory ports, here and in [`CoreSide::memory`].
    pub fn axi_memory(&mut self) -> &mut AxiMemory {
        &mut self.mems[0]
    }

    /// The slaves of all memory ports.
    pub fn axi_memories(&mut self) -> &mut [AxiMemory] {
        &mut self.mems
    }

    /// Traffic on all memory ports.
    #[must_use]
    pub fn counters(&self) -> BusCounters {
        self.mems.iter().fold(BusCounters::default(), |a, m| a + m.counters)
    }

    /// The first protocol violation of the design on a memory port.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        let mut all = self.mems.iter().enumerate();
        all.find_map(|(k, m)| {
            m.violations()
                .first()
                .map(|v| if self.mems.len() == 1 { v.clone() } else { format!("port {k}: {v}") })
        })
    }

    /// The bytes of the memory.
    ///
    /// # Panics
    /// As [`CoreSide::axi_memory`].
    #[must_use]
    pub fn memory(&self) -> &SparseMemory {
        &self.mems[0].memory
    }

    /// The bytes of the memory, mutable.
    ///
    /// # Panics
    /// As [`CoreSide::axi_memory`].
    pub fn memory_mut(&mut self) -> &mut SparseMemory {
        &mut self.mems[0].memory
    }

    /// Digest of this design, from the loaded object.
    #[must_use]
    pub fn design_digest(&self) -> [u8; 32] {
        self.sim.library().design_digest()
    }

    /// Clock cycles since the instance was created.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.sim.cycles()
    }

    /// Turns the protocol checker on, from the next cycle on; no cycle of the design changes. With a
    /// status register it also demands that no burst is open when a job is done.
    ///
    /// # Errors
    /// When the top module has no checker.
    pub fn check(&mut self, done: Option<DoneRegister>) -> Result<()> {
        let Some(checker) = &mut self.checker else { return Err(Checker::missing(&self.sim)) };
        checker.start(&mut self.sim, done);
        Ok(())
    }

    /// Turns the checker off.
    pub fn uncheck(&mut self) {
        if let Some(checker) = &mut self.checker {
            checker.stop(&mut self.sim);
        }
    }

    /// Also calls `hook` with each report, in the cycle in which it comes out.
    pub fn on_report(&mut self, hook: ReportHook) {
        if let Some(checker) = &mut self.checker {
            checker.on_report(hook);
        }
    }

    /// The checker's reports since the last call.
    pub fn checked(&mut self) -> Checked {
        self.checker.as_mut().map(|c| c.take(&self.sim)).unwrap_or_default()
    }

    /// The bursts at the accelerator's ports, and who waits for whom; without ports if the top module
    /// does not show their handshakes.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.follow.progress(&self.sim)
    }

    /// Measures a job that begins from now on, while the accelerator is in reset or has just left it. No
    /// cycle of the design changes. `bare` is its `shef_bare_top`.
    ///
    /// # Errors
    /// If the top module does not show the accelerator's handshakes, or `bare` is another module.
    pub fn measure(&mut self, bare: &Library, job: MeasuredJob) -> Result<()> {
        self.meter = Some(Box::new(Meter::new(&self.sim, &self.follow, bare, job)?));
        Ok(())
    }

    #[inline]
    pub(crate) fn observe(&mut self) {
        if let Some(checker) = &mut self.checker {
            checker.sample(&self.sim);
        }
        if let Some(meter) = &mut self.meter {
            meter.sample(&self.sim, &self.follow);
        }
        self.follow.sample(&self.sim);
    }

    /// Runs a port on the bytes of the first.
    #[inline]
    fn at_port(&mut self, k: usize, f: impl FnOnce(&mut AxiMemory, &mut Sim)) {
        let Some((first, rest)) = self.mems.split_first_mut() else { return };
        match k.checked_sub(1) {
            None => f(first, &mut self.sim),
            Some(k) => {
                let m = &mut rest[k];
                std::mem::swap(&mut first.memory, &mut m.memory);
                f(m, &mut self.sim);
                std::mem::swap(&mut first.memory, &mut m.memory);
            }
        }
    }

    /// Watches addresses as the accelerator sees them; ranges accumulate.
    pub fn watch(&mut self, range: Range<u64>) {
        self.watches.iter_mut().for_each(|w| w.ranges.push(range.clone()));
    }

    /// Stops watching and resets the counts.
    pub fn unwatch(&mut self) {
        for w in &mut self.watches {
            w.ranges.clear();
            w.words = 0;
        }
    }

    /// 64-bit words that reached the accelerator with OKAY from watched addresses.
    #[must_use]
    pub fn words_delivered(&self) -> u64 {
        self.watches.iter().map(|w| w.words).sum()
    }

    /// Beats that reached the accelerator (with OKAY, with an error) from any address.
    #[must_use]
    pub fn beats_delivered(&self) -> (u64, u64) {
        self.watches.iter().fold((0, 0), |(okay, refused), w| (okay + w.beats, refused + w.refused))
    }

    /// Whether the top module has the observation outputs.
    #[must_use]
    pub fn can_watch(&self) -> bool {
        !self.watches.is_empty()
    }
}
