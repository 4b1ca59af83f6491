//! A whole design as the card sees it: registers, kernel port, one memory behind all memory ports,
//! clock.

use crate::agent::Agent;
use crate::measure::Measured;
use crate::memory::SparseMemory;
use crate::{AxiLite, AxiMemoryConfig, CoreSide, Error, Library, Port, Result, Sim, Snapshot};
use std::ops::{Deref, DerefMut};
use std::path::Path;

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
/// Every access and [`CoreSim::step`] moves the clock; nothing runs in between. The memory and the
/// observers are those of its [`CoreSide`].
pub struct CoreSim {
    side: CoreSide,
    ctl: AxiLite,
    krn: Option<AxiLite>,
    wipe: Option<(Port, Port)>,
    irq: Option<(Port, Port)>,
    rst: Port,
    interrupts: u64,
}

impl Deref for CoreSim {
    type Target = CoreSide;

    fn deref(&self) -> &CoreSide {
        &self.side
    }
}

impl DerefMut for CoreSim {
    fn deref_mut(&mut self) -> &mut CoreSide {
        &mut self.side
    }
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
            ctl: AxiLite::new(&sim, "ctl_")?,
            krn: if sim.find("krn_araddr").is_some() {
                Some(AxiLite::new(&sim, "krn_")?)
            } else {
                None
            },
            wipe: pair("wipe_req", "wipe_ack"),
            irq: pair("irq_req", "irq_ack"),
            rst: sim.port_of("rst_n", 1)?,
            interrupts: 0,
            side: CoreSide::new(sim, &memory)?,
        };
        core.reset();
        Ok(core)
    }

    /// Makes the master of the control port stall at random ([`AxiLite::stall`]).
    pub fn stall_registers(&mut self, seed: u64) {
        self.ctl.stall(seed);
    }

    /// Starts writing waves of the accelerator, its ports and what is below it, from this cycle on.
    ///
    /// # Errors
    /// As [`Sim::trace_start`].
    pub fn trace_accelerator(&mut self, path: &Path, from: u64) -> Result<()> {
        let core = match self.side.sim.library().top() {
            "shef_bare_top" => "",
            "shef_host_top" => "u_core.u_core.",
            _ => "u_core.",
        };
        let scope = format!("top.{}.{core}u_accel", self.side.sim.library().top());
        self.side.sim.trace_part(path, &scope, from)
    }

    /// Reset for a few cycles; the memory keeps its bytes and forgets bursts in flight.
    pub fn reset(&mut self) {
        self.side.sim.set(self.rst, 0);
        if let Some((req, _)) = self.wipe {
            self.side.sim.set(req, 0);
        }
        self.ctl.abort(&mut self.side.sim);
        if let Some(k) = &mut self.krn {
            k.abort(&mut self.side.sim);
        }
        for _ in 0..4 {
            self.side.sim.settle();
            self.side.observe();
            self.side.sim.edge();
        }
        self.side.forget();
        self.side.sim.set(self.rst, 1);
        self.side.sim.eval();
    }

    /// Resets the accelerator of `shef_bare_top` as a Shield does between sessions: with `clear_i`
    /// until `cleared_o`. Whether it rises within `limit` cycles.
    pub fn clear_accelerator(&mut self, limit: u64) -> bool {
        let [Some(clear), Some(cleared)] =
            ["clear", "seenr_cleared"].map(|name| self.side.sim.find(name))
        else {
            return false;
        };
        self.side.sim.set(self.rst, 0);
        self.side.sim.set(clear, 1);
        let mut is_clear = false;
        for _ in 0..limit {
            self.side.sim.settle();
            self.side.observe();
            is_clear = self.side.sim.get(cleared) != 0;
            self.side.sim.edge();
            if is_clear {
                break;
            }
        }
        self.side.sim.set(clear, 0);
        self.reset();
        is_clear
    }

    /// State of design and memory; only while no access and no burst is in flight.
    ///
    /// # Errors
    /// When the design was built without snapshots, or the bus is not idle.
    pub fn save(&self) -> Result<CoreSnapshot> {
        if !self.side.idle() || self.ctl.busy() || self.krn.as_ref().is_some_and(AxiLite::busy) {
            return Err(Error::Hang { what: "quiet bus before a snapshot", cycles: 0 });
        }
        Ok(CoreSnapshot { sim: self.side.sim.save()?, memory: self.memory().clone() })
    }

    /// Restores a snapshot, with a memory of this timing; all faults, hooks and violations are
    /// cleared, and the checker is off.
    ///
    /// # Errors
    /// When it is of another design.
    pub fn restore(&mut self, snapshot: &CoreSnapshot, memory: AxiMemoryConfig) -> Result<()> {
        self.side.restore(&snapshot.sim, &memory, snapshot.memory.clone())?;
        if let Some((req, _)) = self.wipe {
            self.side.sim.set(req, 0);
        }
        self.side.sim.set(self.rst, 1);
        self.ctl.abort(&mut self.side.sim);
        if let Some(k) = &mut self.krn {
            k.abort(&mut self.side.sim);
        }
        self.side.sim.eval();
        Ok(())
    }

    /// Without a Shield: ends a job, for the rules about `output` chunks, in one cycle.
    pub fn close_outputs(&mut self) {
        for now in [true, false] {
            self.side.close(now);
            if now {
                self.cycle();
            }
        }
    }

    /// The measured job, after its end. A few cycles pass while its last reads are in flight.
    ///
    /// # Errors
    /// [`Error::NotMeasured`]
    pub fn measured(&mut self) -> Result<Measured> {
        /// More than a read of a register takes.
        const LAST_READS: u64 = 64;
        for _ in 0..LAST_READS {
            if let Some(measured) = self.side.measured() {
                return measured;
            }
            self.cycle();
        }
        Err(Error::NotMeasured("no job has begun and ended".to_owned()))
    }

    #[inline]
    fn cycle(&mut self) {
        self.cycle_all(None, &mut []);
    }

    fn lite(&mut self, kernel: bool) -> Option<&mut AxiLite> {
        if kernel { self.krn.as_mut() } else { Some(&mut self.ctl) }
    }

    /// One cycle; `port`: a register access runs on the control (false) or kernel (true) port.
    #[inline]
    fn cycle_all(&mut self, port: Option<bool>, agents: &mut [&mut dyn Agent]) {
        self.side.sim.settle();
        self.side.sample(true);
        match port {
            None => {}
            Some(false) => self.ctl.sample(&self.side.sim),
            Some(true) => self.krn.iter_mut().for_each(|k| k.sample(&self.side.sim)),
        }
        for a in agents.iter_mut() {
            a.sample(&self.side.sim);
        }
        let ack = self.irq.filter(|(req, _)| self.side.sim.get(*req) != 0);
        self.side.sim.edge();
        self.side.drive();
        match port {
            None => {}
            Some(false) => self.ctl.drive(&mut self.side.sim),
            Some(true) => self.krn.iter_mut().for_each(|k| k.drive(&mut self.side.sim)),
        }
        for a in agents.iter_mut() {
            a.drive(&mut self.side.sim);
        }
        if let Some((req, ack_port)) = self.irq {
            let was = self.side.sim.get(ack_port) != 0;
            let now = ack.is_some() && self.side.sim.get(req) != 0 && !was;
            self.interrupts += u64::from(now);
            if now != was {
                self.side.sim.set(ack_port, u64::from(now));
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
                top: self.side.sim.library().top().to_owned(),
                port: "krn_araddr".into(),
            })?,
        };
        match write {
            Some(v) => lite.start_write(&mut self.side.sim, u64::from(addr), v, 0xf),
            None => lite.start_read(&mut self.side.sim, u64::from(addr)),
        }
        for _ in 0..PATIENCE {
            self.cycle_all(Some(kernel), agents);
            if let Some((resp, data)) = self.lite(kernel).and_then(AxiLite::take) {
                return Ok((resp == 0).then_some(data));
            }
        }
        let lite = if kernel { self.krn.as_mut() } else { Some(&mut self.ctl) };
        if let Some(l) = lite {
            l.abort(&mut self.side.sim);
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
                top: self.side.sim.library().top().to_owned(),
                port: "wipe_req".into(),
            });
        };
        let start = self.cycles();
        self.side.sim.set(req, 1);
        for _ in 0..PATIENCE {
            self.cycle();
            if self.side.sim.get(ack) != 0 {
                let took = self.cycles() - start;
                self.side.sim.set(req, 0);
                self.cycle();
                return Ok(took);
            }
        }
        Err(Error::Hang { what: "wipe", cycles: PATIENCE })
    }

    /// Number of acknowledged interrupts.
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }
}
