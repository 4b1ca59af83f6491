//! The protocol checker of a simulation shell (`shef_check`): its rules, and its reports.
//!
//! The checker is in every build of the shells and watches only if it is on, so neither the digest
//! of a design nor its cycles depend on it. Its table of rules is `shef_check_pkg.sv`.

use crate::{Error, Port, Result, Sim};
use serde::{Deserialize, Serialize};
pub use shef_device::progress::CheckedBurst;
use std::fmt;
use std::sync::LazyLock;

/// The package with the table.
const TABLE: &str = include_str!("../../../shell-rtl/shell/sim/shef_check_pkg.sv");
/// Bits of a report.
const REPORT_BITS: u32 = 331;
/// Reports that are kept; the others are counted.
const KEPT: usize = 256;

/// A rule of the checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name: Arm's, or one with `SHEF_`.
    pub name: &'static str,
    /// What it demands, in a line.
    pub text: &'static str,
}

/// The lines `NAME = WIDTH'dNUMBER,  // text` of the table, by number.
fn lines(width: &str) -> Vec<Rule> {
    let mut all = Vec::new();
    for line in TABLE.lines() {
        let (code, text) = line.split_once("//").unwrap_or((line, ""));
        if let Some((name, number)) = code.split_once('=')
            && let Some(number) = number.trim().strip_prefix(width)
            && let Ok(number) = number.trim_end_matches(',').parse::<usize>()
            && number == all.len()
        {
            all.push(Rule { name: name.trim(), text: text.trim() });
        }
    }
    all
}

/// All rules, by number; the first is no rule.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| lines("8'd"));
/// Names of signals, by number; the first is no signal.
static SIGNALS: LazyLock<Vec<Rule>> = LazyLock::new(|| lines("6'd"));

/// All rules.
#[must_use]
pub fn rules() -> &'static [Rule] {
    &RULES[1..]
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the rule.
    pub rule: String,
    /// `port 0` to `port 3`, `registers` or `clear`.
    pub port: String,
    /// Cycle, as [`Sim::cycles`] counts.
    pub cycle: u64,
    /// The signal.
    pub signal: String,
    /// Of data, the number of the 64-bit word that is shown.
    pub word: u8,
    /// Its earlier, or its expected value.
    pub was: u64,
    /// Its value.
    pub now: u64,
    /// The burst, unless the report concerns none.
    pub burst: Option<CheckedBurst>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, port, cycle, signal, word, was, now, burst } = self;
        write!(f, "{rule} at {port}, cycle {cycle}: {signal}")?;
        if *word != 0 {
            write!(f, "[{}:{}]", 64 * u32::from(*word) + 63, 64 * u32::from(*word))?;
        }
        write!(f, " was {was:#x}, is {now:#x}")?;
        if let Some(b) = burst {
            write!(f, "; {b}")?;
        }
        match rules().iter().find(|known| known.name == rule) {
            Some(known) => write!(f, " (expected: {})", known.text),
            None => Ok(()),
        }
    }
}

/// Reads a packed struct from its lowest bit on.
pub(crate) struct Fields<'a> {
    pub bytes: &'a [u8],
    pub at: u32,
}

impl Fields<'_> {
    pub fn next(&mut self, bits: u32) -> u64 {
        let mut value = 0;
        for k in 0..bits {
            let at = self.at + k;
            let bit = self.bytes[at as usize / 8] >> (at % 8) & 1;
            value |= u64::from(bit) << k;
        }
        self.at += bits;
        value
    }
}

/// What the checker saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Broken rules since the last call.
    pub reports: Vec<Report>,
    /// Reports that were lost since the start: 256 were waiting already, or too many came at once.
    pub lost: u64,
    /// Bursts watched since the start.
    pub bursts: u64,
}

/// The status register of a job and its value when the job is done: no burst may then be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneRegister {
    /// Offset of the register.
    pub offset: u16,
    /// Bits that count.
    pub mask: u32,
    /// Their value.
    pub value: u32,
}

/// Receives a report in the cycle in which it comes out.
pub type ReportHook = Box<dyn FnMut(&Report) + Send>;

/// The checker of an instance. While it is on, [`Checker::sample`] must run in every cycle.
pub struct Checker {
    on: Port,
    close: Port,
    done: [Port; 4],
    valid: Port,
    report: Port,
    lost: Port,
    now: Port,
    bursts: Port,
    watching: bool,
    reports: Vec<Report>,
    dropped: u64,
    hook: Option<ReportHook>,
}

impl Checker {
    /// Binds to the ports of a shell's checker, which stays off.
    ///
    /// # Errors
    /// When the top module has no checker.
    pub fn new(sim: &Sim) -> Result<Self> {
        let one = |name: &str| sim.port_of(name, 1);
        Ok(Self {
            on: one("chk_on")?,
            close: one("chk_close")?,
            done: [
                one("chk_done_on")?,
                sim.port_of("chk_done_addr", 16)?,
                sim.port_of("chk_done_mask", 32)?,
                sim.port_of("chk_done_value", 32)?,
            ],
            valid: one("chk_valid")?,
            report: sim.port_of("chk_report", REPORT_BITS)?,
            lost: sim.port_of("chk_lost", 32)?,
            now: sim.port_of("chk_now", 64)?,
            bursts: sim.port_of("chk_bursts", 64)?,
            watching: false,
            reports: Vec::new(),
            dropped: 0,
            hook: None,
        })
    }

    /// Also calls `hook` with each report, in the cycle in which it comes out.
    pub fn on_report(&mut self, hook: ReportHook) {
        self.hook = Some(hook);
    }

    /// Watches from the next cycle on.
    pub fn start(&mut self, sim: &mut Sim, done: Option<DoneRegister>) {
        sim.set(self.on, 1);
        self.watching = true;
        self.dropped = 0;
        sim.set(self.done[0], u64::from(done.is_some()));
        if let Some(DoneRegister { offset, mask, value }) = done {
            sim.set(self.done[1], u64::from(offset));
            sim.set(self.done[2], u64::from(mask));
            sim.set(self.done[3], u64::from(value & mask));
        }
    }

    /// Stops watching; reports that were made can still be taken.
    pub fn stop(&mut self, sim: &mut Sim) {
        sim.set(self.on, 0);
        self.watching = false;
    }

    /// Marks the next cycle as the end of a job, at which chunks of `output` regions are closed, or
    /// removes this mark. A Shield closes them without it.
    pub fn close(&mut self, sim: &mut Sim, now: bool) {
        sim.set(self.close, u64::from(now));
    }

    /// Receives a report, in a settled cycle.
    ///
    /// # Panics
    /// When the package has no name for a number of the design, which it was built with.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields of known width")]
    pub fn sample(&mut self, sim: &Sim) {
        if !self.watching || sim.get(self.valid) == 0 {
            return;
        }
        let mut f = Fields { bytes: sim.raw(self.report), at: 0 };
        let (kind, size, len, addr, id) =
            (f.next(2) as u8, f.next(3), f.next(8), f.next(64), f.next(8) as u8);
        let (number, write, has) = (f.next(32) as u32, f.next(1) != 0, f.next(1) != 0);
        let (now, was, word, signal) = (f.next(64), f.next(64), f.next(3) as u8, f.next(6));
        let (cycle, port, rule) = (f.next(64), f.next(3), f.next(8));
        let beats = len as u16 + 1;
        let burst = CheckedBurst { write, number, id, addr, beats, size: 1 << size, kind };
        let report = Report {
            rule: RULES[rule as usize].name.to_owned(),
            port: match port {
                4 => "registers".to_owned(),
                5 => "clear".to_owned(),
                p => format!("port {p}"),
            },
            cycle: sim.cycles().wrapping_sub(sim.get(self.now).wrapping_sub(cycle)),
            signal: SIGNALS[signal as usize].name.trim_start_matches("SIG_").to_owned(),
            word,
            was,
            now,
            burst: has.then_some(burst),
        };
        if let Some(hook) = &mut self.hook {
            hook(&report);
        }
        if self.reports.len() < KEPT {
            self.reports.push(report);
        } else {
            self.dropped += 1;
        }
    }

    /// The reports since the last call, and the counts since the start.
    pub fn take(&mut self, sim: &Sim) -> Checked {
        Checked {
            reports: std::mem::take(&mut self.reports),
            lost: self.dropped + sim.get(self.lost),
            bursts: sim.get(self.bursts),
        }
    }

    /// A checker for an instance of this name's top, if it has one.
    pub(crate) fn find(sim: &Sim) -> Option<Self> {
        sim.find("chk_on").and_then(|_| Self::new(sim).ok())
    }

    /// The error of a top module without a checker.
    pub(crate) fn missing(sim: &Sim) -> Error {
        Error::NoPort { top: sim.library().top().to_owned(), port: "chk_on".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_whole() {
        let numbered = |width: &str| TABLE.lines().filter(|l| l.contains(width)).count();
        assert_eq!(RULES.len(), numbered(" = 8'd") - 1, "READ_RULES is no rule");
        assert_eq!(SIGNALS.len(), numbered(" = 6'd") - 1, "READ_SIGNALS is no signal");
        assert!(rules().iter().all(|r| !r.text.is_empty()), "{RULES:?}");
        assert_eq!(rules()[14].name, "AXI_ERRM_ARVALID_STABLE");
        for k in 0..13 {
            let write = rules()[k].name.replace("_AW", "_AR");
            assert_eq!(rules()[k + 13].name, write, "reads have the order of writes");
        }
    }
}
