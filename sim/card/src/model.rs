//! The functional model as a back end.

use std::ops::Range;

use shef_model::{Digits, MemoryFault, Model, SparseMemory};
use shef_rtl::check::{Checked, DoneRegister};
use shef_rtl::measure::{Measured, MeasuredJob};
use shef_rtl::progress::Progress;
use shef_rtl::{Library, Traced};

use crate::backend::Backend;
use crate::{CardError, Design};

/// A card around the functional model.
pub(crate) struct ModelBackend {
    model: Model,
    design: [u8; 32],
    interrupted: bool,
}

impl ModelBackend {
    pub(crate) fn new(design: &Design) -> Self {
        let model = Model::new(design.config().clone(), Box::new(Digits::default()));
        Self { model, design: design.digest(), interrupted: false }
    }
}

fn no_ports() -> CardError {
    let what = "the model has no ports that could be watched: use the RTL".to_owned();
    CardError::Design { what }
}

impl Backend for ModelBackend {
    fn ctl_read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        Ok(self.model.ctl_read(offset))
    }

    fn ctl_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        // The work that a request starts is finished when the request is.
        self.interrupted |= offset == shef_regs::ctl::CHAN_DOORBELL;
        Ok(self.model.ctl_write(offset, value).is_some())
    }

    fn krn_read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        Ok(self.model.krn_read(offset))
    }

    fn krn_write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        Ok(self.model.krn_write(offset, value).is_some())
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) {
        self.model.memory().read(addr, bytes);
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) {
        self.model.memory_mut().write(addr, bytes);
    }

    fn put_memory(&mut self, memory: SparseMemory) {
        *self.model.memory_mut() = memory;
    }

    fn advance(&mut self) -> Result<(), CardError> {
        Ok(())
    }

    fn interrupted(&mut self) -> bool {
        std::mem::take(&mut self.interrupted)
    }

    fn cycles(&self) -> Option<u64> {
        None
    }

    fn last_write_cycle(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self) -> Result<(), CardError> {
        self.model.clear_faults();
        self.model.reset();
        Ok(())
    }

    fn accelerator(&self) -> &str {
        crate::ACCELERATOR
    }

    /// The RTL design that the model represents. They are bit-exact, so the same image and evidence
    /// apply to both.
    fn design_digest(&self) -> [u8; 32] {
        self.design
    }

    fn watch(&mut self, range: Range<u64>) {
        self.model.watch(range);
    }

    fn unwatch(&mut self) {
        self.model.clear_watch();
    }

    fn words_delivered(&self) -> u64 {
        self.model.words_delivered()
    }

    fn check(&mut self, _: Option<DoneRegister>) -> Result<(), CardError> {
        Err(no_ports())
    }

    fn progress(&self) -> Result<Progress, CardError> {
        Err(no_ports())
    }

    fn uncheck(&mut self) {}

    fn checked(&mut self) -> Checked {
        Checked::default()
    }

    fn trace(&mut self) -> Result<(), CardError> {
        let what = "the model has no ports to record: use the RTL".to_owned();
        Err(CardError::Design { what })
    }

    fn traced(&mut self) -> Traced {
        Traced::default()
    }

    fn measure(&mut self, _: &Library, _: MeasuredJob) -> Result<(), CardError> {
        Err(no_ports())
    }

    fn measured(&mut self) -> Result<Measured, CardError> {
        Err(no_ports())
    }

    fn fail_reads(&mut self, range: Range<u64>) {
        self.model.add_fault(range, MemoryFault::Error);
    }
}
