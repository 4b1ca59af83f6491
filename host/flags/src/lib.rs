//! Flags of commands that name an agent or a verifier service.

mod service;
mod tls;

pub use service::{ServiceArgs, identity};
pub use tls::TlsArgs;
