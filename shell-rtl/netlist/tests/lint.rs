//! A small custom logic without a fault, and one fault at a time.

use std::collections::BTreeMap;
use std::path::Path;

use shef_netlist::{CustomLogic, Report, lint};
use shef_project::repo_root;

/// The files of the small custom logic: its own and those of this project that it uses.
struct Small(BTreeMap<String, String>);

impl Small {
    fn new() -> Self {
        let mut files = BTreeMap::new();
        let own = repo_root().join("shell-rtl/netlist/tests/cl_small");
        let all = std::fs::read_dir(own).unwrap().map(|entry| entry.unwrap().path());
        let shared = ["shef_sync", "shef_reset_sync", "shef_async_fifo"]
            .map(|name| repo_root().join(format!("shell-rtl/shell/aws_f2/{name}.sv")));
        for path in all.chain(shared) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read_to_string(path).unwrap());
        }
        Self(files)
    }

    /// Replaces a text that is in a file once.
    fn edit(mut self, file: &str, from: &str, to: &str) -> Self {
        let text = self.0.get_mut(file).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{from} in {file}");
        *text = text.replace(from, to);
        self
    }

    /// Adds statements to the top module.
    fn more(self, text: &str) -> Self {
        self.edit("cl_small.sv", "  // more\n", &format!("  // more\n{text}\n"))
    }

    fn add(mut self, file: &str, text: &str) -> Self {
        self.0.insert(file.to_owned(), text.to_owned());
        self
    }

    fn write(&self, to: &Path) {
        let (design, constraints) = (to.join("design"), to.join("build/constraints"));
        std::fs::create_dir_all(&design).unwrap();
        std::fs::create_dir_all(&constraints).unwrap();
        for (name, text) in &self.0 {
            let folder = if name.ends_with(".xdc") { &constraints } else { &design };
            std::fs::write(folder.join(name), text).unwrap();
        }
    }

    fn lint_with(&self, hdk: Option<&Path>) -> shef_netlist::Result<Report> {
        let folder = tempfile::tempdir().unwrap();
        let (logic, scratch) = (folder.path().join("cl_small"), folder.path().join("scratch"));
        self.write(&logic);
        std::fs::create_dir(&scratch).unwrap();
        lint(&CustomLogic::in_folder(&logic)?, hdk, &scratch)
    }

    fn lint(&self) -> Report {
        self.lint_with(None).unwrap()
    }

    /// Exactly these checks fail, the first of them at this place and with these words.
    #[track_caller]
    fn fails(&self, checks: &[&str], place: &str, words: &str) {
        let report = self.lint();
        let failed: Vec<&str> =
            report.checks.iter().filter(|check| !check.passed).map(|check| check.check).collect();
        assert_eq!(failed, checks, "{:#?}", findings(&report));
        let first = report.checks.iter().find(|check| check.check == checks[0]).unwrap();
        let found = first
            .findings
            .iter()
            .any(|finding| finding.place.contains(place) && finding.what.contains(words));
        assert!(found, "{place}: {words}: {:#?}", first.findings);
        assert!(!first.help().is_empty(), "{} has no help", first.code);
        if ["crossings", "constraints"].contains(&checks[0]) {
            assert!(report.crossings_unnamed > 0);
        }
    }
}

fn findings(report: &Report) -> Vec<(&str, &str, &str)> {
    let all = report.checks.iter().flat_map(|check| {
        let found = check.findings.iter();
        found.map(|finding| (check.check, finding.place.as_str(), finding.what.as_str()))
    });
    all.collect()
}

#[test]
fn the_small_custom_logic_is_clean() {
    let report = Small::new().lint();
    assert!(report.passed(), "{:#?}", findings(&report));
    assert!(report.checks.len() >= 12, "{} checks", report.checks.len());
    assert_eq!(report.crossings_unnamed, 0);
    let count = |form: &str| report.crossings.iter().filter(|line| line.form == form).count();
    let forms = ["synchroniser", "reset", "Gray counter", "FIFO memory", "static", "unknown"];
    assert_eq!(forms.map(count), [2, 2, 4, 2, 1, 0], "{:#?}", report.crossings);
    assert!(report.luts > 30 && report.lut_share < 0.01, "{} LUT", report.luts);
}

// ---- ports ----

/// A port list in the sources, as a header that was copied and edited.
fn own_ports(edit: impl Fn(String) -> String) -> Small {
    let ports = shef_gen::f2::ports(shef_gen::f2::TABLE).unwrap();
    let header = edit(shef_gen::f2::header(&ports));
    Small::new()
        .edit("cl_small.sv", "`include \"cl_ports.vh\"", "`include \"small_ports.vh\"")
        .add("small_ports.vh", &header)
}

#[test]
fn a_renamed_port_is_missing_and_new() {
    let renamed = |text: String| text.replace(" sh_cl_glcount1", " sh_cl_glcount2");
    let small = own_ports(renamed);
    small.fails(&["ports"], "cl_small.sv:", "sh_cl_glcount1 is missing: expected input of 64 bit");
    small.fails(&["ports"], "small_ports.vh:", "sh_cl_glcount2 is no port of the shell");
}

#[test]
fn width_and_direction_of_a_port_are_those_of_the_shell() {
    let narrow = own_ports(|text| text.replace("[54:0] ocl_cl_awuser", "[53:0] ocl_cl_awuser"));
    narrow.fails(&["ports"], "small_ports.vh:", "ocl_cl_awuser is input of 54 bit");
    let turned = own_ports(|text| text.replace("input  logic sel,", "output logic sel,"));
    turned.more("assign sel = 1'b0;").fails(
        &["ports"],
        "small_ports.vh:",
        "sel is output of 1 bit",
    );
}

/// A kit with this header.
fn with_header(text: &str) -> shef_netlist::Result<Report> {
    let hdk = tempfile::tempdir().unwrap();
    let folder = hdk.path().join("hdk/common/shell_stable/design/interfaces");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("cl_ports.vh"), text).unwrap();
    Small::new().lint_with(Some(hdk.path()))
}

#[test]
fn the_header_of_a_kit_is_read_by_the_front_end() {
    let header = shef_gen::f2::header(&shef_gen::f2::ports(shef_gen::f2::TABLE).unwrap());
    let same = with_header(&header).unwrap();
    assert!(same.passed(), "{:#?}", findings(&same));
    assert!(same.ports.contains("does not know"), "{}", same.ports);
    // A macro writes a port, and one is in a branch that is not taken.
    let macros = header.replace(
        "  input  logic drck,",
        "`define IN(name) input logic name\n  `IN(drck),\n`ifdef NEVER\n  input logic never,\n`endif",
    );
    let macros = with_header(&macros).unwrap();
    assert!(macros.passed(), "{:#?}", findings(&macros));
    // A newer kit: a port more, one wider.
    let newer = header
        .replace("  input  logic drck,", "  input  logic drck,\n  output logic cl_sh_new,")
        .replace("[1:0] sh_cl_pwr_state", "[2:0] sh_cl_pwr_state");
    let newer = with_header(&newer).unwrap();
    let found = findings(&newer);
    assert!(found.iter().any(|(check, _, what)| *check == "ports" && what.contains("2 places")));
    assert!(found.iter().any(|(check, _, what)| *check == "outputs"
        && what.contains("cl_sh_new has no driver")));
}

#[test]
fn a_header_is_compared_port_by_port() {
    let known = shef_gen::f2::header(&shef_gen::f2::ports(shef_gen::f2::TABLE).unwrap());
    let compare = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cl_ports.vh");
        std::fs::write(&file, text).unwrap();
        shef_netlist::header(&file, folder.path())
    };
    let same = compare(&known).unwrap();
    assert_eq!((same.ports, same.expected, same.differences.len()), (217, 217, 0));
    for (from, to, says) in [
        ("  input  logic clk_main_a0,", "", "clk_main_a0 is missing"),
        (
            "output logic [15:0] cl_sh_pcim_awid",
            "output logic [17:0] cl_sh_pcim_awid",
            "cl_sh_pcim_awid is output of 18 bit, not output of 16 bit",
        ),
        (
            "output logic cl_sh_flr_done",
            "input logic cl_sh_flr_done",
            "cl_sh_flr_done is input of 1 bit, not output of 1 bit",
        ),
        ("  input  logic drck,", "  input  logic drck, input logic new_clk,", "new_clk is new"),
    ] {
        assert_eq!(known.matches(from).count(), 1, "{from}");
        assert_eq!(compare(&known.replace(from, to)).unwrap().differences, [says]);
    }
    let twice = known.replace("  input  logic drck,", "  input  logic drck, input logic drck,");
    assert_eq!(compare(&twice).unwrap_err().code(), "SHEF-NET-002");
    assert_eq!(compare("").unwrap().differences.len(), 217);
}

#[test]
fn a_kit_without_a_header_or_with_a_broken_one_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let error = Small::new().lint_with(Some(empty.path())).unwrap_err();
    assert_eq!(error.code(), "SHEF-NET-001");
    // A link that was checked out as text, and bytes that are no text.
    for broken in ["../../shell_v1/design/interfaces/cl_ports.vh", "input logic a b c", "\u{0}"] {
        let error = with_header(broken).unwrap_err();
        assert_eq!(error.code(), "SHEF-NET-002", "{error}");
        assert!(error.to_string().contains("cl_ports.vh"), "{error}");
    }
}

// ---- drivers ----

#[test]
fn open_outputs_are_found() {
    let pcis = Small::new().edit("cl_small.sv", "  assign cl_sh_dma_pcis_rdata = '0;\n", "").edit(
        "cl_small.sv",
        "  assign cl_sh_dma_pcis_rresp = 2'b00;\n",
        "",
    );
    pcis.fails(&["outputs"], "cl_ports.vh:", "cl_sh_dma_pcis_rdata has no driver");
    pcis.fails(&["outputs"], "cl_ports.vh:", "cl_sh_dma_pcis_rresp has no driver");
    let bready = Small::new().edit("cl_small.sv", "  assign cl_sh_pcim_bready = 1'b1;\n", "");
    bready.fails(&["outputs"], "cl_ports.vh:", "cl_sh_pcim_bready has no driver");
    let part = Small::new().edit(
        "cl_small.sv",
        "assign cl_sh_pcim_awcache = '0;",
        "assign cl_sh_pcim_awcache[2:0] = '0;",
    );
    part.fails(&["outputs"], "cl_ports.vh:", "cl_sh_pcim_awcache[3] has no driver");
}

#[test]
fn a_second_driver_is_found_where_it_is_made() {
    let plain = "  assign cl_sh_pcim_wlast = sda_b_q;";
    let by_macro =
        "  `define SMALL_PAIR(a, b) assign a``_``b = sda_b_q;\n  `SMALL_PAIR(cl_sh_pcim, wlast)";
    let generated = "  for (genvar i = 0; i < 2; i++) begin : g_x\n    if (i == 1) begin : g_y\n      \
                     assign cl_sh_pcim_wlast = sda_b_q;\n    end\n  end";
    for text in [plain, by_macro, generated] {
        let small = Small::new().more(text);
        small.fails(&["outputs"], "", "cl_sh_pcim_wlast has a second driver");
    }
    let instance = "  small_step u_more (.value_i('0), .value_o(cl_sh_status0));";
    let small = Small::new().more(instance);
    small.fails(&["outputs"], "", "cl_sh_status0[0] has a second driver");
}

#[test]
fn an_input_of_the_shell_is_not_driven() {
    for text in [
        "  assign clk_hbm_ref = sda_b_q;",
        "  `define SMALL_REF clk_hbm_ref\n  assign `SMALL_REF = sda_b_q;",
        "  if (1) begin : g_ref\n    assign clk_hbm_ref = sda_b_q;\n  end",
    ] {
        Small::new().more(text).fails(&["inputs"], "", "clk_hbm_ref is an input");
    }
}

#[test]
fn a_net_without_a_driver_is_found_where_it_is_read() {
    let small = Small::new()
        .edit(
            "small_core.sv",
            "logic [31:0] sum_q, far, near;",
            "logic [31:0] sum_q, far, near, nowhere;",
        )
        .edit("small_core.sv", "near + 32'(setting_q)", "near + nowhere + 32'(setting_q)");
    small.fails(&["undriven"], "small_core.sv:", "u_core.nowhere[0] is read and has no driver");
}

#[test]
fn constants_do_not_answer() {
    let small = |edits: &[(&str, &str)]| {
        edits.iter().fold(Small::new(), |small, (from, to)| small.edit("cl_small.sv", from, to))
    };
    let done = "cl_sh_flr_done <= sh_cl_flr_assert;";
    // Behind logic, registers with and without a reset, and in a loop.
    let report = small(&[
        ("  // ---- clocks", "  logic none_q, one_q, stuck_q;\n  // ---- clocks"),
        (done, "cl_sh_flr_done <= sh_cl_flr_assert & &{none_q, 1'b1};"),
        ("assign cl_sh_dma_pcis_rvalid = pcis_r_q;", "assign cl_sh_dma_pcis_rvalid = 1'b0;"),
        ("cl_sh_dma_pcis_rlast = pcis_left_q == '0;", "cl_sh_dma_pcis_rlast = pcis_left_q < 8'd0;"),
        ("cl_sda_rvalid = sda_r_q", "cl_sda_rvalid = one_q"),
        ("cl_sda_awready = sda_write", "cl_sda_awready = stuck_q"),
        ("cl_sh_pcim_awvalid = 1'b0", "cl_sh_pcim_awvalid = !none_q"),
        ("cl_sh_pcim_wvalid = 1'b0", "cl_sh_pcim_wvalid = sda_b_q"),
        ("cl_sh_apppf_irq_req = '0", "cl_sh_apppf_irq_req = {sda_b_q, 14'd0, 1'b1}"),
        (".rst_n(main_rst_n)", ".rst_n(none_q)"),
        (".stat_rst_n(main_rst_n)", ".stat_rst_n(1'b0)"),
    ])
    .more(
        "  always_ff @(posedge clk_main_a0) none_q <= sda_b_q & 1'b0;\n  \
         always_ff @(posedge clk_main_a0) stuck_q <= stuck_q && sda_b_q;\n  \
         always_ff @(posedge clk_main_a0 or negedge main_rst_n)\n    if (!main_rst_n) one_q <= 1'b0;\n    else one_q <= 1'b1;",
    )
    .lint();
    let found = findings(&report);
    let expected = [
        ("answers", "cl_ports.vh:", "cl_sh_flr_done is constant"),
        ("answers", "cl_ports.vh:", "cl_sh_dma_pcis_rvalid is constant"),
        ("answers", "cl_ports.vh:", "cl_sh_dma_pcis_rlast is constant"),
        ("answers", "cl_ports.vh:", "cl_sda_rvalid is constant"),
        ("answers", "cl_ports.vh:", "cl_sda_awready is constant"),
        ("answers", "cl_ports.vh:", "cl_sh_pcim_awvalid is constant 1"),
        ("answers", "cl_ports.vh:", "cl_sh_pcim_wlast is constant 0, but cl_sh_pcim_wvalid"),
        ("answers", "cl_ports.vh:", "cl_sh_apppf_irq_req is constant 1"),
        ("memory", "cl_small.sv:", " rst_n of sh_ddr is always 0"),
        ("memory", "cl_small.sv:", "stat_rst_n of sh_ddr is always 0"),
    ];
    for (check, place, words) in expected {
        let hit = |(own, at, what): &(&str, &str, &str)| {
            *own == check && at.contains(place) && format!(" {what}").contains(words)
        };
        assert!(found.iter().any(hit), "{words}: {found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    // A master that does not take its answers.
    let master = Small::new()
        .edit(
            "cl_small.sv",
            "assign cl_sh_pcim_awvalid = 1'b0;",
            "assign cl_sh_pcim_awvalid = sda_b_q;",
        )
        .edit(
            "cl_small.sv",
            "assign cl_sh_pcim_bready = 1'b1;",
            "assign cl_sh_pcim_bready = 1'b0;",
        );
    master.fails(&["answers"], "cl_ports.vh:", "cl_sh_pcim_bready is constant 0");
}

#[test]
fn the_statistics_bus_belongs_to_the_memory_controller() {
    let open = Small::new()
        .edit("cl_small.sv", ".sh_ddr_stat_bus_ack(cl_sh_ddr_stat_ack),", ".sh_ddr_stat_bus_ack(),")
        .more("  assign cl_sh_ddr_stat_ack = 1'b1;");
    open.fails(&["memory"], "cl_ports.vh:", "cl_sh_ddr_stat_ack does not come from sh_ddr");
}

/// The small custom logic with the HBM IP, its monitors and clocks connected.
fn with_hbm() -> Small {
    let mut small = Small::new();
    let mut pins = Vec::new();
    for n in 0..2 {
        for name in ["paddr", "psel", "penable", "pwrite", "pwdata", "prdata", "pready", "pslverr"]
        {
            small = small.edit("cl_small.sv", &format!("  `SMALL_TIE(hbm_apb_{name}_{n});\n"), "");
            let pin = name.to_uppercase();
            pins.push(format!(".APB_{n}_{pin}_MON(hbm_apb_{name}_{n})"));
        }
        pins.push(format!(".MON_APB_{n}_PRESET_N(hbm_apb_preset_n_{n})"));
        pins.push(format!(".APB_{n}_PRESET_N(main_rst_n)"));
        pins.push(format!(".HBM_REF_CLK_{n}(clk_hbm_ref), .APB_{n}_PCLK(clk_hbm_ref)"));
    }
    pins.extend((0..32).map(|p| format!(".AXI_{p:02}_ACLK(clk_main_a0)")));
    small.more(&format!("  cl_hbm u_hbm (\n      {}\n  );", pins.join(",\n      ")))
}

#[test]
fn the_hbm_gives_the_shell_its_monitors() {
    let report = with_hbm().lint();
    assert!(report.passed(), "{:#?}", findings(&report));
    let edit = |from: &str, to: &str| with_hbm().edit("cl_small.sv", from, to);
    let open = edit(".APB_1_PREADY_MON(hbm_apb_pready_1)", ".APB_1_PREADY_MON()")
        .more("  assign hbm_apb_pready_1 = 1'b0;");
    open.fails(&["hbm"], "cl_ports.vh:", "hbm_apb_pready_1 is not connected to APB_1_PREADY_MON");
    let crossed = edit(".APB_0_PSEL_MON(hbm_apb_psel_0)", ".APB_0_PSEL_MON(hbm_apb_penable_0)")
        .edit(
            "cl_small.sv",
            ".APB_0_PENABLE_MON(hbm_apb_penable_0)",
            ".APB_0_PENABLE_MON(hbm_apb_psel_0)",
        );
    crossed.fails(&["hbm"], "cl_ports.vh:", "hbm_apb_psel_0 is not connected to APB_0_PSEL_MON");
    let reset = edit("MON_APB_0_PRESET_N(hbm_apb_preset_n_0)", "MON_APB_0_PRESET_N(1'b1)");
    reset.fails(&["hbm"], "cl_ports.vh:", "hbm_apb_preset_n_0 is not connected");
    let clock = edit(".HBM_REF_CLK_1(clk_hbm_ref)", ".HBM_REF_CLK_1(clk_main_a0)");
    clock.fails(
        &["hbm", "crossings"],
        "cl_ports.vh:",
        "clk_hbm_ref is not connected to HBM_REF_CLK_1",
    );
    let still = edit(".AXI_23_ACLK(clk_main_a0)", ".AXI_23_ACLK(1'b0)");
    still.fails(&["hbm"], "cl_small.sv:", "AXI_23_ACLK of cl_hbm has no clock");
    let held =
        edit(".APB_1_PRESET_N(main_rst_n)", ".APB_1_PRESET_N(1'b0), .AXI_07_AWVALID(sda_b_q)");
    held.fails(&["hbm"], "cl_small.sv:", "APB_1_PRESET_N of cl_hbm is always 0");
    held.fails(&["hbm"], "cl_small.sv:", "AXI_07_ARESET_N of cl_hbm is always 0");
    let driven = with_hbm().more("  assign clk_hbm_ref = sda_b_q;");
    driven.fails(&["inputs"], "", "clk_hbm_ref is an input");
    let twice = with_hbm().more("  cl_hbm u_second (.HBM_REF_CLK_0(clk_hbm_ref));");
    twice.fails(&["hbm"], "cl_small.sv:", "2 instances of cl_hbm");
}

/// Parameters and macros are those that the script of synthesis sets.
#[test]
fn settings_of_the_synthesis_script_hold() {
    let folder = tempfile::tempdir().unwrap();
    let logic = folder.path().join("cl_small");
    Small::new().write(&logic);
    std::fs::create_dir_all(logic.join("build/scripts")).unwrap();
    let with = |options: &str| {
        let script =
            format!("# generic\nsynth_design -top ${{CL}} \\\n  {options}\nwrite_checkpoint x\n");
        std::fs::write(logic.join("build/scripts/synth_cl_small.tcl"), script).unwrap();
        CustomLogic::in_folder(&logic).map(|logic| (logic.sources.params, logic.sources.defines))
    };
    let (params, defines) =
        with("-verilog_define X -generic CoreDiv8=64 -verilog_define Y=2 -generic Hbm=1").unwrap();
    let pairs = |all: [(&str, &str); 2]| all.map(|(n, v)| (n.to_owned(), v.to_owned()));
    assert_eq!(params, pairs([("CoreDiv8", "64"), ("Hbm", "1")]));
    assert_eq!(defines, pairs([("X", "1"), ("Y", "2")]));
    for options in [
        "-verilog_define {X Y}",
        "-verilog_define $more",
        "-verilog_define",
        "-verilog_def X",
        "-generic Hbm",
        "-generic [list Hbm=1]",
        "-gen Hbm=1",
        "; set_property verilog_define X [current_fileset]",
    ] {
        let error = with(options).unwrap_err();
        assert_eq!(error.code(), "SHEF-NET-003", "{options}: {error}");
        assert!(error.to_string().contains("synth_cl_small.tcl"), "{error}");
    }
}

// ---- cells and clocks ----

#[test]
fn cells_that_aws_refuses_are_found_under_any_name() {
    let icap = "  for (genvar i = 0; i < 1; i++) begin : g_some\n    ICAPE3 u_some (.CLK(clk_main_a0), .CSIB(1'b1), \
                .RDWRB(1'b1), .I('0), .O(), .AVAIL(), .PRDONE(), .PRERROR());\n  end";
    Small::new().more(icap).fails(&["cells"], "cl_small.sv:", "g_some[0].u_some is a ICAPE3");
    let by_macro = "  `define SMALL_CELL(a, b) a``b\n  `SMALL_CELL(DNA_PO, RTE2) u_dna (.CLK(clk_main_a0), .DIN(1'b0), \
                    .READ(1'b0), .SHIFT(1'b0), .DOUT());";
    Small::new().more(by_macro).fails(&["cells"], "cl_small.sv:", "u_dna is a DNA_PORTE2");
    let sysmon = "  SYSMONE4 u_harmless (.DCLK(clk_main_a0));";
    Small::new().more(sysmon).fails(&["cells"], "cl_small.sv:", "u_harmless is a SYSMONE4");
}

#[test]
fn the_instance_cannot_change_a_clock() {
    let drp =
        Small::new().edit("small_clocks.sv", "assign drp_en = 1'b0;", "assign drp_en = locked_o;");
    drp.fails(&["clocks"], "small_clocks.sv:", "DEN of u_clocks.u_mmcm is");
    let clock = Small::new().edit("small_clocks.sv", "assign dclk = 1'b0;", "assign dclk = clk_i;");
    clock.fails(&["clocks"], "small_clocks.sv:", "DCLK of u_clocks.u_mmcm is");
    // Inputs that stop the clock cell, or clock it; a register of the main clock may stop it.
    let report = Small::new()
        .edit("small_clocks.sv", ".CLKIN2(1'b0)", ".CLKIN2(stop_i[1])")
        .edit("small_clocks.sv", ".RST(1'b0), .PWRDWN(1'b0)", ".RST(stop_i[0]), .PWRDWN(!stop_q)")
        .edit("small_clocks.sv", "clk_i,\n", "clk_i,\n    input  wire logic [1:0] stop_i,\n")
        .edit("small_clocks.sv", "  assign dclk", "  logic stop_q;\n  always_ff @(posedge clk_i) stop_q <= locked_o;\n  assign dclk")
        .edit("cl_small.sv", "      .core_clk_o(core_clk),", "      .stop_i(sh_cl_status_vdip[1:0]),\n      .core_clk_o(core_clk),")
        .more("  logic vdip_q, data_q, tck_q;\n  always_ff @(posedge sh_cl_status_vdip[0]) vdip_q <= !vdip_q;\n  \
               always_ff @(posedge ocl_cl_wdata[0]) data_q <= !data_q;\n  always_ff @(posedge tck) tck_q <= !tck_q;")
        .lint();
    let found: Vec<&str> = findings(&report)
        .into_iter()
        .filter_map(|(check, _, what)| (check == "clocks").then_some(what))
        .collect();
    let expected = [
        "CLKIN2 of u_clocks.u_mmcm is sh_cl_status_vdip[1]: expected a clock of the shell or of a clock cell",
        "RST of u_clocks.u_mmcm is sh_cl_status_vdip[0]: expected a register of clk_main_a0 or a reset of the shell",
        "the clock ocl_cl_wdata[0] is no clock of the shell or of a clock cell",
        "the clock sh_cl_status_vdip[0] is no clock of the shell or of a clock cell",
        "the clock tck is no clock of the shell or of a clock cell",
    ];
    let mut sorted = found.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    // A clock that a register makes.
    let made = Small::new().more(
        "  logic slow_q, other_q;\n  always_ff @(posedge clk_main_a0) slow_q <= !slow_q;\n  \
               always_ff @(posedge slow_q) other_q <= !other_q;",
    );
    made.fails(&["clocks"], "cl_small.sv:", "the clock slow_q is no clock of the shell");
}

/// Through the vendor's cells as well, and through a module without content and without a clock.
#[test]
fn a_loop_through_cells_is_found() {
    let declared = "  logic [1:0] around;\n";
    let more =
        "(* blackbox *)\nmodule small_box (input wire logic a_i, output logic y_o);\nendmodule\n";
    for cell in [
        "  LUT2 #(.INIT(4'h6)) u_lut (.I0(around[0]), .I1(sda_b_q), .O(around[1]));",
        "  MUXF7 u_mux (.I0(sda_b_q), .I1(around[0]), .S(sda_r_q), .O(around[1]));",
        "  SRL16E u_srl (.CLK(clk_main_a0), .CE(1'b1), .D(sda_b_q), .A0(around[0]), .A1(1'b0), .A2(1'b0), .A3(1'b0), .Q(around[1]));",
        "  small_box u_box (.a_i(around[0]), .y_o(around[1]));",
    ] {
        let small = Small::new()
            .add("small_box.sv", more)
            .more(&format!("{declared}  assign around[0] = !around[1];\n{cell}"));
        small.fails(&["loops"], "cl_small.sv:", "a loop of logic through around");
    }
    let straight = "  LUT2 #(.INIT(4'h6)) u_lut (.I0(sda_r_q), .I1(sda_b_q), .O(around[1]));\n  assign around[0] = around[1];";
    let report = Small::new().more(&format!("{declared}{straight}")).lint();
    assert!(report.passed(), "{:#?}", findings(&report));
}

/// A path between clocks through the vendor's cells, and into them.
#[test]
fn cells_of_the_vendor_are_part_of_a_path() {
    let lut = crossing(
        "",
        "  logic looked;\n  LUT1 #(.INIT(2'h1)) u_lut (.I0(source_q), .O(looked));\n  \
         always_ff @(posedge clk_main_a0) crossed_q <= looked;",
    );
    lut.fails(&["crossings", "constraints"], "cl_small.sv:", "logic before the first register");
    let flop = crossing(
        "",
        "  FDRE u_flop (.C(clk_main_a0), .CE(1'b1), .R(1'b0), .D(source_q), .Q(crossed_q));",
    );
    flop.fails(&["crossings", "constraints"], "cl_small.sv:", "expected a synchroniser before it");
    // The clock that only a cell of the vendor has.
    let back = crossing(
        "  logic flop;\n  FDRE u_flop (.C(core_clk), .CE(1'b1), .R(1'b0), .D(source_q), .Q(flop));",
        "  always_ff @(posedge clk_main_a0) crossed_q <= flop;",
    );
    back.fails(&["crossings", "constraints"], "cl_small.sv:", "no attribute ASYNC_REG");
}

#[test]
fn a_block_memory_of_the_vendor_has_one_clock() {
    let memory = |read: &str, write: &str| {
        crossing(
            "",
            &format!(
                "  logic [31:0] looked;\n  RAMB36E2 u_ram (.CLKARDCLK({read}), .CLKBWRCLK({write}), \
                 .DINBDIN({{31'd0, source_q}}), .DOUTADOUT(looked));\n  \
                 always_ff @(posedge {read}) crossed_q <= looked[0];"
            ),
        )
    };
    let one = memory("core_clk", "core_clk").lint();
    assert!(one.passed(), "{:#?}", findings(&one));
    memory("clk_main_a0", "core_clk").fails(
        &["crossings", "constraints"],
        "cl_small.sv:",
        "a vendor's memory with two clocks",
    );
    // Port B alone is of the core's clock.
    let input = memory("core_clk", "clk_main_a0").lint();
    let what = findings(&input).into_iter().any(|(check, _, what)| {
        check == "crossings"
            && what.contains("source_q")
            && what.contains("expected a synchroniser")
    });
    assert!(what, "{:#?}", findings(&input));
}

#[test]
fn nothing_gates_a_clock() {
    let gate = |from: &str, to: &str| Small::new().edit("small_clocks.sv", from, to);
    let ce = gate("u_core (.I(core_clk), .CE(1'b1)", "u_core (.I(core_clk), .CE(core_clk)");
    ce.fails(&["clocks"], "small_clocks.sv:", "CE of u_clocks.u_core is");
    let clr = gate(".CLR(1'b0), .O(kernel_clk_o)", ".CLR(locked), .O(kernel_clk_o)");
    clr.fails(&["clocks"], "small_clocks.sv:", "CLR of u_clocks.u_kernel is");
    // Any other cell that makes a clock.
    let mux = Small::new().more(
        "  logic either, made_q;\n  BUFGMUX u_mux (.I0(clk_main_a0), .I1(core_clk), .S(sda_b_q), .O(either));\n  \
         always_ff @(posedge either) made_q <= !made_q;",
    );
    mux.fails(&["clocks"], "cl_small.sv:", "is no clock of the shell or of a clock cell");
}

#[test]
fn a_loop_through_three_modules_is_found() {
    let small = Small::new().edit(
        "small_core.sv",
        ".value_i(word_i), .value_o(far)",
        ".value_i(near & word_i), .value_o(far)",
    );
    small.fails(&["loops"], "small_", "a loop of logic through");
}

#[test]
fn logic_that_only_looks_like_a_loop_is_none() {
    let small = Small::new().more(
        "  logic [3:0] ripple;\n  assign ripple[0] = sda_b_q;\n  assign ripple[3:1] = ripple[2:0] ^ {3{sda_r_q}};\n  \
         logic end_q;\n  always_ff @(posedge clk_main_a0) end_q <= ripple[3];",
    );
    let report = small.lint();
    assert!(report.passed(), "{:#?}", findings(&report));
}

#[test]
fn a_latch_is_found() {
    let small = Small::new().more("  logic held;\n  always_latch if (sda_b_q) held = sda_r_q;");
    small.fails(&["latches"], "cl_small.sv:", "held is a latch");
    let cell = Small::new().more(
        "  logic held, read_q;\n  LDCE u_held (.D(sda_b_q), .G(sda_r_q), .GE(1'b1), .CLR(1'b0), .Q(held));\n  \
         always_ff @(posedge clk_main_a0) read_q <= held;",
    );
    cell.fails(&["latches"], "cl_small.sv:", "u_held is a LDCE");
}

#[test]
fn ids_that_aws_refuses_or_its_script_spoils_are_found() {
    let id = |from: &str, to: &str| Small::new().edit("cl_small.sv", from, to);
    let two = id("32'h1D51_FEDC", "32'h2A51_FEDC");
    two.fails(&["ids"], "cl_ports.vh:", "cl_sh_id1 is 2a51fedc: it begins with 2");
    let three = id("32'hF0F0_1D0F", "32'h3000_10EE");
    three.fails(&["ids"], "cl_ports.vh:", "begins with 3");
    let reserved = id("32'hF0F0_1D0F", "32'hF100_1D0F");
    reserved.fails(&["ids"], "cl_ports.vh:", "expected a device of f000 to f0ff");
    let variable = id("32'h1D51_FEDC", "{31'd0, rst_main_n}");
    variable.fails(&["ids"], "cl_ports.vh:", "cl_sh_id1 is no constant");
}

// ---- crossings ----

/// A path from the core to clk_main_a0: `more` declares and assigns `crossed_q`.
fn crossing(core: &str, main: &str) -> Small {
    Small::new().more(&format!(
        "  logic crossed_q, source_q, twin_q;\n  always_ff @(posedge core_clk) begin\n    source_q <= sum[0];\n    \
         twin_q <= sum[1];\n  end\n{core}\n{main}\n"
    ))
}

#[test]
fn a_register_of_another_clock_needs_a_synchroniser() {
    let direct = crossing("", "  always_ff @(posedge clk_main_a0) crossed_q <= source_q;");
    direct.fails(
        &["crossings", "constraints"],
        "cl_small.sv:",
        "source_q (u_clocks.u_mmcm.CLKOUT0) to crossed_q",
    );
    let enable =
        crossing("", "  always_ff @(posedge clk_main_a0) if (source_q) crossed_q <= sda_b_q;");
    enable.fails(&["crossings", "constraints"], "cl_small.sv:", "crossed_q (clk_main_a0)");
    let output = Small::new().edit(
        "cl_small.sv",
        "assign cl_sh_dma_pcis_rvalid = pcis_r_q;",
        "assign cl_sh_dma_pcis_rvalid = pcis_r_q && busy;",
    );
    output.fails(&["crossings", "constraints"], "cl_ports.vh:", "cl_sh_dma_pcis_rvalid");
}

#[test]
fn a_removed_synchroniser_is_found() {
    let removed = Small::new().edit(
        "cl_small.sv",
        "  shef_sync u_busy (\n      .clk_i(clk_main_a0),\n      .d_i(busy),\n      .q_o(busy_main)\n  );",
        "  logic busy_main_q;\n  always_ff @(posedge clk_main_a0) busy_main_q <= busy;\n  assign busy_main = busy_main_q;",
    );
    removed.fails(&["crossings", "constraints"], "cl_small.sv:", "busy_main_q");
    // One of a pointer's.
    let pointer = Small::new().edit(
        "shef_async_fifo.sv",
        "    shef_sync u_wptr (\n        .clk_i(rd_clk_i),\n        .d_i(wptr_q[i]),\n        .q_o(wptr_seen[i])\n    );",
        "    if (i == 1) begin : g_none\n      assign wptr_seen[i] = wptr_q[i];\n    end else begin : g_some\n      shef_sync \
         u_wptr (\n        .clk_i(rd_clk_i),\n        .d_i(wptr_q[i]),\n        .q_o(wptr_seen[i])\n      );\n    end",
    );
    pointer.fails(&["crossings", "constraints"], "shef_async_fifo.sv:", "wptr_q");
}

#[test]
fn a_synchroniser_has_two_registers_with_their_attribute() {
    let one = Small::new().edit("shef_sync.sv", "assign q_o = sync_q;", "assign q_o = meta_q;");
    one.fails(&["crossings"], "shef_sync.sv:", "readers instead of a second register alone");
    let bare = Small::new().edit(
        "shef_sync.sv",
        "  (* ASYNC_REG = \"TRUE\" *) logic meta_q;",
        "  (* ASYNC_REG = \"OFF\" *) logic meta_q;",
    );
    bare.fails(&["crossings"], "shef_sync.sv:", "has no attribute ASYNC_REG");
    let read =
        Small::new().edit("shef_sync.sv", "assign q_o = sync_q;", "assign q_o = sync_q && meta_q;");
    read.fails(&["crossings"], "shef_sync.sv:", "2 readers");
}

/// A synchroniser in the small custom logic, from this net.
fn synchronised(from: &str) -> Small {
    crossing(
        "",
        &format!(
            "  logic synced;\n  shef_sync u_more (.clk_i(clk_main_a0), .d_i({from}), .q_o(synced));\n  \
             always_ff @(posedge clk_main_a0) crossed_q <= synced;"
        ),
    )
}

#[test]
fn no_logic_is_before_a_synchroniser() {
    let clean = synchronised("source_q").lint();
    assert!(clean.passed(), "{:#?}", findings(&clean));
    let and = synchronised("source_q && twin_q");
    and.fails(&["crossings"], "shef_sync.sv:", "there is logic before the first register");
    // One of the clock itself, too: the constraint then excepts a path within that clock.
    let mixed = synchronised("source_q && sda_b_q");
    mixed.fails(
        &["crossings", "constraints", "patterns"],
        "shef_sync.sv:",
        "there is logic before the first register",
    );
}

#[test]
fn two_bits_of_a_value_do_not_pass_two_synchronisers() {
    let pair = |source: &str| {
        crossing(
            &format!(
                "  logic [1:0] pair_q;\n  always_ff @(posedge core_clk) pair_q <= sum[3:2];\n  {source}"
            ),
            "  logic [1:0] pair;\n  for (genvar i = 0; i < 2; i++) begin : g_pair\n    \
             shef_sync u_pair (.clk_i(clk_main_a0), .d_i(from_q[i]), .q_o(pair[i]));\n  end\n  \
             always_ff @(posedge clk_main_a0) crossed_q <= ^pair;",
        )
    };
    let words = "bits of pair_q pass separate synchronisers";
    pair("wire [1:0] from_q = pair_q;").fails(&["crossings"], "shef_sync.sv:", words);
    // Copies of the bits in registers of other names.
    let copies = "logic first_q, second_q;\n  always_ff @(posedge core_clk) {second_q, first_q} <= pair_q;\n  \
                  wire [1:0] from_q = {second_q, first_q};";
    pair(copies).fails(&["crossings"], "shef_sync.sv:", "pass separate synchronisers");
    // One bit twice.
    let twice = "wire [1:0] from_q = {2{pair_q[0]}};";
    pair(twice).fails(&["crossings"], "shef_sync.sv:", "passes 2 synchronisers");
}

/// Registers of other names, and logic before them: only the place where they meet shows that they
/// belong together.
#[test]
fn synchronised_bits_do_not_meet_in_logic() {
    let pair = |attribute: &str| {
        crossing(
            &format!(
                "  {attribute} logic one_q;\n  logic two_q;\n  always_ff @(posedge core_clk) begin\n    one_q <= sum[3:2] == 2'd1;\n    \
                 two_q <= sum[3:2] == 2'd2;\n  end"
            ),
            "  logic one, two;\n  shef_sync u_one (.clk_i(clk_main_a0), .d_i(one_q), .q_o(one));\n  \
             shef_sync u_two (.clk_i(clk_main_a0), .d_i(two_q), .q_o(two));\n  \
             always_ff @(posedge clk_main_a0) crossed_q <= one || two;",
        )
    };
    let words = "one_q and two_q pass separate synchronisers and meet in crossed_q";
    pair("").fails(&["crossings"], "shef_sync.sv:", words);
    let flags = pair("(* shef_cdc = \"flags\" *)").lint();
    assert!(flags.passed(), "{:#?}", findings(&flags));
}

#[test]
fn synchronised_bits_do_not_meet_behind_registers_or_at_a_memory() {
    let pair = |more: &str, meet: &str| {
        crossing(
            &format!(
                "  logic one_q, two_q;\n  always_ff @(posedge core_clk) begin\n    one_q <= sum[3:2] == 2'd1;\n    \
                 two_q <= sum[3:2] == 2'd2;\n  end\n{more}"
            ),
            &format!(
                "  logic one, two;\n  shef_sync u_one (.clk_i(clk_main_a0), .d_i(one_q), .q_o(one));\n  \
                 shef_sync u_two (.clk_i(clk_main_a0), .d_i(two_q), .q_o(two));\n{meet}"
            ),
        )
    };
    let words = "one_q and two_q pass separate synchronisers and meet in ";
    for meet in [
        // A register behind each; an enable; a memory's address when it is read, and when it is written.
        "  logic a_q, b_q;\n  always_ff @(posedge clk_main_a0) begin\n    {a_q, b_q} <= {one, two};\n    crossed_q <= a_q ^ b_q;\n  end",
        "  logic [2:0] a_q, b_q;\n  always_ff @(posedge clk_main_a0) begin\n    a_q <= {a_q[1:0], one};\n    \
         b_q <= {b_q[1:0], two};\n    crossed_q <= a_q[2] && b_q[2];\n  end",
        "  always_ff @(posedge clk_main_a0) if (one) crossed_q <= two;",
        "  logic [7:0] words[4], read_q;\n  assign crossed_q = ^read_q;\n  always_ff @(posedge clk_main_a0) begin\n    \
         if (sda_b_q) words[0] <= read_q + 8'd1;\n    read_q <= words[{one, two}];\n  end",
        "  logic [7:0] words[4], read_q;\n  assign crossed_q = ^read_q;\n  always_ff @(posedge clk_main_a0) begin\n    \
         words[{one, two}] <= read_q + 8'd1;\n    read_q <= words[0];\n  end",
    ] {
        pair("", meet).fails(&["crossings"], "shef_sync.sv:", words);
    }
    // The pair after 150 other synchronisers, none of which is a finding.
    let many = "  for (genvar i = 0; i < 150; i++) begin : g_many\n    logic from_q, to, kept_q;\n    \
                always_ff @(posedge core_clk) from_q <= ^sum[i % 24 +: 4] ^ sum[31 - i % 32];\n    \
                shef_sync u_a (.clk_i(clk_main_a0), .d_i(from_q), .q_o(to));\n    \
                always_ff @(posedge clk_main_a0) kept_q <= to;\n  end";
    let report = pair(many, "  always_ff @(posedge clk_main_a0) crossed_q <= one || two;").lint();
    let found = findings(&report).iter().any(|(_, _, what)| what.contains(words));
    assert!(found, "{:#?}", findings(&report));
}

#[test]
fn independent_bits_of_a_register_have_an_attribute() {
    let flags = crossing(
        "  (* shef_cdc = \"flags\" *) logic [1:0] pair_q;\n  always_ff @(posedge core_clk) pair_q <= {sum[9], sum[2]};",
        "  logic [1:0] pair;\n  for (genvar i = 0; i < 2; i++) begin : g_pair\n    \
         shef_sync u_pair (.clk_i(clk_main_a0), .d_i(pair_q[i]), .q_o(pair[i]));\n  end\n  \
         always_ff @(posedge clk_main_a0) crossed_q <= ^pair;",
    );
    let report = flags.lint();
    assert!(report.passed(), "{:#?}", findings(&report));
}

#[test]
fn a_pointer_that_is_no_gray_counter_is_found() {
    let binary =
        Small::new().edit("shef_async_fifo.sv", "gray = binary ^ (binary >> 1);", "gray = binary;");
    binary.fails(&["crossings"], "shef_sync.sv:", "it is no Gray counter");
    let two = Small::new().edit(
        "shef_async_fifo.sv",
        "wire ptr_t wbin_next = wbin_q + ptr_t'(1);",
        "wire ptr_t wbin_next = wbin_q + ptr_t'(2);",
    );
    let report = two.lint();
    assert!(!report.passed() && report.crossings_unnamed > 0, "{:#?}", report.crossings);
    let wrong = Small::new().edit(
        "shef_async_fifo.sv",
        "gray = binary ^ (binary >> 1);",
        "gray = binary ^ (binary >> 2);",
    );
    wrong.fails(&["crossings"], "shef_sync.sv:", "it is no Gray counter");
}

#[test]
fn a_memory_between_clocks_belongs_to_gray_counters() {
    let other = Small::new().edit(
        "shef_async_fifo.sv",
        "mem_q[rbin_q[AW-1:0]];",
        "mem_q[wr_data_i[AW-1:0]];",
    );
    let report = other.lint();
    assert!(report.crossings_unnamed > 0, "{:#?}", report.crossings);
    let loose = crossing(
        "  logic [7:0] loose_mem[4];\n  always_ff @(posedge core_clk) loose_mem[sum[1:0]] <= sum[9:2];",
        "  always_ff @(posedge clk_main_a0) crossed_q <= ^loose_mem[ocl_cl_araddr[1:0]];",
    );
    loose.fails(
        &["crossings", "constraints"],
        "cl_small.sv:",
        "is no Gray counter that passes to the reader",
    );
}

#[test]
fn a_reset_of_another_clock_needs_a_synchroniser() {
    let plain = crossing(
        "",
        "  always_ff @(posedge clk_main_a0 or negedge source_q) begin\n    if (!source_q) crossed_q <= 1'b0;\n    \
         else crossed_q <= sda_b_q;\n  end",
    );
    plain.fails(
        &["crossings", "constraints"],
        "cl_small.sv:",
        "the reset of crossed_q comes from another clock",
    );
    let logic = Small::new().edit(
        "cl_small.sv",
        "  shef_reset_sync u_core_rst (\n      .clk_i(core_clk),\n      .rst_ni(run_q),",
        "  shef_reset_sync u_core_rst (\n      .clk_i(core_clk),\n      .rst_ni(run_q && !sh_cl_flr_assert),",
    );
    logic.fails(
        &["crossings"],
        "shef_reset_sync.sv:",
        "there is logic before the asynchronous reset",
    );
    let short = crossing(
        "",
        "  (* ASYNC_REG = \"TRUE\" *) logic up_q;\n  always_ff @(posedge clk_main_a0 or negedge source_q) begin\n    \
         if (!source_q) up_q <= 1'b0;\n    else up_q <= 1'b1;\n  end\n  \
         always_ff @(posedge clk_main_a0) crossed_q <= up_q;",
    );
    short.fails(
        &["crossings", "constraints"],
        "cl_small.sv:",
        "the reset of up_q comes from another clock",
    );
}

#[test]
fn a_static_value_has_its_attribute_and_its_constraint() {
    let bare = Small::new().edit("cl_small.sv", "(* shef_cdc = \"static\" *) logic", "logic");
    bare.fails(&["crossings"], "small_core.sv:", "setting_q");
    let line = "set_max_delay -datapath_only 3.5 -from [get_cells setting_q_reg*] -to [get_cells u_core/setting_q_reg*]\n";
    let free = Small::new().edit("cl_timing_user.xdc", line, "");
    free.fails(&["constraints"], "small_core.sv:", "no set_max_delay -datapath_only");
}

// ---- constraints ----

fn constraint(from: &str, to: &str) -> Small {
    Small::new().edit("cl_timing_user.xdc", from, to)
}

/// Each of these lines has a remark with these words, and nothing else has.
#[track_caller]
fn remarks(rows: &[(&str, &str)]) {
    let lines: Vec<&str> = rows.iter().map(|(line, _)| *line).collect();
    let report = constraint("set clocks", &format!("{}\nset clocks", lines.join("\n"))).lint();
    let found = findings(&report);
    for (n, (line, words)) in (1..).zip(rows) {
        let place = format!("cl_timing_user.xdc:{n}");
        let hit = |(check, at, what): &(&str, &str, &str)| {
            *check == "patterns" && at.ends_with(&place) && what.contains(words)
        };
        assert!(found.iter().any(hit), "{line}: {found:#?}");
    }
    assert_eq!(found.len(), rows.len(), "{found:#?}");
}

#[test]
fn a_constraint_that_matches_nothing_is_found() {
    // A name with its hierarchy does not match one without.
    remarks(&[
        ("set_false_path -to [get_cells -hier -filter {NAME =~ *u_fabric/*}]", "*u_fabric/*"),
        ("set_property DONT_TOUCH 1 [get_cells u_nowhere]", "u_nowhere matches no cell"),
        ("set_property DONT_TOUCH 1 [get_cells -hier u_busy/meta_q_reg]", "matches no cell"),
        ("set_false_path -from [get_ports CLK_DIMM]", "CLK_DIMM matches no port"),
        ("set_false_path -from [get_clocks core_clk]", "core_clk matches no clock"),
        (
            "set_property KEEP 1 [get_cells -hier -filter {NAME =~ *meta_q_reg || NAME =~ *mata_q_reg}]",
            "mata",
        ),
    ]);
}

/// Vivado runs more of Tcl than this reader, and its commands have more options: everything that the
/// lint does not follow is found.
#[test]
fn only_constraints_that_the_lint_follows_pass() {
    const CORE: &str = "[get_clocks -of_objects [get_pins u_clocks/u_core/O]]";
    const KERNEL: &str = "[get_clocks -of_objects [get_pins u_clocks/u_kernel/O]]";
    let unrelated = format!("set_clock_groups -asynchronous -group {CORE} -group {KERNEL}");
    let one = format!("set_clock_groups -asynchronous -group {CORE}");
    let same_clock = format!("set_false_path -from {CORE} -to {KERNEL}");
    let to_register = format!("set_false_path -from {CORE} -to [get_cells u_core/sum_q_reg*]");
    let generated = "-include_generated_clocks is no option of get_clocks";
    remarks(&[
        // Words and commands.
        ("puts x[set_false_path -to clk_main_a0]", "a command inside of a word"),
        ("puts \"[set_false_path -to clk_main_a0]\"", "a command inside of a word"),
        ("# note \\", "continues a comment"),
        ("foreach x {a b} { puts $x }", "foreach is no command"),
        ("set_disable_timing [get_cells setting_q_reg*]", "set_disable_timing is no command"),
        ("set_multicycle_path 2 -hold -reset_path -to clk_main_a0", "is no command"),
        ("set_clock_uncertainty -1.5 clk_main_a0", "set_clock_uncertainty is no command"),
        ("create_clock -period 100 [get_ports clk_main_a0]", "create_clock is no command"),
        ("create_clock -period 100 [get_pins u_clocks/u_core/O]", "create_clock is no command"),
        ("create_generated_clock -name slow [get_pins u_clocks/u_core/O]", "an MMCM or PLL"),
        (
            "create_generated_clock -name slow -divide_by 8 [get_pins u_clocks/u_mmcm/CLKOUT0]",
            "-divide_by is no option",
        ),
        (
            "create_generated_clock -name clk_main_a0 [get_pins u_clocks/u_mmcm/CLKOUT0]",
            "the name of another clock",
        ),
        // Options.
        (
            "set_false_path -from [get_clocks -include_generated_clocks clk_main_a0] -to clk_main_a0",
            generated,
        ),
        ("set_false_path -from [get_cells -regexp .*]", "-regexp is no option of get_cells"),
        ("set_false_path {-reset_path} -to clk_main_a0", "-reset_path is no option"),
        ("set_false_path -to clk_main_a0 -to clk_main_a0", "set_false_path has -to twice"),
        ("set_false_path -to [get_clocks clk*]", "clk* is a pattern"),
        ("set_false_path -to [list clk_main_a0]", "clk_main_a0 is text in a list"),
        // Values.
        ("set_max_delay -datapath_only 1 -to [get_cells setting_q_reg*]", "needs -from"),
        ("set_max_delay -datapath_only soon -from clk_main_a0", "no value above 0"),
        ("set_max_delay -datapath_only 0 -from clk_main_a0", "no value above 0"),
        ("set_max_delay 2 -from clk_main_a0", "set_max_delay needs -to"),
        // Paths within one clock.
        ("set_false_path -from clk_main_a0 -to clk_main_a0", "within the clock clk_main_a0"),
        ("set_false_path -to clk_main_a0", "within the clock clk_main_a0"),
        (&same_clock, "within the clock u_clocks.u_mmcm.CLKOUT0"),
        (&to_register, "within the clock u_clocks.u_mmcm.CLKOUT0: "),
        ("set_false_path -hold -to [get_cells u_core/sum_q_reg*]", "within the clock"),
        (
            "set_max_delay 9 -from [get_cells pcis_left_q_reg*] -to [get_cells pcis_r_q_reg]",
            "within the clock clk_main_a0: pcis_left_q[",
        ),
        (
            "set_max_delay -datapath_only 3 -from [get_cells pcis_left_q_reg*] -to [get_cells pcis_r_q_reg]",
            "within the clock clk_main_a0",
        ),
        ("set_false_path -to [get_pins ocl_b_q_reg/CLR]", "within the clock clk_main_a0"),
        ("set_false_path -to [get_cells u_core]", "-to names no clock, register or pin"),
        (&one, "expected two or more -group"),
        (&unrelated, "within the clock u_clocks.u_mmcm.CLKOUT0"),
        // Properties.
        ("set_property CLKOUT0_DIVIDE_F 2 [get_cells u_clocks/u_mmcm]", "CLKOUT0_DIVIDE_F is no"),
        ("set_property -dict {ASYNC_REG 0} [get_cells -hier meta_q_reg]", "-dict is no option"),
        ("set_property -name ASYNC_REG -value 0 [get_cells -hier meta_q_reg]", "-name is no"),
        ("set_property ASYNC_REG off [get_cells -hier meta_q_reg]", "takes ASYNC_REG"),
        ("set_property ASYNC_REG FALSE [get_cells -hier meta_q_reg]", "takes ASYNC_REG"),
    ]);
}

#[test]
fn every_crossing_has_a_constraint_that_keeps_its_bound() {
    let synchronisers = "set_max_delay -datapath_only 3.5 -from $clocks -to [get_cells -hier -filter {NAME =~ *meta_q_reg}]\n";
    let none = constraint(synchronisers, "");
    none.fails(&["constraints"], "shef_sync.sv:", "busy_q");
    let loose = constraint(
        "set_max_delay -datapath_only 3.5 -from $clocks",
        "set_max_delay 3.5 -from $clocks",
    );
    loose.fails(&["constraints"], "shef_sync.sv:", "wptr_q");
    let groups = constraint(
        "set_false_path -to",
        "set_clock_groups -asynchronous -group [lindex $clocks 0]\nset_false_path -to",
    );
    groups.fails(&["patterns"], "xdc:", "lindex is no command");
    let cancelled = constraint(
        "set_false_path -to",
        "set_clock_groups -asynchronous -group clk_main_a0 -group [get_clocks -of_objects [get_pins u_clocks/u_core/O]]\nset_false_path -to",
    );
    cancelled.fails(&["constraints"], "shef_sync.sv:", "removes the bound of its delay");
    let reset = constraint(
        "set_false_path -to [get_pins -hier -filter {NAME =~ *_rst/*_q_reg*/CLR}]\n",
        "",
    );
    reset.fails(
        &["constraints"],
        "shef_reset_sync.sv:",
        "no set_max_delay -datapath_only or set_false_path",
    );
}

#[test]
fn values_of_constraints_fit_their_crossings() {
    let memory = "set_max_delay -datapath_only 3.5 \\\n  -from [get_cells -hier -filter {NAME =~ *u_there/mem_q_reg*";
    let long = constraint(memory, &memory.replace("3.5", "35"));
    long.fails(&["constraints"], "shef_async_fifo.sv:", "longer than a period");
    // A later one for the same path, with the clocks' delay.
    let more =
        |line: &str| constraint("set_false_path -to", &format!("{line}\nset_false_path -to"));
    let cells = "-from [get_cells setting_q_reg*] -to [get_cells u_core/setting_q_reg*]";
    let static_value = more(&format!("set_max_delay 40 {cells}"));
    static_value.fails(&["constraints"], "small_core.sv:", "longer than a period");
    // Some of the paths, or hold times, are not the crossing.
    for (with, place) in [
        ("-rise_from [get_cells setting_q_reg*] -to [get_cells u_core/setting_q_reg*]", "patterns"),
        (
            "-through [get_nets setting_q] -from [get_cells setting_q_reg*] -to [get_cells u_core/setting_q_reg*]",
            "constraints",
        ),
    ] {
        let line = format!("set_max_delay -datapath_only 3.5 {cells}");
        let report = constraint(&line, &format!("set_max_delay -datapath_only 3.5 {with}")).lint();
        let found = findings(&report);
        assert!(found.iter().any(|(check, ..)| *check == "constraints"), "{place}: {found:#?}");
    }
    let resets = "set_false_path -to [get_pins";
    let hold = constraint(resets, "set_false_path -hold -to [get_pins");
    hold.fails(&["constraints"], "shef_reset_sync.sv:", "no set_max_delay");
    let setup = constraint(resets, "set_false_path -setup -to [get_pins").lint();
    assert!(setup.passed(), "{:#?}", findings(&setup));
}

#[test]
fn names_of_an_image_in_aws_design_match() {
    let scoped = constraint(
        "[get_cells setting_q_reg*] -to [get_cells u_core/setting_q_reg*]",
        "[get_cells WRAPPER/CL/setting_q_reg*] -to [get_cells -hier -filter {NAME =~ WRAPPER/CL/u_core/setting_q_reg*}]",
    );
    let report = scoped.lint();
    assert!(report.passed(), "{:#?}", findings(&report));
}

#[test]
fn names_that_aws_takes_for_its_own_are_found() {
    let small = Small::new().more(
        "  logic my_ram, rd_do;\n  always_ff @(posedge clk_main_a0) begin\n    my_ram <= sda_b_q;\n    rd_do <= my_ram;\n  end",
    );
    small.fails(&["names"], "cl_small.sv:", "my_ram_reg matches *ram_reg*");
    small.fails(&["names"], "cl_small.sv:", "rd_do_reg matches *rd_do_reg*");
}

// ---- size and files ----

#[test]
fn a_custom_logic_that_is_too_large_is_found() {
    let small = Small::new().more(
        "  logic [1023:0] large_q[64];\n  for (genvar i = 0; i < 64; i++) begin : g_large\n    always_ff @(posedge clk_main_a0) \
         large_q[i] <= large_q[i] + {large_q[63 - i][1:0], 1022'd1} + {large_q[i][3:0], 1020'd7} + {large_q[i][5:0], 1018'd9} +\n        (large_q[i] << large_q[7][7:0]) + (large_q[i] << large_q[9][7:0]);\n  end",
    );
    small.fails(&["size"], "", "% of a VU47P: expected at most 14 %");
}

#[test]
fn files_are_as_aws_takes_them() {
    let secret = "localparam logic [255:0] KEY = 256'h0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef;\n";
    Small::new().add("small_key.svh", secret).fails(
        &["sources"],
        "small_key.svh",
        "a secret in a .svh",
    );
    Small::new().add("small.mem", "00\n").fails(
        &["sources"],
        "small.mem",
        "the content of a memory",
    );
    let read = Small::new().more("  logic [7:0] rom[4];\n  // synthesis translate_off\n  initial $readmemh(\"rom.hex\", rom);\n  // synthesis translate_on");
    read.fails(&["sources"], "cl_small.sv:", "$readmemh");
    let call = Small::new().more(
        "  // synthesis translate_off\n  initial $system(\"true\");\n  // synthesis translate_on",
    );
    call.fails(&["sources"], "cl_small.sv:", "$system");
}

#[test]
fn the_top_module_has_the_name_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (logic, scratch) = (folder.path().join("cl_other"), folder.path().join("scratch"));
    Small::new().write(&logic);
    std::fs::create_dir(&scratch).unwrap();
    let report = lint(&CustomLogic::in_folder(&logic).unwrap(), None, &scratch).unwrap();
    let found = findings(&report);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].2.contains("the top module is cl_small: expected the folder's name"));
    let empty = tempfile::tempdir().unwrap();
    let error = CustomLogic::in_folder(empty.path()).unwrap_err();
    assert_eq!(error.code(), "SHEF-NET-003");
}

#[test]
fn sources_that_the_front_end_refuses_are_an_error_with_their_place() {
    let small = Small::new().more("  nowhere_cell u_nowhere (.a(1'b0));");
    let error = small.lint_with(None).unwrap_err();
    assert_eq!(error.code(), "SHEF-NET-005");
    let text = error.to_string();
    assert!(text.contains("cl_small.sv:") && text.contains("nowhere_cell"), "{text}");
    let small = Small::new().more("  assign tdo = ;");
    let error = small.lint_with(None).unwrap_err();
    assert_eq!(error.code(), "SHEF-PRJ-007");
    assert!(error.to_string().contains("cl_small.sv:"), "{error}");
}
