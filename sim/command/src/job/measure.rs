//! A job measured at the accelerator, without a Shield and behind it.

use shef_card::check::DoneRegister;
use shef_card::measure::{Measured, MeasuredJob};
use shef_card::{BareCard, Design, RtlOptions, SimKernel};
use shef_console::CliError;
use shef_lab::probe::card;

use super::case::{Case, Results};
use super::drive::{self, Shielded, obeys};
use super::failure::{Failure, Kind};
use super::rig::Rig;

/// A run: its results, and what was measured.
pub struct Ran {
    /// The results, which are the expected ones.
    pub results: Results,
    /// Cycles, and what the ports did.
    pub measured: Measured,
}

/// How far a session came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    /// Security Kernel and Shield were appraised, and the Shield has the owner's keys.
    pub attested: bool,
    /// The statement under which the results were opened shows no fault and no refusal, and the
    /// kernel countersigned the end of the session.
    pub statement_clean: bool,
}

/// A job with its data and expected results, and how it is measured.
pub struct Measurement<'p> {
    /// Data and expected results.
    pub case: Case<'p>,
    writes: Vec<(u32, u32)>,
    done: DoneRegister,
    job: MeasuredJob,
}

impl<'p> Measurement<'p> {
    /// Of a case; the end is found with this number of copies of the accelerator.
    ///
    /// # Errors
    /// A job without start or end, and values that are not in the configuration.
    pub fn new(case: Case<'p>, copies: usize) -> Result<Self, Failure> {
        let (job, config) = (case.subject.job, case.subject.config);
        let (start, done) = job.ends().map_err(|what| Failure::new(Kind::Error, what))?;
        let writes = case.writes()?;
        let done = drive::done_register(done);
        let job = MeasuredJob {
            writes: writes.len() as u64,
            // A register's offset has 16 bits.
            start: start.offset as u16,
            done,
            regions: config.regions().iter().map(|r| r.base..r.base + r.size).collect(),
            copies,
        };
        Ok(Self { case, writes, done, job })
    }

    /// A card with this memory, a native Security Kernel and the waves of `base`.
    fn timing(base: &RtlOptions, latency: u64) -> RtlOptions {
        let kernel = SimKernel::Native;
        RtlOptions { memory_latency: Some(latency), kernel, ..base.clone() }
    }

    /// Runs the job without a Shield. A job that fails, or has wrong results, is a failure.
    ///
    /// # Errors
    /// A design that does not build, or cannot be measured.
    pub fn bare(
        &self,
        design: &Design,
        latency: u64,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Result<Ran, Failure>, CliError> {
        let timing = Self::timing(&RtlOptions::default(), latency);
        let mut bare = BareCard::new(design, &timing, progress).map_err(card)?;
        bare.measure(self.job.clone()).map_err(card)?;
        Ok(match self.bare_job(&mut bare) {
            Ok(results) => Ok(Ran { results, measured: bare.measured().map_err(card)? }),
            Err(failure) => Err(failure),
        })
    }

    fn bare_job(&self, bare: &mut BareCard) -> Result<Results, Failure> {
        bare.check(Some(self.done)).map_err(card)?;
        let (ran, results) = drive::bare(bare, &self.case)?;
        obeys(bare.checked())?;
        ran?;
        self.case.compare(&results)?;
        Ok(results)
    }

    /// Runs the job in a session behind the Shield: attested, keyed, its results opened under a
    /// statement, its end countersigned by the kernel. `shown` has how far it came.
    ///
    /// # Errors
    /// As [`Measurement::bare`].
    pub fn shielded(
        &self,
        design: &Design,
        base: &RtlOptions,
        latency: u64,
        shown: &mut Shown,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Result<Ran, Failure>, CliError> {
        let mut rig = Rig::new(design, Self::timing(base, latency), self.case.seed, progress)?;
        rig.card.measure(design, self.job.clone(), progress).map_err(card)?;
        Ok(match self.session(&mut rig, shown) {
            Ok(results) => Ok(Ran { results, measured: rig.card.measured().map_err(card)? }),
            Err(failure) => Err(failure),
        })
    }

    fn session(&self, rig: &mut Rig, shown: &mut Shown) -> Result<Results, Failure> {
        let Rig { world, host, card: probe, .. } = rig;
        probe.check(Some(self.done)).map_err(card)?;
        let mut session = world.session(host)?;
        shown.attested = true;
        let mut shielded = Shielded { session: &mut session, card: probe };
        shielded.upload(&self.case.inputs)?;
        let ran = shielded.job(&self.case, &self.writes);
        obeys(probe.checked())?;
        // Opening results demands a statement without faults and refusals.
        let (results, _) = ran?;
        let closed = session.close()?;
        closed.verify_record(&host.close_record()?)?;
        shown.statement_clean = true;
        self.case.compare(&results)?;
        Ok(results)
    }
}
