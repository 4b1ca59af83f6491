//! The demo's report, as printed in JSON.

use std::collections::BTreeMap;

use serde::Serialize;

/// The whole run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// URI of the device.
    pub device: String,
    /// Kind of root of trust, as the appraised evidence says.
    pub root_of_trust: String,
    /// The verifier service that appraised and released; absent if the parties did.
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
    /// Statistics of each engine set of the Shield, by the counter's name.
    pub statistics: Vec<BTreeMap<&'static str, u64>>,
    /// SHA-256 of the sealed inputs and their tags, and of the sealed results and their tags, as in
    /// card memory.
    pub sealed: Sealed,
    /// Wall clock of the whole run.
    pub ms: u64,
}

/// The Security Kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Kernel {
    /// `rtl` if the firmware answered on the RTL's processor, `native` if a function did, `served`
    /// if the card is in another process.
    pub runs_on: &'static str,
    /// The measured file; absent if no file was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_file: Option<shef_console::file::PathText>,
    /// Kernel digest that the appraised evidence names.
    pub digest_in_evidence: String,
    /// Cycles of its processor from reset until it is ready for the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_cycles: Option<u64>,
    /// Cycles of its processor from there to the close record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
}

/// A verifier service.
#[derive(Debug, Clone, Serialize)]
pub struct Verifier {
    /// Its address.
    pub url: String,
    /// Head of its chain of receipts after the keys of the honest run, in the format of `shef audit
    /// verify --head`.
    pub head: String,
}

/// A step.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Stable name.
    pub name: &'static str,
    /// Whether it succeeded.
    pub ok: bool,
    /// Wall clock.
    pub ms: u64,
    /// Clock cycles of the device, if it counts them.
    pub cycles: Option<u64>,
    /// Observations, human-readable.
    pub detail: String,
}

/// Results of the accelerator.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Digits {
    /// Queries.
    pub tested: usize,
    /// Number of correct labels.
    pub correct: usize,
    /// Whether every result equals that of the CPU reference in all fields.
    pub equal_to_reference: bool,
}

/// An attack.
#[derive(Debug, Clone, Serialize)]
pub struct AttackResult {
    /// Stable name.
    pub name: &'static str,
    /// Description of the attack.
    pub title: &'static str,
    /// Whether it was refused as required.
    pub detected: bool,
    /// 64-bit words that the accelerator received from tampered memory.
    pub words_delivered: u64,
    /// Code of the component that refused.
    pub code: String,
    /// Observations, human-readable.
    pub detail: String,
    /// Wall clock.
    pub ms: u64,
    /// Clock cycles of the device, if it counts them.
    pub cycles: Option<u64>,
}

/// Cycles from the start command until the last result is acknowledged in memory.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Cycles {
    /// Through the Shield, final flush included.
    pub shielded: Option<u64>,
    /// The same accelerator wired to the same memory.
    pub bare: Option<u64>,
}

/// Digests of card memory, to compare runs.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sealed {
    /// Sealed inputs and tags.
    pub inputs: String,
    /// Sealed results and tags.
    pub results: String,
    /// Transcript hash of the session.
    pub transcript: String,
}
