//! The model of AWS F2's shell: clocks, packets, interrupts, the life of an image, and what follows
//! from a broken rule.

use shef_rtl::f2::{
    CoreClock, F2Config, F2Shell, Interrupt, Msix, PcimTiming, Rule, Slot, TestHost, faults,
    small_cl,
};
use shef_rtl::{Library, build};

const IDS: [u32; 2] = [0xf000_1d0f, 0x1d51_fedc];
const ONES: u32 = u32::MAX;

type Shell = F2Shell<TestHost>;

fn lib() -> Library {
    build(&small_cl().random_contents()).expect("build")
}

fn shell(config: F2Config) -> Shell {
    let mut shell = F2Shell::new(&lib(), config, IDS, TestHost::default()).expect("a slot");
    shell.set_bus_master(true);
    shell
}

fn quiet() -> F2Config {
    F2Config { stalls: None, pcim: PcimTiming::bench(1_200, 600), ..F2Config::default() }
}

fn number(fault: &str) -> u64 {
    let fault = faults().iter().find(|f| f.name == fault).expect("a fault");
    u64::from(fault.number)
}

fn plant(shell: &mut Shell, fault: &str) {
    shell.core().sim().poke("fault", number(fault));
}

fn mend(shell: &mut Shell) {
    shell.core().sim().poke("fault", 0);
}

/// Copies `count` bursts of `beats` beats from page 0 to page 1 of the host; whether the job ended,
/// with success.
fn copy(shell: &mut Shell, count: u32, beats: u32) -> Option<bool> {
    start(shell, count, beats);
    let mut status = 0;
    let ended = shell.run_until(10_000, 100, |shell| {
        status = shell.ocl_read(0x20);
        status >> 30 & 1 == 0
    });
    ended.then_some(status >> 31 == 0)
}

fn start(shell: &mut Shell, count: u32, beats: u32) {
    let (from, to) = (TestHost::page(0), TestHost::page(1));
    shell.host.memory.write(from, &[0x5a; 4096]);
    for (register, value) in [(0x08, from), (0x0c, from >> 32), (0x10, to), (0x14, to >> 32)] {
        shell.ocl_write(register, value as u32);
    }
    shell.ocl_write(0x18, count << 8 | beats);
    shell.ocl_write(0x1c, 1);
}

/// Bytes of page 1 that were copied.
fn copied(shell: &Shell) -> usize {
    let mut bytes = [0; 4096];
    shell.host.memory.read(TestHost::page(1), &mut bytes);
    bytes.iter().filter(|b| **b == 0x5a).count()
}

fn window(shell: &mut Shell, at: u64) -> u64 {
    let mut bytes = [0; 8];
    shell.bar4_read(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// Nanoseconds that an access takes.
fn takes<T>(shell: &mut Shell, access: impl FnOnce(&mut Shell) -> T) -> (u64, T) {
    let start = shell.now_ps();
    let value = access(shell);
    ((shell.now_ps() - start) / 1_000, value)
}

#[test]
fn the_clocks_are_not_related() {
    let core = CoreClock { period_ps: 7_321, ppm: 200, seed: 3 };
    let mut shell = shell(F2Config { core, ..quiet() });
    let (ps, main, core) = (shell.now_ps(), shell.main_cycles(), shell.core_cycles());
    shell.step(100_000);
    assert_eq!(shell.main_cycles() - main, 100_000);
    let passed = shell.now_ps() - ps;
    assert!(passed.abs_diff(400_000_000) < 4_000, "{passed} ps");
    let cycles = shell.core_cycles() - core;
    let exact = passed / 7_321;
    assert!(cycles != exact && cycles.abs_diff(exact) < exact / 2_000, "{cycles} {exact}");
    shell.run_core_clock(false);
    let core = shell.core_cycles();
    shell.step(1_000);
    assert_eq!(shell.core_cycles(), core);
    shell.run_core_clock(true);
    shell.step(1_000);
    assert!((540..550).contains(&(shell.core_cycles() - core)));
}

#[test]
fn a_seed_is_a_run() {
    let run = |seed: u64| {
        let mut shell = shell(F2Config::seeded(seed));
        assert_eq!(copy(&mut shell, 4, 16), Some(true));
        window(&mut shell, 64);
        (shell.now_ps(), shell.core_cycles())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_late_read_closes_pcis_for_4_ms() {
    for recovers in [true, false] {
        let mut shell = shell(F2Config { recovers, ..quiet() });
        shell.bar4_write(0, &7u64.to_le_bytes());
        plant(&mut shell, "PCIS_READ_NEVER");
        let (ns, word) = takes(&mut shell, |s| window(s, 0));
        assert_eq!(word, u64::MAX);
        assert!((8_000..8_100).contains(&ns), "{ns}");
        assert_eq!(shell.broken(Rule::PcisRead), 1);
        assert_eq!(shell.metrics().late[2], (1, 1), "a read of address 0");
        mend(&mut shell);
        let (ns, word) = takes(&mut shell, |s| window(s, 0));
        assert!(word == u64::MAX && (16..40).contains(&ns), "{ns}");
        shell.bar4_write(0, &8u64.to_le_bytes());
        shell.step(999_000);
        assert_eq!(window(&mut shell, 0), u64::MAX, "still");
        shell.step(2_000);
        let want = if recovers { 7 } else { u64::MAX };
        assert_eq!(window(&mut shell, 0), want, "the write was dropped");
        assert_eq!(shell.ocl_read(0), 0x4c43_3246, "OCL has its own detector");
        shell.load(&lib(), IDS).expect("a load");
        assert_eq!((shell.violations().len(), shell.metrics().late[2]), (0, (0, 0)));
        shell.bar4_write(0, &9u64.to_le_bytes());
        assert_eq!(window(&mut shell, 0), 9);
    }
}

#[test]
fn the_detector_counts_in_front_of_its_fifo() {
    // An access takes the serial window 1.2 us: seven at once are late, six are not.
    for (reads, late) in [(6, 0), (7, 1)] {
        let mut shell = shell(quiet());
        plant(&mut shell, "PCIS_SERIAL");
        for k in 0..reads {
            shell.bar4_begin_read(64 * k, 8);
        }
        shell.run_until(4_000, 1, |s| !s.bar4_busy());
        assert_eq!(shell.broken(Rule::PcisRead), late, "{reads} reads");
    }
    // 16 in the FIFO and one in front of it count; the others have not begun.
    let mut shell = shell(quiet());
    plant(&mut shell, "PCIS_READ_NEVER");
    let start = shell.now_ps();
    for k in 0..40 {
        shell.bar4_begin_read(64 * k, 8);
    }
    let mut answered = Vec::new();
    shell.run_until(4_000, 1, |s| {
        while s.bar4_take(false).is_some() {
            answered.push(s.now_ps() - start);
        }
        answered.len() == 40
    });
    let at_once = answered.iter().filter(|ps| **ps == answered[0]).count();
    assert_eq!((answered.len(), at_once), (40, 17));
}

#[test]
fn ocl_and_sda_time_out() {
    let mut shell = shell(quiet());
    plant(&mut shell, "OCL_READ_NEVER");
    let (ns, word) = takes(&mut shell, |s| s.ocl_read(0));
    assert!(word == ONES && (8_000..8_100).contains(&ns), "{ns}");
    let (ns, word) = takes(&mut shell, |s| s.ocl_read(4));
    assert!(word == ONES && ns < 40, "{ns}");
    assert_eq!(shell.metrics().late[0], (1, 1));
    assert_eq!(shell.sda_read(0), 0);
    plant(&mut shell, "SDA_WRITE_NEVER");
    let (ns, ()) = takes(&mut shell, |s| s.sda_write(8, 1));
    assert!((8_000..8_100).contains(&ns), "{ns}");
    assert_eq!(shell.metrics().late[1], (1, 8 | 2));
}

#[test]
fn broken_timing_stops_pcim_until_a_load() {
    for fault in ["PCIM_BREADY_LOW", "PCIM_RREADY_LOW", "PCIM_NO_W", "PCIM_WLAST_EARLY"] {
        let mut shell = shell(quiet());
        plant(&mut shell, fault);
        assert_eq!(copy(&mut shell, 2, 8), None, "{fault}");
        assert!(shell.metrics().pcim_dead);
        mend(&mut shell);
        let counters = shell.metrics().pcim;
        shell.step(5_000);
        assert_eq!(shell.metrics().pcim, counters, "{fault}");
        shell.load(&lib(), IDS).expect("a load");
        shell.set_bus_master(true);
        assert_eq!(copy(&mut shell, 2, 8), Some(true));
        assert_eq!(copied(&shell), 1024);
    }
}

#[test]
fn a_broken_burst_is_refused() {
    for fault in ["PCIM_SIZE", "PCIM_STROBE_GAP", "PCIM_STROBE_ADDR"] {
        let mut shell = shell(quiet());
        plant(&mut shell, fault);
        assert_eq!(copy(&mut shell, 2, 8), Some(false), "{fault}");
        assert_eq!(copied(&shell), 0, "{fault}");
        mend(&mut shell);
        assert_eq!(copy(&mut shell, 2, 8), Some(true), "{fault}");
        assert_eq!(copied(&shell), 1024);
    }
    for fault in ["PCIM_FIXED", "PCIM_TWO_BEATS"] {
        let mut shell = shell(quiet());
        plant(&mut shell, fault);
        assert_eq!(copy(&mut shell, 1, 2), Some(false), "{fault}");
        assert_eq!(copied(&shell), 0, "all ones were read: {fault}");
    }
}

#[test]
fn the_data_of_an_id_that_is_used_twice_change_places() {
    let mut shell = shell(quiet());
    plant(&mut shell, "PCIM_ONE_ID");
    start(&mut shell, 2, 1);
    // The reads are on their way.
    for k in 0..2 {
        shell.host.memory.write(TestHost::page(0) + 64 * k, &[k as u8 + 1; 64]);
    }
    shell.step(2_000);
    let mut lines = [0; 128];
    shell.host.memory.read(TestHost::page(1), &mut lines);
    assert_eq!((lines[0], lines[64], shell.broken(Rule::PcimReadId)), (2, 1, 1));
}

#[test]
fn nothing_passes_without_bus_mastering() {
    let mut shell = shell(quiet());
    shell.set_bus_master(false);
    assert_eq!(copy(&mut shell, 1, 4), Some(false));
    assert_eq!((copied(&shell), shell.broken(Rule::PcimMaster)), (0, 2));
    shell.set_bus_master(true);
    assert_eq!(copy(&mut shell, 1, 4), Some(true));
}

#[test]
fn writes_reach_the_host_in_packets() {
    for payload in [128, 256, 512] {
        let mut shell = shell(F2Config { max_payload: payload, ..quiet() });
        assert_eq!(shell.ocl_read(0x2c), 0x20 + payload as u32 / 256, "requests of 512 bytes");
        start(&mut shell, 1, 64);
        let (mut before, mut most) = (0, 0);
        shell.run_until(4_000, 1, |s| {
            let now = copied(s);
            most = most.max(now - before);
            before = now;
            now == 4096
        });
        assert_eq!((before, most), (4096, payload));
    }
}

#[test]
fn the_host_may_see_an_interrupt_before_data_that_have_no_answer() {
    // B comes when the host sees the data, not before.
    let mut shell = shell(F2Config { pcim: PcimTiming::bench(1_200, 20_000), ..quiet() });
    start(&mut shell, 1, 1);
    shell.run_until(2_000, 1, |s| s.metrics().pcim.write_beats == 1);
    shell.step(1_000);
    assert_eq!((copied(&shell), shell.metrics().pcim.answers), (0, 0));
    shell.run_until(5_000, 1, |s| s.metrics().pcim.answers == 1);
    assert_eq!(copied(&shell), 64);
}

fn vector(shell: &mut Shell, vector: u32, masked: bool) {
    for (word, value) in [(0, 0xfee0_1000), (4, 1), (8, 0x77), (12, u32::from(masked))] {
        shell.bar2_write(0x8000 + 16 * vector + word, value);
    }
}

#[test]
fn interrupts_pass_the_registers_of_bar_2() {
    let mut shell = shell(quiet());
    assert_eq!(shell.bar2_read(0x2000), 0x1fc2_0006);
    assert_eq!(shell.bar2_read(0x800c), 1, "vectors are masked after a load");
    shell.bar2_write(0x2084, 0x0908_2005);
    assert_eq!(shell.bar2_read(0x2084), 0x0908_0005, "a vector has five bits");
    // Line 4 has vector 5. While its line is not enabled, it waits.
    shell.ocl_write(0x24, 4);
    shell.step(500);
    assert_eq!(shell.take_interrupt(), None);
    shell.bar2_write(0x2004, 1 << 4);
    shell.step(10);
    assert_eq!((shell.take_interrupt(), shell.bar2_read(0x8fe0)), (None, 1 << 5), "no MSI-X");
    shell.set_msix(Msix::Table);
    assert_eq!(shell.take_interrupt(), None, "masked");
    vector(&mut shell, 5, false);
    let want = Interrupt { line: 4, vector: 5, address: 0x1_fee0_1000, data: 0x77 };
    assert_eq!((shell.take_interrupt(), shell.bar2_read(0x8fe0)), (Some(want), 0));
    shell.ocl_write(0x24, 4);
    shell.step(100);
    assert_eq!(shell.take_interrupt(), Some(want));
    vector(&mut shell, 5, true);
    shell.ocl_write(0x24, 4);
    shell.step(100);
    assert_eq!((shell.take_interrupt(), shell.bar2_read(0x8fe0)), (None, 1 << 5));
    shell.set_msix(Msix::Eventfds);
    assert_eq!(shell.take_interrupt().map(|i| (i.line, i.vector)), Some((4, 5)));
    shell.flr();
    let registers = [0x2004, 0x2084, 0x8fe0].map(|at| shell.bar2_read(at));
    assert_eq!((registers, shell.bar2_read(0x805c)), ([0; 3], 1), "a reset of the function");
}

#[test]
fn a_reset_of_the_function_stops_the_copy() {
    let mut shell = shell(quiet());
    for delay in (0..600).step_by(7) {
        start(&mut shell, 8, 8);
        shell.step(delay);
        shell.begin_flr();
        shell.step(1);
        assert!(shell.in_flr());
        assert_eq!((shell.ocl_read(0), shell.bar2_read(0x2000)), (ONES, ONES));
        assert_eq!(window(&mut shell, 0), u64::MAX);
        assert!(shell.run_until(5_000, 1, |s| !s.in_flr()));
        assert_eq!(shell.ocl_read(0), 0x4c43_3246);
        let counters = shell.metrics().pcim;
        shell.step(1_000);
        assert_eq!(shell.metrics().pcim, counters, "the engine stands still");
        assert!(shell.pcim_idle());
        shell.set_bus_master(true);
    }
    assert_eq!(shell.violations(), []);
}

#[test]
fn a_function_that_is_never_done_is_given_up() {
    let mut shell = shell(F2Config { wipe_ns: 100_000, ..quiet() });
    plant(&mut shell, "FLR_NEVER");
    let ns = shell.flr();
    assert!((100_000..100_100).contains(&ns), "{ns}");
    mend(&mut shell);
    shell.step(1_000);
    assert_eq!((shell.ocl_read(0), shell.broken(Rule::FlrNever)), (ONES, 1));
    shell.load(&lib(), IDS).expect("a load");
    assert_eq!(shell.ocl_read(0), 0x4c43_3246);
}

#[test]
fn a_load_that_fails_leaves_no_function() {
    for (fault, error) in [("ID_OTHER", 12), ("DDR_NO_ACK", 13)] {
        let inputs = vec![("fault".to_owned(), vec![number(fault) as u8])];
        let mut shell = shell(F2Config { inputs, ..quiet() });
        assert_eq!((shell.slot(), shell.violations().len()), (Slot::Failed(error), 1));
        assert_eq!((shell.ocl_read(0), shell.bar2_read(0x2000)), (ONES, ONES));
        assert_eq!(window(&mut shell, 0), u64::MAX);
    }
    // The manifest is another's.
    let mut shell =
        F2Shell::new(&lib(), quiet(), [0xf001_1d0f, IDS[1]], TestHost::default()).expect("a slot");
    assert_eq!(shell.slot(), Slot::Failed(12));
    let text = shell.violations()[0].to_string();
    assert!(text.contains("id-mismatch") && text.contains("cl_sh_id0: 0xf0001d0f"), "{text}");
    shell.load(&lib(), IDS).expect("a load");
    assert_eq!((shell.slot(), shell.ocl_read(0)), (Slot::Loaded, 0x4c43_3246));
    shell.ocl_write(4, 77);
    shell.clear().expect("a cleared slot");
    assert_eq!((shell.slot(), shell.ocl_read(4)), (Slot::Cleared, ONES));
    shell.load(&lib(), IDS).expect("a load");
    assert_eq!(shell.ocl_read(4), 0, "no state survives");
}

#[test]
fn a_violation_names_rule_signal_and_cycle() {
    let mut shell = shell(quiet());
    plant(&mut shell, "PCIM_SIZE");
    copy(&mut shell, 1, 1);
    let [first] = shell.violations() else { panic!("{:?}", shell.violations()) };
    assert_eq!((first.rule.name(), first.signal.as_str()), ("pcim-size", "cl_sh_pcim_awsize"));
    assert!(first.cycle > 1_500 && first.cycle < shell.main_cycles());
    assert_eq!(first.ps / 4_000, first.cycle - 1, "the outputs of the cycle that ends");
}

/// Run with `cargo test --release -p shef-rtl --test f2_shell -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_cycle() {
    let lib = build(&small_cl().fast()).expect("build");
    for (name, busy) in [("idle", false), ("copying", true)] {
        let config = F2Config::bench(CoreClock::default(), 1_200, Default::default());
        let mut shell = F2Shell::new(&lib, config, IDS, TestHost::default()).expect("a slot");
        shell.set_bus_master(true);
        let (main, core) = (shell.main_cycles(), shell.core_cycles());
        let start = std::time::Instant::now();
        while shell.main_cycles() - main < 1_000_000 {
            if busy {
                copy(&mut shell, 8, 8);
            } else {
                shell.step(1_000);
            }
        }
        let ns = start.elapsed().as_nanos() as u64;
        let (main, core) = (shell.main_cycles() - main, shell.core_cycles() - core);
        println!("{name}: {} ns a cycle of 250 MHz, {} ns of the core", ns / main, ns / core);
    }
    let mut sim = shef_rtl::Sim::new(&lib).expect("instance");
    let (main, start) = (sim.port("clk_main_a0").expect("a clock"), std::time::Instant::now());
    for k in 0..2_000_000 {
        sim.set(main, k & 1);
        sim.eval();
    }
    println!("the design alone: {} ns a cycle", start.elapsed().as_nanos() / 1_000_000);
}
