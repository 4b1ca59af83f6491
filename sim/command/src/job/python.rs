//! Models of tests: Python functions on NumPy arrays. A child process runs them.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use shef_console::file::{self, TempFolder};
use shef_console::{CliError, interrupt};
use shef_project::{Job, Model};

use super::case::{Case, Results};
use super::failure::{Failure, Kind};
use crate::test::TestError;

/// The program that calls a model.
const SCRIPT: &str = include_str!("model.py");
/// Its status if NumPy is missing.
const MISSING: i32 = 3;
/// Its status if the results are not those of the job.
const WRONG: i32 = 4;
/// Maximum number of bytes that a model prints.
const PRINTED: usize = 1 << 20;
/// Maximum time of a model for all seeds of a test; a job may have less.
const SECONDS: u64 = 60;
/// Time between two looks at a running model.
const LOOK: Duration = Duration::from_millis(5);
/// Maximum size of its file of registers.
const REGISTERS: u64 = 1 << 20;
/// Last lines of a model's error that are shown.
const SHOWN: usize = 12;

/// A case, as the script reads it. Paths are relative to the list of cases.
#[derive(Serialize)]
struct Request {
    inputs: BTreeMap<String, String>,
    registers: BTreeMap<String, u32>,
    regions: BTreeMap<String, u64>,
    reads: Vec<String>,
    results: String,
}

/// Calls the model of a test for these cases, which are of one test, and adds its results to them.
///
/// # Errors
/// Python or NumPy is missing, and errors of the file system. The inner error is that of the model.
pub fn add(model: &Model, cases: &mut [Case<'_>]) -> Result<Result<(), Failure>, CliError> {
    let Some(Case { subject, .. }) = cases.first() else { return Ok(Ok(())) };
    let (subject, folder) = (*subject, TempFolder::new()?);
    if let Err(error) = std::fs::metadata(&model.file) {
        return Err(CliError::read_file(&model.file, &error));
    }
    let job = subject.job;
    let write = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).map_err(|e| CliError::write_file(path, &e))
    };
    let mut requests = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let at = folder.path().join(number.to_string());
        let results = at.join("results");
        std::fs::create_dir_all(&results).map_err(|e| CliError::write_file(&results, &e))?;
        let mut inputs = BTreeMap::new();
        for (region, data) in &case.inputs {
            let path = at.join(region);
            write(&path, data)?;
            inputs.insert(region.clone(), format!("{number}/{region}"));
        }
        let (name, named) = (|offset| subject.registers.name(offset), case.writes());
        let writes = match named {
            Ok(writes) => writes,
            Err(failure) => return Ok(Err(failure)),
        };
        requests.push(Request {
            inputs,
            registers: writes.into_iter().map(|(offset, value)| (name(offset), value)).collect(),
            regions: job.outputs.iter().map(|out| (out.region.clone(), out.bytes)).collect(),
            reads: job.reads.iter().map(|offset| name(*offset)).collect(),
            results: format!("{number}/results"),
        });
    }
    let list = folder.path().join("cases.json");
    let text = serde_json::to_vec(&requests).map_err(|e| CliError::internal(e.to_string()))?;
    write(&list, &text)?;
    if let Err(failure) = call(model, subject.name, job, &list)? {
        return Ok(Err(failure));
    }
    let source = format!(
        "{}:{}",
        model.file.file_name().unwrap_or_default().to_string_lossy(),
        model.function
    );
    for (request, case) in requests.iter().zip(cases) {
        let read = |name: &str, most| {
            file::read(&folder.path().join(&request.results).join(name), most).ok()
        };
        let registers: Option<BTreeMap<String, u32>> =
            read("registers.json", REGISTERS).and_then(|text| serde_json::from_slice(&text).ok());
        let Some(registers) = registers else {
            return Ok(Err(Failure::new(Kind::Model, "the model ended without results")));
        };
        let offsets = job.reads.iter().map(|offset| (subject.registers.name(*offset), *offset));
        let results = Results {
            registers: offsets
                .filter_map(|(name, offset)| Some((offset, *registers.get(&name)?)))
                .collect(),
            regions: job
                .outputs
                .iter()
                .filter_map(|out| Some((out.region.clone(), read(&out.region, out.bytes)?)))
                .collect(),
        };
        for out in &job.outputs {
            let found = results.regions.get(&out.region).map(|bytes| bytes.len() as u64);
            if found.is_some_and(|found| found != out.bytes) {
                let what =
                    format!("the model ended without all {} bytes of {}", out.bytes, out.region);
                return Ok(Err(Failure::new(Kind::Model, what)));
            }
        }
        case.expected.push((source.clone(), results));
    }
    Ok(Ok(()))
}

/// What a process prints, up to a limit.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    /// Reads a pipe to its end or the limit, in a thread.
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let printed = Self::default();
        let Some(mut pipe) = pipe else { return printed };
        let to = printed.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(len @ 1..) = pipe.read(&mut piece) {
                let mut all = to.0.lock().unwrap_or_else(PoisonError::into_inner);
                all.extend(&piece[..len]);
                if all.len() > PRINTED {
                    break;
                }
            }
        });
        printed
    }

    fn is_too_much(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() > PRINTED
    }

    fn last_lines(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&all);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(SHOWN)..].iter().map(|line| (*line).to_owned()).collect()
    }
}

/// The folder of NumPy in `SHEF_NUMPY`, or of the one that `cargo xtask setup` fetched, if there is one.
fn numpy_of_setup() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("SHEF_NUMPY").filter(|folder| !folder.is_empty()) {
        return Some(folder.into());
    }
    let tools = std::fs::read_dir(shef_card::repository().join("target/tools")).ok()?;
    let is_numpy = |path: &PathBuf| {
        path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("numpy-"))
    };
    tools
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_numpy(path) && path.is_dir())
        .max()
}

/// Runs the script.
fn call(
    model: &Model,
    test: &str,
    job: &Job,
    list: &Path,
) -> Result<Result<(), Failure>, CliError> {
    let missing = |what: String| TestError::Python { test: test.to_owned(), what };
    let file =
        std::path::absolute(&model.file).map_err(|e| CliError::read_file(&model.file, &e))?;
    let mut python = Command::new("python3");
    // -B: no cache in the user's folder.
    python.args(["-B", "-c", SCRIPT]).arg(&file).arg(&model.function).arg(list);
    if let Some(numpy) = numpy_of_setup() {
        python.env("SHEF_NUMPY", numpy);
    }
    // One process group, so that its children end with it.
    python.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = interrupt::child(&mut python)
        .map_err(|e| missing(format!("python3 does not start: {e}")))?;
    let printed = Printed::of(child.stdout.take());
    let errors = Printed::of(child.stderr.take());
    let limit = Duration::from_secs(job.seconds.min(SECONDS));
    let since = Instant::now();
    let stopped = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) => {}
            Err(e) => break Err(format!("the model cannot be waited for: {e}")),
        }
        if since.elapsed() >= limit {
            break Err(format!("the model has not ended after {} seconds", limit.as_secs()));
        }
        if printed.is_too_much() || errors.is_too_much() {
            break Err(format!("the model prints more than {PRINTED} bytes"));
        }
        std::thread::sleep(LOOK);
    };
    interrupt::ends_group(&mut child);
    let status = match stopped {
        Ok(status) => status,
        Err(what) => return Ok(Err(Failure::new(Kind::Model, what))),
    };
    if status.success() {
        return Ok(Ok(()));
    }
    // The threads have what was in the pipes.
    std::thread::sleep(LOOK);
    let mut lines = errors.last_lines();
    let last = lines.pop().unwrap_or_else(|| format!("it ended with {status}"));
    Ok(Err(match status.code() {
        Some(MISSING) => return Err(missing(last).into()),
        Some(WRONG) => Failure::new(Kind::Model, format!("the model: {last}")),
        _ => Failure::new(Kind::Model, format!("the model failed: {last}")).with_details(lines),
    }))
}
