//! Ports by AWS's names, and the rule that a channel keeps what it offers.

use super::rules::{Record, Rule};
use crate::{Port, Result, Sim};

/// The two prefixes of a bundle, for example `cl_sh_pcim_` and `sh_cl_pcim_`.
#[derive(Clone, Copy)]
pub(crate) struct Bundle<'a> {
    pub sim: &'a Sim,
    /// Of the outputs of the CL.
    pub from_cl: &'static str,
    /// Of its inputs.
    pub to_cl: &'static str,
}

impl Bundle<'_> {
    /// A channel: its payload, VALID and READY; `out`: the CL offers.
    pub fn channel<const N: usize>(
        &self,
        name: &str,
        out: bool,
        payload: [(&str, u32); N],
    ) -> Result<Channel<N>> {
        let (ahead, back) =
            if out { (self.from_cl, self.to_cl) } else { (self.to_cl, self.from_cl) };
        let port = |n: &str, bits| self.sim.port_of(&format!("{ahead}{name}{n}"), bits);
        let mut ports = [port("valid", 1)?; N];
        for (to, (n, bits)) in ports.iter_mut().zip(payload) {
            *to = port(n, bits)?;
        }
        Ok(Channel {
            valid: port("valid", 1)?,
            ready: self.sim.port_of(&format!("{back}{name}ready"), 1)?,
            payload: ports,
            names: payload.map(|(n, _)| format!("{ahead}{name}{n}")),
            signal: format!("{ahead}{name}valid"),
            ready_signal: format!("{back}{name}ready"),
            held: None,
        })
    }
}

/// A channel of `N` signals beside VALID and READY.
pub(crate) struct Channel<const N: usize> {
    pub valid: Port,
    pub ready: Port,
    pub payload: [Port; N],
    names: [String; N],
    /// Name of VALID.
    pub signal: String,
    /// Name of READY.
    pub ready_signal: String,
    /// Digest of each signal of the offer that waits.
    held: Option<[u64; N]>,
}

impl<const N: usize> Channel<N> {
    /// VALID and READY.
    #[inline]
    pub fn handshake(&self, sim: &Sim) -> (bool, bool) {
        (sim.get(self.valid) != 0, sim.get(self.ready) != 0)
    }

    /// The payload, if it has no signal of more than 64 bits.
    #[inline]
    pub fn values(&self, sim: &Sim) -> [u64; N] {
        self.payload.map(|p| sim.get(p))
    }

    /// What the CL offers must stay until it is taken. Whether it did.
    #[inline]
    pub fn steady(
        &mut self,
        sim: &Sim,
        (valid, ready): (bool, bool),
        rule: Rule,
        to: &mut Record,
    ) -> bool {
        if self.held.is_none() && (!valid || ready) {
            return true;
        }
        self.compare(sim, (valid, ready), rule, to)
    }

    fn compare(
        &mut self,
        sim: &Sim,
        (valid, ready): (bool, bool),
        rule: Rule,
        to: &mut Record,
    ) -> bool {
        let now = self.payload.map(|p| digest(sim, p));
        let before = self.held.take();
        self.held = (valid && !ready).then_some(now);
        // A reset may take the offer away.
        let Some(before) = before.filter(|_| !to.low) else { return true };
        if !valid {
            to.broken(rule, &*self.signal, "fell before READY");
        } else if let Some(k) = (0..N).find(|k| before[*k] != now[*k]) {
            to.broken(rule, &*self.names[k], "changed before READY");
        } else {
            return true;
        }
        false
    }

    /// Forgets the offer that waits.
    pub fn forget(&mut self) {
        self.held = None;
    }
}

fn digest(sim: &Sim, port: Port) -> u64 {
    if port.bits() <= 64 {
        return sim.get(port);
    }
    let words = sim.raw(port).chunks_exact(8);
    words.fold(0, |h: u64, word| {
        let word = u64::from_le_bytes(word.try_into().unwrap_or([0; 8]));
        (h.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
