//! Acts on messages: the owner's requests, the Shield's answers, Load Keys, and random register
//! accesses.

use super::transactions::Transaction;
use super::{Trial, pick, timing};
use crate::Result;
use crate::attack::flood::Flood;
use crate::attack::session::FIRST_EPOCH;
use crate::attack::{Kind, State};
use crate::host;
use crate::owner::Owner;
use crate::traffic::{Op, Outcome};
use shef_proto::channel::{MESSAGE_LEN, Sealed, ShieldRequest};
use shef_proto::config::{Mode, Region};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::generate_key_pair;
use shef_proto::load::{first_epochs, seal_load_key};
use shef_regs::ctl;

/// Offsets of the fields of a Load Key: suite, then length and bytes of the encapsulated key, of
/// the info and of the ciphertext.
const ENC: usize = 4;
const AFTER_ENC: usize = ENC + 65;

/// Whether the Shield refused the last message.
pub fn channel_refused(status: u32) -> bool {
    ctl::STATUS_CHAN_REFUSED.get(status) != 0
}

impl Trial<'_> {
    fn some_request(&mut self) -> ShieldRequest {
        let with_epoch = self.regions(Mode::has_epoch);
        match (self.below(8), pick(&mut self.rng, &with_epoch)) {
            (0, Some(r)) => ShieldRequest::epoch(r.id, self.s.epoch + 1 + self.rng.below(9)),
            (1, _) => ShieldRequest::invalidate(),
            (2, Some(r)) => ShieldRequest::statement(1 + u32::from(r.id)),
            (3, _) => ShieldRequest::flush(),
            _ => ShieldRequest::ping(),
        }
    }

    pub(super) fn forged_request(&mut self) -> Result<()> {
        if self.rng.one_in(2) {
            self.warm_up()?;
        }
        let request = self.some_request();
        // Every older message except the last, whose repetition gets the stored answer and runs
        // nothing.
        let before: Vec<Sealed> =
            self.channel.wire.iter().rev().skip(1).map(|(_, m, _)| *m).collect();
        let sealed = self.channel.seal(&request)?;
        let (bad, words) = self.forged_message(&sealed, &before);
        self.v.act = format!("request {request:?}");
        self.v.transactions += 2;
        self.v.honest += 1;
        if self.kind == Kind::Truncate
            && let Some((_, message, answer)) = self.channel.wire.last().copied()
        {
            // The window contains the last message, as the host left it.
            let status = host::ring(&mut self.s.bench, &message, 0..host::WORDS)?;
            if channel_refused(status) || host::shown(&mut self.s.bench)? != answer {
                self.v
                    .refused_wrong
                    .push("the last message again did not get its stored answer".into());
            }
        }
        let status = host::ring(&mut self.s.bench, &bad, words)?;
        if !channel_refused(status) {
            self.v
                .accepted_wrong
                .push(format!("a forged message was not refused, status {status:#x}"));
        }
        let answer = host::carry(&mut self.s.bench, &sealed)?;
        match self.channel.accept(&request, &sealed, &answer) {
            Some(a) if a.status == 0 => {}
            a => self
                .v
                .refused_wrong
                .push(format!("the true message after it: {:?}", a.map(|a| a.status))),
        }
        if self.rng.one_in(4) {
            let page = self.channel.page0(&mut self.s.bench)?;
            if page.requests != self.channel.wire.len() as u64 || page.stopped {
                self.v
                    .accepted_wrong
                    .push(format!("{} requests were sent, page {page:?}", self.channel.wire.len()));
            }
        }
        self.v.detected = channel_refused(status);
        Ok(())
    }

    pub(super) fn forged_answer(&mut self) -> Result<()> {
        let request = self.some_request();
        let before: Vec<Sealed> = self.channel.wire.iter().map(|(_, _, a)| *a).collect();
        let sealed = self.channel.seal(&request)?;
        let answer = host::carry(&mut self.s.bench, &sealed)?;
        let (mut bad, words) = self.forged_message(&answer, &before);
        for (i, b) in bad.iter_mut().enumerate() {
            if !words.contains(&(i / 4)) {
                *b = 0;
            }
        }
        if bad == answer {
            bad[MESSAGE_LEN - 1] ^= 1;
        }
        self.v.act = format!("answer to {request:?}");
        self.v.transactions += 2;
        self.v.honest += 1;
        if self.channel.accept(&request, &sealed, &bad).is_some() {
            self.v.accepted_wrong.push("a forged answer was taken".into());
            return Ok(());
        }
        self.v.detected = true;
        if self.channel.accept(&request, &sealed, &answer).is_none_or(|a| a.status != 0) {
            self.v.refused_wrong.push("the true answer after it".into());
        }
        Ok(())
    }

    /// Sends two messages in the wrong order: the second is refused until the first has run.
    pub(super) fn messages_exchanged(&mut self) -> Result<()> {
        self.must(&ShieldRequest::ping())?;
        self.must(&ShieldRequest::ping())?;
        let [.., (_, first, answer), (_, second, _)] = self.channel.wire[..] else { return Ok(()) };
        let memory = timing(&mut self.rng);
        self.s.bench.restore(&self.s.snapshot, memory, self.stalls)?;
        self.watch.bind(&mut self.s.bench);
        self.v.act = "request n + 2 before n + 1".into();
        self.v.transactions += 3;
        self.v.honest += 2;
        let status = host::ring(&mut self.s.bench, &second, 0..host::WORDS)?;
        self.v.detected = channel_refused(status);
        if !self.v.detected {
            self.v
                .accepted_wrong
                .push(format!("a message was run before its turn, status {status:#x}"));
        }
        if host::carry(&mut self.s.bench, &first)? != answer {
            self.v.refused_wrong.push("the first message has another answer".into());
        }
        host::carry(&mut self.s.bench, &second)?;
        Ok(())
    }

    /// Sends a Load Key that is not the owner's: changed, truncated, from another session or of
    /// another suite. The Shield keeps waiting and then accepts the true one.
    pub(super) fn forged_load_key(&mut self) -> Result<()> {
        let memory = timing(&mut self.rng);
        let (config, key) = (self.s.config.clone(), self.s.fresh.key);
        let again = self.kind == Kind::Replay && self.v.state == State::Keyed && self.rng.one_in(2);
        if !again {
            self.s.bench.restore(&self.s.fresh.snapshot, memory, self.stalls)?;
            self.watch.bind(&mut self.s.bench);
        }
        let epochs = first_epochs(&config, FIRST_EPOCH);
        let (message, keys) = seal_load_key(
            &config,
            &key,
            b"bench",
            &epochs,
            &mut SeededEntropy::new(self.s.seed, "owner"),
        )?;
        let mut entropy = SeededEntropy::new(self.rng.next_u64(), "another owner");
        // For the same Shield; for another Shield.
        let (same, _) = seal_load_key(&config, &key, b"bench", &epochs, &mut entropy)?;
        let (_, stranger) = generate_key_pair(&mut entropy);
        let (foreign, _) = seal_load_key(&config, &stranger, b"bench", &epochs, &mut entropy)?;
        let mut bad = message.clone();
        let mut n = message.len();
        match self.kind {
            Kind::Flip => {
                let bit = self.below(8 * n as u64) as usize;
                bad[bit / 8] ^= 1 << (bit % 8);
            }
            Kind::Swap => {
                let (a, b) = (ENC + 1, ENC + 33);
                let (x, y) = (bad[a..b].to_vec(), bad[b..AFTER_ENC].to_vec());
                bad[a..b].copy_from_slice(&y);
                bad[b..AFTER_ENC].copy_from_slice(&x);
            }
            Kind::Replay => bad = if again { message.clone() } else { foreign },
            Kind::Splice => bad[AFTER_ENC..].copy_from_slice(&same[AFTER_ENC..]),
            Kind::Zero => {
                let from = pick(&mut self.rng, &[0, ENC, AFTER_ENC, n - 16]).unwrap_or(0);
                let to = if from == 0 { 2 } else { n };
                bad[from..to].fill(0);
            }
            _ => n = self.below(n as u64) as usize,
        }
        self.v.act = format!(
            "Load Key, {n} of {} bytes{}",
            message.len(),
            if again { ", while a session is open" } else { "" }
        );
        self.v.transactions += 1;
        let status = host::load(&mut self.s.bench, &bad[..n])?;
        let state = ctl::STATUS_STATE.get(status);
        if again {
            // The session that it opened continues.
            self.must(&ShieldRequest::ping())?;
            self.v.detected = state == ctl::STATUS_STATE_KEYED;
            return self.check_unharmed();
        }
        self.v.detected =
            ctl::STATUS_LOAD_REFUSED.get(status) != 0 && state == ctl::STATUS_STATE_FRESH;
        if !self.v.detected {
            self.v.accepted_wrong.push(format!("a forged Load Key, status {status:#x}"));
            return Ok(());
        }
        if self.rng.one_in(4) {
            self.v.transactions += 1;
            self.v.honest += 1;
            Owner::load(&mut self.s.bench, &config, &message, keys)?;
        }
        Ok(())
    }

    /// Random register accesses while bursts run.
    pub(super) fn flood(&mut self) -> Result<()> {
        if self.rng.one_in(4) {
            return self.refused_bursts();
        }
        let old = self.channel.wire.iter().map(|(_, m, _)| *m).collect::<Vec<_>>();
        let old = pick(&mut self.rng, &old).unwrap_or([0; MESSAGE_LEN]);
        let seed = self.rng.next_u64();
        let mut flood = Flood::new(&mut self.s.bench, seed, old)?;
        let transactions = self.honest(8);
        let ops: Vec<Op> = transactions.iter().map(|d| d.op.clone()).collect();
        self.s.bench.push(&ops);
        let got = self.s.bench.finish(Some(&mut flood))?;
        flood.end(&mut self.s.bench);
        self.judge(&transactions, &got);
        self.v.act = format!("{} register accesses while bursts run", flood.answered);
        host::ready(&mut self.s.bench)?;
        self.check_unharmed()
    }

    /// Illegal bursts at all accelerator ports at once, more than a byte can count: each is
    /// answered with errors and counted once, and the honest bursts between them succeed.
    fn refused_bursts(&mut self) -> Result<()> {
        let ports = self.s.config.accelerator_ports();
        let each = 260 / u64::from(ports) + self.below(20);
        let mut transactions = Vec::new();
        for i in 0..each {
            for port in 0..ports {
                let of_port = |r: &Region| self.s.config.sets()[usize::from(r.set)].acc == port;
                let Some(r) = self.s.config.regions().iter().find(|r| of_port(r)) else { continue };
                let op = Op::Read { id: (i % 8) as u8, addr: r.base + r.size - 64, beats: 2 };
                let want = Outcome { okay: vec![false; 2], data: vec![0; 128] };
                transactions.push(Transaction { op, want, required: true });
            }
        }
        self.v.act = format!("{} illegal bursts at {ports} ports", transactions.len());
        let third = transactions.len() as u64 / 3;
        for honest in self.honest(third) {
            let at = self.below(transactions.len() as u64 + 1) as usize;
            transactions.insert(at, honest);
        }
        self.execute(&transactions)?;
        self.counted()?;
        self.check_unharmed()
    }
}
