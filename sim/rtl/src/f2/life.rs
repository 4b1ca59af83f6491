//! The life of an image in the slot: reset, reset of the function, power, ids, status of the DDR.

use super::clock::MAIN_PS;
use super::detector::LIMIT;
use super::rules::{Record, Rule};
use crate::{Port, Result, Sim};

/// Cycles after which the CL has seen a reset.
const GRACE: u64 = 16;

/// State of the handshake of a function level reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flr {
    Idle,
    /// Since this cycle.
    Asserted(u64),
    /// The CL was done in this cycle.
    Done(u64),
    /// The CL was not done in time: the host has no function until a load.
    GivenUp,
}

/// Ids of the function, as `{device, vendor}` and `{subsystem, subsystem vendor}`.
pub type Ids = [u32; 2];

/// What the slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// An image that runs.
    Loaded,
    /// No image.
    Cleared,
    /// A load failed, with the error of AWS's tools: 12 is cl-id-mismatch, 13 ddr-calib.
    Failed(u32),
}

/// The signals.
pub(crate) struct Life {
    rst_n: Port,
    flr_assert: Port,
    flr_done: Port,
    power: Option<Port>,
    ids: [Port; 2],
    stat: [Port; 2],
    /// Whether the design is held in reset, as the simulation shows it.
    held: Option<Port>,
    /// Whether the core acknowledges a wipe, whether it is out of reset, and whether it has a
    /// clock, if the simulation shows it.
    wipe: Option<[Port; 3]>,
    /// Since the last request of a wipe: it was acknowledged; the core was always in reset.
    acked: bool,
    idle: bool,
    pub flr: Flr,
    /// `rst_main_n` is low until this cycle.
    pub reset_until: Option<u64>,
    reset_since: u64,
    /// Power state 3 since this cycle.
    power_since: Option<u64>,
    /// Since this cycle the DDR's status bus waits for its ack.
    stat_since: Option<u64>,
    seen_ids: [u64; 2],
    /// Most cycles of a wipe.
    limit: u64,
    done_was: bool,
    /// Cycles of the last reset of the function.
    pub flr_cycles: u64,
}

impl Life {
    pub fn new(sim: &Sim, wipe_ns: u64) -> Result<Self> {
        let one = |name: &str| sim.port_of(name, 1);
        let life = Self {
            rst_n: one("rst_main_n")?,
            flr_assert: one("sh_cl_flr_assert")?,
            flr_done: one("cl_sh_flr_done")?,
            power: sim.find("sh_cl_pwr_state"),
            ids: [sim.port_of("cl_sh_id0", 32)?, sim.port_of("cl_sh_id1", 32)?],
            stat: [one("sh_cl_ddr_stat_rd")?, one("cl_sh_ddr_stat_ack")?],
            held: sim.find("obs_held"),
            wipe: sim
                .find("obs_wiped")
                .zip(sim.find("obs_rst_n"))
                .zip(sim.find("core_locked"))
                .map(|((wiped, rst_n), locked)| [wiped, rst_n, locked]),
            acked: false,
            idle: false,
            flr: Flr::Idle,
            reset_until: None,
            reset_since: 0,
            power_since: None,
            stat_since: None,
            seen_ids: [0; 2],
            limit: wipe_ns * 1_000 / MAIN_PS,
            done_was: false,
            flr_cycles: 0,
        };
        Ok(life)
    }

    /// Makes `rst_main_n` low for this number of cycles.
    pub fn reset(&mut self, sim: &mut Sim, now: u64, cycles: u64) {
        sim.set(self.rst_n, 0);
        self.reset_since = now;
        self.reset_until = Some(now + cycles.max(2 * GRACE));
    }

    /// Asserts the reset of the function.
    pub fn assert_flr(&mut self, sim: &mut Sim, now: u64) {
        sim.set(self.flr_assert, 1);
        self.flr = Flr::Asserted(now);
        (self.acked, self.idle) = (false, true);
    }

    /// Power state; 3 announces that the clocks may stop.
    pub fn power(&mut self, sim: &mut Sim, now: u64, state: u8) {
        if let Some(port) = self.power {
            sim.set(port, u64::from(state));
        }
        self.power_since = (state == 3).then_some(now);
        (self.acked, self.idle) = (false, true);
    }

    /// Whether the CL was wiped, or did not have to be, since power state 3.
    pub fn power_done(&self) -> bool {
        self.power_since.is_none()
    }

    /// Reads the DDR's status bus.
    pub fn read_stat(&mut self, sim: &mut Sim, now: u64) {
        sim.set(self.stat[0], 1);
        self.stat_since = Some(now);
    }

    /// Whether the status bus waits.
    pub fn stat_busy(&self) -> bool {
        self.stat_since.is_some()
    }

    /// Compares the ids with those of the manifest.
    pub fn compare_ids(&mut self, sim: &Sim, manifest: Ids, to: &mut Record) -> bool {
        self.seen_ids = self.ids.map(|p| sim.get(p));
        let same = self.seen_ids == manifest.map(u64::from);
        if let Some(k) = (0..2).find(|k| self.seen_ids[*k] != u64::from(manifest[*k])) {
            let what = format!("{:#010x}, not {:#010x}", self.seen_ids[k], manifest[k]);
            to.broken(Rule::IdMismatch, format!("cl_sh_id{k}"), what);
        }
        same
    }

    /// Whether the wipe that was requested has ended. Without a clock there is none.
    fn is_wiped(&self, sim: &Sim) -> bool {
        let held = self.held.is_none_or(|p| sim.get(p) != 0);
        held && self
            .wipe
            .is_none_or(|[_, _, locked]| self.acked || self.idle || sim.get(locked) == 0)
    }

    /// Before the edge of cycle `to.cycle`.
    pub fn sample(&mut self, sim: &Sim, to: &mut Record) {
        let now = to.cycle;
        to.low = self.reset_until.is_some();
        to.reset = to.low && now > self.reset_since + GRACE;
        if let Some([wiped, rst_n, _]) = self.wipe {
            self.acked |= sim.get(wiped) != 0;
            self.idle &= sim.get(rst_n) == 0;
        }
        let done = sim.get(self.flr_done) != 0;
        let rises = done && !self.done_was;
        self.done_was = done;
        let signal = "cl_sh_flr_done";
        match self.flr {
            Flr::Asserted(since) if rises || (done && now > since + GRACE) => {
                if !self.is_wiped(sim) {
                    to.broken(Rule::FlrEarly, signal, "1 before the wipe ended");
                }
                self.flr_cycles = now - since;
                self.flr = Flr::Done(now);
            }
            Flr::Asserted(since) if now - since > self.limit => {
                to.broken(Rule::FlrNever, signal, "0 since sh_cl_flr_assert");
                self.flr_cycles = now - since;
                self.flr = Flr::GivenUp;
            }
            Flr::Asserted(_) | Flr::GivenUp => {}
            Flr::Done(at) if now > at + GRACE => self.flr = Flr::Idle,
            Flr::Done(_) => {}
            Flr::Idle if rises => {
                let rule = if to.reset { Rule::ResetValid } else { Rule::FlrUnasked };
                to.broken(rule, signal, "1 without sh_cl_flr_assert");
            }
            Flr::Idle => {}
        }
        for (k, port) in self.ids.into_iter().enumerate() {
            let id = sim.get(port);
            if id != self.seen_ids[k] && self.seen_ids[k] != 0 {
                to.broken(Rule::IdStatic, format!("cl_sh_id{k}"), format!("{id:#010x}"));
                self.seen_ids[k] = id;
            }
        }
        if let Some(since) = self.stat_since
            && (sim.get(self.stat[1]) != 0 || now - since > LIMIT)
        {
            if sim.get(self.stat[1]) == 0 {
                to.broken(Rule::DdrStat, "cl_sh_ddr_stat_ack", "0");
            }
            self.stat_since = None;
        }
        if let Some(since) = self.power_since {
            if now > since + GRACE && self.held.is_some() && self.is_wiped(sim) {
                self.power_since = None;
            } else if now - since > self.limit {
                to.broken(Rule::PowerLate, "sh_cl_pwr_state", "the CL is not wiped");
                self.power_since = None;
            }
        }
    }

    /// After the edge of cycle `now`. Whether a reset ends, which waits for answers in flight.
    pub fn drive(&mut self, sim: &mut Sim, now: u64, answered: bool) -> bool {
        if self.flr != Flr::Idle && !matches!(self.flr, Flr::Asserted(_)) {
            sim.set(self.flr_assert, 0);
        }
        if self.stat_since.is_none() {
            sim.set(self.stat[0], 0);
        }
        let ends =
            self.reset_until.is_some_and(|until| now >= until + if answered { 0 } else { LIMIT });
        if ends {
            self.reset_until = None;
            sim.set(self.rst_n, 1);
        }
        ends
    }
}
