//! What stands in the place of the FPGA: the functional model or the Verilated RTL, behind one
//! trait.

use std::ops::Range;

use shef_model::SparseMemory;

use crate::CardError;
use crate::host_port::HostPort;

/// A Shield with an accelerator and its memory.
///
/// Ports answer `None` or `false` where the bus answers with an error.
pub(crate) trait Backend {
    /// Reads the control window.
    fn ctl_read(&mut self, offset: u32) -> Result<Option<u32>, CardError>;
    /// Writes the control window.
    fn ctl_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError>;
    /// Reads the port that only the kernel reaches.
    fn krn_read(&mut self, offset: u32) -> Result<Option<u32>, CardError>;
    /// Writes the port that only the kernel reaches.
    fn krn_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError>;
    /// Reads card memory.
    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]);
    /// Writes card memory.
    fn mem_write(&mut self, addr: u64, bytes: &[u8]);
    /// Puts other memory in the place of the card's own.
    fn put_memory(&mut self, memory: SparseMemory);
    /// Lets some time pass.
    fn advance(&mut self) -> Result<(), CardError>;
    /// Clock cycles so far, where there is a clock.
    fn cycles(&self) -> Option<u64>;
    /// Cycle at which the memory acknowledged the last write.
    fn last_write_cycle(&self) -> Option<u64>;
    /// Zeroises and resets the Shield; memory keeps its contents.
    fn reset(&mut self) -> Result<(), CardError>;
    /// Name of the accelerator in the design; an image names it.
    fn accelerator(&self) -> &str;
    /// Digest of the design that is loaded.
    fn design_digest(&self) -> [u8; 32];
    /// Whether the accelerator raised an interrupt since this was last asked. A hint.
    fn interrupted(&mut self) -> bool;
    /// Counts 64-bit words that the accelerator receives from these addresses too, from now on.
    fn watch(&mut self, range: Range<u64>);
    /// Forgets what was watched and starts counting at 0.
    fn unwatch(&mut self);
    /// Words received with an OKAY answer from the watched addresses.
    fn words_delivered(&self) -> u64;
    /// Gives the design's own DMA engine host memory and interrupts: whether it has one.
    fn connect(&mut self, host: HostPort) -> Result<bool, CardError> {
        let _ = host;
        Ok(false)
    }
    /// The memory answers reads of these addresses with a bus error from now on.
    fn fail_reads(&mut self, range: Range<u64>);
}
