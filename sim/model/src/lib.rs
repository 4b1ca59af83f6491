//! Bit-exact functional model of the Shield
#![forbid(unsafe_code)]

pub mod memory;
