//! A first test bench: one module of the RTL, driven by name. The page of this crate shows how to
//! run it; copy it to begin your own.

use shef_rtl::{Sim, build, module_spec};

const WORDS: u64 = 48;

fn main() -> shef_rtl::Result<()> {
    // The design: shef_sweep.sv and the modules it uses, with waves. Verilator and g++ run only if
    // no library of these contents is cached.
    let library = build(&module_spec("shef_sweep")?.param("Words", WORDS).trace())?;
    let mut sim = Sim::new(&library)?;
    let waves = std::env::temp_dir().join("first_bench.fst");
    sim.trace_start(&waves)?;

    sim.tick();
    sim.poke("clear_i", 1);
    let cycles = sim.run_until(1000, |sim| sim.peek("cleared_o") == 1);
    assert_eq!(cycles, Some(WORDS), "every word has its cycle");
    sim.poke("clear_i", 0);
    sim.eval();
    assert_eq!(sim.peek("cleared_o"), 0, "it falls with clear_i");

    sim.trace_stop();
    println!("{WORDS} words in {WORDS} cycles, waves in {}", waves.display());
    Ok(())
}
