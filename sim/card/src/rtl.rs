//! The Verilated RTL as a back end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use shef_device::{SimKernel, SimParameters, SimShell, WaveScope};
use shef_model::SparseMemory;
use shef_project::F2_TOP;
use shef_rtl::check::{Checked, DoneRegister, ReportHook};
use shef_rtl::measure::{Measured, MeasuredJob};
use shef_rtl::progress::Progress;
use shef_rtl::{
    AxiMemoryConfig, CoreSide, CoreSim, DesignSpec, HostMemory, Library, PortTrace, Traced,
    Unshielded, build_with, kernel_spec,
};

use crate::backend::{Backend, Change, SharedTap, StuckHook};
use crate::f2::F2Card;
use crate::host_port::{HostPort, Interrupts};
use crate::{CardError, Design};

/// Top module of an accelerator without a Shield.
const BARE: &str = "shef_bare_top";
/// Cycles per wait of the host.
const WAIT_CYCLES: u64 = 64;
/// Most cycles that chance adds to the latency of a memory with stalls.
const JITTER: u64 = 256;
/// Cycles in which the checker's reports come out.
const CHECK_CYCLES: u64 = 64;
/// Cycles within which an accelerator clears its memories, as `shef_renew` has.
const CLEAR_CYCLES: u64 = 1 << 16;

/// Options for the RTL.
#[derive(Debug, Clone, Default)]
pub struct RtlOptions {
    /// Cycles from a read request to the first beat; by default that of the memory model.
    pub memory_latency: Option<u64>,
    /// Seed for a memory that is unfriendly within AXI's rules: VALID and READY of all its channels,
    /// the latency of each burst, and the order of responses with different ids are random. Without
    /// a Shield, so are VALID and READY of the accelerator's registers. Without a seed, none are.
    pub stalls: Option<u64>,
    /// Seed for random contents of the design's registers and memories at the start; zeros without
    /// one. It needs another build.
    pub contents: Option<u64>,
    /// Whether the protocol checker watches from the start ([`crate::CardProbe::check`]).
    pub check: bool,
    /// File for waves (FST).
    pub wave: Option<PathBuf>,
    /// Signals in the waves.
    pub wave_scope: WaveScope,
    /// Cycle at which the waves begin.
    pub wave_from: u64,
    /// Cycle before which they end; by default they last as long as the card.
    pub wave_until: Option<u64>,
    /// Includes the DMA engine, which a card on a bus needs ([`crate::serve`]).
    pub dma: bool,
    /// Which Security Kernel the card has.
    pub kernel: SimKernel,
    /// The shell around the design.
    pub shell: SimShell,
    /// In the shell of AWS F2, with a native kernel: the host boots the kernel from a medium that it
    /// writes, after each reset; otherwise the model starts it. For a card on a bus
    /// ([`crate::ServeOptions`]).
    pub host_boots: bool,
}

impl From<&SimParameters> for RtlOptions {
    /// Those of a URI; project and seed belong to the card ([`crate::CardOptions`]).
    fn from(parameters: &SimParameters) -> Self {
        Self {
            memory_latency: parameters.latency,
            stalls: parameters.stalls,
            contents: parameters.contents,
            check: parameters.check,
            wave: parameters.wave.clone(),
            wave_scope: parameters.wave_scope,
            wave_from: parameters.wave_from,
            wave_until: None,
            kernel: parameters.kernel,
            shell: parameters.shell,
            host_boots: false,
            dma: false,
        }
    }
}

impl RtlOptions {
    /// Top module of the simulation shell.
    fn top(&self) -> &'static str {
        match self.shell {
            SimShell::AwsF2 => F2_TOP,
            SimShell::Plain if self.dma => "shef_host_top",
            SimShell::Plain => "shef_sim_top",
        }
    }

    fn memory(&self) -> AxiMemoryConfig {
        let base = AxiMemoryConfig::default();
        AxiMemoryConfig {
            read_latency: self.memory_latency.unwrap_or(base.read_latency).max(1),
            stalls: self.stalls,
            jitter: JITTER,
            reorder: self.stalls.is_some(),
            ..base
        }
    }
}

/// Libraries loaded by this process, by top module, support of waves and of random contents, and
/// digest of the design.
type Loaded = HashMap<(&'static str, bool, bool, [u8; 32]), Library>;

/// Builds a top module of the simulation shell with a design, or takes it from the cache.
fn library(
    top: &'static str,
    options: &RtlOptions,
    design: &Design,
    progress: &mut dyn FnMut(&str),
) -> Result<Library, CardError> {
    static LOADED: LazyLock<Mutex<Loaded>> = LazyLock::new(Mutex::default);
    let loaded = || LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let (trace, random_contents) = (options.wave.is_some(), options.contents.is_some());
    let key = (top, trace, random_contents, design.digest());
    if let Some(found) = loaded().get(&key) {
        return Ok(found.clone());
    }
    // The lock is not held, so that two designs build at once. Of two threads that build one design,
    // the cache of builds lets the second one wait.
    let sources = if top == BARE { design.bare_sources(top)? } else { design.sources(top)? };
    let spec = DesignSpec { trace, random_contents, ..DesignSpec::from(sources) };
    let library = build_with(&spec, progress)?;
    if top != BARE && library.design_digest() != design.digest() {
        let what = "the sources changed after the design was read: open the device again";
        return Err(CardError::Design { what: what.to_owned() });
    }
    loaded().insert(key, library.clone());
    Ok(library)
}

/// Builds the accelerator without a Shield, or takes it from the cache.
pub(crate) fn bare_library(
    design: &Design,
    progress: &mut dyn FnMut(&str),
) -> Result<Library, CardError> {
    library(BARE, &RtlOptions::default(), design, progress)
}

/// Builds the Security Kernel's subsystem, or takes it from the cache.
pub(crate) fn kernel_library(progress: &mut dyn FnMut(&str)) -> Result<Library, CardError> {
    static LOADED: Mutex<Option<Library>> = Mutex::new(None);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = &*loaded {
        return Ok(library.clone());
    }
    let library = build_with(&kernel_spec(None)?.fast().savable(), progress)?;
    Ok(loaded.insert(library).clone())
}

fn start(
    top: &'static str,
    design: &Design,
    options: &RtlOptions,
    progress: &mut dyn FnMut(&str),
) -> Result<CoreSim, CardError> {
    let library = library(top, options, design, progress)?;
    let mut core = CoreSim::with_contents(&library, options.memory(), options.contents)?;
    if let Some(wave) = &options.wave {
        match options.wave_scope {
            WaveScope::All => core.sim().trace_part(wave, "", options.wave_from)?,
            WaveScope::Accel => core.trace_accelerator(wave, options.wave_from)?,
        }
        core.sim().trace_until(options.wave_until.unwrap_or(u64::MAX));
    }
    if options.check {
        core.check(None)?;
    }
    Ok(core)
}

/// A design in its shell.
enum Shelled {
    Plain(Box<CoreSim>),
    AwsF2(Box<F2Card>),
}

impl Shelled {
    fn new(
        design: &Design,
        options: &RtlOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, CardError> {
        let library = library(options.top(), options, design, progress)?;
        Ok(match options.shell {
            SimShell::AwsF2 => {
                let RtlOptions { stalls, contents, host_boots, .. } = *options;
                let card = F2Card::new(&library, options.memory(), stalls, contents, host_boots)?;
                Self::AwsF2(Box::new(card))
            }
            SimShell::Plain => {
                Self::Plain(Box::new(start(options.top(), design, options, progress)?))
            }
        })
    }

    fn side(&mut self) -> &mut CoreSide {
        match self {
            Self::Plain(core) => core,
            Self::AwsF2(card) => card.side(),
        }
    }

    fn seen(&self) -> &CoreSide {
        match self {
            Self::Plain(core) => core,
            Self::AwsF2(card) => card.seen(),
        }
    }
}

/// Reports an accelerator that is stuck, once each time.
struct Watchdog {
    cycles: u64,
    hook: StuckHook,
    /// Cycle of the next look.
    next: u64,
    told: bool,
}

impl Watchdog {
    fn look(&mut self, core: &CoreSide) {
        if core.cycles() >= self.next {
            self.next = core.cycles() + self.cycles / 4;
            let progress = core.progress();
            let stuck = progress.is_stuck(self.cycles);
            if stuck && !self.told {
                (self.hook)(&progress);
            }
            self.told = stuck;
        }
    }
}

/// `shef_sim_top`, `shef_host_top` or `shef_f2_top` as a back end.
pub(crate) struct RtlBackend {
    core: Shelled,
    accelerator: String,
    interrupts: u64,
    answers: u64,
    last_write: Option<u64>,
    /// Host memory, if the design has access to it.
    host: Option<Rc<RefCell<HostMemory<HostPort>>>>,
    /// The record of the ports, once it was started.
    tracer: Tracer,
    watchdog: Option<Watchdog>,
}

impl RtlBackend {
    /// Builds the simulation, or takes it from the cache.
    pub(crate) fn build(
        design: &Design,
        options: &RtlOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), CardError> {
        library(options.top(), options, design, progress).map(drop)
    }

    pub(crate) fn new(
        design: &Design,
        options: &RtlOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, CardError> {
        let core = Shelled::new(design, options, progress)?;
        if !core.seen().can_watch() {
            return Err(CardError::Design {
                what: "the simulation shell has no observation outputs".to_owned(),
            });
        }
        let accelerator = design.name().to_owned();
        Ok(Self {
            core,
            accelerator,
            interrupts: 0,
            answers: 0,
            last_write: None,
            host: None,
            tracer: Tracer::default(),
            watchdog: None,
        })
    }

    fn note(&mut self) {
        let side = self.core.seen();
        let answers = side.counters().answers;
        if answers != self.answers {
            self.answers = answers;
            self.last_write = Some(side.cycles());
        }
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.look(side);
        }
    }
}

impl RtlBackend {
    /// A reset ends injected faults of the memory.
    fn mend_memory(&mut self) {
        for memory in self.core.side().axi_memories() {
            memory.error_ranges.clear();
            memory.silent_ranges.clear();
        }
    }
}

impl Backend for RtlBackend {
    fn ctl_read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        let value = match &mut self.core {
            Shelled::Plain(core) => core.ctl_read(offset)?,
            Shelled::AwsF2(card) => card.ctl_read(offset),
        };
        self.note();
        Ok(value)
    }

    fn ctl_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        let done = match &mut self.core {
            Shelled::Plain(core) => core.ctl_write(offset, value)?,
            Shelled::AwsF2(card) => card.ctl_write(offset, value),
        };
        self.note();
        Ok(done)
    }

    fn krn_read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        match &mut self.core {
            Shelled::Plain(core) => Ok(core.krn_read(offset)?),
            Shelled::AwsF2(card) => card.krn(offset, None),
        }
    }

    fn krn_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        match &mut self.core {
            Shelled::Plain(core) => Ok(core.krn_write(offset, value)?),
            Shelled::AwsF2(card) => Ok(card.krn(offset, Some(value))?.is_some()),
        }
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) {
        match &mut self.core {
            Shelled::Plain(core) => core.memory().read(addr, bytes),
            Shelled::AwsF2(card) => card.mem_read(addr, bytes),
        }
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) {
        match &mut self.core {
            Shelled::Plain(core) => core.memory_mut().write(addr, bytes),
            Shelled::AwsF2(card) => card.mem_write(addr, bytes),
        }
    }

    fn put_memory(&mut self, memory: SparseMemory) {
        *self.core.side().memory_mut() = memory;
    }

    fn advance(&mut self) -> Result<(), CardError> {
        match &mut self.core {
            Shelled::Plain(core) => core.step(WAIT_CYCLES),
            Shelled::AwsF2(card) => card.step(WAIT_CYCLES),
        }
        self.note();
        Ok(())
    }

    fn interrupted(&mut self) -> bool {
        let now = match &self.core {
            Shelled::Plain(core) => core.interrupts(),
            Shelled::AwsF2(card) => card.interrupts(),
        };
        let was = core::mem::replace(&mut self.interrupts, now);
        now != was
    }

    fn cycles(&self) -> Option<u64> {
        Some(self.core.seen().cycles())
    }

    fn last_write_cycle(&self) -> Option<u64> {
        self.last_write
    }

    fn reset(&mut self) -> Result<(), CardError> {
        match &mut self.core {
            Shelled::Plain(core) => {
                core.wipe()?;
                core.reset();
                if let Some(host) = &self.host {
                    host.borrow_mut().reset(core.sim());
                }
            }
            Shelled::AwsF2(card) => card.reset()?,
        }
        self.mend_memory();
        Ok(())
    }

    fn mount(&mut self) -> Result<(), CardError> {
        let Shelled::AwsF2(card) = &mut self.core else { return self.reset() };
        card.mount()?;
        self.mend_memory();
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), CardError> {
        let Shelled::AwsF2(card) = &mut self.core else { return self.reset() };
        card.unmount()?;
        self.mend_memory();
        Ok(())
    }

    fn mailbox_read(&mut self, offset: u32, answer: u32) -> Result<Option<u32>, CardError> {
        Ok(match &mut self.core {
            Shelled::Plain(_) => Some(answer),
            Shelled::AwsF2(card) => card.mailbox_read(offset, answer),
        })
    }

    fn mailbox_write(&mut self, offset: u32, value: u32) -> Result<Option<u32>, CardError> {
        Ok(match &mut self.core {
            Shelled::Plain(_) => Some(value),
            Shelled::AwsF2(card) => card.mailbox_write(offset, value),
        })
    }

    fn command(&mut self, value: u32) -> Change {
        match &mut self.core {
            Shelled::Plain(_) => Change::None,
            Shelled::AwsF2(card) => card.command(value),
        }
    }

    fn set_kernel(&mut self, ready: bool, alert: u32) {
        if let Shelled::AwsF2(card) = &mut self.core {
            card.set_kernel(ready, alert);
        }
    }

    fn bar2_read(&mut self, offset: u32) -> u32 {
        match &mut self.core {
            Shelled::Plain(_) => 0,
            Shelled::AwsF2(card) => card.bar2_read(offset),
        }
    }

    fn bar2_write(&mut self, offset: u32, value: u32) {
        if let Shelled::AwsF2(card) = &mut self.core {
            card.bar2_write(offset, value);
        }
    }

    fn accelerator(&self) -> &str {
        &self.accelerator
    }

    fn design_digest(&self) -> [u8; 32] {
        self.core.seen().design_digest()
    }

    fn watch(&mut self, range: Range<u64>) {
        self.core.side().watch(range);
    }

    fn unwatch(&mut self) {
        self.core.side().unwatch();
    }

    fn words_delivered(&self) -> u64 {
        self.core.seen().words_delivered()
    }

    fn connect(&mut self, host: HostPort) -> Result<bool, CardError> {
        // The clock stops during an access, so a request must not go to a client that waits for the
        // clock.
        let host = HostPort { bus: host.bus.mapped(), ..host };
        let core = match &mut self.core {
            Shelled::AwsF2(card) => {
                card.connect(host);
                return Ok(true);
            }
            Shelled::Plain(core) => core,
        };
        let Some(interrupts) = Interrupts::new(core.sim(), host.clone()) else {
            return Ok(false);
        };
        let memory = HostMemory::new(core.sim(), "host_", AxiMemoryConfig::default(), host)?;
        let memory = Rc::new(RefCell::new(memory));
        core.attach(Box::new(Rc::clone(&memory)));
        core.attach(Box::new(interrupts));
        self.host = Some(memory);
        Ok(true)
    }

    fn check(&mut self, done: Option<DoneRegister>) -> Result<(), CardError> {
        Ok(self.core.side().check(done)?)
    }

    fn uncheck(&mut self) {
        self.core.side().uncheck();
    }

    fn checked(&mut self) -> Checked {
        self.core.side().checked()
    }

    fn on_report(&mut self, hook: ReportHook) {
        self.core.side().on_report(hook);
    }

    fn trace(&mut self) -> Result<(), CardError> {
        self.tracer.start(self.core.side());
        Ok(())
    }

    fn traced(&mut self) -> Traced {
        self.tracer.stop()
    }

    fn measure(&mut self, bare: &Library, job: MeasuredJob) -> Result<(), CardError> {
        Ok(self.core.side().measure(bare, job)?)
    }

    fn measured(&mut self) -> Result<Measured, CardError> {
        match &mut self.core {
            Shelled::Plain(core) => Ok(core.measured()?),
            Shelled::AwsF2(card) => card.measured(),
        }
    }

    fn progress(&self) -> Result<Progress, CardError> {
        Ok(self.core.seen().progress())
    }

    fn on_stuck(&mut self, cycles: u64, hook: StuckHook) {
        self.watchdog = Some(Watchdog { cycles, hook, next: 0, told: false });
    }

    fn fail_reads(&mut self, range: Range<u64>) {
        for memory in self.core.side().axi_memories() {
            memory.error_ranges.push(range.clone());
        }
    }

    fn tap_memory(&mut self, tap: SharedTap) {
        for memory in self.core.side().axi_memories() {
            let [reads, stores] = [(); 2].map(|()| Arc::clone(&tap));
            memory.on_read(move |addr, data| {
                reads.lock().unwrap_or_else(PoisonError::into_inner).reads(addr, data);
            });
            memory.on_write(move |addr, data, strobes| {
                stores.lock().unwrap_or_else(PoisonError::into_inner).stores(addr, data, *strobes);
            });
        }
    }
}

/// A record of the ports of a core, which observes every cycle once it was started.
#[derive(Default)]
struct Tracer(Option<Rc<RefCell<PortTrace>>>);

impl Tracer {
    fn start(&mut self, core: &mut CoreSide) {
        let trace = self.0.get_or_insert_with(|| {
            let trace = Rc::new(RefCell::new(PortTrace::new(core.sim())));
            core.attach(Box::new(Rc::clone(&trace)));
            trace
        });
        trace.borrow_mut().start(core.sim());
    }

    fn stop(&self) -> Traced {
        self.0.as_ref().map(|trace| trace.borrow_mut().stop()).unwrap_or_default()
    }
}

/// The accelerator wired to memory without a Shield, to compare cycles. The memory takes the bursts
/// that a Shield with the design's regions takes, and refuses the others.
pub struct BareCard {
    core: CoreSim,
    tracer: Tracer,
}

impl BareCard {
    /// Builds the simulation, or takes it from the cache. [`BareCard::new`] then takes no time.
    ///
    /// # Errors
    /// Build errors.
    pub fn build(
        design: &Design,
        options: &RtlOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), CardError> {
        library(BARE, options, design, progress).map(drop)
    }

    /// Builds and starts it.
    ///
    /// # Errors
    /// Build errors.
    pub fn new(
        design: &Design,
        options: &RtlOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, CardError> {
        let mut core = start(BARE, design, options, progress)?;
        for memory in core.axi_memories() {
            memory.unshielded = Some(Box::new(Unshielded::new(design.config().regions())));
        }
        if let Some(seed) = options.stalls {
            core.stall_registers(seed);
        }
        Ok(Self { core, tracer: Tracer::default() })
    }

    /// Turns the protocol checker on, with the status register of a job if there is one.
    ///
    /// # Errors
    /// If the simulation shell has no checker.
    pub fn check(&mut self, done: Option<DoneRegister>) -> Result<(), CardError> {
        Ok(self.core.check(done)?)
    }

    /// What the checker saw since the last call. It takes this as the end of a job, at which chunks
    /// of `output` regions are closed.
    pub fn checked(&mut self) -> Checked {
        self.core.close_outputs();
        self.core.step(CHECK_CYCLES);
        self.core.checked()
    }

    /// Records what passes the ports, and the interrupt, with cycles from now on.
    pub fn trace(&mut self) {
        self.tracer.start(&mut self.core);
    }

    /// The record since [`BareCard::trace`], which ends.
    pub fn traced(&self) -> Traced {
        self.tracer.stop()
    }

    /// Measures a job that begins from now on; as [`crate::CardProbe::measure`], before any cycle has
    /// passed.
    ///
    /// # Errors
    /// As [`crate::CardProbe::measure`].
    pub fn measure(&mut self, job: MeasuredJob) -> Result<(), CardError> {
        let bare = self.core.sim().library().clone();
        Ok(self.core.measure(&bare, job)?)
    }

    /// The measured job.
    ///
    /// # Errors
    /// As [`crate::CardProbe::measured`].
    pub fn measured(&mut self) -> Result<Measured, CardError> {
        Ok(self.core.measured()?)
    }

    /// Lets cycles pass.
    pub fn step(&mut self, cycles: u64) {
        self.core.step(cycles);
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.core.cycles()
    }

    /// Beats and answers at all ports so far.
    pub fn beats(&self) -> u64 {
        let counters = self.core.counters();
        counters.read_beats + counters.write_beats + counters.answers
    }

    /// The bursts at the accelerator's ports, and who waits for whom.
    pub fn progress(&self) -> Progress {
        self.core.progress()
    }

    /// Ends the session of the accelerator as a Shield does: reset, and `clear_i` until `cleared_o`.
    /// Memory keeps its contents.
    ///
    /// # Errors
    /// If it is not clear after the time that a Shield waits.
    pub fn next_session(&mut self) -> Result<(), CardError> {
        if self.core.clear_accelerator(CLEAR_CYCLES) {
            return Ok(());
        }
        let what = format!("the accelerator does not raise cleared_o within {CLEAR_CYCLES} cycles");
        Err(CardError::Design { what })
    }

    /// Writes memory, without time passing.
    pub fn mem_write(&mut self, addr: u64, bytes: &[u8]) {
        self.core.memory_mut().write(addr, bytes);
    }

    /// Reads memory, without time passing.
    pub fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) {
        self.core.memory().read(addr, bytes);
    }

    /// Writes a register of the accelerator.
    ///
    /// # Errors
    /// If the register refuses or does not answer.
    pub fn reg_write(&mut self, offset: u32, value: u32) -> Result<(), CardError> {
        if self.core.ctl_write(offset, value)? {
            Ok(())
        } else {
            Err(CardError::Design {
                what: format!("accelerator register {offset:#x} refused a write"),
            })
        }
    }

    /// Reads a register of the accelerator.
    ///
    /// # Errors
    /// As [`BareCard::reg_write`].
    pub fn reg_read(&mut self, offset: u32) -> Result<u32, CardError> {
        self.core.ctl_read(offset)?.ok_or_else(|| CardError::Design {
            what: format!("accelerator register {offset:#x} refused a read"),
        })
    }

    /// Writes `start` to register `ctrl` and runs until the `done` bits of register `status` are
    /// set and every write is acknowledged. Returns the cycles from the start to the last
    /// acknowledgement.
    ///
    /// # Errors
    /// If it takes more than `limit` cycles; the message shows which ports wait ([`Progress::waits`]).
    pub fn run(
        &mut self,
        ctrl: u32,
        start: u32,
        status: u32,
        done: u32,
        limit: u64,
    ) -> Result<u64, CardError> {
        let begin = self.core.cycles();
        let mut answers = self.core.counters().answers;
        let mut last = begin;
        self.reg_write(ctrl, start)?;
        loop {
            let now = self.core.counters().answers;
            if now != answers {
                answers = now;
                last = self.core.cycles();
            }
            if self.reg_read(status)? & done != 0 {
                let now = self.core.counters().answers;
                return Ok(if now == answers { last } else { self.core.cycles() } - begin);
            }
            if self.core.cycles() - begin > limit {
                let waits = self.progress().waits();
                return Err(CardError::Design {
                    what: format!("the bare accelerator did not finish in {limit} cycles: {waits}"),
                });
            }
            self.core.step(WAIT_CYCLES);
        }
    }
}
