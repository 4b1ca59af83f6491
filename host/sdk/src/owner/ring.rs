//! A stream of batches through lanes that take turns: while the accelerator works on one batch, the
//! next is sealed and uploaded.

use shef_proto::channel::Statement;
use shef_proto::config::Region;
use shef_seal::{OpenPolicy, Opened};

use super::judge::judge;
use super::wait::Until;
use crate::{InputBuffer, Keyed, OutputBuffer, SdkError, Session};

/// The buffers of one batch.
#[derive(Debug, Clone)]
pub struct Lane {
    /// Inputs.
    pub inputs: Vec<InputBuffer>,
    /// Outputs.
    pub outputs: Vec<OutputBuffer>,
}

impl Lane {
    /// A lane with these buffers.
    pub fn new(inputs: impl Into<Vec<InputBuffer>>, outputs: impl Into<Vec<OutputBuffer>>) -> Self {
        Self { inputs: inputs.into(), outputs: outputs.into() }
    }

    fn regions(&self) -> impl Iterator<Item = &Region> {
        self.inputs
            .iter()
            .map(InputBuffer::region)
            .chain(self.outputs.iter().map(OutputBuffer::region))
    }
}

/// The accelerator's job for a batch, as in [`Session::run`].
#[derive(Debug, Clone)]
pub struct Job {
    /// Register writes, in this order.
    pub registers: Vec<(u32, u32)>,
    /// The start register, and its value.
    pub start: (u32, u32),
    /// The status register, and its state when the job is done.
    pub done: (u32, Until),
    /// Bytes of results in each output of the lane.
    pub results: Vec<usize>,
    /// Policy for opening the results. It applies to refusals of this launch and of earlier ones.
    pub policy: OpenPolicy,
}

/// The results of a batch.
pub struct Batch {
    /// Number of the batch, starting at 0.
    pub number: u64,
    /// Opened results of each output of the lane.
    pub outputs: Vec<Opened>,
}

/// Lanes that take turns. While the accelerator works, the owner seals and uploads the next batch,
/// and downloads and opens the results of the previous one. Two lanes are enough for that.
///
/// Every batch uses separate epochs of its lane, which the ring chooses. [`Ring::push`] launches a
/// batch and returns nothing else; [`Ring::results`] returns the results of the previous batch, in
/// order, each once, under the statement that was read when the batch was done. The ring borrows
/// the session exclusively until it is dropped; a running batch then continues, and its results
/// open only under a new statement.
pub struct Ring<'s, 'h> {
    session: &'s mut Session<'h, Keyed>,
    lanes: Vec<Lane>,
    /// Number of the next batch.
    next: u64,
    /// The batch that was launched last and has not been waited for.
    runs: Option<Launched>,
    /// The batch before it, whose results have not been taken yet.
    done: Option<(Launched, Statement)>,
    /// A launch failed.
    over: bool,
}

struct Launched {
    number: u64,
    job: Job,
    /// Number of the request that launched it.
    request: u64,
}

impl<'h> Session<'h, Keyed> {
    /// A ring of lanes.
    ///
    /// # Errors
    /// [`SdkError::Lanes`] if there are fewer than two lanes, two share a region, or one differs in
    /// shape from the others; [`SdkError::OtherSession`] if a buffer belongs to another session.
    pub fn ring(&mut self, lanes: impl Into<Vec<Lane>>) -> Result<Ring<'_, 'h>, SdkError> {
        let lanes = lanes.into();
        check(&lanes)?;
        for lane in &lanes {
            lane.inputs.iter().try_for_each(|buffer| self.check_input(buffer, 0))?;
            lane.outputs.iter().try_for_each(|buffer| self.check_output(buffer, 0))?;
        }
        Ok(Ring { session: self, lanes, next: 0, runs: None, done: None, over: false })
    }
}

fn check(lanes: &[Lane]) -> Result<(), SdkError> {
    let error =
        |what, found: String, expected: String| Err(SdkError::Lanes { what, found, expected });
    let [first, others @ ..] = lanes else { return error("lanes", "0".into(), "2 or more".into()) };
    if others.is_empty() {
        return error("lanes", "1".into(), "2 or more".into());
    }
    let mut seen = Vec::new();
    for lane in lanes {
        let count = |lane: &Lane| {
            format!("{} inputs and {} outputs", lane.inputs.len(), lane.outputs.len())
        };
        if (lane.inputs.len(), lane.outputs.len()) != (first.inputs.len(), first.outputs.len()) {
            return error("buffers of a lane", count(lane), count(first));
        }
        for (region, like) in lane.regions().zip(first.regions()) {
            let shape =
                |r: &Region| format!("{:?} of {} bytes in chunks of {}", r.name, r.size, r.chunk);
            if (region.size, region.chunk) != (like.size, like.chunk) {
                return error("region", shape(region), shape(like));
            }
            if seen.contains(&region.id) {
                return error("region", format!("{:?} twice", region.name), "once".into());
            }
            seen.push(region.id);
        }
    }
    Ok(())
}

impl Ring<'_, '_> {
    /// Seals and uploads a batch, `data` for each input of its lane; then waits for the previous
    /// batch, launches this one and returns its number, starting at 0. `job` describes the job in
    /// the lane. [`Ring::results`] returns the results of the previous batch while this one runs.
    ///
    /// # Errors
    /// [`SdkError::ResultsWait`] if results of an earlier batch have not been taken. Errors of
    /// [`Session::upload`], [`SdkError::Lanes`], [`SdkError::TooLong`], [`SdkError::NotFinished`],
    /// [`SdkError::WaitEnded`], [`SdkError::Faulted`]: this batch was not launched, and can be
    /// pushed again unless the Shield has stopped. After an error of the launch the ring is over:
    /// whether this batch runs is unknown, and [`Ring::results`] returns the results of the
    /// previous batch.
    pub fn push(
        &mut self,
        data: &[&[u8]],
        job: impl FnOnce(&Lane) -> Job,
    ) -> Result<u64, SdkError> {
        if self.over {
            return Err(SdkError::RingOver { number: self.next });
        }
        if let Some((launched, _)) = &self.done {
            return Err(SdkError::ResultsWait { number: launched.number });
        }
        let lane = self.lane(self.next).clone();
        let job = job(&lane);
        for (what, found, expected) in [
            ("data for inputs", data.len(), lane.inputs.len()),
            ("results of outputs", job.results.len(), lane.outputs.len()),
        ] {
            if found != expected {
                return Err(SdkError::Lanes {
                    what,
                    found: found.to_string(),
                    expected: expected.to_string(),
                });
            }
        }
        // Do not start a batch whose results could not be opened.
        for (buffer, data) in lane.inputs.iter().zip(data) {
            self.session.check_input(buffer, data.len() as u64)?;
        }
        for (buffer, len) in lane.outputs.iter().zip(&job.results) {
            self.session.check_output(buffer, *len as u64)?;
        }
        // The Shield is still at the previous epochs: it raises them when nothing runs, because
        // raising closes chunks that are being written.
        let epochs: Vec<_> = lane
            .regions()
            .map(|region| (region.id, self.session.unused_epoch(region.id)))
            .collect();
        for ((buffer, data), (_, epoch)) in lane.inputs.iter().zip(data).zip(&epochs) {
            self.session.upload_at(buffer, *epoch, data)?;
        }
        self.wait()?;
        if let Some((_, statement)) = &self.done {
            judge(statement.shield(), u32::MAX)?;
        }
        if let Err(error) = self.launch(&epochs, &job) {
            self.over = true;
            return Err(error);
        }
        let number = self.next;
        self.runs = Some(Launched { number, job, request: self.session.requests() });
        self.next += 1;
        Ok(number)
    }

    /// Returns the results of the batch before the running one, or `None` if they were taken or
    /// there is no such batch.
    ///
    /// # Errors
    /// As [`Session::open`]. The results are not lost: call this again, or [`Ring::discard`].
    pub fn results(&mut self) -> Result<Option<Batch>, SdkError> {
        let Some((launched, statement)) = &self.done else { return Ok(None) };
        let Launched { number, job, request } = launched;
        let lane = &self.lanes[(number % self.lanes.len() as u64) as usize];
        let opened = lane
            .outputs
            .iter()
            .zip(&job.results)
            .map(|(buffer, len)| {
                self.session.open_since(buffer, statement, *len, job.policy, *request)
            })
            .collect::<Result<_, _>>()?;
        let batch = Batch { number: *number, outputs: opened };
        self.done = None;
        Ok(Some(batch))
    }

    /// Discards the results that [`Ring::results`] would return; returns the number of their batch.
    pub fn discard(&mut self) -> Option<u64> {
        self.done.take().map(|(launched, _)| launched.number)
    }

    /// Returns results that have not been taken yet, those of the earliest batch first; waits for
    /// the last batch if only that is left. Returns `None` when there are no more.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`], [`SdkError::WaitEnded`], and as [`Session::open`]: this may be
    /// called again.
    pub fn finish(&mut self) -> Result<Option<Batch>, SdkError> {
        if self.done.is_none() {
            self.wait()?;
        }
        self.results()
    }

    fn lane(&self, number: u64) -> &Lane {
        &self.lanes[(number % self.lanes.len() as u64) as usize]
    }

    /// Waits for the running batch, if there is one.
    fn wait(&mut self) -> Result<(), SdkError> {
        let Some(launched) = &self.runs else { return Ok(()) };
        let ended = self.session.finish(launched.job.done);
        let statement = self.session.or_why_stopped(ended)?;
        self.done = self.runs.take().map(|launched| (launched, statement));
        Ok(())
    }

    fn launch(&mut self, epochs: &[(u8, u64)], job: &Job) -> Result<(), SdkError> {
        for (region, epoch) in epochs {
            self.session.raise_epoch(*region, *epoch)?;
        }
        self.session.launch(&job.registers, job.start)
    }
}
