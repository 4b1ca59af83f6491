//! An initramfs: a cpio archive in the kernel's `newc` format.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

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
        // inode, mode, uid, gid, links, mtime, size, device (4 fields), length of the name,
        // checksum.
        let fields = [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        let mut header = b"070701".to_vec();
        for field in fields {
            header.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        header.extend_from_slice(name.as_bytes());
        header.push(0);
        pad(&mut header);
        self.out.write_all(&header)?;
        self.out.write_all(contents)?;
        self.out.write_all(&[0; 3][..contents.len().next_multiple_of(4) - contents.len()])
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
        self.below(from, Path::new(""), wanted)
    }

    fn below(&mut self, from: &Path, name: &Path, wanted: &dyn Fn(&str) -> bool) -> io::Result<()> {
        let mut entries = fs::read_dir(from.join(name))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = name.join(entry.file_name());
            let text = path.display().to_string();
            if !wanted(&text) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folder(&text)?;
                self.below(from, &path, wanted)?;
            } else if kind.is_symlink() {
                self.link(&text, &fs::read_link(entry.path())?.display().to_string())?;
            } else {
                self.copy(
                    &text,
                    entry.metadata()?.permissions().mode() & 0o111 != 0,
                    &entry.path(),
                )?;
            }
        }
        Ok(())
    }

    pub fn copy(&mut self, name: &str, executable: bool, from: &Path) -> io::Result<()> {
        let contents =
            fs::read(from).map_err(|e| io::Error::other(format!("{}: {e}", from.display())))?;
        self.file(name, executable, &contents)
    }

    /// Completes the archive.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::Archive;

    #[test]
    fn names_and_contents_are_padded_to_words() {
        let mut archive = Archive::new(Vec::new());
        archive.folder("bin").unwrap();
        archive.file("bin/a", true, b"hello").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        let at = |what: &str| text.find(what).unwrap();
        assert_eq!((at("070701"), at("bin\0")), (0, 110));
        // Header of the second entry: 116 bytes of the first, its mode, the size 5, the name's
        // length 6.
        let second = &text[116..];
        assert!(second.starts_with("07070100000002000081ed"), "{second}");
        assert_eq!(
            (&second[54..62], &second[94..102], &second[110..115]),
            ("00000005", "00000006", "bin/a")
        );
        assert_eq!(&second[116..121], "hello");
        assert!(text.contains("TRAILER!!!"));
    }

    #[test]
    fn a_tree_keeps_its_links_and_leaves_out_what_is_not_wanted() {
        let dir = std::env::temp_dir().join(format!("shef-archive-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("usr/bin")).unwrap();
        std::fs::create_dir_all(dir.join("usr/share")).unwrap();
        std::fs::write(dir.join("usr/bin/a"), "hello").unwrap();
        std::os::unix::fs::symlink("a", dir.join("usr/bin/b")).unwrap();
        let mut archive = Archive::new(Vec::new());
        archive.tree(&dir, &|name| name != "usr/share").unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        let text = String::from_utf8(archive.finish().unwrap()).unwrap();
        // Each header's mode and, after it, the name.
        let entries: Vec<_> = text
            .match_indices("070701")
            .map(|(at, _)| (&text[at + 14..at + 22], &text[at + 110..]))
            .collect();
        let expected = [
            ("000041ed", "usr\0"),
            ("000041ed", "usr/bin\0"),
            ("000081a4", "usr/bin/a\0"),
            ("0000a1ff", "usr/bin/b\0"),
        ];
        for ((mode, name), (expected_mode, expected_name)) in entries.iter().zip(expected) {
            assert!(
                *mode == expected_mode && name.starts_with(expected_name),
                "{mode} {name:.12}, expected {expected_mode} {expected_name}"
            );
        }
        assert_eq!(entries.len(), expected.len() + 1);
    }
}
