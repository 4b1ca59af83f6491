//! TLS for the agent, the verifier service and their clients: certificates under CAs that are valid
//! themselves, and with feature `server` a CA and the admission of connections.
#![forbid(unsafe_code)]

#[cfg(feature = "server")]
pub mod admission;
mod anchors;
#[cfg(feature = "server")]
pub mod ca;
mod lists;
mod names;
mod webpki;

pub use anchors::{Clients, Validity, client_verifier, server_verifier};
pub use lists::{List, Lists};
pub use names::names;
