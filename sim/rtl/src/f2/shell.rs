//! The shell around a CL.

use super::clock::{Clocks, CoreClock, Edge, MAIN_PS};
use super::irq::{Interrupt, Irq, Msix};
use super::life::{Flr, Ids, Life, Slot};
use super::lite::LiteMaster;
use super::pcim::{Pcim, PcimTiming};
use super::pcis::Pcis;
use super::rules::{Record, Rule, Violation};
use crate::agent::{Rng, Stalls};
use crate::{AxiMemoryConfig, BusCounters, CoreSide, HostBus, Library, Port, Result, Sim};

/// Bytes of BAR 0 (OCL).
pub const BAR0_BYTES: u32 = 1 << 26;
/// Bytes of BAR 4 (PCIS).
pub const BAR4_BYTES: u64 = 1 << 37;
/// Bytes of a page, which no burst crosses.
const PAGE: u64 = 4096;
/// Cycles between two changes of the signals that a CL must ignore.
const NOISE_CYCLES: u64 = 4096;

/// The shell's timing, and what it tells the CL about the bus.
#[derive(Debug, Clone)]
pub struct F2Config {
    /// The core's clock, if the top module has a port `core_clk`.
    pub core: CoreClock,
    /// Seed of random stalls on all channels; without a seed, no stalls.
    pub stalls: Option<u64>,
    /// The path to the host's memory.
    pub pcim: PcimTiming,
    /// Bytes of a packet that writes (MPS): 128, 256 or 512.
    pub max_payload: usize,
    /// Bytes of a packet that reads (MRRS): 128 to 4096.
    pub max_read_request: usize,
    /// OCL, SDA and PCIS work again 4 ms after an access was late; else not until a load.
    pub recovers: bool,
    /// Nanoseconds that the CL has for a wipe, from the reset of the function or power state 3.
    pub wipe_ns: u64,
    /// Memory at the ports `mem0_` to `mem3_`, on the core's clock.
    pub memory: AxiMemoryConfig,
    /// Seed of the contents of registers and memories ([`Sim::with_contents`]).
    pub contents: Option<u64>,
    /// Inputs that have a value from the load on, such as the identity of a simulated card: name of
    /// the port and bytes, least significant first.
    pub inputs: Vec<(String, Vec<u8>)>,
}

impl Default for F2Config {
    fn default() -> Self {
        Self {
            core: CoreClock::default(),
            stalls: Some(1),
            pcim: PcimTiming::default(),
            max_payload: 256,
            max_read_request: 512,
            recovers: false,
            wipe_ns: 100_000_000,
            memory: AxiMemoryConfig::default(),
            contents: None,
            inputs: Vec::new(),
        }
    }
}

impl F2Config {
    /// Random stalls everywhere, and a core clock of this seed's phase.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            core: CoreClock { seed, ..CoreClock::default() },
            stalls: Some(seed),
            memory: AxiMemoryConfig::seeded(seed),
            ..Self::default()
        }
    }

    /// No stalls and fixed latencies, for measurements.
    #[must_use]
    pub fn bench(core: CoreClock, pcim_read_ns: u64, memory: AxiMemoryConfig) -> Self {
        let pcim = PcimTiming::bench(pcim_read_ns, 600);
        Self { core, stalls: None, pcim, memory, max_payload: 512, ..Self::default() }
    }
}

/// Metrics of the slot, as AWS's tools show them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Late accesses on OCL, SDA and PCIS, and the address of the last one: bit 0 is set for a read,
    /// bit 1 for a write.
    pub late: [(u64, u64); 3],
    /// Answers other than OKAY on OCL, SDA and PCIS.
    pub errors: [u64; 3],
    /// The longest access on OCL in nanoseconds.
    pub ocl_worst_ns: u64,
    /// The longest read and the longest write on PCIS in nanoseconds.
    pub pcis_worst_ns: [u64; 2],
    /// Traffic on PCIM.
    pub pcim: BusCounters,
    /// PCIM moves nothing until a load.
    pub pcim_dead: bool,
}

/// Everything that belongs to a loaded image.
struct Image {
    core: CoreSide,
    clocks: Clocks,
    life: Life,
    ocl: LiteMaster,
    sda: LiteMaster,
    pcis: Pcis,
    pcim: Pcim,
    irq: Irq,
    record: Record,
    /// Reset of the memory controller, as the simulation shows it.
    memory_rst_n: Option<Port>,
    /// Inputs that a CL must ignore.
    ignored: Vec<Port>,
    noise: Rng,
}

/// The shell of AWS F2 around a CL: the host's accesses on one side, all signals of the CL on the
/// other, and a record of the rules that the CL breaks.
///
/// The host's accesses, [`F2Shell::step`] and [`F2Shell::flr`] move the clocks; nothing runs in
/// between. While the function is not there (no image, a reset), reads give all ones.
pub struct F2Shell<B> {
    /// The host's memory.
    pub host: B,
    config: F2Config,
    image: Image,
    slot: Slot,
}

impl Image {
    fn new(lib: &Library, config: &F2Config) -> Result<Self> {
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
    fn edge(&mut self, host: &mut impl HostBus) {
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
    fn lose(&mut self) {
        let sim = &mut self.core.sim;
        self.ocl.lose(sim);
        self.sda.lose(sim);
        self.pcis.lose(sim);
    }
}

/// Cycles of `rst_main_n` at a load.
const LOAD_RESET: u64 = 1_000;

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

    /// Whether the host reaches the function.
    fn there(&self) -> bool {
        let life = &self.image.life;
        self.slot == Slot::Loaded && life.flr == Flr::Idle && life.reset_until.is_none()
    }

    fn lite(&mut self, sda: bool, addr: u32, write: Option<(u32, u8)>) -> u32 {
        if !self.there() {
            self.step(1);
            return u32::MAX;
        }
        let lite = if sda { &mut self.image.sda } else { &mut self.image.ocl };
        let tag = match write {
            Some((data, strobes)) => lite.write(addr, data, strobes),
            None => lite.read(addr),
        };
        loop {
            self.edge();
            let lite = if sda { &mut self.image.sda } else { &mut self.image.ocl };
            if let Some((_, word)) = lite.take().filter(|(t, _)| *t == tag) {
                return word;
            }
        }
    }

    /// Reads a word of BAR 0; all ones if the CL was late.
    pub fn ocl_read(&mut self, addr: u32) -> u32 {
        self.lite(false, addr % BAR0_BYTES, None)
    }

    /// Writes a word of BAR 0.
    pub fn ocl_write(&mut self, addr: u32, value: u32) {
        self.lite(false, addr % BAR0_BYTES, Some((value, 0xf)));
    }

    /// Reads bytes of BAR 0: the shell splits what is wider than a word, low half first.
    pub fn ocl_read_bytes(&mut self, addr: u32, bytes: &mut [u8]) {
        let mut at = addr;
        let mut rest = bytes;
        while !rest.is_empty() {
            let skew = at as usize % 4;
            let n = (4 - skew).min(rest.len());
            let word = self.ocl_read(at & !3).to_le_bytes();
            let (now, later) = rest.split_at_mut(n);
            now.copy_from_slice(&word[skew..skew + n]);
            (rest, at) = (later, at.wrapping_add(n as u32));
        }
    }

    /// Writes bytes of BAR 0, split as by [`F2Shell::ocl_read_bytes`].
    pub fn ocl_write_bytes(&mut self, addr: u32, bytes: &[u8]) {
        let mut at = addr;
        let mut rest = bytes;
        while !rest.is_empty() {
            let skew = at as usize % 4;
            let (now, later) = rest.split_at((4 - skew).min(rest.len()));
            let mut word = [0; 4];
            word[skew..skew + now.len()].copy_from_slice(now);
            let strobes = ((1u8 << now.len()) - 1) << skew;
            let word = u32::from_le_bytes(word);
            self.lite(false, (at & !3) % BAR0_BYTES, Some((word, strobes)));
            (rest, at) = (later, at.wrapping_add(now.len() as u32));
        }
    }

    /// Reads a word of the management function's BAR 4 (SDA).
    pub fn sda_read(&mut self, addr: u32) -> u32 {
        self.lite(true, addr, None)
    }

    /// Writes a word on SDA.
    pub fn sda_write(&mut self, addr: u32, value: u32) {
        self.lite(true, addr, Some((value, 0xf)));
    }

    /// Reads a register of BAR 2.
    #[must_use]
    pub fn bar2_read(&self, offset: u32) -> u32 {
        if self.there() { self.image.irq.read(offset) } else { u32::MAX }
    }

    /// Writes a register of BAR 2.
    pub fn bar2_write(&mut self, offset: u32, value: u32) {
        if self.there() {
            self.image.irq.write(offset, value);
        }
    }

    /// Begins reads of BAR 4, split into packets; [`F2Shell::bar4_take`] gives their bytes in order.
    /// Reads and writes in flight have no order among each other. The number of packets.
    pub fn bar4_begin_read(&mut self, addr: u64, len: usize) -> usize {
        let mut packets = 0;
        let mut done = 0;
        while done < len {
            let at = addr + done as u64;
            let n = (len - done).min(self.packet(at, self.config.max_read_request));
            self.image.pcis.read(at % BAR4_BYTES, n);
            (packets, done) = (packets + 1, done + n);
        }
        packets
    }

    /// Begins writes of BAR 4, as [`F2Shell::bar4_begin_read`].
    pub fn bar4_begin_write(&mut self, addr: u64, bytes: &[u8]) -> usize {
        let mut packets = 0;
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = addr + (bytes.len() - rest.len()) as u64;
            let n = rest.len().min(self.packet(at, self.config.max_payload));
            self.image.pcis.write(at % BAR4_BYTES, &rest[..n]);
            (packets, rest) = (packets + 1, &rest[n..]);
        }
        packets
    }

    /// Bytes up to the end of a packet.
    fn packet(&self, at: u64, most: usize) -> usize {
        let most = (most as u64).min(PAGE);
        (most - at % most) as usize
    }

    /// The bytes of the next read of BAR 4 that was answered, or the next answered write.
    pub fn bar4_take(&mut self, write: bool) -> Option<Vec<u8>> {
        self.image.pcis.take(write).map(|(_, bytes)| bytes)
    }

    /// Whether an access of BAR 4 is in flight.
    #[must_use]
    pub fn bar4_busy(&self) -> bool {
        self.image.pcis.busy()
    }

    /// Reads bytes of BAR 4; all ones if the CL was late.
    pub fn bar4_read(&mut self, addr: u64, bytes: &mut [u8]) {
        if !self.there() {
            self.step(1);
            return bytes.fill(0xff);
        }
        let packets = self.bar4_begin_read(addr, bytes.len());
        let mut rest = bytes;
        for _ in 0..packets {
            let packet = self.bar4_wait(false);
            let (now, later) = rest.split_at_mut(packet.len());
            now.copy_from_slice(&packet);
            rest = later;
        }
    }

    /// Writes bytes of BAR 4, and waits until the CL has answered.
    pub fn bar4_write(&mut self, addr: u64, bytes: &[u8]) {
        if !self.there() {
            return self.step(1);
        }
        for _ in 0..self.bar4_begin_write(addr, bytes) {
            self.bar4_wait(true);
        }
    }

    fn bar4_wait(&mut self, write: bool) -> Vec<u8> {
        loop {
            if let Some(packet) = self.bar4_take(write) {
                return packet;
            }
            self.edge();
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
