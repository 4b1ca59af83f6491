//! A block and the agents around it under one clock: waiting, and commands by valid and ready.

use shef_rtl::Sim;

/// A bench that can be clocked.
pub trait Clocked {
    /// The block.
    fn sim(&mut self) -> &mut Sim;

    /// One cycle of everything.
    fn cycle(&mut self);

    /// Number of completed commands.
    fn ended(&self) -> usize;

    /// Runs until a condition holds, checked before each cycle; returns the number of cycles.
    fn until(&mut self, what: &str, limit: u64, done: impl Fn(&mut Self) -> bool) -> u64 {
        for n in 0..limit {
            if done(self) {
                return n;
            }
            self.cycle();
        }
        panic!("{what} after {limit} cycles");
    }

    /// Issues a command with these operands and waits for its end.
    fn give(&mut self, operands: &[(&str, u64)]) {
        let before = self.ended();
        for (name, value) in operands {
            self.sim().poke(name, *value);
        }
        self.sim().poke("cmd_valid", 1);
        self.sim().eval();
        self.until("no cmd_ready", 20_000, |b| b.sim().peek("cmd_ready") == 1);
        self.cycle();
        self.sim().poke("cmd_valid", 0);
        self.until("command not done", 100_000, |b| b.ended() > before);
    }
}
