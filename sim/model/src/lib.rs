//! Bit-exact functional model of the Shield.
//!
//! [`Model`] has the Shield's registers, session, register channel and sealed memory, and runs an
//! [`Accelerator`] between them. Its writes to card memory and its answers over the channel equal
//! those of the RTL, bit for bit; it has no clock.
#![forbid(unsafe_code)]

pub mod bus;
pub mod digits;
mod engine;
pub mod memory;
mod model;

pub use bus::{Accelerator, Beat, Burst, NoAccelerator, Resp, ShieldBus, WriteBeat};
pub use digits::Digits;
pub use engine::{Counters, MemoryFault, WriteTap};
pub use memory::{Bytes, SparseMemory};
pub use model::{Bare, Model};
