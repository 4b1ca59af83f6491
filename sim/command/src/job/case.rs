//! A test with one seed: its inputs, and the results that it must have.

use std::collections::BTreeMap;
use std::path::Path;

use shef_console::{CliError, file};
use shef_project::{Data, Expect, Job, Registers, Test};
use shef_proto::config::Config;

use super::failure::{Difference, Failure, Kind};
use crate::test::TestError;

/// What a job produced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Results {
    /// Bytes by output region.
    pub regions: BTreeMap<String, Vec<u8>>,
    /// Values of the registers that the job reads, by offset.
    pub registers: BTreeMap<u32, u32>,
}

/// A test of a project.
#[derive(Clone, Copy)]
pub struct Subject<'p> {
    /// Its name.
    pub name: &'p str,
    /// The test.
    pub test: &'p Test,
    /// Its job.
    pub job: &'p Job,
    /// Names of registers.
    pub registers: &'p Registers,
    /// The Shield's configuration.
    pub config: &'p Config,
}

/// A test with one seed.
#[derive(Clone)]
pub struct Case<'p> {
    /// The test.
    pub subject: Subject<'p>,
    /// The seed of random inputs and of the memory's timing.
    pub seed: u64,
    /// Data by input region, in the order of the job.
    pub inputs: Vec<(String, Vec<u8>)>,
    /// Expected results, and where they are from.
    pub expected: Vec<(String, Results)>,
}

impl<'p> Case<'p> {
    /// Reads the files of a test. The results of its model are added later.
    ///
    /// # Errors
    /// Files that are missing or do not fit.
    pub fn new(subject: Subject<'p>, seed: u64) -> Result<Self, CliError> {
        let Subject { name, test, job, config, .. } = subject;
        let data = |file: &Path, what: String| TestError::Data {
            test: name.to_owned(),
            file: file.to_owned(),
            what,
        };
        let mut inputs = Vec::new();
        for input in &job.inputs {
            let region = &input.region;
            let size = config.region_by_name(region).map_or(0, |region| region.size);
            let bytes = match &input.data {
                Data::Random(bytes) => shef_project::random(seed, region, *bytes as usize),
                Data::File(path) => {
                    let bytes = file::read(path, size)?;
                    if bytes.is_empty() {
                        let what = format!("it is empty, and the input of region {region}");
                        return Err(data(path, what).into());
                    }
                    bytes
                }
            };
            inputs.push((region.clone(), bytes));
        }
        let mut expected = Vec::new();
        for expect in &test.expect {
            let mut results = Results::default();
            let source = match expect {
                Expect::Region { region, file: path } => {
                    let outputs = job.outputs.iter().find(|output| output.region == *region);
                    let bytes = outputs.map_or(0, |output| output.bytes);
                    let found = file::read(path, bytes.max(1 << 30))?;
                    if found.len() as u64 != bytes {
                        let what = format!(
                            "it has {} bytes, and the job's result {region} has {bytes}",
                            found.len()
                        );
                        return Err(data(path, what).into());
                    }
                    results.regions.insert(region.clone(), found);
                    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
                }
                Expect::Register { offset, value } => {
                    results.registers.insert(*offset, *value);
                    "expect".to_owned()
                }
            };
            expected.push((source, results));
        }
        Ok(Self { subject, seed, inputs, expected })
    }

    /// Registers that the job writes, with their values, in order; the start is not among them.
    pub fn writes(&self) -> Result<Vec<(u32, u32)>, Failure> {
        let Subject { job, config, .. } = self.subject;
        let number = |write: &shef_project::Write| {
            let value = write.value.number(config);
            value.map(|value| (write.offset, value)).map_err(|what| Failure::new(Kind::Error, what))
        };
        job.registers.iter().map(number).collect()
    }

    /// Compares results with the expected ones.
    pub fn compare(&self, results: &Results) -> Result<(), Failure> {
        for (source, expected) in &self.expected {
            for (offset, value) in &expected.registers {
                let found = results.registers.get(offset).copied().unwrap_or_default();
                if found != *value {
                    let of = self.subject.registers.name(*offset);
                    let message =
                        format!("register {of}: expected {value:#x}, found {found:#x} ({source})");
                    let difference = Difference { of, offset: 0, expected: *value, found };
                    return Err(Failure::new(Kind::Result, message).with_difference(difference));
                }
            }
            for (region, bytes) in &expected.regions {
                let found = results.regions.get(region).map_or(&[][..], Vec::as_slice);
                if let Some(failure) = first_difference(region, bytes, found, source) {
                    return Err(failure);
                }
            }
        }
        Ok(())
    }
}

fn first_difference(region: &str, expected: &[u8], found: &[u8], source: &str) -> Option<Failure> {
    if found.len() != expected.len() {
        let message = format!(
            "region {region}: expected {} bytes ({source}), found {}",
            expected.len(),
            found.len()
        );
        return Some(Failure::new(Kind::Result, message));
    }
    let differs = |(one, other): (&u8, &u8)| one != other;
    let at = expected.iter().zip(found).position(differs)?;
    let all = expected.iter().zip(found).filter(|(one, other)| one != other).count();
    let (expected_byte, found_byte) = (expected[at], found[at]);
    let message = format!(
        "region {region}, offset {at:#x}: expected {expected_byte:#04x}, found {found_byte:#04x} \
         ({source}); {all} of {} bytes differ",
        expected.len()
    );
    let difference = Difference {
        of: region.to_owned(),
        offset: at as u64,
        expected: expected_byte.into(),
        found: found_byte.into(),
    };
    Some(Failure::new(Kind::Result, message).with_difference(difference))
}
