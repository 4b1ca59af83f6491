//! Acts of the memory and of the shell: breaches of the protocol, slowness, errors, silence, reset.

use super::deals::{Deal, maybe};
use super::{Trial, pick};
use crate::Result;
use crate::attack::Kind;
use crate::attack::ground::{Part, shared};
use crate::attack::session::Session;
use crate::bench::Bench;
use crate::traffic::{Op, Outcome};
use shef_proto::channel::{FaultKind, Request};
use shef_regs::ctl;
use shef_rtl::Hostile;

impl Trial<'_> {
    /// A breach of the protocol by the memory: bursts that end early, late or never; answers that
    /// nobody is owed, under another id, twice or not at all.
    pub(super) fn broken_burst(&mut self, which: &[u64]) -> Result<()> {
        self.warm_up()?;
        self.mixed_up = true;
        let id = self.below(256) as u8;
        let wrong = 1 << self.below(8);
        let h = match pick(&mut self.rng, which).unwrap_or(0) {
            0 => Hostile::EarlyLast,
            1 => Hostile::LateLast,
            2 => Hostile::MissingLast,
            3 => Hostile::UnownedR { id },
            4 => Hostile::UnownedB { id },
            5 => Hostile::WrongRid(wrong),
            6 => Hostile::WrongBid(wrong),
            7 => Hostile::DoubleB,
            8 => Hostile::LoseRead,
            _ => Hostile::LoseWrite,
        };
        let ports = self.s.bench.core().axi_memories().len() as u64;
        let port = self.below(ports) as usize;
        self.v.act = format!("{h:?} at port {port}");
        self.s.bench.core().axi_memories()[port].inject(h);
        let deals = maybe(self.honest(6));
        self.go(&deals)?;
        // What was written reaches memory by a flush; the Shield may stop in it, or have closed
        // itself before.
        self.v.transactions += 1;
        let request = if self.rng.one_in(3) { Request::invalidate() } else { Request::flush() };
        self.command(&request);
        self.talk.try_command(&mut self.s.bench, &request)?;
        // A lost answer is missed after the time-out.
        for _ in 0..100 {
            let status = self.s.bench.ctl_read(ctl::STATUS)?;
            if ctl::STATUS_FAULT_KIND.get(status) != 0 || ctl::STATUS_STATE.get(status) != ctl::STATUS_STATE_KEYED {
                break;
            }
            self.s.bench.wait();
        }
        if !self.s.bench.core().axi_memories()[port].injected_all() {
            // There was no burst that it fits: an honest run.
            self.v.act.push_str(" had no occasion");
            self.v.detected = true;
            return Ok(());
        }
        self.v.detected = self.told(&[], None)?;
        if !self.v.detected {
            self.v.accepted_wrong.push("a breach of the protocol was taken for an answer".into());
        }
        Ok(())
    }

    pub(super) fn delay(&mut self) -> Result<()> {
        if self.rng.one_in(3) {
            return self.command_under_way();
        }
        let (read, write) = (60 + self.below(1000), 60 + self.below(1000));
        for memory in self.s.bench.core().axi_memories() {
            memory.config.read_latency = read;
            memory.config.write_latency = write;
            memory.config.outstanding = memory.config.outstanding.max(16);
        }
        self.v.act = format!("latency {read} and {write}");
        let n = 3 + self.below(5);
        let deals = self.honest(n);
        self.go(&deals)?;
        self.unharmed()
    }

    pub(super) fn reorder(&mut self) -> Result<()> {
        match self.below(8) {
            0..3 => {
                // Answers of different ids overtake one another: allowed by AXI.
                self.v.act = "overtaking between ids".into();
                self.s.bench.core().axi_memories().iter_mut().for_each(|m| m.config.reorder = true);
                let deals = self.honest(10);
                self.go(&deals)?;
                self.unharmed()
            }
            3..5 => self.broken_burst(&[3, 4, 5, 6, 7]),
            5 => self.messages_exchanged(),
            _ => self.two_exchanged(),
        }
    }

    /// The memory fails at a place, with an error or by silence, when it is read or when it is
    /// written.
    pub(super) fn failing(&mut self) -> Result<()> {
        let silent = self.kind == Kind::Silence;
        self.mixed_up = silent;
        if silent && self.rng.one_in(4) {
            return self.broken_burst(&[8, 9]);
        }
        let kind = if silent { FaultKind::Timeout } else { FaultKind::Bus };
        let fail = |s: &mut Session, at: u64| {
            for m in s.bench.core().axi_memories() {
                // Bursts to the page are not answered; errors come word by word.
                if silent { m.silent_ranges.push(at & !4095..(at | 4095) + 1) } else { m.error_ranges.push(at & !63..(at | 63) + 1) }
            }
        };
        if self.rng.one_in(3) {
            // A write that fails when it is sealed.
            let Some((mut deal, r, c)) = self.one_write() else { return Ok(()) };
            self.spare(&r, c..c + 1);
            self.warm_up()?;
            let at = if r.mode.has_tags() && self.rng.one_in(2) { r.tag_addr(c) } else { r.chunk_addr(c) };
            self.v.act = format!("write of region {} chunk {c} at {at:#x}", r.name);
            fail(self.s, at);
            deal.due = false;
            self.go(&[deal])?;
            self.v.transactions += 1;
            // A Shield that has ended the session gives no answer but its last words. A region that
            // froze before the flush is no part of it; the statement tells. Of a silent page this
            // is so when a later answer passed for a missing one.
            let request = if self.rng.one_in(3) { Request::invalidate() } else { Request::flush() };
            self.command(&request);
            let mut noticed = self.talk.try_command(&mut self.s.bench, &request)? != Some(0);
            if !noticed && self.by_region() {
                let page = self.talk.page0(&mut self.s.bench)?;
                noticed = page.faults != 0 && page.fault_region == r.id;
            }
            if !noticed {
                self.v.accepted_wrong.push("a flush succeeded whose writes failed".into());
            }
            let there = [(r, c)];
            // Answers to later reads of a silent page's id pass for the missing ones, so that tags
            // fail, too.
            self.v.detected = noticed && if silent { self.told(&[], None)? } else { self.told(&[kind], Some(&there))? };
            return Ok(());
        }
        let (r, c) = self.victim();
        let parts = Session::parts(&r, c);
        let Some((part, at)) = pick(&mut self.rng, &parts) else { return Ok(()) };
        self.spare(&r, shared(c, part));
        if r.prefetch == 0 {
            self.warm_up()?;
        }
        self.v.act = format!("read of region {} chunk {c}, {part:?} at {:#x}", r.name, at.start);
        fail(self.s, at.start);
        // The whole chunk, and nothing beside it: a later answer of the same id would pass for the
        // missing one.
        let per = r.chunk / 64;
        let data = self.plain(&r, c).unwrap_or_default();
        let op = Op::Read { id: 1, addr: r.chunk_addr(c), beats: per };
        let got = self.go(&[Deal { op, want: Outcome { okay: vec![true; per as usize], data }, due: false }])?;
        let there = [(r, c)];
        // In a tree the answer to the next node passes for the missing one.
        let kinds: &[FaultKind] = if silent && matches!(part, Part::Node(_)) { &[kind, FaultKind::Node] } else { &[kind] };
        let told = self.told(kinds, if silent { None } else { Some(&there) })?;
        self.v.detected = told && got[0].okay.iter().all(|o| !o);
        Ok(())
    }

    /// The session ends while bursts run: reset, wipe, or by the owner.
    pub(super) fn reset(&mut self) -> Result<()> {
        let end = self.some_end();
        self.end_under_way(end)?;
        // Nothing is left of the session: no burst, no message.
        self.nothing_runs()?;
        self.v.detected = self.session_is_over()?;
        Ok(())
    }
}
