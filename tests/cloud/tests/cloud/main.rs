//! `shef cloud` against fakes of the programs of AWS and AMD.

mod bench;
mod faults;
mod flow;
mod plans;
