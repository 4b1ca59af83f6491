//! Figures of the protocol checker and of digests.

use std::process::{Command, Stdio};

use serde::Serialize;

use crate::programs::Programs;
use crate::{Result, root};

/// A rule of the checker.
#[derive(Serialize)]
struct Rule {
    rule: String,
    /// Whether its stimulus raises it.
    mutant_raises_it: bool,
    /// Whether its stimulus raises another one.
    mutant_raises_others: bool,
}

/// Figures of the protocol checker.
#[derive(Serialize, Default)]
pub struct Checker {
    /// Legal bursts that it watched.
    legal_bursts: u64,
    /// Reports about them.
    pub false_alarms: u64,
    rules: Vec<Rule>,
    /// Processor time that watching adds, as a part of that of the simulation.
    watch_cost: f64,
}

/// Runs tests of the workspace, and returns what they print.
fn tests(arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--quiet"]).args(arguments);
    command.current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let out = command.output()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        return Err(format!("cargo test {}: {}\n{text}", arguments.join(" "), out.status).into());
    }
    Ok(text)
}

/// The rest of the lines that begin with `start`.
fn lines<'t>(text: &'t str, start: &str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| line.strip_prefix(start))
}

/// Measures the checker, by its own tests.
///
/// # Errors
/// A test failed, or does not print its figure.
pub fn checker() -> Result<Checker> {
    let check = |more: &[&str]| tests(&[&["--test", "check", "--", "--nocapture"], more].concat());
    let raised = check(&["each_rule_is_raised"])?;
    let rule = |line: &str| {
        let (rule, others) = line.split_once(' ')?;
        let others = others.strip_prefix("others ")?.parse::<u32>().ok()?;
        let mutant_raises_others = others > 0;
        Some(Rule { rule: rule.to_owned(), mutant_raises_it: true, mutant_raises_others })
    };
    let rules: Vec<Rule> = lines(&raised, "raised ").filter_map(rule).collect();
    let legal = check(&["--ignored", "a_million_legal_bursts"])?;
    let legal_bursts = lines(&legal, "legal bursts ").filter_map(|n| n.parse::<u64>().ok()).sum();
    let cost =
        tests(&["--test", "digits", "--", "--nocapture", "--ignored", "cost_of_the_checker"])?;
    let cost = lines(&cost, "cost of the checker: ").find_map(|line| {
        line.strip_suffix(" per mille").and_then(|number| number.parse::<f64>().ok())
    });
    let watch_cost = cost.ok_or("the test prints no cost of the checker")? / 1000.0;
    // The test fails with the first report.
    Ok(Checker { legal_bursts, false_alarms: 0, rules, watch_cost })
}

/// Digest of one design on different cards.
#[derive(Serialize, Default)]
pub struct Digests {
    digest_unwatched: String,
    digest_watched: String,
    digest_served: String,
}

impl Digests {
    /// Whether they are the same.
    pub fn equal(&self) -> bool {
        self.digest_watched == self.digest_unwatched && self.digest_served == self.digest_unwatched
    }
}

/// Compares the digest that the project has with those in the evidence of cards.
///
/// # Errors
/// A program fails.
pub fn digests(programs: &Programs) -> Result<Digests> {
    let project = "examples/vecadd";
    let digest = |arguments: &[&str]| -> Result<String> {
        let ended = programs.shef(&root(), None, &[arguments, &["--json"]].concat())?;
        let document = ended.json()?;
        let digest = document["design_digest"].as_str();
        Ok(digest.ok_or(format!("no design digest: {}{}", ended.stdout, ended.stderr))?.to_owned())
    };
    let scratch = tempfile::tempdir()?;
    let run = |name: &str, more: &str| {
        let device = format!("sim:rtl?project={project}&kernel=native{more}");
        let out = format!("result0={}:16384", scratch.path().join(name).display());
        digest(&["run", project, "--job", "add", "--device", &device, "--out", &out])
    };
    Ok(Digests {
        digest_unwatched: digest(&["project", "check", project, "--no-ports"])?,
        digest_watched: run("watched", "&check=1")?,
        digest_served: run("served", "")?,
    })
}
