//! PCIS: the shell's master for BAR 4, with a FIFO of 16 behind its time-out detector.

use super::detector::{Detector, LIMIT, SHORT};
use super::rules::{Record, Rule};
use super::wire::{Bundle, Channel};
use crate::agent::Stalls;
use crate::{BEAT, Result, Sim};
use std::collections::VecDeque;

/// Id of the accesses of PCIe.
const ID: u64 = 0x20;
/// Accesses of each direction between the detector and their answer.
const MOST_OPEN: usize = 32;
/// Accesses between the detector and the CL.
const FIFO: usize = 16;

/// One burst.
#[derive(Debug, Clone)]
struct Access {
    tag: u64,
    addr: u64,
    /// Of a read, the bytes that it asks for; the answer, then.
    bytes: Vec<u8>,
    beats: usize,
    /// Beats that passed R.
    done: usize,
    /// Cycle of its VALID at the detector.
    since: u64,
    /// Cycles that the shell itself lost until then.
    lost: u64,
    /// The host has its answer already.
    late: bool,
}

impl Access {
    fn beat(&self, k: usize) -> std::ops::Range<usize> {
        let skew = self.addr as usize % BEAT;
        let start = (k * BEAT).saturating_sub(skew);
        start..((k + 1) * BEAT - skew).min(self.bytes.len())
    }
}

/// One direction: what waits in front of the detector, in the FIFO behind it, and in the CL.
struct Way {
    ax: Channel<5>,
    rule: Rule,
    waiting: VecDeque<Access>,
    /// VALID in front of the FIFO.
    detected: Option<Access>,
    fifo: VecDeque<Access>,
    /// The first of the FIFO is offered to the CL.
    offered: bool,
    in_cl: VecDeque<Access>,
    done: VecDeque<(u64, Vec<u8>)>,
    /// Cycles that the shell's stalls took, which do not count for the CL.
    lost: u64,
    /// The longest access, in cycles.
    worst: u64,
}

impl Way {
    fn new(bundle: Bundle<'_>, name: &str, rule: Rule) -> Result<Self> {
        let payload = [("id", 16), ("addr", 64), ("len", 8), ("size", 3), ("burst", 2)];
        Ok(Self {
            ax: bundle.channel(name, false, payload)?,
            rule,
            waiting: VecDeque::new(),
            detected: None,
            fifo: VecDeque::new(),
            offered: false,
            in_cl: VecDeque::new(),
            done: VecDeque::new(),
            lost: 0,
            worst: 0,
        })
    }

    fn open(&self) -> usize {
        self.in_cl.len() + self.fifo.len() + usize::from(self.detected.is_some())
    }

    fn answer(&mut self, access: Access) {
        self.done.push_back((access.tag, access.bytes));
    }

    /// Takes the handshake on AR or AW; the access that the CL accepted.
    fn accepted(&mut self, sim: &Sim) -> bool {
        let (valid, ready) = self.ax.handshake(sim);
        if valid && ready {
            self.offered = false;
            self.in_cl.extend(self.fifo.pop_front());
        }
        valid && ready
    }

    /// The oldest access whose time is over.
    fn overdue(&self, now: u64) -> Option<u64> {
        let mut all = self.in_cl.iter().chain(&self.fifo).chain(&self.detected);
        let oldest = all.find(|a| !a.late)?;
        (now - oldest.since > LIMIT + (self.lost - oldest.lost)).then_some(oldest.addr)
    }

    /// Answers everything in flight; the CL still owes the answers of what it has seen.
    fn give_up(&mut self, keep: impl Fn(usize) -> bool) {
        let mut queue = std::mem::take(&mut self.fifo);
        queue.extend(self.detected.take());
        for (k, access) in queue.into_iter().enumerate() {
            if keep(k) {
                self.fifo.push_back(access);
            } else {
                self.answer(Access { bytes: ones(&access), ..access });
            }
        }
        for k in 0..self.in_cl.len() + self.fifo.len() {
            let n = self.in_cl.len();
            let access = if k < n { &mut self.in_cl[k] } else { &mut self.fifo[k - n] };
            if !std::mem::replace(&mut access.late, true) {
                let answer = (access.tag, ones(access));
                self.done.push_back(answer);
            }
        }
    }

    /// Moves accesses towards the CL.
    fn drive(
        &mut self,
        sim: &mut Sim,
        now: u64,
        detector: &Detector,
        stalled: bool,
    ) -> Option<Access> {
        let mut entered = None;
        if detector.closed(now) {
            if let Some(access) = self.waiting.front_mut() {
                if access.since == 0 {
                    access.since = now;
                } else if now - access.since >= SHORT
                    && let Some(access) = self.waiting.pop_front()
                {
                    self.answer(Access { bytes: ones(&access), ..access });
                }
            }
        } else {
            if self.fifo.len() < FIFO
                && let Some(access) = self.detected.take()
            {
                entered = Some(access.clone());
                self.fifo.push_back(access);
            }
            if self.detected.is_none()
                && self.open() < MOST_OPEN
                && let Some(mut access) = self.waiting.pop_front()
            {
                (access.since, access.lost) = (now + 1, self.lost);
                self.detected = Some(access);
            }
        }
        if !self.offered
            && !stalled
            && let Some(access) = self.fifo.front()
        {
            self.offered = true;
            let values = [ID, access.addr, access.beats as u64 - 1, 6, 1];
            for (port, value) in self.ax.payload.into_iter().zip(values) {
                sim.set(port, value);
            }
        }
        sim.set(self.ax.valid, u64::from(self.offered));
        entered
    }

    fn busy(&self) -> bool {
        self.waiting.front().is_some()
            || self.detected.is_some()
            || self.fifo.iter().chain(&self.in_cl).any(|a| !a.late)
    }

    fn forget(&mut self) {
        self.fifo.clear();
        self.in_cl.clear();
        self.offered = false;
    }
}

fn ones(access: &Access) -> Vec<u8> {
    vec![0xff; access.bytes.len()]
}

/// A beat of W.
struct Beat {
    data: [u8; BEAT],
    strobes: u64,
    last: bool,
}

/// The master.
pub(crate) struct Pcis {
    reads: Way,
    writes: Way,
    w: Channel<3>,
    r: Channel<4>,
    b: Channel<2>,
    detector: Detector,
    /// Beats of the writes that passed the detector.
    beats: VecDeque<Beat>,
    w_on: bool,
    /// Writes whose last beat was accepted and whose answer has not come.
    whole: usize,
    tags: u64,
    stalls: Stalls,
    ready: [bool; 2],
    /// Answers other than OKAY.
    pub errors: u64,
}

impl Pcis {
    pub fn new(sim: &Sim, stalls: Stalls, recovers: bool) -> Result<Self> {
        let bundle = Bundle { sim, from_cl: "cl_sh_dma_pcis_", to_cl: "sh_cl_dma_pcis_" };
        Ok(Self {
            reads: Way::new(bundle, "ar", Rule::PcisRead)?,
            writes: Way::new(bundle, "aw", Rule::PcisWrite)?,
            w: bundle.channel("w", false, [("data", 512), ("strb", 64), ("last", 1)])?,
            r: bundle.channel("r", true, [("id", 16), ("data", 512), ("resp", 2), ("last", 1)])?,
            b: bundle.channel("b", true, [("id", 16), ("resp", 2)])?,
            detector: Detector::new(recovers),
            beats: VecDeque::new(),
            w_on: false,
            whole: 0,
            tags: 0,
            stalls,
            ready: [false; 2],
            errors: 0,
        })
    }

    /// Begins a read of at most the bytes up to the next 4 KiB; [`Pcis::take`] gives them.
    pub fn read(&mut self, addr: u64, len: usize) -> u64 {
        self.begin(addr, vec![0; len], false)
    }

    /// Begins a write that ends at the next 4 KiB or before.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> u64 {
        self.begin(addr, bytes.to_vec(), true)
    }

    fn begin(&mut self, addr: u64, bytes: Vec<u8>, write: bool) -> u64 {
        self.tags += 1;
        let beats = (addr as usize % BEAT + bytes.len()).div_ceil(BEAT).max(1);
        let (tag, done, since, lost, late) = (self.tags, 0, 0, 0, false);
        let way = if write { &mut self.writes } else { &mut self.reads };
        way.waiting.push_back(Access { tag, addr, bytes, beats, done, since, lost, late });
        tag
    }

    /// Tag and bytes of the next answered read (or write, whose bytes are what was written).
    pub fn take(&mut self, write: bool) -> Option<(u64, Vec<u8>)> {
        if write { self.writes.done.pop_front() } else { self.reads.done.pop_front() }
    }

    /// Whether an access is in flight or waits.
    pub fn busy(&self) -> bool {
        self.reads.busy() || self.writes.busy()
    }

    /// The longest read and the longest write, in cycles.
    pub fn worst(&self) -> [u64; 2] {
        [self.reads.worst, self.writes.worst]
    }

    /// Late accesses, and the address of the last one.
    pub fn metrics(&self) -> (u64, u64) {
        (self.detector.late, self.detector.address)
    }

    /// A reset begins: the host receives all ones for what is in flight.
    pub fn lose(&mut self, sim: &mut Sim) {
        for way in [&mut self.reads, &mut self.writes] {
            way.give_up(|_| false);
            way.offered = false;
            sim.set(way.ax.valid, 0);
            while let Some(access) = way.waiting.pop_front() {
                way.answer(Access { bytes: ones(&access), ..access });
            }
        }
        self.beats.clear();
        self.w_on = false;
        sim.set(self.w.valid, 0);
    }

    /// A reset ends: the CL no longer owes an answer.
    pub fn forget(&mut self) {
        self.reads.forget();
        self.writes.forget();
        self.whole = 0;
        self.r.forget();
        self.b.forget();
    }

    /// Before the edge of cycle `to.cycle`.
    pub fn sample(&mut self, sim: &Sim, to: &mut Record) {
        let (r, b) = (self.r.handshake(sim), self.b.handshake(sim));
        self.r.steady(sim, r, Rule::PcisRSteady, to);
        self.b.steady(sim, b, Rule::PcisBSteady, to);
        if r.0 && r.1 {
            self.beat(sim, to);
        }
        if b.0 && b.1 {
            self.answer(sim, to);
        }
        self.reads.lost += u64::from(r.0 && !r.1);
        self.writes.lost += u64::from(b.0 && !b.1);
        self.reads.accepted(sim);
        self.writes.accepted(sim);
        let (valid, ready) = self.w.handshake(sim);
        if valid && ready {
            self.w_on = false;
            let last = self.beats.pop_front().is_some_and(|beat| beat.last);
            self.whole += usize::from(last);
        }
        for write in [false, true] {
            let way = if write { &self.writes } else { &self.reads };
            if let Some(addr) = way.overdue(to.cycle) {
                self.trip(addr, write, to);
            }
        }
    }

    /// A beat of R.
    fn beat(&mut self, sim: &Sim, to: &mut Record) {
        let [id, data, resp, last] = self.r.payload;
        let Some(access) = self.reads.in_cl.front_mut() else {
            return to.unasked(Rule::PcisRUnasked, &*self.r.signal, "no read is open");
        };
        if sim.get(id) != ID {
            let what = format!("{:#x} is not the id of a read", sim.get(id));
            return to.broken(Rule::PcisRId, "cl_sh_dma_pcis_rid", what);
        }
        let range = access.beat(access.done);
        if !access.late && !range.is_empty() {
            let from = if access.done == 0 { access.addr as usize % BEAT } else { 0 };
            let n = range.len();
            access.bytes[range].copy_from_slice(&sim.raw(data)[from..from + n]);
        }
        self.errors += u64::from(sim.get(resp) != 0);
        access.done += 1;
        let last = sim.get(last) != 0;
        let end = access.done == access.beats;
        if last != end {
            let what = format!("{} at beat {} of {}", u8::from(last), access.done, access.beats);
            to.broken(Rule::PcisRlast, "cl_sh_dma_pcis_rlast", what);
        }
        if (last || end)
            && let Some(access) = self.reads.in_cl.pop_front()
            && !access.late
        {
            self.reads.worst = self.reads.worst.max(to.cycle - access.since);
            self.reads.answer(access);
        }
    }

    /// An answer on B.
    fn answer(&mut self, sim: &Sim, to: &mut Record) {
        let [id, resp] = self.b.values(sim);
        if self.whole == 0 || self.writes.in_cl.is_empty() {
            to.unasked(Rule::PcisBUnasked, &*self.b.signal, "no whole write is open");
        } else if id != ID {
            let what = format!("{id:#x} is not the id of a write");
            to.broken(Rule::PcisBId, "cl_sh_dma_pcis_bid", what);
        } else if let Some(access) = self.writes.in_cl.pop_front() {
            self.whole -= 1;
            self.errors += u64::from(resp != 0);
            if !access.late {
                self.writes.worst = self.writes.worst.max(to.cycle - access.since);
                self.writes.answer(access);
            }
        }
    }

    /// An access is late: everything in flight is.
    fn trip(&mut self, addr: u64, write: bool, to: &mut Record) {
        let way = if write { &self.writes } else { &self.reads };
        let signal = if write { &self.b.signal } else { &self.r.signal };
        to.broken(way.rule, &**signal, format!("no answer at {addr:#x}"));
        let way = if write { &mut self.writes } else { &mut self.reads };
        way.worst = way.worst.max(LIMIT);
        self.detector.trip(to.cycle, addr, write);
        let offered = self.reads.offered;
        self.reads.give_up(|k| k == 0 && offered);
        // The beats of writes in the FIFO may be on their way.
        let entered = self.writes.fifo.len();
        self.writes.give_up(|k| k < entered);
    }

    /// After the edge of cycle `now`.
    pub fn drive(&mut self, sim: &mut Sim, now: u64) {
        self.stalls.step();
        let stalled = [0, 1, 2, 3, 4].map(|k| self.stalls.stalled(k));
        self.reads.lost += u64::from(stalled[0] && !self.reads.fifo.is_empty());
        self.writes.lost += u64::from(
            stalled[1] && !self.writes.fifo.is_empty() || stalled[2] && !self.beats.is_empty(),
        );
        self.reads.drive(sim, now, &self.detector, stalled[0]);
        if let Some(access) = self.writes.drive(sim, now, &self.detector, stalled[1]) {
            self.split(&access);
        }
        if !self.w_on
            && !stalled[2]
            && let Some(beat) = self.beats.front()
        {
            self.w_on = true;
            let [data, strobes, last] = self.w.payload;
            sim.raw_mut(data).copy_from_slice(&beat.data);
            sim.set(strobes, beat.strobes);
            sim.set(last, u64::from(beat.last));
        }
        sim.set(self.w.valid, u64::from(self.w_on));
        for (k, channel) in [(0, self.r.ready), (1, self.b.ready)] {
            let ready = !stalled[3 + k];
            if ready != self.ready[k] {
                self.ready[k] = ready;
                sim.set(channel, u64::from(ready));
            }
        }
    }

    /// The beats of a write.
    fn split(&mut self, access: &Access) {
        for k in 0..access.beats {
            let range = access.beat(k);
            let from = if k == 0 { access.addr as usize % BEAT } else { 0 };
            let mut data = [0; BEAT];
            let n = range.len();
            data[from..from + n].copy_from_slice(&access.bytes[range]);
            let strobes = if n == BEAT { u64::MAX } else { ((1 << n) - 1) << from };
            self.beats.push_back(Beat { data, strobes, last: k + 1 == access.beats });
        }
    }
}
