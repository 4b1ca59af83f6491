//! The protocol between an owner's program and an agent, `tls://HOST:PORT/DEVICE`: its messages
//! ([`wire`]), and the owner's side, a card behind an agent as a [`Device`](shef_device::Device).
//!
//! TLS keeps strangers away from the card. Nothing here is trusted with data: the traffic is
//! sealed, and the roles of crate `shef` check the answers.

mod connect;
mod device;
mod link;
mod tls;
pub mod wire;

pub use connect::{connect, connect_any};
pub use device::{Limits, Progress, RemoteDevice, list};
pub use tls::{TlsFiles, certificates, open_key, private_key, unpaired};
