//! Long random runs: every answer is checked against a reference, every write against the oracle,
//! every statement against the operations.

use crate::bench::{Bench, Watched};
use crate::{BenchError, Oracle, Owner, Reference, Result, Traffic};
use shef_proto::channel::{ShieldRequest, Statement};
use shef_proto::config::{Config, Mode, OnFault, PAGE, Region, Set};
use shef_proto::load::first_epochs;
use shef_rtl::agent::Rng;

/// Summary of a run. Two benches with the same seed must report the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Bursts and commands.
    pub operations: u64,
    /// Bursts that were refused.
    pub refusals: u32,
    /// Digest of all answers and statements, in order.
    pub digest: u64,
}

struct Digest(u64);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn differs(what: String) -> BenchError {
    BenchError::Unequal(what)
}

/// Runs at least `operations` random operations in one session and closes it, so that the same
/// bench may run another one: bursts of any shape in all modes, refused ones, flush, invalidate,
/// epoch, statement.
///
/// # Errors
/// The first deviation, with its position in the run.
pub fn campaign(
    bench: &mut dyn Watched,
    config: &Config,
    seed: u64,
    operations: u64,
) -> Result<Report> {
    let epochs = first_epochs(config, 1);
    let mut owner = Owner::open(bench, config, &epochs, seed)?;
    let oracle = Oracle::new(config, owner.keys(), &epochs);
    bench.watch(&oracle);
    let mut reference = Reference::new(config, 1);
    let mut traffic = Traffic::new(seed);
    let mut content = Rng::new(seed ^ 0xc0_17e7);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let mut done = 0;
    fill(bench, &mut reference, &mut content, &owner);
    while done < operations {
        let share = traffic.rng().below(9);
        let phase = traffic.phase(&mut reference, 120, share);
        let got = bench.burst(&phase.ops)?;
        for (i, ((op, want), got)) in phase.ops.iter().zip(&phase.expected).zip(&got).enumerate() {
            if got != want {
                let at = got.data.iter().zip(&want.data).position(|(a, b)| a != b);
                return Err(differs(format!(
                    "operation {}, {op}: OKAY {:?}, expected {:?}; first wrong byte {at:?}",
                    done + i as u64,
                    got.okay,
                    want.okay
                )));
            }
            digest.add(&got.data);
            got.okay.iter().for_each(|o| digest.add(&[u8::from(*o)]));
        }
        done += phase.ops.len() as u64;
        oracle.check()?;
        match traffic.rng().below(4) {
            0 => continue,
            1 => owner.call(bench, &ShieldRequest::invalidate())?,
            _ => owner.call(bench, &ShieldRequest::flush())?,
        };
        done += 1;
        oracle.at_rest(|region, chunk| reference.plain(region, chunk))?;
        for (addr, plain) in reference.public() {
            let mut seen = vec![0; plain.len()];
            bench.mem_read(addr, &mut seen);
            if seen != plain {
                return Err(differs(format!(
                    "operation {done}: the bypass region at {addr:#x} is not as written"
                )));
            }
        }
        if traffic.rng().one_in(4) {
            let statement = owner.statement(bench)?;
            done += 1;
            check(config, &reference, &statement, &mut digest)?;
        }
        if traffic.rng().one_in(6) {
            reference.next_epoch();
            for r in config.epoch_regions() {
                let epoch = reference.epochs[usize::from(r.id)];
                owner.call(bench, &ShieldRequest::epoch(r.id, epoch))?;
                oracle.epoch(r.id, epoch);
                done += 1;
            }
            fill(bench, &mut reference, &mut content, &owner);
        }
    }
    owner.call(bench, &ShieldRequest::flush())?;
    oracle.at_rest(|region, chunk| reference.plain(region, chunk))?;
    let statement = owner.statement(bench)?;
    check(config, &reference, &statement, &mut digest)?;
    owner.call(bench, &ShieldRequest::close())?;
    Ok(Report { operations: done, refusals: reference.refusals, digest: digest.0 })
}

fn fill(bench: &mut dyn Bench, reference: &mut Reference, content: &mut Rng, owner: &Owner) {
    for (addr, data) in reference.fill_inputs(content, owner.keys()) {
        bench.mem_write(addr, &data);
    }
}

fn check(
    config: &Config,
    reference: &Reference,
    statement: &Statement,
    digest: &mut Digest,
) -> Result<()> {
    let s = statement.shield();
    if s.stopped || s.faults != 0 || s.refusals != reference.refusals {
        return Err(differs(format!(
            "expected no fault and {} refusals: {s:?}",
            reference.refusals
        )));
    }
    digest.add(&s.refusals.to_le_bytes());
    for r in config.regions() {
        let Some(page) = statement.region(r.id) else {
            return Err(differs(format!("no page of region {}", r.id)));
        };
        let epoch = if r.mode.has_epoch() { reference.epochs[usize::from(r.id)] } else { 0 };
        if page.epoch != epoch || page.mode != r.mode || page.chunks != r.chunks() {
            return Err(differs(format!("region {}: {page:?}, expected epoch {epoch}", r.id)));
        }
        digest.add(&page.to_payload());
        if let Some(map) = statement.written(r.id)
            && let Some(c) =
                (0..r.chunks()).find(|c| map.is_written(*c) != reference.is_written(r.id, *c))
        {
            return Err(differs(format!(
                "region {} chunk {c}: the written map says {}",
                r.id,
                map.is_written(c)
            )));
        }
    }
    Ok(())
}

/// A random configuration: 1 to 16 regions of all modes, chunk and key sizes, 1 to 4 engine sets
/// with a port each.
///
/// # Errors
/// If it violates a rule of configurations, which is a bug of this function.
#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
pub fn random_config(seed: u64) -> Result<Config> {
    const MODES: [Mode; 5] = [Mode::Input, Mode::Output, Mode::Counted, Mode::Tree, Mode::Bypass];
    let mut rng = Rng::new(seed);
    let sets = 1 + rng.below(4);
    let count = sets + rng.below(17 - sets);
    let mut base = 0;
    let mut regions: Vec<Region> = (0..count)
        .map(|id| {
            let mode = MODES[rng.below(5) as usize];
            let chunk = 64 << rng.below(7);
            let size = PAGE * (1 + rng.below(if chunk > 512 { 32 } else { 8 }));
            let at = base;
            base += size + PAGE * rng.below(3);
            // Every set has a region.
            let set = if id < sets { id } else { rng.below(sets) } as u8;
            Region {
                id: id as u8,
                name: format!("r{id}"),
                mode,
                base: at,
                size,
                chunk,
                key_bits: if rng.one_in(2) { 128 } else { 256 },
                port: set,
                set,
                tag_base: 0,
                node_base: None,
                prefetch: 0,
                counter_bits: (mode == Mode::Counted).then_some(if rng.one_in(2) {
                    36
                } else {
                    48
                }),
            }
        })
        .collect();
    let mut next = base + (1 << 20);
    for r in &mut regions {
        if r.mode.has_tags() {
            r.tag_base = next;
            next += r.tag_size();
        }
        if r.mode == Mode::Tree {
            r.node_base = Some(next);
            next += r.node_size();
        }
    }
    let set = |i: u64| Set {
        lanes: [1, 2, 4][(seed + i) as usize % 3],
        big_lines: 3 + rng_lines(seed, i),
        small_lines: 3 + rng_lines(seed, i + 7),
        ..Set::default()
    };
    Config::new(OnFault::Shield, sets as u8, (0..sets).map(set).collect(), regions)
        .map_err(|e| BenchError::File(e.to_string()))
}

#[expect(clippy::cast_possible_truncation, reason = "small numbers")]
fn rng_lines(seed: u64, i: u64) -> u16 {
    Rng::new(seed ^ (i << 32)).below(20) as u16
}
