//! Every byte that a tool reads for a design is in its digest, and the digest and the build share a
//! single read.

use shef_project::{Listed, SourceSet};
use shef_rtl::{DesignSpec, Error, build};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// An empty folder with a module `top` that holds `body`.
struct Project(PathBuf);

impl Project {
    fn new(name: &str, head: &[u8], body: &[u8]) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("measured").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("own/inc")).unwrap();
        let project = Self(dir);
        let ports = b"\nmodule top (input logic clk_i, output logic [31:0] o);\n";
        project.write("top.sv", &[head, ports, body, b"\nendmodule\n"].concat());
        project
    }

    fn dir(&self) -> PathBuf {
        self.0.join("own")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.dir().join(name), bytes).unwrap();
    }

    fn spec(&self) -> DesignSpec {
        DesignSpec::new("top").project(self.dir())
    }

    fn digest(&self) -> Result<[u8; 32], Error> {
        self.spec().digest()
    }

    /// The message of the error, which must have this code.
    fn refused(&self, code: &str) -> String {
        let error = self.digest().expect_err("a digest");
        assert_eq!(error.code(), code, "{error}");
        error.to_string()
    }
}

const CONSTANT: &[u8] = b"assign o = 32'd1;";

#[test]
fn headers_are_measured_however_they_are_included() {
    for (i, include) in [
        "\"defs.svh\"",
        "  \"defs.svh\"",
        "\t\"defs.svh\"",
        " <defs.svh>",
        " /* why */ \"defs.svh\" // so",
        " \"inc/defs.vh\"",
        " \"./inc/defs.vh\"",
    ]
    .iter()
    .enumerate()
    {
        let project = Project::new(
            &format!("include{i}"),
            format!("`include{include}").as_bytes(),
            b"assign o = `STEP;",
        );
        let digest = |step: u32| {
            for file in ["defs.svh", "inc/defs.vh"] {
                project.write(file, format!("`define STEP 32'd{step}\n").as_bytes());
            }
            project.digest().unwrap()
        };
        assert_ne!(digest(1), digest(2), "{include}");
        if i > 4 {
            build(&project.spec()).expect("Verilator finds it");
        }
    }
}

#[test]
fn headers_outside_of_the_project_are_refused_with_their_line() {
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside.svh");
    fs::write(&outside, "`define STEP 1\n").unwrap();
    for (i, include) in [
        &format!("\"{}\"", outside.display()),
        "\"../outside.svh\"",
        "\"inc/../../outside.svh\"",
        "\"none.svh\"",
        "`HEADER",
        "`\"HEADER`\"",
        "",
    ]
    .iter()
    .enumerate()
    {
        let project = Project::new(
            &format!("outside{i}"),
            format!("// one\n  `include {include}").as_bytes(),
            CONSTANT,
        );
        let message = project.refused("SHEF-RTL-018");
        assert!(message.contains("top.sv:2:3: `include"), "{message}");
    }
}

#[test]
fn what_reads_or_runs_something_outside_is_refused_with_its_place() {
    let bodies = [
        "initial $readmemh(\"rom.hex\", rom);",
        "initial $readmemb (\"rom.hex\", rom);",
        "integer f; initial f = $fopen(\"x\", \"r\");",
        "initial $fread(o, 0);",
        "initial $fgets(o, 32'h8000_0000);",
        "initial $system(\"date\");",
        "initial $value$plusargs(\"x=%d\", o);",
        "initial if ($test$plusargs(\"x\")) o = 1;",
        "assign o = $c(\"rand()\");",
        "assign o = $c32(\"rand()\");",
        "initial $writememh(\"x\", rom);",
        "initial $sreadmemh(rom, 0, 1);",
        "initial $sdf_annotate(\"x\");",
        "initial $my_own_vpi;",
        "import \"DPI-C\" function int getpid();",
        "import\t/* c */ \"DPI\" function int getpid();",
        "export \"DPI-C\" function f;",
        "import (* a *) \"DPI-C\" function int getpid();",
        "export (* a *) \"DPI-C\" function f;",
        "import `celldefine \"DPI-C\" function int getpid();",
        "import\n`line 1 \"a.sv\" 0\n\"DPI-C\" function int getpid();",
        "`systemc_header_post\n#include <a.h>\n`verilog",
        "bind other spy s ();",
        "config c; endconfig",
        "`define R initial \\\n $readmemh(\"rom.hex\", rom);",
        "`systemc_header\n#include <x>\n`verilog",
        "`verilator_config\nlint_off\n`verilog",
        "`pragma protect begin_protected",
        "`protected\nabc\n`endprotected",
        "`systemc_ctor\nx();\n`verilog",
        "`uselib lib=x",
        "`pragma reset",
        "`line 1 \"other.sv\" 0",
        "`begin_keywords \"1364-1995\"",
        "class c; rand bit a; constraint k {a > 0;} endclass",
        "initial void'(std::randomize(o));",
        "initial void'(v.randomize() with {a > 3;});",
    ];
    for (i, body) in bodies.iter().enumerate() {
        let message =
            Project::new(&format!("reads{i}"), b"", body.as_bytes()).refused("SHEF-RTL-018");
        assert!(
            message.contains("top.sv:")
                && message.contains("can reach outside of the measured design"),
            "{body}: {message}"
        );
    }
    let place = Project::new("place", b"// \xb5", b"  initial $readmemh(\"x\", r);")
        .refused("SHEF-RTL-018");
    assert!(place.contains("top.sv:3:11: $readmemh"), "{place}");
}

#[test]
fn comments_strings_and_names_are_no_directives() {
    let bodies: [&[u8]; 7] = [
        b"// $readmemh(\"x\", r); `include \"none.svh\"",
        b"/* $fopen\n `include \"none.svh\" */",
        b"initial $display(\"$readmemh `include <none> // \\\" $fopen\");",
        b"logic \\$readmemh ; assign \\$readmemh = 1'b1;",
        b"logic [$clog2(32)-1:0] x; assign x = $bits(o);",
        b"logic [7:0] q [$]; initial $info(\"%d\", q[$]);",
        b"logic \\a\"b ; /* \" */",
    ];
    for (i, body) in bodies.iter().enumerate() {
        Project::new(&format!("harmless{i}"), b"", body)
            .digest()
            .unwrap_or_else(|e| panic!("{}: {e}", String::from_utf8_lossy(body)));
    }
}

#[test]
fn pragmas_are_those_that_change_no_design() {
    let admitted = [
        "/* verilator lint_off UNUSEDSIGNAL */",
        "// verilator lint_off WIDTHTRUNC, WIDTHEXPAND // both",
        "//verilator lint_save",
        "/*verilator tracing_off*/",
        "// the verilator lint_off MODDUP",
    ];
    for (i, pragma) in admitted.iter().enumerate() {
        Project::new(&format!("pragma{i}"), pragma.as_bytes(), CONSTANT)
            .digest()
            .unwrap_or_else(|e| panic!("{pragma}: {e}"));
    }
    let refused = [
        "// verilator lint_off MODDUP",
        "//verilator lint_off moddup",
        "/*verilator  lint_off   WIDTH,MODDUP*/",
        "/* verilator lint_off\nMODDUP */",
        "/*verilator lint_off WIDTH // MODDUP*/",
        "/*verilator lint_on USERERROR*/",
        "`define X /*verilator lint_off MODDUP*/",
        "// verilator public_flat_rw",
        "/*verilator systemc_clock*/",
        "/*verilator*/",
        "//verilatorlint_off MODDUP",
    ];
    for (i, pragma) in refused.iter().enumerate() {
        let message = Project::new(&format!("pragma_refused{i}"), pragma.as_bytes(), CONSTANT)
            .refused("SHEF-RTL-018");
        assert!(
            message.contains("top.sv:1:") && message.contains("the pragma \"verilator"),
            "{pragma}: {message}"
        );
    }
    // Assembled by macros.
    let project =
        Project::new("pragma_glued", b"`define S /\n`S``* verilator lint_off MODDUP *`S", CONSTANT);
    project.digest().expect("no such comment in the text");
    let error = build(&project.spec()).err().expect("refused").to_string();
    assert!(error.contains("top.sv:2: the pragma \"verilator lint_off MODDUP"), "{error}");
}

#[test]
fn directives_and_macros_of_a_design_are_admitted() {
    let head =
        b"`include \"defs.svh\"\n`timescale 1ns/1ps\n`default_nettype none\n`ifndef NONE\n`define JOIN(a, b = (1)) a``_x `\"lit`\"\n`endif";
    let project = Project::new(
        "macros",
        head,
        b"assign o = `WIDTH'd1; // `unknown\ninitial $display(`__FILE__, \"`none\");",
    );
    project.write("defs.svh", b"`define WIDTH 32\n");
    build(&project.spec()).expect("build");
    let project = Project::new("macro_missing", b"", b"\nassign o = `WIDTH'd1;");
    let message = project.refused("SHEF-RTL-018");
    assert!(message.contains("top.sv:4:12: `WIDTH can reach"), "{message}");
}

/// Macros hide the name of a module; the preprocessed design shows it.
#[test]
fn a_name_that_macros_hide_is_declared_once() {
    let sub = b"module sub (output logic [31:0] o); assign o = 32'd7; endmodule\n";
    for (i, (user, unit)) in [
        ("import aaa_pkg::*;", "package aaa_pkg; localparam int X = 1; endpackage\n"),
        ("zzz z ();", "module zzz; endmodule\n"),
        ("zzz z ();", "module zzz; endmodule\nmodule `N (output logic [31:0] o); assign o = 32'd665; endmodule\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let project = Project::new(&format!("hidden{i}"), b"", format!("{user}\nsub s (.o);").as_bytes());
        project.write("sub.sv", sub);
        let file = if user.starts_with("import") { "aaa_pkg.sv" } else { "zzz.sv" };
        let hidden = "\n`define N sub\nmodule `N (output logic [31:0] o); assign o = 32'd666; endmodule\n";
        project.write(file, format!("`define N sub\n{unit}{hidden}").as_bytes());
        project.digest().expect("no such name in the text");
        let error = build(&project.spec()).err().expect("refused");
        assert_eq!(error.code(), "SHEF-RTL-019", "{error}");
        let text = error.to_string();
        assert!(text.starts_with("sub has two files: ") && text.contains(file), "{text}");
        assert!(i == 2 || text.contains("sub.sv"), "{text}");
    }
    // Variables and ports of an interface type declare nothing.
    let project =
        Project::new("interfaces", b"", b"bus b (); user u (.b); other v (.b);\nassign o = 32'd1;");
    project.write("bus.sv", b"interface bus; logic x; endinterface\n");
    for name in ["user", "other"] {
        let text = format!("module {name} (interface b); virtual interface bus v; endmodule\n");
        project.write(&format!("{name}.sv"), text.as_bytes());
    }
    project.digest().expect("a digest");
}

/// Nor may it have the name of a module of the Shield, whether the design reaches that module or
/// not.
#[test]
fn a_module_of_a_project_has_no_name_of_the_shield() {
    for (i, (name, shown)) in [("shef_renew", true), ("`N", false)].into_iter().enumerate() {
        let project =
            Project::new(&format!("shield{i}"), b"", b"import aaa_pkg::*;\nassign o = 32'd1;");
        let text = format!(
            "`define N shef_renew\npackage aaa_pkg; endpackage\nmodule {name}; endmodule\n"
        );
        project.write("aaa_pkg.sv", text.as_bytes());
        let spec = DesignSpec::new("top").search("shell-rtl/rtl").project(project.dir());
        let error = if shown {
            spec.digest().err()
        } else {
            spec.digest().map(|_| build(&spec).err()).expect("no such name in the text")
        };
        let error = error.expect("refused");
        assert_eq!(error.code(), "SHEF-RTL-019", "{error}");
        let text = error.to_string();
        assert!(text.contains("shef_renew.sv") && text.contains("aaa_pkg.sv"), "{text}");
    }
}

/// A name that a macro assembles shows only after preprocessing.
#[test]
fn a_name_that_macros_put_together_ends_the_build() {
    let head = b"`define GLUE(a, b) $``a``b";
    let project = Project::new(
        "glued",
        head,
        b"logic [31:0] rom [1]; initial `GLUE(read, memh)(\"rom.hex\", rom); assign o = rom[0];",
    );
    project.digest().expect("no such name in the text");
    let error = build(&project.spec()).err().expect("refused").to_string();
    assert!(error.contains("$readmemh can reach outside of the measured design"), "{error}");
}

/// The same for a header: Verilator reports the files that it read.
#[test]
fn a_file_that_macros_include_ends_the_build() {
    let outside = Path::new(env!("CARGO_TARGET_TMPDIR")).join("glued.svh");
    fs::write(&outside, "`define STEP 32'd1\n").unwrap();
    let above = format!("{}{}", "../".repeat(30), outside.strip_prefix("/").unwrap().display());
    for (i, file) in [outside.display().to_string(), above].iter().enumerate() {
        let head = format!(
            "`define P(x, f) `x f\n`P(include, \"{file}\")\n`ifndef STEP\n`define STEP 32'd2\n`endif"
        );
        let project =
            Project::new(&format!("glued_include{i}"), head.as_bytes(), b"assign o = `STEP;");
        project.digest().expect("no such directive in the text");
        let error = build(&project.spec()).err().expect("refused").to_string();
        assert!(
            error.contains("glued.svh") && error.contains("no source of the design"),
            "{error}"
        );
    }
}

/// Shield, kernel and system contain nothing forbidden.
#[test]
fn shipped_designs_are_admitted() {
    shef_rtl::module_spec("shef_host_top")
        .unwrap()
        .search("shell-rtl/accel/digits")
        .digest()
        .unwrap();
    shef_rtl::kernel_spec(None).unwrap().digest().unwrap();
    shef_rtl::system_spec(None).unwrap().search("shell-rtl/accel/digits").digest().unwrap();
}

/// Variables that add folders to a C++ compiler's search path do not affect a build.
#[test]
fn the_environment_adds_no_folder() {
    const CHILD: &str = "SHEF_TEST_ENVIRONMENT";
    if std::env::var_os(CHILD).is_some() {
        build(&Project::new("environment_child", b"", CONSTANT).spec()).expect("build");
        return;
    }
    let project = Project::new("environment", b"", CONSTANT);
    let folder = project.0.join("headers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("atomic"), "#error from the environment\n").unwrap();
    let cache = project.0.with_file_name("environment-cache");
    let _ = fs::remove_dir_all(&cache);
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_environment_adds_no_folder"])
        .env(CHILD, "1")
        .env("CPATH", &folder)
        .env("CPLUS_INCLUDE_PATH", &folder)
        // A cache without any library.
        .env("SHEF_CACHE", &cache)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}

#[test]
fn sources_are_bytes() {
    let project =
        Project::new("latin1", b"// Adder, latency 5 \xb5s, author J. M\xfcller", b"sub s (.o);");
    project.write(
        "sub.sv",
        b"/* \xe9 */ module sub (output logic [31:0] o); assign o = 32'd7; endmodule\n",
    );
    let digest = project.digest().unwrap();
    assert_eq!(build(&project.spec()).expect("build").design_digest(), digest);
    project.write(
        "sub.sv",
        b"/* \xe8 */ module sub (output logic [31:0] o); assign o = 32'd7; endmodule\n",
    );
    assert_ne!(project.digest().unwrap(), digest);
}

#[test]
fn two_files_of_one_module_are_an_error_that_names_both() {
    let sub = b"module sub (output logic [31:0] o); assign o = 32'd7; endmodule\n";
    let with = |name: &str, files: &[&str]| {
        let project = Project::new(name, b"", b"sub s (.o);");
        files.iter().for_each(|file| project.write(file, sub));
        project
    };
    let good = with("one", &["sub.sv"]).digest().unwrap();
    for (i, (first, second)) in
        [("sub.sv", "inc/sub.sv"), ("sub.sv", "Sub.sv"), ("sub.sv", "inc/SUB.sv")]
            .into_iter()
            .enumerate()
    {
        let message = with(&format!("two{i}"), &[first, second]).refused("SHEF-RTL-019");
        assert!(message.contains(first) && message.contains(second), "{message}");
    }
    // A file with another name that also declares the module.
    let project = Project::new("declared", b"", b"sub s (.o); other t ();");
    project.write("sub.sv", sub);
    project.write("other.sv", &[&sub[..], b"module other; endmodule\n"].concat());
    let message = project.refused("SHEF-RTL-019");
    assert!(message.contains("sub.sv") && message.contains("other.sv"), "{message}");
    // Two headers with the same name.
    let project = Project::new("headers", b"`include \"defs.svh\"", CONSTANT);
    project.write("defs.svh", b"");
    project.write("inc/defs.svh", b"`define X\n");
    project.refused("SHEF-RTL-019");
    // Copies that editors and version control create.
    let project =
        with("left", &["sub.sv", ".sub.sv", "sub.sv~", "#sub.sv#", "sub.sv.orig", "sub.sv.bak"]);
    fs::create_dir(project.dir().join(".git")).unwrap();
    project.write(".git/sub.sv", b"module sub; endmodule\n");
    symlink("user@host.1:2", project.dir().join(".#sub.sv")).unwrap();
    assert_eq!(project.digest().unwrap(), good);
}

#[test]
fn links_end_no_walk_and_lead_nowhere() {
    let project = Project::new("links", b"", CONSTANT);
    let plain = project.digest().unwrap();
    for (name, to) in
        [("a", ".."), ("b", ".."), ("c", "/"), ("d", "."), ("none.sv", "/none"), ("dir.sv", "..")]
    {
        symlink(to, project.dir().join(name)).unwrap();
    }
    fs::create_dir_all(project.0.join("beside")).unwrap();
    for name in ["a", "b"] {
        symlink("..", project.0.join("beside").join(name)).unwrap();
    }
    assert_eq!(project.digest().unwrap(), plain);
    // A source behind a link: inside the project it counts, outside of it is an error.
    let used = Project::new("linked", b"", b"sub s (.o);");
    used.write("inc/body", b"module sub (output logic [31:0] o); assign o = 32'd7; endmodule\n");
    symlink("inc/body", used.dir().join("sub.sv")).unwrap();
    used.digest().unwrap();
    fs::rename(used.dir().join("inc/body"), used.0.join("body")).unwrap();
    fs::remove_file(used.dir().join("sub.sv")).unwrap();
    symlink("../body", used.dir().join("sub.sv")).unwrap();
    let message = used.refused("SHEF-RTL-018");
    assert!(message.contains("sub.sv") && message.contains("outside of the project"), "{message}");
}

#[test]
fn files_that_are_not_regular_do_not_hang() {
    let project = Project::new("fifo", b"", b"sub s (.o);");
    let made =
        std::process::Command::new("mkfifo").arg(project.dir().join("sub.sv")).status().unwrap();
    assert!(made.success());
    let message = project.refused("SHEF-RTL-018");
    assert!(message.contains("sub.sv") && message.contains("regular file"), "{message}");
    // A name that is not UTF-8 names no module.
    let project = Project::new("names", b"", CONSTANT);
    let plain = project.digest().unwrap();
    fs::write(project.dir().join(std::ffi::OsStr::from_bytes(b"caf\xe9.sv")), "x").unwrap();
    assert_eq!(project.digest().unwrap(), plain);
}

/// A build uses the measured bytes: no leftovers of an earlier build, and no other folder that the
/// environment names.
#[test]
fn a_build_has_the_digest_of_its_sources() {
    let project = Project::new("built", b"", b"sub s (.o);");
    for value in [3, 4] {
        let text =
            format!("module sub (output logic [31:0] o); assign o = 32'd{value}; endmodule\n");
        project.write("sub.sv", text.as_bytes());
        let library = build(&project.spec()).expect("build");
        assert_eq!(library.design_digest(), project.digest().unwrap());
        let mut sim = shef_rtl::Sim::new(&library).expect("instance");
        sim.eval();
        assert_eq!(sim.peek("o"), value);
    }
}

/// The order of a list, its headers and names that need quotes reach Verilator as they are measured.
#[test]
fn a_listed_project_is_built_as_it_is_measured() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("measured/l\u{fc}st & 100 %");
    let _ = fs::remove_dir_all(&root);
    for (name, text) in [
        ("a/defs.svh", "`define STEP 32'd1\n"),
        ("b/defs.svh", "`define STEP 32'd2\n"),
        ("m.v", "`define TIMES 32'd3\n"),
        ("n.v", "`define TIMES 32'd4\n"),
        (
            "both modules.sv",
            "`include \"defs.svh\"\nmodule sub (output logic [31:0] o); assign o = z_pkg::Z + `STEP * `TIMES; endmodule\n\
             module top (input logic clk_i, output logic [31:0] o); sub s (.o); endmodule\n",
        ),
        ("z_pkg.sv", "package z_pkg; localparam logic [31:0] Z = 32'd10; endpackage\n"),
    ] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let root = root.canonicalize().unwrap();
    let mut digests = Vec::new();
    for (order, include, o) in [(["m.v", "n.v"], ["a", "b"], 14), (["n.v", "m.v"], ["b", "a"], 16)]
    {
        let files = order.into_iter().chain(["both modules.sv", "z_pkg.sv"]);
        let listed = Listed {
            files: files.map(|name| root.join(name)).collect(),
            include: include.map(|name| root.join(name)).into(),
            root: root.clone(),
            ..Listed::default()
        };
        let spec = DesignSpec::from(SourceSet::new("top").listed(listed, "top"));
        let library = build(&spec).unwrap_or_else(|e| panic!("{e}"));
        let digest = spec.digest().unwrap();
        assert_eq!(library.design_digest(), digest);
        let mut sim = shef_rtl::Sim::new(&library).expect("instance");
        sim.eval();
        assert_eq!(sim.peek("o"), o);
        digests.push(digest);
    }
    assert_ne!(digests[0], digests[1]);
}
