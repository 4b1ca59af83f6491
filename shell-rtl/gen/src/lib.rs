//! Generators: `shield.toml`, register map and microcode to SystemVerilog, Rust and documentation.
#![forbid(unsafe_code)]

pub mod estimate;
pub mod f2;
pub mod files;
pub mod regs;
pub mod secret;
pub mod shield;
pub mod ucode;

use shef_proto::code::{Code, count, join};

const PARTS: &[&[Code]] = &[shield::ShieldError::CODES, ucode::UcodeError::CODES];

/// All codes of this crate.
pub const CODES: &[Code] = &join::<{ count(PARTS) }>(PARTS);
