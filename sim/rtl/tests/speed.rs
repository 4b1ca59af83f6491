//! Cost of a cycle on the Rust side; run with `cargo test --release -p shef-rtl --test speed --
//! --ignored --nocapture`.

use shef_rtl::{Agent, AxiMaster, AxiMemory, AxiMemoryConfig, DesignSpec, Sim, build};
use std::time::Instant;

#[test]
#[ignore = "a measurement"]
fn cost_of_a_cycle() {
    let lib =
        build(&DesignSpec::new("loop").source("sim/rtl/tests/loop.sv").fast()).expect("build");
    let mut s = Sim::new(&lib).expect("instance");
    s.reset("rst_n", 2);
    let n = 200_000u32;
    let per = |t: Instant| t.elapsed().as_nanos() / u128::from(n);

    let t = Instant::now();
    s.run(u64::from(n));
    println!("design alone: {} ns", per(t));

    let mut mem = AxiMemory::new(&s, "mem0_", AxiMemoryConfig::bench(20, 10)).expect("memory");
    let t = Instant::now();
    for _ in 0..n {
        s.settle();
        mem.sample(&s);
        s.edge();
        mem.drive(&mut s);
    }
    println!("idle memory: {} ns", per(t));

    let mut acc = AxiMaster::new(&s, "acc0_", None).expect("master");
    for i in 0..u64::from(n) / 64 {
        acc.read(i * 4096, 64);
        acc.write((i + 64) * 4096, &[7; 4096]);
    }
    // Both include the master's own cost; the memory's is timed separately.
    let (mut sample, mut drive) = (0u128, 0u128);
    let t = Instant::now();
    for _ in 0..n {
        s.settle();
        acc.sample(&s);
        let a = Instant::now();
        mem.sample(&s);
        sample += a.elapsed().as_nanos();
        s.edge();
        acc.drive(&mut s);
        let a = Instant::now();
        mem.drive(&mut s);
        drive += a.elapsed().as_nanos();
    }
    let a = Instant::now();
    for _ in 0..n {
        std::hint::black_box(Instant::now().elapsed().as_nanos());
    }
    let timer = per(a);
    println!(
        "both directions busy: {} ns a cycle with everything; memory {} ns (sample {}, drive {}, timer {timer} each)",
        per(t),
        (sample + drive) / u128::from(n) - 2 * timer,
        sample / u128::from(n),
        drive / u128::from(n)
    );
    println!("{:?}", mem.counters);
}
