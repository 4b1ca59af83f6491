//! A stream of batches through regions that take turns: while the accelerator works on one batch,
//! the next is sealed and uploaded.

use shef_proto::channel::Statement;
use shef_proto::config::Region;
use shef_seal::{OpenPolicy, Opened};

use crate::judge::judge;
use crate::{InputBuffer, Keyed, OutputBuffer, SdkError, Session};

/// The buffers of one batch.
#[derive(Debug, Clone)]
pub struct Lane {
    /// What goes in.
    pub inputs: Vec<InputBuffer>,
    /// What comes out.
    pub outputs: Vec<OutputBuffer>,
}

impl Lane {
    /// A lane of these buffers.
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

/// What the accelerator does with a batch, as in [`Session::run`].
#[derive(Debug, Clone)]
pub struct Job {
    /// Registers to write, in this order.
    pub registers: Vec<(u32, u32)>,
    /// The register that starts it, and the value.
    pub start: (u32, u32),
    /// The register that says that it is done, and the bits of which one is set then.
    pub done: (u32, u32),
    /// Bytes of results in each output of the lane.
    pub results: Vec<usize>,
    /// Under what they open. Refusals that it tolerates are those of this launch and of earlier
    /// ones.
    pub policy: OpenPolicy,
}

/// The results of a batch.
pub struct Batch {
    /// Number of the batch, from 0 on.
    pub number: u64,
    /// What opened of each output of the lane.
    pub outputs: Vec<Opened>,
}

/// Lanes that take turns, so that sealing and upload of a batch, and download and opening of the
/// results of the one before the last, go on while the accelerator works. Two lanes are enough for
/// that.
///
/// Every batch goes into its lane under epochs of its own, which the ring chooses. [`Ring::push`]
/// launches a batch, and says nothing else; [`Ring::results`] brings the results of the batch
/// before it, in the order of the batches, each once, under the statement that was read when its
/// batch was done. The ring has the session to itself until it is dropped; what runs then goes on,
/// and its results do not open but under a new statement.
pub struct Ring<'s, 'h> {
    session: &'s mut Session<'h, Keyed>,
    lanes: Vec<Lane>,
    /// Number of the next batch.
    next: u64,
    /// The batch that was launched last and not waited for.
    runs: Option<Launched>,
    /// The batch before it, whose results were not taken yet.
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
    /// [`SdkError::Lanes`] where there are less than two lanes, two have a region in common, or one
    /// is not shaped like the others; [`SdkError::OtherSession`] where a buffer is not of this
    /// session.
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
    /// Seals and uploads a batch, `data` for each input of its lane; then waits for the batch
    /// before, and launches this one: its number, from 0 on. `job` says what to do in the lane.
    /// [`Ring::results`] brings the results of the batch before while this one runs.
    ///
    /// # Errors
    /// [`SdkError::ResultsWait`] where those of an earlier batch were not taken. Those of
    /// [`Session::upload`], [`SdkError::Lanes`], [`SdkError::TooLong`], [`SdkError::NotFinished`],
    /// [`SdkError::WaitEnded`], [`SdkError::Faulted`]: this batch was not launched, and can be
    /// pushed again unless the Shield has stopped. Those of a launch, after which the ring is over:
    /// nobody knows whether this batch runs, and [`Ring::results`] has the results of the batch
    /// before.
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
        // What cannot be opened afterwards is not begun.
        for (buffer, data) in lane.inputs.iter().zip(data) {
            self.session.check_input(buffer, data.len() as u64)?;
        }
        for (buffer, len) in lane.outputs.iter().zip(&job.results) {
            self.session.check_output(buffer, *len as u64)?;
        }
        // The Shield is still at the epochs of before: it raises them when nothing runs, because
        // that closes chunks that are being written.
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

    /// Brings the results of the batch before the one that runs: none where they were taken, or
    /// there was no such batch.
    ///
    /// # Errors
    /// Those of [`Session::open`]. The results are not lost: this may be called again, or
    /// [`Ring::discard`].
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

    /// Gives up the results that [`Ring::results`] would bring: the number of their batch.
    pub fn discard(&mut self) -> Option<u64> {
        self.done.take().map(|(launched, _)| launched.number)
    }

    /// Brings results that were not taken yet, of the earliest batch first; waits for the last
    /// batch where only that is left. None where there is no more.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`], [`SdkError::WaitEnded`], and those of [`Session::open`]: this may
    /// be called again.
    pub fn finish(&mut self) -> Result<Option<Batch>, SdkError> {
        if self.done.is_none() {
            self.wait()?;
        }
        self.results()
    }

    fn lane(&self, number: u64) -> &Lane {
        &self.lanes[(number % self.lanes.len() as u64) as usize]
    }

    /// Waits for the batch that runs, if one does.
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
