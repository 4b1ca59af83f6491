//! Attacks of a dishonest host on a project's regions: neither the accelerator nor the owner accepts
//! data that it changed in card memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use shef::{Host, Keyed, SdkError, Session};
use shef_card::MemoryTap;
use shef_console::CliError;
use shef_proto::config::{Mode, Region, TAG_LEN};
use shef_seal::OpenPolicy;

use crate::job::case::Case;
use crate::job::drive::Shielded;
use crate::job::failure::{Failure, Kind};
use crate::job::rig::Rig;

/// An attack that was refused.
#[derive(Debug, Clone, Serialize)]
pub struct Attacked {
    /// Its name.
    pub attack: &'static str,
    /// The region.
    pub region: String,
    /// Code of the refusal; none if the accelerator did not read what was changed, or memory had nothing
    /// to change.
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

/// A change of a scratch region on the way from card memory, in every read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scratch {
    FlipData,
    FlipTag,
    /// All bytes are those that were stored first.
    Old,
}

const SCRATCHES: [(Scratch, &str); 3] = [
    (Scratch::FlipData, "scratch-bit-flip"),
    (Scratch::FlipTag, "scratch-tag-bit-flip"),
    (Scratch::Old, "old-scratch-replayed"),
];

/// Card memory that changes a scratch region.
struct Dishonest {
    how: Scratch,
    data: Range<u64>,
    tags: Range<u64>,
    nodes: Range<u64>,
    /// Of a beat of 64 bytes, the bytes that were stored first, and which of them were stored.
    first: HashMap<u64, ([u8; 64], u64)>,
    /// Whether a beat was changed.
    changed: bool,
}

impl MemoryTap for Dishonest {
    fn stores(&mut self, addr: u64, data: &[u8; 64], strobes: u64) {
        if [&self.data, &self.tags, &self.nodes].iter().all(|range| !range.contains(&addr)) {
            return;
        }
        let (first, stored) = self.first.entry(addr).or_insert(([0; 64], 0));
        for at in (0..64).filter(|at| (strobes & !*stored) >> at & 1 == 1) {
            first[at] = data[at];
        }
        *stored |= strobes;
    }

    fn reads(&mut self, addr: u64, data: &mut [u8; 64]) {
        let before = *data;
        match (self.how, self.first.get(&addr)) {
            // What the Shield has not stored it does not expect there.
            (_, None) => {}
            (Scratch::FlipData, Some(_)) if self.data.contains(&addr) => data[32] ^= 0x10,
            (Scratch::FlipTag, Some(_)) if self.tags.contains(&addr) => {
                data.iter_mut().step_by(TAG_LEN as usize).for_each(|byte| *byte ^= 1);
            }
            (Scratch::Old, Some((first, stored))) => {
                (0..64).filter(|at| stored >> at & 1 == 1).for_each(|at| data[at] = first[at]);
            }
            _ => {}
        }
        self.changed |= *data != before;
    }
}

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
        done.extend(on_output(rig, case, &region(&output.region)?, output.bytes as usize)?);
    }
    let scratch = |region: &&Region| matches!(region.mode, Mode::Counted | Mode::Tree);
    for region in case.subject.config.regions().iter().filter(scratch) {
        for (how, attack) in SCRATCHES {
            let code =
                on_scratch(rig, case, region, how).map_err(|f| named(f, attack, &region.name))?;
            done.push(Attacked { attack, region: region.name.clone(), code });
        }
    }
    Ok(done)
}

fn named(failure: Failure, attack: &str, region: &str) -> Failure {
    let message = format!("{attack} on region {region}: {}", failure.message);
    Failure { message, ..failure }
}

/// A chunk in card memory with its tag.
#[derive(Clone)]
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

/// Changes a scratch region whenever the Shield reads it. Returns the code of the refusal, unless the
/// accelerator received only right words: its results are right then.
fn on_scratch(
    rig: &mut Rig,
    case: &Case<'_>,
    region: &Region,
    how: Scratch,
) -> Result<Option<String>, Failure> {
    let (mut session, card) = begin(rig, case)?;
    let range = |base: u64, size: u64| base..base + size;
    let memory = Arc::new(Mutex::new(Dishonest {
        how,
        data: range(region.base, region.size),
        tags: range(region.tag_base, region.tag_size()),
        nodes: range(region.node_base.unwrap_or_default(), region.node_size()),
        first: HashMap::new(),
        changed: false,
    }));
    card.tap_memory(Arc::clone(&memory) as Arc<Mutex<dyn MemoryTap>>);
    let ran = Shielded { session: &mut session, card }.job(case, &case.writes()?);
    let closed = session.abort()?;
    let changed = memory.lock().unwrap_or_else(PoisonError::into_inner).changed;
    match (ran, closed.last.faults) {
        (Ok((results, _)), 0) => match case.compare(&results) {
            Err(failure) if changed => {
                Err(tampered(format!("a changed word reached the results: {}", failure.message)))
            }
            compared => compared.map(|()| None),
        },
        (Ok(_), 1..) => Err(tampered("the results opened")),
        (Err(failure), 1..) => Ok(failure.code),
        (Err(failure), 0) => Err(failure),
    }
}

/// Changes the first chunk of a result in every way. The owner refuses each, and accepts the result
/// when it is back.
fn on_output(
    rig: &mut Rig,
    case: &Case<'_>,
    region: &Region,
    len: usize,
) -> Result<Vec<Attacked>, Failure> {
    let (mut session, card) = begin(rig, case)?;
    let writes = case.writes()?;
    Shielded { session: &mut session, card }.job(case, &writes)?;
    let old = take(session.host(), region, 0)?;
    let mut done = Vec::new();
    for (how, attack) in OUTPUTS {
        match how {
            Output::Swap if len as u64 <= u64::from(region.chunk) => continue,
            Output::OldEpoch => {
                for output in &case.subject.job.outputs {
                    let buffer = session.output(&output.region)?;
                    session.next_output_epoch(&buffer)?;
                }
                let again = Shielded { session: &mut session, card }.job(case, &writes);
                again.map_err(|failure| named(failure, attack, &region.name))?;
            }
            _ => {}
        }
        let right = take(session.host(), region, 0)?;
        let mut changed = right.clone();
        match how {
            Output::FlipData => changed.data[region.chunk as usize / 2] ^= 0x10,
            Output::FlipTag => changed.tag[5] ^= 1,
            Output::OldEpoch => changed = old.clone(),
            Output::Swap => {}
        }
        let exchange = |session: &mut Session<'_, Keyed>, sealed: &Sealed| match how {
            Output::Swap => swap(session.host(), region),
            _ => put(session.host(), region, 0, sealed),
        };
        exchange(&mut session, &changed)?;
        let refused = open(&mut session, region, len);
        exchange(&mut session, &right)?;
        let Err(refused) = refused else {
            let what = tampered("the changed result opened");
            return Err(named(what, attack, &region.name));
        };
        open(&mut session, region, len)?;
        let code = Some(refused.code().to_owned());
        done.push(Attacked { attack, region: region.name.clone(), code });
    }
    session.abort()?;
    Ok(done)
}

/// Opens a result as its owner does.
fn open(session: &mut Session<'_, Keyed>, region: &Region, len: usize) -> Result<(), SdkError> {
    let buffer = session.output(&region.name)?;
    let statement = session.statement()?;
    session.open(&buffer, &statement, len, OpenPolicy::default()).map(drop)
}
