//! The rules that F2's shell sets for a custom logic (CL), and the record of broken ones.

use std::fmt;

/// A row of the table [`RULES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    /// The rule.
    pub rule: Rule,
    /// Its name.
    pub name: &'static str,
    /// What it demands.
    pub text: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// What the model does when it is broken.
    pub consequence: &'static str,
}

macro_rules! rules {
    ($($rule:ident $name:literal $source:ident $text:literal => $consequence:literal;)*) => {
        /// A rule of the shell.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $text] $rule,)*
        }

        /// All rules, in the order of [`Rule`].
        pub const RULES: &[RuleText] = &[$(RuleText {
            rule: Rule::$rule,
            name: $name,
            text: $text,
            source: $source,
            consequence: $consequence,
        },)*];
    };
}

const SPEC_PCIS: &str = "AWS Shell Interface Specification 2.3.2, PCIS";
const SPEC_PCIM: &str = "AWS Shell Interface Specification 2.3.2, PCIM";
const SPEC_LITE: &str = "AWS Shell Interface Specification 2.3.2, OCL and SDA; timeout guide";
const SPEC_IRQ: &str = "AWS Shell Interface Specification 2.3.2, interrupts";
const SPEC_FLR: &str = "AWS Shell Interface Specification 2.3.2, function level reset";
const SPEC_ID: &str = "AWS Shell Interface Specification 2.3.2, PCIe ids; manifest of the AFI";
const SPEC_DDR: &str = "AWS Shell Interface Specification 2.3.2, DDR; slot error 13";
const SPEC_POWER: &str = "cl_ports.vh 2.3.2, sh_cl_pwr_state";
const SDK: &str = "AWS F2 SDK: MSI-X user interrupts";
const AXI: &str = "AMBA AXI4 (IHI 0022), A3.1 to A3.4";

rules! {
    PcisRead "pcis-read-8us" SPEC_PCIS
        "a read is answered within 8 us of its ARVALID in front of the shell's FIFO"
        => "the host reads all ones; 4 ms of time-outs, then possibly dead until a load";
    PcisWrite "pcis-write-8us" SPEC_PCIS
        "a write is answered within 8 us of its AWVALID in front of the shell's FIFO"
        => "the write is dropped; 4 ms of time-outs, then possibly dead until a load";
    PcisRUnasked "pcis-r-unasked" AXI
        "R follows the handshake of its AR" => "the beat is taken and lost";
    PcisBUnasked "pcis-b-unasked" AXI
        "B follows the handshakes of its AW and of its last W" => "the answer is taken and lost";
    PcisRId "pcis-r-id" AXI
        "RID is the id of an open read" => "the beat is lost, and the read stays open";
    PcisBId "pcis-b-id" AXI
        "BID is the id of an open write" => "the answer is lost, and the write stays open";
    PcisRlast "pcis-rlast" AXI
        "RLAST is at the last beat of a read, and only there" => "the read ends with RLAST";
    PcisRSteady "pcis-r-steady" AXI
        "RVALID and its payload stay until RREADY" => "the shell takes the later beat";
    PcisBSteady "pcis-b-steady" AXI
        "BVALID and its payload stay until BREADY" => "the shell takes the later answer";
    OclRead "ocl-read-8us" SPEC_LITE
        "a read on OCL is answered within 8 us"
        => "the host reads all ones; 4 ms of time-outs, then possibly dead until a load";
    OclWrite "ocl-write-8us" SPEC_LITE
        "a write on OCL is answered within 8 us"
        => "the write is dropped; 4 ms of time-outs, then possibly dead until a load";
    OclRUnasked "ocl-r-unasked" AXI
        "R on OCL follows the handshake of its AR" => "the answer is taken and lost";
    OclBUnasked "ocl-b-unasked" AXI
        "B on OCL follows the handshakes of its AW and W" => "the answer is taken and lost";
    OclRSteady "ocl-r-steady" AXI
        "RVALID on OCL and its payload stay until RREADY" => "the shell takes the later word";
    OclBSteady "ocl-b-steady" AXI
        "BVALID on OCL and its payload stay until BREADY" => "the shell takes the later answer";
    SdaRead "sda-read-8us" SPEC_LITE
        "a read on SDA is answered within 8 us" => "the host reads all ones; 4 ms of time-outs";
    SdaWrite "sda-write-8us" SPEC_LITE
        "a write on SDA is answered within 8 us" => "the write is dropped; 4 ms of time-outs";
    SdaRUnasked "sda-r-unasked" AXI
        "R on SDA follows the handshake of its AR" => "the answer is taken and lost";
    SdaBUnasked "sda-b-unasked" AXI
        "B on SDA follows the handshakes of its AW and W" => "the answer is taken and lost";
    SdaRSteady "sda-r-steady" AXI
        "RVALID on SDA and its payload stay until RREADY" => "the shell takes the later word";
    SdaBSteady "sda-b-steady" AXI
        "BVALID on SDA and its payload stay until BREADY" => "the shell takes the later answer";
    SdaMagic "sda-magic" SPEC_LITE
        "a CL without AWS_CLK_GEN never answers 0x90481D0F on SDA"
        => "the tools take the CL for one whose clocks they may set";
    PcimSize "pcim-size" SPEC_PCIM
        "AxSIZE is 6 (64 bytes)" => "SLVERR, no access";
    PcimIncr "pcim-incr" SPEC_PCIM
        "AxBURST is INCR" => "SLVERR, no access";
    PcimPage "pcim-4k" SPEC_PCIM
        "a burst stays inside of 4 KiB" => "SLVERR, no access";
    PcimReadId "pcim-read-id" SPEC_PCIM
        "one read of an id is open" => "the answers change places";
    PcimReadsOpen "pcim-reads-open" SPEC_PCIM
        "at most 32 reads are open" => "SLVERR, no access";
    PcimStrobes "pcim-strobes" SPEC_PCIM
        "the strobes of a write of more than 2 DW have no gap" => "SLVERR, nothing is written";
    PcimStrobeAddress "pcim-strobe-address" SPEC_PCIM
        "the first strobe of a write lies in the DW of AWADDR" => "SLVERR, nothing is written";
    PcimW "pcim-w-8us" SPEC_PCIM
        "all data of a write come within 8 us of its AW" => "PCIM is dead until a load";
    PcimR "pcim-r-8us" SPEC_PCIM
        "R is taken within 8 us" => "PCIM is dead until a load";
    PcimB "pcim-b-8us" SPEC_PCIM
        "B is taken within 8 us" => "PCIM is dead until a load";
    PcimMaster "pcim-bus-master" SPEC_PCIM
        "no access while the host has not enabled bus mastering" => "SLVERR, no access";
    PcimArSteady "pcim-ar-steady" AXI
        "ARVALID and its payload stay until ARREADY" => "PCIM is dead until a load";
    PcimAwSteady "pcim-aw-steady" AXI
        "AWVALID and its payload stay until AWREADY" => "PCIM is dead until a load";
    PcimWSteady "pcim-w-steady" AXI
        "WVALID and its payload stay until WREADY" => "PCIM is dead until a load";
    PcimWlast "pcim-wlast" AXI
        "WLAST is at the last beat of a write, and only there" => "PCIM is dead until a load";
    PcimLeftOpen "pcim-left-open" SPEC_PCIM
        "no write lacks data after a reset, a reset of the function or power state 3"
        => "PCIM is dead until a load";
    ResetValid "reset-valid" AXI
        "in reset no VALID and no interrupt is high but of bursts that are open"
        => "the access is not taken";
    IrqPulse "irq-pulse" SPEC_IRQ
        "an interrupt request is high for one clock" => "the host receives a second interrupt";
    IrqRepeat "irq-repeat" SPEC_IRQ
        "an interrupt is not requested again before its ack" => "the second request is lost";
    IrqVector "irq-vector" SDK
        "an interrupt is requested on a line that the host gave to the CL"
        => "the host receives an interrupt that belongs to another vector";
    FlrUnasked "flr-unasked" SPEC_FLR
        "cl_sh_flr_done follows sh_cl_flr_assert" => "the next reset of the function ends at once";
    FlrNever "flr-never" SPEC_FLR
        "cl_sh_flr_done comes within 100 ms of sh_cl_flr_assert"
        => "the host gives the function up: all accesses read all ones";
    FlrEarly "flr-early" SPEC_FLR
        "cl_sh_flr_done comes after the wipe" => "the next owner of the card finds secrets";
    IdMismatch "id-mismatch" SPEC_ID
        "cl_sh_id0 and cl_sh_id1 are those of the manifest"
        => "the load fails with error 12 (cl-id-mismatch)";
    IdStatic "id-static" SPEC_ID
        "cl_sh_id0 and cl_sh_id1 do not change" => "the host sees another device after a rescan";
    DdrStat "ddr-stat" SPEC_DDR
        "an access on the DDR's status bus is acknowledged within 8 us"
        => "the load fails with error 13 (ddr-calib)";
    PowerLate "power-late" SPEC_POWER
        "the CL is wiped within 100 ms of power state 3" => "its clocks stop before the wipe ends";
}

impl Rule {
    /// Its row of [`RULES`].
    #[must_use]
    pub fn row(self) -> &'static RuleText {
        &RULES[self as usize]
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The signal at the CL's boundary.
    pub signal: String,
    /// Cycle of `clk_main_a0` since the load.
    pub cycle: u64,
    /// Time since the load, in picoseconds.
    pub ps: u64,
    /// The value that breaks the rule.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, signal, cycle, ps, what } = self;
        let (name, text) = (rule.name(), rule.row().text);
        let us = ps / 1_000_000;
        write!(f, "{name}, cycle {cycle} ({us} us): {signal}: {what} (expected: {text})")
    }
}

/// Violations that are kept; the others are counted.
const KEPT: usize = 256;

/// The record of a loaded image.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    /// Cycle of `clk_main_a0` since the load.
    pub cycle: u64,
    /// Its time in picoseconds.
    pub ps: u64,
    /// `rst_main_n` is low.
    pub low: bool,
    /// It is low, and has been for long enough that the CL has seen it.
    pub reset: bool,
    /// The first reset has not ended.
    pub loading: bool,
    kept: Vec<Violation>,
    counts: Vec<u64>,
}

impl Record {
    pub fn new() -> Self {
        let counts = vec![0; RULES.len()];
        Self { cycle: 0, ps: 0, low: true, reset: false, loading: true, kept: Vec::new(), counts }
    }

    /// Records a broken rule.
    #[cold]
    pub fn broken(&mut self, rule: Rule, signal: impl Into<String>, what: impl Into<String>) {
        self.counts[rule as usize] += 1;
        if self.kept.len() < KEPT {
            let (signal, what) = (signal.into(), what.into());
            self.kept.push(Violation { rule, signal, cycle: self.cycle, ps: self.ps, what });
        }
    }

    /// Records VALID without a cause: in reset, that is another rule.
    #[cold]
    pub fn unasked(&mut self, rule: Rule, signal: impl Into<String>, what: impl Into<String>) {
        let rule = if self.reset { Rule::ResetValid } else { rule };
        self.broken(rule, signal, what);
    }

    pub fn violations(&self) -> &[Violation] {
        &self.kept
    }

    /// How often the rule was broken.
    pub fn count(&self, rule: Rule) -> u64 {
        self.counts[rule as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_complete() {
        let names: BTreeSet<_> = RULES.iter().map(|r| r.name).collect();
        assert_eq!(names.len(), RULES.len());
        for (number, row) in RULES.iter().enumerate() {
            assert_eq!((row.rule as usize, row.rule.row()), (number, row));
        }
    }
}
