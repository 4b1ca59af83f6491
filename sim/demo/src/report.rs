//! What the demo found out, as it is printed in JSON.

use std::collections::BTreeMap;

use serde::Serialize;

/// The whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// URI of the device.
    pub device: String,
    /// Kind of root of trust, as the appraised evidence says.
    pub root_of_trust: String,
    /// The verifier service that appraised and released, where it was not the parties themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier: Option<Verifier>,
    /// Whether card and owner drew from a seed.
    pub seeded: bool,
    /// The Security Kernel of the honest run.
    pub kernel: Kernel,
    /// Every step, in order.
    pub steps: Vec<Step>,
    /// The results.
    pub digits: Digits,
    /// Every attack.
    pub attacks: Vec<AttackResult>,
    /// Cycles of the launch, with and without a Shield.
    pub cycles: Cycles,
    /// What each engine set of the Shield counted, by the counter's name.
    pub statistics: Vec<BTreeMap<&'static str, u64>>,
    /// SHA-256 of the sealed inputs and their tags, of the sealed results and their tags, as they
    /// lay in card memory.
    pub sealed: Sealed,
    /// Wall clock of the whole run.
    pub ms: u64,
}

/// The Security Kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Kernel {
    /// `rtl` if the firmware answered on the RTL's processor, `native` if a function did, `served`
    /// where the card is in another process.
    pub runs_on: &'static str,
    /// The file whose bytes were measured; absent where no file was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_file: Option<shef_console::file::PathText>,
    /// Kernel digest that the appraised evidence names.
    pub digest_in_evidence: String,
    /// Cycles of its processor from reset to the first message that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_cycles: Option<u64>,
    /// Cycles of its processor from there to the close record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
}

/// A verifier service.
#[derive(Debug, Clone, Serialize)]
pub struct Verifier {
    /// Where it is.
    pub url: String,
    /// Head of its chain of receipts after the keys of the honest run, as
    /// `shef audit verify --head` takes it.
    pub head: String,
}

/// A step.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Stable name.
    pub name: &'static str,
    /// Whether it did what it must.
    pub ok: bool,
    /// Wall clock.
    pub ms: u64,
    /// Clock cycles of the device, where it counts them.
    pub cycles: Option<u64>,
    /// What was seen, for people.
    pub detail: String,
}

/// Results of the accelerator.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Digits {
    /// Queries.
    pub tested: usize,
    /// Labels that are right.
    pub correct: usize,
    /// Whether every result equals that of the CPU reference, all fields.
    pub equal_to_reference: bool,
}

/// An attack.
#[derive(Debug, Clone, Serialize)]
pub struct AttackResult {
    /// Stable name.
    pub name: &'static str,
    /// What the dishonest host did, for people.
    pub title: &'static str,
    /// Whether it was refused as it must be.
    pub detected: bool,
    /// 64-bit words that the accelerator received from tampered memory.
    pub words_delivered: u64,
    /// Code of what refused.
    pub code: String,
    /// What was seen, for people.
    pub detail: String,
    /// Wall clock.
    pub ms: u64,
    /// Clock cycles of the device, where it counts them.
    pub cycles: Option<u64>,
}

/// Cycles from the start command to the last result acknowledged in memory.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Cycles {
    /// Through the Shield, final flush included.
    pub shielded: Option<u64>,
    /// The same accelerator wired to the same memory.
    pub bare: Option<u64>,
}

/// Digests of what lay in card memory, to compare runs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sealed {
    /// Sealed inputs and tags.
    pub inputs: String,
    /// Sealed results and tags.
    pub results: String,
    /// Transcript hash of the session.
    pub transcript: String,
}
