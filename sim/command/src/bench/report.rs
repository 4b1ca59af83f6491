//! Results of a bench: as a document, and as a table.

use serde::Serialize;
use shef_card::measure::{Measured, PortCounts, RegionCounts};
use shef_proto::config::Config;

/// A measured job.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The project's name.
    pub project: String,
    /// Digest of its design.
    pub design_digest: String,
    /// The job.
    pub job: String,
    /// Seed of its random inputs.
    pub seed: u64,
    /// Tests whose results the job had in every run; without one, all runs had the same results.
    pub tests: Vec<String>,
    /// By latency of the memory.
    pub latencies: Vec<Pair>,
    /// Duration.
    pub ms: u64,
}

/// The job at one latency of the memory.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// Cycles from a read request of the memory to its first beat.
    pub latency: u64,
    /// Without a Shield.
    pub bare: Run,
    /// Behind it.
    pub shielded: Run,
    /// Cycles behind the Shield, divided by those without it.
    pub ratio: f64,
    /// Why the accelerator waits longer behind the Shield.
    pub hints: Vec<String>,
}

/// One run of the job.
#[derive(Debug, Serialize)]
pub struct Run {
    /// Cycles from the start to the end, at the accelerator.
    pub cycles: u64,
    /// The end is not earlier than this number of cycles before it was seen, less one.
    pub within: u64,
    /// The accelerator's memory ports.
    pub ports: Vec<Port>,
    /// The regions with bursts.
    pub regions: Vec<Region>,
}

/// A memory port of the accelerator in one run.
#[derive(Debug, Serialize)]
pub struct Port {
    /// Its number.
    pub port: usize,
    /// Bytes that its bursts ask for, divided by the cycles of the job.
    pub bytes_per_cycle: f64,
    /// Share of these cycles in which the accelerator waits at the port, and no beat passes.
    pub stall_share: f64,
    /// Everything that was counted.
    #[serde(flatten)]
    pub counts: PortCounts,
}

/// A region in one run.
#[derive(Debug, Serialize)]
pub struct Region {
    /// Its name.
    pub region: String,
    /// Everything that was counted.
    #[serde(flatten)]
    pub counts: RegionCounts,
}

/// A share of the cycles of a job, which has at least one.
fn share(part: u64, cycles: u64) -> f64 {
    part as f64 / cycles.max(1) as f64
}

/// A number with three decimals.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

impl Run {
    /// What was measured in a run.
    pub fn new(measured: &Measured, config: &Config) -> Self {
        let Measured { cycles, within, counts, .. } = measured;
        let ports = counts.ports.iter().enumerate().map(|(port, counts)| Port {
            port,
            bytes_per_cycle: rounded(share(counts.bytes(), *cycles)),
            stall_share: rounded(share(counts.stalled, *cycles)),
            counts: *counts,
        });
        let regions = config.regions().iter().zip(&counts.regions);
        let used = regions.filter(|(_, counts)| **counts != RegionCounts::default());
        let regions = used
            .map(|(region, counts)| Region { region: region.name.clone(), counts: *counts })
            .collect();
        Self { cycles: *cycles, within: *within, ports: ports.collect(), regions }
    }
}

impl Pair {
    /// The job at a latency, without hints.
    pub fn new(latency: u64, bare: Run, shielded: Run) -> Self {
        let ratio = rounded(share(shielded.cycles, bare.cycles));
        Self { latency, bare, shielded, ratio, hints: Vec::new() }
    }

    /// Rows of the table: one for each port.
    pub fn rows(&self) -> Vec<String> {
        let Self { latency, bare, shielded, ratio, .. } = self;
        let begin =
            format!("{latency:>7} {:>11} {:>11} {ratio:>7.3}", bare.cycles, shielded.cycles);
        let mut rows = Vec::new();
        for (one, other) in bare.ports.iter().zip(&shielded.ports) {
            let begin = if rows.is_empty() { begin.as_str() } else { "" };
            rows.push(format!(
                "{begin:<39} {:>5} {:>9.2} {:>8.2} {:>7.1}% {:>7.1}%",
                one.port,
                one.bytes_per_cycle,
                other.bytes_per_cycle,
                100.0 * one.stall_share,
                100.0 * other.stall_share
            ));
        }
        if rows.is_empty() {
            rows.push(begin);
        }
        rows
    }
}

/// Heads of the table's columns.
pub const HEADS: [&str; 2] = [
    "memory       cycles      cycles                 bytes/cycle           stalled",
    "latency        bare    shielded   ratio  port      bare shielded     bare shielded",
];
