//! Host memory on the `host` port of a design, as behind the shell of AWS F2: it checks every burst
//! against that shell's rules.

use crate::agent::{Agent, Rng, Stalls};
use crate::axi_memory::{Ports, READY, VALID};
use crate::{AxiMemoryConfig, BEAT, BusCounters, DECERR, OKAY, Result, SLVERR, Sim};
use std::collections::VecDeque;

/// Most bursts of each direction that may be open.
const MAX_OPEN: usize = 32;
/// Most cycles for which W may stall the shell inside accepted bursts.
const MAX_W_GAP: u64 = 4;

/// Why host memory refused an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFault {
    /// Not mapped, not for this direction, or the function must not master the bus.
    Unreachable,
    /// A read was answered with poisoned data.
    Poisoned,
}

/// The bytes behind the port.
pub trait HostBus {
    /// Reads bytes of one beat.
    ///
    /// # Errors
    /// See [`HostFault`]; the caller then ignores `out`.
    fn read(&mut self, addr: u64, out: &mut [u8]) -> core::result::Result<(), HostFault>;

    /// Writes bytes of one beat.
    ///
    /// # Errors
    /// [`HostFault::Unreachable`].
    fn write(&mut self, addr: u64, bytes: &[u8]) -> core::result::Result<(), HostFault>;
}

struct Read {
    id: u8,
    addr: u64,
    beats: u32,
    done: u32,
    at: u64,
}

struct Write {
    id: u8,
    addr: u64,
    beats: u32,
    done: u32,
    at: u64,
    resp: u64,
}

/// AXI4 slave over a [`HostBus`] on the ports `<prefix>ar*`, `r*`, `aw*`, `w*`, `b*`.
///
/// Rules that it checks ([`HostMemory::violations`]): bursts are INCR of 64-byte beats, at most 64,
/// inside one 4 KiB page; at most 32 of each direction are open, with one read per id; the bytes of
/// a burst have no gap and begin at AWADDR; W is valid when its AW is accepted, with WLAST on the
/// last beat; R and B are always accepted; a valid request stays unchanged until it is accepted.
pub struct HostMemory<B> {
    p: Ports,
    /// The bytes.
    pub bus: B,
    /// Timing. With `reorder`, answers of different ids overtake each other and interleave, beat by
    /// beat.
    pub config: AxiMemoryConfig,
    /// Counts since the start.
    pub counters: BusCounters,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// While set, no channel moves.
    pub frozen: bool,
    violations: Vec<String>,
    stalls: Stalls,
    rng: Rng,
    now: u64,
    reads: VecDeque<Read>,
    writes: VecDeque<Write>,
    answers: VecDeque<Write>,
    /// Index into `reads` of the burst whose beat is on R.
    current: Option<usize>,
    r_on: bool,
    b_on: bool,
    ready: [bool; 3],
    w_gap: u64,
}

impl<B: HostBus> HostMemory<B> {
    /// Binds to the ports with this prefix (for example `host_`).
    ///
    /// # Errors
    /// When a port is missing or has another width.
    pub fn new(sim: &Sim, prefix: &str, config: AxiMemoryConfig, bus: B) -> Result<Self> {
        Ok(Self {
            p: Ports::new(sim, prefix)?,
            bus,
            stalls: config.stalls.map_or_else(Stalls::off, Stalls::seeded),
            rng: Rng::new(config.stalls.unwrap_or(0) ^ 0x4057),
            config,
            counters: BusCounters::default(),
            bytes_written: 0,
            frozen: false,
            violations: Vec::new(),
            now: 0,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            answers: VecDeque::new(),
            current: None,
            r_on: false,
            b_on: false,
            ready: [false; 3],
            w_gap: 0,
        })
    }

    /// Protocol violations of the master (the first 16).
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Whether every accepted burst is answered.
    pub fn idle(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.answers.is_empty()
    }

    /// Forgets all bursts in flight (when the design is reset).
    pub fn reset(&mut self, sim: &mut Sim) {
        self.reads.clear();
        self.writes.clear();
        self.answers.clear();
        self.current = None;
        (self.r_on, self.b_on) = (false, false);
        self.w_gap = 0;
        self.p.reset(sim);
    }

    fn violation(&mut self, what: String) {
        if self.violations.len() < 16 {
            self.violations.push(format!("cycle {}: {what}", self.now));
        }
    }

    /// Id, address and beats of the request on AR or AW.
    fn request(&mut self, sim: &Sim, write: bool) -> (u8, u64, u32) {
        let p = if write { &self.p.aw } else { &self.p.ar };
        let [id, addr, len, size, burst] = [2, 3, 4, 5, 6].map(|i: usize| sim.get(p[i]));
        let name = if write { "write" } else { "read" };
        if size != 6 || burst != 1 {
            self.violation(format!("{name} of {addr:#x} with size {size}, burst {burst}"));
        }
        if len > 63 || (addr & 0xfc0) + (len + 1) * 64 > 4096 {
            self.violation(format!("{name} of {} beats at {addr:#x} crosses a page", len + 1));
        }
        if write && self.writes.len() + self.answers.len() >= MAX_OPEN {
            self.violation(format!("more than {MAX_OPEN} writes are open"));
        }
        if !write && self.reads.len() >= MAX_OPEN {
            self.violation(format!("more than {MAX_OPEN} reads are open"));
        }
        if !write && self.reads.iter().any(|r| u64::from(r.id) == id) {
            self.violation(format!("a second read of id {id:#x}"));
        }
        (id as u8, addr, len as u32 + 1)
    }

    /// A W beat for the oldest write burst.
    fn write_beat(&mut self, data: [u8; BEAT], strb: u64, last: bool) {
        let Some(w) = self.writes.front() else { return self.violation("W without AW".to_owned()) };
        let (addr, first, end) = (w.addr, w.done == 0, w.done + 1 == w.beats);
        let at = (addr & !63).wrapping_add(u64::from(w.done) * BEAT as u64);
        let (low, count) = (strb.trailing_zeros(), strb.count_ones());
        let whole = strb != 0 && strb >> low == u64::MAX >> (64 - count);
        let begins = if first {
            u64::from(low) / 4 == (addr & 63) / 4 && u64::from(low) >= addr & 63
        } else {
            low == 0
        };
        if !whole || !begins || (!end && low + count != 64) {
            self.violation(format!(
                "strobes {strb:#018x} at {at:#x} of a burst of {} at {addr:#x}",
                self.writes[0].beats
            ));
        }
        if last != end {
            self.violation(format!("WLAST {} in a burst at {addr:#x}", u8::from(last)));
        }
        let bytes = &data[low.min(63) as usize..][..count as usize];
        let written = self.bus.write(at + u64::from(low), bytes);
        self.bytes_written += u64::from(count);
        let w = &mut self.writes[0];
        w.done += 1;
        if written.is_err() {
            w.resp = DECERR;
        }
        if end && let Some(mut w) = self.writes.pop_front() {
            w.at = self.now + self.config.write_latency.max(1);
            self.answers.push_back(w);
        }
    }

    fn present_r(&mut self, sim: &mut Sim, i: usize) {
        let r = &self.reads[i];
        let at = (r.addr & !63).wrapping_add(u64::from(r.done) * BEAT as u64);
        let resp = match self.bus.read(at, sim.raw_mut(self.p.r[3])) {
            Ok(()) => OKAY,
            Err(HostFault::Unreachable) => DECERR,
            Err(HostFault::Poisoned) => SLVERR,
        };
        sim.set(self.p.r[2], u64::from(r.id));
        sim.set(self.p.r[4], resp);
        sim.set(self.p.r[5], u64::from(r.done + 1 == r.beats));
    }

    /// A due entry.
    fn pick(&mut self, due: impl Fn(&Self, usize) -> bool, n: usize) -> Option<usize> {
        let i = if self.config.reorder { self.rng.below(n as u64) as usize } else { 0 };
        (i < n && due(self, i)).then_some(i)
    }
}

impl<B: HostBus> Agent for HostMemory<B> {
    fn sample(&mut self, sim: &Sim) {
        self.now += 1;
        let on = |p: &[crate::Port]| sim.get(p[VALID]) != 0;
        let (arv, awv, wv) = (on(&self.p.ar), on(&self.p.aw), on(&self.p.w));
        let [arr, awr, wr] = self.ready;
        for (channel, valid, ready) in [(0, arv, arr), (1, awv, awr), (2, wv, wr)] {
            if let Some(what) = self.p.unsteady(sim, channel, valid, ready) {
                self.violation(what);
            }
        }
        if sim.get(self.p.r[READY]) == 0 || sim.get(self.p.b[READY]) == 0 {
            self.violation("R or B is not taken at once".to_owned());
        }
        if wv || self.writes.is_empty() {
            self.w_gap = 0;
        } else {
            self.w_gap += 1;
            if self.w_gap == MAX_W_GAP {
                self.violation("W keeps an accepted burst waiting".to_owned());
            }
        }
        if arv && arr {
            let (id, addr, beats) = self.request(sim, false);
            self.counters.reads += 1;
            self.reads.push_back(Read {
                id,
                addr,
                beats,
                done: 0,
                at: self.now + self.config.read_latency.max(1) - 1,
            });
        }
        if awv && awr {
            let (id, addr, beats) = self.request(sim, true);
            self.counters.writes += 1;
            self.writes.push_back(Write { id, addr, beats, done: 0, at: 0, resp: OKAY });
        }
        if wv && wr {
            let mut data = [0; BEAT];
            data.copy_from_slice(sim.raw(self.p.w[2]));
            self.counters.write_beats += 1;
            self.write_beat(data, sim.get(self.p.w[3]), sim.get(self.p.w[4]) != 0);
        }
        if self.r_on {
            self.r_on = false;
            self.counters.read_beats += 1;
            if let Some(i) = self.current {
                self.reads[i].done += 1;
                if self.reads[i].done == self.reads[i].beats {
                    self.reads.remove(i);
                    self.current = None;
                } else if self.config.reorder && self.rng.one_in(16) {
                    self.current = None;
                }
            }
        }
        if self.b_on {
            self.b_on = false;
            self.counters.answers += 1;
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        self.stalls.step();
        if !self.frozen && !self.stalls.stalled(3) {
            if self.current.is_none() {
                self.current = self.pick(|s, i| s.reads[i].at <= s.now, self.reads.len());
            }
            if let Some(i) = self.current {
                self.present_r(sim, i);
                self.r_on = true;
            }
        }
        sim.set(self.p.r[VALID], u64::from(self.r_on));
        if !self.frozen && !self.stalls.stalled(4) {
            // Answers of one id keep their order.
            let older =
                |s: &Self, i: usize| s.answers.iter().take(i).any(|a| a.id == s.answers[i].id);
            let due =
                self.pick(|s, i| s.answers[i].at <= s.now && !older(s, i), self.answers.len());
            if let Some(a) = due.and_then(|i| self.answers.remove(i)) {
                sim.set(self.p.b[2], u64::from(a.id));
                sim.set(self.p.b[3], a.resp);
                self.b_on = true;
            }
        }
        sim.set(self.p.b[VALID], u64::from(self.b_on));
        let room = [
            self.reads.len() < self.config.outstanding,
            self.writes.len() + self.answers.len() < self.config.outstanding,
            true,
        ];
        self.ready = [0, 1, 2]
            .map(|channel| !self.frozen && room[channel as usize] && !self.stalls.stalled(channel));
        for (p, ready) in
            [self.p.ar[READY], self.p.aw[READY], self.p.w[READY]].into_iter().zip(self.ready)
        {
            sim.set(p, u64::from(ready));
        }
    }
}
