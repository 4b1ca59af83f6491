//! Generators: `shield.toml`, register map and microcode to SystemVerilog, Rust and documentation.
#![forbid(unsafe_code)]

pub mod files;
pub mod regs;
pub mod shield;
pub mod ucode;
