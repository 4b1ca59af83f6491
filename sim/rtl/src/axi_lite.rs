//! AXI4-Lite master: 32-bit reads and writes on a register port.

use crate::agent::{Agent, Stalls};
use crate::{Error, Port, Result, Sim};

/// Cycles after which an unanswered access is given up.
const PATIENCE: u64 = 200_000;

/// AXI4-Lite master on the ports `<prefix>awaddr` and so on.
pub struct AxiLite {
    aw: [Port; 3],
    w: [Port; 4],
    b: [Port; 3],
    ar: [Port; 3],
    r: [Port; 4],
    /// AR, AW and W that are not offered yet.
    held: [bool; 3],
    taken: [bool; 3],
    answer: Option<(u64, u32)>,
    waiting: Wait,
    stalls: Stalls,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    None,
    Read,
    Write,
}

impl AxiLite {
    /// Binds to the ports with this prefix (for example `ctl_`), with the endings `_i` and `_o` or
    /// without.
    ///
    /// # Errors
    /// When a port is missing or has another width.
    pub fn new(sim: &Sim, prefix: &str) -> Result<Self> {
        let name = |n: &str| {
            let name = format!("{prefix}{n}");
            ["_i", "_o"]
                .map(|end| name.clone() + end)
                .into_iter()
                .find(|n| sim.find(n).is_some())
                .unwrap_or(name)
        };
        let one = |n: &str| sim.port_of(&name(n), 1);
        let any = |n: &str| sim.port(&name(n));
        Ok(Self {
            aw: [one("awvalid")?, one("awready")?, any("awaddr")?],
            w: [one("wvalid")?, one("wready")?, any("wdata")?, any("wstrb")?],
            b: [one("bvalid")?, one("bready")?, any("bresp")?],
            ar: [one("arvalid")?, one("arready")?, any("araddr")?],
            r: [one("rvalid")?, one("rready")?, any("rdata")?, any("rresp")?],
            held: [false; 3],
            taken: [false; 3],
            answer: None,
            waiting: Wait::None,
            stalls: Stalls::off(),
        })
    }

    /// From now on, VALID of AR, AW and W, each for itself, and READY of R and B come late at random.
    pub fn stall(&mut self, seed: u64) {
        self.stalls = Stalls::seeded(seed);
    }

    /// Starts a read; [`AxiLite::take`] gives the answer later.
    pub fn start_read(&mut self, sim: &mut Sim, addr: u64) {
        sim.set(self.ar[2], addr);
        self.begin(Wait::Read);
        self.held[0] = true;
        self.offer(sim);
    }

    /// Starts a write of the bytes selected by `strobe`.
    pub fn start_write(&mut self, sim: &mut Sim, addr: u64, data: u32, strobe: u8) {
        sim.set(self.aw[2], addr);
        sim.set(self.w[2], u64::from(data));
        sim.set(self.w[3], u64::from(strobe));
        self.begin(Wait::Write);
        self.held = [false, true, true];
        self.offer(sim);
    }

    /// Offers what is held back, and is ready for the answer, unless the channel stalls.
    fn offer(&mut self, sim: &mut Sim) {
        for (k, valid) in (0..).zip([self.ar[0], self.aw[0], self.w[0]]) {
            if self.held[k as usize] && !self.stalls.stalled(k) {
                self.held[k as usize] = false;
                sim.set(valid, 1);
            }
        }
        match self.waiting {
            Wait::None => {}
            Wait::Read => sim.set(self.r[1], u64::from(!self.stalls.stalled(3))),
            Wait::Write => sim.set(self.b[1], u64::from(!self.stalls.stalled(4))),
        }
    }

    fn begin(&mut self, w: Wait) {
        self.waiting = w;
        self.answer = None;
        self.held = [false; 3];
        self.taken = [false; 3];
    }

    /// The answer (AXI response, data) of the started access, once.
    pub fn take(&mut self) -> Option<(u64, u32)> {
        self.answer.take()
    }

    /// Whether an access is in flight.
    #[must_use]
    pub fn busy(&self) -> bool {
        self.waiting != Wait::None
    }

    /// Gives up the access in flight (when the design is reset).
    pub fn abort(&mut self, sim: &mut Sim) {
        for p in [self.aw[0], self.w[0], self.b[1], self.ar[0], self.r[1]] {
            sim.set(p, 0);
        }
        self.begin(Wait::None);
    }

    /// Reads a register; `None` when the slave answers with an error.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn read(
        &mut self,
        sim: &mut Sim,
        others: &mut [&mut dyn Agent],
        addr: u64,
    ) -> Result<Option<u32>> {
        self.start_read(sim, addr);
        let (resp, data) = self.wait(sim, others, "register read")?;
        Ok((resp == 0).then_some(data))
    }

    /// Writes a register; whether the slave answered OKAY.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn write(
        &mut self,
        sim: &mut Sim,
        others: &mut [&mut dyn Agent],
        addr: u64,
        data: u32,
    ) -> Result<bool> {
        self.start_write(sim, addr, data, 0xf);
        Ok(self.wait(sim, others, "register write")?.0 == 0)
    }

    fn wait(
        &mut self,
        sim: &mut Sim,
        others: &mut [&mut dyn Agent],
        what: &'static str,
    ) -> Result<(u64, u32)> {
        for _ in 0..PATIENCE {
            sim.settle();
            self.sample(sim);
            for a in others.iter_mut() {
                a.sample(sim);
            }
            sim.edge();
            self.drive(sim);
            for a in others.iter_mut() {
                a.drive(sim);
            }
            if let Some(a) = self.take() {
                return Ok(a);
            }
        }
        self.abort(sim);
        Err(Error::Hang { what, cycles: PATIENCE })
    }
}

impl Agent for AxiLite {
    #[expect(clippy::cast_possible_truncation, reason = "32-bit port")]
    fn sample(&mut self, sim: &Sim) {
        let both = |p: &[Port]| sim.get(p[0]) != 0 && sim.get(p[1]) != 0;
        match self.waiting {
            Wait::None => {}
            Wait::Read => {
                self.taken[0] = both(&self.ar);
                if both(&self.r) {
                    self.answer = Some((sim.get(self.r[3]), sim.get(self.r[2]) as u32));
                }
            }
            Wait::Write => {
                self.taken[1] = both(&self.aw);
                self.taken[2] = both(&self.w);
                if both(&self.b) {
                    self.answer = Some((sim.get(self.b[2]), 0));
                }
            }
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        if self.waiting == Wait::None {
            return;
        }
        for (taken, p) in self.taken.iter_mut().zip([self.ar[0], self.aw[0], self.w[0]]) {
            if std::mem::take(taken) {
                sim.set(p, 0);
            }
        }
        self.stalls.step();
        if self.answer.is_some() {
            for p in [self.aw[0], self.w[0], self.b[1], self.ar[0], self.r[1]] {
                sim.set(p, 0);
            }
            self.waiting = Wait::None;
        } else {
            self.offer(sim);
        }
    }
}
