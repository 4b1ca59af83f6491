//! A workload as a job of its project, in a Shield of each layout.

use std::path::PathBuf;

use shef_card::Design;
use shef_console::CliError;
use shef_gen::shield::{Shield, parse};
use shef_lab::probe::card;
use shef_project::{Done, Job, Jobs, OutputFile, Registers, Test, Value as Word, Write};
use shef_proto::config::{Config, Region, Set};
use shef_workloads::{Layout, Task, Value, Workload};

use super::error::EvaluateError;
use crate::job::case::{Case, Results, Subject as Tested};

/// A Shield that a workload runs behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Regions and sets.
    pub layout: Layout,
    /// AES key of all regions; `None` as the file says.
    pub key_bits: Option<u16>,
    /// AES lanes of all sets; `None` as the file says.
    pub lanes: Option<u8>,
}

/// A workload with its project and data.
pub struct Subject {
    /// The workload.
    pub workload: &'static dyn Workload,
    /// Data and expected results.
    pub task: Task,
    /// The project with our layout.
    design: Design,
    /// The other layout, if there is one.
    paper: Option<Shield>,
    registers: Registers,
    job: Job,
    test: Test,
}

/// Folder of a workload's project.
pub fn folder(workload: &dyn Workload) -> PathBuf {
    shef_card::repository().join("shell-rtl/accel").join(workload.name())
}

impl Subject {
    /// Reads the project of a workload, for a run with these data.
    ///
    /// # Errors
    /// A project that is invalid or does not fit.
    pub fn new(workload: &'static dyn Workload, task: Task) -> Result<Self, CliError> {
        let unfit = |what: String| {
            CliError::from(EvaluateError::Project { workload: workload.name().to_owned(), what })
        };
        let folder = folder(workload);
        let design = Design::project(&folder).map_err(card)?;
        let Jobs { registers, jobs, .. } = Jobs::read(&folder, design.config()).map_err(card)?;
        let paper = match workload.paper() {
            None => None,
            Some(_) => {
                let file = folder.join("paper.toml");
                let text = std::fs::read_to_string(&file)
                    .map_err(|e| unfit(format!("{}: {e}", file.display())))?;
                let shield = parse(&text).map_err(|e| unfit(format!("{}: {e}", file.display())))?;
                Some(shield)
            }
        };
        // Every job of a project starts and ends in the same way.
        let ends = jobs.values().find_map(|job| Some((job.start.clone()?, job.done?)));
        let (start, done) =
            ends.ok_or_else(|| unfit("no job of shef.toml has a start and an end".to_owned()))?;
        let job = job(&task, &registers, start, done).map_err(unfit)?;
        let test = Test { job: workload.name().to_owned(), expect: vec![], model: None, seeds: 1 };
        Ok(Self { workload, task, design, paper, registers, job, test })
    }

    /// The accelerator in the Shield of a variant.
    ///
    /// # Errors
    /// A layout that the workload does not have, and a configuration that breaks a rule.
    pub fn design(&self, variant: Variant) -> Result<Design, CliError> {
        let unfit = |what: String| {
            let workload = self.workload.name().to_owned();
            CliError::from(EvaluateError::Project { workload, what })
        };
        let base = match (variant.layout, &self.paper) {
            (Layout::Ours, _) => self.design.config(),
            (Layout::Paper, Some(shield)) => &shield.config,
            (Layout::Paper, None) => return Err(unfit("it has no paper.toml".to_owned())),
        };
        let with_lanes =
            |set: &Set| Set { lanes: variant.lanes.unwrap_or(set.lanes), ..set.clone() };
        let with_key = |region: &Region| Region {
            key_bits: variant.key_bits.unwrap_or(region.key_bits),
            ..region.clone()
        };
        let sets = base.sets().iter().map(with_lanes).collect();
        let regions = base.regions().iter().map(with_key).collect();
        let config = Config::new(base.on_fault(), base.ports(), sets, regions)
            .map_err(|e| unfit(e.to_string()))?;
        if config == *self.design.config() {
            return Ok(self.design.clone());
        }
        self.design.with_config(config).map_err(card)
    }

    /// The run, with the addresses of a configuration.
    pub fn case<'s>(&'s self, config: &'s Config) -> Case<'s> {
        let Task { inputs, outputs, reads, .. } = &self.task;
        let subject = Tested {
            name: self.workload.name(),
            test: &self.test,
            job: &self.job,
            registers: &self.registers,
            config,
        };
        let offset = |name: &str| self.registers.offset(name).unwrap_or_default();
        let results = Results {
            regions: outputs
                .iter()
                .map(|(name, data)| ((*name).to_owned(), data.clone()))
                .collect(),
            registers: reads.iter().map(|(name, value)| (offset(name), *value)).collect(),
        };
        Case {
            subject,
            seed: 1,
            inputs: inputs.iter().map(|(name, data)| ((*name).to_owned(), data.clone())).collect(),
            expected: vec![("CPU reference".to_owned(), results)],
        }
    }
}

/// The job of a task.
fn job(task: &Task, registers: &Registers, start: Write, done: Done) -> Result<Job, String> {
    let offset = |name: &str| registers.offset(name);
    let mut writes = Vec::new();
    for (name, value) in &task.registers {
        let value = match value {
            Value::Number(number) => Word::Number(*number),
            Value::Address(region) => Word::Low((*region).to_owned(), 0),
            Value::AddressHigh(region) => Word::High((*region).to_owned(), 0),
            Value::Offset(region, byte) => Word::Low((*region).to_owned(), (*byte).into()),
        };
        writes.push(Write { offset: offset(name)?, value });
    }
    let outputs = task.outputs.iter().map(|(region, data)| OutputFile {
        region: (*region).to_owned(),
        file: PathBuf::new(),
        bytes: data.len() as u64,
    });
    let reads = task.reads.iter().map(|(name, _)| offset(name)).collect::<Result<_, _>>()?;
    Ok(Job {
        registers: writes,
        start: Some(start),
        done: Some(done),
        outputs: outputs.collect(),
        reads,
        // A search without card memory shows no progress until its end.
        stall_cycles: u64::MAX,
        ..Job::default()
    })
}
