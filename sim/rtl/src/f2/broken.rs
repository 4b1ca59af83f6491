//! A small CL that breaks a rule on request, and what shows for each rule that the model sees it
//! broken.

use super::config::F2Config;
use super::irq::Msix;
use super::rules::{RULES, Rule, Violation};
use super::shell::F2Shell;
use crate::agent::Rng;
use crate::memory::SparseMemory;
use crate::{DesignSpec, HostBus, HostFault, Library, Result};
use serde::Serialize;
use std::sync::LazyLock;

/// The faults, as the small CL numbers them.
const TABLE: &str = include_str!("../../tests/f2/f2_fault_pkg.sv");
/// The ids of the small CL.
const IDS: [u32; 2] = [0xf000_1d0f, 0x1d51_fedc];
/// Bytes of its RAM on PCIS.
const RAM: usize = 1 << 14;
/// Where the host's memory begins.
const HOST: u64 = 0x1_0000_0000;
/// Pages of it.
const PAGES: u64 = 64;
/// Cycles after a broken rule, for what follows from it.
const AFTER: u64 = 3_000;
/// Rounds in which a fault breaks its rule.
const ROUNDS: u64 = 32;

/// A fault that the small CL can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its number at the input `fault`.
    pub number: u8,
    /// Its name.
    pub name: &'static str,
    /// The rule that it breaks, and no other.
    pub rule: Rule,
}

/// All faults; there is one for each rule at least.
#[must_use]
pub fn faults() -> &'static [Fault] {
    static FAULTS: LazyLock<Vec<Fault>> =
        LazyLock::new(|| TABLE.lines().filter_map(fault).collect());
    &FAULTS
}

/// The line `NAME = 8'dNUMBER,  // rule` of the table.
fn fault(line: &'static str) -> Option<Fault> {
    let (code, rule) = line.split_once("//")?;
    let (name, number) = code.split_once('=')?;
    let number = number.trim().strip_prefix("8'd")?.trim_end_matches(',').trim().parse().ok()?;
    let rule = RULES.iter().find(|r| r.name == rule.trim())?.rule;
    Some(Fault { number, name: name.trim(), rule })
}

/// The small CL, which has all ports of a CL that the model needs.
#[must_use]
pub fn small_cl() -> DesignSpec {
    DesignSpec::new("f2_small_cl").search("sim/rtl/tests/f2")
}

/// Memory of a host, of 64 pages from 4 GiB on.
#[derive(Default)]
pub struct TestHost {
    /// Its bytes.
    pub memory: SparseMemory,
}

impl TestHost {
    /// Address of a page.
    #[must_use]
    pub fn page(k: u64) -> u64 {
        HOST + k % PAGES * 4096
    }

    fn reach(addr: u64, len: usize) -> std::result::Result<(), HostFault> {
        let end = addr.checked_add(len as u64);
        let inside = addr >= HOST && end.is_some_and(|end| end <= HOST + PAGES * 4096);
        inside.then_some(()).ok_or(HostFault::Unreachable)
    }
}

impl HostBus for TestHost {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> std::result::Result<(), HostFault> {
        Self::reach(addr, out.len())?;
        self.memory.read(addr, out);
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> std::result::Result<(), HostFault> {
        Self::reach(addr, bytes.len())?;
        self.memory.write(addr, bytes);
        Ok(())
    }
}

/// What a run of the small CL showed.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The broken rules.
    pub violations: Vec<Violation>,
    /// Answers that differ from those of a CL without fault.
    pub wrong: Vec<String>,
    /// Jobs of the copy engine that ended.
    pub jobs: u64,
    /// Cycles of `clk_main_a0`.
    pub cycles: u64,
}

/// Runs the small CL, with a fault or without, through random accesses of each kind. With a fault
/// it ends soon after its rule is broken.
///
/// # Errors
/// When the library is of another design.
pub fn exercise(lib: &Library, fault: Option<&Fault>, seed: u64, rounds: u64) -> Result<Outcome> {
    let at_load = fault.filter(|f| matches!(f.rule, Rule::IdMismatch | Rule::DdrStat));
    let config = F2Config {
        wipe_ns: 200_000,
        inputs: vec![("fault".to_owned(), vec![at_load.map_or(0, |f| f.number)])],
        ..F2Config::seeded(seed)
    };
    let shell = F2Shell::new(lib, config, IDS, TestHost::default())?;
    let rule = fault.map(|f| f.rule);
    let mut run = Run { shell, rng: Rng::new(seed), ram: vec![0; RAM], out: Outcome::default() };
    if let Some(fault) = fault {
        run.shell.core().sim().poke("fault", u64::from(fault.number));
    }
    run.begin();
    'rounds: for round in 0..rounds {
        for step in Run::STEPS {
            step(&mut run, round);
            if rule.is_some_and(|rule| run.shell.broken(rule) != 0) {
                run.shell.step(AFTER);
                break 'rounds;
            }
        }
    }
    run.out.violations = run.shell.violations().to_vec();
    run.out.cycles = run.shell.main_cycles();
    Ok(run.out)
}

struct Run {
    shell: F2Shell<TestHost>,
    rng: Rng,
    /// What the RAM on PCIS holds.
    ram: Vec<u8>,
    out: Outcome,
}

type Step = fn(&mut Run, u64);

impl Run {
    const STEPS: [Step; 9] = [
        Self::registers,
        Self::window,
        Self::many_reads,
        Self::copies,
        Self::interrupts,
        Self::function_reset,
        Self::reset,
        Self::power,
        Self::clock,
    ];

    fn expect(&mut self, what: &str, holds: bool) {
        if !holds && self.out.wrong.len() < 64 {
            self.out.wrong.push(format!("{what} at cycle {}", self.shell.main_cycles()));
        }
    }

    /// The driver's first steps after a load or a reset of the function.
    fn begin(&mut self) {
        let shell = &mut self.shell;
        shell.set_bus_master(true);
        shell.set_msix(Msix::Table);
        // Line k has vector k + 3. No line 0: vector 16 of a CL that has 16 must not become 0.
        for k in 0..4 {
            shell.bar2_write(0x2080 + 4 * k, 0x0605_0403 + k * 0x0404_0404);
        }
        for vector in 0..33 {
            let at = 0x8000 + 16 * vector;
            for (word, value) in [(0, 0xfee0_0000), (8, 0x40 + vector), (12, 0)] {
                shell.bar2_write(at + word, value);
            }
        }
        shell.bar2_write(0x2004, 0xffff);
        shell.give_lines(0xfffe);
        while shell.take_interrupt().is_some() {}
    }

    fn registers(&mut self, _: u64) {
        for _ in 0..3 {
            let word = self.rng.next_u64() as u32;
            self.shell.ocl_write(4, word);
            let read = self.shell.ocl_read(4);
            self.expect("scratch register", read == word);
            let mut both = [0; 8];
            self.shell.ocl_read_bytes(0, &mut both);
            let want = u64::from(word) << 32 | 0x4c43_3246;
            self.expect("two registers", u64::from_le_bytes(both) == want);
            self.shell.ocl_write_bytes(5, &[0x5a]);
            let want = word & !0xff00 | 0x5a00;
            let read = self.shell.ocl_read(4);
            self.expect("one byte of a register", read == want);
            self.shell.sda_write(0, word);
            let read = self.shell.sda_read(0x5_8000);
            self.expect("SDA", read == 0);
        }
    }

    fn window(&mut self, _: u64) {
        for _ in 0..6 {
            let len = 1 + self.rng.below(1500) as usize;
            let at = self.rng.below((RAM - len) as u64) as usize;
            let mut bytes = vec![0; len];
            self.rng.fill(&mut bytes);
            self.shell.bar4_write(at as u64, &bytes);
            self.ram[at..at + len].copy_from_slice(&bytes);
            let len = 1 + self.rng.below(1500) as usize;
            let at = self.rng.below((RAM - len) as u64) as usize;
            let mut read = vec![0; len];
            self.shell.bar4_read(at as u64, &mut read);
            let same = self.ram[at..at + len] == read;
            self.expect("window", same);
        }
    }

    /// As many as the shell lets through.
    fn many_reads(&mut self, _: u64) {
        let mut read = vec![0; RAM];
        self.shell.bar4_read(0, &mut read);
        let same = self.ram == read;
        self.expect("window", same);
    }

    /// Starts a copy; what it will have written.
    fn start_copy(&mut self) -> (u64, Vec<u8>) {
        // The engine may still end what a reset stopped.
        self.shell.run_until(8_000, 100, |shell| shell.ocl_read(0x20) >> 30 & 1 == 0);
        let (from, to) =
            (TestHost::page(self.rng.below(32)), TestHost::page(32 + self.rng.below(32)));
        let beats = 1 + self.rng.below(64);
        // More than 32 bursts: a CL without fault makes 32.
        let count = (64 / beats).min(1 + self.rng.below(64));
        let skew = if self.rng.one_in(2) { self.rng.below(64) } else { 0 };
        let mut bytes = vec![0; 4096];
        self.rng.fill(&mut bytes);
        self.shell.host.memory.write(from, &bytes);
        let mut want = vec![0; 4096];
        self.shell.host.memory.read(to, &mut want);
        for burst in 0..count.min(32) {
            let (begin, end) = (burst * beats * 64 + skew, (burst + 1) * beats * 64);
            let range = begin as usize..end as usize;
            want[range.clone()].copy_from_slice(&bytes[range]);
        }
        for (register, value) in [
            (0x08, from as u32),
            (0x0c, (from >> 32) as u32),
            (0x10, to as u32 + skew as u32),
            (0x14, (to >> 32) as u32),
            (0x18, (count << 8 | beats) as u32),
            (0x1c, 1),
        ] {
            self.shell.ocl_write(register, value);
        }
        (to, want)
    }

    fn copies(&mut self, _: u64) {
        for _ in 0..3 {
            let (to, want) = self.start_copy();
            let came = self.wait_interrupt();
            self.expect("interrupt of a copy", came == Some((1, 4, 0x44)));
            let mut bytes = vec![0; 4096];
            self.shell.host.memory.read(to, &mut bytes);
            let same = bytes == want;
            self.expect("copied bytes", same);
            let status = self.shell.ocl_read(0x20);
            self.expect("status of a copy", status >> 30 == 0);
            self.out.jobs += 1;
        }
    }

    fn wait_interrupt(&mut self) -> Option<(u8, u8, u32)> {
        let mut came = None;
        self.shell.run_until(8_000, 16, |shell| {
            came = shell.take_interrupt().map(|i| (i.line, i.vector, i.data));
            came.is_some()
        });
        came
    }

    fn interrupts(&mut self, _: u64) {
        for _ in 0..3 {
            let line = 1 + self.rng.below(15) as u32;
            self.shell.ocl_write(0x24, line);
            let came = self.wait_interrupt();
            let want = (line as u8, line as u8 + 3, 0x43 + line);
            self.expect("interrupt", came == Some(want));
        }
        self.shell.ocl_write(0x24, 16);
        self.shell.step(200);
        let none = self.shell.take_interrupt().is_none();
        self.expect("no interrupt of line 16", none);
    }

    /// A moment of a copy.
    fn within_a_copy(&mut self) {
        self.start_copy();
        let beats = self.shell.metrics().pcim.write_beats;
        // While it writes, in half of the cases.
        let n = if self.rng.one_in(2) {
            self.shell.run_until(2_000, 1, |s| s.metrics().pcim.write_beats > beats);
            self.rng.below(60)
        } else {
            self.rng.below(900)
        };
        self.shell.step(n);
    }

    fn function_reset(&mut self, _: u64) {
        self.within_a_copy();
        let ns = self.shell.flr();
        self.expect("reset of the function", ns < 20_000);
        self.begin();
        self.copies(0);
    }

    fn reset(&mut self, round: u64) {
        if round.is_multiple_of(2) {
            self.within_a_copy();
            self.shell.reset(1_000);
            self.begin();
            self.copies(0);
        }
    }

    fn power(&mut self, round: u64) {
        if !round.is_multiple_of(2) {
            self.within_a_copy();
            self.shell.power_down(1_000_000);
            self.shell.step(100);
            self.begin();
            self.copies(0);
        }
    }

    /// The core's clock stands still and comes again.
    fn clock(&mut self, _: u64) {
        let mut counts = [0; 4];
        for (k, runs) in [true, true, false, false].into_iter().enumerate() {
            self.shell.run_core_clock(runs);
            self.shell.step(300);
            counts[k] = self.shell.ocl_read(0x28);
        }
        self.shell.run_core_clock(true);
        let passed = counts[1].wrapping_sub(counts[0]) & 0xffff;
        self.expect("cycles of the core's clock", (150..250).contains(&passed));
        self.expect("no cycles of a clock that stands still", counts[2] == counts[3]);
    }
}

/// A row of the report on the rules.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the rule.
    pub rule: &'static str,
    /// Whether the model sees each fault that breaks the rule, and no other rule broken.
    pub tripped_by_broken_cl: bool,
    /// How often the CL of this project broke it.
    pub violations_of_ours: u64,
}

/// The report: runs every fault of the small CL ([`small_cl`], built as `lib`), and adds what
/// `violations_of_ours` counts.
///
/// # Errors
/// As [`exercise`].
pub fn rows(lib: &Library, violations_of_ours: impl Fn(Rule) -> u64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for row in RULES {
        let mut seen = Vec::new();
        for fault in faults().iter().filter(|f| f.rule == row.rule) {
            seen.push(is_seen(lib, fault, 1)?);
        }
        rows.push(Row {
            rule: row.name,
            tripped_by_broken_cl: !seen.is_empty() && seen.iter().all(|seen| *seen),
            violations_of_ours: violations_of_ours(row.rule),
        });
    }
    Ok(rows)
}

/// Whether a fault breaks its rule, and no other.
fn is_seen(lib: &Library, fault: &Fault, seed: u64) -> Result<bool> {
    let out = exercise(lib, Some(fault), seed, ROUNDS)?;
    let mut broken = out.violations.iter().map(|v| v.rule);
    Ok(broken.next() == Some(fault.rule) && broken.all(|rule| rule == fault.rule))
}
