//! The verifier service: issues challenges, appraises evidence, releases keys to proven devices,
//! keeps receipts.
#![forbid(unsafe_code)]

mod admission;
pub mod api;
pub mod app;
pub mod appraiser;
pub mod audit;
pub mod auth;
pub mod backup;
pub mod bodies;
pub mod check;
pub mod collateral;
pub mod config;
pub mod erase;
mod flow;
mod http_client;
pub mod init;
pub mod jwe;
pub mod keyring;
pub mod lanes;
pub mod metrics;
pub mod name;
pub mod oidc;
pub mod page;
pub mod problem;
pub mod rekey;
pub mod role;
pub mod router;
pub mod run;
pub mod secrets;
pub mod server;
pub mod session;
pub mod signing;
pub mod spans;
pub mod store;
pub mod time;
pub mod tls;
pub mod traces;
mod usage;
pub mod vault;
pub mod work_queue;

/// The codes of the program's libraries.
#[must_use]
pub fn codes() -> Vec<(&'static str, Vec<&'static shef_proto::code::Code>)> {
    vec![
        (
            "wire formats",
            shef_proto::CODES.iter().filter(|code| !problem::Kind::CODES.contains(code)).collect(),
        ),
        ("verifier service", problem::Kind::CODES.iter().collect()),
        ("appraisal", shef_verify::CODES.iter().collect()),
    ]
}
