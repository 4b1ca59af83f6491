//! What came of an act: words against what was written, and what the Shield says and does after a
//! fault.

use super::deals::{Deal, address, maybe};
use super::{Trial, pick};
use crate::Result;
use crate::attack::session::piece;
use crate::bench::{Bench, BenchError};
use crate::host;
use crate::traffic::{Op, Outcome};
use shef_proto::channel::{FaultKind, Request, ShieldStatement, status};
use shef_proto::config::{Mode, OnFault, Region};
use shef_regs::ctl;

impl Trial<'_> {
    /// Every word with OKAY is what it must be, every other one is zero; what is due has succeeded.
    pub(super) fn judge(&mut self, deals: &[Deal], got: &[Outcome]) {
        for (deal, got) in deals.iter().zip(got) {
            let want = &deal.want;
            let legal = !want.okay.contains(&false);
            self.v.transactions += 1;
            self.v.honest += u64::from(deal.due && legal);
            let name = || match &deal.op {
                Op::Read { addr, beats, .. } => format!("read of {beats} words at {addr:#x}"),
                Op::Write { addr, data, .. } => format!("write of {} words at {addr:#x}", data.len() / 64),
                Op::Wrap { addr, .. } => format!("wrapped burst at {addr:#x}"),
            };
            let unknown = self.mixed_up && self.s.config.bypass_regions().any(|r| r.contains(address(&deal.op), 1));
            for (k, okay) in got.okay.iter().enumerate() {
                if unknown && *okay {
                    continue;
                }
                let word = |o: &Outcome| o.data.get(64 * k..64 * k + 64).map(<[u8]>::to_vec);
                let right = if *okay { word(want) } else { word(got).map(|w| vec![0; w.len()]) };
                if word(got) != right {
                    self.v.delivered_wrong.push(format!("{}: word {k} with OKAY {okay}", name()));
                }
            }
            if !legal && got.okay.contains(&true) {
                self.v.accepted_wrong.push(format!("{} should have been refused", name()));
            }
            if deal.due && legal && got.okay != want.okay {
                self.v.refused_wrong.push(format!("{}: {:?}", name(), got.okay));
            }
        }
    }

    /// Whether the Shield says that such a fault happened (at one of these chunks), and does from
    /// then on what its policy says.
    ///
    /// The plain status is looked at every time, the sealed statement in one of four attempts: it
    /// takes as long as everything else together.
    pub(super) fn told(&mut self, kinds: &[FaultKind], victims: Option<&[(Region, u64)]>) -> Result<bool> {
        let policy = self.s.config.on_fault();
        let halts = policy == OnFault::Halt;
        if halts {
            host::wait_for(&mut self.s.bench, "CLOSED after a fault", |s| ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_CLOSED)?;
        }
        let status = self.s.bench.ctl_read(ctl::STATUS)?;
        let kind = FaultKind::from_number(ctl::STATUS_FAULT_KIND.get(status) as u8);
        let known = kind.is_some_and(|k| k != FaultKind::None && (kinds.is_empty() || kinds.contains(&k)));
        // Where a fault stops its region only, one that cannot be told to be of a region (an answer
        // of the bus with no place) still stops everything.
        let stopped = ctl::STATUS_STOPPED.get(status) != 0;
        let frozen = victims.filter(|_| self.by_region() && !stopped).map(|v| v[0].0.clone());
        // An answer that passes for a lost one is a fault of the region that gets it.
        let somewhere = self.by_region() && victims.is_none() && matches!(kind, Some(FaultKind::Tag | FaultKind::Node | FaultKind::Bus));
        if !known || (frozen.is_none() && !halts && !stopped && !somewhere) {
            self.v.act.push_str(&format!(": status {status:#x}"));
            return Ok(false);
        }
        self.v.transactions += 1;
        let page = if halts {
            Some(self.last_words()?)
        } else if self.rng.one_in(4) {
            Some(self.talk.page0(&mut self.s.bench)?)
        } else {
            None
        };
        if let Some(page) = page {
            let there = victims.is_none_or(|v| {
                v.iter().any(|(r, c)| {
                    let version = !r.mode.has_epoch() || page.fault_version == self.epochs.get(&r.id).copied().unwrap_or(self.s.epoch);
                    match page.fault_kind {
                        // The bus does not say of every answer what it was for.
                        FaultKind::Bus if page.fault_region == u8::MAX => true,
                        FaultKind::Node => page.fault_region == r.id,
                        _ => page.fault_region == r.id && page.fault_chunk == *c && version,
                    }
                })
            });
            let stopped = page.stopped || frozen.is_some() || somewhere;
            if !stopped || page.faults == 0 || !(kinds.is_empty() || kinds.contains(&page.fault_kind)) || !there {
                self.v.act.push_str(&format!(": statement {page:?}"));
                return Ok(false);
            }
        }
        match frozen {
            Some(r) => self.others_go_on(&r)?,
            None if stopped || halts => self.nothing_goes_on()?,
            None => {}
        }
        Ok(true)
    }

    /// What a Shield says that has ended the session by itself; it answers no message after that.
    fn last_words(&mut self) -> Result<ShieldStatement> {
        let shown = host::shown(&mut self.s.bench)?;
        let Some(words) = self.talk.last_words(&shown) else {
            return Err(BenchError::Refused { what: "the last message", status: host::ready(&mut self.s.bench)? });
        };
        if let Some((_, message, _)) = self.talk.wire.last().copied() {
            host::ring(&mut self.s.bench, &message, 0..host::WORDS)?;
            if host::shown(&mut self.s.bench)? != shown {
                self.v.accepted_wrong.push("a message was answered after the session's end".into());
            }
        }
        Ok(words)
    }

    /// After a stop: every burst is refused, nothing reaches memory.
    fn nothing_goes_on(&mut self) -> Result<()> {
        // What had been asked for before the stop may still be accepted.
        self.s.bench.steps(64);
        let writes = self.s.bench.core().counters().writes;
        let deals = maybe(self.honest(2));
        let got = self.go(&deals)?;
        if got.iter().any(|o| o.okay.contains(&true)) {
            self.v.delivered_wrong.push("a burst succeeded after the Shield stopped".into());
        }
        if self.s.bench.core().counters().writes != writes {
            self.v.delivered_wrong.push("the Shield wrote after it stopped".into());
        }
        if self.s.config.on_fault() != OnFault::Halt && self.rng.one_in(4) {
            // Nothing reaches the accelerator either.
            let some = [Request::write(0x10, 7), Request::read(0x10), Request::flush(), Request::invalidate()];
            let Some(request) = pick(&mut self.rng, &some) else { return Ok(()) };
            self.command(&request);
            self.v.transactions += 1;
            let answer = self.talk.ask(&mut self.s.bench, &request)?;
            if answer.status != status::STOPPED {
                self.v.accepted_wrong.push(format!("{request:?} in a Shield that has stopped: status {}", answer.status));
            }
        }
        Ok(())
    }

    /// After a region froze: all bursts to it are refused, all others succeed.
    fn others_go_on(&mut self, frozen: &Region) -> Result<()> {
        let c = self.some_chunk(frozen);
        let mut deals = Vec::new();
        if self.plain(frozen, c).is_some() {
            let mut deal = self.read_of(frozen, c, true);
            deal.due = false;
            deals.push(deal);
        }
        let asked = deals.len();
        self.frozen.insert(frozen.id);
        deals.extend(self.honest(3));
        let got = self.go(&deals)?;
        if got[..asked].iter().any(|o| o.okay.contains(&true)) {
            self.v.delivered_wrong.push("a burst to a frozen region succeeded".into());
        }
        Ok(())
    }

    /// The session goes on as if nothing had happened: no fault, and what was written comes back,
    /// from the Shield or from memory after a flush.
    pub(super) fn unharmed(&mut self) -> Result<()> {
        let flush = self.rng.one_in(2);
        if flush {
            self.owner_says(&Request::flush())?;
        }
        let status = self.s.bench.ctl_read(ctl::STATUS)?;
        let mut quiet = ctl::STATUS_STOPPED.get(status) == 0 && ctl::STATUS_FAULT_KIND.get(status) == 0;
        if self.rng.one_in(8) {
            let page = self.talk.page0(&mut self.s.bench)?;
            quiet &= !page.stopped && page.faults == 0;
        }
        if !quiet {
            self.v.refused_wrong.push(format!("honest traffic made a fault: status {status:#x}"));
            return Ok(());
        }
        if flush {
            self.fresh_lies();
            return Ok(());
        }
        let mut deals = Vec::new();
        for (id, c) in self.fresh.keys().copied().collect::<Vec<_>>() {
            let r = self.region(id);
            deals.push(self.read_of(&r, c, true));
        }
        self.go(&deals)?;
        Ok(())
    }

    /// After a flush: what this attempt wrote lies sealed in memory.
    pub(super) fn fresh_lies(&mut self) {
        for ((id, c), want) in &self.fresh {
            if self.frozen.contains(id) {
                continue;
            }
            let r = self.region(*id);
            self.v.transactions += 1;
            self.v.honest += 1;
            let p = piece(&self.s.bench, &r, *c);
            if self.s.holds(&r, *c, &p, want) {
                continue;
            }
            if r.mode == Mode::Output && self.s.open_chunk(&r, *c, &p).is_some() {
                self.v.accepted_wrong.push(format!("region {} chunk {c} opens to something else", r.name));
            } else {
                self.v.refused_wrong.push(format!("region {} chunk {c} does not lie in memory as it was written", r.name));
            }
        }
    }
}
