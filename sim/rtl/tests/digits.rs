//! The digits accelerator without a Shield matches a plain computation.

use shef_rtl::agent::Rng;
use shef_rtl::check::{Checked, DoneRegister};
use shef_rtl::{AxiMemoryConfig, CoreSim, DesignSpec, Error, Library, build};

const CTRL: u32 = 0x00;
const STATUS: u32 = 0x04;
const TRAIN_ADDR: u32 = 0x08;
const TRAIN_ROWS: u32 = 0x10;
const QUERY_ADDR: u32 = 0x14;
const QUERY_ROWS: u32 = 0x1c;
const RESULT_ADDR: u32 = 0x20;
const LABEL_ADDR: u32 = 0x28;
const CYCLES: u32 = 0x30;
const BUSY: u32 = 1;
const DONE: u32 = 2;
const ERROR: u32 = 4;

fn library() -> Library {
    let spec = DesignSpec::new("shef_bare_top")
        .search("shell-rtl/shell/sim")
        .search("shell-rtl/accel/digits")
        .search("shell-rtl/rtl");
    build(&spec.deny_warnings()).expect("build")
}

fn core(memory: AxiMemoryConfig) -> CoreSim {
    CoreSim::new(&library(), memory).expect("instance")
}

struct Job {
    train_at: u64,
    query_at: u64,
    result_at: u64,
    label_at: u64,
    train: Vec<[u8; 64]>,
    labels: Vec<u8>,
    queries: Vec<[u8; 64]>,
}

impl Job {
    /// `levels` is the number of different pixel values; few values cause many ties.
    fn new(rng: &mut Rng, rows: usize, queries: usize, levels: u64) -> Self {
        let row = |rng: &mut Rng| {
            let mut r = [0; 64];
            if levels > 256 {
                r.fill(if rng.one_in(2) { 255 } else { 0 });
            } else {
                r.iter_mut().for_each(|p| *p = rng.below(levels) as u8);
            }
            r
        };
        Self {
            train_at: 0x1_0000_0000,
            query_at: 0x2_0000_0000,
            result_at: 0x3_0000_0000,
            label_at: 0x4_0000_0000,
            train: (0..rows).map(|_| row(rng)).collect(),
            labels: (0..rows).map(|_| rng.below(10) as u8).collect(),
            queries: (0..queries).map(|_| row(rng)).collect(),
        }
    }

    fn place(mut self, rng: &mut Rng) -> Self {
        for a in [&mut self.train_at, &mut self.query_at, &mut self.result_at, &mut self.label_at] {
            *a += 64 * rng.below(130);
        }
        self
    }

    fn prepare(&self, c: &mut CoreSim) -> Result<(), Error> {
        let m = c.memory_mut();
        for (i, r) in self.train.iter().enumerate() {
            m.write(self.train_at + 64 * i as u64, r);
        }
        for (i, r) in self.queries.iter().enumerate() {
            m.write(self.query_at + 64 * i as u64, r);
        }
        // data after the end must not matter
        m.write(self.query_at + 64 * self.queries.len() as u64, &[0x5a; 256]);
        m.write(self.label_at, &[7; 4096]);
        m.write(self.label_at, &self.labels);
        m.write(self.result_at - 64, &vec![0xa5; self.queries.len() * 16 + 256]);
        for (reg, v) in [
            (TRAIN_ADDR, self.train_at),
            (QUERY_ADDR, self.query_at),
            (RESULT_ADDR, self.result_at),
            (LABEL_ADDR, self.label_at),
        ] {
            c.ctl_write(reg, v as u32)?;
            c.ctl_write(reg + 4, (v >> 32) as u32)?;
        }
        c.ctl_write(TRAIN_ROWS, self.train.len() as u32)?;
        c.ctl_write(QUERY_ROWS, self.queries.len() as u32)?;
        Ok(())
    }

    fn want(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for q in &self.queries {
            let mut near: Vec<(u32, u16)> = self
                .train
                .iter()
                .enumerate()
                .map(|(i, t)| {
                    let d = q.iter().zip(t).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum();
                    (d, i as u16)
                })
                .collect();
            near.sort_unstable();
            near.truncate(3);
            let label = |k: usize| self.labels[usize::from(near[k].1)];
            let votes = |l: u8| (0..near.len()).filter(|k| label(*k) == l).count() as u8;
            let best = (0..near.len()).map(label).find(|l| votes(*l) >= 2).unwrap_or(label(0));
            out.extend([best, votes(best)]);
            for k in 0..3 {
                out.extend(near.get(k).map_or(0xffff, |n| n.1).to_le_bytes());
            }
            out.extend(near[0].0.to_le_bytes());
            out.extend([0; 4]);
        }
        out.resize(out.len().next_multiple_of(64), 0);
        out
    }

    /// Runs and compares; returns the accelerator's cycle count.
    fn check(&self, c: &mut CoreSim) -> Result<u64, String> {
        let text = |e: Error| e.to_string();
        self.prepare(c).map_err(text)?;
        c.ctl_write(CTRL, 1).map_err(text)?;
        let beats = (self.train.len() + 8) * self.queries.len().div_ceil(4) + 200;
        c.wait_ctl(STATUS, BUSY | DONE, DONE, 50, 60 * beats as u64).map_err(text)?;
        let status = c.ctl_read(STATUS).map_err(text)?;
        if status != Some(DONE) {
            return Err(format!("status {status:x?}"));
        }
        if !c.axi_memory().violations().is_empty() || !c.axi_memory().idle() {
            return Err(format!("bus: {:?}", c.axi_memory().violations()));
        }
        let want = self.want();
        let mut got = vec![0; want.len() + 128];
        c.memory().read(self.result_at - 64, &mut got);
        if got[..64] != [0xa5; 64] || got[want.len() + 64..] != [0xa5; 64] {
            return Err("wrote beside the results".into());
        }
        if let Some(k) = want.chunks(16).zip(got[64..].chunks(16)).position(|(w, g)| w != g) {
            return Err(format!(
                "query {k}: {:02x?}, expected {:02x?}",
                &got[64 + 16 * k..80 + 16 * k],
                &want[16 * k..16 * k + 16]
            ));
        }
        Ok(u64::from(c.ctl_read(CYCLES).map_err(text)?.unwrap_or(0)))
    }
}

fn random_runs(lib: &Library, seeds: std::ops::Range<u64>) -> Result<(), String> {
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut c = CoreSim::new(lib, AxiMemoryConfig::seeded(seed)).expect("instance");
        for n in 0..6 {
            let rows = match n {
                0 => 1 + rng.below(4),
                1 => 60 + rng.below(10),
                _ => 1 + rng.below(300),
            };
            let queries = 1 + rng.below(40);
            let levels = [2, 3, 16, 256, 300][rng.below(5) as usize];
            let job = Job::new(&mut rng, rows as usize, queries as usize, levels).place(&mut rng);
            job.check(&mut c).map_err(|e| {
                format!("seed {seed} run {n}: {rows} rows, {queries} queries, {levels} levels: {e}")
            })?;
        }
    }
    Ok(())
}

#[test]
fn random_runs_match_a_plain_computation() {
    random_runs(&library(), 0..8).unwrap();
}

#[test]
fn largest_training_set_and_many_batches() {
    let mut rng = Rng::new(77);
    let mut c = core(AxiMemoryConfig::seeded(77));
    Job::new(&mut rng, 4096, 5, 256).check(&mut c).unwrap();
    Job::new(&mut rng, 2, 1000, 256).check(&mut c).unwrap();
    Job::new(&mut rng, 1, 65535, 256).check(&mut c).unwrap();
}

#[test]
fn a_row_every_cycle() {
    for (latency, allowed) in [(40, 150), (200, 500)] {
        let mut rng = Rng::new(latency);
        let mut c = core(AxiMemoryConfig::bench(latency, 20));
        let job = Job::new(&mut rng, 512, 40, 256);
        let cycles = job.check(&mut c).unwrap();
        let beats = 10 * (512 + 4) + 8;
        assert!(
            cycles >= beats && cycles <= beats + allowed,
            "latency {latency}: {cycles} cycles for {beats} beats"
        );
        let b = c.axi_memory().counters;
        assert_eq!((b.read_beats, b.write_beats), (8 + 40 + 5120, 10));
        // training rows in bursts of a page, results in bursts of 512 bytes
        assert_eq!((b.reads, b.writes), (1 + 10 + 10 * 8, 2));
        println!("latency {latency}: {cycles} cycles for {beats} beats");
    }
}

#[test]
fn requests_run_ahead_by_512_beats() {
    let mut rng = Rng::new(5);
    let mut c = core(AxiMemoryConfig::bench(3000, 20));
    Job::new(&mut rng, 512, 16, 256).prepare(&mut c).unwrap();
    c.ctl_write(CTRL, 1).unwrap();
    c.step(1500);
    let asked = c.axi_memory().counters.reads;
    // labels, queries, and at least eight pages of rows
    assert!(asked >= 2 + 8, "{asked} bursts");
}

#[test]
fn errors_end_the_run() {
    let lib = library();
    for seed in 0..24u64 {
        let mut rng = Rng::new(seed);
        let config = if seed % 2 == 0 {
            AxiMemoryConfig::seeded(seed)
        } else {
            AxiMemoryConfig::bench(60, 30)
        };
        let mut c = CoreSim::new(&lib, config).expect("instance");
        let job = Job::new(&mut rng, 200, 90, 256);
        let at = match seed % 4 {
            0 => job.train_at + 64 * rng.below(200),
            1 => job.query_at + 64 * rng.below(90),
            2 => job.result_at + 16 * rng.below(90),
            _ => job.label_at + rng.below(200),
        };
        c.axi_memory().error_ranges.push(at..at + 1);
        job.prepare(&mut c).unwrap();
        c.ctl_write(CTRL, 1).unwrap();
        c.wait_ctl(STATUS, BUSY | DONE | ERROR, DONE | ERROR, 20, 100_000)
            .unwrap_or_else(|e| panic!("seed {seed} at {at:#x}: {e}"));
        assert!(c.axi_memory().idle(), "seed {seed}: something is owed after the end");
        let reads = c.axi_memory().counters.reads;
        c.step(200);
        assert_eq!(c.axi_memory().counters.reads, reads);
        // the next run is unaffected
        c.axi_memory().error_ranges.clear();
        job.check(&mut c).unwrap_or_else(|e| panic!("seed {seed} at {at:#x}, second run: {e}"));
    }
}

/// A job in the regions of `shield.toml`, with the checker on or off: its cycles, and what the
/// checker saw.
fn checked(on: bool, result_at: u64) -> ([u64; 2], Checked) {
    let mut rng = Rng::new(11);
    let mut c = core(AxiMemoryConfig::seeded(11));
    if on {
        let done = DoneRegister { offset: STATUS as u16, mask: DONE, value: DONE };
        c.check(Some(done)).expect("checker");
    }
    let places = Job {
        train_at: 0,
        label_at: 0x8_0000,
        query_at: 0x10_0000,
        result_at,
        ..Job::new(&mut rng, 200, 90, 256)
    };
    let cycles = places.check(&mut c).expect("results");
    c.close_outputs();
    c.step(64);
    ([cycles, c.cycles()], c.checked())
}

#[test]
fn the_checker_changes_no_cycle_and_finds_nothing() {
    let ((plain, nothing), (watched, seen)) = (checked(false, 0x20_0000), checked(true, 0x20_0000));
    assert_eq!(nothing, Checked::default());
    assert_eq!(plain, watched, "cycles of the accelerator, and of the simulation");
    assert_eq!((seen.reports, seen.lost), (Vec::new(), 0));
    assert!(seen.bursts > 100, "{}", seen.bursts);
    // The same job with its results in an `input` region.
    let (_, seen) = checked(true, 0x18_0000);
    assert!(!seen.reports.is_empty());
    assert!(seen.reports.iter().all(|r| r.rule == "SHEF_ERRM_READ_ONLY"), "{:#?}", seen.reports);
}

#[test]
fn registers() {
    let mut c = core(AxiMemoryConfig::bench(10, 10));
    let mut rng = Rng::new(1);
    assert_eq!(c.ctl_read(0x38).unwrap(), Some(0x4449_4731));
    assert_eq!(c.ctl_read(0x3c).unwrap(), Some(4));
    for a in [0x40, 0x7c, 0x1000, 0xfffc] {
        assert_eq!(c.ctl_read(a).unwrap(), None);
    }
    for (a, okay) in [(0x04, false), (0x30, false), (0x38, false), (0x40, false), (0x10, true)] {
        assert_eq!(c.ctl_write(a, 1).unwrap(), okay, "{a:#x}");
    }
    // row numbers out of range: an error, and no access
    for (rows, queries) in [(0, 1), (4097, 1), (1, 0), (1, 65536)] {
        c.ctl_write(TRAIN_ROWS, rows).unwrap();
        c.ctl_write(QUERY_ROWS, queries).unwrap();
        c.ctl_write(CTRL, 1).unwrap();
        c.step(20);
        assert_eq!(c.ctl_read(STATUS).unwrap(), Some(DONE | ERROR));
    }
    assert_eq!(c.axi_memory().counters.reads, 0);
    // while it runs, no register changes and it cannot be started again
    let job = Job::new(&mut rng, 100, 16, 256);
    job.prepare(&mut c).unwrap();
    let before = c.interrupts();
    c.ctl_write(CTRL, 1).unwrap();
    assert_eq!(c.ctl_read(STATUS).unwrap(), Some(BUSY));
    c.ctl_write(TRAIN_ROWS, 3).unwrap();
    c.ctl_write(CTRL, 1).unwrap();
    assert_eq!(c.ctl_read(TRAIN_ROWS).unwrap(), Some(100));
    c.wait_ctl(STATUS, DONE, DONE, 20, 10_000).unwrap();
    let mut got = vec![0; job.want().len()];
    c.memory().read(job.result_at, &mut got);
    assert_eq!(got, job.want());
    c.step(10);
    assert_eq!(c.interrupts(), before + 1);
}

/// A measurement, not a test: cost of the checker, on and off in turns.
mod long {
    use super::*;

    /// Time of this thread on a processor, in nanoseconds.
    fn busy() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        stat.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
    }

    #[test]
    #[ignore = "a measurement"]
    fn cost_of_the_checker() {
        let library = library();
        let mut best = [u64::MAX; 2];
        for _ in 0..5 {
            for (on, best) in best.iter_mut().enumerate() {
                let mut rng = Rng::new(3);
                let mut c = CoreSim::new(&library, AxiMemoryConfig::bench(40, 20)).expect("sim");
                if on == 1 {
                    c.check(None).expect("checker");
                }
                let job = Job::new(&mut rng, 4096, 400, 256);
                let job = Job {
                    train_at: 0,
                    label_at: 0x8_0000,
                    query_at: 0x10_0000,
                    result_at: 0x20_0000,
                    ..job
                };
                job.prepare(&mut c).expect("registers");
                c.ctl_write(CTRL, 1).expect("start");
                let from = busy();
                c.wait_ctl(STATUS, BUSY | DONE, DONE, 5_000, 10_000_000).expect("done");
                *best = (busy() - from).min(*best);
                println!("checker {on}: {} ns in {} cycles", busy() - from, c.cycles());
            }
        }
        println!("cost of the checker: {} per mille", 1000 * best[1] / best[0] - 1000);
    }
}
