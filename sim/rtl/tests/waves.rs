//! Waves are written on request, and refused with a reason if the build cannot have them.

use shef_rtl::{DesignSpec, Error, Sim, build};

#[test]
fn waves_on_demand() {
    let spec = DesignSpec::new("loop").source("sim/rtl/tests/loop.sv");
    let mut s = Sim::new(&build(&spec).expect("build")).expect("instance");
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("waves.fst");
    assert!(matches!(s.trace_start(&file), Err(Error::TraceOff(_))));
    let lib = match build(&spec.trace()) {
        Ok(l) => l,
        // Without the libraries, this reason is all that there is to test.
        Err(e @ Error::TraceLibraries) => {
            assert!(e.to_string().contains("apt-get install liblz4-dev zlib1g-dev"));
            return;
        }
        Err(e) => panic!("{e}"),
    };
    let mut s = Sim::new(&lib).expect("instance");
    s.trace_start(&file).expect("start");
    s.reset("rst_n", 2);
    s.run(20);
    s.trace_stop();
    assert!(std::fs::metadata(&file).expect("file").len() > 100);
}
