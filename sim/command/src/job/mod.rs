//! A job of a project on a simulated card, with the results that it must have: for `shef test` and
//! `shef bench`.

pub mod case;
pub mod drive;
pub mod failure;
pub mod python;
pub mod rig;
