//! The Helm chart as the archive that `helm install` takes. Reproducible: the same bytes for the same
//! files.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::Builder;

use super::oci;
use crate::deployment::{CHART, FILES};
use crate::process::Result;
use crate::{files, root};

/// The archive.
pub fn archive() -> Result<Vec<u8>> {
    let folder = root().join(FILES).join(CHART);
    let mut all = Vec::new();
    for path in files::below(&folder)? {
        let name = path.strip_prefix(folder.parent().unwrap_or(&folder))?.display().to_string();
        all.push((name, fs_err::read(path)?));
    }
    Ok(pack(&all)?)
}

fn pack(files: &[(String, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    for (name, bytes) in files {
        oci::file(&mut tar, name, 0o644, bytes)?;
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&tar.into_inner()?)?;
    gzip.finish()
}

#[cfg(test)]
mod tests {
    use super::super::oci::tests::{has_no_host_data, unpack};
    use std::io::Read as _;

    #[test]
    fn the_archive_is_that_of_helm_and_reproducible() {
        let archive = super::archive().unwrap();
        assert_eq!(super::archive().unwrap(), archive);
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(&archive[..]).read_to_end(&mut tar).unwrap();
        has_no_host_data(&tar);
        assert_eq!(archive[4..8], [0; 4], "the time of the gzip header");
        let files = unpack(&tar);
        assert!(files.keys().all(|name| name.starts_with("shef-verifierd/")), "{files:?}");
        for name in ["Chart.yaml", "values.yaml", "values.schema.json", "templates/deployment.yaml"]
        {
            assert!(files.contains_key(&format!("shef-verifierd/{name}")), "{name}");
        }
    }
}
