//! An OCI image archive: `oci-layout`, `index.json` and blobs by their digests, in one tar.
//! Reproducible: the same bytes for the same program.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::PROGRAM;
use crate::files::digest;

/// The container's unprivileged user.
const USER: u64 = 65_532;
/// Folder of set-up and database.
const STATE: &str = "var/lib/shef-verifierd";

fn header(kind: EntryType, mode: u32, size: u64, owner: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(owner);
    header.set_gid(owner);
    header.set_mtime(0);
    header
}

/// Appends a file of root with modification time 0.
pub fn file<W: Write>(tar: &mut Builder<W>, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    tar.append_data(&mut header(EntryType::Regular, mode, bytes.len() as u64, 0), name, bytes)
}

/// The only layer: the program and its writable folder.
fn layer(program: &[u8]) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    file(&mut tar, PROGRAM, 0o755, program)?;
    for (folder, mode, owner) in
        [("var/", 0o755, 0), ("var/lib/", 0o755, 0), (&*format!("{STATE}/"), 0o700, USER)]
    {
        tar.append_data(&mut header(EntryType::Directory, mode, 0, owner), folder, io::empty())?;
    }
    tar.into_inner()
}

/// The archive.
pub fn archive(program: &[u8], version: &str) -> io::Result<Vec<u8>> {
    let layer = layer(program)?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&layer)?;
    let packed = gzip.finish()?;
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": {"8443/tcp": {}},
            "Env": ["SHEF_LOG=info"],
            "Entrypoint": [format!("/{PROGRAM}")],
            "Cmd": ["run", "--config", format!("/{STATE}/verifierd.toml")],
            "Volumes": {format!("/{STATE}"): {}},
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", digest(&layer))]},
        "history": [{"created_by": "cargo xtask dist"}],
    })
    .to_string();
    let blob = |media: &str, bytes: &[u8]| json!({"mediaType": media, "digest": format!("sha256:{}", digest(bytes)), "size": bytes.len()});
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob("application/vnd.oci.image.config.v1+json", config.as_bytes()),
        "layers": [blob("application/vnd.oci.image.layer.v1.tar+gzip", &packed)],
        "annotations": {"org.opencontainers.image.title": PROGRAM, "org.opencontainers.image.version": version,
                        "org.opencontainers.image.licenses": "Apache-2.0 OR MIT"},
    })
    .to_string();
    let mut entry: Value = blob("application/vnd.oci.image.manifest.v1+json", manifest.as_bytes());
    entry["platform"] = json!({"architecture": "amd64", "os": "linux"});
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": version});
    let index = json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry]}).to_string();

    let mut tar = Builder::new(Vec::new());
    file(&mut tar, "oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    file(&mut tar, "index.json", 0o644, index.as_bytes())?;
    let mut blobs =
        [manifest.as_bytes(), config.as_bytes(), &packed].map(|bytes| (digest(bytes), bytes));
    blobs.sort();
    for (digest, bytes) in blobs {
        file(&mut tar, &format!("blobs/sha256/{digest}"), 0o644, bytes)?;
    }
    tar.into_inner()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read as _;

    /// Neither time nor user of the machine that made the archive.
    pub fn has_no_host_data(bytes: &[u8]) {
        for entry in tar::Archive::new(bytes).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0, "{header:?}");
            assert!([0, USER].contains(&header.uid().unwrap()), "{header:?}");
            assert_eq!(header.uid().unwrap(), header.gid().unwrap(), "{header:?}");
            let names = [header.username_bytes(), header.groupname_bytes()];
            assert!(names.into_iter().flatten().all(|name| name.is_empty()), "{header:?}");
        }
    }

    pub fn unpack(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (entry.path().unwrap().display().to_string(), bytes)
        });
        entries.collect()
    }

    #[test]
    fn every_blob_is_what_names_it() {
        let archive = archive(b"a program", "1.2.3").unwrap();
        let files = unpack(&archive);
        assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
        let get = |entry: &Value| {
            let digest = entry["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = &files[&format!("blobs/sha256/{digest}")];
            assert_eq!(
                (super::digest(bytes).as_str(), bytes.len()),
                (digest, entry["size"].as_u64().unwrap() as usize)
            );
            bytes.clone()
        };
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let manifest = json(&get(&json(&files["index.json"])["manifests"][0]));
        let config = json(&get(&manifest["config"]));
        let packed = get(&manifest["layers"][0]);
        assert_eq!(files.len(), 5, "a blob that nothing names: {:?}", files.keys());
        let mut layer = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut layer).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", super::digest(&layer)));
        assert_eq!(unpack(&layer)[PROGRAM], b"a program");
        has_no_host_data(&layer);
        has_no_host_data(&archive);
        assert_eq!(packed[4..8], [0; 4], "the time of the gzip header");
        assert_eq!(config["config"]["Entrypoint"][0], "/shef-verifierd");
        // The same program gives the same bytes.
        assert_eq!(super::archive(b"a program", "1.2.3").unwrap(), archive);
    }
}
