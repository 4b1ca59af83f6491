//! The owner's and the kernel's side of a session, over any [`Bench`].

use crate::bench::Bench;
use crate::host::{self, bytes_in, bytes_out, wait_for};
use crate::{BenchError, Result};
use shef_proto::channel::{OwnerChannel, ShieldAnswer, ShieldRequest, Statement};
use shef_proto::config::Config;
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{FirstEpoch, SessionKeys, seal_load_key};
use shef_regs::{ctl, krn};

/// A session: keys and channel.
pub struct Owner {
    config: Config,
    keys: SessionKeys,
    channel: OwnerChannel,
}

fn state(status: u32) -> u32 {
    ctl::STATUS_STATE.get(status)
}

impl Owner {
    /// Takes a Shield from EMPTY to KEYED: seed, public key, Load Key, confirmation. All randomness
    /// is derived from `seed`.
    ///
    /// # Errors
    /// If the Shield refuses, hangs or confirms another key.
    pub fn open(
        bench: &mut dyn Bench,
        config: &Config,
        epochs: &[FirstEpoch],
        seed: u64,
    ) -> Result<Self> {
        let pk = Self::fresh(bench, seed)?;
        let (message, keys) =
            seal_load_key(config, &pk, b"bench", epochs, &mut SeededEntropy::new(seed, "owner"))?;
        Self::load(bench, config, &message, keys)
    }

    /// The kernel's part: a seed, and the Shield's public key.
    ///
    /// # Errors
    /// If the Shield accepts no seed.
    pub fn fresh(bench: &mut dyn Bench, seed: u64) -> Result<PublicKey> {
        let mut kernel_seed = [0; krn::SEED_BYTES];
        SeededEntropy::new(seed, "kernel").fill(&mut kernel_seed);
        wait_for(bench, "EMPTY or CLOSED", |s| {
            state(s) == ctl::STATUS_STATE_EMPTY || state(s) == ctl::STATUS_STATE_CLOSED
        })?;
        bytes_in(&mut |a, v| bench.krn_write(a, v), krn::SEED, &kernel_seed)?;
        bench.krn_write(krn::CTRL, 1)?;
        wait_for(bench, "FRESH", |s| state(s) == ctl::STATUS_STATE_FRESH)?;
        let mut xy = [0; krn::PUBKEY_BYTES];
        bytes_out(&mut |a| bench.krn_read(a), krn::PUBKEY, &mut xy)?;
        Ok(PublicKey::from_xy(&xy)?)
    }

    /// The owner's part: a Load Key and its confirmation.
    ///
    /// # Errors
    /// If the Shield refuses it or confirms another key.
    pub fn load(
        bench: &mut dyn Bench,
        config: &Config,
        message: &[u8],
        keys: SessionKeys,
    ) -> Result<Self> {
        let status = host::load(bench, message)?;
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

    /// Sends a request and returns its answer. A status other than done is an error.
    ///
    /// # Errors
    /// A refusal, a status other than done, an answer that is not authentic.
    pub fn call(&mut self, bench: &mut dyn Bench, request: &ShieldRequest) -> Result<ShieldAnswer> {
        self.channel.call(request, &mut |sealed| host::carry(bench, sealed))
    }

    /// Reads the whole statement.
    ///
    /// # Errors
    /// As [`Owner::call`].
    pub fn statement(&mut self, bench: &mut dyn Bench) -> Result<Statement> {
        self.channel.statement(&self.config, &mut |sealed| host::carry(bench, sealed))
    }
}
