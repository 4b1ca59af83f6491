//! Agents drive ports: they sample settled outputs before the rising edge and set inputs after it.

use crate::Sim;
use std::cell::RefCell;
use std::rc::Rc;

/// Drives some ports of a design, one clock cycle at a time.
pub trait Agent {
    /// Called before the rising edge with every output settled: it notes the handshakes that this
    /// edge completes.
    fn sample(&mut self, sim: &Sim);
    /// Called after the rising edge: it sets the inputs of the next cycle.
    fn drive(&mut self, sim: &mut Sim);
}

/// An agent that is also observed from outside the cycle.
impl<A: Agent> Agent for Rc<RefCell<A>> {
    fn sample(&mut self, sim: &Sim) {
        self.borrow_mut().sample(sim);
    }

    fn drive(&mut self, sim: &mut Sim) {
        self.borrow_mut().drive(sim);
    }
}

/// One clock cycle with agents.
pub fn cycle(sim: &mut Sim, agents: &mut [&mut dyn Agent]) {
    sim.settle();
    for a in agents.iter_mut() {
        a.sample(sim);
    }
    sim.edge();
    for a in agents.iter_mut() {
        a.drive(sim);
    }
}

/// Runs cycles with agents until `done` holds (checked after each cycle); returns the number of
/// cycles, or `None` after `limit`.
pub fn cycle_until(
    sim: &mut Sim,
    agents: &mut [&mut dyn Agent],
    limit: u64,
    mut done: impl FnMut(&mut Sim) -> bool,
) -> Option<u64> {
    for n in 1..=limit {
        cycle(sim, agents);
        if done(sim) {
            return Some(n);
        }
    }
    None
}

/// Small fast generator for timing and traffic (xorshift64*); the same seed gives the same run. Not
/// for keys.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator; any seed will do, including 0.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut r =
            Self(seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
        r.next_u64();
        r
    }

    /// 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n` (0 when `n` is 0).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True once in `n` times.
    #[inline]
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Fills bytes.
    pub fn fill(&mut self, buf: &mut [u8]) {
        for c in buf.chunks_mut(8) {
            let b = self.next_u64().to_le_bytes();
            c.copy_from_slice(&b[..c.len()]);
        }
    }
}

/// Random back-pressure whose density changes from time to time, so that full speed, rare gaps and
/// near standstill all occur.
#[derive(Debug, Clone)]
pub struct Stalls {
    rng: Option<Rng>,
    left: u32,
    /// Out of 8, per channel.
    density: [u8; 5],
    now: u8,
}

impl Stalls {
    /// Never stalls.
    #[must_use]
    pub fn off() -> Self {
        Self { rng: None, left: 0, density: [0; 5], now: 0 }
    }

    /// Stalls derived from the seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { rng: Some(Rng::new(seed)), left: 0, density: [0; 5], now: 0 }
    }

    /// Draws this cycle's stalls.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "fields of a random word")]
    pub fn step(&mut self) {
        let Some(rng) = &mut self.rng else { return };
        let r = rng.next_u64();
        if self.left == 0 {
            self.left = 8 + (r as u32 & 0xff);
            let d = rng.next_u64();
            for (i, x) in self.density.iter_mut().enumerate() {
                *x = [0, 0, 1, 2, 4, 6, 7, 1][(d >> (8 * i) & 7) as usize];
            }
        }
        self.left -= 1;
        self.now = 0;
        for (i, d) in self.density.iter().enumerate() {
            self.now |= u8::from(((r >> (16 + 4 * i)) & 7) < u64::from(*d)) << i;
        }
    }

    /// Whether channel `i` (0..5) stalls in this cycle.
    #[inline]
    #[must_use]
    pub fn stalled(&self, i: u32) -> bool {
        self.now >> i & 1 == 1
    }
}
