//! Bytes per cycle of the DMA engine in RTL, both directions at once, beside what the bus can
//! carry: part of `cargo xtask bench host`.

use shef_rtl::AxiMemoryConfig;
use shef_tb::dma::{DmaBench, both_ways};

/// Bytes of a descriptor.
const PIECE: u64 = 4096;
/// Descriptors each way.
const COUNT: u64 = 2000;
/// Bytes of a beat: the bus carries this many each way in a cycle.
const BUS: f64 = 64.0;

fn main() {
    // A microsecond to host memory and back at 250 MHz.
    let mut bench = DmaBench::new(AxiMemoryConfig::bench(250, 100), AxiMemoryConfig::bench(60, 40));
    let cycles = both_ways(&mut bench, PIECE, COUNT);
    bench.check();
    let value = (PIECE * COUNT) as f64 / cycles as f64;
    if std::env::args().any(|arg| arg == "--json") {
        let ratio = value / BUS;
        println!(
            r#"{{"rows":[{{"name":"dma_rtl","value":{value:.2},"unit":"B/cycle","baseline":{BUS:.1},"ratio":{ratio:.3}}}]}}"#
        );
    } else {
        println!(
            "dma_rtl    {value:>6.2} B/cycle each way, both at once, {PIECE} bytes a descriptor  {:.2} of the bus",
            value / BUS
        );
    }
}
