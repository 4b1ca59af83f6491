//! The user's copy of AWS's hardware development kit (HDK), branch f2. Nothing of it is copied: a
//! custom logic refers to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use shef_console::file::TempFolder;

use crate::CloudError;

/// Oldest and newest release that this program was written for.
pub const KNOWN: [(u32, u32, u32); 2] = [(2, 3, 2), (2, 3, 4)];
/// File of the release, below the kit.
pub const RELEASE: &str = "release_version.txt";
/// File of the shell's version, below the shell.
pub const VERSION: &str = "shell_version.txt";
/// Folder of the shell, below the kit.
const SHELL: &str = "hdk/common/shell_stable";
/// The port list, below the shell.
const HEADER: &str = "design/interfaces/cl_ports.vh";
/// The shell's checkpoint, below the shell.
const CHECKPOINT: &str = "build/checkpoints/from_aws/cl_bb_routed.small_shell.dcp";
/// The encryption script, below the shell.
const ENCRYPT: &str = "build/scripts/encrypt.tcl";
/// SHA-256 of the encryption script in releases 2.0.2 to 2.3.4.
const ENCRYPT_DIGEST: &str = "7d7fdda49ce87ee26108033facb7f4b94ac8f8d15b6f9ac0a6790a604ad68291";
/// Links of every custom logic to the shell's scripts.
pub const LINKS: [&str; 4] =
    ["aws_build_dcp_from_cl.py", "build_all.tcl", "build_level_1_cl.tcl", "encrypt.tcl"];
/// The example whose links `doctor` checks.
const TEMPLATE: &str = "hdk/cl/examples/CL_TEMPLATE/build/scripts";
/// Variables that the kit's scripts need, and the folder that each names, below the kit.
const VARIABLES: [(&str, &str); 5] = [
    ("AWS_FPGA_REPO_DIR", ""),
    ("HDK_DIR", "hdk"),
    ("HDK_COMMON_DIR", "hdk/common"),
    ("HDK_SHELL_DIR", SHELL),
    ("HDK_SHELL_DESIGN_DIR", "hdk/common/shell_stable/design"),
];
/// Further variables, with values that the set-up chooses.
const MORE: [&str; 4] =
    ["HDK_IP_SRC_DIR", "HDK_BD_SRC_DIR", "HDK_BD_GEN_DIR", "VIVADO_TOOL_VERSION"];
/// The IP of the HBM, below the kit.
const HBM: &str = "hdk/common/ip/cl_ip/cl_ip.srcs/sources_1/ip/cl_hbm/cl_hbm.xci";
/// Values that it needs: two stacks, and a switch over each that gives all ports all addresses.
const HBM_NEEDS: [(&str, &str); 4] = [
    ("USER_HBM_DENSITY", "16GB"),
    ("USER_HBM_STACK", "2"),
    ("USER_SWITCH_ENABLE_00", "TRUE"),
    ("USER_SWITCH_ENABLE_01", "TRUE"),
];
/// Options that no controller may have: a customer address map, by which two addresses can be one
/// entry, and ECC scrubbing, by which the shell's monitor times out.
const HBM_BARS: [&str; 3] =
    ["MANUAL_ADDR_MAP_SEL", "ENABLE_ECC_SCRUBBING", "INITILIZE_MEM_USING_ECC_SCRUB"];
/// Longest description of an IP that is read.
const MAX_IP: u64 = 8 << 20;
/// The sticky bit of a folder's mode.
const STICKY: u32 = 0o1000;
/// Longest text file that is read.
const MAX_TEXT: u64 = 1 << 20;

/// An HDK.
#[derive(Debug, Clone)]
pub struct Hdk {
    root: PathBuf,
    /// Release, as `2.3.2`.
    pub release: String,
    /// Version of the shell, as `0x10212415`.
    pub shell_version: String,
}

/// SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// SHEF-CLD-055.
pub fn digest(path: &Path) -> Result<String, CloudError> {
    let wrong = CloudError::io("read", path);
    let mut file = File::open(path).map_err(&wrong)?;
    let (mut sha, mut block) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut block).map_err(&wrong)? {
            0 => return Ok(hex::encode(sha.finalize())),
            n => sha.update(&block[..n]),
        }
    }
}

/// Checks that only this user and root can change a file or folder, and a link to it. A mode with a
/// bit of `but` passes: in a folder with [`STICKY`], users can rename only their own files.
fn own(path: &Path, but: u32) -> Result<(), CloudError> {
    let link = fs::symlink_metadata(path).map_err(CloudError::io("find", path))?;
    let found = fs::metadata(path).map_err(CloudError::io("find", path))?;
    let (mode, known) = (found.mode() & 0o7777, [rustix::process::geteuid().as_raw(), 0]);
    let stranger = [link.uid(), found.uid()].into_iter().find(|owner| !known.contains(owner));
    if stranger.is_none() && (mode & 0o022 == 0 || mode & but != 0) {
        return Ok(());
    }
    let user = stranger.unwrap_or(found.uid());
    Err(CloudError::Writable { path: path.to_owned(), mode, user })
}

/// A text of the kit, without the rest of a line that is too long.
fn text(path: &Path) -> Result<String, String> {
    let bytes = shef_files::regular::read(path, MAX_TEXT).map_err(|e| e.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is not text".to_owned())
}

impl Hdk {
    /// Opens the kit in a folder: the repository aws-fpga.
    ///
    /// # Errors
    /// SHEF-CLD-001.
    pub fn open(dir: &Path) -> Result<Self, CloudError> {
        let missing = |what: &str, found: String| CloudError::NoHdk {
            dir: dir.to_owned(),
            what: what.to_owned(),
            found,
        };
        let root = dir.canonicalize().map_err(|e| missing("hdk", e.to_string()))?;
        let value = |file: &str, key: &str| {
            let text = text(&root.join(file)).map_err(|found| missing(file, found))?;
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            let value = line.map(|value| value.trim().to_owned());
            value.ok_or_else(|| missing(file, format!("without a line {key}=")))
        };
        let release = value(RELEASE, "RELEASE_VERSION")?;
        let shell_version = value(&format!("{SHELL}/{VERSION}"), "small_shell")?;
        Ok(Self { root, release, shell_version })
    }

    /// Its folder, without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of the shell.
    #[must_use]
    pub fn shell(&self) -> PathBuf {
        self.root.join(SHELL)
    }

    /// The release's numbers; zeros for text of another form.
    #[must_use]
    pub fn numbers(&self) -> (u32, u32, u32) {
        let mut parts = self.release.split('.').map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        (next(), next(), next())
    }

    /// Compares its port list with ours. Returns the number of ports.
    ///
    /// # Errors
    /// SHEF-CLD-001 to SHEF-CLD-003.
    pub fn ports(&self) -> Result<usize, CloudError> {
        let file = self.shell().join(HEADER);
        // The header itself, and no other place of a kit.
        text(&file).map_err(|found| CloudError::NoHdk {
            dir: self.root.clone(),
            what: format!("{SHELL}/{HEADER}"),
            found,
        })?;
        let scratch = TempFolder::new().map_err(|e| {
            let folder = std::env::temp_dir();
            CloudError::io("write", &folder)(std::io::Error::other(e.to_string()))
        })?;
        let found = shef_netlist::header(&file, scratch.path()).map_err(|error| {
            let found = match error {
                shef_netlist::Error::Header { reason, .. } => reason,
                error => error.to_string(),
            };
            CloudError::Header { file: file.clone(), found }
        })?;
        match found.differences.into_iter().next() {
            None => Ok(found.ports),
            Some(difference) => {
                Err(CloudError::Ports { file, difference, expected: found.expected })
            }
        }
    }

    /// Checks that git kept the kit's links.
    ///
    /// # Errors
    /// SHEF-CLD-004.
    pub fn links(&self) -> Result<(), CloudError> {
        let paths = LINKS.map(|name| self.root.join(TEMPLATE).join(name));
        let lost: Vec<&PathBuf> = paths.iter().filter(|path| !path.is_symlink()).collect();
        match lost.first() {
            None => Ok(()),
            Some(first) => Err(CloudError::Links {
                first: (*first).clone(),
                lost: lost.len(),
                total: paths.len(),
            }),
        }
    }

    /// Checks that the kit has the IP of the HBM, as `cl_shef` instantiates it: 16 GiB that each port
    /// reaches, without what AWS's errata forbid.
    ///
    /// # Errors
    /// SHEF-CLD-042.
    pub fn hbm(&self) -> Result<(), CloudError> {
        let file = self.root.join(HBM);
        let wrong = |found: String| CloudError::Hbm { file: file.clone(), found };
        let bytes = shef_files::regular::read(&file, MAX_IP);
        let bytes = bytes.map_err(|e| wrong(e.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        // An entry is "NAME": [ { "value": "VALUE", ... } ].
        let value = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\""))?;
            rest.split_once("\"value\"")?.1.split('"').nth(1)
        };
        for (name, expected) in HBM_NEEDS {
            let found = value(name).unwrap_or("no value");
            if !found.eq_ignore_ascii_case(expected) {
                return Err(wrong(format!("{name}: {found}, expected {expected}")));
            }
        }
        let names =
            HBM_BARS.iter().flat_map(|name| (0..16).map(move |n| format!("USER_MC{n}_{name}")));
        match names
            .into_iter()
            .find(|name| value(name).is_some_and(|v| v.eq_ignore_ascii_case("true")))
        {
            Some(name) => Err(wrong(format!("{name}: true, expected false"))),
            None => Ok(()),
        }
    }

    /// The shell's checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> PathBuf {
        self.shell().join(CHECKPOINT)
    }

    /// SHA-256 of the shell's checkpoint, compared with the one beside it: the measurement of the
    /// shell in evidence.
    ///
    /// # Errors
    /// SHEF-CLD-052.
    pub fn shell_digest(&self) -> Result<String, CloudError> {
        let file = self.checkpoint();
        let beside = file.with_extension("dcp.sha256");
        let wrong = |file: &Path, found: String, expected: &str| CloudError::ShellCheckpoint {
            file: file.to_owned(),
            found,
            expected: expected.to_owned(),
        };
        let expected = text(&beside).map_err(|found| wrong(&beside, found, "its SHA-256"))?;
        let expected = expected.split_whitespace().next().unwrap_or_default().to_lowercase();
        let found = digest(&file)
            .map_err(|e| wrong(&file, e.to_string(), "the checkpoint of the shell"))?;
        if found == expected {
            Ok(found)
        } else {
            Err(wrong(&file, format!("SHA-256 {found}"), &format!("SHA-256 {expected}")))
        }
    }

    /// The versions of Vivado that the kit supports, as `vivado v2025.1 (64-bit)`.
    ///
    /// # Errors
    /// SHEF-CLD-001.
    pub fn supported(&self) -> Result<Vec<String>, CloudError> {
        let file = "supported_vivado_versions.txt";
        let text = text(&self.root.join(file)).map_err(|found| CloudError::NoHdk {
            dir: self.root.clone(),
            what: file.to_owned(),
            found,
        })?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(lines.map(str::to_owned).collect())
    }

    /// Compares the first line of `vivado -version` with the supported versions.
    ///
    /// # Errors
    /// SHEF-CLD-007.
    pub fn supports(&self, vivado: &str) -> Result<(), CloudError> {
        let line = vivado.lines().map(str::trim).find(|line| !line.is_empty());
        let found = line.unwrap_or_default().chars().take(80).collect::<String>();
        let supported = self.supported()?;
        if supported.iter().any(|known| known.eq_ignore_ascii_case(&found)) {
            return Ok(());
        }
        let version = |line: &str| {
            line.split_whitespace().find_map(|word| {
                let (year, minor) = word.strip_prefix('v')?.split_once('.')?;
                let minor = minor.split('.').next()?;
                Some((year.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
            })
        };
        let oldest = supported.iter().filter_map(|line| version(line)).min();
        let older = version(&found).zip(oldest).is_some_and(|(found, oldest)| found < oldest);
        Err(CloudError::ToolVersion { found, expected: supported.join(", "), older })
    }

    /// Checks that the encryption script is AWS's own: of the known releases, or with the digest
    /// that the user has read.
    ///
    /// # Errors
    /// SHEF-CLD-018.
    pub fn encrypts(&self, accepted: Option<&str>) -> Result<(), CloudError> {
        let file = self.shell().join(ENCRYPT);
        let found = digest(&file)?;
        let known = [Some(ENCRYPT_DIGEST), accepted].into_iter().flatten();
        if known.into_iter().any(|digest| digest.eq_ignore_ascii_case(&found)) {
            return Ok(());
        }
        let what = format!(
            "{} has SHA-256 {found}, expected {ENCRYPT_DIGEST} of releases 2.0.2 to 2.3.4",
            file.display()
        );
        Err(CloudError::NoEncryption { what })
    }

    /// The scripts of the shell's build, each with its SHA-256: those that a custom logic links, and
    /// all that they can read beside them. Only this user and root can change them, or exchange a
    /// folder above them.
    ///
    /// # Errors
    /// SHEF-CLD-046, SHEF-CLD-055.
    pub fn scripts(&self) -> Result<BTreeMap<String, String>, CloudError> {
        let folder = self.shell().join("build/scripts");
        let above = |path: &Path| path.ancestors().skip(1).try_for_each(|it| own(it, STICKY));
        own(&folder, 0)?;
        above(&folder)?;
        let mut scripts: BTreeSet<PathBuf> = LINKS.map(|name| folder.join(name)).into();
        for entry in fs::read_dir(&folder).map_err(CloudError::io("list", &folder))? {
            let path = entry.map_err(CloudError::io("list", &folder))?.path();
            scripts.extend(path.is_file().then_some(path));
        }
        let one = |script: PathBuf| {
            own(&script, 0)?;
            // Links of the kit lead elsewhere.
            above(&script.canonicalize().map_err(CloudError::io("find", &script))?)?;
            Ok((script.display().to_string(), digest(&script)?))
        };
        scripts.into_iter().map(one).collect()
    }

    /// Checks that `hdk_setup.sh` of this kit has set the variables of its scripts. `value` reads a
    /// variable.
    ///
    /// # Errors
    /// SHEF-CLD-005.
    pub fn environment(
        &self,
        value: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> Result<(), CloudError> {
        for (variable, folder) in VARIABLES {
            let expected = self.root.join(folder);
            let found = value(variable).map(PathBuf::from);
            let real = found.as_ref().and_then(|path| fs::canonicalize(path).ok());
            if real != fs::canonicalize(&expected).ok() || real.is_none() {
                return Err(CloudError::Environment {
                    variable,
                    found: found.map_or("not set".to_owned(), |path| path.display().to_string()),
                    expected: expected.display().to_string(),
                });
            }
        }
        for variable in MORE {
            if value(variable).is_none_or(|value| value.is_empty()) {
                return Err(CloudError::Environment {
                    variable,
                    found: "not set".to_owned(),
                    expected: "the value of hdk_setup.sh".to_owned(),
                });
            }
        }
        Ok(())
    }
}
