//! Acts of memory and shell: protocol violations, delays, errors, silence, reset.

use super::transactions::{Transaction, may_be_refused};
use super::{Trial, pick};
use crate::Result;
use crate::attack::Kind;
use crate::attack::layout::{Part, shared};
use crate::attack::session::Session;
use crate::bench::Bench;
use crate::traffic::{Op, Outcome};
use shef_proto::channel::{FaultKind, ShieldRequest};
use shef_regs::ctl;
use shef_rtl::Hostile;

impl Trial<'_> {
    /// A protocol violation by the memory: bursts that end early, late or never; responses that are
    /// unsolicited, under the wrong id, duplicated or missing.
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
        let transactions = may_be_refused(self.honest(6));
        self.execute(&transactions)?;
        // A flush writes the data to memory. The Shield may stop during it, or have closed itself
        // before.
        self.v.transactions += 1;
        let request =
            if self.rng.one_in(3) { ShieldRequest::invalidate() } else { ShieldRequest::flush() };
        self.command(&request);
        self.channel.try_command(&mut self.s.bench, &request)?;
        // A lost response is detected after the time-out.
        for _ in 0..100 {
            let status = self.s.bench.ctl_read(ctl::STATUS)?;
            if ctl::STATUS_FAULT_KIND.get(status) != 0
                || ctl::STATUS_STATE.get(status) != ctl::STATUS_STATE_KEYED
            {
                break;
            }
            self.s.bench.wait();
        }
        if !self.s.bench.core().axi_memories()[port].injected_all() {
            // No burst matched: an honest run.
            self.v.act.push_str(" had no occasion");
            self.v.detected = true;
            return Ok(());
        }
        self.v.detected = self.fault_reported(&[], None)?;
        if !self.v.detected {
            self.v.accepted_wrong.push("a breach of the protocol was taken for an answer".into());
        }
        Ok(())
    }

    pub(super) fn delay(&mut self) -> Result<()> {
        if self.rng.one_in(3) {
            return self.command_during_bursts();
        }
        let (read, write) = (60 + self.below(1000), 60 + self.below(1000));
        for memory in self.s.bench.core().axi_memories() {
            memory.config.read_latency = read;
            memory.config.write_latency = write;
            memory.config.outstanding = memory.config.outstanding.max(16);
        }
        self.v.act = format!("latency {read} and {write}");
        let n = 3 + self.below(5);
        let transactions = self.honest(n);
        self.execute(&transactions)?;
        self.check_unharmed()
    }

    pub(super) fn reorder(&mut self) -> Result<()> {
        match self.below(8) {
            0..3 => {
                // Responses with different ids overtake each other, which AXI allows.
                self.v.act = "overtaking between ids".into();
                self.s.bench.core().axi_memories().iter_mut().for_each(|m| m.config.reorder = true);
                let transactions = self.honest(10);
                self.execute(&transactions)?;
                self.check_unharmed()
            }
            3..5 => self.broken_burst(&[3, 4, 5, 6, 7]),
            5 => self.messages_exchanged(),
            _ => self.two_exchanged(),
        }
    }

    /// Memory fails at an address, with an error or by silence, on a read or on a write.
    pub(super) fn failing(&mut self) -> Result<()> {
        let silent = self.kind == Kind::Silence;
        self.mixed_up = silent;
        if silent && self.rng.one_in(4) {
            return self.broken_burst(&[8, 9]);
        }
        let kind = if silent { FaultKind::Timeout } else { FaultKind::Bus };
        let fail = |s: &mut Session, at: u64| {
            for m in s.bench.core().axi_memories() {
                // Silence covers the page, errors cover one word.
                if silent {
                    m.silent_ranges.push(at & !4095..(at | 4095) + 1);
                } else {
                    m.error_ranges.push(at & !63..(at | 63) + 1);
                }
            }
        };
        if self.rng.one_in(3) {
            // A write whose write-back fails.
            let Some((mut transaction, r, c)) = self.one_write() else { return Ok(()) };
            self.spare(&r, c..c + 1);
            self.warm_up()?;
            let at = if r.mode.has_tags() && self.rng.one_in(2) {
                r.tag_addr(c)
            } else {
                r.chunk_addr(c)
            };
            self.v.act = format!("write of region {} chunk {c} at {at:#x}", r.name);
            fail(self.s, at);
            transaction.required = false;
            self.execute(&[transaction])?;
            self.v.transactions += 1;
            // A Shield that ended the session answers only with its final statement. The flush
            // skips a region that froze before; the statement reports it. With a silent page, this
            // happens if a later response is taken for a missing one.
            let request = if self.rng.one_in(3) {
                ShieldRequest::invalidate()
            } else {
                ShieldRequest::flush()
            };
            self.command(&request);
            let mut noticed = self.channel.try_command(&mut self.s.bench, &request)? != Some(0);
            if !noticed && self.by_region() {
                let page = self.channel.page0(&mut self.s.bench)?;
                noticed = page.faults != 0 && page.fault_region == r.id;
            }
            if !noticed {
                self.v.accepted_wrong.push("a flush succeeded whose writes failed".into());
            }
            let there = [(r, c)];
            // Responses to later reads with the id of a silent page are taken for the missing ones,
            // so tags can fail too.
            self.v.detected = noticed
                && if silent {
                    self.fault_reported(&[], None)?
                } else {
                    self.fault_reported(&[kind], Some(&there))?
                };
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
        // The whole chunk and nothing else: a later response with the same id would be taken for
        // the missing one.
        let per = r.chunk / 64;
        let data = self.plain(&r, c).unwrap_or_default();
        let op = Op::Read { id: 1, addr: r.chunk_addr(c), beats: per };
        let got = self.execute(&[Transaction {
            op,
            want: Outcome { okay: vec![true; per as usize], data },
            required: false,
        }])?;
        let there = [(r, c)];
        // In a tree, the answer to the next node passes for the missing one.
        let kinds: &[FaultKind] = if silent && matches!(part, Part::Node(_)) {
            &[kind, FaultKind::Node]
        } else {
            &[kind]
        };
        let told = self.fault_reported(kinds, if silent { None } else { Some(&there) })?;
        self.v.detected = told && got[0].okay.iter().all(|o| !o);
        Ok(())
    }

    /// Ends the session while bursts run: by reset, by a wipe or by the owner.
    pub(super) fn reset(&mut self) -> Result<()> {
        let end = self.some_end();
        self.end_under_way(end)?;
        // Nothing remains of the session: no burst, no message.
        self.nothing_runs()?;
        self.v.detected = self.session_is_over()?;
        Ok(())
    }
}
