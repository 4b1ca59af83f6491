//! The end of a session while bursts run, and the session after it: no state of the first may leak
//! into the second, and no statement may be cleaner than the session was.

use super::channel::channel_refused;
use super::forge::mangle;
use super::transactions::{Transaction, may_be_refused};
use super::{Trial, pick, timing};
use crate::attack::Kind;
use crate::attack::flood::Flood;
use crate::attack::session::{Piece, piece, place};
use crate::bench::Bench;
use crate::host;
use crate::owner::Owner;
use crate::traffic::{Op, Outcome};
use crate::{BenchError, Result};
use shef_proto::channel::{FaultKind, MESSAGE_LEN, ShieldRequest, Statement};
use shef_proto::config::{MAX_EPOCH, Mode, OnFault, Region};
use shef_proto::entropy::SeededEntropy;
use shef_proto::load::{first_epochs, seal_load_key};
use shef_regs::{ctl, krn};
use shef_rtl::Hostile;
use shef_seal::ChunkCipher;

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Close,
    Abort,
    Wipe,
    Reset,
}

/// The expectation for a session, given the events before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Everything works and the statement is clean.
    Clean,
    /// As [`Expect::Clean`], or the statement reports that it is not clean.
    CleanOrReported,
}

/// A session that an attempt keyed.
pub struct Next {
    owner: Owner,
    /// First epoch of all its regions.
    epoch: u64,
    /// Sealed chunks and their plaintext.
    sealed: Vec<(Region, u64, Vec<u8>)>,
}

impl Next {
    fn cipher(&self, r: &Region) -> Option<ChunkCipher> {
        Some(ChunkCipher::new(r.id, self.owner.keys().data_key(r.id)?))
    }
}

impl Trial<'_> {
    /// Counts a command that is part of the act.
    pub(super) fn command(&mut self, request: &ShieldRequest) {
        let names = [
            (ShieldRequest::flush().op, "flush"),
            (ShieldRequest::invalidate().op, "invalidate"),
            (ShieldRequest::epoch(0, 0).op, "epoch"),
            (ShieldRequest::close().op, "close"),
            (ShieldRequest::abort().op, "abort"),
        ];
        self.v
            .commands
            .extend(names.iter().find(|(op, _)| *op == request.op).map(|(_, name)| *name));
    }

    /// A random way to end a session.
    pub(super) fn some_end(&mut self) -> End {
        pick(&mut self.rng, &[End::Close, End::Abort, End::Wipe, End::Reset]).unwrap_or(End::Close)
    }

    /// The state in the plain status.
    pub(super) fn state(&mut self) -> Result<u32> {
        Ok(ctl::STATUS_STATE.get(self.s.bench.ctl_read(ctl::STATUS)?))
    }

    /// An owner's command while bursts run: all of them succeed and no data is lost.
    pub(super) fn command_during_bursts(&mut self) -> Result<()> {
        let with_epoch = self.regions(Mode::has_epoch);
        let region = pick(&mut self.rng, &with_epoch).filter(|_| self.rng.one_in(2));
        let request = match &region {
            Some(r) if self.rng.one_in(2) => {
                // The current one, or a lower one, also with larger low bits.
                let epochs = [
                    self.s.epoch,
                    self.s.epoch - 1,
                    self.s.epoch + 1 - (1 << self.rng.below(48)),
                    self.rng.below(self.s.epoch),
                ];
                ShieldRequest::epoch(
                    r.id,
                    pick(&mut self.rng, &epochs).unwrap_or(0).min(self.s.epoch),
                )
            }
            Some(r) => ShieldRequest::epoch(r.id, self.s.epoch + 1 + self.rng.below(9)),
            None if self.rng.one_in(2) => ShieldRequest::flush(),
            None => ShieldRequest::invalidate(),
        };
        let up = request.value > self.s.epoch;
        if let Some(r) = &region {
            // Its chunks are from the previous epoch.
            self.spare(r, 0..r.chunks());
        }
        self.warm_up()?;
        let transactions = self.honest(6);
        let ops: Vec<Op> = transactions.iter().map(|d| d.op.clone()).collect();
        self.s.bench.push(&ops);
        let wait = self.below(80);
        self.s.bench.steps(wait);
        self.v.act = format!("{request:?} {wait} cycles after six bursts");
        self.command(&request);
        self.v.transactions += 1;
        let answer = self.channel.ask(&mut self.s.bench, &request)?;
        let got = self.s.bench.finish(None)?;
        self.judge(&transactions, &got);
        match &region {
            Some(_) if !up && answer.status != 0 => {}
            Some(_) if !up => self
                .v
                .accepted_wrong
                .push("an epoch that is not above the present one was set".into()),
            _ if answer.status != 0 => {
                self.v.refused_wrong.push(format!("{request:?}: status {}", answer.status));
            }
            Some(r) => {
                self.epochs.insert(r.id, request.value);
                self.read_of_epoch(r, request.value)?;
            }
            None => {}
        }
        self.check_unharmed()
    }

    /// Accesses a chunk in a new epoch, sealed by the owner or by the Shield.
    fn read_of_epoch(&mut self, r: &Region, epoch: u64) -> Result<()> {
        let c = self.some_chunk(r);
        let mut data = vec![0; r.chunk as usize];
        self.rng.fill(&mut data);
        let Some(key) = self.s.keys().data_key(r.id) else { return Ok(()) };
        let cipher = ChunkCipher::new(r.id, key);
        let mut sealed = data.clone();
        let tag = cipher.seal(epoch, c, &mut sealed);
        let okay = vec![true; data.len() / 64];
        if r.mode == Mode::Input {
            place(&mut self.s.bench, r, c, &(sealed, tag));
            let op = Op::Read { id: 3, addr: r.chunk_addr(c), beats: r.chunk / 64 };
            self.execute(&[Transaction { op, want: Outcome { okay, data }, required: true }])?;
            return Ok(());
        }
        self.watch.secret(&data);
        let op = Op::Write { id: 3, addr: r.chunk_addr(c), data, strobes: Vec::new() };
        self.execute(&[Transaction {
            op,
            want: Outcome { okay: vec![true], data: Vec::new() },
            required: true,
        }])?;
        self.must(&ShieldRequest::flush())?;
        if piece(&self.s.bench, r, c) != (sealed, tag) {
            self.v
                .refused_wrong
                .push(format!("region {} chunk {c} is not as sealed in epoch {epoch}", r.name));
        }
        Ok(())
    }

    /// Ends the session while bursts run, and checks their outcomes up to that point.
    pub(super) fn end_under_way(&mut self, end: End) -> Result<()> {
        let transactions = may_be_refused(self.honest(6));
        let ops: Vec<Op> = transactions.iter().map(|d| d.op.clone()).collect();
        if self.rng.one_in(3) {
            // Longer than any other wait at an end of a session.
            let late = 2000 + self.below(1500);
            for m in self.s.bench.core().axi_memories() {
                (m.config.read_latency, m.config.write_latency) = (late, late);
            }
        }
        self.s.bench.push(&ops);
        let wait = self.below(120);
        self.s.bench.steps(wait);
        self.v.act.push_str(&format!("{end:?} {wait} cycles after six bursts"));
        self.v.transactions += 1;
        match end {
            End::Reset => {
                self.s.bench.core().reset();
                let memory = timing(&mut self.rng);
                self.s
                    .bench
                    .core()
                    .axi_memories()
                    .iter_mut()
                    .for_each(|m| m.config = memory.clone());
            }
            End::Wipe => {
                self.s.bench.wipe()?;
            }
            // A Shield halted by a fault is closed.
            _ if self.state()? == ctl::STATUS_STATE_CLOSED => {}
            End::Close | End::Abort => {
                let request =
                    if end == End::Close { ShieldRequest::close() } else { ShieldRequest::abort() };
                self.command(&request);
                let well = ctl::STATUS_FAULT_KIND.get(self.s.bench.ctl_read(ctl::STATUS)?) == 0;
                let status = self.channel.try_command(&mut self.s.bench, &request)?;
                if well && status != Some(0) {
                    self.v.refused_wrong.push(format!("{end:?}: {status:?}"));
                }
            }
        }
        let (what, state) = match end {
            End::Wipe | End::Reset => ("EMPTY", ctl::STATUS_STATE_EMPTY),
            End::Close | End::Abort => ("CLOSED", ctl::STATUS_STATE_CLOSED),
        };
        host::wait_for(&mut self.s.bench, what, |s| ctl::STATUS_STATE.get(s) == state)?;
        self.nothing_left()?;
        let got = self.s.bench.finish(None)?;
        self.judge(&transactions, &got);
        Ok(())
    }

    /// Without a session the accelerator is held in reset, none of its bursts run, and the Shield
    /// issues no memory request.
    pub(super) fn nothing_runs(&mut self) -> Result<()> {
        // Earlier requests may still be accepted.
        self.s.bench.steps(64);
        if !self.s.bench.held() {
            self.v.accepted_wrong.push("the accelerator runs without a session".into());
        }
        let before = self.s.bench.core().counters();
        let transactions = may_be_refused(self.honest(3));
        let got = self.execute(&transactions)?;
        if got.iter().any(|o| o.okay.contains(&true)) {
            self.v.delivered_wrong.push("a burst succeeded without keys".into());
        }
        let after = self.s.bench.core().counters();
        if (before.reads, before.writes) != (after.reads, after.writes) {
            self.v
                .delivered_wrong
                .push("the Shield asked the memory for something without a session".into());
        }
        Ok(())
    }

    /// When the Shield reports the end of a session, nothing of it remains around the Shield:
    /// memory owes it no response, the accelerator's memory is clear, and the seed port holds no
    /// seed.
    pub(super) fn nothing_left(&mut self) -> Result<()> {
        // Memory that violates the protocol may owe anything.
        let breach = matches!(self.kind, Kind::Truncate | Kind::Reorder | Kind::Silence);
        if !breach && !self.s.bench.core().axi_memories().iter().all(|m| m.idle()) {
            self.v
                .accepted_wrong
                .push("the session is over, and memory still owes it a response".into());
        }
        if self.s.bench.core().sim().peek("acc_left") != 0 {
            self.v
                .accepted_wrong
                .push("the session is over, and the accelerator's memory is not clear".into());
        }
        match self.s.bench.krn_write(krn::CTRL, 1) {
            Err(BenchError::Register(_)) => {}
            Ok(()) => self
                .v
                .accepted_wrong
                .push("the seed doorbell was accepted without a new seed".into()),
            Err(e) => return Err(e),
        }
        self.registers_hidden()
    }

    /// Registers show values that belong to the state and zeros otherwise: nothing of an older
    /// session.
    fn registers_hidden(&mut self) -> Result<()> {
        let state = self.state()?;
        let (fresh, closed) = (state == ctl::STATUS_STATE_FRESH, state == ctl::STATUS_STATE_CLOSED);
        let (mut answer, mut confirm) = ([0; MESSAGE_LEN], [0; ctl::CONFIRM_BYTES]);
        host::bytes_out(&mut |a| self.s.bench.ctl_read(a), ctl::CHAN_RSP, &mut answer)?;
        host::bytes_out(&mut |a| self.s.bench.ctl_read(a), ctl::CONFIRM, &mut confirm)?;
        let (mut key, mut t, mut last) =
            ([0; krn::PUBKEY_BYTES], [0; krn::T_BYTES], [0; krn::LAST_BYTES]);
        for (at, bytes) in [(krn::PUBKEY, &mut key[..]), (krn::T, &mut t), (krn::LAST, &mut last)] {
            host::bytes_out(&mut |a| self.s.bench.krn_read(a), at, bytes)?;
        }
        let shown = [
            ("the answer", !closed && answer != [0; MESSAGE_LEN]),
            ("the confirmation", confirm != [0; ctl::CONFIRM_BYTES]),
            ("the public key", !fresh && key != [0; krn::PUBKEY_BYTES]),
            ("T", !closed && t != [0; krn::T_BYTES]),
            ("the last message", !closed && last != [0; krn::LAST_BYTES]),
        ];
        for (what, _) in shown.iter().filter(|(_, shows)| *shows) {
            self.v
                .accepted_wrong
                .push(format!("{what} of an older session is shown in state {state}"));
        }
        Ok(())
    }

    /// Whether the Shield refuses the next message of its last session.
    pub(super) fn session_is_over(&mut self) -> Result<bool> {
        let sealed = self.channel.next_message(self.s.keys())?;
        self.v.transactions += 1;
        let status = host::ring(&mut self.s.bench, &sealed, 0..host::WORDS)?;
        if !channel_refused(status) {
            self.v
                .accepted_wrong
                .push(format!("a message of a lost session was taken, status {status:#x}"));
        }
        Ok(channel_refused(status))
    }

    /// Unsolicited responses from memory.
    pub(super) fn strays(&mut self) {
        for _ in 0..1 + self.below(3) {
            let id = if self.rng.one_in(2) { self.below(256) } else { self.below(8) } as u8;
            let h = if self.rng.one_in(2) {
                Hostile::UnownedR { id }
            } else {
                Hostile::UnownedB { id }
            };
            let ports = self.s.bench.core().axi_memories().len() as u64;
            let port = self.below(ports) as usize;
            self.v.act.push_str(&format!(", {h:?} at port {port}"));
            self.s.bench.core().axi_memories()[port].inject(h);
            let wait = 20 + self.below(200);
            self.s.bench.steps(wait);
        }
    }

    /// A session, its end while bursts run, and another session.
    pub(super) fn two_sessions(&mut self) -> Result<()> {
        let resets = self.s.bench.master().resets();
        match self.kind {
            Kind::Error | Kind::Silence => {
                self.failing()?;
                self.v.act.push_str("; ");
            }
            Kind::Delay => {
                let late = 60 + self.below(3000);
                self.s
                    .bench
                    .core()
                    .axi_memories()
                    .iter_mut()
                    .for_each(|m| m.config.read_latency = late);
                self.v.act = format!("latency {late}; ");
            }
            _ => self.warm_up()?,
        }
        let end = self.some_end();
        self.end_under_way(end)?;
        // A port that timed out is not used again before reset.
        let mut expect = if self.kind == Kind::Silence && end != End::Reset {
            Expect::CleanOrReported
        } else {
            Expect::Clean
        };
        self.s.bench.core().axi_memories().iter_mut().for_each(shef_rtl::AxiMemory::behave);
        if self.kind == Kind::Flood {
            self.flood_at_rest()?;
        }
        if self.kind == Kind::Reorder || !self.rng.one_in(4) {
            self.strays();
        }
        self.nothing_runs()?;
        if matches!(self.kind, Kind::Reset | Kind::Delay) {
            self.v.detected = self.session_is_over()?;
        }
        let Some(mut next) = self.session(&mut expect)? else { return Ok(()) };
        self.v.spanning = self.s.bench.master().resets() > resets;
        if !self.v.spanning {
            self.v.accepted_wrong.push("the accelerator was not reset between two sessions".into());
        }
        self.prove(&mut next, expect)?;
        if matches!(self.kind, Kind::Flip | Kind::Swap | Kind::Replay | Kind::Splice | Kind::Zero) {
            self.forged_next(&mut next)?;
        }
        Ok(())
    }

    /// Keys a session, with hostile acts on the way. `None` if the Shield reports why there is no
    /// session.
    pub(super) fn session(&mut self, expect: &mut Expect) -> Result<Option<Next>> {
        self.v.act.push_str(", then a session");
        let config = self.s.config.clone();
        let seed = self.s.seed ^ self.rng.next_u64();
        let key = if self.state()? == ctl::STATUS_STATE_FRESH {
            self.s.fresh.key
        } else {
            let status = self.s.bench.ctl_read(ctl::STATUS)?;
            if ctl::STATUS_STOPPED.get(status) != 0 && self.rng.one_in(2) {
                // A compliant kernel; a non-compliant one gets a clean session or no session.
                self.s.bench.krn_write(krn::CTRL, 2)?;
                host::wait_for(&mut self.s.bench, "EMPTY after the kernel's wipe", |s| {
                    ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_EMPTY
                })?;
            }
            if self.rng.one_in(6) {
                self.never_cleared()?;
            }
            Owner::fresh(&mut self.s.bench, seed)?
        };
        if !self.rng.one_in(4) {
            // Everything after the seed belongs to the session.
            self.strays();
            *expect = Expect::CleanOrReported;
        }
        // Below the epochs of the previous session, or any.
        let epoch = if self.rng.one_in(2) { 7 } else { 1 + self.below(MAX_EPOCH) };
        let epochs = first_epochs(&config, epoch);
        let (message, keys) = seal_load_key(
            &config,
            &key,
            b"bench",
            &epochs,
            &mut SeededEntropy::new(seed, "owner"),
        )?;
        if self.kind == Kind::Truncate {
            let n = self.below(message.len() as u64) as usize;
            self.v.transactions += 1;
            let status = host::load(&mut self.s.bench, &message[..n])?;
            self.v.detected = ctl::STATUS_LOAD_REFUSED.get(status) != 0
                && ctl::STATUS_STATE.get(status) == ctl::STATUS_STATE_FRESH;
            if !self.v.detected {
                self.v.accepted_wrong.push(format!("{n} bytes of a Load Key, status {status:#x}"));
            }
        }
        self.registers_hidden()?;
        if !self.s.bench.held() {
            self.v.accepted_wrong.push("the accelerator runs before the Load Key".into());
        }
        self.v.transactions += 1;
        self.v.honest += 1;
        match Owner::load(&mut self.s.bench, &config, &message, keys) {
            Ok(owner) => Ok(Some(Next { owner, epoch, sealed: Vec::new() })),
            // A Shield that halts ends such a session at once.
            Err(BenchError::Refused { .. })
                if *expect == Expect::CleanOrReported && config.on_fault() == OnFault::Halt =>
            {
                self.v.detected = true;
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// An accelerator that does not clear its memories: no session begins and the status says why.
    fn never_cleared(&mut self) -> Result<()> {
        self.v.act.push_str(", the accelerator does not clear");
        self.s.bench.core().sim().poke("acc_uncleared", 1);
        let seed = [0x5e; krn::SEED_BYTES];
        host::bytes_in(&mut |a, v| self.s.bench.krn_write(a, v), krn::SEED, &seed)?;
        self.s.bench.krn_write(krn::CTRL, 1)?;
        let over = |s| {
            ctl::STATUS_UNCLEARED.get(s) != 0 || ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_FRESH
        };
        let status = host::wait_for(&mut self.s.bench, "UNCLEARED", over)?;
        self.s.bench.core().sim().poke("acc_uncleared", 0);
        self.v.transactions += 1;
        if ctl::STATUS_UNCLEARED.get(status) == 0
            || ctl::STATUS_STATE.get(status) == ctl::STATUS_STATE_FRESH
        {
            self.v.accepted_wrong.push(format!(
                "a session began beside an accelerator that was not cleared, status {status:#x}"
            ));
        }
        self.nothing_runs()
    }

    /// Honest traffic to every region of a new session, a flush and the statement: everything
    /// works, or the statement reports that it does not.
    pub(super) fn prove(&mut self, next: &mut Next, expect: Expect) -> Result<()> {
        let config = self.s.config.clone();
        let required = expect == Expect::Clean;
        // Statistics restart.
        let set = self.below(config.sets().len() as u64) as u8;
        let page = self.below(2) as u32;
        match next.owner.call(&mut self.s.bench, &ShieldRequest::stats(set, page)) {
            Ok(counted) if counted.payload.iter().any(|b| *b != 0) => {
                self.v.accepted_wrong.push(format!(
                    "statistics of set {set} at the beginning of a session: {counted:?}"
                ));
            }
            Err(e) if required => return Err(e),
            _ => {}
        }
        let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
        for r in config.regions() {
            let mut taken = Vec::new();
            for _ in 0..3 {
                let c = self.some_chunk(r);
                if taken.contains(&c) {
                    continue;
                }
                taken.push(c);
                let mut data = vec![0; r.chunk as usize];
                self.rng.fill(&mut data);
                let id = self.below(8) as u8;
                let okay = vec![true; data.len() / 64];
                let read = |data: &[u8]| {
                    let op = Op::Read { id, addr: r.chunk_addr(c), beats: r.chunk / 64 };
                    Transaction {
                        op,
                        want: Outcome { okay: okay.clone(), data: data.to_vec() },
                        required,
                    }
                };
                let op = Op::Write {
                    id,
                    addr: r.chunk_addr(c),
                    data: data.clone(),
                    strobes: Vec::new(),
                };
                let write = Transaction {
                    op,
                    want: Outcome { okay: vec![true], data: Vec::new() },
                    required,
                };
                if matches!(r.mode, Mode::Output | Mode::Counted | Mode::Tree) {
                    self.watch.secret(&data);
                }
                match (r.mode, next.cipher(r)) {
                    (Mode::Input, Some(cipher)) => {
                        let mut sealed = data.clone();
                        let tag = cipher.seal(next.epoch, c, &mut sealed);
                        place(&mut self.s.bench, r, c, &(sealed, tag));
                        first.push(read(&data));
                    }
                    (Mode::Counted | Mode::Tree, _) => {
                        // No data of the previous session remains.
                        first.push(read(&vec![0; data.len()]));
                        second.push(write);
                        third.push(read(&data));
                    }
                    (Mode::Output, _) => second.push(write),
                    _ => {
                        second.push(write);
                        third.push(read(&data));
                    }
                }
                if r.mode != Mode::Bypass {
                    next.sealed.push((r.clone(), c, data));
                }
            }
        }
        let mut refused = 0;
        for (k, transactions) in [first, second, third].iter().enumerate() {
            if k == 2 {
                let request = if self.rng.one_in(2) {
                    ShieldRequest::flush()
                } else {
                    ShieldRequest::invalidate()
                };
                self.command(&request);
                match next.owner.call(&mut self.s.bench, &request) {
                    Err(e) if required => return Err(e),
                    Err(_) => refused += 1,
                    Ok(_) => {}
                }
            }
            let got = self.execute(transactions)?;
            refused += got.iter().filter(|o| o.okay.contains(&false)).count();
        }
        match next.owner.statement(&mut self.s.bench) {
            Ok(statement) => self.check_statement(next, &statement, refused, expect),
            // A halted Shield has sent its final statement.
            Err(_) if !required && self.state()? == ctl::STATUS_STATE_CLOSED => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Checks a statement against the events of the session.
    fn check_statement(
        &mut self,
        next: &Next,
        statement: &Statement,
        refused: usize,
        expect: Expect,
    ) {
        let page = statement.shield();
        if page.stopped || page.faults != 0 {
            if expect == Expect::Clean {
                self.v.refused_wrong.push(format!("an honest session is not clean: {page:?}"));
            }
            return;
        }
        if refused != 0 {
            self.v.accepted_wrong.push(format!("a clean statement of a session in which {refused} honest bursts were refused: {page:?}"));
            return;
        }
        if page.refusals != 0 {
            self.v
                .refused_wrong
                .push(format!("refusals in the statement of an honest session: {page:?}"));
        }
        for r in self.s.config.regions() {
            let epoch = if r.mode.has_epoch() { next.epoch } else { 0 };
            if statement.region(r.id).is_none_or(|p| p.epoch != epoch) {
                self.v.accepted_wrong.push(format!(
                    "region {}: {:?} in a session that began in epoch {}",
                    r.name,
                    statement.region(r.id),
                    next.epoch
                ));
            }
            let was_sealed = |c: u64| next.sealed.iter().any(|(o, d, _)| o.id == r.id && *d == c);
            if let Some(map) = statement.written(r.id)
                && let Some(c) = (0..r.chunks()).find(|c| map.is_written(*c) != was_sealed(*c))
            {
                self.v.accepted_wrong.push(format!(
                    "region {} chunk {c}: the written map says {}",
                    r.name,
                    map.is_written(c)
                ));
            }
        }
        for (r, c, plain) in next.sealed.iter().filter(|(r, ..)| r.mode == Mode::Output) {
            self.v.honest += 1;
            self.v.transactions += 1;
            let (mut data, tag) = piece(&self.s.bench, r, *c);
            let opens = next.cipher(r).is_some_and(|k| k.open(next.epoch, *c, &mut data, &tag));
            if !opens || data != *plain {
                self.v.accepted_wrong.push(format!(
                    "a clean statement, and region {} chunk {c} is not what was written",
                    r.name
                ));
            }
        }
    }

    /// A forgery in the new session, such as data from the previous session.
    fn forged_next(&mut self, next: &mut Next) -> Result<()> {
        if next
            .owner
            .statement(&mut self.s.bench)
            .is_ok_and(|s| !s.shield().stopped && s.shield().faults == 0)
        {
            next.owner.call(&mut self.s.bench, &ShieldRequest::invalidate())?;
        } else {
            // A session that reports that it is not clean opens no result.
            self.v.detected = true;
            return Ok(());
        }
        let Some((r, c, _)) = pick(&mut self.rng, &next.sealed) else { return Ok(()) };
        let now = piece(&self.s.bench, &r, c);
        let like: Vec<_> = next
            .sealed
            .iter()
            .filter(|(o, d, _)| o.chunk == r.chunk && (o.id, *d) != (r.id, c))
            .cloned()
            .collect();
        let other: Piece = pick(&mut self.rng, &like)
            .map_or((vec![0; now.0.len()], [0; 16]), |(o, d, _)| piece(&self.s.bench, &o, d));
        let old = self.old_piece(&r, c);
        let mut bad = now.clone();
        let how = self.below(3);
        if how != 1 {
            bad.0 = mangle(&mut self.rng, self.kind, &now.0, &other.0, &old.0);
        }
        if how != 0 {
            bad.1.copy_from_slice(&mangle(&mut self.rng, self.kind, &now.1, &other.1, &old.1));
        }
        if bad == now {
            bad.1[3] ^= 1;
        }
        self.v.act.push_str(&format!(", region {} chunk {c} forged", r.name));
        self.v.transactions += 1;
        if r.mode == Mode::Output {
            let opened = next.cipher(&r).is_some_and(|k| k.open(next.epoch, c, &mut bad.0, &bad.1));
            if opened {
                self.v.accepted_wrong.push(format!("forged result {} chunk {c} opened", r.name));
            }
            self.v.detected = !opened;
            return Ok(());
        }
        place(&mut self.s.bench, &r, c, &bad);
        let op = Op::Read { id: 1, addr: r.chunk_addr(c), beats: r.chunk / 64 };
        let got = self.s.bench.burst(&[op])?;
        if got.iter().any(|o| o.okay.contains(&true) || o.data.iter().any(|b| *b != 0)) {
            self.v.delivered_wrong.push(format!("words of forged region {} chunk {c}", r.name));
        }
        if self.s.config.on_fault() == OnFault::Halt {
            host::wait_for(&mut self.s.bench, "CLOSED after a fault", |s| {
                ctl::STATUS_STATE.get(s) == ctl::STATUS_STATE_CLOSED
            })?;
        }
        let status = self.s.bench.ctl_read(ctl::STATUS)?;
        self.v.detected = ctl::STATUS_FAULT_KIND.get(status) == u32::from(FaultKind::Tag.number());
        Ok(())
    }

    /// Random register accesses while nothing else happens.
    pub(super) fn flood_at_rest(&mut self) -> Result<()> {
        let old = self.s.closed.1.iter().map(|(_, m, _)| *m).collect::<Vec<_>>();
        let old = pick(&mut self.rng, &old).unwrap_or([0; shef_proto::channel::MESSAGE_LEN]);
        let seed = self.rng.next_u64();
        let mut flood = Flood::new(&mut self.s.bench, seed, old)?;
        for _ in 0..400 {
            self.s.bench.core().step_with(&mut [&mut flood]);
        }
        flood.end(&mut self.s.bench);
        self.v.act.push_str(&format!("{} register accesses without a session", flood.answered));
        host::ready(&mut self.s.bench).map(drop)
    }
}
