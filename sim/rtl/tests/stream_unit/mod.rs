//! Drives a control crypto unit: commands, and a byte stream each way, with stalls from a seed.
#![allow(dead_code, reason = "each test binary uses a part")]

use shef_rtl::{Library, Port, Sim, build_once, module_spec};

/// xorshift64*: enough to vary tests, repeatable by seed.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 33) as usize) % n
    }

    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 56) as u8).collect()
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| (self.next() >> 56) as u8)
    }
}

/// Builds `top` once per test binary; linter warnings stop the build.
pub fn library(top: &str) -> &'static Library {
    build_once(&module_spec(top).expect("sources").deny_warnings().fast()).expect("build")
}

/// Result of a command.
pub struct Done {
    /// Bytes from `out`.
    pub out: Vec<u8>,
    /// `ok_o` at the end.
    pub ok: bool,
    /// Cycles from the command's acceptance until `cmd_ready_o`.
    pub cycles: u64,
}

/// One unit.
pub struct Unit {
    sim: Sim,
    cmd_valid: Port,
    cmd_ready: Port,
    cmd: Port,
    len: Port,
    in_valid: Port,
    in_ready: Port,
    in_data: Port,
    out_valid: Port,
    out_ready: Port,
    out_data: Port,
    ok: Port,
    wipe: Port,
    stalls: Option<Rng>,
}

/// Limit in cycles of a command.
const LIMIT: u64 = 400_000;

impl Unit {
    /// A unit after reset, idle.
    pub fn new(lib: &Library) -> Self {
        let mut sim = Sim::new(lib).expect("instance");
        let p = |n: &str| sim.port(n).expect("port");
        let (cmd_valid, cmd_ready, cmd, len) =
            (p("cmd_valid_i"), p("cmd_ready_o"), p("cmd_i"), p("len_i"));
        let (in_valid, in_ready, in_data) = (p("in_valid_i"), p("in_ready_o"), p("in_data_i"));
        let (out_valid, out_ready, out_data) =
            (p("out_valid_o"), p("out_ready_i"), p("out_data_o"));
        let (ok, wipe) = (p("ok_o"), p("wipe_i"));
        sim.reset("rst_ni", 2);
        let mut unit = Self {
            sim,
            cmd_valid,
            cmd_ready,
            cmd,
            len,
            in_valid,
            in_ready,
            in_data,
            out_valid,
            out_ready,
            out_data,
            ok,
            wipe,
            stalls: None,
        };
        unit.wait_idle();
        unit
    }

    /// From now on both streams stall at random.
    pub fn stall(&mut self, seed: u64) {
        self.stalls = Some(Rng::new(seed));
    }

    fn wait_idle(&mut self) {
        for _ in 0..LIMIT {
            self.sim.settle();
            if self.sim.get(self.cmd_ready) == 1 {
                return;
            }
            self.sim.edge();
        }
        panic!("the unit does not become idle");
    }

    /// Issues a command without waiting for its end.
    pub fn start(&mut self, cmd: u64, len: usize) {
        self.wait_idle();
        let s = &mut self.sim;
        s.set(self.cmd, cmd);
        s.set(self.len, len as u64);
        s.set(self.cmd_valid, 1);
        s.settle();
        assert_eq!(s.get(self.cmd_ready), 1, "cmd_ready_o falls with cmd_valid_i");
        s.edge();
        s.set(self.cmd_valid, 0);
        s.set(self.len, 0xffff);
    }

    /// Runs `cycles` cycles, feeding `input` and dropping the output.
    pub fn run(&mut self, input: &[u8], cycles: u64) {
        let mut given = 0;
        let s = &mut self.sim;
        for _ in 0..cycles {
            s.set(self.in_valid, u64::from(given < input.len()));
            s.set(self.in_data, input.get(given).copied().unwrap_or(0).into());
            s.set(self.out_ready, 1);
            s.settle();
            if given < input.len() && s.get(self.in_ready) == 1 {
                given += 1;
            }
            s.edge();
        }
        s.set(self.in_valid, 0);
        s.set(self.out_ready, 0);
    }

    /// Runs a whole command: feeds `input`, takes `out` bytes, waits until the unit is idle.
    pub fn command(&mut self, cmd: u64, len: usize, input: &[u8], out: usize) -> Done {
        self.start(cmd, len);
        let start = self.sim.cycles();
        let (mut given, mut taken) = (0, Vec::with_capacity(out));
        let mut offered = None; // `out` must hold its byte until it is taken
        loop {
            let (mut valid, mut ready) = (given < input.len(), true);
            if let Some(r) = &mut self.stalls {
                valid = valid && r.below(3) == 0;
                ready = r.below(3) == 0;
            }
            let s = &mut self.sim;
            s.set(self.in_valid, u64::from(valid));
            s.set(self.in_data, if valid { input[given].into() } else { 0xa5 });
            s.set(self.out_ready, u64::from(ready));
            s.settle();
            let out_valid = s.get(self.out_valid) == 1;
            if s.get(self.cmd_ready) == 1 {
                assert!(!out_valid && s.get(self.in_ready) == 0, "idle, but a stream is active");
                break;
            }
            if let Some(b) = offered {
                assert!(
                    out_valid && s.get(self.out_data) == b,
                    "out_data_o changes before it is taken"
                );
            }
            offered = None;
            if out_valid {
                if ready {
                    taken.push(s.get(self.out_data) as u8);
                } else {
                    offered = Some(s.get(self.out_data));
                }
            }
            if valid && s.get(self.in_ready) == 1 {
                given += 1;
            }
            s.edge();
            let cycles = s.cycles() - start;
            assert!(
                cycles < LIMIT + 40 * (input.len() + out) as u64,
                "command {cmd} hangs: {given} of {} bytes given, {} of {out} taken",
                input.len(),
                taken.len()
            );
        }
        let s = &mut self.sim;
        s.set(self.in_valid, 0);
        s.set(self.out_ready, 0);
        assert_eq!((given, taken.len()), (input.len(), out), "command {cmd}: bytes in and out");
        Done { out: taken, ok: s.get(self.ok) == 1, cycles: s.cycles() - start }
    }

    /// Holds `wipe_i` until the unit acknowledges; returns the number of cycles.
    pub fn wipe(&mut self) -> u64 {
        let start = self.sim.cycles();
        self.sim.set(self.wipe, 1);
        // A command, a byte and a reader at the same time have no effect.
        for p in [self.cmd_valid, self.in_valid, self.out_ready] {
            self.sim.set(p, 1);
        }
        loop {
            self.sim.settle();
            assert_eq!(self.sim.get(self.in_ready), 0, "takes bytes while it is wiped");
            assert_eq!(self.sim.get(self.out_valid), 0, "gives bytes while it is wiped");
            if self.sim.get(self.cmd_ready) == 1 {
                break;
            }
            self.sim.edge();
            assert!(self.sim.cycles() - start < 1000, "wipe does not end");
        }
        self.sim.run(3);
        for p in [self.cmd_valid, self.in_valid, self.out_ready, self.wipe] {
            self.sim.set(p, 0);
        }
        self.sim.cycles() - start - 3
    }

    /// One cycle of `wipe_i` only, then waits until the unit is idle.
    pub fn wipe_pulse(&mut self) {
        self.sim.set(self.wipe, 1);
        self.sim.tick();
        self.sim.set(self.wipe, 0);
        self.wait_idle();
    }
}

/// A file of `tests/vectors`.
pub fn vectors(name: &str) -> serde_json::Value {
    let path = shef_rtl::repo_root().join("tests/vectors").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Bytes of a hexadecimal member.
pub fn bytes(v: &serde_json::Value, name: &str) -> Vec<u8> {
    let text = v[name].as_str().unwrap_or_else(|| panic!("no {name} in {v}"));
    hex::decode(text).unwrap_or_else(|e| panic!("{name}: {e}"))
}
