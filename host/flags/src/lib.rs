//! Flags of several commands: an agent, a verifier service, waves.

mod service;
mod tls;
mod wave;

pub use service::{ServiceArgs, identity};
pub use tls::TlsArgs;
pub use wave::WaveArgs;
