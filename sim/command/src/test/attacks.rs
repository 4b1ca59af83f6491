//! Attacks of a dishonest host on a project's regions. What it changes in card memory reaches neither
//! the accelerator nor the owner.

use std::ops::Range;

use serde::Serialize;
use shef::{Host, Keyed, Session};
use shef_console::CliError;
use shef_proto::config::{Region, TAG_LEN};
use shef_seal::OpenPolicy;

use super::case::Case;
use super::drive::Shielded;
use super::failure::{Failure, Kind};
use super::rig::Rig;

/// An attack that was refused.
#[derive(Debug, Clone, Serialize)]
pub struct Attacked {
    /// Its name.
    pub attack: &'static str,
    /// The region.
    pub region: String,
    /// Code of the refusal; none if the accelerator did not read what was changed.
    pub code: Option<String>,
}

/// A change of an input in card memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    FlipData,
    FlipTag,
    Swap,
    OldEpoch,
}

/// A change of a result in card memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    FlipData,
    FlipTag,
    Swap,
    OldEpoch,
}

const INPUTS: [(Input, &str); 4] = [
    (Input::FlipData, "ciphertext-bit-flip"),
    (Input::FlipTag, "tag-bit-flip"),
    (Input::Swap, "chunks-swapped"),
    (Input::OldEpoch, "old-epoch-replayed"),
];
const OUTPUTS: [(Output, &str); 4] = [
    (Output::FlipData, "result-bit-flip"),
    (Output::FlipTag, "result-tag-bit-flip"),
    (Output::Swap, "result-chunks-swapped"),
    (Output::OldEpoch, "old-result-replayed"),
];

/// Runs every attack on the regions of a job.
///
/// # Errors
/// The first one that was not refused.
pub fn all(rig: &mut Rig, case: &Case<'_>) -> Result<Vec<Attacked>, Failure> {
    let mut done = Vec::new();
    let region = |name: &str| {
        let found = case.subject.config.region_by_name(name).cloned();
        found.ok_or_else(|| Failure::new(Kind::Error, format!("there is no region {name}")))
    };
    for (name, data) in &case.inputs {
        let region = region(name)?;
        for (how, attack) in INPUTS {
            if how == Input::Swap && data.len() as u64 <= u64::from(region.chunk) {
                continue;
            }
            let code = on_input(rig, case, &region, how).map_err(|f| named(f, attack, name))?;
            done.push(Attacked { attack, region: name.clone(), code });
        }
    }
    for output in &case.subject.job.outputs {
        let region = region(&output.region)?;
        let ways = OUTPUTS
            .iter()
            .filter(|(how, _)| *how != Output::Swap || output.bytes > u64::from(region.chunk));
        for (how, attack) in ways {
            let code = on_output(rig, case, &region, output.bytes as usize, *how)
                .map_err(|f| named(f, attack, &region.name))?;
            done.push(Attacked { attack, region: region.name.clone(), code: Some(code) });
        }
    }
    Ok(done)
}

fn named(failure: Failure, attack: &str, region: &str) -> Failure {
    let message = format!("{attack} on region {region}: {}", failure.message);
    Failure { message, ..failure }
}

/// A chunk in card memory with its tag.
struct Sealed {
    data: Vec<u8>,
    tag: Vec<u8>,
}

fn place(region: &Region, chunk: u64) -> (u64, u64) {
    (region.base + chunk * u64::from(region.chunk), region.tag_base + chunk * TAG_LEN)
}

fn take(host: &mut Host, region: &Region, chunk: u64) -> Result<Sealed, Failure> {
    let (data_at, tag_at) = place(region, chunk);
    let (mut data, mut tag) = (vec![0; region.chunk as usize], vec![0; TAG_LEN as usize]);
    host.device().mem_read(data_at, &mut data).map_err(CliError::from)?;
    host.device().mem_read(tag_at, &mut tag).map_err(CliError::from)?;
    Ok(Sealed { data, tag })
}

fn put(host: &mut Host, region: &Region, chunk: u64, sealed: &Sealed) -> Result<(), Failure> {
    let (data_at, tag_at) = place(region, chunk);
    host.device().mem_write(data_at, &sealed.data).map_err(CliError::from)?;
    host.device().mem_write(tag_at, &sealed.tag).map_err(CliError::from)?;
    Ok(())
}

fn swap(host: &mut Host, region: &Region) -> Result<(), Failure> {
    let (first, second) = (take(host, region, 0)?, take(host, region, 1)?);
    put(host, region, 0, &second)?;
    put(host, region, 1, &first)
}

fn tampered(error: impl Into<String>) -> Failure {
    Failure::new(Kind::Attack, error)
}

/// A new session on the card of the attack before, with the inputs uploaded.
fn begin<'h>(
    rig: &'h mut Rig,
    case: &Case<'_>,
) -> Result<(Session<'h, Keyed>, &'h shef_card::CardProbe), Failure> {
    let Rig { world, host, card, .. } = rig;
    world.ready(host)?;
    card.unwatch();
    let mut session = world.keyed(host)?;
    Shielded { session: &mut session, card }.upload(&case.inputs)?;
    Ok((session, card))
}

/// Changes the first chunk of an input. Returns the code of the refusal, unless the accelerator does
/// not read the chunk: its results are right then.
fn on_input(
    rig: &mut Rig,
    case: &Case<'_>,
    region: &Region,
    how: Input,
) -> Result<Option<String>, Failure> {
    let (mut session, card) = begin(rig, case)?;
    let chunk = u64::from(region.chunk);
    let mut range: Range<u64> = region.base..region.base + chunk;
    let mut sealed = take(session.host(), region, 0)?;
    match how {
        Input::FlipData => sealed.data[chunk as usize / 2] ^= 0x10,
        Input::FlipTag => sealed.tag[5] ^= 1,
        Input::Swap => {
            swap(session.host(), region)?;
            range.end += chunk;
        }
        Input::OldEpoch => {
            let buffer = session.input(&region.name)?;
            session.next_input_epoch(&buffer)?;
            let data = case.inputs.iter().find(|(name, _)| *name == region.name);
            session.upload(&buffer, data.map_or(&[], |(_, data)| data))?;
        }
    }
    if how != Input::Swap {
        put(session.host(), region, 0, &sealed)?;
    }
    card.watch(range);
    let ran = Shielded { session: &mut session, card }.job(case, &case.writes()?);
    let words = card.words_delivered();
    let closed = session.abort()?;
    if words != 0 {
        let what = format!("{words} words of a changed chunk reached the accelerator");
        return Err(tampered(what));
    }
    match (ran, closed.last.faults) {
        (Ok(_), 1..) => Err(tampered("the results opened")),
        (Err(failure), 1..) => Ok(failure.code),
        (Err(failure), 0) => Err(failure),
        (Ok((results, _)), 0) => case.compare(&results).map(|()| None),
    }
}

/// Changes the first chunk of a result, and demands that the owner refuses it, and accepts it again
/// when it is back. Returns the code of the refusal.
fn on_output(
    rig: &mut Rig,
    case: &Case<'_>,
    region: &Region,
    len: usize,
    how: Output,
) -> Result<String, Failure> {
    let (mut session, card) = begin(rig, case)?;
    let writes = case.writes()?;
    Shielded { session: &mut session, card }.job(case, &writes)?;
    let old = take(session.host(), region, 0)?;
    let buffer = session.output(&region.name)?;
    if how == Output::OldEpoch {
        for output in &case.subject.job.outputs {
            let buffer = session.output(&output.region)?;
            session.next_output_epoch(&buffer)?;
        }
        Shielded { session: &mut session, card }.job(case, &writes)?;
    }
    let right = take(session.host(), region, 0)?;
    let mut changed = Sealed { data: right.data.clone(), tag: right.tag.clone() };
    match how {
        Output::FlipData => changed.data[region.chunk as usize / 2] ^= 0x10,
        Output::FlipTag => changed.tag[5] ^= 1,
        Output::Swap => swap(session.host(), region)?,
        Output::OldEpoch => changed = old,
    }
    if how != Output::Swap {
        put(session.host(), region, 0, &changed)?;
    }
    let statement = session.statement()?;
    let refused = session.open(&buffer, &statement, len, OpenPolicy::default());
    match how {
        Output::Swap => swap(session.host(), region)?,
        _ => put(session.host(), region, 0, &right)?,
    }
    let opened = session.open(&buffer, &statement, len, OpenPolicy::default());
    session.abort()?;
    let Err(refused) = refused else { return Err(tampered("the changed result opened")) };
    opened?;
    Ok(refused.code().to_owned())
}
