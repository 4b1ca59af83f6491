//! A job of a project on a simulated card, with the results that it must have: for `shef test`,
//! `shef bench` and `shef-sim evaluate`.

pub mod case;
pub mod drive;
pub mod failure;
pub mod measure;
pub mod python;
pub mod rig;
