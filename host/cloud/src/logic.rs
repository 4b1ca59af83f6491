//! The folder of an image: the custom logic as the HDK's scripts expect it, with the secret, in
//! memory.
//!
//! ```text
//! NAME/                       0700, on tmpfs
//!   image.toml                what it was made from; written last
//!   device-id.der anchor.toml certificate for the boot medium, trust anchor
//!   cl_shef/design            our sources, flat; shef_image.sv; the secret
//!   cl_shef/build/scripts     our synthesis script, links to the HDK's scripts
//!   cl_shef/build/constraints our constraints
//!   out                       what `build` leaves: tarball and reports
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shef_gen::secret::SECRET_PACKAGE;

use crate::hdk::{Hdk, LINKS, RELEASE, VERSION, digest};
use crate::place::{self, Held};
use crate::{CloudError, run};

/// Top module: also the name of the custom logic's folder, as the HDK wants it.
pub const TOP: &str = "cl_shef";
/// Device type of an F2 image, in images and evidence.
pub const TARGET: &str = "aws-f2";
/// PCI ids of the custom logic: `cl_sh_id0` (device, vendor) and `cl_sh_id1` (subsystem, its vendor).
pub const IDS: [u32; 2] = [0xF010_1D0F, 0x1D51_FEDC];
/// The description of an image.
pub const IMAGE: &str = "image.toml";
/// Folder of the results.
pub const OUT: &str = "out";
/// First file of a folder that this program makes.
const MARK: &str = ".shef-cloud";
/// Version of [`IMAGE`].
const FORMAT: &str = "shef-image/1";
/// Parameter of the top module: the core's clock is 1,000 MHz divided by an eighth of it.
const DIVIDER: &str = "CoreDiv8";
/// Parameter of the top module: 1 for card memory in the HBM.
const HBM: &str = "Hbm";
/// The HDK's IP of the HBM, an element of a Tcl list.
const HBM_IP: &str = " \\\n  ${HDK_IP_SRC_DIR}/cl_hbm/cl_hbm.xci";
/// Constraints that the HDK's scripts read.
const CONSTRAINTS: [&str; 3] = ["cl_synth_user", "cl_timing_user", "small_shell_cl_pnr_user"];
const SYNTHESIS: &str = include_str!("scripts/synth.tcl");

/// Bytes of card memory: `CardBytes` of `cl_shef`.
const fn card_bytes(hbm: bool) -> u64 {
    if hbm { 16 << 30 } else { 64 << 30 }
}

/// Checks that the card memory of an image holds what a Shield's configuration has there, which ends
/// at `end`.
///
/// # Errors
/// SHEF-CLD-043.
pub fn holds(hbm: bool, accelerator: &str, end: u64) -> Result<(), CloudError> {
    let bytes = card_bytes(hbm);
    if end <= bytes {
        return Ok(());
    }
    Err(CloudError::TooFar { accelerator: accelerator.to_owned(), end, bytes })
}

/// The core's clock, as an MMCM makes it from 250 MHz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreClock {
    /// Eighths of the divider of 1,000 MHz.
    pub div8: u32,
}

impl CoreClock {
    /// The highest clock that is not above this one, in MHz.
    ///
    /// # Errors
    /// SHEF-CLD-054.
    pub fn at_most(mhz: f64) -> Result<Self, CloudError> {
        // Limits of the MMCM's divider and of the design.
        if !(10.0..=250.0).contains(&mhz) {
            return Err(CloudError::Value {
                what: "--core-mhz",
                found: mhz.to_string(),
                expected: "10 to 250",
            });
        }
        Ok(Self { div8: (8_000.0 / mhz).ceil() as u32 })
    }

    /// The clock in kHz.
    #[must_use]
    pub fn khz(self) -> u32 {
        8_000_000 / self.div8
    }
}

/// A file of the custom logic.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name, without folders.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What an image is made from, and its identity. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// Version of the format: `shef-image/1`.
    pub format: String,
    /// Name of the accelerator.
    pub accelerator: String,
    /// Folder of its project, without links, in UTF-8; none for the digits accelerator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Device type.
    pub target: String,
    /// Kind of root of trust.
    pub root_of_trust: String,
    /// Digest of the design, in hexadecimal.
    pub design: String,
    /// SHA-256 of the shell's checkpoint.
    pub shell: String,
    /// Version of the shell.
    pub shell_version: String,
    /// Folder of the HDK, in UTF-8.
    pub hdk: String,
    /// Its release.
    pub hdk_release: String,
    /// Clock of the core in kHz.
    pub core_khz: u32,
    /// Whether card memory is the HBM, 16 GiB, instead of the DDR, 64 GiB.
    pub hbm: bool,
    /// Name of the device: of every card with this image.
    pub ueid: String,
    /// SHA-256 of the DeviceID certificate.
    pub certificate: String,
    /// SHA-256 of every file that the build reads, except for the secret.
    pub files: BTreeMap<String, String>,
}

impl Image {
    /// The format that this program writes.
    #[must_use]
    pub fn format() -> String {
        FORMAT.to_owned()
    }
}

/// A folder of an image, held by this command.
pub struct Folder {
    dir: PathBuf,
    _held: Held,
}

/// Whether a new image's folder is there already, as an interrupted command leaves it. Otherwise the
/// name is free.
///
/// # Errors
/// SHEF-CLD-015 to SHEF-CLD-017, SHEF-CLD-054: no image can begin there.
pub fn is_left(dir: &Path) -> Result<bool, CloudError> {
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.is_empty() || name.starts_with(['.', '-']) {
        return Err(CloudError::Value {
            what: "NAME",
            found: dir.display().to_string(),
            expected: "a path that ends with a name",
        });
    }
    let refused = |found: &str| {
        let (dir, found, expected) = (dir.to_owned(), found.to_owned(), "a name that is free");
        Err(CloudError::Folder { dir, found, expected })
    };
    if dir.symlink_metadata().is_err() {
        place::in_memory(shef_files::folder(dir))?;
        Ok(false)
    } else if dir.join(IMAGE).exists() {
        refused("it holds an image")
    } else if !dir.join(MARK).is_file() {
        refused("it exists, and this command did not make it")
    } else {
        place::private(dir)?;
        Ok(true)
    }
}

/// `include "name"` of a line, if it has one.
fn included(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("`include")?.trim().strip_prefix('"')?.split('"').next()
}

/// Sources in one folder, as the HDK wants them: names are unique, and headers end in `.vh`, because
/// encrypt.tcl leaves `.svh` in the clear.
///
/// # Errors
/// SHEF-CLD-054 if two files have a name, or a name has another ending.
pub fn flat(sources: Vec<Source>) -> Result<Vec<Source>, CloudError> {
    let renamed = |name: &str| name.strip_suffix(".svh").map(|stem| format!("{stem}.vh"));
    let mut names = std::collections::BTreeSet::new();
    let mut out = Vec::new();
    for source in sources {
        let name = renamed(&source.name).unwrap_or_else(|| source.name.clone());
        let wrong = |expected| CloudError::Value {
            what: "the name of a source",
            found: source.name.clone(),
            expected,
        };
        if !names.insert(name.to_lowercase()) {
            return Err(wrong("a name that no other source has, also not with .vh for .svh"));
        }
        let ending = Path::new(&name).extension().and_then(|it| it.to_str());
        if name.contains('/') || !ending.is_some_and(|it| ["v", "sv", "vh"].contains(&it)) {
            return Err(wrong("a name with the ending v, sv, vh or svh, without folders"));
        }
        let bytes = match std::str::from_utf8(&source.bytes) {
            Err(_) => source.bytes,
            Ok(text) => {
                let line = |line: &str| match included(line).and_then(|header| {
                    let file = header.rsplit('/').next().unwrap_or(header);
                    let new = renamed(file).unwrap_or_else(|| file.to_owned());
                    (new != header).then(|| (format!("\"{header}\""), format!("\"{new}\"")))
                }) {
                    Some((from, to)) => line.replacen(&from, &to, 1),
                    None => line.to_owned(),
                };
                text.split_inclusive('\n').map(line).collect::<String>().into_bytes()
            }
        };
        out.push(Source { name, bytes });
    }
    Ok(out)
}

/// Module shef_image: everything of the image's identity, as constants.
///
/// # Errors
/// SHEF-CLD-054 for a digest or target of another length.
pub fn identity(design: &str, shell: &str, target: &str) -> Result<String, CloudError> {
    let digest = |what, text: &str| {
        let bytes = hex::decode(text).ok().filter(|bytes| bytes.len() == 32);
        bytes.map(|bytes| constant(&bytes)).ok_or_else(|| CloudError::Value {
            what,
            found: text.to_owned(),
            expected: "64 hexadecimal digits",
        })
    };
    if target.is_empty() || target.len() > 32 || !target.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(CloudError::Value {
            what: "the target",
            found: target.to_owned(),
            expected: "1 to 32 characters of ASCII",
        });
    }
    let mut padded = target.as_bytes().to_vec();
    padded.resize(32, 0);
    Ok(format!(
        "// Identity of one image: constants that its evidence shows. Generated by `shef cloud new`.\n\
         `default_nettype none\n\
         module shef_image (\n\
         \x20   output logic [255:0] uds_o,\n\
         \x20   output logic [1:0]   root_o,\n\
         \x20   output logic [255:0] target_o,\n\
         \x20   output logic [255:0] shell_o,\n\
         \x20   output logic [2:0]   shell_flags_o,\n\
         \x20   output logic [255:0] design_o,\n\
         \x20   output logic         debug_o\n\
         );\n\
         \x20 assign uds_o = {SECRET_PACKAGE}::UDS;\n\
         \x20 assign root_o = 2'd3;  // provider\n\
         \x20 assign target_o = {};  // {target}\n\
         \x20 assign shell_o = {};  // SHA-256 of the shell's checkpoint\n\
         \x20 assign shell_flags_o = '0;\n\
         \x20 assign design_o = {};\n\
         \x20 assign debug_o = 1'b0;\n\
         endmodule\n\
         `default_nettype wire\n",
        constant(&padded),
        digest("the digest of the shell", shell)?,
        digest("the digest of the design", design)?,
    ))
}

/// The script of synthesis: parameters of the top module, and the IP that it needs.
fn synthesis(clock: CoreClock, hbm: bool) -> String {
    let (parameter, ip) =
        if hbm { (format!(" -generic {HBM}=1"), HBM_IP) } else { (String::new(), "") };
    let generic = format!("{DIVIDER}={}{parameter}", clock.div8);
    SYNTHESIS.replace("@GENERIC@", &generic).replace("@HBM@", ip)
}

/// 32 bytes as a constant, byte 0 lowest.
fn constant(bytes: &[u8]) -> String {
    let mut text = String::from("256'h");
    for byte in bytes.iter().rev() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// cl_id_defines.vh, which the HDK's own packing script reads: an id that begins with 2 or 3 would
/// lose that digit there.
fn ids() -> String {
    let [one, two] = IDS.map(|id| format!("32'h{:04X}_{:04X}", id >> 16, id & 0xffff));
    format!(
        "// PCI ids of the custom logic. Generated by `shef cloud new`.\n\
         `ifndef CL_ID_DEFINES\n`define CL_ID_DEFINES\n\
         `define CL_SH_ID0 {one}\n`define CL_SH_ID1 {two}\n`endif\n"
    )
}

impl Folder {
    /// Begins a new folder. One that an interrupted command left is removed first.
    ///
    /// # Errors
    /// SHEF-CLD-015 to SHEF-CLD-017, SHEF-CLD-025, SHEF-CLD-054.
    pub fn begin(dir: &Path) -> Result<Self, CloudError> {
        if is_left(dir)? {
            let held = Held::take(dir)?;
            for secret in secrets(dir) {
                place::erase(&secret)?;
            }
            fs::remove_dir_all(dir).map_err(CloudError::io("remove", dir))?;
            drop(held);
        }
        place::make(dir)?;
        place::write(&dir.join(MARK), b"")?;
        Self::held(dir)
    }

    /// Takes an existing folder, with its image.
    ///
    /// # Errors
    /// SHEF-CLD-015 to SHEF-CLD-017, SHEF-CLD-025.
    pub fn open(dir: &Path) -> Result<(Self, Image), CloudError> {
        let image = read(dir)?;
        place::private(dir)?;
        Ok((Self::held(dir)?, image))
    }

    /// Takes the right to work in a folder. Programs get its whole path: they work elsewhere.
    fn held(dir: &Path) -> Result<Self, CloudError> {
        run::without_core_dumps()?;
        let dir = dir.canonicalize().map_err(CloudError::io("find", dir))?;
        let held = Held::take(&dir)?;
        Ok(Self { dir, _held: held })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Folder of the custom logic: the HDK's `CL_DIR`.
    #[must_use]
    pub fn logic(&self) -> PathBuf {
        self.dir.join(TOP)
    }

    /// Folder of the results.
    #[must_use]
    pub fn out(&self) -> PathBuf {
        self.dir.join(OUT)
    }

    /// Fills the folder and ends with the description of the image. The secret's package lies in
    /// the folder itself, and moves to its place. `image` lacks its `files`.
    ///
    /// # Errors
    /// SHEF-CLD-054, SHEF-CLD-055.
    pub fn fill(
        &self,
        hdk: &Hdk,
        sources: Vec<Source>,
        constraints: Vec<Source>,
        clock: CoreClock,
        mut image: Image,
    ) -> Result<Image, CloudError> {
        let design = self.logic().join("design");
        let build = self.logic().join("build");
        for folder in [&design, &build.join("scripts"), &build.join("constraints"), &self.out()] {
            fs::create_dir_all(folder).map_err(CloudError::io("make", folder))?;
        }
        let mut files = vec![
            Source {
                name: "shef_image.sv".to_owned(),
                bytes: identity(&image.design, &image.shell, &image.target)?.into_bytes(),
            },
            Source { name: "cl_id_defines.vh".to_owned(), bytes: ids().into_bytes() },
        ];
        files.extend(sources);
        for source in flat(files)? {
            let below = format!("{TOP}/design/{}", source.name);
            self.add(&below, &source.bytes, &mut image)?;
        }
        let missing = CONSTRAINTS.iter().filter(|name| {
            !constraints.iter().any(|given| given.name.strip_suffix(".xdc") == Some(**name))
        });
        let empty = missing.map(|name| Source {
            name: format!("{name}.xdc"),
            bytes: b"# Nothing to constrain here.\n".to_vec(),
        });
        for file in empty.collect::<Vec<_>>().into_iter().chain(constraints) {
            let below = format!("{TOP}/build/constraints/{}", file.name);
            self.add(&below, &file.bytes, &mut image)?;
        }
        let script = synthesis(clock, image.hbm);
        self.add(&format!("{TOP}/build/scripts/synth_{TOP}.tcl"), script.as_bytes(), &mut image)?;
        for name in LINKS {
            let link = build.join("scripts").join(name);
            std::os::unix::fs::symlink(hdk.shell().join("build/scripts").join(name), &link)
                .map_err(CloudError::io("link", &link))?;
        }
        let package = format!("{SECRET_PACKAGE}.sv");
        let (from, to) = (self.dir.join(&package), design.join(&package));
        fs::rename(&from, &to).map_err(CloudError::io("move", &from))?;
        let text = toml::to_string(&image).map_err(|e| CloudError::Value {
            what: "the description of the image",
            found: e.to_string(),
            expected: "TOML",
        })?;
        place::write(&self.dir.join(IMAGE), text.as_bytes())?;
        Ok(image)
    }

    fn add(&self, below: &str, bytes: &[u8], image: &mut Image) -> Result<(), CloudError> {
        let path = self.dir.join(below);
        place::write(&path, bytes)?;
        image.files.insert(below.to_owned(), digest(&path)?);
        Ok(())
    }

    /// The secret's package.
    #[must_use]
    pub fn secret(&self) -> PathBuf {
        let [_, secret] = secrets(&self.dir);
        secret
    }
}

/// Checks that every file that the build reads in the folder `dir` is as [`Folder::fill`] left it,
/// and that there is no other.
///
/// # Errors
/// SHEF-CLD-053.
pub fn unchanged(dir: &Path, hdk: &Hdk, image: &Image) -> Result<(), CloudError> {
    let changed =
        |file: PathBuf, what: &str| Err(CloudError::Changed { file, what: what.to_owned() });
    for (below, expected) in &image.files {
        let file = dir.join(below);
        match digest(&file) {
            Ok(found) if found == *expected => {}
            Ok(_) => return changed(file, "it was edited"),
            Err(_) => return changed(file, "it is missing"),
        }
    }
    let [_, secret] = secrets(dir);
    if !secret.is_file() {
        return changed(secret, "it is missing");
    }
    let logic = dir.join(TOP);
    for folder in ["design", "build/constraints"] {
        let folder = logic.join(folder);
        for entry in fs::read_dir(&folder).map_err(CloudError::io("list", &folder))? {
            let path = entry.map_err(CloudError::io("list", &folder))?.path();
            let below = path.strip_prefix(dir).unwrap_or(&path).display().to_string();
            // The HDK's scripts write the clocks' constraints.
            let theirs = path.ends_with("generated_cl_clocks_aws.xdc");
            if path != secret && !theirs && !image.files.contains_key(&below) {
                return changed(path, "it was added");
            }
        }
    }
    for name in LINKS {
        let link = logic.join("build/scripts").join(name);
        if fs::read_link(&link).ok() != Some(hdk.shell().join("build/scripts").join(name)) {
            return changed(link, "it is no link to the HDK");
        }
    }
    Ok(())
}

/// Checks that the HDK still has the shell that the image was made for: its checkpoint, its version
/// and the release.
///
/// # Errors
/// SHEF-CLD-001, SHEF-CLD-052, SHEF-CLD-053.
pub fn same_shell(hdk: &Hdk, image: &Image) -> Result<(), CloudError> {
    // The files as they are now.
    let now = Hdk::open(hdk.root())?;
    for (file, found, expected) in [
        (hdk.root().join(RELEASE), now.release.clone(), &image.hdk_release),
        (hdk.shell().join(VERSION), now.shell_version.clone(), &image.shell_version),
        (hdk.checkpoint(), now.shell_digest()?, &image.shell),
    ] {
        if found != *expected {
            let what = format!("it is that of {found}, and the image was made for {expected}");
            return Err(CloudError::Changed { file, what });
        }
    }
    Ok(())
}

/// Where the secret can be in a folder.
fn secrets(dir: &Path) -> [PathBuf; 2] {
    let name = format!("{SECRET_PACKAGE}.sv");
    [dir.join(&name), dir.join(format!("{TOP}/design/{name}"))]
}

/// The description of the image in a folder.
///
/// # Errors
/// SHEF-CLD-017.
pub fn read(dir: &Path) -> Result<Image, CloudError> {
    let wrong = |found: String| CloudError::Folder {
        dir: dir.to_owned(),
        found,
        expected: "the folder of an image, with its image.toml",
    };
    let bytes = shef_files::regular::read(&dir.join(IMAGE), 1 << 20)
        .map_err(|e| wrong(format!("{IMAGE}: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(format!("{IMAGE} is not text")))?;
    let image: Image = toml::from_str(&text).map_err(|e| wrong(format!("{IMAGE}: {e}")))?;
    if image.format == FORMAT {
        Ok(image)
    } else {
        Err(wrong(format!("{IMAGE} has the format {}", image.format)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    #[test]
    fn headers_end_as_encrypt_tcl_wants_and_names_are_unique() {
        let flat = flat(vec![
            source(
                "a.sv",
                "`include \"b.svh\"\n  `include \"sub/b.svh\" // b.svh\nlet s = \"b.svh\";\n",
            ),
            source("b.svh", "`define B 1\n"),
        ])
        .unwrap();
        assert_eq!(
            String::from_utf8(flat[0].bytes.clone()).unwrap(),
            "`include \"b.vh\"\n  `include \"b.vh\" // b.svh\nlet s = \"b.svh\";\n"
        );
        assert_eq!(flat[1].name, "b.vh");
        for names in [["b.svh", "b.vh"], ["a.sv", "A.sv"], ["a.mem", "b.sv"], ["x/a.sv", "b.sv"]] {
            let sources = names.map(|name| source(name, "")).to_vec();
            assert_eq!(super::flat(sources).unwrap_err().code(), "SHEF-CLD-054", "{names:?}");
        }
    }

    #[test]
    fn the_identity_is_byte_0_lowest_and_complete() {
        let design: String = (0..32).map(|n| format!("{n:02x}")).collect();
        let text = identity(&design, &"ab".repeat(32), "aws-f2").unwrap();
        assert!(text.contains("design_o = 256'h1f1e1d1c"), "{text}");
        assert!(
            text.contains(&format!("target_o = 256'h{}32662d737761;", "0".repeat(52))),
            "{text}"
        );
        assert!(text.contains("assign root_o = 2'd3;"));
        assert!(identity("ab", &design, "aws-f2").is_err());
        assert!(identity(&design, &design, &"x".repeat(33)).is_err());
    }

    #[test]
    fn a_shield_ends_below_the_card_memory_of_its_image() {
        let top = include_str!("../../../shell-rtl/shell/aws_f2/cl_shef.sv");
        let line = "CardBytes = Hbm ? 64'h4_0000_0000 : 64'h10_0000_0000;";
        assert!(top.contains(line), "other sizes of card memory");
        assert_eq!([true, false].map(card_bytes), [0x4_0000_0000, 0x10_0000_0000]);
        for (hbm, end, code) in [
            (true, 16 << 30, None),
            (true, (16 << 30) + 64, Some("SHEF-CLD-043")),
            (false, (16 << 30) + 64, None),
            (false, (64 << 30) + 1, Some("SHEF-CLD-043")),
        ] {
            assert_eq!(holds(hbm, "knn", end).err().map(|e| e.code()), code, "{hbm} {end}");
        }
    }

    #[test]
    fn the_hbm_is_a_parameter_and_an_ip() {
        let clock = CoreClock::at_most(125.0).unwrap();
        let [ddr, hbm] = [false, true].map(|hbm| synthesis(clock, hbm));
        assert!(ddr.contains("-generic CoreDiv8=64\n") && !ddr.contains("hbm"), "{ddr}");
        assert!(hbm.contains("-generic CoreDiv8=64 -generic Hbm=1\n"), "{hbm}");
        let list = "cl_axi_register_slice_light.xci \\\n  ${HDK_IP_SRC_DIR}/cl_hbm/cl_hbm.xci]\n";
        assert!(hbm.contains(list), "{hbm}");
        assert!(!ddr.contains('@') && !hbm.contains('@'));
    }

    #[test]
    fn no_id_begins_with_a_digit_that_the_hdk_strips() {
        for word in ids().split_whitespace().filter_map(|word| word.strip_prefix("32'h")) {
            assert!(word.split('_').all(|id| !id.starts_with(['2', '3'])), "{word}");
            assert!(!word.starts_with('0'));
        }
    }

    #[test]
    fn the_clock_is_never_faster_than_the_wish() {
        for (mhz, khz) in [(66.7, 66_666), (100.0, 100_000), (125.0, 125_000), (99.9, 98_765)] {
            assert_eq!(CoreClock::at_most(mhz).unwrap().khz(), khz, "{mhz}");
        }
        assert!(CoreClock::at_most(251.0).is_err() && CoreClock::at_most(f64::NAN).is_err());
    }
}
