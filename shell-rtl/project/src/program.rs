//! The contents of an image for a simulated card, and their use by the simulated fabric.
//!
//! The plaintext of the image is a `tar.gz` archive:
//!
//! | member | content |
//! |---|---|
//! | `manifest` | the design: top module, parameters, and the SHA-256 of each source ([`Measured::manifest`]) |
//! | `shield.cbor` | the resolved configuration of the Shield |
//! | `accelerator` | name of the accelerator |
//! | `sources/NAME` | each source of the vendor, by its name in the manifest |
//!
//! The sources of Shield and simulation shell are public: their digests in the manifest stand for
//! them. The design digest is the SHA-256 of the manifest.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use shef_proto::config::Config;

use crate::{Error, Measured, Result};

/// Folders whose sources are public.
const PUBLIC: [&str; 2] = ["shell-rtl/rtl/", "shell-rtl/shell/"];
/// Maximum size of an image, unpacked.
const MAX_UNPACKED: u64 = 64 << 20;
const MANIFEST: &str = "manifest";
const CONFIG: &str = "shield.cbor";
const ACCELERATOR: &str = "accelerator";
const SOURCES: &str = "sources/";

/// The plaintext of an image, unpacked.
#[derive(Debug)]
pub struct Program {
    manifest: String,
    config: Vec<u8>,
    accelerator: String,
    /// By name in the manifest.
    sources: BTreeMap<String, Vec<u8>>,
}

impl Program {
    /// The program of a design with these sources and this configuration.
    pub(crate) fn of(measured: Measured, config: &Config, accelerator: &str) -> Self {
        let named = measured.sources.into_iter().map(|source| (source.name, source.bytes));
        let sources = named.filter(|(name, _)| !public(name)).collect();
        Self {
            manifest: measured.manifest,
            config: config.to_cbor(),
            accelerator: accelerator.to_owned(),
            sources,
        }
    }

    /// Packs it. The same design gives the same bytes.
    pub(crate) fn pack(&self) -> Result<Vec<u8>> {
        let failed = |e: std::io::Error| Error::Packed(e.to_string());
        let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
            Vec::new(),
            flate2::Compression::best(),
        ));
        let fixed = [
            (MANIFEST, self.manifest.as_bytes()),
            (CONFIG, &self.config),
            (ACCELERATOR, self.accelerator.as_bytes()),
        ];
        let own =
            self.sources.iter().map(|(name, bytes)| (format!("{SOURCES}{name}"), bytes.as_slice()));
        for (name, bytes) in
            fixed.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).chain(own)
        {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, &name, bytes).map_err(failed)?;
        }
        let mut gzip = tar.into_inner().map_err(failed)?;
        gzip.flush().and_then(|()| gzip.finish()).map_err(failed)
    }

    /// Reads the plaintext of an image, after which up to three zeros may pad the last word.
    ///
    /// # Errors
    /// The image is no design for a simulated card.
    pub fn read(image: &[u8]) -> std::result::Result<Self, &'static str> {
        let mut gzip = flate2::bufread::GzDecoder::new(image);
        let mut unpacked = Vec::new();
        gzip.by_ref()
            .take(MAX_UNPACKED + 1)
            .read_to_end(&mut unpacked)
            .map_err(|_| "the image is no design for a simulated card")?;
        if unpacked.len() as u64 > MAX_UNPACKED {
            return Err("the design in the image is larger than 64 MiB");
        }
        let fill = gzip.into_inner();
        if fill.len() > 3 || fill.iter().any(|byte| *byte != 0) {
            return Err("bytes follow the design in the image");
        }
        let bad = "the image is no design for a simulated card";
        let mut members = BTreeMap::new();
        for entry in tar::Archive::new(unpacked.as_slice()).entries().map_err(|_| bad)? {
            let mut entry = entry.map_err(|_| bad)?;
            // A sparse file of a few bytes unpacks to any size.
            if !entry.header().entry_type().is_file() {
                return Err("the image has a member that is no plain file");
            }
            let name = entry
                .path()
                .ok()
                .as_deref()
                .and_then(Path::to_str)
                .map(str::to_owned)
                .ok_or(bad)?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(|_| bad)?;
            if members.insert(name, bytes).is_some() {
                return Err("the image has two members of one name");
            }
        }
        let mut take = |name| {
            members.remove(name).ok_or("the image lacks manifest, shield.cbor or accelerator")
        };
        let (manifest, config, accelerator) = (take(MANIFEST)?, take(CONFIG)?, take(ACCELERATOR)?);
        let text = |bytes| String::from_utf8(bytes).map_err(|_| bad);
        let mut sources = BTreeMap::new();
        for (name, bytes) in members {
            sources.insert(
                name.strip_prefix(SOURCES)
                    .ok_or("the image has a member that no design has")?
                    .to_owned(),
                bytes,
            );
        }
        Ok(Self { manifest: text(manifest)?, config, accelerator: text(accelerator)?, sources })
    }

    /// The vendor's sources, by their names in the manifest.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.sources.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Name of the accelerator.
    pub fn accelerator(&self) -> &str {
        &self.accelerator
    }

    /// Digest of the configuration, if it is valid.
    pub fn config_digest(&self) -> Option<[u8; 32]> {
        Config::from_cbor(&self.config).ok().map(|config| config.digest())
    }

    /// Digest of the design, if all the vendor's sources are present and match the manifest.
    ///
    /// # Errors
    /// The sources are not those of the manifest.
    pub fn digest(&self) -> std::result::Result<[u8; 32], &'static str> {
        let mut own = 0;
        for (name, digest) in
            self.manifest.lines().filter_map(|line| line.strip_prefix("file ")?.rsplit_once(' '))
        {
            if public(name) {
                continue;
            }
            let source =
                self.sources.get(name).ok_or("the image lacks a source of its manifest")?;
            if hex::encode(Sha256::digest(source)) != digest {
                return Err("a source in the image is not what its manifest says");
            }
            own += 1;
        }
        if own != self.sources.len() {
            return Err("the image has a source that its manifest does not name");
        }
        Ok(Sha256::digest(&self.manifest).into())
    }
}

/// Whether a source of this name is published.
fn public(name: &str) -> bool {
    PUBLIC.iter().any(|folder| name.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design() -> Program {
        let (a, b) = (b"module a".to_vec(), b"module b".to_vec());
        let line = |name: &str, bytes: &[u8]| {
            format!("file {name} {}\n", hex::encode(Sha256::digest(bytes)))
        };
        let manifest = "shef-design-1\ntop a\n".to_owned()
            + &line("a.sv", &a)
            + &line("shell-rtl/accel/b.sv", &b)
            + &line("shell-rtl/rtl/c.sv", b"c");
        let sources = [("a.sv".to_owned(), a), ("shell-rtl/accel/b.sv".to_owned(), b)].into();
        Program {
            manifest,
            config: crate::digits_config().unwrap().to_cbor(),
            accelerator: "own".to_owned(),
            sources,
        }
    }

    #[test]
    fn a_design_goes_into_an_image_and_out_of_it() {
        let whole = design();
        let mut image = whole.pack().unwrap();
        assert_eq!(image, design().pack().unwrap(), "the same bytes each time");
        for fill in 0..4 {
            let read = Program::read(&image).unwrap();
            assert_eq!(read.digest(), Ok(Sha256::digest(&whole.manifest).into()), "{fill} zeros");
            assert_eq!(
                (read.accelerator(), read.config_digest()),
                ("own", Some(crate::digits_config().unwrap().digest()))
            );
            image.push(0);
        }
        assert!(Program::read(&image).is_err(), "four zeros are no filling");
    }

    #[test]
    fn what_is_not_the_manifests_design_is_refused() {
        let refused = |change: fn(&mut Program)| {
            let mut design = design();
            change(&mut design);
            let read = Program::read(&design.pack().unwrap()).unwrap();
            read.digest().is_err()
        };
        assert!(refused(|d| d.sources.get_mut("a.sv").unwrap()[0] ^= 1));
        assert!(refused(|d| drop(d.sources.remove("a.sv"))));
        assert!(refused(|d| drop(d.sources.insert("more.sv".to_owned(), Vec::new()))));
        assert!(refused(|d| d.manifest = d.manifest.replace("file a.sv", "file z.sv")));
        let image = design().pack().unwrap();
        for len in 0..image.len() {
            assert!(Program::read(&image[..len]).is_err(), "{len} bytes");
        }
        assert!(Program::read(&[&image[..], &[1]].concat()).is_err());
    }

    /// Entries that only resemble a regular file: a sparse one claims many gigabytes in a few
    /// bytes.
    #[test]
    fn members_that_are_no_plain_files_are_refused() {
        use tar::EntryType;
        let whole = design();
        let kinds = [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Directory,
            EntryType::Fifo,
            EntryType::GNUSparse,
        ];
        for kind in kinds {
            let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
                Vec::new(),
                flate2::Compression::best(),
            ));
            let mut add = |name: &str, kind: EntryType, bytes: &[u8]| {
                let mut header = tar::Header::new_gnu();
                header.set_path(name).unwrap();
                header.set_entry_type(kind);
                header.set_mode(0o644);
                if kind == EntryType::GNUSparse {
                    // 128 MiB of zeros, and no byte of data.
                    let (size, gnu) = (128_u64 << 20, header.as_gnu_mut().unwrap());
                    gnu.realsize = format!("{size:011o}\0").as_bytes().try_into().unwrap();
                    gnu.sparse[0].offset = gnu.realsize;
                    gnu.sparse[0].numbytes = *b"00000000000\0";
                }
                header.set_size(bytes.len() as u64);
                header.set_cksum();
                tar.append(&header, bytes).unwrap();
            };
            for (name, bytes) in [
                (MANIFEST, whole.manifest.as_bytes()),
                (CONFIG, &whole.config),
                (ACCELERATOR, b"own"),
            ] {
                add(name, EntryType::Regular, bytes);
            }
            for (name, bytes) in &whole.sources {
                add(&format!("{SOURCES}{name}"), EntryType::Regular, bytes);
            }
            add("sources/large.sv", kind, &[]);
            let image = tar.into_inner().unwrap().finish().unwrap();
            assert!(image.len() < 4096, "{kind:?}: {} bytes", image.len());
            let large = Program::read(&image).map(|design| design.sources["large.sv"].len());
            assert_eq!(large, Err("the image has a member that is no plain file"), "{kind:?}");
        }
    }
}
