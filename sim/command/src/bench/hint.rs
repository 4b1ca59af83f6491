//! Why an accelerator is slower behind the Shield: from what its ports did in both runs.

use shef_card::measure::{Bursts, PortCounts, Waits};
use shef_proto::config::{Config, Mode, Region as Shielded};

use super::report::{Pair, Run};

/// A ratio above this has hints.
const RATIO: f64 = 1.05;
/// A port has a hint if it accounts for this share of the further cycles.
const SHARE: f64 = 0.1;
/// Bursts in flight, on average, below which there are few.
const FEW: f64 = 2.0;

/// A mean, unless there is nothing to divide by.
fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// The channel for which the accelerator waits longer than without the Shield, by the most cycles.
fn channel(bare: Waits, shielded: Waits) -> (&'static str, u64, u64) {
    let all = [
        ("R", bare.r, shielded.r),
        ("AR", bare.ar, shielded.ar),
        ("W", bare.w, shielded.w),
        ("AW", bare.aw, shielded.aw),
        ("B", bare.b, shielded.b),
    ];
    // Of equal ones, the first.
    let more = |(_, bare, shielded): &(_, u64, u64)| shielded.saturating_sub(*bare);
    all.into_iter().rev().max_by_key(more).unwrap_or(all[0])
}

/// The region of a port whose bursts of this direction ask for the most bytes.
fn region<'c>(
    config: &'c Config,
    run: &Run,
    port: usize,
    write: bool,
) -> Option<(&'c Shielded, Bursts)> {
    let of_port = |region: &Shielded| {
        config.sets().get(usize::from(region.set)).is_some_and(|set| usize::from(set.acc) == port)
    };
    let all = run.regions.iter().filter_map(|counted| {
        let region = config.region_by_name(&counted.region).filter(|region| of_port(region))?;
        let bursts = if write { counted.counts.writes } else { counted.counts.reads };
        Some((region, bursts))
    });
    all.filter(|(_, bursts)| bursts.count > 0).max_by_key(|(_, bursts)| bursts.bytes)
}

/// What a port waits for, and what its bursts are like.
fn port(config: &Config, pair: &Pair, at: usize) -> Option<String> {
    let (bare, shielded) = (&pair.bare.ports[at].counts, &pair.shielded.ports[at].counts);
    let (name, before, waits) = channel(bare.waits, shielded.waits);
    if waits <= before {
        return None;
    }
    let mut text =
        format!("port {at} waits {waits} cycles for {name}, {before} without the Shield");
    let write = matches!(name, "AW" | "W" | "B");
    let pick = |counts: &PortCounts| if write { counts.writes } else { counts.reads };
    let (before, now) = (pick(bare), pick(shielded));
    let what = if write { "write" } else { "read" };
    let answers = [before, now].map(|counts| mean(counts.bursts.cycles, counts.bursts.answered));
    if let [Some(before), Some(now)] = answers {
        text += &format!(": a {what} is answered after {now:.0} cycles, {before:.0} without it");
    }
    let size = mean(now.bursts.bytes, now.bursts.count)?;
    let flight = mean(now.in_flight, now.busy);
    if let Some(flight) = flight {
        text += &format!("; on average {flight:.1} {what}s of {size:.0} bytes are in flight");
    }
    let mut advice = Vec::new();
    if let Some((region, bursts)) = region(config, &pair.shielded, at, write) {
        let (name, chunk) = (&region.name, region.chunk);
        let size = mean(bursts.bytes, bursts.count)?;
        if size < f64::from(chunk) && region.mode != Mode::Bypass {
            advice.push(format!(
                "its {what}s of region {name} have {size:.0} bytes and its chunks {chunk}: \
                 use whole chunks, or smaller ones for random accesses"
            ));
        }
        if region.mode == Mode::Tree {
            advice.push(format!(
                "region {name} is a tree of {} levels, whose nodes are read with the chunks: \
                 mode \"counted\" has none",
                region.tree_levels()
            ));
        }
    }
    if !write && flight.is_some_and(|flight| flight < FEW) {
        advice.push("request the next burst before the last one has ended".to_owned());
    }
    for advice in advice {
        text += "; ";
        text += &advice;
    }
    Some(text)
}

/// The hints for a pair of runs.
pub fn hints(config: &Config, pair: &Pair) -> Vec<String> {
    if pair.ratio <= RATIO {
        return Vec::new();
    }
    let further = pair.shielded.cycles.saturating_sub(pair.bare.cycles);
    let ports = pair.bare.ports.iter().zip(&pair.shielded.ports);
    let slower = ports.filter(|(bare, shielded)| {
        let stalled = shielded.counts.stalled.saturating_sub(bare.counts.stalled);
        stalled as f64 >= SHARE * further as f64
    });
    slower.filter_map(|(bare, _)| port(config, pair, bare.port)).collect()
}
