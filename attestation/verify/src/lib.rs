//! Pure appraisal: evidence, trust anchors, reference values, a policy, a nonce and the time go in;
//! an [`Appraisal`] comes out, and for evidence that passed every check a
//! [`VerifiedKernelEvidence`] or [`VerifiedShieldEvidence`], the only things that keys are released
//! to.
//!
//! No I/O, no clock, no randomness. What is not shown is denied.
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
mod policy;
mod reference;
pub mod rego;
mod revocation;
mod verified;

pub use appraise::{Appraisal, Given, Outcome, Request, Verdict, appraise, appraise_kernel, appraise_shield, floor};
pub use ar4si::{Status, TrustVector};
pub use chain::{ChainCache, ChainKey, MemoryChainCache, TrustAnchors, VerifiedChain};
pub use checks::{Check, CheckId, Text};
pub use files::{PolicyError, policy_id};
pub use policy::{AppraisalPolicy, Policy};
pub use reference::{ImageReference, KernelReference, ReferenceValues, ShellReference, TrustAnchor};
pub use rego::{Rego, RegoError};
pub use revocation::Revocations;
pub use verified::{LoadKeyError, Verified, VerifiedKernelEvidence, VerifiedShieldEvidence, VouchError, Vouched};

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
        "SHEF-ATT-053",
        "Rego policy is not valid",
        "The text is not Rego of package shef with a rule allow, it is too long, or it calls a function that policies may not call; the text names \
         line and column, or the function. docs/reference/evidence.md lists the functions.",
    ),
    Code::new(
        "SHEF-ATT-054",
        "revocation list is not valid",
        "The list is not TOML of this form; the text names line and column. docs/reference/evidence.md lists the keys.",
    ),
    Code::new(
        "SHEF-ATT-055",
        "Rego policy passed a limit",
        "One evaluation may take 64 MiB of memory and one second. The policy was ended and the evidence denied. Look for products of lists and for \
         texts or numbers that grow.",
    ),
    Code::new(
        "SHEF-ATT-056",
        "Rego policy is not run for a while",
        "It passed its limits several times in a row (SHEF-ATT-055). The text says for how long; a policy with another text is run at once.",
    ),
    Code::new(
        "SHEF-ATT-057",
        "Rego policies are not run here",
        "The process in which policies run did not start, or the caller of the library gave none. The text says why; the evidence was denied.",
    ),
    Code::new("SHEF-ATT-070", "not a token of the expected form", "A result is a compact JWS: three parts in base64url without padding."),
    Code::new(
        "SHEF-ATT-071",
        "token is not signed by a known key",
        "The token was changed, or signed by a key that is not, or no longer, one of the verifier's.",
    ),
    Code::new(
        "SHEF-ATT-072",
        "algorithm or header of the token is not allowed",
        "Results are signed with ES256. The header names algorithm, type and key, and nothing else: `none`, HMAC, RSA, and keys inside or \
         behind the header are refused.",
    ),
    Code::new(
        "SHEF-ATT-073",
        "a claim of the result is not what is expected",
        "Audience, nonce, layer or form of the result are not those expected. The text names the claim.",
    ),
    Code::new("SHEF-ATT-074", "the result is not valid now", "It has expired, or was issued in the future: look at both clocks."),
    Code::new("SHEF-ATT-075", "the signing key cannot be used", "The key that signs results gave no signature. Look at where it is kept."),
    Code::new(
        "SHEF-ATT-080",
        "not a CoRIM of the form",
        "Reference values come as deterministic CBOR: a CoRIM (tag 501) with one SHA-256 digest and an exact SVN for each measurement, none \
         of them twice.",
    ),
    Code::new(
        "SHEF-ATT-081",
        "CoRIM is not in force",
        "It is not signed, not by a signer registered for what it vouches for, not valid now, deactivated, or older than one that is known. \
         The text says which. Signers are registered as [[signer]] with their key or CA.",
    ),
    Code::new(
        "SHEF-PRO-080",
        "not a conceptual message wrapper",
        "The bytes are not a CMW (RFC 9999): a record of type, message and optional indicator, or a collection of records by name.",
    ),
    Code::new(
        "SHEF-PRO-081",
        "wrapper exceeds a limit",
        "A wrapper holds at most 64 KiB, 64 items, and two collections inside each other.",
    ),
    Code::new(
        "SHEF-PRO-082",
        "wrapper holds something else",
        "The wrapper must hold exactly one record of application/eat+cwt whose indicator, if there is one, says evidence.",
    ),
    Code::new(
        "SHEF-ATT-100",
        "not a bundle of the form",
        "The file is not a signed bundle of this version: it was cut or changed, or is something else.",
    ),
    Code::new(
        "SHEF-ATT-101",
        "bundle is not signed by the expected key",
        "Give the key of whoever made the bundle; or the file was changed.",
    ),
    Code::new("SHEF-ATT-102", "bundle holds no evidence", "It carries trust data only: `shef bundle import` installs them."),
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
    Code::new(
        "SHEF-ATT-062",
        "receipt vouches for something else",
        "The verifier service's receipt is not of this evidence, challenge, key and recipient: an answer was exchanged on its way, or is an old one. Ask for a new session.",
    ),
];

const PARTS: &[&[Code]] = &[checks::CODES, FILE_CODES];

/// All codes of this crate.
pub const CODES: &[Code] = &code::join::<{ code::count(PARTS) }>(PARTS);
