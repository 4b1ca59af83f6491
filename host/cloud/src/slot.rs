//! Slots of an F2 instance: state, load and clear, through AWS's tools.
//!
//! A load is a sequence of states that only [`describe`] knows: it begins and ends with a look, so a
//! command that was killed is repeated at whatever state it left.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::{SLOT_FAILURES, SlotFailure};
use crate::run::{self, Limits, Said};
use crate::tools::{self, Tool};
use crate::{CloudError, Step, Watch};

/// Number of the error for a load that failed without one.
const UNSPECIFIED: u32 = 14;

/// Status of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// An image is loaded.
    Loaded,
    /// No image is loaded.
    Cleared,
    /// A command is under way.
    Busy,
    /// The FPGA has no configuration.
    NotProgrammed,
    /// An image is fetched ahead.
    Caching,
    /// The shell is loaded.
    LoadingShell,
    /// A load failed, or worked with errors.
    LoadFailed,
}

/// Every status, with AWS's number and name.
const STATUSES: [(Status, u32, &str); 7] = [
    (Status::Loaded, 0, "loaded"),
    (Status::Cleared, 1, "cleared"),
    (Status::Busy, 2, "busy"),
    (Status::NotProgrammed, 3, "not-programmed"),
    (Status::Caching, 4, "caching"),
    (Status::LoadingShell, 5, "loading-rl"),
    (Status::LoadFailed, 7, "load-failed"),
];

impl Status {
    /// AWS's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        STATUSES.iter().find(|(status, ..)| *status == self).map_or("", |(_, _, name)| name)
    }

    /// Whether it changes without a command.
    fn moves(self) -> bool {
        matches!(self, Self::Busy | Self::Caching | Self::LoadingShell)
    }
}

/// A slot, as AWS's tools describe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// Its number.
    pub slot: u32,
    /// The image (AGFI).
    pub image: Option<String>,
    /// Its status.
    pub status: Status,
    /// Its error; 0 for none.
    pub error: u32,
    /// Version of the shell.
    pub shell: String,
    /// PCI functions: ids as `1d0f:f010`, address as `0000:34:00.0`.
    pub functions: Vec<(String, String)>,
}

impl Slot {
    /// The error that it reports.
    ///
    /// # Errors
    /// SHEF-CLD-036 for an unknown number.
    pub fn failure(&self) -> Result<Option<&'static SlotFailure>, CloudError> {
        match self.error {
            0 => Ok(None),
            number => failure(self.slot, number).map(Some),
        }
    }
}

fn failure(slot: u32, number: u32) -> Result<&'static SlotFailure, CloudError> {
    SLOT_FAILURES
        .iter()
        .find(|failure| failure.number == number)
        .ok_or_else(|| CloudError::SlotUnknown { slot, what: format!("error {number}") })
}

/// How a slot is used.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Longest time between two looks.
    pub interval: Duration,
    /// Longest time to wait for a state.
    pub wait: Duration,
    /// Limits of the programs.
    pub limits: Limits,
}

impl Pace {
    /// Sleeps until the next look: a quarter of the time that has passed, in its limits.
    fn pause(self, begun: Instant) {
        let shortest = Duration::from_millis(10);
        std::thread::sleep((begun.elapsed() / 4).max(shortest).min(self.interval));
    }
}

/// Runs a program of a slot. It reports an error of the slot on standard output.
fn tool(
    tool: &'static Tool,
    slot: u32,
    more: &[(&'static str, &str)],
    limits: Limits,
) -> Result<Said, CloudError> {
    let number = slot.to_string();
    let mut values = vec![("slot", &*number)];
    values.extend(more);
    let ended = run::any(&tool.call(&values)?, limits)?;
    let error = ended.out.lines().find_map(|line| line.trim().strip_prefix("Error: ("));
    let number = error.and_then(|rest| rest.split_once(')')?.0.parse().ok());
    if let Some(number) = number {
        return Err(CloudError::Slot { slot, failure: failure(slot, number)?, tries: 1 });
    }
    if ended.status == 0 {
        return Ok(Said { command: ended.command, text: ended.out });
    }
    let said = [&ended.err, &ended.out].map(|text| text.lines().last().unwrap_or_default());
    let said = said.into_iter().find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    Err(CloudError::Failed { command: ended.command, status: ended.status, said })
}

/// State of a slot; with `rescan`, the kernel looks for its PCI functions first.
///
/// # Errors
/// SHEF-CLD-010, SHEF-CLD-036 and those of programs.
pub fn describe(slot: u32, rescan: bool, limits: Limits) -> Result<Slot, CloudError> {
    let which = if rescan { &tools::RESCAN_SLOT } else { &tools::DESCRIBE_SLOT };
    parse(slot, &tool(which, slot, &[], limits)?)
}

/// State and counters of a slot, as text.
///
/// # Errors
/// As [`describe`].
pub fn counters(slot: u32, limits: Limits) -> Result<(Slot, Said), CloudError> {
    let said = tool(&tools::SLOT_METRICS, slot, &[], limits)?;
    Ok((parse(slot, &said)?, said))
}

/// Reads the lines `AFI SLOT IMAGE STATUS NUMBER ERROR NUMBER SHELL` and `AFIDEVICE SLOT VENDOR
/// DEVICE ADDRESS`.
fn parse(slot: u32, said: &Said) -> Result<Slot, CloudError> {
    let unlike = || said.unlike("a line AFI with slot, image, status, error and shell version");
    let hex = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let mut found: Option<Slot> = None;
    for line in said.text.lines() {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["AFI", number, image, _, status, _, error, shell] => {
                if found.is_some() || number.parse() != Ok(slot) || hex(shell).is_none() {
                    return Err(unlike());
                }
                let status: u32 = status.parse().map_err(|_| unlike())?;
                let known = STATUSES.iter().find(|(_, number, _)| *number == status);
                let Some((status, ..)) = known else {
                    return Err(CloudError::SlotUnknown { slot, what: format!("status {status}") });
                };
                found = Some(Slot {
                    slot,
                    image: (image != "none").then(|| image.to_owned()),
                    status: *status,
                    error: error.parse().map_err(|_| unlike())?,
                    shell: shell.to_owned(),
                    functions: Vec::new(),
                });
            }
            ["AFIDEVICE", _, vendor, device, address] => {
                if let (Some(slot), Some(vendor), Some(device)) =
                    (&mut found, hex(vendor), hex(device))
                {
                    slot.functions.push((format!("{vendor:04x}:{device:04x}"), address.to_owned()));
                }
            }
            _ => {}
        }
    }
    found.ok_or_else(unlike)
}

/// Waits until the status does not change without a command.
fn settle(
    slot: u32,
    expected: &'static str,
    pace: Pace,
    watch: Watch<'_>,
) -> Result<Slot, CloudError> {
    let begun = Instant::now();
    loop {
        let found = describe(slot, false, pace.limits)?;
        if !found.status.moves() {
            return Ok(found);
        }
        let (status, seconds) = (found.status.name(), begun.elapsed().as_secs());
        if begun.elapsed() >= pace.wait {
            return Err(CloudError::SlotLate { slot, status, seconds, expected });
        }
        watch(&format!("slot {slot} is {status} ({seconds} s)"));
        pace.pause(begun);
    }
}

/// Waits until a command that was given has ended: with one of these states, or, from a slot without
/// an error, with an error.
fn reach(
    slot: u32,
    wanted: &[Status],
    had_error: bool,
    expected: &'static str,
    pace: Pace,
    watch: Watch<'_>,
) -> Result<Slot, CloudError> {
    let begun = Instant::now();
    loop {
        let found = settle(slot, expected, pace, watch)?;
        if wanted.contains(&found.status) || found.error != 0 && !had_error {
            return Ok(found);
        }
        // The command may not have begun yet.
        if begun.elapsed() >= pace.wait {
            let (status, seconds) = (found.status.name(), begun.elapsed().as_secs());
            return Err(CloudError::SlotLate { slot, status, seconds, expected });
        }
        pace.pause(begun);
    }
}

/// Clears a slot: the image and all its memory are gone.
///
/// # Errors
/// [`CloudError`].
pub fn clear(slot: u32, pace: Pace, watch: Watch<'_>) -> Result<Slot, CloudError> {
    let found = settle(slot, "cleared", pace, watch)?;
    empty(slot, found, pace, watch)
}

/// Clears a slot that was found in a state.
fn empty(slot: u32, found: Slot, pace: Pace, watch: Watch<'_>) -> Result<Slot, CloudError> {
    if found.status == Status::Cleared && found.error == 0 {
        return Ok(found);
    }
    watch(&format!("clearing slot {slot}"));
    tool(&tools::CLEAR_SLOT, slot, &[], pace.limits)?;
    let cleared = [Status::Cleared, Status::NotProgrammed];
    let found = reach(slot, &cleared, found.error != 0, "cleared", pace, watch)?;
    match found.failure()? {
        Some(failure) => Err(CloudError::Slot { slot, failure, tries: 1 }),
        None => describe(slot, true, pace.limits),
    }
}

/// Loads an image by its global id. A slot with another one is refused unless `replace`.
///
/// # Errors
/// [`CloudError`]; after a failure that may pass, the load is tried once more.
pub fn load(
    slot: u32,
    agfi: &str,
    replace: bool,
    pace: Pace,
    watch: Watch<'_>,
) -> Result<Slot, CloudError> {
    let mut tries = 1;
    loop {
        let found = settle(slot, "loaded", pace, watch)?;
        let is_it = found.image.as_deref() == Some(agfi);
        if found.status == Status::Loaded && found.error == 0 && is_it {
            return loaded(slot, agfi, pace);
        }
        // At each try: another user may have loaded it since.
        let other = found.image.clone().filter(|_| !is_it);
        if let (Some(image), false) = (other, replace) {
            let status = found.status.name();
            let expected = agfi.to_owned();
            return Err(CloudError::OtherImage { slot, status, found: image, expected });
        }
        // Decide by the state read above: an image that appears after it belongs to another user.
        empty(slot, found, pace, watch)?;
        watch(&format!("loading {agfi} into slot {slot}"));
        let failure = match attempt(slot, agfi, pace, watch) {
            Ok(()) => return loaded(slot, agfi, pace),
            Err(CloudError::Slot { failure, .. }) => failure,
            Err(error) => return Err(error),
        };
        if tries == 2 || !failure.again {
            return Err(CloudError::Slot { slot, failure, tries });
        }
        tries += 1;
        watch(&format!("slot {slot} reports {}: once more", failure.name));
    }
}

/// One load, until the slot reports its end.
fn attempt(slot: u32, agfi: &str, pace: Pace, watch: Watch<'_>) -> Result<(), CloudError> {
    tool(&tools::LOAD_SLOT, slot, &[("agfi", agfi)], pace.limits)?;
    let ended = [Status::Loaded, Status::LoadFailed];
    let found = reach(slot, &ended, false, "loaded", pace, watch)?;
    let reported = found.failure()?;
    let failed =
        (found.status != Status::Loaded).then(|| failure(slot, UNSPECIFIED)).transpose()?;
    match reported.or(failed) {
        Some(failure) => Err(CloudError::Slot { slot, failure, tries: 1 }),
        None => Ok(()),
    }
}

/// The loaded slot, with its PCI functions. It must have this image.
fn loaded(slot: u32, agfi: &str, pace: Pace) -> Result<Slot, CloudError> {
    let found = describe(slot, true, pace.limits)?;
    if found.image.as_deref() != Some(agfi) || found.status != Status::Loaded {
        let found = found.image.unwrap_or_else(|| found.status.name().to_owned());
        return Err(CloudError::EndsWithOther { slot, expected: agfi.to_owned(), found });
    }
    match found.failure()? {
        Some(failure) => Err(CloudError::Slot { slot, failure, tries: 1 }),
        None => Ok(found),
    }
}

/// The case in which [`load`] and [`clear`] clear a slot.
const NOT_EMPTY: &str = "the slot is not empty";
/// Of a load that may not replace another image.
const SPOILT: &str = "the slot has an error or is not programmed";
/// Of a load that may.
const OTHER: &str = "the slot has an error, is not programmed, or holds another image";
const NOT_LOADED: &str = "the slot does not hold the image yet";

/// Each program that [`load`] may run. One that looks is repeated until the slot has settled.
///
/// # Errors
/// SHEF-CLD-054.
pub fn load_plan(slot: u32, agfi: &str, replace: bool) -> Result<Vec<Step>, CloudError> {
    let number = slot.to_string();
    let call = |tool: &'static Tool| tool.call(&[("slot", &*number), ("agfi", agfi)]);
    let case = if replace { OTHER } else { SPOILT };
    Ok(vec![
        call(&tools::DESCRIBE_SLOT)?.into(),
        call(&tools::CLEAR_SLOT)?.only_if(case),
        call(&tools::DESCRIBE_SLOT)?.only_if(case),
        call(&tools::RESCAN_SLOT)?.only_if(case),
        call(&tools::LOAD_SLOT)?.only_if(NOT_LOADED),
        call(&tools::DESCRIBE_SLOT)?.only_if(NOT_LOADED),
        call(&tools::RESCAN_SLOT)?.into(),
    ])
}

/// As [`load_plan`], for [`clear`].
///
/// # Errors
/// SHEF-CLD-054.
pub fn clear_plan(slot: u32) -> Result<Vec<Step>, CloudError> {
    let number = slot.to_string();
    let call = |tool: &'static Tool| tool.call(&[("slot", &*number)]);
    Ok(vec![
        call(&tools::DESCRIBE_SLOT)?.into(),
        call(&tools::CLEAR_SLOT)?.only_if(NOT_EMPTY),
        call(&tools::DESCRIBE_SLOT)?.only_if(NOT_EMPTY),
        call(&tools::RESCAN_SLOT)?.only_if(NOT_EMPTY),
    ])
}

/// The one program that [`describe`] runs.
///
/// # Errors
/// SHEF-CLD-054.
pub fn describe_plan(slot: u32, rescan: bool) -> Result<Step, CloudError> {
    let which = if rescan { &tools::RESCAN_SLOT } else { &tools::DESCRIBE_SLOT };
    Ok(which.call(&[("slot", &slot.to_string())])?.into())
}

/// The one program that [`counters`] runs.
///
/// # Errors
/// SHEF-CLD-054.
pub fn counters_plan(slot: u32) -> Result<Step, CloudError> {
    Ok(tools::SLOT_METRICS.call(&[("slot", &slot.to_string())])?.into())
}
