//! The command `shef`.
fn main() {}
