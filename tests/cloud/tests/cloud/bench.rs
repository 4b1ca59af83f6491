//! A vendor's machine with fakes for all programs, in memory.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use shef_fakes::world::World;

/// Names that the one program acts under.
const PROGRAMS: [&str; 8] = [
    "shef",
    "aws",
    "vivado",
    "python3",
    "modprobe",
    "fpga-describe-local-image",
    "fpga-load-local-image",
    "fpga-clear-local-image",
];
/// The header of our model, which has the ports of the HDK's.
const HEADER: &str = include_str!("../../../../shell-rtl/shell/f2_model/cl_ports.vh");
/// Of the project.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SCRIPTS: &str = "hdk/common/shell_stable/build/scripts";
const TEMPLATE: &str = "hdk/cl/examples/CL_TEMPLATE/build/scripts";
const CHECKPOINT: &str =
    "hdk/common/shell_stable/build/checkpoints/from_aws/cl_bb_routed.small_shell.dcp";

/// The description of the HBM, in the kit.
pub const HBM: &str = "hdk/hdk/common/ip/cl_ip/cl_ip.srcs/sources_1/ip/cl_hbm/cl_hbm.xci";

/// A program that runs yosys with the PATH of this test: `python3` of the machine is a fake.
fn yosys() -> String {
    let command = shef_project::yosys().unwrap();
    let quoted = |text: &OsStr| format!("'{}'", text.to_str().unwrap().replace('\'', "'\\''"));
    let path = std::env::var_os("PATH").unwrap();
    let mut words = vec!["/usr/bin/env".to_owned(), format!("PATH={}", quoted(&path))];
    let set = |(name, value): (&OsStr, Option<&OsStr>)| {
        value.map(|value| format!("{}={}", name.display(), quoted(value)))
    };
    words.extend(command.get_envs().filter_map(set));
    words.push(quoted(command.get_program()));
    words.extend(command.get_args().map(quoted));
    format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))
}

/// A machine.
pub struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    /// With programs, an HDK, and empty worlds.
    pub fn new() -> Self {
        let bench = Self { dir: tempfile::tempdir_in("/dev/shm").unwrap() };
        fs::create_dir(bench.at("bin")).unwrap();
        for name in PROGRAMS {
            symlink(env!("CARGO_BIN_EXE_shef-fakes"), bench.at("bin").join(name)).unwrap();
        }
        bench.write("bin/yosys", &yosys());
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(bench.at("bin/yosys"), mode).unwrap();
        bench.write("hdk/release_version.txt", "RELEASE_VERSION=2.3.2\n");
        bench.write(
            "hdk/supported_vivado_versions.txt",
            "vivado v2024.1 (64-bit)\nvivado v2025.1 (64-bit)\n",
        );
        let shell = "hdk/hdk/common/shell_stable";
        bench.write(&format!("{shell}/shell_version.txt"), "small_shell=0x10212415\n");
        let header = format!("//====\n// ports: clk, [31:0]\n//====\n{HEADER}");
        bench.write(&format!("{shell}/design/interfaces/cl_ports.vh"), &header);
        bench.write(&format!("hdk/{CHECKPOINT}"), "the shell");
        let digest = hex::encode(Sha256::digest("the shell"));
        bench.write(&format!("hdk/{CHECKPOINT}.sha256"), &format!("{digest}  cl_bb.dcp\n"));
        let maps = (0..16).map(|n| (format!("MC{n}_MANUAL_ADDR_MAP_SEL"), "false"));
        let needs = [
            ("HBM_DENSITY", "16GB"),
            ("HBM_STACK", "2"),
            ("SWITCH_ENABLE_00", "TRUE"),
            ("SWITCH_ENABLE_01", "TRUE"),
        ];
        let needs = needs.map(|(name, value)| (name.to_owned(), value));
        let entry = |(name, value)| format!("\"USER_{name}\": [ {{ \"value\": \"{value}\" }} ],\n");
        bench.write(HBM, &needs.into_iter().chain(maps).map(entry).collect::<String>());
        fs::create_dir_all(bench.at("hdk").join(TEMPLATE)).unwrap();
        for name in
            ["aws_build_dcp_from_cl.py", "build_all.tcl", "build_level_1_cl.tcl", "encrypt.tcl"]
        {
            bench.write(&format!("hdk/{SCRIPTS}/{name}"), "# of the HDK\n");
            let link = bench.at("hdk").join(TEMPLATE).join(name);
            symlink(format!("../../../../../common/shell_stable/build/scripts/{name}"), link)
                .unwrap();
        }
        bench.write("proc/meminfo", "MemTotal: 65000000 kB\n");
        for below in [
            ".Xilinx/Vivado/Vivado_init.tcl",
            ".Xilinx/Vivado/2025.1/Vivado_init.tcl",
            ".Xilinx/Xilinx.lic",
            ".local/lib/python3.13/site-packages/usercustomize.py",
        ] {
            bench.write(&format!("home/{below}"), "# of the user\n");
        }
        bench
    }

    /// A path below it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        // Whatever the umask is.
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        let mut folder = self.dir.path().to_owned();
        for name in Path::new(path).parent().unwrap() {
            folder.push(name);
            if fs::create_dir(&folder).is_ok() {
                set(&folder, 0o755).unwrap();
            }
        }
        let path = self.at(path);
        let is_new = !path.exists();
        fs::write(&path, text).unwrap();
        if is_new {
            set(&path, 0o644).unwrap();
        }
    }

    /// Sets the faults.
    pub fn faults(&self, lines: &str) {
        self.write("faults", lines);
    }

    /// The calls of programs so far, as `FORM: COMMAND`.
    pub fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What the fakes remember.
    pub fn world(&self) -> World {
        World::of(self.dir.path())
    }

    /// The digest of the HDK's encryption script.
    pub fn encrypt_script(&self) -> String {
        hex::encode(Sha256::digest(
            fs::read(self.at("hdk").join(SCRIPTS).join("encrypt.tcl")).unwrap(),
        ))
    }

    /// `shef` with the environment of hdk_setup.sh.
    pub fn shef(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.at("bin/shef"));
        let kit = self.at("hdk");
        command.args(words).current_dir(self.dir.path()).env_clear();
        for (name, below) in [
            ("AWS_FPGA_REPO_DIR", ""),
            ("HDK_DIR", "hdk"),
            ("HDK_COMMON_DIR", "hdk/common"),
            ("HDK_SHELL_DIR", "hdk/common/shell_stable"),
            ("HDK_SHELL_DESIGN_DIR", "hdk/common/shell_stable/design"),
            ("HDK_IP_SRC_DIR", "hdk/common/ip"),
            ("HDK_BD_SRC_DIR", "hdk/common/bd"),
            ("HDK_BD_GEN_DIR", "hdk/common/gen"),
        ] {
            command.env(name, kit.join(below));
        }
        for name in ["SHEF_ROOT", "SHEF_IBEX"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for name in ["XILINX_PATH", "MYVIVADO", "XILINX_TCLAPP_REPO", "TCLLIBPATH", "PYTHONPATH"] {
            command.env(name, self.at("home"));
        }
        command
            .env("HOME", self.at("home"))
            .env("VIVADO_TOOL_VERSION", "2025.1")
            .env("PATH", self.at("bin"))
            .env("SHEF_YOSYS", self.at("bin/yosys"))
            .env("SHEF_FAKES", self.dir.path())
            .env("TMPDIR", self.dir.path());
        command
    }

    /// Runs `shef`.
    pub fn run(&self, words: &[&str]) -> Output {
        self.shef(words).output().unwrap()
    }

    /// Runs `shef --json`, which must succeed.
    #[track_caller]
    pub fn ok(&self, words: &[&str]) -> Value {
        let output = self.shef(words).arg("--json").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {said}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// Runs `shef`, which must fail with this code, a message with this text, and a next step.
    /// Returns the exit status.
    #[track_caller]
    pub fn fails(&self, words: &[&str], code: &str, says: &str) -> i32 {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&format!("error [{code}]: ")), "{words:?}: expected {code}: {said}");
        assert!(said.contains(says), "{words:?}: expected {says:?}: {said}");
        assert!(said.contains("\nhelp: "), "{words:?}: no next step: {said}");
        output.status.code().unwrap_or(-1)
    }

    /// Makes the folder of an image.
    pub fn new_image(&self) -> Value {
        let kit = self.at("hdk").display().to_string();
        self.ok(&["cloud", "new", "image", "--hdk", &kit, "--vendor", "vendor"])
    }

    /// The words of `shef cloud build`.
    pub fn build(&self) -> Vec<String> {
        let digest = self.encrypt_script();
        ["cloud", "build", "image", "--encrypt-script", &digest].map(str::to_owned).to_vec()
    }

    /// The vendor's reference values for the image.
    pub fn reference_values(&self, design: &str) {
        let config = Path::new(ROOT).join("shell-rtl/accel/digits/shield.toml");
        self.write("payload", "-");
        self.ok(&[
            "image",
            "build",
            "--config",
            config.to_str().unwrap(),
            "--payload",
            "payload",
            "--design",
            design,
            "--accelerator",
            "digits-knn",
            "--target",
            "aws-f2",
            "--svn",
            "1",
            "--vendor",
            "vendor",
            "--out",
            "digits.shef",
        ]);
    }

    /// The words of `shef cloud afi`.
    pub fn afi(&self) -> Vec<String> {
        let kernel = Path::new(ROOT).join("attestation/firmware/kernel.img");
        let words = [
            "cloud",
            "afi",
            "image",
            "--bucket",
            "vendor-bucket",
            "--region",
            "us-east-1",
            "--kernel",
            kernel.to_str().unwrap(),
            "--corim",
            "digits.corim",
            "--signers",
            "digits.signers.toml",
            "--lock",
            "digits.lock",
            "--interval",
            "0",
        ];
        words.map(str::to_owned).to_vec()
    }

    /// The words of `shef cloud load`.
    pub fn load() -> Vec<String> {
        ["cloud", "load", "--lock", "digits.lock", "--wait", "20"].map(str::to_owned).to_vec()
    }

    /// The secret, as hexadecimal digits without `_`.
    pub fn secret(&self) -> String {
        let text =
            fs::read_to_string(self.at("image/cl_shef/design/shef_image_secret_pkg.sv")).unwrap();
        let number = text.split_once("256'h").unwrap().1.split(';').next().unwrap().to_owned();
        number.replace('_', "")
    }
}

/// Words as `&str`.
pub fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}
