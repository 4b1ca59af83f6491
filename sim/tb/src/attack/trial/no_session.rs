//! Acts without a keyed session: on an empty Shield, on one that waits for its Load Key, and on one
//! whose session is over.

use super::channel::channel_refused;
use super::forge::mangle;
use super::next_session::Expect;
use super::{Trial, pick};
use crate::Result;
use crate::attack::session::FIRST_EPOCH;
use crate::attack::{Kind, State};
use crate::bench::Bench;
use crate::host;
use shef_proto::channel::Sealed;
use shef_proto::config::Mode;
use shef_proto::entropy::SeededEntropy;
use shef_proto::load::{first_epochs, seal_load_key};
use shef_regs::ctl;

impl Trial<'_> {
    /// Runs one act. Afterwards the Shield is in its previous state, runs no bursts, and an honest
    /// session works or reports that it does not.
    pub(super) fn without_session(&mut self) -> Result<()> {
        let mut expect = Expect::Clean;
        let before = self.state()?;
        let mut want = before;
        self.v.act = format!("{}: ", self.v.state.name());
        let forged = matches!(
            self.kind,
            Kind::Flip | Kind::Swap | Kind::Replay | Kind::Splice | Kind::Zero | Kind::Truncate
        );
        if forged && self.v.state == State::Fresh && self.rng.one_in(16) {
            return self.forged_load_key();
        }
        match self.kind {
            _ if forged => {
                let load = self.v.state != State::Fresh && self.rng.one_in(2);
                self.v.detected = if load { self.forged_load()? } else { self.forged_call()? };
            }
            Kind::Reorder => {
                self.strays();
                if self.v.state == State::Fresh {
                    expect = Expect::CleanOrReported;
                }
            }
            Kind::Delay => {
                let late = 60 + self.below(1000);
                self.s
                    .bench
                    .core()
                    .axi_memories()
                    .iter_mut()
                    .for_each(|m| m.config.read_latency = late);
                self.v.act.push_str(&format!("latency {late}"));
            }
            Kind::Error | Kind::Silence => {
                let silent = self.kind == Kind::Silence;
                for m in self.s.bench.core().axi_memories() {
                    if silent { m.frozen = true } else { m.error_ranges.push(0..u64::MAX) }
                }
                self.v.act.push_str("memory fails");
                if self.rng.one_in(2) {
                    self.v.act.push_str(", wipe");
                    self.s.bench.wipe()?;
                    want = ctl::STATUS_STATE_EMPTY;
                }
            }
            Kind::Reset => {
                if self.rng.one_in(2) {
                    self.v.act.push_str("wipe");
                    self.s.bench.wipe()?;
                } else {
                    self.v.act.push_str("reset");
                    self.s.bench.core().reset();
                }
                want = ctl::STATUS_STATE_EMPTY;
            }
            Kind::Flood => self.flood_at_rest()?,
            _ => {
                let open = self.regions(|m| m == Mode::Bypass);
                if let Some(r) = pick(&mut self.rng, &open) {
                    let c = self.some_chunk(&r);
                    self.s.bench.mem_write(r.chunk_addr(c), &[0x5a; 64]);
                }
            }
        }
        host::wait_for(&mut self.s.bench, "the state after an act without a session", |s| {
            ctl::STATUS_STATE.get(s) == want
        })?;
        self.nothing_left()?;
        self.nothing_runs()?;
        self.v.transactions += 1;
        if matches!(self.kind, Kind::Reset | Kind::Error | Kind::Silence) {
            // A Load Key for a key pair that no longer exists, or never did, opens nothing.
            self.v.detected = want == ctl::STATUS_STATE_FRESH || self.forged_load()?;
        }
        for m in self.s.bench.core().axi_memories() {
            m.frozen = false;
            m.behave();
        }
        if self.on
            && let Some(mut next) = self.session(&mut expect)?
        {
            self.prove(&mut next, expect)?;
        }
        Ok(())
    }

    /// Sends a Load Key, possibly the true one, to a Shield that does not wait for one. Returns
    /// whether it was refused.
    fn forged_load(&mut self) -> Result<bool> {
        let config = self.s.config.clone();
        let epochs = first_epochs(&config, FIRST_EPOCH);
        let key = self.s.fresh.key;
        let (message, _) = seal_load_key(
            &config,
            &key,
            b"bench",
            &epochs,
            &mut SeededEntropy::new(self.s.seed, "owner"),
        )?;
        let seed = self.rng.next_u64();
        let (other, _) = seal_load_key(
            &config,
            &key,
            b"bench",
            &epochs,
            &mut SeededEntropy::new(seed, "another owner"),
        )?;
        let bad = match self.kind {
            Kind::Replay | Kind::Reset | Kind::Error | Kind::Silence => message,
            Kind::Truncate => message[..self.below(message.len() as u64) as usize].to_vec(),
            kind => {
                // Whole pieces of eight bytes.
                let n = message.len() & !7;
                let mut bad = mangle(&mut self.rng, kind, &message[..n], &other[..n], &other[..n]);
                bad.extend_from_slice(&message[n..]);
                bad
            }
        };
        self.v.act.push_str(&format!("Load Key of {} bytes", bad.len()));
        let before = self.state()?;
        self.v.transactions += 1;
        let status = host::load(&mut self.s.bench, &bad)?;
        let refused =
            ctl::STATUS_LOAD_REFUSED.get(status) != 0 && ctl::STATUS_STATE.get(status) == before;
        if !refused {
            self.v
                .accepted_wrong
                .push(format!("a Load Key that nobody waits for, status {status:#x}"));
        }
        Ok(refused)
    }

    /// Sends a message of a session that is over or had another key. Returns whether it was
    /// refused.
    fn forged_call(&mut self) -> Result<bool> {
        let all: Vec<Sealed> = self.s.closed.1.iter().map(|(_, m, _)| *m).collect();
        let now = match self.v.state {
            // The next message, which only the owner can make.
            State::Closed if self.rng.one_in(2) => self.channel.next_message(self.s.keys())?,
            _ => pick(&mut self.rng, &all).unwrap_or([0; shef_proto::channel::MESSAGE_LEN]),
        };
        let (bad, words) = if self.rng.one_in(2) {
            (now, 0..host::WORDS)
        } else {
            self.forged_message(&now, &all)
        };
        self.v.act.push_str("a message of the channel");
        self.v.transactions += 1;
        let status = host::ring(&mut self.s.bench, &bad, words)?;
        if !channel_refused(status) {
            self.v
                .accepted_wrong
                .push(format!("a message was run without a session, status {status:#x}"));
        }
        Ok(channel_refused(status))
    }
}
