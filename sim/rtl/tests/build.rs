//! A tiny design is built, cached and driven.

use shef_rtl::{DesignSpec, Error, Sim, build};
use std::path::PathBuf;

fn scratch(name: &str) -> PathBuf {
    let d = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&d).expect("scratch folder");
    d
}

fn tiny(name: &str, step: u32) -> DesignSpec {
    let d = scratch(name);
    std::fs::write(
        d.join("tiny_pkg.sv"),
        format!("package tiny_pkg; localparam int unsigned STEP = {step}; endpackage\n"),
    )
    .unwrap();
    std::fs::write(
        d.join("tiny.sv"),
        r"module tiny #(parameter int unsigned Start = 3) (
  input logic clk_i, input logic rst_ni, input logic [127:0] wide_i, output logic [127:0] wide_o,
  output logic [15:0] count_o, output logic [47:0] long_o, input logic [4:0] add_i, output logic [4:0] sum_o);
  always_ff @(posedge clk_i)
    if (!rst_ni) begin count_o <= 16'(Start); long_o <= 48'd0; wide_o <= '0; end
    else begin count_o <= count_o + 16'(tiny_pkg::STEP); long_o <= long_o + 48'h1_0000_0001; wide_o <= ~wide_i; end
  assign sum_o = add_i + 5'd1;
endmodule
",
    )
    .unwrap();
    DesignSpec::new("tiny").search(&d)
}

#[test]
fn drives_ports_of_every_width() {
    let lib = build(&tiny("ports", 2).param("Start", 7)).expect("build");
    let mut s = Sim::new(&lib).expect("instance");
    s.reset("rst_ni", 2);
    assert_eq!(s.peek("count_o"), 7);
    let bytes: Vec<u8> = (0..16).collect();
    s.poke_be("wide_i", &bytes);
    s.poke("add_i", 31);
    s.eval();
    assert_eq!(s.peek("sum_o"), 0);
    s.tick();
    assert_eq!(s.peek("count_o"), 9);
    assert_eq!(s.peek_be("wide_o"), bytes.iter().map(|b| !b).collect::<Vec<u8>>());
    s.run(99);
    assert_eq!(s.peek("long_o"), 100 * 0x1_0000_0001);
    assert_eq!(s.cycles(), 102);
    // Two instances do not share state.
    let mut t = Sim::new(&lib).expect("instance");
    t.reset("rst_ni", 1);
    assert_eq!((s.peek("count_o"), t.peek("count_o")), (207, 7));
    assert!(matches!(t.port("nothing"), Err(Error::NoPort { .. })));
}

#[test]
fn digest_follows_sources_and_parameters() {
    let a = tiny("digest", 1);
    let da = build(&a).expect("build").design_digest();
    assert_eq!(da, a.digest().unwrap());
    assert_ne!(da, build(&a.clone().param("Start", 4)).expect("build").design_digest());
    let b = tiny("digest", 5);
    let lib = build(&b).expect("build");
    assert_ne!(da, lib.design_digest());
    let mut s = Sim::new(&lib).expect("instance");
    s.reset("rst_ni", 1);
    s.tick();
    assert_eq!(s.peek("count_o"), 8); // the new text was built, not the cached one
}

#[test]
fn refused_rtl_names_the_log() {
    let d = scratch("broken");
    std::fs::write(
        d.join("broken.sv"),
        "module broken (input logic clk_i); assign nothing = clk_i endmodule\n",
    )
    .unwrap();
    let Err(Error::Verilate { log, tail, .. }) = build(&DesignSpec::new("broken").search(&d))
    else {
        panic!("accepted")
    };
    assert!(std::path::Path::new(&log).is_file() && tail.contains("broken.sv"), "{log} {tail}");
    assert!(tail.lines().all(|line| line.starts_with("  | ")), "{tail}");
    assert!(matches!(
        build(&DesignSpec::new("absent").search(&d)),
        Err(Error::Project(shef_project::Error::SourceMissing { .. }))
    ));
}

#[test]
fn what_the_design_calls_an_error_ends_the_build() {
    let d = scratch("own_error");
    let text = "module own #(parameter int unsigned N = 3) (input logic clk_i, output logic q_o);\n  if (N < 3) begin : g_bad\n    $error(\"own: at least 3\");\n  end\n  always_ff @(posedge clk_i) q_o <= !q_o;\nendmodule\n";
    std::fs::write(d.join("own.sv"), text).unwrap();
    let spec = DesignSpec::new("own").search(&d);
    build(&spec).expect("3 is enough");
    assert!(matches!(build(&spec.param("N", 2)), Err(Error::Verilate { .. })));
}

/// Records of a coverage file: place and hits of the records in `page`.
fn records(file: &std::path::Path, page: &str) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(file).expect("a record");
    let of = |l: &str, key: &str| {
        l.split('\u{1}').find_map(|p| p.strip_prefix(key)?.strip_prefix('\u{2}').map(str::to_owned))
    };
    let mut found: Vec<(String, u64)> = text
        .lines()
        .filter(|l| of(l, "page").is_some_and(|p| p.starts_with(page)))
        .map(|l| {
            (
                of(l, "h").unwrap_or_default().split('\'').next().unwrap_or_default().to_owned(),
                l.rsplit(' ').next().unwrap().parse().unwrap(),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn coverage_tells_instances_apart_and_goes_on_over_a_snapshot() {
    let d = scratch("coverage");
    std::fs::write(
        d.join("points.sv"),
        r"module points (input logic clk_i, input logic rst_ni, input logic [1:0] x_i, output logic [7:0] sum_o);
  always_ff @(posedge clk_i)
    if (!rst_ni) sum_o <= 8'd0;
    else sum_o <= sum_o + 8'(x_i);
  for (genvar i = 0; i < 3; i++) begin : g_value
    seen: cover property (@(posedge clk_i) rst_ni && x_i == 2'(i));
  end
endmodule
",
    )
    .unwrap();
    let lib = build(&DesignSpec::new("points").search(&d).savable().coverage()).expect("build");
    let mut s = Sim::new(&lib).expect("instance");
    s.reset("rst_ni", 2);
    s.poke("x_i", 1);
    s.run(4);
    let then = s.save().expect("a snapshot");
    s.poke("x_i", 2);
    s.run(3);
    assert_eq!(s.peek("sum_o"), 10);
    s.restore(&then).expect("its own snapshot");
    s.eval();
    assert_eq!(s.peek("sum_o"), 4);
    // counts since the snapshot are kept
    let file = d.join("points.dat");
    s.write_coverage(&file).expect("a record");
    let hits: Vec<u64> = records(&file, "v_user")
        .into_iter()
        .map(|(place, n)| if place.contains("g_value") { n } else { panic!("{place}") })
        .collect();
    assert_eq!(hits, [0, 4, 3]);
    assert!(records(&file, "v_branch").iter().all(|(_, n)| *n > 0));
    // the state holds pointers into its instance
    let mut other = Sim::new(&lib).expect("instance");
    assert!(matches!(other.restore(&then), Err(Error::SnapshotOff(_))));
    let plain = Sim::new(&build(&tiny("no-coverage", 1)).expect("build")).expect("instance");
    assert!(matches!(plain.write_coverage(&file), Err(Error::CoverageOff(_))));
}
