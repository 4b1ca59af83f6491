//! Checks the outcome of an act: the delivered words against the written ones, and the Shield's
//! reports and behaviour after a fault.

use super::transactions::{Transaction, address, may_be_refused};
use super::{Trial, pick};
use crate::attack::session::piece;
use crate::bench::Bench;
use crate::host;
use crate::traffic::{Op, Outcome};
use crate::{BenchError, Result};
use shef_proto::channel::{FaultKind, ShieldRequest, ShieldStatement, status};
use shef_proto::config::{Mode, OnFault, Region};
use shef_regs::ctl;

impl Trial<'_> {
    /// Checks outcomes: words with OKAY match the expected data, all others are zero, and required
    /// transactions succeeded.
    pub(super) fn judge(&mut self, transactions: &[Transaction], got: &[Outcome]) {
        for (transaction, got) in transactions.iter().zip(got) {
            let want = &transaction.want;
            let legal = !want.okay.contains(&false);
            self.refusals += u32::from(!legal);
            self.v.transactions += 1;
            self.v.honest += u64::from(transaction.required && legal);
            let name = || match &transaction.op {
                Op::Read { addr, beats, .. } => format!("read of {beats} words at {addr:#x}"),
                Op::Write { addr, data, .. } => {
                    format!("write of {} words at {addr:#x}", data.len() / 64)
                }
                Op::Wrap { addr, .. } => format!("wrapped burst at {addr:#x}"),
            };
            let unknown = self.mixed_up
                && self.s.config.bypass_regions().any(|r| r.contains(address(&transaction.op), 1));
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
            if transaction.required && legal && got.okay != want.okay {
                self.v.refused_wrong.push(format!("{}: {:?}", name(), got.okay));
            }
        }
    }

    /// Whether the Shield reports a fault of one of these kinds (at one of these chunks) and then
    /// behaves according to its fault policy.
    ///
    /// Every attempt checks the plain status. Only one in four reads the sealed statement, which
    /// takes as long as everything else together.
    pub(super) fn fault_reported(
        &mut self,
        kinds: &[FaultKind],
        victims: Option<&[(Region, u64)]>,
    ) -> Result<bool> {
        let policy = self.s.config.on_fault();
        let halts = policy == OnFault::Halt;
        if halts {
            host::wait_for(&mut self.s.bench, "CLOSED after a fault", |s| {
                ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_CLOSED
            })?;
            host::ready(&mut self.s.bench)?;
            self.nothing_left()?;
        }
        let status = self.s.bench.ctl_read(ctl::STATUS)?;
        let kind = FaultKind::from_number(ctl::STATUS_FAULT_KIND.get(status) as u8);
        let known =
            kind.is_some_and(|k| k != FaultKind::None && (kinds.is_empty() || kinds.contains(&k)));
        // If a fault stops only its region, a fault without a known region (a bus response without
        // an address) still stops everything.
        let stopped = ctl::STATUS_STOPPED.get(status) != 0;
        let frozen = victims.filter(|_| self.by_region() && !stopped).map(|v| v[0].0.clone());
        // A response taken for a lost one is a fault of the region that receives it.
        let somewhere = self.by_region()
            && victims.is_none()
            && matches!(kind, Some(FaultKind::Tag | FaultKind::Node | FaultKind::Bus));
        if !known || (frozen.is_none() && !halts && !stopped && !somewhere) {
            self.v.act.push_str(&format!(": status {status:#x}"));
            return Ok(false);
        }
        self.v.transactions += 1;
        let page = if halts {
            Some(self.halt_statement()?)
        } else if self.rng.one_in(4) {
            Some(self.channel.page0(&mut self.s.bench)?)
        } else {
            None
        };
        if let Some(page) = page {
            let there = victims.is_none_or(|v| {
                v.iter().any(|(r, c)| {
                    let version = !r.mode.has_epoch()
                        || page.fault_version
                            == self.epochs.get(&r.id).copied().unwrap_or(self.s.epoch);
                    match page.fault_kind {
                        // Not every bus response can be attributed to a request.
                        FaultKind::Bus if page.fault_region == u8::MAX => true,
                        FaultKind::Node => page.fault_region == r.id,
                        _ => page.fault_region == r.id && page.fault_chunk == *c && version,
                    }
                })
            });
            let stopped = page.stopped || frozen.is_some() || somewhere;
            if !stopped
                || page.faults == 0
                || !(kinds.is_empty() || kinds.contains(&page.fault_kind))
                || !there
            {
                self.v.act.push_str(&format!(": statement {page:?}"));
                return Ok(false);
            }
        }
        match frozen {
            Some(r) => self.check_others_continue(&r)?,
            None if stopped || halts => self.check_stopped()?,
            None => {}
        }
        Ok(true)
    }

    /// The final statement of a Shield that ended the session itself, and a check that it answers
    /// no message after that.
    fn halt_statement(&mut self) -> Result<ShieldStatement> {
        let shown = host::shown(&mut self.s.bench)?;
        let Some(words) = self.channel.halt_statement(&shown) else {
            return Err(BenchError::Refused {
                what: "the last message",
                status: host::ready(&mut self.s.bench)?,
            });
        };
        if let Some((_, message, _)) = self.channel.wire.last().copied() {
            host::ring(&mut self.s.bench, &message, 0..host::WORDS)?;
            if host::shown(&mut self.s.bench)? != shown {
                self.v.accepted_wrong.push("a message was answered after the session's end".into());
            }
        }
        Ok(words)
    }

    /// After a stop: every burst is refused and no write reaches memory.
    fn check_stopped(&mut self) -> Result<()> {
        // Requests issued before the stop may still be accepted.
        self.s.bench.steps(64);
        let writes = self.s.bench.core().counters().writes;
        let transactions = may_be_refused(self.honest(2));
        let got = self.execute(&transactions)?;
        if got.iter().any(|o| o.okay.contains(&true)) {
            self.v.delivered_wrong.push("a burst succeeded after the Shield stopped".into());
        }
        if self.s.bench.core().counters().writes != writes {
            self.v.delivered_wrong.push("the Shield wrote after it stopped".into());
        }
        if self.s.config.on_fault() != OnFault::Halt && self.rng.one_in(4) {
            // Nothing reaches the accelerator either.
            let some = [
                ShieldRequest::write(0x10, 7),
                ShieldRequest::read(0x10),
                ShieldRequest::flush(),
                ShieldRequest::invalidate(),
            ];
            let Some(request) = pick(&mut self.rng, &some) else { return Ok(()) };
            self.command(&request);
            self.v.transactions += 1;
            let answer = self.channel.ask(&mut self.s.bench, &request)?;
            if answer.status != status::STOPPED {
                self.v.accepted_wrong.push(format!(
                    "{request:?} in a Shield that has stopped: status {}",
                    answer.status
                ));
            }
        }
        Ok(())
    }

    /// After a region froze: bursts to it are refused, all others succeed.
    fn check_others_continue(&mut self, frozen: &Region) -> Result<()> {
        let mut transactions = may_be_refused(self.read_of_frozen(frozen).into_iter().collect());
        let asked = transactions.len();
        self.frozen.insert(frozen.id);
        self.settle();
        self.watch.freeze(frozen);
        transactions.extend(self.honest(3));
        let got = self.execute(&transactions)?;
        if got[..asked].iter().any(|o| o.okay.contains(&true)) {
            self.v.delivered_wrong.push("a burst to a frozen region succeeded".into());
        }
        if self.rng.one_in(2) {
            // Chunks that were dirty in it are not sealed any more.
            self.must(&ShieldRequest::flush())?;
            self.check_written();
            let transactions =
                may_be_refused((0..4).filter_map(|_| self.read_of_frozen(frozen)).collect());
            if self.execute(&transactions)?.iter().any(|o| o.okay.contains(&true)) {
                self.v
                    .delivered_wrong
                    .push("a burst to a frozen region succeeded after a flush".into());
            }
        }
        Ok(())
    }

    /// A read of a known chunk, whether its region is frozen or not.
    fn read_of_frozen(&mut self, r: &Region) -> Option<Transaction> {
        let c = self.some_chunk(r);
        self.plain(r, c).is_some().then(|| self.read_of(r, c, true))
    }

    /// Lets writes in flight reach memory.
    fn settle(&mut self) {
        for _ in 0..20 {
            let before = self.s.bench.core().counters().write_beats;
            self.s.bench.steps(400);
            if self.s.bench.core().counters().write_beats == before {
                break;
            }
        }
    }

    /// The statement counts every refused burst once, and nothing else.
    pub(super) fn counted(&mut self) -> Result<()> {
        let page = self.channel.page0(&mut self.s.bench)?;
        if page.refusals != self.refusals {
            self.v.accepted_wrong.push(format!(
                "{} bursts were refused, the statement counts {}",
                self.refusals, page.refusals
            ));
        }
        if page.stopped || page.faults != 0 {
            self.v.refused_wrong.push(format!("honest traffic made a fault: {page:?}"));
        }
        Ok(())
    }

    /// The session continues undisturbed: there is no fault, and all written data reads back, from
    /// the Shield or from memory after a flush.
    pub(super) fn check_unharmed(&mut self) -> Result<()> {
        let flush = self.rng.one_in(2);
        if flush {
            self.must(&ShieldRequest::flush())?;
        }
        let status = self.s.bench.ctl_read(ctl::STATUS)?;
        if ctl::STATUS_STOPPED.get(status) != 0 || ctl::STATUS_FAULT_KIND.get(status) != 0 {
            self.v.refused_wrong.push(format!("honest traffic made a fault: status {status:#x}"));
            return Ok(());
        }
        if self.rng.one_in(8) {
            self.counted()?;
        }
        if flush {
            self.check_written();
            return Ok(());
        }
        let mut transactions = Vec::new();
        for (id, c) in self.fresh.keys().copied().collect::<Vec<_>>() {
            let r = self.region(id);
            transactions.push(self.read_of(&r, c, true));
        }
        self.execute(&transactions)?;
        Ok(())
    }

    /// After a flush: memory holds everything this attempt wrote, sealed.
    pub(super) fn check_written(&mut self) {
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
                self.v
                    .accepted_wrong
                    .push(format!("region {} chunk {c} opens to something else", r.name));
            } else {
                self.v.refused_wrong.push(format!(
                    "region {} chunk {c} does not lie in memory as it was written",
                    r.name
                ));
            }
        }
    }
}
