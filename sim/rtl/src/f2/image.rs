//! A loaded image, and the signals of the shell around it.

use super::clock::{Clocks, Edge};
use super::config::F2Config;
use super::irq::Irq;
use super::life::{Flr, Life};
use super::lite::LiteMaster;
use super::pcim::Pcim;
use super::pcis::Pcis;
use super::rules::Record;
use crate::agent::{Rng, Stalls};
use crate::{CoreSide, HostBus, Library, Port, Result, Sim};

/// Cycles between two changes of the signals that a CL must ignore.
const NOISE_CYCLES: u64 = 4096;

/// Everything that belongs to a loaded image.
pub(crate) struct Image {
    pub core: CoreSide,
    pub clocks: Clocks,
    pub life: Life,
    pub ocl: LiteMaster,
    pub sda: LiteMaster,
    pub pcis: Pcis,
    pub pcim: Pcim,
    pub irq: Irq,
    pub record: Record,
    /// Reset of the memory controller, as the simulation shows it.
    memory_rst_n: Option<Port>,
    /// Inputs that a CL must ignore.
    ignored: Vec<Port>,
    noise: Rng,
}

impl Image {
    pub fn new(lib: &Library, config: &F2Config) -> Result<Self> {
        let sim = Sim::with_contents(lib, config.contents)?;
        let stalls = |k: u64| {
            config.stalls.map_or_else(Stalls::off, |s| Stalls::seeded(s.wrapping_add(k << 32)))
        };
        let mut pcim = Pcim::new(&sim, config.pcim, config.stalls)?;
        (pcim.payload, pcim.request) = (config.max_payload, config.max_read_request);
        let ignored = ["sh_cl_status_vdip", "sh_cl_ctl0", "sh_cl_ctl1", "sh_cl_ctl2"];
        Ok(Self {
            clocks: Clocks::new(&sim, config.core)?,
            life: Life::new(&sim, config.wipe_ns)?,
            ocl: LiteMaster::ocl(&sim, stalls(1), config.recovers)?,
            sda: LiteMaster::sda(&sim, stalls(2), config.recovers)?,
            pcis: Pcis::new(&sim, stalls(3), config.recovers)?,
            pcim,
            irq: Irq::new(&sim, config.stalls.unwrap_or(0))?,
            record: Record::new(),
            memory_rst_n: sim.find("obs_memory_rst_n"),
            ignored: ignored.iter().filter_map(|n| sim.find(n)).collect(),
            noise: Rng::new(config.stalls.unwrap_or(0)),
            core: CoreSide::new(sim, &config.memory)?,
        })
    }

    /// The next rising edge of a clock.
    pub fn edge(&mut self, host: &mut impl HostBus) {
        match self.clocks.approach(&mut self.core.sim) {
            Edge::Core => {
                let memory = self.memory_rst_n.is_none_or(|p| self.core.sim.get(p) != 0);
                self.core.sample(memory);
                self.clocks.rise(&mut self.core.sim, Edge::Core);
                self.core.drive();
            }
            Edge::Main => {
                self.sample();
                self.clocks.rise(&mut self.core.sim, Edge::Main);
                self.drive(host);
            }
            Edge::Reference => self.clocks.rise(&mut self.core.sim, Edge::Reference),
        }
    }

    fn sample(&mut self) {
        let (sim, to) = (&self.core.sim, &mut self.record);
        to.cycle += 1;
        to.ps = self.clocks.now();
        self.life.sample(sim, to);
        self.ocl.sample(sim, to);
        self.sda.sample(sim, to);
        self.pcis.sample(sim, to);
        self.pcim.sample(sim, to);
        self.irq.sample(sim, to);
    }

    fn drive(&mut self, host: &mut impl HostBus) {
        let (sim, now) = (&mut self.core.sim, self.record.cycle);
        let was = self.life.flr;
        if self.life.drive(sim, now, self.pcim.answered()) {
            self.record.loading = false;
            self.ocl.forget();
            self.sda.forget();
            self.pcis.forget();
            self.irq.forget();
            self.pcim.settle(sim, &mut self.record);
            if !self.pcim.dead {
                self.pcim.forget(sim);
            }
        }
        if was == Flr::Done(now) {
            self.pcim.settle(sim, &mut self.record);
            self.pcim.master = false;
            self.irq.reset();
        }
        self.ocl.drive(sim, now);
        self.sda.drive(sim, now);
        self.pcis.drive(sim, now);
        self.pcim.drive(sim, host, now);
        self.irq.drive(sim, now);
        if now.is_multiple_of(NOISE_CYCLES) {
            for port in &self.ignored {
                sim.set(*port, self.noise.next_u64());
            }
        }
    }

    /// A reset begins: what is in flight to the CL is lost.
    pub fn lose(&mut self) {
        let sim = &mut self.core.sim;
        self.ocl.lose(sim);
        self.sda.lose(sim);
        self.pcis.lose(sim);
    }
}
