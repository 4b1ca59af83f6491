//! The tarball that AWS makes an image from: a routed checkpoint with its manifest, format 2.
//!
//! Source: `generate_dcp_tarball` of the HDK's aws_build_dcp_from_cl.py, and AFI_Manifest.md. That
//! script packs a checkpoint that misses timing as well, and cuts ids that begin with 2 or 3.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::CloudError;
use crate::hdk::digest;
use crate::logic::IDS;

/// Folder in the tarball.
const FOLDER: &str = "to_aws";
/// Longest manifest.
const MAX_MANIFEST: u64 = 1 << 16;
/// Clock recipes that the HDK's script writes if no others are named.
const RECIPES: [(&str, &str); 4] = [
    ("clock_recipe_a", "A1"),
    ("clock_recipe_b", "B2"),
    ("clock_recipe_c", "C0"),
    ("clock_recipe_hbm", "H2"),
];

/// Values of a manifest that this build gives.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Version of the shell.
    pub shell_version: String,
    /// Release of the HDK.
    pub hdk_version: String,
    /// Version of Vivado, as `v2025.1`.
    pub tool_version: String,
    /// Tag of the build.
    pub tag: String,
}

/// The PCI ids, by their keys.
fn ids() -> [(&'static str, String); 4] {
    let id = |at: usize, shift: u32| format!("0x{:04X}", IDS[at] >> shift & 0xffff);
    [
        ("pci_device_id", id(0, 16)),
        ("pci_vendor_id", id(0, 0)),
        ("pci_subsystem_id", id(1, 16)),
        ("pci_subsystem_vendor_id", id(1, 0)),
    ]
}

impl Manifest {
    /// Name of the checkpoint.
    fn checkpoint(&self) -> String {
        format!("{}.SH_CL_routed.dcp", self.tag)
    }

    /// The manifest for a checkpoint with this digest.
    fn text(&self, hash: &str) -> String {
        let mut rows: Vec<(&str, String)> = ids().into();
        rows.extend([
            ("manifest_format_version", "2".to_owned()),
            ("dcp_hash", hash.to_owned()),
            ("shell_version", self.shell_version.clone()),
            ("hdk_version", self.hdk_version.clone()),
            ("tool_version", self.tool_version.clone()),
            ("date", self.tag.clone()),
        ]);
        rows.extend(RECIPES.map(|(key, value)| (key, value.to_owned())));
        rows.push(("dcp_file_name", self.checkpoint()));
        rows.iter().map(|(key, value)| format!("{key}={value}\n\n")).collect()
    }
}

/// Packs a routed checkpoint. The file gets its name when it is complete.
///
/// # Errors
/// SHEF-CLD-055.
pub fn pack(checkpoint: &Path, manifest: &Manifest, to: &Path) -> Result<(), CloudError> {
    let hash = digest(checkpoint)?;
    let part = to.with_extension("tar.part");
    let wrong = CloudError::io("write", &part);
    let mut tar = tar::Builder::new(File::create(&part).map_err(&wrong)?);
    let mut add = |name: String, size: u64, data: &mut dyn Read| {
        let mut header = tar::Header::new_ustar();
        header.set_size(size);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{FOLDER}/{name}"), data)
    };
    let mut file = File::open(checkpoint).map_err(CloudError::io("read", checkpoint))?;
    let len = file.metadata().map_err(CloudError::io("read", checkpoint))?.len();
    add(manifest.checkpoint(), len, &mut file).map_err(&wrong)?;
    let text = manifest.text(&hash);
    add(format!("{}.manifest.txt", manifest.tag), text.len() as u64, &mut text.as_bytes())
        .map_err(&wrong)?;
    tar.into_inner().and_then(|file| file.sync_all()).map_err(&wrong)?;
    std::fs::rename(&part, to).map_err(CloudError::io("write", to))
}

/// A tarball that matches its manifest.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The file.
    pub file: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of the tarball.
    pub digest: String,
    /// SHA-256 of the checkpoint.
    pub dcp: String,
    /// Name of the build.
    pub tag: String,
}

/// Reads a tarball and compares it with its manifest, and with the ids, shell and release that this
/// image must have.
///
/// # Errors
/// SHEF-CLD-026, SHEF-CLD-027.
pub fn check(file: &Path, shell_version: &str) -> Result<Checked, CloudError> {
    const NEED: &str = "to_aws/TAG.SH_CL_routed.dcp and to_aws/TAG.manifest.txt";
    let bad = |found: String| CloudError::Tarball { file: file.to_owned(), found, expected: NEED };
    let read = |e: std::io::Error| bad(e.to_string());
    let opened = File::open(file).map_err(read)?;
    let bytes = opened.metadata().map_err(read)?.len();
    let mut tar = tar::Archive::new(opened);
    let (mut text, mut checkpoints) = (None, BTreeMap::new());
    for entry in tar.entries().map_err(read)? {
        let mut entry = entry.map_err(read)?;
        let path = entry.path().map_err(read)?.into_owned();
        if entry.header().entry_type().is_dir() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().map(|folder| folder.components().as_path().to_owned());
        if folder.is_none_or(|folder| !folder.ends_with(FOLDER)) {
            return Err(bad(format!("it holds {}", path.display())));
        }
        if name.ends_with(".manifest.txt") {
            let mut content = String::new();
            entry.by_ref().take(MAX_MANIFEST).read_to_string(&mut content).map_err(read)?;
            if text.replace((name, content)).is_some() {
                return Err(bad("it has two manifests".to_owned()));
            }
        } else if name.ends_with(".dcp") {
            let mut sha = Sha256::new();
            let mut block = vec![0; 1 << 20];
            loop {
                match entry.read(&mut block).map_err(read)? {
                    0 => break,
                    n => sha.update(&block[..n]),
                }
            }
            checkpoints.insert(name, hex::encode(sha.finalize()));
        } else if !name.ends_with(".ltx") {
            return Err(bad(format!("it holds {}", path.display())));
        }
    }
    let (name, text) = text.ok_or_else(|| bad("it has no manifest".to_owned()))?;
    let tag = name.trim_end_matches(".manifest.txt").to_owned();
    if checkpoints.len() != 1 {
        return Err(bad(format!("it has {} checkpoints", checkpoints.len())));
    }
    let mut values = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (key, value) =
            line.split_once('=').ok_or_else(|| bad(format!("the manifest has {line:?}")))?;
        if values.insert(key, value).is_some() {
            return Err(bad(format!("the manifest has {key} twice")));
        }
    }
    let differs = |key: &'static str, expected: String| {
        let found = values.get(key).copied().unwrap_or("missing");
        if found == expected {
            Ok(())
        } else {
            let found = found.to_owned();
            Err(CloudError::Manifest { file: file.to_owned(), key, found, expected })
        }
    };
    differs("manifest_format_version", "2".to_owned())?;
    let (dcp_name, dcp) = checkpoints.pop_first().unwrap_or_default();
    differs("dcp_file_name", dcp_name)?;
    differs("dcp_hash", dcp.clone())?;
    for (key, id) in ids() {
        differs(key, id)?;
    }
    differs("shell_version", shell_version.to_owned())?;
    for key in ["hdk_version", "tool_version", "date"] {
        if values.get(key).is_none_or(|value| value.is_empty()) {
            differs(key, "a version or a date".to_owned())?;
        }
    }
    Ok(Checked { file: file.to_owned(), bytes, digest: digest(file)?, dcp, tag })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest {
            shell_version: "0x10212415".to_owned(),
            hdk_version: "2.3.2".to_owned(),
            tool_version: "v2025.1".to_owned(),
            tag: "2026_11_27-063000".to_owned(),
        }
    }

    /// A tarball of these files.
    fn tarball(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.tar");
        let mut tar = tar::Builder::new(File::create(&path).unwrap());
        for (name, text) in files {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        tar.into_inner().unwrap();
        (dir, path)
    }

    #[test]
    fn a_packed_checkpoint_matches_its_manifest() {
        let dir = tempfile::tempdir().unwrap();
        let (dcp, tar) = (dir.path().join("x.dcp"), dir.path().join("x.tar"));
        std::fs::write(&dcp, "checkpoint").unwrap();
        pack(&dcp, &manifest(), &tar).unwrap();
        let checked = check(&tar, "0x10212415").unwrap();
        assert_eq!((checked.dcp, checked.tag), (digest(&dcp).unwrap(), manifest().tag));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no part stays");
        // A truncated one.
        let bytes = std::fs::read(&tar).unwrap();
        std::fs::write(&tar, &bytes[..700]).unwrap();
        assert_eq!(check(&tar, "0x10212415").unwrap_err().code(), "SHEF-CLD-026");
    }

    #[test]
    fn every_value_of_a_manifest_is_compared() {
        let hash = hex::encode(Sha256::digest("dcp"));
        let good = manifest().text(&hash);
        let name = "to_aws/2026_11_27-063000.SH_CL_routed.dcp";
        let at = "to_aws/2026_11_27-063000.manifest.txt";
        let (_dir, path) = tarball(&[(name, "dcp"), (at, &good)]);
        check(&path, "0x10212415").unwrap();
        for (from, to, key) in [
            ("version=2\n", "version=1\n", "manifest_format_version"),
            (&*hash, "00", "dcp_hash"),
            ("dcp_file_name=2026", "dcp_file_name=2025", "dcp_file_name"),
            // What the HDK's script makes of 32'h2F10_1D0F.
            ("pci_device_id=0xF010", "pci_device_id=0x10", "pci_device_id"),
            ("pci_subsystem_id=0x1D51", "pci_subsystem_id=0xD51", "pci_subsystem_id"),
            ("shell_version=0x10212415", "shell_version=0x04261818", "shell_version"),
            ("tool_version=v2025.1", "tool_version=", "tool_version"),
            ("date=2026_11_27-063000\n", "", "date"),
        ] {
            assert!(good.contains(from), "{from}");
            let (_dir, path) = tarball(&[(name, "dcp"), (at, &good.replace(from, to))]);
            let error = check(&path, "0x10212415").unwrap_err();
            assert!(matches!(&error, CloudError::Manifest { key: k, .. } if *k == key), "{error}");
        }
        for files in [
            &[(name, "dcp")][..],
            &[(at, &good)],
            &[(name, "dcp"), ("to_aws/b.dcp", ""), (at, &good)],
            &[(name, "dcp"), (at, &good), ("to_aws/b.manifest.txt", "")],
            &[(name, "dcp"), (at, &good), ("to_aws/notes.txt", "")],
            &[(name, "dcp"), (at, &good), ("design/secret.ltx", "")],
            &[(name, "dcp"), (at, &format!("{good}date=1\n"))],
            &[(name, "dcp"), (at, &format!("{good}x\n"))],
        ] {
            let (_dir, path) = tarball(files);
            assert_eq!(check(&path, "0x10212415").unwrap_err().code(), "SHEF-CLD-026", "{files:?}");
        }
    }
}
