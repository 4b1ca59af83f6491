//! A master of AXI4-Lite in the shell: OCL and SDA.

use super::detector::{Detector, LIMIT, SHORT};
use super::rules::{Record, Rule};
use super::wire::{Bundle, Channel};
use crate::agent::Stalls;
use crate::{Result, Sim};
use std::collections::VecDeque;

/// The rules of one interface.
struct Rules {
    read: Rule,
    write: Rule,
    r_unasked: Rule,
    b_unasked: Rule,
    r_steady: Rule,
    b_steady: Rule,
    /// A word that must not be read, and its rule.
    magic: Option<(u32, Rule)>,
}

const OCL: Rules = Rules {
    read: Rule::OclRead,
    write: Rule::OclWrite,
    r_unasked: Rule::OclRUnasked,
    b_unasked: Rule::OclBUnasked,
    r_steady: Rule::OclRSteady,
    b_steady: Rule::OclBSteady,
    magic: None,
};

const SDA: Rules = Rules {
    read: Rule::SdaRead,
    write: Rule::SdaWrite,
    r_unasked: Rule::SdaRUnasked,
    b_unasked: Rule::SdaBUnasked,
    r_steady: Rule::SdaRSteady,
    b_steady: Rule::SdaBSteady,
    magic: Some((0x9048_1d0f, Rule::SdaMagic)),
};

/// An access of 32 bits.
#[derive(Debug, Clone, Copy)]
struct Access {
    tag: u64,
    addr: u32,
    /// Data and strobes of a write.
    write: Option<(u32, u8)>,
    /// Cycle of its first VALID.
    since: u64,
    /// The channels on which it still has to be offered: AR or AW, and W.
    unoffered: [bool; 2],
    /// The channels on which it still has to be accepted.
    unaccepted: [bool; 2],
    /// The host has its answer already: the CL was too late.
    late: bool,
}

/// A master with one access in flight, as reads push writes before them.
pub(crate) struct LiteMaster {
    rules: Rules,
    aw: Channel<1>,
    w: Channel<2>,
    b: Channel<1>,
    ar: Channel<1>,
    r: Channel<2>,
    detector: Detector,
    queue: VecDeque<Access>,
    open: Option<Access>,
    done: VecDeque<(u64, u32)>,
    tags: u64,
    stalls: Stalls,
    ready: [bool; 2],
    /// Answers other than OKAY.
    pub errors: u64,
    /// The longest access, in cycles.
    pub worst: u64,
}

impl LiteMaster {
    pub fn ocl(sim: &Sim, stalls: Stalls, recovers: bool) -> Result<Self> {
        Self::new(Bundle { sim, from_cl: "cl_ocl_", to_cl: "ocl_cl_" }, OCL, stalls, recovers)
    }

    pub fn sda(sim: &Sim, stalls: Stalls, recovers: bool) -> Result<Self> {
        Self::new(Bundle { sim, from_cl: "cl_sda_", to_cl: "sda_cl_" }, SDA, stalls, recovers)
    }

    fn new(bundle: Bundle<'_>, rules: Rules, stalls: Stalls, recovers: bool) -> Result<Self> {
        Ok(Self {
            rules,
            aw: bundle.channel("aw", false, [("addr", 32)])?,
            w: bundle.channel("w", false, [("data", 32), ("strb", 4)])?,
            b: bundle.channel("b", true, [("resp", 2)])?,
            ar: bundle.channel("ar", false, [("addr", 32)])?,
            r: bundle.channel("r", true, [("data", 32), ("resp", 2)])?,
            detector: Detector::new(recovers),
            queue: VecDeque::new(),
            open: None,
            done: VecDeque::new(),
            tags: 0,
            stalls,
            ready: [false; 2],
            errors: 0,
            worst: 0,
        })
    }

    /// Begins a read; [`LiteMaster::take`] gives its word.
    pub fn read(&mut self, addr: u32) -> u64 {
        self.begin(addr, None)
    }

    /// Begins a write of the bytes that `strobes` selects.
    pub fn write(&mut self, addr: u32, data: u32, strobes: u8) -> u64 {
        self.begin(addr, Some((data, strobes)))
    }

    fn begin(&mut self, addr: u32, write: Option<(u32, u8)>) -> u64 {
        self.tags += 1;
        let both = [true, write.is_some()];
        let (tag, since) = (self.tags, 0);
        let (unoffered, unaccepted) = (both, both);
        self.queue.push_back(Access {
            tag,
            addr,
            write,
            since,
            unoffered,
            unaccepted,
            late: false,
        });
        tag
    }

    /// Tag and word of the next answered access, in order; the word of a write is 0.
    pub fn take(&mut self) -> Option<(u64, u32)> {
        self.done.pop_front()
    }

    /// Late accesses, and the address of the last one.
    pub fn metrics(&self) -> (u64, u64) {
        (self.detector.late, self.detector.address)
    }

    /// Whether an access is in flight or waits.
    pub fn busy(&self) -> bool {
        self.open.is_some_and(|a| !a.late) || !self.queue.is_empty()
    }

    /// A reset begins: the host receives all ones for what is in flight.
    pub fn lose(&mut self, sim: &mut Sim) {
        for port in [self.aw.valid, self.w.valid, self.ar.valid] {
            sim.set(port, 0);
        }
        if let Some(access) = &mut self.open {
            access.unoffered = [false; 2];
            if !std::mem::replace(&mut access.late, true) {
                let access = *access;
                self.answer(access, u32::MAX);
            }
        }
        let waiting: Vec<Access> = self.queue.drain(..).collect();
        waiting.into_iter().for_each(|access| self.answer(access, u32::MAX));
    }

    /// A reset ends: the CL no longer owes an answer.
    pub fn forget(&mut self) {
        self.open = None;
        self.r.forget();
        self.b.forget();
    }

    fn answer(&mut self, access: Access, word: u32) {
        self.done.push_back((access.tag, if access.write.is_some() { 0 } else { word }));
    }

    /// Before the edge of cycle `to.cycle`.
    pub fn sample(&mut self, sim: &Sim, to: &mut Record) {
        let now = to.cycle;
        let (r, b) = (self.r.handshake(sim), self.b.handshake(sim));
        self.r.steady(sim, r, self.rules.r_steady, to);
        self.b.steady(sim, b, self.rules.b_steady, to);
        let expects = self.open.filter(|a| a.unaccepted == [false; 2]).map(|a| a.write.is_some());
        if r.0 && r.1 {
            if expects == Some(false) {
                let [data, resp] = self.r.values(sim);
                self.complete(now, data as u32, resp, to);
            } else {
                to.unasked(self.rules.r_unasked, &*self.r.signal, "no read is open");
            }
        }
        if b.0 && b.1 {
            if expects == Some(true) {
                let [resp] = self.b.values(sim);
                self.complete(now, 0, resp, to);
            } else {
                to.unasked(self.rules.b_unasked, &*self.b.signal, "no write is open");
            }
        }
        let Some(access) = &mut self.open else { return };
        let taken = |(valid, ready): (bool, bool)| valid && ready;
        if access.write.is_none() {
            access.unaccepted[0] &= !taken(self.ar.handshake(sim));
        } else {
            access.unaccepted[0] &= !taken(self.aw.handshake(sim));
            access.unaccepted[1] &= !taken(self.w.handshake(sim));
        }
        if !access.late && access.since != 0 && now - access.since > LIMIT {
            access.late = true;
            let access = *access;
            let (rule, signal) = match access.write {
                None => (self.rules.read, &self.r.signal),
                Some(_) => (self.rules.write, &self.b.signal),
            };
            to.broken(rule, &**signal, format!("no answer at {:#x}", access.addr));
            self.detector.trip(now, u64::from(access.addr), access.write.is_some());
            self.worst = self.worst.max(now - access.since);
            self.answer(access, u32::MAX);
        }
    }

    fn complete(&mut self, now: u64, word: u32, resp: u64, to: &mut Record) {
        let Some(access) = self.open.take() else { return };
        if access.late {
            return;
        }
        self.errors += u64::from(resp != 0);
        self.worst = self.worst.max(now - access.since);
        if let Some((magic, rule)) = self.rules.magic
            && access.write.is_none()
            && word == magic
        {
            to.broken(rule, self.r.signal.replace("valid", "data"), format!("{word:#x}"));
        }
        self.answer(access, word);
    }

    /// After the edge of cycle `now`.
    pub fn drive(&mut self, sim: &mut Sim, now: u64) {
        self.stalls.step();
        if self.detector.closed(now) || self.open.is_some_and(|a| a.late) {
            // Or behind an access that the CL still owes an answer.
            self.time_out(now);
        } else if self.open.is_none()
            && let Some(mut access) = self.queue.pop_front()
        {
            access.since = now + 1;
            self.open = Some(access);
        }
        if let Some(access) = &mut self.open {
            let first = if access.write.is_some() { &self.aw } else { &self.ar };
            if !access.unaccepted[0] {
                sim.set(first.valid, 0);
            }
            if !access.unaccepted[1] {
                sim.set(self.w.valid, 0);
            }
            if access.unoffered[0] && !self.stalls.stalled(0) {
                access.unoffered[0] = false;
                sim.set(first.payload[0], u64::from(access.addr));
                sim.set(first.valid, 1);
            }
            if access.unoffered[1] && !self.stalls.stalled(1) {
                access.unoffered[1] = false;
                let (data, strobes) = access.write.unwrap_or_default();
                sim.set(self.w.payload[0], u64::from(data));
                sim.set(self.w.payload[1], u64::from(strobes));
                sim.set(self.w.valid, 1);
            }
        }
        for (k, channel) in [(0, self.r.ready), (1, self.b.ready)] {
            let ready = !self.stalls.stalled(3 + k);
            if ready != self.ready[k as usize] {
                self.ready[k as usize] = ready;
                sim.set(channel, u64::from(ready));
            }
        }
    }

    /// The next access waits for 16 ns and is then answered by the shell.
    fn time_out(&mut self, now: u64) {
        let Some(access) = self.queue.front_mut() else { return };
        if access.since == 0 {
            access.since = now;
        } else if now - access.since >= SHORT
            && let Some(access) = self.queue.pop_front()
        {
            self.answer(access, u32::MAX);
        }
    }
}
