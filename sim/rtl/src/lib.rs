//! Verilated designs: built by content, loaded and driven from Rust.
//!
//! A [`DesignSpec`] names a top module; [`build`] runs Verilator and g++ once per content (a cache,
//! safe between processes) and loads the result; a [`Sim`] is one instance of the design with its
//! ports by name.
//!
//! ```no_run
//! use shef_rtl::{Sim, build, module_spec};
//!
//! let lib = build(&module_spec("shef_hmac")?)?;
//! let mut sim = Sim::new(&lib)?;
//! sim.reset("rst_ni", 2); // low for two cycles, every other input 0
//! sim.poke("cmd_i", 0);
//! sim.poke("cmd_valid_i", 1);
//! sim.eval(); // settle the outputs that depend on inputs
//! assert_eq!(sim.peek("cmd_ready_o"), 1);
//! sim.tick(); // one clock cycle
//! # Ok::<(), shef_rtl::Error>(())
//! ```
//!
//! Wide ports: [`Sim::poke_be`] takes bytes as the standards print blocks and keys (byte 0 in the
//! top bits), [`Sim::poke_le`] as AXI carries data (byte 0 in the low bits). In hot loops take a
//! [`Port`] once and use [`Sim::get`] and [`Sim::set`]. A packed struct port is one wide vector,
//! first member in the top bits.
//!
//! [`check`]: the protocol checker of an accelerator's ports, in every simulation shell.
//! [`measure`]: how many cycles a job takes at these ports, and what they do in them.
//! [`progress`]: which bursts these ports have in flight, and who waits for whom.
//!
//! Verilator comes from `SHEF_VERILATOR` (a `verilator_bin` or `verilator`), else from the
//! project's tools folder. Results are kept in the folder `verilated` of `SHEF_CACHE`, else of
//! `target`.
#![expect(unsafe_code, reason = "loads and calls the compiled model")]

pub mod agent;
mod axi_lite;
mod axi_master;
mod axi_memory;
mod build;
mod burst;
pub mod check;
mod core_side;
mod core_sim;
mod designs;
mod error;
pub mod f2;
mod host_memory;
pub mod kernel_sim;
pub mod measure;
pub mod progress;
mod shim;
mod sim;
mod spec;
mod stage;
pub mod system_sim;
mod toolchain;
mod trace;
mod unshielded;

pub use agent::{Agent, cycle, cycle_until};
pub use axi_lite::AxiLite;
pub use axi_master::{AxiDone, AxiMaster, AxiMasters, AxiOp};
pub use axi_memory::{
    AxiMemory, AxiMemoryConfig, BusCounters, DECERR, Hostile, OKAY, ReadHook, SLVERR, WriteHook,
};
pub use build::{build, build_once, build_with, cache_dir};
pub use burst::{AxiBurst, BEAT};
pub use core_side::{CoreSide, Watch};
pub use core_sim::{CoreSim, CoreSnapshot};
pub use designs::{f2_spec, kernel_spec, module_spec, system_spec};
pub use error::Error;
pub use host_memory::{HostBus, HostFault, HostMemory};
pub use kernel_sim::{
    Environment, Fabric, KernelClock, KernelPort, KernelSim, KernelSnapshot, KernelStraps, Moment,
    Noise, fair_noise, sparse_noise,
};
pub use shef_model::memory;
pub use shef_project::{SourceSet, repo_root};
pub use sim::{Direction, Library, Port, Sim, Snapshot, counted, counts_coverage};
pub use spec::{DesignSpec, Lint, Profile};
pub use system_sim::{SystemSim, SystemSnapshot};
pub use toolchain::{Toolchain, find_ibex, find_toolchain};
pub use trace::{PortEvent, PortEventKind, PortTrace, Traced};
pub use unshielded::Unshielded;

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = Error::CODES;

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;
