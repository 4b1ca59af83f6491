//! The owner's and the kernel's side of a session, over any [`Bench`].

use crate::Result;
use crate::bench::{Bench, BenchError};
use shef_proto::channel::{Answer, MESSAGE_LEN, OwnerChannel, Request, Sealed, Statement};
use shef_proto::config::Config;
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{FirstEpoch, SessionKeys, seal_load_key};
use shef_regs::{ctl, krn};

/// Polls of a status register; each lets some time pass.
const PATIENCE: u32 = 20_000;

/// A session: keys and channel.
pub struct Owner {
    config: Config,
    keys: SessionKeys,
    channel: OwnerChannel,
}

fn bytes_in(write: &mut dyn FnMut(u32, u32) -> Result<()>, at: u32, bytes: &[u8]) -> Result<()> {
    for (i, c) in (0u32..).zip(bytes.chunks(4)) {
        let mut w = [0; 4];
        w[..c.len()].copy_from_slice(c);
        write(at + 4 * i, u32::from_le_bytes(w))?;
    }
    Ok(())
}

fn bytes_out(read: &mut dyn FnMut(u32) -> Result<u32>, at: u32, out: &mut [u8]) -> Result<()> {
    for (i, c) in (0u32..).zip(out.chunks_mut(4)) {
        let w = read(at + 4 * i)?.to_le_bytes();
        c.copy_from_slice(&w[..c.len()]);
    }
    Ok(())
}

fn wait_for(bench: &mut dyn Bench, what: &'static str, done: impl Fn(u32) -> bool) -> Result<u32> {
    let mut status = 0;
    for _ in 0..PATIENCE {
        status = bench.ctl_read(ctl::STATUS)?;
        if done(status) {
            return Ok(status);
        }
        bench.wait();
    }
    Err(BenchError::Wait { what, status })
}

fn state(status: u32) -> u32 {
    ctl::STATUS_STATE.get(status)
}

impl Owner {
    /// Brings a Shield from EMPTY to KEYED: seed, public key, Load Key, confirmation. All randomness follows `seed`.
    ///
    /// # Errors
    /// When the Shield refuses, hangs or confirms another key.
    pub fn open(bench: &mut dyn Bench, config: &Config, epochs: &[FirstEpoch], seed: u64) -> Result<Self> {
        let mut kernel_seed = [0; krn::SEED_BYTES];
        SeededEntropy::new(seed, "kernel").fill(&mut kernel_seed);
        wait_for(bench, "EMPTY or CLOSED", |s| state(s) == ctl::STATUS_STATE_EMPTY || state(s) == ctl::STATUS_STATE_CLOSED)?;
        bytes_in(&mut |a, v| bench.krn_write(a, v), krn::SEED, &kernel_seed)?;
        bench.krn_write(krn::CTRL, 1)?;
        wait_for(bench, "FRESH", |s| state(s) == ctl::STATUS_STATE_FRESH)?;
        let mut xy = [0; krn::PUBKEY_BYTES];
        bytes_out(&mut |a| bench.krn_read(a), krn::PUBKEY, &mut xy)?;
        let pk = PublicKey::from_xy(&xy)?;
        let mut entropy = SeededEntropy::new(seed, "owner");
        let (message, keys) = seal_load_key(config, &pk, b"bench", epochs, &mut entropy)?;
        bytes_in(&mut |a, v| bench.ctl_write(a, v), ctl::LOAD_MSG, &message)?;
        bench.ctl_write(ctl::LOAD_DOORBELL, u32::try_from(message.len()).unwrap_or(u32::MAX))?;
        let status = wait_for(bench, "the Load Key", |s| ctl::STATUS_LOAD_BUSY.get(s) == 0)?;
        if ctl::STATUS_LOAD_REFUSED.get(status) != 0 || state(status) != ctl::STATUS_STATE_KEYED {
            return Err(BenchError::Refused { what: "the Load Key", status });
        }
        let mut confirm = [0; ctl::CONFIRM_BYTES];
        bytes_out(&mut |a| bench.ctl_read(a), ctl::CONFIRM, &mut confirm)?;
        keys.check_confirmation(&confirm)?;
        Ok(Self { config: config.clone(), channel: OwnerChannel::new(&keys), keys })
    }

    /// Keys of the session.
    #[must_use]
    pub fn keys(&self) -> &SessionKeys {
        &self.keys
    }

    fn carry(bench: &mut dyn Bench, sealed: &Sealed) -> Result<Sealed> {
        bytes_in(&mut |a, v| bench.ctl_write(a, v), ctl::CHAN_REQ, sealed)?;
        bench.ctl_write(ctl::CHAN_DOORBELL, 1)?;
        let status = wait_for(bench, "the answer", |s| ctl::STATUS_CHAN_BUSY.get(s) == 0)?;
        if ctl::STATUS_CHAN_REFUSED.get(status) != 0 || ctl::STATUS_CHAN_ANSWER.get(status) == 0 {
            return Err(BenchError::Refused { what: "the request", status });
        }
        let mut answer = [0; MESSAGE_LEN];
        bytes_out(&mut |a| bench.ctl_read(a), ctl::CHAN_RSP, &mut answer)?;
        Ok(answer)
    }

    /// A request and its answer; a status other than done is an error.
    ///
    /// # Errors
    /// A refusal, a status other than done, an answer that is not authentic.
    pub fn call(&mut self, bench: &mut dyn Bench, request: &Request) -> Result<Answer> {
        self.channel.call(request, &mut |sealed| Self::carry(bench, sealed))
    }

    /// The whole statement.
    ///
    /// # Errors
    /// As [`Owner::call`].
    pub fn statement(&mut self, bench: &mut dyn Bench) -> Result<Statement> {
        self.channel.statement(&self.config, &mut |sealed| Self::carry(bench, sealed))
    }
}
