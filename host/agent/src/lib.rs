//! The agent: beside the card, it carries sealed chunks between owners and cards.
//!
//! It sees ciphertext only and is not trusted with data; TLS with client certificates keeps
//! strangers away from the cards. Each card is in one session of one owner at a time and is wiped
//! between two sessions, and after the time of grace where an owner vanished. The protocol is
//! [`shef_remote::wire`].

mod applied;
mod carry;
pub mod config;
mod connection;
mod door;
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
