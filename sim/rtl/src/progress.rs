//! Progress of an accelerator: the last bursts of each of its ports, and who waits for whom.
//!
//! It follows the handshakes that a simulation shell shows (`SHEF_SEEN_PORTS`), and only counts: it
//! changes no cycle of the design.

use crate::check::{CheckedBurst, Fields};
use crate::{Port, Sim};
pub use shef_device::progress::{FollowedBurst, Party, PortProgress, Progress, StallWatch, Wait};
use std::collections::VecDeque;

/// Complete bursts of a port and direction that are remembered.
const KEPT: usize = 4;

/// The channels, in the order of their bits in the shell's `flags`: VALID of channel k is bit 2k,
/// READY the next.
const CHANNELS: [&str; 5] = ["AR", "R", "AW", "W", "B"];
pub(crate) const AR: usize = 0;
pub(crate) const R: usize = 1;
pub(crate) const AW: usize = 2;
pub(crate) const W: usize = 3;
pub(crate) const B: usize = 4;
/// VALID of all channels.
const VALID: u64 = 0x155;
/// RLAST.
const R_LAST: u64 = 1 << 10;
/// The accelerator is not in reset.
pub(crate) const RST_N: u64 = 1 << 11;
/// Bits of `flags`.
const FLAGS: u32 = 12;

/// One direction of a port.
#[derive(Default)]
struct Direction {
    /// Bursts so far.
    begun: u32,
    /// Bursts in flight, oldest first.
    open: VecDeque<FollowedBurst>,
    /// The last complete bursts.
    closed: VecDeque<FollowedBurst>,
}

impl Direction {
    fn begin(&mut self, burst: CheckedBurst, now: u64) {
        self.begun = self.begun.wrapping_add(1);
        self.open.push_back(FollowedBurst { burst, beats: 0, last: now, complete: false });
    }

    /// The oldest burst in flight with this id.
    fn of_id(&self, id: u64) -> Option<usize> {
        self.open.iter().position(|open| u64::from(open.burst.id) == id)
    }

    /// The oldest burst in flight whose data are not all there, or are.
    fn with_data(&self, whole: bool) -> Option<&FollowedBurst> {
        self.open.iter().find(|open| (open.beats == open.burst.beats) == whole)
    }

    fn finish(&mut self, index: usize, now: u64) {
        if let Some(burst) = self.open.remove(index) {
            self.closed.push_back(FollowedBurst { last: now, complete: true, ..burst });
        }
        if self.closed.len() > KEPT {
            self.closed.pop_front();
        }
    }
}

/// Follows one port.
pub(crate) struct Follower {
    name: String,
    /// The side that requests.
    master: Party,
    /// The side that responds.
    slave: Party,
    flags: Port,
    /// RID and BID; registers have none.
    ids: Option<[Port; 2]>,
    /// AR and AW.
    requests: [Port; 2],
    /// `flags` of the cycle before.
    before: u64,
    /// Of each channel, the cycle of the present offer.
    offers: [Option<u64>; 5],
    /// Of R and B, the number of the burst that is offered.
    answers: [u32; 2],
    reads: Direction,
    writes: Direction,
    /// W beats that came before their AW, and the cycle of the last.
    early: (u16, u64),
    last: Option<u64>,
}

impl Follower {
    /// Binds to the ports `<prefix>_flags` and so on, if there are such.
    fn find(sim: &Sim, prefix: &str, name: String, [master, slave]: [Party; 2]) -> Option<Self> {
        let port = |signal: &str| sim.find(&format!("{prefix}_{signal}"));
        Some(Self {
            name,
            master,
            slave,
            flags: port("flags").filter(|port| port.bits() == FLAGS)?,
            ids: port("rid").zip(port("bid")).map(|(rid, bid)| [rid, bid]),
            requests: [port("ar")?, port("aw")?],
            before: 0,
            offers: [None; 5],
            answers: [0; 2],
            reads: Direction::default(),
            writes: Direction::default(),
            early: (0, 0),
            last: None,
        })
    }

    fn forget(&mut self) {
        self.before = 0;
        self.offers = [None; 5];
        self.reads.open.clear();
        self.writes.open.clear();
        self.early = (0, 0);
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The flags of this cycle.
    #[inline]
    pub(crate) fn flags(&self, sim: &Sim) -> u64 {
        sim.get(self.flags)
    }

    /// AR and AW.
    pub(crate) fn requests(&self) -> [Port; 2] {
        self.requests
    }

    /// AWADDR of registers.
    pub(crate) fn addr(&self, sim: &Sim) -> u64 {
        sim.get(self.requests[1])
    }

    /// Whether no read is in flight or offered.
    pub(crate) fn is_read_free(&self) -> bool {
        self.reads.open.is_empty() && self.offers[AR].is_none()
    }

    /// Bursts in flight before this cycle, oldest first.
    pub(crate) fn open(&self, write: bool) -> &VecDeque<FollowedBurst> {
        if write { &self.writes.open } else { &self.reads.open }
    }

    /// The burst in flight before this cycle that R or B answers.
    pub(crate) fn answered(&self, sim: &Sim, channel: usize) -> Option<&FollowedBurst> {
        let direction = if channel == B { &self.writes } else { &self.reads };
        direction.of_id(self.id(sim, channel)).and_then(|at| direction.open.get(at))
    }

    /// The burst of a request in this cycle.
    #[expect(clippy::cast_possible_truncation, reason = "fields of known width")]
    pub(crate) fn request(&self, sim: &Sim, write: bool) -> CheckedBurst {
        let number = if write { self.writes.begun } else { self.reads.begun };
        let port = self.requests[usize::from(write)];
        if self.ids.is_none() {
            let addr = sim.get(port);
            return CheckedBurst { write, number, id: 0, addr, beats: 1, size: 4, kind: 1 };
        }
        let mut f = Fields { bytes: sim.raw(port), at: 0 };
        let (kind, size, len) = (f.next(2) as u8, f.next(3), f.next(8) as u16);
        let (addr, id) = (f.next(64), f.next(8) as u8);
        CheckedBurst { write, number, id, addr, beats: len + 1, size: 1 << size, kind }
    }

    fn id(&self, sim: &Sim, channel: usize) -> u64 {
        self.ids.map_or(0, |ids| sim.get(ids[usize::from(channel == B)]))
    }

    #[inline]
    fn sample(&mut self, sim: &Sim) {
        let flags = sim.get(self.flags);
        let transfers = flags & flags >> 1 & VALID;
        // Without a transfer, nothing changes while the flags do not.
        if transfers != 0 || flags != self.before {
            self.before = flags;
            self.follow(sim, flags, transfers);
        }
    }

    fn follow(&mut self, sim: &Sim, flags: u64, transfers: u64) {
        if flags & RST_N == 0 {
            return self.forget();
        }
        let now = sim.cycles();
        // Responses first: they answer requests and beats of earlier cycles.
        for channel in [R, B, AR, AW, W] {
            if flags >> (2 * channel) & 1 == 0 {
                self.offers[channel] = None;
                continue;
            }
            if self.offers[channel].is_none() {
                self.offers[channel] = Some(now);
                self.note_answer(sim, channel);
            }
            if transfers >> (2 * channel) & 1 == 1 {
                self.transfer(sim, channel, flags & R_LAST != 0, now);
                self.offers[channel] = None;
                self.last = Some(now);
            }
        }
    }

    /// Notes the burst of a response that is offered.
    fn note_answer(&mut self, sim: &Sim, channel: usize) {
        let direction = match channel {
            R => &self.reads,
            B => &self.writes,
            _ => return,
        };
        let open = direction.of_id(self.id(sim, channel)).and_then(|at| direction.open.get(at));
        self.answers[usize::from(channel == B)] = open.map_or(0, |open| open.burst.number);
    }

    fn transfer(&mut self, sim: &Sim, channel: usize, last: bool, now: u64) {
        match channel {
            AR => self.reads.begin(self.request(sim, false), now),
            AW => {
                let burst = self.request(sim, true);
                let beats = burst.beats.min(self.early.0);
                self.early.0 -= beats;
                self.writes.begin(burst, now);
                if let Some(open) = self.writes.open.back_mut() {
                    open.beats = beats;
                }
            }
            W => match self.writes.open.iter_mut().find(|open| open.beats < open.burst.beats) {
                Some(open) => (open.beats, open.last) = (open.beats + 1, now),
                None => self.early = (self.early.0.saturating_add(1), now),
            },
            R => {
                if let Some(at) = self.reads.of_id(self.id(sim, R)) {
                    let open = &mut self.reads.open[at];
                    (open.beats, open.last) = (open.beats + 1, now);
                    if last || open.beats == open.burst.beats {
                        self.reads.finish(at, now);
                    }
                }
            }
            _ => {
                if let Some(at) = self.writes.of_id(self.id(sim, B)) {
                    self.writes.finish(at, now);
                }
            }
        }
    }

    /// What is offered and not taken, or due and not offered.
    fn waits(&self) -> Vec<Wait> {
        let unsent = self.writes.with_data(false);
        let next = |direction: &Direction| direction.begun;
        let due = |open: Option<&FollowedBurst>| open.map(|open| (open.burst.number, open.last));
        (0..CHANNELS.len())
            .filter_map(|channel| {
                let offer = self.offers[channel];
                let (burst, since) = match (channel, offer) {
                    (AR, Some(since)) => (next(&self.reads), since),
                    (R, Some(since)) => (self.answers[0], since),
                    (R, None) => due(self.reads.open.front())?,
                    (AW, Some(since)) => (next(&self.writes), since),
                    (AW, None) if self.early.0 > 0 => (next(&self.writes), self.early.1),
                    (W, Some(since)) => {
                        (unsent.map_or(next(&self.writes), |open| open.burst.number), since)
                    }
                    (W, None) => due(unsent)?,
                    (B, Some(since)) => (self.answers[1], since),
                    (B, None) => due(self.writes.with_data(true))?,
                    _ => return None,
                };
                let offered = offer.is_some();
                // With VALID high the sender waits; with VALID low the receiver waits.
                let [sender, receiver] = match channel {
                    R | B => [self.slave, self.master],
                    _ => [self.master, self.slave],
                };
                let (waits, waits_for) =
                    if offered { (sender, receiver) } else { (receiver, sender) };
                let channel = CHANNELS[channel].to_owned();
                Some(Wait { channel, burst, offered, since, waits, waits_for })
            })
            .collect()
    }

    fn progress(&self) -> PortProgress {
        let bursts = [&self.reads, &self.writes]
            .into_iter()
            .flat_map(|direction| direction.closed.iter().chain(&direction.open));
        PortProgress {
            port: self.name.clone(),
            last: self.last,
            bursts: bursts.cloned().collect(),
            waits: self.waits(),
        }
    }
}

/// Follows all ports of an accelerator in a simulation shell. [`Follow::sample`] must run in every
/// cycle.
pub struct Follow(Vec<Follower>);

impl Follow {
    /// Binds to the ports of a shell; it follows none if the top module has none.
    #[must_use]
    pub fn new(sim: &Sim) -> Self {
        let memory = [Party::Accelerator, Party::Memory];
        let ports = (0..4)
            .map_while(|p| Follower::find(sim, &format!("seen{p}"), format!("port {p}"), memory));
        let registers = Follower::find(
            sim,
            "seenr",
            Progress::REGISTERS.to_owned(),
            [Party::Host, Party::Accelerator],
        );
        Self(ports.chain(registers).collect())
    }

    /// The memory ports.
    pub(crate) fn memory(&self) -> impl Iterator<Item = &Follower> {
        self.0.iter().filter(|port| port.name != Progress::REGISTERS)
    }

    /// The registers.
    pub(crate) fn registers(&self) -> Option<&Follower> {
        self.0.iter().find(|port| port.name == Progress::REGISTERS)
    }

    /// Receives the transfers of a settled cycle.
    #[inline]
    pub fn sample(&mut self, sim: &Sim) {
        for port in &mut self.0 {
            port.sample(sim);
        }
    }

    /// Forgets what is in flight.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(Follower::forget);
    }

    /// The progress so far.
    #[must_use]
    pub fn progress(&self, sim: &Sim) -> Progress {
        Progress { cycle: sim.cycles(), ports: self.0.iter().map(Follower::progress).collect() }
    }
}
