//! The job of a command line: one of the project's, with entries that flags replace.

use shef_console::CliError;
use shef_project::{Job, Jobs, Names, Refused};
use shef_proto::config::Config;

/// Flags that describe a job.
#[derive(clap::Args)]
pub struct JobArgs {
    /// Job of shef.toml, [jobs.NAME]; the other flags replace its entries
    #[arg(long = "job", value_name = "NAME")]
    pub name: Option<String>,
    /// Contents of an input region: REGION=FILE or REGION=random:BYTES
    #[arg(long = "in", value_name = "REGION=FILE")]
    inputs: Vec<String>,
    /// Register to write before the start, by name or offset: a number, @REGION for its address,
    /// @REGION+BYTES, or the upper half of them with :high
    #[arg(long = "reg", value_name = "REGISTER=VALUE")]
    registers: Vec<String>,
    /// Write that starts the accelerator
    #[arg(long, value_name = "REGISTER=VALUE")]
    start: Option<String>,
    /// When the accelerator is done: REGISTER:BIT=1 (or 0) or REGISTER=VALUE
    #[arg(long, value_name = "REGISTER:BIT=1")]
    done: Option<String>,
    /// File for the first bytes of an output region
    #[arg(long = "out", value_name = "REGION=FILE:BYTES")]
    outputs: Vec<String>,
    /// Register to read at the end
    #[arg(long = "read", value_name = "REGISTER")]
    reads: Vec<String>,
    /// Maximum number of seconds to wait for the accelerator [default: the job's, or 3600]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Maximum number of cycles without progress at the accelerator's ports, on a simulated card of this
    /// machine [default: the job's, or 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub stall_cycles: Option<u64>,
}

/// Adds the text of a flag to a job.
type Add = fn(&mut Job, Names<'_>, &str) -> Result<(), Refused>;

impl JobArgs {
    /// The job, which has a start and an end.
    ///
    /// # Errors
    /// SHEF-CLI-001 with the flag and the reason.
    pub fn job(&self, jobs: &Jobs, config: &Config) -> Result<Job, CliError> {
        let wrong = |what: String| CliError::new("SHEF-CLI-001", what);
        let known = || {
            let names: Vec<&str> = jobs.jobs.keys().map(String::as_str).collect();
            if names.is_empty() {
                "shef.toml has no jobs".to_owned()
            } else {
                format!("the jobs of shef.toml are {}", names.join(", "))
            }
        };
        let mut job = match &self.name {
            None => Job::default(),
            Some(name) => {
                let job = jobs.jobs.get(name).cloned();
                job.ok_or_else(|| wrong(format!("there is no job {name:?}: {}", known())))?
            }
        };
        let names = Names { registers: &jobs.registers, config, project: None };
        let flags: [(&str, &[String], Add); 6] = [
            ("in", &self.inputs, Job::input),
            ("reg", &self.registers, Job::register),
            ("start", self.start.as_slice(), Job::start),
            ("done", self.done.as_slice(), Job::done),
            ("out", &self.outputs, Job::output),
            ("read", &self.reads, Job::read),
        ];
        for (flag, texts, add) in flags {
            for text in texts {
                add(&mut job, names, text)
                    .map_err(|what| wrong(format!("--{flag} {text}: {what}")))?;
            }
        }
        job.seconds = self.seconds.unwrap_or(job.seconds);
        job.stall_cycles = self.stall_cycles.unwrap_or(job.stall_cycles);
        if let Err(what) = job.ends() {
            return Err(wrong(format!("{what}, as a flag or with --job: {}", known())));
        }
        Ok(job)
    }
}
