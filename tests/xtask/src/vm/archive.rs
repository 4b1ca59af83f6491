//! An initramfs: a cpio archive in the kernel's `newc` format.

use cpio::newc;
use fs_err as fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use walkdir::WalkDir;

/// Writes an archive.
pub struct Archive<W> {
    out: W,
    inode: u32,
}

impl<W: Write> Archive<W> {
    /// An empty archive.
    pub fn new(out: W) -> Self {
        Self { out, inode: 0 }
    }

    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        self.inode += 1;
        let size = u32::try_from(contents.len()).map_err(io::Error::other)?;
        let entry = newc::Builder::new(name).ino(self.inode).mode(mode).nlink(1);
        let mut entry = entry.write(&mut self.out, size);
        entry.write_all(contents)?;
        entry.finish().map(drop)
    }

    /// A folder.
    pub fn folder(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, 0o040_755, &[])
    }

    /// A file with these contents.
    pub fn file(&mut self, name: &str, executable: bool, contents: &[u8]) -> io::Result<()> {
        self.entry(name, if executable { 0o100_755 } else { 0o100_644 }, contents)
    }

    /// A symbolic link.
    pub fn link(&mut self, name: &str, to: &str) -> io::Result<()> {
        self.entry(name, 0o120_777, to.as_bytes())
    }

    /// The contents of a folder, recursively, with links as links, where `wanted` accepts the name.
    pub fn tree(&mut self, from: &Path, wanted: &dyn Fn(&str) -> bool) -> io::Result<()> {
        let name = |path: &Path| path.strip_prefix(from).unwrap_or(path).display().to_string();
        let entries = WalkDir::new(from).min_depth(1).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| entry.depth() == 0 || wanted(&name(entry.path())))
        {
            let entry = entry?;
            let (path, name) = (entry.path(), name(entry.path()));
            if entry.file_type().is_dir() {
                self.folder(&name)?;
            } else if entry.path_is_symlink() {
                self.link(&name, &fs::read_link(path)?.display().to_string())?;
            } else {
                self.copy(&name, entry.metadata()?.permissions().mode() & 0o111 != 0, path)?;
            }
        }
        Ok(())
    }

    /// A file with the contents of another.
    pub fn copy(&mut self, name: &str, executable: bool, from: &Path) -> io::Result<()> {
        self.file(name, executable, &fs::read(from)?)
    }

    /// Completes the archive.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_keeps_its_links_and_leaves_out_unwanted_folders() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::create_dir_all(dir.join("usr/bin")).unwrap();
        fs::create_dir_all(dir.join("usr/share/doc")).unwrap();
        fs::write(dir.join("usr/bin/a"), "hello").unwrap();
        std::os::unix::fs::symlink("a", dir.join("usr/bin/b")).unwrap();
        let mut archive = Archive::new(Vec::new());
        archive.tree(dir, &|name| name != "usr/share").unwrap();
        archive.file("c", true, b"five.").unwrap();
        let bytes = archive.finish().unwrap();
        let mut entries = Vec::new();
        let mut rest = &bytes[..];
        loop {
            let mut reader = newc::Reader::new(rest).unwrap();
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            if reader.entry().is_trailer() {
                break;
            }
            let mut contents = String::new();
            io::Read::read_to_string(&mut reader, &mut contents).unwrap();
            entries.push((name, mode, contents));
            rest = reader.finish().unwrap();
        }
        let expected = [
            ("usr", 0o040_755, ""),
            ("usr/bin", 0o040_755, ""),
            ("usr/bin/a", 0o100_644, "hello"),
            ("usr/bin/b", 0o120_777, "a"),
            ("c", 0o100_755, "five."),
        ];
        let text = |(name, mode, contents): (&str, _, &str)| (name.into(), mode, contents.into());
        assert_eq!(entries, expected.map(text));
    }
}
