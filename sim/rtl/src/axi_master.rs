//! An AXI4 master in place of the accelerator: bursts from a list, several outstanding, random
//! timing, and a check that every answer is owed and correct.

use crate::agent::{Agent, Stalls};
use crate::axi_memory::Ports;
use crate::burst::{AxiBurst, BEAT};
use crate::{Port, Result, Sim};
use std::collections::VecDeque;
use std::ops::Range;

/// A burst to issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxiOp {
    /// Reads `beats` beats, starting at `addr`.
    Read {
        /// AXI id.
        id: u8,
        /// Byte address.
        addr: u64,
        /// 1 to 256.
        beats: u32,
    },
    /// Writes `data` (a multiple of 64 bytes) to `addr`.
    Write {
        /// AXI id.
        id: u8,
        /// Byte address.
        addr: u64,
        /// Beats in order.
        data: Vec<u8>,
        /// Strobes per beat; empty: all bytes.
        strobes: Vec<u64>,
    },
    /// Any request: narrow, unaligned, or to be refused.
    Odd {
        /// AXI id.
        id: u8,
        /// The request.
        burst: AxiBurst,
        /// Of a write, 64 bytes for each beat; empty: zeros.
        data: Vec<u8>,
        /// Strobes per beat; empty: all bytes.
        strobes: Vec<u64>,
    },
}

impl AxiOp {
    /// A request without data: a write writes zeros.
    #[must_use]
    pub fn odd(id: u8, burst: AxiBurst) -> Self {
        Self::Odd { id, burst, data: Vec::new(), strobes: Vec::new() }
    }

    fn addr(&self) -> u64 {
        match self {
            Self::Read { addr, .. } | Self::Write { addr, .. } => *addr,
            Self::Odd { burst, .. } => burst.addr,
        }
    }

    /// Whether it writes.
    #[must_use]
    pub fn is_write(&self) -> bool {
        match self {
            Self::Read { .. } => false,
            Self::Write { .. } => true,
            Self::Odd { burst, .. } => burst.write,
        }
    }

    fn id(&self) -> u8 {
        match self {
            Self::Read { id, .. } | Self::Write { id, .. } | Self::Odd { id, .. } => *id,
        }
    }

    /// Its beats.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most 256 beats")]
    pub fn beats(&self) -> u32 {
        match self {
            Self::Read { beats, .. } => *beats,
            Self::Odd { burst, .. } => burst.beats,
            Self::Write { data, .. } => (data.len() / BEAT) as u32,
        }
    }
}

/// A finished burst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxiDone {
    /// Number returned by [`AxiMaster::push`].
    pub tag: u64,
    /// The burst.
    pub op: AxiOp,
    /// Answers: one per beat of a read, one of a write.
    pub resp: Vec<u8>,
    /// Data of a read.
    pub data: Vec<u8>,
    /// Cycle in which the request was accepted.
    pub start: u64,
    /// Cycle of the last answer.
    pub end: u64,
    /// Whether a reset of the master dropped it: answers and data are those received until then.
    pub lost: bool,
}

impl AxiDone {
    /// Whether every answer is OKAY.
    #[must_use]
    pub fn okay(&self) -> bool {
        !self.lost && self.resp.iter().all(|r| *r == 0)
    }
}

struct Flight {
    tag: u64,
    op: AxiOp,
    resp: Vec<u8>,
    data: Vec<u8>,
    start: u64,
}

/// AXI4 master on the ports `<prefix>ar*` and so on of a design's slave port.
pub struct AxiMaster {
    ar: [Port; 7],
    aw: [Port; 7],
    w: [Port; 5],
    r: [Port; 6],
    b: [Port; 4],
    /// Most bursts that may be incomplete, with separate counts for reads and writes.
    pub outstanding: usize,
    /// Does not accept R or B.
    pub hold: [bool; 2],
    stalls: Stalls,
    queue: VecDeque<(u64, AxiOp)>,
    w_queue: VecDeque<([u8; BEAT], u64, bool)>,
    reads: Vec<Flight>,
    writes: Vec<Flight>,
    offered: [Option<(u64, AxiOp)>; 2],
    w_on: bool,
    w_bursts: u64,
    answers: u64,
    taken: [bool; 3],
    r_ready: bool,
    b_ready: bool,
    next_tag: u64,
    now: u64,
    done: VecDeque<AxiDone>,
    violations: Vec<String>,
}

impl AxiMaster {
    /// Binds to the ports with this prefix (for example `acc_`); a seed makes the timing random.
    ///
    /// # Errors
    /// When a port is missing or has another width.
    pub fn new(sim: &Sim, prefix: &str, stalls: Option<u64>) -> Result<Self> {
        let Ports { ar, aw, r, w, b, .. } = Ports::new(sim, prefix)?;
        Ok(Self {
            ar,
            aw,
            w,
            r,
            b,
            outstanding: 16,
            hold: [false; 2],
            stalls: stalls.map_or_else(Stalls::off, Stalls::seeded),
            queue: VecDeque::new(),
            w_queue: VecDeque::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            offered: [None, None],
            w_on: false,
            w_bursts: 0,
            answers: 0,
            taken: [false; 3],
            r_ready: false,
            b_ready: false,
            next_tag: 0,
            now: 0,
            done: VecDeque::new(),
            violations: Vec::new(),
        })
    }

    /// Adds a burst to the list; returns its number for [`AxiDone::tag`].
    pub fn push(&mut self, op: AxiOp) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        self.queue.push_back((tag, op));
        tag
    }

    /// Reads `beats` beats with id 0.
    pub fn read(&mut self, addr: u64, beats: u32) -> u64 {
        self.push(AxiOp::Read { id: 0, addr, beats })
    }

    /// Writes whole beats with id 0.
    pub fn write(&mut self, addr: u64, data: &[u8]) -> u64 {
        self.push(AxiOp::Write { id: 0, addr, data: data.to_vec(), strobes: Vec::new() })
    }

    /// Next finished burst.
    pub fn pop(&mut self) -> Option<AxiDone> {
        self.done.pop_front()
    }

    /// Whether all pushed bursts are complete.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.queue.is_empty()
            && self.offered.iter().all(Option::is_none)
            && self.reads.is_empty()
            && self.writes.is_empty()
            && self.w_queue.is_empty()
            && !self.w_on
    }

    /// Bursts not yet requested.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Protocol violations of the slave (the first 16).
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Runs until all pushed bursts are complete; returns them in the order of their answers.
    ///
    /// # Errors
    /// When that takes more than `limit` cycles.
    pub fn finish(
        &mut self,
        sim: &mut Sim,
        others: &mut [&mut dyn Agent],
        limit: u64,
    ) -> Result<Vec<AxiDone>> {
        for _ in 0..limit {
            if self.idle() {
                return Ok(self.done.drain(..).collect());
            }
            sim.settle();
            self.sample(sim);
            for a in others.iter_mut() {
                a.sample(sim);
            }
            sim.edge();
            self.drive(sim);
            for a in others.iter_mut() {
                a.drive(sim);
            }
        }
        Err(crate::Error::Hang { what: "bursts", cycles: limit })
    }

    fn violation(&mut self, what: String) {
        if self.violations.len() < 16 {
            self.violations.push(format!("cycle {}: {what}", self.now));
        }
    }

    fn complete(&mut self, f: Flight) {
        self.done.push_back(AxiDone {
            tag: f.tag,
            op: f.op,
            resp: f.resp,
            data: f.data,
            start: f.start,
            end: self.now,
            lost: false,
        });
    }

    /// Effect of a reset on a master: it withdraws all requests and expects no answers; every
    /// unfinished burst is lost.
    pub fn lose(&mut self) {
        let flights = self
            .reads
            .drain(..)
            .chain(self.writes.drain(..))
            .map(|f| (f.tag, f.op, f.resp, f.data, f.start));
        let asked = self.offered.iter_mut().filter_map(Option::take).chain(self.queue.drain(..));
        for (tag, op, resp, data, start) in
            flights.chain(asked.map(|(tag, op)| (tag, op, Vec::new(), Vec::new(), self.now)))
        {
            self.done.push_back(AxiDone { tag, op, resp, data, start, end: self.now, lost: true });
        }
        self.w_queue.clear();
        (self.w_on, self.w_bursts, self.answers, self.taken) = (false, 0, 0, [false; 3]);
    }

    fn offer(&mut self, sim: &mut Sim, write: bool) {
        let i = usize::from(write);
        let p = if write { self.aw } else { self.ar };
        if self.offered[i].is_none() {
            // The oldest of its direction; the order of the list holds only within a direction.
            let flights = if write { self.writes.len() } else { self.reads.len() };
            let next = self.queue.iter().position(|(_, o)| o.is_write() == write);
            let late = self.stalls.stalled(u32::from(write));
            if let (Some(at), false, true) = (next, late, flights < self.outstanding)
                && let Some((tag, op)) = self.queue.remove(at)
            {
                let (addr, size, burst) = match &op {
                    AxiOp::Read { addr, .. } | AxiOp::Write { addr, .. } => (*addr, 6, 1),
                    AxiOp::Odd { burst, .. } => (burst.addr, burst.size, burst.burst),
                };
                sim.set(p[2], u64::from(op.id()));
                sim.set(p[3], addr);
                sim.set(p[4], u64::from(op.beats()) - 1);
                sim.set(p[5], u64::from(size));
                sim.set(p[6], u64::from(burst));
                if write {
                    self.queue_w(&op);
                }
                self.offered[i] = Some((tag, op));
            }
        }
        sim.set(p[0], u64::from(self.offered[i].is_some()));
    }

    fn queue_w(&mut self, op: &AxiOp) {
        let n = op.beats() as usize;
        for k in 0..n {
            let mut d = [0; BEAT];
            let mut s = u64::MAX;
            if let AxiOp::Write { data, strobes, .. } | AxiOp::Odd { data, strobes, .. } = op {
                if let Some(beat) = data.chunks(BEAT).nth(k) {
                    d.copy_from_slice(beat);
                }
                s = strobes.get(k).copied().unwrap_or(u64::MAX);
            }
            self.w_queue.push_back((d, s, k + 1 == n));
        }
    }
}

impl Agent for AxiMaster {
    #[expect(clippy::cast_possible_truncation, reason = "ports of known width")]
    fn sample(&mut self, sim: &Sim) {
        self.now += 1;
        for (i, p) in [self.ar, self.aw].into_iter().enumerate() {
            if self.offered[i].is_some()
                && sim.get(p[1]) != 0
                && let Some((tag, op)) = self.offered[i].take()
            {
                let f = Flight { tag, op, resp: Vec::new(), data: Vec::new(), start: self.now };
                if i == 0 {
                    self.reads.push(f);
                } else {
                    self.writes.push(f);
                }
                self.taken[i] = true;
            }
        }
        if self.w_on && sim.get(self.w[1]) != 0 {
            self.taken[2] = true;
            self.w_bursts += sim.get(self.w[4]);
        }
        if self.r_ready && sim.get(self.r[0]) != 0 {
            let (id, resp, last) =
                (sim.get(self.r[2]) as u8, sim.get(self.r[4]) as u8, sim.get(self.r[5]) != 0);
            match self.reads.iter().position(|f| f.op.id() == id) {
                None => self.violation(format!("read beat of id {id} that is not owed")),
                Some(i) => {
                    let f = &mut self.reads[i];
                    f.resp.push(resp);
                    f.data.extend_from_slice(sim.raw(self.r[3]));
                    let (got, want) = (f.resp.len(), f.op.beats() as usize);
                    if last != (got == want) {
                        self.violation(format!(
                            "RLAST {} at beat {got} of {want}, id {id}",
                            u8::from(last)
                        ));
                    }
                    if got >= want {
                        let f = self.reads.remove(i);
                        self.complete(f);
                    }
                }
            }
        }
        if self.b_ready && sim.get(self.b[0]) != 0 {
            let (id, resp) = (sim.get(self.b[2]) as u8, sim.get(self.b[3]) as u8);
            self.answers += 1;
            if self.answers > self.w_bursts {
                self.violation(format!("write answer of id {id} before the data were taken"));
            }
            match self.writes.iter().position(|f| f.op.id() == id) {
                None => self.violation(format!("write answer of id {id} that is not owed")),
                Some(i) => {
                    let mut f = self.writes.remove(i);
                    f.resp.push(resp);
                    self.complete(f);
                }
            }
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        self.stalls.step();
        self.taken[0] = false;
        self.taken[1] = false;
        self.offer(sim, false);
        self.offer(sim, true);
        if std::mem::take(&mut self.taken[2]) {
            self.w_on = false;
        }
        if !self.w_on
            && !self.stalls.stalled(2)
            && let Some((d, s, last)) = self.w_queue.pop_front()
        {
            sim.raw_mut(self.w[2]).copy_from_slice(&d);
            sim.set(self.w[3], s);
            sim.set(self.w[4], u64::from(last));
            self.w_on = true;
        }
        sim.set(self.w[0], u64::from(self.w_on));
        self.r_ready = !self.stalls.stalled(3) && !self.hold[0];
        self.b_ready = !self.stalls.stalled(4) && !self.hold[1];
        sim.set(self.r[1], u64::from(self.r_ready));
        sim.set(self.b[1], u64::from(self.b_ready));
    }
}

/// Takes the place of an accelerator with all its ports `acc0_`, `acc1_`, ...: each burst goes out
/// on the port of its address.
///
/// If the top has `acc_rst_n`, a reset drops the bursts in flight ([`AxiDone::lost`]).
pub struct AxiMasters {
    masters: Vec<AxiMaster>,
    routes: Vec<(Range<u64>, usize)>,
    next_tag: u64,
    rst: Option<Port>,
    /// Drives requests in reset, too, like an accelerator whose outputs ignore reset: the Shield
    /// must block them.
    pub rude: bool,
    in_reset: bool,
    resets: u64,
}

impl AxiMasters {
    /// Binds to every accelerator port. `routes` maps address ranges to ports; all other bursts
    /// take the first port.
    ///
    /// # Errors
    /// When a port is missing or has another width.
    pub fn new(sim: &Sim, routes: &[(Range<u64>, usize)], stalls: Option<u64>) -> Result<Self> {
        let ports =
            (0..4).take_while(|p| *p == 0 || sim.find(&format!("acc{p}_arvalid")).is_some());
        let master = |p: u64| {
            AxiMaster::new(
                sim,
                &format!("acc{p}_"),
                stalls.map(|s| s.wrapping_add(p.wrapping_mul(0x51_7cc1))),
            )
        };
        Ok(Self {
            masters: ports.map(master).collect::<Result<_>>()?,
            routes: routes.to_vec(),
            next_tag: 0,
            rst: sim.find("acc_rst_n"),
            rude: false,
            in_reset: false,
            resets: 0,
        })
    }

    /// Replaces the masters by new ones, which request nothing and expect no answers: the ports
    /// fall silent.
    ///
    /// # Errors
    /// See [`AxiMasters::new`].
    pub fn restart(&mut self, sim: &mut Sim, stalls: Option<u64>) -> Result<()> {
        for p in 0..self.masters.len() {
            for s in ["awvalid", "wvalid", "bready", "arvalid", "rready"] {
                sim.poke(&format!("acc{p}_{s}"), 0);
            }
        }
        sim.eval();
        *self = Self::new(sim, &self.routes, stalls)?;
        Ok(())
    }

    /// Whether the last cycle was one of a reset.
    #[must_use]
    pub fn in_reset(&self) -> bool {
        self.in_reset
    }

    /// Number of resets seen to begin.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Gives up every unfinished burst ([`AxiMaster::lose`]).
    pub fn lose(&mut self) {
        self.masters.iter_mut().for_each(AxiMaster::lose);
    }

    /// Most bursts that may be incomplete on each port, with separate counts for reads and writes.
    pub fn set_outstanding(&mut self, n: usize) {
        self.masters.iter_mut().for_each(|m| m.outstanding = n);
    }

    /// Adds a burst to the list of its port; returns its number for [`AxiDone::tag`].
    pub fn push(&mut self, op: AxiOp) -> u64 {
        let addr = op.addr();
        let port = self.routes.iter().find(|(r, _)| r.contains(&addr)).map_or(0, |(_, p)| *p);
        let tag = self.next_tag;
        self.next_tag += 1;
        let at = port.min(self.masters.len() - 1);
        self.masters[at].queue.push_back((tag, op));
        tag
    }

    /// Next finished burst.
    pub fn pop(&mut self) -> Option<AxiDone> {
        self.masters.iter_mut().find_map(AxiMaster::pop)
    }

    /// Whether all pushed bursts are complete.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.masters.iter().all(AxiMaster::idle)
    }

    /// Bursts not yet requested.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.masters.iter().map(AxiMaster::queued).sum()
    }

    /// The first protocol violation of the slave.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        self.masters.iter().find_map(|m| m.violations().first().cloned())
    }
}

impl Agent for AxiMasters {
    fn sample(&mut self, sim: &Sim) {
        let before = self.in_reset;
        self.in_reset = self.rst.is_some_and(|p| sim.get(p) == 0);
        self.resets += u64::from(self.in_reset && !before);
        if !self.in_reset {
            self.masters.iter_mut().for_each(|m| m.sample(sim));
        } else if self.rude {
            // Traffic in reset follows no rule of the bus.
            for m in &mut self.masters {
                m.sample(sim);
                m.violations.clear();
            }
        } else {
            self.lose();
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        self.masters.iter_mut().for_each(|m| m.drive(sim));
    }
}
