//! The back ends that replace an FPGA, behind one trait: the functional model and the Verilated
//! RTL.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use shef_model::SparseMemory;
use shef_rtl::check::{Checked, DoneRegister, ReportHook};
use shef_rtl::measure::{Measured, MeasuredJob};
use shef_rtl::progress::Progress;
use shef_rtl::{Library, Traced};

use crate::CardError;
use crate::host_port::HostPort;

/// Receives the progress of an accelerator that is stuck.
pub(crate) type StuckHook = Box<dyn FnMut(&Progress) + Send>;

/// What a command of the host does to the core.
pub(crate) enum Change {
    None,
    /// It starts, with this boot medium.
    Started(Vec<u8>),
    /// It is wiped, and held in reset.
    Stopped,
}

/// A Shield with an accelerator and its memory.
///
/// Ports return `None` or `false` for a bus error.
pub(crate) trait Backend {
    /// Reads the control window.
    fn ctl_read(&mut self, offset: u32) -> Result<Option<u32>, CardError>;
    /// Writes the control window.
    fn ctl_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError>;
    /// Reads the kernel port.
    fn krn_read(&mut self, offset: u32) -> Result<Option<u32>, CardError>;
    /// Writes the kernel port.
    fn krn_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError>;
    /// Reads card memory.
    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]);
    /// Writes card memory.
    fn mem_write(&mut self, addr: u64, bytes: &[u8]);
    /// Replaces the card's memory.
    fn put_memory(&mut self, memory: SparseMemory);
    /// Lets some time pass.
    fn advance(&mut self) -> Result<(), CardError>;
    /// Clock cycles so far, if there is a clock.
    fn cycles(&self) -> Option<u64>;
    /// Cycle at which the memory acknowledged the last write.
    fn last_write_cycle(&self) -> Option<u64>;
    /// Zeroises and resets the Shield; memory keeps its contents.
    fn reset(&mut self) -> Result<(), CardError>;
    /// The fabric takes the design's image: a design that is clear starts.
    fn mount(&mut self) -> Result<(), CardError> {
        self.reset()
    }
    /// The fabric loses the design, which is clear then.
    fn unmount(&mut self) -> Result<(), CardError> {
        self.reset()
    }
    /// A read of the mailbox, which the kernel answers with this word: the word that the host sees, or
    /// `None` for a bus error.
    fn mailbox_read(&mut self, offset: u32, answer: u32) -> Result<Option<u32>, CardError> {
        let _ = offset;
        Ok(Some(answer))
    }
    /// A write of the mailbox: the word that the kernel receives, if it receives one.
    fn mailbox_write(&mut self, offset: u32, value: u32) -> Result<Option<u32>, CardError> {
        let _ = offset;
        Ok(Some(value))
    }
    /// The host's write of CONTROL in the adapter page of AWS F2's shell.
    fn command(&mut self, value: u32) -> Change {
        let _ = value;
        Change::None
    }
    /// The state of a kernel that boots from the host's medium, as the adapter page shows it.
    fn set_kernel(&mut self, ready: bool, alert: u32) {
        let _ = (ready, alert);
    }
    /// Reads an interrupt register of BAR2 in AWS F2's shell.
    fn bar2_read(&mut self, offset: u32) -> u32 {
        let _ = offset;
        0
    }
    /// Writes one.
    fn bar2_write(&mut self, offset: u32, value: u32) {
        let _ = (offset, value);
    }
    /// Name of the accelerator in the design, as in images.
    fn accelerator(&self) -> &str;
    /// Digest of the loaded design.
    fn design_digest(&self) -> [u8; 32];
    /// Whether the accelerator raised an interrupt since the last call. A hint.
    fn interrupted(&mut self) -> bool;
    /// Also counts 64-bit words that the accelerator receives from these addresses.
    fn watch(&mut self, range: Range<u64>);
    /// Clears the watched addresses and resets the count.
    fn unwatch(&mut self);
    /// Words received with OKAY from the watched addresses.
    fn words_delivered(&self) -> u64;
    /// Connects the design's DMA engine, if it has one, to host memory and interrupts. Returns
    /// whether it has one.
    fn connect(&mut self, host: HostPort) -> Result<bool, CardError> {
        let _ = host;
        Ok(false)
    }
    /// Turns the protocol checker on, with the status register of a job.
    fn check(&mut self, done: Option<DoneRegister>) -> Result<(), CardError>;
    /// Turns it off.
    fn uncheck(&mut self);
    /// What the checker saw since the last call.
    fn checked(&mut self) -> Checked;
    /// Also calls `hook` with each report of the checker.
    fn on_report(&mut self, hook: ReportHook) {
        let _ = hook;
    }
    /// Records what passes the ports from now on.
    fn trace(&mut self) -> Result<(), CardError>;
    /// The record since then, which ends.
    fn traced(&mut self) -> Traced;
    /// Measures a job that begins from now on, with this build of the accelerator without a Shield.
    fn measure(&mut self, bare: &Library, job: MeasuredJob) -> Result<(), CardError>;
    /// The measured job.
    fn measured(&mut self) -> Result<Measured, CardError>;
    /// The bursts at the accelerator's ports, and who waits for whom.
    fn progress(&self) -> Result<Progress, CardError>;
    /// Calls `hook` when the accelerator's ports are stuck for this number of cycles.
    fn on_stuck(&mut self, cycles: u64, hook: StuckHook) {
        let _ = (cycles, hook);
    }
    /// Makes memory answer reads of these addresses with a bus error.
    fn fail_reads(&mut self, range: Range<u64>);
    /// Passes what memory stores and answers through `tap`, in place of an earlier one.
    fn tap_memory(&mut self, tap: SharedTap) {
        let _ = tap;
    }
}

/// A dishonest memory of a card around the RTL: it sees every beat that the Shield stores, and may
/// change what it reads.
pub trait MemoryTap: Send {
    /// A beat is stored at a multiple of 64; the strobes have a bit for each byte.
    fn stores(&mut self, addr: u64, data: &[u8; 64], strobes: u64);
    /// A beat is read.
    fn reads(&mut self, addr: u64, data: &mut [u8; 64]);
}

/// A tap that all memory ports share.
pub(crate) type SharedTap = Arc<Mutex<dyn MemoryTap>>;
