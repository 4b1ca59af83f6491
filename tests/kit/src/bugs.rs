//! Planted bugs: `shef test` finds each by rule, with a command that finds it again.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::programs::{Programs, copy_project};
use crate::{Result, root};

/// The bugs, in `bugs.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    bug: Vec<Bug>,
}

/// A bug: edits of a right accelerator.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    design: String,
    name: String,
    rule: String,
    edits: Vec<[String; 2]>,
}

/// The result of a bug.
#[derive(Serialize)]
pub struct Planted {
    /// The design.
    pub design: String,
    /// The bug.
    pub name: String,
    /// Whether the test failed by the rule that it must fail by.
    pub found: bool,
    /// The rule.
    rule: Option<String>,
    /// Cycle of the report.
    cycle: u64,
    /// Duration, with the build of the design.
    seconds: f64,
    /// Whether the printed command finds it again.
    pub replay_found: bool,
    /// Whether the results of the failing seed are right, so that comparing them finds nothing.
    result_right: bool,
}

/// Folder of a design.
fn folder(design: &str) -> std::path::PathBuf {
    match design {
        "vecadd" => root().join("examples/vecadd"),
        other => root().join("tests/kit").join(other),
    }
}

/// The failure that names this rule, in the document of `shef test`, and its cycle.
fn failure<'d>(
    document: &'d serde_json::Value,
    rule: &str,
) -> Option<(&'d serde_json::Value, u64)> {
    document["phases"].as_array()?.iter().find_map(|phase| {
        let failure = &phase["failure"];
        let mut rules = failure["rules"].as_array()?.iter();
        let cycle = match rules.find(|report| report["rule"] == rule) {
            Some(report) => report["cycle"].as_u64(),
            None => (failure["rule"] == rule).then(|| failure["cycle"].as_u64())?,
        };
        Some((phase, cycle.unwrap_or(0)))
    })
}

/// Runs all bugs.
///
/// # Errors
/// A bug cannot be planted, or a program does not start.
pub fn run(programs: &Programs) -> Result<Vec<Planted>> {
    let text = std::fs::read_to_string(root().join("tests/kit/bugs.toml"))?;
    let file: File = toml::from_str(&text)?;
    let scratch = tempfile::tempdir()?;
    let all: Result<Vec<Planted>> =
        file.bug.iter().map(|bug| bug.run(programs, scratch.path())).collect();
    all
}

impl Bug {
    /// Copies the design with the edits into a folder of its name.
    fn plant(&self, scratch: &Path) -> Result<std::path::PathBuf> {
        let dir = scratch.join(format!("{}-{}", self.design, self.name)).join(&self.design);
        copy_project(&folder(&self.design), &dir)?;
        let file = dir.join("shef_accel.sv");
        let mut text = std::fs::read_to_string(&file)?;
        for [from, to] in &self.edits {
            if text.matches(from.as_str()).count() != 1 {
                let Self { design, name, .. } = self;
                return Err(format!("{name}: expected {from:?} once in {design}").into());
            }
            text = text.replace(from.as_str(), to);
        }
        std::fs::write(file, text)?;
        Ok(dir)
    }

    fn run(&self, programs: &Programs, scratch: &Path) -> Result<Planted> {
        let dir = self.plant(scratch)?;
        let above = dir.parent().unwrap_or(&dir);
        let ended = programs.shef(above, None, &["test", &self.design, "--json"])?;
        let document = ended.json()?;
        let found = failure(&document, &self.rule);
        let replay = found.and_then(|(phase, _)| phase["replay"].as_str());
        let replay_found = match replay {
            None => false,
            Some(command) => {
                let again = programs.script(above, None, &format!("{command} --json"))?;
                again.status == 1 && failure(&again.json()?, &self.rule).is_some()
            }
        };
        let planted = Planted {
            design: self.design.clone(),
            name: self.name.clone(),
            found: ended.status == 1 && found.is_some(),
            rule: found.map(|_| self.rule.clone()),
            cycle: found.map_or(0, |(_, cycle)| cycle),
            seconds: (ended.seconds * 10.0).round() / 10.0,
            replay_found,
            result_right: found.is_some_and(|(phase, _)| phase["failure"]["results_right"] == true),
        };
        let Planted { seconds, cycle, .. } = &planted;
        eprintln!(
            "{} {:<10} {:<13} {:<24} cycle {cycle}, {seconds} s{}",
            if planted.found { "found" } else { "MISSED" },
            self.design,
            self.name,
            self.rule,
            if replay_found { ", and again" } else { "; the command does not find it again" },
        );
        if !planted.found {
            eprintln!("{}{}", ended.stdout, ended.stderr);
        }
        Ok(planted)
    }
}
