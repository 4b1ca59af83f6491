//! Fakes of the programs of AWS and AMD that `shef cloud` runs.
//!
//! One program acts as all of them, by the name that it is started by. Each takes exactly the
//! arguments of [`table`], which says where an argument is documented, and refuses any other. Its
//! world is a folder, `SHEF_FAKES`: buckets, images, slots and the faults that a test wants.

pub mod aws;
pub mod fault;
pub mod script;
pub mod slot;
pub mod table;
pub mod vivado;
pub mod world;
