//! A stream of batches through regions that take turns: while the accelerator works on one batch, the next is sealed and uploaded.

use shef_proto::channel::Statement;
use shef_proto::config::Region;
use shef_seal::{OpenPolicy, Opened};

use crate::{InputBuffer, Keyed, OutputBuffer, SdkError, Session, judge};

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
        self.inputs.iter().map(InputBuffer::region).chain(self.outputs.iter().map(OutputBuffer::region))
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
}

/// The results of a batch.
pub struct Batch {
    /// Number of the batch, from 0 on.
    pub number: u64,
    /// What opened of each output of the lane.
    pub outputs: Vec<Opened>,
}

/// Lanes that take turns, so that sealing and upload of a batch, and download and opening of the results of the one before the last, go on while the
/// accelerator works. Two lanes are enough for that.
///
/// Every batch goes into its lane under epochs of its own, which the ring chooses; results come in the order of the batches, each exactly
/// once, under the statement that was read when its batch was done. The ring has the session to itself until it is dropped; what runs
/// then goes on, and its results do not open but under a new statement.
pub struct Ring<'s, 'h> {
    session: &'s mut Session<'h, Keyed>,
    lanes: Vec<Lane>,
    policy: OpenPolicy,
    /// Number of the next batch.
    next: u64,
    /// The batch that was launched last and not waited for.
    runs: Option<Launched>,
    /// The batch before it, whose results did not come yet.
    done: Option<(Launched, Statement)>,
    /// A launch failed.
    over: bool,
}

struct Launched {
    number: u64,
    done: (u32, u32),
    results: Vec<usize>,
    /// Number of the request that launched it.
    request: u64,
}

impl<'h> Session<'h, Keyed> {
    /// A ring of lanes, whose results open under `policy`.
    ///
    /// # Errors
    /// [`SdkError::Lanes`] where there are less than two lanes, two have a region in common, or one is not shaped like the others.
    pub fn ring(&mut self, lanes: impl Into<Vec<Lane>>, policy: OpenPolicy) -> Result<Ring<'_, 'h>, SdkError> {
        let lanes = lanes.into();
        check(&lanes)?;
        Ok(Ring { session: self, lanes, policy, next: 0, runs: None, done: None, over: false })
    }
}

fn check(lanes: &[Lane]) -> Result<(), SdkError> {
    let error = |what, found: String, expected: String| Err(SdkError::Lanes { what, found, expected });
    let [first, others @ ..] = lanes else { return error("lanes", "0".into(), "2 or more".into()) };
    if others.is_empty() {
        return error("lanes", "1".into(), "2 or more".into());
    }
    let mut seen = Vec::new();
    for lane in lanes {
        let count = |lane: &Lane| format!("{} inputs and {} outputs", lane.inputs.len(), lane.outputs.len());
        if (lane.inputs.len(), lane.outputs.len()) != (first.inputs.len(), first.outputs.len()) {
            return error("buffers of a lane", count(lane), count(first));
        }
        for (region, like) in lane.regions().zip(first.regions()) {
            let shape = |r: &Region| format!("{:?} of {} bytes in chunks of {}", r.name, r.size, r.chunk);
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
    /// Seals and uploads a batch, `data` for each input of its lane; then waits for the batch before, launches this one, and brings the
    /// results of the batch before while this one runs. `job` says what to do in the lane. The first batch has none before.
    ///
    /// # Errors
    /// Those of [`Session::upload`] and [`SdkError::Lanes`], [`SdkError::NotFinished`]: nothing was launched, and the batch can be pushed again.
    /// Those of a launch, after which the ring is over: [`Ring::finish`] has the results of the batch before. Those of [`Session::open`] for
    /// the results of the batch before, which are lost; the ring goes on where the Shield does.
    pub fn push(&mut self, data: &[&[u8]], job: impl FnOnce(&Lane) -> Job) -> Result<Option<Batch>, SdkError> {
        if self.over {
            return Err(SdkError::RingOver { number: self.next });
        }
        let lane = self.lane(self.next).clone();
        let job = job(&lane);
        for (what, found, expected) in
            [("data for inputs", data.len(), lane.inputs.len()), ("results of outputs", job.results.len(), lane.outputs.len())]
        {
            if found != expected {
                return Err(SdkError::Lanes { what, found: found.to_string(), expected: expected.to_string() });
            }
        }
        // The Shield is still at the epochs of before: it raises them when nothing runs, because that closes chunks that are being written.
        let epochs: Vec<_> = lane.regions().map(|region| (region.id, self.session.unused_epoch(region.id))).collect();
        for ((buffer, data), (_, epoch)) in lane.inputs.iter().zip(data).zip(&epochs) {
            self.session.upload_at(buffer, *epoch, data)?;
        }
        self.wait()?;
        if let Err(error) = self.launch(&epochs, &job) {
            self.over = true;
            return Err(error);
        }
        self.runs = Some(Launched { number: self.next, done: job.done, results: job.results, request: self.session.requests() });
        self.next += 1;
        self.open()
    }

    /// Waits for the last batch and brings its results.
    ///
    /// # Errors
    /// [`SdkError::NotFinished`], and those of [`Session::open`].
    pub fn finish(mut self) -> Result<Option<Batch>, SdkError> {
        self.wait()?;
        self.open()
    }

    fn lane(&self, number: u64) -> &Lane {
        &self.lanes[(number % self.lanes.len() as u64) as usize]
    }

    /// Waits for the batch that runs, if one does.
    fn wait(&mut self) -> Result<(), SdkError> {
        let Some(launched) = self.runs.take() else { return Ok(()) };
        let ended = self.session.finish(launched.done);
        match self.session.or_why_stopped(ended) {
            Ok(statement) => {
                judge(statement.shield(), self.policy.refusals)?;
                self.done = Some((launched, statement));
                Ok(())
            }
            Err(error) => {
                self.runs = Some(launched);
                Err(error)
            }
        }
    }

    fn launch(&mut self, epochs: &[(u8, u64)], job: &Job) -> Result<(), SdkError> {
        for (region, epoch) in epochs {
            self.session.raise_epoch(*region, *epoch)?;
        }
        self.session.launch(&job.registers, job.start)
    }

    /// Brings the results of the batch that is done, if one is.
    fn open(&mut self) -> Result<Option<Batch>, SdkError> {
        let Some((launched, statement)) = self.done.take() else { return Ok(None) };
        let Launched { number, results, request, .. } = launched;
        let outputs = self.lane(number).outputs.clone();
        let opened =
            outputs.iter().zip(results).map(|(buffer, len)| self.session.open_since(buffer, &statement, len, self.policy, request));
        Ok(Some(Batch { number, outputs: opened.collect::<Result<_, _>>()? }))
    }
}
