//! A model of AWS F2's shell around a custom logic (CL): its two unrelated clocks, the host on the
//! other side of PCIe, and a checker of the rules that AWS publishes ([`RULES`]).
//!
//! The model drives and samples the CL at its own ports, by AWS's names. What follows from a broken
//! rule happens in the model as it does in the card: all ones and 4 ms of time-outs on PCIS, a dead
//! PCIM until the next load.

mod bars;
mod broken;
mod clock;
mod config;
mod detector;
mod image;
mod irq;
mod life;
mod lite;
mod native;
mod pcim;
mod pcis;
mod rules;
mod shell;
mod wire;

pub use bars::{BAR0_BYTES, BAR4_BYTES};
pub use broken::{Fault, Outcome, Row, TestHost, exercise, faults, rows, small_cl};
pub use clock::{CoreClock, MAIN_PS};
pub use config::{F2Config, Metrics};
pub use irq::{Interrupt, Msix};
pub use life::{Ids, Slot};
pub use native::{CORE_KHZ, IDS, MEDIUM, NativeF2};
pub use pcim::PcimTiming;
pub use rules::{RULES, Rule, RuleText, Violation};
pub use shell::F2Shell;
