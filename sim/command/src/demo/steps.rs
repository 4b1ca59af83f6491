//! The demo's steps: when each begins, how it ends, and how it is printed.

use std::time::Instant;

use shef_console::CliError;
use shef_console::output::Output;
use shef_lab::probe::Probe;

use super::report::Step;

/// Milliseconds since `begin`.
pub fn ms(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// How a step ended.
pub struct Ended {
    ok: bool,
    detail: String,
}

impl Ended {
    /// Whether it did what it must, and details for people.
    pub fn new(ok: bool, detail: impl Into<String>) -> Self {
        Self { ok, detail: detail.into() }
    }
}

/// The beginning of a step.
pub struct Begun {
    at: Instant,
    cycles: Option<u64>,
}

/// Prints and collects steps.
pub struct Steps<'a> {
    output: &'a Output,
    list: Vec<Step>,
}

impl<'a> Steps<'a> {
    /// No steps yet.
    pub fn new(output: &'a Output) -> Self {
        Self { output, list: Vec::new() }
    }

    /// The beginning of a step, at the device's present cycle.
    pub fn begin(probe: Option<&Probe>) -> Begun {
        Begun { at: Instant::now(), cycles: probe.and_then(Probe::cycles) }
    }

    /// Ends a step.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn end(
        &mut self,
        name: &'static str,
        begun: &Begun,
        probe: &Probe,
        ended: Ended,
    ) -> Result<(), CliError> {
        let cycles = begun.cycles.zip(probe.cycles()).map(|(from, to)| to - from);
        self.add(name, ms(begun.at), cycles, ended)
    }

    /// Runs a step on the device of `probe`.
    ///
    /// # Errors
    /// Those of the step, and if stdout cannot be written.
    pub fn run(
        &mut self,
        name: &'static str,
        probe: &Probe,
        step: impl FnOnce() -> Result<Ended, CliError>,
    ) -> Result<(), CliError> {
        let begun = Self::begin(Some(probe));
        let ended = step()?;
        self.end(name, &begun, probe, ended)
    }

    /// Records a finished step.
    ///
    /// # Errors
    /// If stdout cannot be written.
    pub fn add(
        &mut self,
        name: &'static str,
        ms: u64,
        cycles: Option<u64>,
        Ended { ok, detail }: Ended,
    ) -> Result<(), CliError> {
        let mark = if ok { self.output.good("ok  ") } else { self.output.bad("FAIL") };
        let shown = cycles.map_or(String::new(), |c| format!("{c} cycles"));
        self.output.line(format_args!(
            "{:>2} {mark} {name:<20} {ms:>6} ms {shown:>15}  {detail}",
            self.list.len() + 1,
        ))?;
        self.list.push(Step { name, ok, ms, cycles, detail });
        Ok(())
    }

    /// All steps, in order.
    pub fn list(self) -> Vec<Step> {
        self.list
    }
}
