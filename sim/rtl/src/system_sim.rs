//! The whole system, `shef_system`: Security Kernel, Shield and DMA engine in one model, in the
//! environment of a shell.

use crate::kernel_sim::{FabricState, host, strap};
use crate::{
    AxiMemoryConfig, CoreSim, CoreSnapshot, Environment, Error, KernelStraps, Library, Result,
};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;

/// First byte of the mailbox in the control window; offsets in it are those of
/// [`host`].
pub const MAILBOX: u32 = 0xc000;

/// State of an idle [`SystemSim`]; the noise continues.
#[derive(Clone)]
pub struct SystemSnapshot {
    core: CoreSnapshot,
    fabric: FabricState,
}

/// An instance of `shef_system_top`.
pub struct SystemSim {
    /// Control window, memories, interrupts, host memory if attached, and the clock.
    pub core: CoreSim,
    environment: Rc<RefCell<Environment>>,
}

impl SystemSim {
    /// An instance after reset, with this memory timing.
    ///
    /// # Errors
    /// When the library is of another design.
    pub fn new(lib: &Library, straps: &KernelStraps, memory: AxiMemoryConfig) -> Result<Self> {
        let mut core = CoreSim::new(lib, memory)?;
        let environment = Rc::new(RefCell::new(Environment::new(core.sim())?));
        core.sim().poke("cfg_ready_i", 1);
        core.sim().poke("kernel_tick_i", 1);
        core.attach(Box::new(Rc::clone(&environment)));
        strap(core.sim(), straps)?;
        core.reset();
        Ok(Self { core, environment })
    }

    /// Boot medium, noise source and fabric.
    pub fn environment(&mut self) -> RefMut<'_, Environment> {
        self.environment.borrow_mut()
    }

    /// Changes the description of the shell and the device.
    ///
    /// # Errors
    /// When the design lacks the ports.
    pub fn strap(&mut self, straps: &KernelStraps) -> Result<()> {
        strap(self.core.sim(), straps)
    }

    /// The kernel's first alert since reset; 0 if there was no alert.
    pub fn alert(&mut self) -> u64 {
        self.core.sim().peek("alert_o")
    }

    /// Whether the design is held in reset.
    pub fn held(&mut self) -> bool {
        self.core.sim().peek("obs_held") == 1
    }

    /// Runs until boot completes or an alert is raised; returns the number of cycles.
    ///
    /// # Errors
    /// When neither happens.
    pub fn boot(&mut self, limit: u64) -> Result<u64> {
        let (ready, alert) = (self.core.sim().port("ready_o")?, self.core.sim().port("alert_o")?);
        let start = self.core.cycles();
        while self.core.sim().get(ready) == 0 && self.core.sim().get(alert) == 0 {
            if self.core.cycles() - start > limit {
                return Err(Error::Hang { what: "boot", cycles: limit });
            }
            self.core.step(64);
        }
        Ok(self.core.cycles() - start)
    }

    #[expect(clippy::cast_possible_truncation, reason = "an offset of the mailbox")]
    fn at(offset: u64) -> u32 {
        MAILBOX + offset as u32
    }

    /// Writes a request and rings the doorbell; returns whether all of it was accepted.
    ///
    /// # Errors
    /// When an access has no answer.
    pub fn send(&mut self, request: &[u8]) -> Result<bool> {
        for (offset, chunk) in (host::REQUEST..).step_by(4).zip(request.chunks(4)) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            if !self.core.ctl_write(Self::at(offset), u32::from_le_bytes(word))? {
                return Ok(false);
            }
        }
        self.core
            .ctl_write(Self::at(host::REQ_LEN), u32::try_from(request.len()).unwrap_or(u32::MAX))
    }

    /// The answer to the last request; `None` if it does not arrive within `limit` cycles.
    ///
    /// # Errors
    /// When an access has no answer.
    pub fn receive(&mut self, limit: u64) -> Result<Option<Vec<u8>>> {
        let end = self.core.cycles() + limit;
        while self.core.ctl_read(Self::at(host::STATUS))? != Some(1) {
            if self.core.cycles() > end {
                return Ok(None);
            }
            self.core.step(200);
        }
        let len = self.core.ctl_read(Self::at(host::RSP_LEN))?.unwrap_or(0) as usize;
        let mut answer = Vec::new();
        for offset in (host::ANSWER..).step_by(4).take(len.min(host::ANSWER_BYTES).div_ceil(4)) {
            answer.extend_from_slice(
                &self.core.ctl_read(Self::at(offset))?.unwrap_or(0).to_le_bytes(),
            );
        }
        answer.truncate(len);
        Ok(Some(answer))
    }

    /// The whole state except medium, noise and host memory.
    ///
    /// # Errors
    /// When the design was built without [`crate::DesignSpec::savable`], or the bus is not idle.
    pub fn save(&self) -> Result<SystemSnapshot> {
        Ok(SystemSnapshot { core: self.core.save()?, fabric: self.environment.borrow().save() })
    }

    /// Restores a state from [`SystemSim::save`], with a memory of this timing.
    ///
    /// # Errors
    /// When it is of another design.
    pub fn restore(&mut self, snapshot: &SystemSnapshot, memory: AxiMemoryConfig) -> Result<()> {
        self.core.restore(&snapshot.core, memory)?;
        self.environment.borrow_mut().restore(&snapshot.fabric);
        Ok(())
    }
}
