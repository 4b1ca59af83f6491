//! Pure appraisal: evidence, trust anchors, reference values, a policy, a nonce and the time go in; an [`Appraisal`] comes out, and for
//! evidence that passed every check a [`VerifiedKernelEvidence`] or [`VerifiedShieldEvidence`], the only things that keys are released to.
//!
//! No I/O, no clock, no randomness. What is not shown is denied.
#![forbid(unsafe_code)]

mod appraise;
mod policy;
mod reference;
mod verified;

pub use appraise::{Appraisal, Check, CheckId, Outcome, Request, Verdict, appraise, appraise_kernel, appraise_shield};
pub use policy::{Policy, PolicyError};
pub use reference::{ImageReference, KernelReference, ReferenceValues, ShellReference, TrustAnchor};
pub use verified::{LoadKeyError, Verified, VerifiedKernelEvidence, VerifiedShieldEvidence};

use shef_proto::code::{self, Code};

const FILE_CODES: &[Code] = &[
    Code::new(
        "SHEF-ATT-050",
        "policy file is not valid",
        "The policy is not TOML of this form; the text names the line. docs/reference/evidence.md lists the keys.",
    ),
    Code::new(
        "SHEF-ATT-051",
        "reference values are not valid",
        "The file of reference values is not TOML or JSON of this form; the text names the place.",
    ),
    Code::new(
        "SHEF-ATT-052",
        "trust anchor is not valid",
        "The certificate is not a self-signed P-256 root that may issue DeviceID certificates.",
    ),
    Code::new(
        "SHEF-ATT-060",
        "owner and Shield have different configurations",
        "The digest of the owner's configuration is not the one in the evidence: seal nothing. Take the shield.toml that the image was built from.",
    ),
    Code::new(
        "SHEF-ATT-061",
        "Shield is not waiting for a Load Key",
        "A Load Key goes to a fresh Shield only. Ask the kernel for a new session and for new evidence.",
    ),
];

const PARTS: &[&[Code]] = &[appraise::CODES, FILE_CODES];

/// All codes of this crate.
pub const CODES: &[Code] = &code::join::<{ code::count(PARTS) }>(PARTS);
