//! Verilated designs: built by content, loaded and driven from Rust
