//! A row of the evaluation: a workload in one Shield.

use serde::{Deserialize, Serialize};
use shef_card::measure::{Measured, PortCounts, Waits};
use shef_gen::estimate::Area;
use shef_workloads::{Layout, Paper};

/// Ports of the accelerator in one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Cycles from start to end.
    pub cycles: u64,
    /// The end is not earlier than this number of cycles before it was seen, less one.
    pub within: u64,
    /// Bytes that bursts ask for, of all ports.
    pub bytes: u64,
    /// Beats of reads and of writes.
    pub beats: [u64; 2],
    /// Cycles in which the accelerator waits and no beat passes; of the port with the most.
    pub stalled: u64,
    /// For which channels this port waits.
    pub waits: Waits,
}

impl Traffic {
    /// Of a measured run.
    pub fn new(measured: &Measured) -> Self {
        let ports = &measured.counts.ports;
        let most = ports.iter().max_by_key(|port| port.stalled).copied().unwrap_or_default();
        Self {
            cycles: measured.cycles,
            within: measured.within,
            bytes: ports.iter().map(PortCounts::bytes).sum(),
            beats: [
                ports.iter().map(|port| port.reads.beats).sum(),
                ports.iter().map(|port| port.writes.beats).sum(),
            ],
            stalled: most.stalled,
            waits: most.waits,
        }
    }

    /// Share of the cycles in which the busier direction of the bus has a beat.
    pub fn bus_share(&self) -> f64 {
        rounded(self.beats[0].max(self.beats[1]) as f64 / self.cycles.max(1) as f64)
    }
}

/// A row that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// What it computes: size of its data.
    pub shape: String,
    /// `ours` or `paper`.
    pub layout: String,
    /// AES key of its regions; 256 without any.
    pub key_bits: u16,
    /// AES lanes of its sets; 0 without any.
    pub lanes: u8,
    /// Cycles from a read request of the memory to its first beat.
    pub latency: u64,
    /// Cycles behind the Shield.
    pub cycles: u64,
    /// Cycles without it, with the same accelerator, data and memory.
    pub cycles_bare: u64,
    /// The first divided by the second.
    pub ratio: f64,
    /// Bytes per cycle at the accelerator's ports, behind the Shield.
    pub bytes_per_cycle: f64,
    /// Without it.
    pub bytes_per_cycle_bare: f64,
    /// Share of the cycles without a Shield in which the busier direction of the bus has a beat.
    pub bus_share_bare: f64,
    /// Ports behind the Shield.
    pub shielded: Option<Traffic>,
    /// Ports without it.
    pub bare: Option<Traffic>,
    /// Whether Security Kernel and Shield were appraised, and the Shield received the owner's keys.
    pub attested: bool,
    /// Whether every byte of the results is that of the CPU reference, without a Shield and behind it.
    pub equal_to_reference: bool,
    /// Whether the results were opened under a statement without faults and refusals.
    pub statement_clean: bool,
    /// The paper's figure to compare with: its best, or its only one; `null` without any.
    pub paper_ratio: Option<f64>,
    /// The paper's worst figure.
    pub paper_worst: Option<f64>,
    /// Where the paper has them.
    pub paper_source: Option<String>,
    /// Size of the Shield: measured blocks, and estimates for the rest.
    pub area: Area,
    /// Further facts of data and results.
    pub facts: Vec<(String, String)>,
    /// Why the row failed.
    pub error: Option<String>,
}

/// The name of a layout in documents.
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Ours => "ours",
        Layout::Paper => "paper",
    }
}

/// A number with three decimals.
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Row {
    /// Adds both runs.
    pub fn measure(&mut self, bare: Traffic, shielded: Traffic) {
        let share = |part: u64, whole: u64| rounded(part as f64 / whole.max(1) as f64);
        self.cycles = shielded.cycles;
        self.cycles_bare = bare.cycles;
        self.ratio = share(shielded.cycles, bare.cycles);
        self.bytes_per_cycle = share(shielded.bytes, shielded.cycles);
        self.bytes_per_cycle_bare = share(bare.bytes, bare.cycles);
        self.bus_share_bare = bare.bus_share();
        self.bare = Some(bare);
        self.shielded = Some(shielded);
    }

    /// Adds what the paper says.
    pub fn compare(&mut self, paper: Option<Paper>) {
        self.paper_ratio = paper.and_then(|paper| paper.best.or(paper.worst));
        self.paper_worst = paper.and_then(|paper| paper.worst);
        self.paper_source = paper.map(|paper| paper.source.to_owned());
    }

    /// Whether everything is as it must be.
    pub fn passed(&self) -> bool {
        self.error.is_none() && self.attested && self.equal_to_reference && self.statement_clean
    }

    /// The row of the table.
    pub fn line(&self) -> String {
        let Self { workload, shape, layout, key_bits, lanes, .. } = self;
        let begin = format!("{workload:<9} {shape:<22} {layout:<6} {key_bits:>4} {lanes:>5}");
        if let Some(error) = &self.error {
            return format!("{begin}  FAILED: {error}");
        }
        let paper = match (self.paper_ratio, self.paper_worst) {
            (Some(best), Some(worst)) if best < worst => format!("{best:.2}..{worst:.2}"),
            (Some(only), _) => format!("{only:.2}"),
            (None, _) => "-".to_owned(),
        };
        let (ours, bare) = (self.cycles, self.cycles_bare);
        let (bytes, lut) = (self.bytes_per_cycle_bare, self.area.lut);
        let Area { ff, ramb36, uram, .. } = self.area;
        format!(
            "{begin} {bare:>11} {ours:>11} {:>7.3} {paper:>11} {bytes:>6.1} {:>5.2} {lut:>8} {ff:>7} {ramb36:>6.1} {uram:>4}",
            self.ratio, self.bus_share_bare
        )
    }
}

/// Heads of the table's columns.
pub const HEADS: [&str; 2] = [
    "                                                         cycles      cycles                           bare        Shield",
    "workload  shape                  Shield  key lanes         bare    shielded   ratio       paper B/cyc   bus      LUT      FF  RAMB36 URAM",
];
