//! One attempt: honest traffic, one hostile act on one transaction, and the verdict.

mod bus;
mod channel;
mod forge;
mod judge;
mod memory;
mod next_session;
mod no_session;
mod transactions;
mod watch;

use super::recorded::RecordedChannel;
use super::session::Session;
use super::{Kind, State};
use crate::{BenchError, Result};
use shef_model::SparseMemory;
use shef_proto::channel::{ShieldAnswer, ShieldRequest};
use shef_proto::config::{Mode, OnFault, Region};
use shef_rtl::AxiMemoryConfig;
use shef_rtl::agent::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use watch::Watch;

/// The outcome of an attempt.
#[derive(Debug)]
pub struct Verdict {
    /// The Shield's state at the time of the act.
    pub state: State,
    /// Whether a session ended, the accelerator was reset and another session was keyed.
    pub spanning: bool,
    /// The owner's commands that were part of the act.
    pub commands: Vec<&'static str>,
    /// Whether the Shield, the owner or the channel refused the forgery.
    pub detected: bool,
    /// Transactions of all kinds.
    pub transactions: u64,
    /// Transactions that no act touched and that had to succeed.
    pub honest: u64,
    /// Words (64 bytes) delivered with OKAY that differ from the expected ones, non-zero words
    /// without OKAY, plaintext or writes out of range on the memory bus, broken bus rules.
    pub delivered_wrong: Vec<String>,
    /// A forged message that ran, a wrong result that opened, an illegal burst that was served.
    pub accepted_wrong: Vec<String>,
    /// Honest transactions that did not succeed.
    pub refused_wrong: Vec<String>,
    /// Responses that never came.
    pub hangs: Vec<String>,
    /// Description of the act.
    pub act: String,
}

impl Verdict {
    fn new(state: State) -> Self {
        Self {
            state,
            spanning: false,
            commands: Vec::new(),
            detected: false,
            transactions: 0,
            honest: 0,
            delivered_wrong: Vec::new(),
            accepted_wrong: Vec::new(),
            refused_wrong: Vec::new(),
            hangs: Vec::new(),
            act: String::new(),
        }
    }

    /// Everything that went wrong, by name.
    pub fn wrong(&self) -> impl Iterator<Item = (&'static str, &String)> {
        [
            ("delivered wrong", &self.delivered_wrong),
            ("accepted wrong", &self.accepted_wrong),
            ("refused wrong", &self.refused_wrong),
            ("hang", &self.hangs),
        ]
        .into_iter()
        .flat_map(|(name, list)| list.iter().map(move |l| (name, l)))
    }
}

/// The state of one attempt.
pub struct Trial<'a> {
    s: &'a mut Session,
    rng: Rng,
    kind: Kind,
    /// Whether the attempt continues into a session that it keys.
    on: bool,
    v: Verdict,
    channel: RecordedChannel,
    /// Chunks that this attempt wrote.
    fresh: BTreeMap<(u8, u64), Vec<u8>>,
    /// Chunks that honest traffic does not touch.
    avoid: Vec<(u8, Range<u64>)>,
    /// Epochs that this attempt advanced.
    epochs: BTreeMap<u8, u64>,
    /// Bursts that the Shield had to refuse.
    refusals: u32,
    /// Regions that a fault froze.
    frozen: BTreeSet<u8>,
    /// Memory mixes up its responses, so data of an unprotected region is not compared.
    mixed_up: bool,
    /// Memory at an earlier time.
    old: SparseMemory,
    /// Watches the memory bus.
    watch: Watch,
    stalls: Option<u64>,
}

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> Option<T> {
    from.get(usize::try_from(rng.below(from.len() as u64)).ok()?).cloned()
}

impl<'a> Trial<'a> {
    /// An attempt on a configuration, from the snapshot of this state.
    pub fn new(
        s: &'a mut Session,
        kind: Kind,
        state: State,
        on: bool,
        mut rng: Rng,
    ) -> Result<Self> {
        let memory = timing(&mut rng);
        let stalls = (!rng.one_in(3)).then(|| rng.next_u64());
        let (snapshot, wire) = match state {
            State::Empty => (&s.empty, &Vec::new()),
            State::Fresh => (&s.fresh.snapshot, &Vec::new()),
            State::Keyed => (&s.snapshot, &s.wire),
            State::Closed => (&s.closed.0, &s.closed.1),
        };
        s.bench.restore(snapshot, memory, stalls)?;
        s.bench.master().rude = rng.one_in(3);
        let channel = RecordedChannel::replay(s.keys(), wire)?;
        let watch = Watch::new(s);
        let old = s.old.clone();
        let trial = Self {
            s,
            rng,
            kind,
            on,
            v: Verdict::new(state),
            channel,
            fresh: BTreeMap::new(),
            avoid: Vec::new(),
            epochs: BTreeMap::new(),
            refusals: 0,
            frozen: BTreeSet::new(),
            mixed_up: false,
            old,
            watch,
            stalls,
        };
        trial.watch.bind(&mut trial.s.bench);
        Ok(trial)
    }

    /// Runs the attempt.
    pub fn run(mut self) -> Verdict {
        let outcome = match self.kind {
            _ if self.v.state != State::Keyed => self.without_session(),
            _ if self.on => self.two_sessions(),
            Kind::Flip | Kind::Swap | Kind::Replay | Kind::Splice | Kind::Zero | Kind::Truncate => {
                self.forgery()
            }
            Kind::Delay => self.delay(),
            Kind::Reorder => self.reorder(),
            Kind::Error | Kind::Silence => self.failing(),
            Kind::Reset => self.reset(),
            Kind::Flood => self.flood(),
            Kind::Public => self.public(),
        };
        match outcome {
            Ok(()) => {}
            Err(BenchError::Rtl(e)) if matches!(e, shef_rtl::Error::Hang { .. }) => {
                self.v.hangs.push(format!("{e}: {}", self.s.bench.channels()));
            }
            Err(BenchError::Wait { what, status }) => {
                self.v.hangs.push(format!("{what}, status {status:#x}"));
            }
            Err(BenchError::Bus(e)) => self.v.delivered_wrong.push(e),
            Err(e) => self.v.refused_wrong.push(e.to_string()),
        }
        self.v.delivered_wrong.extend(self.watch.seen());
        self.v
    }

    /// A random forgery of a random target.
    fn forgery(&mut self) -> Result<()> {
        match self.below(1024) {
            // The hardware takes a hundred times as long to open a Load Key as for anything else
            // here.
            0 => self.forged_load_key(),
            1..700 if self.kind == Kind::Truncate && self.rng.one_in(2) => {
                self.broken_burst(&[0, 1, 2])
            }
            1..50 if self.kind == Kind::Replay => self.stale_epoch(),
            1..700 => self.forged_chunk(),
            700..840 => self.forged_result(),
            840..960 => self.forged_request(),
            _ => self.forged_answer(),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn regions(&self, which: impl Fn(Mode) -> bool) -> Vec<Region> {
        self.s.config.regions().iter().filter(|r| which(r.mode)).cloned().collect()
    }

    fn region(&self, id: u8) -> Region {
        self.s.config.regions()[usize::from(id)].clone()
    }

    /// Whether a fault of one region leaves the others running.
    fn by_region(&self) -> bool {
        self.s.config.on_fault() == OnFault::Region
    }

    /// Sends an honest request that must succeed.
    fn must(&mut self, request: &ShieldRequest) -> Result<ShieldAnswer> {
        self.v.transactions += 1;
        self.v.honest += 1;
        self.channel.must(&mut self.s.bench, request)
    }
}

/// Random memory timing: from fast and regular to slow and irregular.
fn timing(rng: &mut Rng) -> AxiMemoryConfig {
    let stalls = (!rng.one_in(3)).then(|| rng.next_u64());
    AxiMemoryConfig {
        read_latency: 1 + rng.below(60),
        write_latency: 1 + rng.below(40),
        jitter: 0,
        outstanding: if rng.one_in(4) { 2 + rng.below(6) as usize } else { 64 },
        stalls,
        reorder: stalls.is_some() && rng.one_in(2),
    }
}
