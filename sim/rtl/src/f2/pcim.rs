//! PCIM: the shell's slave in front of the host's memory.

use super::clock::MAIN_PS;
use super::detector::LIMIT;
use super::rules::{Record, Rule};
use super::wire::{Bundle, Channel};
use crate::agent::{Rng, Stalls};
use crate::{BEAT, BusCounters, DECERR, HostBus, HostFault, OKAY, Result, SLVERR, Sim};
use std::collections::VecDeque;

/// Reads that may be open.
const MOST_READS: usize = 32;
/// Bursts that the shell accepts of each direction, so that it sees one too many.
const ROOM: usize = 48;
/// Beats of W that it accepts before their AW.
const AHEAD: usize = 16;

/// Timing of the path to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcimTiming {
    /// Nanoseconds from AR to the first beat.
    pub read_ns: u64,
    /// Nanoseconds from the last W until the host sees the data, and B.
    pub write_ns: u64,
    /// Further nanoseconds by chance, for each packet.
    pub jitter_ns: u64,
    /// Whether answers of different ids overtake each other, packet by packet.
    pub reorder: bool,
}

impl Default for PcimTiming {
    fn default() -> Self {
        Self { read_ns: 1_200, write_ns: 600, jitter_ns: 400, reorder: true }
    }
}

impl PcimTiming {
    /// A fixed latency, for measurements.
    #[must_use]
    pub fn bench(read_ns: u64, write_ns: u64) -> Self {
        Self { read_ns, write_ns, jitter_ns: 0, reorder: false }
    }
}

struct Read {
    id: u64,
    addr: u64,
    beats: usize,
    done: usize,
    /// Cycle in which its next packet is there.
    at: u64,
    resp: u64,
}

struct Write {
    id: u64,
    addr: u64,
    beats: usize,
    data: Vec<u8>,
    strobes: Vec<u64>,
    /// Cycle of its AW; then that of its next packet.
    at: u64,
    /// Cycles that the shell itself lost until AW.
    lost: u64,
    resp: u64,
    /// Beats that the host sees.
    seen: usize,
}

/// The slave.
pub(crate) struct Pcim {
    ar: Channel<5>,
    aw: Channel<5>,
    w: Channel<3>,
    r: Channel<4>,
    b: Channel<2>,
    pub timing: PcimTiming,
    /// Bytes of a packet that writes.
    pub payload: usize,
    /// Bytes of a packet that reads.
    pub request: usize,
    /// The host has enabled bus mastering.
    pub master: bool,
    /// A rule of timing was broken: nothing moves any more.
    pub dead: bool,
    pub counters: BusCounters,
    stalls: Stalls,
    rng: Rng,
    reads: VecDeque<Read>,
    /// Writes that lack data.
    writes: VecDeque<Write>,
    early: VecDeque<([u8; BEAT], u64, bool)>,
    /// Whole writes on their way to the host.
    posted: VecDeque<Write>,
    /// Id and response of writes that the host sees.
    answers: VecDeque<(u64, u64)>,
    /// The read whose packet is on R.
    current: Option<usize>,
    r_since: Option<u64>,
    b_since: Option<u64>,
    /// W is accepted before AW.
    ahead: bool,
    lost: u64,
    /// AR and AW are offered since before the reset.
    carried: [bool; 2],
    /// A channel broke the rule on VALID in this reset.
    blamed: [bool; 3],
}

impl Pcim {
    pub fn new(sim: &Sim, timing: PcimTiming, stalls: Option<u64>) -> Result<Self> {
        let bundle = Bundle { sim, from_cl: "cl_sh_pcim_", to_cl: "sh_cl_pcim_" };
        let ax = [("id", 16), ("addr", 64), ("len", 8), ("size", 3), ("burst", 2)];
        Ok(Self {
            ar: bundle.channel("ar", true, ax)?,
            aw: bundle.channel("aw", true, ax)?,
            w: bundle.channel("w", true, [("data", 512), ("strb", 64), ("last", 1)])?,
            r: bundle.channel("r", false, [("id", 16), ("data", 512), ("resp", 2), ("last", 1)])?,
            b: bundle.channel("b", false, [("id", 16), ("resp", 2)])?,
            timing,
            payload: 256,
            request: 512,
            master: false,
            dead: false,
            counters: BusCounters::default(),
            stalls: stalls.map_or_else(Stalls::off, Stalls::seeded),
            rng: Rng::new(stalls.unwrap_or(0) ^ 0x9c13),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            early: VecDeque::new(),
            posted: VecDeque::new(),
            answers: VecDeque::new(),
            current: None,
            r_since: None,
            b_since: None,
            ahead: true,
            lost: 0,
            carried: [false; 2],
            blamed: [false; 3],
        })
    }

    /// Whether every read and every whole write is answered.
    pub fn answered(&self) -> bool {
        let waits = self.reads.is_empty() && self.posted.is_empty() && self.answers.is_empty();
        self.dead || (waits && self.b_since.is_none())
    }

    /// Whether every accepted burst is answered.
    pub fn idle(&self) -> bool {
        self.reads.is_empty()
            && self.writes.is_empty()
            && self.posted.is_empty()
            && self.answers.is_empty()
            && self.b_since.is_none()
    }

    /// The CL was wiped: no write may lack data.
    pub fn settle(&mut self, sim: &mut Sim, to: &mut Record) {
        if let Some(write) = self.writes.front()
            && !self.dead
        {
            let n = write.data.len() / BEAT;
            let what = format!("{n} of {} beats of the write at {:#x}", write.beats, write.addr);
            to.broken(Rule::PcimLeftOpen, &*self.w.signal, what);
            self.die(sim);
        }
    }

    /// A reset ended: answers in flight are lost.
    pub fn forget(&mut self, sim: &mut Sim) {
        self.reads.clear();
        self.posted.clear();
        self.answers.clear();
        self.early.clear();
        self.current = None;
        (self.r_since, self.b_since) = (None, None);
        for port in [self.r.valid, self.b.valid] {
            sim.set(port, 0);
        }
        self.ar.forget();
        self.aw.forget();
        self.w.forget();
    }

    fn die(&mut self, sim: &mut Sim) {
        self.dead = true;
        for port in [self.ar.ready, self.aw.ready, self.w.ready, self.r.valid, self.b.valid] {
            sim.set(port, 0);
        }
    }

    fn cycles(ns: u64) -> u64 {
        (ns * 1_000).div_ceil(MAIN_PS)
    }

    fn late(&mut self) -> u64 {
        self.rng.below(Self::cycles(self.timing.jitter_ns) + 1)
    }

    /// Before the edge of cycle `to.cycle`.
    pub fn sample(&mut self, sim: &Sim, to: &mut Record) {
        let (ar, aw, w) = (self.ar.handshake(sim), self.aw.handshake(sim), self.w.handshake(sim));
        let legal = self.in_reset([ar, aw, w], to);
        if self.dead {
            return;
        }
        let steady = self.ar.steady(sim, ar, Rule::PcimArSteady, to)
            & self.aw.steady(sim, aw, Rule::PcimAwSteady, to)
            & self.w.steady(sim, w, Rule::PcimWSteady, to);
        self.dead |= !steady;
        self.take_answers(sim, to);
        self.lost += u64::from(w.0 && !w.1);
        if ar.0 && ar.1 && legal[0] {
            self.read(sim, to);
        }
        if aw.0 && aw.1 && legal[1] {
            self.write(sim, to);
        }
        if w.0 && w.1 && legal[2] {
            let [data, strobes, last] = self.w.payload;
            let mut beat = [0; BEAT];
            beat.copy_from_slice(sim.raw(data));
            self.counters.write_beats += 1;
            self.early.push_back((beat, sim.get(strobes), sim.get(last) != 0));
        }
        while !self.writes.is_empty()
            && let Some((data, strobes, last)) = self.early.pop_front()
        {
            self.beat(data, strobes, last, to);
        }
        if let Some(write) = self.writes.front()
            && to.cycle - write.at > LIMIT + (self.lost - write.lost)
        {
            let what = format!("no data of the write at {:#x}", write.addr);
            to.broken(Rule::PcimW, &*self.w.signal, what);
            self.dead = true;
        }
    }

    /// In reset, the CL offers only what it offered before, and data of its open writes. Whether it
    /// may offer, on each of the channels.
    fn in_reset(&mut self, [ar, aw, w]: [(bool, bool); 3], to: &mut Record) -> [bool; 3] {
        if !to.reset {
            self.carried = [ar.0, aw.0].map(|valid| valid && !to.loading);
            self.blamed = [false; 3];
            return [true; 3];
        }
        let [read, write] = self.carried;
        let legal = [read, write, write || !self.writes.is_empty()];
        let signals = [&self.ar.signal, &self.aw.signal, &self.w.signal];
        for (k, (valid, _)) in [ar, aw, w].into_iter().enumerate() {
            if valid && !legal[k] && !std::mem::replace(&mut self.blamed[k], true) {
                to.broken(Rule::ResetValid, &**signals[k], "1 in reset");
            }
        }
        self.carried = [read && ar.0 && !ar.1, write && aw.0 && !aw.1];
        legal
    }

    /// READY of R and B.
    fn take_answers(&mut self, sim: &Sim, to: &mut Record) {
        if let Some(since) = self.r_since {
            if sim.get(self.r.ready) != 0 {
                self.r_since = None;
                self.counters.read_beats += 1;
                self.next_beat(to.cycle);
            } else if to.cycle - since > LIMIT && !to.reset {
                to.broken(Rule::PcimR, &*self.r.ready_signal, "0 while R waits");
                self.dead = true;
            }
        }
        if let Some(since) = self.b_since {
            if sim.get(self.b.ready) != 0 {
                self.b_since = None;
                self.counters.answers += 1;
            } else if to.cycle - since > LIMIT && !to.reset {
                to.broken(Rule::PcimB, &*self.b.ready_signal, "0 while B waits");
                self.dead = true;
            }
        }
    }

    /// A beat of the current read was taken.
    fn next_beat(&mut self, now: u64) {
        let Some(k) = self.current else { return };
        let read = &mut self.reads[k];
        read.done += 1;
        let next = (read.addr & !63) + (read.done * BEAT) as u64;
        if read.done == read.beats {
            self.reads.remove(k);
            self.current = None;
        } else if next.is_multiple_of(self.request as u64) {
            let late = self.late();
            self.reads[k].at = self.reads[k].at.max(now + late);
            if self.timing.reorder {
                self.current = None;
            }
        }
    }

    /// The rules of a request: id, address, beats, and its response.
    fn request(&mut self, sim: &Sim, write: bool, to: &mut Record) -> (u64, u64, usize, u64) {
        let channel = if write { &self.aw } else { &self.ar };
        let [id, addr, len, size, burst] = channel.values(sim);
        let name = |n: &str| format!("cl_sh_pcim_{}{n}", if write { "aw" } else { "ar" });
        let mut resp = OKAY;
        let mut refuse = |rule, signal: &str, what: String| {
            to.broken(rule, name(signal), what);
            resp = SLVERR;
        };
        if size != 6 {
            refuse(Rule::PcimSize, "size", format!("{size} at {addr:#x}"));
        }
        if burst != 1 {
            refuse(Rule::PcimIncr, "burst", format!("{burst} at {addr:#x}"));
        }
        if (addr & 0xfc0) + (len + 1) * BEAT as u64 > 4096 {
            refuse(Rule::PcimPage, "addr", format!("{} beats at {addr:#x}", len + 1));
        }
        if !self.master {
            refuse(Rule::PcimMaster, "valid", format!("access to {addr:#x}"));
        }
        if !write && self.reads.len() >= MOST_READS {
            refuse(Rule::PcimReadsOpen, "valid", format!("{} are open", self.reads.len()));
        }
        (id, addr, len as usize + 1, resp)
    }

    fn read(&mut self, sim: &Sim, to: &mut Record) {
        let (id, addr, beats, resp) = self.request(sim, false, to);
        self.counters.reads += 1;
        let at = to.cycle + Self::cycles(self.timing.read_ns) + self.late();
        let read = Read { id, addr, beats, done: 0, at, resp };
        let twin = self.reads.iter().position(|r| r.id == id);
        if twin.is_some() {
            to.broken(Rule::PcimReadId, "cl_sh_pcim_arid", format!("{id:#x} is open already"));
        }
        match twin {
            // Its packets overtake those of the first.
            Some(k) if self.reads[k].done == 0 && self.current != Some(k) => {
                let at = self.reads[k].at;
                self.reads.insert(k, Read { at, ..read });
                self.current = self.current.map(|c| if c >= k { c + 1 } else { c });
            }
            _ => self.reads.push_back(read),
        }
    }

    fn write(&mut self, sim: &Sim, to: &mut Record) {
        let (id, addr, beats, resp) = self.request(sim, true, to);
        self.counters.writes += 1;
        let (at, lost, seen) = (to.cycle, self.lost, 0);
        let (data, strobes) = (Vec::with_capacity(beats * BEAT), Vec::with_capacity(beats));
        self.writes.push_back(Write { id, addr, beats, data, strobes, at, lost, resp, seen });
    }

    /// A beat of the oldest write.
    fn beat(&mut self, data: [u8; BEAT], strobes: u64, last: bool, to: &mut Record) {
        let Some(write) = self.writes.front_mut() else { return };
        write.data.extend_from_slice(&data);
        write.strobes.push(strobes);
        let (n, beats) = (write.strobes.len(), write.beats);
        if last != (n == beats) {
            let what = format!("{} at beat {n} of {beats}", u8::from(last));
            to.broken(Rule::PcimWlast, "cl_sh_pcim_wlast", what);
            self.dead = true;
        } else if last && let Some(mut write) = self.writes.pop_front() {
            self.strobes(&mut write, to);
            write.at = to.cycle + Self::cycles(self.timing.write_ns) + self.late();
            self.posted.push_back(write);
        }
    }

    /// The rules of the strobes of a whole write.
    fn strobes(&self, write: &mut Write, to: &mut Record) {
        if (write.addr as usize % BEAT) < 4 && write.strobes.iter().all(|s| *s == u64::MAX) {
            return;
        }
        let set = |k: &usize| write.strobes[k / BEAT] >> (k % BEAT) & 1 == 1;
        let Some(first) = (0..write.data.len()).find(set) else { return };
        let last = (first..write.data.len()).rfind(set).unwrap_or(first);
        let signal = "cl_sh_pcim_wstrb";
        if first / 4 != (write.addr as usize % BEAT) / 4 {
            let what = format!("first byte {first} of a write at {:#x}", write.addr);
            to.broken(Rule::PcimStrobeAddress, signal, what);
            write.resp = SLVERR;
        }
        if last / 4 - first / 4 >= 2 && !(first..=last).all(|k| set(&k)) {
            let what = format!("a gap in bytes {first} to {last} of a write at {:#x}", write.addr);
            to.broken(Rule::PcimStrobes, signal, what);
            write.resp = SLVERR;
        }
    }

    /// The first packet of the oldest posted write reaches the host, if it is time.
    fn post(&mut self, host: &mut impl HostBus, now: u64) {
        let Some(write) = self.posted.front_mut() else { return };
        if write.at > now {
            return;
        }
        let base = write.addr & !63;
        loop {
            let at = base + (write.seen * BEAT) as u64;
            if write.resp == OKAY {
                let data = &write.data[write.seen * BEAT..][..BEAT];
                if store(host, at, data, write.strobes[write.seen]).is_err() {
                    write.resp = DECERR;
                }
            }
            write.seen += 1;
            if write.seen == write.beats || (at + BEAT as u64).is_multiple_of(self.payload as u64) {
                break;
            }
        }
        write.at = now + (self.payload / BEAT) as u64;
        if write.seen == write.beats
            && let Some(write) = self.posted.pop_front()
        {
            self.answers.push_back((write.id, write.resp));
        }
    }

    /// After the edge of cycle `now`.
    pub fn drive(&mut self, sim: &mut Sim, host: &mut impl HostBus, now: u64) {
        if self.dead {
            return self.die(sim);
        }
        self.stalls.step();
        self.post(host, now);
        if self.r_since.is_none() {
            if !self.stalls.stalled(3) {
                self.offer_r(sim, host, now);
            }
            sim.set(self.r.valid, u64::from(self.r_since.is_some()));
        }
        if self.b_since.is_none() {
            if !self.stalls.stalled(4)
                && let Some((id, resp)) = self.next_answer()
            {
                sim.set(self.b.payload[0], id);
                sim.set(self.b.payload[1], resp);
                self.b_since = Some(now + 1);
            }
            sim.set(self.b.valid, u64::from(self.b_since.is_some()));
        }
        if now.is_multiple_of(512) {
            self.ahead = self.timing.jitter_ns == 0 || self.rng.one_in(2);
        }
        let data = !self.writes.is_empty() || (self.ahead && self.early.len() < AHEAD);
        let ready = [
            self.reads.len() < ROOM,
            self.writes.len() + self.posted.len() + self.answers.len() < ROOM,
            data,
        ];
        for ((k, port), ready) in (0..).zip([self.ar.ready, self.aw.ready, self.w.ready]).zip(ready)
        {
            sim.set(port, u64::from(ready && !self.stalls.stalled(k)));
        }
    }

    /// The next beat of a read that is there.
    fn offer_r(&mut self, sim: &mut Sim, host: &mut impl HostBus, now: u64) {
        if self.current.is_none() {
            let n = self.reads.len();
            let first = if self.timing.reorder { self.rng.below(n as u64) as usize } else { 0 };
            let most = if self.timing.reorder { n } else { n.min(1) };
            let mut turns = (0..most).map(|k| (first + k) % n);
            self.current = turns.find(|k| {
                // Answers of one id keep their order.
                let id = self.reads[*k].id;
                self.reads[*k].at <= now && !self.reads.iter().take(*k).any(|r| r.id == id)
            });
        }
        let Some(read) = self.current.map(|k| &self.reads[k]).filter(|r| r.at <= now) else {
            return;
        };
        let [id, data, resp, last] = self.r.payload;
        let at = (read.addr & !63).wrapping_add((read.done * BEAT) as u64);
        let mut answer = read.resp;
        if answer == OKAY {
            answer = match host.read(at, sim.raw_mut(data)) {
                Ok(()) => OKAY,
                Err(HostFault::Unreachable) => DECERR,
                Err(HostFault::Poisoned) => SLVERR,
            };
        }
        if answer != OKAY {
            sim.fill(data, 0xff);
        }
        sim.set(id, read.id);
        sim.set(resp, answer);
        sim.set(last, u64::from(read.done + 1 == read.beats));
        self.r_since = Some(now + 1);
    }

    /// Answers of one id keep their order.
    fn next_answer(&mut self) -> Option<(u64, u64)> {
        let n = self.answers.len();
        let k = if self.timing.reorder { self.rng.below(n as u64) as usize } else { 0 };
        let id = self.answers.get(k)?.0;
        let first = self.answers.iter().position(|(other, _)| *other == id)?;
        self.answers.remove(first)
    }
}

/// Writes the bytes of a beat that have a strobe.
fn store(
    host: &mut impl HostBus,
    at: u64,
    data: &[u8],
    strobes: u64,
) -> std::result::Result<(), HostFault> {
    let mut k = 0;
    while k < BEAT as u32 {
        let run = (!(strobes >> k)).trailing_zeros().min(BEAT as u32 - k);
        if run == 0 {
            k += (strobes >> k).trailing_zeros().clamp(1, BEAT as u32 - k);
        } else {
            host.write(at + u64::from(k), &data[k as usize..][..run as usize])?;
            k += run;
        }
    }
    Ok(())
}
