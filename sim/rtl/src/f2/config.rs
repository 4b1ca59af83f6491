//! The shell's timing, and its metrics.

use super::clock::CoreClock;
use super::pcim::PcimTiming;
use crate::{AxiMemoryConfig, BusCounters};

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
    /// Seed of the contents of registers and memories ([`crate::Sim::with_contents`]).
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
    /// Late accesses on OCL, SDA and PCIS, and the address of the last one: bit 0 is set for a
    /// read, bit 1 for a write.
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
