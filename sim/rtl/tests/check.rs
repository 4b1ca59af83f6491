//! The protocol checker: each rule is raised by a stimulus, alone, and legal traffic raises none.

use shef_rtl::agent::Rng;
use shef_rtl::check::{Checked, Checker, DoneRegister, Report, rules};
use shef_rtl::{DesignSpec, Port, Sim, build_once, module_spec};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The bench's regions: input, counted, output in chunks of 512 bytes, output in pages; the second
/// port reaches the fifth region only, counted.
const MIB: u64 = 1 << 20;
const INPUT: u64 = 0;
const COUNTED: u64 = MIB;
const OUTPUT: u64 = 2 * MIB;
const PAGES: u64 = 3 * MIB;
const SECOND: u64 = 4 * MIB;
const OUTSIDE: u64 = 5 * MIB;

struct Bench {
    sim: Sim,
    checker: Checker,
    ports: HashMap<String, Port>,
}

impl Bench {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(done: Option<DoneRegister>) -> Self {
        let spec = DesignSpec::new("shef_check_tb")
            .search("sim/rtl/tests/sv")
            .search("shell-rtl/shell/sim")
            .search("shell-rtl/rtl/pkg");
        let mut sim = Sim::new(build_once(&spec.deny_warnings()).expect("build")).expect("sim");
        let mut checker = Checker::new(&sim).expect("checker");
        sim.tick();
        checker.start(&mut sim, done);
        let ports = sim.port_names().into_iter().map(|n| (n.clone(), sim.find(&n).expect("port")));
        let mut bench = Self { ports: ports.collect(), sim, checker };
        bench.ticks(3);
        bench.set("rst_n", 1);
        bench.ticks(2);
        bench
    }

    /// Sets a port; those of the first memory port have their AXI names.
    fn set(&mut self, name: &str, value: u64) {
        let port = self.ports.get(name).or_else(|| self.ports.get(&format!("acc0_{name}")));
        self.sim.set(*port.unwrap_or_else(|| panic!("no port {name}")), value);
    }

    fn all(&mut self, values: &[(&str, u64)]) {
        values.iter().for_each(|(name, value)| self.set(name, *value));
    }

    fn tick(&mut self) {
        self.sim.settle();
        self.checker.sample(&self.sim);
        self.sim.edge();
    }

    fn ticks(&mut self, n: u64) {
        (0..n).for_each(|_| self.tick());
    }

    /// A cycle in which a signal is high.
    fn pulse(&mut self, name: &str) {
        self.set(name, 1);
        self.tick();
        self.set(name, 0);
    }

    /// A cycle with these values, and then one of the channel's valid and ready low.
    fn beat(&mut self, channel: &str, values: &[(&str, u64)]) {
        self.all(values);
        self.set(&format!("{channel}valid"), 1);
        self.set(&format!("{channel}ready"), 1);
        self.tick();
        self.set(&format!("{channel}valid"), 0);
        self.set(&format!("{channel}ready"), 0);
    }

    /// A request (`aw` or `ar`) that is offered; the caller decides when it is accepted.
    fn offer(&mut self, channel: &str, addr: u64, beats: u64) {
        self.shape(channel, addr, beats - 1, 6, 1);
        self.set(&format!("{channel}valid"), 1);
    }

    fn shape(&mut self, channel: &str, addr: u64, len: u64, size: u64, burst: u64) {
        for (name, value) in
            [("id", 3), ("addr", addr), ("len", len), ("size", size), ("burst", burst)]
        {
            self.set(&format!("{channel}{name}"), value);
        }
    }

    /// An accepted request.
    fn request(&mut self, channel: &str, addr: u64, beats: u64) {
        self.offer(channel, addr, beats);
        self.beat(channel, &[]);
    }

    /// A whole write burst without its answer.
    fn write(&mut self, addr: u64, strobes: &[u64]) {
        self.request("aw", addr, strobes.len() as u64);
        for (k, strobe) in strobes.iter().enumerate() {
            let last = u64::from(k + 1 == strobes.len());
            self.beat("w", &[("wstrb", *strobe), ("wlast", last)]);
        }
    }

    fn written(&mut self, addr: u64, strobes: &[u64]) {
        self.write(addr, strobes);
        self.beat("b", &[("bid", 3), ("bresp", 0)]);
    }

    fn reports(&mut self) -> Vec<Report> {
        self.ticks(40);
        let Checked { reports, lost, .. } = self.checker.take(&self.sim);
        assert_eq!(lost, 0);
        reports
    }
}

/// Changes `name` from `from` to `to` while the channel waits for ready.
fn changed(b: &mut Bench, channel: &str, name: &str, from: u64, to: u64) {
    b.set(name, from);
    b.set(&format!("{channel}valid"), 1);
    b.tick();
    b.set(name, to);
    b.tick();
    b.beat(channel, &[]);
}

/// Offers and withdraws.
fn withdrawn(b: &mut Bench, channel: &str) {
    b.pulse(&format!("{channel}valid"));
    b.tick();
}

/// A signal that is high in reset.
fn in_reset(b: &mut Bench, name: &str) {
    b.set("rst_n", 0);
    b.ticks(2);
    b.pulse(name);
    b.tick();
    b.set("rst_n", 1);
}

/// The registers' port, whose names also begin with the channel.
fn late(b: &mut Bench, name: &str) {
    b.set(name, 1);
    b.ticks(1010);
}

/// The stimulus of a rule; `None` if the rule has no stimulus.
fn stimulus(rule: &str, b: &mut Bench) -> Option<()> {
    let whole = u64::MAX;
    // Rules of requests: AW and AR alike.
    if let Some(name) = rule.strip_prefix("AXI_ERRM_A")
        && let Some((channel, name)) =
            name.split_at_checked(1).map(|(c, name)| (["ar", "aw"][usize::from(c == "W")], name))
    {
        let at = COUNTED + 0x1000;
        match name {
            "VALID_RESET" => in_reset(b, &format!("{channel}valid")),
            "VALID_STABLE" => {
                b.offer(channel, at, 2);
                withdrawn(b, channel);
            }
            "ID_STABLE" | "ADDR_STABLE" | "LEN_STABLE" | "SIZE_STABLE" | "BURST_STABLE" => {
                b.offer(channel, at, 2);
                let field = name.trim_end_matches("_STABLE").to_lowercase();
                let (from, to) = match field.as_str() {
                    "id" => (3, 4),
                    "addr" => (at, at + 64),
                    "len" => (1, 2),
                    "size" => (6, 5),
                    _ => (1, 0),
                };
                changed(b, channel, &format!("{channel}{field}"), from, to);
            }
            _ => {
                let (addr, len, size, burst) = match name {
                    "BURST" => (at, 0, 6, 3),
                    "SIZE" => (at, 0, 7, 1),
                    "LEN_FIXED" => (at, 16, 6, 0),
                    "LEN_WRAP" => (at, 2, 6, 2),
                    "ADDR_WRAP_ALIGN" => (at + 8, 1, 6, 2),
                    "ADDR_BOUNDARY" => (at - 64, 1, 6, 1),
                    _ => return None,
                };
                b.shape(channel, addr, len, size, burst);
                b.beat(channel, &[]);
            }
        }
        return Some(());
    }
    match rule {
        "AXI_ERRM_WVALID_RESET" => in_reset(b, "wvalid"),
        "AXI_ERRM_WVALID_STABLE" => {
            b.request("aw", COUNTED, 2);
            withdrawn(b, "w");
        }
        "AXI_ERRM_WDATA_STABLE" | "AXI_ERRM_WSTRB_STABLE" | "AXI_ERRM_WLAST_STABLE" => {
            b.request("aw", COUNTED, 2);
            b.set("wstrb", 0xf0);
            match rule {
                "AXI_ERRM_WSTRB_STABLE" => changed(b, "w", "wstrb", 0xf0, 0xf1),
                "AXI_ERRM_WLAST_STABLE" => changed(b, "w", "wlast", 1, 0),
                _ => {
                    b.set("wvalid", 1);
                    b.tick();
                    // Bytes without a strobe may change.
                    let data = b.ports["acc0_wdata"];
                    b.sim.raw_mut(data)[3] = 1;
                    b.tick();
                    b.sim.raw_mut(data)[6] = 0xab;
                    b.tick();
                    b.beat("w", &[]);
                }
            }
        }
        "AXI_ERRM_WDATA_NUM" => {
            b.request("aw", COUNTED, 3);
            for last in [0, 1, 1] {
                b.beat("w", &[("wstrb", whole), ("wlast", last)]);
            }
        }
        "AXI_ERRM_WSTRB" => {
            // Four bytes a beat, the first unaligned: lanes 5 to 7, then 8 to 11.
            b.shape("aw", COUNTED + 5, 1, 2, 1);
            b.beat("aw", &[]);
            b.beat("w", &[("wstrb", 0xe0), ("wlast", 0)]);
            b.beat("w", &[("wstrb", 0xf80), ("wlast", 1)]);
        }
        "AXI_ERRS_BVALID_STABLE" | "AXI_ERRS_BID_STABLE" | "AXI_ERRS_BRESP_STABLE" => {
            b.write(COUNTED, &[whole]);
            b.set("bid", 3);
            match rule {
                "AXI_ERRS_BVALID_STABLE" => withdrawn(b, "b"),
                "AXI_ERRS_BID_STABLE" => changed(b, "b", "bid", 3, 9),
                _ => changed(b, "b", "bresp", 0, 2),
            }
        }
        "AXI_ERRS_BRESP_AW" => {
            b.write(COUNTED, &[whole]);
            b.beat("b", &[("bid", 4)]);
        }
        "AXI_ERRS_BRESP_WLAST" => {
            b.request("aw", COUNTED, 2);
            b.beat("w", &[("wstrb", whole)]);
            // In the same cycle as the last beat is too early.
            b.all(&[("bvalid", 1), ("bready", 1), ("bid", 3), ("wlast", 1)]);
            b.beat("w", &[]);
            b.set("bvalid", 0);
        }
        "AXI_ERRS_BRESP_EXOKAY" => {
            b.write(COUNTED, &[whole]);
            b.beat("b", &[("bid", 3), ("bresp", 1)]);
        }
        "AXI_ERRS_RVALID_STABLE"
        | "AXI_ERRS_RID_STABLE"
        | "AXI_ERRS_RRESP_STABLE"
        | "AXI_ERRS_RLAST_STABLE" => {
            b.request("ar", COUNTED, 2);
            b.set("rid", 3);
            match rule {
                "AXI_ERRS_RVALID_STABLE" => withdrawn(b, "r"),
                "AXI_ERRS_RID_STABLE" => changed(b, "r", "rid", 3, 9),
                "AXI_ERRS_RRESP_STABLE" => changed(b, "r", "rresp", 0, 2),
                _ => changed(b, "r", "rlast", 0, 1),
            }
        }
        "AXI_ERRS_RDATA_STABLE" => {
            b.shape("ar", COUNTED + 16, 0, 4, 1);
            b.beat("ar", &[]);
            let data = b.ports["acc0_rdata"];
            b.all(&[("rvalid", 1), ("rid", 3), ("rlast", 1)]);
            b.tick();
            b.sim.raw_mut(data)[15] = 1;
            b.tick();
            b.sim.raw_mut(data)[31] = 1;
            b.tick();
            b.beat("r", &[]);
        }
        "AXI_ERRS_RID" => {
            b.request("ar", COUNTED, 1);
            b.beat("r", &[("rid", 4), ("rlast", 1)]);
        }
        "AXI_ERRS_RDATA_NUM" => {
            b.request("ar", COUNTED, 2);
            b.beat("r", &[("rid", 3), ("rlast", 1)]);
        }
        "AXI_ERRS_RRESP_EXOKAY" => {
            b.request("ar", COUNTED, 1);
            b.beat("r", &[("rid", 3), ("rlast", 1), ("rresp", 1)]);
        }
        "AXI4LITE_ERRS_BVALID_RESET" => in_reset(b, "reg_bvalid"),
        "AXI4LITE_ERRS_RVALID_RESET" => in_reset(b, "reg_rvalid"),
        "AXI4LITE_ERRS_BRESP_AW" => {
            b.beat("reg_aw", &[]);
            b.beat("reg_b", &[]);
        }
        "AXI4LITE_ERRS_RDATA_NUM" => b.beat("reg_r", &[]),
        "AXI4LITE_RECS_AWREADY_MAX_WAIT" => late(b, "reg_awvalid"),
        "AXI4LITE_RECS_WREADY_MAX_WAIT" => late(b, "reg_wvalid"),
        "AXI4LITE_RECS_ARREADY_MAX_WAIT" => late(b, "reg_arvalid"),
        _ if rule.starts_with("AXI4LITE_ERRS_B") || rule == "AXI4LITE_RECS_BVALID_MAX_WAIT" => {
            b.beat("reg_aw", &[("reg_awaddr", 0x24)]);
            b.beat("reg_w", &[]);
            match rule {
                "AXI4LITE_ERRS_BVALID_STABLE" => withdrawn(b, "reg_b"),
                "AXI4LITE_ERRS_BRESP_STABLE" => changed(b, "reg_b", "reg_bresp", 0, 2),
                "AXI4LITE_ERRS_BRESP_EXOKAY" => b.beat("reg_b", &[("reg_bresp", 1)]),
                "AXI4LITE_RECS_BVALID_MAX_WAIT" => late(b, "reg_bready"),
                _ => return None,
            }
        }
        _ if rule.starts_with("AXI4LITE_ERRS_R") || rule == "AXI4LITE_RECS_RVALID_MAX_WAIT" => {
            b.beat("reg_ar", &[("reg_araddr", 0x24)]);
            match rule {
                "AXI4LITE_ERRS_RVALID_STABLE" => withdrawn(b, "reg_r"),
                "AXI4LITE_ERRS_RDATA_STABLE" => changed(b, "reg_r", "reg_rdata", 5, 6),
                "AXI4LITE_ERRS_RRESP_STABLE" => changed(b, "reg_r", "reg_rresp", 0, 2),
                "AXI4LITE_ERRS_RRESP_EXOKAY" => b.beat("reg_r", &[("reg_rresp", 1)]),
                "AXI4LITE_RECS_RVALID_MAX_WAIT" => late(b, "reg_rready"),
                _ => return None,
            }
        }
        "SHEF_ERRM_W_ALONE" => {
            // The memory accepts the beat: the burst never comes.
            b.beat("w", &[("wstrb", whole), ("wlast", 1)]);
            b.ticks(1010);
        }
        "SHEF_ERRM_OPEN_AT_DONE" => {
            *b = Bench::with(Some(DoneRegister { offset: 0x10, mask: 6, value: 4 }));
            b.request("ar", COUNTED, 1);
            // Not yet done, and another register: nothing.
            for (addr, data) in [(0x10, 3), (0x14, 4), (0x10, 5), (0x10, 4)] {
                b.beat("reg_ar", &[("reg_araddr", addr)]);
                b.beat("reg_r", &[("reg_rdata", data)]);
            }
        }
        "SHEF_ERRM_OPEN_AT_IRQ" => {
            b.write(COUNTED, &[whole]);
            b.set("irq", 1);
            b.ticks(5);
        }
        "SHEF_ERRM_OUTSTANDING" => {
            (0..1023).for_each(|_| b.request("ar", COUNTED, 1));
            // Answers are no longer understood, and not misunderstood.
            (0..5).for_each(|_| b.beat("r", &[("rid", 77), ("rlast", 1)]));
        }
        "SHEF_ERRM_BURST" => {
            b.shape("ar", COUNTED, 1, 6, 2);
            b.beat("ar", &[]);
            // Its refusal has this reason.
            b.beat("r", &[("rid", 3), ("rresp", 2)]);
            b.beat("r", &[("rid", 3), ("rlast", 1)]);
        }
        "SHEF_ERRM_REGION_CROSSED" => b.request("ar", OUTPUT - 64, 2),
        "SHEF_ERRM_RANGE" => {
            b.request("ar", OUTSIDE, 1);
            let mut other = Bench::new();
            other.request("ar", SECOND, 1);
            assert_eq!(other.reports().len(), 1, "a region of the other port");
            let mut other = Bench::new();
            let names = ["addr", "len", "size", "burst", "valid", "ready"];
            for (name, value) in names.iter().zip([SECOND, 0, 6, 1, 1, 1]) {
                other.set(&format!("acc1_ar{name}"), value);
            }
            other.tick();
            other.set("acc1_arvalid", 0);
            assert_eq!(other.reports(), [], "a region of this port");
        }
        "SHEF_ERRM_READ_ONLY" => {
            b.write(INPUT, &[whole]);
            b.beat("b", &[("bid", 3), ("bresp", 2)]);
        }
        "SHEF_ERRM_OUTPUT_TWICE" => {
            // A whole chunk, in two bursts; in between, a byte may be written again.
            b.written(OUTPUT + 512, &[whole; 4]);
            b.written(OUTPUT + 512, &[1]);
            b.written(OUTPUT + 512 + 256, &[whole; 4]);
            b.write(OUTPUT + 512 + 64, &[1]);
            b.beat("b", &[("bid", 3), ("bresp", 2)]);
        }
        "SHEF_ERRM_OUTPUT_GAP" => {
            // No gap: a chunk that ends early.
            b.written(PAGES, &[whole, 0xffff]);
            b.written(OUTPUT, &[whole, whole & !0x10, 0xff]);
            b.pulse("chk_close");
        }
        "SHEF_ERRS_REFUSED" => {
            b.request("ar", COUNTED, 2);
            b.beat("r", &[("rid", 3), ("rresp", 2)]);
            b.beat("r", &[("rid", 3), ("rlast", 1)]);
        }
        "SHEF_ERRM_CLEARED_EARLY" => {
            b.set("cleared", 1);
            b.ticks(30);
        }
        "SHEF_ERRM_CLEARED_DROPPED" => {
            b.set("rst_n", 0);
            b.set("clear", 1);
            b.ticks(5);
            b.pulse("cleared");
            b.ticks(5);
        }
        "SHEF_ERRM_CLEARED_LATE" => {
            b.set("rst_n", 0);
            b.set("clear", 1);
            b.ticks(65_540);
        }
        _ => return None,
    }
    Some(())
}

#[test]
fn each_rule_is_raised_by_its_stimulus_and_by_no_other() {
    for rule in rules() {
        let mut b = Bench::new();
        stimulus(rule.name, &mut b).unwrap_or_else(|| panic!("no stimulus for {}", rule.name));
        let reports = b.reports();
        let names: Vec<&str> = reports.iter().map(|r| r.rule.as_str()).collect();
        assert_eq!(names, [rule.name], "{reports:#?}");
        // `cargo xtask kit` reads this line.
        println!("raised {} others {}", rule.name, names.len() - 1);
    }
    let names: BTreeSet<&str> = rules().iter().map(|r| r.name).collect();
    assert_eq!(names.len(), rules().len(), "two rules of one name");
}

#[test]
fn a_report_says_what_when_and_where() {
    let mut b = Bench::new();
    b.request("aw", COUNTED + 0x40, 1);
    b.beat("w", &[("wstrb", u64::MAX), ("wlast", 1)]);
    b.offer("aw", COUNTED + 0x1000, 4);
    b.tick();
    let cycle = b.sim.cycles();
    b.set("awaddr", COUNTED + 0x2000);
    b.tick();
    b.beat("aw", &[]);
    let [report] = b.reports().try_into().expect("one report");
    assert_eq!(
        report.to_string(),
        format!(
            "AXI_ERRM_AWADDR_STABLE at port 0, cycle {cycle}: AWADDR was 0x101000, is 0x102000; \
             write 1 of id 0x03: 4 beat(s) of 64 bytes at 0x101000 (expected: AWADDR does not \
             change while it waits for AWREADY)"
        )
    );
}

#[test]
fn many_reports_are_bounded_and_counted() {
    let mut b = Bench::new();
    for _ in 0..300 {
        b.request("ar", OUTSIDE, 1);
    }
    b.ticks(40);
    let Checked { reports, lost, bursts } = b.checker.take(&b.sim);
    assert_eq!((reports.len(), lost, bursts), (256, 44, 300));
}

#[test]
fn off_it_reports_nothing_and_forgets() {
    let mut b = Bench::new();
    b.request("ar", COUNTED, 1);
    b.checker.stop(&mut b.sim);
    b.request("ar", OUTSIDE, 1);
    b.checker.start(&mut b.sim, None);
    assert_eq!(b.reports(), []);
    b.beat("r", &[("rid", 3), ("rlast", 1)]);
    let names: Vec<String> = b.reports().into_iter().map(|r| r.rule).collect();
    assert_eq!(names, ["AXI_ERRS_RID"], "the burst from before is unknown");
}

#[test]
fn an_epoch_or_a_session_opens_closed_chunks_again() {
    let mut b = Bench::new();
    b.written(OUTPUT, &[u64::MAX; 8]);
    b.written(PAGES, &[1]);
    b.all(&[("epoch_region", 2)]);
    b.pulse("epoch");
    b.written(OUTPUT, &[u64::MAX; 8]);
    b.set("rst_n", 0);
    b.ticks(2);
    b.set("rst_n", 1);
    b.written(OUTPUT, &[u64::MAX; 8]);
    assert_eq!(b.reports(), []);
    // The end of a session closes chunks.
    b.written(PAGES, &[2]);
    b.set("rst_n", 0);
    let names: Vec<String> = b.reports().into_iter().map(|r| r.rule).collect();
    assert_eq!(names, ["SHEF_ERRM_OUTPUT_GAP"]);
}

/// The page lists every rule with its demand, and no other.
#[test]
fn the_page_lists_the_rules() {
    let page = include_str!("../../../docs/reference/protocol-checker.md");
    let listed: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| `A") || line.starts_with("| `S")).collect();
    let rules: Vec<String> =
        rules().iter().map(|r| format!("| `{}` | {} |", r.name, r.text)).collect();
    assert_eq!(listed, rules);
}

/// The checker is in the shell, beside what a design's digest covers.
#[test]
fn no_digest_covers_the_checker() {
    let spec = |top| {
        let spec = module_spec(top).expect("sources").search("shell-rtl/accel/digits");
        spec.measure_below("shef_core")
    };
    for top in ["shef_sim_top", "shef_host_top"] {
        let built = spec(top).sources.resolve_sources().expect("sources");
        let measured = spec(top).sources.measure().expect("measured").manifest;
        for file in ["shef_check.sv", "shef_axi_check.sv", "shef_check_pkg.sv"] {
            assert!(built.iter().any(|p| p.ends_with(file)), "{top} has no {file}");
            assert!(!measured.contains(file), "{top}: {file} is measured");
        }
        assert!(measured.contains("shef_shield.sv"));
    }
}

/// A burst in flight.
#[derive(Clone, Copy)]
struct Flight {
    id: u64,
    addr: u64,
    len: u64,
    size: u64,
    /// Beats answered, or W beats accepted.
    beats: u64,
}

impl Flight {
    fn lanes(&self, beat: u64) -> u64 {
        let step = 1 << self.size;
        let at =
            if beat == 0 { self.addr } else { (self.addr & !(step - 1)) + (beat << self.size) };
        let (low, high) = (at % 64, (at % 64) | (step - 1));
        (u64::MAX << low) & (u64::MAX >> (63 - high))
    }
}

/// Legal random traffic at one memory port: both sides of all channels.
struct Traffic {
    p: HashMap<&'static str, Port>,
    rng: Rng,
    base: u64,
    /// Of the output regions, the next byte to write.
    outputs: Vec<(u64, u64)>,
    bursts: u64,
    most: u64,
    /// Requests that wait to be offered, and for W their beats.
    aw: VecDeque<Flight>,
    ar: VecDeque<Flight>,
    w: VecDeque<(u64, bool)>,
    /// Accepted.
    writes: Vec<Flight>,
    reads: Vec<Flight>,
    w_beats: VecDeque<bool>,
    /// Percentage of stalls: five channels' valid, then their ready.
    pace: [u64; 10],
}

const CHANNELS: [&str; 27] = [
    "awvalid", "awready", "awid", "awaddr", "awlen", "awsize", "awburst", "wvalid", "wready",
    "wdata", "wstrb", "wlast", "bvalid", "bready", "bid", "arvalid", "arready", "arid", "araddr",
    "arlen", "arsize", "arburst", "rvalid", "rready", "rid", "rdata", "rlast",
];

impl Traffic {
    fn new(sim: &Sim, port: usize, seed: u64, most: u64) -> Self {
        let find = |n: &&'static str| (*n, sim.port(&format!("acc{port}_{n}")).expect("port"));
        let base = if port == 0 { COUNTED } else { SECOND };
        let outputs = if port == 0 { vec![(OUTPUT, OUTPUT), (PAGES, PAGES)] } else { Vec::new() };
        Self {
            p: CHANNELS.iter().map(find).collect(),
            rng: Rng::new(seed),
            base,
            outputs,
            bursts: 0,
            most,
            aw: VecDeque::new(),
            ar: VecDeque::new(),
            w: VecDeque::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            w_beats: VecDeque::new(),
            pace: [0; 10],
        }
    }

    fn idle(&self) -> bool {
        self.aw.is_empty()
            && self.ar.is_empty()
            && self.w.is_empty()
            && self.writes.is_empty()
            && self.reads.is_empty()
    }

    fn on(&self, sim: &Sim, channel: &str) -> bool {
        let [valid, ready] = match channel {
            "aw" => ["awvalid", "awready"],
            "w" => ["wvalid", "wready"],
            "b" => ["bvalid", "bready"],
            "ar" => ["arvalid", "arready"],
            _ => ["rvalid", "rready"],
        };
        sim.get(self.p[valid]) & sim.get(self.p[ready]) != 0
    }

    /// Any legal burst at `base`: narrow, unaligned, up to its page.
    fn any(&mut self, base: u64) -> Flight {
        let size = if self.rng.one_in(2) { 6 } else { self.rng.below(7) };
        let mut addr = base + self.rng.below(MIB);
        if self.rng.one_in(2) {
            addr &= !((1 << size) - 1);
        }
        let first = addr & !((1 << size) - 1);
        let room = ((4096 - first % 4096) >> size).min(256);
        let len = if self.rng.one_in(50) { room - 1 } else { self.rng.below(room.min(8)) };
        Flight { id: self.rng.below(6), addr, len, size, beats: 0 }
    }

    fn draw(&mut self) {
        if self.rng.one_in(200) {
            self.pace = [(); 10].map(|()| [0, 0, 10, 50, 90][self.rng.below(5) as usize]);
        }
        if self.bursts < self.most
            && self.ar.len() < 4
            && self.reads.len() < 40
            && self.rng.one_in(3)
        {
            // Reads of every region.
            let base = if self.base == SECOND { SECOND } else { self.rng.below(4) * MIB };
            let burst = self.any(base);
            self.ar.push_back(burst);
            self.bursts += 1;
        }
        if self.bursts < self.most
            && self.aw.len() < 4
            && self.writes.len() < 40
            && self.rng.one_in(3)
        {
            let mut burst = self.any(self.base);
            let mut whole = false;
            if !self.outputs.is_empty() && self.rng.one_in(3) {
                let k = self.rng.below(2) as usize;
                let (base, at) = self.outputs[k];
                if at < base + MIB {
                    let room = (4096 - at % 4096) / 64;
                    let len = self.rng.below(room.min(10));
                    burst = Flight { addr: at, len, size: 6, ..burst };
                    self.outputs[k].1 += (len + 1) * 64;
                    whole = true;
                }
            }
            for beat in 0..=burst.len {
                let lanes = burst.lanes(beat);
                let strobes = if whole { lanes } else { lanes & self.rng.next_u64() };
                self.w.push_back((strobes, beat == burst.len));
            }
            self.aw.push_back(burst);
            self.bursts += 1;
        }
    }

    fn stall(&mut self, k: usize) -> bool {
        self.rng.below(100) < self.pace[k]
    }

    /// The handshakes of the cycle.
    fn sample(&mut self, sim: &Sim) {
        if self.on(sim, "r") {
            let (id, last) = (sim.get(self.p["rid"]), sim.get(self.p["rlast"]) != 0);
            let k = self.reads.iter().position(|f| f.id == id).expect("owed");
            self.reads[k].beats += 1;
            if last {
                self.reads.remove(k);
            }
        }
        if self.on(sim, "b") {
            let id = sim.get(self.p["bid"]);
            let k = self.writes.iter().position(|f| f.id == id).expect("owed");
            self.writes.remove(k);
        }
        if self.on(sim, "aw") {
            self.writes.extend(self.aw.pop_front());
        }
        if self.on(sim, "ar") {
            self.reads.extend(self.ar.pop_front());
        }
        if self.on(sim, "w") {
            self.w_beats.extend(self.w.pop_front().map(|(_, last)| last));
        }
        // Beats go to the oldest burst that needs them.
        while let Some(f) = self.writes.iter_mut().find(|f| f.beats <= f.len)
            && self.w_beats.pop_front().is_some()
        {
            f.beats += 1;
        }
    }

    /// The values of the next cycle. What waits for ready stays.
    fn drive(&mut self, sim: &mut Sim, took: [bool; 5]) {
        self.draw();
        for (k, (channel, took)) in ["aw", "ar", "w", "b", "r"].into_iter().zip(took).enumerate() {
            let name = |what: &str| -> &'static str {
                CHANNELS.iter().find(|n| **n == format!("{channel}{what}")).expect("signal")
            };
            let (valid, ready) = (self.p[name("valid")], self.p[name("ready")]);
            if took {
                sim.set(valid, 0);
            }
            if sim.get(valid) == 0 && !self.stall(k) && self.next(sim, channel) {
                sim.set(valid, 1);
            }
            let go = !self.stall(5 + k);
            sim.set(ready, u64::from(go));
        }
    }

    /// Sets the payload of a channel; whether there is one.
    fn next(&mut self, sim: &mut Sim, channel: &str) -> bool {
        match channel {
            "aw" | "ar" => {
                let queue = if channel == "aw" { &self.aw } else { &self.ar };
                let Some(f) = queue.front().copied() else { return false };
                let values = [
                    ("id", f.id),
                    ("addr", f.addr),
                    ("len", f.len),
                    ("size", f.size),
                    ("burst", 1),
                ];
                for (name, value) in values {
                    let name = format!("{channel}{name}");
                    sim.set(self.p[name.as_str()], value);
                }
            }
            "w" => {
                // Write data may be ahead of their request.
                let Some((strobes, last)) = self.w.front().copied() else { return false };
                self.rng.fill(&mut sim.raw_mut(self.p["wdata"])[..8]);
                sim.set(self.p["wstrb"], strobes);
                sim.set(self.p["wlast"], u64::from(last));
            }
            "b" => {
                let oldest = |k: usize| {
                    let f = self.writes[k];
                    f.beats > f.len && self.writes[..k].iter().all(|o| o.id != f.id)
                };
                let done: Vec<usize> = (0..self.writes.len()).filter(|k| oldest(*k)).collect();
                if done.is_empty() {
                    return false;
                }
                let k = done[self.rng.below(done.len() as u64) as usize];
                sim.set(self.p["bid"], self.writes[k].id);
            }
            _ => {
                // Beats of different ids interleave.
                if self.reads.is_empty() {
                    return false;
                }
                let id = self.reads[self.rng.below(self.reads.len() as u64) as usize].id;
                let Some(f) = self.reads.iter().find(|f| f.id == id).copied() else { return false };
                self.rng.fill(&mut sim.raw_mut(self.p["rdata"])[..8]);
                sim.set(self.p["rid"], id);
                sim.set(self.p["rlast"], u64::from(f.beats == f.len));
            }
        }
        true
    }
}

/// Legal traffic on both ports; output regions begin a new epoch when they are full.
fn legal(seed: u64, bursts: u64) {
    let mut b = Bench::new();
    let mut ports =
        [0, 1].map(|p| Traffic::new(&b.sim, p, seed.wrapping_mul(977) + p as u64, bursts / 2));
    let mut cycles = 0;
    while !(ports.iter().all(|t| t.bursts == t.most && t.idle())) {
        b.sim.settle();
        b.checker.sample(&b.sim);
        let took = [0, 1].map(|p: usize| {
            let t = &mut ports[p];
            let took = ["aw", "ar", "w", "b", "r"].map(|c| t.on(&b.sim, c));
            t.sample(&b.sim);
            took
        });
        b.sim.edge();
        b.set("epoch", 0);
        for (t, took) in ports.iter_mut().zip(took) {
            t.drive(&mut b.sim, took);
        }
        let full = ports[0].outputs.iter().position(|(base, at)| *at == base + MIB);
        if let Some(k) = full
            && ports[0].aw.is_empty()
            && ports[0].w.is_empty()
            && ports[0].writes.is_empty()
        {
            ports[0].outputs[k].1 = ports[0].outputs[k].0;
            b.all(&[("epoch", 1), ("epoch_region", 2 + k as u64)]);
        }
        // An interrupt while nothing is open.
        b.set("irq", u64::from(ports.iter().all(Traffic::idle)));
        cycles += 1;
        assert!(cycles < 400 * bursts, "seed {seed}: no progress");
        let Checked { reports, .. } = b.checker.take(&b.sim);
        assert!(reports.is_empty(), "seed {seed}: {}", reports[0]);
    }
    b.ticks(40);
    assert_eq!(b.checker.take(&b.sim), Checked { bursts, ..Checked::default() }, "seed {seed}");
    // `cargo xtask kit` reads this line.
    println!("legal bursts {bursts}");
}

#[test]
fn legal_traffic_raises_no_rule() {
    for seed in 0..10 {
        legal(seed, 10_000);
    }
}

mod long {
    #[test]
    #[ignore = "minutes"]
    fn a_million_legal_bursts_raise_no_rule() {
        for seed in 100..110 {
            super::legal(seed, 100_000);
        }
    }
}
