//! The contract of the verifier service: the JSON of its requests and answers, its problem
//! documents and its codes. The service and its clients share these types.
//!
//! Requests refuse unknown members; answers tolerate them, so that a client understands a newer
//! service. Times are seconds since 1970. Bytes are base64url without padding, except nonces;
//! digests and identities are hexadecimal.

mod appraise;
mod collateral;
mod keys;
mod problem;
mod records;
mod release;
mod revocation;
mod secret;
mod service;

pub use appraise::{
    Appraisal, Appraised, Check, Explained, Layer, NewSession, Session, Submission, Verdict,
};
pub use collateral::{
    AddedAnchor, AddedCorim, AddedPolicy, AddedSigner, Anchor, Anchors, Change, Corim, Corims,
    Counts, DryRun, NewAnchor, Policies, Policy, Signer, Signers,
};
pub use keys::{
    AddedKey, ImageKey, Key, KeyVersion, Keys, NewKey, NewVersion, Receipt, Receipts, To, Which,
    WholeKey,
};
pub use problem::{Finding, Problem};
pub use records::{
    Device, Devices, Event, Events, Record, Records, RowsAfter, RowsBefore, RowsBehind, RowsLimit,
    RowsOfKey, WholeRecord,
};
pub use release::{Forgotten, Head, ReleaseRequest, Released};
pub use revocation::{AddedRevocation, NewRevocation, Revocation, Revocations};
pub use secret::Secret;
pub use service::{Health, IdentityProvider, Jwk, Jwks, Ready};
