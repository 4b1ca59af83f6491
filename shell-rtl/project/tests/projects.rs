//! Projects: their files, their sources and their digests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use shef_project::{Design, Done, Error, Expect, Jobs, repo_root};

/// Signed reference values and evidence name these. A change of the RTL makes new designs and new
/// digests; a change of how sources are measured must not.
#[test]
fn the_digests_of_shipped_designs_are_pinned() {
    let project = |folder: &str| Design::project(&repo_root().join(folder));
    for (design, digest) in [
        (Design::digits(), "c2ab7e10966250a423f2f649f19ddff697bbb6ce7a1c199bfae1fce040953d09"),
        (
            project("examples/vecadd"),
            "bae05ce57869074efbdff391844088494d0c8d6d56742b598244cb6beed10115",
        ),
        (
            project("shell-rtl/accel/hotp"),
            "ea49d7d8cc1fda401644f554c02a191cd4dd2b9da5ec5df0614ac2d68858aef3",
        ),
    ] {
        let design = design.unwrap();
        let name = design.name();
        assert_eq!(hex::encode(design.digest()), digest, "{name}: has its RTL changed on purpose?");
    }
}

/// A project in a new folder, whose name is no name of an accelerator: an adder with a package, a
/// header, and two modules in one file of Verilog.
struct Own(tempfile::TempDir);

const SHEF: &str = "format = 1\nname = \"adder\"\ntop = \"adder_top\"\n\n[sources]\nfiles = [\"rtl/*.sv\", \"rtl/two.v\"]\ninclude = [\"inc\"]\n";

impl Own {
    fn new() -> Self {
        let own = Self(tempfile::tempdir().unwrap());
        let example = repo_root().join("examples/vecadd");
        own.write("shield.toml", &fs::read_to_string(example.join("shield.toml")).unwrap());
        let text = fs::read_to_string(example.join("shef_accel.sv")).unwrap();
        assert!(text.contains("module shef_accel\n  import shef_pkg::*;\n("));
        let text = text.replace(
            "module shef_accel\n  import shef_pkg::*;\n(",
            "`include \"defs.svh\"\nmodule adder_top\n  import shef_pkg::*;\n#(parameter int unsigned N = 1) (",
        );
        let text = text.replace("\nendmodule", "\n  one u_one (); two u_two ();\n  localparam int unsigned Z = z_pkg::Z + `STEP;\nendmodule");
        own.write("rtl/a.sv", &text);
        own.write("rtl/z_pkg.sv", "package z_pkg;\n  localparam int unsigned Z = 1;\nendpackage\n");
        own.write("rtl/two.v", "module one; endmodule\nmodule two; endmodule\n");
        own.write(
            "rtl/spare_bench.sv",
            "module spare_bench; initial $readmemh(\"x\", y); endmodule\n",
        );
        own.write("inc/defs.svh", "`define STEP 1\n");
        own.write("shef.toml", SHEF);
        own
    }

    fn dir(&self) -> PathBuf {
        self.0.path().join("mein Gerät & 100 %")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.dir().join(name)).unwrap();
        assert!(text.contains(from), "{name}: {from}");
        self.write(name, &text.replacen(from, to, 1));
    }

    fn read(&self) -> Result<Design, Error> {
        Design::project(&self.dir())
    }

    fn digest(&self) -> [u8; 32] {
        self.read().unwrap_or_else(|e| panic!("{e}")).digest()
    }

    /// Its sources, without the generated package.
    fn sources(&self) -> Vec<String> {
        let design = self.read().unwrap_or_else(|e| panic!("{e}"));
        let names = design.own_sources().map(|(name, _)| name.to_owned());
        names.filter(|name| name != "shef_cfg_pkg.sv").collect()
    }
}

#[test]
fn a_project_lists_its_sources() {
    let own = Own::new();
    let design = own.read().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((design.name(), design.top()), ("adder", "adder_top"));
    let used = ["inc/defs.svh", "rtl/a.sv", "rtl/two.v", "rtl/z_pkg.sv", "shef/shef_accel.sv"];
    assert_eq!(own.sources(), used);
    // In process and served.
    for top in ["shef_sim_top", "shef_host_top"] {
        assert_eq!(design.sources(top).unwrap().digest().unwrap(), design.digest(), "{top}");
    }
    // Another folder is the same design.
    assert_eq!(Own::new().digest(), own.digest());
    // Each change is another one.
    let mut all = BTreeSet::from([own.digest()]);
    for (file, from, to) in [
        ("inc/defs.svh", "STEP 1", "STEP 2"),
        ("rtl/two.v", "module two; ", "module two;  "),
        ("rtl/z_pkg.sv", "Z = 1", "Z = 2"),
        ("shef.toml", "include = [\"inc\"]\n", "include = [\"inc\"]\n[parameters]\nN = 2\n"),
        ("shef.toml", "N = 2", "N = \"4'd2\""),
        ("shef.toml", "[parameters]", "[defines]\nOTHER = \"\"\n[parameters]"),
        ("shef.toml", "OTHER = \"\"", "OTHER = 1"),
    ] {
        own.edit(file, from, to);
        assert!(all.insert(own.digest()), "{file} {to}");
    }
    let design = own.read().unwrap();
    let wrapper = design.own_sources().find(|(name, _)| *name == "shef/shef_accel.sv").unwrap();
    let text = String::from_utf8_lossy(wrapper.1);
    assert!(text.contains("adder_top #(\n      .N(4'd2)\n  ) u_top"), "{text}");
    // A file that nothing names is no part.
    own.write("rtl/spare_bench.sv", "module spare_bench; endmodule\n");
    assert_eq!(own.digest(), design.digest());
}

/// The order of files decides the value of a macro that two of them define.
#[test]
fn the_order_of_listed_files_is_measured() {
    let own = Own::new();
    own.write("rtl/m.v", "`define STEP 3\n");
    own.write("rtl/n.v", "`define STEP 4\n");
    own.edit("shef.toml", "\"rtl/*.sv\"", "\"rtl/m.v\", \"rtl/n.v\", \"rtl/*.sv\"");
    let first = own.digest();
    own.edit("shef.toml", "\"rtl/m.v\", \"rtl/n.v\"", "\"rtl/n.v\", \"rtl/m.v\"");
    assert_ne!(own.digest(), first);
    assert!(own.sources().contains(&"rtl/n.v".to_owned()));
}

/// As `bender script flist-plus` prints it, with and without `--relative-path`.
#[test]
fn lists_of_bender_work_unchanged() {
    let own = Own::new();
    let plain = own.digest();
    let dir = own.dir().canonicalize().unwrap();
    own.edit(
        "shef.toml",
        "files = [\"rtl/*.sv\", \"rtl/two.v\"]\ninclude = [\"inc\"]",
        "lists = [\"build/list.f\"]",
    );
    let mut digests = BTreeSet::new();
    for root in [format!("{}/", dir.display()), String::new()] {
        let lines = [
            "+incdir+ROOTinc",
            "+define+TARGET_FLIST",
            "+define+WIDTH=8",
            "ROOTrtl/z_pkg.sv",
            "ROOTrtl/a.sv",
            "ROOTrtl/two.v",
        ];
        let text: String = lines.map(|line| line.replace("ROOT", &root) + "\n").concat();
        own.write("build/list.f", &text);
        digests.insert(own.digest());
    }
    assert_eq!(digests.len(), 1);
    assert!(!digests.contains(&plain), "the macros count");
}

/// As edalize writes it for Verilator, relative to its own folder.
#[test]
fn lists_of_fusesoc_work_unchanged() {
    let own = Own::new();
    own.edit("shef.toml", "top = \"adder_top\"\n", "");
    own.edit(
        "shef.toml",
        "files = [\"rtl/*.sv\", \"rtl/two.v\"]\ninclude = [\"inc\"]",
        "lists = [\"build/own_0/verilator/own_0.vc\"]",
    );
    let list = "--Mdir .\n--cc\n-LDFLAGS -lm\n+incdir+../../../inc\n-CFLAGS -I../../../inc\n../../../rtl/z_pkg.sv\n../../../rtl/a.sv\n\
        ../../../rtl/two.v\n--top-module adder_top\n--exe\n../../../tb/main.cpp\n-GN=3\n-DWIDTH=8\n";
    own.write("build/own_0/verilator/own_0.vc", list);
    let design = own.read().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(design.top(), "adder_top");
    let (_, wrapper) =
        design.own_sources().find(|(name, _)| *name == "shef/shef_accel.sv").unwrap();
    assert!(String::from_utf8_lossy(wrapper).contains(".N(3)"));
}

#[test]
fn libraries_give_what_the_list_lacks() {
    let own = Own::new();
    own.edit("shef.toml", "files = [\"rtl/*.sv\", \"rtl/two.v\"]", "lists = [\"list.f\"]");
    own.write("cells.v", "module one; endmodule\nmodule never; endmodule\n");
    own.write("lib/two.vp", "module two; endmodule\n");
    own.write("lib/never.v", "module never; initial $readmemh(\"x\", y); endmodule\n");
    own.write("inner.f", "// sources\n/* of\n the adder */ rtl/z_pkg.sv \"rtl/a.sv\"\n");
    own.write("list.f", "# all\n-f inner.f -v cells.v\n-y lib +libext+.vp\n");
    let used =
        ["cells.v", "inc/defs.svh", "lib/two.vp", "rtl/a.sv", "rtl/z_pkg.sv", "shef/shef_accel.sv"];
    assert_eq!(own.sources(), used);
}

#[test]
fn a_folder_may_be_searched_under_another_name() {
    let own = Own::new();
    let example = repo_root().join("examples/vecadd");
    let plain = Design::project(&example).unwrap().digest();
    fs::remove_dir_all(own.dir().join("rtl")).unwrap();
    fs::copy(example.join("shef_accel.sv"), own.dir().join("shef_accel.sv")).unwrap();
    let long = "n".repeat(64);
    own.write("shef.toml", &format!("format = 1\nname = \"{long}\"\n"));
    let design = own.read().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((design.name(), design.digest()), (long.as_str(), plain));
}

/// Code, and the place or cause in the message, of each input that is refused.
#[test]
fn what_is_wrong_is_named_with_its_place() {
    let case = |change: &dyn Fn(&Own), code: &str, says: &[&str]| {
        let own = Own::new();
        change(&own);
        let error = own.read().expect_err(code);
        let text = error.to_string();
        assert_eq!(error.code(), code, "{text}");
        says.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
    };
    let toml =
        |from: &'static str, to: &'static str| move |own: &Own| own.edit("shef.toml", from, to);
    case(
        &toml("format = 1", "format = 0"),
        "SHEF-PRJ-004",
        &["shef.toml:1:10: this is a project of format 0"],
    );
    case(&toml("format = 1\n", ""), "SHEF-PRJ-003", &["missing field `format`"]);
    case(&toml("top =", "tops ="), "SHEF-PRJ-003", &["shef.toml:3:1:", "unknown field `tops`"]);
    case(&toml("files = [", "files = [3, "), "SHEF-PRJ-003", &["shef.toml:6:"]);
    case(&toml("\"adder\"", "\"a b\""), "SHEF-PRJ-004", &["shef.toml:2:8:", "1 to 64 letters"]);
    let long = "n".repeat(65);
    case(
        &|own| own.edit("shef.toml", "\"adder\"", &format!("\"{long}\"")),
        "SHEF-PRJ-004",
        &["shef.toml:2:8:"],
    );
    case(
        &toml("name = \"adder\"\n", ""),
        "SHEF-CARD-003",
        &["the folder's name \"mein Gerät & 100 %\""],
    );
    case(&toml("\"adder_top\"", "\"adder top\""), "SHEF-PRJ-004", &["shef.toml:3:7:"]);
    case(
        &toml("\"adder_top\"", "\"none\""),
        "SHEF-PRJ-006",
        &["no source of the project declares it"],
    );
    case(&toml("rtl/two.v", "rtl/none.v"), "SHEF-PRJ-004", &["shef.toml:6:", "none.v"]);
    case(&toml("rtl/*.sv", "rtl/*.vhd"), "SHEF-PRJ-004", &["no file matches"]);
    case(&toml("rtl/*.sv", "../*.sv"), "SHEF-PRJ-004", &["without .."]);
    case(
        &toml("include = [\"inc\"]", "include = [\"/usr/include\"]"),
        "SHEF-PRJ-004",
        &["shef.toml:7:", "outside of the project"],
    );
    case(
        &toml("top = \"adder_top\"\n", ""),
        "SHEF-PRJ-006",
        &["shef_accel", "with `top`: the sources declare adder_top, spare_bench, one, two"],
    );
    case(
        &toml("files =", "files = [\"rtl/a.sv\"]\n[defines]\nOLD = true\nX ="),
        "SHEF-PRJ-003",
        &["shef.toml:8:7:", "boolean `true`", "expected a whole number, or a string"],
    );
    let parameters = "include = [\"inc\"]\n[parameters]\nN = 2\n";
    case(
        &|own| {
            own.edit("shef.toml", "top = \"adder_top\"\n", "");
            own.edit("shef.toml", "include = [\"inc\"]\n", parameters);
        },
        "SHEF-PRJ-004",
        &["shef.toml:8:1:", "without parameters"],
    );
    let define = |value: &'static str| {
        move |own: &Own| {
            own.edit(
                "shef.toml",
                "include = [\"inc\"]\n",
                &format!("include = [\"inc\"]\n[defines]\n{value}\n"),
            );
        }
    };
    case(
        &define("X = \"$readmemh\""),
        "SHEF-PRJ-004",
        &["shef.toml:9:1:", "$readmemh can reach outside"],
    );
    case(&define("X = \"`Y\""), "SHEF-PRJ-004", &["shef.toml:9:1:"]);
    case(&define("\"X Y\" = 1"), "SHEF-PRJ-004", &["the name of a macro"]);
    case(
        &|own| own.write("rtl/copy.sv", "module one; endmodule\n"),
        "SHEF-RTL-019",
        &["one has two files", "two.v:1:", "copy.sv:1:"],
    );
    case(
        &|own| own.write("rtl/again.sv", "module adder_top; endmodule\n"),
        "SHEF-RTL-019",
        &["adder_top has two files"],
    );
    case(
        &|own| own.edit("rtl/two.v", "module two;", "module shef_shield; endmodule module two;"),
        "SHEF-RTL-019",
        &["shef_shield"],
    );
    case(
        &|own| own.edit("rtl/two.v", "module two;", "module two; initial $system(\"x\");"),
        "SHEF-RTL-018",
        &["two.v:2:21: $system"],
    );
    case(
        &|own| own.edit("rtl/a.sv", "defs.svh", "other.svh"),
        "SHEF-RTL-018",
        &["a.sv:", "other.svh"],
    );
    case(
        &|own| own.edit("rtl/a.sv", "          clk_i,", "          clock_i,"),
        "SHEF-PRJ-006",
        &["a.sv:", "has no port clk_i"],
    );
    case(
        &|own| fs::remove_file(own.dir().join("shield.toml")).unwrap(),
        "SHEF-CARD-003",
        &["no shield.toml"],
    );
    case(
        &|own| own.edit("shield.toml", "lanes = 1", "lanes = 3"),
        "SHEF-GEN-011",
        &["shield.toml:5:9"],
    );
    case(&|own| fs::remove_dir_all(own.dir()).unwrap(), "SHEF-CARD-003", &["cannot be opened"]);
    let list = |text: &'static str| {
        move |own: &Own| {
            own.edit("shef.toml", "files = [\"rtl/*.sv\", \"rtl/two.v\"]", "lists = [\"list.f\"]");
            own.write("list.f", text);
        }
    };
    case(&list("rtl/a.sv\n  --frob x\n"), "SHEF-PRJ-005", &["list.f:2:3: unknown option --frob"]);
    case(&list("rtl/none.sv\n"), "SHEF-PRJ-005", &["list.f:1:1:", "none.sv"]);
    case(&list("rtl/a.vhd\n"), "SHEF-PRJ-005", &["list.f:1:1: rtl/a.vhd is no source"]);
    case(&list("$HOME/a.sv\n"), "SHEF-PRJ-005", &["without variables"]);
    case(&list("/etc/passwd.sv -f list.f\n"), "SHEF-PRJ-005", &["list.f:1:1:"]);
    case(&list("-f list.f\n"), "SHEF-PRJ-005", &["reads itself"]);
    case(
        &list("+define+A=1 +define+A=2\n"),
        "SHEF-PRJ-005",
        &["list.f:1:13: the macro A has two values"],
    );
    case(&list("--top-module\n"), "SHEF-PRJ-005", &["needs a value"]);
    case(
        &|own| {
            list("--top-module a\n--top-module b\n")(own);
            own.edit("shef.toml", "top = \"adder_top\"\n", "");
        },
        "SHEF-PRJ-004",
        &["two tops, a and b"],
    );
}

/// Macros, headers and names with blanks reach the front end, and its errors the user. Needs yosys:
/// `cargo xtask setup`.
#[test]
fn the_front_end_reads_the_ports() {
    let own = Own::new();
    own.edit(
        "shef.toml",
        "include = [\"inc\"]\n",
        "include = [\"inc\"]\n[defines]\nWIDTH = \"8 + 1\"\n",
    );
    own.edit(
        "rtl/a.sv",
        "  output wire          irq_o",
        "  output wire [`WIDTH:0] more_o,\n  output wire          irq_o",
    );
    fs::rename(own.dir().join("rtl/a.sv"), own.dir().join("rtl/a b.sv")).unwrap();
    let ports = |own: &Own| {
        let scratch = tempfile::tempdir().unwrap();
        own.read().unwrap_or_else(|e| panic!("{e}")).ports(scratch.path())
    };
    let all = ports(&own).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.len(), 38, "{all:?}");
    for port in ["input [0:0] clk_i", "output [9:0] more_o", "output [576:0] acc_w_o"] {
        assert!(all.iter().any(|own| own == port), "{port}: {all:?}");
    }
    // A parameter that the top module does not have.
    own.edit("shef.toml", "[defines]\n", "[parameters]\nM = 2\n[defines]\n");
    let error = ports(&own).expect_err("no such parameter").to_string();
    assert!(error.contains("shef/shef_accel.sv:") && error.contains("'M'"), "{error}");
    own.edit("shef.toml", "M = 2\n", "N = 2\n");
    assert_eq!(ports(&own).unwrap_or_else(|e| panic!("{e}")).len(), 38);
    // Ports that a simulator would connect all the same.
    for (right, wrong, message) in [
        (
            "input  wire   [15:0] reg_awaddr_i",
            "input  wire   [11:0] reg_awaddr_i",
            "reg_awaddr_i is input [11:0]: expected input [15:0]",
        ),
        (
            "output wire          irq_o",
            "input wire           nmi_i,\n  output wire          irq_o",
            "input nmi_i is no port of an accelerator",
        ),
    ] {
        own.edit("rtl/a b.sv", right, wrong);
        let error = ports(&own).expect_err("another port");
        assert_eq!(error.code(), "SHEF-PRJ-006", "{error}");
        assert!(error.to_string().contains(message), "{error}");
        own.edit("rtl/a b.sv", wrong, right);
    }
    own.edit("rtl/two.v", "module two;", "module two; wire = ;");
    let error = ports(&own).expect_err("no Verilog");
    assert_eq!(error.code(), "SHEF-PRJ-007");
    assert!(error.to_string().contains("yosys refused adder_top: "), "{error}");
    assert!(error.to_string().contains("two.v:2: ERROR: "), "{error}");
}

/// Links end no walk, and lead to no file outside of the project.
#[test]
fn links_lead_to_no_other_project() {
    use std::os::unix::fs::symlink;
    let own = Own::new();
    let plain = own.digest();
    symlink("..", own.dir().join("rtl/up")).unwrap();
    symlink("/", own.dir().join("rtl/root")).unwrap();
    own.edit("shef.toml", "rtl/*.sv", "rtl/**/*.sv");
    assert_eq!(own.digest(), plain);
    fs::write(own.0.path().join("outside.sv"), "module one; endmodule\n").unwrap();
    symlink(Path::new("../../outside.sv"), own.dir().join("rtl/outside.sv")).unwrap();
    let error = own.read().expect_err("a file of another project");
    assert_eq!(error.code(), "SHEF-PRJ-004", "{error}");
    assert!(error.to_string().contains("outside of the project"), "{error}");
}

/// Whatever names a file: the files of jobs too, which may be missing.
#[test]
fn every_file_of_a_project_is_in_its_folder() {
    use std::os::unix::fs::symlink;
    let outside = |own: &Own, name: &str, text: &str| {
        let path = own.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let refused = |error: Error, code: &str, part: &str| {
        assert!(error.code() == code && error.to_string().contains(part), "{error}");
    };
    const OUTSIDE: &str = "is outside of the project";

    let own = Own::new();
    let config = own.read().unwrap().config().clone();
    let jobs = |input: &str, out: &str, expect: &str, model: &str| {
        own.write(
            "shef.toml",
            &format!(
                "{SHEF}[jobs.j]\nin = [\"a0={input}\"]\nstart = \"0=1\"\ndone = \"4=1\"\nout = [\"result0={out}:64\"]\n\
                 [tests.t]\njob = \"j\"\nexpect = [\"result0={expect}\"]\nmodel = \"{model}:f\"\n"
            ),
        );
        Jobs::read(&own.dir(), &config)
    };
    let file = outside(&own, "file", "of others");
    own.write("in.bin", "in");
    symlink("../file", own.dir().join("link")).unwrap();
    symlink("../none", own.dir().join("dangling")).unwrap();
    symlink("..", own.dir().join("up")).unwrap();
    symlink("in.bin", own.dir().join("inner")).unwrap();
    let within = own.dir().join("in.bin").display().to_string();
    for good in ["in.bin", "none", "none/none", "inc/../none", "inner", &within] {
        jobs(good, good, good, good).unwrap_or_else(|e| panic!("{good}: {e}"));
    }
    for (bad, part) in [
        ("../file", OUTSIDE),
        ("../none", OUTSIDE),
        ("link", OUTSIDE),
        ("up/none", OUTSIDE),
        ("up/file", OUTSIDE),
        ("inc/../../file", OUTSIDE),
        (file.to_str().unwrap(), OUTSIDE),
        ("/none/none", OUTSIDE),
        ("dangling", "cannot find"),
        ("none/../../file", "cannot find"),
    ] {
        for at in 0..4 {
            let mut names = ["in.bin"; 4];
            names[at] = bad;
            let [input, out, expect, model] = names;
            let error = jobs(input, out, expect, model).expect_err(&format!("{bad} {at}"));
            refused(error, "SHEF-PRJ-004", part);
        }
    }

    // The descriptions themselves.
    for name in ["shield.toml", "shef.toml"] {
        let own = Own::new();
        let text = fs::read_to_string(own.dir().join(name)).unwrap();
        outside(&own, name, &text);
        fs::remove_file(own.dir().join(name)).unwrap();
        symlink(Path::new("..").join(name), own.dir().join(name)).unwrap();
        refused(own.read().expect_err(name), "SHEF-CARD-003", OUTSIDE);
        if name == "shef.toml" {
            refused(Jobs::read(&own.dir(), &config).expect_err(name), "SHEF-CARD-003", OUTSIDE);
        }
    }

    // Headers, through a link and through the text of the directive.
    let own = Own::new();
    outside(&own, "defs.svh", "`define STEP 1\n");
    fs::remove_file(own.dir().join("inc/defs.svh")).unwrap();
    symlink("../../defs.svh", own.dir().join("inc/defs.svh")).unwrap();
    refused(
        own.read().expect_err("a header behind a link"),
        "SHEF-RTL-018",
        "outside of the project",
    );
    fs::remove_file(own.dir().join("inc/defs.svh")).unwrap();
    own.edit("rtl/a.sv", "defs.svh", "../../defs.svh");
    refused(own.read().expect_err("a header with .."), "SHEF-RTL-018", "named below its folder");
}

#[test]
fn jobs_and_tests_of_a_project_are_read_with_their_places() {
    const JOBS: &str = "
[registers]
ctrl = 0x00
status = 0x04
blocks = 0x08

[jobs.sum]
in = [\"a0=a.bin\", \"b0=random:4096\"]
reg = [\"blocks=8\", \"0x10=@a0\"]
start = \"ctrl=1\"
done = \"status:1=1\"
out = [\"result0=sum.bin:4096\"]
read = [\"status\"]

[tests.sum]
job = \"sum\"
expect = [\"result0=golden.bin\", \"status=2\"]
model = \"model.py:sum\"
seeds = 3
";
    let own = Own::new();
    let design = Design::project(&own.dir()).unwrap();
    assert!(Jobs::read(&own.dir(), design.config()).unwrap().jobs.is_empty());
    let digest = design.digest();
    let jobs = |text: &str| {
        own.write("shef.toml", text);
        Jobs::read(&own.dir(), design.config())
    };
    let all = format!("{SHEF}{JOBS}");
    let read = jobs(&all).unwrap();
    let job = &read.jobs["sum"];
    assert_eq!(job.done, Some(Done { offset: 4, mask: 2, value: 2 }));
    assert_eq!((job.inputs.len(), job.registers.len(), job.outputs.len()), (2, 2, 1));
    let test = &read.tests["sum"];
    assert_eq!((test.seeds, test.expect.len()), (3, 2));
    assert_eq!(test.expect[1], Expect::Register { offset: 4, value: 2 });
    assert_eq!(test.model.as_ref().unwrap().file, own.dir().join("model.py"));
    assert_eq!(Design::project(&own.dir()).unwrap().digest(), digest, "jobs are not measured");

    for (from, to, place, part) in [
        ("a0=a.bin", "a9=a.bin", "15:7", "no region is named \"a9\""),
        ("b0=random", "a0=random", "15:19", "in this list twice"),
        ("blocks=8", "block=8", "16:8", "there are blocks, ctrl, status"),
        ("status:1=1", "status", "18:8", "expected REGISTER:BIT=1"),
        ("sum.bin:4096", "sum.bin", "19:8", "expected REGION=FILE:BYTES"),
        ("job = \"sum\"", "job = \"add\"", "23:7", "the jobs are sum"),
        ("status=2", "ctrl=2", "24:33", "a register of its `read`"),
        ("seeds = 3", "seeds = 0", "26:9", "expected 1 to 100000 seeds"),
        ("model.py:sum", "model.py", "25:9", "expected FILE:FUNCTION"),
        ("read = [", "seconds = 0\nread = [", "20:11", "expected 1 or more"),
        ("blocks = 0x08", "blocks = 6", "12:1", "a multiple of 4"),
        (
            "ctrl = 0x00",
            "ctrl = -4",
            "10:1",
            "expected the offset of a register, a multiple of 4 below 0x10000, found -4",
        ),
        (
            "blocks = 0x08",
            "blocks = 4",
            "12:1",
            "one name for an offset: status at 11:1 also has the offset 0x4",
        ),
        ("ctrl = 0x00", "ctrl = 0x08", "12:1", "ctrl at 10:1 also has the offset 0x8"),
        ("start = \"ctrl=1\"\n", "", "", "missing field `start`"),
        ("blocks = 0x08", "ctrl = 0x08", "12:1", "duplicate key"),
    ] {
        assert!(all.contains(from), "{from}");
        let error = jobs(&all.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(&format!("shef.toml:{place}")), "{to}: {error}");
        assert!(error.contains(part), "{to}: {error}");
    }
    let expects = all.find("expect =").unwrap();
    let error = jobs(&all[..expects]).unwrap_err().to_string();
    assert!(error.contains("cannot fail"), "{error}");
}

/// Otherwise, a source in it would be missing without an error.
#[test]
fn a_folder_that_cannot_be_listed_is_an_error() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    for name in ["shield.toml", "shef_accel.sv"] {
        fs::copy(repo_root().join("examples/vecadd").join(name), dir.path().join(name)).unwrap();
    }
    let closed = dir.path().join("sub/closed");
    fs::create_dir_all(&closed).unwrap();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(dir.path(), 0o755);
    // Root lists every folder. Linux keeps the user for each thread.
    let read = || {
        std::thread::scope(|scope| {
            let read = scope.spawn(|| {
                if rustix::process::geteuid().is_root() {
                    let nobody = rustix::process::Uid::from_raw(65534);
                    rustix::thread::set_thread_uid(nobody).unwrap();
                }
                fs::read_dir(repo_root()).is_ok().then(|| Design::project(dir.path()))
            });
            read.join().unwrap()
        })
    };
    let Some(design) = read() else {
        println!("skipped: other users cannot read this repository");
        return;
    };
    design.unwrap();
    mode(&closed, 0o000);
    let error = read().unwrap().unwrap_err().to_string();
    mode(&closed, 0o755);
    assert!(error.contains("cannot list") && error.contains("sub/closed"), "{error}");
}
