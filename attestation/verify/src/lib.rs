//! Pure appraisal. The input is evidence, trust anchors, reference values, a policy, a nonce and
//! the time; the output is an [`Appraisal`] and, if the evidence passes every check, a
//! [`VerifiedKernelEvidence`] or [`VerifiedShieldEvidence`]. Keys are released to these two types
//! only.
//!
//! No I/O, no clock, no randomness. Anything not proven is denied.
#![forbid(unsafe_code)]

mod appraise;
pub mod ar4si;
#[cfg(feature = "corim")]
pub mod bundle;
mod chain;
mod checks;
pub mod cmw;
#[cfg(feature = "corim")]
pub mod corim;
pub mod crypto;
pub mod ear;
mod files;
mod json;
pub mod jwt;
pub use shef_proto::name;
mod policy;
mod reference;
pub mod rego;
mod revocation;
mod verified;

pub use appraise::{
    Appraisal, AppraisalRequest, EvidenceSource, Outcome, Verdict, appraise, appraise_kernel,
    appraise_shield, floor,
};
pub use ar4si::{Status, TrustVector};
pub use chain::{ChainCache, ChainKey, MemoryChainCache, TrustAnchors, VerifiedChain};
pub use checks::{Check, CheckId, Text};
pub use files::{PolicyError, policy_id};
pub use policy::{AppraisalPolicy, Policy};
pub use reference::{
    ImageReference, KernelReference, ReferenceValues, ShellReference, TrustAnchor,
};
pub use rego::{Rego, RegoError};
pub use revocation::Revocations;
pub use verified::{
    LoadKeyError, Verified, VerifiedKernelEvidence, VerifiedShieldEvidence, VouchError, Vouched,
};

use shef_proto::code::{self, Code};

const PARTS: &[&[Code]] = &[
    checks::CODES,
    PolicyError::CODES,
    RegoError::CODES,
    jwt::JwtError::CODES,
    #[cfg(feature = "corim")]
    corim::CorimError::CODES,
    cmw::CmwError::CODES,
    #[cfg(feature = "corim")]
    bundle::BundleError::CODES,
    LoadKeyError::CODES,
    VouchError::CODES,
];

/// All codes of this crate.
pub const CODES: &[Code] = &code::join::<{ code::count(PARTS) }>(PARTS);
