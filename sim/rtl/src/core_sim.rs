//! A whole design as the card sees it: registers, kernel port, one memory behind all memory ports,
//! clock.

use crate::agent::Agent;
use crate::check::{Checked, Checker, DoneRegister, ReportHook};
use crate::measure::{Measured, MeasuredJob, Meter};
use crate::memory::SparseMemory;
use crate::progress::{Follow, Progress};
use crate::{
    AxiLite, AxiMemory, AxiMemoryConfig, BusCounters, Error, Library, Port, Result, Sim, Snapshot,
};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;

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

/// State of a design and of its memory while idle.
#[derive(Clone)]
pub struct CoreSnapshot {
    sim: Snapshot,
    memory: SparseMemory,
}

impl CoreSnapshot {
    /// Bytes of the design's state.
    #[must_use]
    pub fn size(&self) -> usize {
        self.sim.size()
    }
}

/// `shef_sim_top`, `shef_host_top`, `shef_bare_top` or `shef_tb_top` (the core with the bench's
/// accelerator) with one memory behind its memory ports, and register ports.
///
/// Every memory port has its own timing, faults and counters. Every access and [`CoreSim::step`]
/// moves the clock; nothing runs in between.
pub struct CoreSim {
    sim: Sim,
    /// One per port; the first holds the bytes.
    mems: Vec<AxiMemory>,
    ctl: AxiLite,
    krn: Option<AxiLite>,
    /// One per accelerator port.
    watches: Vec<Watch>,
    wipe: Option<(Port, Port)>,
    irq: Option<(Port, Port)>,
    rst: Port,
    interrupts: u64,
    checker: Option<Checker>,
    follow: Follow,
    meter: Option<Box<Meter>>,
    /// Agents that run in every cycle.
    agents: Vec<Box<dyn Agent>>,
}

/// The memories on the ports `mem0_`, `mem1_`, ...; seeds of random timing differ from port to
/// port.
fn memories(sim: &Sim, config: &AxiMemoryConfig) -> Result<Vec<AxiMemory>> {
    let one = |k: u64| {
        let stalls = config.stalls.map(|s| s.wrapping_add(k.wrapping_mul(0x9e37_79b9)));
        AxiMemory::new(sim, &format!("mem{k}_"), AxiMemoryConfig { stalls, ..config.clone() })
    };
    let mut all = vec![one(0)?];
    for k in 1..4 {
        if sim.find(&format!("mem{k}_arvalid")).is_some() {
            all.push(one(k)?);
        }
    }
    Ok(all)
}

impl CoreSim {
    /// An instance with this memory timing, after reset.
    ///
    /// # Errors
    /// When the top module lacks a port.
    pub fn new(lib: &Library, memory: AxiMemoryConfig) -> Result<Self> {
        Self::with_contents(lib, memory, None)
    }

    /// As [`CoreSim::new`], with the contents of [`Sim::with_contents`].
    ///
    /// # Errors
    /// As [`CoreSim::new`] and [`Sim::with_contents`].
    pub fn with_contents(
        lib: &Library,
        memory: AxiMemoryConfig,
        contents: Option<u64>,
    ) -> Result<Self> {
        let sim = Sim::with_contents(lib, contents)?;
        let pair = |a: &str, b: &str| Some((sim.find(a)?, sim.find(b)?));
        let mut core = Self {
            mems: memories(&sim, &memory)?,
            ctl: AxiLite::new(&sim, "ctl_")?,
            krn: if sim.find("krn_araddr").is_some() {
                Some(AxiLite::new(&sim, "krn_")?)
            } else {
                None
            },
            watches: (0..4).map_while(|p| Watch::new(&sim, p)).collect(),
            wipe: pair("wipe_req", "wipe_ack"),
            irq: pair("irq_req", "irq_ack"),
            rst: sim.port_of("rst_n", 1)?,
            interrupts: 0,
            checker: Checker::find(&sim),
            follow: Follow::new(&sim),
            meter: None,
            agents: Vec::new(),
            sim,
        };
        core.reset();
        Ok(core)
    }

    /// Makes the master of the control port stall at random ([`AxiLite::stall`]).
    pub fn stall_registers(&mut self, seed: u64) {
        self.ctl.stall(seed);
    }

    /// The instance, for ports of a test top that this type does not cover.
    pub fn sim(&mut self) -> &mut Sim {
        &mut self.sim
    }

    /// Starts writing waves of the accelerator, its ports and what is below it, from this cycle on.
    ///
    /// # Errors
    /// As [`Sim::trace_start`].
    pub fn trace_accelerator(&mut self, path: &Path, from: u64) -> Result<()> {
        let core = match self.sim.library().top() {
            "shef_bare_top" => "",
            "shef_host_top" => "u_core.u_core.",
            _ => "u_core.",
        };
        let scope = format!("top.{}.{core}u_accel", self.sim.library().top());
        self.sim.trace_part(path, &scope, from)
    }

    /// Runs an agent in every cycle from now on, for ports that this type does not cover.
    pub fn attach(&mut self, agent: Box<dyn Agent>) {
        self.agents.push(agent);
    }

    /// The memory as the AXI slave of the first port: faults, counters, timing.
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
    #[must_use]
    pub fn memory(&self) -> &SparseMemory {
        &self.mems[0].memory
    }

    /// The bytes of the memory, mutable.
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

    /// Reset for a few cycles; the memory keeps its bytes and forgets bursts in flight.
    pub fn reset(&mut self) {
        self.sim.set(self.rst, 0);
        if let Some((req, _)) = self.wipe {
            self.sim.set(req, 0);
        }
        self.ctl.abort(&mut self.sim);
        if let Some(k) = &mut self.krn {
            k.abort(&mut self.sim);
        }
        for _ in 0..4 {
            self.sim.settle();
            self.observe();
            self.sim.edge();
        }
        self.mems.iter_mut().for_each(|m| m.reset(&mut self.sim));
        self.watches.iter_mut().for_each(Watch::clear);
        self.sim.set(self.rst, 1);
        self.sim.eval();
    }

    /// Resets the accelerator of `shef_bare_top` as a Shield does between sessions: with `clear_i`
    /// until `cleared_o`. Whether it rises within `limit` cycles.
    pub fn clear_accelerator(&mut self, limit: u64) -> bool {
        let [Some(clear), Some(cleared)] =
            ["clear", "seenr_cleared"].map(|name| self.sim.find(name))
        else {
            return false;
        };
        self.sim.set(self.rst, 0);
        self.sim.set(clear, 1);
        let mut is_clear = false;
        for _ in 0..limit {
            self.sim.settle();
            self.observe();
            is_clear = self.sim.get(cleared) != 0;
            self.sim.edge();
            if is_clear {
                break;
            }
        }
        self.sim.set(clear, 0);
        self.reset();
        is_clear
    }

    /// State of design and memory; only while no access and no burst is in flight.
    ///
    /// # Errors
    /// When the design was built without snapshots, or the bus is not idle.
    pub fn save(&self) -> Result<CoreSnapshot> {
        if !self.mems.iter().all(AxiMemory::idle)
            || self.ctl.busy()
            || self.krn.as_ref().is_some_and(AxiLite::busy)
        {
            return Err(Error::Hang { what: "quiet bus before a snapshot", cycles: 0 });
        }
        Ok(CoreSnapshot { sim: self.sim.save()?, memory: self.mems[0].memory.clone() })
    }

    /// Restores a snapshot, with a memory of this timing; all faults, hooks and violations are
    /// cleared, and the checker is off.
    ///
    /// # Errors
    /// When it is of another design.
    pub fn restore(&mut self, snapshot: &CoreSnapshot, memory: AxiMemoryConfig) -> Result<()> {
        self.sim.restore(&snapshot.sim)?;
        self.mems = memories(&self.sim, &memory)?;
        self.mems[0].memory = snapshot.memory.clone();
        for k in 0..self.mems.len() {
            for p in ["arready", "awready", "wready", "rvalid", "bvalid"] {
                self.sim.poke(&format!("mem{k}_{p}"), 0);
            }
        }
        if let Some((req, _)) = self.wipe {
            self.sim.set(req, 0);
        }
        self.sim.set(self.rst, 1);
        // The state contains the inputs of the checker.
        self.uncheck();
        self.follow.forget();
        self.meter = None;
        self.ctl.abort(&mut self.sim);
        if let Some(k) = &mut self.krn {
            k.abort(&mut self.sim);
        }
        self.watches.iter_mut().for_each(Watch::clear);
        self.sim.eval();
        Ok(())
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

    /// Without a Shield: ends a job, for the rules about `output` chunks, in one cycle.
    pub fn close_outputs(&mut self) {
        for now in [true, false] {
            if let Some(checker) = &mut self.checker {
                checker.close(&mut self.sim, now);
            }
            if now {
                self.cycle();
            }
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

    /// The measured job, after its end. A few cycles pass while its last reads are in flight.
    ///
    /// # Errors
    /// [`Error::NotMeasured`]
    pub fn measured(&mut self) -> Result<Measured> {
        /// More than a read of a register takes.
        const LAST_READS: u64 = 64;
        for _ in 0..LAST_READS {
            if let Some(measured) = self.meter.as_ref().and_then(|meter| meter.measured()) {
                return measured;
            }
            self.cycle();
        }
        Err(Error::NotMeasured("no job has begun and ended".to_owned()))
    }

    #[inline]
    fn observe(&mut self) {
        if let Some(checker) = &mut self.checker {
            checker.sample(&self.sim);
        }
        if let Some(meter) = &mut self.meter {
            meter.sample(&self.sim, &self.follow);
        }
        self.follow.sample(&self.sim);
    }

    #[inline]
    fn cycle(&mut self) {
        self.cycle_all(None, &mut []);
    }

    /// Runs a further port on the bytes of the first.
    #[inline]
    fn at_port(&mut self, k: usize, f: impl FnOnce(&mut AxiMemory, &mut Sim)) {
        if let [first, rest @ ..] = self.mems.as_mut_slice()
            && let Some(m) = rest.get_mut(k - 1)
        {
            std::mem::swap(&mut first.memory, &mut m.memory);
            f(m, &mut self.sim);
            std::mem::swap(&mut first.memory, &mut m.memory);
        }
    }

    fn lite(&mut self, kernel: bool) -> Option<&mut AxiLite> {
        if kernel { self.krn.as_mut() } else { Some(&mut self.ctl) }
    }

    /// One cycle; `port`: a register access runs on the control (false) or kernel (true) port.
    #[inline]
    fn cycle_all(&mut self, port: Option<bool>, agents: &mut [&mut dyn Agent]) {
        self.sim.settle();
        self.observe();
        self.mems[0].sample(&self.sim);
        for k in 1..self.mems.len() {
            self.at_port(k, |m, sim| m.sample(sim));
        }
        for w in &mut self.watches {
            w.sample(&self.sim);
        }
        match port {
            None => {}
            Some(false) => self.ctl.sample(&self.sim),
            Some(true) => self.krn.iter_mut().for_each(|k| k.sample(&self.sim)),
        }
        for a in &mut self.agents {
            a.sample(&self.sim);
        }
        for a in agents.iter_mut() {
            a.sample(&self.sim);
        }
        let ack = self.irq.filter(|(req, _)| self.sim.get(*req) != 0);
        self.sim.edge();
        self.mems[0].drive(&mut self.sim);
        for k in 1..self.mems.len() {
            self.at_port(k, |m, sim| m.drive(sim));
        }
        match port {
            None => {}
            Some(false) => self.ctl.drive(&mut self.sim),
            Some(true) => self.krn.iter_mut().for_each(|k| k.drive(&mut self.sim)),
        }
        for a in &mut self.agents {
            a.drive(&mut self.sim);
        }
        for a in agents.iter_mut() {
            a.drive(&mut self.sim);
        }
        if let Some((req, ack_port)) = self.irq {
            let was = self.sim.get(ack_port) != 0;
            let now = ack.is_some() && self.sim.get(req) != 0 && !was;
            self.interrupts += u64::from(now);
            if now != was {
                self.sim.set(ack_port, u64::from(now));
            }
        }
    }

    /// One clock cycle with further agents, for ports of a test top that this type does not cover.
    #[inline]
    pub fn step_with(&mut self, agents: &mut [&mut dyn Agent]) {
        self.cycle_all(None, agents);
    }

    /// `n` clock cycles.
    pub fn step(&mut self, n: u64) {
        for _ in 0..n {
            self.cycle();
        }
    }

    /// Runs cycles until `done` holds, checked every `every` cycles; returns the number of cycles,
    /// or `None` after `limit`.
    pub fn run_until(
        &mut self,
        limit: u64,
        every: u64,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Option<u64> {
        let start = self.cycles();
        loop {
            if done(self) {
                return Some(self.cycles() - start);
            }
            if self.cycles() - start >= limit {
                return None;
            }
            self.step(every.max(1).min(limit - (self.cycles() - start)));
        }
    }

    /// Runs until a register has the expected masked value, read every `every` cycles; returns the
    /// number of cycles.
    ///
    /// # Errors
    /// When it does not have this value within `limit` cycles, or does not answer.
    pub fn wait_ctl(
        &mut self,
        addr: u32,
        mask: u32,
        want: u32,
        every: u64,
        limit: u64,
    ) -> Result<u64> {
        let start = self.cycles();
        loop {
            if self.ctl_read(addr)?.is_some_and(|v| v & mask == want) {
                return Ok(self.cycles() - start);
            }
            if self.cycles() - start >= limit {
                return Err(Error::Hang { what: "register value", cycles: limit });
            }
            self.step(every);
        }
    }

    /// Reads or writes a word of the control window or of the kernel port, with further agents;
    /// `None` if the design answered with an error. The value of an accepted write is 0.
    ///
    /// # Errors
    /// When there is no answer, or no kernel port.
    pub fn access(
        &mut self,
        kernel: bool,
        addr: u32,
        write: Option<u32>,
        agents: &mut [&mut dyn Agent],
    ) -> Result<Option<u32>> {
        const PATIENCE: u64 = 1_000_000;
        let (ctl, krn) = (&mut self.ctl, &mut self.krn);
        let lite = match kernel {
            false => ctl,
            true => krn.as_mut().ok_or_else(|| Error::NoPort {
                top: self.sim.library().top().to_owned(),
                port: "krn_araddr".into(),
            })?,
        };
        match write {
            Some(v) => lite.start_write(&mut self.sim, u64::from(addr), v, 0xf),
            None => lite.start_read(&mut self.sim, u64::from(addr)),
        }
        for _ in 0..PATIENCE {
            self.cycle_all(Some(kernel), agents);
            if let Some((resp, data)) = self.lite(kernel).and_then(AxiLite::take) {
                return Ok((resp == 0).then_some(data));
            }
        }
        let lite = if kernel { self.krn.as_mut() } else { Some(&mut self.ctl) };
        if let Some(l) = lite {
            l.abort(&mut self.sim);
        }
        Err(Error::Hang { what: "register access", cycles: PATIENCE })
    }

    /// Reads a register of the control window; `None` if the design answered with an error.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ctl_read(&mut self, addr: u32) -> Result<Option<u32>> {
        self.access(false, addr, None, &mut [])
    }

    /// Writes a register of the control window; returns whether the answer was OKAY.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn ctl_write(&mut self, addr: u32, value: u32) -> Result<bool> {
        Ok(self.access(false, addr, Some(value), &mut [])?.is_some())
    }

    /// Reads a word of the kernel port.
    ///
    /// # Errors
    /// When there is no answer or no kernel port.
    pub fn krn_read(&mut self, addr: u32) -> Result<Option<u32>> {
        self.access(true, addr, None, &mut [])
    }

    /// Writes a word of the kernel port.
    ///
    /// # Errors
    /// As [`CoreSim::krn_read`].
    pub fn krn_write(&mut self, addr: u32, value: u32) -> Result<bool> {
        Ok(self.access(true, addr, Some(value), &mut [])?.is_some())
    }

    /// Requests a wipe and holds the request until it is acknowledged; returns the number of
    /// cycles.
    ///
    /// # Errors
    /// When it is not acknowledged.
    pub fn wipe(&mut self) -> Result<u64> {
        const PATIENCE: u64 = 1_000_000;
        let Some((req, ack)) = self.wipe else {
            return Err(Error::NoPort {
                top: self.sim.library().top().to_owned(),
                port: "wipe_req".into(),
            });
        };
        let start = self.cycles();
        self.sim.set(req, 1);
        for _ in 0..PATIENCE {
            self.cycle();
            if self.sim.get(ack) != 0 {
                let took = self.cycles() - start;
                self.sim.set(req, 0);
                self.cycle();
                return Ok(took);
            }
        }
        Err(Error::Hang { what: "wipe", cycles: PATIENCE })
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

    /// Number of acknowledged interrupts.
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }
}
