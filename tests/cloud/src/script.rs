//! `aws_build_dcp_from_cl.py`: encrypts the sources, writes checkpoints and reports, and ends with
//! status 0 whatever happened.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A zip archive with one deflated member: a checkpoint of Vivado is one.
///
/// # Panics
/// Never: it is written into memory.
#[must_use]
pub fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).expect("memory");
    let packed = encoder.finish().expect("memory");
    let sizes = [packed.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
    let len = (name.len() as u16).to_le_bytes();
    let middle = [&[20, 0, 0, 0, 8, 0][..], &[0; 8], &sizes, &len, &[0, 0]].concat();
    let mut out = [b"PK\x03\x04", &middle[..], name.as_bytes(), &packed].concat();
    let directory = [b"PK\x01\x02", &[20, 0][..], &middle, &[0; 14], name.as_bytes()].concat();
    let (at, size) = (out.len() as u32, directory.len() as u32);
    out.extend(&directory);
    let end = [
        b"PK\x05\x06",
        &[0; 4][..],
        &[1, 0, 1, 0],
        &size.to_le_bytes(),
        &at.to_le_bytes(),
        &[0, 0],
    ];
    out.extend(end.concat());
    out
}

/// The secret as the package of the design has it, in hexadecimal digits.
fn secret(design: &Path) -> String {
    let text = fs::read_to_string(design.join("shef_image_secret_pkg.sv")).unwrap_or_default();
    let number = text.split_once("256'h").map_or("", |(_, rest)| rest);
    number.split(';').next().unwrap_or_default().to_owned()
}

/// Checks what Vivado and Python read when they start: no script, package or patch of the user, but the
/// license.
///
/// # Panics
/// If there is one.
pub fn starts_clean() {
    let home = PathBuf::from(std::env::var_os("HOME").expect("HOME"));
    for below in ["Vivado/Vivado_init.tcl", "Vivado/2025.1/Vivado_init.tcl"] {
        assert!(!home.join(".Xilinx").join(below).exists(), "Vivado sources {below}");
    }
    assert!(!home.join(".local").exists(), "Python has packages of the user");
    assert!(home.join(".Xilinx/Xilinx.lic").exists(), "Vivado finds its license");
    for name in ["XILINX_PATH", "MYVIVADO", "XILINX_TCLAPP_REPO", "TCLLIBPATH", "PYTHONPATH"] {
        assert!(std::env::var_os(name).is_none(), "{name}");
    }
}

/// Answers. Returns the exit status.
///
/// # Panics
/// If the script is not called as the HDK's wants it.
#[must_use]
pub fn answer(fault: &str, arguments: &[String]) -> i32 {
    starts_clean();
    let (cl, flow, tag) = (&arguments[2], &arguments[6], &arguments[12]);
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).unwrap_or_default());
    for name in ["HDK_SHELL_DIR", "HDK_SHELL_DESIGN_DIR", "HDK_COMMON_DIR"] {
        assert!(variable(name).is_dir(), "{name}");
    }
    assert_eq!(variable("XILINX_LOCAL_USER_DATA"), Path::new("no"));
    let logic = variable("CL_DIR").canonicalize().expect("CL_DIR");
    let here = std::env::current_dir().expect("a folder");
    assert!(here.starts_with(&logic), "the script wants a folder below CL_DIR");
    assert_eq!(logic.file_name().and_then(|it| it.to_str()), Some(cl.as_str()));
    for script in
        ["aws_build_dcp_from_cl.py", "encrypt.tcl", "build_all.tcl", "build_level_1_cl.tcl"]
    {
        assert!(here.join(script).exists(), "{script}");
    }
    let build = logic.join("build");
    let design = logic.join("design");
    let folder = |name: &str| {
        let path = build.join(name);
        fs::create_dir_all(&path).expect("made");
        path
    };
    let (checkpoints, reports, encrypted) =
        (folder("checkpoints"), folder("reports"), folder("src_post_encryption"));
    let write = |path: PathBuf, text: &[u8]| fs::write(path, text).expect("written");
    write(build.join("constraints/generated_cl_clocks_aws.xdc"), b"# clocks\n");
    println!("AWS FPGA: Build starts\nbuild_tag : {tag}");
    let vivado_log = here.join(format!("{tag}.vivado.log"));
    let secret = secret(&design);
    for old in fs::read_dir(&encrypted).expect("listed").flatten() {
        fs::remove_file(old.path()).expect("removed");
    }
    for file in fs::read_dir(&design).expect("listed").flatten() {
        let name = file.file_name();
        let text = fs::read(file.path()).expect("read");
        let is_secret = name.to_string_lossy().contains("secret");
        let envelope = format!(
            "`pragma protect begin_protected\n`pragma protect version = 2\n{}\n`pragma protect end_protected\n",
            text.len()
        );
        match fault {
            "plain" | "plain-violated" if is_secret => write(encrypted.join(&name), &text),
            "header" if is_secret => write(encrypted.join("shef_image_secret_pkg.svh"), &text),
            "dropped" if is_secret => {}
            "half" if is_secret => {
                write(encrypted.join(&name), &[envelope.as_bytes(), &text].concat());
            }
            _ => write(encrypted.join(&name), envelope.as_bytes()),
        }
    }
    let mut log = String::from("# Vivado v2025.1 (64-bit)\nsynth_design\n");
    match fault {
        "killed" => {
            println!(
                "/opt/vivado/bin/loader: line 312: 12345 Killed                  \"$RDI_PROG\" \"$@\" Killed"
            );
            write(vivado_log, log.as_bytes());
            return 0;
        }
        "broken" => {
            log += "ERROR: [Synth 8-439] module 'sh_ddr' not found\n";
            write(vivado_log, log.as_bytes());
            return 0;
        }
        "empty" => {
            write(checkpoints.join(format!("{cl}.{tag}.post_synth.dcp")), b"");
            write(checkpoints.join(format!("{cl}.{tag}.post_route.dcp")), b"");
            return 0;
        }
        "swap" => {
            let script = here.join("build_all.tcl").canonicalize().expect("a script");
            write(script, b"# another one\n");
        }
        "leak-tmp" => {
            write(variable("TMPDIR").join("vivado.tmp"), format!("UDS {secret}").as_bytes());
        }
        "leak-log" => log += &format!("parameter UDS = {}\n", secret.to_uppercase()),
        _ => {}
    }
    write(vivado_log, log.as_bytes());
    if flow == "SynthCL" {
        let content = if fault == "leak-dcp" {
            format!("INIT=256'h{secret}")
        } else {
            "INIT=2'h1".to_owned()
        };
        write(
            checkpoints.join(format!("{cl}.{tag}.post_synth.dcp")),
            &zip("netlist.edf", content.as_bytes()),
        );
        return 0;
    }
    let synthesised = checkpoints.join(format!("{cl}.{tag}.post_synth.dcp"));
    assert!(synthesised.exists(), "ImplCL wants the post-synthesis checkpoint");
    let late = matches!(fault, "violated" | "violated-report" | "plain-violated");
    let stage = if fault == "violated" { "post_route.VIOLATED" } else { "post_route" };
    write(checkpoints.join(format!("{cl}.{tag}.{stage}.dcp")), &zip("routed.xn", b"routes"));
    if fault != "no-report" {
        let slack = if late {
            "Slack (VIOLATED) :        -0.125ns"
        } else {
            "Slack (MET) :             0.031ns"
        };
        write(
            reports.join(format!("{cl}.{tag}.post_route_timing.rpt")),
            format!("Timing Report\n\n{slack}  (required time - arrival time)\n").as_bytes(),
        );
    }
    0
}
