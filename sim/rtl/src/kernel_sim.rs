//! The Security Kernel's subsystem in the environment of a shell: boot medium, noise source, the
//! Shield's kernel port, the fabric, and the host at the mailbox.

use crate::agent::{Agent, Rng, cycle};
use std::collections::BTreeMap;
use std::time::Instant;

use crate::{AxiLite, Error, Library, OKAY, Port, Result, SLVERR, Sim, Snapshot};

/// The host's side of the mailbox; byte offsets from its start.
pub mod host {
    /// Request buffer.
    pub const REQUEST: u64 = 0;
    /// Bytes of the request buffer.
    pub const REQUEST_BYTES: usize = 0x2000;
    /// Answer buffer.
    pub const ANSWER: u64 = 0x2000;
    /// Readable bytes of the answer.
    pub const ANSWER_BYTES: usize = 0x1e00;
    /// Length of the request; a write rings the doorbell.
    pub const REQ_LEN: u64 = 0x3f00;
    /// 0 idle, 1 answer ready, 2 busy.
    pub const STATUS: u64 = 0x3f04;
    /// Length of the answer.
    pub const RSP_LEN: u64 = 0x3f08;
}

/// A noise source: gives the raw bit of a cycle, counted from the instance's first, if there is a
/// bit.
pub type Noise = Box<dyn FnMut(u64) -> Option<bool>>;

/// Whether a cycle ends with an edge of the kernel's clock.
pub type KernelClock = Box<dyn FnMut(u64) -> bool>;

/// Fair bits from a seed, one every four cycles.
#[must_use]
pub fn fair_noise(seed: u64) -> Noise {
    let mut rng = Rng::new(seed);
    Box::new(move |cycle| cycle.is_multiple_of(4).then(|| rng.next_u64() >> 63 == 1))
}

/// Passes bits of `noise` so rarely that none survives a boot: the start-up test of the noise
/// tests, which discards its bits, does not end. A snapshot taken afterwards contains no noise.
#[must_use]
pub fn sparse_noise(mut noise: Noise) -> Noise {
    // Half of the time after which the tests consider a source silent.
    Box::new(move |cycle| if cycle.is_multiple_of(1 << 19) { noise(cycle) } else { None })
}

/// A Shield's behaviour at its kernel port.
pub trait KernelPort {
    /// This number of cycles of the kernel's clock passed since the last access.
    fn pass(&mut self, cycles: u64) {
        let _ = cycles;
    }
    /// A word, or `None` for an error.
    fn read(&mut self, offset: u32) -> Option<u32>;
    /// Whether the word was accepted.
    fn write(&mut self, offset: u32, value: u32) -> bool;
}

/// Description of the shell and the device for the kernel.
#[derive(Debug, Clone)]
pub struct KernelStraps {
    /// Unique device secret.
    pub uds: [u8; 32],
    /// Kind of the root of trust: 0 simulated, 1 shef-boot, 2 board, 3 provider.
    pub root: u8,
    /// Name of the target, zero padded.
    pub target: [u8; 32],
    /// Digest of the shell.
    pub shell: [u8; 32],
    /// The shell's functions that are open to the host.
    pub shell_flags: u8,
    /// Whether a debug function is enabled.
    pub debug: bool,
    /// Whether the noise comes from a seed.
    pub seeded: bool,
    /// Whether the min-entropy of the noise was never measured.
    pub unmeasured: bool,
}

impl KernelStraps {
    /// A name of at most 32 bytes as the kernel reads it.
    ///
    /// # Panics
    /// When it is longer.
    #[must_use]
    pub fn name(name: &str) -> [u8; 32] {
        let mut out = [0; 32];
        out[..name.len()].copy_from_slice(name.as_bytes());
        out
    }
}

/// The fabric behind the configuration port.
pub trait Fabric {
    /// Clears it, and with it the current design.
    fn clear(&mut self) {}
    /// Takes a whole image; returns the digest of the design now in the fabric, or `None` if it
    /// refuses the image.
    fn configure(&mut self, image: &[u8]) -> Option<[u8; 32]>;
}

/// A fabric that only decides about images.
impl<F: FnMut(&[u8]) -> Option<[u8; 32]>> Fabric for F {
    fn configure(&mut self, image: &[u8]) -> Option<[u8; 32]> {
        self(image)
    }
}

/// The time of an event.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Cycles since the instance was created.
    pub cycle: u64,
    /// Wall clock.
    pub time: Instant,
}

impl Moment {
    fn now(sim: &Sim) -> Self {
        Self { cycle: sim.cycles(), time: Instant::now() }
    }
}

/// The environment of the subsystem.
pub struct Environment {
    ports: Ports,
    /// Content of the boot medium; a word that begins beyond its end is an error.
    pub medium: Vec<u8>,
    /// The noise source.
    pub noise: Noise,
    /// The Shield; if missing, its port does not answer.
    pub shield: Option<Box<dyn KernelPort>>,
    /// Destination of images.
    pub fabric: Box<dyn Fabric>,
    /// Words from the configuration port since the last begin.
    pub image: Vec<u8>,
    /// Whether the last word arrived.
    pub whole: bool,
    /// The design in the fabric.
    pub design: Option<[u8; 32]>,
    /// Whether a cycle, counted from 1, ends with an edge of the kernel's clock, if the kernel has
    /// a separate clock. Noise is counted in edges of that clock.
    pub pace: KernelClock,
    /// Time of the first read of the boot-medium words with these numbers.
    pub marks: BTreeMap<u64, Option<Moment>>,
    cycle: u64,
    /// Cycles of the design's clock.
    cycles: u64,
    /// Whether the current cycle ends with an edge of the kernel's clock.
    ticked: bool,
    /// Cycle of the last access to the Shield.
    accessed: u64,
    asked: Option<u64>,
    krn_write: Option<(u32, u32)>,
    krn_read: Option<u32>,
    krn_taken: bool,
    cfg: Cfg,
    /// Whether the fabric was being cleared in the previous cycle.
    clearing: bool,
}

#[derive(Default)]
struct Cfg {
    cleared: bool,
    word: Option<(u32, bool)>,
    refused: bool,
}

struct Ports {
    medium: [Port; 5],
    noise: [Port; 2],
    /// Missing if the design contains the Shield.
    krn: Option<Krn>,
    cfg: [Port; 9],
    /// Missing if the kernel's clock is the only one.
    tick: Option<Port>,
}

#[derive(Clone, Copy)]
struct Krn {
    aw: [Port; 3],
    w: [Port; 3],
    b: [Port; 3],
    ar: [Port; 3],
    r: [Port; 4],
}

impl Ports {
    fn new(sim: &Sim) -> Result<Self> {
        let p = |n: &str| sim.port(n);
        Ok(Self {
            medium: [
                p("medium_valid_o")?,
                p("medium_addr_o")?,
                p("medium_ready_i")?,
                p("medium_data_i")?,
                p("medium_err_i")?,
            ],
            noise: [p("noise_valid_i")?, p("noise_bit_i")?],
            krn: match sim.find("krn_awvalid_o") {
                None => None,
                Some(awvalid) => Some(Krn {
                    aw: [awvalid, p("krn_awready_i")?, p("krn_awaddr_o")?],
                    w: [p("krn_wvalid_o")?, p("krn_wready_i")?, p("krn_wdata_o")?],
                    b: [p("krn_bvalid_i")?, p("krn_bready_o")?, p("krn_bresp_i")?],
                    ar: [p("krn_arvalid_o")?, p("krn_arready_i")?, p("krn_araddr_o")?],
                    r: [
                        p("krn_rvalid_i")?,
                        p("krn_rready_o")?,
                        p("krn_rdata_i")?,
                        p("krn_rresp_i")?,
                    ],
                }),
            },
            cfg: [
                p("cfg_begin_o")?,
                p("cfg_clear_o")?,
                p("cfg_valid_o")?,
                p("cfg_ready_i")?,
                p("cfg_data_o")?,
                p("cfg_last_o")?,
                p("cfg_active_i")?,
                p("cfg_error_i")?,
                p("design_i")?,
            ],
            tick: sim.find("kernel_tick_i"),
        })
    }
}

impl Environment {
    pub(crate) fn new(sim: &Sim) -> Result<Self> {
        Ok(Self {
            ports: Ports::new(sim)?,
            medium: Vec::new(),
            noise: fair_noise(1),
            shield: None,
            fabric: Box::new(|_: &[u8]| None),
            image: Vec::new(),
            whole: false,
            design: None,
            marks: BTreeMap::new(),
            cycle: 0,
            accessed: 0,
            asked: None,
            krn_write: None,
            krn_read: None,
            krn_taken: false,
            cfg: Cfg::default(),
            clearing: false,
            pace: Box::new(|_| true),
            cycles: 0,
            ticked: true,
        })
    }

    fn drive_medium(&mut self, sim: &mut Sim) {
        let [_, _, ready, data, err] = self.ports.medium;
        if let Some(mark) = self.asked.and_then(|addr| self.marks.get_mut(&addr)) {
            mark.get_or_insert_with(|| Moment::now(sim));
        }
        let word = self.asked.map(|addr| {
            let at = usize::try_from(addr * 4).unwrap_or(usize::MAX);
            let bytes = self.medium.get(at..).filter(|rest| !rest.is_empty());
            bytes.map(|rest| {
                let mut word = [0; 4];
                let n = rest.len().min(4);
                word[..n].copy_from_slice(&rest[..n]);
                u32::from_le_bytes(word)
            })
        });
        sim.set(ready, u64::from(word.is_some()));
        sim.set(data, word.flatten().map_or(0, u64::from));
        sim.set(err, u64::from(word == Some(None)));
    }

    fn drive_shield(&mut self, sim: &mut Sim) {
        let (Some(shield), Some(p)) = (&mut self.shield, self.ports.krn) else { return };
        if std::mem::take(&mut self.krn_taken) {
            sim.set(p.b[0], 0);
            sim.set(p.r[0], 0);
        }
        if self.krn_write.is_some() || self.krn_read.is_some() {
            shield.pass(self.cycle - self.accessed);
            self.accessed = self.cycle;
        }
        let resp = |ok: bool| if ok { OKAY } else { SLVERR };
        for ready in [p.aw[1], p.w[1], p.ar[1]] {
            sim.set(ready, 0);
        }
        if let Some((offset, value)) = self.krn_write.take() {
            let ok = shield.write(offset, value);
            sim.set(p.aw[1], 1);
            sim.set(p.w[1], 1);
            sim.set(p.b[2], resp(ok));
        } else if let Some(offset) = self.krn_read.take() {
            let word = shield.read(offset);
            sim.set(p.ar[1], 1);
            sim.set(p.r[2], word.map_or(0, u64::from));
            sim.set(p.r[3], resp(word.is_some()));
        }
    }

    fn drive_fabric(&mut self, sim: &mut Sim) {
        let cfg = std::mem::take(&mut self.cfg);
        let mut refused = cfg.refused;
        if cfg.cleared {
            // The Shield disappears with its pending requests.
            (self.krn_write, self.krn_read) = (None, None);
            for port in
                self.ports.krn.into_iter().flat_map(|p| [p.aw[1], p.w[1], p.b[0], p.ar[1], p.r[0]])
            {
                sim.set(port, 0);
            }
            // A port in reset requests a clear in every cycle.
            if !self.clearing {
                self.fabric.clear();
            }
            self.image.clear();
            self.whole = false;
            self.design = None;
            refused = false;
        } else if let Some((word, last)) = cfg.word {
            self.image.extend_from_slice(&word.to_le_bytes());
            if last {
                self.whole = true;
                self.design = self.fabric.configure(&self.image);
                refused = self.design.is_none();
            }
        }
        if cfg.cleared || cfg.word.is_some_and(|(_, last)| last) {
            sim.set(self.ports.cfg[6], u64::from(self.design.is_some()));
            sim.set(self.ports.cfg[7], u64::from(refused));
            sim.raw_mut(self.ports.cfg[8])[..32].copy_from_slice(&self.design.unwrap_or_default());
        }
        self.clearing = cfg.cleared;
        self.cfg.refused = refused;
    }
}

/// The fabric's state in [`Environment`].
#[derive(Clone)]
pub(crate) struct FabricState {
    image: Vec<u8>,
    whole: bool,
    design: Option<[u8; 32]>,
    refused: bool,
}

impl Environment {
    pub(crate) fn save(&self) -> FabricState {
        FabricState {
            image: self.image.clone(),
            whole: self.whole,
            design: self.design,
            refused: self.cfg.refused,
        }
    }

    pub(crate) fn restore(&mut self, state: &FabricState) {
        self.image.clone_from(&state.image);
        (self.whole, self.design) = (state.whole, state.design);
        self.cfg = Cfg { refused: state.refused, ..Cfg::default() };
    }
}

impl Agent for Environment {
    #[expect(clippy::cast_possible_truncation, reason = "ports of at most 32 bits")]
    fn sample(&mut self, sim: &Sim) {
        let high = |p: Port| sim.get(p) != 0;
        let word = |p: Port| sim.get(p) as u32;
        let p = &self.ports;
        self.ticked = p.tick.is_none_or(high);
        if !self.ticked {
            return;
        }
        self.asked = (high(p.medium[0]) && !high(p.medium[2])).then(|| sim.get(p.medium[1]));
        if let (Some(_), Some(p)) = (&self.shield, &p.krn) {
            if high(p.aw[0]) && high(p.w[0]) && !high(p.aw[1]) {
                self.krn_write = Some((word(p.aw[2]), word(p.w[2])));
            }
            if high(p.ar[0]) && !high(p.ar[1]) {
                self.krn_read = Some(word(p.ar[2]));
            }
            self.krn_taken = (high(p.b[0]) && high(p.b[1])) || (high(p.r[0]) && high(p.r[1]));
        }
        self.cfg.cleared = high(p.cfg[0]) || high(p.cfg[1]);
        self.cfg.word =
            (high(p.cfg[2]) && high(p.cfg[3])).then(|| (word(p.cfg[4]), high(p.cfg[5])));
    }

    fn drive(&mut self, sim: &mut Sim) {
        if let Some(tick) = self.ports.tick {
            self.cycles += 1;
            sim.set(tick, u64::from((self.pace)(self.cycles)));
        }
        if !self.ticked {
            return;
        }
        // The answer follows once address and data are accepted.
        let answers = self.ports.krn.map(|p| [(p.aw[1], p.b[0]), (p.ar[1], p.r[0])]);
        let due =
            answers.map(|both| both.map(|(taken, valid)| (sim.get(taken) != 0).then_some(valid)));
        self.drive_medium(sim);
        self.drive_shield(sim);
        for valid in due.into_iter().flatten().flatten() {
            sim.set(valid, 1);
        }
        self.drive_fabric(sim);
        self.cycle += 1;
        let bit = (self.noise)(self.cycle);
        sim.set(self.ports.noise[0], u64::from(bit.is_some()));
        sim.set(self.ports.noise[1], u64::from(bit == Some(true)));
    }
}

/// State of a [`KernelSim`]; the noise continues.
pub struct KernelSnapshot {
    model: Snapshot,
    fabric: FabricState,
}

impl KernelSnapshot {
    /// Every register and memory of the subsystem.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.model.bytes()
    }
}

/// Sets the inputs to the shell's values.
pub(crate) fn strap(sim: &mut Sim, straps: &KernelStraps) -> Result<()> {
    for (name, bytes) in
        [("uds_i", &straps.uds), ("target_i", &straps.target), ("shell_i", &straps.shell)]
    {
        let port = sim.port_of(name, 256)?;
        sim.raw_mut(port).copy_from_slice(bytes);
    }
    for (name, value) in [
        ("root_i", straps.root),
        ("shell_flags_i", straps.shell_flags),
        ("debug_i", straps.debug.into()),
        ("noise_seeded_i", straps.seeded.into()),
        ("noise_unmeasured_i", straps.unmeasured.into()),
    ] {
        let port = sim.port(name)?;
        sim.set(port, value.into());
    }
    Ok(())
}

/// An instance of `shef_kernel`.
pub struct KernelSim {
    sim: Sim,
    host: AxiLite,
    /// Its environment.
    pub environment: Environment,
}

impl KernelSim {
    /// An instance in reset.
    ///
    /// # Errors
    /// When the library is of another design.
    pub fn new(lib: &Library, straps: &KernelStraps) -> Result<Self> {
        let mut sim = Sim::new(lib)?;
        let (host, environment) = (AxiLite::new(&sim, "host_")?, Environment::new(&sim)?);
        sim.set(environment.ports.cfg[3], 1);
        let mut kernel = Self { sim, host, environment };
        kernel.strap(straps)?;
        kernel.reset();
        Ok(kernel)
    }

    /// Changes the description of the shell and the device.
    ///
    /// # Errors
    /// When the design lacks the ports.
    pub fn strap(&mut self, straps: &KernelStraps) -> Result<()> {
        strap(&mut self.sim, straps)
    }

    /// Resets the subsystem; the fabric keeps its design until the kernel clears it.
    pub fn reset(&mut self) {
        self.host.abort(&mut self.sim);
        self.sim.poke("rst_ni", 0);
        self.step(4);
        self.sim.poke("rst_ni", 1);
    }

    /// Requests a wipe until it is acknowledged, then withdraws the request.
    ///
    /// # Errors
    /// When it is not acknowledged.
    pub fn wipe(&mut self) -> Result<()> {
        self.wipe_request(true);
        let done = self.step_until(200_000, |sim| sim.peek("wipe_ack_o") == 1);
        self.wipe_request(false);
        done.map(|_| ()).ok_or(Error::Hang { what: "wipe of the kernel", cycles: 200_000 })
    }

    /// Requests a wipe or withdraws the request, at any time.
    pub fn wipe_request(&mut self, on: bool) {
        self.sim.poke("wipe_req_i", on.into());
    }

    /// Enables or disables a debug function of the shell, at any time.
    pub fn debug(&mut self, on: bool) {
        self.sim.poke("debug_i", on.into());
    }

    /// Runs a number of cycles.
    pub fn step(&mut self, cycles: u64) {
        for _ in 0..cycles {
            cycle(&mut self.sim, &mut [&mut self.environment]);
        }
    }

    /// Runs until `done` holds; returns the number of cycles, or `None` after `limit`.
    pub fn step_until(&mut self, limit: u64, mut done: impl FnMut(&Sim) -> bool) -> Option<u64> {
        (1..=limit).find(|_| {
            cycle(&mut self.sim, &mut [&mut self.environment]);
            done(&self.sim)
        })
    }

    /// The current time.
    #[must_use]
    pub fn moment(&self) -> Moment {
        Moment::now(&self.sim)
    }

    /// Cycles since the instance was created.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.sim.cycles()
    }

    /// The first alert since reset; 0 if there was no alert.
    #[must_use]
    pub fn alert(&self) -> u64 {
        self.sim.peek("alert_o")
    }

    /// Whether boot has completed.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.sim.peek("ready_o") == 1
    }

    /// Runs until boot completes or an alert is raised; returns the number of cycles.
    ///
    /// # Errors
    /// When neither happens.
    pub fn boot(&mut self, limit: u64) -> Result<u64> {
        let (ready, alert) = (self.sim.port("ready_o")?, self.sim.port("alert_o")?);
        self.step_until(limit, |sim| sim.get(ready) != 0 || sim.get(alert) != 0)
            .ok_or(Error::Hang { what: "boot", cycles: limit })
    }

    /// Reads a word of the host's side; `None` if the read is refused.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn host_read(&mut self, offset: u64) -> Result<Option<u32>> {
        self.host.read(&mut self.sim, &mut [&mut self.environment], offset)
    }

    /// Writes a word of the host's side; returns whether it was accepted.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn host_write(&mut self, offset: u64, value: u32) -> Result<bool> {
        self.host.write(&mut self.sim, &mut [&mut self.environment], offset, value)
    }

    /// Writes a request and rings the doorbell; returns whether all of it was accepted.
    ///
    /// # Errors
    /// When an access has no answer.
    pub fn send(&mut self, request: &[u8]) -> Result<bool> {
        for (n, chunk) in request.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            if !self.host_write(host::REQUEST + 4 * n as u64, u32::from_le_bytes(word))? {
                return Ok(false);
            }
        }
        self.host_write(host::REQ_LEN, u32::try_from(request.len()).unwrap_or(u32::MAX))
    }

    /// The answer to the last request; `None` if it does not arrive within `limit` cycles.
    ///
    /// # Errors
    /// When an access has no answer.
    pub fn receive(&mut self, limit: u64) -> Result<Option<Vec<u8>>> {
        let end = self.cycles() + limit;
        while self.host_read(host::STATUS)? != Some(1) {
            if self.cycles() > end {
                return Ok(None);
            }
            self.step(200);
        }
        let len = self.host_read(host::RSP_LEN)?.unwrap_or(0) as usize;
        let mut answer = Vec::new();
        for n in 0..len.min(host::ANSWER_BYTES).div_ceil(4) {
            answer.extend_from_slice(
                &self.host_read(host::ANSWER + 4 * n as u64)?.unwrap_or(0).to_le_bytes(),
            );
        }
        answer.truncate(len);
        Ok(Some(answer))
    }

    /// The whole state except medium and noise.
    ///
    /// # Errors
    /// When the design was built without [`crate::DesignSpec::savable`].
    pub fn save(&self) -> Result<KernelSnapshot> {
        Ok(KernelSnapshot { model: self.sim.save()?, fabric: self.environment.save() })
    }

    /// Restores a state from [`KernelSim::save`].
    ///
    /// # Errors
    /// When it is of another design.
    pub fn restore(&mut self, snapshot: &KernelSnapshot) -> Result<()> {
        self.host.abort(&mut self.sim);
        self.sim.restore(&snapshot.model)?;
        self.environment.restore(&snapshot.fabric);
        Ok(())
    }
}
