//! What a run did, as text and as a document.

use serde::Serialize;
use shef::Uri;
use shef::ports::Progress;
use shef_console::file::PathText;
use shef_console::{CliError, Output, hex};
use shef_project::{Design, Job, Registers};
use shef_proto::crypto::sha256;

use super::data::Input;
use super::parties::Loaded;
use super::session::{Late, Limit, Ran};

/// Contents of a region.
#[derive(Serialize)]
struct Contents {
    region: String,
    /// Absent for random inputs.
    file: Option<PathText>,
    bytes: usize,
    sha256: String,
}

/// A session, which was closed.
#[derive(Serialize)]
struct Closed {
    appraisal: String,
    transcript: String,
    /// From the first register write to the flushed results.
    seconds: f64,
    /// Absent if the device counts no cycles.
    cycles: Option<u64>,
}

#[derive(Serialize)]
struct Register {
    name: String,
    offset: u32,
    value: u32,
}

/// What a run did.
#[derive(Serialize)]
pub struct Report {
    device: String,
    accelerator: String,
    design_digest: String,
    config_digest: String,
    image_digest: String,
    kernel_appraisal: String,
    job: Option<String>,
    /// Absent without random inputs.
    seed: Option<u64>,
    inputs: Vec<Contents>,
    sessions: Vec<Closed>,
    registers: Vec<Register>,
    outputs: Vec<Contents>,
    /// Of a job that was not done, the bursts at the accelerator's ports, if the device reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
    /// Absent if the job succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

impl Report {
    /// Of a run whose image is loaded.
    pub fn new(device: &Uri, design: &Design, job: Option<&str>, image: &Loaded) -> Self {
        Self {
            device: device.to_string(),
            accelerator: design.name().to_owned(),
            design_digest: hex::encode(&design.digest()),
            config_digest: hex::encode(&design.config().digest()),
            image_digest: hex::encode(&image.digest),
            kernel_appraisal: image.appraisal.clone(),
            job: job.map(str::to_owned),
            seed: None,
            inputs: Vec::new(),
            sessions: Vec::new(),
            registers: Vec::new(),
            outputs: Vec::new(),
            progress: None,
            code: None,
        }
    }

    /// Adds the inputs.
    pub fn inputs(&mut self, inputs: &[Input], seed: u64) {
        self.seed = inputs.iter().any(|input| input.file.is_none()).then_some(seed);
        self.inputs = inputs
            .iter()
            .map(|input| Contents {
                region: input.region.clone(),
                file: input.file.as_ref().map(PathText::from),
                bytes: input.bytes.len(),
                sha256: hex::encode(&sha256(&input.bytes)),
            })
            .collect();
    }

    /// Adds a session.
    pub fn session(&mut self, ran: &Ran) {
        self.sessions.push(Closed {
            appraisal: ran.appraisal.clone(),
            transcript: hex::encode(&ran.transcript),
            seconds: ran.elapsed.as_secs_f64(),
            cycles: ran.cycles,
        });
    }

    /// Adds the results, which are the same in all sessions.
    pub fn results(&mut self, ran: &Ran, job: &Job, registers: &Registers) {
        let reads = job.reads.iter().zip(&ran.reads);
        self.registers = reads
            .map(|(offset, value)| Register {
                name: registers.name(*offset),
                offset: *offset,
                value: *value,
            })
            .collect();
        self.outputs = job
            .outputs
            .iter()
            .zip(&ran.outputs)
            .map(|(output, bytes)| Contents {
                region: output.region.clone(),
                file: Some(PathText::from(&output.file)),
                bytes: bytes.len(),
                sha256: hex::encode(&sha256(bytes)),
            })
            .collect();
    }

    /// Prints a run whose accelerator was not done within its limits, and returns the error.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn late(
        mut self,
        output: &Output,
        late: Late,
        registers: &Registers,
    ) -> Result<CliError, CliError> {
        let Late { offset, value, limit, progress } = late;
        let limit = match limit {
            Limit::Time(after) => format!("is not done after {} s", after.as_secs()),
            Limit::Stall(cycles) => format!("makes no progress for {cycles} cycles"),
        };
        let waits = progress.as_ref().map_or(String::new(), |all| format!("; {}", all.waits()));
        (self.code, self.progress) = (Some(LATE), progress);
        self.print(output)?;
        let message = format!(
            "the accelerator {limit}: register {} is {value:#010x}{waits}; no output was written",
            registers.name(offset),
        );
        Ok(CliError::new(LATE, message))
    }

    /// Prints a run whose session `number` had another result, and returns the error.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn differ(
        mut self,
        output: &Output,
        number: u32,
        what: &str,
    ) -> Result<CliError, CliError> {
        self.code = Some(DIFFERENT);
        self.print(output)?;
        let message = format!(
            "session {number} has another result than session 1: {what}; no output was written"
        );
        Ok(CliError::new(DIFFERENT, message))
    }

    /// Prints it.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&self, output: &Output) -> Result<(), CliError> {
        output.line(format_args!("device          {}", self.device))?;
        output.line(format_args!("accelerator     {}", self.accelerator))?;
        output.line(format_args!("design digest   {}", self.design_digest))?;
        output.line(format_args!("config digest   {}", self.config_digest))?;
        output.line(format_args!("image digest    {}", self.image_digest))?;
        output.line(format_args!("kernel          {}", self.kernel_appraisal))?;
        if let Some(job) = &self.job {
            output.line(format_args!("job             {job}"))?;
        }
        if let Some(seed) = self.seed {
            output.line(format_args!("seed            {seed}"))?;
        }
        let contents = |kind: &str, all: &[Contents]| {
            all.iter().try_for_each(|Contents { region, file, bytes, sha256 }| {
                let file = file.as_ref().map_or("random".to_owned(), ToString::to_string);
                output.line(format_args!("{kind:<15} {region}: {bytes} bytes, {file}"))?;
                output.line(format_args!("                SHA-256 {sha256}"))
            })
        };
        contents("input", &self.inputs)?;
        for (number, session) in (1..).zip(&self.sessions) {
            let Closed { appraisal, transcript, seconds, cycles } = session;
            let cycles = cycles.map_or(String::new(), |cycles| format!(", {cycles} cycles"));
            output.line(format_args!("session {number:<7} {appraisal}; ran {seconds:.1} s{cycles}; closed, record verified"))?;
            output.line(format_args!("                transcript {transcript}"))?;
        }
        for Register { name, value, .. } in &self.registers {
            output.line(format_args!("register        {name} = {value:#x}"))?;
        }
        contents("output", &self.outputs)?;
        if let Some(progress) = &self.progress {
            for (number, line) in progress.to_string().lines().enumerate() {
                let kind = if number == 0 { "progress" } else { "" };
                output.line(format_args!("{kind:<15} {line}"))?;
            }
        }
        output.document(self)
    }
}

/// Code of a job that was not done in time.
const LATE: &str = "SHEF-CLI-030";
/// Code of sessions with different results.
const DIFFERENT: &str = "SHEF-CLI-031";
