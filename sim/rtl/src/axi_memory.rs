//! An AXI4 memory (64-byte data, 8-bit ids, 64-bit addresses) on the master port of a design: fast
//! and compliant, or slow, failing and hostile on demand.

use crate::agent::{Agent, Rng, Stalls};
use crate::burst::{AxiBurst, BEAT};
use crate::memory::SparseMemory;
use crate::unshielded::{Unshielded, WriteBeat};
use crate::{Port, Result, Sim};
use std::collections::VecDeque;
use std::ops::Range;

/// AXI response: okay.
pub const OKAY: u64 = 0;
/// AXI response: slave error.
pub const SLVERR: u64 = 2;
/// AXI response: no slave at this address.
pub const DECERR: u64 = 3;

/// A protocol violation of the memory, committed once, at the next opportunity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hostile {
    /// An unsolicited read beat (with RLAST).
    UnownedR {
        /// Its id.
        id: u8,
    },
    /// An unsolicited write response.
    UnownedB {
        /// Its id.
        id: u8,
    },
    /// The next read burst is answered with its id xor this.
    WrongRid(u8),
    /// The next write answer has its id xor this.
    WrongBid(u8),
    /// The next read burst of two beats or more ends one beat early, with RLAST.
    EarlyLast,
    /// The next read burst's RLAST comes one beat late.
    LateLast,
    /// The next read burst never has RLAST.
    MissingLast,
    /// The next read burst is never answered.
    LoseRead,
    /// The next write burst is never answered.
    LoseWrite,
    /// The next write burst is answered twice.
    DoubleB,
}

/// Timing of the memory.
#[derive(Debug, Clone)]
pub struct AxiMemoryConfig {
    /// Minimum number of cycles from the AR handshake to the first beat (at least 1).
    pub read_latency: u64,
    /// Minimum number of cycles from the last W handshake to B (at least 1).
    pub write_latency: u64,
    /// Further cycles of latency, by chance: seven times in eight up to a sixteenth of this number,
    /// else up to all of it; needs `stalls`.
    pub jitter: u64,
    /// Most accepted bursts that may be unanswered, for reads and for writes separately.
    pub outstanding: usize,
    /// Seed of random stalls on all five channels; without a seed, no stalls (benches).
    pub stalls: Option<u64>,
    /// Whether answers of different ids may overtake each other (burst by burst); needs `stalls`.
    pub reorder: bool,
}

impl Default for AxiMemoryConfig {
    fn default() -> Self {
        Self {
            read_latency: 20,
            write_latency: 12,
            jitter: 0,
            outstanding: 64,
            stalls: Some(1),
            reorder: false,
        }
    }
}

impl AxiMemoryConfig {
    /// No stalls and a fixed latency: for measurements.
    #[must_use]
    pub fn bench(read_latency: u64, write_latency: u64) -> Self {
        Self { read_latency, write_latency, stalls: None, ..Self::default() }
    }

    /// Random stalls and reordering from this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { stalls: Some(seed), reorder: true, ..Self::default() }
    }
}

/// Bus traffic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusCounters {
    /// Read bursts accepted.
    pub reads: u64,
    /// Read beats delivered.
    pub read_beats: u64,
    /// Write bursts accepted.
    pub writes: u64,
    /// Write beats accepted.
    pub write_beats: u64,
    /// Write answers delivered.
    pub answers: u64,
}

impl std::ops::Add for BusCounters {
    type Output = Self;

    fn add(self, o: Self) -> Self {
        Self {
            reads: self.reads + o.reads,
            read_beats: self.read_beats + o.read_beats,
            writes: self.writes + o.writes,
            write_beats: self.write_beats + o.write_beats,
            answers: self.answers + o.answers,
        }
    }
}

/// Changes a beat in flight; the first argument is the beat's address.
pub type ReadHook = Box<dyn FnMut(u64, &mut [u8; BEAT]) + Send>;
/// Changes a beat and its strobes before it is stored.
pub type WriteHook = Box<dyn FnMut(u64, &mut [u8; BEAT], &mut u64) + Send>;

/// The five channels of an AXI4 port of a design, master or slave.
pub(crate) struct Ports {
    /// valid, ready, id, addr, len, size, burst
    pub ar: [Port; 7],
    /// valid, ready, id, data, resp, last
    pub r: [Port; 6],
    /// As `ar`.
    pub aw: [Port; 7],
    /// valid, ready, data, strb, last
    pub w: [Port; 5],
    /// valid, ready, id, resp
    pub b: [Port; 4],
    /// The pending offer on each of AR, AW and W.
    held: [Option<(u64, u64)>; 3],
}

impl Ports {
    pub fn new(sim: &Sim, prefix: &str) -> Result<Self> {
        let port = |n: &str, bits: u32| sim.port_of(&format!("{prefix}{n}"), bits);
        let ax = |c: &str| -> Result<[Port; 7]> {
            Ok([
                port(&format!("{c}valid"), 1)?,
                port(&format!("{c}ready"), 1)?,
                port(&format!("{c}id"), 8)?,
                port(&format!("{c}addr"), 64)?,
                port(&format!("{c}len"), 8)?,
                port(&format!("{c}size"), 3)?,
                port(&format!("{c}burst"), 2)?,
            ])
        };
        Ok(Self {
            ar: ax("ar")?,
            aw: ax("aw")?,
            r: [
                port("rvalid", 1)?,
                port("rready", 1)?,
                port("rid", 8)?,
                port("rdata", 512)?,
                port("rresp", 2)?,
                port("rlast", 1)?,
            ],
            w: [
                port("wvalid", 1)?,
                port("wready", 1)?,
                port("wdata", 512)?,
                port("wstrb", 64)?,
                port("wlast", 1)?,
            ],
            b: [port("bvalid", 1)?, port("bready", 1)?, port("bid", 8)?, port("bresp", 2)?],
            held: [None; 3],
        })
    }

    /// Forgets pending offers (when the design is reset).
    pub fn reset(&mut self, sim: &mut Sim) {
        self.held = [None; 3];
        for p in [self.r[VALID], self.b[VALID]] {
            sim.set(p, 0);
        }
    }

    /// A valid request must stay unchanged until it is accepted. Returns the violation on AR (0),
    /// AW (1) or W (2).
    pub fn unsteady(
        &mut self,
        sim: &Sim,
        channel: usize,
        valid: bool,
        ready: bool,
    ) -> Option<String> {
        let waits = valid && !ready;
        let before = self.held[channel].take();
        if before.is_none() && !waits {
            return None;
        }
        let g = |p: Port| sim.get(p);
        let now = match channel {
            0 => (g(self.ar[3]), g(self.ar[2]) << 8 | g(self.ar[4])),
            1 => (g(self.aw[3]), g(self.aw[2]) << 8 | g(self.aw[4])),
            _ => {
                let mut h = g(self.w[4]);
                for c in sim.raw(self.w[2]).chunks_exact(8) {
                    let x = u64::from_le_bytes(c.try_into().unwrap_or([0; 8]));
                    h = (h.rotate_left(5) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                }
                (h, g(self.w[3]))
            }
        };
        self.held[channel] = waits.then_some(now);
        let name = ["AR", "AW", "W"][channel];
        if before.is_some() && !valid {
            Some(format!("{name} was withdrawn before it was accepted"))
        } else if before.is_some_and(|b| b != now) {
            Some(format!("{name} changed before it was accepted"))
        } else {
            None
        }
    }
}

#[derive(Clone, Copy)]
struct Burst {
    id: u8,
    axi: AxiBurst,
    /// All its beats are refused.
    refused: bool,
    beats: u32,
    done: u32,
    at: u64,
    resp: u64,
    hostile: Option<Hostile>,
}

/// Index of valid in the channels of [`Ports`].
pub(crate) const VALID: usize = 0;
/// Index of ready.
pub(crate) const READY: usize = 1;

/// AXI4 slave with a [`SparseMemory`] on the ports `<prefix>ar*`, `r*`, `aw*`, `w*`, `b*`.
///
/// It also checks the master: bursts must be INCR of whole beats inside a 4 KiB page, WLAST must be
/// on the last beat, and a valid request must stay unchanged until it is accepted
/// ([`AxiMemory::violations`]). With [`AxiMemory::unshielded`], the master is an accelerator without a
/// Shield: any size and alignment is legal, and what its Shield would refuse is answered with SLVERR.
pub struct AxiMemory {
    p: Ports,
    /// The bytes.
    pub memory: SparseMemory,
    /// Timing.
    pub config: AxiMemoryConfig,
    /// Counts since the start.
    pub counters: BusCounters,
    /// Reads of beats in these ranges answer SLVERR, as do write bursts that touch them.
    pub error_ranges: Vec<Range<u64>>,
    /// The rules for an accelerator without a Shield; `None` for the port of a Shield.
    pub unshielded: Option<Box<Unshielded>>,
    /// Bursts that start at these addresses are accepted and never answered.
    pub silent_ranges: Vec<Range<u64>>,
    /// While set, no channel moves.
    pub frozen: bool,
    on_read: Option<ReadHook>,
    on_write: Option<WriteHook>,
    hostile: VecDeque<Hostile>,
    violations: Vec<String>,
    stalls: Stalls,
    rng: Rng,
    now: u64,
    reads: VecDeque<Burst>,
    writes: VecDeque<Burst>,
    early_w: VecDeque<([u8; BEAT], u64, bool)>,
    answers: VecDeque<Burst>,
    /// Index into `reads` of the burst whose beat is on R.
    current_r: Option<usize>,
    r_on: bool,
    b_on: bool,
    ready: [bool; 3],
    r_taken: bool,
    b_taken: bool,
    extra_r: bool,
    quiet: bool,
}

impl AxiMemory {
    /// Binds to the ports with this prefix (for example `mem0_`).
    ///
    /// # Errors
    /// When a port is missing or has another width.
    pub fn new(sim: &Sim, prefix: &str, config: AxiMemoryConfig) -> Result<Self> {
        Ok(Self {
            p: Ports::new(sim, prefix)?,
            memory: SparseMemory::new(),
            stalls: config.stalls.map_or_else(Stalls::off, Stalls::seeded),
            rng: Rng::new(config.stalls.unwrap_or(0) ^ 0x5eed),
            config,
            counters: BusCounters::default(),
            error_ranges: Vec::new(),
            unshielded: None,
            silent_ranges: Vec::new(),
            frozen: false,
            on_read: None,
            on_write: None,
            hostile: VecDeque::new(),
            violations: Vec::new(),
            now: 0,
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            early_w: VecDeque::new(),
            answers: VecDeque::new(),
            current_r: None,
            r_on: false,
            b_on: false,
            ready: [false; 3],
            r_taken: false,
            b_taken: false,
            extra_r: false,
            quiet: false,
        })
    }

    /// Changes read beats before they reach the design.
    pub fn on_read(&mut self, f: impl FnMut(u64, &mut [u8; BEAT]) + Send + 'static) {
        self.on_read = Some(Box::new(f));
    }

    /// Changes write beats before they are stored.
    pub fn on_write(&mut self, f: impl FnMut(u64, &mut [u8; BEAT], &mut u64) + Send + 'static) {
        self.on_write = Some(Box::new(f));
    }

    /// Removes both hooks.
    pub fn clear_hooks(&mut self) {
        self.on_read = None;
        self.on_write = None;
    }

    /// Violates the protocol once, at the next opportunity; several violations are committed in
    /// order.
    pub fn inject(&mut self, h: Hostile) {
        self.hostile.push_back(h);
    }

    /// Removes all error ranges, silent ranges and pending violations.
    pub fn behave(&mut self) {
        self.error_ranges.clear();
        self.silent_ranges.clear();
        self.hostile.clear();
    }

    /// Whether every injected violation has happened.
    #[must_use]
    pub fn injected_all(&self) -> bool {
        self.hostile.is_empty()
    }

    /// Protocol violations of the master (the first 16).
    #[must_use]
    pub fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Whether every accepted burst is answered.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.reads.is_empty()
            && self.writes.is_empty()
            && self.answers.is_empty()
            && self.early_w.is_empty()
    }

    /// Forgets all bursts in flight (when the design is reset).
    pub fn reset(&mut self, sim: &mut Sim) {
        self.reads.clear();
        self.writes.clear();
        self.early_w.clear();
        self.answers.clear();
        self.current_r = None;
        (self.r_on, self.b_on, self.extra_r) = (false, false, false);
        (self.r_taken, self.b_taken) = (false, false);
        self.quiet = false;
        if let Some(rules) = &mut self.unshielded {
            rules.new_epoch();
        }
        self.p.reset(sim);
    }

    fn violation(&mut self, what: String) {
        if self.violations.len() < 16 {
            self.violations.push(format!("cycle {}: {what}", self.now));
        }
    }

    fn hit(ranges: &[Range<u64>], addr: u64, len: u64) -> bool {
        ranges.iter().any(|r| addr < r.end && addr.saturating_add(len) > r.start)
    }

    fn take_hostile(&mut self, want: impl Fn(Hostile) -> bool) -> Option<Hostile> {
        if self.hostile.front().is_some_and(|h| want(*h)) { self.hostile.pop_front() } else { None }
    }

    #[expect(clippy::cast_possible_truncation, reason = "ports of known width")]
    fn request(&mut self, sim: &Sim, write: bool) -> Burst {
        let p = if write { &self.p.aw } else { &self.p.ar };
        let v = [2, 3, 4, 5, 6].map(|i: usize| sim.get(p[i]));
        let [id, addr, len, size, burst] = v;
        let beats = len as u32 + 1;
        let mut axi = AxiBurst { write, addr, beats, size: size as u8, burst: burst as u8 };
        let refused = self.unshielded.as_ref().is_some_and(|rules| rules.refuses(axi));
        if self.unshielded.is_none() {
            let name = if write { "write" } else { "read" };
            if size != 6 || burst != 1 {
                self.violation(format!("{name} of {addr:#x} with size {size}, burst {burst}"));
            }
            if addr % 64 != 0 || axi.crosses_page() {
                self.violation(format!(
                    "{name} of {beats} beats at {addr:#x} is not aligned or crosses a page"
                ));
            }
            axi = AxiBurst { addr: addr & !63, size: 6, ..axi };
        }
        Burst { id: id as u8, axi, refused, beats, done: 0, at: 0, resp: OKAY, hostile: None }
    }

    fn store(&mut self, addr: u64, mut data: [u8; BEAT], mut strb: u64) {
        if let Some(f) = &mut self.on_write {
            f(addr, &mut data, &mut strb);
        }
        if strb == u64::MAX {
            self.memory.write(addr, &data);
        } else {
            let mut old = [0; BEAT];
            self.memory.read(addr, &mut old);
            for (i, (o, d)) in old.iter_mut().zip(data).enumerate() {
                if strb >> i & 1 == 1 {
                    *o = d;
                }
            }
            self.memory.write(addr, &old);
        }
    }

    /// Whether a written beat is refused. The first beat of a chunk makes the rest of it zeros.
    fn refuses_beat(&mut self, line: u64, strb: u64) -> bool {
        match self.unshielded.as_mut().map(|rules| rules.write(line, strb)) {
            Some(WriteBeat::Refused) => true,
            Some(WriteBeat::First(chunk, len)) => {
                (chunk..chunk + len).step_by(BEAT).for_each(|at| self.memory.write(at, &[0; BEAT]));
                false
            }
            Some(WriteBeat::Stored) | None => false,
        }
    }

    /// A W beat for the oldest write burst.
    fn write_beat(&mut self, data: [u8; BEAT], strb: u64, last: bool) {
        let Some(b) = self.writes.front_mut() else { return };
        let addr = b.axi.line(b.done);
        b.done += 1;
        let (end, burst) = (b.done == b.beats, *b);
        if last != end {
            self.violation(format!(
                "WLAST {} at beat {} of {}",
                u8::from(last),
                burst.done,
                burst.beats
            ));
        }
        let refused = burst.refused || self.refuses_beat(addr, strb);
        let failed = refused || Self::hit(&self.error_ranges, addr, BEAT as u64);
        if failed {
            if let Some(b) = self.writes.front_mut() {
                b.resp = SLVERR;
            }
        } else {
            self.store(addr, data, strb);
        }
        if end && let Some(rules) = &mut self.unshielded {
            rules.end_of_write();
        }
        if end && let Some(mut b) = self.writes.pop_front() {
            if Self::hit(&self.silent_ranges, b.axi.addr, 1) {
                return;
            }
            b.at = self.now + self.config.write_latency.max(1) + self.late();
            b.hostile = self.take_hostile(|h| {
                matches!(h, Hostile::WrongBid(_) | Hostile::LoseWrite | Hostile::DoubleB)
            });
            match b.hostile {
                Some(Hostile::LoseWrite) => {}
                Some(Hostile::DoubleB) => self.answers.extend([b, b]),
                _ => self.answers.push_back(b),
            }
        }
    }

    /// Random cycles of latency.
    fn late(&mut self) -> u64 {
        match self.config {
            AxiMemoryConfig { jitter: 1.., stalls: Some(_), .. } => {
                let most = self.config.jitter;
                let most = if self.rng.one_in(8) { most } else { most / 16 };
                self.rng.below(most + 1)
            }
            _ => 0,
        }
    }

    /// Picks a due entry: the oldest, or with reordering any entry without an older one of its id.
    fn pick(q: &VecDeque<Burst>, now: u64, reorder: bool, rng: &mut Rng) -> Option<usize> {
        if q.is_empty() {
            return None;
        }
        if !reorder {
            return (q[0].at <= now).then_some(0);
        }
        let window = q.len().min(8);
        let i = usize::try_from(rng.below(window as u64)).unwrap_or(0);
        let id = q[i].id;
        let first = q.iter().position(|b| b.id == id)?;
        (q[first].at <= now).then_some(first)
    }

    fn present_r(&mut self, sim: &mut Sim, i: usize) {
        let b = self.reads[i];
        let addr = b.axi.line(b.done);
        let refused =
            b.refused || self.unshielded.as_ref().is_some_and(|rules| !rules.can_read(addr));
        let failed = refused || Self::hit(&self.error_ranges, addr, BEAT as u64);
        let data = sim.raw_mut(self.p.r[3]);
        if refused {
            data.fill(0);
        } else if failed {
            data.fill(0xee);
        } else {
            self.memory.read(addr, data);
        }
        if let Some(f) = &mut self.on_read
            && let Ok(d) = <&mut [u8; BEAT]>::try_from(data)
        {
            f(addr, d);
        }
        let last = match b.hostile {
            Some(Hostile::EarlyLast) => b.done + 2 >= b.beats,
            Some(Hostile::LateLast) => b.done == b.beats,
            Some(Hostile::MissingLast) => false,
            _ => b.done + 1 == b.beats,
        };
        let id = match b.hostile {
            Some(Hostile::WrongRid(x)) => b.id ^ x,
            _ => b.id,
        };
        sim.set(self.p.r[2], u64::from(id));
        sim.set(self.p.r[4], if failed { SLVERR } else { OKAY });
        sim.set(self.p.r[5], u64::from(last));
        sim.set(self.p.r[VALID], 1);
        self.r_on = true;
    }

    /// Number of beats that the burst actually has, after a violation.
    fn beats_of(b: &Burst) -> u32 {
        match b.hostile {
            Some(Hostile::EarlyLast) => b.beats - 1,
            Some(Hostile::LateLast) => b.beats + 1,
            _ => b.beats,
        }
    }
}

impl Agent for AxiMemory {
    fn sample(&mut self, sim: &Sim) {
        self.now += 1;
        let arv = sim.get(self.p.ar[VALID]) != 0;
        let awv = sim.get(self.p.aw[VALID]) != 0;
        let wv = sim.get(self.p.w[VALID]) != 0;
        let [arr, awr, wr] = self.ready;
        if self.quiet && !(arv || awv || wv) {
            return;
        }
        self.quiet = false;
        for (channel, valid, ready) in [(0, arv, arr), (1, awv, awr), (2, wv, wr)] {
            if let Some(what) = self.p.unsteady(sim, channel, valid, ready) {
                self.violation(what);
            }
        }
        if arv && arr {
            let mut b = self.request(sim, false);
            b.at = self.now + self.config.read_latency.max(1) - 1 + self.late();
            self.counters.reads += 1;
            b.hostile = self.take_hostile(|h| match h {
                Hostile::WrongRid(_)
                | Hostile::LateLast
                | Hostile::MissingLast
                | Hostile::LoseRead => true,
                Hostile::EarlyLast => b.beats > 1,
                _ => false,
            });
            if b.hostile != Some(Hostile::LoseRead)
                && !Self::hit(&self.silent_ranges, b.axi.addr, 1)
            {
                self.reads.push_back(b);
            }
        }
        if awv && awr {
            let b = self.request(sim, true);
            self.counters.writes += 1;
            self.writes.push_back(b);
        }
        if wv && wr {
            let mut data = [0; BEAT];
            data.copy_from_slice(sim.raw(self.p.w[2]));
            let (strb, last) = (sim.get(self.p.w[3]), sim.get(self.p.w[4]) != 0);
            self.counters.write_beats += 1;
            self.early_w.push_back((data, strb, last));
        }
        while !self.writes.is_empty()
            && let Some((data, strb, last)) = self.early_w.pop_front()
        {
            self.write_beat(data, strb, last);
        }
        self.r_taken = self.r_on && sim.get(self.p.r[READY]) != 0;
        self.b_taken = self.b_on && sim.get(self.p.b[READY]) != 0;
    }

    fn drive(&mut self, sim: &mut Sim) {
        if self.quiet && self.hostile.is_empty() {
            return;
        }
        self.stalls.step();
        if self.r_taken {
            self.r_taken = false;
            self.r_on = false;
            self.counters.read_beats += 1;
            if self.extra_r {
                self.extra_r = false;
            } else if let Some(i) = self.current_r {
                self.reads[i].done += 1;
                if self.reads[i].done >= Self::beats_of(&self.reads[i]) {
                    self.reads.remove(i);
                    self.current_r = None;
                }
            }
        }
        if self.b_taken {
            self.b_taken = false;
            self.b_on = false;
            self.counters.answers += 1;
        }
        if !self.r_on {
            let mut on = false;
            if !self.frozen && !self.stalls.stalled(3) {
                if self.current_r.is_none() {
                    if let Some(Hostile::UnownedR { id }) =
                        self.take_hostile(|h| matches!(h, Hostile::UnownedR { .. }))
                    {
                        sim.set(self.p.r[2], u64::from(id));
                        sim.raw_mut(self.p.r[3]).fill(0x5a);
                        sim.set(self.p.r[4], OKAY);
                        sim.set(self.p.r[5], 1);
                        sim.set(self.p.r[VALID], 1);
                        (self.r_on, self.extra_r, on) = (true, true, true);
                    } else {
                        self.current_r =
                            Self::pick(&self.reads, self.now, self.config.reorder, &mut self.rng);
                    }
                }
                if !on && let Some(i) = self.current_r {
                    self.present_r(sim, i);
                    on = true;
                }
            }
            if !on {
                sim.set(self.p.r[VALID], 0);
            }
        }
        if !self.b_on {
            let mut on = false;
            if !self.frozen && !self.stalls.stalled(4) {
                if let Some(Hostile::UnownedB { id }) =
                    self.take_hostile(|h| matches!(h, Hostile::UnownedB { .. }))
                {
                    sim.set(self.p.b[2], u64::from(id));
                    sim.set(self.p.b[3], OKAY);
                    on = true;
                } else if let Some(i) =
                    Self::pick(&self.answers, self.now, self.config.reorder, &mut self.rng)
                    && let Some(b) = self.answers.remove(i)
                {
                    let id =
                        if let Some(Hostile::WrongBid(x)) = b.hostile { b.id ^ x } else { b.id };
                    sim.set(self.p.b[2], u64::from(id));
                    sim.set(self.p.b[3], b.resp);
                    on = true;
                }
            }
            self.b_on = on;
            sim.set(self.p.b[VALID], u64::from(on));
        }
        let room = self.config.outstanding;
        let go = !self.frozen;
        self.ready = [
            go && self.reads.len() < room && !self.stalls.stalled(0),
            go && self.writes.len() + self.answers.len() < room && !self.stalls.stalled(1),
            go && self.early_w.len() < 4 && !self.stalls.stalled(2),
        ];
        sim.set(self.p.ar[READY], u64::from(self.ready[0]));
        sim.set(self.p.aw[READY], u64::from(self.ready[1]));
        sim.set(self.p.w[READY], u64::from(self.ready[2]));
        self.quiet = self.ready == [true; 3] && !self.r_on && !self.b_on && self.idle();
    }
}
