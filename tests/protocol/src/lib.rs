//! The protocol of attestation and key release as a model: kernel round, Shield round, Load Key and
//! key confirmation, with an adversary that controls every link, the host and two devices. All
//! states within given bounds are searched (docs/protocol-model.md explains what this covers).
#![forbid(unsafe_code)]

pub mod roles;
pub mod search;
pub mod term;
