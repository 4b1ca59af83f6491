//! One interface over the RTL (`shef_core` below `shef_tb_top`) and the functional model.

use crate::oracle::Oracle;
use crate::traffic::{Op, Outcome};
use crate::{BenchError, Result};
use shef_model::Model;
use shef_model::bus::{Burst, NoAccelerator, Resp, WriteBeat};
use shef_proto::config::{Config, Region};
use shef_rtl::agent::Agent;
use shef_rtl::{
    AxiBurst, AxiDone, AxiMasters, AxiMemoryConfig, AxiOp, CoreSim, CoreSnapshot, DesignSpec,
    Library, build,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Everything around a Shield.
pub trait Bench {
    /// Reads a register of the control window.
    ///
    /// # Errors
    /// An error response, or no response.
    fn ctl_read(&mut self, addr: u32) -> Result<u32>;
    /// Writes a register of the control window.
    ///
    /// # Errors
    /// As [`Bench::ctl_read`].
    fn ctl_write(&mut self, addr: u32, value: u32) -> Result<()>;
    /// Reads a word of the kernel port.
    ///
    /// # Errors
    /// As [`Bench::ctl_read`].
    fn krn_read(&mut self, addr: u32) -> Result<u32>;
    /// Writes a word of the kernel port.
    ///
    /// # Errors
    /// As [`Bench::ctl_read`].
    fn krn_write(&mut self, addr: u32, value: u32) -> Result<()>;
    /// Lets some time pass.
    fn wait(&mut self);
    /// Reads card memory.
    fn mem_read(&self, addr: u64, out: &mut [u8]);
    /// Writes card memory.
    fn mem_write(&mut self, addr: u64, data: &[u8]);
    /// Runs bursts as the accelerator, each at the port of its address, as many at a time as the
    /// bench can. Returns the outcomes in the order of `ops`.
    ///
    /// # Errors
    /// If a response is missing or a bus rule is broken.
    fn burst(&mut self, ops: &[Op]) -> Result<Vec<Outcome>>;
}

/// A bench whose memory ports can be watched.
pub trait Watched: Bench {
    /// Attaches an oracle to everything the Shield writes to card memory.
    fn watch(&mut self, oracle: &Oracle);
}

/// The RTL behind [`Bench`].
pub struct RtlBench {
    core: CoreSim,
    acc: AxiMasters,
    /// Number of the first burst pushed since the last [`RtlBench::finish`], and number of bursts
    /// pushed.
    pushed: (u64, usize),
}

/// Memory timing from a seed.
fn timing(seed: Option<u64>) -> AxiMemoryConfig {
    match seed {
        Some(s) => AxiMemoryConfig {
            read_latency: 1 + s % 40,
            write_latency: 1 + s % 23,
            ..AxiMemoryConfig::seeded(s)
        },
        None => AxiMemoryConfig::bench(20, 10),
    }
}

/// The accelerator port of each region: the port of its engine set.
#[must_use]
pub fn routes(config: &Config) -> Vec<(Range<u64>, usize)> {
    let port = |r: &Region| config.sets().get(usize::from(r.set)).map_or(0, |s| usize::from(s.acc));
    config.regions().iter().map(|r| (r.base..r.base + r.size, port(r))).collect()
}

/// Cycles without a response after which bursts count as hung. The Shield's own time-out is 4,096.
const QUIET: u64 = 40_000;
/// Cycles without a response after which bursts issued in reset count as unanswered.
const HELD: u64 = 200;

/// The design `shef_tb_top` (`shef_core` with the bench in place of an accelerator) for the text of
/// a `shield.toml`, and the parsed configuration.
///
/// The generated package goes to `dir`.
///
/// # Errors
/// An invalid configuration, a file that cannot be written, missing RTL.
pub fn design(shield_toml: &str, dir: &Path) -> Result<(DesignSpec, Config)> {
    let shield =
        shef_gen::shield::parse(shield_toml).map_err(|e| BenchError::File(e.to_string()))?;
    let file: PathBuf = dir.join("shef_cfg_pkg.sv");
    let text = shef_gen::shield::systemverilog(&shield.config, shield.synthesis);
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(dir)?;
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            std::fs::write(&file, &text)?;
        }
        Ok(())
    };
    write().map_err(|e| BenchError::File(format!("{}: {e}", file.display())))?;
    let spec = DesignSpec::new("shef_tb_top")
        .search(dir)
        .search("shell-rtl/rtl")
        .search("shell-rtl/shell/tb")
        .search("shell-rtl/shell/sim");
    spec.sources.resolve_sources().map_err(shef_rtl::Error::from)?;
    let spec = if waves().is_some() { spec.trace() } else { spec };
    Ok((spec, shield.config))
}

/// The design of [`design`] and its configuration, built once in a process for each text.
///
/// # Errors
/// As [`design`], and errors of the build.
pub fn built(shield_toml: &str, dir: &Path) -> Result<(&'static Library, &'static Config)> {
    static BUILT: Mutex<BTreeMap<String, &'static (Library, Config)>> = Mutex::new(BTreeMap::new());
    let mut all = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if !all.contains_key(shield_toml) {
        let (spec, config) = design(shield_toml, dir)?;
        all.insert(shield_toml.to_owned(), Box::leak(Box::new((build(&spec)?, config))));
    }
    let (library, config) = all[shield_toml];
    Ok((library, config))
}

/// Folder for waves, from `SHEF_WAVES`. Slow: meant for a single failure.
fn waves() -> Option<PathBuf> {
    std::env::var_os("SHEF_WAVES").filter(|v| !v.is_empty()).map(PathBuf::from)
}

impl RtlBench {
    /// An instance of a design with this configuration. With a seed, memory and accelerator timing
    /// are random.
    ///
    /// # Errors
    /// If the top module lacks a port.
    pub fn new(lib: &Library, config: &Config, seed: Option<u64>) -> Result<Self> {
        let mut core = CoreSim::new(lib, timing(seed))?;
        if let Some(dir) = waves() {
            std::fs::create_dir_all(&dir)
                .map_err(|e| BenchError::File(format!("{}: {e}", dir.display())))?;
            core.sim().trace_start(&dir.join(format!("rtl-{}.fst", seed.unwrap_or(0))))?;
        }
        let acc = AxiMasters::new(core.sim(), &routes(config), seed.map(|s| s ^ 0xacce))?;
        Ok(Self { core, acc, pushed: (0, 0) })
    }

    /// New random timing for another session of the same Shield.
    ///
    /// # Errors
    /// If the top module lacks a port.
    pub fn retime(&mut self, seed: Option<u64>) -> Result<()> {
        self.core.axi_memories().iter_mut().for_each(|m| m.config = timing(seed));
        self.new_requester(seed.map(|s| s ^ 0xacce))
    }

    /// The simulation: faults of the memory, cycles, wipe.
    pub fn core(&mut self) -> &mut CoreSim {
        &mut self.core
    }

    /// The requesters in the accelerator's place.
    pub fn master(&mut self) -> &mut AxiMasters {
        &mut self.acc
    }

    /// Restores a snapshot, with this memory timing and a new requester with these stalls.
    ///
    /// # Errors
    /// If the snapshot belongs to another design.
    pub fn restore(
        &mut self,
        to: &CoreSnapshot,
        memory: AxiMemoryConfig,
        stalls: Option<u64>,
    ) -> Result<()> {
        self.core.restore(to, memory)?;
        self.new_requester(stalls)
    }

    /// Replaces the requester with one that never stalls.
    ///
    /// # Errors
    /// If the top module lacks a port.
    pub fn new_requester(&mut self, stalls: Option<u64>) -> Result<()> {
        self.acc.restart(self.core.sim(), stalls)?;
        self.pushed = (0, 0);
        Ok(())
    }

    /// Hands bursts to the requester; [`RtlBench::finish`] runs them.
    pub fn push(&mut self, ops: &[Op]) {
        for op in ops {
            let tag = self.acc.push(match op {
                Op::Read { id, addr, beats } => AxiOp::Read { id: *id, addr: *addr, beats: *beats },
                Op::Write { id, addr, data, strobes } => AxiOp::Write {
                    id: *id,
                    addr: *addr,
                    data: data.clone(),
                    strobes: strobes.clone(),
                },
                Op::Wrap { write, id, addr, beats } => AxiOp::odd(
                    *id,
                    AxiBurst { write: *write, addr: *addr, beats: *beats, size: 6, burst: 2 },
                ),
            });
            if self.pushed.1 == 0 {
                self.pushed.0 = tag;
            }
            self.pushed.1 += 1;
        }
    }

    /// One clock cycle of everything.
    pub fn step(&mut self) {
        self.core.step_with(&mut [&mut self.acc]);
    }

    /// `n` clock cycles of everything.
    pub fn steps(&mut self, n: u64) {
        for _ in 0..n {
            self.step();
        }
    }

    /// Whether the accelerator is held in reset.
    pub fn held(&mut self) -> bool {
        self.core.sim().peek("acc_rst_n") == 0
    }

    fn access(&mut self, kernel: bool, addr: u32, write: Option<u32>) -> Result<u32> {
        self.core
            .access(kernel, addr, write, &mut [&mut self.acc])?
            .ok_or(BenchError::Register(addr))
    }

    /// Wipes while the accelerator's ports keep running. Returns the cycles until the
    /// acknowledgement.
    ///
    /// # Errors
    /// If it is not acknowledged.
    pub fn wipe(&mut self) -> Result<u64> {
        const PATIENCE: u64 = 1_000_000;
        self.core.sim().poke("wipe_req", 1);
        for n in 1..PATIENCE {
            self.step();
            if self.core.sim().peek("wipe_ack") != 0 {
                self.core.sim().poke("wipe_req", 0);
                self.step();
                return Ok(n);
            }
        }
        Err(shef_rtl::Error::Hang { what: "wipe", cycles: PATIENCE }.into())
    }

    /// Runs all pushed bursts to completion, together with another agent. Returns the outcomes in
    /// the order of the pushes. If an accelerator reset cuts a burst short, its missing beats count
    /// as refused.
    ///
    /// # Errors
    /// If there is no response for long or a bus rule is broken.
    pub fn finish(&mut self, beside: Option<&mut dyn Agent>) -> Result<Vec<Outcome>> {
        let n = self.pushed.1;
        let mut silent = 0;
        let mut out = vec![None; n];
        let mut beside = beside;
        loop {
            silent = if self.collect(&mut out)? { 0 } else { silent + 1 };
            if self.acc.idle() {
                break;
            }
            if silent > HELD && self.acc.in_reset() {
                self.acc.lose();
                continue;
            }
            if silent > QUIET {
                self.rules()?;
                return Err(shef_rtl::Error::Hang { what: "bursts", cycles: QUIET }.into());
            }
            match &mut beside {
                Some(other) => self.core.step_with(&mut [&mut self.acc, &mut **other]),
                None => self.core.step_with(&mut [&mut self.acc]),
            }
        }
        self.pushed = (0, 0);
        self.rules()?;
        out.into_iter()
            .map(|o| o.ok_or_else(|| BenchError::Bus("a burst has no outcome".into())))
            .collect()
    }

    /// Outcomes of the bursts pushed so far; `None` for bursts in flight.
    ///
    /// # Errors
    /// An unsolicited response.
    pub fn so_far(&mut self) -> Result<Vec<Option<Outcome>>> {
        let mut out = vec![None; self.pushed.1];
        self.collect(&mut out)?;
        Ok(out)
    }

    /// Returns whether there was any response.
    fn collect(&mut self, out: &mut [Option<Outcome>]) -> Result<bool> {
        let mut any = false;
        while let Some(d) = self.acc.pop() {
            any = true;
            let at = usize::try_from(d.tag - self.pushed.0).unwrap_or(usize::MAX);
            let slot = out
                .get_mut(at)
                .ok_or_else(|| BenchError::Bus(format!("burst {} came back", d.tag)))?;
            *slot = Some(outcome(d));
        }
        Ok(any)
    }

    /// Valid and ready of every channel, for the report of a hang.
    #[must_use]
    pub fn channels(&mut self) -> String {
        let sim = self.core.sim();
        let mut text = String::new();
        for bus in (0..4).flat_map(|p| [format!("acc{p}_"), format!("mem{p}_")]) {
            for c in ["ar", "r", "aw", "w", "b"] {
                let (valid, ready) =
                    (sim.find(&format!("{bus}{c}valid")), sim.find(&format!("{bus}{c}ready")));
                if let (Some(valid), Some(ready)) = (valid, ready) {
                    text.push_str(&format!("{bus}{c} {}{} ", sim.get(valid), sim.get(ready)));
                }
            }
        }
        text
    }

    /// Fails if a bus rule was broken.
    ///
    /// # Errors
    /// The first violation.
    pub fn rules(&mut self) -> Result<()> {
        let first = self.acc.violation().or_else(|| self.core.violation());
        first.map_or(Ok(()), |v| Err(BenchError::Bus(v)))
    }
}

/// The outcome of a burst. Beats lost to a reset count as refused.
fn outcome(d: AxiDone) -> Outcome {
    let mut o = Outcome { okay: d.resp.iter().map(|r| *r == 0).collect(), data: d.data };
    if d.lost {
        let beats = d.op.beats() as usize;
        let (answers, bytes) = if d.op.is_write() { (1, 0) } else { (beats, 64 * beats) };
        o.okay.resize(answers, false);
        o.data.resize(bytes, 0);
    }
    o
}

impl Bench for RtlBench {
    fn ctl_read(&mut self, addr: u32) -> Result<u32> {
        self.access(false, addr, None)
    }

    fn ctl_write(&mut self, addr: u32, value: u32) -> Result<()> {
        self.access(false, addr, Some(value)).map(drop)
    }

    fn krn_read(&mut self, addr: u32) -> Result<u32> {
        self.access(true, addr, None)
    }

    fn krn_write(&mut self, addr: u32, value: u32) -> Result<()> {
        self.access(true, addr, Some(value)).map(drop)
    }

    fn wait(&mut self) {
        self.steps(50);
    }

    fn mem_read(&self, addr: u64, out: &mut [u8]) {
        self.core.memory().read(addr, out);
    }

    fn mem_write(&mut self, addr: u64, data: &[u8]) {
        self.core.memory_mut().write(addr, data);
    }

    fn burst(&mut self, ops: &[Op]) -> Result<Vec<Outcome>> {
        self.push(ops);
        self.finish(None)
    }
}

impl Watched for RtlBench {
    fn watch(&mut self, oracle: &Oracle) {
        self.core.axi_memories().iter_mut().for_each(|m| m.on_write(oracle.tap()));
    }
}

/// The functional model behind [`Bench`].
pub struct ModelBench(pub Model);

impl ModelBench {
    /// A model without an accelerator.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self(Model::new(config.clone(), Box::new(NoAccelerator)))
    }
}

impl Bench for ModelBench {
    fn ctl_read(&mut self, addr: u32) -> Result<u32> {
        self.0.ctl_read(addr).ok_or(BenchError::Register(addr))
    }

    fn ctl_write(&mut self, addr: u32, value: u32) -> Result<()> {
        self.0.ctl_write(addr, value).ok_or(BenchError::Register(addr))
    }

    fn krn_read(&mut self, addr: u32) -> Result<u32> {
        self.0.krn_read(addr).ok_or(BenchError::Register(addr))
    }

    fn krn_write(&mut self, addr: u32, value: u32) -> Result<()> {
        self.0.krn_write(addr, value).ok_or(BenchError::Register(addr))
    }

    fn wait(&mut self) {}

    fn mem_read(&self, addr: u64, out: &mut [u8]) {
        self.0.memory().read(addr, out);
    }

    fn mem_write(&mut self, addr: u64, data: &[u8]) {
        self.0.memory_mut().write(addr, data);
    }

    fn burst(&mut self, ops: &[Op]) -> Result<Vec<Outcome>> {
        let outcome = |r: Resp| Outcome { okay: vec![r == Resp::Okay], data: Vec::new() };
        Ok(ops
            .iter()
            .map(|op| match op {
                Op::Read { addr, beats, .. } => {
                    Outcome::of(&self.0.axi_read(&Burst::whole(*addr, *beats as usize)))
                }
                Op::Write { addr, data, strobes, .. } => {
                    let words: Vec<WriteBeat> = data
                        .chunks_exact(64)
                        .enumerate()
                        .map(|(k, c)| WriteBeat {
                            data: c.try_into().unwrap_or([0; 64]),
                            strb: strobes.get(k).copied().unwrap_or(u64::MAX),
                        })
                        .collect();
                    outcome(self.0.axi_write(&Burst::whole(*addr, words.len()), &words))
                }
                Op::Wrap { write, addr, beats, .. } => {
                    let burst = Burst { incr: false, ..Burst::whole(*addr, *beats as usize) };
                    if *write {
                        let words =
                            vec![WriteBeat { data: [0; 64], strb: u64::MAX }; *beats as usize];
                        outcome(self.0.axi_write(&burst, &words))
                    } else {
                        Outcome::of(&self.0.axi_read(&burst))
                    }
                }
            })
            .collect())
    }
}

impl Watched for ModelBench {
    fn watch(&mut self, oracle: &Oracle) {
        self.0.on_write(oracle.model_tap());
    }
}

#[cfg(test)]
mod tests {
    use super::design;

    #[test]
    fn the_bench_stands_in_the_core() {
        let (_, text) = crate::attack::CONFIGURATIONS[0];
        let dir = std::env::temp_dir().join(format!("shef-tb-design-{}", std::process::id()));
        let (spec, _) = design(text, &dir).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(spec.sources.below_top().unwrap_or_else(|e| panic!("{e}")), ["shef_core"]);
        let _ = std::fs::remove_dir_all(&dir);
    }
}
