//! The certificates of a device: manufacturer's CA -> DeviceID -> attestation key (AK), X.509 with
//! the TCG DICE extensions.
//!
//! Issuing, strict parsing, and a path validator for exactly this chain: `[AK, DeviceID]` under a
//! root that is the trust anchor. General validators do not fit: the TcbInfo extension is critical,
//! and the key purposes are specific to DICE.

mod chain;
mod error;
mod issue;
mod parse;
mod types;
mod write;

pub use chain::{validate_chain, validate_signer, validate_under_anchor};
pub use error::CertError;
pub use issue::{issue_ak, issue_device_id, issue_root, issue_signer};
pub use types::{
    Certificate, Chain, FLAG_DEBUG, MAX_CERTIFICATE, NO_CLOCK, NO_END, TCB_LAYER, TCB_MODEL,
    TCB_VENDOR, TcbInfo, UEID_LEN, ueid_of,
};
