//! The one door for everything that is more than cargo.
fn main() {}
