//! The inputs of a job.

use std::path::{Path, PathBuf};

use shef_console::{CliError, file};
use shef_project::{Data, Job};
use shef_proto::config::{Config, Region};

/// The contents of an input region.
pub struct Input {
    /// Name of the region.
    pub region: String,
    /// The file, unless the bytes are random.
    pub file: Option<PathBuf>,
    /// The contents: 1 byte to the region's size.
    pub bytes: Vec<u8>,
}

/// Reads all inputs. `seed` decides the random ones.
///
/// # Errors
/// SHEF-CLI-010 for a file that cannot be read, SHEF-CLI-028 for one that does not fit its region.
pub fn read(job: &Job, config: &Config, seed: u64) -> Result<Vec<Input>, CliError> {
    let input = |input: &shef_project::Input| {
        let region = config.region_by_name(&input.region).ok_or_else(|| {
            CliError::internal(format!("a job with an unknown region {}", input.region))
        })?;
        let (file, bytes) = match &input.data {
            Data::Random(bytes) => {
                (None, shef_project::random(seed, &region.name, *bytes as usize))
            }
            Data::File(path) => (Some(path.clone()), contents(path, region)?),
        };
        Ok(Input { region: region.name.clone(), file, bytes })
    };
    job.inputs.iter().map(input).collect()
}

fn contents(path: &Path, region: &Region) -> Result<Vec<u8>, CliError> {
    let Region { name, size, .. } = region;
    let misfit = |found: &str| {
        let what = format!("{} {found}: region {name} takes 1 to {size} bytes", path.display());
        CliError::new("SHEF-CLI-028", what)
    };
    match file::read(path, *size) {
        Err(error) if error.code == "SHEF-CLI-019" => Err(misfit(
            &path
                .metadata()
                .map_or("is larger".to_owned(), |file| format!("has {} bytes", file.len())),
        )),
        Ok(bytes) if bytes.is_empty() => Err(misfit("is empty")),
        read => read,
    }
}
