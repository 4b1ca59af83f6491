//! Generators: shield.toml, register map and microcode to SystemVerilog, Rust and documentation
