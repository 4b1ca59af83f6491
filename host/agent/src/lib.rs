//! The agent: runs next to the card and carries sealed chunks between owners and cards.
//!
//! It sees ciphertext only and is not trusted with data; TLS with client certificates keeps
//! strangers away from the cards. Each card belongs to one session of one owner at a time. The
//! agent wipes it between two sessions, and after the grace period if an owner vanishes. The
//! protocol is [`shef_remote::wire`].

mod admission;
mod applied;
mod carry;
pub mod config;
mod connection;
mod error;
mod identity;
pub mod init;
mod metrics;
mod open;
mod outbox;
mod server;
mod slot;
mod state;

pub use applied::{confirm, told};
pub use config::Config;
pub use error::AgentError;
pub use open::{Opener, open};
pub use server::Agent;
pub use state::Running;

/// The codes of the program's libraries.
pub fn codes() -> Vec<(&'static str, Vec<&'static shef_proto::code::Code>)> {
    vec![
        ("wire formats", shef_proto::CODES.iter().collect()),
        ("device", shef_device::CODES.iter().collect()),
        ("PCI cards", shef_vfio::CODES.iter().collect()),
        ("vfio-user", shef_vfio_user::CODES.iter().collect()),
        ("agent", shef_remote::wire::codes::CODES.iter().collect()),
    ]
}
