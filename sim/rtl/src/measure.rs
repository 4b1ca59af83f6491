//! Measures a job at the ports of an accelerator: the cycles from the write that starts it to its end,
//! and what each port does in them.
//!
//! The *start* is the cycle in which the registers accept this write: AW and W, whichever comes
//! later. The *end* is the first cycle in which the status register has the value of a job that is
//! done: a read whose AR the registers accept in this cycle returns it.
//!
//! No access of the design finds the end. Copies of the accelerator (`shef_bare_top`) receive the
//! same inputs in every cycle, so they are in the same state. From the start on, only the copies are
//! read: one of them in each cycle, in turn. A copy whose outputs differ from the accelerator's ends
//! the measurement.

use crate::check::DoneRegister;
use crate::progress::{AR, AW, B, Follow, Follower, R, RST_N, W};
use crate::{Error, Library, Port, Result, Sim};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Copies of the accelerator with which the end is exact: a read takes two or three cycles, so that
/// one copy is free in each.
pub const EXACT: usize = 4;
/// Cycles of a reset, as [`crate::CoreSim::reset`] has.
const RESET: u64 = 4;
/// Signals of the registers that do not depend on reads: AW, W, B and the reset.
const NO_READS: u64 = 0x3f0 | RST_N;

/// A job to measure.
#[derive(Debug, Clone)]
pub struct MeasuredJob {
    /// Writes of registers before the one that starts it.
    pub writes: u64,
    /// Offset of the register whose write starts it.
    pub start: u16,
    /// The register that shows its end.
    pub done: DoneRegister,
    /// Byte addresses of regions, whose bursts are counted.
    pub regions: Vec<Range<u64>>,
    /// Copies of the accelerator, at least one. With [`EXACT`] of them the end is exact; each takes as
    /// long to simulate as the accelerator.
    pub copies: usize,
}

/// Bursts of a direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// Accepted requests.
    pub count: u64,
    /// Bytes of these requests.
    pub bytes: u64,
    /// Bursts that were answered: with the first beat of a read, or the response to a write.
    pub answered: u64,
    /// Sum of the cycles of these answers: from the request of a read, and from the last beat (or the
    /// request, if it comes later) of a write.
    pub cycles: u64,
}

impl Bursts {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn answer(&mut self, cycles: u64) {
        self.answered += 1;
        self.cycles += cycles;
    }
}

/// One direction of a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Its bursts.
    pub bursts: Bursts,
    /// Beats of data.
    pub beats: u64,
    /// Cycles with a burst in flight.
    pub busy: u64,
    /// Sum over these cycles of the bursts in flight.
    pub in_flight: u64,
}

/// Cycles in which the accelerator waits at a port and no beat of data passes, by the channels for
/// which it waits. It waits for READY of AR, AW and W, and for VALID of R and B while a burst is in
/// flight whose data (B: all of them) are due. It may wait for several at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// READY of a read request.
    pub ar: u64,
    /// Read data.
    pub r: u64,
    /// READY of a write request.
    pub aw: u64,
    /// READY of write data.
    pub w: u64,
    /// A response to a write.
    pub b: u64,
}

/// What a memory port does during a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounts {
    /// Reads.
    pub reads: DirectionCounts,
    /// Writes.
    pub writes: DirectionCounts,
    /// Cycles in which the accelerator waits for any channel, and no beat of data passes.
    pub stalled: u64,
    /// These cycles by channel.
    pub waits: Waits,
}

impl PortCounts {
    /// Bytes that its bursts ask for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reads.bursts.bytes + self.writes.bursts.bytes
    }
}

/// Bursts that begin in a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionCounts {
    /// Reads.
    pub reads: Bursts,
    /// Writes.
    pub writes: Bursts,
}

/// Counts from the start of a job on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// By memory port.
    pub ports: Vec<PortCounts>,
    /// In the order of [`MeasuredJob::regions`].
    pub regions: Vec<RegionCounts>,
}

/// A measured job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Cycle of the start, as [`Sim::cycles`] counts.
    pub start: u64,
    /// Cycles from the start to the end.
    pub cycles: u64,
    /// The status register did not show the end this number of cycles before: 1 unless the
    /// accelerator takes so long for a read that no copy was free.
    pub within: u64,
    /// What the ports did in these cycles.
    pub counts: Counts,
}

/// A read of a copy's status register.
enum Reading {
    /// The copy is free.
    No,
    /// ARVALID is high.
    Offered,
    /// Accepted in this cycle, with the counts so far.
    Accepted(u64, Counts),
}

/// A memory port of a copy.
struct CopiedPort {
    /// Bits of `flags`, and the inputs that receive them.
    inputs: [(u32, Port); 6],
    /// `flags`, AR and AW.
    outputs: [Port; 3],
}

/// A copy of the accelerator.
struct Copy {
    sim: Sim,
    /// Signals of the design, and the inputs that receive them.
    wires: Vec<(Port, Port)>,
    ports: Vec<CopiedPort>,
    /// Bits of the registers' `flags`, and the inputs that receive them; without reads.
    registers: [(u32, Port); 4],
    /// `flags` of the registers.
    flags: Port,
    /// ARVALID, RREADY and ARADDR of the registers.
    read: [Port; 3],
    rdata: Port,
    reading: Reading,
}

impl Copy {
    fn new(design: &Sim, bare: &Library, ports: usize) -> Result<Self> {
        let mut sim = Sim::new(bare)?;
        let from = |name: String| design.port(&name);
        let to = |name: String| sim.port(&name);
        let mut wires = Vec::new();
        for p in 0..ports {
            for signal in ["rid", "rdata", "rresp", "bid", "bresp"] {
                wires.push((from(format!("seen{p}_{signal}"))?, to(format!("mem{p}_{signal}"))?));
            }
        }
        for (seen, input) in [
            ("seenr_aw", "ctl_awaddr"),
            ("seenr_wdata", "ctl_wdata"),
            ("seenr_wstrb", "ctl_wstrb"),
            ("seenr_clear", "clear"),
        ] {
            wires.push((from(seen.to_owned())?, to(input.to_owned())?));
        }
        let port = |p: usize| -> Result<_> {
            let at = |bit: u32, signal: &str| -> Result<_> {
                Ok((bit, to(format!("mem{p}_{signal}"))?))
            };
            let inputs = [
                at(1, "arready")?,
                at(2, "rvalid")?,
                at(5, "awready")?,
                at(7, "wready")?,
                at(8, "bvalid")?,
                at(10, "rlast")?,
            ];
            let seen = |signal: &str| to(format!("seen{p}_{signal}"));
            let outputs = [seen("flags")?, seen("ar")?, seen("aw")?];
            Ok(CopiedPort { inputs, outputs })
        };
        let ports = (0..ports).map(port).collect::<Result<Vec<_>>>()?;
        let input = |name: &str| sim.port(name);
        let rst = input("rst_n")?;
        let registers = [
            (4, input("ctl_awvalid")?),
            (6, input("ctl_wvalid")?),
            (9, input("ctl_bready")?),
            (11, rst),
        ];
        let read = [input("ctl_arvalid")?, input("ctl_rready")?, input("ctl_araddr")?];
        let (flags, rdata) = (input("seenr_flags")?, input("ctl_rdata")?);
        sim.run(RESET);
        Ok(Self { sim, wires, ports, registers, flags, read, rdata, reading: Reading::No })
    }
}

/// State of a measurement.
enum State {
    /// Register writes until the start: AWs with their addresses, and Ws.
    Waiting { requests: u64, beats: u64, addr: Option<u64> },
    /// The job runs since this cycle.
    Running { start: u64 },
    /// It is over.
    Over(Measured),
    /// It cannot be measured, for this reason.
    Failed(String),
}

/// Measures one job. It must receive every cycle since the accelerator's last reset.
pub(crate) struct Meter {
    job: MeasuredJob,
    copies: Vec<Copy>,
    /// The copy that is read next.
    turn: usize,
    /// ARADDR of the accelerator's registers, for the copies before the start.
    araddr: Port,
    state: State,
    /// Whether the copies' registers are read, and no longer have the reads of the accelerator's.
    reading: bool,
    counts: Counts,
    /// The last cycle in which the register did not show the end, as far as it is known.
    not_yet: u64,
    /// The first cycle in which it did, with the counts before it.
    end: Option<(u64, Counts)>,
}

impl Meter {
    /// Copies the accelerator of a design, which is in reset or has just left it.
    ///
    /// # Errors
    /// If the library is not `shef_bare_top` with the same number of ports, or the design shows no
    /// handshakes.
    pub fn new(sim: &Sim, follow: &Follow, bare: &Library, job: MeasuredJob) -> Result<Self> {
        let ports = follow.memory().count();
        let copies = (0..job.copies.max(1)).map(|_| Copy::new(sim, bare, ports));
        Ok(Self {
            copies: copies.collect::<Result<_>>()?,
            turn: 0,
            araddr: sim.port("seenr_ar")?,
            state: State::Waiting { requests: 0, beats: 0, addr: None },
            reading: false,
            counts: Counts {
                ports: vec![PortCounts::default(); ports],
                regions: vec![RegionCounts::default(); job.regions.len()],
            },
            job,
            not_yet: 0,
            end: None,
        })
    }

    /// The result, as soon as there is one.
    ///
    /// # Errors
    /// [`Error::NotMeasured`]
    pub fn measured(&self) -> Option<Result<Measured>> {
        match &self.state {
            State::Over(measured) => Some(Ok(measured.clone())),
            State::Failed(what) => Some(Err(Error::NotMeasured(what.clone()))),
            State::Waiting { .. } | State::Running { .. } => None,
        }
    }

    /// Receives a settled cycle, before `follow` does.
    pub fn sample(&mut self, sim: &Sim, follow: &Follow) {
        let Some(registers) = follow.registers() else { return };
        if matches!(self.state, State::Over(_) | State::Failed(_)) {
            return;
        }
        let (flags, now) = (registers.flags(sim), sim.cycles());
        // Reads of the host that began before the start also end in the copies.
        self.reading |= matches!(self.state, State::Running { .. }) && registers.is_read_free();
        self.drive(sim, follow, flags);
        if let Err(what) = self.compare(sim, follow, flags, now) {
            self.state = State::Failed(what);
            return;
        }
        self.copies.iter_mut().for_each(|copy| copy.sim.edge());
        match &self.state {
            State::Waiting { .. } => self.wait(registers.addr(sim), flags, now),
            State::Running { start } => self.end(*start),
            State::Over(_) | State::Failed(_) => {}
        }
        if matches!(self.state, State::Running { .. }) {
            self.count(sim, follow, now);
        }
    }

    /// Gives this cycle's inputs to the copies, and reads their status registers.
    fn drive(&mut self, sim: &Sim, follow: &Follow, flags: u64) {
        let (now, reading) = (sim.cycles(), self.reading);
        let free = |copy: &Copy| matches!(copy.reading, Reading::No);
        let copies = self.copies.len();
        let mut turns = (0..copies).map(|k| (self.turn + k) % copies);
        if reading && let Some(next) = turns.find(|k| free(&self.copies[*k])) {
            self.copies[next].reading = Reading::Offered;
            self.turn = (next + 1) % copies;
        }
        let [mask, value] = [self.job.done.mask, self.job.done.value].map(u64::from);
        for copy in &mut self.copies {
            for (from, to) in &copy.wires {
                copy.sim.raw_mut(*to).copy_from_slice(sim.raw(*from));
            }
            for (copied, port) in copy.ports.iter().zip(follow.memory()) {
                let flags = port.flags(sim);
                for (bit, to) in &copied.inputs {
                    copy.sim.set(*to, flags >> bit);
                }
            }
            for (bit, to) in &copy.registers {
                copy.sim.set(*to, flags >> bit);
            }
            let [arvalid, rready, araddr] = copy.read;
            if reading {
                copy.sim.set(arvalid, u64::from(matches!(copy.reading, Reading::Offered)));
                copy.sim.set(rready, 1);
                copy.sim.set(araddr, self.job.done.offset.into());
            } else {
                copy.sim.set(arvalid, flags >> (2 * AR));
                copy.sim.set(rready, flags >> (2 * R + 1));
                copy.sim.set(araddr, sim.get(self.araddr));
            }
            copy.sim.settle();
            let own = copy.sim.get(copy.flags);
            match std::mem::replace(&mut copy.reading, Reading::No) {
                Reading::Offered if own >> (2 * AR + 1) & 1 == 1 => {
                    copy.reading = Reading::Accepted(now, self.counts.clone());
                }
                Reading::Accepted(at, counts) if own >> (2 * R) & 1 == 1 => {
                    if copy.sim.get(copy.rdata) & mask != value & mask {
                        self.not_yet = self.not_yet.max(at);
                    } else if self.end.as_ref().is_none_or(|(end, _)| at < *end) {
                        self.end = Some((at, counts));
                    }
                }
                reading => copy.reading = reading,
            }
        }
    }

    /// Whether the copies do what the accelerator does.
    fn compare(
        &self,
        sim: &Sim,
        follow: &Follow,
        flags: u64,
        now: u64,
    ) -> std::result::Result<(), String> {
        let differs = |what: &str| {
            Err(format!(
                "a copy of the accelerator with the same inputs has other outputs at cycle {now}, at {what}"
            ))
        };
        let of_registers = if self.reading { NO_READS } else { u64::MAX };
        for copy in &self.copies {
            if (copy.sim.get(copy.flags) ^ flags) & of_registers != 0 {
                return differs("its registers");
            }
            for (copied, port) in copy.ports.iter().zip(follow.memory()) {
                let [seen, ar, aw] = copied.outputs;
                let flags = port.flags(sim);
                let [from_ar, from_aw] = port.requests();
                let other = |valid: usize, copied: Port, from: Port| {
                    flags >> (2 * valid) & 1 == 1 && copy.sim.raw(copied) != sim.raw(from)
                };
                if copy.sim.get(seen) != flags || other(AR, ar, from_ar) || other(AW, aw, from_aw) {
                    return differs(port.name());
                }
            }
        }
        Ok(())
    }

    /// Looks for the write that starts the job.
    fn wait(&mut self, address: u64, flags: u64, now: u64) {
        let State::Waiting { requests, beats, addr } = &mut self.state else { return };
        let transfers = flags & flags >> 1;
        if transfers >> (2 * AW) & 1 == 1 {
            if *requests == self.job.writes {
                *addr = Some(address);
            }
            *requests += 1;
        }
        *beats += transfers >> (2 * W) & 1;
        if (*requests).min(*beats) <= self.job.writes {
            return;
        }
        let expected = u64::from(self.job.start);
        self.state = match *addr {
            Some(found) if found == expected => {
                self.not_yet = now;
                State::Running { start: now }
            }
            found => State::Failed(format!(
                "expected the start at register {expected:#x}, found a write of register {:#x}",
                found.unwrap_or_default()
            )),
        };
    }

    /// Ends the measurement when no read of an earlier cycle is open.
    fn end(&mut self, start: u64) {
        let Some((end, _)) = &self.end else { return };
        let earlier = |copy: &Copy| match &copy.reading {
            Reading::Accepted(at, _) => at < end,
            Reading::No | Reading::Offered => false,
        };
        if self.copies.iter().any(earlier) {
            return;
        }
        if let Some((end, counts)) = self.end.take() {
            let not_yet = self.not_yet.clamp(start, end - 1);
            self.state =
                State::Over(Measured { start, cycles: end - start, within: end - not_yet, counts });
        }
    }

    /// Counts what the ports do in a cycle of the job.
    fn count(&mut self, sim: &Sim, follow: &Follow, now: u64) {
        let Counts { ports, regions } = &mut self.counts;
        for (counts, port) in ports.iter_mut().zip(follow.memory()) {
            port_cycle(counts, regions, &self.job.regions, port, sim, now);
        }
    }
}

/// Counts a cycle of a port. `port` has not seen it yet.
fn port_cycle(
    counts: &mut PortCounts,
    regions: &mut [RegionCounts],
    ranges: &[Range<u64>],
    port: &Follower,
    sim: &Sim,
    now: u64,
) {
    let flags = port.flags(sim);
    let valid = |channel: usize| flags >> (2 * channel) & 1 == 1;
    let ready = |channel: usize| flags >> (2 * channel + 1) & 1 == 1;
    let passes = |channel: usize| valid(channel) && ready(channel);
    let region = |addr: u64| ranges.iter().position(|range| range.contains(&addr));
    let (reads, writes) = (port.open(false), port.open(true));
    for (direction, open) in [(&mut counts.reads, reads.len()), (&mut counts.writes, writes.len())]
    {
        direction.busy += u64::from(open > 0);
        direction.in_flight += open as u64;
    }
    let due = writes.iter().any(|open| open.beats == open.burst.beats);
    let beat = passes(R) || passes(W);
    let waits = [
        valid(AR) && !ready(AR),
        !reads.is_empty() && !valid(R),
        valid(AW) && !ready(AW),
        valid(W) && !ready(W),
        due && !valid(B),
    ];
    if !beat && waits.contains(&true) {
        counts.stalled += 1;
        let Waits { ar, r, aw, w, b } = &mut counts.waits;
        for (count, waits) in [ar, r, aw, w, b].into_iter().zip(waits) {
            *count += u64::from(waits);
        }
    }
    counts.reads.beats += u64::from(passes(R));
    counts.writes.beats += u64::from(passes(W));
    for write in [false, true] {
        if passes(if write { AW } else { AR }) {
            let burst = port.request(sim, write);
            let size = u64::from(burst.size);
            let bytes = u64::from(burst.beats) * size - burst.addr % size;
            let direction = if write { &mut counts.writes } else { &mut counts.reads };
            direction.bursts.add(bytes);
            if let Some(region) = region(burst.addr) {
                let counts = &mut regions[region];
                if write { &mut counts.writes } else { &mut counts.reads }.add(bytes);
            }
        }
    }
    // The first beat of a read, and the response to a write.
    for (channel, write) in [(R, false), (B, true)] {
        let open = port.answered(sim, channel).filter(|open| write || open.beats == 0);
        if let Some(open) = open.filter(|_| passes(channel)) {
            let cycles = now - open.last;
            let direction = if write { &mut counts.writes } else { &mut counts.reads };
            direction.bursts.answer(cycles);
            if let Some(region) = region(open.burst.addr) {
                let counts = &mut regions[region];
                if write { &mut counts.writes } else { &mut counts.reads }.answer(cycles);
            }
        }
    }
}
