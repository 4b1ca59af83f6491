//! The clocks: `clk_main_a0` of exactly 250 MHz, and a core clock of any period that is not related
//! to it and drifts against it. A CL with HBM also has `clk_hbm_ref` of 100 MHz.

use crate::agent::Rng;
use crate::{Port, Result, Sim};

/// Period of `clk_main_a0` in picoseconds.
pub const MAIN_PS: u64 = 4_000;
/// Period of `clk_hbm_ref`, and the time of its first edge: it never coincides with `clk_main_a0`.
const REFERENCE_PS: u64 = 10_000;
const REFERENCE_FIRST_PS: u64 = 3_333;
const FS: u64 = 1_000;
/// Edges of the core's clock between two changes of its drift.
const DRIFT_EDGES: u32 = 512;

/// The core's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreClock {
    /// Period in picoseconds.
    pub period_ps: u64,
    /// Most deviation of the period, in millionths: three quarters of it by the seed, and one
    /// quarter that changes from time to time.
    pub ppm: u32,
    /// Seed of phase and drift.
    pub seed: u64,
}

impl Default for CoreClock {
    /// 125 MHz, with more drift than an oscillator has, so that all phases occur soon.
    fn default() -> Self {
        Self { period_ps: 8_000, ppm: 300, seed: 1 }
    }
}

impl CoreClock {
    /// Most deviation of the period, in femtoseconds.
    fn most(self) -> u64 {
        self.period_ps * FS * u64::from(self.ppm) / 1_000_000
    }

    /// A clock of this frequency.
    #[must_use]
    pub fn khz(khz: u64) -> Self {
        Self { period_ps: 1_000_000_000 / khz.max(1), ..Self::default() }
    }
}

/// The next rising edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    Main,
    Core,
    /// Of `clk_hbm_ref`.
    Reference,
}

struct Core {
    port: Port,
    locked: Option<Port>,
    config: CoreClock,
    rng: Rng,
    /// Mean period, and that of now, in femtoseconds.
    mean: u64,
    period: u64,
    edges: u32,
    /// Time of the next edge in femtoseconds; `None` while the clock stands still.
    next: Option<u64>,
    low: bool,
}

impl Core {
    fn drift(&mut self) {
        let most = self.config.most() / 4;
        self.period = self.mean - most + self.rng.below(2 * most + 1);
        self.edges = DRIFT_EDGES;
    }
}

/// The clocks of a design. Falling edges have no time of their own: a clock is low in the first
/// evaluation after its rising edge, so that an edge costs one or two evaluations.
pub(crate) struct Clocks {
    main: Port,
    core: Option<Core>,
    /// Time of the next edge of `clk_main_a0`.
    next_main: u64,
    main_low: bool,
    /// `clk_hbm_ref`, if the simulation shows that the CL uses it.
    reference: Option<Port>,
    next_reference: u64,
    reference_low: bool,
    /// Time of the last evaluation.
    now: u64,
}

impl Clocks {
    pub fn new(sim: &Sim, config: CoreClock) -> Result<Self> {
        let mut rng = Rng::new(config.seed ^ 0xc10c);
        let most = config.most() / 4 * 3;
        let mean = config.period_ps * FS - most + rng.below(2 * most + 1);
        let core = sim.find("core_clk").map(|port| Core {
            port,
            locked: sim.find("core_locked"),
            config,
            mean,
            period: mean,
            edges: 0,
            next: Some(rng.below(config.period_ps * FS)),
            rng,
            low: true,
        });
        let main = sim.port_of("clk_main_a0", 1)?;
        let used = sim.find("hbm_ref").is_some_and(|port| sim.get(port) != 0);
        let reference = sim.find("clk_hbm_ref").filter(|_| used);
        Ok(Self {
            main,
            core,
            next_main: MAIN_PS,
            main_low: true,
            reference,
            next_reference: if used { REFERENCE_FIRST_PS } else { u64::MAX },
            reference_low: true,
            now: 0,
        })
    }

    /// Time since the load, in picoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Stops the core's clock, with `core_locked` low, or starts it.
    pub fn run_core(&mut self, sim: &mut Sim, runs: bool) {
        let Some(core) = &mut self.core else { return };
        core.next = runs.then_some(self.now * FS + core.period);
        if let Some(locked) = core.locked {
            sim.set(locked, u64::from(runs));
        }
    }

    /// `clk_main_a0` stands still for this time.
    pub fn pause(&mut self, ps: u64) {
        self.next_main += ps;
        self.next_reference = self.next_reference.saturating_add(ps);
        self.now += ps;
    }

    /// Goes to the next rising edge: the outputs are settled, and the clock is low.
    pub fn approach(&mut self, sim: &mut Sim) -> Edge {
        let core = self.core.as_ref().and_then(|c| c.next).map_or(u64::MAX, |fs| fs / FS);
        let shell = self.next_main.min(self.next_reference);
        let edge = if core < shell {
            Edge::Core
        } else if self.next_reference < self.next_main {
            Edge::Reference
        } else {
            Edge::Main
        };
        let settled = match (edge, &self.core) {
            (Edge::Core, Some(core)) => core.low,
            (Edge::Reference, _) => self.reference_low,
            _ => self.main_low,
        };
        if !settled {
            let at = core.min(shell);
            self.evaluate(sim, self.now + (at - self.now) / 2, None);
        }
        edge
    }

    /// The rising edge.
    pub fn rise(&mut self, sim: &mut Sim, edge: Edge) {
        let at = match (edge, &mut self.core) {
            (Edge::Core, Some(core)) => {
                if core.edges == 0 {
                    core.drift();
                }
                core.edges -= 1;
                let at = core.next.unwrap_or(self.now * FS);
                core.next = Some(at + core.period);
                at / FS
            }
            (Edge::Reference, _) => {
                self.next_reference += REFERENCE_PS;
                self.next_reference - REFERENCE_PS
            }
            _ => {
                self.next_main += MAIN_PS;
                self.next_main - MAIN_PS
            }
        };
        self.evaluate(sim, at, Some(edge));
    }

    /// Evaluates with all clocks low but the one that rises.
    fn evaluate(&mut self, sim: &mut Sim, at: u64, rises: Option<Edge>) {
        // Edges of one moment come one after the other.
        self.now = at.max(self.now + 1);
        self.main_low = rises != Some(Edge::Main);
        sim.set(self.main, u64::from(!self.main_low));
        if let Some(reference) = self.reference {
            self.reference_low = rises != Some(Edge::Reference);
            sim.set(reference, u64::from(!self.reference_low));
        }
        let mut counted = self.core.is_none() && !self.main_low;
        if let Some(core) = &mut self.core {
            core.low = rises != Some(Edge::Core);
            sim.set(core.port, u64::from(!core.low));
            counted = !core.low;
        }
        sim.eval_at(self.now, counted);
    }
}
