//! The sources of the measured blocks, and their digests.

use crate::process::{Context, Result};
use crate::{files, lint, root, tools};
use fs_err as fs;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folder of the DMA engine.
pub const ENGINE: &str = "shell-rtl/rtl/dma";
/// The boot ROM's program.
const ROM: &str = "shef_kernel_rom_pkg";
/// Folders whose rows the normal test compares with their sources.
const WATCHED: &[&str] = &[
    "shell-rtl/rtl/crypto",
    "shell-rtl/rtl/shield",
    "shell-rtl/rtl/core",
    ENGINE,
    lint::KERNEL,
    lint::SYSTEM,
];

/// Whether a file belongs to the Security Kernel's subsystem, or joins it to a design.
pub fn in_kernel(path: &Path) -> bool {
    path.starts_with(lint::KERNEL) || path.starts_with(lint::SYSTEM)
}

fn is_watched(path: &Path) -> bool {
    WATCHED.iter().any(|folder| path.starts_with(folder))
}

/// The RTL as text.
pub struct Sources {
    /// Path and text by module or package name.
    pub files: BTreeMap<String, (PathBuf, String)>,
    /// Arguments of the front end, and sources that are not ours.
    more: String,
    order: Vec<PathBuf>,
}

impl Sources {
    /// Those of a Shield with this accelerator.
    pub fn load(accelerator: &str) -> Result<Self> {
        Self::read(lint::shipped(accelerator)?, String::new())
    }

    /// The Security Kernel's subsystem, and what joins it to a design.
    pub fn kernel() -> Result<Self> {
        let mut order = lint::kernel()?;
        let joint = lint::sources(&[lint::SYSTEM])?;
        order.extend(joint.into_iter().filter(|path| !path.ends_with("shef_system.sv")));
        Self::read(order, lint::processor(&tools::ibex()?))
    }

    fn read(order: Vec<PathBuf>, more: String) -> Result<Self> {
        let file = |path: &PathBuf| {
            Ok((files::stem(path), (path.clone(), fs::read_to_string(root().join(path))?)))
        };
        let files = order.iter().map(file).collect::<Result<_>>()?;
        Ok(Self { files, more, order })
    }

    /// Arguments of the front end.
    pub fn arguments(&self) -> String {
        format!("{}{}", lint::arguments("", &self.order), self.more)
    }

    /// The configuration with the other kind of S-boxes, in a separate file.
    pub fn put_sboxes_into_ram(&mut self) -> Result<()> {
        let (old, new) = ("SBOX_RAM = 1'b0;", "SBOX_RAM = 1'b1;");
        let found = self.files.get_mut("shef_cfg_pkg").filter(|(_, text)| text.contains(old));
        let (path, text) = found.with_context(|| format!("no `{old}` in shef_cfg_pkg"))?;
        let other = PathBuf::from("target/area/shef_cfg_pkg.sv");
        *text = text.replace(old, new);
        files::update(&root().join(&other), text.as_bytes())?;
        self.order.iter_mut().filter(|p| *p == path).for_each(|p| p.clone_from(&other));
        *path = other;
        Ok(())
    }

    /// `name` and all modules and packages that it uses, directly or not.
    fn closure(&self, name: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut todo = vec![name];
        while let Some(n) = todo.pop() {
            let Some((key, (_, text))) = self.files.get_key_value(n) else { continue };
            if !found.insert(key.as_str()) {
                continue;
            }
            todo.extend(
                code(text)
                    .flat_map(|l| l.split(|c: char| !c.is_alphanumeric() && c != '_'))
                    .filter(|w| w.starts_with("shef_")),
            );
        }
        found
    }

    /// Digest of the code of a block and all below it; comments, line breaks and the boot ROM's program
    /// do not count.
    pub fn digest(&self, name: &str) -> String {
        let mut hash = Sha256::new();
        for n in self.closure(name).into_iter().filter(|n| *n != ROM) {
            hash.update(n);
            for word in code(&self.files[n].1).flat_map(str::split_whitespace) {
                hash.update([0]);
                hash.update(word);
            }
        }
        hex::encode(&hash.finalize()[..16])
    }

    /// The watched blocks in those files for which `wanted` is true; without blocks that use a block
    /// of a folder that is not watched.
    pub fn watched(&self, wanted: fn(&Path) -> bool) -> impl Iterator<Item = &str> {
        let is_block = |name: &str, path: &Path| {
            name.starts_with("shef_") && !name.ends_with("_pkg") && is_watched(path)
        };
        let watched = move |name: &str| {
            let used = self.closure(name);
            used.iter().all(|used| used.ends_with("_pkg") || is_watched(&self.files[*used].0))
        };
        let files = self.files.iter().filter(move |(_, (path, _))| wanted(path));
        let blocks = files.filter(move |(name, (path, _))| is_block(name, path));
        blocks.map(|(name, _)| name.as_str()).filter(move |name| watched(name))
    }
}

/// The lines of a source without their comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| line.split("//").next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_anywhere_below_changes_the_digest() {
        let file = |text: &str| (PathBuf::from("x.sv"), text.to_owned());
        let mut s = Sources { files: BTreeMap::new(), order: Vec::new(), more: String::new() };
        s.files.insert("shef_a".into(), file("shef_b u_b ();"));
        s.files.insert("shef_b".into(), file("import shef_pkg::*;"));
        s.files.insert("shef_pkg".into(), file("1"));
        let before = s.digest("shef_a");
        s.files.insert("shef_pkg".into(), file("2"));
        assert_ne!(before, s.digest("shef_a"));
        s.files.insert("shef_pkg".into(), file("// one\n  1"));
        assert_eq!(before, s.digest("shef_a"));
    }
}
