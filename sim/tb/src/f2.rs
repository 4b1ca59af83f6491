//! The custom logic for AWS F2 in the model of its shell, with a design that runs, under the real
//! driver of the DMA rings: its measured figures.

use std::time::Duration;

use serde::Serialize;
use shef_device::DeviceError;
use shef_device::ring::Registers;
use shef_regs::f2;
use shef_rtl::f2::{CORE_KHZ, CoreClock, F2Config, NativeF2, Row, Rule, rows, small_cl};
use shef_rtl::{AxiMemoryConfig, Library, build_once, f2_spec};

use crate::dma::{Engine, Shared, both_ways};

/// Clock of the core of the measurements.
const KHZ: u64 = 125_000;
/// Nanoseconds of a read of host memory.
const READ_NS: u64 = 1_200;
/// Cycles of a read of card memory, in its clock.
const MEMORY: u64 = 40;
/// Reads of BAR 4 that the shell has open at once.
const READS: u64 = 32;

/// `cl_shef` with the digits design, active.
pub struct F2Bench {
    /// The custom logic in the shell.
    pub f2: NativeF2<Shared>,
    host: Shared,
}

fn library() -> &'static Library {
    build_once(&f2_spec(true).expect("sources").search("shell-rtl/accel/digits")).expect("build")
}

impl F2Bench {
    /// With this timing.
    pub fn new(config: F2Config) -> Self {
        let host = Shared::default();
        let mut f2 = NativeF2::new(library(), config, host.clone()).expect("a slot");
        f2.wait_open().expect("wiped");
        f2.start().expect("started");
        f2.mount().expect("a design");
        Self { f2, host }
    }

    /// How often a rule of the shell was broken.
    pub fn broken(&self, rule: Rule) -> u64 {
        self.f2.shell.broken(rule)
    }
}

impl Registers for F2Bench {
    fn register(&mut self, offset: u32) -> Result<u32, DeviceError> {
        Ok(self.f2.shell.ocl_read(offset))
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.f2.shell.ocl_write(offset, value);
        Ok(())
    }

    fn interrupted(&mut self, vector: u32, _: Duration) -> Result<bool, DeviceError> {
        Ok(self.f2.shell.run_until(100_000, 16, |shell| {
            shell.take_interrupt().is_some_and(|i| u32::from(i.vector) == vector)
        }))
    }
}

impl Engine for F2Bench {
    fn host(&self) -> &Shared {
        &self.host
    }

    fn cycles(&self) -> u64 {
        self.f2.shell.core_cycles()
    }

    fn run(&mut self, cycles: u64) {
        self.f2.step(cycles);
    }
}

/// What `cargo xtask cloud` reports of the simulation.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// One for each rule of the shell.
    pub rules: Vec<Row>,
    /// Bytes of each direction in a cycle of the core, both at once.
    pub pcim_bytes_per_cycle: f64,
    /// Nanoseconds until the last of 32 reads of BAR 4 is answered beside bulk in both directions.
    pub pcis_worst_ns: u64,
    /// Accesses that the adapter answered in place of the core.
    pub late: u64,
    /// Nanoseconds of a reset of the function, with the Security Kernel at the card's clock.
    pub flr_ns: u64,
}

/// Measures the custom logic, and runs each fault of the small one.
pub fn figures() -> Figures {
    let memory = AxiMemoryConfig::bench(MEMORY, MEMORY / 2);
    let mut bench = F2Bench::new(F2Config::bench(CoreClock::khz(KHZ), READ_NS, memory));
    let (piece, count) = (1 << 16, 32);
    let cycles = both_ways(&mut bench, piece, count);
    let pcim_bytes_per_cycle = (piece * count) as f64 / cycles as f64;

    // Reads of BAR 4 while the engine saturates the memory port.
    let worst = |bench: &F2Bench| bench.f2.shell.metrics().pcis_worst_ns[0];
    let mut busy = F2Bench::new(F2Config::bench(
        CoreClock::khz(KHZ),
        READ_NS,
        AxiMemoryConfig::bench(MEMORY, MEMORY / 2),
    ));
    busy_reads(&mut busy);
    let pcis_worst_ns = worst(&busy);

    busy.f2.flr().expect("wiped");
    let registers = [f2::OCL_LATE, f2::PCIS_READS_LATE, f2::PCIS_WRITES_LATE];
    let late = registers.map(|r| u64::from(busy.f2.page(r))).iter().sum();
    let flr_ns = flr();
    let small = build_once(&small_cl()).expect("build");
    let rules = rows(small, |rule| bench.broken(rule) + busy.broken(rule)).expect("the small CL");
    Figures { rules, pcim_bytes_per_cycle, pcis_worst_ns, late, flr_ns }
}

/// A reset of the function shortly after the start of the core, with the Security Kernel.
fn flr() -> u64 {
    let spec = f2_spec(false).expect("sources").search("shell-rtl/accel/digits");
    let library = build_once(&spec.fast()).expect("build");
    let config = F2Config { core: CoreClock::khz(CORE_KHZ), ..F2Config::default() };
    let mut f2 = NativeF2::new(library, config, Shared::default()).expect("a slot");
    f2.wait_open().expect("wiped");
    f2.start().expect("started");
    f2.flr().expect("wiped")
}

/// 32 reads at once, some times, while both directions of the engine are busy.
fn busy_reads(bench: &mut F2Bench) {
    use shef_device::ring::{Descriptor, OP_TO_CARD, OP_TO_HOST};
    let (piece, count) = (1_u64 << 14, 48_u64);
    let base = crate::dma::HOST;
    bench.host.0.borrow_mut().map(base..base + crate::dma::CARD_BYTES);
    let mut queues = [(0, OP_TO_CARD), (1, OP_TO_HOST)]
        .map(|(index, op)| (bench.queue(index, 256, (1 << 31) + (u64::from(index) << 20), 0), op));
    for (queue, op) in &mut queues {
        for n in 0..count {
            let at = n % 16 * piece + if *op == OP_TO_HOST { 16 * piece } else { 0 };
            let (tag, bytes) = (n as u32, piece as u32);
            let d = Descriptor { op: *op, flags: 0, tag, host: base + at, card: at, bytes };
            assert!(queue.push(&d).expect("in the ring"));
        }
        queue.submit(bench).expect("a doorbell");
    }
    bench.run(1_000);
    for _ in 0..4 {
        for n in 0..READS {
            bench.f2.shell.bar4_begin_read(0x80_0000 + (n << 12), 64);
        }
        let mut left = READS;
        let answered = bench.f2.shell.run_until(100_000, 1, |shell| {
            while shell.bar4_take(false).is_some() {
                left -= 1;
            }
            left == 0
        });
        assert!(answered, "{left} reads are not answered");
        bench.run(300);
    }
}
